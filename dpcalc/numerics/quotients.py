"""Quotients of products of non-negative numbers, rounded up or down; no intermediate result over- or underflows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcalc.numerics.floats import MAX, down, up


def quotient_up(numerators: Sequence[float], denominators: Sequence[float], slack: float = 0.0) -> float:
    """Return a quotient of products of non-negative numbers, rounded up.

    The allowance covers half a unit of each factor (a decimal read as a double), the roundings of the product, and
    ``slack`` more units of roundoff. inf where the result overflows.
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
