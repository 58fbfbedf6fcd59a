"""Notions of privacy as objects with one interface: the guarantee of a run, and everything that follows from it.

`Gdp`, `Rdp`, `Profile` (a privacy profile delta(epsilon)), `Composition` (by the distribution of the privacy loss),
`Box` (one epsilon and delta), `Point` (a rule from delta to epsilon) and `Worst` (of several) round up; `LowerBound`
rounds down. A notion raises `NotApplicable` for what it cannot give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dpcalc.errors import NotApplicable
from dpcalc.notions import gaussian, renyi, trade_off
from dpcalc.notions.composition import Composition, Curved, Profile, box_pairs, check_group, compose
from dpcalc.notions.notion import (
    FARTHEST,
    NOT_COMPOSABLE,
    Answer,
    Guarantee,
    Hints,
    LowerBound,
    gaussian_lower_bound,
)
from dpcalc.notions.randomised_response import box_profile, response_renyi
from dpcalc.numerics.floats import log_expm1, product_up, up

if TYPE_CHECKING:
    from dpcalc.notions.curves import CurveWithFloor
    from dpcalc.notions.least_mu import LeastMu
    from dpcalc.notions.pld import Pair
    from dpcalc.notions.profiles import Certificate

__all__ = [
    "NOT_COMPOSABLE",
    "Answer",
    "Box",
    "Composition",
    "Gdp",
    "Guarantee",
    "Hints",
    "LowerBound",
    "Point",
    "Profile",
    "Rdp",
    "Worst",
    "compose",
    "gaussian_lower_bound",
    "worst",
]


class Gdp(Curved):
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
        """Return the composition of ``count`` copies: mu^2 adds up."""
        return Gdp(gaussian.together([(self.mu, count)]))

    def pairs(self, log_delta: float, *, second: bool = False) -> Sequence[tuple[Pair, int]]:
        from dpcalc.notions import pld

        return [(pld.gaussian_sum([(self.mu, 1)]), 1)]

    def grouped(self, size: int) -> Gdp:
        """Return k mu, which is exact."""
        return self if size == 1 else Gdp(up(size * self.mu))

    def trade_off(self, sections: int | None = None) -> trade_off.TradeOff:
        return trade_off.of_mu(self.mu)

    def least_mu(self, log_delta: float) -> LeastMu:
        from dpcalc.notions.least_mu import LeastMu

        return LeastMu(self.mu, -math.inf, 0.0)


class Rdp(Curved):
    """A Renyi curve order -> RDP; ``orders`` restricts the search to a list, otherwise it is continuous.

    If the curve comes from a search, ``certificate`` maps an order to what the search found; None if that is too long.
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
        return value if math.isfinite(value) else FARTHEST

    def certificate_at(self, *, epsilon: float | None = None, order: float | None = None) -> Certificate | None:
        return None if self.certificate is None or order is None else self.certificate(order)

    def asked(self, orders: tuple[float, ...], ulps: int) -> Rdp:
        return self.replacing(orders=orders) if orders else self

    def rounded_down(self, ulps: int) -> LowerBound:
        return LowerBound(curve=self.curve)

    def times(self, count: int) -> Rdp:
        """Return the composition of ``count`` copies: the divergences add up."""
        return Rdp(lambda order: up(count * self.curve(order), 2.0), self.orders)

    def grouped(self, size: int) -> Guarantee:
        if size == 1:
            return self
        check_group(size)
        return Rdp(_group_renyi(self, size), self.orders)

    def trade_off(self, sections: int | None = None) -> trade_off.TradeOff:
        return trade_off.of_renyi(self.curve, self.orders, self.privacy_profile(), sections or trade_off.SECTIONS)


def _group_renyi(one: Guarantee, size: int) -> Callable[[float], float]:
    from dpcalc.notions.groups import group_renyi

    return lambda order: group_renyi(one.rdp, order, size)


