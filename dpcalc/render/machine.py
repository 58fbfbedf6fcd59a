"""Formats for programs: JSON, JSON lines, CSV. Full precision, strict, deterministic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dpcalc.inert import Written, json_text, printable, spreadsheet_text
from dpcalc.report import SCHEMA, Case, Report, case_fields, input_fields, obstacle_fields, strict_json
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
        self._known: dict[Any, Written] = {}

    def written(self, case: Case) -> Written:
        """Return the text of a case."""
        fields = case_fields(case._replace(inputs={}, obstacles=()))
        fields["inputs"] = {
            name: self._once((name, id(value), source), 4, input_fields, value, source)
            for name, (value, source) in case.inputs.items()
        }
        fields["not_applicable"] = [self._once(obstacle, 4, obstacle_fields, obstacle) for obstacle in case.obstacles]
        for result, named in zip(case.results, fields["results"], strict=True):
            named["assumes"] = self._once(result.assumes, 5, list, result.assumes)
        return _text(fields, 2)

    def _once(self, key: Any, depth: int, make: Callable[..., Any], *values: Any) -> Written:
        """Return the text of what is made from some values, at a depth of the envelope; the key stands for them."""
        text = self._known.get(key)
        if text is None:
            text = self._known[key] = _text(make(*values), depth)
        return text


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
