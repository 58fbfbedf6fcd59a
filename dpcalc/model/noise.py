"""The noise schedules of Sordello, Bu and Dong: scales tuned to the number of records, or decaying along a stream.

With K = c D/(2 eta), c the displacement factor and D the diameter,

    v(x) = K / ln(x/C1 + C2),    sigma(x) = K / sqrt(W(x^2/(2 pi C1^2) + C2)),

x = n for a shuffled pass over n records (Theorems 3 and 4) and x = j^alpha for record j of a stream (6 and 7). The
distance of two points after a step in units of its noise, r_B = c D/(eta scale), is 2 ln(x/C1 + C2) or 2 sqrt(W).
Scales are rounded down and r_B is rounded up, so that a guarantee holds for either rounding of the printed scale.
"""

from __future__ import annotations

import functools
import math

from dpcalc.errors import NotApplicable
from dpcalc.model.choices import Noise
from dpcalc.numerics.floats import UNIT, down, up
from dpcalc.numerics.lambert import lambert_w_of_exp
from dpcalc.numerics.logspace import log_add_exp

_LN_2PI = 1.8378770664093456


def log_sum_of(log_x: float, c1: float, c2: float) -> tuple[float, float]:
    """Return an enclosure of ln(x/C1 + C2).

    Raises:
        NotApplicable: x/C1 + C2 <= 1, where the schedule's noise would be infinite or negative.
    """
    log_ratio = log_x - math.log(c1)
    if c2 >= 0.0 and log_ratio > 36.0 and c2 > 0.0:
        value = log_add_exp(log_ratio, math.log(c2))
        error = UNIT * (8.0 * value + 8.0 * abs(log_x))
        return value - error, value + error
    if log_ratio > 700.0:
        error = UNIT * (8.0 * log_ratio + 8.0 * abs(log_x)) + math.exp(-300.0)
        return log_ratio - error, log_ratio + error
    ratio = math.exp(log_ratio)
    excess = ratio + (c2 - 1.0)
    error = UNIT * (ratio * (8.0 + 4.0 * abs(log_x) + 4.0 * abs(math.log(c1))) + 2.0 * abs(c2 - 1.0))
    if excess <= error:
        raise NotApplicable(
            f"the noise schedule is undefined: x/C1 + C2 = {ratio + c2:.6g} is not above 1",
            f"use --c2 > {1.0 - ratio:.6g}, or a smaller --c1",
        )
    return down(math.log1p(excess - error), 4.0), up(math.log1p(excess + error), 4.0)


def lambert_of(log_x: float, c1: float, c2: float) -> tuple[float, float]:
    """Return an enclosure of W(x^2/(2 pi C1^2) + C2).

    Raises:
        NotApplicable: the argument is not positive.
    """
    log_square = 2.0 * (log_x - math.log(c1)) - _LN_2PI
    error = UNIT * (8.0 * (abs(log_x) + abs(math.log(c1))) + 8.0)
    if c2 > 0.0:
        log_z = log_add_exp(log_square, math.log(c2))
        error += UNIT * 4.0 * (1.0 + abs(log_z))
        return lambert_w_of_exp(log_z - error)[0], lambert_w_of_exp(log_z + error)[1]
    if log_square > 700.0:
        tiny = error + math.exp(-300.0)
        return lambert_w_of_exp(log_square - tiny)[0], lambert_w_of_exp(log_square + tiny)[1]
    square = math.exp(log_square)
    slack = square * (error + 4.0 * UNIT) + 2.0 * UNIT * abs(c2)
    if square + c2 <= slack:
        raise NotApplicable(
            f"the noise schedule is undefined: x^2/(2 pi C1^2) + C2 = {square + c2:.6g} is not positive",
            f"use --c2 > {-square:.6g}, or a smaller --c1",
        )
    low, high = math.log(square + c2 - slack), math.log(square + c2 + slack)
    return lambert_w_of_exp(down(low, 2.0) if low > 0 else low - 2 * UNIT * abs(low))[0], lambert_w_of_exp(
        up(high, 2.0) if high > 0 else high + 2 * UNIT * abs(high)
    )[1]


@functools.lru_cache(maxsize=1 << 15)
def reach(noise: str, log_x: float, c1: float, c2: float) -> tuple[float, float]:
    """Return an enclosure of r_B = c D/(eta scale): 2 ln(x/C1 + C2) for Laplace noise, 2 sqrt(W) for Gaussian."""
    if noise == Noise.LAPLACE:
        low, high = log_sum_of(log_x, c1, c2)
        return 2.0 * low, 2.0 * high
    low, high = lambert_of(log_x, c1, c2)
    return down(2.0 * math.sqrt(low), 4.0), up(2.0 * math.sqrt(high), 4.0)


def scale(
    noise: str,
    *,
    log_x: float,
    c1: float,
    c2: float,
    displacement: float,
    diameter: float,
    step_size: float,
) -> float:
    """Return the schedule's noise scale (standard deviation or Laplace scale), rounded down.

    Raises:
        NotApplicable: the schedule is undefined at x, or the scale is not a positive double.
    """
    high = reach(noise, log_x, c1, c2)[1]
    value = displacement * diameter / step_size / high
    if not 0.0 < value < math.inf:
        raise NotApplicable(f"the noise schedule gives a scale of {value:g}", "other constants --c1 and --c2")
    return down(value, 8.0)


def langevin_noise_std(*, langevin_std: float, step_size: float) -> float:
    """Return sigma = sigma_C sqrt(2/eta), rounded down.

    The step w - eta (gradient + sigma N(0, 1)) is then w - eta gradient + sqrt(2 eta) sigma_C N(0, 1).

    >>> round(langevin_noise_std(langevin_std=0.5, step_size=0.5), 12)
    1.0
    """
    return down(langevin_std * (math.sqrt(2.0) / math.sqrt(step_size)), 8.0)
