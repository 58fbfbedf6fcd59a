"""Tables of privacy profiles and their Renyi divergences: never below what they stand for, and close."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpcalc.certify.runs.run import RunInputs
from dpcalc.notions import gaussian, profiles
from dpcalc.numerics.normal_arrays import log_hockey_stick_up
from dpcalc.theorems.batch_layout import layout
from dpcalc.theorems.contraction import shuffle_curves
from tests.oracles import adaptive, ball, draws, exact, log_uniform, not_below, tight, whole
from tests.oracles import gaussian as oracle
from tests.soundness.conversions import laplace

Curve = Callable[[Any], Any]


def normal(mu: float) -> Curve:
    return lambda e: log_hockey_stick_up(e, mu)


def two_sided(ratio: float) -> Curve:
    """The profile of Laplace noise."""
    return shuffle_curves.own_step("laplace", ratio)


def deep(mu: float) -> float:
    """Where a Gaussian profile is e^-1e5."""
    return gaussian.epsilon(mu=mu, log_delta_target=-1e5)


def dense(r: Any, top: float) -> Any:
    grid = np.concatenate(([0.0], top * np.exp(np.linspace(-29.0, 0.0, 3000)), top * np.linspace(0.0, 1.0, 2001)))
    return np.sort(np.concatenate((grid, top * np.array([r.random() for _ in range(500)]))))


def check(curve: Curve, table: Curve, grid: Any, what: Any, close: float = 5e-3) -> None:
    """Never below; above by half a per cent of delta down to e^-60, more where ln delta falls slowly."""
    value, found = curve(grid), table(grid)
    finite = np.isfinite(value)
    assert not np.isnan(found).any(), what
    assert np.all(found <= 0.0), what
    slack = 1e-13 * np.abs(np.where(finite, value, 0.0)) + 1e-14
    assert np.all(found[finite] >= (value - slack)[finite]), (what, grid[finite][np.argmin((found - value)[finite])])
    gap = np.where(value > -1e5, found - np.where(finite, value, 0.0), 0.0)
    near, middle = finite & (value > -60.0), finite & (value > -700.0)
    assert np.all(gap[near] <= close), (what, grid[near][np.argmax(gap[near])], gap[near].max())
    assert np.all(gap[middle] <= 0.1), (what, grid[middle][np.argmax(gap[middle])], gap[middle].max())
    assert np.all(gap[finite] <= 0.1 + 0.05 * np.abs(value[finite])), what


def test_gaussian_tables() -> None:
    for r in draws("gaussian tables", 12, 550):
        mu = log_uniform(r, 1e-6, 50.0)
        top = deep(mu)
        table = profiles.tabulate(normal(mu), top)
        check(normal(mu), table, dense(r, top), mu, 5e-3 if mu < 3.0 else 0.1)
        for e in (0.0, mu * r.random(), mu * (1.0 + 5.0 * r.random())):
            value = oracle.log_delta(exact(e), exact(mu))
            not_below(float(table(np.array([e]))[0]), value, f"{mu!r} at {e!r}")


@pytest.mark.parametrize("most", [30, pytest.param(10**6, marks=pytest.mark.campaign)])
def test_tables_of_mixtures(most: int) -> None:
    for r in draws(f"mixture tables {most}", 6, 1100):
        n, mu = whole(r, 1, most), log_uniform(r, 1e-3, 10.0)
        curve = shuffle_curves.shuffled_mixture(layout(n, r.choice((1, 3)), "own"), scale=1.0, sensitivity=mu)
        top = deep(mu)
        check(curve, profiles.tabulate(curve, top), dense(r, top), (n, mu), 8e-3 if mu < 3.0 else 0.1)


def test_tables_of_products() -> None:
    for r in draws("product tables", 8, 800):
        noise, n = r.choice(("gaussian", "laplace")), whole(r, 1, 10**6)
        own, following = log_uniform(r, 1e-2, 5.0), log_uniform(r, 1e-2, 10.0)
        curve = shuffle_curves.shuffled_product(
            layout(n, 1, "own"), noise=noise, scale=1.0, sensitivity=own, step_size=1.0, displacement=1.0,
            diameter=following,
        )  # fmt: skip
        top = own if noise == "laplace" else deep(own)
        table = profiles.tabulate(curve, top)
        grid = dense(r, top)
        value, found = curve(grid), table(grid)
        finite = np.isfinite(value)
        assert np.all(found[finite] >= value[finite] - 1e-13 * (1 + np.abs(value[finite]))), (noise, n, own, following)
        near = finite & (value > -60.0) & (grid < 0.999 * top)
        assert np.all(found[near] <= value[near] + 0.1), (noise, n, own, following)
        assert np.median(found[near] - value[near]) <= 5e-3


def test_laplace_tables() -> None:
    """The support ends: delta is 0 from there on, and a chord to 0 before."""
    for r in draws("laplace tables", 20, 330):
        ratio = log_uniform(r, 1e-6, 100.0)
        table, curve = profiles.tabulate(two_sided(ratio), ratio), two_sided(ratio)
        grid = dense(r, ratio)
        check(curve, table, grid[grid < 0.99 * ratio], ratio, 5e-3 if ratio < 3.0 else 0.1)
        last = grid[(grid >= 0.99 * ratio) & (grid < ratio)]
        assert np.all(table(last) >= curve(last) - 1e-12)
        assert np.all(table(np.array([ratio, ratio * 1.0001, 1e300])) == -math.inf)


def test_behind_the_last_point() -> None:
    table = profiles.tabulate(normal(1.0), 5.0)
    end = float(normal(1.0)(np.array([5.0]))[0])
    found = table(np.array([5.0, 5.1, 50.0, 1e18]))
    assert np.all(found >= end)
    assert np.all(found <= end * (1 - 1e-12))
    assert np.all(np.diff(table(np.linspace(0.0, 6.0, 2000))) <= 1e-12)


def test_a_curve_with_a_bump_is_levelled() -> None:
    """Of points on a curve that rises the smaller count: the profile itself falls."""

    def bumpy(e: Any) -> Any:
        return np.minimum(0.0, normal(1.0)(e) + 0.2 * np.sin(40.0 * e) ** 2)

    table = profiles.tabulate(bumpy, deep(1.0))
    grid = np.linspace(0.0, 8.0, 5000)
    assert np.all(table(grid) >= normal(1.0)(grid) - 1e-12)
    assert np.all(np.diff(table(grid)) <= 1e-12)


def test_tables_of_what_says_nothing() -> None:
    for level in (0.0, -3.0):
        table = profiles.tabulate(lambda e, level=level: np.full_like(e, level), 10.0)
        found = table(np.array([0.0, 1e-9, 1.0, 10.0, 1e9]))
        assert np.all((found >= level) & (found <= level + 1e-12))
    table = profiles.tabulate(lambda e: np.full_like(e, -np.inf), 1.0)
    assert np.all(table(np.array([0.0, 0.5, 2.0])) == -math.inf)


@pytest.mark.parametrize("mu", [1e-100, 1e-20, 1e-8, 1e3, 1e6])
def test_extreme_tables(mu: float) -> None:
    top = max(deep(mu), 1e-100)
    table = profiles.tabulate(normal(mu), top)
    grid = np.concatenate(([0.0, 5e-324], top * np.geomspace(1e-30, 10.0, 300)))
    value, found = normal(mu)(grid), table(grid)
    assert not np.isnan(found).any()
    assert np.all(found[value > -1e290] >= (value - 1e-12 * np.abs(value))[value > -1e290] - 1e-13)
    assert np.all(found[(value > -60.0) & (grid < top)] <= value[(value > -60.0) & (grid < top)] + 1e-2)


# --- Renyi divergences ------------------------------------------------------------------------------------------------


def test_renyi_of_gaussians() -> None:
    for r in draws("renyi of gaussians", 20, 330):
        mu = log_uniform(r, 1e-3, 10.0)
        order = r.choice((1.0, 1.0 + 10 ** r.uniform(-8, 0), 2.0, r.uniform(2.0, 30.0), 100.0))
        found = profiles.renyi(normal(mu), order=order, scale=mu, own=normal(mu))
        what = f"mu={mu!r}, order={order!r}"
        value = ball(exact(order) * exact(mu) ** 2 / 2)
        not_below(found, value, what)
        tight(found, value, what, 1e-10)


def test_renyi_of_laplaces() -> None:
    for r in draws("renyi of laplaces", 20, 330):
        ratio = log_uniform(r, 1e-3, 20.0)
        order = r.choice((1.0 + 10 ** r.uniform(-4, 0), 2.0, r.uniform(2.0, 30.0), 100.0))
        found = profiles.renyi(two_sided(ratio), order=order, scale=ratio, own=two_sided(ratio), breaks=[ratio])
        what = f"ratio={ratio!r}, order={order!r}"
        value = adaptive(
            lambda order=order, ratio=ratio: laplace(RunInputs({"order": order, "shift": ratio, "scale": 1.0}, False))
        )
        not_below(found, value, what)
        tight(found, value, what, 1e-10)


def test_kullback_and_leibler() -> None:
    for ratio in (0.1, 1.0, 5.0):
        found = profiles.renyi(two_sided(ratio), order=1.0, scale=ratio, own=two_sided(ratio), breaks=[ratio])
        value = ratio + math.expm1(-ratio)
        assert value <= found <= value * (1 + 1e-10)
        found = profiles.renyi(normal(ratio), order=1.0, scale=ratio, own=normal(ratio))
        assert 0.5 * ratio**2 <= found <= 0.5 * ratio**2 * (1 + 1e-10)


def test_renyi_of_a_table() -> None:
    """A table is above the curve by half a per cent of delta at most, and so are its moments."""
    for mu, order in ((0.3, 2.0), (1.0, 8.0), (3.0, 1.0)):
        table = shuffle_curves.least(profiles.tabulate(normal(mu), deep(mu)), normal(mu))
        found = profiles.renyi(table, order=order, scale=mu, own=normal(mu), rounds=1)
        assert 0.5 * order * mu**2 <= found <= 0.5 * order * mu**2 * (1 + 6e-3)


def test_renyi_of_what_has_none() -> None:
    """What is told outright with some probability has no Renyi divergence."""

    def told(e: Any) -> Any:
        return np.logaddexp(normal(1.0)(e), -20.0) - 1e-8

    assert profiles.renyi(told, order=2.0, scale=1.0, own=np.zeros_like) == math.inf


@pytest.mark.parametrize("mu", [1e-100, 1e-20, 1e-8, 30.0, 1e3])
def test_extreme_renyi(mu: float) -> None:
    for order in (1.0, 2.0, 1e4):
        found = profiles.renyi(normal(mu), order=order, scale=mu, own=normal(mu))
        assert found >= 0.5 * order * mu * mu * (1 - 1e-15)


@pytest.mark.parametrize(
    ("e", "r"), [(math.nan, 1.0), (1.0, math.nan), ([0.0, math.nan], 1.0), (-math.nan, [1.0, 2.0])]
)
def test_what_is_no_number_has_no_divergence(e: Any, r: Any) -> None:
    with pytest.raises(ValueError, match="a threshold or a distance is nan"):
        log_hockey_stick_up(e, r)
