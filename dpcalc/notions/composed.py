"""Epsilon and delta of composed dominating pairs in one order of the two data sets, by their loss distribution; rounded
up."""

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
_USUAL_LOG_DELTA = -24.0  # parts are made for this ln delta if no other is expected
_LEAST_LOG_DELTA = -3000.0  # parts are made for no smaller delta
_WELL_ABOVE = 0.75  # above this share of the ln delta that parts are made for, what they leave out is negligible
_ABOUT = 4.0  # parts leave out events rarer than their delta by a factor of some e^12
_ACCURATE = 0.1  # of ln delta: an answer with a larger error may be improved in other ways
_MOST_CORRECTED = 0.1  # of ln delta: an extrapolation that changes more is not trusted


class OneOrder(NamedTuple):
    """Dominating pairs of P against Q, or of Q against P; or a function from ln delta to the pairs that are best near
    it."""

    parts: Parts

    def pairs(self, log_delta: float | None) -> Pairs:
        """Return the pairs that are best for this ln delta, or for a usual one if it is None."""
        made_for = _USUAL_LOG_DELTA if log_delta is None else log_delta
        return tuple(self.parts(made_for) if callable(self.parts) else self.parts)

    def epsilon(self, log_delta: float, *, rough: bool) -> Answer:
        """Return the least epsilon at ln delta."""
        return _epsilon(self.pairs(log_delta), log_delta, rough)

    def log_delta(self, epsilon: float, expected: float | None = None, *, rough: bool = False) -> Answer:
        """Return ln delta at epsilon; ``expected`` is a guess of it.

        If the guess is close, the pairs are the same as for the epsilon at that delta.
        """
        target = _USUAL_LOG_DELTA if expected is None else expected
        answer = _log_delta(self.pairs(target), epsilon, expected, rough)
        if expected is not None and abs(answer.value - expected) < _ABOUT:
            return answer
        # Parts leave out events about as rare as the delta they are made for, which may dominate an answer near it.
        while callable(self.parts) and -math.inf < answer.value <= _WELL_ABOVE * target and target > _LEAST_LOG_DELTA:
            target = 2.0 * min(answer.value, target)
            nearer = _log_delta(self.pairs(target), epsilon, None, rough)
            answer = min(answer, nearer, key=lambda answer: answer.value)
        if answer.rounding + answer.lattice > _ACCURATE:
            # An answer that is mostly error may be above those at smaller epsilons, which hold here too.
            bound = min(self.profile()(epsilon), gaussian.log_delta(mu=self.whole_mu(), epsilon=epsilon))
            answer = answer if answer.value <= bound else Answer(bound, None, "pld")
        return answer

    def whole_mu(self, size: int = 1) -> float:
        """Return mu such that the composition is mu-GDP at every epsilon, from the farthest laws of each pair; inf for
        none.

        For groups it is ``size`` times that, or less if that follows when a step uses only records of the group.
        """
        times = [
            (pair.whole_mu if size == 1 else min(up(size * pair.whole_mu), pair.largest_mu), count)
            for pair, count in self.pairs(None)
        ]
        return gaussian.together(times) if all(math.isfinite(mu) for mu, _ in times) else math.inf

    def log_overlap(self) -> float:
        """Return about ln of the most that P and Q may have in common: the sum of min(P, Q).

        It is at most the sum of sqrt(P Q), which multiplies in a composition, and is sqrt(1 - t^2) at most where the
        sum of max(P - Q, 0) is t.
        """
        from dpcalc.notions import pld

        apart = [(math.exp(pld.likely_log_delta([(pair, 1)], epsilon=0.0, log_delta_target=-1.0)), count)
                 for pair, count in self.pairs(_MADE_FOR)]  # fmt: skip
        return sum(0.5 * count * math.log1p(-min(t * t, 1.0 - 1e-15)) for t, count in apart)

    def keeps(self, epsilon: float, log_delta: float, made_for: float | None) -> bool:
        """Return whether a coarse lattice proves that ln delta at epsilon is at most this."""
        if not (0.0 < epsilon < math.inf and -math.inf < log_delta < 0.0):
            return False
        return _bound_near(self.pairs(made_for), epsilon, log_delta, _COARSE).value <= log_delta

    def bound_near(self, epsilon: float, log_delta: float, resolution: int) -> Bound:
        """Return a bound on ln delta at epsilon from one lattice, close if it is near ``log_delta``."""
        return _bound_near(self.pairs(log_delta), epsilon, log_delta, resolution)

    def likely_log_delta(self, epsilon: float, log_delta: float | None) -> float:
        """Return an estimate (no bound) of ln delta at epsilon, good near ``log_delta``."""
        expected = _USUAL_LOG_DELTA if log_delta is None else log_delta
        return _likely_log_delta(self.pairs(expected), epsilon, expected)

    def profile(self) -> CurveWithFloor:
        """Return ln delta as a non-increasing function of epsilon."""
        return _profile(self.parts if callable(self.parts) else tuple(self.parts))


