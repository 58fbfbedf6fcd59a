"""Ball arithmetic for definitions: inputs in their two readings, precision that grows until a question is settled.

A definition is written as its formula, over balls at the working precision; `settle` and `compared` evaluate it again
and again, with ever more digits, until the ball is small or its place relative to a double is known. Nothing here, nor
in any other module of this package, uses the arithmetic of `dpcalc.bounds`, `dpcalc.notions` or `dpcalc.numerics`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from flint import arb, ctx, fmpq

START, CAP = 128, 8192
"""Bits of the working precision: where evaluations start and where they give up."""


class Undecided(ArithmeticError):
    """Balls overlap, so that a case distinction needs more precision."""


class OutOfReach(Exception):
    """The definition is not evaluated here; the text says why."""


class Inputs:
    """A run's parameters as attributes: whole numbers and words as they are, others as balls at the working precision.

    Args:
        values: parameter name -> value; None where unknown, and so read.
        typed: read a double as the shortest decimal that denotes it, which is what its user meant; else exactly.
        exactly: names that are read exactly all the same.
        derived: parameter name -> its formula, for what follows from other parameters.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        typed: bool,
        derived: Mapping[str, Callable[[Inputs], Any]] | None = None,
        exactly: Collection[str] = (),
    ) -> None:
        self._values, self.typed, self._exactly = values, typed, exactly
        self._derived = derived or {}
        self._rationals: dict[str, fmpq] = {}

    def __getattr__(self, name: str) -> Any:
        if name in self._derived:
            return self._derived[name](self)
        value = self._values.get(name)
        if isinstance(value, fmpq):
            return arb(value)
        if not isinstance(value, float):
            return value
        if value in (float("inf"), float("-inf")):
            return None
        if name not in self._rationals:
            self._rationals[name] = rational(value, self.typed and name not in self._exactly)
        return arb(self._rationals[name])

    def exact(self, name: str) -> fmpq:
        """Return the parameter as a rational: 0 where unknown, and never derived."""
        value = self._values.get(name)
        if value is None or isinstance(value, (fmpq, int)):
            return fmpq(0) if value is None else fmpq(value)
        return rational(float(value), self.typed and name not in self._exactly)

    def quotient(self, top: Sequence[str | int], bottom: Sequence[str | int]) -> arb:
        """Return a quotient of products of parameters and whole numbers: formed exactly where none is derived."""
        names = [x for x in (*top, *bottom) if isinstance(x, str)]
        if any(name in self._derived for name in names):
            balls = [getattr(self, x) if isinstance(x, str) else arb(x) for x in (*top, *bottom)]
            return math.prod(balls[: len(top)], start=arb(1)) / math.prod(balls[len(top) :], start=arb(1))
        rationals = [self.exact(x) if isinstance(x, str) else fmpq(x) for x in (*top, *bottom)]
        return arb(math.prod(rationals[: len(top)], start=fmpq(1)) / math.prod(rationals[len(top) :], start=fmpq(1)))

    def given(self, name: str) -> float:
        """Return the parameter as the double it was given as."""
        return float(self._values[name])

    def column(self, values: Any) -> list[arb]:
        """Return the doubles of an array as balls."""
        return [arb(rational(float(x), self.typed)) for x in values]


def rational(value: float, typed: bool) -> fmpq:
    """Return the rational that a double is, or that the shortest decimal denoting it is."""
    value = float(value)  # numpy's double is one too, and prints as another
    if not typed:
        return fmpq(*value.as_integer_ratio())
    digits, _, exponent = repr(value).partition("e")
    whole, _, fraction = digits.partition(".")
    power = int(exponent or 0) - len(fraction)
    return fmpq(int(whole + fraction)) * fmpq(10) ** power


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Evaluate the block at this working precision."""
    before, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = before


def settle(value: Callable[[], arb], bits: int = 60, cap: int = CAP) -> arb:
    """Return the value as a ball that is relatively small, or -inf, or the best there is at the cap.

    Raises:
        Undecided: a case distinction is open even at the cap.
    """
    found, prec = None, START
    while prec <= cap:
        with precision(prec):
            try:
                found = value()
            except Undecided:
                found = None
        if found is not None and (infinite(found) or found.is_zero() or small(found, bits)):
            return found
        prec *= 2
    if found is None:
        raise Undecided
    return found


def small(ball: arb, bits: int) -> bool:
    """Return whether a ball is relatively small."""
    return bool(ball.is_finite() and ball.rel_accuracy_bits() >= bits)


def infinite(ball: arb) -> bool:
    """Return whether a value is -inf: the logarithm of 0."""
    return bool(ball == arb.neg_inf())


def less(a: Any, b: Any) -> bool:
    """Return whether a < b, for certain.

    Raises:
        Undecided: the balls overlap.
    """
    if a < b:
        return True
    if a >= b:
        return False
    raise Undecided


def least(*values: arb) -> arb:
    """Return the smallest of the balls."""
    found = values[0]
    for value in values[1:]:
        found = found.min(value)
    return found


def square(x: arb) -> arb:
    """Return x^2, also where the ball holds 0 (a power of it would be nan)."""
    return x * x


def power(base: arb, exponent: int) -> arb:
    """Return base^exponent for base >= 0; 0^0 = 1."""
    if exponent == 0:
        return arb(1)
    if base.is_zero():
        return arb(0)
    return base**exponent if exponent < 10**6 or not base > 0 else (base.log() * exponent).exp()


ZERO = arb.neg_inf()
"""ln 0."""

ABYSS = -(arb(2) ** 1000)
"""What a recursion is said to have reached once it is below: about squared in each step, it leaves all numbers."""


def log(x: arb) -> arb:
    """Return ln x, -inf at 0."""
    return ZERO if x.is_zero() else x.log()


def log_sum(*logs: arb) -> arb:
    """Return ln of a sum from the logarithms of its terms."""
    finite = [x for x in logs if not infinite(x)]
    if not finite:
        return ZERO
    peak = max(finite, key=_middle)
    return peak + sum(((x - peak).exp() for x in finite), arb(0)).log()


def _middle(x: arb) -> float:
    """Return about where a ball lies, for choosing the largest."""
    mid = x.mid()
    return float(mid) if abs(mid) < arb(10) ** 300 else (float("inf") if mid > 0 else float("-inf"))


def double(value: float) -> arb:
    """Return a double as an exact ball, whatever the working precision."""
    return arb(value)
