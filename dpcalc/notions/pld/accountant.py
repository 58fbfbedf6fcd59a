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
_POINTS = 128  # a lattice has at most this many times the resolution; with long tails it is coarser
_LOOSE = 0.02  # a bound whose method may add more than this to ln delta is worth another attempt
_AS_EXPECTED = 1.0  # an expected ln delta within this distance of the result was good enough
_FAR, _FARTHEST = 2.0**60, 2.0**660  # epsilons from which a search takes longer steps, and gives up
_EXACT = 1e-9  # a bound on a coarse lattice with no more slack than this needs no fine lattice
_LOG_SHARES = (12.0, 8.0, 5.0)  # losses with a share of delta below e^-12 count as infinite; then e^-8, e^-5
_FINER = 4  # times the resolution, if none of these shares is enough
_COARSE = 64  # points per deviation in the first attempts, which estimate ln delta


class Bound(NamedTuple):
    """An upper bound, and how much of it is due to the method and not to the mechanism."""

    value: float
    """An upper bound on ln delta, or on epsilon."""
    rounding: float = 0.0
    """A bound on what rounding and cutting off tails add to ln delta at that epsilon, for exact profiles."""
    lattice: float = 0.0
    """A bound on what splitting losses between lattice points and counting rare ones as infinite add."""


Parts = Sequence[tuple[Pair, int]]


def log_delta(parts: Parts, *, epsilon: float, resolution: int = RESOLUTION, expected: float | None = None) -> Bound:
    """Return an upper bound on ln delta at ``epsilon`` of the adaptive composition of the parts.

    delta = 1 - prod (1 - P(inf)) + sum over finite losses z > epsilon of p(z) (1 - e^(epsilon - z)), for the sum of the
    losses of dominating laws on a lattice. The bound includes every floating-point error: about 1e-13 of delta for each
    loss, so these errors are most of the bound beyond a count of 1e10. Gaussian parts are composed in closed form. For
    a single pair the result is its profile.

    Args:
        parts: (pair, count), each count a whole number from 1 to 1e15.
        epsilon: finite and >= 0.
        resolution: points per standard deviation of the loss, 8 to 2^20; fewer if rare losses are more than 64
            deviations away. The relative error of epsilon falls with its square.
        expected: an estimate of ln delta, if known; it saves the attempts that estimate it.

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
        key = (fineness, *(len(c.above) for c in frequent.members))  # two shares may drop the same losses
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
    """Return an upper bound on ln delta at ``epsilon`` that is tight if ln delta is near the target.

    A search for a target needs this: one attempt, where `log_delta` makes several. Losses that are rare compared with
    the target count as infinite, so the bound is loose if ln delta is far below the target. `log_delta` is at least
    this bound minus its errors.

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
    """Return an estimate of ln delta at ``epsilon``, good near the target: a guess for searches, not a bound.

    No law is composed: this takes a tenth of the time of a bound on a coarse lattice.

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
    """Return the least epsilon >= 0 at which the composition of the parts has at most this delta, rounded up.

    inf if losses of +inf alone exceed delta.

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
    """Return an upper bound on ln delta of the composition as a function of epsilon >= 0, tight near the target.

    One law serves every epsilon. Losses that are rare compared with the target count as infinite, so the bound is loose
    where ln delta is far below the target.

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

    This is for comparison with other accountants, which do the same: without a tilt rounding exceeds a small delta, and
    losses beyond the lattice count as infinite.
    """
    above, below = (np.asarray(step * np.arange(end), float) for end in (high + 1, 1 - low))
    loss = discretise(pair, above, below)
    law = tilted_law(loss, 0.0, step, low, high, 0).self_composed(count, Grid(0.0, 1 << 40))
    return with_infinity(log_any([(loss.log_infinity_mass, count)]), law.log_finite_delta(epsilon))


def _improved(attempt: Callable[[float, float, int], Bound], value: float, resolution: int) -> Bound:
    """Return the best of several attempts, each counting more losses as infinite, until one is not loose.

    Each attempt starts from the best value so far; the last uses a finer lattice.
    """
    best = Bound(math.inf)
    for share, fineness in [*((share, resolution) for share in _LOG_SHARES), (_LOG_SHARES[0], _FINER * resolution)]:
        if fineness > resolution and (best.rounding > _LOOSE or not best.lattice < 1.0):
            break  # a finer lattice rounds more, or the bound is too loose for it to help
        bound = attempt(value, share, fineness)
        best = min(best, bound, key=lambda b: b.value)
        if best.rounding + best.lattice <= _LOOSE or not math.isfinite(best.value):
            break
        value = best.value
    return best


class _Composition:
    """The parts of a composition: all Gaussians merged into one (their mu^2 add up), and every other pair once."""

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
        """The largest finite loss of the composition, rounded up; inf if it is not known."""
        if any(pair.atom is None for pair, _ in self.parts):
            return math.inf
        return up(math.fsum(count * pair.atom for pair, count in self.parts if pair.atom is not None), 4.0)

    def without_law(self, epsilon: float) -> float | None:
        """Return ln delta if it needs no law: for one pair, and for epsilons from the largest loss on."""
        if self.single_pair is not None:
            return _log_profile(self.single_pair, epsilon)
        return self.components.log_infinity_mass() if epsilon >= self.largest_loss else None

    def frequent(self, log_delta: float) -> Components:
        """Return the components without losses that are rare compared with this ln delta, for a single attempt."""
        return self.components.without_rare_losses(log_delta - _LOG_SHARES[-1])

    def log_sum_of_totals(self) -> float:
        """Return ln of the sum of all total variations, rounded up: an upper bound on ln delta at epsilon 0."""
        total = -math.inf
        for pair, count in self.parts:
            total = log_add_exp(total, _log_profile(pair, 0.0) + math.log(count))
        return total + 16.0 * len(self.parts) * UNIT * (1.0 + abs(total)) if total > -math.inf else total


class _Law(NamedTuple):
    """The law of a composition, tilted so that its mean is near an epsilon, and its components."""

    components: Components
    law: TiltedLaw

    @classmethod
    def about(cls, components: Components, epsilon: float, resolution: int) -> _Law:
        """Return the law tilted to an epsilon."""
        refined, tilt = components.refined_about(epsilon)
        return cls(refined, refined.law(tilt, Grid(1.0 / resolution, _POINTS * resolution)))

    def curve(self) -> Callable[[float], float]:
        """Return an upper bound on ln delta as a function of epsilon."""
        infinite, finite = self.components.log_infinity_mass(), self.law.finite_curve()
        return lambda epsilon: with_infinity(infinite, finite(epsilon))

    def bound(self, epsilon: float) -> Bound:
        """Return the bound on ln delta, and how much of it may be due to rounding and to the lattice."""
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
    """Return the least epsilon with ln delta at most the target, up to roundoff; inf if there is none."""
    ceiling = max(ceiling, 1.0)
    while profile(ceiling) > target:
        ceiling *= 2.0 if ceiling < _FAR else _FAR
        if ceiling > _FARTHEST:
            return math.inf
    return least(lambda e: profile(e) - target, 0.0, ceiling, ulps=1 << 10)
