"""Noisy counts that correct the temperature of a classifier, and noisy sums for a bias of each of several classes.

The score of a record predicts its label, right or wrong, at one of three sizes: |score|, or for several classes the
distance of the best score from the second. So a record adds 1, or its class's weight below 1, to one of six counts: a
vector of norm at most 1, which depends on that record and on the released weights alone. Noise n sigma/L on every count
is thus as private as a step of noisy gradient descent, whose sum of gradients of norm at most L has noise n sigma. Each
of several such sums is accounted as such a step, after those of the descent (`docs/method.md`), and their mean is used.

For biases a record adds two vectors over classes: 1 for its label, and its predicted probabilities. Both have entries
of at least 0 with a sum of at most 1. So another record in its place moves each sum by at most sqrt 2, and both by 2.

Weights and rows are rounded to a grid, so that scores have no rounding errors, whatever the order of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.training.data.bounds import blocks
from dpcalc.training.release.centring import scale_of
from dpcalc.training.rule.calibration import SIZES, Calibrating
from dpcalc.training.run.checks import lipschitz_of
from dpcalc.training.run.exact_sums import bits_kept, cut, cut_iterate, exponent_of, grid_of, rounded_sum
from dpcalc.training.run.kernel import Source, probabilities
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.rounding import Rounding

Array = NDArray[np.float64]

_ENDS, _MIDDLES = np.array([0.8, 2.2]), np.array([0.4, 1.4, 3.2])
"""The ends between the three sizes of a score, and a typical value for each.

