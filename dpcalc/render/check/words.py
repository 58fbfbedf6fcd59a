"""What every report of checked recipes says: the verdict on each gate in words, safe to print anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dpcalc.render.text import MAXIMISED, delta_text, number, value_text
from dpcalc.report import Assertion, Case, Check, Report, Result

_GATE = re.compile(r"\s*([\w.-]+)\s*(<=|>=|==|<|>)\s*(.*?)\s*", re.DOTALL)


class Row(NamedTuple):
    """The verdict on one gate, or what was found where a case has none."""

    status: str
    quantity: str = ""
    value: str = ""
    limit: str = ""
    slack: str = ""
    theorem: str = ""


def printable(text: str) -> str:
    """Return the text on one line, with characters that steer a terminal or break a document spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def checked(report: Report) -> Iterator[tuple[Check, Case]]:
    """Yield the cases that were checked, each with where it stands."""
    for case in report.cases:
        if case.check is not None:
            yield case.check, case


def place(check: Check) -> str:
    """Return where a case stands, as editors and terminals link it."""
    return printable(f"{check.file}:{check.line}:{check.column}")


def summary(report: Report) -> str:
    """Return how many cases there are and how they ended, in a line."""
    found = [check.status for check, _ in checked(report)]
    parts = [f"{found.count('passed')} of {len(found)} cases passed"]
    parts += [f"{found.count(word)} {word}" for word in ("failed", "skipped") if word in found]
    parts += [f"{found.count('error')} could not be computed"] if "error" in found else []
    return ", ".join(parts)


def gate_name(text: str) -> str:
    """Return the quantity on which a gate's text asserts, as ``epsilon`` of ``epsilon <= 1``; empty if none."""
    match = _GATE.fullmatch(text)
    return match[1].replace("-", "_") if match else ""


def rows(check: Check, case: Case, precision: int) -> list[Row]:
    """Return one row per gate; one for the case itself where it has none, or ended badly for another reason."""
    gates = [_gate_row(gate, case, precision) for gate in case.assertions]
    if gates and (check.status == "passed" or "failed" in {row.status for row in gates}):
        return gates
    found = [r for r in case.results if r.best]
    own = [Row(check.status, r.quantity, value_text(r, precision), theorem=theorem(r)) for r in found]
    return (own or [Row(check.status)]) + gates


def _gate_row(gate: Assertion, case: Case, precision: int) -> Row:
    match = _GATE.fullmatch(gate.text)
    quantity, limit = (match[1], f"{match[2]} {match[3]}") if match else ("", gate.text)
    status = "passed" if gate.passed else "failed"
    value, slack = gate_value(gate, case, precision), slack_text(gate.slack, precision)
    return Row(status, printable(quantity), value, printable(limit), slack, theorem(case.best))


def gate_value(gate: Assertion, case: Case, precision: int) -> str:
    """Return what a gate compared, on its safe side."""
    name, best = gate_name(gate.text), case.best
    if isinstance(gate.value, str):
        return printable(gate.value)
    if name == "delta" and best is not None and best.log_delta is not None:
        return delta_text(gate.value, best.log_delta, precision, "up")
    return number(gate.value, precision, "down" if name in MAXIMISED else "up")


def slack_text(slack: float | None, precision: int) -> str:
    """Return the room left, never more than there is."""
    if slack is None:
        return ""
    return number(slack, precision, "down") if slack >= 0.0 else "-" + number(-slack, precision, "up")


def theorem(best: Result | None) -> str:
    """Return the theorem behind a number and its id."""
    return printable(f"{best.reference} ({best.bound})") if best else ""


def findings(check: Check, case: Case, precision: int) -> list[str]:
    """Return why a case did not pass: every gate that failed with its slack and theorem, else the message."""
    failed = [gate for gate in case.assertions if not gate.passed]
    lines = [_finding(gate, case, precision) for gate in failed]
    if check.message and not failed:
        lines.append(printable(check.message))
    if check.hint:
        lines.append(f"hint: {printable(check.hint)}")
    return lines or [check.status]


def _finding(gate: Assertion, case: Case, precision: int) -> str:
    slack = slack_text(gate.slack, precision)
    parts = [f"{printable(gate.text)} failed: value {gate_value(gate, case, precision)}"]
    parts += [f"slack {slack}{', by rounding alone' if gate.by_rounding else ''}"] if slack else []
    parts += [f"by {theorem(case.best)}"] if case.best else []
    return ", ".join(parts)
