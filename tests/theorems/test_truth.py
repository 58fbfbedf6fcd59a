"""No reported bound is below the truth: small one-dimensional runs whose laws are computed by brute force.

Every bound that the public path offers for a described run is compared with the hockey-stick divergence of the two laws
(`tests.oracles.chains`). Bounds that only need to know how far a step leaves two points meet the rounded chain, which
has no discretisation error; bounds that need Lipschitz maps meet the run itself.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.run import describe
from dpcalc.theorems.contraction import contraction, shuffle
from dpcalc.theorems.hidden import hidden_position
from dpcalc.theorems.record import for_algorithm, lookup
from tests.formulas import evaluated, run_of
from tests.oracles import draws, log_uniform
from tests.oracles.chains import (
    Array,
    Case,
    Grid,
    Step,
    constant,
    fixed_order,
    hidden_orders_case,
    hidden_orders_identical,
    hockey_stick,
    mean,
    nodes,
    random_case,
    spring,
    step,
)
from tests.oracles.sampled import cut

Truths = Sequence[tuple[float, float]]  # (delta, error) at every epsilon
ALGORITHM = {"fixed": "pnsgd", "stop": "stop", "shuffled": "shuffled", "shuffled-stop": "shuffled-stop"}
LAST_BATCHES = ("own", "nominal", "drop", "balanced", "front")
DISPLACEMENT_ONLY = (
    "contraction.product",
    "contraction.paper_product",
    "contraction.nonlinear",
    "contraction.stop_product",
    "contraction.stop_nonlinear",
    "shuffle.product",
    "shuffle.nonlinear",
    "shuffle.stop_product",
)
HYBRIDS = ("contraction.hybrid", "contraction.stop_hybrid", "shuffle.hybrid", "shuffle.stop_hybrid")


# --- comparisons


def compare(truth: float, error: float, log_delta: float, what: str) -> None:
    """``log_delta`` may be promised where ``truth`` is known to within twice ``error``."""
    assert not math.isnan(log_delta), f"nan: {what}"
    floor = truth - 2 * error
    assert floor <= math.exp(min(log_delta, 0.0)) * (1 + 1e-9), f"{what}: {math.exp(log_delta)!r} is below {floor!r}"


def weaker(r: random.Random, case: Case, told: dict[str, Any]) -> dict[str, Any]:
    """The same run, of which less is said."""
    classes = {
        "convex-smooth": ("convex-smooth", "convex-smooth", "convex", "smooth", "lipschitz"),
        "convex": ("convex", "lipschitz"),
        "smooth": ("smooth", "lipschitz"),
        "lipschitz": ("lipschitz",),
    }
    told = {**told, "loss_class": r.choice(classes[case.loss_class])}
    if told["loss_class"] != "convex-smooth" or r.random() < 0.2:
        told["strong_convexity"] = None
    if told["loss_class"] in ("convex", "lipschitz") and r.random() < 0.5:
        told["smoothness"] = None
    if r.random() < 0.1 and told["smoothness"] is not None:
        told["diameter"] = None
    return told


def rounding_will_do(bound: str, told: dict[str, Any]) -> bool:
    """Whether the bound needs nothing of a step's map but how far it leaves two points."""
    lipschitz = ("convex-smooth",) if "laplace_scale" in told else ("convex-smooth", "smooth")
    return bound in DISPLACEMENT_ONLY or (bound in HYBRIDS and told["loss_class"] not in lipschitz)


