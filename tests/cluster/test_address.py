"""Which clusters may be used."""

import pytest

from dpcalc.cluster.calls import checked_address, refuse_open
from dpcalc.errors import SpecError


@pytest.mark.parametrize(
    ("typed", "used"),
    [
        ("tls://scheduler.example:8786", "tls://scheduler.example:8786"), ("tls://10.1.2.3:1", "tls://10.1.2.3:1"),
        ("tcp://127.0.0.1:8786", "tcp://127.0.0.1:8786"), ("127.9.9.9:80", "tcp://127.9.9.9:80"),
        ("tcp://[::1]:8786", "tcp://[::1]:8786"), ("localhost:8786", "tcp://localhost:8786"),
    ],
)  # fmt: skip
def test_tls_and_this_machine_are_trusted(typed: str, used: str) -> None:
    assert checked_address(typed) == used


@pytest.mark.parametrize(
    "typed",
    ["tcp://10.0.0.1:8786", "scheduler:8786", "tcp://0.0.0.0:8786", "tcp://127.0.0.1.example:8786",
     "tcp://localhost.example:1", "tcp://[::]:8786", "tcp://[fe80::1]:8786", "tcp://128.0.0.1:1"],
)  # fmt: skip
def test_a_network_without_tls_is_refused_unless_it_is_meant(typed: str) -> None:
    with pytest.raises(SpecError, match="without TLS"):
        checked_address(typed)
    assert checked_address(typed, insecure=True).endswith(typed.removeprefix("tcp://"))


@pytest.mark.parametrize(
    "typed",
    ["", "tls://", "scheduler", "tls://host", "tls://host:0", "tls://host:65536", "inproc://a:1", "ucx://a:1",
     "ws://127.0.0.1:1", "tls://a:1/x", "tls://user@a:1", "TLS://a:1", "tls://a:1\n", "tls://a b:1"],
)  # fmt: skip
def test_what_is_no_address_is_refused(typed: str) -> None:
    with pytest.raises(SpecError):
        checked_address(typed, insecure=True)


def test_a_worker_outside_is_refused_though_the_scheduler_is_here() -> None:
    refuse_open(["tcp://127.0.0.1:4000", "tls://10.0.0.3:4000"], "a worker")
    with pytest.raises(SpecError, match=r"a worker at tcp://10\.0\.0\.2:4000"):
        refuse_open(["tcp://127.0.0.1:4000", "tcp://10.0.0.2:4000"], "a worker")
