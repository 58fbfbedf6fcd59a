"""What privacy costs: an excess risk with the run that has it."""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """A bound on the excess risk, in units of the loss, and the parameters for which it holds.

    Attributes:
        excess_risk: E F(w) - min F, or with probability 1 - ``failure_probability`` where that is given; rounded up.
        noise_std: sigma of w - eta (gradient + N(0, sigma^2)), or of the noise on the output, rounded up; None without.
        step_size: eta.
        steps: T, where it is a choice.
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
