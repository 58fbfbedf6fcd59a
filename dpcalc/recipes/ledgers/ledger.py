"""Reading a ledger: its text to its entries, every mistake with its place; nothing is evaluated here."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from dpcalc.engine.ledgers.entries import MOST_ENTRIES
from dpcalc.errors import SpecError
from dpcalc.files.documents import Field, Rules, Scalar, Table, parse_json, parse_yaml, word
from dpcalc.files.place import Place, clipped
from dpcalc.files.reading import document_place, read_document
from dpcalc.model.algorithm import Source
from dpcalc.model.numbers import parse_delta, parse_integer, parse_number
from dpcalc.model.quantities import Adjacency, Given
from dpcalc.model.question import Entry, Ledger, Question
from dpcalc.recipes.ledgers.entries import Reader, adjacency_of, entries_of, typed
from dpcalc.recipes.reading.recipe import Entry as CaseEntry
from dpcalc.recipes.reading.recipe import body_of, refuse_keys
from dpcalc.recipes.reading.reference import Files, Unreadable

VERSION = "ledger/1"
KEYS = ("dpcalc", "description", "adjacency", "group_size", "partition", "budget", "entries")
"""The keys of a ledger."""

_MOST_IN_A_GROUP = 10**6  # records of one person
_KEPT = "kept"  # the only partition that is more than the parts of the entries
_SYNTAX = Rules(items=MOST_ENTRIES, anchor_hint="write the entries out", depth_hint="a ledger needs four levels")


def read_ledger(path: str | None, added: Sequence[str] = ()) -> tuple[Ledger, Question]:
    """Return the ledger in a file and in lines that are added to it, and the budget that it states.

    Args:
        path: YAML or JSON, ``-`` for standard input; None for the added lines alone.
        added: entries as ``name: value`` pairs, e.g. ``epsilon=0.1 times=100``.

    Raises:
        SpecError: it is no ledger; the message says where.
    """
    place, files = Place("--add"), Files(path or "ledger")
    body = _body(path, files, place)
    lines = [Field(place, Table(place, typed(line, place))) for line in added]
    return _ledger(body, files, dict(zip(_free_names(body), lines, strict=False)))


def parse_ledger(path: str, raw: bytes, *, empty: bool = False) -> tuple[Ledger, Question]:
    """Return the ledger that a text is, for a file of this name, and the budget that it states.

    Args:
        path, raw: of the file.
        empty: whether it may have no entries yet.

    Raises:
        SpecError: it is none; the message says where.
    """
    return _ledger(_parsed(path, raw), Files(path), {}, empty=empty)


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
    body = _body(path, files, Place("entries"))
    if partition is not None:
        kept = Field(Place("partition"), Scalar(Place("partition"), str(partition)))
        body = body._replace(fields={**body.fields, "partition": kept})
    if isinstance(entries, Mapping):
        named = {str(name): entry for name, entry in entries.items()}
    else:
        named = dict(zip(_free_names(body), entries, strict=False))
    twice = next((name for name in named if name in entries_of(body)), None)
    if twice is not None:
        raise SpecError(f"entry {clipped(twice)} is given twice", "give it another name")
    return _ledger(body, files, {name: _given(name, entry) for name, entry in named.items()})


def _free_names(body: Table) -> itertools.filterfalse[str]:
    """Return names of entries that a mapping does not have yet."""
    return itertools.filterfalse(entries_of(body).__contains__, map("added-{}".format, itertools.count(1)))


def _given(name: str, entry: Any) -> Field:
    """Return an entry of Python's as it would be written."""
    place = Place(f"entry {name[:60]}")
    if isinstance(entry, str):
        return Field(place, Table(place, typed(entry, place)))
    if not isinstance(entry, Mapping):
        raise SpecError(f"{place} is {type(entry).__name__}", "an entry is a dict or a text such as 'epsilon=0.1'")
    return _field(place, {key: value for key, value in entry.items() if value is not None})


def _field(place: Place, value: Any) -> Field:
    value = value.item() if hasattr(value, "item") else value  # a number of numpy
    if isinstance(value, Mapping):
        return Field(place, Table(place, {str(key): _field(place, inner) for key, inner in value.items()}))
    if isinstance(value, bool) or not isinstance(value, (str, int, float, os.PathLike)):
        raise place.error(f"{clipped(repr(value))} is no value of an entry", "a number or a word")
    return Field(place, Scalar(place, repr(value) if isinstance(value, float) else str(value)))


