"""What an audit found, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpcalc.render.numbers import Digits, Side, number
from dpcalc.report import Case, Report

_REFUTED = "THE RUNS CONTRADICT THE GUARANTEE, or chance did, which the confidence allows"

_NAMES = {"audited epsilon": "epsilon_lower", "audited mu": "mu_lower"}


def audit_facts(case: Case, digits: Digits) -> list[tuple[str, str]]:
    """Return what was found, each with its label; nothing where there was no audit."""
    if not case.audit:
        return []
    audit, bounds = case.audit, []
    beside = {
        name: "" if audit[name] is None else f" (guaranteed: {digits.number(audit[name], Side.UP)})"
        for name in ("epsilon", "mu")
    }
    if audit["epsilon_lower"] is not None:
        lower, delta = digits.number(audit["epsilon_lower"], Side.DOWN), number(audit["delta"], side=Side.AS_GIVEN)
        bounds.append(f"epsilon >= {lower} at delta = {delta}{beside['epsilon']}")
    bounds.append(f"mu >= {digits.number(audit['mu_lower'], Side.DOWN)}, if Gaussian{beside['mu']}")
    confidence = number(audit["confidence"], side=Side.AS_GIVEN)
    facts = [
        ("audited", f"{'; '.join(bounds)}; with confidence {confidence}"),
        (
            "attack",
            f"{audit['attack']}: {audit['others']}; looks at {audit['looks_at']}; {audit['replicas']} runs on each of "
            f"two data sets that differ in one record, seed {audit['seed']}; {audit['pilot']} of them chose the events "
            "and do not count",
        ),
    ]
    return [*facts, ("verdict", _REFUTED)] if audit["exceeded"] else facts


def refuted(case: Case) -> str:
    """Return what to say before a guarantee that the runs of an audit contradict; nothing of any other."""
    return f"{_REFUTED}: what follows may be false" if case.audit and case.audit["exceeded"] else ""


def audited_together(report: Report) -> Iterator[str]:
    """Yield how the cases of a table were audited, and that the confidence is that of each of them."""
    audits = [case.audit for case in report.cases if case.audit]
    if audits:
        first, attacks = audits[0], ", ".join(dict.fromkeys(audit["attack"] for audit in audits))
        yield (
            f"audited: the bounds on each case hold with confidence {number(first['confidence'], side=Side.AS_GIVEN)}; "
            f"attacks: {attacks}; {first['replicas']} runs on each of two data sets, seed {first['seed']}"
        )


def audit_names(report: Report) -> list[str]:
    """Return the columns of a table of several cases that were audited."""
    audits = [case.audit for case in report.cases if case.audit]
    return [name for name, key in _NAMES.items() if any(audit[key] is not None for audit in audits)]


def audit_cells(case: Case, names: Sequence[str], digits: Digits) -> list[str]:
    """Return what an audit of the case found, empty where there was none."""
    values = [case.audit[_NAMES[name]] if case.audit else None for name in names]
    return ["" if value is None else digits.at_most(4).number(value, Side.DOWN) for value in values]
