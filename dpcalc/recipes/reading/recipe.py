"""A recipe as it is read: cases that can be evaluated, each with its gates.

What recipes, ledgers and policies have in common as documents: a version, and keys that are known.

Sequences whose items are made whenever they are asked for: there may be too many to hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, overload

from dpcalc.errors import SpecError
from dpcalc.files.nodes import Field, Node, Table, table, text
from dpcalc.files.place import FileError, Place, ProjectFile, clipped, near
from dpcalc.model.question import Question
from dpcalc.notes import Note
from dpcalc.recipes.judging.policy import LENIENT, Policy, Rule
from dpcalc.recipes.reading.gates import Expected, RecipeGate
from dpcalc.recipes.reading.reference import Unreadable

_MOST_LOOKED_AT = 10_000  # cases: those beyond name the same files, or the schedules of a matrix


class Entry(NamedTuple):
    """A case that can be evaluated.

    Attributes:
        name: under which it is reported; of a case of a matrix, with what was chosen: ``sweep[noise_std=2]``.
        place: where it stands.
        command: that answers it.
        parameters: of the run, as the command takes them.
        question: what is asked.
        gates: that must hold, those of the defaults first.
        expected: what stands under ``expect:``.
        skip: why it is not evaluated, if it is not.
        notes: which parameters were read from other files.
        timeout: seconds that it may take.
        unread: why there is nothing to evaluate, where a file that the case refers to is not what it must be.
        accept: the exceptions that it accepts by name.
        rule: what is demanded of it.
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
    def group(self) -> str:
        """The name under ``cases:``, without what was chosen from a matrix."""
        return group_of(self.name)


class Cases(Mapping[str, Entry]):
    """The cases of a recipe by name, where there are too many to hold: each is made whenever it is asked for.

    Args:
        groups: the cases that each case of the text stands for.
    """

    def __init__(self, groups: Mapping[str, Sequence[Entry]]) -> None:
        self._groups, self._count = groups, sum(map(len, groups.values()))
        self._places: dict[str, int] = {}  # places of the cases that were asked for: few, which comparisons name

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
        policy: what is demanded of its cases.
        made: the cases that each case of the text stands for.
        documents: the bytes of the files that were read for it, itself among them, by their names.
        path: of the file, as it was given.
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
        """Return the case that a comparison means: one by its full name, or the only one that a text made."""
        if name in self.entries:
            return self.entries[name]
        return self.made[name][0] if name in self.made else self.entries[group_of(name)]


def files_of(recipe: Recipe) -> Iterator[str]:
    """Yield the files that a recipe reads, itself among them; of a large one those of its first cases."""
    yield from recipe.documents
    for entry in itertools.islice(recipe.every(), _MOST_LOOKED_AT):
        yield from (value for value in entry.parameters.values() if isinstance(value, ProjectFile))


def group_of(name: str) -> str:
    """Return the name under ``cases:`` of a case, whose own name may say what was chosen from a matrix."""
    return name.partition("[")[0]


class Malformed(SpecError):
    """What is wrong with recipes: ``errors``, each with its place."""

    def __init__(self, errors: Iterable[FileError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors[0].message, self.errors[0].hint)


def body_of(node: Node | None, shown: str, version: str, elsewhere: Mapping[str, str] | None = None) -> Table:
    """Return the mapping that a document of a version is.

    Args:
        node: what was read; None where there is nothing.
        shown: the name of the file.
        version: ``kind/number``.
        elsewhere: beginning of another version -> the hint on what reads it.

    Raises:
        SpecError: it is of another version, or of none.
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
        hint = next((hint for other, hint in (elsewhere or {}).items() if written.startswith(other)), None)
        raise field.node.place.error(f"dpcalc is {clipped(written)}; this release reads {version}", hint)
    return body


def refuse_keys(fields: Mapping[str, Field], names: Iterable[str], hint: str | None = None) -> None:
    """Refuse keys that are none of some names; the hint is the nearest one, unless another is given."""
    names = tuple(names)
    for key, field in fields.items():
        if key not in names:
            raise field.place.error(f"unknown key {clipped(key)}", hint or near(key, names))


T = TypeVar("T")


class Lazy(Sequence[T]):
    """A sequence.

    Args:
        length: how many items it has.
        make: what makes the item at a place, from 0 on.
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
