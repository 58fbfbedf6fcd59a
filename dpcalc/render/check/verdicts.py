"""The verdicts as texts that every report of checked recipes shows, safe to print anywhere."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.inert import printable
from dpcalc.model.numbers import parse_number
from dpcalc.model.quantities import Quantity
from dpcalc.model.source import Source
from dpcalc.render.numbers import MAXIMISED, Digits, Side
from dpcalc.render.words import training
from dpcalc.render.words.risk import attack_row
from dpcalc.report import Assertion, Case, Change, Check, Report, Result, Status

_GATE = re.compile(r"\s*([\w.-]+(?:@[^<>=\s]+)?)\s*(<=|>=|==|<|>)\s*(.*?)\s*", re.DOTALL)


_ABOUT = {
    name: name.replace("_", " ")
    for name in ("group_size", "index", "window", "public_records", "permutation", "loss_class")
}
"""Inputs that every verdict names, in words: whom it is about, and what was promised."""


class Row(NamedTuple):
    """The verdict on one gate, or the answer where a case has none."""

    status: Status
    quantity: str = ""
    value: str = ""
    limit: str = ""
    slack: str = ""
    theorem: str = ""


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
    statuses = report.statuses
    parts = [f"{statuses.get(Status.PASSED, 0)} of {sum(statuses.values())} cases passed"]
    parts += [f"{statuses[word]} {word}" for word in (Status.FAILED, Status.SKIPPED) if statuses.get(word)]
    parts += [f"{statuses[Status.ERROR]} could not be judged"] if statuses.get(Status.ERROR) else []
    parts += [f"{len(report.not_selected)} not selected"] if report.not_selected else []
    public = sum(not_private(case) for _, case in checked(report))
    parts += [f"{public} {PUBLIC}"] if public else []
    said = ", ".join(parts)
    return f"{shard_text(report)}: {said} ({MERGE})" if report.shard else said


def shard_text(report: Report) -> str:
    """Return which shard a report is of; empty where it is of all cases."""
    return f"shard {report.shard.number} of {report.shard.of}" if report.shard else ""


MERGE = "dpcalc merge gives the verdict"
"""What a report of one shard says of the whole check."""


PUBLIC = "NOT PRIVATE"
"""What stands in place of a verdict where what was trained is not private: no gate makes it good."""


def not_private(case: Case) -> bool:
    """Return whether the case trained a model that is not private, whatever its gates say."""
    return bool(case.training and training.warning(case))


def refused(case: Case) -> bool:
    """Return whether a case passed because it was refused, as it expects: then nothing is guaranteed."""
    return case.check is not None and case.check.status == Status.PASSED and bool(case.assertions) and not case.best


@functools.lru_cache(maxsize=256)
def gate_name(text: str) -> str:
    """Return the quantity on which a gate's text asserts, as ``epsilon`` of ``epsilon <= 1``; empty if none."""
    return _parts(text)[0].replace("-", "_")


@functools.lru_cache(maxsize=256)
def _parts(text: str) -> tuple[str, str]:
    """Return what a gate's text compares, and with what; no name where it is no comparison."""
    match = _GATE.fullmatch(text)
    return (match[1], f"{match[2]} {match[3]}") if match else ("", text)


def circumstances(check: Check, case: Case, digits: Digits) -> str:
    """Return what a verdict is about: delta, neighbours, positions, promises, and what the case accepts; in a line."""
    best = case.best
    parts = []
    if best is not None:
        if best.delta is not None:
            side = Side.UP if best.quantity == Quantity.DELTA else Side.ECHO
            parts.append(f"delta {digits.delta(best.delta, best.log_delta, side)}")
        parts.append(f"adjacency {best.adjacency.replace('_', '-')}")
    for name, words in _ABOUT.items():
        value, source = case.inputs.get(name, (None, ""))
        if value is not None:
            parts.append(f"{words} {value}{' (worst case)' if source == Source.WORST_CASE else ''}")
    parts += [f"promised: {text}" for r in case.results if r.best for text in (r.details or {}).get("demands", ())]
    parts += [f"accepted: {', '.join(check.accepted)}"] if check.accepted else []
    parts += [f"policy {check.policy}"] if check.policy else []
    return printable(", ".join(parts))


def changed(change: Change) -> str:
    """Return what differs from the baseline, in a line."""
    what = f"{change.quantity}: " if change.quantity else ""
    moved = " -> ".join(text or "nothing" for text in (change.before, change.after))
    return printable(f"since the baseline: {what}{moved} ({change.what})")


