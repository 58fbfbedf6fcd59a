"""Unlearning: noisy steps on the kept records, from a model file, until the model hides the removed records.

The steps are full batches of the loss that the model file names, with a regulariser, within a ball. The certificate
says that the outcome hides whether the removed records were ever trained on; it is no guarantee for the records kept
(`docs/method.md`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.engine.ask import ask
from dpcalc.errors import GateRefused, MissingParameter, NotApplicable, SpecError, refuse
from dpcalc.model import loss as losses
from dpcalc.model.algorithm import FORGETTING, Source
from dpcalc.model.draft import Description
from dpcalc.model.loss import SIGNED, Loss
from dpcalc.model.question import Question
from dpcalc.notes import Forgets
from dpcalc.report import Case, Result
from dpcalc.training.data import bounds as bounding
from dpcalc.training.data import tables
from dpcalc.training.data.progress import Phases
from dpcalc.training.release.fitting import Fit, judged_case
from dpcalc.training.release.model import Model, load
from dpcalc.training.release.outcome import Outcome
from dpcalc.training.rule.account import charged, release_of
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.guarantee import Accounting, Carried, Guaranteed, accounted_run, guarantee
from dpcalc.training.rule.records import Records
from dpcalc.training.rule.setup import OF_UNLEARNING, Average, Setup, Solver, Task
from dpcalc.training.run.plan import plan

Array = NDArray[np.float64]

_TAKEN = (*OF_UNLEARNING, "regularisation", "radius", "step_size", "noise_std")
_LOSS = tuple(name for name in losses.PARAMETERS if name not in ("regularisation", "radius"))
_LEAST, _MOST, _LEFT = 10, 1000, 0.01
NOT_FOR_THE_REST = (
    "what is certified is that the model has forgotten the records left out; for the records kept it is no guarantee"
)


class _Start(NamedTuple):
    """The start of the steps.

    Attributes:
        model: from its file.
        bound: the bound on the length of rows with the constant column.
        constant: the value of the intercept's column, 0 where there is none.
    """

    model: Model
    bound: float
    constant: float

    @property
    def weights(self) -> Array:
        """The weights of every column, shape (d,)."""
        scale = self.model.temperature or 1.0  # the steps start from the weights as trained
        with np.errstate(over="ignore"):
            weights = np.multiply(self.model.weights, scale)
            last = np.divide(self.model.intercept * scale, self.constant) if self.constant else ()
            return np.append(weights, last)


def fit_unlearned(task: Task) -> Fit:
    """Return the case of a model that forgets; as `dpcalc.training.fit.fit`.

    Raises:
        SpecError: the model, the data or the description are malformed, or the run is not one of those covered.
        MissingParameter: the start distance, the ball or the regulariser is not known.
        NotApplicable, Infeasible: see `dpcalc.engine.answer.answer`.
        GateRefused: a gate on privacy is given.
    """
    from dpcalc.training.release.execution import Execution, Trained, source_of

    setup, phases, path = task.setup, task.phases, task.setup.unlearn
    assert path is not None
    _check(setup)
    if task.gates:
        raise GateRefused(
            f"{task.gates[0].text!r} is a gate on privacy, and forgetting is none of the records kept",
            "gate `dpcalc unlearn` with the same distance and steps",
        )
    start = _start_of(load(path))
    setup = setup._replace(class_weight=start.model.class_weights, class_shares=start.model.class_shares)
    draft = _draft(task, start)
    records = _records(setup, draft, start, phases)
    draft.take_shape(*records.shape, with_dimension=False)
    _fill(draft)
    made = guarantee(_Unlearning(draft, records.shape))
    case = judged_case(made.case, draft, None, task)
    if case.failed:
        return Fit(case, None)
    if setup.account is not None:
        case = charged(case, setup.account, release_of("unlearn", _for_the_rest(draft, made)))
    weights = start.weights
    with np.errstate(over="ignore"):  # of the square of its norm
        made.plan.domain.project(weights)
    executed = Execution(made.plan, records, draft, setup, phases, made.rounding, source_of(setup), weights)
    trained, non_private = executed.outcome()
    assert isinstance(trained, Trained)
    because = "; ".join(filter(None, (NOT_FOR_THE_REST, trained.randomness.why_not_private)))
    trained = trained._replace(randomness=trained.randomness._replace(why_not_private=because))
    outcome = Outcome(draft, setup, records, made.plan, trained, non_private, None)
    forgets = Forgets(model=path, steps=made.plan.steps)
    case = case._replace(training=outcome.to_json(), note_data=(*case.note_data, forgets, *outcome.notes()))
    return Fit(case, outcome.model(case))


class _Unlearning(Accounting):
    """Accounting of unlearning steps, which start from models a known distance apart."""

    @property
    def loss(self) -> Loss:
        """The loss of the model."""
        return self.draft.loss

    def case(self, question: Question) -> Case:
        """As `Accounting.case`."""
        draft = self.draft
        known: dict[str, Any] = {
            "diameter": 2.0 * float(draft["radius"]), "smoothness": draft.loss.smoothness,
            "strong_convexity": draft["regularisation"],
        }  # fmt: skip
        given = {name: draft[name] for name in (*OF_UNLEARNING, "step_size", "noise_std") if name in draft}
        return ask("unlearn", {**known, **given}, question, notes=False)

    def carried(self, row: Result) -> Carried:
        """As `Accounting.carried`: the steps are executed as those of a descent."""
        described = {name: value for name, value in self.draft.items() if name not in OF_UNLEARNING}
        run = accounted_run(Draft(Description({**described, "steps": self.draft["clean_steps"]})), row)
        return Carried(run, plan(run, *self.shape)._replace(algorithm=FORGETTING, started=True))


def _for_the_rest(draft: Draft, made: Guaranteed) -> Result:
    """Return the guarantee of the steps for the records kept, as of a descent, at the given delta.

    Raises:
        NotApplicable: there is none.
    """
    described = {name: value for name, value in draft.items() if name not in OF_UNLEARNING}
    noise = {"noise_std": made.run.noise_std, "steps": draft["clean_steps"]}
    asked = Question(None, draft.question.delta, draft.question.log_delta)
    descent = Draft(Description({**described, **noise}), asked)
    hint = "leave out --ledger, or give more noise with --noise-std"
    try:
        best = guarantee(Accounting(descent, (made.plan.records, made.plan.columns))).case.best
    except NotApplicable as error:
        raise NotApplicable(f"a ledger is of the records kept, and of them {error.message}", hint) from None
    assert best is not None
    return best


def _check(setup: Setup) -> None:
    """Raise SpecError for options that an unlearning run does not take."""
    strange = {
        "--synthetic": setup.synthetic is not None, "--replicas": setup.replicas > 1, "--tune": setup.tune is not None,
        "--solver sums": setup.solver == Solver.SUMS, "--centre": bool(setup.centre),
        "--average tail": setup.average == Average.TAIL, "--test-fraction": setup.test_fraction > 0.0,
    }  # fmt: skip
    of_the_model = {
        "--target": setup.target, "--class-shares": setup.class_shares, "--class-weight": setup.class_weight,
        "--labels": setup.labels, "--positive": setup.positive, "--ranges": setup.ranges,
        "--target-range": setup.target_range, "--intercept": setup.intercept is not None,
    }  # fmt: skip
    refuse(
        *((asked, f"a run that forgets takes no {flag}", f"leave out {flag}") for flag, asked in strange.items()),
        *((bool(asked), f"{flag} follows from the model that is to forget", f"leave out {flag}")
          for flag, asked in of_the_model.items()),
    )  # fmt: skip


def _start_of(model: Model) -> _Start:
    """Return the start of the steps.

    Raises:
        SpecError: unlearning does not cover such a model, or its file is malformed.
    """
    if model.centre is not None:
        raise SpecError("rows of the model are centred on others than those kept", "train it with --no-centre")
    if model.classes is not None:
        raise SpecError("the model has several scores, and one is covered", "give a model of two classes or a number")
    bound = model.loss.get("feature_bound")
    for name in _LOSS:
        value = model.loss.get(name)
        if value is not None and not (isinstance(value, (int, float)) and math.isfinite(value)):
            raise SpecError(f"the model's {name} is no number", "give one that dpcalc train -o wrote")
    if model.norm != 2 or not isinstance(bound, (int, float)) or not 0.0 < model.bound <= bound < math.inf:
        raise SpecError("the model does not say how its rows were bounded", "give one that dpcalc train -o wrote")
    constant = math.sqrt(bound - model.bound) * math.sqrt(bound + model.bound)
    if model.intercept and not constant:
        raise SpecError("the model has an intercept and no column for it", "give one that dpcalc train -o wrote")
    start = _Start(model, float(bound), constant)
    if not np.isfinite(start.weights).all():
        raise SpecError("the model's weights are too large", "give one that dpcalc train -o wrote")
    return start


def _draft(task: Task, start: _Start) -> Draft:
    """Return the run with the loss of the model.

    Raises:
        SpecError: a parameter does not belong to an unlearning run, or contradicts the model.
        MissingParameter: the regulariser, the ball or the start distance is not given.
    """
    named = Description(task.given, task.sources)
    known = {name: start.model.loss[name] for name in ("loss", *_LOSS) if start.model.loss.get(name) is not None}
    for name in named:
        if name in known and named[name] == known[name]:
            continue
        if name not in _TAKEN:
            raise SpecError(f"a run that forgets takes no {name}", f"it takes {', '.join(_TAKEN)}")
    draft = Draft(
        Description({**known, **named}, {**dict.fromkeys(known, Source.DATA), **named.sources}), task.question
    )
    for name, why in (
        ("regularisation", "the steps forget by a regulariser, whose weight"),
        ("radius", "the steps stay in a ball, whose radius"),
    ):
        if not draft.get(name):
            example = f"for example --{name} {_EXAMPLE[name]}"
            if name in named:
                raise SpecError(f"{why} is 0", f"give one above 0; {example}")
            raise MissingParameter(f"{why} is not given", f"give --{name}; {example}")
    if draft.get("start_distance") is None:
        raise MissingParameter(
            "how far the model may be from one that never saw the records left out is not given",
            f"give --start-distance; {_APART}",
        )
    if draft["start_distance"] == 0.0 and draft.get("noise_std") is None:
        raise SpecError(
            "a model at a distance of 0 from one that never saw the records left out has nothing to forget: "
            "no noise is the least that is enough",
            f"give the distance; {_APART}",
        )
    return draft


_EXAMPLE = {"regularisation": "0.01", "radius": "5"}
_APART = "of k records left out of n, minimisers are k Delta/(m n) apart"


def _fill(draft: Draft) -> None:
    """Fill in the step size, and as many steps as reduce the distance to a hundredth, from 10 to 1000.

    Raises:
        SpecError: the loss is not smooth.
    """
    smoothness = draft.loss.smoothness
    if smoothness is None:
        raise SpecError(
            f"the {draft['loss']} loss is not smooth", "give a model of the logistic, huber or squares loss"
        )
    draft.default("step_size", 1.0 / smoothness)
    shrinks = -math.log1p(-min(float(draft["step_size"]) * float(draft["regularisation"]), 0.5))
    draft.default("clean_steps", max(_LEAST, min(_MOST, math.ceil(math.log(1.0 / _LEFT) / shrinks))))


def _records(setup: Setup, draft: Draft, start: _Start, phases: Phases) -> Records:
    """Return the records kept, mapped as in the model.

    Raises:
        SpecError: they cannot be read, or have other columns.
    """
    model = start.model
    if not isinstance(setup.data, str):
        raise SpecError("the records kept are read from a file", "give the path of one")
    table = tables.read(
        tables.path_of(setup.data), target=model.target, labels=model.labels, ignore=setup.ignore, words=model.words,
        progress=phases("records read"),
    )  # fmt: skip
    if table.names != (*model.columns, model.target):
        raise SpecError(
            f"the records have the columns {', '.join(table.names)[:200]}",
            f"they must be those of the model: {', '.join((*model.columns, model.target))[:200]} (see --ignore)",
        )
    mapped = model.low is not None or model.words or model.missing or model.target_range is not None
    ranges = model.ranges if mapped else None
    share = start.constant / start.bound
    kept = bounding.prepared(
        table, feature_bound=start.bound, label_bound=draft.get("label_bound"), signed=draft["loss"] in SIGNED,
        ranges=ranges, intercept=bool(share), share=share or None, norm=2,
    )  # fmt: skip
    return Records(kept, None, table.names, ranges, model.labels, start.constant, model.bound)
