"""Shift bounds for Laplace noise in one dimension, with 1-Lipschitz maps and equal steps.

There are two routes. A shift spread evenly over k+1 steps costs each of them pure privacy Delta/(v (k+1)), and pure
privacy composes exactly. Or: a Laplace variable of scale v is a Gaussian of variance 2 v^2 W, W exponential. If the W
are published (they are independent of the data), the Gaussian shift bound holds for each draw, and by joint convexity

    delta <= E delta_G(eps; (Delta/v)/sqrt(2 G)),   G ~ Gamma(k+1).

The sum over k = 0 .. n-1 is the integral of delta_G(eps; (Delta/v)/sqrt(2 g)) against P(Gamma(n) > g). That weight has
integral n and delta_G falls, so the integral over 0 < g < n is an upper bound.

One pass with noise in every step: its distances in units of that noise, and the trace that a record leaves.

r_A is how far the record moves its own step, r_B how far a later step leaves two points of the domain.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from dpcalc.model import loss_class
from dpcalc.model.loss_class import exceeds_two
from dpcalc.model.quantities import LossClass, Noise
from dpcalc.notions import gaussian, optimal_composition
from dpcalc.numerics.floats import UNIT, decimal_quotient_up, up
from dpcalc.numerics.sums import log_integral_hockey_sticks_up
from dpcalc.theorems.contraction import recursion
from dpcalc.theorems.contraction.recursion import Trace, shift_trace
from dpcalc.theorems.setting import Setting

_MOST_SHARES = 10**6
_FEW = 12  # this many numbers of shares are tried, besides all of them
_DEEP = 46.0  # a term below e^-46 of the largest ends a sum
_SUM_ONE_BY_ONE = 8
_WIDTHS = tuple(1e-9 * 1.5**n for n in range(64))
_COMPOSED = 10_000  # the hybrid composes shares only up to this many later steps


@functools.lru_cache(maxsize=64)
def composed_of(*, ratio: float, count: int, epsilon: float) -> float:
    """Return an upper bound on ln delta of the composition of ``count`` equal shares of the shift ``ratio`` (in
    scales)."""
    return composed_shares(share=up(ratio / count, 2.0), count=count, epsilon=epsilon)


def composed_shares(*, share: float, count: int, epsilon: float) -> float:
    """Return an upper bound on ln delta of the composition of ``count`` mechanisms of pure privacy ``share`` each."""
    return optimal_composition.log_delta(epsilon0=share, log_delta0=-math.inf, count=count, epsilon=epsilon)


class LaplaceShift(NamedTuple):
    """A shift hidden by the Laplace noise of a record's own and later steps, at an epsilon.

    Attributes:
        ratio: Delta/v.
        epsilon: >= 0.
    """

    ratio: float
    epsilon: float

    def composed(self, later: int) -> float:
        """Return the least of `composed_of` over a few numbers of steps and all of them.

        Shares are capped at a million.
        """
        ratio, epsilon = self
        if epsilon >= ratio:
            return -math.inf
        most = min(later + 1, _MOST_SHARES)
        counts = {*range(1, min(most, _FEW) + 1), most, max(1, most - 1)}
        return min(composed_of(ratio=ratio, count=count, epsilon=epsilon) for count in counts)

    def mixture(self, later: int) -> float:
        """Return an upper bound on ln of E delta_G(eps; ratio/sqrt(2 G)), G ~ Gamma(later + 1), and of the own step.

        With G = a e^t, a = later + 1, the integrand is exp(-a (e^t - 1 - t)) delta_G up to a constant: analytic with
        one peak, so the trapezoidal rule converges faster than any power. Two step sizes are compared; their difference
        is added.
        """
        ratio, epsilon = self
        own = recursion.log_one_step(Noise.LAPLACE, epsilon, ratio)
        if own == -math.inf or later == 0 or not 1e-100 < ratio < 1e90:
            return own
        a = later + 1.0
        reduced = ratio / math.sqrt(2.0 * a) * (1.0 + 4.0 * UNIT)

        def log_integrand(t: float) -> float:
            mu = min(1e300, reduced * math.exp(min(600.0, -0.5 * t)))
            return gaussian.log_delta(mu=mu, epsilon=epsilon) - a * _excess(t)

        depth = -log_integrand(0.0)
        if depth > 1e12:
            # A smaller number of steps is valid: the noise of the rest is not counted.
            fewer = int(later * 1e11 / depth)
            return min(own, self.mixture(fewer)) if 0 < fewer < later else own
        peak = _peak(log_integrand, -(math.sqrt(2.0 * depth / a) + depth / a + 1.0), 0.0)
        top = log_integrand(peak)
        width = min(
            _half_width(log_integrand, peak, top, -1.0),
            _half_width(log_integrand, peak, top, 1.0),
            0.5 / math.sqrt(1.0 + epsilon),
        )
        step = min(0.25, 0.25 * width)
        fine = _trapezoid(log_integrand, peak, top, step)
        coarse = _trapezoid(log_integrand, peak + step, top, 2.0 * step)
        log_density = 0.5 * math.log(a / (2.0 * math.pi)) - _stirling_error(a)
        value = top + log_density + math.log(fine + 2.0 * abs(fine - coarse))
        return min(own, value + 1e-12 + UNIT * 16.0 * abs(value), 0.0)

    def mixture_sum(self, terms: int) -> float:
        """Return an upper bound on ln of the sum of `mixture` over later = 0 .. terms-1."""
        ratio, epsilon = self
        if terms <= _SUM_ONE_BY_ONE:
            values = [self.mixture(k) for k in range(terms)]
            peak = max(values)
            if peak == -math.inf:
                return peak
            return peak + math.log(math.fsum(math.exp(v - peak) for v in values)) + 1e-14
        if not 1e-90 < ratio < 1e90:
            return math.log(terms) + recursion.log_one_step(Noise.LAPLACE, epsilon, ratio)
        return log_integral_hockey_sticks_up(epsilon, up(ratio * math.sqrt(0.5), 2.0), float(terms))


def hybrid_last(trace: Trace, later: int) -> float:
    """Return the least of the non-linear recursion alone, and started from a shift bound at step 0, 1, 3, 7, ... or k.

    Args:
        trace: of Laplace noise in one dimension with 1-Lipschitz maps, without a shift bound of its own.
        later: k.
    """
    best, shift = recursion.last(trace, later), LaplaceShift(trace.first, trace.epsilon)
    for start in sorted({later, *powers_less_one(later)}):
        if best == -math.inf:
            break
        log_e = shift.mixture(start)
        if start < _COMPOSED:
            log_e = min(log_e, shift.composed(start))
        best = min(best, recursion.last(trace._replace(start=log_e), later - start))
    return best


def powers_less_one(most: int) -> list[int]:
    """Return 0, 1, 3, 7, ... up to ``most``: the later starts to try."""
    return [2**j - 1 for j in range(most.bit_length())]


def _excess(t: float) -> float:
    """Return e^t - 1 - t, without cancellation."""
    if abs(t) > 0.1:
        return math.expm1(t) - t
    total = 0.0
    for j in range(12, 1, -1):
        total = total * t + 1.0 / math.factorial(j)
    return total * t * t


def _stirling_error(a: float) -> float:
    """Return ln Gamma(a+1) - ((a + 1/2) ln a - a + ln(2 pi)/2), rounded down, for a >= 1."""
    if a < 64.0:
        return math.lgamma(a + 1.0) - ((a + 0.5) * math.log(a) - a + 0.9189385332046728) - 1e-13
    return 1.0 / (12.0 * a) - 1.0 / (360.0 * a**3)


def _peak(function: Callable[[float], float], low: float, high: float) -> float:
    """Return about the maximum of a function with one peak, by golden sections."""
    ratio = 0.6180339887498949
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = function(a), function(b)
    for _ in range(40):
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = function(b)
        else:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = function(a)
    return 0.5 * (low + high)


def _half_width(function: Callable[[float], float], peak: float, top: float, sign: float) -> float:
    """Return about the distance from the peak at which the function has fallen by 1/2."""
    within, beyond = -1, next(n for n, width in enumerate(_WIDTHS) if width >= 64.0)
    while beyond - within > 1:
        middle = (within + beyond) // 2
        if function(peak + sign * _WIDTHS[middle]) > top - 0.5:
            within = middle
        else:
            beyond = middle
    return _WIDTHS[beyond]


def _trapezoid(function: Callable[[float], float], start: float, top: float, step: float) -> float:
    """Return step times the sum of exp(function - top) at start + j step, out to where it has fallen by e^-46."""
    total = math.exp(function(start) - top)
    for sign in (-1.0, 1.0):
        t = start
        while True:
            t += sign * step
            value = function(t) - top
            total += math.exp(value)
            if value < -_DEEP:
                break
    return step * total


def own_ratio(sensitivity: float, scale: float, size: int = 1) -> float:
    """Return r_A = Delta/(b scale), rounded up."""
    return decimal_quotient_up((sensitivity,), (float(size), scale)) if sensitivity > 0.0 else 0.0


def later_ratio(displacement: float | None, diameter: float, step_size: float, scale: float) -> float:
    """Return r_B = c D/(eta scale), rounded up; inf if the domain is unbounded or the displacement unknown."""
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

    If a theorem does not read the domain or the Lipschitz constants, distances here are inf and there is no rate.
    """

    def own_ratio(self, divisor: int) -> float:
        """Return r_A of a record in a batch with this divisor."""
        return own_ratio(self.sensitivity, self.scale, divisor)

    @functools.cached_property
    def following(self) -> float:
        """r_B; inf without a bound."""
        return later_ratio(self.displacement, self.diameter, self.step_size, self.scale)

    @functools.cached_property
    def reach(self) -> float:
        """D/(eta scale), the diameter in units of the noise of a step, rounded up; inf if it is unbounded."""
        if math.isinf(self.diameter):
            return math.inf
        return decimal_quotient_up((self.diameter,), (self.step_size, self.scale))

    @functools.cached_property
    def lipschitz_rate(self) -> float | None:
        """-ln c of the Lipschitz factor c of a step, rounded down; None if it has none."""
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
        """Whether the shift bounds for Laplace noise hold: in one dimension, with 1-Lipschitz maps."""
        return self.noise == Noise.LAPLACE and self.dimension == 1 and self.expands_nothing

    def trace(self, epsilon: float, own: float) -> Trace:
        """Return the trace of a record with this r_A at epsilon, from the domain alone."""
        return Trace(self.noise, epsilon, own, self.following)

    def shift_trace(self, epsilon: float, own: float) -> Trace:
        """Return the trace of a record with this r_A at epsilon, with the Gaussian shift bound if that holds."""
        return shift_trace(
            self.noise, epsilon, first=own, following=self.following, reach=self.reach, rate=self.lipschitz_rate
        )
