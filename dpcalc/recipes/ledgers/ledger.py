"""Parse ledgers: from their text to entries, every mistake with its place; nothing is evaluated here.

The parts of a ledger: entries, counts, tuning and the budget.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.ledgers.entries import MECHANISM, MOST_ENTRIES, MOST_TIMES
from dpcalc.errors import SpecError
from dpcalc.files.documents import (
    KINDS,
    Field,
    Rules,
    Scalar,
    Table,
    mapping,
    number_text,
    one_of,
    parse_json,
    parse_yaml,
    table,
    word,
)
from dpcalc.files.place import Place, clipped, near
from dpcalc.files.reading import read_document
from dpcalc.model.algorithm import ALGORITHMS, Source
from dpcalc.model.numbers import parse_delta, parse_integer, parse_number
from dpcalc.model.parameter import check
from dpcalc.model.quantities import Adjacency, Given, Quantity
from dpcalc.model.question import Entry, Ledger, Question
from dpcalc.notions.tuning import Law, Tuning, tuning_of
from dpcalc.recipes.reading.matrix import Vocabulary
from dpcalc.recipes.reading.recipe import Entry as Case
from dpcalc.recipes.reading.recipe import Entry as CaseEntry
from dpcalc.recipes.reading.recipe import body_of, refuse_keys
from dpcalc.recipes.reading.reference import Files, Unreadable
from dpcalc.recipes.reading.settings import QUESTION, by_name, follow, read_command, read_settings, suggestion

OWN = ("times", "part", "tuning", "description", "state")
BEGUN = "begun"
"""The state of an entry that was charged and is not known to have been released."""

_TUNING = "write tuning.distribution=geometric tuning.mean=10; in a file, tuning: {distribution: geometric, mean: 10}"
"""The keys of an entry that do not describe a run."""

_RUN = ("algorithm", "command", "from")
"""An entry that describes a run has one of these keys."""

_FIXED = "fixed"  # a public number of runs
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 ._-]{0,99}")
_UNITS = (1e-9, 1e9)  # the range of mu, noise and the like: their products neither overflow nor vanish


def entries_of(body: Table) -> Mapping[str, Field]:
    """Return the entries of a mapping by their names."""
    entries: Table = body.read("entries", mapping, Table(body.place, {}))
    return entries.fields


class Reader:
    """Reads the parts of a ledger, and values from other files of the project.

    Args:
        files: those that the ledger may name.
        stated: the adjacency of its mechanisms.
    """

    def __init__(self, files: Files, stated: Adjacency | None = None) -> None:
        self._files, self._stated = files, stated

    def entry(self, name: str, field: Field) -> Entry:
        """Return an entry.

        Raises:
            SpecError: it is none.
        """
        if not _NAME.fullmatch(name):
            raise field.place.error(
                f"{clipped(name)} is not a name", "use letters, digits, - and _, at most 100 of them"
            )
        body = table(field.node, f"entry {name}")
        own, rest = body.parted(OWN)
        adjacency: Adjacency | None = rest.read("adjacency", adjacency_of)
        times: int = own.read("times", self.whole(MOST_TIMES), 1)
        part = own.read("part", _part, "")
        tuning, runs = own.read("tuning", self._tuning, (None, 1))
        described = any(key in rest.fields for key in _RUN)
        command, given = self._run(name, rest) if described else ("", self._mechanism(name, rest))
        if times * runs > MOST_TIMES:
            raise field.place.error(f"more than {MOST_TIMES} runs", "use fewer")
        stated = adjacency or (None if command else self._stated)
        return Entry(name, command, given, times * runs, part, tuning, stated, own.read("state", _begun, False))

    def entry_or_case(self, name: str, field: Field, earlier: Mapping[str, Sequence[Case]]) -> Entry:
        """Return an entry of a case of a recipe: ``{case: NAME}`` is the run of an earlier case.

        Raises:
            SpecError: it is not an entry, or there is no such case.
        """
        body = table(field.node, f"entry {name}")
        other: str | None = body.read("case", word)
        if other is None:
            return self.entry(name, field)
        reference, (own, rest) = body.fields["case"], body.parted(OWN)
        for key, strange in rest.fields.items():
            if strange is not reference:
                raise strange.place.error(
                    f"entry {name}: {clipped(key)} beside case", f"an entry of a case takes {', '.join(OWN)}"
                )
        cases = earlier.get(other, ())
        if len(cases) != 1:
            what = f"{other} is {len(cases)} cases" if cases else f"there is no earlier case {clipped(other)}"
            hint = "name a case without a matrix" if cases else near(other, earlier)
            raise reference.node.place.error(what, hint)
        (case,) = cases
        if case.unread is not None:
            raise case.unread
        _check_describes(name, case.command, reference.place)
        read = self.entry(name, Field(field.place, Table(body.place, {**typed("mu=1", body.place), **own.fields})))
        given = dict(case.parameters)
        adjacency = given.pop("adjacency", None)
        return read._replace(
            command=case.command, given=given, adjacency=None if adjacency is None else Adjacency(str(adjacency))
        )

    def _run(self, name: str, body: Table) -> tuple[str, Mapping[str, Any]]:
        """Return the command and the parameters of a described run."""
        command = body.read("command", read_command, "compare")
        _check_describes(name, command, body.place)
        vocabulary = Vocabulary(command, self._files)
        given: dict[str, Any] = {}
        for key, setting in read_settings(body, self._files).items():
            if key in QUESTION:
                raise setting.place.error(f"entry {name}: {key} is asked of all entries together", f"leave out {key}")
            if key not in vocabulary.names:
                hint = suggestion(key, (*vocabulary.names, *OWN))
                raise setting.place.error(f"entry {name}: unknown key {clipped(key)}", hint)
            if not setting.null:
                given[key] = vocabulary.value(key, setting)
        given.pop("adjacency", None)
        return command, given

    def _mechanism(self, name: str, body: Table) -> Mapping[str, Any]:
        """Return the numbers of a mechanism, all positive, with delta as its logarithm."""
        fields = by_name(body.fields)
        fields.pop("adjacency", None)
        given: dict[str, Any] = {}
        for key, field in fields.items():
            if key not in MECHANISM:
                hint = f"a mechanism takes {', '.join(MECHANISM)}; a run has algorithm: or command:"
                raise field.place.error(f"entry {name}: unknown key {clipped(key)}", hint)
            if key == Quantity.DELTA:
                given["delta"], given["log_delta"] = self._delta(field, key)
                if not given["log_delta"] < 0.0:
                    hint = "leave out delta where it is 0"
                    raise field.place.error(f"entry {name}: delta must be > 0 and < 1", hint)
                continue
            given[key] = self._number(field, key)
            if not _UNITS[0] <= given[key] <= _UNITS[1]:
                raise field.place.error(f"entry {name}: {key} must be from 1e-9 to 1e9", "write it in other units")
        return given

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _number(self, field: Field, name: str, parse: Callable[[str], Any] = parse_number) -> Any:
        """Return a number; errors do not quote the text of another file."""
        setting = follow(field.place, field.node, self._files)
        if setting.unread is not None:
            raise setting.unread
        try:
            return parse(number_text(setting.node, name))
        except SpecError as error:
            if setting.origin:
                raise setting.place.error(f"{name} is that of {clipped(setting.origin)}, and no such number") from None
            raise setting.place.error(f"{name}: {error.message}", error.hint) from None

    def _delta(self, field: Field, name: str) -> tuple[float, float]:
        """Return delta and its logarithm."""
        delta, log_delta = self._number(field, name, parse_delta)
        return delta, log_delta

    def whole(self, most: int) -> Callable[[Field, str], int]:
        """Return the reader of a count from 1 to ``most``."""

        def read(field: Field, name: str) -> int:
            value = int(self._number(field, name, parse_integer))
            if not 1 <= value <= most:
                raise field.place.error(f"{name} must be a whole number from 1 to {most}")
            return value

        return read

    def budget(self, field: Field, name: str) -> Question:
        """Return the question that the budget asks; delta alone asks for epsilon."""
        body = mapping(field, name)
        body = Table(body.place, by_name(body.fields))
        refuse_keys(body.fields, ("epsilon", "delta"), "epsilon and delta")
        return Question(body.read("epsilon", self._number), *body.read("delta", self._delta, (None, None)))

    def _tuning(self, field: Field, name: str) -> tuple[Tuning | None, int]:
        """Return the law of a secret number of runs, and a fixed number of runs."""
        body = field.node
        if not isinstance(body, Table):
            raise body.place.error(f"{name} is {KINDS[type(body)]}, and has a distribution and a mean", _TUNING)
        refuse_keys(body.fields, ("distribution", "mean", "shape"), "distribution, mean and shape")
        words = (*Law, _FIXED)
        law: str | None = body.read("distribution", one_of(words, lambda typed: near(typed, words)))
        mean, shape = body.fields.get("mean"), body.fields.get("shape")
        if law is None or mean is None:
            raise body.place.error("tuning needs distribution and mean", _TUNING)
        if law == _FIXED and shape is not None:
            raise shape.place.error("shape is of negative-binomial alone", "leave it out")
        if law == _FIXED:
            return None, self.whole(MOST_TIMES)(mean, "mean")
        average, form = self._number(mean, "mean"), body.read("shape", self._number)
        with body.place.blamed():
            return tuning_of(Law(law), average, form), 1


def _check_describes(name: str, command: str, place: Place) -> None:
    """Refuse a command that does not describe a run on records."""
    record = COMMANDS.get(command)
    if record is None or record.trains or record.prices or ALGORITHMS[record.default].chained:
        raise place.error(f"entry {name}: {command} describes no run of records", "use compare, or dp-sgd")


def adjacency_of(field: Field, name: str) -> Adjacency:
    """Return the adjacency that a field states."""
    with field.place.blamed():
        return Adjacency(str(check(name, word(field, name))))


def _begun(field: Field, name: str) -> bool:
    if word(field, name) != BEGUN:
        raise field.place.error(f"{name} can only be {BEGUN}", "leave it out where the release was made")
    return True


def _part(field: Field, name: str) -> str:
    part = word(field, name).strip()
    if not _WORD.fullmatch(part):
        raise field.place.error(f"{name} is not a name", "use letters, digits, blanks, . - and _")
    return part


def typed(line: str, place: Place) -> dict[str, Field]:
    """Parse a line of ``key=value`` pairs into the fields of an entry.

    ``tuning.mean=10`` is inside ``tuning``.

    Raises:
        SpecError: it is not such a line.
    """
    fields: dict[str, Field] = {}
    inside: dict[str, dict[str, Field]] = {"tuning": {}}
    for pair in line.replace(",", " ").split():
        name, mark, value = pair.partition("=")
        if not mark or not name or not value:
            raise SpecError(f"{place}: {clipped(pair)} is not key=value", "for example --add 'epsilon=0.1 times=100'")
        whole = name.replace("-", "_")
        outer, _, inner = whole.partition(".")
        into, key = (inside[outer], inner) if inner and outer in inside else (fields, whole)
        if key in into:
            raise SpecError(f"{place}: {clipped(name)} is given twice", "keep one")
        into[key] = Field(place, Scalar(place, value))
    return fields | {name: Field(place, Table(place, inner)) for name, inner in inside.items() if inner}


VERSION = "ledger/1"
KEYS = ("dpcalc", "description", "adjacency", "group_size", "partition", "budget", "entries")
"""The keys of a ledger."""

_MOST_IN_A_GROUP = 10**6  # the number of records of one person
_KEPT = "kept"  # the only promise beyond the parts of the entries
_SYNTAX = Rules(items=MOST_ENTRIES, anchor_hint="write the entries out", depth_hint="a ledger needs four levels")


def read_ledger(path: str | None, added: Sequence[str] = ()) -> tuple[Ledger, Question]:
    """Read a ledger from a file and added lines; return it and its stated budget.

    Args:
        path: YAML or JSON, ``-`` for standard input; None for the added lines alone.
        added: entries as ``name: value`` pairs, e.g. ``epsilon=0.1 times=100``.

    Raises:
        SpecError: it is not a ledger; the message says where.
    """
    place, files = Place("--add"), Files(path or "ledger")
    body = _body(path, files, place)
    lines = [Field(place, Table(place, typed(line, place))) for line in added]
    return _ledger(body, files, dict(zip(_free_names(body), lines, strict=False)))


def parse_ledger(path: str, raw: bytes, *, empty: bool = False) -> tuple[Ledger, Question]:
    """Parse the text of a ledger file; return the ledger and its stated budget.

    Args:
        path, raw: of the file.
        empty: whether it may have no entries yet.

    Raises:
        SpecError: it is not a ledger; the message says where.
    """
    return _ledger(_parsed(path, raw), Files(path), {}, empty=empty)


def ledger_of(
    entries: Mapping[str, Any] | Sequence[Any], path: str | None = None, partition: str | None = None
) -> tuple[Ledger, Question]:
    """Return the ledger of Python entries and those in a file, with the budget that the file states.

    Args:
        entries: name -> entry, or entries without names; an entry is a mapping as a file has it, or a line such as
            ``epsilon=0.1 times=100``.
        path: YAML or JSON; None for the entries alone.
        partition: ``kept``, as a file has it.

    Raises:
        SpecError: it is not a ledger.
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
    """Yield unused names for entries."""
    return itertools.filterfalse(entries_of(body).__contains__, map("added-{}".format, itertools.count(1)))


