"""Several passes of maps that may drive two runs apart: smooth losses that need not be convex, and Lipschitz ones.

Here are the bounds for any order: composition, and on a domain what the last steps hide. `expanding_maps` has how far a
step drives two runs apart. Every guarantee rounds up.
"""

from __future__ import annotations

import functools
import math

from dpcalc.model.choices import LossClass
from dpcalc.notions.guarantee import Gdp
from dpcalc.numerics.floats import up
from dpcalc.numerics.quotients import quotient_up
from dpcalc.theorems.batch_layout import layout
from dpcalc.theorems.conditions import DOMAIN, GAUSSIAN, GAUSSIAN_NOISE, ONE_RELEASE
from dpcalc.theorems.expanding.expanding_maps import (
    ALL,
    CLASS,
    EXPANDS,
    LENGTH,
    MILD,
    RANDOM,
    carried,
    carried_anyhow,
    carried_convex,
    grid,
    growth_of,
)
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import BATCHES, GAUSSIAN_STEP, Setting

_USED_ONCE = "each record is used once in every pass, and orders are drawn without looking at the data"


class RandomOrders(Setting):
    """Several passes in random order with Gaussian noise, of losses of which nothing is known but their gradients."""

    def ratio(self, size: int) -> float:
        """Return r = Delta/(b sigma) of a use in a batch divided by this size, rounded up."""
        return quotient_up((self.sensitivity,), (float(size), self.noise_std))


class BoundedSteps(Setting):
    """Steps on a bounded domain: passes, or a number of steps."""

    @functools.cached_property
    def uses(self) -> tuple[int, int, int]:
        """How often the record is used at most, by how much its smallest batch is divided, and steps to the next."""
        size = self.records if self.batch_size is None else self.batch_size
        if self.steps is not None:
            return self.steps, min(size, self.records), 1
        plan = layout(self.records, size, self.last_batch)
        return self.epochs or 1, plan.least_divisor, plan.steps

    @functools.cached_property
    def reach(self) -> float:
        """D/(eta sigma), rounded up."""
        return quotient_up((self.diameter,), (self.step_size, self.noise_std))

    @functools.cached_property
    def growth(self) -> float | None:
        """The growth ln c >= 0 of a step's Lipschitz factor, rounded up; None where the maps have none."""
        return growth_of(self.loss_class, self.step_size, self.smoothness, self.strong_convexity)


@theorem(
    "expanding.composition",
    title="Random orders, composed",
    needs=(*BATCHES, "epochs", *GAUSSIAN_STEP, "loss_class"),
    algorithms=RANDOM,
    reference="dong2022",
    locator="composition of Gaussian mechanisms, one a pass",
    formula="mu = (Delta/(b sigma)) sqrt(E), b the smallest batch",
    conditions=(EXPANDS,),
    assumes=(
        "order and iterates may all be public",
        _USED_ONCE,
        GAUSSIAN,
        "no convexity, no smoothness, any step size",
    ),
    public_sums=True,
)
def composition(run: RandomOrders) -> Gdp:
    """Whatever the losses and the order, the noise of its own steps hides a record, and that composes.

    >>> run = RandomOrders(records=10, batch_size=5, last_batch="own", epochs=9, sensitivity=2.0, noise_std=4.0,
    ...                    loss_class=LossClass.LIPSCHITZ)
    >>> round(composition(run).mu, 12)
    0.3
    """
    return Gdp(up(run.ratio(run.layout.least_divisor) * math.sqrt(run.epochs), 4.0))


def _steps_to_hide(run: BoundedSteps) -> float:
    """Return about the number of sampled steps from which the diameter bounds less than composition; no bound."""
    from dpcalc.theorems.sampled import noisy_sgd

    endless = run.changed(steps=10**15)
    return noisy_sgd.steps_to_reach(run.part(noisy_sgd.SampledSteps), domain(endless).mu)


@theorem(
    "expanding.domain",
    title="The diameter hidden by the last steps, maps that may expand",
    needs=(
        "records", "sensitivity", "lipschitz", "noise_std", "step_size", "diameter", "loss_class", "smoothness?",
        "strong_convexity?", "batch_size?", "last_batch?", "epochs?", "steps?",
    ),
    algorithms=ALL,
    reference="dpcalc",
    locator="restart from the diameter, with the shift recursion of the loss class",
    formula="least of r sqrt(uses), of min_m D/(eta sigma sqrt(m)) + (2 L/sigma) sqrt(m), and of min_m sqrt(A_m) + "
    "r sqrt(uses in m steps); A_m = (D/(eta sigma))^2/(c^-2 + ... + c^(-2m)) for smooth losses, "
    "(D/(eta sigma))^2/m + (2 L/sigma)^2 (1 + 1/2 + ... + 1/m) for convex ones",
    conditions=(GAUSSIAN_NOISE, EXPANDS, MILD, LENGTH),
    assumes=(CLASS, DOMAIN, GAUSSIAN, "order and batches may be public, and are drawn without looking at the data",
             ONE_RELEASE),
    steps_to_hide=_steps_to_hide,
)  # fmt: skip
def domain(run: BoundedSteps) -> Gdp:
    """Two runs are never further apart than the diameter, so that only the last steps count, however many there are,
    even where every step drives the runs further apart.

    >>> run = BoundedSteps(records=1, sensitivity=2.0, lipschitz=1.0, noise_std=1.0, step_size=0.5, diameter=1.0,
    ...                    loss_class=LossClass.LIPSCHITZ, steps=10**12)
    >>> round(domain(run).mu, 12)
    4.0
    """
    times, size, period = run.uses
    one = quotient_up((run.sensitivity,), (float(size), run.noise_std))
    push = quotient_up((2.0, run.lipschitz), (run.noise_std,))
    least = min(one * math.sqrt(times), carried_anyhow(run.reach, push))
    convex = run.loss_class in (LossClass.CONVEX, LossClass.CONVEX_SMOOTH)
    for base in grid():
        for steps in {base, base * period}:
            own = one * math.sqrt(-(-steps // period))
            if run.growth is not None:
                least = min(least, carried(run.reach, run.growth, steps) + own)
            if convex:
                least = min(least, carried_convex(run.reach, push, steps) + own)
    return Gdp(up(least, 16.0))
