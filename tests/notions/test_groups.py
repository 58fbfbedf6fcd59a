"""Groups of records against iterated trade-off functions and finite chains."""

import itertools
import math
import random
from collections.abc import Callable

import pytest

from dpcalc.errors import NotApplicable
from dpcalc.notions import gaussian, groups, pld
from dpcalc.notions.guarantee import Composition, Gdp, Point, Profile, Rdp
from tests.oracles import finite


def chain(r: random.Random, links: int) -> list[list[float]]:
    """Return laws on four outcomes, each near the one before."""
    laws = [[r.uniform(0.5, 1.0) for _ in range(4)]]
    for _ in range(links):
        laws.append([x * math.exp(r.uniform(-0.6, 0.6)) for x in laws[-1]])
    return [[x / sum(law) for x in law] for law in laws]


@pytest.mark.few(11)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("size", [2, 3, 5])
def test_every_chain_of_so_many_links_keeps_to_it(seed: int, size: int) -> None:
    laws = chain(random.Random(seed), size)
    links = list(itertools.pairwise(laws))
    both = [*links, *((q, p) for p, q in links)]

    def curve(epsilon: float) -> float:
        delta = max(finite.hockey_stick(p, q, epsilon) for p, q in both)
        return math.log(delta) + 1e-14 if delta > 0.0 else -math.inf

    divergence = Rdp(lambda order: max(finite.renyi(p, q, order) for p, q in both) * (1.0 + 1e-13))
    for epsilon in (0.0, 0.4, 1.2):
        exact = finite.hockey_stick(laws[0], laws[-1], epsilon)
        assert math.exp(groups.Chain(curve, size)(epsilon)) >= exact
    for order in (1.5, 2.0, 6.0):
        assert groups.group_renyi(divergence.rdp, order, size) >= finite.renyi(laws[0], laws[-1], order)


def test_the_chain_of_a_gaussian_is_a_gaussian() -> None:
    one = Profile(lambda e: gaussian.log_delta(mu=0.4, epsilon=e))
    for size, epsilon in ((2, 0.0), (3, 1.0), (7, 6.0)):
        value = one.grouped(size).log_delta(epsilon).value
        exact = gaussian.log_delta(mu=0.4 * size, epsilon=epsilon)
        assert exact * (1.0 + 1e-13) <= value <= exact + 1e-6


def laplace(apart: float, epsilon: float) -> float:
    """Return delta of Laplace noise on values that are so many scales apart."""
    return -math.expm1(min(0.0, 0.5 * (epsilon - apart)))


def responses(apart: float, epsilon: float) -> float:
    """Return delta of answers to so many questions, each of which is true with odds e to 1: sum over all answers."""
    heads, size = math.e / (1.0 + math.e), round(apart)
    laws = [
        [math.prod(p if bit else 1.0 - p for bit in answers) for answers in itertools.product((0, 1), repeat=size)]
        for p in (heads, 1.0 - heads)
    ]
    return finite.hockey_stick(laws[0], laws[1], epsilon)


@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize(("truth", "attained"), [(laplace, True), (responses, False)])
def test_groups_are_never_below_the_truth(truth: Callable[[float, float], float], attained: bool, size: int) -> None:
    """Of noise with a concave logarithm the chain of shifts is one shift; of separate answers it is above the truth."""
    chain = groups.Chain(lambda e: math.log(d) + 1e-14 if (d := truth(1.0, e)) > 0.0 else -math.inf, size)
    values = []
    for epsilon in (0.05 * step * size for step in range(25)):
        values.append(math.exp(chain(epsilon)))
        assert values[-1] >= truth(size, epsilon)
        assert not attained or values[-1] <= truth(size, epsilon) * 1.01 + 1e-9, epsilon
    assert values == sorted(values, reverse=True)


def test_a_mixture_against_its_iterated_trade_off() -> None:
    """t_k = t o ... o t with t(u) = inf over e of delta(e) + e^e u: its conjugate is the best that a chain gives."""
    mus = [0.2, 0.5, 1.0]

    def delta(epsilon: float) -> float:
        return sum(math.exp(gaussian.log_delta(mu=mu, epsilon=epsilon)) for mu in mus) / 3.0

    grid = [0.02 * j for j in range(400)]
    lines = [(delta(e), math.exp(e)) for e in grid]
    lines += [(1.0 - math.exp(-e) + math.exp(-e) * delta(e), math.exp(-e)) for e in grid]

    def t(u: float) -> float:
        return min(1.0, *(d + slope * u for d, slope in lines))

    for epsilon in (0.5, 2.0):
        best = max(t(t(u)) - math.exp(epsilon) * u for u in (10.0 ** (-0.02 * j) for j in range(400)))
        value = math.exp(groups.Chain(lambda e: math.log(max(delta(e), 1e-300)), 2)(epsilon))
        assert best <= value + 1e-4
        assert value <= best * 1.01 + 1e-4


def test_gaussian_and_linear_curves_are_exact() -> None:
    assert 1.5 <= Gdp(0.5).grouped(3).mu <= 1.5 + 1e-15
    for size in (2, 3, 8, 100):
        line = Rdp(lambda order: 0.125 * order).grouped(size)
        for order in (1.0, 1.5, 4.0):
            assert line.rdp(order) == pytest.approx(0.125 * size**2 * order, rel=1e-11)
            assert line.rdp(order) >= 0.125 * size**2 * order


def test_poisson_groups_are_above_the_binomial_mixture() -> None:
    """A known value: q .01, z 1.1, 2000 steps, delta 1e-5: 7.6503 for three records removed, by the tight pairs."""
    pair = pld.removed(mu=1.0 / 1.1, rate=0.01)
    run = Composition([(pair, 2000)], [(pld.exchanged(pair), 2000)])
    value = run.grouped(3).epsilon(math.log(1e-5)).value
    assert 7.6503 < value < 7.9


def test_what_says_nothing_of_groups_is_refused() -> None:
    with pytest.raises(NotApplicable, match="nothing of groups"):
        Point(lambda _: 1.0).grouped(2)
    with pytest.raises(NotApplicable, match="Gaussian privacy"):
        Profile(lambda _: -1.0).grouped(2000)
