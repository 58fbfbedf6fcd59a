"""`DPClassifier` and `DPRegressor`: `dpcalc train` by its default rule, with the interface of scikit-learn.

What is private is the fitted model, for neighbours with one row replaced. The number of rows and of columns is public,
and so is every parameter: ``classes``, ``ranges`` and ``target_range`` must not come from the records. Where one does,
the noise can be drawn again, or a search or an earlier step of a pipeline looks at the records too, the estimator says
so: it warns (`PrivacyWarning`), ``private_`` is False, ``why_not_private_`` has the reason, and no number of
``privacy_`` is a guarantee. No row of an array or a list is refused for what it holds. ``score``, and predictions
for the rows that were trained on together with their targets, are not covered by the guarantee.

Several fits to the same records are less private together than each: an ``accountant`` that they share adds them up,
and refuses the next one before it is trained where a budget would be exceeded. Without one, a second fit to rows of as
many columns in a process warns, once.

What surrounds a fit, as far as it can be noticed: searches, steps of a pipeline, earlier fits of this process.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from dpcalc.api.asked import as_keywords, in_keywords
from dpcalc.errors import PrivacyWarning, SpecError, warn
from dpcalc.model.parameter import check
from dpcalc.model.quantities import Given
from dpcalc.model.question import Question
from dpcalc.notes import NotPrivate
from dpcalc.render.notes import report
from dpcalc.report import Case
from dpcalc.training import with_one_blas_thread
from dpcalc.training.data.cells import NUMBERS, NUMERIC, as_array, number
from dpcalc.training.data.intervals import is_interval
from dpcalc.training.data.ranges import settle
from dpcalc.training.fit import fit
from dpcalc.training.release.model import Model
from dpcalc.training.release.outcome import covered
from dpcalc.training.release.prediction import predictor, probabilities
from dpcalc.training.rule.account import warn_if_again
from dpcalc.training.rule.setup import Setup, Task, interval
from dpcalc.training.run import kernel as several

SELECTION = (
    "it was fitted inside {where}, which fits several models to the same records and scores them without noise: choose "
    "within the budget by dpcalc train --tune, or score by dpcalc evaluate --private"
)
STEPS = "the steps before it in a pipeline learn from the records without noise ({names})"
OUTSIDE = (
    "some values lie outside the public ranges and were brought within them. This warning depends on the records, and "
    "no guarantee covers it: do not publish it, and do not choose ranges by it"
)


class OutsideRangesWarning(PrivacyWarning):
    """Values outside the public ranges were brought within them; given only where unprotected metrics are asked for."""


def _frames() -> Iterator[FrameType]:
    """Yield the frames of the caller, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _of_selection() -> Iterator[str]:
    for frame in _frames():
        if _module(frame).startswith("sklearn.model_selection."):
            yield SELECTION.format(where=type(frame.f_locals["self"]).__name__ if "self" in frame.f_locals else
                                   "a cross-validation")  # fmt: skip
            return


def _of_pipelines() -> Iterator[str]:
    for frame in _frames():
        if _module(frame) == "sklearn.pipeline" and frame.f_code.co_name == "fit":
            names = [name for name, step in getattr(frame.f_locals.get("self"), "steps", ())[:-1] if _learns(step)]
            if names:
                yield STEPS.format(names=", ".join(names))


def _learns(step: Any) -> bool:
    """Return whether a step takes something from the records that it is fitted to, as far as it says."""
    from sklearn.utils import get_tags

    if step is None or isinstance(step, str) or getattr(step, "private_", False) is True:
        return False
    if type(step).__name__ == "FrozenEstimator":
        return False
    return bool(get_tags(step).requires_fit)


Array = NDArray[np.float64]

FROM_TARGET = "the classes were taken from the records: give classes, which count as public"


