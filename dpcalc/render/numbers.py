"""Numbers as text. Guarantees are rounded up, never to nearest."""

from __future__ import annotations

import functools
import math

from dpcalc.model.parameter import PARAMETERS
from dpcalc.model.quantities import SUFFICIENT, Kind, Quantity
from dpcalc.plain_enum import PlainEnum
from dpcalc.report import Result

MAXIMISED = ("index", "lipschitz", "diameter", "start_distance", "epochs", "steps", "sample_rate", *SUFFICIENT)
"""Solved parameters of which the largest admissible value is reported: they round down in text."""


class Side(PlainEnum):
    """How a number is rounded in text."""

    UP = "up"  # never below the exact double
    DOWN = "down"  # never above it
    NEAREST = "nearest"
    ECHO = "echo"  # a typed budget: as it was typed where that fits, else up
    AS_GIVEN = "as given"  # all digits


def number(value: float | int | str, precision: int = 6, side: Side = Side.NEAREST) -> str:
    """Return ``value`` with ``precision`` significant digits, rounded to a side."""
    if isinstance(value, (str, int)):
        return str(value)
    if side == Side.AS_GIVEN:
        return repr(value).removesuffix(".0")
    if not math.isfinite(value) or value == 0.0:
        return f"{value:g}"
    text = f"{value:.{precision}g}"
    if side == Side.NEAREST or (side == Side.ECHO and float(text) == value):
        return text
    if value < 0.0:
        return "-" + _to_side(-value, text[1:], precision, up=side == Side.DOWN)
    return _to_side(value, text, precision, up=side != Side.DOWN)


def _to_side(value: float, text: str, precision: int, *, up: bool) -> str:
    """Return a positive ``value``, whose nearest digits are ``text``, not below (above) the exact double."""
    read = float(text)
    if read > value if up else read < value:
        return text  # reading is monotone: what reads as a larger double is a larger number
    # What reads as another double is on the other side.
    return (
        _directed(value, precision, up=up) if read == value else _beside(*_digits(value, precision), precision, up=up)
    )


@functools.lru_cache(maxsize=1024)
def _directed(value: float, precision: int, *, up: bool) -> str:
    """Return ``value`` to ``precision`` digits, not below (above) the exact double: compared in whole numbers."""
    digits, power = _digits(value, precision)
    numerator, denominator = value.as_integer_ratio()
    excess = digits * denominator * 10 ** max(power, 0) - numerator * 10 ** max(-power, 0)
    if excess < 0 if up else excess > 0:
        return _beside(digits, power, precision, up=up)
    return _literal(digits, power, precision)


def _digits(value: float, precision: int) -> tuple[int, int]:
    """Return the ``precision`` digits nearest to ``value``, and the power of ten of the last one."""
    mantissa, _, exponent = f"{value:.{precision - 1}e}".partition("e")
    return int(mantissa.replace(".", "")), int(exponent) - precision + 1


def _beside(digits: int, power: int, precision: int, *, up: bool) -> str:
    """Return the next number of so many digits above (below) digits 10^power."""
    if up:
        return _literal(digits + 1, power, precision)
    if digits > 10 ** (precision - 1):
        return _literal(digits - 1, power, precision)
    return _literal(10 * digits - 1, power - 1, precision)  # below a power of ten they are a tenth as coarse


def _literal(mantissa: int, power: int, precision: int) -> str:
    """Return mantissa 10^power as ``%g`` would write it, exactly."""
    sign, digits = "-" if mantissa < 0 else "", str(abs(mantissa))
    exponent = power + len(digits) - 1
    digits = digits.rstrip("0") or "0"
    if -4 <= exponent < precision:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole, rest = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
        return sign + whole + (f".{rest}" if rest else "")
    rest = f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{rest}e{exponent:+03d}"


def side_of(result: Result) -> Side:
    """Return the side to which a result's number is rounded in text."""
    promised = result.guarantee or result.best  # of a run that is not covered, the best one is no guarantee
    if not promised and result.kind != Kind.LOWER:
        return Side.NEAREST
    return Side.DOWN if (result.quantity in MAXIMISED) == promised else Side.UP


def delta_text(delta: float | None, log_delta: float | None, precision: int, side: Side = Side.NEAREST) -> str:
    """Return delta as a decimal, as a power of ten where it is below the range of a double."""
    if log_delta == -math.inf:
        return "0"
    if log_delta is not None and log_delta < -690.0:
        return _tiny(log_delta, precision, side)
    return number(delta, precision, side) if delta is not None else ""


_FARTHEST = 1e12
"""Beyond this logarithm the digits of a delta mean nothing, and its power of ten is shown alone."""


def _tiny(log_delta: float, precision: int, side: Side) -> str:
    """Return e^log_delta as a decimal whose exponent may be below those of a double."""
    if log_delta < -_FARTHEST:
        ten = log_delta / math.log(10.0) * {Side.UP: 1.0 - 2.0**-50, Side.DOWN: 1.0 + 2.0**-50}.get(side, 1.0)
        return "10^" + number(ten, max(precision, 6), side if side in (Side.UP, Side.DOWN) else Side.NEAREST)
    import decimal

    exact = decimal.Context(prec=precision + 25, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    value = exact.exp(decimal.Decimal(log_delta))
    value = {Side.UP: exact.next_plus, Side.DOWN: exact.next_minus}.get(side, exact.plus)(value)  # it was rounded
    roundings = {Side.UP: decimal.ROUND_CEILING, Side.DOWN: decimal.ROUND_FLOOR}
    rounding = roundings.get(side, decimal.ROUND_HALF_EVEN)
    digits = decimal.Context(precision, rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX).plus(value)
    mantissa, exponent = digits.as_tuple().digits, digits.adjusted()
    text = "".join(map(str, mantissa)).rstrip("0")
    return f"{text[0]}{'.' if text[1:] else ''}{text[1:]}e{exponent:+03d}"


def symbol_of(name: str) -> str:
    """Return ``name symbol``, for labels."""
    symbol = PARAMETERS.get(name)
    return f"{name} {symbol.symbol}" if symbol and symbol.symbol not in ("", name) else name


def value_text(result: Result, precision: int) -> str:
    """Return a result's value as text, on its safe side."""
    if result.quantity == Quantity.DELTA:
        return delta_text(result.delta, result.log_delta, precision, side_of(result))
    if (result.details or {}).get("any"):
        return "any"
    text = number(result.value, precision, side_of(result))
    holds = (result.details or {}).get("holds")
    # Rounded up past the end of what is proved, it would be outside: then all digits are shown.
    return text if holds is None or float(text) <= holds["to"] else number(result.value, side=Side.AS_GIVEN)
