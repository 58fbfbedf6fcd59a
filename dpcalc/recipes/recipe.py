"""A recipe as it is read: cases that can be evaluated, each with its gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dpcalc.engine.question import Question
from dpcalc.errors import SpecError
from dpcalc.files.place import FileError, Place
from dpcalc.notes import Note
from dpcalc.recipes.expected import Expected
from dpcalc.recipes.gates import RecipeGate
from dpcalc.recipes.reference import Unreadable


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
        strict: whether it is checked strictly.
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
    strict: bool = False

    @property
    def group(self) -> str:
        """The name under ``cases:``, without what was chosen from a matrix."""
        return group_of(self.name)


class Recipe(NamedTuple):
    """A recipe's cases by name, and the names that each case of the text was expanded to."""

    file: str
    entries: Mapping[str, Entry]
    groups: Mapping[str, tuple[str, ...]]
    strict: bool = False

    def named(self, name: str) -> Entry:
        """Return the case that a comparison means: one by its full name, or the only one that a text made."""
        if name in self.entries:
            return self.entries[name]
        return self.entries[self.groups[name][0] if name in self.groups else group_of(name)]

    def matrix_of(self, entry: Entry) -> Iterator[Entry]:
        """Yield the cases of the matrix that a case is from."""
        return (self.entries[name] for name in self.groups[entry.group])


def group_of(name: str) -> str:
    """Return the name under ``cases:`` of a case, whose own name may say what was chosen from a matrix."""
    return name.partition("[")[0]


class Malformed(SpecError):
    """What is wrong with recipes: ``errors``, each with its place."""

    def __init__(self, errors: Iterable[FileError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors[0].message, self.errors[0].hint)
