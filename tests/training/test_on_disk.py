"""Records in a file: the same bits as in memory, in little memory, and never of a file that changes."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.errors import SpecError
from dpcalc.files import reading
from dpcalc.files.row_file import Copy, Room, Spool
from dpcalc.model import loss as losses
from dpcalc.training.data import bounds as bounding
from dpcalc.training.data import cells, tables
from dpcalc.training.data import ranges as ranges_of
from dpcalc.training.data.cells import Labels
from dpcalc.training.data.stored import OnDisk
from dpcalc.training.release import outcome
from dpcalc.training.rule.records import Records
from dpcalc.training.run import orders
from dpcalc.training.run.exact_sums import ExactSums
from dpcalc.training.run.problem import Problem, StoredProblem, verify

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
    """What lets every table be read from its file, in pieces of some hundred records."""

    def change() -> None:
        monkeypatch.setattr(reading, "HELD_CELLS", 100)
        monkeypatch.setattr(OnDisk, "step", 200)

    return change


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
        np.save(path, cells)
    return str(path)


def trained(path: str, **how: Any) -> dict[str, Any]:
    folder = Path(path).parent
    report = dpcalc.train(data=path, output=str(folder / "m.json"), **BUDGET, **how)
    model = json.loads((folder / "m.json").read_text())
    return {"weights": model["weights"], **(report.cases[0].training or {})}


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


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet"])
def test_other_files_are_copied_and_read_alike(ending: str, tmp_path: Path, on_disk: Callable[[], None]) -> None:
    path = saved(tmp_path, table(), ending)
    held = tables.read(path)
    assert isinstance(held.cells, np.ndarray)
    on_disk()
    told: list[tuple[int, int]] = []
    stored = tables.read(path, progress=lambda *now: told.append(now))
    assert isinstance(stored.cells, tables.Stored)
    assert told[-1] == (N, N)
    assert stored.names == held.names
    assert np.array_equal(stored.cells.rows(slice(0, N)), held.cells, equal_nan=True)
    some = np.array([5, 1400, 5, 0])
    assert np.array_equal(stored.cells.rows(some), held.cells[some], equal_nan=True)
    assert isinstance(tables.read(path, held=True).cells, np.ndarray)


@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<i2", "|b1"])
def test_numbers_of_every_type_are_read_alike(dtype: str, tmp_path: Path, on_disk: Callable[[], None]) -> None:
    with np.errstate(all="ignore"):
        path = saved(tmp_path, table(1).astype(dtype), "npy")
    how: dict[str, Any] = {"target": "3", "ignore": ["5"], "labels": Labels("1")}
    held = tables.read(path, **how)
    on_disk()
    stored = tables.read(path, **how)
    assert isinstance(stored.cells, tables.Stored)
    found = stored.cells.rows(slice(0, N))
    found[np.isinf(found)] = np.nan
    assert np.array_equal(found, held.cells, equal_nan=True)


def test_a_run_of_one_pass_reads_its_file_twice(
    tmp_path: Path, on_disk: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once to train, and once to measure, check and count."""
    path = saved(tmp_path, table(), "npy")
    on_disk()
    seen: list[int] = []
    at = OnDisk.at

    def counted(records: OnDisk, *given: Any) -> bounding.Prepared:
        part = at(records, *given)
        seen.append(len(part.labels))
        return part

    monkeypatch.setattr(OnDisk, "at", counted)
    trained(path, algorithm="pnsgd", batch_size=100, noise_std=1.0, radius=1.0, step_size=0.01)
    assert sum(seen) == 2 * N


