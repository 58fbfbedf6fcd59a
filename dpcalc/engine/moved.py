"""A case that was answered, as the pattern of cases that differ from it in the position of the record alone.

Nothing of a run follows from the position but what theorems prove of it. The conditions that read it are checked
again, the theorems prove again, and the rest of the answer is that of the pattern. Where anything is not as it was,
there is no answer here, and the case is asked as any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.evaluate import ANSWERS, Described, guarantee_from, is_lower
from dpcalc.engine.question import Query, Question, unknown_of
from dpcalc.engine.rows import ranked
from dpcalc.errors import DpcalcError
from dpcalc.model.quantities import Quantity
from dpcalc.model.run import Run
from dpcalc.numerics.floats import is_short
from dpcalc.report import Case, Result
from dpcalc.theorems.record import Condition, Theorem
from dpcalc.theorems.setting import Setting


class Pattern(NamedTuple):
    """An answer, and what gave it.

    Attributes:
        case: the answer.
        question: what it answers.
        unknown: what is sought.
        conditions: that have to hold for every position.
        rows: the bounds that gave a row, and what their rows have in common.
        settings: what the bound of each row reads of the run.
        divergences: where Renyi divergences are asked, how their rows are ranked.
    """

    case: Case
    question: Question
    unknown: str
    conditions: tuple[Condition, ...]
    rows: tuple[tuple[Theorem, Described], ...]
    settings: tuple[Setting, ...]
    divergences: Divergences | None

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
        settings = tuple(bound.setting_of(run) for bound, _ in rows)
        unknown = unknown_of(run, question)
        divergences = Divergences.of(case.results, rows, question) if unknown == Quantity.RDP else None
        return cls(case, question, unknown, tuple(once.values()), rows, settings, divergences)

    def at(self, run: Run, query: Query) -> Case | None:
        """Return the answer for a run that differs in its index alone; None where it is another.

        Raises:
            DpcalcError: a theorem says nothing of this position.
        """
        for condition in self.conditions:
            if condition.check(run) is not None:
                return None
        settings = [
            setting.changed(index=run.index) if "index" in setting.known else setting for setting in self.settings
        ]
        proved = [bound.function(setting) for (bound, _), setting in zip(self.rows, settings, strict=True)]
        results = self.divergences.ranked(proved) if self.divergences is not None else None
        results = results or self._ranked(proved)
        if results is None:
            return None
        inputs = {**self.case.inputs, "index": (run.index, self.case.inputs["index"][1])}
        return self.case._replace(inputs=inputs, results=results, assertions=(), query=query)

    def _ranked(self, proved: Sequence[Any]) -> tuple[Result, ...] | None:
        """Return the rows of what was proved; None where one has details."""
        answer, orders, results = ANSWERS[self.unknown], self.question.orders, list[Result]()
        for each, (bound, described) in zip(proved, self.rows, strict=True):
            if not each.has_renyi:
                return None
            results += answer(guarantee_from(bound, each, orders), described, self.question)
        if any(result.details for result in results):
            return None
        return ranked(results, self.unknown)


class Divergences(NamedTuple):
    """How the rows of a pattern are ranked in which nothing but Renyi divergences, and mu, depends on the position.

    Attributes:
        orders: those asked about.
        ranks: the places of the rows, the least divergence first; rows stand in the order of the bounds and the orders.
        fields: the place of every row, and its fields before its value, between that and mu, and after mu; the best
            row first.
    """

    orders: tuple[float, ...]
    ranks: list[int]
    fields: tuple[tuple[int, tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]], ...]

    @classmethod
    def of(
        cls, results: Sequence[Result], rows: Sequence[tuple[Theorem, Described]], question: Question
    ) -> Divergences | None:
        """Return how some results are ranked; None where an order is not asked about as it stands.

        Args:
            results: the best first.
            rows: the bounds that gave them.
            question: what they answer.
        """
        if any(is_lower(bound) for bound, _ in rows) or not all(map(is_short, question.orders)):
            return None
        named = {(result.bound, result.order): result for result in results}
        unranked = [(bound.id, order) for bound, _ in rows for order in question.orders]
        if sorted(named) != sorted(unranked) or len(results) != len(named):
            return None
        values = [named[name].value for name in unranked]
        fields = [
            (unranked.index((row.bound, row.order or 0.0)), row[:_VALUE], row[_VALUE + 1 : _MU], row[_MU + 1 :])
            for row in results
        ]
        return cls(question.orders, _ranks(values), tuple(fields))

    def ranked(self, proved: Sequence[Any]) -> tuple[Result, ...] | None:
        """Return the rows of what was proved, the best first; None where they are to be ranked anew."""
        values, means = list[float](), list[float | None]()
        for each in proved:
            if not each.has_renyi or each.certificate is not None:
                return None
            for order in self.orders:
                value = each.rdp(order)
                if not value < math.inf:
                    return None
                values.append(value)
                means.append(each.mu)
        if _ranks(values) != self.ranks:
            return None
        rows = [
            tuple.__new__(Result, (*front, values[place], *middle, means[place], *back))
            for place, front, middle, back in self.fields
        ]
        return tuple(rows)


_VALUE, _MU = Result._fields.index("value"), Result._fields.index("mu")


def _ranks(values: Sequence[float]) -> list[int]:
    """Return the places of values, the least first, equal ones as they stand."""
    return sorted(range(len(values)), key=values.__getitem__)
