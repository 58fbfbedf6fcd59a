"""One fixed-order pass against the formulas in ball arithmetic, read at the doubles and at the decimals typed."""

# ruff: noqa: B023, E731 (every lambda is called before its loop moves on)
from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from flint import arb

from dpcalc.notions import conversions, gaussian
from dpcalc.theorems.one_pass import iteration, random_stop
from tests.formulas import evaluated
from tests.oracles import (
    READINGS,
    adaptive,
    ball,
    call,
    draws,
    exact,
    log_uniform,
    not_below,
    position,
    tight,
    whole,
)
from tests.oracles import gaussian as oracle_gaussian
from tests.oracles import iteration as oracle

N = 10**15


def number(r: random.Random, low: float = 1e-6, high: float = 1e6) -> float:
    """A decimal with few digits, a full double, or a short binary fraction whose shortest decimal is not it."""
    kind = r.randrange(4)
    return r.randint(1, 2**20 - 1) / 2 ** r.randint(0, 20) if kind == 0 else log_uniform(r, low, high)


def one_pass(r: random.Random, batches: bool = True) -> dict[str, Any]:
    n = whole(r, 1, N)
    b = r.choice((1, r.randint(1, 7), whole(r, 1, n))) if batches else 1
    found = {"records": n, "index": position(r, n), "batch_size": b, "sensitivity": number(r), "noise_std": number(r)}
    if not batches:
        del found["batch_size"]
    return found


def order_of(r: random.Random) -> float:
    return r.choice((1.0, 2.0, float(r.randint(2, 64)), 1.0 + 10 ** r.uniform(-9, 0), log_uniform(r, 1.1, 1e6)))


def compare(function: Callable[..., float], given: dict[str, Any], formula: Callable[[Any], Any], room: float) -> None:
    """Never below the formula at either reading of the inputs, and within ``room`` of it."""
    found, what = evaluated(function, **given), call(function, **given)
    for reading in READINGS:
        value = formula(reading)
        value = value if isinstance(value, arb) else ball(value)
        not_below(found, value, what)
        if found > 1e-290 and math.isfinite(found):
            tight(found, value, what, room)


def test_mu_of_short_numbers_is_exact_where_it_can_be() -> None:
    for n, s, sigma, expected in ((100, 2.0, 1.0, 0.2), (1, 2.0, 4.0, 0.5), (4, 3.0, 1.5, 1.0)):
        found = evaluated(iteration.pnsgd, records=n, index=1, batch_size=1, sensitivity=s, noise_std=sigma)
        assert found == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("steps", [2, 10, 10**3, 10**6, 10**9, 10**12, 10**15])
@pytest.mark.parametrize("eta", [0.1, 1.0 - 1e-7, 0.9999999999999999, 1.0, 1.5, 1.9999, 2.0 - 1e-12, 2.0 - 4e-16])
@pytest.mark.parametrize("beta", [1.0, 0.7, 3.0])
def test_contraction_at_its_switches(steps: int, eta: float, beta: float) -> None:
    for m in (beta, beta / 2, beta * 1e-9):
        curved = {"step_size": eta / beta, "smoothness": beta, "strong_convexity": m}
        if any(of(curved["step_size"]) * of(beta) > 2 for of in READINGS):
            continue
        given = {"records": steps, "index": 1, "batch_size": 1, "sensitivity": 2.0, "noise_std": 0.3}
        found, what = (
            evaluated(iteration.pnsgd_contraction, **given, **curved),
            call(iteration.pnsgd_contraction, **given, **curved),
        )
        for of in READINGS:
            c = oracle.contraction(*(of(x) for x in curved.values()))
            if c == 0:
                assert found > 0.0
            elif (steps - 1) * -math.log(max(float(c), 1e-300)) < 600.0:
                value = oracle.contraction_mu(steps, 1, 1, of(2.0), of(0.3), *(of(x) for x in curved.values()))
                not_below(found, value, what)


def test_domain_of_the_last_step_says_nothing() -> None:
    curved = {"step_size": 0.5, "smoothness": 1.0, "strong_convexity": 0.5}
    given = {"records": 7, "index": 7, "batch_size": 1, "noise_std": 1.0, "diameter": 1.0}
    assert evaluated(iteration.pnsgd_domain, **given, **curved) == math.inf


