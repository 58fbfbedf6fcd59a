"""One fixed-order pass whose step size, noise or contraction changes from step to step (one use of the record)."""

from __future__ import annotations

import math
from typing import Any

from dpcalc.bounds.steps import (
    CONVEX_SMOOTH,
    FIXED_ORDER,
    GAUSSIAN,
    GAUSSIAN_NOISE,
    INDEX_IN_RANGE,
    LIPSCHITZ_CHAIN,
    NO_CLIPPING,
    ONE_RELEASE,
)
from dpcalc.numerics.floats import MAX, UNIT, product_up, up
from dpcalc.registry import bound
from dpcalc.spec.chain import Chain


@bound(
    "scheduled.pnsgd",
    title="Amplification by iteration with a schedule, mu-GDP form",
    gives="mu",
    algorithms=("pnsgd",),
    reference="feldman2018",
    locator="Theorem 22 for one use with the optimal shifts, per-step step sizes and noise",
    formula="mu^2 = (P_t eta_t Delta)^2/sum_{j>=t} P_j^2 eta_j^2 sigma_j^2, P_j = prod_{u>j} c_u",
    requires=(INDEX_IN_RANGE, LIPSCHITZ_CHAIN, GAUSSIAN_NOISE),
    assumes=(FIXED_ORDER, CONVEX_SMOOTH + " in every step", GAUSSIAN, ONE_RELEASE, NO_CLIPPING),
)
def one_use_mu(*, schedule: Chain, index: int, sensitivity: float, noise_std: float) -> float:
    """With per-step step sizes and noise, the shift of the record's step is spent against all the noise that follows.

    Args:
        schedule: the steps; ``noise_std`` multiplies their noise.
        index: the step that uses the record, 1-based.
        sensitivity: gradient sensitivity Delta.
        noise_std: sigma > 0.

    Returns:
        mu, rounded up.
    """
    mu = _one_use(schedule.step_size, schedule.noise, schedule.contraction, index, sensitivity)
    return up(mu / noise_std, 4.0) if mu / noise_std < MAX else math.inf


def one_use_mu_squared(*, step_size: Any, noise_std: Any, contraction: Any, index: int, sensitivity: float) -> float:
    """Return mu^2 of one use at step ``index``, rounded up; arrays of shape (T,), contractions >= 0 of any size."""
    mu = _one_use(step_size, noise_std, contraction, index, sensitivity)
    return product_up(mu, mu)


def _one_use(step_size: Any, noise_std: Any, contraction: Any, index: int, sensitivity: float) -> float:
    later = slice(index - 1, None)
    spread = float(remaining_variance(step_size[later], noise_std[later], contraction[later])[0])
    shift = float(step_size[index - 1]) * sensitivity
    if spread == 0.0 or math.isinf(shift):
        return math.inf
    # Per step of the recursion: two roundings each for the variance and the quotients, one for the sum; mu has half.
    slack = 4.0 * (len(step_size) - index + 1) + 16.0 if (contraction[index:] != 1.0).any() else 24.0
    value = max(shift, 5e-324) / math.sqrt(spread)
    return up(value, slack) if value < MAX else math.inf


def worst_index(schedule: Chain) -> int:
    """Return the 1-based step at which one use costs the most (the last of equals)."""
    import numpy as np

    spread = remaining_variance(schedule.step_size, schedule.noise, schedule.contraction)
    with np.errstate(over="ignore", divide="ignore"):
        ratio = schedule.step_size / np.sqrt(spread)
    return len(ratio) - int(np.argmax(ratio[::-1]))


def remaining_variance(step_size: Any, noise_std: Any, contraction: Any) -> Any:
    """Return R_t = sum_{j>=t} (P_j/P_t)^2 eta_j^2 sigma_j^2 for every t, shape (T,), within 8 (T - t + 2) units.

    Where every later contraction is 1 the sums are exact to one rounding. A step that forgets everything leaves so much
    that mu is nearly 0.
    """
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        # Too small is the safe side: what underflows is lost, what overflows is cut.
        variance = np.minimum(np.square(step_size * noise_std), MAX / (4.0 * len(step_size)))
    if (contraction[1:] == 1.0).all():
        return _exact_suffix_sums(variance)
    factors = contraction.tolist()
    result = np.empty(len(variance))
    later = 0.0
    for t in range(len(variance) - 1, -1, -1):
        if t + 1 < len(variance):
            c = factors[t + 1]
            later = min(later / c / c, MAX / 4.0) if c > 0.0 else MAX / 4.0
        later += float(variance[t])
        result[t] = later
    return result


def _exact_suffix_sums(values: Any) -> Any:
    """Return suffix sums of non-negative values, carried in two doubles so that 1e7 of them lose nothing visible."""
    import numpy as np

    total, error = 0.0, 0.0
    result = np.empty(len(values))
    for t, value in enumerate(reversed(values.tolist())):
        s = total + value
        b = s - total
        error += (total - (s - b)) + (value - b)
        total = s
        result[len(values) - 1 - t] = total + error
    return result * (1.0 - 4.0 * UNIT)
