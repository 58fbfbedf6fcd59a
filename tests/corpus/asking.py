"""Puts questions to worker processes, each of which is started anew when it dies."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.corpus.normal import normalised
from tests.corpus.question import Question, as_data

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("worker.py")
PATIENCE = 30
"""Seconds of a processor that one question may take."""
Answer = dict[str, Any]


def environment(root: Path | None) -> dict[str, str]:
    """Return the environment of a worker, the same on every machine; it imports dpcalc from ``root``, if given."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR", "SYSTEMROOT")}
    fixed = {
        "COLUMNS": "80", "LINES": "24", "TERM": "dumb", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC",
        "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    return {**kept, **fixed, **({"PYTHONPATH": str(root)} if root else {})}


class Worker:
    """A process that answers: another interpreter with its own dpcalc, or this one with the dpcalc in ``root``."""

    def __init__(self, python: str | None, patience: int = PATIENCE, root: Path = ROOT) -> None:
        # -P: the folder of the script has modules of ours, which are not to hide others.
        self._words = [python or sys.executable, "-P", str(WORKER), str(patience)]
        self._environment = environment(None if python else root)
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._words, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, encoding="utf-8",
        )  # fmt: skip
        line = self._said()
        if not line:
            self.close()
            raise SystemExit(f"{self._words[0]} cannot import dpcalc")
        self.package: str = json.loads(line)

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def ask(self, question: Question) -> Answer:
        """Return the normalised answer; its code is ``died`` if the process did."""
        line = ""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(as_data(question)) + "\n")
            self._process.stdin.flush()
            line = self._said()
        except BrokenPipeError:
            pass
        if line:
            return normalised(json.loads(line))
        self.close()
        self._start()
        return {"code": "died", "stdout": "", "stderr": "", "written": {}, "seconds": 0.0}

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def answers(
    questions: Sequence[Question], python: str | None = None, processes: int = 2
) -> Iterator[tuple[Question, Answer]]:
    """Yield every question with its answer, in order."""
    free: SimpleQueue[Worker] = SimpleQueue()
    workers = [Worker(python) for _ in range(max(1, min(processes, len(questions))))]
    print(f"asking {workers[0].package}", file=sys.stderr)

    def ask(question: Question) -> Answer:
        worker = free.get()
        try:
            return worker.ask(question)
        finally:
            free.put(worker)

    for worker in workers:
        free.put(worker)
    try:
        with ThreadPoolExecutor(len(workers)) as pool:
            yield from zip(questions, pool.map(ask, questions), strict=True)
    finally:
        for worker in workers:
            worker.close()
