"""Reading tables and keeping them within their bounds."""

import contextlib
import io
import math
import random
import tracemalloc
import zipfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcalc.errors import DpcalcError, SpecError
from dpcalc.files import lines, reading
from dpcalc.model import loss as losses
from dpcalc.training.data import bounds as bounding
from dpcalc.training.data import ranges as ranges_of
from dpcalc.training.data import tables
from dpcalc.training.data.cells import Classes, Labels, Levels, Lines, declared
from dpcalc.training.run.problem import Problem, verify

NAN = math.nan
ROWS = "a,b,y\n1,2,0\n3,-4,1\n0.5,0,1\n"
CELLS = np.array([[1.0, 2.0, 0.0], [3.0, -4.0, 1.0], [0.5, 0.0, 1.0]])


def written(folder: Path, text: str, name: str = "t.csv") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def refused(path: str, **how: Any) -> SpecError:
    with pytest.raises(SpecError) as caught:
        tables.read(path, **how)
    return caught.value


# --- reading ----------------------------------------------------------------------------------------------------------


def test_csv_is_read_with_the_target_last(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS)
    table = tables.read(path)
    assert table.names == ("a", "b", "y")
    assert np.array_equal(table.cells, CELLS)
    other = tables.read(path, target="a", ignore=["b"])
    assert other.names == ("y", "a")
    assert np.array_equal(other.cells, CELLS[:, [2, 0]])
    words = tables.read(written(tmp_path, "id,a,y\nanna,1,0\nbob,2,1\n"), ignore=["id"])
    assert np.array_equal(words.cells, [[1.0, 0.0], [2.0, 1.0]])


def test_a_byte_order_mark_quotes_and_carriage_returns_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbf"a","b, too",y\r\n1,"2",0\r\n\r\n3,4,1\r\n')
    table = tables.read(str(path))
    assert table.names == ("a", "b, too", "y")
    assert np.array_equal(table.cells, [[1.0, 2.0, 0.0], [NAN, NAN, NAN], [3.0, 4.0, 1.0]], equal_nan=True)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a,b,y\n", "a header but no records", "add some"),
        ("1,2,0\n3,4,1\n", ": the first line holds numbers", "add a header"),
        ("a;b;y\n1;2;0\n", ": the columns are parted by semicolons", "commas between"),
        ("a\tb\n1\t0\n", ": the columns are parted by tabs", "commas between"),
        ("\n1,2\n", "the first line is empty", "name the columns"),
        ("a,a,y\n1,2,0\n", "column 'a' is given twice", "rename"),
        ("y\n1\n0\n", "no column beside the target", "a feature"),
    ],
)
def test_a_csv_without_columns_or_records_is_refused(tmp_path: Path, text: str, message: str, hint: str) -> None:
    error = refused(written(tmp_path, text))
    assert message in error.message
    assert hint in (error.hint or "")


def test_a_column_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    error = refused(written(tmp_path, "age,outcome\n1,0\n2,1\n"), target="outcom")
    assert "no column 'outcom'" in error.message
    assert error.hint == "did you mean 'outcome'?"


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("1,2,0", [1.0, 2.0, 0.0]),
        (" +.5 , 1.e2,-3E-1\r", [0.5, 100.0, -0.3]),
        ('"1","2",0', [1.0, 2.0, 0.0]),
        ("3,,1", [3.0, NAN, 1.0]),
        ("3,high,1", [3.0, NAN, 1.0]),
        ("nan,inf,-Infinity", [NAN, NAN, NAN]),
        ("1e400,1_0,0x10", [NAN, NAN, NAN]),
        ("１,1\x00,1", [NAN, NAN, 1.0]),
        ('"1,2",3,4', [NAN, 3.0, 4.0]),
        ("", [NAN, NAN, NAN]),
        ("1,2", [NAN, NAN, NAN]),
        ("1,2,3,4", [NAN, NAN, NAN]),
        ('1,"2,3', [NAN, NAN, NAN]),
        ("1\r2,2,3", [NAN, 2.0, 3.0]),
        ("9" * 200_000 + ",2,3", [NAN, 2.0, 3.0]),
        ("1,2," + "x" * (1 << 21), [NAN, NAN, NAN]),
    ],
)
def test_a_line_is_a_record_whatever_stands_in_it(tmp_path: Path, line: str, row: list[float]) -> None:
    before, after = "5,6,7", "8,9,10"
    found = tables.read(written(tmp_path, f"a,b,y\n{before}\n{line}\n{after}\n"))
    assert np.array_equal(found.cells, [[5.0, 6.0, 7.0], row, [8.0, 9.0, 10.0]], equal_nan=True)
    last = tables.read(written(tmp_path, f"a,b,y\n{before}\n{line}\n"))
    assert np.array_equal(last.cells, [[5.0, 6.0, 7.0], row], equal_nan=True)


