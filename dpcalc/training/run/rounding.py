"""The privacy cost of rounding: how a run in doubles, rounded to a grid, differs from the run on real numbers.

A double differs from its real number by a rounding error. Rounded to a grid, the two agree unless the real number is
within that error of a midpoint between two grid points, which noise makes unlikely. If they differ with probability at
most P, on any records, a run that is (epsilon, delta)-private on real numbers is
(epsilon, delta + (1 + e^epsilon) P)-private as executed (`docs/method.md`).

In hidden runs, the errors of a step move the mean of its noisy iterate, given the past, by a small part of its noise.
Such shifts compose as private steps do: by the root of the sum of squares, not by the sum. This needs steps that bring
no two points further apart: a smooth convex loss and steps of at most 2/smoothness.
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
from dpcalc.training.run.domain import projection_error
from dpcalc.training.run.exact_sums import grid_of
from dpcalc.training.run.plan import Plan

Array = NDArray[np.float64]
UNIT = 2.0**-53
_ROOM = 1.0 + 1e-9  # covers the change of a density over a rounding error, and the rounding of these formulas
_DEEP = 9.0  # standard deviations beyond which a shift counts as a failure, not by its likelihood ratio
_TOO_DEEP = 2.6e-18  # above e^(-_DEEP^2/2)
_MOST_CELLS = 16.0  # a scale in units of its grid is at least 8 and below this


class Law(NamedTuple):
    """Constants of a distribution of noise of scale 1, unimodal and symmetric.

    Attributes:
        density: the largest density, rounded up.
        mean: of |Z|, rounded up.
        peak: the largest value of |z| times the density, rounded up.
        relative, absolute: a draw differs by at most (relative |Z| + absolute) units of roundoff from a variable of the
            distribution, and in the generator's tail by that plus its spacing there: an assumption on the generator.
        reach: |Z| exceeds reach - 1/4 with a probability of at most ``beyond``.
        beyond: see ``reach``.
        near: `stretch` compares cell by cell up to here.
        spacing: the largest distance of two draws where |Z| <= near + 1/2, in units of roundoff.
        rare: an upper bound on the probability that |Z| is above ``near`` and rounded to another cell.
        above: an upper bound on the probability that |Z| is above near - 1/4, or in a cell across that.
        coarse: the largest distance of two draws where |Z| is at most 7 (Laplace: 14), in units of roundoff.
        tail: an upper bound on the mean of a draw's error where |Z| is above that, counting 0 elsewhere.
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
"""The constants of numpy's generators, Gaussian before Laplace.

numpy draws both by a ziggurat: integers of 52 or 53 bits times the width of a layer, at most 3.66 and 7.7. Beyond the
last layer, at c = 3.6541... or 7.6971..., it draws c - ln(1 - U)/c or c - ln(1 - U) with U a multiple of 2^-53: draws
are about u e^(c (|z| - c))/c or u e^(|z| - c) apart there, and none is larger than 12.23 or 44.5. Over the whole tail
that adds .02 and 1 units to the mean error, and ``absolute`` has 4 to spare.

Cell by cell, the spacing counts up to ``near`` by ``spacing``, which is three or four times the actual one. Beyond, it
counts by ``rare``, at least three times the sum of these: 16 cells per scale times two slivers times the integral of
density and spacing (2.5e-5 u and .014 u), the mass of values that are never drawn (2e-34 and 5e-20), and 1e-10 of the
tail for comparisons of doubles. ``coarse`` and ``tail`` are three times the actual values, too: the spacing at 7 and at
14, and the integral beyond, with the mass that is never drawn.
"""

ASSUMED = (
    "a draw of the generator differs from an independent {law} variable by at most {absolute:g}{relative} units of "
    "roundoff (2^-53), and in its tail by the spacing of draws there"
)

CAPPED_FUNCTIONS = "exp, log and log1p of the installed numpy are within 4 units in the last place"
"""The assumption for the errors of a capped softmax's slopes (`dpcalc.training.run.capped`)."""

LOSS_FUNCTIONS: dict[str, str] = {
    LossName.LOGISTIC: "exp and tanh of the installed numpy and C library are within 4 units in the last place",
    LossName.SOFTMAX: "exp of the installed numpy is within 4 units in the last place",
}
"""The assumption for the slopes of a loss where iterates stay hidden; other losses need only arithmetic.

Exact sums of gradients need no assumption, since slopes are clipped whatever their errors.
"""

