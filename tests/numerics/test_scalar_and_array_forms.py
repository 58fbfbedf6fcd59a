"""Scalar and array forms of one formula agree within the sum of their stated errors, at thousands of points.

They are not the same code, because the exponential and the logarithm of numpy and of the standard library differ in the
last place; each form is checked against ball arithmetic elsewhere, and here against the other.
"""

import math

import numpy as np

from dpcalc.notions import optimal_composition
from dpcalc.numerics import binomial, floats, normal, normal_arrays
from dpcalc.numerics.floats import UNIT
from tests.oracles import draws, log_uniform, whole

TABLE = [normal.TABLE_LAST, *(0.25 * k + 0.125 for k in range(-5, 17))]


def around(points: list[float]) -> list[float]:
    return [y for x in points for y in (math.nextafter(x, -9.0), x, math.nextafter(x, 9.0))]


def test_mills_ratio() -> None:
    drawn = [
        r.choice((r.uniform(-1.25, 4.3), r.uniform(4.0, 60.0), log_uniform(r, 1e-12, 1e7)))
        for r in draws("mills", 4000)
    ]
    u = np.array([x for x in around(TABLE) if x >= -1.25] + drawn)
    for x, value in zip(u.tolist(), normal_arrays.mills(u).tolist(), strict=True):
        assert abs(value / normal.mills(x) - 1.0) <= (3.0 + 4.0) * UNIT, x


def test_upper_tail_of_the_normal_law() -> None:
    u = np.array(
        [
            r.choice((r.uniform(-37.0, 37.0), r.uniform(-2.0, 2.0), log_uniform(r, 1.0, 1e6)))
            for r in draws("tail", 4000)
        ]
    )
    for x, value in zip(u.tolist(), normal_arrays.log_upper_tail(u).tolist(), strict=True):
        scalar = normal.log_ndtr(-x)
        assert abs(value - scalar) <= 8.0 * UNIT * (1.0 + x * x) + 12.0 * UNIT * abs(scalar), x


def test_hockey_stick() -> None:
    """The array form rounds up by what it states; the scalar form is to nearest, within its stated error."""
    pairs = []
    for r in draws("hockey stick", 4000):
        d = log_uniform(r, *r.choice(((1e-6, 1e6), (1e-2, 30.0), (1e-12, 1e-3))))
        e = r.choice((0.0, log_uniform(r, 1e-9, 1e3), d * r.uniform(0.0, 40.0) + 0.5 * d * d))
        pairs.append((e, d))
    e, d = (np.array(column) for column in zip(*pairs, strict=True))
    for (threshold, distance), value in zip(pairs, normal_arrays.log_hockey_stick_up(e, d).tolist(), strict=True):
        scalar = normal.log_hockey_stick(threshold, distance)
        error = normal.log_hockey_stick_error(scalar)
        x = threshold / distance - 0.5 * distance
        size = (1.0 + threshold / distance + distance) * (abs(x) + 2.0) + abs(scalar)
        assert scalar - error <= value <= scalar + error + 2.0**-49 * size, (threshold, distance)


def test_logarithms_of_sums_and_differences() -> None:
    x = np.array(
        [
            -r.choice((log_uniform(r, 1e-18, 1.0), r.uniform(0.5, 1.0), log_uniform(r, 1.0, 800.0)))
            for r in draws("ln(1-e^x)", 4000)
        ]
    )
    for a, value in zip(x.tolist(), normal_arrays.log_one_minus_exp(x).tolist(), strict=True):
        scalar = floats.log_one_minus_exp(a)
        assert abs(value - scalar) <= 8.0 * UNIT * (1.0 + abs(scalar)), a
    for r in draws("ln sum", 400):
        logs = [r.uniform(-50.0, 3.0) for _ in range(whole(r, 1, 40))]
        assert abs(normal_arrays.log_sum_exp(np.array(logs)) - floats.log_sum_exp(logs)) <= 64.0 * UNIT * 60.0
    assert normal_arrays.log_sum_exp(np.array([])) == floats.log_sum_exp([]) == -math.inf


def test_stirling() -> None:
    n = [*range(1, 40), *(whole(r, 1, 10**15) for r in draws("stirling", 4000))]
    for k, value in zip(n, binomial._stirlings(np.array(n, float)).tolist(), strict=True):
        if k >= 16:
            assert value == binomial._stirling(k), k
        else:  # ln k! and what is subtracted from it are below 30
            assert abs(value - binomial._stirling(k)) <= 30.0 * 8.0 * UNIT, k
        if k > 1000:
            assert abs(value - optimal_composition._stirling_tail(float(k))) <= 1e-18 + UNIT * value, k


def test_deviance() -> None:
    t = np.array(
        [
            r.choice((r.uniform(-1.0, 1.0), r.uniform(-0.15, 0.15), log_uniform(r, 1e-9, 1e3)))
            for r in draws("deviance", 4000)
        ]
    )
    for x, value in zip(t.tolist(), binomial._deviances(t).tolist(), strict=True):
        scalar = optimal_composition._deviance(x)
        # Past the series the two terms cancel to t^2/2, about 1/200 of the first.
        assert abs(value - scalar) <= (16.0 if abs(x) < 0.1 else 1024.0) * UNIT * scalar, x
