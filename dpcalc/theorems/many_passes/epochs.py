"""The mean over a record's positions in several passes of random order, for an observer who knows the orders.

Positions k are counted from the end of a pass of l steps, costs in squares of mu_1 = Delta/(b sigma). Given where the
record is used, the shifted-divergence theorem gives a Gaussian at mu_1 sqrt(S), S the cost of the cheapest allocation;
the law of the positions does not depend on the data, and joint convexity gives the mean of delta_G over it.

With a fresh order for every pass, a use may be delayed to the last step of its epoch, which never lowers the cost. With
1-Lipschitz maps and batches of equal weight, all uses except the first, the last but one and the last are delayed. They
are l steps apart and cost 1/l each. A mean over three positions remains; for two and three epochs these are all of
them. S falls with each of them and is convex in it, delta_G is convex
in S where mu is small enough: there sums over blocks of positions are bounded by chords, elsewhere by their largest
terms. Otherwise the mean is over the cases of `fresh_places`; it is a law of mu, worked out once for every epsilon.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from dpcalc.notions import gaussian
from dpcalc.notions.profiles import Blocks, Earlier
from dpcalc.numerics.floats import UNIT, Array, distinct, log_add_exp, np, up
from dpcalc.numerics.sums import TermBounds, log_sum_decreasing_up
from dpcalc.theorems.batch_layout import Positions
from dpcalc.theorems.hidden.fresh_places import SamePlaces, cases_of
from dpcalc.theorems.hidden.positions import places_of
from dpcalc.theorems.many_passes.repeated_allocation import Passes, cost, gdp, periods, stretch

_SLACK = 1e-11  # ln of a generous bound on the rounding of the sums and weights here
_LARGEST = 1e90  # a larger epsilon counts as this one
_PARTS_OF_TWO, _PARTS, _PARTS_OF_FIRST = 16, 8, 4  # pieces of the laws of the last position but one, and the first
_FINE, _FEWER = 24, 4  # pieces of the former for the likeliest number of heavy uses, and for the others
_ROWS = 3  # one in so many of the blocks of `positions`
_GRID = 2.0**-15  # ln mu is rounded up to multiples of it


# --- one order -----------------------------------------------------------------------------------------------------


def same_places(passes: Passes) -> SamePlaces:
    """Return the distances of positions that are the same in every pass."""
    return SamePlaces(passes.pace, passes.epochs, passes.ratio, passes.reach, passes.plan.weights[0])


def once_log_delta(passes: Passes, epsilon: float) -> float:
    """Return ln delta for one order in all passes."""
    distances = same_places(passes)

    def of(alike: Positions) -> float:
        size = passes.plan.weight(alike)

        def terms(k: Array) -> TermBounds:
            from dpcalc.numerics.normal_arrays import log_hockey_stick_up

            mu = distances.own(k, size)
            log_delta = log_hockey_stick_up(min(epsilon, _LARGEST), mu)[None]
            return TermBounds(log_delta, log_delta, convex_up_to(mu, epsilon)[None] & distances.bare)

        return _mean(terms, alike)

    return _together(passes, of)


def once_renyi(passes: Passes, order: float) -> float:
    """Return the Renyi divergence at order a > 1 for one order of the records in all passes, rounded up.

    ln(E exp(a (a-1) mu_k^2/2))/(a-1) over the position k of the record, whose law does not depend on the data.
    """
    distances, x = same_places(passes), up(0.5 * order * (order - 1.0), 4.0)

    def of(alike: Positions) -> float:
        size = passes.plan.weight(alike)

        def terms(k: Array) -> TermBounds:
            mu = distances.own(k, size)
            log_moment = (x * mu * mu * (1.0 + 8.0 * UNIT))[None]
            return TermBounds(log_moment, log_moment, (mu >= 0.0)[None] & distances.bare)  # e^(x/k) is convex in k

        return _mean(terms, alike)

    return up(_averaged(passes, of, 0.0) / (order - 1.0), 4.0)


def _mean(terms: Callable[[Array], TermBounds], alike: Positions) -> float:
    """Return ln of the mean over equal positions."""
    return log_sum_decreasing_up(terms, alike.first, alike.first + alike.steps - 1) - math.log(alike.steps)


def _together(passes: Passes, of: Callable[[Positions], float], unused: float = -math.inf) -> float:
    """Return ln delta, rounded up, from its values for a record in each class of batches, and left out."""
    return min(0.0, _averaged(passes, of, unused))


def _averaged(passes: Passes, of: Callable[[Positions], float], unused: float) -> float:
    """Return ln of the mean over a record's positions, rounded up: in each class of batches, or left out."""
    plan, total = passes.plan, -math.inf
    for value, weight in [*((of(alike), alike.records) for alike in plan.positions), (unused, plan.dropped)]:
        if weight and value > -math.inf:
            total = log_add_exp(total, value + math.log(weight) - math.log(plan.records))
    return total + _SLACK + UNIT * (16.0 * abs(total) + 16.0 * math.log(plan.records + 1))


