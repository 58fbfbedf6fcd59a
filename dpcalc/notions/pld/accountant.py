"""Delta at epsilon and epsilon at delta of a composition of dominating pairs, rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.notions import gaussian
from dpcalc.notions.pld import tilting
from dpcalc.notions.pld.discretisation import discretise
from dpcalc.notions.pld.dominating_pair import Pair, gaussian_sum
from dpcalc.notions.pld.lattice import (
    Grid,
    TiltedLaw,
    compose,
    finite_curve,
    log_finite_delta,
    log_floors,
    self_compose,
    tilted_law,
)
from dpcalc.notions.pld.tilting import (
    Component,
    best_tilt,
    component_of,
    saddle_point,
    tilt_for_log_delta,
)
from dpcalc.numerics.arrays import np
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.logspace import log_add_exp, log_less, log_one_minus_exp
from dpcalc.numerics.roots import least

RESOLUTION = 2048
_MOST_COUNT = 10**15
_POINTS = 128  # a lattice has at most so many times the resolution: where tails are long, it is coarser
_ROUNDS = 3
_LOOSE = 0.02  # a bound whose method may add more than this to ln delta is worth another attempt
_AS_EXPECTED = 1.0  # an ln delta that is no further from what was expected was well asked for
_FAR, _FARTHEST = 2.0**60, 2.0**660  # epsilons at which a search takes longer steps, and ends
_EXACT = 1e-9  # a bound on a coarse lattice that is this near is as good as one on a fine lattice
_LOG_SHARES = (12.0, 8.0, 5.0)  # losses with a share of delta below e^-12 count as infinite, or below more than that
_FINER = 4  # times the resolution, where none of these shares will do
_COARSE = 64


class Bound(NamedTuple):
    """An upper bound, and how much of it is due to the method and not to the mechanism."""

    value: float
    """An upper bound on ln delta, or on epsilon."""
    rounding: float = 0.0
    """A bound on what rounding and tails cut off add to ln delta at that epsilon, the profiles being exact."""
    lattice: float = 0.0
    """A bound on what it adds to split losses between the points of a lattice and to count rare ones as infinite."""


Parts = Sequence[tuple[Pair, int]]


def log_delta(parts: Parts, *, epsilon: float, resolution: int = RESOLUTION, expected: float | None = None) -> Bound:
    """Return an upper bound on ln delta at ``epsilon`` of the adaptive composition of the parts.

    delta = 1 - prod (1 - P(inf)) + sum over finite losses z > epsilon of p(z) (1 - e^(epsilon - z)), for the sum of the
    losses of dominating laws on a lattice. The bound includes every error of floating point: about 1e-13 of delta for
    each loss, so that beyond a count of 1e10 this is most of the bound. Gaussian parts are composed in closed form, and
    a single pair is answered by its profile.

    Args:
        parts: (pair, count), each count a whole number from 1 to 1e15.
        epsilon: finite and >= 0.
        resolution: points per standard deviation of the loss, 8 to 2^20; fewer where rare losses are more than 64
            deviations away. The relative error of epsilon falls with its square.
        expected: about ln delta, where that is known: the attempts that find it out are spared.

    Raises:
        SpecError: no parts, or a count, an epsilon or a resolution out of range.

    >>> from dpcalc.notions.pld import subsampled_gaussian
    >>> round(log_delta([(subsampled_gaussian(mu=1.0, rate=0.1), 100)], epsilon=8.0).value, 4)
    -11.9427
    """
    _check(parts, resolution)
    if not 0.0 <= epsilon < math.inf:
        raise SpecError(f"epsilon must be finite and at least 0, got {epsilon!r}", "give epsilon >= 0")
    merged = _merge(parts)
    if (pair := _single_pair(merged)) is not None:
        return Bound(_log_profile(pair, epsilon))
    components = [component_of(pair, count) for pair, count in merged]
    if epsilon >= _largest_loss(merged):
        return Bound(_log_infinity_mass_of(components))

    known: dict[tuple[int, ...], Bound] = {}

    def attempt(expected: float, share: float, fineness: int) -> Bound:
        frequent = _without_rare_losses(components, expected - share)
        key = (fineness, *(len(c.above) for c in frequent))  # other shares may leave out the same losses
        if key not in known:
            law, refined = _law_about(frequent, epsilon, fineness)
            known[key] = _bound_at(law, refined, epsilon)
        return known[key]

    if expected is not None:
        found = _improved(attempt, expected, resolution)
        if abs(found.value - expected) <= _AS_EXPECTED:
            return found
    value, better = math.inf, attempt(-math.inf, 0.0, _COARSE)
    while better.value < value - 1.0:
        value, better = better.value, attempt(better.value, _LOG_SHARES[0], _COARSE)
    if better.value <= value and better.rounding + better.lattice <= _EXACT:
        return better  # as where delta is 1
    return _improved(attempt, min(value, better.value), resolution)


def log_delta_near(parts: Parts, *, epsilon: float, log_delta_target: float, resolution: int) -> float:
    """Return an upper bound on ln delta at ``epsilon`` that is close where it is about the target.

    This is what a search for a target needs, in one attempt where `log_delta` makes many: losses that are rare beside
    the target count as infinite, so where ln delta is far below the target the bound is not.

    Args:
        parts, epsilon, resolution: as for `log_delta`.
        log_delta_target: ln delta, finite and < 0.

    Raises:
        SpecError: no parts, or a count or a resolution out of range.

    >>> from dpcalc.notions.pld import subsampled_gaussian
    >>> parts = [(subsampled_gaussian(mu=1.0, rate=0.1), 100)]
    >>> round(log_delta_near(parts, epsilon=8.0, log_delta_target=-12.0, resolution=512), 3)
    -11.937
    """
    return bound_near(parts, epsilon=epsilon, log_delta_target=log_delta_target, resolution=resolution).value


def bound_near(parts: Parts, *, epsilon: float, log_delta_target: float, resolution: int) -> Bound:
    """Return `log_delta_near`, with how far below it exact arithmetic may be: `log_delta` is not below that."""
    _check(parts, resolution)
    merged = _merge(parts)
    if (pair := _single_pair(merged)) is not None:
        return Bound(_log_profile(pair, epsilon))
    components = [component_of(pair, count) for pair, count in merged]
    if epsilon >= _largest_loss(merged):
        return Bound(_log_infinity_mass_of(components))
    frequent = _without_rare_losses(components, log_delta_target - _LOG_SHARES[-1])
    law, frequent = _law_about(frequent, epsilon, resolution)
    return _bound_at(law, frequent, epsilon)


def likely_log_delta(parts: Parts, *, epsilon: float, log_delta_target: float) -> float:
    """Return about ln delta at ``epsilon``, close where it is about the target, and no bound: for guesses of searches.

    No law is composed: it takes a tenth of the time of a bound on a coarse lattice.

    Args:
        parts, epsilon, log_delta_target: as for `log_delta_near`.

    >>> from dpcalc.notions.pld import subsampled_gaussian
    >>> parts = [(subsampled_gaussian(mu=1.0, rate=0.1), 100)]
    >>> round(likely_log_delta(parts, epsilon=8.0, log_delta_target=-12.0), 1)
    -11.9
    """
    _check(parts, RESOLUTION)
    merged = _merge(parts)
    if (pair := _single_pair(merged)) is not None:
        return _log_profile(pair, epsilon)
    components = [component_of(pair, count) for pair, count in merged]
    if epsilon >= _largest_loss(merged):
        return _log_infinity_mass_of(components)
    frequent = _without_rare_losses(components, log_delta_target - _LOG_SHARES[-1])
    refined = _refine(frequent, lambda c: best_tilt(c, epsilon))
    return _total(_log_infinity_mass_of(refined), tilting.likely_log_delta(refined, epsilon))


def _improved(attempt: Callable[[float, float, int], Bound], value: float, resolution: int) -> Bound:
    """Return the best of attempts with more and more losses counted as infinite, for as long as they are loose.

    Each attempt is given what was found before; the last is on a finer lattice.
    """
    best = Bound(math.inf)
    for share, fineness in [*((share, resolution) for share in _LOG_SHARES), (_LOG_SHARES[0], _FINER * resolution)]:
        if fineness > resolution and (best.rounding > _LOOSE or not best.lattice < 1.0):
            break  # a finer lattice rounds more, or is too far off to help
        bound = attempt(value, share, fineness)
        best = min(best, bound, key=lambda b: b.value)
        if best.rounding + best.lattice <= _LOOSE or not math.isfinite(best.value):
            break
        value = best.value
    return best


def _law_about(components: list[Component], epsilon: float, resolution: int) -> tuple[TiltedLaw, list[Component]]:
    """Return the law of the composition, tilted so that its mean is about epsilon, and what it is made of."""
    components = _refine(components, lambda c: best_tilt(c, epsilon))
    return _compose(components, best_tilt(components, epsilon), resolution), components


def _expected_epsilon(components: list[Component], log_delta: float) -> float:
    """Return an estimate of epsilon, at least 0."""
    refined = _refine(components, lambda c: tilt_for_log_delta(c, log_delta))
    return max(saddle_point(refined, tilt_for_log_delta(refined, log_delta))[0], 0.0)


def _without_rare_losses(components: list[Component], log_delta: float) -> list[Component]:
    """Return the components without losses whose total share of delta is at most exp(log_delta).

    Where losses have a heavy tail, the tilt that brings out delta would bring out the tail alone.
    """
    return [c.without_rare_losses(log_delta - math.log(len(components))) for c in components]


def epsilon(parts: Parts, *, log_delta_target: float, resolution: int = RESOLUTION) -> Bound:
    """Return the least epsilon >= 0 at which the composition of the parts keeps to delta, rounded up.

    inf where losses of +inf alone exceed delta.

    Args:
        parts: (pair, count), each count a whole number from 1 to 1e15.
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
    merged = _merge(parts)
    if (pair := _single_pair(merged)) is not None:
        if pair.mu is not None:
            return Bound(gaussian.epsilon(mu=pair.mu, log_delta_target=log_delta_target))
        return Bound(_solve(lambda e: _log_profile(pair, e), log_delta_target, 1.0))
    if _log_sum_of_totals(merged) <= log_delta_target:
        return Bound(0.0)
    components = [component_of(pair, count) for pair, count in merged]
    if _log_infinity_mass_of(components) >= log_delta_target:
        return Bound(math.inf)

    def attempt(expected: float, share: float, fineness: int) -> Bound:
        law, refined = _law_about(_without_rare_losses(components, log_delta_target - share), expected, fineness)
        told, finite = _log_infinity_mass_of(refined), finite_curve(law)
        value = _solve(lambda e: _total(told, finite(e)), log_delta_target, float(law.points()[-1]))
        return _bound_at(law, refined, value)._replace(value=value) if value < math.inf else Bound(math.inf)

    expected = _expected_epsilon(_without_rare_losses(components, log_delta_target - _LOG_SHARES[0]), log_delta_target)
    bound = _improved(attempt, expected, resolution)
    largest = _largest_loss(merged)
    return Bound(largest) if bound.value >= largest else bound


