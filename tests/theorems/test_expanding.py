"""Maps that may drive two runs apart: brute-force runs of every order, limits and known values."""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.run import describe
from dpcalc.theorems.expanding import expanding, expanding_passes
from dpcalc.theorems.many_passes import multi_epoch
from dpcalc.theorems.record import for_algorithm
from tests.formulas import evaluated
from tests.oracles import draws, log_uniform
from tests.oracles.chains import Array, Case, Gradient, Grid, constant, hockey_stick, last_law, random_case
from tests.oracles.sampled import Maker

RANDOM = ("shuffle-once", "rotation-epochs", "shuffled-epochs")
PASSES = ("cyclic", *RANDOM)
CLASSES = ("smooth", "convex", "lipschitz")
SPLITS = ("own", "nominal", "drop", "balanced", "front")


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
    """Losses -m (w - c)^2/2: every step drives two runs apart by 1 + eta m, up to the walls; m = beta, or is stated."""
    low, high = case.low, case.high
    beta, smoothness = case.lipschitz / case.diameter, r.choice((1, 1, 3))

    def record(centre: float) -> Gradient:
        return Gradient("concave", (low, high), (beta * (centre - low), beta * (centre - high)), case.lipschitz)

    return replace(
        case, smoothness=smoothness * beta, strong_convexity=-beta if smoothness > 1 else 0.0,
        others=tuple(record(r.uniform(low, high)) for _ in case.others), x=record(low), x_prime=record(high),
        start=(low + high) / 2,
    )  # fmt: skip


def told_of(algorithm: str, case: Case, size: int, last: str, count: int, adjacency: str) -> dict[str, Any]:
    """What is said of the run."""
    told = case.told(adjacency=adjacency)
    if algorithm != "noisy-gd":
        told["batch_size"] = size
    told["steps" if algorithm.startswith("noisy") else "epochs"] = count
    if algorithm == "cyclic":
        told["index"] = case.index
    if algorithm in RANDOM:
        told["last_batch"] = last
    return told


def check(algorithm: str, case: Case, size: int, last: str, count: int, adjacency: str) -> dict[str, float]:
    """Compare every bound on offer with the truth; return the largest truth over bound of each."""
    grid = case.nodes(400)
    p, q = (law_of(algorithm, case, grid, record, size, last, count) for record in (case.x, case.x_prime))
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    told = told_of(algorithm, case, size, last, count, adjacency)
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
        last = r.choice(SPLITS) if algorithm in RANDOM else "own"
        count = r.choice((1, 2, 3, 5, 12, 40))
        if algorithm == "shuffled-epochs":
            count = min(count, 5)
        for id, share in check(algorithm, case, size, last, count, adjacency).items():
            worst[id] = max(worst.get(id, 0.0), share)
    return worst


GAUSSIAN = {
    "cyclic": "domain cyclic",
    "shuffle-once": "composition domain once",
    "rotation-epochs": "composition domain once",
    "shuffled-epochs": "composition domain fresh",
    "noisy-sgd": "domain sampled",
    "noisy-gd": "domain",
}
"""The bounds of each algorithm that speak of Gaussian noise."""


@pytest.mark.parametrize("algorithm", [*PASSES, "noisy-sgd", "noisy-gd"])
def test_few_runs_are_no_less_private(algorithm: str) -> None:
    assert brute_force(algorithm, 1 if algorithm == "shuffled-epochs" else 4)


@pytest.mark.campaign
@pytest.mark.parametrize("algorithm", [*PASSES, "noisy-sgd", "noisy-gd"])
def test_no_run_is_less_private(algorithm: str) -> None:
    worst = brute_force(algorithm, 20 if algorithm == "shuffled-epochs" else 60)
    assert set(worst) == {f"expanding.{name}" for name in GAUSSIAN[algorithm].split()}
    assert max(worst.values()) > 0.3


