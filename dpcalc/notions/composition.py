"""Notions with a privacy profile: profiles themselves, and compositions of dominating pairs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dpcalc.errors import NotApplicable
from dpcalc.notions import trade_off
from dpcalc.notions.composed import FAIR, OneOrder, extrapolated
from dpcalc.notions.notion import FARTHEST, NO_HINTS, Answer, Guarantee, Hints, LowerBound, clipped
from dpcalc.numerics.floats import UNIT, log_add_exp
from dpcalc.numerics.roots import least

if TYPE_CHECKING:
    from dpcalc.notions.composed import Pairs
    from dpcalc.notions.curves import CurveWithFloor
    from dpcalc.notions.least_mu import LeastMu
    from dpcalc.notions.notion import Parts
    from dpcalc.notions.pld import Bound, Pair
    from dpcalc.notions.profiles import Certificate

LARGEST_GROUP = 1000
"""The largest group for curves other than Gaussian privacy: a chain has as many links."""

_GROUP_ULPS = 1 << 28  # 6e-8: a chain of links costs a search for every epsilon
_BELOW = 16.0  # a curve is tabulated down to e^-16 of the target; rarer losses count as infinite
_FLOORS = 8.0  # tables are made for every eighth ln delta, so that neighbouring targets share one


class Curved(Guarantee):
    """A notion with a privacy profile, from which everything else follows."""

    has_curve = has_pairs = True

    def excess(self, epsilon: float, log_delta: float) -> float:
        return clipped(self.log_delta(epsilon).value - log_delta)

    def times(self, count: int) -> Guarantee:
        return compose([(self, count)])

    def pairs(self, log_delta: float, *, second: bool = False) -> Sequence[tuple[Pair, int]]:
        return [(_tabulated_pair(self, _FLOORS * math.floor((log_delta - _BELOW) / _FLOORS)), 1)]

    def grouped(self, size: int) -> Guarantee:
        if size == 1:
            return self
        from dpcalc.notions.groups import Chain

        check_group(size)
        chain = Chain(self.privacy_profile(), size, mu := self.group_mu(size))
        return Profile(functools.cache(chain), _GROUP_ULPS, whole_mu=mu, hints=Hints(budget=chain.epsilon))

    def privacy_profile(self) -> CurveWithFloor:
        curve = functools.cache(lambda epsilon: self.log_delta(epsilon).value)
        return lambda epsilon, floor=-math.inf: curve(epsilon)

    def profiles_of_orders(self) -> tuple[CurveWithFloor, CurveWithFloor]:
        """Return ln delta of P against Q and of Q against P."""
        both = self.privacy_profile()
        return both, both

    def trade_off(self, sections: int | None = None) -> trade_off.TradeOff:
        return trade_off.of_orders(*self.profiles_of_orders(), sections or trade_off.SECTIONS)

    def least_mu(self, log_delta: float) -> LeastMu:
        from dpcalc.notions import least_mu

        return least_mu.of_curve(self.privacy_profile(), log_delta)

    def with_regret(self, mu: float, log_delta: float) -> LeastMu:
        from dpcalc.notions import least_mu

        return least_mu.with_regret(self.privacy_profile(), mu, log_delta)


def check_group(size: int) -> None:
    """Refuse groups that are too large for a chain."""
    if size > LARGEST_GROUP:
        raise NotApplicable(f"groups of more than {LARGEST_GROUP} are for Gaussian privacy", "use a smaller group size")


@functools.lru_cache(maxsize=64)
def _tabulated_pair(part: Guarantee, floor: float) -> Pair:
    """Return the dominating pair of a profile, tabulated once for each part and floor."""
    from dpcalc.notions import pld
    from dpcalc.notions.profiles import tabulated

    return pld.from_curve(tabulated(lambda e: part.log_delta(e).value, floor))


class OfProfile(Curved):
    """A notion that answers by its profile alone."""

    def tprs(self, fprs: Sequence[float], nodes: Sequence[float] | None = None) -> list[float]:
        return trade_off.tprs(*self.profiles_of_orders(), fprs, trade_off.NODES if nodes is None else nodes)


class Profile(OfProfile):
    """A privacy profile: epsilon >= 0 -> an upper bound on ln delta, non-increasing; searches end ``ulps`` apart.

    If the profile comes from a search, ``certificate`` maps epsilon to what the search found. A finite ``whole_mu``
    says that the mechanism is also mu-GDP. ``nodes`` are (epsilon, ln delta) between which the profile follows chords,
    with epsilon increasing from 0 and ln delta non-increasing.
    """

    form = "log_delta"
    name = "a privacy profile"

    def __init__(
        self,
        profile: Callable[[float], float],
        ulps: int = 2,
        certificate: Callable[[float], Certificate] | None = None,
        whole_mu: float = math.inf,
        nodes: tuple[tuple[float, float], ...] = (),
        hints: Hints = NO_HINTS,
    ) -> None:
        self.profile = profile
        self.ulps = ulps
        self.certificate: Callable[[float], Certificate] | None = certificate
        self._whole_mu = whole_mu
        self.nodes = nodes
        self.hints = hints

    @property
    def whole_mu(self) -> float:
        return self._whole_mu

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        """Return the least epsilon at ln delta, rounded up (inf if none below 1e300)."""

        def excess(e: float) -> float:
            return clipped(self.profile(e) - log_delta)

        guess = self.hints.budget(log_delta, self.ulps) if self.hints.budget is not None else None
        if guess is not None and excess(guess) <= 0.0:
            return Answer(guess, None, "profile")
        ceiling = 1.0
        while excess(ceiling) > 0.0:
            ceiling *= 16.0
            if ceiling > FARTHEST:
                return Answer(math.inf)
        return Answer(least(excess, 0.0, ceiling, ulps=self.ulps), None, "profile")

    def log_delta(self, epsilon: float) -> Answer:
        return Answer(self.profile(epsilon), None, "profile")

    def asked(self, orders: tuple[float, ...], ulps: int) -> Profile:
        return self.replacing(profile=functools.cache(self.profile), ulps=ulps)

    def rounded_down(self, ulps: int) -> LowerBound:
        return LowerBound(functools.cache(self.profile), ulps=ulps)

    def rough(self) -> Guarantee:
        return self if self.hints.rough is None else self.hints.rough()

    def few_points(self, log_delta: float, fprs: Sequence[float], priors: Sequence[float]) -> Profile:

        from dpcalc.notions import few_points

        nodes = few_points.nodes(self.profile, log_delta, fprs, priors)
        return Profile(
            few_points.through_nodes(nodes),
            self.ulps,
            None,
            self.whole_mu,
            tuple(nodes),
            self.hints._replace(budget=None),
        )

    def least_mu(self, log_delta: float) -> LeastMu:
        from dpcalc.notions import least_mu

        return least_mu.of_curve(self.privacy_profile(), log_delta, self.nodes)

    def with_regret(self, mu: float, log_delta: float) -> LeastMu:
        from dpcalc.notions import least_mu

        return least_mu.with_regret(self.privacy_profile(), mu, log_delta, self.nodes)


_NEAR_BELOW, _NEAR_ABOVE = 0.005, 0.05  # within this of a target, the finest lattices decide
_CLEARLY = 1e-6  # if ln delta is proved to be this far above a target, no lattice is needed
_OUT_OF_REACH = 100.0  # the excess that stands for a target out of reach


class Composition(OfProfile):
    """An adaptive composition: (dominating pair, count), composed by the distribution of the privacy loss.

    ``reverse`` has P and Q swapped, if that differs and is asked for; the worse one counts. Pairs may be given as a
    function of the ln delta for which they are best; they hold for every other delta too. If the pairs come from a
    search, ``certificate`` is what it found, for every epsilon. exp(``log_failure``) is a failure probability that is
    added to every delta.
    """

    name = "a privacy-loss distribution"

    def __init__(
        self,
        parts: Parts,
        reverse: Parts = (),
        certificate: Callable[[float], Certificate] | None = None,
        log_failure: float = -math.inf,
        hints: Hints = NO_HINTS,
    ) -> None:
        self.parts = parts
        self.reverse = reverse
        self.certificate: Callable[[float], Certificate] | None = certificate
        self.log_failure = log_failure
        self.hints = hints
        self.two_orders = bool(reverse)

    @property
    def ways(self) -> tuple[OneOrder, ...]:
        """The compositions, one for each order of the two data sets that is asked for."""
        return (OneOrder(self.parts), OneOrder(self.reverse)) if self.reverse else (OneOrder(self.parts),)

    @property
    def whole_mu(self) -> float:
        """A mu such that the composition is mu-GDP, from the closed form of each pair.

        For a mixture of Gaussian mechanisms it is the largest mu among them: delta is a mean of their deltas, each of
        which grows with mu. No smaller mu covers a mixture with positive weights. Mixtures compose like the mechanisms
        that dominate them: mu^2 adds.
        """
        return self.group_mu(1)

    def group_mu(self, size: int) -> float:
        return math.inf if self.log_failure > -math.inf else max(way.whole_mu(size) for way in self.ways)

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        if (log_rest := self._without_failure(log_delta)) == -math.inf:
            return Answer(math.inf, None, "pld")
        first, *reverse = self.ways
        answer = first.epsilon(log_rest, rough=rough)
        for way in reverse:
            if not way.keeps(answer.value, log_rest, log_rest):
                answer = max(answer, way.epsilon(log_rest, rough=rough), key=lambda answer: answer.value)
        if self.hints.besides is None:
            return answer
        return min(answer, self.hints.besides.epsilon(log_delta, rough=rough), key=lambda answer: answer.value)

    def log_delta(self, epsilon: float) -> Answer:
        first, *reverse = self.ways
        answer = first.log_delta(epsilon)
        for way in reverse:
            if not way.keeps(epsilon, answer.value, answer.value):
                answer = max(answer, way.log_delta(epsilon), key=lambda answer: answer.value)
        answer = answer._replace(value=self.with_failure(answer.value))
        if self.hints.besides is None:
            return answer
        return min(answer, self.hints.besides.log_delta(epsilon), key=lambda answer: answer.value)

    def log_overlap(self) -> float:
        return min(way.log_overlap() for way in self.ways) if self.hints.besides is None else 0.0

    def excess(self, epsilon: float, log_delta: float) -> float:
        return clipped(self.excess_about(epsilon, log_delta))

    def excess_about(self, epsilon: float, log_delta: float) -> float:
        """Return `log_delta` at epsilon minus ``log_delta``, faster if that is about 0.

        If one order of the two data sets is above it, the other one is not evaluated.
        """
        expected = self._expected(log_delta)
        first, *reverse = self.ways
        value = first.log_delta(epsilon, expected).value
        for way in reverse:
            if self.with_failure(value) <= log_delta and not way.keeps(epsilon, value, expected):
                value = max(value, way.log_delta(epsilon, expected).value)
        return self.with_failure(value) - log_delta

    def rough_excess(self, epsilon: float, log_delta: float) -> float:
        """Return an estimate (no bound) of `excess_about`, from a lattice accurate to about 2e-5 of ln delta and
        coarser parts.

        Only one of two orders is evaluated.
        """
        expected = self._expected(log_delta)
        if self.hints.coarser:
            value = extrapolated(self.hints.coarser, epsilon, expected)
        else:
            value = self.ways[0].log_delta(epsilon, expected, rough=True).value
        return self.with_failure(value) - log_delta

    def likely_excess(self, epsilon: float, log_delta: float) -> float:
        if (log_rest := self._without_failure(log_delta)) == -math.inf:
            return _OUT_OF_REACH
        return max(way.likely_log_delta(epsilon, log_rest) for way in self.ways) - log_rest

    def sign(self, epsilon: float, log_delta: float) -> float:
        """Return a number that is <= 0 if `log_delta` at epsilon is at most ``log_delta``, faster in clear cases.

        One attempt on a coarser lattice is an upper bound as well, and decides all but close cases.
        """
        if (log_rest := self._without_failure(log_delta)) == -math.inf:
            return _OUT_OF_REACH
        if epsilon > 0.0:
            near = self._bounds_near(epsilon, log_rest, FAIR)
            value = max(bound.value for bound in near) - log_rest
            lowest = max(bound.value - bound.rounding - bound.lattice for bound in near) - log_rest
            if not -_NEAR_BELOW < value <= _NEAR_ABOVE or lowest > _CLEARLY:
                return value
        return self.replacing(log_failure=-math.inf).excess_about(epsilon, log_rest)

    def upper_excess(self, epsilon: float, log_delta: float, resolution: int) -> float:
        """Return an upper bound on ln delta at epsilon minus ``log_delta``, close if that is about 0."""
        if (log_rest := self._without_failure(log_delta)) == -math.inf:
            return _OUT_OF_REACH
        return max(bound.value for bound in self._bounds_near(epsilon, log_rest, resolution)) - log_rest

    def _bounds_near(self, epsilon: float, log_delta: float, resolution: int) -> list[Bound]:
        return [way.bound_near(epsilon, log_delta, resolution) for way in self.ways]

    def with_failure(self, log_delta: float) -> float:
        """Return ln(delta + failure probability), rounded up."""
        if self.log_failure == -math.inf:
            return log_delta
        total = log_add_exp(log_delta, self.log_failure)
        return min(0.0, total + UNIT * (16.0 + 4.0 * abs(total)))

    def _without_failure(self, log_delta: float) -> float:
        """Return ln(delta - failure probability), rounded down; -inf if almost nothing is left."""
        if self.log_failure == -math.inf:
            return log_delta
        if self.log_failure > log_delta - 1e-3:
            return -math.inf
        return log_delta + math.log1p(-math.exp(self.log_failure - log_delta)) - 1e-10 * (1.0 + abs(log_delta))

    def _expected(self, log_delta: float) -> float | None:
        log_rest = self._without_failure(log_delta)
        return log_rest if log_rest > -math.inf else None

    def pairs(self, log_delta: float, *, second: bool = False) -> Sequence[tuple[Pair, int]]:
        chosen = self.ways[-1 if second else 0].pairs(log_delta)
        failing = box_pairs(0.0, self.log_failure) if self.log_failure > -math.inf else []
        return [*chosen, *failing]

    def privacy_profile(self) -> CurveWithFloor:
        curves = [way.profile() for way in self.ways]

        def worse(epsilon: float, floor: float = -math.inf) -> float:
            asked = curves if epsilon > 0.0 else curves[:1]  # the total variation is the same in both orders
            return self.with_failure(max(curve(epsilon, floor) for curve in asked))

        return functools.cache(worse)

    def profiles_of_orders(self) -> tuple[CurveWithFloor, CurveWithFloor]:
        if not self.reverse:
            return super().profiles_of_orders()
        forward, backward = (self._with_failure(way.profile()) for way in self.ways)
        return forward, backward

    def _with_failure(self, curve: CurveWithFloor) -> CurveWithFloor:
        return functools.cache(lambda epsilon, floor=-math.inf: self.with_failure(curve(epsilon, floor)))


@functools.lru_cache(maxsize=64)
def box_pairs(epsilon: float, log_delta: float) -> Sequence[tuple[Pair, int]]:
    """Return the pairs of randomised response that reveals its secret with probability delta."""
    from dpcalc.notions import pld

    if epsilon < 1e-30:  # almost nothing is revealed except with probability delta
        return [(pld.from_curve(lambda e: e * 0.0 + log_delta), 1)] if log_delta > -math.inf else []
    if epsilon > 1e15 or log_delta >= 0.0:  # everything is revealed
        return [(pld.from_curve(lambda e: e * 0.0), 1)]
    return [(pld.randomised_response(epsilon=epsilon, log_delta=log_delta), 1)]


def compose(parts: Sequence[tuple[Guarantee, int]], *, one_way: bool = False) -> Composition:
    """Return the composition of [(part, count), ...]; a part without an order enters both orders.

    ``one_way``: whether only one order counts, that of a record added or of a record removed.
    """

    @functools.lru_cache(maxsize=8)  # the few deltas of one search
    def made(second: bool, log_delta: float) -> Pairs:
        return tuple(
            (pair, times * count) for part, count in parts for pair, times in part.pairs(log_delta, second=second)
        )

    two = not one_way and any(part.two_orders for part, _ in parts)
    return Composition(functools.partial(made, False), functools.partial(made, True) if two else ())
