"""What an audit found, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpcalc.render.numbers import Side, number
from dpcalc.report import Case, Report

_REFUTED = "THE RUNS CONTRADICT THE GUARANTEE, or chance did, which the confidence allows"

_NAMES = {"audited epsilon": "epsilon_lower", "audited mu": "mu_lower"}


def audit_lines(case: Case, precision: int) -> list[str]:
    """Return what was found, as "label: text"; nothing where there was no audit."""
    if not case.audit:
        return []
    told = case.audit
    found = []
    if told["epsilon_lower"] is not None:
        lower, delta = number(told["epsilon_lower"], precision, Side.DOWN), number(told["delta"], side=Side.AS_GIVEN)
        found.append(f"epsilon >= {lower} at delta = {delta}{_beside(told['epsilon'], precision)}")
    mu = number(told["mu_lower"], precision, Side.DOWN)
    found.append(f"mu >= {mu}, if Gaussian{_beside(told['mu'], precision)}")
    runs, pilot = told["replicas"], told["pilot"]
    lines = [
        f"audited: {'; '.join(found)}; with confidence {number(told['confidence'], side=Side.AS_GIVEN)}",
        f"attack: {told['attack']}: {told['others']}; looks at {told['looks_at']}; "
        f"{runs} runs on each of two data sets that differ in one record, "
        f"seed {told['seed']}; {pilot} of them chose the events and do not count",
    ]
    if told["exceeded"]:
        lines.append(f"verdict: {_REFUTED}")
    return lines


def refuted(case: Case) -> str:
    """Return what to say before a guarantee that the runs of an audit contradict; nothing of any other."""
    return f"{_REFUTED}: what follows may be false" if case.audit and case.audit["exceeded"] else ""


def audited_together(report: Report) -> Iterator[str]:
    """Yield how the cases of a table were audited, and that the confidence is that of each of them."""
    audits = [case.audit for case in report.cases if case.audit]
    if not audits:
        return
    told, attacks = audits[0], ", ".join(dict.fromkeys(each["attack"] for each in audits))
    yield (
        f"audited: the bounds on each case hold with confidence {number(told['confidence'], side=Side.AS_GIVEN)}; "
        f"attacks: {attacks}; {told['replicas']} runs on each of two data sets, seed {told['seed']}"
    )


def _beside(guaranteed: float | None, precision: int) -> str:
    return "" if guaranteed is None else f" (guaranteed: {number(guaranteed, precision, Side.UP)})"


def audit_names(report: Report) -> list[str]:
    """Return the columns of a table of several cases that were audited."""
    audits = [case.audit for case in report.cases if case.audit]
    return [name for name, key in _NAMES.items() if any(audit[key] is not None for audit in audits)]


def audit_cells(case: Case, names: Sequence[str], precision: int) -> list[str]:
    """Return what an audit of the case found, empty where there was none."""
    values = [case.audit[_NAMES[name]] if case.audit else None for name in names]
    return ["" if value is None else number(value, min(precision, 4), Side.DOWN) for value in values]
