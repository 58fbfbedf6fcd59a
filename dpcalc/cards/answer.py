"""The answer that a card states: the query of a case, asked again with what an attacker can do."""

from __future__ import annotations

from typing import Any

from dpcalc.cards.asked import CONVERT, LEDGER, RISK
from dpcalc.engine.ask import ask
from dpcalc.engine.attack.stated import risk_of_guarantee
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.convert import convert
from dpcalc.engine.ledgers.total import answer_ledger
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.quantities import Adjacency
from dpcalc.model.question import Query, RiskQuestion
from dpcalc.report import Case

_ONE_WAY = (Adjacency.ADD, Adjacency.REMOVE)
_OTHERS: dict[str, Any] = {CONVERT: convert, RISK: risk_of_guarantee}


def with_risks(query: Query) -> Query:
    """Return the query with the usual question about attacks where none was asked and one has an answer."""
    question = query.question
    if query.command in (LEDGER, CONVERT):
        return query._replace(question=question._replace(risks=None))
    one_way = query.given.get("adjacency") in _ONE_WAY
    return query if question.risks or one_way else query._replace(question=question._replace(risks=RiskQuestion()))


def answer(query: Query) -> Case:
    """Return the case of a query.

    Raises:
        SpecError, NotApplicable, Infeasible: as `dpcalc.engine.ask.ask`; there is no guarantee of privacy.
        Disproved: a guarantee that was to be certified is below the truth.
    """
    case = _answer(query)
    if case.best is None:
        raise NotApplicable("nothing is guaranteed", "`dpcalc compare` says which bounds apply")
    return case


def _answer(query: Query) -> Case:
    if query.command == LEDGER:
        return answer_ledger(query.given[LEDGER], query.question)
    if query.command in _OTHERS:
        case: Case = _OTHERS[query.command](query.command, query.given, query.question)
        return case
    if COMMANDS[query.command].prices:
        raise SpecError("a cost has no card", "make a card of the run that has it: dpcalc compare")
    return ask(query.command, query.given, query.question, notes=False, certified=query.certified, only=query.bound)
