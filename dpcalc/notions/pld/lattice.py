"""Laws of sums of privacy losses on a lattice, exponentially tilted so that the loss of interest is near the mean.

A law with masses p(z) on the points z = index * step is held as weights w with

    p(z) = exp(log_scale - tilt z) w(z),   sum w about 1,   tilt >= 0.

Composition adds losses: weights are convolved, scales add, the tilt stays. If the tilt makes epsilon the mean, delta is
a sum of weights near the mean, and the rounding of w is small relative to it, even for delta = 1e-200. Errors are
bounded:

* `defect` bounds the sum of |exact weight - weight|: errors of the FFT, and tails cut off;
* `log_error` bounds the logarithm of the relative errors of all other operations;
* `padding` bounds how much rounding masses up has raised ln delta;
* `spread` bounds the effect of splitting masses between the points of a lattice, as follows.

With F(z) = 1 - e^{epsilon - z} for z > epsilon, e^{-tilt (z - epsilon)} F(z) <= c for all z, c = t^t/(1 + t)^(1 + t) at
tilt t. So a defect d changes delta by at most exp(log_scale - tilt epsilon) c d, wherever it is.

Splitting. A loss y between two points becomes the loss y + n on one of them, with the same mass under P and under Q:
E e^{s n} = 1 at s = 0 and s = -1, given y. As ln E e^{s n} is convex in s with a second derivative of at most a quarter
of the squared gap, it is at most s (s + 1) gap^2/8, and at least 0, for s >= 0. So for the tilted law W of the sum,
whose loss y has become z = y + n,

    ln E_W e^{l n} <= spread s (s + 1) at s = tilt + l,   spread = sum of the gap^2/8 of all splits,

where s >= 0 or s <= -1. Splits change E (1 - e^{epsilon - z})_+ by exactly E |1 - e^{epsilon - z}| over those with
epsilon between y and z. For any r > 0 this is at most exp(log_scale - tilt epsilon) times the sum of
w(z) e^{-tilt u} |1 - e^{-u}|, u = z - epsilon, over |u| <= r, plus, with Chernoff's bound on both terms,
c W(n > r) + E_W(min(1, -n) e^{-(tilt + 1) n}, n < -r). If gaps differ from point to point, `spread` is such that the
bound on E_W e^{l n} holds for s (s + 1) <= `reach`. `apart` is the weight that moved up from wider gaps, worth at most
c times as much in delta; weight that moved down in them has not raised delta.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.notions.pld.convolution import Shares, convolution_power, product_of_means
from dpcalc.numerics.floats import UNIT, Array, Integers, log_add_exp, log_less, np
from dpcalc.numerics.normal_arrays import log_sum_exp

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpcalc.notions.pld.discretisation import DiscreteLoss


_CUT = 1e-16  # weight that may be cut off at either end
_UNDERFLOW = 1e-300  # bounds the sum of all numbers that underflow to 0
_DEVIATIONS = (3.0, 4.0, 5.0, 6.0, 7.0, 8.0)  # values of r, in deviations of what splits added
_WIDTH = 16.0  # of the law of a sum, in standard deviations
_BLOCK = 256  # terms summed at once
_LARGEST = 600.0  # ln of the largest term of a long sum
_CANCELLED = 1e-10  # relative error that sums over blocks may have
_LARGEST_MULTIPLE, _MOST_BITS = 256.0, 8  # of steps merged at once, and its bits
_LIGHT = 1e-30  # lighter points of a discrete loss add to the defect


class Grid(NamedTuple):
    """The fineness of a lattice: its step in standard deviations, larger if that needs more than ``most`` points."""

    fineness: float
    most: int


class TiltedLaw(NamedTuple):
    """A tilted law; see the module's docstring."""

    step: float
    first: int
    weights: Array
    tilt: float
    log_scale: float
    defect: float
    log_error: float
    padding: float
    spread: float
    reach: float
    apart: float

    def points(self) -> Array:
        """Return the losses of the weights."""
        indices: Array = np.arange(self.first, self.first + len(self.weights), dtype=float)
        return indices * self.step

    def deviation(self) -> float:
        """Return the standard deviation of the tilted law."""
        z = self.points()
        total = float(self.weights.sum())
        centred = z - float(np.sum(self.weights * z)) / total
        return math.sqrt(float(np.sum(self.weights * centred * centred)) / total)

    def moved_to_step(self, step: float) -> TiltedLaw:
        """Return a dominating law on multiples of another step: each mass is split between its neighbours (`_shares`).

        A mass in the defect, whose place is unknown, grows by a factor of at most e^(tilt step).
        """
        if step == self.step:
            return self
        multiple = step / self.step
        if 1.0 < multiple <= _LARGEST_MULTIPLE and math.frexp(multiple)[0] == 0.5 and multiple * self.step == step:
            return self._in_rows(int(multiple))
        z = self.points()
        cell = np.floor(z / step)
        slack = 4.0 * UNIT * np.abs(z)
        x = np.clip(z - cell * step + slack, 0.0, step)
        share = np.minimum(np.expm1(-x) / math.expm1(-step) * (1.0 + 8.0 * UNIT), 1.0)
        first = int(cell[0])
        indices = (cell - cell[0]).astype(int)
        length = int(indices[-1]) + 2
        lower = self.weights * (1.0 - share) * np.exp(-self.tilt * x)
        upper = self.weights * share * np.exp(np.minimum(self.tilt * (step - x), 700.0))
        weights = np.asarray(np.bincount(indices, lower, length) + np.bincount(indices + 1, upper, length), float)
        density = min(max(1.0, step / self.step), float(len(z)))
        rounding = UNIT * (8.0 * self.tilt * (float(np.abs(z[[0, -1]]).max()) + step) + 2.0 * density + 32.0)
        return self._with_weights(weights, first, step, rounding)

    def _in_rows(self, multiple: int) -> TiltedLaw:
        """Return the law on multiples of ``multiple`` steps, a power of 2."""
        before = self.first % multiple
        rows = -(-(before + len(self.weights)) // multiple)
        padded = np.zeros(rows * multiple)
        padded[before : before + len(self.weights)] = self.weights
        shares = _shares(self.tilt, self.step, multiple, self.first)
        table = padded.reshape(rows, multiple)
        weights = np.append((table * shares.lower).sum(axis=1), 0.0)
        weights[1:] += (table * shares.upper).sum(axis=1)
        return self._on_rows(weights, self.first // multiple, multiple)

    def _on_rows(self, weights: Array, first: int, multiple: int) -> TiltedLaw:
        """Return the law with weights moved to multiples of ``multiple`` steps, as in `moved_to_step`."""
        step = self.step * multiple
        return self._with_weights(weights, first, step, UNIT * (8.0 * self.tilt * step + 2.0 * multiple + 32.0))

    def _with_weights(self, weights: Array, first: int, step: float, rounding: float) -> TiltedLaw:
        """Return the law with weights moved to another step, with this relative error."""
        total = float(weights.sum())
        return self._replace(
            step=step,
            first=first,
            weights=weights / total,
            log_scale=self.log_scale + math.log(total),
            defect=self.defect * _exp(self.tilt * step) / total * 1.001,
            log_error=self.log_error + rounding,
            spread=self.spread + step * step / 8.0,
        )

    def coarsened(self, grid: Grid) -> TiltedLaw:
        """Return the law on the coarsest lattice that ``grid`` allows, coarser by a power of 2."""
        multiple = max(grid.fineness * self.deviation() / self.step, len(self.weights) / grid.most, 1.0)
        return self.moved_to_step(self.step * 2.0 ** math.floor(math.log2(multiple) + 1e-9))

    def self_composed(self, times: int, grid: Grid) -> TiltedLaw:
        """Return the law of the sum of ``times`` independent losses, using the highest powers that fit the lattice.

        The lattice gets coarser as the sum gets wider, so each of the few stages adds about the same share to the
        variance.
        """
        result = law = self
        bits = bin(times)[3:]
        while bits:
            law = law.moved_to_step(result.step)
            spread = result.deviation()
            room = grid.most * result.step / (_WIDTH * max(spread, result.step))
            taken = min(max(1, math.floor(2.0 * math.log2(room))), len(bits)) if room > 1.0 else 1
            copies, more = 1 << taken, int(bits[:taken], 2)
            wide = math.sqrt(copies * spread**2 + (more * law.deviation() ** 2 if more else 0.0))
            multiple = 1 << int(min(max(math.log2(max(grid.fineness * wide / law.step, 1.0)) + 1e-9, 0.0), _MOST_BITS))
            result = add_losses(result, copies, law, more, multiple).coarsened(grid)
            bits = bits[taken:]
        return result

    def plus(self, other: TiltedLaw, grid: Grid) -> TiltedLaw:
        """Return the law of the sum of this loss and another one, on a suitable lattice."""
        step = self.step
        if step != other.step:
            width = len(self.weights) * step + len(other.weights) * other.step
            fine = max(grid.fineness * math.hypot(self.deviation(), other.deviation()), width / grid.most)
            step = 2.0 ** math.floor(math.log2(fine) + 1e-9)
        return add_losses(self.moved_to_step(step), 1, other.moved_to_step(step), 1).coarsened(grid)

    def _trimmed(self, allowed: float) -> TiltedLaw:
        """Return the law without ends of at most ``allowed`` weight each, which are added to the defect."""
        w = self.weights
        start, stop = _light(w, allowed), len(w) - _light(w[::-1], allowed)
        if start >= stop:
            return self
        lost = float(w[:start].sum()) + float(w[stop:].sum())
        return self._replace(first=self.first + start, weights=w[start:stop], defect=self.defect + lost * 1.001)

    def log_finite_delta(self, epsilon: float) -> float:
        """Return ln of delta at ``epsilon`` without the share of a loss of +inf, rounded up."""
        value = log_add_exp(self._log_sum(epsilon, 1.0), math.log(self.defect) + _log_greatest_gain(self.tilt))
        return self.log_scale - self.tilt * epsilon + value + self._log_error(epsilon, value)

    def finite_curve(self) -> Callable[[float], float]:
        """Return `log_finite_delta` as a function of epsilon, in constant time per call, from precomputed tail sums.

        With z_j the first point that is not below epsilon and x = z_j - epsilon, the sum over z_k, k >= j, is
        e^{-tilt x} (A - e^-x B), A the sum of w_k e^{-tilt (z_k - z_j)} and B that of w_k e^{-(tilt + 1) (z_k - z_j)}.
        Both sums have positive terms. If their difference may have a relative error above `_CANCELLED`, or if they are
        out of range, the terms are added one by one.
        """
        steps = self.step * np.arange(len(self.weights), dtype=float)
        width, blocks = float(steps[-1]), -(-len(steps) // _BLOCK)
        error = UNIT * (2.0 * (_BLOCK + blocks) + 64.0 + 16.0 * (self.tilt + 1.0) * width)
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        sums: list[tuple[float, Array]] = []
        for slope in (self.tilt, self.tilt + 1.0):
            exponents = logs - slope * steps
            shift = _LARGEST - float(exponents.max())
            padded = np.zeros(blocks * _BLOCK)
            padded[: len(steps)] = np.exp(exponents + shift)
            sums.append((shift, _sums_from(padded.reshape(blocks, _BLOCK))))
            error += UNIT * 8.0 * (abs(shift) + _LARGEST + float(np.abs(logs[self.weights > 0.0]).max(initial=0.0)))
        (shift, upper), (lower_shift, lower) = sums
        constant = math.log(self.defect) + _log_greatest_gain(self.tilt)

        def at(epsilon: float) -> float:
            place = self._first_from(epsilon)
            if place == len(steps) or not lower[place] > 1e-270 or not upper[place] > 1e-270:
                return self.log_finite_delta(epsilon)
            z, start = (self.first + place) * self.step, float(steps[place])
            x = z - epsilon
            log_upper = math.log(upper[place])
            beyond = start - (x + 4.0 * UNIT * abs(z))
            less = math.exp(min(0.0, math.log(lower[place]) - log_upper - lower_shift + shift + beyond))
            slack = 1.01 * error * (1.0 + less)
            if not slack <= _CANCELLED * (1.0 - less):
                return self.log_finite_delta(epsilon)
            value = log_upper + self.tilt * start - shift - self.tilt * x + math.log(1.0 - less + slack)
            value = log_add_exp(value, constant)
            return self.log_scale - self.tilt * epsilon + value + self._log_error(epsilon, value)

        return at

    def log_floors(self, epsilon: float) -> Floors:
        """Return lower bounds on delta in exact arithmetic, with split losses and without splits.

        The latter is the larger of two bounds. One subtracts what splits add (see the module's docstring). The other is
        delta at epsilon + r of the split losses minus c W(n > r), since 1 - e^{epsilon - y} does not decrease in y.
        """
        split = self._log_floor(epsilon)
        if self.spread == 0.0:
            return Floors(split, split)
        deviation, greatest = math.sqrt(2.0 * self.spread), math.exp(_log_greatest_gain(self.tilt))
        exponent = self.log_scale - self.tilt * epsilon
        exponent += self._log_error(epsilon, exponent)
        u = self.points() - epsilon
        near = np.abs(u) <= _DEVIATIONS[-1] * deviation
        u, w = u[near], self.weights[near]
        with np.errstate(over="ignore", invalid="ignore"):  # a point without weight adds nothing, even at a large gain
            gains = np.where(w > 0.0, w * np.exp(-self.tilt * u) * np.abs(np.expm1(-u)), 0.0)
        exact = -math.inf
        for r in (k * deviation for k in _DEVIATIONS):
            s = max(min(r / (2.0 * self.spread), math.sqrt(self.reach + 0.25)) - 0.5, 1e-9)
            chernoff = self.spread * s * (s + 1.0) - s * r
            above = greatest * (_exp(chernoff + self.tilt * r) + self.apart) + _UNDERFLOW
            below = min(1.0, max(r, 1.0 / s)) * _exp(chernoff)
            largest = max(_exp(self.tilt * r) * math.expm1(min(r, 700.0)), greatest)
            splits = float(gains[np.abs(u) <= r].sum()) + self.defect * largest + above + below
            shifted = log_less(self._log_floor(epsilon + r), exponent - self.tilt * r + math.log(above))
            exact = max(exact, shifted, log_less(split, exponent + math.log(splits)))
        return Floors(split, exact)

    def _log_floor(self, epsilon: float) -> float:
        value = self._log_sum(epsilon, -1.0)
        value = log_less(value, math.log(self.defect) + _log_greatest_gain(self.tilt))
        return self.log_scale - self.tilt * epsilon + value - self._log_error(epsilon, value) - self.padding

    def _log_sum(self, epsilon: float, sign: float) -> float:
        """Return ln of the sum of w e^{-tilt x}(1 - e^-x) over x = z - epsilon > 0; sign 1 rounds x up, -1 down."""
        start = max(self._first_from(epsilon) - 1, 0)
        above = np.arange(self.first + start, self.first + len(self.weights), dtype=float) * self.step
        x = above - epsilon
        gain = -np.expm1(-np.maximum(x + sign * 4.0 * UNIT * np.abs(above), 0.0))
        with np.errstate(divide="ignore"):
            return log_sum_exp(np.log(self.weights[start:]) - self.tilt * np.maximum(x, 0.0) + np.log(gain))

    def _first_from(self, epsilon: float) -> int:
        """Return the place of the first point that is not below epsilon; the number of points if all are below."""
        count = len(self.weights)
        place = int(min(max(epsilon / self.step - self.first, 0.0), float(count)))
        while place > 0 and (self.first + place - 1) * self.step >= epsilon:
            place -= 1
        while place < count and (self.first + place) * self.step < epsilon:
            place += 1
        return place

    def _log_error(self, epsilon: float, value: float) -> float:
        """Return a bound on the rounding of a sum near ``epsilon`` whose logarithm is ``value``, and of the weights."""
        ends = abs(self.first) * self.step, abs(self.first + len(self.weights) - 1) * self.step
        greatest = max(ends) + abs(epsilon)
        size = 64.0 * abs(self.log_scale) + 16.0 * self.tilt * greatest + 128.0
        return self.log_error + UNIT * (size + (8.0 * abs(value) if value > -math.inf else 0.0))


def tilted_law(loss: DiscreteLoss, tilt: float, step: float, low: int, high: int, copies: int) -> TiltedLaw:
    """Return the law of a discrete loss on the lattice low * step, ..., high * step; other points add to the defect.

    The bound on what splits add is for the sum of ``copies`` losses; give 0 if no loss was split.
    """
    exponents = loss.log_masses + tilt * loss.points
    log_scale = log_sum_exp(exponents)
    w = np.exp(exponents - log_scale)
    indices = np.rint(loss.points / step)
    inside = (indices >= low) & (indices <= high) & (indices * step == loss.points) & (w > _LIGHT)
    weights = np.zeros(high - low + 1)
    weights[indices[inside].astype(int) - low] = w[inside]
    weights[0] += _UNDERFLOW  # no law without weight
    sizes = np.abs(loss.log_masses[inside]) + 2.0 * tilt * np.abs(loss.points[inside])
    spread, reach, apart = _splits(loss, w, tilt, step, copies) if copies else (0.0, math.inf, 0.0)
    return TiltedLaw(
        step=step,
        first=low,
        weights=weights,
        tilt=tilt,
        log_scale=log_scale,
        defect=float(w[~inside].sum()) * 1.001 + _UNDERFLOW,
        log_error=UNIT * (4.0 * float(np.max(sizes, initial=0.0)) + 4.0 * abs(log_scale) + 32.0),
        padding=float(np.max(loss.padding[inside], initial=0.0)),
        spread=spread,
        reach=reach,
        apart=apart,
    )


def _splits(loss: DiscreteLoss, w: Array, tilt: float, step: float, copies: int) -> tuple[float, float, float]:
    """Return the spread of the splits of one loss, its reach, and the weight that is apart.

    The reach is such that Chernoff's bound holds for about eight deviations of what the copies add.
    """
    reach = 0.5 * (16.0 / step) ** 2 / copies
    spread, apart = _spread(loss, w, tilt, step, reach)
    while 2.0 * copies * spread * reach < 36.0 and reach * step * step < 16.0:
        reach *= 4.0
        spread, apart = _spread(loss, w, tilt, step, reach)
    return spread, reach, apart


def _spread(loss: DiscreteLoss, w: Array, tilt: float, step: float, reach: float) -> tuple[float, float]:
    """Return the spread of the splits of one loss, and the weight that moved up from gaps too wide to count.

    A split loss is at the ends of its gap, so each point's weight counts with the wider of the gaps beside it. Beside a
    heavy point, perhaps an atom that is not split at all, the weights of its neighbours give a sharper bound: if the
    share a of a loss moves up by at most g <= 1, E e^{s n} - 1 <= min(a, (1 - a) e^g) 3 s (s + 1) g^2 e^{s g}, s >= 0,
    as in s n |s n| + 3 g |s n|, and likewise for s <= -1 with P and Q exchanged.
    """
    before = np.append(0.0, w[:-1])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        allowed = reach * step * step / 2.0 - 0.5 * np.log(np.maximum(w, before))
        wide = reach * loss.gaps**2 / 8.0 > np.minimum(allowed, 700.0)
        gaps = np.where(wide, 0.0, loss.gaps)
        gaps = np.maximum(gaps, np.append(gaps[1:], 0.0))
        growth = 3.0 * reach * gaps * gaps * np.exp((math.sqrt(reach) + tilt + 2.0) * gaps)
        beside = np.where(gaps <= 1.0, (before + np.append(w[1:], 0.0)) * growth, math.inf)
        total = float(np.sum(np.fmin(w * np.expm1(reach * gaps * gaps / 8.0), beside)))
    return 1.001 * math.log1p(total) / reach, float(w[wide].sum())


def add_losses(a: TiltedLaw, times_a: int, b: TiltedLaw, times_b: int, multiple: int = 1) -> TiltedLaw:
    """Return the law of the sum of independent losses, times_a >= 1 of law a and times_b of law b, on one lattice.

    It is coarser by the multiple, a power of 2, if that is faster. Ends of negligible weight are cut off.
    """
    first = times_a * a.first + times_b * b.first
    shares = _shares(a.tilt, a.step, multiple, first) if multiple > 1 else None
    weights, start, error, coarser = convolution_power(a.weights, times_a, b.weights, times_b, shares)
    # (1 + d)^m (1 + e)^n - 1 <= (m d + n e) (1 + d)^m (1 + e)^n; the weights themselves sum to 1 up to rounding.
    grown = _exp(times_a * math.log1p(a.defect) + times_b * math.log1p(b.defect))
    defect = 1.01 * (times_a * a.defect + times_b * b.defect) * grown
    weights[0] += _UNDERFLOW
    law = TiltedLaw(
        step=a.step,
        first=first + start,
        weights=weights,
        tilt=a.tilt,
        log_scale=times_a * a.log_scale + times_b * b.log_scale,
        defect=defect + _UNDERFLOW + (0.0 if coarser else error),
        log_error=times_a * a.log_error + times_b * b.log_error + 256.0 * UNIT,
        padding=times_a * a.padding + times_b * b.padding,
        spread=times_a * a.spread + times_b * b.spread,
        reach=min(a.reach, b.reach),
        apart=times_a * a.apart + times_b * b.apart,
    )
    if coarser:
        law = law._on_rows(weights, start, multiple)
        law = law._replace(defect=law.defect + error / float(weights.sum()) * 1.001)
    return law._trimmed(error + _CUT)


def add_means(laws: list[TiltedLaw], places: Integers, shares: Array, counts: Array) -> TiltedLaw:
    """Return the law of the sum of independent losses: counts[i] with the mean, by shares[i], of the laws[places[i]].

    The laws have one lattice and one tilt.
    """
    first, last = min(law.first for law in laws), max(law.first + len(law.weights) for law in laws)
    weights = np.zeros((len(laws), last - first))
    for row, law in zip(weights, laws, strict=True):
        row[law.first - first :][: len(law.weights)] = law.weights
    scales = np.array([law.log_scale for law in laws])
    logs = np.where(shares > 0.0, scales[places], -np.inf)
    most = logs.max(axis=1)  # of each mean by itself: those of others may be far apart
    scaled = shares * np.exp(logs - most[:, None])
    totals = scaled.sum(axis=1)
    scaled /= totals[:, None]
    log_scale = float((counts * (np.log(totals) + most)).sum())

    def added(of: list[float]) -> float:
        """Return the sum over all losses of the largest value among the laws of their mean, rounded up."""
        return 1.01 * float((counts * np.array(of)[places].max(axis=1)).sum())

    copies = float(counts.sum())
    product, start, error = product_of_means(weights, places, scaled, counts)
    defects = added([law.defect for law in laws])
    product[0] += _UNDERFLOW
    law = TiltedLaw(
        step=laws[0].step,
        first=int(copies) * first + start,
        weights=product,
        tilt=laws[0].tilt,
        log_scale=log_scale,
        defect=defects * _exp(defects) + _UNDERFLOW + error,
        log_error=added([law.log_error for law in laws]) + UNIT * copies * (32.0 + 8.0 * float(np.abs(scales).max())),
        padding=added([law.padding for law in laws]),
        spread=added([law.spread for law in laws]),
        reach=min(law.reach for law in laws),
        apart=added([law.apart for law in laws]),
    )
    return law._trimmed(error + _CUT)


def _shares(tilt: float, step: float, multiple: int, first: int) -> Shares:
    """Return how a law moves to multiples of ``multiple`` steps, including the effect of the tilt on the weights.

    A mass at distance x above the lower neighbour keeps its total under P and under Q if the share
    (1 - e^-x)/(1 - e^-step) moves up: then H increases only between the neighbours, to the chord. x is rounded up.
    """
    wide = multiple * step
    x = np.minimum(np.arange(multiple) * step * (1.0 + 4.0 * UNIT), wide)
    share = np.minimum(np.expm1(-x) / math.expm1(-wide) * (1.0 + 8.0 * UNIT), 1.0)
    lower = (1.0 - share) * np.exp(-tilt * x)
    return Shares(lower, share * np.exp(np.minimum(tilt * (wide - x), 700.0)), first)


def _light(weights: Array, allowed: float) -> int:
    """Return how many of the first weights sum to at most ``allowed``."""
    few = _BLOCK
    while few < len(weights) and np.cumsum(weights[:few])[-1] <= allowed:
        few *= 4
    return int(np.searchsorted(np.cumsum(weights[:few]), allowed, side="right"))


def _exp(x: float) -> float:
    return math.exp(x) if x < 700.0 else math.inf


def compose(laws: list[TiltedLaw], grid: Grid) -> TiltedLaw:
    """Return the law of the sum of different losses, added in pairs so that each is in few additions."""
    while len(laws) > 1:
        laws = sorted(laws, key=TiltedLaw.deviation)
        pairs = zip(laws[0::2], laws[1::2], strict=False)
        laws = [a.plus(b, grid) for a, b in pairs] + laws[len(laws) & ~1 :]
    return laws[0]


def _sums_from(rows: Array) -> Array:
    """Return the sums from each place on, over rows read one after another, each with about as many additions as a row
    has entries plus the number of rows."""
    within = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1]
    after = np.append(np.cumsum(within[::-1, 0])[::-1][1:], 0.0)
    return (within + after[:, None]).ravel()


class Floors(NamedTuple):
    """Lower bounds on ln of delta without the share of a loss of +inf: with split losses, and without splits."""

    split: float
    exact: float


def _log_greatest_gain(tilt: float) -> float:
    """Return ln of the largest value of e^(-tilt x)(1 - e^-x): t ln t - (1 + t) ln(1 + t)."""
    return -tilt * math.log1p(1.0 / tilt) - math.log1p(tilt) if tilt > 0.0 else 0.0
