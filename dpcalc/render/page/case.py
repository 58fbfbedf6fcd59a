"""A case as a page shows it: the answer, why it holds, its figures, its inputs and its bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dpcalc.checked import Status
from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import ATTACKS, Kind
from dpcalc.notes import Referenced
from dpcalc.references import SHORT, proof_of
from dpcalc.render.blocks import Paragraph, Style, Table
from dpcalc.render.check.verdicts import Judged, place
from dpcalc.render.layout import Row
from dpcalc.render.notes import without_places
from dpcalc.render.numbers import Digits, Side, number, symbol_of
from dpcalc.render.page.figures import MISSING, Figure, bracket, can_draw, figures, name_of, typed, why_not
from dpcalc.render.page.verdict import Outcome, case_outcome, case_word
from dpcalc.render.words import risk
from dpcalc.render.words.brief import COLUMNS, entry_rows, is_cost, ledger_lines, rows
from dpcalc.render.words.risk import audit_facts, meaning, risk_lines, risk_rows
from dpcalc.render.words.sentences import (
    certified_lines,
    cost_sentences,
    headline,
    in_other_words,
    is_fact,
    promise,
    released,
    tightness_text,
)
from dpcalc.report import Case, Report
from dpcalc.theorems.record import Theorem, lookup

FEW = 2
"""The most cases that are shown unfolded."""

INPUTS = ("input", "value", "source")
"""The columns of the table of inputs."""


class Grounds(NamedTuple):
    """Why an answer holds: what dpcalc checked, what the run's author promises, the theorem, the sources."""

    tools: tuple[str, ...]
    author: tuple[str, ...]
    theorem: str
    sources: tuple[str, ...]


class Section(NamedTuple):
    """A heading and the blocks below it; a list's style is the class of its items."""

    title: str
    blocks: Sequence[Paragraph | Table] = ()
    figures: Sequence[Figure] = ()
    grounds: Grounds | None = None
    style: str = ""


