"""The terminal table, drawn with rich; everything else is the plain text."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from dpcalc.render.plain import tail_lines, training_lines
from dpcalc.render.text import (
    columns,
    common_inputs,
    headline,
    inputs_text,
    obstacle_rows,
    promise,
    released,
    rows,
    summary,
    summary_tail,
)
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from rich.console import Console


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
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"given: {common_inputs(report)}", style="dim"))
    console.print()
    head, *body = summary(report, precision)
    table = Table(show_edge=False, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in body:
        table.add_row(*map(Text, row))
    console.print(table)
    console.print()
    for line in summary_tail(report):
        console.print(Text(line, style="bold red" if line.startswith("FAIL") else ""))


def _case(console: Console, case: Case, precision: int) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print(Text(released(case)))
    console.print(Text(f"given: {inputs_text(case)}", style="dim"))
    console.print()
    for line in headline(case, precision):
        console.print(Text(line, style="bold green"))
    console.print()
    console.print(Text(promise(case)))
    for line in training_lines(case, precision):
        console.print(Text(line, style="bold red" if line.startswith("NOT PRIVATE") else ""))
    table = Table(show_edge=False, pad_edge=False)
    for name in columns(case):
        table.add_column(name, overflow="fold", no_wrap=name in ("", "value", "kind"))
    for row, result in zip(rows(case, precision), case.results, strict=True):
        style = "bold" if result.best else ("" if result.guarantee else "dim")
        table.add_row(*map(Text, row), style=style)
    console.print()
    console.print(table)
    for line in tail_lines(case, precision):
        console.print(Text(line, style="bold red" if line.startswith("FAIL") else ""))
    if case.obstacles:
        head, *body = obstacle_rows(case)
        others = Table(show_edge=False, pad_edge=False, title_justify="left", style="dim")
        for name in head:
            others.add_column(name, overflow="fold")
        for cells in body:
            others.add_row(*map(Text, cells))
        console.print()
        console.print(others)
    console.print()
