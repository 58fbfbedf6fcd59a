"""Array forms of `dpcalc.numerics.normal`: the Gaussian hockey-stick divergence, rounded up, and the Mills ratio."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.normal import CELL_LAST, INV_SQRT_2PI, LN_SQRT_2PI, SHORT, taylor_cell
from dpcalc.numerics.quadrature import gauss_legendre

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_FIRST_CELL = -5
_FAR_TERMS = 10  # of the continued fraction, as many as at 33
_REACHES = ((3e-3, 3), (0.05, 5), (0.5, 10))
"""(r/max(x, 1), points) of Gauss-Legendre panels over [x, x + r] that leave less than a unit of roundoff."""
_MOST_NODES_AT_ONCE = 1 << 14  # more would need too much memory


def log_hockey_stick_up(e: Any, r: Any) -> Array:
    """Return upper bounds on ln H(e, r), elementwise: the divergence of two unit Gaussians at distance r.

    Args:
        e: thresholds (logs of the factor), finite, of any sign; broadcast with ``r``.
        r: distances, 0 < r; values beyond 1e100 give 0.

    Returns:
        ln H in [-4e199, 0]. The excess over the exact value is below 2^-49 ((1 + e/r + r)(|x| + 2) + |ln H|) with
        x = e/r - r/2.

    Raises:
        ValueError: one of them is nan.
    """
    e, r = np.broadcast_arrays(np.asarray(e, float), np.asarray(r, float))
    if np.isnan(e).any() or np.isnan(r).any():
        raise ValueError("a threshold or a distance is nan")
    shape = e.shape
    e, r = e.ravel(), np.clip(r.ravel(), 1e-100, 1e100)
    value = _at_non_negative_threshold(np.abs(e), r)
    below = e < 0.0
    if below.any():
        # H(e) = 1 - exp(e) + exp(e) H(-e).
        rest = np.log(-np.expm1(e[below]))
        mixed = np.logaddexp(rest, e[below] + value[below])
        value[below] = np.minimum(0.0, mixed + UNIT * (16.0 + 4.0 * np.abs(mixed)))
    return value.reshape(shape)


def log_hockey_stick_down(e: Array, r: Array) -> Array:
    """Return lower bounds on ln H(e, r), elementwise, for 0 <= e <= 1e98 r and 1e-99 <= r <= 1e99.

    They are below `log_hockey_stick_up` by what that may exceed the exact value; where x < -1, and ln H is near 0, by
    so much relative to it.
    """
    value, q = _at_non_negative_threshold(e, r), e / r
    x = q - 0.5 * r
    error = 2.0**-49 * (1.0 + q + r) * (np.abs(x) + 2.0)
    far = value - error + 2.0**-49 * value
    return np.where(
        (x < -1.0) & (error < 0.1), np.maximum(far, value * (1.0 + 4.0 * np.minimum(error, 0.1)) - 1e-300), far
    )


def _at_non_negative_threshold(e: Array, r: Array) -> Array:
    q = np.minimum(e / r, 1e99)
    x = q - 0.5 * r
    error = 4.0 * UNIT * (q + r) * (np.abs(x) + 2.0)
    value = np.empty_like(x)
    near = x < -1.0
    if near.any():
        x1, y1 = x[near], x[near] + r[near]
        half = 0.5 * x1 * x1
        gap = INV_SQRT_2PI * np.exp(-half) * (mills(-x1) + mills(y1))
        # Here H > 0.3; the complement's relative error becomes that of the logarithm (the last term: among subnormal
        # numbers relative errors mean nothing).
        value[near] = np.log1p(-np.minimum(gap, 0.9)) * (1.0 - np.minimum(error[near] * 2.0 + 64.0 * UNIT, 1.0))
        value[near] += 5e-323
    far = ~near
    if far.any():
        x2 = x[far]
        value[far] = _log_difference(x2, r[far]) - (0.5 * x2 * x2 + LN_SQRT_2PI)
        value[far] += error[far] + UNIT * (8.0 * np.abs(value[far]) + 48.0)
    return np.minimum(value, 0.0)


def mills(u: Array) -> Array:
    """Return the Mills ratio M(u) = Q(u)/phi(u) for u >= -1.25, within 4 units of roundoff."""
    value, far, k = _by_series(u, 0)
    value[far] = 1.0 / (u[far] + k)
    return value


def mills_slope(u: Array) -> Array:
    """Return -M'(u) for u >= -1.25, within 8 units of roundoff."""
    slope, far, k = _by_series(u, 1)
    slope[far] = k / (u[far] + k)
    return slope


