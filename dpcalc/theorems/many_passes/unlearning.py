"""Unlearning: noisy steps on the records kept continue a model until it hides the removed records.

Two chains take the same T steps on the records kept, each a c-Lipschitz map with fresh noise eta Z. One starts from the
given model, the other from the model that never saw the removed records; they start at most Z apart. All of that
distance is a shift at time 0, and no other shift follows: mu = Z P_0/sqrt(sum_t P_t^2 eta_t^2 sigma_t^2), P_t the
product of the factors after step t. Linear maps attain it. Every guarantee rounds up.
"""

from __future__ import annotations

import functools
import math

from dpcalc.model.loss_class import contraction
from dpcalc.model.quantities import Adjacency, Start
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Gdp
from dpcalc.numerics.floats import MAX, down, quotient_up, up
from dpcalc.theorems.conditions import CONVEXITY_WITHIN, STEP_WITHIN, STRONGLY_CONVEX
from dpcalc.theorems.many_passes.repeated_allocation import Uses, unrestarted
from dpcalc.theorems.one_pass.allocation import optimal
from dpcalc.theorems.record import Condition, Missing, NotNeeded, Obstacle, Unmet, requires, theorem
from dpcalc.theorems.setting import Setting, decay_rate, factors, in_range, lost, total, variance

CLEAN = (
    "the steps use the records kept alone: neither their maps nor their batches depend on the records to be forgotten"
)
FRESH = "fresh Gaussian noise in every step, w - step_size (gradient + Z)"
REFERENCE = (
    "what is compared with is the model without the records, trained on by the same noisy steps: the definition of "
    "Sekhari et al. 2021 with a request to forget nothing that takes these steps too"
)
NOT_BOTH = "the model from before the steps is not released: who has seen it is covered by its training alone"
REQUEST = "the request does not depend on the model"
BOUNDED = "where a diameter is given: both models lie in one convex domain of it before the steps"
UNLEARNED = (CLEAN, FRESH, REFERENCE, NOT_BOTH, REQUEST, BOUNDED)
_LIPSCHITZ = "every step's map is Lipschitz with the given factor, and projections are onto convex sets"
_MAPS = (
    "every loss is smooth, and convex or weakly convex as stated, and no gradient is clipped; or every step's map is "
    "Lipschitz with --contraction"
)
_ALIGNED = (
    "without the records every batch is as it was but for them, and is divided by the same number (a null record), or "
    "another record takes the place"
)


def _starts(start: Start) -> Condition:
    def check(run: Run) -> Obstacle | None:
        given = run.value("start")
        if given == start:
            return None
        return NotNeeded(f"is of another start, and the start is {given}", f"give --start {start}", ("start",))

    return Condition(f"start = {start}", check)


def _factor_known(run: Run) -> Obstacle | None:
    if run.contraction is None:
        if run.smoothness is None:
            return Missing(("smoothness",), "needs the factor of a step", "give --smoothness, or --contraction")
        return STEP_WITHIN.check(run) or CONVEXITY_WITHIN.check(run)
    if run.smoothness is not None:
        return Unmet("contraction is given and also follows from smoothness", "keep one of the two", ("contraction",))
    return None


_LEFT_OUT = requires(
    "adjacency = null-record",
    lambda run: run.adjacency in (None, Adjacency.NULL_RECORD),
    Unmet(
        "compares with the model without the records: two values of a record may be further apart than start_distance",
        "use --adjacency null-record",
        ("adjacency",),
    ),
)
_REPLACED = requires(
    "adjacency = replace-one",
    lambda run: run.adjacency in (None, Adjacency.REPLACE_ONE),
    lambda run: Unmet(
        f"is of records that are replaced or left out, and the adjacency is {run.adjacency}",
        "use --adjacency replace-one",
        ("adjacency",),
    ),
)
_FACTOR = Condition("contraction, or step_size <= 2/smoothness of convex losses", _factor_known)
_NO_EXPANSION = requires(
    "contraction <= 1",
    lambda run: run.contraction is None or run.contraction <= 1.0,
    Unmet("speaks of steps that expand nothing, and contraction is above 1", "give --start-distance instead"),
)
_WHOLE = requires(
    "batch_size divides records",
    lambda run: run.records is None or run.batch_size is None or run.records % run.batch_size == 0,
    lambda run: Unmet(
        f"takes whole batches, and {run.batch_size} does not divide {run.records}",
        "use a --batch-size that divides --records",
    ),
)