def _ledger(body: Table, files: Files, added: Mapping[str, Field], *, empty: bool = False) -> tuple[Ledger, Question]:
    """Return the ledger that a mapping describes, with entries that are added to it, and its budget."""
    refuse_keys(body.fields, KEYS)
    written = entries_of(body)
    stated: Adjacency | None = body.read("adjacency", adjacency_of)
    reader, plain = Reader(files, stated), Reader(files)
    entries = [reader.entry(name, field) for name, field in written.items()]
    entries += [plain.entry(name, field) for name, field in added.items()]
    if not entries and not empty:
        raise body.place.error("there are no entries", "write them under entries:, each with a name of its own")
    group_size = body.read("group_size", reader.whole(_MOST_IN_A_GROUP), 1)
    kept = body.read("partition", _kept, False)
    ledger = Ledger(tuple(entries), stated or _common(entries), group_size, kept)
    return ledger, body.read("budget", reader.budget, Question())


def _common(entries: Sequence[Entry]) -> Adjacency:
    """Return the adjacency that all entries state; replace-one where they differ, or one states none."""
    adjacencies = {entry.adjacency for entry in entries} or {None}
    only = adjacencies.pop()
    return Adjacency.REPLACE_ONE if only is None or adjacencies else only


def _kept(field: Field, name: str) -> bool:
    if word(field, name) != _KEPT:
        raise field.place.error(f"{name} can only be {_KEPT}", "a record that replaces another stays in its part")
    return True


def read_ledger_case(body: Table, files: Files, earlier: Mapping[str, Sequence[CaseEntry]]) -> tuple[Ledger, Question]:
    """Return the ledger of a case of a recipe: its ``entries``, those of the ledger that ``file`` names, or both.

    An entry ``{case: NAME}`` is the run of an earlier case.

    Raises:
        Unreadable: the file is no ledger; what it holds is not shown.
        SpecError: the case has no entries, or one is none.
    """
    of_file: tuple[Ledger, Question] | None = body.read("file", partial(_of_file, files))
    ledger, budget = of_file or (Ledger(()), Question())
    own = entries_of(body)
    reader = Reader(files, body.read("adjacency", adjacency_of) if own else None)
    names, entries = {entry.name for entry in ledger.entries}, list(ledger.entries)
    for name, field in own.items():
        if name in names:
            raise field.place.error(f"entry {clipped(name)} is in the file as well", "give it another name")
        entries.append(reader.entry_or_case(name, field, earlier))
    if not entries:
        raise body.place.error("the ledger has no entries", "write entries: {name: {mu: 1}}, or file: ledger.yaml")
    return ledger._replace(
        entries=tuple(entries),
        adjacency=_common(entries) if of_file is None else ledger.adjacency,
        kept=body.read("partition", _kept, ledger.kept),
    ), budget  # fmt: skip


def _of_file(files: Files, field: Field, key: str) -> tuple[Ledger, Question]:
    place, name = field.place, word(field, key)
    path = files.path(name, place)
    try:
        return read_ledger(path)
    except SpecError:
        raise Unreadable(
            place, f"{clipped(name)} is no ledger that can be read", "`dpcalc ledger FILE` says what is wrong with it"
        ) from None


def of_ledger(
    ledger: Ledger, budget: Question, parameters: Given, question: Question
) -> tuple[dict[str, Any], Question]:
    """Return the parameters and the question of a case: what it sets stands in place of what its file states."""
    if (adjacency := parameters.get("adjacency")) is not None:
        ledger = ledger._replace(adjacency=Adjacency(str(adjacency)))
    if (group_size := parameters.get("group_size")) is not None:
        ledger = ledger._replace(group_size=int(group_size))
    if question.epsilon is None:
        question = question._replace(epsilon=budget.epsilon)
    if question.log_delta is None:
        question = question._replace(delta=budget.delta, log_delta=budget.log_delta)
    return {"ledger": ledger}, question


def _body(path: str | None, files: Files, place: Place) -> Table:
    """Return the mapping in a file; an empty one where there is no file."""
    return Table(place, {}) if path is None else _parsed(path, read_document(files.recipe, "ledger"))


def _parsed(path: str, raw: bytes) -> Table:
    shown = str(document_place(path))
    node = parse_json(shown, raw) if path.endswith(".json") else parse_yaml(shown, raw, _SYNTAX)
    return body_of(node, shown, VERSION, {"recipe": "a recipe is run with `dpcalc check`"})


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
        ledger = ledger._replace(adjacency=adjacency_of(Field(place, Scalar(place, adjacency)), "adjacency"))
    if group_size is not None:
        ledger = ledger._replace(group_size=parse_integer(group_size))
    if epsilon is not None:
        question = question._replace(epsilon=parse_number(epsilon), source=source)
    if delta is not None:
        value, log_delta = parse_delta(delta)
        question = question._replace(delta=value, log_delta=log_delta, source=source)
    return ledger, question._replace(solve=solve)
