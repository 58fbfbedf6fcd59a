"""The proof of one result about a run by the definition of its bound, in the worse of the two readings.

The label of a result must state the adjacency and the assumptions that its definition was evaluated for. The proof of
an excess risk covers the risk of the reported run, and that its noise keeps the budget.

Definitions for groups of k records use a chain of data sets that each differ from the next in one record:

* mu-GDP: k mu.
* A Renyi curve: D_a(P||S) <= (1 + l/j)/p D_pa(P||Q) + D_b(Q||S), b = a k/l, with j links before Q and l = k - j after
it, for p = 1 + (l/j)(a - 1)/a (Bun and Steinke 2016; see docs/method.md).
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable, Collection, Set
from typing import TYPE_CHECKING, Any

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, Open, Proof, Rdp, proof_by, proof_of_parts, weakest
from dpcalc.certify.numerics.balls import START, OutOfReach, Undecided, double, precision
from dpcalc.certify.numerics.composition import Part
from dpcalc.certify.numerics.sums import BELOW, PROVED, enclosed, place_of
from dpcalc.certify.reading import Reading, asked_log_delta, cases_of, readings_of
from dpcalc.certify.risk.costs import Price, price_of
from dpcalc.certify.runs.run import HIDDEN, RunInputs
from dpcalc.certify.table import Definition, Formula, definition_of
from dpcalc.model.quantities import Quantity
from dpcalc.report import Case, Result

if TYPE_CHECKING:
    from dpcalc.model.question import Question
    from dpcalc.model.run import Run

_NO_GROUPS = "groups of records have a definition for Gaussian privacy and Renyi curves alone"


def of_groups(definition: Definition, size: int, records: int) -> Definition:
    """Return the definition of a bound for groups.

    Args:
        definition: the one for a single record.
        size: k > 1.
        records: the number of records that may be the worst one.

    Raises:
        Open: there is no definition for groups.
    """
    if issubclass(definition.gives, Gdp):
        return definition._replace(formula=lambda v: size * definition.formula(v))
    # The worst record may differ between orders.
    if issubclass(definition.gives, Rdp) and records == 1:
        return definition._replace(formula=lambda v: _renyi(definition.formula, v, v.order, size))
    raise Open(_NO_GROUPS)


def _renyi(formula: Formula, v: RunInputs, order: arb | None, size: int) -> arb:
    """Return the Renyi divergence of groups of ``size`` records at an order; None is the order infinity."""
    if size == 1:
        value: arb = formula(v.changed(order=order))
        return value
    if order is None:
        return size * _renyi(formula, v, None, 1)
    after = size // 2
    ratio = fmpq(after, size - after)
    exponent = 1 + ratio * (order - 1) / order
    first = _renyi(formula, v, order * exponent, size - after)
    return (1 + ratio) / exponent * first + _renyi(formula, v, order * fmpq(size, after), after)


_SAID: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    (("diameter", "displacement"), "the domain is bounded", ("domain", "projected", "noise of its schedule")),
    (("smoothness", "strong_convexity"), "the losses are of a class", ("smooth", "Lipschitz", "convex", "class")),
    (("laplace_scale", "noise_std", "noise_multiplier", "scale"), "there is noise", ("noise",)),
)
"""(parameters that a definition reads, what the label must then state, words that state it)."""


def check_label(result: Result, adjacency: str, read: Collection[str]) -> None:
    """Check that the label of a result states what its proof assumes.

    Args:
        result: the result with its label.
        adjacency: the adjacency of its definition.
        read: the names of the parameters with a value that the definition read and the theorem takes.

    Raises:
        Open: the label does not state it.
    """
    check_adjacency(result, adjacency)
    text = " ".join(result.assumes)
    for names, assumption, words in _SAID:
        if any(name in read for name in names) and not any(word in text for word in words):
            raise Open(f"its assumptions do not say that {assumption}, which its definition uses")
    certificate = (result.details or {}).get("certificate") or {}
    theorems = {certificate.get("theorem"), (certificate.get("inner") or {}).get("theorem")}
    if HIDDEN in theorems and "secret" not in text:
        raise Open("its assumptions do not say that the order stays secret, which its definition uses")


def check_adjacency(result: Result, adjacency: str) -> None:
    """Check that the label names the adjacency that the definition was evaluated for.

    Raises:
        Open: it names another.
    """
    if result.adjacency != adjacency:
        raise Open(f"it is said of data sets that differ by {result.adjacency}, and the definition is of {adjacency}")


NOT_DEFINED = "no definition of it has been written"
OPEN_AT_CAP = "open at the most digits that are tried"


def proof_of(result: Result, run: Run, question: Question, taken: Set[str]) -> Proof:
    """Return the proof of a result, by the worse of the two readings of its inputs.

    Args:
        result: the result with its label.
        run, question: the run and the question.
        taken: the parameters that the theorem takes, which its label may have to mention.

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
    """Return the proof of a result for one record."""
    proofs: list[Proof] = []
    silent: dict[str, str] = {}  # reading -> why the theorem does not cover it
    for reading in readings_of(result, run, question):
        try:
            proofs.append(_proof_in(reading, definition))
            adjacency = str(reading.parameters.get("adjacency") or "by-shift")
            check_label(result, adjacency, reading.read & taken)
        except OutOfReach as reason:
            silent[reading.name] = str(reason)
        except Undecided:
            raise Open(OPEN_AT_CAP) from None
    if not proofs:
        raise Open(next(iter(silent.values())))
    return weakest(proofs)._replace(alone="; ".join(f"{name}: {reason}" for name, reason in silent.items()))


