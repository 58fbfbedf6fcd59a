"""Definitions of `linear`, the exact privacy of linear losses, which no lower bound may exceed, and of linear models.

Linear models have no projection; any X and any number of earlier steps give a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, Profile
from dpcalc.certify.many_passes.passes import full_ratio
from dpcalc.certify.numerics.balls import (
    OutOfReach,
    log,
    log_delta,
    log_mixed,
    log_sum,
    log_upper_tail,
    mills,
    power,
    square,
)
from dpcalc.certify.runs.run import RunInputs, passes_cost, room
from dpcalc.certify.runs.uses import classes
from dpcalc.certify.table import defines
from dpcalc.model.quantities import Adjacency, Permutation

LONGEST = 3000


@defines("linear.pass", Gdp, lower=True)
def _pass(v: RunInputs) -> arb:
    return v.ratio()[0] / arb(v.period()).sqrt()


@defines("linear.passes", Gdp, lower=True)
def _passes(v: RunInputs) -> arb:
    return v.ratio()[0] * (arb(v.epochs) / v.period()).sqrt()


@defines("linear.descent", Gdp, lower=True)
def _descent(v: RunInputs) -> arb:
    return full_ratio(v) * arb(v.steps).sqrt()


@defines("linear.local", Gdp, lower=True)
def _local(v: RunInputs) -> arb:
    return v.sensitivity / (v.batch()[0] * v.noise_std)


# --- averages over numbers of steps ----------------------------------------------------------------------------------


def _mean(v: RunInputs, first: int, last: int, share: Callable[[int], arb]) -> arb:
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
def _stop(v: RunInputs) -> arb:
    return _mean(v, v.index, v.records, lambda _: arb(1) / v.records)


@defines("linear.skip", Profile, slack=0.05, lower=True, weight=10.0, limit=f"{LONGEST} steps")
def _skip(v: RunInputs) -> arb:
    h = v.records // 2
    return _mean(v, v.records + 1 - min(v.index, h + 1), v.records, lambda _: arb(1) / (h + 1))


@defines("linear.shuffled_stop", Profile, slack=0.05, lower=True, weight=10.0, limit=f"{LONGEST} steps")
def _shuffled_stop(v: RunInputs) -> arb:
    n = v.records
    if v.permutation == Permutation.PUBLIC:
        return _mean(v, 1, n, lambda j: arb(j) / (n * n))
    if n > LONGEST:
        raise OutOfReach(f"more than {LONGEST} steps")
    r = v.quotient(["sensitivity"], ["noise_std"])
    terms = (log_mixed(v.epsilon, r / arb(j).sqrt(), arb(j) / n).exp() / n for j in range(1, n + 1))
    return log(sum(terms, arb(0)))


# --- random orders, batches of one size ------------------------------------------------------------------------------


def _equal(v: RunInputs, uses: int) -> arb:
    """Return ln delta_G(eps; mu_1 sqrt(E/l)).

    Raises:
        OutOfReach: batches of more than one size.
    """
    (length, size, divisor), *others = v.sizes()
    if others or length * size < v.records or size < divisor:
        raise OutOfReach("batches of more than one size, or records that are dropped")
    return log_delta(v.epsilon, v.quotient(["sensitivity"], [size, "noise_std"]) * (arb(uses) / length).sqrt())


@defines("linear.shuffled", Profile, slack=1e-9, lower=True, weight=3.0, limit="batches of one size")
def _shuffled(v: RunInputs) -> arb:
    return _equal(v, 1)


@defines("linear.once", Profile, slack=1e-9, lower=True, weight=3.0, limit="batches of one size")
def _once(v: RunInputs) -> arb:
    return _equal(v, v.epochs)


@defines("linear.epochs", Profile, slack=1e-9, lower=True, weight=3.0, limit="batches of one size")
def _epochs(v: RunInputs) -> arb:
    return _equal(v, v.epochs)


# --- curvatures ------------------------------------------------------------------------------------------------------


def _ceiling(v: RunInputs) -> arb:
    """Return the largest mu of any curvature with one use k steps from the end: r/sqrt(1 + ... + q^(-2k+2)).

    q is the largest factor of these maps, at least 1: q^(2k-2)/(1 + ... + q^(2l-2)) increases in q and decreases in l.
    """
    r, k = v.ratio()
    q = max(1 - v.exact("step_size") * v.lowest_curvature(), fmpq(1))
    return r / (arb(k) if q == 1 else (1 - power(arb(1 / q), 2 * k)) / (1 - square(arb(1 / q)))).sqrt()


@defines("linear.curved", Gdp, slack=math.inf, lower=True)
def _curved(v: RunInputs) -> arb:
    return _ceiling(v)


@defines("linear.curved_released", Gdp, slack=math.inf, lower=True)
def _curved_released(v: RunInputs) -> arb:
    return arb(v.epochs).sqrt() * _ceiling(v)


_ROUNDS = (1.0, 1.0, 1.0, 1.0, 1.0, 0.99, 0.9999, 1.0 - 1e-6, 1.0 - 1e-9)  # a search for X, then slightly below it
_LARGE = -1.5  # of ln delta
_SPARED = 16.0  # in ln: a position with a smaller share of delta needs no smaller X


def _windows(c: arb, most: int) -> Iterator[int]:
    """Yield numbers of earlier steps, each 1.5 times the one before it, and finally ``most``."""
    m = 1
    while m < most and m <= 1 << 20:
        yield m
        if float(c) ** (2 * m) < 0.0067:
            break
        m += max(1, m // 2)
    if most:
        yield most


def _contraction(v: RunInputs) -> arb:
    """Return c'; 1 if a step contracts less than others."""
    whole = all(size == divisor for _, size, divisor in v.sizes())
    return v.contraction_factor() if v.strong_convexity and whole else arb(1)


