"""A report as a chart: what is drawn against what, and how. Data only; `figure` and `terminal` draw it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.render.text import number, symbol_of
from dpcalc.report import Report, Result

MAX_SERIES = 8
DECADES = 30
"""How far below its largest value a delta is drawn: what is smaller by more is as good as 0 beside it."""

KINDS = {"asymptotic": "limit", "lower": "lower bound", "conditional": "conditional", "published": "published"}
"""What is said of a curve that may not be promised."""

LIMITS = {
    "shuffle.limit": ("shuffle.product", 1e-8),
    "shuffle.nonlinear_limit": ("shuffle.nonlinear", 1e-2),
    "online.limit": ("online.product", 1e-6),
}
"""Of which bound each limit is the limit as the records grow in number, and below which relative difference of the two
only the slack of the bound would be seen."""

_TYPED = ("flag", "argument", "file")
_ASKED = ("epsilon", "delta")
_LN10 = math.log(10.0)
_TINY = -300.0  # below 10^-300 an axis shows log10 delta
_UNITS = {
    "noise_std": "units of the gradient",
    "laplace_scale": "units of the gradient",
    "lipschitz": "units of the gradient",
    "diameter": "units of the parameter",
    "displacement": "diameters",
    "epsilon": "nats",
    "rdp": "nats",
}

Number = float | int
Key = tuple[tuple[str, Any], ...]


class Axis(NamedTuple):
    """What runs along an axis, whether in powers of ten, and the lowest value to show (None: the lowest there is)."""

    label: str
    log: bool = False
    low: float | None = None


class Series(NamedTuple):
    """A curve: ``ys`` is None where there is nothing to draw; ``kind`` is that of the results behind it; ``band`` the
    lower and upper edge of a band about it."""

    label: str
    xs: tuple[Number, ...]
    ys: tuple[float | None, ...]
    kind: str = "upper"
    best: bool = False
    band: tuple[tuple[float | None, ...], tuple[float | None, ...]] | None = None

    @property
    def dashed(self) -> bool:
        """Whether the curve is no guarantee, and is drawn so."""
        return self.kind not in ("upper", "exact")


class Panel(NamedTuple):
    """Curves over common axes."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


class Chart(NamedTuple):
    """What is drawn for a report: the panels (the first is the answer), the parameters held fixed, remarks."""

    title: str
    subtitle: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()


class _Point(NamedTuple):
    """One result and the parameters it belongs to."""

    given: dict[str, Any]
    result: Result
    scale: float | None


class _Sweep(NamedTuple):
    """The points of a report, along which parameter they lie, and which others tell curves apart."""

    points: list[_Point]
    quantity: str
    x: str
    others: tuple[str, ...]


def chart(report: Report, only: Sequence[str] = ()) -> Chart:
    """Return the chart of a report: its sweep, or the allocation of a single ``shifted`` case.

    Args:
        report: what was found.
        only: the bounds to draw; empty for the usual choice: every bound where a single parameter varies, else the
            best guarantee of every combination and the limits.

    Raises:
        SpecError: the report has no sweep, or none of a number, or lacks a bound of ``only``.
    """
    if report.command == "train":
        from dpcalc.render import risk

        return risk.chart(report)
    if report.command == "shifted" and len(report.cases) == 1:
        return _allocation(report)
    sweep = _sweep(report, only)
    notes: list[str] = []
    panel = _answer(sweep, bool(only), notes)
    panels = [panel, *_rate(sweep, panel.x), *_schedule(sweep, panel.x)]
    algorithms = {point.given["algorithm"] for point in sweep.points}
    name = algorithms.pop() if len(algorithms) == 1 else report.command
    title = f"{name}: {_plain(sweep.quantity)}{_condition(sweep)} against {_plain(sweep.x)}"
    return Chart(title, _fixed(report, sweep), tuple(panels), tuple(notes))


# --- the points -------------------------------------------------------------------------------------------------------


