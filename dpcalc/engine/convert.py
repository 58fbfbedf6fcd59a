"""Conversions of a guarantee to another notion of privacy, and the level of privacy sufficient for a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.checked import Assertion
from dpcalc.engine.commands import inputs_of
from dpcalc.engine.gate import judged
from dpcalc.engine.premises import STARTS, Premise, points_of, premise_of, shown_points
from dpcalc.engine.question import check_question, refuse_unknown
from dpcalc.errors import DpcalcError, Infeasible, NotApplicable, SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.parameter import check
from dpcalc.model.quantities import Given, Kind, Quantity
from dpcalc.model.question import Question, query_of
from dpcalc.notions import conversions, gaussian
from dpcalc.notions.guarantee import Guarantee, Rdp
from dpcalc.notions.notion import Answer
from dpcalc.numerics.floats import exp_up, up
from dpcalc.report import Case, Obstacle, Result

TAKEN = (*STARTS, "to")
"""The parameters of a conversion besides the budget and orders."""

_ENOUGH = ("convert.enough", "what is enough for the budget", "dpcalc", "conversions")

BOUNDS = (*(premise.row[0] for premise in STARTS.values()), _ENOUGH[0])
"""The ids of the rows."""


class _Row(NamedTuple):
    """A number and its quantity."""

    quantity: str
    value: float
    fields: Mapping[str, Any] = {}
    enough: bool = False


def convert(
    command: str, given: Given, question: Question, *, sources: Mapping[str, Source] | None = None,
    gates: Sequence[Any] = (), **_: Any,
) -> Case:  # fmt: skip
    """Return the case of one conversion; the arguments are those of `dpcalc.engine.ask.ask`.

    Args:
        command: ``convert``.
        given: one of mu, rho, pure and rdp (a text such as ``order=8 epsilon=1``, or several), and ``to``.
        question: epsilon, delta or orders; these are the known guarantee if ``given`` has nothing but ``to``.
        sources: parameter name -> where it came from.
        gates: parsed assertions.

    Raises:
        SpecError: what is known or asked is malformed.
        NotApplicable: the target does not follow.
        Infeasible: nothing is enough.
    """
    refuse_unknown(command, given, TAKEN)
    check_question(question)
    if question.solve:
        raise SpecError("a conversion is not solved", "say what you want with --to")
    values = {name: value for name, value in given.items() if value is not None}
    query = query_of(command, values, question)
    to = str(check("to", wanted)) if (wanted := values.get("to")) is not None else ""
    premise, question, typed = premise_of(values, question)
    target = _target(premise, to, question)
    results = tuple(_result(premise, row)._replace(best=True) for row in _rows(premise, target, question))
    written = {**typed, "to": target}
    inputs = inputs_of(written, {**dict.fromkeys(written, question.source), **(sources or {})}, question)
    if premise.is_point:
        inputs = {name: inputs[name] for name in ("epsilon", "delta", "to") if name in inputs}
    case = Case("convert", inputs, results, query=query)
    return case._replace(assertions=judged(gates, case))


def convert_among_others(command: str, given: Given, question: Question, **options: Any) -> Case:
    """Return the case as `convert` does; if nothing follows, it has no results but the reason."""
    try:
        return convert(command, given, question, **options)
    except (NotApplicable, Infeasible) as error:
        return _without(given, question, error, options.get("gates", ()))


def _without(given: Given, question: Question, error: DpcalcError, gates: Sequence[Any]) -> Case:
    shown = dict(given)
    if (points := shown.get("rdp")) is not None:
        shown["rdp"] = shown_points(points_of(points))
    inputs = inputs_of(shown, {}, question)
    failed = tuple(Assertion(gate.text, False, "no guarantee", None) for gate in gates)
    return Case("convert", inputs, (), (Obstacle("convert", error.message, error.hint or ""),), failed)


def _target(premise: Premise, to: str, question: Question) -> str:
    """Return the target quantity.

    Raises:
        SpecError: nothing is asked, or what is asked is what is known, or needs more.
    """
    asked = {
        "epsilon": question.log_delta is not None,
        "delta": question.epsilon is not None,
        "rdp": bool(question.orders),
    }
    if premise.is_point:
        asked |= {"epsilon": False, "delta": False}
    target = to or next((name for name, is_asked in asked.items() if is_asked), "")
    if not target:
        raise SpecError(
            f"what {premise.words} is to be converted to what?",
            "give --delta for epsilon, --epsilon for delta, --order for rdp, or --to mu or rho",
        )
    if target in (("epsilon", "delta") if premise.is_point else (premise.form,)) and target != Quantity.RDP:
        raise SpecError(f"{target} is given already", "name something else by --to")
    needed = {"epsilon": "delta", "delta": "epsilon", "rdp": "order"}.get(target)
    if needed and not asked[target] and not (premise.is_point and question.orders):
        raise SpecError(f"{target} needs {needed}", f"give --{needed}")
    return target


# --- what follows -----------------------------------------------------------------------------------------------------


def _rows(premise: Premise, target: str, question: Question) -> list[_Row]:
    if premise.is_point:
        return _enough(target, question)
    if why := premise.not_implied.get(target):
        raise NotApplicable(f"{target} does not follow from {premise.words}: {why}", "ask for epsilon at a delta")
    if target == Quantity.RDP:
        return [_rdp(premise, order) for order in question.orders]
    if target in _AT_A_BUDGET:
        return [_AT_A_BUDGET[target](premise, question)]
    value = premise.parameter(target)
    return [_Row(target, value, {"mu": value} if target == Quantity.MU else {})]


def _epsilon(premise: Premise, question: Question) -> _Row:
    answer = premise.epsilon(question)
    if math.isinf(answer.value):
        raise NotApplicable("gives no finite epsilon here", "a larger delta")
    fields = {"delta": question.delta, "log_delta": question.log_delta, "mu": premise.mu, **_conversion(answer)}
    return _Row(Quantity.EPSILON, answer.value, {"epsilon": answer.value, **fields})


def _delta(premise: Premise, question: Question) -> _Row:
    answer = premise.log_delta(question)
    value = exp_up(answer.value) if answer.value > -math.inf else 0.0
    fields = {"delta": value, "log_delta": answer.value, "mu": premise.mu, **_conversion(answer)}
    return _Row(Quantity.DELTA, value, {"epsilon": question.epsilon, **fields})


_AT_A_BUDGET: dict[str, Callable[[Premise, Question], _Row]] = {"epsilon": _epsilon, "delta": _delta}


def _conversion(answer: Answer) -> dict[str, Any]:
    finite = answer.order is not None and math.isfinite(answer.order)
    return {"conversion": answer.conversion, "order": answer.order if finite else None}


def _rdp(premise: Premise, order: float) -> _Row:
    """Return the Renyi divergence at an order.

    Raises:
        NotApplicable: nothing is known of so large an order.
    """
    value = premise.curve.rdp(conversions.after(order))
    if math.isinf(value):
        raise NotApplicable(f"nothing is known of the Renyi divergence at order {order:g}", "ask for a smaller order")
    return _Row(Quantity.RDP, value, {"order": order})


# --- what is enough for a budget --------------------------------------------------------------------------------------


def _enough(target: str, question: Question) -> list[_Row]:
    """Return the most mu, rho, pure epsilon or Renyi divergence that implies the budget: nothing follows the other way.

    Raises:
        Infeasible: nothing is enough.
    """
    epsilon, log_delta = question.safe_epsilon, question.safe_log_delta
    if target == Quantity.MU:
        values = [gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta)]
    elif target == Quantity.RDP:
        values = [_most(_at_order(order), epsilon, log_delta) for order in question.orders]
    else:
        notion: Callable[[float], Guarantee] = conversions.concentrated if target == Quantity.RHO else conversions.box
        values = [_most(notion, epsilon, log_delta)]
    if not all(value > 0.0 for value in values):
        raise Infeasible(f"no {target} is enough for this budget", "allow a larger epsilon or delta")
    orders = question.orders if target == Quantity.RDP else (None,)
    return [
        _Row(f"sufficient_{target}", value, {**question.budget, "order": order}, enough=True)
        for value, order in zip(values, orders, strict=True)
    ]


def _most(guarantee: Callable[[float], Guarantee], epsilon: float, log_delta: float) -> float:
    return conversions.most(lambda value: guarantee(up(value)), epsilon, log_delta, 4.0 * (epsilon + 1.0))


def _at_order(order: float) -> Callable[[float], Guarantee]:
    """Return the guarantee of a divergence at one order."""
    order = conversions.before(order)

    def guarantee(value: float) -> Guarantee:
        return Rdp(lambda a: value if a <= order else math.inf, (order,))

    return guarantee


def _result(premise: Premise, row: _Row) -> Result:
    from dpcalc.references import SHORT

    bound, title, reference, locator = _ENOUGH if row.enough else premise.row
    return Result(
        bound, title, row.quantity, row.value, Kind.UPPER, adjacency="as-given",
        assumes=(_FORWARD if not row.enough else _BACKWARD,), reference=f"{SHORT[reference]}, {locator}",
        **{"conversion": "exact", **row.fields},
    )  # fmt: skip


_FORWARD = "what is given holds of the mechanism, for both orders of neighbouring data sets"
_BACKWARD = "the mechanism is known to have what is enough: the budget alone implies none of it"
