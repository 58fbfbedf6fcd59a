"""Composition against direct sums, enumeration of outcomes and incomplete beta integrals: never below, and tight."""

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from statistics import NormalDist
from typing import Any

import mpmath
import pytest
from flint import arb, ctx, fmpz

from dpcalc.notions import gaussian
from dpcalc.notions import optimal_composition as composition
from tests.oracles import adaptive, ball, call, draws, exact, log_uniform, not_below, tight, whole

BITS = 210


# ---- oracles -------------------------------------------------------------------------------------------------------


def none_revealed(log_delta0: float, count: int) -> arb:
    """(1 - delta0)^count."""
    return arb(1) if log_delta0 == -math.inf else (-ball(log_delta0).expm1()) ** count


def some_revealed(log_delta0: float, count: int) -> arb:
    """1 - (1 - delta0)^count, without cancellation."""
    if log_delta0 == -math.inf:
        return arb(0)
    delta0 = ball(log_delta0).exp()
    log_none = count * ((-delta0).log1p() if log_delta0 < -1.0 else (-ball(log_delta0).expm1()).log())
    return -log_none.expm1()


def log_of(d: arb, rest: arb, log_delta0: float, count: int) -> arb:
    """ln delta from d and 1 - d."""
    none = none_revealed(log_delta0, count)
    if rest * none < 0.5:
        return (-rest * none).log1p()
    delta = d + some_revealed(log_delta0, count) * rest
    return delta if delta.is_zero() else delta.log()


def direct(epsilon0: float, log_delta0: float, count: int, epsilon: float) -> arb:
    """ln delta (0 where delta is 0) by adding all count + 1 terms, from the definition."""
    e0, e = exact(epsilon0), exact(epsilon)

    def value() -> arb:
        odds = (-ball(e0)).exp()
        scale = (1 + odds) ** -count
        d, rest, power = arb(0), arb(0), arb(1)
        for x in range(count, -1, -1):
            f = fmpz(math.comb(count, x)) * power * scale
            power *= odds
            gap = (2 * x - count) * e0 - e
            if gap > 0:
                d -= f * (-ball(gap)).expm1()
                f *= (-ball(gap)).exp()
            rest += f
        return log_of(d, rest, log_delta0, count)

    return adaptive(value, BITS)


@cache
def legendre(nodes: int) -> list[tuple[arb, arb]]:
    return [arb.legendre_p_root(nodes, i, weight=True) for i in range(nodes)]


def tail(count: int, k: int, logit: arb, upper: bool) -> arb:
    """P(Bin(count, p) >= k), or < k: the incomplete beta integral in the logit, by panels of Gauss and Legendre."""
    a, b = k, count - k + 1
    log_scale = arb(count + 1).lgamma() - arb(k).lgamma() - arb(b).lgamma()

    def integrand(y: arb) -> arb:
        return (log_scale - a * (-y).exp().log1p() - b * y.exp().log1p()).exp()

    sign = -1 if upper else 1
    total, y = arb(0), logit
    while True:
        t, q = 1 / (1 + math.exp(-float(y))), 1 / (1 + math.exp(float(y)))
        width = 2.0 / max(abs(a * q - b * t) / 4, math.sqrt((a + b) * t * q), 0.125)
        half = arb(width) / 2
        middle = y + sign * half
        part = half * sum((w * integrand(middle + half * x) for x, w in legendre(60)), arb(0))
        total += part
        y += sign * arb(width)
        past = a * q > b * t if upper else a * q < b * t
        if past and part < total * arb(2) ** -BITS:
            return total


def integral(epsilon0: float, log_delta0: float, count: int, epsilon: float) -> arb:
    """ln delta for any count, 0 < epsilon < count epsilon0, from d = P(Bin(E, p) >= k) - e^eps P(Bin(E, 1-p) >= k)."""
    e0, e = exact(epsilon0), exact(epsilon)
    k = (count + e / e0) // 2 + 1
    before, ctx.prec = ctx.prec, 448
    try:
        swapped = ball(e).exp() * tail(count, k, -ball(e0), True)
        if math.log(k / (count - k + 1)) > epsilon0:
            d = tail(count, k, ball(e0), True) - swapped
            return log_of(d, 1 - d, log_delta0, count)
        rest = tail(count, k, ball(e0), False) + swapped
        return log_of(1 - rest, rest, log_delta0, count)
    finally:
        ctx.prec = before


