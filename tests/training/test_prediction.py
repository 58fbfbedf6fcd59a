"""What a model says of rows, read from every kind of file some rows at a time."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcalc.errors import SpecError
from dpcalc.training.data import readers
from dpcalc.training.data.cells import NUMBERS
from dpcalc.training.data.tables import rows_of
from dpcalc.training.release.model import Model
from dpcalc.training.release.prediction import predicted, predictor, write_csv
from tests.training.test_model import MODEL

REGRESSION = MODEL._replace(
    positive=None, target_range=(10.0, 30.0), loss={"loss": "squares", "label_bound": 2.0}, columns=("b", "a")
)
CELLS = np.array([[0.5, 1.0, 3.0], [2.0, -1.0, 4.0], [1.25, 0.5, 5.0]])


def expected(model: Model, a: float, b: float) -> float:
    """Return a score, written out."""
    raw = {"a": a, "b": b}
    assert model.low is not None
    assert model.high is not None
    x = [
        (raw[name] - (low + high) / 2) / ((high - low) / 2) if math.isfinite(raw[name]) else 0.0
        for name, low, high in zip(model.columns, model.low, model.high, strict=True)
    ]
    size = math.hypot(*x)
    shrunk = min(1.0, model.bound / size) if size else 1.0
    return float(sum(w * shrunk * each for w, each in zip(model.weights, x, strict=True)) + model.intercept)


def written(tmp_path: Path, kind: str) -> str:
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        lines = ["c,b,extra,a", *(f"{c},{b},some word,{a}" for a, b, c in CELLS)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif kind == "npy":
        fields = np.zeros(len(CELLS), dtype=[("c", float), ("b", float), ("a", float), ("extra", "U3")])
        fields["a"], fields["b"], fields["c"] = CELLS.T
        np.save(path, fields)
    else:
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        columns = {"c": CELLS[:, 2], "b": CELLS[:, 1], "extra": ["x"] * len(CELLS), "a": CELLS[:, 0]}
        parquet.write_table(arrow.table(columns), path)
    return str(path)


@pytest.mark.parametrize("kind", ["csv", "npy", "parquet"])
@pytest.mark.parametrize("model", [MODEL, REGRESSION], ids=["classes", "regression"])
def test_columns_are_found_by_name_in_any_order(tmp_path: Path, kind: str, model: Model) -> None:
    path = written(tmp_path, kind)
    found = np.concatenate([scores for scores, _ in model.scored(path)])
    assert found == pytest.approx([expected(model, a, b) for a, b, _ in CELLS], rel=1e-12)
    named = model._replace(target="c")
    targets = np.concatenate([targets for _, targets in named.scored(path, target=True)])
    assert targets.tolist() == ([-1.0, -1.0, -1.0] if model is MODEL else CELLS[:, 2].tolist())


def test_matrices_have_numbers_for_names(tmp_path: Path) -> None:
    model = MODEL._replace(columns=("3", "1"), target="2", positive="-1")
    np.save(tmp_path / "m.npy", CELLS)
    [(scores, targets)] = model.scored(str(tmp_path / "m.npy"), target=True)
    swapped = model._replace(columns=("a", "b"))
    assert scores == pytest.approx([expected(swapped, c, a) for a, _, c in CELLS], rel=1e-12)
    assert targets.tolist() == [-1.0, 1.0, -1.0]
    np.savez(tmp_path / "m.npz", X=CELLS, y=np.array([-1, 1, -1]))
    [(same, marked)] = model._replace(target="y").scored(str(tmp_path / "m.npz"), target=True)
    assert same.tolist() == scores.tolist()
    assert marked.tolist() == [1.0, -1.0, 1.0]
    np.savez(tmp_path / "only.npz", X=CELLS)
    [(same, _)] = model.scored(str(tmp_path / "only.npz"))
    assert same.tolist() == scores.tolist()
    [(same, _)] = model.scored(CELLS[:, [2, 0]])
    assert same.tolist() == scores.tolist()


def test_blocks_are_the_rows_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_BLOCK", 16)
    cells = np.arange(60.0).reshape(30, 2)
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in cells), encoding="utf-8")
    np.save(tmp_path / "long.npy", cells)
    np.savez(tmp_path / "long.npz", X=cells)
    for name, names in (("long.csv", ("a", "b")), ("long.npy", ("1", "2")), ("long.npz", ("1", "2"))):
        found = list(rows_of(str(tmp_path / name), names, (NUMBERS, NUMBERS)))
        assert len(found) >= 4
        assert np.concatenate(found).tolist() == cells.tolist()


def test_a_cell_that_is_no_number_counts_as_in_training(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("a,b\n,1\nword,nan\n1e400,2\n1\n1,2,3\n\n", encoding="utf-8")
    found = np.concatenate([scores for scores, _ in MODEL.scored(str(path))])
    nan = math.nan
    wanted = [(nan, 1.0), (nan, nan), (nan, 2.0), (nan, nan), (nan, nan), (nan, nan)]
    assert found == pytest.approx([expected(MODEL, a, b) for a, b in wanted], rel=1e-12)


def written_csv(model: Model, source: Any) -> list[dict[str, str]]:
    pieces: list[str] = []
    count = write_csv(predictor(model), source, pieces.append)
    read = list(csv.DictReader("".join(pieces).splitlines()))
    assert len(read) == count
    return read


def test_predictions_are_classes_and_probabilities() -> None:
    read = written_csv(MODEL._replace(negative="no"), CELLS[:, :2])
    for (a, b, _), row in zip(CELLS, read, strict=True):
        z = expected(MODEL, a, b)
        assert row["prediction"] == ("yes" if z > 0 else "no")
        assert float(row["probability"]) == pytest.approx(1.0 / (1.0 + math.exp(-z)), rel=1e-12)
    both = np.concatenate([CELLS[:, :2], [[2.0, 3.0]]])
    assert {row["prediction"] for row in written_csv(MODEL, both)} == {"yes", "not yes"}
    unnamed = written_csv(MODEL._replace(positive=None, loss={"loss": "hinge"}), CELLS[:, :2])
    assert [row["prediction"] for row in unnamed] == ["1" if float(row["score"]) > 0 else "-1" for row in unnamed]


def test_a_threshold_moves_predictions_and_no_probability(tmp_path: Path) -> None:
    model, path = MODEL._replace(loss={"loss": "logistic"}), written(tmp_path, "csv")
    [plain] = predicted(predictor(model), path)
    for threshold in (0.1, 0.5, 0.9):
        [found] = predicted(predictor(model).above(threshold), path)
        assert (found["probability"] == plain["probability"]).all()
        names = predictor(model).classes
        assert names is not None
        assert found["prediction"].tolist() == [names[p > threshold] for p in plain["probability"].tolist()]
    for other, given in ((REGRESSION, 0.5), (model, 0.0), (model, 1.0), (model, math.nan)):
        with pytest.raises(SpecError, match="threshold"):
            predictor(other).above(given)


def test_predictions_of_a_regression_are_in_the_units_of_the_target() -> None:
    """A target of 10 was trained on as -2, and one of 30 as 2."""
    read = written_csv(REGRESSION, CELLS[:, [1, 0]])
    wanted = [20.0 + 5.0 * expected(REGRESSION, a, b) for a, b, _ in CELLS]
    assert [float(row["prediction"]) for row in read] == pytest.approx(wanted, rel=1e-12)
    bare = written_csv(REGRESSION._replace(target_range=None), CELLS[:, [1, 0]])
    assert [float(row["prediction"]) for row in bare] == pytest.approx(
        [expected(REGRESSION, a, b) for a, b, _ in CELLS], rel=1e-12
    )


def test_a_label_that_a_spreadsheet_would_run_is_text() -> None:
    read = written_csv(MODEL._replace(positive="=cmd()", negative="a,b\n::error::"), CELLS[:, :2])
    assert {row["prediction"] for row in read} <= {"'=cmd()", "a,b\\n::error::"}


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    for text, message in (
        ("a,c\n1,2\n", "no column 'b', which the model needs"), ("a,b,a\n1,2,3\n", "'a' is given twice"),
        ("1,2\n1,2\n", "the first line holds numbers"),
    ):  # fmt: skip
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SpecError, match=message):
            list(MODEL.scored(str(path)))
    with pytest.raises(SpecError, match="unknown kind of data file"):
        list(MODEL.scored("rows.txt"))
    with pytest.raises(SpecError, match=r"rows have shape \(3, 3\)"):
        list(MODEL.scored(CELLS))
    np.save(tmp_path / "w.npy", np.array([("x", 1.0)], dtype=[("a", "U1"), ("b", float)]))
    with pytest.raises(SpecError, match="'a' holds texts"):
        list(MODEL.scored(str(tmp_path / "w.npy")))
    (tmp_path / "bad.npz").write_bytes(b"PK")
    with pytest.raises(SpecError, match="not a readable"):
        list(MODEL.scored(str(tmp_path / "bad.npz")))
    losses: tuple[dict[str, Any], ...] = ({}, {"loss": "none"}, {"loss": ["squares"]})
    for loss in losses:
        with pytest.raises(SpecError, match="loss is not known"):
            predictor(MODEL._replace(loss=loss))
    for bound in ("2", -1.0, [1]):
        with pytest.raises(SpecError, match="label bound"):
            predictor(REGRESSION._replace(loss={"loss": "squares", "label_bound": bound}))


def test_columns_of_words_are_read_by_the_levels_of_the_model(tmp_path: Path) -> None:
    """A column of words is a column for each level; an empty cell counts as the level that stands for it."""
    model = MODEL._replace(
        columns=("colour", "a"), low=np.array([-1.0, 0.0]), high=np.array([1.0, 2.0]), bound=10.0,
        weights=np.array([2.0, -3.0, 5.0]), levels={"colour": ["red", "7"]}, missing={"colour": "red", "a": 1.5},
    )  # fmt: skip
    path = tmp_path / "words.csv"
    path.write_text('a,colour\n0.5,red\n,7.0\n1,blue\nx,\n1,"7"\n', encoding="utf-8")
    read = np.concatenate([scores for scores, _ in model.scored(str(path))])
    wanted = [2.0 + 5.0 * -0.5, -3.0 + 5.0 * 0.5, 0.0, 2.0 + 5.0 * 0.5, -3.0]
    assert read == pytest.approx(np.array(wanted) + model.intercept, rel=1e-12)
    last = model._replace(columns=("a", "colour"), weights=np.array([5.0, 2.0, -3.0]), low=np.array([0.0, -1.0]),
                          high=np.array([2.0, 1.0]))  # fmt: skip
    assert np.concatenate([scores for scores, _ in last.scored(str(path))]).tolist() == read.tolist()
    rows_as_objects = [["red", 0.5], [7, None], ["blue", 1], ["", "x"], ["7", 1.0]]
    [(found, _)] = model.scored(rows_as_objects)
    assert found.tolist() == read.tolist()
