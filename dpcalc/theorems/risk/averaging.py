"""One noisy pass over a ball: the average excess risk of consecutive iterates.

Losses are convex and L-Lipschitz on a domain inside a ball of radius R. A step of w - eta (gradient + N(0, sigma^2 I))
uses a stochastic gradient of the risk F with mean square at most G^2 = L^2 + d sigma^2. Expanding |w_(t+1) - w*|^2 and
summing over any c consecutive iterates,

    average of E F(w_t) - F* <= |w_first - w*|^2/(2 eta c) + eta G^2/2,

and two points of the domain are at most 2R apart. The step size eta = k R/(G sqrt(c)) makes the right-hand side a
multiple of R G/sqrt(c).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from dpcalc.model.loss_class import exceeds_two, two_over
from dpcalc.model.numbers import plain, shown_apart, shown_below
from dpcalc.model.run import Run
from dpcalc.notions import conversions, gaussian
from dpcalc.notions.conversions import NO_BOUND, Risk
from dpcalc.numerics.floats import quotient_up, up
from dpcalc.theorems.record import Condition, Obstacle, Unmet
from dpcalc.theorems.setting import Setting


def averaged_risk(radius: float, gradient_norm: float, steps: int) -> float:
    """Return 2 R G/sqrt(T), rounded up: Theorem 28 of Feldman et al. at the step size 2 R/(G sqrt(T))."""
    return quotient_up((2.0, radius, gradient_norm), (math.sqrt(steps),), 8.0)


class OnBall(Setting):
    """One noisy pass over a ball."""

    def noisy_norm(self, noise_std: float) -> float:
        """Return G = sqrt(L^2 + d sigma^2), the root mean square of a noisy gradient, rounded up."""
        return up(math.hypot(self.lipschitz, quotient_up((math.sqrt(self.dimension), noise_std), (), 4.0)), 4.0)

    def step(self, factor: float, gradient_norm: float, count: float) -> float:
        """Return the step size k R/(G sqrt(c)), rounded up."""
        return quotient_up((factor, self.radius), (gradient_norm, math.sqrt(count)), 4.0)

    def averaged(self, noise_std: float, count: float, *, constant: float, factor: float) -> Risk:
        """Return the risk ``constant`` R G/sqrt(c) at the step size ``factor`` R/(G sqrt(c)), c the ``count``."""
        if math.isinf(noise_std):
            return NO_BOUND
        norm = self.noisy_norm(noise_std)
        risk = quotient_up((constant, self.radius, norm), (math.sqrt(count),), 8.0)
        return Risk(risk, noise_std, self.step(factor, norm, count))


class Budget(OnBall):
    """One pass in which every message, the noisy gradient of one record, has the budget (epsilon, delta).

    Replacing a record moves its gradient by at most 2L.
    """

    @property
    def exact_noise(self) -> float:
        """sigma = 2L/mu(eps, delta), the least noise at which a message keeps the budget, rounded up."""
        return gaussian.noise_std(
            sensitivity=2.0 * self.lipschitz, epsilon=self.epsilon, log_delta_target=self.log_delta
        )

    @property
    def classic_noise(self) -> float:
        """sigma = 2L sqrt(2 ln(1.25/delta))/eps, rounded up; inf at epsilon = 0."""
        if self.epsilon == 0.0:
            return math.inf
        return conversions.noise_std(sensitivity=2.0 * self.lipschitz, epsilon=self.epsilon, log_delta=self.log_delta)

    @property
    def in_classic_range(self) -> bool:
        """Whether the classic noise keeps the budget."""
        return _in_classic_range(self.epsilon, self.log_delta)


# --- conditions -------------------------------------------------------------------------------------------------------


def _in_classic_range(epsilon: float, log_delta: float) -> bool:
    return 0.0 < epsilon <= conversions.epsilon_max(log_delta)


def _classic_range(run: Run) -> Obstacle | None:
    epsilon, log_delta = run.epsilon, run.log_delta
    if epsilon is None or log_delta is None or _in_classic_range(epsilon, log_delta):
        return None
    most = conversions.epsilon_max(log_delta)
    return Unmet(
        f"the classic noise gives (epsilon, delta) for 0 < epsilon <= {shown_below(most, 4)} only, and epsilon is "
        f"{plain(epsilon)}",
        f"use --epsilon up to {shown_below(most, 4)}, or a bound with the exact noise",
    )


CLASSIC_RANGE = Condition("0 < epsilon <= epsilon_max(delta), the range of the classic noise", _classic_range)

S = TypeVar("S", bound=Setting)


def short_step_condition(setting: type[S], needs: tuple[str, ...], risk_of: Callable[[S], Risk]) -> Condition:
    """Return the condition that the step size of a risk is at most 2/smoothness.

    The hint names a number of records at which this holds, rounded up to about three digits.
    """

    def step_at(described: S) -> float:
        return risk_of(described).step_size or 0.0

    def check(run: Run) -> Obstacle | None:
        beta, records = run.smoothness, run.records
        if beta is None or records is None or any(run.value(name) is None for name in needs):
            return None
        described: S = setting.of(run, needs)
        step = step_at(described)
        if is_short_step(step, beta):
            return None
        long, most = shown_apart(step, two_over(beta), 4)
        return Unmet(
            f"its step size {long} exceeds 2/smoothness = {most}, which its privacy needs",
            f"{_enough_records(lambda n: step_at(described.changed(records=n)), records, beta)}, "
            "or smooth the loss: smoothing.skip needs no smoothness",
        )

    return Condition("the step size <= 2/smoothness", check)


def _enough_records(step_at: Callable[[int], float], records: int, smoothness: float) -> str:
    """Return advice on how many records make the step short enough: it falls about like 1/sqrt(n)."""
    n = records
    for _ in range(40):
        step = step_at(n)
        if is_short_step(step, smoothness):
            return f"use --records from {n}"
        least = max(1.0001, 0.5 * step * smoothness) ** 2 * n
        if least > 1e15:
            break
        unit = 10 ** max(0, len(str(int(least))) - 4)
        n = -(-int(least + 1.0) // unit) * unit
    return "use a smaller --radius"


def is_short_step(step_size: float, smoothness: float) -> bool:
    """Return whether eta <= 2/beta, so that a step is 1-Lipschitz."""
    return smoothness == 0.0 or not exceeds_two(step_size, smoothness)


def require_short_step(risk: Risk, smoothness: float) -> Risk:
    """Return the risk, or no bound if its step size exceeds 2/smoothness."""
    return risk if risk.step_size is not None and is_short_step(risk.step_size, smoothness) else NO_BOUND
