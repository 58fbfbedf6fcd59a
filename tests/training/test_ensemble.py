"""Ensembles: every run is one that the reference would have taken, for any number of threads."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dpcalc.errors import SpecError
from dpcalc.model.loss import of
from dpcalc.training.run import ensemble, orders
from dpcalc.training.run.plan import plan
from tests.training.reference import Batches, Recorder, cut, floyd, loop, problem_of, run_of
from tests.training.test_single import ETA, PASSES, SIGMA, settings

N, D, R = 13, 3, 7
ALGORITHMS = [
    ("pnsgd", 1, "own"), ("pnsgd", 5, "own"), ("skip", 1, "own"), ("stop", 1, "own"), ("shuffled-stop", 1, "own"),
    ("shuffled", 1, "own"), ("shuffled", 4, "nominal"), ("shuffled", 4, "drop"), ("rotation", 1, "own"),
    ("rotation", 5, "own"), ("rotation-epochs", 5, "own"), ("online", 1, "own"), ("cyclic", 4, "own"),
    ("cyclic-released", 4, "own"),
    ("shuffle-once", 4, "own"), ("shuffled-epochs", 1, "own"), ("shuffled-epochs", 5, "own"), ("noisy-gd", None, "own"),
    ("noisy-sgd", 1, "own"), ("noisy-sgd", 4, "own"), ("noisy-sgd", 9, "own"), ("dp-sgd-gradient", 4, "own"),
    ("dp-sgd-output", 1, "own"), ("local", 1, "own"),
]  # fmt: skip
LOSSES = [
    of("logistic", feature_bound=1.0, radius=0.6, regularisation=0.3),
    of("squares", feature_bound=1.0, label_bound=1.0, radius=0.9),
    of("hinge", feature_bound=1.0, power=1.5, radius=0.8),
]


def taken(algorithm: str, recorder: Recorder, run: int, batch: int, last: str) -> Batches:
    """Return the batches of one run that follow from what was drawn for it."""
    permuted, integers = recorder.drawn("permuted"), recorder.drawn("integers")
    if algorithm in ("pnsgd", "online", "local"):
        return cut(range(N), batch)
    if algorithm == "skip":
        return cut(range(N), 1)[int(integers[0][run]) :]
    if algorithm == "stop":
        return cut(range(N), 1)[: int(integers[0][run])]
    if algorithm == "shuffled-stop":
        return cut(permuted[0][run], 1)[: int(integers[0][run])]
    if algorithm.startswith("rotation"):
        first = int(integers[0][run])
        return (1 if algorithm == "rotation" else PASSES) * cut([*range(first, N), *range(first)], batch, last)
    if algorithm.startswith("cyclic"):
        return PASSES * cut(range(N), batch)
    if algorithm.startswith("noisy-gd"):
        return [(np.arange(N), N)] * 9
    if algorithm == "shuffle-once":
        assert len(permuted) == 1
        return PASSES * cut(permuted[0][run], batch, last)
    if algorithm.startswith("shuffled"):
        return [step for order in permuted for step in cut(order[run], batch, last)]
    if algorithm == "dp-sgd-output" or batch == 1:
        return [(drawn[:, run], 1) for drawn in integers]
    if batch > N // 2:
        return [(order[run, :batch], batch) for order in permuted]
    return [(rows, batch) for rows in floyd(integers, run, N, batch)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize(("algorithm", "batch", "last"), ALGORITHMS)
def test_every_run_is_the_reference(
    algorithm: str, batch: int | None, last: str, loss: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(11)
    monkeypatch.setattr(ensemble, "_generator", lambda *_: recorder)
    problem = problem_of(loss, N, D)
    run = run_of(algorithm, loss, N, **settings(algorithm, batch, last))
    planned = plan(run, N, D)
    weights = ensemble.train(planned, problem, R, 1, workers=1)
    on_output = algorithm == "dp-sgd-output"
    drawn = np.zeros((9, D, R))
    if not on_output:
        drawn = -np.concatenate([noise.reshape(-1, D, R) for noise in recorder.noise])  # an ensemble adds its noise
    radius = min(loss.radius, 0.7) if algorithm == "online" else loss.radius
    for k in range(R):
        steps = taken(algorithm, recorder, k, batch or N, last)
        skipped = N - len(steps) if algorithm == "skip" else 0
        noise = drawn[skipped : skipped + len(steps), :, k]
        scale = planned.scale if algorithm == "online" else 0.0 if on_output else SIGMA
        reached = loop(loss, *problem[:2], steps, ETA, scale, noise, radius, np.zeros(D))
        expected = np.mean(reached[:-1], axis=0) if algorithm.startswith("dp-sgd") else reached[-1]
        if on_output:
            expected = expected + SIGMA * recorder.noise[-1][k]
        np.testing.assert_allclose(weights[k], expected, rtol=0.0, atol=2e-11)


@pytest.mark.parametrize("algorithm", ["pnsgd", "shuffled", "noisy-sgd"])
def test_threads_do_not_change_the_numbers(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble, "_ENTRIES", 64 * D)
    loss = LOSSES[0]
    problem = problem_of(loss, N, D)
    planned = plan(run_of(algorithm, loss, N, **settings(algorithm, 1, "own")), N, D)
    edges = ensemble._edges(planned, 500)
    assert len(edges) > 5
    assert (edges[0], edges[-1]) == (0, 500)
    assert max(np.diff(edges)) - min(np.diff(edges)) <= 1
    first = ensemble.train(planned, problem, 500, 9, workers=1)
    for workers in (2, 5, None):
        again = ensemble.train(planned, problem, 500, 9, workers=workers)
        np.testing.assert_array_equal(again, first)
    assert len(np.unique(first[:, 0])) == 500  # no two blocks draw the same
    assert np.all(ensemble.train(planned, problem, 500, 10) != first)


def test_a_statistic_is_taken_of_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble, "_ENTRIES", 64 * D)
    loss = LOSSES[1]
    problem = problem_of(loss, N, D)
    planned = plan(run_of("pnsgd", loss, N, **settings("pnsgd", 1, "own")), N, D)
    weights = ensemble.train(planned, problem, 300, 2)
    norms = ensemble.train(planned, problem, 300, 2, statistic=lambda w: np.linalg.norm(w, axis=1))
    np.testing.assert_array_equal(norms, np.linalg.norm(weights, axis=1))


@pytest.mark.parametrize("algorithm", ["pnsgd", "stop"])
def test_progress_counts_every_step(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble, "_ENTRIES", 64 * D)
    monkeypatch.setattr(ensemble, "_BEATS", 64 * D * 2)
    loss = LOSSES[1]
    problem = problem_of(loss, N, D)
    planned = plan(run_of(algorithm, loss, N, **settings(algorithm, 1, "own")), N, D)
    reports: list[tuple[int, int]] = []
    ensemble.train(planned, problem, 300, 2, workers=2, progress=lambda *now: reports.append(now))
    done = [now for now, _ in reports]
    assert done == sorted(done)
    assert reports[-1] == (300 * N, 300 * N)
    assert len(reports) > 8


def test_a_failure_ends_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble, "_ENTRIES", 64 * D)
    loss = LOSSES[1]
    problem = problem_of(loss, N, D)
    planned = plan(run_of("pnsgd", loss, N, **settings("pnsgd", 1, "own")), N, D)
    asked: list[int] = []

    def fail(weights: np.ndarray) -> np.ndarray:
        asked.append(len(weights))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ensemble.train(planned, problem, 6400, 2, workers=2, statistic=fail)
    assert len(asked) <= 2  # one per thread


def test_without_a_seed_no_two_are_alike() -> None:
    loss = LOSSES[1]
    problem = problem_of(loss, N, D)
    planned = plan(run_of("pnsgd", loss, N, **settings("pnsgd", 1, "own")), N, D)
    assert np.all(ensemble.train(planned, problem, 5) != ensemble.train(planned, problem, 5))


def test_one_blas_thread_is_asked_for_before_numpy_loads() -> None:
    code = (
        "import os; from dpcalc.training import one_blas_thread as ask; early = ask();"
        "import numpy; print(early, ask(), os.environ['OPENBLAS_NUM_THREADS'])"
    )
    for chosen, kept in ((None, "1"), ("3", "3")):
        environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
        environment.update({} if chosen is None else {"OPENBLAS_NUM_THREADS": chosen})
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["True", "False", kept]


def test_no_runs_are_refused() -> None:
    loss = LOSSES[1]
    planned = plan(run_of("pnsgd", loss, N, **settings("pnsgd", 1, "own")), N, D)
    with pytest.raises(SpecError, match="0 runs"):
        ensemble.train(planned, problem_of(loss, N, D), 0)
    with pytest.raises(SpecError, match="seed is -1"):
        ensemble.train(planned, problem_of(loss, N, D), 1, -1)


@pytest.mark.parametrize(("records", "size"), [(5, 1), (6, 2), (7, 3), (5, 4), (4, 4)])
def test_subsets_are_uniform(records: int, size: int) -> None:
    from itertools import combinations

    from scipy.stats import chisquare

    count = 40_000
    drawn = orders.subsets(np.random.Generator(np.random.SFC64(6)), records, size, count)
    assert drawn.shape == (size, count)
    keys, seen = np.unique(np.sort(drawn, axis=0), axis=1, return_counts=True)
    expected = np.array(list(combinations(range(records), size))).T
    np.testing.assert_array_equal(keys, expected)
    if len(seen) > 1:
        assert chisquare(seen).pvalue > 1e-6
