"""Lower bounds on delta, rounded down: how well a sum of scores distinguishes two runs of noisy steps.

A step releases a normal number with standard deviation z and a mean that depends on how many of a group are in its
batch. Its score is approximately the log-likelihood ratio of that number, rounded to a multiple of h; the scores of all
steps are added. For any scores, the event A that the total is in a window gives delta >= P(A) - e^eps Q(A). So only the
two probabilities must be bounded; every other choice made here is free.

Laws of totals are powers of Fourier transforms. They are tilted first: P by e^(theta s) and Q by e^((1 + theta) s) at a
total s, which scales the errors of transforms to the tail of interest. If the members of a group are distributed among
steps, transforms are polynomials in x; the coefficient of x^k is for k members in total.

In an epoch of shuffled batches only the largest sum is scored. One of its t sums, at a random place, has mean `high`
under P and mean `low` under Q; the others have mean 0, and all have the standard deviation `spread`. The score is
approximately the log-likelihood ratio of the cell of the largest sum. The scores of the epochs are added, and every
event A "the total is at least a" gives delta >= P(A) - e^eps Q(A).
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from dpcalc.numerics.floats import UNIT, Array, Integers, np
from dpcalc.numerics.normal_arrays import log_upper_tail

T = TypeVar("T")

MOST_STEPS = 10**6
"""With more steps the errors of transforms exceed the result."""

MOST_EPOCHS = 4096
"""Further epochs are ignored."""

NARROWEST = 0.08
"""Smaller standard deviations are excluded: numbers would underflow."""

WIDEST = 1e4
"""Larger standard deviations are excluded: the bound would be negligible and below rounding."""

MOST_APART = 80.0
"""Largest (high - low)/spread times the root of the epochs: beyond it scores are too coarse for their sums."""

_CELLS = 4096  # of a released number: about a hundredth of its spread each
_POINTS = 1 << 14  # distinct totals
_TILTS = (0.0, 0.03, 0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_SLOPES = tuple(1e-3 * 30000.0 ** (j / 23.0) for j in range(24))  # of Chernoff's bounds
_OUTSIDE = 26.0  # a window misses about e^-26 of a law, less than the errors of transforms
_LEAST_CAP = 32.0  # of scores
_GAIN = 0.05  # of ln delta: what a larger tilt has to gain for the next one to be tried
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_FAR = 12.0  # standard deviations beyond which the probability is negligible
_ROUNDED = 512.0  # units of roundoff of a weight, a product of fewer numbers
_TRANSFORM = 8.0 * math.log2(_POINTS)  # units of roundoff of a transform, relative to the sum of its input
_KEPT = 4000  # approximate number of total scores of largest sums
_TRIMMED = 1e-26  # weight cut off at each end
_REACH = 21.0  # standard deviations between the ends that are kept
_ERROR = 4e-12  # relative error of ln of a distribution function above 1e-300, several times over


class Block(NamedTuple):
    """Steps of an epoch with the same weights: u_j is the weight of j members of the group in a batch."""

    weights: tuple[float, ...]
    steps: int


class Steps(NamedTuple):
    """Noisy steps of two runs P and Q, in independent epochs.

    Attributes:
        blocks: the steps of an epoch. The probability of the numbers of members in its batches is the product of their
            weights over the sum of all such products; a weight is accurate to `_ROUNDED` units.
        shared: k, the total number of members in all batches of an epoch, counted once per use; None if steps are
            independent, with weights that are probabilities.
        epochs: number of epochs.
        spread: z, rounded up: more noise gives a smaller bound.
        first, second: how much a member moves the mean under P and under Q.
    """

    blocks: tuple[Block, ...]
    shared: int | None
    epochs: int
    spread: float
    first: float
    second: float

    @property
    def all_steps(self) -> int:
        """The number of steps."""
        return self.epochs * sum(block.steps for block in self.blocks)


def log_delta_down(steps: Steps, epsilon: float) -> float:
    """Return ln of a lower bound on delta; -inf if none is found.

    Args:
        steps: at most `MOST_STEPS`.
        epsilon: >= 0, finite.
    """
    with np.errstate(all="ignore"):  # bounds of tails and windows that are nan or infinite are not used
        law = functools.partial(_law, steps, _cap(steps, epsilon))
        below = bisect.bisect_right(_TILTS, epsilon, key=lambda tilt: _middle(law(tilt)))
        best, first = -math.inf, max(0, below - 2)
        for i, tilt in enumerate(_TILTS[first:], first):
            if (tilted := law(tilt)) is None:
                break
            found, before = tilted.log_delta(epsilon), best
            best = max(found, before)
            if i >= below and -math.inf < best <= before + _GAIN:
                break
    return best


def _cap(steps: Steps, epsilon: float) -> float:
    """Return the largest score to count: higher ones are rare, and would only make the window of totals wide.

    A step with this score decides alone. A few caps are shared by the laws for all epsilons.
    """
    most = float(_scored(steps).scores.max())
    return min(most, max(_LEAST_CAP, 2.0 ** math.ceil(math.log2(1.5 * min(epsilon, most) + 1.0))))


def _middle(law: _Law | None) -> float:
    """Return the middle of the window of totals, which increases with the tilt."""
    return math.inf if law is None else law.middle


class _Law(NamedTuple):
    """Tilted laws of the total in a window, divided by e^log_p and e^log_q, and bounds on their missing parts."""

    tilt: float
    middle: float
    totals: Array
    p: Array
    q: Array
    log_p: float
    log_q: float
    missing_p: float
    missing_q: float

    def log_delta(self, epsilon: float) -> float:
        """Return ln of the best P(A) - e^eps Q(A), where A is the totals from one to the end of the window."""
        near = np.abs(self.totals - epsilon) * (1.0 + self.tilt) < 300.0
        if not near.any() or abs(self.log_q - self.log_p) > 300.0:
            return -math.inf
        apart = (self.totals[near] - epsilon)[::-1]
        first = np.exp(-self.tilt * apart)
        second = math.exp(self.log_q - self.log_p) * np.exp(-(1.0 + self.tilt) * apart)
        exponents = abs(self.log_p) + abs(self.log_q) + (1.0 + self.tilt) * (epsilon + 300.0)
        units = UNIT * (2.0 * _POINTS + 64.0 + 16.0 * exponents)
        p = np.cumsum(first * self.p[near][::-1]) * (1.0 - units) - first * self.missing_p
        q = np.cumsum(second * self.q[near][::-1]) * (1.0 + units) + second * self.missing_q
        gain = float((p - q).max())
        return min(0.0, math.log(gain) + self.log_p - self.tilt * epsilon - 1e-9) if gain > 1e-280 else -math.inf


class _Scored(NamedTuple):
    """Steps with the scores of cells, and for each block ln of the masses of cells by members: below P and above Q."""

    steps: Steps
    scores: Array
    below: list[Array]
    above: list[Array]

    def log_means(self, laws: list[Array], slopes: Array, stride: int = 1) -> Array:
        """Return ln E e^(slope x total) under one of the laws, for each slope; with a stride, from so few cells."""
        if stride > 1:
            few = self._replace(scores=self.scores[::stride])
            return few.log_means([rows[:, ::stride] + math.log(stride) for rows in laws], slopes)
        means: list[float | None] = [None] * len(slopes)
        sums = []
        for rows in laws:  # the first gives the means
            tilted = [self._summed(rows, slope, mean) for slope, mean in zip(slopes, means, strict=True)]
            means = [mean for mean, _ in tilted]
            sums.append(np.array([total for _, total in tilted]).T)
        epoch = self._coefficient(sums)
        epoch = np.log(np.where((epoch > 1e-280) & (epoch < 1e280), epoch, np.inf)) - math.log(self._norm)
        result: Array = self.steps.epochs * epoch + self.steps.all_steps * np.array(means)
        return result

    def law(self, laws: list[Array], slope: float, place: Integers, log_mean: float) -> Array:
        """Return the law of the total modulo `_POINTS`, tilted by a slope and divided by e^log_mean."""
        mean = self._tilted(laws[0], slope)[0]
        spectra = [
            np.fft.rfft([np.bincount(place, row, _POINTS) for row in self._tilted(rows, slope, mean)[1]], axis=1)
            for rows in laws
        ]
        scale = math.exp((log_mean - self.steps.all_steps * mean) / self.steps.epochs)
        epoch = self._coefficient(spectra) / (self._norm * scale)
        law: Array = np.fft.irfft(power(epoch[None], self.steps.epochs, _times)[0], _POINTS)
        return np.maximum(0.0, law)

    def _summed(self, rows: Array, slope: float, mean: float | None) -> tuple[float, Array]:
        mean, masses = self._tilted(rows, slope, mean)
        return mean, masses.sum(axis=1)

    def _tilted(self, rows: Array, slope: float, mean: float | None = None) -> tuple[float, Array]:
        """Return the mean, and the tilted masses of cells divided by e^mean; by default their sum is 1."""
        logs = rows + slope * self.scores
        if mean is None:
            most = float(logs.max())
            masses = np.exp(logs - most)
            total = float(masses.sum())
            return most + math.log(total), masses / total
        return mean, np.exp(np.minimum(logs - mean, 600.0))

    def _coefficient(self, polynomials: list[Any]) -> Any:
        """Return the coefficient of x^k in the product over the steps of an epoch, elementwise."""
        degree = self.steps.shared or 0
        raised = [
            power(_of_degree(each, degree), block.steps, _times)
            for each, block in zip(polynomials, self.steps.blocks, strict=True)
        ]
        return functools.reduce(_times, raised)[degree]

    @property
    def _norm(self) -> float:
        if self.steps.shared is None:
            return 1.0
        return float(self._coefficient([np.array(block.weights)[:, None] for block in self.steps.blocks])[0])


def _of_degree(polynomial: Any, degree: int) -> Any:
    """Return the polynomial padded with zero coefficients up to a degree."""
    more = degree + 1 - len(polynomial)
    return np.concatenate((polynomial, np.zeros((more, *polynomial.shape[1:])))) if more > 0 else polynomial


def _times(a: Any, b: Any) -> Any:
    """Return the product of polynomials, truncated to their degree."""
    product = np.zeros(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b))
    for i, each in enumerate(a):
        product[i:] += each * b[: len(b) - i]
    return product


@functools.lru_cache(maxsize=8)
def _scored(steps: Steps) -> _Scored:
    """Return the steps with the log-likelihood ratios of a step as scores."""
    most = max(len(block.weights) for block in steps.blocks) - 1
    means = [move * j for move in (steps.first, steps.second) for j in (0, most)]
    edges = np.linspace(min(means) - _FAR * steps.spread, max(means) + _FAR * steps.spread, _CELLS + 1)[1:-1]
    below, above = (
        [
            np.array([u * _masses(edges, steps.spread, move * j, side) for j, u in enumerate(block.weights)])
            for block in steps.blocks
        ]
        for move, side in ((steps.first, -1.0), (steps.second, 1.0))
    )
    if steps.shared is None:
        below, above = ([rows.sum(axis=0, keepdims=True) for rows in side] for side in (below, above))
    p, q = (side[0].sum(axis=0) for side in (below, above))
    told = p > 1e-290
    ratio = np.log(np.where(told, p, 1.0)) - np.log(q)
    scores = np.where(told, ratio, ratio[told].min())
    return _Scored(steps, scores, [np.log(rows) for rows in below], [np.log(rows) for rows in above])


def _masses(edges: Array, spread: float, mean: float, side: float) -> Array:
    """Return the probabilities of the cells between edges, rounded by the sign of ``side``: up if positive."""
    u = (edges - mean) / spread
    upper = np.concatenate(([1.0], np.exp(log_upper_tail(u)), [0.0]))
    lower = np.concatenate(([0.0], np.exp(log_upper_tail(-u)), [1.0]))
    # Tails are accurate to 16 (1 + u^2) relative units, and u to some units of its terms.
    units = 64.0 * UNIT * (1.0 + np.concatenate(([0.0], u * u + np.abs(u) * np.abs(edges / spread), [0.0])))
    left = lower[1:] < 0.5
    small, large = (np.where(left, lower[s], upper[s]) for s in (slice(1, None), slice(None, -1)))
    wrong = small * units[1:] + large * units[:-1]
    masses: Array = np.maximum(0.0, np.abs(small - large) + side * wrong)
    return masses + (1e-300 if side > 0.0 else 0.0)


@functools.lru_cache(maxsize=32)
def _law(steps: Steps, cap: float, tilt: float) -> _Law | None:
    """Return the tilted laws of the total of scores up to a cap; None if they have no window."""
    exact = _scored(steps)
    exact = exact._replace(scores=np.minimum(exact.scores, cap))
    slopes = np.array([0.0, *(-slope for slope in _SLOPES), *_SLOPES])
    low, high = _window(exact.log_means(exact.below, tilt + slopes, 4), slopes)  # only the step depends on it
    step = (high - low) / (_POINTS - 4)
    if not 1e-9 < step < 1e3:
        return None
    # Dithering: neighbours are rounded up or down in turn, so sums stay accurate even if all scores are below a step.
    scores = np.floor(exact.scores / step + np.arange(_CELLS) * _GOLDEN % 1.0)
    scored = exact._replace(scores=scores * step)
    log_means = scored.log_means(scored.below, tilt + slopes)
    low, high = _window(log_means, slopes)
    log_p, log_q = float(log_means[0]), float(scored.log_means(scored.above, np.array([1.0 + tilt]))[0])
    if not max(abs(log_p), abs(log_q)) < 1e5:
        return None
    place = scores.astype(np.int64) % _POINTS
    shown = round(0.5 * (low + high) / step) - _POINTS // 2 + np.arange(_POINTS)
    p, q = (
        scored.law(laws, slope, place, mean)[shown % _POINTS]
        for laws, slope, mean in ((scored.below, tilt, log_p), (scored.above, 1.0 + tilt, log_q))
    )
    ends = np.where(slopes > 0.0, (shown[-1] + 1) * step, (shown[0] - 1) * step)
    tails = (log_means - log_p - slopes * ends)[1:]
    outside = sum(1.001 * math.exp(min(0.0, float(side.min()))) for side in np.split(tails, 2))
    members, most = steps.shared or 0, float(np.abs(scored.scores).max())
    transforms = math.sqrt(_POINTS) * (_TRANSFORM + 4.0 * (members + 8.0))
    missing = 1.2 * UNIT * (steps.all_steps + 2.0) * (transforms + 2.0 * _ROUNDED + 8.0 * (1.0 + tilt) * most)
    totals: Array = shown.astype(float) * step
    return _Law(tilt, 0.5 * (low + high), totals, p, q, log_p, log_q, missing + outside, missing)


def _window(log_means: Array, slopes: Array) -> tuple[float, float]:
    """Return approximately the least and the largest total that matter, by Chernoff's bounds."""
    limits = np.nan_to_num((log_means[1:] - log_means[0] + _OUTSIDE), nan=np.inf) / slopes[1:]
    low, high = np.split(limits, 2)
    return float(low.max()), float(high.min())


