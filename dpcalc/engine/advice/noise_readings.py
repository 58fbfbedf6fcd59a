"""Whether the noise on a mean gradient looks like a noise multiplier that was typed under the wrong name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpcalc.engine.answer import answer
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import DpcalcError, GateRefused
from dpcalc.model.algorithm import Order
from dpcalc.model.choices import Sampling
from dpcalc.model.numbers import plain
from dpcalc.model.quantities import Quantity
from dpcalc.theorems.record import for_algorithm

if TYPE_CHECKING:
    from dpcalc.engine.advice.improvements import Asked
    from dpcalc.model.run import Run
    from dpcalc.report import Case, Result

_LEAST_TYPED, _USUAL_TYPED = 0.1, 0.3
"""Libraries are hardly run with a multiplier below the second, and not below the first: at 0.1 one step has an epsilon
of more than 50."""

_LEAST, _MOST_OF_BATCHES = 10.0, 50.0
"""Multipliers that some runs have, and that no run on batches has but one of a great many steps."""

_LEAST_MU = 0.02
"""Whoever sees all iterates of a run with less than that has an epsilon below a tenth."""


ON_MEAN = "noise_std is on the mean gradient"
"""What a recipe writes under ``accept:`` where that is meant."""

_AS_MULTIPLIER = "is on the mean gradient, where it is noise multiplier"


def misread_noise(asked: Asked, *, both: bool) -> tuple[str, ...]:
    """Return a warning where noise_std is so large that a noise multiplier may have been meant; else nothing.

    Args:
        asked: the question and its answer.
        told: whether to say what the other reading gives, which asks the question a second time.
    """
    run, std = asked.run, asked.run.noise_std
    if std is None or not is_misread(run):
        return ()
    return (words(run, asked.best, _other_answer(asked, std)) if both else _words(run, asked.best),)


def is_misread(run: Run) -> bool:
    """Return whether the noise was given as noise_std, and may well be a noise multiplier."""
    std, multiplier = run.noise_std, run.noise_multiplier
    if std is None or multiplier is None or not run.typed("noise_std"):
        return False
    return _is_suspicious(run, std, multiplier)


def words(run: Run, answer: Result, other: Result | None) -> str:
    """Return the two readings of a noise in words.

    Args:
        run: with the noise as it was given.
        found: the answer as it was given.
        other: the answer where the number is the noise multiplier, if there is one.
    """
    return f"{_words(run, answer)}: {_value(other, 'would be') if other else 'no guarantee is known then'}"


def _words(run: Run, answer: Result) -> str:
    std = plain(run.noise_std or 0.0)
    return (
        f"noise_std {std} {_AS_MULTIPLIER} {run.noise_multiplier:.4g} ({_value(answer, 'is')}), far more than usual; "
        f"if {std} is the noise multiplier of a library, say --noise-multiplier {std}"
    )


def misread_of(case: Case) -> str | None:
    """Return the two readings of the noise of a case, where one of them may not be what was meant."""
    return next((text for text in case.warnings if _AS_MULTIPLIER in text), None)


def refuse_misread(case: Case) -> None:
    """Refuse a gate on a case whose noise has two readings.

    Raises:
        GateRefused: it has.
    """
    if text := misread_of(case):
        raise GateRefused(f"a gate needs one reading of the noise: {text}", "give the noise multiplier that is meant")


def _is_suspicious(run: Run, std: float, multiplier: float) -> bool:
    """Return whether the noise is that of hardly any run, and would be a usual one as a multiplier."""
    if std < _LEAST_TYPED or multiplier <= max(std, _LEAST):
        return False
    if _seen(run) / multiplier < _LEAST_MU:
        return True
    return std >= _USUAL_TYPED and multiplier > _MOST_OF_BATCHES and not _is_whole(run)


def _is_whole(run: Run) -> bool:
    """Return whether a step uses all records."""
    return run.algorithm.full_batch or run.sampling is Sampling.FULL


def _seen(run: Run) -> float:
    """Return about mu of the whole run at a noise multiplier of 1 or more, over it, were every iterate public."""
    if _is_whole(run):
        return math.sqrt(run.steps or 1)
    drawn = run.algorithm.order is Order.SAMPLE and run.sampling not in (Sampling.SHUFFLE, Sampling.BALLS_IN_BINS)
    if drawn and run.records is not None and run.batch_size is not None:
        return run.batch_size / run.records * math.sqrt(run.steps or 1)
    if run.epochs is None and run.steps is not None and run.records is not None and run.batch_size is not None:
        return math.sqrt(max(1.0, run.steps * run.batch_size / run.records))
    return math.sqrt(run.epochs or 1)


def _other_answer(asked: Asked, multiplier: float) -> Result | None:
    """Return the answer where the number that was typed is the noise multiplier."""
    given = {name: value for name, value in asked.given.items() if name != "noise_std"}
    try:
        run = asked._replace(given=given).changed({"noise_multiplier": multiplier})
        bounds = for_algorithm(run.algorithm.name, run.algorithm.families)
        proved = [bound for bound in bounds if bound.guarantee and not bound.unpromised(run)]
        return answer(run, asked.question, proved).best
    except DpcalcError:
        return None


def _value(result: Result, verb: str) -> str:
    if result.quantity == Quantity.DELTA and result.log_delta is not None and result.log_delta < -690.0:
        return f"delta {verb} below 1e-299"
    if result.quantity in DIRECTIONS:
        return f"{result.quantity} {verb} {result.value:.4g}"
    return f"{result.quantity} {verb} {result.value * (1.0 + 5e-4):.4g}"
