"""Thresholds of mixtures of normal laws."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from dpcalc.numerics import normal_arrays
from dpcalc.numerics.normal_arrays import Mixture, likelihood_ratio_threshold, log_density


def _bisected(p: Mixture, q: Mixture, epsilon: float) -> float:
    low, high = -1e4, 1e4
    for _ in range(80):
        middle = 0.5 * (low + high)
        above = log_density(p, middle) - log_density(q, middle) >= epsilon
        low, high = (low, middle) if above else (middle, high)
    return low


def test_the_threshold_is_where_bisection_finds_it() -> None:
    """The likelihood ratio of laws moved up increases, so that there is one crossing."""
    draw = random.Random(3)
    for _ in range(40):
        size = draw.randint(1, 12)
        weights = np.log(np.array([draw.random() ** 4 + 1e-9 for _ in range(size)]))
        moved = Mixture(weights, np.array([5.0 * draw.random() for _ in range(size)]), np.ones(size))
        unmoved = Mixture(np.zeros(1), np.zeros(1), np.ones(1))
        epsilon = 10.0 ** draw.uniform(-2.0, 2.0)
        found = likelihood_ratio_threshold(moved, unmoved, epsilon)
        assert abs(found - max(_bisected(moved, unmoved, epsilon), 0.0)) <= 2e-6 * (1.0 + abs(found))


FUNCTIONS: tuple[Callable[[float], float], ...] = (
    lambda x: math.expm1(50.0 * (x - 3.0)),
    lambda x: -math.expm1(50.0 * (3.0 - x)),
    lambda x: math.copysign(1.0, x - 3.0),
    lambda x: -math.inf if x < 3.0 else math.inf,
)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_crossings_of_flat_and_steep_functions_are_found(function: Callable[[float], float]) -> None:
    """Ends that are infinite, or of very different sizes, lead to bisection."""
    assert abs(normal_arrays._crossing(function, 0.0, 10.0, 1e-6) - 3.0) <= 2e-6
