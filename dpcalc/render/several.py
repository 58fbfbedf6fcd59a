"""The table of a sweep, one row a case, and the text below it; and explained bounds with their BibTeX.

An explanation has a bound's statement, its formula with the numbers of a run, assumptions, source and errata.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dpcalc.errors import NotApplicable
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import RISKS, Kind, Quantity
from dpcalc.references import SHORT, entries, proof_of
from dpcalc.render.blocks import COLUMNS
from dpcalc.render.layout import wrapped
from dpcalc.render.notes import improvement_sentences
from dpcalc.render.numbers import MAXIMISED, SIX, Digits, Side, equation, number, symbol_of
from dpcalc.render.words import risk
from dpcalc.render.words.brief import cost_kind, cost_run, derivation, kept
from dpcalc.render.words.risk import audit_cells, audit_names, audited_together, refuted, risk_cells, risk_names
from dpcalc.render.words.sentences import GIVEN, certified_counts, factor_text, inputs_by_group
from dpcalc.report import Case, Report, Result
from dpcalc.theorems.record import Theorem, all_bounds, lookup


def summary(report: Report, digits: Digits) -> list[tuple[str, ...]]:
    """Return one row per case (and order): what varies, the best answer, and its bound.

    Several algorithms are ranked, the best marked.
    """
    names, risks, audits = varying(report), risk_names(report), audit_names(report)
    quantities = dict.fromkeys(r.quantity for case in report.cases for r in case.results if r.best)
    tight = any(case.tightness and case.tightness.ratio for case in report.cases)
    measured = risk.summary_names(report)
    winner = ranked(report)
    asked = ([""] if winner else []) + names
    ends = [*(["within"] if tight else []), "bound", ""]
    table = [(*asked, *map(symbol_of, quantities), *risks, *audits, *measured, *ends)]
    for case in sorted(report.cases, key=_rank) if winner else report.cases:
        inputs = [*(["*" if case is winner else ""] if winner else []), *(_input_cell(case, name) for name in names)]
        beside = [
            *risk_cells(case, risks, digits), *audit_cells(case, audits, digits),
            *risk.summary_cells(case, measured, digits), *([_within(case)] if tight else []),
        ]  # fmt: skip
        for best in case.answers:
            values = [digits.value(best) if best.quantity == name else "" for name in quantities]
            table.append((*inputs, *values, *beside, best.bound, _last_cell(best, digits)))
        if not case.answers:
            blank = [""] * (len(table[0]) - len(inputs) - 1)
            table.append((*inputs, *["none", *blank][: len(blank) + 1]))
    return table if any(row[-1] for row in table) else [row[:-1] for row in table]


def unanswered(report: Report) -> dict[str, list[str]]:
    """Return why cases have no answer: each reason with its cases, or without cases if it applies to all."""
    reasons: dict[str, list[str]] = {}
    for case in report.cases:
        if not case.answers:
            because = case.obstacles[0].because if case.obstacles else "no guarantee"
            reasons.setdefault(because.removeprefix(f"{case.algorithm} "), []).append(name_in(report, case))
    return reasons if any(case.answers for case in report.cases) else {reason: [] for reason in reasons}


def name_in(report: Report, case: Case) -> str:
    """Return the name of a case in a report: the inputs in which it differs from others."""
    names = [name for name in varying(report) if name != ALGORITHM]
    inputs = [equation(name, case.value(name)) for name in names if name in case.inputs]
    return ", ".join(([case.algorithm] if ALGORITHM in varying(report) else []) + inputs) or case.algorithm


def _last_cell(best: Result, digits: Digits) -> str:
    """Return the last cell of a result: its order, or the run and the kind of a cost."""
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
    typed = (Source.FLAG, Source.ARGUMENT, Source.CHOSEN)
    names = dict.fromkeys(name for inputs in described for name in inputs)
    given = {name for inputs in described for name, (_, source) in inputs.items() if source in typed}
    return differing + [
        name for name in names if name in given and len({inputs.get(name, (None,))[0] for inputs in described}) > 1
    ]


def _input_cell(case: Case, name: str) -> str:
    return case.algorithm if name == ALGORITHM else number(case.inputs.get(name, ("",))[0], side=Side.AS_GIVEN)


def ranked(report: Report) -> Case | None:
    """Return the case with the best answer if the cases ask one question of several algorithms; else None."""
    quantities = {case.best.quantity for case in report.cases if case.best}
    names = {case.algorithm for case in report.cases}
    if len(names) < max(2, len(report.cases)) or len(quantities) != 1 or quantities & {Quantity.RDP, *RISKS}:
        return None
    answered = [case for case in report.cases if case.best]
    return answered[0] if len(answered) == 1 else min(answered, key=_rank)


def _rank(case: Case) -> float:
    """Return a number that is smaller for a better answer."""
    best = case.best
    if best is None:
        return math.inf
    if best.quantity == Quantity.DELTA and best.log_delta is not None:
        return best.log_delta
    if (best.details or {}).get("any"):
        return -math.inf
    return -best.value if best.quantity in MAXIMISED else best.value


def common_inputs(report: Report) -> list[tuple[str, str]]:
    """Return the common inputs of a report's cases, by group: given, by default, derived."""
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
    """Return the common inputs, one line per group."""
    return [f"{group}: {text}" for group, text in common_inputs(report)]


