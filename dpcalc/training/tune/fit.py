"""Training with a choice among settings that the guarantee covers: the best of a random number of runs.

Only the best run is released; the number of runs, the other runs and their scores are discarded. Runs are scored on
public records, or on records held out of the training records, the same in every run; scores on the latter have exact
integer noise.
"""

from __future__ import annotations

import random
import secrets
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.engine.commands import inputs_of
from dpcalc.engine.gate import Gate, judged
from dpcalc.errors import GateRefused, MissingParameter, SpecError
from dpcalc.files import Fields
from dpcalc.model.algorithm import Source
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.question import Query, Question
from dpcalc.notes import NothingDrawn, Tuned
from dpcalc.report import Case
from dpcalc.training.data import bounds as bounding
from dpcalc.training.data import tables
from dpcalc.training.data.bounds import Prepared
from dpcalc.training.data.cells import Classes
from dpcalc.training.data.progress import silent
from dpcalc.training.release import discrete_laplace, execution
from dpcalc.training.release.fitting import Described, Fit, described, gated_case
from dpcalc.training.release.metrics import LEVELS, sums_of
from dpcalc.training.release.outcome import Outcome, refuse_unwritable_model
from dpcalc.training.rule.account import charged, release_of
from dpcalc.training.rule.candidates import TRAVEL, Tune
from dpcalc.training.rule.defaults import CLASSIFYING, fill_steps
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.guarantee import Accounting, Guaranteed, guarantee, rounding_note
from dpcalc.training.rule.records import Records, read_records
from dpcalc.training.rule.setup import Average, Setup, Task
from dpcalc.training.run import kernel, single
from dpcalc.training.run.checks import refuse_overflow
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.tune import run_count
from dpcalc.training.tune.guarantee import TunedGuarantee, part_of, tuned_guarantee

Array = NDArray[np.float64]

_NOISE = (*NOISE_SCALES, "noise_multiplier")


_NO_CARD = "there is no privacy card of it: a card states the best of several runs where each is known by a mu"


class _Best(NamedTuple):
    """The best run so far: its score, where larger is better, its candidate, and its outcome."""

    score: int
    place: int
    weights: Array
    released: Array


class _Reader:
    """The training records, read once for all candidates, and the records that runs are scored on."""

    def __init__(self, tune: Tune) -> None:
        self.tune = tune
        self.records: Records | None = None
        self.scored: Prepared | None = None

    def __call__(self, draft: Draft, setup: Setup, *, share: float | None, **more: Any) -> Records:
        """Return the training records, as `dpcalc.training.rule.records.read_records`."""
        if self.records is None:
            records = read_records(draft, setup, share=share, **more)
            if self.tune.public is not None:
                self.scored = _public(self.tune.public, draft, setup, records, share)
            else:
                assert self.tune.held_out is not None
                splitting = np.random.default_rng(None if setup.seed is None else (setup.seed, 3))
                train, self.scored = bounding.split(records.train, self.tune.held_out, splitting)
                records = records._replace(train=train)
            self.records = records
        return self.records


def _public(path: str, draft: Draft, setup: Setup, records: Records, share: float | None) -> Prepared:
    """Return the public records that runs are scored on, read as the training records are.

    Raises:
        SpecError: they have other columns.
    """
    labels, ranges = setup.label_rule, setup.ranges
    if setup.example and ranges is None:
        ranges = tables.example_file(setup.example, ".ranges.csv")
    positive = None
    if isinstance(labels, Classes):
        named: list[str] | None = list(labels.names)
    elif labels.negative is not None and labels.positive is not None:
        named = [labels.negative, labels.positive]
    else:
        named, positive = None, labels.positive
    reading = setup._replace(
        data=path, synthetic=None, target=records.names[-1], ranges=ranges, test_fraction=0.0, labels=named,
        positive=positive,
    )  # fmt: skip
    records_read = read_records(draft, reading, share=share)
    if records_read.names != records.names:
        raise SpecError(
            f"the public records to score on have the columns {', '.join(records_read.names)[:200]}",
            f"they must be those that are trained on: {', '.join(records.names)[:200]}",
        )
    return records_read.train


