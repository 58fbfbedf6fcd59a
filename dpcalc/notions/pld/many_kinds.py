"""Compositions of many different steps, each dominated by a mean of a few pairs.

The pair of a step is chosen independently of the data, so the law of its loss is the mean of the laws of the pairs. All
laws are on one lattice, and their transforms are multiplied: a kind of step costs a few multiplications at the
frequencies that matter, not a law of its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from dpcalc.notions.gaussian import together
from dpcalc.notions.pld.discretisation import Pair
from dpcalc.notions.pld.lattice import add_means
from dpcalc.notions.pld.sampled_gaussian import exchanged
from dpcalc.notions.pld.tilting import Component, Components, component_of, log_any, with_infinity
from dpcalc.numerics.floats import Array, Integers, np

_LOG_SHARE = 12.0  # losses with a share of delta below e^-12 count as infinite
_USUAL = -24.0  # stands for an unknown ln delta
_TARGETS = (-4.0, -14.0, -20.0, -28.0, -40.0, -56.0, -80.0, -112.0, -160.0, -320.0, -640.0, -1280.0, -3000.0)
"""The ln delta for which laws are computed; each serves values up to about the one before."""
_FINENESS = 1.0 / 128.0  # of the lattice, in deviations of a loss: splits add some 3e-5 of the variance
_WIDTH = 16.0  # of the law of the sum, in standard deviations
_MOST_POINTS = 1 << 19
_REPRESENTATIVES = 8  # pairs that choose the tilt


class ManyKinds:
    """Steps of many kinds.

    Args:
        pairs: the steps are means of these.
        places, shares: of shape (kinds, parts): indices of pairs, and their weights, which sum to at least 1.
        counts: of shape (kinds,): the number of steps of each kind.
    """

    def __init__(self, pairs: Sequence[Pair], places: Integers, shares: Array, counts: Array) -> None:
        self.pairs, self.places, self.shares, self.counts = tuple(pairs), places, shares, counts

    def exchanged(self) -> ManyKinds:
        """Return the steps with P and Q exchanged; the same object if all pairs are their own mirror images."""
        if all(exchanged(pair) is pair for pair in self.pairs):
            return self
        return ManyKinds([exchanged(pair) for pair in self.pairs], self.places, self.shares, self.counts)

    def pair(self, log_delta: float) -> Pair:
        """Return all steps as one pair, whose curves are valid everywhere and tight near this ln delta."""
        if log_delta == _USUAL:
            return _as_one(self, None)
        return _as_one(self, next((target for target in _TARGETS if target <= log_delta), _TARGETS[-1]))

    def curve(self, target: float) -> Callable[[float], float]:
        """Return an upper bound on ln delta as a function of epsilon."""
        copies = int(self.counts.sum())
        members = self._components(target)
        tilt = _tilt(members, target)
        members = [c.refined(tilt) for c in members]
        variance = sum(c.cumulants(tilt)[2] for c in members)
        wanted = _FINENESS * math.sqrt(variance / sum(c.copies for c in members))
        lows, highs = zip(*(c.window(tilt) for c in members), strict=True)
        least = max(_WIDTH * math.sqrt(variance), 2.0 * (max(highs) - min(lows))) / _MOST_POINTS
        step = 2.0 ** math.floor(math.log2(max(wanted, least)))
        laws = [c._replace(copies=copies).on_lattice(tilt, step, _FINENESS) for c in members]
        finite = add_means(laws, self.places, self.shares, self.counts).finite_curve()
        masses = np.exp(np.array([c.loss.log_infinity_mass for c in members]))
        with np.errstate(divide="ignore"):
            logs = np.log((self.shares * masses[self.places]).sum(axis=1)) + 1e-14
        infinite = log_any(list(zip(logs.tolist(), self.counts.astype(int).tolist(), strict=True)))
        return lambda epsilon: with_infinity(infinite, finite(epsilon))

    def _components(self, target: float) -> list[Component]:
        """Return the pairs, each with about the number of its uses in steps, without rare losses."""
        uses = np.bincount(self.places.ravel(), (self.shares * self.counts[:, None]).ravel(), len(self.pairs))
        whole = [component_of(pair, max(1, round(n))) for pair, n in zip(self.pairs, uses.tolist(), strict=True)]
        return list(Components(tuple(whole)).without_rare_losses(target - _LOG_SHARE).members)


@functools.lru_cache(maxsize=16)
def _as_one(steps: ManyKinds, target: float | None) -> Pair:
    """Return steps as one pair; each order of the two laws is composed when needed."""

    def at(second: bool, epsilon: float) -> float:
        if target is not None:
            return _law(steps, second, target)(epsilon)
        best = 0.0
        for one, following in zip(_TARGETS, (*_TARGETS[1:], -math.inf), strict=True):
            best = min(best, _law(steps, second, one)(epsilon))
            if best > 0.5 * (one + following):
                break
        return best

    def values(second: bool, e: Array) -> Array:
        return np.array([at(second, epsilon) for epsilon in np.ravel(e).tolist()]).reshape(np.shape(e))

    counts = steps.counts.astype(int).tolist()
    largest = np.array([pair.whole_mu for pair in steps.pairs])[steps.places].max(axis=1)
    whole = together(list(zip(largest.tolist(), counts, strict=True)))
    forward = functools.partial(values, False)
    return Pair(forward, forward if steps.exchanged() is steps else functools.partial(values, True), whole_mu=whole)


@functools.lru_cache(maxsize=16)
def _law(steps: ManyKinds, second: bool, target: float) -> Callable[[float], float]:
    return (steps.exchanged() if second else steps).curve(target)


def _tilt(members: list[Component], log_delta: float) -> float:
    """Return the tilt for this ln delta, using a few representative pairs."""
    ordered = sorted(members, key=lambda c: c.cumulants(0.0)[2] / c.copies)
    variances = np.array([c.cumulants(0.0)[2] for c in ordered])
    # A group has about an eighth of the variance; a pair that outweighs all others is a group of its own.
    middles = np.cumsum(variances) - 0.5 * variances
    groups = np.split(
        np.arange(len(ordered)), np.flatnonzero(np.diff(middles // (variances.sum() / _REPRESENTATIVES))) + 1
    )
    few = Components(tuple(
        ordered[g[-1]]._replace(copies=max(1, round(ordered[g[-1]].copies * variances[g].sum() / variances[g[-1]])))
        for g in groups
    ))  # fmt: skip
    epsilon, few = few.expected_epsilon(log_delta)
    return few.refined_about(epsilon)[1]