def power(base: T, exponent: int, times: Callable[[T, T], T]) -> T:
    """Return base^exponent, exponent >= 1, by repeated squaring."""
    product = None
    while True:
        if exponent % 2:
            product = base if product is None else times(product, base)
        exponent //= 2
        if not exponent:
            assert product is not None
            return product
        base = times(base, base)


# --- the largest sums of shuffled epochs ------------------------------------------------------------------------------


class LargestSums(NamedTuple):
    """The law of a total score: P(first + i) >= below[i], and Q(first + i) <= above[i] e^(-h (first + i)).

    Attributes:
        first: the lowest score kept.
        below, above: weights under P, and under Q without the factor; rounded outwards.
        lost: an upper bound on the sum of weights like ``above`` at scores that are not kept.
    """

    first: int
    below: Array
    above: Array
    lost: float


@functools.lru_cache(maxsize=16)
def law_of_largest_sums(bins: int, spread: float, high: float, low: float, epochs: int) -> tuple[LargestSums, float]:
    """Return the law of the total score of ``epochs`` epochs, and the step h.

    Args:
        bins: t, 1 to 1e15.
        spread: `NARROWEST` to `WIDEST`.
        high, low: high > low >= 0, at most 2.
        epochs: 1 to `MOST_EPOCHS`, such that sqrt(epochs) (high - low)/spread <= `MOST_APART`.
    """
    single, step = _one_epoch(bins, spread, high, low, epochs)
    return power(single, epochs, _add), step


