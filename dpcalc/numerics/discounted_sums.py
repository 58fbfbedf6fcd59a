"""Laws of discounted sums S = A_0 + f A_1 + f^2 A_2 + ..., rounded up.

The A_i >= 0 are independent with one law. S of 2m terms is S of m terms plus f^m times another such sum, so
logarithmically many additions suffice. A few values are added exactly; if there are too many, each moves up to the next
point of a lattice. All terms are positive, so small probabilities keep their relative precision. The law returned is
larger than S in stochastic order: P(S > x) is never above its tail. For lower bounds there are smaller laws: values are
rounded down, and dropped terms count as less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.numerics.binomial import binomial_blocks
from dpcalc.numerics.floats import UNIT, Array, Integers, distinct, np, up
from dpcalc.numerics.roots import near_minimum

if TYPE_CHECKING:
    from fractions import Fraction

_EXACT = 1 << 14  # most distinct values added exactly: twelve terms of two values each; sorting is fast
_LATTICE = 1 << 13  # points: one convolution, their square, takes some milliseconds
_ADDED = 3.0 * _EXACT  # units of roundoff of a mass (a sum of at most _EXACT products) and of the rest
_BLOCK = 0.004  # f^B >= 1 - this: B terms count as the first one, too large by half of this on average
_SPARED = 1e-5  # share of the reach: terms that add less count as a constant, far below a step of the lattice
_MANY = 1000.0  # successes from which Chernoff's bound is within a few per cent of 1e-6 quantiles
_SPARE = 1.06  # factor that lattices may add below that
_FOLDS, _GROUPS = 60.0, 8000  # weights down to e^-60, and the most groups of them
_ROUNDED = 64.0  # units of roundoff of a sum of logarithms, added in pairs
_NEGLIGIBLE = 1e-30  # probabilities dropped when laws are rounded down
_DEEP = 80.0  # sums less likely than e^-80 count as the largest


class Law(NamedTuple):
    """Increasing values >= 0 and their probabilities, each rounded up; the rest has values up to ``most``."""

    values: Array
    masses: Array
    rest: float = 0.0
    most: float = 0.0

    def tail(self, above: float) -> float:
        """Return P(S > above), rounded up."""
        total = float(self.masses[self.values > above].sum()) + (self.rest if self.most > above else 0.0)
        return min(1.0, up(total, float(len(self.values)) + 8.0))

    def capped(self, most: float) -> Law:
        """Return the law of min(S, most)."""
        return self._replace(values=np.minimum(self.values, most), most=min(self.most, most))

    def within(self, reach: float) -> Law:
        """Return the law with values above ``reach`` moved to the rest."""
        inside = self.values <= reach
        rest = self.rest + float(self.masses[~inside].sum()) * (1.0 + len(inside) * UNIT)
        return self._replace(values=self.values[inside], masses=self.masses[inside], rest=rest)

    def on(self, nodes: Array) -> Law:
        """Return the law with every value moved up to the next node; the last node is above all values."""
        place = np.minimum(np.searchsorted(nodes, self.values), len(nodes) - 1)
        return self._replace(values=nodes, masses=_summed(place, self.masses, len(nodes)))

    def whole(self) -> tuple[Array, Array]:
        """Return the values and masses with the rest at the largest value, without values of no mass."""
        values, masses = self.values, self.masses
        if self.rest > 0.0:
            values, masses = np.append(values, self.most), np.append(masses, self.rest)
        order = np.argsort(values, kind="stable")
        values, masses = values[order], masses[order]
        kept = masses > 0.0
        return values[kept], masses[kept]


def counts(trials: int, chance: Fraction) -> Law:
    """Return the law of the number of successes in ``trials`` trials."""
    if trials == 1:
        return Law(np.array([0.0, 1.0]), np.array([up(float(1 - chance)), up(float(chance))]), most=1.0)
    blocks = binomial_blocks(trials, chance)
    order = np.argsort(blocks.high, kind="stable")
    return Law(blocks.high[order], np.exp(blocks.log_above[order]) * (1.0 + 4.0 * UNIT), most=float(trials))


def discounted(term: Law, factor: float, count: int, reach: float = math.inf) -> Law:
    """Return the law of A_0 + f A_1 + ... of ``count`` terms; sums above ``reach`` count as the largest.

    Args:
        term: the law of one A_i.
        factor: f, from 0 to 1.
        count: 1 to 1e15.
        reach: the end of the lattice of values; a smaller reach gives a finer lattice.

    >>> from fractions import Fraction
    >>> law = discounted(counts(1, Fraction(1, 2)), 0.5, 3)
    >>> law.values.tolist(), round(law.tail(1.0), 9)
    ([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75], 0.375)
    """
    left = term.most * geometric(factor, count)
    reach = min(reach, left)
    term = term.within(reach)
    result, terms, error = term, 1, 8.0
    for bit in map(int, bin(count)[3:]):
        result, terms, error = _plus(result, result, factor**terms, reach), 2 * terms, 2.0 * error + _ADDED
        if bit:
            result, terms, error = _plus(term, result, factor, reach), terms + 1, error + 8.0 + _ADDED
        if factor**terms * left < reach * _SPARED:
            break
    exact = math.frexp(factor)[0] == 0.5 and terms <= 50  # powers of 2, and sums of a few of them
    beyond = 0.0 if terms == count else up(factor**terms * left, 8.0) + 1e-300  # the other terms at their largest
    slack = 1.0 if exact else 1.0 + 16.0 * UNIT * (count.bit_length() + 1)
    grown = 1.0 + 2.0 * UNIT * error  # products and sums of the masses
    most = up(term.most * geometric(factor, count), 4.0) + beyond
    return Law(result.values * slack + beyond, result.masses * grown, result.rest * grown, most)


def geometric(factor: float, count: int) -> float:
    """Return 1 + f + ... + f^(count-1), rounded up."""
    if factor >= 1.0:
        return up(float(count))
    shrunk = math.expm1(count * math.log(factor)) if factor > 0.0 else -1.0
    return min(up(float(count)), up(-shrunk / (1.0 - factor), 64.0))


def uses(trials: int, chance: Fraction, factor: float, count: int) -> Law:
    """Return the law of the sum of f^i N_i for i < count; N_i is the number of successes in ``trials`` trials.

    Terms whose weights differ by less than 0.4 per cent count as the first of them. For very many expected successes
    Chernoff's bounds are tight relative to the value; a lattice is not.

    Args:
        trials, chance: of a term; the chance is above 0.
        factor: f, from 0 to 1.
        count: 0 to 1e15.
    """
    if count == 0 or chance == 0:
        return Law(np.zeros(1), np.ones(1))
    block = count if factor >= 1.0 else max(1, min(count, int(-_BLOCK / math.log(factor)) if factor > 0.0 else 1))
    if block == count:
        return counts(trials * block, chance)
    sums = _Sums.of(trials, chance, factor, count)
    if trials * float(chance) * geometric(factor, count) > _MANY:
        return sums.law()
    scaled = factor if block == 1 else min(1.0, up(factor**block, 4.0))
    return discounted(counts(trials * block, chance), scaled, -(-count // block), _SPARE * sums.cut(-_DEEP))


def uses_of_periods(period: int, factor: float, count: int) -> Law:
    """Return the law of the sum of f^(t i) f^(J_i) for i < count, with J_i uniform on 0..t-1 and t the period."""
    if count == 0:
        return Law(np.zeros(1), np.ones(1))
    size = -(-period // _EXACT)
    values = factor ** np.arange(0, period, size, dtype=float)
    values = values if factor in (0.0, 1.0) else values * (1.0 + 4.0 * UNIT)
    points = distinct(values)
    masses = np.full(len(values), up(min(size, period) / period))
    place = Law(points, _summed(np.searchsorted(points, values), masses, len(points)), most=float(points[-1]))
    scaled = min(1.0, up(factor**period, 4.0)) if factor < 1.0 else 1.0
    return place if count == 1 else discounted(place, scaled, count, geometric(scaled, count) * float(points[-1]))


class _Sums(NamedTuple):
    """Sums of f^i N_i by Chernoff's bound: the weights of groups of trials, and the most that dropped terms add.

    P(S > x) <= e^(K(t) - t x) for every t > 0, with K(t) = ln E e^(t S), which increases in every weight.
    """

    weights: Array
    trials: float
    chance: float
    beyond: float
    most: float

    @classmethod
    def of(cls, trials: int, chance: Fraction, factor: float, count: int) -> _Sums:
        """Return the sum of ``count`` terms, in at most some thousand groups."""
        most = up(trials * geometric(factor, count))
        if not 0.0 < factor < 1.0:
            return cls(np.ones(1), float(trials * (count if factor > 0.0 else 1)), float(chance), 0.0, most)
        shown = min(count, math.ceil(_FOLDS / -math.log(factor)))
        size = -(-shown // _GROUPS)
        groups = -(-shown // size)
        weights = factor ** np.arange(0, groups * size, size, dtype=float) * (1.0 + 4.0 * UNIT)
        left = max(0, count - groups * size)
        beyond = up(trials * factor ** (groups * size) * geometric(factor, left), 16.0) if left else 0.0
        return cls(weights, float(size * trials), float(chance), beyond, most)

    def cumulant(self, t: float) -> float:
        """Return K(t)."""
        x, q = t * self.weights, self.chance
        near = np.log1p(q * np.expm1(np.minimum(x, 30.0)))
        far = np.logaddexp(math.log1p(-q) if q < 1.0 else -math.inf, math.log(q) + x)
        return self.trials * float(np.where(x < 30.0, near, far).sum())

    def cut(self, log_failure: float) -> float:
        """Return an x with P(S > x) <= e^log_failure: the minimum of (K(t) - log_failure)/t over t."""

        def at(log_t: float) -> float:
            return (self.cumulant(math.exp(log_t)) - log_failure) / math.exp(log_t)

        # Any t bounds the sum; the golden ratio to the power of 90 is below a unit of roundoff.
        return min(self.most, up(at(near_minimum(at, -40.0, 40.0, steps=90)), _ROUNDED) + self.beyond)

    def law(self) -> Law:
        """Return a law from the bounds of 160 values of t."""
        mean = self.trials * self.chance * float(self.weights.sum())
        t = np.geomspace(1e-2 / math.sqrt(self.trials * self.chance * float((self.weights**2).sum())), 3.0, 160)
        cumulants = np.array([self.cumulant(each) for each in t.tolist()])
        log_tails = -np.concatenate((np.linspace(0.05, 3.0, 20), np.linspace(3.25, _DEEP, 160)))
        values = ((cumulants[None, :] - log_tails[:, None]) / t[None, :]).min(axis=1)
        values = np.minimum.accumulate(values[::-1])[::-1] * (1.0 + _ROUNDED * UNIT) + self.beyond
        values = np.minimum(np.maximum(values, mean), self.most)
        tails = np.exp(log_tails) * (1.0 + 8.0 * UNIT)
        return Law(values, np.append(1.0, tails[:-1]) - tails, float(tails[-1]), self.most)


def cut(trials: int, chance: Fraction, factor: float, count: int, log_failure: float) -> float:
    """Return an x that the sum of f^i N_i exceeds with probability at most e^log_failure, by Chernoff's bound."""
    return _Sums.of(trials, chance, factor, count).cut(log_failure)


