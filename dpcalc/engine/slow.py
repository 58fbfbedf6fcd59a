"""Bounds that take tens of milliseconds an evaluation: they are asked no more than the best guarantee makes useful."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcalc.engine.evaluate import guarantee_of, result_of, safe_budget
from dpcalc.engine.question import Question
from dpcalc.engine.solve import excess_of
from dpcalc.errors import Disproved, NotApplicable
from dpcalc.model.quantities import Quantity
from dpcalc.model.run import NOISE_SCALES, Run
from dpcalc.notions.guarantee import Profile
from dpcalc.report import Result
from dpcalc.theorems.record import Theorem
from dpcalc.version import __version__

COMPARABLE = frozenset({"epsilon", *NOISE_SCALES})
"""The unknowns for which a slow bound is compared with the best guarantee."""

_SHARES, _HALVINGS = (0.999, 0.97, 0.9, 0.7, 0.4, 0.1, 0.01), 4
_BEYOND = 1.001  # what nothing true rules out of the best guarantee
_WORTHWHILE = 0.99  # a gain of 1%
_CLEARLY = 0.8  # what is likely to be so much less than that need not be asked there


def floor_near(guarantee: Result, bound: Theorem, run: Run, question: Question, unknown: str) -> Result:
    """Return a value near below the best guarantee that a slow lower bound rules out, found in few steps.

    Raises:
        Disproved: it rules out the guarantee itself.
        NotApplicable: it rules out none within a factor 100.
    """
    best = guarantee.value
    epsilon, log_delta = safe_budget(bound, question)

    def too_small(share: float) -> bool:
        if unknown == Quantity.EPSILON:
            return guarantee_of(bound, run).log_delta(share * best).value > log_delta
        changed = run.replacing(**{unknown: share * best})
        return guarantee_of(bound, changed).log_delta(epsilon).value > log_delta

    if too_small(_BEYOND):
        raise Disproved(
            f"{guarantee.bound} is below what {bound.id} rules out", _contradiction(guarantee, bound, run, question)
        )
    enough = 1.0
    for low in _SHARES:
        if too_small(low):
            break
        enough = low
    else:
        raise NotApplicable("says nothing within a factor 100 of the best guarantee", "leave it")
    for _ in range(_HALVINGS if low < _SHARES[0] else 0):
        middle = math.sqrt(low * enough)
        low, enough = (middle, enough) if too_small(middle) else (low, middle)
    budget = {**question.budget, "epsilon": low * best} if unknown == Quantity.EPSILON else question.budget
    return result_of(bound, run, unknown, low * best, conversion="profile", **budget)


def _contradiction(guarantee: Result, bound: Theorem, run: Run, question: Question) -> str:
    """Return the report of a guarantee and a lower bound of which one is wrong."""
    import platform

    inputs = ", ".join(f"{name}={value!r}" for name, value in run.values.items())
    return "\n".join(
        (
            f"dpcalc {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"algorithm: {run.algorithm.name}",
            f"inputs: {inputs}",
            f"bound: {guarantee.bound}, {guarantee.quantity} = {guarantee.value!r}, epsilon = {question.epsilon!r}, "
            f"log_delta = {question.log_delta!r}",
            f"lower value: {bound.id} rules out {_BEYOND} times that",
        )
    )


def refuse_unless_better(bound: Theorem, run: Run, question: Question, unknown: str, results: Sequence[Result]) -> None:
    """Raise NotApplicable unless a bound would better the best guarantee by 1%, if what it demands were promised."""
    guaranteed = [result.value for result in results if result.guarantee]
    if not guaranteed or unknown not in COMPARABLE:
        return
    if unknown == Quantity.EPSILON:
        epsilon = _WORTHWHILE * min(guaranteed)
    else:
        run, epsilon = run.replacing(**{unknown: _WORTHWHILE * min(guaranteed)}), question.safe_epsilon
    guarantee = guarantee_of(bound, run, question.orders)
    likely = guarantee.likely if isinstance(guarantee, Profile) and unknown == Quantity.EPSILON else None
    if likely is not None and likely(question.safe_log_delta) < _CLEARLY * epsilon:
        return
    if excess_of(guarantee, epsilon, question.safe_log_delta) > 0.0:
        raise NotApplicable(
            f"demands what is not promised ({'; '.join(bound.unpromised(run))}), and would gain less than 1%",
            "leave it",
        )
