"""Notions of privacy, as objects with one interface: what is proved of a run, and everything that follows from it.

`Gdp`, `Rdp`, `Profile` (a privacy profile delta(epsilon)), `Composition` (by the distribution of the privacy loss),
`Box` (one epsilon and delta), `Point` (a rule that gives epsilon for a delta and nothing else) and `Worst` (of several)
round up; `LowerBound` rounds down. What a notion cannot give is `NotApplicable`.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from dpcalc.errors import NotApplicable
from dpcalc.notions import composed, gaussian, renyi
from dpcalc.notions.answer import Answer
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.logspace import exp_down, log_add_exp
from dpcalc.numerics.roots import greatest, least

if TYPE_CHECKING:
    from dpcalc.notions.certificate import Certificate
    from dpcalc.notions.composed import Pairs, Parts
    from dpcalc.notions.curves import CurveWithFloor
    from dpcalc.notions.least_mu import LeastMu
    from dpcalc.notions.pld import Bound, Pair
    from dpcalc.notions.trade_off import TradeOff

LARGEST_GROUP = 1000
"""The largest group for curves that are no Gaussian privacy: a chain has as many links."""

_GROUP_ULPS = 1 << 28  # 6e-8: a chain of links costs a search for every epsilon
_STEEP = 100.0  # no search tells larger excesses of ln delta apart; steep steps slow false position down
_FARTHEST = 1e300  # a search for epsilon ends here
_BELOW = 16.0  # a curve is tabulated down to e^-16 of the target, and what is rarer counts as an infinite loss
_FLOORS = 8.0  # tables are made for every eighth ln delta, so that neighbouring targets share one


def _clipped(excess: float) -> float:
    return min(_STEEP, max(-_STEEP, excess))


class Hints(NamedTuple):
    """What spares searches time. A notion holds whatever they are.

    Attributes:
        budget: (ln delta, ulps) -> the epsilon there, in fewer evaluations than bisection takes; None where it fails.
        likely: ln delta -> about the epsilon there, in less time than one evaluation of the profile.
        rough: makes a cheaper profile, slightly larger.
        floor: a cheap lower bound on the profile.
        coarser: parts of a composition that are made coarser by 2 and by 4: they are above it by about the square.
        besides: a composition that holds as well, and is tighter where large losses count: the smaller answer is given.
    """

    budget: Callable[[float, int], float | None] | None = None
    likely: Callable[[float], float] | None = None
    rough: Callable[[], Profile] | None = None
    floor: Callable[[float], float] | None = None
    coarser: tuple[Parts, ...] = ()
    besides: Composition | None = None


NO_HINTS = Hints()
NOT_COMPOSABLE = ("nothing composes these entries", "give each as mu, as pairs or as (epsilon, delta)")


class Guarantee:
    """A notion of privacy; a subclass gives what follows from it.

    Attributes:
        form: what it is called in a ledger.
        name: what it is called in a refusal.
        no_epsilon: why an epsilon is infinite, and what helps.
        mu: of mu-GDP, where that is what is proved.
        certificate: (epsilon, or order of a Renyi curve) -> what a search found there; None where there was none.
        has_curve: whether it says something of every epsilon.
        has_renyi: whether it has a Renyi curve that composes.
        has_pairs: whether it has dominating pairs that compose.
        two_orders: whether it tells P against Q from Q against P.
        orders: of the Renyi curve, where a search for epsilon is restricted to some.
        hints: what spares searches time.
    """

    form: ClassVar[str] = "parts"
    name: ClassVar[str] = ""
    no_epsilon: ClassVar[tuple[str, str]] = ("gives no finite epsilon here", "more noise, or a larger delta")
    mu: float | None = None
    certificate: Callable[[float], Certificate | None] | None = None
    has_curve: bool = False
    has_renyi: bool = False
    has_pairs: bool = False
    two_orders: bool = False
    orders: tuple[float, ...] = ()
    hints: Hints = NO_HINTS

    @property
    def whole_mu(self) -> float:
        """A mu of which the mechanism is mu-GDP at every epsilon, in closed form; inf for none."""
        return math.inf

    def group_mu(self, size: int) -> float:
        """Return such a mu of groups of ``size`` records."""
        return up(size * self.whole_mu)

    def replacing(self, **changes: Any) -> Self:
        """Return the same notion with other fields."""
        changed = copy.copy(self)
        changed.__dict__.update(changes)
        return changed

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        """Return the least epsilon at ln delta, rounded up; a ``rough`` one may be some 1e-5 of itself above."""
        raise NotApplicable("gives no epsilon", "ask for what it gives")

    def log_delta(self, epsilon: float) -> Answer:
        """Return ln delta at epsilon, rounded up."""
        raise NotApplicable("this rule gives epsilon at a delta only", "give delta and leave epsilon out")

    def rdp(self, order: float) -> float:
        """Return the Renyi divergence at an order, rounded up."""
        raise NotApplicable(f"{self.name} gives no RDP at an order", "ask for epsilon or delta")

    # --- searches -----------------------------------------------------------------------------------------------------

    def excess(self, epsilon: float, log_delta: float) -> float:
        """Return a number that is <= 0 exactly where (epsilon, delta) is implied."""
        value = self.epsilon(log_delta).value - epsilon
        return value if math.isfinite(value) else _FARTHEST

    def sign(self, epsilon: float, log_delta: float) -> float:
        """Return a number that is <= 0 where (epsilon, delta) is implied, in less time where that is clear."""
        return self.excess(epsilon, log_delta)

    def rough_excess(self, epsilon: float, log_delta: float) -> float:
        """Return about the excess, from a coarse lattice; nan where there is none. It is no bound."""
        return math.nan

    def likely_excess(self, epsilon: float, log_delta: float) -> float:
        """Return about the excess, from no lattice; nan where that is not known. It is no bound."""
        return math.nan

    def certificate_at(self, *, epsilon: float | None = None, order: float | None = None) -> Certificate | None:
        """Return what a search found for an answer at an epsilon, or at an order."""
        return None if self.certificate is None or epsilon is None else self.certificate(epsilon)

    # --- the same notion, as it is asked ------------------------------------------------------------------------------

    def asked(self, orders: tuple[float, ...], ulps: int) -> Guarantee:
        """Return this, asked at these orders alone, and with searches that end so many representable numbers apart."""
        return self

    def rounded_down(self, ulps: int) -> LowerBound:
        """Return what holds of certain runs, as a bound that nothing can beat."""
        raise NotApplicable("is no lower bound", "use a bound that has a curve")

    def rough(self) -> Guarantee:
        """Return a cheaper notion, slightly looser."""
        return self

    def few_points(self, log_delta: float, fprs: Sequence[float], priors: Sequence[float]) -> Guarantee:
        """Return the same by few of its points, where every point is a search; see `dpcalc.notions.few_points`."""
        return self

    # --- several runs, several records --------------------------------------------------------------------------------

    def times(self, count: int) -> Guarantee:
        """Return what holds of this mechanism so many times, adaptively."""
        raise NotApplicable(*NOT_COMPOSABLE)

    def pairs(self, log_delta: float, *, second: bool = False) -> Sequence[tuple[Pair, int]]:
        """Return dominating pairs in one order of the two data sets, best about this ln delta of a composition."""
        raise NotApplicable(*NOT_COMPOSABLE)

    def grouped(self, size: int, *, slow: bool = False) -> Guarantee:
        """Return what holds of groups of ``size`` records, of a guarantee that holds of any one record.

        Every link of the chain must be covered: the guarantee is of any record of any data set. A profile that is
        ``slow`` is evaluated at few points.

        Raises:
            NotApplicable: nothing is known for groups.
        """
        if size == 1:
            return self
        raise NotApplicable("gives epsilon at a delta only, and nothing of groups", "leave out the group size")

    # --- curves -------------------------------------------------------------------------------------------------------

    def privacy_profile(self) -> CurveWithFloor:
        """Return ln delta as a function of epsilon, for the worse of both orders; what was asked is remembered."""
        raise NotApplicable("gives epsilon at a delta only", "use a bound that has a curve")

    def trade_off(self, sections: int | None = None) -> TradeOff:
        """Return what any attack achieves at most; a search over epsilon or the order takes so many sections."""
        raise NotApplicable("gives epsilon at a delta only, from which no curve follows", "give epsilon and delta")

    def tprs(self, fprs: Sequence[float], nodes: Sequence[float] | None = None) -> list[float]:
        """Return the largest rates of true positives at many rates of false ones, for a picture.

        A profile is asked at a few epsilons, ``nodes``, the same for all rates: a little loose, and never wrong.
        """
        attack = self.trade_off()
        return [attack.tpr(fpr) for fpr in fprs]

    def least_mu(self, log_delta: float) -> LeastMu:
        """Return mu, of the pair with about this ln delta_0 where no mu covers the guarantee alone.

        Args:
            log_delta: ln of delta_0, from -600 to 0; the pair has at most this.
        """
        raise NotApplicable("gives epsilon at a delta only, from which no curve follows", "give epsilon and delta")

    def with_regret(self, mu: float, log_delta: float) -> LeastMu:
        """Return a mu that holds at every epsilon, with what it overstates."""
        raise NotApplicable("gives epsilon at a delta only, from which no curve follows", "give epsilon and delta")


class _Curved(Guarantee):
    """A notion with a privacy profile, from which everything else follows."""

    has_curve = has_pairs = True

    def excess(self, epsilon: float, log_delta: float) -> float:
        return _clipped(self.log_delta(epsilon).value - log_delta)

    def times(self, count: int) -> Guarantee:
        return compose([(self, count)])

    def pairs(self, log_delta: float, *, second: bool = False) -> Sequence[tuple[Pair, int]]:
        return [(_tabulated_pair(self, _FLOORS * math.floor((log_delta - _BELOW) / _FLOORS)), 1)]

    def grouped(self, size: int, *, slow: bool = False) -> Guarantee:
        if size == 1:
            return self
        from dpcalc.notions import groups
        from dpcalc.notions.curves import sparse

        _check_group(size)
        curve = sparse(self.privacy_profile()) if slow else self.privacy_profile()
        mu = self.group_mu(size)
        return Profile(groups.chained(curve, size, mu), ulps=_GROUP_ULPS, whole_mu=mu)

    def privacy_profile(self) -> CurveWithFloor:
        curve = functools.cache(lambda epsilon: self.log_delta(epsilon).value)
        return lambda epsilon, floor=-math.inf: curve(epsilon)

    def profiles_of_orders(self) -> tuple[CurveWithFloor, CurveWithFloor]:
        """Return ln delta of P against Q, and of Q against P, where the two are told apart."""
        both = self.privacy_profile()
        return both, both

    def trade_off(self, sections: int | None = None) -> TradeOff:
        from dpcalc.notions import trade_off

        return trade_off.of_orders(*self.profiles_of_orders(), sections or trade_off.SECTIONS)

    def least_mu(self, log_delta: float) -> LeastMu:
        from dpcalc.notions import least_mu

        return least_mu.of_curve(self.privacy_profile(), log_delta)

    def with_regret(self, mu: float, log_delta: float) -> LeastMu:
        from dpcalc.notions import least_mu

        return least_mu.with_regret(self.privacy_profile(), mu, log_delta)


def _check_group(size: int) -> None:
    if size > LARGEST_GROUP:
        raise NotApplicable(f"groups of more than {LARGEST_GROUP} are for Gaussian privacy", "use a smaller group size")


@functools.lru_cache(maxsize=64)
def _tabulated_pair(part: Guarantee, floor: float) -> Pair:
    """Return the pair that a profile describes, tabulated once for each part and floor."""
    from dpcalc.notions import pld
    from dpcalc.notions.profiles import tabulated

    return pld.from_curve(tabulated(lambda e: part.log_delta(e).value, floor))


class Gdp(_Curved):
    """mu-Gaussian differential privacy."""

    form = "mu"
    has_renyi = True

    def __init__(self, mu: float) -> None:
        self.mu: float = mu

    @property
    def whole_mu(self) -> float:
        return self.mu

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        return Answer(gaussian.epsilon(mu=self.mu, log_delta_target=log_delta))

    def log_delta(self, epsilon: float) -> Answer:
        return Answer(gaussian.log_delta(mu=self.mu, epsilon=epsilon))

    def rdp(self, order: float) -> float:
        return gaussian.renyi(mu=self.mu, order=order)

    def rounded_down(self, ulps: int) -> LowerBound:
        return gaussian_lower_bound(self.mu)

    def times(self, count: int) -> Gdp:
        """Return the mechanism so many times: mu^2 adds up."""
        return Gdp(gaussian.together([(self.mu, count)]))

    def pairs(self, log_delta: float, *, second: bool = False) -> Sequence[tuple[Pair, int]]:
        from dpcalc.notions import pld

        return [(pld.gaussian_sum([(self.mu, 1)]), 1)]

    def grouped(self, size: int, *, slow: bool = False) -> Gdp:
        """Return k mu, which is exact."""
        return self if size == 1 else Gdp(up(size * self.mu))

    def trade_off(self, sections: int | None = None) -> TradeOff:
        from dpcalc.notions import trade_off

        return trade_off.of_mu(self.mu)

    def least_mu(self, log_delta: float) -> LeastMu:
        from dpcalc.notions.least_mu import LeastMu

        return LeastMu(self.mu, -math.inf, 0.0)


class Rdp(_Curved):
    """A Renyi curve order -> RDP; ``orders`` restricts the search to a list, else it is continuous.

    Where the curve is found by a search, ``certificate`` is what it found at an order; None where it is too long.
    """

    form = "rdp"
    has_renyi = True

    def __init__(
        self,
        curve: Callable[[float], float],
        orders: tuple[float, ...] = (),
        certificate: Callable[[float], Certificate | None] | None = None,
    ) -> None:
        self.curve = curve
        self.orders = orders
        self.certificate = certificate

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        """Return the least epsilon over orders and conversions, rounded up."""
        if self.orders:
            return Answer(*renyi.optimise_over(self.curve, self.orders, log_delta))
        return Answer(*renyi.optimise(self.curve, log_delta))

    def log_delta(self, epsilon: float) -> Answer:
        """Return the least ln delta over orders by Canonne et al., rounded up."""
        if self.orders:
            values = [
                (renyi.canonne_log_delta(order=a, rdp=self.curve(a), epsilon=epsilon), a)
                for a in self.orders
                if a > 1.0
            ]
            value, order = min(values, default=(0.0, max(self.orders)))
            return Answer(value, order, "canonne")
        value, order = renyi.least_log_delta(self.curve, epsilon)
        return Answer(value, order if value < 0.0 else None, "canonne")

    def rdp(self, order: float) -> float:
        return self.curve(order)

    def excess(self, epsilon: float, log_delta: float) -> float:
        if self.orders:
            return Guarantee.excess(self, epsilon, log_delta)
        value = renyi.optimise(self.curve, log_delta, rough=True).epsilon - epsilon
        return value if math.isfinite(value) else _FARTHEST

    def certificate_at(self, *, epsilon: float | None = None, order: float | None = None) -> Certificate | None:
        return None if self.certificate is None or order is None else self.certificate(order)

    def asked(self, orders: tuple[float, ...], ulps: int) -> Rdp:
        return self.replacing(orders=orders) if orders else self

    def rounded_down(self, ulps: int) -> LowerBound:
        return LowerBound(curve=self.curve)

    def times(self, count: int) -> Rdp:
        """Return the mechanism so many times: the divergences add up."""
        return Rdp(lambda order: up(count * self.curve(order), 2.0), self.orders)

    def grouped(self, size: int, *, slow: bool = False) -> Guarantee:
        if size == 1:
            return self
        _check_group(size)
        return Rdp(_group_renyi(self, size), self.orders)

    def trade_off(self, sections: int | None = None) -> TradeOff:
        from dpcalc.notions import trade_off

        return trade_off.of_renyi(self.curve, self.orders, self.privacy_profile(), sections or trade_off.SECTIONS)


def _group_renyi(one: Guarantee, size: int) -> Callable[[float], float]:
    from dpcalc.notions.groups import group_renyi

    return lambda order: group_renyi(one.rdp, order, size)


class _OfProfile(_Curved):
    """A notion that is asked by its profile alone."""

    def tprs(self, fprs: Sequence[float], nodes: Sequence[float] | None = None) -> list[float]:
        from dpcalc.notions import trade_off

        return trade_off.tprs(*self.profiles_of_orders(), fprs, trade_off.NODES if nodes is None else nodes)


class Profile(_OfProfile):
    """A privacy profile: epsilon >= 0 -> an upper bound on ln delta, non-increasing; searches end ``ulps`` apart.

    Where the profile is found by a search, ``certificate`` is what it found at an epsilon. What has the profile is
    ``whole_mu``-GDP as well, where that is finite. ``nodes`` are (epsilon, ln delta) between which the profile follows
    chords, epsilon growing from 0 and ln delta not.
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
            return _clipped(self.profile(e) - log_delta)

        guess = self.hints.budget(log_delta, self.ulps) if self.hints.budget is not None else None
        if guess is not None and excess(guess) <= 0.0:
            return Answer(guess, None, "profile")
        ceiling = 1.0
        while excess(ceiling) > 0.0:
            ceiling *= 16.0
            if ceiling > _FARTHEST:
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


