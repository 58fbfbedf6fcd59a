"""Schedules from untrusted files."""

from __future__ import annotations

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
from dpcalc.spec import schedule
from dpcalc.spec.schedule import read_schedule

COLUMNS = ("step_size", "noise_std", "contraction", "shift", "spend", "laplace_scale")


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
    "long line": ("shift\n" + "1" * (schedule.MAX_LINE + 10), ":2: the line is longer"),
    "quoted": ('shift\n"1"\n', ":2:1: shift"),
    "repeat 0": ("shift,repeat\n1,0\n", "repeat must be"),
    "repeat huge": ("shift,repeat\n1,1e12\n", "repeat"),
    "no columns but repeat": ("repeat\n2\n", "no columns"),
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
}


@pytest.mark.parametrize("text", BAD_YAML.values(), ids=BAD_YAML)
def test_bad_yaml(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_schedule(_write(tmp_path, text, "a.yml"), columns=COLUMNS)
    assert "\n" not in caught.value.message


def test_a_long_yaml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="longer"):
        read_schedule(_write(tmp_path, "shift: [" + "1," * schedule.MAX_YAML + "]", "a.yaml"), columns=COLUMNS)


def test_bad_numpy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "plain.npy", np.ones(3))
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "matrix.npz", shift=np.ones((2, 2)))
    np.savez(tmp_path / "text.npz", shift=np.array(["a"]))
    np.savez(tmp_path / "nan.npz", shift=np.array([1.0, np.nan]))
    np.savez(tmp_path / "empty.npz", shift=np.array([]))
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
    monkeypatch.setattr(schedule, "MAX_BYTES", 1_000_000)
    with pytest.raises(SpecError, match="unpack"):
        read_schedule(str(path), columns=COLUMNS)


@pytest.mark.parametrize("path", ["missing.csv", "steps.txt", "steps", ".", "/dev/zero.csv"])
def test_paths_that_are_no_schedules(path: str) -> None:
    with pytest.raises(SpecError):
        read_schedule(path, columns=COLUMNS)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for path in tmp_path.iterdir():
        with pytest.raises(SpecError, match="not a regular file"):
            read_schedule(str(path), columns=COLUMNS)


@given(st.binary(max_size=200), st.sampled_from([".csv", ".npy", ".npz", ".yaml"]))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_are_a_schedule_or_refused(tmp_path: Path, data: bytes, ending: str) -> None:
    path = _write(tmp_path, data, "fuzz" + ending)
    try:
        table = read_schedule(path, columns=COLUMNS)
    except SpecError:
        return
    assert all(np.isfinite(column).all() and len(column) for column in table.values())
