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

    shown = panel.series
    curves = [_pieces(series, panel) for series in shown]
    xs = [x for pieces in curves for piece in pieces for x, _ in piece]
    ys = [y for pieces in curves for piece in pieces for _, y in piece]
    if not ys:
        return ["(nothing can be drawn on this axis)"]
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, _HEIGHT)
    plotext.limit_size(False, False)
    for x, y in ((span, y) for series in shown for span, y in zip(series.spans, series.ys, strict=False)):
        plotext.plot(list(x), [y, y], marker="-", color=_COLOURS[0])
    for number, pieces in reversed(list(enumerate(curves))):
        for piece in pieces:
            draw = plotext.plot if len(piece) > 1 and not shown[number].spans else plotext.scatter
            colour = _COLOURS[number % len(_COLOURS)]
            draw(*map(list, zip(*piece, strict=True)), marker=_mark(number), color=colour)
    xs += [end for series in shown for span in series.spans for end in span]
    plotext.xticks(*_ticks(min(xs), max(xs), panel.x))
    plotext.yticks(*_ticks(min(ys), max(ys), panel.y))
    plotext.xlabel(printable(panel.x.label))
    canvas = plotext.build()
    if not color:
        canvas = _COLOUR_CODES.sub("", canvas)
    head = f"{panel.title}: {panel.y.label}" if panel.title else panel.y.label
    lines = [printable(head), *canvas.rstrip("\n").split("\n")]
    if len(shown) > 1 or shown[0].best or panel.title:
        for number, series in enumerate(shown):
            lines += textwrap.wrap(
                _label(series), width, initial_indent=f"  {_mark(number)} ", subsequent_indent="    ",
                break_on_hyphens=False,
            )  # fmt: skip
    return lines


def _label(series: Series) -> str:
    marked = series.best and series.label != ENVELOPE
    return printable(f"{series.label}: the best guarantee" if marked else series.label)


def _mark(number: int) -> str:
    return MARKS[number % len(MARKS)]


def _pieces(series: Series, panel: Panel) -> list[list[tuple[float, float]]]:
    """Return the places of the values on the axes, in pieces between gaps and values below the axis."""
    low = -math.inf if panel.y.low is None else panel.y.low
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(series.xs, series.ys, strict=True):
        if y is None or y < low or (panel.y.log and y <= 0.0):
            pieces.append([])
        else:
            pieces[-1].append((_place(x, panel.x), _place(y, panel.y)))
    return [piece for piece in pieces if piece]


def _place(value: float, axis: Axis) -> float:
    return math.log10(value) if axis.log else float(value)


def _ticks(low: float, high: float, axis: Axis) -> tuple[list[float], list[str]]:
    """Return a few places from end to end of an axis, with their labels."""
    if axis.names:
        return [-float(place) for place in range(len(axis.names))], [printable(name) for name in axis.names]
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if axis.log and last - first >= 2:
        places = [float(decade) for decade in range(first, last + 1, -(-(last - first) // (_TICKS + 1)))]
    else:
        places = [low + (high - low) * k / (_TICKS - 1) for k in range(_TICKS)] if high > low else [low]
    return places, [f"{10.0**place if axis.log else place:.3g}" for place in places]