_NEAR_BELOW, _NEAR_ABOVE = 0.005, 0.05  # how near to a target ln delta is told by the finest lattices
_CLEARLY = 1e-6  # where ln delta is proven to be so far above a target, no lattice need tell
_OUT_OF_REACH = 100.0  # how far from a target what is out of reach counts as


class Composition(_OfProfile):
    """An adaptive composition: (dominating pair, count), composed by the distribution of the privacy loss.

    ``reverse`` is that with P and Q in each other's place, where it matters and is asked for: the worse one counts.
    Pairs that are best made for a certain ln delta are given as functions of it; they hold for every other one, too.
    Where the pairs are found by a search, ``certificate`` is what it found, whatever the epsilon. With a probability of
    which ``log_failure`` is the logarithm nothing is promised: every delta is larger by that.
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
    def ways(self) -> tuple[Parts, ...]:
        """The compositions that are asked for, in the orders of the two data sets that are told apart."""
        return (self.parts, self.reverse) if self.reverse else (self.parts,)

    @property
    def whole_mu(self) -> float:
        """A mu that covers the pairs, each in closed form.

        Of a mixture of Gaussian mechanisms it is the largest mu among them: delta is a mean of their deltas, for the
        same draw of which it is, and grows with mu. No smaller mu covers a mixture with positive weights. Mixtures
        compose as the mechanisms that dominate them: mu^2 adds.
        """
        return self.group_mu(1)

    def group_mu(self, size: int) -> float:
        if self.log_failure > -math.inf:
            return math.inf
        return max(composed.whole_mu(parts, size) for parts in self.ways)

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        if (log_rest := self._without_failure(log_delta)) == -math.inf:
            return Answer(math.inf, None, "pld")
        answer = composed.epsilon_of(composed.pairs_for(self.parts, log_rest), log_rest, rough)
        if self.reverse and not composed.keeps(self.reverse, answer.value, log_rest):
            other = composed.epsilon_of(composed.pairs_for(self.reverse, log_rest), log_rest, rough)
            answer = max(answer, other, key=lambda answer: answer.value)
        if self.hints.besides is None:
            return answer
        return min(answer, self.hints.besides.epsilon(log_delta, rough=rough), key=lambda answer: answer.value)

    def log_delta(self, epsilon: float) -> Answer:
        answer = composed.log_delta(self.parts, epsilon)
        if self.reverse and not composed.keeps(self.reverse, epsilon, answer.value):
            answer = max(answer, composed.log_delta(self.reverse, epsilon), key=lambda answer: answer.value)
        answer = answer._replace(value=self.with_failure(answer.value))
        if self.hints.besides is None:
            return answer
        return min(answer, self.hints.besides.log_delta(epsilon), key=lambda answer: answer.value)

    def excess(self, epsilon: float, log_delta: float) -> float:
        return _clipped(self.excess_about(epsilon, log_delta))

    def excess_about(self, epsilon: float, log_delta: float) -> float:
        """Return `log_delta` at epsilon, less this; it takes less time where that is about 0.

        Where one order of the two data sets is above it, the other one is not asked.
        """
        expected = self._expected(log_delta)
        value = composed.log_delta(self.parts, epsilon, expected).value
        if self.reverse and self.with_failure(value) <= log_delta:
            made_for = composed.USUAL_LOG_DELTA if expected is None else expected
            if not composed.keeps(self.reverse, epsilon, value, made_for):
                value = max(value, composed.log_delta(self.reverse, epsilon, expected).value)
        return self.with_failure(value) - log_delta

    def rough_excess(self, epsilon: float, log_delta: float) -> float:
        """Return about `excess_about`, from a lattice that tells ln delta to about 2e-5 and from coarser parts.

        Of two orders one is asked. It is no bound.
        """
        expected = self._expected(log_delta)
        if self.hints.coarser:
            value = composed.extrapolated(self.hints.coarser, epsilon, expected)
        else:
            value = composed.log_delta(self.parts, epsilon, expected, True).value
        return self.with_failure(value) - log_delta

    def likely_excess(self, epsilon: float, log_delta: float) -> float:
        if (log_rest := self._without_failure(log_delta)) == -math.inf:
            return _OUT_OF_REACH
        return max(
            composed.likely_log_delta(composed.pairs_for(parts, log_rest), epsilon, log_rest) for parts in self.ways
        ) - log_rest  # fmt: skip

    def sign(self, epsilon: float, log_delta: float) -> float:
        """Return a number that is <= 0 where `log_delta` at epsilon is at most this, in less time where that is clear.

        A single attempt on a coarser lattice is an upper bound as well, and tells all but what is close.
        """
        if (log_rest := self._without_failure(log_delta)) == -math.inf:
            return _OUT_OF_REACH
        if epsilon > 0.0:
            near = self._bounds_near(epsilon, log_rest, composed.FAIR)
            value = max(bound.value for bound in near) - log_rest
            lowest = max(bound.value - bound.rounding - bound.lattice for bound in near) - log_rest
            if not -_NEAR_BELOW < value <= _NEAR_ABOVE or lowest > _CLEARLY:
                return value
        return self.replacing(log_failure=-math.inf).excess_about(epsilon, log_rest)

    def upper_excess(self, epsilon: float, log_delta: float, resolution: int) -> float:
        """Return an upper bound on ln delta at epsilon, less this, which is close where it is about 0."""
        if (log_rest := self._without_failure(log_delta)) == -math.inf:
            return _OUT_OF_REACH
        return max(bound.value for bound in self._bounds_near(epsilon, log_rest, resolution)) - log_rest

    def _bounds_near(self, epsilon: float, log_delta: float, resolution: int) -> list[Bound]:
        pairs = (composed.pairs_for(parts, log_delta) for parts in self.ways)
        return [composed.bound_near(made, epsilon, log_delta, resolution) for made in pairs]

    def with_failure(self, log_delta: float) -> float:
        """Return ln of delta and of the probability with which nothing is promised, together, rounded up."""
        if self.log_failure == -math.inf:
            return log_delta
        total = log_add_exp(log_delta, self.log_failure)
        return min(0.0, total + UNIT * (16.0 + 4.0 * abs(total)))

    def _without_failure(self, log_delta: float) -> float:
        """Return what a failure leaves of ln delta, rounded down; -inf where that is next to nothing."""
        if self.log_failure == -math.inf:
            return log_delta
        if self.log_failure > log_delta - 1e-3:
            return -math.inf
        return log_delta + math.log1p(-math.exp(self.log_failure - log_delta)) - 1e-10 * (1.0 + abs(log_delta))

    def _expected(self, log_delta: float) -> float | None:
        log_rest = self._without_failure(log_delta)
        return log_rest if log_rest > -math.inf else None

    def pairs(self, log_delta: float, *, second: bool = False) -> Sequence[tuple[Pair, int]]:
        chosen = composed.pairs_for(self.reverse if second and self.reverse else self.parts, log_delta)
        failing = _box_pairs(0.0, self.log_failure) if self.log_failure > -math.inf else []
        return [*chosen, *failing]

    def privacy_profile(self) -> CurveWithFloor:
        curves = [composed.profile(_hashable(parts)) for parts in self.ways]

        def worse(epsilon: float, floor: float = -math.inf) -> float:
            return self.with_failure(max(curve(epsilon, floor) for curve in curves))

        return functools.cache(worse)

    def profiles_of_orders(self) -> tuple[CurveWithFloor, CurveWithFloor]:
        if not self.reverse:
            return super().profiles_of_orders()
        forward, backward = map(self._profile, self.ways)
        return forward, backward

    def _profile(self, parts: Parts) -> CurveWithFloor:
        curve = composed.profile(_hashable(parts))
        return functools.cache(lambda epsilon, floor=-math.inf: self.with_failure(curve(epsilon, floor)))


def _hashable(parts: Parts) -> Parts:
    return parts if callable(parts) else tuple(parts)


class Box(_Curved):
    """(epsilon, delta)-DP in both orders, and nothing else known: -inf for ln delta is pure privacy."""

    form = "point"
    name = "(epsilon, delta)-DP"

    def __init__(self, epsilon0: float, log_delta0: float = -math.inf) -> None:
        self.epsilon0 = epsilon0
        self.log_delta0 = log_delta0
        self.has_renyi = log_delta0 == -math.inf  # that of randomised response

    @property
    def point(self) -> tuple[float, float]:
        """(epsilon, ln delta)."""
        return self.epsilon0, self.log_delta0

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        return Profile(self.privacy_profile()).epsilon(log_delta)

    def log_delta(self, epsilon: float) -> Answer:
        return Answer(self.privacy_profile()(epsilon), None, "profile")

    def rdp(self, order: float) -> float:
        if not self.has_renyi:
            return super().rdp(order)
        from dpcalc.notions.randomised_response import response_renyi

        return response_renyi(self.epsilon0, order)

    def pairs(self, log_delta: float, *, second: bool = False) -> Sequence[tuple[Pair, int]]:
        return _box_pairs(*self.point)

    def privacy_profile(self) -> CurveWithFloor:
        from dpcalc.notions.randomised_response import box_profile

        curve = box_profile(self.point)
        return lambda epsilon, floor=-math.inf: curve(epsilon)

    def trade_off(self, sections: int | None = None) -> TradeOff:
        from dpcalc.notions import trade_off

        return trade_off.of_box(*self.point)

    def least_mu(self, log_delta: float) -> LeastMu:
        from dpcalc.notions import least_mu

        return least_mu.of_box(self.privacy_profile(), *self.point)


@functools.lru_cache(maxsize=64)
def _box_pairs(epsilon: float, log_delta: float) -> Sequence[tuple[Pair, int]]:
    from dpcalc.notions import pld

    if epsilon < 1e-30:  # next to nothing is told but with probability delta
        return [(pld.from_curve(lambda e: e * 0.0 + log_delta), 1)] if log_delta > -math.inf else []
    if epsilon > 1e15 or log_delta >= 0.0:  # everything is told
        return [(pld.from_curve(lambda e: e * 0.0), 1)]
    return [(pld.randomised_response(epsilon=epsilon, log_delta=log_delta), 1)]


class Point(Guarantee):
    """A rule that gives epsilon for ln delta and nothing else, for comparison rows."""

    no_epsilon = ("is false at this epsilon (see `explain`)", "use the exact conversion")

    def __init__(self, rule: Callable[[float], float]) -> None:
        self.rule = rule

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        """Return the rule's epsilon."""
        return Answer(self.rule(log_delta), None, "formula")

    def rdp(self, order: float) -> float:
        raise NotApplicable("this rule gives epsilon at a delta only", "give delta and leave epsilon out")


