"""Upper bounds on the excess risk, with the run that they hold for."""

from __future__ import annotations

import math
from typing import NamedTuple


class Risk(NamedTuple):
    """A bound on the excess risk, in units of the loss, and the parameters for which it holds.

    Attributes:
        excess_risk: E F(w) - min F, or with probability 1 - ``failure_probability`` where that is given; rounded up.
        noise_std: sigma of w - eta (gradient + N(0, sigma^2)), or of output noise, rounded up; None without noise.
        step_size: eta.
        steps: T, where the bound chooses it.
        failure_probability: None for a bound in expectation.
        quantity: ``excess_risk`` of the law the records are drawn from; ``empirical_excess_risk`` of their own mean
            loss; ``smoothing_error``, what smoothing adds.
    """

    excess_risk: float
    noise_std: float | None = None
    step_size: float | None = None
    steps: int | None = None
    failure_probability: float | None = None
    quantity: str = "excess_risk"


NO_BOUND = Risk(math.inf)
"""The result where a theorem does not apply or no noise suffices."""
EMPIRICAL = "empirical_excess_risk"