def extrapolated(coarser: tuple[Parts, ...], epsilon: float, expected: float | None) -> float:
    """Return an extrapolation (no bound) of ln delta at epsilon from parts that are coarser by 2 and by 4.

    With an error of c h^2, the value at 4 exceeds that at 2 by 12 c, 4 times the 3 c by which that at 2 exceeds that at
    1.
    """
    near, far = map(OneOrder, coarser)
    excess = 0.25 * (far.likely_log_delta(epsilon, expected) - near.likely_log_delta(epsilon, expected))
    value = near.log_delta(epsilon, expected, rough=True).value
    return min(0.0, value - min(_MOST_CORRECTED, max(-_MOST_CORRECTED, excess)))


@functools.lru_cache(maxsize=64)
def _epsilon(pairs: Pairs, log_delta: float, rough: bool) -> Answer:
    """Return the epsilon of a composition; bounds with the same pairs share the answer."""
    from dpcalc.notions import pld

    bound = pld.epsilon(pairs, log_delta_target=log_delta, resolution=_ROUGH if rough else pld.RESOLUTION)
    if rough and not bound.lattice < _ACCURATE:  # if a few large losses count, it may be 1e-3 above the best
        return _epsilon(pairs, log_delta, False)
    return Answer(bound.value, None, "pld", False, bound.rounding, bound.lattice)


@functools.lru_cache(maxsize=64)
def _log_delta(pairs: Pairs, epsilon: float, expected: float | None, rough: bool) -> Answer:
    from dpcalc.notions import pld

    bound = pld.log_delta(pairs, epsilon=epsilon, expected=expected, resolution=FAIR if rough else pld.RESOLUTION)
    for halvings in range(1, 6):
        if bound.value < -1.0 or epsilon == 0.0 or bound.rounding + bound.lattice < _ACCURATE:
            break
        # For a very large epsilon the bound may be mostly rounding; a bound at a smaller epsilon holds there too.
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
"""The ln deltas about which the laws of a profile are computed; one law serves all values near it."""

_MADE_FOR = -14.0  # pairs are made for no larger delta: they are slow to make, and good above it
_OF_INFINITE = 2.0**100  # no finite loss is so large: the mass there is that of infinite losses
_NEAR_THEM = 1.5  # of ln delta: a value this near to that mass may be all of it


@functools.lru_cache(maxsize=16)
def _profile(parts: Parts) -> CurveWithFloor:
    """Return the profile of a composition, from laws made about one ln delta after another until one is near.

    The delta of each law falls as epsilon grows, and a smaller delta asks more laws, so the profile does not rise.
    Equal compositions share the laws and their cached answers.
    """

    @functools.cache
    def law(target: float) -> tuple[Curve, float]:
        from dpcalc.notions import pld

        of_law = pld.curve(OneOrder(parts).pairs(min(target, _MADE_FOR)), log_delta_target=target, resolution=FAIR)
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
