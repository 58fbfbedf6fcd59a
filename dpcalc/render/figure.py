"""A chart as SVG, PNG or PDF, drawn with matplotlib: the same bytes for the same chart."""

from __future__ import annotations

import textwrap
from typing import Any

from dpcalc.render.chart import Axis, Chart, Panel, Series

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Those of Okabe and Ito, told apart by colour-blind readers, and a grey in place of their yellow."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: dict[str, Any] = {
    "upper": "-", "exact": "-", "asymptotic": (0, (6, 3)), "lower": (0, (5, 2, 1, 2)), "conditional": (0, (2, 2)),
    "published": (0, (1, 2)),
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
_MARKED = 12  # a curve bears about so many markers
_TEXT = 0.17  # inches to a line of text


def draw(chart: Chart, format: str) -> bytes:
    """Return the chart as a file of the given format: ``svg``, ``png`` or ``pdf``."""
    import io

    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        width = 7.2 if len(chart.panels) == 1 else 12.0
        head = textwrap.wrap(chart.subtitle, int(width * 14))
        tall = _legend_lines(chart) + len(head) + _note_lines(chart, width)
        figure = Figure(figsize=(width, 4.6 + _TEXT * tall), layout="constrained")
        FigureCanvasAgg(figure)
        title = _literal("\n".join(textwrap.wrap(chart.title, int(width * 9))))
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
        looks: dict[str, int] = {}
        for axes, panel in zip(_places(figure, len(chart.panels)), chart.panels, strict=True):
            _draw_panel(axes, panel, looks)
        _write_under(figure, chart, head, width)
        figure.savefig(buffer, format=format, metadata=_METADATA[format])
    return buffer.getvalue()


def _literal(text: str) -> str:
    """Return text that is shown as it stands: between dollars matplotlib would read a formula."""
    return text.replace("$", r"\$")


def _legend_lines(chart: Chart) -> int:
    return max(len(panel.series) for panel in chart.panels)


def _note_lines(chart: Chart, width: float) -> int:
    return sum(len(textwrap.wrap(note, int(width * 14))) for note in chart.notes)


def _places(figure: Any, count: int) -> list[Any]:
    """Return axes for so many panels: the first at the left, the others at its right one above the other."""
    grid = figure.add_gridspec(max(count - 1, 1), 1 if count == 1 else 2)
    return [figure.add_subplot(grid[:, 0]), *(figure.add_subplot(grid[k, 1]) for k in range(count - 1))]


def _draw_panel(axes: Any, panel: Panel, looks: dict[str, int]) -> None:
    """Draw a panel; ``looks`` keeps the colour and marker of a name from one panel to the next."""
    for axis, set_scale, set_label in (
        (panel.x, axes.set_xscale, axes.set_xlabel),
        (panel.y, axes.set_yscale, axes.set_ylabel),
    ):
        if axis.log:
            set_scale("log")
        set_label(_literal(axis.label))
    if panel.title:
        axes.set_title(panel.title, fontsize=10, loc="left")
    for place, series in enumerate(panel.series):
        if series.best and series.label == "best guarantee":
            _line(axes, series, panel.y, color="#BBBBBB", linewidth=6.0, solid_capstyle="round", zorder=1.5)
            continue
        look = looks.setdefault(series.label.partition(":")[0], place)
        marked = {"marker": MARKERS[look % 8], "markevery": _marked(series, look)} if len(panel.series) > 1 else {}
        _line(
            axes, series, panel.y, color=COLOURS[look % 8], linestyle=DASHES[series.kind],
            linewidth=2.4 if series.best else 1.3, zorder=3 if series.best else 2, **marked,
        )  # fmt: skip
        if series.band:
            low, high = ([_clamped(value, panel.y) for value in edge] for edge in series.band)
            axes.fill_between(series.xs, low, high, color=COLOURS[look % 8], alpha=0.18, linewidth=0.0, zorder=1.0)
    if panel.y.low is not None:
        _set_low(axes, panel)
    if len(panel.series) > 1 or ":" in panel.series[0].label:
        from matplotlib.transforms import ScaledTranslation

        below = axes.transAxes + ScaledTranslation(0.0, -0.48, axes.figure.dpi_scale_trans)
        columns = 1 if len(panel.series) < 5 or any(len(series.label) > 36 for series in panel.series) else 2
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=below, borderaxespad=0.0, fontsize=8.5,
            frameon=False, handlelength=4.0, ncols=columns,
        )  # fmt: skip


def _line(axes: Any, series: Series, y: Axis, **style: Any) -> None:
    label = f"{series.label}, the best guarantee" if series.best and "best" not in series.label else series.label
    axes.plot(series.xs, [_clamped(value, y) for value in series.ys], label=_literal(label), **style)


def _clamped(value: float | None, y: Axis) -> float:
    """Return the value, nan for a gap, or a place well below the axis: a backend may not take one far away."""
    if value is None:
        return float("nan")
    if y.low is None:
        return value
    return max(value, y.low * 1e-9) if y.log else max(value, y.low - 100.0)


def _marked(series: Series, shift: int) -> tuple[int, int]:
    """Return where the markers go: every few points, not where the next curve has its own."""
    every = max(1, len(series.xs) // _MARKED)
    return shift % every, every


def _set_low(axes: Any, panel: Panel) -> None:
    """Cut the axis off a little below its lowest value to show."""
    low = panel.y.low
    assert low is not None
    top = max(y for series in panel.series for y in series.ys if y is not None)
    if panel.y.log:
        margin = (top / low) ** 0.04 if top > low else 3.0
        axes.set_ylim(low / margin, top * margin)
    else:
        margin = 0.04 * (top - low) or 1.0
        axes.set_ylim(low - margin, top + margin)


def _write_under(figure: Any, chart: Chart, head: list[str], width: float) -> None:
    """Write the fixed parameters and the remarks at the foot, where the layout leaves room for them."""
    lines = [*head, *(line for note in chart.notes for line in textwrap.wrap(note, int(width * 14)))]
    figure.supxlabel(_literal("\n".join(lines)), fontsize=8.5, color="#444444", x=0.01, ha="left")
