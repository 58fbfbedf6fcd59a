"""How well the largest of the sums of an epoch tells two normal laws apart, over many epochs; rounded down.

In an epoch of t steps one sum, at a random place, has mean `high` under P and mean `low` under Q; the others have mean
0, and all have the standard deviation `spread`. What an observer makes of an epoch is a score: about the logarithm of
the likelihood ratio of the cell that the largest sum falls into, as a multiple of a step h. The scores of the epochs
are added, and every event "the total is at least a" gives delta >= P(A) - e^eps Q(A).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.normal_arrays import log_upper_tail

MOST_EPOCHS = 4096
"""Of more epochs, only so many are looked at."""
NARROWEST = 0.08
"""A smaller standard deviation is not looked at: numbers would be below the smallest double."""

WIDEST = 1e4
"""With a larger standard deviation next to nothing is told, and rounding would hide it."""

MOST_APART = 80.0
"""(high - low)/spread times the root of the epochs, at most: past it scores are too coarse for their sums."""

_CELLS = 4096  # a row of a table: the excess falls with the square of their width
_POINTS = 4000  # about so many total scores are kept
_TRIMMED = 1e-26  # weight cut off at each end
_REACH = 21.0  # standard deviations from one end to the other, beyond which next to nothing is left
_ERROR = 4e-12  # relative error of ln of a distribution function above 1e-300, several times over


class Scores(NamedTuple):
    """The law of a total score: P(first + i) >= below[i], and Q(first + i) <= above[i] e^(-h (first + i)).

    Attributes:
        first: the lowest score kept.
        below, above: weights under P, and under Q but for the factor; relative to exact ones, rounded outwards.
        lost: an upper bound on the sum of weights like ``above`` at scores that are not kept.
    """

    first: int
    below: Array
    above: Array
    lost: float


@functools.lru_cache(maxsize=16)
def total_scores(bins: int, spread: float, high: float, low: float, epochs: int) -> tuple[Scores, float]:
    """Return the law of the total score of some epochs, and the step h.

    Args:
        bins: t, 1 to 1e15.
        spread: `NARROWEST` to `WIDEST`.
        high, low: high > low >= 0, at most 2.
        epochs: 1 to `MOST_EPOCHS`, such that sqrt(epochs) (high - low)/spread <= `MOST_APART`.
    """
    single, step = _single(bins, spread, high, low, epochs)
    total = None
    while True:
        if epochs % 2:
            total = single if total is None else _add(total, single)
        epochs //= 2
        if not epochs:
            assert total is not None
            return total, step
        single = _add(single, single)


def log_delta_down(scores: Scores, step: float, epsilon: float) -> float:
    """Return ln of a lower bound on delta, -inf where none above 1e-250 is found.

    Args:
        scores, step: as `total_scores` returns them.
        epsilon: >= 0, finite.
    """
    excess = epsilon - step * (scores.first + np.arange(len(scores.below)))
    kept = excess < 40.0  # events with lower scores are worse ones
    if not kept.any():
        return -math.inf
    factor = np.exp(excess[kept] + 64.0 * UNIT * (1.0 + epsilon))[::-1]
    rounding = 2.0 * UNIT * (len(factor) + 8.0)
    p = np.cumsum(scores.below[kept][::-1]) * (1.0 - rounding)
    q = np.cumsum(factor * scores.above[kept][::-1]) * (1.0 + rounding)
    gain = float((p - q - factor * scores.lost).max())
    return math.log(gain) - 1e-12 if gain > 1e-250 else -math.inf


def _single(bins: int, spread: float, high: float, low: float, epochs: int) -> tuple[Scores, float]:
    """Return the law of the score of one epoch, and the step h that suits so many."""
    top = high + spread * (10.0 + math.sqrt(2.0 * math.log(bins)))
    edges = np.linspace(-10.0 * spread, top, _CELLS + 1)[1:-1]
    below, error = _masses(edges, bins, spread, high)
    below = np.maximum(0.0, below - error)
    above, error = _masses(edges, bins, spread, low)
    above = above + error + 1e-300
    positive = below > 0.0
    ratio = np.log(below[positive]) - np.log(above[positive])
    deviation = math.sqrt(float(below[positive] @ (ratio - float(below[positive] @ ratio)) ** 2))
    step = max(_REACH * math.sqrt(epochs) * deviation, 0.5 * float(ratio.max() - ratio.min())) / _POINTS
    score = np.full(len(positive), round(float(ratio.min()) / step))  # any score will do for what is not told
    score[positive] = np.rint(ratio / step)
    first = int(score.min())
    counted = (score - first).astype(np.int64)
    p, q = (np.bincount(counted, masses).astype(float) for masses in (below, above))
    weight: Array = q * np.exp(step * (first + np.arange(len(q))))
    rounding = 2.0 * UNIT * (_CELLS + 64.0 + 8.0 * float(np.abs(ratio).max()))
    return _trim(Scores(first, p * (1.0 - rounding), weight * (1.0 + rounding), 0.0)), step


def _masses(edges: Array, bins: int, spread: float, mean: float) -> tuple[Array, Array]:
    """Return the probabilities of the cells of the largest sum between edges, and bounds on their errors."""
    log_f = (bins - 1.0) * log_upper_tail(-edges / spread) + log_upper_tail((mean - edges) / spread)
    log_f = np.concatenate([[-np.inf], log_f, [0.0]])
    f, g = np.exp(log_f), -np.expm1(log_f)
    with np.errstate(invalid="ignore"):
        error_f = np.where(f > 0.0, f * np.abs(log_f), 0.0) * _ERROR + 8.0 * UNIT * f
    error_g = g * (_ERROR + 8.0 * UNIT)
    lower = f[1:] <= 0.5
    masses = np.where(lower, f[1:] - f[:-1], g[:-1] - g[1:])
    errors = np.where(lower, error_f[1:] + error_f[:-1], error_g[:-1] + error_g[1:])
    return np.maximum(0.0, masses), errors


def _add(a: Scores, b: Scores) -> Scores:
    """Return the law of the sum of two scores."""
    rounding = 4.0 * UNIT * (min(len(a.below), len(b.below)) + 8.0)
    most = [float(x.above.sum()) * (1.0 + 1e-10) + x.lost for x in (a, b)]
    lost = (a.lost * most[1] + b.lost * most[0]) * (1.0 + 1e-10) + 1e-280
    below = np.convolve(a.below, b.below) * (1.0 - rounding)
    above = np.convolve(a.above, b.above) * (1.0 + rounding)
    return _trim(Scores(a.first + b.first, below, above, lost))


def _trim(law: Scores) -> Scores:
    """Return a law without scores at either end that have next to no weight."""
    weight = np.cumsum(law.below + law.above)
    start = int(np.searchsorted(weight, _TRIMMED))
    weight = np.cumsum((law.below + law.above)[::-1])
    stop = len(weight) - int(np.searchsorted(weight, _TRIMMED))
    if start >= stop:
        return law
    cut = float(law.above[:start].sum() + law.above[stop:].sum()) * (1.0 + 1e-10)
    return Scores(law.first + start, law.below[start:stop], law.above[start:stop], law.lost + cut)