# --- sums -------------------------------------------------------------------------------------------------------------


def uses_down(
    trials: int, chance: Fraction, factor: float, count: int, period: int = 1, points: int = 1 << 12
) -> tuple[Array, Array]:
    """Return values and masses of a law below that of `uses`, or of `uses_of_periods` for a period above 1.

    Masses are rounded down, and the rest of 1 is at 0. Values are rounded down to a lattice; terms of negligible weight
    are dropped.
    """
    folds = math.ceil(20.0 / -math.log(factor)) if 0.0 < factor < 1.0 else 1 if factor <= 0.0 else count
    shown = -(-min(count, folds) // period) * period
    most = (
        cut(trials, chance, factor, count, -40.0)
        if period == 1
        else trials * geometric(factor**period, count // period)
    )
    whole = (factor >= 1.0 or shown == 1) and most <= points  # integers are points of the lattice, despite roundoff
    step, law, terms = 1.0 - 32.0 * UNIT if whole else up(most) / points, np.ones(1), 0
    for values, masses in _terms_down(trials, chance, factor, min(shown, count), period):
        place = np.floor(np.minimum(values, most) / step * (1.0 - 8.0 * UNIT)).astype(np.int64)
        law = _shifted_sum(law, _summed(place, masses, int(place.max()) + 1))[: points + 1]
        terms += 1
    return step * np.arange(len(law), dtype=float) * (1.0 - 4.0 * UNIT), law * (1.0 - 16.0 * UNIT * (terms + 8))


def _terms_down(trials: int, chance: Fraction, factor: float, shown: int, period: int) -> Iterator[tuple[Array, Array]]:
    """Yield the values and masses of terms, rounded down, the heaviest terms first."""
    if period > 1:
        places = factor ** np.arange(period, dtype=float) * (1.0 - 4.0 * UNIT)
        for start in range(0, shown, period):
            for _ in range(trials):
                yield places * (factor**start if start else 1.0), np.full(period, (1.0 - 4.0 * UNIT) / period)
        return
    block = shown if factor >= 1.0 else -(-shown // 2048)
    term = binomial_blocks(trials * block, chance)
    masses = np.exp(term.log_below) * (1.0 - 4.0 * UNIT)
    kept = masses > _NEGLIGIBLE
    for start in range(0, shown - block + 1, block):
        weight = 1.0 if factor >= 1.0 else factor ** (start + block - 1) * (1.0 - 4.0 * UNIT)
        yield term.low[kept] * weight, masses[kept]


def _shifted_sum(law: Array, row: Array) -> Array:
    """Return the convolution of a law with a law on few places."""
    sums = np.zeros(len(law) + len(row) - 1)
    for place in np.flatnonzero(row):
        sums[place : place + len(law)] += row[place] * law
    return sums


def _plus(a: Law, b: Law, factor: float, reach: float) -> Law:
    """Return the law of A + f B for independent A and B."""
    below = b.values * factor
    if len(a.values) * len(below) <= _EXACT:
        values, masses = np.add.outer(a.values, below).ravel(), np.multiply.outer(a.masses, b.masses).ravel()
        points = distinct(values)
        masses = _summed(np.searchsorted(points, values), masses, len(points))
        sums = Law(points, masses)
    else:
        step = min(reach, float(a.values[-1] + below[-1])) / _LATTICE
        first, second = _rows(a.values, a.masses, step), _rows(below, b.masses, step)
        masses = np.convolve(first, second)
        sums = Law(step * np.arange(len(masses), dtype=float), masses)
    inside = sums.values <= reach  # sums above count as the largest
    total = float(a.masses.sum()), float(b.masses.sum())
    rest = a.rest * (total[1] + b.rest) + b.rest * total[0] + float(sums.masses[~inside].sum())
    kept = inside & (sums.masses > 0.0)
    return Law(sums.values[kept], sums.masses[kept], rest)


def _rows(values: Array, masses: Array, step: float) -> Array:
    """Return the masses on multiples of a step; each value moves up to the next multiple."""
    place = np.ceil(values / step * (1.0 - 8.0 * UNIT)).astype(np.int64)
    place += place * step < values
    return _summed(place, masses, int(place.max()) + 1)


def _summed(place: Integers, masses: Array, count: int) -> Array:
    """Return the sum of the masses at every place."""
    return np.bincount(place, masses, count).astype(float, copy=False)
