"""Confidence bounds on a probability against binomial sums in high precision."""

import mpmath
import pytest

from dpcalc.numerics.clopper_pearson import lower, upper


def at_least(k: int, n: int, p: float) -> mpmath.mpf:
    """Return P(Bin(n, p) >= k) by its sum, which is cut where the terms are below 1e-60 of the first."""
    with mpmath.workdps(60):
        chance = mpmath.mpf(p)
        term = mpmath.exp(
            mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
            + k * mpmath.log(chance) + (n - k) * mpmath.log1p(-chance)
        )  # fmt: skip
        total, ratio, first = mpmath.mpf(0), chance / (1 - chance), term
        while k <= n and (term > first * mpmath.mpf("1e-60") or term > total * mpmath.mpf("1e-60")):
            total += term
            term *= ratio * (n - k) / (k + 1)
            k += 1
        return total


CASES = [
    (k, n, alpha)
    for alpha in (0.5, 0.05, 0.0025, 1e-9)
    for k, n in ((1, 1), (1, 7), (3, 7), (7, 7), (1, 1000), (999, 1000), (17, 10**5), (3, 10**8))
]


@pytest.mark.parametrize(("k", "n", "alpha"), CASES)
def test_the_tail_beyond_a_bound_is_below_alpha_and_hardly_so(k: int, n: int, alpha: float) -> None:
    low = lower(k, n, alpha)
    assert at_least(k, n, low) <= alpha
    assert at_least(k, n, min(1.0 - 1e-16, low * (1.0 + 1e-5))) > alpha * (1.0 - 2e-6)
    if low > 1e-6:  # below, 1 - high has lost its digits
        high = upper(n - k, n, alpha)  # of the failures of the same trials
        assert at_least(k, n, 1.0 - high) <= alpha * (1.0 + 1e-7)  # 1 - high is rounded here
        assert abs((1.0 - high) - low) <= 1e-5 * low


@pytest.mark.parametrize(("k", "n"), [(0, 5), (12, 10**4), (40000, 10**5), (50, 10**8)])
def test_upper_bounds_of_small_shares(k: int, n: int) -> None:
    high = upper(k, n, 0.01)
    assert 1 - at_least(k + 1, n, high) <= 0.01
    assert 1 - at_least(k + 1, n, high * (1.0 - 1e-5)) > 0.01 * (1.0 - 2e-6)


def test_ends() -> None:
    assert lower(0, 10, 0.01) == 0.0
    assert upper(10, 10, 0.01) == 1.0
    assert abs(upper(0, 10**6, 0.01) - 4.6051595812796015e-06) < 1e-10  # 1 - 0.01^(1e-6)


@pytest.mark.parametrize("wrong", [(-1, 5, 0.1), (6, 5, 0.1), (0, 0, 0.1), (1, 5, 0.0), (1, 5, 0.9)])
def test_nonsense_is_refused(wrong: tuple[int, int, float]) -> None:
    for bound in (lower, upper):
        with pytest.raises(ValueError, match="of"):
            bound(*wrong)
