"""The binomial law in a few groups, for means of non-decreasing functions from above."""

from __future__ import annotations

import math

from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.logspace import log_add_exp

_SUMMED = 1000.0  # up to this mean the masses are added up one by one


def log_groups(trials: int, chance: float) -> list[tuple[int, float]]:
    """Return (number, ln weight) pairs such that sum weight f(number) >= E f for every non-decreasing f >= 0.

    A group counts at its largest number. Up to a mean of 1000 groups are half a standard deviation wide, single
    numbers where the mean is small, and their masses good to rounding; beyond, and in the far tail, weights are
    Chernoff's bounds on P(number >= least of the group), which add up to some 7.

    Args:
        trials: 0 to 1e15.
        chance: 0 <= chance < 1.
    """
    if trials == 0 or chance == 0.0:
        return [(0, 0.0)]
    mean = trials * chance
    spread = math.sqrt(mean)
    groups, top = [], -1
    if mean <= _SUMMED:
        top = min(trials, math.ceil(mean + 10.0 * spread + 15.0))
        groups = _masses(trials, chance, top, max(1, int(spread / 2.0)))
    width = max(1.0, spread)
    while top < trials:
        start = top + 1
        top = min(trials, max(start, int(start + width), int(mean - 8.0 * spread)))
        width *= 1.1 if start < mean + 40.0 * spread else 4.0
        groups.append((top, _tail(start, trials, chance)))
    return groups


def _masses(trials: int, chance: float, top: int, width: int) -> list[tuple[int, float]]:
    """Return the masses of the numbers up to ``top``, each group of ``width`` of them as one."""
    odds = math.log(chance) - math.log1p(-chance)
    log_mass, weight, found = trials * math.log1p(-chance), -math.inf, []
    for number in range(top + 1):
        if number:
            log_mass += math.log((trials - number + 1) / number) + odds
        weight = log_add_exp(weight, log_mass)
        if (number + 1) % width == 0 or number == top:
            steps = (number + 2) * (2.0 + abs(odds) + math.log(trials)) + trials * chance
            found.append((number, min(0.0, weight + 16.0 * UNIT * steps)))
            weight = -math.inf
    return found


def _tail(start: int, trials: int, chance: float) -> float:
    """Return an upper bound on ln P(number >= start)."""
    share = start / trials
    if share <= chance:
        return 0.0
    gap = share * math.log(share / chance)
    if share < 1.0:
        gap += (1.0 - share) * math.log((1.0 - share) / (1.0 - chance))
    return -trials * max(0.0, gap - 64.0 * UNIT * (1.0 + abs(math.log(chance))))
