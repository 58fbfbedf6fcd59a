"""Solving for a parameter of the run, bound by bound, so that an attacker's success stays within stated targets.

Each bound is solved by the upper bounds on risk of `dpcalc.notions.trade_off`. The returned value was evaluated itself,
so a search can err on the safe side only.

`floor_near` and `refuse_unless_better` compare slow bounds with the best guarantee, in few evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dpcalc.engine.evaluate import FINE, Application, guarantee_of
from dpcalc.engine.solving.budget import (
    NUDGES,
    holds_at,
    range_of,
    refuse_unsolvable,
    search,
    start_of,
)
from dpcalc.engine.solving.problem import Problem
from dpcalc.engine.solving.search import unbounded
from dpcalc.errors import Disproved, Infeasible, NotApplicable
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.quantities import Quantity
from dpcalc.model.question import Target
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Guarantee
from dpcalc.notions.trade_off import FEW_SECTIONS
from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.normal import quantile
from dpcalc.report import Result
from dpcalc.version import __version__


def achieved(guarantee: Guarantee, targets: Sequence[Target], *, rough: bool = False) -> dict[str, float]:
    """Return an upper bound on the risk of each target; ``rough`` bounds are slightly larger, and cheaper.

    Raises:
        NotApplicable: the guarantee has no trade-off curve.
    """
    if not guarantee.has_curve:
        raise NotApplicable("has no curve from which a risk follows", "solve with epsilon and delta")
    curve = guarantee.trade_off(FEW_SECTIONS if rough else None)
    return {
        target.key: curve.advantage() if target.at is None else getattr(curve, target.name)(target.at)
        for target in targets
    }


def excess_over(guarantee: Guarantee, targets: Sequence[Target], *, rough: bool = False) -> float:
    """Return a number that is <= 0 exactly where the guarantee keeps all targets.

    Each limit is lowered by one ulp, since its double may be above the decimal that was typed.
    """
    reached = achieved(guarantee, targets, rough=rough)
    return max(_excess(reached[target.key], math.nextafter(target.limit, 0.0)) for target in targets)


def _excess(value: float, limit: float) -> float:
    if value <= limit:
        return -min(100.0, math.log(limit / value)) if value > 0.0 else -100.0
    return max(math.log(value / limit), 1e-300)


def like_budget(targets: Sequence[Target]) -> tuple[float, float]:
    """Return an (epsilon, ln delta) about as strict as the targets under Gaussian privacy, to start a search."""
    mu = max(1e-9, min(_mu_of(target) for target in targets))
    return mu, gaussian.log_delta(mu=mu, epsilon=mu)


def _mu_of(target: Target) -> float:
    """Return approximately the largest mu that keeps a target; 0 where none does."""
    if target.name == "success":
        assert target.at is not None
        even = max(target.at, 1.0 - target.at)
        gained = (target.limit - even) / (1.0 - even)
        epsilon = math.log(even / (1.0 - even))
        return gaussian.largest_mu(epsilon=epsilon, log_delta_target=math.log(gained)) if 0.0 < gained < 1.0 else 0.0
    if target.at is None:
        return -2.0 * quantile(math.log(0.5 * (1.0 + target.limit)), upwards=True)
    return quantile(math.log(target.at), upwards=True) - quantile(math.log(target.limit), upwards=True)


class _RiskProblem(Problem):
    """A problem whose budget is a list of targets for an attacker's success."""

    def _excess(self, value: float) -> float:
        return excess_over(self.guarantee_at(value), self.question.targets, rough=True)


