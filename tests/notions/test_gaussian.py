"""mu-GDP against ball arithmetic: every number on its safe side, and tight."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction

import pytest
from flint import arb

from dpcalc.notions import gaussian
from dpcalc.numerics.floats import UNIT, exp_up
from tests.oracles import READINGS, ball, call, draws, exact, log_uniform, not_below, tight
from tests.oracles import gaussian as oracle

TIGHT = Fraction(1, 10**12)


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


def target(r: random.Random, mu: float) -> float:
    """ln delta from 0- to -1e6, with the delta at which epsilon becomes 0."""
    kind = r.randrange(5)
    if kind == 0:
        return -log_uniform(r, 1e-3, 1e6)
    if kind == 1:
        return math.log(log_uniform(r, 1e-300, 0.5))
    if kind == 2:
        return -log_uniform(r, 1e-300, 1.0)
    edge = gaussian.log_delta(mu=mu, epsilon=0.0)
    return min(edge * (1.0 + r.choice((0.0, r.uniform(-1, 1) * 10 ** r.uniform(-16, -1)))), -5e-324)


def log_delta_at(epsilon: float | Fraction, mu: float | Fraction) -> arb:
    return oracle.log_delta(exact(epsilon), exact(mu))


def test_log_delta() -> None:
    for _, mu, e in points("log_delta", 4000):
        found, value = gaussian.log_delta(mu=mu, epsilon=e), log_delta_at(e, mu)
        what = call(gaussian.log_delta, mu=mu, epsilon=e)
        not_below(found, value, what)
        tight(found, value, what, 1e-14, 30.0 * UNIT if found < -0.1 else 0.0)


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


def test_epsilon() -> None:
    for r, mu, _ in points("epsilon", 1500, cost=4):
        wanted = target(r, mu)
        found, what = gaussian.epsilon(mu=mu, log_delta_target=wanted), f"mu={mu!r}, log_delta_target={wanted!r}"
        assert not log_delta_at(found, mu) > ball(wanted), what
        if found > 0.0:
            # Where delta barely moves with epsilon, the room that is left is what rounding of ln delta allows.
            room = ball(64.0 * UNIT) * (abs(ball(wanted)) if wanted > -0.1 else 1 + abs(ball(wanted)))
            assert log_delta_at(exact(found) * (1 - TIGHT), mu) > ball(wanted) - room - ball(1e-322), what


def test_largest_mu_and_noise() -> None:
    for r, mu, e in points("largest_mu", 1500, cost=4):
        wanted = max(target(r, mu), -1e6)
        e = e if e < 1e12 else 1.0
        found, what = gaussian.largest_mu(epsilon=e, log_delta_target=wanted), f"epsilon={e!r}, ln delta={wanted!r}"
        if found == 0.0:
            assert e < 1e-280, what
            assert wanted < -600.0, what
            continue
        if found > 1e99:
            continue
        assert not log_delta_at(e, found) > ball(wanted), what
        room = ball(64.0 * UNIT) * (abs(ball(wanted)) if wanted > -0.1 else 1 + abs(ball(wanted)))
        assert log_delta_at(e, exact(found) * (1 + TIGHT)) > ball(wanted) - room - ball(1e-322), what
        sensitivity = log_uniform(r, 1e-6, 1e6)
        sigma = gaussian.noise_std(sensitivity=sensitivity, epsilon=e, log_delta_target=wanted)
        if math.isfinite(sigma):
            for reading in READINGS:
                value = ball(reading(sensitivity) / exact(found))
                not_below(sigma, value, what)
                tight(sigma, value, what, 1e-14)


def test_round_trip_through_the_oracle_s_own_roots() -> None:
    for mu, log_delta in ((1.0, -11.5), (0.01, -20.0), (30.0, -2.0), (1e-4, -3e3)):
        low, high = oracle.epsilon(exact(mu), exact(log_delta))
        found = gaussian.epsilon(mu=mu, log_delta_target=log_delta)
        assert low <= exact(found) <= high * (1 + TIGHT)
    for e, log_delta in ((1.0, -11.5), (0.0, -20.0), (100.0, -2.0), (1e-4, -3e3)):
        low, high = oracle.largest_mu(exact(e), exact(log_delta))
        found = gaussian.largest_mu(epsilon=e, log_delta_target=log_delta)
        assert low * (1 - TIGHT) <= exact(found) <= high


def test_renyi() -> None:
    for r in draws("renyi", 500, cost=4):
        mu, order = log_uniform(r, 1e-6, 1e6), 1.0 + log_uniform(r, 1e-9, 1e6)
        found = gaussian.renyi(mu=mu, order=order)
        value = oracle.renyi_gaussian(exact(order), exact(mu), Fraction(1))
        not_below(found, value, call(gaussian.renyi, mu=mu, order=order))
        tight(found, value, call(gaussian.renyi, mu=mu, order=order), 1e-14)


def test_monotone_in_both_arguments() -> None:
    for _, mu, e in points("monotone", 500, cost=8):
        here = gaussian.log_delta(mu=mu, epsilon=e)
        room = 64.0 * UNIT * (1.0 - here)
        assert gaussian.log_delta(mu=mu, epsilon=e * 1.001 + 1e-300) <= here + room
        assert gaussian.log_delta(mu=mu * 1.001, epsilon=e) >= here - room


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
