"""The estimators, where scikit-learn is installed: its own suite, and what a private estimator must do besides.

To run them: pip install -e '.[sklearn]' && pytest tests/training/test_estimators.py
"""

import importlib.util
import math
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.training.data import ranges as ranges_of
from dpcalc.training.data import tables
from dpcalc.training.data.cells import Labels
from dpcalc.training.release.model import load, save

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = importlib.util.find_spec("sklearn") is not None
needs_sklearn = pytest.mark.skipif(not INSTALLED, reason="scikit-learn is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::dpcalc.PrivacyWarning")

NO_REFUSAL = {
    "check_supervised_y_no_nan": "a refusal would tell whether a record is there: it counts as the middle of the range"
}


def estimator(name: str, **parameters: Any) -> Any:
    import dpcalc.sklearn

    return getattr(dpcalc.sklearn, name)(**parameters)


def cancer() -> tuple[Any, Any, tuple[Any, Any]]:
    """Return rows, labels and ranges of the shipped table."""
    table = tables.read(tables.example_file("breast-cancer"), target="diagnosis", labels=Labels("malignant"))
    ranges = ranges_of.read_ranges(tables.example_file("breast-cancer", ".ranges.csv"), table)
    return table.cells[:, :-1], np.where(table.cells[:, -1] > 0.0, "malignant", "benign"), (ranges.low, ranges.high)


@pytest.mark.skipif(INSTALLED, reason="scikit-learn is installed")
def test_without_scikit_learn_it_says_what_to_install() -> None:
    with pytest.raises(ImportError, match=r"pip install 'dpcalc\[sklearn\]'"):
        importlib.import_module("dpcalc.sklearn")


def test_nothing_else_imports_it() -> None:
    program = "import sys, dpcalc.api.training, dpcalc.cli.commands.train; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.few(1)
@needs_sklearn
@pytest.mark.parametrize(
    ("name", "parameters", "failing"),
    [
        ("DPClassifier", {}, {"check_class_weight_classifiers": "wants weights that outweigh noise: 50 rows"}),
        ("DPClassifier", {"epsilon": 12.0}, {}),
        ("DPRegressor", {"epsilon": 12.0, "target_range": (-3.0, 3.0)}, NO_REFUSAL),
    ],
)  # fmt: skip
def test_the_suite_of_scikit_learn_passes(name: str, parameters: Any, failing: Any) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = check_estimator(
            estimator(name, **parameters), expected_failed_checks=failing, on_fail=None, on_skip=None
        )
    assert len(checks) > 40
    assert [check["check_name"] for check in checks if check["status"] == "failed"] == []
    assert {check["check_name"] for check in checks if check["status"] == "xfail"} == set(failing)


@needs_sklearn
def test_a_private_classifier_is_as_good_as_train(tmp_path: Path) -> None:
    rows, labels, ranges = cancer()
    found = estimator("DPClassifier", classes=("benign", "malignant"), ranges=ranges).fit(rows, labels)
    assert found.score(rows, labels) > 0.9
    assert (found.private_, found.why_not_private_) == (True, None)
    [case] = found.privacy_.cases
    assert (case.best.epsilon, case.best.delta) == (1.0, 1e-5)
    trained = dpcalc.train(data="example:breast-cancer", epsilon=1, delta=1e-5).cases[0]
    assert case.best.value == trained.best.value  # type: ignore[union-attr]
    assert case.inputs["clip"] == trained.inputs["clip"]
    assert found.n_iter_ == trained.training["steps"]  # type: ignore[index]
    assert found.predict_proba(rows)[:, 1] == pytest.approx(1 / (1 + np.exp(-found.decision_function(rows))))
    save(found.model_, str(tmp_path / "m.json"))
    assert dpcalc.predict(tmp_path / "m.json", rows)["prediction"].tolist() == found.predict(rows).tolist()
    assert load(str(tmp_path / "m.json")).privacy["private"] is True
    again = pickle.loads(pickle.dumps(found))
    assert again.predict(rows).tolist() == found.predict(rows).tolist()


@needs_sklearn
@pytest.mark.parametrize("seed", [None, 1])
def test_an_estimator_keeps_nothing_that_was_measured_of_its_records(seed: int | None) -> None:
    """What is pickled is given away: it holds no number that comes from the records without noise."""
    rows, labels, ranges = cancer()
    found = estimator("DPClassifier", classes=("benign", "malignant"), ranges=ranges, random_state=seed)
    training = found.fit(rows, labels).privacy_.cases[0].training
    assert "uncovered" not in training
    assert found.uncovered_ == {}
    for form in ("plain", "table", "markdown", "json", "csv", "statement"):
        text = dpcalc.format_report(found.privacy_, form)
        assert "accuracy" not in text
        assert "not covered" not in text
    assert len(pickle.dumps(found)) < 20_000 < rows.nbytes


