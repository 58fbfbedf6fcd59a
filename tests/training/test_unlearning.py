"""A model that forgets: what is certified is what two starts come to."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp

import dpcalc
from dpcalc.errors import DpcalcError, GateRefused, MissingParameter, NotApplicable, SpecError
from dpcalc.training.release.model import Model, load, save

DESCRIBED: dict[str, Any] = {"regularisation": 0.25, "radius": 3.0, "start_distance": 0.5, "clean_steps": 6}
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def model(path: Path, weights: list[float], intercept: float = 0.0, **more: Any) -> str:
    """A model of two columns, of rows within 1."""
    fields: dict[str, Any] = {
        "weights": np.array(weights), "intercept": intercept, "columns": ("a", "b"), "target": "y", "positive": None,
        "low": None, "high": None, "target_range": None, "bound": math.sqrt(0.75) if intercept else 1.0, "norm": 2,
        "loss": {"loss": "logistic", "feature_bound": 1.0}, "privacy": {"private": False},
    }  # fmt: skip
    save(Model(**{**fields, **more}), str(path))
    return str(path)


@pytest.fixture
def kept(tmp_path: Path) -> str:
    generator = np.random.default_rng(4)
    rows = generator.normal(size=(30, 2))
    text = "a,b,y\n" + "".join(f"{a},{b},{1 if a + b > 0 else -1}\n" for a, b in rows)
    (tmp_path / "kept.csv").write_text(text)
    return str(tmp_path / "kept.csv")


def flat(path: str) -> np.ndarray[Any, Any]:
    """The weights of a model, with that of the constant column where there is one."""
    found = load(path)
    constant = math.sqrt(1.0 - found.bound**2)
    return np.append(found.weights, found.intercept / constant if constant > 1e-6 else [])


def test_the_outcomes_of_two_starts_cannot_be_told_apart_better(kept: str, tmp_path: Path) -> None:
    """With the same noise two starts end within c^T Z, and the noise is what maps need that shrink by just c."""
    starts = ([0.2, -0.1], [0.2 + 0.3, -0.1 + 0.4])  # 0.5 apart
    ends = []
    for name, start in zip("pq", starts, strict=True):
        made = dpcalc.train(
            data=kept, unlearn=model(tmp_path / f"{name}.json", start), seed=7, output=str(tmp_path / f"{name}2.json"),
            **DESCRIBED, **BUDGET,
        )  # fmt: skip
        ends.append(flat(str(tmp_path / f"{name}2.json")))
    best = made.cases[0].best
    assert best is not None
    noise, eta = best.value, 1.0 / (0.25 + 0.25)
    shrunk = 1.0 - eta * 0.25
    assert float(np.linalg.norm(ends[0] - ends[1])) <= 0.5 * shrunk**6 * (1.0 + 1e-9)
    # The steps are no worse than maps that shrink by exactly that factor, whose law is a Gaussian.
    with mp.workdps(40):
        spread = eta * noise * mp.sqrt(sum(mp.mpf(shrunk) ** (2 * t) for t in range(6)))
        mu = mp.mpf("0.5") * mp.mpf(shrunk) ** 6 / spread
        delta = mp.ncdf(mu / 2 - 1 / mu) - mp.e * mp.ncdf(-mu / 2 - 1 / mu)
    assert best.details is not None
    told = best.details["floating_point"]
    assert delta + told["delta"] <= 1e-6
    assert delta + told["delta"] >= 0.999e-6
    assert told["delta"] < 0.0625e-6


def test_nothing_is_said_of_the_records_kept(kept: str, tmp_path: Path) -> None:
    path = str(tmp_path / "new.json")
    found = dpcalc.train(
        data=kept, unlearn=model(tmp_path / "old.json", [1.0, 1.0]), output=path, **DESCRIBED, **BUDGET
    )
    training = found.cases[0].training
    assert training is not None
    assert training["private"] is False
    assert "for the records kept it is no guarantee" in training["why_not_private"]
    assert not (tmp_path / "new.card.json").exists()
    stored = json.loads(Path(path).read_text())["privacy"]
    assert stored["private"] is False
    assert "no guarantee" in stored["why_not_private"]
    statement = " ".join(dpcalc.format_report(found, "statement").split())  # without the ends of its lines
    assert "NOT PRIVATE" in statement
    assert "-unlearning, as Sekhari et al. 2021 define it" in statement
    for text in (
        statement,
        stored["statement"],
        dpcalc.format_report(found, "table"),
        dpcalc.format_report(found, "markdown"),
    ):
        assert "differential" not in text
        assert "nobody can draw again" not in text


def test_the_certificate_alone_is_not_called_privacy(tmp_path: Path) -> None:
    found = dpcalc.unlearn(
        start_distance=0.02, contraction=0.99, step_size=0.1, noise_std=0.5, clean_steps=100, delta=1e-6
    )
    assert "differentially private" not in dpcalc.format_report(found, "statement")
    card = found.card()["cases"][0]
    assert "no differential privacy for the kept records" in card["guarantee"]["definition"]
    assert card["unit"]["in_words"] == "one record that was to be forgotten"


def test_weights_of_classes_are_those_of_the_model(kept: str, tmp_path: Path) -> None:
    """A step from 0 moves along the mean of the weighted gradients; a seed draws the same noise without weights."""
    table, ends = np.loadtxt(kept, delimiter=",", skiprows=1), []
    rows = table[:, :2] / np.maximum(1.0, np.linalg.norm(table[:, :2], axis=1))[:, np.newaxis]
    described = {**DESCRIBED, **BUDGET, "clean_steps": 1, "start_distance": 1e-3, "step_size": 1.0, "seed": 7}
    for weights in ((0.25, 1.0), None):
        old, new = model(tmp_path / "old.json", [0.0, 0.0], class_weights=weights), str(tmp_path / "new.json")
        training = dpcalc.train(data=kept, unlearn=old, output=new, **described).cases[0].training
        assert training is not None
        assert training.get("class_weights") == (None if weights is None else list(weights))
        ends.append(load(new))
        assert ends[-1].class_weights == weights
    fewer = np.where(table[:, 2] > 0.0, 0.0, -0.75) * 0.5 * table[:, 2]
    assert ends[0].weights - ends[1].weights == pytest.approx(fewer @ rows / 30, abs=2e-3)


def test_a_start_outside_of_the_ball_is_projected(kept: str, tmp_path: Path) -> None:
    path = str(tmp_path / "new.json")
    dpcalc.train(data=kept, unlearn=model(tmp_path / "old.json", [1e200, 1e200]), output=path, **DESCRIBED, **BUDGET)
    assert float(np.linalg.norm(flat(path))) <= 3.0 * (1.0 + 1e-9)


def test_the_model_says_how_rows_are_read(kept: str, tmp_path: Path) -> None:
    """An intercept, ranges and names of classes go on as they are."""
    low, high = np.array([-3.0, -3.0]), np.array([3.0, 3.0])
    old = model(tmp_path / "old.json", [0.5, 0.5], 0.25, low=low, high=high, positive="1", negative="-1")
    path = str(tmp_path / "new.json")
    dpcalc.train(data=kept, unlearn=old, output=path, **DESCRIBED, **BUDGET)
    before, after = load(old), load(path)
    for name in ("columns", "target", "positive", "negative", "norm", "levels", "missing"):
        assert getattr(before, name) == getattr(after, name)
    assert after.bound == pytest.approx(before.bound, rel=1e-15)
    assert (after.low == low).all()
    assert after.intercept != 0.0


def test_steps_are_many_enough_by_default(kept: str, tmp_path: Path) -> None:
    given = {name: value for name, value in DESCRIBED.items() if name != "clean_steps"}
    found = dpcalc.train(data=kept, unlearn=model(tmp_path / "old.json", [0.0, 1.0]), **given, **BUDGET)
    training = found.cases[0].training
    assert training is not None
    assert 0.5 ** (training["steps"] - 1) > 0.01 > 0.5 ** training["steps"] or training["steps"] == 10


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"clip": 1.0}, SpecError, "takes no clip"),
        ({"batch_size": 3}, SpecError, "takes no batch_size"),
        ({"algorithm": "noisy-sgd"}, SpecError, "takes no algorithm"),
        ({"loss": "squares"}, SpecError, "takes no loss"),
        ({"replicas": 3}, SpecError, "replicas"),
        ({"centre": True}, SpecError, "centre"),
        ({"labels": "a,b"}, SpecError, "follows from the model"),
        ({"target": "y"}, SpecError, "follows from the model"),
        ({"radius": None}, MissingParameter, "radius is not given"),
        ({"regularisation": None}, MissingParameter, "weight is not given"),
        ({"regularisation": 0.0}, SpecError, "weight is 0"),
        ({"start_distance": None}, MissingParameter, "how far"),
        ({"start_distance": 0.0}, SpecError, "nothing to forget"),
        ({"start": "minimiser"}, SpecError, "start"),
        ({"gradient_norm": 0.1}, SpecError, "gradient_norm"),
        ({"test_fraction": 0.2}, SpecError, "test_fraction"),
        ({"gates": ["epsilon<=1"]}, GateRefused, "records kept"),
        ({"step_size": 5.0}, NotApplicable, "2/smoothness"),
        ({"epsilon": None, "delta": None}, MissingParameter, "rounded"),
    ],
)
def test_what_is_not_covered_is_refused(
    kept: str, tmp_path: Path, change: dict[str, Any], error: type[Exception], says: str
) -> None:
    old = model(tmp_path / "old.json", [0.0, 1.0])
    with pytest.raises(error, match=says):
        dpcalc.train(**{"data": kept, "unlearn": old, **DESCRIBED, **BUDGET, **change})


@pytest.mark.parametrize(
    "more",
    [
        {"loss": {"loss": "hinge", "feature_bound": 1.0}}, {"loss": {"loss": "logistic"}}, {"norm": 1},
        {"bound": 2.0}, {"columns": ("a", "c")}, {"loss": {"loss": "logistic", "feature_bound": "1"}},
        {"loss": {"loss": "huber", "feature_bound": 1.0, "label_bound": 1.0, "huber_threshold": [1]}},
        {"intercept": 1e305, "bound": float(np.nextafter(1.0, 0.0))},
        {"centre": np.zeros(2), "scale": 1.0, "centred_bound": 1.0},
    ],
)  # fmt: skip
def test_models_that_do_not_fit_are_refused(kept: str, tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(DpcalcError):
        dpcalc.train(data=kept, unlearn=model(tmp_path / "old.json", [0.0, 1.0], **more), **DESCRIBED, **BUDGET)


def test_without_a_model_there_is_nothing_to_forget(kept: str) -> None:
    for name, value in (("start_distance", 0.1), ("clean_steps", 5)):
        with pytest.raises(SpecError, match="to forget records"):
            dpcalc.train(data=kept, labels="-1,1", **{name: value}, **BUDGET)
