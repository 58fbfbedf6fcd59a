"""Definitions of `iteration`, `scheduled`, `shifted`, `multi_epoch` and `noisy_gd`: runs in one order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flint import arb

from dpcalc.certify import sums
from dpcalc.certify.balls import Inputs, OutOfReach, least, less, log, power, square
from dpcalc.certify.gaussian import classic_factor, classic_holds, log_delta
from dpcalc.certify.table import defines

LONGEST = 20_000  # steps of a schedule


def batch(v: Inputs) -> tuple[int, int]:
    """Return (size of the record's batch, steps from it to the last, itself included)."""
    n, b = v.records, v.batch_size
    place = -(-v.index // b)
    count = -(-n // b)
    return (b if place < count else n - b * (count - 1)), count - place + 1


def ratio(v: Inputs) -> tuple[arb, int]:
    """Return (Delta/(b sigma), steps to the end)."""
    size, steps = batch(v)
    return v.quotient(["sensitivity"], [size, "noise_std"]), steps


def contraction(v: Inputs) -> arb:
    """Return c = max(|1 - eta m|, |1 - eta beta|).

    Raises:
        OutOfReach: it is above 1: 0.2 is a little more than the decimal, and 10 times it more than 2.
    """
    eta = v.exact("step_size")
    c = max(abs(1 - eta * v.exact("strong_convexity")), abs(1 - eta * v.exact("smoothness")))
    if c > 1:
        raise OutOfReach("the step size is above 2/smoothness, in this reading of the two")
    return arb(c)


def room(c: arb, steps: int) -> arb:
    """Return 1 + c^2 + ... + c^(2 steps - 2)."""
    if steps <= 64:
        return sum((power(c * c, j) for j in range(steps)), arb(0))
    left = 1 - c * c
    if left.is_zero():
        return arb(steps)
    less(arb(0), left)
    return (1 - power(c * c, steps)) / left


# --- iteration -------------------------------------------------------------------------------------------------------


@defines("iteration.pnsgd", "mu")
def _pnsgd(v: Inputs) -> arb:
    r, k = ratio(v)
    return r / arb(k).sqrt()


@defines("iteration.pnsgd_rdp", "rdp")
def _pnsgd_rdp(v: Inputs) -> arb:
    r, k = ratio(v)
    return v.order * r * r / (2 * k)


@defines("iteration.pnsgd_contraction", "mu")
def _pnsgd_contraction(v: Inputs) -> arb:
    (r, k), c = ratio(v), contraction(v)
    return r * power(c, k - 1) / room(c, k).sqrt()


@defines("iteration.pnsgd_domain", "mu")
def _pnsgd_domain(v: Inputs) -> arb:
    (_, k), c = batch(v), contraction(v)
    if k == 1:
        raise OutOfReach("the last record has no restart behind it")
    return v.quotient(["diameter"], ["step_size", "noise_std"]) * power(c, k - 1) / room(c, k - 1).sqrt()


def used(v: Inputs) -> arb:
    """Return the probability that a skipped prefix of 0..floor(n/2) records leaves the record in."""
    h = v.records // 2
    return arb(min(v.index, h + 1)) / (h + 1)


def _single(v: Inputs) -> tuple[arb, int]:
    """Return (Delta/sigma, steps to the end), single records."""
    return v.quotient(["sensitivity"], ["noise_std"]), v.records - v.index + 1


@defines("iteration.skip", "log_delta")
def _skip(v: Inputs) -> arb:
    r, k = _single(v)
    return used(v).log() + log_delta(v.epsilon, r / arb(k).sqrt())


@defines("iteration.skip_rdp", "rdp")
def _skip_rdp(v: Inputs) -> arb:
    r, k = _single(v)
    full = v.order * r * r / (2 * k)
    return _mixed_rdp(v.order, used(v), full)


def _mixed_rdp(order: arb, share: arb, full: arb) -> arb:
    """Return ln(1 + p (e^((a-1) full) - 1))/(a-1)."""
    if order == 1:
        return share * full
    grown = (order - 1) * full
    if grown > 10**6:
        return (share.log() + grown).union(share.log() + grown + (-grown).exp() / share) / (order - 1)
    return (share * grown.expm1()).log1p() / (order - 1)


@defines("iteration.stop", "log_delta", slack=1e-9, weight=12.0)
def _stop(v: Inputs) -> arb:
    r, k = _single(v)
    return log(sums.hockey_sticks(v.epsilon, r, k)) - arb(v.records).log()


@defines("iteration.stop_rdp", "rdp", slack=1e-10, weight=3.0)
def _stop_rdp(v: Inputs) -> arb:
    r, k = _single(v)
    if v.order == 1:
        return sums.harmonic(k) * r * r / (2 * v.records)
    x = v.order * (v.order - 1) * r * r / 2
    if x > 10**6:
        # The first term is all there is: every other is below its square root, and there are at most 1e15 of them.
        top = x - arb(v.records).log()
        return top.union(top + (x / 2 + 40 - x).exp() + v.records * (-x).exp()) / (v.order - 1)
    return (sums.expm1_reciprocals(x, k) / v.records).log1p() / (v.order - 1)


def _unit_exponent(v: Inputs) -> arb:
    """Return Delta^2/sigma^2 where a(a-1) Delta^2 <= 2 sigma^2."""
    r = v.quotient(["sensitivity"], ["noise_std"])
    if not v.order * (v.order - 1) * r * r <= 2:
        raise OutOfReach("a (a-1) Delta^2 > 2 sigma^2: it says nothing")
    return r * r


@defines("iteration.stop_harmonic", "rdp", known_to="x <= 1")
def _stop_harmonic(v: Inputs) -> arb:
    return v.order * _unit_exponent(v) * sums.harmonic(v.records - v.index + 1) / v.records


@defines("iteration.stop_linear", "rdp", known_to="x <= 1")
def _stop_linear(v: Inputs) -> arb:
    n = v.records
    constant = n * (sums.expm1_reciprocals(arb(1), n) / n).log1p()
    return v.order * _unit_exponent(v) * constant / (2 * n)


@defines("iteration.local", "mu")
def _local(v: Inputs) -> arb:
    return ratio(v)[0]


@defines("iteration.local_rdp", "rdp")
def _local_rdp(v: Inputs) -> arb:
    return v.order * square(ratio(v)[0]) / 2


@defines("iteration.local_classic", "epsilon", known_to="epsilon_max(delta)", weight=2.0)
def _local_classic(v: Inputs) -> arb:
    epsilon = ratio(v)[0] * classic_factor(v.log_delta)
    if not classic_holds(epsilon, v.log_delta):
        raise OutOfReach("the classic calibration is false at this epsilon")
    return epsilon


# --- any sequence of steps -------------------------------------------------------------------------------------------


class Steps(NamedTuple):
    """The columns of a schedule as balls; step sizes times noise are in units of the run's scale."""

    scale: list[arb]
    factor: list[arb]
    shift: list[arb]
    step_size: list[arb]


def steps_of(v: Inputs) -> Steps:
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
        carried = weight * (inflow[t] + (factor[0] * start if t == 0 else 0))
        block = (carried, square(weight * scale[t]))
        while blocks and (blocks[-1][1].is_zero() or not blocks[-1][0] * block[1] < block[0] * blocks[-1][1]):
            # Pooling where the slopes cannot be told apart costs no more than the width of the balls.
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1])
        blocks.append(block)
    return sum((s * s / w for s, w in blocks if not s.is_zero()), arb(0))


@defines("shifted.gaussian", "mu", slack=1e-11, weight=3.0)
def _shifted(v: Inputs) -> arb:
    s = steps_of(v)
    return hull_cost(s.shift, s.factor, s.scale, v.start_distance).sqrt() / v.noise_std


@defines("shifted.gaussian_domain", "mu", slack=1e-11, weight=10.0)
def _shifted_domain(v: Inputs) -> arb:
    s = steps_of(v)
    count = len(s.scale)
    if count > 2000:
        raise OutOfReach("a schedule of more than 2000 steps, with restarts")
    found = [
        hull_cost(s.shift[t:], s.factor[t:], s.scale[t:], v.diameter if t else v.start_distance) for t in range(count)
    ]
    return least(*found).sqrt() / v.noise_std


@defines("shifted.given_spend", "mu", slack=math.inf, weight=3.0)  # what rounding leaves counts by the last step
def _given_spend(v: Inputs) -> arb:
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


@defines("scheduled.pnsgd", "mu", weight=2.0)
def _scheduled(v: Inputs) -> arb:
    s = steps_of(v)
    product, total = arb(1), arb(0)
    for j in range(len(s.scale) - 1, v.index - 2, -1):
        total += square(product * s.scale[j])
        if j >= v.index:
            product *= s.factor[j]
    return product * s.step_size[v.index - 1] * v.sensitivity / (v.noise_std * total.sqrt())


# --- many passes -----------------------------------------------------------------------------------------------------


class Stretch(NamedTuple):
    """What is carried to its end, its room there, and the product of its factors."""

    carried: arb
    room: arb
    factor: arb


def _stretch(shift: arb | int, steps: int, c: arb) -> Stretch:
    """A shift at the first of these steps (at least one)."""
    return Stretch(shift * power(c, steps - 1), room(c, steps), power(c, steps))


def _repeated(period: int, count: int, c: arb) -> Stretch:
    """Uses one pass apart, which share a block in every allocation."""
    total = period * count
    if c == 1:
        return Stretch(arb(count), arb(total), arb(1))
    ends = power(c, period - 1) * (1 - power(c, total)) / (1 - power(c, period))
    return Stretch(ends, room(c, total), power(c, total))


def _cost(stretches: Sequence[Stretch]) -> arb:
    """Return the least cost: neighbours are pooled while the slope before is not below the slope after."""
    stack: list[Stretch] = []
    for piece in stretches:
        now = piece
        while stack and not stack[-1].carried * now.room < now.factor * now.carried * stack[-1].room:
            before = stack.pop()
            now = Stretch(
                now.factor * before.carried + now.carried,
                square(now.factor) * before.room + now.room,
                before.factor * now.factor,
            )
        stack.append(now)
    return sum((square(p.carried) / p.room for p in stack), arb(0))


def passes_cost(period: int, tail: int, uses: int, c: arb) -> arb:
    """Return the least cost of one use a pass, ``tail`` steps from its end, in units of (Delta/(b sigma))^2."""
    parts = [_repeated(period, uses - 1, c)] if uses > 1 else []
    return _cost([*parts, _stretch(1, tail, c)])


def _restarted(period: int, tail: int, c: arb, reach: arb, between: int) -> arb:
    """Return the cost from the diameter right after a use, with ``between`` uses before the last one."""
    parts = [_stretch(reach * c, period - 1, c)] if period > 1 else []
    if between:
        parts.append(_repeated(period, between, c))
    last = _stretch(1, tail, c)
    if period > 1:
        return _cost([*parts, last])
    first = parts[0] if between else last  # no step of its own: the diameter adds to what comes next
    pooled = Stretch(first.factor * reach + first.carried, first.room, first.factor)
    return _cost([pooled, last]) if between else _cost([pooled])


def restarts_cost(period: int, tail: int, uses: int, c: arb, reach: arb) -> arb:
    """Return the least cost with restarts: of the first 40 of them and of those around the least, found by thirds."""
    found = [passes_cost(period, tail, uses, c)]
    if tail > 1:
        found.append(_cost([_stretch(reach * c, tail - 1, c)]))
    if uses > 1:
        tried = {*range(min(40, uses - 1)), uses - 2}
        low, high = 0, uses - 2
        while high - low > 8:
            a, b = low + (high - low) // 3, high - (high - low) // 3
            better = _restarted(period, tail, c, reach, b) < _restarted(period, tail, c, reach, a)
            low, high = (a, high) if better else (low, b)
        tried.update(range(low, high + 1))
        found += [_restarted(period, tail, c, reach, j) for j in tried]
    return least(*found)


def _period(v: Inputs) -> int:
    return -(-v.records // v.batch_size)


@defines("multi_epoch.cyclic", "mu")
def _cyclic(v: Inputs) -> arb:
    r, k = ratio(v)
    return r * (arb(v.epochs - 1) / _period(v) + arb(1) / k).sqrt()


@defines("multi_epoch.cyclic_rdp", "rdp")
def _cyclic_rdp(v: Inputs) -> arb:
    r, k = ratio(v)
    return v.order * r * r / 2 * (arb(v.epochs - 1) / _period(v) + arb(1) / k)


@defines("multi_epoch.cyclic_contraction", "mu", slack=1e-11)
def _cyclic_contraction(v: Inputs) -> arb:
    r, k = ratio(v)
    return r * passes_cost(_period(v), k, v.epochs, contraction(v)).sqrt()


@defines("multi_epoch.cyclic_domain", "mu", slack=1e-8, weight=15.0)
def _cyclic_domain(v: Inputs) -> arb:
    (r, k), size = ratio(v), batch(v)[0]
    reach = v.diameter * size / (v.step_size * v.sensitivity)
    return r * restarts_cost(_period(v), k, v.epochs, contraction(v), reach).sqrt()


@defines("multi_epoch.composition", "mu")
def _composition(v: Inputs) -> arb:
    return ratio(v)[0] * arb(v.epochs).sqrt()


def _quadratic_cost(q: arb, period: int, tail: int, uses: int) -> arb:
    """Return (the accumulated shift)^2 over the accumulated variance of w -> q w + N(0, 1), used once a pass."""
    total = period * uses
    if q == 1:
        return arb(uses) / period
    shift = power(q, tail - 1) * (1 - power(q, total)) / (1 - power(q, period))
    return shift * shift * (1 - q * q) / (1 - power(q * q, total))


@defines("multi_epoch.quadratic", "mu", lower=True)
def _quadratic(v: Inputs) -> arb:
    (r, k), q = ratio(v), arb(1 - v.exact("step_size") * v.exact("strong_convexity"))
    return r * _quadratic_cost(q, _period(v), k, v.epochs).sqrt()


# --- full batch ------------------------------------------------------------------------------------------------------


def full_ratio(v: Inputs) -> arb:
    """Return Delta/(n sigma)."""
    return v.quotient(["sensitivity"], [v.records, "noise_std"])


@defines("noisy_gd.contraction", "mu")
def _gd_contraction(v: Inputs) -> arb:
    return full_ratio(v) * passes_cost(1, 1, v.steps, contraction(v)).sqrt()


@defines("noisy_gd.domain", "mu", slack=1e-8, weight=10.0)
def _gd_domain(v: Inputs) -> arb:
    reach = v.diameter * v.records / (v.step_size * v.sensitivity)
    return full_ratio(v) * restarts_cost(1, 1, v.steps, contraction(v), reach).sqrt()


@defines("noisy_gd.composition", "mu")
def _gd_composition(v: Inputs) -> arb:
    return full_ratio(v) * arb(v.steps).sqrt()


def _fading(v: Inputs) -> tuple[arb, arb]:
    """Return (a r^2, eta m)."""
    r = full_ratio(v)
    return v.order * r * r, v.step_size * v.strong_convexity


@defines("noisy_gd.langevin", "rdp")
def _langevin(v: Inputs) -> arb:
    scale, x = _fading(v)
    return 2 * scale / x * -(-x * v.steps / 2).expm1()


@defines("noisy_gd.langevin_refined", "rdp")
def _langevin_refined(v: Inputs) -> arb:
    scale, x = _fading(v)
    y = x * v.steps
    rho = y / 4 if y <= 1 else square(1 - (-(y - 1) / 2).exp() / 2)
    if not (y <= 1 or y > 1):  # at y = 1 both say 1/4
        rho = rho.union(y / 4)
    return 2 * scale / x * rho


@defines("noisy_gd.quadratic", "mu", lower=True)
def _gd_quadratic(v: Inputs) -> arb:
    q = arb(1 - v.exact("step_size") * v.exact("strong_convexity"))
    return full_ratio(v) * _quadratic_cost(q, 1, 1, v.steps).sqrt()


@defines("noisy_gd.langevin_lower", "rdp", lower=True)
def _langevin_lower(v: Inputs) -> arb:
    scale, x = _fading(v)
    return scale / (2 * x) * -(-x * v.steps).expm1()
