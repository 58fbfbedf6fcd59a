"""Confusion, calibration and ROC of predicted classes, computed from the rows without noise."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CELLS = 10
"""Cells of [0, 1] in which predicted probabilities are compared with what happened."""

_POINTS = 101  # of a ROC curve, so that a report stays short


class Classified(NamedTuple):
    """How the rows of each class were predicted.

    Attributes:
        counts: the confusion matrix, shape (K, K): actual class by predicted class.
        calibration: predicted probabilities and observed rates; None for a model without probabilities.
        roc: for two classes, pairs of false- and true-positive rate from (0, 0) to (1, 1); None where a class is
            missing.
    """

    counts: NDArray[np.int64]
    calibration: Calibration | None
    roc: list[list[float]] | None

    def to_json(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the report, JSON types only; a precision or recall of no rows is None."""
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
    """Predicted probabilities and observed rates, in equal cells of [0, 1].

    Attributes:
        rows: the number of rows in each cell, shape (`CELLS`,).
        predicted: the mean probability in each cell, nan where it is empty.
        observed: the share of rows with the event, nan likewise.
    """

    rows: NDArray[np.int64]
    predicted: Array
    observed: Array

    @property
    def error(self) -> float:
        """The expected calibration error: the mean over rows of |predicted - observed| in their cell."""
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
    """Return the confusion matrix: actual class by predicted class, shape (classes, classes)."""
    pairs = np.bincount(actual.astype(np.intp) * classes + predicted.astype(np.intp), minlength=classes * classes)
    return pairs.reshape(classes, classes)


def calibration(chances: Array, happened: NDArray[np.bool_]) -> Calibration | None:
    """Compare predicted probabilities, shape (m,), with the events; None where a probability is not finite."""
    if not np.isfinite(chances).all():
        return None
    cell = np.minimum((chances * CELLS).astype(np.intp), CELLS - 1)
    rows, sums, hits = (np.bincount(cell, weights, minlength=CELLS) for weights in (None, chances, happened))
    with np.errstate(invalid="ignore"):
        return Calibration(rows, sums / rows, hits / rows)


def roc(scores: Array, positive: NDArray[np.bool_]) -> list[list[float]] | None:
    """Return false- and true-positive rates as the threshold falls, at most 101 pairs; None if a class is missing."""
    count = int(np.count_nonzero(positive))
    if count in (0, len(scores)):
        return None
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0.0, True)  # of the rows with the same score
    hits = np.cumsum(positive[order])[last]
    misses = np.cumsum(~positive[order])[last]
    path = np.column_stack([np.append(0.0, misses / (len(scores) - count)), np.append(0.0, hits / count)])
    if len(path) > _POINTS:
        path = path[np.unique(np.searchsorted(path.sum(axis=1), np.linspace(0.0, 2.0, _POINTS) - 1e-12))]
    return [[float(x), float(y)] for x, y in path]
