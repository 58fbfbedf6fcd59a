"""Chunks of a check: some of its cases, computed wherever the text of their recipes is sent.

Only text travels, and one function by its name: `run_chunk`. It needs only this version of
dpcalc. A chunk names its cases by their places; a worker expands them from the recipe, and caches what was
read for the next chunk. The answer repeats the head of the chunk, and has a line of JSON for every case.

A report on more cases than are held in memory counts them as they pass, and reads them from a file afterwards.

The cases of a selection are judged one by one, here or by workers.

A check passes them on in their order.

Cases are computed here, in processes of this program, or by an executor. Each is put into a `Journal` on arrival,
and is yielded when all before it were. Of more than `MAX_CASES` none stays in memory.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from dpcalc.checked import Check, Status, Tally
from dpcalc.cluster.calls import Row, in_lines, lines_of, received
from dpcalc.errors import DpcalcError, SpecError, WorkerLost
from dpcalc.files.place import FileError, ProjectFile
from dpcalc.files.typed import Garbled
from dpcalc.inert import strict_json
from dpcalc.recipes.judging.objections import left_out
from dpcalc.recipes.judging.verdict import error, given_by, judged, judged_again
from dpcalc.recipes.reading.matrix import MAX_CASES
from dpcalc.recipes.reading.recipe import Entry, Lazy, Malformed
from dpcalc.recipes.running.evaluate import Answers, Limits, Outcome, broken
from dpcalc.recipes.running.journal import Journal
from dpcalc.recipes.running.saved import no_case, read_line, refuse_other_inputs, verified_case
from dpcalc.recipes.running.selection import Selection
from dpcalc.render.machine import case_line
from dpcalc.render.notes import in_words
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from dpcalc.cluster.calls import Piece


MOST_SHOWN = 1000
"""The number of cases in a text about more cases than are held in memory."""

_PASSED = '"status": "passed"'
"""Part of a line of JSON: within a string its quotes would be escaped."""


class CasesOnDisk(Lazy[Case]):
    """The cases of a journal, and some after them."""

    def __init__(self, journal: Journal, tally: Tally, more: Sequence[Case] = ()) -> None:
        super().__init__(tally.cases, lambda place: read_line(self._line(place)))
        self._journal, self.tally = journal, tally
        self._more = [case_line("check", case) for case in more]

    def __iter__(self) -> Iterator[Case]:
        return map(read_line, self.lines())

    def _line(self, place: int) -> str:
        checked = len(self) - len(self._more)  # the journal of a check that stopped early may have more
        return self._journal.line(place) if place < checked else self._more[place - checked]

    def lines(self) -> Iterator[str]:
        """Yield the cases as lines of JSON."""
        return map(self._line, range(len(self)))


class Excerpt(tuple[Case, ...]):
    """Some cases, with the counts of all."""

    tally: Tally

    def __new__(cls, cases: Iterable[Case], tally: Tally) -> Excerpt:
        """Take the cases."""
        made = super().__new__(cls, cases)
        made.tally = tally
        return made


def excerpt(report: Report) -> Report:
    """Return the report on many cases with only the first that did not pass, and the counts of all."""
    cases: Any = report.cases
    troubled = (read_line(line) for line in cases.lines() if _PASSED not in line)
    return report._replace(cases=Excerpt(itertools.islice(troubled, MOST_SHOWN), report.tally))


class Judge:
    """Gives the verdicts.

    Args:
        selection: whose cases are judged.
        answers: to these cases and to those that they are compared with.
    """

    def __init__(self, selection: Selection, answers: Answers) -> None:
        self._selection, self._answers = selection, answers
        self._stale: dict[tuple[int, str, str], bool] = {}

    def __call__(self, place: int) -> Case:
        """Return the case at a place with its verdict; an unexpected error affects this case alone."""
        recipe, entry = self._selection.at(place)
        certify = self._selection.options.certify
        try:
            case = judged(recipe, entry, partial(self._answers, recipe), certify=certify, stale=self._stale)
        except Exception as unexpected:
            case = error(entry, entry.place, broken(unexpected))
        return in_words("check", case)


SCHEMA = "dpcalc.chunk/1"
_OF_FILES = ("ledger", "train")
_SOON = 0.5  # seconds after which a chunk returns its answers so far


def travels(entry: Entry) -> bool:
    """Return whether a case can be computed on another machine: it reads no file there and names no other case."""
    if entry.command in _OF_FILES or any(isinstance(value, ProjectFile) for value in entry.parameters.values()):
        return False
    return not any(gate.terms for gate in entry.gates)


class Chunk(Row):
    """Some cases, computed one after the other.

    Args:
        selection: of the cases.
        places: of the cases.
    """

    def __init__(self, selection: Selection, places: Sequence[int]) -> None:
        super().__init__(SCHEMA, places, check=selection.text, places=places, soon=_SOON)
        self._selection, self.places = selection, places

    def read(self, text: str) -> list[Case]:
        """Return the first cases of the chunk, with their verdicts.

        Raises:
            Garbled, WorkerLost: it is not an answer to this chunk.
        """
        lines = lines_of(self.document, text)
        if not 1 <= len(lines) <= len(self.places):
            raise Garbled(f"{len(lines)} cases are answered of {len(self.places)}")
        return [verdict_on(self._selection, place, line) for place, line in zip(self.places, lines, strict=False)]

    def after(self, answer: list[Case]) -> Chunk | None:
        """Return the unanswered cases."""
        return self.part(len(answer), len(self.places)) if len(answer) < len(self.places) else None

    def part(self, start: int, end: int) -> Chunk:
        """Return the chunk of some of the cases."""
        return Chunk(self._selection, self.places[start:end])

    def stopped(self, why: DpcalcError) -> list[Case]:
        """Return the verdict on a chunk's only case after its computation was ended."""
        _, entry = self._selection.at(self.places[0])
        outcome = Outcome(None, type(why).__name__, why.message, why.hint, why.exit_code)
        return [in_words("check", error(entry, entry.place, outcome))]