def log_delta_of_largest_sums_down(law: LargestSums, step: float, epsilon: float) -> float:
    """Return ln of a lower bound on delta; -inf if none above 1e-250 is found.

    Args:
        law, step: from `law_of_largest_sums`.
        epsilon: >= 0, finite.
    """
    excess = epsilon - step * (law.first + np.arange(len(law.below)))
    kept = excess < 40.0  # events with lower scores give worse bounds
    if not kept.any():
        return -math.inf
    factor = np.exp(excess[kept] + 64.0 * UNIT * (1.0 + epsilon))[::-1]
    rounding = 2.0 * UNIT * (len(factor) + 8.0)
    p = np.cumsum(law.below[kept][::-1]) * (1.0 - rounding)
    gain = float((p - np.cumsum(factor * law.above[kept][::-1]) * (1.0 + rounding) - factor * law.lost).max())
    return math.log(gain) - 1e-12 if gain > 1e-250 else -math.inf


def _one_epoch(bins: int, spread: float, high: float, low: float, epochs: int) -> tuple[LargestSums, float]:
    """Return the law of the score of one epoch, and the step h suitable for ``epochs`` epochs."""
    edges = np.linspace(-10.0 * spread, high + spread * (10.0 + math.sqrt(2.0 * math.log(bins))), _CELLS + 1)[1:-1]
    below, error = _masses_of_largest(edges, bins, spread, high)
    below = np.maximum(0.0, below - error)
    above, error = _masses_of_largest(edges, bins, spread, low)
    above = above + error + 1e-300
    positive = below > 0.0
    ratio = np.log(below[positive]) - np.log(above[positive])
    deviation = math.sqrt(float(below[positive] @ (ratio - float(below[positive] @ ratio)) ** 2))
    step = max(_REACH * math.sqrt(epochs) * deviation, 0.5 * float(ratio.max() - ratio.min())) / _KEPT
    score = np.full(len(positive), round(float(ratio.min()) / step))  # any score is valid for the other cells
    score[positive] = np.rint(ratio / step)
    first = int(score.min())
    counted = (score - first).astype(np.int64)
    p, q = (np.bincount(counted, masses).astype(float) for masses in (below, above))
    weight: Array = q * np.exp(step * (first + np.arange(len(q))))
    rounding = 2.0 * UNIT * (_CELLS + 64.0 + 8.0 * float(np.abs(ratio).max()))
    return _trim(LargestSums(first, p * (1.0 - rounding), weight * (1.0 + rounding), 0.0)), step


