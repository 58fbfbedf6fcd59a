"""Curves of a Gaussian and their averages over many cases, in logarithms and rounded down."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from itertools import pairwise

from dpcalc.notions import gaussian
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import UNIT

_FARTHEST = 1e90  # epsilon/mu of a term that is evaluated
SMALLEST, LARGEST = 1e-290, 1e90
"""A mu below the first gives no lower value; a mu above the second is lowered to the second."""


def gaussian_log_delta(mu: float, epsilon: float) -> float:
    """Return ln delta of a Gaussian mechanism, rounded down; -inf where mu is too small to evaluate."""
    return gaussian.log_delta_down(mu=mu, epsilon=epsilon)


def log_average(log_sum: float, log_count: float) -> float:
    """Return ln(sum/count), rounded down and at most 0."""
    value = log_sum - log_count
    return min(0.0, value - UNIT * (8.0 * abs(value) + 8.0 * log_count + 16.0)) if value > -math.inf else value


def log_sum(term: Callable[[int, int], float], first: int, last: int) -> float:
    """Return a lower bound on ln of the sum of the terms first <= k <= last.

    Far from the start, a block of terms is evaluated at once. The sum ends where the terms fall below e^-60 of the
    largest.

    Args:
        term: (low, high) -> a lower bound on ln of every term with low <= k <= high.
        first, last: 1 <= first <= last.
    """
    logs: list[float] = []
    peak, k = -math.inf, first
    while k <= last:
        end = k if k < first + 128 else min(last, max(k, int(first + (k - first) * 1.02)))
        value = term(k, end) + math.log(end - k + 1)
        logs.append(value)
        if value < peak - 60.0 and value < logs[-2]:
            break
        peak = max(peak, value)
        k = end + 1
    if peak == -math.inf:
        return peak
    value = peak + math.log(math.fsum(math.exp(x - peak) for x in logs))
    return value - UNIT * (8.0 * abs(value) + 4.0 * math.log(last + 1) + 64.0)


def log_sum_of_gaussians(mu: Callable[[Array], Array], epsilon: float, first: int, last: int) -> float:
    """Return a lower bound on ln of the sum of delta_G(eps; mu_k) over first <= k <= last, all blocks at once.

    Args:
        mu: positions, as floats -> lower bounds on mu_k, which do not increase in k.
        epsilon: >= 0.
        first, last: 1 <= first <= last.
    """
    from dpcalc.numerics.normal_arrays import log_hockey_stick_down

    ends, log_counts = _blocks(first, last)
    with np.errstate(under="ignore"):
        mus = np.minimum(mu(ends), LARGEST)
    usable = mus > max(1e-90, epsilon / _FARTHEST)
    if not usable.any():
        return -math.inf
    logs = log_hockey_stick_down(np.full(int(usable.sum()), epsilon), mus[usable]) + log_counts[usable]
    peak = float(logs.max())
    value = peak + math.log(float(np.exp(logs - peak).sum()))
    return value - UNIT * (8.0 * abs(value) + 4.0 * math.log(last + 1) + 8.0 * len(logs) + 64.0)


@functools.lru_cache(maxsize=64)
def _blocks(first: int, last: int) -> tuple[Array, Array]:
    """Return the last position of each block of `log_sum`, and ln of how many it has."""
    ends, k = [], first
    while k <= last:
        ends.append(k if k < first + 128 else min(last, max(k, int(first + (k - first) * 1.02))))
        k = ends[-1] + 1
    counts = [end - before for before, end in pairwise([first - 1, *ends])]
    return np.array(ends, float), np.log(np.array(counts, float))
