"""What travels to another machine and back: the name of a function and a text; a text, and who wrote it.

The answer repeats what was asked, and has the versions of all that its numbers depend on. One from other versions is
refused, also of a worker that joined late.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import platform
from collections.abc import Callable
from functools import cache
from typing import Any

from dpcalc.errors import DpcalcError, SpecError, WorkerLost
from dpcalc.version import __version__

SCHEMA = "dpcalc.call/1"

_PACKAGES = ("numpy", "scipy", "PyYAML", "click", "python-flint")
_OURS = ("dpcalc", "tests")


class OtherVersions(WorkerLost):
    """A worker has other versions than the machine that asks."""


@cache
def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    found = {"dpcalc": __version__, "Python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return json.dumps(found)


def versions() -> str:
    """Return the versions of what the numbers of this process depend on, as JSON."""
    return _versions()


def refuse_other_versions(said: Any, where: str = "a worker") -> None:
    """Refuse versions that are not those of this process.

    Args:
        said: package -> version.
        where: who said so.

    Raises:
        OtherVersions: they differ, or are none.
    """
    here = json.loads(versions())
    if said == here:
        return
    if not isinstance(said, dict):
        raise OtherVersions(f"{where} does not say which versions it has", _INSTALL)
    other = [
        f"{name} {str(said.get(name))[:40]}, here {here.get(name)}"
        for name in sorted({*here, *map(str, said)})
        if said.get(name) != here.get(name)
    ]
    raise OtherVersions(f"{where} has other versions: {'; '.join(other)}", _INSTALL)


_INSTALL = "install the same versions on all machines, for example with pip freeze and pip install -r"


def name_of(function: Callable[[str], str]) -> str:
    """Return the name of a function of the package, ``module:function``.

    Raises:
        SpecError: another process would not find it.
    """
    name = f"{function.__module__}:{function.__qualname__}"
    if _found(name) is not function:
        raise SpecError(f"{name} has no name that another machine would find it by")
    return name


def _found(name: str) -> Any:
    module, _, function = name.partition(":")
    if module.split(".")[0] not in _OURS or not function.isidentifier():
        return None
    return getattr(importlib.import_module(module), function, None)


def call(name: str, document: str) -> str:
    """Return the answer of a function to a document, below a head that says what was asked of whom.

    An error is part of the head: no exception travels.

    Args:
        name: as `name_of` has it.
        document: what it is given.
    """
    error, answer = None, ""
    try:
        function = _found(name)
        if function is None:
            raise SpecError(f"there is no {name} here")
        answer = function(document)
    except Exception as why:
        told = why.message if isinstance(why, DpcalcError) else str(why)
        error = f"{type(why).__name__}: {' '.join(told.split())[:500]}"
    return json.dumps(_head(name, document, answer, error)) + "\n" + answer


def _head(name: str, document: str, answer: str, error: str | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA, "versions": json.loads(versions()), "asked": _hash(f"{name}\n{document}"),
        "sha256": _hash(answer), "error": error,
    }  # fmt: skip


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def answer_of(name: str, document: str, text: Any) -> str:
    """Return the answer that a text holds, of `call` with this name and document.

    Raises:
        WorkerLost: it is none, of other versions, or an error.
    """
    if not isinstance(text, str):
        raise WorkerLost("a worker answered with something that is no text")
    first, _, answer = text.partition("\n")
    try:
        head = json.loads(first)
        error = head["error"]
        said = head["versions"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise WorkerLost("the answer of a worker has no head") from None
    refuse_other_versions(said)
    if head != _head(name, document, answer, error) or not (error is None or isinstance(error, str)):
        raise WorkerLost("the answer of a worker is not to what was asked, or was damaged on its way")
    if error is not None:
        raise WorkerLost(f"a worker could not answer: {error}")
    return answer
