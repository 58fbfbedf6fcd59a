"""Checked recipes in a terminal: a line for every gate, why cases did not pass, and how many of them did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpcalc.inert import printable
from dpcalc.render.blocks import aligned
from dpcalc.render.check.verdicts import MARKS, Judged, changed, checked, judged, listed, place, several_files, summary
from dpcalc.render.numbers import SIX, Digits
from dpcalc.report import Report, Status

MAX_NOTES = 20
MAX_CHANGES = 50
_COLORS = {MARKS[Status.PASSED]: "32", MARKS[Status.SKIPPED]: "33"}
_RED = "1;31"
_HEAD = ("", "case", "quantity", "value", "gate", "slack", "bound")


def render(report: Report, digits: Digits = SIX, *, color: bool = False) -> str:
    """Return the verdict on every gate; values are rounded to the safe side and slacks down."""
    cases = list(judged(report, digits))
    verdicts = list(_rows(cases, several_files(report)))
    head, *body = [line.rstrip() for line in aligned([_HEAD, *verdicts])]
    lines = [_colored(cells[0], line) if color else line for cells, line in zip(verdicts, body, strict=True)]
    for part in (_about(cases), _reasons(cases), _theorems(report), _notes(report), _beside(report)):
        lines += ["", *part] if part else []
    return "\n".join([*([head, *lines] if verdicts else lines[1:]), "", summary(report) + _gates(report)]) + "\n"


def _rows(cases: Sequence[Judged], several: bool) -> Iterator[tuple[str, ...]]:
    """Yield the cells of every line, its verdict first."""
    for one in cases:
        bound = one.case.best.bound if one.case.best else ""
        for row in one.rows:
            yield one.mark(row.status), one.title(several), row.quantity, row.value, row.limit, row.slack, bound


def _colored(mark: str, line: str) -> str:
    return f"\x1b[{_COLORS.get(mark, _RED)}m{mark}\x1b[0m{line[len(mark) :]}"


def _reasons(cases: Sequence[Judged]) -> list[str]:
    """Return where and why cases did not pass."""
    lines = []
    for one in cases:
        if one.check.status != Status.PASSED:
            lines.append(f"{MARKS[one.check.status]} {one.name} at {place(one.check)}")
            lines += [f"  {finding}" for finding in one.findings]
    return lines


def _about(cases: Sequence[Judged]) -> list[str]:
    """Return what the verdicts are about, once for all the cases of which it is the same."""
    names: dict[str, list[str]] = {}
    for one in cases:
        if text := one.circumstances:
            names.setdefault(text, []).append(one.name)
    return [f"{listed(several, 5)}: {text}" for text, several in names.items()]


def _beside(report: Report) -> list[str]:
    """Return the cases that were not selected, what changed since the baseline, and how many cases are not shown."""
    lines = [f"since the baseline, {len(report.changes)} changes"] if report.changes is not None else []
    lines += [f"{printable(c.name)}: {changed(c)}" for c in (report.changes or ())[:MAX_CHANGES]]
    names = [printable(name) for _, name in report.not_selected]
    lines += [f"not selected: {listed(names, MAX_NOTES)}"] if names else []
    passed, hidden = report.statuses.get(Status.PASSED, 0), sum(report.statuses.values()) - len(report.cases)
    more = f", and {hidden - passed} more that did not" if hidden > passed else ""
    return [*lines, f"not shown: {passed} cases that passed{more}"] if hidden else lines


def _theorems(report: Report) -> list[str]:
    """Return what the bounds are that gave the numbers."""
    best = {best.bound: best.reference for case in report.cases if (best := case.best)}
    return [f"{bound}: {reference}" for bound, reference in sorted(best.items())]


def _notes(report: Report) -> list[str]:
    once = dict.fromkeys(note for _, case in checked(report) for note in case.notes)
    notes = [f"note: {printable(note)}" for note in once]
    left_out = len(notes) - MAX_NOTES
    return [*notes[:MAX_NOTES], *([f"note: {left_out} more notes are left out"] if left_out > 0 else [])]


def _gates(report: Report) -> str:
    """Return how many gates held, and how many cases have none."""
    gates, held, bare = report.gates
    without = f"; {bare} without a gate" if bare else ""
    return f"; {held} of {gates} gates held{without}"
