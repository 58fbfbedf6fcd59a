"""The cheapest restart of an allocation from the cap, up to rounding (every restart is valid), and the costs of blocks.

S and V of the blocks are recomputed from the data by balanced trees of joins; costs are rounded up.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, MutableSequence
from dataclasses import dataclass
from typing import Any, Final

from dpcalc.numerics.floats import SPLITTER, Array, Booleans, Integers, np
from dpcalc.numerics.isotonic import pooling
from dpcalc.numerics.isotonic.pooling import CHUNK, Number, WideFloat, hull_range, pieces, reversed_steps


def best_restart(s: Array, v: Array, c: Array, start: float, cap: float) -> int:
    """Return how many leading steps to discard for the least cost, up to rounding; every number gives a valid cost."""
    if cap == 0 and s[-1] == 0 and len(s) > 1:
        # A restart after the last inflow leaves nothing to spend, for any weights.
        return max(1, int(np.flatnonzero(s)[-1]) + 1) if s.any() else int(start > 0)
    lo, hi = hull_range(v, c, 0)
    useful = _useful_restarts(s, c, lo, hi, start, cap)
    if 1 not in useful or s[hi:].any():
        return 0
    first = 0.0 if c[lo] == 0 else start
    floor = pooling.plain_floor(s[lo:hi], v[lo:hi], c[lo:hi], (start, cap))
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

    The suffix alone costs less than any restart before it, so the search ends once its cost exceeds the best
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


_NEVER: Final = -(1 << 40)  # the exponent of zero: below that of any product

Split = tuple[Array, Integers]  # mantissas in [1/2, 1) or 0, exponents


@dataclass(frozen=True)
class _Runs:
    """Consecutive runs of steps: their (Q, S, V), Q as a sum of two mantissas on one exponent."""

    mantissa: Array  # rows Q, low part of Q, S, V
    exponent: Integers  # rows Q, S, V
    block: Integers  # which block each run belongs to, nondecreasing


def split(values: Array) -> Split:
    """Return the mantissas and exponents of non-negative numbers, exactly."""
    m, e = np.frexp(values)
    return m, np.where(m > 0, e.astype(np.int64), _NEVER)  # frexp gives int32, too short for _NEVER


def _renormal(m: Array, e: Integers) -> Split:
    m, shift = np.frexp(m)
    return m, np.where(m > 0, e + shift, _NEVER)


def _scaled(m: Array, e: Integers) -> Array:
    """Return m 2^e for e <= 0; values that underflow are below 2^-1000."""
    return np.ldexp(m, np.maximum(e, -1100).astype(np.int32))


def _sum(x: Array, x_exp: Integers, y: Array, y_exp: Integers) -> Split:
    top = np.maximum(x_exp, y_exp)
    return _renormal(_scaled(x, x_exp - top) + _scaled(y, y_exp - top), top)


def to_double_up(m: Array, e: Integers) -> Array:
    """Return m 2^e, rounded up if it is subnormal; inf if it overflows."""
    with np.errstate(over="ignore", under="ignore"):
        value: Array = np.ldexp(m, np.clip(e, -2200, 2200).astype(np.int32))
    return np.where((m > 0) & (value < 2.0**-1022), np.nextafter(value, math.inf), value)


def quotient_of_square(x: Split, v: Split) -> Array:
    """Return x^2 / v, within 2 u or rounded up, with 0/0 = 0 and positive/0 = inf."""
    square = x[0] * x[0]
    ratio = np.divide(square, v[0], out=np.where(square > 0, math.inf, 0.0), where=v[0] > 0)
    return to_double_up(ratio, 2 * x[1] - v[1])


def block_costs(x: Split, v: Split) -> Array:
    """Return x^2 / v of every block, within 2 u or rounded up."""
    costs = np.empty(len(x[0]))
    for lo, hi in pieces(0, len(costs)):
        costs[lo:hi] = quotient_of_square((x[0][lo:hi], x[1][lo:hi]), (v[0][lo:hi], v[1][lo:hi]))
    return costs


def sum_up(terms: Array, slack: float) -> float:
    """Return the sum of non-negative terms times 1 + slack, rounded up; inf on overflow."""
    try:
        total = math.fsum(terms)
    except OverflowError:
        return math.inf
    return math.nextafter(total * (1 + slack), math.inf) if total else 0.0


def block_totals(s: Array, v: Array, c: Array, ends: Integers, tau: int, entry: float) -> tuple[Split, Split, int]:
    """Return S and V of every block, recomputed from the data, and the number of levels of joins used.

    The steps are reduced piece by piece. Only the first and the last run of a piece can belong to a block
    that extends beyond it; these few are reduced again at the end.
    """
    mantissa, exponent = np.empty((2, len(ends))), np.empty((2, len(ends)), dtype=np.int64)
    edges, levels = [_leaves(np.array([entry]), np.zeros(1), np.ones(1), np.zeros(1, np.int64))], 0

    def store(runs: _Runs) -> None:
        mantissa[:, runs.block], exponent[:, runs.block] = runs.mantissa[2:], runs.exponent[1:]

    for lo, hi in reversed(list(pieces(tau, len(s)))):
        runs, depth = _reduce(_leaves(s[lo:hi], v[lo:hi], c[lo:hi], block_of(ends, lo, hi)))
        store(runs)
        edges.append(_take(runs, [0, -1] if len(runs.block) > 1 else [0]))
        levels = max(levels, depth)
    runs, depth = _reduce(_concatenate(edges))
    store(runs)
    return (mantissa[0], exponent[0]), (mantissa[1], exponent[1]), levels + depth


def _leaves(s: Array, v: Array, c: Array, block: Integers) -> _Runs:
    parts = [split(x) for x in (c, s, v)]
    q, total, weight = (m for m, _ in parts)
    return _Runs(np.stack([q, np.zeros_like(q), total, weight]), np.stack([e for _, e in parts]), block)


def _take(runs: _Runs, which: list[int]) -> _Runs:
    return _Runs(runs.mantissa[:, which], runs.exponent[:, which], runs.block[which])


def _concatenate(parts: list[_Runs]) -> _Runs:
    return _Runs(
        np.concatenate([p.mantissa for p in parts], axis=1),
        np.concatenate([p.exponent for p in parts], axis=1),
        np.concatenate([p.block for p in parts]),
    )


def _reduce(runs: _Runs) -> tuple[_Runs, int]:
    """Join neighbours of the same block, pairwise, down to one run per block; count the levels."""
    levels = 0
    while True:
        fresh = np.flatnonzero(np.diff(runs.block, prepend=-1))
        if len(fresh) == len(runs.block):
            return runs, levels
        rank = np.arange(len(runs.block)) - np.repeat(fresh, np.diff(fresh, append=len(runs.block)))
        left = np.flatnonzero(rank % 2 == 0)
        paired = np.append(rank, 0)[left + 1] > 0
        runs = _join(runs, left, paired)
        levels += 1


def _join(runs: _Runs, left: Integers, paired: Booleans) -> _Runs:
    """Return the runs at ``left``, joined with their right neighbours where ``paired``."""
    mantissa, exponent = runs.mantissa[:, left], runs.exponent[:, left]
    (q, low, s, v), (q_exp, s_exp, v_exp) = mantissa[:, paired], exponent[:, paired]
    right = left[paired] + 1
    (nq, n_low, ns, nv), (nq_exp, ns_exp, nv_exp) = runs.mantissa[:, right], runs.exponent[:, right]
    s, s_exp = _sum(nq * s, nq_exp + s_exp, ns, ns_exp)
    v, v_exp = _sum(nq * nq * v, 2 * nq_exp + v_exp, nv, nv_exp)
    q, low, q_exp = _product(q, low, q_exp, nq, n_low, nq_exp)
    mantissa[:, paired], exponent[:, paired] = (q, low, s, v), (q_exp, s_exp, v_exp)
    return _Runs(mantissa, exponent, runs.block[left])


def _product(
    x: Array, x_low: Array, x_exp: Integers, y: Array, y_low: Array, y_exp: Integers
) -> tuple[Array, Array, Integers]:
    """Multiply two doubled mantissas (Dekker); the result is off by at most 8 u^2."""
    p = x * y
    x_head, y_head = _head(x), _head(y)
    x_tail, y_tail = x - x_head, y - y_head
    low = ((x_head * y_head - p) + x_head * y_tail + x_tail * y_head) + x_tail * y_tail + (x * y_low + x_low * y)
    high = p + low
    low -= high - p
    m, shift = np.frexp(high)
    return m, np.ldexp(low, -shift), np.where(m > 0, x_exp + y_exp + shift, _NEVER)


def _head(x: Array) -> Array:
    big = SPLITTER * x
    return big - (big - x)


def block_of(ends: Integers, lo: int, hi: int) -> Integers:
    """Return which block each of the steps lo + 1 .. hi belongs to."""
    begin, end = np.searchsorted(ends, (lo + 1, hi))
    return np.repeat(np.arange(begin, end + 1), np.diff(np.minimum(ends[begin : end + 1], hi), prepend=lo))


def carried_units(c: Array, ends: Integers, tau: int) -> Iterator[tuple[int, int, Array, Integers]]:
    """Yield, piece by piece from the right, the value at the end of its block of a unit at each step."""
    block, m, e = len(ends) - 1, 1.0, 0
    for lo, hi in pieces(tau, len(c)):
        mantissa, exponent = array("d"), array("q")
        c_m, c_e = np.frexp(c[lo:hi][::-1])
        for t, q, shift in zip(range(hi, lo, -1), c_m.tolist(), c_e.tolist(), strict=True):
            if block >= 0 and t == ends[block]:
                block, m, e = block - 1, 1.0, 0
            mantissa.append(m)
            exponent.append(e)
            m, e = m * q, e + shift
            if m < 0.5:
                m, e = 2 * m, e - 1
        yield lo, hi, np.frombuffer(mantissa)[::-1], np.frombuffer(exponent, dtype=np.int64)[::-1]