def _masses_of_largest(edges: Array, bins: int, spread: float, mean: float) -> tuple[Array, Array]:
    """Return the probabilities that the largest sum is in each cell between edges, and bounds on their errors."""
    log_f = (bins - 1.0) * log_upper_tail(-edges / spread) + log_upper_tail((mean - edges) / spread)
    log_f = np.concatenate([[-np.inf], log_f, [0.0]])
    f, g = np.exp(log_f), -np.expm1(log_f)
    with np.errstate(invalid="ignore"):
        error_f = np.where(f > 0.0, f * np.abs(log_f), 0.0) * _ERROR + 8.0 * UNIT * f
    error_g = g * (_ERROR + 8.0 * UNIT)
    lower = f[1:] <= 0.5
    masses = np.where(lower, f[1:] - f[:-1], g[:-1] - g[1:])
    return np.maximum(0.0, masses), np.where(lower, error_f[1:] + error_f[:-1], error_g[:-1] + error_g[1:])


def _add(a: LargestSums, b: LargestSums) -> LargestSums:
    """Return the law of the sum of two scores."""
    rounding = 4.0 * UNIT * (min(len(a.below), len(b.below)) + 8.0)
    most = [float(x.above.sum()) * (1.0 + 1e-10) + x.lost for x in (a, b)]
    lost = (a.lost * most[1] + b.lost * most[0]) * (1.0 + 1e-10) + 1e-280
    below = np.convolve(a.below, b.below) * (1.0 - rounding)
    return _trim(LargestSums(a.first + b.first, below, np.convolve(a.above, b.above) * (1.0 + rounding), lost))


def _trim(law: LargestSums) -> LargestSums:
    """Return the law without scores of negligible weight at either end."""
    weight = np.cumsum(law.below + law.above)
    start = int(np.searchsorted(weight, _TRIMMED))
    weight = np.cumsum((law.below + law.above)[::-1])
    stop = len(weight) - int(np.searchsorted(weight, _TRIMMED))
    if start >= stop:
        return law
    cut = float(law.above[:start].sum() + law.above[stop:].sum()) * (1.0 + 1e-10)
    return LargestSums(law.first + start, law.below[start:stop], law.above[start:stop], law.lost + cut)
