"""The cost of privacy for a convex loss: the empirical excess risk of the last iterate of noisy gradient descent.

The run starts at 0, and every step uses the mean gradient of n records. Their losses are convex and beta-smooth on a
closed convex domain inside the ball of radius R about 0, and the risk F is their mean. For eta <= 1/beta, let a step go
from w to w+ = Pi(w - eta (grad F(w) + Z)). Any u of the domain that is known before Z is drawn has

    E F(w+) - F(u) <= (|w - u|^2 - E |w+ - u|^2)/(2 eta) + eta d sigma^2,

since convexity at u and smoothness at w leave -E <Z, w+>, and the step without its noise ends within eta |Z| of w+.
Taking w* and then each earlier iterate as u (Shamir and Zhang 2013), the last iterate has

    E F(w_T) - F(w*) <= R^2/(2 eta T) + eta d sigma^2 (1 + 1/2 + ... + 1/T).
"""

from __future__ import annotations

import math

from dpcalc.model.loss_class import two_over
from dpcalc.model.numbers import plain, shown_below
from dpcalc.model.run import Run
from dpcalc.notions.conversions import EMPIRICAL, Risk
from dpcalc.numerics.floats import down, quotient_up, up
from dpcalc.numerics.sums import harmonic_up
from dpcalc.theorems.conditions import GAUSSIAN, NO_CLIPPING, ONE_RELEASE
from dpcalc.theorems.many_passes import noisy_gd
from dpcalc.theorems.record import Condition, Obstacle, Unmet, requires, theorem
from dpcalc.theorems.risk.averaging import is_short_step
from dpcalc.theorems.setting import Setting

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
    assumes=_ASSUMED,
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
    assumes=(*_ASSUMED, ONE_RELEASE),
)
def least_noise(run: Budget) -> Risk:
    """With the exact noise of T steps the risk falls with T while the step size is 1/beta. It rises like sqrt(ln T)
    where the best step size is smaller. T is where the risk is least.

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
