"""A badge: the verdict and the gate with the least room, as an SVG or as JSON for shields.io (its endpoint schema)."""

from __future__ import annotations

import json

from dpcalc.inert import inert, printable
from dpcalc.render.asked import Asked
from dpcalc.render.check.verdicts import gate_name, gate_value, share_used
from dpcalc.render.numbers import Digits
from dpcalc.render.page.case import headlines
from dpcalc.render.page.outcome import style_of, warnings, without_gate, word_of
from dpcalc.render.page.svg import element, label, picture
from dpcalc.report import Assertion, Case, Report

_LABEL, _FORGETTING = "privacy", "unlearning"
_MAX = 60
_THREE = Digits(3)
_COLORS = {"ok": "#136533", "bad": "#a11b16", "part": "#7a4b00", "plain": "#4a5563"}
_NAMED = {"ok": "brightgreen", "bad": "red", "part": "yellow", "plain": "lightgrey"}
_PER_CHARACTER, _HEIGHT, _MARGIN = 6.4, 20.0, 7.0  # of 11 px letters


def render_badge(report: Report, asked: Asked) -> str:
    """Return the badge, as an SVG where the name of its file ends so, else as JSON.

    It is green only where every case has a gate, every gate held, no case was left out, none passed by an exception,
    and the report is no shard's.
    """
    style, message = style_of(report), _message(report)
    if asked.file.lower().endswith(".svg"):
        return inert(_drawn(message, style, _label(report)))
    found = {"schemaVersion": 1, "label": _label(report), "message": message, "color": _NAMED[style]}
    if style == "bad":
        found["isError"] = True
    return inert(json.dumps(found) + "\n")


def _message(report: Report) -> str:
    """Return the verdict, and the value and limit that are nearest to each other; the answer where there is no gate."""
    style, word = style_of(report), word_of(report).lower()
    if report.shard is not None or warnings(report):
        return _cut(word)
    if style == "part" and (bare := without_gate(report)):
        word = f"passed, {bare} case{'' if bare == 1 else 's'} without a gate"
    gates = [(share, gate, case) for case in report.cases for gate in case.assertions if (share := _share(gate))]
    failed = any(not gate.passed for _, gate, _ in gates)
    if style == "bad" and not failed:
        return _cut(f"{word}: see the report")
    if gates:
        _, gate, case = max(gates, key=lambda each: each[0])
        return _cut(f"{word}: {_compared(gate, case)}")
    answers = [line for case in report.cases[:1] for line in headlines(case, _THREE)]
    answer = f": {answers[0]}" if len(report.cases) == 1 and answers and style != "bad" else ""
    return _cut(f"{word}{answer}".replace("\u2264", "<=").replace("\u2265", ">="))


def _label(report: Report) -> str:
    """Return what the badge is about."""
    return _FORGETTING if any(case.forgetting for case in report.cases) else _LABEL


def _share(gate: Assertion) -> float | None:
    share = share_used(gate)
    return (share if gate.passed else 1.0 + share) if share is not None else None


def _compared(gate: Assertion, case: Case) -> str:
    name = gate_name(gate.text)
    limit = gate.text.partition(name)[2].strip()
    return f"{name} {gate_value(gate, case, _THREE)} ({limit})"


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _MAX else text[: _MAX - 3] + "..."


def _drawn(message: str, style: str, about: str) -> str:
    left, right = (_PER_CHARACTER * len(words) + 2.0 * _MARGIN for words in (about, message))
    font = {"font_family": "Verdana,DejaVu Sans,sans-serif", "font_size": "11", "fill": "#fff"}
    drawn = picture(
        "badge",
        (left + right, _HEIGHT),
        f"{about}: {message}",
        "The verdict of dpcalc on the gate with the least room.",
        element("rect", width=left, height=_HEIGHT, fill="#3b4350"),
        element("rect", x=left, width=right, height=_HEIGHT, fill=_COLORS[style]),
        element("g", label((_MARGIN, 14.0), about), label((left + _MARGIN, 14.0), message), **font),
    )
    size = f'xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="{_HEIGHT:.0f}"'
    text = drawn.replace("<svg ", f"<svg {size} ", 1)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n"
