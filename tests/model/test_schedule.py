"""Schedules from untrusted files."""

import contextlib
import io
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpcalc.errors import SpecError
from dpcalc.files import lines, reading
from dpcalc.model import schedule_file
from dpcalc.model.schedule_file import read_schedule
from tests.oracles import cases

COLUMNS = ("step_size", "noise_std", "contraction", "shift", "spend", "laplace_scale", "batch_size")


def _write(folder: Path, text: str | bytes, name: str = "steps.csv") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_csv(tmp_path: Path) -> None:
    path = _write(tmp_path, "\ufeff# comment\r\nstep_size, noise_std\r\n0.1,1\r\n\r\n# more\n1/2,1e-3\n")
    table = read_schedule(path, columns=COLUMNS)
    assert table["step_size"].tolist() == [0.1, 0.5]
    assert table["noise_std"].tolist() == [1.0, 1e-3]
    assert not table["step_size"].flags.writeable


def test_aliases_and_repeats(tmp_path: Path) -> None:
    path = _write(tmp_path, "eta,sigma,repeat\n0.1,1,3\n0.2,2,1\n")
    table = read_schedule(path, columns=COLUMNS)
    assert table["step_size"].tolist() == [0.1, 0.1, 0.1, 0.2]
    assert set(table) == {"step_size", "noise_std"}


def test_many_blocks_are_read_in_order(tmp_path: Path) -> None:
    values = np.arange(1.0, 250_001.0)
    path = _write(tmp_path, "shift\n" + "\n".join(map(repr, values.tolist())) + "\n")
    assert np.array_equal(read_schedule(path, columns=COLUMNS)["shift"], values)


def test_numpy_files(tmp_path: Path) -> None:
    array = np.zeros(3, dtype=[("step_size", float), ("shift", np.int64)])
    array["step_size"], array["shift"] = [0.1, 0.2, 0.3], [1, 2, 3]
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", step_size=array["step_size"], shift=array["shift"])
    np.savez_compressed(tmp_path / "b.npz", step_size=array["step_size"], shift=array["shift"])
    for name in ("a.npy", "a.npz", "b.npz"):
        table = read_schedule(str(tmp_path / name), columns=COLUMNS)
        assert table["shift"].tolist() == [1.0, 2.0, 3.0]
        assert table["step_size"].tolist() == [0.1, 0.2, 0.3]


def test_yaml(tmp_path: Path) -> None:
    text = "steps: 3\nstep_size: 1e-1\nshift: [1, 2^-1, 1/4]\nnoise_std:\n  - 1\n  - 2\n  - 3\n"
    table = read_schedule(_write(tmp_path, text, "a.yaml"), columns=COLUMNS)
    assert table["step_size"].tolist() == [0.1, 0.1, 0.1]
    assert table["shift"].tolist() == [1.0, 0.5, 0.25]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"shift\n1\n2\n")))
    assert read_schedule("-", columns=COLUMNS)["shift"].tolist() == [1.0, 2.0]


BAD_CSV = {
    "empty": ("", "empty"),
    "only blank": ("\n\n# x\n", "empty"),
    "header only": ("shift\n", "no steps"),
    "unknown column": ("shfit\n1\n", "unknown column"),
    "twice": ("shift,shift\n1,1\n", "twice"),
    "alias twice": ("shift,s\n1,1\n", "twice"),
    "ragged short": ("shift,noise_std\n1,2\n3\n", ":3: 1 values for 2 columns"),
    "ragged long": ("shift\n1,2\n", ":2: 2 values for 1 columns"),
    "text": ("shift,noise_std\n1,2\n1,abc\n", ":3:2: noise_std"),
    "empty cell": ("shift,noise_std\n1,\n", ":2:2: noise_std"),
    "nan": ("shift\n1\nnan\n", ":3:1: shift"),
    "inf": ("shift\n1\ninf\n", ":3:1: shift"),
    "overflow": ("shift\n1e999\n", ":2:1: shift"),
    "not UTF-8": (b"shift\n1\n\xff\xfe\n", ":3: byte 1 is not UTF-8"),
    "NUL": (b"shift\n1\x00\n", ":2: a NUL byte"),
    "long line": ("shift\n" + "1" * (reading.LINE_BYTES + 10), ":2: the line is longer"),
    "quoted": ('shift\n"1"\n', ":2:1: shift"),
    "repeat 0": ("shift,repeat\n1,0\n", "repeat must be"),
    "repeat huge": ("shift,repeat\n1,1e12\n", ":2:2: repeat must be a whole number"),
    "repeat a half": ("shift,repeat\n1,2\n1,1.5\n", ":3:2: repeat: '1.5' is not a whole number"),
    "repeats too many": ("shift,repeat\n1,2e7\n1,1\n", "makes 20000001 steps, with repeat"),
    "no columns but repeat": ("repeat\n2\n", "no columns"),
    "underflow": ("shift\n1e-400\n", ":2:1: shift: '1e-400' is too small"),
    "long underflow": ("shift\n0." + "0" * 400 + "1\n", ":2:1: shift"),
    "cell of a comment": ("shift\n1 # one\n", ":2:1: shift"),
    "late": ("shift\n" + "1\n" * 300_000 + "x\n", ":300002:1: shift: 'x'"),
    "late and ragged": ("shift\r\n" + "1\r\n" * 300_000 + "1,2\r\n", ":300002: 2 values"),
    "late and not UTF-8": (b"shift\n" + b"1\n" * 3_000_000 + b"1\xff\n", ":3000002: byte 2 is not"),
    "UTF-16": ("shift\n1\n".encode("utf-16"), ":1: "),
    "header with a number": ("1,2\n", ":1: unknown column '1'"),
    "escape in a name": ("\x1b[31mshift\n1\n", r"unknown column '\x1b[31mshift'"),
    "long line of many": ("shift\n1\n" + "#" * (reading.LINE_BYTES + 10) + "\n2\n", ":3: the line is longer"),
    "wide header": (",".join(["shift"] * 100_000), "is given twice"),
}


