"""Delta at epsilon and epsilon at delta of a composition of dominating pairs, rounded up."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.notions import gaussian
from dpcalc.notions.pld.discretisation import Pair, discretise, gaussian_sum
from dpcalc.notions.pld.lattice import Grid, TiltedLaw, tilted_law
from dpcalc.notions.pld.tilting import Components, component_of, log_any, with_infinity
from dpcalc.numerics.floats import UNIT, log_add_exp, log_less, np, up
from dpcalc.numerics.roots import least

RESOLUTION = 2048
_MOST_COUNT = 10**15  # exact as a double
_POINTS = 128  # a lattice has at most so many times the resolution: where tails are long, it is coarser
_LOOSE = 0.02  # a bound whose method may add more than this to ln delta is worth another attempt
_AS_EXPECTED = 1.0  # an ln delta that is no further from what was expected was well asked for
_FAR, _FARTHEST = 2.0**60, 2.0**660  # epsilons at which a search takes longer steps, and ends
_EXACT = 1e-9  # a bound on a coarse lattice that is this near is as good as one on a fine lattice
_LOG_SHARES = (12.0, 8.0, 5.0)  # losses with a share of delta below e^-12 count as infinite, or below more than that
_FINER = 4  # times the resolution, where none of these shares will do
_COARSE = 64  # points per deviation of the first attempts, which tell about where ln delta is


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
    composition = _Composition(parts, resolution)
    if not 0.0 <= epsilon < math.inf:
        raise SpecError(f"epsilon must be finite and at least 0, got {epsilon!r}", "give epsilon >= 0")
    if (exact := composition.without_law(epsilon)) is not None:
        return Bound(exact)
    laws: dict[tuple[int, ...], Bound] = {}

    def attempt(expected: float, share: float, fineness: int) -> Bound:
        frequent = composition.components.without_rare_losses(expected - share)
        key = (fineness, *(len(c.above) for c in frequent.members))  # other shares may leave out the same losses
        if key not in laws:
            laws[key] = _Law.about(frequent, epsilon, fineness).bound(epsilon)
        return laws[key]

    if expected is not None:
        bound = _improved(attempt, expected, resolution)
        if abs(bound.value - expected) <= _AS_EXPECTED:
            return bound
    value, better = math.inf, attempt(-math.inf, 0.0, _COARSE)
    while better.value < value - 1.0:
        value, better = better.value, attempt(better.value, _LOG_SHARES[0], _COARSE)
    if better.value <= value and better.rounding + better.lattice <= _EXACT:
        return better  # as where delta is 1
    return _improved(attempt, min(value, better.value), resolution)


def bound_near(parts: Parts, *, epsilon: float, log_delta_target: float, resolution: int) -> Bound:
    """Return an upper bound on ln delta at ``epsilon`` that is close where it is about the target.

    This is what a search for a target needs, in one attempt where `log_delta` makes many: losses that are rare beside
    the target count as infinite, so where ln delta is far below the target the bound is not. `log_delta` is not below
    what is left of the bound without its errors.

    Args:
        parts, epsilon, resolution: as for `log_delta`.
        log_delta_target: ln delta, finite and < 0.

    Raises:
        SpecError: no parts, or a count or a resolution out of range.

    >>> from dpcalc.notions.pld import subsampled_gaussian
    >>> parts = [(subsampled_gaussian(mu=1.0, rate=0.1), 100)]
    >>> round(bound_near(parts, epsilon=8.0, log_delta_target=-12.0, resolution=512).value, 3)
    -11.937
    """
    composition = _Composition(parts, resolution)
    if (exact := composition.without_law(epsilon)) is not None:
        return Bound(exact)
    return _Law.about(composition.frequent(log_delta_target), epsilon, resolution).bound(epsilon)


def likely_log_delta(parts: Parts, *, epsilon: float, log_delta_target: float) -> float:
    """Return about ln delta at ``epsilon``, close where it is about the target, and no bound: for guesses of searches.

    No law is composed: it takes a tenth of the time of a bound on a coarse lattice.

    Args:
        parts, epsilon, log_delta_target: as for `bound_near`.

    >>> from dpcalc.notions.pld import subsampled_gaussian
    >>> parts = [(subsampled_gaussian(mu=1.0, rate=0.1), 100)]
    >>> round(likely_log_delta(parts, epsilon=8.0, log_delta_target=-12.0), 1)
    -11.9
    """
    composition = _Composition(parts)
    exact = composition.without_law(epsilon)
    return composition.frequent(log_delta_target).likely_log_delta(epsilon) if exact is None else exact


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
    composition = _Composition(parts, resolution)
    if not -math.inf < log_delta_target < 0.0:
        raise SpecError(f"ln delta must be finite and below 0, got {log_delta_target!r}", "give 0 < delta < 1")
    if (pair := composition.single_pair) is not None:
        if pair.mu is not None:
            return Bound(gaussian.epsilon(mu=pair.mu, log_delta_target=log_delta_target))
        return Bound(_solve(functools.partial(_log_profile, pair), log_delta_target, 1.0))
    if composition.log_sum_of_totals() <= log_delta_target:
        return Bound(0.0)
    components = composition.components
    if components.log_infinity_mass() >= log_delta_target:
        return Bound(math.inf)

    frequent = components.without_rare_losses(log_delta_target - _LOG_SHARES[0])
    expected, frequent = frequent.expected_epsilon(log_delta_target)

    def attempt(expected: float, share: float, fineness: int) -> Bound:
        first = share == _LOG_SHARES[0]
        chosen = frequent if first else components.without_rare_losses(log_delta_target - share)
        law = _Law.about(chosen, expected, fineness)
        value = _solve(law.curve(), log_delta_target, float(law.law.points()[-1]))
        return law.bound(value)._replace(value=value) if value < math.inf else Bound(math.inf)

    bound = _improved(attempt, expected, resolution)
    return Bound(composition.largest_loss) if bound.value >= composition.largest_loss else bound


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
    composition = _Composition(parts, resolution)
    if not -math.inf < log_delta_target < 0.0:
        raise SpecError(f"ln delta must be finite and below 0, got {log_delta_target!r}", "give 0 < delta < 1")
    if composition.single_pair is not None:
        return functools.partial(_log_profile, composition.single_pair)
    components, largest = composition.components, composition.largest_loss
    expected, frequent = components.without_rare_losses(log_delta_target - _LOG_SHARES[0]).expected_epsilon(
        log_delta_target
    )
    finite = _Law.about(frequent, expected, resolution).curve()
    infinite = components.log_infinity_mass()
    return lambda epsilon: infinite if epsilon >= largest else finite(epsilon)


def on_lattice(pair: Pair, *, count: int, step: float, low: int, high: int, epsilon: float) -> float:
    """Return an upper bound on ln delta of ``count`` copies on exactly the lattice low step, ..., high step.

    Other accountants do the same, and it serves for comparison: without a tilt rounding exceeds a small delta, and
    losses beyond the lattice count as infinite.
    """
    above, below = (np.asarray(step * np.arange(end), float) for end in (high + 1, 1 - low))
    loss = discretise(pair, above, below)
    law = tilted_law(loss, 0.0, step, low, high, 0).self_composed(count, Grid(0.0, 1 << 40))
    return with_infinity(log_any([(loss.log_infinity_mass, count)]), law.log_finite_delta(epsilon))


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


class _Composition:
    """The parts of a composition: all Gaussians as one (their mu^2 add up), and every other pair once."""

    def __init__(self, parts: Parts, resolution: int = RESOLUTION) -> None:
        if not parts or not all(1 <= count <= _MOST_COUNT and count == int(count) for _, count in parts):
            raise SpecError(
                "a composition needs parts, each with a whole count from 1 to 1e15", "give [(pair, count), ...]"
            )
        if not 8 <= resolution <= 1 << 20:
            raise SpecError(f"the resolution must be from 8 to 2^20, got {resolution!r}", "leave it out")
        gaussians = [(pair.mu, int(count)) for pair, count in parts if pair.mu is not None]
        counts: dict[int, tuple[Pair, int]] = {}
        for pair, count in parts:
            if pair.mu is None:
                counts[id(pair)] = (pair, int(count) + counts.get(id(pair), (pair, 0))[1])
        self.parts = [*counts.values(), *([(gaussian_sum(gaussians), 1)] if gaussians else [])]

    @property
    def single_pair(self) -> Pair | None:
        """The pair whose forward profile is the answer, if there is one pair with count 1."""
        return self.parts[0][0] if len(self.parts) == 1 and self.parts[0][1] == 1 else None

    @functools.cached_property
    def components(self) -> Components:
        """The pairs with their approximate laws."""
        return Components(tuple(component_of(pair, count) for pair, count in self.parts))

    @property
    def largest_loss(self) -> float:
        """The largest finite loss of the composition, rounded up; inf where it is not known."""
        if any(pair.atom is None for pair, _ in self.parts):
            return math.inf
        return up(math.fsum(count * pair.atom for pair, count in self.parts if pair.atom is not None), 4.0)

    def without_law(self, epsilon: float) -> float | None:
        """Return ln delta where no law is needed for it: of one pair, and past the largest loss."""
        if self.single_pair is not None:
            return _log_profile(self.single_pair, epsilon)
        return self.components.log_infinity_mass() if epsilon >= self.largest_loss else None

    def frequent(self, log_delta: float) -> Components:
        """Return the components without losses that are rare beside this ln delta, for one attempt."""
        return self.components.without_rare_losses(log_delta - _LOG_SHARES[-1])

    def log_sum_of_totals(self) -> float:
        """Return ln of the sum of all total variations, which delta at epsilon 0 does not exceed, rounded up."""
        total = -math.inf
        for pair, count in self.parts:
            total = log_add_exp(total, _log_profile(pair, 0.0) + math.log(count))
        return total + 16.0 * len(self.parts) * UNIT * (1.0 + abs(total)) if total > -math.inf else total


class _Law(NamedTuple):
    """The law of a composition, tilted so that its mean is about an epsilon, and what it is made of."""

    components: Components
    law: TiltedLaw

    @classmethod
    def about(cls, components: Components, epsilon: float, resolution: int) -> _Law:
        """Return the law about an epsilon."""
        refined, tilt = components.refined_about(epsilon)
        return cls(refined, refined.law(tilt, Grid(1.0 / resolution, _POINTS * resolution)))

    def curve(self) -> Callable[[float], float]:
        """Return an upper bound on ln delta as a function of epsilon."""
        infinite, finite = self.components.log_infinity_mass(), self.law.finite_curve()
        return lambda epsilon: with_infinity(infinite, finite(epsilon))

    def bound(self, epsilon: float) -> Bound:
        """Return the bound on ln delta, and how far down what is due to rounding and to the lattice may bring it."""
        infinite = self.components.log_infinity_mass()
        value = with_infinity(infinite, self.law.log_finite_delta(epsilon))
        floors = self.law.log_floors(epsilon)
        infinite -= UNIT * (32.0 * abs(infinite) + 128.0) if infinite > -math.inf else 0.0
        split, exact = log_add_exp(infinite, floors.split), log_add_exp(infinite, floors.exact)
        for c in self.components.members:
            exact = log_less(exact, math.log(c.copies) + log_less(c.loss.log_infinity_mass, c.told))
        return Bound(value, value - split, split - exact if exact > -math.inf else math.inf)


def _log_profile(pair: Pair, epsilon: float) -> float:
    if pair.mu is not None:
        return gaussian.log_delta(mu=pair.mu, epsilon=epsilon)
    with np.errstate(all="ignore"):
        return float(pair.forward(np.array([epsilon]))[0])


def _solve(profile: Callable[[float], float], target: float, ceiling: float) -> float:
    """Return the least epsilon with ln delta at most the target, to some units of roundoff; inf if there is none."""
    ceiling = max(ceiling, 1.0)
    while profile(ceiling) > target:
        ceiling *= 2.0 if ceiling < _FAR else _FAR
        if ceiling > _FARTHEST:
            return math.inf
    return least(lambda e: profile(e) - target, 0.0, ceiling, ulps=1 << 10)