class Continued(Setting):
    """Equal noisy steps on the records kept."""

    @functools.cached_property
    def rate(self) -> float:
        """The contraction as -ln c, rounded down; negative if steps expand."""
        if self.contraction is not None:
            return _rate_of(self.contraction)
        eta, beta, weak = self.step_size, self.smoothness or 0.0, -self.strong_convexity
        if weak <= 0.0:
            return decay_rate(eta, beta, self.strong_convexity)
        return -up(math.log1p(up(max(eta * weak, eta * beta - 2.0), 4.0)), 4.0)

    @property
    def factor(self) -> float:
        """The Lipschitz factor of a step, where it is given or follows from losses that are only weakly convex."""
        if self.contraction is not None:
            return self.contraction
        return contraction(
            step_size=self.step_size, smoothness=self.smoothness or 0.0, strong_convexity=self.strong_convexity
        )

    def hidden(self, *distance: float, over: tuple[float, ...] = (), slack: float = 0.0) -> Gdp:
        """Return the trace of an initial distance after the steps: a product of numbers, divided by that of others."""
        below = (*over, self.step_size, self.noise_std)
        if self.rate < 0.0:
            c, growth = up(self.factor), -2.0 * self.rate
            share = math.sqrt(lost(growth, 1) / lost(growth, self.clean_steps))
            return Gdp(quotient_up((*distance, c, share), below, slack + 40.0))
        rate = in_range(self.rate)
        fading, error = factors(rate, self.clean_steps)
        room = math.sqrt(variance(rate, self.clean_steps))
        return Gdp(quotient_up((*distance, *fading), (*below, room), slack + error + 40.0))

    def within(self, diameter: float, found: Gdp) -> Gdp:
        """Return the lesser of ``found`` and the bound from a convex set of this diameter."""
        return found if math.isinf(diameter) else min(found, self.hidden(diameter), key=lambda gdp: gdp.mu)


class Trained(Continued):
    """Steps from the last iterate of noisy SGD over batches in a fixed order, with the same step size and maps."""

    @property
    def period(self) -> int:
        """The steps of a pass."""
        return self.records // self.batch_size


_DISTANCE = (
    "clean_steps", "step_size", "noise_std", "contraction?", "smoothness?", "strong_convexity?", "start_distance",
    "requests?", "diameter?",
)  # fmt: skip


@theorem(
    "unlearning.distance",
    title="Noisy steps from a known distance",
    needs=_DISTANCE,
    algorithms=("unlearning",),
    reference="feldman2018",
    locator="Theorem 22 with the whole shift at the start, in the Gaussian-DP form of shifted interpolation",
    formula="mu = min(Z (1 + c^T + ... + c^(T(R-1))), D) c^T/(eta sigma sqrt(1 + c^2 + ... + c^(2T-2)))",
    conditions=(_starts(Start.DISTANCE), _FACTOR, _LEFT_OUT),
    assumes=(
        *UNLEARNED,
        _MAPS,
        "before the steps the two models are within start_distance, coupled independently of later noise and batches",
        "with several requests: the reference of each, before its steps, is within start_distance of that of the last "
        "one after its steps; what is released in between is released by itself",
    ),
    weakly_convex=True,
)
def distance(run: Continued) -> Gdp:
    """Noisy steps on the records kept hide the model's distance from one that never saw the others: the distance
    shrinks by c in every step, and the noise of all steps hides the rest.

    Linear maps attain it. With several requests, each adds its distance to the rest from the steps before it.

    >>> run = Continued(clean_steps=100, step_size=0.1, noise_std=0.5, contraction=0.99, start_distance=0.02)
    >>> round(distance(run).mu, 12)
    0.022194325285
    """
    if run.start_distance == 0.0:
        return Gdp(0.0)
    gathered = _gathered(run.rate, run.clean_steps, run.requests) if run.requests > 1 else 1.0
    hidden = run.hidden(run.start_distance, gathered, slack=16.0) if gathered < math.inf else Gdp(math.inf)
    return run.within(run.diameter, hidden)


