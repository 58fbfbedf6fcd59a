"""The two readings of a run, its exact doubles and the decimals that they print as, and derived parameters in balls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb, fmpq

from dpcalc.certify.numerics.balls import double, rational
from dpcalc.certify.runs.run import RunInputs, schedule_reach
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import Adjacency, LastBatch, Noise, Quantity
from dpcalc.report import Result

if TYPE_CHECKING:
    from dpcalc.model.question import Question
    from dpcalc.model.run import Run

Formula = Callable[[RunInputs], arb]


def multiples(run: Run) -> dict[str, fmpq]:
    """Return the derived parameters that equal another decimal or twice it: the sensitivity and the diameter."""
    derived: dict[str, fmpq] = {}
    if run.sensitivity is not None and run.source("sensitivity") is Source.DERIVED:
        assert run.lipschitz is not None
        factor = 2 if run.adjacency is Adjacency.REPLACE_ONE else 1
        derived["sensitivity"] = factor * rational(run.lipschitz, typed=True)
    if run.source("diameter") is Source.DERIVED:
        assert run.radius is not None
        derived["diameter"] = 2 * rational(run.radius, typed=True)
    return derived


def derived_formulas(run: Run) -> dict[str, Formula]:
    """Return the formulas of all other derived parameters."""
    formulas: dict[str, Formula] = {}
    if run.source("displacement") is Source.DERIVED:
        formulas["displacement"] = _in_1_norm(run.dimension or 1) if run.noise is Noise.LAPLACE else _displacement
    if run.source("noise_std") is Source.DERIVED:
        langevin = run.langevin_std is not None
        formulas["noise_std"] = formulas["scale"] = _langevin_noise_std if langevin else _mean_noise(run)
    elif run.source("scale") is Source.DERIVED and run.c1 is not None:
        formulas["scale"] = _tuned_scale
    return formulas


def _displacement(v: RunInputs) -> arb:
    """Return a bound on the distance of two points after a step, over the diameter; infinite if none holds."""
    factor = v.displacement_bound()
    return arb.pos_inf() if factor is None else factor


def _in_1_norm(dimension: int) -> Formula:
    """Return the displacement in the norm of Laplace noise, which is at most sqrt(d) times the Euclidean one."""
    spread = arb(dimension).sqrt()
    return lambda v: spread * _displacement(v)


def _langevin_noise_std(v: RunInputs) -> arb:
    """Return sigma = s sqrt(2/eta) of Langevin noise s."""
    return v.langevin_std * (2 / v.step_size).sqrt()


def _mean_noise(run: Run) -> Formula:
    """Return the noise on the mean gradient that follows from the noise multiplier."""
    size = "records" if run.algorithm.full_batch else "batch_size"
    norm = "lipschitz" if run.clip is None else "clip"
    return lambda v: v.quotient(["noise_multiplier", norm], [size])


def _tuned_scale(v: RunInputs) -> arb:
    """Return the scale of a schedule that is tuned to n records: c D/(eta r_B(n))."""
    return v.displacement * v.diameter / v.step_size / schedule_reach(v.noise, arb(v.records), v.c1, v.c2)


EXACT = ("log_delta", "order")
"""Parameters that are read as exact doubles in both readings: no user types them in this form."""

_ANSWERS = (Quantity.EPSILON, Quantity.DELTA, Quantity.MU, Quantity.RDP)


MORE_PRIVATE, LESS_PRIVATE = ("noise_multiplier",), ("sample_rate",)
"""Parameters of sampled steps: larger values are always more private, or always less private."""


class Reading(NamedTuple):
    """A result and the question that it answers, with the run's parameters in one reading.

    Attributes:
        known: upper bounds that formulas cache for these numbers.
        read: the names of the parameters with a value that were read so far.
        before: the reading that was proved before this one.
    """

    result: Result
    question: Question
    parameters: Mapping[str, Any]
    derived: Mapping[str, Callable[[RunInputs], Any]]
    typed: bool
    known: dict[Any, Any]
    read: set[str]
    before: Reading | None = None

    @property
    def name(self) -> str:
        """The name of the reading."""
        return "the decimals" if self.typed else "the doubles"

    def inputs(self, **asked: Any) -> RunInputs:
        """Return the parameters and the asked values as the attributes that a formula reads."""
        extra = {"certificate": (self.result.details or {}).get("certificate")}
        return RunInputs({**self.parameters, **extra, **asked}, self.typed, self.derived, EXACT, self.read)

    def upper_bounds(self) -> dict[Any, Any]:
        """Return the cache of formulas: that of the previous reading, if that one is no more private."""
        before = self.before
        if before is not None and all(before.no_more_private(self, name) for name in self.read | before.read):
            return before.known
        return self.known

    def no_more_private(self, other: Reading, name: str) -> bool:
        """Return whether a parameter has the same value here, or one known to be less private."""
        here, there = self._number(name), other._number(name)
        if here is None or there is None:
            return _same(self.parameters.get(name), other.parameters.get(name))
        return here == there or (name in MORE_PRIVATE and here < there) or (name in LESS_PRIVATE and here > there)

    def _number(self, name: str) -> fmpq | None:
        """Return a parameter as a rational; None if it is not a number."""
        value = self.parameters.get(name)
        if isinstance(value, fmpq):
            return value
        if not isinstance(value, float) or not math.isfinite(value):
            return None
        return rational(value, self.typed and name not in EXACT)

    def order(self) -> arb:
        """Return the order of the result."""
        assert self.result.order is not None
        return double(self.result.order)

    def epsilon(self) -> fmpq:
        """Return the epsilon of the question."""
        assert self.question.epsilon is not None
        return rational(float(self.question.epsilon), self.typed)

    def log_delta(self) -> arb:
        """Return ln of the question's delta, at the working precision."""
        return asked_log_delta(self.question, self.typed)


