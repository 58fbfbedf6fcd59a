"""Floating-point building blocks: outward rounding, error-free transformations, quotients of products, logarithms.

``np`` is numpy, imported on first use: its import takes longer than most answers that need no arrays. Modules that
compute with arrays import ``np`` from here.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeVar

    import numpy
    from numpy.typing import NDArray

    np = numpy
    Array = NDArray[np.float64]
    Booleans = NDArray[np.bool_]
    Integers = NDArray[np.int64]
    Scalar = TypeVar("Scalar", bound=np.generic)
else:
    Array = Booleans = Integers = Any

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            if not self.__dict__:
                numpy.empty(1 << 21)  # glibc keeps freed memory for later arrays once one of 16 MiB has been freed
            value = self.__dict__[name] = getattr(numpy, name)
            return value

    np = _Numpy()


def distinct(*parts: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the values of the parts in increasing order without repetitions; none may be nan.

    `numpy.unique` would import the masked arrays, a sixth of numpy's own import time.

    >>> import numpy as np
    >>> distinct(np.array([3, 1]), np.array([1, 2])).tolist()
    [1, 2, 3]
    """
    values = np.sort(np.concatenate(parts))
    return values[np.append(True, values[1:] != values[:-1])[: len(values)]]


UNIT = 2.0**-53
"""Unit roundoff of a double: one correctly rounded operation errs by at most this, relatively."""

MAX = 1.7976931348623157e308

SPLITTER = 134217729.0  # 2^27 + 1: splits a double into two halves for an exact product (Dekker)


def up(value: float, ulps: float = 1.0) -> float:
    """Return a double that exceeds ``value`` by at least ``ulps`` units of roundoff, relatively."""
    return math.nextafter(value + abs(value) * (ulps * UNIT), math.inf)


def down(value: float, ulps: float = 1.0) -> float:
    """Return a double below ``value`` by at least ``ulps`` units of roundoff, relatively."""
    return -up(-value, ulps) if math.isfinite(value) else value


def ratio_up(numerator: float, denominator: float, steps: int = 1) -> float:
    """Return numerator/(denominator sqrt(steps)), rounded up; exact if operands and value are short (`is_short`).

    Otherwise 8 units of roundoff are added, for three operations and half a unit of each operand (a decimal read as a
    double).
    """
    value = numerator / denominator / math.sqrt(steps)
    if is_short(value) and is_short(numerator) and is_short(denominator):
        n, d, v = (int(x * _SHORT) for x in (numerator, denominator, value))
        if v * v * d * d * steps == n * n * int(_SHORT) ** 2:
            return value
    return up(value, 8.0)


def product_up(*factors: float) -> float:
    """Return the product of non-negative factors, rounded up; exact if factors and value are short."""
    value = math.prod(factors)
    if is_short(value) and all(map(is_short, factors)):
        exact = math.prod(int(x * _SHORT) for x in factors)
        if exact == int(value * _SHORT) * int(_SHORT) ** (len(factors) - 1):
            return value
    return up(value, 4.0 * len(factors)) if value < MAX else math.inf


def decimal_quotient_up(numerators: tuple[float, ...], denominators: tuple[float, ...]) -> float:
    """Return a quotient of products of positive doubles, rounded up.

    It is at least the quotient of the doubles themselves and that of the decimals they print as, and exceeds the larger
    of the two by at most one rounding.
    """
    top, bottom, power = 1, 1, 0
    for x in numerators:
        digits, exponent = _decimal(x)
        top, power = top * digits, power + exponent
    for x in denominators:
        digits, exponent = _decimal(x)
        bottom, power = bottom * digits, power - exponent
    top, bottom = (top * 10**power, bottom) if power >= 0 else (top, bottom * 10**-power)
    above = [x.as_integer_ratio() for x in numerators]
    below = [x.as_integer_ratio() for x in denominators]
    over = math.prod(p for p, _ in above) * math.prod(q for _, q in below)
    under = math.prod(q for _, q in above) * math.prod(p for p, _ in below)
    return max(_divided_up(top, bottom), _divided_up(over, under))


def _divided_up(top: int, bottom: int) -> float:
    """Return the quotient of positive integers, rounded up; inf on overflow."""
    try:
        value = max(top / bottom, 5e-324)
    except OverflowError:
        return math.inf
    p, q = value.as_integer_ratio()
    return value if p * bottom >= q * top else math.nextafter(value, math.inf)


