"""Guarantees: objects that answer epsilon at delta, delta at epsilon and the Renyi divergence at an order.

Five kinds round up, with one interface: `Gdp`, `Rdp`, `Profile` (a privacy profile delta(epsilon)), `Composition` (by
the distribution of the privacy loss) and `Point` (a rule that gives epsilon for a delta and nothing else).
`LowerBound` rounds down.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.errors import Infeasible, NotApplicable
from dpcalc.notions import gaussian, renyi
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.numerics.roots import greatest, least

if TYPE_CHECKING:
    from typing import TypeAlias

    from dpcalc.notions.certificate import Certificate
    from dpcalc.notions.pld import Bound, Pair

    Parts: TypeAlias = Sequence[tuple[Pair, int]] | Callable[[float], Sequence[tuple[Pair, int]]]


class Answer(NamedTuple):
    """An epsilon (or ln delta) with the order and conversion that gave it, where there is one.

    ``rounding`` bounds what rounding and tails cut off add to ln delta; ``lattice`` bounds what it adds to split losses
    between lattice points and to count rare ones as infinite.
    """

    value: float
    order: float | None = None
    conversion: str = "exact"
    at_edge: bool = False
    rounding: float = 0.0
    lattice: float = 0.0


class Gdp(NamedTuple):
    """mu-Gaussian differential privacy."""

    mu: float

    def epsilon(self, log_delta: float) -> Answer:
        """Return the least epsilon at ln delta, rounded up."""
        return Answer(gaussian.epsilon(mu=self.mu, log_delta_target=log_delta))

    def log_delta(self, epsilon: float) -> Answer:
        """Return ln delta at epsilon, rounded up."""
        return Answer(gaussian.log_delta(mu=self.mu, epsilon=epsilon))

    def rdp(self, order: float) -> float:
        """Return the RDP at this order, rounded up."""
        return gaussian.renyi(mu=self.mu, order=order)


class Rdp(NamedTuple):
    """A Renyi curve order -> RDP; ``orders`` restricts the search to a list, else it is continuous.

    Where the curve is found by a search, ``certificate`` is what it found at an order; None where it is too long.
    """

    curve: Callable[[float], float]
    orders: tuple[float, ...] = ()
    certificate: Callable[[float], Certificate | None] | None = None

    def epsilon(self, log_delta: float) -> Answer:
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
        """Return the RDP at this order, rounded up."""
        return self.curve(order)


class Profile(NamedTuple):
    """A privacy profile: epsilon >= 0 -> an upper bound on ln delta, non-increasing; searches end ``ulps`` apart.

    Where the profile is found by a search, ``certificate`` is what it found at an epsilon, and ``budget`` gives the
    epsilon for ln delta and ulps in fewer evaluations than bisection does, None where it fails, ``likely`` about the
    epsilon for ln delta in less time than one evaluation, and ``rough`` a profile hardly above this one that takes less
    time. ``floor`` takes less time too, and this one is not below it. What has the profile is ``whole_mu``-GDP as well,
    where that is finite. ``nodes`` are (epsilon, ln delta) between which the profile follows chords, epsilon growing
    from 0 and ln delta not.
    """

    profile: Callable[[float], float]
    ulps: int = 2
    certificate: Callable[[float], Certificate] | None = None
    budget: Callable[[float, int], float | None] | None = None
    whole_mu: float = math.inf
    nodes: tuple[tuple[float, float], ...] = ()
    likely: Callable[[float], float] | None = None
    rough: Callable[[], Profile] | None = None
    floor: Callable[[float], float] | None = None

    def epsilon(self, log_delta: float) -> Answer:
        """Return the least epsilon at ln delta, rounded up (inf if none below 1e300)."""

        def excess(e: float) -> float:
            return min(100.0, max(-100.0, self.profile(e) - log_delta))  # steep steps slow false position down

        found = self.budget(log_delta, self.ulps) if self.budget is not None else None
        if found is not None and excess(found) <= 0.0:
            return Answer(found, None, "profile")
        ceiling = 1.0
        while excess(ceiling) > 0.0:
            ceiling *= 16.0
            if ceiling > 1e300:
                return Answer(math.inf)
        return Answer(least(excess, 0.0, ceiling, ulps=self.ulps), None, "profile")

    def log_delta(self, epsilon: float) -> Answer:
        """Return ln delta at epsilon, rounded up."""
        return Answer(self.profile(epsilon), None, "profile")

    def rdp(self, order: float) -> float:
        """Raise NotApplicable: a profile has no RDP here."""
        raise NotApplicable("a privacy profile gives no RDP at an order", "ask for epsilon or delta")


_FAIR, _ROUGH, _COARSE = 512, 320, 64  # points per standard deviation
_FAR = 100.0  # how far from a target what is out of reach counts as
_BELOW, _ABOVE = 0.005, 0.05  # how near to a target ln delta is told by the finest lattices
_CLEARLY = 1e-6  # where ln delta is proven to be so far above a target, no lattice need tell


class Composition(NamedTuple):
    """An adaptive composition: (dominating pair, count), composed by the distribution of the privacy loss.

    ``reverse`` is that with P and Q in each other's place, where it matters and is asked for: the worse one counts.
    Pairs that are best made for a certain ln delta are given as functions of it; they hold for every other one, too.
    Where the pairs are found by a search, ``certificate`` is what it found, whatever the epsilon. With a probability of
    which ``log_failure`` is the logarithm nothing is promised: every delta is larger by that. ``coarser`` are parts for
    searches that are made in less time, with what is made coarser by 2 and by 4: they are above ``parts`` by about the
    square of that. ``besides`` holds as well, where a lattice of large losses is coarse: `epsilon` and `log_delta` are
    the smaller of the two.
    """

    parts: Parts
    reverse: Parts = ()
    certificate: Callable[[float], Certificate] | None = None
    log_failure: float = -math.inf
    coarser: tuple[Parts, ...] = ()
    besides: Composition | None = None

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        """Return the least epsilon at ln delta, rounded up; ``rough`` ones may be some 1e-5 of themselves above."""
        if (log_left := self._left(log_delta)) == -math.inf:
            return Answer(math.inf, None, "pld")
        answer = _composed_epsilon(_made(self.parts, log_left), log_left, rough)
        if self.reverse and not _keeps(self.reverse, answer.value, log_left):
            other = _composed_epsilon(_made(self.reverse, log_left), log_left, rough)
            answer = max(answer, other, key=lambda answer: answer.value)
        if self.besides is None:
            return answer
        return min(answer, self.besides.epsilon(log_delta, rough=rough), key=lambda answer: answer.value)

    def log_delta(self, epsilon: float) -> Answer:
        """Return ln delta at epsilon, rounded up."""
        answer = _log_delta_of(self.parts, epsilon)
        if self.reverse and not _keeps(self.reverse, epsilon, answer.value):
            answer = max(answer, _log_delta_of(self.reverse, epsilon), key=lambda answer: answer.value)
        answer = answer._replace(value=self.with_failure(answer.value))
        if self.besides is None:
            return answer
        return min(answer, self.besides.log_delta(epsilon), key=lambda answer: answer.value)

    def excess_about(self, epsilon: float, log_delta: float, *, rough: bool = False) -> float:
        """Return `log_delta` at epsilon, less this; it takes less time where that is about 0.

        Where one order of the two data sets is above it, the other one is not asked.

        Args:
            epsilon: at least 0.
            log_delta: below 0.
            rough: whether a number near it will do, from a lattice that tells ln delta to about 2e-5 and from coarser
                parts; of two orders one is asked. It is no bound.
        """
        expected = log_left if (log_left := self._left(log_delta)) > -math.inf else None
        if rough and self.coarser:
            return self.with_failure(_extrapolated(self.coarser, epsilon, expected)) - log_delta
        value = _log_delta_of(self.parts, epsilon, expected, rough).value
        both = self.reverse and not rough and self.with_failure(value) <= log_delta
        if both and not _keeps(self.reverse, epsilon, value, _USUAL_LOG_DELTA if expected is None else expected):
            value = max(value, _log_delta_of(self.reverse, epsilon, expected).value)
        return self.with_failure(value) - log_delta

    def with_failure(self, log_delta: float) -> float:
        """Return ln of delta and of the probability with which nothing is promised, together, rounded up."""
        if self.log_failure == -math.inf:
            return log_delta
        total = log_add_exp(log_delta, self.log_failure)
        return min(0.0, total + UNIT * (16.0 + 4.0 * abs(total)))

    def _left(self, log_delta: float) -> float:
        """Return what a failure leaves of ln delta, rounded down; -inf where that is next to nothing."""
        if self.log_failure == -math.inf:
            return log_delta
        if self.log_failure > log_delta - 1e-3:
            return -math.inf
        return log_delta + math.log1p(-math.exp(self.log_failure - log_delta)) - 1e-10 * (1.0 + abs(log_delta))

    @property
    def orders(self) -> tuple[Parts, ...]:
        """The compositions that are asked for."""
        return (self.parts, self.reverse) if self.reverse else (self.parts,)

    def excess(self, epsilon: float, log_delta: float) -> float:
        """Return a number that is <= 0 where `log_delta` at epsilon is at most this, in less time where that is clear.

        A single attempt on a coarser lattice is an upper bound as well, and tells all but what is close.
        """
        if (log_left := self._left(log_delta)) == -math.inf:
            return _FAR
        whole = self._replace(log_failure=-math.inf)
        if epsilon > 0.0:
            near = [_bound_near(_made(parts, log_left), epsilon, log_left, _FAIR) for parts in self.orders]
            value = max(bound.value for bound in near) - log_left
            least = max(bound.value - bound.rounding - bound.lattice for bound in near) - log_left
            if not -_BELOW < value <= _ABOVE or least > _CLEARLY:
                return value
        return whole.excess_about(epsilon, log_left)

    def rough_excess(self, epsilon: float, log_delta: float, resolution: int) -> float:
        """Return an upper bound on ln delta at epsilon, less this, which is close where it is about 0."""
        if (log_left := self._left(log_delta)) == -math.inf:
            return _FAR
        found = (_bound_near(_made(parts, log_left), epsilon, log_left, resolution) for parts in self.orders)
        return max(bound.value for bound in found) - log_left

    def likely_excess(self, epsilon: float, log_delta: float) -> float:
        """Return about ln delta at epsilon, less this: no bound, and quick where parts are many."""
        if (log_left := self._left(log_delta)) == -math.inf:
            return _FAR
        return max(_likely_log_delta(_made(parts, log_left), epsilon, log_left) for parts in self.orders) - log_left

    def rdp(self, order: float) -> float:
        """Raise NotApplicable: a privacy-loss distribution has no RDP here."""
        raise NotApplicable("a privacy-loss distribution gives no RDP at an order", "ask for epsilon or delta")


_USUAL_LOG_DELTA = -24.0
_LEAST_LOG_DELTA = -3000.0
_WELL_ABOVE = 0.75
_ABOUT = 4.0  # what parts leave out is rarer than the delta that they are made for by a factor of some e^12
_ACCURATE = 0.1


def _made(parts: Parts, log_delta: float) -> tuple[tuple[Pair, int], ...]:
    """Return the parts that are best for this ln delta."""
    return tuple(parts(log_delta) if callable(parts) else parts)


def _log_delta_of(parts: Parts, epsilon: float, expected: float | None = None, rough: bool = False) -> Answer:
    """Return ln delta at epsilon, which may be expected to be about so much; of parts made for a delta, about this.

    Where it is about what was expected, the parts are those that tell the epsilon there.
    """
    target = _USUAL_LOG_DELTA if expected is None else expected
    answer = _composed_log_delta(_made(parts, target), epsilon, expected, rough)
    if expected is not None and abs(answer.value - expected) < _ABOUT:
        return answer
    # What parts leave out is about as rare as the delta that they are made for: an answer near it may be all of that.
    while callable(parts) and -math.inf < answer.value <= _WELL_ABOVE * target and target > _LEAST_LOG_DELTA:
        target = 2.0 * min(answer.value, target)
        nearer = _composed_log_delta(_made(parts, target), epsilon, None, rough)
        answer = min(answer, nearer, key=lambda found: found.value)
    if answer.rounding + answer.lattice > _ACCURATE:
        # An answer that is mostly error may be above those at smaller epsilons, which hold here, too.
        of_gaussian = gaussian.log_delta(mu=whole_mu_of(parts), epsilon=epsilon)
        found = min(composed(parts)(epsilon), of_gaussian)
        answer = answer if answer.value <= found else Answer(found, None, "pld")
    return answer


def whole_mu_of(parts: Parts, size: int = 1) -> float:
    """Return a mu of which a composition is mu-GDP at every epsilon, by the farthest laws of each pair; inf for none.

    Of groups it is so many times that, or what it is where a step uses records of the group alone, if that is less.
    """
    made = _made(parts, _USUAL_LOG_DELTA)
    farthest = [(min(gaussian.of_group(pair.whole_mu, size), pair.largest_mu), count) for pair, count in made]
    return gaussian.together(farthest) if all(math.isfinite(mu) for mu, _ in farthest) else math.inf


_TARGETS = (-2.0, -6.0, -14.0, -28.0, -50.0, -90.0, -160.0, -300.0, -600.0)
"""The ln delta about which the laws of a composition are computed; one law answers for all that is near it."""

_OF_INFINITE = 2.0**100  # no finite loss is so large: what a law leaves there is the mass of its infinite ones
_NEAR_THEM = 1.5  # of ln delta: an answer that is so near to that mass may be all of it


def composed(parts: Parts) -> Callable[..., float]:
    """Return ln delta of a composition as a function of epsilon and, for what is less than close below it, a floor.

    It never rises with epsilon, whatever else it was asked.
    """
    return _composed(parts if callable(parts) else tuple(parts))


@functools.lru_cache(maxsize=16)
def _composed(parts: Parts) -> Callable[..., float]:
    """Return the profile of a composition, from laws made about one ln delta after another until one is near.

    Each law is of finite losses and infinite ones, so that its delta falls as epsilon grows; and the smaller it is, the
    more laws are asked. Whoever asks for the same composition shares the laws, and what they were asked.
    """

    @functools.cache
    def law(target: float) -> tuple[Callable[[float], float], float]:
        from dpcalc.notions import pld

        curve = pld.curve(_made(parts, target), log_delta_target=target, resolution=_FAIR)
        return curve, curve(_OF_INFINITE)

    @functools.cache
    def curve(epsilon: float, floor: float = -math.inf) -> float:
        best = 0.0
        for target, following in zip(_TARGETS, (*_TARGETS[1:], -math.inf), strict=True):
            about, infinite = law(target)
            value = about(epsilon)
            best = min(best, value)
            if best <= floor or (best > 0.5 * (target + following) and value > infinite + _NEAR_THEM):
                break
        return best

    return curve


def _extrapolated(coarser: tuple[Parts, ...], epsilon: float, expected: float | None) -> float:
    """Return about ln delta at epsilon from parts that are coarser by 2 and by 4; no bound.

    With an excess of c h^2 that of 4 is above that of 2 by 12 c, which is 4 times what that of 2 is too high by.
    """
    target = _USUAL_LOG_DELTA if expected is None else expected
    value = _log_delta_of(coarser[0], epsilon, expected, True).value
    near, far = (_likely_log_delta(_made(parts, target), epsilon, target) for parts in coarser)
    return min(0.0, value - _clipped(0.25 * (far - near)))


def _clipped(x: float) -> float:
    return min(0.1, max(-0.1, x))


def _keeps(parts: Parts, epsilon: float, log_delta: float, made_for: float | None = None) -> bool:
    """Return whether a coarse lattice tells that the parts keep to ln delta at epsilon: no finer one is needed then."""
    if not (0.0 < epsilon < math.inf and -math.inf < log_delta < 0.0):
        return False
    made = _made(parts, log_delta if made_for is None else made_for)
    return _bound_near(made, epsilon, log_delta, _COARSE).value <= log_delta


@functools.lru_cache(maxsize=64)
def _composed_epsilon(parts: tuple[tuple[Pair, int], ...], log_delta: float, rough: bool = False) -> Answer:
    """Return the epsilon of a composition; bounds that compose the same parts share the answer."""
    from dpcalc.notions import pld

    bound = pld.epsilon(parts, log_delta_target=log_delta, resolution=_ROUGH if rough else pld.RESOLUTION)
    if rough and not bound.lattice < _ACCURATE:  # as where few large losses count: it may be 1e-3 above the best
        return _composed_epsilon(parts, log_delta)
    return Answer(bound.value, None, "pld", False, bound.rounding, bound.lattice)


@functools.lru_cache(maxsize=64)
def _composed_log_delta(
    parts: tuple[tuple[Pair, int], ...], epsilon: float, expected: float | None = None, rough: bool = False
) -> Answer:
    from dpcalc.notions import pld

    resolution = _FAIR if rough else pld.RESOLUTION
    bound = pld.log_delta(parts, epsilon=epsilon, expected=expected, resolution=resolution)
    for halvings in range(1, 6):
        if bound.value < -1.0 or epsilon == 0.0 or bound.rounding + bound.lattice < _ACCURATE:
            break
        # For a very large epsilon the bound may be mostly rounding; a bound at a smaller epsilon holds there, too.
        nearer = pld.log_delta(parts, epsilon=math.ldexp(epsilon, -halvings))
        bound = min(bound, nearer, key=lambda b: b.value)
    return Answer(bound.value, None, "pld", False, bound.rounding, bound.lattice)


@functools.lru_cache(maxsize=64)
def _bound_near(parts: tuple[tuple[Pair, int], ...], epsilon: float, log_delta: float, resolution: int) -> Bound:
    from dpcalc.notions import pld

    return pld.bound_near(parts, epsilon=epsilon, log_delta_target=log_delta, resolution=resolution)


@functools.lru_cache(maxsize=64)
def _likely_log_delta(parts: tuple[tuple[Pair, int], ...], epsilon: float, log_delta: float) -> float:
    from dpcalc.notions import pld

    return pld.likely_log_delta(parts, epsilon=epsilon, log_delta_target=log_delta)


class Point(NamedTuple):
    """A rule that gives epsilon for ln delta and nothing else, for comparison rows."""

    rule: Callable[[float], float]

    def epsilon(self, log_delta: float) -> Answer:
        """Return the rule's epsilon."""
        return Answer(self.rule(log_delta), None, "formula")

    def log_delta(self, epsilon: float) -> Answer:
        """Raise NotApplicable: the rule has no delta at an epsilon."""
        raise NotApplicable("this rule gives epsilon at a delta only", "give delta and leave epsilon out")

    def rdp(self, order: float) -> float:
        """Raise NotApplicable: the rule has no RDP."""
        raise NotApplicable("this rule gives epsilon at a delta only", "give delta and leave epsilon out")