def test_bytes_that_are_no_text_stay_in_their_cell(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b,y\n1,\xff\xfe,0\n2,3,1\n")
    assert np.array_equal(tables.read(str(path)).cells, [[1.0, NAN, 0.0], [2.0, 3.0, 1.0]], equal_nan=True)


def test_plain_lines_are_read_alike_by_numpy_and_one_by_one() -> None:
    """Which of the two reads a line depends on the lines beside it: a quotation mark in one forces the slow way."""
    r = random.Random(3)
    texts = [
        f"{r.choice(NUMBERS)}{r.choice(ODD)},{r.choice(NUMBERS)},{r.choice(ODD)}{r.choice(NUMBERS)}"
        for _ in range(1000)
    ]
    for labels in (Labels(), Labels("1"), Labels("x")):
        reader = Lines(3, [2, 0], labels)
        for text in texts:
            alone = reader.rows(text.encode())
            beside = reader.rows(text.encode() + b'\n"",,')
            assert np.array_equal(alone[0], beside[0], equal_nan=True), text


@pytest.mark.few(4)
@pytest.mark.parametrize("labels", [Labels(), Labels("1"), Labels("x"), Classes(("0", "x", "2"))])
@pytest.mark.parametrize("odd", [0.0, 0.002, 0.3])
def test_the_three_ways_to_read_lines_agree(labels: Any, odd: float) -> None:
    """Blocks of whole files: whichever parser takes one, it returns what the cells are one by one."""
    pytest.importorskip("pyarrow")
    r, taken = random.Random(5), dict.fromkeys(("_parse_with_arrow", "_parse_with_numpy"), 0)
    words = {1: Levels(("x", "y", "3"), r.choice([None, "x"]))}
    for _ in range(200):
        reader = Lines(4, r.choice([[0, 1, 3], [3, 0], [2, 0, 1, 3], [1, 1, 2]]), labels, r.choice([{}, words]))
        block = []
        for _ in range(r.randrange(1, 40)):
            cells = [repr(r.gauss(0.0, 1.0)), r.choice("xyz3"), str(r.randrange(-5, 5)), r.choice("x012")]
            if r.random() < 0.5:
                cells = [r.choice(("", "?", "NA", "1.5", " 2 ", "nan", "-Inf", "1e5", "3")) for _ in cells]
            if r.random() < odd:
                cells[r.randrange(4)] = r.choice(NUMBERS) + r.choice(ODD)
            if r.random() < odd:
                cells = cells[: r.randrange(4)] or ["", *cells]
            block.append(",".join(cells).encode())
        text = b"\n".join(block)
        wanted = np.array([reader._parse(line) for line in block])
        assert np.array_equal(reader.rows(text), wanted, equal_nan=True)
        assert np.array_equal(reader.rows(text), wanted, equal_nan=True)  # from the second block on with pyarrow
        for name in taken:
            cells = getattr(reader, name)(text)
            if cells is not None and len(cells) == len(block):
                taken[name] += 1
                cells[~np.isfinite(cells)] = NAN
                assert np.array_equal(cells, wanted, equal_nan=True), text
    assert odd > 0.1 or min(taken.values()) > 0


NUMBERS = ("1", "-2.5", "1e5", "+3", "1.", ".5", "1e400", "5e-324", "1e-400", "nan", "inf", "-inf", "infinity", "1_0",
           "0x1p3", "1e", "e5", "", "0", "-0", "1" * 400, "0.1", "1d5", "1+2j", "nan(1)", "True", "1 2")  # fmt: skip
ODD = ("", "", "", "", " ", "\t", "x", "#", "'", ";", "\r", "\x0b", "\xa0", "\x1c", "%")


def test_labels_are_those_that_the_user_names(tmp_path: Path) -> None:
    path = written(tmp_path, 'a,y\n1,no\n2,yes\n3, no\n4,maybe\n5,\n6,"yes"\n7,yes,\n')
    codes = [-1.0, 1.0, -1.0, -1.0, -1.0, 1.0, -1.0]
    assert tables.read(path, labels=declared("no,yes", None)).cells[:, -1].tolist() == codes
    assert tables.read(path, labels=declared(["no", "yes"], None)).cells[:, -1].tolist() == codes
    assert tables.read(path, labels=declared(None, "yes")).cells[:, -1].tolist() == codes
    assert set(tables.read(path, labels=Labels("si")).cells[:, -1]) == {-1.0}
    assert np.isnan(tables.read(path).cells[:, -1]).all()


@pytest.mark.parametrize(
    "labels", ["yes", "a,a", "1,1.0", "", " a ,a", "a,b,1,1.0", "a,b,a", ("a", "b", "a"), (), ("a", "a")]
)
def test_labels_that_do_not_differ_are_refused(labels: Any) -> None:
    with pytest.raises(SpecError, match="must be two or more that differ"):
        declared(labels, None)
    with pytest.raises(SpecError, match="both say"):
        declared("no,yes", "yes")


def test_labels_may_be_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, "a,y\n1,2\n2,4\n3,2.0\n4,5\n")
    expected = [1.0, -1.0, 1.0, -1.0]
    assert tables.read(path, labels=Labels("2")).cells[:, -1].tolist() == expected
    np.save(tmp_path / "t.npy", np.array([[1, 2], [2, 4], [3, 2], [4, 5]]))
    assert tables.read(str(tmp_path / "t.npy"), labels=Labels("2")).cells[:, -1].tolist() == expected
    assert set(tables.read(str(tmp_path / "t.npy"), labels=Labels("two")).cells[:, -1]) == {-1.0}


