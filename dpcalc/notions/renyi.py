"""Renyi differential privacy and its conversions to (epsilon, delta), all rounded up.

A conversion takes one order, the RDP at that order and ln delta, and returns an epsilon that is *not* clamped at 0
(callers report max(0, .)). The exact conversion is the best possible from a single order; the others are cheaper, or
needed if delta is below the smallest double.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.numerics.floats import UNIT, log_add_exp, log_expm1, product_up, ratio_up, up
from dpcalc.numerics.roots import greatest, least, near_minimum


class Conversion(NamedTuple):
    """An epsilon with the order and conversion that gave it; ``at_edge`` if the order is an end of the search."""

    epsilon: float
    order: float
    conversion: str
    at_edge: bool = False


@functools.lru_cache(maxsize=64)  # the same for many consecutive positions
def gaussian(*, order: float, shift: float, scale: float) -> float:
    """Return D_order(N(shift, scale^2) || N(0, scale^2)) = order shift^2/(2 scale^2), rounded up; order >= 1."""
    if shift == 0.0:
        return 0.0
    ratio = ratio_up(shift, scale)
    return product_up(0.5, order, ratio, ratio)


def laplace(*, order: float, shift: float, scale: float) -> float:
    """Return D_order(Lap(shift, scale) || Lap(0, scale)) in one dimension, rounded up; order >= 1 (inf: pure DP).

    With u = shift/scale: ln(a/(2a-1) e^((a-1)u) + (a-1)/(2a-1) e^(-a u))/(a-1) for a = order (Mironov 2017, Prop. 6).
    """
    if shift == 0.0:
        return 0.0
    u = max(shift / scale, 5e-324)
    if math.isinf(order):
        return _round_up(u)
    if order == 1.0:
        return max(5e-324, up(_expm1_minus(-u), 12.0))
    a1, w = order - 1.0, 2.0 * order - 1.0
    if a1 * u < 1.0:
        # a (e^((a-1)u) - 1) + (a-1)(e^(-au) - 1): the linear terms cancel exactly, the rest is positive.
        inner = (order * _expm1_minus(a1 * u) + a1 * _expm1_minus(-order * u)) / w
        return max(5e-324, up(math.log1p(inner) / a1, 16.0))
    return _round_up(u, math.log1p(a1 / w * math.expm1(-w * u)) / a1)


def _expm1_minus(x: float) -> float:
    """Return e^x - 1 - x >= 0 to full relative precision."""
    if abs(x) > 0.5:
        return math.expm1(x) - x
    term, total, k = 0.5 * x * x, 0.0, 2
    while abs(term) > 1e-18 * total:
        total += term
        k += 1
        term *= x / k
    return total


def mironov(*, order: float, rdp: float, log_delta: float) -> float:
    """Return epsilon = rdp + ln(1/delta)/(order - 1) (Mironov 2017, Prop. 3; Feldman et al. 2018, Lemma 14)."""
    return _round_up(rdp, -log_delta / (order - 1.0))


def canonne(*, order: float, rdp: float, log_delta: float) -> float:
    """Return rdp + ln((a-1)/a) - (ln delta + ln a)/(a-1) (Canonne, Kamath and Steinke 2020, Prop. 12)."""
    a1 = order - 1.0
    return _round_up(rdp, -math.log1p(1.0 / a1), -log_delta / a1, -math.log(order) / a1)


def canonne_log_delta(*, order: float, rdp: float, epsilon: float) -> float:
    """Return ln delta = (a-1)(rdp - epsilon) - ln(a-1) + a ln(1 - 1/a), rounded up, at most 0."""
    a1 = order - 1.0
    return min(0.0, _round_up(a1 * rdp, -a1 * epsilon, -math.log(a1), -order * math.log1p(1.0 / a1)))


def asoodeh(*, order: float, rdp: float, log_delta: float) -> float:
    """Return ln(1 + (e^((a-1) rdp) - 1)/(a delta))/(a-1) (Asoodeh et al. 2021, eq. 20)."""
    if rdp == 0.0:
        return 0.0
    a1 = order - 1.0
    exponent = _round_up(log_expm1(_round_up(a1 * rdp)), -math.log(order), -log_delta)
    return _round_up(log_add_exp(0.0, exponent) / a1)


def exact_one_order(*, order: float, rdp: float, log_delta: float, ulps: int = 4) -> float:
    """Return the least epsilon that a single order implies: no better conversion from one order exists.

    The least epsilon >= 0 with min_q p^a q^(1-a) + (1-p)^a (1-q)^(1-a) >= e^((a-1) rdp) over Bernoulli pairs with
    p = delta + e^epsilon q (data processing to the two-point test; attained). The minimum is certified by a tangent.
    A larger ``ulps`` makes the answer looser by that many representable numbers, and faster. If q is too small for the
    search, the least of the other conversions is returned.

    Raises:
        ValueError: ln delta < -700 (use `canonne`).
    """
    if log_delta < -700.0:
        raise ValueError("exact_one_order needs ln delta >= -700")
    if rdp == 0.0:
        return 0.0
    ceiling = min(convert(order=order, rdp=rdp, log_delta=log_delta) for convert in (mironov, canonne, asoodeh))
    if ceiling <= 0.0:
        return 0.0

    near = None

    def shortfall(epsilon: float) -> float:
        nonlocal near
        margin, near = _log_divergence_margin(order, rdp, log_delta, epsilon, near, min(max(64, ulps), _WIDEST))
        return -margin

    return least(shortfall, 0.0, ceiling, ulps=ulps) if shortfall(ceiling) <= 0.0 else ceiling


_STEEPEST = math.exp(700.0)  # of a slope, near the largest double: only its sign matters
_WIDEST = 1 << 51
"""Two numbers with this many representable ones between them differ by a factor of at most two."""
_FIRST, _LAST = 1e-305, 1.0 - 2.0**-52
"""The range in (0, 1) in which a minimum is searched."""


def _log_divergence_margin(
    order: float, rdp: float, log_delta: float, epsilon: float, near: float | None, ulps: int
) -> tuple[float, float]:
    """Return a lower bound on ln(min_q F(q)) - (order-1) rdp, F as in `exact_one_order`, and where F is least.

    q = (1 - delta) e^-epsilon t with t in (0, 1), so that p = delta + (1-delta) t and 1 - p = (1-delta)(1-t); F is
    convex in t. The sign of F' is bisected, about ``near`` if that is given; from the left end t of the final bracket,
    which is ``ulps`` wide, 1 to 2^51, the tangent bounds F from below. If F is least to the left of that range, nothing
    is proved: the bound is -inf.
    """
    a1 = order - 1.0
    delta = math.exp(log_delta)
    rest = -math.expm1(log_delta)
    scale = rest * math.exp(-epsilon)
    log_rest = math.log(rest)

    spent, steep, steep_rest = a1 * rdp, order * rest, a1 * scale
    exp, log, log1p = math.exp, math.log, math.log1p

    def slope_at(t: float) -> float:
        p, q = rest * t + delta, scale * t
        first = order * log(p) - a1 * (log_rest - epsilon + log(t)) - spent
        second = order * (log_rest + log1p(-t)) - a1 * log1p(-q) - spent
        slope = (_STEEPEST if first >= 700.0 else exp(first)) * (steep / p - a1 / t)
        return slope + (_STEEPEST if second >= 700.0 else exp(second)) * (steep_rest / (1.0 - q) - order / (1.0 - t))

    bracket = _bracket(slope_at, near)
    if bracket is None:
        return -math.inf, _FIRST
    left = greatest(slope_at, *bracket, ulps=ulps)
    log_p, log_not_p = log(delta + rest * left), log_rest + log1p(-left)
    log_q, log_not_q = log_rest - epsilon + log(left), log1p(-scale * left)
    first, second = order * log_p - a1 * log_q - spent, order * log_not_p - a1 * log_not_q - spent
    size = order * (abs(log_p) + abs(log_not_p)) + a1 * (abs(log_q) + abs(log_not_q) + rdp)
    slope = slope_at(left)
    value = log_add_exp(first, second)
    if value < 0.0:  # the tangent would only lower it
        return value, left
    drop = abs(slope) * left * (ulps * 2.0**-51)
    if drop > 0.5 * math.exp(min(value, 700.0)):
        return -math.inf, left
    return value - 2.0 * drop * math.exp(-value) - 16.0 * UNIT * (size + 1.0), left


def _bracket(slope_at: Callable[[float], float], near: float | None) -> tuple[float, float] | None:
    """Return points of (0, 1) between which an increasing function changes its sign, close to a guess if possible.

    The sign change may be beyond the last point searched; None if it is before the first.
    """
    if near is not None:
        for width in (2.0**-10, 2.0**-4):
            low, high = near * (1.0 - width), near + width * min(near, 1.0 - near)
            if slope_at(low) <= 0.0 < slope_at(high):
                return low, high
    return (_FIRST, _LAST) if slope_at(_FIRST) <= 0.0 else None


def best_conversion(*, order: float, rdp: float, log_delta: float) -> Conversion:
    """Return the smallest epsilon of all conversions at one order, clamped at 0."""
    if math.isinf(rdp):
        return Conversion(math.inf, order, "mironov")
    if math.isinf(order):
        return Conversion(rdp, order, "pure")
    conversions = {"mironov": mironov, "canonne": canonne, "asoodeh": asoodeh}
    if log_delta >= -700.0 and order < 1e8:
        conversions["exact"] = exact_one_order
    epsilons = [(max(0.0, f(order=order, rdp=rdp, log_delta=log_delta)), name) for name, f in conversions.items()]
    epsilon, name = min(epsilons, key=lambda pair: pair[0])
    return Conversion(epsilon, order, name)


ORDER_FLOOR, ORDER_CEILING = 1.0 + 2.0**-30, 2.0**60


def optimise(
    curve: Callable[[float], float], log_delta: float, highest: float = ORDER_CEILING, *, rough: bool = False
) -> Conversion:
    """Return the best conversion of an RDP curve over all orders in (1, highest].

    A geometric scan in order - 1 finds the valley of the two cheap conversions, parabolas refine it, and every
    conversion is tried around that order. The scan spans 2^-30 to 2^60; an optimum at its end is marked ``at_edge``. A
    curve that is finite at infinity is pure privacy, and is tried as such. With ``rough`` only the cheap conversions
    are used: valid, fast and slightly looser, for searches.
    """

    def cheap(order: float, rdp: float) -> float:
        if math.isinf(rdp):
            return rdp
        return min(convert(order=order, rdp=rdp, log_delta=log_delta) for convert in (canonne, asoodeh))

    valley = _valley(curve, cheap, highest)
    pure = Conversion(curve(math.inf), math.inf, "pure")
    if math.isinf(valley.value):
        return pure
    if rough:
        return min(pure, Conversion(max(0.0, valley.value), 1.0 + math.exp(valley.place), "canonne"))
    best = _best_near(curve, log_delta, valley.place)
    if pure.epsilon <= best.epsilon:
        return pure
    return best._replace(at_edge=valley.at_edge and best.epsilon > 0.0)


class _Valley(NamedTuple):
    """The minimum of a conversion: ln(order - 1), its value, and whether the scan is least at one of its ends."""

    place: float
    value: float
    at_edge: bool


_LIKELY = 2.5  # ln(order - 1) of the first order that is tried


def _valley(curve: Callable[[float], float], convert: Callable[[float, float], float], highest: float) -> _Valley:
    """Return the minimum of a conversion over orders in (1, highest], scanned by factors of e and then refined.

    Args:
        curve: order -> RDP, non-decreasing, so that orders are skipped if values at lower ones exclude the minimum.
        convert: (order, RDP) -> the value to minimise, non-decreasing in the RDP.
        highest: the highest order.
    """

    @functools.cache
    def at(s: float) -> tuple[float, float]:
        order = 1.0 + math.exp(s)
        rdp = curve(order)
        return convert(order, rdp), rdp

    low, high = math.log(ORDER_FLOOR - 1.0), math.log(highest - 1.0)
    count = max(2, math.ceil(high - low))
    grid = [low + i * (high - low) / count for i in range(count + 1)]
    k = min(range(count + 1), key=lambda i: abs(grid[i] - _LIKELY))
    known = {0: at(grid[0]), k: at(grid[k])}
    k = min(known, key=lambda i: (known[i][0], i))
    left = set(range(count + 1)).difference(known)
    while left:
        i = min(left, key=lambda i: (abs(i - k), i))
        left.remove(i)
        spent = max((rdp for j, (_, rdp) in known.items() if j < i and rdp < math.inf), default=0.0)
        if convert(1.0 + math.exp(grid[i]), spent) <= known[k][0]:
            known[i] = at(grid[i])
            if (known[i][0], i) < (known[k][0], k):
                k = i
    place = minimum_near(lambda s: at(s)[0], grid[max(k - 1, 0)], grid[k], grid[min(k + 1, count)])
    return _Valley(place, at(place)[0], k in (0, count))


def _best_near(curve: Callable[[float], float], log_delta: float, s: float) -> Conversion:
    """Return the best conversion near order 1 + e^s; the exact one prefers lower orders than the cheap ones."""

    def at(t: float) -> Conversion:
        order = 1.0 + math.exp(t)
        return best_conversion(order=order, rdp=curve(order), log_delta=log_delta)

    def exact_epsilon(t: float) -> float:
        order = 1.0 + math.exp(t)
        rdp = curve(order)
        if log_delta < -700.0 or math.isinf(rdp):
            return math.inf
        return exact_one_order(order=order, rdp=rdp, log_delta=log_delta, ulps=1 << 34)

    return min(at(s), at(near_minimum(exact_epsilon, s - 2.0, s + 0.3, steps=5)), key=lambda c: c.epsilon)


def optimise_over(curve: Callable[[float], float], orders: Sequence[float], log_delta: float) -> Conversion:
    """Return the best conversion among the given orders only; ``at_edge`` if it is the first or last of several."""
    ranked = sorted(order for order in orders if order > 1.0)
    if not ranked:
        raise SpecError(
            "no order above 1 is given: only those convert to epsilon", "give --order 2,4,8, or leave it out"
        )
    best = min((best_conversion(order=a, rdp=curve(a), log_delta=log_delta) for a in ranked), key=lambda c: c.epsilon)
    return best._replace(at_edge=len(ranked) > 1 and best.order in (ranked[0], ranked[-1]) and best.epsilon > 0.0)


def least_log_delta(
    curve: Callable[[float], float], epsilon: float, highest: float = ORDER_CEILING
) -> tuple[float, float]:
    """Return the least `canonne_log_delta` of an RDP curve over orders in (1, highest], and its order."""

    def convert(order: float, rdp: float) -> float:
        return canonne_log_delta(order=order, rdp=rdp, epsilon=epsilon) if rdp < math.inf else 0.0

    valley = _valley(curve, convert, highest)
    return valley.value, 1.0 + math.exp(valley.place)


_GOLDEN = 0.3819660112501051  # 2 less the golden ratio
_CLOSE = 1e-8  # of ln(order - 1): a minimum is only determined to the root of a unit of roundoff


def minimum_near(function: Callable[[float], float], low: float, start: float, high: float, steps: int = 60) -> float:
    """Return a point within some 1e-8 of the minimum of a function in [low, high], by Brent's method from ``start``.

    Steps are vertices of parabolas through the best three points, or golden sections where those fail.
    """
    x = w = v = start
    at_x = at_w = at_v = function(start)
    moved = before = 0.0
    for _ in range(steps):
        middle = 0.5 * (low + high)
        if abs(x - middle) <= 2.0 * _CLOSE - 0.5 * (high - low):
            break
        vertex = _vertex(x, at_x, w, at_w, v, at_v)
        if vertex is not None and abs(vertex) < 0.5 * abs(before) and low < x + vertex < high:
            before, moved = moved, vertex
            if min(x + vertex - low, high - x - vertex) < 2.0 * _CLOSE:
                moved = math.copysign(_CLOSE, middle - x)
        else:
            before = (low if x >= middle else high) - x
            moved = _GOLDEN * before
        u = x + (moved if abs(moved) >= _CLOSE else math.copysign(_CLOSE, moved))
        at_u = function(u)
        if at_u <= at_x:
            low, high = (x, high) if u >= x else (low, x)
            v, at_v, w, at_w, x, at_x = w, at_w, x, at_x, u, at_u
            continue
        low, high = (u, high) if u < x else (low, u)
        if at_u <= at_w or w == x:
            v, at_v, w, at_w = w, at_w, u, at_u
        elif at_u <= at_v or v in (x, w):
            v, at_v = u, at_u
    return x


def _vertex(x: float, at_x: float, w: float, at_w: float, v: float, at_v: float) -> float | None:
    """Return the distance from x to the vertex of the parabola through three points; None if there is none."""
    r, q = (x - w) * (at_x - at_v), (x - v) * (at_x - at_w)
    bend = 2.0 * (q - r)
    return None if bend == 0.0 or not math.isfinite(bend) else ((x - w) * r - (x - v) * q) / bend


def _round_up(*terms: float) -> float:
    """Return an upper bound on the sum of terms with errors of 4 units of roundoff each; inf if it overflows."""
    try:
        return math.fsum(terms) + 6.0 * UNIT * math.fsum(map(abs, terms))
    except (OverflowError, ValueError):
        return math.inf
