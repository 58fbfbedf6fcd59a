"""The noise schedules of Sordello, Bu and Dong: scales tuned to the number of records, or decaying along a stream.

With K = c D/(2 eta), c the displacement factor and D the diameter,

    v(x) = K / ln(x/C1 + C2),    sigma(x) = K / sqrt(W(x^2/(2 pi C1^2) + C2)),

x = n for a shuffled pass over n records (Theorems 3 and 4) and x = j^alpha for record j of a stream (6 and 7). The
distance of two points after a step in units of its noise, r_B = c D/(eta scale), is 2 ln(x/C1 + C2) or 2 sqrt(W).
Scales are rounded down and r_B is rounded up, so that a guarantee holds for either rounding of the printed scale.

The noise multiplier: the standard deviation of the noise on the sum of a batch's gradients, over their largest norm.

Libraries for DP-SGD use this term for every adjacency. A run here adds noise to the mean gradient, so that

    noise_std = noise multiplier x largest norm / batch size.

The largest norm is the clipping norm, or the Lipschitz constant without clipping. The batch size is the given one, or
the number of records if a step uses all of them. No batch is larger. If a smaller batch is divided by its own size, a
library's noise on its mean gradient is larger than this noise_std, and more noise is no less private.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.parameter import to_give
from dpcalc.model.quantities import Noise
from dpcalc.numerics.floats import UNIT, down, log_add_exp, up
from dpcalc.numerics.roots import lambert_w_of_exp

if TYPE_CHECKING:
    from dpcalc.model.algorithm import Algorithm
    from dpcalc.model.draft import Description


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
    value = displacement * diameter / step_size / reach(noise, log_x, c1, c2)[1]
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


LEAST, MOST = 1e-290, 1e290
"""Products and quotients of two numbers between them neither overflow nor underflow, so `up` and `down` are
relative."""


def fill_in(algorithm: Algorithm, draft: Description) -> None:
    """Fill in noise_std from the noise multiplier, or the reverse where possible.

    Raises:
        SpecError: the noise multiplier is given, and noise_std does not follow from it.
    """
    name = "records" if algorithm.full_batch else "batch_size"
    lipschitz, size = draft.get("clip", draft.get("lipschitz")), draft.get(name)
    if not draft.has("noise_multiplier"):
        if draft.has("noise_std") and lipschitz is not None and size is not None and not algorithm.noisy_output:
            value = draft["noise_std"] / lipschitz * size
            if LEAST < value < MOST:
                draft.put("noise_multiplier", value, Source.DERIVED)
        return
    for other in ("noise_std", "langevin_std", "laplace_scale"):
        if other in draft:
            raise SpecError(f"both {other} and noise_multiplier are given", "give one of the two")
    if lipschitz is None or size is None:
        lacking = [what for what, value in (("lipschitz", lipschitz), (name, size)) if value is None]
        raise SpecError(
            f"noise_std = noise multiplier x Lipschitz constant / {name.replace('_', ' ')}, and {lacking[0]} is not "
            "known",
            f"{to_give(lacking)}; or give --noise-std",
            parameters=tuple(lacking),
        )
    if size > draft.get("records", size):
        raise SpecError(f"batch size {size} exceeds the {draft['records']} records", "use a smaller one")
    draft.put("noise_std", std_of(draft["noise_multiplier"], lipschitz, size), Source.DERIVED)


def std_of(multiplier: float, lipschitz: float, size: int) -> float:
    """Return noise_std on the mean of ``size`` gradients of norm at most ``lipschitz``, rounded down.

    Raises:
        SpecError: the result is outside [`LEAST`, `MOST`].

    >>> round(std_of(1.1, 2.0, 100), 12)
    0.022
    """
    value = down(multiplier * lipschitz / size, 4.0)
    if not LEAST < value < MOST:
        raise SpecError("the noise_std that follows is out of range", "use other units")
    return value
