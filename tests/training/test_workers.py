"""Processes that share an ensemble: the same numbers as without them, and none that is left over."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dpcalc.errors import DpcalcError
from dpcalc.training.run import single

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")

EDGES = [0, 3, 4, 9]


def outcome(place: int) -> np.ndarray:
    return place + np.arange(2.0 * (EDGES[place + 1] - EDGES[place])).reshape(-1, 2)


SAME = """
import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import time
import numpy as np
from dpcalc.training.run import ensemble, single
from tests.training.reference import problem_of, run_of
from tests.training.test_ensemble import D, LOSSES, N
from tests.training.test_single import settings
from dpcalc.training.run.plan import plan
ensemble._ENTRIES, ensemble._MUCH, ensemble._BEATS = 64 * D, 1, 64 * D * 2
loss, used = LOSSES[0], []
forked = ensemble.by_processes
def counted(*given):
    used.append(given[2])
    return forked(*given)
ensemble.by_processes = counted
for algorithm in ("pnsgd", "shuffled-stop"):
    planned, problem = plan(run_of(algorithm, loss, N, **settings(algorithm, 1, "own")), N, D), problem_of(loss, N, D)
    found, told = set(), []
    for count in (1, 2, 3):
        told.clear()
        while not single.may_fork():
            time.sleep(0.01)  # until the threads of the last call are gone
        w = ensemble.train(planned, problem, 300, 2, workers=count,
                           progress=lambda *now: told.append(now))
        found.add(w.tobytes())
        assert told[-1] == (300 * N, 300 * N) and [d for d, _ in told] == sorted(d for d, _ in told)
    genuine, ensemble.may_fork = ensemble.may_fork, lambda: False
    found.add(ensemble.train(planned, problem, 300, 2, workers=2).tobytes())
    ensemble.may_fork = genuine
    print(len(found), end=" ")
print(used)
"""


def test_numbers_do_not_depend_on_the_processes() -> None:
    done = subprocess.run([sys.executable, "-c", SAME], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split(maxsplit=2) == ["1", "1", "[2, 3, 2, 3]\n"]


FORKING = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
"""The process of the tests may have threads, of which later versions of Python warn."""


@FORKING
def test_outcomes_are_put_where_they_belong() -> None:
    done: list[int] = []
    for count in (1, 2, 9):
        done.clear()
        found = single.by_processes(outcome, 3, count, done.append)
        np.testing.assert_array_equal(found, np.concatenate([outcome(place) for place in range(3)]))
        assert sorted(done) == [0, 1, 2]


@FORKING
def test_a_failure_is_raised_and_ends_the_others() -> None:
    def block(place: int) -> np.ndarray:
        if place == 1:
            raise ZeroDivisionError("of place 1")
        time.sleep(60.0)
        return outcome(place)

    with pytest.raises(ZeroDivisionError, match="of place 1"):
        single.by_processes(block, 3, 3, lambda place: None)


@FORKING
def test_a_process_that_is_killed_is_no_outcome() -> None:
    def block(place: int) -> np.ndarray:
        if place == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome(place)

    with pytest.raises(DpcalcError, match="was ended"):
        single.by_processes(block, 3, 2, lambda place: None)


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
from dpcalc.training.run import single
def block(place):
    os.write(1, f"{os.getpid()}\\n".encode())  # at once: two processes write to one pipe
    import time
    time.sleep(60.0)
try:
    single.by_processes(block, 2, 2, print)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_interrupt_ends_the_processes() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
