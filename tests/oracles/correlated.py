"""The matrices of correlated noise by linear algebra: a square root of prefix sums, its bands, and their inverses."""

from __future__ import annotations

import numpy as np
from scipy.linalg import sqrtm


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