class _Linear(BaseEstimator):
    """What both estimators share: their rows, the run, and what is kept of it.

    Attributes:
        coef_: of rows as they are mapped, shortened and, where ``model_.centre`` is not None, centred: shape (d,), of a
            classifier (1, d), of K > 2 classes (K, d).
        intercept_: a number, of a classifier of shape (1,), of K > 2 classes (K,).
        n_iter_: the number of steps.
        model_: the model, which `dpcalc.training.release.model.save` writes for ``dpcalc predict``.
        privacy_: the report of `dpcalc.train`, without what was measured of the records: an estimator that is pickled
            holds nothing that the guarantee does not cover.
        uncovered_: what was computed of the records without noise, which no guarantee covers; empty unless asked for.
        private_, why_not_private_: whether the guarantee holds, and why it does not.
    """

    def _rows(self, X: Any, *, reset: bool) -> Array:
        rows: Array = validate_data(
            self,
            _cells(X),
            reset=reset,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )
        return rows

    def _targets(self, X: Any, y: Any) -> tuple[Array, NDArray[Any]]:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        rows, targets = self._rows(X, reset=True), column_or_1d(_apart(y), warn=True)
        check_consistent_length(rows, targets)
        return rows, targets

    @in_keywords()
    def _train(self, rows: Array, targets: NDArray[Any], given: Given, because: str | None, **setup: Any) -> None:
        """Fit, and keep what came of it; ``because`` says why the outcome is not private, if it is not."""
        low, high = self._interval(rows.shape[1])
        because = "; ".join(filter(None, (because, *_of_selection(), *_of_pipelines()))) or None
        mapped = np.array(rows, dtype=np.float64, order="C")
        settle(mapped, None if low is None else (low, high), 1.0)
        seed = None if self.random_state is None else int(check_random_state(self.random_state).randint(1 << 31))
        epsilon, delta = float(check("epsilon", self.epsilon)), float(check("delta", self.delta))
        question = Question(epsilon, delta, math.log(delta))
        with with_one_blas_thread():
            asked = Setup(
                data=(mapped, targets), seed=seed, show_unprotected_metrics=self.show_unprotected_metrics,
                account=self.accountant, **setup,
            )  # fmt: skip
            case, model = fit(Task(given, question, asked))
        if setup.get("class_shares") is not None:
            for text in case.warnings:
                warn(as_keywords(text))
        if self.accountant is not None:
            self.accountant.finish()
        assert model is not None
        assert case.training is not None
        names = getattr(self, "feature_names_in_", None)
        columns = model.columns if names is None else tuple(map(str, names))
        case = case if because is None else _not_private(case, because)
        self.uncovered_: dict[str, Any] = dict(case.not_covered)
        case = covered(case)
        assert case.training is not None
        self.private_: bool = case.training["private"]
        self.why_not_private_: str | None = case.training.get("why_not_private")
        self.privacy_ = report("train", [case])
        privacy = {**model.privacy, "private": self.private_}
        if not self.private_:
            privacy["why_not_private"] = self.why_not_private_
        self.model_: Model = model._replace(columns=columns, low=low, high=high, privacy=privacy)
        self.n_iter_: int = case.training["steps"]
        if not self.private_:
            warn(f"NOT PRIVATE: {self.why_not_private_}")
        elif self.accountant is None:
            warn_if_again(rows.shape[1])
        if self.show_unprotected_metrics and self._outside(rows, targets, low, high, setup.get("target_range")):
            warn(OUTSIDE, OutsideRangesWarning)

    def _interval(self, columns: int) -> tuple[Array | None, Array | None]:
        """Return the ends of the ranges, each of shape (d,)."""
        if self.ranges is None:
            return None, None
        hint = "give (low, high), numbers or arrays with one per column"
        try:
            low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (columns,)).copy() for end in self.ranges)
        except (TypeError, ValueError):
            raise SpecError(f"ranges are no two ends for {columns} columns", hint) from None
        if not all(map(is_interval, low.tolist(), high.tolist())):
            raise SpecError("ranges are no intervals, or too narrow", hint)
        return low, high

    def _outside(self, rows: Array, targets: NDArray[Any], low: Any, high: Any, target_range: Any) -> bool:
        """Return whether values lie outside the public ranges."""
        return _any_outside(rows, low, high) or (target_range is not None and _any_outside(targets, *target_range))

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.model_.scores(self._rows(X, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


def _apart(values: Any) -> Any:
    """Return a list as an array of objects: else a word in one record would change the type of all the others."""
    if not isinstance(values, (list, tuple)):
        return values
    objects = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        objects[place] = value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value
    return objects


def _cells(X: Any) -> Any:
    """Return rows of objects or texts as numbers, nan for what is none: a refusal would name what a record holds."""
    if not (isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and X.dtype.kind in "OUS")):
        return X
    try:
        rows = as_array(X)
    except SpecError:
        return X
    if rows.ndim != 2 or not rows.size or any(isinstance(one, Mapping) for one in rows.flat):
        return X  # which scikit-learn refuses
    return np.column_stack([NUMBERS.codes(column) for column in rows.T])


def _not_private(case: Case, because: str) -> Case:
    known = (case.training or {}).get("why_not_private")
    said = "; ".join(filter(None, (because, known)))
    training = {**(case.training or {}), "private": False, "why_not_private": said}
    notes = tuple(note for note in case.note_data if not isinstance(note, NotPrivate))
    return case.uncovered()._replace(training=training, note_data=(*notes, NotPrivate(because=said)))


def _any_outside(values: NDArray[Any], low: Any, high: Any) -> bool:
    """Return whether numbers lie outside their ranges; what is no number lies nowhere."""
    if values.dtype.kind not in NUMERIC:
        values = np.array([value for value in values if isinstance(value, (int, float))])
    low, high = (-1.0, 1.0) if low is None else (low, high)
    return bool(((values < low) | (values > high)).any())


class DPClassifier(ClassifierMixin, _Linear):
    """Private logistic regression; of more than two classes with a softmax.

    Args:
        epsilon, delta: the budget of the fit.
        classes: the labels, two or more, which count as public; a row with any other label counts as the first. None
            takes them from y: the model is then not covered by the guarantee.
        ranges: (low, high), numbers or arrays of shape (d,), that are mapped to [-1, 1]; public. None: columns are in
            [-1, 1] already. Rows are then shortened to a norm of at most 1; nan counts as the middle.
        random_state: a seed for experiments: the model is then not private.
        accountant: a `dpcalc.Accountant` or a `dpcalc.Ledger`, which the fit is charged to before it is trained.
        show_unprotected_metrics: whether ``uncovered_`` has what is computed of the records without noise, and values
            outside the ranges warn (`OutsideRangesWarning`): no guarantee covers either.
        class_shares: public shares of the classes, in their order: the fit warns where the rarest is too rare for the
            budget. Never count them.
        class_weight: ``"balanced"`` or ``"sqrt"``, by the shares, or a mapping from labels to public weights (1 for
            those that it lacks): gradients of a class are multiplied by its weight over the largest. ``predict`` and
            ``decision_function`` follow the weights, ``predict_proba`` does not.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        classes: Any = None,
        ranges: Any = None,
        random_state: Any = None,
        accountant: Any = None,
        show_unprotected_metrics: bool = False,
        class_shares: Any = None,
        class_weight: Any = None,
    ) -> None:
        self.class_shares = class_shares
        self.class_weight = class_weight
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.ranges = ranges
        self.random_state = random_state
        self.accountant = accountant
        self.show_unprotected_metrics = show_unprotected_metrics

    def fit(self, X: ArrayLike, y: ArrayLike) -> DPClassifier:
        """Fit the model to rows X, shape (n, d), and labels y, shape (n,).

        Raises:
            ValueError: shapes are wrong; or ``classes`` is None and y has not two classes or more.
            dpcalc.DpcalcError: a parameter is out of range, or the budget cannot be met.
        """
        rows, labels = self._targets(X, y)
        if self.classes is None:
            self.classes_ = _classes_of(column_or_1d(y))
        else:
            self.classes_ = _declared(self.classes)
        because = FROM_TARGET if self.classes is None else None
        stated = {"class_shares": self.class_shares, "class_weight": self._weights()}
        if len(self.classes_) > 2:
            places = np.zeros(len(labels))
            for place, label in enumerate(self.classes_):
                places[_are(labels, label)] = place
            self._train(rows, places, {"loss": "softmax", "classes": len(self.classes_)}, because, **stated)
            self.model_ = self.model_._replace(classes=tuple(map(str, self.classes_)))
            self.coef_, self.intercept_ = self.model_.weights.T.copy(), self.model_.intercept.copy()
            return self
        signs = np.where(_are(labels, self.classes_[1]), 1.0, -1.0)
        self._train(rows, signs, {"loss": "logistic"}, because, **stated)
        self.model_ = self.model_._replace(negative=str(self.classes_[0]), positive=str(self.classes_[1]))
        self.coef_, self.intercept_ = self.model_.weights[np.newaxis].copy(), np.array([self.model_.intercept])
        return self

    def _weights(self) -> Any:
        """Return what is said of weights in the order of the classes.

        Raises:
            SpecError: a label has a weight, and is none of the classes.
        """
        if not isinstance(self.class_weight, Mapping):
            return self.class_weight
        labels = self.classes_.tolist()
        strange = [label for label in self.class_weight if label not in labels]
        if strange:
            raise SpecError(f"class_weight has {strange[0]!r}, which is none of the classes", "give labels of classes")
        return [self.class_weight.get(label, 1.0) for label in labels]

    def decision_function(self, X: ArrayLike) -> Array:
        """Return scores, shape (n,): above 0 for the second class; of K > 2 classes shape (n, K)."""
        return self._scores(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return labels, shape (n,)."""
        scores = self._scores(X)
        places = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)
        labels: NDArray[Any] = self.classes_[places]
        return labels

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return probabilities of the classes, shape (n, K)."""
        scores = self._scores(X)
        log_odds = predictor(self.model_).log_odds(scores)
        if log_odds.ndim == 2:
            return several.probabilities(log_odds)
        p = probabilities(log_odds)
        return np.column_stack([1.0 - p, p])


def _are(labels: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Return which labels are this one; what cannot be compared is another.

    Each is compared by itself. In an array of texts a number counts by its value: numpy makes such an array of numbers
    among which there is one word.
    """
    if labels.dtype.kind in "USO" or np.asarray(label).dtype.kind not in NUMERIC:
        return np.array([_is(one, label) for one in labels.tolist()], dtype=bool)
    return np.broadcast_to(np.asarray(labels == label), labels.shape)


