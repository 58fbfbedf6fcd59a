"""How a report and its cases ended: an outcome, which is a colour, and the words of it."""

from __future__ import annotations

from dpcalc.plain_enum import PlainEnum
from dpcalc.render.check.verdicts import refused, shard_text
from dpcalc.render.words import training
from dpcalc.report import Case, Report, Status, uncertified


class Outcome(PlainEnum):
    """How a report or a case ended, and the name of its colour in the styles of a page."""

    OK = "ok"
    BAD = "bad"
    PART = "part"  # it passed, with reservations
    PLAIN = "plain"  # there is no gate
    SKIP = "skip"


WORDS = {
    Outcome.OK: "Passed",
    Outcome.BAD: "Not passed",
    Outcome.PART: "Passed, with reservations",
    Outcome.PLAIN: "No gate",
    Outcome.SKIP: "Skipped",
}
"""The verdict of a page or a case in words."""

_NOT_PRIVATE = "Not private"
_REFUSED = "Refused as expected"


def outcome_of(report: Report) -> Outcome:
    """Return how a report ended.

    It is ok where there is a gate and every case has one that held; part where, besides, a case has no gate, was
    skipped or not selected, passed by an exception that it accepts, or asks for less than before, and where the report
    is of one shard; bad where something failed or a model is not private, else plain.
    """
    outcomes = {case_outcome(case) for case in report.cases}
    if Outcome.BAD in outcomes:
        return Outcome.BAD
    if Outcome.OK not in outcomes:
        return Outcome.PLAIN
    accepted = any(case.check and case.check.accepted for case in report.cases)
    weaker = any(change.weaker for change in report.changes or ())
    less = without_gate(report) or Outcome.SKIP in outcomes or report.not_selected or accepted or weaker or report.shard
    return Outcome.PART if less else Outcome.OK


def case_outcome(case: Case) -> Outcome:
    """Return how a case ended."""
    if training.warning(case):
        return Outcome.BAD
    if case.check is not None:
        if case.check.status == Status.SKIPPED:
            return Outcome.SKIP
        if case.check.status != Status.PASSED or case.failed:
            return Outcome.BAD
        if refused(case):
            return Outcome.PLAIN
    elif case.failed or not case.best or uncertified(case):
        return Outcome.BAD
    return Outcome.OK if case.assertions else Outcome.PLAIN


def word_of(report: Report) -> str:
    """Return the verdict on a report in a few words; of a shard, which one it is."""
    outcome = outcome_of(report)
    if any(training.warning(case) for case in report.cases):
        word = _NOT_PRIVATE
    elif outcome == Outcome.PLAIN and any(map(refused, report.cases)) and not without_gate(report):
        word = _REFUSED
    elif outcome == Outcome.PART and report.shard:
        word = "Passed so far"
    else:
        word = WORDS[outcome]
    return f"{shard_text(report).capitalize()}: {word.lower()}" if report.shard else word


def case_word(case: Case) -> str:
    """Return the verdict on a case in a few words."""
    if training.warning(case):
        return _NOT_PRIVATE
    return _REFUSED if refused(case) else WORDS[case_outcome(case)]


def without_gate(report: Report) -> int:
    """Return how many cases have an answer and no gate."""
    return sum(not case.assertions and case_outcome(case) == Outcome.PLAIN for case in report.cases)


def warnings(report: Report) -> list[str]:
    """Return why models are not private, each reason once."""
    return list(dict.fromkeys(filter(None, map(training.warning, report.cases))))
