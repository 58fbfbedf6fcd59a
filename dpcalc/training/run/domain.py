"""Convex sets that iterates are projected onto after every step.

Projections are rounded, so the projected norm is smaller than the accounted radius by a relative 1e-12 or more, which
exceeds the rounding error of a norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError

Array = NDArray[np.float64]

_SLACK = 1e-12
_LEAST, _MOST = 1e-30, 1e30  # range of a radius: squares of norms, and of rounding errors on them, are normal doubles
_UNIT = 2.0**-53
_SHORT = 64  # entries of vectors whose squares may be summed in any order


@dataclass(frozen=True)
class Ball:
    """The Euclidean ball of radius R about 0, 1e-30 <= R <= 1e30, so that squares of norms neither over- nor underflow.

    An infinite radius means the whole space, without a projection.
    """

    radius: float = math.inf

    def __post_init__(self) -> None:
        if not (_LEAST <= self.radius <= _MOST or self.radius == math.inf):
            raise SpecError(
                f"the radius of a ball is {self.radius!r}; it must be a number from {_LEAST:g} to {_MOST:g}",
                "see --radius, or use other units",
            )

    def inner(self, columns: int) -> tuple[float, float, float]:
        """Return the norm of projected vectors of this many entries, its square, and a square that is surely below it.

        Vectors whose `square_of` is above the second are projected. The norm is so far below the radius that every
        vector with a computed square up to that is in the ball. Up to the third, a square summed in any order shows
        that a vector stays as it is.
        """
        return _inner(self.radius, columns)

    def project(self, w: Array) -> bool:
        """Move w, shape (d,) or (replicas, d), to the nearest point, in place; return whether anything was moved."""
        if self.radius == math.inf:
            return False
        held, most, _ = self.inner(w.shape[-1])
        if w.ndim == 1:
            square = float(square_of(w))
            if square <= most:
                return False
            w *= held / math.sqrt(square)
            return True
        squares = square_of(w)
        outside = squares > most
        if not np.any(outside):
            return False
        w *= np.where(outside, held / np.sqrt(np.maximum(squares, most)), 1.0)[..., np.newaxis]
        return True

    def contains(self, w: Array) -> bool:
        """Return whether w, shape (d,) or (replicas, d), lies in the ball."""
        return bool(np.all(np.einsum("...i,...i->...", w, w) <= self.radius * self.radius))


def square_of(w: Array) -> Array:
    """Return |w|^2 along the last axis, off by less than d u of it, or (2 sqrt(d) + 2) u above d = `_SHORT`.

    Of a long vector it is a sum of sums of sqrt(d) squares.
    """
    if w.shape[-1] <= _SHORT:
        short: Array = np.dot(w, w) if w.ndim == 1 else np.einsum("...i,...i->...", w, w)
        return short
    long: Array = np.add.reduceat(w * w, _starts(w.shape[-1]), axis=-1).sum(axis=-1)
    return long


def projection_error(columns: int) -> float:
    """Return a bound on the error of a projection, in units of roundoff of the radius: half that of the square, and few
    roundings of its root, a quotient and products.
    """
    return 0.5 * columns + 6.0 if columns <= _SHORT else math.sqrt(columns) + 7.0


@lru_cache
def _starts(columns: int) -> NDArray[np.int64]:
    return np.arange(0, columns, math.isqrt(columns - 1) + 1)


@lru_cache
def _inner(radius: float, columns: int) -> tuple[float, float, float]:
    slack = 4.0 * (columns + 8) * _UNIT
    held = radius * (1.0 - max(_SLACK, slack))
    return held, held * held, held * held * (1.0 - slack if columns > _SHORT else 1.0)
