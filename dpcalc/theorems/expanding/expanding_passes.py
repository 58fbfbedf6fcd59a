"""Several passes of maps that may expand distances, with the record at the same position in each of them.

A use is hidden by the steps up to the next use; on a bounded domain all uses before some step are hidden by the steps
after it.

How far a step may drive two runs apart, what the last steps hide, and the conditions of the bounds.

The shifted-divergence theorem needs only a bound F(z) on the distance after a step of two points z apart; the shift may
be spent as z_t = F(z_(t-1)) - a_t. With s = eta Delta/b for a use of the record, F(z) is

    smooth, or convex and smooth with a long step      c z, and s more where the record is used, c > 1
    weakly convex and Lipschitz, convex too (q = 1)    sqrt(q z^2 + w^2), and s more where the record is used
    Lipschitz only, which covers clipped gradients     z + 2 eta L, whether the record is used or not

with c, q and w as in `dpcalc.model.loss_class`, and the least of those that hold. On a domain of diameter D two runs of
any length are never further apart than D, and the last m steps hide D at a cost of A_m, the least of

    (D + 2 eta L p)^2/(p + c^-2 + ... + c^(-2(m-p))), 0 <= p <= m: p steps of the third kind, then m - p of the first
    D^2/S_m + w^2 (1/(q S_1) + ... + 1/(q S_m)), S_i = q^-1 + ... + q^-i: steps of the second kind

in units of the variance that a step adds; any split of the steps is valid. Before that, or without a domain, a use is
hidden by the steps up to the next use.

Every guarantee rounds up.

Steps on fresh uniform batches on a bounded domain.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from dpcalc.model import loss_class as loss
from dpcalc.model.algorithm import Order, Release, in_one_random_order
from dpcalc.model.quantities import LossClass
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Composition, Gdp, Profile
from dpcalc.notions.profiles import COMPOSED, Certificate
from dpcalc.numerics.floats import UNIT, Array, log_add_exp, np, quotient_up, up
from dpcalc.numerics.sums import TermBounds, log_sum_decreasing_up
from dpcalc.theorems.batch_layout import Positions
from dpcalc.theorems.conditions import (
    BATCH_WITHIN,
    DOMAIN,
    GAUSSIAN,
    GAUSSIAN_NOISE,
    INDEX_IN_RANGE,
    LIPSCHITZ,
    ONE_RELEASE,
    WHERE_BOUNDED,
)
from dpcalc.theorems.contraction.laplace import expands_nothing
from dpcalc.theorems.record import Condition, NotNeeded, Obstacle, Unmet, lacking, needs, theorem
from dpcalc.theorems.sampled import hidden_past, noisy_sgd
from dpcalc.theorems.setting import GAUSSIAN_STEP, Setting, variance

RANDOM = ("shuffle-once", "rotation-epochs", "shuffled-epochs")
ALL = ("cyclic", *RANDOM, "noisy-sgd", "noisy-gd")
CLASS = "the losses are of the stated class on the domain"
MAPS = "the losses are smooth, and weakly convex where so stated, so that every map is Lipschitz with a factor above 1"
_MILD = 1.0 - 1e-12  # a step times the weight of a regulariser: its part of the step then turns no two points around
_SUMMED = 64  # this many terms are summed exactly: the error of the series for the rest is below a rounding
LARGEST = 1e90  # no privacy is left at a larger ratio


# --- conditions -------------------------------------------------------------------------------------------------------


def _expands(run: Run) -> Obstacle | None:
    if run.loss_class == LossClass.CONVEX_SMOOTH:
        if run.smoothness is None or run.step_size is None:
            return lacking(run, "step_size", "smoothness")
        if expands_nothing(LossClass.CONVEX_SMOOTH, run.step_size, run.smoothness):
            return NotNeeded(
                "is for steps that may drive two runs apart, and these do not",
                "see the bounds for convex smooth losses",
            )
    return None


def _mild_regulariser(run: Run) -> Obstacle | None:
    weight, eta = run.regularisation, run.step_size
    if not weight or eta is None or eta * weight <= _MILD:
        return None
    return Unmet("step_size times regularisation exceeds 1", f"use --step-size <= {0.999 / weight:.6g}")


def hides_by_place(run: Run) -> Obstacle | None:
    """Return an obstacle if a record has the same privacy at every position of a pass."""
    bounded = run.algorithm.order is Order.SHUFFLE and run.diameter is not None and run.displacement is not None
    smooth = run.loss_class in loss.LIPSCHITZ_MAPS and run.smoothness is not None
    if bounded or smooth or run.loss_class is None:
        return None
    if run.records and run.batch_size and run.records % run.batch_size:
        return None
    if run.algorithm.order is not Order.SHUFFLE:
        return NotNeeded("is for smooth losses, or a short last batch", "give --smoothness")
    return NotNeeded("is for smooth losses, a bounded domain, or a short last batch", "give --smoothness or --diameter")


def _length_known(run: Run) -> Obstacle | None:
    return None if run.epochs is not None or run.steps is not None else needs("epochs")


EXPANDS = Condition("loss_class is smooth, convex or lipschitz, or step_size > 2/smoothness", _expands)
MILD = Condition("step_size regularisation <= 1", _mild_regulariser)
PLACED = Condition("the losses are smooth, or the last batch is short", hides_by_place)
LENGTH = Condition("epochs or steps is known", _length_known)


# --- what the last steps hide -----------------------------------------------------------------------------------------


def growth_of(
    loss_class: LossClass, step_size: float, smoothness: float | None, strong_convexity: float
) -> float | None:
    """Return the growth ln c >= 0 of a step's Lipschitz factor, rounded up; None if there is none."""
    rate = loss.rate(
        loss_class=loss_class, step_size=step_size, smoothness=smoothness, strong_convexity=strong_convexity
    )
    return None if rate is None else max(0.0, -rate)


