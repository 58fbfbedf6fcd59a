"""Guarantees and their composition."""

import math
from collections.abc import Sequence

import pytest

from dpcalc.errors import DpcalcError, NotApplicable
from dpcalc.notions import pld
from dpcalc.notions.conversions import compose_all
from dpcalc.notions.guarantee import Composition, Gdp, Guarantee, LowerBound, Point, Profile, Rdp, gaussian_lower_bound
from dpcalc.notions.renyi import canonne_log_delta
from tests.oracles import adaptive, ball, draws, exact, log_uniform, not_below, tight
from tests.oracles import gaussian as oracle


def laplace_like(order: float) -> float:
    return 0.1 * order / (order + 3.0)


def composed(parts: Sequence[tuple[Guarantee, int]]) -> Guarantee:
    """Return the total of the parts: Gaussian where all are, their Renyi curves else."""
    return compose_all(parts)[-1].guarantee


def test_gdp_composes_by_hypotenuse() -> None:
    for r in draws("compose", 300, cost=10):
        parts = [(Gdp(log_uniform(r, 1e-6, 1e6)), r.randint(1, 10**6)) for _ in range(r.randint(1, 5))]
        found = composed(parts)
        assert isinstance(found, Gdp)
        total = sum(count * exact(part.mu) ** 2 for part, count in parts)
        value = adaptive(lambda total=total: ball(total).sqrt())
        not_below(found.mu, value, repr(parts))
        tight(found.mu, value, repr(parts), 1e-14)


def test_k_fold_equals_one_part_with_count_k() -> None:
    for r in draws("k-fold", 50, cost=100):
        mu, k = log_uniform(r, 1e-3, 10.0), r.randint(1, 40)
        whole, listed = Gdp(mu).times(k), composed([(Gdp(mu), 1)] * k)
        assert whole.mu == pytest.approx(listed.mu, rel=1e-14)
        curve = Rdp(laplace_like)
        whole, listed = curve.times(k), composed([(curve, 1), (curve, k - 1)] if k > 1 else [(curve, 1)])
        for order in (1.0, 1.5, 2.0, 100.0, math.inf):
            if order < math.inf:
                assert whole.rdp(order) == pytest.approx(listed.rdp(order), rel=1e-14)


def test_mixed_composition_adds_renyi_curves() -> None:
    mixed = composed([(Gdp(0.5), 3), (Rdp(laplace_like), 2)])
    assert isinstance(mixed, Rdp)
    for order in (1.0, 1.5, 2.0, 64.0):
        exactly = 3 * exact(order) * exact(0.5) ** 2 / 2 + 2 * exact(laplace_like(order))
        not_below(mixed.rdp(order), ball(exactly), f"order {order}")
        tight(mixed.rdp(order), ball(exactly), f"order {order}", 1e-14)
    alone = composed([(Gdp(math.sqrt(3.0) * 0.5), 1)])
    assert mixed.epsilon(-10.0).value > alone.epsilon(-10.0).value


def test_composition_of_gdp_is_exact_and_below_its_renyi_form() -> None:
    gdp, rdp = Gdp(0.8), Rdp(Gdp(0.8).rdp)
    for k in (1, 2, 10):
        sharp, loose = composed([(gdp, k)]).epsilon(-12.0).value, composed([(rdp, k)]).epsilon(-12.0).value
        assert sharp < loose
        low, high = oracle.epsilon(exact(composed([(gdp, k)]).mu), exact(-12.0))
        assert low <= exact(sharp) <= high * (1 + exact(1e-12))


@pytest.mark.parametrize("part", [Point(lambda d: 1.0), gaussian_lower_bound(1.0)])
def test_what_cannot_be_composed(part: Guarantee) -> None:
    with pytest.raises(NotApplicable):
        composed([(part, 2), (Gdp(1.0), 1)])
    with pytest.raises(NotApplicable):
        part.times(2)


def test_profiles_invert_on_the_safe_side() -> None:
    for r in draws("profile", 60, cost=100):
        mu, wanted = log_uniform(r, 1e-2, 10.0), -log_uniform(r, 0.5, 300.0)
        profile = Profile(lambda e, mu=mu: Gdp(mu).log_delta(e).value)
        found = profile.epsilon(wanted)
        assert profile.log_delta(found.value).value <= wanted
        assert found.value == pytest.approx(Gdp(mu).epsilon(wanted).value, rel=1e-12)
    assert Profile(lambda e: 0.0).epsilon(-1.0).value == math.inf
    assert Profile(lambda e: -5.0).epsilon(-1.0).value == 0.0


def test_questions_that_have_no_answer() -> None:
    for ask in (
        lambda: Profile(lambda e: 0.0).rdp(2.0),
        lambda: Point(lambda d: 1.0).log_delta(1.0),
        lambda: Point(lambda d: 1.0).rdp(2.0),
    ):
        with pytest.raises(NotApplicable) as caught:
            ask()
        assert isinstance(caught.value, DpcalcError)
        assert caught.value.hint
    assert Point(lambda d: -d).epsilon(-3.0).value == 3.0