@pytest.mark.parametrize(("text", "part"), BAD_CSV.values(), ids=BAD_CSV)
def test_bad_csv(tmp_path: Path, text: str | bytes, part: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_schedule(_write(tmp_path, text), columns=COLUMNS)
    assert part in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint


BAD_YAML = {
    "alias bomb": "a: &a [1,1]\nshift: *a\n",
    "tag": "shift: !!python/object/apply:os.system [ls]\n",
    "nested": "shift: {a: 1}\n",
    "list in list": "shift: [[1]]\n",
    "top list": "- 1\n- 2\n",
    "scalar": "hello\n",
    "twice": "shift: 1\nshift: 2\n",
    "sexagesimal": "shift: 1:30\n",
    "word": "shift: yes\n",
    "empty list": "shift: []\n",
    "empty": "",
    "lengths": "shift: [1, 2]\nnoise_std: [1, 2, 3]\n",
    "syntax": "shift: [1,\n",
    "bad steps": "steps: -1\nshift: 1\n",
    "many steps": "steps: 1e12\nshift: 1\n",
    "control": "shift: \x01\n",
    "two documents": "shift: 1\n---\nnoise_std: 2\n",
    "list of steps": "steps: [3]\nshift: 1\n",
    "two steps": "steps: 3\nsteps: 3\nshift: 1\n",
    "steps alone": "steps: 3\n",
    "steps and list": "steps: 3\nshift: [1]\n",
    "half a step": "steps: 1.5\nshift: 1\n",
    "comma": "shift: ['1,5']\n",
    "anchor": "shift: &a 1\n",
    "anchored name": "&a shift: 1\n",
    "merge": "<<: {shift: 1}\n",
    "name that is a list": "? [shift]\n: 1\n",
    "null": "shift:\n",
    "nan": "shift: .nan\n",
    "repeat": "shift: 1\nrepeat: 2\n",
    "deep": "shift: " + "[" * 100_000,
    "deep mapping": "{" * 100_000,
    "deep list": "- " * 100_000,
    "directive": "%YAML 9.9\n---\nshift: 1\n",
    "open quote": 'shift: "' + "a" * 1_000_000,
}


@pytest.mark.parametrize("text", BAD_YAML.values(), ids=BAD_YAML)
def test_bad_yaml(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_schedule(_write(tmp_path, text, "a.yml"), columns=COLUMNS)
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_yaml_errors_have_a_place(tmp_path: Path) -> None:
    path = _write(tmp_path, "step_size: 0.1\nshift:\n  - 1\n  - one\n", "a.yaml")
    with pytest.raises(SpecError) as caught:
        read_schedule(path, columns=COLUMNS)
    assert caught.value.message == f"{path}:4:5: shift: 'one' is not a number"


def test_a_long_yaml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="longer"):
        read_schedule(_write(tmp_path, "shift: " + "1," * reading.SCHEDULE_YAML_BYTES, "a.yaml"), columns=COLUMNS)


def test_bad_numpy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "plain.npy", np.ones(3))
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "matrix.npz", shift=np.ones((2, 2)))
    np.savez(tmp_path / "text.npz", shift=np.array(["a"]))
    np.savez(tmp_path / "nan.npz", shift=np.array([1.0, np.nan]))
    np.savez(tmp_path / "empty.npz", shift=np.array([]))
    np.savez(tmp_path / "repeat.npz", shift=np.ones(2), repeat=np.ones(2))
    np.savez(tmp_path / "complex.npz", shift=np.ones(2, dtype=complex))
    np.savez(tmp_path / "bool.npz", shift=np.ones(2, dtype=bool))
    np.savez(tmp_path / "wide.npz", shift=np.full(2, np.longdouble("1e4000")))
    np.savez(tmp_path / "lengths.npz", shift=np.ones(2), spend=np.ones(3))
    np.savez(tmp_path / "none.npz")
    np.save(tmp_path / "fields.npy", np.zeros(3, dtype=[("shift", float, (2,))]))
    np.save(tmp_path / "none.npy", np.zeros(3, dtype=[]))
    _write(tmp_path, (tmp_path / "none.npz").read_bytes(), "archive.npy")
    _write(tmp_path, b"\x93NUMPY\x01\x00\x20\x00" + b"(" * 32, "nest.npy")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"9" * 30 + b",)}\n"
    _write(tmp_path, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header, "huge.npy")
    with zipfile.ZipFile(tmp_path / "raw.npz", "w") as archive:
        archive.writestr("shift", b"1,2,3")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 not really")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00garbage")
    np.save(tmp_path / "cut.npy", np.zeros(100, dtype=[("shift", float)]))
    data = (tmp_path / "cut.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(data[: len(data) // 2])
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(SpecError) as caught:
            read_schedule(str(path), columns=COLUMNS)
        assert "\n" not in caught.value.message, path


def test_a_zip_bomb_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("shift.npy", b"\0" * 5_000_000)
    monkeypatch.setattr(reading, "SCHEDULE_BYTES", 1_000_000)
    with pytest.raises(SpecError, match="unpack"):
        read_schedule(str(path), columns=COLUMNS)
    monkeypatch.setattr(reading, "SCHEDULE_BYTES", 100_000_000)
    monkeypatch.setattr(reading, "SCHEDULE_STEPS", 10_000)
    with pytest.raises(SpecError, match="unpack"):
        read_schedule(str(path), columns=COLUMNS)


def test_an_archive_of_very_many_members_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20_000):
            archive.writestr(f"shift{number}.npy", b"")
    with pytest.raises(SpecError, match="too many members"):
        read_schedule(str(path), columns=COLUMNS)


