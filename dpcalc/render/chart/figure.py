"""A chart as SVG, PNG or PDF, drawn with matplotlib: the same bytes for the same chart.

Also the chart of the spent shifts of a single ``shifted`` case, and two panels beside an answer: how fast delta
approaches its limit, and the noise of the tuned schedule.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dpcalc.errors import SpecError
from dpcalc.inert import printable
from dpcalc.model.quantities import Quantity
from dpcalc.render.chart import ENVELOPE, GUESSING, MAX_SERIES, RATE, Axis, Chart, Panel, Series, is_wide
from dpcalc.render.chart.sweep import Sweep, given_inputs, grouped, key_text, with_key
from dpcalc.render.words.positions import allocation_lines
from dpcalc.report import Report
from dpcalc.theorems.record import all_bounds

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""The colours of Okabe and Ito, which colour-blind readers can distinguish, with grey instead of yellow."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: dict[str, Any] = {
    "upper": "-", "exact": "-", "asymptotic": (0, (6, 3)), "lower": (0, (5, 2, 1, 2)), "conditional": (0, (2, 2)),
    "published": (0, (1, 2)), "heuristic": (0, (4, 2, 1, 2, 1, 2)),
}  # fmt: skip

_STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.markersize": 4.5,
    "savefig.dpi": 150,
    "svg.hashsalt": "dpcalc",
    "pdf.fonttype": 42,
}
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "dpcalc"},
    "pdf": {"CreationDate": None, "Creator": "dpcalc", "Producer": "dpcalc"},
    "png": {"Software": "dpcalc"},
}
_MARKED = 12  # approximate number of markers of a curve
_LEGEND = 90  # characters per line of the legend
_TEXT = 0.17  # inches per line of text


def draw(chart: Chart, format: str) -> bytes:
    """Return the chart as a file of the given format: ``svg``, ``png`` or ``pdf``."""
    width = 7.2 if len(chart.panels) == 1 else 12.0
    head = textwrap.wrap(chart.subtitle, int(width * 14))
    tall = _legend_lines(chart) + len(head) + _note_lines(chart.notes, width)

    def fill(figure: Any) -> None:
        looks: dict[str, int] = {}
        named: set[str] = set()
        for axes, panel in zip(_places(figure, len(chart.panels)), chart.panels, strict=True):
            _draw_panel(axes, panel, looks, named)
        _write_under(figure, head, chart.notes, width)

    return _drawn(chart.title, (width, 4.6 + _TEXT * tall), fill, format)


def draw_panel(panel: Panel) -> bytes:
    """Return one panel as a small SVG for a page; its words stay text, in the reader's font."""
    legend = _TEXT * len(panel.series)
    height = 3.0 + legend

    def fill(figure: Any) -> None:
        # An automatic layout, and powers set as formulas, would take most of the time.
        figure.set_layout_engine(None)
        figure.subplots_adjust(left=0.2, right=0.97, top=0.97, bottom=(0.6 + legend) / height)
        axes = figure.add_subplot()
        _draw_panel(axes, panel, {}, set())
        axes.minorticks_off()  # a third of the file
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")

    return _drawn("", (4.6, height), fill, "svg", {"svg.fonttype": "none"})


def _drawn(
    title: str,
    size: tuple[float, float],
    fill: Callable[[Any], None],
    format: str,
    style: Mapping[Any, Any] = MappingProxyType({}),
) -> bytes:
    """Return the file of a figure with a title, which ``fill`` completes; ``style`` overrides the usual style."""
    import io
    import warnings

    with _own_defaults():
        import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # for letters that the font lacks
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_STYLE, **style})
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        if title:
            wrapped = _literal("\n".join(textwrap.wrap(title, int(size[0] * 9))))
            figure.suptitle(wrapped, fontsize=12, fontweight="bold", x=0.01, ha="left")
        fill(figure)
        figure.savefig(buffer, format=format, metadata=_METADATA[format])
    return buffer.getvalue()


@contextlib.contextmanager
def _own_defaults() -> Iterator[None]:
    """Make matplotlib read its own defaults while it is imported.

    Otherwise it would read a matplotlibrc in the current folder, and MPLBACKEND, and fail if they are invalid.
    """
    spec = importlib.util.find_spec("matplotlib") if "matplotlib" not in sys.modules else None
    if spec is None or spec.origin is None:
        yield
        return
    package = os.path.dirname(spec.origin)
    data = os.path.join(package, "mpl-data")
    here, backend = os.getcwd(), os.environ.pop("MPLBACKEND", None)
    os.chdir(data if os.path.isdir(data) else package)
    try:
        yield
    finally:
        os.chdir(here)
        if backend is not None:
            os.environ["MPLBACKEND"] = backend


