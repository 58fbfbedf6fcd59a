"""The two readings of a run: its doubles as they are, and the decimals that they print as."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb, fmpq

from dpcalc.certify.balls import Inputs, double, rational
from dpcalc.certify.derived import derived_formulas, multiples
from dpcalc.model.quantities import Quantity
from dpcalc.report import Result
from dpcalc.theorems.batch_layout import worst_cases

if TYPE_CHECKING:
    from dpcalc.engine.question import Question
    from dpcalc.model.run import Run

EXACT = ("log_delta", "order")
"""What is read as the double that it is, in both readings: no user types it in this form."""

_ANSWERS = (Quantity.EPSILON, Quantity.DELTA, Quantity.MU, Quantity.RDP)


class Reading(NamedTuple):
    """A result and the question that it answers, with the run's parameters in one reading."""

    result: Result
    question: Question
    parameters: Mapping[str, Any]
    derived: Mapping[str, Callable[[Inputs], Any]]
    typed: bool

    @property
    def name(self) -> str:
        """What the numbers are read as."""
        return "the decimals" if self.typed else "the doubles"

    def inputs(self, **asked: Any) -> Inputs:
        """Return the parameters, and what is asked beside them, as the attributes that a formula reads."""
        return Inputs({**self.parameters, **asked}, self.typed, self.derived, EXACT)

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
    return worst_cases(run if result.quantity in _ANSWERS else run.replacing(**{result.quantity: result.value}))


def readings_of(result: Result, run: Run, question: Question) -> Iterator[Reading]:
    """Yield the doubles of a run as they are, then the decimals that they print as."""
    derived = derived_formulas(run)
    yield Reading(result, question, run.values, derived, typed=False)
    yield Reading(result, question, {**run.values, **multiples(run)}, derived, typed=True)
