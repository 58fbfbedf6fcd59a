"""Long sums: the enclosure holds the value, is narrow, takes few evaluations."""

import functools
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from flint import acb, arb, arb_series, ctx

from dpcalc.numerics.euler_maclaurin import enclose_sum
from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.roots import gauss_legendre, lambert_w_of_exp
from tests.oracles import adaptive, ball, draws, exact, log_uniform, whole

INF = math.inf
LAST = 10**15


def check(
    g: Callable[[float], float], value: arb, what: str, first: int, last: float, width: float = 1e-13, **promise: float
) -> None:
    """``value`` lies within the enclosure, which is at most ``width`` wide, relatively: g has one sign."""
    evaluations = itertools.count()

    def counted(t: float) -> float:
        next(evaluations)
        return g(t)

    low, high = enclose_sum(counted, first, last, **promise)
    what = f"{what}, first={first}, last={last}, {promise}: {low!r}, {high!r}, not {value.str(25, radius=False)}"
    assert ball(low) < value < ball(high), what
    assert high - low <= width * abs(low), what
    assert next(evaluations) <= 3000, what


# Oracles


def powers(p: Any, first: int, last: float) -> arb:
    """The sum of t^-p, by Hurwitz zeta functions."""
    p = ball(p)
    tail = arb(0) if last == INF else p.zeta(arb(int(last) + 1))
    return p.zeta(arb(first)) - tail


def logs(p: Fraction, e: arb, first: int, last: float) -> arb:
    """The sum of ln(1 + e t^-p): direct up to t^p = 2 |e|, by powers beyond."""
    turn = int(float((2 * abs(e)) ** (1 / ball(p)))) + 2 if not e.is_zero() else 1
    cut = int(min(last, max(first - 1, turn)))
    total = sum(((1 + e / arb(t) ** ball(p)).log() for t in range(first, cut + 1)), arb(0))
    if cut == last:
        return total
    factor = arb(1)
    for m in range(1, 220):
        factor *= -e
        total -= factor / m * powers(p * m, cut + 1, last)
    return total


def ratios(p: Fraction, above: arb, below: arb, first: int, last: float) -> arb:
    """The sum of ln((t^p + above)/(t^p + below))."""
    return adaptive(lambda: logs(p, above, first, last) - logs(p, below, first, last), bits=60)


def log_gammas(p: int, e: arb, t: int) -> arb:
    """The sum over the roots r of r^p = -e of ln |Gamma(t - r)|."""
    size = abs(e) ** (arb(1) / p)
    shift = arb(0) if e < 0 else arb(1)
    angles = [(shift + 2 * j) / p for j in range(p)]
    return sum(((t - acb(size) * acb(a).exp_pi_i()).lgamma().real for a in angles), arb(0))


def ratios_by_gamma(p: int, above: arb, below: arb, first: int, last: float) -> arb:
    """The same for a whole p >= 2, by Gamma functions at complex roots."""

    def value() -> arb:
        total = log_gammas(p, below, first) - log_gammas(p, above, first)
        if last == INF:
            return total
        return total + log_gammas(p, above, int(last) + 1) - log_gammas(p, below, int(last) + 1)

    return adaptive(value, bits=60)


@functools.cache
def legendre(points: int) -> list[tuple[arb, arb]]:
    return [arb.legendre_p_root(points, k, weight=True) for k in range(points)]


def euler_maclaurin(g: Callable[[Any], Any], first: int, last: int, direct: int = 400) -> arb:
    """The sum of a g that takes balls and power series, to some 25 digits."""
    cut = min(last, first + direct)
    total = sum((g(arb(t)) for t in range(first, cut + 1)), arb(0))
    if cut == last:
        return total
    a, b = arb(2 * cut + 1) / 2, arb(2 * last + 1) / 2
    panels = math.ceil(2.5 * math.log(last / cut)) + 1
    length = (b / a).log() / panels
    for i in range(panels):
        for x, weight in legendre(60):
            t = a * ((2 * i + 1 + x) * length / 2).exp()
            total += weight * length / 2 * t * g(t)
    return total + ends(g, a) - ends(g, b)


