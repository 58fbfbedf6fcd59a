"""The verdict on a case that is like one that passed: nothing that a verdict reads differs but the numbers gated.

A verdict reads the gates, which are judged on every case, and what weakens a guarantee.
The latter follows from few inputs and from the kind of the answer. Where all of that is as it was in a case of the same
matrix that passed, and every gate holds, the case passes as well. Whatever is not plainly so is left to
`dpcalc.recipes.judging.verdict`, whose verdict this one equals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dpcalc.engine.gate import judge
from dpcalc.errors import DpcalcError
from dpcalc.model.source import Source
from dpcalc.recipes.judging.exceptions import worst_index
from dpcalc.recipes.reading.recipe import Entry
from dpcalc.report import Case, Result, Status

_READ = ("public_records", "window", "records", "permutation", "epochs")
"""The inputs of which a verdict depends, beside the position."""

_COUNTED = ("index", "window", "records")
"""What may be solved for and says whom the guarantee covers, or which delta is large."""

_NONE = (None, Source.DEFAULT)


class Passed(NamedTuple):
    """A case that passed.

    Attributes:
        entry: as it was written.
        judged: the case with its verdict.
        read: what the verdict depends on beside the rows and the position.
        results: what the verdict depends on of every row.
        position: the index and its source.
        worst: the position that is worst off, where a person gave one; None where that is open.
    """

    entry: Entry
    judged: Case
    read: list[Any]
    results: list[Any]
    position: tuple[Any, Any]
    worst: object

    @classmethod
    def of(cls, entry: Entry, answer: Case, judged: Case, *, certify: bool) -> Passed | None:
        """Return a case that others may be like; None where it did not pass, or its verdict reads more than is here.

        Args:
            entry: as it was written.
            answer, judged: without the verdict and with it.
            certify: whether a guarantee must be proved.
        """
        check = judged.check
        if check is None or check.status is not Status.PASSED or certify or not _is_plain(entry, answer):
            return None
        if any(gate.terms for gate in entry.gates) or any(row.quantity in _COUNTED for row in answer.results):
            return None
        index = answer.inputs.get("index", _NONE)
        worst = worst_index(entry, answer) if index[1].typed else None
        return cls(entry, judged, _read(answer), _kinds(answer.results), index, worst)

    def also(self, entry: Entry, case: Case) -> Case | None:
        """Return a case with the verdict that it passed; None where it may be another."""
        before = self.entry
        if not (
            entry.place is before.place and entry.gates is before.gates and entry.accept is before.accept
            and entry.notes is before.notes and _is_plain(entry, case)
        ):  # fmt: skip
            return None
        if _read(case) != self.read or _kinds(case.results) != self.results:
            return None
        if not self._is_placed_alike(entry, case.inputs.get("index", _NONE)):
            return None
        try:
            assertions = [judge(gate.gate, case) for gate in entry.gates]
        except DpcalcError:
            return None
        if not all(assertion.passed for assertion in assertions):
            return None
        check = self.judged.check
        assert check is not None
        return case._replace(
            note_data=self.judged.note_data, assertions=tuple(assertions), check=check._replace(name=entry.name)
        )

    def _is_placed_alike(self, entry: Entry, index: tuple[Any, Any]) -> bool:
        """Return whether a position is the worst one where that of the case that passed is, and only there."""
        if index[1] is not self.position[1]:
            return False
        if not index[1].typed:
            return True  # then no position is read
        if (index[0] == self.worst) != (self.position[0] == self.worst):
            return False
        given, before = entry.parameters, self.entry.parameters
        return {**given, "index": before.get("index")} == before


def _is_plain(entry: Entry, case: Case) -> bool:
    """Return whether the verdict on a case reads nothing but what is compared here."""
    written = entry.skip is None and entry.expected is None and entry.rule.plain and "ledger" not in entry.parameters
    return written and case.training is None and case.query is not None and not (case.assertions or case.warnings)


def _read(case: Case) -> list[Any]:
    inputs = case.inputs
    return [case.algorithm, case.note_data, *[inputs.get(name) for name in _READ]]


def _kinds(results: tuple[Result, ...]) -> list[Any]:
    """Return of every row what it speaks of, whether it is the best one, and its delta."""
    return [(result.quantity, result.best, result.delta) for result in results]
