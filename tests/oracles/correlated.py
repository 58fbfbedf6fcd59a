"""The matrices of correlated noise by linear algebra: a square root of prefix sums, its bands, and their inverses."""

from __future__ import annotations

import random

import numpy as np
from scipy.linalg import sqrtm

from dpcalc.model.matrix_file import Matrix


def matrix_of(r: random.Random, steps: int) -> Matrix:
    """A lower-triangular matrix: of both signs or of one, of few bands or of all, or with equal columns that fall."""
    entries = np.array([[r.choice((1.0, -1.0, 0.0, 0.5)) * r.random() for _ in range(steps)] for _ in range(steps)])
    entries = np.tril(np.triu(entries, -r.choice((1, 3, steps))))
    entries[np.diag_indices(steps)] = [r.choice((1.0, -1.0)) * r.uniform(0.5, 2.0) for _ in range(steps)]
    kind = r.random()
    if kind < 0.3:
        entries = abs(entries)
    elif kind < 0.5:
        falling = sorted((r.random() for _ in range(steps)), reverse=True)
        entries = np.tril([[falling[abs(i - j)] for j in range(steps)] for i in range(steps)])
    return Matrix(entries, "matrix.npy")


def dense(mechanism: str, steps: int, bands: int) -> np.ndarray:
    """C, or for a tree one row for every complete node; blt has no other definition than its buffers."""
    sums = np.tril(np.ones((steps, steps)))
    root = np.real(sqrtm(sums)) if steps > 1 else sums
    band = np.tril(np.triu(np.ones((steps, steps)), 1 - bands))
    if mechanism == "identity":
        return np.eye(steps)
    if mechanism == "tree":
        nodes = [(node << h, (node + 1) << h) for h in range(steps.bit_length()) for node in range(steps >> h)]
        return np.array([[float(first <= t < last) for t in range(steps)] for first, last in nodes])
    if mechanism == "bisr":
        return np.linalg.inv(np.linalg.inv(root) * band)
    return root * band if mechanism == "banded-sqrt" else root
