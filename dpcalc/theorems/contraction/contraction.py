"""Contraction of the hockey-stick divergence along one fixed-order pass, and along a pass stopped at random.

After Asoodeh, Diaz and Calmon, and Sordello, Bu and Dong; corrected and sharpened. h(eps, r) is the hockey-stick
divergence of the noise at distance r (`recursion.log_one_step`). For the record at position i of n,

    A = h(eps, Delta/scale),   B = h(eps, c D/(eta scale)),   k = n - i later steps,

with D the diameter of the domain and c the displacement factor (`dpcalc.model.loss_class`). Noise is Gaussian in any
dimension, or Laplace: one-dimensional, or of independent coordinates with the Lipschitz constant in the 1-norm.
"""

from __future__ import annotations

import functools
import math

from dpcalc.model import loss_class as loss
from dpcalc.model.numbers import plain, shown_below
from dpcalc.model.quantities import LossClass, Noise
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Gdp, Profile
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.sums import log_sum_hockey_sticks_up
from dpcalc.theorems.conditions import (
    BATCHES_OF_ONE,
    DOMAIN,
    EQUAL_MAPS,
    FIXED_ORDER,
    GAUSSIAN_NOISE,
    INDEX_IN_RANGE,
    LAPLACE_NOISE,
    LIPSCHITZ,
    ONE_DIMENSION,
    ONE_RELEASE,
    STEP_WITHIN,
    WHERE_BOUNDED,
)
from dpcalc.theorems.contraction import laplace, recursion
from dpcalc.theorems.contraction.laplace import NoisyPass, later_ratio
from dpcalc.theorems.contraction.recursion import SLACK
from dpcalc.theorems.record import Condition, Obstacle, Unmet, theorem
from dpcalc.theorems.setting import BOUNDED_STEP, NOISY_STEP, PLACE

PAPER = "sordello2021"
FRESH = (
    "fresh Gaussian or Laplace noise in every step, w - step_size (gradient + Z); for Laplace noise in several "
    "dimensions lipschitz is in the 1-norm"
)
DISPLACED = "the losses are of the stated class, which bounds how far a step leaves two points of the set"
LIPSCHITZ_STEPS = "the losses are smooth, and convex where so stated, so that every step's map is Lipschitz"
_LINEAR = (FIXED_ORDER, FRESH, DOMAIN, DISPLACED, ONE_RELEASE)


# --- settings ---------------------------------------------------------------------------------------------------------


class Pass(NoisyPass):
    """One pass in a fixed order, each record used in one step."""

    @functools.cached_property
    def own(self) -> float:
        """r_A, the distance of the record's own step."""
        return self.own_ratio(self.own_batch)

    @functools.cached_property
    def later(self) -> int:
        """k, the number of steps after the record's own."""
        return self.steps_to_end - 1


class PublishedPass(Pass):
    """A pass on a bounded domain with convex smooth losses, as in the paper."""

    @functools.cached_property
    def following(self) -> float:
        """r_B with the paper's factor."""
        factor = loss.published_factor(
            step_size=self.step_size, smoothness=self.smoothness, strong_convexity=self.strong_convexity
        )
        if self.noise == Noise.LAPLACE:
            factor = up(factor * math.sqrt(self.dimension), 4.0)
        return later_ratio(factor, self.diameter, self.step_size, self.scale)


LAPLACE_PASS = (*PLACE, *NOISY_STEP, "step_size", "smoothness")


ANY_PASS = (
    *PLACE, *NOISY_STEP, "step_size", "loss_class", "displacement?", "diameter?", "smoothness?", "strong_convexity?",
    "dimension?",
)  # fmt: skip


# --- fixed order ------------------------------------------------------------------------------------------------------


