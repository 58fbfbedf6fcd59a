"""Typed numbers (``1e-5``, ``1/60000``, ``2^-20``, ``1_000``, ``1%``), sweeps of them, and messages comparing them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dpcalc.errors import SpecError

if TYPE_CHECKING:
    from decimal import Context
    from fractions import Fraction

MAX_LENGTH = 100
MAX_SWEEP = 10_000
_MAX_EXPONENT = 100_000
_MAX_PART = 10_000  # exponent of 10 in a quotient, a power or a percentage, which are computed with every digit
_MAX_BITS = 40_000  # of a power; 10^10000 has 33220
_BITS = 2000  # far more than the digits that are kept
_MAX_INTEGER = 10**18
_INFINITE = ("inf", "infinity")
_SUFFIXES = {"k": 1000, "K": 1000, "M": 10**6}
_PLAIN = frozenset("0123456789.eE+-_")

Number = TypeVar("Number", bound=float)


def parse_number(text: str, *, allow_inf: bool = False) -> float:
    """Return the double nearest to the number typed.

    Args:
        text: a decimal literal, a quotient ``a/b``, a power ``a^b`` or ``a**b``, or a percentage.
        allow_inf: whether ``inf`` is allowed.

    Raises:
        SpecError: it is not a number, is nan, or does not fit a double (too large, or not 0 but rounded to 0).
    """
    written = _checked(text)
    if written.removeprefix("+").lower() in _INFINITE:
        if allow_inf:
            return math.inf
        raise SpecError(f"{written!r} is not allowed here: a finite number is needed", "write a finite number")
    if _PLAIN.issuperset(written):  # the usual case, without importing fractions
        value = _literal(written)
        if (value != 0.0 and math.isfinite(value)) or _is_zero(written):
            return value
    return _to_double(_Written(written).rational(), written)


def parse_log(text: str) -> float:
    """Return the natural logarithm of the positive number typed, which may be far below the smallest double.

    Raises:
        SpecError: it is not a positive number.
    """
    written = _checked(text)
    if _PLAIN.issuperset(written):
        value = _literal(written)
        if 1e-300 < value < 1.0 / 64 or 64.0 < value < 1e300:  # nearer to 1 the rounding of value would matter
            return math.log(value)
        _Written(written).check_decimal(written, _MAX_EXPONENT)
        return _log_of_decimal(written)
    rational = _Written(written).rational()
    if rational <= 0:
        raise _not_positive(written)
    return _log_of(rational)


def _not_positive(text: str) -> SpecError:
    return SpecError(f"{text!r} is not a positive number", "write a number > 0, such as 1e-6")


def parse_delta(text: str) -> tuple[float, float]:
    """Return the delta typed and its natural logarithm; the double is never 0, however small the number.

    Raises:
        SpecError: it is not a number > 0 and < 1.
    """
    log = parse_log(text)
    if not log < 0.0:
        raise SpecError(f"delta is {text}; it must be a number > 0 and < 1", "1e-6 is a usual choice")
    return parse_number(text) if log > -700.0 else max(math.exp(log), 5e-324), log


def parse_integer(text: str) -> int:
    """Return the whole number typed: ``60000``, ``60_000``, ``60k``, ``1e6``, ``1M``, ``2^20``.

    Raises:
        SpecError: it is not a whole number, or its magnitude exceeds 1e18.
    """
    written = _checked(text)
    if written.isascii() and written.isdecimal() and len(written) < 18:
        return int(written)
    _refuse_separators(written, ".", "a whole number has no fraction")
    times = _SUFFIXES.get(written[-1], 1)
    rational = _Written(written if times == 1 else written[:-1]).rational() * times
    if rational.denominator != 1:
        raise SpecError(f"{written!r} is not a whole number", "write, for example, 60000, 1e6 or 2^20")
    if abs(rational) > _MAX_INTEGER:
        raise SpecError(f"{written!r} is too large for a whole number", "at most 1e18")
    return rational.numerator


def parse_sweep(text: str, parse: Callable[[str], Number]) -> list[Number]:
    """Return the values of a sweep: one number, ``1,2,4``, ``start:stop:step`` or ``start:stop:log7``.

    Args:
        text: the sweep. A range ends at the last value not past its stop, a log range at its stop.
        parse: `parse_number` or `parse_integer`, for each value.

    Raises:
        SpecError: it does not parse, or has more than 10000 values.
    """
    if len(text) > MAX_SWEEP * 20:
        raise SpecError(f"a sweep of {len(text)} characters is too long", f"at most {MAX_SWEEP} values")
    if "," in text:
        if parse is parse_integer:
            if _has_separators(text):
                text = text.replace(",", "")
            _refuse_separators(text, ",", "for several values, put a blank after each comma")
        _refuse_two_marks(text, parse is parse_integer)
    values: list[Number] = []
    for part in text.split(",", MAX_SWEEP):
        room = MAX_SWEEP - len(values)
        if room == 0:
            raise _too_many(text, MAX_SWEEP + 1)
        values += _range(part, parse, room) if ":" in part else [parse(part)]
    return values


def _has_separators(text: str) -> bool:
    """Return whether commas separate thousands, as in ``50,000``; a text that could be a list, such as ``1,200``, is
    one."""
    first, *groups = text.strip(" ").split(",", 7)
    return (
        first.isdecimal() and 0 < len(first) <= 3 and any(group.startswith("0") for group in groups)
        and all(group.isdecimal() and len(group) == 3 for group in groups)
    )  # fmt: skip


def _refuse_separators(text: str, mark: str, otherwise: str) -> None:
    """Refuse a count that may be one number with separated thousands, such as ``10,500``, or something else.

    Raises:
        SpecError: it is ambiguous.
    """
    if joined := _without_separators(text, mark):
        raise SpecError(f"{text!r} may be {joined}, and may be something else", f"write {joined}; {otherwise}")


def _refuse_two_marks(text: str, whole: bool) -> None:
    """Refuse a text that looks like one number with separators for thousands and for the fraction: ``10.000,5``.

    Raises:
        SpecError: it does.
    """
    # Refuse only texts that nobody writes as a list of decimals: 10.000 and 000.5 have redundant zeros.
    tail = r"" if whole else r"(?<=\.000)"
    pattern = rf"\d{{1,3}}(?:\.\d{{3}})+{tail},\d+|\d{{1,3}}(?:,\d{{3}})*,0\d\d\.\d+"
    if not ("." in text and "," in text and re.fullmatch(pattern, text.strip(" "))):
        return
    plain = text.replace(".", "").replace(",", ".") if text.rindex(",") > text.rindex(".") else text.replace(",", "")
    number = plain.partition(".")[0] if whole else plain
    otherwise = "a whole number has no fraction" if whole else "for several values, put a blank after each comma"
    raise SpecError(f"{text!r} may be {plain}, and may be a list", f"write {number}; {otherwise}")


def _without_separators(text: str, mark: str) -> str:
    """Return the digits if the text may be one number with separated thousands, else an empty string."""
    first, *groups = text.split(mark, 7)
    numbers = all(part.isdecimal() for part in (first, *groups))
    if groups and numbers and len(first) <= 3 and first[0] != "0" and all(len(group) == 3 for group in groups):
        return first + "".join(groups)
    return ""


def _range(text: str, parse: Callable[[str], Number], room: int) -> list[Number]:
    ends = text.split(":")
    if len(ends) != 3:
        whole = text if len(ends) == 2 else "1:10"
        hint = f"write the step behind it, as in {whole}:1, or {whole}:log7 for seven values"
        raise SpecError(f"{_clipped(text)} is not a range", hint)
    if ends[2].strip(" ").startswith("log"):
        return _log_range(text, ends, parse, room)
    for end in ends:
        parse(end)  # each of the three must be within the limits of a number
    start, stop, step = (_Written(_checked(end)).rational() for end in ends)
    if step == 0 or (stop - start) / step < 0:
        raise SpecError(
            f"{_clipped(text)} never reaches its end", "the step must lead from start to stop, and not be 0"
        )
    count = math.floor((stop - start) / step) + 1
    if count > room:
        raise _too_many(text, MAX_SWEEP - room + count)
    if parse is parse_integer and start.denominator == step.denominator == 1:
        return [start.numerator + k * step.numerator for k in range(count)]  # type: ignore[misc]
    return [parse(_shortest(start + k * step, text)) for k in range(count)]


def _log_range(text: str, ends: list[str], parse: Callable[[str], Number], room: int) -> list[Number]:
    points = ends[2].strip(" ").removeprefix("log")
    count = int(points) if points.isascii() and points.isdecimal() and len(points) < 10 else 0
    if count < 2:
        raise SpecError(
            f"{_clipped(text)}: a log range needs 2 to {MAX_SWEEP} points",
            "for example 1:1000:log7",
        )
    if count > room:
        raise _too_many(text, MAX_SWEEP - room + count)
    first, last = parse(ends[0]), parse(ends[1])
    low, high = sorted((first, last))
    if not (low > 0 and math.isfinite(high)):
        raise SpecError(f"{_clipped(text)}: the ends of a log range must be positive", "such as 1:1000:log7")
    start = math.log(first)
    rate = (math.log(last) - start) / (count - 1)
    # Twelve digits hide the rounding of log and exp, so that decades come out as typed.
    inner = [float(f"{math.exp(start + rate * k):.12g}") for k in range(1, count - 1)]
    values = [min(max(x, low), high) for x in (map(round, inner) if isinstance(first, int) else inner)]
    return list(dict.fromkeys([first, *(parse(repr(x)) for x in values), last]))


def _too_many(text: str, count: int) -> SpecError:
    shown = f"{count} values" if count < _MAX_INTEGER else "far too many values"
    return SpecError(f"{_clipped(text)} makes {shown}; a sweep has at most {MAX_SWEEP}", "use a larger step")


def _clipped(text: str) -> str:
    return repr(text) if len(text) <= MAX_LENGTH else repr(text[:40] + "...")


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise SpecError(f"{text!r} is not a number typed as text", "write it as text, for example '1e-5'")
    text = text.strip(" ")
    if not text:
        raise SpecError("an empty value is not a number", "write a number, for example 1e-5")
    if len(text) > MAX_LENGTH:
        raise SpecError(f"a number of {len(text)} characters is too long", f"at most {MAX_LENGTH}")
    return text


def _not_a_number(text: str) -> SpecError:
    whole, comma, rest = text.partition(",")
    hint = "for example 1e-5, 1/60000, 2^-20, 1%"
    if comma:
        hint = "a comma separates the values of a sweep"
        joined = _without_separators(text, ",")
        if _PLAIN.issuperset(whole + rest):
            hint = f"write {f'{joined} or ' if joined else ''}{whole}.{rest} ({hint})"
        elif joined:
            hint = f"write {joined} ({hint})"
    return SpecError(f"{text!r} is not a number", hint)


def _literal(text: str) -> float:
    """Return the double of a plain ASCII decimal literal."""
    try:
        return float(text)
    except ValueError:
        raise _not_a_number(text) from None


def _is_zero(text: str) -> bool:
    """Return whether every digit of a decimal literal before its exponent is 0."""
    return not any(digit in "123456789" for digit in text.lower().partition("e")[0])


class _Written(NamedTuple):
    """A number as it was typed, and its exact value; errors show the whole text."""

    text: str

    def rational(self) -> Fraction:
        """Return the exact value."""
        from fractions import Fraction

        if self.text.endswith("%"):
            return self._power(self.text[:-1]) / 100
        numerator, slash, denominator = self.text.partition("/")
        if not slash:
            return self._decimal(self.text, _MAX_EXPONENT) if _PLAIN.issuperset(self.text) else self._power(self.text)
        below = self._power(denominator)
        if below == 0:
            raise SpecError(f"{self.text!r} divides by zero", "write a quotient with another denominator")
        return Fraction(self._power(numerator) / below)

    def _power(self, part: str) -> Fraction:
        base, mark, exponent = part.replace("**", "^").partition("^")
        number = self._decimal(base)
        if not mark:
            return number
        power = self._decimal(exponent)
        if power.denominator != 1 or abs(power) > _MAX_EXPONENT:
            raise self._bad_exponent()
        if number == 0 and power < 0:
            raise SpecError(f"{self.text!r} divides by zero", "write a power of a number other than 0")
        bits = max(number.numerator.bit_length(), number.denominator.bit_length())
        if bits > 1 and bits * abs(power) > _MAX_BITS:
            raise SpecError(f"{self.text!r} is beyond 1e{_MAX_PART} or too long", "write a decimal, like 1e-5000")
        result: Fraction = number**power.numerator
        return result

    def _decimal(self, part: str, largest: int = _MAX_PART) -> Fraction:
        from fractions import Fraction

        self.check_decimal(part, largest)
        return Fraction(part)

    def check_decimal(self, part: str, largest: int) -> None:
        """Refuse a part that is not a decimal literal, or has an exponent beyond ``largest``."""
        if not _PLAIN.issuperset(part):
            raise _not_a_number(self.text)
        try:
            float(part)  # refuses texts that Fraction accepts but that are not decimal numbers
        except ValueError:
            raise _not_a_number(self.text) from None
        exponent = part.lower().partition("e")[2].lstrip("+-").replace("_", "")
        if len(exponent) > 6 or int(exponent or 0) > largest:
            raise self._bad_exponent(largest)

    def _bad_exponent(self, largest: int = _MAX_EXPONENT) -> SpecError:
        return SpecError(
            f"{self.text!r}: an exponent must be a whole number from -{largest} to {largest}",
            "for example 1e-5000 or 2^-20",
        )


def _to_double(value: Fraction, text: str) -> float:
    try:
        result = value.numerator / value.denominator
    except OverflowError:
        raise SpecError(f"{text!r} is too large for a number", "at most 1.7e308") from None
    if result == 0.0 and value != 0:
        raise SpecError(f"{text!r} is too small for a number: it would round to 0", "at least 5e-324")
    return result


def _shortest(value: Fraction, text: str) -> str:
    """Return the shortest text of the double or integer nearest to a value of the range ``text``."""
    whole = value.denominator == 1 and abs(value) <= _MAX_INTEGER
    return str(value.numerator) if whole else repr(_to_double(value, text))


def _precise() -> Context:
    from decimal import Context

    # Twice the digits that can be typed: a number may differ from 1 in its last digit alone.
    return Context(prec=2 * MAX_LENGTH + 20, Emin=-999_999, Emax=999_999)


def _log_of_decimal(text: str) -> float:
    """Return ln of a decimal literal, to the last digit, without computing the power of ten of a large exponent."""
    from decimal import Decimal

    value = Decimal(text)
    if not value > 0:
        raise _not_positive(text)
    return float(_precise().ln(value))


def _log_of(value: Fraction) -> float:
    """Return ln of a positive rational of any size, to the last digit."""
    from decimal import Decimal

    context = _precise()
    # The leading bits of long integers suffice; writing all of them out in decimal takes quadratic time.
    above, below = (max(0, part.bit_length() - _BITS) for part in (value.numerator, value.denominator))
    quotient = context.divide(Decimal(value.numerator >> above), Decimal(value.denominator >> below))
    return float(context.add(context.ln(quotient), context.multiply(Decimal(above - below), context.ln(Decimal(2)))))


# --- in messages ------------------------------------------------------------------------------------------------------


def plain(value: float) -> str:
    """Return all digits of the number, as it was typed: no two numbers look alike."""
    return repr(value).removesuffix(".0")


def shown_apart(first: float, second: float, digits: int = 6) -> tuple[str, str]:
    """Return both numbers with as many digits as are needed to tell them apart, at least ``digits``.

    >>> shown_apart(0.30000000000000004, 0.3), shown_apart(1.0, 2.0)
    (('0.30000000000000004', '0.29999999999999999'), ('1', '2'))
    """
    for count in range(digits, 18):
        shown = f"{first:.{count}g}", f"{second:.{count}g}"
        if shown[0] != shown[1]:
            return shown
    return plain(first), plain(second)


def shown_below(limit: float, digits: int = 6) -> str:
    """Return the positive number to this many digits, rounded down, so that a number copied from a message is within
    the limit.

    >>> shown_below(2.0 / 3.0), shown_below(0.5)
    ('0.666666', '0.5')
    """
    from decimal import ROUND_DOWN, Context

    shown = float(Context(prec=digits, rounding=ROUND_DOWN).create_decimal(repr(limit)))
    return f"{shown:.{digits}g}"
