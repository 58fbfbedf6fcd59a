"""Where to look: a rough law on few uneven points tells the tilt, the range and the step for the fine one.

Nothing here decides whether an answer is valid, only how tight it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpcalc.notions.pld.dots import Dots, connect
from dpcalc.notions.pld.lattice import Grid, Law, from_dots, log_total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpcalc.notions.pld.pair import LogProfile, Pair

    Array = NDArray[np.float64]

_LOG_FLOOR = -1e5  # what is less likely than e^-100000 may as well be certain
_FLAT = 1e-9
_OUTSIDE, _NEGLIGIBLE = 1e-17, 1e-11  # tilted weight on either side of the lattice, of one loss and of the sum
_ZOOM = 400
_MOST_TILT = 1e6  # in standard deviations: a lattice of atoms has nothing finer to bring out


class Pilot(NamedTuple):
    """A pair, how often it is composed, and its rough law."""

    pair: Pair
    times: int
    above: Array
    below: Array
    dots: Dots

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """Return (ln of the moment generating function, mean, variance) of the tilted sum of ``count`` losses."""
        exponents = self.dots.log_masses + tilt * self.dots.points
        log_scale = log_total(exponents)
        w = np.exp(exponents - log_scale)
        mean = float(np.sum(w * self.dots.points))
        variance = float(np.sum(w * (self.dots.points - mean) ** 2))
        return self.times * log_scale, self.times * mean, self.times * variance

    def window(self, tilt: float, outside: float = _OUTSIDE) -> tuple[float, float]:
        """Return points of the rough law beyond which the tilted law has no more than ``outside`` on either side."""
        exponents = self.dots.log_masses + tilt * self.dots.points
        w = np.exp(exponents - log_total(exponents))
        last = len(w) - 1
        low = int(np.searchsorted(np.cumsum(w), outside)) - 1
        high = last - (int(np.searchsorted(np.cumsum(w[::-1]), outside)) - 1)
        return float(self.dots.points[max(low, 0)]), float(self.dots.points[min(high, last)])

    def zoomed(self, tilt: float) -> Pilot:
        """Return the pilot with more points where the tilted law is."""
        if self.pair.discrete:
            return self
        low, high = self.window(tilt, 1e-9)
        more = np.linspace(low, high, _ZOOM)
        above = np.union1d(self.above, more[more > 0.0])
        below = np.union1d(self.below, -more[more < 0.0])
        return self._replace(above=above, below=below, dots=connect(self.pair, above, below))

    def cut(self, log_rest: float) -> Pilot:
        """Return the pilot with all losses told, as if infinite, past the point where ``times`` of them add up to no
        more than exp(log_rest) of delta: the tilt is then free of them.
        """
        if self.pair.discrete or len(self.above) < 3:
            return self
        with np.errstate(all="ignore"):
            log_h = np.minimum.accumulate(np.fmin(self.pair.forward(self.above), 0.0))
        last = int(np.searchsorted(-log_h, -(log_rest - math.log(self.times))))
        if last >= len(self.above) - 1:
            return self
        above = self.above[: max(last, 1) + 1]
        return self._replace(above=above, dots=connect(self.pair, above, self.below))

    def law(self, tilt: float, grid: Grid) -> Law:
        """Return the tilted law of one loss on a lattice as fine as ``grid`` asks and allows."""
        low, high = self.window(tilt, max(_OUTSIDE, _NEGLIGIBLE / self.times))
        step = self._step(tilt, low, high, grid)
        first, last = math.floor(low / step), math.ceil(high / step)
        mean = self.cumulants(tilt)[1] / self.times
        indices = _graded(first, last, round(mean / step), grid.fineness)
        lattice = indices.astype(float) * step
        if self.pair.atom is not None:
            lattice = np.union1d(lattice, [-self.pair.atom, self.pair.atom])
        above = _around(self.above, lattice[lattice >= 0.0])
        below = _around(self.below, -lattice[lattice <= 0.0][::-1])
        law = from_dots(connect(self.pair, above, below), tilt, step, first, last)
        return law._replace(blur=0.0) if self.pair.discrete else law

    def _step(self, tilt: float, low: float, high: float, grid: Grid) -> float:
        if self.pair.discrete and self.pair.atom is not None:
            return self.pair.atom
        spread = math.sqrt(self.cumulants(tilt)[2] / self.times)
        unit = self.pair.atom or 1.0
        wanted = math.floor(math.log2(max(grid.fineness * spread / unit, 2.0**-900)))
        allowed = math.ceil(math.log2(max((high - low) / grid.most, max(-low, high) * 2.0**-40) / unit))
        return math.ldexp(unit, max(wanted, allowed))


def pilot(pair: Pair, count: int) -> Pilot:
    """Return the rough law of a pair."""
    if pair.discrete:
        above = below = np.array([0.0, pair.atom])
    else:
        above, below = _landmarks(pair.forward), _landmarks(pair.backward)
    return Pilot(pair, count, above, below, connect(pair, above, below))


def _landmarks(curve: LogProfile) -> Array:
    """Return 0 and points in geometric progression, from where the profile starts to fall to where it has fallen."""
    z = np.concatenate(([0.0], 2.0 ** np.arange(-120.0, 60.125, 0.125)))
    with np.errstate(all="ignore"):
        log_h = np.minimum.accumulate(np.fmin(curve(z), 0.0))
    started = int(np.searchsorted(log_h < log_h[0] - 1e-3, True))
    fallen = int(np.searchsorted(log_h <= max(_LOG_FLOOR, log_h[-1] + _FLAT), True))
    first = min(max(started - 1, 1), len(z) - 1)
    last = min(max(fallen, first), len(z) - 1)
    return np.concatenate(([0.0], z[first : last + 1]))


def _graded(first: int, last: int, middle: int, fineness: float) -> NDArray[np.int64]:
    """Return indices between first and last, fewer of them where they are far from the middle.

    Gaps of ``fineness`` times the distance add as much to the variance as gaps of ``fineness`` deviations everywhere.
    """
    indices = np.arange(first, last + 1)
    sparse = np.log2(np.maximum(np.abs(indices - middle) * fineness, 1.0)).astype(np.int64)
    kept = (indices & ((1 << sparse) - 1)) == 0
    kept[[0, -1]] = True
    chosen: NDArray[np.int64] = indices[kept]
    return chosen


def _around(rough: Array, lattice: Array) -> Array:
    """Return 0, the lattice, and the rough points that are outside of it."""
    if len(lattice) == 0:
        return rough
    outside = rough[(rough < lattice[0]) | (rough > lattice[-1])]
    return np.union1d(np.append(lattice, 0.0), outside)


def tilt_for_mean(pilots: Sequence[Pilot], epsilon: float) -> float:
    """Return the tilt >= 0 that makes epsilon the mean of the composed loss, about; 0 where that would be negative."""
    return _root(lambda t: epsilon - sum(p.cumulants(t)[1] for p in pilots), pilots)


def tilt_for_log_delta(pilots: Sequence[Pilot], log_delta: float) -> float:
    """Return the tilt >= 0 at whose mean ln delta is about as given, by the saddle-point estimate."""

    def excess(tilt: float) -> float:
        return saddle_point(pilots, tilt)[1] - log_delta

    return _root(excess, pilots)


def saddle_point(pilots: Sequence[Pilot], tilt: float) -> tuple[float, float]:
    """Return the mean at this tilt and the saddle-point estimate of ln delta there."""
    log_scale, mean, variance = (sum(c) for c in zip(*(p.cumulants(tilt) for p in pilots), strict=True))
    spread = math.sqrt(max(variance, 0.0))
    # Two limits of the sum of e^(-tilt x)(1 - e^-x) over a normal density: many deviations per 1/tilt, and few.
    return mean, log_scale - tilt * mean - math.log(2.0 + 2.5 * spread * tilt * (1.0 + tilt))


def least_tilt(pilots: Sequence[Pilot], epsilon: float = math.inf) -> float:
    """Return the tilt that doubles, about, what a defect is worth at epsilon or the mean: 1/deviation for a normal law.

    In return the worth is in proportion to the losses: where they are small, so is delta.
    """
    there = min(sum(p.cumulants(0.0)[1] for p in pilots), epsilon)
    return _root(lambda t: 0.7 - sum(p.cumulants(t)[0] for p in pilots) + t * there, pilots)


def _root(function: Callable[[float], float], pilots: Sequence[Pilot]) -> float:
    """Return a zero of a decreasing function of the tilt to 1 in 1000, 0 if it starts below 0.

    Where there is no zero, because epsilon is above every loss, it is just large.
    """
    if function(0.0) <= 0.0:
        return 0.0

    variance = sum(p.cumulants(0.0)[2] for p in pilots)
    ceiling = _MOST_TILT / max(math.sqrt(variance), 1e-100)
    high = min(1.0, ceiling)
    while function(high) > 0.0 and high < ceiling:
        high *= 16.0
    low = float(high)
    while function(low) <= 0.0 and low > 2.0**-200:
        low /= 4.0
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if function(middle) > 0.0 else (low, middle)
    return low
