"""Interrupts and a full disk at any point leave the old file or the new one, whole, and nothing beside it."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Self

import pytest

from dpcalc.errors import SpecError
from dpcalc.files import output
from dpcalc.files import place as target_module

OLD, NEW = b"the old file\n" * 3, b"the new one\n" * 50_000
ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["none before", "one before", "a link"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file to write: new, or private and there, or a link to one elsewhere, which stays as it is."""
    (tmp_path / "here").mkdir()
    path = tmp_path / "here" / "report.txt"
    if request.param == "one before":
        path.write_bytes(OLD)
        path.chmod(0o600)
    if request.param == "a link":
        (tmp_path / "here" / "real.txt").write_bytes(OLD)
        path.symlink_to("real.txt")
    return path


def write(path: Path) -> None:
    output.write_bytes(NEW, str(path), "-o")


def left(path: Path) -> tuple[bytes | None, list[str]]:
    """What is there now, and beside it."""
    names = sorted(name.name for name in path.parent.iterdir() if name.name not in (path.name, "real.txt"))
    return (path.read_bytes() if path.exists() else None), names


def test_a_file_is_replaced_whole(target: Path) -> None:
    link, before = target.is_symlink(), target.exists()
    write(target)
    assert left(target) == (NEW, [])
    assert not target.is_symlink()
    if link:
        assert (target.parent / "real.txt").read_bytes() == OLD
    if before and not link:
        assert target.stat().st_mode & 0o777 == 0o600
    else:
        mask = os.umask(0)
        os.umask(mask)
        assert target.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "", "."])
def test_what_is_no_path_is_refused(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=r"is not a path|cannot write"):
        output.write("text", path)
    assert list(tmp_path.iterdir()) == []


# --- interrupts -----------------------------------------------------------------------------------------------------


class Interrupter:
    """Raises KeyboardInterrupt before the n-th bytecode that runs in the module."""

    def __init__(self, point: int) -> None:
        self.left = point

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in (output.__file__, target_module.__file__):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_anywhere_leaves_the_old_file_or_the_new(target: Path) -> None:
    """A file object on its way into a variable is closed by its last reference, with a warning: nothing is lost."""
    before, seen, link = left(target)[0], set(), target.is_symlink()
    point, interrupted = 0, True
    while interrupted:
        point += 1
        tracing = sys.gettrace()
        sys.settrace(Interrupter(point))
        try:
            write(target)
            interrupted = False
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(tracing)
        now, beside = left(target)
        assert beside == [], f"a draft is left by an interrupt at bytecode {point}"
        assert now in (before, NEW), f"neither the old file nor the new at bytecode {point}"
        seen.add(now)
        if now == NEW:  # as it was
            target.unlink()
            if link:
                target.symlink_to("real.txt")
            elif before is not None:
                target.write_bytes(before)
    assert seen == {before, NEW}
    assert point > 50


# --- a full disk ----------------------------------------------------------------------------------------------------


class Failing:
    """A binary file on which one method finds the disk full, perhaps halfway."""

    def __init__(self, file: Any, method: str) -> None:
        self.file, self.method = file, method

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def write(self, data: bytes) -> int:
        if self.method == "write":
            self.file.write(data[: len(data) // 2])
            self.file.flush()
            full()
        return int(self.file.write(data))

    def flush(self) -> None:
        if self.method == "flush":
            full()
        self.file.flush()

    def close(self) -> None:
        self.file.close()
        if self.method == "close":
            full()


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("method", ["open", "write", "flush", "close"])
def test_a_full_disk_while_writing(target: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Failing] = []

    def opens(*arguments: Any, **named: Any) -> Any:
        if method == "open":
            full()
        opened.append(Failing(open(*arguments, **named), method))  # noqa: SIM115 (it is closed by who asks for it)
        return opened[-1]

    before = left(target)
    monkeypatch.setattr(output, "open", opens, raising=False)
    with pytest.raises(SpecError, match="No space left on device"):
        write(target)
    monkeypatch.undo()
    assert all(file.closed for file in opened)
    assert left(target) == before


@pytest.mark.parametrize("name", ["fsync", "chmod", "replace"])
def test_a_full_disk_at_a_system_call(target: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, new = left(target), target.is_symlink() or not target.exists()
    called: list[str] = []

    def failing(*_: Any, **__: Any) -> Any:
        called.append(name)
        full()

    monkeypatch.setattr(os, name, failing)
    if name == "chmod" and new:  # nothing to take the permissions from
        write(target)
        assert not called
        return
    with pytest.raises(SpecError, match="No space left on device"):
        write(target)
    monkeypatch.undo()
    assert called
    assert left(target) == before


LIMITED = """
import resource, sys
sys.dont_write_bytecode = True  # a compiled module that is cut off at the limit would stay
from dpcalc.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
main(sys.argv[1:])
"""


@pytest.mark.few(1)
def test_a_file_that_may_not_grow(target: Path) -> None:
    """A real refusal of the kernel, by a limit on the size of files."""
    before = left(target)
    words = [sys.executable, "-c", LIMITED, "bounds", "-o", str(target)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: cannot write {target}: File too large\n")
    assert done.stdout == ""
    assert left(target) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("way", ["-o /dev/full", "> /dev/full"])
def test_a_device_that_is_full(way: str) -> None:
    command = f'"{sys.executable}" -m dpcalc bounds {way}'
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
