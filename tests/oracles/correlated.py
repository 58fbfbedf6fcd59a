"""The matrices of correlated noise by linear algebra, and the best adaptive play against small runs of it."""

import math
import random
from collections.abc import Sequence

import numpy as np
from scipy.linalg import sqrtm
from scipy.special import ndtr

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


def best_of_three(c: np.ndarray, sigma: float, epsilon: float) -> float:
    """E_Q (P/Q - e^epsilon)_+ of three steps, each gradient the best one given the likelihood ratio so far.

    Gradients are vectors of the plane, of norm 1 or 0, in twelve directions. With K'K = C'C and K lower triangular
    row t of K G has independent noise, and is shifted by sum_s K_ts u_s.
    """
    reversed_gram = (c.T @ c)[::-1, ::-1]
    k = np.linalg.cholesky(reversed_gram)[::-1, ::-1].T / sigma
    moves = (0.0, *np.exp(1j * np.linspace(-math.pi, math.pi, 12, endpoint=False)))
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()

    def of_last(shift: float, loss: np.ndarray) -> np.ndarray:
        shift = max(shift, 1e-12)
        one, other = ((loss - epsilon) / shift + sign * shift / 2.0 for sign in (1.0, -1.0))
        return np.exp(loss) * ndtr(one) - math.exp(epsilon) * ndtr(other)

    def of_second(loss: float, move: complex) -> float:
        shift = abs(k[1, 0] + k[1, 1] * move)
        after = loss + shift * nodes - shift**2 / 2.0
        values = [of_last(abs(k[2] @ np.array([1.0, move, last])), after) for last in moves]
        return float(weights @ np.max(values, axis=0))

    losses = k[0, 0] * nodes - k[0, 0] ** 2 / 2.0
    best = [max(of_second(loss, move) for move in moves) for loss in losses]
    return float(weights @ np.array(best))


def best_of_two_rounds(moves: Sequence[tuple[float, float]], rate: float, sigma: float, epsilon: float) -> float:
    """E (P - e^epsilon Q)_+ over two Poisson rounds, the second move the best one given what the first released.

    Args:
        moves: what one of them is under P and under Q.
        rate, sigma, epsilon: of a round, of the noise, and of the guarantee.
    """
    grid = np.linspace(-9.0 * sigma - 1.0, 9.0 * sigma + 1.0, 601)

    def law(move: float) -> np.ndarray:
        still, moved = (np.exp(-((grid - at) ** 2) / (2.0 * sigma**2)) for at in (0.0, move))
        total: np.ndarray = (1.0 - rate) * still + rate * moved
        return total / total.sum()

    laws = [(law(p), law(q)) for p, q in moves]
    best = 0.0
    for p, q in laws:
        of_second = [np.maximum(np.outer(p, later) - math.exp(epsilon) * np.outer(q, other), 0.0).sum(axis=1)
                     for later, other in laws]  # fmt: skip
        best = max(best, float(np.max(of_second, axis=0).sum()))
    return best
