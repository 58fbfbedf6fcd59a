"""Compositions by PLD against closed forms, quadrature and characteristic functions: never below, and tight."""

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from dpcalc.errors import SpecError
from dpcalc.notions import gaussian, pld
from dpcalc.notions.pld import convolution, discretisation, lattice
from dpcalc.numerics.normal_arrays import log_hockey_stick_up
from tests.notions import test_optimal_composition as kov
from tests.oracles import ball, draws, exact, log_uniform, not_below, whole
from tests.oracles import gaussian as gaussian_oracle
from tests.oracles import pld as oracle

Curve = Callable[[Any], Any]


def curve_of(mu: float) -> Curve:
    """The Gaussian profile, as a curve that is not known to be Gaussian."""
    return lambda e: log_hockey_stick_up(e, mu)


def target(r: random.Random) -> float:
    """ln delta, from delta = 1/2 to 1e-200."""
    return r.choice((r.uniform(-3.0, -0.7), r.uniform(-35.0, -3.0), r.uniform(-460.0, -35.0)))


def check(found: pld.Bound, value: float, what: str, accuracy: float = 2e-9) -> None:
    """Never below but for the accuracy of the oracle, and above by what is declared."""
    room = accuracy * max(1.0, -0.01 * value)
    assert found.value >= value - room, f"{what}: {found} is below {value!r}"
    assert found.value <= value + found.rounding + found.lattice + room, f"{what}: {found} is above {value!r}"


# ---- closed forms --------------------------------------------------------------------------------------------------


def test_composed_gaussian_curves() -> None:
    """n^2 copies of mu are one of n mu, exactly."""
    for r in draws("gaussian curves", 24, cost=20):
        n, mu = whole(r, 1, 1000), log_uniform(r, 1e-6, 5.0)
        parts = [(pld.from_curve(curve_of(mu)), n * n)]
        e = gaussian.epsilon(mu=n * mu, log_delta_target=target(r))
        value = gaussian_oracle.log_delta(exact(e), n * exact(mu))
        found = pld.log_delta(parts, epsilon=e)
        what = f"{n}^2 of mu={mu!r} at {e!r}"
        not_below(found.value, value, what)
        check(found, float(value), what)
        assert found.rounding < 2e-5
        assert found.value - float(value) < 3e-7 * (1.0 - float(value) + e)
        assert found.lattice < 1e-5 * (1.0 - float(value) + e)


def test_one_attempt_near_a_target_is_a_bound_and_close() -> None:
    """Of a composition of Gaussian curves, whose delta is known: never below, and close where it is as expected."""
    for r in draws("near", 8, cost=200):
        mu, count = log_uniform(r, 0.01, 1.0), whole(r, 2, 2000)
        epsilon, wanted = log_uniform(r, 0.1, 5.0) * mu * math.sqrt(count), target(r)
        true = gaussian.log_delta(mu=mu * math.sqrt(count), epsilon=epsilon)
        for resolution, slack in ((64, 0.3), (512, 0.03)):
            for expected in (wanted, true):
                parts = [(pld.from_curve(curve_of(mu)), count)]
                bound = pld.bound_near(parts, epsilon=epsilon, log_delta_target=expected, resolution=resolution)
                found = bound.value
                assert found >= true - 1e-9 * (1.0 - true), (mu, count, epsilon, expected)
            assert found <= true + slack, (mu, count, epsilon, resolution)


def test_what_is_expected_of_delta_changes_no_bound_by_much() -> None:
    """Right or wrong, it chooses how the lattice is tilted: the bound is never below, and as close as without it."""
    for r in draws("expected", 2, cost=200):
        mu, count, wrong = log_uniform(r, 0.01, 1.0), whole(r, 2, 500), target(r)
        parts, epsilon = [(pld.from_curve(curve_of(mu)), count)], r.uniform(0.1, 5.0) * mu * math.sqrt(count)
        true = gaussian.log_delta(mu=mu * math.sqrt(count), epsilon=epsilon)
        for expected in (true, true + 0.5, 1.5 * true - 2.0, wrong):
            found = pld.log_delta(parts, epsilon=epsilon, resolution=512, expected=expected)
            what = f"{count} of mu={mu!r} at {epsilon!r}, where {expected!r} is expected"
            assert found.value >= true - 1e-9 * (1.0 - true), what
            assert found.value <= true + 2e-3, what