@theorem(
    "unlearning.schedule",
    title="Noisy steps that differ, from a known distance",
    needs=("schedule", "noise_std", "start_distance", "diameter?"),
    algorithms=("unlearning",),
    reference="feldman2018",
    locator="Theorem 22 with the whole shift at the start, in the Gaussian-DP form of shifted interpolation",
    formula="mu = min(Z, D) P_0/sqrt(sum_t P_t^2 eta_t^2 sigma_t^2), P_t = c_(t+1) ... c_T",
    conditions=(
        _starts(Start.DISTANCE),
        _LEFT_OUT,
        Condition(
            "requests = 1",
            lambda run: (
                Unmet("speaks of one request", "leave out --requests", ("requests",))
                if (run.value("requests") or 1) > 1
                else None
            ),
        ),
    ),
    assumes=(
        *UNLEARNED,
        _LIPSCHITZ,
        "before the steps the two models are within start_distance, coupled independently of later noise and batches",
    ),
    weakly_convex=True,
)
def schedule(run: Setting) -> Gdp:
    """Steps with individual sizes, factors and noises hide the initial distance of the two models.

    >>> import numpy as np
    >>> from dpcalc.model.chain import Chain
    >>> ones = np.ones(4)
    >>> steps = Chain(step_size=ones, noise=ones, contraction=ones, shift=0.0 * ones, spend=None, path="")
    >>> round(schedule(Setting(schedule=steps, noise_std=1.0, start_distance=1.0)).mu, 12)  # 1/sqrt(4)
    0.5
    """
    cost = optimal(run.schedule, min(run.start_distance, run.diameter), None).cost
    return Gdp(up(math.sqrt(cost) / run.noise_std, 4.0) if cost < math.inf else math.inf)


_MINIMISER = (
    "clean_steps", "step_size", "noise_std", "contraction?", "smoothness?", "strong_convexity?", "records",
    "sensitivity", "diameter?", "gradient_norm?",
)  # fmt: skip


@theorem(
    "unlearning.minimiser",
    title="Noisy steps from a minimiser",
    needs=_MINIMISER,
    algorithms=("unlearning",),
    reference="dpcalc",
    locator="distance of two minimisers, then noisy steps",
    formula="mu = Z c^T/(eta sigma sqrt(1 + c^2 + ... + c^(2T-2))), Z = min(D, (Delta/n + 2 G)/m)",
    conditions=(_starts(Start.MINIMISER), _FACTOR, STRONGLY_CONVEX, _REPLACED),
    assumes=(
        *UNLEARNED,
        "the mean of the losses of the records kept is strongly convex, and is minimised up to a gradient of at most "
        "gradient_norm (exactly, where that is 0), as it is with all records, on the whole space or on the same convex "
        "set, where minus the gradient is as near to an outward normal; a regulariser weighs the same in every loss "
        "and is no part of lipschitz",
        "no gradient is clipped",
    ),
)
def minimiser(run: Continued) -> Gdp:
    """Minimisers of strongly convex losses are near each other: with one record of n replaced, or left out and the mean
    taken over the others, within Delta/(m n), and within 2 G/m more if they are only approximate minimisers.

    >>> run = Continued(clean_steps=100, step_size=0.1, noise_std=0.5, smoothness=1.0, strong_convexity=0.1,
    ...                 records=1000, sensitivity=2.0)  # Z = 0.02, c = 0.99
    >>> round(minimiser(run).mu, 12)
    0.022194325285
    """
    if run.gradient_norm == 0.0:
        hidden = run.hidden(run.sensitivity, over=(run.strong_convexity, run.records))
    else:
        apart = up(run.sensitivity / run.records + 2.0 * run.gradient_norm, 4.0)
        hidden = run.hidden(apart, over=(run.strong_convexity,)) if apart < math.inf else Gdp(math.inf)
    return run.within(run.diameter, hidden)


_RUN = (
    "clean_steps", "step_size", "noise_std", "contraction?", "smoothness?", "strong_convexity?", "records",
    "batch_size", "epochs", "sensitivity", "diameter?",
)  # fmt: skip


