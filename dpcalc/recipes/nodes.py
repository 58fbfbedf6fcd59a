"""What a recipe is read into: text with its place, lists and mappings of it. Nothing is resolved or constructed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from dpcalc.errors import SpecError

T = TypeVar("T")


class Place(NamedTuple):
    """Where something stands; line 0 where only the file is known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def error(self, message: str, hint: str | None = None) -> RecipeError:
        """Return the error that says where."""
        return RecipeError(self, message, hint)


class RecipeError(SpecError):
    """Something wrong at a place: ``what`` is the message without it."""

    def __init__(self, place: Place, what: str, hint: str | None = None) -> None:
        super().__init__(f"{place}: {what}", hint)
        self.place, self.what = place, what


class Scalar(NamedTuple):
    """A text; ``plain`` where it was written without quotes."""

    place: Place
    text: str
    plain: bool = True
    tagged: bool = False

    @property
    def null(self) -> bool:
        """Whether this is YAML's null, written out."""
        return self.plain and self.text in ("null", "Null", "NULL", "~")


class Items(NamedTuple):
    """A list."""

    place: Place
    items: tuple[Node, ...]


class Field(NamedTuple):
    """A value of a mapping and the place of its key."""

    place: Place
    node: Node


class Table(NamedTuple):
    """A mapping, in the order written."""

    place: Place
    fields: Mapping[str, Field]


Node = Scalar | Items | Table

KINDS = {Scalar: "a single value", Items: "a list", Table: "a mapping"}
"""What a node is called in messages."""


def clipped(text: str) -> str:
    """Return a text as messages quote it."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def near(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean ...?``, or the list of what is known."""
    known = list(known)
    found = difflib.get_close_matches(word[:60], known, n=1)
    return f"did you mean {found[0]}?" if found else "known here: " + ", ".join(known)


def table(node: Node, what: str) -> Table:
    """Return the node if it is a mapping.

    Raises:
        SpecError: it is not.
    """
    if not isinstance(node, Table):
        raise node.place.error(f"{what} is {KINDS[type(node)]}; it must be a mapping", "write name: value")
    return node


def text(node: Node, what: str) -> str:
    """Return the text of a single value that is not empty.

    Raises:
        SpecError: it is something else.
    """
    if not isinstance(node, Scalar):
        raise node.place.error(f"{what} is {KINDS[type(node)]}; it must be a single value")
    if node.tagged:
        raise node.place.error(f"{what} has a tag; tags are not read", "write the value alone")
    if not node.text.strip():
        raise node.place.error(f"{what} is empty", f"write a value, or leave out {what}")
    return node.text


def items(node: Node) -> tuple[Node, ...]:
    """Return the items of a list, or the one value that stands for a list of one."""
    return node.items if isinstance(node, Items) else (node,)


def repeated(values: Iterable[T]) -> T | None:
    """Return the first value that was there before, or None."""
    seen: set[T] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
