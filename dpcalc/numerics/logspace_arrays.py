"""Sums and differences of arrays of numbers held as natural logarithms, to nearest: the array form of `logspace`."""

from __future__ import annotations

import math

from dpcalc.numerics.arrays import Array, np


def log_sum_exp(logs: Array) -> float:
    """Return ln of the sum of exp(logs); -inf for none."""
    peak = float(logs.max(initial=-math.inf))
    if peak == -math.inf:
        return peak
    return peak + math.log(float(np.exp(logs - peak).sum()))


def log_one_minus_exp(x: Array) -> Array:
    """Return ln(1 - e^x), elementwise, for x <= 0, good to 4 units of roundoff of 1 + |value|; -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.where(x > -0.6931471805599453, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log_difference(a: Array, b: Array) -> Array:
    """Return ln(e^a - e^b), elementwise, for a >= b; -inf where they are equal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(a > b, a + np.log(-np.expm1(b - a)), -np.inf)
