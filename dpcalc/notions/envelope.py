"""The non-increasing curve below proved points of a privacy profile whose evaluations may grow with epsilon.

delta is convex in e^epsilon and does not grow: it lies below its chords, and is at most delta at any smaller epsilon. A
search over chains ends where its last one stops paying, and grows from there on; what is proved before that point holds
behind it. What is mu-GDP besides has delta_G as well, and a chord leads from the least proved point to that curve.
"""

from __future__ import annotations

import functools
import math

from dpcalc.notions import gaussian
from dpcalc.notions.curves import Curve, chord

_LEAST, _FARTHEST = -20, 40  # powers of two between which the curve is asked; sums of losses beyond 2^40 are not met
_SHORT = 1.0 - 2.0**-7  # a curve that does not fall over such a step has passed its least value
_SECTIONS = 40  # golden sections of an interval of two octaves: 0.618^40 leaves 2e-8 of it
_NOISE = 2e-5  # relative, of searches over chains: where a curve is flat, values so near to each other are one
_GOLDEN = 0.6180339887498949
_CELLS = tuple(2.0**place for place in range(-4, 4))  # a chord in e^epsilon that ends 8 later falls by e^-8 at most


def envelope(curve: Curve, mu: float = math.inf) -> Curve:
    """Return an upper bound on ln delta that does not grow with epsilon, from one that may.

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
        for place in range(_LEAST, min(_FARTHEST, math.frexp(epsilon)[1] + 1)):
            points.append(math.ldexp(1.0, place))
            if power(place) <= min(power(place - 1), power(place + 1)) and power(place) < power(place - 1):
                points.append(lowest_near(place))
        return min((known(point), point) for point in points if point <= epsilon)

    def of_gaussian(epsilon: float) -> float:
        return gaussian.log_delta(mu=mu, epsilon=epsilon)

    @functools.cache
    def bounded(epsilon: float) -> float:
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
