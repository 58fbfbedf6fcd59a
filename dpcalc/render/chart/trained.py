"""The charts of trained models: coefficients with their noise, reliability and ROC, and the excess risk of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Source
from dpcalc.render.chart import GUESSING, MAX_SERIES, Axis, Chart, Panel, Series, is_wide
from dpcalc.render.chart.sweep import given_inputs
from dpcalc.render.layout import cut
from dpcalc.render.numbers import equation, symbol_of
from dpcalc.render.several import ALGORITHM, varying
from dpcalc.report import Case, Report

_EXCESS = "excess_risk"
_NAME = 28  # letters of a name of a coefficient
_NOISE = 2.0  # standard deviations to either side


def coefficients_panel(rows: Sequence[Mapping[str, Any]]) -> Panel:
    """Return coefficients over half the ranges of their columns, each with bars of two standard deviations.

    Args:
        rows: ``name``, ``weight`` (what the column adds from the middle to the end of its range) and ``noise`` or None.
    """
    weights = tuple(float(row["weight"]) for row in rows)
    noise = [_NOISE * (row["noise"] or 0.0) for row in rows]
    spans = tuple((w - n, w + n) for w, n in zip(weights, noise, strict=True))
    names = tuple(cut(str(row["name"]), _NAME) for row in rows)
    label = "what a column adds to the score over half of its range"
    places = tuple(-float(place) for place in range(len(rows)))
    series = Series("coefficients", weights, places, spans=spans)
    return Panel("", Axis(label), Axis("", names=names), (series,))


def coefficients_chart(rows: Sequence[Mapping[str, Any]], subtitle: str) -> Chart:
    """Return the chart of a model's coefficients; see `coefficients_panel`."""
    known = all(row["noise"] is not None for row in rows)
    bars = "bars: two standard deviations of the privacy noise to either side, about; estimated from released iterates"
    note = bars if known else "how far the privacy noise moved them is not known: iterates stay hidden"
    return Chart("the largest coefficients", subtitle, (coefficients_panel(rows),), (note,))


def evaluation_chart(report: Mapping[str, Any]) -> Chart:
    """Return reliability and ROC of an evaluation without noise, as far as there are any.

    Raises:
        SpecError: there is neither.
    """
    panels = []
    if report.get("calibration"):
        cells = report["calibration"]["cells"]
        chances, shares = (tuple(cell[name] for cell in cells) for name in ("predicted", "observed"))
        axes = Axis("predicted probability"), Axis("share that is so, uncovered")
        panels.append(
            Panel("reliability", *axes, (Series("model", chances, shares), Series("calibrated", _ENDS, _ENDS)))
        )
    if report.get("roc"):
        xs, ys = zip(*report["roc"], strict=True)
        axes = Axis("false-positive rate"), Axis("true-positive rate, uncovered")
        panels.append(Panel("ROC", *axes, (Series("model", xs, ys), Series(GUESSING, _ENDS, _ENDS))))
    if not panels:
        raise SpecError("there is nothing to draw", "reliability and ROC are of a model of classes, without --private")
    return Chart(f"evaluate: {report['records']} test rows", "", tuple(panels), (report["why_not_private"],))


_ENDS = (0.0, 1.0)


def trained_chart(report: Report) -> Chart:
    """Return the coefficients of a single model, or the excess empirical risk against the number that varies.

    Raises:
        SpecError: no number varies, nothing was trained, or the excess risk was not measured.
    """
    cases = [case for case in report.cases if case.training]
    if len(report.cases) == 1 and cases and (rows := (cases[0].training or {}).get("coefficients")):
        return coefficients_chart(rows, given_inputs(cases[0]))
    names = varying(report)
    values = {name: {_value(case, name) for case in cases} for name in names}
    numeric = [name for name in names if all(isinstance(v, (int, float)) for v in values[name])]
    if not cases or not numeric:
        raise SpecError(
            "there is nothing to draw a curve against: no number varies", "sweep one, for example -n 200:2000:200"
        )
    if not all(_EXCESS in case.not_covered.get("metrics", {}).get("train", {}) for case in cases):
        raise SpecError("the excess risk was not measured: it needs the non-private fit", "give --reference")
    x = max(numeric, key=lambda name: len(values[name]))
    groups: dict[str, list[Case]] = {}
    for case in cases:
        key = ", ".join(_label(case, name) for name in names if name != x) or case.algorithm
        groups.setdefault(key, []).append(case)
    xs = sorted(values[x])
    series = tuple(_series(label, several, x, xs) for label, several in list(groups.items())[:MAX_SERIES])
    ys = [y for curve in series for y in curve.ys if y is not None]
    replicas = (cases[0].training or {}).get("replicas", 1)
    runs = f"median of {replicas} runs" if replicas > 1 else "one run each"
    notes = [f"{runs}; measured on the training records without noise: not covered by any guarantee"]
    if replicas > 1:
        probabilities = cases[0].not_covered["quantiles"]["probabilities"]
        notes.append(f"bands: from the {probabilities[0]:.0%} to the {probabilities[-1]:.0%} quantile")
    if len(groups) > MAX_SERIES:
        notes.append(f"{len(groups) - MAX_SERIES} curves are not drawn, for want of room")
    fixed = [
        equation(name, value)
        for name, (value, source) in cases[0].inputs.items()
        if source in (Source.FLAG, Source.ARGUMENT, Source.DEFAULT) and name not in (*names, "adjacency")
    ]
    axes = (Axis(symbol_of(x), is_wide(xs)), Axis("excess empirical risk, uncovered", is_wide(ys)))
    title = f"{report.command}: excess empirical risk against {symbol_of(x)}"
    return Chart(title, ", ".join(fixed), (Panel("", *axes, series),), tuple(notes))


def _series(label: str, cases: list[Case], x: str, xs: list[Any]) -> Series:
    at = {_value(case, x): _spread(case) for case in cases}
    low, middle, high = (tuple(at[x][k] if x in at else None for x in xs) for k in range(3))
    band = (low, high) if any(a != b for a, b in zip(low, high, strict=True)) else None
    return Series(label, tuple(xs), middle, band=band)


def _spread(case: Case) -> tuple[float | None, float | None, float | None]:
    """Return the lowest quantile, the median and the highest quantile of the excess risk; None beyond a double."""
    quantiles = case.not_covered.get("quantiles", {}).get("train", {}).get("excess_risk")
    if quantiles:
        return quantiles[0], quantiles[len(quantiles) // 2], quantiles[-1]
    value = case.not_covered["metrics"]["train"]["excess_risk"]
    return value, value, value


def _value(case: Case, name: str) -> Any:
    return case.algorithm if name == ALGORITHM else case.value(name)


def _label(case: Case, name: str) -> str:
    value = _value(case, name)
    return str(value) if isinstance(value, str) else equation(name, value)