def _sweep(report: Report, only: Sequence[str]) -> _Sweep:
    points = _points(report)
    if only:
        known = {point.result.bound for point in points}
        missing = [bound for bound in only if bound not in known]
        if missing:
            raise SpecError(
                f"--plot-bounds: nothing was found by {', '.join(missing)}", "there is " + ", ".join(sorted(known))
            )
        points = [point for point in points if point.result.bound in only]
    quantity = points[0].result.quantity if points else ""
    points = [point for point in points if point.result.quantity == quantity]
    names = list(dict.fromkeys(name for point in points for name in point.given))
    values = {name: {p.given[name] for p in points if name in p.given} for name in names}
    varying = [name for name in names if len(values[name]) > 1]
    numeric = [name for name in varying if all(isinstance(v, (int, float)) for v in values[name])]
    if not numeric:
        raise SpecError("there is nothing to draw a curve against: no number varies", _example(quantity))
    x = max(numeric, key=lambda name: len(values[name]))
    return _Sweep(points, quantity, x, tuple(name for name in varying if name != x))


def _points(report: Report) -> list[_Point]:
    found = []
    for case in report.cases:
        given = {name: value for name, (value, source) in case.inputs.items() if source in _TYPED}
        scale = case.inputs.get("scale", (None, ""))[0] if "c1" in given else None
        for result in case.results:
            own = {"algorithm": case.algorithm, **given}
            if "delta" in given and result.log_delta is not None:
                own["delta"] = result.log_delta  # all digits, where no double could hold delta itself
            if result.quantity == "rdp":
                own["order"] = result.order
            found.append(_Point(own, result, scale))
    return found


def _example(quantity: str) -> str:
    sweeps = {"epsilon": "--delta 1e-9:1e-3:log13", "delta": "-e 0.1:5:0.1", "rdp": "--order 2:64:1"}
    return f"sweep a parameter, for example {sweeps.get(quantity, '-e 0.1:5:0.1')} or --eta 0.01:0.1:0.01"


def _curves(sweep: _Sweep, name: Callable[[_Point], str | None]) -> dict[tuple[str, Key], list[_Point]]:
    """Return the points by what ``name`` calls them (None: left out) and by the other parameters, in order of x."""
    found: dict[tuple[str, Key], dict[Any, _Point]] = {}
    for point in sweep.points:
        label = name(point)
        if label is not None and sweep.x in point.given:
            key = tuple((other, point.given[other]) for other in sweep.others if other in point.given)
            found.setdefault((label, key), {}).setdefault(point.given[sweep.x], point)
    return {key: [curve[x] for x in sorted(curve)] for key, curve in found.items()}


def _key_text(key: Key) -> str:
    parts = []
    for name, value in key:
        if name == "delta":
            parts.append(f"delta = {_delta(value)}")
        elif name in ("algorithm", "noise", "loss_class", "permutation", "adjacency", "last_batch"):
            parts.append(str(value))
        else:
            parts.append(f"{_letter(name)} = {number(value, side='as given')}")
    return ", ".join(parts)


def _letter(name: str) -> str:
    return symbol_of(name).rpartition(" ")[2]


def _delta(log_delta: float) -> str:
    """Return a delta for a label."""
    ten = log_delta / _LN10
    return f"{math.exp(log_delta):.6g}" if ten > _TINY else f"10^{ten:.6g}"


# --- the answer -------------------------------------------------------------------------------------------------------


def _answer(sweep: _Sweep, chosen: bool, notes: list[str]) -> Panel:
    guarantees, others = _chosen(sweep, chosen)
    kept = _capped(guarantees, others, notes)
    ticks = _x_axis(sweep)
    low = _floor(kept) if sweep.quantity == "delta" else None
    deep = low is not None and low < _TINY
    xs = sorted({point.given[sweep.x] for curve in kept for point in curve.points})
    series = tuple(
        Series(curve.label, tuple(_abscissa(sweep, ticks, x) for x in xs), _ordinates(sweep, curve, xs, deep),
               curve.kind, curve.best)
        for curve in kept
    )  # fmt: skip
    if low is not None:
        _say_below(kept, low, notes)
        series = tuple(_marked_below(curve, low if deep else 10.0**low) for curve in series)
    return Panel("", ticks, _y_axis(sweep, series, low, deep), series)


