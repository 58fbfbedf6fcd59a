"""How likely it is that what a program releases is not the rounding of what the algorithm on real numbers has.

A double differs from the real number that it stands for by a rounding error. Rounded to a grid, the two agree unless
the real number is within that error of the middle between two points of the grid, which noise makes unlikely. Where
they differ with probability P at most, on any records, a run that is (epsilon, delta)-private on real numbers is
(epsilon, delta + (1 + e^epsilon) P)-private as it is executed (`docs/method.md`).

How far rounding errors can move the iterates of a run that stays hidden, and how its outcome is rounded for that.

A step that brings no two points further apart passes an error on as it is: the errors of the steps add up. That needs a
smooth convex loss and steps of at most 2/smoothness.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpcalc.errors import NotApplicable
from dpcalc.model.algorithm import Release
from dpcalc.model.loss import Loss
from dpcalc.model.quantities import LossName, Noise
from dpcalc.numerics.floats import up
from dpcalc.training.run.capped import WIDEST, slope_error
from dpcalc.training.run.checks import lipschitz_of
from dpcalc.training.run.exact_sums import grid_of
from dpcalc.training.run.plan import Plan

UNIT = 2.0**-53
_ROOM = 1.0 + 1e-9  # more than the curvature of a density over a rounding error, and the rounding of these formulas
_MANY = 100.0  # draws that a layer of the tail is expected to have, past which they are counted by a closed form
_DEEP = 12.0  # standard deviations, past which a shift of a normal law is not accounted for by its odds
_MOST_CELLS = 16.0  # a scale in cells of its grid is at least 8 and below this


class Law(NamedTuple):
    """What is used of a law of noise of scale 1: unimodal and symmetric.

    Attributes:
        density: the largest density, rounded up.
        mean: of |Z|, rounded up.
        peak: the largest value of |z| times the density, rounded up.
        relative, absolute: a draw differs by at most (relative |Z| + absolute) units of roundoff from a variable of the
            law, and in the generator's tail by that and its spacing there: an assumption on the generator.
        reach: |Z| is larger than it less 1/4 with a probability of at most ``beyond``.
        beyond: see there.
        near: up to where `stretch` compares cell by cell.
        spacing: units of roundoff between two draws where |Z| <= near + 1/2, at most.
        rare: an upper bound on the probability that |Z| is above ``near``, and rounded to another cell.
        layers: of the tail, from within out: (upper bound on the probability that |Z| is in it or beyond, units of
            roundoff between two draws in it, at most).
        last: where the last layer ends.
        outside: |Z| is larger than ``last`` less 1/4 with a probability of at most this.
    """

    density: float
    mean: float
    peak: float
    relative: float
    absolute: float
    reach: float
    beyond: float
    near: float
    spacing: float
    rare: float
    layers: tuple[tuple[float, float], ...]
    last: float
    outside: float


LAWS = {
    Noise.GAUSSIAN: Law(
        0.3989423, 0.7978846, 0.2419708, 0.0, 8.0, 20.0, 8.1e-87, 6.0, 4e4, 2e-18,
        ((1.0, 8e2), (4e-8, 2e5), (3e-12, 2e7)), 8.25, 1.3e-15,  # to 5.5, 7 and 8.25
    ),
    Noise.LAPLACE: Law(
        0.5, 1.0, 0.1839398, 3.0, 8.0, 128.0, 3.4e-56, 14.0, 4e3, 1e-15,
        ((1.0, 2e3), (9e-7, 6e6), (3e-10, 2e10)), 30.0, 1.3e-13,  # to 14, 22 and 30
    ),
}  # fmt: skip
"""numpy draws both by a ziggurat: whole numbers of 52 or 53 bits times the width of a layer, at most 3.66 and 7.7.

