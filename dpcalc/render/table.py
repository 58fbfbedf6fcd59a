"""The terminal table, drawn with rich; everything else is the plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from dpcalc.inert import printable
from dpcalc.render import training
from dpcalc.render.comparison import columns, obstacle_rows, rows
from dpcalc.render.ledger import entry_rows, ledger_lines
from dpcalc.render.plain import gate_line, measured_lines, tail_lines
from dpcalc.render.risk import risk_lines, risk_rows
from dpcalc.render.sentences import headline, inputs_text, promise, released
from dpcalc.render.summary import common_inputs, failed_gates, summary, summary_tail
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_BAD = "bold red"


def render(report: Report, precision: int = 6, *, stream: IO[str] | None = None, color: bool | None = None) -> str:
    """Return the report as a table fitted to the terminal, with colour if ``color`` (None: as rich detects)."""
    from rich.console import Console

    console = Console(
        file=stream, force_terminal=color, no_color=color is False, highlight=False, emoji=False, markup=False
    )
    with console.capture() as captured:
        if len(report.cases) == 1:
            _case(console, report.cases[0], precision)
        elif report.cases:
            _summary(console, report, precision)
    return captured.get()


def _summary(console: Console, report: Report, precision: int) -> None:

    console.print(_text(f"given: {common_inputs(report)}", style="dim"))
    console.print()
    console.print(_grid(summary(report, precision)))
    console.print()
    for line in summary_tail(report):
        console.print(_text(line))
    for line in failed_gates(report):
        console.print(_text(line, style=_BAD))


def _case(console: Console, case: Case, precision: int) -> None:
    from rich.table import Table

    console.print(_text(released(case)))
    console.print(_text(f"given: {inputs_text(case)}", style="dim"))
    console.print()
    for line in headline(case, precision):
        console.print(_text(line, style="bold green"))
    console.print()
    console.print(_text(promise(case)))
    if case.training:
        console.print()
        if warning := training.warning(case):
            console.print(_text(warning, style=_BAD))
        for line in measured_lines(case, precision):
            console.print(_text(line))
    _entries(console, case, precision)
    if case.risk:
        console.print()
        console.print(_grid(risk_rows(case, precision)))
        for line in risk_lines(case, precision):
            console.print(_text(line))
    table = Table(show_edge=False, pad_edge=False)
    for name in columns(case):
        table.add_column(name, overflow="fold", no_wrap=name in ("", "value", "kind"))
    for row, result in zip(rows(case, precision), case.results, strict=True):
        style = "bold" if result.best else ("" if result.guarantee else "dim")
        table.add_row(*map(_text, row), style=style)
    console.print()
    console.print(table)
    for line in tail_lines(case, precision):
        console.print(_text(line))
    for gate in case.assertions:
        console.print(_text(gate_line(gate), style="" if gate.passed else _BAD))
    if case.obstacles:
        console.print()
        console.print(_grid(obstacle_rows(case), style="dim"))
    console.print()


def _entries(console: Console, case: Case, precision: int) -> None:
    """Print the entries of a ledger, if the case is one."""
    if not case.ledger:
        return
    console.print()
    console.print(_grid(entry_rows(case, precision)))
    for line in ledger_lines(case, precision):
        console.print(_text(line))


def _grid(rows: Sequence[Sequence[str]], style: str = "") -> Table:
    """Return rows of text, the first of which is the head, as a table whose cells wrap."""
    from rich.table import Table

    head, *body = rows
    table = Table(show_edge=False, pad_edge=False, style=style)
    for name in head:
        table.add_column(name, overflow="fold")
    for cells in body:
        table.add_row(*map(_text, cells))
    return table


def _text(text: str, style: str = "") -> Text:
    """Return a line as rich shows it: as it stands, but for what would steer the terminal."""
    from rich.text import Text

    return Text(printable(text), style=style)
