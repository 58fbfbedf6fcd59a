"""Contraction of the hockey-stick divergence along one fixed-order pass, and along one stopped at random.

After Asoodeh, Diaz and Calmon, and Sordello, Bu and Dong; corrected and sharpened. h(eps, r) is the hockey-stick
divergence of the noise at distance r (`dpcalc.bounds.recursion.log_one_step`). For the record at position i of n,

    A = h(eps, Delta/scale),   B = h(eps, c D/(eta scale)),   k = n - i later steps,

with D the diameter of the domain and c the displacement factor (`dpcalc.spec.loss`). Noise is Gaussian in any
dimension, or Laplace: one-dimensional, or of independent coordinates with the Lipschitz constant in the 1-norm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpcalc.bounds import laplace, recursion
from dpcalc.bounds.recursion import SLACK, Trace
from dpcalc.bounds.steps import (
    FIXED_ORDER,
    GAUSSIAN_NOISE,
    INDEX_IN_RANGE,
    LAPLACE_NOISE,
    LIPSCHITZ,
    ONE_DIMENSION,
    ONE_RELEASE,
    STEP_WITHIN,
    batch_of,
)
from dpcalc.numerics.floats import UNIT, quotient_up, ratio_up, up
from dpcalc.registry import Requirement, bound
from dpcalc.spec import loss

PAPER = "sordello2021"
FRESH = (
    "fresh Gaussian or Laplace noise in every step, w - step_size (gradient + Z); for Laplace noise in several "
    "dimensions lipschitz is in the 1-norm"
)
DOMAIN = "iterates are projected onto a set of the given diameter"
DISPLACED = "the losses are of the stated class, which bounds how far a step leaves two points of the set"
LIPSCHITZ_STEPS = "the losses are smooth, and convex where so stated, so that every step's map is Lipschitz"
_LINEAR = (FIXED_ORDER, FRESH, DOMAIN, DISPLACED, ONE_RELEASE)


def ratios(
    *, sensitivity: float, scale: float, size: int = 1, displacement: float, diameter: float, step_size: float
) -> tuple[float, float]:
    """Return (r_A, r_B), rounded up: the own step's and the later steps' distances in units of their noise."""
    return own_ratio(sensitivity, scale, size), later_ratio(displacement, diameter, step_size, scale)


def own_ratio(sensitivity: float, scale: float, size: int = 1) -> float:
    """Return r_A = Delta/(b scale), rounded up."""
    return quotient_up((sensitivity,), (float(size), scale)) if sensitivity > 0.0 else 0.0


def later_ratio(displacement: float | None, diameter: float, step_size: float, scale: float) -> float:
    """Return r_B = c D/(eta scale), rounded up; inf where the domain is unbounded or the displacement unknown."""
    if displacement is None or math.isinf(diameter):
        return math.inf
    if displacement == 0.0:
        return 0.0
    return max(5e-324, quotient_up((displacement, diameter), (step_size, scale)))


def log_first(*, noise: str, epsilon: float, sensitivity: float, scale: float) -> float:
    """Return ln A, rounded up."""
    return recursion.log_one_step(noise, epsilon, own_ratio(sensitivity, scale))


def log_factor(
    *, noise: str, epsilon: float, displacement: float, diameter: float, step_size: float, scale: float
) -> float:
    """Return ln B, rounded up."""
    return recursion.log_one_step(noise, epsilon, later_ratio(displacement, diameter, step_size, scale))


def complement_leading(*, epsilon: float, ratio: float) -> float:
    """Return ln of the leading term of 1 - h for Gaussian noise as r grows: e^(eps/2 - r^2/8) 4/(r sqrt(2 pi)).

    Asymptotic only (Lemma 5 of Sordello et al.); the next factor is 1 - (4 + eps^2/2)/r^2.
    """
    return 0.5 * epsilon - 0.125 * ratio * ratio + math.log(4.0 / ratio) - 0.9189385332046728


def _linear_trace(
    noise: str, scale: float, sensitivity: float, size: int, step_size: float, displacement: float, diameter: float,
    epsilon: float,
) -> Trace:  # fmt: skip
    a, b = ratios(
        sensitivity=sensitivity, scale=scale, size=size, displacement=displacement, diameter=diameter,
        step_size=step_size,
    )  # fmt: skip
    return Trace(noise, epsilon, a, b)


def full_trace(
    *, noise: str, scale: float, sensitivity: float, size: int, step_size: float, displacement: float | None,
    diameter: float, loss_class: str, smoothness: float | None, strong_convexity: float, epsilon: float,
) -> Trace:  # fmt: skip
    """Return the trace with whatever is known: the reach of later steps, the Gaussian shift bound, or both."""
    rate = loss.rate(
        loss_class=loss_class, step_size=step_size, smoothness=smoothness, strong_convexity=strong_convexity
    )
    return recursion.shift_trace(
        noise=noise,
        epsilon=epsilon,
        first=own_ratio(sensitivity, scale, size),
        following=later_ratio(displacement, diameter, step_size, scale),
        reach=ratio_up(diameter, step_size * scale) if math.isfinite(diameter) else math.inf,
        rate=rate,
    )


# --- fixed order ------------------------------------------------------------------------------------------------------


@bound(
    "contraction.product",
    title="Product of contraction coefficients",
    gives="log_delta",
    algorithms=("pnsgd",),
    reference=PAPER,
    locator="Theorem 1, with the displacement factor corrected",
    formula="delta(eps) = A B^k",
    requires=(INDEX_IN_RANGE,),
    assumes=_LINEAR,
    erratum="The paper's factor M = sqrt(1 - 2 eta beta rho/(beta + rho)) is used for every step size. It is false "
    "past eta = 2/(beta + rho): for beta = 1, rho = 0.5, eta = 1.45 on [0, 1] with sigma = 0.1 it gives delta(0) = "
    "0.471 where the truth is 0.879. The factor used here holds for every step size and is never larger.",
)
def product(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """Every later noisy step on a bounded domain shrinks what the record left by the same factor.

    Args:
        records, index, batch_size: n, the record's 1-based position, records per step (a short last batch counts at
            its own size).
        sensitivity: gradient sensitivity Delta >= 0.
        noise, scale: ``gaussian`` and its standard deviation, or ``laplace`` and its scale > 0.
        step_size: eta > 0.
        displacement, diameter: c >= 0 and D > 0.
        epsilon: >= 0.

    Returns:
        ln delta, rounded up; -inf where it is 0.
    """
    size, steps = batch_of(records, index, batch_size)
    trace = _linear_trace(noise, scale, sensitivity, size, step_size, displacement, diameter, epsilon)
    return recursion.product_last(trace, steps - 1)


def _within_published(values: Mapping[str, Any]) -> tuple[str, str] | None:
    beta, rho, eta = values.get("smoothness"), values.get("strong_convexity"), values.get("step_size")
    if values.get("loss_class") != "convex-smooth":
        return "its factor M speaks of convex smooth losses", "give --loss-class convex-smooth, if they are"
    if beta is not None and eta is not None and loss.exceeds_two(eta, beta, rho or 0.0):
        return (
            f"step size {eta:g} exceeds 2/(smoothness + strong_convexity) = {2.0 / (beta + (rho or 0.0)):g}, past "
            "which its factor M is false",
            f"use --step-size <= {2.0 / (beta + (rho or 0.0)):g}, or contraction.product, which holds beyond",
        )
    return None


@bound(
    "contraction.paper_product",
    title="Product of contraction coefficients with the paper's factor",
    gives="log_delta",
    algorithms=("pnsgd",),
    reference=PAPER,
    locator="Theorem 1, where its factor M holds",
    formula="delta(eps) = A B^k, c = M = sqrt(1 - 2 eta beta rho/(beta + rho)), eta <= 2/(beta + rho)",
    requires=(INDEX_IN_RANGE, Requirement("step_size <= 2/(smoothness + strong_convexity)", _within_published)),
    assumes=_LINEAR,
)
def paper_product(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    smoothness: float, strong_convexity: float, diameter: float, epsilon: float, dimension: int = 1,
) -> float:  # fmt: skip
    """The product with the paper's displacement factor, which is never below the one used elsewhere.

    Args:
        records, index, batch_size, sensitivity, noise, scale, step_size, diameter, epsilon: as in `product`.
        smoothness, strong_convexity: beta >= rho >= 0.
        dimension: of the parameter, for Laplace noise.

    Returns:
        ln delta, rounded up.
    """
    factor = loss.published_factor(step_size=step_size, smoothness=smoothness, strong_convexity=strong_convexity)
    if noise == "laplace":
        factor = up(factor * math.sqrt(dimension), 4.0)
    size, steps = batch_of(records, index, batch_size)
    trace = _linear_trace(noise, scale, sensitivity, size, step_size, factor, diameter, epsilon)
    return recursion.product_last(trace, steps - 1)


@bound(
    "contraction.nonlinear",
    title="Non-linear contraction",
    gives="log_delta",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="non-linear data processing for the hockey-stick divergence",
    formula="e_0 = A, e_k = e_(k-1) h(ln(1 + (e^eps - 1)/e_(k-1)), r_B)",
    requires=(INDEX_IN_RANGE,),
    assumes=_LINEAR,
    slack=SLACK,
    coarse=True,
)
def nonlinear(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """What is left of the record becomes harder to see the smaller it is: each step shrinks it by more than the last.

    Args:
        records, index, batch_size, sensitivity, noise, scale, step_size, displacement, diameter, epsilon: as in
            `product`.

    Returns:
        ln delta, rounded up; -inf where it is 0 (Laplace noise, after finitely many steps).
    """
    size, steps = batch_of(records, index, batch_size)
    trace = _linear_trace(noise, scale, sensitivity, size, step_size, displacement, diameter, epsilon)
    return recursion.last(trace, steps - 1)


@bound(
    "contraction.shift",
    title="Shift bound, mu-GDP",
    gives="mu",
    algorithms=("pnsgd",),
    reference="bok2024",
    locator="shifted interpolation for one use, from the record's step or from the diameter behind it",
    formula="mu^2 = min(r_A^2/(1 + S), (D/(eta sigma))^2/S), S = c^-2 + ... + c^(-2k)",
    requires=(INDEX_IN_RANGE, GAUSSIAN_NOISE, LIPSCHITZ),
    assumes=(FIXED_ORDER, LIPSCHITZ_STEPS, "fresh Gaussian noise in every step", ONE_RELEASE),
)
def shift(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    loss_class: str, smoothness: float, strong_convexity: float, diameter: float = math.inf,
) -> float:  # fmt: skip
    """Lipschitz steps let the noise of all later steps hide the record's shift together; no bounded domain is needed.

    Args:
        records, index, batch_size, sensitivity, noise, scale, step_size: as in `product`.
        loss_class: ``convex-smooth`` or ``smooth``.
        smoothness, strong_convexity: beta >= rho >= 0; the factor c may exceed 1.
        diameter: D of the domain, if bounded.

    Returns:
        mu, rounded up.
    """
    size, steps = batch_of(records, index, batch_size)
    rate = loss.rate(
        loss_class=loss_class, step_size=step_size, smoothness=smoothness, strong_convexity=strong_convexity
    )
    assert rate is not None
    reach = ratio_up(diameter, step_size * scale) if math.isfinite(diameter) else math.inf
    log_mu = recursion.shift_log_mu(max(own_ratio(sensitivity, scale, size), 5e-324), reach, rate, steps - 1)
    return shift_mu(log_mu)


def shift_mu(log_mu: float) -> float:
    """Return the GDP parameter from its logarithm, rounded up (the smallest positive double where it underflows)."""
    if log_mu > 709.0:
        return math.inf
    return max(5e-324, up(math.exp(max(log_mu, -745.0)), 4.0 + min(abs(log_mu), 745.0)))


@bound(
    "contraction.laplace_shift",
    title="Laplace shift bound by optimal composition",
    gives="log_delta",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="shifted interpolation, each step's share being pure privacy; composition of Kairouz, Oh and Viswanath",
    formula="delta(eps) = composition of k+1 mechanisms of epsilon Delta/(v (k+1)); least over fewer steps",
    requires=(INDEX_IN_RANGE, LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN),
    assumes=(FIXED_ORDER, LIPSCHITZ_STEPS, "fresh Laplace noise in every step, one dimension", ONE_RELEASE),
)
def laplace_shift(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    smoothness: float, epsilon: float,
) -> float:  # fmt: skip
    """Spread evenly over all later steps, the record's shift costs each a little pure privacy, composed exactly.

    Args:
        records, index, batch_size, sensitivity, noise, scale, step_size, epsilon: as in `product`.
        smoothness: beta, with step_size <= 2/smoothness.

    Returns:
        ln delta, rounded up; -inf where it is 0.
    """
    size, steps = batch_of(records, index, batch_size)
    return laplace.composed(ratio=own_ratio(sensitivity, scale, size), later=steps - 1, epsilon=epsilon)


@bound(
    "contraction.laplace_mixture",
    title="Laplace shift bound by mixtures of Gaussians",
    gives="log_delta",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="Laplace noise as a Gaussian of random variance, the Gaussian shift bound for each draw",
    formula="delta(eps) = E delta_G(eps; (Delta/v)/sqrt(2 G)), G ~ Gamma(k+1)",
    requires=(INDEX_IN_RANGE, LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN),
    assumes=(FIXED_ORDER, LIPSCHITZ_STEPS, "fresh Laplace noise in every step, one dimension", ONE_RELEASE),
)
def laplace_mixture(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    smoothness: float, epsilon: float,
) -> float:  # fmt: skip
    """Laplace noise is Gaussian noise whose variance is drawn first; published, the draws leave Gaussian shift bounds.

    Args:
        records, index, batch_size, sensitivity, noise, scale, step_size, epsilon: as in `product`.
        smoothness: beta, with step_size <= 2/smoothness.

    Returns:
        ln delta, rounded up.
    """
    size, steps = batch_of(records, index, batch_size)
    return laplace.mixture(ratio=own_ratio(sensitivity, scale, size), later=steps - 1, epsilon=epsilon)


@bound(
    "contraction.hybrid",
    title="Least of contraction and shift, step by step",
    gives="log_delta",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="the non-linear recursion, restarted wherever the shift bound is smaller",
    formula="e_k = min(e_(k-1) h(ln(1 + (e^eps - 1)/e_(k-1)), r_B), shift bound at k)",
    requires=(INDEX_IN_RANGE,),
    assumes=(*_LINEAR[:2], "where used: " + DOMAIN, "where used: " + LIPSCHITZ_STEPS, ONE_RELEASE),
    slack=SLACK,
    coarse=True,
)
def hybrid(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    loss_class: str, epsilon: float, displacement: float | None = None, diameter: float = math.inf,
    smoothness: float | None = None, strong_convexity: float = 0.0, dimension: int = 1,
) -> float:  # fmt: skip
    """Both bounds hold of the same number at every step, so the smaller of the two may go into the next.

    Args:
        records, index, batch_size, sensitivity, noise, scale, step_size, epsilon: as in `product`.
        loss_class: see `dpcalc.spec.loss`.
        displacement, diameter: of a bounded domain, if any.
        smoothness, strong_convexity: of smooth losses, if they are.
        dimension: of the parameter; the shift bound for Laplace noise needs 1.

    Returns:
        ln delta, rounded up.
    """
    size, steps = batch_of(records, index, batch_size)
    trace = full_trace(
        noise=noise, scale=scale, sensitivity=sensitivity, size=size, step_size=step_size, displacement=displacement,
        diameter=diameter, loss_class=loss_class, smoothness=smoothness, strong_convexity=strong_convexity,
        epsilon=epsilon,
    )  # fmt: skip
    if noise == "laplace":
        shifts = dimension == 1 and expands_nothing(loss_class, step_size, smoothness)
        return laplace.hybrid_last(trace, steps - 1, shifts=shifts)
    return recursion.last(trace, steps - 1)


def expands_nothing(loss_class: str, step_size: float, smoothness: float | None) -> bool:
    """Return whether every step's map is 1-Lipschitz: convex smooth losses, step_size <= 2/smoothness."""
    return loss_class == "convex-smooth" and smoothness is not None and not loss.exceeds_two(step_size, smoothness)


