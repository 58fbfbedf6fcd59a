"""Numbers as text. Guarantees are rounded up, never to nearest."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.model.parameter import PARAMETERS
from dpcalc.model.quantities import SUFFICIENT, Kind, Quantity
from dpcalc.plain_enum import PlainEnum
from dpcalc.report import Result

MAXIMISED = (*(name for name, direction in DIRECTIONS.items() if not direction.more_is_private), *SUFFICIENT)
"""Solved parameters whose largest admissible value is reported: they round down in text."""


class Side(PlainEnum):
    """The direction in which a number is rounded in text."""

    UP = "up"  # never below the exact double
    DOWN = "down"  # never above it
    NEAREST = "nearest"
    ECHO = "echo"  # a typed budget: as typed if that fits, else up
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
        return "-" + _directed(-value, precision, up=side == Side.DOWN)
    up, read = side != Side.DOWN, float(text)
    # Reading is monotone: a text that reads as a larger double is a larger number.
    return text if (read > value if up else read < value) else _directed(value, precision, up=up)


@functools.lru_cache(maxsize=1024)
def _directed(value: float, precision: int, *, up: bool) -> str:
    """Round a positive ``value`` up or down to ``precision`` digits, by a comparison of integers."""
    mantissa, _, exponent = f"{value:.{precision - 1}e}".partition("e")
    digits, power = int(mantissa.replace(".", "")), int(exponent) - precision + 1
    numerator, denominator = value.as_integer_ratio()
    excess = digits * denominator * 10 ** max(power, 0) - numerator * 10 ** max(-power, 0)
    if up and excess < 0:
        digits += 1
    elif not up and excess > 0 and digits > 10 ** (precision - 1):
        digits -= 1
    elif not up and excess > 0:
        digits, power = 10 * digits - 1, power - 1  # below a power of ten digits are ten times as fine
    text = str(digits)
    first = power + len(text) - 1
    text = text.rstrip("0")
    if first < -4 or first >= precision:
        return _scientific(text, first)
    if first < 0:
        return f"0.{'0' * (-first - 1)}{text}"
    whole, rest = text[: first + 1].ljust(first + 1, "0"), text[first + 1 :]
    return f"{whole}.{rest}" if rest else whole


def _scientific(digits: str, exponent: int) -> str:
    """Return a number as ``%g`` writes it with an exponent."""
    return f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{exponent:+03d}"


def side_of(result: Result) -> Side:
    """Return the direction in which a result's number is rounded in text."""
    promised = result.guarantee or result.best  # the best result of an uncovered run is not a guarantee
    if not promised and result.kind != Kind.LOWER:
        return Side.NEAREST
    return Side.DOWN if (result.quantity in MAXIMISED) == promised else Side.UP


def symbol_of(name: str) -> str:
    """Return ``name symbol``, for labels."""
    symbol = PARAMETERS.get(name)
    return f"{name} {symbol.symbol}" if symbol and symbol.symbol not in ("", name) else name


def equation(name: str, value: float | int | str) -> str:
    """Return ``name symbol = value``, the value with all its digits."""
    return f"{symbol_of(name)} = {number(value, side=Side.AS_GIVEN)}"


_FARTHEST = 1e12
"""Beyond this logarithm the digits of a delta are meaningless, and only its power of ten is shown."""

_LN_TINY = -690.0
"""Below this logarithm, near that of the smallest normal double, a delta is written from its logarithm."""


class Digits(NamedTuple):
    """The format of numbers in text, with ``precision`` significant digits."""

    precision: int = 6

    def at_most(self, most: int) -> Digits:
        """Return the format with at most ``most`` digits."""
        return Digits(min(self.precision, most))

    def number(self, value: float | int | str, side: Side = Side.NEAREST) -> str:
        """Return a number, rounded to a side."""
        return number(value, self.precision, side)

    def delta(self, delta: float | None, log_delta: float | None, side: Side = Side.NEAREST) -> str:
        """Return delta as a decimal, also below the range of a double."""
        if log_delta == -math.inf:
            return "0"
        if log_delta is not None and log_delta < _LN_TINY:
            return self._tiny(log_delta, side)
        return self.number(delta, side) if delta is not None else ""

    def delta_of(self, result: Result) -> str:
        """Return the delta at which a result holds, as asked."""
        return self.delta(result.delta, result.log_delta, Side.ECHO)

    def _tiny(self, log_delta: float, side: Side) -> str:
        """Return e^log_delta as a decimal whose exponent may be below those of a double."""
        if log_delta < -_FARTHEST:
            # Two operations, each within 2^-53: 2^-50 covers both.
            ten = log_delta / math.log(10.0) * {Side.UP: 1.0 - 2.0**-50, Side.DOWN: 1.0 + 2.0**-50}.get(side, 1.0)
            directed = side if side in (Side.UP, Side.DOWN) else Side.NEAREST
            return "10^" + number(ten, max(self.precision, 6), directed)
        import decimal

        # 25 digits more than shown: ``exp`` errs by less than a unit, which the next number up or down covers.
        exact = decimal.Context(prec=self.precision + 25, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
        value = exact.exp(decimal.Decimal(log_delta))
        value = {Side.UP: exact.next_plus, Side.DOWN: exact.next_minus}.get(side, exact.plus)(value)
        roundings = {Side.UP: decimal.ROUND_CEILING, Side.DOWN: decimal.ROUND_FLOOR}
        rounding = roundings.get(side, decimal.ROUND_HALF_EVEN)
        shown = decimal.Context(self.precision, rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX).plus(value)
        return _scientific("".join(map(str, shown.as_tuple().digits)).rstrip("0"), shown.adjusted())

    def value(self, result: Result) -> str:
        """Return a result's value, on its safe side."""
        if result.quantity == Quantity.DELTA:
            return self.delta(result.delta, result.log_delta, side_of(result))
        if (result.details or {}).get("any"):
            return "any"
        text = self.number(result.value, side_of(result))
        holds = (result.details or {}).get("holds")
        # If rounding up would leave the proved range, all digits are shown.
        return text if holds is None or float(text) <= holds["to"] else number(result.value, side=Side.AS_GIVEN)

    def order(self, result: Result) -> str:
        """Return the order of a Renyi divergence."""
        return self.number(result.order or 0.0, Side.DOWN)

    def epsilon(self, result: Result) -> str:
        """Return the epsilon at which a result holds, as asked."""
        return self.number(result.epsilon or 0.0, Side.ECHO)


SIX = Digits()
"""The default."""
