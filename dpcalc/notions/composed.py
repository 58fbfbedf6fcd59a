"""What dominating pairs in one order of the two data sets answer, by the distribution of their loss; all rounded up."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

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
_USUAL_LOG_DELTA = -24.0  # of questions: the delta for which parts are made where none is expected
_LEAST_LOG_DELTA = -3000.0  # parts are made for no smaller delta
_WELL_ABOVE = 0.75  # an ln delta above this share of what parts are made for is far more than what they leave out
_ABOUT = 4.0  # what parts leave out is rarer than the delta that they are made for by a factor of some e^12
_ACCURATE = 0.1  # of ln delta: an answer with a larger error may be improved in other ways
_MOST_CORRECTED = 0.1  # of ln delta: an extrapolation that changes more is not trusted


class OneOrder(NamedTuple):
    """Dominating pairs of P against Q, or of Q against P, or those best about a ln delta as a function of it."""

    parts: Parts

    def pairs(self, log_delta: float | None) -> Pairs:
        """Return the pairs that are best for this ln delta; for a usual one where none is expected."""
        made_for = _USUAL_LOG_DELTA if log_delta is None else log_delta
        return tuple(self.parts(made_for) if callable(self.parts) else self.parts)

    def epsilon(self, log_delta: float, *, rough: bool) -> Answer:
        """Return the least epsilon at ln delta."""
        return _epsilon(self.pairs(log_delta), log_delta, rough)

    def log_delta(self, epsilon: float, expected: float | None = None, *, rough: bool = False) -> Answer:
        """Return ln delta at epsilon, which may be expected to be about so much.

        Where it is about what was expected, the pairs are those that tell the epsilon there.
        """
        target = _USUAL_LOG_DELTA if expected is None else expected
        answer = _log_delta(self.pairs(target), epsilon, expected, rough)
        if expected is not None and abs(answer.value - expected) < _ABOUT:
            return answer
        # What parts leave out is about as rare as the delta that they are made for: an answer near it may be all that.
        while callable(self.parts) and -math.inf < answer.value <= _WELL_ABOVE * target and target > _LEAST_LOG_DELTA:
            target = 2.0 * min(answer.value, target)
            nearer = _log_delta(self.pairs(target), epsilon, None, rough)
            answer = min(answer, nearer, key=lambda answer: answer.value)
        if answer.rounding + answer.lattice > _ACCURATE:
            # An answer that is mostly error may be above those at smaller epsilons, which hold here, too.
            bound = min(self.profile()(epsilon), gaussian.log_delta(mu=self.whole_mu(), epsilon=epsilon))
            answer = answer if answer.value <= bound else Answer(bound, None, "pld")
        return answer

    def whole_mu(self, size: int = 1) -> float:
        """Return a mu of which a composition is mu-GDP at every epsilon, by the farthest laws of each pair; inf: none.

        Of groups it is ``size`` times that, or what it is where a step uses records of the group alone, if less.
        """
        times = [
            (pair.whole_mu if size == 1 else min(up(size * pair.whole_mu), pair.largest_mu), count)
            for pair, count in self.pairs(None)
        ]
        return gaussian.together(times) if all(math.isfinite(mu) for mu, _ in times) else math.inf

    def keeps(self, epsilon: float, log_delta: float, made_for: float | None) -> bool:
        """Return whether a coarse lattice tells that ln delta at epsilon is at most this: no finer one is needed."""
        if not (0.0 < epsilon < math.inf and -math.inf < log_delta < 0.0):
            return False
        return _bound_near(self.pairs(made_for), epsilon, log_delta, _COARSE).value <= log_delta

    def bound_near(self, epsilon: float, log_delta: float, resolution: int) -> Bound:
        """Return a bound on ln delta at epsilon from one lattice, close where it is about this."""
        return _bound_near(self.pairs(log_delta), epsilon, log_delta, resolution)

    def likely_log_delta(self, epsilon: float, log_delta: float | None) -> float:
        """Return about ln delta at epsilon where it is near this; no bound."""
        expected = _USUAL_LOG_DELTA if log_delta is None else log_delta
        return _likely_log_delta(self.pairs(expected), epsilon, expected)

    def profile(self) -> CurveWithFloor:
        """Return ln delta as a function of epsilon, which does not rise."""
        return _profile(self.parts if callable(self.parts) else tuple(self.parts))


def extrapolated(coarser: tuple[Parts, ...], epsilon: float, expected: float | None) -> float:
    """Return about ln delta at epsilon from parts that are coarser by 2 and by 4; no bound.

    With an excess of c h^2 that of 4 is above that of 2 by 12 c, which is 4 times what that of 2 is too high by.
    """
    near, far = map(OneOrder, coarser)
    excess = 0.25 * (far.likely_log_delta(epsilon, expected) - near.likely_log_delta(epsilon, expected))
    value = near.log_delta(epsilon, expected, rough=True).value
    return min(0.0, value - min(_MOST_CORRECTED, max(-_MOST_CORRECTED, excess)))


@functools.lru_cache(maxsize=64)
def _epsilon(pairs: Pairs, log_delta: float, rough: bool) -> Answer:
    """Return the epsilon of a composition; bounds that compose the same pairs share the answer."""
    from dpcalc.notions import pld

    bound = pld.epsilon(pairs, log_delta_target=log_delta, resolution=_ROUGH if rough else pld.RESOLUTION)
    if rough and not bound.lattice < _ACCURATE:  # as where few large losses count: it may be 1e-3 above the best
        return _epsilon(pairs, log_delta, False)
    return Answer(bound.value, None, "pld", False, bound.rounding, bound.lattice)


@functools.lru_cache(maxsize=64)
def _log_delta(pairs: Pairs, epsilon: float, expected: float | None, rough: bool) -> Answer:
    from dpcalc.notions import pld

    bound = pld.log_delta(pairs, epsilon=epsilon, expected=expected, resolution=FAIR if rough else pld.RESOLUTION)
    for halvings in range(1, 6):
        if bound.value < -1.0 or epsilon == 0.0 or bound.rounding + bound.lattice < _ACCURATE:
            break
        # For a very large epsilon the bound may be mostly rounding; a bound at a smaller epsilon holds there, too.
        bound = min(bound, pld.log_delta(pairs, epsilon=math.ldexp(epsilon, -halvings)), key=lambda b: b.value)
    return Answer(bound.value, None, "pld", False, bound.rounding, bound.lattice)


@functools.lru_cache(maxsize=64)
def _bound_near(pairs: Pairs, epsilon: float, log_delta: float, resolution: int) -> Bound:
    from dpcalc.notions import pld

    return pld.bound_near(pairs, epsilon=epsilon, log_delta_target=log_delta, resolution=resolution)


@functools.lru_cache(maxsize=64)
def _likely_log_delta(pairs: Pairs, epsilon: float, log_delta: float) -> float:
    from dpcalc.notions import pld

    return pld.likely_log_delta(pairs, epsilon=epsilon, log_delta_target=log_delta)


_TARGETS = (-2.0, -6.0, -14.0, -28.0, -50.0, -90.0, -160.0, -300.0, -600.0)
"""The ln delta about which the laws of a profile are computed; one law answers for all that is near it."""

_OF_INFINITE = 2.0**100  # no finite loss is so large: what a law has there is the mass of its infinite ones
_NEAR_THEM = 1.5  # of ln delta: a value that is so near to that mass may be all of it


@functools.lru_cache(maxsize=16)
def _profile(parts: Parts) -> CurveWithFloor:
    """Return the profile of a composition, from laws made about one ln delta after another until one is near.

    The delta of each law falls as epsilon grows, and the smaller it is, the more laws are asked: the profile does not
    rise. Whoever asks for the same composition shares the laws, and what they were asked.
    """

    @functools.cache
    def law(target: float) -> tuple[Curve, float]:
        from dpcalc.notions import pld

        of_law = pld.curve(OneOrder(parts).pairs(target), log_delta_target=target, resolution=FAIR)
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
