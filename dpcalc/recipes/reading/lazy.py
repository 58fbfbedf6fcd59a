"""Sequences whose items are made whenever they are asked for: there may be too many to hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

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
