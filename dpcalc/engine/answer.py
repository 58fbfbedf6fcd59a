"""From a described run and a question to a case: evaluate every bound that applies, and rank the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dpcalc.engine.commands import inputs_of
from dpcalc.engine.evaluate import ROWS, Application
from dpcalc.engine.question import Sought
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import (
    BoundFailed,
    Disproved,
    DpcalcError,
    Infeasible,
    MissingParameter,
    NotApplicable,
    SpecError,
    Superseded,
    isolate_failure,
)
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import Quantity
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Composition
from dpcalc.report import Case, Obstacle, Result
from dpcalc.theorems.record import Theorem, for_algorithm

Refused = tuple[Theorem, DpcalcError]
"""A bound that gave no result, and the reason."""


def answer(run: Run, question: Question, bounds: Sequence[Theorem] | None = None) -> Case:
    """Return the case: every applicable bound's answer, best first, and why the others do not apply.

    Args:
        run: as described.
        question: what is sought.
        bounds: the bounds to evaluate; None for all that cover the algorithm.

    Raises:
        SpecError: the question is incomplete or over-determined.
        Disproved: a lower bound contradicts the best guarantee.
        NotApplicable: no bound applies; the message and hint are those of the first.
        Infeasible: bounds apply but none meets the budget.
    """
    unknown = Sought(run, question).unknown
    if bounds is None:
        bounds = for_algorithm(run.algorithm.name, run.algorithm.families)
    results, refused = rows_of(
        sorted(bounds, key=lambda bound: bound.lower or bool(bound.unpromised(run))),  # they are compared with the best
        lambda bound, results: _rows_of_bound(Application(bound, run, question), unknown, results),
    )
    rows = ranked(results, unknown)
    if not (rows and rows[0].best):
        raise first_failure(refused)
    recorded = dict(run.values)
    recorded.pop(unknown, None)
    for name, source in run.sources.items():
        if source is Source.FILE and name != "schedule":  # of what is read from a schedule, that is the input
            recorded.pop(name, None)
    return Case(
        run.algorithm.name, inputs_of(recorded, run.sources, question), rows, obstacles_of(refused),
        warnings=(*failure_warnings(refused), *_edge_warnings(results, question)),
    )  # fmt: skip


def best_guarantee(
    run: Run, question: Question, bounds: Iterable[Theorem] | None = None, **changes: Any
) -> Result | None:
    """Return the best guarantee for a run, without the lower values beside it; None if there is none.

    Args:
        run: as described.
        question: what is sought.
        bounds: in the order in which they are evaluated; None for all that cover the algorithm.
        changes: parameters of the run that are replaced.
    """
    try:
        run = run.replacing(**changes)
        if bounds is None:
            bounds = for_algorithm(run.algorithm.name, run.algorithm.families)
        return answer(run, question, [bound for bound in bounds if bound.guarantee and not bound.unpromised(run)]).best
    except DpcalcError:
        return None


def _rows_of_bound(asked: Application, unknown: str, results: Sequence[Result]) -> list[Result]:
    """Return the results of one bound, given those so far."""
    if asked.bound.slow and not asked.question.targets:
        from dpcalc.engine.solving.attacks import COMPARABLE, floor_near, refuse_unless_better

        if asked.unmet:
            refuse_unless_better(asked, unknown, results)
        best = min((row for row in results if row.guarantee), key=lambda row: row.value, default=None)
        if asked.bound.lower and best and best.value and unknown in COMPARABLE:
            return [floor_near(best, asked, unknown)]
    if unknown in ROWS:
        if asked.question.rough and unknown == Quantity.EPSILON:
            _refuse_if_hopeless(asked, results)
        return ROWS[unknown](asked)
    from dpcalc.engine.solving.budget import as_multiplier, solve

    if asked.question.targets:
        from dpcalc.engine.solving.attacks import solve_for_risk as solve
    if unknown == "noise_multiplier" and not asked.run.algorithm.clipped:
        return [as_multiplier(solve(asked, "noise_std"), asked.run)]
    return [solve(asked, unknown)]


def _refuse_if_hopeless(asked: Application, results: Sequence[Result]) -> None:
    """Refuse to compose what cannot be the best answer: where little overlaps, no small epsilon holds.

    With P(A) <= e^epsilon Q(A) + delta for all A, P and Q have (1 - delta) e^-epsilon in common at least.
    """
    least = min((row.value for row in results if row.guarantee), default=math.inf)
    if asked.bound.gives is not Composition or math.isinf(least):
        return
    if -asked.guarantee.log_overlap() + math.log1p(-math.exp(asked.budget[1])) > least:
        raise Superseded("is far above another answer", "")


def _edge_warnings(results: Sequence[Result], question: Question) -> tuple[str, ...]:
    """Return a warning if the best of the given orders is the first or the last of them.

    A search over all orders needs none: its ends are limits, not a choice.
    """
    if not question.orders:
        return ()
    edges = [result.bound for result in results if result.details and result.details.get("order_at_edge")]
    if not edges:
        return ()
    return (f"the best order lies at the edge of those tried for {', '.join(edges)}: more orders would tighten it",)


# --- the rows of a case ---


def rows_of(
    bounds: Iterable[Theorem],
    evaluate: Callable[[Theorem, list[Result]], list[Result]],
) -> tuple[list[Result], list[Refused]]:
    """Return the results of all bounds, and the bounds that gave none with the error that each raised.

    Args:
        bounds: in the order in which they are evaluated.
        evaluate: returns the results of one bound; it is passed those so far.

    Raises:
        SpecError: the question itself is malformed.
        Disproved: a guarantee is below the truth.
    """
    results: list[Result] = []
    refused: list[Refused] = []
    for bound in bounds:
        try:
            with isolate_failure():
                results.extend(evaluate(bound, results))
        except (SpecError, Disproved):
            raise
        except DpcalcError as error:
            refused.append((bound, error))
    return results, refused


def obstacles_of(refused: Sequence[Refused]) -> tuple[Obstacle, ...]:
    """Return why each bound does not apply, without those that a sharper bound supersedes."""
    obstacles = []
    for bound, error in refused:
        if not isinstance(error, Superseded):
            obstacles.append(Obstacle(bound.id, error.message, error.hint or "", error.parameters))
    return tuple(obstacles)


def failure_warnings(refused: Sequence[Refused]) -> tuple[str, ...]:
    """Return a warning for every guarantee that is missing because its code failed."""
    warnings = []
    for bound, error in refused:
        if isinstance(error, BoundFailed) and bound.guarantee:
            warnings.append(f"{bound.id} {error.message}; the answer is that of the other bounds ({error.hint})")
    return tuple(warnings)


def first_failure(refused: Sequence[Refused]) -> DpcalcError:
    """Return the failure to show if no bound gives a guarantee, with the name of its bound.

    A guarantee whose code failed comes first. Then a budget out of reach is more informative than a theorem that does
    not hold, and that more than one that was not evaluated. Among budgets out of reach the nearest is shown. A row for
    comparison is shown only if there is no guarantee.
    """
    refused = [row for row in refused if row[0].guarantee] or [
        row for row in refused if not isinstance(row[1], BoundFailed)
    ]
    if not refused:
        return NotApplicable("no bound covers this run")
    rank = {BoundFailed: -1, Infeasible: 0, NotApplicable: 1, MissingParameter: 2, Superseded: 3}

    def order(row: Refused) -> tuple[int, float]:
        nearest = getattr(row[1], "epsilon", None)
        return rank.get(type(row[1]), 1), math.inf if nearest is None else nearest

    bound, first = min(refused, key=order)
    role = "needed by " if isinstance(first, MissingParameter) else ""
    shown = type(first)(f"{first.message} ({role}{bound.id})", first.hint)
    shown.parameters = first.parameters
    return shown


def ranked(results: Iterable[Result], unknown: str) -> tuple[Result, ...]:
    """Return the results best first; the best guarantee of each order (or overall) is marked."""
    largest = unknown in DIRECTIONS and not DIRECTIONS[unknown].more_is_private
    marked: set[float | None] = set()
    first, guarantees, others = list[Result](), list[Result](), list[Result]()
    for result in sorted(results, key=lambda row: row.size, reverse=largest):
        group = result.order if unknown == Quantity.RDP else None
        best = result.guarantee and group not in marked
        row = result if best == result.best else result._replace(best=best)
        if best:
            marked.add(group)
            first.append(row)
        else:
            (guarantees if result.guarantee else others).append(row)
    return (*first, *guarantees, *others)
