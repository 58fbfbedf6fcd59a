"""One record used once in every pass: what its shifts cost by the optimal allocation, and what affine runs really give.

`isotonic` is exact and takes the steps one by one; `optimum` takes whole stretches. Costs are mu^2 in units of
(Delta/(b sigma))^2; a diameter is in units of one use's shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from flint import arb

from tests.oracles import adaptive, ball

# --- step by step, exactly


def shifts(period: int, tail: int, uses: int) -> list[int]:
    """The steps from the first pass's start to the last one's end: 1 where the record is used."""
    steps = [0] * (period * uses)
    for e in range(uses):
        steps[e * period + period - tail] = 1
    return steps


def isotonic(flow: Sequence[Fraction], c: Fraction, start: Fraction = Fraction(0)) -> Fraction:
    """The least sum of a_t^2 with z_t = c z_(t-1) + s_t - a_t >= 0, z_T = 0, c > 0.

    The isotonic regression of (s_t P_t)/P_t^2 with weights P_t^2 by its max-min formula: the slope at t is the largest
    over a <= t of the least mean over a..b, b >= t.
    """
    n = len(flow)
    scale = [c ** (n - 1 - t) for t in range(n)]
    inflow = [p * s for p, s in zip(scale, flow, strict=True)]
    inflow[0] += scale[0] * c * start
    above, below = [Fraction(0)], [Fraction(0)]
    for p, s in zip(scale, inflow, strict=True):
        above.append(above[-1] + s)
        below.append(below[-1] + p * p)
    slopes = [Fraction(0)] * n
    for a in range(n):
        least = None
        for b in range(n - 1, a - 1, -1):
            mean = (above[b + 1] - above[a]) / (below[b + 1] - below[a])
            least = mean if least is None else min(least, mean)
            slopes[b] = max(slopes[b], least)  # now the least over all ends from b on
    return sum((p * p * x * x for p, x in zip(scale, slopes, strict=True)), Fraction(0))


def least(period: int, tail: int, uses: int, c: Fraction, reach: Fraction | None = None) -> Fraction:
    """The optimum over all allocations, and over restarts from the diameter after any step."""
    flow = [Fraction(s) for s in shifts(period, tail, uses)]
    found = [isotonic(flow, c)]
    if reach is not None:
        found += [isotonic(flow[t:], c, reach) for t in range(1, len(flow))]
    return min(found)


# --- in stretches, for any number of passes


class Stretch(NamedTuple):
    """What is carried to its end, its room there, and the product of its factors."""

    carried: arb
    room: arb
    factor: arb


def _power(c: Fraction, n: int) -> arb:
    return ball(c) ** n if n < 10**6 else (ball(c).log() * n).exp() if c else arb(0)


def _stretch(shift: arb | int, steps: int, c: Fraction) -> Stretch:
    """A shift at the first of these steps (at least one)."""
    if c == 1:
        return Stretch(arb(shift), arb(steps), arb(1))
    return Stretch(shift * _power(c, steps - 1), (1 - _power(c * c, steps)) / (1 - ball(c * c)), _power(c, steps))


def _repeated(period: int, count: int, c: Fraction) -> Stretch:
    """Uses one pass apart, pooled: they share a block in every allocation."""
    if c == 1:
        return Stretch(arb(count), arb(period * count), arb(1))
    ends = _power(c, period - 1) * (1 - _power(c, period * count)) / (1 - _power(c, period))
    return Stretch(ends, (1 - _power(c * c, period * count)) / (1 - ball(c * c)), _power(c, period * count))


def _pooled(left: Stretch, right: Stretch) -> Stretch:
    return Stretch(
        right.factor * left.carried + right.carried,
        right.factor**2 * left.room + right.room,
        left.factor * right.factor,
    )


def _cost(stretches: Sequence[Stretch]) -> arb:
    """Pool neighbours from the left while the slope before is not below the slope after (ties cost the same)."""
    stack: list[Stretch] = []
    for piece in stretches:
        now = piece
        while stack:
            before = stack[-1]
            if before.carried * now.room < now.factor * now.carried * before.room:
                break
            now = _pooled(stack.pop(), now)
        stack.append(now)
    return sum((p.carried**2 / p.room for p in stack), arb(0))


def restarted(period: int, tail: int, c: Fraction, reach: Fraction, between: int) -> arb:
    """The cost from the diameter right after a use, with ``between`` uses before the last."""
    # The diameter counts right after the step, so that its first contraction is that of the next one.
    parts = [_stretch(ball(reach * c), period - 1, c)] if period > 1 else []
    if between:
        parts.append(_repeated(period, between, c))
    last = _stretch(1, tail, c)
    if period == 1:  # no step of its own: it adds to what comes next
        weight = Stretch(ball(reach), arb(0), arb(1))
        rest = parts[0] if between else last
        pooled = _pooled(weight, rest)
        return _cost([pooled, last]) if between else _cost([pooled])
    return _cost([*parts, last])


def optimum(period: int, tail: int, uses: int, c: Fraction, reach: Fraction | None = None) -> arb:
    """The least cost of all uses, and of the restarts right after a use: all of the first 40 and around the best."""

    def free() -> arb:
        parts = [_repeated(period, uses - 1, c)] if uses > 1 else []
        return _cost([*parts, _stretch(1, tail, c)])

    found = adaptive(free)
    if reach is None:
        return found
    if tail > 1:
        found = _smaller(found, adaptive(lambda: _cost([_stretch(ball(reach * c), tail - 1, c)])))
    if uses > 1:

        @cache
        def cost(between: int) -> arb:
            return adaptive(lambda: restarted(period, tail, c, reach, between))

        tried = {*range(min(40, uses - 1)), uses - 2}
        low, high = 0, uses - 2
        while high - low > 8:  # thirds: falls, then rises
            a, b = low + (high - low) // 3, high - (high - low) // 3
            if cost(b) < cost(a):
                low = a
            else:  # also where the two can no longer be told apart, far beyond the least
                high = b
        tried.update(range(low, high + 1))
        for between in tried:
            found = _smaller(found, cost(between))
    return found


def _smaller(a: arb, b: arb) -> arb:
    return a if a < b else b


def cyclic_mu(ratio: Fraction, cost: arb) -> arb:
    """mu from the cost and Delta/(b sigma)."""
    return adaptive(lambda: ball(ratio) * cost.sqrt(), bits=70)


# --- affine runs, exactly


def affine_square(slopes: Sequence[Fraction], used: Sequence[int]) -> Fraction:
    """mu^2 of w -> slopes[t] w + N(0, 1), moved by used[t] (0 or 1) in one of two runs from one start: both outputs are
    Gaussian, of one variance.
    """
    gap, variance = Fraction(0), Fraction(0)
    for q, s in zip(slopes, used, strict=True):
        gap = q * gap + s
        variance = q * q * variance + 1
    return gap * gap / variance
