"""Solving for a parameter of the run, bound by bound, such that an attacker can do no more than is stated."""

from __future__ import annotations

import functools
import math
from typing import Any

from dpcalc.engine.evaluate import FINE
from dpcalc.engine.question import Question
from dpcalc.engine.solving.budget import (
    NUDGES,
    Excess,
    as_multiplier,
    holds_at,
    range_of,
    refuse_unsolvable,
    search,
    start_of,
)
from dpcalc.engine.solving.problem import Problem
from dpcalc.engine.solving.search import unbounded
from dpcalc.engine.solving.targets import achieved, excess_over, like_budget
from dpcalc.errors import Infeasible, NotApplicable
from dpcalc.model.run import Run
from dpcalc.numerics.floats import UNIT
from dpcalc.report import Result
from dpcalc.theorems.record import Theorem


def solve_for_risk(bound: Theorem, run: Run, question: Question, unknown: str) -> Result:
    """Return the value of the unknown with which the bound keeps what an attacker can do within the targets.

    Raises:
        NotApplicable: the bound is no guarantee of this run, has no curve, or is not monotone in the parameter.
        Infeasible: no value keeps the targets.
    """
    if unknown == "noise_multiplier" and not run.algorithm.clipped:
        return as_multiplier(solve_for_risk(bound, run, question, "noise_std"), run)
    if not bound.guarantee or bound.unpromised(run):
        raise NotApplicable("is no guarantee of this run", "promise what it demands, or ask for epsilon to see it")
    like_epsilon, like_log_delta = like_budget(question.targets)
    problem = Problem(bound, run, question._replace(epsilon=like_epsilon, log_delta=like_log_delta), unknown)
    refuse_unsolvable(problem)

    @functools.cache
    def excess(value: float) -> float:
        return excess_over(problem.guarantee_at(value), question.targets, rough=True)

    details: dict[str, Any] = {"targets": [target._asdict() for target in question.targets]}
    value = None if problem.takes else _for_any(problem, excess)
    if value is not None:
        details |= {"any": True, **({} if holds_at(problem, problem.direction.high) else range_of(problem, value))}
    else:
        value = _searched(problem, excess)
        details |= range_of(problem, value)
        if unbounded(value, problem.direction):
            details["any"] = True
        elif unknown == "noise_std" and (multiplier := run.multiplier_at(value)) is not None:
            details["noise_multiplier"] = multiplier
    reached = problem.guarantee_at(value)
    details["achieved"] = achieved(reached, question.targets)
    return problem.row(unknown, value, mu=reached.mu, details=details)


def _for_any(problem: Problem, excess: Excess) -> float | None:
    """Return the least private value, where a bound that does not take the unknown keeps the targets even with that.

    None where the unknown matters all the same, through something that follows from it.

    Raises:
        NotApplicable: nothing is said of a number of records or steps that the bound does not take.
        Infeasible: it misses the targets whatever the unknown is.
    """
    unknown, direction = problem.unknown, problem.direction
    if direction.integer:
        raise NotApplicable(f"does not depend on {unknown}", f"solve for another parameter than {unknown}")
    value = direction.low if direction.more_is_private else direction.high
    if excess(value) <= 0.0:
        return value
    if excess(start_of(problem)) < excess(value):
        return None
    raise Infeasible(f"no {unknown} gives {_missed(problem, value)} for any", _HINT)


def _searched(problem: Problem, excess: Excess) -> float:
    """Return the cheapest value of the unknown that keeps the targets when asked again.

    Raises:
        Infeasible: there is none.
    """
    try:
        value = _nudged_within(problem, search(problem, excess))
    except Infeasible as error:
        if error.reached is None:
            raise
        missed = _missed(problem, error.reached)
        raise Infeasible(f"no {problem.unknown} gives {missed} at {error.reached:g}", _HINT) from None
    return int(value) if problem.exact else value


_HINT = "more noise, or a larger limit"


def _missed(problem: Problem, value: float) -> str:
    """Return the first target, and what is reached of it with a value of the unknown."""
    target = problem.question.targets[0]
    return f"{target.text}: it is {achieved(problem.guarantee_at(value), [target])[target.key]:.6g}"


def _nudged_within(problem: Problem, value: float) -> float:
    """Return a value at or next to this one that keeps the targets when asked again.

    Raises:
        Infeasible: there is none next to it.
    """

    def kept() -> bool:
        return excess_over(problem.guarantee_at(value), problem.question.targets) <= 0.0

    if kept():
        return value
    step = UNIT * (FINE if problem.bound.slow else 4.0) * (1.0 if problem.direction.more_is_private else -1.0)
    for power in range(NUDGES):
        value = value + math.copysign(1, step) if problem.exact else value * (1.0 + 4.0**power * step)
        if kept():
            return value
    raise Infeasible("no value was found that keeps the target")
