"""Processes that share the blocks of an ensemble.

Threads would wait for each other between any two calls of numpy. A copy of this process has all that it needs, so that
nothing is sent to it. Where copies are not safe or not to be had there are none: see `may_fork`.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import DpcalcError

Array = NDArray[np.float64]
Beat = Callable[[int], None]
Block = Callable[[int, Beat], Array]


def may_fork() -> bool:
    """Return whether this process may be copied: on Linux, as long as it has one thread, and is nobody's worker."""
    from multiprocessing import current_process

    if sys.platform != "linux" or current_process().daemon:
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def by_processes(block: Block, edges: list[int], columns: int, workers: int, beat: Beat) -> Array:
    """Return the outcomes of all blocks, which some processes share, one below the other.

    Args:
        block: block number, what to call with the steps done -> its outcome, shape (its width, columns).
        edges: where blocks begin, and the number of rows in all.
        columns: of the outcome.
        workers: processes, >= 1.
        beat: called with the steps done.

    Raises:
        DpcalcError: a process ended before its work.
        Exception: what a block raises.
    """
    from multiprocessing import connection, get_context

    forking: Any = get_context("fork")
    shared = mmap.mmap(-1, max(1, 8 * edges[-1] * columns))
    result = np.frombuffer(shared, np.float64, edges[-1] * columns).reshape(edges[-1], columns)
    blocks = range(len(edges) - 1)

    def work(places: range, told: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the affair of the process that waits
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with contextlib.suppress(BrokenPipeError):  # nobody waits any more
            try:
                for place in places:
                    result[edges[place] : edges[place + 1]] = block(place, told.send)
                told.send(None)
            except Exception as error:
                told.send(error)

    processes: list[Any] = []
    open_ends: dict[Any, Any] = {}
    try:
        for k in range(min(workers, len(blocks))):
            mine, theirs = forking.Pipe(duplex=False)
            process = forking.Process(target=work, args=(blocks[k::workers], theirs), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            open_ends[mine] = process
        while open_ends:
            ready: list[Any] = connection.wait(list(open_ends))
            for end in ready:
                try:
                    message = end.recv()
                except EOFError:
                    raise DpcalcError("a process that trained replicas was ended", "take fewer --workers") from None
                if isinstance(message, Exception):
                    raise message
                if message is None:
                    del open_ends[end]
                else:
                    beat(message)
        return result.copy()
    finally:
        for process in processes:
            process.terminate()
            process.join()
