"""Lower bounds for the last iterate of steps on random batches, from linear losses and a regulariser.

Every step multiplies the iterate by c = 1 - eta lambda and adds noise; a use of the record moves it by one clipping
norm in one direction. So the last iterate is a discounted sum of the uses plus a discounted sum of the noise: a mixture
of normal laws on a line, whose best events are half-lines.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.model.quantities import Adjacency, Sampling
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics import discounted_sums
from dpcalc.numerics.floats import Array, down, np, up
from dpcalc.theorems.conditions import BATCH_WITHIN, GAUSSIAN, ONE_RELEASE, UNBOUNDED
from dpcalc.theorems.lower.quadratic import NO_GUARANTEE, QUADRATIC
from dpcalc.theorems.record import NotNeeded, Unmet, requires, theorem
from dpcalc.theorems.sampled.hidden_past import Draws
from dpcalc.theorems.sampled.sampled_hidden import (
    DRAWN_AT_RANDOM,
    LEAVES_ONE_OUT,
    LEAVES_OTHERS,
    LINEAR_MODEL,
    ONLY_THE_LAST,
    HiddenRun,
)
from dpcalc.theorems.setting import GAUSSIAN_STEP, Setting

if TYPE_CHECKING:
    from dpcalc.numerics.normal_arrays import Mixture


@theorem(
    "sampled.hidden_lower",
    title="Random batches with hidden iterates: a run that tells so much",
    needs=(
        "sampling", "adjacency", "records", "batch_size", "steps", "noise_multiplier", "step_size", "regularisation?",
        "group_size?",
    ),
    algorithms=("dp-sgd",),
    kind="lower",
    reference="dpcalc",
    locator="linear losses and a regulariser: the best half-line",
    formula="P(A) - e^eps Q(A), P = sum_x P(x) N(a x/s, 1), Q = N(0, 1), or N(-x/s, 1) mixed where a record is "
    "replaced, x = sum_i c^i N_i, N_i uses in a step, s = z sqrt(1 + c^2 + ... + c^(2T-2))",
    conditions=(
        LINEAR_MODEL, DRAWN_AT_RANDOM, LEAVES_ONE_OUT, LEAVES_OTHERS, ONLY_THE_LAST,
        requires(
            "no domain",
            lambda run: run.diameter is None,
            Unmet("speaks of runs on the whole space", "leave out --diameter", ("diameter",)),
        ),
        requires(
            "step_size <= 1/regularisation",
            lambda run: not run.regularisation or run.step_size is None or run.step_size * run.regularisation <= 1.0,
            Unmet("speaks of shorter steps", "use --step-size <= 1/regularisation", ("step_size",)),
        ),
    ),
    assumes=(
        "losses are linear where the run is, and a record's gradient is C one way; those of the others are 0, or C the "
        "other way",
    ),
    caution=NO_GUARANTEE,
    slack="losses that depend on the iterate may reveal more; uses are rounded down to a lattice",
    slow=True,
    not_monotone_in=("records", "batch_size", "step_size", "steps", "epochs"),
)  # fmt: skip
def hidden_batches(run: HiddenRun) -> Profile:
    """The last iterate reveals how often and how recently the record was used.

    >>> run = HiddenRun(sampling="poisson", adjacency="remove", records=100, batch_size=10, steps=1,
    ...                 noise_multiplier=1.0, step_size=1.0)
    >>> round(math.exp(hidden_batches(run).profile(0.0)), 6)  # 0.1 (2 Phi(1/2) - 1)
    0.038292
    """

    shrunk = run.step_size * run.regularisation
    return Profile(_LinearRun(_least_draws(run), shrunk, run.steps, up(run.noise_multiplier), _gradients(run)).profile)


@theorem(
    "linear.sampled_curved",
    title="Steps on random batches: linear losses and a common curvature",
    needs=(
        "records", "batch_size", "steps", *GAUSSIAN_STEP, "step_size", "smoothness?", "strong_convexity", "group_size?",
    ),
    kind="lower",
    algorithms=("noisy-sgd",),
    reference="dpcalc",
    locator="linear losses and a common curvature: the best half-line",
    formula="as sampled.hidden_lower with c = 1 - eta m or max(0, 1 - eta beta), z = b sigma/L, for fixed size and "
    "replacement",
    conditions=(
        BATCH_WITHIN, UNBOUNDED,
        requires(
            "strong_convexity > 0, step_size <= 1/strong_convexity",
            lambda run: (
                (run.strong_convexity or 0.0) > 0.0
                and (run.step_size is None or run.step_size * (run.strong_convexity or 0.0) <= 1.0)
            ),
            NotNeeded(
                "speaks of strong_convexity > 0 and short steps", "give --strong-convexity, or see linear.sampled",
                ("strong_convexity",),
            ),
        ),
    ),
    assumes=(QUADRATIC, GAUSSIAN, ONE_RELEASE),
    caution=NO_GUARANTEE,
    slack="uses are rounded down to a lattice",
    slow=True,
    not_monotone_in=("records", "batch_size", "steps", "step_size", "epochs", "strong_convexity"),
)  # fmt: skip
def curved(run: Setting) -> Profile:
    """Every step forgets a share of the earlier ones: no more than the least curvature requires, so that many uses add
    up, or as much as the largest allows, so that little noise is left beside the last ones.

    >>> run = Setting(records=100, batch_size=10, steps=1, sensitivity=2.0, noise_std=0.2, adjacency="replace-one",
    ...               step_size=0.5, strong_convexity=1.0)
    >>> round(curved(run).profile(1.0), 6)  # one step: as linear.sampled
    -8.482205
    """
    noise = up(2.0 * run.noise_std * run.batch_size / run.sensitivity, 4.0)
    curvatures = {run.strong_convexity, max(run.strong_convexity, run.known.get("smoothness", 0.0))}
    runs = [
        _LinearRun(_of_fixed_size(run), shrunk, run.steps, noise, [(1.0, -1.0), (2.0, 0.0)])
        for shrunk in {min(1.0, run.step_size * curvature) for curvature in curvatures}
    ]
    return Profile(lambda epsilon: max(each.profile(epsilon) for each in runs))


class _LinearRun(NamedTuple):
    """Steps that multiply by 1 - ``shrunk``, and lengths in units of half of what a use moves at most.

    Attributes:
        draws: how often records that differ are used in a step, from below.
        shrunk: the step size times the curvature.
        steps: T.
        noise: of a step, rounded up.
        gradients: by how much a use moves an iterate with one data set and with the other, in every order.
    """

    draws: Draws
    shrunk: float
    steps: int
    noise: float
    gradients: Sequence[tuple[float, float]]

    def profile(self, epsilon: float) -> float:
        """Return ln delta, rounded down."""
        from dpcalc.numerics.normal_arrays import likelihood_ratio_threshold, log_advantage_down

        below, above = _uses(self.draws, self.shrunk, self.steps)
        unit = down(1.0 / up(self.noise * _spread(self.shrunk, self.steps), 8.0), 4.0)
        pairs = [(_moved(p * unit, below), _moved(q * unit, above)) for p, q in self.gradients]
        thresholds = [(p, q, likelihood_ratio_threshold(p, q, epsilon)) for p, q in pairs]
        return min(0.0, max(log_advantage_down(p, q, epsilon, above) for p, q, above in thresholds))


def _moved(by: float, uses: tuple[Array, Array]) -> Mixture:
    """Return normal laws at ``by`` times the sums of uses, with their probabilities."""
    from dpcalc.numerics.normal_arrays import Mixture

    places, masses = uses
    if not by:
        return Mixture(np.zeros(1), np.zeros(1), np.ones(1))
    return Mixture(np.log(masses), by * places, np.ones(len(places)))


def _spread(shrunk: float, steps: int) -> float:
    """Return the standard deviation of the noise of all steps, that of one being 1, rounded up."""
    high = min(1.0, up(1.0 - down(shrunk))) if shrunk else 1.0
    return math.sqrt(discounted_sums.geometric(min(1.0, up(high * high)) if shrunk else 1.0, steps))


@functools.lru_cache(maxsize=8)
def _uses(draws: Draws, shrunk: float, steps: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return discounted sums of uses and their probabilities, which are from below and then from above.

    What is left of the probabilities from below is at no use, even where that is too rare for a double.
    """
    low = max(0.0, down(1.0 - up(shrunk))) if shrunk else 1.0
    values, masses = discounted_sums.uses_down(draws.trials, draws.chance, low, steps, draws.period)
    above = masses.copy()
    above[0] += max(0.0, 1.0 - math.fsum(masses)) + 1e-300
    likely = masses > 0.0
    return (values[likely], masses[likely]), (values[above > 0.0], above[above > 0.0] * (1.0 + 1e-12))


