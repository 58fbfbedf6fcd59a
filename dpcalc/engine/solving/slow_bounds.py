"""Bounds that take tens of milliseconds an evaluation: they are asked no more than the best guarantee makes useful."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpcalc.engine.evaluate import Application, guarantee_of
from dpcalc.errors import Disproved, NotApplicable
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.quantities import Quantity
from dpcalc.report import Result
from dpcalc.version import __version__

COMPARABLE = frozenset({"epsilon", *NOISE_SCALES})
"""The unknowns for which a slow bound is compared with the best guarantee."""

_SHARES, _HALVINGS = (0.999, 0.97, 0.9, 0.7, 0.4, 0.1, 0.01), 4
_USUAL_POWER, _LEAST_POWER = 1.5, 0.1
_SURELY, _UNSURE = 0.998, 0.2  # a share that is estimated is not farther off than so many times the way to it
_BEYOND = 1.001  # what nothing true rules out of the best guarantee
_WORTHWHILE = 0.99  # a gain of 1%
_CLEARLY = 0.8  # what is likely to be so much less than that need not be asked there


def floor_near(guarantee: Result, asked: Application, unknown: str) -> Result:
    """Return a value near below the best guarantee that a slow lower bound rules out, found in few steps.

    Raises:
        Disproved: it rules out the guarantee itself.
        NotApplicable: it rules out none within a factor 100.
    """
    best, bound, run, question = guarantee.value, asked.bound, asked.run, asked.question
    epsilon, log_delta = asked.budget

    def excess(share: float) -> float:
        """Return the logarithm of -ln delta over what it has to be: below 0 where the share is ruled out."""
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
    """Return the share of a grid that is ruled out, by its own evaluation, and the next one is not.

    Secants lead to it: -ln delta is about in proportion to a power of the share.

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
    """Return two neighbours of the grid, between which the share is; the first two where it is below both."""
    place = next((place for place, low in enumerate(_SHARES) if low <= share), len(_SHARES) - 1)
    low, enough = _SHARES[place], _SHARES[max(place - 1, 0)]
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * enough)
        low, enough = (middle, enough) if middle <= share else (low, middle)
    return low, enough


def _contradiction(guarantee: Result, asked: Application) -> str:
    """Return the report of a guarantee and a lower bound of which one is wrong."""
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
    """Raise NotApplicable unless a bound would better the best guarantee by 1%, if what it demands were promised."""
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
