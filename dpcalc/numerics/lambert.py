"""Lambert's function W on its principal branch, enclosed: W(exp(log_z)), also where exp(log_z) overflows.

W = W(z) > 0 solves W exp(W) = z, or W + ln W = ln z. With w a double near W, z exp(-w)/w - 1 and ln z - w - ln w are
two forms of one residual: as a function of ln w, w + ln w has slope 1 + w, so that

    ln(W/w) (1 + x) = ln z - w - ln w   for some x between w and W.

The enclosure is the result of Newton's method, widened by the residual and by the rounding of the residual. The
exponential and the logarithm of the standard library are taken to err by at most one unit in the last place.
"""

from __future__ import annotations

import math

from dpcalc.numerics.floats import UNIT, down, up

_LIMIT = 1e300  # far from overflow of what follows
_IDENTITY = 1e-17  # below this z, the bounds z (1 - z) < W(z) < z are closer than one unit of roundoff


def lambert_w_of_exp(log_z: float) -> tuple[float, float]:
    """Return (low, high) around W(exp(log_z)), a few units of roundoff apart.

    Where W underflows the ends are neighbours among the least doubles.

    Args:
        log_z: -1e300 to 1e300, taken as the exact number it is.

    Raises:
        ValueError: log_z is outside this domain, or nan.
    """
    if not abs(log_z) <= _LIMIT:
        raise ValueError(f"log_z must lie within +-{_LIMIT:g}, got {log_z!r}")
    return _enclose_from_log(log_z) if log_z > 1.0 else _enclose_from_value(math.exp(log_z))


def _enclose_from_value(z: float) -> tuple[float, float]:
    """Enclose W for an argument within 2 units of roundoff of z, 0 <= z < 3."""
    if z < _IDENTITY:
        return max(0.0, down(z, 4.0)), up(z, 4.0)
    w = z / (1.0 + z)
    for _ in range(6):
        w += w * (z * math.exp(-w) / w - 1.0) / (1.0 + w)
    residual = z * math.exp(-w) / w - 1.0
    return _widen(w, 1.01 * abs(residual) + 7.0 * UNIT)


def _enclose_from_log(log_z: float) -> tuple[float, float]:
    """Enclose W for ln z = log_z >= 1."""
    w = log_z - math.log(log_z)
    for _ in range(6):
        w += (log_z - w - math.log(w)) * (w / (1.0 + w))
    # W lies in [0.73, 1] log_z, so that the first difference is exact.
    residual = log_z - w - math.log(w)
    rounding = UNIT * (2.0 * abs(math.log(w)) + 2.0 * abs(residual))
    return _widen(w, 1.1 * ((abs(residual) + rounding) / (1.0 + w)))


def _widen(w: float, relative_error: float) -> tuple[float, float]:
    """Return an interval around w that holds every number within this relative error of it."""
    units = relative_error / UNIT + 1.0
    return down(w, units), up(w, units)
