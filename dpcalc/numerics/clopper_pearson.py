"""Exact confidence bounds on a probability from a count (Clopper and Pearson 1934), rounded outwards.

If k of n independent trials succeed, p is below the lower bound with probability at most alpha, for every p; likewise
for the upper bound. The bounds solve P(Bin(n, p) >= k) = alpha and P(Bin(n, p) <= k) = alpha. Both tails are incomplete
beta functions of p.
"""

from __future__ import annotations

import math

from dpcalc.numerics.floats import up

_MARGIN = 1e-6
"""Relative margin of the tail below alpha: far more than the error of the incomplete beta function."""


def lower(successes: int, trials: int, alpha: float) -> float:
    """Return a lower bound on p that fails with probability at most alpha.

    Args:
        successes, trials: 0 <= k <= n, n >= 1 up to 1e9.
        alpha: in (0, 1/2].

    >>> 0.0 < lower(10, 100, 0.05) < 0.1
    True
    """
    _check(successes, trials, alpha)
    if successes == 0:
        return 0.0
    from scipy.special import betainc, betaincinv

    a, b = float(successes), float(trials - successes + 1)
    p, step = float(betaincinv(a, b, alpha)), 1e-12
    while p > 0.0 and not betainc(a, b, p) <= alpha * (1.0 - _MARGIN):
        p, step = max(0.0, p * (1.0 - step)), 2.0 * step
    return p


def upper(successes: int, trials: int, alpha: float) -> float:
    """Return an upper bound on p that fails with probability at most alpha.

    Args:
        successes, trials, alpha: as in `lower`.

    >>> 0.1 < upper(10, 100, 0.05) < 0.2
    True
    """
    _check(successes, trials, alpha)
    if successes == trials:
        return 1.0
    from scipy.special import betainc, betaincinv

    a, b = float(trials - successes), float(successes + 1)  # of 1 - p, and of p
    p, step = float(betaincinv(b, a, 1.0 - alpha)), 1e-12
    while p < 1.0 and not betainc(a, b, 1.0 - p) <= alpha * (1.0 - _MARGIN):
        p, step = min(1.0, max(p * (1.0 + step), math.nextafter(p, 1.0))), 2.0 * step
    return p


def sharp_lower(successes: int, trials: int, alpha: float) -> float:
    """Return `lower` to about 1e-12, for up to 1e7 trials: the tail is a sum of masses with a known error.

    >>> round(sharp_lower(3, 10, 0.05), 6)
    0.087264
    """
    _check(successes, trials, alpha)
    if successes == 0:
        return 0.0
    from scipy.special import betaincinv

    from dpcalc.numerics import binomial

    p, step = float(betaincinv(float(successes), float(trials - successes + 1), alpha)), 1e-15
    while p > 0.0 and not binomial.tail(trials, p, successes)[1] <= alpha:
        p, step = max(0.0, p * (1.0 - step)), 2.0 * step
    return p


def sharp_upper(successes: int, trials: int, alpha: float) -> float:
    """Return `upper` to about 1e-12: 1 minus the lower bound for the failures."""
    return up(1.0 - sharp_lower(trials - successes, trials, alpha))


def _check(successes: int, trials: int, alpha: float) -> None:
    if not (0 <= successes <= trials and trials >= 1 and 0.0 < alpha <= 0.5):
        raise ValueError(f"{successes} of {trials} at {alpha}")
