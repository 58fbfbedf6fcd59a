"""Dominating pairs, and the least discrete law of the privacy loss on given points that dominates a pair.

"Connect the dots" (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022): take an H that is piecewise linear in g = e^z
with kinks at the points, where it equals upper bounds on the convex H of the pair. It is above that H everywhere, and
belongs to a law with masses on the points and on +inf. For points 0 = z_0 < z_1 < ... on either side of 0, with slopes

    S_i = (H(z_i) - H(z_{i+1}))/(e^{z_{i+1}} - e^{z_i}),   S_last = 0,

of the forward (S) and the backward profile (T), the masses under P are

    P(z_i) = e^{z_i} (S_{i-1} - S_i),   P(-z_i) = T_{i-1} - T_i,   P(0) = 1 - H(0) - S_0 - T_0,   P(inf) = H(z_last).

Rounding. If doubles S_i >= (exact slope) are non-increasing, the H they sum to is convex and above the bounds at every
point. So S and T are first rounded up and made monotone; after that they count as exact. A mass computed from them is a
function of two doubles, accurate to some units of roundoff of its logarithm, and rounded up again: more mass means more
delta. Differences of nearby logarithms lose no accuracy, however close the points. On the side of Q the rounding of T
enters H(1/g) as e (1 - g) >= g sum (rounded T_i - T_i)(e^{z_{i+1}} - e^{z_i}) with e = max (rounded T_i - T_i): this
amount is added to P(0).

A pair of laws (P, Q) is described by upper bounds on its two privacy profiles. With H(g) = sup_S P(S) - g Q(S), the
forward profile is delta(e) = H(e^e) for e >= 0, and the backward profile is the same for (Q, P). Together they
determine the law of the privacy loss, since H(g) = 1 - g + g H_backward(1/g) for g < 1. A pair whose profiles are above
another's dominates it in every composition (Zhu, Dong and Wang 2022, Theorem 10).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.notions.gaussian import together
from dpcalc.numerics.floats import UNIT, Array, distinct, np
from dpcalc.numerics.normal_arrays import log_difference, log_hockey_stick_up, log_one_minus_exp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Chosen = NDArray[np.intp]


_ROUNDS = 6  # then the hull is walked: an outlying point needs one round for every point before it


class DiscreteLoss(NamedTuple):
    """Increasing points, ln of the masses on them and ln of the mass at +inf, each rounded up.

    ``padding`` bounds, for each point, how much rounding up has raised ln of the slopes and of the mass there: ln H(g)
    is at most that much above the profile of exact masses. ``gaps`` are the widest gaps over which losses were split
    between a point and the one before; inf for the first point if losses below it were raised to it.
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
    """Return ln of an upper bound on H(0) from bounds at the points that hold for both orders.

    E_g(P||Q) is convex in g, and E_(1/g)(P||Q) = 1 - 1/g + E_g(Q||P)/g: the chord from 1/g to g has the value
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
    """Return the bounds at the points, made non-increasing: a bound holds for larger epsilons too. nan counts as 1."""
    with np.errstate(all="ignore"):
        return np.minimum.accumulate(np.fmin(curve(points), 0.0))


def _side(points: Array, log_h: Array) -> _Side:
    gaps = np.diff(points)
    log_slopes = slopes_of(points, log_h)
    if np.any(log_slopes[1:] > log_slopes[:-1]):
        kept = hull(points, log_h)
        gaps = np.maximum.reduceat(gaps, kept[:-1])  # within a chord there is no loss
        points, log_h = points[kept], log_h[kept]
        log_slopes = slopes_of(points, log_h)
    roundoff = _roundoff(log_slopes, points[1:], log_h[:-1])
    raised = np.maximum.accumulate((log_slopes + roundoff)[::-1])[::-1]
    lift = np.exp(log_difference(raised, log_slopes))
    with np.errstate(invalid="ignore"):
        padding = np.append(0.0, np.nan_to_num(raised - log_slopes, posinf=0.0) + roundoff)
    return _Side(points, gaps, raised, padding, float(lift.max(initial=0.0)), float(log_h[-1]))


def slopes_of(points: Array, log_h: Array) -> Array:
    """Return ln of the decrease of H per unit of e^z between neighbouring points."""
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
    """Return the corners of the lower convex hull of H over e^z: the exact H is convex, so it is below its chords.

    A point above the chord of its neighbours is no corner, whatever else is dropped. If points still remain to be
    dropped after several rounds, Graham's walk finishes. The first corner after the first point is the one with the
    steepest chord: if H(0) was lowered (`_across`), many points lie above that chord.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        chords = log_difference(log_h[:1], log_h[1:]) - points[1:] - np.log(-np.expm1(points[0] - points[1:]))
    chords[np.isnan(chords)] = -math.inf  # for coinciding points
    kept = np.append(0, np.arange(1 + np.argmax(chords), len(points)))
    for _ in range(_ROUNDS):
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = slopes_of(points[kept], log_h[kept])
        slopes[np.isnan(slopes)] = -math.inf
        above = slopes[1:] > slopes[:-1]
        if not above.any():
            return kept
        kept = kept[np.concatenate(([True], ~above, [True]))]
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = slopes_of(points[kept], log_h[kept])
    bad = np.flatnonzero(~(slopes[1:] <= slopes[:-1]))
    if len(bad) == 0:
        return kept
    corners: Chosen = kept[_walked_hull(points[kept], log_h[kept], slopes[: bad[0]].tolist(), int(bad[-1]))]
    return corners


