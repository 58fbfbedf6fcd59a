"""Checked recipes in a terminal: a line for every gate, the reasons for failures, and the counts.

Also as Markdown, for a comment on a pull request or the summary of a workflow's step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpcalc.checked import Change, Difference, Status
from dpcalc.inert import inert, printable
from dpcalc.render.asked import Asked
from dpcalc.render.blocks import aligned, markdown_table
from dpcalc.render.check.baseline import changes_since
from dpcalc.render.check.verdicts import (
    MARKS,
    PUBLIC,
    Judged,
    changed,
    checked,
    judged,
    place,
    several_files,
    summary,
)
from dpcalc.render.layout import cut, listed
from dpcalc.render.notes import without_places
from dpcalc.render.numbers import SIX, Digits
from dpcalc.report import Report

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
    """Return the places of cases that did not pass, with the reasons."""
    lines = []
    for one in cases:
        if one.check.status != Status.PASSED:
            lines.append(f"{MARKS[one.check.status]} {one.name} at {place(one.check)}")
            lines += [f"  {finding}" for finding in one.findings]
    return lines


def _about(cases: Sequence[Judged]) -> list[str]:
    """Return the circumstances of the verdicts, each once for all its cases."""
    names: dict[str, list[str]] = {}
    for one in cases:
        if text := one.circumstances:
            names.setdefault(text, []).append(one.name)
    return [f"{listed(several, 5)}: {text}" for text, several in names.items()]


def _beside(report: Report) -> list[str]:
    """Return the unselected cases, the changes since the baseline, and the number of cases not shown."""
    lines = [f"since the baseline, {len(report.changes)} changes"] if report.changes is not None else []
    lines += [f"{printable(c.name)}: {changed(c)}" for c in (report.changes or ())[:MAX_CHANGES]]
    names = [printable(name) for _, name in report.not_selected]
    lines += [f"not selected: {listed(names, MAX_NOTES)}"] if names else []
    passed, hidden = report.statuses.get(Status.PASSED, 0), sum(report.statuses.values()) - len(report.cases)
    more = f", and {hidden - passed} more that did not" if hidden > passed else ""
    return [*lines, f"not shown: {passed} cases that passed{more}"] if hidden else lines


def _theorems(report: Report) -> list[str]:
    """Describe the bounds that gave the numbers."""
    best = {best.bound: best.reference for case in report.cases if (best := case.best)}
    return [f"{bound}: {reference}" for bound, reference in sorted(best.items())]


def _notes(report: Report) -> list[str]:
    once = dict.fromkeys(note for _, case in checked(report) for note in without_places(report.command, case))
    notes = [f"note: {printable(note)}" for note in once]
    left_out = len(notes) - MAX_NOTES
    return [*notes[:MAX_NOTES], *([f"note: {left_out} more notes are left out"] if left_out > 0 else [])]


def _gates(report: Report) -> str:
    """Return the number of gates that held, and of cases without one."""
    gates, held, bare = report.gates
    without = f"; {bare} without a gate" if bare else ""
    return f"; {held} of {gates} gates held{without}"


MAX_ROWS = 100
MAX_CELL = 160
MAX_NAMES = 10
MAX_CHARACTERS = 65_000
"""A comment on GitHub may have 65536 characters."""

_ORDER = (Status.ERROR, Status.FAILED, Status.SKIPPED, Status.PASSED)


def render_markdown(report: Report, asked: Asked) -> str:
    """Return a summary, the gates, the changes since the baseline, and the reasons for failures."""
    cases, since = list(judged(report, asked.digits)), changes_since(report, asked)
    lines = [f"### dpcalc check: {summary(report)}", "", *_markdown_gates(cases, several_files(report))]
    lines += _changes(since) if since is not None else []
    lines += [*_markdown_reasons(cases), *_markdown_about(cases, report.command)]
    lines += [f"- not selected: {_names([name for _, name in report.not_selected])}"] if report.not_selected else []
    return _fitted(inert("\n".join(lines).rstrip("\n") + "\n"))


def _fitted(text: str) -> str:
    """Return as many whole lines of the text as fit into a comment."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return text[: text.rindex("\n", 0, MAX_CHARACTERS) + 1] + "\nThe rest is left out.\n"