@pytest.mark.parametrize("algorithm", [*PASSES, "noisy-sgd", "noisy-gd"])
def test_laplace_noise(algorithm: str) -> None:
    """The rounded chain will do: nothing is asked of the maps."""
    for r in draws(f"expanding laplace {algorithm}", 6, 300):
        case = random_case(r, "laplace", r.choice(CLASSES), records=r.randint(1, 3))
        adjacency = "replace-one"
        if r.random() < 0.4:
            case, adjacency = replace(case, x_prime=constant(0.0, case.low, case.high)), "null-record"
        size = case.records if algorithm == "noisy-gd" else r.randint(1, case.records)
        last = r.choice(SPLITS) if algorithm in RANDOM else "own"
        count, grid = r.choice((1, 2, 3)), case.cells(60)
        p, q = (law_of(algorithm, case, grid, record, size, last, count) for record in (case.x, case.x_prime))
        told = told_of(algorithm, case, size, last, count, adjacency)
        found = dict(offered(algorithm, told))
        assert set(found) == {"expanding.laplace"}
        for epsilon in case.epsilons:
            truth = hockey_stick(p, q, epsilon, 1e-9)
            assert truth <= math.exp(found["expanding.laplace"].log_delta(epsilon).value) * (1 + 1e-8) + 1e-13, told


# --- the costs --------------------------------------------------------------------------------------------------------


def spent(shares: Sequence[float], reach: float, map: Callable[[float], float]) -> float:
    """The cost of spending these shares of the distance after each step, the last of which is 1."""
    z, total = reach, 0.0
    for share in shares:
        total += (share * map(z)) ** 2
        z = (1.0 - share) * map(z)
    assert z == 0.0
    return total


def nudged(r: random.Random, shares: Sequence[float]) -> list[float]:
    return [min(1.0, share * math.exp(r.gauss(0.0, 0.2))) for share in shares[:-1]] + [1.0]


def test_what_weakly_convex_losses_carry_is_spent_to_the_end() -> None:
    """The allocation behind D'^2/S_m + w^2 sum 1/(q S_i) leaves nothing, at this cost, and none is better."""
    for r in draws("convex recursion", 40, 20):
        steps, reach, push = r.randint(1, 30), log_uniform(r, 0.1, 50), log_uniform(r, 0.1, 5)
        ratio = r.choice((1.0, 1.0 + log_uniform(r, 1e-9, 1.0)))

        def bent(z: float, ratio: float = ratio, push: float = push) -> float:
            return math.hypot(math.sqrt(ratio) * z, push)

        powers = [math.fsum(ratio**-i for i in range(1, left)) for left in range(steps, 0, -1)]
        shares = [1.0 / (1.0 + power) for power in powers]
        least = spent(shares, reach, bent)
        found = expanding_passes.carried_bent(reach, (ratio, push), steps) ** 2
        assert least * (1 - 1e-12) <= found <= least * (1 + 1e-12)
        for _ in range(20):
            assert spent(nudged(r, shares), reach, bent) >= least * (1 - 1e-12)


def test_no_allocation_of_lipschitz_steps_is_much_cheaper() -> None:
    """No spending beats the split of steps into those that add and those that multiply; the split itself leaves 0."""
    for r in draws("split recursion", 40, 60):
        steps, c, push = r.randint(1, 12), 1.0 + log_uniform(r, 1e-3, 0.5), log_uniform(r, 0.1, 5)
        reach = push / (c - 1.0) * log_uniform(r, 0.3, 30.0)

        def short(z: float, c: float = c, push: float = push) -> float:
            return min(c * z, z + push)

        found = expanding_passes.carried(reach, math.log(c), steps, push) ** 2
        splits = [(p, p + math.fsum(c ** (-2.0 * i) for i in range(1, steps - p + 1))) for p in range(steps + 1)]
        least = min((reach + push * p) ** 2 / room for p, room in splits)
        assert least * (1 - 1e-12) <= found <= least * (1 + 1e-12)
        shares = [1.0 / left for left in range(steps, 0, -1)]
        best = spent(shares, reach, short)
        for _ in range(300):
            tried = nudged(r, shares)
            if (cost := spent(tried, reach, short)) < best:
                best, shares = cost, tried
        assert best >= found * (1 - 1e-9)


