"""The pooling pass: which steps form a block of the optimal allocation (see the package).

Steps are checked arrays, read in pieces so that memory stays bounded. Numbers are plain doubles if the data allow it,
else doubles with an unbounded exponent.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, MutableSequence
from itertools import chain
from typing import Any, Final, TypeVar

from dpcalc.numerics.floats import Array, Integers, np

CHUNK: Final = 1 << 16  # steps converted to Python numbers, or reduced by one tree, at a time


def checked_steps(**named: Array) -> list[Array]:
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


def check_level(name: str, value: float) -> None:
    """Raise ValueError unless the value is finite and >= 0."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be finite and >= 0, got {value}")


def pieces(lo: int, hi: int) -> Iterator[tuple[int, int]]:
    """Yield bounds of consecutive pieces of lo..hi, the rightmost first."""
    for end in range(hi, lo, -CHUNK):
        yield max(lo, end - CHUNK), end


class WideFloat:
    """A non-negative number m 2^e, m = 0 or 1/2 <= m < 1: an operation errs by at most one rounding of m."""

    __slots__ = ("e", "m")

    def __init__(self, m: float, e: int = 0) -> None:
        self.m, shift = math.frexp(m)
        self.e = e + shift

    def __mul__(self, other: WideFloat) -> WideFloat:
        return WideFloat(self.m * other.m, self.e + other.e)

    def __truediv__(self, other: WideFloat) -> WideFloat:
        return WideFloat(self.m / other.m, self.e - other.e)

    def __add__(self, other: WideFloat) -> WideFloat:
        if not self.m or not other.m:
            return self if self.m else other
        if self.e < other.e:
            return other + self
        return WideFloat(self.m + math.ldexp(other.m, other.e - self.e), self.e)

    def __lt__(self, other: WideFloat) -> bool:
        return self.m < other.m if not self.m or not other.m else (self.e, self.m) < (other.e, other.m)


Number = TypeVar("Number", float, WideFloat)


def plain_floor(s: Array, v: Array, c: Array, levels: tuple[float, ...]) -> float | None:
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
    s_low = smallest - float((lost - np.maximum.accumulate(np.where(s > 0, lost, 0.0))).max())
    steps = math.log2(len(s) + 1)
    s_high, v_high = largest + growth + steps, v_high + 2 * growth + steps
    floor = min(s_low - s_high, (v_low - v_high) / 2) - 64
    tops = (s_high + v_high + growth, 2 * s_high - v_low + steps)
    bottoms = (floor + s_low + v_low, s_low + v_low, 2 * s_low - v_high, 2 * floor + v_low)
    return 2.0 ** math.floor(floor) if max(tops) < 1000 and min(bottoms) > -1000 else None


def _log2_range(positive: Array) -> tuple[float, float]:
    return (0.0, 0.0) if not positive.size else (math.log2(positive.min()), math.log2(positive.max()))


def reversed_steps(
    s: Array, v: Array, c: Array, lo: int, hi: int, lift: Callable[[float], Number] | None
) -> Iterator[tuple[int, Number, Number, Number]]:
    """Return (t, s_t, v_t, c_t) for t = hi, .., lo + 1 as Python numbers, a bounded number at a time."""

    def piece(end: int) -> Iterator[tuple[int, Any, Any, Any]]:
        begin = max(lo, end - CHUNK)
        columns = [x[begin:end][::-1].tolist() for x in (s, v, c)]
        numbers = columns if lift is None else [map(lift, x) for x in columns]
        return zip(range(end, begin, -1), *numbers, strict=True)

    return chain.from_iterable(map(piece, range(hi, lo, -CHUNK)))


def pooled_blocks(s: Array, v: Array, c: Array, tau: int, entry: float) -> Integers:
    """Return the ends of the optimal blocks of the steps after ``tau``, started from ``entry``."""
    lo, hi = hull_range(v, c, tau)
    ends = array("q")
    if lo < hi:
        floor = plain_floor(s[lo:hi], v[lo:hi], c[lo:hi], (entry,))
        first = 0.0 if c[lo] == 0 else entry
        if floor is None:
            ends = pool_adjacent_violators(
                reversed_steps(s, v, c, lo, hi, WideFloat), WideFloat(first), WideFloat(0.0), WideFloat, list
            )
        else:
            ends = pool_adjacent_violators(
                reversed_steps(s, v, c, lo, hi, None), first, floor, float, lambda: array("d")
            )
    if ends and not s[hi:].any():
        ends[-1] = len(s)
    elif not ends or ends[-1] < len(s):
        ends.append(len(s))
    return np.frombuffer(ends, dtype=np.int64)


def hull_range(v: Array, c: Array, tau: int) -> tuple[int, int]:
    """Return the range lo..hi (half open, 0-based) of the steps after ``tau`` that shape the hull.

    A zero carry factor erases everything before it: lo is the last such step, and the earlier steps spend
    nothing, as they do as part of its block. Nothing can be spent after the last positive weight: hi excludes
    these steps.
    """
    zero = np.flatnonzero(c[tau:] == 0)
    usable = np.flatnonzero(v[tau:])
    return tau + int(zero[-1]) if zero.size else tau, tau + int(usable[-1]) + 1 if usable.size else tau


def pool_adjacent_violators(
    steps: Iterator[tuple[int, Number, Number, Number]],
    entry: Number,
    floor: Number,
    lift: Callable[[float], Number],
    column: Callable[[], MutableSequence[Number]],
) -> array[int]:
    """Pool adjacent violators from right to left; return the block ends in increasing order.

    The top block is in local variables. Below the last block is a sentinel of infinite slope (S = 1, V = 0),
    which no block of positive weight joins; the rightmost step has positive weight. The entry is a weightless
    last step: it joins at least one block.
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
