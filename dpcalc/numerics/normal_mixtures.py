"""Probabilities of half-lines under mixtures of normal laws, rounded to either side.

For any event A, P(A) - e^eps Q(A) is a lower bound on delta(eps) of the pair (P, Q), whether A is the best event or
not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.logspace_arrays import log_sum_exp
from dpcalc.numerics.normal import LN_SQRT_2PI
from dpcalc.numerics.normal_arrays import mills

if TYPE_CHECKING:
    from collections.abc import Callable


_LOCAL = 1e4  # a line through two points is trusted at so many times the distance that is wanted
_LOG_ZERO = -1e300  # stands for ln 0 among weights


class Mixture(NamedTuple):
    """Normal laws: logarithms of their weights, means and standard deviations."""

    log_weight: Array
    mean: Array
    spread: Array


def log_upper_tail(u: Array) -> Array:
    """Return ln P(N(0, 1) > u), elementwise, within 8 units of roundoff of (1 + u^2)."""
    v = np.clip(u, -1e100, 1e100)
    with np.errstate(under="ignore"):
        log_density = -0.5 * v * v - LN_SQRT_2PI
        far = v > -1.0
        value = np.empty_like(v)
        value[far] = log_density[far] + np.log(mills(v[far]))
        value[~far] = np.log1p(-np.exp(log_density[~far]) * mills(-v[~far]))
    return value


def _log_sum(values: Array) -> float:
    return log_sum_exp(values) if float(values.max()) > _LOG_ZERO else -math.inf


def _log_probability(mixture: Mixture, above: float, side: int) -> float:
    """Return ln of the probability of the half-line above a threshold, rounded up (side 1) or down (side -1)."""
    u = (above - mixture.mean) / mixture.spread
    size = np.minimum(np.abs(u) * ((abs(above) + np.abs(mixture.mean)) / mixture.spread), 1e290)
    value = mixture.log_weight + log_upper_tail(u)
    value = value + side * UNIT * (16.0 * size + 16.0 * u * u + 4.0 * np.abs(mixture.log_weight) + 32.0)
    return _log_sum(value) + side * UNIT * (64.0 + len(u))


def log_advantage_down(p: Mixture, q: Mixture, epsilon: float, above: float) -> float:
    """Return ln of P(A) - e^epsilon Q(A) for the half-line A above a threshold, rounded down.

    The weights of ``p`` are taken as lower bounds, those of ``q`` as upper bounds.

    Args:
        p, q: mixtures with positive standard deviations.
        epsilon: finite and >= 0.
        above: the threshold, finite.

    Returns:
        A lower bound; -inf where the difference may be 0 or negative.
    """
    log_p = _log_probability(p, above, -1)
    gap = _log_probability(q, above, 1) + epsilon * (1.0 + UNIT) - log_p
    if not gap < 0.0 or log_p == -math.inf:
        return -math.inf
    value = log_p + math.log1p(-math.exp(gap)) if gap < -0.7 else log_p + math.log(-math.expm1(gap))
    gap_error = UNIT * (8.0 * abs(log_p) + 8.0 * epsilon + 16.0)
    if -gap <= 4.0 * gap_error:
        return -math.inf
    return value - UNIT * (8.0 * abs(value) + 32.0) - 2.0 * gap_error * math.exp(min(0.0, gap)) / -math.expm1(gap)


def log_density(mixture: Mixture, at: float) -> float:
    """Return ln of the density at a point but for ln sqrt(2 pi), to nearest."""
    u = np.minimum(np.abs((at - mixture.mean) / mixture.spread), 1e100)
    return _log_sum(mixture.log_weight - 0.5 * u * u - np.log(mixture.spread))


def likelihood_ratio_threshold(p: Mixture, q: Mixture, epsilon: float) -> float:
    """Return about where the density of P is e^epsilon times that of Q.

    This is the best threshold if the likelihood ratio increases; any threshold gives a valid bound.
    """

    def log_excess(x: float) -> float:
        return log_density(p, x) - log_density(q, x) - epsilon

    width = float(p.spread.max())
    low, high = float(min(p.mean.min(), q.mean.min())), float(max(p.mean.max(), q.mean.max()))
    step = width + (high - low)
    for _ in range(80):
        if log_excess(high) >= 0.0 or high > 1e15 * width:
            break
        low, high, step = high, high + step, 2.0 * step
    return _crossing(log_excess, low, high, 1e-6 * width)


def _crossing(rising: Callable[[float], float], low: float, high: float, within: float) -> float:
    """Return about where a function that rises crosses 0 between two ends; the middle of the last bracket at worst.

    Secants of the bracket lead there, and a bisection after every other one keeps the bracket from shrinking at one end
    alone. It ends where the line through the last two points, which are close, is as near to 0 as is wanted.
    """
    below, above = rising(low), rising(high)
    last, reached = low, below
    for step in range(90):
        if high - low <= within:
            break
        share = below / (below - above) if step % 3 < 2 and -math.inf < below < 0.0 < above < math.inf else 0.5
        at = low + min(max(share, 1e-3), 1.0 - 1e-3) * (high - low)
        value = rising(at)
        low, below, high, above = (low, below, at, value) if value >= 0.0 else (at, value, high, above)
        way = abs(at - last)
        if way <= _LOCAL * within and abs(value) * way <= within * abs(value - reached) < math.inf:
            return at
        last, reached = at, value
    return 0.5 * (low + high)
