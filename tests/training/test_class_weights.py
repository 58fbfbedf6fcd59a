"""Public shares and weights of classes: what they are, what they change, and that they cost no privacy."""

import importlib.util
import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.errors import SpecError
from dpcalc.model.loss import of
from dpcalc.training.release.calibration import answers
from dpcalc.training.release.model import load
from dpcalc.training.release.prediction import predictor
from dpcalc.training.rule.setup import Setup
from dpcalc.training.rule.shares import shares_of, weights_of
from dpcalc.training.run.domain import Ball
from dpcalc.training.run.exact_sums import ExactSums
from dpcalc.training.run.kernel import PlainSums
from dpcalc.training.run.orders import Stretch
from dpcalc.training.run.problem import Problem, verify

LOGISTIC, HINGE = of("logistic", feature_bound=1.0), of("hinge", feature_bound=1.0)
THREE = of("softmax", feature_bound=1.0, classes=3)
WEIGHTS = {2: np.array([0.125, 1.0]), 3: np.array([1.0, 0.0625, 0.5])}
BOUND = 0.1


def table(rows: int = 400, share: float = 0.1, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (rows, 2))
    scores = x[:, 0] + 0.5 * rng.standard_normal(rows)
    return x, (scores > np.quantile(scores, 1.0 - share)).astype(float)


def problem_of(loss: Any, rows: int = 30, columns: int = 3) -> Problem:
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, columns))
    x /= np.linalg.norm(x, axis=1)[:, np.newaxis] * (1.0 + rng.random((rows, 1)))
    y = rng.integers(3, size=rows).astype(float) if loss.classified else rng.choice([-1.0, 1.0], size=rows)
    return Problem(np.ascontiguousarray(x), y, loss, WEIGHTS[3 if loss.classified else 2])


def square(vector: np.ndarray) -> Fraction:
    return sum((Fraction(float(entry)) ** 2 for entry in vector), Fraction(0))


# --- what is given ----------------------------------------------------------------------------------------------------


def test_shares_sum_to_one_or_are_whole_numbers_of_records() -> None:
    assert shares_of("0.98,0.02", 2) == pytest.approx((0.98, 0.02))
    assert shares_of((490, 10), 2) == shares_of("98,2", 2) == pytest.approx((0.98, 0.02))
    assert shares_of("0.33,0.33,0.33", 3) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    for typed in ("0.99,0.5", "0.98,0.2", "99.5,0.5", "0.3,0.3", (1.5, 2)):
        with pytest.raises(SpecError, match=r"shares of the classes are .*, and sum to") as refused:
            shares_of(typed, 2)
        assert "sum to 1" in str(refused.value.hint)
        assert "whole numbers of records" in str(refused.value.hint)


def test_weights_are_over_the_largest_and_rounded_down() -> None:
    assert weights_of("1,10", None, 2) == (math.floor(0.1 * 2**20) / 2**20, 1.0)
    assert weights_of((3, 3), None, 2) == (1.0, 1.0)
    assert weights_of("1e-300,1e300", None, 2) == (2.0**-20, 1.0)
    less, most = weights_of("balanced", shares_of("0.98,0.02", 2), 2)
    root, _ = weights_of("sqrt", shares_of("0.98,0.02", 2), 2)
    assert (most, less, root) == pytest.approx((1.0, 1 / 49, 1 / 7), abs=2e-6)
    with pytest.raises(SpecError, match="shares of the classes"):
        weights_of("balanced", shares_of("1e-320,1", 2), 2)
    assert weights_of("balanced", shares_of("50,40,10", 3), 3) == pytest.approx((0.2, 0.25, 1.0), abs=2e-6)


@pytest.mark.parametrize(
    ("weight", "more", "match"),
    [
        ("1", {}, "weights of the classes"), ("1,2,3", {}, "weights of the classes"), ("0,1", {}, "weights of the"),
        ("nan,1", {}, "weights of the"), ("even", {}, "weights of the"), ({1: 1.0, 2: 9.0}, {}, "weights of the"),
        ({1.0, 9.0}, {}, "weights of the"),
        ("balanced", {}, "are not given"), ("sqrt", {}, "are not given"), ("1,2", {"radius": 1.0}, "default rule"),
        ("1,2", {"loss": "squares", "labels": None}, "default rule"), ("1,2", {"reference": True}, "alike"),
        ("1,2", {"tune": {"clip": [0.1, 0.2]}}, "alike"),
    ],
)  # fmt: skip
def test_what_are_no_weights_is_refused_before_training(weight: Any, more: dict[str, Any], match: str) -> None:
    given: dict[str, Any] = {"labels": "0,1", "epsilon": 1, "delta": 1e-5, **more}
    with pytest.raises(SpecError, match=match):
        dpcalc.train(data=table(), class_weight=weight, **given)


