"""What a budget costs: every bound on the excess risk that applies, the best first, with the run that has it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.bounds.cost import Cost
from dpcalc.bounds.holder_rates import gradient_complexity
from dpcalc.errors import DpcalcError, MissingParameter, NotApplicable
from dpcalc.query import Question, first_failure, inputs_of
from dpcalc.references import SHORT
from dpcalc.registry import QUESTIONS, Bound, costs
from dpcalc.report import Case, Obstacle, Result
from dpcalc.spec.quantities import CHOSEN, RAN, RISKS
from dpcalc.spec.symbols import MAX_RECORDS, SYMBOLS, check

_ORDER = tuple(RISKS)


def priced(values: Mapping[str, Any], origin: Mapping[str, str], question: Question, algorithm: str | None) -> Case:
    """Return the case: every cost that the description allows, and why the others do not apply.

    The best of each kind is marked: of the excess risk in expectation, with high probability, and of the empirical one.

    Args:
        values: parameter name -> value, unchecked.
        origin: parameter name -> source.
        question: epsilon and delta.
        algorithm: only the costs of this one; None for all.

    Raises:
        SpecError: a value is outside its domain.
        NotApplicable: no bound applies; the message and hint are those of the most telling.
    """
    known = {name: check(name, value) if name in SYMBOLS else value for name, value in values.items()}
    known.setdefault("strong_convexity", 0.0)
    told = {**known, "epsilon": question.epsilon, "log_delta": question.log_delta}
    results, obstacles, failures = [], [], []
    for bound in costs():
        if algorithm is not None and algorithm not in bound.algorithms:
            continue
        try:
            results.append(_result(bound, told, question))
        except DpcalcError as error:
            obstacles.append(Obstacle(bound.id, error.message, error.hint or ""))
            failures.append(error)
    if not any(result.guarantee and result.quantity != "smoothing_error" for result in results):
        if question.epsilon is None or question.log_delta is None:
            raise MissingParameter("the budget is not known: needs epsilon and delta", "give --epsilon and --delta")
        raise first_failure(failures, obstacles)
    sources = {name: origin.get(name, "argument" if name in values else "default") for name in known}
    inputs = inputs_of(known, sources, question)
    ranked = tuple(_ranked(results))
    return Case(
        algorithm or "any", inputs, ranked, tuple(obstacles), notes=(*_notes(ranked), *_own_choice(ranked, values))
    )


def _result(bound: Bound, told: Mapping[str, Any], question: Question) -> Result:
    code = bound.function.__code__
    asked = {name: told[name] for name in QUESTIONS & set(code.co_varnames[: code.co_kwonlyargcount])}
    own_noise = "epsilon" not in asked and "noise_std" in bound.parameters and told.get("noise_std") is not None
    if own_noise and question.epsilon is not None:
        raise NotApplicable("is of a noise that is given, whatever its privacy", "leave out --epsilon and --delta")
    if told.get("tasks", 1) > 1 and "tasks" not in bound.parameters and asked:
        raise NotApplicable("is for one task", "leave out --tasks")
    missing = [{"log_delta": "delta"}.get(name, name) for name, value in asked.items() if value is None]
    if missing:
        raise MissingParameter(f"needs {', '.join(missing)}", "give " + ", ".join(f"--{name}" for name in missing))
    try:
        tried = [bound.function_of({**told, **choice})(**asked) for choice in _choices(bound, told)]
    except OverflowError:
        raise NotApplicable("overflows here", "constants of a more usual size") from None
    cost: Cost = min(tried, key=lambda cost: cost.excess_risk)
    budget = (question.epsilon, question.delta, question.log_delta) if asked else (None, None, None)
    if not math.isfinite(cost.excess_risk):
        raise NotApplicable("gives no finite risk here", "more records, or a larger budget")
    trivial = _trivial(told, cost.quantity)
    details: dict[str, Any] = {"algorithms": list(bound.algorithms)}
    details.update({name: value for name in RAN if (value := getattr(cost, name)) is not None})
    if "index" in bound.parameters:
        details["covers"] = f"one of the records up to {told['index']}"
    elif "public_records" in bound.parameters:
        details["covers"] = "one of the records that are not public"
    if bound.guarantee and trivial is not None and cost.excess_risk >= trivial:
        details["vacuous"] = True
    return Result(
        bound.id, bound.title, cost.quantity, cost.excess_risk, bound.kind, epsilon=budget[0], delta=budget[1],
        log_delta=budget[2], assumes=bound.assumes,
        reference=f"{SHORT[bound.reference]}, {bound.locator}", details=details,
    )  # fmt: skip


def _choices(bound: Bound, told: Mapping[str, Any]) -> list[dict[str, int]]:
    """Return the numbers of steps to try where it is free: one pass, ten, and the order that Wang et al. advise."""
    if "steps" not in bound.parameters or "steps" in told or "records" not in told:
        return [{}]
    records = told["records"]
    advised = gradient_complexity(records=records, holder_exponent=told.get("holder_exponent", 1.0))
    return [{"steps": steps} for steps in sorted({records, 10 * records, advised}) if steps <= MAX_RECORDS]


def _trivial(told: Mapping[str, Any], quantity: str) -> float | None:
    """Return what no point of the domain exceeds, by its size or the range of the loss."""
    lipschitz, curvature = told.get("lipschitz"), told.get("strong_convexity")
    found = [told["loss_range"]] if told.get("loss_range") is not None else []
    if lipschitz is not None and told.get("radius") is not None:
        found.append(2.0 * told["radius"] * lipschitz)
    if lipschitz is not None and curvature and quantity == "empirical_excess_risk":
        found.append(2.0 * lipschitz * lipschitz / curvature)
    return min(found, default=None)


def _group(result: Result) -> tuple[int, bool]:
    return _ORDER.index(result.quantity), "failure_probability" in (result.details or {})


def _ranked(results: list[Result]) -> Iterator[Result]:
    """Yield the results best first, kind by kind; the best guarantee of each is marked."""
    marked = set()
    for result in sorted(results, key=lambda r: (_group(r), not r.guarantee, r.value)):
        best = result.guarantee and _group(result) not in marked and result.quantity != "smoothing_error"
        if best:
            marked.add(_group(result))
        yield result._replace(best=best)


def _own_choice(results: tuple[Result, ...], values: Mapping[str, Any]) -> Iterator[str]:
    """Say where a best result is of another run than was described."""
    for result in results:
        ran = result.details or {}
        other = [name for name in CHOSEN if name in values and name in ran and ran[name] != values[name]]
        if result.best and other:
            yield f"{result.bound} chooses {', '.join(other)} itself: it is not of the run described"


def _notes(results: tuple[Result, ...]) -> Iterator[str]:
    best = [result for result in results if result.best]
    if best and all((result.details or {}).get("vacuous") for result in best):
        yield (
            "every bound here is vacuous: it exceeds the largest excess risk that any point of the domain can have; "
            "more records, a larger budget, or fewer dimensions are needed for a number that says something"
        )
    else:
        empty = [result.bound for result in best if (result.details or {}).get("vacuous")]
        if empty:
            yield f"{', '.join(empty)}: vacuous, above the largest excess risk that any point of the domain can have"
