"""How far rounding errors can move the iterates of a run that stays hidden, and how its outcome is rounded for that.

A step that brings no two points further apart passes an error on as it is: the errors of the steps add up. That needs a
smooth convex loss and steps of at most 2/smoothness.
"""

from __future__ import annotations

import math

import numpy as np

from dpcalc.errors import NotApplicable
from dpcalc.model.algorithm import Release
from dpcalc.model.loss import Loss
from dpcalc.training.exact_sums import grid_of
from dpcalc.training.plan import Plan
from dpcalc.training.rounding import LAWS, UNIT, Law, Rounding, drawn_error, output_miss, stretch
from dpcalc.training.single import lipschitz_of

_COMPOSITION = (
    "take --algorithm noisy-gd or noisy-sgd, whose accounting by composition lets every noisy sum be rounded; or a "
    "smooth --loss and --step-size <= 2/smoothness"
)


def output_rounding(plan: Plan, loss: Loss) -> Rounding:
    """Return how what a hidden run releases is rounded, and how likely it is that the rounding tells of an error.

    Args:
        plan: what is executed.
        loss: what is minimised.

    Raises:
        NotApplicable: a step may spread errors, or every iterate is released.
    """
    if plan.release is Release.STEP:
        raise NotApplicable("every iterate is released, and rounding is accounted for hidden ones", _COMPOSITION)
    law, laps = LAWS[plan.noise], plan.passes if plan.release is Release.PASS else 1  # type: ignore[index]
    error = _largest_error(plan, loss, law)
    scale = plan.output_scale or float(np.min(np.multiply(plan.step_size, plan.scale)))
    grid = grid_of(scale)
    rare = law.beyond * plan.columns * (1 if plan.output_scale else plan.steps)
    miss = laps * plan.columns * output_miss(plan.noise, error, scale, grid) + rare
    if laps > 1:  # the second release depends on where in its cell the first one lies
        return Rounding(miss, grid=grid, error=error)
    # Cell by cell, the mean error of draws in the tail is not enough.
    units, unlikely = drawn_error(plan.noise, float(plan.columns * (1 if plan.output_scale else plan.steps)))
    largest = plan.output_scale or float(np.max(np.multiply(plan.step_size, plan.scale)))
    log_factor, tail = stretch(plan.noise, plan.columns, (error + 2.0 * UNIT * units * largest) / grid, hidden=True)
    return Rounding(miss, log_factor, tail + unlikely, grid, error)


def _largest_error(plan: Plan, loss: Loss, law: Law) -> float:
    """Return a bound on the distance of a released vector from that of the algorithm on real numbers.

    With u = 2^-53, a step of a batch of b in d dimensions makes an error of less than (6 d + b + 64) u times the sum of
    |w|, the lengths of the gradient's and of the noise's step, and Y/B for labels: scores and norms (any order of
    summation) 3 d + 16, the projection 3 d + 22, the sum b + 3, slopes 16, the rest less than 7. Where
    gradients are clipped, the norm of a row and the cap that it gives add less than d + 8. For K classes d K stands for
    d: the scores of a class need d alone, which leaves 3 d (K - 1) for the softmax. Its sum and its quotient take K + 4
    of the 16 and of that, its differences of scores 2 (1 + sqrt(K)). The noise's own errors come to that. All is
    doubled, for terms of higher order. The projection of a model that a run goes on from counts as a step.
    """
    _refuse_spreading(plan, loss)
    eta, noisy = plan.step_size, np.multiply(plan.step_size, plan.scale)
    root, reach = math.sqrt(plan.columns), law.reach
    pull = np.multiply(eta, lipschitz_of(plan, loss))
    push = noisy * (reach * root)
    furthest = plan.domain.radius
    if not math.isfinite(furthest):
        furthest = plan.steps * float(np.mean(pull + push))
    labels = (1.0 if loss.label_bound is None else loss.label_bound) / loss.feature_bound
    clipped = 0.0 if plan.clip is None else plan.columns + 8.0  # the norm of a row, and the cap that it gives
    rounded = clipped + 6.0 * plan.columns + max(batch.size for batch in plan.batches) + 64.0
    drawn = (law.relative * reach + law.absolute) * root
    steps = 2.0 * UNIT * (rounded * (furthest + pull + push + labels) + drawn * noisy)
    error = (plan.steps + plan.started) * float(np.mean(steps)) * (1.0 + plan.steps * 4.0 * (plan.columns + 8) * UNIT)
    if plan.release is Release.AVERAGE:
        error += 2.0 * UNIT * (plan.steps + 4.0) * furthest
    if plan.output_scale:
        error += 2.0 * UNIT * plan.output_scale * (4.0 * reach * root + drawn)
    return error


def _refuse_spreading(plan: Plan, loss: Loss) -> None:
    """Refuse steps that may bring two points further apart.

    Raises:
        NotApplicable: a step may.
    """
    smoothness = loss.smoothness
    if plan.clip is not None and loss.scores > 2:
        raise NotApplicable(
            "clipped gradients of a softmax of more than two classes are those of no convex loss, and a step may "
            "spread rounding errors of iterates that stay hidden",
            "leave out --clip, or " + _COMPOSITION.partition(";")[0], parameters=("clip",),
        )  # fmt: skip
    if smoothness is None:
        raise NotApplicable(
            f"the slope of the {loss.name} loss jumps, so that rounding errors of iterates that stay hidden have no "
            "bound, and the low-order bits of what is released might tell of a record",
            _COMPOSITION, parameters=("loss",),
        )  # fmt: skip
    longest = float(np.max(plan.step_size))
    if not longest * smoothness <= 2.0:
        raise NotApplicable(
            f"steps longer than 2/smoothness = {2.0 / smoothness:.6g} spread rounding errors of iterates that stay "
            "hidden, and the low-order bits of what is released might tell of a record",
            _COMPOSITION, parameters=("step_size",),
        )  # fmt: skip
