"""Tables in a temporary file: the same bits as in memory, in little memory, and nothing is left behind."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.errors import SpecError
from dpcalc.files import reading
from dpcalc.training.data import bounds as bounding
from dpcalc.training.data import cells, tables
from dpcalc.training.data import ranges as ranges_of
from dpcalc.training.release import outcome
from dpcalc.training.rule.records import Records
from dpcalc.training.run import orders

N, D = 1500, 7
RANGES = "column,low,high\n" + "".join(f"{k},-2,2\n" for k in range(1, D + 1))
BUDGET: dict[str, Any] = {"loss": "logistic", "delta": 1e-5, "seed": 3}
ALGORITHMS: list[dict[str, Any]] = [
    {"epsilon": 1.0, "steps": 9},
    {"epsilon": 1.0, "steps": 9, "test_fraction": 0.3},
    {"algorithm": "pnsgd", "noise_std": 1.0, "radius": 1.0, "step_size": 0.01},
    {"algorithm": "rotation", "batch_size": 16, "noise_std": 1.0, "radius": 1.0, "step_size": 0.01, "clip": 0.5},
    {"algorithm": "shuffled-epochs", "batch_size": 50, "epochs": 2, "noise_std": 1.0, "radius": 1.0, "clip": 0.5,
     "step_size": 0.1, "test_fraction": 0.2},
    {"algorithm": "noisy-sgd", "batch_size": 20, "steps": 30, "noise_std": 1.0, "radius": 1.0, "step_size": 0.1,
     "test_fraction": 0.01},
    {"algorithm": "noisy-gd", "steps": 5, "noise_std": 0.1, "radius": 1.0, "step_size": 0.1, "intercept": True},
    {"algorithm": "cyclic", "batch_size": 250, "epochs": 4, "noise_std": 1.0, "radius": 1.0, "step_size": 0.1},
    {"algorithm": "cyclic", "batch_size": 60, "epochs": 3, "noise_std": 1.0, "radius": 1.0, "step_size": 0.1,
     "release": "step", "clip": 0.3, "test_fraction": 0.2},
]  # fmt: skip


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What puts every table into a temporary file."""
    return lambda: monkeypatch.setattr(reading, "HELD_CELLS", 100)


def table(seed: int = 0) -> np.ndarray:
    """Rows of which some are long, unreadable or beyond their ranges, and labels that can be learnt."""
    rng = np.random.default_rng(seed)
    cells = rng.standard_normal((N, D + 1)) * rng.choice([0.01, 1.0, 40.0], (N, 1))
    cells[:, -1] = cells[:, 0] + 0.1 * rng.standard_normal(N) > 0.0
    cells[rng.random(cells.shape) < 0.01] = np.nan
    cells[3, 2], cells[4, 1] = np.inf, 1e308
    return cells


def saved(folder: Path, cells: np.ndarray, ending: str) -> str:
    path = folder / f"t.{ending}"
    if ending == "csv":
        head = ",".join([*(str(k) for k in range(1, D + 1)), "y"])
        np.savetxt(path, cells, delimiter=",", header=head, comments="", fmt="%.17g")
    elif ending == "npz":
        np.savez(path, X=cells[:, :-1], y=cells[:, -1])
    elif ending == "parquet":
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        columns = {str(k + 1): cells[:, k] for k in range(D)} | {"y": cells[:, -1]}
        parquet.write_table(arrow.table(columns), path, row_group_size=400)
    else:
        path = folder / "t.npy"
        np.save(path, np.asfortranarray(cells) if ending == "columns" else cells)
    return str(path)


def trained(path: str, **how: Any) -> dict[str, Any]:
    folder = Path(path).parent
    report = dpcalc.train(data=path, output=str(folder / "m.json"), show_unprotected_metrics=True, **BUDGET, **how)
    model = json.loads((folder / "m.json").read_text())
    return {"weights": model["weights"], **report.cases[0].not_covered, **(report.cases[0].training or {})}


