"""The answer on one screen: what is guaranteed and what it means, what is assumed, the best bounds, what would help.

`parts` says what is shown, the same for a terminal and for plain text; ``-v`` shows everything in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dpcalc.inert import printable
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
from dpcalc.render import plain, training
from dpcalc.render.audit import audit_lines
from dpcalc.render.comparison import derivation, is_cost
from dpcalc.render.layout import laid_out, wrapped
from dpcalc.render.ledger import entry_rows, ledger_lines
from dpcalc.render.meaning import meaning
from dpcalc.render.notes import improvement_sentences, sentences_about
from dpcalc.render.numbers import value_text
from dpcalc.render.plain import aligned, gate_line, measured_lines
from dpcalc.render.risk import risk_lines, risk_rows
from dpcalc.render.sentences import (
    budget_kept,
    certified_lines,
    cost_sentences,
    headline,
    inputs_lines,
    promise,
    released,
    shift_lines,
    tightness_text,
)
from dpcalc.render.summary import common_lines, failed_gates, ranked, summary, summary_counts, summary_notes
from dpcalc.report import Case, Report, Result

LINES, COLUMNS = 22, 80
"""The screen that an answer fits: 24 lines of 80 columns, less the prompts above and below it."""

_BEST = 3
"""How many bounds are shown."""

_INDENT = 9
"""The width of the labels at the left."""

_MEASURED = 10
"""The lines that are left for what was measured, whatever it is."""

STAYS = 0
"""The rank of what is shown even where the screen does not suffice."""


class Part(NamedTuple):
    """A paragraph, the label at its left, its style on a terminal, and its rank.

    Where the screen is full, parts of the highest rank are left out first; what is not ``counted`` depends on records,
    and what is left out must not. A ``row`` of a table is not
    wrapped; ``rows`` are a table, its head first.
    """

    text: str = ""
    label: str = ""
    style: str = ""
    rank: int = STAYS
    row: bool = False
    counted: bool = True
    rows: tuple[tuple[str, ...], ...] = ()

    def lines(self, width: int | None) -> list[str]:
        """Return the paragraph in lines of a width, below each other; in one line where that is None."""
        if self.rows:
            return aligned(self.rows) if width is None else [line for row in laid_out(self.rows, width) for line in row]
        label = f"{self.label}:".ljust(_INDENT) if self.label else ""
        if width is None or not self.text or self.row:
            return [label + self.text]
        return wrapped(self.text, width, label, " " * len(label))


def render(report: Report, precision: int = 6) -> str:
    """Return the answer as plain text, every paragraph in one line."""
    return "\n".join(line.rstrip() for part in brief(report, precision) for line in part.lines(None)) + "\n"


def brief(report: Report, precision: int) -> list[Part]:
    """Return what is shown of a report: of one case, or of several side by side."""
    if len(report.cases) == 1 and report.cases[0].best:
        return parts(report.command, report.cases[0], precision)
    if len(report.cases) == 1:
        lines = plain.render(report, precision).rstrip("\n").split("\n")
        return [Part(line, row=True) for line in lines]
    found = [part._replace(text=printable(part.text)) for part in _several(report, precision)]
    found = _fitted(found)
    return [*found, Part("-v adds the sources, what every best bound assumes, and all notes", style="dim")]


def _several(report: Report, precision: int) -> Iterator[Part]:
    """Yield what is shown of several cases: a ranking where they are of several algorithms, else one row a case."""
    winner = ranked(report)
    if winner is not None:
        for line in headline(winner, precision):
            yield Part(f"best of {len(report.cases)}: {winner.algorithm}: {line}", style="bold green")
        yield Part(meaning(winner))
        yield Part()
    for line in common_lines(report):
        label, _, text = line.partition(": ")
        yield Part(text, label, "dim", _RANKS_OF_INPUTS.get(label, STAYS))
    yield Part()
    yield Part(rows=tuple(map(_printable_row, summary(report, precision))))
    yield Part()
    yield from _grounds([winner] if winner else report.cases)
    dispensable = {text for case in report.cases for text in sentences_about(report.command, case, tuple(_RANKS))}
    lines = summary_notes(report)
    yield from (Part(note, "note") for note in lines if note not in dispensable)
    yield from (Part(line) for line in summary_counts(report))
    yield from (Part(line, style="bold red") for line in failed_gates(report))


def _printable_row(row: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(printable, row))


_GROUNDS = 2
"""Of how many best bounds of a sweep the assumptions are shown."""


def _grounds(cases: Sequence[Case]) -> Iterator[Part]:
    """Yield what the best bounds assume; of the first ones where they are many."""
    best = {case.best.bound: case.best for case in cases if case.best}
    for place, (bound, result) in enumerate(list(best.items())[:_GROUNDS]):
        of = f" ({bound})" if len(best) > 1 else ""
        yield Part("; ".join(result.assumes) + of, "assumes", rank=6 if place else STAYS)


def parts(command: str, case: Case, precision: int) -> list[Part]:
    """Return what is shown of a case that has a guarantee."""
    found = _fitted([part._replace(text=printable(part.text)) for part in _all(command, case, precision)])
    if found[-1] == Part():  # nothing stands below this blank line
        del found[-1]
    return [*found, Part(_left_out(case, found), style="dim")]


def _fitted(found: list[Part]) -> list[Part]:
    """Return the parts that fit the screen, and those that stay."""
    room = LINES - 2 - (_MEASURED if not all(part.counted for part in found) else 0)
    while sum(len(part.lines(COLUMNS)) for part in found if part.counted) > room:
        highest = max(part.rank for part in found)
        if highest == STAYS:
            break
        last = max(place for place, part in enumerate(found) if part.rank == highest)
        found = [part for place, part in enumerate(found) if place != last]
    return found


def _all(command: str, case: Case, precision: int) -> Iterator[Part]:
    """Yield all that may be shown, in the order of a reader's questions."""
    yield from _answer(case, precision)
    yield from (Part(line, style="bold red") for line in [training.warning(case)] if line)
    yield Part()
    yield from _run(case)
    yield from _measured(case, precision)
    if not is_cost(case):
        yield from _assumed(case)
        yield from _bounds(case, precision)
    for line in certified_lines(case):
        yield Part(line)
    for line in shift_lines(case):
        yield Part(line, rank=4)
    yield from _better(command, case)
    yield from _notes(command, case)
    for gate in case.assertions:
        yield Part(gate_line(gate), style="" if gate.passed else "bold red")


