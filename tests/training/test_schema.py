"""Columns by public words: intervals, levels and missing cells, in training and in prediction alike."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.errors import SpecError
from dpcalc.training.data import ranges as ranges_of
from dpcalc.training.data import tables
from dpcalc.training.data.cells import Labels, Levels
from dpcalc.training.data.schema import read_schema
from dpcalc.training.release.model import load

SCHEMA = """
columns:
  age: {low: 0, high: 100, missing: 25}
  colour: {levels: [red, green, 3], missing: green}
  size: {low: -1, high: 1}
  city: {levels: [Ulm]}
"""
ROWS = [
    # age, colour, size, city -> features
    (("50", "red", "1", "Ulm"), (0.0, 1, 0, 0, 1.0, 1)),
    (("", "blue", "", "Bonn"), (-0.5, 0, 0, 0, 0.0, 0)),
    (("x", "", "-1", ""), (-0.5, 0, 1, 0, -1.0, 0)),
    (("100", " 3.0 ", "0.5", " Ulm"), (1.0, 0, 0, 1, 0.5, 1)),
]  # fmt: skip


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def table(folder: Path, rows: Any, ending: str = ".csv") -> str:
    lines = "\n".join(",".join((*cells, str(k % 2))) for k, cells in enumerate(rows))
    return written(folder, f"t{ending}", f"age,colour,size,city,y\n{lines}\n")


def encoded(path: str, schema: str) -> np.ndarray:
    declared = read_schema(schema)
    read = tables.read(path, words=declared.words)
    features, _ = ranges_of.encode(read.cells[:, :-1].copy(), declared.ranges(read.names))
    return features


def test_cells_become_features(tmp_path: Path) -> None:
    path, schema = table(tmp_path, [cells for cells, _ in ROWS]), written(tmp_path, "s.yaml", SCHEMA)
    expected = [features for _, features in ROWS]
    assert encoded(path, schema).tolist() == [list(map(float, row)) for row in expected]
    quoted = table(tmp_path, [(f'"{a}"', f'"{b}"', c, d) for (a, b, c, d), _ in ROWS])  # read cell by cell
    assert encoded(quoted, schema).tolist() == [list(map(float, row)) for row in expected]


def test_json_says_the_same(tmp_path: Path) -> None:
    columns = {
        "age": {"low": 0, "high": 100, "missing": 25}, "colour": {"levels": ["red", "green", 3], "missing": "green"},
        "size": {"low": -1, "high": 1}, "city": {"levels": ["Ulm"]},
    }  # fmt: skip
    path = table(tmp_path, [cells for cells, _ in ROWS])
    one, two = written(tmp_path, "s.yaml", SCHEMA), written(tmp_path, "s.json", json.dumps({"columns": columns}))
    assert np.array_equal(encoded(path, one), encoded(path, two))


def test_numbers_stand_for_levels() -> None:
    rule = Levels(("1", "2.5", "x"), "2.5")
    assert rule.codes(np.array([1.0, 2.5, np.nan, 7.0, np.inf])).tolist()[:3] == [0.0, 1.0, 1.0]
    assert np.isnan(rule.codes(np.array([7.0]))).all()
    assert rule.codes(np.array(["x", None, 1, 2.5], dtype=object)).tolist() == [2.0, 1.0, 0.0, 1.0]
    assert rule.codes(np.array([1, 2])).tolist()[0] == 0.0


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_a_model_knows_how_to_read_rows(tmp_path: Path, ending: str) -> None:
    rng = np.random.default_rng(3)
    rows = []
    for k in range(400):
        age, size = ("", "") if k % 7 == 0 else (f"{rng.uniform(0, 100):.2f}", f"{rng.uniform(-1, 1):.3f}")
        rows.append((age, str(rng.choice(["red", "green", "3", "mauve", ""])), size, str(rng.choice(["Ulm", "Bonn"]))))
    path, schema = table(tmp_path, rows), written(tmp_path, "s.yaml", SCHEMA)
    output = str(tmp_path / f"m.{ending}")
    case = dpcalc.train(data=path, positive="1", ranges=schema, epsilon=2, delta=1e-5, seed=1, output=output,
                        show_unprotected_metrics=True).cases[0]  # fmt: skip
    model = load(output)
    assert (len(model.columns), len(model.weights)) == (4, 6)
    assert model.levels == {"colour": ("red", "green", "3"), "city": ("Ulm",)}
    assert model.missing == {"age": 25.0, "colour": "green"}
    read = tables.read(path, words=model.words, labels=Labels("1"))
    right = (model.scores(read.cells[:, :-1]) > 0.0) == (read.cells[:, -1] > 0.0)
    assert case.training is not None
    assert case.training["uncovered"]["metrics"]["train"]["accuracy"] == pytest.approx(right.mean(), abs=1e-9)
    assert case.training["dimension"] == 7


@pytest.mark.parametrize("fields", [
    {"levels": {"colour": []}}, {"levels": {"nowhere": ["a"]}}, {"levels": {"colour": [1]}}, {"levels": 3},
    {"missing": {"age": "x"}}, {"missing": {"colour": "mauve"}}, {"missing": {"nowhere": 1.0}}, {"missing": [1]},
    {"levels": {"city": ["Ulm", "Bonn"], "colour": ["red", "green", "3"]}},
])  # fmt: skip
def test_a_forged_model_is_refused(fields: dict[str, Any], tmp_path: Path) -> None:
    path, schema = table(tmp_path, [cells for cells, _ in ROWS]), written(tmp_path, "s.yaml", SCHEMA)
    output = tmp_path / "m.json"
    dpcalc.train(data=path, positive="1", ranges=schema, epsilon=2, delta=1e-5, output=str(output))
    forged = {**json.loads(output.read_text(encoding="utf-8")), **fields}
    output.write_text(json.dumps(forged), encoding="utf-8")
    with pytest.raises(SpecError, match="is not a model file"):
        load(str(output))


AGE = "age: {low: 0, high: 1}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no schema"), ("columns: 3", "must be a mapping"), ("- 1", "must be a mapping"),
        ("rows: {}", "a schema has the key columns"), ("columns: {age: 3}", "must be a mapping"),
        ("columns: {age: {low: 0}}", "needs low and high, or levels"),
        ("columns: {age: {low: 2, high: 1}}", "low is 2"),
        ("columns: {age: {low: 0, high: 1, levels: [a]}}", "needs low and high, or levels"),
        ("columns: {age: {low: a, high: 1}}", "low: "), ("columns: {age: {levels: []}}", "0 levels"),
        ("columns: {age: {levels: [a, a]}}", "is given twice"),
        ("columns: {age: {levels: [a], missing: b}}", "missing is no level"),
        ("columns: {age: {low: 0, high: 1, missing: 2}}", "outside the interval"),
        ("columns: {age: {low: 0, high: 5e-324}}", "from 0 to 4.94066e-324 is too narrow"),
        (f"columns: {{{AGE}}}", "column 'colour' is not declared"),
        (f"columns: {{{AGE}, year: {{low: 0, high: 1}}}}", "the data have no column 'year'"),
        (SCHEMA + "  y: {levels: [a]}", "the target has levels"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path, schema = table(tmp_path, [cells for cells, _ in ROWS]), written(tmp_path, "s.yaml", text)
    with pytest.raises(SpecError, match=message):
        dpcalc.train(data=path, positive="1", ranges=schema, epsilon=2, delta=1e-5)


def test_the_interval_of_the_target(tmp_path: Path) -> None:
    path, schema = table(tmp_path, [ROWS[0][0]] * 30), written(tmp_path, "s.yaml", SCHEMA + "  y: {low: 0, high: 4}")
    output = str(tmp_path / "m.json")
    given: dict[str, Any] = {"data": path, "ranges": schema, "epsilon": 2, "delta": 1e-5, "output": output}
    dpcalc.train(**given, loss="squares")
    assert load(output).target_range == (0.0, 4.0)
    with pytest.raises(SpecError, match="one range in ranges and another"):
        dpcalc.train(**given, target_range=(0, 5))


def test_words_of_other_files(tmp_path: Path) -> None:
    schema = written(tmp_path, "s.yaml", "columns: {a: {levels: [x, yy]}, b: {low: 0, high: 2}}")
    fields = np.array([("yy", 1.0, 1), ("z", np.nan, 0)], dtype=[("a", "U2"), ("b", "f8"), ("y", "i8")])
    np.save(tmp_path / "t.npy", fields)
    assert encoded(str(tmp_path / "t.npy"), schema).tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    given: Any = ([["x", 1.0], ["yy", 2.0]] * 20, [0, 1] * 20)
    numbered = written(tmp_path, "n.yaml", "columns: {1: {levels: [x, yy]}, 2: {low: 0, high: 2}}")
    case = dpcalc.train(data=given, positive="1", ranges=numbered, epsilon=8, delta=1e-5).cases[0]
    assert case.training is not None
    assert case.training["dimension"] == 4


def test_json_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "s.json", "[" * 100_000 + "]" * 100_000)
    with pytest.raises(SpecError, match="nested more than 32 deep"):
        read_schema(path)


@pytest.mark.parametrize("narrow", [(0.0, 5e-324), (0.0, 1e-300), (-1e-310, 1e-310)])
def test_an_interval_too_narrow_to_divide_by_is_refused(narrow: tuple[float, float], tmp_path: Path) -> None:
    """Half of the least double is 0, and 0/0 would show a record at the middle."""
    rows = (np.zeros((30, 1)), np.zeros(30))
    given: dict[str, Any] = {"epsilon": 2, "delta": 1e-5}
    with pytest.raises(SpecError, match="too narrow"):
        dpcalc.train(data=rows, target_range=narrow, **given)
    np.savez(tmp_path / "t.npz", X=rows[0], y=rows[1])
    ranges = written(tmp_path, "r.csv", "column,low,high\n1,{!r},{!r}\n".format(*narrow))
    with pytest.raises(SpecError, match="too narrow"):
        dpcalc.train(data=str(tmp_path / "t.npz"), positive="1", ranges=ranges, **given)
    wide = np.array([0.0, 1e-290, np.nan])
    assert ranges_of.settle(wide, (0.0, 2e-290), 1.0) == 1
    assert wide.tolist() == [-1.0, 0.0, 0.0]