def rows(check: Check, case: Case, digits: Digits) -> list[Row]:
    """Return one row per gate; one for the case itself where it has none, or ended badly for another reason."""
    gates = gate_rows(case, digits)
    if gates and (check.status == Status.PASSED or Status.FAILED in {row.status for row in gates}):
        return gates
    best = [r for r in case.results if r.best]
    own = [Row(check.status, r.quantity, digits.value(r), theorem=theorem(r)) for r in best]
    return (own or [Row(check.status)]) + gates


def gate_rows(case: Case, digits: Digits) -> list[Row]:
    """Return a row for every gate of a case."""
    return [_gate_row(gate, case, digits) for gate in case.assertions]


def gate_limit(gate: Assertion, quantity: str) -> tuple[float, str] | None:
    """Return the upper limit that a gate sets for a quantity, and its words; None where it sets none."""
    found = _parts(gate.text)
    sign, _, limit = found[1].partition(" ")
    if found[0].replace("-", "_") != quantity or sign not in ("<=", "<") or isinstance(gate.value, str):
        return None
    if gate.slack is None or not math.isfinite(gate.value + gate.slack):
        return None
    try:
        return parse_number(limit), printable(limit)
    except SpecError:
        return None


def share_used(gate: Assertion) -> float | None:
    """Return the value of a gate over its limit, or the limit over the value where it is a least one; None without one.

    It is 1 at the limit, and more where the gate failed.
    """
    sign, _, limit = _parts(gate.text)[1].partition(" ")
    if sign not in ("<=", "<", ">=", ">") or isinstance(gate.value, str):
        return None
    try:
        bound = parse_number(limit)
    except SpecError:
        return None
    above, below = (gate.value, bound) if sign in ("<=", "<") else (bound, gate.value)
    return above / below if below > 0.0 and above >= 0.0 and math.isfinite(above / below) else None


def _gate_row(gate: Assertion, case: Case, digits: Digits) -> Row:
    quantity, limit = _shown_parts(gate.text)
    status = Status.PASSED if gate.passed else Status.FAILED
    value, slack = gate_value(gate, case, digits), slack_text(gate, digits)
    return Row(status, quantity, value, limit, slack, _behind(gate, case))


@functools.lru_cache(maxsize=256)
def _shown_parts(text: str) -> tuple[str, str]:
    """Return what a gate's text compares, and with what, safe to print."""
    quantity, limit = _parts(text)
    return printable(quantity), printable(limit)


def _behind(gate: Assertion, case: Case) -> str:
    """Return the theorem behind what a gate compared: of what an attacker can do it may be another than the best."""
    if not case.risk:
        return theorem(case.best)
    name, _, at = gate_name(gate.text).partition("@")
    found = attack_row(case, name, at)
    if found is None:
        return theorem(case.best)
    return next((theorem(result) for result in case.results if result.bound == found["bound"]), found["bound"])


def gate_value(gate: Assertion, case: Case, digits: Digits) -> str:
    """Return what a gate compared, on its safe side."""
    if isinstance(gate.value, str):
        return printable(gate.value)
    name = gate_name(gate.text)
    if name == Quantity.DELTA and (best := case.best) is not None and best.log_delta is not None:
        return digits.delta(gate.value, best.log_delta, Side.UP)
    return digits.number(gate.value, Side.DOWN if name in MAXIMISED else Side.UP)


def slack_text(gate: Assertion, digits: Digits) -> str:
    """Return the room left, never more than there is; between deltas of which one is no double, that of their ln."""
    slack = gate.slack
    if slack is None:
        return ""
    text = digits.number(slack, Side.DOWN) if slack >= 0.0 else "-" + digits.number(-slack, Side.UP)
    return f"{text} in ln" if gate_name(gate.text) == Quantity.DELTA and abs(slack) > 1.0 else text


def theorem(best: Result | None) -> str:
    """Return the theorem behind a number and its id."""
    return _cited(best.reference, best.bound) if best else ""


@functools.lru_cache(maxsize=256)
def _cited(reference: str, bound: str) -> str:
    return printable(f"{reference} ({bound})")


def findings(check: Check, case: Case, digits: Digits) -> list[str]:
    """Return why a case did not pass: every gate that failed with its slack and theorem, else the message."""
    failed = [gate for gate in case.assertions if not gate.passed]
    lines = [_finding(gate, case, digits) for gate in failed]
    lines += [printable(text) for text in check.objections]
    if check.message and not lines:
        lines.append(printable(check.message))
    if check.hint:
        lines.append(f"hint: {printable(check.hint)}")
    return lines or [check.status]


def _finding(gate: Assertion, case: Case, digits: Digits) -> str:
    slack = slack_text(gate, digits)
    parts = [f"{printable(gate.text)} failed: value {gate_value(gate, case, digits)}"]
    parts += [f"slack {slack}{', by rounding alone' if gate.by_rounding else ''}"] if slack else []
    parts += [f"by {theorem(case.best)}"] if case.best else []
    return ", ".join(parts)
