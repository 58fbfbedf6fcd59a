"""How many threads products use: a matter of time alone, and none of the caller's business afterwards."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import numpy, dpcalc
from dpcalc import training
for _, put in training._loaded():
    put(2)
def seen():
    return [get() for get, _ in training._loaded()]
before, within = seen(), []
from dpcalc.training.run import single
genuine = single.train
single.train = lambda *a, **k: (within.extend(seen()), genuine(*a, **k))[1]
dpcalc.train(synthetic="logistic", records=20, dimension=2, radius=1, epsilon=1, delta=1e-5)
print([before, within, seen()])
"""


@pytest.mark.parametrize("chosen", ["", "2"])
def test_python_trains_with_one_thread_and_gives_back_the_others(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if chosen:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", chosen)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    before, within, after = json.loads(done.stdout)
    if 2 not in before:
        pytest.skip("OpenBLAS is not there, or has one thread at most")
    assert after == before
    assert within == (before if chosen else [1 for _ in before])


COMMAND = """
import json, sys
from dpcalc import training
from dpcalc.cli.main import main
sys.argv = ["dpcalc", "schema"]
try:
    main(*map(json.loads, sys.stdin))
except SystemExit:
    print("\\n" + json.dumps([get() for get, _ in training._loaded()]))
"""


def threads(arguments: str) -> list[int]:
    """Return how many threads each OpenBLAS has that is loaded after a command."""
    done = subprocess.run([sys.executable, "-c", COMMAND], input=arguments, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_a_command_of_its_own_process_has_one_thread_and_another_leaves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("OPENBLAS", "OMP"):
        monkeypatch.delenv(f"{library}_NUM_THREADS", raising=False)
    ours = threads("")
    others = threads('["schema"]')
    if not others or max(others) == 1:
        pytest.skip("OpenBLAS is not there, or has one thread at most")
    assert ours == [1 for _ in others]
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    assert threads("") == [2 for _ in others]