def enumerated(epsilon0: float, log_delta0: float, count: int, epsilon: float) -> mpmath.mpf:
    """delta from all 4^count outcomes of the worst mechanism: one of them tells the secret, two lean either way."""
    with mpmath.workdps(80):
        delta0, p = mpmath.exp(mpmath.mpf(log_delta0)), 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon0)))
        lean, other = (1 - delta0) * p, (1 - delta0) * (1 - p)
        here, there = (delta0, lean, other, mpmath.mpf(0)), (mpmath.mpf(0), other, lean, delta0)
        factor, total = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(0)
        for outcome in itertools.product(range(4), repeat=count):
            lead = mpmath.fprod(here[i] for i in outcome) - factor * mpmath.fprod(there[i] for i in outcome)
            total += max(lead, 0)
        return total


# ---- cases ---------------------------------------------------------------------------------------------------------


def log_of_one_delta(r: random.Random) -> float:
    kind = r.randrange(4)
    if kind < 2:
        return -math.inf
    return -math.exp(r.uniform(-40, 8)) if kind == 2 else math.log(log_uniform(r, 1e-18, 0.9))


def small(seed: str, default: int, cost: int = 1) -> Iterator[tuple[random.Random, float, float, int, float]]:
    """(generator, epsilon0, log_delta0, count, epsilon), count up to 1000, the corners of the sum more often."""
    for r in draws(seed, default, cost):
        count = whole(r, 1, r.choice((5, 30, 200, 1000)))
        ranges = ((1e-3, 10), (1e-12, 1e-3), (1e-300, 1), (1, 1e3), (1e-1, 3), (1e3, 1e300), (5e-324, 1e-250))
        e0 = log_uniform(r, *r.choice(ranges))
        corner = (2 * r.randint((count + 1) // 2, count) - count) * e0
        e = r.choice(
            (
                0.0,
                r.random() * count * e0,
                corner,
                math.nextafter(corner, r.choice((0.0, math.inf))),
                corner * (1.0 + r.choice((-1, 1)) * 10 ** r.uniform(-16, -3)),
                log_uniform(r, 1e-3, 50.0),
                e0 * (count * math.tanh(e0 / 2) + r.uniform(-6, 6) * math.sqrt(count)),
            )
        )
        yield r, e0, log_of_one_delta(r), count, min(max(0.0, e), 1.7e308)


def large(seed: str, default: int, low: int, high: int) -> Iterator[tuple[random.Random, float, float, int, float]]:
    """(generator, epsilon0, log_delta0, count, epsilon) with 0 < delta < 1, in every regime of a large count."""
    for r in draws(seed, default, cost=4):
        count = whole(r, low, high)
        spread = 1.0 / math.sqrt(count)
        e0 = r.choice(
            (
                spread * math.exp(r.uniform(-12, 3)),
                log_uniform(r, spread, 5.0),
                spread * math.exp(r.uniform(-1, 2)),
                math.log(count) * r.uniform(0.1, 1.1),
            )
        )
        mean, deviation = count * math.tanh(e0 / 2), math.sqrt(count) / math.cosh(e0 / 2)
        e = r.choice(
            (
                0.0,
                e0 * (mean + deviation * r.uniform(-8, 8)),
                e0 * (mean + deviation * r.uniform(0, 60)),
                e0 * log_uniform(r, max(1.0, mean), float(count)),
                e0 * (count - whole(r, 1, count)),
            )
        )
        log_delta0 = r.choice((-math.inf, -math.inf, math.log(log_uniform(r, 1e-40, 0.9) / count)))
        if e < count * e0 * (1 - 1e-9):
            yield r, e0, log_delta0, count, max(0.0, e)


def check(e0: float, log_delta0: float, count: int, e: float, value: arb, relative: float) -> None:
    arguments: dict[str, Any] = {"epsilon0": e0, "log_delta0": log_delta0, "count": count, "epsilon": e}
    found, what = composition.log_delta(**arguments), call(composition.log_delta, **arguments)
    if value.is_zero():
        assert found == -math.inf, what
        return
    not_below(found, value, what)
    # Relative in ln delta where delta is near 0 or near 1; in between that is relative in delta.
    near_one = value > -0.1
    tight(found, value, what, 3.0 * relative if near_one else relative, 1e-322 if near_one else relative)


# ---- tests ---------------------------------------------------------------------------------------------------------


def test_log_delta_of_up_to_1000() -> None:
    for _, e0, log_delta0, count, e in small("small counts", 600):
        check(e0, log_delta0, count, e, direct(e0, log_delta0, count, e), 1e-12)


def test_log_delta_of_thousands() -> None:
    for _, e0, log_delta0, count, e in large("thousands", 100, 1000, 50_000):
        check(e0, log_delta0, count, e, integral(e0, log_delta0, count, e), 2e-12)


def test_log_delta_of_up_to_1e15() -> None:
    for _, e0, log_delta0, count, e in large("large counts", 200, 20_000, 10**15):
        check(e0, log_delta0, count, e, integral(e0, log_delta0, count, e), 2e-12)


def test_the_two_oracles_agree() -> None:
    for e0, log_delta0, count, e in (
        (0.01, -12.0, 1500, 2.5),
        (1.0, -math.inf, 1000, 450.0),
        (0.3, -20.0, 2000, 300.0),
    ):
        assert abs(direct(e0, log_delta0, count, e) - integral(e0, log_delta0, count, e)) < arb(10) ** -50


def test_enumeration_of_all_outcomes() -> None:
    for r in draws("outcomes", 40, cost=20):
        count, e0 = r.randint(1, 5), log_uniform(r, 1e-3, 5.0)
        log_delta0 = r.choice((-math.inf, math.log(log_uniform(r, 1e-9, 0.5))))
        e = r.choice((0.0, r.random() * count * e0))
        value = enumerated(e0, log_delta0, count, e)
        if value < 1e-60:
            continue
        found = composition.log_delta(epsilon0=e0, log_delta0=log_delta0, count=count, epsilon=e)
        with mpmath.workdps(80):
            assert found >= mpmath.log(value)
            assert found <= mpmath.log(value) + 1e-13 * (1 - mpmath.log(value))


@pytest.mark.parametrize(
    ("e0", "delta0", "count", "e", "value"),
    [
        (1.0, 6.065306597126334e-06, 10, 4.0, -0.84254856755232611418397270688426),
        (0.01, 1e-9, 10_000, 2.0, -3.8667819174908475438747619019864),
        (0.001, 1e-12, 10**6, 3.0, -6.4771645214612981098159555159533784),
        (0.5, 1e-300, 20, 10.0, -687.77979562465971421196221282917),
        (1e-6, 1e-15, 10**6, 0.01, -20.723265837446410655369717600890),
        (2.0, 1e-8, 50, 99.0, -6.8046250911454322156997186276161),
        (0.1, 1e-3, 100, 0.0, -0.81913300258271528167975061916108),
        (1e-5, 0.0, 10**9, 5.0, -130.11593628246241966457301708596),
        (1e-6, 1e-300, 10**9, 0.5, -134.65624271228260769466858662803),
        (50.0, 1e-10, 3, 100.0, -7.7149993895413711473747479006368e-22),
    ],
)
def test_reference_values(e0: float, delta0: float, count: int, e: float, value: float) -> None:
    log_delta0 = math.log(delta0) if delta0 else -math.inf
    found = composition.log_delta(epsilon0=e0, log_delta0=log_delta0, count=count, epsilon=e)
    assert found == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("e0", "delta0", "count", "delta", "value"),
    [
        (0.1, 1e-6, 100, 1e-4, 5.7200559579736015945762711026300285),
        (0.5, 0.0, 30, 1e-9, 14.998496868740049895429474084814),
    ],
)
def test_reference_values_of_epsilon(e0: float, delta0: float, count: int, delta: float, value: float) -> None:
    found = composition.epsilon(
        epsilon0=e0,
        log_delta0=math.log(delta0) if delta0 else -math.inf,
        count=count,
        log_delta_target=math.log(delta),
    )
    # In the first case secrets revealed outright take all but 5e-9 of delta = 1e-4: its roundoff is that much larger.
    assert found == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 10_001, 10**6, 10**9 + 1, 10**12, 10**15])
