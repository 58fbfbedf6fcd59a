"""The data and the loss of a linear model, and a check that the data are within the accounted bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.model.loss import Loss
from dpcalc.training.data.bounds import lengths

Array = NDArray[np.float64]
Chosen = slice | NDArray[np.int64]

_PIECE = 1 << 16  # entries of a block
_ROOM = 1e-12  # relative room between clipped gradients and their bound


class Problem(NamedTuple):
    """A linear model's data and loss.

    Attributes:
        features: shape (n, d), float64, C-contiguous; may be a memory map.
        labels: shape (n,), float64; for a loss of K classes integers from 0 to K - 1.
        loss: of the catalogue, with the bounds on features and labels.
        weights: public weights of the classes, in the order of their labels, shape (2,) or (K,), above 0 and at most 1:
            the clipped gradient of a record is multiplied by the weight of its class. None without weights.
    """

    features: Array
    labels: Array
    loss: Loss
    weights: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of records and of weights: one weight for each column and score."""
        rows, columns = self.features.shape
        return rows, columns * self.loss.scores

    def at(self, chosen: Chosen) -> tuple[Array, Array]:
        """Return the features, shape (m, d), and the labels, shape (m,), of some records."""
        return self.features[chosen], self.labels[chosen]

    def weighed(self, slopes: Array, labels: Array) -> Array:
        """Return slopes times the weights of their records' classes, in place; none grows, rounding included.

        Args:
            slopes: shape (m,) or (K, m); or (m, runs) with labels of shape (m, 1).
            labels: shape (m,).
        """
        if self.weights is not None:
            slopes *= self.weights[self.places(labels)]
        return slopes

    def weighed_slope(self, slope: Callable[[float, float], float]) -> Callable[[float, float], float]:
        """Return the slope of a score and a label of +1 or -1, times the weight of the label."""
        if self.weights is None:
            return slope
        negative, positive = self.weights.tolist()
        return lambda z, label: slope(z, label) * (positive if label > 0.0 else negative)

    def places(self, labels: Array) -> NDArray[np.intp]:
        """Return the places of the classes of labels."""
        return (labels if self.loss.classified else labels > 0.0).astype(np.intp)

    def pieces(self, step: int) -> Iterator[tuple[Array, Array]]:
        """Yield all records in their order, in blocks of ``step``."""
        return (self.at(slice(first, first + step)) for first in range(0, len(self.labels), step))


def shift_of(weights: Array | None, *, several: bool) -> Any:
    """Return the shift of log-odds by weights of classes, ln(w_+/w_-), or of the scores of several classes, shape (K,).

    >>> round(shift_of(np.array([0.5, 1.0]), several=False), 4)
    0.6931
    """
    if weights is None:
        return 0.0
    logs = np.log(weights)
    return logs if several else float(logs[1] - logs[0])


def slope_caps(features: Array, clip: float | None, norm: int = 2) -> Array | None:
    """Return the largest slope of the loss of every record in its score, shape (n,): C/|x|, and inf where x is 0.

    The clipped gradient is clip(phi'(z), -C/|x|, C/|x|) x: see `dpcalc.model.clipping`. The caps are lower by more than
    the rounding error of a gradient's norm.

    Args:
        features: shape (n, d).
        clip: C > 0, or None for gradients without clipping; the result is then None.
        norm: of the features: 2 or 1.
    """
    if clip is None:
        return None
    caps, columns = np.empty(len(features)), features.shape[1]
    held = clip * (1.0 - max(_ROOM, (columns + 8) * 2.0**-52))  # enough room for slopes of K scores, too
    step = max(1, _PIECE // columns)
    with np.errstate(divide="ignore", over="ignore"):
        for first in range(0, len(features), step):
            caps[first : first + step] = held / lengths(features[first : first + step], norm)
    return caps


def verify(problem: Problem, *, norm: int = 2) -> None:
    """Refuse data outside the bounds of the accounted loss.

    Args:
        problem: data and loss.
        norm: of the features: 2, or 1 for Laplace noise in several dimensions.

    Raises:
        SpecError: wrong shapes or types, features longer than ``feature_bound``, labels beyond ``label_bound`` or, for
            hinge and logistic, other than +1 and -1.
    """
    x, y, loss, weights = problem
    if weights is not None and not ((weights > 0.0) & (weights <= 1.0)).all():
        raise SpecError("weights of classes are not above 0 and at most 1", "divide them by the largest")
    if x.ndim != 2 or y.shape != (len(x),) or not len(x) or not x.shape[1]:
        raise SpecError(
            f"features have shape {x.shape} and labels {y.shape}", "they must be (records, columns) and (records,)"
        )
    if x.dtype != np.float64 or y.dtype != np.float64 or not x.flags.c_contiguous:
        raise SpecError("features and labels must be float64 in C order", "use np.ascontiguousarray(x, dtype=float)")
    step = max(1, _PIECE // x.shape[1])
    for first in range(0, len(x), step):
        _verify_piece(x[first : first + step], y[first : first + step], loss, first, norm)


def _verify_piece(x: Array, y: Array, loss: Loss, first: int, norm: int) -> None:
    refuse_outside(lengths(x, norm), loss.feature_bound, first, "feature_bound")
    _refuse_labels(y, loss, first)


def _refuse_labels(y: Array, loss: Loss, first: int) -> None:
    if loss.signed:
        wrong = np.abs(y) != 1.0
        if wrong.any():
            row = int(wrong.argmax())
            raise SpecError(
                f"the label of record {first + row + 1} is {y[row]:g}", f"labels of {loss.name} are +1 and -1"
            )
    elif loss.classified:
        wrong = (y != np.floor(y)) | ~((y >= 0.0) & (y < loss.scores))
        if wrong.any():
            row = int(wrong.argmax())
            raise SpecError(
                f"the label of record {first + row + 1} is {y[row]:g}",
                f"labels of {loss.name} are whole numbers from 0 to {loss.scores - 1}",
            )
    elif loss.label_bound is not None:
        refuse_outside(np.abs(y), loss.label_bound, first, "label_bound")
    elif not np.isfinite(y).all():
        row = int(np.isfinite(y).argmin())
        raise SpecError(f"the label of record {first + row + 1} is not finite", "leave it out")


def refuse_outside(size: Array, bound: float, first: int, name: str) -> None:
    """Raise SpecError if the size of a record is above a bound; ``first`` records came before these."""
    outside = ~(size <= bound)  # nan is outside
    if outside.any():
        row = int(outside.argmax())
        raise SpecError(
            f"record {first + row + 1} has {size[row]:.17g}, and {name} is {bound:.17g}",
            f"clip the data, with a little room for rounding, or give a larger --{name.replace('_', '-')}",
        )