def fit_tuned(task: Task) -> Fit:
    """Return the case of the best of a random number of runs; as `dpcalc.training.fit.fit`.

    Raises:
        MissingParameter: the budget is not given.
        SpecError, NotApplicable, Infeasible: as in `fit`; or the guarantee of a candidate has no curve.
    """
    setup, question = task.setup, task.question
    tune = setup.tune
    assert tune is not None
    _check(task, tune)
    reader, runs = _Reader(tune), _Runs(task)
    makes = [lambda budget, place=place: runs.made(place, budget, reader) for place in range(len(tune.candidates))]
    tuned = tuned_guarantee(makes, tune, question)
    case = _case(tuned, runs.candidates[0].draft, question, task.gates, tune)
    ruled = [candidate for candidate in runs.candidates if candidate.rule is not None]
    warned = {text: None for one in ruled if one.rule for text in one.rule.warnings(one.draft, setup)}
    for text in warned:
        task.warned(text)
    if tuned.ledger is None:
        setup = setup._replace(card=False)
        warned[_NO_CARD] = None
    case = gated_case(case._replace(warnings=(*case.warnings, *warned)), task)
    if case.failed:
        return Fit(case, None)
    assert reader.scored is not None
    return _executed(case, tuned, runs.candidates, reader.scored, setup, tune)


def _check(task: Task, tune: Tune) -> None:
    """Refuse a task without a budget, with given noise, with a tuned parameter given, or with a gate on attacks.

    Raises:
        MissingParameter, SpecError, GateRefused: for these reasons.
    """
    if task.question.epsilon is None or task.question.log_delta is None:
        raise MissingParameter(
            "what the choice among candidates may cost is not known",
            "give --epsilon and --delta; for example --epsilon 1 --delta 1e-6",
        )
    named = {name for name, value in task.given.items() if value is not None}
    if noisy := [name for name in _NOISE if name in named]:
        raise SpecError(
            f"the noise of a tuned run follows from the budget, and {noisy[0]} is given", "leave it out, or --tune"
        )
    if twice := [name for name in tune.settings if name in named]:
        raise SpecError(f"{twice[0]} is given, and it is also tuned", "leave out one of the two")
    for gate in task.gates:
        if gate.of_attack:
            raise GateRefused(
                f"{gate.text!r} speaks of the run on real numbers, and what is released is rounded",
                "ask `dpcalc ledger` with the same runs",
            )


class _Runs:
    """The candidates as complete runs, given the budget of one run."""

    def __init__(self, task: Task) -> None:
        assert task.setup.tune is not None
        self.task, self.settings = task._replace(phases=silent), task.setup.tune.candidates
        self._found: dict[int, Described] = {}

    @property
    def candidates(self) -> list[Described]:
        """The candidates, as they were last described."""
        return [self._found[place] for place in range(len(self.settings))]

    def made(self, place: int, budget: Question, reader: _Reader) -> Guaranteed:
        """Return the guarantee of one run of a candidate with the noise for this budget."""
        settings = self.settings[place]
        tuned = {name: value for name, value in settings.items() if name != TRAVEL}
        sources = {**self.task.sources, **dict.fromkeys(tuned, Source.ARGUMENT)}
        given = {**self.task.given, **tuned}
        run = described(self.task._replace(given=given, question=budget, sources=sources), reader)
        if TRAVEL in settings:
            run = _travelling(run, settings[TRAVEL])
        fill_steps(run.draft, run.shape[1])
        self._found[place] = run
        return guarantee(Accounting(run.draft, run.shape))


def _travelling(found: Described, share: float) -> Described:
    """Return the run with the step size for this travel, in units of kappa.

    Raises:
        SpecError: the default rule does not cover the run.
    """
    rule = found.rule
    if rule is None or rule.travel is None:
        raise SpecError("travel is of the default rule, which says nothing of this run", "tune step_size instead")
    step_size = float(found.draft["step_size"]) * share * rule.kappa / rule.travel
    found.draft.choose("step_size", float(f"{step_size:.4g}"))
    picks = {**rule.picks}
    picks.pop("step_size", None)
    return found._replace(rule=rule._replace(travel=share * rule.kappa, picks=picks))


