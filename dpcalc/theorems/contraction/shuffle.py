"""One pass in a random order: averages over the record's position (Sordello, Bu and Dong, corrected and sharpened).

Let e_k be delta of a record after k later steps; then delta = (1/n) (e_0 + ... + e_{n-1}). The proof averages over
orders, so these bounds hold even if the order is published. They also hold for a uniformly random rotation. The law of
the order must not depend on the data. For a secret order see `dpcalc.theorems.hidden.hidden_position`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from dpcalc.model.quantities import Noise
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics.floats import UNIT, log_add_exp, log_expm1, up
from dpcalc.numerics.sums import log_sum_hockey_sticks_up
from dpcalc.theorems.batch_layout import Layout
from dpcalc.theorems.conditions import (
    BATCHES_OF_ONE,
    DOMAIN,
    GAUSSIAN_NOISE,
    LAPLACE_NOISE,
    ONE_DIMENSION,
    ONE_RELEASE,
    RANDOM_ORDER,
    STEP_WITHIN,
    WHERE_BOUNDED,
)
from dpcalc.theorems.contraction import laplace, recursion
from dpcalc.theorems.contraction.contraction import DISPLACED, FRESH, LIPSCHITZ_STEPS, PAPER
from dpcalc.theorems.contraction.laplace import NoisyPass
from dpcalc.theorems.contraction.recursion import SLACK, Trace
from dpcalc.theorems.many_passes.epochs import once_log_delta
from dpcalc.theorems.many_passes.repeated_allocation import Passes
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import BATCHES, BOUNDED_STEP, NOISY_STEP, Setting

_LINEAR = (RANDOM_ORDER, FRESH, DOMAIN, DISPLACED, ONE_RELEASE)
_WHERE_USED = (RANDOM_ORDER, FRESH, WHERE_BOUNDED, "where used: " + LIPSCHITZ_STEPS, ONE_RELEASE)
_SHUFFLED = ("shuffled", "rotation")
_HALTED = "the pass stops after a uniformly random number of steps"
_TUNED = "the noise follows the schedule tuned to n, and n grows without bound"
_LIMIT_ERRATUM = (
    "The paper states delta = delta* + O(.) for n large enough. delta* is the limit of a linear bound as n grows; at "
    "its own Figure 2 the bound at n is above delta* for every n, and no finite run is covered by it."
)
_LARGEST = 1e90  # no privacy is left at a larger ratio


class ShuffledPass(NoisyPass):
    """One pass in a random order, noise in every step."""

    @functools.cached_property
    def gaussian_pass(self) -> Passes | None:
        """The pass as positions of a record, if its noise is Gaussian and its maps are 1-Lipschitz."""
        if self.noise != Noise.GAUSSIAN or not self.expands_nothing or self.strong_convexity > self.smoothness:
            return None
        one_pass = Passes.of(self, self.scale)
        return None if one_pass.ratio > _LARGEST else one_pass

    @functools.cached_property
    def places(self) -> Passes | None:
        """The same, if more is known than 1-Lipschitz maps: the maps contract, or the domain is bounded."""
        return None if self.gaussian_pass is None or self.gaussian_pass.bare else self.gaussian_pass


SMOOTH_SHUFFLE = (*BATCHES, *NOISY_STEP, "step_size", "smoothness")


# --- the mean over where the record falls -----------------------------------------------------------------------------


class Behind(NamedTuple):
    """The steps after the last of a class of batches.

    Attributes:
        steps: their number.
        reach: the largest distance of two points after such a step, in units of the noise, if it differs from that of
        other steps: for the step of a short last batch.
    """

    steps: int
    reach: float | None = None


Remainders = Callable[[Trace, int, Behind], float]
"""(trace, l, behind) -> ln of the remaining trace of a record, summed over the l batches that it may be in."""

_BEHIND_NOTHING = Behind(0)


def _mean(run: ShuffledPass, epsilon: float, remainders: Remainders, *, shifts: bool = False) -> float:
    """Return ln delta of a pass, rounded up: the mean over the record's position; ``shifts``: with the shift bound."""
    trace = run.shift_trace if shifts else run.trace
    return _mean_of(run.layout, lambda divisor: trace(epsilon, run.own_ratio(divisor)), remainders, run.reach)


