"""A sweep: the results of a report along the parameter that varies, and how parameters are labelled."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import Given, Quantity
from dpcalc.render.chart import Axis, Number, is_wide
from dpcalc.render.numbers import Side, equation, number, symbol_of
from dpcalc.render.words.positions import Neighbours
from dpcalc.report import Case, Report, Result

TYPED = (Source.FLAG, Source.ARGUMENT, Source.FILE)
"""The sources of inputs that a person gave."""

_OF_QUESTION = (Quantity.EPSILON, Quantity.DELTA)

_WORDS = ("algorithm", "noise", "loss_class", "permutation", "adjacency", "last_batch")
"""Parameters whose values label a curve by themselves."""

LN10 = math.log(10.0)

TINY = -300.0
"""The power of ten below which an axis shows log10 delta."""

_UNITS = {
    "noise_std": "units of the gradient",
    "laplace_scale": "units of the gradient",
    "lipschitz": "units of the gradient",
    "diameter": "units of the parameter",
    "displacement": "diameters",
    "epsilon": "nats",
    "rdp": "nats",
}

Key = tuple[tuple[str, Any], ...]
"""The parameters, other than x, that distinguish a curve, with their values."""


class Point(NamedTuple):
    """One result and the parameters it belongs to."""

    inputs: dict[str, Any]
    result: Result
    scale: float | None


class Sweep(NamedTuple):
    """The points of a report, the parameter x that varies, and the others that distinguish curves.

    ``names`` are the names of the theorems by id, ``asked`` the values of x in the questions for each combination of
    the other parameters.
    """

    points: list[Point]
    quantity: str
    x: str
    others: tuple[str, ...]
    names: dict[str, str]
    asked: dict[Key, set[Any]]


def sweep_of(report: Report, only: Sequence[str]) -> Sweep:
    """Return the sweep of a report, for the bounds ``only`` or for all.

    Raises:
        SpecError: no number varies, or a bound of ``only`` gave nothing.
    """
    points = _points(report)
    if only:
        refuse_missing({point.result.bound for point in points}, only)
        points = [point for point in points if point.result.bound in only]
    quantity = points[0].result.quantity if points else ""
    points = [point for point in points if point.result.quantity == quantity]
    names = list(dict.fromkeys(name for point in points for name in point.inputs))
    values = {name: {p.inputs[name] for p in points if name in p.inputs} for name in names}
    varying = [name for name in names if len(values[name]) > 1]
    numeric = [name for name in varying if all(isinstance(v, (int, float)) for v in values[name])]
    if not numeric:
        raise SpecError("there is nothing to draw a curve against: no number varies", _example(quantity))
    x = max(numeric, key=lambda name: len(values[name]))
    others = tuple(name for name in varying if name != x)
    return Sweep(points, quantity, x, others, _names(points), _asked(report, points, x, others))


def refuse_missing(bounds: Collection[str], only: Sequence[str]) -> None:
    """Refuse to draw bounds without results.

    Raises:
        SpecError: there is one.
    """
    missing = [bound for bound in only if bound not in bounds]
    if missing:
        raise SpecError(
            f"--plot-bounds: nothing was found by {', '.join(missing)}", "there is " + ", ".join(sorted(bounds))
        )


def _names(points: Sequence[Point]) -> dict[str, str]:
    """Return the title of every bound; its id if others have the same title."""
    titles = {point.result.bound: point.result.title for point in points}
    shared = Counter(titles.values())
    return {bound: title if title and shared[title] == 1 else bound for bound, title in titles.items()}


def _asked(report: Report, points: Sequence[Point], x: str, others: Sequence[str]) -> dict[Key, set[Any]]:
    """Return the values of x of each combination, including those without results."""
    inputs = [point.inputs for point in points]
    inputs += [_typed(case) for case in report.cases if not case.results]
    asked: dict[Key, set[Any]] = {}
    for own in inputs:
        if isinstance(own.get(x), (int, float)):
            asked.setdefault(_key(own, others), set()).add(own[x])
    return asked


def _key(inputs: Given, others: Sequence[str]) -> Key:
    return tuple((name, inputs[name]) for name in others if name in inputs)


def _typed(case: Case) -> dict[str, Any]:
    typed = {name: value for name, (value, source) in case.inputs.items() if source in TYPED}
    return {"algorithm": case.algorithm, **typed}


def _points(report: Report) -> list[Point]:
    points = []
    for case in report.cases:
        typed = _typed(case)
        scale = case.value("scale") if typed.get("c1") is not None else None
        for result in case.results:
            own = dict(typed)
            if typed.get(Quantity.DELTA) is not None and result.log_delta is not None:
                own[Quantity.DELTA] = result.log_delta  # all digits, even if delta itself is no double
            if result.quantity == Quantity.RDP:
                own["order"] = result.order
            points.append(Point(own, result, scale))
    return points


def _example(quantity: str) -> str:
    sweeps = {"epsilon": "--delta 1e-9:1e-3:log13", "delta": "-e 0.1:5:0.1", "rdp": "--order 2:64:1"}
    return (
        f"sweep a parameter, for example {sweeps.get(quantity, '-e 0.1:5:0.1')} or --eta 0.01:0.1:0.01; "
        "of one run, --risk draws true against false positives"
    )


def grouped(sweep: Sweep, name: Callable[[Point], str | None]) -> dict[tuple[str, Key], list[Point]]:
    """Return the points by their ``name`` (None: omitted) and by the other parameters, in order of x."""
    curves: dict[tuple[str, Key], dict[Any, Point]] = {}
    for point in sweep.points:
        label = name(point)
        if label is not None and sweep.x in point.inputs:
            key = _key(point.inputs, sweep.others)
            curves.setdefault((label, key), {}).setdefault(point.inputs[sweep.x], point)
    return {key: [curve[x] for x in sorted(curve)] for key, curve in curves.items()}


def with_key(label: str, key: Key) -> str:
    """Return a label with the parameters that distinguish its curve."""
    return f"{label}, {key_text(key)}" if key else label


def key_text(key: Key) -> str:
    """Return the parameters that distinguish a curve, for a label."""
    parts = []
    for name, value in key:
        if name == Quantity.DELTA:
            parts.append(f"delta = {delta_label(value)}")
        elif name in _WORDS:
            parts.append(str(value))
        else:
            parts.append(f"{symbol_of(name).rpartition(' ')[2]} = {number(value, side=Side.AS_GIVEN)}")
    return ", ".join(parts)


def delta_label(log_delta: float) -> str:
    """Return a delta for a label."""
    ten = log_delta / LN10
    return f"{math.exp(log_delta):.6g}" if ten > TINY else f"10^{ten:.6g}"


def plain_name(name: str) -> str:
    """Return a quantity's name and symbol for a label."""
    return {"rdp": "Renyi divergence", "mu": "mu (Gaussian DP)"}.get(name) or symbol_of(name).replace("_", " ")