# --- what a record adds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "capped"), [(LOGISTIC, False), (HINGE, False), (THREE, False), (THREE, True)])
def test_a_gradient_is_that_without_weights_times_the_weight_of_its_class(loss: Any, capped: bool) -> None:
    problem = problem_of(loss)
    weighted, plain = (ExactSums(each, BOUND, 30, capped=capped) for each in (problem, problem._replace(weights=None)))
    w = np.linspace(-2.0, 3.0, problem.shape[1])
    assert problem.weights is not None
    for i, place in enumerate(problem.places(problem.labels)):
        one, other = (sums.descent(w, np.array([i])) for sums in (weighted, plain))
        grid = 2.0 * plain.slope_unit  # of a slope that is cut again
        assert np.abs(one - problem.weights[place] * other).max() <= grid
        assert square(one) <= (Fraction(float(problem.weights[place])) * Fraction(BOUND)) ** 2


@pytest.mark.parametrize(("loss", "capped"), [(LOGISTIC, False), (HINGE, False), (THREE, False), (THREE, True)])
def test_a_replaced_record_moves_a_sum_by_two_bounds_at_most_whatever_its_label(loss: Any, capped: bool) -> None:
    """By brute force over rows, labels and iterates: exactly, and by its own gradients alone."""
    problem = problem_of(loss, 12)
    rows = ([0.6, 0.8, 0.0], [0.0, 0.0, 0.0], [5e-324, 0.0, 0.0], [-1.0, 0.0, 0.0])
    iterates = [np.full(problem.shape[1], value) for value in (0.0, 40.0, -1e140)]
    largest = Fraction(0)
    for row, label, w in product(rows, (0.0, 1.0, 2.0) if loss.classified else (-1.0, 1.0), iterates):
        features, labels = problem.features.copy(), problem.labels.copy()
        features[7], labels[7] = row, label
        pair = (problem, problem._replace(features=features, labels=labels))
        before, after = (ExactSums(each, BOUND, 12, capped=capped) for each in pair)
        with np.errstate(all="ignore"):
            change = after.descent(w, None) - before.descent(w, None)
            own = after.descent(w, np.array([7])) - before.descent(w, np.array([7]))
        assert change.tolist() == own.tolist()
        largest = max(largest, square(change))
    assert Fraction(BOUND) ** 2 / 4 < largest <= 4 * Fraction(BOUND) ** 2


def test_weights_above_one_are_refused_where_gradients_are_summed() -> None:
    for weights in ([1.0, 1.0000001], [0.0, 1.0], [math.nan, 1.0]):
        with pytest.raises(SpecError, match="weights of classes"):
            verify(problem_of(LOGISTIC)._replace(weights=np.array(weights)))


@pytest.mark.parametrize("loss", [LOGISTIC, THREE])
def test_a_record_adds_its_weight_to_one_count(loss: Any) -> None:
    problem = problem_of(loss)
    w = np.linspace(-2.0, 3.0, problem.shape[1])
    assert problem.weights is not None
    before = answers(problem, w, 1.5)
    assert before.sum() == problem.weights[problem.places(problem.labels)].sum()
    for label in (0.0, 1.0, 2.0) if loss.classified else (-1.0, 1.0):
        labels = problem.labels.copy()
        labels[4] = label
        moved = answers(problem._replace(labels=labels), w, 1.5) - before
        assert square(moved.reshape(-1)) <= 2


# --- what is trained --------------------------------------------------------------------------------------------------

RUNS: tuple[dict[str, Any], ...] = (
    {"labels": "0,1"}, {"labels": "0,1", "loss": "hinge"}, {"labels": "0,1,2"}, {"labels": "0,1", "batch_size": 40},
    {"labels": "0,1", "batch_size": 1, "epochs": 2, "epsilon": 8}, {"labels": "0,1,2", "batch_size": 40},
    {"labels": "0,1", "algorithm": "correlated", "batch_size": 40}, {"labels": "0,1", "release": "epoch"},
    {"labels": "0,1", "batch_size": 5, "epochs": 30, "epsilon": 8},
)  # fmt: skip
"""Full batches with and without centring, batches, single records, passes in secret orders, and correlated noise."""


