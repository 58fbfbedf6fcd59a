"""The table of a sweep, one row a case, and what stands under it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpcalc.model.quantities import RISKS, Quantity
from dpcalc.model.source import Source
from dpcalc.render import training
from dpcalc.render.audit import audit_cells, audit_names, audited_together
from dpcalc.render.comparison import cost_kind, cost_run
from dpcalc.render.notes import best_improvement, improvement_sentences
from dpcalc.render.numbers import MAXIMISED, Side, number, symbol_of, value_text
from dpcalc.render.risk import risk_cells, risk_names
from dpcalc.render.sentences import factor_text, grounds, inputs_lines
from dpcalc.report import Case, Report, Result


def summary(report: Report, precision: int) -> list[tuple[str, ...]]:
    """Return one row per case (and order): what varies, the best answer, its bound, and what would better it most.

    Several algorithms are ranked, the best marked.
    """
    names = varying(report)
    quantities = dict.fromkeys(r.quantity for case in report.cases for r in case.results if r.best)
    tight = any(case.tightness and case.tightness.ratio for case in report.cases)
    measured = training.summary_names(report)
    risks = [*risk_names(report), *audit_names(report)]
    better = any(map(best_improvement, report.cases))
    symbols = (symbol_of(name) for name in quantities)
    ends = ("bound", *(["could be"] if better else []), "")
    winner = ranked(report)
    mark = [""] if winner else []
    cases = sorted(report.cases, key=_rank) if winner else report.cases
    head = (*mark, *names, *symbols, *risks, *measured, *(["within"] if tight else []), *ends)
    table = [head]
    for case in cases:
        marks = ["*" if case is winner else ""] if winner else []
        inputs = (*marks, *(_input_cell(case, name) for name in names))
        answers = [result for result in case.results if result.best]
        for best in answers:
            values = (value_text(best, precision) if best.quantity == name else "" for name in quantities)
            metrics = training.summary_cells(case, measured, precision)
            within = [_within(case)] if tight else []
            could = [best_improvement(case)] if better else []
            attacks = [
                *risk_cells(case, risk_names(report), precision),
                *audit_cells(case, audit_names(report), precision),
            ]
            table.append(
                (*inputs, *values, *attacks, *metrics, *within, best.bound, *could, _last_cell(best, precision))
            )
        if not answers:
            because = case.obstacles[0].because if case.obstacles else "no guarantee"
            blank = [""] * (len(head) - len(inputs) - 2)
            table.append((*inputs, *["none", *blank][: len(blank)], "", because))
    return table if any(row[-1] for row in table) else [row[:-1] for row in table]


def _last_cell(best: Result, precision: int) -> str:
    """Return what the last column says of a result: its order, or the run and the kind of a cost."""
    if best.quantity == Quantity.RDP:
        return f"order {number(best.order or 0.0, precision, Side.DOWN)}"
    if best.quantity in RISKS:
        return " ".join((*(f"{name}={cell}" for name, cell in cost_run(best, precision)), cost_kind(best)))
    return ""


def _within(case: Case) -> str:
    ratio = case.tightness.ratio if case.tightness else None
    return f"x{factor_text(ratio)}" if ratio else "?"


def varying(report: Report) -> list[str]:
    """Return the inputs (and ``algorithm``) in which the cases of a report differ."""
    differing = ["algorithm"] if len({case.algorithm for case in report.cases}) > 1 else []
    names = dict.fromkeys(name for case in report.cases for name in case.inputs)
    typed = {
        n for case in report.cases for n, (_, source) in case.inputs.items() if source in (Source.FLAG, Source.ARGUMENT)
    }
    for name in names:
        values = {case.inputs.get(name, (None, ""))[0] for case in report.cases if case.inputs}
        if len(values) > 1 and name in typed:
            differing.append(name)
    return differing


def _input_cell(case: Case, name: str) -> str:
    if name == "algorithm":
        return case.algorithm
    value = case.inputs.get(name, ("", ""))[0]
    return number(value, side=Side.AS_GIVEN)


def ranked(report: Report) -> Case | None:
    """Return the case with the best answer where the cases are one question to several algorithms; else None."""
    quantities = {case.best.quantity for case in report.cases if case.best}
    names = {case.algorithm for case in report.cases}
    if len(names) < max(2, len(report.cases)) or len(quantities) != 1 or quantities & {Quantity.RDP, *RISKS}:
        return None
    found = [case for case in report.cases if case.best]
    return found[0] if len(found) == 1 else min(found, key=_rank)


def _rank(case: Case) -> float:
    """Return what is smaller the better the answer is."""
    best = case.best
    if best is None:
        return math.inf
    if best.quantity == Quantity.DELTA and best.log_delta is not None:
        return best.log_delta
    if (best.details or {}).get("any"):
        return -math.inf
    return -best.value if best.quantity in MAXIMISED else best.value


def common_inputs(report: Report) -> str:
    """Return the inputs in which the cases of a report agree, on one line."""
    return "; ".join(common_lines(report))


def common_lines(report: Report) -> list[str]:
    """Return the inputs in which the cases of a report agree: given, by default, derived."""
    differing = set(varying(report))
    described = [case for case in report.cases if case.inputs]
    if not described:
        return ["given:"]
    first, *others = [case.inputs for case in described]
    kept = {
        name: given
        for name, given in first.items()
        if name not in differing and all(other.get(name) == given for other in others)
    }
    return inputs_lines(described[0]._replace(inputs=kept))


def summary_tail(report: Report) -> list[str]:
    """Return what stands under a summary: the grounds of each best bound, notes, and how many gates held."""
    lines = [
        *("\n".join(grounds(case)) for case in report.cases),
        *(f"note: {note}" for note in summary_notes(report)),
        *summary_counts(report),
    ]
    return [line for line in dict.fromkeys(lines) if line]


def summary_notes(report: Report) -> list[str]:
    """Return the notes, each once, but those on what would better a case: the table has the best of these."""
    found: dict[str, None] = {}
    for case in report.cases:
        told = set(improvement_sentences(report.command, case))
        found.update(dict.fromkeys(note for note in case.notes if note not in told))
    return list(found)


def summary_counts(report: Report) -> Iterator[str]:
    """Yield how cases were audited, how many best values were certified, and how many gates held, where any were to."""
    yield from audited_together(report)
    details = [(r.details or {}).keys() for case in report.cases for r in case.results if r.best]
    tried = [names for names in details if names & {"certified", "not_certified"}]
    if tried:
        yield f"certified: {sum('certified' in names for names in tried)} of {len(tried)} best values"
    gates = [a.passed for case in report.cases for a in case.assertions]
    if gates:
        yield f"gates: {sum(gates)} of {len(gates)} held"


def failed_gates(report: Report) -> list[str]:
    """Return the gates that failed, each with the number of its case."""
    lines = (
        f"FAIL: case {place}: {a.text} (value {a.value}, slack {a.slack})"
        for place, case in enumerate(report.cases, start=1)
        for a in case.assertions
        if not a.passed
    )
    return list(dict.fromkeys(lines))