def _proof_in(reading: Reading, definition: Definition) -> Proof:
    """Return the proof in one reading; a delta below the exponential of its ln delta is disproved."""
    proof, result = definition.gives(definition.formula, reading).proof(), reading.result
    if result.quantity == Quantity.DELTA and not _covers(result.value, result.log_delta or 0.0):
        return proof._replace(place=BELOW)
    return proof


def _covers(delta: float, log_delta: float) -> bool:
    """Return whether delta is proved to be at least exp(log_delta)."""
    if log_delta == -math.inf or delta >= 1.0:
        return True
    return place_of(lambda: double(log_delta).exp() - double(delta))[0] == PROVED


_PROVED: deque[Any] = deque(maxlen=16)
"""The compositions proved last, by the values that they read: several risks have the same noise."""


def proof_of_cost(result: Result, case: Case, question: Question) -> Proof:
    """Return the proof of an excess risk, by the worse of the two readings of its inputs.

    Raises:
        Open: nothing is proved; the text says why.
    """
    price = price_of(result.bound)
    if price is None:
        raise Open(NOT_DEFINED)
    check_adjacency(result, "replace-one")
    chosen = result.details or {}
    parameters = {
        **{name: value for name, (value, _) in case.inputs.items()},
        "log_delta": question.log_delta,
        "sigma": chosen.get("noise_std"),  # the run behind the risk
        "eta": chosen.get("step_size"),
        "count": chosen.get("steps"),
    }
    readings = (functools.partial(RunInputs, parameters, typed, exactly=("log_delta",)) for typed in (False, True))
    try:
        return weakest([_proof_of_risk(price, result, question, reading) for reading in readings])
    except Undecided:
        raise Open(OPEN_AT_CAP) from None
    except OutOfReach as reason:
        raise Open(str(reason)) from None


def _proof_of_risk(price: Price, result: Result, question: Question, reading: Callable[[], RunInputs]) -> Proof:
    """Return the proof of a risk in one reading: of the risk, and that ln delta is at most the question's."""
    v, private = reading(), price.private
    enclosure = enclosed(lambda: price.risk(v), result.value)
    if private is not None and result.epsilon is not None:
        place, bits = place_of(lambda: private(v) - asked_log_delta(question, v.typed))
        enclosure = enclosure._replace(
            place=enclosure.place if place == PROVED else place, bits=max(bits, enclosure.bits)
        )
    if price.parts is not None and enclosure.place == PROVED:
        _prove_composed(price.parts, reading(), question)
    return proof_by(result.quantity, enclosure)


def _prove_composed(parts: Callable[[RunInputs], list[Part]], v: RunInputs, question: Question) -> None:
    """Prove that the composed run keeps the budget.

    Raises:
        Open: the enclosure of ln delta does not end below the question's ln delta.
    """
    with precision(START):
        composed, epsilon = parts(v), arb(v.epsilon)
    names = (*v.read, "sigma", "count", "epsilon", "log_delta")
    key = (parts, v.typed, tuple(sorted((name, repr(v.given(name))) for name in names)))
    if key not in _PROVED:
        proof_of_parts(composed, epsilon, v.as_double("log_delta"), lambda: asked_log_delta(question, v.typed))
        _PROVED.append(key)
