"""Clipped gradients: each record's is shortened to the clip, by the norm of the whole gradient."""

from typing import Any

import numpy as np
import pytest

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.question import run_of
from dpcalc.errors import MissingParameter, SpecError
from dpcalc.model.draft import Description
from dpcalc.model.loss import Loss, of
from dpcalc.training.run import ensemble
from dpcalc.training.run import single as engine
from dpcalc.training.run.checks import lipschitz_of
from dpcalc.training.run.exact_sums import ExactSums
from dpcalc.training.run.kernel import Source, seeded
from dpcalc.training.run.plan import Plan, plan
from dpcalc.training.run.problem import Problem, slope_caps, verify
from tests.training.reference import Recorder, cut, loop, problem_of

CLIP = 0.11
LOSSES: list[dict[str, Any]] = [
    {"loss": "logistic", "regularisation": 0.3},
    {"loss": "hinge"},
    {"loss": "huber", "label_bound": 1.0, "huber_threshold": 0.4},
    {"loss": "squares", "label_bound": 1.0},
    {"loss": "squares", "label_bound": 1.0, "radius": 0.2},
]
N, D = 23, 3
WAYS: list[dict[str, Any]] = [
    {"algorithm": "noisy-gd", "release": "epoch", "steps": 9},
    {"algorithm": "cyclic", "epochs": 3},
    {"algorithm": "cyclic", "epochs": 3, "batch_size": 6},
]


