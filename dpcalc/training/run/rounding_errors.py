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
    Rounding,
    drawn_error,
    inexact_slopes,
    output_miss,
    stretch,
)

_MOST_SHIFT = 0.01  # a tenth of what `inexact_slopes` holds for; its h is 12 times as large
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
    return _Errors(plan, loss).rounding()


class _Errors:
    """The rounding errors of a hidden run."""

    def __init__(self, plan: Plan, loss: Loss) -> None:
        self.plan, self.loss, self.law = plan, loss, LAWS[Noise(plan.noise)]
        self.noisy, self.lipschitz = np.multiply(plan.step_size, plan.scale), lipschitz_of(plan, loss)
        clipped = 0.0 if plan.clip is None else plan.columns + 8.0  # the norm of a row, and the cap that it gives
        # Units of roundoff that a step's error is at most, per length in it: see `largest`.
        self.roundings = clipped + 6.0 * plan.columns + max(batch.size for batch in plan.batches) + 64.0

    def rounding(self) -> Rounding:
        """Return how the outcome is rounded."""
        plan, law = self.plan, self.law
        laps = plan.passes if plan.release is Release.PASS else 1
        error = self.largest()
        scale = plan.output_scale or float(np.min(self.noisy))
        grid = grid_of(scale)
        rare = 2.0 * law.beyond * plan.columns * (1 if plan.output_scale else plan.steps)  # of a draw, or a sum of them
        miss = laps * plan.columns * output_miss(plan.noise, error, scale, grid) + rare
        slopes = inexact_slopes(self.shift()) if plan.capped else (0.0, 0.0)
        functions = CAPPED_FUNCTIONS if plan.capped else LOSS_FUNCTIONS.get(self.loss.name)
        if laps > 1:  # the second release depends on where in its cell the first one lies
            return Rounding(miss, grid=grid, error=error, slopes=slopes, functions=functions)
        # Cell by cell, the mean error of draws in the tail is not enough.
        units, unlikely = drawn_error(plan.noise, float(plan.columns * (1 if plan.output_scale else plan.steps)))
        largest = plan.output_scale or float(np.max(self.noisy))
        log_factor, tail = stretch(plan.noise, plan.columns, (error + 2.0 * UNIT * units * largest) / grid, hidden=True)
        return Rounding(miss, log_factor, tail + unlikely + rare, grid, error, slopes, functions)

    def shift(self) -> float:
        """Return how far errors can move the means of the steps, in units of their noise, where slopes are capped.

        A slope is off by at most e, and so a gradient by e B, and the mean of a batch; rounding adds what it adds
        before the noise. Given the past, a step is a Gaussian whose mean is moved by that, and of the run as a whole
        the root of the sum of squares counts. Without noise in the steps, their errors add up to one of the output.

        Raises:
            NotApplicable: scores may be too far apart, or the shift is too large.
        """
        plan, bound, furthest = self.plan, self.loss.feature_bound, self.furthest
        clip = plan.accounted["clip"]
        apart = 2.0 * bound * furthest * (1.0 + 2.0 * plan.steps * (plan.columns + 64.0) * UNIT)
        if not apart <= WIDEST:
            raise NotApplicable(
                "the scores of a capped softmax may get too far apart for slopes with a known error",
                "give --radius, or a smaller step size", parameters=("radius",),
            )  # fmt: skip
        error = slope_error(self.loss.scores, apart, abs(math.log(clip / bound)) + 1.0)
        eta, ratio = plan.step_size, max(batch.size / batch.divisor for batch in plan.batches)
        moved = np.multiply(eta, error * bound * ratio)
        moved = moved + 2.0 * UNIT * self.roundings * (furthest + np.multiply(eta, self.lipschitz))
        if plan.output_scale:
            shift = plan.steps * float(np.mean(moved)) / plan.output_scale
        else:
            shift = math.sqrt(plan.steps * float(np.mean(np.square(moved / self.noisy))))
        if not shift <= _MOST_SHIFT:
            raise NotApplicable(
                "the slopes of the capped softmax are not known well enough for so little noise",
                "take a larger --clip, or fewer steps", parameters=("clip",),
            )  # fmt: skip
        return up(shift, 64.0)

    @property
    def furthest(self) -> float:
        """How long an iterate can be, where draws and sums of normal ones are at most the reach of their law.

        Without a domain an iterate is the sum of all steps, or less with a regulariser. Of normal noise an entry of
        such a sum is normal, and its variance at most the sum of theirs.
        """
        plan = self.plan
        if math.isfinite(plan.domain.radius):
            return plan.domain.radius
        power = 2.0 if plan.noise == Noise.GAUSSIAN else 1.0
        pull = plan.steps * float(np.mean(np.multiply(plan.step_size, self.lipschitz)))
        push = float((plan.steps * np.mean(self.noisy**power)) ** (1.0 / power))
        return (pull + push * self.law.reach * math.sqrt(plan.columns)) * (1.0 + 64.0 * UNIT)

    def largest(self) -> float:
        """Return a bound on the distance of a released vector from that of the algorithm on real numbers.

        With u = 2^-53, a step of a batch of b in d dimensions makes an error of less than (6 d + b + 64) u times the
        sum of |w|, the lengths of the gradient's and of the noise's step, and Y/B for labels: scores and norms (any
        order of summation) 3 d + 16, the projection 3 d + 22, the sum b + 3, slopes 16, the rest less than 7. Where
        gradients are clipped, the norm of a row and the cap that it gives add less than d + 8. For K classes d K stands
        for d: the scores of a class need d alone, which leaves 3 d (K - 1) for the softmax. Its sum and its quotient
        take K + 4 of the 16 and of that, its differences of scores 2 (1 + sqrt(K)). The noise's own errors come to
        that. All is doubled, for terms of higher order. The projection of a model that a run goes on from counts as a
        step.

        Slopes of the logistic loss, as (y - tanh(z/2))/2, are off by less than 2.5 u, whatever they are: as
        eta B^2 <= 8, that moves an iterate by less than 20 u/B, where Y/B is 1/B and nothing else is counted for
        labels. That takes a tanh, and the 16 of other slopes an exp, within 4 units in the last place: the report says
        that this is assumed.
        """
        self._refuse_spreading()
        plan, loss, law = self.plan, self.loss, self.law
        root, reach = math.sqrt(plan.columns), law.reach
        pull = np.multiply(plan.step_size, self.lipschitz)
        push = self.noisy * (reach * root)
        furthest = self.furthest
        labels = (1.0 if loss.label_bound is None else loss.label_bound) / loss.feature_bound
        rounded = self.roundings
        if plan.capped:  # all but the sum with the noise, and the projection, is a part of the shift
            rounded = 16.0 + (3.0 * plan.columns + 22.0 if math.isfinite(plan.domain.radius) else 0.0)
        drawn = (law.relative * reach + law.absolute) * root
        steps = 2.0 * UNIT * (rounded * (furthest + pull + push + labels) + drawn * self.noisy)
        grows = 1.0 + plan.steps * 4.0 * (plan.columns + 8) * UNIT
        error = (plan.steps + plan.started) * float(np.mean(steps)) * grows
        if plan.release is Release.AVERAGE:
            error += 2.0 * UNIT * (plan.steps + 4.0) * furthest
        if plan.output_scale:
            error += 2.0 * UNIT * plan.output_scale * (4.0 * reach * root + drawn)
        return error

    def _refuse_spreading(self) -> None:
        """Refuse steps that may bring two points further apart.

        Raises:
            NotApplicable: a step may.
        """
        plan, loss = self.plan, self.loss
        smoothness = loss.smoothness
        if plan.clip is not None and loss.scores > 2 and not plan.capped:
            raise NotApplicable(
                "shortened gradients of a softmax of more than two classes are those of no convex loss, and a step may "
                "spread rounding errors of iterates that stay hidden",
                "give --model capped, or " + _COMPOSITION.partition(";")[0], parameters=("model",),
            )  # fmt: skip
        if smoothness is None:
            raise NotApplicable(
                f"the slope of the {loss.name} loss jumps, so that rounding errors of iterates that stay hidden have "
                "no bound, and the low-order bits of what is released might tell of a record",
                _COMPOSITION, parameters=("loss",),
            )  # fmt: skip
        longest = float(np.max(plan.step_size))
        if not longest * smoothness <= 2.0:
            raise NotApplicable(
                f"steps longer than 2/smoothness = {2.0 / smoothness:.6g} spread rounding errors of iterates that stay "
                "hidden, and the low-order bits of what is released might tell of a record",
                _COMPOSITION, parameters=("step_size",),
            )  # fmt: skip