def test_what_exact_arithmetic_leaves_of_a_bound_near_a_target_is_below_the_truth() -> None:
    for r in draws("bound near", 8, cost=100):
        mu, count = log_uniform(r, 0.01, 1.0), whole(r, 2, 2000)
        epsilon = log_uniform(r, 0.1, 5.0) * mu * math.sqrt(count)
        true = gaussian.log_delta(mu=mu * math.sqrt(count), epsilon=epsilon)
        parts = [(pld.from_curve(curve_of(mu)), count)]
        found = pld.bound_near(parts, epsilon=epsilon, log_delta_target=true, resolution=512)
        assert found.value - found.rounding - found.lattice <= true + 1e-9 * (1.0 - true), (mu, count, epsilon)
        assert found.lattice < 0.05


def test_a_saddle_point_guesses_ln_delta() -> None:
    """Of Gaussian curves, where it is exact, and of many sampled steps."""
    for r in draws("likely", 8, cost=100):
        mu, count = log_uniform(r, 0.01, 1.0), whole(r, 2, 2000)
        epsilon = log_uniform(r, 0.5, 5.0) * mu * math.sqrt(count) + 0.5 * mu * mu * count
        true = gaussian.log_delta(mu=mu * math.sqrt(count), epsilon=epsilon)
        parts = [(pld.from_curve(curve_of(mu)), count)]
        found = pld.likely_log_delta(parts, epsilon=epsilon, log_delta_target=true)
        assert abs(found - true) < 0.01, (mu, count, epsilon)
    parts = [(pld.subsampled_gaussian(mu=0.5, rate=0.01), 10_000)]
    true = pld.log_delta(parts, epsilon=1.5).value
    assert abs(pld.likely_log_delta(parts, epsilon=1.5, log_delta_target=true) - true) < 0.03


def test_epsilon_of_gaussian_curves() -> None:
    for r in draws("gaussian epsilon", 12, cost=20):
        n, mu, wanted = whole(r, 2, 1000), log_uniform(r, 1e-3, 1.0), target(r)
        found = pld.epsilon([(pld.from_curve(curve_of(mu)), n * n)], log_delta_target=wanted)
        value = gaussian.epsilon(mu=n * mu, log_delta_target=wanted)
        assert not gaussian_oracle.log_delta(exact(found.value), n * exact(mu)) > ball(exact(wanted))
        assert found.value <= value + 1e-6 * (value + 0.1 * n * mu)


def test_gaussian_pairs_compose_in_closed_form() -> None:
    parts = [(pld.gaussian(mu=1.0 / (20 - 0.01 * i)), 1) for i in range(1000)]
    mu = math.sqrt(math.fsum((1.0 / (20 - 0.01 * i)) ** 2 for i in range(1000)))
    found = pld.epsilon(parts, log_delta_target=math.log(1e-6)).value
    value = gaussian.epsilon(mu=mu, log_delta_target=math.log(1e-6))
    assert value * (1.0 - 1e-13) <= found <= value * (1.0 + 1e-12)
    assert pld.log_delta([(pld.gaussian(mu=0.5), 4)], epsilon=1.0).value == pytest.approx(
        gaussian.log_delta(mu=1.0, epsilon=1.0), rel=1e-13
    )


def test_randomised_response() -> None:
    """Against the exact sum over the number of answers that lean either way."""
    for r in draws("responses", 40, cost=20):
        n, e0 = whole(r, 1, 1000), log_uniform(r, 1e-3, 5.0)
        log_delta0 = r.choice((-math.inf, math.log(log_uniform(r, 1e-18, 0.1))))
        e = r.choice((0.0, r.random() * n * e0, min(n * e0 * 0.999, n * e0**2 + e0 * math.sqrt(n) * r.uniform(0, 9))))
        value = kov.direct(e0, log_delta0, n, e)
        found = pld.log_delta([(pld.randomised_response(epsilon=e0, log_delta=log_delta0), n)], epsilon=e)
        what = f"{n} of ({e0!r}, {log_delta0!r}) at {e!r}"
        not_below(found.value, value, what)
        assert found.value <= float(value) + found.rounding + 1e-9 * (1.0 - float(value)), what
        assert found.rounding < 1e-8 * (1.0 - float(value)), what


def test_a_million_responses() -> None:
    """Two of the cases in which another accountant reports less than the truth."""
    for e0, log_delta0, e in (
        (1e-3, math.log(1e-12), 3.807104333),
        (1e-3, math.log(1e-15), 4.8867519),
        (0.1, -math.inf, 5383.0),
        (1e-2, -math.inf, 300.0),
    ):
        value = kov.integral(e0, log_delta0, 10**6, e)
        found = pld.log_delta([(pld.randomised_response(epsilon=e0, log_delta=log_delta0), 10**6)], epsilon=e)
        not_below(found.value, value, f"{e0!r} {log_delta0!r} {e!r}")
        assert found.value <= float(value) + 1e-6


