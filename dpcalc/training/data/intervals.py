"""The intervals that numbers may be mapped from."""

from __future__ import annotations

import math

LEAST = 1e-290
"""The least half-width of an interval: a division by less may overflow on some records, which would reveal them."""


def is_interval(low: float, high: float) -> bool:
    """Return whether [low, high] is finite, and wide enough to divide by its width."""
    return math.isfinite(low) and math.isfinite(high) and 0.5 * high - 0.5 * low >= LEAST


def why_not(low: float, high: float) -> tuple[str, str]:
    """Return what is wrong with an interval, and the cure."""
    if low < high:
        return f"from {low:g} to {high:g} is too narrow", "use other units"
    return f"low is {low:g} and high is {high:g}", "low must be below high"
