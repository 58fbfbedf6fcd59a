"""One model, or many replicas: a described run is accounted, executed and measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.checked import Assertion
from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import MissingParameter, NotApplicable, SpecError
from dpcalc.model.draft import Description
from dpcalc.model.quantities import LossName
from dpcalc.notes import Centred, CostOfTries, Note, NotTrained, SumsOfProducts
from dpcalc.report import Case
from dpcalc.training.rule import batches, full_batches, sums_of_products
from dpcalc.training.rule.account import Release, charged, release_of
from dpcalc.training.rule.calibration import Calibrating
from dpcalc.training.rule.defaults import CLASSIFYING, fill_loss, fill_split, fill_steps
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.excess_risk import least_risk
from dpcalc.training.rule.full_batches import Centring, Rule
from dpcalc.training.rule.guarantee import account, accounted_run, takes_dimension
from dpcalc.training.rule.setup import OF_UNLEARNING, Average, Setup, Solver, Task

if TYPE_CHECKING:
    from dpcalc.training.data.bounds import Centre
    from dpcalc.training.data.progress import Phases
    from dpcalc.training.release.execution import Execution, NonPrivate, Replicas, Trained
    from dpcalc.training.release.model import Model
    from dpcalc.training.rule.guarantee import Guaranteed
    from dpcalc.training.rule.records import Records
    from dpcalc.training.run import kernel
    from dpcalc.training.run.plan import Plan
    from dpcalc.training.run.rounding import Rounding

_RUNS = 10  # a usual number of tries; a note states their cost


class Described(NamedTuple):
    """A run that is described except for its noise.

    Attributes:
        draft, setup, records: the run and its records.
        rule: the choices of the default rule, if it made any.
    """

    draft: Draft
    setup: Setup
    records: Records
    rule: Rule | None

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of records and of weights."""
        rows, columns = self.records.shape
        return rows, columns * self.draft.loss.scores

    @property
    def calibrating(self) -> Calibrating:
        """How scores become log-odds."""
        return Calibrating() if self.rule is None else self.rule.calibrating


class Fit(NamedTuple):
    """A case with its measurements, and the model if one was trained."""

    case: Case
    model: Model | None


def fit_described(task: Task) -> Fit:
    """Return the case of a run without tuning or unlearning; see `dpcalc.training.fit.fit`."""
    from dpcalc.training.rule.guarantee import Accounting, guarantee

    run = described(task)
    draft = run.draft
    if run.setup.solver == Solver.SUMS:
        return _fit_sums(run, task)
    centring = None
    try:
        fill_steps(draft, run.shape[1])
        if run.records.centred:  # noisy sums of rows are accounted as steps, and come first
            centring = full_batches.centring(draft, int(draft["steps"]), *run.records.shape)
            draft.choose("steps", int(draft["steps"]) + centring.sums)
        if run.calibrating.steps:
            draft.choose("steps", int(draft["steps"]) + run.calibrating.steps)
        alike = run.setup.replicas > 1 and centring is None and not run.calibrating.steps  # one ensemble trains them
        entries = run.calibrating.entries(draft.loss.scores)
        made = None if alike else guarantee(Accounting(draft, run.shape, entries), task.gates)
    except MissingParameter as error:
        raise full_batches.without(error, draft) from None
    case = account(draft, task.gates) if made is None else made.case
    case = judged_case(case, draft, run.rule, task)
    return Fit(case, None) if case.failed else _executed(case, made, run, task, centring)


def judged_case(case: Case, draft: Draft, rule: Rule | None, task: Task) -> Case:
    """Return the case with warnings and gates, and a note where it failed.

    Raises:
        NotApplicable: delta is 1.
    """
    warnings = () if rule is None else rule.warnings(draft, task.setup)
    for text in warnings:
        task.warned(text)
    case = case._replace(inputs=draft.with_sources(case.inputs), warnings=(*case.warnings, *warnings))
    if case.best is not None and case.best.delta == 1.0:
        raise NotApplicable("nothing is guaranteed: delta is 1", "use more noise, or a larger --epsilon")
    return gated_case(case, task)


def gated_case(case: Case, task: Task) -> Case:
    """Return the case with the gate on privacy, and a note where a gate fails."""
    if case.assertions and not task.accepting:
        from dpcalc.training.release.execution import EXPERIMENT, why_seeded

        because = EXPERIMENT if task.setup.replicas > 1 else why_seeded(task.setup)
        if because is not None:  # the outcome is not private, despite the accounted bound
            case = case._replace(assertions=(*case.assertions, Assertion("private", False, because, None)))
    return case._replace(note_data=(*case.note_data, NotTrained())) if case.failed else case