@pytest.mark.parametrize("e0", [5e-324, 1e-300, 1e-280, 1e-100, 1e-40])
def test_tiny_epsilon0(e0: float, count: int) -> None:
    """At epsilon = 0 and to first order, delta = epsilon0 E|2X - count|/2 with X fair: de Moivre's mean deviation."""

    def value() -> arb:
        log_choose = arb(count).lgamma() - arb((count - 1) // 2 + 1).lgamma() - arb(count - (count - 1) // 2).lgamma()
        return (ball(exact(e0)) * count / 2).log() + log_choose - (count - 1) * arb(2).log()

    check(e0, -math.inf, count, 0.0, adaptive(value), 2e-12)


@pytest.mark.few(60)
@pytest.mark.parametrize("log_delta0", [-math.inf, -1e300, -800.0, -1.0, -1e-300])
@pytest.mark.parametrize("count", [1, 2, 1000, 10**9, 10**15])
@pytest.mark.parametrize("e0", [0.0, 5e-324, 1e-300, 1e-14, 1.0, 700.0, 1e5, 1e300, 1.7e308])
def test_extremes_are_answered(e0: float, count: int, log_delta0: float) -> None:
    for e in (0.0, 5e-324, 1e-300, 1e-8, 1.0, 1e4, 1e300, math.inf):
        found = composition.log_delta(epsilon0=e0, log_delta0=log_delta0, count=count, epsilon=e)
        zero = log_delta0 == -math.inf and (e == math.inf or exact(e) >= count * exact(e0))
        assert found <= 0.0
        assert (found == -math.inf) == zero
        assert found > -1e15 or zero or log_delta0 < -1e15
        assert found >= log_delta0
        if count <= 2 and e < math.inf:
            check(e0, log_delta0, count, e, direct(e0, log_delta0, count, e), 1e-12)


def test_a_delta_far_below_the_smallest_double() -> None:
    for e0, count, e in ((1e-3, 100_000, 99.9), (1.0, 1000, 999.5), (0.5, 10**6, 499_999.0), (1e-6, 10**10, 9e3)):
        value = integral(e0, -math.inf, count, e)
        assert value < -100.0
        check(e0, -math.inf, count, e, value, 2e-12)


def test_infinite_epsilon0_promises_nothing() -> None:
    assert composition.log_delta(epsilon0=math.inf, log_delta0=-math.inf, count=1, epsilon=1.0) == 0.0
    assert composition.log_delta(epsilon0=0.0, log_delta0=0.0, count=1, epsilon=1.0) == 0.0
    assert composition.epsilon(epsilon0=math.inf, log_delta0=-math.inf, count=1, log_delta_target=-1.0) == math.inf


def test_epsilon() -> None:
    for r, e0, log_delta0, count, e in itertools.chain(
        small("epsilon", 150, cost=8), large("epsilon", 40, 1001, 10**15)
    ):
        here = composition.log_delta(epsilon0=e0, log_delta0=log_delta0, count=count, epsilon=e)
        wanted = min(here * (1.0 + r.choice((0.0, r.uniform(-0.5, 0.5)))), -5e-324)
        arguments: dict[str, Any] = {
            "epsilon0": e0,
            "log_delta0": log_delta0,
            "count": count,
            "log_delta_target": wanted,
        }
        found, what = composition.epsilon(**arguments), call(composition.epsilon, **arguments)
        oracle = direct if count <= 1000 else integral
        if found == math.inf:
            # Secrets revealed outright leave no room, or less than rounding takes.
            revealed = log_of(arb(0), arb(1), log_delta0, count)
            assert count * e0 > 1.7e308 or revealed > ball(wanted) * (1 + ball(1e-13)), what
            continue
        if 0.0 < found < count * e0:
            room = ball(1e-11) * (abs(ball(wanted)) if wanted > -0.1 else 1 + abs(ball(wanted)))
            assert not oracle(e0, log_delta0, count, found) > ball(wanted), what
            before = found * (1 - 1e-12)
            assert oracle(e0, log_delta0, count, before) > ball(wanted) - room - ball(1e-322), what


def test_epsilon_of_pure_composition() -> None:
    for r in draws("pure", 100, cost=4):
        e0, count = log_uniform(r, 1e-300, 1e280), whole(r, 1, 10**15)
        arguments: dict[str, Any] = {
            "epsilon0": e0,
            "log_delta0": -math.inf,
            "count": count,
            "log_delta_target": -math.inf,
        }
        found = composition.epsilon(**arguments)
        assert exact(math.nextafter(found, 0.0)) < count * exact(e0) <= exact(found)
    assert composition.epsilon(epsilon0=0.0, log_delta0=-math.inf, count=9, log_delta_target=-math.inf) == 0.0
    assert composition.epsilon(epsilon0=1.0, log_delta0=-20.0, count=9, log_delta_target=-20.0) == math.inf
    assert composition.epsilon(epsilon0=1.0, log_delta0=-20.0, count=9, log_delta_target=0.0) == 0.0


def test_monotone_in_every_argument() -> None:
    cases = itertools.chain(small("monotone", 300, cost=4), large("monotone", 100, 1001, 10**15))
    for _, e0, log_delta0, count, e in cases:
        here = composition.log_delta(epsilon0=e0, log_delta0=log_delta0, count=count, epsilon=e)
        room = 4e-12 * (1.0 - here if here < -0.1 else -here) + 1e-322 if here > -math.inf else 0.0
        more = min(e0 * 1.001, 1.7e308)
        assert composition.log_delta(epsilon0=e0, log_delta0=log_delta0, count=count, epsilon=e * 1.001) <= here + room
        assert composition.log_delta(epsilon0=more, log_delta0=log_delta0, count=count, epsilon=e) >= here - room
        assert composition.log_delta(epsilon0=e0, log_delta0=log_delta0, count=count + 1, epsilon=e) >= here - room
        if log_delta0 > -math.inf:
            less = log_delta0 * 1.001
            assert composition.log_delta(epsilon0=e0, log_delta0=less, count=count, epsilon=e) <= here + room


def test_below_gaussian_dp_and_near_its_limit() -> None:
    """Randomised response is mu-GDP with mu = 2 Phi^-1(p); many with small epsilon0 come near epsilon0 sqrt(count)."""
    for r in draws("gaussian", 100, cost=4):
        count, e0 = whole(r, 1, 10**12), log_uniform(r, 1e-6, 3.0)
        mu = 2.0 * NormalDist().inv_cdf(1.0 / (1.0 + math.exp(-e0))) * math.sqrt(count)
        e = min(count * e0, mu * mu) * r.random()
        found = composition.log_delta(epsilon0=e0, log_delta0=-math.inf, count=count, epsilon=e)
        assert found <= gaussian.log_delta(mu=mu * (1 + 1e-8), epsilon=e) * (1.0 - 1e-8)
    for count in (10**10, 10**12, 10**15):
        limit = gaussian.log_delta(mu=1.0, epsilon=1.0)
        found = composition.log_delta(epsilon0=count**-0.5, log_delta0=-math.inf, count=count, epsilon=1.0)
        assert found == pytest.approx(limit, rel=3.0 * count**-0.5)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 10, 33, 1000, 12_345])