@pytest.mark.parametrize("given", RUNS, ids=str)
def test_equal_weights_train_the_model_without_weights_bit_for_bit(given: dict[str, Any], tmp_path: Path) -> None:
    path, found = str(tmp_path / "m.json"), []
    for weight in (None, (7, 7, 7)[: given["labels"].count(",") + 1], (1, 5, 9)[: given["labels"].count(",") + 1]):
        run = {"epsilon": 4, "delta": 1e-5, "seed": 3, "output": path, **given, "class_weight": weight}
        case = dpcalc.train(data=table(), **run).cases[0]
        model = load(path)
        assert (model.class_weights is None) == (weight is None)
        found.append((case.best.value, model.weights.tolist(), np.asarray(model.intercept).tolist()))
    assert found[0] == found[1]
    assert found[0][0] == found[2][0]  # the same noise
    assert found[0][1:] != found[2][1:]


@pytest.mark.parametrize("loss", [LOGISTIC, HINGE])
def test_a_step_on_one_record_has_its_weight(loss: Any) -> None:
    problem, ones = problem_of(loss), []
    sums, w = ExactSums(problem, BOUND, 1), np.array([2.0, -1.0, 0.5])
    sums.released = lambda total, noise: (ones.append(total), noise)[1]
    each = Stretch(0, np.arange(30)[:, np.newaxis], 30, 1, 1, ends_pass=False)
    still = each, np.zeros(30), np.full(30, 8.0), np.zeros((30, 3))
    sums.singly(*still).taken(w, np.ones(30), Ball())
    plan: Any = SimpleNamespace(clip=BOUND, norm=2, capped=False, columns=3)
    plain = PlainSums(plan, problem).singly(each, np.ones(30), np.zeros(30), np.zeros((30, 3)))
    moved = np.diff(np.vstack([w, plain.taken(w, np.ones(30), Ball())]), axis=0)
    assert len(ones) == 30
    for i, one in enumerate(ones):
        assert np.abs(one - sums.descent(w, np.array([i]))).max() <= sums.slope_unit
    iterate = w.copy()
    for i, step in enumerate(moved):
        assert step == pytest.approx(sums.descent(iterate, np.array([i])), abs=1e-5)
        iterate += step


@pytest.mark.parametrize(("loss", "capped"), [(LOGISTIC, False), (HINGE, False), (THREE, False), (THREE, True)])
def test_plain_sums_weigh_as_exact_ones_do(loss: Any, capped: bool) -> None:
    problem = problem_of(loss)
    plan: Any = SimpleNamespace(clip=BOUND, norm=2, capped=capped, columns=problem.shape[1])
    w = np.linspace(-2.0, 3.0, problem.shape[1])
    expected = ExactSums(problem, BOUND, 30, capped=capped).descent(w, None)
    plain = PlainSums(plan, problem)
    assert plain.descent(w, None) == pytest.approx(expected, abs=1e-4)
    if not loss.classified:
        two = np.column_stack([w, w])
        assert plain.descent(two, None)[:, 1] == pytest.approx(expected, abs=1e-4)
        rows = np.column_stack([np.arange(30), np.arange(30)[::-1]])
        assert plain.descent(two, rows)[:, 1] == pytest.approx(expected, abs=1e-4)


def test_predictions_follow_weights_and_probabilities_do_not(tmp_path: Path) -> None:
    """Weights of 1 to 9 predict the rare class from a probability of 0.1 on; the rare class is a tenth."""
    x, y = table(20000)
    path, chances, recalls = str(tmp_path / "m.json"), [], []
    for weight in (None, "balanced"):
        dpcalc.train(
            data=(x, y), labels="0,1", epsilon=20, delta=1e-5, output=path, class_weight=weight, class_shares="0.9,0.1"
        )
        predicting = predictor(load(path))
        scores = predicting.model.scores(x)
        chance, chosen = predicting.chances(scores), predicting.places(scores) == 1
        assert (chosen == (chance > (0.5 if weight is None else 1.0 / (1.0 + 9.0)))).mean() > 0.9999
        chances.append(float(chance.mean()))
        recalls.append(float(chosen[y > 0.0].mean()))
        above = predicting.above(0.3)
        assert ((above.places(scores) == 1) == (chance > 0.3)).mean() > 0.9999
    assert chances == pytest.approx([0.1, 0.1], abs=0.03)
    assert recalls[0] < 0.6
    assert recalls[1] > 0.8