@theorem(
    "contraction.product",
    title="Product of contraction coefficients",
    needs=(*PLACE, *NOISY_STEP, *BOUNDED_STEP),
    algorithms=("pnsgd",),
    reference=PAPER,
    locator="Theorem 1, with the displacement factor corrected",
    formula="delta(eps) = A B^k",
    conditions=(INDEX_IN_RANGE, EQUAL_MAPS),
    assumes=_LINEAR,
    erratum="The paper's factor M = sqrt(1 - 2 eta beta rho/(beta + rho)) is used for every step size. It is false "
    "past eta = 2/(beta + rho): for beta = 1, rho = 0.5, eta = 1.45 on [0, 1] with sigma = 0.1 it gives delta(0) = "
    "0.471 where the truth is 0.879. The factor used here holds for every step size and is never larger.",
    weakly_convex=True,
)
def product(run: Pass) -> Profile:
    """Every later noisy step on a bounded domain shrinks what the record left by the same factor.

    >>> run = Pass(records=10, index=8, batch_size=1, sensitivity=1.0, noise=Noise.GAUSSIAN, scale=2.0,
    ...               step_size=0.5, displacement=0.75, diameter=2.0)
    >>> round(product(run).profile(0.5), 10)
    -4.627562442
    """
    return Profile(lambda epsilon: recursion.product_last(run.trace(epsilon, run.own), run.later))


def _within_published(run: Run) -> Obstacle | None:
    beta, rho, eta = run.smoothness, run.strong_convexity, run.step_size
    if run.loss_class != LossClass.CONVEX_SMOOTH:
        return Unmet("its factor M speaks of convex smooth losses", "give --loss-class convex-smooth, if they are")
    if beta is not None and eta is not None and loss.exceeds_two(eta, beta, rho or 0.0):
        most = shown_below(loss.two_over(beta, rho or 0.0))
        return Unmet(
            f"step size {plain(eta)} exceeds 2/(smoothness + strong_convexity) = {most}, past which its factor M is "
            "false",
            f"use --step-size <= {most}, or contraction.product, which holds beyond",
        )
    return None


@theorem(
    "contraction.paper_product",
    title="Product of contraction coefficients with the paper's factor",
    needs=(*LAPLACE_PASS, "strong_convexity", "diameter", "dimension?"),
    algorithms=("pnsgd",),
    reference=PAPER,
    locator="Theorem 1, where its factor M holds",
    formula="delta(eps) = A B^k, c = M = sqrt(1 - 2 eta beta rho/(beta + rho)), eta <= 2/(beta + rho)",
    conditions=(
        INDEX_IN_RANGE,
        Condition("step_size <= 2/(smoothness + strong_convexity)", _within_published),
        EQUAL_MAPS,
    ),
    assumes=_LINEAR,
)
def paper_product(run: PublishedPass) -> Profile:
    """The product with the paper's displacement factor, which is never below the one used elsewhere."""
    return Profile(lambda epsilon: recursion.product_last(run.trace(epsilon, run.own), run.later))


@theorem(
    "contraction.nonlinear",
    title="Non-linear contraction",
    needs=(*PLACE, *NOISY_STEP, *BOUNDED_STEP),
    algorithms=("pnsgd",),
    reference="balle2019",
    locator="one step: Theorem 1 (2); iterated by dpcalc along a pass",
    formula="e_0 = A, e_k = e_(k-1) h(ln(1 + (e^eps - 1)/e_(k-1)), r_B)",
    conditions=(INDEX_IN_RANGE, EQUAL_MAPS),
    assumes=_LINEAR,
    slack=SLACK,
    slow=True,
    weakly_convex=True,
)
def nonlinear(run: Pass) -> Profile:
    """The smaller the remaining trace of a record, the better noise hides it: each step shrinks it by more than the
    last.

    >>> run = Pass(records=10, index=8, batch_size=1, sensitivity=1.0, noise=Noise.GAUSSIAN, scale=2.0,
    ...               step_size=0.5, displacement=0.75, diameter=2.0)
    >>> round(nonlinear(run).profile(0.5), 10)
    -12.1806921165
    """
    return Profile(lambda epsilon: recursion.last(run.trace(epsilon, run.own), run.later))


@theorem(
    "contraction.shift",
    title="Shift bound, mu-GDP",
    needs=(*PLACE, *NOISY_STEP, "step_size", "loss_class", "smoothness", "strong_convexity", "diameter?"),
    algorithms=("pnsgd",),
    reference="bok2024",
    locator="shifted interpolation for one use, from the record's step or from the diameter behind it",
    formula="mu^2 = min(r_A^2/(1 + S), (D/(eta sigma))^2/S), S = c^-2 + ... + c^(-2k)",
    conditions=(INDEX_IN_RANGE, GAUSSIAN_NOISE, LIPSCHITZ, EQUAL_MAPS),
    assumes=(FIXED_ORDER, LIPSCHITZ_STEPS, "fresh Gaussian noise in every step", WHERE_BOUNDED, ONE_RELEASE),
    weakly_convex=True,
)
def shift(run: Pass) -> Gdp:
    """The noise of the record's own step and of all later steps together hides its shift, since every step is a
    Lipschitz map; no bounded domain is needed.

    >>> run = Pass(records=4, index=1, batch_size=1, sensitivity=1.0, noise=Noise.GAUSSIAN, scale=1.0, step_size=1.0,
    ...            loss_class=LossClass.CONVEX_SMOOTH, smoothness=1.0, strong_convexity=0.0)
    >>> round(shift(run).mu, 12)  # 1/sqrt(4)
    0.5
    """
    rate = run.lipschitz_rate
    assert rate is not None  # the condition LIPSCHITZ says so
    return Gdp(shift_mu(recursion.shift_log_mu(max(run.own, 5e-324), run.reach, rate, run.later)))


