"""Queries: delta at epsilon and epsilon at delta of a composition of pairs, never below the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dpcalc.errors import SpecError
from dpcalc.notions import gaussian
from dpcalc.notions.pld.dots import connect
from dpcalc.notions.pld.lattice import Grid, Law, finite_delta, from_dots, power, product
from dpcalc.notions.pld.pair import Pair, gaussian_sum
from dpcalc.notions.pld.pilot import Pilot, least_tilt, pilot, saddle_point, tilt_for_log_delta, tilt_for_mean
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.logspace import log_add_exp, log_one_minus_exp
from dpcalc.numerics.roots import least

RESOLUTION = 2048
_MOST_COUNT = 10**15
_POINTS = 128  # at most so many times the resolution: where the tail is long, the lattice is coarser
_ROUNDS = 3
_POOR = 0.02  # so much of ln delta, and more, is worth another try
_LOG_SHARE = 9.0  # losses that are e^-9 of delta may as well be told


class Bound(NamedTuple):
    """What is guaranteed, and how much of it is not the mechanism's but the method's."""

    value: float
    """An upper bound on ln delta, or on epsilon."""
    rounding: float = 0.0
    """So much of ln delta, at that epsilon, is for rounding and for tails cut off: a bound."""
    lattice: float = 0.0
    """So much of it comes from splitting losses between the points of a lattice: an estimate, to first order."""


Parts = Sequence[tuple[Pair, int]]


def log_delta(parts: Parts, *, epsilon: float, resolution: int = RESOLUTION) -> Bound:
    """Return an upper bound on ln delta at ``epsilon`` of the adaptive composition of the parts.

    delta = 1 - prod (1 - P(inf)) + sum over finite losses z > epsilon of p(z) (1 - e^(epsilon - z)), for the sum of the
    losses of dominating laws on a lattice; every error of floating point is in the bound. The allowance for it grows
    with the count, about as 1e-13 of delta for each loss: past 1e10 it is most of the bound. Gaussian parts are added
    up in closed form, and a pair that is asked about alone answers by its profile.

    Args:
        parts: (pair, how often), how often from 1 to 1e15.
        epsilon: finite and >= 0.
        resolution: points per standard deviation of the loss, 8 to 2^20; fewer where rare losses are more than 64
            deviations away. The relative error of epsilon falls with its square.

    Raises:
        SpecError: no parts, or a count, an epsilon or a resolution out of range.

    >>> from dpcalc.notions.pld import subsampled_gaussian
    >>> round(log_delta([(subsampled_gaussian(mu=1.0, rate=0.1), 100)], epsilon=8.0).value, 4)
    -11.9427
    """
    _check(parts, resolution)
    if not 0.0 <= epsilon < math.inf:
        raise SpecError(f"epsilon must be finite and at least 0, got {epsilon!r}", "give epsilon >= 0")
    merged = _merged(parts)
    if (pair := _single(merged)) is not None:
        return Bound(_log_profile(pair, epsilon))
    pilots = [pilot(pair, count) for pair, count in merged]
    if epsilon >= _largest_loss(merged):
        return Bound(_log_told(pilots))
    found = _log_delta_of(pilots, epsilon, resolution)
    if not _poor(found):
        return found
    again = _log_delta_of(_cut(pilots, _expected(pilots, epsilon)), epsilon, resolution)
    return min(found, again, key=lambda bound: bound.value)


def _expected(pilots: list[Pilot], epsilon: float) -> float:
    """Return about what ln delta is where only losses that matter to it are counted, to a fifth.

    The less is cut off, the more the rare losses that are left seem to add.
    """
    low, high = 1.0, 1e5
    while high > 1.2 * low:
        middle = math.sqrt(low * high)
        cut = _cut(pilots, -middle)
        likely = saddle_point(cut, tilt_for_mean(cut, epsilon))[1] > -middle
        low, high = (low, middle) if likely else (middle, high)
    return -high


def _log_delta_of(pilots: list[Pilot], epsilon: float, resolution: int) -> Bound:
    pilots = _zoomed(pilots, lambda p: tilt_for_mean(p, epsilon))
    tilt = max(tilt_for_mean(pilots, epsilon), least_tilt(pilots, epsilon))
    return _bound_at(_composed(pilots, tilt, resolution), _log_told(pilots), epsilon)


def _cut(pilots: list[Pilot], log_delta: float) -> list[Pilot]:
    """Return the pilots without the losses that are next to nothing of delta, all together."""
    return [p.cut(log_delta - _LOG_SHARE - math.log(len(pilots))) for p in pilots]


def _poor(found: Bound) -> bool:
    """Return whether much of the bound is the method's: rare losses kept the tilt away from where it should be."""
    return found.rounding + found.lattice > _POOR


