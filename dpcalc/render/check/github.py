"""Annotations of GitHub Actions: workflow commands that mark the cases which did not pass where they stand."""

from __future__ import annotations

from dpcalc.render.check.words import checked, findings, printable, summary
from dpcalc.report import Case, Check, Report

_LEVEL = {"failed": "error", "error": "error", "skipped": "notice"}


def render_github(report: Report, precision: int) -> str:
    """Return one annotation per case that did not pass or warned, and one that counts them all."""
    lines = [line for check, case in checked(report) for line in _annotations(check, case, precision)]
    return "".join(f"{line}\n" for line in [*lines, f"::notice title=dpcalc check::{_data(summary(report))}"])


def _annotations(check: Check, case: Case, precision: int) -> list[str]:
    lines = [_command("warning", check, printable(text)) for text in case.warnings]
    if check.status in _LEVEL:
        lines.append(_command(_LEVEL[check.status], check, "\n".join(findings(check, case, precision))))
    return lines


def _command(level: str, check: Check, message: str) -> str:
    properties = {
        "file": check.file,
        "line": str(check.line),
        "col": str(check.column),
        "title": f"dpcalc check: {check.name}",
    }
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {told}::{_data(message)}"


def _data(text: str) -> str:
    """Return a message as a workflow command carries it; line breaks stay."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")
