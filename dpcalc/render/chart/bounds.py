"""The chart of a sweep: a curve for every bound, or for the best guarantee of every combination of parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from dpcalc.model.quantities import Kind, Quantity
from dpcalc.notes import PrefixNoise
from dpcalc.render.chart import ENVELOPE, MAX_SERIES, Axis, Chart, Panel, Series, is_wide
from dpcalc.render.chart.figure import rate_panels, schedule_panels
from dpcalc.render.chart.sweep import (
    LN10,
    TINY,
    Key,
    Point,
    Sweep,
    abscissa,
    condition,
    fixed_inputs,
    grouped,
    key_text,
    plain_name,
    sweep_of,
    with_key,
    with_unit,
    x_axis,
)
from dpcalc.render.numbers import MAXIMISED
from dpcalc.report import Report, Result

DECADES = 30
"""Powers of ten below its largest value down to which a delta is drawn; smaller values are negligible."""

KINDS = {
    Kind.ASYMPTOTIC: "limit",
    Kind.LOWER: "lower bound",
    Kind.CONDITIONAL: "conditional",
    Kind.PUBLISHED: "published",
    Kind.HEURISTIC: "heuristic",
}
"""The remark on a curve that may not be promised."""


class _Curve(NamedTuple):
    """The results of a curve, in order of x; ``key`` has the parameters that distinguish it from other curves."""

    label: str
    kind: Kind
    points: list[Point]
    key: Key = ()
    best: bool = False


def sweep_chart(report: Report, only: Sequence[str]) -> Chart:
    """Return the chart of a report's sweep, as `dpcalc.render.chart.chart` describes it."""
    sweep = sweep_of(report, only)
    notes: list[str] = []
    panel = _answers(sweep, bool(only), notes)
    panels = (
        panel, *rate_panels(sweep, panel.x), *schedule_panels(sweep, panel.x), *_noise_panels(report, sweep, panel.x),
        *_risk_panels(report),
    )  # fmt: skip
    algorithms = {point.inputs["algorithm"] for point in sweep.points}
    name = algorithms.pop() if len(algorithms) == 1 else report.command
    title = f"{name}: {plain_name(sweep.quantity)}{condition(sweep)} against {plain_name(sweep.x)}"
    return Chart(title, fixed_inputs(report, sweep), panels, tuple(notes))


def _noise_panels(report: Report, sweep: Sweep, ticks: Axis) -> list[Panel]:
    """Return the panel of the noise in the iterates, compared with DP-SGD, if a matrix correlates it."""
    noises = {
        id(result): note
        for case in report.cases
        for note in case.note_data if isinstance(note, PrefixNoise)
        for result in case.results if result.best
    }  # fmt: skip
    series = []
    for (_, key), points in grouped(sweep, lambda point: "" if id(point.result) in noises else None).items():
        xs = tuple(abscissa(sweep, ticks, point.inputs[sweep.x]) for point in points)
        notes = [noises[id(point.result)] for point in points]
        own, sampled = tuple(note.rms for note in notes), tuple(note.of_dp_sgd for note in notes)
        series += [Series(with_key("noise", key), xs, own), Series(with_key("DP-SGD", key), xs, sampled)]
    values = [y for one in series for y in one.ys if y is not None]
    label = "root mean square of the noise in iterates, in clips"
    return [Panel("", ticks, Axis(label, is_wide(values)), tuple(series[:MAX_SERIES]))] if series else []


def _risk_panels(report: Report) -> list[Panel]:
    """Return the panel of what attackers can do, if asked for."""
    if not any(case.risk for case in report.cases):
        return []
    from dpcalc.render.chart.measured import risk_panel

    return [risk_panel(report, "what an attacker can do")]


def _answers(sweep: Sweep, every: bool, notes: list[str]) -> Panel:
    """Return the panel of the answers; the notes name what it does not show."""
    guarantees, others = _chosen(sweep, every)
    kept = _capped(*_coincident(sweep, guarantees, others), notes)
    ticks = x_axis(sweep)
    low = _floor(kept) if sweep.quantity == Quantity.DELTA else None
    deep = low is not None and low < TINY
    series = tuple(_series(sweep, curve, ticks, deep) for curve in kept)
    if low is not None:
        _say_below(kept, low, notes)
        series = tuple(_marked_below(curve, low if deep else 10.0**low) for curve in series)
    return Panel("", ticks, _y_axis(sweep, series, low, deep), series)