class LowerBound(NamedTuple):
    """A lower bound on the privacy loss of certain runs: no guarantee is below it, and every answer rounds down.

    ``profile`` is a lower bound on ln delta at epsilon, ``curve`` one on the Renyi divergence at an order, each None
    where it is not known. Neither follows from the other, since the conversions of `Rdp` give upper bounds only.
    """

    profile: Callable[[float], float] | None = None
    curve: Callable[[float], float] | None = None
    mu: float | None = None
    ulps: int = 2

    def epsilon(self, log_delta: float) -> Answer:
        """Return the greatest epsilon that is proved too small for ln delta, rounded down; 0 where none is."""
        profile = self._profile()

        def spare(e: float) -> float:
            return min(100.0, max(-100.0, log_delta - profile(e)))

        if spare(0.0) >= 0.0:
            return Answer(0.0, None, self._conversion())
        ceiling = 1.0
        while spare(ceiling) <= 0.0:
            ceiling *= 16.0
            if ceiling > 1e300:
                return Answer(1e300, None, self._conversion())
        return Answer(greatest(spare, 0.0, ceiling, ulps=self.ulps), None, self._conversion())

    def log_delta(self, epsilon: float) -> Answer:
        """Return ln delta at epsilon, rounded down."""
        return Answer(self._profile()(epsilon), None, self._conversion())

    def rdp(self, order: float) -> float:
        """Return the Renyi divergence at this order, rounded down."""
        if self.curve is None:
            raise NotApplicable("a privacy profile gives no RDP at an order", "ask for epsilon or delta")
        return self.curve(order)

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


