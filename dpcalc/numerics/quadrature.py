"""Gauss-Legendre quadrature."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable


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