Past the last layer, at c = 3.6541... or 7.6971..., it draws c - ln(1 - U)/c or c - ln(1 - U) with U a multiple of
2^-53: its draws there are some u e^(c (|z| - c))/c or u e^(|z| - c) apart, and none is larger than 12.23 or 44.5. Over
the whole tail that adds .02 and 1 units to the mean error, where ``absolute`` has 4 to spare. Cell by cell it counts:
up to ``near`` as ``spacing``, three or four times what it is, and beyond in ``rare``: 16 cells a scale, two slivers,
the integral of density and spacing (2.5e-5 u and .014 u), the mass of what is never drawn (2e-34 and 5e-20), and 1e-10
of the tail for what comparisons of doubles decide; at least three times the sum.
"""

ASSUMED = (
    "a draw of the generator differs from an independent {law} variable by at most {absolute:g}{relative} units of "
    "roundoff (2^-53), and in its tail by the spacing of draws there"
)

CAPPED_FUNCTIONS = "exp, log and log1p of the installed numpy are within 4 units in the last place"
"""What is assumed where the slopes of a capped softmax have an error (`dpcalc.training.run.capped`)."""

LOSS_FUNCTIONS: dict[str, str] = {
    LossName.LOGISTIC: "exp and tanh of the installed numpy and C library are within 4 units in the last place",
    LossName.SOFTMAX: "exp of the installed numpy is within 4 units in the last place",
}
"""What is assumed of the slopes of a loss where iterates stay hidden; those of other losses are arithmetic alone.

