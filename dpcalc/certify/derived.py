"""What follows from the parameters of a run, as formulas in balls: sensitivity, diameter, displacement and noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flint import arb, fmpq

from dpcalc.certify.numerics.balls import rational
from dpcalc.certify.runs.allocation import schedule_reach
from dpcalc.certify.runs.run import RunInputs
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import Adjacency, Noise

if TYPE_CHECKING:
    from dpcalc.model.run import Run

Formula = Callable[[RunInputs], arb]


def multiples(run: Run) -> dict[str, fmpq]:
    """Return the derived parameters that are once or twice another decimal: the sensitivity and the diameter."""
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
    """Return the formulas of the parameters that follow from others by more than a factor of one or two."""
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
    """Return how far a step takes two points apart, over the diameter; infinite where no bound holds."""
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
