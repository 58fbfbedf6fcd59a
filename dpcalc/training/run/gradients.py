"""Sums of gradients in plain doubles: their rounding errors are accounted for where iterates stay hidden."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcalc.model.algorithm import Release
from dpcalc.training.run.domain import Ball, Box
from dpcalc.training.run.kernel import Move, plain_move
from dpcalc.training.run.orders import Stretch
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import AnyProblem, Problem, slope_caps
from dpcalc.training.run.softmax import descents

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_ENTRIES = 1 << 15  # features taken at once: 256 KiB stay in the cache
_CAPPED_ENTRIES = 1 << 20  # the same where slopes are solved for, which a long array makes cheaper
_PRODUCTS = 1 << 19  # records times runs taken at once: their scores are 4 MiB


class PlainSums:
    """Sums of minus the clipped gradients of a problem's records, without the regulariser."""

    def __init__(self, plan: Plan, problem: AnyProblem, runs: int = 1) -> None:
        """Prepare sums for so many runs side by side."""
        self.plan, self.problem = plan, problem
        self.caps = slope_caps(problem.features, plan.clip, plan.norm) if isinstance(problem, Problem) else None
        entries = _CAPPED_ENTRIES if plan.capped else _ENTRIES
        self.rows = max(1, min(entries // plan.columns, _PRODUCTS // runs))
        if not problem.loss.classified:
            self.slope, self.overwrite = problem.loss.scalar_descent(), problem.loss.array_descent()

    def moves(self, stretch: Stretch, eta: Array, scale: Array, noise: Array) -> Iterator[Move]:
        """Yield what every step of a stretch adds to the iterate; each is used before the next one is asked for.

        Args:
            stretch: the steps.
            eta, scale: their step sizes and scales, shape (steps,).
            noise: of scale 1, shape (steps, d); overwritten.
        """
        noise *= (-eta * scale)[:, np.newaxis]
        factors = (eta / stretch.divisor).tolist()
        for descent, drawn, factor in zip(self._of_steps(stretch), noise, factors, strict=True):
            yield partial(plain_move, descent, drawn, factor)

    def takes_at_once(self, stretch: Stretch) -> bool:
        """Return whether `take_at_once` takes these steps: on single records, with no iterate used in between."""
        hidden = self.plan.release in (Release.LAST, Release.PASS) and not isinstance(self.plan.domain, Box)
        return hidden and stretch.rows is not None and stretch.size == 1 and not self.problem.loss.classified

    def take_at_once(self, stretch: Stretch, eta: Array, scale: Array, noise: Array, w: Array) -> None:
        """Take steps on single records in two small products each, which is 3 times faster than one by one.

        Noise, record and iterate of a step are stacked: one product yields <w, x> and |w|^2, and another the next
        iterate, in its place in the stack of the next step. The projection onto a ball waits for the next step, which
        knows |w|^2, and shrinks w by its weight in the product.

        Args:
            stretch, eta, scale, noise: as in `moves`.
            w: the iterate, shape (d,), changed in place; the last one is not projected.
        """
        assert stretch.rows is not None
        rows, slope, dot, count = stretch.rows[:, 0], self.slope, np.dot, stretch.steps
        domain = self.plan.domain
        held, most = domain.inner(len(w)) if isinstance(domain, Ball) else (math.inf, math.inf)
        x, y = self.problem.at(rows)
        caps = self._caps(x, rows)
        stacked = np.empty((count + 1, 3, len(w)))
        stacked[:-1, 0] = noise * (-eta * scale)[:, np.newaxis]
        stacked[:-1, 1], stacked[0, 2] = x, w
        factors = (eta / stretch.divisor).tolist()
        kept = (1.0 - eta * (self.problem.loss.regularisation / stretch.divisor)).tolist()
        bounds = [math.inf] * count if caps is None else caps.tolist()
        products, weights = np.empty(2), np.ones(3)  # of the noise, the record and the iterate
        steps = zip(stacked, stacked[:, 1:], stacked[1:, 2], y.tolist(), bounds, factors, kept, strict=False)
        for whole, pair, after, label, cap, factor, keep in steps:
            dot(pair, pair[1], products)
            z, square = products.tolist()
            if square > most:
                shrunk = held / math.sqrt(square)
                z, keep = z * shrunk, keep * shrunk
            weights[1], weights[2] = factor * max(-cap, min(cap, slope(z, label))), keep
            dot(weights, whole, after)
        w[:] = stacked[-1, 2]

    def _of_steps(self, stretch: Stretch) -> Iterator[Move]:
        """Yield the sum of every step; the records of several small steps are gathered together."""
        rows, size = stretch.rows, stretch.size
        if rows is None or size > self.rows or self.problem.loss.classified:
            for k in range(stretch.steps):
                yield partial(self.descent, rows=None if rows is None else rows[k])
            return
        many = max(1, self.rows // size)
        for first in range(0, len(rows), many):
            chosen = rows[first : first + many]
            x, y = self.problem.at(chosen.reshape(-1))
            caps = self._caps(x, chosen.reshape(-1))
            if size == 1:  # one record needs no array of slopes
                bounds = [np.inf] * len(y) if caps is None else caps.tolist()
                yield from (partial(self._of_one, *record) for record in zip(x, y.tolist(), bounds, strict=True))
                continue
            for start in range(0, len(y), size):
                some = slice(start, start + size)
                yield partial(self._of, x[some], y[some], None if caps is None else caps[some])

    def descent(self, w: Array, rows: Index | None) -> Array:
        """Return the sum over the records of these rows.

        Args:
            w: shape (d,), or (d, m) of m runs.
            rows: shape (size,), or (size, m) where every run has a batch of its own; None for all records.
        """
        if rows is not None and rows.ndim == 2:
            return self._of_own_batches(w, rows)
        count, piece = self.problem.shape[0] if rows is None else len(rows), self.problem.piece(self.rows)
        pieces = [slice(first, min(count, first + piece)) for first in range(0, count, piece)]
        chosen: list[Any] = pieces if rows is None else [rows[some] for some in pieces]
        total = np.zeros_like(w)
        for places, (x, y) in zip(chosen, self.problem.each(chosen), strict=True):
            caps = self._caps(x, places)
            for first in range(0, len(y), self.rows):
                some = slice(first, first + self.rows)
                total += self._of(x[some], y[some], None if caps is None else caps[some], w)
        return total

    def _caps(self, x: Array, rows: Any) -> Array | None:
        """Return how steep the loss of these records may be; None where gradients are not clipped."""
        if self.caps is None:
            return slope_caps(x, self.plan.clip, self.plan.norm)
        caps: Array = self.caps[rows]
        return caps

    def _of(self, x: Array, y: Array, caps: Array | None, w: Array) -> Array:
        """Return the sum over records that all runs share."""
        if self.problem.loss.classified:
            slopes = descents(x @ w.reshape(x.shape[1], -1), y, caps, capped=self.plan.capped)
            return (slopes @ x).T.reshape(-1)
        z = np.dot(x, w)
        if w.ndim == 2:
            y, caps = y[:, np.newaxis], None if caps is None else caps[:, np.newaxis]
        self.overwrite(z, y)
        _cap(z, caps)
        return np.asarray(np.dot(x.T, z))

    def _of_one(self, x: Array, y: float, cap: float, w: Array) -> Array:
        slope: float = max(-cap, min(cap, self.slope(float(np.dot(x, w)), y)))
        return slope * x

    def _of_own_batches(self, w: Array, rows: Index) -> Array:
        assert isinstance(self.problem, Problem)  # several runs are trained on what is held in memory
        features, labels, _ = self.problem
        total = np.zeros_like(w)
        for chosen in rows:
            x: Array = np.ascontiguousarray(features[chosen].T)
            z = np.einsum("ij,ij->j", x, w)
            self.overwrite(z, labels[chosen])
            _cap(z, None if self.caps is None else self.caps[chosen])
            x *= z
            total += x
        return total


def _cap(slopes: Array, caps: Array | None) -> None:
    """Clip slopes, in place."""
    if caps is not None:
        np.minimum(slopes, caps, out=slopes)
        np.maximum(slopes, -caps, out=slopes)
