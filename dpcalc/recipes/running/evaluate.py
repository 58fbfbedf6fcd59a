"""Answer the cases of recipes, in this process or in several, each within its limits."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple, Self

from dpcalc.engine.ask import ask, closed_form_of
from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import Disproved, DpcalcError, SpecError, debugging
from dpcalc.recipes.reading.read import check_timeout
from dpcalc.recipes.reading.recipe import Entry, Recipe
from dpcalc.recipes.reading.settings import OF_SCORES, SETUP, without_flags
from dpcalc.report import Case, uncertified
from dpcalc.training.rule.setup import Setup, Task, check_setup

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dpcalc.recipes.running.workers import Pool

MEMORY = (0.25, 1e6)
"""The range of memory limits in GiB; with less, numpy and scipy do not load."""


_KEPT = 1000
"""The number of cached answers: some ten megabytes."""

_LONG = 1.0
"""Seconds: a limit that no closed form reaches."""


class Limits(NamedTuple):
    """The limits of a case.

    Attributes:
        timeout: in seconds, for every case; None: the case's own, or else ``usual``.
        memory: in GiB, of the process of a case; None: unlimited.
        usual: the default in seconds; None: unlimited.
    """

    timeout: float | None = None
    memory: float | None = None
    usual: float | None = None

    def seconds(self, entry: Entry) -> float | None:
        """Return the time limit of a case: its own, up to ``timeout``."""
        own = self.usual if entry.timeout is None else entry.timeout
        return min((limit for limit in (own, self.timeout) if limit is not None), default=None)


def limits_of(timeout: float | None, memory: float | None, usual: float | None = None) -> Limits:
    """Check limits and return them.

    Raises:
        SpecError: a number is out of range.
    """
    if memory is not None and not MEMORY[0] <= memory <= MEMORY[1]:
        raise SpecError(f"a memory limit of {memory:g} GiB; it must be {MEMORY[0]:g} to {MEMORY[1]:g}", "4 is usual")
    return Limits(None if timeout is None else check_timeout(timeout), memory, usual)


class Outcome(NamedTuple):
    """The outcome of a case: its answer, or the refusal.

    Attributes:
        case: the answer, or None.
        kind: the name of the error; empty for an unexpected one.
        message, hint, exit_code: those of the error.
    """

    case: Case | None
    kind: str = ""
    message: str = ""
    hint: str | None = None
    exit_code: int = 0


def evaluate(entry: Entry, *, certify: bool = False) -> Outcome:
    """Return the answer to a case, or why there is none."""
    if entry.unread is not None:
        return Outcome(None, "SpecError", entry.unread.message, entry.unread.hint, 2)
    try:
        return Outcome(_answer(entry, certify or entry.rule.certified))
    except Disproved as error:
        return Outcome(None, "Disproved", f"{error.message}: {'; '.join(error.report.splitlines())}", None, 4)
    except DpcalcError as error:
        return Outcome(None, type(error).__name__, error.message, without_flags(error.hint), error.exit_code)
    except Exception as error:
        return broken(error)


def broken(error: Exception) -> Outcome:
    """Return the outcome for an unexpected error, which must not hide the verdict on other cases."""
    if isinstance(error, MemoryError):
        return Outcome(None, "MemoryError", "not enough memory", "a shorter schedule", 3)
    if debugging():
        import traceback

        traceback.print_exception(error)
    text = " ".join(str(error).split())
    return Outcome(None, "", f"internal error: {type(error).__name__}: {text}", "set DPCALC_DEBUG=1", 4)


def _ledger(entry: Entry) -> Case:
    from dpcalc.engine.ledgers.total import answer_ledger

    return answer_ledger(entry.parameters["ledger"], entry.question)


def _converted(entry: Entry) -> Case:
    from dpcalc.engine.convert import convert

    return convert(entry.command, entry.parameters, entry.question)


def _risk(entry: Entry) -> Case:
    from dpcalc.engine.attack.stated import risk_of_guarantee

    return risk_of_guarantee(entry.command, entry.parameters, entry.question)


def _audited(entry: Entry) -> Case:
    from dpcalc.training.audit.case import Inquiry
    from dpcalc.training.audit.estimate import Setup as Runs
    from dpcalc.training.audit.scores import scores_of

    said = {name: value for name, value in entry.parameters.items() if name in OF_SCORES}
    if said.get("scores") is None:
        raise SpecError("an audit in a recipe is of scores of canaries", "give scores: FILE")
    runs = Runs(**{name: said[name] for name in Runs._fields if name in said})
    scores = scores_of(
        said["scores"], runs, one_run=said.get("one_run", False), threshold=said.get("threshold"),
        guesses=said.get("guesses"),
    )  # fmt: skip
    run = {name: value for name, value in entry.parameters.items() if name not in OF_SCORES}
    return Inquiry(run, entry.question, "best", runs, scores=scores).case()


_UNDEFINED = {
    "audit": (_audited, "audits have no definition"),
    "ledger": (_ledger, "ledgers have no definition"),
    "convert": (_converted, "conversions have no definition"),
    "risk": (_risk, "risks have no definition"),
}
"""The commands whose answers cannot be certified: what gives them, and why."""


def _answer(entry: Entry, certify: bool) -> Case:
    if undefined := _UNDEFINED.get(entry.command):
        answer, why = undefined
        return _warned(without_definition(answer(entry), why)) if certify else answer(entry)
    if not COMMANDS[entry.command].trains:
        case = ask(entry.command, entry.parameters, entry.question, notes=False, best_only=True, certified=certify)
        return _warned(case) if certify else case
    from dpcalc.training.fit import fit  # which takes long to import

    setup = Setup(**{name: value for name, value in entry.parameters.items() if name in SETUP})
    check_setup(setup)
    run = {name: value for name, value in entry.parameters.items() if name not in SETUP}
    case = fit(Task(run, entry.question, setup, accepting=True)).case
    return case._replace(warnings=(*case.warnings, "what is trained is not certified")) if certify else case


def without_definition(case: Case, why: str) -> Case:
    """Return a case with the remark that nothing in it can be certified."""
    results = (r._replace(details={**(r.details or {}), "not_certified": why}) for r in case.results)
    return case._replace(results=tuple(results))


def _warned(case: Case) -> Case:
    """Return the case with a warning for each best guarantee that could not be certified."""
    warnings = [f"{r.bound} is not certified: {(r.details or {})['not_certified']}" for r in uncertified(case)]
    return case._replace(warnings=(*case.warnings, *warnings))


class Answers:
    """The answers to cases: computed here, or in other processes if several share the work or have limits.

    Closed forms are always computed here: they take a millisecond and little memory. The last answers are
    cached for cases that are compared with them.

    Args:
        jobs: the largest number of processes; 0 for none, whatever the limits.
        certify: whether to recompute the guarantees in ball arithmetic.
        limits: of each case.
    """

    def __init__(self, jobs: int, certify: bool, limits: Limits) -> None:
        self._jobs, self._certify, self._limits = jobs, certify, limits
        self._known: dict[tuple[int, str], Outcome] = {}
        self._running: dict[tuple[int, str], Future[Outcome]] = {}
        self._processes = contextlib.ExitStack()
        self._pool: Pool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, and drop what was not computed."""
        self._processes.close()

    def start(self, recipe: Recipe, entry: Entry) -> Future[Outcome] | None:
        """Start computing a case; return its future answer, None if it is known at once."""
        key = id(recipe), entry.name
        if key not in self._known and key not in self._running:
            outcome = self._computed_here(entry)
            if outcome is None:
                self._running[key] = self._submitted(entry)
            else:
                self._keep(key, outcome)
        return self._running.get(key)

    def __call__(self, recipe: Recipe, entry: Entry) -> Outcome:
        """Return the answer to a case, or why there is none."""
        key, future = (id(recipe), entry.name), self.start(recipe, entry)
        outcome = self._known.pop(key) if future is None else _awaited(self._running.pop(key))
        self._keep(key, outcome)
        return outcome

    def _keep(self, key: tuple[int, str], outcome: Outcome) -> None:
        self._known[key] = outcome
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]  # the least recently used

    def _computed_here(self, entry: Entry) -> Outcome | None:
        limits = self._limits
        if not self._jobs or (self._jobs == 1 and limits.memory is None and limits.seconds(entry) is None):
            return evaluate(entry, certify=self._certify)
        short = any(limit is not None and limit < _LONG for limit in (entry.timeout, limits.timeout))
        if short or self._certify or entry.rule.certified or entry.unread is not None:
            return None
        try:
            case = closed_form_of(entry.command, entry.parameters, entry.question)
        except Exception:  # unexpected errors are left to the process of the case
            return None
        return None if case is None else Outcome(case)

    def _submitted(self, entry: Entry) -> Future[Outcome]:
        if self._pool is None:
            from dpcalc.recipes.running.workers import Pool

            pool = Pool(_Evaluation(self._certify), self._jobs, self._limits.memory)
            self._pool = self._processes.enter_context(pool)
        slim = entry._replace(gates=(), expected=None)  # judged here
        return self._pool.submit(slim, self._limits.seconds(entry))


class _Evaluation:
    """Evaluates cases in a process of the pool, one after the other."""

    def __init__(self, certify: bool) -> None:
        self._certify = certify

    def __call__(self, entry: Entry) -> Outcome:
        """Return the answer to a case; raise MemoryError if memory is short.

        The pool then ends the process, in which an import may have been interrupted.
        """
        outcome = evaluate(entry, certify=self._certify)
        if outcome.kind == MemoryError.__name__:
            raise MemoryError
        return outcome


def _awaited(answer: Future[Outcome]) -> Outcome:
    """Return the answer when it is there, or why its computation was ended."""
    try:
        return answer.result()
    except DpcalcError as error:
        return Outcome(None, type(error).__name__, error.message, error.hint, error.exit_code)