# --- fresh orders --------------------------------------------------------------------------------------------------


def fresh_log_delta(passes: Passes, epsilon: float) -> float:
    """Return ln delta for a fresh order in every pass."""
    if passes.epochs == 1:
        return once_log_delta(passes, epsilon)
    if not passes.bare or len(passes.plan.weights) > 1:
        return _law(passes).log_delta(epsilon)
    if passes.plan.weights[0] > 1.0:
        passes = passes._replace(ratio=up(passes.ratio * passes.plan.weights[0], 2.0))

    def of(alike: Positions) -> float:
        return _mean(lambda k: _values(_fresh_part(passes, k), passes, epsilon), alike)

    return _together(passes, of, _unused(passes, epsilon) if passes.plan.dropped else -math.inf)


def known_cases(passes: Passes) -> tuple[Earlier, Blocks | None]:
    """Return the cases of the mean of `fresh_log_delta` over at least two passes, and the blocks of the last place.

    Without blocks the mean is over all last places, with the cases of `_fresh_part`: for each of the other places that
    count, into how many parts it falls.
    """
    if not passes.bare or len(passes.plan.weights) > 1:
        return cases_of(passes, _FINE, _FEWER).earlier, places_of(passes.plan).grouping(_ROWS)
    return Earlier(0, (), (_PARTS_OF_TWO,) if passes.epochs == 2 else (_PARTS, _PARTS_OF_FIRST)), None


def _unused(passes: Passes, epsilon: float) -> float:
    """Return ln delta if only the last epoch drops the record."""
    length = passes.plan.steps
    squared = float(cost(periods(passes.epochs - 2, length), stretch(1.0, length + 1.0)))
    return gaussian.log_delta(mu=up(passes.ratio * math.sqrt(squared), 8.0), epsilon=epsilon)


class _MuLaw(NamedTuple):
    """A mixture of Gaussian guarantees: ln of the weights, rounded up, and mu; both of shape (values,)."""

    log_weight: Array
    mu: Array

    def log_delta(self, epsilon: float) -> float:
        """Return ln of the mean of delta_G, rounded up."""
        from dpcalc.numerics.normal_arrays import log_hockey_stick_up

        terms = self.log_weight + log_hockey_stick_up(min(epsilon, _LARGEST), self.mu)
        peak = float(terms.max())
        total = peak + math.log(float(np.exp(terms - peak).sum()))
        return min(0.0, total + _SLACK + 16.0 * UNIT * abs(total))


@functools.lru_cache(maxsize=32)
def _law(passes: Passes) -> _MuLaw:
    """Return the law of mu over all places of a record in at least two passes."""
    places, cases = places_of(passes.plan), cases_of(passes, _FINE, _FEWER)
    parts = [(cases.places.own(low, size), cases.weight * count) for low, count, size in places.blocks(_ROWS)]
    if places.out:
        parts.append((cases.places.unused_in_all(), cases.weight * float(places.out)))
    mu = np.concatenate([np.broadcast_to(m, w.shape).ravel() for m, w in parts])
    weight = np.concatenate([w.ravel() for _, w in parts]) * ((1.0 + 1e-12) / places.records)
    step = np.ceil(np.log(np.maximum(mu, 1e-100)) / _GRID * (1.0 + 4.0 * UNIT))
    level, where = np.unique(step, return_inverse=True)
    return _MuLaw(np.log(np.bincount(where, weights=weight)), np.exp(level * _GRID) * (1.0 + 1e-12))