Where sums of gradients are exact nothing is: whatever a slope is, it is cut off.
"""

FUNCTIONS = frozenset({CAPPED_FUNCTIONS, *LOSS_FUNCTIONS.values()})
"""All that is ever assumed of functions: of a run at most one of these."""


def assumption(noise: str) -> str:
    """Return what is assumed of the generator, in words."""
    law = LAWS[Noise(noise)]
    relative = f" + {law.relative:g} |Z|" if law.relative else ""
    name = "normal" if noise == Noise.GAUSSIAN else "Laplace"
    return ASSUMED.format(law=name, absolute=law.absolute, relative=relative)


def sum_miss(noise: str) -> float:
    """Return an upper bound on the probability that an entry of a noisy sum is rounded to another point of its grid.

    The exact sum is known, so that the error of an entry is at most u (g + (3 + q) s |Z| + q_0 s), with u = 2^-53, the
    grid g, the scale s, 8 <= s/g < 16, and the errors q |Z| + q_0 of a draw.

    >>> sum_miss("gaussian") < 3.9e-14
    True
    """
    law = LAWS[Noise(noise)]
    most, least = _MOST_CELLS, 0.5 * _MOST_CELLS
    cells = 1.0 + law.density / least
    cells += (3.0 + law.relative) * (law.mean * most + 2.0 * law.peak)
    cells += law.absolute * (most + law.density)
    return 2.0 * UNIT * cells * _ROOM


def output_miss(noise: str, error: float, scale: float, grid: float) -> float:
    """Return an upper bound on the probability that a released number is rounded to another point of its grid.

    Args:
        noise: whose last draw is independent of all else.
        error: a >= 0, of the number, in all.
        scale: s > 0, of the last noise on it.
        grid: g > 0, a power of two.
    """
    return 2.0 * error * (1.0 / grid + LAWS[Noise(noise)].density / scale) * _ROOM


def stretch(noise: str, entries: float, error_in_cells: float, *, hidden: bool = False) -> tuple[float, float]:
    """Return (h, tau) of the rounded laws as executed, P', and on real numbers, P.

    P'(S) <= e^h P(S) + tau and P(S) <= e^h P'(S) + tau. The scale of the noise is at least 8 cells of the grid. Of a
    cell where |Z| <= r an error of at most a cells adds two slivers: of width a each, and of a density that is at most
    e^(l (r + l)) times that in the cell, with l = 1/8 + a/4 (e^l for Laplace noise). Beyond r, the law's ``near``, the
    two agree but for a probability of ``rare``; for hidden runs r is ``last``, and what is ``outside`` is rare.

    Args:
        noise: whose draws are independent of each other and of all else that decides about an entry.
        entries: how many numbers are rounded.
        error_in_cells: a, below 1/4; of an entry whose draw is at most r.
        hidden: whether the numbers are what a hidden run releases, and not noisy sums.
    """
    law = LAWS[Noise(noise)]
    reach, rare = (law.last, law.outside) if hidden else (law.near, law.rare)
    if not error_in_cells < 0.25:
        return math.inf, 1.0
    length = 0.125 + 0.25 * error_in_cells
    steepness = reach + length if noise == Noise.GAUSSIAN else 1.0
    share = 2.0 * error_in_cells * math.exp(length * steepness) * _ROOM
    if not share < 0.5:
        return math.inf, 1.0
    log_factor = up(entries * share / (1.0 - share), 8.0)
    return log_factor, up(4.0 * entries * rare * math.exp(min(log_factor, 1.0) * 4.0), 8.0)


def inexact_slopes(shift: float) -> tuple[float, float]:
    """Return (h, tau), as of `stretch`, where errors move the means of Gaussian steps by at most ``shift`` in all.

    Args:
        shift: the root of the sum of squares of what they move a step's mean by, in units of its noise; at most 0.1.

    Returns:
        h = 12 shift, and tau above Phi(-12 + shift/2).
    """
    return (up(_DEEP * shift, 2.0), 4e-33) if shift > 0.0 else (0.0, 0.0)


def drawn_error(noise: str, draws: float) -> tuple[float, float]:
    """Return what the errors of so many draws add up to beyond the usual, in units of roundoff, and how likely more is.

    Every draw counts as one in the first layer of the tail. In each layer further out there are at most k more, where
    (N p)^(k+1)/(k+1)! bounds the probability that there are others; outside the last one there are none.
    """
    law = LAWS[Noise(noise)]
    allowed = draws * law.outside
    total = draws * law.layers[0][1]
    for probability, spacing in law.layers[1:]:
        count, bound = 0, draws * probability
        if bound > _MANY:  # (e N p/(k+1))^(k+1) bounds it, too, and is below e^-860 here
            count, bound = math.ceil(8.0 * bound), 0.0
        while bound > allowed and count < draws:
            count += 1
            bound *= draws * probability / (count + 1)
        total += count * spacing
    return up(total, 8.0), up(allowed * len(law.layers), 8.0)


def sum_error(noise: str) -> float:
    """Return the largest error of an entry of a noisy sum in cells of its grid, where the draw is at most ``near``."""
    law = LAWS[Noise(noise)]
    drawn = law.absolute + law.spacing
    return UNIT * (1.0 + _MOST_CELLS * ((3.0 + law.relative) * (law.near + 1.0) + drawn)) * _ROOM


class Rounding(NamedTuple):
    """How a run's released numbers are rounded, and what is lost by that.

    Attributes:
        miss: a bound on the probability that any of them is another one than on real numbers.
        log_factor, tail: h and tau of `stretch` for all of them; inf and 1 where no such bound is known.
        grid: of the released numbers; None where every noisy sum is rounded, to a grid of its own.
        error: the largest error of a released number before it is rounded; None where sums are exact.
        slopes: h and tau, as of `stretch`, for slopes that are known up to an error (`dpcalc.training.run.capped`).
        functions: what is assumed of the functions that slopes are made of, in words; None for nothing.
    """

    miss: float
    log_factor: float = math.inf
    tail: float = 1.0
    grid: float | None = None
    error: float | None = None
    slopes: tuple[float, float] = (0.0, 0.0)
    functions: str | None = None

    def cost(self, epsilon: float) -> Cost:
        """Return what is added to delta at this epsilon, the same to epsilon where slopes are exact."""
        log_factor, tail = self.slopes
        if not log_factor:
            return Cost(0.0, 1.0, _both(epsilon, self.miss))
        return _of_both(epsilon, log_factor, up(up(math.exp(log_factor), 4.0) * (self.miss + tail), 4.0))

    def cost_in_epsilon(self, epsilon: float) -> Cost:
        """Return what is added to epsilon, and to delta at the epsilon that this makes: little even if it is large."""
        log_factor, tail = self.log_factor, self.tail
        if self.slopes[0]:
            log_factor = up(log_factor + self.slopes[0])
            tail = up(up(math.exp(min(log_factor, 1.0)), 4.0) * (tail + self.slopes[1]), 4.0)
        if not log_factor < 0.1:
            return Cost(math.inf, 1.0, 1.0)
        return _of_both(epsilon, log_factor, tail)

    @property
    def what(self) -> str:
        """What is rounded, in words."""
        return "every noisy sum" if self.grid is None else "what is released"


class Cost(NamedTuple):
    """What rounding costs: (e, d)-privacy on real numbers is (e + epsilon, factor d + delta)-privacy as executed."""

    epsilon: float
    factor: float
    delta: float


def _of_both(epsilon: float, log_factor: float, tail: float) -> Cost:
    """Return what it costs that both laws are as executed: see `stretch`."""
    factor, added = up(math.exp(log_factor), 4.0), up(2.0 * log_factor)
    return Cost(added, factor, up(factor * _both(up(epsilon + added), tail), 4.0))


def _both(epsilon: float, probability: float) -> float:
    """Return (1 + e^epsilon) probability, rounded up, at most 1."""
    return min(1.0, up((1.0 + math.exp(min(epsilon, 700.0))) * probability, 8.0)) if epsilon <= 700.0 else 1.0


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