def test_losses_of_plus_infinity() -> None:
    pair = pld.randomised_response(epsilon=0.1, log_delta=math.log(1e-8))
    revealed = math.log(-math.expm1(1e6 * math.log1p(-1e-8)))
    assert pld.epsilon([(pair, 10**6)], log_delta_target=revealed - 1e-9).value == math.inf
    assert pld.epsilon([(pair, 10**6)], log_delta_target=revealed + 1e-6).value < 1e5
    pure = [(pld.randomised_response(epsilon=0.1), 30), (pld.laplace(ratio=0.5), 20)]
    assert pld.log_delta(pure, epsilon=13.0 * (1.0 + 1e-15)).value == -math.inf
    assert pld.log_delta(pure, epsilon=13.0 * (1.0 - 1e-15)).value > -math.inf
    beyond = pld.log_delta([(pair, 10**6)], epsilon=1.1e5)
    assert revealed <= beyond.value <= revealed + 1e-9
    mixed = [(pair, 10**6), (pld.gaussian(mu=0.1), 3)]
    assert pld.epsilon(mixed, log_delta_target=revealed - 1e-9).value == math.inf


# ---- quadrature ----------------------------------------------------------------------------------------------------


def test_one_subsampled_gaussian() -> None:
    """p delta(ln(1 + (e^eps - 1)/p)) in ball arithmetic."""
    for r in draws("subsampled once", 60, cost=4):
        mu, rate, e = log_uniform(r, 1e-3, 10.0), log_uniform(r, 1e-6, 0.99), log_uniform(r, 1e-6, 40.0)
        threshold = ((ball(exact(e)).exp() - 1) / ball(exact(rate)) + 1).log()
        found = pld.log_delta([(pld.subsampled_gaussian(mu=mu, rate=rate), 1)], epsilon=e).value
        x = threshold / ball(exact(mu)) - ball(exact(mu)) / 2
        tail, other = (gaussian_tail(y) for y in (x, x + ball(exact(mu))))
        value = (ball(exact(rate)) * (tail - threshold.exp() * other)).log()
        not_below(found, value, f"mu={mu!r} rate={rate!r} at {e!r}")
        assert found <= float(value) * (1.0 - 1e-13) + 1e-9


def gaussian_tail(x: Any) -> Any:
    return (x / ball(2).sqrt()).erfc() / 2


@pytest.mark.campaign
def test_two_subsampled_gaussians() -> None:
    for mu, rate, e in ((1.0, 0.1, 0.3), (0.5, 0.5, 1.5), (2.0, 0.01, 4.0), (0.3, 0.2, 3.0), (1.0, 0.3, 20.0)):
        value = float(oracle.mpmath.log(oracle.subsampled_twice(mu, rate, e, digits=20)))
        check(pld.log_delta([(pld.subsampled_gaussian(mu=mu, rate=rate), 2)], epsilon=e), value, f"{mu} {rate} {e}")


def test_two_laplaces() -> None:
    for r in draws("laplace twice", 12, cost=20):
        ratio = log_uniform(r, 1e-3, 20.0)
        e = r.choice((0.0, 2.0 * ratio * r.random(), 2.0 * ratio * (1.0 - 10.0 ** r.uniform(-6, -1))))
        value = float(oracle.mpmath.log(oracle.laplace_twice(ratio, e)))
        found = pld.log_delta([(pld.laplace(ratio=ratio), 2)], epsilon=e)
        assert found.value >= value - 1e-13 * (1.0 - value)
        assert found.value <= value + found.rounding + 1e-6 * (1.0 + ratio)
    assert pld.epsilon([(pld.laplace(ratio=0.3), 2)], log_delta_target=-300.0).value <= 0.6 * (1.0 + 1e-15)


# ---- characteristic functions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cases", [2, pytest.param(10, marks=pytest.mark.campaign)])
def test_many_laplaces(cases: int) -> None:
    for r in draws("laplaces", cases, cost=40):
        ratio, n = log_uniform(r, 0.05, 4.0), whole(r, 600, 10**6)
        ask([(pld.laplace(ratio=ratio), n)], [(oracle.laplace(ratio), n)], target(r), f"{n} of laplace {ratio!r}")


@pytest.mark.campaign
def test_very_many_laplaces() -> None:
    ask([(pld.laplace(ratio=1e-3), 10**6)], [(oracle.laplace(1e-3), 10**6)], math.log(1e-6), "laplace, peers")


@pytest.mark.parametrize("cases", [4, pytest.param(10, marks=pytest.mark.campaign)])
def test_many_subsampled_gaussians(cases: int) -> None:
    for r in draws("subsampled", cases, cost=40):
        mu, rate = log_uniform(r, 0.2, 2.5), log_uniform(r, 3e-3, 0.6)
        n = whole(r, int(60 / rate), 10**6)
        parts = [(pld.subsampled_gaussian(mu=mu, rate=rate), n)]
        ask(parts, [(oracle.subsampled(mu, rate), n)], target(r), f"{n} of mu={mu!r}, rate={rate!r}")