def grid() -> Iterator[int]:
    """Yield the integers with at most three significant binary digits, up to 1e18: every count is near one of them."""
    yield from (1, 2, 3)
    for power in range(58):
        yield from (j << power for j in (4, 5, 6, 7))


def room(growth: float, steps: int) -> float:
    """Return 1 + c^-2 + ... + c^(-2 (steps-1)), rounded down."""
    return variance(growth if growth > 1e-200 else 0.0, steps) * (1.0 - 64.0 * UNIT)


def rooms(growth: float, steps: Array) -> Array:
    """Return `room` of an array."""
    if growth <= 1e-200:
        return steps * (1.0 - 64.0 * UNIT)
    variances: Array = np.expm1(-2.0 * growth * steps) / math.expm1(-2.0 * growth) * (1.0 - 64.0 * UNIT)
    return variances


def carried(reach: float, growth: float, steps: int, push: float = math.inf) -> float:
    """Return mu of the diameter hidden by ``steps`` steps that leave points z apart at most min(c z, z + push) apart.

    That is the least over p of (reach + push p)/sqrt(p + c^-2 + ... + c^(-2(steps-p))), rounded up. c = e^growth >= 1.
    """

    def cost(pushed: int) -> float:
        count = steps - pushed
        if growth > 700.0 and count:
            return math.inf
        left = room(growth, count) * math.exp(-2.0 * growth) if count else 0.0
        return (reach + push * pushed if pushed else reach) / math.sqrt(pushed + left)

    low, high = 0, steps
    if growth > 700.0:
        low = steps
    elif push == math.inf or reach * math.expm1(growth) <= push:
        high = 0  # c z is less at every distance
    while low < high:  # the square of the cost is convex in p, a square of a line over a concave function
        middle = (low + high) // 2
        if cost(middle) > cost(middle + 1):
            low = middle + 1
        else:
            high = middle
    return up(cost(low), 16.0 + 2.0 * min(growth, 700.0))


def harmonic(terms: int, ratio: float = 1.0) -> float:
    """Return 1/(q S_1) + ... + 1/(q S_terms), S_i = q^-1 + ... + q^-i, rounded up: 1 + 1/2 + ... + 1/terms at q = 1."""
    few = range(1, min(terms, _SUMMED) + 1)
    if ratio == 1.0:
        x = terms + 0.5
        far = math.log(x) + 0.5772156649015329 + 1.0 / (24.0 * x**2) - 7.0 / (960.0 * x**4) + 31.0 / (8064.0 * x**6)
        return up(math.fsum(1.0 / j for j in few) if terms <= _SUMMED else far, 8.0)
    log = math.log1p(ratio - 1.0)
    shrunk = -math.expm1(-log)  # 1/(q S_i) is this times 1 + 1/(q^i - 1)
    first = math.fsum(shrunk / -math.expm1(-log * j) for j in few)
    if terms <= _SUMMED:
        return up(first, 16.0)
    return up(first + shrunk * ((terms - _SUMMED) + (_tail(log, terms + 0.5) - _tail(log, _SUMMED + 0.5))), 64.0)


