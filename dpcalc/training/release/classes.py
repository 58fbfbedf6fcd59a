"""How good the predictions of classes are, beyond their accuracy: who is taken for whom, and whether chances are right.

All of it is computed from the rows without noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CELLS = 10
"""Cells of [0, 1] in which predicted probabilities are compared with what happened."""

_POINTS = 101  # of a ROC curve, so that a report of many rows stays short


class Classified(NamedTuple):
    """What became of the rows of each class.

    Attributes:
        counts: shape (K, K): how many rows of the class of a row of this table were taken for the class of a column.
        calibration: probabilities beside what happened; None of a model without probabilities.
        roc: of two classes, pairs of false- and true-positive rate from (0, 0) to (1, 1); None where one is missing.
    """

    counts: NDArray[np.int64]
    calibration: Calibration | None
    roc: list[list[float]] | None

    def to_json(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return what is reported, JSON types only; a precision or recall of no rows is None."""
        right = np.diag(self.counts).tolist()
        of_class, taken = (self.counts.sum(axis=axis).tolist() for axis in (1, 0))
        rows = zip(names, of_class, right, taken, strict=True)
        return {
            "confusion": self.counts.tolist(),
            "classes": [
                {"class": name, "rows": n, "precision": hit / said if said else None, "recall": hit / n if n else None}
                for name, n, hit, said in rows
            ],
            "calibration": None if self.calibration is None else self.calibration.to_json(),
            "roc": self.roc,
        }


class Calibration(NamedTuple):
    """Probabilities beside what happened, in equal cells of [0, 1].

    Attributes:
        rows: how many rows fall into each cell, shape (`CELLS`,).
        predicted: the mean probability in each cell, nan where it is empty.
        observed: the share of rows of which the event is true, nan likewise.
    """

    rows: NDArray[np.int64]
    predicted: Array
    observed: Array

    @property
    def error(self) -> float:
        """The expected calibration error: the mean over rows of how far the two are apart in their cell."""
        return float(np.nansum(self.rows * np.abs(self.predicted - self.observed)) / self.rows.sum())

    def to_json(self) -> dict[str, Any]:
        """Return the error and the cells that are not empty."""
        cells = zip(self.rows.tolist(), self.predicted.tolist(), self.observed.tolist(), strict=True)
        kept = [
            {"from": k / CELLS, "to": (k + 1) / CELLS, "rows": n, "predicted": chance, "observed": share}
            for k, (n, chance, share) in enumerate(cells)
            if n
        ]
        return {"error": self.error, "cells": kept}


def confusion(actual: NDArray[Any], predicted: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """Return how many rows of each class (a row) were taken for each class (a column), shape (classes, classes)."""
    pairs = np.bincount(actual.astype(np.intp) * classes + predicted.astype(np.intp), minlength=classes * classes)
    return pairs.reshape(classes, classes)


def calibration(chances: Array, happened: NDArray[np.bool_]) -> Calibration | None:
    """Compare predicted probabilities, shape (m,), with what happened; None where one is no number."""
    if not np.isfinite(chances).all():
        return None
    cell = np.minimum((chances * CELLS).astype(np.intp), CELLS - 1)
    rows, sums, hits = (np.bincount(cell, weights, minlength=CELLS) for weights in (None, chances, happened))
    with np.errstate(invalid="ignore"):
        return Calibration(rows, sums / rows, hits / rows)


def roc(scores: Array, positive: NDArray[np.bool_]) -> list[list[float]] | None:
    """Return false- and true-positive rates as the threshold falls, at most 101 pairs; None without one class."""
    count = int(np.count_nonzero(positive))
    if count in (0, len(scores)):
        return None
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0.0, True)  # of rows with one score
    hits = np.cumsum(positive[order])[last]
    misses = np.cumsum(~positive[order])[last]
    path = np.column_stack([np.append(0.0, misses / (len(scores) - count)), np.append(0.0, hits / count)])
    if len(path) > _POINTS:
        path = path[np.unique(np.searchsorted(path.sum(axis=1), np.linspace(0.0, 2.0, _POINTS) - 1e-12))]
    return [[float(x), float(y)] for x, y in path]