class Shortened:
    """A loss whose gradients are shortened to the clip, the regulariser's apart."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def gradient(self, w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        own = self.loss.regularisation * w
        data = self.loss.gradient(w, x, y) - own
        return data * min(1.0, CLIP / max(float(np.linalg.norm(data)), 1e-300)) + own


def planned(loss: dict[str, Any], way: dict[str, Any], *, tail: bool = False) -> tuple[Plan, Problem, Any]:
    """Return what is executed, on data of which one row is 0, and the loss of the reference."""
    given = {"records": N, "feature_bound": 1.0, "step_size": 0.7, "noise_std": 0.8, "clip": CLIP, **loss, **way}
    _, run, _ = run_of(COMMANDS["compare"], Description(given))
    parameters = {name: value for name, value in loss.items() if name != "loss"}
    problem = problem_of(of(loss["loss"], feature_bound=1.0, **parameters), N, D, seed=3)
    problem.features[4] = 0.0
    made = plan(run, N, D)
    return made.averaged() if tail else made, problem, Shortened(problem.loss)


def steps_of(way: dict[str, Any]) -> Any:
    if way["algorithm"] == "noisy-gd":
        return [(np.arange(N), N)] * 9
    return 3 * cut(range(N), way.get("batch_size", 1))


def near(found: Any, expected: Any) -> None:
    """The caps leave a part of 1e-12 to spare."""
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=5e-11)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss["loss"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way['algorithm']}-{way.get('batch_size')}")
def test_every_gradient_is_clipped(loss: dict[str, Any], way: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    executed, problem, clipped = planned(loss, way)
    recorder, radius = Recorder(5), loss.get("radius", np.inf)
    trained = engine.train(executed, problem, Source(recorder, False, ""))  # type: ignore[arg-type]
    noise = np.concatenate([drawn.reshape(-1, D) for drawn in recorder.noise])
    steps, zero = steps_of(way), np.zeros(D)
    reached = loop(clipped, *problem[:2], steps, 0.7, 0.8, noise, radius, zero)
    near(trained.weights, reached[-1])
    plain = loop(problem.loss, *problem[:2], steps, 0.7, 0.8, noise, radius, zero)
    assert np.abs(plain[-1] - reached[-1]).max() > 1e-3
    recorder = Recorder(6)
    monkeypatch.setattr(ensemble, "_generator", lambda *_: recorder)
    many = ensemble.train(executed, problem, 4, 1, workers=1)
    noise = -np.concatenate([drawn.reshape(-1, D, 4) for drawn in recorder.noise])
    for k in range(4):
        near(many[k], loop(clipped, *problem[:2], steps, 0.7, 0.8, noise[:, :, k], radius, zero)[-1])


@pytest.mark.parametrize("loss", LOSSES[:4], ids=lambda loss: loss["loss"])
def test_exact_sums_are_of_clipped_gradients(loss: dict[str, Any]) -> None:
    executed, problem, clipped = planned(loss, WAYS[0])
    bound = lipschitz_of(executed, problem.loss)
    assert bound == CLIP
    w = np.array([0.4, -1.1, 0.7])
    gradients = [clipped.gradient(w, problem.features[[i]], problem.labels[[i]])[0] for i in range(N)]
    regulariser = N * problem.loss.regularisation * w
    found = ExactSums(problem, bound, N).descent(w, None)
    np.testing.assert_allclose(found, regulariser - np.sum(gradients, axis=0), rtol=0.0, atol=1e-4)


def test_the_tail_is_the_mean_of_the_later_half_of_what_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    for way, released in ((WAYS[0], range(1, 10)), ({**WAYS[2], "release": "epoch"}, (4, 8, 12))):
        executed, problem, clipped = planned(LOSSES[0], way, tail=True)
        recorder = Recorder(5)
        trained = engine.train(executed, problem, Source(recorder, False, ""))  # type: ignore[arg-type]
        noise = np.concatenate([drawn.reshape(-1, D) for drawn in recorder.noise])
        reached = loop(clipped, *problem[:2], steps_of(way), 0.7, 0.8, noise, np.inf, np.zeros(D))
        half = list(released)[len(released) // 2 :]
        near(trained.weights, np.mean([reached[t] for t in half], axis=0))
        recorder = Recorder(6)
        monkeypatch.setattr(ensemble, "_generator", lambda *_, recorder=recorder: recorder)
        [found] = ensemble.train(executed, problem, 1, 1, workers=1)
        noise = -np.concatenate([drawn.reshape(-1, D) for drawn in recorder.noise])
        reached = loop(clipped, *problem[:2], steps_of(way), 0.7, 0.8, noise, np.inf, np.zeros(D))
        near(found, np.mean([reached[t] for t in half], axis=0))
        monkeypatch.undo()


def test_a_mean_of_iterates_that_stay_hidden_is_refused() -> None:
    with pytest.raises(SpecError, match="covered only where each of them is"):
        planned(LOSSES[0], WAYS[1], tail=True)


@pytest.mark.parametrize("norm", [1, 2])
def test_no_clipped_gradient_is_longer_than_the_clip(norm: int) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((4000, 5)) * 10.0 ** rng.uniform(-150, 3, (4000, 1))
    caps = slope_caps(x, CLIP, norm)
    assert caps is not None
    assert (np.linalg.norm(caps[:, np.newaxis] * x, ord=norm, axis=1) <= CLIP).all()
    assert slope_caps(x, None) is None


def test_a_loss_that_was_accounted_unclipped_is_refused() -> None:
    executed, problem, _ = planned(LOSSES[3], WAYS[0])
    unclipped = {name: value for name, value in executed.accounted.items() if name != "clip"}
    with pytest.raises(MissingParameter, match="needs radius"):
        engine.train(executed._replace(accounted=unclipped), problem, seeded(1))


@pytest.mark.parametrize(("feature_bound", "clip"), [(1e-165, 1e-166), (1.0, 1e-141)])
def test_bounds_whose_squares_no_double_holds_are_refused(feature_bound: float, clip: float) -> None:
    x, y = np.full((4, 2), 0.5 * feature_bound), np.array([1.0, 1.0, -1.0, 1.0])
    with pytest.raises(SpecError, match="too short for sums without rounding"):
        ExactSums(Problem(x, y, of("logistic", feature_bound=feature_bound)), clip, 4)


def test_the_lengths_of_tiny_rows_are_checked() -> None:
    x = np.full((4, 2), 1e-165)
    with pytest.raises(SpecError, match=r"record 1 has 1\.414"):
        verify(Problem(x, np.ones(4), of("logistic", feature_bound=1.2e-165)))
