"""A model file gives back what was trained, and nothing in it is evaluated."""

import json
from pathlib import Path

import numpy as np
import pytest

from dpcalc.errors import SpecError
from dpcalc.training.data import bounds as bounding
from dpcalc.training.data import ranges as ranges_of
from dpcalc.training.data import tables
from dpcalc.training.release.model import Model, load, save

MODEL = Model(
    weights=np.array([0.1, -2.0]), intercept=0.25, columns=("a", "b"), target="y", positive="yes",
    low=np.array([0.0, -1.0]), high=np.array([2.0, 3.0]), target_range=None, bound=0.7, norm=2,
    loss={"loss": "logistic"}, privacy={"private": True, "epsilon": 1.0, "delta": 1e-6},
)  # fmt: skip


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_a_model_comes_back_as_it_was(tmp_path: Path, ending: str) -> None:
    path = str(tmp_path / f"m.{ending}")
    save(MODEL, path)
    loaded = load(path)
    for name, value in MODEL._asdict().items():
        assert (
            np.array_equal(getattr(loaded, name), value)
            if isinstance(value, np.ndarray)
            else (getattr(loaded, name) == value)
        )
    released = np.array([[0.5, 1.0, 0.0], [0.1, -2.0, 0.25]])
    save(MODEL._replace(negative="no", released=released), path)
    assert np.array_equal(load(path).released, released)  # type: ignore[arg-type]
    assert load(path).negative == "no"
    save(MODEL._replace(low=None, high=None, target_range=(0.0, 2.0)), path)
    assert load(path).low is None
    assert load(path).target_range == (0.0, 2.0)
    assert [entry.name for entry in tmp_path.iterdir()] == [f"m.{ending}"]


def test_scores_treat_rows_as_training_did() -> None:
    rows = np.random.default_rng(6).standard_normal((200, 3)) * 4.0
    rows[:, -1] = np.arange(200) % 2
    rows[0, 0], rows[1, 1], rows[2, 0], rows[3, 0] = np.nan, -np.inf, 1e300, -1.7e308
    raw = rows[:, :-1].copy()
    ranges = ranges_of.Ranges(MODEL.low, MODEL.high, None)  # type: ignore[arg-type]
    ready = bounding.prepared(tables.Table(rows, ("a", "b", "y")), feature_bound=1.0, label_bound=None, signed=True,
                          ranges=ranges, intercept=True)  # fmt: skip
    constant = bounding.intercept_of(1.0)
    weights = np.array([0.1, -2.0, 3.0])
    model = MODEL._replace(bound=constant, intercept=3.0 * constant)
    assert model.scores(raw) == pytest.approx(ready.features @ weights, rel=1e-9)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"written to a \.json or \.npz file"):
        save(MODEL, str(tmp_path / "m.pkl"))
    with pytest.raises(SpecError, match="no such folder"):
        save(MODEL, str(tmp_path / "none" / "m.json"))
    with pytest.raises(SpecError, match="cannot read"):
        load(str(tmp_path / "m.json"))
    good = tmp_path / "m.json"
    save(MODEL, str(good))
    described = json.loads(good.read_text())
    for wrong in ("{}", "[]", "no", json.dumps({**described, "schema": "other/1"}), json.dumps({**described, "x": 1})):
        good.write_text(wrong)
        with pytest.raises(SpecError, match="not a model file"):
            load(str(good))
    changed = (
        {"weights": [1.0]}, {"weights": [[1.0], [2.0]]}, {"weights": ["nan", 1.0]}, {"columns": [1, 2]},
        {"target": None}, {"positive": 1}, {"low": None}, {"low": [9e9, 9e9]}, {"high": [1.0]}, {"target_range": [1.0]},
        {"target_range": [2.0, 1.0]}, {"target_range": [1.0, 1.0]}, {"target_range": ["-inf", 1.0]},
        {"bound": 0.0}, {"bound": "inf"}, {"norm": 3}, {"intercept": None}, {"intercept": "inf"}, {"loss": []},
        {"privacy": "all of it"}, {"negative": 1}, {"released": [[0.1, -2.0]]}, {"released": []},
        {"released": [0.1, -2.0, 0.25]}, {"released": [["nan", 0.0, 0.0], [0.1, -2.0, 0.25]]},
    )  # fmt: skip
    for wrong_field in changed:
        good.write_text(json.dumps({**described, **wrong_field}))
        with pytest.raises(SpecError, match="not a model file"):
            load(str(good))
    for number in ("NaN", "-Infinity", "1e999"):
        good.write_text(json.dumps({**described, "privacy": "here"}).replace('"here"', f'{{"epsilon": {number}}}'))
        with pytest.raises(SpecError, match="not a model file"):
            load(str(good))
    good.write_text("[" * 100_000)
    with pytest.raises(SpecError, match="not a model file"):
        load(str(good))
    np.savez(tmp_path / "m.npz", weights=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(SpecError, match="not a model file"):
        load(str(tmp_path / "m.npz"))
