"""Where to look for the noise, the steps or the rate of sampled steps that meet a budget: no bounds.

The central limit theorem has the composition of many steps near a Gaussian mechanism whose mu^2 is the sum of the
variances of their losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from dpcalc.model.choices import Adjacency, Sampling
from dpcalc.model.run import Run
from dpcalc.notions import gaussian
from dpcalc.theorems.sampled.noisy_sgd import use_cost

_LEAST_COST = 1e-300  # of a step: a quotient by it is still finite


class _Steps(NamedTuple):
    """Steps that may cost ``budget`` together: the square of a GDP parameter."""

    run: Run
    budget: float

    @property
    def draws_a_size(self) -> bool:
        """Whether every batch has one size: then another record makes room where the record is in."""
        return self.run.sampling in (Sampling.FIXED, Sampling.WITH_REPLACEMENT)

    @property
    def apart(self) -> float:
        """How far a use takes two sums apart, in clipping norms."""
        return 2.0 if self.run.adjacency == Adjacency.REPLACE_ONE or self.draws_a_size else 1.0

    def cost(self, mu: float, rate: float) -> float:
        """Return about the variance of the loss of a step."""
        return use_cost(mu, rate) if self.draws_a_size else _likely_cost(mu, self.apart, rate)

    def noise_multiplier(self) -> float | None:
        """Return about the least noise multiplier."""
        rate, steps = self.run.sample_rate, self.run.steps
        if rate is None or steps is None:
            return None
        return self.apart / _largest(lambda mu: steps * self.cost(mu, rate), self.budget, 1e-6, 20.0)

    def noise_std(self) -> float | None:
        """Return about the least noise on the mean gradient."""
        run, noise = self.run, self.noise_multiplier()
        return noise * (run.clip / run.batch_size if run.clip and run.batch_size else 1.0) if noise else None

    def steps(self) -> float | None:
        """Return about the largest number of steps."""
        noise, rate = self.run.noise_multiplier, self.run.sample_rate
        if noise is None or rate is None:
            return None
        return self.budget / max(self.cost(self.apart / noise, rate), _LEAST_COST)

    def epochs(self) -> float | None:
        """Return about the largest number of epochs."""
        steps, rate = self.steps(), self.run.sample_rate
        return None if steps is None or rate is None else steps * rate

    def sample_rate(self) -> float | None:
        """Return about the largest rate."""
        noise, steps = self.run.noise_multiplier, self.run.steps
        if noise is None or steps is None:
            return None
        return _largest(lambda rate: steps * self.cost(self.apart / noise, rate), self.budget, 1e-12, 1.0)


_LIKELY: dict[str, Callable[[_Steps], float | None]] = {
    "noise_multiplier": _Steps.noise_multiplier, "noise_std": _Steps.noise_std, "steps": _Steps.steps,
    "epochs": _Steps.epochs, "sample_rate": _Steps.sample_rate,
}  # fmt: skip


def likely(run: Run, unknown: str, *, epsilon: float, log_delta: float) -> float | None:
    """Return about the value of the unknown that meets the budget; None for no idea."""
    mu = gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta) / (run.group_size or 1)
    return _LIKELY[unknown](_Steps(run, mu * mu)) if unknown in _LIKELY else None


def _likely_cost(mu: float, apart: float, rate: float) -> float:
    """Return about the variance of the loss of a step that has the record with a probability of ``rate``.

    With L the likelihood ratio of a use, it is that of rate (L - 1) where the record is left out, and where it is
    replaced by another one that of rate (L - L'), L' the mirror image.
    """
    square = min((mu / apart) ** 2, 600.0)
    spread = math.expm1(square) if apart == 1.0 else 4.0 * math.sinh(square)
    return min(rate * rate * spread, mu * mu)


def _largest(cost: Callable[[float], float], budget: float, low: float, high: float) -> float:
    """Return about the largest argument of a growing function with a value of at most ``budget``."""
    while high > 1.0001 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cost(middle) <= budget else (low, middle)
    return low
