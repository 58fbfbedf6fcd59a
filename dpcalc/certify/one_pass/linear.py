"""Definitions of `linear`: the exact privacy of linear losses, which no lower bound may exceed."""

from __future__ import annotations

import math
from collections.abc import Callable

from flint import arb

from dpcalc.certify.guarantee import Gdp, Profile
from dpcalc.certify.many_passes.noisy_gd import full_ratio
from dpcalc.certify.numerics.balls import Inputs, OutOfReach, log
from dpcalc.certify.numerics.gaussian import log_delta, log_mixed
from dpcalc.certify.runs.batches import batch, period, ratio, sizes
from dpcalc.certify.table import defines
from dpcalc.model.choices import Permutation

LONGEST = 3000


@defines("linear.pass", Gdp, lower=True)
def _pass(v: Inputs) -> arb:
    return ratio(v)[0] / arb(period(v)).sqrt()


@defines("linear.passes", Gdp, lower=True)
def _passes(v: Inputs) -> arb:
    return ratio(v)[0] * (arb(v.epochs) / period(v)).sqrt()


@defines("linear.descent", Gdp, lower=True)
def _descent(v: Inputs) -> arb:
    return full_ratio(v) * arb(v.steps).sqrt()


@defines("linear.local", Gdp, lower=True)
def _local(v: Inputs) -> arb:
    return v.sensitivity / (batch(v)[0] * v.noise_std)


# --- averages over numbers of steps ----------------------------------------------------------------------------------


def _mean(v: Inputs, first: int, last: int, share: Callable[[int], arb]) -> arb:
    """Return ln sum_{first<=j<=last} share(j) delta_G(eps; Delta/(sigma sqrt j)).

    Raises:
        OutOfReach: more than `LONGEST` terms.
    """
    if last - first > LONGEST:
        raise OutOfReach(f"more than {LONGEST} steps")
    r = v.quotient(["sensitivity"], ["noise_std"])
    terms = (share(j) * log_delta(v.epsilon, r / arb(j).sqrt()).exp() for j in range(first, last + 1))
    return log(sum(terms, arb(0)))


@defines("linear.stop", Profile, slack=0.05, lower=True, weight=10.0, limit=f"{LONGEST} steps")
def _stop(v: Inputs) -> arb:
    return _mean(v, v.index, v.records, lambda _: arb(1) / v.records)


@defines("linear.skip", Profile, slack=0.05, lower=True, weight=10.0, limit=f"{LONGEST} steps")
def _skip(v: Inputs) -> arb:
    h = v.records // 2
    return _mean(v, v.records + 1 - min(v.index, h + 1), v.records, lambda _: arb(1) / (h + 1))


@defines("linear.shuffled_stop", Profile, slack=0.05, lower=True, weight=10.0, limit=f"{LONGEST} steps")
def _shuffled_stop(v: Inputs) -> arb:
    n = v.records
    if v.permutation == Permutation.PUBLIC:
        return _mean(v, 1, n, lambda j: arb(j) / (n * n))
    if n > LONGEST:
        raise OutOfReach(f"more than {LONGEST} steps")
    r = v.quotient(["sensitivity"], ["noise_std"])
    terms = (log_mixed(v.epsilon, r / arb(j).sqrt(), arb(j) / n).exp() / n for j in range(1, n + 1))
    return log(sum(terms, arb(0)))


# --- random orders, batches of one size ------------------------------------------------------------------------------


def _equal(v: Inputs, uses: int) -> arb:
    """Return ln delta_G(eps; mu_1 sqrt(E/l)).

    Raises:
        OutOfReach: batches of more than one size.
    """
    (length, size, divisor), *others = sizes(v)
    if others or length * size < v.records or size < divisor:
        raise OutOfReach("batches of more than one size, or records that are dropped")
    r = v.quotient(["sensitivity"], [size, "noise_std"])
    return log_delta(v.epsilon, r * (arb(uses) / length).sqrt())


@defines("linear.shuffled", Profile, slack=1e-9, lower=True, weight=3.0, limit="batches of one size")
def _shuffled(v: Inputs) -> arb:
    return _equal(v, 1)


@defines("linear.once", Profile, slack=1e-9, lower=True, weight=3.0, limit="batches of one size")
def _once(v: Inputs) -> arb:
    return _equal(v, v.epochs)


@defines("linear.epochs", Profile, slack=1e-9, lower=True, weight=3.0, limit="batches of one size")
def _epochs(v: Inputs) -> arb:
    return _equal(v, v.epochs)


# --- curvatures ------------------------------------------------------------------------------------------------------


def _ceiling(v: Inputs) -> arb:
    """Return the largest mu that any curvature has with one use k steps from the end: r sqrt(1/k) for l >= k.

    q^(2k-2) (1-q^2)/(1-q^(2l)) is at most 1/k of what a geometric sum of k terms leaves.
    """
    r, k = ratio(v)
    return r / arb(k).sqrt()


@defines("linear.curved", Gdp, slack=math.inf, lower=True)
def _curved(v: Inputs) -> arb:
    return _ceiling(v)


@defines("linear.curved_released", Gdp, slack=math.inf, lower=True)
def _curved_released(v: Inputs) -> arb:
    return arb(v.epochs).sqrt() * _ceiling(v)
