"""The attacks of an audit: pairs of neighbouring data sets that are easy to tell apart.

All records pull along the first coordinate, with gradients of at most the accounted Lipschitz constant L:

* ``linear``: the record's gradient is +L in one data set and -L in the other (0, for null records), whatever the
  iterate; all other records have zero gradients, or pull in one direction if the order is random.
* ``wall``: the others push the iterates to the boundary of the domain, which erases earlier noise.
* ``reset``: the others pull to 0 with the largest accounted curvature, which also erases earlier noise.
* ``low-bits``: a single step; the others have zero gradients, and the record pulls or has a zero gradient, too. Where
  noise cancels the pull, the remainder is a multiple of the pull's last bit; noise alone is finer (Mironov 2012).

Every loss is convex and within the accounted constants; `dpcalc.training.run.checks.check_loss` checks that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import MissingParameter, NotApplicable
from dpcalc.model.algorithm import Order, Release
from dpcalc.model.loss import Loss, of
from dpcalc.model.loss.base import ArrayDescent, ScalarDescent
from dpcalc.model.quantities import Adjacency, Noise
from dpcalc.model.run import Run
from dpcalc.plain_enum import PlainEnum
from dpcalc.training.run.ensemble import Trace
from dpcalc.training.run.plan import Batch, Plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.rounding import Rounding

Array = NDArray[np.float64]

_ROOM = 1e-9
"""Relative room between the constants of the curved loss and the accounted ones, for rounding."""

_COLUMNS = 2000
"""Columns for low-order bits if the run has no dimension: noise cancels some of many small pulls."""

_STEEP = 8.0
"""Length of gradients over the clip, for attacks on clipped runs."""


class Attack(PlainEnum):
    """The attack of an audit."""

    LINEAR = "linear"
    WALL = "wall"
    RESET = "reset"
    LOW_BITS = "low-bits"
    BEST = "best"  # of those that apply, the one that promises most in pilot runs
    CUSTOM = "custom"


class Linear(Loss):
    """-y z: its gradient is -y x, whatever the iterate. The bound on labels is a power of two."""

    name: ClassVar[str] = "linear"

    def data_values(self, z: Array, labels: Array) -> Array:
        """As `Loss.data_values`; it has no minimum."""
        return -labels * z

    def scalar_descent(self) -> ScalarDescent:
        """As `Loss.scalar_descent`."""
        return lambda z, y: y

    def array_descent(self) -> ArrayDescent:
        """As `Loss.array_descent`."""

        def overwrite(z: Array, y: Any) -> None:
            z[...] = y

        return overwrite

    @property
    def lipschitz(self) -> float:
        """The largest gradient norm of the data part."""
        return self.feature_bound * (self.label_bound or 1.0)

    @property
    def gradient_at_zero(self) -> float:
        """As `lipschitz`."""
        return self.lipschitz

    @property
    def loss_at_zero(self) -> float:
        """The loss at w = 0 is 0."""
        return 0.0

    def hoelder_constant(self, exponent: float | None = None) -> float:
        """Return the curvature of the regulariser, as the data part has none."""
        return self.regularisation


class Steps(NamedTuple):
    """The steps of two runs on linear losses, as known to an observer of all iterates.

    Attributes:
        chance: the probability that the record is in a batch.
        without, first, second: the mean increment of a step over eta: without the record, and with it in either data
            set.
        pull: of the regulariser, in the same units.
    """

    chance: float
    without: float
    first: float
    second: float
    pull: float


class Increments:
    """The log-likelihood ratio of all iterates, for Gaussian noise.

    Given the earlier iterates, each is a mixture of two Gaussians: with the record in the batch, and without it.
    """

    def __init__(self, plan: Plan, steps: Steps) -> None:
        """Observe runs of a plan that start at 0."""
        self.plan, self.steps = plan, steps
        self.before: Array | float = 0.0
        self.total: Array | float = 0.0

    def see(self, number: int, weights: Array) -> None:
        """Add the log-likelihood ratio of an iterate given the one before it; the batches are not known."""
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


class Pair(NamedTuple):
    """Two data sets that differ in one record.

    Attributes:
        attack: an `Attack`.
        others: what the other records do, in words.
        plan: of the runs on both.
        first, second: the data sets; the record pulls up in the first.
        direction: of the projection that tells them apart, shape (d,); None: the first coordinate, or for a custom
            attack the direction that pilot runs find.
        steps: given if all iterates are public: the score is then their log-likelihood ratio.
        bits_of: the drift whose low-order bits make the score, in place of a projection.
        one_by_one: whether the runs are those of `dpcalc.training.run.single`, with ``rounding``.
    """

    attack: str
    others: str
    plan: Plan
    first: Problem
    second: Problem
    direction: Array | None
    steps: Steps | None = None
    bits_of: float | None = None
    rounding: Rounding | None = None
    one_by_one: bool = False

    @property
    def looks_at(self) -> str:
        """The input of the score, in words."""
        if self.bits_of is not None:
            return "the low-order bits of the last iterate"
        return "the last iterate" if self.steps is None else "all iterates"

    @property
    def trace(self) -> Callable[[], Trace] | None:
        """The function that makes a trace of all iterates; None where the score is of the last iterate."""
        return None if self.steps is None else partial(Increments, self.plan, self.steps)

    def scores(self, weights: Array) -> Array:
        """Return the scores, shape (m,), of released weights, shape (m, d)."""
        if self.bits_of is not None:
            return _has_bits(weights, self.bits_of)
        return weights[:, 0] if self.direction is None else weights @ self.direction


def pairs(run: Run, plan: Plan, attack: str = Attack.BEST) -> list[Pair]:
    """Return the pairs of an attack on a run; for ``best``, those of all attacks that apply.

    Raises:
        MissingParameter: the Lipschitz constant is not known.
        NotApplicable: the attack does not apply to such a run.
    """
    refuse_unfit(run)
    lengths = [float(length) for length in (run.lipschitz, run.gradient_at_zero, run.clip) if length is not None]
    if not lengths:
        raise MissingParameter(
            "the gradients of an audit are as long as the run allows, and no Lipschitz constant is known",
            "give --lipschitz",
            parameters=("lipschitz",),
        )
    makers: dict[str, Callable[[_Scene], Iterator[Pair]]] = {
        Attack.LINEAR: _linear, Attack.WALL: _wall, Attack.RESET: _reset, Attack.LOW_BITS: _low_bits,
    }  # fmt: skip
    scene = _Scene(run, plan, min(lengths))
    if attack == Attack.BEST:
        return [pair for make in (_linear, _wall, _reset) for pair in make(scene)]
    applicable = list(makers[attack](scene))
    if not applicable:
        raise NotApplicable(_WHY_NOT[attack], "--attack linear is on every run")
    return applicable


_WHY_NOT: dict[str, str] = {
    Attack.LOW_BITS: "low-order bits are looked for in one step with Gaussian noise",
    Attack.WALL: "iterates are not projected, so there is no wall to push them to",
    Attack.RESET: "the accounted losses have no curvature that forgets the past, or are bounded or clipped",
}


def refuse_unfit(run: Run) -> None:
    """Refuse runs for which an audit has no neighbouring data sets.

    Raises:
        NotApplicable: the guarantee is for groups, or the run has a displacement that linear losses do not have.
    """
    if (run.group_size or 1) != 1:
        raise NotApplicable("an audit is of one record, and the guarantee is of a group", "leave out --group-size")
    if run.typed("displacement"):
        raise NotApplicable(
            "the linear losses of an audit have displacement factor 1, and another is given", "leave out --displacement"
        )


class _Scene(NamedTuple):
    """The target of an attack; ``lipschitz`` is L > 0, the largest norm of gradients."""

    run: Run
    plan: Plan
    lipschitz: float

    @property
    def fixed(self) -> bool:
        """Whether the record has a known place."""
        return self.plan.order is Order.FIXED

    @property
    def place(self) -> int:
        """The row of the record."""
        if not self.fixed or self.run.algorithm.local:
            return 0
        return (self.run.index or self.plan.records) - 1

    @property
    def absent(self) -> float:
        """The label of the record in the second data set, where it is 1 in the first."""
        return 0.0 if self.run.adjacency == Adjacency.NULL_RECORD else -1.0

    @property
    def regularisation(self) -> float:
        """The accounted weight of the regulariser."""
        known = self.plan.accounted
        return known.get("regularisation", known.get("strong_convexity", 0.0))

    def pair(self, attack: str, others: str, pulls: Array) -> Pair:
        """Return the pair with a linear loss and these labels of the other records, shape (n,)."""
        steep = _STEEP if self.plan.clip == self.lipschitz else 1.0
        loss = Linear(feature_bound=self.lipschitz, label_bound=steep, regularisation=self.regularisation)
        features = np.zeros((self.plan.records, self.plan.columns))
        features[:, 0] = self.lipschitz

        def problem(label: float) -> Problem:
            labels = steep * pulls
            labels[self.place] = steep * label
            return Problem(features, labels, loss)

        pair = Pair(attack, others, self.plan, problem(1.0), problem(self.absent), None)
        return lean(pair, self.place) if not np.any(np.delete(pulls, self.place)) else pair

    def public(self, pair: Pair, pull: float) -> Iterator[Pair]:
        """Yield the pair with a score of all iterates, if they are public; the other records have this label."""
        plan = self.plan
        if plan.order not in (Order.SAMPLE, Order.FULL) or plan.output_scale or self.run.algorithm.local:
            return
        if plan.release is Release.STEP or (plan.release is Release.AVERAGE and plan.order is Order.SAMPLE):
            [batch] = plan.batches
            others = (batch.size - 1) * pull
            labels = (batch.size * pull, others + 1.0, others + self.absent)
            means = [self.lipschitz * label / batch.divisor for label in labels]
            yield pair._replace(
                steps=Steps(
                    chance=batch.size / plan.records, without=means[0], first=means[1], second=means[2],
                    pull=self.regularisation * batch.size / batch.divisor,
                )
            )  # fmt: skip

    def before(self) -> Array:
        """Return 1 for all records before the record, else 0."""
        return (np.arange(self.plan.records) < self.place).astype(np.float64)


def _linear(scene: _Scene) -> Iterator[Pair]:
    ways = {"the others rest": 0.0}
    if scene.plan.order not in (Order.FIXED, Order.FULL) and math.isinf(scene.plan.domain.radius):
        ways["the others pull down"] = -1.0
        if scene.absent == 0.0:
            ways["the others pull up"] = 1.0
    for others, pull in ways.items():
        pair = scene.pair(Attack.LINEAR, others, np.full(scene.plan.records, pull))
        yield pair
        yield from scene.public(pair, pull)


def _wall(scene: _Scene) -> Iterator[Pair]:
    if math.isinf(scene.plan.domain.radius):
        return
    ways = {"up": 1.0, "down": -1.0} if scene.absent == 0.0 else {"up": 1.0}
    for way, sign in ways.items():
        yield scene.pair(Attack.WALL, f"the others push {way}", np.full(scene.plan.records, sign))
        if scene.fixed and scene.place:
            yield scene.pair(
                Attack.WALL, f"those before the record push {way}, those behind it rest", sign * scene.before()
            )


def _reset(scene: _Scene) -> Iterator[Pair]:
    plan = scene.plan
    eta = float(np.max(plan.step_size))
    curvature = min(plan.accounted.get("smoothness", math.inf), 1.0 / eta) - scene.regularisation
    if not curvature > 0.0 or plan.clip is not None or plan.output_scale or plan.records == 1:
        return
    if plan.accounted.get("loss_at_zero") is not None:  # this loss is large there
        return
    bound = math.sqrt(curvature) * (1.0 - _ROOM)
    threshold = scene.lipschitz / bound * (1.0 - _ROOM)
    noise = float(np.max(plan.scale)) * math.sqrt(plan.steps)
    furthest = min(plan.domain.radius, eta * (plan.steps * scene.lipschitz + 100.0 * noise))
    far = threshold + bound * furthest
    loss = of("huber", feature_bound=bound, huber_threshold=threshold, label_bound=far).changed(
        regularisation=scene.regularisation
    )
    ways = {"the others pull to 0": np.ones(plan.records)}
    if scene.fixed and scene.place:
        ways["those before the record pull to 0, those behind it rest"] = scene.before()
    for others, active in ways.items():

        def problem(label: float, active: Array = active) -> Problem:
            features, labels = np.zeros((plan.records, plan.columns)), np.zeros(plan.records)
            features[:, 0] = bound * active
            features[scene.place, 0], labels[scene.place] = bound * abs(label), far * label
            return Problem(features, labels, loss)

        yield Pair(Attack.RESET, others, plan, problem(1.0), problem(scene.absent), None)


def _low_bits(scene: _Scene) -> Iterator[Pair]:
    plan = scene.plan
    if plan.steps != 1 or plan.output_scale or plan.noise != Noise.GAUSSIAN:
        return
    if scene.run.dimension == 1:
        raise NotApplicable(
            "low-order bits are looked for in many small pulls, and the run has one dimension",
            "leave out --dimension, or audit a run of more",
        )
    columns = plan.columns if plan.columns > 1 else _COLUMNS
    loss = Linear(feature_bound=scene.lipschitz, label_bound=1.0, regularisation=scene.regularisation)
    features, labels = np.zeros((plan.records, columns)), np.zeros(plan.records)
    pull = scene.lipschitz / math.sqrt(columns) * (1.0 - _ROOM)
    features[scene.place] = pull
    present = labels.copy()
    present[scene.place] = 1.0
    pair = Pair(
        Attack.LOW_BITS, "the others rest", plan._replace(columns=columns), Problem(features, present, loss),
        Problem(features, labels, loss), None,
    )  # fmt: skip
    yield lean(pair, scene.place)._replace(bits_of=plan.step_size_at(0) * pull / plan.batches[0].divisor)


def _has_bits(weights: Array, drift: float) -> Array:
    """Return 1 for runs with nonzero entries far below the drift, all multiples of half its last bit; else 0."""
    small = (weights != 0.0) & (np.abs(weights) < drift / 64.0)
    multiple = np.fmod(weights, 0.5 * math.ulp(drift)) == 0.0
    bits: Array = (small.any(axis=1) & (multiple | ~small).all(axis=1)).astype(np.float64)
    return bits


def lean(pair: Pair, place: int) -> Pair:
    """Return the pair without the records of zero gradient, if every step uses all records.

    Runs keep their distribution: the divisor stays the number of all records, and the regulariser of the one remaining
    record is that of all.
    """
    plan, records = pair.plan, pair.plan.records
    if plan.order is not Order.FULL or records == 1:
        return pair
    weight = pair.first.loss.regularisation * records
    accounted: dict[str, float] = {n: plan.accounted[n] for n in ("lipschitz", "clip") if n in plan.accounted}
    one = plan._replace(
        records=1,
        batches=(Batch(plan.batches[0].steps, 1, records),),
        accounted={**accounted, "regularisation": weight},
    )

    def alone(problem: Problem) -> Problem:
        rows = slice(place, place + 1)
        return Problem(
            problem.features[rows].copy(), problem.labels[rows].copy(), problem.loss.changed(regularisation=weight)
        )

    return pair._replace(plan=one, first=alone(pair.first), second=alone(pair.second))
