"""How likely it is that what a program releases is not the rounding of what the algorithm on real numbers has.

A double differs from the real number that it stands for by a rounding error. Rounded to a grid, the two agree unless
the real number is within that error of the middle between two points of the grid, which noise makes unlikely. Where
they differ with probability P at most, on any records, a run that is (epsilon, delta)-private on real numbers is
(epsilon, delta + (1 + e^epsilon) P)-private as it is executed (`docs/method.md`).

How far rounding errors can move the steps of a run that stays hidden, and how its outcome is rounded for that.

A step's errors move the mean of its noisy iterate, given all that came before, by a small part of its noise. Moves of
fresh noise compose as private steps do: the root of the sum of their squares counts, and not their sum. That needs
steps that bring no two points further apart: a smooth convex loss and steps of at most 2/smoothness.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import NotApplicable
from dpcalc.model.algorithm import Release
from dpcalc.model.loss import Loss
from dpcalc.model.quantities import LossName, Mechanism, Noise
from dpcalc.numerics.floats import up
from dpcalc.training.run.capped import WIDEST, slope_error
from dpcalc.training.run.checks import lipschitz_of
from dpcalc.training.run.correlation import BEYOND, nodes, shift_of
from dpcalc.training.run.exact_sums import grid_of
from dpcalc.training.run.plan import Plan

Array = NDArray[np.float64]
UNIT = 2.0**-53
_ROOM = 1.0 + 1e-9  # more than the curvature of a density over a rounding error, and the rounding of these formulas
_DEEP = 9.0  # standard deviations, past which a shift is not accounted for by its odds
_TOO_DEEP = 2.6e-18  # above e^(-_DEEP^2/2)
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
        above: an upper bound on the probability that |Z| is above ``near`` less 1/4, or in a cell across it.
        coarse: units of roundoff between two draws where |Z| <= far, at most, which is 7 or 14.
        tail: an upper bound on the mean of a draw's error where |Z| is above that, and of 0 elsewhere.
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
    above: float
    coarse: float
    tail: float


LAWS = {
    Noise.GAUSSIAN: Law(
        0.3989423, 0.7978846, 0.2419708, 0.0, 8.0, 20.0, 8.1e-87, 6.0, 4e4, 2e-18, 3e-8, 2e5, 2e-22
    ),
    Noise.LAPLACE: Law(
        0.5, 1.0, 0.1839398, 3.0, 8.0, 128.0, 3.4e-56, 14.0, 4e3, 1e-15, 4e-6, 4e3, 6e-18
    ),
}  # fmt: skip
"""numpy draws both by a ziggurat: whole numbers of 52 or 53 bits times the width of a layer, at most 3.66 and 7.7.

Past the last layer, at c = 3.6541... or 7.6971..., it draws c - ln(1 - U)/c or c - ln(1 - U) with U a multiple of
2^-53: its draws there are some u e^(c (|z| - c))/c or u e^(|z| - c) apart, and none is larger than 12.23 or 44.5. Over
the whole tail that adds .02 and 1 units to the mean error, where ``absolute`` has 4 to spare. Cell by cell it counts:
up to ``near`` as ``spacing``, three or four times what it is, and beyond in ``rare``: 16 cells a scale, two slivers,
the integral of density and spacing (2.5e-5 u and .014 u), the mass of what is never drawn (2e-34 and 5e-20), and 1e-10
of the tail for what comparisons of doubles decide; at least three times the sum. ``coarse`` and ``tail`` are three
times what they are as well: the spacing at 7 and at 14, and the integral beyond with the excess of what is never drawn.
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


