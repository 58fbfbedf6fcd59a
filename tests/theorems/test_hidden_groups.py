"""Groups of records in runs whose batches are hidden: clipped convex losses on a line, every batch counted."""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.run import describe
from dpcalc.theorems.record import lookup
from dpcalc.theorems.sampled.hidden_past import Plan
from dpcalc.theorems.sampled.sampled_hidden import HiddenRun, hidden
from tests.oracles import draws as cases
from tests.oracles import whole
from tests.theorems.test_hidden_past import Line, hockey_stick

Array = NDArray[np.float64]
Gradient = Callable[[Array], Array]
POINTS = 401
NONE: Gradient = lambda v: 0.0 * v  # noqa: E731


class Case(NamedTuple):
    """A run with batches of b of n records, of which the last ``size`` differ; lengths in units of eta C/b."""

    told: dict[str, Any]
    start: Array
    step: Callable[[Sequence[Gradient]], Array]

    def last(self, data: Sequence[Gradient]) -> Array:
        """Return the law of the last iterate on these records."""
        ways, law, steps = self.batches(len(data)), self.start, self.told["steps"]
        made = {batch: self.step([data[i] for i in batch]) for batch in {b for _, way in ways for b in way}}
        for _ in range(steps // len(ways[0][1])):
            law = np.sum([mass * _through(law, [made[batch] for batch in way]) for mass, way in ways], axis=0)
        return law

    def batches(self, n: int) -> list[tuple[float, tuple[tuple[int, ...], ...]]]:
        """Return the batches of a step, or of an epoch of balls in bins, and their probabilities."""
        b, rate, records = self.told["batch_size"], self.told["sample_rate"], range(n)
        match self.told["sampling"]:
            case "poisson":
                some = [batch for size in range(n + 1) for batch in itertools.combinations(records, size)]
                return [(rate ** len(batch) * (1.0 - rate) ** (n - len(batch)), (batch,)) for batch in some]
            case "fixed":
                return [(1.0 / math.comb(n, b), (batch,)) for batch in itertools.combinations(records, b)]
            case "with-replacement":
                return [(n**-b, (tuple(sorted(drawn)),)) for drawn in itertools.product(records, repeat=b)]
        bins = -(-self.told["records"] // b)
        return [
            (bins**-n, tuple(tuple(i for i in records if place[i] == t) for t in range(bins)))
            for place in itertools.product(range(bins), repeat=n)
        ]


def _through(law: Array, matrices: Sequence[Array]) -> Array:
    for matrix in matrices:
        law = law @ matrix
    return law


def gradient(r: random.Random, beta: float, width: float) -> Gradient:
    """One that grows by beta at most, between -1 and 1: constant, or a ramp between walls."""
    side, at = r.choice((1.0, -1.0)), r.uniform(-0.5, 0.5) * width
    return r.choice((lambda v: side + 0.0 * v, lambda v: np.clip(beta * (v - at), -1.0, 1.0)))


def small(r: random.Random, sampling: str, adjacency: str, size: int) -> Case:
    n = whole(r, size + 1, size + 2)
    b = whole(r, 1, n - size if sampling == "fixed" else min(2, n - 1))
    period = -(-n // b) if sampling == "balls-in-bins" else 1
    steps = period * whole(r, 2, max(2, 5 // period))
    noise, shrunk = r.choice((0.5, 0.8, 1.5, 3.0)), r.choice((0.0, 0.1, 0.4))
    curved = r.choice((0.05, 0.5, 2.0 - 2.0 * shrunk))  # of a record; the least K and the largest
    whole_beta = curved + (shrunk if sampling in ("fixed", "with-replacement") else 0.0)
    reach = r.choice((0.5, 2.0, math.inf))
    half = 0.5 * reach if math.isfinite(reach) else steps * n + 7.0 * noise * math.sqrt(steps)
    line = Line(np.linspace(-half, half, POINTS))

    def step(batch: Sequence[Gradient]) -> Array:
        return line.step((1.0 - shrunk) * line.points - sum((g(line.points) for g in batch), NONE(line.points)), noise)

    start = np.zeros(POINTS)
    start[POINTS // 2 + r.randint(-100, 100)] = 1.0
    told = {
        "sampling": sampling, "adjacency": adjacency, "records": n, "batch_size": b, "sample_rate": b / n,
        "steps": steps, "noise_multiplier": noise, "step_size": float(b), "smoothness": min(2.0, whole_beta) / b,
        "regularisation": shrunk / b, "clip": 1.0, **({"diameter": reach} if math.isfinite(reach) else {}),
        "group_size": size,
    }  # fmt: skip
    return Case(told, start, step)


def plans(r: random.Random, case: Case, run: HiddenRun) -> Plan:
    composed = whole(r, 1, case.told["steps"] - 1)
    past = r.choice([search.past for search in run.searches])
    counted = r.choice((0, case.told["steps"] - composed))
    if counted and "diameter" in case.told:
        counted = whole(r, 1, counted)
    return Plan(composed, whole(r, 1, composed), r.choice((0.05, 0.3, 0.8)), counted, past if counted else None)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "adjacency", ["add", "remove", "replace-one", pytest.param("null-record", marks=pytest.mark.campaign)]
)
@pytest.mark.parametrize("sampling", ["poisson", "fixed", "with-replacement", "balls-in-bins"])
def test_no_group_of_a_small_run_tells_more(sampling: str, adjacency: str) -> None:
    for r in cases(f"hidden groups {sampling} {adjacency}", 2, 200):
        size = whole(r, 1, 2 if sampling == "with-replacement" else 3)
        case = small(r, sampling, adjacency, size)
        beta = case.told["smoothness"] - (
            case.told["regularisation"] if sampling in ("fixed", "with-replacement") else 0.0
        )
        width, up = 2.0, r.random() < 0.5
        others = [gradient(r, beta, width) for _ in range(case.told["records"] - size)]
        group, second = ([gradient(r, beta, width) for _ in range(size)] for _ in range(2))
        if up:
            group, second = [lambda v: 1.0 + 0.0 * v] * size, [lambda v: -1.0 + 0.0 * v] * size
        instead = {"replace-one": second, "null-record": [NONE] * size}.get(adjacency, [])
        p, q = case.last([*others, *group]), case.last([*others, *instead])
        if adjacency == "add":
            p, q = q, p
        run = HiddenRun(**case.told)
        found = [hidden(run)]
        if sampling != "balls-in-bins":
            found.append(run.planned(plans(r, case, run)))
        for bound, epsilon in itertools.product(found, (0.0, r.choice((0.2, 1.0)))):
            truth, most = hockey_stick(p, q, epsilon), math.exp(bound.log_delta(epsilon).value)
            assert truth <= most * (1.0 + 1e-3) + 1e-9, (case.told, epsilon, truth, most)


def test_a_group_is_its_own_pair_and_no_chain() -> None:
    """Fixed batches: 8 records replaced by a chain of 8 pay 17 % more; the orders of remove and add have no chain."""
    told = {
        "records": 60000, "batch_size": 256, "steps": 20000, "lipschitz": 1.0, "smoothness": 1.0,
        "strong_convexity": 0.1, "step_size": 0.5, "noise_std": 0.02,
    }  # fmt: skip
    whole_group, one = (
        guarantee_of(lookup("noisy_sgd.hidden"), describe("noisy-sgd", {**told, "group_size": size})) for size in (8, 1)
    )
    log_delta = math.log(1e-6)
    chain = one.grouped(8).epsilon(log_delta).value
    assert 8.0 * one.epsilon(log_delta).value < whole_group.epsilon(log_delta).value < 0.9 * chain
