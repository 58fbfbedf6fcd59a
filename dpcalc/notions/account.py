"""Several releases about the same records, added up: what holds of all of them together.

Gaussian parts compose in closed form (mu^2 adds), Gaussian parts with (epsilon, delta) boxes by the exact law of the
boxes' losses, and everything else by the law of the privacy loss on one lattice. A removed and an added record are kept
apart until the end: `Composition` has a list of dominating pairs for either order, and the larger epsilon counts.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from dpcalc.errors import NotApplicable
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import NOT_COMPOSABLE, Box, Composition, Gdp, Guarantee, Profile, Rdp, compose
from dpcalc.notions.randomised_response import boxes_log_delta
from dpcalc.numerics.floats import up

MOST_TERMS = 1500
"""Different losses of boxes that are added up one by one; with more, the lattice composes."""


class Total(NamedTuple):
    """What holds of all parts together, and how it was composed: gdp, exact, pld or renyi; own where one is alone."""

    form: str
    guarantee: Guarantee


def compose_all(parts: Sequence[tuple[Guarantee, int]], *, one_way: bool = False) -> list[Total]:
    """Return the totals that hold of all parts together, each ``count`` times, adaptively: all are guarantees.

    Args:
        parts: (what holds of one run, how many of them), each in the same orders of the two data sets.
        one_way: whether only one order is spoken of: a record added, or one removed.

    Raises:
        NotApplicable: nothing composes them.
    """
    if len(parts) == 1 and parts[0][1] == 1 and isinstance(alone := parts[0][0], (Rdp, Profile, Composition)):
        return [Total("own", alone)]
    mus = [(part.mu, count) for part, count in parts if isinstance(part, Gdp)]
    if len(mus) == len(parts):
        return [Total("gdp", Gdp(gaussian.together(mus)))]
    boxes = collections.Counter[tuple[float, float]]()
    for part, count in parts:
        if isinstance(part, Box):
            boxes[part.point] += count
    terms = 1 if len(boxes) == 1 and not mus else math.prod(count + 1 for count in boxes.values())
    if len(mus) + sum(isinstance(part, Box) for part, _ in parts) == len(parts) and terms <= MOST_TERMS:
        profile = functools.partial(boxes_log_delta, gaussian.together(mus), tuple(boxes.items()))
        return [Total("exact", Profile(functools.cache(profile)))]
    totals = []
    if all(part.has_pairs for part, _ in parts):
        totals.append(Total("pld", compose(parts, one_way=one_way)))
    if all(part.has_renyi for part, _ in parts):
        totals.append(Total("renyi", Rdp(lambda order: up(math.fsum(n * part.rdp(order) for part, n in parts), 4.0))))
    if not totals:
        raise NotApplicable(*NOT_COMPOSABLE)
    return totals
