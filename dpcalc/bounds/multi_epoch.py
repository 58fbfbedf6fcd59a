"""Several passes in one fixed order with hidden iterates (Feldman et al. 2018, Theorem 35, for any number)."""

from __future__ import annotations

import math

from dpcalc.bounds.steps import CONVEX_SMOOTH, GAUSSIAN, INDEX_IN_RANGE, NO_CLIPPING, ONE_RELEASE, STEP_WITHIN
from dpcalc.notions import gaussian, renyi
from dpcalc.numerics.floats import up
from dpcalc.registry import bound

_PASSES = ("the same fixed order in every pass", CONVEX_SMOOTH, GAUSSIAN, ONE_RELEASE, NO_CLIPPING)


@bound(
    "multi_epoch.cyclic",
    title="Cyclic passes, mu-GDP form",
    gives="mu",
    algorithms=("cyclic",),
    reference="feldman2018",
    locator="Theorem 35 for any number of passes, with the optimal shifts",
    formula="mu = (Delta/sigma) sqrt((E-1)/n + 1/(n-i+1))",
    requires=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=_PASSES,
)
def cyclic_mu(*, records: int, index: int, epochs: int, sensitivity: float, noise_std: float) -> float:
    """After E passes in one order the last iterate is mu-GDP: every use but the last has a whole pass to fade in.

    Args:
        records, index: n and i, 1 <= i <= n.
        epochs: E >= 1.
        sensitivity: gradient sensitivity Delta.
        noise_std: sigma > 0.

    Returns:
        mu, rounded up.

    >>> round(cyclic_mu(records=100, index=100, epochs=10, sensitivity=2.0, noise_std=1.0), 12)
    2.088061301782
    """
    return up(sensitivity / noise_std * math.sqrt(_uses(records, index, epochs)), 8.0)


@bound(
    "multi_epoch.cyclic_rdp",
    title="Cyclic passes, Renyi form",
    gives="rdp",
    algorithms=("cyclic",),
    reference="feldman2018",
    locator="Theorem 35 for any number of passes (the exact value of the sum in its proof)",
    formula="RDP(a) = (a Delta^2/(2 sigma^2)) ((E-1)/n + 1/(n-i+1))",
    requires=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=_PASSES,
)
def cyclic_rdp(*, records: int, index: int, epochs: int, sensitivity: float, noise_std: float, order: float) -> float:
    """After E passes in one order the last iterate satisfies Renyi DP with the optimal shifts.

    Args:
        records, index, epochs, sensitivity, noise_std: as in `cyclic_mu`.
        order: a >= 1.

    Returns:
        RDP at the order, rounded up.

    >>> round(cyclic_rdp(records=100, index=1, epochs=100, sensitivity=2.0, noise_std=1.0, order=2.0), 12)
    4.0
    """
    single = renyi.gaussian(order=order, shift=sensitivity, scale=noise_std)
    return up(single * _uses(records, index, epochs), 8.0)


def _uses(records: int, index: int, epochs: int) -> float:
    return (epochs - 1) / records + 1.0 / (records - index + 1)


def cyclic_noise_std(
    *, records: int, index: int, epochs: int, sensitivity: float, epsilon: float, log_delta: float
) -> float:
    """Return the least sigma for which `cyclic_mu` gives (epsilon, delta), rounded up."""
    single = gaussian.noise_std(sensitivity=sensitivity, epsilon=epsilon, log_delta_target=log_delta)
    return up(single * math.sqrt(_uses(records, index, epochs)), 8.0)


def corollary_noise_std(*, lipschitz: float, epsilon: float, log_delta: float) -> float:
    """Return sigma = 5 L sqrt(ln(1/delta))/eps, the paper's choice for n passes (needs ln(1/delta) >= 2.5 eps)."""
    return up(5.0 * lipschitz * math.sqrt(-log_delta) / epsilon, 8.0)


def corollary_epsilon(*, lipschitz: float, epsilon: float, log_delta: float) -> float:
    """Return the epsilon that `corollary_noise_std` really certifies: Theorem 35's 4 a L^2/sigma^2 and Mironov's
    conversion at a = 2 ln(1/delta)/eps.
    """
    sigma = corollary_noise_std(lipschitz=lipschitz, epsilon=epsilon, log_delta=log_delta)
    order = -2.0 * log_delta / epsilon
    rdp = up(4.0 * order * (lipschitz / sigma) ** 2, 8.0)
    return renyi.mironov(order=order, rdp=rdp, log_delta=log_delta)
