"""What an observer makes of a whole release: logs of likelihood ratios of what two runs tell.

Over losses whose gradients are constant, or linear in the iterate, an iterate is Gaussian given what was released
before it, and given which step used the record. An order that is published says which; of a secret one, and of random
batches, the likelihoods are averaged. Where iterates are projected, or losses are Huber's, the ratio is one of a model:
a score all the same, as any function of what is public is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.model.algorithm import Order, Release
from dpcalc.model.quantities import Noise
from dpcalc.training.run.ensemble import Trace
from dpcalc.training.run.plan import Plan

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_PLACES = 128
"""Steps of a pass whose likelihoods are averaged, at most: they are kept for every run."""


# --- every iterate, of random batches ---------------------------------------------------------------------------------


class Steps(NamedTuple):
    """The steps of two runs on linear losses, as an observer of all iterates knows them.

    Attributes:
        chance: that the record is in a batch.
        without, first, second: how far a step goes up on average, in units of its length eta: without the record, and
            with it in either data set.
        pull: of the regulariser, in the same units.
    """

    chance: float
    without: float
    first: float
    second: float
    pull: float

    @property
    def looks_at(self) -> str:
        """What the score is made of."""
        return "all iterates"

    def trace(self, plan: Plan) -> Trace:
        """Return what looks at runs of a plan."""
        return Increments(plan, self)


class Increments:
    """The log of the likelihood ratio of all iterates, for Gaussian noise.

    Given the iterates before it, each is a mixture of two Gaussians: with the record in the batch, and without it.
    """

    def __init__(self, plan: Plan, steps: Steps) -> None:
        """Look at runs of a plan that start at 0."""
        self.plan, self.steps = plan, steps
        self.before: Array | float = 0.0
        self.total: Array | float = 0.0

    def see(self, number: int, weights: Array, rows: Index | None = None) -> None:
        """Add what an iterate tells, given the one before it; which records were used is not known."""
        eta, scale = self.plan.step_size_at(number), self.plan.scale_at(number)
        went = (weights[0] - (1.0 - eta * self.steps.pull) * self.before) / (eta * scale)
        self.total = self.total + self._log_ratio(went, self.steps.first / scale, self.steps.second / scale, scale)
        self.before = weights[0].copy()

    def result(self) -> Array:
        """Return the score of every run, shape (m,)."""
        return np.asarray(self.total)

    def _log_ratio(self, went: Array, first: float, second: float, scale: float) -> Array:
        return self._log_mixture(went, first, scale) - self._log_mixture(went, second, scale)

    def _log_mixture(self, went: Array, mean: float, scale: float) -> Array:
        """Return the log of the density over that without the record."""
        base, chance = self.steps.without / scale, self.steps.chance
        ratio: Array = (mean - base) * went - 0.5 * (mean * mean - base * base)
        if chance >= 1.0:
            return ratio
        mixed: Array = np.logaddexp(math.log1p(-chance), math.log(chance) + ratio)
        return mixed


# --- passes -----------------------------------------------------------------------------------------------------------


class Passes(NamedTuple):
    """Two runs whose steps are affine maps: the records but one are alike, and the one has a constant gradient.

    Attributes:
        place: the row of the record.
        first, second: the record's pull up (minus its gradient) in either data set.
        curvature: of the loss of every other record, whose minimum is at 0.
        before: whether only the records before this one have it, in a fixed order.
        weight: of the regulariser of every record.
        every: whether the iterate after every pass is seen; else the last one.
        published: whether a random order is, so that the observer knows which step uses the record.
        known: whether the observer knows that, from the order of the data or from a published one.
    """

    place: int
    first: float
    second: float
    curvature: float
    before: bool
    weight: float
    every: bool = False
    published: bool = False
    known: bool = False

    @property
    def looks_at(self) -> str:
        """What the score is made of."""
        seen = "the iterate after every pass" if self.every else "the last iterate"
        return f"{seen} and the order" if self.published else seen

    def trace(self, plan: Plan) -> Trace:
        """Return what looks at runs of a plan."""
        return KnownPlaces(plan, self) if self.known else HiddenPlaces(plan, self)


def beyond_the_end(plan: Plan, passes: Passes, *, public: bool) -> Passes | None:
    """Return what tells more than a projection of the last iterate; None where nothing does, or it is not known.

    Args:
        plan: what is executed.
        passes: the two runs.
        public: whether a random order is published.
    """
    if plan.noise != Noise.GAUSSIAN or plan.output_scale or plan.stops or plan.longest_skip:
        return None
    if plan.order not in (Order.FIXED, Order.ROTATION, Order.SHUFFLE, Order.SHUFFLE_ONCE):
        return None
    fixed = plan.order is Order.FIXED
    uneven = len({(batch.size, batch.divisor) for batch in plan.batches}) > 1 or _dropped(plan) > 0
    if not (passes.curvature or passes.weight or (uneven and not fixed)):
        return None  # every use moves the sum of all steps alike, which is then sufficient
    every = plan.release is Release.PASS and plan.passes > 1
    known = fixed or public
    if not every and (fixed or not known):
        return None
    if not known and plan.steps_per_pass > MOST_PLACES:
        return None
    return passes._replace(every=every, published=known and not fixed, known=known)


def _dropped(plan: Plan) -> int:
    """Return how many records of a pass no step uses."""
    return plan.records - sum(batch.steps * batch.size for batch in plan.batches)


class _Step(NamedTuple):
    """A step of a pass: of how many records, and what divides their sum."""

    size: int
    divisor: int


def _steps(plan: Plan) -> list[_Step]:
    return [_Step(batch.size, batch.divisor) for batch in plan.batches for _ in range(batch.steps)]


class _Affine:
    """What a step does to a mean and to a variance."""

    def __init__(self, plan: Plan, passes: Passes) -> None:
        self.plan, self.passes, self.steps = plan, passes, _steps(plan)

    def factor_and_unit(self, number: int, present: Any, rows: Index | None) -> tuple[Any, Any]:
        """Return the factor of the iterate, and how far a pull of 1 of the record moves it; 0 where it is absent."""
        step, eta = self.steps[number % len(self.steps)], self.plan.step_size_at(number)
        curved = step.size - present
        if self.passes.before and rows is not None:
            curved = np.count_nonzero(rows < self.passes.place)
        curvature = self.passes.curvature * curved + self.passes.weight * step.size
        return 1.0 - eta * curvature / step.divisor, eta * present / step.divisor

    def added(self, number: int) -> float:
        """Return the variance of a step's noise."""
        return (self.plan.step_size_at(number) * self.plan.scale_at(number)) ** 2

    def sees(self, number: int) -> bool:
        """Return whether the iterate after a step is seen."""
        done = number + 1
        return done == self.plan.steps or (self.passes.every and done % len(self.steps) == 0)


