"""The table of a sweep, one row a case, and what stands under it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpcalc.model.quantities import RISKS, Quantity
from dpcalc.model.source import Source
from dpcalc.render.notes import best_improvement, improvement_sentences
from dpcalc.render.numbers import MAXIMISED, Digits, Side, number, symbol_of
from dpcalc.render.words import training
from dpcalc.render.words.audit import audit_cells, audit_names, audited_together
from dpcalc.render.words.comparison import cost_kind, cost_run
from dpcalc.render.words.risk import risk_cells, risk_names
from dpcalc.render.words.sentences import GIVEN, certified_counts, factor_text, inputs_by_group
from dpcalc.report import Case, Report, Result


def summary(report: Report, digits: Digits) -> list[tuple[str, ...]]:
    """Return one row per case (and order): what varies, the best answer, its bound, and what would better it most.

    Several algorithms are ranked, the best marked.
    """
    names, risks, audits = varying(report), risk_names(report), audit_names(report)
    quantities = dict.fromkeys(r.quantity for case in report.cases for r in case.results if r.best)
    tight = any(case.tightness and case.tightness.ratio for case in report.cases)
    measured, better = training.summary_names(report), any(map(best_improvement, report.cases))
    winner = ranked(report)
    asked = ([""] if winner else []) + names
    ends = [*(["within"] if tight else []), "bound", *(["could be"] if better else []), ""]
    table = [(*asked, *map(symbol_of, quantities), *risks, *audits, *measured, *ends)]
    for case in sorted(report.cases, key=_rank) if winner else report.cases:
        inputs = [*(["*" if case is winner else ""] if winner else []), *(_input_cell(case, name) for name in names)]
        beside = [
            *risk_cells(case, risks, digits), *audit_cells(case, audits, digits),
            *training.summary_cells(case, measured, digits), *([_within(case)] if tight else []),
        ]  # fmt: skip
        could = [best_improvement(case)] if better else []
        answers = [result for result in case.results if result.best]
        for best in answers:
            values = [digits.value(best) if best.quantity == name else "" for name in quantities]
            table.append((*inputs, *values, *beside, best.bound, *could, _last_cell(best, digits)))
        if not answers:
            because = case.obstacles[0].because if case.obstacles else "no guarantee"
            blank = [""] * (len(table[0]) - len(inputs) - 2)
            table.append((*inputs, *["none", *blank][: len(blank)], "", because))
    return table if any(row[-1] for row in table) else [row[:-1] for row in table]


def _last_cell(best: Result, digits: Digits) -> str:
    """Return what the last column says of a result: its order, or the run and the kind of a cost."""
    if best.quantity == Quantity.RDP:
        return f"order {digits.order(best)}"
    if best.quantity in RISKS:
        return " ".join((*(f"{name}={cell}" for name, cell in cost_run(best, digits)), cost_kind(best)))
    return ""


def _within(case: Case) -> str:
    ratio = case.tightness.ratio if case.tightness else None
    return f"x{factor_text(ratio)}" if ratio else "?"


ALGORITHM = "algorithm"


def varying(report: Report) -> list[str]:
    """Return the inputs (and ``algorithm``) in which the cases of a report differ."""
    differing = [ALGORITHM] if len({case.algorithm for case in report.cases}) > 1 else []
    described = [case.inputs for case in report.cases if case.inputs]
    typed = (Source.FLAG, Source.ARGUMENT)
    names = dict.fromkeys(name for inputs in described for name in inputs)
    given = {name for inputs in described for name, (_, source) in inputs.items() if source in typed}
    return differing + [
        name for name in names if name in given and len({inputs.get(name, (None,))[0] for inputs in described}) > 1
    ]


def _input_cell(case: Case, name: str) -> str:
    return case.algorithm if name == ALGORITHM else number(case.inputs.get(name, ("",))[0], side=Side.AS_GIVEN)


def ranked(report: Report) -> Case | None:
    """Return the case with the best answer where the cases are one question to several algorithms; else None."""
    quantities = {case.best.quantity for case in report.cases if case.best}
    names = {case.algorithm for case in report.cases}
    if len(names) < max(2, len(report.cases)) or len(quantities) != 1 or quantities & {Quantity.RDP, *RISKS}:
        return None
    answered = [case for case in report.cases if case.best]
    return answered[0] if len(answered) == 1 else min(answered, key=_rank)


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


def common_inputs(report: Report) -> list[tuple[str, str]]:
    """Return the inputs in which the cases of a report agree, by group: given, by default, derived."""
    described = [case for case in report.cases if case.inputs]
    if not described:
        return [(GIVEN, "")]
    differing, first = set(varying(report)), described[0]
    common = {
        name: given
        for name, given in first.inputs.items()
        if name not in differing and all(case.inputs.get(name) == given for case in described)
    }
    return inputs_by_group(first._replace(inputs=common))


def common_lines(report: Report) -> list[str]:
    """Return the same, a line each."""
    return [f"{group}: {text}" for group, text in common_inputs(report)]


def summary_notes(report: Report) -> list[str]:
    """Return the notes, each once, but those on what would better a case: the table has the best of these."""
    notes: dict[str, None] = {}
    for case in report.cases:
        improvements = set(improvement_sentences(report.command, case))
        notes.update(dict.fromkeys(note for note in case.notes if note not in improvements))
    return list(notes)


def summary_counts(report: Report) -> Iterator[str]:
    """Yield how cases were audited, how many best values were certified, and how many gates held, where any were to."""
    yield from audited_together(report)
    certified, tried = certified_counts(report)
    if tried:
        yield f"certified: {certified} of {tried} best values"
    gates = [gate.passed for case in report.cases for gate in case.assertions]
    if gates:
        yield f"gates: {sum(gates)} of {len(gates)} held"
