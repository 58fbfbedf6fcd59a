"""What noise costs: excess risk of noisy gradient descent on strongly convex losses (Chourasia et al., Theorem 3).

Noise here is theirs, sigma_C of w - eta gradient + sqrt(2 eta) sigma_C N(0, 1), with eta = lambda/(2 beta^2). The
minimiser is to lie inside the domain, where the gradient vanishes; they leave that out.
"""

from __future__ import annotations

import math

from dpcalc.numerics.floats import up


def langevin_variance(
    *, lipschitz: float, strong_convexity: float, records: int, epsilon: float, log_delta: float
) -> float:
    """Return sigma_C^2 = 8 L^2 (eps + 2 ln(1/delta))/(lambda eps^2 n^2), rounded up: for any number of steps.

    Args:
        lipschitz, strong_convexity: L and lambda > 0.
        records: n.
        epsilon, log_delta: the budget, ln delta < 0.
    """
    top = 8.0 * lipschitz * lipschitz * (epsilon - 2.0 * log_delta)
    return up(top / (strong_convexity * epsilon * epsilon * float(records) * float(records)), 16.0)


def langevin_steps(
    *, smoothness: float, strong_convexity: float, records: int, dimension: int, epsilon: float, log_delta: float
) -> float:
    """Return K* = (2 beta^2/lambda^2) ln(n^2 eps^2/(4 d ln(1/delta))), a real number; the logarithm is to be > 0."""
    gain = 2.0 * math.log(records * epsilon) - math.log(4.0 * dimension * -log_delta)
    return 2.0 * (smoothness / strong_convexity) ** 2 * gain


def langevin_excess(
    *, lipschitz: float, smoothness: float, strong_convexity: float, records: int, dimension: int, epsilon: float,
    log_delta: float,
) -> float:  # fmt: skip
    """Return the stated bound with its constant: 8 beta d L^2 (2 eps + 5 ln(1/delta))/(lambda^2 eps^2 n^2)."""
    top = 8.0 * smoothness * dimension * lipschitz * lipschitz * (2.0 * epsilon - 5.0 * log_delta)
    return up(top / (strong_convexity * epsilon * float(records)) ** 2, 16.0)


def langevin_excess_tight(
    *, lipschitz: float, smoothness: float, strong_convexity: float, records: int, dimension: int, epsilon: float,
    log_delta: float,
) -> float:  # fmt: skip
    """Return (beta/2) ((1-x)^(2K) 4 L^2/lambda^2 + 2 d sigma_C^2/(lambda (2-x))), x = eta lambda, K = ceil(K*)."""
    variance = langevin_variance(
        lipschitz=lipschitz, strong_convexity=strong_convexity, records=records, epsilon=epsilon, log_delta=log_delta
    )
    steps = math.ceil(
        langevin_steps(
            smoothness=smoothness, strong_convexity=strong_convexity, records=records, dimension=dimension,
            epsilon=epsilon, log_delta=log_delta,
        )
    )  # fmt: skip
    x = strong_convexity**2 / (2.0 * smoothness**2)
    start = math.exp(2.0 * steps * math.log1p(-x)) * 4.0 * (lipschitz / strong_convexity) ** 2
    kept = 2.0 * dimension * variance / (strong_convexity * (2.0 - x))
    return up(0.5 * smoothness * (start + kept), 64.0 + 4.0 * steps * x)
