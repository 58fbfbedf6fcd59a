"""``--plot``: what may be asked for, and the way from a report to a picture."""

from __future__ import annotations

import os
import sys
from typing import Any

from dpcalc.cli.options import color_of
from dpcalc.errors import SpecError
from dpcalc.report import Report

SUFFIXES = ("svg", "png", "pdf")


def check(output: dict[str, Any]) -> None:
    """Refuse what cannot be drawn, before anything is computed.

    Raises:
        SpecError: the suffix is unknown, matplotlib is missing, or the report and the plot would mix.
    """
    target = output["plot"]
    if target is None:
        if output["plot_bounds"]:
            raise SpecError("--plot-bounds chooses what --plot draws", "add --plot FILE.svg, or --plot -")
        return
    if target == "-":
        if output["output"] in (None, "-") and (output["as_json"] or output["format"]):
            raise SpecError(
                "--plot - and the report would mix on standard output", "write one of them to a file: -o or --plot FILE"
            )
        _need("plotext", "--plot -", "--plot FILE.svg, where matplotlib is at hand")
        return
    check_file(target, "--plot")
    if output["output"] not in (None, "-") and os.path.realpath(output["output"]) == os.path.realpath(target):
        raise SpecError("--plot and -o name the same file", "give them two names")


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
    """Return the picture of the answered cases of a check, which must be of one command.

    Raises:
        SpecError: they are not, or are no sweep.
    """
    from dpcalc.render.chart import chart
    from dpcalc.render.figure import draw

    cases = tuple(case for case in report.cases if case.best)
    commands = sorted({case.check.command for case in cases if case.check})
    if len(commands) != 1:
        found = " and ".join(commands) or "nothing that was answered"
        raise SpecError(f"a plot is of one command's cases, and these are of {found}", "choose some with --run REGEX")
    return draw(chart(report._replace(command=commands[0], cases=cases)), _suffix(path))


def _need(package: str, what: str, otherwise: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise SpecError(
            f"{what} needs {package}, which is not installed", f"pip install 'dpcalc[plot]', or {otherwise}"
        )


def picture(report: Report, output: dict[str, Any]) -> str | bytes | None:
    """Return the picture asked for: text for a terminal, the bytes of a file, or None.

    Raises:
        SpecError: the report has nothing to draw.
    """
    target = output["plot"]
    if target is None:
        return None
    from dpcalc.render.chart import chart

    only = [bound.strip() for part in output["plot_bounds"] for bound in part.split(",")]
    found = chart(report, only)
    if target != "-":
        from dpcalc.render.figure import draw

        return draw(found, _suffix(target))
    from shutil import get_terminal_size

    from dpcalc.render import terminal

    color = color_of(output["color"])
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = get_terminal_size().columns if on_terminal else 80
    unicode = sys.stdout is not None and (sys.stdout.encoding or "").lower().startswith("utf")
    return terminal.draw(found, width, color=on_terminal if color is None else color, unicode=unicode)


def _suffix(target: str) -> str:
    return os.path.splitext(target)[1].removeprefix(".").lower()