class Box(Curved):
    """(epsilon, delta)-DP in both orders, with nothing else known; ln delta = -inf is pure privacy."""

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
        return super().rdp(order) if not self.has_renyi else response_renyi(self.epsilon0, order)

    def pairs(self, log_delta: float, *, second: bool = False) -> Sequence[tuple[Pair, int]]:
        return box_pairs(*self.point)

    def grouped(self, size: int) -> Guarantee:
        """Return the bound by chains; at k epsilon_0 it is delta_0 (1 + e^epsilon_0 + ... + e^((k-1) epsilon_0))."""
        whole = super().grouped(size)
        if size == 1 or not isinstance(whole, Profile):
            return whole
        end, chain = product_up(float(size), self.epsilon0), whole.profile
        logs = log_expm1(end) - log_expm1(self.epsilon0) if self.epsilon0 > 0.0 else math.log(size)
        last = up(self.log_delta0 + logs, 8.0 + 4.0 * logs) if self.log_delta0 > -math.inf else -math.inf
        return whole.replacing(profile=lambda e: min(chain(e), last) if e >= end else chain(e))

    def privacy_profile(self) -> CurveWithFloor:
        curve = box_profile(self.point)
        return lambda epsilon, floor=-math.inf: curve(epsilon)

    def trade_off(self, sections: int | None = None) -> trade_off.TradeOff:
        return trade_off.of_box(*self.point)

    def least_mu(self, log_delta: float) -> LeastMu:
        from dpcalc.notions import least_mu

        return least_mu.of_box(self.privacy_profile(), *self.point)


class Point(Guarantee):
    """A rule that gives only epsilon at ln delta, for comparison rows."""

    no_epsilon = ("is false at this epsilon (see `explain`)", "use the exact conversion")

    def __init__(self, rule: Callable[[float], float]) -> None:
        self.rule = rule

    def epsilon(self, log_delta: float, *, rough: bool = False) -> Answer:
        """Return the rule's epsilon."""
        return Answer(self.rule(log_delta), None, "formula")

    def rdp(self, order: float) -> float:
        raise NotApplicable("this rule gives epsilon at a delta only", "give delta and leave epsilon out")


class Worst(Curved):
    """Guarantees of several records as one for the worst of them: the largest of their answers.

    Of lower bounds it is a lower bound for that record.
    """

    def __init__(self, members: Sequence[Guarantee]) -> None:
        self.members = members
        self.has_renyi = all(member.has_renyi for member in members)
        self.has_pairs = all(isinstance(member, (Gdp, Rdp, Profile)) for member in members)  # tabulated

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

    def grouped(self, size: int) -> Guarantee:
        if size == 1 or not all(isinstance(member, Rdp) for member in self.members):
            return super().grouped(size)
        check_group(size)
        return Rdp(_group_renyi(self, size))

    def privacy_profile(self) -> CurveWithFloor:
        curves = [member.privacy_profile() for member in self.members]
        return lambda epsilon, floor=-math.inf: max(curve(epsilon, floor) for curve in curves)

    def trade_off(self, sections: int | None = None) -> trade_off.TradeOff:
        return trade_off.worst_of([member.trade_off(sections) for member in self.members])

    def tprs(self, fprs: Sequence[float], nodes: Sequence[float] | None = None) -> list[float]:
        return [max(rates) for rates in zip(*(member.tprs(fprs, nodes) for member in self.members), strict=True)]

    def least_mu(self, log_delta: float) -> LeastMu:
        if all(isinstance(member, Gdp) for member in self.members):
            return Gdp(self.whole_mu).least_mu(log_delta)
        return super().least_mu(log_delta)


def worst(members: Sequence[Guarantee]) -> Guarantee:
    """Return the guarantee for the worst of several records."""
    of_mu = [(member.mu, member) for member in members if member.mu is not None]
    if len(of_mu) == len(members):
        return max(of_mu, key=lambda pair: pair[0])[1]
    return members[0] if len(members) == 1 else Worst([m for m in members if not isinstance(m, Worst)])
