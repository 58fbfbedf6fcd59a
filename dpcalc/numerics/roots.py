"""Bracketed inversion of monotone functions, Lambert's function W, and Gauss-Legendre quadrature.

`least` and `greatest` work on non-negative doubles and stop when the bracket is one representable number wide (or
``ulps``). The returned point has been *evaluated* and satisfies the inequality, whatever the rounding of the function.

W = W(z) > 0 on its principal branch solves W exp(W) = z, or W + ln W = ln z. With w a double near W, z exp(-w)/w - 1
and ln z - w - ln w are two forms of one residual: as a function of ln w, w + ln w has slope 1 + w, so

    ln(W/w) (1 + x) = ln z - w - ln w   for some x between w and W.

The enclosure is the result of Newton's method, widened by the residual and by the rounding of the residual. The
exponential and the logarithm of the standard library are assumed to err by at most one unit in the last place.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from dpcalc.errors import NotConverged
from dpcalc.numerics.floats import MAX, UNIT, down, from_ordinal, ordinal, up

_MAX_EVALUATIONS = 300  # bisection of all doubles takes 64; false position may waste some


def least(function: Callable[[float], float], lower: float, upper: float, *, ulps: int = 1) -> float:
    """Return the least x in [lower, upper] with function(x) <= 0, for a non-increasing function.

    Raises:
        NotConverged: function(upper) > 0, or the function returned nan.
    """
    at_lower = function(lower)
    if at_lower <= 0.0:
        return lower
    at_upper = function(upper)
    if not at_upper <= 0.0:
        raise NotConverged(f"no solution between {lower:g} and {upper:g}")
    return _close(function, lower, at_lower, upper, at_upper, ulps)


def greatest(function: Callable[[float], float], lower: float, upper: float, *, ulps: int = 1) -> float:
    """Return the greatest x in [lower, upper] with function(x) <= 0, for a non-decreasing function.

    Raises:
        NotConverged: function(lower) > 0, or the function returned nan.
    """
    at_upper = function(upper)
    if at_upper <= 0.0:
        return upper
    at_lower = function(lower)
    if not at_lower <= 0.0:
        raise NotConverged(f"no solution between {lower:g} and {upper:g}")
    return _close(function, upper, at_upper, lower, at_lower, ulps)


def near_minimum(function: Callable[[float], float], low: float, high: float, steps: int = 40) -> float:
    """Return a point near the minimum of a unimodal function by golden sections."""
    ratio = 0.6180339887498949
    a, b = low, high
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    at_c, at_d = function(c), function(d)
    for _ in range(steps):
        if at_c <= at_d:
            b, d, at_d = d, c, at_c
            c = b - ratio * (b - a)
            at_c = function(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + ratio * (b - a)
            at_d = function(d)
    return c if at_c <= at_d else d


def _close(
    function: Callable[[float], float], bad: float, at_bad: float, good: float, at_good: float, ulps: int
) -> float:
    """Shrink a bracket with function(bad) > 0 >= function(good); return its good end.

    Anderson-Bjorck false position. If three steps have not shrunk the bracket eightfold, counted in representable
    numbers so that tiny roots are found as fast as large ones, it is halved in that count. Near the root, where false
    position creeps from one side, the step is pushed just past it, which closes the bracket from the other side.
    """
    weight_bad, weight_good = at_bad, at_good
    bad_rank, good_rank = ordinal(bad), ordinal(good)
    target = abs(bad_rank - good_rank) >> 3
    for step in range(1, _MAX_EVALUATIONS):
        gap = abs(bad_rank - good_rank)
        if gap <= ulps:
            return good
        if step % 4 == 0 and gap > target:
            rank = (bad_rank + good_rank) >> 1
        else:
            # The secant's root, kept off the ends by a few representable numbers, or by half the final width.
            low, high = (bad_rank, good_rank) if bad_rank < good_rank else (good_rank, bad_rank)
            span = weight_bad - weight_good
            x = good + (bad - good) * (-weight_good / span) if 0.0 < span < math.inf else -1.0
            rank = ordinal(x) if 0.0 <= x < MAX else (low + high) >> 1
            margin = 1 + max(min(gap >> 6, 3), min(gap >> 2, ulps >> 1))
            rank = min(max(rank, low + margin), high - margin)
        if step % 4 == 0:
            target = gap >> 3
        x = from_ordinal(rank)
        value = function(x)
        if value > 0.0:
            weight_good *= _relax(value, at_bad)
            bad, bad_rank, at_bad, weight_bad = x, rank, value, value
        elif value <= 0.0:
            weight_bad *= _relax(value, at_good)
            good, good_rank, at_good, weight_good = x, rank, value, value
        else:
            break
    raise NotConverged(f"the search near {good:g} did not converge")


def _relax(value: float, previous: float) -> float:
    """Return the Anderson-Bjorck factor for the end of the bracket that did not move."""
    factor = 1.0 - value / previous if previous not in (0.0, math.inf, -math.inf) else 0.5
    return factor if factor > 0.0 else 0.5


_LIMIT = 1e300  # far from overflow of what follows
_IDENTITY = 1e-17  # below this z, the bounds z (1 - z) < W(z) < z are closer than one unit of roundoff


def lambert_w_of_exp(log_z: float) -> tuple[float, float]:
    """Return (low, high) around W(exp(log_z)), a few units of roundoff apart, even if exp(log_z) overflows.

    If W underflows, the ends are neighbours among the least doubles.

    Args:
        log_z: -1e300 to 1e300, taken as exact.

    Raises:
        ValueError: log_z is outside this domain, or nan.
    """
    if not abs(log_z) <= _LIMIT:
        raise ValueError(f"log_z must lie within +-{_LIMIT:g}, got {log_z!r}")
    return _enclose_from_log(log_z) if log_z > 1.0 else _enclose_from_value(math.exp(log_z))


def _enclose_from_value(z: float) -> tuple[float, float]:
    """Enclose W for an argument within 2 units of roundoff of z, 0 <= z < 3."""
    if z < _IDENTITY:
        return max(0.0, down(z, 4.0)), up(z, 4.0)
    w = z / (1.0 + z)
    for _ in range(6):
        w += w * (z * math.exp(-w) / w - 1.0) / (1.0 + w)
    return _widen(w, 1.01 * abs(z * math.exp(-w) / w - 1.0) + 7.0 * UNIT)


def _enclose_from_log(log_z: float) -> tuple[float, float]:
    """Enclose W for ln z = log_z >= 1."""
    w = log_z - math.log(log_z)
    for _ in range(6):
        w += (log_z - w - math.log(w)) * (w / (1.0 + w))
    # W is in [0.73, 1] log_z, so the first difference is exact.
    residual = log_z - w - math.log(w)
    rounding = UNIT * (2.0 * abs(math.log(w)) + 2.0 * abs(residual))
    return _widen(w, 1.1 * ((abs(residual) + rounding) / (1.0 + w)))


def _widen(w: float, relative_error: float) -> tuple[float, float]:
    """Return an interval that contains every number within this relative error of w."""
    units = relative_error / UNIT + 1.0
    return down(w, units), up(w, units)


@functools.cache
def gauss_legendre(points: int) -> tuple[tuple[float, float], ...]:
    """Return the (node, weight) pairs on [-1, 1], by Newton's method on the Legendre polynomial."""
    pairs = []
    for i in range(points):
        x = math.cos(math.pi * (i + 0.75) / (points + 0.5))
        for _ in range(6):
            value, slope = _legendre(points, x)
            x -= value / slope
        _, slope = _legendre(points, x)
        pairs.append((x, 2.0 / ((1.0 - x * x) * slope * slope)))
    return tuple(pairs)


def _legendre(degree: int, x: float) -> tuple[float, float]:
    previous, current = 1.0, x
    for k in range(2, degree + 1):
        previous, current = current, ((2 * k - 1) * x * current - (k - 1) * previous) / k
    return current, degree * (x * current - previous) / (x * x - 1.0)


def integrate(function: Callable[[float], float], lower: float, upper: float, points: int) -> float:
    """Return the integral of ``function`` over [lower, upper] by one Gauss-Legendre panel."""
    half = 0.5 * (upper - lower)
    middle = lower + half
    return half * math.fsum(w * function(middle + half * x) for x, w in gauss_legendre(points))
