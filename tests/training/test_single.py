"""One run, against the reference: what is executed is what was accounted."""

from typing import Any

import numpy as np
import pytest

from dpcalc.errors import MissingParameter, SpecError
from dpcalc.model.algorithm import ALGORITHMS, Length
from dpcalc.model.loss import Loss, of
from dpcalc.training.run import single as engine
from dpcalc.training.run.checks import starting_point
from dpcalc.training.run.domain import Ball
from dpcalc.training.run.kernel import Source, seeded
from dpcalc.training.run.plan import plan
from dpcalc.training.run.problem import Problem
from tests.training.reference import Batches, Recorder, cut, data, floyd, loop, problem_of, run_of

LOSSES = [
    of("logistic", feature_bound=1.0),
    of("logistic", feature_bound=1.0, radius=0.7, regularisation=0.3),
    of("hinge", feature_bound=1.0, power=1.0),
    of("hinge", feature_bound=1.0, power=1.4, radius=2.0),
    of("hinge", feature_bound=1.0, power=2.0, radius=2.0),
    of("absolute", feature_bound=1.0, label_bound=1.0),
    of("absolute", feature_bound=1.0, label_bound=1.0, power=1.7, radius=2.0),
    of("insensitive", feature_bound=1.0, label_bound=1.0, tube=0.2, power=1.5, radius=2.0),
    of("huber", feature_bound=1.0, label_bound=1.0, huber_threshold=0.4),
    of("squares", feature_bound=1.0, label_bound=1.0, radius=0.8, regularisation=0.2),
]
N, D = 23, 3
SIGMA, ETA = 0.8, 0.3
PASSES = 3


def executed(run: Any, problem: Problem, seed: int = 5, **given: Any) -> tuple[engine.Trained, Recorder]:
    recorder = Recorder(seed)
    trained = engine.train(plan(run, *problem.shape), problem, Source(recorder, False, ""), **given)  # type: ignore[arg-type]
    return trained, recorder


def noise_of(recorder: Recorder, columns: int) -> np.ndarray:
    return np.concatenate([drawn.reshape(-1, columns) for drawn in recorder.noise])


def described(algorithm: str, recorder: Recorder, batch: int, last: str) -> Batches:
    """Return the batches that the algorithm's description asks for, given what was drawn."""
    permutations, integers = recorder.drawn("permutation"), recorder.drawn("integers")
    data_order = range(N)
    if algorithm in ("pnsgd", "local", "online"):
        return cut(data_order, batch, last)
    if algorithm == "skip":
        assert 0 <= integers[0] <= N // 2
        return cut(data_order, 1)[int(integers[0][0]) :]
    if algorithm == "stop":
        assert 1 <= integers[0] <= N
        return cut(data_order, 1)[: int(integers[0][0])]
    if algorithm == "shuffled-stop":
        return cut(permutations[0], 1)[: int(integers[0][0])]
    if algorithm == "shuffled":
        return cut(permutations[0], batch, last)
    if algorithm.startswith("rotation"):
        assert len(integers) == 1
        first = int(integers[0])
        return (1 if algorithm == "rotation" else PASSES) * cut([*range(first, N), *range(first)], batch, last)
    if algorithm.startswith("cyclic"):
        return PASSES * cut(data_order, batch, last)
    if algorithm.startswith("shuffle-once"):
        assert len(permutations) == 1
        return PASSES * cut(permutations[0], batch, last)
    if algorithm.startswith("shuffled-epochs"):
        assert len(permutations) == PASSES
        return [step for order in permutations for step in cut(order, batch, last)]
    if algorithm.startswith("noisy-gd"):
        return [(np.arange(N), N)] * 9
    if algorithm == "dp-sgd-output":
        return [(row, 1) for row in np.concatenate(integers)]
    return [(rows, batch) for step in range(9) for rows in floyd(integers, step, N, batch)]


CASES = [
    ("pnsgd", 1, "own"), ("pnsgd", 5, "own"), ("local", 4, "own"), ("skip", 1, "own"), ("stop", 1, "own"),
    ("shuffled-stop", 1, "own"), ("shuffled", 1, "own"), ("shuffled", 4, "own"), ("shuffled", 4, "nominal"),
    ("shuffled", 4, "drop"), ("shuffled", 30, "nominal"), ("rotation", 1, "own"), ("rotation", 5, "own"),
    ("rotation-epochs", 1, "own"), ("rotation-epochs", 6, "nominal"), ("rotation-epochs-released", 5, "own"),
    ("online", 1, "own"), ("cyclic", 1, "own"), ("cyclic", 6, "own"), ("cyclic-released", 6, "own"),
    ("shuffle-once", 6, "nominal"), ("shuffle-once-released", 1, "own"), ("shuffled-epochs", 1, "own"),
    ("shuffled-epochs", 6, "drop"), ("shuffled-epochs", 11, "own"), ("shuffled-epochs-released", 6, "own"),
    ("pnsgd", 5, "balanced"), ("cyclic", 6, "front"), ("cyclic-released", 6, "balanced"), ("rotation", 5, "balanced"),
    ("shuffled", 4, "front"), ("shuffle-once", 6, "balanced"), ("shuffled-epochs", 6, "balanced"),
    ("noisy-gd", None, "own"), ("noisy-gd-released", None, "own"), ("noisy-sgd", 4, "own"),
    ("noisy-sgd-released", 4, "own"), ("dp-sgd-gradient", 4, "own"), ("dp-sgd-output", 1, "own"),
]  # fmt: skip


