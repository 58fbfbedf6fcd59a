"""The normal distribution's functions against ball arithmetic, at every switch between their formulas."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from dpcalc.numerics import normal, normal_arrays
from dpcalc.numerics.floats import UNIT
from tests.oracles import ball, call, draws, exact, excess
from tests.oracles import gaussian as oracle

SWITCHES = (-1.25, -1.0, -0.875, -0.125, 0.0, 0.125, 1.0, 3.0, 4.0, 4.125, 5.0, 30.0, 1e8)


def near(x: float) -> Iterator[float]:
    yield x
    up = down = x
    for _ in range(2):
        up, down = math.nextafter(up, math.inf), math.nextafter(down, -math.inf)
        yield up
        yield down


def units(found: float, value: arb) -> float:
    return abs(excess(found, value)) / UNIT


def arguments(seed: str, low: float, default: int) -> Iterator[float]:
    for switch in SWITCHES:
        yield from (u for u in near(switch) if u >= low)
    for r in draws(seed, default, cost=4):
        kind = r.randrange(4)
        if kind == 0:
            yield r.uniform(max(low, -1.25), 4.2)
        elif kind == 1:
            yield r.uniform(max(low, -1.25), 60.0)
        elif kind == 2:
            yield 10.0 ** r.uniform(-12, 9)
        else:
            yield max(low, r.choice(SWITCHES) * (1.0 + r.uniform(-1, 1) * 10 ** r.uniform(-16, -1)))


def test_mills_ratio() -> None:
    for u in arguments("mills", -1.25, 1500):
        assert units(normal.mills(u), oracle.mills(exact(u))) <= 3.0, call(normal.mills, u=u)


@pytest.mark.parametrize("k", range(-5, 17))
def test_table_is_correctly_rounded(k: int) -> None:
    value, slope = normal.MILLS_TABLE[k + 5]
    for found, true in ((value, oracle.mills(Fraction(k, 4))), (slope, oracle.mills_slope(Fraction(k, 4)))):
        assert abs(ball(found) - true) <= ball(math.ulp(found)) / 2


def test_log_phi_carries_two_doubles() -> None:
    for r in draws("log_phi", 500, cost=4):
        x = r.choice((-1, 1)) * 10.0 ** r.uniform(-3, 9)
        low = r.uniform(-0.5, 0.5) * math.ulp(x)
        true = -((ball(x) + ball(low)) ** 2) / 2 - (2 * arb.pi()).log() / 2
        assert units(normal.log_phi(x, low), true) <= 3.0, call(normal.log_phi, hi=x, lo=low)


def test_log_ndtr() -> None:
    for u in arguments("log_ndtr", -math.inf, 1000):
        for x in (u, -u):
            if -1e6 < x < 37.0:
                assert units(normal.log_ndtr(x), oracle.log_ndtr(exact(x))) <= 12.0, call(normal.log_ndtr, x=x)


def hockey_sticks(seed: str, default: int) -> Iterator[tuple[float, float]]:
    for mu in (1e-300, 1e-12, 1e-3, 0.1, 1.0, 2.0, 10.0, 1e3, 1e6):
        for x in SWITCHES[:-1]:
            e = mu * x + 0.5 * mu * mu
            yield from ((max(0.0, other), mu) for other in near(e))
    for r in draws(seed, default):
        mu = 10.0 ** r.uniform(*r.choice(((-6, 6), (-2, 1.5), (-12, -3), (-290, 9))))
        kind = r.randrange(6)
        if kind == 0:
            e = 10.0 ** r.uniform(-12, 4)
        elif kind == 1:  # eps ~ mu^2/2
            e = 0.5 * mu * mu * (1.0 + r.uniform(-1, 1) * 10 ** r.uniform(-17, 0))
        elif kind == 2:  # the switches in x
            e = mu * r.choice(SWITCHES[:-1]) * (1.0 + r.uniform(-1, 1) * 10 ** r.uniform(-17, -1)) + 0.5 * mu * mu
        elif kind == 3:  # the switch between difference and integral
            e = 2.0 * mu * mu * (1.0 + r.uniform(-1, 1) * 10 ** r.uniform(-17, -1)) + 0.5 * mu * mu
        elif kind == 4:
            e = 0.0
        else:  # ln delta down to -1e6
            e = mu * 10.0 ** r.uniform(-3, 3.2) + 0.5 * mu * mu
        e = max(0.0, e)
        if e / mu < 1e12 and mu < 1e9:
            yield e, mu


def test_log_hockey_stick_error_is_a_bound() -> None:
    for e, r in hockey_sticks("hockey", 3000):
        value = normal.log_hockey_stick(e, r)
        true = oracle.log_delta(exact(e), exact(r))
        room = ball(normal.log_hockey_stick_error(value)) + ball(math.ulp(0.0))
        assert not abs(ball(value) - true) > room, call(normal.log_hockey_stick, e=e, r=r)


def test_array_forms_are_bounds_on_either_side() -> None:
    """At every switch between series, divided differences, the difference itself and the continued fraction."""
    pairs = list(hockey_sticks("array hockey", 1500))
    edges = (1e-9, 1e-4, 3e-3, 0.05, 0.1, 0.3, 0.5)
    for r in draws("edges", 300, cost=2):
        x = r.choice((r.uniform(-1.0, 5.0), r.uniform(5.0, 40.0), normal.CELL_LAST, 10.0 ** r.uniform(1, 5)))
        mu = max(x, 1.0) * r.choice(edges) * (1.0 + r.uniform(-1, 1) * 1e-9)
        pairs.append((max(0.0, mu * x + 0.5 * mu * mu), mu))
    e, mu = (np.array(column) for column in zip(*((e, mu) for e, mu in pairs if 1e-90 < mu < 1e6), strict=True))
    above, below = normal_arrays.log_hockey_stick_up(e, mu), normal_arrays.log_hockey_stick_down(e, mu)
    for threshold, distance, high, low in zip(e.tolist(), mu.tolist(), above.tolist(), below.tolist(), strict=True):
        true = oracle.log_delta(exact(threshold), exact(distance))
        assert not true > ball(high), (threshold, distance)
        assert not true < ball(low), (threshold, distance)


def test_array_forms_at_negative_thresholds() -> None:
    pairs = [(-e, mu) for e, mu in hockey_sticks("negative", 300) if 1e-90 < mu < 1e6 and e]
    above = normal_arrays.log_hockey_stick_up(*(np.array(column) for column in zip(*pairs, strict=True)))
    for (threshold, distance), high in zip(pairs, above.tolist(), strict=True):
        true = oracle.log_delta(exact(threshold), exact(distance))
        assert not true > ball(high), (threshold, distance)
        assert not ball(high) - true > 3e-12 * abs(true).max(arb(1)), (threshold, distance)


def test_lower_bounds_where_the_place_is_a_difference_of_huge_numbers() -> None:
    """H(e, r) <= Q(x) <= e^(-x^2/2) for x = e/r - r/2 >= 0, which rational arithmetic has exactly."""
    pairs = [(1.0606e51, 4.6056e25)]
    for r in draws("huge", 300):
        distance = 10.0 ** r.uniform(8.0, 40.0)
        pairs.append((0.5 * distance * distance * (1.0 + r.choice((-1, 0, 1, 4, 64)) * 2.0**-52), distance))
    lower = normal_arrays.log_hockey_stick_down(*(np.array(column) for column in zip(*pairs, strict=True)))
    for (threshold, distance), low in zip(pairs, lower.tolist(), strict=True):
        x = Fraction(threshold) / Fraction(distance) - Fraction(distance) / 2
        assert Fraction(low) <= -(max(Fraction(0), x) ** 2) / 2, (threshold, distance)


@pytest.mark.parametrize("r", [1e10, 1e11, 1e12, 3.7e15, 1e20, 1e99, 1e101, 1e300])
@pytest.mark.parametrize("x", [-1.0, -0.5, 0.0, 0.4, 1.0])
def test_huge_distances(r: float, x: float) -> None:
    value = normal.log_hockey_stick(r * (0.5 + x * r) if x > 0.0 and r < 1e100 else max(0.0, 0.5 * r * (1.0 + x)), r)
    assert value <= 0.0


def test_far_out_values_are_upper_bounds() -> None:
    assert normal.log_hockey_stick(1.0, 1e101) == 0.0
    assert normal.log_hockey_stick(1.0, 1e-101) == -4e199
    assert normal.log_phi(1e200) == -normal.MAX
