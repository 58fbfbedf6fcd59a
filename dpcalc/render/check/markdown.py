"""Markdown for a comment on a pull request or the summary of a workflow's step."""

from __future__ import annotations

from dpcalc.inert import inert, printable
from dpcalc.render.asked import Asked
from dpcalc.render.check.baseline import changes_since
from dpcalc.render.check.verdicts import PUBLIC, checked, circumstances, findings, not_private, place, rows, summary
from dpcalc.render.numbers import Digits
from dpcalc.report import Case, Change, Check, Difference, Report, Status

MAX_ROWS = 100
MAX_CELL = 160
MAX_NAMES = 10
MAX_CHARACTERS = 65_000
"""A comment on GitHub holds 65536."""

_MARK = {
    Status.ERROR: "**ERROR**",
    Status.FAILED: "**FAIL**",
    Status.SKIPPED: "skipped",
    Status.PASSED: "pass",
}
_ORDER = tuple(_MARK)


def render_markdown(report: Report, asked: Asked) -> str:
    """Return a summary, the gates, what changed against the baseline, and why cases did not pass."""
    digits, since = asked.digits, changes_since(report, asked)
    lines = [f"### dpcalc check: {summary(report)}", "", *_gates(report, digits)]
    lines += _changes(since) if since is not None else []
    lines += [*_reasons(report, digits), *_about(report, digits)]
    return _fitted(inert("\n".join(lines).rstrip("\n") + "\n"))


def _fitted(text: str) -> str:
    """Return as many whole lines of the text as a comment holds."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return text[: text.rindex("\n", 0, MAX_CHARACTERS) + 1] + "\nThe rest is left out.\n"


def _gates(report: Report, digits: Digits) -> list[str]:
    """Return the table of gates, those that did not hold first."""
    several = len({check.file for check, _ in checked(report)}) > 1
    table: list[tuple[Status, tuple[str, ...]]] = [
        (row.status, (_mark(row.status, case), _code(f"{check.file}: {check.name}" if several else check.name),
                      *map(_code, row[1:5]), _plain(row.theorem)))
        for check, case in checked(report)
        for row in rows(check, case, digits)
    ]  # fmt: skip
    table.sort(key=lambda row: (row[1][0] != f"**{PUBLIC}**", _ORDER.index(row[0])))
    marked = [cells for _, cells in table]
    return _table(("", "case", "quantity", "value", "limit", "slack", "theorem"), marked) if table else []


def _mark(status: Status, case: Case) -> str:
    """Return the verdict; nothing passes of a model that is not private."""
    return f"**{PUBLIC}**" if status == Status.PASSED and not_private(case) else _MARK[status]


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


_COUNTED = (Difference.NEW, Difference.REMOVED)
_ASKED = (Difference.OTHER_RUN, Difference.LESS, Difference.MORE)


def _table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> list[str]:
    lines = ["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *body[:MAX_ROWS])]
    left_out = [f"{len(body) - MAX_ROWS} more rows are left out."] if len(body) > MAX_ROWS else []
    return [*lines, "", *left_out, *([""] if left_out else [])]


def _reasons(report: Report, digits: Digits) -> list[str]:
    cases = [(check, case) for check, case in checked(report) if check.status != Status.PASSED or case.warnings]
    lines = [line for check, case in cases[:MAX_ROWS] for line in _reason(check, case, digits)]
    return [*lines, *([f"- {len(cases) - MAX_ROWS} more"] if len(cases) > MAX_ROWS else [])]


def _reason(check: Check, case: Case, digits: Digits) -> list[str]:
    why = findings(check, case, digits) if check.status != Status.PASSED else []
    why += [f"warning: {printable(text)}" for text in case.warnings]
    return [
        f"- {_mark(check.status, case)} {_code(check.name)} at {_code(place(check))}",
        *(f"  - {_code(w, 500)}" for w in why),
    ]


def _about(report: Report, digits: Digits) -> list[str]:
    """Return what the verdicts are about, the notes, and the cases that were not selected."""
    about: dict[str, list[str]] = {}
    for check, case in checked(report):
        for text in filter(None, (circumstances(check, case, digits), *(f"note: {note}" for note in case.notes))):
            about.setdefault(text, []).append(check.name)
    lines = [f"- {_names(names)}: {_code(text, 500)}" for text, names in list(about.items())[:MAX_ROWS]]
    missing = [name for _, name in report.not_selected]
    return [*lines, *([f"- not selected: {_names(missing)}"] if missing else [])]


def _names(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(map(_code, names[:MAX_NAMES])) + more


def _code(text: str, width: int = MAX_CELL) -> str:
    """Return the text as code, in which GitHub resolves neither markup nor mentions nor links."""
    text = printable(text).strip()
    text = text if len(text) <= width else text[: width - 3] + "..."
    if not text:
        return ""
    # A backtick or a bar would end the code or the cell, and a backslash would change what a bar means.
    return f"<code>{_plain(text)}</code>" if set(text) & set("`|\\") else f"`{text}`"


def _plain(text: str) -> str:
    """Return the text with every character that could be markup as an entity."""
    return "".join(c if c.isalnum() or c in " .,-()" or not c.isascii() else f"&#{ord(c)};" for c in text)
