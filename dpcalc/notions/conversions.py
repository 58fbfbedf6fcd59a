"""What follows from one guarantee in the words of another: pure, concentrated, Gaussian, Renyi and (epsilon, delta).

Every function rounds to the safe side: what follows is rounded up, and what is enough for a budget down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from dpcalc.notions.guarantee import Guarantee, Profile, Rdp
from dpcalc.notions.notion import Answer
from dpcalc.notions.randomised_response import boxes_log_delta, response_renyi
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.roots import greatest

_WIDTH = 1 << 20  # of the bracket that a search for the most that is enough ends with, in representable numbers


def box(epsilon: float, log_delta: float = -math.inf) -> Profile:
    """Return the profile of all that (epsilon, delta)-DP mechanisms can do: that of randomised response.

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
    rho = response_renyi(epsilon, 1.0)  # for a small epsilon the formula cancels, and the line from 0 is better

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
    """Return the Renyi curve that bounds on D at some orders imply, infinite beyond the largest of them.

    D grows with the order, (a-1) D_a is convex and 0 at a = 1, and its slope is at most D_inf. A bound at a = inf is
    pure privacy.

    Args:
        points: order > 1 (inf allowed) -> an upper bound on D there, > 0.
    """
    # An order that was typed as a decimal may be a hair below its double: D is bounded at the number before.
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
    """Return an order that is at most the decimal that was typed: whole numbers are doubles."""
    return order if order == math.inf or order == int(order) else math.nextafter(order, 1.0)


def after(order: float) -> float:
    """Return an order that is at least the decimal that was typed."""
    return order if order == math.inf or order == int(order) else math.nextafter(order, math.inf)


def epsilon_of_points(points: Mapping[float, float], log_delta: float) -> Answer:
    """Return the least epsilon at ln delta that bounds on D at some orders imply, rounded up."""
    curve = interpolated(points)
    orders = tuple(before(order) for order in points if order > 1.0)
    # Without an order above 1 there is no conversion, and the one order here says so.
    notions: list[Guarantee] = [Rdp(curve.curve, orders or (1.0,)), *([curve] if len(orders) > 1 else [])]
    if math.inf in points:
        notions.append(box(points[math.inf]))
    return min((notion.epsilon(log_delta) for notion in notions), key=lambda answer: answer.value)


def log_delta_of_points(points: Mapping[float, float], epsilon: float) -> Answer:
    """Return the least ln delta at epsilon that bounds on D at some orders imply, rounded up."""
    curve = interpolated(points)
    orders = tuple(before(order) for order in points if order < math.inf)
    notions: list[Guarantee] = [curve, *([Rdp(curve.curve, orders)] if orders else [])]
    if math.inf in points:
        notions.append(box(points[math.inf]))
    return min((notion.log_delta(epsilon) for notion in notions), key=lambda answer: answer.value)


def most(guarantee: Callable[[float], Guarantee], epsilon: float, log_delta: float, high: float) -> float:
    """Return the greatest value whose guarantee keeps (epsilon, delta), rounded down; 0 where none is found.

    Args:
        guarantee: value > 0 -> what it guarantees, ever less with a greater value.
        epsilon, log_delta: the budget.
        high: no value above it is looked at.
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
