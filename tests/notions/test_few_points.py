"""A profile known at few points is an upper bound everywhere, and close where it is asked."""

import itertools
import math

import pytest
from scipy.stats import norm

from dpcalc.notions import gaussian
from dpcalc.notions.curves import chord
from dpcalc.notions.guarantee import Profile
from dpcalc.notions.least_mu import from_points, hull
from tests.oracles import draws, log_uniform

FPRS = (0.001, 0.03, 0.4, 0.9)


def of_mu(mu: float) -> tuple[Profile, list[float]]:
    """Return the profile of a Gaussian mechanism, and where it has been asked for its values."""
    asked: list[float] = []

    def log_delta(epsilon: float) -> float:
        asked.append(epsilon)
        return gaussian.log_delta(mu=mu, epsilon=epsilon)

    return Profile(log_delta), asked


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
def test_attacks_on_a_gaussian_mechanism(mu: float) -> None:
    """The rate of true positives is Phi(mu - z(a)), the advantage 2 Phi(mu/2) - 1, and mu is mu."""
    exact, asked = of_mu(mu)
    few = exact.few_points(math.log(1e-6), FPRS, (0.2,))
    assert len(asked) < 120
    found = few.trade_off()
    for fpr in FPRS:
        true = norm.cdf(mu + norm.ppf(fpr))
        assert true * (1.0 - 1e-12) <= found.tpr(fpr) <= true * (1.0 + 1e-5), fpr
    advantage = 2.0 * norm.cdf(0.5 * mu) - 1.0
    assert advantage * (1.0 - 1e-12) <= found.advantage() <= advantage * (1.0 + 1e-6)
    epsilon = math.log(0.8 / 0.2)
    success = 0.8 + 0.2 * math.exp(gaussian.log_delta(mu=mu, epsilon=epsilon))
    assert success * (1.0 - 1e-12) <= found.success(0.2) <= success * (1.0 + 1e-7)
    assert mu * (1.0 - 1e-9) <= few.least_mu(math.log(1e-6)).mu <= mu * (1.0 + 2e-3)


def test_values_are_above_those_of_the_profile() -> None:
    for r in draws("few points", 12, cost=40):
        mu = log_uniform(r, 1e-3, 20.0)
        exact, _ = of_mu(mu)
        few = exact.few_points(math.log(1e-6), (0.01,), ())
        for _ in range(20):
            epsilon = r.choice((0.0, log_uniform(r, 1e-9, 10.0 * mu)))
            assert few.profile(epsilon) >= gaussian.log_delta(mu=mu, epsilon=epsilon) - 1e-13, (mu, epsilon)


def test_points_whose_factors_are_further_apart_than_doubles_go() -> None:
    nodes = [(0.0, -1e-3), (1.0, -2e-3), (2000.0, -5.0), (4000.0, -40.0), (9000.0, -700.0)]
    assert hull(nodes) == nodes
    for mu, (left, right) in zip(from_points(nodes), itertools.pairwise(nodes), strict=True):
        for share in (0.0, 0.3, 0.9, 1.0):
            epsilon = left[0] + share * (right[0] - left[0])
            assert gaussian.log_delta(mu=mu, epsilon=epsilon) >= chord(*left, *right, epsilon) - 1e-9


def test_what_mu_overstates_is_not_told_too_small_by_chords() -> None:
    """1-differential privacy known at few points: mu overstates the most at epsilon = 1, where it is between two."""
    mu = 1.2320353853453
    places = (0.0, 0.4, 0.8, 1.4, 2.0)
    deltas = (max(1e-250, (math.e - math.exp(e)) / (1.0 + math.e)) for e in places)
    nodes = tuple((e, math.log(delta)) for e, delta in zip(places, deltas, strict=True))

    def chords(epsilon: float) -> float:
        for left, right in itertools.pairwise(nodes):
            if left[0] <= epsilon <= right[0]:
                return chord(*left, *right, epsilon)
        return nodes[-1][1]

    overstated = math.exp(gaussian.log_delta(mu=mu, epsilon=1.0)) / (1.0 + math.e)
    told = Profile(chords, nodes=nodes).with_regret(mu, math.log(1e-6)).regret
    assert overstated * (1.0 - 1e-12) <= told <= 1.001 * overstated


def test_delta_that_jumps_to_zero_and_delta_that_never_falls() -> None:
    pure = Profile(lambda epsilon: math.log1p(-math.exp(epsilon - 1.0)) if epsilon < 1.0 else -math.inf)
    few = pure.few_points(math.log(1e-6), (0.01,), ())
    assert few.profile(0.0) == pure.profile(0.0)
    assert pure.profile(0.9) <= few.profile(0.9) <= pure.profile(0.9) + 0.1
    assert few.trade_off().tpr(0.01) == pytest.approx(0.01 * math.e, rel=1e-3)
    assert Profile(lambda _: -1.0).few_points(math.log(1e-6), (0.01,), ()).profile(3.0) == -1.0
