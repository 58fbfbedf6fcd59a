"""The worst (epsilon, delta)-DP mechanism: randomised response that reveals its secret with probability delta.

A box is (epsilon, ln delta) of a mechanism about which nothing else is known. The losses of boxes add up exactly, also
together with a Gaussian mechanism.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from dpcalc.notions import gaussian
from dpcalc.numerics.floats import UNIT, log_add_exp, log_exp1p, log_one_minus_exp, log_sum_exp, up

Box = tuple[float, float]
"""(epsilon, ln delta)."""


def boxes_log_delta(mu: float, boxes: Sequence[tuple[Box, int]], epsilon: float) -> float:
    """Return ln delta at ``epsilon`` of a mu-GDP mechanism composed with (epsilon_i, delta_i) boxes, rounded up.

    The worst box is randomised response that reveals its secret with probability delta_i: its loss is +-epsilon_i with
    weights e^epsilon_i/(1 + e^epsilon_i) and the rest, so that with s the sum of the losses of all boxes

        delta = 1 - prod (1 - delta_i) + prod (1 - delta_i) E_s delta_G(epsilon - s; mu),

    where delta_G(-x) = 1 - e^-x + e^-x delta_G(x), and mu = 0 is a mechanism that reveals nothing.

    Args:
        mu: mu >= 0.
        boxes: ((epsilon, ln delta), count); ln delta = -inf is pure privacy.
        epsilon: epsilon >= 0.

    >>> round(math.exp(boxes_log_delta(0.5, [((1.0, math.log(1e-6)), 1)], 2.0)), 8)
    0.00499383
    """
    if mu == 0.0 and len(boxes) == 1:
        from dpcalc.notions import optimal_composition

        ((epsilon0, log_delta0), count), = boxes  # fmt: skip
        return optimal_composition.log_delta(epsilon0=epsilon0, log_delta0=log_delta0, count=count, epsilon=epsilon)
    if any(log_delta0 >= 0.0 or epsilon0 == math.inf for (epsilon0, log_delta0), _ in boxes):
        return 0.0
    revealed, log_none = _log_any(boxes)
    largest = up(math.fsum(count * epsilon0 for (epsilon0, _), count in boxes), 4.0)
    slack = 8.0 * UNIT * (epsilon + largest)
    logs = [log_weight + _at(mu, epsilon - loss - slack) for loss, log_weight in _losses(boxes)]
    finite = log_sum_exp(logs) + log_none
    # A weight is the sum of a few logarithms, each at most this large; delta_G is already rounded up.
    size = largest + sum(count for _, count in boxes) + 64.0
    if finite > -math.inf:
        finite = min(0.0, finite + UNIT * (16.0 * size + 8.0 * abs(finite)))
    value = log_add_exp(revealed, finite)
    return min(0.0, value + UNIT * (8.0 * abs(value) + 16.0)) if value > -math.inf else value


def box_profile(box: Box) -> Callable[[float], float]:
    """Return epsilon >= 0 -> ln delta of the worst mechanism with this point, with a cache."""
    return functools.cache(lambda epsilon: boxes_log_delta(0.0, [(box, 1)], epsilon))


def _losses(boxes: Sequence[tuple[Box, int]]) -> list[tuple[float, float]]:
    """Return (s, ln of its weight) for every sum of losses of the boxes."""
    law = [(0.0, 0.0)]
    for (epsilon0, _), count in boxes:
        log_up, log_down = -log_exp1p(-epsilon0), -log_exp1p(epsilon0)
        own = [
            (epsilon0 * (2 * x - count), math.log(math.comb(count, x)) + x * log_up + (count - x) * log_down)
            for x in range(count + 1)
        ]
        law = [(s + loss, log_w + log_v) for s, log_w in law for loss, log_v in own]
    return law


def _log_any(boxes: Sequence[tuple[Box, int]]) -> tuple[float, float]:
    """Return ln(1 - prod (1 - delta_i)^count_i), at most the sum of all delta_i, and ln of the product; rounded up."""
    total, log_none = -math.inf, 0.0
    for (_, log_delta0), count in boxes:
        if log_delta0 > -math.inf:
            total = log_add_exp(total, log_delta0 + math.log(count))
            log_none += count * log_one_minus_exp(log_delta0)
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
    """Return ln delta at -epsilon from ln delta of the other order at epsilon > 0, rounded up.

    delta(-e) = 1 - e^-e + e^-e delta(e).
    """
    value = log_add_exp(log_one_minus_exp(-epsilon), log_delta - epsilon)
    return min(0.0, value + UNIT * (8.0 * abs(value) + 16.0)) if value > -math.inf else value


def with_pure(curve: Callable[[float], float], pure: float, epsilon: float) -> float:
    """Return ln delta at ``epsilon`` of a profile composed with one epsilon-DP mechanism, rounded up.

    w delta(epsilon - pure) + (1 - w) delta(epsilon + pure), w = e^pure/(1 + e^pure).

    Args:
        curve: epsilon >= 0 -> ln delta, in either order.
        pure: epsilon of the mechanism, from 0 to ``epsilon``.
        epsilon: of the composition.
    """
    near = curve(max(0.0, epsilon - pure - 4.0 * UNIT * epsilon)) - log_exp1p(-pure)
    value = log_add_exp(near, curve(epsilon + pure - 4.0 * UNIT * (epsilon + pure)) - log_exp1p(pure))
    return min(0.0, value + UNIT * (8.0 * abs(value) + 8.0 * pure + 32.0)) if value > -math.inf else value


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
