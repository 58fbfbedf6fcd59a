"""A report as a tree of blocks: in full, on one screen, or for a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dpcalc.model.quantities import RISKS
from dpcalc.notes import (
    AccountantPrints,
    BetterThanPublished,
    CostOfTries,
    HidingPays,
    NotCovered,
    Note,
    NoTestRecords,
    OtherAdjacencies,
    OtherIndex,
    Rounded,
    TunedNoise,
    UnreadableCells,
)
from dpcalc.render.blocks import COLUMNS, GAP, LABEL, STAYS, Block, Paragraph, Style, Table, aligned, fitted
from dpcalc.render.layout import counted
from dpcalc.render.notes import improvement_sentences, sentences_about
from dpcalc.render.numbers import Digits
from dpcalc.render.several import common_inputs, common_lines, ranked, summary, summary_counts, summary_notes
from dpcalc.render.words import risk
from dpcalc.render.words.comparison import assumption_lines, columns, derivation, is_cost, obstacle_rows, rows
from dpcalc.render.words.ledger import entry_rows, ledger_lines
from dpcalc.render.words.promise import promise, promise_of_others
from dpcalc.render.words.risk import audit_facts, meaning, risk_lines, risk_rows
from dpcalc.render.words.sentences import (
    DEFAULT,
    DERIVED,
    GIVEN,
    budget_kept,
    certified_lines,
    cost_sentences,
    headline,
    inputs_by_group,
    inputs_lines,
    released,
    shift_lines,
    tightness_text,
)
from dpcalc.report import Assertion, Case, Report, Result

_BEST = 3
"""How many bounds are shown on one screen."""

_GROUNDS = 2
"""Of how many best bounds of a sweep the assumptions are shown on one screen."""

_RANKS_OF_INPUTS = {DEFAULT: 8, DERIVED: 10}

_RANKS: dict[type[Note], int] = {
    OtherIndex: 7, OtherAdjacencies: 7, AccountantPrints: 9, HidingPays: 11, TunedNoise: 11, BetterThanPublished: 12,
    UnreadableCells: 9, NotCovered: 13, NoTestRecords: 9, Rounded: 13, CostOfTries: 9,
}  # fmt: skip
"""Notes that may be left out. Those of other kinds are part of the answer, and stay."""


def document(report: Report, digits: Digits, *, brief: bool = False) -> Iterable[Block]:
    """Return the blocks of a report: of one case, or of several in a table; ``brief`` is on one screen."""
    if len(report.cases) != 1:
        several = Several(report, digits)
        return several.brief() if brief else several.full()
    one = One(report.command, report.cases[0], digits)
    return one.brief() if brief and one.case.best else one.full()


def page_document(report: Report, digits: Digits) -> Iterable[Block]:
    """Return the blocks of a report that a Markdown page shows."""
    if len(report.cases) == 1:
        return One(report.command, report.cases[0], digits).page()
    return Several(report, digits).full()


class One:
    """What is said of a single case."""

    def __init__(self, command: str, case: Case, digits: Digits) -> None:
        """Take the command that asked for the case, the case, and how numbers are written."""
        self.command, self.case, self.digits = command, case, digits

    def full(self) -> Iterator[Block]:
        """Yield everything, in the order of a reader who checks it."""
        case = self.case
        yield Paragraph(released(case))
        yield from (Paragraph(line, style=Style.QUIET) for line in inputs_lines(case))
        yield GAP
        yield from self._headlines()
        yield from (GAP, Paragraph(promise(case)))
        if text := meaning(case):
            yield Paragraph(text)
        yield from self._measured_in_full()
        yield GAP
        yield self._table()
        yield GAP
        yield from map(Paragraph, (*assumption_lines(case), "", *shift_lines(case), *certified_lines(case)))
        if text := tightness_text(case, self.digits):
            yield Paragraph(f"tightness: {text}")
        yield from (Paragraph(f"note: {note}") for note in case.notes)
        yield from map(_gate, case.assertions)
        if case.obstacles:
            yield from (GAP, Table(obstacle_rows(case), [Style.QUIET] * len(case.obstacles)))

    def page(self) -> Iterator[Block]:
        """Yield what a Markdown page shows."""
        case = self.case
        yield from self._headlines()
        yield from (GAP, Paragraph(released(case)), Paragraph("; ".join(inputs_lines(case)), style=Style.QUIET))
        yield from self._measured_in_full()
        yield self._table()
        yield from map(Paragraph, assumption_lines(case))
        yield GAP
        for gate in case.assertions:
            mark = "pass" if gate.passed else "**FAIL**"
            yield Paragraph(f"- {mark}: `{gate.text}` (slack {gate.slack})", row=True)
        yield from (Paragraph(line, item=True) for line in certified_lines(case))
        yield from (Paragraph(f"warning: {text}", item=True) for text in case.warnings)
        yield from (Paragraph(f"note: {note}", item=True) for note in case.notes)

    def brief(self) -> Iterator[Block]:
        """Yield the answer on one screen: what it means, what is assumed, the best bounds, what would help."""
        kept = fitted(self._by_rank())
        if kept[-1] == GAP:  # nothing stands below it
            del kept[-1]
        yield from kept
        yield Paragraph(self._left_out(kept), style=Style.QUIET)

    def _by_rank(self) -> Iterator[Block]:
        """Yield all that may be shown on one screen, in the order of a reader's questions."""
        case = self.case
        yield from self._costs() if is_cost(case) else self._answer()
        yield from self._warning()
        yield from (GAP, Paragraph(released(case), rank=2))
        ranks = {**_RANKS_OF_INPUTS, GIVEN: 3 if is_cost(case) else STAYS}
        yield from (Paragraph(text, label, Style.QUIET, ranks[label]) for label, text in inputs_by_group(case))
        for section in self._measured():
            yield from section
        if not is_cost(case):
            if case.best and case.best.assumes:
                yield Paragraph("; ".join(case.best.assumes), "assumes")
            yield from self._bounds()
        yield from map(Paragraph, certified_lines(case))
        yield from (Paragraph(line, rank=4) for line in shift_lines(case))
        yield from self._notes()
        yield from map(_gate, case.assertions)

    def _headlines(self) -> Iterator[Block]:
        """Yield the best results."""
        yield from (Paragraph(line, style=Style.ANSWER) for line in headline(self.case, self.digits))

    def _answer(self) -> Iterator[Block]:
        """Yield the best results, and what they mean."""
        yield from self._headlines()
        if text := meaning(self.case) or promise_of_others(self.case):
            yield Paragraph(text)

    def _costs(self) -> Iterator[Block]:
        """Yield of each kind of risk the best bound, the run that has it, what it assumes, and the next ones."""
        for quantity in RISKS:
            of_kind = [result for result in self.case.results if result.quantity == quantity]
            for best in [result for result in of_kind if result.best][:1]:
                cost, run = cost_sentences(best, self.digits)
                yield Paragraph(cost, style=Style.ANSWER)
                yield Paragraph(f"{run}; {budget_kept(best)}", "run")
                yield Paragraph(f"{'; '.join(best.assumes)} ({best.bound})", "assumes")
                others = [result for result in of_kind if result.guarantee and result is not best][: _BEST - 1]
                if others:
                    yield Paragraph(", ".join(map(self._other_cost, others)), "next", rank=4)

    def _other_cost(self, result: Result) -> str:
        algorithms = "/".join((result.details or {}).get("algorithms", ()))
        return f"{self.digits.value(result)} ({algorithms + ', ' if algorithms else ''}{result.bound})"

    def _warning(self) -> list[Block]:
        """Return why the result is not private, where it is not."""
        warning = risk.warning(self.case)
        return [Paragraph(warning, style=Style.BAD)] if warning else []

    def _measured(self) -> Iterator[list[Block]]:
        """Yield what a run came to that was carried out, a ledger's entries, what attackers can do, and an audit."""
        case, digits = self.case, self.digits
        if case.training:
            lines = [Paragraph(line, counted=False) for line in risk.training_lines(case, digits)]
            yield [*lines, GAP._replace(counted=False), *_tables(risk.metric_rows(case, digits), counted=False)]
        yield [*_tables(entry_rows(case, digits)), *map(Paragraph, ledger_lines(case, digits))]
        yield [*_tables(risk_rows(case, digits)), *map(Paragraph, risk_lines(case, digits))]
        yield [Paragraph(text, label) for label, text in audit_facts(case, digits)]

    def _measured_in_full(self) -> Iterator[Block]:
        """Yield the same, each part after a gap."""
        if self.case.training:
            yield from (GAP, *self._warning())
        for place, section in enumerate(self._measured()):
            if section and (place or not self.case.training):
                yield GAP
            yield from (block.in_line() for block in section)

    def _table(self) -> Table:
        """Return the table of every bound that answered."""
        results = self.case.results
        styles = [Style.STRONG if r.best else Style.TEXT if r.guarantee else Style.QUIET for r in results]
        return Table([columns(self.case), *rows(self.case, self.digits)], styles)

    def _best(self) -> list[Result]:
        """Return the best bounds; where several orders are asked, the best of each."""
        guarantees = [result for result in self.case.results if result.guarantee or result.best]
        best = [result for result in guarantees if result.best]
        return best if len(best) > 1 else guarantees[:_BEST]

    def _bounds(self) -> Iterator[Block]:
        """Yield the best bounds as a table, and what none can beat."""
        best, digits = self._best(), self.digits
        lines = aligned([("*" if r.best else " ", r.bound, digits.value(r)) for r in best])
        derived = [f"{line}  {derivation(r, digits)}" for line, r in zip(lines, best, strict=True)]
        lines = derived if all(len(line) <= COLUMNS - LABEL for line in derived) else lines
        for place, (line, result) in enumerate(zip(lines, best, strict=True)):
            label = ("" if place else "bounds:").ljust(LABEL)
            style = Style.STRONG if result.best else Style.TEXT
            yield Paragraph((label + line).rstrip(), style=style, rank=(STAYS, 3, 6)[min(place, 2)], row=True)
        if text := tightness_text(self.case, digits):
            yield Paragraph(text, "limit", rank=5)

    def _notes(self) -> Iterator[Block]:
        """Yield what would better the answer, and the other notes."""
        command, case = self.command, self.case
        improvements = list(improvement_sentences(command, case))
        yield from (Paragraph(sentence, "better", rank=1) for sentence in improvements)
        ranks = {text: rank for kind, rank in _RANKS.items() for text in sentences_about(command, case, (kind,))}
        yield from (
            Paragraph(note, "note", rank=ranks.get(note, STAYS)) for note in case.notes if note not in improvements
        )

    def _left_out(self, kept: Sequence[Block]) -> str:
        """Return what ``-v`` adds."""
        case, texts = self.case, {block.text for block in kept if isinstance(block, Paragraph)}
        bounds = 0 if is_cost(case) else sum(result not in self._best() for result in case.results)
        parts = (
            (bounds, "more bound, with what each assumes", "more bounds, with what each assumes"),
            (len(case.obstacles), "bound that does not apply and why", "bounds that do not apply and why"),
            (sum(note not in texts for note in case.notes), "more note", "more notes"),
        )
        return ", ".join(["-v adds the sources", *(counted(*part) for part in parts if part[0])])


