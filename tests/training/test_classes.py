"""Confusion, calibration and ROC, by brute force and by scikit-learn."""

import numpy as np
import pytest

from dpcalc.training.release import classes, metrics
from dpcalc.training.release.prediction import predictor
from tests.training.test_coefficients import SOFTMAX
from tests.training.test_model import MODEL

RNG = np.random.default_rng(8)
ROWS, SCORES = 500, np.round(RNG.standard_normal(500), 1)
POSITIVE = RNG.random(500) < 1.0 / (1.0 + np.exp(-SCORES))


@pytest.mark.parametrize("model", [MODEL, SOFTMAX])
def test_everything_by_brute_force(model: object) -> None:
    predicting = predictor(model)  # type: ignore[arg-type]
    names, x = predicting.classes, RNG.standard_normal((ROWS, 2)) * 3.0
    words = RNG.choice(names or (), ROWS)
    found = metrics.measured(predicting, (x, words))
    assert found.classified is not None
    report = found.classified.to_json(names or ())
    read = predicting.read(predicting.model.scores(x))
    pairs = list(zip(words.tolist(), read["prediction"].tolist(), strict=True))
    for k, one in enumerate(names or ()):
        for j, other in enumerate(names or ()):
            assert report["confusion"][k][j] == pairs.count((one, other))
        said, true = (sum(pair[place] == one for pair in pairs) for place in (1, 0))
        row = report["classes"][k]
        assert (row["class"], row["rows"]) == (one, true)
        assert row["precision"] == (pairs.count((one, one)) / said if said else None)
        assert row["recall"] == pairs.count((one, one)) / true
    chances = read["probability"]
    happened = read["prediction"] == words if len(names or ()) > 2 else words == (names or ())[1]
    error = 0.0
    for k in range(10):
        inside = [i for i, p in enumerate(chances) if k / 10 <= p < (k + 1) / 10 or (k == 9 and p == 1.0)]
        if inside:
            error += abs(float(np.mean(chances[inside])) - float(np.mean(happened[inside]))) * len(inside) / ROWS
    assert report["calibration"]["error"] == pytest.approx(error, abs=1e-12)
    assert sum(cell["rows"] for cell in report["calibration"]["cells"]) == ROWS
    assert found.metrics["calibration_error"] == report["calibration"]["error"]


def test_the_curve_is_that_of_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    fpr, tpr, _ = sklearn.roc_curve(POSITIVE, SCORES, drop_intermediate=False)
    found = np.array(classes.roc(SCORES, POSITIVE))
    assert found == pytest.approx(np.column_stack([fpr, tpr]), abs=1e-12)
    assert np.trapezoid(found[:, 1], found[:, 0]) == pytest.approx(sklearn.roc_auc_score(POSITIVE, SCORES), abs=1e-12)


def test_a_long_curve_is_shortened_and_keeps_its_ends() -> None:
    scores = RNG.standard_normal(50000)
    positive = RNG.random(50000) < 1.0 / (1.0 + np.exp(-2.0 * scores))
    found = np.array(classes.roc(scores, positive))
    assert len(found) <= 101
    assert found[[0, -1]].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert np.trapezoid(found[:, 1], found[:, 0]) == pytest.approx(metrics._auc(scores, positive), abs=1e-3)


def test_what_is_undefined_is_none() -> None:
    assert classes.roc(SCORES, np.ones(ROWS, dtype=bool)) is None
    assert classes.calibration(np.array([0.5, np.nan]), np.array([True, False])) is None
    report = classes.Classified(np.array([[3, 0], [0, 0]]), None, None).to_json(("a", "b"))
    assert [(row["precision"], row["recall"]) for row in report["classes"]] == [(1.0, 1.0), (None, None)]
