"""The texts of verdicts in all reports of checked recipes, safe to print anywhere."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from dpcalc.checked import Assertion, Change, Check, Status
from dpcalc.errors import SpecError
from dpcalc.inert import printable
from dpcalc.model.algorithm import Source
from dpcalc.model.numbers import parse_number
from dpcalc.model.quantities import Quantity
from dpcalc.render.numbers import MAXIMISED, Digits, Side
from dpcalc.render.words import risk
from dpcalc.render.words.risk import attack_row
from dpcalc.report import Case, Report, Result

_GATE = re.compile(r"\s*([\w.-]+(?:@[^<>=\s]+)?)\s*(<=|>=|==|<|>)\s*(.*?)\s*", re.DOTALL)

_ABOUT = {
    name: name.replace("_", " ")
    for name in ("group_size", "index", "window", "public_records", "permutation", "loss_class")
}
"""Inputs that every verdict names: the records that it is about, and the promises."""

AT_MOST, AT_LEAST = ("<=", "<"), (">=", ">")
"""The signs of gates."""

MERGE = "dpcalc merge gives the verdict"
"""The remark of a shard's report on the whole check."""

PUBLIC = "NOT PRIVATE"
"""Replaces the verdict on a trained model that is not private, whatever its gates."""


MARKS = {Status.PASSED: "pass", Status.FAILED: "FAIL", Status.SKIPPED: "skip", Status.ERROR: "ERROR"}
"""The outcome of a case or a gate, in a word."""


class Row(NamedTuple):
    """The verdict on one gate, or the answer of a case without gates; ``gate`` is its quantity."""

    status: Status
    quantity: str = ""
    value: str = ""
    limit: str = ""
    slack: str = ""
    theorem: str = ""
    gate: Assertion | None = None


def checked(report: Report) -> Iterator[tuple[Check, Case]]:
    """Yield the checked cases with their places."""
    for case in report.cases:
        if case.check is not None:
            yield case.check, case


def judged(report: Report, digits: Digits) -> Iterator[Judged]:
    """Yield the verdicts on the checked cases."""
    return (Judged(case, digits) for case in report.cases if case.check is not None)


def several_files(report: Report) -> bool:
    """Return whether the cases come from several recipes, so their names need the names of the files."""
    return len({check.file for check, _ in checked(report)}) > 1


def place(check: Check) -> str:
    """Return the place of a case, as editors and terminals link it."""
    return printable(f"{check.file}:{check.line}:{check.column}")


def summary(report: Report) -> str:
    """Return the counts of cases by outcome, in a line."""
    statuses = report.statuses
    parts = [f"{statuses.get(Status.PASSED, 0)} of {sum(statuses.values())} cases passed"]
    parts += [f"{statuses[word]} {word}" for word in (Status.FAILED, Status.SKIPPED) if statuses.get(word)]
    parts += [f"{statuses[Status.ERROR]} could not be judged"] if statuses.get(Status.ERROR) else []
    parts += [f"{len(report.not_selected)} not selected"] if report.not_selected else []
    public = sum(not_private(case) for _, case in checked(report))
    parts += [f"{public} {PUBLIC}"] if public else []
    counts = ", ".join(parts)
    return f"{shard_text(report)}: {counts} ({MERGE})" if report.shard else counts


def shard_text(report: Report) -> str:
    """Return the shard of a report; empty for all cases."""
    return f"shard {report.shard.number} of {report.shard.of}" if report.shard else ""


def not_private(case: Case) -> bool:
    """Return whether the case trained a model that is not private, whatever its gates say."""
    return bool(case.training and risk.warning(case))


def refused(case: Case) -> bool:
    """Return whether a case passed by an expected refusal, which guarantees nothing."""
    return case.check is not None and case.check.status == Status.PASSED and bool(case.assertions) and not case.best


def changed(change: Change) -> str:
    """Return a change since the baseline, in a line."""
    what = f"{change.quantity}: " if change.quantity else ""
    values = " -> ".join(text or "nothing" for text in (change.before, change.after))
    return printable(f"since the baseline: {what}{values} ({change.what})")