def with_unit(name: str) -> str:
    """Return a quantity's name, symbol and unit for an axis."""
    return plain_name(name) + (f" ({_UNITS[name]})" if name in _UNITS else "")


def condition(sweep: Sweep) -> str:
    """Return the fixed epsilon, delta and order, in words."""
    fixed = []
    names = {"epsilon": ("delta",), "delta": ("epsilon",), "rdp": ("order",), "mu": ()}
    for name in names.get(sweep.quantity, _OF_QUESTION):
        value = sweep.points[0].inputs.get(name)
        if value is not None and name not in (sweep.x, *sweep.others):
            shown = delta_label(value) if name == Quantity.DELTA else number(value, side=Side.AS_GIVEN)
            fixed.append(f"{name} = {shown}")
    return f" at {' and '.join(fixed)}" if fixed else ""


def x_axis(sweep: Sweep) -> Axis:
    """Return the axis of the parameter that varies: logarithmic if its values span two powers of ten unevenly."""
    xs = sorted({point.inputs[sweep.x] for point in sweep.points if sweep.x in point.inputs})
    if sweep.x == Quantity.DELTA:
        return Axis("log10 delta") if xs[0] / LN10 < TINY else Axis("delta", True)
    steps = [b - a for a, b in itertools.pairwise(xs)]
    even = len(xs) > 4 and max(steps) <= 1.01 * min(steps)
    return Axis(with_unit(sweep.x), is_wide(xs) and not even)


def abscissa(sweep: Sweep, axis: Axis, x: Any) -> Number:
    """Return the place of a value of the parameter on its axis."""
    if sweep.x != Quantity.DELTA:
        return x  # type: ignore[no-any-return]
    return float(math.exp(x)) if axis.log else float(x) / LN10


def given_inputs(case: Case, without: Collection[str] = ()) -> str:
    """Return the inputs of a case that a person gave, for the line under a title."""
    return ", ".join(
        equation(name, value)
        for name, (value, source) in case.inputs.items()
        if source in TYPED and name not in without
    )


def fixed_inputs(report: Report, sweep: Sweep) -> str:
    """Return the parameters that all cases share, for the line under the title."""
    given = given_inputs(report.cases[0], {sweep.x, *sweep.others, *_OF_QUESTION})
    adjacency = {point.result.adjacency for point in sweep.points} - {Neighbours.AS_GIVEN}
    return ", ".join(filter(None, [given, *(f"{name} adjacency" for name in sorted(adjacency))]))
