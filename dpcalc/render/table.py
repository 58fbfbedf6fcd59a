"""The answer fitted to a terminal, coloured by rich; everything else is the plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from dpcalc.inert import printable
from dpcalc.render import training
from dpcalc.render.audit import audit_lines
from dpcalc.render.brief import brief
from dpcalc.render.comparison import columns, obstacle_rows, rows
from dpcalc.render.layout import laid_out, wrapped
from dpcalc.render.ledger import entry_rows, ledger_lines
from dpcalc.render.meaning import meaning
from dpcalc.render.plain import gate_line, measured_lines, tail_lines
from dpcalc.render.risk import risk_lines, risk_rows
from dpcalc.render.sentences import headline, inputs_lines, promise, released
from dpcalc.render.summary import common_inputs, failed_gates, summary, summary_tail
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_BAD = "bold red"


def render(
    report: Report,
    precision: int = 6,
    *,
    stream: IO[str] | None = None,
    color: bool | None = None,
    verbose: bool = True,
) -> str:
    """Return the report fitted to the terminal, with colour if ``color`` (None: as rich detects)."""
    from rich.console import Console

    console = Console(
        file=stream, force_terminal=color, no_color=color is False, highlight=False, emoji=False, markup=False
    )
    with console.capture() as captured:
        if not verbose:
            _brief(console, report, precision)
        elif len(report.cases) == 1:
            _case(console, report.cases[0], precision)
        elif report.cases:
            _summary(console, report, precision)
    return captured.get()


def _brief(console: Console, report: Report, precision: int) -> None:
    """Print the answer on one screen."""
    for part in brief(report, precision):
        if part.rows:
            _grid(console, part.rows)
            continue
        for line in part.lines(console.width):
            console.print(_text(line, style=part.style), soft_wrap=part.row)


def _summary(console: Console, report: Report, precision: int) -> None:

    _say(console, common_inputs(report), style="dim")
    console.print()
    _grid(console, summary(report, precision))
    console.print()
    for line in summary_tail(report):
        for each in line.split("\n"):
            _say(console, each)
    for line in failed_gates(report):
        _say(console, line, style=_BAD)


def _case(console: Console, case: Case, precision: int) -> None:
    _say(console, released(case))
    for line in inputs_lines(case):
        _say(console, line, style="dim")
    console.print()
    for line in headline(case, precision):
        _say(console, line, style="bold green")
    console.print()
    _say(console, promise(case))
    if text := meaning(case):
        _say(console, text)
    if case.training:
        console.print()
        if warning := training.warning(case):
            _say(console, warning, style=_BAD)
        for line in measured_lines(case, precision):
            _say(console, line)
    _entries(console, case, precision)
    _risk(console, case, precision)
    for line in ("", *audit_lines(case, precision)) if case.audit else ():
        _say(console, line)
    console.print()
    styles = ["bold" if r.best else "" if r.guarantee else "dim" for r in case.results]
    _grid(console, [columns(case), *rows(case, precision)], styles)
    for line in tail_lines(case, precision):
        _say(console, line)
    for gate in case.assertions:
        _say(console, gate_line(gate), style="" if gate.passed else _BAD)
    if case.obstacles:
        console.print()
        _grid(console, obstacle_rows(case), ["dim"] * len(case.obstacles))
    console.print()


def _risk(console: Console, case: Case, precision: int) -> None:
    """Print what an attacker can do, where that was asked."""
    if not case.risk:
        return
    console.print()
    _grid(console, risk_rows(case, precision))
    for line in risk_lines(case, precision):
        _say(console, line)


def _entries(console: Console, case: Case, precision: int) -> None:
    """Print the entries of a ledger, if the case is one."""
    if not case.ledger:
        return
    console.print()
    _grid(console, entry_rows(case, precision))
    for line in ledger_lines(case, precision):
        _say(console, line)


def _grid(console: Console, rows: Sequence[Sequence[str]], styles: Sequence[str] = ()) -> None:
    """Print a table, the first row of which is the head; ``styles`` are those of the others."""
    shown = [tuple(map(printable, row)) for row in rows]
    for lines, style in zip(laid_out(shown, console.width), ["bold", *(styles or [""] * len(rows))], strict=False):
        for line in lines:
            console.print(_text(line, style=style), soft_wrap=True)


def _say(console: Console, text: str, style: str = "") -> None:
    """Print a paragraph in lines of the width of the terminal."""
    indent = " " * (len(text) - len(text.lstrip()))
    if indent:
        _, _, rest = text.strip().partition("  ")  # the sign of an assumption, and its words
        others = " " * (len(text) - len(rest.lstrip())) if rest else indent + "  "
    else:
        others = ""
    for line in wrapped(printable(text.strip()), console.width, indent, others):
        console.print(_text(line, style=style), soft_wrap=True)


def _text(text: str, style: str = "") -> Text:
    """Return a line as rich shows it: as it stands, but for what would steer the terminal."""
    from rich.text import Text

    return Text(printable(text), style=style)
