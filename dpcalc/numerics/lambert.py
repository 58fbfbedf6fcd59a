"""The principal branch W(z) > 0 of w exp(w) = z for z > 0, also where z itself would overflow: w + ln w = ln z.

With w a double near W, z exp(-w)/w and ln z - w - ln w are the two faces of one residual: since ln w -> w + ln w has
slope 1 + w,

    ln(W/w) (1 + x) = ln z - w - ln w   for some x between w and W.

What Newton's method returns is widened by this much, and by the rounding of the residual. The exponential and the
logarithm of the standard library are taken to err by at most one unit in the last place.
"""

from __future__ import annotations

import math

from dpcalc.numerics.floats import MAX, UNIT, down, up

_LIMIT = 1e300
_LINEAR = 1e-17  # below, z (1 - z) < W(z) < z is closer than one unit of roundoff


def lambert_w(log_z: float) -> tuple[float, float]:
    """Return (low, high) around W(exp(log_z)), a few units of roundoff apart, for |log_z| <= 1e300.

    ``log_z`` is taken as the exact number it is. Where W underflows the ends are neighbours among the least doubles.
    """
    if not abs(log_z) <= _LIMIT:
        raise ValueError(f"log_z must lie within +-{_LIMIT:g}, got {log_z!r}")
    return _from_log(log_z, 0.0) if log_z > 1.0 else _from_value(math.exp(log_z), 2.0)


def lambert_w_of(z: float) -> tuple[float, float]:
    """Return (low, high) around W(z), a few units of roundoff apart, for z > 0."""
    if not 0.0 < z <= MAX:
        raise ValueError(f"z must be positive and finite, got {z!r}")
    return _from_log(math.log(z), 2.0) if z > math.e else _from_value(z, 0.0)


def _from_value(z: float, units: float) -> tuple[float, float]:
    """Enclose W for an argument within this many units of roundoff of z, 0 <= z < 3."""
    if z < _LINEAR:
        return max(0.0, down(z, units + 2.0)), up(z, units + 2.0)
    w = z / (1.0 + z)
    for _ in range(6):
        w += w * (z * math.exp(-w) / w - 1.0) / (1.0 + w)
    residual = z * math.exp(-w) / w - 1.0
    return _around(w, 1.01 * abs(residual) + (units + 5.0) * UNIT)


def _from_log(log_z: float, units: float) -> tuple[float, float]:
    """Enclose W where ln z is within this many units of roundoff of log_z, log_z >= 1."""
    w = log_z - math.log(log_z)
    for _ in range(6):
        w += (log_z - w - math.log(w)) * (w / (1.0 + w))
    # W lies in [0.73, 1] log_z, so that the first difference is exact.
    residual = log_z - w - math.log(w)
    slack = UNIT * (units * log_z + 2.0 * abs(math.log(w)) + 2.0 * abs(residual))
    return _around(w, 1.1 * ((abs(residual) + slack) / (1.0 + w)))


def _around(w: float, relative: float) -> tuple[float, float]:
    reach = relative / UNIT + 1.0
    return down(w, reach), up(w, reach)
