"""A case as a page shows it: the answer, why it holds, its pictures, its inputs and its bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.model.quantities import ATTACKS, Kind, Quantity
from dpcalc.model.source import Source
from dpcalc.notes import Referenced
from dpcalc.references import SHORT, proof_of
from dpcalc.render.asked import Asked
from dpcalc.render.check.verdicts import (
    circumstances,
    findings,
    gate_limit,
    gate_rows,
    place,
)
from dpcalc.render.notes import sentences_about
from dpcalc.render.numbers import Digits, Side, number, symbol_of
from dpcalc.render.page import charts
from dpcalc.render.page.names import name_of, typed, why_not
from dpcalc.render.page.outcome import case_style, case_word
from dpcalc.render.words import training
from dpcalc.render.words.audit import audit_facts
from dpcalc.render.words.comparison import derivation, is_cost
from dpcalc.render.words.ledger import entry_rows, ledger_lines
from dpcalc.render.words.meaning import meaning
from dpcalc.render.words.promise import promise
from dpcalc.render.words.risk import risk_lines, risk_rows
from dpcalc.render.words.sentences import (
    certified_lines,
    cost_sentences,
    headline,
    in_other_words,
    is_fact,
    released,
    tightness_text,
)
from dpcalc.report import Case, Report, Result, Status
from dpcalc.theorems.record import lookup

FEW = 2
"""So many cases at most are shown unfolded."""

Table = tuple[tuple[str, ...], ...]
"""A head and rows."""


class Given(NamedTuple):
    """An input: its name, its value, and where it comes from."""

    name: str
    value: str
    source: str


class Figure(NamedTuple):
    """A picture, what it is called, and what stands below it."""

    title: str
    drawn: str
    caption: str


class Grounds(NamedTuple):
    """Why an answer holds: what dpcalc checked, what the author of the run promises, the theorem, the sources."""

    tools: tuple[str, ...]
    author: tuple[str, ...]
    theorem: str
    sources: tuple[str, ...]


class Shown(NamedTuple):
    """A case as it is shown; what is empty is left out.

    ``shared`` is the number of its grounds among those of the page, 0 where it has its own.
    """

    number: int
    name: str
    place: str
    style: str
    word: str
    open: bool
    warning: str
    headlines: tuple[str, ...]
    meaning: str
    promise: str
    released: str
    findings: tuple[str, ...]
    about: str
    grounds: Grounds
    shared: int
    bracket: str
    tightness: str
    figures: tuple[Figure, ...]
    risk: Table
    risk_lines: tuple[str, ...]
    entries: Table
    entry_lines: tuple[str, ...]
    metrics: Table
    inputs: tuple[Given, ...]
    proofs: tuple[str, ...]
    bounds: Table
    notes: tuple[str, ...]
    command: str


def shown_case(report: Report, case: Case, number_of: int, asked: Asked, *, drawn: bool) -> Shown:
    """Return what is shown of a case; pictures and all bounds only where it is ``drawn``."""
    best, digits = case.best, asked.digits
    style, warned = case_style(case), training.warning(case)
    pictured = drawn and not warned  # the pictures say what holds, with no word on the noise
    told = _with_usual_risks(case)
    known = told._replace(tightness=case.tightness or (case.curves.tightness if case.curves else None))
    return Shown(
        number=number_of,
        name=name_of(report, case, number_of),
        place=place(case.check) if case.check else "",
        style=style,
        word=case_word(case),
        open=len(report.cases) <= FEW or style == "bad",
        warning=warned,
        headlines=headlines(case, digits),
        meaning=meaning(case) if len(report.cases) > 1 and not warned else "",
        promise=promise(case),
        released=released(case) if best else "",
        findings=reasons(case, digits),
        about=circumstances(case.check, case, digits) if case.check else "",
        grounds=Grounds(*_assumptions(case), _theorem(case), _sources(case)),
        shared=0,
        bracket=_bracket(known, number_of, digits) if pictured else "",
        tightness="" if warned else tightness_text(known, digits),
        figures=tuple(_figures(case, number_of, digits)) if pictured else (),
        risk=tuple(risk_rows(told, digits)),
        risk_lines=tuple(risk_lines(told, digits)),
        entries=tuple(entry_rows(case, digits)),
        entry_lines=tuple(ledger_lines(case, digits)) if case.ledger else (),
        metrics=tuple(training.metric_rows(case, digits)) if case.training else (),
        inputs=tuple(_inputs(case)),
        proofs=tuple(certified_lines(case)),
        bounds=_bounds(case, digits) if drawn else (),
        notes=(*(f"{label}: {text}" for label, text in audit_facts(case, digits)), *_notes(report, case)),
        command=_command(case),
    )


def _with_usual_risks(case: Case) -> Case:
    """Return the case with what an attacker can do: at the usual rates, and at those that were asked about."""
    usual = case.curves.risk if case.curves else None
    if not usual or not case.risk:
        return case._replace(risk=case.risk or usual)
    merged = {**case.risk, **usual}
    for name, at in ATTACKS.items():
        if at:
            rows = {row[at]: row for row in (*usual[name], *case.risk[name])}
            merged[name] = [rows[key] for key in sorted(rows)]
    return case._replace(risk=merged)


def headlines(case: Case, digits: Digits) -> tuple[str, ...]:
    """Return the answers of a case, a line each."""
    if is_cost(case):
        lines = [f"{'; '.join(cost_sentences(r, digits))} ({r.bound})" for r in case.results if r.best]
    else:
        lines = headline(case, digits)
    unmet = "Not of this model, only with noise that nobody can draw again: " if training.warning(case) else ""
    if case.forgetting:
        unmet = "Of what was forgotten: "
    return tuple(f"{unmet}{line}".replace("<=", "\u2264").replace(">=", "\u2265") for line in lines)


def reasons(case: Case, digits: Digits) -> tuple[str, ...]:
    """Return why a case did not pass."""
    if case.check is not None:
        return tuple(findings(case.check, case, digits)) if case.check.status != Status.PASSED else ()
    failed = [row for row in gate_rows(case, digits) if row.status != Status.PASSED]
    lines = [f"{row.quantity} {row.limit} failed: value {row.value}, slack {row.slack}" for row in failed]
    return (*lines, *(() if case.best else (why_not(case),)))


def _assumptions(case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what dpcalc checked of the best answers, and what the author of the run has to keep."""
    tools: list[str] = []
    author: list[str] = []
    for result in case.results:
        if not result.best:
            continue
        author += result.assumes
        try:
            bound = lookup(result.bound)
        except SpecError:
            continue
        tools += [each.text for each in bound.conditions]
        if result.kind != Kind.CONDITIONAL:
            author += [f"{each.text} (the run says so)" for each in bound.promises]
    return tuple(dict.fromkeys(tools)), tuple(dict.fromkeys(author))


