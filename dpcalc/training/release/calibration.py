"""Eight noisy counts that correct the temperature of a classifier: one more thing that a run asks of its records.

A record's score stands for an answer, right or wrong, at one of four sizes: |score|, or for several classes the
distance of the best score from the second. It adds 1 to one of eight counts; of several classes a record of a third
class adds nothing. So it adds a vector of norm at most 1, which depends on that record and on the released weights
alone, and noise of n sigma/L on every count is as private as a step of noisy gradient descent, whose sum of gradients
of norm at most L has noise of n sigma. It is accounted as such a step, after those of the descent (`docs/method.md`).

The weights and the rows are cut, so that their products are sums without rounding errors, in any order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.training.data.bounds import blocks
from dpcalc.training.release.centring import scale_of
from dpcalc.training.rule.calibration import COUNTS, Calibrating
from dpcalc.training.run.checks import lipschitz_of
from dpcalc.training.run.exact_sums import bits_kept, cut, cut_iterate, exponent_of, grid_of, rounded_sum
from dpcalc.training.run.kernel import Source
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.rounding import Rounding

Array = NDArray[np.float64]

_ENDS, _MIDDLES = np.array([0.6, 1.4, 2.6]), np.array([0.3, 1.0, 2.0, 3.6])
"""Between the four sizes of a score, and what stands for each: larger scores are rare, and right."""

_PRIOR, _NOISE_PRIOR = 4.0, 64.0
"""What (ln temperature)^2 costs, in records: a few, and more where noise of z on a count makes n records say less.

The squared error of the estimate is some 100 z^2/n^2: 64 z^2/n trusts it as far as temperatures differ between tables.
"""

_LEAST, _MOST, _PLACES = -0.2, 2.0, 221
"""How far the logarithm of the temperature may be moved, and at how many places the fit is compared.

It is hardly lowered: where nearly all answers are right, the largest scores lie far above 3.6, and no count says how
far.
"""

_PIECE = 1 << 16  # entries looked at together
_CELLS = 2.0**52  # of a grid


def temperature(
    how: Calibrating, plan: Plan, problem: Problem, weights: Array, source: Source, rounding: Rounding | None
) -> float:
    """Return what scores are to be divided by; where records are counted, by the last noisy sum of an accounted run.

    Args:
        how: the public temperature, and whether records are counted.
        plan: of the descent.
        problem: the training records, within the bounds that are accounted.
        weights: as released, shape (d,) or (d K,).
        source: of the noise.
        rounding: of noisy sums.

    Raises:
        NotApplicable: iterates stay hidden.
        SpecError: the noise is too small for its grid.
    """
    if not how.counts:
        return how.temperature
    if rounding is None or rounding.grid is not None:
        raise NotApplicable("records are counted only where every noisy sum may be public", "give --clip")
    [batch] = plan.batches
    scale = scale_of(float(np.max(plan.scale)), lipschitz_of(plan, problem.loss), batch.divisor, 1.0)
    records = len(problem.labels)
    if not records / grid_of(scale) < _CELLS:
        raise SpecError(f"noise of scale {scale:g} on counts of records is lost in rounding", "use more noise")
    counts = answers(problem, weights, how.temperature).reshape(-1)
    noisy = rounded_sum(counts, source.generator.standard_normal(COUNTS), scale)
    return how.temperature * corrected(noisy.reshape(2, -1), scale, records)


def answers(problem: Problem, weights: Array, temperature: float) -> Array:
    """Return the numbers of wrong and of right answers at every size of the score, shape (2, 4), exactly."""
    (rows, columns), kept = problem.features.shape, bits_kept(len(problem.labels))
    unit = math.ldexp(1.0, exponent_of(float(problem.loss.feature_bound)) - kept)
    w = cut_iterate(weights, kept).reshape(columns, -1)
    counts = np.zeros(COUNTS)
    for some in blocks(rows, columns, _PIECE):
        scores, labels = cut(problem.features[some], unit) @ w, problem.labels[some]
        right, wrong, gap = _pairs(scores, labels) if problem.loss.classified else _signs(scores[:, 0], labels)
        size = np.searchsorted(_ENDS, gap / temperature, side="right")  # what is no number is the largest
        counts += np.bincount((size + len(_MIDDLES) * right)[right | wrong], minlength=COUNTS)
    return counts.reshape(2, -1)


Answers = tuple[NDArray[np.bool_], NDArray[np.bool_], Array]
"""Which answers are right, which are wrong, and the sizes of the scores: shape (m,) each."""


def _signs(scores: Array, labels: Array) -> Answers:
    right = (scores > 0.0) == (labels > 0.0)
    return right, ~right, np.abs(scores)


def _pairs(scores: Array, labels: Array) -> Answers:
    """Return whether the best class is right, or else the second; scores of shape (m, K) are overwritten."""
    places, own = np.arange(len(labels)), labels.astype(np.intp)
    best = scores.argmax(axis=1)
    top = scores[places, best]
    scores[places, best] = -np.inf
    second = scores.argmax(axis=1)
    return own == best, own == second, top - scores[places, second]


def corrected(counts: Array, scale: float, records: int) -> float:
    """Return what the temperature is to be multiplied by: the best fit of log-odds to noisy counts, with a prior.

    Args:
        counts: of wrong and right answers, shape (2, 4).
        scale: of the noise on each.
        records: n.
    """
    wrong, right = np.maximum(counts, 0.0)
    moves = np.linspace(_LEAST, _MOST, _PLACES)
    odds = np.exp(-moves)[:, np.newaxis] * _MIDDLES
    loss = (np.logaddexp(0.0, -odds) * right + np.logaddexp(0.0, odds) * wrong).sum(axis=1)
    loss += (_PRIOR + _NOISE_PRIOR * scale * scale / records) * moves * moves
    return math.exp(float(moves[loss.argmin()]))