def _tail(log: float, x: float) -> float:
    """Return the integral of 1/(e^(log x) - 1), with the Euler-Maclaurin terms for a sum over integers.

    The derivatives alternate in sign, so a series that ends at a term of this sign is above the sum.
    """
    if log * x > 700.0:
        return 0.0
    u = 1.0 / math.expm1(log * x)
    slope = -log * u * (1.0 + u)
    return (
        math.log(-math.expm1(-log * x)) / log - slope / 24.0 + 7.0 / 5760.0 * log * log * slope * (1 + 6 * u * (1 + u))
    )


def carried_bent(reach: float, bent: tuple[float, float], steps: int) -> float:
    """Return mu of the diameter hidden by steps that leave points z apart at most sqrt(q z^2 + w^2) apart; rounded up.

    Args:
        reach, bent: D, and (q, w), in units of a step's noise; q >= 1.
        steps: their number.
    """
    ratio, width = bent
    sum_of_powers = room(0.5 * math.log(ratio), steps) / ratio
    return up(math.hypot(reach / math.sqrt(sum_of_powers), width * math.sqrt(harmonic(steps, ratio))), 32.0)


def carried_anyhow(reach: float, push: float) -> float:
    """Return the least over m of D'/sqrt(m) + push sqrt(m), for the diameter and the growth over m steps; rounded
    up."""
    best = min(reach / push if push else math.inf, 1e15)
    tried = {max(1, math.floor(best)), max(1, math.ceil(best))}
    return min(up(reach / math.sqrt(m) + push * math.sqrt(m), 16.0) for m in tried)


class Expanding(Setting):
    """Steps that may expand distances, perhaps on a bounded domain."""

    @functools.cached_property
    def growth(self) -> float:
        """The growth ln c >= 0 of a step's Lipschitz factor, rounded up; inf if it has none."""
        growth = growth_of(self.loss_class, self.step_size, self.smoothness, self.strong_convexity)
        return math.inf if growth is None else growth

    @functools.cached_property
    def reach(self) -> float:
        """D/(eta sigma), rounded up; inf if the domain is unbounded."""
        return quotient_up((self.diameter,), (self.step_size, self.noise_std)) if self.diameter < math.inf else math.inf

    @functools.cached_property
    def push(self) -> float:
        """2 L/sigma, rounded up; inf if L is unknown, or if a step reverses the regulariser's part."""
        if self.lipschitz == math.inf or self.step_size * self.regularisation > _MILD:
            return math.inf
        return quotient_up((2.0, self.lipschitz), (self.noise_std,))

    @functools.cached_property
    def bent(self) -> tuple[float, float] | None:
        """(q, w) of a step that leaves points z apart at most sqrt(q z^2 + w^2) apart, in units of its noise."""
        if self.push == math.inf:
            return None
        found = loss.stretch(
            loss_class=self.loss_class, step_size=self.step_size, lipschitz=self.lipschitz,
            smoothness=None if self.regularisation else self.smoothness, strong_convexity=self.strong_convexity,
        )  # fmt: skip
        return None if found is None else (found[0], quotient_up((found[1],), (self.step_size, self.noise_std)))

    def carried(self, steps: int) -> float:
        """Return mu of the diameter hidden by the noise of ``steps`` steps, rounded up; inf if it is unbounded."""
        if self.reach == math.inf:
            return math.inf
        least = carried(self.reach, self.growth, steps, self.push)
        return least if self.bent is None else min(least, carried_bent(self.reach, self.bent, steps))


class ExpandingPasses(Expanding):
    """Passes whose steps may expand distances."""

    def ratio(self, size: int) -> float:
        """Return r = Delta/(b sigma) of a use in a batch with this divisor, rounded up."""
        return quotient_up((self.sensitivity,), (float(size), self.noise_std))

    def earlier(self, ratio: float, period: int) -> float:
        """Return the cost mu^2 of all uses but the last, one a pass, rounded up.

        Each is hidden by its own pass; or the diameter right after some use and j more uses are.
        """
        one = ratio / math.sqrt(room(self.growth, period))
        least = (self.epochs - 1) * one * one
        if self.reach < math.inf and self.epochs > 1:
            for j in (0, *grid()):
                steps = (j + 1) * period - 1
                if steps:
                    mu = self.carried(steps) + one * math.sqrt(j)
                    least = min(least, mu * mu)
        return up(least, 32.0)


_CYCLIC = (
    "records", "batch_size", "epochs", *GAUSSIAN_STEP, "step_size", "loss_class", "smoothness?", "strong_convexity?",
    "diameter?", "index", "last_batch?", "lipschitz?", "regularisation?",
)  # fmt: skip