def _series(sweep: Sweep, curve: _Curve, ticks: Axis, deep: bool) -> Series:
    """Return a curve over the values of x in its questions, with gaps where it gave nothing."""
    xs = sorted(sweep.asked.get(curve.key, set()) | {point.inputs[sweep.x] for point in curve.points})
    places = tuple(abscissa(sweep, ticks, x) for x in xs)
    return Series(curve.label, places, _ordinates(sweep, curve, xs, deep), curve.kind, curve.best)


def _chosen(sweep: Sweep, every: bool) -> tuple[list[_Curve], list[_Curve]]:
    """Return the curves of guarantees and the other curves, by importance; all, or the usual ones."""
    by_bound = grouped(sweep, lambda point: point.result.bound)
    guarantees, others = [], []
    for (bound, key), points in by_bound.items():
        kind = next((p.result.kind for p in points if not p.result.guarantee), points[0].result.kind)
        label = sweep.names[bound] + (f" ({KINDS[kind]})" if kind in KINDS else "")
        if kind in KINDS:
            if every or not sweep.others or kind == Kind.ASYMPTOTIC:
                others.append(_Curve(with_key(label, key), kind, points, key))
        elif every or not sweep.others:
            guarantees.append(_Curve(with_key(label, key), kind, points, key))
    others = _merged(others)
    others.sort(key=lambda curve: list(KINDS).index(curve.kind))
    best = [
        _Curve(key_text(key) or ENVELOPE, points[0].result.kind, points, key)
        for (_, key), points in grouped(sweep, lambda point: "best" if point.result.best else None).items()
    ]
    if sweep.others:
        return (guarantees if every else best), others
    return (guarantees if every else _enveloped(best, guarantees)), others


_SAME = 5e-3
"""Curves whose values differ by at most this share look the same."""


def _coincident(sweep: Sweep, guarantees: list[_Curve], others: list[_Curve]) -> tuple[list[_Curve], list[_Curve]]:
    """Return the curves; coinciding ones are merged into one with all their names, drawn like the first."""
    groups: list[list[_Curve]] = []
    for curve in (*guarantees, *others):
        same = next((group for group in groups if _coincide(sweep, group[0], curve)), None)
        if same is None:
            groups.append([curve])
        else:
            same.append(curve)
    first = {id(curve) for curve in guarantees}
    merged = [(group[0], _as_one(group)) for group in groups]
    return [one for lead, one in merged if id(lead) in first], [one for lead, one in merged if id(lead) not in first]


def _coincide(sweep: Sweep, one: _Curve, other: _Curve) -> bool:
    if [point.inputs[sweep.x] for point in one.points] != [point.inputs[sweep.x] for point in other.points]:
        return False
    if sweep.asked.get(one.key) != sweep.asked.get(other.key):
        return False
    pairs = zip(one.points, other.points, strict=True)
    if sweep.quantity == Quantity.DELTA:
        return all(math.isclose(_depth(p.result), _depth(q.result), rel_tol=0.0, abs_tol=_SAME) for p, q in pairs)
    return all(math.isclose(p.result.value, q.result.value, rel_tol=_SAME) for p, q in pairs)


def _as_one(group: list[_Curve]) -> _Curve:
    """Return coinciding curves as one; the envelope is not named if bounds coincide with it."""
    names = list(dict.fromkeys(curve.label for curve in group))
    if len(names) > 1 and ENVELOPE in names:
        names.remove(ENVELOPE)
    label = names[0] + (f"; the same line: {'; '.join(names[1:])}" if len(names) > 1 else "")
    return group[0]._replace(label=label, best=any(curve.best for curve in group))


def _merged(curves: list[_Curve]) -> list[_Curve]:
    """Return the curves; if a bound has the same values for several combinations, its curve is drawn once."""
    by_values: dict[Any, list[_Curve]] = {}
    for curve in curves:
        values = tuple(point.result.value for point in curve.points)
        by_values.setdefault((curve.points[0].result.bound, values), []).append(curve)
    return [
        same[0] if len(same) == 1 else same[0]._replace(label=same[0].label.partition(",")[0])
        for same in by_values.values()
    ]