@pytest.mark.parametrize("ratio", [1.0, 1.0 + 2.0**-50, 1.0 + 1e-9, 1.01, 3.0, 1e5])
def test_sums_of_many_terms(ratio: float) -> None:
    with mpmath.workdps(40):
        q, total = mpmath.mpf(ratio), mpmath.mpf(0)
        for i in range(1, 701):
            total += (1 - 1 / q) / (1 - q**-i) if ratio > 1.0 else mpmath.mpf(1) / i
            if i in (1, 64, 65, 700):
                assert total <= expanding_passes.harmonic(i, ratio) <= total * (1 + mpmath.mpf("1e-13"))


# --- limits -----------------------------------------------------------------------------------------------------------


def test_maps_that_hardly_expand_are_as_good_as_convex_ones() -> None:
    run = {
        "records": 60, "index": 41, "batch_size": 3, "epochs": 7, "sensitivity": 2.0, "noise_std": 1.5,
        "step_size": 0.25, "loss_class": "smooth", "smoothness": 1e-12,
    }  # fmt: skip
    near, convex = evaluated(expanding_passes.cyclic, **run), evaluated(multi_epoch.cyclic, **run)
    assert convex <= near <= convex * (1 + 1e-9)


def test_bounded_however_many_steps() -> None:
    """Flat from some number of passes on, and never above composition."""
    base = {
        "records": 4, "batch_size": 1, "last_batch": "own", "sensitivity": 2.0, "lipschitz": 1.0, "noise_std": 1.0,
        "step_size": 0.5, "diameter": 2.0, "smoothness": 0.5,
    }  # fmt: skip
    for loss_class in CLASSES:
        values = [
            evaluated(expanding.domain, **base, loss_class=loss_class, epochs=epochs)
            for epochs in (1, 2, 4, 16, 256, 10**5, 10**9, 10**15)
        ]
        assert values == sorted(values)
        assert values[-1] == values[-3] < 6.0
        assert values[0] == pytest.approx(2.0)


def test_known_values() -> None:
    """Lipschitz: 2 sqrt(2 D L/eta)/sigma at m = D/(2 eta L); convex, many records: sqrt(D'^2/m + 4 H_m)."""
    base: dict[str, Any] = {"records": 1, "sensitivity": 2.0, "lipschitz": 1.0, "noise_std": 1.0, "steps": 10**12}
    base.update(step_size=0.125, diameter=4.0)
    assert evaluated(expanding.domain, **base, loss_class="lipschitz") == pytest.approx(16.0)
    many = {**base, "records": 10**3, "sensitivity": 2e-3, "steps": 10**15}
    found = evaluated(expanding.domain, **many, loss_class="convex")
    wanted = math.sqrt(32.0**2 / 256 + 4 * math.fsum(1 / j for j in range(1, 257)))
    assert found == pytest.approx(wanted, rel=1e-4)


def test_nothing_is_said_of_steps_that_do_not_expand() -> None:
    told = {"records": 10, "lipschitz": 1.0, "step_size": 1.0, "noise_std": 1.0, "epochs": 2, "diameter": 1.0}
    assert not dict(offered("cyclic", {**told, "smoothness": 2.0}))
    assert set(dict(offered("cyclic", {**told, "smoothness": 2.1}))) == {"expanding.cyclic", "expanding.domain"}
    strong = {**told, "loss_class": "convex", "regularisation": 1.5}
    assert not dict(offered("cyclic", strong))
    assert dict(offered("cyclic", {**strong, "regularisation": 0.5}))


def test_extremes() -> None:
    for scale in (1e-150, 1e-9, 1e9, 1e150):
        for loss_class in CLASSES:
            run = {
                "records": 3, "index": 3, "batch_size": 1, "last_batch": "own", "epochs": 10**15, "sensitivity": 2.0,
                "lipschitz": 1.0, "noise_std": 1.0, "step_size": 1.0, "smoothness": scale, "diameter": scale,
                "loss_class": loss_class, "epsilon": 1.0,
            }  # fmt: skip
            value = evaluated(expanding.domain, **run)
            assert 0.0 < value <= 2.0 * math.sqrt(1e15) * (1 + 1e-12)
            if loss_class == "smooth":
                assert value * (1 - 1e-9) <= 1e9
                assert evaluated(expanding_passes.cyclic, **run) <= 2.0 * math.sqrt(1e15) * (1 + 1e-12)
                assert evaluated(expanding_passes.once, **run) <= 0.0
