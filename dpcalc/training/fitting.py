"""Budget in, model out: a run is described, accounted, executed and measured, in this order.

What is executed is derived from what was accounted and from nothing else (`dpcalc.training.plan`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.engine.ask import without_guarantee
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.gate import Gate
from dpcalc.engine.question import Question
from dpcalc.errors import Infeasible, MissingParameter, NotApplicable, NotConverged, SpecError
from dpcalc.model.run import Description
from dpcalc.model.source import Source
from dpcalc.notes import Centred, CostOfTries, Note, NotTrained, SeveralModels, SumsOfProducts
from dpcalc.report import Assertion, Case
from dpcalc.training import rule, rule_batches, sums_of_products
from dpcalc.training.accounting import account, accounted_run, least_risk, takes_dimension
from dpcalc.training.defaults import fill_loss, fill_split, fill_steps
from dpcalc.training.draft import Draft
from dpcalc.training.phases import Phases, Progress, silent
from dpcalc.training.rule import Rule
from dpcalc.training.setup import OF_UNLEARNING, Average, Setup, Solver

if TYPE_CHECKING:
    from dpcalc.training.guarantee import Guaranteed
    from dpcalc.training.model import Model
    from dpcalc.training.records import Records


class Described(NamedTuple):
    """A run that lacks nothing but its noise.

    Attributes:
        draft, setup, records: what is run, and on what.
        rule: what the default rule chose, if it did.
    """

    draft: Draft
    setup: Setup
    records: Records
    rule: Rule | None


class Fit(NamedTuple):
    """A case with what was measured, and the model if one was trained."""

    case: Case
    model: Model | None


def fit(
    given: Mapping[str, Any],
    question: Question,
    setup: Setup,
    *,
    sources: Mapping[str, Source] | None = None,
    gates: Sequence[Gate] = (),
    phases: Phases = silent,
    accepting: bool = False,
) -> Fit:
    """Return the case of a run that was accounted and then executed; nothing is executed where a gate fails.

    Where the noise can be drawn again, or there are replicas, the numbers of the case are no guarantees.

    Args:
        given: parameter name -> value, None where not given.
        question: epsilon and delta; if noise is given as well, they are checked.
        setup: data and circumstances.
        sources: parameter name -> source.
        gates: parsed assertions.
        phases: told how far each phase of the work is.
        accepting: whether gates are judged although the model is not private; the caller then says that it is not.

    Raises:
        SpecError: description or data are malformed.
        NotApplicable, Infeasible: see `dpcalc.engine.answer.answer`; or the guarantee says nothing.
    """
    fitted = _fit(given, question, setup, sources or {}, gates, phases, accepting)
    return fitted._replace(case=fitted.case.uncovered()) if privacy_gate(setup) else fitted


def _fit(
    given: Mapping[str, Any], question: Question, setup: Setup, sources: Mapping[str, Source], gates: Sequence[Gate],
    phases: Phases, accepting: bool,
) -> Fit:  # fmt: skip
    if setup.tune is not None:
        from dpcalc.training.tuned import fit_tuned

        return fit_tuned(given, question, setup, sources=sources, gates=gates, accepting=accepting)
    if setup.unlearn is not None:
        from dpcalc.training.unlearning import fit_unlearned

        return fit_unlearned(given, question, setup, sources=sources, gates=gates, phases=phases, accepting=accepting)
    from dpcalc.training.guarantee import guarantee

    draft, setup, records, chosen = described(given, question, setup, sources, progress=phases("records read"))
    if setup.solver == Solver.SUMS:
        return _solved(draft, question, records, setup, chosen, gates, accepting, phases)
    rows, columns = records.shape
    weights, asks = columns * draft.loss.scores, None
    try:
        fill_steps(draft, question, weights)
        if records.centred:  # noisy sums of rows are as private as steps, and come first
            asks = rule.centring(draft, question, int(draft["steps"]), rows, columns)
            draft.choose("steps", int(draft["steps"]) + asks.sums)
        made = None if setup.replicas > 1 else guarantee(draft, question, gates, (rows, weights))
    except MissingParameter as error:
        raise rule.without(error, draft) from None
    case = account(draft, question, gates) if made is None else made.case
    case = judged_case(case, draft, chosen, setup, accepting)
    if case.failed:
        return Fit(case, None)
    return _executed(case, made, draft, records, setup, phases, chosen, asks)


def judged_case(case: Case, draft: Draft, chosen: Rule | None, setup: Setup, accepting: bool) -> Case:
    """Return the case with warnings and gates, and a note where it failed.

    Raises:
        NotApplicable: nothing is guaranteed.
    """
    warnings = (*case.warnings, *(chosen.warnings() if chosen else ()))
    case = case._replace(inputs=draft.with_sources(case.inputs), warnings=warnings)
    if case.best is not None and case.best.delta == 1.0:
        raise NotApplicable("nothing is guaranteed: delta is 1", "use more noise, or a larger --epsilon")
    if case.assertions and not accepting:
        case = case._replace(assertions=(*case.assertions, *privacy_gate(setup)))
    return case._replace(note_data=(*case.note_data, NotTrained())) if case.failed else case


def _solved(
    draft: Draft, question: Question, records: Records, setup: Setup, chosen: Rule | None, gates: Sequence[Gate],
    accepting: bool, phases: Phases,
) -> Fit:  # fmt: skip
    """Account for noisy sums of products, and solve least squares by them.

    Raises:
        SpecError, NotApplicable, Infeasible: see `fit`.
    """
    from dpcalc.training.guarantee import guarantee

    rows, columns = records.shape
    accounted = sums_of_products.described(draft)
    made = guarantee(accounted, question, gates, (rows, sums_of_products.entries(columns)))
    case = judged_case(made.case, accounted, chosen, setup, accepting)
    if case.failed:
        return Fit(case, None)
    case = case._replace(note_data=(*case.note_data, SumsOfProducts()))
    return _executed(case, made, draft, records, setup, phases, chosen)


def described(
    given: Mapping[str, Any], question: Question, setup: Setup, sources: Mapping[str, Source],
    read: Callable[..., Records] | None = None, progress: Progress | None = None,
) -> Described:  # fmt: skip
    """Return the run with all that the default rule and the data say of it.

    Args:
        given, question, setup, sources: as in `fit`. What is tuned is a descent.
        read: what reads the records; by default `dpcalc.training.records.read_records`.
        progress: called with how far that is.

    Raises:
        SpecError: description or data are malformed.
        MissingParameter: there is no budget to choose by.
    """
    from dpcalc.training.records import read_records

    draft = Draft(Description(given, sources))
    _check_names(draft)
    fill_loss(draft, setup)
    batched, asked = rule_batches.applies(draft, question), setup
    ruled = batched or rule.applies(draft, question)
    if setup.solver == Solver.SUMS:
        sums_of_products.check(draft, setup)
    setup = rule.settle(setup, draft, ruled=ruled, batched=batched)
    share = rule.CONSTANT if ruled else None
    if read is not None:
        records = read(draft, setup, share=share, progress=progress)
    else:
        wanted = functools.partial(rule.centres, draft, question, asked, ruled=ruled and not batched)
        records = read_records(draft, setup, share=share, progress=progress, centres=wanted)
    rows, columns = records.shape
    setup = setup._replace(centre=records.centred)
    draft.take_shape(rows, columns, with_dimension=draft.laplace and takes_dimension(draft.algorithm))
    chosen = None
    if ruled and not batched and asked.solver != Solver.DESCENT and draft["loss"] == "squares":
        chosen = rule.fill_sums(draft, question, asked, columns)
    if chosen is not None or asked.solver == Solver.SUMS:
        return Described(draft, setup._replace(solver=Solver.SUMS, average=Average.NONE), records, chosen)
    if batched:
        chosen, average = rule_batches.fill(draft, question, asked, columns)
        setup = setup._replace(average=average)
    elif ruled:
        chosen = rule.fill(draft, question, asked, columns, centred=records.centred)
    fill_split(draft)
    draft.fill_model()
    return Described(draft, setup, records, chosen)


def fit_among_others(given: Mapping[str, Any], question: Question, setup: Setup, **more: Any) -> Fit:
    """As `fit`, for one of several cases: one without a guarantee is not trained, and the case says why.

    Raises:
        SpecError: description or data are malformed.
    """
    try:
        case, model = fit(given, question, setup, **more)
    except (NotApplicable, Infeasible, NotConverged) as error:
        return Fit(without_guarantee("train", given, question, error, more.get("gates", ())), None)
    if setup.replicas == 1 and case.training:
        case = case._replace(note_data=(*case.note_data, SeveralModels()))
    return Fit(case, model)


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


def privacy_gate(setup: Setup) -> tuple[Assertion, ...]:
    """Return a gate that fails where the outcome is not private, whatever was accounted; none where it is."""
    from dpcalc.training.execution import EXPERIMENT

    if setup.replicas > 1:
        return (Assertion("private", False, EXPERIMENT, None),)
    if setup.seed is not None:
        return (Assertion("private", False, f"the noise can be drawn again from the seed {setup.seed}", None),)
    return ()


def _executed(
    case: Case, made: Guaranteed | None, draft: Draft, records: Records, setup: Setup, phases: Phases,
    chosen: Rule | None, asks: rule.Centring | None = None,
) -> Fit:  # fmt: skip
    """Carry out what is guaranteed; for replicas, which are an experiment, what was accounted on real numbers.

    Rows are centred by the first steps where ``asks`` says how many of them, and how.
    """
    from dpcalc.training.execution import execute
    from dpcalc.training.model import refuse_too_large
    from dpcalc.training.outcome import Outcome
    from dpcalc.training.plan import plan

    best = case.best
    assert best is not None
    rows, columns = records.shape
    if made is None:
        run, rounding = accounted_run(draft, best), None
        planned = plan(run, rows, columns * draft.loss.scores)
    else:
        _, run, planned, rounding = made
    if setup.average == Average.TAIL:
        planned = planned.averaged()
    source, centre = None, None
    if setup.output is not None:
        scores = draft.loss.scores
        numbers = (planned.iterates_released if draft.given("release") else 1) * (columns + 1) * scores
        refuse_too_large(setup.output, numbers + columns)
    if asks is not None:
        from dpcalc.training.centring import centred
        from dpcalc.training.execution import source_of

        assert rounding is not None  # replicas are not centred
        source = source_of(setup)
        note = Centred(mean_sums=asks.mean, distance_sums=asks.distance, accounted_steps=planned.steps)
        case = case._replace(note_data=(*case.note_data, note))
        records, centre, planned = centred(planned, draft.loss, records, source, rounding, asks)
    trained, non_private = execute(planned, records, draft.loss, draft.radius, setup, phases, rounding, source)
    unknown = planned.tail or setup.solver == Solver.SUMS or draft.loss.classified
    risk = None if unknown else least_risk(draft, run, best, columns)
    outcome = Outcome(draft, setup, records, planned, trained, non_private, risk, chosen, centre=centre)
    case = case._replace(
        training=outcome.to_json(), note_data=(*case.note_data, *outcome.notes(), *_tries(case, setup))
    )
    return Fit(case, outcome.model(case))


_RUNS = 10


def _tries(case: Case, setup: Setup) -> Iterator[Note]:
    """Yield what choosing among several such runs would have cost, where one is known by its mu."""
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
