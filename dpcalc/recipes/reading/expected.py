"""What stands under ``expect:``: values that must not have moved, or the refusal that there must be."""

from __future__ import annotations

from typing import NamedTuple

from dpcalc.engine.gate import BOUND, QUANTITIES, Gate, Sign, gated_quantity, judge
from dpcalc.errors import SpecError
from dpcalc.files.nodes import Field, Node, table, text
from dpcalc.files.place import FileError, Place, clipped, near
from dpcalc.model.numbers import parse_number
from dpcalc.recipes.reading.gates import best_of, check_bound
from dpcalc.report import Assertion, Case

ERRORS = {"infeasible": "Infeasible", "not_applicable": "NotApplicable", "not_converged": "NotConverged"}
"""The refusals that a case may expect, and the errors that they are."""


class Expectation(NamedTuple):
    """A value that a quantity had, and how far it may move, relatively."""

    place: Place
    name: str
    value: float | str
    tolerance: float


class Expected(NamedTuple):
    """What a case must answer: values, or the refusal that there must be."""

    place: Place
    values: tuple[Expectation, ...]
    error: str | None


def read_expected(field: Field) -> Expected:
    """Return what an ``expect:`` field says.

    Raises:
        SpecError: it does not parse; the message says where.
    """
    body = table(field.node, "expect")
    fields = dict(body.fields)
    tolerance = _tolerance(fields.pop("tolerance", None))
    refusal = fields.pop("error", None)
    values = tuple(_expectation(name, entry, tolerance) for name, entry in fields.items())
    if refusal is None:
        if not values:
            raise field.place.error("expect says nothing", "write, for example, expect: {epsilon: 1.25}")
        return Expected(field.place, values, None)
    word = text(refusal.node, "error")
    if word not in ERRORS:
        raise refusal.node.place.error(f"error is {clipped(word)}; it must be one of {', '.join(ERRORS)}")
    if values:
        raise refusal.place.error("an error and a value are expected", "keep one of the two")
    return Expected(field.place, (), word)


def _tolerance(field: Field | None) -> float:
    if field is None:
        return 1e-6
    value = _number("tolerance", field.node)
    if not 0.0 <= value < 1.0:
        raise field.node.place.error(f"tolerance is {value!r}; it must be >= 0 and < 1", "it is relative: 1e-3, or 1%")
    return value


def _expectation(name: str, field: Field, tolerance: float) -> Expectation:
    if name not in QUANTITIES:
        raise field.place.error(f"cannot expect {clipped(name)}", near(name, (*QUANTITIES, "tolerance", "error")))
    if name != BOUND:
        return Expectation(field.node.place, name, _number(name, field.node), tolerance)
    typed = text(field.node, name)
    try:
        check_bound(typed)
    except SpecError as error:
        raise field.node.place.error(error.message, error.hint) from None
    return Expectation(field.node.place, name, typed, tolerance)


def _number(name: str, node: Node) -> float:
    try:
        return parse_number(text(node, name).strip(" "))
    except FileError:
        raise
    except SpecError as error:
        raise node.place.error(f"{name}: {error.message}", error.hint) from None


def judge_expectation(expectation: Expectation, case: Case) -> Assertion:
    """Return whether a value is still what it was.

    Raises:
        SpecError: the case reports no such quantity, or it was given.
    """
    best, (_, name, wanted, tolerance) = case.best, expectation
    if best is None:
        return Assertion(f"{name}=={wanted}", False, "no guarantee", None)
    if isinstance(wanted, str):
        return judge(Gate(f"{BOUND}{Sign.EQUAL}{wanted}", BOUND, Sign.EQUAL, wanted), case)
    value = max(gated_quantity(result, name, case) for result in best_of(case, name))
    slack = tolerance * abs(wanted) - abs(value - wanted)
    return Assertion(f"{name}=={wanted!r} within {tolerance:g}", slack >= 0.0, value, slack)
