"""Definitions of `iteration`: one pass in a fixed order, stopped or started at random, and one message.

Those of `shifted` and `scheduled` are for any sequence of steps, by the columns of a schedule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flint import arb

from dpcalc.certify.guarantee import Gdp, Point, Profile, Rdp, SearchedRdp
from dpcalc.certify.numerics import sums
from dpcalc.certify.numerics.balls import (
    OutOfReach,
    classic_factor,
    classic_holds,
    least,
    log,
    log_delta,
    power,
    square,
)
from dpcalc.certify.runs.run import OF_ANOTHER_RUN, RunInputs, room
from dpcalc.certify.table import defines


@defines("iteration.pnsgd", Gdp)
def _pnsgd(v: RunInputs) -> arb:
    r, k = v.ratio()
    return r / arb(k).sqrt()


@defines("iteration.pnsgd_rdp", Rdp)
def _pnsgd_rdp(v: RunInputs) -> arb:
    r, k = v.ratio()
    return v.order * r * r / (2 * k)


@defines("iteration.pnsgd_contraction", Gdp)
def _pnsgd_contraction(v: RunInputs) -> arb:
    (r, k), c = v.ratio(), v.contraction_factor()
    return r * power(c, k - 1) / room(c, k).sqrt()


@defines("iteration.pnsgd_domain", Gdp)
def _pnsgd_domain(v: RunInputs) -> arb:
    (_, k), c = v.batch(), v.contraction_factor()
    if k == 1:
        raise OutOfReach("the last record has no restart behind it")
    return v.quotient(["diameter"], ["step_size", "noise_std"]) * power(c, k - 1) / room(c, k - 1).sqrt()


def used(v: RunInputs) -> arb:
    """Return the probability that the record is not in the skipped first 0..floor(n/2) records."""
    h = v.records // 2
    return arb(min(v.index, h + 1)) / (h + 1)


def _single(v: RunInputs) -> tuple[arb, int]:
    """Return (Delta/sigma, steps to the end) for single records."""
    return v.quotient(["sensitivity"], ["noise_std"]), v.records - v.index + 1


@defines("iteration.skip", Profile)
def _skip(v: RunInputs) -> arb:
    r, k = _single(v)
    return used(v).log() + log_delta(v.epsilon, r / arb(k).sqrt())


@defines("iteration.skip_rdp", Rdp)
def _skip_rdp(v: RunInputs) -> arb:
    r, k = _single(v)
    return _mixed_rdp(v.order, used(v), v.order * r * r / (2 * k))


def _mixed_rdp(order: arb, share: arb, full: arb) -> arb:
    """Return ln(1 + p (e^((a-1) full) - 1))/(a-1)."""
    if order == 1:
        return share * full
    grown = (order - 1) * full
    if grown > 10**6:
        return (share.log() + grown).union(share.log() + grown + (-grown).exp() / share) / (order - 1)
    return (share * grown.expm1()).log1p() / (order - 1)


@defines("iteration.stop", Profile, slack=1e-9, weight=12.0)
def _stop(v: RunInputs) -> arb:
    r, k = _single(v)
    return log(sums.hockey_sticks(v.epsilon, r, k)) - arb(v.records).log()


@defines("iteration.stop_rdp", Rdp, slack=1e-10, weight=3.0)
def _stop_rdp(v: RunInputs) -> arb:
    r, k = _single(v)
    if v.order == 1:
        return sums.harmonic(k) * r * r / (2 * v.records)
    x = v.order * (v.order - 1) * r * r / 2
    if x > 10**6:
        # The first term suffices: every other is below its square root, and there are at most 1e15 of them.
        top = x - arb(v.records).log()
        return top.union(top + (x / 2 + 40 - x).exp() + v.records * (-x).exp()) / (v.order - 1)
    return (sums.expm1_reciprocals(x, k) / v.records).log1p() / (v.order - 1)


def _unit_exponent(v: RunInputs) -> arb:
    """Return Delta^2/sigma^2 where a(a-1) Delta^2 <= 2 sigma^2."""
    r = v.quotient(["sensitivity"], ["noise_std"])
    if not v.order * (v.order - 1) * r * r <= 2:
        raise OutOfReach("a (a-1) Delta^2 > 2 sigma^2: it says nothing")
    return r * r


@defines("iteration.stop_harmonic", Rdp, limit="x <= 1")
def _stop_harmonic(v: RunInputs) -> arb:
    return v.order * _unit_exponent(v) * sums.harmonic(v.records - v.index + 1) / v.records


@defines("iteration.stop_linear", Rdp, limit="x <= 1")
def _stop_linear(v: RunInputs) -> arb:
    n = v.records
    return v.order * _unit_exponent(v) * (n * (sums.expm1_reciprocals(arb(1), n) / n).log1p()) / (2 * n)


@defines("iteration.local", Gdp)
def _local(v: RunInputs) -> arb:
    return v.ratio()[0]


@defines("iteration.local_rdp", Rdp)
def _local_rdp(v: RunInputs) -> arb:
    return v.order * square(v.ratio()[0]) / 2


@defines("iteration.local_classic", Point, limit="epsilon_max(delta)", weight=2.0)
def _local_classic(v: RunInputs) -> arb:
    epsilon = v.ratio()[0] * classic_factor(v.log_delta)
    if not classic_holds(epsilon, v.log_delta):
        raise OutOfReach("the classic calibration is false at this epsilon")
    return epsilon


LONGEST = 20_000  # steps of a schedule


class Steps(NamedTuple):
    """The columns of a schedule as balls; step sizes times noise are in units of the run's scale."""

    scale: list[arb]
    factor: list[arb]
    shift: list[arb]
    step_size: list[arb]


