"""Convex sets that iterates are projected onto after every step.

The accounted set has a given diameter. As a computed projection is rounded, the radius of a ball is taken smaller by a
part of 1e-12, which is more than the rounding of a norm can add. A projection onto a box is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError

Array = NDArray[np.float64]

_SLACK = 1e-12
_LEAST, _MOST = 1e-30, 1e30  # of a radius: squares of norms, and of rounding errors on them, are normal doubles
_UNIT = 2.0**-53


@dataclass(frozen=True)
class Ball:
    """The Euclidean ball of radius R about 0, 1e-30 <= R <= 1e30: far past that squares of norms are no doubles."""

    radius: float

    def __post_init__(self) -> None:
        if not _LEAST <= self.radius <= _MOST:
            raise SpecError(
                f"the radius of a ball is {self.radius!r}; it must be a number from {_LEAST:g} to {_MOST:g}",
                "see --radius, or use other units",
            )

    @property
    def diameter(self) -> float:
        """Twice the radius."""
        return 2.0 * self.radius

    def inner(self, columns: int) -> tuple[float, float]:
        """Return the norm of a projected vector of so many entries, and the square of the norm past which it is moved.

        Both are computed norms. The second is between the first and the radius, so that nothing is moved twice, and so
        near to the first that a projection is that onto the ball of the first but for rounding errors.
        """
        return _inner(self.radius, columns)

    def project(self, w: Array) -> bool:
        """Move w, shape (d,) or (replicas, d), to the nearest point, in place; return whether anything was moved."""
        held, most = self.inner(w.shape[-1])
        if w.ndim == 1:
            square = float(np.dot(w, w))
            if square <= most:
                return False
            w *= held / math.sqrt(square)
            return True
        squares = np.einsum("...i,...i->...", w, w)
        outside = squares > most
        if not np.any(outside):
            return False
        w *= np.where(outside, held / np.sqrt(np.maximum(squares, most)), 1.0)[..., np.newaxis]
        return True

    def contains(self, w: Array) -> bool:
        """Return whether w, shape (d,) or (replicas, d), lies in the ball."""
        return bool(np.all(np.einsum("...i,...i->...", w, w) <= self.radius * self.radius))


@dataclass(frozen=True)
class Box:
    """The set low <= w <= high, entry by entry: bounds are numbers or arrays of shape (d,). An interval for d = 1.

    Bounds that are arrays give the set its dimension; for numbers ``columns`` does.
    """

    low: Any
    high: Any
    columns: int = 1

    def __post_init__(self) -> None:
        shape = np.broadcast_shapes(np.shape(self.low), np.shape(self.high), (self.columns,))
        low, high = (np.broadcast_to(np.asarray(x, dtype=np.float64), shape) for x in (self.low, self.high))
        if low.ndim != 1 or not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
            raise SpecError("the bounds of a box must be finite, low <= high", "give one pair, or one per column")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "columns", len(low))

    @property
    def radius(self) -> float:
        """The largest norm of a point of the box, rounded up."""
        return _norm_up(np.maximum(np.abs(self.low), np.abs(self.high)))

    @property
    def diameter(self) -> float:
        """The distance of opposite corners, rounded up."""
        return _norm_up(self.high - self.low)

    def project(self, w: Array) -> bool:
        """As `Ball.project`."""
        if self.contains(w):
            return False
        np.clip(w, self.low, self.high, out=w)
        return True

    def contains(self, w: Array) -> bool:
        """As `Ball.contains`."""
        return bool(np.all((w >= self.low) & (w <= self.high)))


@dataclass(frozen=True)
class Whole:
    """The whole space: nothing is projected."""

    @property
    def radius(self) -> float:
        """No bound: inf."""
        return math.inf

    @property
    def diameter(self) -> float:
        """No bound: inf."""
        return math.inf

    def project(self, w: Array) -> bool:
        """Leave w as it is."""
        return False

    def contains(self, w: Array) -> bool:
        """Return whether w is finite."""
        return bool(np.isfinite(w).all())


Domain = Ball | Box | Whole


@lru_cache
def _inner(radius: float, columns: int) -> tuple[float, float]:
    rounding = (columns + 8) * _UNIT
    held = radius * (1.0 - max(_SLACK, 4.0 * rounding))
    return held, (held * (1.0 + 2.0 * rounding)) ** 2


def _norm_up(sides: Array) -> float:
    longest = float(np.max(sides, initial=0.0))
    if np.count_nonzero(sides) <= 1:
        return longest  # an interval: exact
    return math.nextafter(math.sqrt(math.fsum((sides * sides).tolist())) * (1.0 + 8.0 * _UNIT), math.inf)