def epsilon(parts: Parts, *, log_delta_target: float, resolution: int = RESOLUTION) -> Bound:
    """Return the least epsilon >= 0 at which the composition of the parts keeps to delta, rounded up.

    inf where no epsilon will do, because of losses of +inf.

    Args:
        parts: (pair, how often), how often from 1 to 1e15.
        log_delta_target: ln delta, finite and < 0.
        resolution: points per standard deviation of the loss, as for `log_delta`.

    Raises:
        SpecError: no parts, or a count, a target or a resolution out of range.

    >>> from dpcalc.notions.pld import laplace
    >>> round(epsilon([(laplace(ratio=0.1), 100)], log_delta_target=math.log(1e-6)).value, 5)
    4.69267
    """
    _check(parts, resolution)
    if not -math.inf < log_delta_target < 0.0:
        raise SpecError(f"ln delta must be finite and below 0, got {log_delta_target!r}", "give 0 < delta < 1")
    merged = _merged(parts)
    if (pair := _single(merged)) is not None:
        if pair.mu is not None:
            return Bound(gaussian.epsilon(mu=pair.mu, log_delta_target=log_delta_target))
        return Bound(_solve(lambda e: _log_profile(pair, e), log_delta_target, 1.0))
    pilots = [pilot(pair, count) for pair, count in merged]
    if _log_told(pilots) >= log_delta_target:
        return Bound(math.inf)
    found = _epsilon_of(pilots, log_delta_target, resolution)
    if _poor(found) or math.isinf(found.value):
        again = _epsilon_of(_cut(pilots, log_delta_target), log_delta_target, resolution)
        found = min(found, again, key=lambda bound: bound.value)
    largest = _largest_loss(merged)
    return Bound(largest) if found.value >= largest else found


def _epsilon_of(pilots: list[Pilot], log_delta: float, resolution: int) -> Bound:
    log_told = _log_told(pilots)
    wanted = log_delta + log_one_minus_exp(log_told - log_delta)
    pilots = _zoomed(pilots, lambda p: tilt_for_log_delta(p, wanted))
    tilt = tilt_for_log_delta(pilots, wanted)
    law = _composed(pilots, max(tilt, least_tilt(pilots)) if tilt > 0.0 else 0.0, resolution)
    log_told = _log_told(pilots)
    found = _solve(lambda e: _bound_at(law, log_told, e).value, log_delta, float(law.points()[-1]))
    return _bound_at(law, log_told, found)._replace(value=found) if found < math.inf else Bound(found)


def on_lattice(pair: Pair, *, count: int, step: float, low: int, high: int, epsilon: float) -> Bound:
    """Return an upper bound on ln delta of ``count`` copies on exactly the lattice low step, ..., high step.

    As others do it, for comparison: no tilt, so that a small delta drowns in rounding, and what lies beyond the lattice
    counts as told.
    """
    dots = connect(pair, *(np.asarray(step * np.arange(end), float) for end in (high + 1, 1 - low)))
    law = power(from_dots(dots, 0.0, step, low, high), count, Grid(0.0, 1 << 40))
    told = _told(((dots.log_told, count),))
    return _bound_at(law, told, epsilon)


def _check(parts: Parts, resolution: int) -> None:
    if not parts or not all(1 <= count <= _MOST_COUNT and count == int(count) for _, count in parts):
        raise SpecError(
            "a composition needs parts, each with a whole count from 1 to 1e15", "give [(pair, count), ...]"
        )
    if not 8 <= resolution <= 1 << 20:
        raise SpecError(f"the resolution must be from 8 to 2^20, got {resolution!r}", "leave it out")


