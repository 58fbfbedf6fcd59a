"""What a composition of dominating pairs answers, from the distribution of its privacy loss; all rounded up."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from dpcalc.notions import gaussian
from dpcalc.notions.notion import Answer
from dpcalc.numerics.floats import up

if TYPE_CHECKING:
    from typing import TypeAlias

    from dpcalc.notions.curves import Curve, CurveWithFloor
    from dpcalc.notions.notion import Parts
    from dpcalc.notions.pld import Bound, Pair

    Pairs: TypeAlias = tuple[tuple[Pair, int], ...]

FAIR, _ROUGH, _COARSE = 512, 320, 64  # points per standard deviation
USUAL_LOG_DELTA = -24.0
_LEAST_LOG_DELTA = -3000.0
_WELL_ABOVE = 0.75
_ABOUT = 4.0  # what parts leave out is rarer than the delta that they are made for by a factor of some e^12
_ACCURATE = 0.1


def pairs_for(parts: Parts, log_delta: float) -> Pairs:
    """Return the parts that are best for this ln delta."""
    return tuple(parts(log_delta) if callable(parts) else parts)


def log_delta(parts: Parts, epsilon: float, expected: float | None = None, rough: bool = False) -> Answer:
    """Return ln delta at epsilon, which may be expected to be about so much; of parts made for a delta, about this.

    Where it is about what was expected, the parts are those that tell the epsilon there.
    """
    target = USUAL_LOG_DELTA if expected is None else expected
    answer = _log_delta_of_pairs(pairs_for(parts, target), epsilon, expected, rough)
    if expected is not None and abs(answer.value - expected) < _ABOUT:
        return answer
    # What parts leave out is about as rare as the delta that they are made for: an answer near it may be all of that.
    while callable(parts) and -math.inf < answer.value <= _WELL_ABOVE * target and target > _LEAST_LOG_DELTA:
        target = 2.0 * min(answer.value, target)
        nearer = _log_delta_of_pairs(pairs_for(parts, target), epsilon, None, rough)
        answer = min(answer, nearer, key=lambda answer: answer.value)
    if answer.rounding + answer.lattice > _ACCURATE:
        # An answer that is mostly error may be above those at smaller epsilons, which hold here, too.
        hashable = parts if callable(parts) else tuple(parts)
        bound = min(profile(hashable)(epsilon), gaussian.log_delta(mu=whole_mu(parts), epsilon=epsilon))
        answer = answer if answer.value <= bound else Answer(bound, None, "pld")
    return answer


def whole_mu(parts: Parts, size: int = 1) -> float:
    """Return a mu of which a composition is mu-GDP at every epsilon, by the farthest laws of each pair; inf for none.

    Of groups it is ``size`` times that, or what it is where a step uses records of the group alone, if that is less.
    """
    pairs = pairs_for(parts, USUAL_LOG_DELTA)
    times = [(pair.whole_mu if size == 1 else min(up(size * pair.whole_mu), pair.largest_mu), n) for pair, n in pairs]
    return gaussian.together(times) if all(math.isfinite(mu) for mu, _ in times) else math.inf


def extrapolated(coarser: tuple[Parts, ...], epsilon: float, expected: float | None) -> float:
    """Return about ln delta at epsilon from parts that are coarser by 2 and by 4; no bound.

    With an excess of c h^2 that of 4 is above that of 2 by 12 c, which is 4 times what that of 2 is too high by.
    """
    target = USUAL_LOG_DELTA if expected is None else expected
    value = log_delta(coarser[0], epsilon, expected, True).value
    near, far = (likely_log_delta(pairs_for(parts, target), epsilon, target) for parts in coarser)
    return min(0.0, value - _clipped(0.25 * (far - near)))


def _clipped(x: float) -> float:
    return min(0.1, max(-0.1, x))


def keeps(parts: Parts, epsilon: float, log_delta: float, made_for: float | None = None) -> bool:
    """Return whether a coarse lattice tells that the parts keep to ln delta at epsilon: no finer one is needed then."""
    if not (0.0 < epsilon < math.inf and -math.inf < log_delta < 0.0):
        return False
    pairs = pairs_for(parts, log_delta if made_for is None else made_for)
    return bound_near(pairs, epsilon, log_delta, _COARSE).value <= log_delta


@functools.lru_cache(maxsize=64)
def epsilon_of(parts: Pairs, log_delta: float, rough: bool = False) -> Answer:
    """Return the epsilon of a composition; bounds that compose the same parts share the answer."""
    from dpcalc.notions import pld

    bound = pld.epsilon(parts, log_delta_target=log_delta, resolution=_ROUGH if rough else pld.RESOLUTION)
    if rough and not bound.lattice < _ACCURATE:  # as where few large losses count: it may be 1e-3 above the best
        return epsilon_of(parts, log_delta)
    return Answer(bound.value, None, "pld", False, bound.rounding, bound.lattice)


@functools.lru_cache(maxsize=64)
def _log_delta_of_pairs(parts: Pairs, epsilon: float, expected: float | None = None, rough: bool = False) -> Answer:
    from dpcalc.notions import pld

    resolution = FAIR if rough else pld.RESOLUTION
    bound = pld.log_delta(parts, epsilon=epsilon, expected=expected, resolution=resolution)
    for halvings in range(1, 6):
        if bound.value < -1.0 or epsilon == 0.0 or bound.rounding + bound.lattice < _ACCURATE:
            break
        # For a very large epsilon the bound may be mostly rounding; a bound at a smaller epsilon holds there, too.
        nearer = pld.log_delta(parts, epsilon=math.ldexp(epsilon, -halvings))
        bound = min(bound, nearer, key=lambda b: b.value)
    return Answer(bound.value, None, "pld", False, bound.rounding, bound.lattice)


@functools.lru_cache(maxsize=64)
def bound_near(parts: Pairs, epsilon: float, log_delta: float, resolution: int) -> Bound:
    """Return a bound on ln delta at epsilon from one lattice, close where it is about this."""
    from dpcalc.notions import pld

    return pld.bound_near(parts, epsilon=epsilon, log_delta_target=log_delta, resolution=resolution)


@functools.lru_cache(maxsize=64)
def likely_log_delta(parts: Pairs, epsilon: float, log_delta: float) -> float:
    """Return about ln delta at epsilon where it is near this; no bound."""
    from dpcalc.notions import pld

    return pld.likely_log_delta(parts, epsilon=epsilon, log_delta_target=log_delta)


_TARGETS = (-2.0, -6.0, -14.0, -28.0, -50.0, -90.0, -160.0, -300.0, -600.0)
"""The ln delta about which the laws of a profile are computed; one law answers for all that is near it."""

_OF_INFINITE = 2.0**100  # no finite loss is so large: what a law has there is the mass of its infinite ones
_NEAR_THEM = 1.5  # of ln delta: a value that is so near to that mass may be all of it


@functools.lru_cache(maxsize=16)
def profile(parts: Parts) -> CurveWithFloor:
    """Return the profile of a composition, from laws made about one ln delta after another until one is near.

    The delta of each law falls as epsilon grows, and the smaller it is, the more laws are asked: the profile does not
    rise. Whoever asks for the same composition shares the laws, and what they were asked.
    """

    @functools.cache
    def law(target: float) -> tuple[Curve, float]:
        from dpcalc.notions import pld

        of_law = pld.curve(pairs_for(parts, target), log_delta_target=target, resolution=FAIR)
        return of_law, of_law(_OF_INFINITE)

    @functools.cache
    def curve(epsilon: float, floor: float = -math.inf) -> float:
        best = 0.0
        for target, following in zip(_TARGETS, (*_TARGETS[1:], -math.inf), strict=True):
            of_law, infinite = law(target)
            value = of_law(epsilon)
            best = min(best, value)
            if best <= floor or (best > 0.5 * (target + following) and value > infinite + _NEAR_THEM):
                break
        return best

    return curve