def offered(algorithm: str, told: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The bounds that may be promised for this run, each with its guarantee."""
    run = describe(algorithm, told)
    for bound in for_algorithm(algorithm):
        if bound.guarantee and not bound.unpromised(run) and bound.obstacle(run) is None:
            yield bound.id, guarantee_of(bound, run)


def check(
    algorithm: str, told: dict[str, Any], epsilons: Sequence[float], truths: Truths, rounded: bool, label: str = ""
) -> int:
    """Compare every bound on offer (if ``rounded``, of those for which the rounded chain will do) with the truth."""
    count = 0
    for bound, guarantee in offered(algorithm, told):
        if rounded and not rounding_will_do(bound, told):
            continue
        for epsilon, (truth, error) in zip(epsilons, truths, strict=True):
            what = f"{bound} of {algorithm} {told!r} at epsilon={epsilon!r} {label}"
            compare(truth, error, guarantee.log_delta(epsilon).value, what)
            count += 1
    return count


def divergences(p: Array, q: Array, epsilons: Sequence[float], slack: float = 1e-10) -> list[float]:
    return [hockey_stick(p, q, e, slack) for e in epsilons]


def exact(values: Sequence[float]) -> list[tuple[float, float]]:
    """A lower bound on the truth that only needs its slack."""
    return [(v, 1e-9 * v) for v in values]


# --- single records


def any_case(r: random.Random, records: int | None = None) -> Case:
    """A random run; more often one that every bound speaks of, or with other records as extreme as the two."""
    usual = ("gaussian", "convex-smooth") if r.random() < 0.4 else (None, None)
    case = random_case(r, *usual, records=records)
    if r.random() < 0.25:
        pair = case.x, case.x_prime
        case = replace(case, others=tuple(r.choice(pair) for _ in case.others))
    return case


def null_record(case: Case) -> Case:
    """The same run with a null record in the place of x'."""
    return replace(case, x_prime=constant(0.0, case.low, case.high))


def published_allowed(case: Case, law: str) -> bool:
    return law == "stop" or (law != "fixed" and len({id(g) for g in case.others}) <= 4)


def told_of(case: Case, law: str, published: bool, adjacency: str) -> dict[str, Any]:
    told = case.told(adjacency=adjacency)
    if law in ("fixed", "stop"):
        told["index"] = case.index
    elif law == "shuffled":
        told["permutation"] = "public" if published else "secret"
    return told


def check_case(r: random.Random, case: Case, law: str, adjacency: str = "replace-one") -> None:
    published = published_allowed(case, law) and r.random() < 0.5
    told = told_of(case, law, published, adjacency)
    less = weaker(r, case, told)
    label = f"published={published} {case!r}"

    def found(grid: Grid) -> list[float]:
        return divergences(*case.laws(law, grid, published), case.epsilons)

    rounded = exact(coarse := found(case.cells(200)))
    if case.noise == "gaussian":
        true = exact(found(case.nodes(500)))
    else:
        true = [(b, abs(a - b)) for a, b in zip(coarse, found(case.cells(400)), strict=True)]
    for description in (told, less):
        check(ALGORITHM[law], description, case.epsilons, rounded, True, label)
        check(ALGORITHM[law], description, case.epsilons, true, False, label)


LAWS = ("fixed", "stop", "shuffled", "shuffled-stop")


@pytest.mark.parametrize("law", LAWS)
def test_single_records(law: str) -> None:
    for r in draws(f"single records {law}", 20, 100):
        check_case(r, any_case(r), law)


@pytest.mark.parametrize("law", LAWS)
def test_null_record(law: str) -> None:
    for r in draws(f"null record {law}", 10, 200):
        check_case(r, null_record(any_case(r)), law, "null-record")


# --- batches, and rotations


class Passes(NamedTuple):
    """The laws of passes in batches; the record that differs is the last of ``everyone``."""

    case: Case
    grid: Grid
    everyone: tuple[Any, ...]
    made: dict[tuple[tuple[int, ...], int], Step]

    def step(self, batch: tuple[int, ...], divisor: int) -> Step:
        key = (tuple(sorted(batch)), divisor)
        if key not in self.made:
            mapped = self.case.psi(mean([self.everyone[j] for j in key[0]], divisor), self.grid.points)
            self.made[key] = step(self.grid, mapped, self.case.step_size * self.case.scale, self.case.noise)
        return self.made[key]

    def law(self, order: Sequence[int], batch_size: int, last_batch: str) -> Array:
        """The law of the last iterate of this order."""
        law = self.grid.start
        steps = [self.step(batch, divisor) for batch, divisor in cut(order, batch_size, last_batch)]
        for one in steps[:-1]:
            law = law @ one.inner
        return law @ steps[-1].last


def all_orders(n: int, batch_size: int, last_batch: str) -> list[tuple[int, ...]]:
    """One order for every sequence of batches; all are equally likely."""

    def batched(order: Sequence[int]) -> tuple[int, ...]:
        used = [j for batch, _ in cut(order, batch_size, last_batch) for j in sorted(batch)]
        return (*used, *sorted(order[len(used) :]))

    return list(dict.fromkeys(batched(order) for order in itertools.permutations(range(n))))


def rotations(n: int, index: int) -> list[tuple[int, ...]]:
    """All rotations of the order that has the record at this position."""
    others = list(range(n - 1))
    order = [*others[: index - 1], n - 1, *others[index - 1 :]]
    return [tuple(order[s:] + order[:s]) for s in range(n)]


def passes(
    case: Case, grid: Grid, orders: Sequence[Sequence[int]], batch_size: int, last_batch: str, published: bool
) -> tuple[Array, Array]:
    """The two laws of a pass whose order is one of these, all equally likely."""

    def of(record: Any) -> Array:
        runner = Passes(case, grid, (*case.others, record), {})
        parts = [runner.law(order, batch_size, last_batch) / len(orders) for order in orders]
        return np.concatenate(parts) if published else np.sum(parts, axis=0)

    return of(case.x), of(case.x_prime)


def check_passes(
    r: random.Random, case: Case, algorithm: str, orders: Sequence[Sequence[int]], told: dict[str, Any]
) -> None:
    """Compare the truth of these orders, secret and published, with the bounds for batches."""
    size, last = told.get("batch_size", 1), told.get("last_batch", "own")

    def found(grid: Grid) -> tuple[list[float], list[float]]:
        p, q = passes(case, grid, orders, size, last, True)
        shape = (len(orders), -1)
        mixed = p.reshape(shape).sum(axis=0), q.reshape(shape).sum(axis=0)
        return divergences(p, q, case.epsilons), divergences(*mixed, case.epsilons)

    rounded = [exact(values) for values in found(case.cells(150))]
    if case.noise == "gaussian":
        true = [exact(values) for values in found(case.nodes(500))]
    else:
        pairs = zip(found(case.cells(200)), found(case.cells(400)), strict=True)
        true = [[(b, abs(a - b)) for a, b in zip(*pair, strict=True)] for pair in pairs]
    less = weaker(r, case, told)
    for k, permutation in enumerate(("public", "secret")):
        extra = {} if algorithm == "pnsgd" else {"permutation": permutation}
        for description in (told, less):
            description = {**description, **extra}
            label = f"of {len(orders)} orders {case!r}"
            check(algorithm, description, case.epsilons, rounded[k], True, label)
            check(algorithm, description, case.epsilons, true[k], False, label)


def batched_case(r: random.Random) -> tuple[Case, dict[str, Any]]:
    """A run with batches; the record, x or x', counts for less, so that there is less noise to hide it."""
    n, size = r.choice(((2, 2), (2, 3), (3, 2), (3, 2), (3, 4), (4, 2), (4, 3), (5, 2), (5, 2), (5, 3), (5, 4), (6, 2)))
    case = any_case(r, n)
    case = replace(case, epsilons=(case.epsilons[0], *(e / r.choice((1, size)) for e in case.epsilons[1:])))
    adjacency = "replace-one"
    if r.random() < 0.3:
        adjacency, case = "null-record", null_record(case)
    return case, case.told(adjacency=adjacency, batch_size=size)


@pytest.mark.parametrize("last_batch", LAST_BATCHES)
def test_shuffled_batches(last_batch: str) -> None:
    for r in draws(f"batches {last_batch}", 25, 200):
        case, told = batched_case(r)
        told["last_batch"] = last_batch
        check_passes(r, case, "shuffled", all_orders(case.records, told["batch_size"], last_batch), told)


def test_batches_in_a_fixed_order() -> None:
    for r in draws("fixed batches", 30, 200):
        case, told = batched_case(r)
        order = rotations(case.records, case.index)[:1]
        check_passes(r, case, "pnsgd", order, {**told, "index": case.index})


def test_rotations() -> None:
    for r in draws("rotations", 25, 200):
        case = any_case(r, r.choice((2, 3, 4, 5, 6)))
        size = r.choice((1, 1, 2, 3))
        told = case.told(batch_size=size, last_batch=r.choice(LAST_BATCHES))
        check_passes(r, case, "rotation", rotations(case.records, case.index), told)


def test_a_rotation_does_not_hide_the_position() -> None:
    """Neighbours in a cyclic order stay neighbours: a swap of two records is no rotation."""
    assert {b.id for b in for_algorithm("rotation")} >= {"shuffle.product", "shuffle.hybrid", "shuffle.mixture"}
    assert not [b.id for b in for_algorithm("rotation") if b.id.startswith("hidden_position")]
    assert lookup("hidden_position.shuffled").algorithms == ("shuffled",)


# --- other laws of the position and of the stop


def random_law(r: random.Random, n: int) -> list[float]:
    weights = [r.choice((0.0, r.random(), r.random() ** 4)) for _ in range(n)]
    weights[r.randrange(n)] += 0.1
    return [w / sum(weights) for w in weights]


def test_other_laws_of_the_position() -> None:
    """By joint convexity the bounds for every position average, whatever law the position has."""
    for r in draws("position laws", 20, 100):
        case = random_case(r, noise="gaussian", records=r.choice((2, 3, 4, 5)))
        n = case.records
        law = random_law(r, n)
        others, x, x_prime = case.steps(grid := case.nodes(500))
        pairs = [fixed_order(grid.start, others, x, x_prime, i) for i in range(1, n + 1)]
        p, q = (sum(w * pair[side] for w, pair in zip(law, pairs, strict=True)) for side in (0, 1))
        bounds = [dict(offered("pnsgd", case.told(index=i))) for i in range(1, n + 1)]
        for id in set.intersection(*map(set, bounds)):
            for epsilon, truth in zip(case.epsilons, divergences(p, q, case.epsilons), strict=True):
                parts = [w * math.exp(b[id].log_delta(epsilon).value) for w, b in zip(law, bounds, strict=True)]
                what = f"{id} averaged over {law} at epsilon={epsilon!r} of {case!r}"
                compare(truth, 1e-9 * truth, math.log(max(math.fsum(parts), 5e-324)), what)


# --- beyond the published step size

BEYOND = {
    "records": 2,
    "index": 1,
    "lipschitz": 10.0,
    "loss_class": "convex-smooth",
    "step_size": 1.45,
    "noise_std": 0.1,
    "diameter": 1.0,
}


def beyond_truth() -> float:
    """A first record that sends the state to either end, and a spring of curvature 1 that brings the ends near."""
    grid = nodes(0.0, 1.0, 0.05, (), 0.5)
    pull = spring(1.0, 0.5, 0.0, 1.0)
    x, x_prime = (spring(1.0, 0.5 + s * 9.5, 0.0, 1.0) for s in (1, -1))
    maps = [step(grid, grid.points - 1.45 * g(grid.points), 0.145, "gaussian") for g in (pull, x, x_prime)]
    p, q = fixed_order(grid.start, [maps[0]], maps[1], maps[2], 1)
    return hockey_stick(p, q, 0.0)


def test_the_published_factor_is_false_past_its_range() -> None:
    truth = beyond_truth()
    told = {**BEYOND, "smoothness": 1.0, "strong_convexity": 0.5}
    factor = math.sqrt(1 - 2 * 1.45 * 1.0 * 0.5 / 1.5)
    published = evaluated(contraction.product,
        records=2, index=1, batch_size=1, sensitivity=20.0, noise="gaussian", scale=0.1, step_size=1.45,
        displacement=factor, diameter=1.0, epsilon=0.0,
    )  # fmt: skip
    assert truth == pytest.approx(0.8793, abs=5e-5)
    assert math.exp(published) == pytest.approx(0.471, abs=5e-4)
    found = {id: math.exp(g.log_delta(0.0).value) for id, g in offered("pnsgd", told)}
    assert "contraction.paper_product" not in found
    assert {"contraction.product", "contraction.nonlinear", "contraction.hybrid"} <= set(found)
    for id, value in found.items():
        assert truth - 1e-9 <= value, id
    assert found["contraction.product"] == pytest.approx(truth, rel=1e-6)
    obstacle = lookup("contraction.paper_product").obstacle(run_of(describe("pnsgd", told).values))
    assert obstacle is not None
    assert "exceeds" in obstacle[0]


def test_the_published_factor_is_offered_within_its_range() -> None:
    for r in draws("published factor", 40):
        beta = log_uniform(r, 0.1, 10)
        rho = beta * r.random()
        eta = 2 / (beta + rho) * r.choice((0.999999, r.random(), r.random(), 1.000001, r.uniform(1, 2)))
        told = {**BEYOND, "smoothness": beta, "strong_convexity": rho, "step_size": eta}
        values = describe("pnsgd", told).values
        refused = lookup("contraction.paper_product").obstacle(run_of(values)) is not None
        assert refused == (eta * (beta + rho) > 2), told
        if not refused:
            arguments = {n: values[n] for n in lookup("contraction.paper_product").parameters if n in values}
            sharper = lookup("contraction.product").prove(run_of(values))
            assert evaluated(contraction.paper_product, **arguments, epsilon=0.3) >= sharper.profile(0.3) - 1e-12


# --- a secret order


def secret(records: int, mu_1: float, epsilon: float) -> float:
    return evaluated(hidden_position.shuffled,
        records=records, batch_size=1, last_batch="own", sensitivity=mu_1, noise="gaussian", scale=1.0, step_size=1.0,
        smoothness=1.0, adjacency="replace-one", epsilon=epsilon,
    )  # fmt: skip


def check_hidden(made: Any, epsilons: Sequence[float]) -> None:
    for epsilon, truth in zip(epsilons, divergences(made.p, made.q, epsilons), strict=True):
        what = f"hidden position, {made.label}, epsilon={epsilon!r}"
        compare(truth, 1e-9 * truth, secret(made.records, made.mu_1, epsilon), what)
        mixture = evaluated(shuffle.mixture,
            records=made.records, batch_size=1, last_batch="own", sensitivity=made.mu_1, noise="gaussian", scale=1.0,
            step_size=1.0, smoothness=2.0, epsilon=epsilon,
        )  # fmt: skip
        compare(truth, 1e-9 * truth, mixture, what)


def some_epsilons(r: random.Random) -> tuple[float, ...]:
    return (0.0, log_uniform(r, 1e-3, 0.1), log_uniform(r, 0.1, 1), log_uniform(r, 1, 5))


def test_secret_orders_of_different_records() -> None:
    for r in draws("secret orders", 25, 20):
        check_hidden(hidden_orders_case(r), some_epsilons(r))


def test_secret_orders_of_many_alike() -> None:
    for r in draws("secret orders, alike", 10, 50):
        check_hidden(hidden_orders_identical(r), some_epsilons(r))


@pytest.mark.parametrize(
    ("records", "sigma", "epsilon", "log10_delta"),
    [
        (1000, 0.5, 1.0, -2.790),
        (1000, 0.5, 4.0, -3.615),
        (1000, 2.0, 0.5, -8.891),
        (1000, 2.0, 4.0, -27.804),
        (1000, 8.0, 1.0, -162.9),
        (100_000, 0.5, 0.5, -5.637),
        (100_000, 2.0, 0.1, -20.204),
        (100_000, 2.0, 1.0, -35.959),
        (100_000, 8.0, 4.0, -836.5),
    ],
)
def test_secret_order_is_as_good_as_known(records: int, sigma: float, epsilon: float, log10_delta: float) -> None:
    assert secret(records, 2 / sigma, epsilon) / math.log(10) <= log10_delta + 1e-3
