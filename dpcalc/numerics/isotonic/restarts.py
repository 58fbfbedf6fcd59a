"""The restart of an allocation from the cap that costs least; every restart is sound, and this one best to rounding."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, MutableSequence
from typing import Any

from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.isotonic import numbers
from dpcalc.numerics.isotonic.numbers import Number, WideFloat, reversed_steps
from dpcalc.numerics.isotonic.pooling import hull_range
from dpcalc.numerics.isotonic.steps import CHUNK


def best_restart(s: Array, v: Array, c: Array, start: float, cap: float) -> int:
    """Return how many leading steps to discard for the least cost, up to rounding; every number gives a valid cost."""
    if cap == 0 and s[-1] == 0 and len(s) > 1:
        # A restart after the last inflow leaves nothing to spend, whatever the weights.
        return max(1, int(np.flatnonzero(s)[-1]) + 1) if s.any() else int(start > 0)
    lo, hi = hull_range(v, c, 0)
    useful = _useful_restarts(s, c, lo, hi, start, cap)
    if 1 not in useful or s[hi:].any():
        return 0
    first = 0.0 if c[lo] == 0 else start
    floor = numbers.plain_floor(s[lo:hi], v[lo:hi], c[lo:hi], (start, cap))
    if floor is None:
        wide = reversed_steps(s, v, c, lo, hi, WideFloat)
        return _search(wide, useful, lo, WideFloat(first), WideFloat(cap), WideFloat(0.0), WideFloat, list)
    return _search(reversed_steps(s, v, c, lo, hi, None), useful, lo, first, cap, floor, float, lambda: array("d"))


def _useful_restarts(s: Array, c: Array, lo: int, hi: int, start: float, cap: float) -> bytearray:
    """Return for tau = 0..hi-1 whether a restart at tau can be better than all earlier ones and none at all.

    If spending nothing leads to z_tau <= cap, from the very start or from the cap at tau - 1, then starting there
    costs no more, because the cost increases with z_tau. For tau <= lo the earlier steps do not matter.
    """
    useful = bytearray(hi)
    z = start
    for begin in range(lo, hi - 1, CHUNK):
        piece = slice(begin, min(begin + CHUNK, hi - 1))
        for tau, (s_t, c_t) in enumerate(zip(s[piece].tolist(), c[piece].tolist(), strict=True), begin + 1):
            z = c_t * z + s_t
            if z > cap and (c_t * cap + s_t > cap or tau == lo + 1):
                useful[tau] = 1
    return useful


def _search(
    steps: Iterator[tuple[int, Number, Number, Number]],
    useful: bytearray,
    lo: int,
    entry: Number,
    cap: Number,
    floor: Number,
    lift: Callable[[float], Number],
    column: Callable[[], MutableSequence[Number]],
) -> int:
    """Return the best of the useful restarts, tried on every suffix of the pooling pass; 0 for none.

    The suffix alone costs less than any restart before it, so the search ends once that exceeds the best
    total.
    """
    stack = _SuffixHull(lift, column)
    best, best_tau = cap, -1
    for t, s, v, q in steps:
        stack.push(s, v, q, floor)
        if best_tau >= 0 and not stack.cost() < best:
            return best_tau
        tau = t - 1
        if tau == lo or useful[tau]:
            total = stack.tangent(entry if tau == lo else cap)
            if best_tau < 0 or total < best or (tau == lo and not best < total):
                best, best_tau = total, 0 if tau == lo else tau
    return best_tau


class _SuffixHull:
    """The hull of a suffix, topmost block leftmost, with the tangent to it found in logarithmic time.

    Block i also knows an earlier block ``jump[i]`` (the lengths of the jumps are those of skew binary
    numbers) and the pool of the blocks i, i - 1, .., jump[i] + 1.
    """

    def __init__(self, lift: Callable[[float], Any], column: Callable[[], MutableSequence[Any]]) -> None:
        zero, one = lift(0.0), lift(1.0)
        self.s, self.v, self.q, self.total = column(), column(), column(), column()
        self.jump, self.jump_s, self.jump_v, self.jump_q = array("q", [0]), column(), column(), column()
        for field, value in ((self.s, one), (self.v, zero), (self.q, one), (self.total, zero)):
            field.append(value)
        for field, value in ((self.jump_s, zero), (self.jump_v, zero), (self.jump_q, one)):
            field.append(value)

    def push(self, s: Any, v: Any, q: Any, floor: Any) -> None:
        """Add a step at the left and pool the violators."""
        sums, weights, products = self.s, self.v, self.q
        while not s * weights[-1] < products[-1] * sums[-1] * v:
            n_q = products.pop()
            s = n_q * s + sums.pop()
            v = n_q * n_q * v + weights.pop()
            q = max(n_q * q, floor)
            for field in (self.total, self.jump, self.jump_s, self.jump_v, self.jump_q):
                field.pop()
        self.total.append(self.total[-1] + s * s / v)
        sums.append(s)
        weights.append(v)
        products.append(q)
        self._link(s, v, q, floor)

    def _link(self, s: Any, v: Any, q: Any, floor: Any) -> None:
        jump = self.jump
        near = len(jump) - 1
        far = jump[near]
        if near - far == far - jump[far]:
            for i in (near, far):
                n_q = self.jump_q[i]
                s = n_q * s + self.jump_s[i]
                v = n_q * n_q * v + self.jump_v[i]
                q = max(n_q * q, floor)
            near = jump[far]
        jump.append(near)
        self.jump_s.append(s)
        self.jump_v.append(v)
        self.jump_q.append(q)

    def cost(self) -> Any:
        """Return the cost of the suffix."""
        return self.total[-1]

    def tangent(self, level: Any) -> Any:
        """Return the cost of the suffix when it starts from ``level``.

        The weightless block of that inflow pools with blocks as long as their slope is below the pooled one,
        before or (equivalently) after. Slopes increase to the right, so a whole jump is taken if its last
        block qualifies.
        """
        sums, weights, products, jump = self.s, self.v, self.q, self.jump
        i = len(jump) - 1
        s, v = level, self.jump_v[0]
        while i:
            to, n_q = jump[i], self.jump_q[i]
            new_s, new_v = n_q * s + self.jump_s[i], n_q * n_q * v + self.jump_v[i]
            if new_s * weights[to + 1] < sums[to + 1] * new_v:
                to, n_q = i - 1, products[i]
                new_s, new_v = n_q * s + sums[i], n_q * n_q * v + weights[i]
                if new_s * weights[i] < sums[i] * new_v:
                    break
            s, v, i = new_s, new_v, to
        return s * s / v + self.total[i]
