"""A report as a tree of blocks: in a few rows, on one screen, in full, or for a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dpcalc.checked import Assertion
from dpcalc.model.quantities import RISKS
from dpcalc.notes import (
    DearRounding,
    LabelReading,
    LeftOut,
    NewestRecord,
    NotCertified,
    NothingDrawn,
    NotTrained,
    OnePass,
    OtherReading,
    RunRead,
    RunRemark,
    Vacuous,
)
from dpcalc.render.asked import FULL
from dpcalc.render.blocks import COLUMNS, GAP, LABEL, STAYS, Block, Paragraph, Style, Table, aligned, fitted
from dpcalc.render.layout import counted
from dpcalc.render.notes import (
    advice,
    best_improvement,
    improvement_sentences,
    model_facts,
    sentences_about,
    with_matrix,
)
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.several import (
    common_inputs,
    common_lines,
    name_in,
    ranked,
    summary,
    summary_counts,
    summary_notes,
    unanswered,
)
from dpcalc.render.words import risk
from dpcalc.render.words.brief import (
    assumption_lines,
    columns,
    derivation,
    entry_rows,
    facts,
    hiding,
    is_cost,
    kept,
    ledger_lines,
    obstacle_rows,
    obstacles_by_reason,
    rows,
    source,
    unseen,
)
from dpcalc.render.words.risk import ATTACK, audit_facts, meaning, risk_lines, risk_rows
from dpcalc.render.words.sentences import (
    DEFAULT,
    DERIVED,
    GIVEN,
    UNMET,
    answer_alone,
    budget_kept,
    budget_met,
    certified_lines,
    cost_sentences,
    headline,
    inputs_by_group,
    inputs_lines,
    noise_enough,
    promise,
    promise_of_others,
    released,
    shift_lines,
    tightness_text,
)
from dpcalc.report import Case, Report, Result

_ROWS, _SCREEN = 8, 23
"""The number of rows of an answer, and with ``-v``: a screen of 24, less the prompt below."""

COMPARE = "compare"
_MOST_ROWS = {COMPARE: 10, "train": 10, "account": 20}
"""The number of rows of the answers of some commands."""

_BEST = 3
"""The number of bounds shown on one screen."""

_FEW_GATES = 2

_RANKS_OF_INPUTS = {DEFAULT: 6, DERIVED: 8}

_DECISIVE = (
    RunRead, OtherReading, RunRemark, LeftOut, OnePass, Vacuous, NotCertified, NotTrained, NothingDrawn, NewestRecord,
)  # fmt: skip
"""Notes without which an answer would be misread."""


def document(report: Report, digits: Digits, verbose: int) -> Iterable[Block]:
    """Return the blocks of a report: of one case, or of several in a table; in a few rows, on a screen, or in full."""
    if len(report.cases) != 1:
        several = Several(report, digits)
        return several.full() if verbose else several.few()
    one = One(report.command, report.cases[0], digits)
    if verbose >= FULL:
        return one.full()
    return one.screen() if verbose else one.few()


def page_document(report: Report, digits: Digits) -> Iterable[Block]:
    """Return the blocks of a report that a Markdown page shows."""
    if len(report.cases) == 1:
        return One(report.command, report.cases[0], digits).page()
    return Several(report, digits).full()


class One:
    """The blocks about a single case."""

    def __init__(self, command: str, case: Case, digits: Digits) -> None:
        """Take the command, its case, and the format of numbers."""
        self.command, self.case, self.digits = command, case, digits

    def full(self) -> Iterator[Block]:
        """Yield everything, in the order in which a reader checks it."""
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

    def few(self) -> list[Block]:
        """Return the answer in a few rows: the number, its meaning and basis, its source, and how to improve it."""
        return fitted(self._few(), _MOST_ROWS.get(self.command, _ROWS))

    def _few(self) -> Iterator[Block]:
        case = self.case
        if case.best is None:
            yield Paragraph("no guarantee applies", style=Style.BAD)
            yield from self._obstacles()
        elif case.training:
            yield from self._trained()
        elif is_cost(case):
            yield from self._costs(assumed=False)
        else:
            yield from self._number()
            yield from self._measured_briefly()
            yield from self._source()
        yield from (Paragraph(line, rank=5) for line in certified_lines(case) if case.best and case.best.bound in line)
        yield from self._decisive()
        label, text = advice(case)
        yield from [Paragraph(text, label, rank=4)] if text and not case.training else []
        yield from self._gates()
        yield Paragraph(self._more(), style=Style.QUIET)

    def _number(self) -> Iterator[Block]:
        """Yield the best results with their basis and meaning."""
        case, digits = self.case, self.digits
        met = budget_met if case.training else answer_alone
        lines = [met(result, digits) or answer_alone(result, digits) for result in case.answers]
        if not case.training:
            lines = [with_matrix(case, line) for line in lines]
        rests = ", ".join(facts(case, digits)) if not case.training else str(case.value("adjacency") or "")
        beside = f"{lines[-1]}   {rests}".rstrip()
        if len(beside) <= COLUMNS:
            lines, rests = [*lines[:-1], beside], ""
        yield from (Paragraph(self._unmet() + line, style=Style.ANSWER) for line in lines)
        yield from self._warning()
        if rests:
            yield Paragraph(rests)
        if text := meaning(case):
            yield Paragraph(text, rank=3 if case.risk else 1)
        elif text := promise_of_others(case):
            yield Paragraph(text, rank=7)

    def _unmet(self) -> str:
        return UNMET if risk.warning(self.case) and not self.case.forgetting else ""

    def _source(self) -> Iterator[Block]:
        """Yield the best bounds of a comparison, else the best with its source; what must stay hidden, and the gain."""
        case = self.case
        best = case.best
        if best is None:
            return
        if self.command == COMPARE and len(self._best()) > 1:
            yield from self._bounds()
        else:
            others = sum(result.guarantee and not result.best for result in case.results)
            worse = f"; {counted(others, 'other is', 'others are')} no better" if others else ""
            proved = ", certified" if (best.details or {}).get("certified") else ""
            room = COLUMNS - LABEL - len(f"{best.bound}{proved} (){worse}")
            yield Paragraph(f"{best.bound}{proved} ({source(best, room)}){worse}", "bound", rank=2)
        if text := unseen(case):
            yield Paragraph(text, "promise")
        if text := hiding(case):
            yield Paragraph(text, "hiding", rank=STAYS if case.value("release") else 6)

    def _measured_briefly(self) -> Iterator[Block]:
        """Yield what attackers can do, an audit's verdict, and the rest of a budget."""
        case, digits = self.case, self.digits
        yield from _tables([row[:2] for row in risk_rows(case, digits)][1:])
        yield from (Paragraph(text, label) for label, text in audit_facts(case, digits) if label != ATTACK)
        yield from map(Paragraph, ledger_lines(case, digits))

    def _trained(self) -> Iterator[Block]:
        """Yield the guarantee of a trained model, the run, its cost, the file, and what to do next."""
        case, digits = self.case, self.digits
        yield from self._number()
        yield Paragraph(risk.trained(case), "trained")
        yield from (Paragraph(note.reading, note.kind) for note in case.note_data if isinstance(note, LabelReading))
        if best := next(filter(lambda result: budget_met(result, digits), case.answers), None):
            rounding = ""
            for note in (note for note in case.note_data if isinstance(note, DearRounding)):
                spent, name = (note.epsilon, "epsilon") if note.epsilon else (note.delta, "delta")
                rounding = f"; {digits.at_most(3).number(spent, Side.UP)} of {name} is for rounding"
            yield Paragraph(noise_enough(best, digits) + rounding, "cost")
        else:
            yield from self._source()
        yield from [Paragraph(text, "private")] if (text := risk.measured_privately(case, digits)) else []
        yield from [Paragraph(f"uncovered: {text}")] if (text := risk.measured(case, digits)) else []
        yield from (Paragraph(text, label) for label, text in model_facts(case))

    def _decisive(self) -> Iterator[Block]:
        """Yield the decisive notes."""
        yield from (Paragraph(text, "note", rank=2) for text in sentences_about(self.command, self.case, _DECISIVE))

    def _gates(self) -> Iterator[Block]:
        """Yield the verdict on each of a few gates, else the number that held."""
        gates = self.case.assertions
        if len(gates) > _FEW_GATES:
            held = sum(gate.passed for gate in gates)
            yield Paragraph(f"{held} of {len(gates)} gates held", style=Style.TEXT if held == len(gates) else Style.BAD)
            return
        yield from map(_gate, gates)

    def _more(self) -> str:
        """Return what ``-v`` adds."""
        case = self.case
        assumed = {text for result in case.answers for text in result.assumes} if is_cost(case) else kept(case)
        parts = (
            (len(assumed), "assumption"),
            (len(case.results) - len(case.answers), "other bound"),
            (len(case.obstacles), "that does not apply", "that do not apply"),
            (len(case.notes), "note"),
        )
        return ", ".join(["-v adds the inputs", *(counted(*part) for part in parts if part[0])])

    def screen(self) -> list[Block]:
        """Return the answer on one screen: assumptions, inputs, bounds, why others do not apply, and notes."""
        kept = fitted(self._by_rank(), _SCREEN - 1)
        return [*kept, Paragraph(self._left_out(kept), style=Style.QUIET)]

    def _by_rank(self) -> Iterator[Block]:
        """Yield all blocks of one screen, in the order of a reader's questions."""
        case = self.case
        if is_cost(case):
            yield from self._costs(assumed=True)
        else:
            yield from self._headlines()
            yield from [Paragraph(text)] if (text := meaning(case) or promise_of_others(case)) else []
        yield from self._warning()
        yield Paragraph(released(case), rank=2)
        ranks = {**_RANKS_OF_INPUTS, GIVEN: STAYS}
        yield from (Paragraph(text, label, Style.QUIET, ranks[label]) for label, text in inputs_by_group(case))
        for section in self._measured():
            yield from section
        if not is_cost(case):
            if assumed := kept(case):
                yield Paragraph("assumed, and yours to keep:", facts=assumed, rank=5 if case.training else STAYS)
            yield from self._bounds()
        yield from (Paragraph(line, rank=3) for line in certified_lines(case))
        yield from (Paragraph(line, rank=8) for line in shift_lines(case))
        yield from self._notes()
        yield from self._gates()
        yield from self._obstacles()

    def _obstacles(self) -> Iterator[Block]:
        """Yield why bounds do not apply."""
        yield from (Paragraph(text, "not", rank=9) for text in obstacles_by_reason(self.case))

    def _headlines(self) -> Iterator[Block]:
        """Yield the best results."""
        lines = (with_matrix(self.case, line) for line in headline(self.case, self.digits))
        yield from (Paragraph(line, style=Style.ANSWER) for line in lines)

    def _costs(self, *, assumed: bool) -> Iterator[Block]:
        """Yield for each kind of risk the best bound with its run and assumptions, and the next ones."""
        for quantity in RISKS:
            of_kind = [result for result in self.case.results if result.quantity == quantity]
            for best in [result for result in of_kind if result.best][:1]:
                cost, run = cost_sentences(best, self.digits)
                yield Paragraph(cost, style=Style.ANSWER)
                yield Paragraph(f"{run}; {budget_kept(best)}" if assumed else f"{run} ({best.bound})", "run")
                others = [result for result in of_kind if result.guarantee and result is not best][: _BEST - 1]
                if assumed:
                    yield Paragraph(f"{'; '.join(best.assumes)} ({best.bound})", "assumes", rank=5)
                if assumed and others:
                    yield Paragraph(", ".join(map(self._other_cost, others)), "next", rank=4)

    def _other_cost(self, result: Result) -> str:
        algorithms = "/".join((result.details or {}).get("algorithms", ()))
        return f"{self.digits.value(result)} ({algorithms + ', ' if algorithms else ''}{result.bound})"

    def _warning(self) -> list[Block]:
        """Return why the result is not private; nothing if it is."""
        warning = risk.warning(self.case)
        return [Paragraph(warning, style=Style.BAD)] if warning else []

    def _measured(self) -> Iterator[list[Block]]:
        """Yield the metrics of an executed run, a ledger's entries, what attackers can do, and an audit."""
        case, digits = self.case, self.digits
        if case.training:
            lines = [Paragraph(line, counted=False) for line in risk.training_lines(case, digits)]
            measured = _tables(risk.metric_rows(case, digits), counted=False)
            yield [*lines, *([GAP._replace(counted=False), *measured] if measured else [])]
        yield [*_tables(entry_rows(case, digits)), *map(Paragraph, ledger_lines(case, digits))]
        yield [*_tables(risk_rows(case, digits)), *map(Paragraph, risk_lines(case, digits))]
        yield [Paragraph(text, label) for label, text in audit_facts(case, digits)]

    def _measured_in_full(self) -> Iterator[Block]:
        """Yield the parts of `_measured`, each after a gap."""
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
        """Return the best bounds; for several orders, the best of each."""
        guarantees = [result for result in self.case.results if result.guarantee or result.best]
        best = [result for result in guarantees if result.best]
        return best if len(best) > 1 else guarantees[:_BEST]

    def _bounds(self) -> Iterator[Block]:
        """Yield the best bounds and the lower value as a table."""
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
        """Yield possible improvements, and the other notes."""
        case = self.case
        improvements = list(improvement_sentences(self.command, case))
        yield from (Paragraph(sentence, "better", rank=1) for sentence in improvements)
        read = set(sentences_about(self.command, case, (LabelReading,)))
        others = (note for note in case.notes if note not in improvements)
        yield from (Paragraph(note, "note", rank=STAYS if note in read else 7) for note in others)

    def _left_out(self, kept: Sequence[Block]) -> str:
        """Return what ``-vv`` adds."""
        case, texts = self.case, {block.text for block in kept if isinstance(block, Paragraph)}
        bounds = 0 if is_cost(case) else sum(result not in self._best() for result in case.results)
        out = sum(not any(o.bound in text for text in texts) for o in case.obstacles)
        parts = (
            (bounds, "more bound"),
            (out, "more that does not apply", "more that do not apply"),
            (sum(note not in texts for note in case.notes), "more note"),
        )
        return ", ".join(["-vv adds the sources", *(counted(*p) for p in parts if p[0] > 0)])


