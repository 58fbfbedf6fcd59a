"""How far weights can get, whatever the records are: a run that might overflow on some of them is refused on all."""

from __future__ import annotations

import math

import numpy as np

from dpcalc.errors import SpecError
from dpcalc.model.loss import Loss
from dpcalc.training.run.plan import Plan

_WIDEST = 1e150  # the square of a norm is a double
_STEEPEST = 1e290  # of the gradients of all records together
_LARGEST_DRAW = 100.0  # no normal or exponential variable that a generator of doubles draws is larger


def refuse_overflow(plan: Plan, loss: Loss) -> None:
    """Refuse a run that might leave the range of doubles on some records.

    Without a projection a step takes w to (1 - eta lambda) w, moved by eta times a gradient and noise.

    Raises:
        SpecError: it might.
    """
    eta = float(np.max(plan.step_size))
    growth, gradient = max(1.0, abs(1.0 - eta * loss.regularisation)), _steepest(plan, loss)
    draw = _LARGEST_DRAW * plan.columns
    noise = 0.0 if plan.output_scale else draw * float(np.max(plan.scale))
    bounded = math.isfinite(plan.domain.radius)
    steps = 1 if bounded else plan.steps
    start = plan.domain.radius if bounded else 0.0
    furthest = start + steps * eta * (gradient + noise) + draw * plan.output_scale
    if not (
        steps * math.log(growth) + math.log(max(1.0, furthest)) < math.log(_WIDEST)
        and gradient * plan.records < _STEEPEST
    ):
        raise SpecError("the weights might overflow: nothing was trained", "use a smaller step size, or --radius")


def _steepest(plan: Plan, loss: Loss) -> float:
    """Return a bound on the gradients of single records: the clip, where they are clipped."""
    return loss.lipschitz if plan.clip is None else plan.clip
