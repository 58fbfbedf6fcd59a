"""Binomial and chi-square tails against 40 digits: never below, and no further above than is said."""

import math

import mpmath as mp
import pytest

from dpcalc.numerics import binomial, normal
from tests.oracles import draws, log_uniform, whole


def exact_log_mass(k: int, trials: int, one_in: int) -> mp.mpf:
    choose = mp.loggamma(trials + 1) - mp.loggamma(k + 1) - mp.loggamma(trials - k + 1)
    return choose - k * mp.log(one_in) + (trials - k) * mp.log1p(-mp.mpf(1) / one_in)


def test_masses_are_never_below_and_tight() -> None:
    with mp.workdps(60):
        for r in draws("binomial masses", 300, cost=5):
            trials, one_in = whole(r, 1, 10**12), whole(r, 2, 10**12)
            k = min(trials, int(trials / one_in * r.uniform(0.0, 3.0)) + r.randint(0, 5))
            exact = exact_log_mass(k, trials, one_in)
            error = binomial.log_mass_up(k, trials=trials, one_in=one_in) - exact
            assert 0 <= error <= mp.mpf("3e-14") * (1 + abs(exact)), (trials, one_in, k)


def sums(trials: int, one_in: int) -> list[mp.mpf]:
    return [mp.exp(exact_log_mass(k, trials, one_in)) for k in range(trials + 1)]


def test_tails_and_quantiles_of_small_laws() -> None:
    with mp.workdps(40):
        for r in draws("binomial tails", 40, cost=20):
            trials, one_in = whole(r, 1, 200), whole(r, 2, 300)
            masses = sums(trials, one_in)
            start = r.randint(0, trials)
            exact = mp.log(mp.fsum(masses[start:]))
            found = binomial.log_tail_up(start, trials=trials, one_in=one_in)
            assert found >= exact
            if start * one_in > trials:
                assert found - exact <= 1e-12 * (1 - exact)
            chance = log_uniform(r, 1e-12, 0.3)
            k = binomial.quantile_up(math.log(chance), trials=trials, one_in=one_in)
            least = next(j for j in range(trials + 1) if mp.fsum(masses[j + 1 :]) <= chance)
            assert least <= k <= max(least, trials // one_in)


def test_a_tail_with_a_geometric_rest_is_never_below() -> None:
    """Ten masses, and a geometric series for the rest."""
    with mp.workdps(40):
        for trials, one_in in ((5000, 10), (100000, 400)):
            masses = [mp.exp(exact_log_mass(k, trials, one_in)) for k in range(trials // one_in + 300)]
            for start in (trials // one_in + 5, trials // one_in + 60):
                exact = mp.log(mp.fsum(masses[start:]))
                found = binomial.log_tail_up(start, trials=trials, one_in=one_in, terms=10)
                assert exact - mp.mpf("1e-12") <= found <= exact + 1


def test_means_of_groups_are_never_below() -> None:
    for trials, one_in in ((1, 2), (13, 7), (300, 2), (5000, 3), (3, 10**15)):
        groups = binomial.upper_groups_with_tails(trials, one_in)
        with mp.workdps(40):
            masses = sums(trials, one_in)
            for rate in (0.0, 1e-3, 0.3):
                exact = mp.fsum(mass * mp.exp(rate * k) for k, mass in enumerate(masses))
                found = mp.fsum(mp.exp(weight) * mp.exp(rate * k) for k, weight, _ in groups)
                wide = 1.1 * math.exp(rate * (1 + trials / 60.0)) if trials > 1000 else 1.0 + 1e-12
                assert exact * (1 - mp.mpf("1e-15")) <= found <= exact * wide
            for k, _, rest in groups:
                assert k == trials or rest >= mp.log(mp.fsum(masses[k + 1 :])) - mp.mpf("1e-30")


def test_groups_of_long_runs() -> None:
    for trials, one_in in ((10**9, 1), (10**9, 10**3), (10**9, 10**9), (10**15, 2)):
        groups = list(binomial.upper_groups_with_tails(trials, one_in))
        assert len(groups) < 4000
        assert 1.0 <= math.fsum(math.exp(weight) for _, weight, _ in groups) < 1.1
        assert groups[-1][2] < -700.0


def test_chi_square_tails_and_quantiles() -> None:
    with mp.workdps(30):
        for r in draws("chi square", 40, cost=20):
            freedom = whole(r, 1, 5000)
            chance = log_uniform(r, 1e-30, 0.3)
            x = normal.quantile_up(math.log(chance), freedom=freedom)
            tail = mp.gammainc(mp.mpf(freedom) / 2, mp.mpf(x) / 2, regularized=True)
            assert tail <= chance
            found = normal.log_tail_up(x, freedom=freedom)
            assert mp.log(tail) <= found <= mp.log(tail) + mp.mpf("1e-9")
            less = mp.gammainc(mp.mpf(freedom) / 2, mp.mpf(x * (1 - 1e-9)) / 2, regularized=True)
            assert less > chance or x <= freedom * (1 + 1e-9)
            assert x <= normal.laurent_massart_quantile_up(math.log(chance), freedom=freedom) * (1 + 1e-12)


@pytest.mark.parametrize("chance", [0.5, 0.4, 1e-3, 1e-300])
def test_normal_quantile(chance: float) -> None:
    z = normal.normal_quantile_up(math.log(chance))
    with mp.workdps(40):
        assert mp.erfc(mp.mpf(z) / mp.sqrt(2)) / 2 <= chance * (1 + mp.mpf("1e-13"))
        assert chance > 0.45 or mp.erfc(mp.mpf(z) * (1 - mp.mpf("1e-12")) / mp.sqrt(2)) / 2 > chance * (1 - 1e-9)
