"""The chart of a sweep that was trained: the measured excess risk, with bands of quantiles where there are replicas."""

from __future__ import annotations

from typing import Any

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Source
from dpcalc.render.chart import MAX_SERIES, Axis, Chart, Panel, Series, is_wide
from dpcalc.render.numbers import equation, symbol_of
from dpcalc.render.several import ALGORITHM, varying
from dpcalc.report import Case, Report

_EXCESS = "excess_risk"


def trained_chart(report: Report) -> Chart:
    """Return the excess empirical risk of every trained case against the number that varies.

    Raises:
        SpecError: no number varies, nothing was trained, or the excess risk was not measured.
    """
    cases = [case for case in report.cases if case.training]
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
