"""Scores of whole releases: the log of the likelihood ratio, worked out by brute force over all orders."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dpcalc.model.run import describe
from dpcalc.training.audit import estimate as audit
from dpcalc.training.audit import traces
from dpcalc.training.audit.attacks import Attack, Pair, pairs
from dpcalc.training.audit.estimate import Setup
from dpcalc.training.run.plan import Plan, plan
from tests.training.test_audit import BASE, pairs_of

RANDOM = np.random.default_rng(5)
PUBLIC, SECRET = "public", "secret"


def looking_further(algorithm: str, attack: str, **given: Any) -> list[Pair]:
    return [pair for pair in pairs_of(algorithm, attack, **given) if isinstance(pair.steps, traces.Passes)]


def orders(made: Plan) -> list[list[tuple[int, ...]]]:
    """All equally likely orders of the records, one for each pass."""
    n = made.records
    if made.order == "rotation":
        return [[tuple((k + shift) % n for k in range(n))] * made.passes for shift in range(n)]
    if made.order == "shuffle-once":
        return [[order] * made.passes for order in itertools.permutations(range(n))]
    if made.order == "shuffle":
        return [list(each) for each in itertools.product(itertools.permutations(range(n)), repeat=made.passes)]
    return [[tuple(range(n))] * made.passes]


def batches(made: Plan, passes: list[tuple[int, ...]]) -> list[tuple[tuple[int, ...], int]]:
    """The records and the divisor of every step."""
    found = []
    for order in passes:
        used = 0
        for count, size, divisor in made.batches:
            for _ in range(count):
                found.append((order[used : used + size], divisor))
                used += size
    return found


def log_density(pair: Pair, label: int, passes: list[tuple[int, ...]], seen: list[int], values: Any) -> Any:
    """The log density of the iterates after the steps ``seen``, as one Gaussian vector: values has shape (seen, m)."""
    made, told = pair.plan, pair.steps
    assert isinstance(told, traces.Passes)
    assert isinstance(made.step_size, float)
    assert isinstance(made.scale, float)
    eta, noise = made.step_size, made.step_size * made.scale
    steps = batches(made, passes)
    mean, shares, means, rows = 0.0, np.zeros(len(steps)), [], []
    for number, (records, divisor) in enumerate(steps):
        curved = [r for r in records if r != told.place and (not told.before or r < told.place)]
        factor = 1.0 - eta * (told.weight * len(records) + told.curvature * len(curved)) / divisor
        pull = (told.first, told.second)[label] if told.place in records else 0.0
        mean, shares = factor * mean + eta * pull / divisor, factor * shares
        shares[number] = noise
        if number in seen:
            means.append(mean)
            rows.append(shares.copy())
    covariance = np.array(rows) @ np.array(rows).T
    apart = values - np.array(means)[:, np.newaxis]
    return -0.5 * (apart * np.linalg.solve(covariance, apart)).sum(axis=0) - 0.5 * np.linalg.slogdet(covariance)[1]


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("cyclic-released", "linear", {"records": 4, "index": 2, "epochs": 3, "strong_convexity": 0.5}),
    ("cyclic-released", "reset", {"records": 3, "index": 3, "epochs": 2, "adjacency": "null-record"}),
    ("shuffled", "reset", {"records": 5, "batch_size": 2, "strong_convexity": 0.25}),
    ("rotation-epochs", "linear", {"records": 3, "epochs": 2, "strong_convexity": 0.5}),
    ("shuffled-epochs-released", "linear", {"records": 3, "epochs": 2, "batch_size": 2, "last_batch": "drop"}),
    ("shuffled-epochs-released", "reset", {"records": 3, "epochs": 2, "permutation": SECRET}),
    ("shuffle-once-released", "reset", {"records": 3, "epochs": 2, "permutation": SECRET, "batch_size": 2}),
    ("rotation-epochs-released", "linear", {"records": 4, "epochs": 3, "permutation": SECRET, "strong_convexity": 0.5}),
    (
        "shuffled-epochs-released", "linear",
        {"records": 3, "epochs": 2, "batch_size": 2, "last_batch": "drop", "permutation": SECRET},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "attack", "given"), CASES)
def test_the_score_is_the_log_of_the_likelihood_ratio(algorithm: str, attack: str, given: dict[str, Any]) -> None:
    found = looking_further(algorithm, attack, **given)
    assert found
    for pair in found:
        made, told = pair.plan, pair.steps
        assert isinstance(told, traces.Passes)
        length, runs = made.steps_per_pass, 4
        seen = list(range(length - 1, made.steps, length)) if told.every else [made.steps - 1]
        path = RANDOM.normal(size=(made.steps, runs))
        all_orders = orders(made)
        drawn = [all_orders[k] for k in RANDOM.integers(len(all_orders), size=runs)]
        trace = told.trace(made)
        for number in range(made.steps):
            rows = np.array([batches(made, passes)[number][0] for passes in drawn]).T
            trace.see(number, path[number][np.newaxis], rows[:, 0] if made.order == "fixed" else rows)
        for run in range(runs):
            values = path[seen, run][:, np.newaxis]
            known = [drawn[run]] if told.known else all_orders
            logs = [[log_density(pair, label, passes, seen, values)[0] for passes in known] for label in (0, 1)]
            exact = np.logaddexp.reduce(logs[0]) - np.logaddexp.reduce(logs[1])
            assert trace.result()[run] == pytest.approx(exact, rel=1e-9, abs=1e-11)


def test_nothing_is_looked_for_where_the_last_iterate_tells_all() -> None:
    for algorithm, given in (
        ("pnsgd", {"records": 4, "strong_convexity": 0.5}),
        ("cyclic", {"records": 4, "epochs": 3}),
        ("cyclic-released", {"records": 4, "epochs": 3}),
        ("shuffled", {"records": 4}),
        ("shuffled", {"records": 4, "strong_convexity": 0.5, "permutation": SECRET}),
        ("shuffled-epochs-released", {"records": 4, "epochs": 3}),
        ("shuffled-stop", {"records": 4}),
    ):
        assert not looking_further(algorithm, "linear", **given)
    many = {"records": traces.MOST_PLACES + 1, "epochs": 2, "strong_convexity": 0.5}
    assert not looking_further("shuffled-epochs-released", "linear", **many, permutation=SECRET)
    assert looking_further("shuffled-epochs-released", "linear", **many)


@pytest.mark.parametrize("index", [1, 21])
def test_nearly_all_that_passes_tell_is_found(index: int) -> None:
    """A pass tells what the noise from the record on leaves, where those before it forget all; and passes add up."""
    given = {**BASE, "step_size": 1.0, "noise_std": 0.3, "records": 40, "epochs": 2, "index": index}
    run = describe("cyclic-released", given)
    found = audit.audit(pairs(run, plan(run, 40, 1), Attack.BEST), 0.05, Setup(20_000))
    exact = 2.0 * 0.75 / 0.3 * math.sqrt(2.0 / (41.0 - index))
    assert 0.85 * exact < found.mu <= exact


def test_a_published_order_tells_more_than_a_secret_one() -> None:
    """With a reset in every step only the last record shows, and a published order says when it is the record."""
    given = {"step_size": 1.0, "records": 4, "noise_std": 0.25}
    mus = []
    for order in (PUBLIC, SECRET):
        found = audit.audit(pairs_of("shuffled", "reset", **given, permutation=order), 0.05, Setup(20_000))
        mus.append((found.pair.looks_at, found.epsilon or 0.0))
    assert mus[0][0] == "the last iterate and the order"
    assert mus[1][0] == "the last iterate"
    assert mus[0][1] > mus[1][1]