def summary_notes(report: Report) -> list[str]:
    """Return the notes, each once, except improvements: the table has the best one."""
    notes: dict[str, None] = {}
    for case in report.cases:
        improvements = set(improvement_sentences(report.command, case))
        notes.update(dict.fromkeys(note for note in case.notes if note not in improvements))
    return list(notes)


def summary_counts(report: Report) -> Iterator[str]:
    """Yield how cases were audited, and how many best values were certified and gates held, if there are any."""
    yield from audited_together(report)
    certified, tried = certified_counts(report)
    if tried:
        yield f"certified: {certified} of {tried} best values"
    gates = [gate.passed for case in report.cases for gate in case.assertions]
    if gates:
        yield f"gates: {sum(gates)} of {len(gates)} held"


GIVES = {
    "mu": "mu (Gaussian DP)",
    "rdp": "RDP at an order",
    "log_delta": "delta at epsilon",
    "epsilon": "epsilon at delta",
    "parts": "epsilon and delta, composed by the law of the privacy loss",
    "cost": "excess risk at a budget",
}
"""The result of a bound's function, in words."""

_SENSITIVITY = "sensitivity"
_TIMES_LIPSCHITZ = {"replace-one": "2 lipschitz", "null-record": "lipschitz"}


def render_explain(report: Report, digits: Digits = SIX) -> str:
    """Return each case's best result explained, with the numbers of its run."""
    texts = [explain_result(r, case, digits) for case in report.cases for r in case.answers]
    return "\n\n".join(dict.fromkeys(texts)) + "\n"


def explain_bounds(report: Report, ids: Sequence[str], digits: Digits = SIX) -> str:
    """Explain these bounds for each case, with the numbers of its run.

    Raises:
        NotApplicable: one of them does not apply to a run.
    """
    texts = [
        explain_result(result, case, digits) for id in ids for case in report.cases for result in _results_of(case, id)
    ]
    return "\n\n".join(texts) + "\n"


def _results_of(case: Case, id: str) -> list[Result]:
    results = [result for result in case.results if result.bound == id]
    if not results:
        why = next((o for o in case.obstacles if o.bound == id), None)
        because = why.because if why else f"it does not speak of {case.algorithm}"
        raise NotApplicable(f"{id} does not apply to this run: {because}", why.hint if why else "see `dpcalc bounds`")
    return results


def render_bibtex(report: Report, _: object = None) -> str:
    """Return the BibTeX of the sources of the best results."""
    return bibtex([lookup(r.bound) for case in report.cases for r in case.answers])


def bibtex(bounds: list[Theorem]) -> str:
    """Return the BibTeX entries of the bounds, each once."""
    return bibtex_of([bound.reference for bound in bounds])


def cited(ids: Sequence[str]) -> str:
    """Return the BibTeX of bounds and sources, by their ids and keys; of all sources by default.

    Raises:
        SpecError: an id is neither.
    """
    keys = [id if id in SHORT else lookup(id).reference for id in ids]
    return bibtex_of(keys or [*(bound.reference for bound in all_bounds().values()), "dpcalc-note"])


def bibtex_of(keys: Sequence[str]) -> str:
    """Return the BibTeX entries of these keys, each once."""
    bibliography = entries()
    return "\n\n".join(bibliography[key] for key in dict.fromkeys(keys)) + "\n"