# --- the case ---------------------------------------------------------------------------------------------------------


def _case(found: TunedGuarantee, draft: Draft, question: Question, gates: Sequence[Gate], tune: Tune) -> Case:
    """Return the case before anything is run; its inputs are those of the first candidate without tuned parameters."""
    query, runs = None, ()
    if found.ledger is not None:
        query = Query("ledger", {"ledger": found.ledger}, found.question)
        runs = tuple(made.case.query._replace(bound=made.case.best.bound) for made in found.made if made.case.best)
    base = found.made[0].case  # its algorithm determines what is released
    noisy = base.best.quantity if base.best is not None else ""
    hidden = {noisy, "step_size", *tune.settings}
    inputs = {name: value for name, value in _inputs(found, 0, draft, question).items() if name not in hidden}
    case = Case(
        base.algorithm,
        inputs,
        (found.row,),
        base.obstacles,
        note_data=(rounding_note(found.row),),
        query=query,
        runs=runs,
    )
    return case._replace(assertions=judged(gates, case))


def _inputs(found: TunedGuarantee, place: int, draft: Draft, question: Question) -> dict[str, tuple[Any, Source]]:
    """Return the inputs of a candidate, with its noise."""
    case = found.made[place].case
    assert case.best is not None
    inputs = {**draft.with_sources(case.inputs), **inputs_of({}, {}, question)}
    return {**inputs, str(case.best.quantity): (case.best.value, Source.DEFAULT)}


def _told(found: TunedGuarantee, tune: Tune, scored: Prepared) -> dict[str, Any]:
    """Return the public part of the choice; the number of runs and the other scores are not public."""
    candidates = []
    for settings, made in zip(tune.candidates, found.made, strict=True):
        best = made.case.best
        assert best is not None
        mean = part_of(made).mu
        mu = {} if mean is None else {"mu": mean}
        candidates.append({**settings, best.quantity: best.value, **mu, "bound": best.bound})
    score = {
        "on": "public records" if tune.public is not None else "records held out", "records": len(scored.labels),
        "epsilon": found.score_epsilon,
    }  # fmt: skip
    return {
        "distribution": str(tune.law), "mean": tune.tuning.mean, "candidates": candidates, "score": score,
    }  # fmt: skip


# --- execution --------------------------------------------------------------------------------------------------------


def _executed(
    case: Case, found: TunedGuarantee, candidates: Sequence[Described], scored: Prepared, setup: Setup, tune: Tune
) -> Fit:
    """Run randomly drawn candidates and keep only the best."""
    plans = [
        made.plan.averaged() if candidate.setup.average == Average.TAIL else made.plan
        for made, candidate in zip(found.made, candidates, strict=True)
    ]
    _refuse(plans, candidates, setup)
    case = charged(case, setup.account, release_of("tune", found.row))
    choice = _told(found, tune, scored)
    note = Tuned(
        law=str(tune.law), mean=tune.tuning.mean, candidates=len(candidates), on=choice["score"]["on"],
        records=len(scored.labels), score_epsilon=found.score_epsilon,
    )  # fmt: skip
    case = case._replace(note_data=(note, *case.note_data))
    drawing = None if setup.seed is None else random.Random(setup.seed)
    below = secrets.randbelow if drawing is None else drawing.randrange
    best: _Best | None = None
    source = ""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would reveal something about the records
        for _ in range(run_count.draw(tune.tuning, tune.mean, below)):
            place = below(len(candidates))
            drawn = _source(setup, drawing)
            source = drawn.label
            candidate, rounding = candidates[place], found.made[place].rounding
            records = candidate.records.train
            problem = Problem(records.features, records.labels, candidate.draft.loss)
            weights, released = single.train(plans[place], problem, drawn, rounding=rounding)
            score = _scored(weights, scored, candidate.draft, found.score_epsilon, below)
            if best is None or score > best.score:
                best = _Best(score, place, weights, released)
    if best is None:
        return Fit(case._replace(note_data=(*case.note_data, NothingDrawn())), None)
    return _released(case, best, found, candidates, plans, setup, source, choice, scored)


