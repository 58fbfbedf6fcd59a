"""Formats for documents: Markdown, and a paragraph for a paper's appendix or a model card."""

from __future__ import annotations

from dpcalc.render import training
from dpcalc.render.text import (
    certified_lines,
    columns,
    common_inputs,
    delta_text,
    headline,
    inputs_text,
    legend_lines,
    number,
    promise,
    released,
    rows,
    summary,
    summary_tail,
    symbol_of,
    value_text,
)
from dpcalc.report import Case, Report, Result


def render_markdown(report: Report, precision: int = 6) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    if len(report.cases) == 1:
        return _markdown(report.cases[0], precision)
    head, *body = summary(report, precision)
    lines = [f"given: {_escape(common_inputs(report))}", "", *_table([head, *body]), ""]
    lines += ["- " + _escape(line.replace("\n", "; ")) for line in summary_tail(report)]
    return "\n".join(lines) + "\n"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    cells = [rows[0], tuple("---" for _ in rows[0]), *rows[1:]]
    return ["| " + " | ".join(_escape(cell) for cell in row) + " |" for row in cells]


def _markdown(case: Case, precision: int) -> str:
    lines = [f"**{line}**  " for line in headline(case, precision)]
    lines += ["", _escape(released(case)) + "  ", f"given: {_escape(inputs_text(case))}", ""]
    if case.training:
        warned = training.warning(case)
        lines += [f"**{warned}**  "] if warned else []
        lines += [f"{_escape(line)}  " for line in training.lines(case, precision)]
        lines += ["", *_table(training.rows(case, precision)), ""]
    lines += _table([columns(case), *rows(case, precision)])
    lines += ["", *(_escape(line) + "  " for line in legend_lines(case)), ""]
    lines += [f"- {'pass' if a.passed else '**FAIL**'}: `{a.text}` (slack {a.slack})" for a in case.assertions]
    lines += [f"- {_escape(line)}" for line in certified_lines(case)]
    lines += [f"- note: {_escape(note)}" for note in case.notes]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("_", "\\_")


def render_statement(report: Report, precision: int = 6) -> str:
    """Return one paragraph per case that names adjacency, what is released and every assumption."""
    return "\n".join(_statement(case, precision) + "\n" for case in report.cases)


def _statement(case: Case, precision: int) -> str:
    best = case.best
    if best is None:
        return "No guarantee applies."
    parameters = ", ".join(
        f"{symbol_of(name)} = {number(value, side='as given')}"
        for name, (value, source) in case.inputs.items()
        if source != "derived" and name not in ("epsilon", "delta", "algorithm", "adjacency")
    )
    adjacency = best.adjacency.replace("_", "-")
    assumptions = "; ".join(best.assumes)
    warned = training.warning(case)
    caution = f"{warned}. What follows holds of the algorithm with noise that nobody can draw again. " if warned else ""
    return (
        f"{caution}We run {released(case).partition(': ')[2]} ({parameters}). {_claim(best, precision)}, "
        f"under {adjacency} adjacency. {promise(case)} The guarantee assumes: {assumptions}. "
        f"It follows from {best.reference} (`{best.bound}`), evaluated with dpcalc and rounded to the "
        f"safe side{_proved(best)}.{training.kept_bounds(case)}"
    )


def _proved(best: Result) -> str:
    """Return that the number was also proved in ball arithmetic, if it was."""
    proof = (best.details or {}).get("certified")
    return f"; in ball arithmetic the formula was proved not to exceed it (at {proof['bits']} bits)" if proof else ""


def _claim(best: Result, precision: int) -> str:
    value = value_text(best, precision)
    delta = delta_text(best.delta, best.log_delta, precision, "echo")
    if best.quantity in ("epsilon", "delta"):
        epsilon = value if best.quantity == "epsilon" else number(best.epsilon or 0.0, precision, "echo")
        return f"The result is ({epsilon}, {value if best.quantity == 'delta' else delta})-differentially private"
    if best.quantity == "mu":
        return f"The result is {value}-Gaussian differentially private"
    if best.quantity == "rdp":
        return (
            f"The result satisfies ({number(best.order or 0.0, precision, 'down')}, {value})-Renyi differential privacy"
        )
    epsilon = number(best.epsilon or 0.0, precision, "echo")
    return f"With {best.quantity} = {value} the result is ({epsilon}, {delta})-differentially private"
