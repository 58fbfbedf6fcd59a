"""Pairs of groups under Poisson sampling against the largest difference of the two mixtures over half-lines."""

import itertools
import math

import numpy as np
import pytest

from dpcalc.errors import SpecError
from dpcalc.notions import pld


def upper(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def best(first: dict[float, float], second: dict[float, float], epsilon: float, sign: float) -> float:
    """Return sup over half-lines of P - e^epsilon Q for mixtures {place: weight}."""

    def gain(c: float) -> float:
        p, q = (math.fsum(w * upper(sign * (c - a)) for a, w in law.items()) for law in (first, second))
        return p - math.exp(epsilon) * q

    low, high = -60.0, 60.0
    for _ in range(6):
        grid = [low + (high - low) * j / 400.0 for j in range(401)]
        place = max(range(401), key=lambda j: gain(grid[j]))
        low, high = grid[max(0, place - 1)], grid[min(400, place + 1)]
    return max(0.0, gain(0.5 * (low + high)))


@pytest.mark.few(4)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize(("mu", "rate"), [(0.9, 0.01), (0.3, 0.5), (2.0, 0.2)])
def test_both_orders_and_replacement(size: int, mu: float, rate: float) -> None:
    drawn = {j * mu: math.comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)}
    mirrored = {-a: w for a, w in drawn.items()}
    removed = pld.removed_group(mu=mu, rate=rate, size=size)
    replaced = pld.replaced_group(mu=mu, rate=rate, size=size)
    for epsilon in (0.0, 0.05, 0.4, 1.5):
        e = np.array([epsilon])
        for curve, first, second, sign in (
            (removed.forward, drawn, {0.0: 1.0}, 1.0), (removed.backward, {0.0: 1.0}, drawn, -1.0),
            (replaced.forward, drawn, mirrored, 1.0),
        ):  # fmt: skip
            exact, value = best(first, second, epsilon, sign), math.exp(float(curve(e)[0]))
            assert exact - 1e-14 <= value <= exact * (1.0 + 1e-9) + 1e-13


def test_one_record_is_the_pair_that_is_known() -> None:
    e = np.array([0.0, 0.3, 1.0, 4.0, 30.0])
    known, found = pld.removed(mu=0.7, rate=0.02), pld.removed_group(mu=0.7, rate=0.02, size=1)
    assert found.forward(e) == pytest.approx(known.forward(e), rel=1e-11)
    assert math.exp(float(found.backward(e[:1])[0])) == pytest.approx(math.exp(float(known.backward(e[:1])[0])))
    both = pld.replaced_poisson(mu=0.7, rate=0.02).forward(e), pld.replaced_group(mu=0.7, rate=0.02, size=1).forward(e)
    assert both[1] == pytest.approx(both[0], rel=1e-11)


def test_the_values_of_the_sheet() -> None:
    pair = pld.removed_group(mu=1.0 / 1.1, rate=0.01, size=3)
    assert math.exp(float(pair.forward(np.array([0.5]))[0])) == pytest.approx(1.459150907755e-5, rel=1e-11)
    assert pld.epsilon([(pair, 2000)], log_delta_target=math.log(1e-5)).value == pytest.approx(7.6503, abs=5e-5)


def test_it_grows_with_the_group() -> None:
    e = np.array([0.1, 1.0, 5.0])
    curves = [pld.removed_group(mu=1.0, rate=0.05, size=size).forward(e) for size in (1, 2, 5, 32)]
    assert all((later > earlier).all() for earlier, later in itertools.pairwise(curves))
    assert (curves[-1] < pld.gaussian(mu=32.0).forward(e)).all()


@pytest.mark.parametrize("change", [{"mu": 1e7}, {"rate": 2.0}, {"size": 33}, {"size": 0}])
def test_out_of_range(change: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        pld.removed_group(**{"mu": 1.0, "rate": 0.1, "size": 2, **change})  # type: ignore[arg-type]
