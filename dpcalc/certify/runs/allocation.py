"""The cost mu^2/(Delta/(b sigma))^2 of one use of a record in every pass, by the best allocation of its shifts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flint import arb

from dpcalc.certify.numerics.balls import (
    least,
    less,
    power,
    square,
)
from dpcalc.model.quantities import Noise


def room(c: arb, steps: int) -> arb:
    """Return 1 + c^2 + ... + c^(2 steps - 2)."""
    if steps <= 64:
        return sum((power(c * c, j) for j in range(steps)), arb(0))
    left = 1 - c * c
    if left.is_zero():
        return arb(steps)
    less(arb(0), left)
    return (1 - power(c * c, steps)) / left


def schedule_reach(noise: Noise, x: arb, c1: arb, c2: arb) -> arb:
    """Return r_B: 2 ln(x/C1 + C2), or 2 sqrt(W(x^2/(2 pi C1^2) + C2))."""
    if noise == Noise.LAPLACE:
        return 2 * (x / c1 + c2).log()
    return 2 * (x * x / (2 * arb.pi() * c1 * c1) + c2).lambertw().sqrt()


class Stretch(NamedTuple):
    """Steps that share a block: the shift carried to their end, the variance cumulated there, and their factor."""

    carried: arb
    room: arb
    factor: arb


def _stretch(shift: arb | int, steps: int, c: arb) -> Stretch:
    """Return the stretch of ``steps`` steps (at least one) with a shift at the first of them."""
    return Stretch(shift * power(c, steps - 1), room(c, steps), power(c, steps))


def _repeated(period: int, count: int, c: arb) -> Stretch:
    """Return the stretch of uses one pass apart, which share a block in every allocation."""
    total = period * count
    if c == 1:
        return Stretch(arb(count), arb(total), arb(1))
    ends = power(c, period - 1) * (1 - power(c, total)) / (1 - power(c, period))
    return Stretch(ends, room(c, total), power(c, total))


def _cost(stretches: Sequence[Stretch]) -> arb:
    """Return the least cost: neighbours are pooled while the slope before is not below the slope after."""
    stack: list[Stretch] = []
    for piece in stretches:
        now = piece
        while stack and not stack[-1].carried * now.room < now.factor * now.carried * stack[-1].room:
            before = stack.pop()
            now = Stretch(
                now.factor * before.carried + now.carried,
                square(now.factor) * before.room + now.room,
                before.factor * now.factor,
            )
        stack.append(now)
    return sum((square(p.carried) / p.room for p in stack), arb(0))


def passes_cost(period: int, tail: int, uses: int, c: arb) -> arb:
    """Return the least cost of one use a pass, ``tail`` steps from its end, in units of (Delta/(b sigma))^2."""
    parts = [_repeated(period, uses - 1, c)] if uses > 1 else []
    return _cost([*parts, _stretch(1, tail, c)])


def _restarted(period: int, tail: int, c: arb, reach: arb, between: int) -> arb:
    """Return the cost from the diameter right after a use, with ``between`` uses before the last one."""
    parts = [_stretch(reach * c, period - 1, c)] if period > 1 else []
    if between:
        parts.append(_repeated(period, between, c))
    last = _stretch(1, tail, c)
    if period > 1:
        return _cost([*parts, last])
    first = parts[0] if between else last  # no step of its own: the diameter adds to what comes next
    pooled = Stretch(first.factor * reach + first.carried, first.room, first.factor)
    return _cost([pooled, last]) if between else _cost([pooled])


def restarts_cost(period: int, tail: int, uses: int, c: arb, reach: arb) -> arb:
    """Return the least cost with a restart from the diameter, by the number of uses behind the restart.

    The first 40 numbers are tried, and those around the least, which a search by thirds finds.
    """
    costs = [passes_cost(period, tail, uses, c)]
    if tail > 1:
        costs.append(_cost([_stretch(reach * c, tail - 1, c)]))
    if uses > 1:
        tried = {*range(min(40, uses - 1)), uses - 2}
        low, high = 0, uses - 2
        while high - low > 8:
            a, b = low + (high - low) // 3, high - (high - low) // 3
            better = _restarted(period, tail, c, reach, b) < _restarted(period, tail, c, reach, a)
            low, high = (a, high) if better else (low, b)
        tried.update(range(low, high + 1))
        costs += [_restarted(period, tail, c, reach, j) for j in tried]
    return least(*costs)


def quadratic_cost(q: arb, period: int, tail: int, uses: int) -> arb:
    """Return (the accumulated shift)^2 over the accumulated variance of w -> q w + N(0, 1), used once a pass."""
    total = period * uses
    if q == 1:
        return arb(uses) / period
    shift = power(q, tail - 1) * (1 - power(q, total)) / (1 - power(q, period))
    return shift * shift * (1 - q * q) / (1 - power(q * q, total))