def on_lattice(pair: Pair, *, count: int, step: float, low: int, high: int, epsilon: float) -> float:
    """Return an upper bound on ln delta of ``count`` copies on exactly the lattice low step, ..., high step.

    Other accountants do the same, and it serves for comparison: without a tilt rounding exceeds a small delta, and
    losses beyond the lattice count as infinite.
    """
    above, below = (np.asarray(step * np.arange(end), float) for end in (high + 1, 1 - low))
    loss = discretise(pair, above, below)
    law = self_compose(tilted_law(loss, 0.0, step, low, high, 0), count, Grid(0.0, 1 << 40))
    return _total(_log_infinity_mass([(loss.log_infinity_mass, count)]), log_finite_delta(law, epsilon))


def _check(parts: Parts, resolution: int) -> None:
    if not parts or not all(1 <= count <= _MOST_COUNT and count == int(count) for _, count in parts):
        raise SpecError(
            "a composition needs parts, each with a whole count from 1 to 1e15", "give [(pair, count), ...]"
        )
    if not 8 <= resolution <= 1 << 20:
        raise SpecError(f"the resolution must be from 8 to 2^20, got {resolution!r}", "leave it out")


def _merge(parts: Parts) -> list[tuple[Pair, int]]:
    """Return the parts with all Gaussians as one (their mu^2 add up), and every other pair once."""
    gaussians = [(pair.mu, int(count)) for pair, count in parts if pair.mu is not None]
    counts: dict[int, tuple[Pair, int]] = {}
    for pair, count in parts:
        if pair.mu is None:
            counts[id(pair)] = (pair, int(count) + counts.get(id(pair), (pair, 0))[1])
    merged = list(counts.values())
    return [*merged, (gaussian_sum(gaussians), 1)] if gaussians else merged