def verdict_on(selection: Selection, place: int, line: str) -> Case:
    """Return the case at a place from a line that another process wrote.

    Every field is read, written again and compared, and every gate of the recipe is judged again on the
    numbers.

    Raises:
        Garbled: it is another case or none, or its verdict contradicts its numbers.
    """
    _, entry = selection.at(place)
    case = verified_case(line)
    assert case.check is not None
    if (case.check.name, case.check.file, case.check.command) != (entry.name, entry.place.file, entry.command):
        raise Garbled("the answer is about another case")
    if case.check.status == Status.PASSED and len(case.assertions) < len(entry.gates):
        raise Garbled("a case is said to pass of which a gate was not judged")
    public = bool(case.training) and not (case.training or {})["private"]  # its numbers are not guarantees
    if not public and any(result.best and not result.kind.guarantee for result in case.results):
        raise Garbled("what is no guarantee is said to be the best one")
    if case.check.status in (Status.PASSED, Status.FAILED):
        refuse_other_inputs(given_by(entry), case)
    try:
        with no_case():  # a text in place of a number
            wanted = judged_again(entry, case, certify=selection.options.certify)
    except DpcalcError as refusal:
        raise Garbled(f"it cannot be the verdict on this case: {refusal.message}") from None
    if strict_json((wanted.assertions, wanted.check)) != strict_json((case.assertions, case.check)):
        raise Garbled("its verdict is not the one that follows from the recipe and its numbers")
    return case


# --- where they are computed ------------------------------------------------------------------------------------------


