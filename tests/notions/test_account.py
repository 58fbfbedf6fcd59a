"""Totals of several releases against products of finite mechanisms, added up outcome by outcome."""

import math
import random

import pytest

from dpcalc.notions import conversions, pld, randomised_response
from dpcalc.notions.guarantee import Box, Composition, Gdp, Point, Profile, Rdp
from tests.oracles import finite

R = random.Random(7)


def phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return delta_G at an epsilon of either sign."""
    return phi(mu / 2.0 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2.0 - epsilon / mu)


def boxes(r: random.Random) -> list[tuple[float, float]]:
    return [(r.uniform(0.05, 2.0), r.choice([0.0, 10.0 ** r.uniform(-6, -1)])) for _ in range(r.randint(1, 4))]


def as_parts(listed: list[tuple[float, float]]) -> list[tuple[tuple[float, float], int]]:
    return [((e, math.log(d) if d else -math.inf), 1) for e, d in listed]


@pytest.mark.parametrize("seed", range(12))
def test_boxes_are_the_product_of_their_worst_pairs(seed: int) -> None:
    r = random.Random(seed)
    listed = boxes(r)
    pairs = [finite.response(*box) for box in listed]
    p, q = (finite.product([pair[side] for pair in pairs]) for side in (0, 1))
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        exact = finite.hockey_stick(p, q, epsilon)
        value = math.exp(randomised_response.boxes_log_delta(0.0, as_parts(listed), epsilon))
        assert exact * (1.0 - 1e-12) <= value <= exact + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_boxes_beside_a_gaussian(seed: int) -> None:
    r = random.Random(seed)
    listed, mu = boxes(r), r.uniform(0.2, 2.0)
    pairs = [finite.response(*box) for box in listed]
    p, q = (finite.product([pair[side] for pair in pairs]) for side in (0, 1))
    for epsilon in (0.0, 0.5, 2.0):
        exact = math.fsum(
            a * (gaussian_delta(mu, epsilon - math.log(a / b)) if b else 1.0) for a, b in zip(p, q, strict=True) if a
        )
        value = math.exp(randomised_response.boxes_log_delta(mu, as_parts(listed), epsilon))
        assert exact * (1.0 - 1e-11) <= value <= exact * (1.0 + 1e-9)


def test_one_box_with_a_curve_is_the_value_of_the_sheet() -> None:
    (total,) = conversions.compose_all([(Gdp(0.5), 1), (Box(1.0, math.log(1e-6)), 1)])
    assert total.form == "exact"
    assert math.exp(total.guarantee.log_delta(2.0).value) == pytest.approx(0.00499383, abs=5e-9)


def test_gaussian_parts_add_their_squares() -> None:
    (total,) = conversions.compose_all([(Gdp(0.3), 4), (Gdp(0.8), 1)])
    assert isinstance(total.guarantee, Gdp)
    assert 1.0 <= total.guarantee.mu < 1.0 + 1e-14


@pytest.mark.parametrize("seed", range(6))
def test_a_profile_and_boxes_on_the_lattice_are_above_their_product(seed: int) -> None:
    r = random.Random(seed)
    p = [r.uniform(0.05, 1.0) for _ in range(4)]
    p = [x / sum(p) for x in p]
    q = p[::-1]  # its own mirror image: both orders have one profile
    epsilon0, delta0 = r.uniform(0.1, 0.8), 1e-3

    def profile(epsilon: float) -> float:
        delta = finite.hockey_stick(p, q, epsilon)
        return math.log(delta) + 1e-14 if delta > 0.0 else -math.inf

    box = finite.response(epsilon0, delta0)
    first, second = finite.product([p, p, box[0]]), finite.product([q, q, box[1]])
    parts = [(Profile(profile), 2), (Box(epsilon0, math.log(delta0)), 1)]
    (total,) = conversions.compose_all(parts)
    assert total.form == "pld"
    for epsilon in (0.2, 0.7, 1.5):
        exact = finite.hockey_stick(first, second, epsilon)
        value = math.exp(total.guarantee.log_delta(epsilon).value)
        assert exact * (1.0 - 1e-12) <= value <= exact * 1.02 + 1e-4


def test_the_two_orders_are_kept_apart() -> None:
    """A removed record costs more than an added one, and a total is that of the worse order, not of both maxima."""
    pair = pld.removed(mu=1.0, rate=0.1)
    both = Composition([(pair, 10)], [(pld.exchanged(pair), 10)])
    laplace = Composition([(pld.laplace(ratio=0.5), 1)])
    (total,) = conversions.compose_all([(both, 1), (laplace, 2)])
    assert isinstance(total.guarantee, Composition)
    values = [
        Composition([(each, 10), (pld.laplace(ratio=0.5), 2)]).epsilon(math.log(1e-6)).value
        for each in (pair, pld.exchanged(pair))
    ]
    assert values[0] > values[1]
    assert total.guarantee.epsilon(math.log(1e-6)).value == pytest.approx(values[0], rel=1e-9)
    (one_way,) = conversions.compose_all([(Composition([(pld.exchanged(pair), 10)]), 1), (laplace, 2)], one_way=True)
    assert one_way.guarantee.epsilon(math.log(1e-6)).value == pytest.approx(values[1], rel=1e-9)


def test_renyi_curves_add_where_all_have_one() -> None:
    found = conversions.compose_all([(Rdp(lambda order: 0.25 * order), 2), (Box(0.5), 1), (Gdp(1.0), 1)])
    renyi = next(total.guarantee for total in found if total.form == "renyi")
    p, q = finite.response(0.5, 0.0)
    for order in (1.5, 2.0, 7.0):
        exact = 2 * 0.25 * order + finite.renyi(p[1:3], q[1:3], order) + 0.5 * order
        assert exact <= renyi.rdp(order) <= exact * (1.0 + 1e-12)


def test_a_rule_alone_is_not_composed() -> None:
    with pytest.raises(Exception, match="nothing composes"):
        conversions.compose_all([(Point(lambda _: 1.0), 1), (Gdp(1.0), 1)])


def test_a_loose_curve_is_narrowed_to_what_it_implies() -> None:
    """A curve that is 1 up to epsilon 0.1 is a box there, and is composed as one."""
    log_delta = math.log(1e-6)
    loose = Profile(lambda e: log_delta if e >= 0.125 else 0.0)
    (total,) = conversions.compose_all([(loose, 8)])
    (exact,) = conversions.compose_all([(Box(0.125, log_delta), 8)])
    values = [found.guarantee.epsilon(math.log(1e-4)).value for found in (exact, total)]
    assert values[0] <= values[1] <= values[0] * 1.02


@pytest.mark.parametrize("epsilon", [1e-3, 0.2, 3.0])
def test_a_pure_mechanism_beside_a_curve(epsilon: float) -> None:
    curve = Gdp(0.7)
    exact = randomised_response.boxes_log_delta(0.7, [((epsilon, -math.inf), 1)], epsilon + 1.0)
    value = randomised_response.with_pure(lambda e: curve.log_delta(e).value, epsilon, epsilon + 1.0)
    assert value == pytest.approx(exact, rel=1e-11)
