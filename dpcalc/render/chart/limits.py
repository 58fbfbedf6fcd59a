"""The panels beside the answer: how fast delta nears its limit, and the noise of the tuned schedule."""

from __future__ import annotations

import math

from dpcalc.model.quantities import Quantity
from dpcalc.render.chart import MAX_SERIES, RATE, Axis, Panel, Series, is_wide
from dpcalc.render.chart.sweep import Sweep, grouped, key_text, with_key
from dpcalc.theorems.record import all_bounds


def limits() -> dict[str, tuple[str, float]]:
    """Return of which bound each limit is the limit, and up to which relative difference it says something."""
    return {bound.id: bound.limit_of for bound in all_bounds().values() if bound.limit_of is not None}


_RECORDS = "records"


def rate_panels(sweep: Sweep, x: Axis) -> list[Panel]:
    """Return the panel of 1/|delta - delta*| against n for every bound whose limit is known, if any."""
    if sweep.quantity != Quantity.DELTA or sweep.x != _RECORDS:
        return []
    by_bound = grouped(sweep, lambda point: point.result.bound)
    curves = []
    for limit, (own, resolution) in limits().items():
        for (bound, key), points in by_bound.items():
            ends = {p.inputs[_RECORDS]: p.result.value for p in by_bound.get((limit, key), [])}
            if bound != own or not ends:
                continue
            xs = tuple(point.inputs[_RECORDS] for point in points)
            ys = tuple(_inverse_gap(p.result.value, ends.get(p.inputs[_RECORDS]), resolution) for p in points)
            if any(y is not None for y in ys):
                curves.append(Series(with_key(sweep.names[bound], key), xs, ys))
    if not curves:
        return []
    curves = curves[:MAX_SERIES]
    log = is_wide([y for series in curves for y in series.ys if y is not None])
    label = "1 / |delta - limit|"
    shown = tuple(series._replace(label=series.label + _slope(series)) for series in curves) if log else tuple(curves)
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
    return f"{RATE} n^{(y1 - y0) / (x1 - x0):.2f} at the end"


def schedule_panels(sweep: Sweep, x: Axis) -> list[Panel]:
    """Return the panel of the noise that the tuned schedule gives, where it moves with x."""
    curves = grouped(sweep, lambda point: "noise" if point.scale is not None and sweep.x == _RECORDS else None)
    series = tuple(
        Series(key_text(key), tuple(p.inputs[sweep.x] for p in points), tuple(p.scale for p in points))
        for (_, key), points in list(curves.items())[:MAX_SERIES]
    )
    if not any(len(set(curve.ys)) > 1 for curve in series):
        return []
    values = [y for curve in series for y in curve.ys if y is not None]
    return [Panel("the noise of the schedule", x, Axis("noise scale", is_wide(values)), series)]
