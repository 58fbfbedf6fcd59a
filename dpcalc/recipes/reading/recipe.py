"""Recipes as read: cases with their gates, and the rules that judge them.

Sequences are lazy: their items are made on demand, since there may be too many to hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeVar, overload

from dpcalc.engine.advice.missing import ON_MEAN
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.gate import Gate
from dpcalc.errors import SpecError
from dpcalc.files.documents import Field, Node, Table, table, text
from dpcalc.files.place import FileError, Place, ProjectFile, clipped, near
from dpcalc.model.question import Question
from dpcalc.notes import Note
from dpcalc.recipes.reading.gates import Expected, RecipeGate
from dpcalc.recipes.reading.reference import Unreadable


class Rule(NamedTuple):
    """The demands on a case.

    Attributes:
        place: of the rule in a policy file; None for a built-in rule.
        strict: whether no skip and no unlisted exception is allowed, and every case must be selected.
        certified: whether a number must be proved where a definition exists.
        required: whether a case with such a name must be checked.
        limits: the upper limit of each quantity, whatever the case itself asserts.
        adjacency, commands, kinds: the adjacencies, commands and kinds of bound allowed; None: any.
        records: the largest number that may be claimed; None: any.
        group_size: the least number of records of one person.
        accept: the exceptions that a case may accept; None: any.
        expired: the exceptions whose last day has passed.
        places: of each of these.
    """

    place: Place | None = None
    strict: bool = False
    certified: bool = False
    required: bool = False
    limits: tuple[Gate, ...] = ()
    adjacency: tuple[str, ...] | None = None
    commands: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    records: int | None = None
    group_size: int = 1
    accept: tuple[str, ...] | None = None
    expired: tuple[str, ...] = ()
    places: Mapping[str, Place] = {}

    def at(self, key: str) -> Place | None:
        """Return the place of a demand."""
        return self.places.get(key, self.place)


class Policy(NamedTuple):
    """The rules of a check.

    Attributes:
        place: of the rules in a file; None without a file.
        rules: pattern of names -> rule; the first that matches counts, and a case that matches none fails.
        strict: whether every rule is strict.
        source: text from which another process reads the same rules (`dpcalc.recipes.judging.policy.again`).
    """

    place: Place | None = None
    rules: Mapping[str, Rule] = {}
    strict: bool = False
    source: str = "false"

    def pattern_of(self, group: str) -> str | None:
        """Return the first pattern that matches a name under ``cases:``."""
        return next((pattern for pattern in self.rules if fnmatchcase(group, pattern)), None)

    def rule_of(self, group: str) -> Rule:
        """Return the rule for a name under ``cases:``."""
        pattern = self.pattern_of(group)
        rule = Rule(self.place, strict=self.place is not None) if pattern is None else self.rules[pattern]
        if not self.strict:
            return rule
        accept = (ON_MEAN,) if rule.accept is None else rule.accept  # naming the noise is no exception
        return rule._replace(strict=True, certified=True, accept=accept)


LENIENT = Policy()


_MOST_LOOKED_AT = 10_000  # cases: later ones name the same files, or the schedules of a matrix


class Entry(NamedTuple):
    """A case that can be evaluated.

    Attributes:
        name: in reports; for a case of a matrix with its combination: ``sweep[noise_std=2]``.
        place: in the recipe.
        command: the one that answers it.
        parameters: of the run, as the command takes them.
        question: of the case.
        gates: those of the defaults first.
        expected: the expectations under ``expect:``.
        skip: why it is skipped, if it is.
        notes: which parameters were read from other files.
        timeout: in seconds.
        unread: why there is nothing to evaluate, if a file that the case refers to is invalid.
        accept: the exceptions that it accepts by name.
        rule: the demands on it.
    """

    name: str
    place: Place
    command: str
    parameters: Mapping[str, Any]
    question: Question
    gates: tuple[RecipeGate, ...] = ()
    expected: Expected | None = None
    skip: str | None = None
    notes: tuple[Note, ...] = ()
    timeout: float | None = None
    unread: Unreadable | None = None
    accept: tuple[str, ...] = ()
    rule: Rule = Rule()

    @property
    def trains(self) -> bool:
        """Whether its command executes the run."""
        return trains(self.command)

    @property
    def group(self) -> str:
        """The name under ``cases:``, without the combination of a matrix."""
        return group_of(self.name)


def trains(command: str) -> bool:
    """Return whether a command executes the run."""
    return command in COMMANDS and COMMANDS[command].trains


class Cases(Mapping[str, Entry]):
    """The cases of a recipe by name, if there are too many to hold: each is made on demand.

    Args:
        groups: the cases that each case of the text stands for.
    """

    def __init__(self, groups: Mapping[str, Sequence[Entry]]) -> None:
        self._groups, self._count = groups, sum(map(len, groups.values()))
        self._places: dict[str, int] = {}  # places of the few cases that comparisons name

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return (entry.name for group in self._groups.values() for entry in group)

    def __getitem__(self, name: str) -> Entry:
        group = self._groups[group_of(name)]
        if name not in self._places:
            self._places[name] = next((n for n, entry in enumerate(group) if entry.name == name), -1)
        if self._places[name] < 0:
            raise KeyError(name)
        return group[self._places[name]]


class Recipe(NamedTuple):
    """A recipe's cases by name, and the cases that each case of the text stands for.

    Attributes:
        file: as messages show it.
        entries: the cases by name.
        policy: the rules for its cases.
        made: the cases that each case of the text stands for.
        documents: the bytes of the files read for it, including itself, by name.
        path: of the file, as given.
    """

    file: str
    entries: Mapping[str, Entry]
    policy: Policy = LENIENT
    made: Mapping[str, Sequence[Entry]] = {}
    documents: Mapping[str, bytes] = {}
    path: str = ""

    def every(self) -> Iterator[Entry]:
        """Yield the cases in their order."""
        return (entry for group in self.made.values() for entry in group)

    def named(self, name: str) -> Entry:
        """Return the case that a comparison names: by its full name, or the only case of a group."""
        if name in self.entries:
            return self.entries[name]
        return self.made[name][0] if name in self.made else self.entries[group_of(name)]


def files_of(recipe: Recipe) -> Iterator[str]:
    """Yield the files that a recipe reads, including itself; for a large one those of its first cases."""
    yield from recipe.documents
    for entry in itertools.islice(recipe.every(), _MOST_LOOKED_AT):
        yield from (value for value in entry.parameters.values() if isinstance(value, ProjectFile))


def group_of(name: str) -> str:
    """Return the name under ``cases:`` of a case, without the combination of a matrix."""
    return name.partition("[")[0]


class Malformed(SpecError):
    """The ``errors`` of recipes, each with its place."""

    def __init__(self, errors: Iterable[FileError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors[0].message, self.errors[0].hint)


_READERS = {
    "recipe": "a recipe is run with `dpcalc check`",
    "ledger": "a ledger is added up with `dpcalc ledger`",
    "policy": "a policy is given to `dpcalc check RECIPE --policy`",
}
"""The hint on what reads a file of another kind."""


def body_of(node: Node | None, shown: str, version: str) -> Table:
    """Return the mapping in a document, after a check of its version.

    Args:
        node: the parsed document; None if it is empty.
        shown: the name of the file.
        version: ``kind/number``.

    Raises:
        SpecError: it has another version, or none.
    """
    kind, start = version.partition("/")[0], f"start with dpcalc: {version}"
    if node is None:
        raise Place(shown).error("is empty", f"a {kind} starts with dpcalc: {version}")
    body = table(node, f"the {kind}")
    field = body.fields.get("dpcalc")
    if field is None:
        raise body.place.error(f"this is not a {kind}: the version is missing", start)
    written = text(field.node, "dpcalc")
    if written != version:
        other = written.partition("/")[0]
        hint = _READERS.get(other) if other != kind else None
        raise field.node.place.error(f"dpcalc is {clipped(written)}; this release reads {version}", hint)
    return body


def refuse_keys(fields: Mapping[str, Field], names: Iterable[str], hint: str | None = None) -> None:
    """Refuse unknown keys; the hint is the nearest name unless another is given."""
    names = tuple(names)
    for key, field in fields.items():
        if key not in names:
            raise field.place.error(f"unknown key {clipped(key)}", hint or near(key, names))


T = TypeVar("T")


class Lazy(Sequence[T]):
    """A sequence whose items are made on demand.

    Args:
        length: the number of items.
        make: makes the item at a place, from 0 on.
    """

    def __init__(self, length: int, make: Callable[[int], T]) -> None:
        self._length, self._make = length, make

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(self._length))]
        if not 0 <= place < self._length:
            raise IndexError(place)
        return self._make(place)
