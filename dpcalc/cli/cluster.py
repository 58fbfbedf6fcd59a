"""The options that choose the machines."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dpcalc.cluster.calls import LOCAL, checked_address
from dpcalc.errors import SpecError

if TYPE_CHECKING:
    from dpcalc.cluster.dask import Cluster
    from dpcalc.training.run.remote import There as Elsewhere


class There(NamedTuple):
    """Machines that compute.

    Attributes:
        address: the address of a dask scheduler, or ``local``.
        insecure: whether a connection without TLS is allowed.
        workers: the number of processes of a local cluster; None: one per processor.
        memory: the limit of each in GiB, or None.
    """

    address: str
    insecure: bool
    workers: int | None
    memory: float | None

    @contextlib.contextmanager
    def entered(self) -> Iterator[Cluster]:
        """Enter the cluster.

        Raises:
            SpecError, WorkerLost: as `dpcalc.cluster.dask.cluster`.
        """
        from dpcalc.cluster.dask import cluster

        with cluster(self.address, workers=self.workers, insecure=self.insecure, memory=self.memory) as joined:
            yield joined

    @contextlib.contextmanager
    def runs(self) -> Iterator[Elsewhere]:
        """Enter the cluster, to compute runs.

        Raises:
            SpecError, WorkerLost: as `entered`.
        """
        from dpcalc.training.run.remote import There as Elsewhere

        with self.entered() as joined:
            yield Elsewhere(joined, joined.ahead, self.attempts)

    @property
    def attempts(self) -> int:
        """The number of times a piece of work is sent before it counts as lost."""
        from dpcalc.cluster.dask import ATTEMPTS

        return ATTEMPTS


def cluster_options(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that adds ``--cluster`` and ``--insecure`` to a command."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        insecure = click.option(
            "--insecure", is_flag=True, help="Let --cluster connect without TLS; answers can then be forged."
        )
        where = click.option(
            "--cluster",
            metavar="ADDRESS",
            help=f"Compute the {what} on the machines of dask's tls://HOST:PORT; local: in processes on this machine.",
        )
        return where(insecure(command))

    return add


def there_of(address: str | None, insecure: bool, workers: int | None, memory: float | None = None) -> There | None:
    """Return the machines that the options choose; None for this process.

    Raises:
        SpecError: the address is not trusted, or ``insecure`` has no address.
    """
    if address is None:
        if insecure:
            raise SpecError("--insecure goes with --cluster", "give --cluster ADDRESS, or leave it out")
        return None
    if address != LOCAL:
        checked_address(address, insecure=insecure)
    elif insecure:
        raise SpecError("--insecure: a local cluster uses TLS", "leave it out")
    return There(address, insecure, workers, memory)