def _least_draws(run: HiddenRun) -> Draws:
    """Return how often records of the group are in a batch, from below."""
    if run.sampling == Sampling.FIXED:
        return _of_fixed_size(run)
    return run.draws._replace(trials=run.group_size) if run.sampling == Sampling.BALLS_IN_BINS else run.draws


def _of_fixed_size(run: Setting) -> Draws:
    """Return draws of a batch of fixed size: of j members each is in with at least the chance (b-j+1)/n, whichever are.

    Where a batch has few records, some of the group count.
    """
    from fractions import Fraction

    counted = min(run.group_size, (run.batch_size + 1) // 2)
    return Draws(counted, Fraction(run.batch_size - counted + 1, run.records))


def _gradients(run: HiddenRun) -> list[tuple[float, float]]:
    """Return by how much a use moves an iterate with one data set and with the other, none of these above 0."""
    of_one_size = run.sampling in (Sampling.FIXED, Sampling.WITH_REPLACEMENT)
    if run.adjacency == Adjacency.REPLACE_ONE:
        return [(1.0, -1.0), *([(2.0, 0.0)] if of_one_size else [])]
    far = 2.0 if of_one_size and run.adjacency != Adjacency.NULL_RECORD else 1.0
    ways = {Adjacency.REMOVE: [(far, 0.0)], Adjacency.ADD: [(0.0, -far)]}
    return ways.get(run.adjacency, [(far, 0.0), (0.0, -far)])
