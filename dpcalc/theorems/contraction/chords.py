"""Many steps of a convex recursion at once: e_{k+1} = F(e_k), F convex and increasing, F(e) <= e, F(0) = 0.

Between two points where it was evaluated a convex F is below its chord, and steps along a chord have a closed form. So
e - F(e) is at least linear between lower bounds at the two points. The error of a block of steps is of second order in
how far e falls over it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dpcalc.numerics.floats import UNIT

_STRAIGHT = 1e-4  # a slope that changes the fall of a step by less than this share is ignored
_SAFE = 1.0 - 1e-13  # for the rounding of the fall of one step
_FALLEN, _SUMMED = 1.0 - 1e-10, 1.0 + 1e-10  # for that of the fall and the sum of a block, where digits cancel
_FEW = 30.0  # a chord is not worth it for fewer steps
_DRIFT, _USUAL = 7e-4, 0.03  # the relative change of ln F(e)/e in a block of one rate; more in wider blocks
_INSIDE = 1.0 - 1e-8  # steps stay safely between the two points


class Chord(NamedTuple):
    """Steps ``start`` .. start+length-1; the first value is at most exp(log_e), the one after them at most exp(after).

    Attributes:
        start, length: the steps.
        log_e, after: see above.
        total: a bound on their sum, in units of the first bound.
        factor: a bound on ln F(e)/e for all steps from ``start`` on.
    """

    start: int
    length: int
    log_e: float
    after: float
    total: float
    factor: float


def chords(
    factor: Callable[[float], float], log_e: float, terms: int, *, floor: float, width: Callable[[], float]
) -> Iterator[Chord]:
    """Yield blocks that cover e_0 .. e_{terms-1}, or end where ln e is below ``floor``.

    Args:
        factor: ln e -> an upper bound on ln F(e)/e, at most 0.
        log_e: ln e_0.
        terms: 1 to 1e15.
        floor: where to end.
        width: how far ln e may fall over the next block, 1e-3 to 1; called before every block.
    """
    start, length, top, slowest = 0, 1, log_e, factor(log_e)  # where a chord begins, and what was worked out there
    while True:
        whole = Chord(start, terms - start, log_e, log_e, float(terms - start), slowest)
        fall, widest = -math.expm1(slowest) * _SAFE, width()
        reach, least = min(widest, whole.length * fall), 8.0 * UNIT * abs(log_e)
        low, reached = -math.inf, 0.0
        if slowest == 0.0:
            block = whole
        elif _FEW * fall >= widest or length * fall >= widest or reach <= least:
            at = slowest if top == log_e else factor(log_e)
            block = _at_one_rate(whole._replace(factor=at), max(length, _whole(least / -at, whole.length)))
        else:
            low = log_e - reach
            reached = factor(low)
            block = _along(whole, top, fall, low, reached)
        yield block
        start, log_e = start + block.length, block.after
        if start >= terms or log_e <= floor:
            return
        before, top, slowest = slowest, *((low, reached) if log_e <= low else (log_e, factor(log_e)))
        length = next_length(block.length, drift(before, slowest) / (_DRIFT * (widest / _USUAL) ** 2))


def _at_one_rate(whole: Chord, length: int) -> Chord:
    """Return ``length`` steps, or as many as are left, each by the factor of the first."""
    length = min(length, whole.length)
    fall = math.expm1(whole.factor)
    total = min(float(length), math.expm1(length * whole.factor) / fall * _SUMMED) if fall else float(length)
    return whole._replace(length=length, after=_fallen(whole.log_e, length * whole.factor), total=total)


def _fallen(log_e: float, by: float) -> float:
    """Return log_e + by, rounded up, for by <= 0."""
    after = log_e + by
    return min(log_e, after + 2.0 * UNIT * abs(after)) if math.isfinite(after) else after


def _along(whole: Chord, top: float, fall: float, low: float, factor: float) -> Chord:
    """Return the steps along the chord from exp(top) to exp(low), at most as many as ``whole`` has.

    In units of exp(top), a step from v above exp(low) falls by at least f + q v: by f at exp(low), and by f + q w at
    exp(top), which is w above exp(low). Steps along the chord are v_k = (v_0 + f/q) (1-q)^k - f/q.
    """
    ratio = math.exp(low - top)
    w, v = -math.expm1(low - top), math.expm1(whole.log_e - low) * ratio
    least = -math.expm1(factor) * ratio * _SAFE
    if fall - least <= _STRAIGHT * fall:
        least = min(least, fall)
        length = _whole(v / least, whole.length) if least > 0.0 else whole.length
        gone, missing = length * least, 0.5 * length * (length - 1.0) * least
    else:
        q = (fall - least) / w * _SAFE
        rate, c = -math.log1p(-q), least / q
        length = _whole(math.log1p(v / c) / rate if c > 0.0 else math.inf, whole.length)
        shrunk = -math.expm1(-rate * length)  # 1 - (1-q)^length
        gone, missing = (v + c) * shrunk, (v + c) * max(0.0, length - shrunk / q)
    unit = math.exp(whole.log_e - top)
    gone, missing = gone / unit * _FALLEN, missing / unit * _FALLEN
    total = min(float(whole.length), (length - missing) * _SUMMED)
    return whole._replace(length=length, after=_fallen(whole.log_e, math.log1p(-gone)), total=total)


def _whole(steps: float, most: int) -> int:
    """Return how many steps may be taken, so that the last one starts inside."""
    return most if steps >= most else min(most, int(steps * _INSIDE) + 1)


def next_length(length: int, strain: float) -> int:
    """Return the next block's length, from the last one's change relative to the tolerance."""
    return max(1, int(length * min(4.0, max(0.25, 1.0 / strain if strain else 4.0))))


def drift(before: float, now: float) -> float:
    """Return the relative change of the factor's logarithm over a block."""
    if before < 0.0 and now < 0.0:
        return abs(math.log(now / before))
    return 0.0 if now == before else 1.0
