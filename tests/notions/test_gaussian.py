"""mu-GDP against ball arithmetic: every number on its safe side, and tight."""

import math
import random
from collections.abc import Iterator
from fractions import Fraction

import pytest
from flint import arb

from dpcalc.notions import gaussian
from dpcalc.numerics.floats import exp_up
from tests.oracles import ball, call, draws, exact, log_uniform, not_below, tight
from tests.oracles import gaussian as oracle


def points(seed: str, default: int, cost: int = 1) -> Iterator[tuple[random.Random, float, float]]:
    """(generator, mu, epsilon) in every regime, the corners of cancellation more often."""
    for r in draws(seed, default, cost):
        mu = log_uniform(r, *r.choice(((1e-6, 1e6), (1e-2, 30.0), (1e-12, 1e-3), (1e-290, 1e9))))
        kind = r.randrange(6)
        if kind == 0:
            e = log_uniform(r, 1e-12, 1e4)
        elif kind == 1:
            e = 0.5 * mu * mu * (1.0 + r.uniform(-1, 1) * 10 ** r.uniform(-17, 0))
        elif kind == 2:
            e = mu * r.choice((-1.25, -1.0, 0.0, 1.0, 4.125, r.uniform(-40.0, 40.0))) + 0.5 * mu * mu
        elif kind == 3:
            e = mu * 10 ** r.uniform(-3, 3) + 0.5 * mu * mu
        elif kind == 4:
            e = 0.0
        else:
            e = log_uniform(r, 1e-300, 1e-3)
        e = max(0.0, e)
        if e / mu < 1e12:
            yield r, mu, e


def log_delta_at(epsilon: float | Fraction, mu: float | Fraction) -> arb:
    return oracle.log_delta(exact(epsilon), exact(mu))


def test_log_delta_below_zero() -> None:
    for _, mu, e in points("negative", 500, cost=4):
        if 1e-3 < e < 1e4 and mu > 1e-4:
            found, value = gaussian.log_delta(mu=mu, epsilon=-e), log_delta_at(-e, mu)
            what = call(gaussian.log_delta, mu=mu, epsilon=-e)
            not_below(found, value, what)
            tight(found, value, what, 1e-12, 1e-14)


def test_delta() -> None:
    for _, mu, e in points("delta", 500, cost=4):
        found, value = gaussian.delta(mu=mu, epsilon=e), log_delta_at(e, mu)
        what = call(gaussian.delta, mu=mu, epsilon=e)
        assert 0.0 < found <= 1.0, what
        assert found == 1.0 or not ball(found).log() < value, what
        assert found < 1e-300 or not ball(found).log() > value + ball(1e-14) * (1 + abs(value)), what


@pytest.mark.few(100)
@pytest.mark.parametrize("k", range(-3, 309, 3))
@pytest.mark.parametrize("log_delta", [-1e-300, -1e-12, -1.0, -1e6])
def test_huge_mu_is_answered(k: int, log_delta: float) -> None:
    for mu in (10.0**k, 3.7 * 10.0**k, 10.0 ** min(k + 0.5, 308.0)):
        found = gaussian.epsilon(mu=mu, log_delta_target=log_delta)
        assert found >= 0.0
        assert k < 5 or log_delta < -1e100 or found > 0.4 * min(mu, 1e150) ** 2 or found == math.inf
        for e in (0.0, 1.0, 0.5 * min(mu, 1e150) ** 2):
            assert gaussian.log_delta(mu=mu, epsilon=e) <= 0.0


@pytest.mark.parametrize("k", range(-323, 1, 17))
@pytest.mark.parametrize("log_delta", [-1e-12, -0.5, -700.0, -746.0, -1e4, -1e6])
def test_tiny_mu_is_answered(k: int, log_delta: float) -> None:
    mu = max(10.0**k, 5e-324)
    found = gaussian.epsilon(mu=mu, log_delta_target=log_delta)
    assert 0.0 <= found < 1e4
    if found == 0.0 and mu > 1e-300:
        assert not log_delta_at(0.0, mu) > ball(log_delta)


@pytest.mark.few(150)
@pytest.mark.parametrize("k", range(-323, 309, 9))
@pytest.mark.parametrize("log_delta", [-5e-324, -1e-300, -1e-12, -0.5, -11.0, -745.0, -1e6])
def test_largest_mu_of_any_epsilon(k: int, log_delta: float) -> None:
    found = gaussian.largest_mu(epsilon=max(10.0**k, 5e-324), log_delta_target=log_delta)
    assert 0.0 <= found <= 1e100


def test_limits() -> None:
    assert gaussian.log_delta(mu=math.inf, epsilon=1.0) == 0.0
    assert gaussian.log_delta(mu=0.0, epsilon=0.0) == -math.inf
    assert gaussian.delta(mu=0.0, epsilon=1.0) == 0.0
    assert gaussian.log_delta(mu=0.0, epsilon=-1.0) == pytest.approx(math.log(1.0 - math.exp(-1.0)), rel=1e-14)
    assert gaussian.epsilon(mu=math.inf, log_delta_target=-1.0) == math.inf
    assert gaussian.epsilon(mu=0.0, log_delta_target=-1e6) == 0.0
    assert gaussian.epsilon(mu=1.0, log_delta_target=0.0) == 0.0
    assert gaussian.renyi(mu=0.0, order=math.inf) == 0.0
    assert gaussian.renyi(mu=1.0, order=math.inf) == math.inf
    assert gaussian.renyi(mu=1e200, order=2.0) == math.inf
    assert gaussian.noise_std(sensitivity=1e300, epsilon=1e-300, log_delta_target=-1e6) == math.inf
    assert exp_up(-math.inf) == 0.0
    assert exp_up(-1e9) > 0.0
    assert exp_up(0.0) == 1.0
