"""Enclosed sums over up to 1e15 steps: directly, by zeta functions, or by Euler-Maclaurin with its remainder.

It also proves the place of a double relative to the value of its definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from flint import arb, arb_series, ctx, fmpq

from dpcalc.certify.numerics.balls import (
    ABYSS,
    CAP,
    START,
    ZERO,
    Undecided,
    density,
    double,
    infinite,
    log_delta,
    mills,
    precision,
    small,
    upper_tail,
)

_DIRECT = 300
_HALF_TERMS = 14  # Euler-Maclaurin: derivatives up to twice that order
_QUIET = 150.0  # where the slope is below e^-150 of its maximum, the terms count as equal


def harmonic(n: int) -> arb:
    """Return H_n."""
    if n <= _DIRECT:
        return sum((arb(1) / k for k in range(1, n + 1)), arb(0))
    return (arb(n) + 1).digamma() + arb.const_euler()


def expm1_reciprocals(x: arb, n: int) -> arb:
    """Return sum_{k<=n} (e^(x/k) - 1), x >= 0: directly to a cut, then by the zeta functions of the power series."""
    total, small = arb(0), arb(2) ** (-ctx.prec)
    if not x < 1 << 40:
        raise Undecided
    cut = min(n, 64 if x < 30 else int(float(x.upper()) * 2) + 1)
    for k in range(1, cut + 1):
        term = (x / k).expm1()
        total += term
        if k > 1 and term * n < total * small:
            return total + (term * (n - k)).union(arb(0))
    if cut == n:
        return total
    factor = arb(1)
    for j in range(1, 10_000):
        factor *= x / j
        if j == 1:
            part = (arb(n) + 1).digamma() - (arb(cut) + 1).digamma()
        else:
            part = arb.zeta(arb(j), arb(cut) + 1) - arb.zeta(arb(j), arb(n) + 1)
        total += factor * part
        # zeta(j, c) <= 2 c^(1-j), and the following terms fall at least as fast as a geometric series of ratio 1/2.
        rest = factor * x / (j + 1) * 4 / arb(cut + 1) ** j
        if rest < total * small:
            return total + rest.union(arb(0))
    raise Undecided


class Curve:
    """f(k) = delta_G(epsilon; r/sqrt k) for real k > 0: decreasing, with elementary derivative and integral."""

    def __init__(self, epsilon: arb, ratio: arb) -> None:
        self.epsilon, self.ratio = epsilon, ratio
        self.a, self.b = epsilon * epsilon / (2 * ratio * ratio), ratio * ratio / 8
        self.front = ratio / (2 * (2 * arb.pi()).sqrt())

    def at(self, k: arb) -> arb:
        """Return f."""
        return log_delta(self.epsilon, self.ratio / k.sqrt()).exp()

    def integral(self, k: arb) -> arb:
        """Return an antiderivative: k f - int k f', the latter an inverse Gaussian integral; it vanishes at 0."""
        e, mu = self.epsilon, self.ratio / k.sqrt()
        if e.is_zero():
            part = 2 * k.sqrt() * (-self.b / k).exp() - 2 * (arb.pi() * self.b).sqrt() * (self.b / k).sqrt().erfc()
            return k * self.at(k) + self.front * part
        x = e / mu - mu / 2
        # r^2/(2 e) (Phi(x) - e^e Q(x + mu))
        return k * self.at(k) + self.ratio * self.ratio / (2 * e) * (upper_tail(-x) - density(x) * mills(x + mu))

    def slope(self, k: arb, terms: int) -> arb_series:
        """Return the Taylor series of f' about k: -front e^(eps/2 - a k - b/k) k^(-3/2)."""
        before, ctx.cap = ctx.cap, terms
        try:
            t = arb_series([k, 1])
            return -self.front * ((self.epsilon / 2 - self.a * t - self.b / t) - t.log() * (arb(3) / 2)).exp()
        finally:
            ctx.cap = before

    def exponent(self, k: float) -> float:
        """Return approximately ln of |f'| over its maximum: -(sqrt(a k) - sqrt(b/k))^2."""
        a, b = float(self.a.mid()), float(self.b.mid())
        return -((math.sqrt(a * k) - math.sqrt(b / k)) ** 2)


