"""Sums of gradients without rounding errors, and noise rounded to a grid: what is released tells no low-order bits.

The features are cut once, and the slopes in every step, to multiples of powers of two. Every product of the two, and
every sum of such products, is then a number that doubles hold: the sum over a batch is exact in any order, by any
library. The iterate is cut for the scores in the same way, so that a record's score depends on the iterate and on that
record alone, wherever the record stands. Noise is added to the part of the sum between two points of a grid, and the
outcome is rounded to the grid: a step's noisy sum is the exact rounding of a sum of reals, but for a probability that
`dpcalc.training.run.rounding` bounds. Every iterate is a function of released sums: their errors do not accumulate.

All units are public: they follow from the size of a batch, from the bounds on features and gradients, and from the
scale of the noise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files.arrays import new_table
from dpcalc.training.data.bounds import blocks, lengths
from dpcalc.training.run.checks import lipschitz_of
from dpcalc.training.run.kernel import Move, Singly, descents
from dpcalc.training.run.orders import Stretch
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Piece = tuple[Array, Array, Array]
"""Cut features, labels, and how steep losses may be."""

_UNIT = 2.0**-53
_BITS = 52  # of a sum of products; one more is a double's
_MOST_BITS = 20  # kept of features and slopes
_LEAST = 1e-290
_SHORTEST = 1e-140  # of bounds: their squares are normal doubles
_LEAST_EXPONENT = -900  # of iterates that scores tell from 0
_SQUARES = 1e-290, 1e300  # sums of squares that are right but for rounding
_ROOM = 2.0**-40  # by which gradients stay below their bound: more than the rounding of a norm
_ENTRIES, _CAPPED_ENTRIES = 1 << 15, 1 << 20  # of weights times records, taken at once


def grid_of(scale: float) -> float:
    """Return the largest power of two g with scale/g >= 8: then scale/g < 16.

    >>> grid_of(1.0), grid_of(0.9)
    (0.125, 0.0625)
    """
    return math.ldexp(1.0, math.frexp(scale)[1] - 4)


def bits_kept(size: int) -> int:
    """Return k, the bits kept of features and of slopes, for sums over so many records: size <= 2^(52 - 2k)."""
    return min(_MOST_BITS, (_BITS - (size - 1).bit_length()) // 2)


def cut(values: Array, unit: float, out: Array | None = None) -> Array:
    """Return values cut towards 0 to multiples of a unit, a power of two from 2^-1000 to 2^1000."""
    parts: Array = np.multiply(values, 1.0 / unit, out=out)
    np.trunc(parts, out=parts)
    parts *= unit
    return parts


def rounded(values: Array, grid: float) -> Array:
    """Return values rounded to multiples of a power of two; none is -0."""
    nearest: Array = values / grid
    np.rint(nearest, out=nearest)
    nearest *= grid
    nearest += 0.0
    return nearest


def rounded_sum(total: Array, noise: Array, scale: float) -> Array:
    """Return total + scale noise, rounded to the grid of the scale: only the noise within a cell is rounded twice.

    Args:
        total: shape (d,), multiples of a power of two that doubles hold.
        noise: shape (d,), of scale 1.
        scale: s > 0.
    """
    grid = grid_of(scale)
    return rounded_cells(total / grid, scale * noise / grid) * grid


def rounded_cells(total: Array, noise: Array) -> Array:
    """As `rounded_sum`, where the noise has its scale and all is in cells of the grid; both arrays are overwritten."""
    cells: Array = np.rint(total)
    np.subtract(total, cells, total)  # exact
    np.add(total, noise, noise)
    np.rint(noise, noise)
    np.add(cells, noise, cells)
    cells += 0.0  # no -0
    return cells


def cut_iterate(w: Array, kept: int, inner: float = 1.0) -> Array:
    """Return w cut so that its scores are sums of numbers that doubles hold: to some 32 bits.

    Args:
        w: shape (d,).
        kept: bits that are kept of features.
        inner: a power of two, which the outcome is multiplied by: so are the scores.
    """
    square = float(np.dot(w, w))
    usual = _SQUARES[0] <= square <= _SQUARES[1]  # and no nan
    length = math.sqrt(square) if usual else float(lengths(w[np.newaxis], 2)[0])
    exponent = max(_LEAST_EXPONENT, math.frexp(length)[1] + 1)
    unit = math.ldexp(1.0, exponent + kept - _BITS)
    parts = np.multiply(w, 1.0 / unit)
    np.trunc(parts, parts)
    np.multiply(parts, unit * inner, parts)
    return parts


class ExactSums:
    """The sums of minus the clipped gradients of a problem's records, without the regulariser.

    Each gradient has a norm of at most ``bound``, whatever rounding does to its slope: the slope is cut off there. Of
    several classes a slope is a vector and a gradient a matrix, whose norm is that of all its entries.
    """

    def __init__(self, problem: Problem, bound: float, size: int, norm: int = 2, capped: bool = False) -> None:
        """Cut the features.

        Args:
            problem: features of norm at most ``feature_bound``, and the loss.
            bound: L > 0, on the norm of a record's gradient.
            size: of the largest batch.
            norm: of features and gradients, 1 or 2.
            capped: whether slopes of several classes are those of a capped softmax.

        Raises:
            SpecError: the bounds, or the units, are out of the range of doubles.
        """
        self.problem, loss, (self.count, columns) = problem, problem.loss, problem.shape
        kept, longest = bits_kept(size), loss.feature_bound
        if not min(longest, bound / longest) >= _SHORTEST:
            raise _too_short(bound)
        self.unit = math.ldexp(1.0, exponent_of(longest) - kept)
        self.slope_unit = math.ldexp(1.0, exponent_of(bound / longest) - kept)
        self.kept, self.limit = kept, size * bound
        if not min(self.unit, self.slope_unit, self.unit * self.slope_unit) >= _LEAST:
            raise _too_short(bound)
        self.norm, self.capped, self.released = norm, capped, rounded_cells
        self.most = bound * (1.0 - max(_ROOM, 4.0 * (columns + loss.scores + 8) * _UNIT))
        self.scaled = None if loss.classified else loss.scaled_descent()
        self.slope = None if loss.classified else loss.scalar_descent()
        self.rows = max(1, (_CAPPED_ENTRIES if capped else _ENTRIES) // columns)  # taken at once
        self.labels, self.features = problem.labels, new_table("what is cut of the features", *problem.features.shape)
        self.steepest = new_table("the slopes of the records", self.count, 1)[:, 0]
        for some in blocks(*problem.features.shape):
            self.steepest[some] = self._steepest(cut(problem.features[some], self.unit, out=self.features[some]))

    @classmethod
    def of(cls, plan: Plan, problem: Problem) -> ExactSums:
        """Return the sums of a plan whose every step has noise.

        Raises:
            SpecError: the noise is too small, or the bounds on the data are.
        """
        sums = cls(problem, lipschitz_of(plan, problem.loss), plan.largest_sum, plan.norm, plan.capped)
        sums.check_scale(float(np.min(plan.scale)) * min(batch.divisor for batch in plan.batches))
        return sums

    def moves(self, stretch: Stretch, eta: Array, scale: Array, noise: Array) -> Iterator[Move]:
        """Yield what every step of a stretch adds to the iterate, as `dpcalc.training.run.kernel.PlainSums.moves`.

        A noisy sum is rounded to its grid, and all else is computed from that.
        """
        grids, factors = self._in_cells(stretch, eta, scale, noise)
        steps = self.of_steps(stretch.rows, stretch.steps)
        given = zip(steps, grids.tolist(), noise, factors.tolist(), strict=True)
        for descent, grid, drawn, factor in given:
            yield functools.partial(self._rounded_move, descent, grid, drawn, factor)

    def singly(self, stretch: Stretch, eta: Array, scale: Array, noise: Array) -> Singly:
        """Return the steps of a stretch on single records, as `dpcalc.training.run.kernel.PlainSums.singly`.

        A sum of one gradient is exact, and its score need not be: the same record at the same iterate has the same.
        """
        assert stretch.rows is not None
        rows = stretch.rows[:, 0]
        grids, factors = self._in_cells(stretch, eta, scale, noise)
        assert self.slope is not None
        y, slope = self.labels[rows], self.problem.weighed_slope(self.slope)
        caps = self.problem.weighed(self.steepest[rows] * self.slope_unit, y)
        return Singly(
            self.features[rows], y, caps, noise, self.slope_unit / grids, factors, slope, self.slope_unit,
            self.released,
        )  # fmt: skip

    def _in_cells(self, stretch: Stretch, eta: Array, scale: Array, noise: Array) -> tuple[Array, Array]:
        """Return the grids of steps, and the factors of their sums in cells of it; the noise is brought into cells."""
        scale = scale * stretch.divisor
        grids = np.array([grid_of(deviation) for deviation in scale.tolist()])
        noise *= (-scale / grids)[:, np.newaxis]
        return grids, eta / stretch.divisor * grids

    def _rounded_move(self, descent: Move, grid: float, noise: Array, factor: float, w: Array) -> Array:
        """Return factor times the noisy sum in cells of the grid."""
        cells = self.released(descent(w) / grid, noise)
        cells *= factor
        return cells

    def _steepest(self, x: Array) -> Array:
        """Return how steep the loss of every record may be in its score, in units of slopes.

        Features are cut: their squares are multiples of a power of two, whose sum is exact.
        """
        size_of = lengths(x, self.norm)
        steepest = self.slope_unit * 2.0**_BITS
        caps: Array = np.minimum(self.most / np.maximum(size_of, self.most / steepest), steepest)
        caps /= self.slope_unit
        return caps

    def check_scale(self, scale: float) -> None:
        """Refuse noise on the sum that is too small for its grid.

        Raises:
            SpecError: a sum has 2^52 cells or more.
        """
        if not self.limit / grid_of(scale) < 2.0**_BITS:
            raise SpecError(
                f"noise of scale {scale:g} on a sum up to {self.limit:g} is lost in rounding", "use more noise"
            )

    def descent(self, w: Array, rows: Index | None) -> Array:
        """Return the sum over the records of these rows (None: all), shape (d,) or (d K,), exactly."""
        return next(self.of_steps(None if rows is None else rows[np.newaxis], 1))(w)

    def of_steps(self, rows: Index | None, steps: int) -> Iterator[Move]:
        """Yield for every step what makes its sum of its iterate: each is asked before the next one is yielded.

        Sums are exact, so that it does not matter in which pieces records are added.

        Args:
            rows: shape (steps, size); None where every step uses all records.
            steps: how many.
        """
        size = self.count if rows is None else rows.shape[1]
        if rows is None or 2 * size > self.rows or not size:
            for k in range(steps):
                yield functools.partial(self._sum, self._pieces(None if rows is None else rows[k], self.rows))
            return
        # The records of several small steps are gathered together.
        for x, y, steepest in self._pieces(rows.reshape(-1), self.rows // size * size):
            for first in range(0, len(y), size):
                of = slice(first, first + size)
                yield functools.partial(self._sum, [(x[of], y[of], steepest[of])])

    def _pieces(self, rows: Index | None, most: int) -> Iterator[Piece]:
        """Yield the records of these rows, at most so many at a time; the next piece overwrites the one before."""
        count = self.count if rows is None else len(rows)
        room = np.empty((0 if rows is None else min(most, count), self.features.shape[1]))
        for first in range(0, count, most):
            some = slice(first, min(first + most, count))
            if rows is None:
                yield self.features[some], self.labels[some], self.steepest[some]
                continue
            chosen, x = rows[some], room[: some.stop - first]
            self.features.take(chosen, axis=0, out=x, mode="clip")  # indices are within, and need no check
            yield x, self.labels[chosen], self.steepest[chosen]

    def _sum(self, pieces: Iterable[Piece], w: Array) -> Array:
        """Return the sum over records that are cut."""
        w = cut_iterate(w, self.kept, 1.0 if self.scaled is None else self.scaled.inner)
        total = np.zeros(len(w))
        for piece in pieces:
            total += self._of(*piece, w)
        return total

    def _of(self, x: Array, y: Array, steepest: Array, w: Array) -> Array:
        """Return the sum over some records.

        A slope that is no number is taken for the steepest; of several classes it is taken for 0.
        """
        total: Array
        if self.scaled is None:
            several = descents(x @ w.reshape(x.shape[1], -1), y, steepest * self.slope_unit, capped=self.capped)
            total = (cut(self.problem.weighed(several, y), self.slope_unit) @ x).T.reshape(-1)
            return total
        slopes: Array = np.dot(x, w)
        self.scaled.overwrite(slopes, y)
        np.multiply(slopes, self.scaled.outer / self.slope_unit, slopes)
        np.fmin(slopes, steepest, slopes)
        np.fmax(slopes, -steepest, slopes)
        np.trunc(self.problem.weighed(slopes, y), slopes)
        total = np.dot(slopes, x)
        np.multiply(total, self.slope_unit, total)  # exact
        return total


def _too_short(bound: float) -> SpecError:
    return SpecError(f"gradients of at most {bound:g} are too short for sums without rounding", "use other units")


def exponent_of(value: float) -> int:
    """Return the least e with 2^e >= value > 0."""
    fraction, exponent = math.frexp(value)
    return exponent - (fraction == 0.5)
