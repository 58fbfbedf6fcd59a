"""Searching for a whole number of a run, such as its steps: in few evaluations of a costly bound, or among divisors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from dpcalc.engine.solving.problem import Problem
from dpcalc.engine.solving.search import CLOSE, by_secants, extreme_integer, roughly
from dpcalc.errors import DpcalcError, Infeasible, SpecError
from dpcalc.model.quantities import Sampling
from dpcalc.notions.guarantee import Composition

Excess = Callable[[float], float]
"""By how much a value of the unknown misses the budget; <= 0 where it meets it."""

_NEAR = 0.02  # an excess of ln delta at which a guess is good enough
_MANY = 256  # the search for an integer below this takes few evaluations
_OF_THE_RECORDS = {"index": 0, "window": 1}
"""Position -> by how much its largest value is below the number of records."""


def search_whole(problem: Problem, likely: float | None, rough: Excess | None) -> int:
    """Return the cheapest integer that meets the budget.

    Args:
        problem: the bound, and its unknown, an integer.
        likely: an approximate solution, if one is known.
        rough: the approximate excess of a composition.

    Raises:
        Infeasible: there is none.
    """
    run, direction = problem.run, problem.direction
    low, high = int(direction.low), int(direction.high)
    values = _choices(problem)
    if values is not None:
        return _search_among(values, problem)
    if problem.unknown in _OF_THE_RECORDS:
        high = _records_of(problem) - _OF_THE_RECORDS[problem.unknown]
    elif run.typed("index"):
        low = run.index or low
    excess = problem.excess
    if _is_out_of_reach(problem, high):
        raise Infeasible(f"not even {high} meets the budget", reached=high)
    if likely is None:
        guess = _whole_guess(problem, low, high)
    else:
        guess = round(min(likely, high))
        if rough is not None and max(low, _MANY) < guess < high:
            excess = functools.cache(_about(problem))
            guess = _nearer(rough, excess, guess, low, high)
    return extreme_integer(excess, direction, low, high, guess)


def _whole_guess(problem: Problem, low: int, high: int) -> int | None:
    """Return an approximate solution for a costly bound, by few or cheap evaluations; None where there is no guess."""
    if problem.bound.gives is not Composition:
        return roughly(problem.excess, max(low, 1), high, 0.0) if problem.bound.slow else None
    epsilon, log_delta = problem.budget

    def rough(value: int) -> float:
        return problem.guarantee_at(value).likely_excess(epsilon, log_delta) if epsilon > 0.0 else math.nan

    guess = roughly(rough, max(low, 1), high, _NEAR)
    if guess is None or not low < guess < high:
        return guess
    further = min(high, guess + max(1, guess // 16))
    return by_secants(problem.excess, guess, low, high, (rough(further) - rough(guess)) / math.log(further / guess))


def _nearer(rough: Excess, excess: Excess, guess: int, low: int, high: int) -> int:
    """Return a better guess of a large integer, by secants on coarse lattices and then on fine ones."""
    rough, further = functools.cache(rough), min(high, guess + guess // 64)
    slope = (rough(further) - rough(guess)) / math.log(further / guess)
    guess = by_secants(rough, guess, low, high, slope, within=1e-4)
    return by_secants(excess, guess, low, high, slope, within=CLOSE)


def _about(problem: Problem) -> Excess:
    """Return the excess for a search that is near its end, where coarse lattices cannot decide and are skipped."""
    epsilon, log_delta = problem.budget
    return lambda value: problem.guarantee_at(value).excess(epsilon, log_delta)


def _is_out_of_reach(problem: Problem, high: int) -> bool:
    """Return whether even the highest value misses the budget, to spare a costly bound the search.

    False where the bound does not apply at that value: a smaller one may do.
    """
    if not (problem.direction.more_is_private and problem.bound.slow) or problem.bound.gives is Composition:
        return False
    try:
        return problem.excess(high) > 0.0
    except DpcalcError:
        return False


def _records_of(problem: Problem) -> int:
    records = problem.run.records
    if records is None:
        raise SpecError(f"solving for {problem.unknown} needs the number of records", "give --records")
    return records


def _search_among(values: Sequence[int], problem: Problem) -> int:
    try:
        return values[extreme_integer(lambda at: problem.excess(values[at]), problem.direction, 0, len(values) - 1)]
    except Infeasible as error:
        raise Infeasible(error.message, reached=None if error.reached is None else values[int(error.reached)]) from None


def _choices(problem: Problem) -> Sequence[int] | None:
    """Return the values to try, or None for all integers; they leave no short batch, pass or group."""
    choose = _CHOICES.get(problem.unknown)
    return None if choose is None else choose(problem)


def _whole_epochs(problem: Problem) -> Sequence[int] | None:
    run = problem.run
    return _divisors(int(run.steps or 1)) if run.algorithm.correlated and run.typed("steps") else None


def _whole_bands(problem: Problem) -> Sequence[int]:
    run = problem.run
    whole = run.separation if run.sampling is Sampling.BALLS_IN_BINS else None
    return _divisors(whole) if whole else range(1, int(run.steps or 1) + 1)


_CHOICES: dict[str, Callable[[Problem], Sequence[int] | None]] = {
    "batch_size": lambda problem: _divisors(_records_of(problem)),
    "epochs": _whole_epochs,
    "bands": _whole_bands,
}


def _divisors(number: int) -> list[int]:
    """Return the divisors up to a million, and their cofactors."""
    small = [d for d in range(1, min(math.isqrt(number), 10**6) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})
