"""The least mu for which a guarantee is mu-GDP, and what is lost by reporting only mu.

mu-GDP has to hold at every epsilon, and most guarantees have a tail that no mu covers: one (epsilon, delta) may reveal
a secret with probability delta, and sampled steps have the tail of steps without sampling. Then a pair holds:

    delta(epsilon) <= max(delta_G(epsilon; mu), delta_0)    for all epsilon >= 0,

so at every false-positive rate a the true-positive rate is at most Q(z(a) - mu) + delta_0. The mu of a central limit
theorem is not a guarantee and is not computed here.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from dpcalc.notions import gaussian
from dpcalc.notions.curves import Curve, CurveWithFloor
from dpcalc.numerics.floats import UNIT, down, exp_down, exp_up, log_exp1p, log_expm1, log_one_minus_exp, up
from dpcalc.numerics.normal import quantile
from dpcalc.numerics.roots import least

_FIRST_CELLS = 48  # some six a decade, before those with the largest mu are halved
_MOST_NODES = 3000  # the most evaluations of the curve
_ROUNDS = 30  # each halves the cells: enough to reach `_CLOSE`
_CLOSE = 0.012  # the relative width (over mu) of a cell that is no longer halved
_NEAR = 0.02  # corners within this of the largest mu, relatively, are halved
_FARTHEST = 600.0  # the largest epsilon of a polygon, and -ln of the least delta

Nodes = list[tuple[float, float]]
"""(epsilon, an upper bound on ln delta there), epsilon increasing from 0."""


class LeastMu(NamedTuple):
    """mu and ln delta_0 of the pair; delta_0 = 0 if the guarantee is mu-GDP.

    ``regret`` is the largest amount by which mu overstates an attacker's success probability, over all priors; it is
    rounded up, and allows for the excess of chords over a profile that is known at points.
    """

    mu: float
    log_delta: float
    regret: float


def of_curve(curve: CurveWithFloor, log_delta: float, nodes: Sequence[tuple[float, float]] = ()) -> LeastMu:
    """Return the pair of a profile with about this ln delta_0; from the nodes alone if there are any.

    Args:
        curve: epsilon >= 0 -> an upper bound on ln delta.
        log_delta: ln of delta_0, from -600 to 0; the pair has at most this.
        nodes: points between which the profile follows chords, if it does.
    """
    top = _window(curve, max(-_FARTHEST, log_delta))
    mu = of_nodes(nodes, top, curve(top)) if nodes else _least_mu_up_to(curve, top)
    return LeastMu(mu, curve(top), regret(_below(curve, nodes), mu, top))


def with_regret(
    curve: CurveWithFloor, mu: float, log_delta: float, nodes: Sequence[tuple[float, float]] = ()
) -> LeastMu:
    """Return a mu that holds at every epsilon, with its regret."""
    return LeastMu(mu, -math.inf, regret(_below(curve, nodes), mu, _window(curve, max(-_FARTHEST, log_delta))))


def _below(curve: Curve, nodes: Sequence[tuple[float, float]]) -> Curve:
    """Return the curve, or for a profile with nodes a curve below the profile, since chords are above it.

    A profile that is convex in e^epsilon lies above the line through two points, outside them. The higher of two such
    lines counts, or the value at the next point if that is higher still.
    """
    if len(nodes) < 2:
        return curve
    places = [epsilon for epsilon, _ in nodes]
    deltas = [exp_down(log_delta) for _, log_delta in nodes]

    def through(place: int, other: int, ratio: float) -> float:
        """Return delta on the line through two points, ``ratio`` times their distance from the first, rounded down."""
        value = deltas[place] + (deltas[place] - deltas[other]) * ratio
        return down(value - 32.0 * UNIT * deltas[0] * (1.0 + ratio), 4.0)

    def below(epsilon: float) -> float:
        right = bisect.bisect_left(places, epsilon)
        if right == len(places):
            return -math.inf
        value = deltas[right]
        if right < len(places) - 1:
            ratio = -math.expm1(epsilon - places[right]) * math.exp(-log_expm1(places[right + 1] - places[right]))
            value = max(value, through(right, right + 1, ratio))
        if right > 1 and epsilon - places[right - 1] < 700.0:
            ratio = math.expm1(epsilon - places[right - 1]) / -math.expm1(places[right - 2] - places[right - 1])
            value = max(value, through(right - 1, right - 2, ratio))
        return math.log(value) if value > 0.0 else -math.inf

    return below


def of_box(curve: Curve, epsilon: float, log_delta: float) -> LeastMu:
    """Return the pair of one point: z(a) - z(t) at the corner a = 1 - t = (1 - delta)/(1 + e^epsilon).

    ``curve`` is the profile of randomised response through the point.
    """
    top = up(epsilon)
    log_corner = log_one_minus_exp(log_delta) - log_exp1p(top)
    log_corner -= UNIT * (16.0 + 8.0 * (top + abs(log_corner)))
    mu = max(0.0, up(2.0 * quantile(log_corner, upwards=True), 2.0))
    return LeastMu(mu, log_delta, regret(curve, mu, top))


def _window(curve: CurveWithFloor, log_delta: float) -> float:
    """Return an epsilon at which ln delta is at most this; the farthest one if there is none before."""
    top = 0.0625
    while curve(top, log_delta - 6.0) > log_delta:  # from below, since points far out are costly
        top *= 2.0
        if top > _FARTHEST:
            return _FARTHEST
    return least(lambda e: max(-100.0, min(100.0, curve(e, log_delta - 6.0) - log_delta)), 0.0, top, ulps=1 << 28)


def from_points(nodes: Nodes) -> list[float]:
    """Return, for every two neighbouring points of a profile, a mu whose delta_G is above it between them.

    Between them delta is at most t - e^epsilon a, the chord, where (a, t) is the corner in which their lines delta_i +
    e^epsilon_i a meet. So it is enough that (a, t) lies below the trade-off of mu-GDP, z(a) - z(t) <= mu. It is also
    enough that delta_G + e^epsilon a is least at an end of the cell, and delta_G >= delta there: its derivative in
    e^epsilon is a - Q(epsilon/mu + mu/2).

    Args:
        nodes: points of the lower convex hull in e^epsilon (`hull`).
    """
    return [_least_between(left, right) for left, right in itertools.pairwise(nodes)]


def _least_between(left: tuple[float, float], right: tuple[float, float]) -> float:
    """Return a mu whose delta_G is above the chord of two points, rounded up."""
    corner, z_low, z_high = _corner(*left, *right)
    for end, falls in ((right, True), (left, False)):
        if not 0.0 < corner < math.inf or falls != (end[0] / corner + 0.5 * corner < z_low):
            continue
        mu = matching(*end)
        at_end = end[0] / mu + 0.5 * mu
        error = 8.0 * UNIT * at_end
        if (at_end + error <= z_low) if falls else (at_end - error >= z_high):
            return min(corner, mu)
    return corner


def matching(epsilon: float, log_delta: float) -> float:
    """Return mu with delta_G(epsilon; mu) = delta, rounded up; 0 < delta < 1.

    >>> round(matching(1.0, math.log(1e-5)), 12)
    0.268051123211
    """
    start = gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta)

    def short(mu: float) -> float:
        return log_delta - gaussian.log_delta_down(mu=mu, epsilon=epsilon)

    step = 1e-12
    while short(start * (1.0 + step)) > 0.0 and step < 1e12:
        step *= 16.0
    return least(short, start, start * (1.0 + step)) if short(start) > 0.0 else start


def _corner(epsilon: float, log_delta: float, next_epsilon: float, next_log_delta: float) -> tuple[float, float, float]:
    """Return z(a) - z(t) where the lines of two points meet, rounded up, and z(a) rounded down and up.

    inf if t is too near to 1, 0 if delta does not fall.
    """
    fall, error = _fall(log_delta, next_log_delta)
    if fall <= 0.0:
        return 0.0, math.inf, math.inf
    width = next_epsilon - epsilon
    log_fpr = math.log(fall) - epsilon - log_expm1(width)
    error += UNIT * (32.0 + 4.0 * abs(log_fpr) + 8.0 * next_epsilon * (1.0 + 1.0 / width))
    z_low, z_high = quantile(log_fpr + error, upwards=False), quantile(log_fpr - error, upwards=True)
    rise = math.exp(min(0.0, epsilon + log_fpr + error))
    if log_delta < -1.0 and rise < 0.25:
        tpr = up(math.exp(log_delta) * (1.0 + UNIT * (8.0 + 2.0 * abs(log_delta))) + rise, 4.0)
        return max(0.0, up(z_high - quantile(math.log(tpr) * (1.0 - 8.0 * UNIT), upwards=False), 2.0)), z_low, z_high
    missed = -math.expm1(log_delta) * (1.0 - 8.0 * UNIT) - up(rise, 4.0)
    if missed <= 1e-300:
        return math.inf, z_low, z_high
    z_missed = quantile(math.log(missed) - UNIT * (8.0 - math.log(missed)), upwards=True)
    return max(0.0, up(z_high + z_missed, 2.0)), z_low, z_high


def _fall(log_delta: float, next_log_delta: float) -> tuple[float, float]:
    """Return the fall of delta between two points, and a bound on its relative error."""
    if log_delta > -0.5:  # both 1 - delta to full precision
        high, low = -math.expm1(next_log_delta), -math.expm1(log_delta)
    else:
        high, low = math.exp(log_delta), math.exp(next_log_delta)
    fall = high - low
    size = 8.0 + 2.0 * abs(log_delta) + 2.0 * min(700.0, abs(next_log_delta))
    return fall, UNIT * size * (high + low) / fall if fall > 0.0 else 0.0


def hull(nodes: Nodes) -> Nodes:
    """Return the lower convex hull of delta over e^epsilon: the points whose lines are lowest somewhere."""
    kept: Nodes = []
    for node in nodes:
        while len(kept) > 1 and not _log_fpr(kept[-2], kept[-1]) > _log_fpr(kept[-1], node):
            kept.pop()
        kept.append(node)
    return kept


def _log_fpr(left: tuple[float, float], right: tuple[float, float]) -> float:
    """Return ln of the false-positive rate where the lines of two points meet; -inf if delta does not fall."""
    fall = _fall(left[1], right[1])[0]
    return math.log(fall) - left[0] - log_expm1(right[0] - left[0]) if fall > 0.0 else -math.inf


def of_nodes(nodes: Sequence[tuple[float, float]], top: float, log_delta: float) -> float:
    """Return a mu whose delta_G is at least the chords on [0, top] between the points and (top, ln delta)."""
    kept = hull([*(node for node in nodes if node[0] < top), (top, log_delta)])
    return max(from_points(kept), default=0.0)


def _least_mu_up_to(curve: Curve, top: float) -> float:
    """Return a mu whose delta_G is at least the curve on [0, top]: the corners with the largest mu are refined."""
    if top == 0.0:
        return 0.0
    start = min(top, 1e-3) * 1e-3
    known = {0.0: curve(0.0)}
    for k in range(_FIRST_CELLS + 1):
        known.setdefault(e := start * (top / start) ** (k / _FIRST_CELLS), curve(e))
    best = math.inf
    between = functools.cache(_least_between)  # most cells are the same as in the round before
    for _ in range(_ROUNDS):
        nodes = hull(sorted(known.items()))
        corners = [between(left, right) for left, right in itertools.pairwise(nodes)]
        largest, worst = max(((corner, place) for place, corner in enumerate(corners)), default=(0.0, 0))
        best = min(best, largest)
        # A corner between lines of mu-GDP at a distance h needs about mu (1 + (h/mu)^2/8).
        fine = len(nodes) < 2 or nodes[worst + 1][0] - nodes[worst][0] <= _CLOSE * largest
        if fine or not math.isfinite(largest) or len(known) > _MOST_NODES:
            break
        for place, corner in enumerate(corners):
            left, right = nodes[place][0], nodes[place + 1][0]
            if corner > (1.0 - _NEAR) * largest and right - left > _CLOSE * largest:
                middle = 0.5 * (left + right)
                known.setdefault(middle, curve(middle))
    return best


def regret(curve: Curve, mu: float, top: float) -> float:
    """Return the largest (delta_G(e; mu) - delta(e))/(1 + e^e) over e >= 0, delta the guarantee's, rounded up.

    Both fall in e, so on a cell the difference is at most delta_G at its start minus delta at its end; the cells with
    the largest bound are halved. Beyond ``top`` delta_G itself is the bound.
    """

    profile = functools.partial(gaussian.log_delta, mu=mu)

    @functools.cache
    def gaussian_delta(epsilon: float) -> float:
        return exp_up(profile(epsilon=epsilon))

    def bound(low: float, high: float) -> float:
        gap = gaussian_delta(low) - exp_down(curve(high))
        return max(0.0, up(gap, 4.0)) * math.exp(-log_exp1p(low)) * (1.0 + UNIT * (8.0 + 2.0 * low))

    def at(epsilon: float) -> float:
        return (gaussian_delta(epsilon) - exp_down(curve(epsilon))) * math.exp(-log_exp1p(epsilon))

    tail = gaussian_delta(top) * math.exp(-log_exp1p(top))
    cells = [(-bound(0.0, top), 0.0, top)]
    reached = max(0.0, at(0.0), at(top))
    for _ in range(_MOST_NODES):
        worst, low, high = cells[0]
        if -worst <= reached * (1.0 + 1e-4) + 1e-12 or not low < (middle := 0.5 * (low + high)) < high:
            break
        heapq.heapreplace(cells, (-bound(low, middle), low, middle))
        heapq.heappush(cells, (-bound(middle, high), middle, high))
        reached = max(reached, at(middle))
    return min(1.0, up(max(-cells[0][0], tail), 4.0))
