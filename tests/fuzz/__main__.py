"""``python -m tests.fuzz [--seconds S | --cases N] [--seed WORD] [target ...]``: run targets, report what breaks."""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread's buffers count towards the limit

from tests.fuzz.files import Target, schedules
from tests.fuzz.lines import Hung, command_lines
from tests.fuzz.numbers import numbers
from tests.fuzz.recipes import baselines, recipes
from tests.fuzz.tables import models, tables

TARGETS: dict[str, Target] = {
    "numbers": numbers, "schedules": schedules, "tables": tables, "models": models, "recipes": recipes,
    "baselines": baselines, "command-lines": command_lines,
}  # fmt: skip
MEMORY = 2 << 30
PATIENCE = 120
"""Bytes of address space, and seconds for one case."""


def one(name: str, seed: str, number: int) -> str | None:
    """What went wrong with one case, or None."""
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        with tempfile.TemporaryDirectory() as folder:
            TARGETS[name](random.Random(f"{name} {seed} {number}"), Path(folder))
    except BaseException as error:  # a hang or an interrupt, too
        if isinstance(error, KeyboardInterrupt):
            raise
        return "".join(traceback.format_exception(error))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return None


def _hung(*_: Any) -> None:
    raise Hung(f"no end within {PATIENCE} seconds")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=60.0, help="how long in all (default 60)")
    parser.add_argument("--cases", type=int, help="how many of each target, in place of --seconds")
    parser.add_argument("--seed", default="0", help="another seed gives other cases")
    parser.add_argument("--only", type=int, metavar="N", help="only case N, to repeat a finding")
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _hung)
    end = None if chosen.cases else time.monotonic() + chosen.seconds
    numbered = [chosen.only] if chosen.only is not None else range(chosen.cases) if chosen.cases else itertools.count()
    findings = done = 0
    for number in numbered:
        if end is not None and time.monotonic() > end:
            break
        for name in chosen.targets or TARGETS:
            done += 1
            faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)  # where no signal is looked at
            if problem := one(name, chosen.seed, number):
                findings += 1
                print(f"{problem}repeat: python -m tests.fuzz {name} --seed {chosen.seed} --only {number}\n")
    faulthandler.cancel_dump_traceback_later()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{done} cases, {findings} findings, peak memory {peak} MiB")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
