"""Powers and sums of powers of the factor c = exp(-rate) by which a step contracts, accurate for every rate >= 0."""

from __future__ import annotations

import math

from dpcalc.numerics.floats import UNIT

DEEPEST = 2800.0
"""Larger exponents make no difference: exp(-2800) times the largest double over the smallest is below the smallest."""


def in_range(rate: float) -> float:
    """Return the rate, moved down into the range of these functions.

    Rates outside that range differ from c = 1 or c = 0 by less than the rounding.
    """
    return min(rate, 1e4) if rate > 1e-200 else 0.0


def lost(rate: float, steps: int) -> float:
    """Return 1 - c^steps."""
    return -math.expm1(-rate * steps)


def kept(rate: float, steps: int) -> float:
    """Return c^steps, rounded up (e^-700 where it is less)."""
    exponent = min(rate * steps, 700.0)
    return math.exp(-exponent) * (1.0 + (4.0 * exponent + 4.0) * UNIT) if exponent else 1.0


def factors(rate: float, steps: int) -> tuple[tuple[float, ...], float]:
    """Return factors whose product is c^steps, none of them subnormal, and their error in units of roundoff."""
    exponent = min(rate * steps, DEEPEST)
    return ((math.exp(-0.25 * exponent),) * 4, 4.0 * exponent + 16.0) if exponent else ((), 0.0)


def total(rate: float, steps: int, count: int) -> float:
    """Return 1 + c^steps + ... + c^(steps (count-1))."""
    return float(count) if rate == 0.0 else math.expm1(-rate * (steps * count)) / math.expm1(-rate * steps)


def variance(rate: float, steps: int) -> float:
    """Return G = 1 + c^2 + ... + c^(2 (steps-1)), the variance that so many steps of unit noise leave."""
    return float(steps) if rate == 0.0 else math.expm1(-2.0 * rate * steps) / math.expm1(-2.0 * rate)


def half_tanh(exponent: float) -> float:
    """Return (1 - e^-x)/(1 + e^-x), that is tanh(x/2)."""
    return -math.expm1(-exponent) / (1.0 + math.exp(-exponent))
