"""Definitions of `unlearning`: a distance before noisy steps, and what they leave of it."""

from __future__ import annotations

from flint import arb

from dpcalc.certify.guarantee import Gdp
from dpcalc.certify.numerics.balls import Inputs, power
from dpcalc.certify.one_pass.shifted import hull_cost, steps_of
from dpcalc.certify.runs.allocation import passes_cost
from dpcalc.certify.runs.batches import contraction, room
from dpcalc.certify.table import defines


def _factor(v: Inputs) -> arb:
    """Return the factor of a step."""
    return contraction(v) if v.contraction is None else v.contraction


def _sum(c: arb, steps: int, count: int) -> arb:
    """Return 1 + c^steps + ... + c^(steps (count-1))."""
    return arb(count) if c == 1 else (1 - power(c, steps * count)) / (1 - power(c, steps))


def _left(v: Inputs, distance: arb) -> arb:
    """Return mu of a distance before the steps."""
    c = _factor(v)
    return distance * power(c, v.clean_steps) / (v.step_size * v.noise_std * room(c, v.clean_steps).sqrt())


def _capped(v: Inputs, distance: arb) -> arb:
    """Return a distance, the diameter where that is less."""
    return distance if v.diameter is None else distance.min(v.diameter)


@defines("unlearning.distance", Gdp)
def _distance(v: Inputs) -> arb:
    return _left(v, _capped(v, v.start_distance * _sum(_factor(v), v.clean_steps, v.requests or 1)))


@defines("unlearning.schedule", Gdp, slack=1e-11, weight=3.0)
def _schedule(v: Inputs) -> arb:
    s = steps_of(v)
    return hull_cost(s.shift, s.factor, s.scale, _capped(v, v.start_distance)).sqrt() / v.noise_std


@defines("unlearning.minimiser", Gdp)
def _minimiser(v: Inputs) -> arb:
    apart = v.sensitivity / v.records + 2 * (v.gradient_norm or arb(0))
    return _left(v, _capped(v, apart / v.strong_convexity))


@defines("unlearning.run", Gdp)
def _run(v: Inputs) -> arb:
    moved = v.step_size * v.sensitivity / v.batch_size
    return _left(v, _capped(v, moved * _sum(_factor(v), v.records // v.batch_size, v.epochs)))


@defines("unlearning.whole_run", Gdp)
def _whole_run(v: Inputs) -> arb:
    cost = passes_cost(v.records // v.batch_size, v.clean_steps + 1, v.epochs, _factor(v))
    return v.sensitivity / (v.batch_size * v.noise_std) * cost.sqrt()