class Judged:
    """A case with its verdict, in texts that are safe to print anywhere."""

    def __init__(self, case: Case, digits: Digits) -> None:
        """Take the case and the format of numbers."""
        self.case, self.digits = case, digits

    @property
    def check(self) -> Check:
        """The place and the outcome of the case."""
        assert self.case.check is not None
        return self.case.check

    @property
    def name(self) -> str:
        """The name of the case."""
        return printable(self.check.name)

    def title(self, several: bool) -> str:
        """Return the name of the case, with its file if there are several recipes."""
        return printable(f"{self.check.file}: {self.check.name}" if several else self.check.name)

    def mark(self, status: Status) -> str:
        """Return the outcome of a gate or the case, in a word; a model that is not private never passes."""
        return PUBLIC if status == Status.PASSED and not_private(self.case) else MARKS[status]

    @property
    def circumstances(self) -> str:
        """The circumstances of the verdict in a line: delta, neighbours, positions, promises, accepted exceptions."""
        best, check, parts = self.case.best, self.check, []
        if best is not None:
            if best.delta is not None:
                side = Side.UP if best.quantity == Quantity.DELTA else Side.ECHO
                parts.append(f"delta {self.digits.delta(best.delta, best.log_delta, side)}")
            parts.append(f"adjacency {best.adjacency}")
        for name, words in _ABOUT.items():
            value, source = self.case.inputs.get(name, (None, ""))
            if value is not None:
                parts.append(f"{words} {value}{' (worst case)' if source == Source.WORST_CASE else ''}")
        parts += [f"promised: {text}" for r in self.case.answers for text in (r.details or {}).get("demands", ())]
        parts += [f"accepted: {', '.join(check.accepted)}"] if check.accepted else []
        parts += [f"policy {check.policy}"] if check.policy else []
        return printable(", ".join(parts))

    @property
    def rows(self) -> list[Row]:
        """One row per gate; one for the case itself if it has none, or failed for another reason."""
        gates = self.gate_rows
        if gates and (self.check.status == Status.PASSED or Status.FAILED in {row.status for row in gates}):
            return gates
        own = [Row(self.check.status, r.quantity, self.digits.value(r), theorem=theorem(r)) for r in self.case.answers]
        return (own or [Row(self.check.status)]) + gates

    @property
    def gate_rows(self) -> list[Row]:
        """One row per gate."""
        return [self._gate_row(gate) for gate in self.case.assertions]

    def _gate_row(self, gate: Assertion) -> Row:
        quantity, limit = _printable_parts(gate.text)
        status = Status.PASSED if gate.passed else Status.FAILED
        return Row(status, quantity, self.value(gate), limit, self.slack(gate), self._behind(gate), gate)

    def _behind(self, gate: Assertion) -> str:
        """Return the theorem behind the value of a gate; for attacks it need not be the best bound."""
        row = attack_row(self.case, gate_name(gate.text)) if self.case.risk else None
        if row is None:
            return theorem(self.case.best)
        return next((theorem(result) for result in self.case.results if result.bound == row["bound"]), row["bound"])

    def value(self, gate: Assertion) -> str:
        """Return the value of a gate, rounded to its safe side."""
        if isinstance(gate.value, str):
            return printable(gate.value)
        name, best = gate_name(gate.text), self.case.best
        if name == Quantity.DELTA and best is not None and best.log_delta is not None:
            return self.digits.delta(gate.value, best.log_delta, Side.UP if gate.slack else Side.ECHO)  # as the limit
        return self.digits.number(gate.value, Side.DOWN if name in MAXIMISED else Side.UP)

    def slack(self, gate: Assertion) -> str:
        """Return the slack, rounded down; for deltas beyond doubles, that of their logarithms."""
        slack = gate.slack
        if slack is None:
            return ""
        text = self.digits.number(slack, Side.DOWN)
        return f"{text} in ln" if gate_name(gate.text) == Quantity.DELTA and abs(slack) > 1.0 else text

    @property
    def findings(self) -> list[str]:
        """Why the case did not pass: every failed gate with its slack and theorem, else the message."""
        lines = [self._finding(gate) for gate in self.case.assertions if not gate.passed]
        lines += [printable(text) for text in self.check.objections]
        if self.check.message and not lines:
            lines.append(printable(self.check.message))
        if self.check.hint:
            lines.append(f"hint: {printable(self.check.hint)}")
        return lines or [self.check.status]

    def _finding(self, gate: Assertion) -> str:
        slack = self.slack(gate)
        parts = [f"{printable(gate.text)} failed: value {self.value(gate)}"]
        parts += [f"slack {slack}{', by rounding alone' if gate.by_rounding else ''}"] if slack else []
        parts += [f"by {theorem(self.case.best)}"] if self.case.best else []
        return ", ".join(parts)


@functools.lru_cache(maxsize=256)
def gate_name(text: str) -> str:
    """Return the quantity in a gate's text, such as ``epsilon`` in ``epsilon <= 1``; empty if none."""
    return parts_of(text)[0].replace("-", "_")


@functools.lru_cache(maxsize=256)
def parts_of(text: str) -> tuple[str, str]:
    """Return the two sides of a gate's text; no name if it is not a comparison."""
    match = _GATE.fullmatch(text)
    return (match[1], f"{match[2]} {match[3]}") if match else ("", text)


def gate_limit(gate: Assertion, quantity: str) -> tuple[float, str] | None:
    """Return the upper limit that a gate sets for a quantity, and its words; None if it sets none."""
    sign, _, limit = parts_of(gate.text)[1].partition(" ")
    if gate_name(gate.text) != quantity or sign not in AT_MOST or isinstance(gate.value, str):
        return None
    if gate.slack is None or not math.isfinite(gate.value + gate.slack):
        return None
    try:
        return parse_number(limit), printable(limit)
    except SpecError:
        return None


def share_used(gate: Assertion) -> float | None:
    """Return the value of a gate over its limit, or the inverse for a lower limit; None without a limit.

    It is 1 at the limit, and more if the gate failed.
    """
    sign, _, limit = parts_of(gate.text)[1].partition(" ")
    if sign not in (*AT_MOST, *AT_LEAST) or isinstance(gate.value, str):
        return None
    try:
        bound = parse_number(limit)
    except SpecError:
        return None
    above, below = (gate.value, bound) if sign in AT_MOST else (bound, gate.value)
    return above / below if below > 0.0 and above >= 0.0 and math.isfinite(above / below) else None


@functools.lru_cache(maxsize=256)
def _printable_parts(text: str) -> tuple[str, str]:
    """Return the two sides of a gate's text, safe to print."""
    quantity, limit = parts_of(text)
    return printable(quantity), printable(limit)


def theorem(best: Result | None) -> str:
    """Return the theorem behind a number and its id."""
    return _cited(best.reference, best.bound) if best else ""


@functools.lru_cache(maxsize=256)
def _cited(reference: str, bound: str) -> str:
    return printable(f"{reference} ({bound})")
