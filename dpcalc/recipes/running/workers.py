"""A pool of processes that compute one thing at a time, each within a limit of time and of memory.

A computation that takes too long is ended with its process. Nothing is interrupted in a process that continues, so
no result depends on the state after an interruption. A process that ends early costs only its current
computation.

A process starts with its own path: neither the current folder nor any environment variable says where its
modules come from.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, Self

from dpcalc.errors import DpcalcError, Stopped

GIB = 1 << 30
_ATTEMPTS = 2  # a process may end by accident once
_START = 60.0  # seconds
_GRACE = 10.0  # seconds after which a process ends by itself if its parent could not end it

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); import dpcalc; del sys.path[0]; sys.path += sys.argv[2:]; "
    "from dpcalc.recipes.running.workers import serve; serve()"
)
"""``import dpcalc`` imports only the package: see there."""


class Pool:
    """Processes that apply a function to arguments; the function and all values can be pickled.

    Args:
        function: a DpcalcError that it raises is that of the result; a MemoryError is reported as
            `Stopped`, in a new process.
        jobs: the largest number of processes.
        memory: the limit on a process's data in GiB, or None. Platforms without such a limit ignore it.
    """

    def __init__(self, function: Callable[[Any], Any], jobs: int, memory: float | None = None) -> None:
        self._setup, self._memory = (function, memory), memory
        self._all: list[_Worker] = []
        self._lock = threading.Lock()
        self._closed = False
        self._of_thread = threading.local()  # each has a process, if it has one
        self._threads = ThreadPoolExecutor(jobs, initializer=_block_interrupts)

    def submit(self, argument: Any, timeout: float | None = None) -> Future[Any]:
        """Return the future result; it raises Stopped if the computation was ended after ``timeout`` seconds,
        for want of memory, or, twice, from outside.
        """  # fmt: skip
        return self._threads.submit(self._computed, argument, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, and drop what was not computed."""
        with self._lock:
            self._closed = True
            for worker in self._all:
                worker.end()
        self._threads.shutdown(cancel_futures=True)

    def _computed(self, argument: Any, timeout: float | None) -> Any:
        """Return what the process of this thread, or a new one, computes.

        Raises:
            Stopped: the process was ended.
        """
        why = ""
        worker: _Worker | None
        for _ in range(_ATTEMPTS):
            worker, self._of_thread.worker = getattr(self._of_thread, "worker", None), None
            try:
                worker = worker or self._started()
            except (EOFError, OSError) as error:
                why = str(error)
                continue
            try:
                done, result = worker.ask((argument, timeout), timeout)
            except EOFError:
                why = self._ended(worker)
                continue
            except TimeoutError:
                self._ended(worker)
                raise _overdue(timeout) from None
            if not done:
                self._ended(worker)
                raise _exhausted(self._memory)
            self._of_thread.worker = worker
            if isinstance(result, Exception):
                raise result
            return result
        raise Stopped(
            f"the process that computed it ended early, twice: {why}", "with fewer --jobs there is more memory for each"
        )

    def _started(self) -> _Worker:
        """Start a process and wait until it is ready.

        Raises:
            EOFError, OSError: it could not be started.
        """
        with self._lock:
            if self._closed:
                raise EOFError("all are being ended")
            worker = _Worker()
            self._all.append(worker)
        try:
            worker.ask(self._setup, _START)
        except (EOFError, TimeoutError):
            raise EOFError(f"it did not start ({self._ended(worker)})") from None
        return worker

    def _ended(self, worker: _Worker) -> str:
        """End a process unless it has ended, and return how it ended."""
        with self._lock:
            worker.end()
            if worker in self._all:
                self._all.remove(worker)
        return worker.fate


def _overdue(timeout: float | None) -> Stopped:
    return Stopped(
        f"took longer than {timeout:g} s", "allow more with --timeout, or with timeout: in the recipe, or ask for less"
    )