def shift_mu(log_mu: float) -> float:
    """Return the GDP parameter from its logarithm, rounded up (the smallest positive double where it underflows)."""
    if log_mu > 709.0:
        return math.inf
    return max(5e-324, up(math.exp(max(log_mu, -745.0)), 4.0 + min(abs(log_mu), 745.0)))


@theorem(
    "contraction.laplace_shift",
    title="Laplace shift bound by optimal composition",
    needs=LAPLACE_PASS,
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="shifted interpolation, each step's share being pure privacy; composition of Kairouz, Oh and Viswanath",
    formula="delta(eps) = composition of k+1 mechanisms of epsilon Delta/(v (k+1)); least over fewer steps",
    conditions=(INDEX_IN_RANGE, LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN),
    assumes=(FIXED_ORDER, LIPSCHITZ_STEPS, "fresh Laplace noise in every step, one dimension", ONE_RELEASE),
)
def laplace_shift(run: Pass) -> Profile:
    """Spread evenly over all later steps, the record's shift costs each a little pure privacy, composed exactly."""
    return Profile(lambda epsilon: laplace.LaplaceShift(run.own, epsilon).composed(run.later))


@theorem(
    "contraction.laplace_mixture",
    title="Laplace shift bound by mixtures of Gaussians",
    needs=LAPLACE_PASS,
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="Laplace noise as a Gaussian of random variance, the Gaussian shift bound for each draw",
    formula="delta(eps) = E delta_G(eps; (Delta/v)/sqrt(2 G)), G ~ Gamma(k+1)",
    conditions=(INDEX_IN_RANGE, LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN),
    assumes=(FIXED_ORDER, LIPSCHITZ_STEPS, "fresh Laplace noise in every step, one dimension", ONE_RELEASE),
)
def laplace_mixture(run: Pass) -> Profile:
    """Laplace noise is Gaussian noise with a random variance; if the variances are published, Gaussian shift bounds
    hold.
    """
    return Profile(lambda epsilon: laplace.LaplaceShift(run.own, epsilon).mixture(run.later))


@theorem(
    "contraction.hybrid",
    title="Least of contraction and shift, step by step",
    needs=ANY_PASS,
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="the non-linear recursion, restarted wherever the shift bound is smaller",
    formula="e_k = min(e_(k-1) h(ln(1 + (e^eps - 1)/e_(k-1)), r_B), shift bound at k)",
    conditions=(INDEX_IN_RANGE, EQUAL_MAPS),
    assumes=(*_LINEAR[:2], WHERE_BOUNDED, "where used: " + LIPSCHITZ_STEPS, ONE_RELEASE),
    slack=SLACK,
    slow=True,
    weakly_convex=True,
)
def hybrid(run: Pass) -> Profile:
    """Both bounds hold for the same quantity at every step, so the smaller one may enter the next step."""
    if run.laplace_shifts:
        return Profile(lambda epsilon: laplace.hybrid_last(run.shift_trace(epsilon, run.own), run.later))
    return Profile(lambda epsilon: recursion.last(run.shift_trace(epsilon, run.own), run.later))


# --- random stop ----------------------------------------------------------------------------------------------------

STOPPED = "the pass stops after a uniformly random number of steps"
_STOP = (FIXED_ORDER, STOPPED, FRESH, DOMAIN, DISPLACED, ONE_RELEASE)