def _is(value: Any, label: Any) -> bool:
    try:
        if isinstance(value, (str, bytes)) and not isinstance(label, (str, bytes)):
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            return text == str(label) or number(text) == float(label)
        if isinstance(value, bytes) != isinstance(label, bytes):
            return False
        return bool(value == label)
    except Exception:  # an array, or an object of whatever kind
        return False


def _declared(classes: Any) -> NDArray[Any]:
    """Return the classes that are given, in their order, by the type that they share: metrics compare by types.

    Raises:
        SpecError: they are no sequence of two or more that differ; a set has no first label, and a text has letters.
    """
    if isinstance(classes, (str, bytes, set, frozenset)):
        raise SpecError(f"classes is a {type(classes).__name__}, and no sequence of labels", "give (no, yes)")
    named = np.asarray(classes if hasattr(classes, "__array__") else _apart(list(classes)))
    if named.dtype.kind == "O" and named.ndim == 1:
        named = _of_one_type(named)
    alike = named.ndim != 1 or any(named[i] == named[j] for j in range(len(named)) for i in range(j))
    if alike or len(named) < 2:
        raise SpecError("classes are not two or more labels that differ", "give (no, yes)")
    return named


def _of_one_type(values: NDArray[Any]) -> NDArray[Any]:
    """Return objects as texts, truths or numbers, if they are that alone and stay what they are."""
    for types in (str, (bool, np.bool_), (int, float, np.number)):
        if all(isinstance(value, types) for value in values):
            plain = np.array(values.tolist())
            return plain if plain.tolist() == values.tolist() else values
    return values


