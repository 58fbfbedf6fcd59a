"""Solving for a parameter of the run, bound by bound: the value that meets the budget on the safe side."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from dpcalc.engine.evaluate import (
    COARSE,
    FINE,
    ROUGH,
    Application,
    conversion_fields,
)
from dpcalc.engine.solving.problem import Problem
from dpcalc.engine.solving.search import (
    by_rough_secants,
    extreme,
    near,
    unbounded,
)
from dpcalc.engine.solving.whole import search_whole
from dpcalc.errors import DpcalcError, Infeasible, NotApplicable, SpecError
from dpcalc.model.algorithm import Length, Order
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.loss_class import two_over
from dpcalc.model.numbers import shown_apart
from dpcalc.model.parameter import PARAMETERS
from dpcalc.model.quantities import Kind, Noise
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Composition, Guarantee, Profile
from dpcalc.notions.notion import Answer
from dpcalc.numerics.floats import UNIT, from_ordinal, ordinal
from dpcalc.numerics.roots import least
from dpcalc.report import Result
from dpcalc.theorems.record import Theorem

_FAR = 50.0  # secants are useless from an excess this large
_OFF, _HALVINGS = 2.0, 4  # an excess that needs a better guess, and the halvings of a factor of 2, to 1.04
_STEEPEST = 16.0  # a relative step in the unknown rarely changes epsilon by more than 16 times as much
_STEEP = 100.0  # the search does not distinguish larger excesses of ln delta
NUDGES = 24
_SMALLEST, _STRIDE = 1e-12, 8.0  # the smallest epsilon that is tried, and the ratio of the first ones
_ROUNDED = 5e-7  # pairs built for one delta are smooth in the run only to about this relative width
_LIMITED_BY_CURVATURE = frozenset({"step_size", "strong_convexity"})


def solve(asked: Application, unknown: str) -> Result:
    """Return the value of the unknown with which the bound meets the budget.

    Raises:
        NotApplicable: the bound cannot be solved for this parameter.
        Infeasible: no value meets the budget.
    """
    bound, run, question = asked.bound, asked.run, asked.question
    if unknown == "steps" and run.algorithm.length is Length.PASSES:
        raise SpecError(f"{run.algorithm.base} is counted in epochs", "use --solve epochs")
    problem = Problem(bound, run, question, unknown)
    if not problem.takes:
        result = _independent(problem)
        if result is not None:
            return result
    refuse_unsolvable(problem)
    epsilon, log_delta = problem.budget
    try:
        value = search(problem)
    except Infeasible as error:
        raise _unreachable(problem, error) from None
    if bound.lower and not problem.exact:
        value = _outside(problem, value)
    value, achieved, reached = _nudged(problem, value, epsilon, log_delta)
    fields = conversion_fields(achieved, reached, epsilon)
    details = {
        **(fields.pop("details", None) or {}),
        "achieved": {"epsilon": reached.value},
        **range_of(problem, value),
    }
    if unbounded(value, problem.direction) and not _has_tiny_units(problem):
        details["any"] = True
    elif NOISE_SCALES.get(unknown) is Noise.GAUSSIAN and (multiplier := run.multiplier_at(value)) is not None:
        details["noise_multiplier"] = multiplier
    return problem.row(unknown, value, **{**question.budget, **fields}, details=details)


def as_multiplier(solution: Result, run: Run) -> Result:
    """Return the noise multiplier that is a solution where this noise_std is one.

    Raises:
        SpecError: it does not follow from noise_std.
    """
    if run.noise is not Noise.GAUSSIAN:
        raise SpecError("the noise multiplier is of Gaussian noise", "solve for laplace_scale")
    value = run.multiplier_at(solution.value, rounded_up=solution.kind != Kind.LOWER)
    if value is None:
        raise SpecError(
            "the noise multiplier is noise_std x batch_size / lipschitz, and one of these is not known",
            "give --lipschitz and --batch-size (all records: --records), or solve for noise_std",
        )
    details = {**(solution.details or {})}
    details.pop("noise_multiplier", None)
    return solution._replace(quantity="noise_multiplier", value=value, details=details)


def refuse_unsolvable(problem: Problem) -> None:
    """Raise NotApplicable for a bound that cannot be solved for the parameter."""
    bound, unmet = problem.bound, problem.unmet
    if problem.exact and bound.slow and unmet:
        raise NotApplicable("demands what is not promised: " + "; ".join(unmet), "promise it")
    if bound.kind == Kind.ASYMPTOTIC:
        raise NotApplicable("is a limit, which nothing is solved with", "ask for epsilon or delta to see it")
    if bound.kind == Kind.HEURISTIC:
        raise NotApplicable(
            "is a heuristic, by which no run is chosen", "ask for epsilon or delta to see it beside the guarantees"
        )
    if problem.unknown in bound.not_monotone_in:
        raise NotApplicable(
            f"is not known to be monotone in {problem.unknown}",
            f"try values of {PARAMETERS[problem.unknown].flag} in a sweep",
        )


def _nudged(problem: Problem, value: float, epsilon: float, log_delta: float) -> tuple[float, Guarantee, Answer]:
    """Return a value next to this one that meets the budget when evaluated, with its guarantee and its epsilon.

    A sum of many terms is monotone only up to rounding, so the value found may just miss the budget. Slow bounds are
    not evaluated after steps that are too short to make up for the missing epsilon.

    Raises:
        Infeasible: there is none.
    """
    step = UNIT * (FINE if problem.bound.slow else 4.0) * (1.0 if problem.direction.more_is_private else -1.0)
    achieved = problem.guarantee_at(value)
    reached = achieved.epsilon(log_delta)
    missing = reached.value / epsilon - 1.0 if problem.bound.slow and 0.0 < epsilon < reached.value else 0.0
    enough = missing / _STEEPEST if missing < _STEEPEST * UNIT * FINE * 4.0 ** (NUDGES - 1) else 0.0
    for power in range(0 if problem.exact or problem.bound.lower else NUDGES):
        if reached.value <= epsilon:
            break
        value *= 1.0 + 4.0**power * step
        if 4.0**power * abs(step) < enough:
            continue
        achieved = problem.guarantee_at(value)
        reached = achieved.epsilon(log_delta)
    if reached.value > epsilon and not (problem.exact or problem.bound.lower):
        raise Infeasible("no value was found that meets the budget", epsilon=reached.value)
    return value, achieved, reached


def _independent(problem: Problem) -> Result | None:
    """Return the result of a bound that does not take the unknown: any value meets the budget, or none does.

    None where the unknown still matters, through a parameter that follows from it.

    Raises:
        NotApplicable: the bound is no guarantee, or the unknown is an integer.
        Infeasible: the bound misses the budget whatever the unknown is.
    """
    bound, question, unknown, direction = problem.bound, problem.question, problem.unknown, problem.direction
    if direction.integer or not bound.guarantee or problem.unmet:
        raise NotApplicable(f"does not depend on {unknown}", f"solve for another parameter than {unknown}")
    log_delta = question.safe_log_delta
    value = direction.low if direction.more_is_private else direction.high
    achieved = problem.guarantee_at(value)
    reached = achieved.epsilon(log_delta)
    if reached.value > question.safe_epsilon:
        if problem.guarantee_at(start_of(problem)).epsilon(log_delta).value < reached.value:
            return None
        asked, least = shown_apart(question.epsilon or 0.0, reached.value)
        raise Infeasible(
            f"no {unknown} meets epsilon = {asked} at this delta: epsilon is {least} for any",
            "allow a larger epsilon or delta, or more noise",
            epsilon=reached.value,
        )
    fields = conversion_fields(achieved, reached, question.safe_epsilon)
    limits = {} if holds_at(problem, direction.high) else range_of(problem, value)
    details = {**(fields.pop("details", None) or {}), "achieved": {"epsilon": reached.value}, **limits, "any": True}
    return problem.row(unknown, value, **{**question.budget, **fields}, details=details)


def _has_tiny_units(problem: Problem) -> bool:
    """Return whether gradients are so short that even the least noise searched may be too little."""
    lipschitz = problem.run.value("lipschitz") or 1.0
    return problem.unknown in NOISE_SCALES and lipschitz < 1e-100


def range_of(problem: Problem, value: float) -> dict[str, Any]:
    """Return the detail ``holds``: the range of values that meet the budget, unless all beyond the solution do.

    Steps longer than 2/(smoothness + strong_convexity) contract less again. A batch size is found among the divisors of
    the records. Another one may leave a short batch, whose records weigh more, so the result covers this value alone.
    The same goes for bands with sampling: privacy is not proved to be monotone in them.
    """
    if (alone := _ALONE.get(problem.unknown)) and alone(problem.run):
        return {"holds": {"from": value, "to": value}}
    if problem.unknown not in _LIMITED_BY_CURVATURE or not problem.run.smoothness:
        return {}
    if problem.unknown == "strong_convexity":
        return {"holds": {"from": value, "to": problem.run.smoothness, "end": "smoothness"}}
    smoothness, least = _curvatures(problem.run)
    of = "strong_convexity" if problem.run.strong_convexity else "regularisation"
    name = f"2/(smoothness + {of})" if least else "2/smoothness"
    return {"holds": {"from": value, "to": max(value, two_over(smoothness, least)), "end": name}}


_ALONE: dict[str, Callable[[Run], bool]] = {
    "batch_size": lambda run: True,
    "bands": lambda run: run.sampling is not None,
}
"""Parameter -> whether a solution for a run covers this value alone, and not its neighbours."""


def holds_at(problem: Problem, value: float) -> bool:
    """Return whether a bound that does not take the unknown applies to runs with this value of it."""
    try:
        problem.guarantee_at(value)
    except DpcalcError:
        return False
    return True


def _unreachable(problem: Problem, error: Infeasible) -> Infeasible:
    """Return the refusal with the best epsilon that the parameter can reach."""
    if error.reached is None:
        return error
    question, unknown = problem.question, problem.unknown
    guarantee = problem.guarantee_at(error.reached)
    if isinstance(guarantee, Profile) and problem.bound.slow:
        reached = _epsilon_beyond(question.safe_epsilon, guarantee, question.safe_log_delta)
    else:
        reached = guarantee.epsilon(question.safe_log_delta).value
    asked, least = shown_apart(question.epsilon or 0.0, reached)
    return Infeasible(
        f"no {unknown} meets epsilon = {asked} at this delta: at {unknown} = {error.reached:g} epsilon is {least}",
        "allow a larger epsilon or delta, or more noise",
        epsilon=reached,
    )


def _epsilon_beyond(missed: float, profile: Profile, log_delta: float) -> float:
    """Return slightly more than the epsilon at ln delta, which is above ``missed``; inf if above 1e300."""
    if profile.hints.budget is not None:
        return profile.asked((), ROUGH).epsilon(log_delta).value

    def excess(epsilon: float) -> float:
        # Where delta ends in a step, bisection works best, and clipping leads to it.
        return min(1.0, max(-1.0, profile.excess(epsilon, log_delta)))

    low, high = missed, max(1.0, _STRIDE * missed)
    while excess(high) > 0.0:
        low, high = high, _STRIDE * high
        if high > 1e300:
            return math.inf
    # The search goes down: evaluations end early where delta is far below the budget, and take long where it is above.
    while high / _STRIDE > max(low, _SMALLEST) and excess(high / _STRIDE) <= 0.0:
        high /= _STRIDE
    return least(excess, max(low, high / _STRIDE), high, ulps=ROUGH)


def search(problem: Problem) -> float:
    """Return the cheapest value of the unknown that meets the budget, or one next to it.

    Raises:
        Infeasible: there is none.
    """
    direction, unknown = problem.direction, problem.unknown
    guess = _guess(problem)
    if direction.integer:
        return search_whole(problem, guess, _rough(problem))
    if guess is not None:
        guess = _by_normal_laws(problem, min(max(guess, direction.low), direction.high))
        better = functools.partial(_better_guess, problem, guess)
        return near(problem.excess, direction, guess, COARSE, better, _rough(problem), _width(problem, guess))
    start = start_of(problem)
    if unknown in _LIMITED_BY_CURVATURE:
        return extreme(problem.excess, direction._replace(high=_longest(problem)), start)
    return extreme(problem.excess, direction, start, problem.width)


def _by_normal_laws(problem: Problem, guess: float) -> float:
    """Return a better guess where this one is far off, as when hidden iterates cost far less than their composition.

    A normal approximation of the loss shows on which side the solution is, in a tenth of the time of an answer.
    """
    epsilon, log_delta = problem.budget
    direction = problem.direction

    def likely(value: float) -> float:
        guarantee = problem.guarantee_at(value)
        return guarantee.likely_excess(epsilon, log_delta) if isinstance(guarantee, Composition) else 0.0

    missed = likely(guess) if epsilon > 0.0 else 0.0
    if abs(missed) < _OFF:
        return guess
    stride = 2.0 if (missed > 0.0) == direction.more_is_private else 0.5
    other = guess
    while likely(other) * missed > 0.0:
        guess, other = other, other * stride
        if not direction.low <= other <= direction.high:
            return guess
    for _ in range(_HALVINGS):
        middle = math.sqrt(guess * other)
        guess, other = (middle, other) if likely(middle) * missed > 0.0 else (guess, middle)
    return math.sqrt(guess * other)


def likely_noise_std(bound: Theorem, run: Run, question: Question) -> float | None:
    """Return an estimate of the noise_std with which a composition of sampled steps meets a budget, or None.

    It composes no privacy loss distribution, so it is advice, not a guarantee; it takes a hundredth of the time of a
    solution. It depends on the run and the budget alone, which are public.
    """
    problem = Problem(bound, run, question, "noise_std")
    if not problem.takes or bound.gives is not Composition or not (question.epsilon and question.log_delta):
        return None
    epsilon, log_delta = problem.budget

    def rough(value: float) -> float:
        return min(_STEEP, max(-_STEEP, problem.guarantee_at(value).likely_excess(epsilon, log_delta)))

    try:
        guess = _guess(problem)
        if guess is None:
            return None
        begun = by_rough_secants(rough, problem.direction, guess, functools.partial(_better_guess, problem, guess))
    except DpcalcError:
        return None
    return guess if begun is None else begun[0]


def _width(problem: Problem, guess: float) -> float | None:
    """Return the relative accuracy of secants; None where the bound is smooth in the unknown."""
    if problem.bound.gives is not Composition:
        return None
    guarantee = problem.guarantee_at(guess)
    return _ROUNDED if isinstance(guarantee, Composition) and callable(guarantee.parts) else None


def _rough(problem: Problem) -> Callable[[float], float] | None:
    """Return the approximate excess of a composition, from a coarse lattice; None where epsilon is 0."""
    epsilon, log_delta = problem.budget
    if not epsilon > 0.0:
        return None

    def rough(value: float) -> float:
        return problem.guarantee_at(value).rough_excess(epsilon, log_delta)

    return rough


def _better_guess(problem: Problem, guess: float, excess: float) -> float:
    """Return a better guess, given the excess of ln delta at this one.

    The estimator is assumed to err by the same factor at the delta that the guess reaches. Where that fails, the guess
    moves by 1% toward the solution.
    """
    log_delta = problem.question.safe_log_delta + excess
    reached = _guess(problem, log_delta) if abs(excess) < _FAR and log_delta < -1e-3 else None
    if reached is not None and reached != guess and guess / 2.0 < reached < 2.0 * guess:
        return guess * guess / reached
    return guess * (1.01 if (excess > 0.0) == problem.direction.more_is_private else 1.0 / 1.01)


def _guess(problem: Problem, log_delta: float | None = None) -> float | None:
    """Return an approximate solution for sampled steps, whose composition is costly; None where there is none."""
    run, question = problem.run, problem.question
    log_delta = question.safe_log_delta if log_delta is None else log_delta
    if run.algorithm.clipped and problem.bound.gives is Composition:
        from dpcalc.theorems.sampled.pairs import likely

        return likely(run, problem.unknown, epsilon=question.safe_epsilon, log_delta=log_delta)
    names = ("records", "batch_size", "steps", "lipschitz")
    values = {name: value for name in names if (value := run.value(name)) is not None}
    sampled = run.algorithm.order is Order.SAMPLE and len(values) == len(names)
    if NOISE_SCALES.get(problem.unknown) is not Noise.GAUSSIAN or problem.bound.gives is not Composition or not sampled:
        return None
    if not 1e-100 < values["lipschitz"] < 1e100:  # squares of the noise would be out of range
        return None
    from dpcalc.theorems.sampled.noisy_sgd import likely_noise_std

    guess = likely_noise_std(**values, epsilon=question.safe_epsilon, log_delta=log_delta)
    return guess if 1e-100 < guess < 1e100 else None


def _outside(problem: Problem, value: float) -> float:
    """Return a value next to the solution of a lower bound that misses the budget.

    A lower bound shows that nothing short of this value is enough; the solution itself meets the budget.

    Raises:
        NotApplicable: there is no such value in the range.
    """
    direction = problem.direction
    toward = -1 if direction.more_is_private else 1
    for doublings in range(8):
        rank = ordinal(value) + toward * (problem.width << doublings)
        if rank < ordinal(direction.low) or rank > ordinal(direction.high):
            break
        if problem.excess(from_ordinal(rank)) > 0.0:
            return from_ordinal(rank)
    raise NotApplicable("rules out no value of the parameter here", "leave it")


def start_of(problem: Problem) -> float:
    """Return a value to start bracketing from."""
    if problem.unknown in _LIMITED_BY_CURVATURE:
        return min(1.0, _longest(problem))
    return float(problem.run.sensitivity or 1.0)


def _longest(problem: Problem) -> float:
    """Return the largest value worth trying: the smoothness, or the step size beyond which steps contract less."""
    if problem.unknown == "strong_convexity":
        return problem.run.smoothness or 1.0
    curvature = sum(_curvatures(problem.run))
    return 2.0 / curvature * (1.0 - 4.0 * UNIT) if curvature else problem.direction.high


def _curvatures(run: Run) -> tuple[float, float]:
    """Return the largest and the least curvature of the losses; a regulariser of clipped gradients adds to both."""
    least = max(run.strong_convexity or 0.0, run.regularisation or 0.0)
    return max(run.smoothness or 0.0, least), least
