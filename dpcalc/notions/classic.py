"""The classic noise of the Gaussian mechanism, sigma = Delta sqrt(2 ln(1.25/delta))/epsilon, rounded up, and its range.

For large epsilon the mechanism is not (epsilon, delta)-DP at this sigma; `dpcalc.notions.gaussian` has the exact sigma.
"""

from __future__ import annotations

import math

from dpcalc.notions import gaussian
from dpcalc.numerics.floats import up
from dpcalc.numerics.roots import greatest

_LN_5_4 = 0.22314355131420976


def factor(log_delta: float) -> float:
    """Return sqrt(2 ln(1.25/delta)), to nearest, within 2 units of roundoff."""
    return math.sqrt(2.0 * (_LN_5_4 - log_delta))


def noise_std(*, sensitivity: float, epsilon: float, log_delta: float) -> float:
    """Return the classic sigma, rounded up: a guarantee only for epsilon <= `epsilon_max`."""
    return up(sensitivity * factor(log_delta) / epsilon, 8.0)


def true_log_delta(*, epsilon: float, log_delta: float) -> float:
    """Return ln of the delta that the classic sigma for (epsilon, delta) really has at epsilon, rounded up."""
    return gaussian.log_delta(mu=up(epsilon / factor(log_delta), 4.0), epsilon=epsilon)


def epsilon_max(log_delta: float) -> float:
    """Return the largest epsilon for which the classic sigma is really (epsilon, delta)-DP, rounded down.

    >>> round(epsilon_max(math.log(1e-5)), 3)
    8.42
    """

    def excess(epsilon: float) -> float:
        return true_log_delta(epsilon=epsilon, log_delta=log_delta) - log_delta

    return greatest(excess, 1e-3, 1e3)