class Several:
    """The blocks about several cases: a ranking of several algorithms, else one row a case."""

    def __init__(self, report: Report, digits: Digits) -> None:
        """Take the report and the format of numbers."""
        self.report, self.digits = report, digits

    def full(self) -> Iterator[Block]:
        """Yield the table, with the basis and the notes of every case."""
        report = self.report
        yield Paragraph("; ".join(common_lines(report)), style=Style.QUIET)
        yield from (GAP, self._table(), GAP)
        blocks: list[Block] = [
            *self._unanswered(),
            *(
                Paragraph(f"by {best.reference} ({best.bound}), assuming:", item=True, facts=best.assumes)
                for case in report.cases
                if (best := case.best)
            ),
            *self._better(),
            *(Paragraph(f"note: {note}", item=True) for note in summary_notes(report)),
            *(Paragraph(line, item=True) for line in summary_counts(report)),
        ]
        yield from dict.fromkeys(blocks)
        yield from self._failed_gates()

    def few(self) -> Iterator[Block]:
        """Yield the table with the best case, the common inputs, and the largest improvement."""
        report = self.report
        winner = ranked(report)
        if winner is not None:
            head = f"best of {len(report.cases)}: {winner.algorithm}: "
            yield from (Paragraph(head + line, style=Style.ANSWER) for line in headline(winner, self.digits))
            yield Paragraph(meaning(winner))
        elif given := dict(common_inputs(report)).get(GIVEN):
            yield Paragraph(given, style=Style.QUIET)
        yield self._table()
        yield from self._unanswered()
        yield from self._better()
        yield from map(Paragraph, summary_counts(report))
        yield from self._failed_gates()
        yield Paragraph("-v adds the sources, what every best bound assumes, and all notes", style=Style.QUIET)

    def _table(self) -> Table:
        return Table(summary(self.report, self.digits))

    def _unanswered(self) -> Iterator[Block]:
        """Yield why cases have no answer."""
        for reason, names in unanswered(self.report).items():
            yield Paragraph(f"{', '.join(names)}: {reason}" if names else reason, "none")

    def _better(self) -> Iterator[Block]:
        """Yield the largest improvement of a case, with its name."""
        if (better := best_improvement(self.report.cases)) is not None:
            yield Paragraph(f"{name_in(self.report, better[0])}: {better[1]}", "better")

    def _failed_gates(self) -> Iterator[Block]:
        """Yield the failed gates, each with the number of its case."""
        for place, case in enumerate(self.report.cases, start=1):
            for gate in dict.fromkeys(gate for gate in case.assertions if not gate.passed):
                text = f"FAIL: case {place}: {gate.text} (value {gate.value}, slack {gate.slack})"
                yield Paragraph(text, style=Style.BAD, item=True)


def _gate(gate: Assertion) -> Paragraph:
    """Return the verdict on a gate."""
    slack = "" if gate.slack is None else f", slack {number(gate.slack, 3, Side.DOWN)}"
    text = f"{'pass' if gate.passed else 'FAIL'}: {gate.text} (value {gate.value}{slack})"
    return Paragraph(text, style=Style.TEXT if gate.passed else Style.BAD)


def _tables(rows: Sequence[tuple[str, ...]], *, counted: bool = True) -> list[Block]:
    """Return the table of these rows; nothing without rows."""
    return [Table(rows, counted=counted)] if rows else []
