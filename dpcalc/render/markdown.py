"""A report as GitHub-flavoured Markdown."""

from __future__ import annotations

from dpcalc.render import training
from dpcalc.render.audit import audit_lines
from dpcalc.render.comparison import assumption_lines, columns, rows
from dpcalc.render.ledger import entry_rows, ledger_lines
from dpcalc.render.risk import risk_lines, risk_rows
from dpcalc.render.sentences import certified_lines, headline, inputs_text, released
from dpcalc.render.summary import common_inputs, failed_gates, summary, summary_tail
from dpcalc.report import Case, Report


def render_markdown(report: Report, precision: int = 6) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    if len(report.cases) == 1:
        return _markdown(report.cases[0], precision)
    head, *body = summary(report, precision)
    lines = [_escape(common_inputs(report)), "", *_table([head, *body]), ""]
    tail = [*summary_tail(report), *failed_gates(report)]
    lines += ["- " + _escape(line.replace("\n", "; ")) for line in tail]
    return "\n".join(lines) + "\n"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    cells = [rows[0], tuple("---" for _ in rows[0]), *rows[1:]]
    return ["| " + " | ".join(_escape(cell) for cell in row) + " |" for row in cells]


def _markdown(case: Case, precision: int) -> str:
    lines = [f"**{line}**  " for line in headline(case, precision)]
    lines += ["", _escape(released(case)) + "  ", _escape(inputs_text(case)), ""]
    if case.training:
        warned = training.warning(case)
        lines += [f"**{warned}**  "] if warned else []
        lines += [f"{_escape(line)}  " for line in training.training_lines(case, precision)]
        metrics = training.metric_rows(case, precision)
        lines += ["", *(_table(metrics) if metrics else ()), ""]
    if case.ledger:
        lines += [*_table(entry_rows(case, precision)), ""]
        lines += [*(f"{_escape(line)}  " for line in ledger_lines(case, precision)), ""]
    if case.risk:
        lines += [*_table(risk_rows(case, precision)), ""]
        lines += [*(f"{_escape(line)}  " for line in risk_lines(case, precision)), ""]
    lines += [*(f"{_escape(line)}  " for line in audit_lines(case, precision)), ""] if case.audit else []
    lines += _table([columns(case), *rows(case, precision)])
    lines += ["", *(_escape(line) + "  " for line in assumption_lines(case)), ""]
    lines += [f"- {'pass' if a.passed else '**FAIL**'}: `{a.text}` (slack {a.slack})" for a in case.assertions]
    lines += [f"- {_escape(line)}" for line in certified_lines(case)]
    lines += [f"- note: {_escape(note)}" for note in case.notes]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("_", "\\_")
