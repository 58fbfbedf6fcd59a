"""Checking recipes: their cases chosen, evaluated, judged and summed up."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.files.place import FileError
from dpcalc.recipes.judging.objections import check_installed, left_out, not_selected
from dpcalc.recipes.judging.policy import LENIENT, Policy
from dpcalc.recipes.judging.verdict import Seen, error, judged
from dpcalc.recipes.reading.matrix import MAX_CASES
from dpcalc.recipes.reading.read import read
from dpcalc.recipes.reading.recipe import Entry, Malformed, Recipe
from dpcalc.recipes.running.evaluate import Limits, answers, broken
from dpcalc.render.notes import report
from dpcalc.report import Case, Check, Report, Status


class Selected(NamedTuple):
    """A case chosen to be checked, and the recipe it is from."""

    recipe: Recipe
    entry: Entry


def read_all(paths: Sequence[str], most: int = MAX_CASES, policy: Policy = LENIENT) -> list[Recipe]:
    """Return the recipes in some files, each of ``most`` cases at most, with what a policy demands of them.

    Raises:
        Malformed: some are not recipes; what is wrong with any of them is in its ``errors``.
        SpecError: there are no files.
    """
    if not paths:
        raise SpecError("no recipe was given", "name at least one file")
    recipes, errors = list[Recipe](), list[FileError]()
    for path in paths:
        try:
            recipes.append(read(path, most, policy=policy))
        except Malformed as refusal:
            errors += refusal.errors
    if errors:
        raise Malformed(errors)
    return recipes


def select(recipes: Iterable[Recipe], pattern: str | None = None) -> list[Selected]:
    """Return the cases whose names match a regular expression somewhere; all for None.

    Raises:
        SpecError: it is none, or no case matches.
    """
    every = [Selected(recipe, entry) for recipe in recipes for entry in recipe.every()]
    if pattern is None:
        return every
    try:
        chosen = [one for one in every if re.search(pattern, one.entry.name)]
    except (re.error, OverflowError, RecursionError) as why:
        raise SpecError(f"{pattern!r} is not a regular expression: {why}", "for example 'sweep|budget'") from None
    if not chosen:
        raise SpecError(f"no case matches {pattern!r}", f"there are {len(every)}, {every[0].entry.name} the first")
    return chosen


def with_curves(selected: Iterable[Selected]) -> list[Selected]:
    """Return the cases with the question about the curves behind their answers."""
    return [
        one._replace(entry=one.entry._replace(question=one.entry.question._replace(curves=True))) for one in selected
    ]


def refuse_all_skipped(selected: Sequence[Selected]) -> None:
    """Raise SpecError where every case is skipped, so that nothing would be checked."""
    if all(one.entry.skip is not None for one in selected):
        raise SpecError(f"all {len(selected)} cases are skipped: nothing was checked", "remove a skip")


def checked(
    selected: Sequence[Selected],
    *,
    jobs: int = 1,
    fail_fast: bool = False,
    certify: bool = False,
    limits: Limits = Limits(),  # noqa: B008 (a tuple)
) -> Generator[Case]:
    """Yield the cases evaluated and judged, in their order; the results do not depend on ``jobs``.

    Args:
        selected: what to check.
        jobs: how many processes share the work.
        fail_fast: whether to stop after the first case that fails or has no answer.
        certify: whether to recompute the guarantees in ball arithmetic; a gated case fails whose guarantee has a
            definition and could not be, and one without a definition is a warning of its case.
        limits: of each case; one that exceeds them is an error, and costs no other its verdict.

    Raises:
        SpecError: a strict check without python-flint.
    """
    if any(one.entry.rule.certified for one in selected):
        check_installed()
    to_answer = [one.entry for one in selected if one.entry.skip is None]
    seen = Seen()
    with answers(to_answer, jobs, certify, limits) as outcomes:
        for recipe, entry in selected:
            try:
                case = judged(recipe, entry, outcomes, certify=certify, seen=seen)
            except Exception as unexpected:
                case = error(entry, entry.place, broken(unexpected))
            yield case
            if fail_fast and case.check is not None and case.check.exit_code:
                return


def summed_up(recipes: Sequence[Recipe], cases: Sequence[Case], *, elsewhere: Iterable[Selected] = ()) -> Report:
    """Return the report on the cases checked, with what was not selected of their recipes.

    Args:
        recipes: as read.
        cases: that were checked.
        elsewhere: the cases that are checked in other shards.
    """
    missing = not_selected(recipes, cases, elsewhere)
    every = report("check", (*cases, *left_out(recipes, missing)))
    return every._replace(not_selected=missing)


def exit_code(cases: Iterable[Case]) -> int:
    """Return what a check of these cases exits with, by `PRECEDENCE`."""
    return Report("check", tuple(cases)).exit_code


def malformed(refusal: Malformed) -> list[Case]:
    """Return what is wrong with recipes as cases, for reports that a machine reads."""
    return [_malformed_case(one) for one in refusal.errors]


def _malformed_case(mistake: FileError) -> Case:
    place = mistake.place
    check = Check(
        "recipe",
        "check",
        place.file,
        max(1, place.line),
        max(1, place.column),
        Status.ERROR,
        mistake.what,
        mistake.hint,
        2,
    )
    return Case("", {}, (), check=check)
