"""What a model says in the units of its columns, by differences of scores; and its noise, by simulation."""

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.training.release import coefficients
from dpcalc.training.release.model import load, save
from dpcalc.training.release.prediction import predictor
from tests.training.test_model import MODEL
from tests.training.test_prediction import REGRESSION

RNG = np.random.default_rng(3)
CENTRED = MODEL._replace(centre=np.array([0.05, -0.1]), scale=0.5, centred_bound=0.9, noise_std=0.25)
SOFTMAX = MODEL._replace(
    weights=RNG.standard_normal((2, 3)), intercept=np.array([0.1, 0.2, -0.3]), classes=("u", "v", "w"), positive=None,
    loss={"loss": "softmax"},
)  # fmt: skip


@pytest.mark.parametrize("model", [MODEL, CENTRED, SOFTMAX, REGRESSION])
def test_a_coefficient_is_what_one_unit_adds(model: Any) -> None:
    """Of a row in the middle of all ranges, which is far below the bounds."""
    found, step = coefficients.coefficients_of(predictor(model)), 1e-3
    row = (0.5 * (model.low + model.high))[np.newaxis]
    for one in found.rows:
        moved = row.copy()
        moved[0, model.columns.index(one.column)] += step
        scores = [np.atleast_1d(predictor(model).targets(model.scores(rows)[0])) for rows in (row, moved)]
        place = 0 if one.of_class is None else model.classes.index(one.of_class)
        assert one.value == pytest.approx((scores[1] - scores[0])[place] / step, rel=1e-6)
        at = model.columns.index(one.column)
        assert one.over_range == pytest.approx(one.value * (model.high[at] - model.low[at]), rel=1e-12)
    sizes = [abs(one.over_range or 0.0) for one in found.rows]
    assert sizes == sorted(sizes, reverse=True)


def test_the_noise_of_a_coefficient_is_that_of_its_weight() -> None:
    """A weight that is moved by one standard deviation moves its coefficient by the noise that is said of it."""
    before = {one.column: one for one in coefficients.coefficients_of(predictor(CENTRED)).rows}
    moved = CENTRED._replace(weights=CENTRED.weights + CENTRED.noise_std)
    for one in coefficients.coefficients_of(predictor(moved)).rows:
        assert before[one.column].noise == pytest.approx(one.value - before[one.column].value, rel=1e-9)
    assert {one.noise for one in coefficients.coefficients_of(predictor(MODEL)).rows} == {None}


def test_levels_have_a_coefficient_each() -> None:
    model = MODEL._replace(weights=np.array([0.5, 2.0, -1.0]), levels={"b": ("x", "y")})
    found = {one.name: one for one in coefficients.coefficients_of(predictor(model)).rows}
    assert {name: one.value for name, one in found.items()} == {"a": 0.5, "b = x": 2.0, "b = y": -1.0}
    assert found["b = x"].over_range is None
    assert coefficients.coefficients_of(predictor(model)).middle == (0.25,)


class _Plan:
    """As much of a plan as matters here."""

    tail, step_size, scale = True, 0.5, 2.0

    def __init__(self, steps: int) -> None:
        self.steps = steps


@pytest.mark.parametrize("kept", [0.4, 0.7, 0.9, 0.99, 1.0])
def test_the_noise_of_simulated_walks_is_found(kept: float) -> None:
    """The mean of the second half of 4000 walks, whose spread is known by simulation."""
    walks, w = [], np.zeros(4000)
    for _ in range(100):
        w = kept * w + RNG.standard_normal(4000)
        walks.append(w)
    released = np.array(walks)
    found = coefficients.deviation(_Plan(100), released)  # type: ignore[arg-type]
    assert found == pytest.approx(float(released[50:].mean(axis=0).std()), rel=0.06)


def test_no_noise_is_claimed_where_iterates_stay_hidden() -> None:
    plan = _Plan(100)
    plan.tail = False  # type: ignore[misc]
    assert coefficients.deviation(plan, np.zeros((1, 3))) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("records", "columns", "epsilon"), [(4000, 10, 1.0), (2000, 20, 0.3)])
def test_the_noise_of_trained_models_is_found(records: int, columns: int, epsilon: float, tmp_path: Path) -> None:
    x = RNG.uniform(-1.0, 1.0, (records, columns))
    y = np.where(x @ RNG.standard_normal(columns) + RNG.logistic(size=records) > 0.0, 1.0, -1.0)
    path, models = str(tmp_path / "m.json"), []
    for seed in range(10):
        dpcalc.train(data=(x, y), loss="logistic", epsilon=epsilon, delta=1e-5, seed=seed, output=path)
        models.append(load(path))
    factors = [model.temperature or 1.0 for model in models]  # common to all weights, with noise of their own
    weights = [model.weights * factor for model, factor in zip(models, factors, strict=True)]
    spread = math.sqrt(np.var(weights, axis=0, ddof=1).mean())
    stated = np.array([(model.noise_std or math.nan) * factor for model, factor in zip(models, factors, strict=True)])
    assert 0.6 <= np.exp(np.log(stated / spread).mean()) <= 1.5
    assert 1.0 / 3.0 <= (stated / spread).min() <= (stated / spread).max() <= 3.0


@pytest.mark.parametrize("model", [MODEL, CENTRED, SOFTMAX, REGRESSION, MODEL._replace(loss={"loss": "hinge"})])
def test_scikit_learn_predicts_the_same(model: Any, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    path, rows = str(tmp_path / "m.json"), RNG.standard_normal((50, 2)) * 3.0
    save(model, path)
    pipeline, found = pickle.loads(pickle.dumps(dpcalc.to_sklearn(path))), dpcalc.predict(path, rows)
    predicted = pipeline.predict(rows)
    if found["prediction"].dtype.kind == "f":
        assert predicted == pytest.approx(found["prediction"], rel=1e-12)
        return
    assert predicted.tolist() == found["prediction"].tolist()
    if "probability" in found:
        chances = pipeline.predict_proba(rows)
        assert (chances.max(axis=1) if model is SOFTMAX else chances[:, 1]) == pytest.approx(found["probability"])
    else:
        assert pipeline.decision_function(rows) == pytest.approx(found["score"])


@pytest.mark.parametrize("model", [MODEL._replace(class_weights=(0.1, 1.0)), SOFTMAX])
def test_scikit_learn_has_no_model_of_two_intercepts(model: Any, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    path, weights = str(tmp_path / "m.json"), model.class_weights or (1.0, 0.5, 0.25)
    save(model._replace(class_weights=weights), path)
    with pytest.raises(dpcalc.SpecError, match="one intercept for both"):
        dpcalc.to_sklearn(path)
    save(model._replace(class_weights=(1.0,) * len(weights)), path)
    dpcalc.to_sklearn(path)


@pytest.mark.parametrize("wrong", [-1.0, 0.0, "x", True, [1.0]])
def test_a_file_with_another_noise_is_refused(wrong: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    save(CENTRED, str(path))
    path.write_text(json.dumps({**json.loads(path.read_text()), "noise_std": wrong}))
    with pytest.raises(dpcalc.SpecError, match="not a model file"):
        load(str(path))