@theorem(
    "contraction.stop_product",
    title="Random stop, product of contraction coefficients",
    needs=(*PLACE, *NOISY_STEP, *BOUNDED_STEP),
    algorithms=("stop",),
    reference=PAPER,
    locator="the random stop of Asoodeh et al. with the exact numerator",
    formula="delta(eps) = A (1 - B^(k+1))/(n (1 - B))",
    conditions=(INDEX_IN_RANGE, BATCHES_OF_ONE),
    assumes=_STOP,
    weakly_convex=True,
)
def stop_product(run: Pass) -> Profile:
    """Stopping at a random step averages over the number of later steps, and over whether the record is used at all.

    It holds even if the stopping time is published.
    """
    return Profile(
        lambda epsilon: averaged(recursion.product_sum(run.trace(epsilon, run.own), run.later + 1), run.records)
    )


def averaged(log_sum: float, count: int) -> float:
    """Return ln(sum/count), rounded up and at most 0."""
    if log_sum == -math.inf:
        return log_sum
    value = log_sum - math.log(count)
    return min(0.0, value + UNIT * (2.0 * abs(value) + 2.0 * math.log(count)))


@theorem(
    "contraction.stop_nonlinear",
    title="Random stop, non-linear contraction",
    needs=(*PLACE, *NOISY_STEP, *BOUNDED_STEP),
    algorithms=("stop",),
    reference="balle2019",
    locator="one step: Theorem 1 (2); iterated by dpcalc, averaged over the stopping time",
    formula="delta(eps) = (1/n) (e_0 + ... + e_k)",
    conditions=(INDEX_IN_RANGE, BATCHES_OF_ONE),
    assumes=_STOP,
    slack=SLACK,
    slow=True,
    weakly_convex=True,
)
def stop_nonlinear(run: Pass) -> Profile:
    """The non-linear recursion, averaged over the stopping time."""
    return Profile(lambda epsilon: averaged(recursion.total(run.trace(epsilon, run.own), run.later + 1), run.records))


@theorem(
    "contraction.stop_hybrid",
    title="Random stop, least of contraction and shift",
    needs=ANY_PASS,
    algorithms=("stop",),
    reference="dpcalc",
    locator="average of the hybrid recursion over the stopping time",
    formula="delta(eps) = (1/n) (e_0 + ... + e_k), e_j the least of contraction and shift",
    conditions=(INDEX_IN_RANGE, BATCHES_OF_ONE),
    assumes=(FIXED_ORDER, STOPPED, FRESH, WHERE_BOUNDED, "where used: " + LIPSCHITZ_STEPS, ONE_RELEASE),
    slack=SLACK,
    slow=True,
    weakly_convex=True,
)
def stop_hybrid(run: Pass) -> Profile:
    """The sharpest recursion, averaged over the stopping time."""
    return Profile(lambda epsilon: averaged(_hybrid_sum(run, epsilon), run.records))


def _hybrid_sum(run: Pass, epsilon: float) -> float:
    """Return an upper bound on ln(e_0 + ... + e_k): the least of all routes."""
    trace, terms = run.shift_trace(epsilon, run.own), run.later + 1
    sums = [recursion.total(trace, terms)]
    if run.laplace_shifts:
        sums.append(laplace.LaplaceShift(run.own, epsilon).mixture_sum(terms))
    if trace.spreads and trace.first < 1e90:
        sums.append(log_sum_hockey_sticks_up(epsilon, trace.first, terms))
    return min(sums)


@theorem(
    "contraction.stop_published",
    title="Random stop as published",
    needs=(*PLACE, *NOISY_STEP, *BOUNDED_STEP),
    kind="published",
    algorithms=("stop",),
    reference="asoodeh2020",
    locator="random stop, as quoted by Sordello, Bu and Dong",
    formula="delta(eps) = A/(n (1 - B)), at most 1",
    conditions=(INDEX_IN_RANGE, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum="It drops B^(k+1) from the numerator, so that it exceeds 1 where B is near 1. The claim that shuffling is "
    "strictly better rests on this: the exact value at the worst record equals that of a shuffled pass.",
)
def stop_published(run: Pass) -> Profile:
    """The published bound for a random stop, cut at 1; valid and loose, shown for comparison."""
    return Profile(lambda epsilon: min(0.0, log_published(run, epsilon)))


def log_published(run: Pass, epsilon: float) -> float:
    """Return ln of A/(n (1 - B)) as published: it may exceed 1, at the paper's values by 10^86858897."""
    trace = run.trace(epsilon, run.own)
    return trace.log_first - math.log(run.records) - recursion.log_complement(run.noise, epsilon, run.following)