def test_rule_is_exact_to_degree_9(size: int) -> None:
    points = [Fraction(2 * i - size + 1, 2) for i in range(size)]
    for degree in range(0, 10, 2):
        value = sum(x**degree for x in points)
        found = sum(w * x**degree for x, w in composition._rule(size))
        assert found == pytest.approx(float(value), rel=1e-12)
        odd = math.fsum(w * x ** (degree + 1) for x, w in composition._rule(size))
        assert odd == pytest.approx(0.0, abs=1e-12 * size ** (degree + 2))
    assert all(abs(x) <= 0.5 * (size - 1) and w > 0.0 for x, w in composition._rule(size))


@pytest.mark.parametrize("count", [1, 2, 50, 10**4, 10**9, 10**15])
@pytest.mark.parametrize("e0", [20.0, 650.0, 699.0, 701.0, 709.0, 720.0, 740.0, 745.0, 760.0])
def test_only_the_last_term_gains(count: int, e0: float) -> None:
    """With k = count, 1 - d = 1 - f(count) + f(count) exp(-g(count)): delta is near 1 - count exp(-epsilon0)."""
    e = (count - 1) * e0
    last = 1 / (1 + (-ball(e0)).exp()) ** count
    gap = count * exact(e0) - exact(e)
    assert 0 < gap < 2 * exact(e0)
    rest = adaptive(lambda: -(count * -(-ball(e0)).exp().log1p()).expm1() + last * (-ball(gap)).exp())
    d = adaptive(lambda: -last * (-ball(gap)).expm1())
    check(e0, -math.inf, count, e, log_of(d, rest, -math.inf, count), 2e-12)
