"""What an attacker can do, against small mechanisms by the Neyman-Pearson lemma, and against high precision."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from mpmath import mp

from dpcalc.errors import NotApplicable
from dpcalc.notions import gaussian, pld
from dpcalc.notions.guarantee import Box, Composition, Gdp, LowerBound, Point, Profile, Rdp, Worst, gaussian_lower_bound
from dpcalc.notions.least_mu import matching
from dpcalc.numerics.normal import quantile
from tests.reference.published import odds_tail

FPRS = (1e-4, 0.01, 0.1, 0.3, 0.6, 0.9, 0.999)
Law = np.ndarray


def laws(seed: int, outcomes: int = 5) -> tuple[Law, Law]:
    """Return two random laws; of some seeds one of them lacks an outcome."""
    random = np.random.default_rng(seed)
    p, q = random.dirichlet(np.full(outcomes, 0.5)), random.dirichlet(np.full(outcomes, 2.0))
    q = 0.7 * p + 0.3 * q if seed % 3 else q
    if seed % 4 == 0:
        q[0] = 0.0
        q /= q.sum()
    return p, q


def corners_of(p: Law, q: Law) -> list[tuple[float, float]]:
    """Return (false positives, true positives) of the corners of the best tests of P against Q."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.nan_to_num(p / q, posinf=1e300))
    return [(0.0, 0.0), *zip(np.cumsum(q[order]), np.cumsum(p[order]), strict=True)]


def best_tpr(p: Law, q: Law, fpr: float) -> float:
    """Return the largest rate of true positives of any test."""
    false, true = zip(*corners_of(p, q), strict=True)
    return float(np.interp(fpr, false, true)) if fpr > 0 else 0.0


def profile(p: Law, q: Law) -> Profile:
    """Return delta of both orders, a hair above."""

    def log_delta(epsilon: float) -> float:
        g = math.exp(min(epsilon, 700.0))
        delta = max(np.maximum(p - g * q, 0.0).sum(), np.maximum(q - g * p, 0.0).sum())
        return math.log(delta) + 1e-13 if delta > 0.0 else -math.inf

    return Profile(log_delta)


def renyi(p: Law, q: Law) -> Rdp:
    """Return the Renyi curve of both orders."""

    def one_way(order: float, a: Law, b: Law) -> float:
        if np.any((b == 0.0) & (a > 0.0)):
            return math.inf
        both = (a > 0.0) & (b > 0.0)
        return float(np.logaddexp.reduce(order * np.log(a[both]) + (1.0 - order) * np.log(b[both])))

    def at(order: float) -> float:
        return max(one_way(order, p, q), one_way(order, q, p), 0.0) / (order - 1.0) + 1e-13 * (
            1.0 + 1.0 / (order - 1.0)
        )

    return Rdp(at)


SEEDS = range(24)


