"""The steps of an allocation as arrays: checked, and taken in pieces so that memory stays bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from dpcalc.numerics.arrays import Array, np

CHUNK: Final = 1 << 16  # steps turned into Python numbers, or reduced by one tree, at a time


def checked_steps(**named: Array) -> list[Array]:
    """Return the arrays as float64, checked to be 1-D, equally long, finite and non-negative."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in named.items()}
    for name, values in arrays.items():
        if values.ndim != 1 or not values.size:
            raise ValueError(f"{name} must be a 1-D array of at least one step, got shape {values.shape}")
        if not (values.min() >= 0 and values.max() < math.inf):
            raise ValueError(f"{name} must be finite and >= 0 at every step")
    if len({values.size for values in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} {values.size}" for name, values in arrays.items())
        raise ValueError(f"the arrays must have equal lengths, got {lengths}")
    return list(arrays.values())


def check_level(name: str, value: float) -> None:
    """Raise ValueError unless the value is finite and >= 0."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be finite and >= 0, got {value}")


def pieces(lo: int, hi: int) -> Iterator[tuple[int, int]]:
    """Yield bounds of consecutive pieces of lo..hi, the rightmost first."""
    for end in range(hi, lo, -CHUNK):
        yield max(lo, end - CHUNK), end
