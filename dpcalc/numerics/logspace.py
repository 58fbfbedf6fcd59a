"""Sums and differences of numbers held as natural logarithms, to nearest, and probabilities back from them, rounded."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dpcalc.numerics.floats import down, up


def log_sum_exp(logs: Iterable[float]) -> float:
    """Return ln of the sum of exp(x) over ``logs``; -inf for none."""
    terms = list(logs)
    peak = max(terms, default=-math.inf)
    if math.isinf(peak):
        return peak
    return peak + math.log(math.fsum(math.exp(x - peak) for x in terms))


def log_add_exp(a: float, b: float) -> float:
    """Return ln(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


def log_less(a: float, b: float) -> float:
    """Return ln(exp(a) - exp(b)); -inf where b is at least a."""
    return a + log_one_minus_exp(b - a) if b < a else -math.inf


def log_expm1(x: float) -> float:
    """Return ln(exp(x) - 1) for x >= 0 (-inf at 0)."""
    if x <= 0.0:
        return -math.inf
    return math.log(math.expm1(x)) if x < 30.0 else x + math.log1p(-math.exp(-x))


def log_exp1p(x: float) -> float:
    """Return ln(1 + exp(x))."""
    return x + math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x))


def log_one_minus_exp(x: float) -> float:
    """Return ln(1 - exp(x)) for x <= 0 (-inf at 0)."""
    if x >= 0.0:
        return -math.inf
    return math.log(-math.expm1(x)) if x > -0.6931471805599453 else math.log1p(-math.exp(x))


def exp_down(log_probability: float) -> float:
    """Return the probability with this logarithm, <= 0, rounded down; 0 where it would underflow."""
    return max(0.0, down(math.exp(log_probability), 4.0)) if log_probability > -745.0 else 0.0


def exp_up(log_probability: float) -> float:
    """Return the probability with this logarithm, rounded up, at most 1; never 0 except for ln 0 = -inf."""
    if log_probability == -math.inf:
        return 0.0
    return min(1.0, up(math.exp(max(log_probability, -745.0)), 4.0))
