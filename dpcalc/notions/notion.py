"""The interface of every notion of privacy, and lower bounds.

A notion raises `NotApplicable` for what it cannot give.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from dpcalc.errors import NotApplicable
from dpcalc.notions import gaussian, trade_off
from dpcalc.numerics.floats import exp_down, up
from dpcalc.numerics.roots import greatest

if TYPE_CHECKING:
    from dpcalc.notions.curves import CurveWithFloor
    from dpcalc.notions.least_mu import LeastMu
    from dpcalc.notions.pld import Pair
    from dpcalc.notions.profiles import Certificate

    Parts = Sequence[tuple[Pair, int]] | Callable[[float], Sequence[tuple[Pair, int]]]
    """(dominating pair, count), or a function from ln delta to the ones that are best near it."""

_STEEP = 100.0  # larger excesses of ln delta are cut to this; steep steps slow down false position
FARTHEST = 1e300  # a search for epsilon ends here


def clipped(excess: float) -> float:
    """Return the excess of ln delta, at most `_STEEP`."""
    return min(_STEEP, max(-_STEEP, excess))


class Answer(NamedTuple):
    """An epsilon (or ln delta) with the order and conversion that gave it, if any.

    ``at_edge`` if the order is an end of the search. ``rounding`` bounds what rounding and tails cut off add to ln
    delta; ``lattice`` bounds what is added by splitting losses between lattice points and counting rare ones as
    infinite.
    """

    value: float
    order: float | None = None
    conversion: str = "exact"
    at_edge: bool = False
    rounding: float = 0.0
    lattice: float = 0.0


class Hints(NamedTuple):
    """Hints that speed up searches. They do not change what a notion proves.

    Attributes:
        budget: (ln delta, ulps) -> the epsilon there, in fewer evaluations than bisection; None if it fails.
        likely: ln delta -> an estimate of the epsilon there, faster than one evaluation of the profile.
        rough: makes a cheaper profile, slightly larger.
        floor: a cheap lower bound on the profile.
        coarser: parts of a composition that are coarser by 2 and by 4: their excess is about quadratic.
        besides: another valid composition, tighter if large losses count; the smaller answer is given.
    """

    budget: Callable[[float, int], float | None] | None = None
    likely: Callable[[float], float] | None = None
    rough: Callable[[], Guarantee] | None = None
    floor: Callable[[float], float] | None = None
    coarser: tuple[Parts, ...] = ()
    besides: Guarantee | None = None


NO_HINTS = Hints()
NOT_COMPOSABLE = ("nothing composes these entries", "give each as mu, as pairs or as (epsilon, delta)")


class Guarantee:
    """A notion of privacy; a subclass gives what follows from it.

    Attributes:
        form: its name in a ledger.
        name: its name in a refusal.
        no_epsilon: why an epsilon is infinite, and what helps.
        mu: of mu-GDP, if that is the guarantee.
        certificate: epsilon, or order of a Renyi curve -> what a search found there; None without a search.
        has_curve: whether it has a bound at every epsilon.
        has_renyi: whether it has a Renyi curve that composes.
        has_pairs: whether it has dominating pairs that compose.
        two_orders: whether it distinguishes P against Q from Q against P.
        orders: the orders of the Renyi curve to search, if they are restricted.
        hints: see `Hints`.
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
        """A mu such that the mechanism is mu-GDP, in closed form; inf for none."""
        return math.inf

    def group_mu(self, size: int) -> float:
        """Return `whole_mu` for groups of ``size`` records."""
        return up(size * self.whole_mu)

    def replacing(self, **changes: Any) -> Self:
        """Return the same notion with other fields."""
        changed = object.__new__(type(self))
        changed.__dict__.update({**self.__dict__, **changes})
        return changed

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        """Return the least epsilon at ln delta, rounded up; a ``rough`` one may be some 1e-5 larger, relatively."""
        raise NotApplicable("gives no epsilon", "ask for what it gives")

    def log_delta(self, epsilon: float) -> Answer:
        """Return ln delta at epsilon, rounded up."""
        raise NotApplicable("this rule gives epsilon at a delta only", "give delta and leave epsilon out")

    def rdp(self, order: float) -> float:
        """Return the Renyi divergence at an order, rounded up."""
        raise NotApplicable(f"{self.name} gives no RDP at an order", "ask for epsilon or delta")

    # --- searches -----------------------------------------------------------------------------------------------------

    def excess(self, epsilon: float, log_delta: float) -> float:
        """Return a number that is <= 0 exactly if (epsilon, delta) is implied."""
        value = self.epsilon(log_delta).value - epsilon
        return value if math.isfinite(value) else FARTHEST

    def log_overlap(self) -> float:
        """Return about ln of the most that two data sets' laws may have in common; 0 where that is not known."""
        return 0.0

    def sign(self, epsilon: float, log_delta: float) -> float:
        """Return a number that is <= 0 if (epsilon, delta) is implied, faster in clear cases."""
        return self.excess(epsilon, log_delta)

    def rough_excess(self, epsilon: float, log_delta: float) -> float:
        """Return an estimate (no bound) of the excess, from a coarse lattice; nan if there is none."""
        return math.nan

    def likely_excess(self, epsilon: float, log_delta: float) -> float:
        """Return an estimate (no bound) of the excess without a lattice; nan if there is none."""
        return math.nan

    def certificate_at(self, *, epsilon: float | None = None, order: float | None = None) -> Certificate | None:
        """Return what a search found for an answer at an epsilon or an order."""
        return None if self.certificate is None or epsilon is None else self.certificate(epsilon)

    # --- variants of the same notion ----------------------------------------------------------------------------------

    def asked(self, orders: tuple[float, ...], ulps: int) -> Guarantee:
        """Return this notion restricted to these orders, with searches that end ``ulps`` representable numbers
        apart."""
        return self

    def rounded_down(self, ulps: int) -> LowerBound:
        """Return the lower bound for runs that this notion describes exactly."""
        raise NotApplicable("is no lower bound", "use a bound that has a curve")

    def rough(self) -> Guarantee:
        """Return a cheaper notion, slightly looser."""
        return self

    def few_points(self, log_delta: float, fprs: Sequence[float], priors: Sequence[float]) -> Guarantee:
        """Return the same from a few points, if every point is a search; see `dpcalc.notions.few_points`."""
        return self

    # --- several runs, several records --------------------------------------------------------------------------------

    def times(self, count: int) -> Guarantee:
        """Return the adaptive composition of ``count`` copies."""
        raise NotApplicable(*NOT_COMPOSABLE)

    def pairs(self, log_delta: float, *, second: bool = False) -> Sequence[tuple[Pair, int]]:
        """Return dominating pairs in one order of the two data sets, best near this ln delta of a composition."""
        raise NotApplicable(*NOT_COMPOSABLE)

    def grouped(self, size: int) -> Guarantee:
        """Return the guarantee for groups of ``size`` records.

        This guarantee must hold for any record of any data set, since every link of the chain must be covered.
        Raises:
            NotApplicable: nothing is known for groups.
        """
        if size == 1:
            return self
        raise NotApplicable("gives epsilon at a delta only, and nothing of groups", "leave out the group size")

    # --- curves -------------------------------------------------------------------------------------------------------

    def privacy_profile(self) -> CurveWithFloor:
        """Return ln delta as a function of epsilon for the worse of both orders, with a cache."""
        raise NotApplicable("gives epsilon at a delta only", "use a bound that has a curve")

    def trade_off(self, sections: int | None = None) -> trade_off.TradeOff:
        """Return upper bounds on every attack; a search over epsilon or the order takes ``sections`` steps."""
        raise NotApplicable("gives epsilon at a delta only, from which no curve follows", "give epsilon and delta")

    def tprs(self, fprs: Sequence[float], nodes: Sequence[float] | None = None) -> list[float]:
        """Return the largest true-positive rates at many false-positive rates, for a plot.

        A profile is evaluated at a few epsilons, ``nodes``, the same for all rates: slightly loose but valid.
        """
        attack = self.trade_off()
        return [attack.tpr(fpr) for fpr in fprs]

    def least_mu(self, log_delta: float) -> LeastMu:
        """Return mu, or the pair with about this ln delta_0 if no mu alone covers the guarantee.

        Args:
            log_delta: ln of delta_0, from -600 to 0; the pair has at most this.
        """
        raise NotApplicable("gives epsilon at a delta only, from which no curve follows", "give epsilon and delta")

    def with_regret(self, mu: float, log_delta: float) -> LeastMu:
        """Return a mu that holds at every epsilon, with what it overstates."""
        raise NotApplicable("gives epsilon at a delta only, from which no curve follows", "give epsilon and delta")


