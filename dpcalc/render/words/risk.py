"""What an attacker can do, as a table and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpcalc.model.numbers import parse_number
from dpcalc.model.quantities import ATTACKS
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.words.positions import Neighbours, group_size, record_meant
from dpcalc.report import Case, Report, attack_numbers

COLUMNS = ("at most", "by")


def risk_rows(case: Case, digits: Digits) -> list[tuple[str, ...]]:
    """Return a head and one row for each number; none where no risk was asked for."""
    if not case.risk:
        return []
    risk = case.risk
    rows = [("advantage: true less false positives", risk["advantage"])]
    rows += [(f"true positives at {_percent(row['fpr'])} false ones", row) for row in risk["tpr"]]
    rows += [(f"guess right {_question(case)}, prior {_percent(row['prior'])}", row) for row in risk["success"]]
    rows += [
        (f"guess a secret right that {_percent(row['baseline'])} guess without", row) for row in risk["reconstruction"]
    ]
    few = digits.at_most(4)
    return [(_head(case), *COLUMNS), *((what, few.number(row["value"], Side.UP), row["bound"]) for what, row in rows)]


def risk_names(report: Report) -> list[str]:
    """Return the columns of a table of several cases that have risks: what an assertion calls them."""
    answered = {result.quantity for case in report.cases for result in case.results}
    names = dict.fromkeys(name for case in report.cases for name in _by_name(case))
    return [name for name in names if name not in answered]


def risk_cells(case: Case, names: Sequence[str], digits: Digits) -> list[str]:
    """Return a case's risks of these names, empty where it has none."""
    risks = _by_name(case)
    return [digits.at_most(4).number(risks[name], Side.UP) if name in risks else "" for name in names]


def _by_name(case: Case) -> dict[str, float]:
    named = ((name.partition("@"), value) for name, value in attack_numbers(case.risk).items())
    return {f"{name}@{_percent(float(at))}" if at else name: value for (name, _, at), value in named}


def _head(case: Case) -> str:
    """Return whose risk it is."""
    size = group_size(case)
    about = record_meant(case) if size == 1 else f"{size} records together"
    return f"what an attacker can do about {about}" if about else "what an attacker can do"


def _question(case: Case) -> str:
    """Return what is guessed of the record."""
    return "whether it was there" if _of_presence(case) else "which of two it is"


def _of_presence(case: Case) -> bool:
    """Return whether neighbours differ in that a record is there or is not."""
    return case.best is not None and case.best.adjacency in _PRESENT


_PRESENT: tuple[str, ...] = (Neighbours.ADD_REMOVE, Neighbours.NULL_RECORD)


def attack_row(case: Case, asserted: str) -> Mapping[str, Any] | None:
    """Return the number of a case that an assertion such as ``tpr@1%`` speaks of; None where it is none of these."""
    name, _, at = asserted.partition("@")
    if not case.risk or name not in ATTACKS:
        return None
    rows = case.risk[name] if ATTACKS[name] else [case.risk[name]]
    return next((row for row in rows if not ATTACKS[name] or row[ATTACKS[name]] == parse_number(at)), None)


def _percent(share: float) -> str:
    """Return a share in percent, as it was typed."""
    return f"{number(100.0 * share, 6)}%"


def risk_lines(case: Case, digits: Digits) -> list[str]:
    """Return the same in words, and the mu that stands for the whole curve."""
    if not case.risk:
        return []
    risk, lines = case.risk, []
    if risk["tpr"] and _of_presence(case) and _head(case).endswith(" can do"):
        flagged, caught = (number(1000.0 * risk["tpr"][0][name], 3, Side.UP) for name in ("fpr", "value"))
        lines.append(
            f"of 1000 people who are not in the data {flagged} are flagged; then of 1000 who are, on average at most "
            f"{caught}"
        )
    if (least := risk["advantage"].get("at_least")) is not None:
        lines.append(f"an attack with advantage {number(least, 4, Side.DOWN)} exists, on the worst data for the run")
    lines.append(_mu_line(case, digits))
    if risk["from_point"]:
        of_curve = case.guess is not None and not case.guess.from_point
        alone = "and of how often a guess is right" if of_curve else "alone"
        lines.append(f"this is of one (epsilon, delta) {alone}; the curve of the run, where it is known, gives less")
    return lines


def _mu_line(case: Case, digits: Digits) -> str:
    mu = (case.risk or {})["mu"]
    if mu is None:
        return "no finite mu"
    value = digits.number(mu["value"], Side.UP)
    if mu["delta"] == 0.0:
        regret = number(mu["regret"], 2, Side.UP)
        excess = f"; it overstates a right guess by up to {regret}" if mu["regret"] > 0 else ""
        return f"Gaussian privacy with mu = {value} ({mu['bound']}){excess}"
    delta = number(mu["delta"], 3, Side.UP)
    if whole := mu.get("everywhere"):
        return (
            f"Gaussian privacy with mu = {digits.number(whole['value'], Side.UP)} at every epsilon ({whole['bound']}); "
            f"with mu = {value} where delta is above {delta} ({mu['bound']})"
        )
    return f"no mu is known for the whole curve; mu = {value} holds where delta is above {delta} ({mu['bound']})"
