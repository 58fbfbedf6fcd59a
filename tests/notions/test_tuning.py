"""The best of a random number of runs against finite mechanisms, and known values."""

import math
import random
from collections.abc import Callable

import pytest

from dpcalc.errors import SpecError
from dpcalc.notions.guarantee import Box, Gdp, Profile, Rdp
from dpcalc.notions.tuning import Law, Tuning, tuned, tuning_of
from tests.oracles import finite

DELTA = math.log(1e-6)


@pytest.mark.parametrize(
    ("mu", "law", "mean", "value"),
    [
        (0.1, Law.GEOMETRIC, 10.0, 0.627296), (0.5, Law.GEOMETRIC, 10.0, 3.382513),
        (0.5, Law.GEOMETRIC, 100.0, 4.41074), (1.0, Law.GEOMETRIC, 10.0, 7.080311), (0.5, Law.POISSON, 10.0, 4.46447),
    ],
)  # fmt: skip
def test_the_profile_has_the_values_of_the_sheet(mu: float, law: Law, mean: float, value: float) -> None:
    profile = tuned(Gdp(mu), tuning_of(law, mean))[0]
    assert isinstance(profile, Profile)
    assert profile.epsilon(DELTA).value == pytest.approx(value, rel=3e-6)


def test_the_renyi_form_is_below_the_published_one() -> None:
    renyi = tuned(Gdp(0.5), tuning_of(Law.POISSON, 10.0))[1]
    assert isinstance(renyi, Rdp)
    assert renyi.epsilon(DELTA).value < 4.254
    assert tuned(Gdp(0.1), tuning_of(Law.GEOMETRIC, 10.0))[1].rdp(2.0) == pytest.approx(0.0957661, abs=1e-7)
    assert tuned(Gdp(0.1), tuning_of(Law.POISSON, 10.0))[1].rdp(2.0) == pytest.approx(0.0957661, abs=1e-7)


def test_a_pure_run_stays_pure() -> None:
    (box, *_) = tuned(Box(0.5), Tuning(Law.GEOMETRIC, 10.0, 0.1))
    assert isinstance(box, Box)
    assert box.epsilon0 == pytest.approx(1.3125, abs=5e-5)


def generating(tuning: Tuning) -> Callable[[float], float]:
    """Return E w^K."""
    g, eta, m = tuning.stop, tuning.shape, tuning.mean
    if tuning.law is Law.POISSON:
        return lambda w: math.exp(m * (w - 1.0))
    if eta == 0.0:
        return lambda w: math.log(1.0 - (1.0 - g) * w) / math.log(g)
    return lambda w: ((1.0 - (1.0 - g) * w) ** -eta - 1.0) / (g**-eta - 1.0)


LAWS = [
    tuning_of(Law.GEOMETRIC, 5.0), tuning_of(Law.LOGARITHMIC, 4.0), tuning_of(Law.NEGATIVE_BINOMIAL, 6.0, 2.5),
    tuning_of(Law.NEGATIVE_BINOMIAL, 3.0, -0.5), tuning_of(Law.POISSON, 3.0), tuning_of(Law.POISSON, 0.5),
]  # fmt: skip


@pytest.mark.parametrize("tuning", LAWS)
def test_the_mean_is_that_of_the_law(tuning: Tuning) -> None:
    phi = generating(tuning)
    slope = (phi(1.0) - phi(1.0 - 1e-6)) / 1e-6
    assert tuning.mean == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("tuning", LAWS)
@pytest.mark.parametrize("seed", range(5))
def test_no_finite_mechanism_exceeds_it(tuning: Tuning, seed: int) -> None:
    r = random.Random(seed)
    p = [r.uniform(0.02, 1.0) for _ in range(5)]
    q = [x * math.exp(r.uniform(-1.0, 1.0)) for x in p]
    p, q = ([x / sum(law) for x in law] for law in (p, q))

    def profile(epsilon: float) -> float:
        delta = max(finite.hockey_stick(p, q, epsilon), finite.hockey_stick(q, p, epsilon))
        return math.log(delta) + 1e-14 if delta > 0.0 else -math.inf

    def curve(order: float) -> float:
        return max(finite.renyi(p, q, order), finite.renyi(q, p, order)) * (1.0 + 1e-13)

    bound = tuned(Profile(profile), tuning)[0]
    renyi = tuned(Rdp(curve), tuning)[1]
    pure = max(abs(math.log(a / b)) for a, b in zip(p, q, strict=True))
    box = tuned(Box(pure), tuning)[0]
    phi = generating(tuning)
    for _ in range(4):
        order = r.sample(range(5), 5)
        best_p, best_q = (finite.best_of([law[i] for i in order], phi) for law in (p, q))
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            assert math.exp(bound.log_delta(epsilon).value) >= finite.hockey_stick(best_p, best_q, epsilon) - 1e-12
        kept = [(a, b) for a, b in zip(best_p, best_q, strict=True) if a > 0.0]
        for a in (1.5, 2.0, 5.0):
            assert renyi.rdp(a) >= finite.renyi(*zip(*kept, strict=True), a) - 1e-10
        assert isinstance(box, Box)
        assert box.epsilon0 >= max(abs(math.log(a / b)) for a, b in kept) - 1e-10


@pytest.mark.parametrize(("law", "mean", "shape"), [
    (Law.GEOMETRIC, 0.5, None), (Law.POISSON, 0.0, None), (Law.NEGATIVE_BINOMIAL, 5.0, -1.0),
    (Law.NEGATIVE_BINOMIAL, 5.0, None), (Law.POISSON, 2.0, 1.0),
])  # fmt: skip
def test_no_such_law(law: Law, mean: float, shape: float | None) -> None:
    with pytest.raises(SpecError):
        tuning_of(law, mean, shape)
