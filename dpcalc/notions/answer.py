"""What a notion of privacy answers: a number, and how it was found."""

from __future__ import annotations

from typing import NamedTuple


class Answer(NamedTuple):
    """An epsilon (or ln delta) with the order and conversion that gave it, where there is one.

    ``at_edge`` if the order is an end of the search. ``rounding`` bounds what rounding and tails cut off add to ln
    delta; ``lattice`` bounds what it adds to split losses between lattice points and to count rare ones as infinite.
    """

    value: float
    order: float | None = None
    conversion: str = "exact"
    at_edge: bool = False
    rounding: float = 0.0
    lattice: float = 0.0
