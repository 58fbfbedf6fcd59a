"""Searches over a parameter in which privacy is monotone; each ends on the safe side."""

from __future__ import annotations

from collections.abc import Callable

from dpcalc.errors import Infeasible
from dpcalc.named_tuple import NamedTuple
from dpcalc.numerics.roots import greatest, least

_LOWEST, HIGHEST = 1e-150, 1e150


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
    "strong_convexity": Direction(True),
    "step_size": Direction(True),
    "records": Direction(True, integer=True, low=1, high=10**15),
    "index": Direction(False, integer=True, low=1, high=10**15),
    "epochs": Direction(False, integer=True, low=1, high=10**15),
    "steps": Direction(False, integer=True, low=1, high=10**15),
    "batch_size": Direction(True, integer=True, low=1, high=10**15),
    "window": Direction(True, integer=True, low=0, high=10**15),
    "noise_multiplier": Direction(True, low=1e-6, high=1e9),
    "sample_rate": Direction(False, low=1e-15, high=1.0),
    "schedule_factor": Direction(True, low=1e-6, high=1e6),
}
"""Parameters that can be solved for: the largest value that meets the budget where more is less private, or the least.
"""


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
    bad = good / toward
    while excess(bad) <= 0.0:
        good, bad = bad, bad / toward
        if not direction.low <= bad <= direction.high:
            return good
    if direction.more_is_private:
        return least(excess, bad, good, ulps=ulps)
    return greatest(excess, good, bad, ulps=ulps)


def unbounded(value: float, direction: Direction) -> bool:
    """Return whether a solution lies at the far end of the range searched: any value would do."""
    if direction.integer or direction.low > _LOWEST:
        return False
    return value <= 256.0 * _LOWEST if direction.more_is_private else value >= HIGHEST / 256.0


def extreme_integer(excess: Callable[[int], float], direction: Direction, low: int, high: int, near: int = 1) -> int:
    """Return the cheapest whole value in [low, high] with excess(value) <= 0.

    Doubling steps from ``low``, or from ``near`` where the answer is thought to be, until the verdict changes, then a
    search between: small answers cost few, cheap evaluations. ``excess`` is asked for the same value more than once.

    Raises:
        Infeasible: not even the most private end meets the budget.
    """
    seeks_good = direction.more_is_private
    if (excess(low) <= 0.0) == seeks_good:
        if seeks_good:
            return low
        raise Infeasible(f"not even {low} meets the budget", reached=low)
    before, step = low, max(1, near - low)
    while True:
        probe = min(low + step, high)
        if (excess(probe) <= 0.0) == seeks_good:
            break
        if probe == high:
            if seeks_good:
                raise Infeasible(f"not even {high} meets the budget", reached=high)
            return high
        before, step = probe, 2 * step
    return _between(excess, before, probe, seeks_good)


def _between(excess: Callable[[int], float], before: int, probe: int, seeks_good: bool) -> int:
    """Return the cheapest whole value between two of which one meets the budget.

    Every other value tried is where a straight line through the two excesses meets the budget; bisection bounds their
    number.
    """
    bisect = False
    while probe - before > 1:
        middle = (before + probe) // 2
        if not bisect:
            left, right = excess(before), excess(probe)
            share = left / (left - right) if left != right else 0.5
            # One past the crossing, on the side of the end that is kept, so that both ends move.
            middle = min(max(before + round(share * (probe - before)), before + 1), probe - 1)
        width = probe - before
        if (excess(middle) <= 0.0) == seeks_good:
            probe = middle
        else:
            before = middle
        bisect = not bisect and 4 * (probe - before) > width
    return probe if seeks_good else before