def test_npy_and_npz_hold_the_same_table(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", CELLS.astype(np.float32))
    np.savez(tmp_path / "t.npz", X=CELLS[:, :2], y=CELLS[:, 2].astype(int))
    np.savez_compressed(tmp_path / "c.npz", X=CELLS[:, :2], y=np.array(["n", "p", "p"]))
    assert np.array_equal(tables.read(str(tmp_path / "t.npy")).cells, CELLS)
    assert np.array_equal(tables.read(str(tmp_path / "t.npy"), target="1").cells, CELLS[:, [1, 2, 0]])
    assert np.array_equal(tables.read(str(tmp_path / "t.npz")).cells, CELLS)
    assert tables.read(str(tmp_path / "t.npz"), ignore=["1"]).names == ("2", "y")
    assert tables.read(str(tmp_path / "c.npz"), labels=Labels("p")).cells[:, -1].tolist() == [-1.0, 1.0, 1.0]


def test_named_fields_are_columns(tmp_path: Path) -> None:
    rows = np.array([(1.0, 0, 2.5), (2.0, 1, 3.5)], dtype=[("a", float), ("y", int), ("b", np.float32)])
    np.save(tmp_path / "t.npy", rows)
    table = tables.read(str(tmp_path / "t.npy"), target="y")
    assert table.names == ("a", "b", "y")
    assert np.array_equal(table.cells, [[1.0, 2.5, 0.0], [2.0, 3.5, 1.0]])


def test_labels_may_be_bytes(tmp_path: Path) -> None:
    labels = np.array(["no", "sí", "no"])
    raw = np.char.encode(labels, "utf-8")
    np.savez(tmp_path / "t.npz", X=CELLS[:, :2], y=raw)
    rows = np.array(list(zip([1.0, 2.0, 3.0], raw, strict=True)), dtype=[("a", float), ("y", raw.dtype)])
    np.save(tmp_path / "t.npy", rows)
    for name in ("t.npz", "t.npy"):
        assert tables.read(str(tmp_path / name), labels=Labels("sí")).cells[:, -1].tolist() == [-1.0, 1.0, -1.0]
    assert tables.of_arrays(CELLS[:, :2], raw, labels=Labels("no")).cells[:, -1].tolist() == [1.0, -1.0, 1.0]
    for other in (b"si", b"\xff"):
        rows["y"][1] = other
        np.save(tmp_path / "t.npy", rows)
        assert set(tables.read(str(tmp_path / "t.npy"), labels=Labels("sí")).cells[:, -1]) == {-1.0}
    for name in ("t.npz", "t.npy"):  # by the type of the column, however long its texts are
        assert "holds texts" in refused(str(tmp_path / name)).message


def test_a_word_in_a_list_does_not_change_the_type_of_the_others() -> None:
    for word in ("a", None, b"\xff", float("nan"), 10**400, 1 + 2j):
        cells = tables.of_arrays([[1, 2], [word, 4]], [1, 0]).cells
        assert np.array_equal(cells, [[1.0, 2.0, 1.0], [NAN, 4.0, 0.0]], equal_nan=True)
        assert np.array_equal(tables.of_arrays([[1], [2]], [5, word]).cells[:, -1], [5.0, NAN], equal_nan=True)
    for ragged in ([[1, 2], [3]], [np.zeros((2, 2)), np.zeros((2, 3))]):
        with pytest.raises(SpecError, match=r"different lengths|have shape \(2,\)"):
            tables.of_arrays(ragged, [0, 1])


def test_a_wide_table_is_read_in_linear_time(tmp_path: Path) -> None:
    """Comparing every two of the names would take an hour."""
    names = [f"c{place:x}" for place in range(100_000)]
    path = written(tmp_path, ",".join(names) + "\n" + "1," * 99_999 + "0\n")
    assert tables.read(path, ignore=["c1"]).cells.shape == (1, 99_999)
    ranges = "column,low,high\n" + "".join(f"{name},0,2\n" for name in names[:-1])
    assert not ranges_of.read_ranges(written(tmp_path, ranges, "r.csv"), tables.read(path)).low.any()
    assert "'c0' is given twice" in refused(written(tmp_path, ",".join([*names, "c0"]) + "\n")).message


def test_files_that_are_not_what_they_say_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "v.npy", np.arange(3.0))
    np.save(tmp_path / "s.npy", np.array([["a", "b"]]))
    np.savez(tmp_path / "w.npz", A=CELLS)
    np.savez(tmp_path / "l.npz", X=CELLS, y=np.arange(2))
    np.savez(tmp_path / "f.npz", X=np.asfortranarray(CELLS), y=np.arange(3))
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04 nothing")
    (tmp_path / "x.npy").write_bytes(b"nothing")
    (tmp_path / "t.txt").write_text(ROWS)
    expected = {
        "o.npy": "not a readable .npy", "v.npy": "shape (3,)", "s.npy": "holds texts", "w.npz": "holds A",
        "l.npz": "X has shape (3, 3) and y (2,)", "f.npz": "stored by columns", "x.npz": "not a readable .npz",
        "x.npy": "not a readable .npy", "t.txt": "unknown kind", "none.csv": "cannot read",
    }  # fmt: skip
    for name, message in expected.items():
        assert message in refused(str(tmp_path / name)).message
    assert "is not a path" in refused("\0.csv").message
    np.save(tmp_path / "m.npy", np.zeros((2, 2), dtype=[("a", float), ("y", float)]))
    assert "must be one-dimensional" in (refused(str(tmp_path / "m.npy")).hint or "")
    (tmp_path / "folder.csv").mkdir()
    assert "not a regular file" in refused(str(tmp_path / "folder.csv")).message


