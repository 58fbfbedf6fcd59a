"""Markdown for a comment on a pull request or the summary of a workflow's step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcalc.render.check.baseline import Change, changes
from dpcalc.render.check.words import checked, findings, place, printable, rows, summary
from dpcalc.report import Case, Check, Report

MAX_ROWS = 100
MAX_CELL = 160
MAX_CHARACTERS = 65_000
"""A comment on GitHub holds 65536."""

_MARK = {"passed": "pass", "failed": "**FAIL**", "error": "**ERROR**", "skipped": "skipped"}
_ORDER = ("error", "failed", "skipped", "passed")


def render_markdown(report: Report, precision: int, baseline: Mapping[str, Any] | None) -> str:
    """Return a summary, the gates, what changed against the baseline, and why cases did not pass."""
    lines = [f"### dpcalc check: {summary(report)}", "", *_gates(report, precision)]
    if baseline is not None:
        lines += _changes(changes(baseline, report.to_dict(), precision))
    lines += _reasons(report, precision)
    return _fitted("\n".join(lines).rstrip("\n") + "\n")


def _fitted(text: str) -> str:
    """Return as many whole lines of the text as a comment holds."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return text[: text.rindex("\n", 0, MAX_CHARACTERS) + 1] + "\nThe rest is left out.\n"


def _gates(report: Report, precision: int) -> list[str]:
    """Return the table of gates, those that did not hold first."""
    several = len({check.file for check, _ in checked(report)}) > 1
    table = [
        (row.status, _code(f"{check.file}: {check.name}" if several else check.name), *map(_code, row[1:5]),
         _plain(row.theorem))
        for check, case in checked(report)
        for row in rows(check, case, precision)
    ]  # fmt: skip
    table.sort(key=lambda row: _ORDER.index(row[0]))
    marked = [(_MARK[row[0]], *row[1:]) for row in table]
    return _table(("", "case", "quantity", "value", "limit", "slack", "theorem"), marked) if table else []


def _changes(found: list[Change]) -> list[str]:
    if not found:
        return ["Against the baseline, nothing has changed.", ""]
    moved = sum(bool(change.quantity) for change in found)
    words = [f"{moved} number{'' if moved == 1 else 's'} moved"]
    words += [f"{n} {word}" for word in ("new", "removed") if (n := sum(c.what == word for c in found))]
    words += [f"{n} with other gates"] if (n := sum(c.what == "gates" for c in found)) else []
    several = len({change.file for change in found}) > 1
    table = [
        (_code(f"{c.file}: {c.name}" if several else c.name), *map(_code, (c.quantity, c.before, c.after)), c.what)
        for c in found
    ]
    return [f"Against the baseline: {', '.join(words)}.", "",
            *_table(("case", "quantity", "before", "after", "change"), table)]  # fmt: skip


def _table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> list[str]:
    lines = ["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *body[:MAX_ROWS])]
    left_out = [f"{len(body) - MAX_ROWS} more rows are left out."] if len(body) > MAX_ROWS else []
    return [*lines, "", *left_out, *([""] if left_out else [])]


def _reasons(report: Report, precision: int) -> list[str]:
    told = [(check, case) for check, case in checked(report) if check.status != "passed" or case.warnings]
    lines = [line for check, case in told[:MAX_ROWS] for line in _reason(check, case, precision)]
    return [*lines, *([f"- {len(told) - MAX_ROWS} more"] if len(told) > MAX_ROWS else [])]


def _reason(check: Check, case: Case, precision: int) -> list[str]:
    why = findings(check, case, precision) if check.status != "passed" else []
    why += [f"warning: {printable(text)}" for text in case.warnings]
    return [
        f"- {_MARK[check.status]} {_code(check.name)} at {_code(place(check))}",
        *(f"  - {_code(w, 500)}" for w in why),
    ]


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