def settings(algorithm: str, batch: int | None, last: str) -> dict[str, Any]:
    given: dict[str, Any] = {"step_size": ETA, "noise_std": SIGMA}
    if batch not in (None, 1):
        given["batch_size"] = batch
    if last != "own":
        given["last_batch"] = last
    if ALGORITHMS[algorithm].length is Length.PASSES:
        given["epochs"] = PASSES
    elif algorithm.startswith(("noisy", "dp-sgd")):
        given["steps"] = 9
    if algorithm == "online":
        del given["noise_std"]
        given.update(c1=2.0, c2=1.5, decay_exponent=1.5, diameter=1.4)
    return given


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize(("algorithm", "batch", "last"), CASES)
def test_executed_steps_are_those_accounted(algorithm: str, batch: int | None, last: str, loss: Loss) -> None:
    problem = problem_of(loss, N, D)
    radius = loss.radius or 0.7
    if algorithm == "online":
        radius = min(radius, 0.7)  # half the diameter
    run = run_of(algorithm, loss, N, **{"radius": loss.radius or 0.7, **settings(algorithm, batch, last)})
    trained, recorder = executed(run, problem)
    steps = described(algorithm, recorder, batch or N, last)
    noise = noise_of(recorder, D)
    on_output = algorithm == "dp-sgd-output"
    scale: Any = SIGMA
    if algorithm == "online":
        from dpcalc.theorems.contraction.stream_noise import Stream

        accounted = np.array([s for _, s in Stream.of(run).scales(1, N)])
        scale = plan(run, N, D).scale
        assert np.all(scale >= accounted)
        assert np.all(scale <= accounted * (1.0 + 1e-14))
        assert np.all(np.diff(scale) < 0.0)
    assert noise.shape == ((1 if on_output else len(steps)), D)
    drawn = np.zeros((len(steps), D)) if on_output else noise
    reached = loop(loss, problem.features, problem.labels, steps, ETA, scale, drawn, radius, np.zeros(D))
    released = np.array(_released(algorithm, reached, len(cut(range(N), batch or N, last))))
    if on_output:
        released = released + SIGMA * noise[-1]
    # A ball is projected onto with a part of 1e-12 to spare.
    np.testing.assert_allclose(trained.released, released, rtol=0.0, atol=2e-11)
    np.testing.assert_array_equal(trained.weights, trained.released[-1])


def _released(algorithm: str, reached: list[np.ndarray], per_pass: int) -> list[np.ndarray]:
    if algorithm.startswith("dp-sgd"):
        return [np.mean(reached[:-1], axis=0)]
    if algorithm in ("local", "noisy-gd-released", "noisy-sgd-released"):
        return reached[1:]
    return reached[per_pass::per_pass] if algorithm.endswith("-released") else reached[-1:]


@pytest.mark.parametrize("batch", [1, 7, 200])
def test_many_blocks_agree_with_the_reference(batch: int) -> None:
    rows, columns = 1500, 40  # many blocks of noise and of orders
    loss = of("logistic", feature_bound=1.0, radius=0.6, regularisation=0.1)
    problem = problem_of(loss, rows, columns)
    run = run_of("shuffled-epochs", loss, rows, epochs=2, batch_size=batch, step_size=0.2, noise_std=0.3)
    trained, recorder = executed(run, problem)
    steps = [step for order in recorder.drawn("permutation") for step in cut(order, batch)]
    reached = loop(
        loss, problem.features, problem.labels, steps, 0.2, 0.3, noise_of(recorder, columns), 0.6 * (1 - 1e-12),
        np.zeros(columns),
    )  # fmt: skip
    np.testing.assert_allclose(trained.weights, reached[-1], rtol=0.0, atol=1e-12)


