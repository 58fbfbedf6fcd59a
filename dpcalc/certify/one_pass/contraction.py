"""Definitions of `contraction` (one pass in a fixed order, or stopped at random) and `shuffle` (in random order)."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, Profile
from dpcalc.certify.many_passes.random_orders import MOST_POSITIONS, places_curve
from dpcalc.certify.numerics.balls import OutOfReach, infinite, laplace_shift, least, log, log_step, log_sum, mixture
from dpcalc.certify.runs.divergence import (
    LONGEST,
    SLACK,
    Pass,
    hybrid_left,
    laplace_left,
    last_of,
    positions_left,
    product_last,
    product_left,
    product_sum,
    run_of,
    run_without_shift,
    share,
    shift_log_mu,
    total_of,
    walked_left,
    with_level,
)
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.runs.uses import Alike, classes
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
    # Laplace noise: the recursion starts from its shift bounds after 0, 1, 3, 7, ... steps and at the end.
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


Left = Callable[[Pass, int, int, "arb | str | None"], arb]
"""(run, l, m, extra) -> ln(e_m + ... + e_(m+l-1)), where one more step of reach ``extra`` follows every term.

"none": no further step; None: a step of unbounded reach.
"""


def averaged(v: RunInputs, left: Left, *, shifts: bool = False, scaled: arb | None = None) -> arb:
    """Return ln of the average over a record's position; r_A is ``scaled`` if given."""
    batches, logs = classes(v), []
    run = run_of(v, max(alike.divisor for alike in batches), shifts=shifts)
    if shifts:
        run = with_level(v, run)
    last = batches[0]
    short_is_last = len(batches) == 2 and last.steps == 1 and last.size < batches[1].size
    for number, alike in enumerate(batches):
        own = v.quotient(["sensitivity"], [alike.divisor, "scale"]) * (1 if scaled is None else scaled)
        extra: arb | str | None = "none"
        behind = alike.first - 1
        if number and short_is_last:
            behind, extra = 0, _short_reach(run, last)
        value = left(run._replace(own=own), alike.steps, behind, extra)
        logs.append(value if infinite(value) else value + (arb(alike.size) / v.records).log())
    return log_sum(*logs)


def _short_reach(run: Pass, last: Alike) -> arb | None:
    """Return the reach of a short last step: divided by the nominal size, it moves less than the others."""
    if run.following is None or last.size == last.divisor:
        return run.following
    assert run.reach is not None
    share = arb(last.size) / last.divisor
    return (1 - share) * run.reach + share * run.following


@defines("shuffle.product", Profile)
def _shuffle_product(v: RunInputs) -> arb:
    return averaged(v, product_left)


@defines("shuffle.nonlinear", Profile, slack=SLACK, weight=12.0, limit=f"{LONGEST} steps")
def _shuffle_nonlinear(v: RunInputs) -> arb:
    return averaged(v, walked_left)


@defines("shuffle.mixture", Profile, slack=1e-9, weight=12.0)
def _shuffle_mixture(v: RunInputs) -> arb:
    return averaged(v, positions_left)


@defines("shuffle.hybrid", Profile, slack=SLACK, weight=25.0, limit=f"{LONGEST} steps, {MOST_POSITIONS} where unequal")
def hybrid(v: RunInputs) -> arb:
    """Return ln delta of a pass, by the recursion, or by the record's places if its batches are unequal."""
    mean = averaged(v, hybrid_left, shifts=True)
    places = places_curve(v) if len(classes(v)) > 1 else None
    return least(mean, log(places(v.epsilon))) if places else mean


@defines("shuffle.laplace_mixture", Profile, slack=0.1, weight=6.0, limit="2000 steps")
def _shuffle_laplace_mixture(v: RunInputs) -> arb:
    return averaged(v, laplace_left)


@defines("shuffle.stop_product", Profile)
def _shuffle_stop_product(v: RunInputs) -> arb:
    n = v.records
    return share(product_sum(run_without_shift(v, 1), n, falling=True), n * n)


@defines("shuffle.stop_hybrid", Profile, slack=SLACK, weight=25.0, limit=f"{LONGEST} steps")
def _shuffle_stop_hybrid(v: RunInputs) -> arb:
    n = v.records
    return share(total_of(run_of(v, 1), n, falling=True), n * n)
