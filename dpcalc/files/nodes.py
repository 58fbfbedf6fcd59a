"""What a document is read into: texts with their places, and lists and mappings of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from dpcalc.files.place import Place

T = TypeVar("T")


_NULLS = ("null", "Null", "NULL", "~")


class Scalar(NamedTuple):
    """A text; ``plain`` where it was written without quotes."""

    place: Place
    text: str
    plain: bool = True
    tagged: bool = False

    @property
    def null(self) -> bool:
        """Whether this is YAML's null, written out."""
        return self.plain and self.text in _NULLS


class Items(NamedTuple):
    """A list."""

    place: Place
    items: tuple[Node, ...]


class Field(NamedTuple):
    """A value of a mapping and the place of its key; ``merges`` where the key is YAML's ``<<``, without quotes."""

    place: Place
    node: Node
    merges: bool = False


class Table(NamedTuple):
    """A mapping, in the order written."""

    place: Place
    fields: Mapping[str, Field]


Node = Scalar | Items | Table

KINDS = {Scalar: "a single value", Items: "a list", Table: "a mapping"}
"""What a node is called in messages."""


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
