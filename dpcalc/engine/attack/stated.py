"""What an attacker can do against a stated guarantee, or against those of an earlier report.

A report has no curves except those given by a mu or by Renyi divergences. For other guarantees one (epsilon, delta) is
known, and the success probability of a guess. The risk of the run itself (``--risk``) is often much less.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from dpcalc.checked import Assertion, Status
from dpcalc.engine.attack.risk import USUAL_LOG_DELTA, risk_of
from dpcalc.engine.commands import inputs_of
from dpcalc.engine.gate import Gate, judged, risks_of
from dpcalc.engine.premises import KINDS, STARTS, premise_of
from dpcalc.engine.question import check_question, refuse_unknown
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import SpecError
from dpcalc.files import Fields
from dpcalc.files.place import shown_path
from dpcalc.files.reading import read_document
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import Adjacency, Given, Kind, Quantity
from dpcalc.model.question import Question, RiskQuestion, query_of
from dpcalc.notions import conversions
from dpcalc.notions.guarantee import Box, Gdp, Guarantee
from dpcalc.notions.trade_off import log_up
from dpcalc.report import SCHEMA, Case, Guess, Obstacle, Result

BOUNDS = tuple(premise.risk[0] for premise in KINDS)
"""The ids of the rows."""

_ASSUMES = "what is given holds of the mechanism, for both orders of neighbouring data sets"


def risk_of_guarantee(
    command: str, given: Given, question: Question, *, sources: Mapping[str, Source] | None = None,
    gates: Sequence[Gate] = (), **_: Any,
) -> Case:  # fmt: skip
    """Return the case of the risks of a guarantee; the arguments are those of `dpcalc.engine.ask.ask`.

    Args:
        command: ``risk``.
        given: one of mu, rho, pure and rdp.
        question: epsilon and delta where those are known; the rates and probabilities that are asked about.
        sources: parameter name -> where it came from.
        gates: parsed assertions.

    Raises:
        SpecError: what is known or asked is malformed.
    """
    from dpcalc.references import SHORT

    refuse_unknown(command, given, STARTS)
    check_question(question)
    if question.solve:
        raise SpecError("a risk is not solved for", "use --assert")
    premise, rest, typed = premise_of({name: value for name, value in given.items() if value is not None}, question)
    if not premise.is_point and (rest.epsilon is not None or rest.log_delta is not None):
        raise SpecError("a budget beside what is known", "leave out epsilon and delta; `dpcalc convert` gives one")
    asked = risks_of(gates, question.risks or RiskQuestion()) or RiskQuestion()
    asked.check()
    name, reference, locator = premise.risk
    delta = question.log_delta if premise.is_point and question.log_delta is not None else USUAL_LOG_DELTA
    risk = risk_of([(name, premise.attacked)], asked, delta)
    row = Result(
        name, "what an attacker can do", Quantity.ADVANTAGE, risk["advantage"]["value"], Kind.UPPER,
        adjacency="as-given", assumes=(_ASSUMES,), reference=f"{SHORT[reference]}, {locator}", conversion="exact",
        best=True,
    )  # fmt: skip
    inputs = inputs_of(typed, {**dict.fromkeys(typed, question.source), **(sources or {})}, rest)
    case = Case("risk", inputs, (row,), risk=risk, query=query_of(command, given, question))
    if question.curves:
        from dpcalc.engine.attack.curves import curves_of

        case = case._replace(curves=curves_of([(name, premise.attacked)], row))
    return case._replace(assertions=judged(gates, case))


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
    asked.check()
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


def _case_of(case: Fields, asked: RiskQuestion) -> Case:
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
    risk = risk_of(proved, asked, USUAL_LOG_DELTA, guess=guess)
    by = risk["advantage"]["bound"]
    row = Result(
        by, "what an attacker can do", Quantity.ADVANTAGE, risk["advantage"]["value"], Kind.UPPER,
        adjacency="as-given" if guess is None or best is None else str(best["adjacency"]).replace("_", "-"),
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


def _unusable(case: Fields) -> Obstacle | None:
    """Return why a case guarantees nothing: its model is not private, or its check ended in an error."""
    trained, check = case.get("training"), case.get("check")
    if trained is not None and (trained["private"] is not True or trained.get("why_not_private")):
        reason = trained.get("why_not_private") or "the report does not say that it is"
        return Obstacle("risk", f"has no guarantee: the model is NOT PRIVATE: {reason}", "train with no seed, once")
    if check is not None and Status(check["status"]) == Status.ERROR:
        return Obstacle("risk", f"has no guarantee: case {check['name']} ended in an error: {check['message']}",
                        "check it again")  # fmt: skip
    return None


def _reservations(case: Fields) -> tuple[str, ...]:
    """Return the problems that a check found with a case that still has a guarantee."""
    check = case.get("check")
    if check is None or Status(check["status"]) != Status.FAILED:
        return ()
    return (f"case {check['name']} did not pass its check: {check['message']}",)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) else str(value)


def _part(row: Fields) -> Guarantee | None:
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


def _renyi(rows: Sequence[Fields]) -> list[tuple[str, Guarantee]]:
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