def hockey_sticks(epsilon: arb, ratio: arb, n: int, first: int = 1) -> arb:
    """Return sum_{first<=k<=n} delta_G(epsilon; r/sqrt k)."""
    curve = Curve(epsilon, ratio)
    if n - first < _DIRECT:
        return _direct(curve, first, n)
    if not (curve.a < arb(10) ** 280 and curve.b < arb(10) ** 280 and curve.a > -1 and ratio > arb(10) ** -150):
        raise Undecided
    start, head = _level(curve, first, n)
    middle = int(min(1e16, _peak(curve)))
    if start < middle and _width(curve) < 16.0:
        end = min(n, _end_of_fall(curve, max(start, middle), n))
        head += _direct(curve, start, end)
        start = end + 1
    else:
        end = min(n, start + _DIRECT)
        head += _direct(curve, start, end)
        start = end + 1
    if start > n:
        return head
    rest = curve.at(arb(start)) * (n - start + 1)  # f decreases
    if rest < head * arb(2) ** (-ctx.prec // 2):
        return head + rest.union(arb(0))
    return head + _maclaurin(curve, start, n)


def _direct(curve: Curve, first: int, last: int) -> arb:
    total, small = arb(0), arb(2) ** (-ctx.prec)
    for k in range(first, last + 1):
        term = curve.at(arb(k))
        total += term
        if k > first and (k - first) % 8 == 0 and term * (last - k) < total * small:
            return total + (term * (last - k)).union(arb(0))
    return total


def _peak(curve: Curve) -> float:
    """Return where f falls fastest: r^2/(2 epsilon)."""
    a, b = float(curve.a.mid()), float(curve.b.mid())
    return math.sqrt(b / a) if a > 0.0 else math.inf


def _width(curve: Curve) -> float:
    """Return approximately the number of steps over which f falls."""
    peak, b = _peak(curve), float(curve.b.mid())
    return peak * math.sqrt(peak / (2.0 * b)) if math.isfinite(peak) else math.inf


def _level(curve: Curve, first: int, n: int) -> tuple[int, arb]:
    """Return where f begins to fall, and the sum up to there; f is between its value at that point and 1."""
    start = first
    peak = min(float(n), _peak(curve))
    if curve.exponent(float(first)) < -_QUIET and peak > first:
        low, high = first, int(peak)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if curve.exponent(float(middle)) < -_QUIET else (low, middle)
        start = low
    return (first, arb(0)) if start == first else (start, (start - first) * curve.at(arb(start)).union(arb(1)))


def _end_of_fall(curve: Curve, middle: int, n: int) -> int:
    """Return a point after which f hardly falls."""
    high = middle
    while high < n and curve.exponent(float(high)) > -_QUIET:
        high += max(1, high // 64, int(_width(curve)))
    return high


def _blocks(curve: Curve, start: int, n: int) -> Iterator[tuple[int, int]]:
    """Yield consecutive intervals, each so short that the derivatives of f vary little on it."""
    a, b = float(curve.a.mid()), float(curve.b.mid())
    left = start
    while left < n:
        length = left / 24.0
        drift = abs(a - b / (float(left) * left))
        if drift > 0.0:
            length = min(length, 1.0 / drift)
        if a > 0.0:
            length = min(length, max(0.25 * _width(curve), 0.02 * left))
        right = min(n, left + max(1, int(length)))
        yield left, right
        left = right


def _maclaurin(curve: Curve, start: int, n: int) -> arb:
    """Return sum_{start<=k<=n} f(k); the remainder is at most 2.1/(2 pi)^(2p) times the integral of |f^(2p)|."""
    p = _HALF_TERMS
    total = curve.integral(arb(n)) - curve.integral(arb(start)) + (curve.at(arb(start)) + curve.at(arb(n))) / 2
    for k, sign in ((n, 1), (start, -1)):
        slopes = curve.slope(arb(k), 2 * p)
        for j in range(1, p + 1):
            # f^(2j-1)/(2j)! = slope_{2j-2} (2j-2)!/(2j)!
            total += sign * arb(fmpq.bernoulli(2 * j)) * slopes[2 * j - 2] / (2 * j * (2 * j - 1))
    rest = arb(0)
    for left, right in _blocks(curve, start, n):
        rest += abs(curve.slope(arb(left).union(arb(right)), 2 * p)[2 * p - 1]) * (right - left)
        if curve.exponent(float(right)) < -4 * _QUIET and right > _peak(curve):
            # f^(2p) from here on: f' falls, so its derivatives on discs of radius 1 are below it.
            rest += abs(curve.slope(arb(right), 1)[0]) * arb(n) * arb(2) ** 80
            break
    rest *= arb(2 * p).gamma() * arb(21) / 10 / (2 * arb.pi()) ** (2 * p)
    if not rest.is_finite():
        raise Undecided
    return total + rest.union(-rest)


PROVED, BELOW, UNDECIDED = "proved", "below", "undecided"
"""The places of a value: at or above the whole ball that contains the truth, below all of it, or open at the cap."""

_ENOUGH = 50  # relative bits of a ball that is small enough to measure the excess of a double


class Enclosure(NamedTuple):
    """A ball that contains the truth, the bits of the working precision, and the place of a reported value."""

    ball: arb
    bits: int
    place: str

    def ends(self, digits: int = 25) -> tuple[str, str]:
        """Return the ends of the ball as decimals, rounded outwards."""
        low = ZERO if self.ball <= ABYSS else self.ball.lower()  # `ABYSS` stands for everything below it
        return _decimal(low, digits, down=True), _decimal(self.ball.upper(), digits, down=False)

    def excess(self, value: float, logarithm: bool) -> float:
        """Return how far a value is above the ball: relatively, or for a logarithm relative to 1 + |ball|."""
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
    """Return an exact ball as a decimal, rounded down or up."""
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
    """Evaluate the formula with increasing precision until the value's place is certain and the ball is small.

    Args:
        formula: the truth at the working precision.
        value: the double that should be at or above it (at or below it, if ``lower``); None to get only the ball.
        cap: bits at which to give up.

    Raises:
        Undecided: a comparison within the formula is open even at the cap.
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
    """Return whether an excess is <= 0 (`PROVED`), > 0 (`BELOW`) or open at the cap, and the bits used."""
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
