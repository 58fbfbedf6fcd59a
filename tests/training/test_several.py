"""A softmax of several classes: exact sums, what is executed against a slow reference, models, and what is refused."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.question import run_of
from dpcalc.errors import DpcalcError, MissingParameter, SpecError
from dpcalc.model.draft import Description
from dpcalc.model.loss import of
from dpcalc.training.release.model import load
from dpcalc.training.run import single
from dpcalc.training.run.exact_sums import ExactSums
from dpcalc.training.run.kernel import Source, descents
from dpcalc.training.run.plan import plan
from dpcalc.training.run.problem import Problem, verify
from tests.training.reference import Recorder, cut

N, D, K, CLIP = 12, 3, 4, 0.3


def problem_of(rows: int = N, columns: int = D, classes: int = K, **more: float) -> Problem:
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, columns))
    x /= np.linalg.norm(x, axis=1)[:, np.newaxis] * (1.0 + rng.random((rows, 1)))
    y = rng.integers(classes, size=rows).astype(float)
    return Problem(np.ascontiguousarray(x), y, of("softmax", feature_bound=1.0, classes=classes, **more))


def gradient(problem: Problem, w: np.ndarray, i: int, clip: float | None) -> np.ndarray:
    """Return the gradient of a record, shape (d, K), clipped: (softmax(W'x) - e_y) in an outer product with x."""
    x, y = problem.features[i], int(problem.labels[i])
    shares = np.exp([x @ w[:, k] for k in range(w.shape[1])])
    shares = shares / shares.sum()
    shares[y] -= 1.0
    found: np.ndarray = np.outer(x, shares)
    return found if clip is None else found * min(1.0, clip / np.linalg.norm(found))


# --- exact sums -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 11])
def test_gradients_in_exact_sums_are_those_of_the_loss(classes: int) -> None:
    problem = problem_of(200, 5, classes)
    sums, w = ExactSums(problem, 0.1, 200), np.random.default_rng(1).normal(size=5 * classes) * 3.0
    for i in range(200):
        one = sums.descent(w, np.array([i]))
        assert sum(Fraction(float(each)) ** 2 for each in one) < Fraction(0.1) ** 2
        assert one == pytest.approx(-gradient(problem, w.reshape(5, classes), i, 0.1).reshape(-1), abs=1e-5)


def test_a_slope_depends_on_its_record_and_the_weights_alone() -> None:
    """Bit for bit, wherever the record stands and whatever stands beside it."""
    rng = np.random.default_rng(3)
    for classes in (2, 3, 9, 40):
        scores, labels = 5.0 * rng.standard_normal((301, classes)), rng.integers(classes, size=301).astype(float)
        caps = rng.uniform(0.01, 2.0, 301)
        whole = descents(scores, labels, caps)
        for some in (rng.permutation(301), np.arange(7, 8), np.arange(5, 30), np.arange(300, -1, -3)):
            assert (descents(scores[some], labels[some], caps[some]) == whole[:, some]).all()
        mixed = scores.copy()
        mixed[::2] = np.nan
        assert (descents(mixed, labels, caps)[:, 1::2] == whole[:, 1::2]).all()
        assert not descents(mixed, labels, caps)[:, ::2].any()
        assert (np.linalg.norm(whole, axis=0) <= caps * (1.0 + 1e-15)).all()


def test_replacing_a_record_moves_a_sum_by_its_own_gradients_alone() -> None:
    problem, place = problem_of(40), 17
    for new in ([0.9, 0.1, 0.0], [0.0, 0.0, 0.0], [1e-300, 0.0, 0.0]):
        other = Problem(problem.features.copy(), problem.labels.copy(), problem.loss)
        other.features[place], other.labels[place] = new, (problem.labels[place] + 1.0) % K
        for w in (np.arange(12.0) - 6.0, np.array([1e140, 1e-9, -1e140] * 4)):
            before, after = (ExactSums(each, CLIP, 40) for each in (problem, other))
            with np.errstate(over="ignore"):
                change = after.descent(w, None) - before.descent(w, None)
                own = after.descent(w, np.array([place])) - before.descent(w, np.array([place]))
            assert change.tolist() == own.tolist()
            assert np.linalg.norm(change) <= 2.0 * CLIP


# --- what is executed -------------------------------------------------------------------------------------------------

WAYS: list[dict[str, Any]] = [
    {"algorithm": "noisy-gd", "steps": 9}, {"algorithm": "noisy-gd", "steps": 9, "clip": CLIP, "model": "any"},
    {"algorithm": "cyclic", "epochs": 3, "batch_size": 5}, {"algorithm": "cyclic", "epochs": 2, "radius": 0.4},
    {"algorithm": "noisy-gd", "steps": 9, "regularisation": 0.3, "radius": 2.0},
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_steps(way: dict[str, Any]) -> None:
    given = {"records": N, "feature_bound": 1.0, "loss": "softmax", "classes": K, "step_size": 0.7, "noise_std": 0.8}
    _, run, _ = run_of(COMMANDS["compare"], Description({**given, **way}))
    weight, radius = way.get("regularisation", 0.0), way.get("radius", np.inf)
    problem = problem_of(**({"radius": radius} if radius < np.inf else {}), regularisation=weight)
    executed, recorder = plan(run, N, D * K), Recorder(5)
    trained = single.train(executed, problem, Source(recorder, False, ""))  # type: ignore[arg-type]
    noise = np.concatenate([drawn.reshape(-1, D, K) for drawn in recorder.noise])
    batches = [(np.arange(N), N)] * 9 if "steps" in way else way["epochs"] * cut(range(N), way.get("batch_size", 1))
    w = np.zeros((D, K))
    for (rows, divisor), drawn in zip(batches, noise, strict=True):
        total = sum(gradient(problem, w, i, way.get("clip")) + weight * w for i in rows)
        w = w - 0.7 * (total / divisor + 0.8 * drawn)
        w *= min(1.0, radius / np.linalg.norm(w))
    np.testing.assert_allclose(trained.weights.reshape(D, K), w, rtol=0.0, atol=1e-11)


def test_hidden_runs_of_shortened_gradients_are_refused() -> None:
    """Of more than two classes a shortened gradient is that of no convex function: no theorem on hidden iterates."""
    x, y = classes(300)
    given = {"data": (x, y), "labels": "0,1,2", "epsilon": 2.0, "delta": 1e-4, "step_size": 1.0, "seed": 1}
    hidden = {"algorithm": "noisy-gd", "steps": 2000, "regularisation": 0.1, "radius": 5.0, **given}
    assert dpcalc.train(**hidden).cases[0].best.bound == "noisy_gd.contraction"  # type: ignore[union-attr]
    clipped = dpcalc.train(**hidden, clip=2.0).cases[0]
    assert {result.bound for result in clipped.results if result.kind == "conditional"} == {"noisy_gd.composition"}
    assert any("convex" in str(each) for each in clipped.obstacles)


# --- models -----------------------------------------------------------------------------------------------------------


def classes(rows: int, count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    centres, y = 0.5 * rng.standard_normal((count, 5)), rng.integers(count, size=rows)
    return centres[y] + 0.15 * rng.standard_normal((rows, 5)), y


def table_of(path: Path, rows: int = 400) -> Path:
    x, y = classes(rows)
    rows_of = (",".join(f"{each:.4f}" for each in row) for row in x)
    lines = [f"{row},{['red', 'green', 'blue'][k]}" for row, k in zip(rows_of, y, strict=True)]
    path.write_text("\n".join(["a,b,c,d,e,colour", *lines, "nan,0,0,0,0,violet"]) + "\n")
    return path


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_from_a_table_to_predictions(ending: str, tmp_path: Path) -> None:
    table, path = str(table_of(tmp_path / "t.csv")), tmp_path / f"m.{ending}"
    case = dpcalc.train(data=table, labels="red,green,blue", epsilon=2, delta=1e-4, output=str(path),
                        show_unprotected_metrics=True).cases[0]  # fmt: skip
    assert case.inputs["loss"] == ("softmax", "default")
    assert case.inputs["classes"] == (3, "derived")
    assert case.inputs["model"] == ("any", "default")
    assert case.best.bound == "noisy_gd.composition"  # type: ignore[union-attr]
    training: Any = case.training
    assert (training["classes"], training["dimension"], training["private"]) == (3, 6, True)
    assert training["uncovered"]["metrics"]["train"]["accuracy"] > 0.9
    assert any("everything else counts as 'red'" in note for note in case.notes)
    model = load(str(path))
    assert (model.weights.shape, model.intercept.shape, model.classes) == ((5, 3), (3,), ("red", "green", "blue"))
    x, _ = classes(400)
    found = dpcalc.predict(str(path), x)
    assert np.mean(found["prediction"] == np.array(["red", "green", "blue"])[classes(400)[1]]) > 0.9
    about = (shortened(x, model) - model.centre) / model.scale
    about *= np.minimum(1.0, model.centred_bound / np.linalg.norm(about, axis=1))[:, np.newaxis]
    scores = about @ model.weights
    shares = np.exp(scores + model.intercept)
    assert found["probability"] == pytest.approx((shares / shares.sum(axis=1, keepdims=True)).max(axis=1))
    measured = dpcalc.evaluate(str(path), table)
    assert measured["metrics"]["accuracy"] == pytest.approx(training["uncovered"]["metrics"]["train"]["accuracy"])
    assert measured["metrics"]["log_loss"] == pytest.approx(training["uncovered"]["metrics"]["train"]["loss"])
    private = dpcalc.evaluate(str(path), table, private=True, epsilon=1.0)
    assert private["metrics"]["accuracy"]["low"] <= measured["metrics"]["accuracy"] + 0.05


def shortened(x: np.ndarray, model: Any) -> np.ndarray:
    rows: np.ndarray = x * np.minimum(1.0, model.bound / np.linalg.norm(x, axis=1))[:, np.newaxis]
    return rows


def test_models_of_one_score_are_written_as_before(tmp_path: Path) -> None:
    dpcalc.train(data="example:breast-cancer", epsilon=1, delta=1e-5, output=str(tmp_path / "m.json"))
    assert "classes" not in json.loads((tmp_path / "m.json").read_text())


@pytest.mark.parametrize(
    "change",
    [
        {"intercept": 0.0}, {"classes": ["red", "green"]}, {"classes": ["red", "green", 3]}, {"positive": "red"},
        {"weights": [[1.0, 2.0]] * 5}, {"loss": {"loss": "logistic"}}, {"classes": None}, {"intercept": [1.0] * 4},
    ],
)  # fmt: skip
def test_damaged_models_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    dpcalc.train(
        data=str(table_of(tmp_path / "t.csv", 30)), labels="red,green,blue", epsilon=2, delta=1e-4, output=str(path)
    )
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(SpecError):
        dpcalc.predict(str(path), classes(3)[0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "softmax"}, "what the classes"), ({"loss": "softmax", "positive": "1"}, "what the classes"),
        ({"labels": "0,1,2", "classes": 4}, "4 classes are given, and 3 labels"),
        ({"labels": "0,1,2", "loss": "logistic"}, "has two labels"), ({"labels": "0,1,2", "loss": "squares"}, "labels"),
        ({"labels": "0,1,2", "target_range": (0, 1)}, "labels or a range"),
        ({"labels": "0,1,2", "replicas": 3}, "trained on data, and once"),
        ({"labels": "0,1,2", "laplace_scale": 1.0, "steps": 3, "step_size": 0.1}, "Gaussian"),
        ({"classes": 3}, "whether to classify"),
        ({"loss": "softmax", "classes": "0,1,2"}, "whole number from 2"),
        ({"loss": "softmax", "classes": ["0", "1", "2"]}, "whole number from 2"),
        ({"loss": "softmax", "labels": "0,1,2", "classes": "0,1,2"}, "whole number from 2"),
        ({"loss": "softmax", "classes": 2.5}, "whole number from 2"),
        ({"loss": "softmax", "classes": True}, "whole number from 2"),
    ],
)  # fmt: skip
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises((SpecError, MissingParameter), match=message):
        dpcalc.train(data=classes(50), epsilon=1, delta=1e-4, **given)


def test_names_of_classes_are_given_as_labels() -> None:
    with pytest.raises(SpecError) as caught:
        dpcalc.train(data=classes(50), epsilon=1, delta=1e-4, loss="softmax", classes="0,1,2")  # type: ignore[arg-type]
    assert "give labels" in str(caught.value.hint)


def test_without_labels_the_classes_are_whole_numbers_from_0() -> None:
    x, y = classes(300)
    given: dict[str, Any] = {
        "loss": "softmax",
        "epsilon": 2,
        "delta": 1e-4,
        "seed": 3,
        "show_unprotected_metrics": True,
    }
    odd = np.where(np.arange(300) % 50 == 0, np.nan, y.astype(float))
    plain = dpcalc.train(data=(x, odd), classes=3, **given).cases[0]
    named = dpcalc.train(data=(x, np.nan_to_num(odd)), labels=("0", "1", "2"), **given).cases[0]
    assert plain.training["uncovered"]["metrics"] == named.training["uncovered"]["metrics"]  # type: ignore[index]
    two = dpcalc.train(data=(x, y), labels="0,2", **given).cases[0]
    assert two.inputs["classes"] == (2, "derived")
    assert "model" not in two.inputs  # of two classes clipped gradients stay convex


def test_batches() -> None:
    case = dpcalc.train(data=classes(400), labels="0,1,2", epsilon=2, delta=1e-4, batch_size=20, seed=1,
                        show_unprotected_metrics=True).cases[0]  # fmt: skip
    picked = case.training["rule"]["picked"]  # type: ignore[index]
    assert picked["algorithm"]["value"] == "noisy-sgd"
    assert case.inputs["model"] == ("any", "default")
    assert case.training["uncovered"]["metrics"]["train"]["accuracy"] > 0.8  # type: ignore[index]


def test_labels_that_are_no_classes_are_refused_by_the_engine() -> None:
    problem = problem_of()
    for wrong in (-1.0, 0.5, float(K), np.nan):
        labels = problem.labels.copy()
        labels[3] = wrong
        with pytest.raises(SpecError, match="record 4"):
            verify(problem._replace(labels=labels))


def test_softmax_of_any_model_keeps_the_bound_alone() -> None:
    given: dict[str, Any] = {
        "records": 1000, "steps": 100, "step_size": 1.0, "loss": "softmax", "classes": 5, "feature_bound": 1.0,
        "delta": 1e-5, "clip": 0.25, "noise_std": 0.01, "algorithm": "noisy-gd",
    }  # fmt: skip
    case = dpcalc.compare(**given, model="any").cases[0]
    assert {result.bound for result in case.results if result.guarantee} == {"noisy_gd.composition"}
    assert "smoothness" not in case.inputs
    assert case.inputs["loss_class"][0] == "lipschitz"
    mu = 2 * 0.25 * 10 / (1000 * 0.01)
    assert case.best.mu == pytest.approx(mu)  # type: ignore[union-attr]
    with pytest.raises(DpcalcError, match="unless it is capped"):
        dpcalc.compare(**given, model="any", loss_class="convex-smooth")


def test_slopes_whose_squares_no_double_holds_are_shortened() -> None:
    """The record's class has all but e^-405 of the softmax: every slope is about 1e-176."""
    longest = 1e-200
    slopes = descents(np.array([[405.0, 0.0, 0.0, -500.0]] * 2), np.zeros(2), np.full(2, longest))
    for column in slopes.T:
        square = sum(Fraction(float(slope)) ** 2 for slope in column)
        assert 0.99 * longest < float(square * 10**400) ** 0.5 * 1e-200 <= longest * (1.0 + 1e-12)