def _fit_sums(run: Described, task: Task) -> Fit:
    """Account for noisy sums of products, and solve least squares by them."""
    from dpcalc.training.rule.guarantee import Accounting, guarantee
    from dpcalc.training.run.products import entries

    rows, columns = run.records.shape
    accounted = sums_of_products.described(run.draft)
    made = guarantee(Accounting(accounted, (rows, entries(columns))), task.gates)
    case = judged_case(made.case, accounted, run.rule, task)
    if case.failed:
        return Fit(case, None)
    return _executed(case._replace(note_data=(*case.note_data, SumsOfProducts())), made, run, task)


def described(task: Task, read: Callable[..., Records] | None = None) -> Described:
    """Return the run with everything that follows from the default rule and the data.

    Args:
        task: the task; only descents are tuned.
        read: reads the records; by default `dpcalc.training.rule.records.read_records`.

    Raises:
        SpecError: description or data are malformed.
        MissingParameter: the default rule needs a budget that is not given.
    """
    from dpcalc.training.rule.records import read_records

    asked, draft = task.setup, Draft(Description(task.given, task.sources), task.question)
    _check_names(draft)
    fill_loss(draft, asked)
    batched = batches.applies(draft)
    ruled = batched or full_batches.applies(draft)
    if asked.solver == Solver.SUMS:
        sums_of_products.check(draft, asked)
    for flag, given in (("--class-shares", asked.class_shares), ("--class-weight", asked.class_weight)):
        if given is not None and not (ruled and draft["loss"] in CLASSIFYING):
            raise SpecError(f"{flag} is of a classifier by the default rule", f"leave out {flag}, or what turns it off")
    asked.weights(int(draft.get("classes", 2)))  # refused if they are malformed
    setup = full_batches.settle(asked, draft, ruled=ruled, batched=batched)

    def centres(rows: int, columns: int) -> bool:
        whole = ruled and not batched
        return read is None and full_batches.centres(draft, asked, rows, columns, ruled=whole)

    share = full_batches.CONSTANT if ruled else None
    progress = task.phases("records read")
    records = (read or read_records)(draft, setup, share=share, progress=progress, centres=centres)
    setup = setup._replace(centre=records.centred)
    rows, columns = records.shape
    draft.take_shape(rows, columns, with_dimension=draft.laplace and takes_dimension(draft.algorithm))
    rule = None
    if ruled and not batched and asked.solver != Solver.DESCENT and draft["loss"] == LossName.SQUARES:
        rule = full_batches.fill_sums(draft, asked, columns)
    if rule is not None or asked.solver == Solver.SUMS:
        return Described(draft, setup._replace(solver=Solver.SUMS, average=Average.NONE), records, rule)
    if batched:
        rule, average = batches.fill(draft, asked, columns)
        setup = setup._replace(average=average)
    elif ruled:
        rule = full_batches.fill(draft, asked, columns, centred=records.centred)
    fill_split(draft)
    draft.fill_model()
    return Described(draft, setup, records, rule)


def _check_names(draft: Draft) -> None:
    """Refuse parameters and algorithms that train does not take."""
    train = COMMANDS["train"]
    unknown = sorted(set(draft) - set(train.parameters))
    if unknown:
        raise SpecError(f"train does not take {', '.join(unknown)}", f"it takes {', '.join(train.parameters)}")
    algorithm = str(draft["algorithm"])
    of_others = [name for name in OF_UNLEARNING if name in draft]
    if of_others:
        raise SpecError(
            f"{of_others[0]} is of a model that is to forget records, and none is given",
            "give --unlearn MODEL, or ask `dpcalc unlearn` for the number alone",
        )
    if algorithm not in train.algorithms:
        raise SpecError(f"algorithm is {algorithm!r}; to train it must be one of {', '.join(train.algorithms)}")