def test_an_archive_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", X=np.zeros((4, 2)), y=np.zeros(4))
    with zipfile.ZipFile(tmp_path / "t.npz") as good:
        raw, y = good.read("X.npy"), good.read("y.npy")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as bad:
        bad.writestr("X.npy", raw[:-8])
        bad.writestr("y.npy", y)
    assert "not a readable .npz" in refused(str(tmp_path / "b.npz")).message
    for name, member in (("X.npy", raw), ("y.npy", y)):
        large = member.replace(b"(4,", b"(9" + b"0" * 12 + b",").replace(b" " * 13 + b"\n", b" \n")
        assert len(large) in range(len(member) - 2, len(member) + 2)
        with zipfile.ZipFile(tmp_path / "c.npz", "w") as bad:
            bad.writestr("X.npy", large if name == "X.npy" else raw)
            bad.writestr("y.npy", large if name == "y.npy" else y)
        assert "not a readable .npz" in refused(str(tmp_path / "c.npz")).message


@pytest.mark.parametrize(("digits", "places"), [(7, 2), (38, 10), (60, 30)])
def test_decimal_columns_of_parquet_are_numbers(tmp_path: Path, digits: int, places: int) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = arrow.decimal128(digits, places) if digits <= 38 else arrow.decimal256(digits, places)
    values = [Decimal("12345.67"), Decimal("-0.01"), None, Decimal(0)]
    parquet.write_table(
        arrow.table({"a": arrow.array(values, kind), "y": arrow.array(values[::-1], kind)}), tmp_path / "d.parquet"
    )
    found = tables.read(str(tmp_path / "d.parquet")).cells
    wanted = np.array([NAN if value is None else float(value) for value in values])
    np.testing.assert_allclose(found, np.column_stack([wanted, wanted[::-1]]), rtol=1e-15)


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
def test_words_of_parquet_that_are_no_text_refuse_no_record(kind: str, tmp_path: Path) -> None:
    """A refusal named the bytes of the record that had them."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    raw, ends = b"noyes\xff\xfeyes", np.array([0, 2, 5, 7, 10], dtype=np.int32).tobytes()
    words = arrow.Array.from_buffers(arrow.string(), 4, [None, arrow.py_buffer(ends), arrow.py_buffer(raw)])
    column = words.dictionary_encode() if kind == "dictionary" else words.cast(getattr(arrow, kind)())
    parquet.write_table(arrow.table({"w": column, "a": [1.0, 2.0, 3.0, 4.0], "y": column}), tmp_path / "t.parquet")
    found = tables.read(str(tmp_path / "t.parquet"), labels=Labels("yes"), words={"w": Levels(("no", "yes"))}).cells
    assert found[:, 2].tolist() == [-1.0, 1.0, -1.0, 1.0]
    assert found[:, 0].tolist() == pytest.approx([0.0, 1.0, math.nan, 1.0], nan_ok=True)


def test_dates_and_nested_values_of_parquet_are_refused_by_the_schema(tmp_path: Path) -> None:
    """Not by a value: some times are none of a day, and some words of a list are no text."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = arrow.array([1 << 60]).view(arrow.time64("us"))
    for column, held in ((times, "dates"), (arrow.array([["a"]]), "no numbers")):
        parquet.write_table(arrow.table({"a": [1.0], "y": column}), tmp_path / "t.parquet")
        assert f"column 'y' holds {held}" in refused(str(tmp_path / "t.parquet"), labels=Labels("p")).message


