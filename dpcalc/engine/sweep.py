"""Many cases in a row that differ in few parameters: what they share is worked out once.

A condition of a theorem is a function of the parameters that it reads. One that reads none of those that vary says of
every case what it said of the first, and is not asked again. Whatever is not plainly such a case is left to
`dpcalc.engine.ask.ask`, whose answer this one equals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.answer import ROWS, answer
from dpcalc.engine.ask import bounds_of, implied_gate
from dpcalc.engine.commands import COMMANDS, Command
from dpcalc.engine.description import run_of
from dpcalc.engine.guess import guess_of
from dpcalc.engine.misread_noise import is_misread
from dpcalc.engine.moved import Pattern
from dpcalc.engine.question import Question, check_question, query_of, unknown_of
from dpcalc.errors import DpcalcError
from dpcalc.model.run import Description, Run, at_index
from dpcalc.notes import Note
from dpcalc.notions.guarantee import Gdp, Rdp
from dpcalc.report import Case
from dpcalc.theorems.record import Condition, Theorem, for_algorithm, refusal


class Settled(NamedTuple):
    """The bounds to ask of the cases of a sweep, without the conditions that hold for all of them.

    Attributes:
        bounds: those to ask.
        refused: of the bounds that apply to no case: the error, unless one of the conditions that are left fails.
        closed: whether all that may apply are closed forms, which take no time and no memory to speak of.
        reference: the run of which the conditions were asked.
        lasting: whether the same bounds are to be asked of all cases: none depends on a promise that varies.
    """

    bounds: Sequence[Theorem]
    refused: Mapping[str, tuple[DpcalcError, tuple[Condition, ...]]]
    closed: bool
    reference: Run
    lasting: bool = True

    def refused_of(self, run: Run) -> dict[str, DpcalcError]:
        """Return the errors of the bounds of which it is known that they do not apply to a run, and why."""
        return {
            id: error
            for id, (error, others) in self.refused.items()
            if not others or all(condition.check(run) is None for condition in others)
        }


class Sweep:
    """What the cases seen so far have in common, for the next one."""

    def __init__(self) -> None:
        self._command = ""
        self._given: Mapping[str, Any] = {}
        self._run: Run | None = None
        self._notes: tuple[Note, ...] = ()
        self._known: Run | None = None  # the last run for which the settled bounds are known to be right
        self._moved = False  # whether the last run differs from that in nothing but its index
        self._varies: frozenset[str] = frozenset()
        self._ordered = False
        self._settled: Settled | None = None
        self._question: Question | None = None
        self._pattern: Pattern | None = None  # the last answer, for runs that differ in nothing but their index

    def ask(self, command: str, given: Mapping[str, Any], question: Question, *, closed: bool = False) -> Case | None:
        """Return what `ask` returns of a case, without notes and of the best bounds only; None where it is to be asked.

        Args:
            command, given, question: as for `ask`.
            closed: whether to answer by closed forms only.
        """
        record = COMMANDS[command]
        if question is self._question and self._pattern is not None and (case := self._as_before(record, given)):
            return case
        if record.trains or record.prices or record.compares or "schedule" in given or not _is_plain(question):
            return None
        try:
            run = self._described(record, given)
            if run is None or is_misread(run):  # what the other reading of a noise gives takes more
                return None
            check_question(question)
            settled = self._bounds(record, run, question)
            if closed and not (settled.closed and unknown_of(run, question) in ROWS):
                return None
            case = answer(run, question, settled.bounds, settled.refused_of(run))
        except DpcalcError:
            return None  # the error names what is nearest to the run, which takes more
        if self._notes:
            case = case._replace(note_data=self._notes)
        case = case._replace(query=query_of(command, given, question), guess=guess_of(case, run, question.orders))
        self._question, self._pattern = question, None
        if settled.closed and "index" in self._varies:
            self._pattern = Pattern.of(case, run, question, settled.bounds, settled.refused)
        implied = implied_gate(question, case)
        return case._replace(assertions=implied) if implied else case

    def _as_before(self, record: Command, given: Mapping[str, Any]) -> Case | None:
        """Return the answer to the last question about a run that differs in its index alone; None for another run."""
        try:
            run = self._described(record, given)
            if run is None or self._pattern is None or self._question is None or not self._moved:
                return None
            case = self._pattern.at(run, query_of(record.name, given, self._question))
        except DpcalcError:
            return None
        if case is None:
            return None
        self._known = run
        case = case._replace(guess=guess_of(case, run, self._question.orders))
        implied = implied_gate(self._question, case)
        return case._replace(assertions=implied) if implied else case

    def _described(self, record: Command, given: Mapping[str, Any]) -> Run | None:
        """Return the run; None where one is described that is not covered here.

        Raises:
            SpecError: the description is malformed.
        """
        last = self._given
        alike = self._run is not None and self._command == record.name and last.keys() == given.keys()
        differing = [name for name in given if given[name] is not last[name]] if alike else None
        if differing == []:
            return self._run
        run = at_index(self._run, given["index"]) if differing == ["index"] and self._run is not None else None
        self._moved = run is not None and self._run is self._known
        if run is None:
            if not alike and not given.keys() <= {*record.parameters}:
                return None
            _, run, notes = run_of(record, Description(given))
            if run.algorithm.chained or run.schedule is not None or (run.group_size or 1) > 1:
                return None
            self._notes, self._pattern = notes, None  # the pattern is of another run
        if not alike:
            self._varies, self._settled = frozenset(), None
        self._command, self._given, self._run = record.name, given, run
        return run

    def _bounds(self, record: Command, run: Run, question: Question) -> Settled:
        """Return the bounds to ask of a run."""
        ordered, settled = bool(question.orders), self._settled if self._ordered == bool(question.orders) else None
        if settled is None or not self._is_covered(settled.reference, run) or not settled.lasting:
            bounds = bounds_of(record, run, question, best_only=True, alone=False)
            every = for_algorithm(run.algorithm.name, record.families or run.algorithm.families)
            self._settled = settled = _settled(bounds, every, run, self._varies, ordered)
        self._known, self._ordered = run, ordered
        return settled

    def _is_covered(self, reference: Run, run: Run) -> bool:
        """Return whether a run differs from another in nothing but what is known to vary, which grows."""
        if reference is run or (self._moved and "index" in self._varies):
            return True
        moved = _differing(reference, run)
        covered = moved <= self._varies
        self._varies |= moved
        return covered and reference.algorithm is run.algorithm and reference.values.keys() == run.values.keys()


def _is_plain(question: Question) -> bool:
    """Return whether nothing is asked but epsilon, delta, mu or a Renyi divergence."""
    return not (question.solve or question.risks or question.targets or question.curves)


def _differing(one: Run, other: Run) -> set[str]:
    """Return the names of the fields in which two runs differ."""
    a, b = one.__dict__, other.__dict__
    names = {name for name in (*a, *b) if a.get(name) is not b.get(name) and a.get(name) != b.get(name)}
    return names - {"values"}


def _settled(
    bounds: Sequence[Theorem], every: Sequence[Theorem], run: Run, varies: frozenset[str], ordered: bool
) -> Settled:
    """Return the bounds without the conditions that do not depend on what varies; ``every`` has the others as well."""
    if any(_parted(bound.promises, run, varies)[0] for bound in every):
        return Settled(bounds, {}, False, run, False)  # which bounds there are differs between the cases
    made, refused, closed = [], {}, True
    for bound in bounds:
        left, fixed = _parted(bound.conditions, run, varies)
        obstacle = bound._replace(conditions=fixed).obstacle(run)
        if obstacle is None:
            made.append(bound._replace(conditions=left))
            closed = closed and _is_closed(bound, ordered)
        else:
            made.append(bound)
            refused[bound.id] = refusal(obstacle), left
    return Settled(made, refused, closed, run)


def _parted(
    conditions: Sequence[Condition], run: Run, varies: frozenset[str]
) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """Return the conditions that may hold for some cases and not for others, and those of which all cases are alike."""
    read = [(condition, _read_by(condition, run)) for condition in conditions]
    left = tuple(condition for condition, names in read if "*" in names or names & varies)
    return left, tuple(condition for condition, _ in read if condition not in left)


def _is_closed(bound: Theorem, ordered: bool) -> bool:
    return not bound.slow and (bound.gives is Gdp or (bound.gives is Rdp and ordered))


class _Watched(Run):
    """A run that writes down which of its fields are read; ``*`` stands for all of them."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("__dict__", "values"):
            object.__getattribute__(self, "_read").add("*")
        elif name in _FIELDS:
            object.__getattribute__(self, "_read").add(name)
        return object.__getattribute__(self, name)


_FIELDS = frozenset(Run.fields)


def _read_by(condition: Condition, run: Run) -> set[str]:
    """Return the fields of a run that a condition reads."""
    watched, read = object.__new__(_Watched), set[str]()
    object.__getattribute__(watched, "__dict__").update(run.__dict__, _read=read)
    condition.check(watched)
    return read
