"""The proof of an excess risk: of the risk at the reported run, and that the noise of this run keeps the budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flint import arb

from dpcalc.certify.guarantee import proof_of_parts
from dpcalc.certify.labels import check_adjacency
from dpcalc.certify.numerics.balls import START, OutOfReach, Undecided, precision
from dpcalc.certify.numerics.composition import Part
from dpcalc.certify.numerics.sums import PROVED, Enclosure, enclosed, place_of
from dpcalc.certify.proof import Open, Proof, proof_by, weakest
from dpcalc.certify.reading import asked_log_delta
from dpcalc.certify.result_proof import NOT_DEFINED, OPEN_AT_CAP
from dpcalc.certify.risk.costs import Price, price_of
from dpcalc.certify.runs.run import RunInputs
from dpcalc.report import Case, Result

if TYPE_CHECKING:
    from dpcalc.model.question import Question


_PROVED: deque[Any] = deque(maxlen=16)
"""The compositions that were proved last, by what they read: several risks have the same noise."""


def proof_of_cost(result: Result, case: Case, question: Question) -> Proof:
    """Return what is proved of an excess risk, by the worse of the two readings of its inputs.

    Raises:
        Open: nothing is proved; the text says why.
    """
    price = price_of(result.bound)
    if price is None:
        raise Open(NOT_DEFINED)
    check_adjacency(result, "replace-one")
    parameters = _parameters(result, case, question)
    try:
        return weakest([_proof(price, result, question, parameters, typed) for typed in (False, True)])
    except Undecided:
        raise Open(OPEN_AT_CAP) from None
    except OutOfReach as reason:
        raise Open(str(reason)) from None


def _parameters(result: Result, case: Case, question: Question) -> dict[str, Any]:
    """Return what the user gave, and the run behind the risk as ``sigma``, ``eta`` and ``count``."""
    chosen = result.details or {}
    return {
        **{name: value for name, (value, _) in case.inputs.items()},
        "log_delta": question.log_delta,
        "sigma": chosen.get("noise_std"),
        "eta": chosen.get("step_size"),
        "count": chosen.get("steps"),
    }


def _proof(price: Price, result: Result, question: Question, parameters: dict[str, Any], typed: bool) -> Proof:
    v = RunInputs(parameters, typed, exactly=("log_delta",))
    enclosure = enclosed(lambda: price.risk(v), result.value)
    if price.private is not None and result.epsilon is not None:
        enclosure = _within_budget(enclosure, price, v, question)
    if price.parts is not None and enclosure.place == PROVED:
        _prove_composed(price.parts, RunInputs(parameters, typed, exactly=("log_delta",)), question)
    return proof_by(result.quantity, enclosure)


def _prove_composed(parts: Callable[[RunInputs], list[Part]], v: RunInputs, question: Question) -> None:
    """Prove that the composed run keeps the budget.

    Raises:
        Open: the enclosure of ln delta does not end below that asked for.
    """
    with precision(START):
        composed, epsilon = parts(v), arb(v.epsilon)
    names = (*v.read, "sigma", "count", "epsilon", "log_delta")
    key = (parts, v.typed, tuple(sorted((name, repr(v.given(name))) for name in names)))
    if key not in _PROVED:
        proof_of_parts(composed, epsilon, v.as_double("log_delta"), lambda: asked_log_delta(question, v.typed))
        _PROVED.append(key)


def _within_budget(enclosure: Enclosure, price: Price, v: RunInputs, question: Question) -> Enclosure:
    """Return the enclosure of the risk, proved only if ln delta is proved to be at most that asked for as well."""
    private = price.private
    assert private is not None
    place, bits = place_of(lambda: private(v) - asked_log_delta(question, v.typed))
    return enclosure._replace(
        place=enclosure.place if place == PROVED else place,
        bits=max(bits, enclosure.bits),
    )
