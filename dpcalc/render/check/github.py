"""Annotations of GitHub Actions: workflow commands that mark the cases which did not pass where they stand."""

from __future__ import annotations

from collections.abc import Iterator

from dpcalc.inert import printable
from dpcalc.render.asked import Asked
from dpcalc.render.check.verdicts import Judged, changed, judged, listed, summary
from dpcalc.report import Check, Report, Status

MAX = 50
_LEVEL = {Status.FAILED: "error", Status.ERROR: "error", Status.SKIPPED: "notice"}


def render_github(report: Report, asked: Asked) -> str:
    """Return one annotation per case that did not pass or warned, and one that counts them all."""
    lines = [line for one in judged(report, asked.digits) for line in _annotations(one)]
    names = [printable(name) for _, name in report.not_selected]
    counts = [summary(report), *([f"not selected: {listed(names, MAX)}"] if names else [])]
    total = f"::notice title=dpcalc check::{_data(chr(10).join(counts))}"
    return "".join(f"{line}\n" for line in [*lines, *_changes(report), total])


def _changes(report: Report) -> list[str]:
    """Return a warning for each change that asks for less than the baseline, and a notice for each other one."""
    changes = report.changes or ()
    lines = []
    for change in changes[:MAX]:
        level, title = "warning" if change.weaker else "notice", _property(f"dpcalc check: {change.name}")
        lines.append(f"::{level} file={_property(change.file)},title={title}::{_data(changed(change))}")
    left_out = len(changes) - MAX
    return [
        *lines,
        *([f"::notice title=dpcalc check::{left_out} more changes since the baseline"] if left_out > 0 else []),
    ]


def _annotations(one: Judged) -> Iterator[str]:
    check, case = one.check, one.case
    yield from (_command("warning", check, printable(text)) for text in case.warnings)
    if check.status in _LEVEL:
        about = [text] if (text := one.circumstances) else []
        notes = [f"note: {printable(note)}" for note in case.notes]
        yield _command(_LEVEL[check.status], check, "\n".join([*one.findings, *about, *notes]))
    elif check.accepted:
        yield _command("notice", check, one.circumstances)


def _command(level: str, check: Check, message: str) -> str:
    properties = {
        "file": check.file,
        "line": str(check.line),
        "col": str(check.column),
        "title": f"dpcalc check: {check.name}",
    }
    where = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {where}::{_data(message)}"


def _data(text: str) -> str:
    """Return a message as a workflow command carries it; line breaks stay."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")
