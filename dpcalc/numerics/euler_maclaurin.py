"""Sums of up to infinitely many slowly varying terms, enclosed in bounded time by the Euler-Maclaurin formula.

Direct summation up to a cut, then Euler-Maclaurin at the midpoints: with a = cut + 1/2 and b = last + 1/2,

    sum_{t=cut+1}^{last} g(t) = int_a^b g - [E] + R,   E = g'/24 - 7 g'''/5760 + 31 g^(5)/967680,

    |R| <= 2 zeta(7)/(2 pi)^7 int_a^b |g^(7)|,         [E] = E(b) - E(a).

This is small under an assumption on g: about every t past the cut, within the radius

    rho(t) = (t - singular)/(2 sharpness),

g is analytic and |g| <= 4 |g(t)|. Cauchy's estimate |g^(j)(t)| <= 4 j! |g(t)|/rho^j then bounds R, the error of the
difference quotients for E, and the effect on g of rounding its argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from dpcalc.numerics.floats import UNIT, down, up
from dpcalc.numerics.roots import gauss_legendre

_DIRECT = 2000  # up to this many terms are added directly
_MOST = 10**15  # exact as a double
_CLEAR = 400.0  # the cut is this many times the sharpness away from the singularity: rho >= 200
_SPREAD = 4.0  # |g| grows by at most this factor within rho
_FINE, _COARSE = 14, 11  # points of the two rules
_WEIGHTS = 40.0  # units of roundoff: the error of a weight of the finer rule and of the product with it
_LONGEST = 8.0  # the longest panel, in ln(t - singular), times the sharpness
_FARTHEST = 1e280  # near the largest double: an infinite sum is evaluated no further


class _Part(NamedTuple):
    """A piece of the sum: its value, the same for |g|, and a bound on the error of the value."""

    value: float
    size: float
    error: float


class _Slow(NamedTuple):
    """The summand and the assumptions about it."""

    g: Callable[[float], float]
    singular: float
    sharpness: float
    relative: Callable[[float], float]
    power: float

    def radius(self, t: float) -> float:
        return (t - self.singular) / (2.0 * self.sharpness)

    def argument_error(self, t: float, units: float) -> float:
        """Bound the relative change of g when t - singular errs by ``units`` of roundoff and t by one more."""
        return _SPREAD * UNIT * (units * (t - self.singular) + abs(t)) / self.radius(t)


def enclose_sum(
    g: Callable[[float], float],
    first: int,
    last: float,
    *,
    singular: float = 0.0,
    sharpness: float = 1.0,
    relative: float | Callable[[float], float] = 64.0 * UNIT,
    power: float = 0.0,
) -> tuple[float, float]:
    """Return (low, high) around the sum of g(t) over the integers first <= t <= last.

    About 400 times the sharpness terms are added one by one, and a few hundred evaluations of g give the rest. The
    width is at most about 1e-13 of the sum of |g|, unless ``relative`` alone is more, or a large ``singular`` is close,
    or power < 1.06. The enclosure relies on the assumption on g and on the comparison of two quadrature rules.

    Args:
        g: the summand, finite, and past the cut as assumed above. Examples: t^-p with sharpness max(1, p/2), and
            ln(1 - c/(t^p + d)) with the same, and with singular = (c - d)^(1/p) if c > d. It is evaluated between
            ``first`` and ``last``, and up to 1.5 percent of t - singular outside of them.
        first: at least 1, at most 1e15, and beyond ``singular``.
        last: an integer up to 1e15, or math.inf.
        singular: the point on the real line where g ceases to be smooth. If it is large, let g compute with
            t - singular, so that the rounding of t does not widen the result.
        sharpness: at least 1.
        relative: bound on the relative error of g in floating point, below 1; a number, or a function of t that may
            decrease at first and increase later, more slowly than g decreases.
        power: for last = math.inf, a number above 1 such that |g(t)| <= 2 |g(s)| (s/t)^power for t >= s where g has
            decreased. g is then evaluated until the rest is negligible, or up to 1e284.
    """
    off: Callable[[float], float] = relative if callable(relative) else lambda _: relative
    in_range = 1 <= first <= last and first <= _MOST and (last == math.inf or last == int(last) <= _MOST)
    if not (in_range and -math.inf < singular < first and 1.0 <= sharpness < math.inf and 0.0 <= off(first) < 1.0):
        promise = f"singular={singular!r}, sharpness={sharpness!r}, relative={relative!r}"
        raise ValueError(f"no sum from {first!r} to {last!r} with {promise}")
    if math.isinf(last) and not power > 1.0:
        raise ValueError(f"an infinite sum needs a power above 1, got {power!r}")
    cut = max(first - 1, math.ceil(singular + _CLEAR * sharpness))
    slow = _Slow(g, singular, sharpness, lambda t: off(t) / (1.0 - off(t)), power)
    if last - first <= _DIRECT or last <= cut:
        return _enclosure([_direct(slow, first, int(last))])
    a, b = cut + 0.5, last + 0.5
    head, start = _direct(slow, first, cut), _ends(slow, a)
    integral = _integral(slow, a, b, head.size)
    parts = [head, start, integral, _Part(0.0, 0.0, 0.0263 * _SPREAD * slow.radius(a) ** -7.0 * integral.size)]
    if math.isfinite(b):
        value, size, error = _ends(slow, b)
        parts.append(_Part(-value, size, error))
    return _enclosure(parts)


def _enclosure(parts: list[_Part]) -> tuple[float, float]:
    value = math.fsum(part.value for part in parts)
    error = up(math.fsum(part.error for part in parts), 8.0)
    return down(value - error, 2.0), up(value + error, 2.0)


def _direct(slow: _Slow, first: int, last: int) -> _Part:
    terms = [slow.g(float(t)) for t in range(first, last + 1)]
    value, size = math.fsum(terms), math.fsum(map(abs, terms))
    return _Part(value, size, max(slow.relative(first), slow.relative(last)) * size + UNIT * abs(value))


def _ends(slow: _Slow, t: float) -> _Part:
    """Return E(t), by differences at t +- h, 2h, 3h with h = rho/100.

    Their truncation error is below 4 |g| (1.6e-12/rho + 0.4e-8/rho^3 + 6e-6/rho^5), and their weights sum to 0.08/h.
    """
    g, radius = slow.g, slow.radius(t)
    h = 0.01 * radius
    d1, d2, d3 = (g(t + j * h) - g(t - j * h) for j in (1.0, 2.0, 3.0))
    first = (45.0 * d1 - 9.0 * d2 + d3) / (60.0 * h)
    third = (8.0 * d2 - 13.0 * d1 - d3) / (8.0 * h**3)
    fifth = (5.0 * d1 - 4.0 * d2 + d3) / (2.0 * h**5)
    rounding = 0.08 / h * _SPREAD * (slow.relative(t) + _SPREAD * slow.argument_error(t, 1.0) + 8.0 * UNIT)
    error = rounding + _SPREAD * 1.8e-12 / radius
    value = first / 24.0 - 7.0 * third / 5760.0 + 31.0 * fifth / 967680.0
    return _Part(value, abs(value), abs(g(t)) * error)


def _integral(slow: _Slow, a: float, b: float, before: float) -> _Part:
    """Return the integral of g over [a, b] by panels in ln(t - singular); ``before`` is the size of the sum so far.

    On the first panels, of length 1/2 for sharpness 1, the assumption on g makes the finer rule accurate to 1e-16.
    Panels get longer while two rules agree, and else shorter; the difference is added to the error.
    """
    shortest = 0.125 / slow.sharpness
    length, patience = 4.0 * shortest, 0
    parts = [_Part(0.0, 0.0, 0.0)]
    left, size = a, 0.0
    while left < b:
        right = min(b, left + (left - slow.singular) * math.expm1(length))
        part, gap = _panel(slow, left, right)
        allowed = max(slow.relative(right) * part.size, 0.25 * part.error) + UNIT * (before + size)
        if gap > allowed and length > shortest:
            length, patience = 0.5 * length, 3
            continue
        parts.append(part._replace(error=part.error + gap))
        size += part.size
        left = right
        if b == math.inf:
            rest = 2.0 * abs(slow.g(left)) * left / (slow.power - 1.0)
            if rest <= 0.001 * UNIT * (before + size) or left > _FARTHEST:
                parts.append(_Part(0.0, rest, rest))
                break
        patience -= 1
        if patience <= 0:
            length = min(2.0 * length, _LONGEST / slow.sharpness)
    return _Part(*(math.fsum(column) for column in zip(*parts, strict=True)))


def _panel(slow: _Slow, left: float, right: float) -> tuple[_Part, float]:
    """Return the integral over [left, right], and its difference to a coarser rule.

    With y = left - singular (which need not be exact) the substitution is t = left + y (exp(s) - 1), 0 <= s <= length.
    The length has an error of 4 units of roundoff, s of 2 length, t - left and dt/ds of 2 length + 4.
    """
    y = left - slow.singular
    length = math.log1p((right - left) / y)
    fine = _rule(slow, left, y, 0.5 * length, _FINE)
    coarse = _rule(slow, left, y, 0.5 * length, _COARSE)
    value = math.fsum(term for _, term in fine)
    size = math.fsum(abs(term) for _, term in fine)
    units = 2.0 * length + 4.0
    moved = math.fsum(abs(term) * slow.argument_error(t, units) for t, term in fine)
    end = abs(slow.g(right)) * y * math.exp(length) * length
    relative = max(slow.relative(left), slow.relative(right))
    error = size * (relative + UNIT * (units + _WEIGHTS)) + moved + end * UNIT * 5.0
    return _Part(value, size, error), abs(value - math.fsum(term for _, term in coarse))


def _rule(slow: _Slow, left: float, y: float, half: float, points: int) -> list[tuple[float, float]]:
    """Return the nodes and the terms of one rule."""
    terms = []
    for x, weight in gauss_legendre(points):
        s = half * (1.0 + x)
        t = left + y * math.expm1(s)
        terms.append((t, weight * half * y * math.exp(s) * slow.g(t)))
    return terms
