"""Weakly convex losses and groups of records: every reference case, at the tolerance that its note gives."""

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.run import describe
from dpcalc.notions import gaussian
from dpcalc.theorems.record import lookup
from dpcalc.theorems.sampled import known_places

from .evaluate import evaluate

HERE = Path(__file__).parent
WEAK = ("weak_factor", "step_expansion", "hide_cost_min", "hide_cost_sqrt", "weak_cyclic_epsilon")
CASES = [
    *(case for case in json.loads((HERE / "hidden_batches.json").read_text()) if case["quantity"] in WEAK),
    *json.loads((HERE / "groups.json").read_text()),
]
ABOVE = {
    "fixed_group_remove_delta": "1e-9", "fixed_group_add_delta": "1e-9", "fixed_group_replace_delta": "1e-9",
    "fixed_group_zero_forward_delta": "1e-9", "fixed_group_zero_backward_delta": "1e-9",
    "gaussian_tradeoff_chain_delta": "1e-3", "public_positions_balls_delta": "1e-11",
    "public_positions_shuffle_delta": "1e-11", "balls_group_remove_k2_t2_delta": "0", "hypergeometric_weight": "1e-14",
}  # fmt: skip
BELOW = {"hypergeometric_weight": "1e-14", "balls_group_remove_k2_t2_delta": "0.02"}  # the second is a lower value


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_reference(case: dict[str, Any]) -> None:
    quantity = case["quantity"]
    exact, found = mp.mpf(case["value"]), mp.mpf(evaluate(quantity, case["inputs"]))
    if exact == 0:
        assert found == 0
        return
    assert found / exact - 1 <= mp.mpf(ABOVE.get(quantity, "1e-12"))
    assert found / exact - 1 >= -mp.mpf(BELOW.get(quantity, "1e-24"))


def shared(places: Any) -> int:
    """How many pairs of members share a batch."""
    return sum(math.comb(count, 2) for count in Counter(places).values())


@pytest.mark.parametrize(("n", "b", "k"), [(7, 3, 3), (6, 3, 4), (8, 3, 5), (5, 2, 2), (6, 2, 3), (5, 8, 3)])
def test_known_places_are_those_of_all_orders(n: int, b: int, k: int) -> None:
    steps = -(-n // b)
    for sizes, all_places in (
        ((n, b), [[p // b for p in order] for order in itertools.combinations(range(n), k)]),
        (None, list(itertools.product(range(steps), repeat=k))),
    ):
        count = Counter(map(shared, all_places))
        law = known_places._shared(k, steps, sizes)
        wanted = [count[i] / len(all_places) for i in range(len(law))]
        assert law == pytest.approx(wanted, rel=1e-13, abs=1e-15)
        twice = Counter(i + j for i in map(shared, all_places) for j in map(shared, all_places))
        squares, masses = known_places._squares(k, steps, sizes, 2)
        for square, mass in zip(squares[:-1].tolist(), masses[:-1].tolist(), strict=True):
            exact = twice[round(square - 2 * k) // 2] / len(all_places) ** 2
            assert exact * (1 - 1e-15) <= mass <= exact * (1 + 1e-11) + 1e-300


def test_many_epochs_lose_no_probability() -> None:
    """Values of N that are told apart no longer are moved up: the law has its mass, and no mean below the exact one."""
    one = known_places._shared(16, 30, None)
    mean = 16 + 2 * float(np.arange(len(one)) @ one)
    for epochs in (1, 7, 1000, 10**5):
        squares, masses = known_places._squares(16, 30, None, epochs)
        assert 1.0 <= masses.sum() <= 1.0 + 1e-6
        assert mean * epochs * (1 - 1e-12) <= squares @ masses <= mean * epochs * 1.05


@pytest.mark.parametrize("sampling", ["shuffle", "balls-in-bins"])
@pytest.mark.parametrize("size", [1, 4])
def test_the_total_is_no_more_than_all_steps(sampling: str, size: int) -> None:
    """The lower value is at least that of the total, and below every guarantee."""
    told = {
        "records": 60, "batch_size": 10, "steps": 12, "noise_multiplier": 3.0, "sampling": sampling,
        "adjacency": "replace-one", "group_size": size,
    }  # fmt: skip
    run = describe("dp-sgd", told)
    lower = guarantee_of(lookup("sampled.total_lower"), run)
    exact = 2.0 * size * math.sqrt(2.0 / 6.0) / 3.0  # 2 epochs of 6 steps
    name = f"sampled.{sampling.replace('-', '_')}" if size == 1 else "sampled.known_places"
    for epsilon in (0.0, 1.0, 5.0):
        found = lower.log_delta(epsilon).value
        assert found >= gaussian.log_delta(mu=exact, epsilon=epsilon) * (1.0 + 1e-9)
        assert found < guarantee_of(lookup(name), run).log_delta(epsilon).value