@pytest.mark.few(14)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("known", [profile, renyi])
def test_no_attack_on_a_small_mechanism_does_better(known: Callable[[Law, Law], Profile | Rdp], seed: int) -> None:
    p, q = laws(seed)
    curve = known(p, q).trade_off()
    for fpr in FPRS:
        best = max(best_tpr(p, q, fpr), best_tpr(q, p, fpr))
        assert best <= curve.tpr(fpr) <= 1.0
    advantage = 0.5 * np.abs(p - q).sum()
    assert advantage <= curve.advantage() + 1e-15
    for prior in (0.05, 0.3, 0.5, 0.8):
        best = max(np.maximum(prior * a, (1.0 - prior) * b).sum() for a, b in ((p, q), (q, p)))
        assert best <= curve.success(prior)
    if known is profile:
        assert curve.advantage() <= advantage * (1.0 + 1e-9) + 1e-12
        assert curve.success(0.3) <= max(np.maximum(0.3 * a, 0.7 * b).sum() for a, b in ((p, q), (q, p))) + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_the_profile_gives_the_hull_of_both_orders(seed: int) -> None:
    """No more than the concave hull of the best tests of either order is lost."""
    p, q = laws(seed)
    curve = profile(p, q).trade_off()
    corners = sorted([*corners_of(p, q), *corners_of(q, p)])
    for fpr in FPRS:
        around = itertools.product(corners, corners)
        chords = [
            t0 + (t1 - t0) * (fpr - a0) / (a1 - a0) for (a0, t0), (a1, t1) in around if a0 < fpr <= a1 and a1 > a0
        ]
        assert max(chords) - 1e-12 <= curve.tpr(fpr) <= max(chords) * (1.0 + 1e-6) + 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_a_secret_is_guessed_no_more_often(seed: int) -> None:
    """Four equally likely secrets, their laws a chain away from one law without the record."""
    random = np.random.default_rng(seed)
    without = random.dirichlet(np.ones(6))
    with_secret = [0.8 * without + 0.2 * random.dirichlet(np.full(6, 0.3)) for _ in range(4)]
    guessed = np.max(with_secret, axis=0).sum() / 4.0
    curves = [profile(law, without).trade_off() for law in with_secret]
    assert guessed <= max(curve.reconstruction(0.25) for curve in curves)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_odds_rise_no_more_often(seed: int) -> None:
    p, q = laws(seed)
    for log_factor in (0.05, 0.5, 1.5, 4.0):
        with np.errstate(divide="ignore"):
            risen = max(float(a[a > math.exp(log_factor) * (1.0 + 1e-12) * b].sum()) for a, b in ((p, q), (q, p)))
        assert risen <= odds_tail(profile(p, q).profile, log_factor) + 1e-15


@pytest.mark.parametrize("mu", [1e-6, 0.1, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("log_fpr", [-2000.0, -40.0, -3.0, -0.3, -1e-6])
def test_gaussian_privacy_to_many_digits(mu: float, log_fpr: float) -> None:
    with mp.workdps(60):
        tail = mp.e ** mp.mpf(log_fpr)

        def excess(z: object) -> object:
            return mp.log(mp.erfc(z / mp.sqrt(2)) / 2) - mp.mpf(log_fpr)

        low, high = (mp.mpf(0), mp.mpf(70)) if tail <= mp.mpf(1) / 2 else (mp.mpf(-10), mp.mpf(0))
        z = mp.findroot(excess, (low, high), solver="bisect", tol=1e-90, maxsteps=400)
        exact = mp.log(mp.erfc((z - mp.mpf(mu)) / mp.sqrt(2)) / 2)
        found = Gdp(mu).trade_off().log_tpr(log_fpr)
        assert exact <= found
        assert found - exact <= 1e-13 * (1 + abs(log_fpr)) * (1 + mu * mu)
        assert quantile(log_fpr, upwards=False) <= z <= quantile(log_fpr, upwards=True)


def test_the_worst_of_several_is_the_largest() -> None:
    both = Worst([Gdp(1.0), Gdp(2.0)]).trade_off()
    alone = Gdp(2.0).trade_off()
    assert both.tpr(0.01) == alone.tpr(0.01)
    assert both.advantage() == alone.advantage()
    assert both.success(0.3) == alone.success(0.3)


def test_a_rule_for_epsilon_has_no_curve() -> None:
    rule = Point(lambda log_delta: 1.0)
    for refused in (rule.trade_off, lambda: rule.least_mu(-20.0), lambda: rule.with_regret(1.0, -20.0)):
        with pytest.raises(NotApplicable, match="at a delta only"):
            refused()


def test_a_lower_value_is_below_the_best_attack() -> None:
    floor = gaussian_lower_bound(1.0).advantage()
    assert floor is not None
    assert 0.0 < Gdp(1.0).trade_off().advantage() - floor < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_mu_covers_a_small_mechanism_down_to_its_delta(seed: int) -> None:
    p, q = laws(seed)
    known = profile(p, q)
    found = known.least_mu(math.log(1e-3))
    with mp.workdps(40):
        for epsilon in np.linspace(0.0, 8.0, 60):
            e = mp.mpf(float(epsilon))
            mu = mp.mpf(found.mu)
            upper = mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu) if found.mu else mp.mpf(0)
            delta = mp.exp(known.profile(float(epsilon)))
            assert delta <= max(upper, mp.exp(found.log_delta)) * (1 + mp.mpf("1e-12"))
            # No more of a guess is overstated than the regret says.
            assert (upper - delta) / (1 + mp.exp(e)) <= found.regret + 1e-12


@pytest.mark.parametrize("mu", [0.01, 1.0, 20.0])
def test_mu_of_a_gaussian_profile_is_its_own(mu: float) -> None:
    """The mechanism N(mu, 1) against N(0, 1), told as a profile alone: mu, but for what the tail below delta_0 asks."""
    gaussian = Gdp(mu)
    found = Profile(lambda e: gaussian.log_delta(e).value).least_mu(math.log(1e-9))
    assert mu * (1.0 - 1e-9) <= found.mu <= mu * (1.0 + 1e-4)
    assert found.log_delta <= math.log(1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 20.0])
