"""Plain text: aligned columns, ASCII only, the same content as the terminal table."""

from __future__ import annotations

from collections.abc import Sequence

from dpcalc.render import training
from dpcalc.render.audit import audit_lines
from dpcalc.render.comparison import assumption_lines, columns, obstacle_rows, rows
from dpcalc.render.ledger import entry_rows, ledger_lines
from dpcalc.render.meaning import meaning
from dpcalc.render.risk import risk_lines, risk_rows
from dpcalc.render.sentences import (
    certified_lines,
    headline,
    inputs_lines,
    promise,
    released,
    shift_lines,
    tightness_text,
)
from dpcalc.render.summary import common_inputs, failed_gates, summary, summary_tail
from dpcalc.report import Assertion, Case, Report


def render(report: Report, precision: int = 6) -> str:
    """Return the report as plain text: one case in full, several in a table."""
    if len(report.cases) == 1:
        return _case(report.cases[0], precision) + "\n"
    lines = [common_inputs(report), "", *aligned(summary(report, precision)), ""]
    lines += [*summary_tail(report), *failed_gates(report)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _case(case: Case, precision: int) -> str:
    lines = [released(case), *inputs_lines(case), "", *headline(case, precision)]
    lines += [
        "",
        promise(case),
        *filter(None, [meaning(case)]),
        *_training_lines(case, precision),
        *_ledger_lines(case, precision),
        *_risk_lines(case, precision),
        *_audit_lines(case, precision),
        "",
    ]
    lines += aligned([columns(case), *rows(case, precision)])
    lines += [*tail_lines(case, precision), *map(gate_line, case.assertions)]
    lines += ["", *aligned(obstacle_rows(case))] if case.obstacles else []
    return "\n".join(line.rstrip() for line in lines)


def _training_lines(case: Case, precision: int) -> list[str]:
    warning, lines = training.warning(case), measured_lines(case, precision)
    return ["", *([warning] if warning else []), *lines] if lines else []


def _ledger_lines(case: Case, precision: int) -> list[str]:
    """Return the entries of a ledger, and what is left of its budget."""
    entries = entry_rows(case, precision)
    return ["", *aligned(entries), *ledger_lines(case, precision)] if entries else []


def _risk_lines(case: Case, precision: int) -> list[str]:
    """Return what an attacker can do, where that was asked."""
    rows = risk_rows(case, precision)
    return ["", *aligned(rows), *risk_lines(case, precision)] if rows else []


def _audit_lines(case: Case, precision: int) -> list[str]:
    """Return what an audit found, where there was one."""
    lines = audit_lines(case, precision)
    return ["", *lines] if lines else []


def measured_lines(case: Case, precision: int) -> list[str]:
    """Return what a run that was carried out came to, if one was, and the table of its metrics."""
    if not case.training:
        return []
    return [*training.training_lines(case, precision), "", *aligned(training.metric_rows(case, precision))]


def tail_lines(case: Case, precision: int) -> list[str]:
    """Return what stands under the table: assumptions, details, tightness, notes."""
    lines = ["", *assumption_lines(case), "", *shift_lines(case), *certified_lines(case)]
    lines += [tightness_text(case, precision)] if case.tightness else []
    return [*lines, *(f"note: {note}" for note in case.notes)]


def gate_line(gate: Assertion) -> str:
    """Return the verdict on a gate."""
    return f"{'pass' if gate.passed else 'FAIL'}: {gate.text} (value {gate.value}, slack {gate.slack})"


def aligned(table: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows with their columns padded to a common width."""
    padded = "  ".join(f"%-{max(map(len, column))}s" for column in zip(*table, strict=True))
    return [padded % tuple(row) for row in table]