@pytest.mark.campaign
def test_mixtures() -> None:
    for r in draws("mixtures", 4, cost=60):
        mu, ratio, e0 = log_uniform(r, 0.1, 1.0), log_uniform(r, 0.05, 1.0), log_uniform(r, 0.05, 1.0)
        n, m, k = whole(r, 20, 400), whole(r, 2, 400), whole(r, 1, 50)
        parts = [(pld.gaussian(mu=mu), n), (pld.laplace(ratio=ratio), m), (pld.randomised_response(epsilon=e0), k)]
        truth = [(oracle.normal(mu), n), (oracle.laplace(ratio), m), (oracle.response(e0), k)]
        ask(parts, truth, target(r), f"{n} {m} {k} of {mu!r} {ratio!r} {e0!r}")


def ask(parts: Any, truth: Any, wanted: float, what: str) -> None:
    """epsilon at delta, and delta there: both above the truth, by what is declared."""
    found = pld.epsilon(parts, log_delta_target=wanted)
    if found.value == 0.0:
        return
    value = oracle.log_delta(truth, found.value)
    check(found._replace(value=wanted), value, what)
    check(pld.log_delta(parts, epsilon=found.value), value, what)


@pytest.mark.campaign
def test_different_profiles_for_the_two_orders() -> None:
    """The Gaussian on a Poisson sample, which is not symmetric."""
    mu, rate, n = 1.0, 0.2, 400

    def forward(e: Any) -> Any:
        return pld.subsampled_gaussian(mu=mu, rate=rate).forward(e)

    def backward(e: Any) -> Any:
        rest = 1.0 - (1.0 - rate) * np.exp(np.minimum(e, 9.0))
        inside = np.where(rest > 0.0, rest, 1.0)
        value = np.log(inside) + log_hockey_stick_up(math.log(rate) + np.minimum(e, 9.0) - np.log(inside), mu)
        return np.where(rest > 0.0, np.minimum(value + 1e-12, 0.0), -np.inf)

    added, removed = pld.from_curve(forward, backward), pld.from_curve(backward, forward)
    loss = oracle.poisson(mu, rate)
    for wanted in (-1.0, -200.0):
        for pair, truth in ((added, loss), (removed, oracle.swapped(loss))):
            found = pld.epsilon([(pair, n)], log_delta_target=wanted)
            value = oracle.log_delta([(truth, n)], found.value)
            check(found._replace(value=wanted), value, f"{wanted}", accuracy=1e-8)


@pytest.mark.campaign
def test_the_oracles_agree() -> None:
    for n, mu, e in ((10, 0.3, 2.0), (1000, 0.1, 30.0), (10**6, 1e-3, 1.0)):
        value = gaussian.log_delta(mu=mu * math.sqrt(n), epsilon=e)
        assert oracle.log_delta([(oracle.normal(mu), n)], e) == pytest.approx(value, abs=1e-9)
    value = float(oracle.mpmath.log(oracle.subsampled_twice(1.0, 0.999, 3.0, digits=18)))
    assert value == pytest.approx(gaussian.log_delta(mu=math.sqrt(2.0), epsilon=3.0), abs=0.05)
    parts = [(oracle.normal(0.1), 50), (oracle.normal(0.2), 100)]
    assert oracle.log_delta(parts, 40.0) == pytest.approx(gaussian.log_delta(mu=math.sqrt(4.5), epsilon=40.0), abs=1e-9)


# ---- the shuffled curve of contraction: one epoch, (1 - B^n)/(n (1 - B)) A -----------------------------------------


def shuffled(e: Any) -> Any:
    """ln of A mean_j B^j for r_A = 1, r_B = 1.5, n = 10."""
    b = np.exp(log_hockey_stick_up(e, 1.5))
    return np.minimum(log_hockey_stick_up(e, 1.0) + np.log(sum(b**j for j in range(10)) / 10.0) + 1e-15, 0.0)


@pytest.mark.parametrize(
    ("e", "value"),
    [(0.0, -1.8701305104553114140), (1.0, -3.2130060475721678013), (4.0, -9.1432602648432607508)],
)
def test_reference_values_of_two_epochs(e: float, value: float) -> None:
    check(pld.log_delta([(pld.from_curve(shuffled), 2)], epsilon=e), value, f"{e}")