def _literal(text: str) -> str:
    """Return text that is shown literally: matplotlib would read a formula between dollars."""
    return "\n".join(map(printable, text.split("\n"))).replace("$", r"\$")


def _legend_lines(chart: Chart) -> int:
    return max(sum(1 + len(series.label) // _LEGEND for series in panel.series) for panel in chart.panels)


def _note_lines(notes: Sequence[str], width: float) -> int:
    return sum(len(textwrap.wrap(note, int(width * 14))) for note in notes)


def _places(figure: Any, count: int) -> list[Any]:
    """Return axes for ``count`` panels: the first at the left, the others stacked at its right."""
    grid = figure.add_gridspec(max(count - 1, 1), 1 if count == 1 else 2)
    return [figure.add_subplot(grid[:, 0]), *(figure.add_subplot(grid[k, 1]) for k in range(count - 1))]


def _draw_panel(axes: Any, panel: Panel, looks: dict[str, int], named: set[str]) -> None:
    """Draw a panel; ``looks`` keeps the colour and marker of each name for all panels.

    A panel has no legend if the legends of earlier panels ``named`` all its curves.
    """
    for axis, set_scale, set_label in (
        (panel.x, axes.set_xscale, axes.set_xlabel),
        (panel.y, axes.set_yscale, axes.set_ylabel),
    ):
        if axis.log:
            set_scale("log")
        set_label(_literal(axis.label))
    if panel.y.names:
        axes.set_yticks([-place for place in range(len(panel.y.names))], [_literal(name) for name in panel.y.names])
    if panel.title:
        axes.set_title(panel.title, fontsize=10, loc="left")
    for place, series in enumerate(panel.series):
        if series.best and series.label == ENVELOPE:
            _line(axes, series, panel.y, color="#BBBBBB", linewidth=6.0, solid_capstyle="round", zorder=1.5)
            continue
        if series.label == GUESSING:
            _line(axes, series, panel.y, color="#7F7F7F", linewidth=1.1, linestyle=(0, (1, 2)), zorder=1.5)
            continue
        if series.spans:
            axes.hlines(series.ys, *zip(*series.spans, strict=True), color=COLOURS[0], linewidth=1.3)
            axes.plot(series.xs, series.ys, linestyle="", marker=MARKERS[0], color=COLOURS[0])
            axes.axvline(0.0, color="#7F7F7F", linewidth=0.8, zorder=1.5)
            continue
        look = looks.setdefault(series.label.partition("; ")[0].partition(RATE)[0], place)
        several = len(panel.series) > 1 or _has_points_alone(series)
        marked = {"marker": MARKERS[look % 8], "markevery": _marked(series, look)} if several else {}
        _line(
            axes, series, panel.y, color=COLOURS[look % 8], linestyle=DASHES[series.kind],
            linewidth=2.4 if series.best else 1.3, zorder=3 if series.best else 2, **marked,
        )  # fmt: skip
        if series.band:
            low, high = ([_clamped(value, panel.y) for value in edge] for edge in series.band)
            axes.fill_between(series.xs, low, high, color=COLOURS[look % 8], alpha=0.18, linewidth=0.0, zorder=1.0)
    if panel.y.low is not None:
        _set_low(axes, panel)
    labels = {series.label for series in panel.series}
    if not labels <= named and (len(panel.series) > 1 or panel.series[0].best or ":" in panel.series[0].label):
        named |= labels
        from matplotlib.transforms import ScaledTranslation

        below = axes.transAxes + ScaledTranslation(0.0, -0.48, axes.figure.dpi_scale_trans)
        columns = 1 if len(panel.series) < 5 or any(len(series.label) > 36 for series in panel.series) else 2
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=below, borderaxespad=0.0, fontsize=8.5,
            frameon=False, handlelength=4.0, ncols=columns,
        )  # fmt: skip


def _line(axes: Any, series: Series, y: Axis, **style: Any) -> None:
    label = f"{series.label}: the best guarantee" if series.best and series.label != ENVELOPE else series.label
    lines = "\n".join(textwrap.wrap(label, _LEGEND, break_on_hyphens=False))
    axes.plot(series.xs, [_clamped(value, y) for value in series.ys], label=_literal(lines), **style)


def _clamped(value: float | None, y: Axis) -> float:
    """Return the value, nan for a gap, or a place well below the axis: a backend may fail for one far away."""
    if value is None:
        return float("nan")
    if y.low is None:
        return value
    return max(value, y.low * 1e-9) if y.log else max(value, y.low - 100.0)


def _has_points_alone(series: Series) -> bool:
    """Whether a point of the curve has gaps on both sides, so that a line does not show it."""
    drawn = [False, *(y is not None for y in series.ys), False]
    return any(
        here and not before and not after for before, here, after in zip(drawn, drawn[1:], drawn[2:], strict=False)
    )


def _marked(series: Series, shift: int) -> tuple[int, int]:
    """Return the first point with a marker and the spacing: every few points, at other places than the next curve.

    Every point has a marker if a line would not show one of them.
    """
    if _has_points_alone(series):
        return 0, 1
    every = max(1, len(series.xs) // _MARKED)
    return shift % every, every


def _set_low(axes: Any, panel: Panel) -> None:
    """Cut off the axis slightly below its lowest value to show."""
    low = panel.y.low
    assert low is not None
    top = max(y for series in panel.series for y in series.ys if y is not None)
    if panel.y.log:
        margin = (top / low) ** 0.04 if top > low else 3.0
        axes.set_ylim(low / margin, top * margin)
    else:
        margin = 0.04 * (top - low) or 1.0
        axes.set_ylim(low - margin, top + margin)


def _write_under(figure: Any, head: list[str], notes: Sequence[str], width: float) -> None:
    """Write the fixed parameters and the notes below the panels, where the layout leaves room."""
    lines = [*head, *(line for note in notes for line in textwrap.wrap(note, int(width * 14)))]
    figure.supxlabel(_literal("\n".join(lines)), fontsize=8.5, color="#444444", x=0.01, ha="left")


def allocation_chart(report: Report) -> Chart:
    """Return the chart of the allocation of a report's only case.

    Raises:
        SpecError: it has no finite allocation.
    """
    [case] = report.cases
    allocation = ((case.best.details if case.best else None) or {}).get("allocation", {})
    sampled = allocation.get("sampled")
    spent, left = (sampled or allocation).get("a"), (sampled or allocation).get("z")
    if not spent:
        raise SpecError("there is no finite allocation to draw", "every step that a shift enters needs noise after it")
    steps = tuple(sampled["steps"]) if sampled else tuple(range(1, len(spent) + 1))
    axis = Axis("step t")
    panels = (
        Panel("", axis, Axis("shift spent in step t, a_t", is_wide(spent)), (Series("a_t", steps, tuple(spent)),)),
        Panel("", axis, Axis("distance left after step t, z_t"), (Series("z_t", steps, tuple(left)),)),
    )
    notes = allocation_lines(allocation)
    if sampled:
        notes.append(f"{len(steps)} of the steps are drawn")
    return Chart("shifted: where the shifts are spent", given_inputs(case), panels, tuple(notes))


def limits() -> dict[str, tuple[str, float]]:
    """Return for each limit the bound that tends to it, and the relative difference below which they count as equal."""
    return {bound.id: bound.limit_of for bound in all_bounds().values() if bound.limit_of is not None}


_RECORDS = "records"


def rate_panels(sweep: Sweep, x: Axis) -> list[Panel]:
    """Return the panel of 1/|delta - delta*| against n for every bound with a known limit, if any."""
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
    """Return the power of n at which the curve grows at its end, in words."""
    ends = [(math.log(x), math.log(y)) for x, y in zip(series.xs, series.ys, strict=True) if y is not None][-2:]
    if len(ends) < 2:
        return ""
    (x0, y0), (x1, y1) = ends
    return f"{RATE} n^{(y1 - y0) / (x1 - x0):.2f} at the end"


def schedule_panels(sweep: Sweep, x: Axis) -> list[Panel]:
    """Return the panel of the noise of the tuned schedule, if it depends on x."""
    curves = grouped(sweep, lambda point: "noise" if point.scale is not None and sweep.x == _RECORDS else None)
    series = tuple(
        Series(key_text(key), tuple(p.inputs[sweep.x] for p in points), tuple(p.scale for p in points))
        for (_, key), points in list(curves.items())[:MAX_SERIES]
    )
    if not any(len(set(curve.ys)) > 1 for curve in series):
        return []
    values = [y for curve in series for y in curve.ys if y is not None]
    return [Panel("the noise of the schedule", x, Axis("noise scale", is_wide(values)), series)]
