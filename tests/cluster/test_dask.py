"""A real cluster of dask on this machine, where dask is installed."""

import json
import os
import sys
from pathlib import Path

import pytest

from dpcalc.cli.main import main as command
from dpcalc.errors import SpecError
from tests.recipes.conftest import Write
from tests.recipes.conftest import write as write  # noqa: PLC0414 (a fixture)


def main(arguments: list[str]) -> object:
    with pytest.raises(SystemExit) as ended:
        command(arguments)
    return ended.value.code


CASES = """\
sweep:
  command: rdp
  matrix: {noise_std: [1, 2, 3, 4, 5], index: "1:40:1"}
  accept: one-index
  assert: epsilon <= 0.5
"""


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "scheduler", "ucx://127.0.0.1:1"])
def test_the_command_refuses_addresses_that_it_cannot_trust(write: Write, address: str) -> None:
    assert main(["check", write(CASES), "--cluster", address]) == 2


def test_options_that_contradict_each_other_are_refused(write: Write) -> None:
    recipe = write(CASES)
    assert main(["check", recipe, "--insecure"]) == 2
    assert main(["check", recipe, "--cluster", "local", "--insecure"]) == 2
    assert main(["train", "--synthetic", "logistic", "-n", "9", "--cluster", "local"]) == 2


@pytest.mark.campaign
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_the_number_of_workers_changes_no_byte(write: Write, jobs: int) -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("cryptography")
    recipe = write(CASES)
    code = main(["check", recipe, "--report", "jsonl=here.jsonl", "-o", "here.txt"])
    there = ["--cluster", "local", "--jobs", str(jobs), "--report", "jsonl=there.jsonl", "-o", "there.txt"]
    assert main(["check", recipe, *there]) == code
    assert Path("there.jsonl").read_bytes() == Path("here.jsonl").read_bytes()
    assert Path("there.txt").read_bytes() == Path("here.txt").read_bytes()


def die(text: str) -> str:
    """Answer, or end the process of the worker."""
    if json.loads(text)["die"]:
        os._exit(3)
    return text


@pytest.mark.campaign
@pytest.mark.filterwarnings("default")
def test_a_worker_that_ends_is_told_from_one_that_answers() -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("cryptography")
    from dpcalc.cluster.dask import cluster
    from dpcalc.errors import WorkerDied

    with cluster("local", workers=2) as joined:
        assert joined.submit(die, '{"die": false}').result(60) == '{"die": false}'
        with pytest.raises(WorkerDied):
            joined.submit(die, '{"die": true}').result(60)
        assert joined.submit(die, '{"die": false}').result(60) == '{"die": false}'


def test_a_cluster_needs_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpcalc.cluster.dask import cluster

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SpecError, match="distributed"), cluster("local"):
        pass
