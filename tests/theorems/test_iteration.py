"""One fixed-order pass: long sums, the classic mechanism, what is published, and extremes.

The bounds are compared with their definitions in `tests.soundness`.
"""

import math
from fractions import Fraction

import pytest

from dpcalc.certify.numerics import sums
from dpcalc.certify.numerics.balls import classic_holds
from dpcalc.notions import conversions, gaussian
from dpcalc.theorems.one_pass import iteration, random_stop
from tests.formulas import evaluated
from tests.oracles import adaptive, ball, exact, not_below, tight


def test_mu_of_short_numbers_is_exact_where_it_can_be() -> None:
    for n, s, sigma, expected in ((100, 2.0, 1.0, 0.2), (1, 2.0, 4.0, 0.5), (4, 3.0, 1.5, 1.0)):
        found = evaluated(iteration.pnsgd, records=n, index=1, batch_size=1, sensitivity=s, noise_std=sigma)
        assert found == pytest.approx(expected, rel=1e-15)


def test_domain_of_the_last_step_says_nothing() -> None:
    curved = {"step_size": 0.5, "smoothness": 1.0, "strong_convexity": 0.5}
    given = {"records": 7, "index": 7, "batch_size": 1, "noise_std": 1.0, "diameter": 1.0}
    assert evaluated(iteration.pnsgd_domain, **given, **curved) == math.inf


@pytest.mark.parametrize("n", [1, 2, 3, 10, 64, 65, 1000, 12345, 10**9, 10**15])
def test_stop_constant(n: int) -> None:
    """C_n = n ln((1/n) sum_{k<=n} e^(1/k))."""
    found, value = (
        random_stop.stop_constant(records=n),
        adaptive(lambda: n * (sums.expm1_reciprocals(ball(1), n) / n).log1p()),
    )
    not_below(found, value, f"C_{n}")
    tight(found, value, f"C_{n}", 1e-12)
    if n >= 3:
        assert found <= 2.0 * math.log(n)


@pytest.mark.parametrize("log_delta", [-0.01, -0.11, -0.5, -1.0, -5.0, -11.5, -50.0, -690.0, -1e4, -1e5])
def test_classic_range(log_delta: float) -> None:
    """The largest epsilon at which the classic noise holds, to nine digits; below it that noise is enough."""
    found = conversions.epsilon_max(log_delta=log_delta)
    holds = [
        classic_holds(ball(exact(found) * (1 + share)), ball(exact(log_delta))) for share in (0, Fraction(1, 10**9))
    ]
    assert holds == [True, False]
    below = {"sensitivity": 1.0, "epsilon": found * 0.999999, "log_delta": log_delta}
    exactly = gaussian.noise_std(sensitivity=1.0, epsilon=below["epsilon"], log_delta_target=log_delta)
    assert exactly <= conversions.noise_std(**below)


def test_published_stop_is_withheld_where_it_is_false() -> None:
    for n in (1, 2):
        assert evaluated(random_stop.stop_published, records=n, sensitivity=2.0, noise_std=4.0, order=2.0) == math.inf
    found = evaluated(random_stop.stop_published, records=3, sensitivity=2.0, noise_std=4.0, order=2.0)
    assert found == pytest.approx(2.0 * 0.25 * math.log(3.0) / 3.0, rel=1e-12)


@pytest.mark.few(60)
@pytest.mark.parametrize("sensitivity", [5e-324, 1e-300, 1e-200, 1e-100, 1e100, 1e200, 1e300])
@pytest.mark.parametrize("noise_std", [5e-324, 1e-300, 1e-100, 1.0, 1e100, 1e300])
@pytest.mark.parametrize("n", [1, 2, 1000, 10**15])
def test_extreme_scales_never_give_nan_or_zero(sensitivity: float, noise_std: float, n: int) -> None:
    given = {"records": n, "index": (n + 1) // 2, "sensitivity": sensitivity, "noise_std": noise_std}
    batch = {**given, "batch_size": 1}
    values = [evaluated(iteration.pnsgd, **batch), evaluated(iteration.local, **batch)]
    for order in (1.0, 1.0 + 1e-9, 2.0, 1e6):
        values += [evaluated(f, **batch, order=order) for f in (iteration.pnsgd_rdp, iteration.local_rdp)]
        values += [
            evaluated(f, **given, order=order)
            for f in (random_stop.skip_rdp, random_stop.stop_rdp, random_stop.stop_harmonic)
        ]
    curved = {"step_size": 0.5, "smoothness": 1.0, "strong_convexity": 0.5}
    values.append(evaluated(iteration.pnsgd_contraction, **batch, **curved))
    values += [evaluated(iteration.pnsgd_domain, **batch, **curved, diameter=d) for d in (1e-300, 1.0, 1e300)]
    assert all(value > 0.0 for value in values), values  # false for nan, too
    for e in (0.0, 1e-300, 1.0, 1e4):
        assert evaluated(random_stop.skip, **given, epsilon=e) <= 0.0
        assert evaluated(random_stop.stop, **given, epsilon=e) <= 0.0
