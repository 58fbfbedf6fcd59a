"""A chart in plain characters, for a terminal or a log: ASCII, with colour only where asked."""

from __future__ import annotations

import math
import textwrap

from dpcalc.render.chart import Axis, Chart, Panel, Series

MARKS = "*o+x#@%&"
_COLOURS = (34, 31, 32, 35, 33, 36, 37, 90)
_HEIGHT = 18
_MARGIN = 11


def draw(chart: Chart, width: int = 80, *, color: bool = False) -> str:
    """Return the chart's panels one below the other, ``width`` characters wide."""
    width = max(width, 40)
    lines = [*textwrap.wrap(chart.title, width), *textwrap.wrap(chart.subtitle, width)]
    for panel in chart.panels:
        lines += ["", *_panel(panel, width, color)]
    for note in chart.notes:
        lines += textwrap.wrap(f"note: {note}", width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _panel(panel: Panel, width: int, color: bool) -> list[str]:
    columns = width - _MARGIN - 1
    shown = [curve for curve in panel.series if curve.label != "best guarantee"]
    xs = [_place(x, panel.x) for series in shown for x in series.xs]
    ys = [y for series in shown for y in _heights(series, panel.y) if y is not None]
    if not ys:
        return ["(nothing can be drawn on this axis)"]
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)
    grid = [[" "] * columns for _ in range(_HEIGHT)]
    for number, series in reversed(list(enumerate(shown))):
        for x, y in zip(series.xs, _heights(series, panel.y), strict=True):
            if y is not None:
                column = _cell(_place(x, panel.x), left, right, columns)
                grid[_HEIGHT - 1 - _cell(y, low, high, _HEIGHT)][column] = _mark(number, color)
    lines = [f"{panel.title}: {panel.y.label}" if panel.title else panel.y.label]
    for row, cells in enumerate(grid):
        at = high + (low - high) * row / (_HEIGHT - 1)
        label = _value(at, panel.y) if row in (0, _HEIGHT // 2, _HEIGHT - 1) else ""
        lines.append(f"{label:>{_MARGIN - 1}} |" + "".join(cells))
    ends = _value(left, panel.x), _value(right, panel.x)
    lines.append(" " * _MARGIN + "+" + "-" * (columns - 1))
    room = columns - len(ends[0]) - len(ends[1])
    lines.append(" " * _MARGIN + ends[0] + f"{panel.x.label:^{max(room, 0)}.{max(room, 0)}}" + ends[1])
    if len(shown) > 1 or panel.title:
        lines += [f"  {_mark(number, color)} {_label(series)}" for number, series in enumerate(shown)]
    return lines


def _label(series: Series) -> str:
    return f"{series.label}, the best guarantee" if series.best else series.label


def _mark(number: int, color: bool) -> str:
    mark = MARKS[number % len(MARKS)]
    return f"\x1b[{_COLOURS[number % len(_COLOURS)]}m{mark}\x1b[0m" if color else mark


def _heights(series: Series, axis: Axis) -> list[float | None]:
    """Return where each value lies on the axis, None for a gap and for what lies below it."""
    low = -math.inf if axis.low is None else axis.low
    return [None if y is None or y < low or (axis.log and y <= 0.0) else _place(y, axis) for y in series.ys]


def _place(value: float, axis: Axis) -> float:
    return math.log10(value) if axis.log else float(value)


def _cell(value: float, low: float, high: float, cells: int) -> int:
    return round((value - low) / (high - low) * (cells - 1)) if high > low else 0


def _value(place: float, axis: Axis) -> str:
    return f"{10.0**place if axis.log else place:.3g}"