def solve_for_risk(asked: Application, unknown: str) -> Result:
    """Return the value of the unknown with which the bound keeps the targets.

    Raises:
        NotApplicable: the bound is no guarantee of this run, has no curve, or is not monotone in the parameter.
        Infeasible: no value keeps the targets.
    """
    bound, run, question = asked.bound, asked.run, asked.question
    if not bound.guarantee or asked.unmet:
        raise NotApplicable("is no guarantee of this run", "promise what it demands, or ask for epsilon to see it")
    like_epsilon, like_log_delta = like_budget(question.targets)
    problem = _RiskProblem(bound, run, question._replace(epsilon=like_epsilon, log_delta=like_log_delta), unknown)
    refuse_unsolvable(problem)

    details: dict[str, Any] = {"targets": [target._asdict() for target in question.targets]}
    value = None if problem.takes else _for_any(problem)
    if value is not None:
        details |= {"any": True, **({} if holds_at(problem, problem.direction.high) else range_of(problem, value))}
    else:
        value = _searched(problem)
        details |= range_of(problem, value)
        if unbounded(value, problem.direction):
            details["any"] = True
        elif unknown == "noise_std" and (multiplier := run.multiplier_at(value)) is not None:
            details["noise_multiplier"] = multiplier
    reached = problem.guarantee_at(value)
    details["achieved"] = achieved(reached, question.targets)
    return problem.row(unknown, value, mu=reached.mu, details=details)


def _for_any(problem: Problem) -> float | None:
    """Return the least private value, for a bound that does not take the unknown and keeps the targets even there.

    None where the unknown still matters, through a parameter that follows from it.

    Raises:
        NotApplicable: the unknown is an integer, such as the number of records.
        Infeasible: the bound misses the targets whatever the unknown is.
    """
    unknown, direction = problem.unknown, problem.direction
    if direction.integer:
        raise NotApplicable(f"does not depend on {unknown}", f"solve for another parameter than {unknown}")
    value = direction.low if direction.more_is_private else direction.high
    if problem.excess(value) <= 0.0:
        return value
    if problem.excess(start_of(problem)) < problem.excess(value):
        return None
    raise Infeasible(f"no {unknown} gives {_missed(problem, value)} for any", _HINT)


def _searched(problem: Problem) -> float:
    """Return the cheapest value of the unknown that keeps the targets when evaluated.

    Raises:
        Infeasible: there is none.
    """
    try:
        value = _nudged_within(problem, search(problem))
    except Infeasible as error:
        if error.reached is None:
            raise
        missed = _missed(problem, error.reached)
        raise Infeasible(f"no {problem.unknown} gives {missed} at {error.reached:g}", _HINT) from None
    return int(value) if problem.exact else value


_HINT = "more noise, or a larger limit"


def _missed(problem: Problem, value: float) -> str:
    """Return the first target, and the risk that a value of the unknown leaves."""
    target = problem.question.targets[0]
    return f"{target.text}: it is {achieved(problem.guarantee_at(value), [target])[target.key]:.6g}"