class Law(NamedTuple):
    """Nodes of a uniform position on 1..l, and two sets of weights: for functions that fall, and if convex as well."""

    at: Array
    flat: Array
    bent: Array


def law(steps: int, parts: int) -> Law:
    """Return the law in ``parts`` parts, or in single positions if there are no more."""
    at = distinct(1 + np.floor(np.arange(parts) * (steps / parts)), np.array([float(steps)]))
    count = np.append(np.diff(at), 1.0)
    bent = (count + 1.0) / 2.0
    bent[1:] += (count[:-1] - 1.0) / 2.0
    return Law(at, count / steps, bent / steps)


class _Part(NamedTuple):
    """Costs of several cases at some positions, shape (cases, positions), and two sets of weights of the cases: for
    functions that fall with the case, and for those that are convex in it as well."""

    costs: Array
    flat: Array
    bent: Array


def _values(part: _Part, passes: Passes, epsilon: float) -> TermBounds:
    """Return bounds on delta_G, averaged over the cases."""
    from dpcalc.numerics.normal_arrays import log_hockey_stick_up

    epsilon = min(epsilon, _LARGEST)
    mu = gdp(passes.ratio, part.costs)
    log_delta = log_hockey_stick_up(epsilon, mu)
    convex = convex_up_to(mu.max(axis=0), epsilon)
    flat = _log_mean(log_delta, part.flat)
    # Where delta_G is concave in mu^2 it is at most its value at the mean.
    low, mean = mu.min(axis=0), gdp(passes.ratio, part.bent @ part.costs * (1.0 + 64.0 * UNIT))
    concave = epsilon <= low * np.sqrt(1.0 + 0.25 * np.minimum(low, 1e70) ** 2) * (1.0 - 1e-9)
    least = np.where(concave, np.minimum(flat, log_hockey_stick_up(epsilon, mean)), flat)
    return TermBounds(least[None], _log_mean(log_delta, part.bent)[None], convex[None])


def convex_up_to(mu: Array, epsilon: float) -> Any:
    """Return whether delta_G(eps; mu) is convex in mu^2 up to this mu: its derivative there,
    exp(-(mu/2 - eps/mu)^2/2)/(2 sqrt(2 pi) mu), grows where eps^2 >= mu^2 + mu^4/4.
    """
    top = np.minimum(mu, 1e70)
    return epsilon >= top * np.sqrt(1.0 + 0.25 * top * top) * (1.0 + 1e-9)


def _log_mean(logs: Array, weights: Array) -> Array:
    """Return ln of the weighted sum over the cases."""
    peak = logs.max(axis=0)
    mean: Array = peak + np.log(weights @ np.exp(logs - peak))
    return mean


def _fresh_part(passes: Passes, k: Array) -> _Part:
    """Return S for the nodes of the other positions that count: u of the last use but one, v of the first."""
    epochs, length = passes.epochs, float(passes.plan.steps)
    later = law(passes.plan.steps, _PARTS_OF_TWO if epochs == 2 else _PARTS)
    u = later.at[:, None]
    ends = stretch(1.0, length + u - k), stretch(1.0, k)
    if epochs == 2:
        return _Part(cost(*ends), later.flat, later.bent)
    first = law(passes.plan.steps, _PARTS_OF_FIRST)
    v = first.at[:, None, None]
    if epochs == 3:
        costs = cost(stretch(1.0, length + v - u), *ends)
    else:
        costs = 1.0 / (length + v - 1.0) + (epochs - 4) / length + cost(stretch(1.0, length + 1.0 - u), *ends)
    flat, bent = (np.outer(a, b).ravel() for a, b in ((first.flat, later.flat), (first.bent, later.bent)))
    return _Part(costs.reshape(-1, len(k)), flat, bent)