@theorem(
    "unlearning.run",
    title="Noisy steps from a noisy run, its noise not counted",
    needs=_RUN,
    algorithms=("unlearning",),
    reference="dpcalc",
    locator="two runs with the same noise and batches, then noisy steps",
    formula="mu = Z c^T/(eta sigma sqrt(1 + c^2 + ... + c^(2T-2))), "
    "Z = min(D, (eta Delta/b)(1 + c^l + ... + c^(l(E-1))))",
    conditions=(_starts(Start.RUN), _FACTOR, _NO_EXPANSION, _WHOLE),
    assumes=(
        *UNLEARNED,
        _MAPS,
        "the training had the same maps and step size, took its batches in the same order in every pass, and started "
        "from a point that does not depend on the data; its noise may be of any size",
        _ALIGNED,
    ),
)
def run(run: Trained) -> Gdp:
    """Two runs with the same noise stay near each other, and the steps after them hide their distance; the record
    counts as in the last batch of every pass.

    >>> trained = Trained(clean_steps=50, step_size=0.1, noise_std=0.5, contraction=0.99, records=100, batch_size=1,
    ...                   epochs=10, sensitivity=0.2)  # a use moves its step by 0.02
    >>> round(run(trained).mu, 12)
    0.06762804843
    """
    gathered = total(in_range(run.rate), run.period, run.epochs)
    hidden = run.hidden(*(run.step_size, run.sensitivity, gathered), over=(run.batch_size,), slack=16.0)
    return run.within(run.diameter, hidden)


_WHOLE_RUN = (
    "clean_steps", "step_size", "noise_std", "contraction?", "smoothness?", "strong_convexity?", "records",
    "batch_size", "epochs", "sensitivity",
)  # fmt: skip


@theorem(
    "unlearning.whole_run",
    title="A noisy run and the steps after it, all noise counted",
    needs=_WHOLE_RUN,
    algorithms=("unlearning",),
    reference="bok2024",
    locator="optimal shift allocation over the training and the steps after it",
    formula="mu^2 = (Delta/(b sigma))^2 times the cost of E uses, l steps apart, and T more steps after the last one",
    conditions=(_starts(Start.RUN), _FACTOR, _NO_EXPANSION, _WHOLE),
    assumes=(
        *UNLEARNED[:-1],
        _MAPS,
        "the training had the same maps, step size and noise, took its batches in the same order in every pass, and "
        "started from a point that does not depend on the data",
        _ALIGNED,
    ),
)
def whole_run(run: Trained) -> Gdp:
    """The noise of the training hides the record as well: training and steps are one run, whose last steps are clean.

    It does not try restarts from the diameter; `unlearning.run` uses the diameter.

    >>> trained = Trained(clean_steps=50, step_size=0.1, noise_std=0.5, contraction=0.99, records=100, batch_size=1,
    ...                   epochs=10, sensitivity=0.2)
    >>> round(whole_run(trained).mu, 12)
    0.053846863051
    """
    if run.sensitivity == 0.0:
        return Gdp(0.0)
    rate, tail = in_range(run.rate), run.clean_steps + 1
    uses = Uses(run.sensitivity, run.batch_size, run.noise_std, run.period, tail, run.epochs)
    if rate == 0.0 and tail >= run.period:
        share = run.epochs / math.sqrt(run.period * (run.epochs - 1) + tail)
    else:
        share = unrestarted(uses, rate)
    fading, error = factors(rate, run.clean_steps)
    return Gdp(uses.mu(share, *fading, slack=40.0 + error))


def _rate_of(contraction: float) -> float:
    """Return -ln c, rounded down; negative where c > 1, 0 where c is 1."""
    if contraction == 1.0:
        return 0.0
    if contraction > 1.0:
        return -up(math.log1p(min(up(contraction), MAX) - 1.0), 4.0)
    above = min(up(contraction), 1.0)
    return down(-math.log(above), 4.0) if above < 0.5 else max(0.0, down(-math.log1p(above - 1.0), 4.0))


def _gathered(rate: float, steps: int, requests: int) -> float:
    """Return 1 + c^T + ... + c^(T(R-1)); inf if it is too large for a double."""
    if rate >= 0.0:
        return total(in_range(rate), steps, requests)
    growth = -rate * steps
    return math.expm1(growth * requests) / math.expm1(growth) if growth * requests < 700.0 else math.inf