def _mean_of(plan: Layout, trace: Callable[[int], Trace], remainders: Remainders, reach: float = 0.0) -> float:
    """Return ln delta of a pass; ``trace`` maps a divisor to the trace of a record in such a batch."""
    shares, behind = [], _BEHIND_NOTHING
    for alike in plan.positions:
        left = trace(alike.divisor)
        shares.append((remainders(left, alike.steps, behind), alike.size, plan.records))
        behind = _behind(plan, left, reach) if plan.short_is_last else Behind(behind.steps + alike.steps)
    return _shares(*shares)


def _behind(plan: Layout, trace: Trace, reach: float) -> Behind:
    """Return the step of a short last batch.

    Divided by the nominal size, it is smaller than the others: (1 - s) identity + s times a full step's map.
    """
    last = plan.positions[0]
    share = last.size / last.divisor
    return Behind(1, trace.following if share == 1.0 else up((1.0 - share) * reach + share * trace.following, 4.0))


def _shares(*parts: tuple[float, int, int]) -> float:
    """Return ln of the sum of exp(value) numerator/denominator, rounded up and at most 0."""
    total = -math.inf
    for value, numerator, denominator in parts:
        total = log_add_exp(total, value + math.log(numerator) - math.log(denominator))
    if total == -math.inf:
        return total
    return min(0.0, total + UNIT * (4.0 * abs(total) + 8.0 * math.log(parts[0][2] + 1) + 8.0))


def _products(trace: Trace, terms: int, behind: Behind) -> float:
    """Return the remainders by the product of contraction coefficients."""
    value = recursion.product_sum(trace, terms)
    if not behind.steps:
        return value
    factor = trace.log_factor if behind.reach is None else _log_one(trace, behind.reach)
    return up(value + behind.steps * factor, 4.0) if value > -math.inf and factor > -math.inf else -math.inf


def _log_one(trace: Trace, reach: float) -> float:
    return recursion.log_one_step(trace.noise, trace.epsilon, reach)


def _walked(trace: Trace, terms: int, behind: Behind) -> float:
    """Return the remainders by the trace's recursion, walked step by step."""
    if behind.reach is None:
        return recursion.total(recursion.walked_on(trace, behind.steps), terms)
    gap, reach = log_expm1(trace.epsilon), behind.reach

    def after(log_e: float) -> float:
        return recursion.log_one_step(trace.noise, recursion.shrunk_epsilon(gap, log_e), reach)

    return recursion.total(trace, terms, weight=after)


def _shifted(trace: Trace, terms: int, behind: Behind) -> float:
    """Return the remainders by the Gaussian shift bound with 1-Lipschitz maps."""
    mean = mean_of_shifts(steps=terms, after=behind.steps, ratio=trace.first, epsilon=trace.epsilon)
    return mean + math.log(terms) * (1.0 + 2.0 * UNIT)


def _laplace_shifted(trace: Trace, terms: int, behind: Behind) -> float:
    """Return the remainders by the Laplace shift bounds.

    The step of a short last batch is ignored. If more steps follow a class, its batches leave at most their share of a
    longer sequence of batches, and none leaves more than the last of them.
    """
    shift = laplace.LaplaceShift(trace.first, trace.epsilon)
    if behind.steps <= 1:
        return shift.mixture_sum(terms)
    together = behind.steps + terms
    of_all = shift.mixture_sum(together) - math.log(together)
    return min(of_all, shift.mixture(behind.steps)) + math.log(terms) + 4.0 * UNIT * math.log(together)


@functools.lru_cache(maxsize=64)
def mean_of_shifts(*, steps: int, after: int, ratio: float, epsilon: float) -> float:
    """Return an upper bound on ln of the mean of delta_G(eps; ratio/sqrt(k)) over k = after+1 .. after+steps."""
    if ratio > 1e90:
        return 0.0
    value = log_sum_hockey_sticks_up(epsilon, max(ratio, 1e-290), steps + after, 1 + after) - math.log(steps)
    return min(0.0, value + 4.0 * UNIT * (abs(value) + math.log(steps)) + 1e-323)


