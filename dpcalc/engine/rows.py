"""The rows of a case: what each bound gives, why others give nothing, and which row is best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

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
from dpcalc.model.quantities import Quantity
from dpcalc.report import Obstacle, Result
from dpcalc.theorems.record import Theorem

Refused = tuple[Theorem, DpcalcError]
"""A bound that gave no result, and why."""


def rows_of(
    bounds: Iterable[Theorem],
    evaluate: Callable[[Theorem, list[Result]], list[Result]],
    known: Mapping[str, DpcalcError] = {},
) -> tuple[list[Result], list[Refused]]:
    """Return the results of all bounds, and the bounds that gave none with the error that each raised.

    Args:
        bounds: in the order in which they are evaluated.
        evaluate: returns the results of one bound; it is passed those so far.
        known: the errors of bounds that need not be evaluated, by their id.

    Raises:
        SpecError: the question itself is malformed.
        Disproved: a guarantee is below the truth.
    """
    results: list[Result] = []
    refused: list[Refused] = []
    for bound in bounds:
        if bound.id in known:
            refused.append((bound, known[bound.id]))
            continue
        try:
            with isolate_failure():
                results.extend(evaluate(bound, results))
        except (SpecError, Disproved):
            raise
        except DpcalcError as error:
            refused.append((bound, error))
    return results, refused


def obstacles_of(refused: Sequence[Refused]) -> tuple[Obstacle, ...]:
    """Return why bounds gave nothing, for the report; those of which others speak better are passed over."""
    return tuple(
        Obstacle(bound.id, error.message, error.hint or "", error.parameters)
        for bound, error in refused
        if not isinstance(error, Superseded)
    )


def failure_warnings(refused: Sequence[Refused]) -> tuple[str, ...]:
    """Return a warning for every guarantee that is missing because its code failed."""
    return tuple(
        f"{bound.id} {error.message}; the answer is that of the other bounds ({error.hint})"
        for bound, error in refused
        if isinstance(error, BoundFailed) and bound.guarantee
    )


def first_failure(refused: Sequence[Refused]) -> DpcalcError:
    """Return the failure to show where no bound gives a guarantee, naming its bound.

    A guarantee whose code failed comes first. Then, a budget out of reach says more than a theorem that does not hold,
    and that more than one that was not asked. Of those out of reach, the one that comes nearest is shown. A row for
    comparison speaks only where no guarantee does.
    """
    refused = [row for row in refused if row[0].guarantee] or [
        row for row in refused if not isinstance(row[1], BoundFailed)
    ]
    if not refused:
        return NotApplicable("no bound speaks of this run")
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