@needs_sklearn
def test_coefficients_are_of_mapped_rows() -> None:
    rows, labels, (low, high) = cancer()
    found = estimator("DPClassifier", classes=("benign", "malignant"), ranges=(low, high)).fit(rows, labels)
    x = (rows - (low + high) / 2) / ((high - low) / 2)
    model = found.model_
    x *= np.minimum(1.0, model.bound / np.linalg.norm(x, axis=1))[:, np.newaxis]
    x = (x - model.centre) / model.scale
    x *= np.minimum(1.0, model.centred_bound / np.linalg.norm(x, axis=1))[:, np.newaxis]
    assert found.decision_function(rows) == pytest.approx(x @ found.coef_[0] + found.intercept_[0], rel=1e-9, abs=1e-9)


@needs_sklearn
def test_what_is_not_covered_is_marked() -> None:
    rows, labels, ranges = cancer()
    undeclared = estimator("DPClassifier", ranges=ranges).fit(rows, labels)
    seeded = estimator("DPClassifier", classes=("benign", "malignant"), ranges=ranges, random_state=1).fit(rows, labels)
    for found, because in ((undeclared, "taken from the records"), (seeded, "seed")):
        assert found.private_ is False
        assert because in found.why_not_private_
        assert found.privacy_.cases[0].training["private"] is False
        assert found.model_.privacy["private"] is False
        assert "NOT PRIVATE" in dpcalc.format_report(found.privacy_, "plain")
        assert not any(result.guarantee for result in found.privacy_.cases[0].results)
        assert found.privacy_.cases[0].best.kind == "conditional"
        kinds = {row["kind"] for row in found.privacy_.to_dict()["cases"][0]["results"]}
        assert not kinds & {"upper", "exact"}
        with pytest.raises(dpcalc.SpecError, match="not private"):
            found.privacy_.card()


@needs_sklearn
def test_no_label_and_no_cell_is_refused() -> None:
    """A record that was never seen before must not end the run: it counts as something fixed."""
    rows, labels, ranges = cancer()
    odd_rows, odd_labels = rows.copy(), labels.astype(object)
    odd_rows[0], odd_rows[1] = np.nan, np.inf
    odd_labels[2], odd_labels[3] = "never seen", None
    found = estimator("DPClassifier", classes=("benign", "malignant"), ranges=ranges, random_state=3)
    odd = found.fit(odd_rows, odd_labels).coef_
    plain = labels.copy()
    plain[[2, 3]] = "benign"
    assert odd.tolist() == found.fit(odd_rows, plain).coef_.tolist()
    assert found.fit(rows, ["benign"] * len(rows)).predict(rows).shape == (len(rows),)
    odd_labels[4], plain[4] = np.arange(3), "benign"
    assert found.fit(odd_rows, odd_labels).coef_.tolist() == found.fit(odd_rows, plain).coef_.tolist()
    nothing = found.fit(rows, ["benign"] * len(rows)).coef_.tolist()
    assert found.fit(rows, np.arange(len(rows))).coef_.tolist() == nothing
    numbers = estimator("DPRegressor", target_range=(0.0, 10.0), ranges=ranges, random_state=3)
    y = np.linspace(0.0, 10.0, len(rows))
    y[[4, 5]] = np.nan, math.inf
    middle = np.where(np.isfinite(y), y, 5.0)
    words = [*y[:4], "word", None, *y[6:]]
    assert numbers.fit(odd_rows, words).coef_.tolist() == numbers.fit(odd_rows, middle).coef_.tolist()
    assert numbers.fit(odd_rows, y).coef_.tolist() == numbers.fit(odd_rows, middle).coef_.tolist()


@needs_sklearn
def test_a_regression_is_in_the_units_of_its_target() -> None:
    generator = np.random.default_rng(0)
    rows = generator.uniform(-1.0, 1.0, (4000, 2))
    y = 50.0 + 20.0 * rows[:, 0] - 10.0 * rows[:, 1] + generator.standard_normal(4000)
    found = estimator("DPRegressor", epsilon=8.0, target_range=(0.0, 100.0)).fit(rows, y)
    assert found.private_
    assert found.score(rows, y) > 0.8
    short = np.array([[0.3, 0.2], [-0.1, 0.4]])
    assert found.predict(short) == pytest.approx(short @ found.coef_ + found.intercept_, rel=1e-9)
    assert np.mean(found.predict(rows)) == pytest.approx(50.0, abs=3.0)


