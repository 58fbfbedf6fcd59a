"""Formats for programs: JSON, JSON lines, CSV. Full precision, strict, deterministic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpcalc.inert import Written, json_text, printable, spreadsheet_text
from dpcalc.model.source import Source
from dpcalc.report import (
    SCHEMA,
    Assertion,
    Case,
    Check,
    Guess,
    Obstacle,
    Report,
    Result,
    case_fields,
    check_fields,
    input_fields,
    obstacle_fields,
    result_fields,
    strict_json,
)
from dpcalc.version import __version__


def render_json(report: Report) -> str:
    """Return the envelope as indented JSON."""
    return "".join(json_pieces(report))


_HERE = "@cases@"
_PIECE = 1 << 16  # characters


def json_pieces(report: Report) -> Iterator[str]:
    """Yield the envelope as indented JSON, in whole lines."""
    envelope, write = report.envelope(), _Cases().written
    if not report.cases:
        yield json_text(envelope, 2) + "\n"
        return
    before, _, after = json_text({**envelope, "cases": [Written(_HERE)]}, 2).partition(_HERE)
    lead = before
    for case in report.cases:
        if not isinstance(report.cases, tuple):
            write = _Cases().written  # a case is forgotten, and its place in memory taken by another
        yield lead + write(case)
        lead = ",\n    "
    yield after + "\n"


class _Cases:
    """Writes cases at their place in the envelope; what several have in common is written once.

    The cases outlive it, so that the values of their inputs are told apart by identity: 0, 0.0 and -0.0 are equal.
    """

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self._inputs: dict[str, tuple[Any, Source, str]] = {}
        self._obstacles: tuple[tuple[Obstacle, ...], str] = (), "[]"

    def written(self, case: Case) -> Written:
        """Return the text of a case."""
        parts = (
            self._inputs_of(case),
            _list([self._result(result) for result in case.results]),
            self._obstacles_of(case),
            _list([self._filled(each, 4, Assertion._asdict) for each in case.assertions]),
            *([self._filled(case.guess, 3, Guess._asdict)] if case.guess is not None else ()),
            *([self._check(case.check)] if case.check is not None else ()),
        )
        return Written(self._rest(case) % parts)

    def _rest(self, case: Case) -> str:
        """Return the text of a case, with gaps for its parts."""
        plain = not (case.note_data or case.tightness or case.training or case.ledger or case.risk or case.audit)
        key = (
            (case.algorithm, tuple(case.warnings), tuple(case.notes), case.check is None, case.guess is None)
            if plain
            else None
        )
        text: str | None = self._known.get(key) if plain else None
        if text is None:
            parts = dict.fromkeys(("inputs", "results", "not_applicable", "assertions"), _GAP)
            fields = {**case_fields(case._replace(inputs={}, results=(), obstacles=(), assertions=())), **parts}
            fields.update({"guess": _GAP} if case.guess is not None else {})
            text = _template({**fields, "check": _GAP} if case.check is not None else fields, 2)
            if plain:
                self._known[key] = text
        return text

    def _inputs_of(self, case: Case) -> str:
        """Return the text of the inputs: most are those of the case before."""
        texts, known = [], self._inputs
        for name, (value, source) in case.inputs.items():
            before = known.get(name)
            if before is None or before[0] is not value or before[1] is not source:
                text = f"{json_text(name)}: {_text(input_fields(value, source), 4)}"
                before = known[name] = value, source, text
            texts.append(before[2])
        return f"{{{_LINE}{f',{_LINE}'.join(texts)}{_END}}}" if texts else "{}"

    def _obstacles_of(self, case: Case) -> str:
        if case.obstacles is not self._obstacles[0]:
            texts = [self._once(obstacle, 4, obstacle_fields) for obstacle in case.obstacles]
            self._obstacles = case.obstacles, _list(texts)
        return self._obstacles[1]

    def _check(self, check: Check) -> str:
        """Return the text of a check; mostly its name alone is another than before."""
        key = check[1:]
        text = self._known.get(key)
        if text is None:
            text = self._known[key] = _template({**check_fields(check), "name": _GAP}, 3)
        return str(text % json_text(check.name))

    def _result(self, result: Result) -> Written:
        return _text(result_fields(result), 4) if result.details is not None else self._filled(result, 4, result_fields)

    def _filled(self, record: Any, depth: int, make: Callable[[Any], Any]) -> Written:
        """Return the text of a tuple whose numbers come in its order; that of others that differ in these is kept."""
        numbers = [value for value in record if type(value) in _NUMBERS]
        if not all(value - value == 0 for value in numbers):  # one is not finite
            return _text(make(record), depth)
        values = [_GAP if type(value) in _NUMBERS else value for value in record]
        shape = make, *values
        text = self._known.get(shape)
        if text is None:
            text = self._known[shape] = _template(make(type(record)(*values)), depth)
        return Written(text % tuple(map(repr, numbers)))

    def _once(self, key: Any, depth: int, make: Callable[..., Any]) -> Written:
        """Return the text of what is made from a value that compares by what it is, at a depth of the envelope."""
        text: Written | None = self._known.get(key)
        if text is None:
            text = self._known[key] = _text(make(key), depth)
        return text


_NUMBERS = frozenset((float, int))  # and no bool, which equals one

_GAP = Written("\0")
"""Where something goes: a control character is no part of any text of JSON."""

_LINE, _END = "\n" + 8 * " ", "\n" + 6 * " "
"""How the lines of a list or a mapping of a case begin, and the line after them."""


def _template(tree: Any, depth: int) -> str:
    """Return the text of a tree with gaps, to be filled by ``%``."""
    return _text(tree, depth).replace("%", "%%").replace(_GAP, "%s")


def _list(texts: Sequence[str]) -> str:
    """Return the text of a list of a case."""
    return f"[{_LINE}{f',{_LINE}'.join(texts)}{_END}]" if texts else "[]"


def _text(tree: Any, depth: int) -> Written:
    """Return the text of a tree at a depth of the envelope; a number that is not finite is told as `strict_json` does.

    Nearly all numbers are finite, and nothing but the encoder has to look.
    """
    try:
        return Written(json_text(tree, 2, depth))
    except (TypeError, ValueError):
        return Written(json_text(strict_json(tree), 2, depth))


def render_jsonl(report: Report) -> str:
    """Return one line of JSON per case, each with the schema and command; a check ends with its verdict."""
    return "".join(jsonl_lines(report))


def jsonl_lines(report: Report) -> Iterator[str]:
    """Yield one line per case; of a check, one more that ends it: without the last line it is not complete."""
    written = getattr(report.cases, "lines", None)  # of a check whose cases are on the disk
    for line in written() if written else (case_line(report.command, case) for case in report.cases):
        yield f"{line}\n"
    if report.command == "check":
        yield end_line(report)


def end_line(report: Report) -> str:
    """Return the last line of a check: the envelope without cases, with ``exit_code`` and ``verdict``."""
    envelope = report.envelope()
    del envelope["cases"]
    code = report.exit_code
    return json_text({**envelope, "exit_code": code, "verdict": "failed" if code else "passed"}) + "\n"


def case_line(command: str, case: Case) -> str:
    """Return a case as a line of JSON, with the schema and the command."""
    fields = {"schema": SCHEMA, "dpcalc": __version__, "command": command, **case_fields(case)}
    try:
        return json_text(fields)
    except (TypeError, ValueError):  # a number that is not finite, which is rare
        return json_text(strict_json(fields))


def render_csv(report: Report) -> str:
    """Return one row per result, as `Report.rows` has them."""
    return "".join(csv_pieces(report))


def csv_pieces(report: Report) -> Iterator[str]:
    """Yield the lines of `render_csv`."""
    import csv
    import io

    buffer = io.StringIO()
    writer, columns = csv.writer(buffer, lineterminator="\n"), report.columns
    rows = ([_cell(value) for value in row.values()] for row in report.each_row(columns))
    writer.writerow(columns)
    for row in rows:
        writer.writerow(row)
        if buffer.tell() > _PIECE:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return spreadsheet_text(value)
    return repr(value) if isinstance(value, float) else printable(str(value))