def steps_of(v: RunInputs) -> Steps:
    """Return the schedule's columns.

    Raises:
        OutOfReach: it is longer than `LONGEST`.
    """
    chain: Any = v.schedule
    if len(chain) > LONGEST:
        raise OutOfReach(f"a schedule of more than {LONGEST} steps")
    step_size = v.column(chain.step_size)
    noise = v.column(chain.noise)
    shift = v.column(chain.shift) if chain.shift is not None else []
    scale = [eta * s for eta, s in zip(step_size, noise, strict=True)]
    return Steps(scale, v.column(chain.contraction), shift, step_size)


def hull_cost(inflow: Sequence[arb], factor: Sequence[arb], scale: Sequence[arb], start: arb) -> arb:
    """Return the least sum of a_t^2/v_t with z_t = c_t z_(t-1) + s_t - a_t >= 0, z_T = 0, z_0 = start.

    The lower convex hull of (cumulated variance, cumulated shift), both measured at the end of the run.
    """
    last = arb(1)
    weights = []
    for c in reversed(factor):
        weights.append(last)
        last *= c
    weights.reverse()
    blocks: list[tuple[arb, arb]] = []  # (shift, variance), slopes rising
    for t, weight in enumerate(weights):
        block = (weight * (inflow[t] + (factor[0] * start if t == 0 else 0)), square(weight * scale[t]))
        while blocks and (blocks[-1][1].is_zero() or not blocks[-1][0] * block[1] < block[0] * blocks[-1][1]):
            # Pooling slopes that cannot be distinguished costs no more than the width of the balls.
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1])
        blocks.append(block)
    return sum((s * s / w for s, w in blocks if not s.is_zero()), arb(0))


@defines("shifted.gaussian", Gdp, slack=1e-11, weight=3.0)
def _shifted(v: RunInputs) -> arb:
    s = steps_of(v)
    return hull_cost(s.shift, s.factor, s.scale, v.start_distance).sqrt() / v.noise_std


@defines("shifted.gaussian_domain", Gdp, slack=1e-11, weight=10.0)
def _shifted_domain(v: RunInputs) -> arb:
    s = steps_of(v)
    count = len(s.scale)
    if count > 2000:
        raise OutOfReach("a schedule of more than 2000 steps, with restarts")
    costs = [
        hull_cost(s.shift[t:], s.factor[t:], s.scale[t:], v.diameter if t else v.start_distance) for t in range(count)
    ]
    return least(*costs).sqrt() / v.noise_std


@defines("shifted.given_spend", Gdp, slack=math.inf, weight=3.0)  # the last step spends what rounding leaves
def _given_spend(v: RunInputs) -> arb:
    s = steps_of(v)
    chain: Any = v.schedule
    z, total = v.start_distance, arb(0)
    spend = v.column(chain.spend)
    for t, a in enumerate(spend):
        z = s.factor[t] * z + s.shift[t] - a
        if t == len(spend) - 1:
            a += z  # what rounding left unspent
        total += square(a / s.scale[t])
    return total.sqrt() / v.noise_std


@defines("shifted.laplace", SearchedRdp, slack=1e-9, weight=5.0)
def _laplace(v: RunInputs) -> arb:
    return _spent(v, v.start_distance)


@defines("shifted.laplace_domain", SearchedRdp, slack=1e-9, weight=5.0)
def _laplace_domain(v: RunInputs) -> arb:
    return _spent(v, v.start_distance, v.diameter)


def _spent(v: RunInputs, first: arb, diameter: arb | None = None) -> arb:
    """Return the sum of Laplace divergences of the certificate's allocation.

    A step never spends more than is left, and the last one spends the rest: every certificate gives a bound.

    Raises:
        OutOfReach: the certificate belongs to another run, or there is none.
    """
    values, s = v.certified()["values"], steps_of(v)
    start, spent = values["start"], values["spent"]
    if len(spent) != len(s.scale) - start or not (start == 0 or (diameter is not None and 0 < start < len(s.scale))):
        raise OutOfReach(OF_ANOTHER_RUN)
    z, total = first if diameter is None or not start else diameter, arb(0)
    for t, planned in enumerate(spent, start):
        here = s.factor[t] * z + s.shift[t]
        a = here if t == len(s.scale) - 1 else arb(float(planned)).max(arb(0)).min(here)
        z = here - a
        if not a.is_zero():
            total += laplace_divergence(v.order, a / (s.scale[t] * v.laplace_scale))
    return total


def laplace_divergence(order: arb, u: arb) -> arb:
    """Return the Renyi divergence of Laplace noise from itself shifted by u scales."""
    if order == 1:
        return u + (-u).expm1()
    rest = order - 1
    return ((order * (rest * u).exp() + rest * (-order * u).exp()) / (2 * order - 1)).log() / rest


@defines("scheduled.pnsgd", Gdp, weight=2.0)
def _scheduled(v: RunInputs) -> arb:
    s = steps_of(v)
    product, total = arb(1), arb(0)
    for j in range(len(s.scale) - 1, v.index - 2, -1):
        total += square(product * s.scale[j])
        if j >= v.index:
            product *= s.factor[j]
    return product * s.step_size[v.index - 1] * v.sensitivity / (v.noise_std * total.sqrt())
