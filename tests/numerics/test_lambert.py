"""The enclosures of the Lambert function hold what they enclose, and little more."""

import math

import mpmath
import pytest
from flint import arb

from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.roots import lambert_w_of_exp
from tests.oracles import ball, call, draws, exact

LEAST = math.ulp(0.0)


def check_log(log_z: float) -> None:
    """w -> w + ln w increases, so that its value at either end decides."""
    low, high = lambert_w_of_exp(log_z)
    what, target = call(lambert_w_of_exp, log_z=log_z), ball(exact(log_z))
    assert 0.0 <= low < high < math.inf, what
    assert low == 0.0 or ball(low) + ball(low).log() < target, what
    assert ball(high) + ball(high).log() > target, what
    assert high - low <= 28.0 * UNIT * low + 3.0 * LEAST, what


AROUND_SWITCHES = [
    x + sign * step
    for x in (0.0, 1.0, math.e, math.log(1e-17), -708.4, -745.13)
    for sign in (-1.0, 1.0)
    for step in (0.0, 1e-16, 1e-13, 1e-9, 1e-3)
]


@pytest.mark.parametrize("log_z", AROUND_SWITCHES)
def test_lambert_at_its_switches(log_z: float) -> None:
    check_log(log_z)


@pytest.mark.parametrize("log_z", [-1e300, -1e9, -746.0, 2.0, 100.0, 709.0, 5000.0, 1e5, 1e9, 1e17, 1e100, 1e300])
def test_lambert_far_out(log_z: float) -> None:
    check_log(log_z)


def test_lambert() -> None:
    for r in draws("lambert", 3000):
        check_log(r.choice((r.uniform(-800.0, 800.0), r.uniform(-45.0, 5.0), math.exp(r.uniform(0.0, 690.0)))))


def test_lambert_underflows_to_the_least_double() -> None:
    assert lambert_w_of_exp(-800.0) == (0.0, LEAST)


def test_lambert_of_a_published_logarithm() -> None:
    low, high = lambert_w_of_exp(5000.0)
    assert ball(low) < arb("4991.4845113582317939563456889933") < ball(high)


def test_lambert_against_mpmath() -> None:
    with mpmath.workdps(60):
        for r in draws("mpmath", 200, cost=10):
            log_z = r.uniform(-700.0, 2000.0)
            low, high = lambert_w_of_exp(log_z)
            value = mpmath.lambertw(mpmath.exp(mpmath.mpf(log_z))).real
            assert low < value < high, call(lambert_w_of_exp, log_z=log_z)


@pytest.mark.parametrize("log_z", [math.nan, math.inf, -math.inf, 1.1e300])
def test_lambert_refuses(log_z: float) -> None:
    with pytest.raises(ValueError, match="log_z"):
        lambert_w_of_exp(log_z)
