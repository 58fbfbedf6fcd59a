"""The report of an executed run, beside its guarantee.

Its remarks on the records are for whoever holds these: no guarantee covers them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.notes import (
    Calibrated,
    ColumnReading,
    LabelReading,
    ModelFile,
    NotCovered,
    Note,
    NotMeasured,
    NotPrivate,
    OfClasses,
    UnreadableCells,
)
from dpcalc.report import Case
from dpcalc.training.data.bounds import Centre
from dpcalc.training.data.cells import Classes
from dpcalc.training.release import metrics
from dpcalc.training.release.coefficients import deviation
from dpcalc.training.release.execution import Metrics, NonPrivate, Replicas, Trained, finite
from dpcalc.training.release.model import Model, refuse_too_large
from dpcalc.training.rule.defaults import CLASSIFYING
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.excess_risk import RiskBound
from dpcalc.training.rule.full_batches import Rule, centring_steps
from dpcalc.training.rule.records import Records
from dpcalc.training.rule.setup import Setup, Solver, card_path
from dpcalc.training.run.plan import Plan

_MORE = "more records, fewer columns, a larger epsilon or narrower public ranges help"
_UNREAD = "--ranges declares the levels of words, and --ignore leaves a column out"
_UNMAPPED = "no --ranges: words count as 0, and rows longer than {:.3g} are shortened"
_WORDS = {"train": "training", "test": "test"}


def on_records(records: Records, loss: str, total: int, *, read: bool) -> Iterator[str]:
    """Yield remarks on what is unusual about the records.

    Args:
        records: of the run.
        loss: its name.
        total: the number of records, including those that were set aside.
        read: whether they were read from a table; else they are synthetic.
    """
    label, counts = records.one_label, records.counts
    words = loss in CLASSIFYING and not records.labels.takes_words and counts["unreadable"] >= total
    cut = read and counts["labels_clipped"] == total
    if cut:
        yield "every target was cut to its bound: --target-range LOW,HIGH maps public ends to it first"
    elif label is not None:
        cure = "; if its cells are words, --labels NO,YES says what they are" if words else ""
        if loss in CLASSIFYING and records.labels.takes_words and label <= 0.0:
            cure = ", and a cell that is none of the labels, letter by letter, counts as that one"
        yield f"the target is {_name(records, label)} for every training record: there is nothing to learn{cure}"
    if not read:
        return
    if counts["unreadable"] >= total and not (words and label is not None and counts["unreadable"] == total):
        yield f"as many cells are no finite number as a whole column has: {_UNREAD}"
    if records.unmapped and counts["rows_clipped"] == total:
        yield "every row was shortened, so that only directions are left: --ranges maps columns to [-1, 1] first"


def _name(records: Records, label: float) -> str:
    rule = records.labels
    if isinstance(rule, Classes):
        return rule.names[int(label)]
    if rule.positive is None:
        return f"{label:g}"
    return rule.positive if label > 0.0 else rule.negative or f"not {rule.positive}"


def on_model(records: Records, metrics: Metrics) -> Iterator[str]:
    """Yield a remark if the model is no better than a constant answer, on test records where there are some.

    Args:
        records: of the run.
        metrics: part -> name -> value.
    """
    if records.one_label is not None:
        return
    part, some = ("test", records.test) if records.test else ("train", records.train)
    values = metrics.get(part, {})
    accuracy = values.get("accuracy")
    if accuracy is not None:
        _, counts = np.unique(some.labels, return_counts=True)
        share = float(counts.max() / counts.sum())
        if accuracy <= share:
            yield (
                f"the model is no better on the {_WORDS[part]} records than always answering the commonest class, "
                f"which is right for {share:.4g} of them: {_MORE}"
            )
    elif values.get("r2", 1.0) <= 0.0:
        yield f"the model is no better on the {_WORDS[part]} records than always answering their mean: {_MORE}"


Array = NDArray[np.float64]

UNCOVERED = "computed from the records without noise: not covered by the guarantee"
OF_UNCOVERED = "uncovered"
"""The field of a report for everything that depends on the records and is not released by the run."""


def covered(case: Case) -> Case:
    """Return the report of a run without the parts that no guarantee covers."""
    kept = {name: value for name, value in (case.training or {}).items() if name != OF_UNCOVERED}
    notes = tuple(note for note in case.note_data if not isinstance(note, (NotCovered, NotMeasured, ModelFile)))
    return case._replace(training=kept, note_data=notes)


class Outcome(NamedTuple):
    """A run that was executed.

    Attributes:
        draft, setup, records, plan: the run and its records.
        trained: its result.
        non_private: the non-private model that it is compared with, if any.
        risk: a bound on its excess risk, if one covers exactly this run.
        rule: the choices of the default rule, if it made any.
        tuning: the public part of the choice among candidates, if there was one.
        centre: how rows are centred, if they are.
    """

    draft: Draft
    setup: Setup
    records: Records
    plan: Plan
    trained: Trained | Replicas
    non_private: NonPrivate | None
    risk: RiskBound | None
    rule: Rule | None = None
    tuning: dict[str, Any] | None = None
    centre: Centre | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report, JSON types only."""
        rows, columns = self.records.shape
        fields = {
            "records": rows,
            "test_records": self.records.test_count,
            "dimension": columns,
            **({"classes": self.draft.loss.scores} if self.draft.loss.classified else {}),
            "intercept": self.setup.intercept,
            "norm": self.plan.norm,
            "steps": self.plan.steps,
            "average": self.setup.average,
            **({} if self.centre is None else {"centre": self._centre(self.centre)}),
            **self._solver(),
            **({} if self._calibration is None else {"calibration": self._calibration}),
            **{name: list(values) for name, values in self._of_classes.items()},
            "rule": None if self.rule is None else self.rule.to_json(),
            **({} if self.tuning is None else {"tuning": self.tuning}),
            "released": self.setup.output,
            "iterates_released": self._iterates_released,
            **self.trained.to_json(),
            **self._evaluation(),
            **(
                {"excess_risk_bound": None, "excess_risk_bound_because": "no known bound covers exactly this run"}
                if self.risk is None
                else {"excess_risk_bound": {**self.risk._asdict(), "assumes": list(self.risk.assumes)}}
            ),
        }
        return {**finite(fields), **({OF_UNCOVERED: finite(self._uncovered())} if self._measures else {})}

    @property
    def _measures(self) -> bool:
        """Whether the user asked for measurements on the records that the guarantee does not cover."""
        return self.setup.unprotected or (self.records.test is not None and self.setup.evaluate_epsilon is None)

    def _uncovered(self) -> dict[str, Any]:
        """Return what is computed from the records without noise, with the remark that no guarantee covers it."""
        non_private = {} if self.non_private is None else {"non_private": self.non_private.to_json()}
        return {
            "why": UNCOVERED + self._units,
            **self.trained.uncovered(),
            **non_private,
            **(self.records.counts if self.setup.unprotected else {}),
            "remarks": list(self._remarks()),
        }

    def _evaluation(self) -> dict[str, Any]:
        """Return the metrics with noise, which are released beside the model."""
        measured, shared = getattr(self.trained, "measured", None), self.setup.evaluate_epsilon
        if measured is None or shared is None:
            return {}
        return {
            "evaluation": {
                "on": "test" if self.records.test is not None else "train", "records": measured.records,
                "epsilon": shared[0], "delta": 0.0, "epsilon_with_model": shared[1],
                "noise": "discrete Laplace, sampled exactly", "noise_std": measured.noise_std,
                "error_bound": measured.error_bound, "confidence": metrics.CONFIDENCE,
                "metrics": {name: interval._asdict() for name, interval in measured.metrics.items()},
            }
        }  # fmt: skip

    def _centre(self, centre: Centre) -> dict[str, Any]:
        """Return the report of centring; all of it is released."""
        mean, distance = centring_steps(self.plan.steps)
        return {"mean": mean, "distance": distance, "scale": centre.scale}

    @property
    def _calibration(self) -> dict[str, Any] | None:
        """The report of calibration, which turns scores into log-odds; all of it is released."""
        if self.rule is None or isinstance(self.trained, Replicas) or self.trained.temperature is None:
            return None
        return {**self.rule.calibrating._asdict(), "temperature": self.trained.temperature}

    @property
    def _of_classes(self) -> dict[str, Any]:
        """The given weights and shares of the classes; both are public."""
        count = int(self.draft.get("classes", 2))
        given = {"class_weights": self.setup.weights(count), "class_shares": self.setup.shares(count)}
        return {name: values for name, values in given.items() if values is not None}

    def _solver(self) -> dict[str, Any]:
        """Return the solver and the bounds on records, for a run that is not gradient descent."""
        if self.setup.solver != Solver.SUMS:
            return {}
        return {"solver": self.setup.solver, **{name: self.draft[name] for name in ("feature_bound", "label_bound")}}

    @property
    def _units(self) -> str:
        """The unit of RMSE and loss, where it is not the target's own."""
        ranges = self.records.ranges
        if self.draft["loss"] in CLASSIFYING or ranges is None or ranges.target is None:
            return ""
        (low, high), bound = ranges.target, float(self.draft.get("label_bound", 1.0))
        return f"; in units of the mapped target: {low:g} to {high:g} goes to [{-bound:g}, {bound:g}]"

    def _remarks(self) -> Iterator[str]:
        """Yield remarks on the records and the model; no guarantee covers them."""
        total = self.records.shape[0] + self.records.test_count + self._held_out
        if self.setup.unprotected:
            yield from on_records(self.records, self.draft["loss"], total, read=self.setup.synthetic is None)
        if isinstance(self.trained, Trained):
            yield from on_model(self.records, self.trained.metrics)

    @property
    def _held_out(self) -> int:
        """The number of records that were held out of training to score the candidates."""
        score = {} if self.tuning is None else self.tuning["score"]
        return score["records"] if score.get("epsilon") is not None else 0

    def notes(self) -> Iterator[Note]:
        """Yield the notes that hold for every run with this description, whatever the records."""
        if self.rule is not None:
            yield self.rule.note()
        if self._calibration is not None:
            yield Calibrated(**self._calibration)
        if self._of_classes:
            yield OfClasses(**self._of_classes)
        if self.setup.synthetic is None:
            if self.draft["loss"] in CLASSIFYING or self.records.labels.takes_words:
                yield LabelReading(reading=self.records.labels.said)
            if isinstance(self.setup.data, str) and not self.setup.unlearn and self.records.unmapped:
                longest = self.draft["feature_bound"] if self.centre is not None else self.records.bound
                yield ColumnReading(reading=_UNMAPPED.format(longest))
            yield UnreadableCells()
        if self.trained.randomness.why_not_private:
            yield NotPrivate(because=self.trained.randomness.why_not_private)
        if self._measures:
            yield NotCovered(because=UNCOVERED)
        elif self.setup.evaluate_epsilon is None:
            yield NotMeasured()
        if self.setup.replicas == 1:
            yield self._model_file()

    def _model_file(self) -> ModelFile:
        path = str(self.setup.output) if self.setup.output else None
        carded = path is not None and self.setup.card and self.trained.randomness.private
        return ModelFile(path=path, card=card_path(path) if path is not None and carded else None)

    @property
    def _iterates_released(self) -> int:
        """The number of iterates in a model file: all released ones with ``release``, else the model alone."""
        asked = isinstance(self.trained, Trained) and self.draft.given("release")
        return len(self.trained.released) if asked else 1  # type: ignore[union-attr]

    def model(self, case: Case) -> Model | None:
        """Return the model for a file, without the statement of its privacy; None for many replicas."""
        if isinstance(self.trained, Replicas):
            return None
        records, ranges, labels = self.records, self.records.ranges, self.records.labels
        scores = self.draft.loss.scores if self.draft.loss.classified else None
        temperature, noise = self.trained.temperature or 1.0, deviation(self.plan, self.trained.released)
        weights, intercept = _parted(self.trained.weights / temperature, records.constant, scores)
        named = {"positive": None, "classes": labels.names} if isinstance(labels, Classes) else labels._asdict()
        centre = self.centre
        moved: dict[str, Any] = (
            {} if centre is None else {"centre": centre.shift, "scale": centre.scale, "centred_bound": centre.rest}
        )
        bound = records.bound if centre is None else float(self.draft["feature_bound"])
        released = self.trained.released / temperature if self._iterates_released > 1 else None
        return Model(
            weights=weights, intercept=intercept, columns=records.names[:-1], target=records.names[-1],
            low=ranges.low if ranges else None, high=ranges.high if ranges else None,
            target_range=ranges.target if ranges else None, bound=bound, norm=self.draft.norm,
            loss=self.draft.described_loss, privacy=self._privacy(self.trained, case),
            released=None if released is None else _with_intercepts(released, records.constant, scores),
            noise_std=None if noise is None else noise / temperature, temperature=self.trained.temperature,
            **named, **_declared(records), **moved, **self._of_classes,
        )  # fmt: skip

    def _privacy(self, trained: Trained, case: Case) -> dict[str, Any]:
        """Return the guarantee of a model, or why it has none."""
        source, seed, because = trained.randomness
        seeded = {
            **({} if because is None else {"why_not_private": because}),
            **({} if seed is None else {"seed": seed}),
        }
        best = case.best
        assert best is not None
        rounded = (best.details or {}).get("floating_point")
        return {
            "private": trained.randomness.private, **seeded, "noise_source": source,
            **{name: getattr(best, name) for name in ("epsilon", "delta", "log_delta", "mu", "bound", "reference")},
            "adjacency": best.written_adjacency, "assumes": list(best.assumes),
            **({} if rounded is None else {"floating_point": rounded}),
            **({} if self.tuning is None else {"tuning": self.tuning}),
        }  # fmt: skip


