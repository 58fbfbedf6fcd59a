"""``explain`` and BibTeX: a bound's statement, formula with a run's numbers put in, assumptions, source and errata."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from dpcalc.errors import NotApplicable
from dpcalc.model.quantities import Kind
from dpcalc.model.source import Source
from dpcalc.references import SHORT, entries, proof_of
from dpcalc.render.numbers import SIX, Digits, equation
from dpcalc.render.words.audit import refuted
from dpcalc.render.words.comparison import derivation
from dpcalc.report import Case, Report, Result
from dpcalc.theorems.record import Theorem, all_bounds, lookup

GIVES = {
    "mu": "mu (Gaussian DP)",
    "rdp": "RDP at an order",
    "log_delta": "delta at epsilon",
    "epsilon": "epsilon at delta",
    "parts": "epsilon and delta, composed by the law of the privacy loss",
    "cost": "excess risk at a budget",
}
"""What a bound's function returns, in words."""

_SENSITIVITY = "sensitivity"
_TIMES_LIPSCHITZ = {"replace-one": "2 lipschitz", "null-record": "lipschitz"}


def render_explain(report: Report, digits: Digits = SIX) -> str:
    """Return each case's best result explained, with the numbers of its run."""
    texts = [explain_result(r, case, digits) for case in report.cases for r in case.results if r.best]
    return "\n\n".join(dict.fromkeys(texts)) + "\n"


def explain_bounds(report: Report, ids: Sequence[str], digits: Digits = SIX) -> str:
    """Return what these bounds say of each case, with the numbers of its run.

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
    """Return the BibTeX of what the best results rest on."""
    return bibtex([lookup(r.bound) for case in report.cases for r in case.results if r.best])


def bibtex(bounds: list[Theorem]) -> str:
    """Return the BibTeX entries of the bounds, each once."""
    return bibtex_of([bound.reference for bound in bounds])


def cited(ids: Sequence[str]) -> str:
    """Return the BibTeX of bounds and of sources, by their ids and keys; of all sources where none is given.

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
    """Return everything the record says of the result's bound, with this run's numbers in it."""
    bound = lookup(result.bound)
    relation = {Kind.LOWER: ">=", Kind.HEURISTIC: "about"}.get(result.kind, "<=")
    answer = f"{result.quantity} {relation} {digits.value(result)}"
    derived = derivation(result, digits)
    names = [name for name in (*bound.parameters, "epsilon", "delta") if name in case.inputs]
    refutation = refuted(case)
    lines = [
        *([refutation, ""] if refutation else []),
        *_head(bound),
        "",
        f"formula    {bound.formula}",
        *[f"{'with' if place == 0 else '':10} {_number_of(case, name)}" for place, name in enumerate(names)],
        f"gives      {answer}" + (f"   ({derived})" if derived else ""),
        *_source(bound),
        "",
        "assumes    [x] checked against the numbers given   [ ] yours to keep",
        *(f"  [x] {requirement.text}" for requirement in bound.conditions),
        *(f"  [ ] {text}" for text in bound.assumes),
        *(
            f"  [{' ' if result.kind == Kind.CONDITIONAL else 'x'}] {demand.text} (promised)"
            for demand in bound.promises
        ),
        *_remarks(bound),
        "",
        bibtex([bound]).rstrip(),
    ]
    return "\n".join(lines)


def _number_of(case: Case, name: str) -> str:
    value, source = case.inputs[name]
    mark = f" ({source})" if source in (Source.DEFAULT, Source.WORST_CASE, Source.DERIVED) else ""
    if name == _SENSITIVITY:
        adjacency = str(case.inputs.get("adjacency", ("", ""))[0])
        mark = f" ({_TIMES_LIPSCHITZ.get(adjacency, 'derived')})"
    return f"{equation(name, value)}{mark}"


def describe(bound: Theorem) -> str:
    """Return everything the record says of a bound, as plain text."""
    needed = [name for name in bound.parameters if name not in bound.optional]
    optional = [name for name in bound.parameters if name in bound.optional]
    lines = [
        *_head(bound),
        "",
        f"formula    {bound.formula}",
        f"gives      {GIVES[bound.notion]}",
        *_source(bound),
        f"needs      {', '.join(needed)}",
        *([f"if known   {', '.join(optional)}"] if optional else []),
        *([f"slack      {bound.slack}"] if bound.slack else []),
        *([f"--certify  {bound.certifying}"] if bound.guarantee else []),
        "",
        "assumes",
        *(f"  - {text}" for text in bound.assumes),
        *(f"  - {requirement.text} (checked)" for requirement in bound.conditions),
        *(f"  - {demand.text} (to be promised)" for demand in bound.promises),
        *_remarks(bound),
    ]
    return "\n".join(lines)


def _head(bound: Theorem) -> list[str]:
    return [f"{bound.id}: {bound.title}", "", textwrap.fill(bound.statement, 100)]


def _source(bound: Theorem) -> list[str]:
    return [
        f"kind       {bound.kind}" + ("" if bound.guarantee else " (for comparison: never a guarantee)"),
        f"source     {bound.reference}: {bound.locator}   (`dpcalc cite {bound.id}`)",
        f"proof      `dpcalc help method#{proof_of(bound.id)}`",
        f"algorithm  {', '.join(bound.algorithms)}",
    ]


def _remarks(bound: Theorem) -> list[str]:
    remarks = (("erratum", bound.erratum), ("note", bound.caution))
    return [line for title, text in remarks if text for line in ("", textwrap.fill(f"{title}: {text}", 100))]