def ends(g: Callable[[Any], Any], t: arb, terms: int = 22) -> arb:
    before, ctx.cap = ctx.cap, terms
    try:
        coefficients = list(g(arb_series([t, 1], prec=terms)).coeffs())
    finally:
        ctx.cap = before
    total = arb(0)
    for j in range(1, len(coefficients), 2):
        # B_{j+1}(1/2) / (j+1)! times the derivative
        total -= arb.bernoulli_poly(arb(1) / 2, j + 1) / (j + 1) * coefficients[j]
    return total


# Summands


def below(c: float, e: float, p: float) -> Callable[[float], float]:
    """ln(1 - c/(t^p + c + e)) = ln((t^p + e)/(t^p + e + c)), to full precision."""

    def g(t: float) -> float:
        s = t**p + e
        return math.log1p(-c / (s + c)) if c < s else math.log(s / (s + c))

    return g


def beyond(t0: float, d: float, p: float) -> Callable[[float], float]:
    """ln((t^p - t0^p)/(t^p + d)) for t > t0, to full precision."""

    def g(t: float) -> float:
        s = t**p + d
        ratio = t0**p * math.expm1(p * math.log1p((t - t0) / t0)) / s
        return math.log(ratio) if ratio < 0.5 else math.log1p(-(t0**p + d) / s)

    return g


# Tests


@pytest.mark.parametrize("p", [1.05, 1.1, 1.5, 2.0, 3.0, 6.5])
@pytest.mark.parametrize("first", [1, 2, 399, 400, 401, 402, 1000, 10**6, 10**12])
def test_powers_to_infinity(p: float, first: int) -> None:
    if p > 3.0 and first > 10**6:
        return  # t^-p underflows
    value = powers(exact(p), first, INF)
    width = 1e-13 if p > 1.08 else 2e-13  # 1e280 is not far enough
    check(lambda t: t**-p, value, f"t^-{p}", first, INF, width, sharpness=max(1.0, p / 2.0), power=p)