@pytest.mark.parametrize("log_delta", [-1e-9, -0.5, -5.0, -300.0])
def test_matching_meets_delta(epsilon: float, log_delta: float) -> None:
    mu = matching(epsilon, log_delta)
    for near, above in ((mu, True), (mu * (1.0 - 1e-9), False)):
        with mp.workdps(340):
            m, e = mp.mpf(near), mp.mpf(epsilon)
            delta = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
            assert (mp.log(delta) >= log_delta) is above


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 12.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.01, 0.5])
def test_one_point_is_that_of_randomised_response(epsilon: float, delta: float) -> None:
    """The worst mechanism: tell the secret with probability delta, else answer it with odds e^epsilon."""
    right = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    p = np.array([delta, right, 1.0 - delta - right, 0.0])
    q = p[::-1].copy()
    curve = Box(epsilon, math.log(delta) if delta else -math.inf).trade_off()
    for fpr in FPRS:
        best = best_tpr(p, q, fpr)
        assert best * (1.0 - 1e-12) <= curve.tpr(fpr) <= best * (1.0 + 1e-9)
    advantage = 0.5 * np.abs(p - q).sum()
    assert advantage * (1.0 - 1e-9) - 1e-15 <= curve.advantage() <= advantage * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_picture_is_a_little_loose_and_never_wrong(seed: int) -> None:
    p, q = laws(seed)
    best = [max(best_tpr(p, q, fpr), best_tpr(q, p, fpr)) for fpr in FPRS]
    exact = profile(p, q).trade_off()  # at the next epsilon that is asked, 1/16 further at most, e^e is so much more
    drawn = Worst([profile(p, q), Gdp(0.01)]).tprs(FPRS)
    assert all(b - 1e-15 <= d for b, d in zip(best, drawn, strict=True))
    assert all(
        d <= max(exact.tpr(a), Gdp(0.01).trade_off().tpr(a)) * math.exp(0.0626)
        for d, a in zip(drawn, FPRS, strict=True)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lower_curve_is_below_the_hull_of_both_orders(seed: int) -> None:
    """The least delta(e) + e^e a over real e, which is what the exact curve is to within its own looseness."""
    p, q = laws(seed)
    exact, known = profile(p, q).trade_off(), profile(p, q).profile
    lower = LowerBound(lambda e: known(e) - 2e-13).tpr()
    assert lower is not None
    for fpr in FPRS:
        assert max(fpr, 0.93 * exact.tpr(fpr)) <= lower(fpr) <= exact.tpr(fpr)


def test_a_lower_curve_of_mu_is_exact() -> None:
    lower = gaussian_lower_bound(1.5).tpr()
    assert lower is not None
    for fpr in FPRS:
        assert Gdp(1.5).trade_off().tpr(fpr) * (1.0 - 1e-12) <= lower(fpr) <= Gdp(1.5).trade_off().tpr(fpr)
    assert LowerBound(curve=lambda order: 0.5 * order).tpr() is None


def mixture_delta(mu: float, rate: float, steps: int, epsilon: float) -> float:
    """Return delta of 1 or 2 steps of a Poisson sample, a record removed, by sums over a fine grid."""
    x = np.linspace(-8.0, 10.0 + 2.0 * mu, 1601)
    without = np.exp(-0.5 * x * x) * (x[1] - x[0]) / math.sqrt(2.0 * math.pi)
    present = (1.0 - rate) * without + rate * without * np.exp(mu * x - 0.5 * mu * mu)
    p, q = (present, without) if steps == 1 else (np.outer(present, present), np.outer(without, without))
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize("steps", [1, 2])
def test_a_mixture_is_gaussian_with_the_mu_of_its_farthest_part(steps: int) -> None:
    """delta is nowhere above that mu's, and far out it is above that of a mu that is a little smaller."""
    pair = pld.removed(mu=1.0, rate=0.2)
    known = Composition([(pair, steps)], [(pld.exchanged(pair), steps)]).whole_mu
    assert 0.0 <= known / math.sqrt(steps) - 1.0 < 1e-14
    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0):
        delta = mixture_delta(1.0, 0.2, steps, epsilon)
        assert delta <= math.exp(gaussian.log_delta(mu=known, epsilon=epsilon)) * (1.0 + 1e-6)
    for mu, epsilon in ((0.6, 3.0), (0.9, 16.0)):  # of one step mu(3) = 0.643877, mu(20) = 0.924
        if steps == 1:
            delta = math.exp(float(pair.forward(np.array([epsilon]))[0]))
            assert delta > math.exp(gaussian.log_delta(mu=mu, epsilon=epsilon))


