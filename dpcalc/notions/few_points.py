"""Attacks against a profile that takes a search for every point: it is evaluated at some dozens of epsilons.

The exact delta is convex in e^epsilon and non-increasing, so it lies below the chords through upper bounds at some
points, and beyond the last point below its value there. Points are denser where the questions need them.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Sequence

from dpcalc.notions.curves import Curve, chord
from dpcalc.notions.least_mu import Nodes, from_points, hull
from dpcalc.notions.trade_off import log_up, through

_DROP = 0.4  # of ln delta from one point to the next
_MOST = 120  # points: each of them is a search of its own
_FIRST_TOP, _LAST_TOP = 2.0**-5, 2.0**20  # where the search for the end of a profile starts and gives up
_NARROW = 1e-4  # the least relative distance of points: a curve may jump to delta = 0
_BELOW = 6.0  # the best line for a rate touches where ln delta is at most this far below ln rate
_VERTICES, _ENOUGH = 8, 1e-7  # the most rounds for a rate, and the change of ln rate that ends them
_MU_POINTS, _CLOSE = 16, 0.02  # points h mu apart give about (1 + h^2/8) mu


def nodes(curve: Curve, log_delta: float, fprs: Sequence[float] = (), priors: Sequence[float] = ()) -> Nodes:
    """Return a few points of a profile, for questions about attacks.

    Args:
        curve: epsilon >= 0 -> ln delta, costly to evaluate.
        log_delta: ln delta_0 of the mu that is reported.
        fprs: false-positive rates in the question.
        priors: prior probabilities in the question.

    >>> from dpcalc.notions import gaussian
    >>> exact = lambda e: gaussian.log_delta(mu=1.0, epsilon=e)
    >>> few = through_nodes(nodes(exact, math.log(1e-5), fprs=(0.01,)))
    >>> all(exact(e) <= few(e) <= exact(e) + 0.03 for e in (0.0, 0.1, 1.0, 3.0))
    True
    """
    points = _Points(curve)
    points.spread(min([log_delta, *(math.log(a) - _BELOW for a in fprs)]))
    for prior in priors:
        q = min(prior, 1.0 - prior)
        points.add(max(0.0, math.log((1.0 - q) / q) * (1.0 - 1e-9) - 1e-12))
    for fpr in fprs:
        points.touch(log_up(fpr))
    points.bend(log_delta)
    return points.nodes


def through_nodes(nodes: Nodes) -> Curve:
    """Return an upper bound on ln delta at every epsilon: chords in e^epsilon between points, rounded up."""
    return functools.partial(_between, nodes)


class _Points:
    """Points of a profile."""

    def __init__(self, curve: Curve) -> None:
        self._curve = curve
        self._known: dict[float, float] = {}
        self.add(0.0)

    @property
    def nodes(self) -> Nodes:
        """The points, with epsilon increasing and ln delta non-increasing."""
        points, least = [], 0.0
        for epsilon, log_delta in sorted(self._known.items()):
            least = min(least, log_delta)
            points.append((epsilon, least))
        return points

    def add(self, epsilon: float) -> float:
        """Return ln delta at a point, and keep it."""
        if epsilon not in self._known:
            self._known[epsilon] = min(0.0, self._curve(epsilon))
        return self._known[epsilon]

    def spread(self, ends: float) -> None:
        """Add points down to a ln delta of about ``ends``, denser where it falls faster."""
        top = _FIRST_TOP
        while self.add(top) > ends and top < _LAST_TOP:
            top *= 2.0
        while len(self._known) < _MOST:
            nodes = self.nodes
            gaps = [
                (high - max(low, ends - 2.0 * _DROP), left, right)
                for (left, high), (right, low) in itertools.pairwise(nodes)
                if high > ends and right - left > _NARROW * right
            ]
            drop, left, right = max(gaps, default=(0.0, 0.0, 0.0))
            if drop <= _DROP:
                break
            self.add(0.5 * (left + right))

    def touch(self, log_fpr: float) -> None:
        """Add points where the line that best bounds the true-positive rate touches the profile."""

        def told(node: tuple[float, float]) -> float:
            return through((node,))(log_fpr)

        before = 0.0
        for _ in range(_VERTICES):
            nodes = self.nodes
            place = min(range(len(nodes)), key=lambda k: told(nodes[k]))
            reached = told(nodes[place])
            if not 0 < place < len(nodes) - 1 or 0.0 < before - reached < _ENOUGH:
                break
            before = reached
            self.add(_lowest([(node[0], told(node)) for node in nodes[place - 1 : place + 2]]))

    def bend(self, log_delta: float) -> None:
        """Add points between those whose lines meet where mu is largest, up to this ln delta."""
        for _ in range(_MU_POINTS):
            nodes = self.nodes
            last = next((k for k, node in enumerate(nodes) if node[1] <= log_delta), len(nodes) - 1)
            kept = hull(nodes[: last + 1])
            corners = (_mu_between(*pair) for pair in itertools.pairwise(kept))
            mu, place = max(((mu, k) for k, mu in enumerate(corners)), default=(0.0, 0))
            if len(kept) < 2 or not math.isfinite(mu) or kept[place + 1][0] - kept[place][0] <= _CLOSE * mu:
                break
            middle = 0.5 * (kept[place][0] + kept[place + 1][0])
            if middle in self._known:
                break
            self.add(middle)


@functools.lru_cache(maxsize=1024)
def _mu_between(left: tuple[float, float], right: tuple[float, float]) -> float:
    return from_points([left, right])[0]


def _lowest(points: Sequence[tuple[float, float]]) -> float:
    """Return the minimum of the parabola through three points, of which the middle one is lowest."""
    (a, high), (b, low), (c, other) = points
    falling, rising = (low - high) / (b - a), (other - low) / (c - b)
    bend = (rising - falling) / (c - a)
    return b if not 0.0 < bend < math.inf else min(max(b - 0.5 * (falling + bend * (b - a)) / bend, a), c)


def _between(nodes: Nodes, epsilon: float) -> float:
    """Return ln delta between two points, rounded up."""
    place = bisect.bisect_right(nodes, epsilon, key=_epsilon) - 1
    return nodes[-1][1] if place == len(nodes) - 1 else chord(*nodes[place], *nodes[place + 1], epsilon)


def _epsilon(node: tuple[float, float]) -> float:
    return node[0]
