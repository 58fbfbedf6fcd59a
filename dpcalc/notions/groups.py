"""Several records of one person: what a guarantee for one record says of k records that differ at once.

Between two data sets that differ in k records there is a chain of data sets, each of which differs from the next in
one. What holds of every link holds of the chain:

* mu-GDP: k mu, exactly.
* A profile: delta_k(e_1 + ... + e_k) <= delta(e_1) + e^e_1 delta(e_2) + ... + e^(e_1 + ... + e_(k-1)) delta(e_k), for
  any real e_1, ..., e_k, since E_ab(P||R) <= E_a(P||Q) + a E_b(Q||R). Here they grow by equal steps, and the step is
  searched; for the Gaussian mechanism the best step gives delta_G at k mu. Where a long chain stops paying, what is
  proved at a smaller epsilon holds, and delta_G at k mu where one record has a finite mu.
* A Renyi curve: D_a(P||S) <= (a - 1/p)/(a - 1) D_pa(P||Q) + D_b(Q||S), b = p (a - 1/p)/(p - 1) (Bun and Steinke 2016).
  With j links before Q and l after it, p = 1 + (l/j)(a - 1)/a is exact for curves rho a: k^2 rho a.
"""

from __future__ import annotations

import functools
import math

from dpcalc.notions.curves import Curve, envelope
from dpcalc.notions.randomised_response import at_negative
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.logspace import log_add_exp

LARGEST = 1000
"""The largest group for curves that are no Gaussian privacy."""

_SECTIONS = 20  # golden sections leave 7e-5 of an interval about a minimum, where the sum is flat


def chained(curve: Curve, size: int, mu: float) -> Curve:
    """Return ln delta of groups at epsilon, from that of one record; ``mu`` is of the group, inf for none.

    Every link of the chain must be covered: the curve is of any record of any data set.
    """
    return envelope(lambda epsilon: group_log_delta(curve, epsilon, size), mu)


def group_log_delta(curve: Curve, epsilon: float, size: int) -> float:
    """Return an upper bound on ln delta at ``epsilon`` of groups of ``size`` records.

    Args:
        curve: epsilon >= 0 -> an upper bound on ln delta for one record, in either order.
        epsilon: epsilon >= 0 of the group.
        size: k >= 1.

    >>> from dpcalc.notions import gaussian
    >>> one = lambda e: gaussian.log_delta(mu=0.5, epsilon=e)
    >>> apart = group_log_delta(one, 2.0, 3) - gaussian.log_delta(mu=1.5, epsilon=2.0)
    >>> 0.0 < apart < 1e-6
    True
    """

    epsilon = min(epsilon, 1e290)  # of which all steps below are numbers; delta is no less there
    apart = functools.cache(lambda step: _chain(curve, epsilon, size, step))
    scale = (epsilon + 1.0) / size
    return min(0.0, _least_near(apart, [0.0, *(scale * 4.0**power for power in range(-8, 5))]))


def _least_near(function: Curve, points: list[float]) -> float:
    """Return the least value seen of a function: at increasing points, and between those beside the best of them."""
    values = [function(x) for x in points]
    place = values.index(min(values))
    low, high = points[max(0, place - 1)], points[min(len(points) - 1, place + 1)]
    best = values[place]
    for _ in range(_SECTIONS):
        first, second = low + 0.382 * (high - low), low + 0.618 * (high - low)
        if function(first) <= function(second):
            high = second
        else:
            low = first
        best = min(best, function(first), function(second))
    return best


def _chain(curve: Curve, epsilon: float, size: int, step: float) -> float:
    """Return ln of the sum for e_j = epsilon/k + (j - (k + 1)/2) step, rounded up."""
    total, spent, share = -math.inf, 0.0, epsilon / size
    for j in range(1, size + 1):
        own = share + (j - 0.5 * (size + 1)) * step
        if j == size:
            own = epsilon - spent  # what is left, so that the e_j add up
        slack = 8.0 * UNIT * (abs(own) + abs(spent) + epsilon)
        value = _anywhere(curve, own - slack)
        total = log_add_exp(total, spent + value)
        spent += own
        if total >= 0.0:
            return 0.0
    # Rounding: k terms, each with a sum of k numbers no larger than the largest |e_1 + ... + e_j|.
    most = epsilon + size * size * abs(step)
    return min(0.0, total + UNIT * (4.0 * size * (most + 4.0) + 4.0 * abs(total))) if total > -math.inf else total


def _anywhere(curve: Curve, epsilon: float) -> float:
    """Return ln delta at an epsilon of either sign."""
    return curve(epsilon) if epsilon >= 0.0 else at_negative(-epsilon, curve(-epsilon))


def group_renyi(curve: Curve, order: float, size: int) -> float:
    """Return an upper bound on the Renyi divergence of groups of ``size`` records at ``order`` >= 1.

    >>> round(group_renyi(lambda order: 0.5 * order, 3.0, 4) / (16.0 * 1.5), 12)
    1.0
    """
    if size == 1:
        return curve(order)
    if math.isinf(order):
        return up(size * curve(order), 2.0)
    after = size // 2
    before = size - after
    ratio = after / before
    exponent = 1.0 + ratio * (order - 1.0) / order
    weight = (1.0 + ratio) / exponent  # (a - 1/p)/(a - 1)
    first = group_renyi(curve, up(order * exponent, 8.0), before)
    second = group_renyi(curve, up(order * size / after, 8.0), after)
    # A weight of a p slightly off is that of another valid pair of orders: both only grow with the order.
    return up(weight * first + second, 32.0)
