"""mu-GDP and its exact conversions to and from (epsilon, delta).

A mechanism is mu-GDP if its outputs on neighbours are at least as hard to distinguish as N(0, 1) and N(mu, 1). Its
exact privacy profile is delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang
2018; Dong, Roth and Su 2022). Delta, epsilon and sigma round up, an admissible mu rounds down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from dpcalc.numerics.floats import MAX, UNIT, down, exp_up, log_add_exp, up
from dpcalc.numerics.normal import log_hockey_stick, log_hockey_stick_error, log_ndtr
from dpcalc.numerics.roots import greatest, least


def log_delta(*, mu: float, epsilon: float) -> float:
    """Return an upper bound on ln delta at ``epsilon`` of a mu-GDP mechanism.

    Args:
        mu: GDP parameter, mu >= 0 (inf allowed: delta = 1).
        epsilon: any finite real; below 0 by delta(e) = 1 - e^e + e^e delta(-e).

    Returns:
        ln delta in [-1.8e308, 0], at most about 30 units of roundoff above the exact value; -inf only for
        mu = 0 and epsilon >= 0.

    >>> round(log_delta(mu=1.0, epsilon=0.0), 12)
    -0.959916333696
    """
    if epsilon < 0.0:
        mixed = log_add_exp(math.log(-math.expm1(epsilon)), epsilon + log_delta(mu=mu, epsilon=-epsilon))
        return min(0.0, mixed + UNIT * (8.0 + 8.0 * abs(mixed)))
    if mu == 0.0:
        return -math.inf
    if mu > 1e100:
        return 0.0
    value = log_hockey_stick(epsilon, max(mu, 1e-300))
    return min(0.0, value + log_hockey_stick_error(value))


def log_delta_down(*, mu: float, epsilon: float) -> float:
    """Return a lower bound on ln delta at ``epsilon`` >= 0 for N(0, 1) and N(mu, 1); -inf if none is known.

    >>> log_delta_down(mu=1.0, epsilon=0.5) < log_delta(mu=1.0, epsilon=0.5)
    True
    """
    if not mu > 1e-290 or epsilon / mu > 1e100:
        return -math.inf
    value = log_hockey_stick(epsilon, min(mu, 1e90))
    return value - 2.0 * log_hockey_stick_error(value)


def delta(*, mu: float, epsilon: float) -> float:
    """Return an upper bound on delta at ``epsilon`` of a mu-GDP mechanism (never 0 for mu > 0).

    >>> round(delta(mu=1.0, epsilon=0.0), 13)
    0.382924922548
    """
    return exp_up(log_delta(mu=mu, epsilon=epsilon))


def epsilon(*, mu: float, log_delta_target: float) -> float:
    """Return the least epsilon >= 0 at which a mu-GDP mechanism is (epsilon, delta)-DP, rounded up.

    Args:
        mu: GDP parameter, mu >= 0 (inf gives inf).
        log_delta_target: ln delta, finite and <= 0.

    >>> round(epsilon(mu=1.0, log_delta_target=math.log(1e-5)), 11)
    4.37717809568
    """
    if mu > 1e100:
        return math.inf
    if mu == 0.0:
        return 0.0

    def excess(e: float) -> float:
        return log_delta(mu=mu, epsilon=e) - log_delta_target

    # delta <= exp(-x^2/2)/2 at epsilon = mu x + mu^2/2, x >= 0.
    return least(excess, 0.0, up(max(mu, 1e-300) * (0.5 * mu + math.sqrt(2.0 * -log_delta_target) + 1e-7), 8.0))


def largest_mu(*, epsilon: float, log_delta_target: float) -> float:
    """Return the greatest mu for which mu-GDP implies (epsilon, delta)-DP, rounded down.

    Args:
        epsilon: finite and >= 0.
        log_delta_target: ln delta, finite and < 0.

    >>> round(largest_mu(epsilon=1.0, log_delta_target=math.log(1e-5)), 12)
    0.268051123211
    """

    def excess(mu: float) -> float:
        return log_delta(mu=mu, epsilon=epsilon) - log_delta_target

    # delta <= exp(-x^2/2)/2 at mu = 2 epsilon/(sqrt(x^2 + 2 epsilon) + x); at epsilon = 0, delta ~ mu/sqrt(2 pi).
    x = math.sqrt(-2.0 * log_delta_target)
    epsilon = min(epsilon, 1e300)  # finite as a double
    floor = 0.999 * max(2.0 * epsilon / (math.sqrt(x * x + 2.0 * epsilon) + x), 2.5 * math.exp(log_delta_target))
    if excess(floor) > 0.0:
        floor = 0.0
    ceiling = max(floor, 1e-290)
    while excess(ceiling) <= 0.0:
        ceiling *= 4.0
        if ceiling > 1e100:
            return down(1e100)
    return greatest(excess, floor, ceiling)


def noise_std(*, sensitivity: float, epsilon: float, log_delta_target: float) -> float:
    """Return the least Gaussian sigma that makes an L2 sensitivity (epsilon, delta)-DP, rounded up.

    The analytic Gaussian mechanism: sigma = sensitivity/largest_mu; inf if no sigma suffices.
    """
    mu = largest_mu(epsilon=epsilon, log_delta_target=log_delta_target)
    return up(sensitivity / mu, 4.0) if mu > 0.0 and sensitivity / mu < MAX else math.inf


def pure_mu(*, epsilon: float) -> float:
    """Return the least mu for which every epsilon-DP mechanism is mu-GDP, rounded up: 2 Phi^-1(e^eps/(1 + e^eps)).

    (epsilon, delta)-DP with delta > 0 does not imply mu-GDP for any mu: it may reveal the secret with probability
    delta.

    >>> round(pure_mu(epsilon=1.0), 12)
    1.232035385345
    """
    log_tail = -epsilon - math.log1p(math.exp(-epsilon))

    def excess(half: float) -> float:
        return log_ndtr(-half) * (1.0 - 8.0 * UNIT) - log_tail * (1.0 + 8.0 * UNIT)

    return up(2.0 * least(excess, 0.0, 2.0 + math.sqrt(2.0 * epsilon) + epsilon), 4.0) if epsilon > 0.0 else 0.0


def together(parts: Iterable[tuple[float, float]]) -> float:
    """Return mu of composed Gaussian mechanisms, rounded up: their mu^2 add up.

    Args:
        parts: (mu, count), each mu >= 0 and finite.

    >>> 5.0 <= together([(3.0, 1), (2.0, 4)]) <= 5.0 + 1e-13
    True
    """
    parts = [(mu, count) for mu, count in parts if mu > 0.0]
    largest = max((mu for mu, _ in parts), default=0.0)
    if len(parts) <= 1 and all(count == 1 for _, count in parts):
        return largest
    # Relative to the largest, so that no square underflows.
    return up(largest * math.sqrt(math.fsum(count * (mu / largest) ** 2 for mu, count in parts)), 8.0)


def renyi(*, mu: float, order: float) -> float:
    """Return the RDP of a mu-GDP mechanism at ``order`` >= 1: order mu^2/2, rounded up (inf at inf)."""
    if mu == 0.0:
        return 0.0
    value = 0.5 * order * mu * mu
    return up(value, 4.0) if value < MAX else math.inf


def renyi_down(*, mu: float, order: float) -> float:
    """Return order mu^2/2 at ``order`` >= 1, rounded down: the Renyi divergence of N(0, 1) and N(mu, 1)."""
    value = 0.5 * order * mu * mu
    return max(0.0, down(value, 4.0)) if value < MAX else MAX
