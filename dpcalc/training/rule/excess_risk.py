"""The excess risk of an executed run."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from dpcalc.engine.ask import ask
from dpcalc.errors import DpcalcError
from dpcalc.model.quantities import Quantity
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.report import Result
from dpcalc.training.rule.draft import Draft


class RiskBound(NamedTuple):
    """A bound on the excess risk that covers exactly the run that is executed.

    Attributes:
        bound: its id.
        quantity: the excess risk on the records, or under the distribution that they are drawn from.
        value: the bound.
        assumes: its assumptions.
        vacuous: whether every model meets it.
    """

    bound: str
    quantity: str
    value: float
    assumes: tuple[str, ...]
    vacuous: bool


def least_risk(draft: Draft, run: Run, best: Result, dimension: int) -> RiskBound | None:
    """Return the least bound on the excess risk that covers exactly this run, or None.

    Args:
        draft, run: the executed run.
        best: its best guarantee.
        dimension: of the data.
    """
    if draft.clip is not None:
        return None  # the theorems on the risk are about unclipped gradients
    described = Draft.of(
        **draft.described_loss, algorithm=draft["algorithm"], records=draft["records"], dimension=dimension,
        step_size=run.step_size, noise_std=run.noise_std, steps=draft["records"] if run.steps is None else run.steps,
    )  # fmt: skip
    budgets = [Question()]
    if best.log_delta is not None and best.epsilon is not None:
        budgets.append(Question(best.epsilon, best.delta, best.log_delta))
    results: list[Result] = []
    for budget in budgets:
        with contextlib.suppress(DpcalcError):
            results += ask("utility", described, budget).results
    run_of_row = ("noise_std", "step_size", "steps")
    same = [
        result for result in results
        if result.guarantee and result.quantity != Quantity.SMOOTHING_ERROR
        and all((result.details or {}).get(name) == described.get(name) for name in run_of_row)
    ]  # fmt: skip
    if not same:
        return None
    least = min(same, key=lambda result: result.value)
    vacuous = bool((least.details or {}).get("vacuous"))
    return RiskBound(least.bound, least.quantity, least.value, least.assumes, vacuous)