def _decimal(x: float) -> tuple[int, int]:
    """Return (digits, exponent) of the shortest decimal that reads as the double x."""
    mantissa, _, exponent = repr(float(x)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = int(whole + fraction)
    power = int(exponent or 0) - len(fraction)
    while digits % 10 == 0 and digits:
        digits, power = digits // 10, power + 1
    return digits, power


_SHORT = 1024.0  # 2^10


def is_short(x: float) -> bool:
    """Return whether x is a multiple of 2^-10 below 1e5, and so equals the decimal it prints as."""
    return abs(x) < 1e5 and (x * _SHORT).is_integer()


def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return (s, e) with s = fl(a + b) and s + e = a + b exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: float, b: float) -> tuple[float, float]:
    """Return (p, e) with p = fl(a b) and p + e = a b exactly (Dekker), for 1e-140 < |a|, |b|, |ab| < 1e290."""
    p = a * b
    t = SPLITTER * a
    ah = t - (t - a)
    al = a - ah
    t = SPLITTER * b
    bh = t - (t - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


_DOUBLE, _RANK = struct.Struct("<d"), struct.Struct("<q")


def ordinal(value: float) -> int:
    """Return the rank of a non-negative double among all of them (0.0 -> 0)."""
    rank: int = _RANK.unpack(_DOUBLE.pack(value))[0]
    return rank


def from_ordinal(rank: int) -> float:
    """Return the non-negative double of this rank: the inverse of `ordinal`."""
    return _DOUBLE.unpack(_RANK.pack(rank))[0]


def quotient_up(numerators: Sequence[float], denominators: Sequence[float], slack: float = 0.0) -> float:
    """Return a quotient of products of non-negative numbers, rounded up; no intermediate result over- or underflows.

    The allowance covers half a unit of each factor (a decimal read as a double), the roundings of the product, and
    ``slack`` more units of roundoff. inf if the result overflows.
    """
    mantissa, exponent = _product(numerators, denominators)
    if mantissa == 0.0:
        return 0.0
    value = _scaled(up(mantissa, slack + 4.0 * (len(numerators) + len(denominators))), exponent)
    return value if value > 1e-307 else math.nextafter(value, math.inf)


def quotient_down(numerators: Sequence[float], denominators: Sequence[float], slack: float = 0.0) -> float:
    """Return a quotient of products of non-negative numbers, rounded down by the allowance of `quotient_up`."""
    mantissa, exponent = _product(numerators, denominators)
    if mantissa == 0.0:
        return 0.0
    value = min(MAX, _scaled(down(mantissa, slack + 4.0 * (len(numerators) + len(denominators))), exponent))
    return value if value > 1e-307 else max(0.0, math.nextafter(value, 0.0))


def _product(numerators: Sequence[float], denominators: Sequence[float]) -> tuple[float, int]:
    """Return the quotient as (mantissa, exponent of 2)."""
    mantissa, exponent = 1.0, 0
    for x in numerators:
        part, shift = math.frexp(x)
        mantissa, exponent = mantissa * part, exponent + shift
    for x in denominators:
        part, shift = math.frexp(x)
        mantissa, exponent = mantissa / part, exponent - shift
    return mantissa, exponent


def _scaled(mantissa: float, exponent: int) -> float:
    try:
        return math.ldexp(mantissa, exponent)
    except OverflowError:
        return math.inf


def log_sum_exp(logs: Iterable[float]) -> float:
    """Return ln of the sum of exp(x) over ``logs``; -inf for none."""
    terms = list(logs)
    peak = max(terms, default=-math.inf)
    return peak if math.isinf(peak) else peak + math.log(math.fsum(math.exp(x - peak) for x in terms))


def log_add_exp(a: float, b: float) -> float:
    """Return ln(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


def log_less(a: float, b: float) -> float:
    """Return ln(exp(a) - exp(b)); -inf if b >= a."""
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
    """Return the probability with this logarithm, <= 0, rounded down; 0 if it would underflow."""
    return max(0.0, down(math.exp(log_probability), 4.0)) if log_probability > -745.0 else 0.0


def exp_up(log_probability: float) -> float:
    """Return the probability with this logarithm, rounded up, at most 1; never 0 except for ln 0 = -inf."""
    return 0.0 if log_probability == -math.inf else min(1.0, up(math.exp(max(log_probability, -745.0)), 4.0))