@pytest.mark.parametrize("column", [0, -1])
def test_a_record_outside_its_bounds_trains_nothing(
    column: int, tmp_path: Path, on_disk: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, table(), "npy")
    on_disk()
    kept = bounding.Bounds.kept

    def longer(bounds: bounding.Bounds, cells: np.ndarray, *how: Any) -> bounding.Prepared:
        part = kept(bounds, cells, *how)
        wrong = part.features[-1] if column == 0 else part.labels[-1:]
        wrong *= 1.5
        return part

    monkeypatch.setattr(bounding.Bounds, "kept", longer)
    with pytest.raises(SpecError, match="feature_bound is 1" if column == 0 else r"label of record \d+ is -?1.5"):
        dpcalc.train(data=path, output=str(tmp_path / "m.json"), noise_std=1.0, radius=1.0, steps=3, step_size=0.1,
                     algorithm="noisy-gd", **BUDGET)  # fmt: skip
    assert not (tmp_path / "m.json").exists()
    monkeypatch.undo()
    on_disk()
    problem = stored_problem(path)
    shorter = StoredProblem(problem.records, losses.of("logistic", feature_bound=0.5))
    with pytest.raises(SpecError, match="not shortened to feature_bound 0"):
        verify(shorter)
    longest = float(np.linalg.norm(problem.at(slice(0, 200))[0], axis=1).max())
    with pytest.raises(SpecError, match=r"feature_bound is 0\.5") as caught:
        list(shorter.pieces(200))
    assert "a larger --feature-bound" in str(caught.value.hint)
    assert f"{longest:.15g}"[:9] not in str(caught.value.hint)


@pytest.mark.parametrize(("many", "most"), [(2, 667), (3, 400), (2, 1000), (3, 334)])
def test_the_commonest_class_of_a_file_is_counted(
    many: int, most: int, tmp_path: Path, on_disk: Callable[[], None]
) -> None:
    """Its share is the accuracy of always answering it, to the last digit: a model with just that is no better."""
    total = 1001
    labels = np.concatenate([np.ones(most), 2.0 * (np.arange(total - most) % (many - 1))])
    labels = np.random.default_rng(1).permutation(labels)
    path = str(tmp_path / "t.npy")
    np.save(path, np.column_stack([np.ones((total, 3)), labels]))
    on_disk()
    rule = cells.declared("0,1" if many == 2 else "0,1,2", None)
    read = tables.read(path, labels=rule)
    assert isinstance(read.cells, tables.Stored)
    bounds = bounding.bounds_of(read, feature_bound=1.0, label_bound=None, signed=many == 2)
    records = OnDisk(read.cells, bounds)
    assert outcome.commonest(records) == most / total
    assert outcome.commonest(records.at(slice(0, total))) == most / total
    train = Records(records, None, read.names, None, rule, 0.0, 1.0)
    said = [list(outcome.on_model(train, {"train": {"accuracy": right / total}})) for right in (most, most + 1)]
    assert "commonest class" in said[0][0]
    assert not said[1]


def test_labels_that_are_numbers_are_not_counted(tmp_path: Path, on_disk: Callable[[], None]) -> None:
    path = str(tmp_path / "t.npy")
    np.save(path, np.column_stack([np.ones((2400, 1)), np.arange(2400.0) / 2400.0]))
    on_disk()
    read = tables.read(path)
    assert isinstance(read.cells, tables.Stored)
    records = OnDisk(read.cells, bounding.bounds_of(read, feature_bound=1.0, label_bound=1.0, signed=False))
    assert records.survey().commonest is None
    assert outcome.commonest(records) is None


def test_named_fields_are_read_by_rows(tmp_path: Path, on_disk: Callable[[], None]) -> None:
    fields = np.zeros(N, dtype=[("a", "<f4"), ("w", "U3"), ("y", "U1")])
    fields["a"], fields["y"] = np.arange(N), np.where(np.arange(N) % 3, "p", "n")
    np.save(tmp_path / "f.npy", fields)
    path = str(tmp_path / "f.npy")
    on_disk()
    stored = tables.read(path, ignore=["w"], labels=Labels("p")).cells
    assert isinstance(stored, tables.Stored)
    assert stored.rows(np.array([2, 900])).tolist() == [[2.0, 1.0], [900.0, -1.0]]
    with pytest.raises(SpecError, match="column 'w' holds texts"):
        tables.read(path, labels=Labels("p"))


