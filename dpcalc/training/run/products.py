"""Least squares by noisy sums of products; `dpcalc.training.rule.sums_of_products` describes the release.

Features and targets are truncated to multiples of powers of two, so sums of their products have no rounding error; each
noisy sum is rounded to a grid (`dpcalc.training.run.exact_sums`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.numerics.floats import up
from dpcalc.training.run.exact_sums import bits_kept, cut, exponent_of, grid_of, rounded_sum
from dpcalc.training.run.kernel import Source
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem

Array = NDArray[np.float64]

_PIECE = 1 << 16  # entries of a block
_CELLS = 2.0**52  # of a grid, on either side of 0


def solved(plan: Plan, problem: Problem, source: Source) -> tuple[Array, int]:
    """Return the weights, shape (d,), from noisy sums, and the number of noise variables that were drawn.

    Args:
        plan: of the accounted step.
        problem: features of norm at most B, targets of at most Y, and least squares with these bounds.
        source: of the noise.

    Raises:
        SpecError: the noise is too small for its grid.
    """
    rows, columns = problem.shape
    bound, height = float(problem.loss.feature_bound), float(problem.loss.label_bound or 1.0)
    matrix, vector = exact_products(problem.pieces, problem.shape, bound, height)
    noise, above = np.empty(entries(columns)), np.triu_indices(columns, 1)
    source.generator.standard_normal(out=noise)
    first, rest = columns, columns + len(above[0])
    scale = up(rows * float(np.max(plan.scale)), 4.0)
    squares, products = up(scale * bound * bound, 4.0), up(scale * bound * height, 4.0)
    _check_scale(rows * bound * bound, squares)
    _check_scale(rows * bound * height, products)
    noisy = np.diag(rounded_sum(np.diag(matrix), noise[:first], squares))
    noisy[above] = rounded_sum(matrix[above], noise[first:rest], up(squares * math.sqrt(0.5), 4.0))
    noisy.T[above] = noisy[above]
    right = rounded_sum(vector, noise[rest:], products)
    return _fit(noisy / (bound * bound), right / (bound * height), scale) * (height / bound), len(noise)


def entries(columns: int) -> int:
    """Return the number of released sums.

    >>> entries(3)
    9
    """
    return columns * (columns + 1) // 2 + columns


def exact_products(
    pieces: Callable[[int], Iterable[tuple[Array, Array]]], shape: tuple[int, int], bound: float, height: float
) -> tuple[Array, Array]:
    """Return the exact sums of x x' and of x y, shapes (d, d) and (d,), of truncated features and targets.

    With k bits of each, as in `dpcalc.training.run.exact_sums`, products and their sums are multiples of 2^(-2k) times
    a power of two, so doubles represent every sum exactly, in any order.

    Args:
        pieces: block size -> all rows in blocks: features, no entry above ``bound``, and targets, none above
            ``height``.
        shape: (n, d).
        bound, height: B and Y.
    """
    rows, columns = shape
    kept = bits_kept(rows)
    unit, unit_of_targets = (math.ldexp(1.0, exponent_of(most) - kept) for most in (bound, height))
    matrix, vector = np.zeros((columns, columns)), np.zeros(columns)
    step = max(1, _PIECE // columns)
    for features, targets in pieces(step):
        x = cut(features, unit)
        matrix += x.T @ x
        vector += cut(targets, unit_of_targets) @ x
    return matrix, vector


def _check_scale(most: float, scale: float) -> None:
    """Refuse noise that is too small for its grid, on sums up to ``most``."""
    if not most / grid_of(scale * 0.5) < _CELLS:
        raise SpecError(f"noise of scale {scale:g} on a sum up to {most:g} is lost in rounding", "use more noise")


def _fit(matrix: Array, vector: Array, scale: float) -> Array:
    """Return the ridge regression with the least ridge that lifts all eigenvalues to half the expected noise norm.

    The norm of a symmetric matrix of such noise is about s sqrt(2 d).
    """
    values, vectors = np.linalg.eigh(matrix)
    ridge = max(0.0, 0.5 * scale * math.sqrt(2.0 * len(vector)) - float(values[0]))
    fitted: Array = vectors @ ((vectors.T @ vector) / (values + ridge))
    return fitted
