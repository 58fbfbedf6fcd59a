"""The law of what is released, against closed forms: on losses with affine gradients it is a mixture of Gaussians.

Each component belongs to one choice of skipped prefix, stop, orders or samples; its mean and covariance follow from the
affine maps of its steps. Seeds are fixed, and a test fails where a true law would be refused once in a million times.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import special, stats

from dpcalc.model.algorithm import ALGORITHMS, Length
from dpcalc.model.loss import Loss, of
from dpcalc.training.run import ensemble
from dpcalc.training.run.plan import plan
from dpcalc.training.run.problem import Problem
from tests.training.reference import Batches, cut, data, run_of

COUNT = 100_000
LEAST = 1e-6
FAR = 4.9  # standard errors: once in a million
ETA, SIGMA, WEIGHT = 0.6, 0.7, 0.25
D = 2

QUADRATIC = of("squares", feature_bound=1.0, label_bound=1.0, radius=1e6, regularisation=WEIGHT)
LINEAR = of("absolute", feature_bound=1.0, label_bound=1e3)  # no iterate comes near the labels: its slope is their sign


class Law(NamedTuple):
    """A mixture of Gaussians."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def cdf(self, direction: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        middle = self.means @ direction
        spread = np.sqrt(np.einsum("i,kij,j->k", direction, self.covariances, direction))

        def value(x: np.ndarray) -> np.ndarray:
            total = np.zeros_like(x)
            for weight, m, s in zip(self.weights, middle, spread, strict=True):
                total += weight * special.ndtr((x - m) / s)
            return total

        return value


