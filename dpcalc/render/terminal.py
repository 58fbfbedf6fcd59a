"""A chart in characters, for a terminal or a log, drawn with plotext."""

from __future__ import annotations

import math
import re
import textwrap

from dpcalc.inert import printable
from dpcalc.render.chart import ENVELOPE, Axis, Chart, Panel, Series

MARKS = "*o+x#@%&"
_COLOURS = ("blue", "red", "green", "magenta", "orange", "cyan", "white", "gray")
_HEIGHT = 22
_TICKS = 5
_FRAME = str.maketrans("┌┐└┘├┤┬┴┼─│", "++++||+++-|")
_COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")


def draw(chart: Chart, width: int = 80, *, color: bool = False, unicode: bool = False) -> str:
    """Return the chart's panels one below the other, ``width`` characters wide; ASCII unless ``unicode``."""
    width = max(width, 40)
    lines = [line for text in (chart.title, chart.subtitle) for line in textwrap.wrap(printable(text), width)]
    for panel in chart.panels:
        lines += ["", *_panel(panel, width, color)]
    for note in chart.notes:
        lines += textwrap.wrap(printable(f"note: {note}"), width)
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return text if unicode else text.translate(_FRAME)


def _panel(panel: Panel, width: int, color: bool) -> list[str]:
    import plotext

    shown = [curve for curve in panel.series if curve.label != ENVELOPE]
    curves = [_points(series, panel) for series in shown]
    xs = [x for points in curves for x, _ in points]
    ys = [y for points in curves for _, y in points]
    if not ys:
        return ["(nothing can be drawn on this axis)"]
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, _HEIGHT)
    plotext.limit_size(False, False)
    for number, points in reversed(list(enumerate(curves))):
        if points:
            colour = _COLOURS[number % len(_COLOURS)]
            plotext.scatter(*map(list, zip(*points, strict=True)), marker=_mark(number), color=colour)
    plotext.xticks(*_ticks(min(xs), max(xs), panel.x))
    plotext.yticks(*_ticks(min(ys), max(ys), panel.y))
    plotext.xlabel(printable(panel.x.label))
    canvas = plotext.build()
    if not color:
        canvas = _COLOUR_CODES.sub("", canvas)
    head = f"{panel.title}: {panel.y.label}" if panel.title else panel.y.label
    lines = [printable(head), *canvas.rstrip("\n").split("\n")]
    if len(shown) > 1 or panel.title:
        lines += [f"  {_mark(number)} {_label(series)}" for number, series in enumerate(shown)]
    return lines


def _label(series: Series) -> str:
    return printable(f"{series.label}, the best guarantee" if series.best else series.label)


def _mark(number: int) -> str:
    return MARKS[number % len(MARKS)]


def _points(series: Series, panel: Panel) -> list[tuple[float, float]]:
    """Return where each value lies on the axes; gaps, and what lies below the axis, are left out."""
    low = -math.inf if panel.y.low is None else panel.y.low
    return [
        (_place(x, panel.x), _place(y, panel.y))
        for x, y in zip(series.xs, series.ys, strict=True)
        if y is not None and y >= low and not (panel.y.log and y <= 0.0)
    ]


def _place(value: float, axis: Axis) -> float:
    return math.log10(value) if axis.log else float(value)


def _ticks(low: float, high: float, axis: Axis) -> tuple[list[float], list[str]]:
    """Return a few places from end to end of an axis, and their labels."""
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if axis.log and last - first >= 2:
        places = [float(decade) for decade in range(first, last + 1, -(-(last - first) // (_TICKS + 1)))]
    else:
        places = [low + (high - low) * k / (_TICKS - 1) for k in range(_TICKS)] if high > low else [low]
    return places, [f"{10.0**place if axis.log else place:.3g}" for place in places]