class LowerBound(Guarantee):
    """A lower bound on the privacy loss of certain runs: no guarantee can be below it. Every answer rounds down.

    ``profile`` is a lower bound on ln delta at epsilon, ``curve`` one on the Renyi divergence at an order, each None if
    unknown. Neither follows from the other, since the conversions of `Rdp` give only upper bounds.
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
        """Return the greatest epsilon that is proved too small for ln delta, rounded down; 0 if there is none."""
        profile = self._profile()

        def spare(e: float) -> float:
            return clipped(log_delta - profile(e))

        if spare(0.0) >= 0.0:
            return Answer(0.0, None, self._conversion())
        ceiling = 1.0
        while spare(ceiling) <= 0.0:
            ceiling *= 16.0
            if ceiling > FARTHEST:
                return Answer(FARTHEST, None, self._conversion())
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
        return clipped(self.log_delta(epsilon).value - log_delta)

    def grouped(self, size: int) -> LowerBound:
        """Return the same: a group may have one record."""
        return self

    def advantage(self) -> float | None:
        """Return a lower bound on the best attack's advantage on the worst run; None if unknown.

        It is delta at epsilon 0.
        """
        return None if self.profile is None else exp_down(self.profile(0.0))

    def tpr(self) -> Callable[[float], float] | None:
        """Return false-positive rate -> a true-positive rate that no guarantee is below; None if unknown."""
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