def test_a_large_batch_is_not_stacked() -> None:
    loss = of("squares", feature_bound=1.0, label_bound=1.0, radius=1.0)
    problem = problem_of(loss, 700, 60)
    run = run_of("shuffled", loss, 700, batch_size=600, step_size=0.5, noise_std=0.1)
    trained, recorder = executed(run, problem)
    steps = cut(recorder.drawn("permutation")[0], 600)
    reached = loop(loss, *problem[:2], steps, 0.5, 0.1, noise_of(recorder, 60), 1.0, np.zeros(60))
    np.testing.assert_allclose(trained.weights, reached[-1], rtol=0.0, atol=1e-11)


def test_a_schedule_has_its_own_steps_and_noise() -> None:
    from dpcalc.model.chain import Chain

    rng = np.random.default_rng(3)
    loss = of("logistic", feature_bound=1.0)
    problem = problem_of(loss, N, D)
    chain = Chain(
        step_size=rng.uniform(0.1, 1.0, N), noise=rng.uniform(0.5, 2.0, N), contraction=np.ones(N), shift=None,
        spend=None, path="file",
    )  # fmt: skip
    run = run_of("pnsgd", loss, N, schedule=chain, noise_std=1.5, step_size=1.0)
    trained, recorder = executed(run, problem)
    reached = loop(
        loss, *problem[:2], cut(range(N), 1), chain.step_size, 1.5 * chain.noise, noise_of(recorder, D), np.inf,
        np.zeros(D),
    )  # fmt: skip
    np.testing.assert_allclose(trained.weights, reached[-1], rtol=0.0, atol=1e-13)


def test_every_iterate_lies_in_the_domain() -> None:
    loss = of("logistic", feature_bound=1.0)
    problem = problem_of(loss, N, D)
    run = run_of("noisy-gd-released", loss, N, steps=400, step_size=1.0, noise_std=3.0, radius=0.3)
    released = executed(run, problem)[0].released
    norms = np.sqrt((released.astype(np.longdouble) ** 2).sum(axis=1))
    assert released.shape == (400, D)
    assert np.all(norms <= np.longdouble(0.3))
    assert np.mean(norms > 0.3 * (1.0 - 2e-12)) > 0.5


