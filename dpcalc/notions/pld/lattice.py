"""Laws of sums of privacy losses on a lattice, exponentially tilted so that the loss of interest is near the mean.

A law with masses p(z) on the points z = index * step is held as weights w with

    p(z) = exp(log_scale - tilt z) w(z),   sum w about 1,   tilt >= 0.

Composition adds losses: weights are convolved, scales add, the tilt stays. If the tilt makes epsilon the mean, delta is
a sum of weights near the mean, and the rounding of w is small beside it, even for delta = 1e-200. Errors are bounded:

* `defect` bounds the sum of |exact weight - weight|: errors of the FFT, and tails cut off;
* `log_error` bounds the logarithm of the relative errors of all other operations.

With F(z) = 1 - e^{epsilon - z} for z > epsilon, e^{-tilt (z - epsilon)} F(z) <= c for all z, c = t^t/(1 + t)^(1 + t) at
tilt t; so a defect d is worth at most exp(log_scale - tilt epsilon) c d of delta, wherever it is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpcalc.notions.pld.convolution import convolution_power
from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.numerics.logspace_arrays import log_sum_exp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpcalc.notions.pld.discretisation import DiscreteLoss

    Array = NDArray[np.float64]

_HEAVY = 1.0 / 64.0  # a weight above this is an atom: there are less than 64
_CUT = 1e-16  # the weight of an end that may be cut off
_UNDERFLOW = 1e-300  # bounds the sum of all numbers that underflow to 0
_LIGHT = 1e-30  # lighter points of a discrete loss add to the defect


class Grid(NamedTuple):
    """How fine a lattice is: its step in standard deviations, larger where that needs more points than ``most``."""

    fineness: float
    most: int


class TiltedLaw(NamedTuple):
    """A tilted law; see the head of this module."""

    step: float
    first: int
    weights: Array
    tilt: float
    log_scale: float
    defect: float
    log_error: float
    blur: float
    """An estimate of how much the splitting of masses between lattice points has added to the variance."""

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


def tilted_law(loss: DiscreteLoss, tilt: float, step: float, low: int, high: int) -> TiltedLaw:
    """Return the law of a discrete loss on the lattice low * step, ..., high * step; other points add to the defect."""
    exponents = loss.log_masses + tilt * loss.points
    log_scale = log_sum_exp(exponents)
    w = np.exp(exponents - log_scale)
    indices = np.rint(loss.points / step)
    inside = (indices >= low) & (indices <= high) & (indices * step == loss.points) & (w > _LIGHT)
    weights = np.zeros(high - low + 1)
    weights[indices[inside].astype(int) - low] = w[inside]
    weights[0] += _UNDERFLOW  # no law without weight
    sizes = np.abs(loss.log_masses[inside]) + 2.0 * tilt * np.abs(loss.points[inside])
    defect = float(w[~inside].sum()) * 1.001 + _UNDERFLOW
    log_error = UNIT * (4.0 * float(np.max(sizes, initial=0.0)) + 4.0 * abs(log_scale) + 32.0)
    gaps = np.diff(loss.points, prepend=loss.points[0], append=loss.points[-1]) ** 2
    blur = float(np.sum(w * (gaps[1:] + gaps[:-1]))) / 12.0
    return TiltedLaw(step, low, weights, tilt, log_scale, defect, log_error, blur)


def add_losses(a: TiltedLaw, times_a: int, b: TiltedLaw, times_b: int) -> TiltedLaw:
    """Return the law of the sum of independent losses, times_a >= 1 of law a and times_b of law b, on one lattice.

    If atoms make up most of a law, their convolution is computed by its definition and only the rest by FFT.
    """
    if _atoms(a).any():
        result = a
        for other in [a] * (times_a - 1) + [b] * times_b:
            result = _convolve(result, other)
        return result
    weights, start, error = convolution_power(a.weights, times_a, b.weights, times_b)
    return _sum_law(a, times_a, b, times_b, weights, start, error)


def _atoms(law: TiltedLaw) -> NDArray[np.bool_]:
    """Return which points are heavy, if together they have at least half of the weight; none otherwise."""
    heavy = law.weights > _HEAVY
    return heavy if 2.0 * float(law.weights[heavy].sum()) >= float(law.weights.sum()) else np.zeros_like(heavy)


def _convolve(a: TiltedLaw, b: TiltedLaw) -> TiltedLaw:
    atoms = _atoms(a)
    weights = np.zeros(len(a.weights) + len(b.weights) - 1)
    light, start, error = convolution_power(np.where(atoms, 0.0, a.weights), 1, b.weights, 1)
    weights[start : start + len(light)] = light
    for i in np.flatnonzero(atoms):
        weights[i : i + len(b.weights)] += a.weights[i] * b.weights
    return _sum_law(a, 1, b, 1, weights, 0, error)


def _sum_law(
    a: TiltedLaw, times_a: int, b: TiltedLaw, times_b: int, weights: Array, start: int, error: float
) -> TiltedLaw:
    """Return the law of the sum from its weights and a bound on their error, without ends of negligible weight."""
    # (1 + d)^m (1 + e)^n - 1 <= (m d + n e) (1 + d)^m (1 + e)^n; the weights themselves add up to 1 but for rounding.
    grown = _exp(times_a * math.log1p(a.defect) + times_b * math.log1p(b.defect))
    defect = 1.01 * (times_a * a.defect + times_b * b.defect) * grown
    weights[0] += _UNDERFLOW
    law = TiltedLaw(
        step=a.step,
        first=times_a * a.first + times_b * b.first + start,
        weights=weights,
        tilt=a.tilt,
        log_scale=times_a * a.log_scale + times_b * b.log_scale,
        defect=defect + error + _UNDERFLOW,
        log_error=times_a * a.log_error + times_b * b.log_error + 256.0 * UNIT,
        blur=times_a * a.blur + times_b * b.blur,
    )
    return _trim(law, 0.125 * error + _CUT)


def _trim(law: TiltedLaw, allowed: float) -> TiltedLaw:
    """Return the law without ends of at most ``allowed`` weight each, which are added to the defect."""
    w = law.weights
    start = int(np.searchsorted(np.cumsum(w), allowed, side="right"))
    stop = len(w) - int(np.searchsorted(np.cumsum(w[::-1]), allowed, side="right"))
    if start >= stop:
        return law
    lost = float(w[:start].sum()) + float(w[stop:].sum())
    return law._replace(first=law.first + start, weights=w[start:stop], defect=law.defect + lost * 1.001)


def move_to_step(law: TiltedLaw, step: float) -> TiltedLaw:
    """Return a dominating law on multiples of another step: each mass is split between its two neighbours.

    A mass at distance x above the lower neighbour keeps its total under P and under Q if the share
    (1 - e^-x)/(1 - e^-step) moves up: then H increases only between the neighbours, to the chord. x is rounded up. A
    mass in the defect, whose place is unknown, grows by a factor of at most e^(tilt step).
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
    lower = law.weights * (1.0 - share) * np.exp(-law.tilt * x)
    upper = law.weights * share * np.exp(np.minimum(law.tilt * (step - x), 700.0))
    weights = np.bincount(indices, lower, length) + np.bincount(indices + 1, upper, length)
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