def _by_series(u: Array, kind: int) -> tuple[Array, Any, Array]:
    """Return values by Taylor series (of M or of -M'), which are too far for that, and the continued fraction there."""
    far = u > CELL_LAST
    near = np.where(far, 0.0, u)
    nearest = np.rint(4.0 * near)
    value = _polynomial(_cells()[kind], nearest, near - 0.25 * nearest)
    return value, far, _fraction(u[far])


def _fraction(u: Array) -> Array:
    """Return K(u), M = 1/(u + K), for u > `CELL_LAST`."""
    k = np.zeros_like(u)
    if len(u):
        for j in range(_FAR_TERMS, 0, -1):
            k = j / (u + k)
    return k


@functools.cache
def _cells() -> tuple[Array, Array]:
    """Return the coefficients of the Taylor series of M and of -M', the highest first, about k/4 for k = -5, -4, ..."""
    cells = [taylor_cell(k) for k in range(_FIRST_CELL, math.ceil(4.0 * (CELL_LAST + SHORT)) + 1)]
    return _table([m for m, _ in cells]), _table([slope for _, slope in cells])


def _table(rows: list[tuple[float, ...]]) -> Array:
    most = max(map(len, rows))
    return np.array([(0.0,) * (most - len(row)) + row for row in rows]).T.copy()


def _polynomial(table: Array, nearest: Array, h: Array) -> Array:
    """Return the values at h of the polynomials about nearest/4."""
    index = (nearest - _FIRST_CELL).astype(np.intp)
    value = np.zeros_like(h)
    for row in table:
        value *= h
        value += row[index]
    return value


def _log_difference(x: Array, r: Array) -> Array:
    """Return ln(M(x) - M(x + r)) for x >= -1; as the integral of -M' where the difference would cancel."""
    result = np.empty_like(x)
    scale = np.maximum(x, 1.0)
    wide = r >= 0.5 * scale
    short = ~wide & (r <= SHORT) & (x < CELL_LAST)
    rest = ~(wide | short)
    if wide.any():
        result[wide] = np.log(mills(x[wide]) - mills(x[wide] + r[wide]))
    if short.any():
        result[short] = np.log(r[short]) + np.log(_divided_difference(x[short], r[short]))
    below = 0.0
    for reach, points in _REACHES if rest.any() else ():
        mask = rest & (r >= below * scale) & (r < reach * scale)
        if mask.any():
            result[mask] = np.log(r[mask]) + np.log(_mean_slope(x[mask], r[mask], points))
        below = reach
    return result


def _divided_difference(x: Array, r: Array) -> Array:
    """Return (M(x) - M(x + r))/r, by Horner's scheme for the divided difference of a Taylor polynomial."""
    nearest = np.rint(4.0 * x + 2.0 * r)
    index = (nearest - _FIRST_CELL).astype(np.intp)
    first = x - 0.25 * nearest
    second = first + r
    value, difference = np.zeros_like(x), np.zeros_like(x)
    for row in _cells()[0][:-1]:
        value *= first
        value += row[index]
        difference *= second
        difference += value
    return -difference


@functools.cache
def _panel(points: int) -> tuple[Array, Array]:
    """Return the nodes of [0, 1] and half their weights on [-1, 1], shape (points, 1)."""
    nodes, weights = (np.array(column)[:, None] for column in zip(*gauss_legendre(points), strict=True))
    return 0.5 + 0.5 * nodes, 0.5 * weights


def _mean_slope(x: Array, r: Array, points: int) -> Array:
    """Return the mean of -M' over [x, x + r], by Gauss-Legendre."""
    if points * len(x) <= _MOST_NODES_AT_ONCE:
        places, halves = _panel(points)
        at = x + r * places
        slopes = mills_slope(at.ravel()).reshape(at.shape)
        mean: Array = (halves * slopes).sum(axis=0)
        return mean
    total = np.zeros_like(x)
    for node, weight in gauss_legendre(points):
        total += 0.5 * weight * mills_slope(x + r * (0.5 + 0.5 * node))
    return total
