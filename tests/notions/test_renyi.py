"""Renyi divergences and conversions against ball arithmetic, quadrature and brute minimisation."""

import math
from collections.abc import Callable

import pytest
from flint import arb

from dpcalc.certify.numerics import balls as certified
from dpcalc.notions import renyi
from tests.oracles import ball, draws, exact, log_uniform
from tests.oracles import gaussian as oracle
from tests.soundness.compare import decided


def order_of(r: object) -> float:
    """An order: just above 1, common, or huge."""
    kind = r.randrange(4)
    if kind == 0:
        return 1.0 + 10 ** r.uniform(-9, 0)
    if kind == 1:
        return float(r.randint(2, 64))
    return log_uniform(r, 1.1, 1e6) if kind == 2 else 1.0 + r.randint(1, 30) / 10


def test_limits_of_the_divergences() -> None:
    assert renyi.gaussian(order=2.0, shift=0.0, scale=1.0) == 0.0
    assert renyi.laplace(order=2.0, shift=0.0, scale=1.0) == 0.0
    assert renyi.laplace(order=math.inf, shift=2.0, scale=1.0) == pytest.approx(2.0, rel=1e-14)
    assert renyi.gaussian(order=math.inf, shift=2.0, scale=1.0) == math.inf
    assert renyi.gaussian(order=2.0, shift=1e300, scale=1e-300) == math.inf
    assert renyi.laplace(order=2.0, shift=1e300, scale=1e-300) == math.inf
    assert renyi.gaussian(order=2.0, shift=1e-300, scale=1.0) > 0.0
    assert renyi.laplace(order=2.0, shift=1e-300, scale=1e300) > 0.0


EDGES = (renyi.mironov, renyi.canonne, renyi.asoodeh)


@pytest.mark.parametrize(("order", "log_delta"), [(1.01, -697.7), (1.09, -699.9)])
def test_exact_one_order_where_the_minimum_is_out_of_range(order: float, log_delta: float) -> None:
    """The point at which the divergence is least is below the least number that is searched."""
    rdp = renyi.gaussian(order=order, shift=2.0, scale=1e3)
    found = renyi.exact_one_order(order=order, rdp=rdp, log_delta=log_delta)
    assert found <= min(function(order=order, rdp=rdp, log_delta=log_delta) for function in EDGES)
    assert decided(lambda: certified.exact_suffices(arb(order), arb(rdp), arb(log_delta), arb(found)))


def test_exact_one_order_is_never_above_the_other_edges() -> None:
    for r in draws("edges", 150, cost=60):
        order, rdp, log_delta = order_of(r), log_uniform(r, 1e-6, 50.0), -log_uniform(r, 0.7, 600.0)
        best = renyi.best_conversion(order=order, rdp=rdp, log_delta=log_delta)
        for function in EDGES:
            assert best.epsilon <= max(0.0, function(order=order, rdp=rdp, log_delta=log_delta))
        found = renyi.exact_one_order(order=order, rdp=rdp, log_delta=log_delta)
        assert best.epsilon <= found


def test_no_conversion_beats_the_exact_gaussian_epsilon() -> None:
    for r in draws("dominated", 40, cost=250):
        mu, log_delta = log_uniform(r, 1e-3, 30.0), -log_uniform(r, 1.0, 500.0)
        least = oracle.epsilon(exact(mu), exact(log_delta))[0]
        found = renyi.optimise(lambda a, mu=mu: renyi.gaussian(order=a, shift=mu, scale=1.0), log_delta)
        assert exact(found.epsilon) >= least, (mu, log_delta)
        fixed = renyi.optimise_over(
            lambda a, mu=mu: renyi.gaussian(order=a, shift=mu, scale=1.0), (1.5, 2.0, 8.0, 64.0), log_delta
        )
        assert exact(fixed.epsilon) >= least, (mu, log_delta)
        assert fixed.epsilon >= found.epsilon * (1.0 - 1e-6)
        e = float(least)
        value, order = renyi.least_log_delta(lambda a, mu=mu: renyi.gaussian(order=a, shift=mu, scale=1.0), e)
        assert not ball(value) < oracle.log_delta(exact(e), exact(mu)), (mu, e)
        again = renyi.canonne_log_delta(order=order, rdp=renyi.gaussian(order=order, shift=mu, scale=1.0), epsilon=e)
        assert value == again


def test_few_orders_find_the_best_of_all() -> None:
    """Of Gaussian, bounded and bent curves, against all orders on a fine grid."""
    orders = [1.0 + math.exp(-20.75 + 0.02 * i) for i in range(3100)]
    for r in draws("few orders", 60, cost=600):
        mu, log_delta = log_uniform(r, 1e-4, 30.0), -log_uniform(r, 1.0, 500.0)
        cap = log_uniform(r, 1e-3, 1e3)
        curve = r.choice([
            lambda a, mu=mu: renyi.gaussian(order=a, shift=mu, scale=1.0),
            lambda a, mu=mu: renyi.laplace(order=a, shift=mu, scale=1.0),
            lambda a, mu=mu, cap=cap: min(renyi.gaussian(order=a, shift=mu, scale=1.0), cap),
            lambda a, mu=mu, cap=cap: renyi.gaussian(order=a, shift=mu, scale=1.0) if a < 2.0 + cap else math.inf,
        ])  # fmt: skip
        asked = set()

        def counted(order: float, curve: Callable[[float], float] = curve, asked: set[float] = asked) -> float:
            asked.add(order)
            return curve(order)

        found = renyi.optimise(counted, log_delta, rough=True).epsilon
        finite = [(order, rdp) for order in orders if (rdp := curve(order)) < math.inf]
        least = min(
            [curve(math.inf)]
            + [
                convert(order=order, rdp=rdp, log_delta=log_delta)
                for order, rdp in finite
                for convert in (renyi.canonne, renyi.asoodeh)
            ]
        )
        assert found <= max(0.0, least) * (1.0 + 2e-5), (mu, log_delta, cap)
        assert len(asked) < 80


def test_a_minimum_is_found_by_brent() -> None:
    for r in draws("minimum", 300, cost=10):
        at, low, high = r.uniform(-1.0, 1.0), -1.0 - r.random(), 1.0 + r.random()
        start, power = r.choice([low, high, r.uniform(low, high)]), r.choice([1.0, 1.5, 2.0, 4.0])
        found = renyi.minimum_near(lambda x, at=at, power=power: abs(x - at) ** power, low, start, high)
        assert abs(found - at) < (3e-2 if power == 4.0 else 1e-5), (at, low, start, high, power)


def test_edges_of_the_conversions() -> None:
    assert renyi.best_conversion(order=2.0, rdp=math.inf, log_delta=-1.0).epsilon == math.inf
    assert renyi.best_conversion(order=math.inf, rdp=0.5, log_delta=-1.0) == renyi.Conversion(0.5, math.inf, "pure")
    assert renyi.best_conversion(order=2.0, rdp=0.0, log_delta=-10.0).epsilon == 0.0
    assert renyi.exact_one_order(order=2.0, rdp=0.0, log_delta=-10.0) == 0.0
    with pytest.raises(ValueError, match="-700"):
        renyi.exact_one_order(order=2.0, rdp=1.0, log_delta=-701.0)
    pure = renyi.optimise(lambda a: 1e-3, -1e5)
    assert pure.conversion == "pure"
    assert renyi.optimise(lambda a: math.inf, -10.0).epsilon == math.inf
    edge = renyi.optimise_over(lambda a: a, (1.5, 2.0), -100.0)
    assert edge.at_edge
    assert not renyi.optimise_over(lambda a: a, (2.0,), -100.0).at_edge