def _classes_of(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the classes of a target."""
    check_classification_targets(labels)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError("Classifier can't train when only one class is present.")
    return classes


class DPRegressor(RegressorMixin, _Linear):
    """Private linear regression.

    Args:
        epsilon, delta: the budget of the fit.
        ranges: as of `DPClassifier`.
        target_range: (low, high) of the target, public; targets outside it are cut, and nan counts as the middle. A fit
            without it is refused.
        random_state: a seed for experiments: the model is then not private.
        accountant: a `dpcalc.Accountant` or a `dpcalc.Ledger`, which the fit is charged to before it is trained.
        show_unprotected_metrics: whether ``uncovered_`` has what is computed of the records without noise, and values
            outside the ranges warn (`OutsideRangesWarning`): no guarantee covers either.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        ranges: Any = None,
        target_range: Any = None,
        random_state: Any = None,
        accountant: Any = None,
        show_unprotected_metrics: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.ranges = ranges
        self.target_range = target_range
        self.random_state = random_state
        self.accountant = accountant
        self.show_unprotected_metrics = show_unprotected_metrics

    def fit(self, X: ArrayLike, y: ArrayLike) -> DPRegressor:
        """Fit the model to rows X, shape (n, d), and targets y, shape (n,).

        Raises:
            ValueError: shapes are wrong.
            dpcalc.DpcalcError: a parameter is out of range, or the budget cannot be met; there is no target range.
        """
        rows, targets = self._targets(X, y)
        if self.target_range is None:
            raise SpecError(
                "the target range is not given", "give target_range=(low, high), public ends between which targets lie"
            )
        self._train(rows, targets, {"loss": "squares"}, None, target_range=interval(self.target_range))
        reading = predictor(self.model_)
        self.coef_ = reading.half * self.model_.weights
        self.intercept_ = float(reading.targets(np.array(self.model_.intercept)))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return targets, shape (n,), in their own units."""
        scores = self._scores(X)
        return predictor(self.model_).targets(scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
