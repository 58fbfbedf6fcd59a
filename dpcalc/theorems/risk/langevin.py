"""The cost of privacy of full-batch noisy gradient descent: excess risk for convex and strongly convex losses.

Strongly convex losses (Chourasia, Ye and Shokri 2021). Every step uses the mean gradient of n records. Their losses are
L-Lipschitz, m-strongly convex and beta-smooth on a closed convex domain, and the risk F is their mean. Replacing a
record moves its gradient by at most 2L. Since m/2 |w - w*|^2 <= F(w) - F(w*) <= L |w - w*|, any start is within 2L/m of
the minimiser w*, and

    E |w_K - w*|^2 <= S_K = c^(2K) (2L/m)^2 + eta^2 sigma^2 d (1 - c^(2K))/(1 - c^2)

with c = max(|1 - eta m|, |1 - eta beta|). If w* is inside the domain, the gradient vanishes there and the excess risk
is at most beta/2 S_K. For any w* and eta <= 1/beta it is at most (1 - eta m)/(2 eta) S_(K-1) + eta sigma^2 d. At any
point of the domain it is at most 2L^2/m. The paper's noise is sigma_C = sigma sqrt(eta/2).

Convex losses, the empirical excess risk of the last iterate. The run starts at 0, and every step uses the mean gradient
of n records. Their losses are convex and beta-smooth on a closed convex domain inside the ball of radius R about 0, and
the risk F is their mean. For eta <= 1/beta, let a step go from w to w+ = Pi(w - eta (grad F(w) + Z)). Any u of the
domain that is known before Z is drawn has

    E F(w+) - F(u) <= (|w - u|^2 - E |w+ - u|^2)/(2 eta) + eta d sigma^2,

since convexity at u and smoothness at w leave -E <Z, w+>, and the step without its noise ends within eta |Z| of w+.
Taking w* and then each earlier iterate as u (Shamir and Zhang 2013), the last iterate has

    E F(w_T) - F(w*) <= R^2/(2 eta T) + eta d sigma^2 (1 + 1/2 + ... + 1/T).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from dpcalc.model.loss_class import two_over
from dpcalc.model.numbers import plain, shown_below
from dpcalc.model.run import Run
from dpcalc.notions.conversions import EMPIRICAL, Risk
from dpcalc.numerics.floats import down, quotient_up, up
from dpcalc.numerics.sums import harmonic_up
from dpcalc.theorems.conditions import GAUSSIAN, NO_CLIPPING, ONE_RELEASE, STRONGLY_CONVEX
from dpcalc.theorems.many_passes import noisy_gd
from dpcalc.theorems.record import Condition, Obstacle, Unmet, requires, theorem
from dpcalc.theorems.risk.averaging import is_short_step
from dpcalc.theorems.setting import Setting, decay_rate

_PAPER = "chourasia2021"
_ASSUMED = (
    "every step uses the mean gradient of all records, and is projected onto a closed convex domain",
    "every loss is Lipschitz, strongly convex and smooth on the domain",
    GAUSSIAN,
    ONE_RELEASE,
    NO_CLIPPING,
    "excess risk is that of the mean loss over the records, in expectation, from any start in the domain",
)
_INTERIOR = "the minimiser of the mean loss lies inside the domain, where its gradient vanishes"
_ERRATUM = (
    "The announcement states an order and leaves out that the minimiser is to lie inside the domain: at the boundary "
    "the gradient need not vanish, and the loss exceeds beta/2 |w - w*|^2."
)


def _enough(run: Run) -> Obstacle | None:
    n, d, epsilon, log_delta = (run.value(name) for name in ("records", "dimension", "epsilon", "log_delta"))
    if epsilon is None or log_delta is None or n is None or d is None:
        return None
    if n * epsilon > 0.0 and math.log(n * epsilon) > 0.5 * math.log(4.0 * d * -log_delta):
        return None
    least = math.sqrt(4.0 * d * -log_delta) / epsilon if epsilon else math.inf
    return Unmet(
        "its number of steps is positive only where (records epsilon)^2 > 4 dimension ln(1/delta)",
        f"use --records above {least:.6g}, or langevin.shifted" if least < 1e15 else "use a larger --epsilon",
    )


ENOUGH_RECORDS = Condition("(records epsilon)^2 > 4 dimension ln(1/delta)", _enough)


STRONGLY_CONVEX_NEEDS = ("records", "dimension", "lipschitz", "smoothness", "strong_convexity", "epsilon", "log_delta")


class StronglyConvex(Setting):
    """Noisy gradient descent on strongly convex losses, with a budget."""

    @property
    def reach(self) -> float:
        """2L/m, the largest distance of a start from the minimiser, rounded up."""
        return up(2.0 * self.lipschitz / self.strong_convexity)

    def rate_of(self, step_size: float) -> float:
        """Return -ln c of a step, rounded down."""
        return decay_rate(step_size, self.smoothness, self.strong_convexity)

    def least_noise(self, steps: int, step_size: float) -> float:
        """Return the least sigma at which this number of hidden steps keeps the budget, rounded up."""
        return noisy_gd.contraction_noise_std(
            records=self.records, steps=steps, sensitivity=2.0 * self.lipschitz, step_size=step_size,
            smoothness=self.smoothness, strong_convexity=self.strong_convexity, epsilon=self.epsilon,
            log_delta=self.log_delta,
        )  # fmt: skip

    @property
    def stated_variance(self) -> float:
        """sigma_C^2 = 8 L^2 (eps + 2 ln(1/delta))/(m eps^2 n^2), rounded up; enough for any number of steps.

        At the order 1 + 2 ln(1/delta)/eps, the Renyi divergence and its conversion each take half of epsilon.
        """
        n, m, epsilon = self.records, self.strong_convexity, self.epsilon
        return quotient_up(
            (8.0, self.lipschitz, self.lipschitz, epsilon - 2.0 * self.log_delta), (m, epsilon, epsilon, n, n), 8.0
        )

    @property
    def real_steps(self) -> float:
        """(2 beta^2/m^2) ln(n^2 eps^2/(4 d ln(1/delta))), a real number; -inf at epsilon = 0."""
        if self.epsilon == 0.0:
            return -math.inf
        gain = 2.0 * (math.log(self.records) + math.log(self.epsilon))
        gain -= math.log(4.0 * self.dimension * -self.log_delta)
        return 2.0 * (self.smoothness / self.strong_convexity) ** 2 * gain

    @property
    def stated_steps(self) -> int:
        """The real number of steps rounded up to a whole number, at least 1."""
        return max(1, math.ceil(self.real_steps * (1.0 + 2.0**-48)))

    def at_stated_noise(self, excess: Callable[[StronglyConvex], float]) -> Risk:
        """Return the risk of the stated run; no bound if its number of steps is not positive."""
        if not 0.0 < self.real_steps < math.inf:
            return Risk(math.inf, quantity=EMPIRICAL)
        beta, m = self.smoothness, self.strong_convexity
        sigma = quotient_up((2.0, beta, math.sqrt(self.stated_variance)), (math.sqrt(m),), 8.0)
        return Risk(excess(self), sigma, 0.5 * m / beta / beta, self.stated_steps, quantity=EMPIRICAL)


# --- the stated run ---------------------------------------------------------------------------------------------------


@theorem(
    "langevin.explicit",
    title="Noisy gradient descent at the stated noise, with explicit constants",
    needs=STRONGLY_CONVEX_NEEDS,
    algorithms=("noisy-gd",),
    reference=_PAPER,
    locator="Theorem 3, its constants computed",
    formula="8 beta d L^2 (2 eps + 5 ln(1/delta))/(m eps n)^2, at eta = m/(2 beta^2), "
    "sigma_C^2 = 8 L^2 (eps + 2 ln(1/delta))/(m eps^2 n^2), ceil((2 beta^2/m^2) ln(n^2 eps^2/(4 d ln(1/delta)))) steps",
    conditions=(STRONGLY_CONVEX, ENOUGH_RECORDS),
    assumes=(*_ASSUMED, _INTERIOR),
    erratum=_ERRATUM,
)
def explicit(run: StronglyConvex) -> Risk:
    """At the stated noise, step size and number of steps the excess risk is of order d/(eps n)^2, with this constant.

    >>> run = StronglyConvex(records=1000, dimension=10, lipschitz=1.0, smoothness=2.0, strong_convexity=1.0,
    ...                      epsilon=1.0, log_delta=math.log(1e-5))
    >>> risk = explicit(run)
    >>> round(risk.excess_risk, 14), risk.steps
    (0.00953034037198, 62)
    """
    return run.at_stated_noise(_explicit_excess)


def _explicit_excess(run: StronglyConvex) -> float:
    """Return 8 beta d L^2 (2 eps + 5 ln(1/delta))/(m eps n)^2, rounded up."""
    n, m, lip, epsilon = run.records, run.strong_convexity, run.lipschitz, run.epsilon
    return quotient_up(
        (8.0, run.smoothness, run.dimension, lip, lip, 2.0 * epsilon - 5.0 * run.log_delta),
        (m, m, epsilon, epsilon, n, n),
        8.0,
    )


@theorem(
    "langevin.iterated",
    title="Noisy gradient descent at the stated noise",
    needs=STRONGLY_CONVEX_NEEDS,
    algorithms=("noisy-gd",),
    reference=_PAPER,
    locator="Theorem 3, its recursion solved",
    formula="(beta/2) ((1-x)^(2K) 4 L^2/m^2 + 2 d sigma_C^2/(m (2-x))), x = eta m, K and noise as in langevin.explicit",
    conditions=(STRONGLY_CONVEX, ENOUGH_RECORDS),
    assumes=(*_ASSUMED, _INTERIOR),
    erratum=_ERRATUM,
)
def iterated(run: StronglyConvex) -> Risk:
    """The run of `explicit`, with its distance to the minimiser bounded step by step.

    The bound is never above that of `explicit`.

    >>> run = StronglyConvex(records=1000, dimension=10, lipschitz=1.0, smoothness=2.0, strong_convexity=1.0,
    ...                      epsilon=1.0, log_delta=math.log(1e-5))
    >>> round(iterated(run).excess_risk, 14)
    0.00205046361288
    """
    return run.at_stated_noise(_iterated_excess)


def _iterated_excess(run: StronglyConvex) -> float:
    """Return (beta/2) ((1-x)^(2K) 4 L^2/m^2 + 2 d sigma_C^2/(m (2-x))), x = m^2/(2 beta^2), K the stated steps."""
    beta, m, lip, steps = run.smoothness, run.strong_convexity, run.lipschitz, run.stated_steps
    x = 0.5 * (m / beta) ** 2
    start = quotient_up((2.0, beta, lip, lip, math.exp(2.0 * steps * math.log1p(-x))), (m, m), 8.0 * steps * x)
    # The reported noise is rounded up, so this is for a little more than the exact variance.
    return up(start + quotient_up((beta, run.dimension, run.stated_variance), (m, 2.0 - x), 48.0), 8.0)


# --- the best number of steps -----------------------------------------------------------------------------------------


class Descent(NamedTuple):
    """Steps of noisy gradient descent.

    Attributes:
        steps, step_size, noise_std: K, eta and sigma.
        rate: -ln c, c the contraction of a step.
        dimension: d.
        reach: the largest distance of the start from the minimiser.
    """

    steps: int
    step_size: float
    noise_std: float
    rate: float
    dimension: int
    reach: float

    def squared_distance(self, steps: int) -> float:
        """Return S_k = c^(2k) reach^2 + eta^2 sigma^2 d (1 - c^(2k))/(1 - c^2) after k steps, rounded up."""
        if steps == 0:
            return quotient_up((self.reach, self.reach), ())
        exponent = 2.0 * self.rate * steps
        left = math.exp(-exponent)
        kept = math.expm1(-exponent) / math.expm1(-2.0 * self.rate) if self.rate > 1e-290 else float(steps)
        old = quotient_up((left, self.reach, self.reach), (), 4.0 * min(exponent, 1e4) + 4.0)
        noise = (self.step_size, self.step_size, self.noise_std, self.noise_std)
        return up(old + quotient_up((*noise, self.dimension, kept), (), 16.0), 2.0)


@theorem(
    "langevin.shifted",
    title="Noisy gradient descent at the least noise, minimiser inside",
    needs=STRONGLY_CONVEX_NEEDS,
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator="Theorem 3 of Chourasia, Ye and Shokri 2021 with the noise of shifted interpolation",
    formula="(beta/2) S_K = A B/(A + B), A = 2 beta L^2/m^2, B = 2 beta d L^2/(n m mu(eps, delta))^2, for any K and "
    "eta <= 2/(beta + m) with (1 - eta m)^K = B/(A + B), sigma of noisy_gd.contraction for K steps",
    conditions=(STRONGLY_CONVEX,),
    assumes=(*_ASSUMED, _INTERIOR),
)
def shifted(run: StronglyConvex) -> Risk:
    """With the exact noise of K hidden steps, a run that gets nearer to the minimiser needs more noise. The best
    balance of the two is the same for all step sizes, so the run takes as few steps as possible.

    It holds for any number of records.

    >>> run = StronglyConvex(records=1000, dimension=10, lipschitz=1.0, smoothness=2.0, strong_convexity=1.0,
    ...                      epsilon=1.0, log_delta=math.log(1e-5))
    >>> risk = shifted(run)
    >>> round(risk.excess_risk, 12), risk.steps
    (0.000556627027, 9)
    """

    def excess(descent: Descent) -> float:
        """beta/2 S_K"""
        return quotient_up((0.5, run.smoothness, descent.squared_distance(descent.steps)), (), 4.0)

    return _best(run, excess, down(2.0 / (run.smoothness + run.strong_convexity), 4.0))


@theorem(
    "langevin.boundary",
    title="Noisy gradient descent at the least noise, minimiser anywhere",
    needs=STRONGLY_CONVEX_NEEDS,
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator="proximal step inequality, with the noise of shifted interpolation",
    formula="eta sigma^2 d + (1 - eta m)/(2 eta) S_(K-1) at eta = 1/beta, sigma of noisy_gd.contraction for K steps, "
    "at the best K tried, or at a smaller eta",
    conditions=(STRONGLY_CONVEX,),
    assumes=_ASSUMED,
    not_monotone_in=("smoothness", "strong_convexity"),
)
def boundary(run: StronglyConvex) -> Risk:
    """The minimiser may lie on the boundary of the domain, where the gradient need not vanish. The descent of the last
    step then takes the place of smoothness at the minimiser.

    >>> run = StronglyConvex(records=1000, dimension=10, lipschitz=1.0, smoothness=2.0, strong_convexity=1.0,
    ...                      epsilon=1.0, log_delta=math.log(1e-5))
    >>> risk = boundary(run)
    >>> round(risk.excess_risk, 12), risk.steps
    (0.001113256389, 13)
    """

    def excess(descent: Descent) -> float:
        """eta sigma^2 d + (1 - eta m)/(2 eta) S_(K-1), for eta <= 1/beta"""
        eta = descent.step_size
        kept = up(max(0.0, 1.0 - eta * run.strong_convexity), 4.0)
        noise = quotient_up((eta, descent.noise_std, descent.noise_std, descent.dimension), (), 4.0)
        return up(noise + quotient_up((kept, descent.squared_distance(descent.steps - 1)), (2.0, eta), 8.0), 4.0)

    return _best(run, excess, down(1.0 / run.smoothness, 4.0))


def _best(run: StronglyConvex, excess: Callable[[Descent], float], longest: float) -> Risk:
    """Return the least risk over numbers of steps near the balance of its two parts.

    Args:
        run: the losses and the budget.
        excess: a bound on the excess risk of steps.
        longest: the largest step size at which that bound holds.
    """

    def at(steps: int, eta: float = longest) -> Risk:
        sigma = run.least_noise(steps, eta)
        descent = Descent(steps, eta, sigma, run.rate_of(eta), run.dimension, run.reach)
        return Risk(excess(descent), sigma, eta, steps, quantity=EMPIRICAL)

    rate, limit = run.rate_of(longest), at(10**15)
    if rate <= 0.0 or limit.noise_std is None or math.isinf(limit.noise_std):
        return limit
    start = excess(Descent(1, longest, 0.0, 0.0, run.dimension, 2.0 * run.lipschitz / run.strong_convexity))
    # With q = c^K the risk is start q^2 + limit (1 - q)^2 for every eta, if the minimiser is inside.
    share = limit.excess_risk / (start + limit.excess_risk) if start > 0.0 else 0.5
    balance = min(1e14, max(1.0, -math.log(max(share, 1e-300)) / rate))
    near = {max(1, round(balance * factor) + more) for factor in (0.8, 0.9, 1.0, 1.1, 1.3) for more in (-1, 0, 1, 2)}
    risks = [at(steps) for steps in sorted(near)]
    fewest = max(1, math.ceil(balance))
    shorter = min(longest, -math.expm1(math.log(max(share, 1e-300)) / fewest) / run.strong_convexity)
    if shorter > 0.0:
        risks.insert(0, at(fewest, shorter))
    return min(risks, key=lambda risk: risk.excess_risk)


# --- a lower bound on the order ---------------------------------------------------------------------------------------


@theorem(
    "langevin.least_order",
    title="The order of the least risk of any private algorithm",
    needs=("records", "dimension", "epsilon", "log_delta"),
    kind="asymptotic",
    algorithms=("noisy-gd",),
    reference=_PAPER,
    locator="Theorem 4, from Bassily, Smith and Thakurta 2014",
    formula="min(1, d/(eps n)^2), up to a constant that is not stated",
    assumes=("some 1-Lipschitz, 1-strongly convex losses; delta = o(1/n)",),
    erratum="An order and no bound: its constant is not known. The upper bounds exceed it by a factor ln(1/delta), "
    "which the announcement calls constant.",
)
def least_order(run: Setting) -> Risk:
    """Every (epsilon, delta)-private algorithm has an excess risk of at least this order on some losses.

    The constant is set to 1.

    >>> least_order(Setting(records=1000, dimension=10, epsilon=1.0, log_delta=-11.5)).excess_risk
    1e-05
    """
    spent = run.epsilon * run.records
    return Risk(min(1.0, run.dimension / spent / spent) if spent > 0.0 else 1.0, quantity=EMPIRICAL)


_LOCATOR = "descent lemma with noise, and the last iterate of Shamir and Zhang 2013"
_DESCENT_ASSUMES = (
    "every step uses the mean gradient of all records, and is projected onto a closed convex domain",
    "every loss is convex and smooth on the domain",
    GAUSSIAN,
    NO_CLIPPING,
    "the run starts at 0, in the domain",
    "excess risk is that of the mean loss over the records, in expectation",
)
_MOST_STEPS = 10**15


def _short_step(run: Run) -> Obstacle | None:
    eta, beta = run.step_size, run.smoothness
    if eta is None or beta is None or is_short_step(2.0 * eta, beta):
        return None
    most = shown_below(0.5 * two_over(beta))
    return Unmet(f"step size {plain(eta)} exceeds 1/smoothness = {most}", f"use --step-size <= {most}")


class Budget(Setting):
    """Noisy gradient descent from 0, with a budget."""

    @property
    def longest_step(self) -> float:
        """1/beta, rounded down."""
        return down(1.0 / self.smoothness, 4.0)

    def least_noise(self, steps: int) -> float:
        """Return the least sigma at which this number of steps keeps the budget, rounded up."""
        return noisy_gd.contraction_noise_std(
            records=self.records, steps=steps, sensitivity=2.0 * self.lipschitz, step_size=self.longest_step,
            smoothness=self.smoothness, strong_convexity=0.0, epsilon=self.epsilon, log_delta=self.log_delta,
        )  # fmt: skip

    def after(self, steps: int) -> Risk:
        """Return the risk after this number of steps, at the least noise and the best step size for that noise."""
        sigma, best = self.least_noise(steps), math.inf
        if sigma > 0.0:
            best = self.radius / math.sqrt(2.0 * steps * self.dimension * harmonic_up(steps)) / sigma
        return last(Setting(
            radius=self.radius, smoothness=self.smoothness, dimension=self.dimension, noise_std=sigma,
            step_size=max(5e-324, min(self.longest_step, best)), steps=steps,
        ))  # fmt: skip


@theorem(
    "descent.last",
    title="Noisy gradient descent on convex losses, any noise and step size",
    needs=("radius", "smoothness", "dimension", "noise_std", "step_size", "steps"),
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator=_LOCATOR,
    formula="R^2/(2 eta T) + eta d sigma^2 (1 + 1/2 + ... + 1/T)",
    conditions=(Condition("step_size <= 1/smoothness", _short_step),),
    assumes=_DESCENT_ASSUMES,
)
def last(run: Setting) -> Risk:
    """The excess risk of the last iterate has two parts: the distance of the start over the time, and the noise, which
    counts about ln T times.

    >>> run = Setting(radius=1.0, smoothness=1.0, dimension=10, noise_std=0.01, step_size=1.0, steps=100)
    >>> round(last(run).excess_risk, 12)
    0.010187377518
    """
    start = quotient_up((run.radius, run.radius), (2.0, run.step_size, run.steps), 4.0)
    noise = quotient_up((run.step_size, run.dimension, run.noise_std, run.noise_std, harmonic_up(run.steps)), (), 4.0)
    return Risk(up(start + noise, 2.0), run.noise_std, run.step_size, run.steps, quantity=EMPIRICAL)


@theorem(
    "descent.least_noise",
    title="Noisy gradient descent on convex losses, at the least noise",
    needs=("records", "dimension", "radius", "lipschitz", "smoothness", "epsilon", "log_delta"),
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator=_LOCATOR,
    formula="min over T and eta <= 1/beta of descent.last, sigma = 2L sqrt(T)/(n mu(eps, delta)): about "
    "(2 R L/(n mu)) sqrt(2 d ln T) for T near n R beta mu/(2 L sqrt(2 d ln T))",
    conditions=(
        requires(
            "smoothness > 0",
            lambda run: run.smoothness,
            Unmet("smoothness is 0: the loss is linear", "give a small positive --smoothness", ("smoothness",)),
        ),
    ),
    assumes=(*_DESCENT_ASSUMES, ONE_RELEASE),
)
def least_noise(run: Budget) -> Risk:
    """With the exact noise of T steps the risk falls with T while the step size is 1/beta. It rises like sqrt(ln T)
    where the best step size is smaller. T minimises the risk.

    >>> run = Budget(records=10000, dimension=10, radius=1.0, lipschitz=1.0, smoothness=0.25, epsilon=1.0,
    ...              log_delta=math.log(1e-6))
    >>> risk = least_noise(run)
    >>> round(risk.excess_risk, 9), risk.steps
    (0.007589171, 30)
    """
    single = run.after(1)
    if not 0.0 < (single.noise_std or 0.0) < math.inf:
        return single

    def falls(fewer: int, more: int) -> bool:
        return run.after(more).excess_risk < run.after(fewer).excess_risk

    high = 1
    while high < _MOST_STEPS and falls(high, 2 * high):
        high *= 2
    low, high = high // 2, min(_MOST_STEPS, 2 * high)  # the risk still falls at low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if falls(middle, middle + 1) else (low, middle)
    return run.after(high)
