"""Charts of what an attacker can do, and of trained models: coefficients, reliability, ROC and excess risk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from dpcalc.errors import SpecError
from dpcalc.files import Fields
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import ATTACKS, Kind
from dpcalc.render.chart import GUESSING, MAX_SERIES, RISK, Axis, Chart, Panel, Series, is_wide
from dpcalc.render.chart.sweep import (
    abscissa,
    condition,
    fixed_inputs,
    given_inputs,
    grouped,
    plain_name,
    refuse_missing,
    sweep_of,
    with_key,
    x_axis,
)
from dpcalc.render.layout import cut
from dpcalc.render.numbers import Side, equation, number, symbol_of
from dpcalc.render.several import ALGORITHM, varying
from dpcalc.report import Case, Report
from dpcalc.theorems.record import lookup

_X, _Y = "false-positive rate", "true-positive rate"
_SAME = 5e-3  # curves whose values differ by at most this share look the same

Numbers = tuple[float, ...]


def trade_off_chart(report: Report, only: Sequence[str] = ()) -> Chart:
    """Return the chart of a single case whose risk has a curve: on plain axes, and in powers of ten.

    Args:
        report: the report of a command.
        only: the bounds to draw; empty for all.

    Raises:
        SpecError: a bound of ``only`` has no curve.
    """
    [case] = report.cases
    curve: dict[str, Any] = dict((case.risk or {})["curve"])
    xs = tuple(curve["fpr"])
    if only:
        bounds = {row["bound"] for row in (*curve["at_most"], *curve["at_least"])}
        refuse_missing(bounds, only)
        curve = {name: [row for row in curve[name] if row["bound"] in only] for name in ("at_most", "at_least")}
    titles = {result.bound: result.title for result in case.results}
    if report.command == RISK:
        titles = dict.fromkeys(titles, "any attack: at most this")
    highest_rates = [
        (titles.get(row["bound"], row["bound"]), tuple(row["tpr"]), Kind.UPPER) for row in curve["at_most"]
    ]
    kept, left = highest_rates[: MAX_SERIES - 2], highest_rates[MAX_SERIES - 2 :]
    kept += [
        (f"{titles.get(row['bound'], row['bound'])} ({_ruled_out(row['bound'], case)})", tuple(row["tpr"]), Kind.LOWER)
        for row in sorted(curve["at_least"], key=lambda row: -sum(map(math.log, row["tpr"])))[:1]
    ]
    series = [*_distinct(xs, kept), *_audited(case, xs)]
    diagonal = Series(GUESSING, (0.0, *xs, 1.0), (0.0, *xs, 1.0), Kind.PUBLISHED)
    notes = [f"not drawn, for want of room: {'; '.join(label for label, _, _ in left)}"] if left else []
    ends = tuple(one._replace(xs=(*xs, 1.0), ys=(*one.ys, 1.0)) for one in series)
    panels = (
        Panel("", Axis(_X), Axis(_Y, low=0.0), (*ends, diagonal)),
        Panel(
            "the same in powers of ten: the few false positives of a careful attacker",
            Axis(_X, True), Axis(_Y, True, xs[0]),
            (*ends, diagonal._replace(xs=(*xs, 1.0), ys=(*xs, 1.0))),
        ),
    )  # fmt: skip
    about = "" if report.command == RISK else f"{case.algorithm}: "
    return Chart(f"{about}what an attacker can tell of a record", given_inputs(case), panels, tuple(notes))


def _ruled_out(bound: str, case: Case) -> str:
    """Return the kind of guarantees that a lower value rules out."""
    strong_convexity, _ = case.inputs.get("strong_convexity", (None, None))
    alone = lookup(bound).differs_alone(strong_convexity)
    return "no guarantee by gradient differences is below" if alone else "no guarantee is below"


def _audited(case: Case, xs: Numbers) -> list[Series]:
    """Return the rates that an audit proved, if there was one: an attacker may mix its events at random."""
    if not case.audit:
        return []
    events = [(event["fpr_upper"], event["tpr_lower"]) for event in case.audit["events"]]
    corners = sorted({(0.0, 0.0), (1.0, 1.0), *events})
    ys = tuple(max(_chance(one, other, x) for one in corners for other in corners) for x in xs)
    label = f"seen in an audit: at least this, with confidence {number(case.audit['confidence'], side=Side.AS_GIVEN)}"
    proved = [Series(label, xs, ys, Kind.LOWER)] if events else []
    scores = case.audit.get("scores")
    if scores is None:
        return proved
    points = [(0.0, 0.0), *((point["fpr"], point["tpr"]) for point in scores["roc"]), (1.0, 1.0)]
    rates = tuple(max(tpr for fpr, tpr in points if fpr <= x) for x in xs)
    return [*proved, Series("the scores themselves, by no means a bound", xs, rates, Kind.PUBLISHED)]


def _chance(one: tuple[float, float], other: tuple[float, float], x: float) -> float:
    """Return the height at x of the line between two points; 0 outside of it."""
    if not one[0] <= x <= other[0]:
        return 0.0
    if one[0] == other[0]:
        return max(one[1], other[1])
    return one[1] + (other[1] - one[1]) * (x - one[0]) / (other[0] - one[0])


def _distinct(xs: Numbers, curves: Iterable[tuple[str, Numbers, Kind]]) -> list[Series]:
    """Return the curves, the first one as the best; coinciding curves are one, with all their names."""
    series: list[Series] = []
    for label, ys, kind in curves:
        place = next((k for k, one in enumerate(series) if _coincide(one.ys, ys)), None)
        if place is None:
            series.append(Series(label, xs, ys, kind, best=not series))
        elif label not in series[place].label.split("; "):
            series[place] = series[place]._replace(label=f"{series[place].label}; {label}")
    return series if len(series) > 1 else [one._replace(best=False) for one in series]


def _coincide(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(a is not None and b is not None and math.isclose(a, b, rel_tol=_SAME) for a, b in pairs)


# --- along a sweep ----------------------------------------------------------------------------------------------------


def risk_panel(report: Report, title: str = "") -> Panel:
    """Return the panel of what attackers can do along a sweep of cases with risks: a curve for each number.

    Raises:
        SpecError: no number varies.
    """
    sweep = sweep_of(report, ())
    sweep = sweep._replace(points=[point for point in sweep.points if point.result.best])
    ticks = x_axis(sweep)
    risks = {id(case.best): case.risk for case in report.cases if case.risk and case.best}
    series = []
    for (_, key), points in grouped(sweep, lambda _: "").items():
        risks_at = [(abscissa(sweep, ticks, p.inputs[sweep.x]), risks.get(id(p.result))) for p in points]
        names = {name for _, risk in risks_at if risk for name in _numbers(risk)}
        first = next((risk for _, risk in risks_at if risk), None)
        for name in _numbers(first) if first else ():
            if name in names:
                ys = tuple(_numbers(risk).get(name) if risk else None for _, risk in risks_at)
                series.append(Series(with_key(name, key), tuple(x for x, _ in risks_at), ys))
    shown = tuple(series[:MAX_SERIES])
    values = [y for one in shown for y in one.ys if y is not None]
    return Panel(title, ticks, Axis("at most", is_wide(values)), shown)


def _numbers(risk: Fields) -> dict[str, float]:
    """Return the risks of a case by name."""
    numbers = {"advantage": risk["advantage"]["value"]}
    for name, at in ATTACKS.items():
        numbers.update({f"{_WORDS[name]} {100.0 * row[at]:g}%": row["value"] for row in risk[name]} if at else {})
    return numbers


_WORDS = {
    "tpr": "true-positive rate at a false-positive rate of",
    "success": "a right guess at a prior of",
    "reconstruction": "right guess of a secret; without the release",
}


def risk_chart(report: Report) -> Chart:
    """Return the chart of a sweep of known guarantees: only what attackers can do.

    Raises:
        SpecError: no number varies.
    """
    panel = risk_panel(report)
    sweep = sweep_of(report, ())
    title = f"what an attacker can do{condition(sweep)} against {plain_name(sweep.x)}"
    return Chart(title, fixed_inputs(report, sweep), (panel,))


_EXCESS = "excess_risk"
_NAME = 28  # letters of a name of a coefficient
_NOISE = 2.0  # standard deviations to either side


def coefficients_panel(rows: Sequence[Fields]) -> Panel:
    """Return coefficients over half the ranges of their columns, each with bars of two standard deviations.

    Args:
        rows: ``name``, ``weight`` (what the column adds from the middle to the end of its range), ``noise`` or None.
    """
    weights = tuple(float(row["weight"]) for row in rows)
    noise = [_NOISE * (row["noise"] or 0.0) for row in rows]
    spans = tuple((w - n, w + n) for w, n in zip(weights, noise, strict=True))
    names = tuple(cut(str(row["name"]), _NAME) for row in rows)
    label = "what a column adds to the score over half of its range"
    series = Series("coefficients", weights, tuple(-float(place) for place in range(len(rows))), spans=spans)
    return Panel("", Axis(label), Axis("", names=names), (series,))


def coefficients_chart(rows: Sequence[Fields], subtitle: str) -> Chart:
    """Return the chart of a model's coefficients; see `coefficients_panel`."""
    known = all(row["noise"] is not None for row in rows)
    bars = "bars: two standard deviations of the privacy noise to either side, about; estimated from released iterates"
    note = bars if known else "how far the privacy noise moved them is not known: iterates stay hidden"
    return Chart("the largest coefficients", subtitle, (coefficients_panel(rows),), (note,))


def evaluation_chart(report: Fields) -> Chart:
    """Return the reliability and the ROC of an evaluation without noise, those that it has.

    Raises:
        SpecError: it has neither.
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
