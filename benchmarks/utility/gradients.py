"""Clipped gradient descent with full batches in plain numpy, at fixed public parameters, accounted by composition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.utility.contest import BINARY, NUMBERS
from benchmarks.utility.problem import Array


class Descent(NamedTuple):
    """Parameters of a run: the clip C, the number of steps T and the step size."""

    clip: float
    steps: int
    step_size: float


CLASSIFY = Descent(0.1, 30, 20.0)
REGRESS = Descent(0.3, 30, 1.0)


def noise_of(run: Descent, records: int, mu: float) -> float:
    """Return the standard deviation of the noise on each mean gradient.

    A replaced record moves the mean by at most 2 C/n, and T releases of mu_0 each are sqrt(T) mu_0 together.
    """
    return 2.0 * run.clip * run.steps**0.5 / (records * mu)


def descend(rows: Array, targets: Array, kind: str, classes: int, run: Descent, sigma: float, seed: int) -> Array:
    """Return the last iterate, shape (d, 1) or (d, K), from 0.

    Args:
        rows: shape (n, d).
        targets: classes, or numbers in [-1, 1].
        sigma: the standard deviation of the noise on a mean gradient.
    """
    rng = np.random.default_rng([seed, 1])
    lengths = np.linalg.norm(rows, axis=1)
    weights = np.zeros((rows.shape[1], classes if kind not in (BINARY, NUMBERS) else 1))
    for _ in range(run.steps):
        slopes = slopes_of(rows @ weights, targets, kind)
        sizes = np.linalg.norm(slopes, axis=1) * lengths
        slopes *= np.minimum(1.0, run.clip / np.maximum(sizes, 1e-300))[:, np.newaxis]
        gradient = rows.T @ slopes / len(rows)
        weights -= run.step_size * (gradient + sigma * rng.standard_normal(weights.shape))
    return weights


def slopes_of(scores: Array, targets: Array, kind: str) -> Array:
    """Return the derivative of each record's loss in its scores, shape (n, 1) or (n, K)."""
    if kind == NUMBERS:
        return np.asarray(scores - targets[:, np.newaxis])
    if kind == BINARY:
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores)) - targets[:, np.newaxis])
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: Array = shifted / shifted.sum(axis=1, keepdims=True)
    found[np.arange(len(found)), targets.astype(int)] -= 1.0
    return found