def test_a_seed_repeats_a_run() -> None:
    loss = of("logistic", feature_bound=1.0)
    problem = problem_of(loss, N, D)
    planned = plan(run_of("shuffled", loss, N, step_size=0.2, noise_std=1.0), N, D)
    first, again, other = (engine.train(planned, problem, seeded(seed)).weights for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


@pytest.mark.parametrize("algorithm", ["pnsgd", "stop", "skip"])
def test_progress_ends_at_the_total(algorithm: str) -> None:
    loss = of("logistic", feature_bound=1.0)
    problem = problem_of(loss, 2000, D)
    planned = plan(run_of(algorithm, loss, 2000, step_size=0.2, noise_std=1.0), 2000, D)
    reports: list[tuple[int, int]] = []
    engine.train(planned, problem, seeded(3), progress=lambda done, total: reports.append((done, total)))
    assert [total for _, total in reports] == [2000] * len(reports)
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert reports[-1][0] == 2000
    assert len(reports) > (1 if algorithm == "stop" else 2)


LOGISTIC = of("logistic", feature_bound=1.0)
HUBER = of("huber", feature_bound=1.0, label_bound=1.0, huber_threshold=1.0)


def refused(problem: Problem, run: Any = None, **given: Any) -> str:
    run = run or run_of("pnsgd", problem.loss, N, step_size=0.1, noise_std=1.0)
    with pytest.raises(SpecError) as caught:
        engine.train(plan(run, N, D), problem, seeded(1), **given)
    return caught.value.message


def test_data_outside_the_bounds_are_refused() -> None:
    problem = problem_of(LOGISTIC, N, D)
    x, y = problem.features, problem.labels
    longer = x.copy()
    longer[7] *= 1.0000001 / np.linalg.norm(longer[7])
    assert "record 8 has 1.0000001" in refused(Problem(longer, y, LOGISTIC))
    longer[7, 0] = np.nan
    assert "record 8" in refused(Problem(longer, y, LOGISTIC))
    wrong = y.copy()
    wrong[3] = 0.0
    assert "label of record 4" in refused(Problem(x, wrong, LOGISTIC))
    assert "record 4" in refused(Problem(x, np.where(np.arange(N) == 3, 1.001, 0.0), HUBER))
    assert "record 4" in refused(Problem(x, np.where(np.arange(N) == 3, np.nan, 0.0), HUBER))
    assert "float64" in refused(Problem(x.astype(np.float32), y, LOGISTIC))
    assert "float64" in refused(Problem(np.asfortranarray(x), y, LOGISTIC))
    assert "shape" in refused(Problem(x, y[:-1], LOGISTIC))
    assert "shape" in refused(Problem(x[:-1], y[:-1], LOGISTIC))


def test_the_one_norm_counts_for_laplace_noise_in_several_dimensions() -> None:
    x, y = np.full((N, D), 0.5), np.ones(N)  # 2-norm 0.87, 1-norm 1.5
    run = run_of("pnsgd", LOGISTIC, N, step_size=0.1, laplace_scale=1.0, dimension=D)
    assert "has 1.5" in refused(Problem(x, y, LOGISTIC), run)
    engine.train(plan(run, N, D), Problem(x * 0.5, y, LOGISTIC), seeded(1))


def test_another_loss_than_accounted_is_refused() -> None:
    problem = problem_of(LOGISTIC, N, D)
    given = {"step_size": 0.1, "noise_std": 1.0}
    steeper = of("logistic", feature_bound=1.5)
    assert "lipschitz" in refused(problem._replace(loss=steeper), run_of("pnsgd", LOGISTIC, N, **given))
    assert "smoothness" in refused(problem, run_of("pnsgd", LOGISTIC, N, **given).replacing(smoothness=0.2))
    rough = of("hinge", feature_bound=1.0, power=1.0)
    assert "smoothness none" in refused(problem._replace(loss=rough), run_of("pnsgd", LOGISTIC, N, **given))
    curved = of("logistic", feature_bound=1.0, regularisation=0.1)
    assert "regularisation 0.1" in refused(problem._replace(loss=curved), run_of("pnsgd", LOGISTIC, N, **given))
    assert "regularisation 0," in refused(problem, run_of("pnsgd", curved, N, **given))
    narrow = of("logistic", feature_bound=1.0, radius=0.5)
    assert "lipschitz" in refused(problem, run_of("pnsgd", narrow, N, **given).replacing(radius=2.0))
    steep = of("squares", feature_bound=1.0, label_bound=1.0, radius=1.0)
    unbounded = plan(run_of("pnsgd", LOGISTIC, N, **given).replacing(lipschitz=steep.lipschitz, smoothness=1.1), N, D)
    with pytest.raises(MissingParameter, match="needs radius"):
        engine.train(unbounded, problem_of(steep, N, D), seeded(1))


def test_the_start_is_checked() -> None:
    problem = problem_of(LOGISTIC, N, D)
    run = run_of("pnsgd", LOGISTIC, N, step_size=0.1, noise_std=1.0, radius=1.0)
    assert "outside" in refused(problem, run, start=np.full(D, 0.6))
    assert "start has shape" in refused(problem, run, start=np.zeros(D + 1))
    assert "finite" in refused(problem, run, start=np.full(D, np.nan))
    output = run_of("dp-sgd-output", LOGISTIC, N, step_size=0.1, noise_std=1.0, radius=1.0)
    assert "starts at 0" in refused(problem, output, start=np.full(D, 0.1))
    for start, first in ((None, np.zeros(D)), (np.full(D, 0.3), np.full(D, 0.3))):
        np.testing.assert_array_equal(starting_point(plan(run, N, D), problem, start), first)


def test_too_many_iterates_to_release_are_refused() -> None:
    run = run_of("noisy-gd-released", LOGISTIC, N, steps=10**9, step_size=0.1, noise_std=1.0)
    assert "too many to hold" in refused(problem_of(LOGISTIC, N, D), run)


@pytest.mark.parametrize(
    ("algorithm", "given"),
    [("shuffled", {}), ("rotation", {}), ("noisy-gd", {"steps": 2}), ("shuffled", {"batch_size": 30_000})],
)
def test_memory_stays_below_twice_the_data(algorithm: str, given: dict[str, int]) -> None:
    import tracemalloc

    rows = 60_000
    x, y = data(rows, 4, 1, signed=True)
    problem = Problem(x, y, LOGISTIC)
    planned = plan(run_of(algorithm, LOGISTIC, rows, step_size=0.1, noise_std=1.0, radius=1.0, **given), rows, 4)
    tracemalloc.start()
    try:
        engine.train(planned, problem, seeded(1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < x.nbytes + y.nbytes


def test_domains() -> None:
    ball = Ball(2.0)
    assert ball.radius == 2.0
    w = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    assert ball.project(w)
    np.testing.assert_allclose(w, [[1.2, 1.6], [0.3, 0.4], [0.0, 0.0]], rtol=1e-11)
    assert not ball.project(w)
    assert ball.contains(w)
    one = np.array([3.0, 4.0])
    assert ball.project(one)
    np.testing.assert_allclose(one, [1.2, 1.6], rtol=1e-11)
    assert Ball().contains(w)
    assert not Ball().project(w)
    with pytest.raises(SpecError):
        Ball(0.0)


@pytest.mark.parametrize("radius", [1e-170, 1e200])
def test_a_ball_that_norms_cannot_tell_is_refused(radius: float) -> None:
    with pytest.raises(SpecError, match="the radius of a ball is"):
        Ball(radius)  # |w|^2 is 0 or inf: nothing would ever be projected
