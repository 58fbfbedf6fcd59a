"""A guarantee in the words of another notion of privacy, and what would be enough for a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.ask import judged
from dpcalc.engine.inputs import inputs_of
from dpcalc.engine.question import Question, check_question, query_of, refuse_unknown
from dpcalc.errors import DpcalcError, Infeasible, NotApplicable, SpecError
from dpcalc.model.parameter import check
from dpcalc.model.quantities import Kind, Quantity
from dpcalc.model.source import Source
from dpcalc.notions import conversions, gaussian
from dpcalc.notions.guarantee import Gdp, Guarantee, Rdp
from dpcalc.notions.notion import Answer
from dpcalc.numerics.floats import is_short, up
from dpcalc.numerics.logspace import exp_up
from dpcalc.report import Assertion, Case, Obstacle, Result

STARTS = ("mu", "rho", "pure", "rdp")
"""What may be known, beside (epsilon, delta)."""

TAKEN = (*STARTS, "to")
"""What a conversion takes beside the budget and orders."""

MOST_POINTS = 100

_OF = {
    "mu": ("convert.gdp", "mu-Gaussian privacy", "dong2022", "Corollary 2.13"),
    "rho": ("convert.zcdp", "zero-concentrated privacy", "dpcalc", "conversions (Bun and Steinke 2016)"),
    "pure": ("convert.pure", "pure privacy: randomised response is the worst", "kairouz2015", "Theorem 3.3"),
    "rdp": ("convert.renyi", "Renyi privacy at some orders", "mironov2017", "Definition 4"),
}
_ENOUGH = ("convert.enough", "what is enough for the budget", "dpcalc", "conversions")

BOUNDS = (*(of[0] for of in _OF.values()), _ENOUGH[0])
"""The ids of the rows."""

_NOT_IMPLIED = {
    ("mu", "pure"): "losses of a Gaussian mechanism are not bounded",
    ("rho", "pure"): "losses of a concentrated mechanism need not be bounded",
    ("rho", "mu"): "no theorem here bounds mu of a mechanism known by its Renyi divergence",
    ("rdp", "mu"): "no theorem here bounds mu of a mechanism known by its Renyi divergence",
    ("rdp", "rho"): "bounds at some orders say nothing of larger ones, and rho is for all of them",
}


class Known(NamedTuple):
    """The guarantee that is known: mu, rho, pure, rdp (points order -> epsilon) or point (epsilon and ln delta)."""

    form: str
    value: float = math.nan
    log_delta: float = -math.inf
    points: Mapping[float, float] = {}

    @property
    def words(self) -> str:
        """What it is, in a message."""
        return {"pure": "pure privacy", "point": "(epsilon, delta)", "rdp": "a Renyi divergence"}.get(
            self.form, self.form
        )


class _Row(NamedTuple):
    """A number that was found, and of what."""

    quantity: str
    value: float
    fields: Mapping[str, Any] = {}
    enough: bool = False


def convert(
    command: str, given: Mapping[str, Any], question: Question, *, sources: Mapping[str, Source] | None = None,
    gates: Sequence[Any] = (), **_: Any,
) -> Case:  # fmt: skip
    """Return the case of one conversion; it takes what `dpcalc.engine.ask.ask` takes.

    Args:
        command: ``convert``.
        given: one of mu, rho, pure and rdp (a text such as ``order=8 epsilon=1``, or several), and ``to``.
        question: epsilon, delta or orders that are asked about; without anything in ``given`` but ``to`` what is known.
        sources: parameter name -> where it came from.
        gates: parsed assertions.

    Raises:
        SpecError: what is known or asked is malformed.
        NotApplicable: what is asked does not follow.
        Infeasible: nothing is enough.
    """
    refuse_unknown(command, given, TAKEN)
    check_question(question)
    if question.solve:
        raise SpecError("a conversion is not solved", "name what is sought by --to")
    values = {name: value for name, value in given.items() if value is not None}
    query = query_of(command, values, question)
    to = str(check("to", values["to"])) if "to" in values else ""
    known, question, typed = known_of(values, question)
    target = _target(known, to, question)
    rows = _found(known, target, question)
    results = tuple(_result(known, row)._replace(best=True) for row in rows)
    written = {**typed, "to": target}
    inputs = inputs_of(written, {**dict.fromkeys(written, question.source), **(sources or {})}, question)
    if known.form == "point":
        inputs = {name: inputs[name] for name in ("epsilon", "delta", "to") if name in inputs}
    case = Case("convert", inputs, results, query=query)
    return case._replace(assertions=judged(gates, case))


def convert_among_others(command: str, given: Mapping[str, Any], question: Question, **options: Any) -> Case:
    """Return the case as `convert` does; where nothing follows it has no results and says why."""
    try:
        return convert(command, given, question, **options)
    except (NotApplicable, Infeasible) as error:
        return _without(given, question, error, options.get("gates", ()))


def _without(given: Mapping[str, Any], question: Question, error: DpcalcError, gates: Sequence[Any]) -> Case:
    shown = {name: _shown(points_of(value)) if name == "rdp" else value for name, value in given.items()}
    inputs = inputs_of(shown, {}, question)
    failed = tuple(Assertion(gate.text, False, "no guarantee", None) for gate in gates)
    return Case("convert", inputs, (), (Obstacle("convert", error.message, error.hint or ""),), failed)


# --- what is known, and what is asked ---------------------------------------------------------------------------------


def known_of(given: Mapping[str, Any], question: Question) -> tuple[Known, Question, dict[str, Any]]:
    """Return what is known, the question that is left, and what was typed of it.

    Raises:
        SpecError: nothing is known, or two things are.
    """
    starts = [name for name in STARTS if name in given]
    if len(starts) > 1:
        raise SpecError(
            f"{' and '.join(starts)} are given: a conversion starts from one guarantee",
            "give one; several guarantees about the same records are composed by `dpcalc ledger`",
        )
    if starts:
        (name,) = starts
        if name == "rdp":
            points = points_of(given[name])
            return Known("rdp", points=points), question, {"rdp": _shown(points)}
        value = float(check(name, given[name]))
        return Known(name, value), question, {name: value}
    if question.epsilon is None:
        raise SpecError(
            "no guarantee is known", "give --mu, --rho, --pure, --rdp 'order=8 epsilon=1', or --epsilon and --delta"
        )
    if not 1e-9 <= question.epsilon <= 1e9:
        raise SpecError(
            f"epsilon is {question.epsilon!r}; it must be from 1e-9 to 1e9", "for example 1; 1e-9 stands for 0"
        )
    if question.log_delta is None:
        return Known("pure", question.epsilon), question._replace(epsilon=None), {"pure": question.epsilon}
    return Known("point", question.epsilon, question.log_delta), question, {}


def points_of(written: Any) -> dict[float, float]:
    """Return bounds on the Renyi divergence: order -> epsilon.

    Args:
        written: ``order=8 epsilon=1``, several such texts, a mapping of orders, or pairs.

    Raises:
        SpecError: it is none of these, or an order is there twice.
    """
    if isinstance(written, Mapping):
        pairs = list(written.items())
    else:
        pairs = []
        for item in _lines(written):
            pairs += _pairs(item) if isinstance(item, str) else [tuple(item)]
    if not 1 <= len(pairs) <= MOST_POINTS:
        raise SpecError(f"rdp has {len(pairs)} points", f"from 1 to {MOST_POINTS} are read")
    points: dict[float, float] = {}
    for order, epsilon in pairs:
        if not isinstance(order, (int, float)) or not order > 1.0:
            raise SpecError(f"rdp: order is {order!r}; it must be a number > 1", "inf stands for pure privacy")
        if not isinstance(epsilon, (int, float)) or not 1e-12 <= epsilon <= 1e9:
            raise SpecError(
                f"rdp: epsilon is {epsilon!r}; it must be from 1e-12 to 1e9", "for example order=8 epsilon=1"
            )
        if not (order == math.inf or order <= 2.0**50):
            raise SpecError(f"rdp: order is {order!r}; it must be at most 2^50, or inf")
        if float(order) in points:
            raise SpecError(f"rdp: order {order!r} is there twice", "keep one")
        points[float(order)] = float(epsilon)
    return points


def _lines(written: Any) -> list[Any]:
    return [written] if isinstance(written, str) else list(written)


def _pairs(line: str) -> list[tuple[float, float]]:
    """Return the points that a line such as ``order=2,8 epsilon=0.1,1`` spells."""
    from dpcalc.model.numbers import parse_number, parse_sweep

    words = dict(word.partition("=")[::2] for word in line.split())
    if set(words) != {"order", "epsilon"} or len(line.split()) != 2:
        raise SpecError(f"rdp: {line[:80]!r} is not a point", "write --rdp 'order=8 epsilon=1'")
    orders = parse_sweep(words["order"], lambda text: parse_number(text, allow_inf=True))
    epsilons = parse_sweep(words["epsilon"], parse_number)
    if len(orders) != len(epsilons):
        raise SpecError(f"rdp: {len(orders)} orders and {len(epsilons)} epsilons", "one epsilon for each order")
    return list(zip(orders, epsilons, strict=True))


def _shown(points: Mapping[float, float]) -> str:
    """Return points as they are typed."""
    orders, epsilons = (",".join(repr(value).removesuffix(".0") for value in row) for row in (points, points.values()))
    return f"order={orders} epsilon={epsilons}"


def _target(known: Known, to: str, question: Question) -> str:
    """Return what is sought.

    Raises:
        SpecError: nothing is asked, or what is asked is what is known, or needs more.
    """
    asked = {
        "epsilon": question.log_delta is not None,
        "delta": question.epsilon is not None,
        "rdp": bool(question.orders),
    }
    if known.form == "point":
        asked |= {"epsilon": False, "delta": False}
    target = to or next((name for name, is_asked in asked.items() if is_asked), "")
    if not target:
        raise SpecError(
            f"what {known.words} is to be converted to is not said",
            "give --delta for epsilon, --epsilon for delta, --order for rdp, or --to mu or rho",
        )
    is_given = target in ("epsilon", "delta") if known.form == "point" else target == known.form != "rdp"
    if is_given:
        raise SpecError(f"{target} is what is given", "name something else by --to")
    needed = {"epsilon": "delta", "delta": "epsilon", "rdp": "order"}.get(target)
    if needed and not asked[target] and not (known.form == "point" and question.orders):
        raise SpecError(f"{target} needs {needed}", f"give --{needed}")
    return target


# --- what follows -----------------------------------------------------------------------------------------------------


def _found(known: Known, target: str, question: Question) -> list[_Row]:
    if known.form == "point":
        return _enough(target, question)
    if why := _NOT_IMPLIED.get((known.form, target)):
        raise NotApplicable(f"{target} does not follow from {known.words}: {why}", "ask for epsilon at a delta")
    if target == "rdp":
        return [_rdp(known, order) for order in question.orders]
    return [{"epsilon": _epsilon, "delta": _delta, "rho": _rho, "mu": _mu, "pure": _pure}[target](known, question)]


def _rho(known: Known, _: Question) -> _Row:
    rho = conversions.gaussian_rho if known.form == "mu" else conversions.pure_rho
    return _Row(Quantity.RHO, rho(up(known.value)))


def _mu(known: Known, _: Question) -> _Row:
    mu = gaussian.pure_mu(epsilon=up(known.value))
    return _Row(Quantity.MU, mu, {"mu": mu})


def _pure(known: Known, _: Question) -> _Row:
    """Return the epsilon of pure privacy that follows from a Renyi divergence of order infinity.

    Raises:
        NotApplicable: it is not known.
    """
    if math.inf not in known.points:
        raise NotApplicable(
            "pure does not follow from a Renyi divergence of finite order: losses need not be bounded",
            "ask for epsilon at a delta",
        )
    return _Row(Quantity.PURE, up(known.points[math.inf]))


def guarantee_of(known: Known) -> Guarantee:
    """Return what is known as a guarantee that answers epsilon, delta and the Renyi divergence."""
    if known.form == "mu":
        return Gdp(up(known.value))
    if known.form == "rho":
        return conversions.concentrated(up(known.value))
    if known.form == "rdp":
        return conversions.interpolated(known.points)
    return conversions.box(known.value, known.log_delta)


def _epsilon(known: Known, question: Question) -> _Row:
    if known.form == "rdp":
        answer = conversions.epsilon_of_points(known.points, question.safe_log_delta)
    else:
        answer = guarantee_of(known).epsilon(question.safe_log_delta)
    value = min(answer.value, up(known.value)) if known.form == "pure" else answer.value
    if math.isinf(value):
        raise NotApplicable("gives no finite epsilon here", "a larger delta")
    fields = {"epsilon": value, "delta": question.delta, "log_delta": question.log_delta, **_how(answer)}
    return _Row(Quantity.EPSILON, value, {**fields, **({"mu": known.value} if known.form == "mu" else {})})


def _delta(known: Known, question: Question) -> _Row:
    if known.form == "pure" and _reaches(question, known.value):
        answer = Answer(-math.inf, None, "pure")
    elif known.form == "rdp":
        answer = conversions.log_delta_of_points(known.points, question.safe_epsilon)
    else:
        answer = guarantee_of(known).log_delta(question.safe_epsilon)
    value = exp_up(answer.value) if answer.value > -math.inf else 0.0
    fields = {"epsilon": question.epsilon, "delta": value, "log_delta": answer.value, **_how(answer)}
    return _Row(Quantity.DELTA, value, {**fields, **({"mu": known.value} if known.form == "mu" else {})})


def _reaches(question: Question, pure: float) -> bool:
    """Return whether the epsilon asked about is at least that of pure privacy, also as the decimals that were typed."""
    asked = question.epsilon or 0.0
    return asked >= pure if is_short(asked) and is_short(pure) else question.safe_epsilon >= up(pure)


def _how(answer: Answer) -> dict[str, Any]:
    finite = answer.order is not None and math.isfinite(answer.order)
    return {"conversion": answer.conversion, **({"order": answer.order} if finite else {})}


def _rdp(known: Known, order: float) -> _Row:
    """Return the Renyi divergence at an order.

    Raises:
        NotApplicable: nothing is known of so large an order.
    """
    curve: Guarantee = conversions.pure_curve(known.value) if known.form == "pure" else guarantee_of(known)
    value = curve.rdp(conversions.after(order))
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
    budget = {"epsilon": question.epsilon, "delta": question.delta, "log_delta": question.log_delta}
    found: list[tuple[float, dict[str, Any]]]
    if target == "mu":
        found = [(gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta), {})]
    elif target == "rdp":
        found = [(_most(_at_order(order), epsilon, log_delta), {"order": order}) for order in question.orders]
    else:
        made: Callable[[float], Guarantee] = conversions.concentrated if target == "rho" else conversions.box
        found = [(_most(made, epsilon, log_delta), {})]
    if not all(value > 0.0 for value, _ in found):
        raise Infeasible(f"no {target} is enough for this budget", "allow a larger epsilon or delta")
    return [_Row(f"sufficient_{target}", value, {**budget, **more}, enough=True) for value, more in found]


def _most(guarantee: Callable[[float], Guarantee], epsilon: float, log_delta: float) -> float:
    return conversions.most(lambda value: guarantee(up(value)), epsilon, log_delta, 4.0 * (epsilon + 1.0))


def _at_order(order: float) -> Callable[[float], Guarantee]:
    """Return the guarantee of a divergence at one order."""
    order = conversions.before(order)

    def guarantee(value: float) -> Guarantee:
        return Rdp(lambda a: value if a <= order else math.inf, (order,))

    return guarantee


def _result(known: Known, row: _Row) -> Result:
    from dpcalc.references import SHORT

    bound, title, reference, locator = _ENOUGH if row.enough else _OF[known.form]
    return Result(
        bound, title, row.quantity, row.value, Kind.UPPER, adjacency="as_given",
        assumes=(_FORWARD if not row.enough else _BACKWARD,), reference=f"{SHORT[reference]}, {locator}",
        **{"conversion": "exact", **row.fields},
    )  # fmt: skip


_FORWARD = "what is given holds of the mechanism, for both orders of neighbouring data sets"
_BACKWARD = "the mechanism is known to have what is enough: the budget alone implies none of it"