def asked_log_delta(question: Question, typed: bool) -> arb:
    """Return ln of the question's delta, from the parsed logarithm if delta is below the doubles."""
    assert question.log_delta is not None
    if question.delta is None or not question.delta > 1e-300:
        return double(question.log_delta)
    return arb(rational(question.delta, typed)).log()


def cases_of(result: Result, run: Run) -> tuple[Run, ...]:
    """Return the result's run for each record that may be the worst one, with the solution of a solved parameter."""
    solved = run if result.quantity in _ANSWERS else run.replacing(**{result.quantity: result.value})
    if solved.source("index") is not Source.WORST_CASE or solved.algorithm.single:
        return (solved,)
    return tuple(solved.changed(index=index) for index in _last_of_each_size(solved)) or (solved,)


def _last_of_each_size(run: Run) -> set[int]:
    """Return the positions of the last records in batches of each size, if a smaller batch is not the last one."""
    n, b = run.records, run.batch_size
    if n is None or b is None or b >= n or n % b == 0:
        return set()
    if run.last_batch == LastBatch.FRONT:
        return {n % b, n}
    larger = n % -(-n // b)  # the number of batches with one record more than the others
    return {n - larger * -(-n // -(-n // b)), n} if run.last_batch == LastBatch.BALANCED and larger else set()


def readings_of(result: Result, run: Run, question: Question) -> Iterator[Reading]:
    """Yield the reading as exact doubles and the one as printed decimals, the less private one first."""
    derived = derived_formulas(run)
    doubles = Reading(result, question, run.values, derived, False, {}, set())
    decimals = Reading(result, question, {**run.values, **multiples(run)}, derived, True, {}, set())
    directed = (*MORE_PRIVATE, *LESS_PRIVATE)
    first, second = doubles, decimals
    if not all(doubles.no_more_private(decimals, name) for name in directed):
        first, second = decimals, doubles
    yield first
    yield second._replace(before=first)


def _same(one: Any, other: Any) -> bool:
    """Return whether both are the same value; False if they contain finite doubles."""
    if isinstance(one, float):
        return not math.isfinite(one) and bool(one == other)
    if isinstance(one, (list, tuple)):
        return isinstance(other, (list, tuple)) and len(one) == len(other) and all(map(_same, one, other))
    return other is None if one is None else isinstance(one, (int, str)) and bool(one == other)