def explain_result(result: Result, case: Case, digits: Digits = SIX) -> str:
    """Return the record of the result's bound, with this run's numbers in it."""
    bound = lookup(result.bound)
    relation = {Kind.LOWER: ">=", Kind.HEURISTIC: "about"}.get(result.kind, "<=")
    answer = f"{result.quantity} {relation} {digits.value(result)}"
    derived = derivation(result, digits)
    names = [name for name in (*bound.parameters, "epsilon", "delta") if name in case.inputs]
    numbers = [("" if place else "with", _number_of(case, name)) for place, name in enumerate(names)]
    refutation, promised = refuted(case), f"[{' ' if result.kind == Kind.CONDITIONAL else 'x'}]"
    # An executed run ensures the assumptions on its steps; its rounding adds assumptions.
    assumed, left, done = bound.assumes, bound.assumes, ""
    if case.training and result.best:
        assumed, left, done = result.assumes, kept(case), ", or done by this run"
    lines = [
        *([*wrapped(refutation, COLUMNS), ""] if refutation else []),
        *_head(bound),
        "",
        *_labelled("formula", bound.formula),
        *(line for label, text in numbers for line in _labelled(label, text)),
        *_labelled("gives", answer + (f"   ({derived})" if derived else "")),
        *_source(bound),
        "",
        f"assumes    [x] checked against the numbers given{done}   [ ] yours to keep",
        *(line for requirement in bound.conditions for line in _item("[x]", requirement.text)),
        *(line for text in assumed for line in _item(f"[{' ' if text in left else 'x'}]", text)),
        *(line for demand in bound.promises for line in _item(promised, f"{demand.text} (promised)")),
        *_remarks(bound),
        "",
        bibtex([bound]).rstrip(),
    ]
    return "\n".join(lines)


def _labelled(label: str, text: str) -> list[str]:
    return wrapped(text, COLUMNS, label.ljust(11), " " * 11)


def _item(sign: str, text: str) -> list[str]:
    """Return the lines of an item of a list."""
    first = f"  {sign} "
    return wrapped(text, COLUMNS, first, " " * len(first))


def _number_of(case: Case, name: str) -> str:
    value, source = case.inputs[name]
    mark = f" ({source})" if source in (Source.DEFAULT, Source.WORST_CASE, Source.DERIVED) else ""
    if name == _SENSITIVITY:
        adjacency = str(case.inputs.get("adjacency", ("", ""))[0])
        mark = f" ({_TIMES_LIPSCHITZ.get(adjacency, 'derived')})"
    return f"{equation(name, value)}{mark}"


def describe(bound: Theorem) -> str:
    """Return the record of a bound as plain text."""
    needed = [name for name in bound.parameters if name not in bound.optional]
    optional = [name for name in bound.parameters if name in bound.optional]
    lines = [
        *_head(bound),
        "",
        *_labelled("formula", bound.formula),
        f"gives      {GIVES[bound.notion]}",
        *_source(bound),
        *_labelled("needs", ", ".join(needed)),
        *(_labelled("if known", ", ".join(optional)) if optional else []),
        *(_labelled("slack", bound.slack) if bound.slack else []),
        *(_labelled("--certify", bound.certifying) if bound.guarantee else []),
        "",
        "assumes",
        *(line for text in bound.assumes for line in _item("-", text)),
        *(line for requirement in bound.conditions for line in _item("-", f"{requirement.text} (checked)")),
        *(line for demand in bound.promises for line in _item("-", f"{demand.text} (to be promised)")),
        *_remarks(bound),
    ]
    return "\n".join(lines)


def _head(bound: Theorem) -> list[str]:
    return [*wrapped(f"{bound.id}: {bound.title}", COLUMNS), "", *wrapped(bound.statement, COLUMNS)]


def _source(bound: Theorem) -> list[str]:
    return [
        f"kind       {bound.kind}" + ("" if bound.guarantee else " (for comparison: never a guarantee)"),
        *_labelled("source", f"{SHORT[bound.reference]}, {bound.locator} (`dpcalc cite {bound.id}`)"),
        f"proof      `dpcalc help method#{proof_of(bound.id)}`",
        *_labelled("algorithm", ", ".join(bound.algorithms)),
    ]


def _remarks(bound: Theorem) -> list[str]:
    remarks = (("erratum", bound.erratum), ("note", bound.caution))
    return [line for title, text in remarks if text for line in ("", *wrapped(f"{title}: {text}", COLUMNS))]
