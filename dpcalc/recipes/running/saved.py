"""Reading a report of ``dpcalc check`` back from its JSON: the reverse of `dpcalc.report.Report.to_dict`.

What is read is not trusted: every field must be there with its type, none may be unknown, and the verdicts are counted
again. ``Report.to_dict`` of what was read gives the same JSON.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, TypeVar

from dpcalc import notes
from dpcalc.errors import PRECEDENCE, SpecError
from dpcalc.files.reading import opened, shown_path
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import Kind
from dpcalc.report import (
    SCHEMA,
    Assertion,
    Case,
    Change,
    Check,
    Guess,
    Obstacle,
    Report,
    Result,
    Shard,
    Status,
    Tightness,
    case_fields,
    strict_json,
)
from dpcalc.theorems.record import all_bounds
from dpcalc.version import __version__

MAX_BYTES = 1 << 30
"""A report of so many bytes has some 10^5 cases."""

Fields = dict[str, Any]
T = TypeVar("T")


class Garbled(ValueError):
    """What is no report."""


_Invalid = Garbled


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
        what = f": {error}" if isinstance(error, _Invalid) else ""
        raise SpecError(f"{shown_path(path)} is no JSON report of dpcalc{what}", hint) from None


def _envelope(data: bytes) -> Fields:
    """Return the envelope that a file of JSON, or of lines of JSON, holds.

    Raises:
        ValueError, KeyError, TypeError: it holds none.
    """

    if data[:1] != b"{" or data[:2] == b"{\n":
        return _object(_parsed(data))
    lines = data.split(b"\n")
    end = _object(_parsed(lines[-2])) if len(lines) > 1 and not lines[-1] else {}
    if "summary" not in end:
        if len(lines) <= 2 and "cases" in (whole := _object(_parsed(data))):
            return whole  # JSON that another program wrote, in a line
        raise _Invalid("it is not complete: its last line is missing")
    if "cases" in end:
        if len(lines) > 2:
            raise _Invalid("something stands before the report")
        return end
    cases = [_without_head(_fields_of_line(line.decode())) for line in lines[:-2]]
    code = end.pop("exit_code")
    codes = [_object(case["check"])["exit_code"] for case in cases]
    if (code, end.pop("verdict")) != (worst(codes), "failed" if code else "passed"):
        raise _Invalid("its verdict is not that of its cases")
    return {**end, "cases": cases}


def report_of(envelope: Any) -> Report:
    """Return the report that an envelope of JSON types holds.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, OverflowError: it is no such envelope.
    """
    fields = _taken(envelope, "schema", "dpcalc", "command", "cases", "summary")
    optional = _optional(fields, "not_selected", "changes", "shard")
    if (fields["schema"], fields["dpcalc"]) != (SCHEMA, __version__):
        raise _Invalid(f"it is of another version than {__version__}")
    changes = optional["changes"]
    read = Report(
        _text(fields["command"]),
        tuple(map(_case, _list(fields["cases"]))),
        tuple((_text(one["file"]), _text(one["name"])) for one in _list(optional["not_selected"] or [])),
        None if changes is None else tuple(_record(Change, one) for one in _list(changes)),
        None if optional["shard"] is None else _shard(optional["shard"]),
    )
    if read.to_dict() != envelope:
        raise _Invalid("its numbers, verdicts and counts do not agree")
    return read


def worst(codes: Iterable[int]) -> int:
    """Return the exit code that tells most, by `PRECEDENCE`."""
    present = set(codes)
    return next((code for code in PRECEDENCE if code in present), 0)


_HEAD = {"schema": SCHEMA, "dpcalc": __version__, "command": "check"}


def verified_case(line: str, command: str = "check") -> Case:
    """Return the case of a line, of a command; every field is read, written again and compared.

    Raises:
        Garbled: it is no such case, or its verdict contradicts the gates.
    """
    with no_case():
        fields = _fields_of_line(line, command)
        case = _case(_without_head(fields))
        checked = command == _HEAD["command"]
        if (case.check is not None) is not checked or strict_json(case_fields(case)) != _without_head(fields):
            raise _Invalid("its numbers and verdicts do not agree")
        return case


def read_line(line: str) -> Case:
    """Return the case of a line that this process wrote.

    Raises:
        Garbled: it is no case.
    """
    with no_case():
        return _case(_without_head(_fields_of_line(line)))


@contextlib.contextmanager
def no_case() -> Iterator[None]:
    """Say that a line is no case, whatever shows it."""
    try:
        yield
    except _Invalid:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise _Invalid(f"a line is no case ({type(error).__name__})") from None


def _fields_of_line(line: str, command: str = "check") -> Fields:
    fields: Fields = _object(_parsed(line))
    if any(fields.get(name) != value for name, value in {**_HEAD, "command": command}.items()):
        raise _Invalid("a case is of another version or command")
    return fields


def _without_head(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if name not in _HEAD}


def _parsed(text: bytes | str) -> Any:
    return json.loads(text, parse_constant=_no_constant, parse_int=_whole_number, object_pairs_hook=_once)


def _whole_number(word: str) -> int:
    """Return a whole number, which is also a float: one with more digits could not be compared with any.

    Raises:
        OverflowError: it has more.
    """
    float(number := int(word))
    return number


def _no_constant(word: str) -> float:
    raise _Invalid(f"{word} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> Fields:
    """Return the pairs of an object, of which none may repeat a name."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _Invalid("a name stands twice in an object")
    return fields