def _behind(v: RunInputs, nearest: int) -> arb:
    """Return the room of the record's own step and the steps after it."""
    c = _contraction(v)
    return arb(nearest) if c == 1 else (room(c, nearest) / power(c, 2 * (nearest - 1))).min(arb(10) ** 250)


def _quantile(log_tail: float) -> float:
    """Return an approximate x >= 0 with ln Q(x) = ``log_tail``, by Newton's method from above."""
    if log_tail > -0.69:
        return 0.0
    x = arb(-2.0 * log_tail).sqrt()
    for _ in range(4):
        x = arb(float(x + (log_upper_tail(x) - log_tail) * mills(x)))
    return max(0.0, float(x))


def _left(v: RunInputs, epochs: int, divisor: int, nearest: int, farthest: int, spared: float = -math.inf) -> arb:
    """Return ln delta of a record ``nearest`` to ``farthest`` steps from the end, its own included."""
    own = v.quotient(["sensitivity"], [divisor, "noise_std"])
    c = 1 - arb(v.exact("step_size")) * arb(v.exact("smoothness"))
    slopes = 1 if v.adjacency == Adjacency.NULL_RECORD else 2
    behind, most = _behind(v, nearest), _contraction(v)
    plain = own * passes_cost(v.period(), nearest, epochs, most).sqrt()
    least = log_delta(v.epsilon, plain)
    for m in _windows(c, v.period() - (farthest if epochs == 1 else 1)):
        earlier = square(c) * room(c, m)
        volume = behind + earlier
        error = slopes * (1 - c) / divisor * arb(m).sqrt() * (1 + earlier) / volume
        past = square(own) * passes_cost(v.period(), v.period() - m, epochs - 1, most) if epochs > 1 else arb(0)
        mu, left = plain, log_delta(v.epsilon, (square(own) / volume + past).sqrt())
        for nearer in _ROUNDS:
            x = (float(mu) + _quantile(max(float(left), spared))) * nearer
            mu, left, tail = _at(v, past, own, volume, error, x)
            if 2 * x > mu:
                least = least.min(left.max(tail))
        if left > _LARGE or spared == -math.inf:  # both parts move with X, or there is only one position
            low, high = 0.5 * float(mu), 1.05 * x
            for _ in range(60):
                middle = 0.5 * (low + high)
                mu, left, tail = _at(v, past, own, volume, error, middle)
                low, high = (low, middle) if left > tail else (middle, high)
                if 2 * middle > mu:
                    least = least.min(left.max(tail))
    return least


def _at(v: RunInputs, past: arb, own: arb, volume: arb, error: arb, x: float) -> tuple[arb, arb, arb]:
    """Return mu_X, ln delta_G and ln Phi(mu_X - X)."""
    mu = _mu(past, own, volume, error, x)
    return mu, log_delta(v.epsilon, mu), log_upper_tail(x - mu)


def _mu(past: arb, own: arb, volume: arb, error: arb, x: float) -> arb:
    """Return mu_X."""
    moved = error * (arb(x) + 1)
    farther = error * (2 / arb.pi()).sqrt() * 2 * (-arb(x) - arb("0.5")).exp() / square(arb(x) + 1)
    return (square(own) / volume + 2 * moved * own / volume + square(moved) + past).sqrt() + farther


@defines("iteration.linear_model", Profile, slack=0.05, weight=4.0)
def _one_pass(v: RunInputs) -> arb:
    divisor, steps = v.batch()
    return _left(v, 1, divisor, steps, steps)


@defines("multi_epoch.linear_model", Profile, slack=0.05, weight=4.0)
def _cyclic(v: RunInputs) -> arb:
    divisor, steps = v.batch()
    return _left(v, v.epochs, divisor, steps, steps)


def _averaged(v: RunInputs, epochs: int) -> arb:
    """Return ln of the average over a record's position."""
    logs, spared = [], -math.inf
    for alike in classes(v):
        at, end = alike.first, alike.first + alike.steps
        while at < end:
            places = min(end - at, max(1, at // 64))
            left = _left(v, epochs, alike.divisor, at, at + places - 1, spared)
            logs.append(left + (arb(alike.size) * places / v.records).log())
            spared = max(spared, float(logs[-1]) - _SPARED)
            at += places
    return log_sum(*logs)


@defines("shuffle.linear_model", Profile, slack=0.05, weight=25.0)
def _linear_models_shuffled(v: RunInputs) -> arb:
    return _averaged(v, 1)


@defines("shuffled_epochs.once_linear_model", Profile, slack=0.05, weight=25.0)
def _linear_models_once(v: RunInputs) -> arb:
    return _averaged(v, v.epochs)
