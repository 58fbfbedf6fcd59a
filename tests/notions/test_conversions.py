"""Conversions between notions of privacy against high precision, and against mechanisms that have what is known."""

import math

import mpmath
import pytest

from dpcalc.notions import conversions, gaussian

mpmath.mp.dps = 80


def response(epsilon: float, order: float) -> mpmath.mpf:
    """Return the Renyi divergence of randomised response."""
    e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
    if a == 1:
        return e * mpmath.tanh(e / 2)
    log_p, log_q = -mpmath.log1p(mpmath.exp(-e)), -e - mpmath.log1p(mpmath.exp(-e))
    there, back = a * log_p + (1 - a) * log_q, a * log_q + (1 - a) * log_p
    return (there + mpmath.log1p(mpmath.exp(back - there))) / (a - 1)


def normal_delta(mu: float, epsilon: float) -> mpmath.mpf:
    m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1.0, 3.0, 20.0, 1e4])
def test_rho_of_pure_privacy_is_the_least_that_covers_randomised_response(epsilon: float) -> None:
    rho = conversions.pure_rho(epsilon)
    orders = [1 + mpmath.mpf(10) ** k for k in range(-12, 7)]
    ratios = [response(epsilon, order) / order for order in orders]
    assert rho >= max(ratios)
    assert rho <= ratios[0] * (1 + mpmath.mpf("1e-11"))
    assert rho <= 0.5 * epsilon * epsilon * (1 + 1e-14)


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("order", [1.0, 1.01, 1.5, 2.0, 8.0, 300.0])
def test_the_curve_of_pure_privacy_is_that_of_randomised_response(epsilon: float, order: float) -> None:
    value, exact = conversions.pure_curve(epsilon).rdp(order), response(epsilon, order)
    assert exact <= value <= exact * (1 + mpmath.mpf("1e-7")) + mpmath.mpf("1e-14")


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_profile_of_pure_privacy(epsilon: float) -> None:
    for share in (0.0, 0.3, 0.9):
        at = mpmath.mpf(share * epsilon)
        exact = (mpmath.exp(epsilon) - mpmath.exp(at)) / (1 + mpmath.exp(epsilon))
        value = math.exp(conversions.box(epsilon).log_delta(share * epsilon).value)
        assert exact <= value * (1 + 1e-15)
        assert value <= exact * (1 + mpmath.mpf("1e-12"))


@pytest.mark.parametrize("mu", [1e-6, 0.3, 1.0, 5.0])
def test_rho_of_gaussian_privacy(mu: float) -> None:
    exact = mpmath.mpf(mu) ** 2 / 2
    assert exact <= conversions.gaussian_rho(mu) <= exact * (1 + mpmath.mpf("1e-14"))


@pytest.mark.few(1)
@pytest.mark.parametrize(("rho", "log_delta"), [(0.5, -14.0), (1e-3, -7.0), (4.0, -30.0)])
def test_epsilon_of_rho_covers_the_gaussian_mechanism_and_is_no_worse_than_every_order_alone(
    rho: float, log_delta: float
) -> None:
    value = conversions.concentrated(rho).epsilon(log_delta).value
    mu = mpmath.sqrt(2 * mpmath.mpf(rho))
    assert mpmath.log(normal_delta(mu, value)) <= log_delta
    orders = [1 + mpmath.mpf(k) / 50 for k in range(1, 20000)]
    simple = min(
        rho * a + mpmath.log1p(-1 / a) - (log_delta + mpmath.log(a)) / (a - 1) for a in orders
    )  # Canonne, Kamath and Steinke 2020
    assert value <= simple * (1 + mpmath.mpf("1e-6"))


CURVES = {
    "gaussian": lambda a: a * 0.08,
    "response": lambda a: float(response(1.3, a)) * (1 + 1e-15),
    "laplace": lambda a: (
        float(
            mpmath.log(a / (2 * a - 1) * mpmath.exp((a - 1) / 2) + (a - 1) / (2 * a - 1) * mpmath.exp(-a / 2)) / (a - 1)
        )
        * (1 + 1e-15)
    ),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("known", [(2.0, 8.0), (1.1, 3.0, 64.0), (5.0,), (1.25, 2.7, 2.8, 100.0)])
def test_what_some_orders_imply_is_never_below_the_curve_and_meets_it_there(
    name: str, known: tuple[float, ...]
) -> None:
    curve = CURVES[name]
    bounds = conversions.interpolated({order: curve(mpmath.mpf(order)) for order in known})
    for k in range(1, 400):
        order = 1.0 + 0.27 * k
        value = bounds.rdp(order)
        assert value >= curve(mpmath.mpf(order)) * (1 - 1e-15)
        assert (value == math.inf) == (order > known[-1])
    for order in known[1:]:
        assert bounds.rdp(math.nextafter(order, 1.0)) <= curve(mpmath.mpf(order)) * (1 + 1e-12)


def test_between_two_orders_the_bound_is_a_chord() -> None:
    bounds = conversions.interpolated({2.0: 0.1, 64.0: 3.0})
    chord = (mpmath.mpf(54) / 62 * mpmath.mpf("0.1") + mpmath.mpf(8) / 62 * 63 * 3) / 9
    assert chord <= bounds.rdp(10.0) <= chord * (1 + 1e-13)
    assert 0.1 <= bounds.rdp(1.5) <= 0.1 * (1 + 1e-14)


def test_a_bound_at_infinity_is_pure_privacy() -> None:
    bounds = conversions.interpolated({2.0: 0.1, math.inf: 1.0})
    slope = (mpmath.mpf("0.1") + 1) / 2  # from order 2 to 3, (a-1) D grows by at most D at infinity
    assert slope <= bounds.rdp(3.0) <= slope * (1 + 1e-13)
    both = conversions.interpolated({2.0: float(response(1.0, 2.0)), math.inf: 1.0})
    for order in (1.5, 2.5, 10.0, 1e3, 1e6):
        assert response(1.0, order) <= both.rdp(order) <= response(1.0, order) * (1 + mpmath.mpf("1e-12"))


@pytest.mark.parametrize(("epsilon", "log_delta"), [(1.0, -11.5), (0.1, -20.0), (6.0, -5.0)])
def test_what_is_enough_keeps_the_budget_and_more_does_not(epsilon: float, log_delta: float) -> None:
    rho = conversions.most(conversions.concentrated, epsilon, log_delta, 100.0)
    assert conversions.concentrated(rho).epsilon(log_delta).value <= epsilon
    assert conversions.concentrated(rho * 1.0001).epsilon(log_delta).value > epsilon
    assert mpmath.log(normal_delta(mpmath.sqrt(2 * mpmath.mpf(rho)), epsilon)) <= log_delta
    pure = conversions.most(conversions.box, epsilon, log_delta, 100.0)
    exact = mpmath.log((mpmath.exp(epsilon) + mpmath.exp(log_delta)) / (1 - mpmath.exp(log_delta)))
    assert exact * (1 - mpmath.mpf("1e-9")) <= pure <= exact


def test_nothing_is_enough_for_no_budget() -> None:
    assert conversions.most(conversions.concentrated, 0.0, -1e300, 1.0) == 0.0


def test_mu_of_pure_privacy_covers_randomised_response() -> None:
    mu = gaussian.pure_mu(epsilon=1.0)
    for at in (0.0, 0.5, 0.99):
        assert normal_delta(mu, at) >= (mpmath.e - mpmath.exp(at)) / (1 + mpmath.e)