class LowerBound(Guarantee):
    """A lower bound on the privacy loss of certain runs: no guarantee is below it, and every answer rounds down.

    ``profile`` is a lower bound on ln delta at epsilon, ``curve`` one on the Renyi divergence at an order, each None
    where it is not known. Neither follows from the other, since the conversions of `Rdp` give upper bounds only.
    """

    def __init__(
        self,
        profile: Callable[[float], float] | None = None,
        curve: Callable[[float], float] | None = None,
        mu: float | None = None,
        ulps: int = 2,
    ) -> None:
        self.profile = profile
        self.curve = curve
        self.mu = mu
        self.ulps = ulps

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        """Return the greatest epsilon that is proved too small for ln delta, rounded down; 0 where none is."""
        profile = self._profile()

        def spare(e: float) -> float:
            return _clipped(log_delta - profile(e))

        if spare(0.0) >= 0.0:
            return Answer(0.0, None, self._conversion())
        ceiling = 1.0
        while spare(ceiling) <= 0.0:
            ceiling *= 16.0
            if ceiling > _FARTHEST:
                return Answer(_FARTHEST, None, self._conversion())
        return Answer(greatest(spare, 0.0, ceiling, ulps=self.ulps), None, self._conversion())

    def log_delta(self, epsilon: float) -> Answer:
        """Return ln delta at epsilon, rounded down."""
        return Answer(self._profile()(epsilon), None, self._conversion())

    def rdp(self, order: float) -> float:
        """Return the Renyi divergence at this order, rounded down."""
        if self.curve is None:
            raise NotApplicable("a privacy profile gives no RDP at an order", "ask for epsilon or delta")
        return self.curve(order)

    def excess(self, epsilon: float, log_delta: float) -> float:
        return _clipped(self.log_delta(epsilon).value - log_delta)

    def grouped(self, size: int, *, slow: bool = False) -> LowerBound:
        """Return the same: a group may have one record."""
        return self

    def advantage(self) -> float | None:
        """Return an advantage that the best attack on the worst run has at least, rounded down; None: not known.

        It is delta at epsilon 0.
        """
        return None if self.profile is None else exp_down(self.profile(0.0))

    def tpr(self) -> Callable[[float], float] | None:
        """Return rate of false positives -> a rate of true ones that no guarantee is below; None where not known."""
        from dpcalc.notions import trade_off

        if self.mu is not None:
            return functools.partial(trade_off.tpr_of_mu_down, self.mu)
        return None if self.profile is None else trade_off.tpr_of_profile_down(self.profile)

    def _profile(self) -> Callable[[float], float]:
        if self.profile is None:
            raise NotApplicable(
                "bounds the Renyi divergence from below, from which no lower value of epsilon or delta follows",
                "give --order to see it",
            )
        return self.profile

    def _conversion(self) -> str:
        return "profile" if self.mu is None else "exact"