@pytest.mark.parametrize(
    ("epochs", "e", "value"),
    [
        (2, 6.0, -14.096475413912882133),
        (8, 0.5, -1.2519804915520008063),
        (8, 2.0, -2.6124008637411477883),
        (8, 6.0, -7.7175378141318613746),
        (64, 0.5, -0.13722731416079050976),
    ],
)
def test_reference_values_of_discretised_losses(epochs: int, e: float, value: float) -> None:
    z = 0.05 * np.arange(101)
    law = discretisation.discretise(pld.from_curve(shuffled), z, z)
    masses = total = np.exp(law.log_masses)
    for _ in range(epochs - 1):
        total = np.convolve(total, masses)
    gain = -np.expm1(np.minimum(e - 0.05 * np.arange(-100 * epochs, 100 * epochs + 1), 0.0))
    revealed = -math.expm1(epochs * math.log1p(-math.exp(law.log_infinity_mass)))
    assert math.log(revealed + float(np.sum(total * gain))) == pytest.approx(value, abs=1e-9)


def test_the_atom_at_zero() -> None:
    z = 1e-5 * np.arange(400.0)
    law = discretisation.discretise(pld.from_curve(shuffled), z, z)
    assert math.exp(law.log_masses[399]) == pytest.approx(0.69729018604524510152, abs=1e-5)


# ---- discretisation ------------------------------------------------------------------------------------------------


def profile(law: discretisation.DiscreteLoss, e: float) -> float:
    """ln H of a discrete law."""
    above = law.points > e
    terms = law.log_masses[above] + np.log(-np.expm1(e - law.points[above]))
    return float(np.logaddexp.reduce(np.append(terms, law.log_infinity_mass)))


def test_discrete_losses_dominate_and_touch() -> None:
    for r in draws("dots", 30, cost=4):
        mu = log_uniform(r, 1e-4, 20.0)
        gaps = np.array([log_uniform(r, 1e-5, 0.5) * mu for _ in range(200)])
        z = np.concatenate(([0.0], np.cumsum(gaps)))
        below = z[: r.randint(2, 200)]
        law = discretisation.discretise(pld.from_curve(curve_of(mu)), z, below)
        total = float(np.sum(np.exp(law.log_masses))) + math.exp(law.log_infinity_mass)
        assert 1.0 <= total < 1.0 + 1e-9
        for i in r.sample(range(200), 20):
            value = float(gaussian_oracle.log_delta(exact(z[i]), exact(mu)))
            assert value - 1e-13 <= profile(law, z[i]) <= value + 1e-11 * (1.0 - value)
        for e in -below[1::17]:
            value = float(gaussian_oracle.log_delta(exact(e), exact(mu)))
            assert value * (1.0 + 1e-14) <= profile(law, float(e)) <= value + 1e-9


def test_a_curve_that_is_not_convex_counts_as_its_hull() -> None:
    """Bumps on the bounds cost next to nothing, and of two curves each is used where it is lower."""
    mu = 0.2

    def bumpy(e: Any) -> Any:
        return np.minimum(curve_of(mu)(e) + 0.05 * np.sin(np.asarray(e) * 1e4) ** 2, 0.0)

    value = gaussian.log_delta(mu=10.0 * mu, epsilon=4.0)
    found = pld.log_delta([(pld.from_curve(bumpy), 100)], epsilon=4.0)
    assert value <= found.value <= value + 0.02

    def least(e: Any) -> Any:
        return np.minimum(curve_of(0.2)(e), curve_of(0.5)(e) - 2.0)

    for n, e in ((2, 0.5), (50, 3.0)):
        both = pld.log_delta([(pld.from_curve(least), n)], epsilon=e).value
        assert both < pld.log_delta([(pld.from_curve(curve_of(0.2)), n)], epsilon=e).value


# ---- the transform -------------------------------------------------------------------------------------------------


