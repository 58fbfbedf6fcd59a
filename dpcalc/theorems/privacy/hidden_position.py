"""Hidden position: one pass in a secret random order (Theorem H).

An observer who does not know the position of the record compares two mixtures over all positions. Swapping
the record at position k *counted from the end* with the one at m changes the maps of two steps and nothing else, so the
laws are no further apart than two Gaussians at

    mu_kk^2 = mu_1^2/k,   mu_km^2 = mu_1^2 (1/a + 1/(b-a)) if b >= 2a, else 4 mu_1^2/b,   a = min(k,m), b = max(k,m).

`position_certificates` bounds delta for a position that is uniform and secret.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.model.choices import Adjacency, Permutation
from dpcalc.model.run import Run
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics.floats import UNIT, ratio_up
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.theorems.batch_layout import Layout
from dpcalc.theorems.conditions import GAUSSIAN_NOISE, ONE_RELEASE, STEP_WITHIN
from dpcalc.theorems.privacy.position_certificates import Cell, least_certificates
from dpcalc.theorems.privacy.shuffle import SmoothShuffle, mean_of_shifts
from dpcalc.theorems.record import Condition, Obstacle, Unmet, theorem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def _secret(run: Run) -> Obstacle | None:
    if run.permutation == Permutation.SECRET:
        return None
    return Unmet("the order is not promised to stay secret", "give --permutation secret if it does")


SECRET = Condition("the order and its seed stay secret for ever (--permutation secret)", _secret)


class SecretPass(SmoothShuffle):
    """A pass in a secret random order whose steps are 1-Lipschitz maps.

    Attributes:
        sensitivity: gradient sensitivity Delta; between any two records twice that under ``null-record``.
        noise, scale: ``gaussian`` and its standard deviation.
        adjacency: ``replace-one`` or ``null-record``.
    """

    adjacency: Adjacency

    @property
    def swap(self) -> float:
        """How far a swap of two records moves a step, in units of Delta."""
        return swap_of(self.adjacency)


def swap_of(adjacency: Adjacency) -> float:
    """Return how far a swap of two records moves a step, in units of the sensitivity.

    The sensitivity to a null record is half that to another record, and a swap still puts one in place of another.
    """
    return 2.0 if adjacency == Adjacency.NULL_RECORD else 1.0


class OnePass(NamedTuple):
    """The distances of one pass; ``ratio`` is mu_1, and ``swap`` is as of `swap_of`."""

    ratio: float
    swap: float

    def own(self, k: Array) -> Array:
        """Return mu_1/sqrt(k)."""
        import numpy as np

        mu: Array = self.ratio / np.sqrt(k) * (1.0 + 4.0 * UNIT)
        return mu

    def pair(self, a: Array, b: Array) -> Array:
        """Return mu_1 times the root of 1/a + 1/(b-a), or of 4/b."""
        import numpy as np

        squared = np.where(b >= 2.0 * a, 1.0 / a + 1.0 / (b - a), 4.0 / b) * self.swap**2
        mu: Array = self.ratio * np.sqrt(squared) * (1.0 + 16.0 * UNIT)
        return mu


def one_pass(steps: int, after: int, ratio: float, swap: float, epsilon: float) -> float:
    """Return an upper bound on ln delta for a position uniform among ``steps`` steps that ``after`` more steps follow.

    A certificate: the least over the cuts tried and the average of public positions.

    Args:
        steps: number of positions, 1 to 1e15.
        after: steps behind the last of them, 0 or 1.
        ratio: mu_1, the GDP parameter of one use with no later step.
        swap: as of `swap_of`.
        epsilon: >= 0.
    """
    public = mean_of_shifts(steps=steps, after=after, ratio=ratio, epsilon=epsilon)
    if steps == 1 or not 1e-90 < ratio < 1e90 or epsilon > 1e90:
        return public
    return least_certificates(steps, after, [Cell(0.0, OnePass(ratio, swap), public)], epsilon)


@theorem(
    "hidden_position.shuffled",
    title="Shuffled pass in a secret order, hidden position",
    setting=SecretPass,
    gives=Profile,
    algorithms=("shuffled",),
    reference="dpcalc",
    locator="hidden position: swaps of two records, and a common likelihood level for all positions",
    formula="delta(eps) = (1/n) sum_km a_km delta_G(ln(M_km/a_km); mu_km), sum_m a_km = 1, sum_k M_km <= e^eps",
    conditions=(GAUSSIAN_NOISE, STEP_WITHIN),
    promises=(SECRET,),
    assumes=(
        "one pass in a random order, all orders equally likely and drawn without looking at the data (no buffer or "
        "sharded shuffle, no rotation)",
        "the order, the seed that made it, logs of single steps and every intermediate iterate stay secret for ever",
        "the sensitivity holds between all records that may occur, not only between the two compared",
        "every loss is convex and smooth, step_size <= 2/smoothness",
        "fresh Gaussian noise in every step",
        ONE_RELEASE,
    ),
    slack="within 10 % of the best of its kind for delta > 1e-9; a certificate at every value",
    slow=True,
    not_monotone_in=("records",),
    uncertified="a certificate found by a search, which is not recorded",
)
def shuffled(run: SecretPass) -> Profile:
    """Nobody who sees the last iterate knows where in the secret order the record fell, and a late position may use
    the likelihood budget of all early ones.

    >>> from dpcalc.model.choices import LastBatch, Noise
    >>> run = SecretPass(records=2, batch_size=1, last_batch=LastBatch.OWN, sensitivity=1.0, noise=Noise.GAUSSIAN,
    ...                  scale=1.0, step_size=1.0, smoothness=1.0, adjacency=Adjacency.REPLACE_ONE)
    >>> round(math.exp(shuffled(run).profile(0.0)), 6)  # at epsilon 0 the mean of 2 Phi(1/2) - 1 and 2 Phi(1/8^0.5) - 1
    0.329626
    """
    return Profile(lambda epsilon: hidden_pass(run.layout, run.sensitivity, run.scale, run.swap, epsilon))


def hidden_pass(plan: Layout, sensitivity: float, scale: float, swap: float, epsilon: float) -> float:
    """Return ln delta of a pass with Gaussian noise in a secret order; ``swap`` as of `swap_of`."""
    hidden = one_pass(plan.full, plan.after, ratio_up(sensitivity, plan.size * scale), swap, epsilon)
    value = hidden + math.log(plan.full * plan.held) - math.log(plan.records)
    if plan.short:
        # By joint convexity, the bound may assume that the observer knows whether the record is in the short batch.
        own = ratio_up(sensitivity, plan.divisor * scale)
        last = gaussian.log_delta(mu=own, epsilon=epsilon) + math.log(plan.short) - math.log(plan.records)
        value = log_add_exp(value, last)
    return min(0.0, value + UNIT * (8.0 * abs(value) + 8.0 * math.log(plan.records + 1) + 8.0))