FUNCTIONS = frozenset({CAPPED_FUNCTIONS, *LOSS_FUNCTIONS.values()})
"""All assumptions on functions; a run has at most one of them."""


def assumption(noise: str) -> str:
    """Return the assumption on the generator, in words."""
    law = LAWS[Noise(noise)]
    relative = f" + {law.relative:g} |Z|" if law.relative else ""
    name = "normal" if noise == Noise.GAUSSIAN else "Laplace"
    return ASSUMED.format(law=name, absolute=law.absolute, relative=relative)


def sum_miss(noise: str) -> float:
    """Return an upper bound on the probability that an entry of a noisy sum is rounded to another point of its grid.

    The sum before noise is exact, so the error of an entry is at most u (g + (3 + q) s |Z| + q_0 s), with u = 2^-53,
    the grid g, the scale s, 8 <= s/g < 16, and the error q |Z| + q_0 of a draw.

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
        noise: ``gaussian`` or ``laplace``; its last draw is independent of everything else.
        error: a >= 0, the total error of the number.
        scale: s > 0, of the last noise on it.
        grid: g > 0, a power of two.
    """
    return 2.0 * error * (1.0 / grid + LAWS[Noise(noise)].density / scale) * _ROOM


def stretch(noise: str, entries: float, error_in_cells: float, errors: float | None = None) -> tuple[float, float]:
    """Return (h, tau) that relate the rounded distributions P' as executed and P on real numbers.

    P'(S) <= e^h P(S) + tau and P(S) <= e^h P'(S) + tau. The scale of the noise is at least 8 units of the grid. To a
    cell where |Z| <= r, the law's ``near``, an error of at most a cells adds two slivers of width a. Their density is
    at most e^(l (r + l)) times that in the cell, with l = 1/8 + a/4 (e^l for Laplace noise). Beyond r the two agree
    except with probability ``rare``; slivers wider than those of sums add at most 2 a ``above``.

    Args:
        noise: ``gaussian`` or ``laplace``; draws are independent of each other and of all other inputs of an entry.
        entries: the number of rounded numbers.
        error_in_cells: a, below 1/4, for an entry whose draw is at most r.
        errors: the sum of the errors of all entries over a; by default ``entries``.
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
    """Return (h, tau), as of `stretch`, for errors that move the means of a run's fresh noise.

    Args:
        shift: nu, the root of the sum of squares of the shifts of all steps, in units of their noise; for Laplace noise
            in the 1-norm.

    Returns:
        h = 9 nu + nu^2/2, and tau = e^-40.5, which exceeds the probability that the log-likelihood ratio is larger.
    """
    return (up(_DEEP * shift + 0.5 * shift * shift, 4.0), _TOO_DEEP) if shift > 0.0 else (0.0, 0.0)


def sum_error(noise: str) -> float:
    """Return the largest error of an entry of a noisy sum in units of its grid, for draws up to ``near``."""
    law = LAWS[Noise(noise)]
    drawn = law.absolute + law.spacing
    return UNIT * (1.0 + _MOST_CELLS * ((3.0 + law.relative) * (law.near + 1.0) + drawn)) * _ROOM


class Rounding(NamedTuple):
    """How a run's released numbers are rounded, and the bounds for its cost.

    Attributes:
        miss: a bound on the probability that any of them differs from the one on real numbers.
        log_factor, tail: h and tau of `stretch` for all of them; inf and 1 where no such bound is known.
        grid: of the released numbers; None where every noisy sum is rounded, each to its own grid.
        shift: h and tau of `shifted`, for the errors of hidden steps; 0 and 0 where sums are exact.
        functions: the assumption on the functions in slopes, in words; None for none.
    """

    miss: float
    log_factor: float = math.inf
    tail: float = 1.0
    grid: float | None = None
    shift: tuple[float, float] = (0.0, 0.0)
    functions: str | None = None

    def cost(self, epsilon: float) -> Cost:
        """Return the cost in delta at this epsilon, and in epsilon where steps stay hidden."""
        log_factor, tail = self.shift
        if not log_factor:
            return Cost(0.0, 1.0, _both(epsilon, up(self.miss + tail)))
        if not log_factor < _MOST_STRETCH:
            return _NO_BOUND
        return _of_both(epsilon, log_factor, up(up(math.exp(log_factor), 4.0) * (self.miss + tail), 4.0))

    def cost_in_epsilon(self, epsilon: float) -> Cost:
        """Return the cost in epsilon, and in delta at the raised epsilon, where delta stays small for large epsilon."""
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
        """The rounded numbers, in words."""
        return "every noisy sum" if self.grid is None else "what is released"


class Cost(NamedTuple):
    """The cost of rounding: (e, d)-privacy on real numbers is (e + epsilon, factor d + delta)-privacy as executed."""

    epsilon: float
    factor: float
    delta: float


_NO_BOUND = Cost(math.inf, 1.0, 1.0)
_MOST_STRETCH = 1.0  # a larger h is never worth it, since 2 h is added to epsilon


def _of_both(epsilon: float, log_factor: float, tail: float) -> Cost:
    """Return the cost if the distributions on both data sets are as executed: see `stretch`."""
    factor, added = up(math.exp(log_factor), 4.0), up(2.0 * log_factor)
    return Cost(added, factor, up(factor * _both(up(epsilon + added), tail), 4.0))


def _both(epsilon: float, probability: float) -> float:
    """Return (1 + e^epsilon) probability, rounded up, at most 1."""
    return min(1.0, up((1.0 + math.exp(min(epsilon, 700.0))) * probability, 8.0)) if epsilon <= 700.0 else 1.0


def sums_rounding(plan: Plan, more: int = 0) -> Rounding:
    """Return the rounding of every noisy sum of a plan; with correlated noise, errors of K also move means.

    Args:
        plan: what is executed.
        more: the number of further rounded numbers.
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
    """Return the rounding of a hidden run's released numbers.

    Args:
        plan: what is executed.
        loss: the loss.

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
        """Return the rounding of the released numbers."""
        self._refuse_spreading()
        plan = self.plan
        laps = plan.passes if plan.release is Release.PASS else 1
        grid = grid_of(self.scale)
        # Given the past, errors of entries are fixed and have a known 2-norm; their sum is at most sqrt(d) times that.
        miss = laps * self.root * output_miss(plan.noise, self.of_release(0.0), self.scale, grid)
        # A later release depends on where in its cell the first one lies.
        cells = self.of_release(self.law.spacing) / grid if laps == 1 else math.inf
        log_factor, tail = stretch(plan.noise, plan.columns, cells, self.root)
        log_shift, unlikely = shifted(self.shift())
        functions = CAPPED_FUNCTIONS if plan.capped else LOSS_FUNCTIONS.get(self.loss.name)
        return Rounding(miss, log_factor, tail, grid, (log_shift, unlikely + self.unlikely()), functions)

    def shift(self) -> float:
        """Return the root of the sum of squares of the shifts of all steps, in units of their noise.

        Given the past, the mean of a step's iterate is shifted by the errors before its noise, and by those with and
        after the noise of the step before. Without noise in the steps all errors add up, and shift the output.
        """
        plan = self.plan
        before, after = self.before_noise(), self.after_noise(self.law.coarse)
        if plan.output_scale:
            averaged = UNIT * (plan.steps + 4.0) * self.furthest
            return up(((plan.steps + plan.started) * float(np.mean(before + after)) + averaged) / plan.output_scale, 64)
        moved = (before + np.roll(after, 1)) / self.noisy
        norm = self.root if plan.noise == Noise.LAPLACE else 1.0  # the 1-norm is at most this times the 2-norm
        return up(norm * math.sqrt(plan.steps * float(np.mean(np.square(moved)))), 64.0)

    def unlikely(self) -> float:
        """Return a bound on the probability that a draw or a sum exceeds its reach, or a draw the range of ``coarse``.

        Beyond the range of ``coarse``, a draw's error shifts the next mean, and costs at most that shift, in units of
        the noise there, times the largest density.
        """
        plan, law = self.plan, self.law
        if plan.output_scale:
            return 2.0 * law.beyond * plan.columns
        uneven = float(np.max(self.noisy)) / float(np.min(self.noisy))
        return up(plan.columns * plan.steps * (2.0 * law.beyond + law.tail * law.density * uneven), 8.0)

    @property
    def furthest(self) -> float:
        """The largest norm of an iterate, if draws, and sums of normal draws, are within their reach.

        Without a domain an iterate is the sum of all steps, or less with a regulariser. With normal noise an entry of
        such a sum is normal, with at most the sum of the variances.
        """
        plan = self.plan
        if math.isfinite(plan.domain.radius):
            return plan.domain.radius
        power = 2.0 if plan.noise == Noise.GAUSSIAN else 1.0
        pull = plan.steps * float(np.mean(np.multiply(plan.step_size, self.lipschitz)))
        push = float((plan.steps * np.mean(self.noisy**power)) ** (1.0 / power))
        return (pull + push * self.law.reach * self.root) * (1.0 + 64.0 * (plan.steps + 1.0) * UNIT)

    def before_noise(self) -> Array:
        """Return a bound on the error of a step's mean: from the projection before it, scores, slopes and their sum.

        With u = 2^-53, d dimensions and a batch of b, the errors are less than: that of a projection;
        (d + 16) u |w| B for scores, in any order of summation, which moves a gradient by the smoothness times that over
        B; and b + d + 4 K + 32 units of L + B max(1, Y) for slopes, caps, weights of classes, the sum and its factor.
        For K classes d is replaced by d K: the scores of a class need d, and the softmax the rest. Slopes of the
        logistic loss, as (y - tanh(z/2))/2, have an error below 2.5 u. That needs a tanh, and other slopes an exp,
        within 4 units in the last place, which the report states as an assumption. All bounds have room for terms of
        higher order. The slopes of a capped softmax have larger errors: `dpcalc.training.run.capped`.

        Raises:
            NotApplicable: the scores of a capped softmax may be too far apart.
        """
        plan, loss, furthest = self.plan, self.loss, self.furthest
        assert loss.smoothness is not None
        eta = np.multiply(plan.step_size, max(batch.size / batch.divisor for batch in plan.batches))
        projected = projection_error(plan.columns) if math.isfinite(plan.domain.radius) else 0.0
        steepest = self.lipschitz + loss.feature_bound * max(1.0, loss.label_bound or 0.0)
        summed = max(batch.size for batch in plan.batches) + plan.columns + 4.0 * loss.scores + 32.0
        off = (projected + eta * loss.smoothness * (plan.columns + 16.0)) * furthest + summed * eta * steepest
        off = UNIT * off * (1.0 + 4.0 * summed * UNIT)
        capped = self.slope_error() * loss.feature_bound if plan.capped else 0.0
        return np.asarray(off + eta * capped)

    def after_noise(self, spacing: float) -> Array:
        """Return a bound on the distance of an iterate from its mean plus its noise: rounding, and the errors of draws.

        At most nine units of the iterate, seven of them for 1 - eta lambda or a projection, and fewer of gradients and
        of noise. Without a regulariser and a projection, a step adds twice to the iterate: two units.

        Args:
            spacing: of draws, in units of roundoff.
        """
        pull = np.multiply(self.plan.step_size, self.lipschitz)
        kept = 3.0 if not self.loss.regularisation and math.isinf(self.plan.domain.radius) else 10.0
        added = UNIT * (kept * self.furthest + 10.0 * (pull + self.noisy * (self.law.reach * self.root)))
        return np.asarray(added + self.drawn(spacing) * self.noisy)

    def of_release(self, spacing: float) -> float:
        """Return a bound on the distance of a released vector from its mean plus its noise; see `after_noise`."""
        scale = self.plan.output_scale
        if not scale:
            return float(np.max(self.after_noise(spacing)))
        return 8.0 * UNIT * (self.furthest + scale * self.law.reach * self.root) + self.drawn(spacing) * scale

    def drawn(self, spacing: float) -> float:
        """Return the norm of the errors of a vector of draws over their scale; on average, with a spacing of 0."""
        return UNIT * (self.law.relative * self.law.reach + self.law.absolute + spacing) * self.root * _ROOM

    def slope_error(self) -> float:
        """Return a bound on the error of a capped softmax's slope.

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
        """Raise NotApplicable if a step may bring two points further apart."""
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
