"""The pooling pass: which steps form a block of the optimal allocation (see the package)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, MutableSequence
from itertools import chain

from dpcalc.numerics.arrays import Array, Integers, np
from dpcalc.numerics.isotonic import numbers
from dpcalc.numerics.isotonic.numbers import Number, WideFloat, reversed_steps


def pooled_blocks(s: Array, v: Array, c: Array, tau: int, entry: float) -> Integers:
    """Return the ends of the optimal blocks of the steps after ``tau``, started from ``entry``."""
    lo, hi = hull_range(v, c, tau)
    ends = array("q")
    if lo < hi:
        floor = numbers.plain_floor(s[lo:hi], v[lo:hi], c[lo:hi], (entry,))
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

    A zero carry factor forgets all that was before: lo is the last such step, and the earlier ones spend
    nothing, which is what they do as part of its block. After the last positive weight nothing can be spent:
    hi excludes these steps.
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
