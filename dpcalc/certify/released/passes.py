"""Definitions of `released`, `shuffled_epochs` and `hidden_position`: several passes, and averages over positions."""

from __future__ import annotations

import math

from flint import arb, fmpq, fmpz

from dpcalc.certify.guarantee import Gdp, Profile
from dpcalc.certify.numerics.balls import ZERO, OutOfReach, Undecided, infinite, log_upper_tail
from dpcalc.certify.runs.divergence import run_of, shift_log_mu
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import defines

MOST_PASSES = 3000
MOST_POSITIONS = 1500


@defines("released.own_noise", Gdp)
def _own_noise(v: RunInputs) -> arb:
    return arb(v.epochs).sqrt() * v.quotient(["sensitivity"], [min(divisor for _, _, divisor in v.sizes()), "scale"])


@defines("released.cyclic", Gdp)
def _cyclic(v: RunInputs) -> arb:
    size, later = v.batch_behind()
    log_mu = shift_log_mu(run_of(v, size), later)
    return arb(0) if infinite(log_mu) else arb(v.epochs).sqrt() * log_mu.exp()


@defines("released.optimal", Profile, slack=1e-11, weight=4.0, limit=f"{MOST_PASSES} passes")
def _optimal(v: RunInputs) -> arb:
    log_each = ZERO if v.epoch_delta.is_zero() else v.epoch_delta.log()
    return optimal(v.epochs, v.exact("epoch_epsilon"), log_each, v.exact("epsilon"))


def optimal(count: int, each: fmpq, log_each: arb, epsilon: arb | fmpq) -> arb:
    """Return ln delta at epsilon of ``count`` passes, each (``each``, exp(``log_each``))-private.

    Raises:
        OutOfReach: there are more than `MOST_PASSES`.
    """
    if count > MOST_PASSES:
        raise OutOfReach(f"more than {MOST_PASSES} passes, whose outcomes are added one by one")
    odds = (-arb(each)).exp()
    total, weight = arb(0), arb(1)
    for x in range(count, -1, -1):
        exact = (2 * x - count) * each
        gap = arb(exact) - epsilon
        if not gap > 0:
            if gap <= 0 or (isinstance(epsilon, fmpq) and exact == epsilon):
                break
            raise Undecided
        total -= fmpz(math.comb(count, x)) * weight * (-gap).expm1()
        weight *= odds
    log_pure = ZERO if total.is_zero() else total.log() - count * odds.log1p()  # ln delta at epoch_delta = 0
    if infinite(log_each):
        return log_pure
    kept = count * (-log_each.exp()).log1p()  # ln (1 - delta_0)^E
    hidden = arb(0) if total.is_zero() else -log_pure.exp()
    return (-(kept + hidden.log1p()).expm1()).log()


@defines("released.advanced", Profile, slack=1e-9)
def _advanced(v: RunInputs) -> arb:
    spare = v.epsilon - v.epochs * v.epoch_epsilon * v.epoch_epsilon.expm1()
    if spare <= 0:
        return arb(0)
    if not spare > 0:
        raise Undecided
    return (v.epochs * v.epoch_delta + (-((spare / v.epoch_epsilon) ** 2) / (2 * v.epochs)).exp()).log().min(0)


@defines("released.pure", Gdp, slack=math.inf, weight=2.0)
def _pure(v: RunInputs) -> arb:
    # erfc is inverted by bisection: Q(h) = 1/(1 + e^eps), mu = 2 h sqrt(E).
    e = v.epoch_epsilon
    target = -e - (-e).exp().log1p()
    low, high = arb(0), (2 + (2 * e).sqrt() + e).upper()
    for _ in range(400):
        middle = ((low + high) / 2).mid()
        tail = log_upper_tail(middle)
        if tail > target:
            low = middle
        elif tail < target:
            high = middle
        else:
            break
        if high - low < high * arb(2) ** -90:
            break
    return 2 * low.union(high) * arb(v.epochs).sqrt()