class _Curve(NamedTuple):
    label: str
    kind: str
    points: list[_Point]
    best: bool = False


def _chosen(sweep: _Sweep, chosen: bool) -> tuple[list[_Curve], list[_Curve]]:
    """Return the curves of guarantees, and the others, each in order of importance."""
    by_bound = _curves(sweep, lambda point: point.result.bound)
    guarantees, others = [], []
    for (bound, key), points in by_bound.items():
        kind = next((p.result.kind for p in points if p.result.kind not in ("upper", "exact")), points[0].result.kind)
        label = bound + (f" ({KINDS[kind]})" if kind in KINDS else "")
        if kind in KINDS:
            if chosen or not sweep.others or kind == "asymptotic":
                others.append(_Curve(_with(label, key), kind, points))
        elif chosen or not sweep.others:
            guarantees.append(_Curve(_with(label, key), kind, points))
    others = _merged(others)
    others.sort(key=lambda curve: list(KINDS).index(curve.kind))
    best = [
        _Curve(_key_text(key) or "best guarantee", points[0].result.kind, points)
        for (_, key), points in _curves(sweep, lambda point: "best" if point.result.best else None).items()
    ]
    if sweep.others:
        return (guarantees if chosen else best), others
    return (guarantees if chosen else _enveloped(best, guarantees)), others


def _with(label: str, key: Key) -> str:
    return f"{label}, {_key_text(key)}" if key else label


def _merged(curves: list[_Curve]) -> list[_Curve]:
    """Return the curves, those of one bound that are the same for all combinations drawn once."""
    found: dict[Any, list[_Curve]] = {}
    for curve in curves:
        values = tuple(point.result.value for point in curve.points)
        found.setdefault((curve.points[0].result.bound, values), []).append(curve)
    return [
        same[0] if len(same) == 1 else same[0]._replace(label=same[0].label.partition(",")[0])
        for same in found.values()
    ]