@theorem(
    "expanding.cyclic",
    title="Cyclic passes of maps that expand",
    needs=_CYCLIC,
    algorithms=("cyclic",),
    reference="dpcalc",
    locator="shifted interpolation, each use hidden by the steps up to the next one; restart from the diameter",
    formula="mu^2 = B + r^2/G_k, B = (E-1) r^2/G_l or, on a domain, (sqrt(A_m) + r sqrt(j/G_l))^2, m = (j+1) l - 1; "
    "G_j = 1 + c^-2 + ... + c^(-2(j-1)), A_m as in expanding.domain; "
    "c = max(1 + eta m, eta beta - 1) for Hessians in [-m, beta], m = beta where no strong convexity is given",
    conditions=(INDEX_IN_RANGE, GAUSSIAN_NOISE, LIPSCHITZ, EXPANDS),
    assumes=("the same fixed order in every pass", MAPS, GAUSSIAN, WHERE_BOUNDED, ONE_RELEASE),
    weakly_convex=True,
)
def cyclic(run: ExpandingPasses) -> Gdp:
    """The noise of a pass hides a use even if every step drives two runs apart, as long as it does so slowly.

    It is never above `multi_epoch.composition`, up to rounding.

    >>> run = ExpandingPasses(records=5, index=1, batch_size=1, epochs=9, sensitivity=2.0, noise_std=4.0,
    ...                       step_size=1e-6, loss_class="smooth", smoothness=1.0)
    >>> round(cyclic(run).mu, 4)
    0.6708
    """
    place, period = run.layout.place(run.index), run.layout.steps
    one, tail = run.ratio(place.divisor), place.tail
    mu = math.hypot(math.sqrt(run.earlier(one, period)), one / math.sqrt(room(run.growth, tail)))
    if tail > 1:
        mu = min(mu, run.carried(tail - 1))
    return Gdp(up(mu, 16.0))


@theorem(
    "expanding.once",
    title="One random order for all epochs, maps that expand",
    needs=(
        "records", "batch_size", "epochs", *GAUSSIAN_STEP, "step_size", "loss_class", "smoothness?",
        "strong_convexity?", "diameter?", "last_batch", "lipschitz?", "regularisation?",
    ),
    algorithms=in_one_random_order(Release.LAST),
    reference="dpcalc",
    locator="expanding.cyclic for each position, averaged",
    formula="delta(eps) = sum_k w_k delta_G(eps; mu_k), w_k the share of the records at k, mu_k^2 = B + r_k^2/G_k as "
    "in expanding.cyclic; G_k = 1 for losses that are not smooth",
    conditions=(GAUSSIAN_NOISE, EXPANDS, PLACED),
    assumes=("one order for all epochs, all orders (or rotations) equally likely and drawn without looking at the "
             "data; it may be published", "where used: " + MAPS, GAUSSIAN, WHERE_BOUNDED, ONE_RELEASE),
    slack="below 0.3 % of delta",
    weakly_convex=True,
)  # fmt: skip
def once(run: ExpandingPasses) -> Profile:
    """The record keeps its position in every epoch; for few positions too little noise follows the last use.

    >>> run = ExpandingPasses(records=100, batch_size=1, last_batch="own", epochs=2, sensitivity=2.0, noise_std=2.0,
    ...                      step_size=0.01, loss_class="smooth", smoothness=1.0)
    >>> round(once(run).profile(1.0), 2)
    -6.13
    """
    return Profile(lambda epsilon: _positions(run, epsilon))


def _positions(run: ExpandingPasses, epsilon: float) -> float:
    """Return ln of the mean of delta_G over all positions of a record."""
    plan, total = run.layout, -math.inf
    if run.ratio(plan.least_divisor) > LARGEST:
        return 0.0
    for alike in plan.positions:
        total = log_add_exp(total, _like_positions(run, alike, epsilon) + math.log(alike.records / run.records))
    return min(0.0, total + UNIT * (8.0 * abs(total) + 64.0))


def _like_positions(run: ExpandingPasses, alike: Positions, epsilon: float) -> float:
    """Return ln of the mean of delta_G over the positions in equal batches."""
    ratio = run.ratio(alike.divisor)
    earlier = run.earlier(ratio, run.layout.steps)

    def terms(k: Array) -> TermBounds:
        from dpcalc.numerics.normal_arrays import log_hockey_stick_up

        mu = np.minimum(np.sqrt(earlier + ratio * ratio / rooms(run.growth, k)) * (1.0 + 16.0 * UNIT), 1e100)
        logs = log_hockey_stick_up(min(epsilon, LARGEST), np.maximum(mu, 1e-100))[None]
        return TermBounds(logs, logs, np.zeros((1, len(k)), bool))

    return log_sum_decreasing_up(terms, alike.first, alike.first + alike.steps - 1) - math.log(alike.steps)