@needs_sklearn
@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        ((0, 1), "i"), ([False, True], "b"), ((0.0, 1.0), "f"), (("no", "yes"), "U"), ((-1, 0, 1), "i"),
        ((0, 10**30), "O"), (("a", "a\0"), "O"), ((0, "yes"), "O"),
    ],
)  # fmt: skip
def test_labels_are_predicted_in_the_type_that_the_classes_share(classes: Any, kind: str) -> None:
    """scikit-learn has no score of labels that are objects, as 0 and 1 in a tuple would be."""
    from sklearn.model_selection import cross_val_score

    rows = np.linspace(-1.0, 1.0, 60)[:, np.newaxis]
    labels = np.array(list(classes), dtype=object if kind == "O" else None)[np.arange(60) // 5 % len(classes)]
    model = estimator("DPClassifier", classes=classes, epsilon=8.0)
    found = model.fit(rows, labels)
    assert (found.private_, found.predict(rows).dtype.kind) == (True, kind)
    assert found.classes_.tolist() == list(classes)
    if kind != "O":
        assert found.score(rows, labels) == np.mean(found.predict(rows) == labels)
        assert np.isfinite(cross_val_score(model, rows, labels, cv=2, scoring="f1_macro")).all()


@needs_sklearn
@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("DPClassifier", {"ranges": ([-1.0, -1.0], [1.0, 1.0])}, "ranges"),
        ("DPClassifier", {"ranges": [(-1.0, 1.0)] * 3}, "ranges"),
        ("DPClassifier", {"ranges": {"a": (-1.0, 1.0)}}, "ranges"), ("DPClassifier", {"ranges": 1.0}, "ranges"),
        ("DPRegressor", {"target_range": None}, "target range"), ("DPRegressor", {"target_range": 5}, "target range"),
        ("DPRegressor", {"target_range": ("low", "high")}, "target range"),
        ("DPRegressor", {"target_range": (0.0, 1.0, 2.0)}, "target range"),
    ],
)  # fmt: skip
def test_ends_of_the_wrong_shape_are_refused_by_name(name: str, wrong: Any, said: str) -> None:
    with pytest.raises(dpcalc.SpecError) as error:
        estimator(name, **wrong).fit(np.zeros((9, 3)), np.arange(9) % 2)
    assert said in error.value.message
    assert "(low, high)" in str(error.value.hint)


@needs_sklearn
def test_a_wrong_budget_is_named_by_its_keyword() -> None:
    with pytest.raises(dpcalc.SpecError) as error:
        estimator("DPClassifier", epsilon=-1).fit(np.zeros((9, 3)), np.arange(9) % 2)
    assert error.value.hint == "for example epsilon=1"


@needs_sklearn
@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": -1.0}, {"delta": 2.0}, {"classes": ("a",)}, {"classes": ("a", "a")}, {"classes": "no,yes"},
     {"classes": {"no", "yes"}}, {"ranges": (1.0, 0.0)},
     {"ranges": (0.0, math.inf)}],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(wrong: Any) -> None:
    with pytest.raises(dpcalc.SpecError):
        estimator("DPClassifier", **wrong).fit(np.zeros((9, 1)), np.arange(9) % 2)


@needs_sklearn
def test_more_than_two_classes(tmp_path: Path) -> None:
    from sklearn.datasets import load_digits

    rows, places = load_digits(n_class=4, return_X_y=True)
    labels = np.array(["no", "one", "two", "three"])[places]
    labels[labels == "no"] = "odd"  # counts as the first
    found = estimator("DPClassifier", epsilon=4.0, classes=("no", "one", "two", "three"), ranges=(0, 16))
    found.fit(rows, labels)
    assert (found.private_, found.coef_.shape, found.intercept_.shape) == (True, (4, 64), (4,))
    assert np.mean(found.predict(rows) == np.where(labels == "odd", "no", labels)) > 0.9
    p = found.predict_proba(rows)
    assert p.sum(axis=1) == pytest.approx(np.ones(len(rows)))
    assert (found.classes_[p.argmax(axis=1)] == found.predict(rows)).all()
    assert np.log(p[:, 1] / p[:, 0]) == pytest.approx(np.diff(found.decision_function(rows)[:, :2])[:, 0], abs=1e-6)
    save(found.model_, str(tmp_path / "m.npz"))
    assert dpcalc.predict(tmp_path / "m.npz", rows)["prediction"].tolist() == found.predict(rows).tolist()
    assert not estimator("DPClassifier", classes=None).fit(rows, places).private_


