"""The other end of a worker: asks, waits no longer than was said, and starts a new worker where one was lost."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import Environment

HERE = Path(__file__).resolve().parent
STARTING = 120.0  # seconds a worker may take to import its package

Reply = dict[str, Any]


class Session:
    """One package, in a process of its own."""

    def __init__(self, environment: Environment, adapter: Path, *, memory: int) -> None:
        self.name = environment.name
        self._command = [str(environment.bin / "python"), "-I", str(HERE / "worker.py"), str(adapter), str(memory)]
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        hello = self._start()
        self.failed: str = hello.get("says", "") if "failed" in hello else ""
        self.methods: dict[str, list[str]] = hello.get("methods", {})

    def ask(self, kind: str, method: str, given: dict[str, Any], *, patience: float, times: int = 0) -> Reply:
        """Return {"value", "seconds"} or {"failed", "says"}; after ``patience`` seconds the worker is ended.

        With ``times`` given, so many questions are timed that differ from this one in the tenth digit of delta.
        """
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        line = json.dumps({"kind": kind, "method": method, "given": given, "times": max(1, times), "fresh": times > 0})
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._lost()
        return self._answer(patience)

    def close(self) -> None:
        """End the worker."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None

    def _start(self) -> Reply:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/"
        )
        self._rest = b""
        return self._answer(STARTING)

    def _answer(self, patience: float) -> Reply:
        assert self._process is not None
        assert self._process.stdout is not None
        end = time.monotonic() + patience
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.close()
                return {"failed": "timeout", "says": f"longer than {patience:g} s"}
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                return self._lost()
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return dict(json.loads(line))

    def _lost(self) -> Reply:
        assert self._process is not None
        self._process.communicate()
        code, self._process = self._process.returncode, None
        return {"failed": "killed", "says": f"the process ended with code {code}"}
