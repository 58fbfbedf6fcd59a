"""A step, as every engine takes it: one run, and many side by side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpcalc.model.algorithm import Release
from dpcalc.training.run.orders import Step
from dpcalc.training.run.plan import Plan

Array = NDArray[np.float64]
Move = Callable[[Array], Array]
"""From an iterate to what a step adds to it: the step size times minus the noisy gradient, the regulariser apart."""


class Kernel:
    """The iterates of one run, or of several that take their steps together.

    Attributes:
        weights: shape (d,), or (d, m) of m runs; changed in place.
        unprojected: the iterate before its projection; None unless that is kept.
        total, count: the sum of the iterates whose mean is wanted, and how many they are.
    """

    def __init__(self, plan: Plan, regularisation: float, weights: Array, *, keep_unprojected: bool = False) -> None:
        self.plan, self.regularisation, self.weights = plan, regularisation, weights
        self.unprojected = weights if keep_unprojected else None
        self.total, self.count = np.zeros_like(weights), 0
        self._runs = weights.T  # the same memory, the entries of a run last
        self._averages_starts = plan.release is Release.AVERAGE

    def take(self, step: Step, move: Move) -> None:
        """Take a step: w becomes Pi(w - eta lambda w b/B + move(w)), with b records in a batch of divisor B."""
        plan, w = self.plan, self.weights
        if self._averages_starts:
            self._add()
        moved = move(w)
        if self.regularisation:
            w *= 1.0 - plan.step_size_at(step.number) * (self.regularisation * step.size / step.divisor)
        w += moved
        self.end(step.number + 1)

    def end(self, steps: int) -> None:
        """Project the iterate after so many steps, and add it to the mean where it belongs there."""
        if self.unprojected is not None:
            self.unprojected = self.weights.copy()
        self.plan.domain.project(self._runs)
        if self.plan.tail and self.plan.averages(steps):
            self._add()

    def _add(self) -> None:
        self.total += self.weights
        self.count += 1

    @property
    def mean(self) -> Array:
        """The mean of the iterates that are averaged, shape (d,) or (m, d)."""
        mean: Array = self.total.T / self.count
        return mean


def plain_move(descent: Move, noise: Array, factor: float, w: Array) -> Array:
    """Return factor times a sum of descents, plus noise, in plain doubles.

    Args:
        descent: from w to the sum of minus the gradients, which may be overwritten.
        noise: with its scale.
        factor: the step size over the divisor of the batch.
        w: the iterate.
    """
    moved = descent(w)
    moved *= factor
    moved += noise
    return moved