def refuse_unwritable_model(setup: Setup, draft: Draft, plan: Plan, columns: int) -> None:
    """Refuse, before training, a model whose file could not be read back.

    Raises:
        SpecError: more numbers would be released than a file holds.
    """
    if setup.output is not None:
        iterates = plan.iterates_released if draft.given("release") else 1
        refuse_too_large(setup.output, iterates * (columns + 1) * draft.loss.scores + columns)


def refuse_unmeasurable(draft: Draft, epsilon: float) -> None:
    """Refuse, before training, a private measurement that cannot be made.

    Raises:
        SpecError: epsilon is out of range, or nothing bounds the errors of a regression.
    """
    if draft["loss"] not in CLASSIFYING and draft.get("label_bound") is None:
        raise SpecError("nothing bounds the errors that --evaluate-share measures", "give --target-range LOW,HIGH")
    metrics.refuse_epsilon(epsilon)


def _parted(weights: Array, constant: float, classes: int | None) -> tuple[Array, Any]:
    """Return the weights of the features, and the intercept: the constant column's term of a score, or 0.

    Args:
        weights: shape (d,), or (d K,) for K classes.
        constant: the value of the last column, 0 where there is no intercept.
        classes: K, or None for one score.

    Returns:
        Shapes (features,) and (), or (features, K) and (K,).
    """
    rows = weights if classes is None else weights.reshape(-1, classes)
    if constant:
        rows, last = rows[:-1], rows[-1] * constant
    else:
        last = 0.0 * rows[-1]
    return (rows, float(last)) if classes is None else (rows, last)


def _with_intercepts(released: Array, constant: float, classes: int | None) -> Array:
    """Return an array of iterates, one a row: the weights of the features, then the intercept."""
    parts = (_parted(iterate, constant, classes) for iterate in released)
    return np.array([np.append(weights, intercept) for weights, intercept in parts])


def _declared(records: Records) -> dict[str, Any]:
    """Return the levels of columns of words, and the replacements of missing cells."""
    ranges, columns = records.ranges, records.names[:-1]
    if ranges is None:
        return {}
    words = {columns[place]: rule for place, rule in ranges.words.items()}
    missing: dict[str, Any] = {name: rule.missing for name, rule in words.items() if rule.missing is not None}
    numbers = zip(columns, ranges.missing, strict=False)
    return {
        "levels": {name: rule.levels for name, rule in words.items()},
        "missing": {**missing, **{name: float(value) for name, value in numbers if value is not None}},
    }
