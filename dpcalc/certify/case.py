"""Certify an answer: recompute each guarantee in ball arithmetic and record the proved enclosure.

The proof shows that the reported double is not below the value of the bound's formula for the run, both for the given
doubles and for the decimals that they print as. It does not show that the formula is a theorem (docs/method.md does).
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from dpcalc.certify.guarantee import Proof
from dpcalc.errors import BoundFailed, Disproved, NotConverged, SpecError, isolate_failure
from dpcalc.notes import NotCertified
from dpcalc.report import Case, Result, uncertified
from dpcalc.version import __version__

if TYPE_CHECKING:
    from dpcalc.certify.guarantee import Proof
    from dpcalc.model.question import Question
    from dpcalc.model.run import Run


def certify(
    case: Case,
    run: Run | None,
    question: Question,
    undefined: Mapping[str, str],
    taken: Mapping[str, Collection[str]] | None = None,
) -> Case:
    """Return the case with ``details["certified"]`` or ``details["not_certified"]`` of every guarantee filled in.

    Args:
        case: the answer.
        run: the described run; None if the answer is a cost.
        question: the question.
        undefined: bound -> why there is no definition of it.
        taken: bound -> the parameters that it takes, which its assumptions may have to mention; not checked for other
        bounds.

    Raises:
        SpecError: python-flint is not installed.
        Disproved: a guarantee is below the truth.
    """
    try:
        import flint  # noqa: F401
    except ImportError:
        raise SpecError("--certify needs python-flint", "pip install python-flint") from None
    results = (
        _certified(result, case, run, question, undefined, frozenset((taken or {}).get(result.bound, ())))
        if result.guarantee
        else result
        for result in case.results
    )
    case = case._replace(results=tuple(results))
    return case._replace(note_data=(*case.note_data, *tuple(_note(result, case) for result in uncertified(case))))


def has_definition(bound: str) -> bool:
    """Return whether a bound or a cost has a definition."""
    from dpcalc.certify.risk.costs import price_of
    from dpcalc.certify.table import definition_of

    return price_of(bound) is not None or definition_of(bound) is not None


def may_stay_open(bound: str) -> bool:
    """Return whether a definition may fail to confirm a correct number: one of a composition is only an upper bound."""
    from dpcalc.certify.guarantee import Composition, EnclosedRdp
    from dpcalc.certify.risk.costs import price_of
    from dpcalc.certify.table import definition_of

    definition, price = definition_of(bound), price_of(bound)
    if price is not None:
        return price.parts is not None
    return definition is not None and issubclass(definition.gives, (Composition, EnclosedRdp))


def _certified(
    result: Result,
    case: Case,
    run: Run | None,
    question: Question,
    undefined: Mapping[str, str],
    taken: frozenset[str],
) -> Result:
    """Return the result with its proof, or with the reason why there is none.

    Raises:
        Disproved: the result is below the truth.
    """
    from dpcalc.certify.guarantee import Open
    from dpcalc.certify.numerics.sums import BELOW
    from dpcalc.certify.result_proof import proof_of, proof_of_cost

    try:
        with isolate_failure():
            if result.bound in undefined:
                raise Open(undefined[result.bound])
            proof = proof_of_cost(result, case, question) if run is None else proof_of(result, run, question, taken)
    except (NotConverged, BoundFailed) as reason:
        return _with_detail(result, "not_certified", reason.message)
    if proof.place == BELOW:
        raise Disproved(f"{result.bound} is below the truth", bug_report(result, case, proof))
    return _with_detail(result, "certified", proof.as_json())


def _with_detail(result: Result, name: str, value: Any) -> Result:
    return result._replace(details={**(result.details or {}), name: value})


def _note(result: Result, case: Case) -> NotCertified:
    """Return why the result is not certified, and the best certified result."""
    reason = (result.details or {})["not_certified"]
    for other in case.results:
        if (other.details or {}).get("certified") is not None and other.order == result.order:
            any_value = (other.details or {}).get("any")
            return NotCertified(
                bound=result.bound, because=reason, instead=other.bound, any=any_value, **other.value_fields
            )
    return NotCertified(bound=result.bound, because=reason)


def bug_report(result: Result, case: Case, proof: Proof) -> str:
    """Return the versions, the run, the result and the enclosure that contradicts it."""
    inputs = ", ".join(f"{name}={value!r}" for name, (value, _) in case.inputs.items())
    return "\n".join(
        (
            f"dpcalc {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"algorithm: {case.algorithm}",
            f"inputs: {inputs}",
            f"bound: {result.bound}, {result.quantity} = {result.value!r}, epsilon = {result.epsilon!r}, "
            f"log_delta = {result.log_delta!r}, order = {result.order!r}, conversion = {result.conversion!r}",
            f"proved: {proof.quantity} in [{proof.lower}, {proof.upper}] ({proof.bits} bits)",
        )
    )
