"""A check: its cases judged wherever they are computed, and passed on in their order.

Cases are computed here, in processes of this program, or by an executor. Each is put into a `Journal` when it comes,
and is yielded when all before it were. Of more than `MAX_CASES` none stays in memory.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Self

from dpcalc.errors import SpecError, WorkerLost
from dpcalc.files.place import FileError
from dpcalc.recipes.judging.objections import left_out
from dpcalc.recipes.reading.matrix import MAX_CASES
from dpcalc.recipes.reading.recipe import Malformed
from dpcalc.recipes.running.chunks import CasesOnDisk, Judge
from dpcalc.recipes.running.evaluate import Answers
from dpcalc.recipes.running.journal import Journal
from dpcalc.recipes.running.selection import Selection
from dpcalc.report import Case, Check, Report, Status, Tally

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from dpcalc.cluster.calls import Piece

IN_FLIGHT = 32
"""Chunks that an executor has at once."""

_LARGEST = 200  # cases of a chunk: its answer is some hundred kilobytes
_AHEAD = 4  # cases on their way for every process, so that none waits while others are judged
_GRACE = 60.0  # seconds beyond the limit of a case after which an executor counts as lost
_PATIENCE = 600.0  # seconds, where nothing limits a case


class Checking:
    """A check while it runs.

    Args:
        selection: what is checked.
        jobs: how many processes share the work; the results do not depend on it.
        executor: what computes what it can, in place of processes of this program's own; not closed here.
        fail_fast: whether to stop after the first case that fails or has no answer.
        checkpoint: the file from which an earlier run is taken up, and to which this one is written.
        beside: the folder of a temporary file of very many cases.
        in_flight: chunks that an executor has at once, or what says so at any time; None: `IN_FLIGHT`.
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
        """Return whether a line of the checkpoint counts: an error of time, memory or the program is tried again."""
        from dpcalc.recipes.running.chunks import verdict_on

        check = verdict_on(self.selection, place, line).check
        assert check is not None
        return check.status != Status.ERROR or check.exit_code == SpecError.exit_code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()

    @property
    def done(self) -> int:
        """How many cases were yielded."""
        return self._done

    def cases(self) -> Generator[Case]:
        """Yield the cases with their verdicts, in their order.

        Raises:
            WorkerLost: a worker of the executor died, did not answer, or answered something else.
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
        """Return the report on the cases that were yielded, with what a strict check misses."""
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
        """Yield the cases that lack a verdict as they come, each with its place."""
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
        from dpcalc.recipes.running.chunks import Chunk, run_chunk

        limits = self.selection.limits
        patience = (limits.timeout or limits.usual or _PATIENCE) + _GRACE
        chunks, submit = self._chunks(), through(executor, run_chunk)
        for chunk, cases in spread(
            chunks, submit, ahead=self._in_flight, attempts=self._attempts, patience=patience
        ):  # fmt: skip
            assert isinstance(chunk, Chunk)
            yield from zip(chunk.places, cases, strict=False)

    def _chunks(self) -> Iterator[Piece]:
        """Yield chunks of the cases that travel; the first are small, so that every worker soon has one."""
        from dpcalc.recipes.running.chunks import Chunk, travels

        places = (place for place in self._journal.missing() if travels(self.selection.at(place)[1]))
        size, most = 1, 1 if self._kept else _LARGEST
        while taken := tuple(itertools.islice(places, size)):
            yield Chunk(self.selection, taken)
            size = min(2 * size, most)


def _first_done(waiting: dict[Future[Any], int], judge: Judge) -> Iterator[tuple[int, Case]]:
    """Yield the cases whose answers are there, once there are some."""
    from concurrent.futures import FIRST_COMPLETED, wait

    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for place in sorted(waiting.pop(future) for future in done):
        yield place, judge(place)


def checked(selection: Selection, **options: Any) -> Report:
    """Return the report on some cases; of more than `MAX_CASES`, it reads each from the disk when it is looked at.

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
            closing.pop_all()  # the cases are read from the journal as long as there is the report
        return checking.report()


def malformed(refusal: Malformed) -> list[Case]:
    """Return what is wrong with recipes as cases, for reports that a machine reads."""
    return [_malformed_case(one) for one in refusal.errors]


def _malformed_case(mistake: FileError) -> Case:
    place = mistake.place
    line, column = max(1, place.line), max(1, place.column)
    check = Check("recipe", "check", place.file, line, column, Status.ERROR, mistake.what, mistake.hint, 2)
    return Case("", {}, (), check=check)
