"""What several passes add up to, where each multiplies what it starts from by a factor."""

from __future__ import annotations

import math

from dpcalc.numerics.floats import UNIT


def times(product: float, epochs: int) -> float:
    """Return T for the product Q of the factors of a pass, rounded down; it grows with Q."""
    if epochs == 1 or product == 0.0:
        return 1.0
    half = -0.5 * math.log(product * (1.0 - 64.0 * UNIT))
    return math.sqrt(math.tanh(epochs * half) / math.tanh(half))


def after_fresh_noise(product: float, epochs: int, steps: int) -> float:
    """Return sqrt((1-Q^2)/(1-Q^(2E))), rounded down: what the noise of E passes leaves of the last one.

    Args:
        product: Q, which makes it smaller, as good as the product of as many factors as a pass has steps.
        epochs: E >= 1.
        steps: of a pass.
    """
    above = product * (1.0 + UNIT * (64.0 + 16.0 * steps))
    if epochs == 1 or above == 0.0:
        return 1.0
    if above >= 1.0:
        return 1.0 / math.sqrt(epochs) * (1.0 - 4.0 * UNIT)
    rate = -2.0 * math.log(above)
    return math.sqrt(math.expm1(-rate) / math.expm1(-rate * epochs)) * (1.0 - 32.0 * UNIT)
