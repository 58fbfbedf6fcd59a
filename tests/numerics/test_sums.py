"""Sums over up to 1e15 terms: never below the enclosed value, and close to it."""

import math
from fractions import Fraction

import pytest
from flint import arb

from dpcalc.certify.numerics import balls
from dpcalc.certify.numerics import sums as certified
from dpcalc.certify.runs.divergence import log_integral
from dpcalc.numerics import discounted_sums, sums
from tests.oracles import adaptive, ball, call, draws, exact, log_uniform, not_below, tight, whole


def sum_expm1_reciprocals(x: Fraction, n: int) -> arb:
    """sum_{k<=n} (e^(x/k) - 1)."""
    if x > 1 << 40:  # the first term is all there is
        return adaptive(lambda: ball(x).expm1() + (n * (ball(x) / 2).exp()).union(arb(0)))
    return adaptive(lambda: certified.expm1_reciprocals(ball(x), n))


def sum_hockey_sticks(epsilon: Fraction, r: Fraction, n: int) -> arb:
    """sum_{k<=n} H(epsilon, r/sqrt k)."""
    return adaptive(lambda: certified.hockey_sticks(ball(epsilon), ball(r), n), bits=60)


def log_sum_hockey_sticks(epsilon: Fraction, r: Fraction, n: int) -> arb:
    """The logarithm, wherever it lies."""
    if epsilon / r - r / 2 > 200:  # every later term is below e^-20000 of the first
        first = adaptive(lambda: balls.log_delta(ball(epsilon), ball(r)))
        return first.union(first + (arb(-10000)).exp())
    return sum_hockey_sticks(epsilon, r, n).log()


def test_harmonic() -> None:
    for n in [
        *range(1, 300),
        999,
        1000,
        10**6,
        10**9,
        10**15,
        *(whole(r, 1, 10**15) for r in draws("harmonic", 300, 10)),
    ]:
        value, what = adaptive(lambda n=n: certified.harmonic(n)), call(sums.harmonic_up, n=n)
        not_below(sums.harmonic_up(n), value, what)
        tight(sums.harmonic_up(n), value, what, 1e-14)


def check_expm1(x: float, n: int) -> None:
    value = adaptive(sum_expm1_reciprocals(exact(x), n).log, bits=40)
    found, what = sums.log_sum_expm1_reciprocals_up(x, n), call(sums.log_sum_expm1_reciprocals_up, x=x, terms=n)
    not_below(found, value, what)
    tight(found, value, what, 1e-12, 2e-14)


@pytest.mark.parametrize("x", [1e-300, 1e-9, 0.3, 1.0, 31.9, 32.0, 33.0, 64.0, 500.0, 2499.0, 1e6, 1e12])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 66, 1000, 5000, 10**15])
def test_expm1_sum_at_its_switches(x: float, n: int) -> None:
    check_expm1(x, n)


def test_expm1_sum() -> None:
    for r in draws("expm1", 300, cost=25):
        check_expm1(log_uniform(r, *r.choice(((1e-12, 1e3), (1e-300, 1e12), (1.0, 100.0)))), whole(r, 1, 10**15))


def check_sticks(e: float, r: float, n: int) -> None:
    value = log_sum_hockey_sticks(exact(e), exact(r), n)
    found, what = sums.log_sum_hockey_sticks_up(e, r, n), call(sums.log_sum_hockey_sticks_up, e=e, r=r, terms=n)
    not_below(found, value, what)
    tight(found, value, what, 1e-12, 3e-14)


@pytest.mark.parametrize("e", [0.0, 1e-12, 1e-3, 0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("r", [1e-6, 1e-2, 0.5, 3.0, 40.0, 1e4, 1e8])
@pytest.mark.parametrize("n", [1, 2, 64, 65, 66, 200, 3000])
def test_hockey_stick_sum_at_its_switches(e: float, r: float, n: int) -> None:
    check_sticks(e, r, n)


@pytest.mark.parametrize("k", [10, 63, 64, 65, 66, 90, 300, 1500])
@pytest.mark.parametrize("e", [20.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e5])
def test_hockey_stick_sum_with_a_sharp_transition(e: float, k: int) -> None:
    """At k = r^2/(2 e) the terms drop from 1 to 0 within about k/sqrt(e/2) steps."""
    check_sticks(e, math.sqrt(2.0 * e * k), 4 * k)


def test_hockey_stick_sum() -> None:
    for r in draws("sticks", 150, cost=200):
        e = r.choice((0.0, log_uniform(r, 1e-6, 1e4), log_uniform(r, 1e-2, 50.0)))
        ratio = log_uniform(r, 1e-3, 1e4)
        if r.random() < 0.4 and e > 0.0:
            ratio = math.sqrt(2.0 * e * whole(r, 1, 3000))
        check_sticks(e, ratio, whole(r, 1, 2000) if r.random() < 0.8 else whole(r, 2000, 10**12))


def test_integral_of_hockey_sticks() -> None:
    for r in draws("integral", 100, 240):
        e, upper = r.choice((0.0, log_uniform(r, 1e-9, 1e4))), log_uniform(r, 1, 1e15)
        mu = r.choice((2.0 * math.sqrt(e + 1.0), log_uniform(r, 0.1, 10.0))) * log_uniform(r, 0.1, 10.0)
        ratio = min(mu * math.sqrt(whole(r, 1, 10**6)), 1e6)
        if balls.log_delta(arb(e), arb(ratio / math.sqrt(upper))) > -1e-200:
            continue  # all of it is within, and its logarithm is that of its length
        found = sums.log_integral_hockey_sticks_up(e, ratio, upper)
        value = adaptive(lambda e=e, ratio=ratio, upper=upper: log_integral(arb(e), arb(ratio), arb(upper)))
        what = call(sums.log_integral_hockey_sticks_up, e=e, r=ratio, upper=upper)
        not_below(found, value, what)
        tight(found, value, what, 1e-11, 1e-11)


@pytest.mark.parametrize("factor", [0.0, 1e-300, 0.5])
def test_a_use_at_any_of_many_places_has_the_masses_of_a_law(factor: float) -> None:
    law = discounted_sums.uses_of_periods(10**6, factor, 1)
    assert len(law.values) == len(law.masses) <= 2**14
    assert 1.0 <= float(law.masses.sum()) + law.rest < 1.001
    assert law.values[-1] >= 1.0
    assert 1e-6 <= law.masses[-1] < 1e-4
