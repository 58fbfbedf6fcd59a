"""Group privacy: what a guarantee for one record implies for k records that differ at once.

Two data sets that differ in k records are joined by a chain of data sets, each of which differs from the next in one
record. A guarantee for every link implies one for the chain:

* mu-GDP: k mu, exactly.
* A profile: delta_k(e_1 + ... + e_k) <= delta(e_1) + e^e_1 delta(e_2) + ... + e^(e_1 + ... + e_(k-1)) delta(e_k), for
  any real e_1, ..., e_k, since E_ab(P||R) <= E_a(P||Q) + a E_b(Q||R). With t(a) the least of delta(e) + e^e a over e, a
  link that takes a to t(a) is best at this e, and t(a) is the a of the link before it. delta_k is convex in e^epsilon
  and non-increasing, so the lower hull of all proved points holds between them and beyond the last. If one record has a
  finite mu, delta_G at k mu is part of the hull.
* A Renyi curve: D_a(P||S) <= (a - 1/p)/(a - 1) D_pa(P||Q) + D_b(Q||S), b = p (a - 1/p)/(p - 1) (Bun and Steinke 2016).
  With j links before Q and l after it, p = 1 + (l/j)(a - 1)/a is exact for curves rho a: k^2 rho a.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple, Self

from dpcalc.notions import gaussian, profiles
from dpcalc.notions.curves import Curve
from dpcalc.notions.pld.discretisation import hull, slopes_of
from dpcalc.notions.randomised_response import at_negative
from dpcalc.numerics.floats import UNIT, Array, Integers, np, up
from dpcalc.numerics.normal_arrays import log_hockey_stick_up
from dpcalc.numerics.roots import least

_FIRST, _MOST_EPSILON = -20, 200  # powers of two, between which a curve is sampled
_ENDS = -1500.0  # of ln delta of one record: rarer events do not matter even times e^epsilon
_FELL = 0.1  # of ln delta: a curve that fell by this much and no longer falls has ended
_POINTS = 100  # of the curve of one record, each of which may be a search
_SHARE = 0.1  # far out ln delta falls between points by this share of itself
_LITTLE = 3e-3  # of ln delta, and relative: a chain for one epsilon may be this much worse than the least
_SMALL = 0.01  # of ln delta: a smaller fall is worth no point
_NARROW = 1e-6  # nor is a relatively narrower gap, as when a curve drops to delta = 0
_LEVELS = 3000  # values of a at which chains begin between the lines, and beyond them
_BETWEEN = 256  # lines of a smooth curve for every proved one
_MOST_MU, _FAR, _GAUSSIAN = 1e100, 40.0, 161  # points of delta_G, up to 40 standard deviations of the loss
_NEAR = (1e-6, 1e-4, 1e-2)  # about the epsilon of a smooth curve, for the proved one
_LINKS = 256  # distinct parts in a chain for one epsilon: longer chains share parts, at a cost of 1e-3 of epsilon


class Chain:
    """ln delta of groups of ``size`` records as a non-increasing function of epsilon, rounded up.

    The curve must hold for any record of any data set, since every link of the chain must be covered.

    Args:
        curve: epsilon >= 0 -> an upper bound on ln delta for one record, in either order.
        size: k >= 1.
        mu: the mu-GDP of groups, if known; otherwise inf.

    >>> one = lambda e: gaussian.log_delta(mu=0.5, epsilon=e)
    >>> apart = Chain(one, 3)(2.0) - gaussian.log_delta(mu=1.5, epsilon=2.0)
    >>> 0.0 < apart < 1e-6
    True
    """

    def __init__(self, curve: Curve, size: int, mu: float = math.inf) -> None:
        self._one, self._size, self._mu = functools.cache(curve), size, mu

    def __call__(self, epsilon: float) -> float:
        """Return ln delta."""
        value = float(self._hull(np.array(epsilon)))
        end, last_value = self._end
        if epsilon < end:
            value = min(value, max(last_value, self._anew(epsilon)))
        return min(value, gaussian.log_delta(mu=self._mu, epsilon=epsilon)) if self._mu < math.inf else value

    def epsilon(self, log_delta: float, ulps: int) -> float | None:
        """Return the epsilon at a ln delta, in few evaluations; None if no chain has it."""

        def excess(e: float) -> float:
            return self(e) - log_delta

        end, _ = self._end
        if end <= 0.0 or excess(end) > 0.0:
            return None
        _, spent, values = self._smooth
        guess = min(max(float(np.interp(-log_delta, -np.minimum.accumulate(values), spent)), 0.0), end)
        low = next((e for near in _NEAR if excess(e := guess * (1.0 - near)) > 0.0), 0.0)
        high = next((e for near in _NEAR if excess(e := guess * (1.0 + near)) <= 0.0), end)
        return least(excess, low, high, ulps=ulps)

    # --- chains of lines ----------------------------------------------------------------------------------------------

    @functools.cached_property
    def _nodes(self) -> tuple[Array, Array]:
        """Return increasing epsilons from 0, and ln delta of one record."""
        nodes = _sampled(self._one)
        return np.array(nodes), np.minimum.accumulate([self._one(e) for e in nodes])

    @functools.cached_property
    def _smooth(self) -> tuple[Array, Array, Array]:
        """Return the e_k, ..., e_1 of chains on a smooth curve through the nodes, their sums, and ln delta."""
        nodes, values = (part[np.isfinite(self._nodes[1])] for part in self._nodes)
        if len(nodes) > 2:
            place = np.linspace(0.0, len(nodes) - 1.0, _BETWEEN * (len(nodes) - 1) + 1)
            left = np.minimum(place.astype(int), len(nodes) - 2)
            t, gap, slopes = place - left, np.diff(nodes)[left], np.gradient(values, nodes)
            bend = gap * t * (1.0 - t) * (slopes[left] * (1.0 - t) - slopes[left + 1] * t)
            values = values[left] * (1.0 + 2.0 * t) * (1.0 - t) ** 2 + values[left + 1] * t * t * (3.0 - 2.0 * t) + bend
            nodes = nodes[left] + t * gap
        lines = _Lines.of(nodes, np.minimum(values, 0.0))
        chosen = lines.chains(self._size)
        spent, values = _summed(lines.e[chosen], lines.log_delta[chosen])
        order = np.argsort(spent)
        return lines.e[chosen[:, order]], spent[order], values[order]

    @functools.cached_property
    def _proved(self) -> tuple[Array, Array]:
        """Return epsilon and ln delta of chains of lines."""
        lines = _Lines.of(*self._nodes)
        chosen = lines.chains(self._size)
        return _summed(lines.e[chosen], lines.log_delta[chosen])

    @functools.cached_property
    def _end(self) -> tuple[float, float]:
        """Return the least epsilon beyond which longer chains gain almost nothing, and ln delta there."""
        nodes, values = self._proved
        end = float(nodes[values <= (1.0 - _LITTLE) * values.min() + _LITTLE].min())
        return end, float(self._hull(np.array(end)))

    @functools.cached_property
    def _hull(self) -> Callable[[Array], Array]:
        """Return the lower hull of all proved points."""
        nodes, values = self._proved
        if self._mu < _MOST_MU:
            e = 0.5 * self._mu**2 + self._mu * np.linspace(0.0, _FAR, _GAUSSIAN)
            nodes, values = np.append(nodes, e), np.append(values, log_hockey_stick_up(e, self._mu))
        order = np.argsort(nodes, kind="stable")
        nodes, values = nodes[order], np.minimum.accumulate(values[order])
        corners = hull(nodes, values)
        return profiles.chords(nodes[corners], values[corners])

    # --- chains at an epsilon -----------------------------------------------------------------------------------------

    def _anew(self, epsilon: float) -> float:
        """Return ln delta of the better of two chains that end at epsilon: with equal parts, and with those of the
        smooth curve."""
        smooth, spent, _ = self._smooth
        place = min(max(int(np.searchsorted(spent, epsilon)), 1), len(spent) - 1)
        left, right = smooth[:, place - 1], smooth[:, place]
        share = min(max((epsilon - spent[place - 1]) / max(spent[place] - spent[place - 1], 1e-300), 0.0), 1.0)
        blocks = np.array_split(left + share * (right - left), min(self._size, _LINKS))
        parts = np.concatenate([np.full(len(block), block.mean()) for block in blocks])
        return min(self._sum(chain, epsilon) for chain in (np.zeros(self._size), parts))

    def _sum(self, parts: Array, epsilon: float) -> float:
        """Return ln delta of a chain with about these parts, adjusted to add up to epsilon."""
        size = np.abs(parts).sum() + 2.0 * epsilon
        parts = parts + (epsilon - parts.sum()) / self._size
        parts[0] -= 8.0 * UNIT * self._size * (size + np.abs(parts).sum())  # more than the rounding of the sum
        log_deltas = np.array([_anywhere(self._one, e) for e in parts.tolist()])
        return float(_summed(parts[:, None], log_deltas[:, None])[1][0])


class _Lines(NamedTuple):
    """Lines delta + e^e a of one record: e of either sign, ln delta, and ln of the a below which the next line is
    lower."""

    e: Array
    log_delta: Array
    breaks: Array

    @classmethod
    def of(cls, nodes: Array, values: Array) -> Self:
        """Return the lines of a curve at increasing epsilons from 0, in both orders."""
        with np.errstate(divide="ignore"):
            below = np.logaddexp(np.log(-np.expm1(-nodes[:0:-1])), values[:0:-1] - nodes[:0:-1])
        e, log_delta = np.append(-nodes[:0:-1], nodes), np.append(below + 8.0 * UNIT * (3.0 - below), values)
        log_delta = np.minimum.accumulate(np.minimum(log_delta, 0.0))
        corners = hull(e, log_delta)
        e, log_delta = e[corners], log_delta[corners]
        breaks = slopes_of(e, log_delta)
        count = int(np.isfinite(breaks).sum())  # beyond the last one delta does not fall
        return cls(e[: count + 1], log_delta[: count + 1], breaks[:count])

    def chains(self, size: int) -> Integers:
        """Return the lines of the best chains from many starting values a, the last link in the first row."""
        log_a = np.zeros(1)
        if len(self.breaks):
            last = self.breaks[-1]
            far = np.linspace(last - size * max(self.e[-1], 0.0) - 1.0, last, _LEVELS)
            places = np.linspace(0.0, len(self.breaks) - 1.0, _LEVELS)
            log_a = np.concatenate((log_a, np.interp(places, np.arange(len(self.breaks)), self.breaks), far))
        chosen = np.zeros((size, len(log_a)), int)
        for line in chosen:
            line[:] = np.searchsorted(-self.breaks, -log_a)
            log_a = np.minimum(np.logaddexp(self.log_delta[line], self.e[line] + log_a), 0.0)
        return chosen


def _sampled(curve: Curve) -> list[float]:
    """Return epsilons from 0, denser where ln delta falls faster, until it stops falling or is out of reach."""
    known, epsilon, before = {0.0: curve(0.0)}, 2.0**_FIRST, 0.0

    def fall(low: float, high: float) -> tuple[float, float, float]:
        drop = max(known[high], _ENDS) - max(known[low], _ENDS)
        return drop / max(1.0, -_SHARE * known[low]) if high - low > _NARROW * high else 0.0, low, high

    while epsilon < 2.0**_MOST_EPSILON:
        known[epsilon] = curve(epsilon)
        if known[epsilon] <= _ENDS or (known[epsilon] >= known[before] and known[before] < known[0.0] - _FELL):
            break
        epsilon, before = 4.0 * epsilon, epsilon
    gaps = [fall(low, high) for low, high in itertools.pairwise(sorted(known))]
    heapq.heapify(gaps)
    while len(known) < _POINTS and gaps[0][0] < -_SMALL:
        _, low, high = heapq.heappop(gaps)
        middle = math.sqrt(low * high) if low > 0.1 * high else 0.5 * (low + high)
        known[middle] = curve(middle)
        heapq.heappush(gaps, fall(low, middle))
        heapq.heappush(gaps, fall(middle, high))
    return sorted(known)


def _summed(epsilons: Array, log_deltas: Array) -> tuple[Array, Array]:
    """Return e_1 + ... + e_k and ln delta of chains, rounded up: one chain a column, the last link in the first row."""
    spent, total, size = np.zeros(epsilons.shape[1]), np.full(epsilons.shape[1], -np.inf), 0.0
    for epsilon, log_delta in zip(epsilons, log_deltas, strict=True):
        spent, total = spent + epsilon, np.logaddexp(log_delta, epsilon + total)
        # Both err by a few units of roundoff of themselves and of the terms of the sum.
        size = size + 4.0 + np.abs(epsilon) + np.abs(spent) + np.where(np.isfinite(total), np.abs(total), 0.0)
    return spent + 2.0 * UNIT * size, np.minimum(total + 8.0 * UNIT * size, 0.0)


def _anywhere(curve: Curve, epsilon: float) -> float:
    """Return ln delta at an epsilon of either sign."""
    return curve(epsilon) if epsilon >= 0.0 else at_negative(-epsilon, curve(-epsilon))


def group_renyi(curve: Curve, order: float, size: int) -> float:
    """Return an upper bound on the Renyi divergence of groups of ``size`` records at ``order`` >= 1.

    >>> round(group_renyi(lambda order: 0.5 * order, 3.0, 4) / (16.0 * 1.5), 12)
    1.0
    """
    if size == 1:
        return curve(order)
    if math.isinf(order):
        return up(size * curve(order), 2.0)
    after = size // 2
    before = size - after
    ratio = after / before
    exponent = 1.0 + ratio * (order - 1.0) / order
    weight = (1.0 + ratio) / exponent  # (a - 1/p)/(a - 1)
    first = group_renyi(curve, up(order * exponent, 8.0), before)
    second = group_renyi(curve, up(order * size / after, 8.0), after)
    # A rounded p belongs to another valid pair of orders, and both divergences only grow with the order.
    return up(weight * first + second, 32.0)
