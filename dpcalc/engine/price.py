"""The cost of a budget: every applicable bound on the excess risk, the best first, with its run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from dpcalc.engine.answer import Refused, failure_warnings, first_failure, obstacles_of, rows_of
from dpcalc.engine.commands import inputs_of
from dpcalc.errors import DpcalcError, MissingParameter, NotApplicable
from dpcalc.model.algorithm import ALGORITHMS, ANY, Source
from dpcalc.model.draft import Description
from dpcalc.model.parameter import MAX_RECORDS, PARAMETERS, check, to_give
from dpcalc.model.quantities import CHOSEN, RAN, RISKS, Given, Quantity
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.notes import Note, OwnChoice, Vacuous
from dpcalc.notions.conversions import Risk
from dpcalc.references import SHORT
from dpcalc.report import Case, Result
from dpcalc.theorems.record import Theorem, costs, needs
from dpcalc.theorems.risk.holder_sgd import PrivateSgd, gradient_complexity

_ORDER = tuple(RISKS)


def priced(description: Description, question: Question, algorithm: str | None) -> Case:
    """Return the case: every cost that the description allows, and why the others do not apply.

    The best of each kind is marked: of the excess risk in expectation, with high probability, and of the empirical one.

    Args:
        description: the parameters, unchecked.
        question: epsilon and delta.
        algorithm: only the costs of this one; None for all.

    Raises:
        SpecError: a value is outside its domain.
        NotApplicable: no bound applies; the message and hint are those of the most telling.
    """
    typed = dict(description)
    for name, value in typed.items():
        description[name] = check(name, value) if name in PARAMETERS else value
    description.fill("strong_convexity", 0.0, Source.DEFAULT)
    run = _run(description, question)
    bounds = [bound for bound in costs() if algorithm is None or algorithm in bound.algorithms]
    results, refused = rows_of(bounds, lambda bound, _: [_result(bound, run, question)])
    if not any(result.guarantee and result.quantity != Quantity.SMOOTHING_ERROR for result in results):
        if question.epsilon is None or question.log_delta is None:
            raise MissingParameter(
                "the budget is not known: needs epsilon and delta",
                "give --epsilon and --delta; for example --epsilon 1 --delta 1e-6",
            )
        lacking = sorted((row for row in refused if set(row[1].parameters or ("?",)) <= _BASIC), key=_order)
        raise _with_examples(first_failure(lacking or refused))
    inputs = inputs_of(description, description.sources, question)
    ranked = tuple(_ranked(results))
    return Case(
        algorithm or "any", inputs, ranked, obstacles_of(refused), warnings=failure_warnings(refused),
        note_data=(*_vacuous(ranked), *_own_choice(ranked, typed)),
    )  # fmt: skip


_BASIC = frozenset({"records", "dimension", "radius", "lipschitz"})
"""The parameters that every bound on the risk needs."""


def _order(row: Refused) -> tuple[bool, int]:
    """Order bounds on the risk before those on a smoothing error, and those that ask for the most first."""
    return row[0].family == "smoothing", -len(row[1].parameters)


def _with_examples(error: DpcalcError) -> DpcalcError:
    """Return the error with an example of each parameter that it asks for, where it asks for some."""
    if not (isinstance(error, MissingParameter) and error.parameters and PARAMETERS.keys() >= set(error.parameters)):
        return error
    return MissingParameter(error.message, to_give(error.parameters), parameters=error.parameters)


def _run(description: Description, question: Question) -> Run:
    """Return the run described, of no algorithm in particular, with the budget."""
    budget = {"epsilon": question.epsilon, "log_delta": question.log_delta}
    return Run(
        algorithm=ANY, **{name: value for name, value in {**description, **budget}.items() if name in Run.fields}
    )


_COVERS = {
    "index": "one of the records up to {}",
    "public_records": "one of the records that are not public",
}
"""Parameters of a bound that is not of every record, and of which it then is."""


def _result(bound: Theorem, run: Run, question: Question) -> Result:
    own_noise = not bound.budgeted and "noise_std" in bound.parameters and run.noise_std is not None
    if own_noise and question.epsilon is not None:
        raise NotApplicable("is of a noise that is given, whatever its privacy", "leave out --epsilon and --delta")
    if (run.tasks or 1) > 1 and "tasks" not in bound.parameters and bound.budgeted:
        raise NotApplicable("is for one task", "leave out --tasks")
    missing = [name for name in ("epsilon", "log_delta") if name in bound.reads and run.value(name) is None]
    if missing:
        missing_budget = needs(*({"log_delta": "delta"}.get(name, name) for name in missing))
        raise MissingParameter(missing_budget.because, missing_budget.cure, parameters=missing_budget.parameters)
    try:
        cost = _least(bound, [run.changed(**choice) for choice in _choices(bound, run)])
    except OverflowError:
        raise NotApplicable("overflows here", "constants of a more usual size") from None
    budget = (question.epsilon, question.delta, question.log_delta) if bound.budgeted else (None, None, None)
    if not math.isfinite(cost.excess_risk):
        raise NotApplicable("gives no finite risk here", "more records, or a larger budget")
    trivial = _trivial(run, cost.quantity)
    details: dict[str, Any] = {"algorithms": list(bound.algorithms)}
    details.update({name: value for name in RAN if (value := getattr(cost, name)) is not None})
    if covers := next((words for name, words in _COVERS.items() if name in bound.parameters), ""):
        details["covers"] = covers.format(run.index)
    if bound.guarantee and trivial is not None and cost.excess_risk >= trivial:
        details["vacuous"] = True
    return Result(
        bound.id, bound.title, cost.quantity, cost.excess_risk, bound.kind, epsilon=budget[0], delta=budget[1],
        log_delta=budget[2], assumes=bound.assumes,
        reference=f"{SHORT[bound.reference]}, {bound.locator}", details=details,
    )  # fmt: skip


_SHORT = 0.99  # a hope may be too high by this factor


def _least(bound: Theorem, runs: Sequence[Run]) -> Risk:
    """Return the least cost of these runs. The most promising is evaluated first, and hopeless ones are skipped."""
    least: Risk | None = None
    hopes = [(_hope(bound, run) if len(runs) > 1 else -math.inf, run) for run in runs]
    for hope, run in sorted(hopes, key=lambda pair: pair[0]):
        if least is not None and _SHORT * hope >= least.excess_risk:
            break
        cost: Risk = bound.prove(run)
        if least is None or cost.excess_risk < least.excess_risk:
            least = cost
    assert least is not None
    return least


def _hope(bound: Theorem, run: Run) -> float:
    """Return about the least cost that a bound may give, where the noise in its steps takes a long search; else -inf.

    It comes from less noise than the search mostly finds.
    """
    noisy_steps = not any(ALGORITHMS[name].noisy_output for name in bound.algorithms)
    if not noisy_steps or not issubclass(bound.setting, PrivateSgd) or bound.obstacle(run) is not None:
        return -math.inf
    setting: PrivateSgd = bound.setting.of(run, bound.reads)
    return float(bound.function(setting.hoped()).excess_risk)


def _choices(bound: Theorem, run: Run) -> list[dict[str, int]]:
    """Return the numbers of steps to try where it is free: one pass, ten, and the order that Wang et al. advise."""
    if "steps" not in bound.parameters or run.steps is not None or run.records is None:
        return [{}]
    records, exponent = run.records, 1.0 if run.holder_exponent is None else run.holder_exponent
    advised = gradient_complexity(records=records, holder_exponent=exponent)
    return [{"steps": steps} for steps in sorted({records, 10 * records, advised}) if steps <= MAX_RECORDS]


def _trivial(run: Run, quantity: str) -> float | None:
    """Return the trivial bound on the risk at any point, from the domain's size or the range of the loss."""
    lipschitz, curvature = run.lipschitz, run.strong_convexity
    limits = [run.loss_range] if run.loss_range is not None else []
    if lipschitz is not None and run.radius is not None:
        limits.append(2.0 * run.radius * lipschitz)
    if lipschitz is not None and curvature and quantity == Quantity.EMPIRICAL_EXCESS_RISK:
        limits.append(2.0 * lipschitz * lipschitz / curvature)
    return min(limits, default=None)


