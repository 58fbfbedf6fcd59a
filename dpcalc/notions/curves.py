"""Privacy profiles as functions of epsilon, for what transforms profiles: groups and tuning."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Protocol

from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.logspace import log_add_exp

Curve = Callable[[float], float]
"""Epsilon >= 0 -> an upper bound on ln delta."""


class CurveWithFloor(Protocol):
    """A curve, and a ln delta below which it need not be close: what is costly to tell of rare losses is spared."""

    def __call__(self, epsilon: float, floor: float = -math.inf, /) -> float:
        """Return an upper bound on ln delta."""
        ...


_PER_DOUBLING = 48  # points of a curve that is costly to evaluate
_LEAST = -24  # the least of them is 2^-24


def sparse(curve: Curve) -> Curve:
    """Return an upper bound on a costly curve that evaluates it at few points, with chords in e^epsilon between them.

    The exact delta is convex in e^epsilon, and lies below the chord through upper bounds.

    >>> from dpcalc.notions import gaussian
    >>> exact = lambda e: gaussian.log_delta(mu=1.0, epsilon=e)
    >>> all(exact(e) <= sparse(exact)(e) <= exact(e) + 0.01 for e in (0.0, 0.1, 1.0, 3.0))
    True
    """
    known = functools.cache(lambda place: curve(2.0 ** (place / _PER_DOUBLING)))
    at_zero = functools.cache(lambda: curve(0.0))

    def between(epsilon: float) -> float:
        if epsilon < 2.0**_LEAST:
            return at_zero()
        place = math.floor(math.log2(epsilon) * _PER_DOUBLING - 1e-9)
        left, right = 2.0 ** (place / _PER_DOUBLING), 2.0 ** ((place + 1) / _PER_DOUBLING)
        return chord(left, known(place), right, known(place + 1), epsilon)

    return between


def chord(left: float, high: float, right: float, low: float, epsilon: float) -> float:
    """Return ln of the chord in e^epsilon through ln delta at ``left`` and ``right``, between the two; rounded up."""
    if not low < high or not left <= epsilon <= right:
        return high
    # (e^e - e^left)/(e^right - e^left), rounded down, since the curve falls
    share = math.exp(epsilon - right) * math.expm1(left - epsilon) / math.expm1(left - right)
    share = min(1.0, max(0.0, share * (1.0 - 64.0 * UNIT) - 1e-300))
    value = high + math.log1p(-share) if share < 1.0 else -math.inf
    value = log_add_exp(value, low + math.log(share)) if share > 0.0 and low > -math.inf else value
    value = max(value, low)
    return min(0.0, high, value + UNIT * (16.0 + 8.0 * abs(value))) if value > -math.inf else value
