"""Slopes of a softmax of several classes, a record at a time: what a record adds does not depend on the others.

Scores and slopes have one row for each class and one column for each record, and sums over classes are taken in their
order, so that every operation is one on single entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcalc.training.run.capped import capped_descents

Array = NDArray[np.float64]


def descents(scores: Array, labels: Array, longest: Array | None, *, capped: bool = False) -> Array:
    """Return minus the slopes of a softmax, shortened jointly where they are too long; or those of a capped one.

    Args:
        scores: shape (m, K).
        labels: m whole numbers from 0 to K - 1.
        longest: how long the slope of a record may be, shape (m,), positive; None for no bound.
        capped: whether the softmax is capped by ``longest`` (`dpcalc.training.run.capped`).

    Returns:
        e_y - softmax(z) times at most 1, or minus the slope of the capped softmax, shape (K, m): 0 where scores are not
        finite.
    """
    if capped and longest is not None:
        return capped_descents(scores, labels, longest)
    slopes = _shares(scores)
    np.negative(slopes, out=slopes)
    slopes[labels.astype(np.intp), np.arange(len(labels))] += 1.0
    np.copyto(slopes, 0.0, where=~np.isfinite(slopes))
    if longest is not None:
        lengths = _lengths(slopes)
        slopes *= np.where(lengths > longest, longest / np.maximum(lengths, longest), 1.0)
    return slopes


def probabilities(scores: Array) -> Array:
    """Return the softmax of scores of shape (m, K), of the same shape."""
    return np.ascontiguousarray(_shares(scores).T)


def class_metrics(features: Array, labels: Array, loss: Any, weights: Array) -> tuple[Array, Array]:
    """Return the sums of losses and of right predictions of some models over some records, shape (models,).

    Args:
        features: shape (m, d).
        labels: shape (m,).
        loss: the softmax.
        weights: shape (models, d K).
    """
    total, right = np.empty(len(weights)), np.empty(len(weights))
    for place, one in enumerate(weights):
        scores = features @ one.reshape(features.shape[1], -1)
        total[place] = loss.data_values(scores, labels).sum()
        right[place] = np.count_nonzero(scores.argmax(axis=1) == labels)
    return total, right


def _shares(scores: Array) -> Array:
    """Return the softmax, shape (K, m)."""
    shares = np.ascontiguousarray(scores.T)
    if shares is scores or np.shares_memory(shares, scores):
        shares = shares.copy()
    shares -= shares.max(axis=0)
    np.exp(shares, out=shares)
    shares /= _total(shares)
    return shares


def _lengths(slopes: Array) -> Array:
    """Return the norms of the columns, also where squares are too small for a double."""
    largest = np.abs(slopes).max(axis=0)
    scale = np.where(largest > 0.0, largest, 1.0)
    lengths: Array = scale * np.sqrt(_total((slopes / scale) ** 2))
    return lengths


def _total(rows: Array) -> Array:
    """Return the sum of the rows, in their order."""
    total: Array = rows[0].copy()
    for row in rows[1:]:
        total += row
    return total
