"""How a report and its cases ended: one style, which is a colour, and the words of it."""

from __future__ import annotations

from dpcalc.render.check.verdicts import refused, shard_text
from dpcalc.render.words import training
from dpcalc.report import Case, Report, Status, uncertified

WORDS = {
    "ok": "Passed",
    "bad": "Not passed",
    "part": "Passed, with reservations",
    "plain": "No gate",
    "skip": "Skipped",
}
"""The verdict of a page or a case in words, by its style."""

_NOT_PRIVATE = "Not private"
_REFUSED = "Refused as expected"


def style_of(report: Report) -> str:
    """Return how a report ended.

    It is ok where there is a gate and every case has one that held; part where, besides, a case has no gate, was
    skipped or not selected, passed by an exception that it accepts, or asks for less than before, and where the report
    is of one shard; bad where something failed or a model is not private, else plain.
    """
    styles = [case_style(case) for case in report.cases]
    if "bad" in styles:
        return "bad"
    if "ok" not in styles:
        return "plain"
    accepted = any(case.check and case.check.accepted for case in report.cases)
    weaker = any(change.weaker for change in report.changes or ())
    less = without_gate(report) or "skip" in styles or report.not_selected or accepted or weaker or report.shard
    return "part" if less else "ok"


def case_style(case: Case) -> str:
    """Return how a case ended."""
    if training.warning(case):
        return "bad"
    if case.check is not None:
        if case.check.status == Status.SKIPPED:
            return "skip"
        if case.check.status != Status.PASSED or case.failed:
            return "bad"
        if refused(case):
            return "plain"
    elif case.failed or not case.best or uncertified(case):
        return "bad"
    return "ok" if case.assertions else "plain"


def word_of(report: Report) -> str:
    """Return the verdict on a report in a few words; of a shard, which one it is."""
    style = style_of(report)
    if any(training.warning(case) for case in report.cases):
        word = _NOT_PRIVATE
    elif style == "plain" and any(map(refused, report.cases)) and not without_gate(report):
        word = _REFUSED
    elif style == "part" and report.shard:
        word = "Passed so far"
    else:
        word = WORDS[style]
    return f"{shard_text(report).capitalize()}: {word.lower()}" if report.shard else word


def case_word(case: Case) -> str:
    """Return the verdict on a case in a few words."""
    if training.warning(case):
        return _NOT_PRIVATE
    return _REFUSED if refused(case) else WORDS[case_style(case)]


def without_gate(report: Report) -> int:
    """Return how many cases have an answer and no gate."""
    return sum(not case.assertions and case_style(case) == "plain" for case in report.cases)


def warnings(report: Report) -> list[str]:
    """Return why models are not private, each reason once."""
    return list(dict.fromkeys(said for case in report.cases if (said := training.warning(case))))