def _walked_hull(points: Array, log_h: Array, falling: Sequence[float] = (), last: int = sys.maxsize) -> list[int]:
    """Return the corners of the lower convex hull, by Graham's walk.

    ``falling`` are the slopes of the first chords, which decrease; the slopes from ``last`` + 2 on also decrease.
    """
    z, h, slopes = points.tolist(), log_h.tolist(), list(falling)
    kept = list(range(len(slopes) + 1))
    for i in range(len(kept), len(z)):
        slope = _log_chord(z, h, kept[-1], i)
        if i > last + 2 and kept[-1] == i - 1 and slope <= slopes[-1]:
            return kept + list(range(i, len(z)))
        while slopes and slope > slopes[-1]:
            slopes.pop()
            kept.pop()
            slope = _log_chord(z, h, kept[-1], i)
        kept.append(i)
        slopes.append(slope)
    return kept


def _log_chord(z: list[float], h: list[float], i: int, j: int) -> float:
    """Return the slope of `slopes_of` for one pair of points; it is used only to choose corners."""
    if not h[i] > h[j]:
        return -math.inf
    if not z[i] < z[j]:
        return math.inf
    return h[i] + math.log(-math.expm1(h[j] - h[i])) - z[j] - math.log(-math.expm1(z[i] - z[j]))


LogProfile = Callable[["Array"], "Array"]


class Pair(NamedTuple):
    """Upper bounds on ln delta in either order, as functions of an array of epsilons in [0, 2^60]."""

    forward: LogProfile
    backward: LogProfile
    atom: float | None = None
    """The largest finite loss, if it and its negative have mass: the lattice then contains both."""
    discrete: bool = False
    """Whether -atom, 0 and atom are the only finite losses."""
    mu: float | None = None
    """The parameter of a Gaussian pair, which composes in closed form."""
    whole_mu: float = math.inf
    """A mu whose Gaussian pair dominates this one, if known; for a mixture, that of its farthest laws."""
    largest_mu: float = math.inf
    """The same for groups of any size: a step uses a limited number of records, all of which may be of the group."""


def from_curve(log_delta: LogProfile, backward: LogProfile | None = None) -> Pair:
    """Return the pair of laws that a privacy profile describes.

    Args:
        log_delta: array of epsilons in [0, 2^60] -> array of upper bounds on ln delta, in [-inf, 0]. They must bound a
            profile of (P, Q) that is non-increasing and convex in e^epsilon; the values themselves need be neither. The
            minimum of several valid curves is valid.
        backward: the same for (Q, P). Without it ``log_delta`` must hold for both orders. With it a composition is
            bounded in the order (P, Q) alone: swap the two for the other order.

    Raises:
        SpecError: a curve that is above 1, nan, or not an array of the shape it is given.
    """
    for curve in (log_delta, backward or log_delta):
        probe = np.array([0.0, 0.5, 1.0, 2.0**60])
        with np.errstate(all="ignore"):
            values = curve(probe)
        if np.shape(values) != probe.shape or not np.all(np.asarray(values) <= 0.0):
            raise SpecError(
                "a privacy profile must map epsilons to values of ln delta, none above 0",
                "return an array of the shape given, -inf where delta is 0",
            )
    return Pair(log_delta, backward or log_delta)


