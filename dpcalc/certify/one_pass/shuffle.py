"""Definitions of `shuffle`: a pass in a random order."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from dpcalc.certify.guarantee import Profile
from dpcalc.certify.many_passes.random_orders import MOST_POSITIONS, places_curve
from dpcalc.certify.numerics.balls import infinite, least, log, log_sum
from dpcalc.certify.runs.divergence import (
    LONGEST,
    SLACK,
    Pass,
    product_sum,
    run_of,
    run_without_shift,
    total_of,
    with_level,
)
from dpcalc.certify.runs.random_positions import (
    hybrid_left,
    laplace_left,
    positions_left,
    product_left,
    share,
    walked_left,
)
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.runs.uses import Alike, classes
from dpcalc.certify.table import defines

Left = Callable[[Pass, int, int, "arb | str | None"], arb]
"""(run, l, m, extra) -> ln(e_m + ... + e_(m+l-1)), where every term is followed by one more step of reach ``extra``.

"none": by no further step; None: by one of unbounded reach.
"""


def averaged(v: RunInputs, left: Left, *, shifts: bool = False, scaled: arb | None = None) -> arb:
    """Return ln of the average over where a record falls; r_A is ``scaled`` if that is given."""
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
    """Return the reach of a short last step: divided by the nominal size, it is smaller than the others."""
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
    """Return ln delta of a pass, by the recursion or by the places of a record where its batches are unequal."""
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