@pytest.mark.parametrize("how", ALGORITHMS, ids=lambda how: str(how.get("algorithm", "rule")))
def test_a_model_has_the_same_bits_as_one_from_memory(
    how: dict[str, Any], tmp_path: Path, on_disk: Callable[[], None]
) -> None:
    path = saved(tmp_path, table(), "npy")
    (tmp_path / "r.csv").write_text(RANGES, encoding="utf-8")
    expected = trained(path, ranges=str(tmp_path / "r.csv"), **how)
    on_disk()
    found = trained(path, ranges=str(tmp_path / "r.csv"), **how)
    assert expected["unreadable"] > 10
    assert expected["rows_clipped"] > 10
    assert found == expected


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet", "npy", "columns"])
def test_a_large_table_is_read_alike(ending: str, tmp_path: Path, on_disk: Callable[[], None]) -> None:
    path = saved(tmp_path, table(), ending)
    held = tables.read(path)
    on_disk()
    told: list[tuple[int, int]] = []
    stored = tables.read(path, progress=lambda *now: told.append(now))
    assert isinstance(stored.cells.base, np.memmap)
    assert not isinstance(held.cells.base, np.memmap)
    assert told[-1] == (N, N)
    assert stored.names == held.names
    assert np.array_equal(stored.cells, held.cells, equal_nan=True)


@pytest.mark.parametrize("column", [0, -1])
def test_a_record_outside_its_bounds_trains_nothing(
    column: int, tmp_path: Path, on_disk: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, table(), "npy")
    on_disk()
    kept = bounding._Bounds.kept

    def longer(bounds: Any, cells: np.ndarray, *how: Any) -> bounding.Prepared:
        part = kept(bounds, cells, *how)
        wrong = part.features[-1] if column == 0 else part.labels[-1:]
        wrong *= 1.5
        return part

    monkeypatch.setattr(bounding._Bounds, "kept", longer)
    with pytest.raises(SpecError, match="feature_bound is 1" if column == 0 else r"label of record \d+ is -?1.5"):
        dpcalc.train(data=path, output=str(tmp_path / "m.json"), noise_std=1.0, radius=1.0, steps=3, step_size=0.1,
                     algorithm="noisy-gd", **BUDGET)  # fmt: skip
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(("many", "most"), [(2, 667), (3, 400), (2, 1000), (3, 334)])
def test_the_commonest_class_is_counted(many: int, most: int) -> None:
    """Its share is the accuracy of always answering it, to the last digit: a model with just that is no better."""
    total = 1001
    labels = np.concatenate([np.ones(most), 2.0 * (np.arange(total - most) % (many - 1))])
    records = bounding.Prepared(np.ones((total, 3)), np.random.default_rng(1).permutation(labels), {})
    train = Records(records, None, tuple("abcy"), None, cells.declared("0,1,2", None), 0.0, 1.0)
    said = [list(outcome.on_model(train, {"train": {"accuracy": right / total}})) for right in (most, most + 1)]
    assert "commonest class" in said[0][0]
    assert not said[1]


