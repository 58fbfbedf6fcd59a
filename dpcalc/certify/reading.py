"""The two readings of a run: its doubles as they are, and the decimals that they print as."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb, fmpq

from dpcalc.certify.derived import derived_formulas, multiples
from dpcalc.certify.numerics.balls import Inputs, double, rational
from dpcalc.model.choices import LastBatch
from dpcalc.model.quantities import Quantity
from dpcalc.model.source import Source
from dpcalc.report import Result

if TYPE_CHECKING:
    from dpcalc.engine.question import Question
    from dpcalc.model.run import Run

EXACT = ("log_delta", "order")
"""What is read as the double that it is, in both readings: no user types it in this form."""

_ANSWERS = (Quantity.EPSILON, Quantity.DELTA, Quantity.MU, Quantity.RDP)


class Reading(NamedTuple):
    """A result and the question that it answers, with the run's parameters in one reading.

    What is ``known`` of these numbers is for formulas to remember; readings of the same numbers share it.
    """

    result: Result
    question: Question
    parameters: Mapping[str, Any]
    derived: Mapping[str, Callable[[Inputs], Any]]
    typed: bool
    known: dict[Any, Any]
    read: set[str]
    """The names of the parameters that were read so far, and have a value."""

    @property
    def name(self) -> str:
        """What the numbers are read as."""
        return "the decimals" if self.typed else "the doubles"

    def inputs(self, **asked: Any) -> Inputs:
        """Return the parameters, and what is asked beside them, as the attributes that a formula reads."""
        found = {"certificate": (self.result.details or {}).get("certificate")}
        return Inputs({**self.parameters, **found, **asked}, self.typed, self.derived, EXACT, self.read)

    def order(self) -> arb:
        """Return the order of the result."""
        assert self.result.order is not None
        return double(self.result.order)

    def epsilon(self) -> fmpq:
        """Return the epsilon that was asked for."""
        assert self.question.epsilon is not None
        return rational(float(self.question.epsilon), self.typed)

    def log_delta(self) -> arb:
        """Return ln of the delta that was asked for, at the working precision."""
        return asked_log_delta(self.question, self.typed)


def asked_log_delta(question: Question, typed: bool) -> arb:
    """Return ln of the delta that was asked for; where no double holds delta, from the logarithm that was parsed."""
    assert question.log_delta is not None
    if question.delta is None or not question.delta > 1e-300:
        return double(question.log_delta)
    return arb(rational(question.delta, typed)).log()


def cases_of(result: Result, run: Run) -> tuple[Run, ...]:
    """Return the run that a result is about, for each record that may be the worst off; a solved parameter has its
    solution.
    """
    solved = run if result.quantity in _ANSWERS else run.replacing(**{result.quantity: result.value})
    if solved.source("index") is not Source.WORST_CASE or solved.algorithm.single:
        return (solved,)
    return tuple(solved.changed(index=index) for index in _last_of_each_size(solved)) or (solved,)


def _last_of_each_size(run: Run) -> set[int]:
    """Return the positions of the last records in batches of each size, where a smaller batch is not the last one."""
    n, b = run.records, run.batch_size
    if n is None or b is None or b >= n or n % b == 0:
        return set()
    if run.last_batch == LastBatch.FRONT:
        return {n % b, n}
    larger = n % -(-n // b)  # how many batches hold one record more than the others
    return {n - larger * -(-n // -(-n // b)), n} if run.last_batch == LastBatch.BALANCED and larger else set()


def readings_of(result: Result, run: Run, question: Question) -> Iterator[Reading]:
    """Yield the doubles of a run as they are, then the decimals that they print as."""
    derived = derived_formulas(run)
    known: dict[Any, Any] = {}
    decimals = {**run.values, **multiples(run)}
    yield Reading(result, question, run.values, derived, False, known, set())
    certificate = (result.details or {}).get("certificate")
    same = _same((run.values, certificate), (decimals, certificate))
    yield Reading(result, question, decimals, derived, True, known if same else {}, set())


def _same(doubles: Any, decimals: Any) -> bool:
    """Return whether both readings have the same numbers; False where that is not known."""
    if isinstance(doubles, float):
        if not math.isfinite(doubles):
            return bool(doubles == decimals)
        decimal = decimals if isinstance(decimals, fmpq) else rational(decimals, typed=True)
        return bool(rational(doubles, typed=False) == decimal)
    if isinstance(doubles, Mapping):
        return doubles.keys() == decimals.keys() and all(_same(doubles[name], decimals[name]) for name in doubles)
    if isinstance(doubles, (list, tuple)):
        return len(doubles) == len(decimals) and all(map(_same, doubles, decimals))
    return doubles is None or (isinstance(doubles, (int, str)) and bool(doubles == decimals))
