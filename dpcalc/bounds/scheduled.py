"""One fixed-order pass whose step size, noise or contraction changes from step to step (one use of the record)."""

from __future__ import annotations

import math
from typing import Any

from dpcalc.bounds.steps import CONVEX_SMOOTH, FIXED_ORDER, GAUSSIAN, INDEX_IN_RANGE, NO_CLIPPING, ONE_RELEASE
from dpcalc.numerics.floats import MAX, UNIT, up
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
    requires=(INDEX_IN_RANGE,),
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
    squared = one_use_mu_squared(
        step_size=schedule.step_size,
        noise_std=schedule.noise,
        contraction=schedule.contraction,
        index=index,
        sensitivity=sensitivity,
    )
    return up(math.sqrt(squared) / noise_std, 4.0) if squared < MAX else math.inf


def one_use_mu_squared(*, step_size: Any, noise_std: Any, contraction: Any, index: int, sensitivity: float) -> float:
    """Return mu^2 of one use at step ``index``, rounded up; arrays of shape (T,), contractions >= 0 of any size."""
    spread = remaining_variance(step_size[index - 1 :], noise_std[index - 1 :], contraction[index - 1 :])[0]
    shift = float(step_size[index - 1]) * sensitivity
    if spread == 0.0:
        return math.inf
    # Per step of the recursion: two roundings each for the variance, the square and the quotient, one for the sum.
    slack = 8.0 * (len(step_size) - index + 1) + 16.0 if (contraction[index:] != 1.0).any() else 32.0
    value = shift * shift / spread
    return up(max(value, 1e-300), slack) if value < MAX else math.inf


def worst_index(schedule: Chain) -> int:
    """Return the 1-based step at which one use costs the most (the last of equals)."""
    import numpy as np

    spread = remaining_variance(schedule.step_size, schedule.noise, schedule.contraction)
    with np.errstate(over="ignore", divide="ignore"):
        squared = np.square(schedule.step_size) / spread
    return len(squared) - int(np.argmax(squared[::-1]))


def remaining_variance(step_size: Any, noise_std: Any, contraction: Any) -> Any:
    """Return R_t = sum_{j>=t} (P_j/P_t)^2 eta_j^2 sigma_j^2 for every t, shape (T,), within 8 (T - t + 2) units.

    Where every later contraction is 1 the sums are exact to one rounding; inf where a step forgets everything.
    """
    import numpy as np

    variance = np.square(step_size * noise_std)
    if (contraction[1:] == 1.0).all():
        return _exact_suffix_sums(variance)
    squares = np.square(contraction).tolist()
    result = np.empty(len(variance))
    later = 0.0
    for t in range(len(variance) - 1, -1, -1):
        here = float(variance[t])
        if t + 1 < len(variance):
            here += later / squares[t + 1] if squares[t + 1] > 0.0 else math.inf
        later = min(here, MAX)
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