# --- random stop ----------------------------------------------------------------------------------------------------

STOPPED = "the pass stops after a uniformly random number of steps"
_STOP = (FIXED_ORDER, STOPPED, FRESH, DOMAIN, DISPLACED, ONE_RELEASE)


def _batches_of_one(values: Mapping[str, Any]) -> tuple[str, str] | None:
    b = values.get("batch_size")
    return (f"batch size is {b}; this theorem is for single records", "use --batch-size 1") if b != 1 else None


SINGLE = Requirement("batch_size = 1", _batches_of_one)


@bound(
    "contraction.stop_product",
    title="Random stop, product of contraction coefficients",
    gives="log_delta",
    algorithms=("stop",),
    reference=PAPER,
    locator="the random stop of Asoodeh et al. with the exact numerator",
    formula="delta(eps) = A (1 - B^(k+1))/(n (1 - B))",
    requires=(INDEX_IN_RANGE, SINGLE),
    assumes=_STOP,
)
def stop_product(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """Stopping at a random step averages over how many later steps shrink the record, or if it is used at all.

    Args:
        records, index, batch_size, sensitivity, noise, scale, step_size, displacement, diameter, epsilon: as in
            `product`, with single records.

    Returns:
        ln delta, rounded up; it holds even if the stopping time is published.
    """
    trace = _linear_trace(noise, scale, sensitivity, 1, step_size, displacement, diameter, epsilon)
    return averaged(recursion.product_sum(trace, records + 1 - index), records)


def averaged(log_sum: float, count: int) -> float:
    """Return ln(sum/count), rounded up and at most 0."""
    if log_sum == -math.inf:
        return log_sum
    value = log_sum - math.log(count)
    return min(0.0, value + UNIT * (2.0 * abs(value) + 2.0 * math.log(count)))


@bound(
    "contraction.stop_nonlinear",
    title="Random stop, non-linear contraction",
    gives="log_delta",
    algorithms=("stop",),
    reference="dpcalc",
    locator="average of the non-linear recursion over the stopping time",
    formula="delta(eps) = (1/n) (e_0 + ... + e_k)",
    requires=(INDEX_IN_RANGE, SINGLE),
    assumes=_STOP,
    slack=SLACK,
    coarse=True,
)
def stop_nonlinear(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """The average over the stopping time of what the non-linear recursion leaves of the record.

    Args:
        records, index, batch_size, sensitivity, noise, scale, step_size, displacement, diameter, epsilon: as in
            `product`, with single records.

    Returns:
        ln delta, rounded up.
    """
    trace = _linear_trace(noise, scale, sensitivity, 1, step_size, displacement, diameter, epsilon)
    return averaged(recursion.total(trace, records + 1 - index), records)


@bound(
    "contraction.stop_hybrid",
    title="Random stop, least of contraction and shift",
    gives="log_delta",
    algorithms=("stop",),
    reference="dpcalc",
    locator="average of the hybrid recursion over the stopping time",
    formula="delta(eps) = (1/n) (e_0 + ... + e_k), e_j the least of contraction and shift",
    requires=(INDEX_IN_RANGE, SINGLE),
    assumes=(FIXED_ORDER, STOPPED, FRESH, "where used: " + DOMAIN, "where used: " + LIPSCHITZ_STEPS, ONE_RELEASE),
    slack=SLACK,
    coarse=True,
)
def stop_hybrid(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    loss_class: str, epsilon: float, displacement: float | None = None, diameter: float = math.inf,
    smoothness: float | None = None, strong_convexity: float = 0.0, dimension: int = 1,
) -> float:  # fmt: skip
    """The average over the stopping time of what the sharpest recursion leaves of the record.

    Args:
        records, index, batch_size, sensitivity, noise, scale, step_size, loss_class, epsilon, displacement, diameter,
            smoothness, strong_convexity, dimension: as in `hybrid`, with single records.

    Returns:
        ln delta, rounded up.
    """
    trace = full_trace(
        noise=noise, scale=scale, sensitivity=sensitivity, size=1, step_size=step_size, displacement=displacement,
        diameter=diameter, loss_class=loss_class, smoothness=smoothness, strong_convexity=strong_convexity,
        epsilon=epsilon,
    )  # fmt: skip
    terms = records + 1 - index
    shifts = dimension == 1 and expands_nothing(loss_class, step_size, smoothness)
    return averaged(hybrid_sum(trace, terms, shifts=shifts), records)


def hybrid_sum(trace: Trace, terms: int, *, shifts: bool) -> float:
    """Return an upper bound on ln(e_0 + ... + e_{terms-1}) by every route; ``shifts`` for Laplace noise."""
    found = recursion.total(trace, terms)
    if trace.noise == "laplace" and shifts:
        found = min(found, laplace.mixture_sum(ratio=trace.first, terms=terms, epsilon=trace.epsilon))
    if trace.spreads:
        from dpcalc.numerics.sums import log_sum_hockey_sticks

        if trace.first < 1e90:
            found = min(found, log_sum_hockey_sticks(trace.epsilon, trace.first, terms))
    return found


def log_stop_published(
    *, records: int, sensitivity: float, noise: str, scale: float, step_size: float, displacement: float,
    diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """Return ln of A/(n (1 - B)) as published: it may exceed 1, at the paper's values by 10^86858897."""
    a, b = ratios(
        sensitivity=sensitivity, scale=scale, displacement=displacement, diameter=diameter, step_size=step_size
    )
    first = recursion.log_one_step(noise, epsilon, a)
    return first - math.log(records) - recursion.log_complement(noise, epsilon, b)


@bound(
    "contraction.stop_published",
    title="Random stop as published",
    gives="log_delta",
    kind="published",
    algorithms=("stop",),
    reference="asoodeh2020",
    locator="random stop, as quoted by Sordello, Bu and Dong",
    formula="delta(eps) = A/(n (1 - B)), at most 1",
    requires=(INDEX_IN_RANGE, SINGLE),
    assumes=_STOP,
    erratum="It drops B^(k+1) from the numerator, so that it exceeds 1 where B is near 1. The claim that shuffling is "
    "strictly better rests on this: the exact value at the worst record equals that of a shuffled pass.",
)
def stop_published(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise: str, scale: float, step_size: float,
    displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """The published bound for a random stop, cut at 1; valid and loose, shown for comparison.

    Args:
        records, index, batch_size, sensitivity, noise, scale, step_size, displacement, diameter, epsilon: as in
            `product`, with single records.

    Returns:
        ln delta, to rounding.
    """
    value = log_stop_published(
        records=records, sensitivity=sensitivity, noise=noise, scale=scale, step_size=step_size,
        displacement=displacement, diameter=diameter, epsilon=epsilon,
    )  # fmt: skip
    return min(0.0, value)
