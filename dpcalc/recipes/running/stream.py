"""A check of any number of cases: each is made, computed, written and forgotten.

`Stream` yields the verdicts as lines of JSON in the order of the cases, whoever computes them and whenever they come.
What comes early waits in a journal on the disk, from which the reports are made as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from dpcalc.cluster.spread import Piece, Submit, spread, through
from dpcalc.errors import PRECEDENCE, SpecError, WorkerLost
from dpcalc.files.paths import ProjectFile
from dpcalc.recipes.judging.objections import check_installed, left_out
from dpcalc.recipes.reading.matrix import MAX_CASES, MOST_CASES
from dpcalc.recipes.reading.recipe import Recipe
from dpcalc.recipes.running.chunks import (
    Chunk,
    Located,
    Options,
    Verdict,
    case_of,
    refuse_another,
    run_chunk,
    run_chunk_or_end,
    travels,
    written_check,
)
from dpcalc.recipes.running.evaluate import Limits
from dpcalc.recipes.running.journal import SCHEMA, Journal
from dpcalc.recipes.running.run import Selected
from dpcalc.recipes.running.shards import Share, hash_of, of_share, shared_out
from dpcalc.render.machine import case_line
from dpcalc.report import Case, Report, Status
from dpcalc.version import __version__

if TYPE_CHECKING:
    from concurrent.futures import Executor

_LARGEST = 200  # cases of a chunk
_AHEAD = 4  # chunks on their way for every worker
_GRACE = 60.0  # seconds beyond the limit of a case after which an executor counts as lost
_PATIENCE = 600.0  # seconds, where nothing limits a case
MOST_SHOWN = 1000
"""Cases that a text shows, of a check of more than `MAX_CASES`."""

_PASSED = '"status": "passed"'
"""Of a line of JSON: within a string its quotes would be escaped."""

IN_FLIGHT = 32
"""Chunks that an executor has at once."""


class Asked(NamedTuple):
    """What is to be checked.

    Attributes:
        recipes: as read.
        paths: of their files.
        most: cases of a recipe, at most.
        places: of the cases to check, among those of all recipes; ascending.
        options: what verdicts depend on.
        limits: of each case.
        share: of several machines, that takes these cases; None where there is one.
        everywhere: the places of the cases of all shares.
    """

    recipes: Sequence[Recipe]
    paths: Sequence[str]
    most: int
    places: Sequence[int]
    options: Options = Options()
    limits: Limits = Limits()
    share: Share | None = None
    everywhere: Sequence[int] = ()

    def of_share(self, share: Share) -> Asked:
        """Return what one of several machines is to check."""
        here = shared_out(_Chosen(Located(self.recipes), self.places), share)
        chosen = array("Q", (self.places[number] for number in here))
        return self._replace(places=chosen, share=share, everywhere=self.places)

    def with_share(self, report: Streamed) -> Streamed:
        """Return the report with what it says of its share, if it is of one."""
        if self.share is None:
            return report
        chosen = _Chosen(Located(self.recipes), self.everywhere)
        numbers = [bisect_left(self.everywhere, place) for place in self.places]
        made = of_share(report, self.recipes, chosen, numbers, self.share, **self.options._asdict())
        assert isinstance(made, Streamed)
        return made


class _Chosen(Sequence[Selected]):
    """The cases at some places, each made when it is asked for."""

    def __init__(self, located: Located, places: Sequence[int]) -> None:
        self._located, self._places = located, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, number: int) -> Selected: ...
    @overload
    def __getitem__(self, number: slice) -> list[Selected]: ...
    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return [Selected(*self._located.at(place)) for place in self._places[number]]
        return Selected(*self._located.at(self._places[number]))


def places_of(recipes: Sequence[Recipe], pattern: str | None = None) -> Sequence[int]:
    """Return the places of the cases whose names match a regular expression somewhere; all for None.

    Raises:
        SpecError: it is none, or no case matches.
    """
    located = Located(recipes)
    if pattern is None:
        return range(len(located))
    try:
        matches = re.compile(pattern).search
    except (re.error, OverflowError, RecursionError) as why:
        raise SpecError(f"{pattern!r} is not a regular expression: {why}", "for example 'sweep|budget'") from None
    every = (entry for recipe in recipes for entry in recipe.every())
    chosen = array("Q", (place for place, entry in enumerate(every) if matches(entry.name)))
    if not chosen:
        first = located.at(0)[1].name
        raise SpecError(f"no case matches {pattern!r}", f"there are {len(located)}, {first} the first")
    return chosen


class Tally:
    """What there is to say of many cases, counted as they pass."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.codes: set[int] = set()
        self.cases = self.failed = self.gates = self.held = self.bare = 0
        self.first: str | None = None  # line of the first case that did not pass

    def add(self, verdict: Verdict) -> None:
        """Count a case."""
        self.cases += 1
        self.statuses[verdict.status] += 1
        self.codes.add(verdict.exit_code)
        self.gates, self.held = self.gates + verdict.gates, self.held + verdict.held
        self.failed += verdict.held < verdict.gates or verdict.status == Status.FAILED
        self.bare += not verdict.gates and verdict.status == Status.PASSED

    @property
    def exit_code(self) -> int:
        """What a check of these cases exits with."""
        return next((code for code in PRECEDENCE if code in self.codes), 0)