def stretch(noise: str, entries: float, error_in_cells: float, errors: float | None = None) -> tuple[float, float]:
    """Return (h, tau) of the rounded laws as executed, P', and on real numbers, P.

    P'(S) <= e^h P(S) + tau and P(S) <= e^h P'(S) + tau. The scale of the noise is at least 8 cells of the grid. Of a
    cell where |Z| <= r, the law's ``near``, an error of at most a cells adds two slivers: of width a each, and of a
    density that is at most e^(l (r + l)) times that in the cell, with l = 1/8 + a/4 (e^l for Laplace noise). Beyond r
    the two agree but for a probability of ``rare``, and of wider slivers than those of sums: 2 a ``above`` at most.

    Args:
        noise: whose draws are independent of each other and of all else that decides about an entry.
        entries: how many numbers are rounded.
        error_in_cells: a, below 1/4; of an entry whose draw is at most r.
        errors: how many times a the errors of all entries come to; by default all are as large.
    """
    law, errors = LAWS[Noise(noise)], entries if errors is None else errors
    if not error_in_cells < 0.25:
        return math.inf, 1.0
    length = 0.125 + 0.25 * error_in_cells
    steepness = law.near + length if noise == Noise.GAUSSIAN else 1.0
    share = 2.0 * error_in_cells * math.exp(length * steepness) * _ROOM
    if not share < 0.5:
        return math.inf, 1.0
    log_factor = up(errors * share / (1.0 - share), 8.0)
    if not log_factor < 0.1:
        return math.inf, 1.0
    slivers = 2.0 * error_in_cells * law.above if error_in_cells > sum_error(noise) else 0.0  # rare has those of sums
    rare = entries * law.rare + errors * slivers
    return log_factor, up(4.0 * rare * math.exp(4.0 * log_factor), 8.0)


