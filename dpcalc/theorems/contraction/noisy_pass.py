"""One pass with noise in every step: its distances in units of that noise, and what a record leaves.

r_A is how far the record moves its own step, r_B how far a later step leaves two points of the domain.
"""

from __future__ import annotations

import functools
import math

from dpcalc.model import loss_class
from dpcalc.model.choices import LossClass, Noise
from dpcalc.model.loss_class import exceeds_two
from dpcalc.numerics.floats import decimal_quotient_up
from dpcalc.theorems.contraction.recursion import Trace, shift_trace
from dpcalc.theorems.setting import Setting


def own_ratio(sensitivity: float, scale: float, size: int = 1) -> float:
    """Return r_A = Delta/(b scale), rounded up."""
    return decimal_quotient_up((sensitivity,), (float(size), scale)) if sensitivity > 0.0 else 0.0


def later_ratio(displacement: float | None, diameter: float, step_size: float, scale: float) -> float:
    """Return r_B = c D/(eta scale), rounded up; inf where the domain is unbounded or the displacement unknown."""
    if displacement is None or math.isinf(diameter):
        return math.inf
    if displacement == 0.0:
        return 0.0
    return max(5e-324, decimal_quotient_up((displacement, diameter), (step_size, scale)))


def expands_nothing(loss_class: LossClass, step_size: float, smoothness: float | None) -> bool:
    """Return whether every step's map is 1-Lipschitz: convex smooth losses, step_size <= 2/smoothness."""
    return loss_class == LossClass.CONVEX_SMOOTH and smoothness is not None and not exceeds_two(step_size, smoothness)


class NoisyPass(Setting):
    """One pass, each record used in one step, noise in every step.

    A theorem that needs no bounded domain, or no Lipschitz maps, does not know them, and finds nothing here that
    depends on them: distances are then inf, and there is no rate.
    """

    def own_ratio(self, divisor: int) -> float:
        """Return r_A of a record whose gradient sum is divided by ``divisor``."""
        return own_ratio(self.sensitivity, self.scale, divisor)

    @functools.cached_property
    def following(self) -> float:
        """r_B; inf without a bound."""
        return later_ratio(self.displacement, self.diameter, self.step_size, self.scale)

    @functools.cached_property
    def reach(self) -> float:
        """D/(eta scale), the diameter in units of the noise of a step, rounded up; inf where it is unbounded."""
        if math.isinf(self.diameter):
            return math.inf
        return decimal_quotient_up((self.diameter,), (self.step_size, self.scale))

    @functools.cached_property
    def lipschitz_rate(self) -> float | None:
        """-ln c of the Lipschitz factor c of a step, rounded down; None where it has none."""
        return loss_class.rate(
            loss_class=self.loss_class, step_size=self.step_size, smoothness=self.smoothness,
            strong_convexity=self.strong_convexity,
        )  # fmt: skip

    @functools.cached_property
    def expands_nothing(self) -> bool:
        """Whether every step's map is 1-Lipschitz."""
        return expands_nothing(self.loss_class, self.step_size, self.smoothness)

    @functools.cached_property
    def laplace_shifts(self) -> bool:
        """Whether the shift bounds for Laplace noise hold: one dimension, and every step's map is 1-Lipschitz."""
        return self.noise == Noise.LAPLACE and self.dimension == 1 and self.expands_nothing

    def trace(self, epsilon: float, own: float) -> Trace:
        """Return what a record of this r_A leaves at epsilon, by the domain alone."""
        return Trace(self.noise, epsilon, own, self.following)

    def shift_trace(self, epsilon: float, own: float) -> Trace:
        """Return what a record of this r_A leaves at epsilon, with the Gaussian shift bound where that holds."""
        return shift_trace(
            self.noise, epsilon, first=own, following=self.following, reach=self.reach, rate=self.lipschitz_rate
        )