def coarsen(law: TiltedLaw, grid: Grid) -> TiltedLaw:
    """Return the law on the coarsest lattice that ``grid`` allows, coarser by a power of 2."""
    multiple = max(grid.fineness * law.deviation() / law.step, len(law.weights) / grid.most, 1.0)
    return move_to_step(law, law.step * 2.0 ** math.floor(math.log2(multiple) + 1e-9))


def self_compose(law: TiltedLaw, times: int, grid: Grid) -> TiltedLaw:
    """Return the law of the sum of ``times`` independent losses, by eighth powers, or squares while there are atoms.

    The lattice gets coarser as the sum gets wider, so that each of the few stages adds about the same share to the
    variance.
    """
    result = law
    bits = bin(times)[3:]
    while bits:
        taken = 1 if _atoms(result).any() else min(3, len(bits))
        law = move_to_step(law, result.step)
        result = coarsen(add_losses(result, 1 << taken, law, int(bits[:taken], 2)), grid)
        bits = bits[taken:]
    return result


def compose(laws: list[TiltedLaw], grid: Grid) -> TiltedLaw:
    """Return the law of the sum of different losses, added in pairs so that each takes part in few additions."""
    while len(laws) > 1:
        laws = sorted(laws, key=TiltedLaw.deviation)
        pairs = zip(laws[0::2], laws[1::2], strict=False)
        laws = [_add_two(a, b, grid) for a, b in pairs] + laws[len(laws) & ~1 :]
    return laws[0]


def _add_two(a: TiltedLaw, b: TiltedLaw, grid: Grid) -> TiltedLaw:
    if a.step != b.step:
        a, b = _on_common_lattice(a, b, grid)
    return coarsen(add_losses(a, 1, b, 1), grid)


def _on_common_lattice(a: TiltedLaw, b: TiltedLaw, grid: Grid) -> tuple[TiltedLaw, TiltedLaw]:
    """Return dominating laws of both losses on one lattice."""
    width = len(a.weights) * a.step + len(b.weights) * b.step
    fine = max(grid.fineness * math.hypot(a.deviation(), b.deviation()), width / grid.most)
    step = 2.0 ** math.floor(math.log2(fine) + 1e-9)
    return move_to_step(a, step), move_to_step(b, step)


class FiniteDelta(NamedTuple):
    """ln of the share of delta that finite losses have: an upper bound, and without its allowance for rounding."""

    bound: float
    unrounded: float


def log_finite_delta(law: TiltedLaw, epsilon: float) -> FiniteDelta:
    """Return ln of delta at ``epsilon`` without the share of a loss of +inf, rounded up."""
    z = law.points()
    start = max(int(np.searchsorted(z, epsilon)) - 1, 0)
    above, weights = z[start:], law.weights[start:]
    x = above - epsilon
    gain = -np.expm1(-np.maximum(x + 4.0 * UNIT * np.abs(above), 0.0))
    with np.errstate(divide="ignore"):
        terms = np.log(weights) - law.tilt * np.maximum(x, 0.0) + np.log(gain)
    unrounded = log_sum_exp(terms)
    bound = log_add_exp(unrounded, math.log(law.defect) + _log_greatest_gain(law.tilt))
    exponent = law.log_scale - law.tilt * epsilon
    size = 64.0 * abs(law.log_scale) + 8.0 * law.tilt * (float(np.abs(above).max()) + abs(epsilon))
    error = law.log_error + UNIT * (size + 128.0 + 8.0 * abs(bound) + 4.0 * law.tilt * float(np.abs(x).max()))
    return FiniteDelta(exponent + bound + error, exponent + unrounded)


def _log_greatest_gain(tilt: float) -> float:
    """Return ln of the largest value of e^(-tilt x)(1 - e^-x): t ln t - (1 + t) ln(1 + t)."""
    return -tilt * math.log1p(1.0 / tilt) - math.log1p(tilt) if tilt > 0.0 else 0.0
