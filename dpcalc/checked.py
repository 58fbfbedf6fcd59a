"""What a check says beside the answers: gates, how cases ended, counts of them, what changed, and which shard it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from dpcalc.plain_enum import PlainEnum


class Assertion(NamedTuple):
    """A gate: its text, whether it held, the value compared and the room left (negative when failed)."""

    text: str
    passed: bool
    value: float | str
    slack: float | None

    @property
    def limits(self) -> bool:
        """Whether it limits a number, unlike the name of a bound or an expected value."""
        return "<" in self.text or ">" in self.text

    @property
    def by_rounding(self) -> bool:
        """Whether it failed by no more than the rounding of a computation."""
        if self.slack is None or isinstance(self.value, str):
            return False
        return 0.0 < -self.slack <= 1e-9 * abs(self.value)


class Status(PlainEnum):
    """How a case of a recipe ended."""

    PASSED = "passed"
    FAILED = "failed"  # a gate did not hold
    SKIPPED = "skipped"
    ERROR = "error"


class Check(NamedTuple):
    """Where a case of a recipe stands, and how it ended.

    ``message`` says why where it did not pass, ``hint`` what to do, and ``exit_code`` is what the case alone would exit
    with. ``accepted`` names the exceptions that the case accepts, ``objections`` say why it fails although its gates
    hold, ``strict`` is whether it is strict, ``policy`` where the rule of a policy stands that it is judged by.
    """

    name: str
    command: str
    file: str
    line: int
    column: int
    status: Status
    message: str | None = None
    hint: str | None = None
    exit_code: int = 0
    accepted: tuple[str, ...] = ()
    objections: tuple[str, ...] = ()
    strict: bool = False
    policy: str | None = None


class Difference(PlainEnum):
    """How a case, its question or its answer may differ from that of an earlier report."""

    NEW = "new"
    REMOVED = "removed"
    NOT_SELECTED = "not selected"
    VERDICT = "verdict"
    GATES = "gates"
    OTHER_RUN = "describes another run"
    LESS = "asks for less"
    MORE = "asks for more"
    OTHER_QUESTION = "answers another question"


class Change(NamedTuple):
    """A difference from an earlier report. ``before`` and ``after`` are empty where there was nothing.

    ``quantity`` is the number or the input that changed, empty where the case itself did. ``what`` says how it changed:
    a `Difference`, or which way a number went. ``weaker`` is whether the recipe now asks for less, or for something
    that cannot be compared.
    """

    file: str
    name: str
    quantity: str
    before: str
    after: str
    what: str
    weaker: bool = False


class Shard(NamedTuple):
    """Which of the cases of a check a report is of.

    Attributes:
        number, of: shard ``number`` of ``of``, from 1 on.
        cases: how many cases all shards have together.
        places: where those of this report stand among all, from 0 on, in their order.
        recipes: file and strictness of every recipe.
        digest: of all cases as they were read, and of the files with their data.
        options: of the check, as far as verdicts depend on them.
        content: hash of all this and of the cases of the report: whoever changes one changes this, too.
    """

    number: int
    of: int
    cases: int
    places: tuple[int, ...]
    recipes: tuple[tuple[str, bool], ...]
    digest: str
    options: str
    content: str = ""


class Tally:
    """What there is to say of many cases, counted as they pass.

    Attributes:
        statuses, codes: how many cases of recipes ended in each way, and what they exit with.
        cases, failed: how many there are, and how many failed.
        gates, held, bare: how many gates there are, how many held, and how many cases passed without one.
    """

    def __init__(self, cases: Iterable[Any] = ()) -> None:
        self.statuses: dict[str, int] = {}
        self.codes: set[int] = set()
        self.cases = self.failed = self.gates = self.held = self.bare = 0
        for case in cases:
            self.add(case)

    def add(self, case: Any) -> None:
        """Count a case."""
        self.cases += 1
        self.failed += case.failed
        self.gates += len(case.assertions)
        self.held += sum(gate.passed for gate in case.assertions)
        if (check := case.check) is not None:
            self.statuses[check.status] = self.statuses.get(check.status, 0) + 1
            self.codes.add(check.exit_code)
            self.bare += not case.assertions and check.status == Status.PASSED
