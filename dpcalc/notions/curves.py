"""Privacy profiles as functions of epsilon, and their chords."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from dpcalc.numerics.floats import UNIT, log_add_exp

Curve = Callable[[float], float]
"""Epsilon >= 0 -> an upper bound on ln delta."""


class CurveWithFloor(Protocol):
    """A curve with an optional ln delta below which it need not be tight, which saves the time for rare losses."""

    def __call__(self, epsilon: float, floor: float = -math.inf, /) -> float:
        """Return an upper bound on ln delta."""
        ...


def chord(left: float, high: float, right: float, low: float, epsilon: float) -> float:
    """Return ln of the chord of delta in e^epsilon between ``left`` and ``right``; rounded up."""
    if not low < high or not left <= epsilon <= right:
        return high
    # (e^e - e^left)/(e^right - e^left), rounded down, since the curve falls
    share = math.exp(epsilon - right) * math.expm1(left - epsilon) / math.expm1(left - right)
    share = min(1.0, max(0.0, share * (1.0 - 64.0 * UNIT) - 1e-300))
    value = high + math.log1p(-share) if share < 1.0 else -math.inf
    value = log_add_exp(value, low + math.log(share)) if share > 0.0 and low > -math.inf else value
    value = max(value, low)
    return min(0.0, high, value + UNIT * (16.0 + 8.0 * abs(value))) if value > -math.inf else value
