"""A model that is measured privately by a share of its budget: what that costs, and that the number is right."""

import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.recipes.ledgers.ledger import read_ledger
from dpcalc.training.fit import _shared
from dpcalc.training.release import metrics
from dpcalc.training.run import single

CANCER = "example:breast-cancer"
GIVEN: dict[str, Any] = {"data": CANCER, "delta": 1e-5}


def never(*given: Any, **more: Any) -> None:
    raise AssertionError("something was computed")


@pytest.mark.parametrize("share", ["5%", 0.05, "1/20"])
def test_the_model_has_the_noise_of_what_is_left(share: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "measure", never)
    case = dpcalc.train(**GIVEN, epsilon=1, evaluate_share=share).cases[0]
    alone = dpcalc.train(**GIVEN, epsilon=0.95).cases[0]
    assert case.best.value == alone.best.value  # type: ignore[union-attr]
    assert case.epsilon == 0.95
    found = case.training["evaluation"]  # type: ignore[index]
    assert (found["epsilon"], found["delta"], found["epsilon_with_model"]) == (0.05, 0.0, 1)
    assert "uncovered" not in case.training  # type: ignore[operator]


@pytest.mark.parametrize("epsilon", [1.0, 0.3, 0.1, 2.123456789012345, 7.0, 1 / 3])
@pytest.mark.parametrize("share", ["5%", "1/3", 0.123456, 0.5])
def test_the_two_epsilons_never_exceed_the_budget(epsilon: float, share: Any) -> None:
    from dpcalc.model.question import Question
    from dpcalc.training.rule.setup import Setup, Task

    parted = _shared(Task({}, Question(epsilon, 1e-5, -11.5), Setup(evaluate_share=share)))
    measured, whole = parted.setup.evaluate_epsilon or (0.0, 0.0)
    rest = parted.question.epsilon or 0.0
    assert Fraction(repr(measured)) + Fraction(repr(rest)) <= Fraction(repr(whole)) == Fraction(repr(epsilon))
    assert measured + rest == pytest.approx(epsilon, rel=1e-9)


def test_a_share_that_leaves_the_model_nothing_is_refused() -> None:
    with pytest.raises(dpcalc.SpecError, match="leaves none for the model"):
        dpcalc.train(**GIVEN, epsilon=1, evaluate_share=0.99999)


def test_the_accuracy_is_that_of_the_model_where_noise_is_small(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    case = dpcalc.train(**GIVEN, epsilon=30, evaluate_share=0.5, output=str(path)).cases[0]
    found = case.training["evaluation"]["metrics"]["accuracy"]  # type: ignore[index]
    exact = dpcalc.evaluate(str(path), CANCER)["metrics"]["accuracy"]
    assert found["value"] == pytest.approx(exact, abs=1e-9)
    assert found["low"] <= exact <= found["high"]


def test_several_classes_and_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, (900, 2))
    path = str(tmp_path / "m.json")
    given: dict[str, Any] = {"epsilon": 40, "delta": 1e-5, "evaluate_share": 0.5, "output": path, "seed": 1}
    places = np.digitize(x[:, 0], [-0.3, 0.3])
    case = dpcalc.train(data=(x, places), labels="0,1,2", **given).cases[0]
    found = case.training["evaluation"]["metrics"]["accuracy"]["value"]  # type: ignore[index]
    assert found == pytest.approx(dpcalc.evaluate(path, (x, places))["metrics"]["accuracy"], abs=1e-9)
    y = 5.0 + 4.0 * x[:, 0] + 0.1 * rng.standard_normal(900)
    case = dpcalc.train(data=(x, y), target_range=(0, 10), **given).cases[0]
    told: Any = case.training["evaluation"]  # type: ignore[index]
    exact = dpcalc.evaluate(path, (x, y))["metrics"]
    assert told["error_bound"] == 10.0
    for name in ("rmse", "mae"):
        assert told["metrics"][name]["low"] <= exact[name] <= told["metrics"][name]["high"]