def gaussian_lower_bound(mu: float) -> LowerBound:
    """Return the lower bound of runs that are as easy to distinguish as N(0, 1) and N(mu, 1)."""
    return LowerBound(
        lambda epsilon: gaussian.log_delta_down(mu=mu, epsilon=epsilon),
        lambda order: gaussian.renyi_down(mu=mu, order=order),
        mu,
    )


class Worst(_Curved):
    """What holds of each of several records, as a guarantee for whichever is worst off: the largest of their answers.

    Of lower bounds it is one for that record.
    """

    def __init__(self, members: Sequence[Guarantee]) -> None:
        self.members = members
        self.has_renyi = all(member.has_renyi for member in members)
        self.has_pairs = all(isinstance(member, (Gdp, Rdp, Profile)) for member in members)  # it is tabulated

    @property
    def whole_mu(self) -> float:
        return max(member.whole_mu for member in self.members)

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        """Return the largest epsilon at ln delta."""
        return max((member.epsilon(log_delta) for member in self.members), key=lambda answer: answer.value)

    def log_delta(self, epsilon: float) -> Answer:
        """Return the largest ln delta at epsilon."""
        return max((member.log_delta(epsilon) for member in self.members), key=lambda answer: answer.value)

    def rdp(self, order: float) -> float:
        """Return the largest Renyi divergence at this order."""
        return max(member.rdp(order) for member in self.members)

    def excess(self, epsilon: float, log_delta: float) -> float:
        return max(member.excess(epsilon, log_delta) for member in self.members)

    def grouped(self, size: int, *, slow: bool = False) -> Guarantee:
        if size == 1 or not all(isinstance(member, Rdp) for member in self.members):
            return super().grouped(size, slow=slow)
        _check_group(size)
        return Rdp(_group_renyi(self, size))

    def privacy_profile(self) -> CurveWithFloor:
        curves = [member.privacy_profile() for member in self.members]
        return lambda epsilon, floor=-math.inf: max(curve(epsilon, floor) for curve in curves)

    def trade_off(self, sections: int | None = None) -> TradeOff:
        from dpcalc.notions import trade_off

        return trade_off.worst_of([member.trade_off(sections) for member in self.members])

    def tprs(self, fprs: Sequence[float], nodes: Sequence[float] | None = None) -> list[float]:
        return [max(rates) for rates in zip(*(member.tprs(fprs, nodes) for member in self.members), strict=True)]

    def least_mu(self, log_delta: float) -> LeastMu:
        if all(isinstance(member, Gdp) for member in self.members):
            return Gdp(self.whole_mu).least_mu(log_delta)
        return super().least_mu(log_delta)


def worst(members: Sequence[Guarantee]) -> Guarantee:
    """Return the guarantee for whichever of several records is worst off."""
    of_mu = [(member.mu, member) for member in members if member.mu is not None]
    if len(of_mu) == len(members):
        return max(of_mu, key=lambda pair: pair[0])[1]
    return members[0] if len(members) == 1 else Worst([m for m in members if not isinstance(m, Worst)])


def compose(parts: Sequence[tuple[Guarantee, int]], *, one_way: bool = False) -> Composition:
    """Return the composition of dominating pairs, [(part, count), ...]; what holds in both orders enters both.

    ``one_way`` is whether only one order is spoken of: a record added, or one removed.
    """

    @functools.lru_cache(maxsize=8)  # the few deltas of one search
    def made(second: bool, log_delta: float) -> Pairs:
        return tuple(
            (pair, times * count) for part, count in parts for pair, times in part.pairs(log_delta, second=second)
        )

    two = not one_way and any(part.two_orders for part, _ in parts)
    return Composition(functools.partial(made, False), functools.partial(made, True) if two else ())
