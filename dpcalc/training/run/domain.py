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

    def inner(self, columns: int) -> tuple[float, float]:
        """Return the norm of projected vectors of this many entries, and its square; vectors above that are projected.

        The norm is so far below the radius that every vector with a computed square up to this is in the ball.
        """
        return _inner(self.radius, columns)

    def project(self, w: Array) -> bool:
        """Move w, shape (d,) or (replicas, d), to the nearest point, in place; return whether anything was moved."""
        if self.radius == math.inf:
            return False
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


@lru_cache
def _inner(radius: float, columns: int) -> tuple[float, float]:
    held = radius * (1.0 - max(_SLACK, 4.0 * (columns + 8) * _UNIT))
    return held, held * held
