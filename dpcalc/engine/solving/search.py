"""Searches over a parameter in which privacy is monotone; each ends on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from dpcalc.errors import Infeasible
from dpcalc.numerics.roots import greatest, least

_LOWEST, HIGHEST = 1e-150, 1e150
_SECANTS, _LONGEST = 10, 0.7  # the number of secant steps, and the longest of them in the logarithm
_BEGUN = 2e-4  # after a step this short in the logarithm, a search continues with exact values
_STRIDE = 1.5


class Direction(NamedTuple):
    """How privacy moves with a parameter, and the range searched."""

    more_is_private: bool
    integer: bool = False
    low: float = _LOWEST
    high: float = HIGHEST


DIRECTIONS: dict[str, Direction] = {
    "noise_std": Direction(True),
    "laplace_scale": Direction(True),
    "lipschitz": Direction(False),
    "diameter": Direction(False),
    "start_distance": Direction(False),
    "strong_convexity": Direction(True),
    "step_size": Direction(True),
    "records": Direction(True, integer=True, low=1, high=10**15),
    "index": Direction(False, integer=True, low=1, high=10**15),
    "epochs": Direction(False, integer=True, low=1, high=10**15),
    "steps": Direction(False, integer=True, low=1, high=10**15),
    "bands": Direction(False, integer=True, low=1, high=10**15),
    "clean_steps": Direction(True, integer=True, low=1, high=10**15),
    "batch_size": Direction(True, integer=True, low=1, high=10**15),
    "window": Direction(True, integer=True, low=0, high=10**15),
    "noise_multiplier": Direction(True, low=1e-6, high=1e9),
    "sample_rate": Direction(False, low=1e-15, high=1.0),
    "schedule_factor": Direction(True, low=1e-6, high=1e6),
}
"""Parameters that can be solved for: the least value that meets the budget where more is private, else the largest."""


def extreme(
    excess: Callable[[float], float], direction: Direction, start: float, ulps: int = 4, stride: float = 16.0
) -> float:
    """Return the cheapest value of a continuous parameter with excess(value) <= 0.

    Args:
        excess: monotone in the parameter; <= 0 where the budget is met. Evaluated at the returned value.
        direction: the least value is sought where more is private, else the greatest.
        start: a value to start bracketing from.
        ulps: width of the final bracket, in representable numbers.
        stride: factor between the values tried at first.

    Raises:
        Infeasible: no value in the range meets the budget.
    """
    toward = stride if direction.more_is_private else 1.0 / stride
    good = start
    while excess(good) > 0.0:
        further = min(max(good * toward, direction.low), direction.high)
        if further == good:
            raise Infeasible("no value in range meets the budget", reached=good)
        good = further
    bad = min(max(good / toward, direction.low), direction.high)
    while excess(bad) <= 0.0:
        if bad == good:
            return good
        good, bad = bad, min(max(bad / toward, direction.low), direction.high)
    if direction.more_is_private:
        return least(excess, bad, good, ulps=ulps)
    return greatest(excess, good, bad, ulps=ulps)


def near(
    excess: Callable[[float], float],
    direction: Direction,
    start: float,
    ulps: int,
    second: Callable[[float], float],
    rough: Callable[[float], float] | None = None,
    width: float | None = None,
) -> float:
    """Solve as `extreme` does, in few evaluations, for a smooth excess and a start near the solution.

    Secant steps in the logarithm end at a point that meets the budget and is within the width of the secant's root. If
    they fail, the search continues by brackets.

    Args:
        excess, direction, ulps: as for `extreme`.
        start: near the solution.
        second: the value to try next, from the excess at the first.
        rough: a cheaper approximation of the excess; the search begins with it.
        width: the relative accuracy of the secants; None for finer than the final bracket, at little cost.

    Raises:
        Infeasible: no value in the range meets the budget.
    """
    aim = 0.125 if width is None else 0.5  # of the width: costly evaluations should rarely miss
    width = ulps * 2.0**-56 if width is None else width
    safe = 1.0 if direction.more_is_private else -1.0
    begun = by_rough_secants(rough, direction, start, second) if rough is not None else None
    if begun is not None:
        start, slope = begun
        x = start * math.exp(-excess(start) / slope + aim * safe * width)
    else:
        x = second(excess(start))
    last, x = start, min(max(x, direction.low), direction.high)
    best = start
    for _ in range(_SECANTS):
        value, before = excess(x), excess(last)
        best = min(best, x, key=lambda point: abs(excess(point)))
        gap = math.log(x / last)
        slope = (value - before) / gap if gap else 0.0
        if not slope * safe < 0.0:
            break
        step = -value / slope
        if value <= 0.0 and abs(step) <= width:
            return x
        if abs(step) > _LONGEST:
            break
        further = x * math.exp(step + aim * safe * width)
        if not direction.low <= further <= direction.high:
            break
        last, x = x, further
    return extreme(excess, direction, best, ulps, stride=_STRIDE)


def by_rough_secants(
    rough: Callable[[float], float], direction: Direction, start: float, second: Callable[[float], float]
) -> tuple[float, float] | None:
    """Return a value near the solution, and the slope there in the logarithm, by secant steps; None where they fail."""
    safe = 1.0 if direction.more_is_private else -1.0
    last, before = start, rough(start)
    x = second(before)
    for _ in range(_SECANTS):
        gap = math.log(x / last)
        if not (gap and direction.low <= x <= direction.high):
            return None
        value = rough(x)
        slope = (value - before) / gap
        if not slope * safe < 0.0 or abs(value / slope) > _LONGEST:
            return None
        last, before, step = x, value, -value / slope
        x *= math.exp(step)
        if abs(step) <= _BEGUN:
            return min(max(x, direction.low), direction.high), slope
    return None


def unbounded(value: float, direction: Direction) -> bool:
    """Return whether a solution is at the far end of the range, so that any value meets the budget."""
    if direction.integer or direction.low > _LOWEST:
        return False
    return value <= 256.0 * _LOWEST if direction.more_is_private else value >= HIGHEST / 256.0


def extreme_integer(
    excess: Callable[[int], float], direction: Direction, low: int, high: int, guess: int | None = None
) -> int:
    """Return the cheapest integer in [low, high] with excess(value) <= 0.

    Doubling steps from ``low``, or from a guess, until the verdict changes, then bisection: small answers cost few,
    cheap evaluations. The first step from a guess is as long as the error of a good guess.

    Raises:
        Infeasible: not even the most private end meets the budget.
    """
    seeks_good = direction.more_is_private

    def past(value: int) -> bool:
        return (excess(value) <= 0.0) == seeks_good

    first, step = low, 1
    if guess is not None and low < guess <= high:
        first = guess
        begin = step = max(1, int(CLOSE * guess))
        while first > low and past(first):
            high = first
            first, step = max(low, first - step), 2 * step
        step = begin
    if past(first):
        if seeks_good:
            return first
        raise Infeasible(f"not even {first} meets the budget", reached=first)
    before = first
    while True:
        probe = min(before + step, high)
        if past(probe):
            break
        if probe == high:
            if seeks_good:
                raise Infeasible(f"not even {high} meets the budget", reached=high)
            return high
        before, step = probe, 2 * step
    while probe - before > 1:
        middle = (before + probe) // 2
        if past(middle):
            probe = middle
        else:
            before = middle
    return probe if seeks_good else before


def roughly(excess: Callable[[int], float], low: int, high: int, near: float) -> int | None:
    """Return an integer near the root of a monotone excess, in few evaluations; None where none is found.

    Steps by a factor of 16 from ``low`` >= 1 until the sign changes, then false position in the logarithm; when the
    same end moves twice, the bracket is halved.
    """
    before, value = low, low
    at_before = at = excess(low)
    while at * at_before > 0.0 and value < high:
        before, at_before = value, at
        value = min(16 * value, high)
        at = excess(value)
    if not at * at_before < 0.0:
        return None
    halve, moved = False, 0
    for _ in range(_TRIES):
        if value - before < 2:
            break
        share = min(0.9, max(0.1, at_before / (at_before - at)))
        middle = (before + value) // 2 if halve else round(before * (value / before) ** share)
        middle = min(max(middle, before + 1), value - 1)
        at_middle = excess(middle)
        if abs(at_middle) <= near:
            return middle
        side = 1 if at_middle * at > 0.0 else -1
        halve, moved = side == moved and not halve, side
        if side == 1:
            value, at = middle, at_middle
        else:
            before, at_before = middle, at_middle
    return before


def by_secants(
    excess: Callable[[int], float], guess: int, low: int, high: int, slope: float, within: float = 0.0
) -> int:
    """Return an integer in [low, high] near the root of ``excess``, by a few secant steps.

    Args:
        excess: monotone.
        guess: where to begin, at least 1.
        low, high: the ends of the range, at least 1.
        slope: the approximate derivative of the excess in the logarithm of the value.
        within: the relative length of a step after which the search ends; a step of 1 ends it in any case.
    """
    before: tuple[int, float] | None = None
    for _ in range(_SECANTS):
        at = excess(guess)
        if before is not None and guess != before[0] and abs(at) < _FAR and abs(before[1]) < _FAR:
            secant = (at - before[1]) / math.log(guess / before[0])
            slope = secant if secant * slope > 0.0 else slope
        if not 0.0 < abs(slope) < math.inf:
            break
        moved = min(_LONGEST, max(-_LONGEST, -at / slope))
        nearer = min(max(round(guess * math.exp(moved)), low, 1), high)
        if abs(nearer - guess) <= max(1.0, within * guess):
            return nearer if within else guess
        before, guess = (guess, at), nearer
    return guess


_TRIES = 24
CLOSE = 1e-8  # the relative accuracy to which secants find a large integer
_FAR = 50.0
