"""Which clusters may answer: only those whose answers nobody on the way can forge."""

from __future__ import annotations

import ipaddress
import re

from dpcalc.errors import SpecError

LOCAL = "local"
"""In place of an address: a cluster of this machine, that ends with the command."""

_FORM = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>\d{1,5})"
)
_HINT = "for example tls://scheduler.example:8786, or local for processes of this machine"


def checked_address(address: str, *, insecure: bool = False) -> str:
    """Return the address of a scheduler as dask takes it, if its answers may be trusted.

    Args:
        address: ``tls://HOST:PORT``; or ``tcp://HOST:PORT`` of this machine.
        insecure: whether TCP without TLS may leave this machine.

    Raises:
        SpecError: it is no address, or one over which answers could be forged.
    """
    found = _FORM.fullmatch(address)
    if found is None or not 1 <= int(found["port"]) <= 65535:
        raise SpecError(f"--cluster {address[:80]!r} is no address", _HINT)
    scheme = found["scheme"] or "tcp"
    if scheme not in ("tls", "tcp"):
        raise SpecError(f"--cluster takes no {scheme}:// address", _HINT)
    if scheme == "tcp" and not insecure:
        refuse_open([address], "the scheduler")
    return f"{scheme}://{found['host']}:{found['port']}"


def refuse_open(addresses: list[str], what: str) -> None:
    """Refuse addresses that are reached without TLS over a network.

    Raises:
        SpecError: one is.
    """
    for address in addresses:
        found = _FORM.fullmatch(address)
        host = "" if found is None else found["host"].strip("[]")
        if found is not None and (found["scheme"] == "tls" or _is_loopback(host)):
            continue
        raise SpecError(
            f"{what} at {address} is reached without TLS: whoever is on the way could forge verdicts, "
            "and run programs in the cluster",
            "start the cluster with TLS (docs/scale.md), or say --insecure if nobody else is on that network",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
