"""Definitions of `shuffle`: a pass in a random order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flint import arb

from dpcalc.certify.balls import Inputs, OutOfReach, infinite, log_sum
from dpcalc.certify.divergence import LONGEST, SLACK, Pass, product_sum, run_of, run_without_shift, total_of, with_level
from dpcalc.certify.gaussian import log_step
from dpcalc.certify.guarantee import Profile
from dpcalc.certify.positions import hybrid_left, laplace_left, positions_left, product_left, share, walked_left
from dpcalc.certify.table import defines
from dpcalc.model.choices import LastBatch


class Layout(NamedTuple):
    """``full`` steps of ``size`` records each, then ``short`` records over ``divisor``."""

    full: int
    size: int
    short: int
    divisor: int


def layout(v: Inputs) -> Layout:
    """Return how a pass falls into batches; a short one is divided by its own size or by b, or is dropped.

    Raises:
        OutOfReach: the split has a short batch that is not the last.
    """
    n, b = v.records, v.batch_size
    if b >= n:
        return Layout(1, b if v.last_batch == LastBatch.NOMINAL else n, 0, 0)
    full, short = divmod(n, b)
    if short and v.last_batch in (LastBatch.BALANCED, LastBatch.FRONT):
        if v.last_batch == LastBatch.BALANCED and n % (full + 1) == 0:
            return Layout(full + 1, n // (full + 1), 0, 0)
        raise OutOfReach("batches of two sizes of which the shorter ones are not last")
    if v.last_batch == LastBatch.DROP or not short:
        return Layout(full, b, 0, 0)
    return Layout(full, b, short, short if v.last_batch == LastBatch.OWN else b)


Left = Callable[[Pass, int, "arb | str | None"], arb]


def averaged(v: Inputs, left: Left, *, shifts: bool = False, scaled: arb | None = None) -> arb:
    """Return ln of the average over where a record falls; r_A is ``scaled`` if that is given.

    ``left(run, terms, extra)`` is ln of e_0 + ... + e_(terms-1), each followed by one more step of reach ``extra``
    ("none": by no more step).
    """
    plan, n = layout(v), v.records
    run = run_of(v, plan.size, shifts=shifts)
    if shifts:
        run = with_level(v, run)
    if scaled is not None:
        run = run._replace(own=run.own * scaled)
    held = min(plan.size, n)
    if not plan.short:
        value = left(run, plan.full, "none")
        return value if infinite(value) else value + (arb(held) / n).log()
    s = arb(plan.short) / plan.divisor
    extra = None
    if run.following is not None:
        assert run.reach is not None
        extra = run.following if plan.short == plan.divisor else (1 - s) * run.reach + s * run.following
    first = log_step(run.noise, run.epsilon, run.own * plan.size / plan.divisor)
    rest = left(run, plan.full, extra)
    return log_sum(
        first if infinite(first) else first + (arb(plan.short) / n).log(),
        rest if infinite(rest) else rest + (arb(held) / n).log(),
    )


@defines("shuffle.product", Profile)
def _shuffle_product(v: Inputs) -> arb:
    return averaged(v, product_left)


@defines("shuffle.nonlinear", Profile, slack=SLACK, weight=12.0, limit=f"{LONGEST} steps")
def _shuffle_nonlinear(v: Inputs) -> arb:
    return averaged(v, walked_left)


@defines("shuffle.mixture", Profile, slack=1e-9, weight=12.0)
def _shuffle_mixture(v: Inputs) -> arb:
    return averaged(v, positions_left)


@defines("shuffle.hybrid", Profile, slack=SLACK, weight=25.0, limit=f"{LONGEST} steps")
def _shuffle_hybrid(v: Inputs) -> arb:
    return averaged(v, hybrid_left, shifts=True)


@defines("shuffle.laplace_mixture", Profile, slack=0.1, weight=6.0, limit="2000 steps")
def _shuffle_laplace_mixture(v: Inputs) -> arb:
    return averaged(v, laplace_left)


@defines("shuffle.stop_product", Profile)
def _shuffle_stop_product(v: Inputs) -> arb:
    n = v.records
    return share(product_sum(run_without_shift(v, 1), n, falling=True), n * n)


@defines("shuffle.stop_hybrid", Profile, slack=SLACK, weight=25.0, limit=f"{LONGEST} steps")
def _shuffle_stop_hybrid(v: Inputs) -> arb:
    n = v.records
    return share(total_of(run_of(v, 1), n, falling=True), n * n)
