"""Reading a ledger: its text to its entries, every mistake with its place; nothing is evaluated here."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.ledgers.entries import MECHANISM, MOST_ENTRIES, MOST_TIMES, Entry, Ledger
from dpcalc.engine.question import Question
from dpcalc.errors import SpecError
from dpcalc.files.documents import Rules, parse_json, parse_yaml
from dpcalc.files.nodes import Field, Scalar, Table, table, text
from dpcalc.files.place import Place, clipped, near
from dpcalc.files.reading import document_place, read_document
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.choices import Adjacency
from dpcalc.model.numbers import parse_delta, parse_integer, parse_number
from dpcalc.model.parameter import check
from dpcalc.model.source import Source
from dpcalc.notions.tuning import Law, Tuning, tuning_of
from dpcalc.recipes.reading.matrix import Vocabulary
from dpcalc.recipes.reading.recipe import Entry as CaseEntry
from dpcalc.recipes.reading.reference import Files, Unreadable
from dpcalc.recipes.reading.settings import Setting, by_name, follow, read_command, read_settings, suggestion
from dpcalc.recipes.reading.values import QUESTION

VERSION = "ledger/1"
KEYS = ("dpcalc", "description", "adjacency", "group_size", "partition", "budget", "entries")
"""The keys of a ledger."""

OWN = ("times", "part", "tuning", "description")
"""The keys of an entry that describe no run."""

_SYNTAX = Rules(items=MOST_ENTRIES, anchor_hint="write the entries out", depth_hint="a ledger needs four levels")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 ._-]{0,99}")


def read_ledger(path: str | None, added: Sequence[str] = ()) -> tuple[Ledger, Question]:
    """Return the ledger in a file and in lines that are added to it, and the budget that it states.

    Args:
        path: YAML or JSON, ``-`` for standard input; None for the added lines alone.
        added: entries as ``name: value`` pairs, e.g. ``epsilon=0.1 times=100``.

    Raises:
        SpecError: it is no ledger; the message says where.
    """
    files = Files(path or "ledger")
    body = _body(path, files) if path is not None else Table(Place("--add"), {})
    taken = table(body.fields["entries"].node, "entries").fields if "entries" in body.fields else {}
    free = (name for name in map("added-{}".format, itertools.count(1)) if name not in taken)
    return _ledger(body, files, {name: _typed(line) for name, line in zip(free, added, strict=False)})


def parse_ledger(path: str, raw: bytes) -> tuple[Ledger, int]:
    """Return the ledger that a text is, for a file of this name, and the column in which its last entry begins.

    Raises:
        SpecError: it is none; the message says where.
    """
    body = _parsed(str(document_place(path)), path, raw)
    ledger, _ = _ledger(body, Files(path), {})
    fields = table(body.fields["entries"].node, "entries").fields
    return ledger, [field.place.column for field in fields.values()][-1]


def ledger_of(
    entries: Mapping[str, Any] | Sequence[Any], path: str | None = None, partition: str | None = None
) -> tuple[Ledger, Question]:
    """Return the ledger of entries as Python has them, added to those in a file, and the budget that the file states.

    Args:
        entries: name -> entry, or entries without names; an entry is a mapping as a file has it, or a line such as
            ``epsilon=0.1 times=100``.
        path: YAML or JSON; None for the entries alone.
        partition: ``kept``, as a file has it.

    Raises:
        SpecError: it is no ledger.
    """
    files = Files(path or "ledger")
    body = _body(path, files) if path is not None else Table(Place("entries"), {})
    if partition is not None:
        kept = Field(Place("partition"), Scalar(Place("partition"), str(partition)))
        body = body._replace(fields={**body.fields, "partition": kept})
    taken = table(body.fields["entries"].node, "entries").fields if "entries" in body.fields else {}
    if isinstance(entries, Mapping):
        named = {str(name): entry for name, entry in entries.items()}
    else:
        free = (name for name in map("added-{}".format, itertools.count(1)) if name not in taken)
        named = dict(zip(free, entries, strict=False))
    twice = next((name for name in named if name in taken), None)
    if twice is not None:
        raise SpecError(f"entry {clipped(twice)} is there twice", "give it another name")
    return _ledger(body, files, {name: _given(name, entry) for name, entry in named.items()})


def _given(name: str, entry: Any) -> Field:
    """Return an entry as it would be written."""
    place = Place(f"entry {name[:60]}")
    if isinstance(entry, str):
        return _typed(entry, place)
    if not isinstance(entry, Mapping):
        raise SpecError(f"{place} is {type(entry).__name__}", "an entry is a dict or a text such as 'epsilon=0.1'")
    fields = {str(key): _field(place, value) for key, value in entry.items() if value is not None}
    return Field(place, Table(place, fields))


def _field(place: Place, value: Any) -> Field:
    value = value.item() if hasattr(value, "item") else value  # a number of numpy
    if isinstance(value, Mapping):
        return Field(place, Table(place, {str(key): _field(place, each) for key, each in value.items()}))
    if isinstance(value, bool) or not isinstance(value, (str, int, float, os.PathLike)):
        raise place.error(f"{clipped(repr(value))} is no value of an entry", "a number or a word")
    return Field(place, Scalar(place, repr(value) if isinstance(value, float) else str(value)))


def _ledger(body: Table, files: Files, added: Mapping[str, Field]) -> tuple[Ledger, Question]:
    """Return the ledger that a mapping describes, with entries that are added to it, and its budget."""
    fields = dict(body.fields)
    for name, field in fields.items():
        if name not in KEYS:
            raise field.place.error(f"unknown key {clipped(name)}", near(name, KEYS))
    entries = dict(table(fields["entries"].node, "entries").fields) if "entries" in fields else {}
    stated = _adjacency(fields.get("adjacency"), files)
    read = [_entry(name, field, files, stated) for name, field in entries.items()]
    read += [_entry(name, field, files) for name, field in added.items()]
    if not read:
        raise body.place.error("there are no entries", "write them under entries:, each with a name of its own")
    ledger = Ledger(
        tuple(read),
        stated or _common(read),
        _whole(fields.get("group_size"), "group_size", 10**6, files),
        _kept(fields.get("partition")),
    )
    return ledger, _budget(fields.get("budget"), files)


def _common(entries: Sequence[Entry]) -> Adjacency:
    """Return the adjacency that all entries state; replace-one where they differ, or one states none."""
    adjacencies = {entry.adjacency for entry in entries}
    only = adjacencies.pop()
    return Adjacency.REPLACE_ONE if only is None or adjacencies else only


def read_ledger_case(body: Table, files: Files, earlier: Mapping[str, Sequence[CaseEntry]]) -> tuple[Ledger, Question]:
    """Return the ledger of a case of a recipe: its ``entries``, those of the ledger that ``file`` names, or both.

    An entry ``{case: NAME}`` is the run of an earlier case.

    Raises:
        Unreadable: the file is no ledger; what it holds is not shown.
        SpecError: the case has no entries, or one is none.
    """
    ledger, budget = Ledger(()), Question()
    if "file" in body.fields:
        field = body.fields["file"]
        ledger, budget = _of_file(field.place, text(field.node, "file"), files)
    if "entries" in body.fields:
        named = table(body.fields["entries"].node, "entries").fields
        stated = _adjacency(body.fields.get("adjacency"), files)
        taken = {entry.name for entry in ledger.entries}
        for name, field in named.items():
            if name in taken:
                raise field.place.error(f"entry {clipped(name)} is in the file as well", "give it another name")
            ledger = ledger._replace(entries=(*ledger.entries, _case_entry(name, field, files, stated, earlier)))
    if not ledger.entries:
        raise body.place.error("the ledger has no entries", "write entries: {name: {mu: 1}}, or file: ledger.yaml")
    if "file" not in body.fields:
        ledger = ledger._replace(adjacency=_common(ledger.entries))
    if "partition" in body.fields:
        ledger = ledger._replace(kept=_kept(body.fields["partition"]))
    return ledger, budget


def _of_file(place: Place, name: str, files: Files) -> tuple[Ledger, Question]:
    path = files.path(name, place)
    try:
        return read_ledger(path)
    except SpecError:
        raise Unreadable(
            place, f"{clipped(name)} is no ledger that can be read", "`dpcalc ledger FILE` says what is wrong with it"
        ) from None


def _case_entry(
    name: str, field: Field, files: Files, stated: Adjacency | None, earlier: Mapping[str, Sequence[CaseEntry]]
) -> Entry:
    body = table(field.node, f"entry {name}")
    if "case" not in body.fields:
        return _entry(name, field, files, stated)
    reference = body.fields["case"]
    other = text(reference.node, "case")
    strange = next((key for key in body.fields if key not in ("case", *OWN)), None)
    if strange is not None:
        raise body.fields[strange].place.error(
            f"entry {name}: {clipped(strange)} beside case", f"an entry of a case takes {', '.join(OWN)}"
        )
    found = earlier.get(other, ())
    if len(found) != 1:
        what = f"{other} is {len(found)} cases" if found else f"there is no earlier case {clipped(other)}"
        raise reference.node.place.error(what, near(other, earlier) if not found else "name a case without a matrix")
    (case,) = found
    if case.unread is not None:
        raise case.unread
    _check_describes(name, case.command, reference.place)
    rest = Table(body.place, {"mu": Field(body.place, Scalar(body.place, "1")), **body.fields})
    read = _entry(name, Field(field.place, rest._replace(fields=_without(rest.fields, "case"))), files)
    given = dict(case.parameters)
    adjacency = given.pop("adjacency", None)
    return read._replace(
        command=case.command, given=given, adjacency=None if adjacency is None else Adjacency(str(adjacency))
    )


def _without(fields: Mapping[str, Field], name: str) -> dict[str, Field]:
    return {key: field for key, field in fields.items() if key != name}


def _check_describes(name: str, command: str, place: Place) -> None:
    """Refuse a command that describes no run of records."""
    record = COMMANDS.get(command)
    if record is None or record.trains or record.prices or ALGORITHMS[record.default].chained:
        raise place.error(f"entry {name}: {command} describes no run of records", "use compare, or dp-sgd")


def of_ledger(
    ledger: Ledger, budget: Question, parameters: Mapping[str, Any], question: Question
) -> tuple[dict[str, Any], Question]:
    """Return the parameters and the question of a case: what it sets stands in place of what its file states."""
    if "adjacency" in parameters:
        ledger = ledger._replace(adjacency=Adjacency(str(parameters["adjacency"])))
    if "group_size" in parameters:
        ledger = ledger._replace(group_size=int(parameters["group_size"]))
    if question.epsilon is None:
        question = question._replace(epsilon=budget.epsilon)
    if question.log_delta is None:
        question = question._replace(delta=budget.delta, log_delta=budget.log_delta)
    return {"ledger": ledger}, question


def _body(path: str, files: Files) -> Table:
    shown = str(document_place(path))
    return _parsed(shown, path, read_document(files.recipe, "ledger"))


def _parsed(shown: str, path: str, raw: bytes) -> Table:
    node = parse_json(shown, raw) if path.endswith(".json") else parse_yaml(shown, raw, _SYNTAX)
    if node is None:
        raise Place(shown).error("is empty", f"a ledger starts with dpcalc: {VERSION}")
    body = table(node, "the ledger")
    if "dpcalc" not in body.fields:
        raise body.place.error("this is not a ledger: the version is missing", f"start with dpcalc: {VERSION}")
    version = body.fields["dpcalc"].node
    if text(version, "dpcalc") != VERSION:
        hint = "a recipe is run with `dpcalc check`" if text(version, "dpcalc").startswith("recipe") else None
        raise version.place.error(f"dpcalc is {clipped(text(version, 'dpcalc'))}; this release reads {VERSION}", hint)
    return body


def _typed(line: str, place: Place = Place("--add")) -> Field:  # noqa: B008 (it never changes)
    """Return the entry that a line of ``key=value`` pairs spells; ``tuning.mean=10`` is inside ``tuning``."""
    fields: dict[str, Field] = {}
    tuning: dict[str, Field] = {}
    for word in line.replace(",", " ").split():
        name, mark, value = word.partition("=")
        if not mark or not name or not value:
            raise SpecError(f"{place}: {clipped(word)} is not key=value", "for example --add 'epsilon=0.1 times=100'")
        inside, _, key = name.replace("-", "_").partition(".")
        into, key = (tuning, key) if key and inside == "tuning" else (fields, name.replace("-", "_"))
        if key in into:
            raise SpecError(f"{place}: {clipped(name)} is there twice", "keep one")
        into[key] = Field(place, Scalar(place, value))
    if tuning:
        fields["tuning"] = Field(place, Table(place, tuning))
    return Field(place, Table(place, fields))


def _entry(name: str, field: Field, files: Files, stated: Adjacency | None = None) -> Entry:
    """Return an entry; what is known of a mechanism is for the adjacency that its file states."""
    if not _NAME.fullmatch(name):
        raise field.place.error(f"{clipped(name)} is not a name", "use letters, digits, - and _, at most 100 of them")
    body = table(field.node, f"entry {name}")
    own = {key: body.fields[key] for key in OWN if key in body.fields}
    rest = Table(body.place, {key: value for key, value in body.fields.items() if key not in OWN})
    adjacency = _adjacency(rest.fields.get("adjacency"), files)
    times = _whole(own.get("times"), "times", MOST_TIMES, files)
    part = _part(own.get("part"))
    tuning, runs = _tuning(own.get("tuning"), files)
    command, given = _run(name, rest, files) if _is_run(rest) else ("", _mechanism(name, rest, files))
    if times * runs > MOST_TIMES:
        raise field.place.error(f"more than {MOST_TIMES} runs", "use fewer")
    return Entry(name, command, given, times * runs, part, tuning, adjacency or (None if command else stated))


def _is_run(body: Table) -> bool:
    """Return whether an entry describes a run, and no mechanism."""
    return any(key in body.fields for key in ("algorithm", "command", "from"))


def _run(name: str, body: Table, files: Files) -> tuple[str, Mapping[str, Any]]:
    """Return the command and the parameters of a described run."""
    command = read_command(body.fields.get("command"), "compare")
    _check_describes(name, command, body.place)
    vocabulary = Vocabulary(command, files)
    settings = read_settings(body, files)
    given: dict[str, Any] = {}
    for key, setting in settings.items():
        if key in QUESTION:
            raise setting.place.error(f"entry {name}: {key} is asked of all entries together", f"leave out {key}")
        if key not in vocabulary.names:
            hint = suggestion(key, (*vocabulary.names, *OWN))
            raise setting.place.error(f"entry {name}: unknown key {clipped(key)}", hint)
        if key != "adjacency" and not setting.null:
            given[key] = vocabulary.value(key, setting)
    return command, given


def _mechanism(name: str, body: Table, files: Files) -> Mapping[str, Any]:
    """Return what describes a mechanism: positive numbers, and delta as its logarithm."""
    given: dict[str, Any] = {}
    for key, field in by_name(body.fields).items():
        if key == "adjacency":
            continue
        if key not in MECHANISM:
            hint = f"a mechanism takes {', '.join(MECHANISM)}; a run has algorithm: or command:"
            raise field.place.error(f"entry {name}: unknown key {clipped(key)}", hint)
        setting = follow(field.place, field.node, files)
        if key == "delta":
            delta, log_delta = _number(setting, key, parse_delta)
            if not log_delta < 0.0:
                raise setting.place.error(f"entry {name}: delta must be > 0 and < 1", "leave out delta where it is 0")
            given |= {"delta": delta, "log_delta": log_delta}
            continue
        value = _number(setting, key, parse_number)
        if not 1e-9 <= value <= 1e9:
            raise setting.place.error(f"entry {name}: {key} must be from 1e-9 to 1e9", "write it in other units")
        given[key] = value
    return given


def _number(setting: Setting, name: str, parse: Any) -> Any:
    """Return a number; of one that stands in another file no error shows the text."""
    if setting.unread is not None:
        raise setting.unread
    try:
        return parse(text(setting.node, name).strip(" "))
    except SpecError as error:
        if setting.origin:
            raise setting.place.error(f"{name} is that of {clipped(setting.origin)}, and no such number") from None
        raise setting.place.error(f"{name}: {error.message}", error.hint) from None


def _whole(field: Field | None, name: str, most: int, files: Files) -> int:
    if field is None:
        return 1
    value = int(_number(follow(field.place, field.node, files), name, parse_integer))
    if not 1 <= value <= most:
        raise field.place.error(f"{name} must be a whole number from 1 to {most}")
    return value


def _adjacency(field: Field | None, files: Files) -> Adjacency | None:
    if field is None:
        return None
    try:
        return Adjacency(str(check("adjacency", text(field.node, "adjacency"))))
    except SpecError as error:
        raise field.place.error(error.message, error.hint) from None


def _kept(field: Field | None) -> bool:
    if field is None:
        return False
    if text(field.node, "partition") != "kept":
        raise field.place.error("partition can only be kept", "a record that replaces another stays in its part")
    return True


def _part(field: Field | None) -> str:
    if field is None:
        return ""
    name = text(field.node, "part").strip()
    if not _WORD.fullmatch(name):
        raise field.place.error("part is not a name", "use letters, digits, blanks, . - and _")
    return name


def _tuning(field: Field | None, files: Files) -> tuple[Tuning | None, int]:
    """Return the law of a secret number of runs, and a number of runs that is fixed."""
    if field is None:
        return None, 1
    body = table(field.node, "tuning")
    words = (*Law, "fixed")
    for key, inner in body.fields.items():
        if key not in ("distribution", "mean", "shape"):
            raise inner.place.error(f"unknown key {clipped(key)}", "distribution, mean and shape")
    if "distribution" not in body.fields or "mean" not in body.fields:
        raise body.place.error("tuning needs distribution and mean", f"distribution is one of {', '.join(words)}")
    word = text(body.fields["distribution"].node, "distribution")
    if word not in words:
        raise body.fields["distribution"].place.error(
            f"distribution is {clipped(word)}; it must be one of {', '.join(words)}", near(word, words)
        )
    mean = body.fields["mean"]
    if word == "fixed":
        if "shape" in body.fields:
            raise body.fields["shape"].place.error("shape is of negative-binomial alone", "leave it out")
        return None, _whole(mean, "mean", MOST_TIMES, files)
    shape = body.fields.get("shape")
    try:
        return tuning_of(
            Law(word), _number(follow(mean.place, mean.node, files), "mean", parse_number),
            None if shape is None else _number(follow(shape.place, shape.node, files), "shape", parse_number),
        ), 1  # fmt: skip
    except SpecError as error:
        if ":" in error.message and error.message.startswith(str(mean.place)):
            raise
        raise body.place.error(error.message, error.hint) from None


def _budget(field: Field | None, files: Files) -> Question:
    """Return the question that the budget asks; delta alone asks for epsilon."""
    if field is None:
        return Question()
    body = table(field.node, "budget")
    body = body._replace(fields=by_name(body.fields))
    for key, inner in body.fields.items():
        if key not in ("epsilon", "delta"):
            raise inner.place.error(f"unknown key {clipped(key)}", "epsilon and delta")
    epsilon = delta = log_delta = None
    if "epsilon" in body.fields:
        epsilon = _number(_followed(body, "epsilon", files), "epsilon", parse_number)
    if "delta" in body.fields:
        delta, log_delta = _number(_followed(body, "delta", files), "delta", parse_delta)
    return Question(epsilon, delta, log_delta)


def _followed(body: Table, key: str, files: Files) -> Setting:
    field = body.fields[key]
    return follow(field.place, field.node, files)


def with_asked(
    ledger: Ledger,
    question: Question,
    *,
    epsilon: str | None = None,
    delta: str | None = None,
    adjacency: str | None = None,
    group_size: str | None = None,
    solve: str | None = None,
    source: Source = Source.FLAG,
) -> tuple[Ledger, Question]:
    """Return a ledger and its question with what is asked instead of what its file says, each as typed.

    Raises:
        SpecError: a value is none.
    """
    place = Place("--adjacency")
    if adjacency is not None:
        word = _adjacency(Field(place, Scalar(place, adjacency)), Files("ledger"))
        ledger = ledger._replace(adjacency=word or ledger.adjacency)
    if group_size is not None:
        ledger = ledger._replace(group_size=parse_integer(group_size))
    if epsilon is not None:
        question = question._replace(epsilon=parse_number(epsilon), source=source)
    if delta is not None:
        value, log_delta = parse_delta(delta)
        question = question._replace(delta=value, log_delta=log_delta, source=source)
    return ledger, question._replace(solve=solve)
