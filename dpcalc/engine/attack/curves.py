"""The curves behind an answer: delta at every epsilon, and the trade-off of attacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpcalc.engine.advice.notes import tightness_of
from dpcalc.engine.attack.guess import Evidence
from dpcalc.engine.attack.risk import USUAL_LOG_DELTA, risk_of
from dpcalc.engine.evaluate import ROWS, Application
from dpcalc.errors import DpcalcError, isolate_failure
from dpcalc.model.quantities import Adjacency, Quantity
from dpcalc.model.question import Question, RiskQuestion
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Box, Composition, Gdp, Guarantee, LowerBound, Profile
from dpcalc.notions.trade_off import Points
from dpcalc.report import Case, Curves, Guess, Result, Tightness
from dpcalc.theorems.record import for_algorithm, lookup

_STEPS = 40
_FPRS = tuple(10.0 ** (place / 8.0) for place in (-40, -36, -32, -28, *range(-24, -16, 2), *range(-16, 0)))
"""Powers of ten and points between them, denser where the curve bends."""
_NEGLIGIBLE = math.log(1e-12)
_BEYOND = 1.5
"""The end of the curve over the epsilon of the answer."""


def with_curves(case: Case, run: Run, question: Question) -> Case:
    """Return the case with the curves behind its answer, or without if none follow or one cannot be computed."""
    if case.best is None or run.adjacency in (Adjacency.ADD, Adjacency.REMOVE):
        return case
    try:
        with isolate_failure():
            evidence = Evidence(case, run, question.orders)
            proved = [curve for name, part in evidence.proved for curve in _quick(name, part, case.best)]
            rows, floors = _lower(case, evidence.run, question)
            return case._replace(curves=curves_of(proved, case.best, floors, tightness_of(case, rows), case.guess))
    except DpcalcError:
        return case


def _quick(name: str, part: Guarantee, best: Result) -> list[tuple[str, Guarantee]]:
    """Return the guarantee of a bound, or only the answer if every point takes a search."""
    if isinstance(part, Composition) or not lookup(name).slow:
        return [(name, part)]
    if best.epsilon is None or best.log_delta is None:
        return []
    return [(name, Box(best.epsilon, best.log_delta))]


def curves_of(
    proved: Sequence[tuple[str, Guarantee]],
    best: Result,
    floors: Sequence[tuple[str, LowerBound]] = (),
    tightness: Tightness | None = None,
    guess: Guess | None = None,
) -> Curves:
    """Return the curves of the guarantees.

    Args:
        proved: (id, guarantee), the best one first; all hold.
        best: the answer.
        floors: (id, lower bound).
        tightness: the ratio of the answer to the lower bound, if known.
        guess: the success probability of a guess.
    """
    parts = [part for _, part in proved]
    profile = _profile(parts, best)
    known = [floor for _, floor in floors if floor.profile is not None]
    floor = tuple((e, max(lower.log_delta(e).value for lower in known)) for e, _ in profile) if known else ()
    log_delta = best.log_delta if best.log_delta is not None else USUAL_LOG_DELTA
    risk = risk_of(proved, RiskQuestion(), log_delta, floors, guess) if parts else None
    return Curves(profile, floor, _trade_off(parts, profile), risk, tightness)


def _lower(case: Case, run: Run, question: Question) -> tuple[list[Result], list[tuple[str, LowerBound]]]:
    """Return the lower bounds: the rows beside the answer, and the curves; slow ones are left out."""
    rows: list[Result] = []
    floors: list[tuple[str, LowerBound]] = []
    assert case.best is not None
    unknown = case.best.quantity
    for bound in for_algorithm(run.algorithm.name, run.algorithm.families):
        if not bound.lower or bound.slow:
            continue
        try:
            with isolate_failure():
                asked = Application(bound, run, question)
                guarantee = asked.guarantee
                rows += ROWS[unknown](asked) if unknown in (Quantity.EPSILON, Quantity.DELTA) else []
        except DpcalcError:
            continue
        floors += [(bound.id, guarantee)] if isinstance(guarantee, LowerBound) else []
    return rows, floors


def _profile(parts: Sequence[Guarantee], best: Result) -> Points:
    """Return ln delta, rounded up, at epsilons from 0 to beyond the answer."""
    curves = [part.privacy_profile() for part in parts]
    if not curves:
        return ()

    def least(epsilon: float) -> float:
        return min(0.0, *(curve(epsilon) for curve in curves))

    top = _BEYOND * best.epsilon if best.epsilon else _top(least)
    return tuple((epsilon, least(epsilon)) for epsilon in (top * place / _STEPS for place in range(_STEPS + 1)))


def _top(curve: Callable[[float], float]) -> float:
    """Return an epsilon at which delta is negligible, within a factor of two."""
    top = 0.25
    while curve(top) > _NEGLIGIBLE and top < 1e3:
        top *= 2.0
    return top


def _trade_off(parts: Sequence[Guarantee], profile: Points) -> tuple[tuple[float, float], ...]:
    """Return the largest true-positive rates at false-positive rates, by closed forms and the profile's points."""
    known: list[Guarantee] = [part for part in parts if isinstance(part, (Gdp, Box))]
    if profile:
        known.append(Profile(dict(profile).__getitem__))
    nodes = [epsilon for epsilon, _ in profile]
    rates = [part.tprs(_FPRS, nodes) for part in known]
    return tuple((fpr, min(tprs)) for fpr, *tprs in zip(_FPRS, *rates, strict=True)) if rates else ()
