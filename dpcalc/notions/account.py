"""Several releases about the same records, added up: what holds of all of them together.

Gaussian parts compose in closed form (mu^2 adds), Gaussian parts with (epsilon, delta) boxes by the exact law of the
boxes' losses, and everything else by the law of the privacy loss on one lattice. A removed and an added record are kept
apart until the end: `Composition` has a list of dominating pairs for either order, and the larger epsilon counts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.errors import NotApplicable
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Composition, Gdp, Guarantee, LowerBound, Point, Profile, Rdp, Worst
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.logspace import log_add_exp, log_exp1p, log_one_minus_exp, log_sum_exp

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpcalc.notions.pld import Pair

    Pairs = Sequence[tuple[Pair, int]]
    Array = NDArray[np.float64]

MOST_TERMS = 1500
"""Different losses of boxes that are added up one by one; with more, the lattice composes."""

_BELOW = 16.0  # a curve is tabulated down to e^-16 of the target, and what is rarer counts as an infinite loss
_STEP = 0.1  # of ln delta between neighbouring points of a tabulated curve
_MOST_NODES = 600


class Box(NamedTuple):
    """(epsilon, delta)-DP in both orders, and nothing else known: -inf for ln delta is pure privacy."""

    epsilon: float
    log_delta: float = -math.inf


Part = Guarantee | Box


class Total(NamedTuple):
    """What holds of all parts together, and how it was composed: gdp, exact, pld or renyi; own where one is alone."""

    form: str
    guarantee: Guarantee


def compose_all(parts: Sequence[tuple[Part, int]], *, one_way: bool = False) -> list[Total]:
    """Return the totals that hold of all parts together, each ``count`` times, adaptively: all are guarantees.

    Args:
        parts: (what holds of one run, how many of them), each in the same orders of the two data sets.
        one_way: whether only one order is spoken of: a record added, or one removed.

    Raises:
        NotApplicable: nothing composes them.
    """
    totals: list[Total] = []
    if len(parts) == 1 and parts[0][1] == 1 and isinstance(alone := parts[0][0], (Rdp, Profile, Composition)):
        return [Total("own", alone)]
    if all(isinstance(part, Gdp) for part, _ in parts):
        return [Total("gdp", Gdp(_mu_of(parts)))]
    if all(isinstance(part, (Gdp, Box)) for part, _ in parts) and _terms(parts) <= MOST_TERMS:
        return [Total("exact", Profile(functools.cache(functools.partial(boxes_log_delta, *_split(parts)))))]
    if all(_composable(part) for part, _ in parts):
        totals.append(Total("pld", _composition(parts, one_way=one_way)))
    if all(_has_renyi(part) for part, _ in parts):
        totals.append(Total("renyi", Rdp(lambda order: up(math.fsum(n * _renyi(p, order) for p, n in parts), 4.0))))
    if not totals:
        raise NotApplicable("nothing composes these entries", "give each as mu, as pairs or as (epsilon, delta)")
    return totals


# --- Gaussian parts and boxes -----------------------------------------------------------------------------------------


def _mu_of(parts: Sequence[tuple[Part, int]]) -> float:
    return gaussian.together((part.mu, count) for part, count in parts if isinstance(part, Gdp))


def _boxes(parts: Sequence[tuple[Part, int]]) -> dict[Box, int]:
    counts: dict[Box, int] = {}
    for part, count in parts:
        if isinstance(part, Box):
            counts[part] = counts.get(part, 0) + count
    return counts


def _terms(parts: Sequence[tuple[Part, int]]) -> float:
    """Return how many losses the boxes have together; 1 where boxes of one kind are alone."""
    boxes = _boxes(parts)
    alone = len(boxes) == 1 and not any(isinstance(part, Gdp) for part, _ in parts)
    return 1 if alone else math.prod(count + 1 for count in boxes.values())


def _split(parts: Sequence[tuple[Part, int]]) -> tuple[float, tuple[tuple[Box, int], ...]]:
    return _mu_of([(p, n) for p, n in parts if isinstance(p, Gdp)]), tuple(_boxes(parts).items())


def boxes_log_delta(mu: float, boxes: Sequence[tuple[Box, int]], epsilon: float) -> float:
    """Return ln delta at ``epsilon`` of a mu-GDP mechanism and (epsilon_i, delta_i) boxes together, rounded up.

    The worst box is randomised response that reveals its secret with probability delta_i: its loss is +-epsilon_i with
    weights e^epsilon_i/(1 + e^epsilon_i) and the rest, so that with s the sum of the losses of all boxes

        delta = 1 - prod (1 - delta_i) + prod (1 - delta_i) E_s delta_G(epsilon - s; mu),

    where delta_G(-x) = 1 - e^-x + e^-x delta_G(x), and mu = 0 is a mechanism that says nothing.

    Args:
        mu: mu >= 0.
        boxes: (box, how often).
        epsilon: epsilon >= 0.

    >>> round(math.exp(boxes_log_delta(0.5, [(Box(1.0, math.log(1e-6)), 1)], 2.0)), 8)
    0.00499383
    """
    if mu == 0.0 and len(boxes) == 1:
        from dpcalc.notions import optimal_composition

        (box, count), = boxes  # fmt: skip
        return optimal_composition.log_delta(
            epsilon0=box.epsilon, log_delta0=box.log_delta, count=count, epsilon=epsilon
        )
    if any(box.log_delta >= 0.0 or box.epsilon == math.inf for box, _ in boxes):
        return 0.0
    told, log_none = _log_any(boxes)
    largest = up(math.fsum(count * box.epsilon for box, count in boxes), 4.0)
    slack = 8.0 * UNIT * (epsilon + largest)
    logs = [log_weight + _at(mu, epsilon - loss - slack) for loss, log_weight in _losses(boxes)]
    finite = log_sum_exp(logs) + log_none
    # A weight is the sum of a few logarithms of at most so large terms; delta_G is rounded up itself.
    size = largest + sum(count for _, count in boxes) + 64.0
    if finite > -math.inf:
        finite = min(0.0, finite + UNIT * (16.0 * size + 8.0 * abs(finite)))
    value = log_add_exp(told, finite)
    return min(0.0, value + UNIT * (8.0 * abs(value) + 16.0)) if value > -math.inf else value


def box_curve(box: Box) -> Callable[[float], float]:
    """Return epsilon >= 0 -> ln delta of the worst mechanism that has one point; what was asked is remembered."""
    return functools.cache(lambda epsilon: boxes_log_delta(0.0, [(box, 1)], epsilon))


def _losses(boxes: Sequence[tuple[Box, int]]) -> list[tuple[float, float]]:
    """Return (s, ln of its weight) for every sum of losses of the boxes."""
    law = [(0.0, 0.0)]
    for box, count in boxes:
        log_up = -log_exp1p(-box.epsilon)
        log_down = -log_exp1p(box.epsilon)
        own = [
            (box.epsilon * (2 * x - count), math.log(math.comb(count, x)) + x * log_up + (count - x) * log_down)
            for x in range(count + 1)
        ]
        law = [(s + loss, log_w + log_v) for s, log_w in law for loss, log_v in own]
    return law


def _log_any(boxes: Sequence[tuple[Box, int]]) -> tuple[float, float]:
    """Return ln(1 - prod (1 - delta_i)^count_i), at most the sum of all delta_i, and ln of the product; rounded up."""
    total, log_none = -math.inf, 0.0
    for box, count in boxes:
        if box.log_delta > -math.inf:
            total = log_add_exp(total, box.log_delta + math.log(count))
            log_none += count * log_one_minus_exp(box.log_delta)
    if total == -math.inf:
        return total, 0.0
    if log_none < -1e-8:
        total = min(total, log_one_minus_exp(log_none * (1.0 + 1e-12)))
    total = min(0.0, total + UNIT * (8.0 * abs(total) + 16.0 * (len(boxes) + 2.0)))
    return total, log_none * (1.0 - 1e-12)


def _at(mu: float, epsilon: float) -> float:
    """Return ln delta_G at an epsilon of either sign."""
    if epsilon >= 0.0:
        return gaussian.log_delta(mu=mu, epsilon=epsilon) if mu > 0.0 else -math.inf
    inside = gaussian.log_delta(mu=mu, epsilon=-epsilon) if mu > 0.0 else -math.inf
    return at_negative(-epsilon, inside)


def at_negative(epsilon: float, log_delta: float) -> float:
    """Return ln delta at -epsilon of a profile whose other order has this ln delta at epsilon > 0, rounded up.

    delta(-e) = 1 - e^-e + e^-e delta(e).
    """
    value = log_add_exp(log_one_minus_exp(-epsilon), log_delta - epsilon)
    return min(0.0, value + UNIT * (8.0 * abs(value) + 16.0)) if value > -math.inf else value


def with_pure(curve: Callable[[float], float], pure: float, epsilon: float) -> float:
    """Return ln delta at ``epsilon`` of a profile and one epsilon-DP mechanism together, rounded up.

    w delta(epsilon - pure) + (1 - w) delta(epsilon + pure), w = e^pure/(1 + e^pure).

    Args:
        curve: epsilon >= 0 -> ln delta, in either order.
        pure: epsilon of the mechanism, from 0 to ``epsilon``.
        epsilon: of both together.
    """
    near = curve(max(0.0, epsilon - pure - 4.0 * UNIT * epsilon)) - log_exp1p(-pure)
    value = log_add_exp(near, curve(epsilon + pure - 4.0 * UNIT * (epsilon + pure)) - log_exp1p(pure))
    return min(0.0, value + UNIT * (8.0 * abs(value) + 8.0 * pure + 32.0)) if value > -math.inf else value


# --- everything else --------------------------------------------------------------------------------------------------


def _composable(part: Part) -> bool:
    """Return whether the part has a dominating pair."""
    if isinstance(part, Worst):
        return all(isinstance(member, (Gdp, Profile, Rdp)) for member in part.members)
    return not isinstance(part, (Point, LowerBound))


def _has_renyi(part: Part) -> bool:
    if isinstance(part, Worst):
        return all(isinstance(member, (Gdp, Rdp)) for member in part.members)
    return isinstance(part, (Gdp, Rdp)) or (isinstance(part, Box) and part.log_delta == -math.inf)


def _renyi(part: Part, order: float) -> float:
    return response_renyi(part.epsilon, order) if isinstance(part, Box) else part.rdp(order)


def response_renyi(epsilon: float, order: float) -> float:
    """Return the Renyi divergence of randomised response, the worst of epsilon-DP, rounded up.

    ln(p^a (1-p)^(1-a) + (1-p)^a p^(1-a))/(a-1) for p = e^epsilon/(1 + e^epsilon); epsilon tanh(epsilon/2) at a = 1.
    """
    if order == 1.0:
        return up(epsilon * math.tanh(0.5 * epsilon), 8.0)
    if order < 1.0 + 1e-6:
        return response_renyi(epsilon, 1.0 + 1e-6)  # it grows with the order; nearer to 1 the quotient cancels
    if math.isinf(order):
        return epsilon
    moment = log_add_exp(order * epsilon, (1.0 - order) * epsilon) - log_exp1p(epsilon)
    moment += UNIT * (8.0 * (order + 1.0) * epsilon + 16.0)
    return min(epsilon, up(moment / (order - 1.0), 4.0))


def _composition(parts: Sequence[tuple[Part, int]], *, one_way: bool) -> Composition:
    """Return the composition of pairs in either order; parts that hold in both orders enter both."""

    @functools.lru_cache(maxsize=8)
    def made(second: bool, log_delta: float) -> tuple[tuple[Pair, int], ...]:
        pairs: list[tuple[Pair, int]] = []
        for part, count in parts:
            pairs += [(pair, times * count) for pair, times in _pairs(part, second, log_delta)]
        return tuple(pairs)

    first = functools.partial(made, False)
    two = not one_way and any(isinstance(part, Composition) and part.reverse for part, _ in parts)
    return Composition(first, functools.partial(made, True) if two else ())


def _pairs(part: Part, second: bool, log_delta: float) -> Pairs:
    """Return the dominating pairs of a part in one order, best about this ln delta of the whole."""
    from dpcalc.notions import pld

    if isinstance(part, Gdp):
        return [(pld.gaussian_sum([(part.mu, 1)]), 1)]
    if isinstance(part, Box):
        return _box_pairs(part)
    if isinstance(part, Composition):
        chosen = part.reverse if second and part.reverse else part.parts
        failing = _box_pairs(Box(0.0, part.log_failure)) if part.log_failure > -math.inf else []
        return [*(chosen(log_delta) if callable(chosen) else chosen), *failing]
    return [(_tabulated_pair(part, 8.0 * math.floor((log_delta - _BELOW) / 8.0)), 1)]


@functools.lru_cache(maxsize=64)
def _box_pairs(box: Box) -> Pairs:
    from dpcalc.notions import pld

    if box.epsilon < 1e-30:
        log_delta = box.log_delta
        return [(pld.from_curve(lambda e: e * 0.0 + log_delta), 1)] if log_delta > -math.inf else []
    if box.epsilon > 1e15 or box.log_delta >= 0.0:
        return [(pld.from_curve(lambda e: e * 0.0), 1)]
    return [(pld.randomised_response(epsilon=box.epsilon, log_delta=box.log_delta), 1)]


_TABLES: dict[tuple[int, float], tuple[object, Pair]] = {}


def _tabulated_pair(part: Guarantee, floor: float) -> Pair:
    """Return the pair that a profile describes, tabulated once for each part and floor."""
    from dpcalc.notions import pld

    key = (id(part), floor)
    if key not in _TABLES:
        if len(_TABLES) > 64:
            _TABLES.clear()
        curve = tabulated(lambda e: part.log_delta(e).value, floor)
        _TABLES[key] = (part, pld.from_curve(curve))
    return _TABLES[key][1]


def tabulated(log_delta: Callable[[float], float], floor: float) -> Callable[[Array], Array]:
    """Return a curve of arrays that bounds a profile from above: exact at some hundred points, with chords between.

    Args:
        log_delta: epsilon >= 0 -> an upper bound on ln delta, of a delta that is convex in e^epsilon and falls.
        floor: below this ln delta the curve is constant.
    """
    import numpy as np

    from dpcalc.notions.profiles import chords

    known = {0.0: min(0.0, log_delta(0.0))}

    def at(epsilon: float) -> float:
        if epsilon not in known:
            known[epsilon] = min(0.0, log_delta(epsilon))
        return known[epsilon]

    top = 2.0**-40
    while at(top) > floor and top < 2.0**40:
        top *= 2.0
    for _ in range(12):
        nodes = sorted(known)
        values = np.minimum.accumulate([known[e] for e in nodes])
        fresh = [
            0.5 * (left + right)
            for left, right, high, low in zip(nodes, nodes[1:], values, values[1:], strict=False)
            if high - max(low, floor) > _STEP * max(1.0, 0.05 * -high) and right - left > 1e-9 * right
        ]
        if not fresh or len(known) + len(fresh) > _MOST_NODES:
            break
        for epsilon in fresh:
            at(epsilon)
    points = np.array(sorted(known))
    return chords(points, _narrowed(points, np.minimum.accumulate(np.array([known[e] for e in sorted(known)]))))


def _narrowed(nodes: Array, values: Array) -> Array:
    """Return the bounds on ln delta of both orders at increasing epsilons, each the least that all of them imply.

    (e_j, delta_j) in both orders is worst for randomised response: at an epsilon below e_j delta is at most delta_j +
    (1 - delta_j) (1 - e^(epsilon - e_j))/(1 + e^-e_j).
    """
    import numpy as np

    with np.errstate(divide="ignore"):
        pure = np.log(-np.expm1(np.minimum(nodes[:, None] - nodes[None, :], 0.0))) - np.log1p(np.exp(-nodes))[None, :]
        implied = np.logaddexp(values[None, :], pure)
    padding = 64.0 * UNIT * (1.0 + np.where(np.isfinite(implied), np.abs(implied), 0.0))
    implied = np.where(nodes[:, None] < nodes[None, :], implied + padding, 0.0)
    least: Array = np.minimum(values, implied.min(axis=1))
    return least