def _exhausted(memory: float | None) -> Stopped:
    limit = "the machine has" if memory is None else f"the limit of {memory:g} GiB"
    raise_it = "" if memory is None else "allow more with --memory-limit, or "
    return Stopped(f"needed more memory than {limit}", f"{raise_it}ask for less, such as a shorter schedule")


def _block_interrupts() -> None:
    """Hide interrupts of the terminal from the processes that this thread starts; the main one ends them."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


class _Worker:
    """A process, with a pickle for each request and each reply."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, message: Any, seconds: float | None) -> Any:
        """Return the answer to a message.

        Raises:
            TimeoutError: there was none in time; the process has ended.
            EOFError: the process has ended.
        """
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None
        assert replies is not None
        text = pickle.dumps(message)
        overdue = threading.Event()

        def stop() -> None:
            overdue.set()
            self._process.kill()

        timer = threading.Timer(seconds, stop) if seconds is not None else None
        if timer is not None:
            timer.start()
        answer = None
        try:
            requests.write(text)
            requests.flush()
            answer = pickle.load(replies)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self._process.kill()
        if timer is not None:
            timer.cancel()
            timer.join()
        if overdue.is_set():
            raise TimeoutError
        if answer is None:
            raise EOFError
        return answer

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()

    @property
    def fate(self) -> str:
        """How the process ended."""
        code = self._process.returncode
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _command() -> list[str]:
    """Return the command that starts a process with the interpreter and the package of this one."""
    import dpcalc

    if not sys.executable:
        raise OSError("where the Python interpreter is, is not known")
    flags = ["-E", "-P", f"-Xutf8={sys.flags.utf8_mode}"]
    flags += ["-s"] * bool(sys.flags.no_user_site) + ["-B"] * sys.dont_write_bytecode
    package = os.path.dirname(os.path.abspath(dpcalc.__path__[0]))
    return [sys.executable, *flags, "-c", _PROGRAM, package, *_packages()]


def _packages() -> list[str]:
    """Return this process's folders of installed packages, without the environment's PYTHONPATH."""
    steered = {os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    installed = [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    return [path for path in installed if os.path.isabs(path) and path not in steered]


def serve() -> None:
    """Answer the messages on standard input: first the function and the memory, then arguments.

    The computation sees no standard input, and its output is dropped.
    """
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    from dpcalc.training import one_blas_thread

    one_blas_thread()  # each thread would need its own memory
    with contextlib.suppress(EOFError, BrokenPipeError):  # the other side has gone
        _answer(requests, replies)


def _answer(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Reply to every message with whether the process goes on, and the result of its argument."""
    function, memory = pickle.load(requests)
    _limit_memory(memory)
    _send(replies, pickle.dumps((True, None)))
    done = True
    while done:
        argument, timeout = pickle.load(requests)
        _end_after(timeout)
        try:
            text = pickle.dumps((True, function(argument)))
        except DpcalcError as error:
            text = pickle.dumps((True, error))
        except MemoryError:  # an import may have been interrupted: the process is not used again
            text, done = pickle.dumps((False, None)), False
        _send(replies, text)
        _end_after(None)


def _send(stream: IO[bytes], text: bytes) -> None:
    stream.write(text)
    stream.flush()


def _limit_memory(limit: float | None) -> None:
    """Make allocations beyond so many GiB fail, if the platform can."""
    if limit is None:
        return
    try:
        import resource
    except ImportError:
        return
    # Linux counts memory mapped for data in RLIMIT_DATA; elsewhere only RLIMIT_AS comes near.
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    _, hard = resource.getrlimit(kind)
    size = int(limit * GIB)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (size if hard == resource.RLIM_INFINITY else min(size, hard), hard))


def _end_after(timeout: float | None) -> None:
    """Have the system end this process some time after the timeout, in case the parent was killed."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0 if timeout is None else timeout + _GRACE)
