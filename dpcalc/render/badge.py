"""A badge: the verdict and the tightest gate, as an SVG or as JSON for shields.io (its endpoint schema)."""

from __future__ import annotations

import html
import json

from dpcalc.checked import Assertion
from dpcalc.inert import inert, printable
from dpcalc.render.asked import Asked
from dpcalc.render.check.verdicts import Judged, gate_name, share_used
from dpcalc.render.layout import counted, cut
from dpcalc.render.numbers import Digits
from dpcalc.render.page.case import headlines
from dpcalc.render.page.verdict import Outcome, outcome_of, warnings, without_gate, word_of
from dpcalc.report import Case, Report

_LABEL, _FORGETTING = "privacy", "unlearning"
_MAX = 60
_THREE = Digits(3)
_COLORS = {
    Outcome.OK: ("#136533", "brightgreen"),
    Outcome.BAD: ("#a11b16", "red"),
    Outcome.PART: ("#7a4b00", "yellow"),
    Outcome.PLAIN: ("#4a5563", "lightgrey"),
}
"""The colour of an outcome, and its name at shields.io."""

_PER_CHARACTER, _MARGIN = 6.4, 7.0  # in 11 px letters
_DRAWING = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="20" viewBox="0 0 {width:.0f} 20" role="img" \
aria-labelledby="badge-title badge-desc"><title id="badge-title">{label}: {message}</title>\
<desc id="badge-desc">The verdict of dpcalc on the gate with the least room.</desc>\
<rect width="{left:.0f}" height="20" fill="#3b4350"/>\
<rect x="{left:.0f}" width="{right:.0f}" height="20" fill="{color}"/>\
<g font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff"><text x="{margin:.0f}" y="14">{label}</text>\
<text x="{start:.0f}" y="14">{message}</text></g></svg>
"""


def render_badge(report: Report, asked: Asked) -> str:
    """Return the badge, as an SVG if its file's name ends in ``.svg``, else as JSON.

    It is green only if every case has a gate, every gate held, no case was omitted, none passed by an exception, and
    the report is not of a shard.
    """
    outcome, message = outcome_of(report), _message(report)
    label = _FORGETTING if any(case.forgetting for case in report.cases) else _LABEL
    color, name = _COLORS[outcome]
    if asked.file.lower().endswith(".svg"):
        left, right = (_PER_CHARACTER * len(words) + 2.0 * _MARGIN for words in (label, message))
        drawn = _DRAWING.format(
            width=left + right, left=left, right=right, margin=_MARGIN, start=left + _MARGIN, color=color, label=label,
            message=html.escape(message),
        )  # fmt: skip
        return inert(drawn.encode("ascii", "xmlcharrefreplace").decode("ascii"))
    fields = {"schemaVersion": 1, "label": label, "message": message, "color": name}
    return inert(json.dumps({**fields, "isError": True} if outcome == Outcome.BAD else fields) + "\n")


def _message(report: Report) -> str:
    """Return the verdict, with the value and limit of the tightest gate; the answer if there is no gate."""
    outcome, word = outcome_of(report), word_of(report).lower()
    if report.shard is not None or warnings(report):
        return _cut(word)
    if outcome == Outcome.PART and (bare := without_gate(report)):
        word = f"passed, {counted(bare, 'case')} without a gate"
    gates = [(share, gate, case) for case in report.cases for gate in case.assertions if (share := _share(gate))]
    failed = any(not gate.passed for _, gate, _ in gates)
    if outcome == Outcome.BAD and not failed:
        return _cut(f"{word}: see the report")
    if gates:
        _, gate, case = max(gates, key=lambda row: row[0])
        return _cut(f"{word}: {_compared(gate, case)}")
    answers = [line for case in report.cases[:1] for line in headlines(case, _THREE)]
    answer = f": {answers[0]}" if len(report.cases) == 1 and answers and outcome != Outcome.BAD else ""
    return _cut(f"{word}{answer}".replace("\u2264", "<=").replace("\u2265", ">="))


def _share(gate: Assertion) -> float | None:
    share = share_used(gate)
    return (share if gate.passed else 1.0 + share) if share is not None else None


def _compared(gate: Assertion, case: Case) -> str:
    name = gate_name(gate.text)
    limit = gate.text.partition(name)[2].strip()
    return f"{name} {Judged(case, _THREE).value(gate)} ({limit})"


def _cut(text: str) -> str:
    return cut(printable(text), _MAX)
