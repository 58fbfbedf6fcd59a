"""All steps where it is known which used the record: by sums in high precision, and above the compositions."""

import math

import mpmath
import numpy as np
import pytest

from dpcalc.notions import pld
from tests.oracles import draws, log_uniform


def exact_delta(mu: float, rate: float, steps: int, epsilon: float) -> mpmath.mpf:
    """Return sum_k P(Bin(T, q) = k) delta_G(epsilon; mu sqrt k)."""
    q, e = mpmath.mpf(rate), mpmath.mpf(epsilon)
    total = mpmath.mpf(0)
    for k in range(1, steps + 1):
        m = mpmath.mpf(mu) * mpmath.sqrt(k)
        weight = mpmath.binomial(steps, k) * q**k * (1 - q) ** (steps - k)
        total += weight * (mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))
    return total


def test_known_uses_is_a_mean_over_the_number_of_uses() -> None:
    for r in draws("known uses", 10, cost=30):
        mu, rate, steps = log_uniform(r, 1e-2, 30.0), log_uniform(r, 1e-6, 0.9), r.choice((1, 2, 7, 15))
        epsilon = log_uniform(r, 1e-3, 1.0) * mu * mu * steps
        with mpmath.workdps(60 + int(mu * mu * steps)):
            exact = float(mpmath.log(exact_delta(mu, rate, steps, epsilon)))
        found = float(pld.known_uses(mu=mu, rate=rate, steps=steps).forward(np.array([epsilon]))[0])
        assert exact <= found <= exact + 1e-9 * (1.0 + abs(exact)), (mu, rate, steps, epsilon)


@pytest.mark.parametrize("replaced", [False, True])
def test_known_uses_are_above_the_composition(replaced: bool) -> None:
    """The lattice's own floor is below the exact delta of the composition, which is below the bound."""
    for r in draws("above the composition", 3, cost=600):
        mu, rate, steps = log_uniform(r, 0.3, 6.0), log_uniform(r, 1e-2, 0.5), r.choice((2, 5, 20))
        step = (pld.replaced_poisson if replaced else pld.removed)(mu=mu, rate=rate)
        whole = (pld.replaced_known_uses if replaced else pld.known_uses)(mu=mu, rate=rate, steps=steps)
        for share in (0.0, 0.2):
            epsilon = share * 0.5 * mu * mu * steps
            for pair in (step, pld.exchanged(step)):
                bound = pld.log_delta([(pair, steps)], epsilon=epsilon, resolution=512)
                least = bound.value - bound.rounding - bound.lattice
                assert least <= float(whole.forward(np.array([epsilon]))[0]), (mu, rate, steps, epsilon)


def test_replaced_known_uses_of_large_losses_are_those_of_one_record() -> None:
    """A use of 7 steps at mu = 1e4 is 7 mu^2/2 apart from none; both records in those steps were 28 mu^2/2 apart."""
    pair = pld.replaced_known_uses(mu=1e4, rate=0.01, steps=100)
    found = pld.epsilon([(pair, 1)], log_delta_target=math.log(1e-5)).value
    assert found == pytest.approx(7.001 * 5e7, rel=1e-4)


def test_a_record_in_every_step_is_in_all_of_them() -> None:
    pair = pld.known_uses(mu=0.5, rate=1.0, steps=16)
    assert pair.mu == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.7])
def test_a_record_that_is_added_is_never_used_with_its_chance(rate: float) -> None:
    """Above the composition of the steps, and at next to no noise 1 - g (1-q)^T itself, rounded up."""
    for mu, steps in ((0.5, 3), (4.0, 5)):
        pair = pld.seldom_used(pld.known_uses(mu=mu, rate=rate, steps=steps), rate=rate, steps=steps)
        step = pld.exchanged(pld.removed(mu=mu, rate=rate))
        for share in (0.0, 0.1, 0.5, 0.9, 1.1):
            epsilon = -share * steps * math.log1p(-rate)
            bound = pld.log_delta([(step, steps)], epsilon=epsilon, resolution=512)
            assert bound.value - bound.rounding - bound.lattice <= pair.backward(np.array([epsilon]))[0]
    far = pld.seldom_used(pld.known_uses(mu=1e20, rate=rate, steps=100), rate=rate, steps=100)
    for share in (0.0, 0.3, 0.999):
        epsilon = -share * 100 * math.log1p(-rate)
        with mpmath.workdps(60):
            exact = float(mpmath.log(1 - mpmath.exp(mpmath.mpf(epsilon) + 100 * mpmath.log1p(-mpmath.mpf(rate)))))
        assert exact <= far.backward(np.array([epsilon]))[0] <= exact + 1e-10 * (1.0 + abs(exact))


@pytest.mark.parametrize(("mu", "rate", "steps"), [(100.0, 1e-3, 1000), (300.0, 1e-3, 100), (300.0, 1e-9, 100)])
def test_the_composition_of_an_added_record_tells_of_its_chance_alone(mu: float, rate: float, steps: int) -> None:
    """At next to no noise delta is 1 - g (1-q)^T. A gap above losses far below makes no lattice coarse."""
    step = pld.exchanged(pld.removed(mu=mu, rate=rate))
    for share in (0.0, 0.5, 0.9):
        epsilon = -share * steps * math.log1p(-rate)
        with mpmath.workdps(60):
            exact = float(mpmath.log(1 - mpmath.exp(mpmath.mpf(epsilon) + steps * mpmath.log1p(-mpmath.mpf(rate)))))
        found = pld.log_delta([(step, steps)], epsilon=epsilon).value
        assert exact - 1e-14 <= found <= exact + 1e-6, (share, exact, found)
