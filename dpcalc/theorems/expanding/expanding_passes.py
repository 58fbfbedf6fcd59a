"""Several passes of maps that may drive two runs apart, with the record at the same place in each of them.

A use is hidden by the steps up to the next one, or on a domain the uses before some step by the steps behind it.
"""

from __future__ import annotations

import functools
import math

from dpcalc.model.algorithm import Release, in_one_random_order
from dpcalc.notions.guarantee import Gdp, Profile
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.decreasing_sums import TermBounds, log_sum_decreasing_up
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.numerics.quotients import quotient_up
from dpcalc.theorems.batch_layout import Positions
from dpcalc.theorems.conditions import GAUSSIAN, GAUSSIAN_NOISE, INDEX_IN_RANGE, LIPSCHITZ, ONE_RELEASE, WHERE_BOUNDED
from dpcalc.theorems.expanding.expanding_maps import (
    EXPANDS,
    LARGEST,
    MAPS,
    PLACED,
    carried,
    grid,
    growth_of,
    room,
    rooms,
)
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import GAUSSIAN_STEP, Setting


class ExpandingPasses(Setting):
    """Passes whose steps may drive two runs apart."""

    @functools.cached_property
    def growth(self) -> float:
        """The growth ln c >= 0 of a step's Lipschitz factor, rounded up; inf where it has none: nothing is hidden."""
        growth = growth_of(self.loss_class, self.step_size, self.smoothness, self.strong_convexity)
        return math.inf if growth is None else growth

    @functools.cached_property
    def reach(self) -> float:
        """D/(eta sigma), rounded up; inf where the domain is unbounded."""
        return quotient_up((self.diameter,), (self.step_size, self.noise_std)) if self.diameter < math.inf else math.inf

    def ratio(self, size: int) -> float:
        """Return r = Delta/(b sigma) of a use in a batch divided by this size, rounded up."""
        return quotient_up((self.sensitivity,), (float(size), self.noise_std))

    def earlier(self, ratio: float, period: int) -> float:
        """Return what all uses but the last cost, one a pass: the square of a GDP parameter, rounded up.

        Each is hidden by its own pass; or the diameter, from right after a use on, and j more uses are.
        """
        pass_room = room(self.growth, period)
        one = ratio / math.sqrt(pass_room)
        least = (self.epochs - 1) * one * one
        if self.reach < math.inf and self.epochs > 1:
            for j in (0, *grid()):
                steps = (j + 1) * period - 1
                if steps:
                    mu = carried(self.reach, self.growth, steps) + one * math.sqrt(j)
                    least = min(least, mu * mu)
        return up(least, 32.0)


_CYCLIC = (
    "records", "batch_size", "epochs", *GAUSSIAN_STEP, "step_size", "loss_class", "smoothness?", "strong_convexity?",
    "diameter?", "index", "last_batch?",
)  # fmt: skip


@theorem(
    "expanding.cyclic",
    title="Cyclic passes of maps that expand",
    needs=_CYCLIC,
    algorithms=("cyclic",),
    reference="dpcalc",
    locator="shifted interpolation, each use hidden by the steps up to the next one; restart from the diameter",
    formula="mu^2 = B + r^2/G_k, B = (E-1) r^2/G_l or, on a domain, (sqrt(A_m) + r sqrt(j/G_l))^2, m = (j+1) l - 1; "
    "G_j = 1 + c^-2 + ... + c^(-2(j-1)), A_m = (c D/(eta sigma))^2/G_m, c = 1 + eta beta or eta beta - 1",
    conditions=(INDEX_IN_RANGE, GAUSSIAN_NOISE, LIPSCHITZ, EXPANDS),
    assumes=("the same fixed order in every pass", MAPS, GAUSSIAN, WHERE_BOUNDED, ONE_RELEASE),
)
def cyclic(run: ExpandingPasses) -> Gdp:
    """The noise of a pass hides a use even if every step drives two runs apart, as long as it does so slowly.

    It is never above `multi_epoch.composition` but for rounding.

    >>> run = ExpandingPasses(records=5, index=1, batch_size=1, epochs=9, sensitivity=2.0, noise_std=4.0,
    ...                       step_size=1e-6, loss_class="smooth", smoothness=1.0)
    >>> round(cyclic(run).mu, 4)
    0.6708
    """
    place, period = run.layout.place(run.index), run.layout.steps
    one, tail = run.ratio(place.divisor), place.tail
    mu = math.hypot(math.sqrt(run.earlier(one, period)), one / math.sqrt(room(run.growth, tail)))
    if tail > 1:
        mu = min(mu, carried(run.reach, run.growth, tail - 1))
    return Gdp(up(mu, 16.0))


@theorem(
    "expanding.once",
    title="One random order for all epochs, maps that expand",
    needs=(
        "records", "batch_size", "epochs", *GAUSSIAN_STEP, "step_size", "loss_class", "smoothness?",
        "strong_convexity?", "diameter?", "last_batch",
    ),
    algorithms=in_one_random_order(Release.LAST),
    reference="dpcalc",
    locator="expanding.cyclic for each position, averaged",
    formula="delta(eps) = sum_k w_k delta_G(eps; mu_k), w_k the share of the records at k, mu_k^2 = B + r_k^2/G_k as "
    "in expanding.cyclic; G_k = 1 for losses that are not smooth",
    conditions=(GAUSSIAN_NOISE, EXPANDS, PLACED),
    assumes=("one order for all epochs, all orders (or rotations) equally likely and drawn without looking at the "
             "data; it may be published", "where used: " + MAPS, GAUSSIAN, WHERE_BOUNDED, ONE_RELEASE),
    slack="below 0.3 % of delta",
)  # fmt: skip
def once(run: ExpandingPasses) -> Profile:
    """The record keeps its place in every epoch; few places are so late that too little noise follows the last use.

    >>> run = ExpandingPasses(records=100, batch_size=1, last_batch="own", epochs=2, sensitivity=2.0, noise_std=2.0,
    ...                      step_size=0.01, loss_class="smooth", smoothness=1.0)
    >>> round(once(run).profile(1.0), 2)
    -6.13
    """
    return Profile(lambda epsilon: _positions(run, epsilon))


def _positions(run: ExpandingPasses, epsilon: float) -> float:
    """Return ln of the mean of delta_G over all places of a record."""
    plan, total = run.layout, -math.inf
    if run.ratio(plan.least_divisor) > LARGEST:
        return 0.0
    for alike in plan.positions:
        total = log_add_exp(total, _like_positions(run, alike, epsilon) + math.log(alike.records / run.records))
    return min(0.0, total + UNIT * (8.0 * abs(total) + 64.0))


def _like_positions(run: ExpandingPasses, alike: Positions, epsilon: float) -> float:
    """Return ln of the mean of delta_G over the places in like batches."""
    ratio = run.ratio(alike.divisor)
    earlier = run.earlier(ratio, run.layout.steps)

    def terms(k: Array) -> TermBounds:
        from dpcalc.numerics.normal_arrays import log_hockey_stick_up

        mu = np.minimum(np.sqrt(earlier + ratio * ratio / rooms(run.growth, k)) * (1.0 + 16.0 * UNIT), 1e100)
        logs = log_hockey_stick_up(min(epsilon, LARGEST), np.maximum(mu, 1e-100))[None]
        return TermBounds(logs, logs, np.zeros((1, len(k)), bool))

    return log_sum_decreasing_up(terms, alike.first, alike.first + alike.steps - 1) - math.log(alike.steps)