# --- the parts --------------------------------------------------------------------------------------------------------


def _case(written: Any) -> Case:
    fields = _taken(
        written, "algorithm", "inputs", "results", "not_applicable", "assertions", "warnings", "notes", "note_data"
    )
    more = _optional(fields, "tightness", "training", "check", "ledger", "risk", "guess")
    read = Case(
        algorithm=_text(fields["algorithm"]),
        inputs={name: _input(one) for name, one in _object(fields["inputs"]).items()},
        results=tuple(map(_result, _list(fields["results"]))),
        obstacles=tuple(map(_obstacle, _list(fields["not_applicable"]))),
        assertions=tuple(map(_assertion, _list(fields["assertions"]))),
        warnings=_texts(fields["warnings"]),
        notes=_texts(fields["notes"]),
        note_data=tuple(map(_note, _list(fields["note_data"]))),
        tightness=None if more["tightness"] is None else Tightness(**_infinite(more["tightness"])),
        training=_tree(more["training"]),
        check=None if more["check"] is None else _check(more["check"]),
        ledger=_tree(more["ledger"]),
        risk=_tree(more["risk"]),
        guess=None if more["guess"] is None else _guess(more["guess"]),
    )
    _refuse_contradiction(read)
    return read


_EXITS = {Status.PASSED: {0}, Status.SKIPPED: {0}, Status.FAILED: {1}, Status.ERROR: {2, 3, 4}}


def _refuse_contradiction(case: Case) -> None:
    """Refuse a verdict that its own gates, exit code or room left contradict."""
    if any(gate.passed and gate.slack is not None and not gate.slack >= 0.0 for gate in case.assertions):
        raise _Invalid("a gate is said to hold that does not")
    if case.check is None:
        return
    if case.check.exit_code not in _EXITS[case.check.status]:
        raise _Invalid("a case's status and its exit code do not agree")
    if case.check.status == Status.PASSED and not all(gate.passed for gate in case.assertions):
        raise _Invalid("a case is said to pass of which a gate does not hold")


def refuse_other_inputs(given: Mapping[str, tuple[Any, Source]], case: Case) -> None:
    """Refuse a case that speaks of other inputs than those given.

    Args:
        given: with their sources.
        case: as read.

    Raises:
        Garbled: a number or a word that was given is another one.
    """
    for name, (value, _) in given.items():
        stated, source = case.inputs.get(name, (value, Source.DEFAULT))
        if source.typed and strict_json(stated) != strict_json(value):
            raise _Invalid(f"{name} is not what was given")


def _record(kind: Callable[..., T], fields: Any, **parsers: Callable[[Any], Any]) -> T:
    """Return a record of JSON types, some of whose fields are parsed."""
    fields = dict(_object(fields))
    for name, parse in parsers.items():
        fields[name] = parse(fields[name])
    return kind(**fields)


def _guess(fields: Any) -> Guess:
    fields = _infinite(fields)
    _nothing_else(fields, *Guess._fields)
    return _record(Guess, fields, probability=_real, advantage=_real, bound=_text, from_point=lambda it: it is True)


def _input(written: Any) -> tuple[Any, Source]:
    fields = _taken(_infinite(written), "value", "source")
    _nothing_else(fields, "value", "source")
    return _tree(fields["value"]), Source(fields["source"])


_RESULT = frozenset(Result._fields) - {"title", "details"}


def _result(written: Any) -> Result:
    fields = _infinite(written)
    known = {name: value for name, value in fields.items() if name in _RESULT}
    details = {name: _tree(value) for name, value in fields.items() if name not in _RESULT}
    for name in ("bound", "quantity", "adjacency", "reference"):
        _text(known[name])
    if not isinstance(known["best"], bool):
        raise _Invalid("best is no truth value")
    known["kind"], known["adjacency"] = Kind(known["kind"]), known["adjacency"].replace("_", "-")
    known["assumes"] = _texts(known["assumes"])
    return Result(title=_titles().get(known["bound"], known["bound"]), details=details or None, **known)