class SampledSteps(Expanding):
    """Steps on fresh uniform batches on a bounded domain, of losses that are smooth or convex."""


def _hides_sampled(run: Run) -> Obstacle | None:
    if run.loss_class == LossClass.LIPSCHITZ and (run.strong_convexity or 0.0) >= 0.0:
        return NotNeeded("is for smooth or convex losses", "of merely Lipschitz ones expanding.domain speaks")
    return lacking(run, "smoothness") if run.loss_class == LossClass.SMOOTH and run.smoothness is None else None


def steps_to_hide(run: SampledSteps) -> float:
    """Return an estimate (no bound) of the number of steps from which hiding early ones beats composition; inf for
    never."""
    composed = run.part(noisy_sgd.SampledSteps)
    single = hidden_past.use_cost(composed.ratio, run.batch_size / run.records)
    return noisy_sgd.steps_to_reach(composed, min(run.carried(m) + math.sqrt(m * single) for m in grid()))


@theorem(
    "expanding.sampled",
    title="Subsampled steps with hidden iterates, maps that may expand",
    needs=(
        "records", "batch_size", "steps", "lipschitz", "noise_std", "step_size", "diameter", "loss_class",
        "smoothness?", "strong_convexity?", "regularisation?",
    ),
    algorithms=("noisy-sgd",),
    reference="dpcalc",
    locator="as noisy_sgd.hidden, with the shift recursion of the loss class",
    formula="G(sqrt(A_m/q)) with C_{b/n}(G(2 L/(b sigma sqrt(1-q)))) composed m times, A_m as in expanding.domain",
    conditions=(
        BATCH_WITHIN, GAUSSIAN_NOISE, EXPANDS, MILD, Condition("loss_class is smooth or convex", _hides_sampled),
    ),
    assumes=("every step uses a fresh uniform batch of batch_size records, drawn without replacement", CLASS, DOMAIN,
             GAUSSIAN, ONE_RELEASE),
    slow=True,
    slack="the split is optimised for a Gaussian approximation, and evaluated exactly",
    not_monotone_in=("records", "batch_size"),
    steps_to_hide=steps_to_hide,
    weakly_convex=True,
)  # fmt: skip
def sampled(run: SampledSteps) -> Composition:
    """Before the last m steps the runs are at most a diameter apart, and a share of the noise of these steps hides
    that.

    It is plain composition if hiding does not help.
    """
    from dpcalc.notions import pld

    mu = noisy_sgd.step_ratio(run.lipschitz, run.noise_std, run.batch_size)
    plan = best_split(run)
    if plan is None:
        composed = [noisy_sgd.taken(mu, run.records, run.batch_size, run.steps)]
        return Composition(composed, certificate=lambda _: Certificate(COMPOSED))
    hidden = up(run.carried(plan.composed) / math.sqrt(plan.fraction), 8.0)
    step = noisy_sgd.sampled(hidden_past.sample_mu(mu, plan.fraction), run.records, run.batch_size)
    parts = [(pld.gaussian(mu=max(hidden, 1e-30)), 1), (step, plan.composed)]
    return Composition(parts, certificate=lambda _: hidden_past.split_certificate(plan))


def best_split(run: SampledSteps) -> hidden_past.Plan | None:
    """Return the best plan by a central-limit approximation of the uses; None for plain composition."""
    mu, rate = noisy_sgd.step_ratio(run.lipschitz, run.noise_std, run.batch_size), run.batch_size / run.records
    single = hidden_past.use_cost(mu, rate)
    least, best = run.steps * single, None
    for steps in grid():
        if steps >= run.steps:
            break
        whole = run.carried(steps)
        balanced = whole / (whole + math.sqrt(steps * single))
        for fraction in (balanced, 0.6 * balanced, 0.3 * balanced):
            if not 1e-12 < fraction < 1.0 - 1e-12 or whole > 1e7 * math.sqrt(fraction):
                continue
            cost = whole * whole / fraction + steps * hidden_past.use_cost(mu / math.sqrt(1.0 - fraction), rate)
            if cost < least:
                least, best = cost, hidden_past.Plan(steps, steps, fraction)
    return best
