"""Shifts of random size, hidden or revealed: pairs of mixtures of normal laws on a line.

A run is at distance x_i with probability p_i, which a Gaussian mechanism of mu_i = mu(x_i) hides. The pairs are

* hidden: (sum_i p_i N(mu_i), N(0)), where nobody learns i;
* mirrored: (sum_i p_i N(mu_i), sum_i p_i N(-mu_i)), the same for a record that is replaced by another;
* revealed: i is public, and delta = sum_i p_i delta_G(eps; mu_i).

All of them increase in every mu_i, so a law of distances may be rounded up. With l_i = mu_i y - mu_i^2/2 for any y

    sum_i p_i N(mu_i) - g N(0) = sum_i p_i (N(mu_i) - e^(l_i) N(0)),   g = sum_i p_i e^(l_i),
    N(0) - h sum_i p_i N(mu_i) = sum_i h p_i e^(l_i) (N(0) - e^(-l_i) N(mu_i)),   h = 1/g,

and every bracket is positive on the same half-line, beyond y or before it. So E_g and E_h are these sums of Gaussian
profiles. This holds for rounded l_i too, at the g that is the sum of the terms used, rounded up. The mirrored pair goes
through N(0): beyond y its terms are those of the first line at y and, mirrored, of the second at -y.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.notions import profiles
from dpcalc.notions.pld.discretisation import Pair
from dpcalc.notions.pld.grouped_gaussian import in_blocks, log_sum
from dpcalc.numerics.floats import UNIT, Array, np, up
from dpcalc.numerics.normal_arrays import log_hockey_stick_up
from dpcalc.numerics.roots import greatest

if TYPE_CHECKING:
    from collections.abc import Callable

_FARTHEST = 300.0  # a larger mu hides nothing: its probability counts as that of an infinite loss
_FAR, _NEVER = 50.0, 1e-36  # a larger mu with a smaller probability counts likewise: it shows beyond epsilon 1000
_BEYOND = 45.0  # deviations beyond the farthest law: delta is below e^-1000 there
_NEAR = 0.04  # deviations between points of a table, fewer if likely mu are large: chords lose some 1e-3 of ln delta
_FEW = 8  # up to this many epsilons are evaluated directly, not by chords of a table
_ROUNDED = 256.0  # units of roundoff of a sum of logarithms and terms, in addition to one per term

Points = tuple[Array, Array]
"""Epsilons of any sign, rounded up, and upper bounds on ln delta there."""


class Shifts(NamedTuple):
    """mu_i > 0, ln p_i, the probability of no shift to a few units of roundoff, ``told``: the probability that counts
    as an infinite loss, and the largest mu (inf if one is too large)."""

    mus: Array
    logs: Array
    none: float
    told: float
    farthest: float

    @classmethod
    def of(cls, mus: Array, masses: Array) -> Shifts:
        """Return the shifts with these probabilities; no shift has the remaining probability.

        Args:
            mus: increasing, >= 0.
            masses: >= 0; if rounding up has made their sum exceed 1, the smallest mu get less.
        """
        masses = masses.copy()
        for i in range(len(masses)):
            if (excess := math.fsum(masses) - 1.0) <= 0.0:
                break
            masses[i] = max(0.0, masses[i] - excess)
        kept = (mus > 0.0) & (masses > 0.0)
        farthest = float(mus[kept].max(initial=0.0))
        far = kept & ((mus > _FARTHEST) | ((mus > _FAR) & (masses < _NEVER)))
        kept &= ~far
        told = up(math.fsum(masses[far]), 4.0) if far.any() else 0.0
        none = max(0.0, 1.0 - math.fsum(masses[kept | far]))
        return cls(mus[kept], np.log(masses[kept]), none, told, farthest if farthest <= _FARTHEST else math.inf)

    def losses(self, y: Array) -> Array:
        """Return l_i, a row for every y."""
        return y[:, None] * self.mus - 0.5 * self.mus * self.mus

    def log_ratio(self, losses: Array) -> tuple[Array, Array]:
        """Return ln g rounded down and rounded up; N(0) has no density on the part ``told``."""
        units = UNIT * (len(self.mus) + _ROUNDED)
        logs = self.logs + losses
        least, most = max(0.0, self.none - 16.0 * UNIT), self.none + 16.0 * UNIT
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = log_sum(logs)
            slack = units * (1.0 + np.abs(self.logs).max() + np.abs(losses).max(axis=1))
            low = np.logaddexp(whole - slack, math.log(least) if least else -math.inf)
            high = np.logaddexp(whole + slack, math.log(most))
            # If all ratios are near 1, so is g: their excesses over 1 are summed.
            weights, gains = np.exp(self.logs), np.expm1(np.minimum(losses, 1.0))
            total, size = gains @ weights, np.abs(gains) @ weights
            error = units * size
            near = losses.max(axis=1) <= 1.0
            close_low = np.log1p(np.maximum(total - error - self.told, -1.0))
            low = np.where(near, np.maximum(low, close_low - units * np.abs(close_low)), low)
            close_high = np.log1p(np.maximum(total + error - self.told * (1.0 - 4.0 * UNIT), -1.0))
            high = np.where(near, np.minimum(high, close_high + units * np.abs(close_high)), high)
        return low, high

    def forward(self, y: Array) -> Points:
        """Return points of the profile of (sum_i p_i N(mu_i), N(0)), including ``told``."""
        losses = self.losses(y)
        value = _up(log_sum(self.logs + log_hockey_stick_up(losses, self.mus)), len(self.mus))
        return self.log_ratio(losses)[1], np.logaddexp(value, math.log(self.told)) if self.told else value

    def backward(self, y: Array) -> Points:
        """Return points of the profile of (N(0), sum_i p_i N(mu_i)); epsilon decreases in y."""
        losses = self.losses(y)
        epsilon = -self.log_ratio(losses)[0]
        terms = self.logs + losses + log_hockey_stick_up(-losses, self.mus)
        size = UNIT * (_ROUNDED + 4.0 * np.abs(losses).max(axis=1))
        return epsilon, epsilon + _up(log_sum(terms), len(self.mus)) + size * (1.0 + np.abs(epsilon))

    def mirrored(self, y: Array) -> Points:
        """Return points of the profile of (sum_i p_i N(mu_i), sum_i p_i N(-mu_i))."""
        (to_none, first), (from_none, second) = self.forward(y), self.backward(-y)
        epsilon = to_none + from_none
        epsilon = epsilon + 2.0 * UNIT * np.abs(epsilon)
        return epsilon, _up(np.logaddexp(first, to_none + second), 1)

    def revealed(self, e: Array) -> Array:
        """Return ln delta if the shift is revealed."""
        value = _up(log_sum(self.logs + log_hockey_stick_up(e[:, None], self.mus)), len(self.mus))
        return np.logaddexp(value, math.log(self.told)) if self.told else value


def hidden_shift(mus: Array, masses: Array) -> Pair:
    """Return the pair of a hidden shift; exchange it for the other order.

    Args:
        mus: increasing, >= 0; each may be rounded up.
        masses: their probabilities; rounding up may make their sum exceed 1.
    """
    if (shifts := Shifts.of(mus, masses)) is None or not len(shifts.mus):
        return _told(shifts.told)
    y = _places(shifts)
    # All l_i are below 0 at y = 0, but not at half of the largest mu: g passes 1 in between.
    gap = float(y[1] - y[0])
    before = -np.arange(0.5 * float(shifts.mus.max()) + 2.0 * gap, gap, -gap)
    forward = _profile(shifts.forward, y)
    end = -math.log(shifts.none - 16.0 * UNIT) if shifts.none > 32.0 * UNIT else math.inf
    backward = _profile(
        lambda y: shifts.backward(-y), np.concatenate((before, y)), up(end) if shifts.told == 0.0 else math.inf
    )
    return Pair(forward, backward, whole_mu=shifts.farthest)


def mirrored_shift(mus: Array, masses: Array) -> Pair:
    """Return the pair of a hidden shift whose sign depends on the data set. As `hidden_shift`."""
    if not len((shifts := Shifts.of(mus, masses)).mus):
        return _told(shifts.told)
    curve = _profile(shifts.mirrored, _places(shifts))
    return Pair(curve, curve, whole_mu=2.0 * shifts.farthest)


def revealed_shift(mus: Array, masses: Array) -> Pair:
    """Return the pair of a revealed shift. As `hidden_shift`."""
    if not len((shifts := Shifts.of(mus, masses)).mus):
        return _told(shifts.told)
    exact = functools.partial(in_blocks, shifts.revealed)
    most = float(shifts.mus[-1])
    table = profiles.tabulate(exact, most * (_BEYOND + most))
    curve = _few_or_many(exact, table)
    return Pair(curve, curve, whole_mu=shifts.farthest)


def _told(mass: float) -> Pair:
    """Return the pair of an infinite loss with this probability, and else no loss."""
    log = math.log(mass) if mass > 0.0 else -math.inf

    def curve(e: Array) -> Array:
        return np.full(np.shape(e), log)

    return Pair(curve, curve, whole_mu=math.inf if mass > 0.0 else 0.0)


def _places(shifts: Shifts) -> Array:
    """Return increasing y from just below 0; ln delta falls by about 0.1 between them; the last is beyond all laws."""
    likely = float(shifts.mus[shifts.logs > math.log(_NEVER)].max(initial=1e-300))
    last, gap = float(shifts.mus.max()) + _BEYOND, min(_NEAR, max(0.5 * _NEAR / likely, 0.25 * _NEAR))
    near, far = np.arange(-gap, 8.0, gap), np.arange(8.0, last, 2.5 * _NEAR)
    return np.concatenate((near, far, [last]))


def _profile(points: Callable[[Array], Points], y: Array, end: float = math.inf) -> Callable[[Array], Array]:
    """Return the curve of a profile whose points have epsilons increasing in y; from ``end`` on delta is 0."""
    blocks = [points(part) for part in np.array_split(y, max(1, len(y) // 256))]
    epsilons, values = (np.concatenate(column) for column in zip(*blocks, strict=True))
    epsilons, values = np.maximum.accumulate(epsilons), np.minimum(values, 0.0)
    kept = np.append(epsilons[1:] > epsilons[:-1], True)
    start = max(0, int(np.searchsorted(epsilons, 0.0)) - 1)
    kept[:start] = False
    nodes, heights = epsilons[kept], np.minimum.accumulate(values[kept])
    if math.isfinite(end):
        nodes, heights = np.append(nodes[nodes < end], end), np.append(heights[nodes < end], -math.inf)

    def one(e: float) -> float:
        if e >= end:
            return -math.inf
        first = float(y[0])

        def beyond(way: float) -> float:
            return float(points(np.array([first + way]))[0][0]) - e

        if not beyond(0.0) <= 0.0:
            return 0.0
        way = greatest(beyond, 0.0, float(y[-1]) - first, ulps=4)
        return min(0.0, float(points(np.array([first + way]))[1][0]))

    return _few_or_many(lambda e: np.array([one(float(x)) for x in e]), profiles.chords(nodes, heights))


def _few_or_many(exact: Callable[[Array], Array], table: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a curve that is exact if few epsilons are asked for."""

    def curve(e: Array) -> Array:
        value = table(e)
        return np.minimum(value, exact(np.ravel(e)).reshape(np.shape(e))) if np.size(e) <= _FEW else value

    return curve


def _up(value: Array, terms: int) -> Array:
    """Return upper bounds for logarithms of sums of ``terms`` terms."""
    finite = np.where(np.isfinite(value), np.abs(value), 0.0)
    return value + UNIT * (terms + _ROUNDED) + UNIT * 16.0 * finite