def shifted(shift: float) -> tuple[float, float]:
    """Return (h, tau), as of `stretch`, where errors move the means of a run's fresh noise by ``shift`` in all.

    Args:
        shift: nu, the root of the sum of squares of what they move the mean of a step by, in units of its noise; of
            Laplace noise in the 1-norm.

    Returns:
        h = 9 nu + nu^2/2, and tau = e^-40.5, above the probability that the log-likelihood ratio is larger.
    """
    return (up(_DEEP * shift + 0.5 * shift * shift, 4.0), _TOO_DEEP) if shift > 0.0 else (0.0, 0.0)


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
        shift: h and tau of `shifted`, for the errors of steps that stay hidden; 0 and 0 where sums are exact.
        functions: what is assumed of the functions that slopes are made of, in words; None for nothing.
    """

    miss: float
    log_factor: float = math.inf
    tail: float = 1.0
    grid: float | None = None
    shift: tuple[float, float] = (0.0, 0.0)
    functions: str | None = None

    def cost(self, epsilon: float) -> Cost:
        """Return what is added to delta at this epsilon, and to epsilon where steps stay hidden."""
        log_factor, tail = self.shift
        if not log_factor:
            return Cost(0.0, 1.0, _both(epsilon, up(self.miss + tail)))
        if not log_factor < _MOST_STRETCH:
            return _NO_BOUND
        return _of_both(epsilon, log_factor, up(up(math.exp(log_factor), 4.0) * (self.miss + tail), 4.0))

    def cost_in_epsilon(self, epsilon: float) -> Cost:
        """Return what is added to epsilon, and to delta at the epsilon that this makes: little even if it is large."""
        log_factor, tail = self.log_factor, self.tail
        if self.shift[0]:
            log_factor = up(log_factor + self.shift[0])
        if not log_factor < _MOST_STRETCH:
            return _NO_BOUND
        if self.shift[0]:
            tail = up(up(math.exp(log_factor), 4.0) * (tail + self.shift[1]), 4.0)
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


_NO_BOUND = Cost(math.inf, 1.0, 1.0)
_MOST_STRETCH = 1.0  # an h past which nobody would pay for it: twice that is added to epsilon


def _of_both(epsilon: float, log_factor: float, tail: float) -> Cost:
    """Return what it costs that both laws are as executed: see `stretch`."""
    factor, added = up(math.exp(log_factor), 4.0), up(2.0 * log_factor)
    return Cost(added, factor, up(factor * _both(up(epsilon + added), tail), 4.0))


def _both(epsilon: float, probability: float) -> float:
    """Return (1 + e^epsilon) probability, rounded up, at most 1."""
    return min(1.0, up((1.0 + math.exp(min(epsilon, 700.0))) * probability, 8.0)) if epsilon <= 700.0 else 1.0


def sums_rounding(plan: Plan, more: int = 0) -> Rounding:
    """Return how every noisy sum of a plan is rounded; correlated noise besides moves means by what K errs.

    Args:
        plan: what is executed.
        more: numbers that are rounded besides.
    """
    sums, shift = float(plan.steps), (0.0, 0.0)
    if plan.strategy is not None:
        sums = float(nodes(plan.steps)) if plan.strategy.mechanism == Mechanism.TREE else sums
        bound, scale = plan.accounted["clip"], plan.scale_at(0) * plan.batches[0].divisor
        h, tail = shifted(shift_of(plan.strategy, plan.columns, plan.largest_sum * bound / scale))
        shift = h, up(tail + 2.0 * sums * plan.columns * BEYOND, 4.0) if h else 0.0
    entries = sums * plan.columns + more
    log_factor, tail = stretch(plan.noise, entries, sum_error(plan.noise))
    return Rounding(up(entries * sum_miss(plan.noise), 4.0), log_factor, tail, shift=shift)


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
    if plan.release is Release.STEP or plan.strategy is not None:
        raise NotApplicable("every iterate is released, and rounding is accounted for hidden ones", _COMPOSITION)
    return _Errors(plan, loss).rounding()


class _Errors:
    """The rounding errors of a hidden run, all in the Euclidean norm: see `docs/method.md`."""

    def __init__(self, plan: Plan, loss: Loss) -> None:
        self.plan, self.loss, self.law = plan, loss, LAWS[Noise(plan.noise)]
        self.noisy, self.lipschitz = np.multiply(plan.step_size, plan.scale), lipschitz_of(plan, loss)
        self.root = math.sqrt(plan.columns)
        self.scale = plan.output_scale or float(np.min(self.noisy))

    def rounding(self) -> Rounding:
        """Return how the outcome is rounded."""
        self._refuse_spreading()
        plan = self.plan
        laps = plan.passes if plan.release is Release.PASS else 1
        grid = grid_of(self.scale)
        # Errors of entries that are fixed given the past, whose root of the sum of squares is known: their sum is at
        # most sqrt(d) times that.
        miss = laps * self.root * output_miss(plan.noise, self.of_release(0.0), self.scale, grid)
        # The second of several releases depends on where in its cell the first one lies.
        cells = self.of_release(self.law.spacing) / grid if laps == 1 else math.inf
        log_factor, tail = stretch(plan.noise, plan.columns, cells, self.root)
        log_shift, unlikely = shifted(self.shift())
        functions = CAPPED_FUNCTIONS if plan.capped else LOSS_FUNCTIONS.get(self.loss.name)
        return Rounding(miss, log_factor, tail, grid, (log_shift, unlikely + self.unlikely()), functions)

    def shift(self) -> float:
        """Return how far errors move the means of the noise, in units of it: the root of the sum of squares.

        Given the past, a step moves the mean of its iterate by the errors before its noise, and by those that came with
        and after the noise of the step before. Without noise in the steps all errors add up, and move the output.
        """
        plan = self.plan
        before, after = self.before_noise(), self.after_noise(self.law.coarse)
        if plan.output_scale:
            averaged = UNIT * (plan.steps + 4.0) * self.furthest
            return up(((plan.steps + plan.started) * float(np.mean(before + after)) + averaged) / plan.output_scale, 64)
        moved = (before + np.roll(after, 1)) / self.noisy
        norm = self.root if plan.noise == Noise.LAPLACE else 1.0  # the 1-norm over that
        return up(norm * math.sqrt(plan.steps * float(np.mean(np.square(moved)))), 64.0)

    def unlikely(self) -> float:
        """Return how likely a draw, or a sum of draws, is longer than its reach, or too far out for its spacing.

        Where ``coarse`` ends, an error moves the next mean by its part of the noise there, and costs as much of the
        probability as the largest density says.
        """
        plan, law = self.plan, self.law
        if plan.output_scale:
            return 2.0 * law.beyond * plan.columns
        uneven = float(np.max(self.noisy)) / float(np.min(self.noisy))
        return up(plan.columns * plan.steps * (2.0 * law.beyond + law.tail * law.density * uneven), 8.0)

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
        return (pull + push * self.law.reach * self.root) * (1.0 + 64.0 * (plan.steps + 1.0) * UNIT)

    def before_noise(self) -> Array:
        """Return what a step's mean is off by, at most: the projection before it, scores, slopes and their sum.

        With u = 2^-53, in d dimensions and a batch of b: of a projection less than (d/2 + 6) u R; of scores, in any
        order of summation, less than (d + 16) u |w| B, which moves a gradient by the smoothness times that over B;
        and of slopes, of caps, of weights of classes, of the sum and of its factor, less than b + d + 4 K + 32 units of
        L + B max(1, Y). For K classes d K stands for d: the scores of a class need d alone, and the softmax the rest.
        Slopes of the logistic loss, as (y - tanh(z/2))/2, are off by less than 2.5 u, whatever they are. That takes a
        tanh, and other slopes an exp, within 4 units in the last place: the report says that this is assumed. Each has
        room for terms of higher order. The slopes of a capped softmax are off by more: `dpcalc.training.run.capped`.

        Raises:
            NotApplicable: the scores of a capped softmax may be too far apart.
        """
        plan, loss, furthest = self.plan, self.loss, self.furthest
        assert loss.smoothness is not None
        eta = np.multiply(plan.step_size, max(batch.size / batch.divisor for batch in plan.batches))
        projected = 0.5 * plan.columns + 6.0 if math.isfinite(plan.domain.radius) else 0.0
        steepest = self.lipschitz + loss.feature_bound * max(1.0, loss.label_bound or 0.0)
        summed = max(batch.size for batch in plan.batches) + plan.columns + 4.0 * loss.scores + 32.0
        off = (projected + eta * loss.smoothness * (plan.columns + 16.0)) * furthest + summed * eta * steepest
        off = UNIT * off * (1.0 + 4.0 * summed * UNIT)
        capped = self.slope_error() * loss.feature_bound if plan.capped else 0.0
        return np.asarray(off + eta * capped)

    def after_noise(self, spacing: float) -> Array:
        """Return what an iterate is off by, at most, from its mean and its noise: roundings, and the errors of draws.

        At most nine units of the iterate, seven of them of 1 - eta lambda or of a projection, and fewer of gradients
        and of noise. Without either a step adds twice to an iterate that is multiplied by 1: two units.

        Args:
            spacing: of draws, in units of roundoff.
        """
        pull = np.multiply(self.plan.step_size, self.lipschitz)
        kept = 3.0 if not self.loss.regularisation and math.isinf(self.plan.domain.radius) else 10.0
        added = UNIT * (kept * self.furthest + 10.0 * (pull + self.noisy * (self.law.reach * self.root)))
        return np.asarray(added + self.drawn(spacing) * self.noisy)

    def of_release(self, spacing: float) -> float:
        """Return what a released vector is off by from its mean and its noise; see `after_noise`."""
        scale = self.plan.output_scale
        if not scale:
            return float(np.max(self.after_noise(spacing)))
        return 8.0 * UNIT * (self.furthest + scale * self.law.reach * self.root) + self.drawn(spacing) * scale

    def drawn(self, spacing: float) -> float:
        """Return how long the errors of a vector of draws are, over their scale; with a spacing of 0, on average."""
        return UNIT * (self.law.relative * self.law.reach + self.law.absolute + spacing) * self.root * _ROOM

    def slope_error(self) -> float:
        """Return what a slope of a capped softmax is off by, at most.

        Raises:
            NotApplicable: scores may be too far apart.
        """
        plan, bound = self.plan, self.loss.feature_bound
        apart = 2.0 * bound * self.furthest * (1.0 + 2.0 * plan.steps * (plan.columns + 64.0) * UNIT)
        if not apart <= WIDEST:
            raise NotApplicable(
                "the scores of a capped softmax may get too far apart for slopes with a known error",
                "give --radius, or a smaller step size", parameters=("radius",),
            )  # fmt: skip
        return slope_error(self.loss.scores, apart, abs(math.log(plan.accounted["clip"] / bound)) + 1.0)

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
