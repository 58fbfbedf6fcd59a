"""Noise that a matrix C correlates, row by row: what a step releases of its exact sum, and the state behind it.

A step releases R = g + W in cells of its grid, with W = Z - K: Z is fresh, and K follows from what was released before
and from exact sums, as C W = Z. A banded C needs the last rows of W, a banded inverse those of Z, and BLT one row for
each geometric sequence. Z counts as it came out, its rounding included, so that R is the rounding of a Gaussian whose
mean is that of C g, whatever was released before. A tree releases the noisy sum of every node that is complete, and
all else is made from these.

K is computed in doubles. Its error is fixed before Z is drawn: it moves the mean of a step, and `Shift` bounds by how
much (docs/method.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import NotApplicable
from dpcalc.model.quantities import Mechanism
from dpcalc.model.strategy import Strategy
from dpcalc.numerics.floats import UNIT, up
from dpcalc.training.run.exact_sums import rounded_cells

Array = NDArray[np.float64]

_MOST_NUMBERS = 1 << 27
"""Numbers of the state: 1 GiB."""
_REACH = 21.0
"""A row of Z, over its standard deviation, with its rounding by a sixteenth: draws beyond 20 are `BEYOND`."""
BEYOND = 8.1e-87
"""A bound on the probability of a normal variable beyond 20."""


class Released(Protocol):
    """What a step makes of its exact sum."""

    def __call__(self, total: Array, noise: Array) -> Array:
        """Return what the step moves along, in cells; both arrays are overwritten.

        Args:
            total: the exact sum in cells of the grid, shape (d,).
            noise: a fresh row of Z in cells, shape (d,).
        """


def released_by(strategy: Strategy, columns: int, draw: Callable[[], Array]) -> Released:
    """Return what releases noisy sums whose noise the matrix correlates.

    Args:
        strategy: the matrix.
        columns: d, numbers in a row.
        draw: returns another fresh row of Z, in cells.

    Raises:
        NotApplicable: the state would be too large.
    """
    if strategy.mechanism == Mechanism.TREE:
        return _Tree(strategy.steps, columns, draw)
    if strategy.mechanism == Mechanism.BLT:
        return _Buffers(*strategy.buffers(), columns)
    _refuse_large(strategy, columns)
    kept = _rows(strategy)
    if strategy.mechanism == Mechanism.BISR:
        return _Ring(-strategy.inverse()[1 : kept + 1], columns, of_inverse=True)
    return _Ring(strategy.column().entries[1 : kept + 1], columns)


def _rows(strategy: Strategy) -> int:
    """Return how many rows a ring keeps."""
    if strategy.mechanism == Mechanism.IDENTITY:
        return 0
    return (strategy.steps if strategy.mechanism == Mechanism.SQRT else min(strategy.bands, strategy.steps)) - 1


def _refuse_large(strategy: Strategy, columns: int) -> None:
    if _rows(strategy) * columns > _MOST_NUMBERS:
        raise NotApplicable(
            f"{strategy.mechanism} keeps {_rows(strategy)} rows of {columns} numbers, which is more than 1 GiB",
            "use --mechanism blt, or fewer --bands", parameters=("mechanism",),
        )  # fmt: skip


class _Ring:
    """The last rows of W, or those of Z where the inverse is banded."""

    def __init__(self, coefficients: Array, columns: int, *, of_inverse: bool = False) -> None:
        """Keep as many rows as there are coefficients: c_1, c_2, ..., or those of the inverse with the other sign."""
        self._kept, self._at, self._of_inverse = np.zeros((len(coefficients), columns)), 0, of_inverse
        self._twice = np.tile(coefficients[::-1], 2)  # c_m, ..., c_1, c_m, ..., c_1: any turn of it is a slice

    def __call__(self, total: Array, noise: Array) -> Array:
        count, at = len(self._kept), self._at
        if not count:
            return rounded_cells(total, noise)
        past = self._twice[count - at : 2 * count - at] @ self._kept
        released = rounded_cells(total - past, noise)
        row = self._kept[at]
        np.subtract(released, total, row)
        if self._of_inverse:
            row += past
        self._at = (at + 1) % count
        return released


class _Buffers:
    """A geometric sum of the rows of W for each term of the column."""

    def __init__(self, ratios: Array, weights: Array, columns: int) -> None:
        self._ratios, self._past = ratios[:, np.newaxis], weights * ratios
        self._sums = np.zeros((len(ratios), columns))

    def __call__(self, total: Array, noise: Array) -> Array:
        released = rounded_cells(total - self._past @ self._sums, noise)
        self._sums *= self._ratios
        self._sums += released - total
        return released


class _Node(NamedTuple):
    """A complete node: its exact sum, and the estimate from its noisy sum and those below it."""

    total: Array
    estimate: Array


class _Tree:
    """The complete nodes that no larger complete node covers, from the smallest on: at most one of each height."""

    def __init__(self, steps: int, columns: int, draw: Callable[[], Array]) -> None:
        self._draw, self._done, self._prefix = draw, 0, np.zeros(columns)
        self._nodes: list[_Node] = []
        self._variances = [1.0]  # of an estimate of each height
        for _ in range(steps.bit_length()):
            self._variances.append(1.0 / (1.0 + 0.5 / self._variances[-1]))

    def __call__(self, total: Array, noise: Array) -> Array:
        node, height, self._done = _Node(total.copy(), rounded_cells(total, noise)), 0, self._done + 1
        while not (self._done >> height) & 1:  # its left neighbour waits
            height += 1
            left = self._nodes.pop()
            whole = left.total + node.total  # exact
            noisy, below = rounded_cells(whole.copy(), self._draw()), left.estimate + node.estimate
            share = self._variances[height]  # of the own noisy sum, by least variance
            node = _Node(whole, share * noisy + (1.0 - share) * below)
        self._nodes.append(node)
        before, self._prefix = self._prefix, np.sum([one.estimate for one in self._nodes], axis=0)
        moved: Array = self._prefix - before
        return moved


def nodes(steps: int) -> int:
    """Return how many nodes of a binary tree are complete after so many steps.

    >>> nodes(7)
    11
    """
    return sum(steps >> height for height in range(steps.bit_length()))


# --- what doubles may move the mean of a step by ----------------------------------------------------------------------


def shift_of(strategy: Strategy, columns: int, longest: float) -> float:
    """Return how far errors of K can move the means of all steps, in units of the noise: see `shifted`.

    But for a probability of ``BEYOND`` for each entry of Z. With u = 2^-53, c the column and m the rows kept, K has an
    error of at most u (m + 8) sum c |W| in every entry: products, their sum in any order, and the rounding of
    W = R - g. Of rows of Z errors come back: they are multiplied by at most the sum of the column. g - K adds u times
    the two, and a column of BLT whose first entry is 1 within 8 u moves g by that. The matrix is that of the
    coefficients as doubles: sensitivities have room for what these differ by from the numbers that they stand for.

    Args:
        strategy: the matrix.
        columns: d, numbers in a row.
        longest: of an exact sum, over the standard deviation of Z.
    """
    if strategy.mechanism in (Mechanism.TREE, Mechanism.IDENTITY):
        return 0.0  # sums of nodes are exact
    if strategy.mechanism == Mechanism.BLT:
        past, error = _of_buffers(strategy)
    else:
        kept, first, inverse = _rows(strategy), strategy.column().entries, np.abs(strategy.inverse())
        if strategy.mechanism == Mechanism.BISR:
            past, grows = _REACH * float(inverse[1:].sum()), float(first.sum())
        else:
            past, grows = _REACH * float(inverse.sum()) * float(first[1 : kept + 1].sum()), 1.0
        error = (kept + 8.0) * past * grows
    entry = 2.0 * UNIT * (error + past)  # twice, for terms of higher order
    return up(math.sqrt(strategy.steps) * (entry * math.sqrt(columns) + 16.0 * UNIT * longest), 64.0)


def _of_buffers(strategy: Strategy) -> tuple[float, float]:
    """Return bounds on K, and on its error in units of roundoff.

    A buffer takes an error of u (2 |B| + 2 |W|) in every step, and forgets by its ratio. The sum of the rows of C^-1 is
    at most 2, as c is log-convex (Kaluza): so is |W| over that of a row of Z.
    """
    ratios, weights = strategy.buffers()
    past, reach = weights * ratios, _REACH * np.abs(strategy.responses()).sum(axis=1)  # of each buffer
    error = 8.0 * reach + (2.0 * reach + 4.0 * _REACH) / (1.0 - ratios)
    return float(past @ reach), float(past @ error)
