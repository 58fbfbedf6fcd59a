"""The gates under ``assert:``: a quantity compared with a number, or with other cases of the same recipe.

The right side is a sum of products of numbers and of ``cases.NAME.QUANTITY``, by a grammar without recursion. It is
evaluated in exact rational arithmetic, and rounded to the side where the gate is harder to pass.

Expectations under ``expect:``: values that must not have moved, or a refusal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.checked import Assertion
from dpcalc.engine.convert import BOUNDS as CONVERTED
from dpcalc.engine.gate import BOUND, QUANTITIES, Gate, Sign, gated_quantity, judge, parse, quantity, split
from dpcalc.engine.ledgers.total import BOUNDS as COMPOSED
from dpcalc.errors import SpecError
from dpcalc.files.documents import Field, Node, items, mapping, one_of, text, word
from dpcalc.files.place import Place, clipped, near
from dpcalc.model.numbers import parse_number
from dpcalc.model.quantities import ATTACKS, Quantity
from dpcalc.report import Case, Result

if TYPE_CHECKING:
    from fractions import Fraction


MAX_GATES = 100
MAX_LENGTH = 1000

_TOKEN = re.compile(
    r"\s*(?:(?P<case>cases\.(?P<name>[A-Za-z0-9_-]+(?:\[[^\]]*\])?)\.(?P<quantity>[a-z_]+))"
    r"|(?P<number>(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:\^-?[0-9]+)?%?)"
    r"|(?P<operator>(?P<sign>[-+])|(?P<divides>/)|\*))\s*"
)


_SIGNS = {"+": 1, "-": -1}


class Reference(NamedTuple):
    """A quantity of another case."""

    name: str
    quantity: str


class Factor(NamedTuple):
    """A number or a reference, which multiplies or divides the factors before it."""

    divides: bool
    value: float | Reference


class RecipeGate(NamedTuple):
    """A gate and where it stands; its limit follows from ``terms`` (signed products) where it names other cases."""

    place: Place
    gate: Gate
    terms: tuple[tuple[int, tuple[Factor, ...]], ...] = ()

    @property
    def references(self) -> Iterator[Reference]:
        """The quantities of other cases in the gate."""
        return (f.value for _, factors in self.terms for f in factors if isinstance(f.value, Reference))


Lookup = Callable[[str], Case]
"""The other cases of a recipe by name."""


def read_gates(field: Field, key: str) -> tuple[RecipeGate, ...]:
    """Return the gates of an ``assert:`` field, one or a list.

    Raises:
        SpecError: one does not parse; the message says where.
    """
    nodes = items(field.node)
    field.place.refuse(
        (len(nodes) > MAX_GATES, f"{len(nodes)} assertions; at most {MAX_GATES} are read", "split the case"),
        (not nodes, "assert is an empty list", "write, for example, assert: epsilon <= 1"),
    )
    return tuple(_read_gate(node, key) for node in nodes)


def _read_gate(node: Node, key: str) -> RecipeGate:
    typed, place = " ".join(text(node, key).split()), node.place
    if len(typed) > MAX_LENGTH:
        raise place.error(f"an assertion of {len(typed)} characters is too long", f"at most {MAX_LENGTH}")
    with place.blamed():
        name, sign, right = split(typed)
        compares = name != BOUND and "cases." in right
        if compares and name.partition("@")[0] in ATTACKS:
            raise SpecError(f"{name} is compared with a number alone", "write, for example, advantage<=0.1")
        if compares:
            return RecipeGate(place, Gate(typed, name, sign, math.nan), _terms(right))
        gate = parse(typed)
        if name == BOUND:
            check_bound(right)
        return RecipeGate(place, gate)


def check_bound(id: str) -> None:
    """Raise SpecError if there is no bound with this id."""
    from dpcalc.engine.attack.stated import BOUNDS as ATTACKED
    from dpcalc.theorems.record import lookup

    if id not in (*CONVERTED, *COMPOSED, *ATTACKED):  # these are not theorems of their own
        lookup(id)


def _terms(right: str) -> tuple[tuple[int, tuple[Factor, ...]], ...]:
    """Return the signed products whose sum is ``right``."""
    terms: list[tuple[int, list[Factor]]] = [(1, [])]
    wants_value, divides, place = True, False, 0
    while place < len(right):
        token = _TOKEN.match(right, place)
        if token is None:
            raise _not_a_comparison(right[place:])
        operator = token["operator"]
        if wants_value and operator is None:
            terms[-1][1].append(Factor(divides, _value(token)))
            wants_value = False
        elif not wants_value and operator is not None:
            wants_value, divides = True, token["divides"] is not None
            if token["sign"] is not None:
                terms.append((_SIGNS[token["sign"]], []))
        else:
            raise _not_a_comparison(right[place:])
        place = token.end()
    if wants_value:
        raise _not_a_comparison("")
    return tuple((sign, tuple(factors)) for sign, factors in terms)


def _not_a_comparison(rest: str) -> SpecError:
    where = f"{clipped(rest)} is not expected here" if rest else "the right side ends too soon"
    return SpecError(where, "write sums and products of numbers and cases.NAME.QUANTITY: cases.base.epsilon * 2 + 0.1")


def _value(token: re.Match[str]) -> float | Reference:
    if token["number"]:
        return parse_number(token["number"])
    if token["quantity"] not in QUANTITIES or token["quantity"] in (BOUND, *ATTACKS):
        raise SpecError(f"a case has no {token['quantity']}", near(token["quantity"], QUANTITIES))
    return Reference(token["name"], token["quantity"])


def judge_gate(recipe_gate: RecipeGate, case: Case, lookup: Lookup) -> Assertion:
    """Return whether a gate holds of a case's best guarantee; ``lookup`` gives the other cases.

    Raises:
        SpecError: the case, or one it is compared with, reports no such quantity.
        DpcalcError: as ``lookup``.
    """
    gate = recipe_gate.gate
    return judge(gate._replace(limit=_limit(recipe_gate, lookup)) if recipe_gate.terms else gate, case)


def _limit(recipe_gate: RecipeGate, lookup: Lookup) -> float:
    """Return the sum as a double, rounded to the side where the gate is harder to pass."""
    from fractions import Fraction

    total = Fraction(0)
    for sign, factors in recipe_gate.terms:
        product = Fraction(sign)
        for factor in factors:
            value = Fraction(_quantity(factor.value, lookup) if isinstance(factor.value, Reference) else factor.value)
            if factor.divides and not value:
                raise SpecError(f"{clipped(recipe_gate.gate.text)} divides by zero")
            product = product / value if factor.divides else product * value
        total += product
    return _rounded(total, up=not recipe_gate.gate.at_most)


def _rounded(exact: Fraction, *, up: bool) -> float:
    try:
        value = float(exact)
    except OverflowError:
        raise SpecError("the right side is too large for a number") from None
    if up:
        return value if value >= exact else math.nextafter(value, math.inf)
    return value if value <= exact else math.nextafter(value, -math.inf)


def _quantity(reference: Reference, lookup: Lookup) -> float:
    chosen = best_of(lookup(reference.name), reference.quantity)
    if not chosen:
        raise SpecError(f"case {reference.name} has no guarantee to compare with")
    if len(chosen) > 1 and reference.quantity == Quantity.RDP:
        raise SpecError(f"case {reference.name} has several orders", "compare with a case of one order")
    value = max(quantity(result, reference.quantity) for result in chosen)
    if not math.isfinite(value):
        raise SpecError(f"{reference.quantity} of case {reference.name} is {value}")
    log_delta = chosen[0].log_delta
    if reference.quantity == Quantity.DELTA and log_delta is not None and log_delta < -690.0:
        raise SpecError(f"delta of case {reference.name} is below 1e-300", "compare log_delta")
    return value


def best_of(case: Case, name: str) -> list[Result]:
    """Return the best results of a case that are about a quantity, or else its best."""
    return [result for result in case.answers if result.quantity == name] or list(case.answers)


ERRORS = {"infeasible": "Infeasible", "not_applicable": "NotApplicable", "not_converged": "NotConverged"}
"""The refusals that a case may expect, with their errors."""


class Expectation(NamedTuple):
    """The expected value of a quantity, and its relative tolerance."""

    place: Place
    name: str
    value: float | str
    tolerance: float


class Expected(NamedTuple):
    """The expected answer of a case: values, or a refusal."""

    place: Place
    values: tuple[Expectation, ...]
    error: str | None


def read_expected(field: Field, key: str) -> Expected:
    """Parse an ``expect:`` field.

    Raises:
        SpecError: it does not parse; the message says where.
    """
    how, what = mapping(field, key).parted(_OF_EXPECT)
    tolerance = how.read("tolerance", _tolerance, 1e-6)
    values = tuple(_expectation(name, entry, tolerance) for name, entry in what.fields.items())
    refusal: str | None = how.read("error", one_of(ERRORS))
    if refusal is None and not values:
        raise field.place.error("expect says nothing", "write, for example, expect: {epsilon: 1.25}")
    if refusal is not None and values:
        raise how.fields["error"].place.error("an error and a value are expected", "keep one of the two")
    return Expected(field.place, values, refusal)


_OF_EXPECT = ("tolerance", "error")
"""The keys under ``expect:`` that are not quantities."""


def _tolerance(field: Field, name: str) -> float:
    value = _number(field, name)
    if not 0.0 <= value < 1.0:
        raise field.node.place.error(f"tolerance is {value!r}; it must be >= 0 and < 1", "it is relative: 1e-3, or 1%")
    return value


def _expectation(name: str, field: Field, tolerance: float) -> Expectation:
    if name not in QUANTITIES:
        raise field.place.error(f"cannot expect {clipped(name)}", near(name, (*QUANTITIES, *_OF_EXPECT)))
    place, value = field.node.place, word(field, name) if name == BOUND else _number(field, name)
    if isinstance(value, str):
        with place.blamed():
            check_bound(value)
    return Expectation(place, name, value, tolerance)


def _number(field: Field, name: str) -> float:
    with field.node.place.blamed(f"{name}: "):
        return parse_number(word(field, name).strip(" "))


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