def _single_pair(parts: list[tuple[Pair, int]]) -> Pair | None:
    """Return the pair whose forward profile is the answer, if there is one pair with count 1."""
    return parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else None


def _largest_loss(parts: list[tuple[Pair, int]]) -> float:
    """Return the largest finite loss of the composition, rounded up; inf where it is not known."""
    if any(pair.atom is None for pair, _ in parts):
        return math.inf
    return up(math.fsum(count * pair.atom for pair, count in parts if pair.atom is not None), 4.0)


def _log_sum_of_totals(parts: list[tuple[Pair, int]]) -> float:
    """Return ln of the sum of all total variations, which delta at epsilon 0 does not exceed, rounded up."""
    total = -math.inf
    for pair, count in parts:
        total = log_add_exp(total, _log_profile(pair, 0.0) + math.log(count))
    return total + 16.0 * len(parts) * UNIT * (1.0 + abs(total)) if total > -math.inf else total


def _refine(components: list[Component], choose_tilt: Callable[[list[Component]], float]) -> list[Component]:
    """Return the components with more points around the tilt, which is chosen anew in every round."""
    for _ in range(_ROUNDS):
        tilt = choose_tilt(components)
        components = [c.refined(tilt) for c in components]
    return components


def _compose(components: list[Component], tilt: float, resolution: int) -> TiltedLaw:
    grid = Grid(1.0 / resolution, _POINTS * resolution)
    laws = []
    for c in components:
        law = c.law(tilt, grid)
        laws.append(self_compose(law, c.copies, grid))
    return compose(laws, grid)