class Evidence:
    """A case as shown. ``shared`` is the number of its grounds among those of the page; 0 if it has its own.

    ``common`` are the inputs that the page shows once for all cases. Cases that are ``drawn`` have figures and all
    bounds.
    """

    shared = 0
    common: frozenset[Row] = frozenset()

    def __init__(self, report: Report, number: int, digits: Digits, *, drawn: bool) -> None:
        """Take the place of the case in the report, from 1 on."""
        self.report, self.number, self.digits, self.drawn = report, number, digits, drawn
        self.case = case = report.cases[number - 1]
        self.name = name_of(report, case, number)
        self.place = place(case.check) if case.check else ""
        self.outcome, self.word, self.warning = case_outcome(case), case_word(case), risk.warning(case)
        self.open = len(report.cases) <= FEW or self.outcome == Outcome.BAD
        self.headlines = headlines(case, digits)
        self.grounds = Grounds(*_assumptions(case), _theorem(case), _sources(case))
        self.inputs = tuple(_inputs(case))

    def sections(self) -> Iterator[Section]:
        """Yield the sections below the name; empty ones are omitted."""
        hypothetical = ", with noise that nobody can draw again" if self.warning else ""
        case, digits, risks = self.case, self.digits, _with_usual_risks(self.case)
        if why := reasons(case, digits):
            yield Section("Why it did not pass", [Paragraph(facts=why)], style="alert")
        if self.headlines:
            title = "What would hold with noise that nobody can draw again" if self.warning else "What holds"
            yield Section(title, _texts(*self._answer()))
        if self.shared or self.grounds.author or self.grounds.tools:
            yield Section("What has to be true", grounds=self.grounds)
        if not self.warning:  # these sections state guarantees without mentioning the noise
            yield Section("How tight it is", *self._tightness())
        yield Section(
            f"What an attacker can do{hypothetical}", _listed(risk_rows(risks, digits), risk_lines(risks, digits))
        )
        yield Section("What it is made of", _listed(entry_rows(case, digits), ledger_lines(case, digits)))
        measured = risk.metric_rows(case, digits)
        yield Section("What was measured without noise (not covered by the guarantee)", _listed(measured))
        yield Section("What was put in", _listed(self._inputs()))
        yield Section("What was proved", _listed((), certified_lines(case)), style="proof")
        yield Section("Every bound that answered", _listed(self._bounds()))
        yield Section("Notes", _listed((), list(self._notes())))
        if not self.shared and self.grounds.theorem:
            yield Section("Why it is true", [Paragraph(self.grounds.theorem), *_listed((), self.grounds.sources)])
        if case.check is not None:
            yield Section("", _texts(Paragraph(Judged(case, digits).circumstances, style=Style.QUIET)))

    @property
    def command(self) -> str:
        """The command that checks a recipe's case again."""
        check = self.case.check
        return typed(("check", check.file, "--run", f"^{re.escape(check.name)}$")) if check and check.name else ""

    def _answer(self) -> Iterator[Paragraph]:
        case = self.case
        yield from (Paragraph(line, style=Style.ANSWER) for line in self.headlines)
        if len(self.report.cases) > 1:
            yield Paragraph(meaning(case))
        yield from (Paragraph(promise(case)), Paragraph(released(case) if case.best else "", style=Style.QUIET))

    def _tightness(self) -> tuple[list[Paragraph], list[Figure]]:
        """Return how tight the answer is, in words and figures."""
        case = self.case
        whole = case._replace(tightness=case.tightness or (case.curves.tightness if case.curves else None))
        words = bracket(whole, self.digits) if self.drawn else ""
        texts = _texts(Paragraph(words), Paragraph(tightness_text(whole, self.digits), style=Style.QUIET))
        drawn = list(figures(case, self.digits)) if self.drawn else []
        if drawn and not can_draw():
            return [*texts, Paragraph(MISSING, style=Style.QUIET)], []
        return texts, drawn

    def _inputs(self) -> list[Row]:
        own = [row for row in self.inputs if row not in self.common]
        return [INPUTS, *own] if own else []

    def _bounds(self) -> list[Row]:
        """Return every bound that answered, if there are several."""
        case = self.case
        if not self.drawn or len(case.results) < 2 or is_cost(case):
            return []
        return [COLUMNS[:-1], *(("best" if row[0] else "", *row[1:-1]) for row in rows(case, self.digits))]

    def _notes(self) -> Iterator[str]:
        """Yield the warnings and the notes, except the places of inputs, which the table of inputs has."""
        case = self.case
        yield from (f"{label}: {text}" for label, text in audit_facts(case, self.digits))
        yield from (f"warning: {text}" for text in case.warnings)
        yield from without_places(self.report.command, case)


def _texts(*paragraphs: Paragraph) -> list[Paragraph]:
    """Return the paragraphs that have text."""
    return [paragraph for paragraph in paragraphs if paragraph.text]


def _listed(rows: Sequence[Row], lines: Sequence[str] = ()) -> list[Paragraph | Table]:
    """Return a table and the list of lines below it, each only if not empty."""
    return [*([Table(rows)] if rows else []), *([Paragraph(facts=tuple(lines))] if lines else [])]


def _with_usual_risks(case: Case) -> Case:
    """Return the case with what an attacker can do, at the usual rates and at those of the question."""
    usual = case.curves.risk if case.curves else None
    if not usual or not case.risk:
        return case._replace(risk=case.risk or usual)
    merged = {**case.risk, **usual}
    for name, at in ATTACKS.items():
        if at:
            by_rate = {row[at]: row for row in (*usual[name], *case.risk[name])}
            merged[name] = [by_rate[key] for key in sorted(by_rate)]
    return case._replace(risk=merged)