@pytest.mark.parametrize("p", [0.01, 0.5, 0.999, 1.001, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("last", [400, 401, 1999, 2000, 2001, 2002, 2003, 2500, 10**5, LAST])
def test_powers_at_the_switches(p: float, last: int) -> None:
    for first in (1, 3, 390, 401, 450):
        if first <= last:
            value = powers(exact(p), first, last)
            check(lambda t: t**-p, value, f"t^-{p}", first, last, sharpness=max(1.0, p / 2.0))


def test_powers() -> None:
    for r in draws("powers", 300, cost=10):
        p, first = log_uniform(r, 0.02, 8.0), whole(r, 1, 10**8)
        last = r.choice((INF, whole(r, first, LAST))) if p > 1.05 else whole(r, first, LAST)
        if (abs(p - 1.0) > 1e-6 and p * math.log10(first) < 200.0) and not (last == INF and p < 1.08):
            value = powers(exact(p), first, last)
            check(lambda t, p=p: t**-p, value, f"t^-{p}", first, last, sharpness=max(1.0, p / 2.0), power=p)


def test_telescoping_sums() -> None:
    for r in draws("telescoping", 300, cost=10):
        last = whole(r, 1, LAST)
        first = whole(r, 1, last)
        value = (arb(last + 1) / first).log()
        check(lambda t: math.log1p(1.0 / t), value, "ln((t+1)/t)", first, last)
        value = (arb(last + 2) / (last + 1) * first / (first + 1)).log()
        check(lambda t: math.log1p(-1.0 / (t + 1.0) ** 2), value, "ln(t(t+2)/(t+1)^2)", first, last)


def laplace(r: Any, p: float, scale: float) -> tuple[Callable[[float], float], arb, arb]:
    """A schedule that is defined everywhere, its c and e up to scale^p: the summand, and both constants."""
    c, e = (log_uniform(r, min(1e-6, scale**p / 10.0), scale**p) for _ in range(2))
    return below(c, e, p), ball(exact(e)), ball(exact(e) + exact(c))


def test_schedule_of_any_power() -> None:
    for r in draws("schedule", 60, cost=400):
        p = log_uniform(r, 0.6, 6.0)
        if any(abs(p * m - 1.0) < 1e-6 for m in (1, 2)):
            continue
        g, above, under = laplace(r, p, 3000.0)
        first = whole(r, 1, 5000)
        last = r.choice((INF, whole(r, first, LAST))) if p > 1.05 else whole(r, first, LAST)
        value = ratios(exact(p), above, under, first, last)
        check(g, value, f"{above} {under} {p}", first, last, sharpness=max(1.0, p / 2.0), power=p)


def test_schedule_of_a_whole_power() -> None:
    for r in draws("whole", 300, cost=20):
        p, scale = r.choice((2, 2, 3, 4)), log_uniform(r, 1.0, 1e12)
        g, above, under = laplace(r, float(p), scale)
        first = whole(r, 1, LAST if r.random() < 0.2 else 10**5)
        last = r.choice((INF, whole(r, first, LAST)))
        value = ratios_by_gamma(p, above, under, first, last)
        check(g, value, f"{above} {under} {p}", first, last, sharpness=max(1.0, p / 2.0), power=p)


def test_schedule_beyond_its_singularity() -> None:
    for r in draws("beyond", 300, cost=20):
        p, t0 = r.choice((2, 2, 3, 4)), log_uniform(r, 0.1, 1e5)
        d = log_uniform(r, 1e-6, (10.0 * t0) ** p + 1.0)
        first = math.floor(t0) + (1 if r.random() < 0.5 else whole(r, 1, 10**6))
        last = r.choice((INF, whole(r, first, LAST)))
        value = ratios_by_gamma(p, -(ball(exact(t0)) ** p), ball(exact(d)), first, last)
        g, sharpness = beyond(t0, d, float(p)), max(1.0, p / 2.0)
        check(g, value, f"{t0} {d} {p}", first, last, 2e-13, singular=t0, sharpness=sharpness, power=p)


def test_schedule_beyond_a_far_singularity() -> None:
    """Counted from the singularity, the rounding of t no longer matters."""
    for r in draws("far", 200, cost=20):
        shift = whole(r, 10**5, 10**12)
        part, d = r.randrange(1, 1024) / 1024.0, log_uniform(r, 1e-6, 1e25)
        first = whole(r, 1, 10**6)
        last = r.choice((INF, whole(r, first, 10**13)))
        value = ratios_by_gamma(2, -((shift + ball(exact(part))) ** 2), ball(exact(d)), shift + first, shift + last)

        def g(u: float, shift: int = shift, part: float = part, d: float = d) -> float:
            above, under = (u - part) * (u + part + 2.0 * shift), (u + shift) ** 2 + d
            ratio = above / under
            return math.log(ratio) if ratio < 0.5 else math.log1p(-((shift + part) ** 2 + d) / under)

        check(g, value, f"{shift} {part} {d}", first, last, singular=part, power=2.0)


def test_schedule_beyond_its_singularity_of_any_power() -> None:
    for r in draws("beyond any", 40, cost=400):
        p, t0 = log_uniform(r, 1.06, 5.0), log_uniform(r, 1.0, 3000.0)
        d = log_uniform(r, 1e-6, t0**p)
        first = math.floor(t0) + whole(r, 1, 3000)
        last = r.choice((INF, whole(r, first, LAST)))
        value = ratios(exact(p), -(ball(exact(t0)) ** ball(exact(p))), ball(exact(d)), first, last)
        g, sharpness = beyond(t0, d, p), max(1.0, p / 2.0)
        check(g, value, f"{t0} {d} {p}", first, last, 2e-13, singular=t0, sharpness=sharpness, power=p)


def reciprocal_w(p: float, log_c: float) -> Callable[[float], float]:
    """1/W(exp(-log_c) t^p)."""

    def g(t: float) -> float:
        low, high = lambert_w_of_exp(p * math.log(t) - log_c)
        return 2.0 / (low + high)

    return g


def test_reciprocals_of_the_lambert_function() -> None:
    for r in draws("lambert", 40, cost=200):
        p, log_c = r.choice((2.0, 3.0, 3.5, 4.0)), float(r.randrange(-5, 5))
        first = whole(r, 2, 10**6)
        last = whole(r, first, LAST)

        def g(t: Any, p: float = p, log_c: float = log_c) -> Any:
            return 1 / (t.log() * ball(p) - ball(log_c)).exp().lambertw()

        value = euler_maclaurin(g, first, last)
        check(reciprocal_w(p, log_c), value, f"1/W {p} {log_c}", first, last, sharpness=p / 2.0)


def test_the_oracles_agree() -> None:
    with mpmath.workdps(40):
        direct = mpmath.fsum(mpmath.log(1 - 50 / (mpmath.mpf(t) ** 2.5 + 60)) for t in range(3, 3001))
        direct = mpmath.nstr(direct, 38)
    value = ratios(Fraction(5, 2), arb(10), arb(60), 3, 3000)
    assert abs(value - arb(direct)) < ball(1e-30)
    for last in (5000, INF):
        value, other = (
            f(2, arb(10), arb(60), 3, last) for f in (ratios_by_gamma, lambda p, *a: ratios(Fraction(p), *a))
        )
        assert abs(value - other) < ball(1e-30)
        value, other = (
            f(4, arb(-10), arb(60), 3, last) for f in (ratios_by_gamma, lambda p, *a: ratios(Fraction(p), *a))
        )
        assert abs(value - other) < ball(1e-30)
    value = euler_maclaurin(lambda t: (1 + 1 / (t * t)).log(), 2, 10**9)
    assert abs(value - logs(Fraction(2), arb(1), 2, 10**9)) < ball(1e-24)
    with mpmath.workdps(40):
        direct = mpmath.fsum(1 / mpmath.lambertw(mpmath.mpf(t) ** 3).real for t in range(1000, 3001))
        direct = mpmath.nstr(direct, 38)
    value = euler_maclaurin(lambda t: 1 / (t.log() * 3).exp().lambertw(), 1000, 3000)
    assert abs(value - arb(direct)) < ball(1e-24)


@pytest.mark.parametrize("middle", [1e4, 1e6, 1e9])
@pytest.mark.parametrize("ratio", [3.0, 30.0, 100.0])
def test_a_broken_promise_is_noticed(middle: float, ratio: float) -> None:
    """A bump that is narrower than sharpness 1 promises: shorter panels resolve it, or the enclosure widens."""
    s = middle / ratio
    # s^2/((t - middle)^2 + s^2) = s Im 1/(t - middle - i s)
    pole = acb(ball(middle), ball(exact(s)))
    value = adaptive(lambda: ball(exact(s)) * ((LAST + 1 - pole).digamma() - (1 - pole).digamma()).imag)
    low, high = enclose_sum(lambda t: 1.0 / (1.0 + ((t - middle) / s) ** 2), 1, LAST, relative=1e-12)
    assert ball(low) < value < ball(high)


def test_the_promised_error_of_the_summand_is_passed_on() -> None:
    low, high = enclose_sum(lambda t: t**-2.0, 1, INF, power=2.0, relative=1e-6)
    assert 2e-6 * 1.64 <= high - low <= 4e-6 * 1.65


def test_a_vanishing_summand() -> None:
    low, high = enclose_sum(lambda t: 0.0, 1, INF, power=2.0)
    assert -1e-300 < low <= 0.0 <= high < 1e-300


def test_weights_are_as_good_as_counted() -> None:
    for points in (11, 14):
        true = sorted(((float(x), x, w) for x, w in legendre(points)), key=lambda row: row[0])
        for (node, weight), (_, x, w) in zip(sorted(gauss_legendre(points)), true, strict=True):
            assert abs(ball(node) - x) < ball(2.0 * UNIT)
            assert abs(ball(weight) / w - 1) < ball(36.0 * UNIT)


@pytest.mark.parametrize(
    ("arguments", "promise"),
    [
        ((0, 10), {}),
        ((5, 4), {}),
        ((1, 10**15 + 1), {}),
        ((1, 10.5), {}),
        ((3, 10), {"singular": 3.0}),
        ((1, 10), {"sharpness": 0.5}),
        ((1, 10), {"sharpness": INF}),
        ((1, 10), {"singular": -INF}),
        ((1, 10), {"relative": 1.0}),
        ((1, INF), {}),
        ((1, INF), {"power": 1.0}),
        ((1, math.nan), {}),
    ],
)
def test_sum_refuses(arguments: tuple[int, float], promise: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="sum"):
        enclose_sum(lambda t: 1.0 / t, *arguments, **promise)