def _nudged_within(problem: Problem, value: float) -> float:
    """Return this value, or one next to it, that keeps the targets when evaluated.

    Raises:
        Infeasible: there is none.
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


COMPARABLE = frozenset({"epsilon", *NOISE_SCALES})
"""The unknowns for which a slow bound is compared with the best guarantee."""

_SHARES, _HALVINGS = (0.999, 0.97, 0.9, 0.7, 0.4, 0.1, 0.01), 4
_USUAL_POWER, _LEAST_POWER = 1.5, 0.1
_SURELY, _UNSURE = 0.998, 0.2  # a secant errs by at most 0.2 of its log distance to a share ruled out, and 0.2%
_BEYOND = 1.001  # a lower bound above this multiple of the best guarantee contradicts it
_WORTHWHILE = 0.99  # a gain of 1%
_CLEARLY = 0.8  # an estimate this far below the worthwhile epsilon needs no evaluation


def floor_near(guarantee: Result, asked: Application, unknown: str) -> Result:
    """Return a value just below the best guarantee that a slow lower bound rules out, found in few evaluations.

    Raises:
        Disproved: the bound rules out the guarantee itself.
        NotApplicable: the bound rules out no value within a factor of 100.
    """
    best, bound, run, question = guarantee.value, asked.bound, asked.run, asked.question
    epsilon, log_delta = asked.budget

    def excess(share: float) -> float:
        """Return the logarithm of the ratio of -ln delta to that asked for; below 0 where the share is ruled out."""
        if unknown == Quantity.EPSILON:
            value = guarantee_of(bound, run).log_delta(share * best).value
        else:
            value = guarantee_of(bound, run.replacing(**{unknown: share * best})).log_delta(epsilon).value
        if not (value < 0.0 and log_delta < 0.0):
            return -math.inf if value > log_delta else math.inf
        return (-1.0 if value > log_delta else 1.0) * abs(math.log(value / log_delta))

    if excess(_BEYOND) < 0.0:
        if bound.differs_alone(run.strong_convexity):
            raise NotApplicable(
                "rules out the best guarantee, which uses more than how far two gradients are apart", "leave it"
            )
        raise Disproved(f"{guarantee.bound} is below what {bound.id} rules out", _contradiction(guarantee, asked))
    low = _largest_ruled_out(excess)
    budget = {**question.budget, "epsilon": low * best} if unknown == Quantity.EPSILON else question.budget
    return asked.row(unknown, low * best, conversion="profile", **budget)


def _largest_ruled_out(excess: Callable[[float], float]) -> float:
    """Return the largest share of a grid that is ruled out; it was evaluated itself.

    Secant steps search for it: -ln delta is roughly proportional to a power of the share.

    Raises:
        NotApplicable: none is ruled out.
    """
    above, beyond = _SHARES[0], excess(_SHARES[0])
    if beyond < 0.0:
        return above
    below, last, power = 0.0, above, _USUAL_POWER
    while True:
        guess, by_secant = last * math.exp(-beyond / power) if math.isfinite(beyond) else math.nan, True
        if not below < guess < above:
            guess, by_secant = math.sqrt(max(below, 0.5 * _SHARES[-1]) * above), False
        low, enough = _neighbours(guess)
        asked = low if low > below else enough
        if low <= below and (enough >= above or (by_secant and guess < enough * (below / guess) ** _UNSURE * _SURELY)):
            return below
        beyond_asked = excess(asked)
        if math.isfinite(beyond_asked) and math.isfinite(beyond) and beyond_asked != beyond:
            power = max(_LEAST_POWER, (beyond_asked - beyond) / math.log(asked / last))
        last, beyond = asked, beyond_asked
        if beyond_asked < 0.0:
            below = asked
        elif asked == _SHARES[-1]:
            raise NotApplicable("says nothing within a factor 100 of the best guarantee", "leave it")
        else:
            above = asked


def _neighbours(share: float) -> tuple[float, float]:
    """Return the two neighbours on the grid that enclose the share, or the two smallest if it is below all."""
    place = next((place for place, low in enumerate(_SHARES) if low <= share), len(_SHARES) - 1)
    low, enough = _SHARES[place], _SHARES[max(place - 1, 0)]
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * enough)
        low, enough = (middle, enough) if middle <= share else (low, middle)
    return low, enough


def _contradiction(guarantee: Result, asked: Application) -> str:
    """Return the report of a guarantee and a lower bound that contradict each other."""
    import platform

    run, question = asked.run, asked.question
    inputs = ", ".join(f"{name}={value!r}" for name, value in run.values.items())
    return "\n".join(
        (
            f"dpcalc {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"algorithm: {run.algorithm.name}",
            f"inputs: {inputs}",
            f"bound: {guarantee.bound}, {guarantee.quantity} = {guarantee.value!r}, epsilon = {question.epsilon!r}, "
            f"log_delta = {question.log_delta!r}",
            f"lower value: {asked.bound.id} rules out {_BEYOND} times that",
        )
    )


def refuse_unless_better(asked: Application, unknown: str, results: Sequence[Result]) -> None:
    """Raise NotApplicable unless a bound would beat the best guarantee by 1% if its unmet assumptions were promised."""
    guaranteed = [result.value for result in results if result.guarantee]
    if not guaranteed or unknown not in COMPARABLE:
        return
    run, question = asked.run, asked.question
    if unknown == Quantity.EPSILON:
        epsilon = _WORTHWHILE * min(guaranteed)
    else:
        run, epsilon = run.replacing(**{unknown: _WORTHWHILE * min(guaranteed)}), question.safe_epsilon
    guarantee = guarantee_of(asked.bound, run, question.orders)
    likely = guarantee.hints.likely if unknown == Quantity.EPSILON else None
    if likely is not None and likely(question.safe_log_delta) < _CLEARLY * epsilon:
        return
    if guarantee.excess(epsilon, question.safe_log_delta) > 0.0:
        raise NotApplicable(
            f"demands what is not promised ({'; '.join(asked.unmet)}), and would gain less than 1%",
            "leave it",
        )
