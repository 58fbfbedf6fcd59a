"""Attacks against a guarantee: true-positive rates, guessing and reconstruction; all rounded up.

An attacker who knows all other records decides from the release whether one record was used. t(a) is the largest
true-positive rate at a false-positive rate a, 1 minus the trade-off function of Dong, Roth and Su (2022). For a profile
and every epsilon of either sign,

    t(a) <= delta(epsilon) + e^epsilon a,    delta(-e) = 1 - e^-e + e^-e delta(e),

so a search over epsilon may be loose but never wrong. All profiles here are the worse of both orders of the two data
sets: each statement holds whichever of them is true.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpcalc.notions import gaussian
from dpcalc.notions.curves import Curve, CurveWithFloor
from dpcalc.notions.randomised_response import box_profile
from dpcalc.numerics.floats import UNIT, down, exp_down, exp_up, log_add_exp, log_one_minus_exp, up
from dpcalc.numerics.normal import log_ndtr, quantile
from dpcalc.numerics.roots import least, near_minimum


class TradeOff(NamedTuple):
    """Upper bounds on what any attack achieves.

    Attributes:
        log_tpr: ln of the false-positive rate, < 0 -> ln of the largest true-positive rate, <= 0.
        advantage: the largest difference of the two rates.
        success: prior probability that the record was used, in (0, 1) -> the largest probability of a right guess.
    """

    log_tpr: Curve
    advantage: Callable[[], float]
    success: Callable[[float], float]

    def tpr(self, fpr: float) -> float:
        """Return the largest true-positive rate at this false-positive rate, in (0, 1)."""
        return min(1.0, exp_up(self.log_tpr(min(-UNIT, log_up(fpr)))))

    def reconstruction(self, baseline: float) -> float:
        """Return the largest probability of guessing a secret of the record, which is ``baseline`` without the release.

        The secret is independent of the other records. Let P_z be the law of the release for the secret z, Q the law
        with another fixed or a null record instead, and S_z the event that the attacker guesses z. The mean of Q(S_z)
        is at most the baseline, P_z(S_z) <= t(Q(S_z)), and t is concave.
        """
        return self.tpr(baseline)

    def predictive_value(self, fpr: float, prior: float) -> float:
        """Return the largest share of true positives among all positives: p t/(p t + (1 - p) a)."""
        true = self.tpr(fpr) * up(prior)
        return min(1.0, up(true / (true + down((1.0 - up(prior)) * down(fpr), 2.0)), 4.0))


def log_up(value: float) -> float:
    """Return the logarithm of a decimal in (0, 1), rounded up."""
    log = math.log(value)
    return min(0.0, log + UNIT * (4.0 + 2.0 * abs(log)))


SECTIONS, FEW_SECTIONS = 48, 20
"""The steps of a search over epsilon or the order: with few it is slightly looser."""


def worst_of(members: Sequence[TradeOff]) -> TradeOff:
    """Return the trade-off of the worst of several guarantees."""
    if len(members) == 1:
        return members[0]
    return TradeOff(
        lambda log_fpr: max(member.log_tpr(log_fpr) for member in members),
        lambda: max(member.advantage() for member in members),
        lambda prior: max(member.success(prior) for member in members),
    )


# --- Gaussian privacy -------------------------------------------------------------------------------------------------


def of_mu(mu: float) -> TradeOff:
    """Return the trade-off of mu-GDP."""
    if mu == 0.0:
        return of_box(0.0, -math.inf)
    if mu > 1e7:
        return of_box(0.0, 0.0)

    def log_tpr(log_fpr: float) -> float:
        z = quantile(log_fpr, upwards=False)
        value = log_ndtr(up(mu) - z + 4.0 * UNIT * (mu + abs(z)))
        return min(0.0, value + 8.0 * UNIT * (1.0 + abs(value)))

    return TradeOff(
        log_tpr,
        lambda: gaussian.delta(mu=mu, epsilon=0.0),
        lambda prior: _success(lambda epsilon: gaussian.log_delta(mu=mu, epsilon=epsilon), prior),
    )


# --- profiles and points ----------------------------------------------------------------------------------------------


def _success(curve: Curve, prior: float) -> float:
    """Return the largest probability of a right guess: 1 - q + q delta(ln((1 - q)/q)) with q = min(p, 1 - p)."""

    def at(q: float) -> float:
        epsilon = max(0.0, math.log((1.0 - q) / q) * (1.0 - 8.0 * UNIT) - 8.0 * UNIT)
        return up(1.0 - q + q * exp_up(curve(epsilon)), 8.0)

    # It is convex in the prior: the typed decimal lies between its neighbours, and the larger of both counts.
    return min(1.0, max(at(min(near, 1.0 - near)) for near in (down(prior), min(up(prior), 1.0 - UNIT))))


def _line(log_delta: float, epsilon: float, log_fpr: float) -> float:
    """Return ln of delta + e^epsilon a, rounded up; epsilon >= 0. It may be above 0."""
    value = log_add_exp(log_delta, epsilon + log_fpr)
    return value + UNIT * (8.0 + 4.0 * (epsilon - log_fpr + abs(value)))


def _reversed_line(log_delta: float, epsilon: float, log_fpr: float) -> float:
    """Return ln of 1 - e^-epsilon (1 - delta - a), rounded up; epsilon >= 0. It may be above 0."""
    rates = up(exp_up(log_delta) + exp_up(log_fpr))
    if rates >= 1.0:
        return rates - 1.0
    return math.log1p(-math.exp(-epsilon) * (1.0 - rates) * (1.0 - UNIT * (16.0 + 2.0 * epsilon))) * (1.0 - 4.0 * UNIT)


def of_box(epsilon0: float, log_delta: float) -> TradeOff:
    """Return the trade-off of (epsilon, delta)-DP."""
    epsilon = up(epsilon0)

    def log_tpr(log_fpr: float) -> float:
        return min(0.0, _line(log_delta, epsilon, log_fpr), _reversed_line(log_delta, epsilon, log_fpr))

    curve = box_profile((epsilon0, log_delta))
    return TradeOff(log_tpr, lambda: exp_up(curve(0.0)), functools.partial(_success, curve))


Points = tuple[tuple[float, float], ...]
"""Some points (epsilon, ln delta) of a profile, epsilon >= 0."""


def through(points: Points) -> Curve:
    """Return ln of the largest true-positive rate that some points of a profile allow.

    >>> round(math.exp(through(((1.0, math.log(1e-5)),))(math.log(0.001))), 10)
    0.0027282818
    """

    def log_tpr(log_fpr: float) -> float:
        return min(0.0, *(line(d, e, log_fpr) for e, d in points for line in (_line, _reversed_line)))

    return log_tpr


_LEAST_EPSILON = 1e-12  # searches over ln epsilon start here: below it a profile is flat


def of_orders(forward: CurveWithFloor, backward: CurveWithFloor, sections: int) -> TradeOff:
    """Return the trade-off for profiles of P against Q and of Q against P, whichever is true.

    If P is the law of true positives, the lines come from its own profile and the reversed lines from the other.
    """
    ways = [(forward, backward)] if backward is forward else [(forward, backward), (backward, forward)]
    return worst_of([_of_profile(curve, reverse, sections) for curve, reverse in ways])


_BESIDE = 18.0  # delta is negligible if it is e^-18 of what it is added to


def _log_told(epsilon: float) -> float:
    """Return ln of a delta that is negligible beside 1 - e^-epsilon."""
    return math.log(-math.expm1(-epsilon)) - _BESIDE if epsilon > 0.0 else -math.inf


def _of_profile(curve: CurveWithFloor, reverse: CurveWithFloor, sections: int) -> TradeOff:
    def least_over(value: Callable[[float], float], top: float) -> float:
        low, high = math.log(_LEAST_EPSILON), math.log(max(top, 2.0 * _LEAST_EPSILON))
        place = near_minimum(lambda s: value(math.exp(s)), low, high, sections)
        return min(value(0.0), value(math.exp(place)))

    @functools.cache
    def log_tpr(log_fpr: float) -> float:
        below = least_over(lambda e: _line(curve(e, e + log_fpr - _BESIDE), e, log_fpr), -log_fpr)
        if reverse is curve and below < math.log(0.5):
            return below  # for a symmetric profile the other lines are lower only above one half
        return min(0.0, below, least_over(lambda e: _reversed_line(reverse(e, _log_told(e)), e, log_fpr), 40.0))

    def box_at(epsilon: float) -> float:
        return _box_advantage(epsilon, curve(epsilon, _log_told(epsilon)))

    @functools.cache
    def advantage() -> float:
        at_zero = box_at(0.0)
        # Even if delta were 0, an epsilon that is not this small gives no less.
        elsewhere = min([box_at(e) for e in _PROBES if math.tanh(0.5 * e) < exp_up(at_zero)], default=0.0)
        if elsewhere > at_zero - _CONVEX:
            return exp_up(at_zero)
        return exp_up(min(elsewhere, least_over(box_at, 40.0)))

    def success(prior: float) -> float:
        return max(_success(curve, prior), _success(reverse, prior))

    return TradeOff(log_tpr, advantage, success)


_PROBES = (0.5, 2.0)
_CONVEX = 1e-3
"""For the exact profile of a mechanism, delta(0) gives the least advantage. If another point gives less by more than
this, in ln of the advantage, the profile is a loose bound, and the best point is searched for."""


def _box_advantage(epsilon: float, log_delta: float) -> float:
    """Return ln of (e^epsilon - 1 + 2 delta)/(e^epsilon + 1), rounded up."""
    half = math.tanh(0.5 * epsilon)
    value = half + 2.0 * exp_up(log_delta) / (math.exp(epsilon) + 1.0) if epsilon < 700.0 else 1.0
    if value == 0.0:
        return -math.inf if log_delta == -math.inf else math.log(2.0) + log_delta
    return min(0.0, math.log(value) + UNIT * (32.0 + 4.0 * abs(math.log(value))))


Nodes = list[tuple[float, float]]
"""(epsilon, an upper bound on ln delta there)."""

NODES = (0.0, *(2.0 ** (0.25 * k) for k in range(-56, -16)), *(0.0625 * k for k in range(1, 257)))
"""The epsilons at which a profile is evaluated for a plot."""


def tprs(
    forward: CurveWithFloor, backward: CurveWithFloor, fprs: Sequence[float], nodes: Sequence[float]
) -> list[float]:
    """Return the largest true-positive rates at many false-positive rates, each in (0, 1), for a plot.

    The profiles of both orders are evaluated at a few epsilons, the same for all rates: slightly loose but valid.
    """
    highest = -math.log(min(fprs))
    asked = [epsilon for epsilon in nodes if epsilon <= highest]
    forwards, backwards = ([(e, curve(e)) for e in asked] for curve in (forward, backward))
    logs = [min(-UNIT, log_up(fpr)) for fpr in fprs]
    return [max(_tpr_of_lines(forwards, backwards, log), _tpr_of_lines(backwards, forwards, log)) for log in logs]


def _tpr_of_lines(lines: Nodes, reversed_lines: Nodes, log_fpr: float) -> float:
    bounds = [_line(log_delta, epsilon, log_fpr) for epsilon, log_delta in lines]
    bounds += [_reversed_line(log_delta, epsilon, log_fpr) for epsilon, log_delta in reversed_lines]
    return min(1.0, exp_up(min(0.0, *bounds)))


# --- Renyi curves -----------------------------------------------------------------------------------------------------


def of_renyi(renyi: Curve, orders: Sequence[float], profile: Curve, sections: int) -> TradeOff:
    """Return the trade-off of a Renyi curve and the profile that follows from it; without ``orders``, over all
    orders."""
    known = functools.cache(renyi)

    def least_over_orders(bound: Callable[[float, float], float]) -> float:
        """Return the least of a bound over orders a > 1, given a and (a - 1) r, rounded up."""

        def at(order: float) -> float:
            exponent = up((order - 1.0) * known(order), 4.0)
            return bound(order, exponent) if math.isfinite(exponent) else 0.0

        if orders:
            return min((at(order) for order in orders if 1.0 < order < 1e12), default=0.0)
        place = near_minimum(lambda s: at(1.0 + math.exp(s)), math.log(1e-6), math.log(1e6), sections)
        return min(at(1.0 + math.exp(place)), at(1.0 + 1e-6), at(2.0))

    @functools.cache
    def log_tpr(log_fpr: float) -> float:
        return least_over_orders(functools.partial(_log_root, log_fpr))

    @functools.cache
    def advantage() -> float:
        log_half = least_over_orders(_log_guess)
        return min(1.0, max(0.0, up(2.0 * math.exp(log_half) * (1.0 + 4.0 * UNIT) - 1.0, 4.0) + 8.0 * UNIT))

    success = functools.partial(_success, lambda e: min(profile(e), math.log(max(advantage(), 1e-300))))
    return TradeOff(log_tpr, advantage, success)


def _log_moment(order: float, log_p: float, log_q: float) -> tuple[float, float]:
    """Return ln of p^a q^(1-a) + (1-p)^a (1-q)^(1-a), and a bound on its error."""
    log_not_p, log_not_q = log_one_minus_exp(log_p), log_one_minus_exp(log_q)
    terms = (order * log_p, (1.0 - order) * log_q, order * log_not_p, (1.0 - order) * log_not_q)
    first = terms[0] + terms[1]
    second = terms[2] + terms[3] if log_not_p > -math.inf else -math.inf
    size = sum(abs(term) for term in terms if math.isfinite(term))
    return log_add_exp(first, second), UNIT * (16.0 + 8.0 * size + 4.0 * order)


def _log_root(log_fpr: float, order: float, exponent: float) -> float:
    """Return ln of the largest t in the region that one order leaves, in either order of the data sets, rounded up.

    t^a f^(1-a) + (1-t)^a (1-f)^(1-a) <= e^((a-1) r), and the same with t and f swapped; both grow with t >= f.
    """

    def inside(log_t: float, *, swapped: bool) -> float:
        value, error = _log_moment(order, *((log_fpr, log_t) if swapped else (log_t, log_fpr)))
        return exponent + error - value

    log_root = 0.0
    for swapped in (False, True):
        # The least t that is surely outside the region.
        if inside(-2.0 * UNIT, swapped=swapped) <= 0.0:
            log_root = min(log_root, least(functools.partial(inside, swapped=swapped), log_fpr, -2.0 * UNIT))
    return log_root


def _log_guess(order: float, exponent: float) -> float:
    """Return ln of the largest t with (t, 1 - t) in the region of one order, rounded up."""

    def inside(log_t: float) -> float:
        value, error = _log_moment(order, log_t, log_one_minus_exp(log_t))
        return exponent + error - value

    start, end = math.log(0.5), -2.0 * UNIT
    return least(inside, start, end) if inside(end) <= 0.0 else 0.0


# --- reconstruction ---------------------------------------------------------------------------------------------------


# --- what an attack achieves ------------------------------------------------------------------------------------------


def tpr_of_mu_down(mu: float, fpr: float) -> float:
    """Return Q(z(a) - mu), rounded down: the true-positive rate of the best attack on N(0, 1) and N(mu, 1)."""
    value = log_ndtr(down(mu - quantile(math.log(fpr), upwards=True), 2.0))
    return max(fpr, exp_down(value - 8.0 * UNIT * (1.0 + abs(value))))


def tpr_of_profile_down(log_delta: Curve) -> Callable[[float], float]:
    """Return false-positive rate -> the least true-positive rate of any guarantee above a profile, rounded down.

    It is the least delta(e) + e^e a over real e. Over a cell from e to f,

        delta(f) + e^e a    and    1 - e^-e (1 - delta(f) - a)

    are lower bounds there, since delta falls.
    """
    delta = functools.cache(lambda place: exp_down(log_delta(NODES[place])))

    def tpr(fpr: float) -> float:
        least_tpr = min(-math.expm1(-NODES[-1]), math.exp(NODES[-1]) * fpr)  # beyond the last cell
        for place, start in enumerate(NODES[:-1]):
            if (rise := math.exp(start) * fpr) >= least_tpr:
                break  # all further values are larger
            least_tpr = min(least_tpr, delta(place + 1) + rise)
        for place, start in enumerate(NODES[:-1]):
            if (reached := -math.expm1(-start)) >= least_tpr:
                break
            least_tpr = min(least_tpr, reached + math.exp(-start) * (delta(place + 1) + fpr))
        return max(fpr, down(least_tpr, 16.0))

    return tpr
