"""Definitions of `released`, `shuffled_epochs` and `hidden_position`: several passes, and averages over positions."""

from __future__ import annotations

import math

from flint import arb, fmpz

from dpcalc.certify import sums
from dpcalc.certify.allocation import passes_cost, restarts_cost
from dpcalc.certify.balls import ZERO, Inputs, OutOfReach, Undecided, infinite, log, rational
from dpcalc.certify.divergence import Pass, batch, run_of, shift_log_mu
from dpcalc.certify.gaussian import log_delta, log_upper_tail, upper_tail
from dpcalc.certify.guarantee import Gdp, Profile
from dpcalc.certify.shuffle import averaged
from dpcalc.certify.steps import contraction, sizes
from dpcalc.certify.table import defines

MOST_PASSES = 3000
MOST_POSITIONS = 1500


@defines("released.own_noise", Gdp)
def _own_noise(v: Inputs) -> arb:
    size = min(divisor for _, _, divisor in sizes(v))
    return arb(v.epochs).sqrt() * v.quotient(["sensitivity"], [size, "scale"])


@defines("released.cyclic", Gdp)
def _cyclic(v: Inputs) -> arb:
    size, later = batch(v)
    log_mu = shift_log_mu(run_of(v, size), later)
    return arb(0) if infinite(log_mu) else arb(v.epochs).sqrt() * log_mu.exp()


@defines("released.shuffle_once", Profile, slack=1e-9, weight=12.0)
def _shuffle_once(v: Inputs) -> arb:
    root = arb(v.epochs).sqrt()

    def left(run: Pass, terms: int, extra: arb | str | None) -> arb:
        first = 1 if isinstance(extra, str) else 2
        return log(sums.hockey_sticks(run.epsilon, run.own, terms + first - 1, first))

    return averaged(v, left, scaled=root)


@defines("released.optimal", Profile, slack=1e-11, weight=4.0, limit=f"{MOST_PASSES} passes")
def _optimal(v: Inputs) -> arb:
    count = v.epochs
    if count > MOST_PASSES:
        raise OutOfReach(f"more than {MOST_PASSES} passes, whose outcomes are added one by one")
    odds = (-v.epoch_epsilon).exp()
    total, weight = arb(0), arb(1)
    for x in range(count, -1, -1):
        gap = (2 * x - count) * v.epoch_epsilon - v.epsilon
        if not gap > 0:
            if gap <= 0 or _equal(v, 2 * x - count):
                break
            raise Undecided
        total -= fmpz(math.comb(count, x)) * weight * (-gap).expm1()
        weight *= odds
    log_pure = ZERO if total.is_zero() else total.log() - count * odds.log1p()  # ln delta at epoch_delta = 0
    if v.epoch_delta.is_zero():
        return log_pure
    kept = count * (-v.epoch_delta).log1p()  # ln (1 - delta_0)^E
    hidden = arb(0) if total.is_zero() else -log_pure.exp()
    return (-(kept + hidden.log1p()).expm1()).log()


def _equal(v: Inputs, factor: int) -> bool:
    """Return whether epsilon is exactly ``factor`` times the epsilon of a pass."""
    return bool(factor * v.exact("epoch_epsilon") == v.exact("epsilon"))


@defines("released.advanced", Profile, slack=1e-9)
def _advanced(v: Inputs) -> arb:
    spare = v.epsilon - v.epochs * v.epoch_epsilon * v.epoch_epsilon.expm1()
    if spare <= 0:
        return arb(0)
    if not spare > 0:
        raise Undecided
    exceeded = (-((spare / v.epoch_epsilon) ** 2) / (2 * v.epochs)).exp()
    return (v.epochs * v.epoch_delta + exceeded).log().min(0)


@defines("released.pure", Gdp, slack=math.inf, weight=2.0)
def _pure(v: Inputs) -> arb:
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


# --- positions -------------------------------------------------------------------------------------------------------


@defines(
    "shuffled_epochs.once",
    Profile,
    slack=5e-3,
    weight=25.0,
    limit=f"{MOST_POSITIONS} steps a pass, whole batches",
)
def _once(v: Inputs) -> arb:
    length = v.records // v.batch_size
    if v.records % v.batch_size or length > MOST_POSITIONS:
        raise OutOfReach(f"a short last batch, or more than {MOST_POSITIONS} steps in a pass")
    r = v.quotient(["sensitivity"], [v.batch_size, "noise_std"])
    total = arb(0)
    for k in range(1, length + 1):
        total += log_delta(v.epsilon, r * _cost(v, length, k).sqrt()).exp()
    return log(total / length)


def _cost(v: Inputs, length: int, k: int) -> arb:
    """Return what a record costs that is used k steps before the end of every pass, in squares of mu_1."""
    cost, c = arb(v.epochs - 1) / length + arb(1) / k, contraction(v)
    if c == 1 and v.diameter is None:
        return cost
    if v.diameter is None:
        return cost.min(passes_cost(length, k, v.epochs, c))
    reach = v.diameter * v.batch_size / (v.step_size * v.sensitivity)
    return cost.min(restarts_cost(length, k, v.epochs, c, reach))


@defines("shuffled_epochs.worst_position", Gdp, slack=1e-8, weight=15.0, limit="whole batches")
def _worst_position(v: Inputs) -> arb:
    if v.records % v.batch_size:
        raise OutOfReach("a short last batch")
    return v.quotient(["sensitivity"], [v.batch_size, "noise_std"]) * _cost(v, v.records // v.batch_size, 1).sqrt()


@defines("hidden_position.shuffled", Profile, floor=True, weight=40.0, limit=f"{MOST_POSITIONS} steps, whole batches")
def _hidden(v: Inputs) -> arb:
    """Return the dual of Theorem H at one level z for all positions, which no certificate is below."""
    n = v.records // v.batch_size
    if v.records % v.batch_size or n > MOST_POSITIONS:
        raise OutOfReach(f"a short last batch, or more than {MOST_POSITIONS} steps")
    ratio, c = v.sensitivity / (v.batch_size * v.scale), contraction(v)
    costs = [arb(1) / k for k in range(1, n + 1)]
    if c != 1 or v.diameter is not None:
        reach = None if v.diameter is None else v.diameter * v.batch_size / (v.step_size * v.sensitivity)
        costs = [
            cost.min(passes_cost(n, k, 1, c) if reach is None else restarts_cost(n, k, 1, c, reach))
            for k, cost in enumerate(costs, 1)
        ]
    mu = [ratio * cost.sqrt() for cost in costs]
    z = _level([float(one.mid()) for one in mu], float(v.epsilon.mid()))
    if z is None:
        raise OutOfReach("a level beyond all numbers")
    level = arb(rational(z, False))
    total = sum((upper_tail(level - one) for one in mu), arb(0)) / n
    delta = total - v.epsilon.exp() * upper_tail(level)
    if delta <= 0:
        return ZERO
    if not delta > 0:
        raise Undecided
    return delta.log()


def _level(mu: list[float], epsilon: float) -> float | None:
    """Return about the z where the mean likelihood ratio is e^epsilon; the dual holds at every z."""

    def at(z: float) -> float:
        logs = [m * z - m * m / 2 for m in mu]
        peak = max(logs)
        return peak + math.log(sum(math.exp(x - peak) for x in logs) / len(mu))

    low, high = -100.0 - 10 * max(mu), 1.0
    while at(high) < epsilon:
        high = 2 * high + 1
        if high > 1e12:
            return None
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) < epsilon else (low, middle)
    return low
