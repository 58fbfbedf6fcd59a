"""What is said of fits that their guarantee does not cover, and of several fits to the same records."""

import copy
import csv
import importlib.util
import io
import json
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.errors import PrivacyWarning

needs_sklearn = pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")
ROWS = np.linspace(-1.0, 1.0, 60).reshape(30, 2)
LABELS = np.arange(30) % 2


@pytest.fixture
def sklearn() -> Iterator[Any]:
    """The estimators, in a process that has not fitted any."""
    import dpcalc.sklearn
    from dpcalc.training.rule import account

    before = set(account._fitted), list(account._warned)
    account._fitted.clear()
    account._warned.clear()
    yield dpcalc.sklearn
    account._fitted.update(before[0])
    account._warned[:] = before[1]


def private(sklearn: Any, **given: Any) -> Any:
    return sklearn.DPClassifier(epsilon=2.0, classes=(0, 1), ranges=(-1.0, 1.0), **given)


def gdp_delta(epsilon: float, mu: float) -> float:
    """Return delta of mu-GDP, by scipy's normal law."""
    from scipy.stats import norm

    return float(norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2))


def gdp_mu(epsilon: float, delta: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(lambda mu: gdp_delta(epsilon, mu) - delta, 0.01, 10.0))


def said(action: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [each for each in found if issubclass(each.category, PrivacyWarning)]


# ---- one fit ---------------------------------------------------------------------------------------------------------


@needs_sklearn
def test_a_fit_with_public_parameters_says_nothing(sklearn: Any) -> None:
    model = private(sklearn)
    assert said(lambda: model.fit(ROWS, LABELS)) == []
    assert model.private_
    assert model.privacy_.cases[0].best.guarantee


@needs_sklearn
@pytest.mark.filterwarnings("always")
def test_a_fit_warns_of_a_class_that_is_too_rare(sklearn: Any) -> None:
    model = private(sklearn)
    warned = []
    for shares in ((0.999, 0.001), (0.5, 0.5)):
        model.set_params(class_shares=shares, epsilon=8.0)
        texts = [str(one.message) for one in said(lambda: model.fit(ROWS, LABELS))]
        warned.append(any("kappa of the rarest class" in text for text in texts))
    assert warned == [True, False]
    with pytest.raises(dpcalc.SpecError, match="shares of the classes"):
        model.set_params(class_shares=(1.0,)).fit(ROWS, LABELS)


@needs_sklearn
@pytest.mark.parametrize(
    ("wrong", "because"), [({"classes": None}, "taken from the records"), ({"random_state": 1}, "seed")]
)
def test_a_fit_that_is_not_covered_warns_and_promises_nothing(sklearn: Any, wrong: Any, because: str) -> None:
    model = private(sklearn).set_params(**wrong)
    [warning] = said(lambda: model.fit(ROWS, LABELS))
    assert because in str(warning.message)
    assert warning.filename == __file__
    assert not model.private_
    assert not any(result.guarantee for result in model.privacy_.cases[0].results)
    assert "upper" not in dpcalc.format_report(model.privacy_, "csv")


@needs_sklearn
def test_values_outside_the_ranges_warn_with_the_same_words_whatever_they_are(sklearn: Any) -> None:
    messages = set()
    for value, place in ((1.5, (0, 0)), (-1e300, (7, 1))):
        rows = ROWS.copy()
        rows[place] = value
        model = private(sklearn, accountant=sklearn.Accountant(), show_unprotected_metrics=True)
        [warning] = said(lambda rows=rows, model=model: model.fit(rows, LABELS))
        assert warning.category is sklearn.OutsideRangesWarning
        assert model.private_
        messages.add(str(warning.message))
    assert len(messages) == 1
    assert "no guarantee covers" in messages.pop()
    numbers = sklearn.DPRegressor(
        target_range=(0.0, 5.0), accountant=sklearn.Accountant(), show_unprotected_metrics=True
    )
    assert len(said(lambda: numbers.fit(ROWS, np.arange(30.0)))) == 1
    assert len(said(lambda: numbers.fit(ROWS, list(range(30))))) == 1
    assert said(lambda: numbers.fit(ROWS, np.linspace(0.0, 5.0, 30))) == []


@needs_sklearn
def test_a_regression_without_a_target_range_is_refused(sklearn: Any) -> None:
    with pytest.raises(dpcalc.SpecError, match="target range is not given"):
        sklearn.DPRegressor().fit(ROWS, np.arange(30.0))


# ---- what surrounds it -----------------------------------------------------------------------------------------------


@needs_sklearn
def test_the_second_fit_in_a_process_warns(sklearn: Any) -> None:
    assert said(lambda: private(sklearn).fit(ROWS, LABELS)) == []
    [warning] = said(lambda: private(sklearn).fit(ROWS[:20], LABELS[:20]))
    assert "one account (dpcalc.Accountant" in str(warning.message)
    assert said(lambda: private(sklearn).fit(ROWS[:20], LABELS[:20])) == []  # once
    assert said(lambda: private(sklearn).fit(ROWS[:, :1], LABELS)) == []
    assert said(lambda: private(sklearn, accountant=sklearn.Accountant()).fit(ROWS, LABELS)) == []


@needs_sklearn
def test_searches_and_cross_validation_are_noticed(sklearn: Any) -> None:
    from sklearn.model_selection import GridSearchCV, cross_val_score

    found = said(lambda: cross_val_score(private(sklearn), ROWS, LABELS, cv=3))
    assert len(found) == 3
    assert all("several models" in str(each.message) for each in found)
    search = GridSearchCV(private(sklearn), {"epsilon": [1.0, 2.0]}, cv=2)
    assert len(said(lambda: search.fit(ROWS, LABELS))) == 5
    best = search.best_estimator_
    assert not best.private_
    assert not best.privacy_.cases[0].best.guarantee
    assert "GridSearchCV" in best.why_not_private_


@needs_sklearn
def test_steps_of_a_pipeline_that_look_at_the_records_are_noticed(sklearn: Any) -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

    scaled = make_pipeline(StandardScaler(), private(sklearn))
    messages = [str(each.message) for each in said(lambda: scaled.fit(ROWS, LABELS))]
    assert "standardscaler" in messages[0]
    assert not scaled[-1].private_
    fixed = make_pipeline(Normalizer(), FunctionTransformer(), private(sklearn))
    assert said(lambda: fixed.fit(ROWS, LABELS)) == []
    assert fixed[-1].private_


# ---- the accountant --------------------------------------------------------------------------------------------------


@needs_sklearn
def test_an_accountant_adds_fits_up_and_refuses_before_training(sklearn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpcalc.training.run import single

    trained, train = [], single.train
    monkeypatch.setattr(single, "train", lambda *given, **more: (trained.append(1), train(*given, **more))[1])
    account = sklearn.Accountant(epsilon=2.8, delta=1e-4)
    model = private(sklearn, accountant=account)
    model.fit(ROWS, LABELS).fit(ROWS, LABELS)
    with pytest.raises(dpcalc.GateFailed, match="3 releases"):
        model.fit(ROWS, LABELS)
    assert len(trained) == len(account.entries) == 2
    total = account.report().cases[0].best
    mu = 2**0.5 * gdp_mu(2.0, 1e-5)
    assert pytest.approx(gdp_delta(total.epsilon, mu), rel=2e-3) == 1e-4  # type: ignore[union-attr]


@needs_sklearn
def test_the_copies_of_a_search_share_the_accountant(sklearn: Any) -> None:
    from sklearn.model_selection import cross_val_score

    account = sklearn.Accountant(delta=1e-3)
    said(lambda: cross_val_score(private(sklearn, accountant=account), ROWS, LABELS, cv=3))
    assert list(account.entries) == ["train", "train-2", "train-3"]
    with pytest.raises(dpcalc.SpecError, match="one process"):
        pickle.dumps(private(sklearn, accountant=account))


def test_an_accountant_refuses_what_its_delta_cannot_hold() -> None:
    account = dpcalc.Accountant(epsilon=100.0, delta=1e-6)
    with pytest.raises(dpcalc.GateFailed, match="deltas of the entries"):
        account.charge("model", epsilon=0.1, delta=1e-5)
    assert account.entries == {}
    assert copy.deepcopy(account) is copy.copy(account) is account
    account.charge("count", epsilon=0.5)
    assert account.report(1e-9).cases[0].best.epsilon == pytest.approx(0.5)  # type: ignore[union-attr]


@pytest.mark.parametrize("wrong", [{"epsilon": 1.0}, {"epsilon": -1.0, "delta": 1e-5}, {"delta": 2.0}])
def test_an_accountant_without_a_budget_that_makes_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(dpcalc.SpecError):
        dpcalc.Accountant(**wrong)


# ---- the command -----------------------------------------------------------------------------------------------------


def exit_code(line: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    return int(ended.value.code or 0)


TRAIN = "train --data example:breast-cancer --radius 5 --steps 20 -e 1 -d 1e-5"


@pytest.mark.parametrize("seeded", ["--seed 1", "--replicas 2"])
def test_train_promises_no_number_that_its_seed_breaks(seeded: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(f"{TRAIN} {seeded} --json") == 0
    report = json.loads(capsys.readouterr().out)
    kinds = {row["kind"] for row in report["cases"][0]["results"]}
    assert "conditional" in kinds
    assert not kinds & {"upper", "exact"}
    assert exit_code(f"{TRAIN} {seeded} --format csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["kind"] for row in rows} == kinds
    assert exit_code(f"{TRAIN} {seeded} --assert noise_std<=100") == 1


def test_train_without_a_seed_promises(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(f"{TRAIN} --json") == 0
    assert json.loads(capsys.readouterr().out)["cases"][0]["results"][0]["kind"] == "upper"
