"""Checked recipes in a terminal: a line for every gate, why cases did not pass, and how many of them did."""

from __future__ import annotations

from collections.abc import Iterator

from dpcalc.inert import printable
from dpcalc.render.blocks import aligned
from dpcalc.render.check.verdicts import (
    PUBLIC,
    changed,
    checked,
    circumstances,
    findings,
    not_private,
    place,
    rows,
    summary,
)
from dpcalc.render.numbers import SIX, Digits
from dpcalc.report import Report, Status

MAX_NOTES = 20
MAX_CHANGES = 50
_MARKS = {Status.PASSED: "pass", Status.FAILED: "FAIL", Status.SKIPPED: "skip", Status.ERROR: "ERROR"}
_COLORS = {"pass": "32", "FAIL": "1;31", "skip": "33", "ERROR": "1;31", PUBLIC: "1;31"}
_HEAD = ("", "case", "quantity", "value", "gate", "slack", "bound")


def render(report: Report, digits: Digits = SIX, *, color: bool = False) -> str:
    """Return the verdict on every gate; values are rounded to the safe side and slacks down."""
    verdicts = list(_rows(report, digits))
    head, *body = [line.rstrip() for line in aligned([_HEAD, *verdicts])]
    lines = [_colored(cells[0], line) if color else line for cells, line in zip(verdicts, body, strict=True)]
    for part in (
        _about(report, digits),
        _reasons(report, digits),
        _theorems(report),
        _notes(report),
        _beside(report),
    ):
        lines += ["", *part] if part else []
    shown = [head, *lines] if verdicts else lines[1:]
    return "\n".join([*shown, "", summary(report) + _gates(report)]) + "\n"


def _rows(report: Report, digits: Digits) -> Iterator[tuple[str, ...]]:
    """Yield the cells of every line, its verdict first."""
    several = len({check.file for check, _ in checked(report)}) > 1
    for check, case in checked(report):
        name = printable(f"{check.file}: {check.name}" if several else check.name)
        best = case.best
        bound = best.bound if best else ""
        for row in rows(check, case, digits):
            mark = PUBLIC if not_private(case) and row.status == Status.PASSED else _MARKS[row.status]
            yield mark, name, row.quantity, row.value, row.limit, row.slack, bound


def _colored(mark: str, line: str) -> str:
    return f"\x1b[{_COLORS[mark]}m{mark}\x1b[0m{line[len(mark) :]}"


def _reasons(report: Report, digits: Digits) -> list[str]:
    """Return where and why cases did not pass."""
    lines = []
    for check, case in checked(report):
        if check.status != Status.PASSED:
            lines.append(f"{_MARKS[check.status]} {printable(check.name)} at {place(check)}")
            lines += [f"  {finding}" for finding in findings(check, case, digits)]
    return lines


def _about(report: Report, digits: Digits) -> list[str]:
    """Return what the verdicts are about, once for all the cases of which it is the same."""
    cases: dict[str, list[str]] = {}
    for check, case in checked(report):
        if text := circumstances(check, case, digits):
            cases.setdefault(text, []).append(printable(check.name))
    return [f"{_several(names, 5)}: {text}" for text, names in cases.items()]


def _beside(report: Report) -> list[str]:
    """Return the cases that were not selected, and what changed since the baseline."""
    lines = [f"since the baseline, {len(report.changes)} changes"] if report.changes is not None else []
    lines += [f"{printable(c.name)}: {changed(c)}" for c in (report.changes or ())[:MAX_CHANGES]]
    names = [printable(name) for _, name in report.not_selected]
    lines += [f"not selected: {_several(names, MAX_NOTES)}"] if names else []
    return [*lines, *_hidden(report)]


def _hidden(report: Report) -> list[str]:
    """Return how many cases are not shown, where those that passed are not."""
    hidden = sum(report.statuses.values()) - len(report.cases)
    passed = report.statuses.get(Status.PASSED, 0)
    if not hidden:
        return []
    more = f", and {hidden - passed} more that did not" if hidden > passed else ""
    return [f"not shown: {passed} cases that passed{more}"]


def _several(names: list[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


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