def test_parquet_is_read_or_names_the_extra(tmp_path: Path) -> None:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        (tmp_path / "t.parquet").write_bytes(b"PAR1")
        with pytest.raises(DpcalcError, match="need pyarrow") as caught:
            tables.read(str(tmp_path / "t.parquet"))
        assert caught.value.hint == "pip install pyarrow"
        return
    parquet.write_table(arrow.table({"a": [1.0, 3.0], "w": ["u", "v"], "y": ["n", "p"]}), tmp_path / "t.parquet")
    table = tables.read(str(tmp_path / "t.parquet"), ignore=["w"], labels=Labels("p"))
    assert table.names == ("a", "y")
    assert np.array_equal(table.cells, [[1.0, -1.0], [3.0, 1.0]])
    assert "column 'w' holds texts" in refused(str(tmp_path / "t.parquet"), labels=Labels("p")).message
    parquet.write_table(arrow.table({"a": [1.0, None], "b": [True, None], "y": [None, 1]}), tmp_path / "m.parquet")
    found = tables.read(str(tmp_path / "m.parquet")).cells
    assert np.array_equal(found, [[1.0, 1.0, NAN], [NAN, NAN, 1.0]], equal_nan=True)


@pytest.mark.parametrize("ending", ["csv", "npy", "npz"])
def test_peak_memory_is_below_twice_the_data(tmp_path: Path, ending: str) -> None:
    x, y = np.random.default_rng(0).standard_normal((40_000, 20)), np.arange(40_000) % 2.0
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        head = ",".join([*(f"c{k}" for k in range(20)), "y"])
        np.savetxt(path, np.column_stack([x, y]), delimiter=",", header=head, comments="", fmt="%.6g")
    elif ending == "npy":
        np.save(path, np.column_stack([x, y]))
    else:
        np.savez(path, X=x, y=y)
    size = x.nbytes + y.nbytes
    tracemalloc.start()
    try:
        table = tables.read(str(path))
        ready = bounding.prepared(table, feature_bound=1.0, label_bound=None, signed=True)
        bounding.split(ready, 0.2, np.random.default_rng(0))
        assert tracemalloc.get_traced_memory()[1] < 1.9 * size
    finally:
        tracemalloc.stop()


