"""What is printed arrives whole, or the exit code says that it did not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BOUNDS = ["bounds", "--json"]
LIMIT = 8192
LIMITED = f"""
import resource, sys
sys.dont_write_bytecode = True  # a compiled module that is cut off at the limit would stay
resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT}, {LIMIT}))
from dpcalc.cli.main import main
main()
"""
UNBUFFERED = pytest.mark.parametrize("unbuffered", ["", "1"])


def dpcalc(arguments: list[str], program: tuple[str, ...] = ("-m", "dpcalc"), unbuffered: str = "", **how: Any) -> Any:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, env=env, timeout=120, check=False, **{"stderr": subprocess.PIPE, **how})


@pytest.fixture(scope="module")
def whole() -> bytes:
    """What the bounds are in JSON; more than any limit here."""
    found: bytes = dpcalc(BOUNDS, stdout=subprocess.PIPE).stdout
    assert len(found) > 2 * LIMIT
    return found


@UNBUFFERED
@pytest.mark.skipif(os.name != "posix", reason="the limit is one of POSIX")
def test_a_file_that_takes_a_part_only(unbuffered: str, tmp_path: Path) -> None:
    """The kernel writes up to the limit, and says that it was a part."""
    with open(tmp_path / "a.json", "wb") as file:
        done = dpcalc(BOUNDS, ("-c", LIMITED), unbuffered, stdout=file)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: cannot write the output: File too large")


@UNBUFFERED
def test_a_file_system_that_is_full(unbuffered: str, tmp_path: Path) -> None:
    inside = 'mount -t tmpfs -o size=16k none "$0" && cd "$0" && ("$@" > a.json; echo $?)'
    if not shutil.which("unshare"):
        pytest.skip("no namespaces here")
    command = ["unshare", "-rm", "sh", "-c", inside, str(tmp_path), sys.executable, "-m", "dpcalc", *BOUNDS]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    if done.stdout == "":
        pytest.skip("no file system can be mounted here")
    assert done.stdout == "2\n"
    assert "No space left on device" in done.stderr


@pytest.mark.few(4)
@UNBUFFERED
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("line", ["--help", "--version", "rdp --help", "bounds", "bounds -o /dev/stdout"])
def test_help_and_version_are_output_too(unbuffered: str, line: str) -> None:
    with open("/dev/full", "wb") as full:
        done = dpcalc(line.split(), unbuffered=unbuffered, stdout=full)
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    ("recipe", "code"), [("{noise_std: 2}", 2), ("{noise_std: 2, assert: epsilon <= 4}", 1), ("{noise: 2}", 2)]
)
def test_a_warning_that_is_lost_is_no_pass(recipe: str, code: int, tmp_path: Path) -> None:
    """Nor is the exit code of a failure changed by it."""
    path = tmp_path / "a.yaml"
    defaults = "{command: rdp, records: 600, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6}"
    path.write_text(f"dpcalc: recipe/1\ndefaults: {defaults}\ncases:\n  a: {recipe}\n", encoding="utf-8")
    with open("/dev/full", "wb") as full:
        assert dpcalc(["check", str(path)], stdout=subprocess.DEVNULL, stderr=full).returncode == code


@pytest.mark.skipif(os.name != "posix", reason="a descriptor is closed by a shell")
@pytest.mark.parametrize("line", ["--version", "bounds", "bounds -o -", "rdp --help"])
def test_a_closed_output(line: str) -> None:
    command = f'"{sys.executable}" -m dpcalc {line} >&-'
    done = subprocess.run(command, shell=True, cwd=ROOT, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write the output: standard output is closed")


@pytest.mark.few(1)
@UNBUFFERED
@pytest.mark.skipif(os.name != "posix", reason="pipes wait or not on POSIX")
def test_a_pipe_that_does_not_wait(unbuffered: str, whole: bytes) -> None:
    """It takes a part, or nothing until somebody has read: the rest is written later."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
    many = "import sys; from dpcalc.cli.main import main; from dpcalc.files import output; put = output.write\n"
    many += "output.write = lambda text, *rest: put(text * 50, *rest); main()"
    with subprocess.Popen([sys.executable, "-c", many, "cite"], env=env, stdout=writing) as child:
        os.close(writing)
        with open(reading, "rb") as stream:
            found = stream.read()
        assert child.wait(timeout=120) == 0
    assert len(found) > 1 << 16, "more than a pipe holds"
    alone = dpcalc(["cite"], stdout=subprocess.PIPE).stdout
    assert found == alone * 50


@UNBUFFERED
@pytest.mark.skipif(os.name != "posix", reason="a pipe is closed by its reader")
def test_a_pipe_that_nobody_reads(unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as pipe:
        done = dpcalc(BOUNDS, unbuffered=unbuffered, stdout=pipe)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.few(1)
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout here")
@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_its_name(path: str, whole: bytes, tmp_path: Path) -> None:
    """To a pipe, and to a file that is not replaced by another of its name."""
    if not Path(path).exists():
        pytest.skip(f"there is no {path} here")
    assert dpcalc([*BOUNDS, "-o", path], stdout=subprocess.PIPE).stdout == whole
    with open(tmp_path / "a", "wb") as file:
        file.write(b"before\n")
        file.flush()
        assert dpcalc([*BOUNDS, "-o", path], stdout=file).returncode == 0
    assert (tmp_path / "a").read_bytes() == b"before\n" + whole


def test_json_is_whole_without_a_buffer(whole: bytes) -> None:
    found = dpcalc(BOUNDS, unbuffered="1", stdout=subprocess.PIPE)
    assert (found.returncode, found.stdout) == (0, whole)
    assert json.loads(whole)
