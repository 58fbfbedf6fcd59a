"""A step of one run or of many together: iterates, sums of gradients in plain doubles, slopes, and random numbers.

The rounding errors of plain sums are accounted for where iterates stay hidden.

Slopes of a softmax depend on their own record alone: scores and slopes have one row for each class and one column for
each record, and sums over classes are taken in the order of classes, so all operations are elementwise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Release
from dpcalc.model.quantities import Noise
from dpcalc.training.run.capped import capped_descents, total_of
from dpcalc.training.run.domain import Ball, square_of
from dpcalc.training.run.orders import Step, Stretch
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem, slope_caps

Array = NDArray[np.float64]
Move = Callable[[Array], Array]
"""From an iterate to its change in a step: minus the step size times the noisy gradient, without the regulariser."""


class Kernel:
    """The iterates of one run, or of several that take their steps together.

    Attributes:
        weights: shape (d,), or (d, m) of m runs; changed in place.
        unprojected: the iterate before its projection; None unless it is kept.
        total, count: the sum and the number of the averaged iterates.
    """

    def __init__(self, plan: Plan, regularisation: float, weights: Array, *, keep_unprojected: bool = False) -> None:
        self.plan, self.regularisation, self.weights = plan, regularisation, weights
        self.unprojected = weights if keep_unprojected else None
        self.total, self.count = np.zeros_like(weights), 0
        self._runs = weights.T  # the same memory, the entries of a run last
        self._averages_starts = plan.release is Release.AVERAGE

    def take(self, step: Step, move: Move) -> None:
        """Take a step: w becomes Pi(w - eta lambda w b/B + move(w)), with b records in a batch of divisor B."""
        plan, w = self.plan, self.weights
        self._begin()
        moved = move(w)
        if self.regularisation:
            w *= 1.0 - plan.step_size_at(step.number) * (self.regularisation * step.size / step.divisor)
        w += moved
        self._end(step.number + 1)

    def reach(self, steps: int, w: Array) -> None:
        """Take the iterate after this number of steps, not yet projected."""
        self._begin()
        self.weights[:] = w
        self._end(steps)

    def _begin(self) -> None:
        if self._averages_starts:
            self._add()

    def _end(self, steps: int) -> None:
        """Project the iterate after this number of steps, and add it to the mean if it is part of that."""
        if self.unprojected is not None:
            self.unprojected = self.weights.copy()
        self.plan.domain.project(self._runs)
        if self.plan.tail and self.plan.averages(steps):
            self._add()

    def _add(self) -> None:
        self.total += self.weights
        self.count += 1

    @property
    def mean(self) -> Array:
        """The mean of the averaged iterates, shape (d,) or (m, d)."""
        mean: Array = self.total.T / self.count
        return mean


class Singly(NamedTuple):
    """Steps on single records, each of which takes w to keep w + u a x + Z, or to keep w + f R(u trunc(a/v) x, Z).

    Attributes:
        features, labels, caps: x of the records, shape (steps, d), their labels, and the largest slopes.
        noise: Z, shape (steps, d), with its scale.
        units, factors: u and f, shape (steps,).
        slope: a, minus the slope at a score and a label.
        slope_unit, released: v and R, which may overwrite its arguments; R is None where nothing is rounded.
    """

    features: Array
    labels: Array
    caps: Array
    noise: Array
    units: Array
    factors: Array
    slope: Callable[[float, float], float]
    slope_unit: float = 1.0
    released: Callable[[Array, Array], Array] | None = None

    def taken(self, w: Array, keep: Array, domain: Ball) -> Array:
        """Return the iterates, not projected, shape (steps, d), with two small products for each.

        Record, iterate and noise of a step are stacked: one product gives <w, x> and |w|^2, and another the next
        iterate, in its place in the next stack. The projection onto a ball happens in the next step, which knows |w|^2,
        by the weight of w in the product. All rows begin at a cache line, so that with any library a score is the same
        function of iterate and record in every step.

        Args:
            w: the iterate before these steps, shape (d,); the first step projects it.
            keep: the factor of the iterate, shape (steps,).
            domain: the set that iterates are projected onto.
        """
        dot, slope, released, (count, columns) = np.dot, self.slope, self.released, self.features.shape
        held, most, surely = domain.inner(columns)
        short = surely == most
        stacked = _on_lines(count + 1, 3, columns)
        stacked[:-1, 0, :columns], stacked[0, 1, :columns], stacked[:-1, 2, :columns] = self.features, w, self.noise
        products, weights = np.empty(2), np.ones(3)
        lists = (each.tolist() for each in (self.labels, self.caps, self.units, self.factors, keep))
        views = zip(stacked[:-1], stacked[:-1, :2], stacked[1:, 1], *lists, strict=True)
        for whole, pair, after, label, cap, unit, factor, kept in views:
            dot(pair, pair[1], products)
            z, square = products.tolist()
            if square > surely and (short or (square := float(square_of(pair[1, :columns]))) > most):
                shrunk = held / math.sqrt(square)
                z, kept = z * shrunk, kept * shrunk
            steep = max(-cap, min(cap, slope(z, label)))  # nan becomes the cap
            if released is None:
                weights[0], weights[1] = unit * steep, kept
            else:
                x, noise = whole[0, :columns], whole[2, :columns]
                noise[:] = released(x * (math.trunc(steep / self.slope_unit) * unit), noise)
                weights[0], weights[1], weights[2] = 0.0, kept, factor
            dot(weights, whole, after)
        iterates: Array = stacked[1:, 1, :columns]
        iterates += 0.0  # no -0: its sign would reveal that of 0 x
        return iterates


def _on_lines(*shape: int) -> Array:
    """Return zeros whose rows, padded, all begin at a cache line."""
    *outer, length = shape
    length += -length % _LINE
    room = np.zeros(math.prod(outer) * length + _LINE)
    first = -(room.ctypes.data // room.itemsize) % _LINE
    return room[first : first + math.prod(outer) * length].reshape(*outer, length)


def plain_move(descent: Move, noise: Array, factor: float, w: Array) -> Array:
    """Return factor times a sum of descents, plus noise, in plain doubles.

    Args:
        descent: from w to the sum of minus the gradients, which may be overwritten.
        noise: with its scale.
        factor: the step size over the divisor of the batch.
        w: the iterate.
    """
    moved = descent(w)
    moved *= factor
    moved += noise
    return moved


class Source(NamedTuple):
    """The generator of random numbers for both the noise and the order of records.

    Attributes:
        generator: the generator.
        private: whether nobody can draw the same numbers again; privacy needs this.
        label: for reports.
    """

    generator: np.random.Generator
    private: bool
    label: str


def from_os() -> Source:
    """Return a generator seeded by 128 bits from the operating system."""
    return Source(np.random.Generator(np.random.SFC64(np.random.SeedSequence())), True, "SFC64, seeded by the OS")


def seeded(seed: int) -> Source:
    """Return a generator that draws the same numbers every time: for experiments, never for private data.

    Raises:
        SpecError: the seed is negative.
    """
    if seed < 0:
        raise SpecError(f"the seed is {seed}; it must be a whole number >= 0", "see --seed")
    return Source(np.random.Generator(np.random.SFC64(seed)), False, f"SFC64, seed {seed}: not private")


def secure() -> Source:
    """Return AES-128 in counter mode, its key from the operating system (`randomgen.AESCounter`).

    The package itself claims no security. `dpcalc.training.run.rounding` deals with the low-order bits of noise in
    floating point (Mironov 2012).

    Raises:
        SpecError: randomgen is not installed.
    """
    try:
        from randomgen import AESCounter
    except ImportError:
        raise SpecError("the secure source needs randomgen", "pip install randomgen") from None
    bits: Any = AESCounter(key=int.from_bytes(os.urandom(16), "little"))
    return Source(np.random.Generator(bits), True, "AES-128 in counter mode, its key from the OS")


def fill(generator: np.random.Generator, kind: str, out: Array) -> None:
    """Draw Gaussian or Laplace variables of scale 1 into ``out``, C-contiguous, in the order of its entries."""
    if kind == Noise.GAUSSIAN:
        generator.standard_normal(out=out)
        return
    # An exponential with a random sign bit: faster than Generator.laplace, and the same law.
    generator.standard_exponential(out=out)
    signs = np.frombuffer(generator.bytes(-(-out.size // 8)), dtype=np.uint8)
    flips = np.unpackbits(signs, count=out.size).view(np.bool_).reshape(out.shape)
    np.negative(out, out=out, where=flips)


def descents(scores: Array, labels: Array, longest: Array | None, *, capped: bool = False) -> Array:
    """Return minus the slopes of a softmax, each clipped as a vector, or minus those of a capped softmax.

    Args:
        scores: shape (m, K).
        labels: m integers from 0 to K - 1.
        longest: the largest norm of each slope, shape (m,), positive; None for no bound.
        capped: whether the softmax is capped by ``longest`` (`dpcalc.training.run.capped`).

    Returns:
        e_y - softmax(z), clipped, or minus the slope of the capped softmax, shape (K, m): 0 where scores are not
        finite.
    """
    if capped and longest is not None:
        return capped_descents(scores, labels, longest)
    slopes = _shares(scores)
    np.negative(slopes, out=slopes)
    slopes[labels.astype(np.intp), np.arange(len(labels))] += 1.0
    np.copyto(slopes, 0.0, where=~np.isfinite(slopes))
    if longest is not None:
        lengths = _lengths(slopes)
        slopes *= np.where(lengths > longest, longest / np.maximum(lengths, longest), 1.0)
    return slopes


def probabilities(scores: Array) -> Array:
    """Return the softmax of scores of shape (m, K), of the same shape."""
    return np.ascontiguousarray(_shares(scores).T)


def class_metrics(features: Array, labels: Array, loss: Any, weights: Array, shift: Any = 0.0) -> tuple[Array, Array]:
    """Return the sums of losses, and the counts of right predictions, of some models over some records.

    Args:
        features: shape (m, d).
        labels: shape (m,).
        loss: the softmax.
        weights: shape (models, d K).
        shift: subtracted from scores to undo weights of classes, shape (K,).

    Returns:
        Both of shape (models,).
    """
    total, right = np.empty(len(weights)), np.empty(len(weights))
    for place, one in enumerate(weights):
        scores = features @ one.reshape(features.shape[1], -1)
        total[place] = loss.data_values(scores - shift, labels).sum()
        right[place] = np.count_nonzero(scores.argmax(axis=1) == labels)
    return total, right


def _shares(scores: Array) -> Array:
    """Return the softmax, shape (K, m)."""
    shares = np.ascontiguousarray(scores.T)
    if shares is scores or np.shares_memory(shares, scores):
        shares = shares.copy()
    shares -= shares.max(axis=0)
    np.exp(shares, out=shares)
    shares /= total_of(shares)
    return shares


def _lengths(slopes: Array) -> Array:
    """Return the norms of the columns, without underflow of squares."""
    largest = np.abs(slopes).max(axis=0)
    scale = np.where(largest > 0.0, largest, 1.0)
    lengths: Array = scale * np.sqrt(total_of((slopes / scale) ** 2))
    return lengths


Index = NDArray[np.int64]

_ENTRIES = 1 << 15  # features of a block: 256 KiB stay in the cache
_CAPPED_ENTRIES = 1 << 20  # the same for a capped softmax, whose solver is faster on long arrays
_LINE = 8  # doubles in a cache line of 64 bytes
_PRODUCTS = 1 << 19  # records times runs of a block: their scores are 4 MiB


class PlainSums:
    """Sums of minus the clipped gradients of a problem's records, without the regulariser."""

    def __init__(self, plan: Plan, problem: Problem, runs: int = 1) -> None:
        """Prepare sums for this number of runs together."""
        self.plan, self.problem = plan, problem
        self.caps = slope_caps(problem.features, plan.clip, plan.norm)
        entries = _CAPPED_ENTRIES if plan.capped else _ENTRIES
        self.rows = max(1, min(entries // plan.columns, _PRODUCTS // runs))
        if not problem.loss.classified:
            self.slope, self.overwrite = problem.loss.scalar_descent(), problem.loss.array_descent()

    def moves(self, stretch: Stretch, eta: Array, scale: Array, noise: Array) -> Iterator[Move]:
        """Yield the move of every step of a stretch, to be called before the next is yielded.

        Args:
            stretch: the steps.
            eta, scale: their step sizes and scales, shape (steps,).
            noise: of scale 1, shape (steps, d); overwritten.
        """
        noise *= (-eta * scale)[:, np.newaxis]
        factors = (eta / stretch.divisor).tolist()
        for descent, drawn, factor in zip(self._of_steps(stretch), noise, factors, strict=True):
            yield partial(plain_move, descent, drawn, factor)

    def singly(self, stretch: Stretch, eta: Array, scale: Array, noise: Array) -> Singly:
        """Return the steps of a stretch on single records: arguments as in `moves`."""
        assert stretch.rows is not None
        rows = stretch.rows[:, 0]
        x, y = self.problem.at(rows)
        caps, factors = self._caps(rows), eta / stretch.divisor
        noise *= (-eta * scale)[:, np.newaxis]
        bounds = np.full(len(y), math.inf) if caps is None else caps
        bounds, slope = self.problem.weighed(bounds, y), self.problem.weighed_slope(self.slope)
        return Singly(x, y, bounds, noise, factors, np.ones(len(y)), slope)

    def _of_steps(self, stretch: Stretch) -> Iterator[Move]:
        """Yield the function for the sum of every step; the records of several small steps are gathered together."""
        rows, size = stretch.rows, stretch.size
        if rows is None or size > self.rows or self.problem.loss.classified:
            for k in range(stretch.steps):
                yield partial(self.descent, rows=None if rows is None else rows[k])
            return
        many = max(1, self.rows // size)
        for first in range(0, len(rows), many):
            chosen = rows[first : first + many]
            x, y = self.problem.at(chosen.reshape(-1))
            caps = self._caps(chosen.reshape(-1))
            for start in range(0, len(y), size):
                some = slice(start, start + size)
                yield partial(self._of, x[some], y[some], None if caps is None else caps[some])

    def descent(self, w: Array, rows: Index | None) -> Array:
        """Return the sum over the records of these rows.

        Args:
            w: shape (d,), or (d, m) of m runs.
            rows: shape (size,), or (size, m) where every run has its own batch; None for all records.
        """
        if rows is not None and rows.ndim == 2:
            return self._of_own_batches(w, rows)
        count, total = self.problem.shape[0] if rows is None else len(rows), np.zeros_like(w)
        for first in range(0, count, self.rows):
            some = slice(first, first + self.rows)
            chosen: Any = some if rows is None else rows[some]
            x, y = self.problem.at(chosen)
            total += self._of(x, y, self._caps(chosen), w)
        return total

    def _caps(self, rows: Any) -> Array | None:
        """Return the largest slopes of these records; None without clipping."""
        return None if self.caps is None else self.caps[rows]

    def _of(self, x: Array, y: Array, caps: Array | None, w: Array) -> Array:
        """Return the sum over records that all runs share."""
        if self.problem.loss.classified:
            slopes = descents(x @ w.reshape(x.shape[1], -1), y, caps, capped=self.plan.capped)
            slopes = self.problem.weighed(slopes, y)
            return (slopes @ x).T.reshape(-1)
        z = np.dot(x, w)
        if w.ndim == 2:
            y, caps = y[:, np.newaxis], None if caps is None else caps[:, np.newaxis]
        self.overwrite(z, y)
        _cap(z, caps)
        return np.asarray(np.dot(x.T, self.problem.weighed(z, y)))

    def _of_own_batches(self, w: Array, rows: Index) -> Array:
        features, labels = self.problem.features, self.problem.labels
        total = np.zeros_like(w)
        for chosen in rows:
            x: Array = np.ascontiguousarray(features[chosen].T)
            z = np.einsum("ij,ij->j", x, w)
            self.overwrite(z, labels[chosen])
            _cap(z, None if self.caps is None else self.caps[chosen])
            x *= self.problem.weighed(z, labels[chosen])
            total += x
        return total


def _cap(slopes: Array, caps: Array | None) -> None:
    """Clip slopes, in place."""
    if caps is not None:
        np.minimum(slopes, caps, out=slopes)
        np.maximum(slopes, -caps, out=slopes)
