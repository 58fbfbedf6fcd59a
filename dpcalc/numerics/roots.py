"""Bracketed inversion of monotone functions; the result always satisfies the inequality.

Both searches work on non-negative doubles and stop when the bracket is one representable number wide (or
``ulps``). The returned point has been *evaluated* and satisfies the inequality, whatever the rounding of the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcalc.errors import NotConverged
from dpcalc.numerics.floats import MAX, from_ordinal, ordinal

_MAX_EVALUATIONS = 300  # bisection of all doubles takes 64; false position may waste some


def least(function: Callable[[float], float], lower: float, upper: float, *, ulps: int = 1) -> float:
    """Return the least x in [lower, upper] with function(x) <= 0, for a non-increasing function.

    Raises:
        NotConverged: function(upper) > 0, or the function returned nan.
    """
    at_lower = function(lower)
    if at_lower <= 0.0:
        return lower
    at_upper = function(upper)
    if not at_upper <= 0.0:
        raise NotConverged(f"no solution between {lower:g} and {upper:g}")
    return _close(function, lower, at_lower, upper, at_upper, ulps)


def greatest(function: Callable[[float], float], lower: float, upper: float, *, ulps: int = 1) -> float:
    """Return the greatest x in [lower, upper] with function(x) <= 0, for a non-decreasing function.

    Raises:
        NotConverged: function(lower) > 0, or the function returned nan.
    """
    at_upper = function(upper)
    if at_upper <= 0.0:
        return upper
    at_lower = function(lower)
    if not at_lower <= 0.0:
        raise NotConverged(f"no solution between {lower:g} and {upper:g}")
    return _close(function, upper, at_upper, lower, at_lower, ulps)


def _close(
    function: Callable[[float], float], bad: float, at_bad: float, good: float, at_good: float, ulps: int
) -> float:
    """Shrink a bracket with function(bad) > 0 >= function(good); return its good end.

    Anderson-Bjorck false position; where three steps have not shrunk the bracket eightfold (counted in representable
    numbers, so that tiny roots are found as fast as large ones) it is halved in that count. Near the root, where false
    position creeps from one side, the step is pushed just past it, which closes the bracket from the other.
    """
    weight_bad, weight_good = at_bad, at_good
    bad_rank, good_rank = ordinal(bad), ordinal(good)
    target = abs(bad_rank - good_rank) >> 3
    for step in range(1, _MAX_EVALUATIONS):
        gap = abs(bad_rank - good_rank)
        if gap <= ulps:
            return good
        if step % 4 == 0 and gap > target:
            rank = (bad_rank + good_rank) >> 1
        else:
            # The secant's root, kept off the ends by a few representable numbers, or by half the final width.
            low, high = (bad_rank, good_rank) if bad_rank < good_rank else (good_rank, bad_rank)
            span = weight_bad - weight_good
            x = good + (bad - good) * (-weight_good / span) if 0.0 < span < math.inf else -1.0
            rank = ordinal(x) if 0.0 <= x < MAX else (low + high) >> 1
            margin = 1 + max(min(gap >> 6, 3), min(gap >> 2, ulps >> 1))
            rank = min(max(rank, low + margin), high - margin)
        if step % 4 == 0:
            target = gap >> 3
        x = from_ordinal(rank)
        value = function(x)
        if value > 0.0:
            weight_good *= _relax(value, at_bad)
            bad, bad_rank, at_bad, weight_bad = x, rank, value, value
        elif value <= 0.0:
            weight_bad *= _relax(value, at_good)
            good, good_rank, at_good, weight_good = x, rank, value, value
        else:
            break
    raise NotConverged(f"the search near {good:g} did not converge")


def _relax(value: float, previous: float) -> float:
    """Return the Anderson-Bjorck factor for the end of the bracket that did not move."""
    factor = 1.0 - value / previous if previous not in (0.0, math.inf, -math.inf) else 0.5
    return factor if factor > 0.0 else 0.5
