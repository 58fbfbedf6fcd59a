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
