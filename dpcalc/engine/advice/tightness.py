"""What a comparison adds to its rows: how far the best is from what nothing can beat, and what would better it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcalc.engine.advice.hidden_iterates import hiding
from dpcalc.engine.advice.improvements import Asked
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.model.quantities import Kind, Quantity
from dpcalc.notes import Note
from dpcalc.report import Case, Result, Tightness
from dpcalc.theorems.record import Theorem, all_bounds


def compared(asked: Asked, bounds: Sequence[Theorem], *, hints: bool) -> Case:
    """Return the case with its tightness and, where ``hints`` says so, what would better it and when hiding helps."""
    case = asked.case._replace(tightness=tightness_of(asked.case))
    if not hints:
        return case
    notes: tuple[Note, ...] = asked.improvements()
    if not asked.brief:
        notes += tuple(hiding(asked.run, asked.best, bounds))
    if asked.run.algorithm.clipped and not asked.brief:
        from dpcalc.engine.advice.adjacencies import clipped_notes

        notes += tuple(clipped_notes(asked))
    return case._replace(note_data=(*case.note_data, *notes))


def tightness_of(case: Case, more: Sequence[Result] = ()) -> Tightness | None:
    """Return how far the best guarantee is from the best lower or exact value, if there is one; ``more`` are others."""
    best = case.best
    if best is None or best.quantity == Quantity.RDP:
        return None
    if best.kind == Kind.EXACT:
        return Tightness(best.bound, best.value, 1.0)
    floor = max(
        (result for result in (*case.results, *more) if result.kind == Kind.LOWER),
        key=lambda result: result.size * _sense(result.quantity),
        default=None,
    )
    if floor is None:
        return None
    theorem = all_bounds((floor.bound.partition(".")[0],))[floor.bound]
    convexity, _ = case.inputs.get("strong_convexity", (0.0, None))
    return Tightness(floor.bound, floor.value, _ratio(best, floor), theorem.differs_alone(convexity))


def _ratio(best: Result, floor: Result) -> float | None:
    """Return the best guarantee over the lower value, of deltas by their logarithms; None where that is no number."""
    if best.quantity != Quantity.DELTA:
        return best.value / floor.value if floor.value else None
    logs = [result.log_delta if result.log_delta is not None else -math.inf for result in (best, floor)]
    return math.exp(min(700.0, logs[0] - logs[1])) if math.isfinite(logs[1]) else None


def _sense(quantity: str) -> int:
    """Return -1 where the largest value is sought, else 1."""
    return -1 if quantity in DIRECTIONS and not DIRECTIONS[quantity].more_is_private else 1
