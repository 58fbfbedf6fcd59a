"""From a described run and a question to a case: evaluate every bound that applies, and rank the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpcalc.engine.evaluate import delta_rows, epsilon_rows, is_lower, mu_rows, rdp_rows
from dpcalc.engine.inputs import inputs_of
from dpcalc.engine.question import Question, unknown_of
from dpcalc.engine.rows import failure_warnings, first_failure, obstacles_of, ranked, rows_of
from dpcalc.errors import DpcalcError
from dpcalc.model.run import Run
from dpcalc.model.source import Source
from dpcalc.report import Case, Result
from dpcalc.theorems.record import Theorem, for_algorithm

ROWS = {"epsilon": epsilon_rows, "delta": delta_rows, "mu": mu_rows, "rdp": rdp_rows}
"""What is answered without a search over the run: the rows of one bound, by what is sought."""


def answer(
    run: Run,
    question: Question,
    bounds: Sequence[Theorem] | None = None,
    refused_already: Mapping[str, DpcalcError] = {},
) -> Case:
    """Return the case: every applicable bound's answer, best first, and why the others do not apply.

    Args:
        run: as described.
        question: what is sought.
        bounds: those to ask; None for all that speak of the algorithm.
        refused_already: why some of them do not apply, by id, where that is known.

    Raises:
        SpecError: the question is incomplete or over-determined.
        Disproved: a lower bound contradicts the best guarantee.
        NotApplicable: no bound applies; the message and hint are those of the first.
        Infeasible: bounds apply but none meets the budget.
    """
    unknown = unknown_of(run, question)
    if bounds is None:
        bounds = for_algorithm(run.algorithm.name, run.algorithm.families)
    results, refused = rows_of(
        sorted(bounds, key=lambda bound: _comes_last(bound, run)),
        lambda bound, results: _rows_of_bound(bound, run, question, unknown, results),
        refused_already,
    )
    if not any(result.guarantee for result in results):
        raise first_failure(refused)
    # Of what is read from a schedule, the schedule itself is an input.
    read = [name for name, source in run.sources.items() if source is Source.FILE and name != "schedule"]
    recorded = {name: value for name, value in run.values.items() if name != unknown and name not in read}
    return Case(
        run.algorithm.name, inputs_of(recorded, run.sources, question), ranked(results, unknown),
        obstacles_of(refused), warnings=(*failure_warnings(refused), *_edge_warnings(results, question)),
    )  # fmt: skip


def _comes_last(bound: Theorem, run: Run) -> bool:
    """Return whether the bound is evaluated in the light of the best guarantee: it proves none for this run."""
    return is_lower(bound) or bool(bound.unpromised(run))


def _rows_of_bound(
    bound: Theorem, run: Run, question: Question, unknown: str, results: Sequence[Result]
) -> list[Result]:
    """Return the results of one bound, given those so far."""
    if bound.slow and not question.targets:
        from dpcalc.engine.solving.slow_bounds import COMPARABLE, floor_near, refuse_unless_better

        if bound.unpromised(run):
            refuse_unless_better(bound, run, question, unknown, results)
        guaranteed = [result for result in results if result.guarantee]
        best = min(guaranteed, key=lambda result: result.value, default=None)
        if is_lower(bound) and best and best.value and unknown in COMPARABLE:
            return [floor_near(best, bound, run, question, unknown)]
    if unknown in ROWS:
        return ROWS[unknown](bound, run, question)
    if question.targets:
        from dpcalc.engine.solving.attacks import solve_for_risk

        return [solve_for_risk(bound, run, question, unknown)]
    from dpcalc.engine.solving.budget import solve

    return [solve(bound, run, question, unknown)]


def _edge_warnings(results: Sequence[Result], question: Question) -> tuple[str, ...]:
    """Return a warning where the best of the orders given is the first or the last of them.

    A search over all orders needs none: its ends are limits and no choice.
    """
    if not question.orders:
        return ()
    edges = [result.bound for result in results if result.details and result.details.get("order_at_edge")]
    if not edges:
        return ()
    return (f"the best order lies at the edge of those tried for {', '.join(edges)}: more orders would tighten it",)
