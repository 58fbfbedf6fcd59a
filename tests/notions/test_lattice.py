"""Compositions at every rate: against characteristic functions, monotone, and with bounds on their errors that hold."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dpcalc.notions import pld
from dpcalc.notions.pld import convolution, lattice, tilting
from tests.oracles import draws, log_uniform
from tests.oracles import pld as oracle

TEN = math.log(10.0)


def found_at(mu: float, rate: float, count: int, log10_delta: float) -> pld.Bound:
    return pld.epsilon([(pld.subsampled_gaussian(mu=mu, rate=rate), count)], log_delta_target=log10_delta * TEN)


def against_oracle(mu: float, rate: float, count: int, log10_delta: float) -> None:
    """Never below the truth, and above it by no more than is declared, which is little."""
    found = found_at(mu, rate, count, log10_delta)
    value = oracle.log_delta_of_frequent(oracle.subsampled(mu, rate), count, found.value, log10_delta * TEN)
    excess = log10_delta * TEN - value
    what = f"{count} of mu={mu!r}, rate={rate!r} at 1e{log10_delta}: {found}, excess {excess!r}"
    accuracy = 1e-8 * max(1.0, -0.1 * log10_delta)
    assert -accuracy <= excess <= found.rounding + found.lattice + accuracy, what
    assert excess < 2e-3, what
    assert found.rounding + found.lattice < 0.1, what


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("mu", "rate", "count", "log10_delta"),
    [
        (0.3, 1e-4, 10, -6),
        (0.3, 1e-4, 30, -12),
        (0.01, 1e-3, 10, -6),
        (1e-3, 1e-9, 30, -20),
        (1e-3, 1e-9, 1000, -300),
        (1.0, 1e-6, 100, -9),
        (1.0, 0.5, 100, -300),
        (1.0, 1e-6, 10**9, -9),
    ],
)
def test_every_rate(mu: float, rate: float, count: int, log10_delta: float) -> None:
    against_oracle(mu, rate, count, log10_delta)


@pytest.mark.campaign
def test_every_rate_at_random() -> None:
    drawn = checked = 0
    for r in draws("every rate", 40, cost=100):
        mu, rate = log_uniform(r, 1e-3, 1.5), log_uniform(r, 1e-8, 0.9)
        count, log10_delta = round(log_uniform(r, 60 if mu > 0.5 else 20, 1e8)), -r.uniform(4.0, 40.0)
        drawn += 1
        if count * rate * math.erf(mu / math.sqrt(8.0)) < 10.0**log10_delta:  # delta at epsilon = 0 is no more
            assert found_at(mu, rate, count, log10_delta) == pld.Bound(0.0)
            checked += 1
            continue
        try:
            against_oracle(mu, rate, count, log10_delta)
            checked += 1
        except ArithmeticError:  # so few losses are not 0 that doubles do not tell their sum from its moments
            pass
    assert checked > 0.7 * drawn


def test_a_single_record_of_ten_thousand() -> None:
    """Ten steps cost less than a hundred, and as much as the characteristic function says."""
    ten, hundred = (found_at(0.3, 1e-4, count, -6).value for count in (10, 100))
    assert ten == pytest.approx(2.191334e-4, rel=1e-6)
    assert hundred == pytest.approx(8.147473e-4, rel=1e-6)


AXES: dict[str, tuple[Any, ...]] = {
    "count": (1, 2, 3, 10, 100, 1001, 10**5, 10**9),
    "mu": (1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 1e3),
    "rate": (1e-9, 1e-6, 1e-4, 3e-3, 0.1, 0.9, 1.0),
    "log10_delta": (-2, -5, -9, -20, -60, -300),
}
CENTRES: tuple[dict[str, Any], ...] = (
    {"mu": 0.3, "rate": 1e-4, "count": 10, "log10_delta": -6},
    {"mu": 3.0, "rate": 1e-6, "count": 30, "log10_delta": -9},
)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", AXES)
@pytest.mark.parametrize("centre", range(len(CENTRES)))
def test_epsilon_is_monotone(centre: int, name: str) -> None:
    points = [{**CENTRES[centre], name: value} for value in AXES[name]]
    rising = {point[name]: found_at(**point) for point in points}
    for (x, less), (y, more) in itertools.pairwise(rising.items()):
        assert more.value >= less.value * (1.0 - 1e-4), (name, x, less, y, more)


# ---- its parts -----------------------------------------------------------------------------------------------------


def composed(law: lattice.TiltedLaw, count: int, epsilon: float) -> float:
    """ln delta of ``count`` losses by long multiplication."""
    p = np.exp(law.log_scale - law.tilt * law.points()) * law.weights
    total = np.array([1.0])
    for _ in range(count):
        total = np.convolve(total, p)
    z = law.step * (count * law.first + np.arange(len(total)))
    return math.log(float(np.sum(total * -np.expm1(np.minimum(epsilon - z, 0.0)))))


def test_what_splits_add_is_bounded() -> None:
    """Losses on a fine lattice, moved to a coarse one before they are composed, with and without most of them at 0."""
    generator = np.random.default_rng(5)
    for tilt, atom, scale in ((0.0, 0.0, 1.0), (1.5, 0.0, 1.0), (4.0, 50.0, 1.0), (300.0, 0.0, 1e-2), (0.3, 0.0, 10.0)):
        weights = generator.random(401)
        weights[200] += atom * weights.sum()
        step = 0.005 * scale
        p = weights * np.exp(-tilt * step * np.arange(-200, 201))
        law = lattice.TiltedLaw(
            step,
            -200,
            weights / weights.sum(),
            tilt,
            -math.log(p.sum() / weights.sum()),
            1e-300,
            0.0,
            0.0,
            0.0,
            math.inf,
            0.0,
        )
        for coarse in (2, 8, 16):
            moved = law.moved_to_step(coarse * step)
            for count in (1, 4):
                summed = moved.self_composed(count, lattice.Grid(0.0, 1 << 20))
                for epsilon in (0.0, 0.31 * scale, 1.7 * scale):
                    if epsilon >= 0.9 * count * scale:
                        continue
                    truth, floors = composed(law, count, epsilon), summed.log_floors(epsilon)
                    assert truth <= summed.log_finite_delta(epsilon) + 1e-12
                    assert floors.exact <= truth + 1e-12
                    assert floors.exact <= floors.split


def test_a_sum_of_mostly_nothing_keeps_its_precision() -> None:
    """A law with all but 1e-9 in one point: the rest of the power is good to 1e-12 of itself, and so is its bound."""
    x = np.zeros(1 << 14)
    index = np.arange(1 << 13)
    x[1 << 12 : 3 << 12] = 1e-9 * np.exp(-0.5 * ((index - (1 << 12)) / 700.0) ** 2) / 1754.0
    x[5000] += 1.0 - 1e-9
    found, start, bound, _ = convolution.convolution_power(x, 2, x, 1)
    value = np.convolve(np.convolve(x.astype(np.longdouble), x), x)
    whole = np.zeros(len(value))
    whole[start : start + len(found)] = found
    difference = np.abs(whole - value)
    difference[15000] = 0.0  # the atom itself
    assert float(difference.sum()) <= 3e-9 * 1e-12
    assert float(np.abs(whole - value).sum()) <= bound < 1e-14


@pytest.mark.parametrize("ratio", [0.01, 0.3, 40.0])
def test_many_epsilons_have_the_delta_of_one(ratio: float) -> None:
    """Sums made once are above those made for each epsilon, which bound delta, and next to them."""
    for r in draws("many epsilons", 4, cost=100):
        count = r.choice((3, 40, 700))
        component = tilting.component_of(pld.subsampled_gaussian(mu=ratio, rate=r.uniform(0.01, 0.9)), count)
        tilted = component.law(r.choice((0.0, 0.5, 5.0)), lattice.Grid(1.0 / 256, 1 << 15))
        law = tilted.self_composed(count, lattice.Grid(1.0 / 256, 1 << 15))
        at, points = law.finite_curve(), law.points()
        places = [0.0, *(r.uniform(0.0, 1.01) * max(1.0, float(points[-1])) for _ in range(12)), abs(float(points[-2]))]
        for epsilon in places:
            exact = law.log_finite_delta(epsilon)
            assert exact - 1e-12 * abs(exact) <= at(epsilon) <= exact + 1e-9, (ratio, count, epsilon)