def _enveloped(best: list[_Curve], guarantees: list[_Curve]) -> list[_Curve]:
    """Return the bounds, most often best first, that which is best everywhere marked, or else the envelope added."""

    def rank(curve: _Curve) -> tuple[int, float]:
        depths = sorted(_depth(point.result) for point in curve.points)
        return -sum(point.result.best for point in curve.points), depths[len(depths) // 2]

    ordered = sorted(guarantees, key=rank)
    if not best:
        return ordered
    if all(point.result.best for point in ordered[0].points) and len(ordered[0].points) == len(best[0].points):
        return [ordered[0]._replace(best=True), *ordered[1:]]
    return [best[0]._replace(best=True), *ordered]


def _depth(result: Result) -> float:
    return result.log_delta if result.quantity == "delta" and result.log_delta is not None else result.value


def _capped(guarantees: list[_Curve], others: list[_Curve], notes: list[str]) -> list[_Curve]:
    """Return at most `MAX_SERIES` curves; up to three places are kept for what is no guarantee."""
    room = MAX_SERIES - min(len(others), 3)
    kept = guarantees[:room]
    kept += others[: MAX_SERIES - len(kept)]
    left = [curve.label for curve in (*guarantees, *others) if curve not in kept]
    if left:
        notes.append(f"not drawn, for want of room: {'; '.join(left[:6])}" + (" ..." if len(left) > 6 else ""))
    return kept


def _floor(curves: Iterable[_Curve]) -> float | None:
    """Return log10 of the lowest delta to show: of a single curve, or of all within `DECADES` of the largest."""
    curves = list(curves)
    depths = [
        point.result.log_delta / _LN10
        for curve in curves
        for point in curve.points
        if point.result.log_delta is not None and math.isfinite(point.result.log_delta)
    ]
    if not depths:
        return None
    return min(depth for depth in depths if len(curves) == 1 or depth >= max(depths) - DECADES)


def _say_below(curves: list[_Curve], low: float, notes: list[str]) -> None:
    for curve in curves:
        depths = [(point.result.log_delta or 0.0) / _LN10 for point in curve.points]
        if any(math.isinf(depth) for depth in depths):
            notes.append(f"{curve.label}: delta is exactly 0 where nothing is drawn")
        elif min(depths) < low:
            notes.append(f"{curve.label} goes on below, to delta = 10^{min(depths):.4g}")


def _marked_below(series: Series, low: float) -> Series:
    """Return the curve, its label saying so if all of it lies below the axis."""
    if any(y is not None and y >= low - 1e-9 * abs(low) for y in series.ys):
        return series
    return series._replace(label=f"{series.label} (below the axis)")


def _ordinates(sweep: _Sweep, curve: _Curve, xs: Sequence[Any], deep: bool) -> tuple[float | None, ...]:
    at = {point.given[sweep.x]: _ordinate(point.result, deep) for point in curve.points}
    return tuple(at.get(x) for x in xs)


def _ordinate(result: Result, deep: bool) -> float | None:
    value: float = result.value
    if result.quantity == "delta" and result.log_delta is not None:
        value = result.log_delta / _LN10 if deep else value
        if math.isinf(result.log_delta):
            return None
    return value if math.isfinite(value) else None


def _y_axis(sweep: _Sweep, series: Sequence[Series], low: float | None, deep: bool) -> Axis:
    values = [y for curve in series for y in curve.ys if y is not None]
    label = _labelled(sweep.quantity)
    if sweep.quantity == "delta":
        if deep:
            return Axis(f"log10 {label}", False, low)
        return Axis(label, bool(values), None if low is None else 10.0**low)
    return Axis(label, is_wide(values))


def _plain(name: str) -> str:
    """Return a quantity's name and symbol for a label."""
    return {"rdp": "Renyi divergence", "mu": "mu (Gaussian DP)"}.get(name) or symbol_of(name).replace("_", " ")


def _labelled(name: str) -> str:
    """Return a quantity's name, symbol and unit for an axis."""
    return _plain(name) + (f" ({_UNITS[name]})" if name in _UNITS else "")


def _condition(sweep: _Sweep) -> str:
    """Return at which epsilon, delta and order, where they are fixed."""
    fixed = []
    names = {"epsilon": ("delta",), "delta": ("epsilon",), "rdp": ("order",), "mu": ()}
    for name in names.get(sweep.quantity, _ASKED):
        value = sweep.points[0].given.get(name)
        if value is not None and name not in (sweep.x, *sweep.others):
            shown = _delta(value) if name == "delta" else number(value, side="as given")
            fixed.append(f"{name} = {shown}")
    return f" at {' and '.join(fixed)}" if fixed else ""


def _x_axis(sweep: _Sweep) -> Axis:
    xs = sorted({point.given[sweep.x] for point in sweep.points if sweep.x in point.given})
    if sweep.x == "delta":
        return Axis("log10 delta") if xs[0] / _LN10 < _TINY else Axis("delta", True)
    steps = [b - a for a, b in itertools.pairwise(xs)]
    even = len(xs) > 4 and max(steps) <= 1.01 * min(steps)
    return Axis(_labelled(sweep.x), is_wide(xs) and not even)


def _abscissa(sweep: _Sweep, axis: Axis, x: Any) -> Number:
    if sweep.x != "delta":
        return x  # type: ignore[no-any-return]
    return float(math.exp(x)) if axis.log else float(x) / _LN10


def is_wide(values: Sequence[Number]) -> bool:
    """Whether the values are positive and span two powers of ten."""
    return bool(values) and min(values) > 0 and max(values) >= 100 * min(values)


def _fixed(report: Report, sweep: _Sweep) -> str:
    """Return the parameters that all cases share, for the line under the title."""
    left_out = {sweep.x, *sweep.others, *_ASKED, "algorithm"}
    parts = [
        f"{symbol_of(name)} = {number(value, side='as given')}"
        for name, (value, source) in report.cases[0].inputs.items()
        if source in _TYPED and name not in left_out
    ]
    adjacency = {point.result.adjacency for point in sweep.points}
    return ", ".join([*parts, *(f"{name.replace('_', '-')} adjacency" for name in sorted(adjacency))])


# --- beside the answer ------------------------------------------------------------------------------------------------


def _rate(sweep: _Sweep, x: Axis) -> list[Panel]:
    """Return the panel of 1/|delta - delta*| against n for every bound whose limit is known, if any."""
    if sweep.quantity != "delta" or sweep.x != "records":
        return []
    by_bound = _curves(sweep, lambda point: point.result.bound)
    found = []
    for limit, (own, resolution) in LIMITS.items():
        for (bound, key), points in by_bound.items():
            ends = {p.given["records"]: p.result.value for p in by_bound.get((limit, key), [])}
            if bound != own or not ends:
                continue
            xs = tuple(point.given["records"] for point in points)
            ys = tuple(_inverse_gap(p.result.value, ends.get(p.given["records"]), resolution) for p in points)
            if any(y is not None for y in ys):
                found.append(Series(_with(bound, key), xs, ys))
    if not found:
        return []
    found = found[:MAX_SERIES]
    log = is_wide([y for series in found for y in series.ys if y is not None])
    label = "1 / |delta - limit|"
    shown = tuple(series._replace(label=series.label + _slope(series)) for series in found) if log else tuple(found)
    return [Panel("how fast delta approaches its limit", x, Axis(label, log), shown)]


def _inverse_gap(value: float, limit: float | None, resolution: float) -> float | None:
    if limit is None or abs(value - limit) <= resolution * limit or not value > 0.0:
        return None
    return 1.0 / abs(value - limit)


def _slope(series: Series) -> str:
    """Return the power of n with which the curve grows at its end, in words."""
    ends = [(math.log(x), math.log(y)) for x, y in zip(series.xs, series.ys, strict=True) if y is not None][-2:]
    if len(ends) < 2:
        return ""
    (x0, y0), (x1, y1) = ends
    return f": grows like n^{(y1 - y0) / (x1 - x0):.2f} at the end"


def _schedule(sweep: _Sweep, x: Axis) -> list[Panel]:
    """Return the panel of the noise that the tuned schedule gives, where it moves with x."""
    curves = _curves(sweep, lambda point: "noise" if point.scale is not None and sweep.x == "records" else None)
    series = tuple(
        Series(_key_text(key), tuple(p.given[sweep.x] for p in points), tuple(p.scale for p in points))
        for (_, key), points in list(curves.items())[:MAX_SERIES]
    )
    if not any(len(set(curve.ys)) > 1 for curve in series):
        return []
    values = [y for curve in series for y in curve.ys if y is not None]
    return [Panel("the noise of the schedule", x, Axis("noise scale", is_wide(values)), series)]


# --- an allocation ----------------------------------------------------------------------------------------------------


def _allocation(report: Report) -> Chart:
    [case] = report.cases
    found = ((case.best.details if case.best else None) or {}).get("allocation", {})
    sampled = found.get("sampled")
    spent, left = (sampled or found).get("a"), (sampled or found).get("z")
    if not spent:
        raise SpecError("there is no finite allocation to draw", "every step that a shift enters needs noise after it")
    steps = tuple(sampled["steps"]) if sampled else tuple(range(1, len(spent) + 1))
    axis = Axis("step t")
    panels = (
        Panel("", axis, Axis("shift spent in step t, a_t", is_wide(spent)), (Series("a_t", steps, tuple(spent)),)),
        Panel("", axis, Axis("distance left after step t, z_t"), (Series("z_t", steps, tuple(left)),)),
    )
    notes = list(found["summary"])
    if sampled:
        notes.append(f"{len(steps)} of the steps are drawn")
    fixed = ", ".join(
        f"{symbol_of(name)} = {number(value, side='as given')}"
        for name, (value, source) in case.inputs.items()
        if source in _TYPED
    )
    return Chart("shifted: where the shifts are spent", fixed, panels, tuple(notes))