# --- bounds -----------------------------------------------------------------------------------------------------------


def table(cells: Any) -> tables.Table:
    array = np.array(cells, dtype=float)
    return tables.Table(array, (*(f"c{k}" for k in range(array.shape[1] - 1)), "y"))


def test_long_rows_are_shortened_and_short_ones_left(tmp_path: Path) -> None:
    found = bounding.prepared(
        table([[3, 4, 0], [0.3, 0.4, 1], [1e200, 0, 1]]), feature_bound=2.0, label_bound=None, signed=True
    )
    assert found.features == pytest.approx(np.array([[1.2, 1.6], [0.3, 0.4], [2.0, 0.0]]), rel=1e-11)
    assert found.counts["rows_clipped"] == 2
    assert found.labels.tolist() == [-1.0, 1.0, 1.0]
    assert found.features.flags.c_contiguous


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("intercept", [False, True])
def test_no_row_leaves_its_bound(norm: int, intercept: bool) -> None:
    generator = np.random.default_rng(1)
    raw = generator.standard_cauchy((3000, 8))
    raw[:, -1] = np.arange(3000) % 2
    found = bounding.prepared(
        table(raw), feature_bound=0.7, label_bound=None, signed=True, intercept=intercept, norm=norm
    )
    assert found.features.shape == (3000, 8 if intercept else 7)
    assert np.linalg.norm(found.features, ord=norm, axis=1).max() <= 0.7
    if intercept:
        assert len(np.unique(found.features[:, -1])) == 1
        assert found.features[0, -1] == pytest.approx(bounding.intercept_of(0.7, norm), rel=1e-11)


@pytest.mark.parametrize("bound", [1e-140, 1e-100, 1.0, 1e150])
@pytest.mark.parametrize("size", [1e-280, 1e-5, 1.0, 1e12, 1e160, 1e299])
def test_no_row_leaves_its_bound_however_long_it_was(bound: float, size: float) -> None:
    cells = np.random.default_rng(5).normal(size=(20, 4)) * np.array([size, size, size, 1.0])
    ready = bounding.prepared(tables.Table(cells, tuple("abcy")), feature_bound=bound, label_bound=1.0, signed=False)
    for row in ready.features:
        assert sum(Fraction(float(x)) ** 2 for x in row) <= Fraction(bound) ** 2


