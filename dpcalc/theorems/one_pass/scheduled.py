"""One fixed-order pass whose step size, noise or contraction changes from step to step.

The record is used once, at step t, and moves the iterate by at most eta_t Delta. In units of its own step, the noise of
that step and all later ones is worth the variance R_t = sum_{j>=t} (P_j/P_t)^2 eta_j^2 sigma_j^2, P_j = prod_{u>j} c_u.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpcalc.notions.guarantee import Gdp
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import MAX, UNIT, up
from dpcalc.theorems.conditions import (
    CONVEX_SMOOTH,
    FIXED_ORDER,
    GAUSSIAN,
    GAUSSIAN_NOISE,
    INDEX_IN_RANGE,
    LIPSCHITZ_CHAIN,
    NO_CLIPPING,
    ONE_RELEASE,
)
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import GAUSSIAN_STEP, Setting

if TYPE_CHECKING:
    from dpcalc.model.chain import Chain


@theorem(
    "scheduled.pnsgd",
    title="Amplification by iteration with a schedule, mu-GDP form",
    needs=("schedule", "index", *GAUSSIAN_STEP),
    algorithms=("pnsgd",),
    reference="feldman2018",
    locator="Theorem 22 for one use with the optimal shifts, per-step step sizes and noise",
    formula="mu^2 = (P_t eta_t Delta)^2/sum_{j>=t} P_j^2 eta_j^2 sigma_j^2, P_j = prod_{u>j} c_u",
    conditions=(INDEX_IN_RANGE, LIPSCHITZ_CHAIN, GAUSSIAN_NOISE),
    assumes=(FIXED_ORDER, CONVEX_SMOOTH + " in every step", GAUSSIAN, ONE_RELEASE, NO_CLIPPING),
    weakly_convex=True,
)
def pnsgd(run: Setting) -> Gdp:
    """With per-step step sizes and noise, the shift of the record's step is spent against all the noise that follows.

    mu is infinite where it exceeds the doubles.
    """
    mu = _at_unit_noise(run.schedule, run.index, run.sensitivity) / run.noise_std
    return Gdp(up(mu, 4.0) if mu < MAX else math.inf)


def _at_unit_noise(chain: Chain, index: int, sensitivity: float) -> float:
    """Return mu where the schedule's noise is all there is, rounded up."""
    own = slice(index - 1, None)
    later = chain.contraction[index:]
    spread = float(remaining_variance(chain.step_size[own], chain.noise[own], chain.contraction[own])[0])
    shift = float(chain.step_size[index - 1]) * sensitivity
    if spread == 0.0 or math.isinf(shift):
        return math.inf
    # Per step of the recursion: two roundings each for the variance and the quotients, one for the sum; mu has half.
    slack = 4.0 * (len(later) + 1) + 16.0 if (later != 1.0).any() else 24.0
    mu = max(shift, 5e-324) / math.sqrt(spread)
    return up(mu, slack) if mu < MAX else math.inf


def worst_index(chain: Chain) -> int:
    """Return the 1-based step at which one use costs the most (the last of equals)."""
    spread = remaining_variance(chain.step_size, chain.noise, chain.contraction)
    with np.errstate(over="ignore", divide="ignore"):
        ratio = chain.step_size / np.sqrt(spread)
    return len(ratio) - int(np.argmax(ratio[::-1]))


def remaining_variance(step_size: Array, noise_std: Array, contraction: Array) -> Array:
    """Return R_t = sum_{j>=t} (P_j/P_t)^2 eta_j^2 sigma_j^2 for every t, shape (T,), within 8 (T - t + 2) units.

    Where every later contraction is 1 the sums are exact to one rounding. A step that forgets everything leaves so much
    that mu is nearly 0.
    """
    with np.errstate(over="ignore", under="ignore"):
        # Too small is the safe side: what underflows is lost, what overflows is cut.
        variance = np.minimum(np.square(step_size * noise_std), MAX / (4.0 * len(step_size)))
    if (contraction[1:] == 1.0).all():
        return _exact_suffix_sums(variance)
    following = [*contraction[1:].tolist(), 1.0]
    spread, result = 0.0, np.empty(len(variance))
    for t in range(len(variance) - 1, -1, -1):
        c = following[t]
        spread = min(spread / c / c, MAX / 4.0) if c > 0.0 else MAX / 4.0
        spread += float(variance[t])
        result[t] = spread
    return result


def _exact_suffix_sums(values: Array) -> Array:
    """Return suffix sums of non-negative values, carried in two doubles so that 1e7 of them lose nothing visible."""
    total, error = 0.0, 0.0
    result: Array = np.empty(len(values))
    for t, value in enumerate(reversed(values.tolist())):
        s = total + value
        b = s - total
        error += (total - (s - b)) + (value - b)
        total = s
        result[len(values) - 1 - t] = total + error
    return result * (1.0 - 4.0 * UNIT)
