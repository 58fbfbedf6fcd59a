"""A case that was answered, as the pattern of cases that differ from it in the position of the record alone.

Nothing of a run follows from the position but what theorems prove of it. The conditions that read it are checked
again, the theorems prove again, and the rest of the answer is that of the pattern. Where anything is not as it was,
there is no answer here, and the case is asked as any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpcalc.engine.evaluate import ANSWERS, Described, guarantee_from, is_lower
from dpcalc.engine.question import Query, Question, unknown_of
from dpcalc.engine.rows import ranked
from dpcalc.errors import DpcalcError
from dpcalc.model.run import Run
from dpcalc.named_tuple import NamedTuple
from dpcalc.notions.guarantee import Gdp, Rdp
from dpcalc.report import Case, Result
from dpcalc.theorems.record import Condition, Theorem


class Pattern(NamedTuple):
    """An answer, and what gave it.

    Attributes:
        case: the answer.
        question: what it answers.
        unknown: what is sought.
        conditions: that have to hold for every position.
        rows: the bounds that gave a row, and what their rows have in common.
    """

    case: Case
    question: Question
    unknown: str
    conditions: tuple[Condition, ...]
    rows: tuple[tuple[Theorem, Described], ...]

    @classmethod
    def of(
        cls,
        case: Case,
        run: Run,
        question: Question,
        bounds: Sequence[Theorem],
        refused: Mapping[str, tuple[DpcalcError, tuple[Condition, ...]]],
    ) -> Pattern | None:
        """Return the pattern that an answer is; None where another position may be answered in another way.

        Args:
            case, run, question: what was answered.
            bounds: that were asked, with the conditions that may not hold for every position.
            refused: those that apply to no position, as `dpcalc.engine.sweep.Settled` has them.
        """
        answered = {result.bound for result in case.results}
        asked = [bound for bound in bounds if bound.id not in refused]
        if "index" not in case.inputs or {bound.id for bound in asked} != answered or not run.typed("index"):
            return None
        if any(result.details for result in case.results) or any(bound.promises for bound in asked):
            return None
        conditions = [condition for _, others in refused.values() for condition in others]
        conditions += [condition for bound in asked for condition in bound.conditions]
        if any(condition.check(run) is not None for condition in conditions):
            return None
        rows = tuple((bound, Described.of(bound, run)) for bound in sorted(asked, key=is_lower))
        once = {id(condition): condition for condition in conditions}
        return cls(case, question, unknown_of(run, question), tuple(once.values()), rows)

    def at(self, run: Run, query: Query) -> Case | None:
        """Return the answer for a run that differs in its index alone; None where it is another.

        Raises:
            DpcalcError: a theorem says nothing of this position.
        """
        for condition in self.conditions:
            if condition.check(run) is not None:
                return None
        answer, orders, results = ANSWERS[self.unknown], self.question.orders, list[Result]()
        settings: dict[type, Any] = {}
        for bound, described in self.rows:
            setting = settings.get(bound.setting)
            if setting is None:
                setting = settings[bound.setting] = bound.setting.of(run)
            proved = bound.function(setting)
            if not isinstance(proved, (Gdp, Rdp)):
                return None
            results += answer(guarantee_from(bound, proved, orders), described, self.question)
        if any(result.details for result in results):
            return None
        inputs = {**self.case.inputs, "index": (run.index, self.case.inputs["index"][1])}
        return self.case._replace(inputs=inputs, results=ranked(results, self.unknown), assertions=(), query=query)
