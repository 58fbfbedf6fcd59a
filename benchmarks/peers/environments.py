"""A virtual environment for every package, pinned, kept in a cache folder and made once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PINS: dict[str, tuple[str, ...]] = {
    "dpcalc": (str(ROOT),),
    "dp-accounting": ("dp-accounting==0.6.0",),
    "prv-accountant": ("prv-accountant==0.2.0",),
    "autodp": ("autodp==0.2.3.1",),
    "pld-accounting": ("PLD_accounting==2.0", "dp-accounting==0.6.0"),
    "jax-privacy": ("jax-privacy==2.0.0", "dp-accounting==0.6.0"),
    "truth": ("mpmath==1.4.1", "python-flint==0.9.0", "numpy==2.4.6"),
}
"""What is installed where; numpy and scipy are pinned for all of them by `COMMON`."""

COMMON = ("numpy==2.4.6", "scipy==1.17.1")
TOLD = ("numpy", "scipy", "dp-accounting")  # the dependencies whose versions matter to a reader


@dataclass
class Environment:
    """One package, installed or not."""

    name: str
    folder: str
    failed: str = ""
    """Why it could not be installed, or nothing."""
    versions: dict[str, str] = field(default_factory=dict)
    mebibytes: float = 0.0
    """Disk space of what was installed, without pip and setuptools."""
    seconds: float = 0.0
    """What installing took, downloads included."""

    @property
    def bin(self) -> Path:
        """The folder of its commands."""
        return Path(self.folder) / "bin"


def install(name: str, cache: Path) -> Environment:
    """Return the environment of a package: the one in the cache if its pins are the same, else a new one.

    dpcalc itself, whose source may have changed, is always put in anew.
    """
    folder = cache / name
    record = folder / "environment.json"
    pins = [*PINS[name], *COMMON]
    if record.exists():
        found = json.loads(record.read_text())
        if found["pins"] == pins:
            environment = Environment(**found["environment"])
            return _renew(environment) if name == "dpcalc" else environment
    environment = Environment(name, str(folder))
    start = time.perf_counter()
    try:
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(COMMON) + "\n")
        _pip(environment, "install", "--constraint", str(constraints), *PINS[name])
    except (subprocess.CalledProcessError, OSError) as error:
        environment.failed = _reason(error)
        return environment
    environment.seconds = time.perf_counter() - start
    environment.versions = _versions(environment)
    environment.mebibytes = _size(folder)
    record.write_text(json.dumps({"pins": pins, "environment": asdict(environment)}))
    return environment


def _renew(environment: Environment) -> Environment:
    try:
        _pip(environment, "install", "--no-deps", "--force-reinstall", str(ROOT))
    except (subprocess.CalledProcessError, OSError) as error:
        environment.failed = _reason(error)
    return environment


def _pip(environment: Environment, *arguments: str) -> None:
    _run([str(environment.bin / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments])


def _run(command: list[str]) -> str:
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
    return found.stdout


def _reason(error: Exception) -> str:
    said = getattr(error, "stderr", "") or str(error)
    lines = [line for line in said.splitlines() if line.startswith("ERROR")] or said.splitlines() or ["no reason given"]
    return lines[-1][:200]


def _versions(environment: Environment) -> dict[str, str]:
    said = json.loads(_run([str(environment.bin / "python"), "-m", "pip", "list", "--format", "json"]))
    every = {row["name"].lower().replace("_", "-"): row["version"] for row in said}
    return {name: every[name] for name in (environment.name, *TOLD) if name in every}


def _size(folder: Path) -> float:
    """Return MiB of a folder, pip and setuptools left out: every environment has those."""
    total = 0
    for at, _, names in os.walk(folder):
        if any(part.startswith(("pip", "setuptools", "pkg_resources", "_distutils_hack")) for part in Path(at).parts):
            continue
        total += sum(os.lstat(os.path.join(at, name)).st_size for name in names)
    return total / 2**20
