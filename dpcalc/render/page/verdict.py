"""The verdict of a page: its sentence, its counts, what it does not cover, and the table of gates.

The outcome of a report or a case has a colour and words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dpcalc.checked import Status
from dpcalc.plain_enum import PlainEnum
from dpcalc.render.check.verdicts import (
    MERGE,
    PUBLIC,
    Judged,
    Row,
    gate_name,
    not_private,
    refused,
    several_files,
    shard_text,
    share_used,
)
from dpcalc.render.layout import counted
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.page.figures import name_of, names_of, why_not
from dpcalc.render.words import risk
from dpcalc.render.words.sentences import certified_counts
from dpcalc.report import Case, Report, uncertified


class Outcome(PlainEnum):
    """The outcome of a report or a case, which is also the name of its colour in the styles of a page."""

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
    """Return the outcome of a report.

    It is bad if something failed or a model is not private. Else it is plain if no gate held. Else it is part if a case
    has no gate, was skipped or not selected, passed by an accepted exception, or asks for less than before, or if the
    report is of one shard. Else it is ok.
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
    """Return the outcome of a case."""
    if risk.warning(case):
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
    """Return the verdict on a report in a few words; for a shard, also its number."""
    outcome = outcome_of(report)
    if any(risk.warning(case) for case in report.cases):
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
    if risk.warning(case):
        return _NOT_PRIVATE
    return _REFUSED if refused(case) else WORDS[case_outcome(case)]


def without_gate(report: Report) -> int:
    """Return the number of cases with an answer but no gate on a number."""
    bare = (case for case in report.cases if case.best and not any(gate.limits for gate in case.assertions))
    return sum(case_outcome(case) in (Outcome.OK, Outcome.PLAIN) for case in bare)


def warnings(report: Report) -> list[str]:
    """Return why models are not private, each reason once."""
    return list(dict.fromkeys(filter(None, map(risk.warning, report.cases))))


class Verdict(NamedTuple):
    """A row of the table of verdicts: the number of its case, the outcome, the comparison, and the share used."""

    number: int
    outcome: Outcome
    word: str
    case: str
    row: Row
    share: float | None

    @property
    def used(self) -> str:
        """The share of the limit that is used, in percent."""
        return "" if self.share is None else _percent(self.share)


def verdict_of(report: Report) -> str:
    """Return the verdict in a sentence."""
    count, outcomes = len(report.cases), [case_outcome(case) for case in report.cases]
    if public := sum(bool(risk.warning(case)) for case in report.cases):
        return _FORGETS if any(case.forgetting for case in report.cases) else _not_private(public, count)
    gates = [gate for case in report.cases for gate in case.assertions]
    held = f"{sum(gate.passed for gate in gates)} of {len(gates)} gates held."
    if Outcome.BAD in outcomes and count == 1:
        return held if gates else why_not(report.cases[0])
    if Outcome.BAD in outcomes:
        return f"{outcomes.count(Outcome.BAD)} of {count} cases did not pass; {held}"
    if gates and all(map(refused, (case for case in report.cases if case.assertions))):
        return f"{counted(len(gates), 'refusal', 'refusals')} as expected; no gate guarantees anything."
    if Outcome.OK in outcomes:
        in_cases = f", in {count} cases" if count > 1 else ""
        return "The gate held." if len(gates) == 1 else f"All {len(gates)} gates held{in_cases}."
    return f"No gate was set: {'this is an answer' if count == 1 else f'these are {count} answers'}, and no verdict."


_FORGETS = "Records were forgotten; for those that were kept this is no guarantee."


def _not_private(public: int, count: int) -> str:
    """Return the verdict if models are not private."""
    models = "The model is" if count == public == 1 else f"{counted(public, 'model is', 'models are')}"
    return f"{models} not private: the guarantee holds of the algorithm with noise that nobody can draw again."


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the counts, each with its words."""
    gates = [gate for case in report.cases for gate in case.assertions]
    if gates:
        yield f"{sum(gate.passed for gate in gates)} of {len(gates)}", "gates held"
    if gates and len(report.cases) > 1:
        good = sum(case_outcome(case) == Outcome.OK for case in report.cases)
        yield f"{good} of {len(report.cases)}", "cases passed"
    used = [(share, gate) for gate in gates if (share := share_used(gate)) is not None]
    if used:
        share, gate = max(used, key=lambda pair: pair[0])
        yield _percent(share), f"of its limit: the gate with the least room ({gate_name(gate.text)})"
    certified, tried = certified_counts(report)
    if tried:
        yield f"{certified} of {tried}", "answers certified"


def _percent(share: float) -> str:
    """Return the used share of a limit, rounded up."""
    return f"{number(100.0 * share * (1.0 + 2.0**-40), 3, Side.UP)}%" if share < 100.0 else "over 100 times"


def reservations(report: Report) -> list[str]:
    """Return what a verdict does not cover."""
    lines = warnings(report)
    if report.shard is not None:
        lines.append(f"this is {shard_text(report)}: the other cases were not judged here, and {MERGE}")
    skipped = [case.check.name for case in report.cases if case.check and case.check.status == Status.SKIPPED]
    bare = without_gate(report)
    refusals = sum(map(refused, report.cases))
    if skipped:
        lines.append(f"{counted(len(skipped), 'case is skipped', 'cases are skipped')}: {names_of(skipped)}")
    if bare and any(case.assertions for case in report.cases):
        lines.append(counted(bare, "case has no gate", "cases have no gate"))
    if refusals:
        lines.append(
            counted(refusals, "case was refused as expected and has", "cases were refused as expected and have")
            + " no guarantee"
        )
    if report.not_selected:
        count = counted(len(report.not_selected), "case was not selected", "cases were not selected")
        lines.append(f"{count}: {names_of([name for _, name in report.not_selected])}")
    weaker = sum(change.weaker for change in report.changes or ())
    lines += [counted(weaker, "change asks for less", "changes ask for less") + " than the baseline"] if weaker else []
    accepted = sorted({name for case in report.cases if case.check for name in case.check.accepted})
    lines += [f"accepted by name: {', '.join(accepted)}"] if accepted else []
    return list(dict.fromkeys(lines))


def verdicts(report: Report, digits: Digits) -> Iterator[Verdict]:
    """Yield a row for every gate, and for every case without one."""
    several = several_files(report)
    for place, case in enumerate(report.cases, 1):
        name = name_of(report, case, place, several)
        for row in _rows(Judged(case, digits)):
            share = None if row.gate is None else share_used(row.gate)
            outcome, word = _ended(row, case)
            yield Verdict(place, outcome, word, name, row, share)


def _rows(one: Judged) -> list[Row]:
    """Return a row for every gate of a case, or for its answers if it has none."""
    if one.case.check is not None or one.case.assertions:
        return one.gate_rows if one.case.check is None else one.rows
    answers = [Row(Status.PASSED, r.quantity, one.digits.value(r)) for r in one.case.answers]
    return answers or [Row(Status.ERROR, "", "none")]


def _ended(row: Row, case: Case) -> tuple[Outcome, str]:
    """Return the outcome of a row, considering faults of its whole case and what its gate does not cover."""
    if not_private(case):
        return Outcome.BAD, PUBLIC
    if refused(case):
        return Outcome.PLAIN, "refused"
    if row.status == Status.SKIPPED:
        return Outcome.SKIP, "skipped"
    if row.status != Status.PASSED:
        return Outcome.BAD, "FAIL"
    return (Outcome.OK, "pass") if row.gate is not None else (Outcome.PLAIN, "no gate")
