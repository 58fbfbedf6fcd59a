"""Integer noise by exact sampling, without floating-point numbers.

The discrete Laplace law of rate a > 0 has P(z) = (1 - q)/(1 + q) q^|z|, q = e^-a, on the integers z. Added to an
integer that a replaced record changes by at most k, it gives k a-differential privacy.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from fractions import Fraction

Below = Callable[[int], int]
"""Draws a uniform integer from 0 to below its argument."""


def draw(rate: Fraction, below: Below = secrets.randbelow) -> int:
    """Return a discrete Laplace variable (Canonne, Kamath and Steinke 2020, Algorithm 2).

    Args:
        rate: a > 0.
        below: the source of randomness; by default that of the operating system.
    """
    s, t = rate.numerator, rate.denominator
    while True:
        u = below(t)
        if not _with_probability_exp(Fraction(u, t), below):
            continue
        v = 0
        while _with_probability_exp(Fraction(1), below):
            v += 1
        size = (u + t * v) // s
        negative = below(2) == 1
        if size or not negative:  # 0 has one sign
            return -size if negative else size


def _with_probability_exp(x: Fraction, below: Below) -> bool:
    """Return True with probability e^-x, 0 <= x <= 1: von Neumann's alternating series."""
    k = 1
    while below(x.denominator * k) < x.numerator:
        k += 1
    return k % 2 == 1


def deviation(rate: Fraction) -> float:
    """Return the standard deviation, sqrt(2 q)/(1 - q)."""
    a = float(rate)
    return math.sqrt(2.0) * math.exp(-0.5 * a) / -math.expm1(-a)


def margin(rate: Fraction, failure: float) -> int:
    """Return a k with P(|z| > k) <= failure: the probability is 2 q^(k+1)/(1 + q)."""
    a = float(rate)
    most = math.log(2.0 / ((1.0 + math.exp(-a)) * failure)) / a
    return max(0, math.ceil(most * (1.0 + 1e-9)))
