"""Array forms of `dpcalc.numerics.normal`: the Gaussian hockey-stick divergence, rounded up, and the Mills ratio."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.normal import INV_SQRT_2PI, LN_SQRT_2PI, MILLS_TABLE, TABLE_LAST, TAYLOR_TERMS
from dpcalc.numerics.quadrature import gauss_legendre

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_VALUES, _SLOPES = (np.array(column) for column in zip(*MILLS_TABLE, strict=True))
_FRACTION_REACH = 36.0
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
    """Return the Mills ratio Q(u)/phi(u) for u >= -1.25, within 4 units of roundoff."""
    return _mills_pair(u)[0]


def _mills_pair(u: Array) -> tuple[Array, Array]:
    """Return (M, -M') elementwise: a Taylor series about the table's nearest entry, beyond it a continued fraction."""
    value, slope = np.empty_like(u), np.empty_like(u)
    large = u > TABLE_LAST
    if large.any():
        w = u[large]
        k = np.zeros_like(w)
        # n terms leave some exp(-1.16 u sqrt(n)) of the whole.
        for j in range(max(24, math.ceil((_FRACTION_REACH / float(w.min())) ** 2)), 0, -1):
            k = j / (w + k)
        value[large], slope[large] = 1.0 / (w + k), k / (w + k)
    small = ~large
    if small.any():
        value[small], slope[small] = _taylor(u[small])
    return value, slope


def _taylor(u: Array) -> tuple[Array, Array]:
    nearest = np.rint(4.0 * u).astype(int)
    u0 = 0.25 * nearest
    h = u - u0
    before, last = _VALUES[nearest + 5], -_SLOPES[nearest + 5]
    value, slope = before + h * last, -last
    power = h
    for j in range(2, TAYLOR_TERMS):
        before, last = last, (u0 * last + before) / j
        slope = slope - j * last * power
        power = power * h
        value = value + last * power
    return value, slope


def _log_difference(x: Array, r: Array) -> Array:
    """Return ln(M(x) - M(x + r)) for x >= -1; as the integral of -M' where the difference would cancel."""
    result = np.empty_like(x)
    wide = r >= 0.5 * np.maximum(x, 1.0)
    if wide.any():
        result[wide] = np.log(mills(x[wide]) - mills(x[wide] + r[wide]))
    slim = r < 0.05 * np.maximum(x, 1.0)
    for mask, points in ((slim, 5), (~wide & ~slim, 10)):
        if mask.any():
            result[mask] = np.log(r[mask]) + np.log(_mean_slope(x[mask], r[mask], points))
    return result


def _mean_slope(x: Array, r: Array, points: int) -> Array:
    """Return the mean of -M' over [x, x + r], by Gauss-Legendre."""
    if points * len(x) <= _MOST_NODES_AT_ONCE:
        nodes, weights = (np.array(column) for column in zip(*gauss_legendre(points), strict=True))
        at = x + r * (0.5 + 0.5 * nodes)[:, None]
        slopes = _mills_pair(at.ravel())[1].reshape(at.shape)
        mean: Array = (0.5 * weights[:, None] * slopes).sum(axis=0)
        return mean
    total = np.zeros_like(x)
    for node, weight in gauss_legendre(points):
        total += 0.5 * weight * _mills_pair(x + r * (0.5 + 0.5 * node))[1]
    return total