def _theorem(case: Case) -> str:
    """Return the theorem behind the best answer, and where its proof is."""
    if case.best is None:
        return ""
    proof = proof_of(case.best.bound)
    where = f"; the proof: dpcalc help method#{proof}" if proof else ""
    return f"{case.best.reference} ({case.best.bound}){where}"


def _bracket(case: Case, number_of: int, digits: Digits) -> str:
    if case.best is None:
        return ""
    limits = [limit for gate in case.assertions if (limit := gate_limit(gate, case.best.quantity)) is not None]
    shown = charts.bracket_of(case.best, case.tightness, limits, digits)
    return charts.bracket(f"bracket-{number_of}", shown) if shown else ""


def _figures(case: Case, number_of: int, digits: Digits) -> Iterable[Figure]:
    if case.curves is None or case.best is None:
        return
    profile = charts.profile(f"profile-{number_of}", case.curves, case.best, digits)
    if profile:
        floor = f" {charts.dashed(case.curves.tightness)}" if case.curves.floor else ""
        yield Figure(
            "Delta at every epsilon", profile, f"The line is guaranteed: the truth lies on it or below.{floor}"
        )
    attacks = charts.trade_off(f"attacks-{number_of}", case.curves)
    if attacks:
        yield Figure(
            "What any attack can find out",
            attacks,
            "No attack lies above the line, whatever it does. The dashed line is guessing blindly.",
        )


