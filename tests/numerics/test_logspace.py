"""Sums and differences held as logarithms."""

import math
from collections.abc import Iterator

import pytest
from flint import arb

from dpcalc.numerics import floats
from dpcalc.numerics.floats import UNIT
from tests.oracles import adaptive, ball, call, draws


def close(found: float, value: arb, units: float, floor: float = 0.0) -> bool:
    room = (abs(value) * ball(units) + ball(floor)) * ball(UNIT)
    return not abs(ball(found) - value) > room + ball(math.ulp(0.0))


def points(seed: str, high: float) -> Iterator[float]:
    yield from (1e-308, 1e-20, 0.5, math.log(2.0), 29.999999999999996, 30.0, 30.000000000000004, 700.0, high)
    for r in draws(seed, 500, cost=4):
        yield min(10.0 ** r.uniform(-300, 3), high) if r.random() < 0.5 else r.uniform(0.0, 40.0)


def test_log_expm1() -> None:
    for x in points("log_expm1", 1e300):
        true = adaptive(lambda x=x: ball(x).expm1().log() if x < 1e4 else ball(x) + (-(-ball(x)).exp()).log1p())
        assert close(floats.log_expm1(x), true, 4.0, 2.0), call(floats.log_expm1, x=x)


def test_log_exp1p() -> None:
    for y in points("log_exp1p", 740.0):
        for x in (y, -y):
            if -740.0 <= x <= 740.0:
                true = adaptive(lambda x=x: ball(x).exp().log1p())
                assert close(floats.log_exp1p(x), true, 4.0), call(floats.log_exp1p, x=x)


def test_log_one_minus_exp() -> None:
    for x in points("log_one_minus_exp", 740.0):
        if x <= 740.0:
            true = adaptive(lambda x=x: (-((-ball(x)).expm1())).log())
            assert close(floats.log_one_minus_exp(-x), true, 4.0, 2.0), call(floats.log_one_minus_exp, x=-x)


def test_sums() -> None:
    for r in draws("sums", 500, cost=4):
        logs = [
            r.uniform(-2000.0, 2000.0) if r.random() < 0.3 else r.uniform(-5.0, 5.0) for _ in range(r.randint(1, 6))
        ]
        true = adaptive(lambda logs=logs: sum((ball(x).exp() for x in logs), arb(0)).log(), bits=40)
        assert close(floats.log_sum_exp(logs), true, 4.0, 8.0), call(floats.log_sum_exp, logs=logs)
        two = adaptive(lambda logs=logs: (ball(logs[0]).exp() + ball(logs[-1]).exp()).log(), bits=40)
        assert close(floats.log_add_exp(logs[0], logs[-1]), two, 4.0, 4.0), call(floats.log_add_exp, logs=logs)


def test_edges() -> None:
    inf = math.inf
    assert floats.log_sum_exp([]) == -inf
    assert floats.log_sum_exp([-inf, -inf]) == -inf
    assert floats.log_sum_exp([0.0, inf]) == inf
    assert floats.log_add_exp(-inf, -inf) == -inf
    assert floats.log_add_exp(-inf, 3.0) == 3.0
    assert floats.log_add_exp(3.0, -inf) == 3.0
    assert floats.log_expm1(0.0) == -inf
    assert floats.log_one_minus_exp(0.0) == -inf
    assert floats.log_one_minus_exp(-inf) == 0.0
    assert floats.log_exp1p(-inf) == 0.0
    assert floats.log_exp1p(1e308) == pytest.approx(1e308)
