"""Definitions of `online` and `stepwise`: noise that differs from step to step."""

from __future__ import annotations

from enum import Enum
from typing import Any

from flint import arb

from dpcalc.certify.guarantee import Gdp, Profile
from dpcalc.certify.numerics.balls import (
    ABYSS,
    ZERO,
    OutOfReach,
    composed,
    infinite,
    least,
    log_delta,
    log_step,
    mixture,
    square,
)
from dpcalc.certify.runs.divergence import shrunk
from dpcalc.certify.runs.run import RunInputs, schedule_reach
from dpcalc.certify.table import defines
from dpcalc.model.quantities import Noise

LONGEST = 2000  # steps after the record's own


# --- streams ---------------------------------------------------------------------------------------------------------


class Stream:
    """A decaying schedule: record t has the scale multiplier unit/reach(t^alpha), unit = c D/eta.

    Raises:
        OutOfReach: the stream is too long.
    """

    def __init__(self, v: RunInputs) -> None:
        if v.records - v.index > LONGEST:
            raise OutOfReach(f"a stream of more than {LONGEST} later records")
        self.v, self.unit = v, v.displacement * v.diameter / v.step_size

    def reach(self, t: int) -> arb:
        """Return r_B at step t."""
        v = self.v
        return schedule_reach(v.noise, (arb(t).log() * v.decay_exponent).exp(), v.c1, v.c2) / v.schedule_factor

    def scale(self, t: int) -> arb:
        """Return the noise scale of record t."""
        return self.unit / self.reach(t)

    def first(self) -> arb:
        """Return ln A."""
        return log_step(self.v.noise, self.v.epsilon, self.v.sensitivity / self.scale(self.v.index))

    def recursion(self, shifts: bool) -> arb:
        """Return ln e_n of the non-linear recursion, capped by the Gaussian shift bound if ``shifts``."""
        v, log_e = self.v, self.first()
        spread = square(self.scale(v.index))
        for t in range(v.index + 1, v.records + 1):
            if infinite(log_e):
                break
            step = log_step(v.noise, shrunk(v.epsilon, log_e), self.reach(t))
            log_e = ZERO if infinite(step) else log_e + step
            if shifts:
                spread += square(self.scale(t))
                log_e = log_e.min(log_delta(v.epsilon, v.sensitivity / spread.sqrt()))
            if log_e < ABYSS and not infinite(log_e):
                return ABYSS
        return log_e


@defines("online.product", Profile, slack=1e-8, weight=20.0, limit=f"{LONGEST} later records")
def _online_product(v: RunInputs) -> arb:
    stream = Stream(v)
    total = stream.first()
    for t in range(v.index + 1, v.records + 1):
        if infinite(total):
            break
        step = log_step(v.noise, v.epsilon, stream.reach(t))
        total = ZERO if infinite(step) else total + step
    return total


@defines("online.shift", Gdp, slack=1e-9, weight=10.0, limit=f"{LONGEST} later records")
def _online_shift(v: RunInputs) -> arb:
    stream = Stream(v)
    later = sum((square(stream.scale(t)) for t in range(v.index + 1, v.records + 1)), arb(0))
    own = v.sensitivity / (later + square(stream.scale(v.index))).sqrt()
    return own if v.index == v.records else own.min(v.diameter / (v.step_size * later.sqrt()))


@defines("online.hybrid", Profile, slack=1e-8, weight=40.0, limit=f"{LONGEST} later records")
def _online_hybrid(v: RunInputs) -> arb:
    return least(_online_product(v), Stream(v).recursion(v.is_nonexpansive() and v.noise == Noise.GAUSSIAN))


@defines("online.laplace_shift", Profile, slack=1e-6, weight=40.0, limit="200 later records")
def _online_laplace_shift(v: RunInputs) -> arb:
    stream, later = Stream(v), v.records - v.index
    if later > 200:
        raise OutOfReach("a stream of more than 200 later records")
    bounds = [stream.first()]
    scales = [stream.scale(t) for t in range(v.index, v.records + 1)]
    for m in sorted({later, *range(min(later, 8)), *(2**j - 1 for j in range(later.bit_length()))}):
        spread = sum(scales[: m + 1], arb(0))
        bounds.append(composed(v.sensitivity * (m + 1) / spread, m + 1, v.epsilon))
        bounds.append(mixture(v.sensitivity / scales[m], m, v.epsilon))
    return least(*bounds)


# --- schedules -------------------------------------------------------------------------------------------------------


class Recursion(Enum):
    """The non-linear recursion to use: none, plain, or with the record's own shift bound."""

    NONE, PLAIN, WITH_SHIFTS = range(3)


