"""One budget, replace-one at (epsilon, delta), in the words of each tool. Standard library only."""

from __future__ import annotations

import math
from functools import lru_cache

DELTA = 1e-5
"""The delta of every fit."""


@lru_cache(maxsize=100)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the mu of the Gaussian mechanism that is (epsilon, delta)-private: sensitivity over standard deviation.

    By bisection; delta rises with mu.
    """
    low, high = 0.0, 100.0
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if gaussian_delta(middle, epsilon) <= delta else (low, middle)
    return low


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of the Gaussian mechanism at epsilon > 0.

    Balle and Wang (2018), Theorem 8: Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).
    """
    return _phi(mu / 2.0 - epsilon / mu) - math.exp(epsilon) * _phi(-mu / 2.0 - epsilon / mu)


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def added_or_removed(epsilon: float, delta: float) -> tuple[float, float]:
    """Return an (epsilon, delta) whose guarantee for a record added or removed implies replace-one at the one given.

    Replacing is removing and adding: (e, d) twice is (2 e, (1 + e^e) d), by the triangle inequality of groups.
    """
    return epsilon / 2.0, delta / (1.0 + math.exp(epsilon / 2.0))


def kappa(epsilon: float, records: int, columns: int) -> float:
    """Return n mu/(2 sqrt(d)), what dpcalc's default rule goes by; ``columns`` has no constant one yet."""
    return records * gaussian_mu(epsilon, DELTA) / (2.0 * math.sqrt(columns + 1.0))