def test_the_interval_holds_as_often_as_it_says(tmp_path: Path) -> None:
    """Of seeded models, whose exact accuracy is asked for beside it: 95 % of 60, less five standard deviations."""
    held = 0
    for seed in range(60):
        training: Any = dpcalc.train(
            **GIVEN, epsilon=1, evaluate_share=0.3, seed=seed, show_unprotected_metrics=True, steps=3, centre=False
        ).cases[0].training  # fmt: skip
        exact = training["uncovered"]["metrics"]["train"]["accuracy"]
        found = training["evaluation"]["metrics"]["accuracy"]
        held += found["low"] <= exact <= found["high"]
    assert held >= 57 - 5 * 1.7


def test_test_records_are_measured_with_noise_alone() -> None:
    training: Any = dpcalc.train(**GIVEN, epsilon=1, evaluate_share="5%", test_fraction=0.2).cases[0].training
    assert (training["evaluation"]["on"], training["evaluation"]["records"]) == ("test", 114)
    assert "uncovered" not in training


def test_model_and_measurement_are_charged_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.yaml"
    head = "dpcalc: ledger/1\nadjacency: replace-one\nbudget: {epsilon: 0.99, delta: 1e-5}\n"
    path.write_text(head)
    given = {**GIVEN, "epsilon": 1, "evaluate_share": "5%", "ledger": path}
    case = dpcalc.train(**given).cases[0]
    entries = {entry.name: dict(entry.given) for entry in read_ledger(str(path))[0].entries}
    assert entries["evaluation"] == {"epsilon": 0.05}
    assert entries["train"]["mu"] == case.best.details["floating_point"]["mu"]  # type: ignore[index,union-attr]
    before = path.read_bytes()
    monkeypatch.setattr(single, "train", never)
    with pytest.raises(dpcalc.GateFailed, match="with train-2 and evaluation-2, 4 releases cost"):
        dpcalc.train(**given)
    assert path.read_bytes() == before
    account = dpcalc.Accountant(epsilon=0.98, delta=1e-6)
    with pytest.raises(dpcalc.GateFailed):
        dpcalc.train(**{**given, "ledger": account})
    assert account.entries == {}


@pytest.mark.parametrize(("more", "message"), [
    ("--evaluate-share 0", "above 0 and below 1"), ("--evaluate-share 120%", "above 0 and below 1"),
    ("--evaluate-share x", "above 0 and below 1"), ("--evaluate-share 5% --replicas 3", "leave out --evaluate-share"),
    ("--evaluate-share 5% --tune clip=0.1,0.2", "leave out --evaluate-share"),
    ("--evaluate-share 5% --sigma 1", "noise_std is given"), ("--evaluate-share 1e-9", "from 1e-06 to 1000"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(
    more: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single, "train", never)
    with pytest.raises(SystemExit) as ended:
        main(["train", "--data", CANCER, "-e", "1", "-d", "1e-5", *more.split()])
    assert ended.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_every_format_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for form in ("plain", "csv", "json", "markdown"):
        with pytest.raises(SystemExit):
            main(["train", "--data", CANCER, "-e", "1", "-d", "1e-5", "--evaluate-share", "5%", "--format", form])
        shown[form] = capsys.readouterr().out
    assert "private: accuracy " in shown["plain"]
    assert "epsilon = 0.05, with the model 1" in " ".join(shown["plain"].split())
    assert "private: accuracy " in shown["markdown"]
    [row] = csv.DictReader(io.StringIO(shown["csv"]))
    assert 0.0 <= float(row["private_accuracy_low"]) <= float(row["private_accuracy"]) <= 1.0
    assert json.loads(shown["json"])["cases"][0]["training"]["evaluation"]["confidence"] == 0.95
    assert len(shown["plain"].splitlines()) <= 10