@cache
def _titles() -> Mapping[str, str]:
    return {id: bound.title for id, bound in all_bounds().items()}


def _obstacle(fields: Any) -> Obstacle:
    return _record(Obstacle, fields, bound=_text, because=_text, hint=_text)


def _assertion(written: Any) -> Assertion:
    fields = _infinite(written)
    if not isinstance(fields["passed"], bool):
        raise _Invalid("a gate has no verdict")
    value, slack = (fields[name] for name in ("value", "slack"))
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _Invalid("a gate has no value")
    may_lack = isinstance(value, str) or not fields["passed"]  # of a name, or of a refusal that was expected
    if isinstance(slack, bool) or not (isinstance(slack, (int, float)) or (slack is None and may_lack)):
        raise _Invalid("it is not said by how much a gate holds")
    return Assertion(**fields)


def _check(fields: Any) -> Check:
    texts = dict.fromkeys(("name", "command", "file"), _text)
    counts = dict.fromkeys(("line", "column", "exit_code"), _whole)
    return _record(Check, fields, **texts, **counts, status=Status, accepted=_texts, objections=_texts)


def _shard(fields: Any) -> Shard:
    texts = dict.fromkeys(("digest", "content"), _text)
    counts = dict.fromkeys(("number", "of", "cases"), _whole)
    return _record(
        Shard, fields, **texts, **counts, options=_options,
        places=lambda places: tuple(map(_whole, _list(places))),
        recipes=lambda recipes: tuple((_text(file), bool(strict)) for file, strict in _list(recipes)),
    )  # fmt: skip


_OPTIONS = {"certify", "policy"}


def _options(written: Any) -> str:
    options = json.loads(_text(written))
    if set(options) != _OPTIONS or not isinstance(options["certify"], bool):
        raise _Invalid("the options are none of a check")
    return str(written)


@cache
def _kinds_of_notes() -> Mapping[str, type[notes.Note]]:
    kinds = (note for note in vars(notes).values() if isinstance(note, type) and issubclass(note, notes.Note))
    return {kind: note for note in kinds if isinstance(kind := getattr(note, "kind", None), str)}


def _note(written: Any) -> notes.Note:
    fields = {name: _tree(value) for name, value in _infinite(written).items()}
    return _kinds_of_notes()[fields.pop("kind")](**fields)


# --- values -----------------------------------------------------------------------------------------------------------


def _infinite(written: Any) -> Fields:
    """Return an object with its infinite numbers back in place of null and the reason beside it.

    Raises:
        ValueError: the reason speaks of a field that is not there.
    """
    fields = dict(_object(written))
    if not isinstance(fields.get("reason"), str):
        return fields
    for reason in fields.pop("reason").split("; "):
        name, value = _number_of(reason)
        if fields.get(name, 0) is not None:
            raise _Invalid("a reason is given for a number that is there")
        fields[name] = value
    return fields


_WORDS = {"infinite": math.inf, "below all numbers": -math.inf, "not a number": math.nan}


def _number_of(reason: str) -> tuple[str, float]:
    if reason == "delta is exactly 0":
        return "log_delta", -math.inf
    name, _, words = reason.partition(" is ")
    return name, _WORDS[words]


def _tree(written: Any) -> Any:
    """Return a tree with its infinite numbers back."""
    if isinstance(written, dict):
        return {name: _tree(value) for name, value in _infinite(written).items()}
    return [_tree(value) for value in written] if isinstance(written, list) else written


def _taken(written: Any, *names: str) -> Fields:
    fields = dict(_object(written))
    if missing := [name for name in names if name not in fields]:
        raise _Invalid(f"{missing[0]} is missing")
    return fields


def _optional(fields: Fields, *names: str) -> Fields:
    return {name: fields.get(name) for name in names}


def _nothing_else(fields: Fields, *names: str) -> None:
    if set(fields) - set(names):
        raise _Invalid("a field is not known")


def _typed(kind: type, what: str, written: Any) -> Any:
    if not isinstance(written, kind) or isinstance(written, bool):
        raise _Invalid(f"{what} is expected")
    return written


_text: Callable[[Any], str] = partial(_typed, str, "a text")
_whole: Callable[[Any], int] = partial(_typed, int, "a whole number")
_real: Callable[[Any], float] = partial(_typed, float, "a number")
_list: Callable[[Any], list[Any]] = partial(_typed, list, "a list")
_object: Callable[[Any], Fields] = partial(_typed, dict, "an object")


def _texts(words: Any) -> tuple[str, ...]:
    return tuple(map(_text, _list(words)))
