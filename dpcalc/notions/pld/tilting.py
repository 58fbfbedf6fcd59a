"""The tilt, range and step of the lattice of a composition, chosen by an approximate law on a few uneven points.

A poor choice makes an answer less tight, never invalid.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.notions.pld.discretisation import DiscreteLoss, discretise
from dpcalc.notions.pld.lattice import Grid, TiltedLaw, compose, tilted_law
from dpcalc.numerics.floats import UNIT, Array, Integers, distinct, log_add_exp, log_one_minus_exp, np
from dpcalc.numerics.normal import mills
from dpcalc.numerics.normal_arrays import log_sum_exp

if TYPE_CHECKING:
    from dpcalc.notions.pld.discretisation import LogProfile, Pair


_LOG_FLOOR = -1e5  # losses less likely than e^-100000 are not resolved
_FLAT = 1e-9  # a profile this near to its last ln delta counts as constant
_OUTSIDE, _NEGLIGIBLE = 1e-17, 1e-14  # tilted weight beyond either end of the lattice, of one loss and of the sum
_ROUNDS = 3  # of refinement at most: each tilt is found with the points refined about the last one
_SETTLED = 0.1  # relative change of the tilt below which the points need no further refinement
_REFINEMENT = 400  # points added where the tilted law is
_MOST_TILT = 1e6  # in standard deviations: a lattice of atoms resolves nothing finer


class Component(NamedTuple):
    """A pair, how often it is composed, and its approximate law: a discretisation on few points.

    ``told`` is ln of the probability of an infinite loss before rare losses are also counted as infinite.
    """

    pair: Pair
    copies: int
    above: Array
    below: Array
    loss: DiscreteLoss
    told: float

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """Return (ln of the moment generating function, mean, variance) of the tilted sum of the losses."""
        exponents = self.loss.log_masses + tilt * self.loss.points
        log_scale = log_sum_exp(exponents)
        w = np.exp(exponents - log_scale)
        mean = float(np.sum(w * self.loss.points))
        variance = float(np.sum(w * (self.loss.points - mean) ** 2))
        return self.copies * log_scale, self.copies * mean, self.copies * variance

    def window(self, tilt: float, outside: float = _OUTSIDE) -> tuple[float, float]:
        """Return losses beyond which the tilted law has at most ``outside`` on either side.

        They are points of the approximate law. The lower one also has a bound that holds for every law: a loss z has
        e^-z times its mass under Q, which is at most 1, and the scale is at least 1 if no loss is infinite. So the
        weight below z is at most e^((1 + tilt) z). This is nearer than the next point if there is a wide gap.
        """
        exponents = self.loss.log_masses + tilt * self.loss.points
        w = np.exp(exponents - log_sum_exp(exponents))
        last = len(w) - 1
        low = int(np.searchsorted(np.cumsum(w), outside)) - 1
        high = last - (int(np.searchsorted(np.cumsum(w[::-1]), outside)) - 1)
        least = math.log(outside) / (1.0 + tilt)
        return max(float(self.loss.points[max(low, 0)]), least), float(self.loss.points[min(high, last)])

    def refined(self, tilt: float) -> Component:
        """Return the component with more points where the tilted law is."""
        if self.pair.discrete:
            return self
        low, high = self.window(tilt, 1e-9)
        more = np.linspace(low, high, _REFINEMENT)
        above = distinct(self.above, more[more > 0.0])
        below = distinct(self.below, -more[more < 0.0])
        return self._replace(above=above, below=below, loss=discretise(self.pair, above, below))

    def without_rare_losses(self, log_rest: float) -> Component:
        """Return the component with rare losses counted as infinite, so that they do not limit the tilt.

        These are the losses beyond the point where ``copies`` of them add at most exp(log_rest) to delta.
        """
        if self.pair.atom is not None or len(self.above) < 3:
            return self
        with np.errstate(all="ignore"):
            log_h = np.minimum.accumulate(np.fmin(self.pair.forward(self.above), 0.0))
        last = int(np.searchsorted(-log_h, -(log_rest - math.log(self.copies))))
        if last >= len(self.above) - 1:
            return self
        above = self.above[: max(last, 1) + 1]
        return self._replace(above=above, loss=discretise(self.pair, above, self.below))

    def law(self, tilt: float, grid: Grid) -> TiltedLaw:
        """Return the tilted law of one loss on a lattice as fine as ``grid`` asks for and allows.

        Far from the middle fewer points are used, unless there are few copies, whose splits would stand out there.
        """
        low, high = self.window(tilt, max(_OUTSIDE, _NEGLIGIBLE / self.copies))
        # With few copies nearly all points are kept, so the lattice must have fewer.
        step = self._step(tilt, low, high, grid._replace(most=grid.most // (4 if self.copies < 256 else 1)))
        return self.on_lattice(tilt, step, grid.fineness)

    def on_lattice(self, tilt: float, step: float, fineness: float) -> TiltedLaw:
        """Return the tilted law of one loss on multiples of a step."""
        low, high = self.window(tilt, max(_OUTSIDE, _NEGLIGIBLE / self.copies))
        first, last = math.floor(low / step), math.ceil(high / step)
        mean = self.cumulants(tilt)[1] / self.copies
        indices = _graded(first, last, round(mean / step), fineness, self.copies)
        lattice = indices.astype(float) * step
        if self.pair.atom is not None:
            lattice = distinct(lattice, np.array([-self.pair.atom, self.pair.atom]))
        above = _around(self.above, lattice[lattice >= 0.0])
        below = _around(self.below, -lattice[lattice <= 0.0][::-1])
        split = 0 if self.pair.discrete else self.copies
        return tilted_law(discretise(self.pair, above, below), tilt, step, first, last, split)

    def _step(self, tilt: float, low: float, high: float, grid: Grid) -> float:
        if self.pair.discrete and self.pair.atom is not None:
            return self.pair.atom
        spread = math.sqrt(self.cumulants(tilt)[2] / self.copies)
        unit = self.pair.atom or 1.0
        wanted = math.floor(math.log2(max(grid.fineness * spread / unit, 2.0**-900)))
        allowed = math.ceil(math.log2(max((high - low) / grid.most, max(-low, high) * 2.0**-40) / unit))
        return math.ldexp(unit, max(wanted, allowed))


@functools.lru_cache(maxsize=128)
def component_of(pair: Pair, copies: int) -> Component:
    """Return the component of a pair that is composed ``copies`` times."""
    if pair.discrete:
        above = below = np.array([0.0, pair.atom])
    else:
        above, below = _landmarks(pair.forward), _landmarks(pair.backward)
    with np.errstate(all="ignore"):
        limit = min(0.0, float(pair.forward(np.array([2.0**60]))[0]))
    return Component(pair, copies, above, below, discretise(pair, above, below), limit)


def _landmarks(curve: LogProfile) -> Array:
    """Return 0 and points in geometric progression, from the octave where the profile starts to fall to the octave
    where it has fallen."""
    octaves = np.arange(-120.0, 61.0)
    with np.errstate(all="ignore"):
        log_h = np.minimum.accumulate(np.fmin(curve(np.append(0.0, 2.0**octaves)), 0.0))
    started = int(np.searchsorted(log_h < log_h[0] - 1e-3, True))
    fallen = int(np.searchsorted(log_h <= max(_LOG_FLOOR, log_h[-1] + _FLAT), True))
    first = min(max(started - 2, 0), len(octaves) - 1)
    last = min(max(fallen - 1, first), len(octaves) - 1)
    return np.append(0.0, 2.0 ** np.arange(octaves[first], octaves[last] + 0.1, 0.125))


def _graded(first: int, last: int, middle: int, fineness: float, copies: int) -> Integers:
    """Return indices between first and last, fewer of them far from the middle.

    Gaps of ``fineness`` times the distance add as much to the variance as gaps of ``fineness`` deviations everywhere.
    With few copies no gap may stand out.
    """
    indices = np.arange(first, last + 1)
    gaps = np.minimum(np.abs(indices - middle) * fineness, 0.25 * math.sqrt(copies))
    sparse = np.log2(np.maximum(gaps, 1.0)).astype(np.int64)
    kept = (indices & ((1 << sparse) - 1)) == 0
    kept[[0, -1]] = True
    return indices[kept]


def _around(points: Array, lattice: Array) -> Array:
    """Return 0, the lattice, and the points outside it."""
    if len(lattice) == 0:
        return points
    outside = points[(points < lattice[0]) | (points > lattice[-1])]
    return distinct(lattice, np.zeros(1), outside)


class Components(NamedTuple):
    """All pairs of a composition, and the tilt for which they were refined."""

    members: tuple[Component, ...]
    about: float = math.inf

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """Return (ln of the moment generating function, mean, variance) of the tilted sum of all losses."""
        log_scale, mean, variance = map(sum, zip(*(c.cumulants(tilt) for c in self.members), strict=True))
        return log_scale, mean, variance

    def best_tilt(self, epsilon: float) -> float:
        """Return approximately the tilt > 0 at which a defect adds least to delta at epsilon.

        The minimum of log_scale - tilt epsilon + ln c, with c as in `lattice`, is where the mean exceeds epsilon by
        ln(1 + 1/tilt). This is near the tilt that makes epsilon the mean, or near 1/deviation if that tilt is about 0.
        """

        def excess(tilt: float) -> float:
            return epsilon + (math.log1p(1.0 / tilt) if tilt > 0.0 else math.inf) - self.cumulants(tilt)[1]

        return self._root(excess)

    def saddle_point(self, tilt: float) -> tuple[float, float]:
        """Return the mean at this tilt and the saddle-point estimate of ln delta there."""
        log_scale, mean, variance = self.cumulants(tilt)
        spread = math.sqrt(max(variance, 0.0))
        # This joins two limits of the integral of e^(-tilt x)(1 - e^-x) over a normal density: large and small spread.
        return mean, log_scale - tilt * mean - math.log(2.0 + 2.5 * spread * tilt * (1.0 + tilt))

    def tilt_for_log_delta(self, log_delta: float) -> float:
        """Return the tilt >= 0 whose saddle-point estimate of ln delta is ``log_delta``."""
        return self._root(lambda tilt: self.saddle_point(tilt)[1] - log_delta)

    def expected_epsilon(self, log_delta: float) -> tuple[float, Components]:
        """Return an estimate of epsilon at ln delta, at least 0, and the components with more points near it."""
        refined, tilt = self._refined(lambda c: c.tilt_for_log_delta(log_delta))
        return max(refined.saddle_point(tilt)[0], 0.0), refined

    def likely_log_delta(self, epsilon: float) -> float:
        """Return an estimate of ln delta at epsilon >= 0, as if the tilted law were normal with mean epsilon.

        The error is a few hundredths for a sum of many losses, and may be large otherwise.
        """
        refined, _ = self.refined_about(epsilon)
        tilt = refined._root(lambda tilt: epsilon - refined.cumulants(tilt)[1])
        log_scale, _, variance = refined.cumulants(tilt)
        spread = max(math.sqrt(max(variance, 0.0)), 1e-100)
        # The integral of half of a normal density times e^(-tilt x) (1 - e^-x); mills(x) is Q(x)/phi(x).
        share = (mills(spread * tilt) - mills(spread * (tilt + 1.0))) / math.sqrt(2.0 * math.pi)
        return refined.total(min(0.0, log_scale - tilt * epsilon + math.log(max(share, 1e-300))))

    def refined_about(self, epsilon: float) -> tuple[Components, float]:
        """Return the components with more points where the law tilted for this epsilon is, and the tilt."""
        return self._refined(lambda c: c.best_tilt(epsilon))

    def without_rare_losses(self, log_delta: float) -> Components:
        """Return the components without rare losses: together these add at most exp(log_delta) to delta.

        With a heavy tail, a tilt chosen for delta would otherwise resolve only the tail.
        """
        share = log_delta - math.log(len(self.members))
        return Components(tuple(c.without_rare_losses(share) for c in self.members))

    def law(self, tilt: float, grid: Grid) -> TiltedLaw:
        """Return the tilted law of the sum of all losses."""
        return compose([c.law(tilt, grid).self_composed(c.copies, grid) for c in self.members], grid)

    def log_infinity_mass(self) -> float:
        """Return ln(1 - prod (1 - P(inf))), rounded up: the probability of a loss of +inf."""
        return log_any([(c.loss.log_infinity_mass, c.copies) for c in self.members])

    def total(self, log_finite: float) -> float:
        """Return ln of delta from ln of the share of finite losses, rounded up."""
        return with_infinity(self.log_infinity_mass(), log_finite)

    def _refined(self, choose_tilt: Callable[[Components], float]) -> tuple[Components, float]:
        """Return the components with more points for the tilt, and the tilt, which is chosen again until it settles."""
        components, tilt = self, choose_tilt(self)
        for _ in range(_ROUNDS):
            if abs(tilt - components.about) <= _SETTLED * tilt:
                break
            components = Components(tuple(c.refined(tilt) for c in components.members), tilt)
            tilt = choose_tilt(components)
        return components, tilt

    def _root(self, function: Callable[[float], float]) -> float:
        """Return a zero of a decreasing function of the tilt to 1 in 1000, or 0 if the function starts at or below 0.

        If there is no zero, because epsilon is above every loss, the result is just large.
        """
        if function(0.0) <= 0.0:
            return 0.0
        ceiling = _MOST_TILT / max(math.sqrt(self.cumulants(0.0)[2]), 1e-100)
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


def log_any(shares: Sequence[tuple[float, int]]) -> float:
    """Return ln(1 - prod (1 - p)^count) for the ln p and counts, rounded up."""
    if all(share < -40.0 - math.log(count) for share, count in shares):
        value = -math.inf
        for share, count in shares:
            value = log_add_exp(value, share + math.log(count))
    else:
        value = log_one_minus_exp(math.fsum(count * log_one_minus_exp(share) for share, count in shares))
    return min(0.0, value + UNIT * (16.0 * abs(value) + 64.0)) if value > -math.inf else value


def with_infinity(log_infinity_mass: float, log_finite: float) -> float:
    """Return ln of the sum of both shares of delta, rounded up."""
    return min(0.0, log_add_exp(log_infinity_mass, log_finite) + 4.0 * UNIT)
