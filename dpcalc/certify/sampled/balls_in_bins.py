"""The curves of an epoch of balls in bins: a record falls into one of t steps, each equally likely.

With L = e^{mu y - mu^2/2}, y standard normal, let S be the mean of t independent copies, E S = 1. A removed record has
the profile E (S - g)_+ = 1 - g + K(g), an added one E (1 - g S)_+ = g K(1/g), with one convex function

    K(x) = E (x - S)_+.

The law of L is replaced by a law on multiples of h whose E (L - x)_+ is the chord of the true one. It is larger in
convex order and has the same mean, so K rises. The masses of the sum of t copies are the coefficients of a power of a
polynomial. K(x) needs only the masses below x; masses that cannot return below x are dropped at no cost. Dropping a
rare mass adds at most its probability times x to K. Coefficients are integer multiples of 2^-BITS, rounded up. Several
h are used, each for x up to its top. Between multiples of h/t, K is at most its chord.

Some steps may have less noise: mu is larger there, and S is the mean of copies of two laws.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from flint import arb, fmpq, fmpz_poly

from dpcalc.certify.numerics.balls import OutOfReach, precision
from dpcalc.certify.runs.matching import hockey_stick

_BITS = 160
_NEGLIGIBLE = 1 << 40  # mass dropped at either end, in units of 2^-BITS
_LENGTH = 1 << 12  # approximate number of points of a lattice
_RARE = 11.0  # standard deviations of y beyond which the mass is negligible
_TAIL = 9.0  # standard deviations of y that the coarsest lattice covers in one step
_MOST_BINS = 2000


class Epoch:
    """The two curves of an epoch.

    Args:
        mu: the clipping norm over the standard deviation of the noise, or more.
        bins: t >= 2.
        heavier: (number of steps with less noise, their mu), a mu that is at least ``mu``.
    """

    def __init__(self, mu: arb, bins: int, heavier: tuple[int, arb] | None = None) -> None:
        count, self._mu = heavier or (0, mu)
        self._lattices = _lattices([(each, n) for each, n in ((self._mu, count), (mu, bins - count)) if n])
        self._ways: list[tuple[float, float]] = []

    @staticmethod
    def of(mu: arb, bins: int, heavier: tuple[int, arb] | None = None) -> Epoch:
        """Return the epoch of a slightly larger mu, so that both readings of a number share one computation.

        Raises:
            OutOfReach: too many steps, or a mu that is too large or too small.
        """
        count, largest = heavier or (0, mu)
        if bins > _MOST_BINS or not all(1e-3 < float(each.mid()) < 8.0 for each in (mu, largest)):
            raise OutOfReach(f"more than {_MOST_BINS} steps in an epoch, or noise that is far from the clipping norm")
        return _epoch(_rounded(mu), bins, count, _rounded(largest))

    def removed(self, z: arb) -> arb:
        """Return the profile of a removed record: decreasing, at most that of a known step."""
        x = z.exp().min(self._lattices[-1].reach())
        return self._known(z).min((1 - x + self._mean_below(x)).max(arb(0)))

    def added(self, z: arb) -> arb:
        """Return the profile of an added record."""
        return self._known(z).min(z.exp() * self._mean_below((-z).exp()))

    def replaced(self, z: arb) -> arb:
        """Return a profile of a replaced record, through the run without it; at most that of a known step.

        For any s in [0, 1] it is at most removed(s z) + e^(s z) added((1 - s) z).
        """
        if not self._ways:
            self._ways = [self._best_way(float(self._mu.mid()) * 10.0 ** (k / 8.0)) for k in range(-24, 13)]
        share = min(self._ways, key=lambda way: abs(way[0] - float(z.mid())))[1]
        return hockey_stick(z, 2 * self._mu).min(self._by_way(z, share))

    def _by_way(self, z: arb, share: float) -> arb:
        near = z * arb(share)
        return self.removed(near) + near.exp() * self.added(z - near)

    def _best_way(self, z: float) -> tuple[float, float]:
        """Return z and a good share for it; any share gives a bound."""
        return z, min((i / 64.0 for i in range(4, 60)), key=lambda share: float(self._by_way(arb(z), share).mid()))

    def _known(self, z: arb) -> arb:
        return hockey_stick(z, self._mu)

    def _mean_below(self, x: arb) -> arb:
        """Return a bound on K(x) <= x from the finest lattice that reaches x."""
        for lattice in self._lattices:
            bound = lattice.at(x)
            if bound is not None:
                return bound.min(x)
        return x


class _Lattice(NamedTuple):
    """Bounds on K at the points (first + m) unit, m = 0, 1, ..., up to last unit; and the dropped mass, ``spare``."""

    unit: fmpq
    first: int
    last: int
    values: list[arb]
    spare: arb

    def reach(self) -> arb:
        """Return the largest x that the lattice covers."""
        return arb(self.unit * (self.last - 1))

    def at(self, x: arb) -> arb | None:
        """Return a bound on K(x); None if x is beyond the lattice."""
        place = x / arb(self.unit) - self.first
        m = math.floor(float(place.mid()))
        if m + self.first >= self.last:  # a coarser lattice continues from here
            return None
        value, end = self.spare * x + place.rad() * arb(self.unit), len(self.values) - 1
        if m < 0:
            return value
        if m >= end:  # no mass from here on: the slope of K is at most 1
            return value + self.values[end] + (place - end).max(arb(0)) * arb(self.unit)
        low, high = self.values[m], self.values[m + 1]
        return value + low + (high - low) * (place - m).max(arb(0)).min(arb(1))


class _Law(NamedTuple):
    """The law of a sum: a polynomial in units of 2^-BITS, the index of its first point, and the dropped mass."""

    first: int
    masses: fmpz_poly
    lost: int


@functools.lru_cache(maxsize=8)
def _epoch(mu: fmpq, bins: int, count: int, largest: fmpq) -> Epoch:
    with precision(_BITS + 64):
        return Epoch(arb(mu), bins, (count, arb(largest)) if count else None)


def _rounded(mu: arb) -> fmpq:
    """Return a slightly larger number of 50 bits."""
    unit = fmpq(2) ** (math.frexp(float(mu.mid()))[1] - 50)
    return _units(mu / arb(unit)) * unit


def _lattices(steps: list[tuple[arb, int]]) -> list[_Lattice]:
    """Return lattices from the finest to the coarsest; the finest cover most of the mass of S.

    Args:
        steps: (mu, number of steps), the largest mu first.
    """
    size, bins = float(steps[0][0].mid()), sum(count for _, count in steps)
    spread = math.sqrt(math.expm1(size * size) / bins)
    lowest = max(math.exp(-_RARE * size - 0.5 * size * size), 1.0 - 1.2 * _RARE * spread)
    highest = max(1.0 + 40.0 * spread, math.exp(_TAIL * size - 0.5 * size * size) / bins)
    tops = [top for top in (0.05, 0.3) if top > lowest + spread] + [1.0 + 0.5 * min(spread, 1.0)]
    while tops[-1] < highest:
        tops.append(1.0 + 3.0 * (tops[-1] - 1.0))
    widths = [fmpq(*((top - lowest) * bins / _LENGTH).as_integer_ratio()) for top in tops]
    return [_lattice(steps, bins, top, width) for top, width in zip(tops, widths, strict=True)]


def _lattice(steps: list[tuple[arb, int]], bins: int, top: float, step: fmpq) -> _Lattice:
    """Return K up to about ``top``, on multiples of ``step``/t."""
    last = math.ceil(top * bins / float(arb(step)))
    laws = [_sum(_single(mu, arb(step), last), count, last) for mu, count in steps]
    law = functools.reduce(lambda one, other: _added(one, other, last), laws)
    unit = step / bins
    below, area, areas = 0, 0, [0]
    for mass in law.masses.coeffs():
        below += int(mass)
        area += below
        areas.append(area)
    scale = arb(unit) * arb(2) ** -_BITS
    return _Lattice(unit, law.first, last, [x * scale for x in areas], arb(law.lost) * arb(2) ** -_BITS)


def _single(mu: arb, h: arb, last: int) -> _Law:
    """Return the law of L on multiples of h up to ``last``: the second differences of E (L - x)_+ over h."""
    size, step = float(mu.mid()), float(h.mid())
    start = math.floor(math.exp(-_RARE * size - 0.5 * size * size) / step)
    stop = min(last, math.ceil(math.exp(_RARE * size - 0.5 * size * size) / step) + 1)
    unit = arb(2) ** _BITS

    def above(j: int) -> arb:
        return 1 - j * h if j <= 0 else hockey_stick((j * h).log(), mu)

    before, here, masses = above(start - 1), above(start), []
    slope = (before - here) / h  # P(L > x) somewhere below the first point, or more
    low = _units((1 - slope) * unit) if start > 0 else 0
    for j in range(start, stop + 1):
        after = above(j + 1)
        masses.append(_units((before - 2 * here + after) / h * unit))
        before, here = here, after
    high = 0 if stop == last else _units((before - here) / h * unit)
    return _Law(start, fmpz_poly(masses), low + high)


def _units(x: arb) -> int:
    """Return an integer >= 0 that is at least the upper end of the ball."""
    whole = x.upper().ceil().unique_fmpz()
    assert whole is not None
    return max(int(whole), 0)


def _sum(law: _Law, times: int, last: int) -> _Law:
    """Return the law of the sum of independent copies, up to ``last``."""
    result, copies = law, 1
    for bit in map(int, bin(times)[3:]):
        for other, more in ((result, copies), (law, 1)) if bit else ((result, copies),):
            copies += more
            result = _added(result, other, last - (times - copies) * law.first)
    return result


def _added(a: _Law, b: _Law, last: int) -> _Law:
    """Return the law of the sum of two, up to ``last``, without ends of negligible mass."""
    first = a.first + b.first
    product = a.masses.mul_low(b.masses, max(last - first + 1, 1))
    masses = [-(-int(x) >> _BITS) for x in product.coeffs()]
    start, low = _negligible(masses)
    stop, high = _negligible(masses[::-1])
    kept = masses[start : len(masses) - stop] or [0]
    # A law's mass is at most 1, plus what rounding has added.
    return _Law(first + start, fmpz_poly(kept), a.lost + b.lost + (a.lost + b.lost >> 20) + 1 + low + high)


def _negligible(masses: list[int]) -> tuple[int, int]:
    """Return how many of the first masses together are negligible, and their sum."""
    total = 0
    for i, mass in enumerate(masses):
        if total + mass > _NEGLIGIBLE:
            return i, total
        total += mass
    return 0, 0