@pytest.mark.parametrize(
    ("pair", "mu"),
    [
        (pld.gaussian(mu=0.7), 0.7),
        (pld.removed(mu=1.3, rate=0.3), 1.3),
        (pld.replaced_poisson(mu=0.9, rate=0.2), 1.8),
        (pld.nulled_fixed(mu=0.9, rate=0.2), 0.9),
        (pld.subsampled_gaussian(mu=1.5, rate=0.1), 1.5),
        (pld.removed_group(mu=0.4, rate=0.3, size=3), 1.2),
        (pld.replaced_group(mu=0.4, rate=0.3, size=3), 2.4),
        (pld.random_place(mu=1.0, bins=5), 1.0),
        (pld.replaced_place(mu=0.6, bins=4), 1.2),
        (pld.laplace(ratio=1.0), math.inf),
        (pld.randomised_response(epsilon=1.0), math.inf),
    ],
)
def test_no_pair_is_above_the_mu_that_is_said_to_dominate_it(pair: pld.Pair, mu: float) -> None:
    assert pair.whole_mu == pytest.approx(mu, rel=1e-12)
    assert pld.exchanged(pair).whole_mu == pair.whole_mu
    if math.isinf(mu):
        assert Composition([(pair, 2)]).whole_mu == math.inf
        return
    epsilons = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 9.0])
    for curve in (pair.forward, pair.backward):
        for epsilon, log_delta in zip(epsilons, curve(epsilons), strict=True):
            assert log_delta <= gaussian.log_delta(mu=pair.whole_mu * (1.0 + 1e-9), epsilon=epsilon)


def test_a_composition_that_may_fail_has_no_mu() -> None:
    parts = [(pld.gaussian(mu=1.0), 4)]
    assert Composition(parts).whole_mu == pytest.approx(2.0)
    assert Composition(parts, log_failure=-20.0).whole_mu == math.inf
    assert Worst([Gdp(1.0), Composition(parts)]).whole_mu == pytest.approx(2.0)
    assert Profile(lambda e: -e).whole_mu == Box(1.0).whole_mu == math.inf


@pytest.mark.parametrize("seed", SEEDS[:8])
def test_the_orders_of_a_composition_are_told_apart(seed: int) -> None:
    """Where each order's own profile is known, the best test of each order alone counts, and not the hull of both."""
    p, q = laws(seed)

    def one_way(a: Law, b: Law) -> Callable[[np.ndarray], np.ndarray]:
        return lambda e: np.array(
            [min(0.0, math.log(max(np.maximum(a - math.exp(min(x, 700.0)) * b, 0.0).sum(), 1e-300)) + 1e-13) for x in e]
        )

    pair = pld.from_curve(one_way(p, q), one_way(q, p))
    curve = Composition([(pair, 1)], [(pld.exchanged(pair), 1)]).trade_off()
    for fpr in FPRS:
        best = max(best_tpr(p, q, fpr), best_tpr(q, p, fpr))
        assert best - 1e-13 <= curve.tpr(fpr) <= best * (1.0 + 1e-6) + 1e-9
