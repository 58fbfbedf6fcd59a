"""Sums of privacy losses on a lattice, tilted so that the loss asked about is in the middle of the law.

A law with masses p(z) on the points z = index * step is held as weights w with

    p(z) = exp(log_scale - tilt z) w(z),   sum w about 1,   tilt >= 0.

Composition adds losses: weights are convolved, scales add, the tilt stays. Where the tilt makes the wanted epsilon the
mean, delta is a sum of weights near the middle, and what floating point does to w is small beside it, even for delta =
1e-200. Nothing is lost sight of:

* `defect` bounds the sum of |weights that should be there - weights that are|: what the FFT errs by, and tails cut off;
* `log_error` bounds the logarithm of relative errors, those of the operations that neither add nor subtract.

With F(z) = 1 - e^{epsilon - z} for z > epsilon, e^{-tilt (z - epsilon)} F(z) <= c for all z, c = t^t/(1 + t)^(1 + t) at
tilt t; so a defect d is worth at most exp(log_scale - tilt epsilon) c d of delta, wherever it is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.logspace import log_add_exp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpcalc.notions.pld.dots import Dots

    Array = NDArray[np.float64]
    Complex = NDArray[np.complex128]

_HEAVY = 1.0 / 64.0  # what an atom is: there are less than 64
_CUT = 1e-16
_WRAPPED = 1e-15
_UNDERFLOW = 1e-300  # what numbers too small to be told from 0 add up to
_LONG = 1 << 13
_LIGHT = 1e-30


class Grid(NamedTuple):
    """How fine a lattice is to be: its step in standard deviations, unless more points than ``most`` were needed."""

    fineness: float
    most: int


class Law(NamedTuple):
    """A tilted law; see the head of this module."""

    step: float
    first: int
    weights: Array
    tilt: float
    log_scale: float
    defect: float
    log_error: float
    blur: float
    """How much the variance has grown by the splitting of masses between neighbours, about."""

    def points(self) -> Array:
        """Return the losses the weights are on."""
        indices: Array = np.arange(self.first, self.first + len(self.weights), dtype=float)
        return indices * self.step

    def deviation(self) -> float:
        """Return the standard deviation of the tilted law."""
        z = self.points()
        total = float(self.weights.sum())
        centred = z - float(np.sum(self.weights * z)) / total
        return math.sqrt(float(np.sum(self.weights * centred * centred)) / total)


def from_dots(dots: Dots, tilt: float, step: float, low: int, high: int) -> Law:
    """Return the law of the dots on the lattice from low * step to high * step; the others add to the defect."""
    exponents = dots.log_masses + tilt * dots.points
    log_scale = log_total(exponents)
    w = np.exp(exponents - log_scale)
    indices = np.rint(dots.points / step)
    inside = (indices >= low) & (indices <= high) & (indices * step == dots.points) & (w > _LIGHT)
    weights = np.zeros(high - low + 1)
    weights[indices[inside].astype(int) - low] = w[inside]
    weights[0] += _UNDERFLOW  # so that there is some
    sizes = np.abs(dots.log_masses[inside]) + 2.0 * tilt * np.abs(dots.points[inside])
    defect = float(w[~inside].sum()) * 1.001 + _UNDERFLOW
    log_error = UNIT * (4.0 * float(np.max(sizes, initial=0.0)) + 4.0 * abs(log_scale) + 32.0)
    gaps = np.diff(dots.points, prepend=dots.points[0], append=dots.points[-1]) ** 2
    blur = float(np.sum(w * (gaps[1:] + gaps[:-1]))) / 12.0
    return Law(step, low, weights, tilt, log_scale, defect, log_error, blur)


def log_total(exponents: Array) -> float:
    """Return ln of the sum of exp(exponents)."""
    peak = float(exponents.max(initial=-math.inf))
    if peak == -math.inf:
        return peak
    return peak + math.log(float(np.exp(exponents - peak).sum()))


def combined(a: Law, times_a: int, b: Law, times_b: int) -> Law:
    """Return the law of the sum of so many independent losses of either kind, times_a >= 1, on the lattice of both.

    If atoms make up most of a law, convolution is by definition, and the transform has only the rest to err by.
    """
    if _atoms(a).any():
        result = a
        for other in [a] * (times_a - 1) + [b] * times_b:
            result = _convolved(result, other)
        return result
    weights, start, error = _transformed(a.weights, times_a, b.weights, times_b)
    return _summed(a, times_a, b, times_b, weights, start, error)


def _atoms(law: Law) -> NDArray[np.bool_]:
    """Return which points weigh much, if together they have at least half of the weight, and else none."""
    heavy = law.weights > _HEAVY
    return heavy if 2.0 * float(law.weights[heavy].sum()) >= float(law.weights.sum()) else np.zeros_like(heavy)


def _convolved(a: Law, b: Law) -> Law:
    atoms = _atoms(a)
    weights = np.zeros(len(a.weights) + len(b.weights) - 1)
    light, start, error = _transformed(np.where(atoms, 0.0, a.weights), 1, b.weights, 1)
    weights[start : start + len(light)] = light
    for i in np.flatnonzero(atoms):
        weights[i : i + len(b.weights)] += a.weights[i] * b.weights
    return _summed(a, 1, b, 1, weights, 0, error)


def _summed(a: Law, times_a: int, b: Law, times_b: int, weights: Array, start: int, error: float) -> Law:
    """Return the law of the sum from its weights and their error, without ends that weigh next to nothing."""
    # (1 + d)^m (1 + e)^n - 1 <= (m d + n e) (1 + d)^m (1 + e)^n; the weights themselves add up to 1 but for rounding.
    grown = _exp(times_a * math.log1p(a.defect) + times_b * math.log1p(b.defect))
    defect = 1.01 * (times_a * a.defect + times_b * b.defect) * grown
    weights[0] += _UNDERFLOW
    law = Law(
        step=a.step,
        first=times_a * a.first + times_b * b.first + start,
        weights=weights,
        tilt=a.tilt,
        log_scale=times_a * a.log_scale + times_b * b.log_scale,
        defect=defect + error + _UNDERFLOW,
        log_error=times_a * a.log_error + times_b * b.log_error + 256.0 * UNIT,
        blur=times_a * a.blur + times_b * b.blur,
    )
    return _trimmed(law, 0.125 * error + _CUT)


def _transformed(x: Array, times_x: int, y: Array, times_y: int) -> tuple[Array, int, float]:
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


def _trimmed(law: Law, allowed: float) -> Law:
    """Return the law without its ends, which weigh at most ``allowed`` each and add to the defect."""
    w = law.weights
    start = int(np.searchsorted(np.cumsum(w), allowed, side="right"))
    stop = len(w) - int(np.searchsorted(np.cumsum(w[::-1]), allowed, side="right"))
    if start >= stop:
        return law
    lost = float(w[:start].sum()) + float(w[stop:].sum())
    return law._replace(first=law.first + start, weights=w[start:stop], defect=law.defect + lost * 1.001)


def regrid(law: Law, step: float) -> Law:
    """Return a dominating law on multiples of another step: each mass is split between its two neighbours.

    A mass at a distance x above the lower one keeps what it is under P and under Q if (1 - e^-x)/(1 - e^-step) of it go
    up: then H rises nowhere but between the neighbours, to the chord. x is rounded up. A mass whose place is not known
    is tilted up by e^(tilt step) at most.
    """
    if step == law.step:
        return law
    z = law.points()
    cell = np.floor(z / step)
    slack = 4.0 * UNIT * np.abs(z)
    x = np.clip(z - cell * step + slack, 0.0, step)
    share = np.minimum(np.expm1(-x) / math.expm1(-step) * (1.0 + 8.0 * UNIT), 1.0)
    first = int(cell[0])
    indices = (cell - cell[0]).astype(int)
    length = int(indices[-1]) + 2
    down = law.weights * (1.0 - share) * np.exp(-law.tilt * x)
    up = law.weights * share * np.exp(np.minimum(law.tilt * (step - x), 700.0))
    weights = np.bincount(indices, down, length) + np.bincount(indices + 1, up, length)
    density = min(max(1.0, step / law.step), float(len(z)))
    rounding = UNIT * (8.0 * law.tilt * (float(np.abs(z[[0, -1]]).max()) + step) + 2.0 * density + 32.0)
    total = float(weights.sum())
    return law._replace(
        step=step,
        first=first,
        weights=weights / total,
        log_scale=law.log_scale + math.log(total),
        defect=law.defect * _exp(law.tilt * step) / total * 1.001,
        log_error=law.log_error + rounding,
        blur=law.blur + float(np.sum(law.weights * x * (step - x))),
    )


def _exp(x: float) -> float:
    return math.exp(x) if x < 700.0 else math.inf


def settled(law: Law, grid: Grid) -> Law:
    """Return the law on a lattice as coarse as ``grid`` allows or demands, by powers of 2."""
    multiple = max(grid.fineness * law.deviation() / law.step, len(law.weights) / grid.most, 1.0)
    return regrid(law, law.step * 2.0 ** math.floor(math.log2(multiple) + 1e-9))


def power(law: Law, times: int, grid: Grid) -> Law:
    """Return the law of the sum of so many independent losses: by eighth powers, or squares as long as there are atoms.

    The lattice gets coarser as the sum gets wider; what that adds to the variance is then about the same relative to it
    at each of the few stages.
    """
    result = law
    bits = bin(times)[3:]
    while bits:
        taken = 1 if _atoms(result).any() else min(3, len(bits))
        law = regrid(law, result.step)
        result = settled(combined(result, 1 << taken, law, int(bits[:taken], 2)), grid)
        bits = bits[taken:]
    return result


def product(laws: list[Law], grid: Grid) -> Law:
    """Return the law of the sum of different losses, two by two, so that each is added up few times."""
    while len(laws) > 1:
        laws = sorted(laws, key=Law.deviation)
        pairs = zip(laws[0::2], laws[1::2], strict=False)
        laws = [_added(a, b, grid) for a, b in pairs] + laws[len(laws) & ~1 :]
    return laws[0]


def _added(a: Law, b: Law, grid: Grid) -> Law:
    if a.step != b.step:
        a, b = _common(a, b, grid)
    return settled(combined(a, 1, b, 1), grid)


def _common(a: Law, b: Law, grid: Grid) -> tuple[Law, Law]:
    """Return two laws on one lattice."""
    width = len(a.weights) * a.step + len(b.weights) * b.step
    fine = max(grid.fineness * math.hypot(a.deviation(), b.deviation()), width / grid.most)
    step = 2.0 ** math.floor(math.log2(fine) + 1e-9)
    return regrid(a, step), regrid(b, step)


class FiniteDelta(NamedTuple):
    """An upper bound on ln of the part of delta that is from finite losses, and what it would be without rounding."""

    bound: float
    unrounded: float


def finite_delta(law: Law, epsilon: float) -> FiniteDelta:
    """Return delta at ``epsilon``, but for what is from a loss of +inf."""
    z = law.points()
    start = max(int(np.searchsorted(z, epsilon)) - 1, 0)
    above, weights = z[start:], law.weights[start:]
    x = above - epsilon
    gain = -np.expm1(-np.maximum(x + 4.0 * UNIT * np.abs(above), 0.0))
    with np.errstate(divide="ignore"):
        terms = np.log(weights) - law.tilt * np.maximum(x, 0.0) + np.log(gain)
    unrounded = log_total(terms)
    bound = log_add_exp(unrounded, math.log(law.defect) + _log_ceiling(law.tilt))
    exponent = law.log_scale - law.tilt * epsilon
    size = 64.0 * abs(law.log_scale) + 8.0 * law.tilt * (float(np.abs(above).max()) + abs(epsilon))
    error = law.log_error + UNIT * (size + 128.0 + 8.0 * abs(bound) + 4.0 * law.tilt * float(np.abs(x).max()))
    return FiniteDelta(exponent + bound + error, exponent + unrounded)


def _log_ceiling(tilt: float) -> float:
    """Return ln of the largest value of e^(-tilt x)(1 - e^-x): t ln t - (1 + t) ln(1 + t)."""
    return -tilt * math.log1p(1.0 / tilt) - math.log1p(tilt) if tilt > 0.0 else 0.0
