"""Passes of which one (epsilon, delta) is known: advanced composition against brute force, and at its ends."""

import itertools
import math

import mpmath
import pytest

from dpcalc.theorems.released import released
from dpcalc.theorems.setting import Setting
from tests.oracles import draws, log_uniform, whole


def delta_of_responses(epochs: int, epsilon0: float, delta0: float, epsilon: float) -> float:
    """Return delta of E randomised responses, each revealing its secret with probability delta0: sum over outcomes."""
    high, low = math.exp(epsilon0) / (1.0 + math.exp(epsilon0)), 1.0 / (1.0 + math.exp(epsilon0))
    outcomes = ((delta0, 0.0), (0.0, delta0), ((1.0 - delta0) * high, (1.0 - delta0) * low),
                ((1.0 - delta0) * low, (1.0 - delta0) * high))  # fmt: skip
    chosen = itertools.product(outcomes, repeat=epochs)
    pairs = [(math.prod(p for p, _ in each), math.prod(q for _, q in each)) for each in chosen]
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in pairs)


def test_advanced_is_never_below_brute_force_nor_the_optimal_composition() -> None:
    informative = 0
    for r in draws("advanced, brute force", 60, 20):
        epochs, epsilon0 = r.randint(1, 6), log_uniform(r, 0.01, 1.5)
        delta0 = r.choice((0.0, log_uniform(r, 1e-6, 0.05)))
        epsilon = r.uniform(0.0, 1.2) * epochs * epsilon0
        run = Setting(epochs=epochs, epoch_epsilon=epsilon0, epoch_delta=delta0)
        found = math.exp(released.advanced(run).profile(epsilon))
        truth = delta_of_responses(epochs, epsilon0, delta0, epsilon)
        assert truth * (1.0 - 1e-12) <= found, (run, epsilon)
        optimal = math.exp(released.optimal(run).profile(epsilon))
        assert optimal == pytest.approx(truth, rel=1e-9, abs=1e-15)
        informative += found < 1.0
    assert informative


@pytest.mark.parametrize(
    ("values", "epsilon", "log_delta"),
    [
        ((5, 0.0, 0.0), 0.1, -1e300),  # tells nothing, but for what no double holds
        ((5, 0.0, 1e-3), 0.1, math.log(5e-3)),
        ((5, 0.3, 0.0), 0.0, 0.0),  # below the mean of the losses it says nothing
        ((5, 1e300, 0.0), 1e299, 0.0),
        ((5, 0.3, 0.5), 4.0, 0.0),
    ],
)
def test_advanced_at_its_ends(values: tuple[int, float, float], epsilon: float, log_delta: float) -> None:
    run = Setting(**dict(zip(("epochs", "epoch_epsilon", "epoch_delta"), values, strict=True)))
    assert released.advanced(run).profile(epsilon) == pytest.approx(log_delta, rel=1e-12, abs=1e-300)


def test_advanced_where_the_logarithms_of_share_and_passes_cancel() -> None:
    for r in draws("cancelling logarithms", 400):
        passes, epsilon0 = whole(r, 1, 10**15), log_uniform(r, 1e-12, 1e-7)
        share, epsilon = min(math.exp(r.uniform(-1e-3, 0.0)) / passes, 0.9), log_uniform(r, 1e-9, 100.0)
        run = Setting(epochs=passes, epoch_epsilon=epsilon0, epoch_delta=share)
        with mpmath.workdps(60):
            exact0, exact = mpmath.mpf(repr(epsilon0)), mpmath.mpf(repr(epsilon))
            x = max(exact - passes * exact0 * mpmath.expm1(exact0), mpmath.mpf(0))
            delta = passes * mpmath.mpf(repr(share)) + mpmath.exp(-(x**2) / (2 * passes * exact0**2))
            assert released.advanced(run).profile(epsilon) >= mpmath.log(min(delta, mpmath.mpf(1)))
