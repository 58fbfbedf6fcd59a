"""The verdict of a page: its sentence, what is counted, what it does not speak of, and the table of gates."""

from __future__ import annotations

from typing import NamedTuple

from dpcalc.render.check.verdicts import (
    MERGE,
    PUBLIC,
    Row,
    checked,
    gate_name,
    gate_rows,
    not_private,
    refused,
    rows,
    shard_text,
    share_used,
)
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.page.names import counted, name_of, names_of, why_not
from dpcalc.render.page.outcome import case_style, warnings, without_gate
from dpcalc.render.words import training
from dpcalc.report import Assertion, Case, Report, Status


class Verdict(NamedTuple):
    """A row of the table of verdicts: where it leads, how it ended, what was compared and how much is used."""

    number: int
    style: str
    word: str
    case: str
    row: Row
    share: float | None
    used: str
    linked: bool = True


def verdict_of(report: Report, style: str, digits: Digits) -> str:
    """Return the verdict in a sentence."""
    count = len(report.cases)
    bad = sum(case_style(case) == "bad" for case in report.cases)
    if public := sum(bool(training.warning(case)) for case in report.cases):
        return _FORGETS if any(case.forgetting for case in report.cases) else _not_private(public, count)
    gates = [gate for case in report.cases for gate in case.assertions]
    held = sum(gate.passed for gate in gates)
    if style == "bad" and count == 1:
        return f"{held} of {len(gates)} gates held." if gates else why_not(report.cases[0])
    if style == "bad":
        return f"{bad} of {count} cases did not pass; {held} of {len(gates)} gates held."
    if gates and all(map(refused, (case for case in report.cases if case.assertions))):
        return f"{counted(len(gates), 'refusal', 'refusals')} as expected; no gate guarantees anything."
    if style in ("ok", "part"):
        return "The gate held." if len(gates) == 1 else f"All {len(gates)} gates held{_in_cases(count)}."
    return f"No gate was set: {'this is an answer' if count == 1 else f'these are {count} answers'}, and no verdict."


_FORGETS = "Records were forgotten; for those that were kept this is no guarantee."


def _not_private(public: int, count: int) -> str:
    """Return the verdict where models are not private."""
    models = "The model is" if count == public == 1 else f"{counted(public, 'model is', 'models are')}"
    return f"{models} not private: the guarantee holds of the algorithm with noise that nobody can draw again."


def _in_cases(count: int) -> str:
    return f", in {count} cases" if count > 1 else ""


def facts(report: Report) -> list[tuple[str, str]]:
    """Return what is counted, each number with its words."""
    gates = [gate for case in report.cases for gate in case.assertions]
    facts = []
    if gates:
        facts.append((f"{sum(gate.passed for gate in gates)} of {len(gates)}", "gates held"))
    if gates and len(report.cases) > 1:
        good = sum(case_style(case) == "ok" for case in report.cases)
        facts.append((f"{good} of {len(report.cases)}", "cases passed"))
    used = [(share, gate) for gate in gates if (share := share_used(gate)) is not None]
    if used:
        share, gate = max(used, key=lambda pair: pair[0])
        facts.append((_percent(share), f"of its limit: the gate with the least room ({gate_name(gate.text)})"))
    details = [(r.details or {}).keys() for case in report.cases for r in case.results if r.best]
    tried = [names for names in details if names & {"certified", "not_certified"}]
    if tried:
        facts.append((f"{sum('certified' in names for names in tried)} of {len(tried)}", "answers certified"))
    return facts


def _percent(share: float) -> str:
    """Return how much of a limit is used, rounded up."""
    return f"{number(100.0 * share * (1.0 + 2.0**-40), 3, Side.UP)}%" if share < 100.0 else "over 100 times"


def reservations(report: Report) -> list[str]:
    """Return what a verdict does not speak of."""
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


def verdicts(report: Report, full: set[int], digits: Digits) -> list[Verdict]:
    """Return a row for every gate, and for every case without one."""
    several = len({check.file for check, _ in checked(report)}) > 1
    return [
        _qualified(row, case)._replace(linked=place in full)
        for place, case in enumerate(report.cases, 1)
        for row in _case_verdicts(place, case, name_of(report, case, place, several), digits)
    ]


def _qualified(row: Verdict, case: Case) -> Verdict:
    """Return a row with what is wrong with its case as a whole, or what its gate does not say."""
    if not_private(case):
        return row._replace(style="bad", word=PUBLIC)
    return row._replace(style="plain", word="refused") if refused(case) else row


def _case_verdicts(place: int, case: Case, name: str, digits: Digits) -> list[Verdict]:
    gates = case.assertions
    if case.check is not None:
        found = rows(case.check, case, digits)
    elif gates:
        found = gate_rows(case, digits)
    else:
        found = [Row(Status.PASSED, r.quantity, digits.value(r)) for r in case.results if r.best]
        found = found or [Row(Status.ERROR, "", "none")]
    own = list(gates) if len(found) == len(gates) else [None] * (len(found) - len(gates)) + list(gates)
    return [_row_verdict(place, name, row, gate) for row, gate in zip(found, own, strict=True)]


def _row_verdict(place: int, name: str, row: Row, gate: Assertion | None) -> Verdict:
    if row.status == Status.SKIPPED:
        style = "skip"
    elif row.status != Status.PASSED:
        style = "bad"
    else:
        style = "ok" if gate is not None else "plain"
    share = share_used(gate) if gate is not None else None
    return Verdict(place, style, _ROW_WORDS[style], name, row, share, _percent(share) if share is not None else "")


_ROW_WORDS = {"ok": "pass", "bad": "FAIL", "plain": "no gate", "skip": "skipped"}