def run_chunk(document: str) -> str:
    """Return the answer to a chunk: the head, and a line of JSON for each of its first cases, at least one.

    Args:
        document: of a `Chunk`.

    Raises:
        SpecError: it is of another version of dpcalc.
    """
    asked = received(document, SCHEMA)
    if not hasattr(_OF_THREAD, "judge_of"):
        _OF_THREAD.judge_of = functools.lru_cache(maxsize=1)(_judge_of)
    judge, late, lines = _OF_THREAD.judge_of(asked["check"]), time.monotonic() + asked["soon"], list[str]()
    for place in asked["places"]:
        lines.append(case_line("check", judge(place)))
        if time.monotonic() > late:
            break
    return in_lines(document, lines)


_OF_THREAD = threading.local()
"""The selection that each thread has read."""


def _judge_of(text: str) -> Judge:
    selection = Selection.read(text)
    return Judge(selection, Answers(0, selection.options.certify, Limits()))


IN_FLIGHT = 32
"""The number of chunks that an executor has at once."""

_LARGEST = 200  # cases of a chunk: its answer is some hundred kilobytes
_AHEAD = 4  # cases on their way for every process, so that none waits while others are judged
_GRACE = 60.0  # seconds beyond a case's limit after which an executor counts as lost
_PATIENCE = 600.0  # seconds, for a case without a limit


class Checking:
    """A running check.

    Args:
        selection: what is checked.
        jobs: how many processes share the work; the results do not depend on it.
        executor: computes the cases that travel, in place of this program's processes; not closed here.
        fail_fast: whether to stop after the first case that fails or has no answer.
        checkpoint: the file from which an earlier run is resumed and to which this one is written.
        beside: the folder of a temporary file of very many cases.
        in_flight: the number of chunks that an executor has at once, or a function for it; None: `IN_FLIGHT`.
        attempts: how often a chunk is sent to an executor before it counts as lost.

    Raises:
        SpecError: the checkpoint is of another check, is damaged, or is in use; or a strict check cannot certify.
    """

    def __init__(
        self,
        selection: Selection,
        *,
        jobs: int = 1,
        executor: Executor | None = None,
        fail_fast: bool = False,
        checkpoint: str | None = None,
        beside: str | None = None,
        in_flight: int | Callable[[], int] | None = None,
        attempts: int = 2,
    ) -> None:
        self.selection, self._jobs, self._executor, self._fail_fast = selection, jobs, executor, fail_fast
        selection.refuse_uncertifiable()
        self._kept = checkpoint is not None
        self._in_flight, self._attempts = in_flight or (jobs if self._kept else IN_FLIGHT), attempts
        self._done, self.tally = 0, Tally()
        self.large = len(selection.places) > MAX_CASES
        self._cases: list[Case] = []
        if checkpoint is None:
            self._journal = Journal(selection.places, on_disk=self.large, beside=beside)
        else:
            self._journal = Journal.kept(selection.places, checkpoint, selection.header(), self._counts)

    def _counts(self, place: int, line: str) -> bool:
        """Return whether a line of the checkpoint counts: errors of time, memory or the program are retried."""

        check = verdict_on(self.selection, place, line).check
        assert check is not None
        return check.status != Status.ERROR or check.exit_code == SpecError.exit_code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()

    @property
    def done(self) -> int:
        """The number of cases yielded."""
        return self._done

    def cases(self) -> Generator[Case]:
        """Yield the cases in order, with their verdicts.

        Raises:
            WorkerLost: a worker of the executor died, did not answer, or gave another answer.
        """
        with contextlib.closing(self._arriving()) as arriving:
            while True:
                while (case := self._journal.case(self._done)) is not None:
                    self._done += 1
                    self.tally.add(case)
                    if not self.large:
                        self._cases.append(case)
                    yield case
                    if self._fail_fast and case.check is not None and case.check.exit_code:
                        return
                if (arrived := next(arriving, None)) is None:
                    break
                self._journal.add(*arrived)
        if missing := len(self.selection.places) - self._done:
            raise WorkerLost(f"{missing} cases have no verdict", "run the check again")

    def report(self) -> Report:
        """Return the report on the cases yielded, with what a strict check misses."""
        missing = tuple(dict.fromkeys(self.selection.not_checked(self._done)))
        more = tuple(left_out(self.selection.recipes, missing))
        cases: Any = (*self._cases, *more)
        if self.large:
            for case in more:
                self.tally.add(case)
            cases = CasesOnDisk(self._journal, self.tally, more)
        return self.selection.of_share(Report("check", cases, missing), self._done)

    # --- computing ----------------------------------------------------------------------------------------------------

    def _arriving(self) -> Generator[tuple[int, Case]]:
        """Yield the cases without a verdict as they arrive, each with its place."""
        if self._executor is not None:
            yield from self._elsewhere(self._executor)
        yield from self._here()

    def _here(self) -> Iterator[tuple[int, Case]]:
        selection = self.selection
        with Answers(self._jobs, selection.options.certify, selection.limits) as answers:
            judge = Judge(selection, answers)
            waiting: dict[Future[Any], int] = {}
            for place in self._journal.missing():
                recipe, entry = selection.at(place)
                future = answers.start(recipe, entry) if entry.skip is None else None
                if future is None:
                    yield place, judge(place)
                    continue
                waiting[future] = place
                if len(waiting) >= self._jobs * (1 if self._kept else _AHEAD):
                    yield from _first_done(waiting, judge)
            while waiting:
                yield from _first_done(waiting, judge)

    def _elsewhere(self, executor: Executor) -> Iterator[tuple[int, Case]]:
        from dpcalc.cluster.calls import spread, through

        limits = self.selection.limits
        patience = (limits.timeout or limits.usual or _PATIENCE) + _GRACE
        chunks, submit = self._chunks(), through(executor, run_chunk)
        for chunk, cases in spread(
            chunks, submit, ahead=self._in_flight, attempts=self._attempts, patience=patience
        ):  # fmt: skip
            assert isinstance(chunk, Chunk)
            yield from zip(chunk.places, cases, strict=False)

    def _chunks(self) -> Iterator[Piece]:
        """Yield chunks of the cases that travel; the first are small, so every worker soon has one."""

        places = (place for place in self._journal.missing() if travels(self.selection.at(place)[1]))
        size, most = 1, 1 if self._kept else _LARGEST
        while taken := tuple(itertools.islice(places, size)):
            yield Chunk(self.selection, taken)
            size = min(2 * size, most)


