"""A client of dask that computes in this process, and loses, spoils, kills and delays on the way."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from typing import Any

from dpcalc.cluster.calls import call, versions
from dpcalc.cluster.dask import Cluster


class KilledWorker(Exception):
    """As dask raises it, by its name."""


Fault = Callable[[str, str], Any]
"""From the document of a call and its answer to what arrives; it may raise."""


class Faulty(Executor):
    """Computes when it is asked, or later and in another order; a fault may change the answer."""

    def __init__(self, fault: Fault = lambda _, text: text, *, late: random.Random | None = None) -> None:
        self.fault, self.late, self.sent = fault, late, list[str]()
        self._threads, self._lock = ThreadPoolExecutor(1), threading.Lock()
        self._waiting: list[tuple[Future[Any], Any, tuple[Any, ...]]] = []

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.sent.append(arguments[-1])
        self._waiting.append((future, function, arguments))
        if self.late is None:
            self._finish(0)
        else:
            self._threads.submit(self._finish_one)
        return future

    def _finish_one(self) -> None:
        with self._lock:
            assert self.late is not None
            self._finish(self.late.randrange(len(self._waiting)))

    def _finish(self, place: int) -> None:
        future, function, arguments = self._waiting.pop(place)
        try:
            future.set_result(self.fault(arguments[-1], function(*arguments)))
        except CancelledError:
            future.cancel()
        except Exception as error:
            future.set_exception(error)


def joined(executor: Executor, **more: Any) -> Cluster:
    """Return a cluster whose calls an executor takes."""
    return Cluster(Client(**more), send=lambda name, document: executor.submit(call, name, document))


class Client:
    """What `dpcalc.cluster.dask.Cluster` asks of a client."""

    def __init__(
        self,
        *,
        workers: dict[str, int] | None = None,
        said: Callable[[], Any] = versions,
    ) -> None:
        self.workers, self.said = workers or {"tls://10.0.0.1:5000": 1}, said
        self.status = "running"

    def nthreads(self) -> dict[str, int]:
        return self.workers

    def run(self, _: Any) -> dict[str, Any]:
        return {worker: self.said() for worker in self.workers}