def test_what_cannot_be_read_by_rows_is_refused(tmp_path: Path, on_disk: Callable[[], None]) -> None:
    np.save(tmp_path / "t.npy", np.asfortranarray(table()))
    assert tables.read(str(tmp_path / "t.npy")).cells.shape == (N, D + 1)
    on_disk()
    with pytest.raises(SpecError, match="stored by columns"):
        tables.read(str(tmp_path / "t.npy"))


def stored_problem(path: str) -> StoredProblem:
    read = tables.read(path)
    assert isinstance(read.cells, tables.Stored)
    bounds = bounding.bounds_of(read, feature_bound=1.0, label_bound=None, signed=True)
    return StoredProblem(OnDisk(read.cells, bounds), losses.of("logistic", feature_bound=1.0))


@pytest.mark.parametrize("low", [-2.0, -3.0, 0.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_are_mapped_and_shortened_to_the_last_bit(low: float, intercept: bool) -> None:
    cells = table(3)
    cells = cells[np.isfinite(cells).all(axis=1) & (np.abs(cells) < 1e100).all(axis=1)]
    ranges = ranges_of.Ranges(
        np.full(D, low), np.linspace(2.0, 3.0, D) if low == -3.0 else np.full(D, -low or 4.0), None
    )
    names = (*map(str, range(D)), "y")
    bounds = bounding.bounds_of(
        tables.Table(cells, names), feature_bound=1.0, label_bound=None, signed=True, ranges=ranges, intercept=intercept
    )
    expected = cells[:, :-1].copy()
    ranges_of.settle(expected, ranges.features, 1.0)
    if intercept:
        expected = np.column_stack([expected, np.zeros(len(cells))])
    size = np.sqrt([math.fsum(square) for square in (expected * expected).tolist()])
    kept = bounds.kept(cells.copy()).features
    short = size < bounds.rest * 0.999
    np.testing.assert_array_equal(kept[short, :D], expected[short, :D])
    np.testing.assert_allclose(kept, np.minimum(1.0, bounds.rest / size)[:, np.newaxis] * expected + (
        [0.0] * D + [bounds.constant] if intercept else 0.0), rtol=1e-9)  # fmt: skip


def test_single_precision_is_read_as_the_same_numbers(tmp_path: Path, on_disk: Callable[[], None]) -> None:
    with np.errstate(over="ignore"):
        path = saved(tmp_path, table(2).astype(np.float32), "npy")
    ready = bounding.prepared(tables.read(path), feature_bound=1.0, label_bound=None, signed=True)
    on_disk()
    records, room = stored_problem(path).records, Room()
    for first in range(0, N, 300):
        part = records.at(slice(first, first + 300), room)
        np.testing.assert_array_equal(part.features, ready.features[first : first + 300])
        np.testing.assert_array_equal(part.labels, ready.labels[first : first + 300])
    assert records.counts == ready.counts


@pytest.mark.parametrize("norm", [1, 2])
def test_sums_are_the_same_in_all_pieces_and_all_orders(
    norm: int, tmp_path: Path, on_disk: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, table(), "npy")
    ready = bounding.prepared(tables.read(path), feature_bound=1.0, label_bound=None, signed=True)
    on_disk()
    problem = stored_problem(path)
    w = np.random.default_rng(1).standard_normal(D)
    whole = ExactSums(Problem(ready.features, ready.labels, problem.loss), 1.0, N, norm)
    sums = ExactSums(problem, 1.0, N, norm)
    expected = whole.descent(w, None)
    order = np.random.default_rng(2).permutation(N)
    for step in (1, 7, 200, N):
        monkeypatch.setattr(OnDisk, "step", step)
        assert np.array_equal(sums.descent(w, None), expected)
        assert np.array_equal(sums.descent(w, order), expected)
    assert np.array_equal(sums.descent(w, order[:9]), whole.descent(w, order[:9]))


@pytest.mark.parametrize("room", [True, False])
def test_later_passes_read_what_the_first_has_made(
    room: bool, tmp_path: Path, on_disk: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, table(), "npy")
    ready = bounding.prepared(tables.read(path), feature_bound=1.0, label_bound=None, signed=True)
    on_disk()
    if not room:
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    problem = stored_problem(path)
    w = np.random.default_rng(1).standard_normal(D)
    whole = ExactSums(Problem(ready.features, ready.labels, problem.loss), 0.2, N)
    sums = ExactSums(problem, 0.2, N, 2, 3)
    seen: list[Any] = []
    at = OnDisk.at
    monkeypatch.setattr(OnDisk, "at", lambda self, chosen, *how: seen.append(chosen) or at(self, chosen, *how))
    parts = [sums.descent(w, np.arange(first, first + 500)) for first in range(0, N, 500)]  # a pass in their order
    assert np.array_equal(sum(parts), whole.descent(w, None))
    assert len(seen) == 15  # of at most 100
    order = np.random.default_rng(2).permutation(N)
    for rows in (None, order, order[:9], np.arange(100, 900)):
        assert np.array_equal(sums.descent(w, rows), whole.descent(w, rows))
    batches = order.reshape(-1, 50)
    for k, descent in enumerate(sums.of_steps(batches, len(batches))):
        assert np.array_equal(descent(w), whole.descent(w, batches[k]))
    assert (len(seen) == 15) is room


def test_passes_of_small_batches_in_order_are_kept_as_well(
    tmp_path: Path, on_disk: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk()
    problem = stored_problem(saved(tmp_path, table(), "npy"))
    sums, w = ExactSums(problem, 0.2, 50, 2, 3), np.random.default_rng(1).standard_normal(D)
    batches = np.arange(N).reshape(-1, 50)
    first = [descent(w) for descent in sums.of_steps(batches, len(batches))]
    monkeypatch.setattr(OnDisk, "at", None)
    again = [descent(w) for descent in sums.of_steps(batches, len(batches))]
    assert np.array_equal(first, again)


def test_a_copy_is_written_in_any_order_and_given_up_where_the_disk_is_full() -> None:
    copy, full = Copy(4, 2, 1), Copy(4, 2, 1)
    rows, beside = np.ones((2, 2), np.float32), np.ones((2, 1))
    copy.write(2, rows, beside)
    copy.write(0, 3.0 * rows, 2.0 * beside)
    assert copy.finished
    read = copy.rows(slice(1, 3), Room())
    assert read[0].tolist() == [[3.0, 3.0], [1.0, 1.0]]
    assert read[1].tolist() == [[2.0], [1.0]]
    with open(os.devnull, "rb") as unwritable:
        full._file = unwritable
        full.write(0, rows, beside)
        full.write(2, rows, beside)
    assert not full.finished


@pytest.mark.parametrize("pieces", [
    [(0, 2), (0, 2)], [(0, 2), (1, 3), (3, 4)], [(2, 4), (1, 3), (0, 1)], [(0, 3), (1, 2)], [(1, 2), (0, 3), (3, 4)],
    [(2, 6)], [(-2, 2)],
])  # fmt: skip
def test_a_copy_with_rows_written_twice_is_given_up(pieces: list[tuple[int, int]]) -> None:
    """As many rows as there are would be written, and some of them would be those that nobody wrote."""
    copy = Copy(4, 2, 1)
    for first, last in pieces:
        copy.write(first, np.ones((last - first, 2), np.float32), np.ones((last - first, 1)))
    assert not copy.finished
    for place in (3, 0, 2, 1):
        copy.write(place, np.ones((1, 2), np.float32), np.ones((1, 1)))
    assert not copy.finished


def test_a_copy_may_come_in_pieces_of_any_order() -> None:
    r = np.random.default_rng(1)
    for _ in range(20):
        copy, ends = Copy(50, 1, 1), np.unique(np.append(r.integers(1, 50, 9), [0, 50]))
        for k in r.permutation(len(ends) - 1):
            rows = np.arange(ends[k], ends[k + 1])[:, np.newaxis]
            assert not copy.finished
            copy.write(int(ends[k]), rows.astype(np.float32), -rows.astype(np.float64))
        kept, beside = copy.rows(slice(0, 50), Room())
        assert kept[:, 0].tolist() == (-beside[:, 0]).tolist() == list(range(50))


@pytest.mark.parametrize("cut", [True, False])
def test_a_file_that_changes_is_refused(cut: bool, tmp_path: Path, on_disk: Callable[[], None]) -> None:
    path = saved(tmp_path, table(), "npy")
    on_disk()
    problem = stored_problem(path)
    problem.at(slice(0, 5))
    if cut:
        os.truncate(path, os.path.getsize(path) - 8)
    else:
        with open(path, "r+b") as stream:
            stream.seek(-8, os.SEEK_END)
            stream.write(b"\0" * 8)
        os.utime(path, (1.0, 1.0))
    for chosen in (slice(0, 5), np.array([0, 900]), slice(N - 5, N)):
        with pytest.raises(SpecError, match="changed while it was read"):
            problem.at(chosen)


def test_a_file_that_is_cut_short_during_training_trains_nothing(
    tmp_path: Path, on_disk: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, table(), "npy")
    on_disk()
    taken = ExactSums.of_steps

    def cutting(sums: ExactSums, *given: Any) -> Any:
        os.truncate(path, os.path.getsize(path) - 8)
        return taken(sums, *given)

    monkeypatch.setattr(ExactSums, "of_steps", cutting)
    with pytest.raises(SpecError, match="changed while it was read"):
        dpcalc.train(data=path, output=str(tmp_path / "m.json"), epsilon=1.0, **BUDGET)
    assert not (tmp_path / "m.json").exists()


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


def test_a_spool_is_written_from_its_first_row_on() -> None:
    spool = Spool("it", 4, 2)
    spool[slice(0, 3)] = np.ones((3, 2))
    with pytest.raises(ValueError):
        spool[slice(0, 1)] = np.ones((1, 2))
    with pytest.raises(ValueError):
        spool.finished()


def test_an_order_does_not_depend_on_the_type_of_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = orders._permutation(5000, np.random.default_rng(4))
    monkeypatch.setattr(orders, "_MANY", 1)
    found = orders._permutation(5000, np.random.default_rng(4))
    assert found.dtype == np.int32
    assert np.array_equal(found, expected)


INTERRUPTED = """
import signal, sys, threading, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
from dpcalc.files import reading
reading.HELD_CELLS = 100
from dpcalc.cli.main import run
from dpcalc.files.row_file import Copy, Room, Spool
write = Spool.__setitem__
def slow(spool, *given):
    write(spool, *given)
    print("writing", flush=True)
    threading.Event().wait(30.0)
Spool.__setitem__ = slow
sys.argv[1:] = ["train", "--data", sys.argv[1], "--loss", "logistic", "-e", "1", "-d", "1e-5"]
run()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_leaves_no_file(tmp_path: Path) -> None:
    path, folder = saved(tmp_path, table(), "csv"), tmp_path / "tmp"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, path], env={**os.environ, "TMPDIR": str(folder)}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"nothing was released" in said
    assert not list(folder.iterdir())


PEAK = """
import re, sys
import numpy as np, scipy.linalg, dpcalc, dpcalc.training.run.single
def peak():  # that of getrusage may be of the process before
    return int(re.search(r"VmHWM:\\s*([0-9]+) kB", open("/proc/self/status").read())[1])
before = peak()
report = dpcalc.train(data=sys.argv[1], epsilon=1, delta=1e-6, loss="logistic", steps=1, test_fraction=0.01)
print(report.cases[0].training["records"], peak() - before)
"""


def peak(path: Path, rows: int, columns: int) -> float:
    """Return by how much training raises the peak memory of a process, in MB; the file is sparse."""
    header = {"descr": "<f8", "fortran_order": False, "shape": (rows, columns)}
    with open(path, "wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        stream.truncate(stream.tell() + 8 * rows * columns)
    env = {**os.environ, "PYTHONPATH": str(Path(dpcalc.__file__).parents[1])}
    ran = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True, env=env)
    path.unlink()
    records, added = ran.stdout.split()
    print(added)
    assert int(records) == rows - round(0.01 * rows)
    return int(added) / 1024.0


@pytest.mark.skipif(sys.platform != "linux", reason="kilobytes")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    assert peak(tmp_path / "t.npy", 90_000, 101) < 30.0  # of 73 MB


@pytest.mark.campaign
@pytest.mark.skipif(sys.platform != "linux", reason="kilobytes")
def test_memory_is_a_small_part_of_a_large_file(tmp_path: Path) -> None:
    assert peak(tmp_path / "t.npy", 500_000, 101) < 30.0  # of 404 MB


def test_a_change_under_an_older_time_is_refused(tmp_path: Path, on_disk: Callable[[], None]) -> None:
    path = saved(tmp_path, table(), "npy")
    on_disk()
    problem = stored_problem(path)
    state = os.stat(path)
    with open(path, "r+b") as stream:
        stream.seek(-8, os.SEEK_END)
        stream.write(b"\0" * 8)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(SpecError, match="changed while it was read"):
        problem.at(slice(0, 5))


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="no such call")
def test_a_read_that_stops_early_goes_on(
    tmp_path: Path, on_disk: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, table(), "npy")
    on_disk()
    problem, preadv = stored_problem(path), os.preadv
    whole = problem.at(slice(0, N))
    monkeypatch.setattr(os, "preadv", lambda file, rooms, place: preadv(file, [rooms[0][:1001]], place))
    for found, wanted in zip(problem.at(slice(0, N)), whole, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("aside", [None, np.arange(0, N // 3, 3)])
def test_little_of_wide_rows_is_read_at_once(tmp_path: Path, on_disk: Callable[[], None], aside: Any) -> None:
    fields = np.zeros(N // 3, dtype=[("left out", "V100000"), ("x", "f8"), ("y", "f8")])
    rng = np.random.default_rng(1)
    fields["x"], fields["y"] = rng.standard_normal(len(fields)), rng.choice([-1.0, 1.0], len(fields))
    path = str(tmp_path / "wide.npy")
    np.save(path, fields)
    on_disk()
    read = tables.read(path, ignore=("left out",))
    bounds = bounding.bounds_of(read, feature_bound=10.0, label_bound=1.0, signed=False)
    assert isinstance(read.cells, tables.Stored)
    sizes: list[int] = []
    rows = read.cells.rows
    read.cells.rows = lambda chosen, room=None: (sizes.append(len(found := rows(chosen, room))), found)[1]  # type: ignore[method-assign]
    records = OnDisk(read.cells, bounds, aside)
    kept = np.delete(fields, aside) if aside is not None else fields
    for chosen in (slice(0, 300), rng.integers(0, len(kept), 300)):
        part = records.at(chosen)
        np.testing.assert_array_equal(part.features[:, 0], kept["x"][chosen])
        np.testing.assert_array_equal(part.labels, kept["y"][chosen])
    assert sum(sizes) == 600
    assert max(sizes) * 100_016 <= 1 << 22


@pytest.mark.parametrize("columns", [7, 8192, 8193, 9000, 20000])
def test_the_length_of_a_row_does_not_depend_on_others(columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((5, columns))
    whole = bounding.lengths(x, 2)
    for few in (1, 2, 3):
        for first in range(6 - few):
            np.testing.assert_array_equal(bounding.lengths(x[first : first + few], 2), whole[first : first + few])
    np.testing.assert_allclose(whole, np.linalg.norm(x, axis=1), rtol=1e-12)