def test_errors_of_the_transform_are_bounded() -> None:
    generator = np.random.default_rng(1)
    for size, spread in ((5000, 5.0), (6000, 40.0), (3000, 0.2)):
        index = np.arange(size)
        x = np.exp(-0.5 * ((index - size / 2) / (size / spread)) ** 2) * generator.random(size)
        y = np.where(index < size // 3, generator.random(size), 0.0)[: size // 2]
        x, y = x / x.sum(), y / y.sum()
        for times_x, times_y in ((2, 0), (2, 1), (1, 1), (4, 0)):
            found, start, bound, _ = convolution.convolution_power(x, times_x, y, times_y)
            value = np.array([1.0], dtype=np.longdouble)
            for factor, times in ((x, times_x), (y, times_y)):
                for _ in range(times):
                    value = np.convolve(value, factor.astype(np.longdouble))
            whole_law = np.zeros(len(value), dtype=np.longdouble)
            whole_law[start : start + len(found)] = found
            error = float(np.abs(whole_law - value).sum())
            assert error <= bound <= 1e-10


@pytest.mark.parametrize("lumpy", [False, True])
@pytest.mark.parametrize(("size", "times", "more"), [(120, 40, 25), (200, 64, 15), (300, 60, 0)])
def test_weights_of_rows_are_those_of_the_sum(size: int, times: int, more: int, lumpy: bool) -> None:
    """By a short transform of few frequencies; lumpy laws have high ones, too."""
    generator = np.random.default_rng(size)
    x = generator.random(size)
    x = np.where(np.arange(size) % 2, 0.0, x) if lumpy else x
    y = np.append(x[: size // 2], generator.random(7))
    x, y = x / x.sum(), y / y.sum()
    value = np.array([1.0], dtype=np.longdouble)
    for factor, count in ((x, times), (y, more)):
        for _ in range(count):
            value = np.convolve(value, factor.astype(np.longdouble))
    for multiple, tilt, first in ((2, 0.0, 0), (8, 1.5, -1001), (32, 0.2, 77)):
        shares = lattice._shares(tilt, 0.01, multiple, first)
        found, row, bound, in_rows = convolution.convolution_power(x, times, y, more, shares)
        assert in_rows
        places = first + np.arange(len(value))
        exact = np.zeros(places[-1] // multiple + 2 - first // multiple, dtype=np.longdouble)
        np.add.at(exact, places // multiple - first // multiple, value * shares.lower[places % multiple])
        np.add.at(exact, places // multiple - first // multiple + 1, value * shares.upper[places % multiple])
        whole = np.zeros(len(exact) + multiple + 2, dtype=np.longdouble)
        start = row - first // multiple
        whole[start : start + len(found)] = found
        whole[: len(exact)] -= exact
        assert float(np.abs(whole).sum()) <= bound <= 1e-11


def test_splitting_masses_dominates() -> None:
    """On a lattice that is not nested, and tilted."""
    weights = np.random.default_rng(2).random(301)
    law = lattice.TiltedLaw(0.01, -100, weights / weights.sum(), 1.5, 0.0, 1e-300, 0.0, 0.0, 0.0, math.inf, 0.0)
    for step in (0.02, 0.013, 0.05, 0.0071):
        coarse = law.moved_to_step(step)
        for e in (-0.5, 0.0, 0.3, 1.0, 1.9):
            low, high = law.log_floors(e).exact, coarse.log_finite_delta(e)
            assert low <= high <= low + step
            assert coarse.log_floors(e).exact <= low + 1e-12


# ---- behaviour -----------------------------------------------------------------------------------------------------


def test_finer_is_tighter() -> None:
    parts = [(pld.subsampled_gaussian(mu=1.0, rate=0.1), 300)]
    found = [pld.epsilon(parts, log_delta_target=-20.0, resolution=res).value for res in (64, 256, 1024, 4096)]
    assert found == sorted(found, reverse=True)
    assert found[0] < found[-1] * 1.001
    assert found[2] < found[-1] * (1.0 + 2e-6)


def test_parts_may_be_named_again_and_in_any_order() -> None:
    a, b = pld.laplace(ratio=0.2), pld.subsampled_gaussian(mu=1.0, rate=0.2)
    once = pld.log_delta([(a, 30), (b, 40)], epsilon=3.0)
    assert pld.log_delta([(a, 30), (b, 40)], epsilon=3.0) == once
    again = pld.log_delta([(b, 15), (a, 10), (b, 25), (a, 20)], epsilon=3.0)
    assert again.value == pytest.approx(once.value, abs=1e-9)


def test_monotone() -> None:
    pair = pld.subsampled_gaussian(mu=0.8, rate=0.05)
    by_count = [pld.log_delta([(pair, n)], epsilon=1.0).value for n in (1, 2, 10, 100, 1001, 10**5)]
    assert by_count == sorted(by_count)
    by_epsilon = [pld.log_delta([(pair, 500)], epsilon=e).value for e in (0.0, 0.1, 1.0, 3.0, 10.0, 100.0)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    by_delta = [pld.epsilon([(pair, 500)], log_delta_target=t).value for t in (-0.01, -1.0, -10.0, -100.0, -1000.0)]
    assert by_delta == sorted(by_delta)
    assert by_delta[0] == 0.0


@pytest.mark.parametrize(
    ("copies", "epsilons"),
    [((10**9,), (1.0,)), pytest.param((1, 7, 10**9), (0.0, 1.0, 1e6), marks=pytest.mark.campaign)],
)
def test_extremes_are_answered(copies: tuple[int, ...], epsilons: tuple[float, ...]) -> None:
    pairs = (
        pld.gaussian(mu=1e-30), pld.gaussian(mu=1e8), pld.laplace(ratio=1e-30), pld.laplace(ratio=1e15),
        pld.randomised_response(epsilon=1e-30), pld.randomised_response(epsilon=1e15, log_delta=-1e-300),
        pld.subsampled_gaussian(mu=5.0, rate=1e-15), pld.subsampled_gaussian(mu=1e8, rate=0.5),
        pld.from_curve(lambda e: np.full_like(e, -3.0)), pld.from_curve(np.zeros_like),
        pld.from_curve(lambda e: np.where(e < 1.0, -1.0, -np.inf)),
    )  # fmt: skip
    for pair in pairs:
        for parts in (*([(pair, n)] for n in copies), [(pair, 2), (pld.laplace(ratio=1.0), 2)]):
            for e in epsilons:
                found = pld.log_delta(parts, epsilon=e, resolution=16)
                assert found.value <= 0.0
                assert found.rounding >= 0.0
            assert pld.epsilon(parts, log_delta_target=-20.0, resolution=16).value >= 0.0


def test_delta_near_1() -> None:
    for e0, n, e in ((5.5, 4, 9.4), (3.0, 20, 10.0), (0.5, 400, 20.0)):
        found = pld.log_delta([(pld.randomised_response(epsilon=e0), n)], epsilon=e).value
        value = float(kov.direct(e0, -math.inf, n, e))
        assert value <= found <= value + 1e-9
    for wanted in (math.log(0.6), math.log(0.99)):
        found = pld.epsilon([(pld.from_curve(curve_of(0.5)), 100)], log_delta_target=wanted).value
        assert found == pytest.approx(gaussian.epsilon(mu=5.0, log_delta_target=wanted), rel=1e-6)


def test_small_losses_keep_their_precision() -> None:
    """delta near 1e-20 at epsilon = 0, where no tilt is asked for."""
    found = pld.log_delta([(pld.from_curve(curve_of(1e-20)), 4)], epsilon=0.0).value
    value = gaussian.log_delta(mu=2e-20, epsilon=0.0)
    assert value <= found <= value + 1e-6


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: pld.gaussian(mu=0.0),
        lambda: pld.gaussian(mu=math.nan),
        lambda: pld.laplace(ratio=-1.0),
        lambda: pld.laplace(ratio=math.inf),
        lambda: pld.randomised_response(epsilon=0.0),
        lambda: pld.randomised_response(epsilon=1.0, log_delta=0.0),
        lambda: pld.randomised_response(epsilon=1.0, log_delta=math.nan),
        lambda: pld.subsampled_gaussian(mu=1.0, rate=0.0),
        lambda: pld.subsampled_gaussian(mu=1.0, rate=1.1),
        lambda: pld.from_curve(lambda e: np.asarray(e) + 1.0),
        lambda: pld.from_curve(lambda e: np.full_like(e, np.nan)),
        lambda: pld.from_curve(lambda e: np.zeros(1)),
        lambda: pld.log_delta([], epsilon=1.0),
        lambda: pld.log_delta([(pld.gaussian(mu=1.0), 0)], epsilon=1.0),
        lambda: pld.log_delta([(pld.gaussian(mu=1.0), 1.5)], epsilon=1.0),  # type: ignore[list-item]
        lambda: pld.log_delta([(pld.gaussian(mu=1.0), math.inf)], epsilon=1.0),  # type: ignore[list-item]
        lambda: pld.log_delta([(pld.gaussian(mu=1.0), 1)], epsilon=-1.0),
        lambda: pld.log_delta([(pld.gaussian(mu=1.0), 1)], epsilon=math.nan),
        lambda: pld.log_delta([(pld.gaussian(mu=1.0), 1)], epsilon=1.0, resolution=1),
        lambda: pld.epsilon([(pld.gaussian(mu=1.0), 1)], log_delta_target=0.0),
        lambda: pld.epsilon([(pld.gaussian(mu=1.0), 1)], log_delta_target=-math.inf),
    ],
)
def test_wrong_descriptions_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(SpecError) as caught:
        wrong()
    assert caught.value.hint


# ---- peers, where they are installed -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_beside_dp_accounting() -> None:
    peer = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    theirs = peer.from_laplace_mechanism(10.0, value_discretization_interval=1e-4).self_compose(1000)
    ours = pld.epsilon([(pld.laplace(ratio=0.1), 1000)], log_delta_target=math.log(1e-6)).value
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_beside_prv_accountant() -> None:
    peer = pytest.importorskip("prv_accountant")
    prv = peer.LaplaceMechanism(mu=0.1)
    accountant = peer.PRVAccountant(prvs=[prv], max_self_compositions=[1000], eps_error=0.01, delta_error=1e-10)
    low, _, high = accountant.compute_epsilon(1e-6, [1000])
    ours = pld.epsilon([(pld.laplace(ratio=0.1), 1000)], log_delta_target=math.log(1e-6)).value
    assert low <= ours <= high


@pytest.mark.few(2)
@pytest.mark.parametrize(("scale", "log10_delta"), [(8.0, -6.0), (4.0, -6.0), (2.0, -5.0), (4.0, -12.0)])
def test_rare_losses_do_not_hide_the_middle(scale: float, log10_delta: float) -> None:
    """With tiny rates the moment generating function is all tail; the sum is nearly normal all the same."""
    mu, rate, count = 1.5 / scale, 1e-5, 10**5
    pair = pld.subsampled_gaussian(mu=mu, rate=rate)
    found = pld.epsilon([(pair, count)], log_delta_target=log10_delta * math.log(10.0))
    # The variance of a loss: of rate e^(mu x - mu^2/2) on the half line where it is above 1, counted for both signs.
    phi = lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0))  # noqa: E731
    variance = 2.0 * rate**2 * (math.exp(mu**2) * phi(1.5 * mu) + 3.0 * phi(-0.5 * mu) - 2.0)
    normal = gaussian.epsilon(mu=math.sqrt(count * variance), log_delta_target=log10_delta * math.log(10.0))
    assert 0.97 * normal <= found.value <= 1.15 * normal
    assert found.rounding + found.lattice < 1e-3
    back = pld.log_delta([(pair, count)], epsilon=found.value)
    assert back.value <= log10_delta * math.log(10.0) + 1e-3


def test_corners_are_those_of_the_lower_hull() -> None:
    """Dropped points lie on or above the chord over them, and slopes fall towards 0."""
    for r in draws("hull", 60):
        z = np.cumsum([0.0, *(log_uniform(r, 1e-9, 1.0) for _ in range(60))])
        h = np.minimum.accumulate([-log_uniform(r, 1e-3, 40.0) - 3.0 * x for x in z])
        h[r.randint(20, 60) :] = -np.inf
        kept = discretisation.hull(z, h)
        assert kept[0] == 0
        assert kept[-1] == len(z) - 1
        x, y = [mp.exp(mp.mpf(float(v))) for v in z], [mp.exp(mp.mpf(float(v))) for v in h]
        for a, b in itertools.pairwise(kept):
            for i in range(a + 1, b):
                chord = y[a] + (y[b] - y[a]) * (x[i] - x[a]) / (x[b] - x[a])
                assert y[i] >= chord * (1 - mp.mpf("1e-6")), (z, h, i)
        slopes = [(y[b] - y[a]) / (x[b] - x[a]) for a, b in itertools.pairwise(kept)]
        assert all(a <= b * (1 - mp.mpf("1e-6")) for a, b in itertools.pairwise(slopes)), (z, h)


def test_the_hull_is_the_same_walked_from_one_point_to_the_next() -> None:
    for r in draws("walked hull", 40):
        z = np.cumsum([0.0, *(log_uniform(r, 1e-9, 1.0) for _ in range(200))])
        h = np.minimum.accumulate([-log_uniform(r, 1e-3, 40.0) - 3.0 * x for x in z])
        assert discretisation.hull(z, h).tolist() == discretisation._walked_hull(z, h)
    z, h = np.array([0.0, 0.5, 0.5, 1.0, 2.0]), np.array([-1.0, -2.0, -2.0, -2.5, -np.inf])
    assert 1.0 in z[discretisation.hull(z, h)]
    assert len(set(z[discretisation.hull(z, h)])) == len(discretisation.hull(z, h))


def test_points_that_coincide_have_no_chord() -> None:
    assert discretisation._log_chord([1.0, 1.0], [-1.0, -2.0], 0, 1) == math.inf
    assert discretisation._log_chord([1.0, 1.0], [-1.0, -1.0], 0, 1) == -math.inf


@pytest.mark.few(1)
@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0])
def test_a_curve_that_is_loose_at_zero_is_a_law_of_mass_one(mu: float) -> None:
    """E_g is convex across g = 1, so that values at e^-z and e^z bound it there; a Gaussian pair is the truth."""

    def loose(e: Any) -> Any:
        exact = np.array([gaussian.log_delta(mu=mu, epsilon=float(x)) for x in e])
        return np.where(e < 0.5 * mu, math.log(0.9), exact)

    z = np.concatenate(([0.0], np.linspace(0.02, 6.0, 300) * mu))
    pair = pld.from_curve(loose)
    law = discretisation.discretise(pair, z, z)
    assert np.exp(law.log_masses).sum() + math.exp(law.log_infinity_mass) == pytest.approx(1.0, abs=1e-9)
    for epsilon in (0.0, mu):
        truth = gaussian.log_delta(mu=mu * math.sqrt(3.0), epsilon=epsilon)
        assert truth <= pld.log_delta([(pair, 3)], epsilon=epsilon).value < truth + 1.0