def _enveloped(best: list[_Curve], guarantees: list[_Curve]) -> list[_Curve]:
    """Return the bounds by rank; one that is best everywhere is marked, otherwise the envelope is added."""

    ordered = sorted(guarantees, key=_rank)
    if not best:
        return ordered
    if all(point.result.best for point in ordered[0].points) and len(ordered[0].points) == len(best[0].points):
        return [ordered[0]._replace(best=True), *ordered[1:]]
    return [best[0]._replace(best=True), *ordered]


def _rank(curve: _Curve) -> tuple[int, float]:
    """Return a key that is smaller for better curves: by how often a curve is the best, then by its median."""
    depths = sorted(_depth(point.result) for point in curve.points)
    median = depths[len(depths) // 2]
    worse = curve.points[0].result.quantity in MAXIMISED
    return -sum(point.result.best for point in curve.points), -median if worse else median


def _depth(result: Result) -> float:
    return result.log_delta if result.quantity == Quantity.DELTA and result.log_delta is not None else result.value


def _capped(guarantees: list[_Curve], others: list[_Curve], notes: list[str]) -> list[_Curve]:
    """Return at most `MAX_SERIES` curves; up to three places are reserved for curves that are no guarantee."""
    kept = guarantees[: MAX_SERIES - min(len(others), 3)]
    best = min(guarantees, key=_rank, default=None)
    if best is not None and best not in kept:
        kept[-1] = best
    kept += others[: MAX_SERIES - len(kept)]
    left = [curve.label for curve in (*guarantees, *others) if curve not in kept]
    if left:
        notes.append(f"not drawn, for want of room: {'; '.join(left[:6])}" + (" ..." if len(left) > 6 else ""))
    return kept


def _floor(curves: Iterable[_Curve]) -> float | None:
    """Return log10 of the lowest delta to show: that of a single curve, or of all within `DECADES` of the largest."""
    curves = list(curves)
    depths = [
        point.result.log_delta / LN10
        for curve in curves
        for point in curve.points
        if point.result.log_delta is not None and math.isfinite(point.result.log_delta)
    ]
    if not depths:
        return None
    return min(depth for depth in depths if len(curves) == 1 or depth >= max(depths) - DECADES)


def _say_below(curves: list[_Curve], low: float, notes: list[str]) -> None:
    """Add to the notes which curves continue below the axis."""
    for curve in curves:
        depths = [(point.result.log_delta or 0.0) / LN10 for point in curve.points]
        if any(math.isinf(depth) for depth in depths):
            notes.append(f"{curve.label}: delta is exactly 0 where nothing is drawn")
        elif min(depths) < low:
            notes.append(f"{curve.label} goes on below, to delta = 10^{min(depths):.4g}")


def _marked_below(series: Series, low: float) -> Series:
    """Return the curve; its label says if all of it is below the axis."""
    if any(y is not None and y >= low - 1e-9 * abs(low) for y in series.ys):
        return series
    return series._replace(label=f"{series.label} (below the axis)")


def _ordinates(sweep: Sweep, curve: _Curve, xs: Sequence[Any], deep: bool) -> tuple[float | None, ...]:
    at = {point.inputs[sweep.x]: _ordinate(point.result, deep) for point in curve.points}
    return tuple(at.get(x) for x in xs)


def _ordinate(result: Result, deep: bool) -> float | None:
    value: float = result.value
    if result.quantity == Quantity.DELTA and result.log_delta is not None:
        value = result.log_delta / LN10 if deep else value
        if math.isinf(result.log_delta):
            return None
    return value if math.isfinite(value) else None


def _y_axis(sweep: Sweep, series: Sequence[Series], low: float | None, deep: bool) -> Axis:
    values = [y for curve in series for y in curve.ys if y is not None]
    label = with_unit(sweep.quantity)
    if sweep.quantity == Quantity.DELTA:
        if deep:
            return Axis(f"log10 {label}", False, low)
        return Axis(label, bool(values), None if low is None else 10.0**low)
    return Axis(label, is_wide(values))
