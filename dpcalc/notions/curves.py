"""Privacy profiles as functions of epsilon, for what transforms profiles: groups and tuning."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Protocol

from dpcalc.notions import gaussian
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


_LOWEST_POWER, _HIGHEST_POWER = -20, 40  # of two, between which the curve is asked; no loss beyond 2^40 is met
_SHORT = 1.0 - 2.0**-7  # a curve that does not fall over such a step has passed its least value
_SECTIONS = 40  # golden sections of an interval of two octaves: 0.618^40 leaves 2e-8 of it
_NOISE = 2e-5  # relative, of searches over chains: where a curve is flat, values so near to each other are one
_GOLDEN = 0.6180339887498949  # the golden ratio, less 1
_CELLS = tuple(2.0**place for place in range(-4, 4))  # a chord in e^epsilon that ends 8 later falls by e^-8 at most


def envelope(curve: Curve, mu: float = math.inf) -> Curve:
    """Return an upper bound on ln delta that does not grow with epsilon, from one that may.

    delta is convex in e^epsilon and does not grow: it lies below its chords, and is at most delta at any smaller
    epsilon. A search over chains ends where its last one stops paying, and grows from there on; what is proved before
    that point holds behind it. What is mu-GDP besides has delta_G as well, and a chord leads from the least proved
    point to that curve.

    Where the curve falls it is evaluated once more, a little before. Behind its least value it is asked at powers of
    two, and refined between those whose neighbours are above them; the least of what is proved up to there counts.

    Args:
        curve: epsilon >= 0 -> an upper bound on ln delta, for one pair of orders.
        mu: of which the mechanism is mu-GDP as well; inf for none.

    >>> rising = envelope(lambda e: -e if e < 8.0 else e - 16.0)
    >>> [round(rising(e), 6) for e in (4.0, 8.0, 12.0, 100.0)]
    [-4.0, -8.0, -8.0, -8.0]
    """
    known = functools.cache(lambda epsilon: min(0.0, curve(epsilon)))
    power = functools.cache(lambda place: known(math.ldexp(1.0, place)))

    @functools.cache
    def lowest_near(place: int) -> float:
        """Return where the curve is least between two powers of two around a third."""
        low, high = math.ldexp(1.0, place - 1), math.ldexp(1.0, place + 1)
        best = math.ldexp(1.0, place)
        first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        for _ in range(_SECTIONS):
            best = min(best, first, second, key=known)
            if known(first) <= known(second):
                high, second = second, first
                first = high - _GOLDEN * (high - low)
            else:
                low, first = first, second
                second = low + _GOLDEN * (high - low)
        return best

    @functools.cache
    def least_before(epsilon: float) -> tuple[float, float]:
        """Return the proved point with the least ln delta at smaller epsilons: ln delta, and its epsilon."""
        points = [0.0]
        for place in range(_LOWEST_POWER, min(_HIGHEST_POWER, math.frexp(epsilon)[1] + 1)):
            points.append(math.ldexp(1.0, place))
            if power(place) <= min(power(place - 1), power(place + 1)) and power(place) < power(place - 1):
                points.append(lowest_near(place))
        return min((known(point), point) for point in points if point <= epsilon)

    def of_gaussian(epsilon: float) -> float:
        return gaussian.log_delta(mu=mu, epsilon=epsilon)

    @functools.cache
    def bounded(epsilon: float) -> float:
        epsilon = min(epsilon, 1e300)  # beyond it there may be no next power of two
        value = known(epsilon)
        noise = -_NOISE * value
        if math.isfinite(value) and epsilon > 0.0 and not value < known(_SHORT * epsilon) - noise:
            least, where = least_before(epsilon)
            after, _ = least_before(math.ldexp(1.0, math.frexp(epsilon)[1]))
            value = least if least <= value + noise else max(value, after)
            if mu < math.inf:
                # The ends of the chords are the same for all epsilons of a cell, for no larger one to have a worse one.
                ends = (cell * (math.floor(epsilon / cell) + 1.0) for cell in _CELLS)
                value = min(value, *(chord(where, least, end, of_gaussian(end), epsilon) for end in ends))
        return min(value, of_gaussian(epsilon))

    return bounded
