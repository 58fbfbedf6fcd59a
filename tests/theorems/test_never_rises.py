"""Delta never rises with epsilon, and epsilon at that delta is no larger: guarantees, groups, ledgers, hidden runs."""

import itertools
import math
from typing import Any

import pytest

import dpcalc
from dpcalc.engine.evaluate import guarantee_of
from dpcalc.errors import NotApplicable
from dpcalc.model.run import describe
from dpcalc.notions import gaussian
from dpcalc.notions.groups import Chain
from dpcalc.notions.guarantee import Point
from dpcalc.theorems.record import Theorem
from tests.formulas import run_of
from tests.theorems.test_registry import BOUNDS, SEARCHED, parameters, runs

EPSILONS = tuple(10.0 ** (0.25 * place) for place in range(-4, 17, 2))
"""From 0.1 to 1e4."""

NEAR = 1e-6
"""How far apart a search for epsilon may end, and what lattices made for the two questions differ by."""

SEARCHED_IN_GROUPS = (
    *SEARCHED, "released.shuffle_once", "dp_sgd.output", "expanding.once", "sampled.hidden_shuffle", "released.optimal",
    "stepwise.stop", "stepwise.product", "stepwise.shuffled_product", "multi_epoch.linear_model",
)  # fmt: skip
GUARANTEES = [
    pytest.param(
        bound, size, id=f"{name}-{size}",
        marks=pytest.mark.campaign if bound.slow or size > 3 or name in searched else (),
    )
    for name, bound in BOUNDS.items() for size, searched in ((1, SEARCHED), (3, SEARCHED_IN_GROUPS), (32, ()))
    if bound.guarantee and bound.gives is not Point
]  # fmt: skip
FIXED = {"records": 60000, "batch_size": 256, "steps": 2340, "noise_multiplier": 1.0, "sampling": "fixed"}
BALLS, DRAWN = {**FIXED, "sampling": "balls-in-bins"}, {**FIXED, "sampling": "with-replacement"}
HIDDEN = {
    "records": 1000, "batch_size": 50, "steps": 200, "noise_multiplier": 2.0, "clip": 1.0, "loss": "logistic",
    "feature_bound": 1.0, "step_size": 0.5, "radius": 0.1, "release": "last", "sampling": "fixed",
}  # fmt: skip


def rises(values: list[float]) -> list[tuple[float, float]]:
    return [(before, after) for before, after in itertools.pairwise(values) if after > before]


REBUILT = {"correlated.banded_balls": -80.0}
"""bound -> the ln delta below which it has a law for every 8 of ln delta; two of them differ by .1."""


@pytest.mark.parametrize(("bound", "size"), GUARANTEES)
def test_of_every_guarantee(bound: Theorem, size: int) -> None:
    for r, _ in itertools.islice(runs(bound), 1):
        values = parameters(bound, r)
        try:
            found = guarantee_of(bound, run_of(values)).grouped(size)
        except NotApplicable:
            continue
        told = [found.log_delta(epsilon).value for epsilon in EPSILONS]
        assert not rises(told), rises(told)
        for epsilon, log_delta in zip(EPSILONS, told, strict=True):
            if 0.5 <= epsilon <= 5.0 and REBUILT.get(bound.id, -600.0) < log_delta < -1e-3:
                assert found.epsilon(log_delta).value <= epsilon * (1.0 + NEAR)


@pytest.mark.campaign
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize(
    ("given", "size"),
    [
        (FIXED, 2),
        (HIDDEN, 2),
        *(
            pytest.param(given, size, marks=pytest.mark.campaign)
            for given, size in ((FIXED, 3), (FIXED, 40), (HIDDEN, 9), (BALLS, 3), (DRAWN, 3))
        ),
    ],
)
def test_of_runs(given: dict[str, Any], size: int, adjacency: str) -> None:
    told = []
    for epsilon in (1.0, 50.0, 110.0, 200.0, 1e4):
        row = dpcalc.dp_sgd(**given, adjacency=adjacency, group_size=size, epsilon=epsilon).cases[0].best
        assert row is not None
        assert row.log_delta is not None
        told.append(row.log_delta)
    assert not rises(told), told


def test_a_group_of_three_under_fixed_size_has_an_epsilon() -> None:
    answered = dpcalc.dp_sgd(**FIXED, adjacency="replace-one", group_size=3, delta=1e-6).cases[0].best
    assert answered is not None
    assert answered.value < 100.0
    asked = dpcalc.dp_sgd(**FIXED, adjacency="replace-one", group_size=3, epsilon=answered.value).cases[0].best
    assert asked is not None
    assert asked.value <= 1e-6


def test_mu_of_draws_with_replacement_does_not_grow_with_the_group() -> None:
    """A step is of batch_size draws: whoever they are, they move the sum by 2 batch_size clips at most."""
    bound = BOUNDS["sampled.with_replacement"]
    run = {"records": 50, "batch_size": 3, "steps": 4, "noise_multiplier": 2.0, "sampling": "with-replacement"}
    one = guarantee_of(bound, describe("dp-sgd", {**run, "adjacency": "replace-one"}))
    assert [one.group_mu(size) for size in (1, 5)] == pytest.approx([3.0 * 2.0 * 2.0 / 2.0] * 2)


@pytest.mark.parametrize("size", [1, pytest.param(3, marks=pytest.mark.campaign)])
def test_of_a_ledger(size: int) -> None:
    entries = [
        {"command": "dp-sgd", **FIXED, "steps": 50},
        {"mu": 0.5},
        {"laplace_scale": 2.0, "sensitivity": 1.0, "times": 5},
    ]  # fmt: skip
    told = []
    for epsilon in (10.0, 100.0, 200.0, 1e4):
        row = dpcalc.ledger(entries, epsilon=epsilon, group_size=size).cases[0].best
        assert row is not None
        assert row.log_delta is not None
        told.append(row.log_delta)
    assert not rises(told), told


def test_the_gaussian_member_is_k_mu() -> None:
    """Past the last chain that pays there is delta_G at k mu; a pair of the group itself is below it."""
    mu = 3.0 * 2.0 * math.sqrt(2340.0)
    exact = gaussian.log_delta(mu=mu, epsilon=1e5)
    assert exact * (1.0 + 1e-12) <= Chain(lambda _: -3.0, 3, mu)(1e5) <= exact * (1.0 - 1e-9)
    case = dpcalc.dp_sgd(**FIXED, adjacency="replace-one", group_size=3, epsilon=1e5).cases[0].best
    assert case is not None
    assert case.log_delta is not None
    assert case.log_delta < exact
