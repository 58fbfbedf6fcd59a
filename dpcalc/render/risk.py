"""What an attacker can do, as a table and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpcalc.model.numbers import parse_number
from dpcalc.model.quantities import ATTACKS
from dpcalc.render.numbers import Side, number
from dpcalc.render.positions import record_meant
from dpcalc.report import Case, Report, attack_numbers

COLUMNS = ("at most", "by")


def risk_rows(case: Case, precision: int) -> list[tuple[str, ...]]:
    """Return a head and one row for each number; none where no risk was asked for."""
    if not case.risk:
        return []
    told = case.risk
    rows = [_row("advantage: true less false positives", told["advantage"], precision)]
    rows += [_row(f"true positives at {_percent(r['fpr'])} false ones", r, precision) for r in told["tpr"]]
    rows += [
        _row(f"guess right {_question(case)}, prior {_percent(r['prior'])}", r, precision) for r in told["success"]
    ]
    rows += [
        _row(f"guess a secret right that {_percent(r['baseline'])} guess without", r, precision)
        for r in told["reconstruction"]
    ]
    return [(_head(case), *COLUMNS), *rows]


def risk_names(report: Report) -> list[str]:
    """Return the columns of a table of several cases that have risks: what an assertion calls them."""
    told = [case.risk for case in report.cases if case.risk]
    answered = {result.quantity for case in report.cases for result in case.results}
    names = dict.fromkeys(name for risk in told for name in _by_name(risk))
    return [name for name in names if name not in answered]


def risk_cells(case: Case, names: Sequence[str], precision: int) -> list[str]:
    """Return a case's risks of these names, empty where it has none."""
    known = _by_name(case.risk) if case.risk else {}
    return [number(known[name], min(precision, 4), Side.UP) if name in known else "" for name in names]


def _by_name(risk: Mapping[str, Any]) -> dict[str, float]:
    named = ((name.partition("@"), value) for name, value in attack_numbers(risk).items())
    return {f"{name}@{_percent(float(at))}" if at else name: value for (name, _, at), value in named}


def _head(case: Case) -> str:
    """Return whose risk it is."""
    size = int(case.inputs.get("group_size", (1, ""))[0] or 1)
    about = record_meant(case) if size == 1 else f"{size} records together"
    return f"what an attacker can do about {about}" if about else "what an attacker can do"


def _question(case: Case) -> str:
    """Return what is guessed of the record."""
    adjacency = case.best.adjacency if case.best else ""
    return "whether it was there" if adjacency in _PRESENT else "which of two it is"


_PRESENT = ("add_remove", "null_record")
"""What neighbours differ in where a record is there or is not."""


def attack_row(case: Case, name: str, at: str = "") -> Mapping[str, Any] | None:
    """Return the number of a case that an assertion such as ``tpr@1%`` speaks of; None where it is none of these."""
    if not case.risk or name not in ATTACKS:
        return None
    if not ATTACKS[name]:
        found: Mapping[str, Any] = case.risk[name]
        return found
    return next((row for row in case.risk[name] if row[ATTACKS[name]] == parse_number(at)), None)


def _row(what: str, row: Mapping[str, Any], precision: int) -> tuple[str, ...]:
    return what, number(row["value"], min(precision, 4), Side.UP), row["bound"]


def _percent(share: float) -> str:
    """Return a share in percent, as it was typed."""
    return f"{number(100.0 * share, 6)}%"


def risk_lines(case: Case, precision: int) -> list[str]:
    """Return the same in words, and the mu that stands for the whole curve."""
    if not case.risk:
        return []
    told, lines = case.risk, []
    if told["tpr"] and case.best and case.best.adjacency in _PRESENT and _head(case).endswith(" can do"):
        row = told["tpr"][0]
        flagged, found = (number(1000.0 * row[name], 3, Side.UP) for name in ("fpr", "value"))
        lines.append(
            f"of 1000 people who are not in the data {flagged} are flagged; then of 1000 who are, on average at most "
            f"{found}"
        )
    if (least := told["advantage"].get("at_least")) is not None:
        lines.append(f"an attack with advantage {number(least, 4, Side.DOWN)} exists, on the worst data for the run")
    lines += _mu_lines(told["mu"], precision)
    if told["from_point"]:
        of_curve = case.guess is not None and not case.guess.from_point
        alone = "and of how often a guess is right" if of_curve else "alone"
        lines.append(f"this is of one (epsilon, delta) {alone}; the curve of the run, where it is known, gives less")
    return lines


def _mu_lines(mu: Mapping[str, Any] | None, precision: int) -> list[str]:
    if mu is None:
        return ["no finite mu"]
    value = number(mu["value"], precision, Side.UP)
    if mu["delta"] == 0.0:
        lost = f"; it overstates a right guess by up to {number(mu['regret'], 2, Side.UP)}" if mu["regret"] > 0 else ""
        return [f"Gaussian privacy with mu = {value} ({mu['bound']}){lost}"]
    delta = number(mu["delta"], 3, Side.UP)
    if "everywhere" in mu:
        whole = number(mu["everywhere"]["value"], precision, Side.UP)
        return [
            f"Gaussian privacy with mu = {whole} at every epsilon ({mu['everywhere']['bound']}); with mu = {value} "
            f"where delta is above {delta} ({mu['bound']})"
        ]
    return [f"no mu is known for the whole curve; mu = {value} holds where delta is above {delta} ({mu['bound']})"]