def test_several_classes_have_the_probability_of_the_one_that_is_predicted(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    y = rng.choice(3, size=6000, p=[0.8, 0.15, 0.05]).astype(float)
    x = 0.4 * rng.standard_normal((6000, 2)) + np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.6]])[y.astype(int)]
    path = str(tmp_path / "m.json")
    dpcalc.train(
        data=(x, y), labels="0,1,2", epsilon=10, delta=1e-5, output=path, class_weight="balanced",
        class_shares="0.8,0.15,0.05",
    )  # fmt: skip
    predicting = predictor(load(path))
    scores = predicting.model.scores(x)
    odds = np.exp(scores) / np.array(load(path).class_weights)
    shares = odds / odds.sum(axis=1, keepdims=True)
    assert predicting.chances(scores) == pytest.approx(shares[np.arange(6000), scores.argmax(axis=1)])
    recall = [(predicting.places(scores) == k)[y == k].mean() for k in range(3)]
    assert min(recall) > 0.6


# --- what is written --------------------------------------------------------------------------------------------------


def test_shares_and_weights_are_in_the_model_its_card_and_the_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, card = tmp_path / "m.json", tmp_path / "m.card.json"
    line = f"train --data example:breast-cancer -e 1 -d 1e-5 -o {path} --class-weight sqrt --class-shares 64,36 -vv"
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert not stop.value.code
    assert "the shares of the classes, 0.64, 0.36, are assumed to be public" in " ".join(
        capsys.readouterr().out.split()
    )
    with pytest.raises(SystemExit):
        main(["model", str(path), "-v"])
    assert "classes count by weights of 0.75, 1" in " ".join(capsys.readouterr().out.split())
    stated = json.loads(card.read_text())["model"]
    model = load(str(path))
    assert tuple(stated["class_shares"]) == model.class_shares == (0.64, 0.36)
    assert tuple(stated["class_weights"]) == model.class_weights == (0.75, 1.0)
    for text, code in ((None, 0), (("0.75,", "0.5,"), 1)):
        if text is not None:
            path.write_text(path.read_text().replace(*text))
        with pytest.raises(SystemExit) as stop:
            main(["verify", str(card), "--model", str(path)])
        assert (stop.value.code or 0) == code


@pytest.mark.parametrize("wrong", [[1.0], [0.0, 1.0], [1.0, 2.0], ["a", 1.0], [1.0, 1.0, 1.0], 3])
def test_a_model_with_other_weights_is_refused(wrong: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    dpcalc.train(data=table(), labels="0,1", epsilon=1, delta=1e-5, output=str(path), class_weight="1,2")
    fields = json.loads(path.read_text())
    path.write_text(json.dumps({**fields, "class_weights": wrong}))
    with pytest.raises(SpecError, match="is not a model file"):
        load(str(path))


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_estimators_take_weights_as_scikit_learn_spells_them() -> None:
    from dpcalc.sklearn import DPClassifier

    x, y = table(4000)
    labels = np.where(y > 0.0, "yes", "no")
    given: dict[str, Any] = {"epsilon": 10.0, "classes": ("no", "yes"), "ranges": (-1.0, 1.0), "random_state": 1}
    with pytest.warns(dpcalc.errors.PrivacyWarning):
        models = [
            DPClassifier(**given, **more).fit(x, labels)
            for more in ({}, {"class_weight": "balanced", "class_shares": (0.9, 0.1)}, {"class_weight": {"yes": 9.0}})
        ]
    assert models[1].coef_ == pytest.approx(models[2].coef_, rel=1e-3)
    for model in models[1:]:
        assert ((model.predict_proba(x)[:, 1] > 0.1) == (model.predict(x) == "yes")).mean() > 0.999
        assert (model.predict(x) == "yes").mean() > 1.5 * (models[0].predict(x) == "yes").mean()
    with pytest.raises(SpecError, match="none of the classes"):
        DPClassifier(**given, class_weight={"maybe": 2.0}).fit(x, labels)


def test_a_setup_without_either_has_neither() -> None:
    assert Setup().weights(2) is Setup().shares(2) is None