@pytest.mark.parametrize("bounds", [(1e-141, 1.0), (1.0, 1e-141)])
def test_a_bound_that_doubles_cannot_keep_is_refused(bounds: tuple[float, float]) -> None:
    table, (features, labels) = tables.Table(CELLS.copy(), tuple("aby")), bounds
    with pytest.raises(SpecError, match="lose their digits"):
        bounding.prepared(table, feature_bound=features, label_bound=labels, signed=False)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, X=CELLS[:, :2], y=CELLS[:, 2])
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with contextlib.suppress(DpcalcError):
            tables.read(str(path))


def test_what_becomes_of_a_row_does_not_depend_on_the_others() -> None:
    generator = np.random.default_rng(2)
    raw = generator.standard_normal((50, 4)) * 3
    raw[:, -1] = np.arange(50) % 2
    ranges = ranges_of.Ranges(np.full(3, -2.0), np.full(3, 5.0), None)
    whole = bounding.prepared(table(raw), feature_bound=1.0, label_bound=None, signed=True, ranges=ranges)
    other = raw.copy()
    other[7:] = generator.standard_normal((43, 4)) * 100
    other[:, -1] = np.arange(50) % 2
    part = bounding.prepared(table(other), feature_bound=1.0, label_bound=None, signed=True, ranges=ranges)
    assert np.array_equal(whole.features[:7], part.features[:7])


def test_ranges_map_to_the_unit_interval(tmp_path: Path) -> None:
    source = table([[10, 0, 5], [20, 4, 15]])
    path = written(tmp_path, "column,low,high\nc1,0,4\nc0,10,20\ny,5,15\n")
    ranges = ranges_of.read_ranges(path, source)
    found = bounding.prepared(source, feature_bound=9.0, label_bound=3.0, signed=False, ranges=ranges)
    assert found.features.tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    assert found.labels.tolist() == [-3.0, 3.0]


def test_values_beyond_a_double_are_mapped_without_a_warning() -> None:
    ranges = ranges_of.Ranges(np.array([0.0, -1e308]), np.array([1e-9, 1e308]), (-1e308, 1e308))
    source = table([[1e308, 0.0, 1e308], [-1e308, 1e308, -1e308]])
    found = bounding.prepared(source, feature_bound=1.0, label_bound=1.0, signed=False, ranges=ranges)
    assert found.features == pytest.approx(np.array([[1.0, 0.0], [-1.0, 0.0]]), abs=1e-11)
    assert found.labels.tolist() == [1.0, -1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("column,low\nc0,1\n", "the header must be column,low,high"),
        ("column,low,high\nc0,1,2\n", "no range for 'c1'"),
        ("column,low,high\nc0,2,1\nc1,0,1\n", ":2: low is 2 and high is 1"),
        ("column,low,high\nc0,0,1\nc9,0,1\n", ":3: 'c9,0,1'"),
        ("column,low,high\nc0,0,1\nc0,0,1\n", ":3: 'c0,0,1'"),
    ],
)
def test_wrong_ranges_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        ranges_of.read_ranges(written(tmp_path, text), table([[1, 2, 0]]))
    assert message in caught.value.message


def test_labels_are_signs_or_cut() -> None:
    how: dict[str, Any] = {"feature_bound": 1.0, "label_bound": 2.0}
    raw = [[1, -1], [1, 0], [1, 1], [1, 7], [1, NAN], [1, 1e308], [1, -math.inf], [1, math.inf]]
    assert bounding.prepared(table(raw), **how, signed=True).labels.tolist() == [-1, -1, 1, 1, -1, 1, -1, -1]
    cut = bounding.prepared(table(raw), **how, signed=False)
    assert cut.labels.tolist() == [-1, 0, 1, 2, 0, 2, 0, 0]
    assert cut.counts == {"rows_clipped": 0, "labels_clipped": 2, "unreadable": 3}


def test_what_is_no_number_is_0_after_the_map() -> None:
    ranges = ranges_of.Ranges(np.array([10.0, 0.0]), np.array([20.0, 4.0]), (0.0, 8.0))
    raw = [[NAN, 4, 8], [20, math.inf, NAN]]
    found = bounding.prepared(table(raw), feature_bound=9.0, label_bound=3.0, signed=False, ranges=ranges)
    assert found.features.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert found.labels.tolist() == [3.0, 0.0]


