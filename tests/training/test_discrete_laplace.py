"""Exact integer noise: its law, its tails and its spread."""

import math
import random
from collections import Counter
from fractions import Fraction

import mpmath
import pytest

from dpcalc.training.release.discrete_laplace import deviation, draw, margin

RATES = [Fraction(1, 3), Fraction(7, 5), Fraction(1, 1), Fraction(10, 3)]


def law(z: int, rate: Fraction) -> float:
    q = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
    return float((1 - q) / (1 + q) * q ** abs(z))


@pytest.mark.parametrize("rate", RATES)
def test_draws_follow_the_law(rate: Fraction) -> None:
    below, n = random.Random(3).randrange, 6000
    seen = Counter(draw(rate, below) for _ in range(n))
    for z in range(-4, 5):
        p = law(z, rate)
        assert abs(seen[z] - n * p) <= 4.5 * math.sqrt(n * p * (1.0 - p)) + 1.0, z


def test_a_long_fraction_is_no_other_law() -> None:
    """The rate of a typed epsilon has a denominator of some fifty digits."""
    rate, below, n = Fraction(0.3) / (2 << 20), random.Random(4).randrange, 1500
    size = [abs(draw(rate, below)) for _ in range(n)]
    assert sum(size) / n == pytest.approx((2 << 20) / 0.3, rel=4.5 / math.sqrt(n))


@pytest.mark.parametrize("rate", [*RATES, Fraction(1, 100)])
@pytest.mark.parametrize("failure", [0.2, 0.05, 1e-6])
def test_margins_hold_and_are_no_wider_than_they_need(rate: Fraction, failure: float) -> None:
    k = margin(rate, failure)
    inside = mpmath.fsum(law(z, rate) for z in range(-k, k + 1))
    assert 1 - inside <= failure * (1 + 1e-9) + 1e-15
    if k > 1:
        assert 1 - mpmath.fsum(law(z, rate) for z in range(2 - k, k - 1)) > failure


@pytest.mark.parametrize("rate", RATES)
def test_the_deviation_is_that_of_the_law(rate: Fraction) -> None:
    square = mpmath.fsum(law(z, rate) * z * z for z in range(-300, 301))
    assert deviation(rate) == pytest.approx(float(mpmath.sqrt(square)), rel=1e-12)


def test_the_default_source_is_the_operating_systems() -> None:
    assert len({draw(Fraction(1, 1000)) for _ in range(40)}) > 20
