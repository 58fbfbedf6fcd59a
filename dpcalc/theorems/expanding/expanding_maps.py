"""How far a step may drive two runs apart, what the last steps hide of it, and the conditions of bounds on such runs.

The shifted-divergence theorem asks no more of a step than how far it leaves two points z apart: at most F(z), and the
shift may be spent as z_t = F(z_(t-1)) - a_t. With s = eta Delta/b for a use of the record, F(z) is

    smooth, or convex and smooth with a long step      c z, and s more where the record is used, c > 1
    convex and Lipschitz                               sqrt(z^2 + (2 eta L)^2), and s more where the record is used
    Lipschitz only, which covers clipped gradients     z + 2 eta L, whether the record is used or not

On a domain of diameter D two runs are never further apart than that, however long they are, and the last m steps hide
D at a cost that `carried` has for each of the three. Before that, or without a domain, a use is hidden by the steps up
to the next one.

Every guarantee rounds up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpcalc.model import loss_class as loss
from dpcalc.model.algorithm import Order
from dpcalc.model.choices import LossClass
from dpcalc.model.run import Run
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import UNIT, up
from dpcalc.theorems.contraction.noisy_pass import expands_nothing
from dpcalc.theorems.contraction_powers import variance
from dpcalc.theorems.record import Condition, NotNeeded, Obstacle, Unmet, lacking, needs

RANDOM = ("shuffle-once", "rotation-epochs", "shuffled-epochs")
ALL = ("cyclic", *RANDOM, "noisy-sgd", "noisy-gd")
CLASS = "the losses are of the stated class on the domain"
MAPS = "the losses are smooth, so that every step's map is Lipschitz with a factor above 1"
LARGEST = 1e90  # a ratio beyond this one hides nothing


# --- conditions -------------------------------------------------------------------------------------------------------


def _expands(run: Run) -> Obstacle | None:
    if run.loss_class == LossClass.CONVEX_SMOOTH:
        if run.smoothness is None or run.step_size is None:
            return lacking(run, "step_size", "smoothness")
        if expands_nothing(LossClass.CONVEX_SMOOTH, run.step_size, run.smoothness):
            return NotNeeded(
                "is for steps that may drive two runs apart, and these do not",
                "see the bounds for convex smooth losses",
            )
    return None


def _mild_regulariser(run: Run) -> Obstacle | None:
    weight, eta = run.regularisation, run.step_size
    if not weight or eta is None or eta * weight <= 1.0 - 1e-12:
        return None
    return Unmet("step_size times regularisation exceeds 1", f"use --step-size <= {0.999 / weight:.6g}")


def hides_by_place(run: Run) -> Obstacle | None:
    """Return an obstacle where a record is as badly off at every place of a pass."""
    bounded = run.algorithm.order is Order.SHUFFLE and run.diameter is not None and run.displacement is not None
    smooth = run.loss_class in loss.LIPSCHITZ_MAPS and run.smoothness is not None
    if bounded or smooth or run.loss_class is None:
        return None
    if run.records and run.batch_size and run.records % run.batch_size:
        return None
    if run.algorithm.order is not Order.SHUFFLE:
        return NotNeeded("is for smooth losses, or a short last batch", "give --smoothness")
    return NotNeeded("is for smooth losses, a bounded domain, or a short last batch", "give --smoothness or --diameter")


def _length_known(run: Run) -> Obstacle | None:
    return None if run.epochs is not None or run.steps is not None else needs("epochs")


EXPANDS = Condition("loss_class is smooth, convex or lipschitz, or step_size > 2/smoothness", _expands)
MILD = Condition("step_size regularisation <= 1", _mild_regulariser)
PLACED = Condition("the losses are smooth, or the last batch is short", hides_by_place)
LENGTH = Condition("epochs or steps is known", _length_known)


# --- what the last steps hide -----------------------------------------------------------------------------------------


def growth_of(
    loss_class: LossClass, step_size: float, smoothness: float | None, strong_convexity: float
) -> float | None:
    """Return the growth ln c >= 0 of a step's Lipschitz factor, rounded up; None where the maps have none."""
    rate = loss.rate(
        loss_class=loss_class, step_size=step_size, smoothness=smoothness, strong_convexity=strong_convexity
    )
    return None if rate is None else max(0.0, -rate)


def grid() -> Iterator[int]:
    """Yield the whole numbers of at most three binary digits, up to 1e18: every count of steps is near one of them."""
    yield from (1, 2, 3)
    for power in range(58):
        yield from (j << power for j in (4, 5, 6, 7))


def room(growth: float, steps: int) -> float:
    """Return 1 + c^-2 + ... + c^(-2 (steps-1)), rounded down."""
    return variance(growth if growth > 1e-200 else 0.0, steps) * (1.0 - 64.0 * UNIT)


def rooms(growth: float, steps: Array) -> Array:
    """Return `room` of an array."""
    if growth <= 1e-200:
        return steps * (1.0 - 64.0 * UNIT)
    variances: Array = np.expm1(-2.0 * growth * steps) / math.expm1(-2.0 * growth) * (1.0 - 64.0 * UNIT)
    return variances


def carried(reach: float, growth: float, steps: int) -> float:
    """Return mu of the diameter hidden by so many steps whose maps are c-Lipschitz, c >= 1, rounded up."""
    if growth > 700.0:
        return math.inf
    return up(reach * math.exp(growth) / math.sqrt(room(growth, steps)), 16.0 + 2.0 * growth)


def harmonic(terms: int) -> float:
    """Return 1 + 1/2 + ... + 1/terms, rounded up."""
    if terms <= 64:
        return up(math.fsum(1.0 / j for j in range(1, terms + 1)), 2.0)
    return up(math.log(terms) + 0.5772156649015329 + 0.5 / terms, 8.0)


def carried_convex(reach: float, push: float, steps: int) -> float:
    """Return mu of the diameter hidden by so many steps of convex losses, push = 2 L/sigma: sqrt(D'^2/m + push^2 H_m).

    Rounded up.
    """
    return up(math.hypot(reach / math.sqrt(steps), push * math.sqrt(harmonic(steps))), 16.0)


def carried_anyhow(reach: float, push: float) -> float:
    """Return the least over m of D'/sqrt(m) + push sqrt(m): the diameter, and what m steps add; rounded up."""
    best = min(reach / push if push else math.inf, 1e15)
    tried = {max(1, math.floor(best)), max(1, math.ceil(best))}
    return min(up(reach / math.sqrt(m) + push * math.sqrt(m), 16.0) for m in tried)