@theorem(
    "shuffle.product",
    title="Shuffled pass, product of contraction coefficients",
    needs=(*BATCHES, *NOISY_STEP, *BOUNDED_STEP),
    algorithms=_SHUFFLED,
    reference=PAPER,
    locator="Theorem 2, with the displacement factor corrected, and for batches",
    formula="delta(eps) = A (1 - B^n)/(n (1 - B))",
    assumes=_LINEAR,
    erratum="The limits of Theorems 3 and 4 are limits of this linear bound, not of the privacy of the run; the rate "
    "O(1/n) of Theorem 3 holds only for 2 L eta >= c D. That shuffling beats a random stop is true of the published "
    "bounds only: at its worst record the exact one equals this.",
    weakly_convex=True,
)
def product(run: ShuffledPass) -> Profile:
    """A random order averages over the number of later noisy steps that shrink the record's trace.

    >>> run = ShuffledPass(records=10, batch_size=1, sensitivity=1.0, noise=Noise.GAUSSIAN,
    ...                      scale=2.0, step_size=0.5, displacement=0.75, diameter=2.0)
    >>> round(product(run).profile(0.5), 10)
    -4.6855692513
    """
    return Profile(lambda epsilon: _mean(run, epsilon, _products))


@theorem(
    "shuffle.nonlinear",
    title="Shuffled pass, non-linear contraction",
    needs=(*BATCHES, *NOISY_STEP, *BOUNDED_STEP),
    algorithms=_SHUFFLED,
    reference="balle2019",
    locator="one step: Theorem 1 (2); iterated by dpcalc, averaged over positions",
    formula="delta(eps) = (1/n) (e_0 + ... + e_(n-1)), e_k = e_(k-1) h(ln(1 + (e^eps - 1)/e_(k-1)), r_B)",
    assumes=_LINEAR,
    slack=SLACK,
    slow=True,
    weakly_convex=True,
)
def nonlinear(run: ShuffledPass) -> Profile:
    """The non-linear recursion, averaged over positions.

    >>> run = ShuffledPass(records=10, batch_size=1, sensitivity=1.0, noise=Noise.GAUSSIAN,
    ...                      scale=2.0, step_size=0.5, displacement=0.75, diameter=2.0)
    >>> round(nonlinear(run).profile(0.5), 10)
    -5.1775927972
    """
    return Profile(lambda epsilon: _mean(run, epsilon, _walked))


@theorem(
    "shuffle.mixture",
    title="Shuffled pass, position mixture",
    needs=SMOOTH_SHUFFLE,
    algorithms=_SHUFFLED,
    reference="bok2024",
    locator="shift bound for each position, averaged",
    formula="delta(eps) = (1/n) sum_{k=1}^{n} delta_G(eps; mu_1/sqrt(k)), mu_1 = Delta/(b sigma)",
    conditions=(GAUSSIAN_NOISE, STEP_WITHIN),
    assumes=(RANDOM_ORDER, LIPSCHITZ_STEPS, "fresh Gaussian noise in every step", ONE_RELEASE),
    better_because="shuffle.product credits every later step with one worst-case contraction over the whole domain; "
    "shuffle.mixture lets the noise of all later steps add up, so that a record k steps from the end "
    "has mu/sqrt(k)",
)
def mixture(run: ShuffledPass) -> Profile:
    """At each position the noise of all later steps hides the record's shift; no bounded domain is needed.

    >>> run = ShuffledPass(records=10, batch_size=1, sensitivity=1.0, noise=Noise.GAUSSIAN,
    ...                    scale=2.0, step_size=0.5, smoothness=1.0)
    >>> round(mixture(run).profile(0.5), 10)
    -4.831092856
    """
    farthest = max(run.own_ratio(alike.divisor) for alike in run.layout.positions)
    return Profile(lambda epsilon: _mean(run, epsilon, _shifted), whole_mu=farthest)


def shifted_pass(plan: Layout, own: float, epsilon: float) -> float:
    """Return ln delta of `mixture` from the layout of the pass and r_A of its largest batch."""
    return _mean_of(
        plan, lambda divisor: Trace(Noise.GAUSSIAN, epsilon, _scaled(own, plan.size, divisor), 0.0), _shifted
    )


def _scaled(own: float, size: int, divisor: int) -> float:
    """Return r_A for a batch with this divisor, from r_A for a divisor of ``size``; rounded up."""
    return own if size == divisor else own * size / divisor * (1.0 + 4.0 * UNIT)