def _answer(case: Case, precision: int) -> Iterator[Part]:
    if is_cost(case):
        yield from _costs(case, precision)
        return
    for line in headline(case, precision):
        yield Part(line, style="bold green")
    if text := meaning(case) or _of_other_neighbours(case):
        yield Part(text)


def _of_other_neighbours(case: Case) -> str:
    """Return what is promised where neighbours differ in no record that the case speaks of."""
    return promise(case) if case.best and case.best.adjacency in ("as_given", "by_shift") else ""


def _costs(case: Case, precision: int) -> Iterator[Part]:
    """Yield a block for each kind of risk: the best bound, the run that has it, what it assumes, and the next ones."""
    for quantity in RISKS:
        of_kind = [result for result in case.results if result.quantity == quantity]
        best = next((result for result in of_kind if result.best), None)
        if best is None:
            continue
        said, run = cost_sentences(best, precision)
        yield Part(said, style="bold green")
        yield Part(f"{run}; {budget_kept(best)}", "run")
        yield Part(f"{'; '.join(best.assumes)} ({best.bound})", "assumes")
        after = [result for result in of_kind if result.guarantee and result is not best][: _BEST - 1]
        if after:
            listed = ", ".join(f"{value_text(each, precision)} ({_of_run(each)}{each.bound})" for each in after)
            yield Part(listed, "next", rank=4)


def _of_run(result: Result) -> str:
    algorithms = "/".join((result.details or {}).get("algorithms", ()))
    return f"{algorithms}, " if algorithms else ""


_RANKS_OF_INPUTS = {"default": 8, "derived": 10}