def headlines(case: Case, digits: Digits) -> tuple[str, ...]:
    """Return the answers of a case, a line each."""
    lines = headline(case, digits)
    if is_cost(case):
        lines = [f"{'; '.join(cost_sentences(r, digits))} ({r.bound})" for r in case.answers]
    of_what = "Of what was forgotten: " if case.forgetting else ""
    return tuple(f"{of_what}{line}".replace("<=", "\u2264").replace(">=", "\u2265") for line in lines)


def reasons(case: Case, digits: Digits) -> tuple[str, ...]:
    """Return why a case did not pass."""
    verdict = Judged(case, digits)
    if case.check is not None:
        return tuple(verdict.findings) if case.check.status != Status.PASSED else ()
    failed = [row for row in verdict.gate_rows if row.status != Status.PASSED]
    lines = [f"{row.quantity} {row.limit} failed: value {row.value}, slack {row.slack}" for row in failed]
    return (*lines, *(() if case.best else (why_not(case),)))


def _records(case: Case) -> Iterator[Theorem]:
    """Yield the theorems behind the best answers; those of a ledger or a conversion have no record."""
    for result in case.results:
        try:
            if result.best:
                yield lookup(result.bound)
        except SpecError:
            continue


def _assumptions(case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what dpcalc checked for the best answers, and what the author of the run must ensure."""
    tools = [condition.text for bound in _records(case) for condition in bound.conditions]
    author: list[str] = []
    for result in case.results:
        if result.best:
            author += result.assumes
            if result.kind != Kind.CONDITIONAL:
                alone = case._replace(results=(result,))
                author += [f"{p.text} (the run says so)" for bound in _records(alone) for p in bound.promises]
    return tuple(dict.fromkeys(tools)), tuple(dict.fromkeys(author))


def _theorem(case: Case) -> str:
    """Return the theorem behind the best answer, and where its proof is."""
    if case.best is None:
        return ""
    proof = proof_of(case.best.bound)
    where = f"; the proof: dpcalc help method#{proof}" if proof else ""
    return f"{case.best.reference} ({case.best.bound}){where}"


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


def _inputs(case: Case) -> Iterable[Row]:
    """Yield the inputs, given ones first, each with its value and source."""
    origins = {note.parameter: note.origin for note in case.note_data if isinstance(note, Referenced)}
    order = list(_SOURCES)
    inputs = sorted(case.inputs.items(), key=lambda item: order.index(item[1][1]) if item[1][1] in order else 0)
    derived = [f"{symbol_of(n)} = {number(v, side=Side.NEAREST)}" for n, (v, s) in inputs if not is_fact(n, s)]
    for name, (value, source) in inputs:
        if not is_fact(name, source):
            continue
        origin = _SOURCES.get(source, str(source))
        if name in origins:
            origin = f"read from {origins[name]}"
        elif case.check is not None and source == Source.ARGUMENT:
            origin = "written in the recipe"
        side = Side.NEAREST if source == Source.LOSS else Side.AS_GIVEN
        yield symbol_of(name), f"{number(value, side=side)}{in_other_words(case, name)}", origin
    if derived:
        yield "others", ", ".join(derived), _SOURCES[Source.DERIVED]


_OWN = "dpcalc"
"""The reference of results proved here."""


def _sources(case: Case) -> tuple[str, ...]:
    """Return the sources of the best answers, as in a bibliography."""
    keys = dict.fromkeys(bound.reference for bound in _records(case) if bound.reference != _OWN)
    return tuple(dict.fromkeys(map(citation, keys)))


def citation(key: str) -> str:
    """Return a source in a line.

    >>> citation("mironov2017")
    'Mironov 2017. Renyi Differential Privacy. IEEE Computer Security Foundations Symposium (CSF).'
    """
    from dpcalc.references import entries

    fields = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*?)\},?\s*$", entries().get(key, ""), flags=re.MULTILINE))
    where = fields.get("booktitle") or fields.get("journal") or fields.get("howpublished") or ""
    parts = (SHORT.get(key, key), fields.get("title", ""), where)
    return ". ".join(re.sub(r"[{}]|\\[\"'`^]", "", part) for part in parts if part) + "."
