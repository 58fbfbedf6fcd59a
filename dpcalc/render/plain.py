"""Plain text: aligned columns, ASCII only, the same content as the terminal table."""

from __future__ import annotations

from collections.abc import Sequence

from dpcalc.render import training
from dpcalc.render.text import (
    certified_lines,
    columns,
    common_inputs,
    detail_lines,
    headline,
    inputs_text,
    legend_lines,
    obstacle_rows,
    promise,
    released,
    rows,
    summary,
    summary_tail,
    tightness_text,
)
from dpcalc.report import Case, Report


def render(report: Report, precision: int = 6) -> str:
    """Return the report as plain text: one case in full, several in a table."""
    if len(report.cases) == 1:
        return _case(report.cases[0], precision) + "\n"
    lines = [f"given: {common_inputs(report)}", "", *aligned(summary(report, precision)), "", *summary_tail(report)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _case(case: Case, precision: int) -> str:
    lines = [released(case), f"given: {inputs_text(case)}", "", *headline(case, precision)]
    lines += ["", promise(case), *training_lines(case, precision), ""]
    lines += aligned([columns(case), *rows(case, precision)])
    lines += tail_lines(case, precision)
    lines += ["", *aligned(obstacle_rows(case))] if case.obstacles else []
    return "\n".join(line.rstrip() for line in lines)


def training_lines(case: Case, precision: int) -> list[str]:
    """Return what a run that was carried out came to, if one was."""
    if not case.training:
        return []
    warned = [training.warning(case)] if training.warning(case) else []
    table = aligned(training.rows(case, precision))
    return ["", *warned, *training.lines(case, precision), "", *table]


def tail_lines(case: Case, precision: int) -> list[str]:
    """Return what stands under the table: assumptions, details, tightness, notes, gates."""
    lines = ["", *legend_lines(case), "", *detail_lines(case, precision), *certified_lines(case)]
    lines += [tightness_text(case, precision)] if case.tightness else []
    lines += [f"note: {note}" for note in case.notes]
    for a in case.assertions:
        lines.append(f"{'pass' if a.passed else 'FAIL'}: {a.text} (value {a.value}, slack {a.slack})")
    return lines


def aligned(table: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows with their columns padded to a common width."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
