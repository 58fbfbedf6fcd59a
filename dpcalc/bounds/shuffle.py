"""One pass in a random order: averages over where the record falls (Sordello, Bu and Dong, corrected and sharpened).

With e_k what is left of a record after k later steps, delta = (1/n) (e_0 + ... + e_{n-1}). The proof averages over
orders, so these bounds hold even if the order is published, and for a uniformly random rotation as well; the law of the
order must not depend on the data. For a secret order see `dpcalc.bounds.hidden_position`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from dpcalc.bounds import laplace, recursion
from dpcalc.bounds.contraction import (
    DISPLACED,
    DOMAIN,
    FRESH,
    LIPSCHITZ_STEPS,
    PAPER,
    SINGLE,
    expands_nothing,
    full_trace,
    later_ratio,
    own_ratio,
)
from dpcalc.bounds.hidden_position import public_position
from dpcalc.bounds.recursion import SLACK, Trace
from dpcalc.bounds.steps import GAUSSIAN_NOISE, LAPLACE_NOISE, ONE_DIMENSION, ONE_RELEASE, STEP_WITHIN
from dpcalc.numerics.floats import UNIT, quotient_up, up
from dpcalc.numerics.logspace import log_add_exp, log_expm1
from dpcalc.registry import bound

ORDER = "one pass in a uniformly random order (or rotation), drawn without looking at the data; it may be published"
_LINEAR = (ORDER, FRESH, DOMAIN, DISPLACED, ONE_RELEASE)
_WHERE_USED = (ORDER, FRESH, "where used: " + DOMAIN, "where used: " + LIPSCHITZ_STEPS, ONE_RELEASE)
_SHUFFLED = ("shuffled", "rotation")


class Layout(NamedTuple):
    """How n records fall into steps: ``full`` batches of ``size``, then a short one of ``short`` records (0: none).

    ``divisor`` is what the short batch's gradient sum is divided by.
    """

    records: int
    size: int
    full: int
    short: int
    divisor: int


def layout(records: int, batch_size: int, last_batch: str) -> Layout:
    """Return the layout of a pass; ``last_batch`` is own (divided by its own size), nominal or drop."""
    if batch_size >= records:
        nominal = last_batch == "nominal" and batch_size > records
        return Layout(records, batch_size if nominal else records, 1, 0, 0)
    full, short = divmod(records, batch_size)
    return Layout(
        records, batch_size, full, 0 if last_batch == "drop" else short, short if last_batch == "own" else batch_size
    )


def _in_pass(plan: Layout, trace: Trace, reach: float, left: Callable[[Trace, int, float | None], float]) -> float:
    """Return ln delta of a pass from ``left``.

    Args:
        plan: the layout.
        trace: of a record in a full batch.
        reach: diameter in units of a step's noise.
        left: (trace, terms, ratio) -> ln of e_0 + ... + e_{terms-1}, each after one more step of reach ``ratio`` where
            that is not None.
    """
    held = min(plan.size, plan.records)
    if not plan.short:
        return _shares((left(trace, plan.full, None), held, plan.records))
    own = trace.first * plan.size / plan.divisor * (1.0 + 4.0 * UNIT)
    share = plan.short / plan.divisor
    # Divided by the nominal size, the short batch takes a smaller step: (1 - s) identity + s times a full step's map.
    ratio = trace.following if share == 1.0 else up((1.0 - share) * reach + share * trace.following, 4.0)
    first = recursion.log_one_step(trace.noise, trace.epsilon, own)
    rest = left(trace, plan.full, ratio)
    return _shares((first, plan.short, plan.records), (rest, held, plan.records))


def _shares(*parts: tuple[float, int, int]) -> float:
    """Return ln of the sum of exp(value) numerator/denominator, rounded up and at most 0."""
    total = -math.inf
    for value, numerator, denominator in parts:
        total = log_add_exp(total, value + math.log(numerator) - math.log(denominator))
    if total == -math.inf:
        return total
    return min(0.0, total + UNIT * (4.0 * abs(total) + 8.0 * math.log(parts[0][2] + 1) + 8.0))


def _product_left(trace: Trace, terms: int, ratio: float | None) -> float:
    value = recursion.product_sum(trace, terms)
    return value if ratio is None else value + recursion.log_one_step(trace.noise, trace.epsilon, ratio)


def _walked(trace: Trace, terms: int, ratio: float | None) -> float:
    if ratio is None:
        return recursion.total(trace, terms)
    gap = log_expm1(trace.epsilon)

    def after(log_e: float) -> float:
        return recursion.log_one_step(trace.noise, recursion.shrunk_epsilon(gap, log_e), ratio)

    return recursion.total(trace, terms, weight=after)


def _linear(
    noise: str, scale: float, sensitivity: float, size: int, step_size: float, displacement: float, diameter: float,
    epsilon: float,
) -> tuple[Trace, float]:  # fmt: skip
    trace = Trace(
        noise, epsilon, own_ratio(sensitivity, scale, size), later_ratio(displacement, diameter, step_size, scale)
    )
    return trace, quotient_up((diameter,), (step_size, scale))


@bound(
    "shuffle.product",
    title="Shuffled pass, product of contraction coefficients",
    gives="log_delta",
    algorithms=_SHUFFLED,
    reference=PAPER,
    locator="Theorem 2, with the displacement factor corrected, and for batches",
    formula="delta(eps) = A (1 - B^n)/(n (1 - B))",
    assumes=_LINEAR,
    erratum="The limits of Theorems 3 and 4 are limits of this linear bound, not of the privacy of the run; the rate "
    "O(1/n) of Theorem 3 holds only for 2 L eta >= c D. That shuffling beats a random stop is true of the published "
    "bounds only: at its worst record the exact one equals this.",
)
def product(
    *, records: int, batch_size: int, last_batch: str, sensitivity: float, noise: str, scale: float, step_size: float,
    displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """A random order averages over how many later noisy steps shrink what the record left.

    Args:
        records, batch_size: n and b, records per step.
        last_batch: a short last batch: ``own`` (divided by its own size), ``nominal`` or ``drop``.
        sensitivity: gradient sensitivity Delta >= 0.
        noise, scale: ``gaussian`` and its standard deviation, or ``laplace`` and its scale > 0.
        step_size: eta > 0.
        displacement, diameter: c >= 0 and D > 0.
        epsilon: >= 0.

    Returns:
        ln delta, rounded up; -inf where it is 0.
    """
    plan = layout(records, batch_size, last_batch)
    trace, reach = _linear(noise, scale, sensitivity, plan.size, step_size, displacement, diameter, epsilon)
    return _in_pass(plan, trace, reach, _product_left)


def loss_atom(*, noise: str, own: float, following: float, terms: int) -> float:
    """Return the probability of a privacy loss of exactly 0 for the curve of `product`: 1 - delta(0) + 2 delta'(0+).

    Args:
        noise: ``gaussian`` or ``laplace``.
        own, following: distances r_A and r_B of the own and of every later step, in units of the noise.
        terms: n; evaluated one by one.
    """

    def at_zero(ratio: float) -> tuple[float, float]:
        if noise == "laplace":
            return -math.expm1(-0.5 * ratio), -0.5 * math.exp(-0.5 * ratio)
        told = math.erf(0.5 * ratio * math.sqrt(0.5))
        return told, -0.5 * (1.0 - told)

    (a, slope_a), (b, slope_b) = at_zero(own), at_zero(following)
    mean = math.fsum(b**k for k in range(terms)) / terms
    slope = math.fsum(k * b ** (k - 1) for k in range(1, terms)) / terms * slope_b
    return 1.0 - a * mean + 2.0 * (slope_a * mean + a * slope)


@bound(
    "shuffle.nonlinear",
    title="Shuffled pass, non-linear contraction",
    gives="log_delta",
    algorithms=_SHUFFLED,
    reference="dpcalc",
    locator="average of the non-linear recursion over positions",
    formula="delta(eps) = (1/n) (e_0 + ... + e_(n-1)), e_k = e_(k-1) h(ln(1 + (e^eps - 1)/e_(k-1)), r_B)",
    assumes=_LINEAR,
    slack=SLACK,
    coarse=True,
)
def nonlinear(
    *, records: int, batch_size: int, last_batch: str, sensitivity: float, noise: str, scale: float, step_size: float,
    displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """The average over positions of what the non-linear recursion leaves of the record.

    Args:
        records, batch_size, last_batch, sensitivity, noise, scale, step_size, displacement, diameter, epsilon: as in
            `product`.

    Returns:
        ln delta, rounded up.
    """
    plan = layout(records, batch_size, last_batch)
    trace, reach = _linear(noise, scale, sensitivity, plan.size, step_size, displacement, diameter, epsilon)
    return _in_pass(plan, trace, reach, _walked)


@bound(
    "shuffle.mixture",
    title="Shuffled pass, position mixture",
    gives="log_delta",
    algorithms=_SHUFFLED,
    reference="bok2024",
    locator="shift bound for each position, averaged",
    formula="delta(eps) = (1/n) sum_{k=1}^{n} delta_G(eps; mu_1/sqrt(k)), mu_1 = Delta/(b sigma)",
    requires=(GAUSSIAN_NOISE, STEP_WITHIN),
    assumes=(ORDER, LIPSCHITZ_STEPS, "fresh Gaussian noise in every step", ONE_RELEASE),
)
def mixture(
    *, records: int, batch_size: int, last_batch: str, sensitivity: float, noise: str, scale: float, step_size: float,
    smoothness: float, epsilon: float,
) -> float:  # fmt: skip
    """At each position the noise of all later steps hides the record's shift; no bounded domain is needed.

    Args:
        records, batch_size, last_batch, sensitivity, noise, scale, step_size, epsilon: as in `product`.
        smoothness: beta, with step_size <= 2/smoothness.

    Returns:
        ln delta, rounded up; cost does not grow with records.
    """
    plan = layout(records, batch_size, last_batch)
    trace = Trace("gaussian", epsilon, own_ratio(sensitivity, scale, plan.size), 0.0)
    return _in_pass(plan, trace, 0.0, _positions)


def _positions(trace: Trace, terms: int, ratio: float | None) -> float:
    """Return ln of the sum over positions of the Gaussian shift bound with 1-Lipschitz maps."""
    value = public_position(steps=terms, after=0 if ratio is None else 1, ratio=trace.first, epsilon=trace.epsilon)
    return value + math.log(terms) * (1.0 + 2.0 * UNIT)


@bound(
    "shuffle.laplace_mixture",
    title="Shuffled pass, position mixture for Laplace noise",
    gives="log_delta",
    algorithms=_SHUFFLED,
    reference="dpcalc",
    locator="Laplace noise as a Gaussian of random variance, averaged over positions",
    formula="delta(eps) = (1/n) int_0^n delta_G(eps; (Delta/v)/sqrt(2 g)) dg",
    requires=(LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN),
    assumes=(ORDER, LIPSCHITZ_STEPS, "fresh Laplace noise in every step, one dimension", ONE_RELEASE),
    slack="up to 8 per cent near epsilon = Delta/(2 b v) and for few records; positive where epsilon >= Delta/(b v)",
)
def laplace_mixture(
    *, records: int, batch_size: int, last_batch: str, sensitivity: float, noise: str, scale: float, step_size: float,
    smoothness: float, epsilon: float,
) -> float:  # fmt: skip
    """The position mixture with each step's Laplace noise drawn as a Gaussian of exponential variance.

    Args:
        records, batch_size, last_batch, sensitivity, noise, scale, step_size, epsilon: as in `product`.
        smoothness: beta, with step_size <= 2/smoothness.

    Returns:
        ln delta, rounded up.
    """
    plan = layout(records, batch_size, last_batch)
    trace = Trace("laplace", epsilon, own_ratio(sensitivity, scale, plan.size), 0.0)
    return _in_pass(plan, trace, 0.0, _laplace_positions)


def _laplace_positions(trace: Trace, terms: int, ratio: float | None) -> float:
    """Return ln of the sum of the Laplace shift bounds; the step behind a short batch is not made use of."""
    return laplace.mixture_sum(ratio=trace.first, terms=terms, epsilon=trace.epsilon)


@bound(
    "shuffle.hybrid",
    title="Shuffled pass, least of contraction and shift",
    gives="log_delta",
    algorithms=_SHUFFLED,
    reference="dpcalc",
    locator="average of the hybrid recursion over positions",
    formula="delta(eps) = (1/n) (e_0 + ... + e_(n-1)), e_k the least of the non-linear step and the shift bound",
    assumes=_WHERE_USED,
    slack=SLACK,
    coarse=True,
)
def hybrid(
    *, records: int, batch_size: int, last_batch: str, sensitivity: float, noise: str, scale: float, step_size: float,
    loss_class: str, epsilon: float, displacement: float | None = None, diameter: float = math.inf,
    smoothness: float | None = None, strong_convexity: float = 0.0, dimension: int = 1,
) -> float:  # fmt: skip
    """The average over positions of what the sharpest recursion leaves of the record.

    Args:
        records, batch_size, last_batch, sensitivity, noise, scale, step_size, epsilon: as in `product`.
        loss_class: see `dpcalc.spec.loss`.
        displacement, diameter: of a bounded domain, if any.
        smoothness, strong_convexity: of smooth losses, if they are.
        dimension: of the parameter; the shift bound for Laplace noise needs 1.

    Returns:
        ln delta, rounded up.
    """
    plan = layout(records, batch_size, last_batch)
    trace = full_trace(
        noise=noise, scale=scale, sensitivity=sensitivity, size=plan.size, step_size=step_size,
        displacement=displacement, diameter=diameter, loss_class=loss_class, smoothness=smoothness,
        strong_convexity=strong_convexity, epsilon=epsilon,
    )  # fmt: skip
    shifts = expands_nothing(loss_class, step_size, smoothness)

    def left(trace: Trace, terms: int, ratio: float | None) -> float:
        found = _walked(trace, terms, ratio)
        if shifts and noise == "gaussian":
            return min(found, _positions(trace, terms, ratio))
        return min(found, _laplace_positions(trace, terms, ratio)) if shifts and dimension == 1 else found

    reach = quotient_up((diameter,), (step_size, scale)) if math.isfinite(diameter) else math.inf
    return _in_pass(plan, trace, reach, left)


# --- shuffled, and stopped at random ----------------------------------------------------------------------------------

_BOTH = "shuffled-stop"
_HALTED = "the pass stops after a uniformly random number of steps"


def _over_square(log_sum: float, records: int) -> float:
    if log_sum == -math.inf:
        return log_sum
    value = log_sum - 2.0 * math.log(records)
    return min(0.0, value + UNIT * (4.0 * abs(log_sum) + 8.0 * math.log(records) + 4.0))


@bound(
    "shuffle.stop_product",
    title="Shuffled and stopped at random, product of contraction coefficients",
    gives="log_delta",
    algorithms=(_BOTH,),
    reference="dpcalc",
    locator="average of Theorem 1 of Sordello, Bu and Dong over position and stopping time",
    formula="delta(eps) = A/(n^2 (1 - B)) (n - B (1 - B^n)/(1 - B))",
    requires=(SINGLE,),
    assumes=(*_LINEAR, _HALTED),
)
def stop_product(
    *, records: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """A random order and a random stop: the record may not be used at all, or anywhere before the end.

    Args:
        records, batch_size, sensitivity, noise, scale, step_size, displacement, diameter, epsilon: as in `product`,
            with single records.

    Returns:
        ln delta, rounded up.
    """
    trace, _ = _linear(noise, scale, sensitivity, 1, step_size, displacement, diameter, epsilon)
    return _over_square(recursion.product_falling_sum(trace, records), records)


@bound(
    "shuffle.stop_hybrid",
    title="Shuffled and stopped at random, least of contraction and shift",
    gives="log_delta",
    algorithms=(_BOTH,),
    reference="dpcalc",
    locator="average of the hybrid recursion over position and stopping time",
    formula="delta(eps) = (1/n^2) sum_{k<n} (n - k) e_k",
    requires=(SINGLE,),
    assumes=(*_WHERE_USED, _HALTED),
    slack=SLACK,
    coarse=True,
)
def stop_hybrid(
    *, records: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float, loss_class: str,
    epsilon: float, displacement: float | None = None, diameter: float = math.inf, smoothness: float | None = None,
    strong_convexity: float = 0.0,
) -> float:  # fmt: skip
    """A random order and a random stop, averaged over what the sharpest recursion leaves of the record.

    Args:
        records, batch_size, sensitivity, noise, scale, step_size, loss_class, epsilon, displacement, diameter,
            smoothness, strong_convexity: as in `hybrid`, with single records.

    Returns:
        ln delta, rounded up.
    """
    trace = full_trace(
        noise=noise, scale=scale, sensitivity=sensitivity, size=1, step_size=step_size, displacement=displacement,
        diameter=diameter, loss_class=loss_class, smoothness=smoothness, strong_convexity=strong_convexity,
        epsilon=epsilon,
    )  # fmt: skip
    return _over_square(recursion.total(trace, records, falling=True), records)


# --- limits of the tuned schedules ------------------------------------------------------------------------------------

_TUNED = "the noise follows the schedule tuned to n, and n grows without bound"
_LIMIT_ERRATUM = (
    "The paper states delta = delta* + O(.) for n large enough. delta* is the limit of a linear bound as n grows; at "
    "its own Figure 2 the bound at n is above delta* for every n, and no finite run is covered by it."
)


@bound(
    "shuffle.limit",
    title="Limit of the product bound under the tuned schedule",
    gives="log_delta",
    kind="asymptotic",
    algorithms=("shuffled",),
    reference=PAPER,
    locator="Theorems 3 (Laplace) and 4 (Gaussian)",
    formula="delta* = (1 - e^-x)/x, x = C1 e^(eps/2) (Laplace) or 2 C1 e^(eps/2) (Gaussian)",
    assumes=(*_LINEAR, _TUNED),
    erratum=_LIMIT_ERRATUM,
)
def limit(*, noise: str, c1: float, c2: float, epsilon: float) -> float:
    """Where the product bound tends as the schedule is followed to larger n; no guarantee at any n.

    Args:
        noise: ``gaussian`` or ``laplace``.
        c1, c2: constants of the schedule; the limit does not depend on C2.
        epsilon: >= 0.

    Returns:
        ln delta*, to rounding.
    """
    log_x = math.log(c1) + 0.5 * epsilon + (math.log(2.0) if noise == "gaussian" else 0.0)
    if log_x > 600.0:
        return -log_x
    x = math.exp(log_x)
    return math.log(-math.expm1(-x)) - log_x if x > 0.0 else 0.0


@bound(
    "shuffle.nonlinear_limit",
    title="Limit of the non-linear bound under the tuned schedule",
    gives="log_delta",
    kind="asymptotic",
    algorithms=("shuffled",),
    reference="dpcalc",
    locator="the schedules of Theorems 3 and 4 with the non-linear recursion",
    formula="(1/C) (sqrt(g) - (g-1)/2 ln((sqrt(g)+1)/(sqrt(g)-1))), g = e^eps, C = C1 (Laplace) or 2 C1 (Gaussian)",
    assumes=(*_LINEAR, _TUNED),
    erratum=_LIMIT_ERRATUM + " With 1-Lipschitz steps the hybrid bound even tends to 0.",
)
def nonlinear_limit(*, noise: str, c1: float, c2: float, epsilon: float) -> float:
    """Where the non-linear bound tends as the schedule is followed to larger n; no guarantee at any n.

    Args:
        noise, c1, c2, epsilon: as in `limit`; C must be at least ln((sqrt(g)+1)/(sqrt(g)-1)).

    Returns:
        ln of the limit, to rounding; 0 where the formula does not apply.
    """
    log_c = math.log(c1) + (math.log(2.0) if noise == "gaussian" else 0.0)
    y = math.exp(-0.5 * epsilon)
    if y == 1.0 or log_c < math.log(2.0 * math.atanh(y)):
        return 0.0
    if y > 0.9:
        inner = 1.0 / y - (1.0 / (y * y) - 1.0) * math.atanh(y)
        return math.log(inner) - log_c
    # In y = e^(-eps/2): y times the sum of 2 y^(2j)/((2j+1)(2j+3)).
    series = math.fsum(2.0 * y ** (2 * j) / ((2 * j + 1) * (2 * j + 3)) for j in range(200))
    return -0.5 * epsilon + math.log(series) - log_c


def tuned_rate(*, noise: str, sensitivity: float, step_size: float, displacement: float, diameter: float) -> str:
    """Return how fast the product bound nears its limit under the tuned schedule, in words (Theorem 3, corrected)."""
    kappa = sensitivity * step_size / (displacement * diameter) if displacement else math.inf
    shown = f"kappa = Delta eta/(c D) = {kappa:.4g}"
    if noise == "gaussian":
        return "its product bound nears the limit delta* from above in the end, as slowly as 1/ln n" + (
            f", but may start far below it ({shown} < 1)" if kappa < 1.0 else ""
        )
    if kappa >= 1.0:
        return f"its product bound nears the limit delta* as 1/n ({shown} >= 1)"
    return (
        f"its product bound nears the limit delta* from below, as n^-{kappa:.4g}, not as 1/n as printed ({shown} < 1)"
    )
