"""Run targets and report what breaks.

``python -m tests.fuzz [--seconds S | --cases N] [--seed WORD] [-j JOBS] [--kind KIND | target ...]``
"""

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
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread's buffers count towards the limit

from tests.fuzz.checks import checks
from tests.fuzz.files import Target, schedules
from tests.fuzz.lines import Hung, command_lines
from tests.fuzz.numbers import numbers
from tests.fuzz.questions import questions
from tests.fuzz.recipes import baselines, recipes
from tests.fuzz.tables import models, tables

TARGETS: dict[str, Target] = {
    "numbers": numbers, "schedules": schedules, "tables": tables, "models": models, "recipes": recipes,
    "baselines": baselines, "checks": checks, "command-lines": command_lines, "questions": questions,
}  # fmt: skip
KINDS = {
    "lines": ("command-lines", "questions"), "recipes": ("recipes", "baselines", "checks"),
    "tables": ("tables", "models", "schedules"),
}  # fmt: skip
MEMORY = 2 << 30
PATIENCE = 120
"""Bytes of address space, and seconds of computing for one case; ten times as long may pass where others compute."""


def one(name: str, seed: str, number: int, patience: float = PATIENCE) -> str | None:
    """What went wrong with one case, or None; one that computes for more seconds than ``patience`` did."""
    signal.setitimer(signal.ITIMER_PROF, patience)
    signal.setitimer(signal.ITIMER_REAL, 10.0 * patience)
    try:
        with tempfile.TemporaryDirectory() as folder:
            TARGETS[name](random.Random(f"{name} {seed} {number}"), Path(folder))
    except BaseException as error:  # a hang or an interrupt, too
        if isinstance(error, KeyboardInterrupt):
            raise
        return "".join(traceback.format_exception(error))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return None


def _hung(*_: Any) -> None:
    raise Hung("no end in time")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=", ".join(TARGETS))
    parser.add_argument("--kind", choices=KINDS, help="the targets of this kind")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long in all (default 60)")
    parser.add_argument("--cases", type=int, help="how many of each target, in place of --seconds")
    parser.add_argument("--seed", default="0", help="another seed gives other cases")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds of computing for a case")
    parser.add_argument("--only", type=int, metavar="N", help="only case N, to repeat a finding")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="how many processes share the cases")
    chosen = parser.parse_args()
    if chosen.jobs == 1 or chosen.only is not None:
        done, findings, peak = share(chosen, 0)
    else:
        with ProcessPoolExecutor(chosen.jobs) as pool:
            found = list(pool.map(share, itertools.repeat(chosen), range(chosen.jobs)))
        done, findings, peak = sum(f[0] for f in found), sum(f[1] for f in found), max(f[2] for f in found)
    print(f"{done} cases, {findings} findings, peak memory {peak} MiB")
    return 1 if findings else 0


def share(chosen: argparse.Namespace, part: int) -> tuple[int, int, int]:
    """Run one process's part of the cases; return how many, how many were found wrong, and the peak in MiB."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _hung)
    signal.signal(signal.SIGPROF, _hung)
    end = None if chosen.cases else time.monotonic() + chosen.seconds
    every = range(part, chosen.cases, chosen.jobs) if chosen.cases else itertools.count(part, chosen.jobs)
    findings = done = 0
    for number in every if chosen.only is None else [chosen.only]:
        if end is not None and time.monotonic() > end:
            break
        for name in chosen.targets or KINDS.get(chosen.kind, TARGETS):
            done += 1
            faulthandler.dump_traceback_later(20 * PATIENCE, exit=True)  # where no signal is looked at
            if problem := one(name, chosen.seed, number, chosen.patience):
                findings += 1
                print(
                    f"{problem}repeat: python -m tests.fuzz {name} --seed {chosen.seed} --only {number}\n", flush=True
                )
    faulthandler.cancel_dump_traceback_later()
    return done, findings, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    sys.exit(main())