def component(
    loss: Loss, x: np.ndarray, y: np.ndarray, batches: Batches, scales: Any, *, average: bool = False,
    output: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return mean and covariance after these steps from 0; of the average of w_0 .. w_{T-1}, if asked."""
    scales = np.broadcast_to(scales, len(batches))
    mean, sources = np.zeros(D), []  # w_t = mean + sum of sources @ Z
    total, summed = np.zeros(D), [np.zeros((D, D)) for _ in batches]
    for t, (rows, divisor) in enumerate(batches):
        if average:
            total = total + mean / len(batches)
            for s, matrix in enumerate(sources):
                summed[s] = summed[s] + matrix / len(batches)
        share = ETA / divisor
        map_ = np.eye(D) * (1.0 - share * len(rows) * loss.regularisation)
        shift = np.zeros(D)
        for i in rows:
            if loss.name == "squares":
                map_ = map_ - share * np.outer(x[i], x[i])
                shift = shift + share * y[i] * x[i]
            else:
                shift = shift + share * np.sign(y[i]) * x[i]
        mean = map_ @ mean + shift
        sources = [map_ @ matrix for matrix in sources] + [ETA * scales[t] * np.eye(D)]
    if average:
        mean, sources = total, summed
    covariance = sum((matrix @ matrix.T for matrix in sources), output**2 * np.eye(D))
    return mean, covariance


def choices(algorithm: str, n: int, batch: int, last: str, count: int) -> list[Batches]:
    """Return all that may be drawn, each as likely as the others."""
    orders = [list(order) for order in itertools.permutations(range(n))]
    given = list(range(n))
    if algorithm in ("pnsgd", "online", "local"):
        return [cut(given, batch, last)]
    if algorithm == "skip":
        return [cut(given, 1)[k:] for k in range(n // 2 + 1)]
    if algorithm == "stop":
        return [cut(given, 1)[:k] for k in range(1, n + 1)]
    if algorithm == "shuffled":
        return [cut(order, batch, last) for order in orders]
    if algorithm == "rotation":
        return [cut(given[k:] + given[:k], batch, last) for k in range(n)]
    if algorithm == "shuffled-stop":
        return [cut(order, 1)[:k] for order in orders for k in range(1, n + 1)]
    if algorithm == "rotation-epochs":
        return [count * cut(given[k:] + given[:k], batch, last) for k in range(n)]
    if algorithm == "cyclic":
        return [count * cut(given, batch, last)]
    if algorithm == "shuffle-once":
        return [count * cut(order, batch, last) for order in orders]
    if algorithm == "shuffled-epochs":
        return [
            [step for order in several for step in cut(order, batch, last)]
            for several in itertools.product(orders, repeat=count)
        ]
    if algorithm == "noisy-gd":
        return [[(np.arange(n), n)] * count]
    subsets = [np.array(rows) for rows in itertools.combinations(range(n), batch)]
    return [[(rows, batch) for rows in several] for several in itertools.product(subsets, repeat=count)]


CASES = [
    ("pnsgd", 5, 1, "own", 1), ("pnsgd", 5, 2, "own", 1), ("skip", 5, 1, "own", 1), ("stop", 5, 1, "own", 1),
    ("shuffled", 4, 1, "own", 1), ("shuffled", 5, 2, "nominal", 1), ("shuffled", 5, 2, "drop", 1),
    ("rotation", 5, 2, "own", 1),
    ("shuffled", 5, 2, "balanced", 1), ("rotation", 5, 3, "front", 1), ("cyclic", 5, 3, "balanced", 2),
    ("shuffled-stop", 4, 1, "own", 1), ("local", 4, 1, "own", 1),
    ("cyclic", 5, 2, "own", 3), ("shuffle-once", 4, 1, "own", 3), ("shuffle-once", 4, 3, "own", 2),
    ("rotation-epochs", 5, 1, "own", 3), ("rotation-epochs", 5, 2, "own", 2), ("rotation-epochs", 5, 2, "drop", 2),
    ("shuffled-epochs", 3, 1, "own", 2), ("shuffled-epochs", 3, 2, "nominal", 2), ("noisy-gd", 5, 5, "own", 4),
    ("noisy-sgd", 4, 2, "own", 3), ("noisy-sgd", 4, 3, "own", 3), ("dp-sgd-gradient", 4, 2, "own", 3),
    ("dp-sgd-output", 3, 1, "own", 4),
]  # fmt: skip


ALTERNATELY: tuple[tuple[Any, Any], ...] = (((), pytest.mark.campaign), (pytest.mark.campaign, ()))
"""Every case has one of two losses in every run of the tests, and the other in a campaign."""


def given_for(algorithm: str, batch: int, last: str, count: int) -> dict[str, Any]:
    given: dict[str, Any] = {"step_size": ETA, "noise_std": SIGMA}
    if batch > 1 and algorithm != "noisy-gd":
        given["batch_size"] = batch
    if last != "own":
        given["last_batch"] = last
    if ALGORITHMS[algorithm].length is Length.PASSES:
        given["epochs"] = count
    if algorithm.startswith(("noisy", "dp-sgd")):
        given["steps"] = count
    return given


def law_of(algorithm: str, loss: Loss, x: np.ndarray, y: np.ndarray, steps: list[Batches], scale: Any = SIGMA) -> Law:
    on_output = algorithm == "dp-sgd-output"
    parts = [
        component(
            loss, x, y, batches, 0.0 if on_output else scale, average=algorithm.startswith("dp-sgd"),
            output=SIGMA if on_output else 0.0,
        )
        for batches in steps
    ]  # fmt: skip
    return Law(np.full(len(parts), 1.0 / len(parts)), np.array([m for m, _ in parts]), np.array([c for _, c in parts]))


def data_for(loss: Loss, n: int) -> Problem:
    x, y = data(n, D, 2, signed=False)
    if loss.name == "absolute":
        y = 1e3 * np.where(y > 0.0, 1.0, -1.0)
    return Problem(x, y, loss)


def check(ends: np.ndarray, law: Law) -> None:
    """Compare mean, covariance and, along three directions, the distribution function."""
    assert ends.shape == (COUNT, D)
    mean = law.weights @ law.means
    apart = law.means - mean
    covariance = np.einsum("k,kij->ij", law.weights, law.covariances) + np.einsum(
        "k,ki,kj->ij", law.weights, apart, apart
    )
    off = (ends.mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / COUNT)
    assert np.all(np.abs(off) < FAR)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        product = (ends[:, i] - mean[i]) * (ends[:, j] - mean[j])
        assert abs(product.mean() - covariance[i, j]) < FAR * product.std() / math.sqrt(COUNT)
    for direction in (np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.6, -0.8])):
        assert stats.kstest(ends @ direction, law.cdf(direction)).pvalue > LEAST


@pytest.mark.few(9)
@pytest.mark.parametrize(
    ("algorithm", "n", "batch", "last", "count", "loss"),
    [
        pytest.param(*case, loss, id=f"{'-'.join(map(str, case))}-{loss.name}", marks=left)
        for at, case in enumerate(CASES)
        for loss, left in zip((QUADRATIC, LINEAR), ALTERNATELY[at % 2], strict=True)
    ],
)
def test_the_law_is_the_closed_form(algorithm: str, n: int, batch: int, last: str, count: int, loss: Loss) -> None:
    problem = data_for(loss, n)
    run = run_of(algorithm, loss, n, **given_for(algorithm, batch, last, count))
    weights = ensemble.train(plan(run, n, D), problem, COUNT, 20)
    steps = choices(algorithm, n, batch, last, count)
    if algorithm == "dp-sgd-output":
        steps = [[(np.array([i]), 1) for i in drawn] for drawn in itertools.product(range(n), repeat=count)]
    check(weights, law_of(algorithm, loss, problem.features, problem.labels, steps))


@pytest.mark.parametrize("loss", [QUADRATIC, LINEAR], ids=["quadratic", "linear"])
def test_the_law_of_a_stream_has_the_noise_of_every_record(loss: Loss) -> None:
    n, c1, c2, power, diameter = 5, 1e-100, 1.5, 1.7, 20.0  # so much shorter than the diameter that nothing is moved
    problem = data_for(loss, n)
    run = run_of(
        "online", loss, n, step_size=ETA, c1=c1, c2=c2, decay_exponent=power, diameter=diameter, radius=1e6,
        noise="gaussian", displacement=1.5,
    )  # fmt: skip
    planned = plan(run, n, D)
    x = np.arange(1.0, n + 1.0) ** power
    scales = 1.5 * diameter / (2.0 * ETA * np.sqrt(special.lambertw(x**2 / (2.0 * np.pi * c1**2) + c2).real))
    weights = ensemble.train(planned, problem, COUNT, 21)
    check(weights, law_of("online", loss, problem.features, problem.labels, [cut(range(n), 1)], scales))


def test_laplace_noise_in_one_dimension() -> None:
    scale = 0.4
    x, y = np.array([[1.0]]), np.array([0.5])
    loss = of("squares", feature_bound=1.0, label_bound=1.0, radius=1e6)
    planned = plan(run_of("noisy-gd", loss, 1, steps=1, step_size=ETA, laplace_scale=scale), 1, 1)
    once = ensemble.train(planned, Problem(x, y, loss), COUNT, 23)[:, 0]
    assert stats.kstest(once, stats.laplace(ETA * 0.5, ETA * scale).cdf).pvalue > LEAST
    # After many steps: each variable's part fades by 1 - eta a step; cumulants add.
    steps, kept = 3, 1.0 - ETA
    planned = plan(run_of("noisy-gd", loss, 1, steps=steps, step_size=ETA, laplace_scale=scale), 1, 1)
    ends = ensemble.train(planned, Problem(x, y, loss), COUNT, 24)[:, 0]
    centred = ends - 0.5 * (1.0 - kept**steps)
    variance = 2.0 * (ETA * scale) ** 2 * sum(kept ** (2 * k) for k in range(steps))
    fourth = 3.0 * variance**2 + 12.0 * (ETA * scale) ** 4 * sum(kept ** (4 * k) for k in range(steps))
    for power, moment in ((1, 0.0), (2, variance), (4, fourth)):
        sample = centred**power
        assert abs(sample.mean() - moment) < FAR * sample.std() / math.sqrt(COUNT)


def test_projection_has_the_law_of_a_projection() -> None:
    """One step from 0 of a constant gradient 0: N(0, s^2 I), moved onto a ball or an interval."""
    radius, spread = 0.5, ETA * SIGMA
    x, y = np.zeros((1, D)), np.array([1.0])
    loss = of("logistic", feature_bound=1.0)
    run = run_of("noisy-gd", loss, 1, steps=1, step_size=ETA, noise_std=SIGMA, radius=radius)
    norms = np.linalg.norm(ensemble.train(plan(run, 1, D), Problem(x, y, loss), COUNT, 25), axis=1)
    at_border = norms > radius * (1.0 - 1e-11)
    assert np.all(norms <= radius)
    chance = math.exp(-0.5 * (radius / spread) ** 2)
    assert stats.binomtest(int(at_border.sum()), COUNT, chance).pvalue > LEAST
    inside = stats.kstest(norms[~at_border], lambda r: -np.expm1(-0.5 * (r / spread) ** 2) / (1.0 - chance))
    assert inside.pvalue > LEAST
    ends = ensemble.train(plan(run, 1, 1), Problem(x[:, :1], y, loss), COUNT, 26)[:, 0]
    for sign in (-1.0, 1.0):
        at_end = np.abs(sign * ends - radius) <= 1e-11
        assert stats.binomtest(int(at_end.sum()), COUNT, special.ndtr(-radius / spread)).pvalue > LEAST
