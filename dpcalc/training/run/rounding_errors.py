"""How far rounding errors can move the iterates of a run that stays hidden, and how its outcome is rounded for that.

A step that brings no two points further apart passes an error on as it is: the errors of the steps add up. That needs a
smooth convex loss and steps of at most 2/smoothness.
"""

from __future__ import annotations

import math

import numpy as np

from dpcalc.errors import NotApplicable
from dpcalc.model.algorithm import Release
from dpcalc.model.choices import Noise
from dpcalc.model.loss import Loss
from dpcalc.numerics.floats import up
from dpcalc.training.run.capped import WIDEST, slope_error
from dpcalc.training.run.checks import lipschitz_of
from dpcalc.training.run.exact_sums import grid_of
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.rounding import (
    CAPPED_FUNCTIONS,
    LAWS,
    LOSS_FUNCTIONS,
    UNIT,
    Law,
    Rounding,
    drawn_error,
    inexact_slopes,
    output_miss,
    stretch,
)

_MOST_SHIFT = 0.01
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
    rare = 2.0 * law.beyond * plan.columns * (1 if plan.output_scale else plan.steps)  # of a draw, or a sum of them
    miss = laps * plan.columns * output_miss(plan.noise, error, scale, grid) + rare
    slopes = inexact_slopes(_shift(plan, loss)) if plan.capped else (0.0, 0.0)
    functions = CAPPED_FUNCTIONS if plan.capped else LOSS_FUNCTIONS.get(loss.name)
    if laps > 1:  # the second release depends on where in its cell the first one lies
        return Rounding(miss, grid=grid, error=error, slopes=slopes, functions=functions)
    # Cell by cell, the mean error of draws in the tail is not enough.
    units, unlikely = drawn_error(plan.noise, float(plan.columns * (1 if plan.output_scale else plan.steps)))
    largest = plan.output_scale or float(np.max(np.multiply(plan.step_size, plan.scale)))
    log_factor, tail = stretch(plan.noise, plan.columns, (error + 2.0 * UNIT * units * largest) / grid, hidden=True)
    return Rounding(miss, log_factor, tail + unlikely + rare, grid, error, slopes, functions)


def _shift(plan: Plan, loss: Loss) -> float:
    """Return how far errors can move the means of the steps, in units of their noise, where slopes are capped.

    A slope is off by at most e, and so a gradient by e B, and the mean of a batch; rounding adds what it adds before
    the noise. Given the past, a step is a Gaussian whose mean is moved by that, and of the run as a whole the root of
    the sum of squares counts. Without noise in the steps, their errors add up to one of the output.

    Raises:
        NotApplicable: scores may be too far apart, or the shift is too large.
    """
    bound, furthest = loss.feature_bound, _furthest(plan, loss)
    clip = plan.accounted["clip"]
    apart = 2.0 * bound * furthest * (1.0 + 2.0 * plan.steps * (plan.columns + 64.0) * UNIT)
    if not apart <= WIDEST:
        raise NotApplicable(
            "the scores of a capped softmax may get too far apart for slopes with a known error",
            "give --radius, or a smaller step size", parameters=("radius",),
        )  # fmt: skip
    error = slope_error(loss.scores, apart, abs(math.log(clip / bound)) + 1.0)
    eta, ratio = plan.step_size, max(batch.size / batch.divisor for batch in plan.batches)
    moved = np.multiply(eta, error * bound * ratio)
    moved = moved + 2.0 * UNIT * _roundings(plan) * (furthest + np.multiply(eta, lipschitz_of(plan, loss)))
    if plan.output_scale:
        shift = plan.steps * float(np.mean(moved)) / plan.output_scale
    else:
        shift = math.sqrt(plan.steps * float(np.mean(np.square(moved / np.multiply(eta, plan.scale)))))
    if not shift <= _MOST_SHIFT:
        raise NotApplicable(
            "the slopes of the capped softmax are not known well enough for so little noise",
            "take a larger --clip, or fewer steps", parameters=("clip",),
        )  # fmt: skip
    return up(shift, 64.0)


