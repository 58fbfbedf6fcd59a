"""Evaluating a recipe's cases, in this process or in several, and judging what they claim."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from dpcalc import fitting
from dpcalc.commands import COMMANDS, ask
from dpcalc.errors import Disproved, DpcalcError, SpecError
from dpcalc.query import inputs_of
from dpcalc.recipes.claims import ERRORS, Claim, Expectation, compared, verdict
from dpcalc.recipes.expand import SETUP, Entry, Malformed, Recipe, read
from dpcalc.recipes.nodes import Place, RecipeError
from dpcalc.recipes.values import in_words
from dpcalc.report import Assertion, Case, Check, Obstacle, uncertified

_CHUNKS = 8  # per process: few enough that handing over costs nothing, enough that none waits long for the last

PRECEDENCE = (2, 4, 3, 1)
"""Exit codes, the most telling first: a case that is malformed, dpcalc at fault, no valid answer, a failed gate."""


class Selected(NamedTuple):
    """A case chosen to be checked, and the recipe it is from."""

    recipe: Recipe
    entry: Entry


class Outcome(NamedTuple):
    """What became of a case: its answer, or the refusal."""

    case: Case | None
    kind: str = ""
    message: str = ""
    hint: str | None = None
    exit_code: int = 0


def read_all(paths: Sequence[str]) -> list[Recipe]:
    """Return the recipes in some files.

    Raises:
        Malformed: some are not recipes; what is wrong with any of them is in its ``errors``.
        SpecError: there are no files.
    """
    if not paths:
        raise SpecError("no recipe was given", "name at least one file")
    recipes, errors = list[Recipe](), list[RecipeError]()
    for path in paths:
        try:
            recipes.append(read(path))
        except Malformed as error:
            errors += error.errors
    if errors:
        raise Malformed(errors)
    return recipes


def select(recipes: Iterable[Recipe], pattern: str | None = None) -> list[Selected]:
    """Return the cases whose names match a regular expression somewhere; all for None.

    Raises:
        SpecError: it is none, or no case matches.
    """
    every = [Selected(recipe, entry) for recipe in recipes for entry in recipe.entries.values()]
    if pattern is None:
        return every
    try:
        chosen = [one for one in every if re.search(pattern, one.entry.name)]
    except (re.error, OverflowError, RecursionError) as error:
        raise SpecError(f"{pattern!r} is not a regular expression: {error}", "for example 'sweep|budget'") from None
    if not chosen:
        raise SpecError(f"no case matches {pattern!r}", f"there are {len(every)}, {every[0].entry.name} the first")
    return chosen


def checked(
    selected: Sequence[Selected], *, jobs: int = 1, fail_fast: bool = False, certify: bool = False
) -> Iterator[Case]:
    """Yield the cases evaluated and judged, in their order; the results do not depend on ``jobs``.

    Args:
        selected: what to check.
        jobs: how many processes share the work.
        fail_fast: whether to stop after the first case that fails or has no answer.
        certify: whether to recompute the guarantees in ball arithmetic; what could not be is a warning of its case.

    Raises:
        SpecError: every case is skipped, so that nothing would be checked.
    """
    due = [one.entry for one in selected if one.entry.skip is None]
    if not due:
        raise SpecError(f"all {len(selected)} cases are skipped: nothing was checked", "remove a skip")
    known: dict[int, Outcome] = {}

    def outcome(entry: Entry) -> Outcome:
        if id(entry) not in known:
            known[id(entry)] = evaluate(entry, certify=certify)
        return known[id(entry)]

    ahead = _in_processes(due, jobs, certify) if jobs > 1 and len(due) > jobs else None
    for recipe, entry in selected:
        if ahead is not None and entry.skip is None:
            known[id(entry)] = next(ahead)
        case = judged(recipe, entry, outcome)
        yield case
        if fail_fast and case.check is not None and case.check.exit_code:
            return


def exit_code(cases: Iterable[Case]) -> int:
    """Return what a check of these cases exits with, by `PRECEDENCE`."""
    codes = {case.check.exit_code for case in cases if case.check}
    return next((code for code in PRECEDENCE if code in codes), 0)


def evaluate(entry: Entry, *, certify: bool = False) -> Outcome:
    """Return the answer to a case, or why there is none."""
    try:
        return Outcome(_answer(entry, certify))
    except Disproved as error:
        return Outcome(None, "Disproved", f"{error.message}: {'; '.join(error.report.splitlines())}", None, 4)
    except DpcalcError as error:
        return Outcome(None, type(error).__name__, error.message, in_words(error.hint), error.exit_code)
    except MemoryError:
        return Outcome(None, "MemoryError", "not enough memory", "a shorter schedule", 3)
    except Exception as error:  # one broken case must not hide the verdict on the others
        if os.environ.get("DPCALC_DEBUG") == "1":
            raise
        said = " ".join(str(error).split())
        return Outcome(None, "", f"internal error: {type(error).__name__}: {said}", "set DPCALC_DEBUG=1", 4)


def _answer(entry: Entry, certify: bool) -> Case:
    if entry.command != "train":
        case = ask(entry.command, entry.given, entry.question, notes=False, best_only=True, certified=certify)
        return _warned(case) if certify else case
    setup = fitting.Setup(**{name: value for name, value in entry.given.items() if name in SETUP})
    fitting.check_setup(setup)
    run = {name: value for name, value in entry.given.items() if name not in SETUP}
    case = fitting.fitted(run, entry.question, setup).case
    return case._replace(warnings=(*case.warnings, "what is trained is not certified")) if certify else case


def _warned(case: Case) -> Case:
    """Return the case with a warning for each best guarantee that could not be certified."""
    opened = [f"{r.bound} is not certified: {(r.details or {})['not_certified']}" for r in uncertified(case)]
    return case._replace(warnings=(*case.warnings, *opened))


def _in_processes(entries: Sequence[Entry], jobs: int, certify: bool) -> Iterator[Outcome]:
    """Yield the outcomes, computed by several processes."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    size = max(1, len(entries) // (jobs * _CHUNKS))
    slim = [entry._replace(claims=(), expected=None) for entry in entries]
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _die_quietly)
    try:
        yield from pool.map(functools.partial(evaluate, certify=certify), slim, chunksize=size)
    except BrokenProcessPool:
        raise DpcalcError(
            "a process that shared the work was ended from outside", "fewer --jobs need less memory"
        ) from None
    except KeyboardInterrupt:  # of SIGTERM the workers are not told
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _die_quietly() -> None:
    """Let an interrupt end a worker without a word; the main process says what is to be said."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)


def judged(recipe: Recipe, entry: Entry, outcome: Callable[[Entry], Outcome]) -> Case:
    """Return a case with its verdict; ``outcome`` answers it and those it is compared with."""
    if entry.skip is not None:
        return _unanswered(entry, _check(entry, entry.place, "skipped", entry.skip))
    found = outcome(entry)
    if entry.expected is not None and entry.expected.error is not None:
        return _refused(entry, entry.expected.error, entry.expected.place, found)
    if found.case is None:
        return _error(entry, entry.place, found)
    case = found.case._replace(notes=(*found.case.notes, *entry.notes, *_by_default(found.case)))
    verdicts = [(entry.place, assertion) for assertion in case.assertions]
    said: list[Claim | Expectation] = [*entry.claims, *(entry.expected.values if entry.expected else ())]
    for claim in said:
        try:
            verdicts.append((claim.place, _verdict(claim, case, recipe, outcome)))
        except DpcalcError as error:
            return _error(entry, claim.place, Outcome(None, "", error.message, error.hint, error.exit_code), case)
    case = case._replace(assertions=tuple(assertion for _, assertion in verdicts))
    failed = [(place, assertion) for place, assertion in verdicts if not assertion.passed]
    if not failed:
        return case._replace(check=_check(entry, entry.place, "passed"))
    message = "; ".join(told(assertion, case) for _, assertion in failed)
    return case._replace(check=_check(entry, failed[0][0], "failed", message, None, 1))


def _by_default(case: Case) -> tuple[str, ...]:
    """Say that one pass was accounted for where the number of passes, which privacy hangs on, was not given."""
    if case.inputs.get("epochs", (None, ""))[1] != "default":
        return ()
    return (f"epochs is not given: one pass of {case.algorithm} is accounted for",)


def _verdict(claim: Claim | Expectation, case: Case, recipe: Recipe, outcome: Callable[[Entry], Outcome]) -> Assertion:
    if isinstance(claim, Expectation):
        return compared(claim, case)

    def lookup(name: str) -> Case:
        found = outcome(recipe.named(name))
        if found.case is None:
            error = DpcalcError(f"case {name}, compared with, has no answer: {found.message}", found.hint)
            error.exit_code = found.exit_code
            raise error
        return found.case

    return verdict(claim, case, lookup)


def told(assertion: Assertion, case: Case) -> str:
    """Return a failed assertion in words: what was found, by which bound, and by how much it misses."""
    found = assertion.value if isinstance(assertion.value, str) else repr(assertion.value)
    by = f" by {case.best.bound}" if case.best and assertion.slack is not None else ""
    missed = f", over by {-assertion.slack:.3g}" if assertion.slack is not None else ""
    rounding = " (rounding alone)" if assertion.by_rounding else ""
    return f"{assertion.text} does not hold: {found}{by}{missed}{rounding}"


def _refused(entry: Entry, wanted: str, place: Place, found: Outcome) -> Case:
    """Return the verdict on a case that is expected to have no answer."""
    if found.case is not None:
        best = found.case.best
        value: float | str = best.value if best else "no guarantee"
        missed = Assertion(f"error=={wanted}", False, value, None)
        message = f"{wanted} was expected, and there is an answer: {value!r}"
        return found.case._replace(assertions=(missed,), check=_check(entry, place, "failed", message, None, 1))
    if found.kind != ERRORS[wanted]:
        return _error(entry, entry.place, found)
    case = _unanswered(entry, _check(entry, entry.place, "passed", found.message))
    return case._replace(assertions=(Assertion(f"error=={wanted}", True, wanted, None),))


def _error(entry: Entry, place: Place, found: Outcome, case: Case | None = None) -> Case:
    check = _check(entry, place, "error", found.message, found.hint, found.exit_code)
    if case is not None:
        return case._replace(check=check)
    case = _unanswered(entry, check)
    return case._replace(obstacles=(Obstacle(case.algorithm, found.message, found.hint or ""),))


def _unanswered(entry: Entry, check: Check) -> Case:
    """Return a case without results."""
    algorithm = str(entry.given.get("algorithm") or COMMANDS[entry.command].algorithms[0])
    given = {name: value for name, value in entry.given.items() if name not in ("algorithm", *SETUP)}
    inputs = inputs_of(given, dict.fromkeys(given, "argument"), entry.question)
    return Case(algorithm, inputs, (), notes=entry.notes, check=check)


def _check(
    entry: Entry, place: Place, status: str, message: str | None = None, hint: str | None = None, code: int = 0
) -> Check:
    return Check(entry.name, entry.command, entry.place.file, place.line, place.column, status, message, hint, code)


def malformed(error: Malformed) -> list[Case]:
    """Return what is wrong with recipes as cases, for reports that a machine reads."""
    return [_misread(one) for one in error.errors]


def _misread(error: RecipeError) -> Case:
    place = error.place
    check = Check(
        "recipe", "check", place.file, max(1, place.line), max(1, place.column), "error", error.what, error.hint, 2
    )
    return Case("", {}, (), check=check)
