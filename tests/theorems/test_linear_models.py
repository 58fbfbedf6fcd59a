"""Linear models without a projection: the noise before a record's step, against laws on a grid and simple cases."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpcalc.model.quantities import Adjacency, LastBatch
from dpcalc.model.run import describe
from dpcalc.notions import gaussian
from dpcalc.theorems.one_pass.linear_models import (
    cyclic,
    one_order,
    one_pass,
    shuffled,
)
from dpcalc.theorems.record import for_algorithm, lookup
from dpcalc.theorems.setting import Setting

Array = Any
STEP = 0.025
GRID = np.arange(-15.0, 15.0 + STEP / 2, STEP)
NOISE = np.exp(-((GRID[:, None] - GRID[None, :]) ** 2) / 2) / math.sqrt(2 * math.pi) * STEP


def pushed(mass: Array, image: Array) -> Array:
    """The law of a map of a grid point, its mass shared between the two points beside the image."""
    place = np.clip((image - GRID[0]) / STEP, 0, len(GRID) - 1.001)
    low = place.astype(int)
    out = np.zeros(len(GRID))
    np.add.at(out, low, mass * (1 - (place - low)))
    np.add.at(out, low + 1, mass * (place - low))
    return out


def slope(r: np.random.Generator, steepest: float, bound: float) -> Callable[[Array], Array]:
    """A function that grows by 0 or the most that is allowed, and stays within its bound."""
    knots, rises = np.sort(r.uniform(-5, 5, 5)), r.choice([0.0, steepest], 6)
    fine = np.arange(-40, 40, 0.01)
    values = np.cumsum(rises[np.searchsorted(knots, fine)]) * 0.01
    values = values - np.interp(r.uniform(-5, 5), fine, values) + r.uniform(-bound, bound)
    return lambda z: np.interp(z, fine, np.clip(values, -bound, bound))


def law(others: list[Callable[[Array], Array]], own: Callable[[Array], Array], at: int, epochs: int) -> Array:
    """The law of the last iterate of steps of one record each, by numbers of the noise."""
    mass = np.zeros(len(GRID))
    mass[len(GRID) // 2] = 1.0
    for t, other in [*enumerate(others)] * epochs:
        mass = NOISE @ pushed(mass, GRID - (own if t == at else other)(GRID))
    return mass / mass.sum()


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.campaign) for s in range(12, 200))])
def test_no_run_is_less_private(seed: int) -> None:
    r = np.random.default_rng(seed)
    curved, n = float(r.choice([0.01, 0.03, 0.1, 0.3])), int(r.integers(2, 8))
    index, ratio = int(r.integers(1, n + 1)), float(r.uniform(0.2, 2.0))
    others = [slope(r, curved, 5.0) for _ in range(n)]
    null = seed % 3 == 0
    bound = ratio if null else ratio / 2
    records = [slope(r, curved, bound), (lambda z: 0.0 * z) if null else slope(r, curved, bound)]
    epochs = 1 if seed % 2 else int(r.integers(2, 4))
    laws = [law(others, own, index - 1, epochs) for own in records]
    run: dict[str, Any] = {
        "records": n, "index": index, "batch_size": 1, "sensitivity": ratio, "noise_std": 1.0, "step_size": curved,
        "smoothness": 1.0, "adjacency": Adjacency.NULL_RECORD if null else Adjacency.REPLACE_ONE,
    }  # fmt: skip
    found = (one_pass(Setting(**run)) if epochs == 1 else cyclic(Setting(**run, epochs=epochs))).profile
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        for p, q in (laws, laws[::-1]):
            delta = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
            assert delta <= math.exp(found(epsilon)) * 1.001 + 1e-9, (seed, epsilon)


CASE = {"records": 60000, "batch_size": 256, "sensitivity": 2.0, "noise_std": 0.05, "step_size": 0.1, "smoothness": 1.0}


@pytest.mark.parametrize(
    ("last", "published", "lower"),
    [(LastBatch.OWN, 1.1516, 0.4346), (LastBatch.NOMINAL, 0.36795, 0.1580), (LastBatch.BALANCED, 0.41563, 0.1695)],
)
def test_between_the_lower_value_and_that_of_any_convex_loss(last: LastBatch, published: float, lower: float) -> None:
    found = shuffled(Setting(**CASE, last_batch=last)).epsilon(math.log(1e-6)).value
    assert lower < found < min(0.55 * published, 1.21 * lower)


def test_linear_losses_are_met_in_a_fixed_order() -> None:
    """Without curvature no slope moves and nothing is forgotten: that is a sum of Gaussians."""
    place: dict[str, Any] = {"records": 30, "index": 30, "batch_size": 3, "sensitivity": 2.0, "noise_std": 0.7}
    found = one_pass(Setting(**place, step_size=0.1, smoothness=0.0)).profile(0.4)
    exact = gaussian.log_delta(mu=2.0 / (3 * 0.7 * math.sqrt(10)), epsilon=0.4)
    assert exact <= found <= exact + 1e-9


@pytest.mark.parametrize("factor", [1.0 - 2.0**-53, 1.0 - 2.0**-52, 1.0, 1.5])
def test_steps_that_may_erase_all_noise_are_refused(factor: float) -> None:
    run = describe(
        "shuffled", {"records": 100, "batch_size": 10, "clip": 1.0, "model": "linear", "smoothness": 1.0,
                     "step_size": factor, "noise_std": 0.1},
    )  # fmt: skip
    assert "erase" in str(lookup("shuffle.linear_model").obstacle(run))


@pytest.mark.parametrize("noise_std", [1e-300, 1e-90, 1e-88, 1e88, 1e300])
def test_extreme_noise_is_no_error(noise_std: float) -> None:
    run: dict[str, Any] = {**CASE, "noise_std": noise_std, "last_batch": LastBatch.OWN}
    for found in (shuffled(Setting(**run)), one_order(Setting(**run, epochs=7))):
        assert -math.inf <= found.profile(1.0) <= 0.0


@pytest.mark.parametrize("given", [{"radius": 2.0}, {"diameter": 2.0}, {"loss_class": "smooth"}, {"release": "epoch"}])
def test_projected_or_released_runs_are_not_covered(given: dict[str, Any]) -> None:
    run = {"loss": "logistic", "feature_bound": 1.0, "records": 100, "batch_size": 10, "step_size": 0.1,
           "noise_std": 0.1, "epochs": 2, **given}  # fmt: skip
    algorithm = "cyclic-released" if "release" in given else "cyclic"
    for bound in for_algorithm(algorithm):
        assert "linear_model" not in bound.id or bound.obstacle(describe(algorithm, run)) is not None


@pytest.mark.parametrize("ratio", [1e-170, 6e-162, 1e-154, 1e-140, 1e-100])
def test_a_tiny_signal_is_not_lost(ratio: float) -> None:
    """A constant difference of gradients tells ln(2 Phi(mu/2) - 1) at epsilon = 0, with all five steps of noise."""
    run: dict[str, Any] = {"records": 5, "batch_size": 1, "sensitivity": ratio, "noise_std": 1.0, "step_size": 1e-200,
                           "smoothness": 1e-200}  # fmt: skip
    exact = math.log(ratio / math.sqrt(5.0)) - 0.5 * math.log(2.0 * math.pi)
    assert one_pass(Setting(**run, index=5)).profile(0.0) >= exact
    assert cyclic(Setting(**run, index=5, epochs=2)).profile(0.0) >= exact + 0.5 * math.log(2.0) - 1e-12
    assert shuffled(Setting(**run, last_batch=LastBatch.OWN)).profile(0.0) >= exact


@pytest.mark.parametrize(("rate", "records"), [(1e-15, 9), (1e-9, 15), (1e-3, 60), (0.1, 200), (0.5, 1000)])
def test_a_contracting_run_is_not_told_better_than_its_lower_value(rate: float, records: int) -> None:
    """All steps of one curvature: what the record moved fades by ``rate`` a step, and so does the noise."""
    run: dict[str, Any] = {"records": records, "index": 1, "batch_size": 1, "sensitivity": 2e-3, "noise_std": 1e-89,
                           "step_size": 1.0 - rate, "smoothness": 1.0, "strong_convexity": 1.0}  # fmt: skip
    found = one_pass(Setting(**run)).profile(0.0)
    log_mu = math.log(2e86) + (records - 1) * math.log(rate) + 0.5 * math.log1p(-rate * rate)
    assert found >= min(0.0, log_mu - 0.5 * math.log(2.0 * math.pi)) - 1e-6 * abs(log_mu) - 0.4
