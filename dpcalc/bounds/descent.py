"""What privacy costs a convex loss: empirical excess risk of noisy gradient descent, of its last iterate.

Every step uses the mean gradient of n records, whose losses are convex and beta-smooth on a closed convex domain inside
the ball of radius R about 0, and starts at 0; the risk is that mean, F. For eta <= 1/beta, any u that is known before a
step from w to w+ = Pi(w - eta (grad F(w) + Z)) has

    E F(w+) - F(u) <= (|w - u|^2 - E |w+ - u|^2)/(2 eta) + eta d sigma^2,

for convexity at u and smoothness at w leave -E <Z, w+>, and the step without its noise ends within eta |Z| of w+. With
u = w* and the iterates before the last as u in turn (Shamir and Zhang 2013), the last iterate has

    E F(w_T) - F(w*) <= R^2/(2 eta T) + eta d sigma^2 (1 + 1/2 + ... + 1/T).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpcalc.bounds import noisy_gd
from dpcalc.bounds.cost import Cost
from dpcalc.bounds.multi_epoch import wide_up
from dpcalc.bounds.steps import GAUSSIAN, NO_CLIPPING, ONE_RELEASE
from dpcalc.bounds.utility import fits
from dpcalc.numerics.floats import down, up
from dpcalc.numerics.sums import harmonic
from dpcalc.registry import Requirement, bound

_EMPIRICAL = "empirical_excess_risk"
_LOCATOR = "descent lemma with noise, and the last iterate of Shamir and Zhang 2013"
_ASSUMED = (
    "every step uses the mean gradient of all records, and is projected onto a closed convex domain",
    "every loss is convex and smooth on the domain",
    GAUSSIAN,
    NO_CLIPPING,
    "the run starts at 0, in the domain",
    "excess risk is that of the mean loss over the records, in expectation",
)
_MOST_STEPS = 10**15


def _short_step(values: Mapping[str, Any]) -> tuple[str, str] | None:
    eta, beta = values.get("step_size"), values.get("smoothness")
    if eta is None or beta is None or fits(2.0 * eta, beta):
        return None
    return f"step size {eta:g} exceeds 1/smoothness = {1.0 / beta:g}", f"use --step-size <= {down(1.0 / beta, 2.0):g}"


def _smooth(values: Mapping[str, Any]) -> tuple[str, str] | None:
    if values["smoothness"] > 0.0:
        return None
    return "smoothness is 0: the loss is linear", "give a small positive --smoothness"


@bound(
    "descent.last",
    title="Noisy gradient descent on convex losses, any noise and step size",
    gives="cost",
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator=_LOCATOR,
    formula="R^2/(2 eta T) + eta d sigma^2 (1 + 1/2 + ... + 1/T)",
    requires=(Requirement("step_size <= 1/smoothness", _short_step),),
    assumes=_ASSUMED,
)
def last(*, radius: float, smoothness: float, dimension: int, noise_std: float, step_size: float, steps: int) -> Cost:
    """The last iterate's risk exceeds the least by the start's distance over the time plus the noise, times ln T.

    Args:
        radius: R > 0 of a ball about 0 that holds the domain.
        smoothness: beta >= 0.
        dimension: d >= 1.
        noise_std: sigma >= 0.
        step_size: 0 < eta <= 1/beta.
        steps: T >= 1.

    Returns:
        Cost: an upper bound on the empirical excess risk of w_T.

    >>> round(last(radius=1.0, smoothness=1.0, dimension=10, noise_std=0.01, step_size=1.0, steps=100).excess_risk, 12)
    0.010187377518
    """
    del smoothness
    far = wide_up((radius, radius), (2.0, step_size, steps), 4.0)
    noise = wide_up((step_size, dimension, noise_std, noise_std, harmonic(steps)), (), 4.0)
    return Cost(up(far + noise, 2.0), noise_std, step_size, steps, quantity=_EMPIRICAL)


@bound(
    "descent.least_noise",
    title="Noisy gradient descent on convex losses, at the least noise",
    gives="cost",
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator=_LOCATOR,
    formula="min over T and eta <= 1/beta of descent.last, sigma = 2L sqrt(T)/(n mu(eps, delta)): about "
    "(2 R L/(n mu)) sqrt(2 d ln T) for T near n R beta mu/(2 L sqrt(2 d ln T))",
    requires=(Requirement("smoothness > 0", _smooth),),
    assumes=(*_ASSUMED, ONE_RELEASE),
)
def least_noise(
    *, records: int, dimension: int, radius: float, lipschitz: float, smoothness: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """With the exact noise of T steps the risk falls with T while steps are as long as they may be, and rises like
    sqrt(ln T) once they are shorter: T is where it is least.

    Args:
        records, dimension: n and d, >= 1.
        radius: R > 0 of a ball about 0 that holds the domain.
        lipschitz, smoothness: L > 0 and beta > 0.
        epsilon, log_delta: the budget, ln delta < 0.

    Returns:
        Cost: an upper bound on the empirical excess risk, and the run.

    >>> cost = least_noise(records=10000, dimension=10, radius=1.0, lipschitz=1.0, smoothness=0.25, epsilon=1.0,
    ...                    log_delta=math.log(1e-6))
    >>> round(cost.excess_risk, 9), cost.steps
    (0.007589171, 30)
    """

    def at(steps: int) -> Cost:
        sigma = noisy_gd.contraction_noise_std(
            records=records, steps=steps, sensitivity=2.0 * lipschitz, step_size=longest, smoothness=smoothness,
            strong_convexity=0.0, epsilon=epsilon, log_delta=log_delta,
        )  # fmt: skip
        balanced = radius / math.sqrt(2.0 * steps * dimension * harmonic(steps)) / sigma if sigma > 0.0 else math.inf
        return last(
            radius=radius, smoothness=smoothness, dimension=dimension, noise_std=sigma,
            step_size=max(5e-324, min(longest, balanced)), steps=steps,
        )  # fmt: skip

    longest = down(1.0 / smoothness, 4.0)
    single = at(1)
    if not 0.0 < (single.noise_std or 0.0) < math.inf:
        return single
    high = 1
    while high < _MOST_STEPS and at(2 * high).excess_risk < at(high).excess_risk:
        high *= 2
    low, high = high // 2, min(_MOST_STEPS, 2 * high)  # more than low is better than low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if at(middle + 1).excess_risk < at(middle).excess_risk else (low, middle)
    return at(high)
