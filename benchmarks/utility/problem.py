"""What a tool is given: rows for training with their public ranges, and rows whose targets it has to predict."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.utility.contest import NUMBERS

Array = NDArray[np.float64]

CONSTANT = 0.2
"""What the constant column holds: most of a row's length is left to the features, as by dpcalc's default rule."""

HALF = 2.0**-0.5
"""What it holds where it has half of a row's squared length."""


class Table(NamedTuple):
    """A data set.

    Attributes:
        x: features, shape (n, d).
        y: targets, shape (n,): classes 0, ..., K-1, or numbers.
        low, high: the public range of every column, shape (d,).
    """

    x: Array
    y: Array
    low: Array
    high: Array


class Problem(NamedTuple):
    """One split.

    Attributes:
        kind: `BINARY`, `CLASSES` or `NUMBERS`.
        x, y: of training, shapes (n, d) and (n,).
        low, high: the public range of every column, low < high.
        classes: K; 0 for numbers.
        target: the public range of numbers.
        test: features of the test rows, shape (m, d).
        answers: their targets, which no tool looks at.
    """

    kind: str
    x: Array
    y: Array
    low: Array
    high: Array
    classes: int
    target: tuple[float, float]
    test: Array
    answers: Array

    def rows(self, x: Array, constant: float) -> Array:
        """Return rows of norm at most 1, shape (n, d + 1): ranges to [-1, 1], shortened, and a constant column."""
        mapped = 2.0 * (x - self.low) / (self.high - self.low) - 1.0
        room = np.sqrt(1.0 - constant * constant)
        length = np.linalg.norm(mapped, axis=1, keepdims=True)
        mapped *= room / np.maximum(length, room)
        return np.hstack([mapped, np.full((len(x), 1), constant)])

    def unit_targets(self) -> Array:
        """Return the numbers of training in [-1, 1]."""
        low, high = self.target
        return np.clip(2.0 * (self.y - low) / (high - low) - 1.0, -1.0, 1.0)

    def in_units(self, scores: Array) -> Array:
        """Return scores as numbers in their own units."""
        low, high = self.target
        return low + (scores + 1.0) * 0.5 * (high - low)

    def score(self, predicted: Any) -> float:
        """Return the accuracy on the test rows, or R2 of predictions cut to the public range."""
        if self.kind != NUMBERS:
            return float(np.mean(np.asarray(predicted) == self.answers))
        with np.errstate(invalid="ignore"):
            cut = np.nan_to_num(np.clip(np.asarray(predicted, dtype=float), *self.target), nan=self.target[0])
        spread = float(np.sum((self.answers - self.answers.mean()) ** 2))
        return 1.0 - float(np.sum((self.answers - cut) ** 2)) / spread


def split(table: Table, kind: str, seed: int) -> Problem:
    """Return the split of this number: a uniformly random fifth of the rows is for testing."""
    order = np.random.default_rng(seed).permutation(len(table.x))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    high = np.where(table.high > table.low, table.high, table.low + 1.0)
    classes = 0 if kind == NUMBERS else int(table.y.max()) + 1
    target = (float(table.y.min()), float(table.y.max()))
    given = (table.x[train], table.y[train], table.low, high)
    return Problem(kind, *given, classes, target, table.x[test], table.y[test])
