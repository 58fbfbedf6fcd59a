"""Convolution powers of non-negative weights by the fast Fourier transform, each with an upper bound on its error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpcalc.numerics.floats import UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Complex = NDArray[np.complex128]

_WRAPPED = 1e-15
_LONG = 1 << 13


def convolution_power(x: Array, times_x: int, y: Array, times_y: int) -> tuple[Array, int, float]:
    """Return the convolution power x^times_x y^times_y by FFT, the index it starts at, and its error in the 1-norm.

    The error of a transform of length 2^k is taken to be 8 k units of roundoff in the 2-norm, relatively: Higham (2002,
    Theorem 24.2) has below 7 k for radix 2. Transforms of x and y are at most |x|_1 and |y|_1, about 1 or less, so that
    their errors add up, as often as they are multiplied; that of y comes with a factor of |x|_1. The 2-norm of the
    result is at most that of x, and the 1-norm of its error at most sqrt(2^k) times the 2-norm. Weights below 0 are set
    to 0: no farther from the exact ones. The transform is cyclic: what is outside of a window that long is small, by
    Chernoff's bound, and is wrong twice.
    """
    full = times_x * (len(x) - 1) + times_y * (len(y) - 1) + 1
    if not x.any():
        return np.zeros(1), 0, 0.0
    low, high = _window(x, times_x, y, times_y) if full > _LONG else (0, full)
    wrapped = 4.0 * _WRAPPED
    if high - low >= full:
        low, high, wrapped = 0, full, 0.0
    bits = (high - low).bit_length()
    length = 1 << bits
    x, y = _folded(x, length), _folded(y, length)
    f = _powered(np.fft.rfft(x, length), times_x)
    if times_y:
        f = f * _powered(np.fft.rfft(y, length), times_y)
    weights: Array = np.roll(np.maximum(np.fft.irfft(f, length), 0.0), -(low % length))[: full - low]
    mass = max(float(x.sum()), 1.0) ** times_x * max(float(y.sum()), 1.0) ** times_y
    norms = (times_x + 1) * _norm(x) + times_y * _norm(y) * min(float(x.sum()), 1.0)
    rounding = 8.0 * bits + 8.0
    return weights, low, (math.sqrt(length) * rounding * UNIT * norms + wrapped) * mass * 1.01


def _folded(x: Array, length: int) -> Array:
    """Return x with what is beyond the length wrapped around."""
    if len(x) <= length:
        return x
    folded: Array = np.pad(x, (0, -len(x) % length)).reshape(-1, length).sum(axis=0)
    return folded


def _powered(f: Complex, times: int) -> Complex:
    """Return f^times by multiplication; ``**`` of complex numbers takes logarithms, and 30 times as long."""
    result = f
    for bit in bin(times)[3:]:
        result = result * result
        if bit == "1":
            result = result * f
    return result


def _window(x: Array, times_x: int, y: Array, times_y: int) -> tuple[int, int]:
    """Return indices outside of which the convolution power has at most `_WRAPPED` on either side (Chernoff)."""
    deviation = math.sqrt(times_x * _variance(x) + times_y * _variance(y)) + 1.0
    block = max(1, max(len(x), len(y)) // 2048)
    ends = [0.0, 0.0]
    for side, sign in enumerate((-1.0, 1.0)):
        # A block counts as being at the end that makes its moment larger.
        masses = [(_blocks(z, block), times) for z, times in ((x, times_x), (y, times_y)) if times]
        reaches = []
        for theta in 2.0 ** np.arange(-3.0, 4.5, 0.5) * (sign / deviation):
            moments = 0.0
            for sums, times in masses:
                index = np.arange(len(sums)) * block + (block - 1 if sign > 0.0 else 0)
                exponents = theta * index
                peak = float(exponents.max())
                moments += times * (peak + math.log(float(np.sum(sums * np.exp(exponents - peak))) + 1e-300))
            reaches.append((moments - math.log(_WRAPPED)) / theta)
        ends[side] = min(reaches) if sign > 0.0 else max(reaches)
    last = times_x * (len(x) - 1) + times_y * (len(y) - 1)
    low = min(max(math.floor(ends[0]) - 1, 0), last)
    return low, max(math.ceil(ends[1]), low) + 1


def _variance(x: Array) -> float:
    """Return the variance of the index under the weights x."""
    index = np.arange(len(x), dtype=float)
    total = float(x.sum())
    centred = index - float(np.sum(x * index)) / total
    return float(np.sum(x * centred * centred)) / total


def _blocks(x: Array, size: int) -> Array:
    """Return the sums of blocks of neighbours."""
    blocks: Array = np.add.reduceat(x, np.arange(0, len(x), size))
    return blocks


def _norm(x: Array) -> float:
    # Not by BLAS, whose threads cost more than they save here, and whose result may depend on their number.
    return math.sqrt(float(np.sum(x * x)))