@pytest.mark.parametrize("name", ["feature_bound", "label_bound"])
def test_bounds_whose_squares_are_no_doubles_are_refused(name: str) -> None:
    how = {"feature_bound": 1.0, "label_bound": 1.0, name: 1e151}
    with pytest.raises(SpecError, match=f"{name} is 1e\\+151"):
        bounding.prepared(table([[0, 0]]), **how, signed=False)


@pytest.mark.parametrize("columns", [2, 60_000])
def test_rows_of_any_length_pass_the_check_before_training(columns: int) -> None:
    """Rounding errors of long sums, too, stay below the room that shortened rows are given."""
    raw = np.random.default_rng(4).choice([0.1, 0.3, 1e300], (4, 1)) * np.ones((4, columns + 1))
    for norm in (1, 2):
        ready = bounding.prepared(table(raw), feature_bound=0.7, label_bound=1.0, signed=False, norm=norm)
        loss = losses.of("squares", feature_bound=0.7, label_bound=1.0, radius=1.0)
        verify(Problem(ready.features, ready.labels, loss), norm=norm)


def test_a_split_is_a_partition_in_order() -> None:
    source = table([[k, k % 2] for k in range(1000)])
    ready = bounding.prepared(source, feature_bound=1e6, label_bound=None, signed=True)
    train, test = bounding.split(ready, 0.25, np.random.default_rng(5))
    assert test is not None
    assert (len(train.labels), len(test.labels)) == (750, 250)
    joined = np.concatenate([train.features[:, 0], test.features[:, 0]])
    assert sorted(joined.tolist()) == list(range(1000))
    assert (np.diff(train.features[:, 0]) > 0).all()
    assert (train.labels == np.where(train.features[:, 0] % 2 == 1, 1.0, -1.0)).all()
    assert train.features.flags.c_contiguous
    few = bounding.prepared(table([[k, k % 2] for k in range(4)]), feature_bound=9.0, label_bound=None, signed=True)
    again, _ = bounding.split(few, 0.0, np.random.default_rng(5))
    assert len(again.labels) == 4
    with pytest.raises(SpecError, match="too few"):
        bounding.split(again, 0.75, np.random.default_rng(5))


def test_the_shipped_table_is_whole_and_says_where_it_is_from() -> None:
    found = tables.read(tables.example_file("breast-cancer"), target="diagnosis", labels=Labels("malignant"))
    assert found.cells.shape == (569, 31)
    assert (found.cells[:, -1] == 1.0).sum() == 212
    assert found.cells[0, :2].tolist() == [17.99, 10.38]
    assert found.cells[:, 0].max() == 28.11  # as published
    ranges_of.read_ranges(tables.example_file("breast-cancer", ".ranges.csv"), found)
    text = Path(tables.example_file("breast-cancer", ".txt")).read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert "10.24432/C5DW2B" in text
    assert "by hand" in text
    with pytest.raises(SpecError, match="no example data set 'iris'"):
        tables.example_of("example:iris")


@pytest.mark.parametrize("piece", [1, 3, 7, 1 << 18])
def test_lines_of_records_are_those_between_ends_of_lines(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_RECORDS", piece)
    monkeypatch.setattr(lines, "_PER_COLUMN", 1)
    monkeypatch.setattr(reading, "LINE_BYTES", 4)
    rng = np.random.default_rng(3)
    for _ in range(300):
        raw = bytes(rng.choice(list(b"ab\r\n\n,"), rng.integers(0, 30)).tolist())
        ends = raw.split(b"\n")
        wanted = [b"" if len(line) >= 6 else line.removesuffix(b"\r") for line in (ends if ends[-1] else ends[:-1])]
        for step in (1, 2, 5):
            texts = [b"\n".join(wanted[first : first + step]) for first in range(0, len(wanted), step)]
            assert list(lines.record_texts(io.BytesIO(raw), 2, step)) == texts
        assert lines.count_lines(io.BytesIO(raw)) == len(wanted)