def _run(case: Case) -> Iterator[Part]:
    yield Part(released(case), rank=2)
    ranks = {**_RANKS_OF_INPUTS, "given": 3 if is_cost(case) else STAYS}
    for line in inputs_lines(case):
        label, _, text = line.partition(": ")
        yield Part(text, label, "dim", ranks.get(label, STAYS))


def _measured(case: Case, precision: int) -> Iterator[Part]:
    """Yield what a run that was carried out came to, and the entries of a ledger."""
    for line in measured_lines(case, precision):
        yield Part(line.rstrip(), row=line.startswith(" "), counted=False)
    if entries := entry_rows(case, precision):
        for line in aligned(entries):
            yield Part(line.rstrip(), row=True)
        for line in ledger_lines(case, precision):
            yield Part(line)
    if risks := risk_rows(case, precision):
        for line in aligned(risks):
            yield Part(line.rstrip(), row=True)
        for line in risk_lines(case, precision):
            yield Part(line)
    for line in audit_lines(case, precision):
        label, _, text = line.partition(": ")
        yield Part(text, label)


def _assumed(case: Case) -> Iterator[Part]:
    if case.best and case.best.assumes:
        yield Part("; ".join(case.best.assumes), "assumes")


def _bounds(case: Case, precision: int) -> Iterator[Part]:
    """Yield the best bounds as a table, and what none can beat."""
    shown = _shown(case)
    rows = [("*" if r.best else " ", r.bound, value_text(r, precision), derivation(r, precision)) for r in shown]
    lines = aligned([row[:3] for row in rows])
    how = [f"{line}  {row[3]}" for line, row in zip(lines, rows, strict=True)]
    lines = how if all(len(line) <= COLUMNS - _INDENT for line in how) else lines
    for place, line in enumerate(lines):
        label = "bounds:".ljust(_INDENT) if place == 0 else " " * _INDENT
        style = "bold" if shown[place].best else ""
        yield Part((label + line).rstrip(), style=style, rank=(STAYS, 3, 6)[min(place, 2)], row=True)
    if text := tightness_text(case, precision):
        yield Part(text.partition(": ")[2], "limit", rank=5)


def _shown(case: Case) -> list[Result]:
    """Return the best bounds; where several orders are asked, the best of each."""
    guarantees = [result for result in case.results if result.guarantee or result.best]
    best = [result for result in guarantees if result.best]
    return best if len(best) > 1 else guarantees[:_BEST]


def _better(command: str, case: Case) -> Iterator[Part]:
    for sentence in improvement_sentences(command, case):
        yield Part(sentence, "better", rank=1)


_RANKS: dict[type[Note], int] = {
    OtherIndex: 7, OtherAdjacencies: 7, AccountantPrints: 9, HidingPays: 11, TunedNoise: 11, BetterThanPublished: 12,
    UnreadableCells: 9, NotCovered: 13, NoTestRecords: 9, Rounded: 13, CostOfTries: 9,
}  # fmt: skip
"""Notes that may be left out. Those of other kinds are part of the answer, and stay."""


def _notes(command: str, case: Case) -> Iterator[Part]:
    ranks = {text: rank for kind, rank in _RANKS.items() for text in sentences_about(command, case, (kind,))}
    better = set(improvement_sentences(command, case))
    for note in case.notes:
        if note not in better:
            yield Part(note, "note", rank=ranks.get(note, STAYS))


def _left_out(case: Case, found: Sequence[Part]) -> str:
    """Return what ``-v`` adds."""
    texts = {part.text for part in found}
    more = [] if is_cost(case) else [result for result in case.results if result not in _shown(case)]
    notes = sum(printable(note) not in texts for note in case.notes)
    listed = [
        _counted(len(more), "more bound, with what each assumes", "more bounds, with what each assumes"),
        _counted(len(case.obstacles), "bound that does not apply and why", "bounds that do not apply and why"),
        _counted(notes, "more note", "more notes"),
    ]
    return ", ".join(filter(None, ["-v adds the sources", *listed]))


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}" if count else ""