def _markdown_gates(cases: Sequence[Judged], several: bool) -> list[str]:
    """Return the table of gates, those that did not hold first."""
    rows = [(row, one) for one in cases for row in one.rows]
    rows.sort(key=lambda pair: (pair[1].mark(pair[0].status) != PUBLIC, _ORDER.index(pair[0].status)))
    body = [
        (_mark(one, row.status), _code(one.title(several)), *map(_code, row[1:5]), _plain(row.theorem))
        for row, one in rows
    ]
    return _table(("", "case", "quantity", "value", "limit", "slack", "theorem"), body) if body else []


def _mark(one: Judged, status: Status) -> str:
    """Return the outcome of a gate or a case, in bold if it is bad."""
    mark = one.mark(status)
    return {MARKS[Status.PASSED]: mark, MARKS[Status.SKIPPED]: "skipped"}.get(mark, f"**{mark}**")


def _changes(changes: list[Change]) -> list[str]:
    if not changes:
        return ["Against the baseline, nothing has changed.", ""]
    moved = sum(bool(change.quantity) and change.what not in _ASKED for change in changes)
    counts = [f"{moved} number{'' if moved == 1 else 's'} moved"]
    counts += [
        f"{n} {word}" for word in (Difference.NEW, Difference.REMOVED) if (n := sum(c.what == word for c in changes))
    ]
    counts += [f"{n} ask for less"] if (n := sum(c.weaker for c in changes)) else []
    counts += [f"{n} with other gates"] if (n := sum(c.what == Difference.GATES for c in changes)) else []
    several = len({change.file for change in changes}) > 1
    table = [
        (_code(f"{c.file}: {c.name}" if several else c.name), *map(_code, (c.quantity, c.before, c.after)), c.what)
        for c in changes
    ]
    return [f"Against the baseline: {', '.join(counts)}.", "",
            *_table(("case", "quantity", "before", "after", "change"), table)]  # fmt: skip


_ASKED = (Difference.OTHER_RUN, Difference.LESS, Difference.MORE)


def _table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> list[str]:
    more = [f"{len(body) - MAX_ROWS} more rows are left out.", ""] if len(body) > MAX_ROWS else []
    return [*markdown_table([head, *body[:MAX_ROWS]]), "", *more]


def _markdown_reasons(cases: Sequence[Judged]) -> list[str]:
    """Return the reasons for failures and the warnings, with their places."""
    bad = [one for one in cases if one.check.status != Status.PASSED or one.case.warnings]
    lines = []
    for one in bad[:MAX_ROWS]:
        why = list(one.findings) if one.check.status != Status.PASSED else []
        lines.append(f"- {_mark(one, one.check.status)} {_code(one.check.name)} at {_code(place(one.check))}")
        lines += [
            f"  - {_code(text, 500)}" for text in (*why, *(f"warning: {printable(w)}" for w in one.case.warnings))
        ]
    return [*lines, *([f"- {len(bad) - MAX_ROWS} more"] if len(bad) > MAX_ROWS else [])]


def _markdown_about(cases: Sequence[Judged], command: str) -> list[str]:
    """Return the circumstances of the verdicts, and the notes."""
    names: dict[str, list[str]] = {}
    for one in cases:
        notes = (f"note: {note}" for note in without_places(command, one.case))
        for text in filter(None, (one.circumstances, *notes)):
            names.setdefault(text, []).append(one.check.name)
    return [f"- {_names(several)}: {_code(text, 500)}" for text, several in list(names.items())[:MAX_ROWS]]


def _names(names: list[str]) -> str:
    return listed(list(map(_code, names)), MAX_NAMES)


def _code(text: str, width: int = MAX_CELL) -> str:
    """Return the text as code, where GitHub resolves no markup, mentions or links."""
    text = cut(printable(text).strip(), width)
    if not text:
        return ""
    # A backtick or a bar would end the code or the cell, and a backslash would change what a bar means.
    return f"<code>{_plain(text)}</code>" if set(text) & set("`|\\") else f"`{text}`"


def _plain(text: str) -> str:
    """Return the text with every character that could be markup as an entity."""
    return "".join(c if c.isalnum() or c in " .,-()" or not c.isascii() else f"&#{ord(c)};" for c in text)