class _Ready(NamedTuple):
    """An accounted run that is ready to be executed, once or many times.

    Attributes:
        run, plan, rounding: of the run.
        centring: how the first steps centre the rows, if they do.
        phases: as of `dpcalc.training.release.execution.Execution`.
    """

    run: Described
    plan: Plan
    rounding: Rounding | None
    centring: Centring | None
    phases: Phases

    def execution(self, setup: Setup, source: kernel.Source, records: Records) -> tuple[Execution, Centre | None]:
        """Centre the rows in place, if asked for; return the execution that remains, and how rows were centred."""
        from dpcalc.training.release.centring import centred
        from dpcalc.training.release.execution import Execution

        plan, centre = self.plan, None
        if self.centring is not None:
            assert self.rounding is not None  # only full batches are centred, and they have it
            given = plan, self.run.draft.loss, records, source, self.rounding, self.centring
            records, centre, plan = centred(*given)
        if self.run.calibrating.steps:
            plan = plan.without(self.run.calibrating.steps)
        return Execution(
            plan, records, self.run.draft, setup, self.phases, self.rounding, source, calibrating=self.run.calibrating
        ), centre


def _executed(case: Case, made: Guaranteed | None, run: Described, task: Task, centring: Centring | None = None) -> Fit:
    """Charge and execute an accounted run, and report it.

    Args:
        case: of the run, with its best guarantee.
        made: the guaranteed run with plan and rounding; None for an ensemble of replicas, accounted on real numbers.
        run: the described run.
        task: the task.
        centring: how the first steps centre the rows, if they do.
    """
    from dpcalc.training.release.execution import repeated, source_of
    from dpcalc.training.release.outcome import Outcome, refuse_unmeasurable, refuse_unwritable_model
    from dpcalc.training.run.plan import plan

    draft, setup, records, rule = run
    best = case.best
    assert best is not None
    if made is None:
        accounted, rounding = accounted_run(draft, best), None
        planned = plan(accounted, *run.shape)
    else:
        _, accounted, planned, rounding = made
    if setup.average == Average.TAIL:
        planned = planned.averaged()
    refuse_unwritable_model(setup, draft, planned, records.shape[1])
    if setup.evaluate_epsilon is not None:
        refuse_unmeasurable(draft, setup.evaluate_epsilon[0])
    measured = [] if setup.evaluate_epsilon is None else [Release("evaluation", setup.evaluate_epsilon[0])]
    case = charged(case, setup.account, release_of("train", best), *measured)
    if centring is not None:
        note = Centred(mean_sums=centring.mean, distance_sums=centring.distance, accounted_steps=planned.steps)
        case = case._replace(note_data=(*case.note_data, note))
    ready = _Ready(run, planned, rounding, centring, task.phases)
    centre: Centre | None = None
    non_private: NonPrivate | None = None
    trained: Trained | Replicas
    if setup.replicas > 1 and made is not None:
        trained = repeated(lambda one, source: ready.execution(one, source, records.copied())[0], setup, task.phases)
        planned = planned.without((centring.sums if centring else 0) + run.calibrating.steps)
    else:
        executed, centre = ready.execution(setup, source_of(setup), records)
        trained, non_private = executed.outcome()
        records, planned = executed.records, executed.plan
    unknown = planned.tail or setup.solver == Solver.SUMS or draft.loss.classified or setup.class_weight is not None
    risk = None if unknown else least_risk(draft, accounted, best, run.records.shape[1])
    outcome = Outcome(draft, setup, records, planned, trained, non_private, risk, rule, centre=centre)
    notes = (*case.note_data, *outcome.notes(), *_cost_of_tries(case, setup))
    case = case._replace(training=outcome.to_json(), note_data=notes)
    return Fit(case, outcome.model(case))


def _cost_of_tries(case: Case, setup: Setup) -> Iterator[Note]:
    """Yield the privacy cost of choosing among several such runs, where the mu of one is known."""
    from dpcalc.notions import gaussian
    from dpcalc.notions.guarantee import Gdp
    from dpcalc.notions.tuning import Law, tuned_epsilon, tuning_of

    best = case.best
    mu = ((best.details or {}).get("floating_point") or {}).get("mu") if best is not None else None
    if best is None or mu is None or best.log_delta is None or best.epsilon is None:
        return
    value = tuned_epsilon(Gdp(mu), tuning_of(Law.GEOMETRIC, _RUNS), best.log_delta)
    fixed = gaussian.epsilon(mu=gaussian.together([(mu, _RUNS)]), log_delta_target=best.log_delta)
    if math.isfinite(value):
        yield CostOfTries(
            runs=_RUNS, epsilon=best.epsilon, value=value, fixed_number=fixed if math.isfinite(fixed) else None,
            tunable=setup.solver != Solver.SUMS,
        )  # fmt: skip
