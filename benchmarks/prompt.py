"""What a query costs at the prompt: whole processes, each timed beside ``python -c 'import click'``.

Run ``python benchmarks/prompt.py``. Each round starts the two processes one after the other, so that what else the
machine does meets both. The table shows the median over rounds of the ratio of their processor times, and of their wall
clock times. A million steps of DP-SGD are asked about twice: with all iterates public, and with the last one alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

RUN = "-n 60000 -L 1 --smoothness 1 --step-size 0.1 --noise-std 2 -d 1e-6"
LONG = (
    "-n 10000 --batch-size 100 --steps 1000000 --noise-multiplier 5 --clip 1 --step-size 0.5 --loss logistic "
    "--feature-bound 1 --regularisation 0.01 -d 1e-6"
)
QUERIES = {
    "rdp": f"rdp {RUN}",
    "rdp --json": f"rdp {RUN} --json",
    "hockey-stick --json": f"hockey-stick {RUN} --json",
    "--version": "--version",
    **{
        f"dp-sgd, {sampling}{', last' if release else ''}": f"dp-sgd {LONG} --sampling {sampling} {release}"
        for sampling in ("poisson", "fixed", "balls-in-bins", "with-replacement")
        for release in ("", "--release last")
    },
}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""An installed package has its modules compiled."""


def cost(command: list[str]) -> tuple[float, float]:
    """Return the seconds of processor and of wall clock that a process takes."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} exits with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, wall


def ratios(command: list[str], rounds: int) -> tuple[float, float]:
    """Return the median ratios, of processor and of wall clock time, to a process that imports click."""
    reference = [sys.executable, "-c", "import click"]
    cost(command)  # the first run writes the compiled modules
    pairs = [(cost(command), cost(reference)) for _ in range(rounds)]
    processor = statistics.median(query[0] / click[0] for query, click in pairs)
    return processor, statistics.median(query[1] / click[1] for query, click in pairs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    program = [os.path.join(os.path.dirname(sys.executable), "dpcalc")]
    print(f"{'process':<30} processor  wall   (python -c 'import click' = 1)")
    for name, line in QUERIES.items():
        print("{:<30} {:9.2f} {:5.2f}".format(name, *ratios([*program, *line.split()], rounds)))


if __name__ == "__main__":
    main()
