"""Definitions of `iteration`: one pass in a fixed order, stopped or begun at random, and one message."""

from __future__ import annotations

from flint import arb

from dpcalc.certify.guarantee import Gdp, Point, Profile, Rdp
from dpcalc.certify.numerics import sums
from dpcalc.certify.numerics.balls import OutOfReach, log, power, square
from dpcalc.certify.numerics.gaussian import classic_factor, classic_holds, log_delta
from dpcalc.certify.runs.allocation import room
from dpcalc.certify.runs.run import RunInputs
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
    """Return the probability that a skipped prefix of 0..floor(n/2) records leaves the record in."""
    h = v.records // 2
    return arb(min(v.index, h + 1)) / (h + 1)


def _single(v: RunInputs) -> tuple[arb, int]:
    """Return (Delta/sigma, steps to the end), single records."""
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
        # The first term is all there is: every other is below its square root, and there are at most 1e15 of them.
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
