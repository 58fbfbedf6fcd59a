"""Where a double lies relative to what its definition says, proved in ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from flint import arb

from dpcalc.certify.numerics.balls import ABYSS, CAP, START, ZERO, Undecided, double, infinite, precision, small

PROVED, BELOW, UNDECIDED = "proved", "below", "undecided"
"""The places of a value: at or above all of the ball that holds the truth, below all of it, or neither at the cap."""

_ENOUGH = 50  # relative bits of a ball that is small enough to say how far above it a double is


class Enclosure(NamedTuple):
    """A ball that holds the truth, the bits of the working precision, and where a reported value lies."""

    ball: arb
    bits: int
    place: str

    def ends(self, digits: int = 25) -> tuple[str, str]:
        """Return the ends of the ball as decimals, rounded outwards."""
        low = ZERO if self.ball <= ABYSS else self.ball.lower()  # `ABYSS` stands for all that is below it
        return _decimal(low, digits, down=True), _decimal(self.ball.upper(), digits, down=False)

    def excess(self, value: float, logarithm: bool) -> float:
        """Return how far a value is above the ball: relatively, or for a logarithm over 1 + its size."""
        if infinite(self.ball) or not self.ball.is_finite() or not math.isfinite(value):
            return 0.0 if infinite(self.ball) and value == -math.inf else math.inf
        with precision(256):
            gap = double(value) - self.ball
            scale = 1 + abs(self.ball) if logarithm else abs(self.ball)
            if scale.is_zero():
                return 0.0 if value == 0.0 else math.inf
            share = (gap / scale).mid()
            return float(share) if abs(share) < arb(10) ** 300 else math.inf


def _decimal(end: arb, digits: int, down: bool) -> str:
    """Return an exact ball as a decimal that is not on the wrong side of it."""
    if not end.is_finite():
        return "-inf" if infinite(end) else "inf"
    with precision(4096):
        text: str = end.str(digits, radius=False)
        shown = arb(text)
        wrong = shown > end if down else shown < end
        if not wrong and (shown <= end if down else shown >= end):
            return text
        moved = end - abs(end) * arb(10) ** (1 - digits) if down else end + abs(end) * arb(10) ** (1 - digits)
        return str(moved.str(digits, radius=False))


def enclosed(
    formula: Callable[[], arb], value: float | None = None, *, lower: bool = False, cap: int = CAP
) -> Enclosure:
    """Evaluate the formula with more and more digits until the value's place is certain and the ball is small.

    Args:
        formula: the truth at the working precision.
        value: the double that should be at or above it (at or below it, if ``lower``); None to get the ball alone.
        cap: bits at which to give up.

    Raises:
        Undecided: a case distinction within the formula is open even at the cap.
    """
    bits, last = START, None
    while bits <= cap:
        with precision(bits):
            try:
                ball = formula()
            except Undecided:
                ball = None
            if ball is not None and not ball.is_nan():
                last = Enclosure(ball, bits, PROVED if value is None else _place(ball, value, lower))
                exact = infinite(ball) or ball.is_zero()
                if last.place != UNDECIDED and (exact or small(ball, _ENOUGH)):
                    return last
                if last.place != UNDECIDED and value is not None and math.isinf(value):
                    return last
        bits *= 2
    if last is None:
        raise Undecided
    return last


def place_of(excess: Callable[[], arb]) -> tuple[str, int]:
    """Return whether an excess is <= 0 (`PROVED`), > 0 (`BELOW`) or open at the cap, and the bits that it took."""
    bits = START
    while bits <= CAP:
        with precision(bits):
            try:
                ball = excess()
                if ball <= 0:
                    return PROVED, bits
                if ball > 0:
                    return BELOW, bits
            except Undecided:
                pass
        bits *= 2
    return UNDECIDED, CAP


def _place(ball: arb, value: float, lower: bool) -> str:
    if math.isinf(value):
        if (value > 0) != lower:
            return PROVED
        return PROVED if infinite(ball) and value < 0 else (BELOW if ball > ZERO and ball.is_finite() else UNDECIDED)
    x = double(value)
    if lower:
        return PROVED if x <= ball else BELOW if x > ball else UNDECIDED
    return PROVED if x >= ball else BELOW if x < ball else UNDECIDED
