"""Numbers for the pooling pass: plain doubles where the data allow them, else doubles with an unbounded exponent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, TypeVar

from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.isotonic.steps import CHUNK


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
        if not self.m or not other.m:
            return self.m < other.m
        return (self.e, self.m) < (other.e, other.m)


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
    before = np.maximum.accumulate(np.where(s > 0, lost, 0.0))
    s_low = smallest - float((lost - before).max())
    steps = math.log2(len(s) + 1)
    s_high, v_high = largest + growth + steps, v_high + 2 * growth + steps
    floor = min(s_low - s_high, (v_low - v_high) / 2) - 64
    tops = (s_high + v_high + growth, 2 * s_high - v_low + steps)
    bottoms = (floor + s_low + v_low, s_low + v_low, 2 * s_low - v_high, 2 * floor + v_low)
    return 2.0 ** math.floor(floor) if max(tops) < 1000 and min(bottoms) > -1000 else None


def _log2_range(positive: Array) -> tuple[float, float]:
    if not positive.size:
        return 0.0, 0.0
    return math.log2(positive.min()), math.log2(positive.max())


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
