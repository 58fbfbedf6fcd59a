"""Why a case fails although its gates hold, and what a strict check requires.

A check is strict by ``--strict`` or by ``strict: true`` in a recipe, which no option takes back. It allows no skips,
no exceptions and no case that is left out; every case has a gate on a number, also one that expects a refusal and so
cannot have one, and what is gated is certified where a definition exists.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dpcalc.engine.gate import BOUND, Sign
from dpcalc.errors import SpecError
from dpcalc.report import Case, Check, Difference, Report, Status, uncertified

if TYPE_CHECKING:
    from dpcalc.recipes.recipe import Entry, Recipe

_NAMED = 20


def check_installed() -> None:
    """Raise SpecError where nothing can be certified, which a strict check does."""
    if importlib.util.find_spec("flint") is None:
        raise SpecError("a strict check certifies, which needs python-flint", "pip install python-flint")


def uncertified_of(case: Case) -> Iterator[str]:
    """Yield why a gated case fails that was to be certified: a definition exists, and did not prove its number."""
    for result in uncertified(case):
        if certifiable(result.bound):
            reason = (result.details or {})["not_certified"]
            yield f"not certified: {result.bound} has a definition that does not prove its number ({reason})"


def certifiable(bound: str) -> bool:
    """Return whether a guarantee has a definition that proves it if it is right."""
    from dpcalc.certify.case import has_definition, may_stay_open

    return has_definition(bound) and not may_stay_open(bound)


def objections_to(entry: Entry, case: Case) -> Iterator[str]:
    """Yield what a strict check misses in a case that was answered."""
    if not any(_limits(assertion.text) for assertion in case.assertions):
        yield "strict: the case has no gate on a number; write assert"
    if entry.command == "train" and case.best is not None and certifiable(case.best.bound):
        yield "strict: what is trained is not certified; gate the same run in a case of compare"
    if entry.accept:
        yield f"strict: the case accepts {', '.join(entry.accept)}, and a strict check accepts nothing"


def _limits(text: str) -> bool:
    """Return whether an assertion limits a number: a bound's name and an expected value do not."""
    return not text.startswith((BOUND, "error")) and Sign.EQUAL not in text


def skipped(reason: str) -> str:
    """Return why a strict check fails a case that is skipped."""
    return f"strict: the case is skipped ({reason}), and a strict check skips nothing"


def not_selected(
    recipes: Sequence[Recipe], cases: Sequence[Case], elsewhere: Iterable[tuple[Recipe, Entry]] = ()
) -> tuple[tuple[str, str], ...]:
    """Return file and name of every case that was not checked, here or ``elsewhere``."""
    seen = {(case.check.file, case.check.name) for case in cases if case.check}
    seen.update((recipe.file, entry.name) for recipe, entry in elsewhere)
    every = [(recipe.file, name) for recipe in recipes for name in recipe.entries]
    return tuple(one for one in dict.fromkeys(every) if one not in seen)


def left_out(recipes: Sequence[Recipe], missing: Sequence[tuple[str, str]], strict: bool) -> Iterator[Case]:
    """Yield a failed case for each recipe that is strict and of which cases were left out."""
    for file in dict.fromkeys(recipe.file for recipe in recipes if strict or recipe.strict):
        names = [name for of, name in missing if of == file]
        if names:
            yield _failed(file, f"strict: {len(names)} cases were not selected: {in_short(names)}")


def in_short(names: Sequence[str]) -> str:
    """Return the first of many names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _failed(file: str, message: str) -> Case:
    check = Check("strict", "check", file, 1, 1, Status.FAILED, message, None, 1, (), (message,), True)
    return Case("", {}, (), check=check)


def fail_weaker(report: Report, strict: Sequence[str]) -> Report:
    """Return the report with the cases failed that are strict and ask for less than in the baseline.

    Args:
        report: compared with the baseline.
        strict: the files of the recipes that are strict.
    """
    weaker: dict[tuple[str, str], list[str]] = {}
    for change in report.changes or ():
        if change.weaker:
            moved = f"{change.quantity or change.what}: {change.before or 'nothing'} -> {change.after or 'nothing'}"
            weaker.setdefault((change.file, change.name), []).append(f"strict: weaker than in the baseline: {moved}")
    cases = [_weakened(case, weaker) for case in report.cases]
    gone = [change for change in report.changes or () if change.what == Difference.REMOVED]
    if strict and gone:  # of whatever file: a recipe that moved would take its cases with it
        names = [f"{change.file}: {change.name}" for change in gone]
        cases.append(_failed(strict[0], f"strict: cases of the baseline are gone: {in_short(names)}"))
    return report._replace(cases=tuple(cases))


def _weakened(case: Case, weaker: dict[tuple[str, str], list[str]]) -> Case:
    check = case.check
    if check is None or not check.strict or check.status == Status.ERROR:
        return case
    objections = tuple(weaker.get((os.path.normpath(check.file), check.name), ()))
    if not objections:
        return case
    earlier = check.message if check.status == Status.FAILED else None
    message = "; ".join(filter(None, (earlier, *objections)))
    failed = check._replace(
        status=Status.FAILED, message=message, exit_code=1, objections=(*check.objections, *objections)
    )
    return case._replace(check=failed)