class Streamed(Report):
    """A report whose cases are read from a journal whenever they are looked at, and counted beforehand."""

    __slots__ = ()

    @property
    def tally(self) -> Tally:
        """The counts of the cases."""
        cases: Any = self.cases
        found: Tally = cases.tally
        return found

    @property
    def failed(self) -> int:
        """How many cases failed a gate."""
        return self.tally.failed

    @property
    def exit_code(self) -> int:
        """What the check exits with."""
        return self.tally.exit_code

    @property
    def statuses(self) -> Counter[str]:
        """How many cases ended in each way."""
        return self.tally.statuses

    @property
    def gates(self) -> tuple[int, int, int]:
        """How many gates there are, how many of them held, and how many cases passed without one."""
        return self.tally.gates, self.tally.held, self.tally.bare

    def excerpt(self) -> Streamed:
        """Return the report with its first cases that did not pass: its counts are still those of all."""
        cases: Any = self.cases
        troubled = (case_of(line) for line in cases.lines() if _PASSED not in line)
        return self._replace(cases=Excerpt(itertools.islice(troubled, MOST_SHOWN), self.tally))


class CasesOnDisk(Sequence[Case]):
    """Cases that a journal has, and some that stand after them."""

    def __init__(self, journal: Journal, tally: Tally, more: Sequence[Case] = ()) -> None:
        self._journal, self.tally, self._more = journal, tally, more
        self._checked = tally.cases - len(more)

    def __len__(self) -> int:
        return self.tally.cases

    def __iter__(self) -> Iterator[Case]:
        return map(case_of, self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the cases as lines of JSON."""
        lines = itertools.islice(self._journal.lines(), self._checked)  # a check that stopped early may know more
        yield from (line for line, _ in lines)
        yield from (case_line("check", case) for case in self._more)

    @overload
    def __getitem__(self, place: int) -> Case: ...
    @overload
    def __getitem__(self, place: slice) -> list[Case]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        first = len(self) - len(self._more)
        if place >= first:
            return self._more[place - first]
        return case_of(next(self._journal.lines(place))[0])


class Excerpt(tuple[Case, ...]):
    """Some cases, and the counts of all."""

    tally: Tally

    def __new__(cls, cases: Iterable[Case], tally: Tally) -> Excerpt:
        """Take the cases."""
        made = super().__new__(cls, cases)
        made.tally = tally
        return made


class Stream:
    """The verdicts on many cases, as they come.

    Args:
        asked: what is to be checked.
        jobs: how many processes share the work, without an executor.
        executor: what computes, in place of processes of this program's own; not closed here.
        fail_fast: whether to stop after the first case that fails or has no answer.
        checkpoint: the file from which an earlier run is taken up, and to which this one is written.
        beside: the folder of what is written meanwhile.
        in_flight: chunks that an executor has at once, or what says so at any time; None: `IN_FLIGHT`.
        attempts: how often a chunk is sent to an executor before it counts as lost.

    Raises:
        SpecError: the checkpoint is of another check, is damaged, or is in use; or a strict check cannot certify.
    """

    def __init__(
        self,
        asked: Asked,
        *,
        jobs: int = 1,
        executor: Executor | None = None,
        fail_fast: bool = False,
        checkpoint: str | None = None,
        beside: str | None = None,
        in_flight: int | Callable[[], int] | None = None,
        attempts: int = 2,
    ) -> None:
        self._asked, self._jobs, self._executor, self._fail_fast = asked, jobs, executor, fail_fast
        self._located = Located(asked.recipes, asked.options)
        self._check = written_check(asked.recipes, asked.paths, asked.most, asked.options)
        policies = [recipe.policy for recipe in asked.recipes]
        if any(policy.strict or any(rule.certified for rule in policy.rules.values()) for policy in policies):
            check_installed()
        self._kept = checkpoint is not None
        self._in_flight, self._attempts = in_flight or (jobs if self._kept else IN_FLIGHT), attempts
        self.tally = Tally()
        header = None if checkpoint is None else header_of(asked)
        self.journal = Journal(asked.places, checkpoint, header, self._refuse_another, beside)

    def _refuse_another(self, place: int, line: str) -> bool:
        """Return whether a line of the checkpoint counts: an error of time, memory or the program is tried again."""
        verdict = refuse_another(self._located, place, line, thoroughly=True)
        return verdict.status != Status.ERROR or verdict.exit_code == SpecError.exit_code

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()

    def lines(self) -> Generator[str]:
        """Yield the verdicts as lines of JSON, in the order of the cases.

        Raises:
            WorkerLost: a worker of the executor died, did not answer, or answered something else.
        """
        done = 0
        with contextlib.closing(self._arriving()) as arriving:
            while True:
                for line, said in self.journal.lines(done):
                    done += 1
                    verdict = said or Verdict.of(line)
                    self.tally.add(verdict)
                    if verdict.exit_code and self.tally.first is None:
                        self.tally.first = line
                    yield line
                    if self._fail_fast and verdict.exit_code:
                        return
                if next(arriving, None) is None:
                    break
        if done < len(self._asked.places):
            raise WorkerLost(f"{len(self._asked.places) - done} cases have no verdict", "run the check again")

    def report(self, *, missing: Sequence[tuple[str, str]] = (), more: Sequence[Case] = (), **fields: Any) -> Streamed:
        """Return the report on the cases that were yielded.

        Args:
            missing: file and name of every case that was not selected.
            more: cases that stand after all others.
            fields: others of the report.
        """
        for case in more:
            self.tally.add(Verdict.of(case_line("check", case)))
        cases: Any = CasesOnDisk(self.journal, self.tally, more)
        return Streamed("check", cases, tuple(missing), **fields)

    # --- computing ----------------------------------------------------------------------------------------------------

    def _arriving(self) -> Generator[int]:
        """Put the lines of cases that lack one into the journal as they come, and yield how many came."""
        from dpcalc.recipes.running.workers import Pool

        if self._executor is not None:
            there = self._chunks(self._those_that_travel(), trusted=False)
            yield from self._spread(there, through(self._executor, run_chunk), self._in_flight, self._patience())
        with Pool(run_chunk_or_end, self._jobs, self._asked.limits.memory) as pool:
            ahead = self._jobs if self._kept else _AHEAD * self._jobs
            submit: Submit = lambda piece: pool.submit(piece.document, piece.seconds, alone=True)  # noqa: E731
            yield from self._spread(self._chunks(self.journal.missing(), trusted=True), submit, ahead, None)

    def _spread(
        self, chunks: Iterator[Piece], submit: Submit, ahead: int | Callable[[], int], patience: float | None
    ) -> Iterator[int]:
        attempts = 1 if patience is None else self._attempts
        for chunk, answer in spread(chunks, submit, ahead=ahead, attempts=attempts, patience=patience):
            assert isinstance(chunk, Chunk)
            for place, (line, verdict) in zip(chunk.places, answer, strict=False):
                self.journal.add(place, line, verdict)
            yield len(answer)

    def _those_that_travel(self) -> Iterator[int]:
        """Yield the cases that an executor computes; the others, which read files or compare, are computed here."""
        return (place for place in self.journal.missing() if travels(self._located.at(place)[1]))

    def _chunks(self, places: Iterator[int], *, trusted: bool) -> Iterator[Piece]:
        """Yield chunks of cases; the first are small, so that every worker soon has one."""
        size, most = 1, 1 if self._kept else _LARGEST
        while taken := list(itertools.islice(places, size)):
            yield Chunk(self._check, self._located, taken, self._asked.limits, trusted)
            size = min(2 * size, most)

    def _patience(self) -> float:
        limits = self._asked.limits
        usual = limits.timeout or limits.usual or _PATIENCE
        return usual + _GRACE


def header_of(asked: Asked) -> dict[str, Any]:
    """Return what a checkpoint says of the check that it is of: its files, its cases and its options."""
    whole = hashlib.sha256(written_check(asked.recipes, asked.paths, MOST_CASES, Options()).encode())
    places = asked.places if isinstance(asked.places, array) else array("Q", asked.places)
    whole.update(places.tobytes())
    whole.update(data_of(asked.recipes).encode())
    return {"schema": SCHEMA, "dpcalc": __version__, "digest": whole.hexdigest(), "options": asked.options._asdict()}


def data_of(recipes: Sequence[Recipe]) -> str:
    """Return a hash of the files of data that cases name, beside those that were read for their recipes."""
    named = {
        value
        for recipe in recipes for entry in recipe.every() for value in entry.parameters.values()
        if isinstance(value, ProjectFile)
    }  # fmt: skip
    return hashlib.sha256(repr([(str(path), hash_of(path)) for path in sorted(named)]).encode()).hexdigest()


class Finished:
    """Makes the report of a check that has come to its end."""

    def __init__(self, stream: Stream, asked: Asked) -> None:
        self._stream, self._asked = stream, asked
        self.more = 0

    def __call__(self) -> Streamed:
        """Return the report, with what a strict check misses."""
        asked = self._asked
        done = self._stream.tally.cases
        selected = (asked.places, done) if asked.share is None else (asked.everywhere, len(asked.everywhere))
        missing = tuple(not_checked(Located(asked.recipes), *selected))
        more = tuple(left_out(asked.recipes, missing))
        self.more = len(more)
        report = self._stream.report(missing=missing, more=more)
        return asked._replace(places=asked.places[:done]).with_share(report)


def not_checked(located: Located, places: Sequence[int], done: int) -> Iterator[tuple[str, str]]:
    """Yield file and name of every case that is not among the first ``done`` of some places."""
    if done == len(located):
        return
    checked = iter(places[:done])
    following = next(checked, None)
    place = 0
    for recipe in located.recipes:
        for entry in recipe.every():
            if place == following:
                following = next(checked, None)
            else:
                yield recipe.file, entry.name
            place += 1


def refuse_all_skipped(asked: Asked) -> None:
    """Raise SpecError where every case is skipped, so that nothing would be checked."""
    located = Located(asked.recipes)
    if all(located.at(place)[1].skip is not None for place in asked.places):
        raise SpecError(f"all {len(asked.places)} cases are skipped: nothing was checked", "remove a skip")


def streamed(
    asked: Asked,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    fail_fast: bool = False,
    checkpoint: str | None = None,
) -> Report:
    """Return the report on many cases; of more than `MAX_CASES`, it reads each from the disk when it is looked at.

    Raises:
        SpecError, WorkerLost: as `Stream`.
    """
    refuse_all_skipped(asked)
    stream = Stream(asked, jobs=jobs, executor=executor, fail_fast=fail_fast, checkpoint=checkpoint)
    with contextlib.ExitStack() as closing:
        closing.enter_context(stream)
        with contextlib.closing(stream.lines()) as lines:
            for _ in lines:
                pass
        report = Finished(stream, asked)()
        if len(asked.places) > MAX_CASES:
            closing.pop_all()  # the cases are read from the journal as long as there is the report
            return report
        return Report(**{**report._asdict(), "cases": tuple(report.cases)})
