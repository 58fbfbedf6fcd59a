"""Objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011) and AdaSSP (Wang 2018), both for replaced records."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from benchmarks.utility.problem import Array

RIDGE = 0.01
"""Lambda of objective perturbation."""

CURVATURE = 0.25
"""The largest second derivative of the logistic loss."""


class Perturbation(NamedTuple):
    """The noise vector has a norm of Gamma(d, scale), and ``extra`` is added to the ridge."""

    scale: float
    extra: float


def perturbation(epsilon: float, records: int, ridge: float) -> Perturbation:
    """Return the noise of Algorithm 2 for the logistic loss and rows of norm at most 1.

    epsilon' = epsilon - ln(1 + 2 c/(n Lambda) + c^2/(n Lambda)^2); where that is not positive, the ridge is raised to
    c/(n (e^(epsilon/4) - 1)) and epsilon' = epsilon/2. The density of the noise is proportional to e^(-epsilon' |b|/2).
    """
    left = epsilon - 2.0 * math.log1p(CURVATURE / (records * ridge))
    if left > 0.0:
        return Perturbation(2.0 / left, 0.0)
    return Perturbation(4.0 / epsilon, CURVATURE / (records * math.expm1(epsilon / 4.0)) - ridge)


def perturbed_logistic(rows: Array, labels: Array, epsilon: float, seed: int) -> Array:
    """Return the minimiser of the perturbed objective, shape (d,); labels are 0 and 1.

    The guarantee is of the exact minimiser; this one is computed to a gradient of 1e-8.
    """
    from scipy.optimize import minimize

    records, columns = rows.shape
    rng = np.random.default_rng([seed, 2])
    noise = perturbation(epsilon, records, RIDGE)
    direction = rng.standard_normal(columns)
    b = direction / np.linalg.norm(direction) * rng.gamma(columns, noise.scale)
    signs, ridge = 2.0 * labels - 1.0, RIDGE + noise.extra

    def objective(w: Array) -> tuple[float, Array]:
        margins = signs * (rows @ w)
        value = np.logaddexp(0.0, -margins).mean() + 0.5 * ridge * w @ w + b @ w / records
        slopes = -signs * 0.5 * (1.0 - np.tanh(0.5 * margins))
        return float(value), rows.T @ slopes / records + ridge * w + b / records

    found = minimize(objective, np.zeros(columns), jac=True, method="L-BFGS-B", options={"gtol": 1e-8, "maxiter": 2000})
    return np.asarray(found.x)


class Sums(NamedTuple):
    """Standard deviations of the noise on what AdaSSP releases.

    Attributes:
        products: on X'X: diagonal entries; those beside it have 1/sqrt(2) times as much.
        targets: on X'y.
        smallest: on the smallest eigenvalue of X'X.
    """

    products: float
    targets: float
    smallest: float


def sums(mu: float) -> Sums:
    """Return the noise of AdaSSP for rows of norm at most 1, targets in [-1, 1], and mu in all.

    Each of the three has mu/sqrt(3). A replaced row moves X'X by at most sqrt(2) in Frobenius norm, in which a
    symmetric matrix has orthonormal coordinates a_ii and sqrt(2) a_ij; X'y by at most 2; an eigenvalue by at most 1.
    """
    unit = math.sqrt(3.0) / mu
    return Sums(math.sqrt(2.0) * unit, 2.0 * unit, unit)


def ridge_of(smallest: float, noise: Sums, columns: int, delta: float, failure: float = 0.05) -> float:
    """Return the ridge that AdaSSP adds, from the noisy smallest eigenvalue (its Algorithm 2, lines 3 and 4)."""
    floor = max(smallest - math.sqrt(math.log(6.0 / delta)) * noise.smallest, 0.0)
    return max(0.0, noise.products * math.sqrt(columns * math.log(2.0 * columns**2 / failure)) - floor)


def adassp(rows: Array, targets: Array, mu: float, delta: float, seed: int) -> Array:
    """Return weights, shape (d,), for targets in [-1, 1]."""
    rng = np.random.default_rng([seed, 3])
    columns = rows.shape[1]
    noise = sums(mu)
    products = rows.T @ rows
    smallest = float(np.linalg.eigvalsh(products)[0]) + noise.smallest * rng.standard_normal()
    ridge = ridge_of(smallest, noise, columns, delta)
    drawn = rng.standard_normal((columns, columns))
    products = products + noise.products * (drawn + drawn.T) / 2.0
    sides = rows.T @ targets + noise.targets * rng.standard_normal(columns)
    return np.asarray(np.linalg.lstsq(products + ridge * np.eye(columns), sides, rcond=None)[0])
