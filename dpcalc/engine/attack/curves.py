"""The curves behind an answer, for who is shown the evidence: delta at every epsilon, and what an attack achieves.

What an attacker can do against the guarantees of a report that was written before, case by case.

A report has no curves but those that a mu or Renyi divergences stand for: of everything else one (epsilon, delta) is
known, and how often a guess is right. The risk of the run itself, asked with ``--risk``, is often much less.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from dpcalc.engine.advice.notes import tightness_of
from dpcalc.engine.ask import judged
from dpcalc.engine.attack.guess import proved_of
from dpcalc.engine.attack.risk import RiskQuestion, check_risks, risk_of
from dpcalc.engine.evaluate import Application
from dpcalc.engine.gate import risks_of
from dpcalc.engine.question import Question
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import DpcalcError, SpecError, isolate_failure
from dpcalc.files.reading import read_document, shown_path
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import Adjacency, Kind, Quantity
from dpcalc.model.run import Run
from dpcalc.notions import conversions
from dpcalc.notions.guarantee import Box, Composition, Gdp, Guarantee, LowerBound, Profile
from dpcalc.notions.trade_off import Points, log_up
from dpcalc.report import SCHEMA, Assertion, Case, Curves, Guess, Obstacle, Result, Status, Tightness
from dpcalc.theorems.record import for_algorithm, lookup

if TYPE_CHECKING:
    from dpcalc.engine.gate import Gate


_STEPS = 40
_FPRS = tuple(10.0 ** (place / 8.0) for place in (-40, -36, -32, -28, *range(-24, -16, 2), *range(-16, 0)))
"""A power of ten each, and what lies between; closer to each other where the curve bends."""
_NEGLIGIBLE = math.log(1e-12)
_USUAL_LOG_DELTA = math.log(1e-6)
_BEYOND = 1.5
"""How far the curve goes on, over the epsilon of the answer."""


def with_curves(case: Case, run: Run, question: Question) -> Case:
    """Return the case with the curves behind its answer; without, where none follow or one cannot be computed."""
    if case.best is None or run.adjacency in (Adjacency.ADD, Adjacency.REMOVE):
        return case
    try:
        with isolate_failure():
            run, proved = proved_of(case, run, question.orders)
            proved = [curve for name, part in proved for curve in _quick(name, part, case.best)]
            rows, floors = _lower(case, run, question)
            return case._replace(curves=curves_of(proved, case.best, floors, tightness_of(case, rows), case.guess))
    except DpcalcError:
        return case


def _quick(name: str, part: Guarantee, best: Result) -> list[tuple[str, Guarantee]]:
    """Return what is proved by a bound; of one whose every point is a search of its own, the answer alone."""
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
    """Return the curves of what is proved.

    Args:
        proved: (id, guarantee), the best one first; all hold.
        best: the answer.
        floors: (id, what no guarantee can beat).
        tightness: how far the answer is from that, where it is known.
        guess: what is said of the answer.
    """
    parts = [part for _, part in proved]
    profile = _profile(parts, best)
    known = [floor for _, floor in floors if floor.profile is not None]
    floor = tuple((e, max(lower.log_delta(e).value for lower in known)) for e, _ in profile) if known else ()
    log_delta = best.log_delta if best.log_delta is not None else _USUAL_LOG_DELTA
    risk = risk_of(proved, RiskQuestion(), log_delta, floors, guess) if parts else None
    return Curves(profile, floor, _trade_off(parts, profile), risk, tightness)


def _lower(case: Case, run: Run, question: Question) -> tuple[list[Result], list[tuple[str, LowerBound]]]:
    """Return what no guarantee can beat: the rows beside the answer, and the curves; slow ones are left out."""
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
                rows += asked.rows(unknown) if unknown in (Quantity.EPSILON, Quantity.DELTA) else []
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
    """Return an epsilon at which nearly nothing is left of delta, within a factor of two."""
    top = 0.25
    while curve(top) > _NEGLIGIBLE and top < 1e3:
        top *= 2.0
    return top


def _trade_off(parts: Sequence[Guarantee], profile: Points) -> tuple[tuple[float, float], ...]:
    """Return the largest rates of true positives at rates of false ones, by closed forms and the profile's points."""
    known: list[Guarantee] = [part for part in parts if isinstance(part, (Gdp, Box))]
    if profile:
        known.append(Profile(dict(profile).__getitem__))
    nodes = [epsilon for epsilon, _ in profile]
    rates = [part.tprs(_FPRS, nodes) for part in known]
    return tuple((fpr, min(tprs)) for fpr, *tprs in zip(_FPRS, *rates, strict=True)) if rates else ()


MOST_CASES = 10_000
_ONE_WAY = (Adjacency.ADD, Adjacency.REMOVE)


def risks_of_report(path: str, asked: RiskQuestion, gates: Sequence[Gate] = ()) -> list[Case]:
    """Return a case for each case of a report: what an attacker can do against its guarantees.

    Args:
        path: a report of ``--json``; ``-`` is standard input.
        asked: the rates and probabilities.
        gates: parsed assertions.

    Raises:
        SpecError: it is no such report, has no cases, or a rate or probability is outside (0, 1).
    """
    asked = risks_of(gates, asked) or asked
    check_risks(asked)
    shown = shown_path(path)
    try:
        envelope = json.loads(read_document(path, "report").decode("utf-8"), parse_constant=_refuse)
        if envelope["schema"] != SCHEMA or not 0 < len(envelope["cases"]) <= MOST_CASES:
            raise ValueError
        cases = [_case_of(case, asked) for case in envelope["cases"]]
    except SpecError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise SpecError(f"{shown} is no JSON report of a query", "write one by --json -o report.json") from None
    return [case._replace(assertions=_judged(gates, case)) for case in cases]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _judged(gates: Sequence[Gate], case: Case) -> tuple[Assertion, ...]:
    if case.best is None:
        return tuple(Assertion(gate.text, False, "no guarantee", None) for gate in gates)
    return judged(gates, case)


