"""Plain text: aligned columns, ASCII only, the same content as the terminal table."""

from __future__ import annotations

from collections.abc import Sequence

from dpcalc.render.text import COLUMNS, detail_lines, grounds, headline, inputs_text, promise, released, rows
from dpcalc.report import Case, Report


def render(report: Report, precision: int = 6) -> str:
    """Return the report as plain text."""
    return "\n\n".join(_case(case, precision) for case in report.cases) + "\n"


def _case(case: Case, precision: int) -> str:
    lines = [released(case), f"given: {inputs_text(case)}", "", *headline(case, precision)]
    lines += ["", promise(case), ""]
    lines += aligned([COLUMNS, *rows(case, precision)])
    lines += tail_lines(case, precision)
    return "\n".join(line.rstrip() for line in lines)


def tail_lines(case: Case, precision: int) -> list[str]:
    """Return everything under the table: assumptions, details, notes, what does not apply, gates, warnings."""
    lines = []
    lines += ["", *grounds(case), *detail_lines(case, precision)]
    lines += [f"note: {note}" for note in case.notes]
    lines += [f"not applicable: {o.bound}: {o.because}" for o in case.obstacles]
    for a in case.assertions:
        lines.append(f"{'pass' if a.passed else 'FAIL'}: {a.text} (value {a.value}, slack {a.slack})")
    return lines


def aligned(table: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows with their columns padded to a common width."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
