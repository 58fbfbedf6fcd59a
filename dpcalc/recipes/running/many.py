"""The report on more cases than are held in memory: they are counted as they pass, and read from a file afterwards."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dpcalc.errors import PRECEDENCE
from dpcalc.recipes.reading.lazy import Lazy
from dpcalc.recipes.running.journal import Journal
from dpcalc.recipes.running.saved import read_line
from dpcalc.render.machine import case_line
from dpcalc.report import Case, Report, Status

MOST_SHOWN = 1000
"""Cases that a text shows, of a check of more than are held in memory."""

_PASSED = '"status": "passed"'
"""Of a line of JSON: within a string its quotes would be escaped."""


class Tally:
    """What there is to say of many cases, counted as they pass."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.codes: set[int] = set()
        self.cases = self.failed = self.gates = self.held = self.bare = 0

    def add(self, case: Case) -> None:
        """Count a case."""
        assert case.check is not None
        gates, held = len(case.assertions), sum(gate.passed for gate in case.assertions)
        self.cases += 1
        self.statuses[case.check.status] += 1
        self.codes.add(case.check.exit_code)
        self.gates, self.held = self.gates + gates, self.held + held
        self.failed += held < gates or case.check.status == Status.FAILED
        self.bare += not gates and case.check.status == Status.PASSED


class CasesOnDisk(Lazy[Case]):
    """Cases that a journal has, and some that stand after them."""

    def __init__(self, journal: Journal, tally: Tally, more: Sequence[Case] = ()) -> None:
        super().__init__(tally.cases, lambda place: read_line(self._line(place)))
        self._journal, self.tally = journal, tally
        self._more = [case_line("check", case) for case in more]

    def __iter__(self) -> Iterator[Case]:
        return map(read_line, self.lines())

    def _line(self, place: int) -> str:
        checked = len(self) - len(self._more)  # a check that stopped early may have more of them in its journal
        return self._journal.line(place) if place < checked else self._more[place - checked]

    def lines(self) -> Iterator[str]:
        """Yield the cases as lines of JSON."""
        return map(self._line, range(len(self)))


class Excerpt(tuple[Case, ...]):
    """Some cases, and the counts of all."""

    tally: Tally

    def __new__(cls, cases: Iterable[Case], tally: Tally) -> Excerpt:
        """Take the cases."""
        made = super().__new__(cls, cases)
        made.tally = tally
        return made


class ManyCases(Report):
    """A report whose cases are read from a journal whenever they are looked at, and were counted beforehand."""

    __slots__ = ()

    @property
    def tally(self) -> Tally:
        """The counts of the cases."""
        cases: Any = self.cases
        tally: Tally = cases.tally
        return tally

    @property
    def failed(self) -> int:
        """How many cases failed a gate."""
        return self.tally.failed

    @property
    def exit_code(self) -> int:
        """What the check exits with."""
        return next((code for code in PRECEDENCE if code in self.tally.codes), 0)

    @property
    def statuses(self) -> Counter[str]:
        """How many cases ended in each way."""
        return self.tally.statuses

    @property
    def gates(self) -> tuple[int, int, int]:
        """How many gates there are, how many of them held, and how many cases passed without one."""
        return self.tally.gates, self.tally.held, self.tally.bare

    def excerpt(self) -> ManyCases:
        """Return the report with its first cases that did not pass: its counts are still those of all."""
        cases: Any = self.cases
        troubled = (read_line(line) for line in cases.lines() if _PASSED not in line)
        return self._replace(cases=Excerpt(itertools.islice(troubled, MOST_SHOWN), self.tally))
