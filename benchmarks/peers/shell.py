"""Cold questions: a new process from the prompt, for dpcalc its command, for a peer its own or the shortest program."""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import threading
import time
from typing import Any, NamedTuple

from benchmarks.peers.environments import Environment

PATIENCE = 60.0


class Command(NamedTuple):
    """What is typed; the first word is a command of the package's own environment."""

    package: str
    method: str
    line: str


class Cold(NamedTuple):
    """One question and the commands that answer it."""

    title: str
    commands: tuple[Command, ...]


_AUTODP = "from autodp import mechanism_zoo as m, transformer_zoo as t"
_RDP = "import dp_accounting as d; from dp_accounting.rdp import RdpAccountant as A"
_PLD = "import dp_accounting as d; from dp_accounting.pld import PLDAccountant as A"
_LAW = "from dp_accounting.pld import common as c, privacy_loss_distribution as p"

COLD = (
    Cold(
        "1000 Gaussian mechanisms, sigma 20, delta 1e-6",
        (
            Command(
                "dpcalc",
                "command",
                "dpcalc multi-epoch --algorithm noisy-gd --release epoch -n 1 --steps 1000 -L 0.5 --sigma 20 -d 1e-6 "
                "--json",
            ),
            Command(
                "dp-accounting",
                "closed form",
                "python -c 'import dp_accounting as d; print(d.get_epsilon_gaussian(20 / 1000**0.5, 1e-6))'",
            ),
            Command(
                "dp-accounting",
                "RDP",
                f"python -c '{_RDP}; "
                "print(A().compose(d.SelfComposedDpEvent(d.GaussianDpEvent(20), 1000)).get_epsilon(1e-6))'",
            ),
            Command("prv-accountant", "its command", "compute-dp-epsilon -p 1 -s 20 -d 1e-6 -i 1000"),
            Command(
                "autodp",
                "exact",
                f"python -c '{_AUTODP}; "
                "print(t.ComposeGaussian()([m.ExactGaussianMechanism(20)], [1000]).get_approxDP(1e-6))'",
            ),
            Command("dpcalc", "nothing but Python", "python -c pass"),
            Command("dpcalc", "nothing but numpy", "python -c 'import numpy'"),
        ),
    ),
    Cold(
        "1000 Gaussian mechanisms on Poisson samples of 1 in 100, sigma 1, delta 1e-6",
        (
            Command(
                "dpcalc",
                "command",
                "dpcalc dp-sgd --sampling poisson --sample-rate 0.01 --steps 1000 --noise-multiplier 1 "
                "--adjacency add-remove -d 1e-6 --json",
            ),
            Command(
                "dp-accounting",
                "PLD",
                f"python -c '{_PLD}; print(A().compose(d.SelfComposedDpEvent("
                "d.PoissonSampledDpEvent(0.01, d.GaussianDpEvent(1)), 1000)).get_epsilon(1e-6))'",
            ),
            Command("prv-accountant", "its command", "compute-dp-epsilon -p 0.01 -s 1 -d 1e-6 -i 1000"),
        ),
    ),
    Cold(
        "10000 mechanisms, (0.1, 1e-8)-private each, delta 1e-4",
        (
            Command(
                "dpcalc",
                "command",
                "dpcalc multi-epoch --algorithm repeated --epochs 10000 --epoch-epsilon 0.1 --epoch-delta 1e-8 -d 1e-4 "
                "--json",
            ),
            Command(
                "dp-accounting",
                "PLD",
                f"python -c '{_LAW}; print(p.from_privacy_parameters(c.DifferentialPrivacyParameters(0.1, 1e-8))"
                ".self_compose(10000).get_epsilon_for_delta(1e-4))'",
            ),
            Command(
                "autodp",
                "KOV",
                "python -c 'from autodp.dp_acct import DP_acct; a = DP_acct(); "
                "[a.update_DPlosses(0.1, 1e-8) for _ in range(10000)]; print(a.get_eps(1e-4))'",
            ),
        ),
    ),
)


def measure(cold: Cold, environments: dict[str, Environment], repeats: int) -> dict[str, Any]:
    """Return one row per command: medians over rounds in which everybody is asked once, every other round backwards."""
    asked = [c for c in cold.commands if c.package in environments and not environments[c.package].failed]
    runs: dict[Command, list[dict[str, Any]]] = {command: [] for command in asked}
    for turn in range(-1, repeats):  # the first round only fills the disk cache
        for command in asked if turn % 2 else asked[::-1]:
            found = _run(command, environments[command.package])
            if turn >= 0:
                runs[command].append(found)
    base = next((runs[c] for c in asked if c.package == "dpcalc"), None)
    return {"title": cold.title, "repeats": repeats, "rows": [_row(c, runs[c], base) for c in asked]}


def _row(command: Command, runs: list[dict[str, Any]], base: list[dict[str, Any]] | None) -> dict[str, Any]:
    failed = next((run["failed"] for run in runs if run["failed"]), "")
    row: dict[str, Any] = {"package": command.package, "method": command.method, "line": command.line}
    row |= {name: statistics.median(run[name] for run in runs) for name in ("seconds", "cpu", "mebibytes")}
    if base is not None:
        row["ratio"] = statistics.median(a["seconds"] / b["seconds"] for a, b in zip(runs, base, strict=True))
    return row | {"failed": failed}


def _run(command: Command, environment: Environment) -> dict[str, Any]:
    first, *rest = shlex.split(command.line)
    words = [str(environment.bin / first), *rest]
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
    alarm = threading.Timer(PATIENCE, process.kill)
    alarm.start()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    alarm.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
        "mebibytes": usage.ru_maxrss / 1024.0,
        "failed": f"exit code {process.returncode}" if process.returncode else "",
    }
