"""Reading a report of ``dpcalc check`` back from its JSON: the reverse of `dpcalc.report.Report.to_dict`.

The file is not trusted: every field must be there with its type, none may be unknown, and the verdicts are counted
again. ``Report.to_dict`` of the result gives the same JSON.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from dpcalc import notes
from dpcalc.checked import Change, Shard, Status
from dpcalc.errors import PRECEDENCE, SpecError
from dpcalc.files.place import shown_path
from dpcalc.files.reading import opened
from dpcalc.files.typed import Garbled, fields_of, infinite, items, loads, read_fields, reader, tree
from dpcalc.inert import strict_json
from dpcalc.model.algorithm import Source
from dpcalc.render.machine import case_fields
from dpcalc.report import SCHEMA, Case, Report, Result
from dpcalc.theorems.record import all_bounds
from dpcalc.version import __version__

MAX_BYTES = 1 << 30
"""The largest size in bytes, of a report with some 10^5 cases."""

Fields = dict[str, Any]
_text = reader(str)


def read_report(path: str) -> Report:
    """Return the report that ``--report json=FILE`` wrote.

    Raises:
        SpecError: the file cannot be read, is larger than `MAX_BYTES`, or holds no report of this version of dpcalc.
    """
    hint = "give reports that `dpcalc check ... --report json=FILE`, or jsonl=FILE, of this version wrote"
    with opened(path, hint) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SpecError(f"{shown_path(path)} is larger than {MAX_BYTES} bytes", hint)
    try:
        return report_of(_envelope(data))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        what = f": {error}" if isinstance(error, Garbled) else ""
        raise SpecError(f"{shown_path(path)} is no JSON report of dpcalc{what}", hint) from None


def _envelope(data: bytes) -> Fields:
    """Return the envelope that a file of JSON, or of lines of JSON, holds.

    Raises:
        ValueError, KeyError, TypeError: there is none.
    """

    if data[:1] != b"{" or data[:2] == b"{\n":
        return fields_of(loads(data))
    lines = data.split(b"\n")
    end = fields_of(loads(lines[-2])) if len(lines) > 1 and not lines[-1] else {}
    if end.get("summary") is None:
        if len(lines) <= 2 and (whole := fields_of(loads(data))).get("cases") is not None:
            return whole  # JSON that another program wrote in one line
        raise Garbled("it is not complete: its last line is missing")
    if end.get("cases") is not None:
        if len(lines) > 2:
            raise Garbled("something stands before the report")
        return end
    cases = [_without_head(_fields_of_line(line.decode())) for line in lines[:-2]]
    code = end.pop("exit_code")
    codes = [fields_of(case["check"])["exit_code"] for case in cases]
    if (code, end.pop("verdict")) != (worst(codes), "failed" if code else "passed"):
        raise Garbled("its verdict is not that of its cases")
    return {**end, "cases": cases}


def report_of(envelope: Any) -> Report:
    """Return the report that an envelope of JSON types holds.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, OverflowError: it is not such an envelope.
    """
    fields = dict(fields_of(envelope))
    if (fields.pop("schema"), fields.pop("dpcalc")) != (SCHEMA, __version__):
        raise Garbled(f"it is of another version than {__version__}")
    read = Report(
        _text(fields["command"]),
        tuple(map(_case, items(fields["cases"]))),
        tuple((_text(one["file"]), _text(one["name"])) for one in items(fields.get("not_selected", []))),
        reader(tuple[Change, ...] | None)(fields.get("changes")),
        reader(Shard | None)(fields.get("shard")),
    )
    if read.shard is not None:
        _refuse_other_options(read.shard.options)
    if read.to_dict() != envelope:
        raise Garbled("its numbers, verdicts and counts do not agree")
    return read


def worst(codes: Iterable[int]) -> int:
    """Return the most important exit code, by `PRECEDENCE`."""
    present = set(codes)
    return next((code for code in PRECEDENCE if code in present), 0)


_HEAD = {"schema": SCHEMA, "dpcalc": __version__, "command": "check"}


def verified_case(line: str, command: str = "check") -> Case:
    """Return the case of a line of a command; every field is read, written again and compared.

    Raises:
        Garbled: it is not such a case, or its verdict contradicts the gates.
    """
    with no_case():
        fields = _fields_of_line(line, command)
        case = _case(_without_head(fields))
        checked = command == _HEAD["command"]
        if (case.check is not None) is not checked or strict_json(case_fields(case)) != _without_head(fields):
            raise Garbled("its numbers and verdicts do not agree")
        return case


def read_line(line: str) -> Case:
    """Return the case of a line that this process wrote.

    Raises:
        Garbled: it is not a case.
    """
    with no_case():
        return _case(_without_head(_fields_of_line(line)))


@contextlib.contextmanager
def no_case() -> Iterator[None]:
    """Turn any error of parsing into the one that a line is not a case."""
    try:
        yield
    except Garbled:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Garbled(f"a line is no case ({type(error).__name__})") from None


def _fields_of_line(line: str, command: str = "check") -> Fields:
    fields: Fields = fields_of(loads(line))
    if any(fields.get(name) != value for name, value in {**_HEAD, "command": command}.items()):
        raise Garbled("a case is of another version or command")
    return fields


def _without_head(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if name not in _HEAD}


# --- the parts --------------------------------------------------------------------------------------------------------


def _case(written: Any) -> Case:
    fields = dict(fields_of(written))
    inputs, results, data, obstacles = map(fields.pop, ("inputs", "results", "note_data", "not_applicable"))
    read = Case(**read_fields(Case, {**fields, "obstacles": obstacles, "inputs": {}, "results": []}))._replace(
        inputs={name: _input(one) for name, one in fields_of(inputs).items()},
        results=tuple(map(_result, items(results))),
        note_data=tuple(map(_note, items(data))),
    )
    _refuse_contradiction(read)
    return read


_EXITS = {Status.PASSED: {0}, Status.SKIPPED: {0}, Status.FAILED: {1}, Status.ERROR: {2, 3, 4}}


def _refuse_contradiction(case: Case) -> None:
    """Refuse a verdict that contradicts its gates, exit code or slack."""
    for gate in case.assertions:
        if gate.passed and gate.slack is None and not isinstance(gate.value, str):
            raise Garbled("it is not said by how much a gate holds")
        if gate.passed and gate.slack is not None and not gate.slack >= 0.0:
            raise Garbled("a gate is said to hold that does not")
    if case.check is None:
        return
    if case.check.exit_code not in _EXITS[case.check.status]:
        raise Garbled("a case's status and its exit code do not agree")
    if case.check.status == Status.PASSED and not all(gate.passed for gate in case.assertions):
        raise Garbled("a case is said to pass of which a gate does not hold")


def refuse_other_inputs(given: Mapping[str, tuple[Any, Source]], case: Case) -> None:
    """Refuse a case whose inputs differ from those given.

    Args:
        given: with their sources.
        case: as read.

    Raises:
        Garbled: a given number or word differs.
    """
    for name, (value, _) in given.items():
        stated, source = case.inputs.get(name, (value, Source.DEFAULT))
        if source.typed and strict_json(stated) != strict_json(value):
            raise Garbled(f"{name} is not what was given")


class _Input(NamedTuple):
    value: Any
    source: Source


def _input(written: Any) -> tuple[Any, Source]:
    return tuple(reader(_Input)(written))


_RESULT = frozenset(Result._fields) - {"title", "details"}


def _result(written: Any) -> Result:
    fields = infinite(written)
    known = {name: value for name, value in fields.items() if name in _RESULT}
    details = {name: tree(value) for name, value in fields.items() if name not in _RESULT}
    known["title"] = _titles().get(known["bound"], known["bound"])
    result = Result(**read_fields(Result, known))
    return result._replace(adjacency=result.adjacency.replace("_", "-"), details=details or None)


@cache
def _titles() -> Mapping[str, str]:
    return {id: bound.title for id, bound in all_bounds().items()}


_OPTIONS = {"certify", "policy"}


def _refuse_other_options(written: str) -> None:
    options = json.loads(written)
    if set(options) != _OPTIONS or not isinstance(options["certify"], bool):
        raise Garbled("the options are none of a check")


@cache
def _kinds_of_notes() -> Mapping[str, type[notes.Note]]:
    kinds = (note for note in vars(notes).values() if isinstance(note, type) and issubclass(note, notes.Note))
    return {note.kind: note for note in kinds if note.kind}


def _note(written: Any) -> notes.Note:
    fields = tree(fields_of(written))
    return _kinds_of_notes()[fields.pop("kind")](**fields)
