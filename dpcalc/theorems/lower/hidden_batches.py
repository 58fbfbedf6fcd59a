"""What no guarantee for the last iterate of steps on random batches can be below: linear losses and a regulariser.

Every step multiplies the iterate by c = 1 - eta lambda and adds noise; a use of the record moves it by one clipping
norm, one way. So the last iterate is a discounted sum of the uses, plus a discounted sum of the noise: a mixture of
normal laws on a line, of which half-lines are the best events.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from dpcalc.model.quantities import Adjacency, Sampling
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics import discounted_sums
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import down, up
from dpcalc.theorems.lower.quadratic import NO_GUARANTEE
from dpcalc.theorems.record import Unmet, requires, theorem
from dpcalc.theorems.sampled.sampled_hidden import (
    DRAWN_AT_RANDOM,
    LEAVES_ONE_OUT,
    LINEAR_MODEL,
    ONLY_THE_LAST,
    HiddenRun,
)

if TYPE_CHECKING:
    from dpcalc.numerics.normal_arrays import Mixture


@theorem(
    "sampled.hidden_lower",
    title="Random batches with hidden iterates: a run that tells so much",
    needs=(
        "sampling", "adjacency", "records", "batch_size", "sample_rate", "steps", "noise_multiplier", "step_size",
        "regularisation?",
    ),
    algorithms=("dp-sgd",),
    kind="lower",
    reference="dpcalc",
    locator="linear losses and a regulariser: the best half-line",
    formula="P(A) - e^eps Q(A), P = sum_x P(x) N(a x/s, 1), Q = N(0, 1), or N(-x/s, 1) mixed where a record is "
    "replaced, x = sum_i c^i N_i, N_i uses in a step, s = z sqrt(1 + c^2 + ... + c^(2T-2))",
    conditions=(
        LINEAR_MODEL, DRAWN_AT_RANDOM, LEAVES_ONE_OUT, ONLY_THE_LAST,
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
    not_monotone_in=("records", "batch_size", "sample_rate", "step_size", "steps", "epochs"),
)  # fmt: skip
def hidden_batches(run: HiddenRun) -> Profile:
    """The last iterate tells how often, and how lately, the record was used.

    >>> run = HiddenRun(sampling="poisson", adjacency="remove", records=100, batch_size=10, sample_rate=0.1, steps=1,
    ...                 noise_multiplier=1.0, step_size=1.0)
    >>> round(math.exp(hidden_batches(run).profile(0.0)), 6)  # 0.1 (2 Phi(1/2) - 1)
    0.038292
    """

    @functools.cache
    def laws() -> list[tuple[Mixture, Mixture]]:
        return _laws(run)

    def profile(epsilon: float) -> float:
        from dpcalc.numerics.normal_arrays import likelihood_ratio_threshold, log_advantage_down

        thresholds = [(p, q, likelihood_ratio_threshold(p, q, epsilon)) for p, q in laws()]
        return min(0.0, max(log_advantage_down(p, q, epsilon, above) for p, q, above in thresholds))

    return Profile(profile)


def _laws(run: HiddenRun) -> list[tuple[Mixture, Mixture]]:
    """Return pairs (P, Q) of laws of the last iterate in units of its noise, P from below and Q from above."""
    from dpcalc.numerics.normal_arrays import Mixture

    shrunk = run.step_size * run.regularisation
    low, high = (max(0.0, down(1.0 - up(shrunk))), min(1.0, up(1.0 - down(shrunk)))) if shrunk else (1.0, 1.0)
    draws = run.draws
    values, masses = discounted_sums.uses_down(draws.trials, draws.chance, low, run.steps, draws.period)
    spread = math.sqrt(discounted_sums.geometric(min(1.0, up(high * high)) if shrunk else 1.0, run.steps))
    unit = down(1.0 / up(run.noise_multiplier * spread, 8.0), 4.0)
    least = masses > 0.0
    places, below = values[least], masses[least]
    above = below.copy()
    above[0] += 1.0 - math.fsum(below)
    ones, alone = np.ones(len(below)), Mixture(np.zeros(1), np.zeros(1), np.ones(1))

    def moved(by: float, weights: Array) -> Mixture:
        return Mixture(np.log(weights), unit * by * places, ones) if by else alone

    return [(moved(p, below), moved(q, above * (1.0 + 1e-12))) for p, q in _gradients(run)]


def _gradients(run: HiddenRun) -> list[tuple[float, float]]:
    """Return by how much a use moves an iterate with one data set and with the other, none of these above 0."""
    of_one_size = run.sampling in (Sampling.FIXED, Sampling.WITH_REPLACEMENT)
    if run.adjacency == Adjacency.REPLACE_ONE:
        return [(1.0, -1.0), *([(2.0, 0.0)] if of_one_size else [])]
    far = 2.0 if of_one_size and run.adjacency != Adjacency.NULL_RECORD else 1.0
    ways = {Adjacency.REMOVE: [(far, 0.0)], Adjacency.ADD: [(0.0, -far)]}
    return ways.get(run.adjacency, [(far, 0.0), (0.0, -far)])