@pytest.mark.parametrize("low", [-2.0, -3.0, 0.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_are_mapped_and_shortened_to_the_last_bit(low: float, intercept: bool) -> None:
    cells = table(3)
    cells = cells[np.isfinite(cells).all(axis=1) & (np.abs(cells) < 1e100).all(axis=1)]
    ranges = ranges_of.Ranges(
        np.full(D, low), np.linspace(2.0, 3.0, D) if low == -3.0 else np.full(D, -low or 4.0), None
    )
    source = tables.Table(cells.copy(), (*map(str, range(D)), "y"))
    kept = bounding.prepared(
        source, feature_bound=1.0, label_bound=None, signed=True, ranges=ranges, intercept=intercept
    ).features
    constant = bounding.intercept_of(1.0) if intercept else 0.0
    rest = bounding.rest_of(1.0, constant)
    expected = cells[:, :-1].copy()
    ranges_of.settle(expected, ranges.features, 1.0)
    if intercept:
        expected = np.column_stack([expected, np.zeros(len(cells))])
    size = np.sqrt([math.fsum(square) for square in (expected * expected).tolist()])
    short = size < rest * 0.999
    np.testing.assert_array_equal(kept[short, :D], expected[short, :D])
    np.testing.assert_allclose(kept, np.minimum(1.0, rest / size)[:, np.newaxis] * expected + (
        [0.0] * D + [constant] if intercept else 0.0), rtol=1e-9)  # fmt: skip


def test_a_header_that_promises_more_is_refused(tmp_path: Path, on_disk: Callable[[], None]) -> None:
    path = saved(tmp_path, table(), "npy")
    os.truncate(path, os.path.getsize(path) - 1)
    on_disk()
    with pytest.raises(SpecError, match="not a readable"):
        tables.read(path)


def test_a_full_disk_is_told(tmp_path: Path, on_disk: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, table(), "npz")
    on_disk()
    full = Path("/dev/full") if os.path.exists("/dev/full") else tmp_path / "none" / "t"
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full.open("w+b", buffering=0))
    with pytest.raises(SpecError, match=r"temporary file of .* GB") as caught:
        tables.read(path)
    assert "TMPDIR" in str(caught.value.hint)


def test_an_order_does_not_depend_on_the_type_of_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = orders._permutation(5000, np.random.default_rng(4))
    monkeypatch.setattr(orders, "_MANY", 1)
    found = orders._permutation(5000, np.random.default_rng(4))
    assert found.dtype == np.int32
    assert np.array_equal(found, expected)


def test_no_file_is_left_behind(tmp_path: Path, on_disk: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has no name from the start, where the system has such files: whatever ends the process, it is gone."""
    path, folder = saved(tmp_path, table(), "csv"), tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    on_disk()
    read = tables.read(path)
    read.cells[0, 0] = 5.0
    assert not list(folder.iterdir())


LIMITED = """
import re, resource, sys
import numpy as np, scipy.linalg, dpcalc, dpcalc.training.run.single
held = int(re.search(r"VmData:\\s*([0-9]+) kB", open("/proc/self/status").read())[1]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (held + (int(sys.argv[2]) << 20), resource.RLIM_INFINITY))
report = dpcalc.train(data=sys.argv[1], epsilon=1, delta=1e-6, loss="logistic", steps=1, test_fraction=0.01)
print(report.cases[0].training["records"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts what is mapped on Linux alone")
@pytest.mark.parametrize("rows", [90_000, pytest.param(500_000, marks=pytest.mark.campaign)])
def test_memory_does_not_grow_with_the_file(rows: int, tmp_path: Path) -> None:
    """Tables of 73 and of 404 MB, in memory of its own of at most 60 MB: what is mapped from files does not count."""
    path, columns = tmp_path / "t.npy", 101
    header = {"descr": "<f8", "fortran_order": False, "shape": (rows, columns)}
    with open(path, "wb") as stream:  # which is sparse
        np.lib.format.write_array_header_1_0(stream, header)
        stream.truncate(stream.tell() + 8 * rows * columns)
    env = {**os.environ, "PYTHONPATH": str(Path(dpcalc.__file__).parents[1])}
    command = [sys.executable, "-c", LIMITED, str(path), "60"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert int(ran.stdout) == rows - round(0.01 * rows)


@pytest.mark.parametrize("columns", [7, 8192, 8193, 9000, 20000])
def test_the_length_of_a_row_does_not_depend_on_others(columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((5, columns))
    whole = bounding.lengths(x, 2)
    for few in (1, 2, 3):
        for first in range(6 - few):
            np.testing.assert_array_equal(bounding.lengths(x[first : first + few], 2), whole[first : first + few])
    np.testing.assert_allclose(whole, np.linalg.norm(x, axis=1), rtol=1e-12)