def test_listed_orders_only() -> None:
    curve = Rdp(lambda a: 0.5 * a, (2.0, 4.0, 8.0))
    found = curve.epsilon(-10.0)
    assert found.order in curve.orders
    assert curve.log_delta(5.0).order in curve.orders
    assert curve.log_delta(5.0).value >= Rdp(lambda a: 0.5 * a).log_delta(5.0).value - 1e-9
    assert found.value >= Rdp(lambda a: 0.5 * a).epsilon(-10.0).value - 1e-9


def test_a_delta_names_the_order_that_gave_it() -> None:
    """So that it can be checked without another search; where no order says anything, none is named."""
    curve = Rdp(lambda a: 0.5 * a)
    found = curve.log_delta(5.0)
    assert found.order is not None
    assert found.value == canonne_log_delta(order=found.order, rdp=0.5 * found.order, epsilon=5.0)
    assert Rdp(lambda a: math.inf).log_delta(5.0).order is None


# --- from below -------------------------------------------------------------------------------------------------------


def test_what_is_below_a_gaussian_rounds_down() -> None:
    """Against the exact profile, in ball arithmetic: never above it, and hardly below."""
    for r in draws("floor", 300, cost=10):
        mu, epsilon = log_uniform(r, 1e-3, 30.0), r.choice((0.0, log_uniform(r, 1e-3, 50.0)))
        exactly = oracle.log_delta(exact(epsilon), exact(mu))
        found = gaussian_lower_bound(mu).log_delta(epsilon).value
        assert not ball(exact(found)) > exactly, (mu, epsilon)
        tight(found, exactly, f"mu {mu!r}, epsilon {epsilon!r}", 1e-12, 1e-13)
        divergence = gaussian_lower_bound(mu).rdp(3.0)
        assert exact(divergence) <= 3 * exact(mu) ** 2 / 2
        assert divergence == pytest.approx(1.5 * mu * mu, rel=1e-14)


def test_an_epsilon_from_below_is_too_small() -> None:
    for r in draws("floor epsilon", 60, cost=50):
        mu, log_delta = log_uniform(r, 1e-2, 30.0), -log_uniform(r, 0.1, 1e4)
        found = gaussian_lower_bound(mu).epsilon(log_delta).value
        if found == 0.0:
            assert not oracle.log_delta(exact(0.0), exact(mu)) > ball(exact(log_delta))
            continue
        assert not oracle.log_delta(exact(found), exact(mu)) < ball(exact(log_delta))
        assert found <= Gdp(mu).epsilon(log_delta).value <= found * (1.0 + 1e-12)


def test_far_out_nothing_is_known_from_below() -> None:
    """The profile there is known from above only."""
    assert gaussian_lower_bound(1e-200).log_delta(1.0).value == -math.inf
    assert gaussian_lower_bound(0.0).epsilon(-1.0).value == 0.0


def test_a_divergence_from_below_has_no_epsilon_or_delta() -> None:
    floor = LowerBound(curve=lambda order: 0.1 * order)
    assert floor.rdp(2.0) == 0.2
    for question in (lambda: floor.epsilon(-10.0), lambda: floor.log_delta(1.0)):
        with pytest.raises(NotApplicable, match="from below"):
            question()
    with pytest.raises(NotApplicable, match="order"):
        LowerBound(profile=lambda epsilon: -epsilon).rdp(2.0)


@pytest.mark.few(1)
@pytest.mark.parametrize(("mu", "rate", "count", "log_delta"), [(1.0, 0.1, 50, -12.0), (0.5, 0.5, 7, -3.0)])
@pytest.mark.parametrize("worse_first", [True, False])
def test_an_order_that_a_coarse_lattice_clears_is_not_the_worse_one(
    mu: float, rate: float, count: int, log_delta: float, worse_first: bool
) -> None:
    pair = pld.removed(mu=mu, rate=rate)
    parts, reverse = ((pair, count),), ((pld.exchanged(pair), count),)
    both = Composition(parts, reverse) if worse_first else Composition(reverse, parts)
    epsilons = [Composition(each).epsilon(log_delta).value for each in (parts, reverse)]
    assert both.epsilon(log_delta).value == pytest.approx(max(epsilons), rel=1e-3)
    at = 0.8 * max(epsilons)
    assert both.log_delta(at).value == pytest.approx(
        max(Composition(each).log_delta(at).value for each in (parts, reverse)), abs=1e-3
    )
    assert both.epsilon(log_delta).value >= max(epsilons) * (1.0 - 1e-3)
    value = both.log_delta(at).value
    assert both.excess_about(at, value + 0.1) == pytest.approx(-0.1, abs=1e-6)
    assert both.excess_about(at, value - 1e-3) > 0.0
    assert max(epsilons) > 1.01 * min(epsilons)