class Steps:
    """A schedule in the terms of the stepwise bounds; None for a missing column.

    Raises:
        OutOfReach: the schedule is too long.
    """

    def __init__(self, v: RunInputs) -> None:
        chain: Any = v.schedule
        if len(chain) > LONGEST:
            raise OutOfReach(f"a schedule of more than {LONGEST} steps")
        self.v, self.count = v, len(chain)
        self.step_size = v.column(chain.step_size)
        self.scale = [x * v.scale for x in v.column(chain.noise)]
        self.displacement = v.column(chain.displacement) if chain.displacement is not None else None
        self.contraction = v.column(chain.contraction) if chain.lipschitz else None
        law = v.column(chain.probability) if chain.probability is not None else None
        if law is None:
            self.law = [arb(1) / self.count] * self.count
        else:
            total = sum(law, arb(0))
            self.law = [p / total for p in law] if total < 1 else law
        self.bounded = self.displacement is not None and v.diameter is not None

    def own(self, j: int) -> arb:
        """Return ln A_j (j from 0)."""
        return log_step(self.v.noise, self.v.epsilon, self.v.sensitivity / self.scale[j])

    def reach(self, t: int) -> arb:
        """Return r_B at step t."""
        assert self.displacement is not None
        reached: arb = self.displacement[t] * self.v.diameter / (self.step_size[t] * self.scale[t])
        return reached

    def factors(self) -> list[arb]:
        """Return ln B_t of every step."""
        return [log_step(self.v.noise, self.v.epsilon, self.reach(t)) for t in range(self.count)]

    def product(self, j: int, factors: list[arb]) -> arb:
        """Return ln(A_j prod_{t>j} B_t)."""
        total = self.own(j)
        for step in factors[j + 1 :]:
            if infinite(total) or infinite(step):
                return ZERO
            total += step
        return total

    def shift_mu(self, j: int, last: int | None = None, restart: bool = True) -> arb:
        """Return mu of the Gaussian shift bound after step ``last``, from the record's shift or the diameter."""
        assert self.contraction is not None
        end = self.count if last is None else last + 1
        product, total, restarts = arb(1), arb(0), []
        for t in range(end - 1, j - 1, -1):
            total += square(product * self.step_size[t] * self.scale[t])
            if t > j:
                product *= self.contraction[t]
                if restart and self.v.diameter is not None:
                    restarts.append(product * self.v.diameter / total.sqrt())
        return least(product * self.step_size[j] * self.v.sensitivity / total.sqrt(), *restarts)

    def shift(self, j: int, last: int | None = None, restart: bool = True) -> arb:
        """Return ln delta of the Gaussian shift bound."""
        return log_delta(self.v.epsilon, self.shift_mu(j, last, restart))

    def recursion(self, j: int, shifts: bool) -> arb:
        """Return ln e at the end, capped by the record's own shift bound if ``shifts``."""
        log_e = self.own(j)
        for t in range(j + 1, self.count):
            if infinite(log_e):
                break
            step = log_step(self.v.noise, shrunk(self.v.epsilon, log_e), self.reach(t))
            log_e = ZERO if infinite(step) else log_e + step
            if shifts:
                log_e = log_e.min(self.shift(j, t, restart=False))
            if log_e < ABYSS and not infinite(log_e):
                return ABYSS
        return log_e

    def least(self, j: int, recursion: Recursion) -> arb:
        """Return the least of all bounds on position j."""
        shifts = self.v.noise == Noise.GAUSSIAN and self.contraction is not None
        bounds = [self.own(j)]
        if self.bounded:
            bounds.append(self.product(j, self.factors()))
            if recursion is not Recursion.NONE:
                bounds.append(self.recursion(j, shifts and recursion is Recursion.WITH_SHIFTS))
        if shifts:
            bounds.append(self.shift(j))
        return least(*bounds)


def _affordable(steps: Steps) -> Recursion:
    """Return the recursion to use from every position: none if that would take too long."""
    return Recursion.PLAIN if steps.count <= 1000 else Recursion.NONE


def _largest(values: list[arb]) -> arb:
    largest = values[0]
    for value in values[1:]:
        largest = largest.max(value)
    return largest


def _of_index(v: RunInputs, at: Any, count: int) -> arb:
    """Return the value at the step of the record; without an index the largest of all steps."""
    return at(v.index - 1) if v.index is not None else _largest([at(j) for j in range(count)])


@defines("stepwise.product", Profile, weight=3.0)
def _stepwise_product(v: RunInputs) -> arb:
    steps = Steps(v)
    factors = steps.factors()
    return _of_index(v, lambda j: steps.product(j, factors), steps.count)


@defines("stepwise.hybrid", Profile, slack=1e-9, weight=15.0)
def _stepwise_hybrid(v: RunInputs) -> arb:
    steps = Steps(v)
    recursion = Recursion.WITH_SHIFTS if v.index is not None else _affordable(steps)
    return _of_index(v, lambda j: steps.least(j, recursion), steps.count)


@defines("stepwise.stop", Profile, weight=3.0)
def _stepwise_stop(v: RunInputs) -> arb:
    steps = Steps(v)
    factors = steps.factors()

    def at(j: int) -> arb:
        product, total = arb(0), arb(0)
        for t in range(j, steps.count):
            if t > j:
                product = ZERO if infinite(factors[t]) or infinite(product) else product + factors[t]
            total += steps.law[t] * (arb(0) if infinite(product) else product.exp())
        own = steps.own(j)
        return ZERO if total.is_zero() or infinite(own) else own + total.log()

    return _of_index(v, at, steps.count)


def _average(steps: Steps, values: list[arb]) -> arb:
    """Return ln of the mean of exp(values) under the schedule's law."""
    total = sum((q * value.exp() for q, value in zip(steps.law, values, strict=True) if not infinite(value)), arb(0))
    return ZERO if total.is_zero() else total.log()


@defines("stepwise.shuffled_product", Profile, weight=3.0)
def _stepwise_shuffled_product(v: RunInputs) -> arb:
    steps = Steps(v)
    factors = steps.factors()
    return _average(steps, [steps.product(j, factors) for j in range(steps.count)])


@defines("stepwise.shuffled_hybrid", Profile, slack=1e-9, weight=15.0)
def _stepwise_shuffled_hybrid(v: RunInputs) -> arb:
    steps = Steps(v)
    recursion = _affordable(steps)
    return _average(steps, [steps.least(j, recursion) for j in range(steps.count)])
