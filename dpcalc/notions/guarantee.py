"""What a bound proves, as an object that answers epsilon at delta and delta at epsilon.

Five kinds, one interface: `Gdp`, `Rdp`, `Profile` (a privacy profile delta(epsilon)), `Composition` (by the law of the
privacy loss) and `Point` (a rule that gives epsilon for a delta and nothing else).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.errors import Infeasible, NotApplicable
from dpcalc.notions import gaussian, renyi
from dpcalc.numerics.floats import up
from dpcalc.numerics.roots import least

if TYPE_CHECKING:
    from dpcalc.notions.pld import Pair


class Answer(NamedTuple):
    """An epsilon (or ln delta) with the order and conversion that gave it, where there is one.

    ``rounding`` and ``lattice`` say how much of ln delta is not the mechanism's: a bound on what was added for rounding
    and cut-off tails, and an estimate of what splitting losses between lattice points costs.
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
    """A Renyi curve order -> RDP; ``orders`` restricts the search to a list, else it is continuous."""

    curve: Callable[[float], float]
    orders: tuple[float, ...] = ()

    def epsilon(self, log_delta: float) -> Answer:
        """Return the least epsilon over orders and conversions, rounded up."""
        if self.orders:
            return Answer(*renyi.from_orders(self.curve, self.orders, log_delta))
        return Answer(*renyi.optimise(self.curve, log_delta))

    def log_delta(self, epsilon: float) -> Answer:
        """Return the least ln delta over orders by Canonne et al., rounded up."""
        if self.orders:
            found = [
                (renyi.canonne_log_delta(order=a, rdp=self.curve(a), epsilon=epsilon), a)
                for a in self.orders
                if a > 1.0
            ]
            value, order = min(found, default=(0.0, max(self.orders)))
            return Answer(value, order, "canonne")
        value, order = renyi.least_log_delta(self.curve, epsilon)
        return Answer(value, order if value < 0.0 else None, "canonne")

    def rdp(self, order: float) -> float:
        """Return the RDP at this order, rounded up."""
        return self.curve(order)


class Profile(NamedTuple):
    """A privacy profile: epsilon >= 0 -> an upper bound on ln delta, non-increasing; searches end ``ulps`` apart."""

    profile: Callable[[float], float]
    ulps: int = 2

    def epsilon(self, log_delta: float) -> Answer:
        """Return the least epsilon at ln delta, rounded up (inf if none below 1e300)."""

        def excess(e: float) -> float:
            return min(100.0, max(-100.0, self.profile(e) - log_delta))  # false position likes no cliffs

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
        """Not available from a profile here."""
        raise NotApplicable("a privacy profile gives no RDP at an order", "ask for epsilon or delta")


class Composition(NamedTuple):
    """Mechanisms run one after another: (pair of laws, how often), composed by the law of the privacy loss."""

    parts: Sequence[tuple[Pair, int]]

    def epsilon(self, log_delta: float) -> Answer:
        """Return the least epsilon at ln delta, rounded up."""
        return _composed_epsilon(tuple(self.parts), log_delta)

    def log_delta(self, epsilon: float) -> Answer:
        """Return ln delta at epsilon, rounded up."""
        return _composed_log_delta(tuple(self.parts), epsilon)

    def rdp(self, order: float) -> float:
        """Not available from the law of the privacy loss here."""
        raise NotApplicable("a privacy-loss distribution gives no RDP at an order", "ask for epsilon or delta")


@functools.lru_cache(maxsize=64)
def _composed_epsilon(parts: tuple[tuple[Pair, int], ...], log_delta: float) -> Answer:
    """Two bounds that compose the same parts are answered once."""
    from dpcalc.notions import pld

    found = pld.epsilon(parts, log_delta_target=log_delta)
    return Answer(found.value, None, "pld", False, found.rounding, found.lattice)


@functools.lru_cache(maxsize=64)
def _composed_log_delta(parts: tuple[tuple[Pair, int], ...], epsilon: float) -> Answer:
    from dpcalc.notions import pld

    found = pld.log_delta(parts, epsilon=epsilon)
    for halvings in range(1, 6):
        if found.value < -1.0 or epsilon == 0.0:
            break
        # Very far out rounding may be all there is; delta does not grow with epsilon.
        nearer = pld.log_delta(parts, epsilon=math.ldexp(epsilon, -halvings))
        found = min(found, nearer, key=lambda bound: bound.value)
    return Answer(found.value, None, "pld", False, found.rounding, found.lattice)


class Point(NamedTuple):
    """A rule ln delta -> epsilon, for comparison rows."""

    rule: Callable[[float], float]

    def epsilon(self, log_delta: float) -> Answer:
        """Return the rule's epsilon."""
        return Answer(self.rule(log_delta), None, "formula")

    def log_delta(self, epsilon: float) -> Answer:
        """Not available from such a rule."""
        raise NotApplicable("this rule gives epsilon at a delta only", "give delta and leave epsilon out")

    def rdp(self, order: float) -> float:
        """Not available from such a rule."""
        raise NotApplicable("this rule gives epsilon at a delta only", "give delta and leave epsilon out")


Guarantee = Gdp | Rdp | Profile | Composition | Point


def compose(parts: Sequence[tuple[Guarantee, int]]) -> Guarantee:
    """Return the guarantee of running every part ``count`` times, adaptively: [(part, count), ...].

    GDP with GDP stays GDP (mu^2 adds); with anything that has a Renyi curve, the curves add.

    Raises:
        Infeasible: a part is a bare profile, or a count is not a positive whole number.
    """
    if not parts or any(count < 1 or count != int(count) for _, count in parts):
        raise Infeasible("composition needs parts, each with a whole count of at least 1")
    if all(isinstance(part, Gdp) for part, _ in parts):
        total = math.fsum(count * part.mu**2 for part, count in parts if isinstance(part, Gdp))
        return Gdp(up(math.sqrt(up(total, 4.0)), 2.0))
    if any(isinstance(part, (Profile, Composition, Point)) for part, _ in parts):
        raise Infeasible("a delta(epsilon) profile cannot be composed without a Renyi or Gaussian form")

    def curve(order: float) -> float:
        return up(math.fsum(count * part.rdp(order) for part, count in parts), 4.0)

    return Rdp(curve)
