"""The cheapest way to spend a carried flow: the optimal shift allocation, by pooling adjacent violators.

Given inflows s_t >= 0, weights v_t >= 0 and carry factors c_t >= 0 (t = 1..T) and a start z_0 >= 0, choose
a_t >= 0 with

    z_t = c_t z_{t-1} + s_t - a_t >= 0   for every t,      z_T = 0,

minimising sum a_t^2 / v_t (0/0 = 0, positive/0 = inf). Source: "optimal shift allocation: lower convex hull
of (V_t, S_t)". With P_t = prod_{k>t} c_k the problem reads: minimise sum b_t^2 / w_t, b_t = P_t a_t, w_t =
P_t^2 v_t, with prefix sums of b below those of P_t s_t and equal at T. The answer is the greatest convex
minorant of the points (V_t, S_t) of prefix sums of (P_t^2 v_t, P_t s_t): it splits the steps into *blocks* of
constant slope and costs sum S_B^2 / V_B, where for a block, measured at its own end,

    S = sum_t s_t prod_{t<k<=end} c_k,   V = sum_t v_t prod_{t<k<=end} c_k^2,   Q = prod_{k in block} c_k,

and two neighbours A (left), N (right) join to (Q_N S_A + S_N, Q_N^2 V_A + V_N, Q_A Q_N). No product over the
whole range is ever formed. Blocks are pooled from right to left, so that the stack after step t is the
optimum of the suffix t..T and a restart in mid-run is one more, weightless, block at its left.

Why the returned cost is never below the optimum
------------------------------------------------
u = 2^-53. The pass over the steps only *chooses* the boundaries; the cost is then recomputed from the data.

1. The choice. Rounding can make the pass keep two blocks apart that should be pooled: harmless, each block
   spends within itself and that is feasible. It can also pool too much, which relaxes z_t >= 0; the damage is
   second order:
   a) Every decision is exact for slightly different data. When A joins N, the roundings of S_A Q_N + S_N
      multiply all s of A, or all s of A and N, by a common factor, which alters no earlier decision inside A
      or inside N; so do those of V; those of Q_A Q_N go into the first carry factor of A, which no decision
      inside the new block uses; and those of the comparison S_A V_N >= Q_N S_N V_A go into all s of A, undone
      by a factor on all of A and N. A step lives through at most T joins, each adding at most 12 u to its s
      and 6 u to its v (shares of the carry factors included). For these data each block has prefix slopes >=
      its slope >= suffix slopes, exactly.
   b) Sums of non-negative terms inherit relative errors, so for the true data the prefix slopes of a block of
      slope m are >= m (1 - h) and its suffix slopes are <= m (1 + h), h = 40 T u (2 * (12 + 6) < 40).
   c) The hull of the points inside the block starts at its smallest prefix slope and ends at its largest
      suffix slope. Its pieces j, all in m (1 +- h), cost sum V_j m_j^2 = S_B^2/V_B + sum V_j (m_j - m)^2 <=
      (S_B^2/V_B)(1 + h^2). Hull pieces are feasible, so: optimum <= (sum_B S_B^2/V_B)(1 + h^2).
2. The sum. S_B and V_B come from a balanced tree of joins. Q is carried in two doubles (8 u^2 per join, below
   u in all for T < 2^49), so each level costs a term of S at most 3 u (Q to one double, product, sum) and a
   term of V 5 u. A cost is then off by (2 * 3 + 5) u per level, plus 3 u for S^2/V and u for the correctly
   rounded sum over blocks.

Hence cost = sum * (1 + slack), slack = (11 levels + 8) u + (40 T u)^2, rounded up; the margins left in 40 and
8 cover the terms of higher order and the rounding of the inflation itself. By the same second-order argument,
pooling too little costs no more than h^2 either.

Exponents. In the tree every number is a mantissa with its own integer exponent. In the pass, plain doubles
are used when the ranges of the data prove that nothing over- or underflows, except Q, which is kept above a
floor so low that what it multiplies stays below 2^-64 of what it is added to (one more rounding in (a));
otherwise the same code runs on `_Wide` numbers.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, MutableSequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcalc.numerics.floats import UNIT

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CHUNK: Final = 1 << 16  # steps turned into Python numbers, or reduced by one tree, at a time
_NEVER: Final = -(1 << 40)  # the exponent of zero in the tree: below that of any product
_SPLITTER: Final = 134217729.0  # 2^27 + 1


@dataclass(frozen=True, eq=False)
class Allocation:
    """An optimal allocation, described by its blocks.

    Block i covers the steps ``block_ends[i-1] + 1 .. block_ends[i]`` (1-based, inclusive; the first one
    begins at ``start + 1``) and spends there exactly what flows in there, at constant slope.
    """

    cost: float
    """Upper bound of the minimal sum a_t^2 / v_t, within a few 1e-14 relatively; inf if none is finite."""
    start: int
    """Number of leading steps discarded (0 = none)."""
    start_value: float
    """The z the allocation starts from: z_0, or the cap after discarding."""
    block_ends: Ints
    """Last step of each block, 1-based, increasing, shape (B,); the last entry is T."""
    block_costs: Floats
    """The share S^2 / V of each block before the inflation by ``slack``, shape (B,)."""
    slack: float
    """The relative inflation that covers all rounding: cost >= sum(block_costs) (1 + slack)."""


def allocate(
    inflow: Floats, weight: Floats, carry: Floats, *, start: float = 0.0, cap: float | None = None
) -> Allocation:
    """Return the allocation of least cost, and an upper bound of that cost.

    Args:
        inflow: s_t, shape (T,), finite and >= 0; T >= 1.
        weight: v_t, shape (T,), finite and >= 0.
        carry: c_t, shape (T,), finite and >= 0.
        start: z_0, finite and >= 0.
        cap: None, or a bound D >= 0 of z that holds at all times: steps 1..tau may then be discarded for any
            tau in 1..T-1, starting over from z_tau = D; the best tau (or none) is taken.

    Returns:
        The allocation; its cost is inf if some inflow can only be spent where the weight is 0.

    Raises:
        ValueError: a shape or a value outside these domains.

    Source: optimal shift allocation: lower convex hull of (V_t, S_t); restarts from the diameter.
    """
    s, v, c = _steps(inflow=inflow, weight=weight, carry=carry)
    _check_level("start", start)
    tau, entry = 0, float(start)
    if cap is not None:
        _check_level("cap", cap)
        tau = _best_restart(s, v, c, entry, float(cap))
        entry = float(cap) if tau else entry
    ends = _blocks(s, v, c, tau, entry)
    total, weights, levels = _pool(s, v, c, ends, tau, entry)
    costs = _costs(total, weights)
    slack = (11 * levels + 8) * UNIT + (40.0 * len(s) * UNIT) ** 2
    return Allocation(_inflated_sum(costs, slack), tau, entry, ends, costs, slack)


def spend(allocation: Allocation, inflow: Floats, weight: Floats, carry: Floats) -> Floats:
    """Return the a_t of an allocation, shape (T,), zero on the discarded steps.

    Each is right to about (length of its block) * 2^-53, relatively; inf where it exceeds the doubles. A
    block that has inflow and no weight (infinite cost) spends it all on its last step.

    Args:
        allocation: what `allocate` returned for these arrays.
        inflow: s_t, shape (T,).
        weight: v_t, shape (T,).
        carry: c_t, shape (T,).

    Raises:
        ValueError: arrays outside the domains of `allocate`, or of another length than the allocation.
    """
    s, v, c = _steps(inflow=inflow, weight=weight, carry=carry)
    ends, tau = allocation.block_ends, allocation.start
    if ends[-1] != len(s):
        raise ValueError(f"the allocation covers {ends[-1]} steps, the arrays have {len(s)}")
    (total, total_exp), (room, room_exp), _ = _pool(s, v, c, ends, tau, allocation.start_value)
    slope = np.divide(total, room, out=np.zeros_like(total), where=room > 0)
    slope_exp = total_exp - room_exp
    spent = np.zeros(len(s))
    for lo, hi, carried, carried_exp in _carried(c, ends, tau):
        block = _block_of(ends, lo, hi)
        unit, unit_exp = _split(v[lo:hi])
        spent[lo:hi] = _to_double(slope[block] * carried * unit, slope_exp[block] + carried_exp + unit_exp)
    stuck = (room == 0) & (total > 0)
    spent[ends[stuck] - 1] = _to_double(total[stuck], total_exp[stuck])
    return spent


def remaining(spent: Floats, inflow: Floats, carry: Floats, *, start: float = 0.0, skip: int = 0) -> Floats:
    """Return z_t = c_t z_{t-1} + s_t - a_t, shape (T,), as rounded (not clipped at 0).

    Args:
        spent: a_t, shape (T,), finite and >= 0.
        inflow: s_t, shape (T,), finite and >= 0.
        carry: c_t, shape (T,), finite and >= 0.
        start: the z at step ``skip``, finite and >= 0.
        skip: number of leading steps discarded, 0 <= skip < T; their entries are ``start``.

    Raises:
        ValueError: a shape or a value outside these domains.
    """
    a, s, c = _steps(spent=spent, inflow=inflow, carry=carry)
    _check_level("start", start)
    if not 0 <= skip < len(s):
        raise ValueError(f"skip must be in 0..{len(s) - 1}, got {skip}")
    z = float(start)
    left = np.full(len(s), z)
    for lo in range(skip, len(s), _CHUNK):
        piece = slice(lo, lo + _CHUNK)
        for t, (a_t, s_t, c_t) in enumerate(
            zip(a[piece].tolist(), s[piece].tolist(), c[piece].tolist(), strict=True), lo
        ):
            left[t] = z = c_t * z + s_t - a_t
    return left


def cost_of(spent: Floats, weight: Floats) -> float:
    """Return an upper bound of sum a_t^2 / v_t (0/0 = 0, positive/0 = inf), within 1e-14 relatively.

    Args:
        spent: a_t, shape (T,), finite and >= 0; T >= 1.
        weight: v_t, shape (T,), finite and >= 0.

    Raises:
        ValueError: a shape or a value outside these domains.
    """
    a, v = _steps(spent=spent, weight=weight)
    ratios = np.empty(len(a))
    for lo, hi in _pieces(0, len(a)):
        ratios[lo:hi] = _cost(_split(a[lo:hi]), _split(v[lo:hi]))
    return _inflated_sum(ratios, 8 * UNIT)  # square, quotient and sum: 3 u


# --- arguments ----------------------------------------------------------------------------------------------


def _steps(**named: Floats) -> list[Floats]:
    """Return the arrays as float64, checked to be 1-D, equally long, finite and non-negative."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in named.items()}
    for name, values in arrays.items():
        if values.ndim != 1 or not values.size:
            raise ValueError(f"{name} must be a 1-D array of at least one step, got shape {values.shape}")
        if not (values.min() >= 0 and values.max() < math.inf):
            raise ValueError(f"{name} must be finite and >= 0 at every step")
    if len({values.size for values in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} {values.size}" for name, values in arrays.items())
        raise ValueError(f"the arrays must have equal lengths, got {lengths}")
    return list(arrays.values())


def _check_level(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be finite and >= 0, got {value}")


# --- numbers for the pass: doubles, or doubles with an unbounded exponent -----------------------------------


class _Wide:
    """A non-negative number m 2^e, m = 0 or 1/2 <= m < 1: an operation errs by at most one rounding of m."""

    __slots__ = ("e", "m")

    def __init__(self, m: float, e: int = 0) -> None:
        self.m, shift = math.frexp(m)
        self.e = e + shift

    def __mul__(self, other: _Wide) -> _Wide:
        return _Wide(self.m * other.m, self.e + other.e)

    def __truediv__(self, other: _Wide) -> _Wide:
        return _Wide(self.m / other.m, self.e - other.e)

    def __add__(self, other: _Wide) -> _Wide:
        if not self.m or not other.m:
            return self if self.m else other
        if self.e < other.e:
            return other + self
        return _Wide(self.m + math.ldexp(other.m, other.e - self.e), self.e)

    def __lt__(self, other: _Wide) -> bool:
        if not self.m or not other.m:
            return self.m < other.m
        return (self.e, self.m) < (other.e, other.m)


_Number = TypeVar("_Number", float, _Wide)


def _plain_floor(s: Floats, v: Floats, c: Floats, levels: tuple[float, ...]) -> float | None:
    """Return the floor of Q that makes plain doubles safe for the pass over these steps, or None.

    All bounds are base-2 logarithms. A block's V is at least the weight at its end, which is positive (a
    weightless step always joins its right neighbour); its S, if positive, is at least the smallest inflow,
    carried through the zero inflows after it. Its Q drops below the floor only if S > 0: otherwise the block
    is a piece of such a run.
    """
    smallest, largest = _log2_range(np.append(s[s > 0], [x for x in levels if x > 0]))
    v_low, v_high = _log2_range(v[v > 0])
    log_c = np.log2(np.where(c > 0, c, 1.0))
    growth = float(np.maximum(log_c, 0.0).sum())
    lost = np.cumsum(np.where(s > 0, 0.0, np.maximum(-log_c, 0.0)))
    before = np.maximum.accumulate(np.where(s > 0, lost, 0.0))
    s_low = smallest - float((lost - before).max())
    steps = math.log2(len(s) + 1)
    s_high, v_high = largest + growth + steps, v_high + 2 * growth + steps
    floor = min(s_low - s_high, (v_low - v_high) / 2) - 64
    tops = (s_high + v_high + growth, 2 * s_high - v_low + steps)
    bottoms = (floor + s_low + v_low, s_low + v_low, 2 * s_low - v_high, 2 * floor + v_low)
    return 2.0 ** math.floor(floor) if max(tops) < 1000 and min(bottoms) > -1000 else None


def _log2_range(positive: Floats) -> tuple[float, float]:
    if not positive.size:
        return 0.0, 0.0
    return math.log2(positive.min()), math.log2(positive.max())


def _backwards(
    s: Floats, v: Floats, c: Floats, lo: int, hi: int, lift: Callable[[float], _Number] | None
) -> Iterator[tuple[int, _Number, _Number, _Number]]:
    """Return (t, s_t, v_t, c_t) for t = hi, .., lo + 1 as Python numbers, a bounded number at a time."""

    def piece(end: int) -> Iterator[tuple[int, Any, Any, Any]]:
        begin = max(lo, end - _CHUNK)
        columns = [x[begin:end][::-1].tolist() for x in (s, v, c)]
        numbers = columns if lift is None else [map(lift, x) for x in columns]
        return zip(range(end, begin, -1), *numbers, strict=True)

    return chain.from_iterable(map(piece, range(hi, lo, -_CHUNK)))


# --- the pass: which steps form a block ---------------------------------------------------------------------


def _blocks(s: Floats, v: Floats, c: Floats, tau: int, entry: float) -> Ints:
    """Return the ends of the optimal blocks of the steps after ``tau``, started from ``entry``."""
    lo, hi = _window(v, c, tau)
    ends = array("q")
    if lo < hi:
        floor = _plain_floor(s[lo:hi], v[lo:hi], c[lo:hi], (entry,))
        first = 0.0 if c[lo] == 0 else entry
        if floor is None:
            ends = _hull(_backwards(s, v, c, lo, hi, _Wide), _Wide(first), _Wide(0.0), _Wide, list)
        else:
            ends = _hull(_backwards(s, v, c, lo, hi, None), first, floor, float, lambda: array("d"))
    if ends and not s[hi:].any():
        ends[-1] = len(s)
    elif not ends or ends[-1] < len(s):
        ends.append(len(s))
    return np.frombuffer(ends, dtype=np.int64)


def _window(v: Floats, c: Floats, tau: int) -> tuple[int, int]:
    """Return the range lo..hi (half open, 0-based) of the steps after ``tau`` that shape the hull.

    A zero carry factor forgets all that was before: lo is the last such step, and the earlier ones spend
    nothing, which is what they do as part of its block. After the last positive weight nothing can be spent:
    hi excludes these steps.
    """
    zero = np.flatnonzero(c[tau:] == 0)
    usable = np.flatnonzero(v[tau:])
    return tau + int(zero[-1]) if zero.size else tau, tau + int(usable[-1]) + 1 if usable.size else tau


def _hull(
    steps: Iterator[tuple[int, _Number, _Number, _Number]],
    entry: _Number,
    floor: _Number,
    lift: Callable[[float], _Number],
    column: Callable[[], MutableSequence[_Number]],
) -> array[int]:
    """Pool adjacent violators from right to left; return the block ends in increasing order.

    The block at the top lives in local variables. Beneath the last block lies a sentinel of infinite slope
    (S = 1, V = 0), which nothing of positive weight joins; the rightmost step has positive weight. The entry
    is a weightless last step: it joins at least one block.
    """
    ends, sums, weights, products = array("q"), column(), column(), column()
    top, top_s, top_v, top_q = 0, lift(1.0), lift(0.0), lift(1.0)
    for t, s, v, q in chain(steps, ((0, entry, lift(0.0), lift(1.0)),)):
        end = t
        while not s * top_v < top_q * top_s * v:
            s = top_q * s + top_s
            v = top_q * top_q * v + top_v
            q = max(q * top_q, floor)
            end = top
            top, top_s, top_v, top_q = ends.pop(), sums.pop(), weights.pop(), products.pop()
        ends.append(top)
        sums.append(top_s)
        weights.append(top_v)
        products.append(top_q)
        top, top_s, top_v, top_q = end, s, v, q
    ends.append(top)
    del ends[0]
    ends.reverse()
    return ends


# --- restarts from the cap ----------------------------------------------------------------------------------


def _best_restart(s: Floats, v: Floats, c: Floats, start: float, cap: float) -> int:
    """Return how many leading steps are best discarded: any answer is sound, this one best up to rounding."""
    if cap == 0 and s[-1] == 0 and len(s) > 1:
        # Nothing is left after the last inflow, so nothing need be spent, whatever the weights.
        return max(1, int(np.flatnonzero(s)[-1]) + 1) if s.any() else int(start > 0)
    lo, hi = _window(v, c, 0)
    useful = _useful_restarts(s, c, lo, hi, start, cap)
    if 1 not in useful or s[hi:].any():
        return 0
    first = 0.0 if c[lo] == 0 else start
    floor = _plain_floor(s[lo:hi], v[lo:hi], c[lo:hi], (start, cap))
    if floor is None:
        wide = _backwards(s, v, c, lo, hi, _Wide)
        return _search(wide, useful, lo, _Wide(first), _Wide(cap), _Wide(0.0), _Wide, list)
    return _search(_backwards(s, v, c, lo, hi, None), useful, lo, first, cap, floor, float, lambda: array("d"))


def _useful_restarts(s: Floats, c: Floats, lo: int, hi: int, start: float, cap: float) -> bytearray:
    """Return for tau = 0..hi-1 whether a restart at tau can be better than all earlier ones and none at all.

    If spending nothing leads to z_tau <= cap, from the very start or from the cap at tau - 1, then beginning
    there is at least as good, because the cost grows with z_tau. For tau <= lo what came before is forgotten
    anyway.
    """
    useful = bytearray(hi)
    z = start
    for begin in range(lo, hi - 1, _CHUNK):
        piece = slice(begin, min(begin + _CHUNK, hi - 1))
        for tau, (s_t, c_t) in enumerate(zip(s[piece].tolist(), c[piece].tolist(), strict=True), begin + 1):
            z = c_t * z + s_t
            if z > cap and (c_t * cap + s_t > cap or tau == lo + 1):
                useful[tau] = 1
    return useful


def _search(
    steps: Iterator[tuple[int, _Number, _Number, _Number]],
    useful: bytearray,
    lo: int,
    entry: _Number,
    cap: _Number,
    floor: _Number,
    lift: Callable[[float], _Number],
    column: Callable[[], MutableSequence[_Number]],
) -> int:
    """Run the pass of `_hull`, try the useful restarts on every suffix, return the best one (0: none).

    The suffix alone costs less than any restart before it, so the search ends once that exceeds the best
    total.
    """
    stack = _Stack(lift, column)
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


class _Stack:
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


# --- the tree: what a block costs ---------------------------------------------------------------------------

_Split = tuple[Floats, Ints]  # mantissas in [1/2, 1) or 0, exponents


@dataclass(frozen=True)
class _Runs:
    """Consecutive runs of steps: their (Q, S, V), Q as a sum of two mantissas on one exponent."""

    mantissa: Floats  # rows Q, low part of Q, S, V
    exponent: Ints  # rows Q, S, V
    block: Ints  # which block each run belongs to, nondecreasing


def _split(values: Floats) -> _Split:
    m, e = np.frexp(values)
    return m, np.where(m > 0, e.astype(np.int64), _NEVER)  # frexp gives int32, too short for _NEVER


def _renormal(m: Floats, e: Ints) -> _Split:
    m, shift = np.frexp(m)
    return m, np.where(m > 0, e + shift, _NEVER)


def _scaled(m: Floats, e: Ints) -> Floats:
    """Return m 2^e for e <= 0; what underflows is below 2^-1000."""
    scaled: Floats = np.ldexp(m, np.maximum(e, -1100).astype(np.int32))
    return scaled


def _sum(x: Floats, x_exp: Ints, y: Floats, y_exp: Ints) -> _Split:
    top = np.maximum(x_exp, y_exp)
    return _renormal(_scaled(x, x_exp - top) + _scaled(y, y_exp - top), top)


def _to_double(m: Floats, e: Ints) -> Floats:
    """Return m 2^e rounded up where it is subnormal, inf where it is too large."""
    with np.errstate(over="ignore", under="ignore"):
        value: Floats = np.ldexp(m, np.clip(e, -2200, 2200).astype(np.int32))
    return np.where((m > 0) & (value < 2.0**-1022), np.nextafter(value, math.inf), value)


def _cost(x: _Split, v: _Split) -> Floats:
    """Return x^2 / v, within 2 u or rounded up, with 0/0 = 0 and positive/0 = inf."""
    square = x[0] * x[0]
    ratio = np.divide(square, v[0], out=np.where(square > 0, math.inf, 0.0), where=v[0] > 0)
    return _to_double(ratio, 2 * x[1] - v[1])


def _costs(x: _Split, v: _Split) -> Floats:
    costs = np.empty(len(x[0]))
    for lo, hi in _pieces(0, len(costs)):
        costs[lo:hi] = _cost((x[0][lo:hi], x[1][lo:hi]), (v[0][lo:hi], v[1][lo:hi]))
    return costs


def _inflated_sum(terms: Floats, slack: float) -> float:
    try:
        total = math.fsum(terms)
    except OverflowError:
        return math.inf
    return math.nextafter(total * (1 + slack), math.inf) if total else 0.0


def _pool(s: Floats, v: Floats, c: Floats, ends: Ints, tau: int, entry: float) -> tuple[_Split, _Split, int]:
    """Return S and V of every block, recomputed from the data, and the number of levels of joins used.

    The steps are reduced piece by piece; only the first and the last run of a piece can belong to a block
    that reaches beyond it, and these few are reduced once more at the end.
    """
    mantissa, exponent = np.empty((2, len(ends))), np.empty((2, len(ends)), dtype=np.int64)
    edges, levels = [_leaves(np.array([entry]), np.zeros(1), np.ones(1), np.zeros(1, np.int64))], 0

    def store(runs: _Runs) -> None:
        mantissa[:, runs.block], exponent[:, runs.block] = runs.mantissa[2:], runs.exponent[1:]

    for lo, hi in reversed(list(_pieces(tau, len(s)))):
        runs, depth = _reduce(_leaves(s[lo:hi], v[lo:hi], c[lo:hi], _block_of(ends, lo, hi)))
        store(runs)
        edges.append(_take(runs, [0, -1] if len(runs.block) > 1 else [0]))
        levels = max(levels, depth)
    runs, depth = _reduce(_concatenate(edges))
    store(runs)
    return (mantissa[0], exponent[0]), (mantissa[1], exponent[1]), levels + depth


def _pieces(lo: int, hi: int) -> Iterator[tuple[int, int]]:
    """Yield bounds of consecutive pieces of lo..hi, the rightmost first."""
    for end in range(hi, lo, -_CHUNK):
        yield max(lo, end - _CHUNK), end


def _leaves(s: Floats, v: Floats, c: Floats, block: Ints) -> _Runs:
    parts = [_split(x) for x in (c, s, v)]
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
        sizes = np.diff(fresh, append=len(runs.block))
        rank = np.arange(len(runs.block)) - np.repeat(fresh, sizes)
        left = np.flatnonzero(rank % 2 == 0)
        paired = np.append(rank, 0)[left + 1] > 0
        runs = _join(runs, left, paired)
        levels += 1


def _join(runs: _Runs, left: Ints, paired: NDArray[np.bool_]) -> _Runs:
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
    x: Floats, x_low: Floats, x_exp: Ints, y: Floats, y_low: Floats, y_exp: Ints
) -> tuple[Floats, Floats, Ints]:
    """Multiply two doubled mantissas (Dekker); the result is off by at most 8 u^2."""
    p = x * y
    x_head, y_head = _head(x), _head(y)
    x_tail, y_tail = x - x_head, y - y_head
    error = ((x_head * y_head - p) + x_head * y_tail + x_tail * y_head) + x_tail * y_tail
    low = error + (x * y_low + x_low * y)
    high = p + low
    low -= high - p
    m, shift = np.frexp(high)
    return m, np.ldexp(low, -shift), np.where(m > 0, x_exp + y_exp + shift, _NEVER)


def _head(x: Floats) -> Floats:
    big = _SPLITTER * x
    return big - (big - x)


def _block_of(ends: Ints, lo: int, hi: int) -> Ints:
    """Return which block each of the steps lo + 1 .. hi belongs to."""
    begin, end = np.searchsorted(ends, (lo + 1, hi))
    return np.repeat(np.arange(begin, end + 1), np.diff(np.minimum(ends[begin : end + 1], hi), prepend=lo))


def _carried(c: Floats, ends: Ints, tau: int) -> Iterator[tuple[int, int, Floats, Ints]]:
    """Yield, piece by piece from the right, what a unit at each step becomes at the end of its block."""
    block, m, e = len(ends) - 1, 1.0, 0
    for lo, hi in _pieces(tau, len(c)):
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
