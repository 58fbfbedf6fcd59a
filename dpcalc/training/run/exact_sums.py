"""Exact sums of gradients, with noise and rounding to a grid, so that low-order bits reveal nothing.

Features are truncated once, and slopes in every step, to multiples of powers of two. Doubles then represent every
product of the two, and every sum of such products: the sum over a batch is exact in any order, by any library. For the
scores, the iterate is truncated in the same way, so a record's score depends on the iterate and on that record alone,
not on its place. Noise is added to the remainder of the sum modulo the grid, and the result is rounded to the grid: a
step's noisy sum is the exact rounding of a sum of reals, except with a probability that `dpcalc.training.run.rounding`
bounds. Every iterate is a function of released sums, so errors do not accumulate.

All units are public: they follow from the size of a batch, the bounds on features and gradients, and the scale of the
noise.
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
"""Truncated features, labels, and the largest slopes."""

_UNIT = 2.0**-53
_BITS = 52  # of a sum of products, one less than a double has
_MOST_BITS = 20  # kept of features and slopes
_LEAST = 1e-290
_SHORTEST = 1e-140  # of bounds: their squares are normal doubles
_LEAST_EXPONENT = -900  # iterates below 2^-900 give scores of 0
_SQUARES = 1e-290, 1e300  # in this range, sums of squares neither over- nor underflow
_ROOM = 2.0**-40  # relative room below the bound on gradients: more than the rounding error of a norm
_ENTRIES, _CAPPED_ENTRIES = 1 << 15, 1 << 20  # weights times records of a block


def grid_of(scale: float) -> float:
    """Return the largest power of two g with scale/g >= 8: then scale/g < 16.

    >>> grid_of(1.0), grid_of(0.9)
    (0.125, 0.0625)
    """
    return math.ldexp(1.0, math.frexp(scale)[1] - 4)


def bits_kept(size: int) -> int:
    """Return k, the bits kept of features and of slopes, for sums over ``size`` <= 2^(52 - 2k) records."""
    return min(_MOST_BITS, (_BITS - (size - 1).bit_length()) // 2)


def cut(values: Array, unit: float, out: Array | None = None) -> Array:
    """Return values truncated towards 0 to multiples of a unit, a power of two from 2^-1000 to 2^1000."""
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
    """Return total + scale noise, rounded to the grid of the scale, with a floating-point error in the noise alone.

    Args:
        total: shape (d,), multiples of a power of two that doubles represent exactly.
        noise: shape (d,), of scale 1.
        scale: s > 0.
    """
    grid = grid_of(scale)
    return rounded_cells(total / grid, scale * noise / grid) * grid


def rounded_cells(total: Array, noise: Array) -> Array:
    """As `rounded_sum`, with scaled noise and everything in units of the grid; both arrays are overwritten."""
    cells: Array = np.rint(total)
    np.subtract(total, cells, total)  # exact
    np.add(total, noise, noise)
    np.rint(noise, noise)
    np.add(cells, noise, cells)
    cells += 0.0  # no -0
    return cells


def cut_iterate(w: Array, kept: int, inner: float = 1.0) -> Array:
    """Return w truncated to about 32 bits, so that scores are exact sums.

    Args:
        w: shape (d,).
        kept: bits kept of features.
        inner: a power of two; the result, and thus the scores, are multiplied by it.
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

    Each gradient has a norm of at most ``bound``, whatever the rounding of its slope, since the slope is clipped. With
    several classes a slope is a vector and a gradient a matrix, with the Frobenius norm.
    """

    def __init__(self, problem: Problem, bound: float, size: int, norm: int = 2, capped: bool = False) -> None:
        """Truncate the features.

        Args:
            problem: features of norm at most ``feature_bound``, and the loss.
            bound: L > 0, on the norm of a record's gradient.
            size: of the largest batch.
            norm: of features and gradients, 1 or 2.
            capped: whether slopes of several classes are those of a capped softmax.

        Raises:
            SpecError: the bounds, or the units, are outside the range of doubles.
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
        self.rows = max(1, (_CAPPED_ENTRIES if capped else _ENTRIES) // columns)  # of a block
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
        """Yield the moves of a stretch, as `dpcalc.training.run.kernel.PlainSums.moves`.

        A noisy sum is rounded to its grid, and everything else is computed from that.
        """
        grids, factors = self._in_cells(stretch, eta, scale, noise)
        steps = self.of_steps(stretch.rows, stretch.steps)
        given = zip(steps, grids.tolist(), noise, factors.tolist(), strict=True)
        for descent, grid, drawn, factor in given:
            yield functools.partial(self._rounded_move, descent, grid, drawn, factor)

    def singly(self, stretch: Stretch, eta: Array, scale: Array, noise: Array) -> Singly:
        """Return the steps of a stretch on single records, as `dpcalc.training.run.kernel.PlainSums.singly`.

        The sum of one gradient is exact. Its score need not be: it depends on the record and the iterate alone.
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
        """Return the grids of the steps, and the factors of sums in units of these; noise is put into these units."""
        scale = scale * stretch.divisor
        grids = np.array([grid_of(deviation) for deviation in scale.tolist()])
        noise *= (-scale / grids)[:, np.newaxis]
        return grids, eta / stretch.divisor * grids

    def _rounded_move(self, descent: Move, grid: float, noise: Array, factor: float, w: Array) -> Array:
        """Return factor times the noisy sum in units of the grid."""
        cells = self.released(descent(w) / grid, noise)
        cells *= factor
        return cells

    def _steepest(self, x: Array) -> Array:
        """Return the largest slope of the loss of every record in its score, in units of slopes.

        Features are truncated, so their squares are multiples of a power of two, and the sums of squares are exact.
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
        """Return the exact sum over the records of these rows (None: all), shape (d,) or (d K,)."""
        return next(self.of_steps(None if rows is None else rows[np.newaxis], 1))(w)

    def of_steps(self, rows: Index | None, steps: int) -> Iterator[Move]:
        """Yield for every step the function from its iterate to its sum, to be called before the next is yielded.

        Sums are exact, so the blocks of records do not matter.

        Args:
            rows: shape (steps, size); None where every step uses all records.
            steps: the number of steps.
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
        """Yield the records of these rows in blocks of at most ``most``; the next block may overwrite the last one."""
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
        """Return the sum over truncated records."""
        w = cut_iterate(w, self.kept, 1.0 if self.scaled is None else self.scaled.inner)
        total = np.zeros(len(w))
        for piece in pieces:
            total += self._of(*piece, w)
        return total

    def _of(self, x: Array, y: Array, steepest: Array, w: Array) -> Array:
        """Return the sum over the records of a block.

        A slope that is nan becomes the steepest; with several classes it becomes 0.
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
