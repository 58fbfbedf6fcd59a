"""Minus the derivative of the losses in z = <w, x>, as `dpcalc.losses` defines them, in the two forms that loops need.

A loop over single records wants a function of two numbers, without the cost of an array; batches and ensembles want
arrays overwritten in place. Both are tested against ``Loss.gradient``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcalc.losses import Loss

Array = NDArray[np.float64]
Scalar = Callable[[float, float], float]
InPlace = Callable[[Array, Any], None]

_LONG = 700.0  # e to this power is still a double


def scalar(loss: Loss) -> Scalar:
    """Return (z, y) -> minus the derivative of the loss, without the regulariser."""
    return _SCALAR[loss.name](loss)


def in_place(loss: Loss) -> InPlace:
    """Return a function of (z, y) that overwrites the array z with minus the derivatives; y broadcasts to its shape.

    Overflow of e^(y z) is harmless, and the caller's to silence (``np.errstate(over="ignore")``).
    """
    return _IN_PLACE[loss.name](loss)


# --- one record ----------------------------------------------------------------------------------------------------


def _logistic(loss: Loss) -> Scalar:
    exp = math.exp

    def descent(z: float, y: float) -> float:
        margin = y * z
        return y / (1.0 + exp(margin)) if margin < _LONG else 0.0

    return descent


def _hinge(loss: Loss) -> Scalar:
    power = _known(loss.power)

    def descent(z: float, y: float) -> float:
        excess = 1.0 - y * z
        return y * (power * excess ** (power - 1.0)) if excess > 0.0 else 0.0

    return descent


def _outside_tube(loss: Loss) -> Scalar:
    power, tube = _known(loss.power), loss.tube or 0.0

    def descent(z: float, y: float) -> float:
        excess = abs(y - z) - tube
        return math.copysign(power * excess ** (power - 1.0), y - z) if excess > 0.0 else 0.0

    return descent


def _huber(loss: Loss) -> Scalar:
    most = _known(loss.huber_threshold)
    return lambda z, y: max(-most, min(most, y - z))


def _squares(loss: Loss) -> Scalar:
    return lambda z, y: y - z


# --- arrays --------------------------------------------------------------------------------------------------------


def _logistics(loss: Loss) -> InPlace:
    def overwrite(z: Array, y: Any) -> None:
        np.multiply(z, y, out=z)
        np.exp(z, out=z)
        np.add(z, 1.0, out=z)
        np.divide(y, z, out=z)

    return overwrite


def _hinges(loss: Loss) -> InPlace:
    power = _known(loss.power)

    def overwrite(z: Array, y: Any) -> None:
        np.multiply(z, y, out=z)
        np.subtract(1.0, z, out=z)
        _to_slopes(z, power)
        np.multiply(z, y, out=z)

    return overwrite


def _outside_tubes(loss: Loss) -> InPlace:
    power, tube = _known(loss.power), loss.tube or 0.0

    def overwrite(z: Array, y: Any) -> None:
        np.subtract(y, z, out=z)
        sign = np.sign(z)
        np.abs(z, out=z)
        np.subtract(z, tube, out=z)
        _to_slopes(z, power)
        np.multiply(z, sign, out=z)

    return overwrite


def _hubers(loss: Loss) -> InPlace:
    most = _known(loss.huber_threshold)

    def overwrite(z: Array, y: Any) -> None:
        np.subtract(y, z, out=z)
        np.clip(z, -most, most, out=z)

    return overwrite


def _residuals(loss: Loss) -> InPlace:
    def overwrite(z: Array, y: Any) -> None:
        np.subtract(y, z, out=z)

    return overwrite


def _to_slopes(excess: Array, power: float) -> None:
    """Overwrite with q max(0, excess)^(q-1), 0 at excess <= 0."""
    if power == 1.0:
        np.greater(excess, 0.0, out=excess)
        return
    np.maximum(excess, 0.0, out=excess)
    if power != 2.0:
        np.power(excess, power - 1.0, out=excess)
    np.multiply(excess, power, out=excess)


def _known(value: float | None) -> float:
    assert value is not None  # a Loss has what it needs
    return value


_SCALAR: dict[str, Callable[[Loss], Scalar]] = {
    "logistic": _logistic, "hinge": _hinge, "absolute": _outside_tube, "insensitive": _outside_tube, "huber": _huber,
    "squares": _squares,
}  # fmt: skip
_IN_PLACE: dict[str, Callable[[Loss], InPlace]] = {
    "logistic": _logistics, "hinge": _hinges, "absolute": _outside_tubes, "insensitive": _outside_tubes,
    "huber": _hubers, "squares": _residuals,
}  # fmt: skip
