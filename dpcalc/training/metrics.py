"""What a model is worth on given records, and the best that any model of the domain can do.

Every number here is computed from the records without noise: no guarantee covers it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.losses import POWERED, SIGNED, Loss
from dpcalc.training.problem import Problem

Array = NDArray[np.float64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BLOCK = 1 << 18
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


def measured(weights: Array, problem: Problem) -> dict[str, float]:
    """Return the mean loss, and accuracy or RMSE and R2, of weights of shape (d,)."""
    row = ensemble(weights[np.newaxis], problem)
    return {name: float(values[0]) for name, values in row.items()}


def ensemble(weights: Array, problem: Problem) -> dict[str, Array]:
    """Return the metrics of every row of weights, shape (replicas, d), as arrays of shape (replicas,).

    ``loss``, with the regulariser; ``accuracy`` for hinge and logistic (a score of 0 counts as -1); else ``rmse``, and
    ``r2`` where the labels differ, both on the scale of the labels as trained.
    """
    x, y, loss = problem
    signed = loss.name in SIGNED
    replicas, n = len(weights), len(y)
    total, right = np.zeros(replicas), np.zeros(replicas)
    step = max(1, _BLOCK // max(replicas, x.shape[1]))
    zero = np.zeros(1)
    for first in range(0, n, step):
        rows = slice(first, first + step)
        z = x[rows] @ weights.T
        labels = y[rows, np.newaxis]
        # The loss of a one-column model with weight 1: it depends on the data through <w, x> alone.
        data = _plain(loss).value(zero, np.zeros((1, 1)), labels - z) if not signed else _margins(loss, labels * z)
        total += data.sum(axis=0)
        right += ((z > 0.0) == (labels > 0.0)).sum(axis=0) if signed else np.square(labels - z).sum(axis=0)
    found = {"loss": total / n + 0.5 * loss.regularisation * np.square(weights).sum(axis=1)}
    if signed:
        return {**found, "accuracy": right / n}
    found["rmse"] = np.sqrt(right / n)
    spread = float(np.var(y))
    return {**found, "r2": 1.0 - right / n / spread} if spread > 0.0 else found


def _plain(loss: Loss) -> Loss:
    from dataclasses import replace

    return replace(loss, regularisation=0.0)


def _margins(loss: Loss, margin: Array) -> Array:
    """Return the hinge or logistic loss of margins y <w, x>."""
    if loss.name == "logistic":
        return np.logaddexp(0.0, -margin)
    found: Array = np.maximum(0.0, 1.0 - margin) ** (loss.power or 1.0)
    return found


def quantiles(values: Array) -> list[float]:
    """Return the quantiles `QUANTILES` of a metric over replicas."""
    return [float(q) for q in np.quantile(values, QUANTILES)]


def minimise(problem: Problem, radius: float | None) -> Optimum:
    """Return the minimiser of the mean loss over the ball of this radius about 0, or over the whole space.

    L-BFGS (scipy) on the loss plus a multiple of |w|^2 chosen so that |w| = R, where the ball decides. Losses with a
    corner are rounded off over a width of 1e-3. ``gap`` certifies the outcome whatever the optimiser did: for convex F
    and a gradient g at w, F(w) - min F <= <g, w> + R |g|.

    Args:
        problem: data and loss.
        radius: R > 0, or None.
    """
    mean, corner = _objective(problem)
    d = problem.features.shape[1]
    w = _solved(mean, 0.0, np.zeros(d))
    if radius is not None and _norm(w) > radius:
        w = _on_sphere(mean, radius, w, _norm(mean(np.zeros(d))[1]) / radius)
        w *= min(1.0, radius / _norm(w))
    gradient = mean(w)[1]
    weight = problem.loss.regularisation
    gaps = []
    if radius is not None:
        gaps.append(float(gradient @ w) + radius * _norm(gradient))
    if weight:
        gaps.append(_norm(gradient) ** 2 / (2.0 * weight))
    loss = float(ensemble(w[np.newaxis], problem)["loss"][0])
    return Optimum(w, loss, max(0.0, min(gaps)) + corner if gaps else None)


Mean = Callable[[Array], tuple[float, Array]]


def _objective(problem: Problem) -> tuple[Mean, float]:
    """Return the mean loss with its gradient, and by how much rounding corners off may have changed it."""
    x, y, loss = problem
    rounded = loss.name in POWERED and loss.power == 1.0
    step = max(1, _BLOCK // x.shape[1])

    def mean(w: Array) -> tuple[float, Array]:
        value, gradient = 0.0, np.zeros_like(w)
        for first in range(0, len(y), step):
            rows, labels = x[first : first + step], y[first : first + step]
            found, slope = (_rounded if rounded else _exact)(loss, rows @ w, labels)
            value += float(found.sum())
            gradient += slope @ rows
        weight = loss.regularisation
        return value / len(y) + 0.5 * weight * float(w @ w), gradient / len(y) + weight * w

    return mean, 0.5 * _CORNER if rounded else 0.0


def _exact(loss: Loss, z: Array, labels: Array) -> tuple[Array, Array]:
    """Return the values and the derivatives in z of the data part, with z as the only feature of a weight of 1."""
    one = _plain(loss)
    weight = np.ones(1)
    return one.value(weight, z[:, np.newaxis], labels), _derivative(one, z, labels)


def _derivative(loss: Loss, z: Array, labels: Array) -> Array:
    if loss.name == "logistic":
        found: Array = -labels * np.exp(-np.logaddexp(0.0, labels * z))
        return found
    if loss.name == "hinge":
        return _power_slope(1.0 - labels * z, loss.power or 1.0) * -labels
    r = labels - z
    if loss.name == "squares":
        return -r
    if loss.name == "huber":
        threshold = loss.huber_threshold or 0.0
        return -np.clip(r, -threshold, threshold)
    return -np.sign(r) * _power_slope(np.abs(r) - (loss.tube or 0.0), loss.power or 1.0)


def _power_slope(excess: Array, power: float) -> Array:
    found: Array = power * np.maximum(0.0, excess) ** (power - 1.0)
    return found


def _rounded(loss: Loss, z: Array, labels: Array) -> tuple[Array, Array]:
    """Return values and derivatives with max(0, u) replaced by u^2/(2k) on [0, k] and u - k/2 above: less by <= k/2."""
    if loss.name == "hinge":
        excess, sign = 1.0 - labels * z, -labels
    else:
        r = labels - z
        excess, sign = np.abs(r) - (loss.tube or 0.0), -np.sign(r)
    inner = np.clip(excess, 0.0, _CORNER)
    return inner * (np.maximum(excess, 0.0) - 0.5 * inner) / _CORNER, sign * inner / _CORNER


def _solved(mean: Mean, weight: float, start: Array) -> Array:
    """Return the minimiser of the mean loss plus (weight/2) |w|^2."""
    from scipy.optimize import minimize

    def objective(w: Array) -> tuple[float, Array]:
        value, gradient = mean(w)
        return value + 0.5 * weight * float(w @ w), gradient + weight * w

    options = {"maxiter": 2000, "maxfun": 4000, "gtol": 1e-11, "ftol": 1e-16, "maxcor": 20}
    found: Array = minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
    return found


def _on_sphere(mean: Mean, radius: float, start: Array, largest: float) -> Array:
    """Return the minimiser over the ball where it lies on its surface: the multiplier that makes |w| = R is found."""
    from scipy.optimize import brentq

    last = [start]

    def excess(weight: float) -> float:
        last[0] = _solved(mean, weight, last[0])
        return 1.0 / radius - 1.0 / max(_norm(last[0]), 1e-300)

    # At the optimum weight R = |gradient|, which nowhere in the ball exceeds what ``largest`` grows to.
    while excess(largest) > 0.0:
        largest *= 2.0
    weight = brentq(lambda weight: -excess(weight) if weight else -1.0, 0.0, largest, xtol=1e-9 * largest, rtol=1e-9)
    return _solved(mean, float(weight), last[0])


def _norm(w: Array) -> float:
    return math.sqrt(float(w @ w))