def _merged(parts: Parts) -> list[tuple[Pair, int]]:
    """Return the parts, the Gaussians among them as one (their mu^2 add up), and the same pair but once."""
    gaussians = [(pair.mu, int(count)) for pair, count in parts if pair.mu is not None]
    counts: dict[int, tuple[Pair, int]] = {}
    for pair, count in parts:
        if pair.mu is None:
            counts[id(pair)] = (pair, int(count) + counts.get(id(pair), (pair, 0))[1])
    merged = list(counts.values())
    return [*merged, (gaussian_sum(gaussians), 1)] if gaussians else merged


def _single(parts: list[tuple[Pair, int]]) -> Pair | None:
    """Return the pair whose forward profile is the answer, if nothing is to be composed."""
    return parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else None


def _largest_loss(parts: list[tuple[Pair, int]]) -> float:
    """Return the largest finite loss of the composition, rounded up, if there is one that is known."""
    if any(pair.atom is None for pair, _ in parts):
        return math.inf
    return up(math.fsum(count * pair.atom for pair, count in parts if pair.atom is not None), 4.0)


def _zoomed(pilots: list[Pilot], rule: Callable[[list[Pilot]], float]) -> list[Pilot]:
    for _ in range(_ROUNDS):
        tilt = rule(pilots)
        pilots = [p.zoomed(tilt) for p in pilots]
    return pilots


def _composed(pilots: list[Pilot], tilt: float, resolution: int) -> Law:
    grid = Grid(1.0 / resolution, _POINTS * resolution)
    laws = []
    for p in pilots:
        law = p.law(tilt, grid)
        laws.append(power(law, p.times, grid if p.pair.discrete else _in_keeping(law, grid)))
    return product(laws, grid)


def _in_keeping(law: Law, grid: Grid) -> Grid:
    """Return the grid that loses as much at each coarsening as is lost by the first lattice."""
    spread = law.deviation()
    return grid._replace(fineness=max(grid.fineness, 0.5 * law.step / spread)) if spread > 0.0 else grid


def _log_told(pilots: Sequence[Pilot]) -> float:
    """Return ln(1 - prod (1 - P(inf))), rounded up: the probability of a loss of +inf."""
    return _told([(p.dots.log_told, p.times) for p in pilots])


def _told(shares: Sequence[tuple[float, int]]) -> float:
    if all(share < -40.0 - math.log(count) for share, count in shares):
        value = -math.inf
        for share, count in shares:
            value = log_add_exp(value, share + math.log(count))
    else:
        value = log_one_minus_exp(math.fsum(count * log_one_minus_exp(share) for share, count in shares))
    return min(0.0, value + UNIT * (16.0 * abs(value) + 64.0)) if value > -math.inf else value


def _log_profile(pair: Pair, epsilon: float) -> float:
    if pair.mu is not None:
        return gaussian.log_delta(mu=pair.mu, epsilon=epsilon)
    with np.errstate(all="ignore"):
        return float(pair.forward(np.array([epsilon]))[0])


def _bound_at(law: Law, log_told: float, epsilon: float) -> Bound:
    finite = finite_delta(law, epsilon)
    value = min(0.0, log_add_exp(log_told, finite.bound) + 4.0 * UNIT)
    plain = log_add_exp(log_told, finite.unrounded)
    # At a fixed tilt t ln delta grows with the cumulant function: by t (t + 1)/2 per unit of variance.
    share = math.exp(min(finite.bound - value, 0.0))
    return Bound(value, max(value - plain, 0.0), 0.5 * law.blur * law.tilt * (law.tilt + 1.0) * share)


def _solve(profile: Callable[[float], float], target: float, ceiling: float) -> float:
    """Return the least epsilon with ln delta at most the target, to some units of roundoff; inf if there is none."""
    ceiling = max(ceiling, 1.0)
    while profile(ceiling) > target:
        ceiling *= 2.0
        if ceiling > 2.0**60:
            return math.inf
    return least(lambda e: profile(e) - target, 0.0, ceiling, ulps=1 << 10)
