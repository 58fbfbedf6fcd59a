"""Noise correlated by a matrix C, row by row: the released sum of a step, and the state behind it.

With g the exact sum, a step releases R = g + W in units of its grid, with W = Z - K. Z is fresh noise, and K follows
from earlier released and exact sums by C W = Z. A banded C needs the last rows of W, a banded inverse those of Z, and
BLT one row for each geometric sequence. Z includes its rounding, so given the past R is the rounding of a Gaussian, as
in a release of C g + Z. A tree releases the noisy sum of every complete node, and everything else is computed from
these sums.

K is computed in doubles. Its error is fixed before Z is drawn, so it only moves the mean of a step; `shift_of` bounds
by how much (docs/method.md).
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
"""A bound on entries of Z over their standard deviation, rounding of a sixteenth included; `BEYOND` covers draws beyond
20."""
BEYOND = 8.1e-87
"""A bound on the probability of a normal variable beyond 20."""


class Released(Protocol):
    """A function from a step's exact sum to its noisy sum."""

    def __call__(self, total: Array, noise: Array) -> Array:
        """Return the noisy sum in units of the grid; both arrays are overwritten.

        Args:
            total: the exact sum in units of the grid, shape (d,).
            noise: a fresh row of Z in the same units, shape (d,).
        """


def released_by(strategy: Strategy, columns: int, draw: Callable[[], Array]) -> Released:
    """Return the function that releases noisy sums with noise correlated by the matrix.

    Args:
        strategy: the matrix.
        columns: d, numbers in a row.
        draw: returns another fresh row of Z, in units of the grid.

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
    """Return the number of rows that a ring keeps."""
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
    """The last rows of W, or those of Z if the inverse is banded."""

    def __init__(self, coefficients: Array, columns: int, *, of_inverse: bool = False) -> None:
        """Keep one row for each coefficient: c_1, c_2, ..., or minus those of the inverse."""
        self._kept, self._at, self._of_inverse = np.zeros((len(coefficients), columns)), 0, of_inverse
        self._twice = np.tile(coefficients[::-1], 2)  # c_m, ..., c_1, c_m, ..., c_1: every rotation is a slice

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
    """The complete nodes that no larger complete node covers, at most one of each height, the largest first."""

    def __init__(self, steps: int, columns: int, draw: Callable[[], Array]) -> None:
        self._draw, self._done, self._prefix = draw, 0, np.zeros(columns)
        self._nodes: list[_Node] = []
        self._variances = [1.0]  # of an estimate of each height
        for _ in range(steps.bit_length()):
            self._variances.append(1.0 / (1.0 + 0.5 / self._variances[-1]))

    def __call__(self, total: Array, noise: Array) -> Array:
        node, height, self._done = _Node(total.copy(), rounded_cells(total, noise)), 0, self._done + 1
        while not (self._done >> height) & 1:  # the node is a right child, and completes its parent
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
    """Return the number of complete nodes of a binary tree after this number of steps.

    >>> nodes(7)
    11
    """
    return sum(steps >> height for height in range(steps.bit_length()))


# --- rounding errors of the correlated part ---------------------------------------------------------------------------


def shift_of(strategy: Strategy, columns: int, longest: float) -> float:
    """Return a bound on how far errors of K move the means of all steps, in units of the noise: nu of `shifted`.

    It holds except with a probability of ``BEYOND`` for each entry of Z. With u = 2^-53, c the column and m the rows
    kept, every entry of K has an error of at most u (m + 8) sum c |W|: from products, their sum in any order, and the
    rounding of W = R - g. With rows of Z errors feed back, multiplied by at most the sum of the column. g - K adds u
    times both terms, and a column of BLT whose first entry is 1 within 8 u moves g by that. The matrix has the
    coefficients as doubles; sensitivities allow for their difference from the exact numbers.

    Args:
        strategy: the matrix.
        columns: d, numbers in a row.
        longest: the largest norm of an exact sum, over the standard deviation of Z.
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

    A buffer B gets an error of u (2 |B| + 2 |W|) in every step, and shrinks by its ratio. The absolute row sums of C^-1
    are at most 2, since c is log-convex (Kaluza), so |W| is at most twice the bound on Z.
    """
    ratios, weights = strategy.buffers()
    past, reach = weights * ratios, _REACH * np.abs(strategy.responses()).sum(axis=1)  # of each buffer
    error = 8.0 * reach + (2.0 * reach + 4.0 * _REACH) / (1.0 - ratios)
    return float(past @ reach), float(past @ error)
