"""What steps do with vectors of doubles: by BLAS, whose calls take less time, or without loading it.

The doubles lie side by side: BLAS would change a copy of others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Vectors(NamedTuple):
    """Three operations.

    Attributes:
        dot: (x, y) -> <x, y>.
        scale: (c, x) -> x becomes c x.
        add: (x, y, length, c) -> y becomes y + c x.
    """

    dot: Callable[[Array, Array], float]
    scale: Callable[[float, Array], Any]
    add: Callable[[Array, Array, int, float], Any]


def vectors(*, short_steps: bool) -> Vectors:
    """Return BLAS's operations where steps are short, and numpy's elsewhere: `scipy.linalg` takes long to load."""
    if not short_steps:
        return Vectors(_dot, _scale, _add)
    from scipy.linalg.blas import daxpy, ddot, dscal

    return Vectors(ddot, dscal, daxpy)


def _dot(x: Array, y: Array) -> float:
    return float(np.dot(x, y))


def _scale(c: float, x: Array) -> None:
    np.multiply(x, c, x)


def _add(x: Array, y: Array, length: int, c: float) -> None:
    y += c * x