def _first_done(waiting: dict[Future[Any], int], judge: Judge) -> Iterator[tuple[int, Case]]:
    """Wait for answers, and yield their cases."""
    from concurrent.futures import FIRST_COMPLETED, wait

    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for place in sorted(waiting.pop(future) for future in done):
        yield place, judge(place)


def checked(selection: Selection, **options: Any) -> Report:
    """Return the report on some cases; with more than `MAX_CASES` it reads each from the disk on demand.

    Args:
        selection: what is checked.
        options: as for `Checking`.

    Raises:
        SpecError, WorkerLost: as `Checking`, or all cases are skipped.
    """
    selection.refuse_all_skipped()
    with contextlib.ExitStack() as closing:
        checking = closing.enter_context(Checking(selection, **options))
        with contextlib.closing(checking.cases()) as cases:
            deque(cases, maxlen=0)
        if checking.large:
            closing.pop_all()  # the cases are read from the journal as long as the report exists
        return checking.report()


def malformed(refusal: Malformed) -> list[Case]:
    """Return the errors of recipes as cases, for machine-readable reports."""
    return [_malformed_case(one) for one in refusal.errors]


def _malformed_case(mistake: FileError) -> Case:
    place = mistake.place
    line, column = max(1, place.line), max(1, place.column)
    check = Check("recipe", "check", place.file, line, column, Status.ERROR, mistake.what, mistake.hint, 2)
    return Case("", {}, (), check=check)