def _given(name: str, entry: Any) -> Field:
    """Return a Python entry as it would be written in a file."""
    place = Place(f"entry {name[:60]}")
    if isinstance(entry, str):
        return Field(place, Table(place, typed(entry, place)))
    if not isinstance(entry, Mapping):
        raise SpecError(f"{place} is {type(entry).__name__}", "an entry is a dict or a text such as 'epsilon=0.1'")
    return _field(place, {key: value for key, value in entry.items() if value is not None})


def _field(place: Place, value: Any) -> Field:
    value = value.item() if hasattr(value, "item") else value  # a numpy number
    if isinstance(value, Mapping):
        return Field(place, Table(place, {str(key): _field(place, inner) for key, inner in value.items()}))
    if isinstance(value, bool) or not isinstance(value, (str, int, float, os.PathLike)):
        raise place.error(f"{clipped(repr(value))} is no value of an entry", "a number or a word")
    return Field(place, Scalar(place, repr(value) if isinstance(value, float) else str(value)))


def _ledger(body: Table, files: Files, added: Mapping[str, Field], *, empty: bool = False) -> tuple[Ledger, Question]:
    """Return the ledger of a mapping and added entries, with its budget."""
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
    """Return the common adjacency of all entries; replace-one if they differ or one states none."""
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
        Unreadable: the file is not a ledger; its content is not shown.
        SpecError: the case has no entries, or one is invalid.
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
    """Return the parameters and the question of a case, whose settings override those of its file."""
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
    """Return the mapping in a file; an empty one without a file."""
    return Table(place, {}) if path is None else _parsed(path, read_document(files.recipe, "ledger"))


def _parsed(path: str, raw: bytes) -> Table:
    shown = str(Place(path))
    node = parse_json(shown, raw) if path.endswith(".json") else parse_yaml(shown, raw, _SYNTAX)
    return body_of(node, shown, VERSION)


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
    """Override what a ledger's file says by what is asked, each as typed.

    Raises:
        SpecError: a value is invalid.
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