def _refuse(plans: Sequence[Plan], candidates: Sequence[Described], setup: Setup) -> None:
    """Refuse, before anything is run, a candidate that could not be executed or written."""
    for planned, candidate in zip(plans, candidates, strict=True):
        refuse_overflow(planned, candidate.draft.loss)
        refuse_unwritable_model(setup, candidate.draft, planned, candidate.records.shape[1])


def _source(setup: Setup, drawing: random.Random | None) -> kernel.Source:
    """Return fresh randomness for one run."""
    if drawing is None:
        return execution.source_of(setup)
    return kernel.seeded(drawing.getrandbits(63))._replace(label=kernel.seeded(setup.seed or 0).label)


def _scored(
    weights: Array, scored: Prepared, draft: Draft, epsilon: float | None, below: discrete_laplace.Below
) -> int:
    """Return the score of a model with noise: an integer that a replaced record changes by at most `_most`.

    On public records, where ``epsilon`` is None, there is no noise.
    """
    exact = score_of(weights, scored, draft)
    if epsilon is None:
        return exact
    return exact + discrete_laplace.draw(Fraction(epsilon) / _most(draft), below)


def _most(draft: Draft) -> int:
    return 1 if draft["loss"] in CLASSIFYING else LEVELS


def score_of(weights: Array, scored: Prepared, draft: Draft) -> int:
    """Return the number of correct predictions, or for a regression minus the sum of absolute errors, in `LEVELS`.

    The term of a record depends on that record and its place alone. Errors are clipped to the width of the range.
    Squared errors would be worse: most are a far smaller part of the largest, and would drown in the noise.
    """
    sums = sums_of(weights, Problem(scored.features, scored.labels, draft.loss))
    return sums.sums[0] if sums.most == 1 else -sums.sums[0]


def _measured(score: int, scored: Prepared, draft: Draft, records: Records) -> dict[str, float]:
    """Return the score of the best run as an accuracy or a mean absolute error."""
    count = len(scored.labels)
    classifying = draft["loss"] in CLASSIFYING
    share = min(max(abs(score) / count / _most(draft), 0.0), 1.0) if (score > 0) == classifying else 0.0
    if classifying:
        return {"accuracy": share}
    return {"mae": share * records.target_width(float(draft.get("label_bound", 1.0)))}


def _released(
    case: Case, best: _Best, found: TunedGuarantee, candidates: Sequence[Described], plans: Sequence[Plan],
    setup: Setup, source: str, choice: Fields, scored: Prepared,
) -> Fit:  # fmt: skip
    """Return the case and the model of the best run."""
    chosen = candidates[best.place]
    draft, records = chosen.draft, chosen.records
    settled = chosen.setup._replace(card=setup.card)
    parts = execution.parts_of(records, draft.loss)
    metrics = execution.measured(best.weights, parts, setup)
    trained = execution.Trained(best.weights, best.released, execution.randomness_of(setup, source), metrics)
    score = {**choice["score"], **_measured(best.score, scored, draft, records)}
    choice = {**choice, "score": score, "chosen": best.place}
    outcome = Outcome(draft, settled, records, plans[best.place], trained, None, None, chosen.rule, choice)
    budget = {name: value for name, value in case.inputs.items() if name in ("epsilon", "delta")}
    inputs = {**_inputs(found, best.place, draft, Question()), **budget}
    case = case._replace(
        algorithm=found.made[best.place].case.algorithm, inputs=inputs, training=outcome.to_json(),
        note_data=(*case.note_data, *outcome.notes()),
    )  # fmt: skip
    return Fit(case, outcome.model(case))