@given(st.integers(0, 400), st.integers(0, 255), st.sampled_from(["a.npy", "a.npz", "b.npz"]))
@settings(max_examples=cases(500), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_numpy_files_are_read_or_refused(tmp_path: Path, place: int, byte: int, name: str) -> None:
    if name == "a.npy":
        np.save(tmp_path / name, np.ones(3, dtype=[("shift", float)]))
    else:
        (np.savez if name == "a.npz" else np.savez_compressed)(tmp_path / name, shift=np.ones(3))
    data = bytearray((tmp_path / name).read_bytes())
    data[place % len(data)] = byte
    with contextlib.suppress(SpecError):
        read_schedule(_write(tmp_path, bytes(data), "damaged" + name[1:]), columns=COLUMNS)


PATHS = {
    "missing.csv": "cannot read missing.csv: No such file",
    "steps.txt": "unknown kind",
    "steps": "unknown kind",
    "": "unknown kind",
    ".": "unknown kind",
    "/dev/zero.csv": "cannot read",
    "a\nb.csv": r"cannot read 'a\nb.csv'",
    "a\0b.csv": "is not a path",
    "x" * 5000 + ".csv": "cannot read",
}


@pytest.mark.parametrize(("path", "part"), PATHS.items(), ids=range(len(PATHS)))
def test_paths_that_are_no_schedules(path: str, part: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_schedule(path, columns=COLUMNS)
    assert part in caught.value.message
    assert len(caught.value.message.splitlines()) == 1
    assert caught.value.hint


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _write(tmp_path, "shift\n1\n")

    def refuse(*args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(SpecError, match="Permission denied"):
        read_schedule(path, columns=COLUMNS)


@pytest.mark.parametrize("stream", [None, io.StringIO("shift\n1\n")])
def test_no_standard_input(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None) -> None:
    monkeypatch.setattr(sys, "stdin", stream)
    with pytest.raises(SpecError, match="standard input"):
        read_schedule("-", columns=COLUMNS)


class _Endless(io.RawIOBase):
    """A line without end, that counts what is taken of it."""

    taken = 0

    def read(self, size: int = -1) -> bytes:
        self.taken += size
        return b"1" * size


def test_a_line_without_end_is_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Endless()
    monkeypatch.setattr(schedule_file, "standard_input", lambda: stream)
    with pytest.raises(SpecError, match="-:1: the line is longer"):
        read_schedule("-", columns=COLUMNS)
    assert stream.taken <= 10 * reading.LINE_BYTES


def test_endless_comments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Comments(_Endless):
        def read(self, size: int = -1) -> bytes:
            self.taken += size
            return b"#\n" * (size // 2)

    monkeypatch.setattr(schedule_file, "standard_input", Comments)
    monkeypatch.setattr(reading, "SCHEDULE_BYTES", 10_000_000)
    with pytest.raises(SpecError, match="more than 10000000 bytes"):
        read_schedule("-", columns=COLUMNS)


def test_caps_on_bytes_and_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "a.npz", shift=np.ones(100, dtype=np.int8))
    np.save(tmp_path / "a.npy", np.ones(100, dtype=[("shift", np.float16)]))
    _write(tmp_path, "shift\n" + "1\n" * 100, "a.csv")
    _write(tmp_path, "shift: 1\nsteps: 100", "a.yaml")
    monkeypatch.setattr(reading, "SCHEDULE_STEPS", 99)
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(SpecError, match="99"):
            read_schedule(str(path), columns=COLUMNS)
    monkeypatch.setattr(reading, "SCHEDULE_BYTES", 10)
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(SpecError, match="at most 10"):
            read_schedule(str(path), columns=COLUMNS)


def test_required_columns(tmp_path: Path) -> None:
    path = _write(tmp_path, "eta\n0.1\n")
    assert set(read_schedule(path, columns=COLUMNS, required=["step_size"])) == {"step_size"}
    with pytest.raises(SpecError) as caught:
        read_schedule(path, columns=COLUMNS, required=["step_size", "noise_std"])
    assert caught.value.message == f"{path}:1: column noise_std is missing"
    assert caught.value.hint == "columns found: step_size"


def test_a_plain_array_is_the_one_required_column(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npy")
    np.save(path, np.arange(3))
    assert read_schedule(path, columns=COLUMNS, required=["shift"])["shift"].tolist() == [0.0, 1.0, 2.0]
    for required in ([], ["shift", "noise_std"]):
        with pytest.raises(SpecError, match="no named fields"):
            read_schedule(path, columns=COLUMNS, required=required)
    np.save(path, np.ones((3, 1)))
    with pytest.raises(SpecError, match="no named fields"):
        read_schedule(path, columns=COLUMNS, required=["shift"])


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    path = _write(tmp_path, ending.join(["shift", *map(str, range(50)), "x"]))
    for piece in range(2, 40):
        monkeypatch.setattr(lines, "_PIECE", piece)
        with pytest.raises(SpecError, match=r":52:1: shift: 'x'"):
            read_schedule(path, columns=COLUMNS)


def test_arrays_are_contiguous_and_read_only(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", shift=np.arange(10, dtype=">i2")[::2], spend=np.float32(2) * np.ones(5))
    np.save(tmp_path / "a.npy", np.ones(5, dtype=[("shift", ">f4"), ("spend", np.uint8)]))
    _write(tmp_path, "shift,spend\n" + "1,2\n" * 5, "a.csv")
    _write(tmp_path, "shift: 1\nspend: 2\nsteps: 5", "a.yaml")
    for path in sorted(tmp_path.iterdir()):
        for column in read_schedule(str(path), columns=COLUMNS).values():
            assert column.dtype == np.dtype("float64")
            assert column.shape == (5,)
            assert column.flags.c_contiguous
            assert not column.flags.writeable


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_doubles_come_back(tmp_path: Path, values: list[float]) -> None:
    path = _write(tmp_path, "shift\n" + "\n".join(map(repr, values)))
    assert read_schedule(path, columns=COLUMNS)["shift"].tolist() == values


CELLS = st.text("0123456789.eE+-_ /%^#nainf\u0661\u00a0\t\x0b'", max_size=8)


@given(st.lists(CELLS, min_size=1, max_size=3))
@settings(max_examples=cases(1000), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_fast_parser_accepts_what_the_slow_one_does(tmp_path: Path, cells: list[str]) -> None:
    def outcome() -> object:
        try:
            return read_schedule(path, columns=COLUMNS)["shift"].tolist()
        except SpecError as error:
            return error.message

    path = _write(tmp_path, "shift\n" + "\n".join(cells))
    fast = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule_file, "_is_plain", lambda *args: False)
        assert outcome() == fast


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for path in tmp_path.iterdir():
        with pytest.raises(SpecError, match="not a regular file"):
            read_schedule(str(path), columns=COLUMNS)


@given(
    st.binary(max_size=200) | st.text("shift,:-[]{}&*!#'\"\n 1e.", max_size=60).map(str.encode),
    st.sampled_from([".csv", ".npy", ".npz", ".yaml"]),
)
@settings(max_examples=cases(300), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_are_a_schedule_or_refused(tmp_path: Path, data: bytes, ending: str) -> None:
    path = _write(tmp_path, data, "fuzz" + ending)
    try:
        table = read_schedule(path, columns=COLUMNS)
    except SpecError:
        return
    assert all(np.isfinite(column).all() and len(column) for column in table.values())
