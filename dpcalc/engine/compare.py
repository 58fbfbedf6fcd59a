"""What a comparison adds to its rows: how far the best is from what nothing can beat, and what would better it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from dpcalc.engine.answer import answer
from dpcalc.engine.hiding import hiding
from dpcalc.engine.question import Question
from dpcalc.engine.search import DIRECTIONS
from dpcalc.errors import DpcalcError
from dpcalc.model.choices import LossClass
from dpcalc.model.loss_class import exceeds_two
from dpcalc.model.quantities import Kind, Quantity
from dpcalc.model.run import Run
from dpcalc.notes import Improvement, Note, PromiseNotMade
from dpcalc.notions.guarantee import Gdp, Profile
from dpcalc.report import Case, Result, Tightness
from dpcalc.theorems.record import Theorem

_WORTH = 0.9
"""An alternative that is not a tenth better is not worth a note."""

_SHARES = (1.0, 0.1, 0.01, 1e-3, 1e-4)
"""The strong convexities that are tried, as shares of the smoothness."""

Changes = dict[str, Any]


def compared(run: Run, question: Question, case: Case, bounds: Sequence[Theorem], *, hints: bool) -> Case:
    """Return the case with its tightness and, where ``hints`` says so, what knowing or promising more would give."""
    case = case._replace(tightness=_tightness(case))
    best = case.best
    if not hints or best is None:
        return case
    notes = (*_promises(case, best), *_improvements(run, question, best, bounds), *hiding(run, best, bounds))
    return case._replace(note_data=(*case.note_data, *notes))


def _tightness(case: Case) -> Tightness | None:
    """Return how far the best guarantee is from the best lower or exact value, if there is one."""
    best = case.best
    if best is None or best.quantity == Quantity.RDP:
        return None
    if best.kind == Kind.EXACT:
        return Tightness(best.bound, best.value, 1.0)
    floor = max(
        (result for result in case.results if result.kind == Kind.LOWER),
        key=lambda result: _size(result) * _sense(result.quantity),
        default=None,
    )
    return None if floor is None else Tightness(floor.bound, floor.value, _ratio(best, floor))


def _ratio(best: Result, floor: Result) -> float | None:
    """Return the best guarantee over the lower value, of deltas by their logarithms; None where that is no number."""
    if best.quantity != Quantity.DELTA:
        return best.value / floor.value if floor.value else None
    logs = [result.log_delta if result.log_delta is not None else -math.inf for result in (best, floor)]
    return math.exp(min(700.0, logs[0] - logs[1])) if math.isfinite(logs[1]) else None


def _promises(case: Case, best: Result) -> Iterator[Note]:
    """Yield what a promise that was not made would give."""
    for result in case.results:
        if result.kind == Kind.CONDITIONAL and result.details and _better(result, best):
            yield PromiseNotMade.of(result, promise=tuple(result.details["demands"]))


def _improvements(run: Run, question: Question, best: Result, bounds: Sequence[Theorem]) -> Iterator[Note]:
    """Yield, for each thing that may be known, the weakest form of it that would better the answer, and by how much."""
    quick = [bound for bound in bounds if bound.guarantee and not bound.slow and bound.gives in (Gdp, Profile)]
    for several in _knowable(run):
        weakest = None
        for changes in several:
            result = _best_with(run, changes, question, quick)
            if result is None or not _better(result, best):
                break
            weakest = Improvement.of(result, changes=changes)
        if weakest is not None:
            yield weakest


def _knowable(run: Run) -> Iterator[Sequence[Changes]]:
    """Yield what may be known of the run, or arranged: for each such thing its forms, the strongest first."""
    values = run.values
    if run.algorithm.own_noise or run.algorithm.local or "schedule" in values or "c1" in values:
        return
    smoothness, step_size = values.get("smoothness"), values.get("step_size")
    if step_size is not None and smoothness is None:
        yield [{"smoothness": 2.0 / step_size, "loss_class": LossClass.CONVEX_SMOOTH}]
    convex_smooth = run.loss_class is LossClass.CONVEX_SMOOTH
    if smoothness and step_size is not None and convex_smooth and exceeds_two(step_size, smoothness):
        yield [{"step_size": 2.0 / smoothness}]
    if smoothness and not values.get("strong_convexity"):
        yield [{"strong_convexity": smoothness * share} for share in _SHARES]
    if values.get("diameter") is None and step_size is not None and "lipschitz" in values:
        yield _diameters(step_size * values["lipschitz"])


def _diameters(step: float) -> list[Changes]:
    """Return diameters from a tenth of the length of a step on, in powers of ten; none for lengths out of range."""
    if not 1e-200 < step < 1e200:
        return []
    decade = round(math.log10(step))
    return [{"diameter": float(f"1e{decade + power}")} for power in range(-1, 6)]


def _best_with(run: Run, changes: Changes, question: Question, bounds: list[Theorem]) -> Result | None:
    try:
        return answer(run.replacing(**changes), question, bounds).best
    except DpcalcError:
        return None


def _better(result: Result, best: Result) -> bool:
    if result.quantity == Quantity.DELTA and result.log_delta is not None and best.log_delta is not None:
        return result.log_delta < best.log_delta + math.log(_WORTH)
    if _sense(best.quantity) < 0:
        return result.value * _WORTH > best.value
    return result.value < _WORTH * best.value


def _sense(quantity: str) -> int:
    """Return -1 where the largest value is sought, else 1."""
    return -1 if quantity in DIRECTIONS and not DIRECTIONS[quantity].more_is_private else 1


def _size(result: Result) -> float:
    return result.log_delta if result.quantity == Quantity.DELTA and result.log_delta is not None else result.value