class Several:
    """What is said of several cases: a ranking where they are of several algorithms, else one row a case."""

    def __init__(self, report: Report, digits: Digits) -> None:
        """Take the report, and how numbers are written."""
        self.report, self.digits = report, digits

    def full(self) -> Iterator[Block]:
        """Yield the table, and the grounds and notes of every case."""
        report = self.report
        yield Paragraph("; ".join(common_lines(report)), style=Style.QUIET)
        yield from (GAP, self._table(), GAP)
        blocks = [
            *(
                Paragraph(f"by {best.reference} ({best.bound}), assuming:", item=True, facts=best.assumes)
                for case in report.cases
                if (best := case.best)
            ),
            *(Paragraph(f"note: {note}", item=True) for note in summary_notes(report)),
            *(Paragraph(line, item=True) for line in summary_counts(report)),
        ]
        yield from dict.fromkeys(blocks)
        yield from self._failed_gates()

    def brief(self) -> Iterator[Block]:
        """Yield the table on one screen."""
        yield from fitted(self._by_rank())
        yield Paragraph("-v adds the sources, what every best bound assumes, and all notes", style=Style.QUIET)

    def _by_rank(self) -> Iterator[Block]:
        report = self.report
        winner = ranked(report)
        if winner is not None:
            head = f"best of {len(report.cases)}: {winner.algorithm}: "
            yield from (Paragraph(head + line, style=Style.ANSWER) for line in headline(winner, self.digits))
            yield from (Paragraph(meaning(winner)), GAP)
        for label, text in common_inputs(report):
            yield Paragraph(text, label, Style.QUIET, _RANKS_OF_INPUTS.get(label, STAYS))
        yield from (GAP, self._table(), GAP)
        yield from self._grounds([winner] if winner else report.cases)
        dispensable = {text for case in report.cases for text in sentences_about(report.command, case, tuple(_RANKS))}
        yield from (Paragraph(note, "note") for note in summary_notes(report) if note not in dispensable)
        yield from map(Paragraph, summary_counts(report))
        yield from self._failed_gates()

    def _table(self) -> Table:
        return Table(summary(self.report, self.digits))

    def _grounds(self, cases: Sequence[Case]) -> Iterator[Block]:
        """Yield what the best bounds assume; of the first ones where they are many."""
        best = {case.best.bound: case.best for case in cases if case.best}
        for place, (bound, result) in enumerate(list(best.items())[:_GROUNDS]):
            of = f" ({bound})" if len(best) > 1 else ""
            yield Paragraph("; ".join(result.assumes) + of, "assumes", rank=6 if place else STAYS)

    def _failed_gates(self) -> Iterator[Block]:
        """Yield the gates that failed, each with the number of its case."""
        for place, case in enumerate(self.report.cases, start=1):
            failed = dict.fromkeys(gate for gate in case.assertions if not gate.passed)
            for gate in failed:
                text = f"FAIL: case {place}: {gate.text} (value {gate.value}, slack {gate.slack})"
                yield Paragraph(text, style=Style.BAD, item=True)


def _gate(gate: Assertion) -> Paragraph:
    """Return the verdict on a gate."""
    text = f"{'pass' if gate.passed else 'FAIL'}: {gate.text} (value {gate.value}, slack {gate.slack})"
    return Paragraph(text, style=Style.TEXT if gate.passed else Style.BAD)


def _tables(rows: Sequence[tuple[str, ...]], *, counted: bool = True) -> list[Block]:
    """Return the table of these rows; none of no rows."""
    return [Table(rows, counted=counted)] if rows else []
