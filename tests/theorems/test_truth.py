"""A published factor is false past its range, a rotation hides no position, and secret orders are as good as known.

That no guarantee is below the truth of a small run is asked by the front door: `tests.cli.test_compare_truth`.
"""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.run import describe
from dpcalc.theorems.contraction import contraction
from dpcalc.theorems.hidden import hidden_position
from dpcalc.theorems.record import for_algorithm, lookup
from tests.formulas import evaluated, run_of
from tests.oracles import draws, log_uniform
from tests.oracles.chains import (
    hockey_stick,
    last_law,
    nodes,
    spring,
    step,
)


def offered(algorithm: str, told: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The bounds that may be promised for this run, each with its guarantee."""
    run = describe(algorithm, told)
    for bound in for_algorithm(algorithm):
        if bound.guarantee and not bound.unpromised(run) and bound.obstacle(run) is None:
            yield bound.id, guarantee_of(bound, run)


def test_a_rotation_does_not_hide_the_position() -> None:
    """Neighbours in a cyclic order stay neighbours: a swap of two records is no rotation."""
    assert {b.id for b in for_algorithm("rotation")} >= {"shuffle.product", "shuffle.hybrid", "shuffle.mixture"}
    assert not [b.id for b in for_algorithm("rotation") if b.id.startswith("hidden_position")]
    assert lookup("hidden_position.shuffled").algorithms == ("shuffled",)


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
    p, q = (last_law(grid.start, [own, maps[0]]) for own in maps[1:])
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
