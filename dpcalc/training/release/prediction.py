"""Predictions of a model for rows: labels by their names, targets in their own units.

They are computed from the released model and the rows alone, so they reveal no more about the training records than the
model does.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.inert import spreadsheet_text
from dpcalc.model.loss import LOSSES, SIGNED
from dpcalc.model.quantities import LossName
from dpcalc.training.release.model import Model
from dpcalc.training.run import kernel as several
from dpcalc.training.run.problem import shift_of

Array = NDArray[np.float64]
_SIGNS = ("-1", "1")  # the classes that have no names


class Predictor(NamedTuple):
    """A model, and how its scores become predictions.

    Attributes:
        model: the model.
        classes: the names of -1 and +1, or of several classes in the order of their scores; None for a regression.
        probable: whether scores give probabilities: log-odds, or for several classes the logits of a softmax.
        middle, half: for a regression, a score z predicts the target ``middle + half z``.
        width: of the interval that targets were clipped to in training.
        threshold: for two classes, the score above which a row counts as +1.
    """

    model: Model
    classes: tuple[str, ...] | None
    probable: bool
    middle: float
    half: float
    width: float
    threshold: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the predicted columns."""
        if self.classes is None:
            return ("prediction",)
        return ("prediction", "probability" if self.probable else "score")

    @property
    def several(self) -> bool:
        """Whether each class has a score of its own."""
        return self.model.classes is not None

    def above(self, probability: float | None) -> Predictor:
        """Return the predictor that answers +1 above this probability of +1; None changes nothing.

        Raises:
            SpecError: the model is not of two classes with probabilities, or the probability is not between 0 and 1.
        """
        if probability is None:
            return self
        if self.classes is None or self.several or not self.probable:
            raise SpecError("the model has no threshold", "it is of a logistic model of two classes")
        if not 0.0 < probability < 1.0:
            raise SpecError(f"the threshold is {probability:g}; it must be a number > 0 and < 1", "the default is 0.5")
        return self._replace(threshold=math.log(probability / (1.0 - probability)) + self._shift)

    def places(self, scores: Array) -> NDArray[Any]:
        """Return the places of the predicted classes: that of the largest score, or 1 above the threshold, else 0."""
        return scores.argmax(axis=1) if self.several else np.asarray(scores > self.threshold).astype(np.intp)

    @property
    def _shift(self) -> Any:
        weights = self.model.class_weights
        return shift_of(None if weights is None else np.array(weights), several=self.several)

    def log_odds(self, scores: Array) -> Array:
        """Return scores as log-odds among all records, without the shift by weights of classes."""
        return np.asarray(scores - self._shift)

    def chances(self, scores: Array) -> Array:
        """Return the probability of +1, or with several classes that of the predicted class, shape (m,)."""
        if not self.several:
            return probabilities(self.log_odds(scores))
        all_of = several.probabilities(self.log_odds(scores))
        return np.take_along_axis(all_of, self.places(scores)[:, np.newaxis], 1)[:, 0]

    def right(self, scores: Array, targets: Array) -> NDArray[np.bool_]:
        """Return which rows are predicted right; targets are as read from their cells."""
        return np.asarray(self.places(scores) == (targets if self.several else targets > 0.0))

    def targets(self, scores: Array) -> Array:
        """Return the predictions of a regression in the target's own units."""
        return np.asarray(self.middle + self.half * scores)

    def to_sklearn(self) -> Any:
        """Return the model as a fitted pipeline of scikit-learn: rows to features, and a linear model of these.

        Raises:
            SpecError: predictions follow weights of classes and probabilities do not; or scikit-learn is not installed.
        """
        if self.probable and np.any(self._shift):
            raise SpecError(
                "predictions of the model follow its weights of classes, probabilities do not, and a linear model of "
                "scikit-learn has one intercept for both",
                "use dpcalc.predict",
            )
        try:
            from sklearn.linear_model import LinearRegression, LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import FunctionTransformer
            from sklearn.svm import LinearSVC
        except ImportError:
            raise SpecError("scikit-learn is not installed", "pip install 'dpcalc[sklearn]'") from None
        weights, intercept = np.asarray(self.model.weights), np.asarray(self.model.intercept)
        if self.classes is None:
            linear = LinearRegression()
            linear.coef_, linear.intercept_ = self.half * weights, self.targets(intercept)
        else:
            linear = LogisticRegression() if self.probable else LinearSVC()
            linear.coef_, linear.intercept_ = np.atleast_2d(weights.T), np.atleast_1d(intercept)
            linear.classes_ = np.array(self.classes)
        linear.n_features_in_ = len(weights)
        rows = FunctionTransformer(self.model.features).fit(np.zeros((1, len(self.model.columns))))
        return make_pipeline(rows, linear)

    def read(self, scores: Array) -> dict[str, NDArray[Any]]:
        """Return the predictions, name -> array of shape (m,): see `names`."""
        if self.classes is None:
            return {"prediction": self.targets(scores)}
        if self.several:
            return {"prediction": np.array(self.classes)[self.places(scores)], "probability": self.chances(scores)}
        labels = np.array(self.classes)[self.places(scores)]
        return {"prediction": labels, self.names[1]: self.chances(scores) if self.probable else scores}