class KnownPlaces:
    """The log of the likelihood ratio of what is seen, where the observer knows which steps use the record.

    Given the iterate seen before, the next one has the mean ``mean + pull moved`` and this variance.
    """

    def __init__(self, plan: Plan, passes: Passes) -> None:
        """Look at runs of a plan that start at 0."""
        self.affine, self.passes = _Affine(plan, passes), passes
        self.mean: Any = 0.0
        self.moved: Any = 0.0
        self.variance: Any = 0.0
        self.total: Any = 0.0

    def see(self, number: int, weights: Array, rows: Index | None) -> None:
        """Follow a step, and add what the iterate tells where it is seen."""
        present = 1.0 if rows is None else np.any(rows == self.passes.place, axis=0).astype(np.float64)
        factor, unit = self.affine.factor_and_unit(number, present, rows)
        self.mean, self.moved = factor * self.mean, factor * self.moved + unit
        self.variance = factor * factor * self.variance + self.affine.added(number)
        if not self.affine.sees(number):
            return
        first, second = self.passes.first, self.passes.second
        middle = self.mean + 0.5 * (first + second) * self.moved
        self.total = self.total + (first - second) * self.moved * (weights[0] - middle) / self.variance
        self.mean, self.moved, self.variance = weights[0].copy(), 0.0, 0.0

    def result(self) -> Array:
        """Return the score of every run, shape (m,)."""
        return np.asarray(self.total)


class HiddenPlaces:
    """As `KnownPlaces`, where the order is secret: the likelihoods are averaged over the record's places.

    Of every place it is kept, shape (places, 1), by what the iterate seen before is multiplied, how far the record
    moves it, and the variance; a last place stands for a record that no step uses.
    """

    def __init__(self, plan: Plan, passes: Passes) -> None:
        """Look at runs of a plan that start at 0."""
        self.affine, self.passes = _Affine(plan, passes), passes
        sizes = [float(step.size) for step in self.affine.steps]
        counts = np.array([*sizes, float(_dropped(plan))])
        with np.errstate(divide="ignore"):
            self.log_weights = np.log(counts / plan.records)[:, np.newaxis]
        self.afresh = plan.order is Order.SHUFFLE
        self.before: Any = 0.0
        self.logs: list[Any] = [0.0, 0.0]  # of the likelihoods since the order was drawn, shape (places, m)
        self.total: Any = 0.0
        self._begin()

    def _begin(self) -> None:
        shape = self.log_weights.shape
        self.kept, self.moved, self.variance = np.ones(shape), np.zeros(shape), np.zeros(shape)

    def see(self, number: int, weights: Array, rows: Index | None = None) -> None:
        """Follow a step, and add what the iterate tells where it is seen; which records were used is not known."""
        present = np.zeros(self.log_weights.shape)
        present[number % len(self.affine.steps)] = 1.0
        factor, unit = self.affine.factor_and_unit(number, present, None)
        self.kept, self.moved = factor * self.kept, factor * self.moved + unit
        self.variance = factor * factor * self.variance + self.affine.added(number)
        if not self.affine.sees(number):
            return
        went = weights[0] - self.kept * self.before
        half_log = 0.5 * np.log(self.variance)
        for world, pull in enumerate((self.passes.first, self.passes.second)):
            self.logs[world] = self.logs[world] - (went - pull * self.moved) ** 2 / (2.0 * self.variance) - half_log
        if self.afresh or number + 1 == self.affine.plan.steps:
            first, second = (np.logaddexp.reduce(self.log_weights + logs, axis=0) for logs in self.logs)
            self.total, self.logs = self.total + (first - second), [0.0, 0.0]
        self.before = weights[0].copy()
        self._begin()

    def result(self) -> Array:
        """Return the score of every run, shape (m,)."""
        return np.asarray(self.total)
