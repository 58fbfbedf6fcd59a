"""Whether the noise on a mean gradient looks like a noise multiplier that was typed under the wrong name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpcalc.engine.answer import answer
from dpcalc.engine.search import DIRECTIONS
from dpcalc.errors import DpcalcError
from dpcalc.model.algorithm import Order
from dpcalc.model.choices import Sampling
from dpcalc.model.numbers import plain
from dpcalc.model.quantities import Quantity
from dpcalc.theorems.record import for_algorithm

if TYPE_CHECKING:
    from dpcalc.engine.improvements import Asked
    from dpcalc.model.run import Run
    from dpcalc.report import Result

_LEAST_TYPED, _USUAL_TYPED = 0.1, 0.3
"""Libraries are hardly run with a multiplier below the second, and not below the first: at 0.1 one step has an epsilon
of more than 50."""

_LEAST, _MOST_OF_BATCHES = 10.0, 50.0
"""Multipliers that some runs have, and that no run on batches has but one of a great many steps."""

_LEAST_MU = 0.02
"""Whoever sees all iterates of a run with less than that has an epsilon below a tenth."""


def misread_noise(asked: Asked, *, told: bool) -> tuple[str, ...]:
    """Return a warning where noise_std is so large that a noise multiplier may have been meant; else nothing.

    Args:
        asked: the question and its answer.
        told: whether to say what the other reading gives, which asks the question a second time.
    """
    run = asked.run
    std, multiplier = run.noise_std, run.noise_multiplier
    if std is None or multiplier is None or not run.typed("noise_std") or not _is_suspicious(run, std, multiplier):
        return ()
    value = f": {_other_answer(asked, std)}" if told else ""
    return (
        f"noise_std {plain(std)} is on the mean gradient, where it is noise multiplier {multiplier:.4g}, far more "
        f"than usual; if {plain(std)} is the noise multiplier of a library, say --noise-multiplier "
        f"{plain(std)}{value}",
    )


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


def _other_answer(asked: Asked, multiplier: float) -> str:
    """Return the answer in words where the number that was typed is the noise multiplier."""
    given = {name: value for name, value in asked.given.items() if name != "noise_std"}
    try:
        run = asked._replace(given=given).changed({"noise_multiplier": multiplier})
        bounds = for_algorithm(run.algorithm.name, run.algorithm.families)
        proved = [bound for bound in bounds if bound.guarantee and not bound.unpromised(run)]
        found = answer(run, asked.question, proved).best
    except DpcalcError:
        found = None
    return "no guarantee is known then" if found is None else _words(found)


def _words(found: Result) -> str:
    if found.quantity == Quantity.DELTA and found.log_delta is not None and found.log_delta < -690.0:
        return "delta would be below 1e-299"
    if found.quantity in DIRECTIONS:
        return f"{found.quantity} would be {found.value:.4g}"
    return f"{found.quantity} would be {found.value * (1.0 + 5e-4):.4g}"