class Worst(NamedTuple):
    """What holds of each of several records, as a guarantee for whichever is worst off: the largest of their answers.

    Of lower bounds it is one for that record.
    """

    members: Sequence[Gdp | Rdp | Profile | Composition | Point | LowerBound]

    def epsilon(self, log_delta: float) -> Answer:
        """Return the largest epsilon at ln delta."""
        return max((member.epsilon(log_delta) for member in self.members), key=lambda answer: answer.value)

    def log_delta(self, epsilon: float) -> Answer:
        """Return the largest ln delta at epsilon."""
        return max((member.log_delta(epsilon) for member in self.members), key=lambda answer: answer.value)

    def rdp(self, order: float) -> float:
        """Return the largest Renyi divergence at this order."""
        return max(member.rdp(order) for member in self.members)


Guarantee = Gdp | Rdp | Profile | Composition | Point | LowerBound | Worst


def worst(members: Sequence[Guarantee]) -> Guarantee:
    """Return the guarantee for whichever of several records is worst off."""
    of_mu = [
        (member.mu, member) for member in members if isinstance(member, (Gdp, LowerBound)) and member.mu is not None
    ]
    if len(of_mu) == len(members):
        return max(of_mu, key=lambda pair: pair[0])[1]
    return members[0] if len(members) == 1 else Worst([m for m in members if not isinstance(m, Worst)])


def compose(parts: Sequence[tuple[Guarantee, int]]) -> Guarantee:
    """Return the guarantee of running every part ``count`` times, adaptively: [(part, count), ...].

    GDP parts compose to GDP (mu^2 adds); otherwise the Renyi curves add.

    Raises:
        Infeasible: a part has no Renyi curve, or a count is not a positive whole number.
    """
    if not parts or any(count < 1 or count != int(count) for _, count in parts):
        raise Infeasible("composition needs parts, each with a whole count of at least 1")
    if all(isinstance(part, Gdp) for part, _ in parts):
        total = math.fsum(count * part.mu**2 for part, count in parts if isinstance(part, Gdp))
        return Gdp(up(math.sqrt(up(total, 4.0)), 2.0))
    if any(isinstance(part, (Profile, Composition, Point, LowerBound, Worst)) for part, _ in parts):
        raise Infeasible("a delta(epsilon) profile cannot be composed without a Renyi or Gaussian form")

    def curve(order: float) -> float:
        return up(math.fsum(count * part.rdp(order) for part, count in parts), 4.0)

    return Rdp(curve)
