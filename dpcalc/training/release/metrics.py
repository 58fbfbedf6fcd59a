"""How good a model is on some records, and the best that any model of the domain can do.

Every number here is computed from the records without noise: no guarantee covers it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.model.loss import Loss, PowerLoss
from dpcalc.training.data.progress import Progress
from dpcalc.training.run.problem import AnyProblem
from dpcalc.training.run.softmax import class_metrics

Array = NDArray[np.float64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BLOCK = 1 << 17
_STEEPEST, _NEAR = 1e-11, 1e-9  # of the gradient where the optimiser ends, and of the norm of its outcome
_CORNER = 1e-3  # the width over which the corner of a piecewise linear loss is rounded off for the optimiser


class Optimum(NamedTuple):
    """The non-private minimiser of the mean loss over the domain.

    Attributes:
        weights: shape (d,), in the domain.
        loss: the mean loss F there.
        gap: F(weights) - min F is at most this, by convexity and up to rounding; None where the domain is the whole
            space and the loss is not strongly convex, so that nothing bounds it.
    """

    weights: Array
    loss: float
    gap: float | None


def measure(weights: Array, problem: AnyProblem, progress: Progress | None = None) -> dict[str, float]:
    """Return the mean loss, and accuracy or RMSE and R2, of weights of shape (d,)."""
    row = measure_all(weights[np.newaxis], problem, progress)
    return {name: float(values[0]) for name, values in row.items()}


def measure_all(weights: Array, problem: AnyProblem, progress: Progress | None = None) -> dict[str, Array]:
    """Return the metrics of every row of weights, shape (replicas, d), as arrays of shape (replicas,).

    ``loss``, with the regulariser; ``accuracy`` for hinge and logistic (a score of 0 counts as -1) and for softmax;
    else ``rmse``, and ``r2`` (nan where all labels are the same), both on the scale of the labels as trained.
    """
    loss, (n, columns), replicas = problem.loss, problem.shape, len(weights)
    total, right = np.zeros(replicas), np.zeros(replicas)
    step = max(1, _BLOCK // max(replicas, columns))
    for number, (x, y) in enumerate(problem.pieces(step), start=1):
        if loss.classified:
            for sums, more in zip((total, right), class_metrics(x, y, loss, weights), strict=True):
                sums += more
        else:
            z, labels = x @ weights.T, y[:, np.newaxis]
            total += loss.data_values(z, labels).sum(axis=0)
            right += ((z > 0.0) == (labels > 0.0) if loss.signed else np.square(labels - z)).sum(axis=0)
        if progress is not None:
            progress(min(n, number * step), n)
    mean = total / n + 0.5 * loss.regularisation * np.square(weights).sum(axis=1)
    if loss.signed or loss.classified:
        return {"loss": mean, "accuracy": right / n}
    spread = problem.label_variance
    r2 = 1.0 - right / n / spread if spread > 0.0 else np.full(replicas, np.nan)
    return {"loss": mean, "rmse": np.sqrt(right / n), "r2": r2}


def quantiles(values: Array) -> list[float]:
    """Return the quantiles `QUANTILES` of a metric over replicas."""
    return [float(q) for q in np.quantile(values, QUANTILES)]


def minimise(problem: AnyProblem, radius: float | None) -> Optimum:
    """Return the minimiser of the mean loss over the ball of this radius about 0, or over the whole space.

    L-BFGS (scipy) on the loss plus a multiple of |w|^2 chosen so that |w| = R, where the ball decides. Losses with a
    corner are rounded off over a width of 1e-3. ``gap`` certifies the outcome whatever the optimiser did: for convex F
    and a gradient g at w, F(w) - min F <= <g, w> + R |g|.

    Args:
        problem: data and loss.
        radius: R > 0, or None.
    """
    mean, corner = _objective(problem)
    try:
        w = _candidate(mean, radius, np.zeros(problem.shape[1]))
    except (ArithmeticError, ValueError, RuntimeError):  # on records at the edge of the range of doubles
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
    """Return the point of the domain at which the optimiser ends.

    Raises:
        ValueError: the point is not finite; scipy raises other errors as well.
    """
    w = _solved(mean, 0.0, zero)
    if radius is not None and _norm(w) > radius:
        w = _on_sphere(mean, radius, w, _norm(mean(zero)[1]) / radius)
        w *= min(1.0, radius / _norm(w))
    if not np.isfinite(w).all():
        raise ValueError("no minimiser was found")
    return w


def _objective(problem: AnyProblem) -> tuple[Mean, float]:
    """Return the mean loss with its gradient, and how much lower it may be where corners are rounded off."""
    loss, (n, columns) = problem.loss, problem.shape
    parts: Callable[[Array, Array], tuple[Array, Array]]
    if isinstance(loss, PowerLoss) and loss.power == 1.0:
        parts, lowered = functools.partial(_rounded, loss), 0.5 * _CORNER
    else:
        parts, lowered = functools.partial(_exact, loss), 0.0
    step, shape = max(1, _BLOCK // columns), (columns // loss.scores, -1) if loss.classified else (-1,)

    def mean(w: Array) -> tuple[float, Array]:
        value, gradient = 0.0, np.zeros_like(w)
        for rows, labels in problem.each([slice(first, first + step) for first in range(0, n, step)]):
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
    """As `_exact`, with max(0, u) replaced by u^2/(2k) on [0, k] and u - k/2 above: it is lower by at most k/2."""
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
    """Return the minimiser over the ball where it lies on the sphere, by the multiplier that makes |w| = R."""
    from scipy.optimize import brentq

    last = [start]

    def excess(weight: float) -> float:
        last[0] = _solved(mean, weight, last[0])
        return 1.0 / radius - 1.0 / max(_norm(last[0]), 1e-300)

    # At the optimum weight R = |gradient|, which nowhere in the ball exceeds what ``largest`` grows to. The margin
    # keeps the sign where the optimiser is run again from another start.
    while excess(largest) * radius > -1e-6:
        largest *= 2.0
        if not 0.0 < largest < math.inf:
            raise ValueError("no multiplier keeps the weights in the ball")
    weight = brentq(lambda weight: -excess(weight) if weight else -1.0, 0.0, largest, xtol=_NEAR * largest, rtol=_NEAR)
    return _solved(mean, float(weight), last[0])


def _norm(w: Array) -> float:
    return math.sqrt(float(w @ w))
