"""``--plot``: which pictures can be made, and the way from a report to one."""

from __future__ import annotations

import contextlib
import os
import sys

from dpcalc.cli.output.terminal import on_terminal
from dpcalc.errors import SpecError
from dpcalc.files import STANDARD_STREAM
from dpcalc.report import Report

PLOT = "plot"
"""The kind of report that is a picture."""

SUFFIXES = ("svg", "png", "pdf")


def check_terminal() -> None:
    """Raise SpecError where nothing can be drawn in a terminal."""
    _need("plotext", "--plot -", "--plot FILE.svg, where matplotlib is at hand")


def check_file(path: str, option: str) -> None:
    """Refuse a file in which no picture can be written.

    Raises:
        SpecError: the suffix is unknown, or matplotlib is missing.
    """
    if _suffix(path) not in SUFFIXES:
        raise SpecError(
            f"{option} {path}: the kind of picture is not known", "end the name in .svg, .png or .pdf, or give - alone"
        )
    _need("matplotlib", "a picture in a file", "--plot - to draw in the terminal, where plotext is at hand")


def of_cases(report: Report, path: str) -> bytes:
    """Return the picture of a check: its sweep where it is one of a single command, else the verdicts as bars.

    With an earlier report these are bars in any case, before and after.
    """
    from dpcalc.render.chart import chart
    from dpcalc.render.chart.bars import bars
    from dpcalc.render.chart.figure import draw, draw_bars

    cases = tuple(case for case in report.cases if case.best)
    commands = {case.check.command for case in cases if case.check}
    if len(commands) == 1 and report.changes is None:
        with contextlib.suppress(SpecError):  # there is no sweep
            return draw(chart(report._replace(command=commands.pop(), cases=cases)), _suffix(path))
    return draw_bars(bars(report), _suffix(path))


def _need(package: str, what: str, otherwise: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise SpecError(f"{what} needs {package}, which is not installed", f"pip install {package}, or {otherwise}")


def picture(report: Report, target: str, only: list[str], color: bool | None) -> str | bytes:
    """Return the picture of a report: text for a terminal, or the bytes of a file.

    Args:
        report: what is drawn.
        target: where it goes; ``-`` is the terminal.
        only: the bounds that are drawn; empty: all, or the best.
        color: whether to colour what is drawn in a terminal; None: if stdout is one.

    Raises:
        SpecError: the report has nothing to draw.
    """
    from dpcalc.render.chart import chart

    drawing = chart(report, only)
    if target != STANDARD_STREAM:
        from dpcalc.render.chart.figure import draw

        return draw(drawing, _suffix(target))
    from shutil import get_terminal_size

    from dpcalc.render.chart import terminal

    width = get_terminal_size().columns if on_terminal() else 80
    unicode = sys.stdout is not None and (sys.stdout.encoding or "").lower().startswith("utf")
    return terminal.draw(drawing, width, color=on_terminal() if color is None else color, unicode=unicode)


def _suffix(target: str) -> str:
    return os.path.splitext(target)[1].removeprefix(".").lower()
