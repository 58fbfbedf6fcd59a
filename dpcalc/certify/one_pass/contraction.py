"""Definitions of `contraction`: one pass in a fixed order, or stopped at random."""

from __future__ import annotations

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, Profile
from dpcalc.certify.numerics.balls import OutOfReach, infinite, laplace_shift, least, mixture
from dpcalc.certify.numerics.gaussian import log_step
from dpcalc.certify.runs.divergence import (
    LONGEST,
    SLACK,
    last_of,
    product_last,
    product_sum,
    run_of,
    run_without_shift,
    shift_log_mu,
    total_of,
    with_level,
)
from dpcalc.certify.runs.random_positions import hybrid_left, share
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import defines
from dpcalc.model.quantities import Noise


@defines("contraction.product", Profile)
def _product(v: RunInputs) -> arb:
    size, later = v.batch_behind()
    return product_last(run_without_shift(v, size), later)


@defines("contraction.paper_product", Profile)
def _paper_product(v: RunInputs) -> arb:
    size, later = v.batch_behind()
    eta, beta, rho = (v.exact(name) for name in ("step_size", "smoothness", "strong_convexity"))
    square = 1 - 2 * eta * beta * rho / (beta + rho) if rho else fmpq(1)
    if square < 0:
        raise OutOfReach("the step size is above 2/(smoothness + strong_convexity), in this reading of the three")
    c = arb(square).sqrt()
    if v.noise == Noise.LAPLACE:
        c *= arb(v.dimension or 1).sqrt()
    run = run_without_shift(v, size)
    assert run.reach is not None
    return product_last(run._replace(following=c * run.reach), later)


@defines("contraction.nonlinear", Profile, slack=SLACK, weight=6.0, limit=f"{LONGEST} steps")
def _nonlinear(v: RunInputs) -> arb:
    size, later = v.batch_behind()
    return last_of(run_without_shift(v, size), later)


@defines("contraction.shift", Gdp)
def _shift(v: RunInputs) -> arb:
    size, later = v.batch_behind()
    log_mu = shift_log_mu(run_of(v, size), later)
    return arb(0) if infinite(log_mu) else log_mu.exp()


@defines("contraction.laplace_shift", Profile, slack=1e-9, weight=6.0, limit="1500 steps")
def _laplace_shift(v: RunInputs) -> arb:
    size, later = v.batch_behind()
    return laplace_shift(run_without_shift(v, size).own, later, v.epsilon)


@defines("contraction.laplace_mixture", Profile, slack=1e-6, weight=4.0, limit="2000 steps")
def _laplace_mixture(v: RunInputs) -> arb:
    size, later = v.batch_behind()
    own = run_without_shift(v, size).own
    return least(log_step(Noise.LAPLACE, v.epsilon, own), mixture(own, later, v.epsilon))


@defines("contraction.hybrid", Profile, slack=SLACK, weight=15.0, limit=f"{LONGEST} steps")
def _hybrid(v: RunInputs) -> arb:
    size, later = v.batch_behind()
    run = run_of(v, size)
    log_e = last_of(run, later)
    if run.noise == Noise.GAUSSIAN or infinite(log_e) or not with_level(v, run).level:
        return log_e
    # Laplace noise: started from its shift bounds at 0, 1, 3, 7, ... steps and at the end.
    for start in sorted({later, *(2**j - 1 for j in range(later.bit_length()))}):
        shift = least(mixture(run.own, start, run.epsilon), laplace_shift(run.own, start, run.epsilon))
        log_e = log_e.min(last_of(run, later - start, least(shift, log_step(Noise.LAPLACE, run.epsilon, run.own))))
    return log_e


@defines("contraction.stop_product", Profile)
def _stop_product(v: RunInputs) -> arb:
    return share(product_sum(run_without_shift(v, 1), v.records + 1 - v.index), v.records)


@defines("contraction.stop_nonlinear", Profile, slack=SLACK, weight=10.0, limit=f"{LONGEST} steps")
def _stop_nonlinear(v: RunInputs) -> arb:
    return share(total_of(run_without_shift(v, 1), v.records + 1 - v.index), v.records)


@defines("contraction.stop_hybrid", Profile, slack=SLACK, weight=15.0, limit=f"{LONGEST} steps")
def _stop_hybrid(v: RunInputs) -> arb:
    return share(hybrid_left(with_level(v, run_of(v, 1)), v.records + 1 - v.index, 0, "none"), v.records)