def _group(result: Result) -> tuple[int, bool]:
    return _ORDER.index(result.quantity), (result.details or {}).get("failure_probability") is not None


def _ranked(results: list[Result]) -> Iterator[Result]:
    """Yield the results best first, kind by kind; the best guarantee of each is marked."""
    marked = set()
    for result in sorted(results, key=lambda r: (_group(r), not r.guarantee, r.value)):
        best = result.guarantee and _group(result) not in marked and result.quantity != Quantity.SMOOTHING_ERROR
        if best:
            marked.add(_group(result))
        yield result._replace(best=best)


def _own_choice(results: tuple[Result, ...], typed: Given) -> Iterator[Note]:
    """Yield a note if a best result is for another run than the described one."""
    for result in results:
        ran = result.details or {}
        other = tuple(name for name in CHOSEN if name in typed and name in ran and ran[name] != typed[name])
        if result.best and other:
            yield OwnChoice(bound=result.bound, parameters=other)


def _vacuous(results: tuple[Result, ...]) -> Iterator[Note]:
    """Yield a note if best results are vacuous."""
    best = [result for result in results if result.best]
    vacuous = tuple(result.bound for result in best if (result.details or {}).get("vacuous"))
    if vacuous:
        yield Vacuous(bounds=vacuous, all=len(vacuous) == len(best))