Two sizes cannot show how far the largest scores must move; with more, the noise outweighs the gain.
"""

_USUAL, _SPREAD = 0.15, 0.5
"""Mean and standard deviation of the logarithm of the correction, over data sets."""

_MOVES = np.linspace(-2.0, 3.0, 251)
"""The logarithms of the correction that are compared."""

_BIAS = 0.25
"""The standard deviation of biases over data sets."""

_PIECE = 1 << 16  # entries of a block
_CELLS = 2.0**52  # of a grid


def temperature(
    how: Calibrating, plan: Plan, problem: Problem, weights: Array, source: Source, rounding: Rounding | None
) -> float | None:
    """Return the temperature that scores are divided by, corrected by the last noisy sums of an accounted run, if any.

    Args:
        how: the public temperature, and the number of noisy sums of counts.
        plan: of the descent.
        problem: the training records, within the accounted bounds.
        weights: as released, shape (d,) or (d K,).
        source: of the noise.
        rounding: of noisy sums.

    Returns:
        None where scores stay as they are.

    Raises:
        NotApplicable: iterates stay hidden.
        SpecError: the noise is too small for its grid.
    """
    if how.temperature is None or not how.sums:
        return how.temperature
    scale = _scale(plan, problem, rounding)
    noisy = _noisy(answers(problem, weights, how.temperature), how.sums, scale, source)
    return how.temperature * corrected(noisy, scale / math.sqrt(how.sums), max(2, problem.loss.scores))


def biases(
    temperature: float,
    how: Calibrating,
    plan: Plan,
    problem: Problem,
    weights: Array,
    source: Source,
    rounding: Rounding | None,
) -> Array:
    """Return what is added to the log-odds of several classes, shape (K,), by noisy sums after those of `temperature`.

    Raises:
        NotApplicable, SpecError: as `temperature`.
    """
    scale = _scale(plan, problem, rounding)
    noisy = _noisy(by_class(problem, weights, temperature), how.class_sums, scale, source)
    return shrunk(noisy, scale / math.sqrt(how.class_sums))


def _scale(plan: Plan, problem: Problem, rounding: Rounding | None) -> float:
    """Return the scale of the noise on a sum to which a record adds a vector of norm at most 1."""
    if rounding is None or rounding.grid is not None:
        raise NotApplicable("records are counted only where every noisy sum may be public", "give --clip")
    [batch] = plan.batches
    scale = scale_of(float(np.max(plan.scale)), lipschitz_of(plan, problem.loss), batch.divisor, 1.0)
    if not len(problem.labels) / grid_of(scale) < _CELLS:
        raise SpecError(f"noise of scale {scale:g} on counts of records is lost in rounding", "use more noise")
    return scale


def _noisy(total: Array, sums: int, scale: float, source: Source) -> Array:
    """Return the mean of several noisy sums, each rounded to a grid."""
    noise = source.generator.standard_normal((sums, *total.shape))
    mean: Array = np.mean([rounded_sum(total, draw, scale) for draw in noise], axis=0)
    return mean


def _scored(problem: Problem, weights: Array) -> Iterator[tuple[Array, Array]]:
    """Yield scores without rounding errors, shape (m, 1) or (m, K), and labels, in blocks of records."""
    (rows, columns), kept = problem.features.shape, bits_kept(len(problem.labels))
    unit = math.ldexp(1.0, exponent_of(float(problem.loss.feature_bound)) - kept)
    w = cut_iterate(weights, kept).reshape(columns, -1)
    for some in blocks(rows, columns, _PIECE):
        yield cut(problem.features[some], unit) @ w, problem.labels[some]


def by_class(problem: Problem, weights: Array, temperature: float) -> Array:
    """Return the sums over records of labels and of predicted probabilities, shape (2, K), weighted by class.

    Probabilities are truncated to multiples of a power of two, so sums are exact; those of scores that are not finite
    are 0.
    """
    unit = math.ldexp(1.0, -bits_kept(len(problem.labels)))
    sums = np.zeros((2, problem.loss.scores))
    for scores, labels in _scored(problem, weights):
        chances = np.nan_to_num(probabilities(scores / temperature), copy=False).T
        own = problem.weighed(np.ones(len(labels)), labels)
        sums[0] += np.bincount(problem.places(labels), own, minlength=sums.shape[1])
        sums[1] += cut(problem.weighed(chances, labels), unit).sum(axis=1)
    return sums


def shrunk(sums: Array, scale: float) -> Array:
    """Return the biases of maximum posterior density, with a normal prior, by which labels occur as often as predicted.

    A bias b of a class moves the sum of its probabilities by about b times the mean of its two sums. Their difference,
    less its mean over classes, has 2 (1 - 1/K) times the variance of the noise.

    Args:
        sums: of labels and of predicted probabilities, shape (2, K).
        scale: of the noise on each; at least 1 is assumed.
    """
    missed = sums[0] - sums[1]
    missed -= missed.mean()
    size = np.maximum(sums.mean(axis=0), 0.0)
    variance = 2.0 * (1.0 - 1.0 / len(missed)) * max(scale, 1.0) ** 2
    found: Array = size * missed / (size * size + variance / _BIAS**2)
    return found


def answers(problem: Problem, weights: Array, temperature: float) -> Array:
    """Return counts of wrong and of right predictions at every size of the score, shape (2, 3), weighted by class."""
    counts = np.zeros(2 * SIZES)
    for scores, labels in _scored(problem, weights):
        if problem.loss.classified:
            right, (second, best) = scores.argmax(axis=1) == labels, np.partition(scores, (-2, -1))[:, -2:].T
        else:
            right, best, second = (scores[:, 0] > 0.0) == (labels > 0.0), np.abs(scores[:, 0]), 0.0
        size = np.searchsorted(_ENDS, (best - second) / temperature, side="right")  # nan counts as the largest
        counted = None if problem.weights is None else problem.weights[problem.places(labels)]
        counts += np.bincount(size + SIZES * right, counted, minlength=len(counts))
    return counts.reshape(2, -1)


def corrected(counts: Array, scale: float, classes: int = 2) -> float:
    """Return the factor for the temperature of maximum posterior density, with a log-normal prior.

    The scores of several classes are modelled as 1 apart from the second best on: the larger the factor, the more of
    them compete with the best.

    Let m predictions have one size, each right with probability p. Then p (wrong) - (1 - p) (right) is approximately
    normal with mean 0; its variance is m p (1 - p) plus that of the noise. So counts that are mostly noise say little.
    m is the number that fits both counts best.

    Args:
        counts: of wrong and right predictions, shape (2, 3).
        scale: of the noise on each; at least 1 is assumed.
        classes: the number of classes.
    """
    wrong, right = counts
    steep = np.exp(-_MOVES)[:, np.newaxis]
    others = np.expm1((1 - classes) * steep) / np.expm1(-steep)
    chance = 1.0 / (1.0 + others * np.exp(-steep * _MIDDLES))
    rest = 1.0 - chance
    squares = chance * chance + rest * rest
    answered = np.maximum((chance * right + rest * wrong) / squares, 0.0)
    variance = max(scale, 1.0) ** 2 * squares + answered * chance * rest
    unlikely = ((chance * wrong - rest * right) ** 2 / variance + np.log(variance)).sum(axis=1)
    unlikely += ((_MOVES - _USUAL) / _SPREAD) ** 2
    return math.exp(float(_MOVES[unlikely.argmin()]))