_SOURCES = {
    Source.FLAG: "given on the command line",
    Source.ARGUMENT: "given",
    Source.FILE: "read from a file",
    Source.LOSS: "follows from the loss",
    Source.DATA: "follows from the shape of the data",
    Source.DEFAULT: "default",
    Source.WORST_CASE: "worst case",
    Source.DERIVED: "follow from these",
}


def _inputs(case: Case) -> Iterable[Given]:
    """Yield the inputs, what was given first, each with where it comes from."""
    origins = {note.parameter: note.origin for note in case.note_data if isinstance(note, Referenced)}
    order = list(_SOURCES)
    inputs = sorted(case.inputs.items(), key=lambda each: order.index(each[1][1]) if each[1][1] in order else 0)
    derived = [f"{symbol_of(n)} = {number(v, side=Side.NEAREST)}" for n, (v, s) in inputs if not is_fact(n, s)]
    for name, (value, source) in inputs:
        if not is_fact(name, source):
            continue
        said = _SOURCES.get(source, str(source))
        if name in origins:
            said = f"read from {origins[name]}"
        elif case.check is not None and source == Source.ARGUMENT:
            said = "written in the recipe"
        side = Side.NEAREST if source == Source.LOSS else Side.AS_GIVEN
        yield Given(symbol_of(name), f"{number(value, side=side)}{in_other_words(case, name)}", said)
    if derived:
        yield Given("others", ", ".join(derived), _SOURCES[Source.DERIVED])


def _bounds(case: Case, digits: Digits) -> Table:
    """Return every bound that answered, where there are several."""
    if len(case.results) < 2 or is_cost(case):
        return ()
    body = [
        ("best" if r.best else "", r.bound, _value(r, digits), str(r.kind), derivation(r, digits)) for r in case.results
    ]
    return (("", "bound", "value", "kind", "how"), *body)


def _value(result: Result, digits: Digits) -> str:
    order = f" (order {digits.number(result.order or 0.0, Side.DOWN)})" if result.quantity == Quantity.RDP else ""
    return digits.value(result) + order


def _sources(case: Case) -> tuple[str, ...]:
    """Return what the best answers rest on, as a bibliography has it."""
    found = []
    for result in case.results:
        if result.best:
            try:
                if lookup(result.bound).reference == "dpcalc":
                    continue
                found.append(citation(lookup(result.bound).reference))
            except SpecError:  # of a ledger or a conversion: the theorem stands above
                continue
    return tuple(dict.fromkeys(found))


def citation(key: str) -> str:
    """Return a source in a line.

    >>> citation("mironov2017")
    'Mironov 2017. Renyi Differential Privacy. IEEE Computer Security Foundations Symposium (CSF).'
    """
    from dpcalc.references import entries

    entry = entries().get(key, "")
    fields = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*?)\},?\s*$", entry, flags=re.MULTILINE))
    where = fields.get("booktitle") or fields.get("journal") or fields.get("howpublished") or ""
    parts = (SHORT.get(key, key), fields.get("title", ""), where)
    return ". ".join(re.sub(r"[{}]|\\[\"'`^]", "", part) for part in parts if part) + "."


def _notes(report: Report, case: Case) -> Iterable[str]:
    """Yield the warnings and the notes, but for where inputs were read, which stands beside them."""
    yield from (f"warning: {text}" for text in case.warnings)
    told = set(sentences_about(report.command, case, (Referenced,)))
    yield from (note for note in case.notes if note not in told)


def _command(case: Case) -> str:
    """Return what asks a recipe's case again."""
    if case.check is None or not case.check.name:
        return ""
    return typed(("check", case.check.file, "--run", f"^{re.escape(case.check.name)}$"))