def rational_mu(n: int, i: int, s: Fraction, sigma: Fraction) -> Fraction:
    """s/(sigma sqrt(n-i+1)) to 300 bits, rounded down."""
    square = (s / sigma) ** 2 / (n - i + 1)
    shift = 600 + 2 * abs(square.denominator.bit_length() - square.numerator.bit_length())
    return Fraction(math.isqrt(square.numerator * 2**shift // square.denominator), 2 ** (shift // 2))


def informative(r: random.Random) -> tuple[int, int, float, float, float]:
    """(n, i, Delta, sigma, epsilon) for which delta is neither 1 nor hopelessly small."""
    n = whole(r, 1, N)
    i = position(r, n)
    s = number(r)
    sigma = s / math.sqrt(r.choice((1, n - i + 1))) * 10 ** r.uniform(-1.5, 2)
    e = r.choice((0.0, log_uniform(r, 1e-6, 1.0), log_uniform(r, 1e-2, 30.0)))
    return n, i, s, sigma, e


def test_skip_with_probability_almost_one() -> None:
    for n in (10**3, 10**9, 10**15 - 1, 10**15):
        for missing in (0, 1, 2, 1000):
            i = n // 2 + 1 - missing
            if i >= 1:
                found = evaluated(random_stop.skip, records=n, index=i, sensitivity=1e9, noise_std=1.0, epsilon=0.0)
                value = adaptive(lambda n=n, i=i: ball(oracle.used(n, i)).log())
                mu = rational_mu(n, i, Fraction(10**9), Fraction(1))
                if mu > 100:
                    not_below(found, value, f"skip_log_delta n={n} i={i}")


def test_skip_epsilon_inverts_the_profile() -> None:
    for r in draws("skip_epsilon", 300, cost=20):
        n, i, s, sigma, _ = informative(r)
        target = -log_uniform(r, 1e-2, 1e3)
        given = {"records": n, "index": i, "sensitivity": s, "noise_std": sigma}
        e = random_stop.skip(iteration.SinglePass(**given)).epsilon(target).value
        what = f"{given!r}, log_delta={target!r}"
        for of in READINGS:
            mu = rational_mu(n, i, of(s), of(sigma))
            value = oracle_gaussian.log_delta(exact(e), mu) + ball(oracle.used(n, i)).log()
            assert not value > ball(target), what


@pytest.mark.parametrize("e", [100.0, 300.0, 1000.0, 1e4])
@pytest.mark.parametrize("k", [70, 90, 300])
def test_stop_with_little_noise(e: float, k: int) -> None:
    given = {"records": 4 * k, "index": 1, "sensitivity": math.sqrt(2.0 * e * k), "noise_std": 1.0, "epsilon": e}
    value = oracle.stop_log_delta(4 * k, 1, exact(given["sensitivity"]), Fraction(1), exact(e))
    not_below(evaluated(random_stop.stop, **given), value, call(random_stop.stop, **given))
    tight(evaluated(random_stop.stop, **given), value, call(random_stop.stop, **given), 1e-12, 1e-13)


def test_stop_rdp_and_its_simple_forms() -> None:
    for r in draws("stop_rdp", 400, cost=15):
        given = {**one_pass(r, batches=False), "order": order_of(r)}
        a = given["order"]
        if r.random() < 0.7:
            given["noise_std"] = given["sensitivity"] * math.sqrt(
                a * max(a - 1.0, 1e-3) / 2 / log_uniform(r, 1e-6, 1e3)
            )
        n, i, s, sigma, order = given.values()
        compare(random_stop.stop_rdp, given, lambda of: oracle.stop_rdp(n, i, of(s), of(sigma), exact(order)), 1e-12)
        simple = evaluated(random_stop.stop_harmonic, **given)
        if (a - 1.0) * a * (s / sigma) ** 2 / 2 < 0.999:
            formula = lambda of: oracle.stop_harmonic_rdp(n, i, of(s), of(sigma), of(order))
            compare(random_stop.stop_harmonic, given, formula, 1e-13)
            assert evaluated(random_stop.stop_rdp, **given) <= simple * (1.0 + 1e-11)
            worst = evaluated(random_stop.stop_rdp, **{**given, "index": 1})
            linear = evaluated(random_stop.stop_linear, records=n, sensitivity=s, noise_std=sigma, order=order)
            assert worst <= linear * (1.0 + 1e-11)
        elif (a - 1.0) * a * (s / sigma) ** 2 / 2 > 1.001:
            assert simple == math.inf


@pytest.mark.parametrize("n", [1, 2, 3, 10, 64, 65, 1000, 12345, 10**9, 10**15])
def test_stop_constant(n: int) -> None:
    found, value = random_stop.stop_constant(records=n), oracle.stop_constant(n)
    not_below(found, value, f"C_{n}")
    tight(found, value, f"C_{n}", 1e-12)
    if n >= 3:
        assert found <= 2.0 * math.log(n)


def test_mixture_factor() -> None:
    for r in draws("mixture", 200, cost=20):
        c = log_uniform(r, 1e-9, 100.0)
        found, what = random_stop.mixture_factor(largest=c), call(random_stop.mixture_factor, largest=c)
        value = adaptive(lambda c=c: ball(c).expm1() / ball(c))
        not_below(found, value, what)
        tight(found, value, what, 1e-14)


@pytest.mark.parametrize("log_delta", [-0.01, -0.11, -0.5, -1.0, -5.0, -11.5, -50.0, -690.0, -1e4, -1e5])
def test_classic_range(log_delta: float) -> None:
    found = conversions.epsilon_max(log_delta=log_delta)
    low, high = oracle.classic_epsilon_max(exact(log_delta))
    assert exact(found) <= high
    assert exact(found) >= low * (1 - Fraction(1, 10**9))
    below = {"sensitivity": 1.0, "epsilon": found * 0.999999, "log_delta": log_delta}
    sigma = conversions.noise_std(**below)
    exactly = gaussian.noise_std(sensitivity=1.0, epsilon=below["epsilon"], log_delta_target=log_delta)
    assert exactly <= sigma


def test_classic_epsilon() -> None:
    for r in draws("classic", 300, cost=20):
        log_delta = -log_uniform(r, 0.5, 1e3)
        given = {**one_pass(r), "log_delta": log_delta}
        n, i, b, s, sigma = list(given.values())[:5]
        mu = evaluated(iteration.local, **{k: v for k, v in given.items() if k != "log_delta"})
        found = evaluated(iteration.local_classic, **given)
        what = call(iteration.local_classic, **given)
        if math.isfinite(found):
            for of in READINGS:
                value = ball(of(s) / (oracle.batch(n, i, b)[0] * of(sigma))) * oracle.classic_factor(of(log_delta))
                not_below(found, value, what)
                tight(found, value, what, 1e-13)
            assert gaussian.epsilon(mu=mu, log_delta_target=log_delta) <= found, what


def test_published_stop_is_withheld_where_it_is_false() -> None:
    for n in (1, 2):
        assert evaluated(random_stop.stop_published, records=n, sensitivity=2.0, noise_std=4.0, order=2.0) == math.inf
    found = evaluated(random_stop.stop_published, records=3, sensitivity=2.0, noise_std=4.0, order=2.0)
    assert found == pytest.approx(2.0 * 0.25 * math.log(3.0) / 3.0, rel=1e-12)


@pytest.mark.parametrize("sensitivity", [5e-324, 1e-300, 1e-200, 1e-100, 1e100, 1e200, 1e300])
@pytest.mark.parametrize("noise_std", [5e-324, 1e-300, 1e-100, 1.0, 1e100, 1e300])
@pytest.mark.parametrize("n", [1, 2, 1000, 10**15])
def test_extreme_scales_never_give_nan_or_zero(sensitivity: float, noise_std: float, n: int) -> None:
    given = {"records": n, "index": (n + 1) // 2, "sensitivity": sensitivity, "noise_std": noise_std}
    batch = {**given, "batch_size": 1}
    values = [evaluated(iteration.pnsgd, **batch), evaluated(iteration.local, **batch)]
    for order in (1.0, 1.0 + 1e-9, 2.0, 1e6):
        values += [
            evaluated(iteration.pnsgd_rdp, **batch, order=order),
            evaluated(iteration.local_rdp, **batch, order=order),
        ]
        values += [
            evaluated(random_stop.skip_rdp, **given, order=order),
            evaluated(random_stop.stop_rdp, **given, order=order),
        ]
        values.append(evaluated(random_stop.stop_harmonic, **given, order=order))
    assert all(value > 0.0 for value in values), values  # false for nan, too
    for e in (0.0, 1e-300, 1.0, 1e4):
        assert evaluated(random_stop.skip, **given, epsilon=e) <= 0.0
        assert evaluated(random_stop.stop, **given, epsilon=e) <= 0.0
    curved = {"step_size": 0.5, "smoothness": 1.0, "strong_convexity": 0.5}
    assert evaluated(iteration.pnsgd_contraction, **batch, **curved) > 0.0
    rest = {k: v for k, v in batch.items() if k != "sensitivity"}
    for diameter in (1e-300, 1.0, 1e300):
        assert evaluated(iteration.pnsgd_domain, **rest, **curved, diameter=diameter) > 0.0