@needs_sklearn
@pytest.mark.parametrize(
    ("classes", "labels", "strange"),
    [
        ((0, 1), [0, 1, 1, 0, 1, 0], "x"), ((0, 1), [0, 1, 1, 0, 1, 0], None), ((0, 1), [0, 1, 1, 0, 1, 0], [1, 2]),
        ((False, True), [False, True, True, False, True, False], "x"), ((0, 1), [[0], [1], [1], [0], [1], [0]], 5),
        (("a", "b"), ["a", "b", "b", "a", "b", "a"], b"x"), ((b"a", b"b"), [b"a", b"b", b"b", b"a", b"b", b"a"], "x"),
        (("a", "b"), ["a", "b", "b", "a", "b", "a"], 3.5), ((0.0, 1.5), [0, 1.5, 1.5, 0, 1.5, 0], "x"),
        ((0, 1), np.array([0, 1, 1, 0, 1, 0]), "x"), ((0.0, 1.5), np.array([0, 1.5, 1.5, 0, 1.5, 0]), "x"),
    ],
)  # fmt: skip
def test_one_label_changes_no_other(monkeypatch: pytest.MonkeyPatch, classes: Any, labels: Any, strange: Any) -> None:
    import dpcalc.sklearn.estimators as module

    seen: list[list[float]] = []
    fit = module.fit
    monkeypatch.setattr(module, "fit", lambda task: (seen.append(task.setup.data[1].tolist()), fit(task))[1])
    X = np.linspace(-0.5, 0.5, 12).reshape(6, 2)
    given = list(labels)
    as_given: Any = np.array if isinstance(labels, np.ndarray) else list
    plain = estimator("DPClassifier", classes=classes, epsilon=5.0).fit(X, as_given(given))
    other = estimator("DPClassifier", classes=classes, epsilon=5.0).fit(X, as_given([*given[:-1], strange]))
    assert plain.private_
    assert other.private_
    assert seen[0] == [-1.0, 1.0, 1.0, -1.0, 1.0, -1.0]
    assert seen[1] == seen[0]


@needs_sklearn
@pytest.mark.parametrize("strange", ["x", None, b"\xff", [1, 2], "1e400"])
@pytest.mark.parametrize("array", [False, True])
def test_one_target_changes_no_other(monkeypatch: pytest.MonkeyPatch, strange: Any, array: bool) -> None:
    import dpcalc.sklearn.estimators as module
    from dpcalc.training.data.tables import of_arrays

    if array and not isinstance(strange, (str, type(None))):
        pytest.skip("numpy makes no array of it")
    seen: list[list[float]] = []
    fit = module.fit

    def spied(task: Any) -> Any:
        seen.append(of_arrays(*task.setup.data).cells[:, -1].tolist())
        return fit(task)

    monkeypatch.setattr(module, "fit", spied)
    X = np.linspace(-0.5, 0.5, 12).reshape(6, 2)
    y = [0.1, -0.25, 0.5, 1.0, -1.0, strange]
    model = estimator("DPRegressor", epsilon=5.0, target_range=(-1.0, 1.0)).fit(X, np.array(y) if array else y)
    assert model.private_
    assert seen[0][:-1] == y[:-1]
    assert math.isnan(seen[0][-1])


@needs_sklearn
@pytest.mark.parametrize("strange", ["secret", "1_0", None, 1 << 2000, b"\xff", [1], math.nan])
@pytest.mark.parametrize("kind", [list, object, str])
def test_one_cell_refuses_no_row_and_changes_no_other(strange: Any, kind: Any) -> None:
    """A refusal quoted the cell. It counts as the middle of the range."""
    X = np.linspace(-0.5, 0.5, 12).reshape(6, 2)
    rows = X.astype(object)
    rows[3, 1] = "?" if kind is str and isinstance(strange, (int, list, bytes)) else strange
    given = rows.tolist() if kind is list else rows.astype(kind)
    found = estimator("DPClassifier", classes=(0, 1), epsilon=5.0, random_state=3)
    X[3, 1] = np.nan
    expected = found.fit(X, [0, 1, 1, 0, 1, 0]).coef_.tolist()
    assert found.fit(given, [0, 1, 1, 0, 1, 0]).coef_.tolist() == expected