def _log_infinity_mass_of(components: Sequence[Component]) -> float:
    """Return ln(1 - prod (1 - P(inf))), rounded up: the probability of a loss of +inf."""
    return _log_infinity_mass([(c.loss.log_infinity_mass, c.copies) for c in components])


def _log_infinity_mass(shares: Sequence[tuple[float, int]]) -> float:
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


def _total(log_infinity_mass: float, log_finite: float) -> float:
    return min(0.0, log_add_exp(log_infinity_mass, log_finite) + 4.0 * UNIT)


def _bound_at(law: TiltedLaw, components: list[Component], epsilon: float) -> Bound:
    """Return the bound on ln delta, and how far down what is due to rounding and to the lattice may bring it."""
    told = _log_infinity_mass_of(components)
    value = _total(told, log_finite_delta(law, epsilon))
    floors = log_floors(law, epsilon)
    told -= UNIT * (32.0 * abs(told) + 128.0) if told > -math.inf else 0.0
    split, exact = log_add_exp(told, floors.split), log_add_exp(told, floors.exact)
    for c in components:
        exact = log_less(exact, math.log(c.copies) + log_less(c.loss.log_infinity_mass, c.told))
    return Bound(value, value - split, split - exact) if exact > -math.inf else Bound(value, value - split, math.inf)


def _solve(profile: Callable[[float], float], target: float, ceiling: float) -> float:
    """Return the least epsilon with ln delta at most the target, to some units of roundoff; inf if there is none."""
    ceiling = max(ceiling, 1.0)
    while profile(ceiling) > target:
        ceiling *= 2.0 if ceiling < _FAR else _FAR
        if ceiling > _FARTHEST:
            return math.inf
    return least(lambda e: profile(e) - target, 0.0, ceiling, ulps=1 << 10)


def curve(parts: Parts, *, log_delta_target: float, resolution: int = RESOLUTION) -> Callable[[float], float]:
    """Return an upper bound on ln delta of the composition as a function of epsilon >= 0, close about the target.

    One law answers for every epsilon: losses that are rare beside the target count as infinite, so that where ln delta
    is far below the target the bound is not.

    Args:
        parts, log_delta_target, resolution: as for `epsilon`.

    Raises:
        SpecError: no parts, or a count, a target or a resolution out of range.

    >>> from dpcalc.notions.pld import subsampled_gaussian
    >>> at = curve([(subsampled_gaussian(mu=1.0, rate=0.1), 100)], log_delta_target=-12.0)
    >>> round(at(8.0), 2)
    -11.94
    """
    _check(parts, resolution)
    if not -math.inf < log_delta_target < 0.0:
        raise SpecError(f"ln delta must be finite and below 0, got {log_delta_target!r}", "give 0 < delta < 1")
    merged = _merge(parts)
    if (pair := _single_pair(merged)) is not None:
        single = pair
        return lambda epsilon: _log_profile(single, epsilon)
    components = [component_of(pair, count) for pair, count in merged]
    frequent = _without_rare_losses(components, log_delta_target - _LOG_SHARES[0])
    law, refined = _law_about(frequent, _expected_epsilon(frequent, log_delta_target), resolution)
    largest, infinite = _largest_loss(merged), _log_infinity_mass_of(components)
    told, finite = _log_infinity_mass_of(refined), finite_curve(law)
    return lambda epsilon: infinite if epsilon >= largest else _total(told, finite(epsilon))