def predictor(model: Model) -> Predictor:
    """Return the predictor of a model, which may come from an untrusted file.

    Classes without names are -1 and 1. If only the positive class has a name, the other one is ``not`` that name.

    Raises:
        SpecError: the model's loss is not known, or does not fit its classes or label bound.
    """
    name, bound = model.loss.get("loss"), model.loss.get("label_bound")
    if not isinstance(name, str) or name not in LOSSES:
        raise SpecError("the model's loss is not known", "give a model that this release wrote")
    if (model.classes is not None) != (name == LossName.SOFTMAX):
        raise SpecError("the model's loss and its classes do not go together", "give a model that this release wrote")
    if model.classes is not None:
        return Predictor(model, model.classes, True, 0.0, 1.0, 2.0)
    if name in SIGNED:
        other = f"not {model.positive}" if model.negative is None else model.negative
        classes = _SIGNS if model.positive is None else (other, model.positive)
        return Predictor(model, classes, name == LossName.LOGISTIC, 0.0, 1.0, 2.0)
    scale = _label_bound(bound)
    if model.target_range is None:
        return Predictor(model, None, False, 0.0, 1.0, 2.0 * scale)
    low, high = model.target_range
    return Predictor(model, None, False, 0.5 * low + 0.5 * high, (0.5 * high - 0.5 * low) / scale, high - low)


def _label_bound(bound: Any) -> float:
    """Return the number to which the end of the target's range was mapped in training."""
    if not bound:
        return 1.0
    if not isinstance(bound, (int, float)) or not 0.0 < bound < math.inf:
        raise SpecError("the model's label bound is no positive number", "give a model that this release wrote")
    return float(bound)


def probabilities(scores: Array) -> Array:
    """Return 1/(1 + e^-z)."""
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-scores)))


def predicted(predicting: Predictor, source: Any) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield predictions in blocks of rows; see `Predictor.read` and `Model.scored`."""
    pieces = predicting.model.scored(source)
    while True:
        with np.errstate(all="ignore"):  # rows may be far outside the range of the training rows
            scores, _ = next(pieces, (None, None))
            read = None if scores is None else predicting.read(scores)
        if read is None:
            return
        yield read


def write_csv(predicting: Predictor, source: Any, write: Callable[[str], None]) -> int:
    """Write a CSV with one line per row, in the order of the rows, and return the number of rows.

    Args:
        predicting: the model.
        source: as of `Model.scored`.
        write: takes whole lines.
    """
    if predicting.classes is not None:
        predicting = predicting._replace(classes=tuple(map(_cell, predicting.classes)))
    head, count = ",".join(predicting.names) + "\n", 0
    for read in predicted(predicting, source):
        buffer = io.StringIO()
        columns = [column.tolist() for column in read.values()]
        csv.writer(buffer, lineterminator="\n").writerows(zip(*columns, strict=True))
        write(("" if count else head) + buffer.getvalue())
        count += len(columns[0])
    if not count:
        write(head)
    return count


def _cell(label: str) -> str:
    """Return a label as a cell that no spreadsheet runs as a formula; -1 and 1 stay numbers."""
    return label if label in _SIGNS else spreadsheet_text(label)
