"""``dpcalc check`` where processes are killed: what they leave undone, and that none of them stays behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_errors import environment

RECIPE = """\
dpcalc: recipe/1
defaults: {records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6}
cases:
  slow: {command: multi-epoch, algorithm: noisy-sgd, steps: 1e6, batch_size: 250, strong_convexity: 0.001, epsilon: 1}
  a: {command: rdp, noise_std: 2, assert: epsilon <= 5}
  b: {command: rdp, noise_std: 2, assert: epsilon <= 4}
"""
PATIENT = 60.0

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found in /proc")


def children(parent: int) -> set[int]:
    """Return the processes that a process started and that have not ended."""
    found = set()
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit():
                state, above = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                found |= {int(folder.name)} if int(above) == parent and state != "Z" else set()
    return found


def fresh(parent: int, seen: set[int]) -> int:
    """Return a child that was not there before, as soon as it is there."""
    end = time.monotonic() + PATIENT
    while time.monotonic() < end:
        if new := children(parent) - seen:
            seen.add(found := new.pop())
            return found
        time.sleep(0.01)
    raise AssertionError("no process was started")


@contextlib.contextmanager
def checking(folder: Path, *more: str, recipe: str = RECIPE) -> Iterator[subprocess.Popen[str]]:
    (folder / "r.yaml").write_text(recipe)
    command = [sys.executable, "-m", "dpcalc", "check", "r.yaml", "--json", *more]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_killed_process_costs_the_case_it_was_at(tmp_path: Path) -> None:
    seen: set[int] = set()
    with checking(tmp_path) as process:
        for _ in range(2):
            os.kill(fresh(process.pid, seen), signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENT)
    assert process.returncode == 3
    assert "Traceback" not in err
    checks = [case["check"] for case in json.loads(out)["cases"]]
    assert [(check["status"], check["exit_code"]) for check in checks] == [("error", 3), ("passed", 0), ("failed", 1)]
    assert "ended early, twice" in checks[0]["message"]


@pytest.mark.few(1)
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
)
def test_an_end_in_the_middle_leaves_no_process(
    tmp_path: Path, jobs: str, number: signal.Signals, code: int, said: str
) -> None:
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # ignored in the background
        "from dpcalc.cli.main import main; main()"
    )
    (tmp_path / "r.yaml").write_text(RECIPE)
    with subprocess.Popen(
        [sys.executable, "-c", program, "check", "r.yaml", "-j", jobs], cwd=tmp_path, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        worker = fresh(process.pid, set())
        time.sleep(0.2)
        os.killpg(process.pid, number)  # as a terminal does
        out, err = process.communicate(timeout=PATIENT)
    assert (process.returncode, out, err) == (code, "", f"error: {said}\n")
    assert not os.path.exists(f"/proc/{worker}")


def test_processes_end_where_their_parent_was_killed(tmp_path: Path) -> None:
    seen: set[int] = set()
    quick = "  c: {command: shuffle, noise_std: 2, diameter: 1, assert: epsilon <= 5}\n"  # which is no closed form
    with checking(tmp_path, "-j", "2", "--timeout", "1", recipe=RECIPE + quick) as process:
        workers = [fresh(process.pid, seen) for _ in range(2)]
        time.sleep(0.5)  # one is idle by then, and one busy
        process.kill()
        process.wait(PATIENT)
        end = time.monotonic() + PATIENT
        while any(os.path.exists(f"/proc/{worker}") for worker in workers) and time.monotonic() < end:
            time.sleep(0.1)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert not [worker for worker in workers if os.path.exists(f"/proc/{worker}")]
