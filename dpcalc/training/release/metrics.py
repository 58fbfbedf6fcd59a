"""Metrics of a model on records, with or without noise, and the best loss in the domain.

`released` and `of_problem` add exact integer noise to a few sums: their metrics are differentially private with respect
to these records, with an epsilon of their own and delta = 0, under replace-one adjacency. All other metrics here are
computed without noise, and no guarantee covers them.
"""

from __future__ import annotations

import functools
import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.model.loss import Loss, PowerLoss
from dpcalc.model.quantities import LossName
from dpcalc.numerics import clopper_pearson
from dpcalc.numerics.floats import down
from dpcalc.training.data.progress import Progress
from dpcalc.training.release import classes, discrete_laplace
from dpcalc.training.release.classes import Classified
from dpcalc.training.release.prediction import Predictor
from dpcalc.training.run.kernel import class_metrics
from dpcalc.training.run.problem import Problem, shift_of

Array = NDArray[np.float64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BLOCK = 1 << 17
_STEEPEST, _NEAR = 1e-11, 1e-9  # tolerances of the optimiser's gradient, and of the multiplier that makes |w| = R
_CORNER = 1e-3  # the corner of a piecewise linear loss is smoothed over this width for the optimiser


class Optimum(NamedTuple):
    """The non-private minimiser of the mean loss over the domain.

    Attributes:
        weights: shape (d,), in the domain.
        loss: the mean loss F there.
        gap: an upper bound on F(weights) - min F, by convexity and up to rounding; None where there is none: the domain
            is the whole space and the loss is not strongly convex.
    """

    weights: Array
    loss: float
    gap: float | None


def measure(weights: Array, problem: Problem, progress: Progress | None = None) -> dict[str, float]:
    """Return the mean loss, and accuracy or RMSE and R2, of weights of shape (d,)."""
    row = measure_all(weights[np.newaxis], problem, progress)
    return {name: float(values[0]) for name, values in row.items()}


def measure_all(weights: Array, problem: Problem, progress: Progress | None = None) -> dict[str, Array]:
    """Return the metrics of every row of weights, shape (replicas, d), as arrays of shape (replicas,).

    ``loss``, with the regulariser; ``accuracy`` for hinge and logistic (a score of 0 counts as -1) and for softmax;
    else ``rmse``, and ``r2`` (nan where all labels are the same), both on the scale of the labels as trained.
    """
    loss, (n, columns), replicas = problem.loss, problem.shape, len(weights)
    total, right = np.zeros(replicas), np.zeros(replicas)
    shift = 0.0 if loss.name == LossName.HINGE else shift_of(problem.weights, several=loss.classified)
    step = max(1, _BLOCK // max(replicas, columns))
    for number, (x, y) in enumerate(problem.pieces(step), start=1):
        if loss.classified:
            for sums, more in zip((total, right), class_metrics(x, y, loss, weights, shift), strict=True):
                sums += more
        else:
            z, labels = x @ weights.T, y[:, np.newaxis]
            total += loss.data_values(z - shift, labels).sum(axis=0)
            right += ((z > 0.0) == (labels > 0.0) if loss.signed else np.square(labels - z)).sum(axis=0)
        if progress is not None:
            progress(min(n, number * step), n)
    mean = total / n + 0.5 * loss.regularisation * np.square(weights).sum(axis=1)
    if loss.signed or loss.classified:
        return {"loss": mean, "accuracy": right / n}
    spread = float(np.var(problem.labels))
    r2 = 1.0 - right / n / spread if spread > 0.0 else np.full(replicas, np.nan)
    return {"loss": mean, "rmse": np.sqrt(right / n), "r2": r2}


def quantiles(values: Array) -> list[float]:
    """Return the quantiles `QUANTILES` of a metric over replicas."""
    return [float(q) for q in np.quantile(values, QUANTILES)]


def minimise(problem: Problem, radius: float | None) -> Optimum:
    """Return the minimiser of the mean loss over the ball of this radius about 0, or over the whole space.

    L-BFGS (scipy) minimises the loss. If the minimiser lies outside the ball, a multiple of |w|^2 is added so that
    |w| = R. Losses with a corner are smoothed over a width of 1e-3. ``gap`` holds whatever the optimiser did: for
    convex F and a gradient g at w, F(w) - min F <= <g, w> + R |g|.

    Args:
        problem: data and loss.
        radius: R > 0, or None.
    """
    mean, corner = _objective(problem)
    try:
        w = _candidate(mean, radius, np.zeros(problem.shape[1]))
    except (ArithmeticError, ValueError, RuntimeError):  # features near the largest or smallest doubles
        w = np.zeros(problem.shape[1])
    gradient = mean(w)[1]
    weight = problem.loss.regularisation
    gaps = []
    if radius is not None:
        gaps.append(float(gradient @ w) + radius * _norm(gradient))
    if weight:
        gaps.append(_norm(gradient) ** 2 / (2.0 * weight))
    loss = float(measure_all(w[np.newaxis], problem)["loss"][0])
    return Optimum(w, loss, max(0.0, min(gaps)) + corner if gaps else None)


Mean = Callable[[Array], tuple[float, Array]]


def _candidate(mean: Mean, radius: float | None, zero: Array) -> Array:
    """Return the optimiser's result, in the domain.

    Raises:
        ValueError: the result is not finite; scipy raises other errors as well.
    """
    w = _solved(mean, 0.0, zero)
    if radius is not None and _norm(w) > radius:
        w = _on_sphere(mean, radius, w, _norm(mean(zero)[1]) / radius)
        w *= min(1.0, radius / _norm(w))
    if not np.isfinite(w).all():
        raise ValueError("no minimiser was found")
    return w


def _objective(problem: Problem) -> tuple[Mean, float]:
    """Return the mean loss with its gradient, and by how much smoothing may lower it."""
    loss, (n, columns) = problem.loss, problem.shape
    parts: Callable[[Array, Array], tuple[Array, Array]]
    if isinstance(loss, PowerLoss) and loss.power == 1.0:
        parts, lowered = functools.partial(_rounded, loss), 0.5 * _CORNER
    else:
        parts, lowered = functools.partial(_exact, loss), 0.0
    step, shape = max(1, _BLOCK // columns), (columns // loss.scores, -1) if loss.classified else (-1,)

    def mean(w: Array) -> tuple[float, Array]:
        value, gradient = 0.0, np.zeros_like(w)
        for rows, labels in problem.pieces(step):
            values, slopes = parts(rows @ w.reshape(shape), labels)
            value += float(values.sum())
            gradient += (slopes.T @ rows).T.reshape(-1)
        weight = loss.regularisation
        return value / n + 0.5 * weight * float(w @ w), gradient / n + weight * w

    return mean, lowered


def _exact(loss: Loss, z: Array, labels: Array) -> tuple[Array, Array]:
    """Return the values of the data part and its derivatives in z."""
    return loss.data_values(z, labels), loss.data_slopes(z, labels)


def _rounded(loss: PowerLoss, z: Array, labels: Array) -> tuple[Array, Array]:
    """Smooth `_exact`: max(0, u) becomes u^2/(2k) on [0, k] and u - k/2 above, which is lower by at most k/2."""
    excess, direction = loss.excess(z, labels)
    inner = np.clip(excess, 0.0, _CORNER)
    return inner * (np.maximum(excess, 0.0) - 0.5 * inner) / _CORNER, -direction * inner / _CORNER


def _solved(mean: Mean, weight: float, start: Array) -> Array:
    """Return the minimiser of the mean loss plus (weight/2) |w|^2."""
    from scipy.optimize import minimize

    def objective(w: Array) -> tuple[float, Array]:
        value, gradient = mean(w)
        gradient = gradient + weight * w
        return value + 0.5 * weight * float(w @ w), gradient

    options = {"maxiter": 2000, "maxfun": 4000, "gtol": _STEEPEST, "ftol": 1e-16, "maxcor": 20}
    minimiser: Array = minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
    return minimiser


def _on_sphere(mean: Mean, radius: float, start: Array, largest: float) -> Array:
    """Return a minimiser that lies on the sphere |w| = R, by root finding in the multiplier of |w|^2."""
    from scipy.optimize import brentq

    last = [start]

    def excess(weight: float) -> float:
        last[0] = _solved(mean, weight, last[0])
        return 1.0 / radius - 1.0 / max(_norm(last[0]), 1e-300)

    # At the optimum, weight times R is the norm of the gradient, so the doubling ends. The margin keeps the sign when
    # the optimiser runs again from another start.
    while excess(largest) * radius > -1e-6:
        largest *= 2.0
        if not 0.0 < largest < math.inf:
            raise ValueError("no multiplier keeps the weights in the ball")
    weight = brentq(lambda weight: -excess(weight) if weight else -1.0, 0.0, largest, xtol=_NEAR * largest, rtol=_NEAR)
    return _solved(mean, float(weight), last[0])


def _norm(w: Array) -> float:
    return math.sqrt(float(w @ w))


CONFIDENCE = 0.95
_FAILURE = down(0.05)  # the rest; 1.0 - CONFIDENCE would be more
LEVELS = 1 << 20
"""The grid of errors: each is rounded down to a multiple of its bound over this number."""
_LEAST, _MOST = 1e-6, 1e3


class Interval(NamedTuple):
    """An estimate, and an interval that contains the true value with probability `CONFIDENCE` over the noise."""

    value: float
    low: float
    high: float


class Measured(NamedTuple):
    """Metrics that were computed without noise.

    Attributes:
        records: the number of test rows.
        metrics: name -> value; None where it is not defined, or too large for a double.
        unreadable: how many targets of a regression are not finite; the middle of the range replaces them.
        classified: the predictions for the rows of each class; None for a regression.
    """

    records: int
    metrics: dict[str, float | None]
    unreadable: int = 0
    classified: Classified | None = None


class Released(NamedTuple):
    """Metrics that were computed with noise.

    Attributes:
        records: the number of test rows, which is public.
        epsilon: of the release, with delta = 0, replace-one.
        metrics: name -> estimate.
        population: bounds on the accuracy in the population, of which the test rows are an independent sample; they
            hold with probability `CONFIDENCE` over the sample and the noise. None for a regression.
        noise_std: of the noise on a sum, in rows, or for errors in steps of their grid.
        error_bound: errors were clipped to it; None for a classification.
    """

    records: int
    epsilon: float
    metrics: dict[str, Interval]
    population: tuple[float, float] | None
    noise_std: float
    error_bound: float | None


def measured(predicting: Predictor, source: Any) -> Measured:
    """Return metrics on test rows, without noise.

    Two classes: ``accuracy``, ``auc`` (None where one class is missing), and for a logistic model ``log_loss`` and
    ``calibration_error`` (expected, of ten equal cells). Several classes: the same without ``auc``. Regression:
    ``rmse``, ``mae`` and ``r2`` (None where all targets are equal), in the target's own units. Cells are read as in
    training, but targets are not clipped.

    Args:
        predicting: the model.
        source: as of `dpcalc.training.release.model.Model.scored`.

    Raises:
        SpecError: the rows cannot be read, or there are none.
    """
    unreadable, classified = 0, None
    with np.errstate(all="ignore"):  # test rows may be far outside the range of the training rows
        parts = list(predicting.model.scored(source, target=True))
        if not parts:
            raise SpecError("there are no test rows", "add some")
        scores, targets = (np.concatenate(part) for part in zip(*parts, strict=True))
        if predicting.classes is None:
            unreadable = int(np.count_nonzero(~np.isfinite(targets)))
            readable = _readable(targets, predicting)
            errors, spread = readable - predicting.targets(scores), float(np.var(readable))
            square = float(np.mean(np.square(errors)))
            metrics = {
                "rmse": math.sqrt(square), "mae": float(np.mean(np.abs(errors))),
                "r2": 1.0 - square / spread if spread > 0.0 else None,
            }  # fmt: skip
        else:
            metrics, classified = _of_classes(scores, targets, predicting)
    defined = {name: value if value is not None and math.isfinite(value) else None for name, value in metrics.items()}
    return Measured(len(scores), defined, unreadable, classified)


def _readable(targets: Array, predicting: Predictor) -> Array:
    """Return targets; the middle of the range replaces those that are not finite."""
    return np.where(np.isfinite(targets), targets, predicting.middle)


def _of_classes(
    scores: Array, targets: Array, predicting: Predictor
) -> tuple[dict[str, float | None], Classified]:  # fmt: skip
    assert predicting.classes is not None
    places, positive = predicting.places(scores), targets > 0.0
    actual = targets.astype(np.intp) if predicting.several else positive.astype(np.intp)
    right = places == actual
    metrics: dict[str, float | None] = {"accuracy": float(np.mean(right))}
    chances = calibrated = curve = None
    if predicting.several:
        log_odds = predicting.log_odds(scores)
        losses = np.logaddexp.reduce(log_odds, axis=1) - np.take_along_axis(log_odds, actual[:, np.newaxis], 1)[:, 0]
        chances, happened = predicting.chances(scores), right
    else:
        metrics["auc"], curve = _auc(scores, positive), classes.roc(scores, positive)
        log_odds = predicting.log_odds(scores)
        losses = np.logaddexp(0.0, np.where(positive, -log_odds, log_odds))
        chances, happened = predicting.chances(scores), positive
    if predicting.probable:
        metrics["log_loss"], calibrated = float(np.mean(losses)), classes.calibration(chances, happened)
        metrics["calibration_error"] = None if calibrated is None else calibrated.error
    return metrics, Classified(classes.confusion(actual, places, len(predicting.classes)), calibrated, curve)


def _auc(scores: Array, positive: NDArray[np.bool_]) -> float | None:
    """Return how often a positive row scores above a negative one, ties counted as half."""
    count = int(np.count_nonzero(positive))
    if count in (0, len(scores)):
        return None
    ordered = np.sort(scores)
    ranks = 0.5 * (np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right") + 1)
    above = float(ranks[positive].sum()) - 0.5 * count * (count + 1)
    return above / count / (len(scores) - count)


# --- metrics with noise -----------------------------------------------------------------------------------------------


class Sums(NamedTuple):
    """Sums over test rows, as integers.

    A row adds from 0 to ``most`` to each. What it adds depends on that row and its place alone, so replacing a row
    changes every sum by at most ``most``.
    """

    records: int
    sums: tuple[int, ...]
    most: int


def released(
    predicting: Predictor,
    source: Any,
    epsilon: float,
    *,
    error_bound: float | None = None,
    below: discrete_laplace.Below | None = None,
    charge: Callable[[], None] = lambda: None,
) -> Released:
    """Return metrics on test rows that are epsilon-differentially private with respect to these rows.

    The number of rows is public. For a classification, the sum is the number of correct predictions. For a regression,
    it is the sums of absolute and of squared errors, each clipped to the bound and rounded down to a grid. Every sum is
    an integer with discrete Laplace noise.

    Args:
        predicting: the model.
        source: as of `dpcalc.training.release.model.Model.scored`.
        epsilon: of the release as a whole, from 1e-6 to 1000.
        error_bound: errors of a regression are clipped to it; by default the width of the target's range in training.
        below: the source of randomness; by default that of the operating system.
        charge: called before noise is drawn; if it raises, nothing is released.

    Raises:
        SpecError: the rows cannot be read, there are none, or a number is out of range.
    """
    refuse_epsilon(epsilon)
    bound = _error_bound(predicting, error_bound)
    sums = counted(predicting, source, bound)
    charge()
    return _noisy(sums, epsilon, bound, secrets.randbelow if below is None else below)


def of_problem(
    weights: Array, problem: Problem, epsilon: float, width: float, below: discrete_laplace.Below
) -> Released:
    """Return metrics of weights on records, as `released` does for a model; labels are within their bound.

    Args:
        weights: shape (d,).
        problem: the records and the loss; errors of a regression are clipped to twice its label bound.
        epsilon: of the release.
        width: of the target's range, in its own units; it corresponds to twice the label bound.
        below: the source of randomness.
    """
    sums = sums_of(weights, problem)
    return _noisy(sums, epsilon, None if sums.most == 1 else width, below)


def sums_of(weights: Array, problem: Problem) -> Sums:
    """Return the number of correct predictions, or the sums of errors, clipped to twice the label bound."""
    records, loss = len(problem.labels), problem.loss
    if loss.signed or loss.classified:
        right = round(float(measure_all(weights[np.newaxis], problem)["accuracy"][0]) * records)
        return Sums(records, (right,), 1)
    totals = [0, 0]
    for x, y in problem.pieces(_BLOCK):
        _add_errors(totals, np.abs(x @ weights - y) / (2.0 * float(loss.label_bound or 1.0)))
    return Sums(records, tuple(totals), LEVELS)


def refuse_epsilon(epsilon: float) -> None:
    """Refuse an epsilon of a release that is out of range.

    Raises:
        SpecError: it is.
    """
    if not _LEAST <= epsilon <= _MOST:
        raise SpecError(f"epsilon is {epsilon:g}; it must be from {_LEAST:g} to {_MOST:g}", "for example --epsilon 0.5")


def _noisy(sums: Sums, epsilon: float, bound: float | None, below: discrete_laplace.Below) -> Released:
    """Add noise to the sums; ``bound`` is that of errors, None for a classification."""
    # The decimal that was typed may be a little less than its double.
    rate = Fraction(down(epsilon, 1.0)) / (len(sums.sums) * sums.most)
    noisy = [total + discrete_laplace.draw(rate, below) for total in sums.sums]
    deviation = discrete_laplace.deviation(rate)
    if bound is None:
        accuracy, population = _accuracy(noisy[0], sums.records, rate)
        return Released(sums.records, epsilon, {"accuracy": accuracy}, population, deviation, None)
    return Released(sums.records, epsilon, _errors(noisy, sums.records, rate, bound), None, deviation, bound)


def _error_bound(predicting: Predictor, given: float | None) -> float | None:
    """Return the bound that errors are clipped to; None for a classification."""
    if predicting.classes is not None:
        if given is not None:
            raise SpecError("the model predicts classes, and has no errors to bound", "leave out --error-bound")
        return None
    bound = predicting.width if given is None else given
    if not 1e-290 <= bound <= 1e290:
        raise SpecError(f"the bound on errors is {bound:g}", "give --error-bound, a positive number")
    return bound


def counted(predicting: Predictor, source: Any, bound: float | None) -> Sums:
    """Return the number of correct predictions, or the sums of absolute and squared errors, clipped to a bound."""
    records, most = 0, 1 if bound is None else LEVELS
    totals = [0] if bound is None else [0, 0]
    with np.errstate(all="ignore"):
        for scores, targets in predicting.model.scored(source, target=True):
            records += len(scores)
            if bound is None:
                totals[0] += int(np.count_nonzero(predicting.right(scores, targets)))
                continue
            _add_errors(totals, np.abs(_readable(targets, predicting) - predicting.targets(scores)) / bound)
    if not records:
        raise SpecError("there are no test rows", "add some")
    return Sums(records, tuple(totals), most)


def _add_errors(totals: list[int], errors: Array) -> None:
    """Add errors, in units of their bound, and their squares to the totals: clipped to 1, rounded down to the grid."""
    shares = np.where(errors < 1.0, errors, 1.0)  # nan becomes 1
    for place, share in enumerate((shares, np.square(shares))):
        totals[place] += int(np.floor(share * LEVELS).astype(np.int64).sum())


def _accuracy(noisy: int, records: int, rate: Fraction) -> tuple[Interval, tuple[float, float]]:
    """Return the accuracy on the rows, and an interval for the accuracy in the population that they are a sample of.

    The second takes half of the failure probability for an interval of the count, and half for the intervals of Clopper
    and Pearson at its ends.
    """
    count = min(max(noisy, 0), records)
    margin, wide = (discrete_laplace.margin(rate, share) for share in (_FAILURE, 0.5 * _FAILURE))
    low, high = max(0, noisy - margin), min(records, noisy + margin)
    least, most = (min(max(end, 0), records) for end in (noisy - wide, noisy + wide))
    interval = Interval(count / records, min(low, records) / records, max(high, 0) / records)
    share = 0.25 * _FAILURE
    return interval, (clopper_pearson.lower(least, records, share), clopper_pearson.upper(most, records, share))


def _errors(noisy: list[int], records: int, rate: Fraction, bound: float) -> dict[str, Interval]:
    """Return the root mean square and the mean of errors clipped to the bound; both intervals hold together."""
    margin = discrete_laplace.margin(rate, 0.5 * _FAILURE)

    def share(total: int) -> float:
        return min(max(total / records / LEVELS, 0.0), 1.0)

    mean, square = noisy
    # The term of each row was rounded down, by less than 1.
    mae = [bound * share(total) for total in (mean, mean - margin, mean + margin + records)]
    rmse = [bound * math.sqrt(share(total)) for total in (square, square - margin, square + margin + records)]
    return {"rmse": Interval(*rmse), "mae": Interval(*mae)}
