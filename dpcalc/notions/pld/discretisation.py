"""The least discrete law of the privacy loss on chosen points that dominates a pair, by "connect the dots".

A piecewise linear H in g = e^z with its kinks at the points, and there equal to upper bounds on the convex H of the
pair, is above that H everywhere; it belongs to a law with masses on the points and on +inf (Doroshenko, Ghazi, Kamath,
Kumar and Manurangsi 2022). For points 0 = z_0 < z_1 < ... on either side of 0, with slopes

    S_i = (H(z_i) - H(z_{i+1}))/(e^{z_{i+1}} - e^{z_i}),   S_last = 0,

of the forward (S) and the backward profile (T), the masses under P are

    P(z_i) = e^{z_i} (S_{i-1} - S_i),   P(-z_i) = T_{i-1} - T_i,   P(0) = 1 - H(0) - S_0 - T_0,   P(inf) = H(z_last).

Rounding. If doubles S_i >= (exact slope) are non-increasing, the H they sum to is convex and above the bounds at every
point. So S and T are first rounded up and made monotone, and count as exact from there on. A mass computed from them is
a function of two doubles, good to some units of roundoff of its logarithm, and rounded up once more: more mass is more
delta. Differences of nearby logarithms lose no accuracy, however close the points. On the side of Q the
rounding of T enters H(1/g) as e (1 - g) >= g sum (rounded T_i - T_i)(e^{z_{i+1}} - e^{z_i}) with e = max (rounded T_i
- T_i): that much is added to P(0).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.numerics.arrays import Array, distinct, np
from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.logspace_arrays import log_difference

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpcalc.notions.pld.dominating_pair import LogProfile, Pair

    Chosen = NDArray[np.intp]

_ROUNDS = 60  # after so many the rest of a hull is walked


class DiscreteLoss(NamedTuple):
    """Increasing points, ln of the masses on them and ln of the mass at +inf, each rounded up.

    ``padding`` bounds, for each point, by how much rounding up has raised ln of the slopes and the mass there: H(g) is
    no more than that above the profile of exact masses. ``gaps`` are the widest gaps over which losses were split
    between a point and the one before, inf for the first if losses below the points were raised to it.
    """

    points: Array
    log_masses: Array
    log_infinity_mass: float
    padding: Array
    gaps: Array


class _Side(NamedTuple):
    points: Array
    gaps: Array
    log_slopes: Array
    padding: Array
    lift: float
    log_infinity_mass: float


def discretise(pair: Pair, above: Array, below: Array) -> DiscreteLoss:
    """Return the least dominating law on the points -below and above.

    Args:
        pair: the pair of laws.
        above, below: losses and negated losses, each increasing and starting with 0.
    """
    forward, backward = _profiles(pair, above, below)
    top = max(forward[0], backward[0])  # the total variation, the same in either order
    if pair.forward is pair.backward:
        top = min(top, _across(above, forward), _across(below, backward))
    forward, backward = np.minimum(forward, top), np.minimum(backward, top)
    forward[0] = backward[0] = top
    right, left = _side(above, forward), _side(below, backward)
    middle = 1.0 - np.exp(top) - np.exp(right.log_slopes[0]) - np.exp(left.log_slopes[0])
    centre = max(middle, 0.0) + 32.0 * UNIT + 2.0 * left.lift
    points = np.concatenate((-left.points[:0:-1], [0.0], right.points[1:]))
    upper = _log_masses(right) + right.points[1:]
    log_masses = np.concatenate((_log_masses(left)[::-1], [np.log(centre)], upper))
    roundoff = _roundoff(log_masses, points)
    padding = np.concatenate((left.padding[:0:-1], [64.0 * UNIT + 2.0 * left.lift], right.padding[1:])) + 2.0 * roundoff
    first = math.inf if left.log_infinity_mass > -math.inf else 0.0
    gaps = np.concatenate(([first], left.gaps[::-1], right.gaps))
    return DiscreteLoss(points, log_masses + roundoff, right.log_infinity_mass, padding, gaps)


def _across(points: Array, log_h: Array) -> float:
    """Return ln of an upper bound on H(0) from those at the points, where they hold for both orders.

    E_g(P||Q) is convex in g, and E_(1/g)(P||Q) = 1 - 1/g + E_g(Q||P)/g: the chord from 1/g to g is
    (2 H(ln g) + g - 1)/(g + 1) at 1.
    """
    z = points[1:]
    with np.errstate(under="ignore"):
        chord = 2.0 * np.exp(log_h[1:] - z) / (1.0 + np.exp(-z)) + np.tanh(0.5 * z)
    value = float(np.log(np.min(chord, initial=1.0)))
    return value + 64.0 * UNIT * (2.0 + abs(value))


def _profiles(pair: Pair, above: Array, below: Array) -> tuple[Array, Array]:
    if pair.forward is not pair.backward:
        return _values(pair.forward, above), _values(pair.backward, below)
    both = distinct(above, below)
    values = _values(pair.forward, both)
    return values[np.searchsorted(both, above)], values[np.searchsorted(both, below)]


def _values(curve: LogProfile, points: Array) -> Array:
    """Return the bounds at the points, made non-increasing: a bound also holds beyond its epsilon. nan counts as 1."""
    with np.errstate(all="ignore"):
        return np.minimum.accumulate(np.fmin(curve(points), 0.0))


def _side(points: Array, log_h: Array) -> _Side:
    gaps = np.diff(points)
    log_slopes = slopes_of(points, log_h)
    if np.any(log_slopes[1:] > log_slopes[:-1]):
        kept = hull(points, log_h)
        gaps = np.maximum.reduceat(gaps, kept[:-1])  # on a chord there is no loss between its points
        points, log_h = points[kept], log_h[kept]
        log_slopes = slopes_of(points, log_h)
    roundoff = _roundoff(log_slopes, points[1:], log_h[:-1])
    raised = np.maximum.accumulate((log_slopes + roundoff)[::-1])[::-1]
    lift = np.exp(log_difference(raised, log_slopes))
    with np.errstate(invalid="ignore"):
        padding = np.append(0.0, np.nan_to_num(raised - log_slopes, posinf=0.0) + roundoff)
    return _Side(points, gaps, raised, padding, float(lift.max(initial=0.0)), float(log_h[-1]))


def slopes_of(points: Array, log_h: Array) -> Array:
    """Return ln of the descent of H per unit of e^z between neighbouring points."""
    fall = log_difference(log_h[:-1], log_h[1:])
    return fall - points[1:] - np.log(-np.expm1(points[:-1] - points[1:]))


def _log_masses(side: _Side) -> Array:
    """Return ln(S_{i-1} - S_i), the slope beyond the last point being 0."""
    return log_difference(side.log_slopes, np.append(side.log_slopes[1:], -np.inf))


def _roundoff(value: Array, *operands: Array) -> Array:
    """Return a bound on the rounding of a sum of logarithms: operands and partial sums err by a few units each."""
    size = 4.0 + np.where(np.isfinite(value), np.abs(value), 0.0)
    for operand in operands:
        size += np.where(np.isfinite(operand), np.abs(operand), 0.0)
    return 16.0 * UNIT * size


def hull(points: Array, log_h: Array) -> Chosen:
    """Return the corners of the lower convex hull of H over e^z: the exact H, being convex, is below its chords.

    A point above the chord of its neighbours is no corner, whichever others are left out beside it. Where many rounds
    of leaving out do not end, what is left is walked through one by one.
    """
    kept = np.arange(len(points))
    for _ in range(_ROUNDS):
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = slopes_of(points[kept], log_h[kept])
        slopes[np.isnan(slopes)] = -math.inf  # of points that coincide
        above = slopes[1:] > slopes[:-1]
        if not above.any():
            return kept
        kept = kept[np.concatenate(([True], ~above, [True]))]
    corners: Chosen = kept[_walked_hull(points[kept], log_h[kept])]
    return corners


def _walked_hull(points: Array, log_h: Array) -> list[int]:
    """Return the corners of the lower convex hull, by Graham's walk."""
    z, h = points.tolist(), log_h.tolist()
    kept = [0]
    slopes: list[float] = []
    for i in range(1, len(z)):
        slope = _log_chord(z, h, kept[-1], i)
        while slopes and slope > slopes[-1]:
            slopes.pop()
            kept.pop()
            slope = _log_chord(z, h, kept[-1], i)
        kept.append(i)
        slopes.append(slope)
    return kept


def _log_chord(z: list[float], h: list[float], i: int, j: int) -> float:
    """Return the slope that `slopes_of` has for one pair of points; it only chooses corners."""
    if not h[i] > h[j]:
        return -math.inf
    if not z[i] < z[j]:
        return math.inf
    return h[i] + math.log(-math.expm1(h[j] - h[i])) - z[j] - math.log(-math.expm1(z[i] - z[j]))