def _furthest(plan: Plan, loss: Loss) -> float:
    """Return how long an iterate can be, where draws and sums of normal ones are at most the reach of their law.

    Without a domain an iterate is the sum of all steps, or less with a regulariser. Of normal noise an entry of such a
    sum is normal, and its variance at most the sum of theirs.
    """
    if math.isfinite(plan.domain.radius):
        return plan.domain.radius
    noisy, power = np.multiply(plan.step_size, plan.scale), 2.0 if plan.noise == Noise.GAUSSIAN else 1.0
    pull = plan.steps * float(np.mean(np.multiply(plan.step_size, lipschitz_of(plan, loss))))
    push = float((plan.steps * np.mean(noisy**power)) ** (1.0 / power))
    return (pull + push * LAWS[Noise(plan.noise)].reach * math.sqrt(plan.columns)) * (1.0 + 64.0 * UNIT)


def _largest_error(plan: Plan, loss: Loss, law: Law) -> float:
    """Return a bound on the distance of a released vector from that of the algorithm on real numbers.

    With u = 2^-53, a step of a batch of b in d dimensions makes an error of less than (6 d + b + 64) u times the sum of
    |w|, the lengths of the gradient's and of the noise's step, and Y/B for labels: scores and norms (any order of
    summation) 3 d + 16, the projection 3 d + 22, the sum b + 3, slopes 16, the rest less than 7. Where
    gradients are clipped, the norm of a row and the cap that it gives add less than d + 8. For K classes d K stands for
    d: the scores of a class need d alone, which leaves 3 d (K - 1) for the softmax. Its sum and its quotient take K + 4
    of the 16 and of that, its differences of scores 2 (1 + sqrt(K)). The noise's own errors come to that. All is
    doubled, for terms of higher order. The projection of a model that a run goes on from counts as a step.

    Slopes of the logistic loss, as (y - tanh(z/2))/2, are off by less than 2.5 u, whatever they are: as eta B^2 <= 8,
    that moves an iterate by less than 20 u/B, where Y/B is 1/B and nothing else is counted for labels. That takes a
    tanh, and the 16 of other slopes an exp, within 4 units in the last place: the report says that this is assumed.
    """
    _refuse_spreading(plan, loss)
    eta, noisy = plan.step_size, np.multiply(plan.step_size, plan.scale)
    root, reach = math.sqrt(plan.columns), law.reach
    pull = np.multiply(eta, lipschitz_of(plan, loss))
    push = noisy * (reach * root)
    furthest = _furthest(plan, loss)
    labels = (1.0 if loss.label_bound is None else loss.label_bound) / loss.feature_bound
    rounded = _roundings(plan)
    if plan.capped:  # all but the sum with the noise, and the projection, is a part of the shift
        rounded = 16.0 + (3.0 * plan.columns + 22.0 if math.isfinite(plan.domain.radius) else 0.0)
    drawn = (law.relative * reach + law.absolute) * root
    steps = 2.0 * UNIT * (rounded * (furthest + pull + push + labels) + drawn * noisy)
    error = (plan.steps + plan.started) * float(np.mean(steps)) * (1.0 + plan.steps * 4.0 * (plan.columns + 8) * UNIT)
    if plan.release is Release.AVERAGE:
        error += 2.0 * UNIT * (plan.steps + 4.0) * furthest
    if plan.output_scale:
        error += 2.0 * UNIT * plan.output_scale * (4.0 * reach * root + drawn)
    return error


def _roundings(plan: Plan) -> float:
    """Return how many units of roundoff a step's error is at most, per length in it: see `_largest_error`."""
    clipped = 0.0 if plan.clip is None else plan.columns + 8.0  # the norm of a row, and the cap that it gives
    return clipped + 6.0 * plan.columns + max(batch.size for batch in plan.batches) + 64.0


def _refuse_spreading(plan: Plan, loss: Loss) -> None:
    """Refuse steps that may bring two points further apart.

    Raises:
        NotApplicable: a step may.
    """
    smoothness = loss.smoothness
    if plan.clip is not None and loss.scores > 2 and not plan.capped:
        raise NotApplicable(
            "shortened gradients of a softmax of more than two classes are those of no convex loss, and a step may "
            "spread rounding errors of iterates that stay hidden",
            "give --model capped, or " + _COMPOSITION.partition(";")[0], parameters=("model",),
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
