"""What cases are called on a page, and other words that its sections share."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from dpcalc.render.numbers import Side, number
from dpcalc.render.several import varying
from dpcalc.report import Case, Report, uncertified

MAX_NAME = 120
MAX_NAMES = 10


def name_of(report: Report, case: Case, place: int, several: bool = False) -> str:
    """Return what a case is called."""
    if case.check is not None:
        name = f"{case.check.file}: {case.check.name}" if several else case.check.name
    else:
        named = [case.algorithm] if case.algorithm else []
        varied = [name for name in varying(report) if name in case.inputs] if len(report.cases) > 1 else []
        values = [f"{name} = {number(case.inputs[name][0], side=Side.AS_GIVEN)}" for name in varied]
        name = ", ".join((*named, *values)) if values or len(report.cases) == 1 else f"{case.algorithm} {place}"
    return clipped(name)


def clipped(name: str) -> str:
    """Return a name, of one that is too long its beginning."""
    return name if len(name) <= MAX_NAME else name[:MAX_NAME] + "..."


def names_of(names: Sequence[str]) -> str:
    """Return names of cases, the first ones where there are many."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(map(clipped, names[:MAX_NAMES])) + more


def counted(count: int, one: str, several: str) -> str:
    """Return a number with its noun."""
    return f"{count} {one if count == 1 else several}"


def why_not(case: Case) -> str:
    """Return why a case has no guarantee, or did not pass."""
    if case.check is not None:
        return case.check.message or "The case did not pass."
    if uncertified(case):
        return "The guarantee is not certified."
    return f"There is no guarantee: {case.obstacles[0].because}." if case.obstacles else "There is no guarantee."


def typed(words: Sequence[str]) -> str:
    """Return the command line of these words; nothing of none."""
    return shlex.join(("dpcalc", *words)) if words else ""
