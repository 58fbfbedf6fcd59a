"""The privacy profile of any guarantee as a function of epsilon, for what transforms profiles: groups and tuning."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dpcalc.errors import NotApplicable
from dpcalc.notions.guarantee import Composition, Guarantee, LowerBound, Point, Worst

if TYPE_CHECKING:
    from dpcalc.notions.guarantee import Parts

Curve = Callable[[float], float]
"""Epsilon >= 0 -> an upper bound on ln delta."""

_TARGETS = (-2.0, -6.0, -14.0, -28.0, -50.0, -90.0, -160.0, -300.0, -600.0)
"""The ln delta about which the laws of a composition are computed; one law answers for all that is near it."""

_RESOLUTION = 512


def profile_of(guarantee: Guarantee) -> Curve:
    """Return ln delta of a guarantee as a function of epsilon, for the worse of both orders.

    Raises:
        NotApplicable: the guarantee has no profile.
    """
    if isinstance(guarantee, (Point, LowerBound)):
        raise NotApplicable("gives epsilon at a delta only", "use a bound that has a curve")
    if isinstance(guarantee, Worst):
        curves = [profile_of(member) for member in guarantee.members]
        return lambda epsilon: max(curve(epsilon) for curve in curves)
    if isinstance(guarantee, Composition):
        orders = [_composed(parts) for parts in guarantee.orders]
        return functools.cache(lambda epsilon: max(curve(epsilon) for curve in orders))
    return functools.cache(lambda epsilon: guarantee.log_delta(epsilon).value)


def _composed(parts: Parts) -> Curve:
    """Return the profile of a composition, from laws made about one ln delta after another until one is near."""

    @functools.cache
    def law(target: float) -> Curve:
        from dpcalc.notions import pld

        made = tuple(parts(target) if callable(parts) else parts)
        return pld.curve(made, log_delta_target=target, resolution=_RESOLUTION)

    def curve(epsilon: float) -> float:
        best = 0.0
        for target, following in zip(_TARGETS, (*_TARGETS[1:], -math.inf), strict=True):
            best = min(best, law(target)(epsilon))
            if best > 0.5 * (target + following):
                break
        return best

    return curve
