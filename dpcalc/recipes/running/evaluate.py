"""Answering the cases of recipes, in this process or in several, each within its limits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.engine.ask import ask, closed_form_of
from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import Disproved, DpcalcError, SpecError, debugging
from dpcalc.recipes.reading.case import check_timeout
from dpcalc.recipes.reading.recipe import Entry
from dpcalc.recipes.reading.settings import SETUP
from dpcalc.recipes.reading.values import without_flags
from dpcalc.report import Case, uncertified
from dpcalc.training.rule.setup import Setup, check_setup

if TYPE_CHECKING:
    from concurrent.futures import Future

MEMORY = (0.25, 1e6)
"""GiB that a process of cases may be limited to; with less, numpy and scipy do not load."""


class Limits(NamedTuple):
    """What a case may use.

    Attributes:
        timeout: seconds, for every case; None: what the case says, or else ``usual``.
        memory: GiB that the process of a case may hold; None: as much as there is.
        usual: seconds for a case that says nothing; None: as many as it takes.
    """

    timeout: float | None = None
    memory: float | None = None
    usual: float | None = None

    def seconds(self, entry: Entry) -> float | None:
        """Return how long a case may take: what it says, up to ``timeout``."""
        own = self.usual if entry.timeout is None else entry.timeout
        return min((limit for limit in (own, self.timeout) if limit is not None), default=None)


def limits_of(timeout: float | None, memory: float | None, usual: float | None = None) -> Limits:
    """Return the limits that were asked for.

    Raises:
        SpecError: a number is no limit.
    """
    if memory is not None and not MEMORY[0] <= memory <= MEMORY[1]:
        raise SpecError(f"a memory limit of {memory:g} GiB; it must be {MEMORY[0]:g} to {MEMORY[1]:g}", "4 is usual")
    return Limits(None if timeout is None else check_timeout(timeout), memory, usual)


class Outcome(NamedTuple):
    """What became of a case: its answer, or the refusal.

    Attributes:
        case: the answer, None where there is none.
        kind: the name of the error; empty for one that nobody expected.
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
    """Return what an error that nobody expected makes of a case: it must not hide the verdict on the others."""
    if isinstance(error, MemoryError):
        return Outcome(None, "MemoryError", "not enough memory", "a shorter schedule", 3)
    if debugging():
        import traceback

        traceback.print_exception(error)
    text = " ".join(str(error).split())
    return Outcome(None, "", f"internal error: {type(error).__name__}: {text}", "set DPCALC_DEBUG=1", 4)


def _answer(entry: Entry, certify: bool) -> Case:
    if entry.command == "ledger":
        from dpcalc.engine.ledger import answer_ledger

        case = answer_ledger(entry.parameters["ledger"], entry.question)
        return _warned(without_definition(case, "ledgers have no definition")) if certify else case
    if entry.command == "convert":
        from dpcalc.engine.convert import convert

        case = convert(entry.command, entry.parameters, entry.question)
        return _warned(without_definition(case, "conversions have no definition")) if certify else case
    if entry.command == "risk":
        from dpcalc.engine.attack_risk import risk_of_known

        case = risk_of_known(entry.command, entry.parameters, entry.question)
        return _warned(without_definition(case, "risks have no definition")) if certify else case
    if not COMMANDS[entry.command].trains:
        case = ask(entry.command, entry.parameters, entry.question, notes=False, best_only=True, certified=certify)
        return _warned(case) if certify else case
    from dpcalc.training.fit import fit  # which takes long to import

    setup = Setup(**{name: value for name, value in entry.parameters.items() if name in SETUP})
    check_setup(setup)
    run = {name: value for name, value in entry.parameters.items() if name not in SETUP}
    case = fit(run, entry.question, setup, accepting=True).case
    return case._replace(warnings=(*case.warnings, "what is trained is not certified")) if certify else case


def without_definition(case: Case, why: str) -> Case:
    """Return a case of which nothing can be certified, and that says so."""
    results = (r._replace(details={**(r.details or {}), "not_certified": why}) for r in case.results)
    return case._replace(results=tuple(results))


def _warned(case: Case) -> Case:
    """Return the case with a warning for each best guarantee that could not be certified."""
    warnings = [f"{r.bound} is not certified: {(r.details or {})['not_certified']}" for r in uncertified(case)]
    return case._replace(warnings=(*case.warnings, *warnings))


@contextlib.contextmanager
def answers(entries: Sequence[Entry], jobs: int, certify: bool, limits: Limits) -> Iterator[Callable[[Entry], Outcome]]:
    """Pass a function that answers a case, each case once.

    The cases are evaluated in processes of their own where several share the work, or where there are limits. Closed
    forms, which reach no usual limit, are evaluated here in any case.
    """
    if jobs == 1 and limits == Limits() and all(entry.timeout is None for entry in entries):
        outcomes: dict[int, Outcome] = {}

        def answer(entry: Entry) -> Outcome:
            if id(entry) not in outcomes:
                outcomes[id(entry)] = evaluate(entry, certify=certify)
            return outcomes[id(entry)]

        yield answer
        return
    known = {} if certify or limits.timeout is not None else _closed_forms(entries)
    if len(known) == len(entries) and not any(gate.terms for entry in entries for gate in entry.gates):
        yield lambda entry: known[id(entry)]  # and no other case is asked for: processes are not even imported
        return
    from dpcalc.recipes.running.workers import Pool

    with Pool(_Evaluation(certify), max(1, min(jobs, len(entries) - len(known))), limits.memory) as pool:
        running: dict[int, Future[Outcome]] = {}

        def start(entry: Entry) -> Future[Outcome]:
            if id(entry) not in running:
                slim = entry._replace(gates=(), expected=None)  # judged here
                running[id(entry)] = pool.submit(slim, limits.seconds(entry))
            return running[id(entry)]

        for entry in entries:
            if id(entry) not in known:
                start(entry)
        yield lambda entry: known.get(id(entry)) or _await(start(entry))


def _closed_forms(entries: Sequence[Entry]) -> dict[int, Outcome]:
    """Return the answers of the cases that closed forms answer, by the identity of the case."""
    plain = [e for e in entries if e.timeout is None and e.unread is None and not e.rule.certified]
    answered = ((id(entry), _closed_form(entry)) for entry in plain)
    return {place: Outcome(case) for place, case in answered if case is not None}


def _closed_form(entry: Entry) -> Case | None:
    """Return the answer that closed forms give; an error that nobody expected is left to the process of the case."""
    try:
        return closed_form_of(entry.command, entry.parameters, entry.question)
    except Exception:
        return None


class _Evaluation:
    """Evaluates cases in a process of the pool, one after the other."""

    def __init__(self, certify: bool) -> None:
        self._certify = certify

    def __call__(self, entry: Entry) -> Outcome:
        """Return the answer to a case; raise MemoryError where memory is short.

        The pool then ends the process, in which an import may have been cut off.
        """
        outcome = evaluate(entry, certify=self._certify)
        if outcome.kind == MemoryError.__name__:
            raise MemoryError
        return outcome


def _await(answer: Future[Outcome]) -> Outcome:
    """Return the answer when it is there, or why its computation was ended."""
    try:
        return answer.result()
    except DpcalcError as error:
        return Outcome(None, type(error).__name__, error.message, error.hint, error.exit_code)
