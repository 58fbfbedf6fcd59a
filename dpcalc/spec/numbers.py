"""Numbers as people type them: ``1e-5``, ``1/60000``, ``2^-20``, ``1_000``, ``1%``; and sweeps of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from dpcalc.errors import SpecError

if TYPE_CHECKING:
    from fractions import Fraction

MAX_LENGTH = 100
MAX_SWEEP = 10_000
_MAX_EXPONENT = 100_000
_MAX_INTEGER = 10**18
_PLAIN = frozenset("0123456789.eE+-_")

Number = TypeVar("Number", bound=float)


def parse_number(text: str, *, allow_inf: bool = False) -> float:
    """Return the double nearest to the number typed.

    Args:
        text: a decimal literal, a quotient ``a/b``, a power ``a^b`` or ``a**b``, or a percentage.
        allow_inf: whether ``inf`` is a number here.

    Raises:
        SpecError: it is none, is nan, or does not fit a double (too large, or not 0 but rounded to 0).
    """
    text = _checked(text)
    if text.lstrip("+").lower() in ("inf", "infinity"):
        if allow_inf:
            return math.inf
        raise SpecError(f"{text!r} is not allowed here: a finite number is needed")
    if _PLAIN.issuperset(text):  # the usual case, without importing fractions
        value = _literal(text)
        if value != 0.0 and math.isfinite(value):
            return value
    return _to_double(_rational(text), text)


def parse_log(text: str) -> float:
    """Return the natural logarithm of the positive number typed, which may be far below the smallest double.

    Raises:
        SpecError: it is not a positive number.
    """
    text = _checked(text)
    if _PLAIN.issuperset(text):
        value = _literal(text)
        if 1e-300 < value < 1e300:
            return math.log(value)
    rational = _rational(text)
    if rational <= 0:
        raise SpecError(f"{text!r} must be a positive number")
    return _log_of(rational)


def parse_integer(text: str) -> int:
    """Return the whole number typed: ``60000``, ``60_000``, ``1e6``, ``2^20``.

    Raises:
        SpecError: it is not a whole number, or its magnitude exceeds 1e18.
    """
    text = _checked(text)
    if text.isascii() and text.isdecimal() and len(text) < 18:
        return int(text)
    rational = _rational(text)
    if rational.denominator != 1:
        raise SpecError(f"{text!r} is not a whole number")
    if abs(rational) > _MAX_INTEGER:
        raise SpecError(f"{text!r} is too large: at most 1e18")
    return rational.numerator


def parse_sweep(text: str, parse: Callable[[str], Number]) -> list[Number]:
    """Return the values of a sweep: one number, ``1,2,4``, ``start:stop:step`` or ``start:stop:log7``.

    Args:
        text: the sweep; ranges include their end.
        parse: `parse_number` or `parse_integer`, for each value.

    Raises:
        SpecError: it does not parse, or has more than 10000 values.
    """
    if len(text) > MAX_SWEEP * 20:
        raise SpecError(f"a sweep of {len(text)} characters is too long", f"at most {MAX_SWEEP} values")
    parts = text.split(",")
    if len(parts) > MAX_SWEEP:
        raise SpecError(f"a sweep of {len(parts)} values is too long", f"at most {MAX_SWEEP}")
    return [value for part in parts for value in (_range(part, parse) if ":" in part else [parse(part)])]


def _range(text: str, parse: Callable[[str], Number]) -> list[Number]:
    ends = text.split(":")
    if len(ends) != 3:
        raise SpecError(f"{text!r} is not a range", "write start:stop:step, for example 1:10:0.5, or 1:1000:log7")
    if ends[2].startswith("log"):
        return _log_range(text, ends, parse)
    start, stop, step = (_rational(_checked(end)) for end in ends)
    if step == 0 or (stop - start) / step < 0:
        raise SpecError(f"{text!r} never reaches its end", "the step must lead from start to stop, and not be 0")
    count = math.floor((stop - start) / step) + 1
    if count > MAX_SWEEP:
        raise SpecError(f"{text!r} has {count} values", f"at most {MAX_SWEEP}")
    values = (start + k * step for k in range(count))
    return [parse(f"{value.numerator}/{value.denominator}") for value in values]


def _log_range(text: str, ends: list[str], parse: Callable[[str], Number]) -> list[Number]:
    points = ends[2].removeprefix("log")
    count = int(points) if points.isdecimal() and len(points) < 6 else 0
    if not 2 <= count <= MAX_SWEEP:
        raise SpecError(f"{text!r}: a log range needs 2 to {MAX_SWEEP} points", "for example 1:1000:log7")
    first, last = parse(ends[0]), parse(ends[1])
    if not (first > 0 and last > 0):
        raise SpecError(f"{text!r}: the ends of a log range must be positive")
    low, high = math.log(first), math.log(last)
    inner = (math.exp(low + (high - low) * k / (count - 1)) for k in range(1, count - 1))
    whole = isinstance(first, int)
    values = [parse(str(round(x)) if whole else f"{x:.12g}") for x in inner]
    return list(dict.fromkeys([first, *values, last]))


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise SpecError(f"{text!r} is not a number")
    text = text.strip(" ")
    if not text:
        raise SpecError("an empty value is not a number")
    if len(text) > MAX_LENGTH:
        raise SpecError(f"a number of {len(text)} characters is too long", f"at most {MAX_LENGTH}")
    return text


def _not_a_number(text: str) -> SpecError:
    hint = (
        "write 1.5 (a comma separates the values of a sweep)" if "," in text else "for example 1e-5, 1/60000, 2^-20, 1%"
    )
    return SpecError(f"{text!r} is not a number", hint)


def _literal(text: str) -> float:
    """Return the double of a plain ASCII decimal literal."""
    try:
        return float(text)
    except ValueError:
        raise _not_a_number(text) from None


def _rational(text: str) -> Fraction:
    """Return the exact value of what was typed."""
    from fractions import Fraction

    if text.endswith("%"):
        return _rational_power(text, text[:-1]) / 100
    numerator, slash, denominator = text.partition("/")
    if not slash:
        return _rational_power(text, text)
    below = _rational_power(text, denominator)
    if below == 0:
        raise SpecError(f"{text!r} divides by zero")
    return Fraction(_rational_power(text, numerator) / below)


def _rational_power(whole: str, text: str) -> Fraction:
    base, mark, exponent = text.replace("**", "^").partition("^")
    if not mark:
        return _decimal(whole, base)
    power = _decimal(whole, exponent)
    number = _decimal(whole, base)
    if power.denominator != 1 or abs(power) > _MAX_EXPONENT or (number == 0 and power < 0) or len(base) > 20:
        raise SpecError(f"{whole!r}: the exponent must be a whole number up to {_MAX_EXPONENT}")
    result: Fraction = number**power.numerator
    return result


def _decimal(whole: str, text: str) -> Fraction:
    from fractions import Fraction

    if not _PLAIN.issuperset(text):
        raise _not_a_number(whole)
    _literal(text)  # refuses what Fraction would take and a number must not be
    exponent = text.lower().partition("e")[2].lstrip("+-").replace("_", "")
    if len(exponent) > 6 or int(exponent or 0) > _MAX_EXPONENT:
        raise SpecError(f"{whole!r}: the exponent is beyond {_MAX_EXPONENT}")
    return Fraction(text)


def _to_double(value: Fraction, text: str) -> float:
    try:
        result = value.numerator / value.denominator
    except OverflowError:
        raise SpecError(f"{text!r} is too large for a number", "at most 1.7e308") from None
    if result == 0.0 and value != 0:
        raise SpecError(f"{text!r} is too small for a number", "at least 5e-324")
    return result


def _log_of(value: Fraction) -> float:
    """Return ln of a positive rational of any size, to the last digit."""
    from decimal import Context, Decimal

    context = Context(prec=60, Emin=-999999, Emax=999999)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return float(context.ln(quotient))