@theorem(
    "shuffle.laplace_mixture",
    title="Shuffled pass, position mixture for Laplace noise",
    needs=SMOOTH_SHUFFLE,
    algorithms=_SHUFFLED,
    reference="dpcalc",
    locator="Laplace noise as a Gaussian of random variance, averaged over positions",
    formula="delta(eps) = (1/n) int_0^n delta_G(eps; (Delta/v)/sqrt(2 g)) dg",
    conditions=(LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN),
    assumes=(RANDOM_ORDER, LIPSCHITZ_STEPS, "fresh Laplace noise in every step, one dimension", ONE_RELEASE),
    slack="up to 8 per cent near epsilon = Delta/(2 b v) and for few records; positive where epsilon >= Delta/(b v)",
)
def laplace_mixture(run: ShuffledPass) -> Profile:
    """The position mixture with each step's Laplace noise drawn as a Gaussian of exponential variance."""
    return Profile(lambda epsilon: _mean(run, epsilon, _laplace_shifted))


_ANY_STEP = (
    *NOISY_STEP, "step_size", "loss_class", "displacement?", "diameter?", "smoothness?", "strong_convexity?",
)  # fmt: skip


@theorem(
    "shuffle.hybrid",
    title="Shuffled pass, least of contraction and shift",
    needs=(*BATCHES, *_ANY_STEP, "dimension?"),
    algorithms=_SHUFFLED,
    reference="dpcalc",
    locator="average of the hybrid recursion over positions",
    formula="delta(eps) = (1/n) (e_0 + ... + e_(n-1)), e_k the least of the non-linear step and the shift bound; or, "
    "if less, the mean over positions of the shift bound whose steps contract each by its own factor",
    assumes=_WHERE_USED,
    slack=SLACK,
    slow=True,
    better_because="shuffle.hybrid takes, step by step, the smaller of the contraction that is left and of what the "
    "noise added up so far proves; shuffle.product has the first alone, and linearised",
    weakly_convex=True,
)
def hybrid(run: ShuffledPass) -> Profile:
    """The sharpest recursion, averaged over positions."""
    remainders, places = _sharpest(run), run.places if len(run.layout.positions) > 1 else None

    def log_delta(epsilon: float) -> float:
        mean = _mean(run, epsilon, remainders, shifts=True)
        return min(mean, once_log_delta(places, epsilon)) if places else mean

    return Profile(log_delta)


def _sharpest(run: ShuffledPass) -> Remainders:
    """Return the recursion, or with 1-Lipschitz maps the lesser of it and the shift bound."""
    gaussian = run.noise == Noise.GAUSSIAN
    if not (gaussian or run.dimension == 1) or not run.expands_nothing:
        return _walked
    shifted = _shifted if gaussian else _laplace_shifted

    def least(trace: Trace, terms: int, behind: Behind) -> float:
        return min(_walked(trace, terms, behind), shifted(trace, terms, behind))

    return least


# --- shuffled, and stopped at random ----------------------------------------------------------------------------------


def _over_square(log_sum: float, run: ShuffledPass) -> float:
    """Return ln of a sum over position and stopping time, divided by n^2 and rounded up."""
    if log_sum == -math.inf:
        return log_sum
    log_n = math.log(run.records)
    return min(0.0, log_sum - 2.0 * log_n + UNIT * (4.0 * abs(log_sum) + 8.0 * log_n + 4.0))


@theorem(
    "shuffle.stop_product",
    title="Shuffled and stopped at random, product of contraction coefficients",
    needs=("records", "batch_size", *NOISY_STEP, *BOUNDED_STEP),
    algorithms=("shuffled-stop",),
    reference="dpcalc",
    locator="average of Theorem 1 of Sordello, Bu and Dong over position and stopping time",
    formula="delta(eps) = A/(n^2 (1 - B)) (n - B (1 - B^n)/(1 - B))",
    conditions=(BATCHES_OF_ONE,),
    assumes=(*_LINEAR, _HALTED),
    weakly_convex=True,
)
def stop_product(run: ShuffledPass) -> Profile:
    """A random order and a random stop: the record may be used anywhere before the end, or not at all."""
    return Profile(
        lambda epsilon: _over_square(
            recursion.product_falling_sum(run.trace(epsilon, run.own_ratio(1)), run.records), run
        )
    )


@theorem(
    "shuffle.stop_hybrid",
    title="Shuffled and stopped at random, least of contraction and shift",
    needs=("records", "batch_size", *_ANY_STEP),
    algorithms=("shuffled-stop",),
    reference="dpcalc",
    locator="average of the hybrid recursion over position and stopping time",
    formula="delta(eps) = (1/n^2) sum_{k<n} (n - k) e_k",
    conditions=(BATCHES_OF_ONE,),
    assumes=(*_WHERE_USED, _HALTED),
    slack=SLACK,
    slow=True,
    weakly_convex=True,
)
def stop_hybrid(run: ShuffledPass) -> Profile:
    """The sharpest recursion, averaged over a random order and a random stop."""
    own = run.own_ratio(1)

    def profile(epsilon: float) -> float:
        return _over_square(recursion.total(run.shift_trace(epsilon, own), run.records, falling=True), run)

    return Profile(profile)


