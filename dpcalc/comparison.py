"""What a comparison says beside its rows: how far the best is from what nothing can beat, and what would better it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dpcalc.errors import DpcalcError
from dpcalc.query import Question, answer
from dpcalc.registry import CONDITIONAL, Bound
from dpcalc.report import Case, Result, Tightness
from dpcalc.solve import DIRECTIONS
from dpcalc.spec.loss import exceeds_two
from dpcalc.spec.run import Run

_WORTH = 0.9  # what is not a tenth better is not worth mentioning


def compared(run: Run, question: Question, case: Case, bounds: Sequence[Bound], *, hints: bool) -> Case:
    """Return the case with its tightness and, where ``hints`` says so, what knowing or promising more would give."""
    case = case._replace(tightness=_tightness(case))
    if not hints or case.best is None:
        return case
    return case._replace(notes=(*case.notes, *_promises(case), *_improvements(run, question, case.best, bounds)))


def _tightness(case: Case) -> Tightness | None:
    """Return how far the best guarantee is from the best lower or exact value, if one is known."""
    best = case.best
    if best is None or best.quantity == "rdp":
        return None
    if best.kind == "exact":
        return Tightness(best.bound, best.value, 1.0)
    floor = max(
        (result for result in case.results if result.kind == "lower"),
        key=lambda result: _size(result) * _sense(result.quantity),
        default=None,
    )
    if floor is None:
        return None
    if best.quantity == "delta":
        logs = [result.log_delta if result.log_delta is not None else -math.inf for result in (best, floor)]
        ratio = math.exp(min(700.0, logs[0] - logs[1])) if math.isfinite(logs[1]) else None
    else:
        ratio = best.value / floor.value if floor.value else None
    return Tightness(floor.bound, floor.value, ratio)


def _promises(case: Case) -> tuple[str, ...]:
    """Say what a promise that was not made would give."""
    best = case.best
    return tuple(
        f"{_shown(result)} by {result.bound} if {'; '.join(result.details['demands'])}"
        for result in case.results
        if best is not None and result.kind == CONDITIONAL and result.details and _better(result, best)
    )


class _Knob(NamedTuple):
    """Something that may be known of the run: candidates from the strongest to the weakest, and how to say it."""

    changes: Sequence[dict[str, Any]]
    text: str


def _knobs(run: Run) -> Iterator[_Knob]:
    values = run.values
    if run.algorithm in ("local", "repeated", "online") or "schedule" in values or "c1" in values:
        return
    beta, eta = values.get("smoothness"), values.get("step_size")
    if eta is not None and beta is None:
        smooth = {"smoothness": 2.0 / eta, "loss_class": "convex-smooth"}
        yield _Knob([smooth], "losses known to be convex and smooth, with smoothness <= {smoothness:.6g},")
    if beta and eta is not None and values.get("loss_class") == "convex-smooth" and exceeds_two(eta, beta):
        yield _Knob([{"step_size": 2.0 / beta}], "a step size of at most 2/smoothness = {step_size:.6g}")
    if beta and not values.get("strong_convexity"):
        strong = [{"strong_convexity": beta * share} for share in (1.0, 0.1, 0.01, 1e-3, 1e-4)]
        yield _Knob(strong, "strong convexity known to be at least {strong_convexity:.6g}")
    if values.get("diameter") is None and eta is not None and "lipschitz" in values:
        reach = eta * values["lipschitz"]
        if 1e-200 < reach < 1e200:
            decade = round(math.log10(reach))
            small = [{"diameter": float(f"1e{decade + power}")} for power in range(-1, 6)]
            yield _Knob(small, "iterates projected onto a set of diameter {diameter:.6g}")


def _improvements(run: Run, question: Question, best: Result, bounds: Sequence[Bound]) -> Iterator[str]:
    """Say, for each thing that might be known, the weakest form of it that would better the answer, and by how much."""
    quick = [bound for bound in bounds if bound.guarantee and not bound.coarse and bound.gives in ("mu", "log_delta")]
    for knob in _knobs(run):
        helped = None
        for change in knob.changes:
            found = _asked(run, change, question, quick)
            if found is None or not _better(found, best):
                break
            helped = change, found
        if helped is not None:
            yield f"{knob.text.format(**helped[0])} would give {_shown(helped[1])} ({helped[1].bound})"


def _asked(run: Run, change: dict[str, Any], question: Question, bounds: list[Bound]) -> Result | None:
    try:
        return answer(run.replacing(**change), question, bounds).best
    except DpcalcError:
        return None


def _better(result: Result, best: Result) -> bool:
    if result.quantity == "delta" and result.log_delta is not None and best.log_delta is not None:
        return result.log_delta < best.log_delta + math.log(_WORTH)
    if _sense(best.quantity) < 0:
        return result.value * _WORTH > best.value
    return result.value < _WORTH * best.value


def _sense(quantity: str) -> int:
    """Return -1 where the largest value is sought, else 1."""
    return -1 if quantity in DIRECTIONS and not DIRECTIONS[quantity].more_is_private else 1


def _size(result: Result) -> float:
    return result.log_delta if result.quantity == "delta" and result.log_delta is not None else result.value


def _shown(result: Result) -> str:
    from dpcalc.render.text import value_text

    return f"{result.quantity} {value_text(result, 4)}"
