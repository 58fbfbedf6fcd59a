"""Shuffled and full batches with hidden iterates: brute force, and the same runs asked about elsewhere."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.run import describe
from dpcalc.theorems.record import lookup
from tests.oracles import draws
from tests.oracles.chains import Array, Case, Gradient, Grid, constant, hockey_stick, last_law, mean, step
from tests.oracles.sampled import cut
from tests.theorems.test_sampled_hidden import small_case

BASE: dict[str, Any] = {
    "model": "linear", "release": "last", "clip": 0.5, "smoothness": 1.0, "step_size": 0.5, "noise_multiplier": 4.0,
}  # fmt: skip


def found(id: str, **told: Any) -> Any:
    run = describe("dp-sgd", {**BASE, **told})
    bound = lookup(id)
    assert bound.obstacle(run) is None
    return guarantee_of(bound, run)


# --- brute force ------------------------------------------------------------------------------------------------------


def law(case: Case, grid: Grid, orders: list[list[Any]], size: int, epochs: int, weight: float) -> Array:
    """The law of the last iterate, every order equally likely in every epoch; a sum is divided by ``size``."""

    def one(batch: list[Gradient]) -> Any:
        total = mean(batch, size) if batch else constant(0.0, case.low, case.high)
        mapped = case.psi(lambda w: total(w) + weight * np.asarray(w), grid.points)
        return step(grid, mapped, case.step_size * case.scale, case.noise)

    passes = [[one([order[j] for j in batch]) for batch, _ in cut(range(len(order)), size, "own")] for order in orders]
    start = grid.start
    for _ in range(epochs - 1):
        after = []
        for steps in passes:
            state = start
            for made in steps:
                state = state @ made.inner
            after.append(state)
        start = np.mean(after, axis=0)
    return np.mean([last_law(start, steps) for steps in passes], axis=0)


def is_not_less_private(r: Any, sampling: str) -> None:
    case = small_case(r)
    case = replace(case, records=3, others=case.others[:2])
    everyone = len(case.others) + 1
    size = everyone if sampling == "full" else r.randint(1, everyone)
    epochs, weight = r.choice((1, 2, 5)), r.choice((0.0, 0.2 / case.step_size))
    assert case.smoothness is not None
    if case.step_size * (case.smoothness + weight) > 2.0:
        weight = 0.0
    adjacency = r.choice(("replace-one", "zero-out") + (("add-remove",) if sampling == "full" else ()))
    other = {"replace-one": [case.x_prime], "zero-out": [constant(0.0, case.low, case.high)], "add-remove": []}[
        adjacency
    ]
    told = {
        "clip": case.lipschitz, "noise_multiplier": None, "noise_std": case.scale, "step_size": case.step_size,
        "smoothness": case.smoothness + weight, "diameter": case.diameter, "sampling": sampling, "records": everyone,
        "adjacency": adjacency, **({"regularisation": weight} if weight else {}),
        **({"steps": epochs} if sampling == "full" else {"batch_size": size, "epochs": epochs}),
    }  # fmt: skip
    told = {name: value for name, value in told.items() if value is not None}
    run = describe("dp-sgd", {name: value for name, value in {**BASE, **told}.items() if name in told or name in (
        "model", "release")})  # fmt: skip
    bound = lookup(f"sampled.hidden_{sampling}")
    assert bound.obstacle(run) is None
    guarantee, grid = guarantee_of(bound, run), case.nodes(250)
    laws = []
    for ends in ([case.x], other):
        data = [*case.others, *ends]
        orders = [data] if sampling == "full" else [list(order) for order in itertools.permutations(data)]
        laws.append(law(case, grid, orders, size, epochs, weight))
    for epsilon in case.epsilons:
        truth = hockey_stick(*laws, epsilon, 1e-9)
        assert truth <= math.exp(guarantee.log_delta(epsilon).value) * (1 + 1e-8), (told, repr(case), epsilon)


@pytest.mark.parametrize("sampling", ["shuffle", "full"])
def test_some_runs_are_not_less_private(sampling: str) -> None:
    for r in draws(f"some hidden {sampling}", 2, 2000):
        is_not_less_private(r, sampling)


@pytest.mark.campaign
@pytest.mark.parametrize("sampling", ["shuffle", "full"])
def test_no_run_is_less_private(sampling: str) -> None:
    for r in draws(f"hidden {sampling}", 12, 1500):
        is_not_less_private(r, sampling)


# --- the same runs elsewhere ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("adjacency", "lipschitz"), [("replace-one", 0.5), ("zero-out", 0.5)])
def test_shuffled_batches_are_those_of_shuffled_epochs(adjacency: str, lipschitz: float) -> None:
    told = {"records": 60, "batch_size": 6, "epochs": 30, "adjacency": adjacency, "diameter": 2.0}
    here = found("sampled.hidden_shuffle", sampling="shuffle", **told)
    same = {
        **told, "lipschitz": lipschitz, "smoothness": 1.0, "step_size": 0.5, "noise_std": 4.0 * 0.5 / 6,
        "last_batch": "nominal",
    }  # fmt: skip
    there = guarantee_of(lookup("shuffled_epochs.fresh"), describe("shuffled-epochs", same))
    for epsilon in (0.1, 1.0, 3.0):
        assert here.log_delta(epsilon).value == pytest.approx(there.log_delta(epsilon).value, rel=1e-9)


@pytest.mark.parametrize("diameter", [0.01, 0.5, 5.0])
def test_full_batches_are_those_of_noisy_gradient_descent(diameter: float) -> None:
    here = found("sampled.hidden_full", sampling="full", records=50, steps=400, diameter=diameter)
    same = {
        "records": 50, "steps": 400, "lipschitz": 0.5, "smoothness": 1.0, "step_size": 0.5, "diameter": diameter,
        "noise_std": 4.0 * 0.5 / 50,
    }  # fmt: skip
    there = guarantee_of(lookup("noisy_gd.domain"), describe("noisy-gd", same))
    assert here.mu == pytest.approx(there.mu, rel=1e-9)


# --- what is not spoken of --------------------------------------------------------------------------------------------


def obstacle(id: str, **told: Any) -> str:
    given = {name: value for name, value in {**BASE, **told}.items() if value is not None}
    return str(lookup(id).obstacle(describe("dp-sgd", given)))


def test_what_is_refused() -> None:
    shuffled = {"sampling": "shuffle", "records": 60, "batch_size": 6}
    assert "cut short" in obstacle("sampled.hidden_shuffle", **shuffled, steps=15)
    assert "last iterate alone" in obstacle("sampled.hidden_shuffle", **shuffled, epochs=3, release=None)
    assert "zero-out" in obstacle("sampled.hidden_shuffle", **shuffled, epochs=3, adjacency="add-remove")
    assert "linear" in obstacle("sampled.hidden_full", sampling="full", steps=3, records=9, model="any")
    assert "step" in obstacle("sampled.hidden_full", sampling="full", steps=3, records=9, step_size=2.5)
    assert "every iterate" in obstacle("sampled.shuffle_lower", **shuffled, epochs=3)
    assert "every iterate" in obstacle("sampled.full", sampling="full", steps=3, records=9, diameter=1.0)
    assert obstacle("sampled.full", sampling="full", steps=3, records=9) == "None"