# --- limits of the tuned schedules ------------------------------------------------------------------------------------


def _log_twice(noise: Noise) -> float:
    """Return ln of C/C1: C is 2 C1 for Gaussian noise, C1 for Laplace noise."""
    return math.log(2.0) if noise == Noise.GAUSSIAN else 0.0


@theorem(
    "shuffle.limit",
    title="Limit of the product bound under the tuned schedule",
    needs=("noise", "c1", "c2"),
    kind="asymptotic",
    algorithms=("shuffled",),
    reference=PAPER,
    locator="Theorems 3 (Laplace) and 4 (Gaussian)",
    formula="delta* = (1 - e^-x)/x, x = C1 e^(eps/2) (Laplace) or 2 C1 e^(eps/2) (Gaussian)",
    assumes=(*_LINEAR, _TUNED),
    erratum=_LIMIT_ERRATUM,
    limit_of=("shuffle.product", 1e-8),
)
def limit(run: Setting) -> Profile:
    """The limit of the product bound as n grows along the schedule; no guarantee at any n.

    Rounded to no particular side.
    """

    def profile(epsilon: float) -> float:
        log_x = math.log(run.c1) + 0.5 * epsilon + _log_twice(run.noise)
        if log_x > 600.0:
            return -log_x
        x = math.exp(log_x)
        return math.log(-math.expm1(-x)) - log_x if x > 0.0 else 0.0

    return Profile(profile)


@theorem(
    "shuffle.nonlinear_limit",
    title="Limit of the non-linear bound under the tuned schedule",
    needs=("noise", "c1", "c2"),
    kind="asymptotic",
    algorithms=("shuffled",),
    reference="dpcalc",
    locator="the schedules of Theorems 3 and 4 with the non-linear recursion",
    formula="(1/C) (sqrt(g) - (g-1)/2 ln((sqrt(g)+1)/(sqrt(g)-1))), g = e^eps, C = C1 (Laplace) or 2 C1 (Gaussian)",
    assumes=(*_LINEAR, _TUNED),
    erratum=_LIMIT_ERRATUM + " With 1-Lipschitz steps the hybrid bound even tends to 0.",
    limit_of=("shuffle.nonlinear", 1e-2),
)
def nonlinear_limit(run: Setting) -> Profile:
    """The limit of the non-linear bound as n grows along the schedule; no guarantee at any n.

    Rounded to no particular side; 0 if C < ln((sqrt(g)+1)/(sqrt(g)-1)), for which the formula does not hold.
    """
    log_c = math.log(run.c1) + _log_twice(run.noise)

    def profile(epsilon: float) -> float:
        y = math.exp(-0.5 * epsilon)  # 1/sqrt(g)
        if y == 1.0 or log_c < math.log(2.0 * math.atanh(y)):
            return 0.0
        if y > 0.9:
            return math.log(1.0 / y - (1.0 / (y * y) - 1.0) * math.atanh(y)) - log_c
        # y times the sum of 2 y^(2j)/((2j+1)(2j+3)).
        series = math.fsum(2.0 * y ** (2 * j) / ((2 * j + 1) * (2 * j + 3)) for j in range(200))
        return -0.5 * epsilon + math.log(series) - log_c

    return Profile(profile)


class TunedRate(NamedTuple):
    """How fast the product bound nears its limit under the tuned schedule.

    Attributes:
        kappa: Delta eta/(c D). Below 1, the bound comes from below the limit (Laplace), or may start there (Gaussian).
        exponent: the difference falls as n^-exponent; None if it falls as 1/ln n.
    """

    kappa: float
    exponent: float | None


def tuned_rate(
    *, noise: Noise, sensitivity: float, step_size: float, displacement: float, diameter: float
) -> TunedRate:
    """Return how fast the product bound nears its limit under the tuned schedule (Theorem 3, corrected)."""
    kappa = sensitivity * step_size / (displacement * diameter) if displacement else math.inf
    return TunedRate(kappa, None if noise == Noise.GAUSSIAN else min(kappa, 1.0))
