"""The terminal table, drawn with rich; everything else is the plain text."""

from __future__ import annotations

from typing import IO

from dpcalc.render.plain import tail_lines
from dpcalc.render.text import COLUMNS, headline, inputs_text, promise, released, rows
from dpcalc.report import Case, Report


def render(report: Report, precision: int = 6, *, stream: IO[str] | None = None, color: bool | None = None) -> str:
    """Return the report as a table fitted to the terminal, with colour if ``color`` (None: as rich detects)."""
    from rich.console import Console

    console = Console(
        file=stream, force_terminal=color, no_color=color is False, highlight=False, emoji=False, markup=False
    )
    with console.capture() as captured:
        for case in report.cases:
            _case(console, case, precision)
    return captured.get()


def _case(console: object, case: Case, precision: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    assert isinstance(console, Console)
    console.print(Text(released(case)))
    console.print(Text(f"given: {inputs_text(case)}", style="dim"))
    console.print()
    for line in headline(case, precision):
        console.print(Text(line, style="bold green"))
    console.print()
    console.print(Text(promise(case)))
    table = Table(show_edge=False, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, overflow="fold", no_wrap=name in ("", "value", "kind"))
    for row, result in zip(rows(case, precision), case.results, strict=True):
        style = "bold" if result.best else ("" if result.guarantee else "dim")
        table.add_row(*map(Text, row), style=style)
    console.print()
    console.print(table)
    for line in tail_lines(case, precision):
        console.print(Text(line, style="bold red" if line.startswith("FAIL") else ""))
    console.print()
