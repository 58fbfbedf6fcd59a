"""The proof of one result about a run: by the definition of its bound, in the worse of the two readings."""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from typing import TYPE_CHECKING

from dpcalc.certify.groups import of_groups
from dpcalc.certify.guarantee import Guarantee, proof_of_value
from dpcalc.certify.labels import check_label
from dpcalc.certify.numerics.balls import OutOfReach, Undecided, double
from dpcalc.certify.numerics.sums import BELOW, PROVED, place_of
from dpcalc.certify.proof import Open, Proof, weakest
from dpcalc.certify.reading import cases_of, readings_of
from dpcalc.certify.table import Definition, definition_of
from dpcalc.model.quantities import Quantity
from dpcalc.report import Result

if TYPE_CHECKING:
    from dpcalc.model.question import Question
    from dpcalc.model.run import Run

NOT_DEFINED = "no definition of it has been written"
OPEN_AT_CAP = "open at the most digits that are tried"


def proof_of(result: Result, run: Run, question: Question, taken: Set[str]) -> Proof:
    """Return what is proved of a result, by the worse of the two readings of its inputs.

    Args:
        result: with its label.
        run, question: what was asked.
        taken: the parameters that the theorem takes, of which its label may have to speak.

    Raises:
        Open: nothing is proved; the text says why.
    """
    definition = definition_of(result.bound)
    if definition is None:
        raise Open(NOT_DEFINED)
    cases = cases_of(result, run)
    if (size := cases[0].group_size or 1) > 1:
        definition = of_groups(definition, size, len(cases))
    proofs = [_proof_of_one(definition, result, case, question, taken) for case in cases]
    largest = max(proofs, key=lambda proof: (proof.place == BELOW, float(proof.lower)))
    return largest._replace(alone="; ".join(dict.fromkeys(proof.alone for proof in proofs if proof.alone)))


def _proof_of_one(definition: Definition, result: Result, run: Run, question: Question, taken: Set[str]) -> Proof:
    """Return what is proved of a result for one record."""
    prove = _PROOFS.get(result.quantity, _budget_proof)
    proofs: list[Proof] = []
    silent: dict[str, str] = {}  # reading -> why the theorem does not speak of it
    for reading in readings_of(result, run, question):
        try:
            proofs.append(prove(definition.gives(definition.formula, reading)))
            check_label(result, reading.parameters, reading.read & taken)
        except OutOfReach as reason:
            silent[reading.name] = str(reason)
        except Undecided:
            raise Open(OPEN_AT_CAP) from None
    if not proofs:
        raise Open(next(iter(silent.values())))
    return weakest(proofs)._replace(alone="; ".join(f"{name}: {reason}" for name, reason in silent.items()))


def _mu_proof(guarantee: Guarantee) -> Proof:
    return proof_of_value(Quantity.MU.value, guarantee.reading.result.value, guarantee.mu)


def _rdp_proof(guarantee: Guarantee) -> Proof:
    return guarantee.rdp_proof()


def _delta_proof(guarantee: Guarantee) -> Proof:
    """Return the proof of ln delta; a delta below its exponential is disproved."""
    result = guarantee.reading.result
    assert result.log_delta is not None
    proof = guarantee.delta_proof()
    return proof if _covers(result.value, result.log_delta) else proof._replace(place=BELOW)


def _epsilon_proof(guarantee: Guarantee) -> Proof:
    return guarantee.epsilon_proof()


def _budget_proof(guarantee: Guarantee) -> Proof:
    return guarantee.budget_proof()


def _covers(delta: float, log_delta: float) -> bool:
    """Return whether delta is proved to be at least exp(log_delta)."""
    if log_delta == -math.inf or delta >= 1.0:
        return True
    return place_of(lambda: double(log_delta).exp() - double(delta))[0] == PROVED


_PROOFS: dict[str, Callable[[Guarantee], Proof]] = {
    Quantity.MU: _mu_proof,
    Quantity.RDP: _rdp_proof,
    Quantity.DELTA: _delta_proof,
    Quantity.EPSILON: _epsilon_proof,
}
"""The proof of each quantity; any other is a parameter that was solved for, which must keep to the budget."""
