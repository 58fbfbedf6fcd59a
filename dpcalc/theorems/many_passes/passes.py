"""Several passes in random order with Gaussian noise: their steps, and how far these and the domain let runs part."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcalc.numerics.floats import UNIT, ratio_up, up
from dpcalc.theorems.batch_layout import Layout
from dpcalc.theorems.many_passes.repeated_allocation import Pace, rate_in_range
from dpcalc.theorems.setting import Setting, decay_rate

_NEAREST, _FARTHEST = 1e-60, 1e60  # a diameter, in uses: a smaller one counts as this, a larger one helps nobody


class Passes(NamedTuple):
    """Several passes in random order with Gaussian noise.

    Attributes:
        plan: the layout of a pass; l, the number of its steps, is ``plan.steps``.
        epochs: E.
        ratio: mu_1, the GDP parameter of one use in a full batch with no later step.
        pace: how the steps contract.
        reach: the diameter in units of a use in a full batch; inf for none.
    """

    plan: Layout
    epochs: int
    ratio: float
    pace: Pace
    reach: float = math.inf

    @classmethod
    def of(cls, run: Setting, noise_std: float, epochs: int = 1) -> Passes:
        """Return the passes of a run, with what strong convexity and the domain give."""
        plan = run.layout
        return cls(
            plan,
            epochs,
            ratio_up(run.sensitivity, plan.size * noise_std),
            pace_of(plan, run.step_size, run.smoothness, run.strong_convexity),
            reach_of(plan, run.diameter, run.step_size, run.sensitivity),
        )

    @property
    def plain(self) -> Passes:
        """The same, of which no more than 1-Lipschitz maps is used."""
        length = self.plan.steps
        return self._replace(pace=Pace(length, ((float(length), 0.0),)), reach=math.inf)

    @property
    def bare(self) -> bool:
        """Whether only 1-Lipschitz maps are used."""
        return self.pace.still and math.isinf(self.reach)


def pace_of(plan: Layout, step_size: float, smoothness: float, strong_convexity: float) -> Pace:
    """Return how the steps of a pass contract: a step divided by more than its records mixes the identity in.

    A ridge may be a part of every loss, and is then divided with it, or be added to the mean of their gradients. The
    rate is that of whichever contracts less.
    """
    pieces: list[tuple[float, float]] = []
    for alike in plan.positions:
        share = min(1.0, alike.size / alike.divisor)
        steepest = min(smoothness, up(strong_convexity + share * (smoothness - strong_convexity), 4.0))
        rate = decay_rate(step_size, steepest, strong_convexity * share)
        rate = rate_in_range(rate * (1.0 - 8.0 * UNIT))
        if pieces and pieces[-1][1] == rate:
            pieces.pop()
        pieces.append((float(alike.first + alike.steps - 1), rate))
    return Pace(plan.steps, tuple(pieces))


def reach_of(plan: Layout, diameter: float, step_size: float, sensitivity: float) -> float:
    """Return the diameter in units of a use in a full batch, rounded up; inf where it helps nobody."""
    if math.isinf(diameter) or sensitivity == 0.0:
        return math.inf
    reach = up(diameter / step_size / sensitivity * plan.size, 8.0)
    return max(reach, _NEAREST) if reach < _FARTHEST else math.inf
