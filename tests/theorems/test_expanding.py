"""Maps that may drive two runs apart: brute-force runs of every order, exact allocations, limits and known values."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.run import describe
from dpcalc.notions import gaussian
from dpcalc.theorems.privacy import expanding, multi_epoch, noisy_gd
from dpcalc.theorems.record import for_algorithm
from tests.formulas import evaluated
from tests.oracles import draws, log_uniform
from tests.oracles.chains import Array, Case, Gradient, Grid, constant, hockey_stick, last_law, random_case
from tests.oracles.passes import isotonic, shifts
from tests.oracles.sampled import Maker

RANDOM = ("shuffle-once", "rotation-epochs", "shuffled-epochs")
PASSES = ("cyclic", *RANDOM)
CLASSES = ("smooth", "convex", "lipschitz")


# --- the truth --------------------------------------------------------------------------------------------------------


def law_of(algorithm: str, case: Case, grid: Grid, record: Any, size: int, last: str, count: int) -> Array:
    """The law of the last iterate after so many passes or steps; the differing record is the last of all."""
    maker, n = Maker(case, grid, record), case.records
    if algorithm in ("noisy-gd", "noisy-sgd"):
        return last_law(grid.start, [maker.fresh(size)] * count)
    if algorithm == "cyclic":
        others = list(range(n - 1))
        order = [*others[: case.index - 1], n - 1, *others[case.index - 1 :]]
        return last_law(grid.start, maker.order(order, size, last) * count)
    orders = [list(order) for order in itertools.permutations(range(n))]
    if algorithm == "rotation-epochs":
        orders = [[*range(j, n), *range(j)] for j in range(n)]
    if algorithm != "shuffled-epochs":
        return np.mean([last_law(grid.start, maker.order(order, size, last) * count) for order in orders], axis=0)
    start = grid.start
    made = [maker.order(order, size, last) for order in orders]
    for _ in range(count - 1):
        after = []
        for steps in made:
            law = start
            for one in steps:
                law = law @ one.inner
            after.append(law)
        start = np.mean(after, axis=0)
    return np.mean([last_law(start, steps) for steps in made], axis=0)


def offered(algorithm: str, told: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The bounds of this family that may be promised for this run, each with its guarantee."""
    run = describe(algorithm, told)
    for bound in for_algorithm(algorithm):
        if bound.family == "expanding" and bound.obstacle(run) is None:
            yield bound.id, guarantee_of(bound, run)


def small_case(r: random.Random, loss_class: str, algorithm: str) -> Case:
    """A run on an interval of a fifth to sixty standard deviations, with losses as bad as their class allows."""
    most = 2 if algorithm == "shuffled-epochs" else 3
    case = random_case(r, "gaussian", loss_class, records=r.randint(1, most))
    if loss_class == "smooth" and r.random() < 0.5:
        case = repelled(r, case)
    if r.random() < 0.3:
        case = replace(case, scale=case.scale * r.choice((3, 10)))
    return case


def repelled(r: random.Random, case: Case) -> Case:
    """Losses -beta (w - c)^2/2: every step drives two runs apart by 1 + eta beta, up to the walls."""
    low, high = case.low, case.high
    beta = case.lipschitz / case.diameter

    def record(centre: float) -> Gradient:
        return Gradient("concave", (low, high), (beta * (centre - low), beta * (centre - high)), case.lipschitz)

    return replace(
        case, smoothness=beta, others=tuple(record(r.uniform(low, high)) for _ in case.others), x=record(low),
        x_prime=record(high), start=(low + high) / 2,
    )  # fmt: skip


def check(algorithm: str, case: Case, size: int, last: str, count: int, adjacency: str) -> dict[str, float]:
    """Compare every bound on offer with the truth; return the largest truth over bound of each."""
    grid = case.nodes(400)
    p, q = (law_of(algorithm, case, grid, record, size, last, count) for record in (case.x, case.x_prime))
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    told = case.told(adjacency=adjacency)
    if algorithm != "noisy-gd":
        told["batch_size"] = size
    told["steps" if algorithm.startswith("noisy") else "epochs"] = count
    if algorithm == "cyclic":
        told["index"] = case.index
    if algorithm in RANDOM:
        told["last_batch"] = last
    worst: dict[str, float] = {}
    for less in ({}, {"diameter": None}):
        for id, guarantee in offered(algorithm, {**told, **less}):
            for epsilon in case.epsilons:
                truth, found = hockey_stick(p, q, epsilon, 1e-9), guarantee.log_delta(epsilon).value
                what = f"{id} of {algorithm} {told!r} at {epsilon!r}: {case!r}"
                assert truth <= math.exp(min(0.0, found)) * (1 + 1e-8) + 1e-13, what
                if truth > 1e-9:
                    worst[id] = max(worst.get(id, 0.0), truth / math.exp(found))
    return worst


def brute_force(algorithm: str, number: int) -> dict[str, float]:
    worst: dict[str, float] = {}
    for r in draws(f"expanding {algorithm}", number, 300):
        case = small_case(r, r.choice(CLASSES), algorithm)
        adjacency = "replace-one"
        if r.random() < 0.25:
            case, adjacency = replace(case, x_prime=constant(0.0, case.low, case.high)), "null-record"
        size = case.records if algorithm == "noisy-gd" else r.randint(1, case.records)
        last = r.choice(("own", "nominal", "drop")) if algorithm in RANDOM else "own"
        count = r.choice((1, 2, 3, 5, 12, 40))
        if algorithm == "shuffled-epochs":
            count = min(count, 5)
        for id, share in check(algorithm, case, size, last, count, adjacency).items():
            worst[id] = max(worst.get(id, 0.0), share)
    return worst


@pytest.mark.parametrize("algorithm", [*PASSES, "noisy-sgd", "noisy-gd"])
def test_few_runs_are_no_less_private(algorithm: str) -> None:
    assert brute_force(algorithm, 4)


@pytest.mark.campaign
@pytest.mark.parametrize("algorithm", [*PASSES, "noisy-sgd", "noisy-gd"])
def test_no_run_is_less_private(algorithm: str) -> None:
    worst = brute_force(algorithm, 60)
    assert set(worst) == {id.id for id in for_algorithm(algorithm) if id.family == "expanding"}
    assert max(worst.values()) > 0.3
