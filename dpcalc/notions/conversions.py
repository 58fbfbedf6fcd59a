"""Conversions between pure, concentrated, Gaussian, Renyi and (epsilon, delta) privacy, and totals of several releases.

Every function rounds to the safe side: implied guarantees up, sufficient ones for a budget down.

Totals of several releases about the same records.

Gaussian parts compose in closed form (mu^2 adds), Gaussian parts with (epsilon, delta) boxes by the exact law of the
boxes' losses, and everything else by the law of the privacy loss on one lattice. Removing and adding a record are
composed separately: `Composition` has a list of dominating pairs for each order, and the larger epsilon counts.

The classic noise of the Gaussian mechanism, sigma = Delta sqrt(2 ln(1.25/delta))/epsilon, rounded up, and its range.

For large epsilon the mechanism is not (epsilon, delta)-DP at this sigma; `dpcalc.notions.gaussian` has the exact sigma.

Upper bounds on the excess risk, with the run that they hold for.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dpcalc.errors import NotApplicable
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import NOT_COMPOSABLE, Box, Composition, Gdp, Guarantee, Profile, Rdp, compose
from dpcalc.notions.notion import Answer
from dpcalc.notions.randomised_response import boxes_log_delta, response_renyi
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.roots import greatest

_WIDTH = 1 << 20  # of the final bracket of a search for a sufficient value, in representable numbers


def box(epsilon: float, log_delta: float = -math.inf) -> Profile:
    """Return the profile that (epsilon, delta)-DP implies: that of randomised response.

    >>> round(math.exp(box(1.0).log_delta(0.5).value), 12)
    0.287649136645
    """
    epsilon = up(epsilon)
    if log_delta > -math.inf:
        log_delta += 2.0 * UNIT * (1.0 + abs(log_delta))

    def profile(at: float) -> float:
        return min(boxes_log_delta(0.0, [((epsilon, log_delta), 1)], at), log_delta if at >= epsilon else 0.0)

    return Profile(profile)


def concentrated(rho: float) -> Rdp:
    """Return the Renyi curve of rho-zCDP: D_a <= rho a at every order a > 1 (Bun and Steinke 2016, Definition 1.1)."""
    return Rdp(lambda order: up(rho * order, 4.0))


def pure_curve(epsilon: float) -> Rdp:
    """Return the Renyi curve of epsilon-DP: that of randomised response."""
    epsilon = up(epsilon)
    rho = response_renyi(epsilon, 1.0)  # for a small epsilon the formula cancels, and the line through 0 is better

    def curve(order: float) -> float:
        return min(response_renyi(epsilon, order), up(rho * order, 4.0))

    return Rdp(curve)


def pure_rho(epsilon: float) -> float:
    """Return the least rho for which every epsilon-DP mechanism is rho-zCDP, rounded up: epsilon tanh(epsilon/2).

    It is at most epsilon^2/2 (Bun and Steinke 2016, Proposition 1.4). D_a/a of randomised response is greatest at
    a = 1: with s = ((a - 1/2) epsilon)^2 and s_1 = epsilon^2/4 it is epsilon^2 (g(s) - g(s_1))/(s - s_1), where g(s) =
    ln cosh(sqrt(s)) is concave.

    >>> round(pure_rho(1.0), 12)
    0.46211715726
    """
    return response_renyi(up(epsilon), 1.0)


def gaussian_rho(mu: float) -> float:
    """Return the least rho for which every mu-GDP mechanism is rho-zCDP, rounded up: mu^2/2."""
    return up(0.5 * mu * mu, 4.0)


def interpolated(points: Mapping[float, float]) -> Rdp:
    """Return the Renyi curve implied by bounds on D at some orders, infinite beyond the largest of them.

    D grows with the order, (a-1) D_a is convex and 0 at a = 1, and its slope is at most D_inf. A bound at a = inf is
    pure privacy.

    Args:
        points: order > 1 (inf allowed) -> an upper bound on D there, > 0.
    """
    # A typed order may be slightly below its double, so D is bounded at the number before.
    known = sorted((before(order), up(value)) for order, value in points.items())
    finite = [(order, value) for order, value in known if order < math.inf]
    bounded = pure_curve(points[math.inf]).curve if math.inf in points else None
    pure = next((value for order, value in known if order == math.inf), math.inf)

    def curve(order: float) -> float:
        least = min((value for known_order, value in known if order <= known_order), default=math.inf)
        if bounded is not None:
            least = min(least, bounded(order))
        for a, v in ((a, v) for a, v in finite if a < order < math.inf):
            ends = [(b - order) / (b - a) * (a - 1.0) * v + (order - a) / (b - a) * (b - 1.0) * w
                    for b, w in finite if b > order]  # fmt: skip
            ends += [(a - 1.0) * v + (order - a) * pure] if pure < math.inf else []
            least = min([least, *(up(end / (order - 1.0), 16.0) for end in ends)])
        return least

    return Rdp(curve)


def before(order: float) -> float:
    """Return an order that is at most the typed decimal; integers are exact."""
    return order if order == math.inf or order == int(order) else math.nextafter(order, 1.0)


def after(order: float) -> float:
    """Return an order that is at least the typed decimal."""
    return order if order == math.inf or order == int(order) else math.nextafter(order, math.inf)


def epsilon_of_points(points: Mapping[float, float], log_delta: float) -> Answer:
    """Return the least epsilon at ln delta implied by bounds on D at some orders, rounded up."""
    curve = interpolated(points)
    orders = tuple(before(order) for order in points if order > 1.0)
    # Without an order above 1 there is no conversion; this order leads to that answer.
    notions: list[Guarantee] = [Rdp(curve.curve, orders or (1.0,)), *([curve] if len(orders) > 1 else [])]
    if math.inf in points:
        notions.append(box(points[math.inf]))
    return min((notion.epsilon(log_delta) for notion in notions), key=lambda answer: answer.value)


def log_delta_of_points(points: Mapping[float, float], epsilon: float) -> Answer:
    """Return the least ln delta at epsilon implied by bounds on D at some orders, rounded up."""
    curve = interpolated(points)
    orders = tuple(before(order) for order in points if order < math.inf)
    notions: list[Guarantee] = [curve, *([Rdp(curve.curve, orders)] if orders else [])]
    if math.inf in points:
        notions.append(box(points[math.inf]))
    return min((notion.log_delta(epsilon) for notion in notions), key=lambda answer: answer.value)


def most(guarantee: Callable[[float], Guarantee], epsilon: float, log_delta: float, high: float) -> float:
    """Return the greatest value whose guarantee keeps (epsilon, delta), rounded down; 0 if none is found.

    Args:
        guarantee: value > 0 -> its guarantee, weaker for a greater value.
        epsilon, log_delta: the budget.
        high: the largest value to try.
    """

    def excess(value: float) -> float:
        return guarantee(value).epsilon(log_delta).value - epsilon

    if excess(high) <= 0.0:
        return high
    low = high
    while excess(low) > 0.0:
        low /= 16.0
        if low < 1e-12:
            return 0.0
    return greatest(excess, low, 16.0 * low, ulps=_WIDTH)


MOST_TERMS = 1500
"""The most distinct losses of boxes that are summed exactly; with more, the lattice composes."""


class Total(NamedTuple):
    """The total of all parts, and how it was composed: gdp, exact, pld or renyi; own for a single part."""

    form: str
    guarantee: Guarantee


def compose_all(parts: Sequence[tuple[Guarantee, int]], *, one_way: bool = False) -> list[Total]:
    """Return totals of all parts, each ``count`` times, composed adaptively; every one is a guarantee.

    Args:
        parts: (guarantee of one run, number of runs), each for the same orders of the two data sets.
        one_way: whether only one order counts, that of a record added or of a record removed.

    Raises:
        NotApplicable: no method composes them.
    """
    if len(parts) == 1 and parts[0][1] == 1 and isinstance(alone := parts[0][0], (Rdp, Profile, Composition)):
        return [Total("own", alone)]
    mus = [(part.mu, count) for part, count in parts if isinstance(part, Gdp)]
    if len(mus) == len(parts):
        return [Total("gdp", Gdp(gaussian.together(mus)))]
    boxes = collections.Counter[tuple[float, float]]()
    for part, count in parts:
        if isinstance(part, Box):
            boxes[part.point] += count
    terms = 1 if len(boxes) == 1 and not mus else math.prod(count + 1 for count in boxes.values())
    if len(mus) + sum(isinstance(part, Box) for part, _ in parts) == len(parts) and terms <= MOST_TERMS:
        profile = functools.partial(boxes_log_delta, gaussian.together(mus), tuple(boxes.items()))
        return [Total("exact", Profile(functools.cache(profile)))]
    totals = []
    if all(part.has_pairs for part, _ in parts):
        totals.append(Total("pld", compose(parts, one_way=one_way)))
    if all(part.has_renyi for part, _ in parts):
        totals.append(Total("renyi", Rdp(lambda order: up(math.fsum(n * part.rdp(order) for part, n in parts), 4.0))))
    if not totals:
        raise NotApplicable(*NOT_COMPOSABLE)
    return totals


_LN_5_4 = 0.22314355131420976


def factor(log_delta: float) -> float:
    """Return sqrt(2 ln(1.25/delta)), to nearest, within 2 units of roundoff."""
    return math.sqrt(2.0 * (_LN_5_4 - log_delta))


def noise_std(*, sensitivity: float, epsilon: float, log_delta: float) -> float:
    """Return the classic sigma, rounded up: a guarantee only for epsilon <= `epsilon_max`."""
    return up(sensitivity * factor(log_delta) / epsilon, 8.0)


def true_log_delta(*, epsilon: float, log_delta: float) -> float:
    """Return ln of the true delta at epsilon of the classic sigma for (epsilon, delta), rounded up."""
    return gaussian.log_delta(mu=up(epsilon / factor(log_delta), 4.0), epsilon=epsilon)


def epsilon_max(log_delta: float) -> float:
    """Return the largest epsilon for which the classic sigma is in fact (epsilon, delta)-DP, rounded down.

    >>> round(epsilon_max(math.log(1e-5)), 3)
    8.42
    """

    def excess(epsilon: float) -> float:
        return true_log_delta(epsilon=epsilon, log_delta=log_delta) - log_delta

    return greatest(excess, 1e-3, 1e3)


class Risk(NamedTuple):
    """A bound on the excess risk, in units of the loss, and the parameters for which it holds.

    Attributes:
        excess_risk: E F(w) - min F, or a bound with probability 1 - ``failure_probability`` if that is given; rounded
        up.
        noise_std: sigma of w - eta (gradient + N(0, sigma^2)), or of output noise, rounded up; None without noise.
        step_size: eta.
        steps: T, if the bound chooses it.
        failure_probability: None for a bound in expectation.
        quantity: ``excess_risk`` of the law the records are drawn from; ``empirical_excess_risk`` of their own mean
            loss; ``smoothing_error``, what smoothing adds.
    """

    excess_risk: float
    noise_std: float | None = None
    step_size: float | None = None
    steps: int | None = None
    failure_probability: float | None = None
    quantity: str = "excess_risk"


NO_BOUND = Risk(math.inf)
"""The result if a theorem does not apply or no noise suffices."""
EMPIRICAL = "empirical_excess_risk"
