"""What a case answers, whole: from it the case can be answered again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcalc.engine.question import Question
from dpcalc.named_tuple import NamedTuple


class Query(NamedTuple):
    """A command, what was given, and the question.

    Attributes:
        command: a key of `dpcalc.engine.commands.COMMANDS`, or ``ledger``, ``convert`` or ``risk``.
        given: parameter name -> value; of a ledger, ``ledger`` -> `dpcalc.engine.ledger_entries.Ledger`.
        question: what is sought.
        certified: whether every guarantee is proved in ball arithmetic.
    """

    command: str
    given: Mapping[str, Any]
    question: Question
    certified: bool = False


def query_of(command: str, given: Mapping[str, Any], question: Question, *, certified: bool = False) -> Query:
    """Return the query of what was given, as it is now; None stands for what is not given."""
    return Query(command, {name: value for name, value in given.items() if value is not None}, question, certified)