def _case_of(case: Mapping[str, Any], asked: RiskQuestion) -> Case:
    inputs = {str(name): (_plain(field["value"]), Source(field["source"])) for name, field in case["inputs"].items()}
    if why := _unusable(case):
        return Case("risk", inputs, (), (why,))
    rows = [row for row in case["results"] if Kind(row["kind"]).guarantee]
    rows = [row for row in rows if row["adjacency"] not in _ONE_WAY]
    proved = [(str(row["bound"]), part) for row in rows if (part := _part(row)) is not None] + _renyi(rows)
    if not proved:
        why = Obstacle("risk", "has no guarantee in both orders of two data sets", "ask for epsilon at a delta, or mu")
        return Case("risk", inputs, (), (why,))
    proved.sort(key=lambda pair: not any(row["best"] for row in rows if row["bound"] == pair[0]))
    best = next((row for row in rows if row["best"]), None)
    if best is not None and best["quantity"] in DIRECTIONS:  # the guarantee is of the run with the solution
        value = _finite(best["value"])
        inputs[best["quantity"]] = (int(value) if DIRECTIONS[best["quantity"]].integer else value, Source.DERIVED)
    guess = None if best is None else _guess(case.get("guess"))
    if guess is not None and all(isinstance(part, Box) for _, part in proved):
        log_delta = log_up(guess.advantage) if guess.advantage else -math.inf
        proved.append((guess.bound, Box(0.0, log_delta)))  # delta(0) is the largest advantage
    risk = risk_of(proved, asked, _USUAL_LOG_DELTA, guess=guess)
    by = risk["advantage"]["bound"]
    row = Result(
        by, "what an attacker can do", Quantity.ADVANTAGE, risk["advantage"]["value"], Kind.UPPER,
        adjacency="as_given" if guess is None or best is None else str(best["adjacency"]),
        assumes=("the report is true",), conversion="exact", best=True,
        reference=next((str(row["reference"]) for row in rows if row["bound"] == by), ""),
    )  # fmt: skip
    return Case("risk", inputs, (row,), risk=risk, warnings=_reservations(case), guess=guess)


def _guess(fields: Any) -> Guess | None:
    """Return how often a guess is right, as a report says it; None where it does not."""
    if fields is None:
        return None
    probability, advantage = _finite(fields["probability"]), _finite(fields["advantage"])
    if not 0.5 + 0.5 * advantage <= probability <= 1.0:
        raise ValueError
    return Guess(probability, advantage, str(fields["bound"]), fields["from_point"] is not False)


def _unusable(case: Mapping[str, Any]) -> Obstacle | None:
    """Return why a case guarantees nothing: its model is not private, or its check ended in an error."""
    trained, check = case.get("training"), case.get("check")
    if trained is not None and (trained["private"] is not True or trained.get("why_not_private")):
        reason = trained.get("why_not_private") or "the report does not say that it is"
        return Obstacle("risk", f"has no guarantee: the model is NOT PRIVATE: {reason}", "train with no seed, once")
    if check is not None and Status(check["status"]) == Status.ERROR:
        return Obstacle("risk", f"has no guarantee: case {check['name']} ended in an error: {check['message']}",
                        "check it again")  # fmt: skip
    return None


def _reservations(case: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a check found wrong with a case that has a guarantee all the same."""
    check = case.get("check")
    if check is None or Status(check["status"]) != Status.FAILED:
        return ()
    return (f"case {check['name']} did not pass its check: {check['message']}",)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) else str(value)


def _part(row: Mapping[str, Any]) -> Guarantee | None:
    """Return what a row says; of a parameter that was solved for, of the best solution alone."""
    quantity = row["quantity"]
    if quantity in DIRECTIONS and not row["best"]:
        return None
    if quantity not in (Quantity.EPSILON, Quantity.DELTA, Quantity.MU, Quantity.RDP, *DIRECTIONS):
        return None
    if row.get("mu") is not None:
        return Gdp(_finite(row["mu"]))
    if quantity == Quantity.RDP or row.get("epsilon") is None or row.get("delta") is None:
        return None
    log_delta = row.get("log_delta")
    if log_delta is None and row["delta"] != 0.0:
        return None
    return Box(
        _finite(row["epsilon"]), -math.inf if log_delta is None else min(0.0, _finite(log_delta, least=-math.inf))
    )


def _renyi(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, Guarantee]]:
    """Return the Renyi divergences of each bound, at the orders that were asked about."""
    points: dict[str, dict[float, float]] = {}
    for row in rows:
        if row["quantity"] == Quantity.RDP and row["value"] is not None and row["order"] > 1.0:
            points.setdefault(str(row["bound"]), {})[_finite(row["order"])] = _finite(row["value"])
    return [(bound, conversions.interpolated(known)) for bound, known in points.items()]


def _finite(value: Any, least: float = 0.0) -> float:
    if isinstance(value, bool) or not least <= float(value) < math.inf:
        raise ValueError
    return float(value)
