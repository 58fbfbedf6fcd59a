"""``python -m tests.cluster.kills --kills 200``: checks on a cluster with TLS whose workers and scheduler are killed.

A scheduler and two workers with certificates made for the purpose are started by the commands of docs/scale.md. While a
recipe is checked again and again, one of the three is killed with SIGKILL, at random times. A check has to end with the
bytes of one in this process, a case that is an error because its worker ended every time, or no verdict (`WorkerLost`).
"""

import argparse
import contextlib
import datetime
import ipaddress
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from dpcalc.cluster.dask import ATTEMPTS, cluster
from dpcalc.errors import WorkerLost
from dpcalc.recipes.running.checking import Checking
from dpcalc.recipes.running.selection import Selection, read_all
from dpcalc.render.machine import case_line

RECIPE = """\
dpcalc: recipe/1
defaults: {records: 1000, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6}
cases:
  sweep:
    command: rdp
    matrix: {index: "1:%d:1", noise_std: "1:10:1"}
    accept: one-index
    assert: epsilon <= 0.5
"""


def make_certificates(folder: Path) -> dict[str, str]:
    """Write an authority and one certificate; return the environment that has dask use them."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    now = datetime.datetime.now(datetime.UTC)

    def made(name: str, issuer: Any, signing: Any) -> tuple[Any, Any]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject).issuer_name(issuer or subject).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
            )
        )  # fmt: skip
        return key, builder.sign(signing or key, hashes.SHA256())

    authority_key, authority = made("authority", None, None)
    key, certificate = made("cluster", authority.subject, authority_key)
    pem = serialization.Encoding.PEM
    files = {
        "ca.pem": authority.public_bytes(pem), "cert.pem": certificate.public_bytes(pem),
        "key.pem": key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_bytes(content)
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    roles = {
        f"{tls}{role}__{kind}": str(folder / file)
        for role in ("SCHEDULER", "WORKER", "CLIENT")
        for kind, file in (("CERT", "cert.pem"), ("KEY", "key.pem"))
    }
    return {
        f"{tls}CA_FILE": str(folder / "ca.pem"), **roles, "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true",
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    }  # fmt: skip


class Processes:
    """A scheduler and two workers, each started again when it was killed."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tls://127.0.0.1:{port}"
        dask = [sys.executable, "-m", "distributed.cli"]
        worker = [f"{dask[0]}", "-m", "distributed.cli.dask_worker", self.address, "--nworkers", "1", "--nthreads", "1"]
        worker += ["--no-nanny", "--no-dashboard", "--host", "tls://127.0.0.1"]
        scheduler = [dask[0], "-m", "distributed.cli.dask_scheduler", "--host", "tls://127.0.0.1", "--port", str(port)]
        self._commands = [[*scheduler, "--no-dashboard"], worker, worker]
        self._log = (folder / "log").open("ab")
        self.running = [self._started(command) for command in self._commands]

    def _started(self, command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def kill(self, which: int) -> None:
        """Kill one, and start it again."""
        self.running[which].kill()
        self.running[which].wait()
        self.running[which] = self._started(self._commands[which])

    def revive(self) -> None:
        """Start again what ended by itself, as workers do that find no scheduler."""
        for which, process in enumerate(self.running):
            if process.poll() is not None:
                self.running[which] = self._started(self._commands[which])

    def close(self) -> None:
        """End all."""
        for process in self.running:
            process.kill()
            process.wait()
        self._log.close()


def main() -> int:
    """Run; 1 if a check had other bytes and still gave a verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=600.0, help="after which no check is begun")
    parser.add_argument("--records", type=int, default=200, help="tenths of the cases")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance, counted = random.Random(options.seed), Counter[str]()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        os.environ.update(make_certificates(Path(name)))
        import dask

        dask.config.refresh()
        Path("r.yaml").write_text(RECIPE % options.records, encoding="utf-8")
        selection = Selection(read_all(["r.yaml"], 10**6))
        whole = _lines(selection)
        there = Processes(Path(name))
        over = threading.Event()

        def kill() -> None:
            while not over.wait(chance.uniform(0.2, 3.0)):
                which = 0 if chance.random() < 0.1 else chance.choice((1, 2))
                there.kill(which)
                counted["scheduler killed" if which == 0 else "worker killed"] += 1
                there.revive()

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            while time.monotonic() - begun < options.seconds and sum(
                counted[f"{what} killed"] for what in ("scheduler", "worker")
            ) < options.kills:  # fmt: skip
                counted[_outcome(there.address, selection, whole)] += 1
                print(f"{time.monotonic() - begun:.0f} s: {dict(counted)}", flush=True)
        finally:
            over.set()
            killer.join()
            there.close()
    return 1 if counted["WRONG"] else 0


def _lines(selection: Selection, **how: Any) -> list[str]:
    with Checking(selection, **how) as checking:
        return [case_line("check", case) for case in checking.cases()]


def _outcome(address: str, selection: Selection, whole: list[str]) -> str:
    try:
        with cluster(address) as joined:
            lines = _lines(selection, executor=joined, in_flight=joined.ahead, attempts=ATTEMPTS)
    except WorkerLost:
        return "no verdict"
    if lines == whole:
        return "same bytes"
    other = [json.loads(line)["check"] for line, right in zip(lines, whole, strict=True) if line != right]
    return "an error of a case" if all(check["exit_code"] == 3 for check in other) else "WRONG"


if __name__ == "__main__":
    sys.exit(main())
