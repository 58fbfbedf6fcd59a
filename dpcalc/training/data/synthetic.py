"""Synthetic records of a linear model with a known parameter, for experiments; nothing about them is private."""

from __future__ import annotations

import math

import numpy as np

from dpcalc.errors import SpecError
from dpcalc.training.data.tables import Table

LOGISTIC, LINEAR = "logistic", "linear"
KINDS = (LOGISTIC, LINEAR)
NOISE = 0.1
"""Standard deviation of a linear model's labels about <theta, x>."""


def generate(
    kind: str,
    *,
    records: int,
    dimension: int,
    radius: float | None,
    feature_bound: float,
    generator: np.random.Generator,
) -> Table:
    """Return records drawn from a logistic or a linear model.

    Features are independent standard normal, and rows longer than B are scaled down to B. theta is (1, 2, ..., d),
    scaled down to ``radius`` if longer, as in Figure 1 of Sordello, Bu and Dong (2021). Logistic: the label is 1 with
    probability 1/(1 + exp(-<theta, x>)), else 0. Linear: it is <theta, x> + N(0, 0.1^2).

    Args:
        kind: one of `KINDS`.
        records: n >= 2.
        dimension: d >= 1.
        radius: R > 0, or None for theta as it is.
        feature_bound: B > 0.
        generator: of the random numbers.

    Raises:
        SpecError: the kind is not one of `KINDS`.
    """
    if kind not in KINDS:
        raise SpecError(f"there is no synthetic data {kind!r}", "one of " + ", ".join(KINDS))
    cells = np.empty((records, dimension + 1))
    theta = np.arange(1.0, dimension + 1.0)
    length = math.sqrt(float(theta @ theta))
    if radius is not None and length > radius:
        theta *= radius / length
    step = max(1, (1 << 18) // (dimension + 1))
    for first in range(0, records, step):
        block = cells[first : first + step]
        x = generator.standard_normal((len(block), dimension))
        x *= np.minimum(1.0, feature_bound / np.sqrt(np.einsum("ij,ij->i", x, x)))[:, np.newaxis]
        block[:, :-1] = x
        z = x @ theta
        if kind == LOGISTIC:
            block[:, -1] = generator.random(len(block)) < 0.5 * (1.0 + np.tanh(0.5 * z))
        else:
            block[:, -1] = z + NOISE * generator.standard_normal(len(block))
    return Table(cells, (*(str(place) for place in range(1, dimension + 1)), "y"))
