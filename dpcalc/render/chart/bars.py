"""The verdicts of checked recipes as bars: how much of its limit each gate uses. Data only; `figure` draws it."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dpcalc.inert import printable
from dpcalc.model.quantities import Quantity
from dpcalc.render.check.verdicts import (
    AT_LEAST,
    EXACTLY,
    MARKS,
    PUBLIC,
    Judged,
    gate_name,
    gate_sign,
    judged,
    not_private,
    several_files,
    summary,
)
from dpcalc.render.numbers import Digits
from dpcalc.report import Assertion, Case, Report, Status

MAX_BARS = 60
MAX_LABEL = 40
MAX_TEXT = 48
DECADES = 6
"""How far from the limit a bar ends at most, in powers of ten."""

_EXPECTED = re.compile(r"[^=]*==(.*) within (.*)")
_FIVE = Digits(5)


class Bar(NamedTuple):
    """A gate, or a case without one. ``share`` is the part of the limit that is used up, more than 1 where the gate
    failed; None where that is no number. ``before`` is what that was in an earlier report, where it was another.
    ``public`` is whether the case trained a model that is not private."""

    label: str
    status: Status
    text: str
    share: float | None
    before: float | None = None
    public: bool = False

    @property
    def passed(self) -> bool:
        """Whether the verdict is good: none is of a model that is not private."""
        return self.status == Status.PASSED and not self.public

    @property
    def mark(self) -> str:
        """The verdict in a word or two."""
        return PUBLIC if self.public and self.status == Status.PASSED else MARKS[self.status]


class Bars(NamedTuple):
    """What is drawn for the verdicts of a report; ``log`` says whether in powers of ten."""

    title: str
    bars: tuple[Bar, ...]
    log: bool
    notes: tuple[str, ...] = ()


def bars(report: Report) -> Bars:
    """Return a bar for every gate, in the order of the recipes; of too many, those that did not pass come first."""
    several, earlier = several_files(report), _earlier(report)
    every = [bar for one in judged(report, Digits(5)) for bar in _bars(one, several, earlier)]
    notes = ["a ring shows where a number was in the earlier report"] if any(b.before for b in every) else []
    drawn = every
    if len(every) > MAX_BARS:
        notes.append(f"{len(every) - MAX_BARS} of {len(every)} bars are not drawn, for want of room")
        drawn = sorted(every, key=lambda bar: bar.passed)[:MAX_BARS]
    shares = [share for bar in drawn for share in (bar.share, bar.before) if share]
    log = bool(shares) and max(*shares, 1.0) >= 100.0 * min(*shares, 1.0)
    if log and not all(10.0**-DECADES < share < 10.0**DECADES for share in shares):
        notes.append(f"bars end where they are more than {DECADES} powers of ten from the limit")
    return Bars(f"dpcalc check: {summary(report)}", tuple(drawn), log, tuple(notes))


def _earlier(report: Report) -> dict[tuple[str, str, str], float]:
    """Return file, case and quantity of every number that is another than in an earlier report -> what it was."""
    earlier = {}
    for change in report.changes or ():
        with contextlib.suppress(ValueError):
            earlier[change.file, change.name, change.quantity] = float(change.before)
    return earlier


def _bars(one: Judged, several: bool, earlier: Mapping[tuple[str, str, str], float]) -> Iterator[Bar]:
    """Yield the bars of a case: of its answer where its gates do not say it, and of each gate."""
    label, case = _clipped(one.title(several), MAX_LABEL), one.case
    for row in one.rows:
        bar = Bar(label, row.status, _clipped(f"{row.quantity} {row.value} {row.limit}", MAX_TEXT), None)
        if row.gate is not None:
            was = earlier.get((os.path.normpath(one.check.file), one.check.name, gate_name(row.gate.text)))
            share = _share(row.gate, case)
            bar = bar._replace(share=share, before=_before(row.gate, share, was))
        else:
            answer = f"{row.quantity} {row.value}" if row.value else printable(one.check.message or "")
            without = ", no gate" if row.value and not case.assertions else ""
            bar = bar._replace(text=_clipped(answer + without, MAX_TEXT))
        yield bar._replace(public=not_private(case))


def _before(gate: Assertion, share: float | None, was: float | None) -> float | None:
    """Return the share of its limit that a gate used up when its value was another one."""
    value, sign = gate.value, gate_sign(gate.text)
    if share is None or was is None or isinstance(value, str) or sign == EXACTLY:
        return None
    earlier = _ratio(value, was) if sign in AT_LEAST else _ratio(was, value)
    return None if earlier is None else share * earlier


def _clipped(text: str, width: int) -> str:
    text = printable(text)
    return text if len(text) <= width else text[: width - 3] + "..."


def _share(gate: Assertion, case: Case) -> float | None:
    """Return the part of its limit that a gate uses up; infinity where there is no limit to it."""
    value, slack = gate.value, gate.slack
    if slack is None or isinstance(value, str) or math.isnan(value) or math.isnan(slack):
        return None
    if gate_name(gate.text) == Quantity.DELTA and _in_logarithms(slack, case):
        return _power(-slack)
    if expected := _EXPECTED.fullmatch(gate.text):
        missed = abs(value - float(expected[1]))
        return _ratio(missed, missed + slack)
    if gate_sign(gate.text) == EXACTLY:
        return None
    return _ratio(value - slack, value) if gate_sign(gate.text) in AT_LEAST else _ratio(value, value + slack)


def _in_logarithms(slack: float, case: Case) -> bool:
    """Return whether a gate on delta compared logarithms: deltas themselves differ by less than 1."""
    log_delta = case.best.log_delta if case.best else None
    return abs(slack) > 1.0 or (log_delta is not None and log_delta < -690.0)


def _power(exponent: float) -> float:
    if exponent == -math.inf:
        return 0.0
    return math.exp(max(exponent, -700.0)) if exponent < 700.0 else math.inf


def _ratio(used: float, limit: float) -> float | None:
    if math.isnan(used) or math.isnan(limit) or used < 0.0 or limit < 0.0 or math.isinf(limit):
        return None
    if limit == 0.0:
        return 0.0 if used == 0.0 else math.inf
    return used / limit
