"""What stands beside an answer on DP-SGD: the other adjacencies, and what an accountant that assumes Poisson prints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from dpcalc.engine.advice.improvements import Asked
from dpcalc.engine.answer import answer
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import DpcalcError
from dpcalc.model.choices import Adjacency, Sampling
from dpcalc.model.quantities import Quantity
from dpcalc.model.run import Run
from dpcalc.notes import AccountantPrints, Note, OtherAdjacencies
from dpcalc.report import Result

_LISTED = (Adjacency.ADD_REMOVE, Adjacency.NULL_RECORD, Adjacency.REPLACE_ONE)
_ALIKE = frozenset({Adjacency.ADD_REMOVE, Adjacency.NULL_RECORD})
_SAME = 1e-5
"""Answers that differ by this factor or less, less one, are the same."""


def clipped_notes(asked: Asked) -> Iterator[Note]:
    """Yield the notes on an answer about epsilon or delta, or about a parameter that was solved for.

    Where one was, the notes are of the run that it gives, and of its epsilon: a second search would take as long again.
    """
    best = asked.best
    if (best.details or {}).get("any"):
        return
    if asked.solved:
        value = int(best.value) if DIRECTIONS[best.quantity].integer else best.value
        at: dict[str, Any] | None = {best.quantity: value}
        run = asked.run.replacing(**{best.quantity: value})
        own: float | None = (best.details or {}).get("achieved", {}).get("epsilon")
        asked = asked._replace(question=asked.question._replace(epsilon=None, solve=None))
    elif best.quantity in (Quantity.EPSILON, Quantity.DELTA):
        at, run, own = None, asked.run, best.size
    else:
        return
    answers_by: dict[Adjacency, Result] = {}
    others = [other for adjacency in _LISTED if (other := _under(asked, run, adjacency, answers_by)) is not None]
    if any(own is None or not math.isclose(result.size, own, rel_tol=_SAME) for _, result in others):
        answers = [{"adjacency": adjacency.value, **_known(result)} for adjacency, result in others]
        yield OtherAdjacencies(quantity=others[0][1].quantity, answers=answers, at=at)
    yield from _accountant(asked, run, answers_by, at)


def _known(result: Result) -> dict[str, Any]:
    """Return the value of an answer and its bound; ln delta where that is what was asked."""
    fields = {**result.value_fields, "bound": result.bound}
    return {name: value for name, value in fields.items() if value is not None and name != "quantity"}


def _under(
    asked: Asked, run: Run, adjacency: Adjacency, answers_by: dict[Adjacency, Result]
) -> tuple[Adjacency, Result] | None:
    """Return another adjacency and the best answer under it; None for that of the run and where nothing is proved.

    A null record adds nothing to a sum: unless batches are of one size, zero-out is add-remove.
    """
    if adjacency is run.adjacency:
        return None
    of_one_size = run.sampling in (Sampling.FIXED, Sampling.WITH_REPLACEMENT)
    alike = [] if of_one_size else [other for other in answers_by if {adjacency, other} <= _ALIKE]
    own = {adjacency, run.adjacency} <= _ALIKE  # the answer is known then, unless batches are of one size
    result = answers_by[alike[0]] if alike else _best(asked, run, rough=not own, adjacency=adjacency)
    if result is None:
        return None
    answers_by[adjacency] = result
    return adjacency, result


def _best(asked: Asked, run: Run, *, rough: bool, **changes: Any) -> Result | None:
    """Return the best answer to the question about the run with these changes; None where there is none."""
    try:
        return answer(run.replacing(**changes), asked.question._replace(rough=rough)).best
    except DpcalcError:
        return None


def _accountant(
    asked: Asked, run: Run, answers_by: dict[Adjacency, Result], at: dict[str, Any] | None
) -> Iterator[AccountantPrints]:
    """Yield about what an accountant prints that assumes Poisson sampling and records added or removed."""
    assumed = Sampling.FULL if run.sampling is Sampling.FULL else Sampling.POISSON
    drawn_so = run.sampling is assumed
    result = answers_by.get(Adjacency.ADD_REMOVE) if drawn_so else None
    if result is None and drawn_so and run.adjacency in _ALIKE and at is None:
        result = asked.best
    if result is None:
        result = _best(asked, run, rough=not drawn_so, sampling=assumed, adjacency=Adjacency.ADD_REMOVE)
    if result is not None:
        covers = drawn_so and run.adjacency is not Adjacency.REPLACE_ONE
        yield AccountantPrints(
            **result.value_fields, sampling=str(run.sampling), adjacency=str(run.adjacency), covers_run=covers, at=at
        )
