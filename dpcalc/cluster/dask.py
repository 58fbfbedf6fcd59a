"""Clusters of dask as an executor: only names of functions and texts are sent.

Every member of a dask cluster can run programs on all of its machines. TLS with your own certificates keeps others out
(docs/threat-model.md).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from functools import partial
from typing import Any

from dpcalc.cluster.calls import (
    LOCAL,
    answer_of,
    call,
    checked_address,
    name_of,
    refuse_open,
    refuse_other_versions,
    versions,
)
from dpcalc.errors import DpcalcError, SpecError, WorkerDied, WorkerLost

ATTEMPTS = 4
"""How often a piece of work is sent: once, and three times more."""

_PER_THREAD = 2  # pieces under way per thread of a worker
_LEAST = 8  # pieces under way
_LOOK = 2.0  # seconds between two checks of the number of workers
_JOIN = 60.0  # seconds to wait for the first worker
_CONNECT = 10.0  # seconds to wait for a scheduler, at first and after a lost connection
_HERE = "127.0.0.1:0"  # dask's own HTTP pages are only for this machine
_CRITICAL = 50  # the level of dask's own log messages


Send = Callable[[str, str], "Future[Any]"]
"""Sends a call: the name of a function, and a document."""


class Cluster(Executor):
    """An executor of dask workers that have the versions of this process; their answers are checked.

    Args:
        client: of `distributed`.
        insecure: whether workers may be reached without TLS.
        send: sends a call instead of the client.
    """

    def __init__(self, client: Any, *, insecure: bool = False, send: Send | None = None) -> None:
        self._client, self._insecure = client, insecure
        self._send = send or partial(sent, client, insecure=insecure)
        self._width, self._looked = 0, -_LOOK
        self._refuse_workers()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **more: Any) -> Future[Any]:
        """Return the future answer of a function of the package to one text.

        Raises:
            SpecError: the function is not of the package, or the argument is not one text.
        """
        if len(arguments) != 1 or more or not isinstance(arguments[0], str):
            raise SpecError("a cluster is sent a text and the name of a function")
        name, document = name_of(function), arguments[0]
        return answered(self._send(name, document), name, document)

    def ahead(self) -> int:
        """Return how many pieces of work may be under way now, so that no worker waits.

        Raises:
            WorkerLost: the connection to the scheduler is lost permanently.
        """
        if self._client.status in ("closing", "closed"):
            raise WorkerLost(
                f"the scheduler ended, or cannot be reached: there was no connection to it for {_CONNECT:g} s",
                "start it and run again; with --checkpoint, what was answered is kept",
            )
        if time.monotonic() - self._looked >= _LOOK and self._client.status == "running":
            try:
                self._width = sum(self._threads().values())
            except SpecError:
                raise
            except Exception:
                pass  # keep the last number; lost workers are noticed elsewhere
            self._looked = time.monotonic()
        return max(_LEAST, _PER_THREAD * self._width)

    def _threads(self) -> dict[str, int]:
        """Return the number of threads of each worker, by address.

        Raises:
            SpecError: one is reached without TLS.
        """
        threads: dict[str, int] = dict(self._client.nthreads())
        if not self._insecure:
            refuse_open(list(threads), "a worker")
        return threads

    def _refuse_workers(self) -> None:
        """Refuse the present workers if one has other versions or is reached without TLS."""
        self._width = sum(self._threads().values())
        for address, said in self._client.run(versions).items():
            try:
                theirs = json.loads(said)
            except (TypeError, ValueError):
                theirs = None
            refuse_other_versions(theirs, f"the worker {address}")


def sent(client: Any, name: str, document: str, *, insecure: bool = False) -> Future[Any]:
    """Return the future outcome of a call that a client of dask sends.

    The future holds SpecError if the worker is reached without TLS, unless `insecure`. The future always ends: dask's
    own executor leaves one pending if a connection breaks while the answer is fetched.
    """
    outcome: Future[Any] = Future()
    task = client.submit(call, name, document, pure=False, retries=0)

    async def carry() -> None:
        try:
            value = await client.gather(task, asynchronous=True)
            if not insecure:
                refuse_holders((await client.scheduler.who_has(keys=[task.key])).get(task.key, ()))
        except BaseException as error:
            if outcome.set_running_or_notify_cancel():
                outcome.set_exception(error if isinstance(error, Exception) else CancelledError())
            return
        if outcome.set_running_or_notify_cancel():
            outcome.set_result(value)

    async def cancel() -> None:
        with contextlib.suppress(Exception):
            await client.cancel([task], asynchronous=True)

    def dropped(future: Future[Any]) -> None:
        if future.cancelled():
            with contextlib.suppress(Exception):  # the client may have been closed
                client.loop.add_callback(cancel)

    outcome.add_done_callback(dropped)
    client.loop.add_callback(carry)
    return outcome


def refuse_holders(addresses: Iterable[str]) -> None:
    """Refuse an answer if a worker that holds it, which may have joined late, is reached without TLS.

    Raises:
        SpecError: one is reached so.
        WorkerLost: no worker holds the answer any more, so it is unknown who computed it.
    """
    holders = list(addresses)
    if not holders:
        raise WorkerLost("the worker that answered is gone, and its address with it")
    refuse_open(holders, "a worker")


def answered(future: Future[Any], name: str, document: str) -> Future[str]:
    """Return the future answer to a call, from what a worker sends: see `dpcalc.cluster.calls`.

    It raises WorkerDied if dask reports that workers ended during the call, and WorkerLost if there is no answer.
    """
    answer: Future[str] = Future()

    def take(done: Future[Any]) -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            answer.set_result(answer_of(name, document, done.result()))
        except CancelledError:
            answer.set_exception(WorkerLost("the cluster dropped what it was sent: its scheduler may have ended"))
        except Exception as error:
            worker = getattr(getattr(error, "last_worker", None), "address", None)
            died = WorkerDied("its process is gone" + (f" (the worker {worker})" if worker else ""))
            answer.set_exception(died if type(error).__name__ == "KilledWorker" else error)

    def drop(dropped: Future[str]) -> None:
        if dropped.cancelled():
            future.cancel()

    answer.add_done_callback(drop)
    future.add_done_callback(take)
    return answer


@contextlib.contextmanager
def cluster(
    address: str, *, workers: int | None = None, insecure: bool = False, memory: float | None = None
) -> Iterator[Cluster]:
    """Connect to a running cluster, or start one on this machine.

    Args:
        address: ``tls://HOST:PORT`` of a scheduler, with the certificates of dask's own configuration; ``tcp://`` on
            this machine; or ``local``.
        workers: number of processes of a local cluster; None: one per processor.
        insecure: whether other machines may be reached without TLS.
        memory: GiB that a process of a local cluster may use; None: no limit.

    Raises:
        SpecError: the address cannot be trusted, or dask is not installed.
        WorkerLost: there is no scheduler or no worker, or a worker has other versions.
    """
    checked = address if address == LOCAL else checked_address(address, insecure=insecure)
    distributed = _imported()
    with contextlib.ExitStack() as closing:
        if address == LOCAL:
            client = closing.enter_context(_local(distributed, workers, memory))
        else:
            client = closing.enter_context(_reached(distributed, checked))
        yield entered(client, address, insecure=insecure)


def entered(client: Any, address: str, *, insecure: bool) -> Cluster:
    """Return the cluster that a client has reached, once it has a worker.

    Raises:
        SpecError: the scheduler or a worker listens on a network without TLS.
        WorkerLost: there is no worker, or one has other versions or none.
    """
    try:
        if not insecure:
            refuse_open([client.scheduler_info()["address"]], "the scheduler")
        client.wait_for_workers(1, timeout=_JOIN)
        return Cluster(client, insecure=insecure)
    except DpcalcError:
        raise
    except (TimeoutError, OSError) as error:
        raise WorkerLost(f"the cluster {address} has no worker: {_words(error)}", "start one: dask worker") from None
    except Exception as error:  # a worker's exceptions arrive unchanged, such as ModuleNotFoundError
        raise WorkerLost(
            f"a worker of the cluster {address} cannot say its versions: {type(error).__name__}: {_words(error)}",
            "install the same versions of dpcalc and its packages on all machines",
        ) from None


@contextlib.contextmanager
def _reached(distributed: Any, address: str) -> Iterator[Any]:
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # this module reports its errors
    try:
        client = distributed.Client(address, timeout=_CONNECT, set_as_default=False)
    except (TimeoutError, OSError, ValueError, TypeError, RuntimeError) as error:
        hint = "is it up, and are the certificates in dask's configuration (distributed.comm.tls)?"
        raise WorkerLost(f"the scheduler {address} does not answer: {_words(error)}", hint) from None
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):
            client.close(timeout=5)


@contextlib.contextmanager
def _local(distributed: Any, workers: int | None, memory: float | None) -> Iterator[Any]:
    """Start a cluster of single-threaded processes that no other user of this machine can enter."""
    import dask

    try:
        security = distributed.Security.temporary()
    except ImportError:
        raise SpecError(_ABSENT, _EXTRA) from None
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.admin.log-length": 0}
    with dask.config.set(settings):
        started = distributed.LocalCluster(
            n_workers=workers or os.cpu_count() or 1, threads_per_worker=1, processes=True, host="tls://127.0.0.1",
            security=security, dashboard_address=_HERE, worker_dashboard_address=_HERE, silence_logs=_CRITICAL,
            memory_limit=0 if memory is None else int(memory * (1 << 30)),
        )  # fmt: skip
        with (
            contextlib.closing(started),
            contextlib.closing(distributed.Client(started, set_as_default=False)) as client,
        ):
            yield client


_ABSENT = "--cluster needs dask's distributed and cryptography"
_EXTRA = "install them: pip install 'dpcalc[cluster]'"


def _imported() -> Any:
    try:
        import distributed
    except ImportError:
        raise SpecError(_ABSENT, _EXTRA) from None
    return distributed


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
