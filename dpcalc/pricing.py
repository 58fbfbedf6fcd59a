"""What a budget costs: every bound on the excess risk that applies, the best first, with the run that has it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.bounds.cost import RISKS, Cost
from dpcalc.bounds.holder_rates import gradient_complexity
from dpcalc.errors import DpcalcError, MissingParameter, NotApplicable
from dpcalc.query import Question, first_failure, inputs_of
from dpcalc.references import SHORT
from dpcalc.registry import QUESTIONS, Bound, costs
from dpcalc.report import Case, Obstacle, Result
from dpcalc.spec.symbols import MAX_RECORDS, SYMBOLS, check

_ORDER = tuple(RISKS)
_RAN = ("noise_std", "step_size", "steps", "failure_probability")


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
    return Case(algorithm or "any", inputs, ranked, tuple(obstacles), notes=tuple(_notes(ranked)))


def _result(bound: Bound, told: Mapping[str, Any], question: Question) -> Result:
    code = bound.function.__code__
    asked = {name: told[name] for name in QUESTIONS & set(code.co_varnames[: code.co_kwonlyargcount])}
    missing = [{"log_delta": "delta"}.get(name, name) for name, value in asked.items() if value is None]
    if missing:
        raise MissingParameter(f"needs {', '.join(missing)}", "give " + ", ".join(f"--{name}" for name in missing))
    tried = [bound.function_of({**told, **choice})(**asked) for choice in _choices(bound, told)]
    cost: Cost = min(tried, key=lambda cost: cost.excess_risk)
    if not math.isfinite(cost.excess_risk):
        raise NotApplicable("gives no finite risk here", "more records, or a larger budget")
    trivial = _trivial(told, cost.quantity)
    details = {
        "algorithms": list(bound.algorithms),
        **{
            name: value
            for name, value in cost._asdict().items()
            if name not in ("excess_risk", "quantity") and value is not None
        },
        **({"vacuous": True} if bound.guarantee and trivial is not None and cost.excess_risk >= trivial else {}),
    }
    return Result(
        bound.id, bound.title, cost.quantity, cost.excess_risk, bound.kind, epsilon=question.epsilon,
        delta=question.delta, log_delta=question.log_delta, assumes=bound.assumes,
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