def gaussian(*, mu: float) -> Pair:
    """Return the pair N(mu, 1), N(0, 1) of mu-GDP: sensitivity over standard deviation (Dong, Roth and Su 2022).

    Args:
        mu: from 1e-30 to 1e8.

    Raises:
        SpecError: mu out of range.
    """
    _check("mu", mu, 1e-30, 1e8)
    return gaussian_sum([(mu, 1)])


def gaussian_sum(parts: Sequence[tuple[float, int]]) -> Pair:
    """Return the composition of Gaussian pairs, [(mu, count), ...]: their mu^2 add up. No range is checked."""
    total = together(parts)

    def curve(e: Array) -> Array:
        return log_hockey_stick_up(e, total)

    return Pair(curve, curve, mu=total, whole_mu=total)


def laplace(*, ratio: float) -> Pair:
    """Return the pair of Laplace laws at distance ratio = sensitivity/scale: delta(e) = 1 - exp((e - ratio)/2).

    Args:
        ratio: from 1e-30 to 1e15.

    Raises:
        SpecError: ratio out of range.
    """
    _check("ratio", ratio, 1e-30, 1e15)

    def curve(e: Array) -> Array:
        return _padded(log_one_minus_exp(0.5 * np.minimum(e - ratio, 0.0)))

    return Pair(curve, curve, atom=ratio)


def randomised_response(*, epsilon: float, log_delta: float = -math.inf) -> Pair:
    """Return the worst pair of any (epsilon, delta)-DP mechanism (Kairouz, Oh and Viswanath 2015).

    Its trade-off function has the four segments max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)).

    Args:
        epsilon: from 1e-30 to 1e15.
        log_delta: ln delta < 0; -inf for pure DP.

    Raises:
        SpecError: epsilon or log_delta out of range.
    """
    _check("epsilon", epsilon, 1e-30, 1e15)
    if not log_delta < 0.0:
        raise SpecError(f"ln delta must be below 0, got {log_delta!r}", "give ln delta = -inf for pure DP")
    log_rest = float(log_one_minus_exp(np.array([log_delta]))[0]) - math.log1p(math.exp(-epsilon))

    def curve(e: Array) -> Array:
        log_pure = log_one_minus_exp(np.minimum(e - epsilon, 0.0))
        return _padded(np.logaddexp(log_delta, log_rest + log_pure))

    return Pair(curve, curve, atom=epsilon, discrete=True)


def subsampled_gaussian(*, mu: float, rate: float) -> Pair:
    """Return C_p(G_mu): the Gaussian on a uniform sample without replacement, one record replaced.

    delta(e) = p delta_mu(ln(1 + (e^e - 1)/p)) for p = rate and either order: the trade-off function is
    min(f, f^-1)** with f = p G_mu + (1 - p) Id (Dong, Roth and Su 2022, Theorem 9).

    Args:
        mu: sensitivity to replacement over standard deviation, from 1e-30 to 1e8.
        rate: sample size over number of records, from 1e-15 to 1.

    Raises:
        SpecError: mu or rate out of range.
    """
    _check("mu", mu, 1e-30, 1e8)
    _check("rate", rate, 1e-15, 1.0)
    if rate == 1.0:
        return gaussian(mu=mu)

    def curve(e: Array) -> Array:
        # The threshold is rounded down: a smaller one gives a larger delta.
        threshold = _log_threshold(e, rate) * (1.0 - 16.0 * UNIT)
        return _padded(math.log(rate) + log_hockey_stick_up(threshold, mu))

    return Pair(curve, curve, whole_mu=mu)


def _log_threshold(e: Array, rate: float) -> Array:
    """Return ln(1 + (e^e - 1)/rate), accurate to some units of roundoff."""
    near = np.log1p(np.expm1(np.minimum(e, 1.0)) / rate)
    far = e - math.log(rate) + np.log1p((rate - 1.0) * np.exp(-np.maximum(e, 1.0)))
    return np.where(e <= 1.0, near, far)


def _padded(value: Array) -> Array:
    """Return an upper bound for a logarithm with an error of some units of roundoff of 1 + |value|."""
    finite = np.where(np.isfinite(value), value, 0.0)
    return np.minimum(value + 32.0 * UNIT * (1.0 + np.abs(finite)), 0.0)


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SpecError(f"{name} must be between {low:g} and {high:g}, got {value!r}", f"give a positive {name}")
