"""Checked recipes in a terminal: a line for every gate, why cases did not pass, and how many of them did."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpcalc.render.check.words import checked, findings, place, printable, rows, summary
from dpcalc.render.plain import aligned
from dpcalc.report import Report

MAX_NOTES = 20
_MARKS = {"passed": "pass", "failed": "FAIL", "skipped": "skip", "error": "ERROR"}
_COLORS = {"passed": "32", "failed": "1;31", "skipped": "33", "error": "1;31"}
_HEAD = ("", "case", "quantity", "value", "gate", "slack", "bound")


def render(report: Report, precision: int = 6, *, color: bool = False) -> str:
    """Return the verdict on every gate; values are rounded to the safe side and slacks down."""
    told = list(_rows(report, precision))
    table = [line.rstrip() for line in aligned([_HEAD, *(cells for _, cells in told)])]
    lines = table[:1]
    lines += [_colored(status, line) if color else line for (status, _), line in zip(told, table[1:], strict=True)]
    for part in (_reasons(report, precision), _theorems(report), _notes(report)):
        lines += ["", *part] if part else []
    return "\n".join([*lines, "", summary(report) + _gates(report)]) + "\n"


def _rows(report: Report, precision: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the status and the cells of every line."""
    several = len({check.file for check, _ in checked(report)}) > 1
    for check, case in checked(report):
        name = printable(f"{check.file}: {check.name}" if several else check.name)
        bound = case.best.bound if case.best else ""
        for row in rows(check, case, precision):
            cells = (_MARKS[row.status], name, row.quantity, row.value, row.limit, row.slack, bound)
            yield row.status, cells


def _colored(status: str, line: str) -> str:
    mark = _MARKS[status]
    return f"\x1b[{_COLORS[status]}m{mark}\x1b[0m{line[len(mark) :]}"


def _reasons(report: Report, precision: int) -> list[str]:
    """Return where and why cases did not pass."""
    lines = []
    for check, case in checked(report):
        if check.status != "passed":
            lines.append(f"{_MARKS[check.status]} {printable(check.name)} at {place(check)}")
            lines += [f"  {_inert(finding)}" for finding in findings(check, case, precision)]
    return lines


def _inert(text: str) -> str:
    """Return a line in which no CI server sees a command: ``::`` where it starts, ``##[`` or ``##vso[`` anywhere."""
    return re.sub(r"^(?=::)|(?<=##)(?=\w*\[)", r"\\", text)


def _theorems(report: Report) -> list[str]:
    """Return what the bounds are that gave the numbers."""
    best = {case.best.bound: case.best.reference for case in report.cases if case.best}
    return [f"{bound}: {reference}" for bound, reference in sorted(best.items())]


def _notes(report: Report) -> list[str]:
    told = dict.fromkeys(note for _, case in checked(report) for note in case.notes)
    notes = [f"note: {printable(note)}" for note in told]
    left_out = len(notes) - MAX_NOTES
    return [*notes[:MAX_NOTES], *([f"note: {left_out} more notes are left out"] if left_out > 0 else [])]


def _gates(report: Report) -> str:
    """Return how many gates held, and how many cases have none."""
    verdicts = [assertion.passed for case in report.cases for assertion in case.assertions]
    bare = sum(not case.assertions and check.status == "passed" for check, case in checked(report))
    without = f"; {bare} without a gate" if bare else ""
    return f"; {sum(verdicts)} of {len(verdicts)} gates held{without}"
