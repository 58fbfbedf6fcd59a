"""Runs of a few steps on a line, whose laws are known: of fixed size with and without a record, and weakly convex."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.errors import DpcalcError
from dpcalc.model.run import describe
from dpcalc.notions.guarantee import Gdp, compose
from dpcalc.theorems.record import for_algorithm
from dpcalc.theorems.sampled.hidden_past import Past, Plan
from dpcalc.theorems.sampled.sampled_hidden import HiddenRun
from tests.oracles import draws as cases
from tests.oracles import whole
from tests.theorems.test_hidden_past import Line, hockey_stick

Array = NDArray[np.float64]
POINTS = 801


class Slope(NamedTuple):
    """A gradient: a line through points, flat beyond them."""

    at: tuple[float, ...]
    values: tuple[float, ...]

    def __call__(self, v: Array) -> Array:
        return np.interp(v, self.at, self.values)


def gradient(r: random.Random, largest: float, least: float, steepest: float, width: float) -> Slope:
    """A gradient of norm at most ``largest`` with slopes from ``least`` to ``steepest``: flat, ramps, zigzags."""
    if r.random() < 0.4 or steepest == 0.0:
        return Slope((0.0,), (r.choice((-1.0, 1.0, 1.0)) * largest,))
    at, values = [r.uniform(-0.5, 0.1) * width], [r.choice((-largest, largest, r.uniform(-largest, largest)))]
    for _ in range(r.choice((1, 2, 5))):
        slope = r.choice((least, steepest, least, steepest, 0.0))
        way = r.choice((0.05, 0.3, 1.0)) * width
        end = largest if slope > 0.0 else -largest
        if slope:
            way = min(way, (end - values[-1]) / slope)
        at.append(at[-1] + max(way, 1e-9 * width))
        values.append(min(max(values[-1] + slope * way, -largest), largest))
    return Slope(tuple(at), tuple(values))


def both_ways(p: Array, q: Array, epsilon: float) -> float:
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))


def with_gaussian(law: Array, mean: float) -> Array:
    """The law of the last state and of what is seen of one normal variable: in which of many cells it is."""
    edges = np.concatenate(([-np.inf], np.linspace(-6.0, 6.0 + mean, 300), [np.inf]))
    cells: Array = np.multiply.outer(law, np.diff(ndtr(edges - mean)))
    return cells


# --- batches of fixed size, and of draws, with a record and without ---------------------------------------------------


def batches(sampling: str, n: int, size: int) -> list[tuple[int, ...]]:
    """All batches of n records, all of the same probability."""
    if sampling == "fixed":
        return list(itertools.combinations(range(n), size))
    return list(itertools.product(range(n), repeat=size))


def run_of_one_size(r: random.Random, sampling: str) -> tuple[dict[str, Any], int, list[Array]]:
    """Return a run, its steps, and its laws with all records and without the first; a use moves the sum by 1 or 2."""
    n = whole(r, 2, 5)
    size = whole(r, 1, n - 1) if sampling == "fixed" else whole(r, 1, 3)
    steps, noise = whole(r, 1, 4), r.choice((0.5, 1.0, 2.0, 4.0))
    weight = r.choice((0.0, 0.05, 0.3, 0.8))
    steepest = (2.0 - weight) / size * r.choice((0.0, 0.3, 1.0)) * r.choice((1.0, 0.5))
    width = r.choice((1.0, 3.0, math.inf, math.inf))
    half = 0.5 * width if math.isfinite(width) else steps * size + 7.0 * noise * math.sqrt(steps)
    line = Line(np.linspace(-half, half, POINTS))
    others = [gradient(r, 1.0, 0.0, steepest, half) for _ in range(n - 1)]
    if r.random() < 0.5:
        others = [Slope((0.0,), (-1.0,))] * (n - 1)
    own = Slope((0.0,), (1.0,)) if r.random() < 0.5 else gradient(r, 1.0, 0.0, steepest, half)
    laws = []
    for people in ([own, *others], others):
        every = batches(sampling, len(people), size)
        moved = [line.points * (1.0 - weight) - sum(people[i](line.points) for i in batch) for batch in every]
        step = sum(line.step(to, noise) for to in moved) / len(every)
        law = np.zeros(POINTS)
        law[POINTS // 2] = 1.0
        for _ in range(steps):
            law = law @ step
        laws.append(law)
    told = {
        "sampling": sampling, "records": n, "batch_size": size, "sample_rate": size / n, "steps": steps,
        "noise_multiplier": noise, "clip": float(size), "step_size": 1.0,
        "smoothness": min(2.0, max(weight + size * steepest, 1e-9)), "regularisation": weight,
        **({"diameter": width} if math.isfinite(width) else {}),
    }  # fmt: skip
    return told, steps, laws


@pytest.mark.few(1)
@pytest.mark.parametrize("sampling", ["fixed", "with-replacement"])
def test_nothing_is_below_a_run_with_one_record_more(sampling: str) -> None:
    """The batch stays as large: the smaller data set fills it with others, and ``records`` counts the larger one."""
    for r in cases(f"one record more {sampling}", 12, 400):
        told, steps, laws = run_of_one_size(r, sampling)
        for adjacency, (p, q) in {"remove": laws, "add": laws[::-1]}.items():
            run = HiddenRun(**told, adjacency=adjacency)
            proved = [run.all_composed]
            if steps > 1:
                composed = whole(r, 1, steps - 1)
                counted = r.choice((steps - composed, 0))
                plan = Plan(composed, whole(r, 1, composed), r.choice((0.1, 0.5, 0.9)), counted,
                            Past.SECRET if counted else None)  # fmt: skip
                proved.append(run.planned(plan))
            for epsilon, part in itertools.product((0.0, r.choice((0.1, 0.5, 1.5))), proved):
                truth, bound = hockey_stick(p, q, epsilon), math.exp(part.log_delta(epsilon).value)
                assert truth <= bound * (1.0 + 1e-3) + 1e-9, (told, adjacency, epsilon, truth, bound)


# --- losses that are only weakly convex -------------------------------------------------------------------------------


def weak_run(r: random.Random, algorithm: str) -> tuple[dict[str, Any], float, list[Array]]:
    """Return a run on losses of curvature from -m to beta, and the laws of its last state with x and with x'."""
    n, size = r.choice(((1, 1), (2, 1), (3, 1), (2, 2), (4, 2)))
    if algorithm == "noisy-gd":
        size = n
    epochs, sigma = whole(r, 1, 3), r.choice((0.3, 1.0, 3.0))
    eta, beta = r.choice((0.3, 1.0)), r.choice((0.2, 1.0, 2.5))
    weak, lipschitz = beta * r.choice((1e-3, 0.05, 0.3, 1.0)), r.choice((0.5, 1.0, 3.0))
    width = r.choice((1.0, 4.0, math.inf))
    steps = epochs * (n // size)
    half = 0.5 * width if math.isfinite(width) else (steps * lipschitz + 7.0 * sigma * math.sqrt(steps)) * eta
    line = Line(np.linspace(-half, half, POINTS))
    others = [gradient(r, lipschitz, -weak, beta, half) for _ in range(n - 1)]
    if r.random() < 0.5:  # the others push apart what the record moved
        others = [Slope((-lipschitz / weak, lipschitz / weak), (lipschitz, -lipschitz))] * (n - 1)
    place = r.randint(0, n - 1)
    laws = []
    for side in (1.0, -1.0):
        own = Slope((0.0,), (side * lipschitz,)) if r.random() < 0.7 else gradient(r, lipschitz, -weak, beta, half)
        people = [*others[:place], own, *others[place:]]
        made = [
            line.step(line.points - eta * sum(g(line.points) for g in people[s : s + size]) / size, eta * sigma)
            for s in range(0, n, size)
        ]
        law = np.zeros(POINTS)
        law[POINTS // 2] = 1.0
        if algorithm == "noisy-sgd":
            mean = sum(
                line.step(line.points - eta * sum(people[i](line.points) for i in batch) / size, eta * sigma)
                for batch in batches("fixed", n, size)
            ) / math.comb(n, size)
            made = [mean] * (n // size)
        for step in made * epochs:
            law = law @ step
        laws.append(law)
    told = {
        "records": n, "lipschitz": lipschitz, "smoothness": beta, "strong_convexity": -weak, "loss_class": "smooth",
        "step_size": eta, "noise_std": sigma, **({"diameter": width} if math.isfinite(width) else {}),
        **({} if algorithm == "noisy-gd" else {"batch_size": size}),
        **({"epochs": epochs, "index": place + 1} if algorithm == "cyclic" else {"steps": steps}),
    }  # fmt: skip
    return told, sigma, laws


@pytest.mark.few(1)
@pytest.mark.parametrize("algorithm", ["cyclic", "noisy-gd", "noisy-sgd"])
def test_nothing_is_below_a_run_on_weakly_convex_losses(algorithm: str) -> None:
    """Alone and together with one more Gaussian mechanism, in both orders."""
    asked = 0
    for r in cases(f"weakly convex runs {algorithm}", 12, 400):
        told, _, (p, q) = weak_run(r, algorithm)
        run = describe(algorithm, told)
        beside = r.choice((0.5, 1.0))
        for bound in for_algorithm(algorithm, run.algorithm.families):
            if not bound.guarantee or bound.obstacle(run) is not None or bound.unpromised(run):
                continue
            try:
                proved = guarantee_of(bound, run)
            except DpcalcError:
                continue
            asked += 1
            for epsilon in (0.0, r.choice((0.1, 0.5, 1.5))):
                truth, said = both_ways(p, q, epsilon), math.exp(proved.log_delta(epsilon).value)
                assert truth <= said * (1.0 + 1e-3) + 1e-9, (bound.id, told, epsilon, truth, said)
            if proved.has_pairs or proved.mu is not None:
                both = compose([(proved, 1), (Gdp(beside), 1)])
                truth = both_ways(with_gaussian(p, beside), with_gaussian(q, 0.0), 0.5)
                said = math.exp(both.log_delta(0.5).value)
                assert truth <= said * (1.0 + 1e-3) + 1e-9, (bound.id, told, beside, truth, said)
    assert asked
