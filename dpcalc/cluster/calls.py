"""What travels to another machine and back: the name of a function and a text; a text, and who wrote it.

The answer repeats what was asked, and has the versions of all that its numbers depend on. One from other versions is
refused, also of a worker that joined late.

Work spread over workers that nobody here controls: sent, awaited, checked, sent again, and never taken on trust.

`spread` is the one way from pieces of work to their answers. It knows nothing of recipes: a `Piece` has a document to
send, and says whether a text answers it. Workers are whatever runs a function of a module on a text: processes,
threads, or any `concurrent.futures.Executor` (`through`).
"""

from __future__ import annotations

import hashlib
import importlib
import ipaddress
import json
import platform
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from dpcalc.errors import DpcalcError, SpecError, Stopped, WorkerDied, WorkerLost
from dpcalc.version import __version__

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future


LOCAL = "local"
"""In place of an address: a cluster of this machine, that ends with the command."""

_FORM = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>\d{1,5})"
)
_HINT = "for example tls://scheduler.example:8786, or local for processes of this machine"


_ENCRYPTED = {"tls": True, "tcp": False}
"""The schemes of addresses, and whether nobody on the way can change what is sent."""


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
    if scheme not in _ENCRYPTED:
        raise SpecError(f"--cluster takes no {scheme}:// address", _HINT)
    if not (_ENCRYPTED[scheme] or insecure):
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
        if found is not None and (_ENCRYPTED.get(found["scheme"]) or _is_loopback(host)):
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


SCHEMA = "dpcalc.call/1"

_PACKAGES = ("numpy", "scipy", "PyYAML", "click", "python-flint")
_OURS = ("dpcalc", "tests")


class OtherVersions(WorkerLost):
    """A worker has other versions than the machine that asks."""


@cache
def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    installed = {"dpcalc": __version__, "Python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = "none"
    return json.dumps(installed)


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
    if _function(name) is not function:
        raise SpecError(f"{name} has no name that another machine would find it by")
    return name


def _function(name: str) -> Any:
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
        function = _function(name)
        if function is None:
            raise SpecError(f"there is no {name} here")
        answer = function(document)
    except Exception as why:
        message = why.message if isinstance(why, DpcalcError) else str(why)
        error = f"{type(why).__name__}: {' '.join(message.split())[:500]}"
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


# --- a document, and lines that answer it -----------------------------------------------------------------------------


def sent(schema: str, **asked: Any) -> str:
    """Return the document that asks for something, of this version."""
    return json.dumps({"schema": schema, "dpcalc": __version__, **asked})


def received(document: str, schema: str) -> dict[str, Any]:
    """Return what a document asks for.

    Raises:
        SpecError: it is of another version of dpcalc.
    """
    asked: dict[str, Any] = json.loads(document)
    if (asked.get("schema"), asked.get("dpcalc")) != (schema, __version__):
        raise SpecError(f"the worker has dpcalc {__version__}, and was asked by another version")
    return asked


def in_lines(document: str, lines: Sequence[str]) -> str:
    """Return the answer that some lines are: a head, which repeats what was asked, and the lines."""
    head = {"dpcalc": __version__, "asked": _hash(document), "sha256": _hash("\n".join(lines))}
    return "\n".join([json.dumps(head), *lines])


def lines_of(document: str, text: Any) -> list[str]:
    """Return the lines of an answer.

    Raises:
        WorkerLost: it answers another document, or was damaged on its way.
    """
    if not isinstance(text, str):
        raise WorkerLost("a worker answered with something that is no text")
    lines = text.split("\n")[1:]
    if text != in_lines(document, lines):
        raise WorkerLost("the answer is not to what was asked, or was damaged on its way")
    return lines


_LOOK = 2.0  # seconds without an answer after which it is asked anew whether workers are there


class Piece:
    """A piece of work.

    Attributes:
        document: what is sent, a text.
    """

    document: str

    def read(self, text: str) -> Any:
        """Return the answer that a text is; raise any error where it is none."""
        raise NotImplementedError

    def after(self, answer: Any) -> Piece | None:
        """Return what an answer left undone: nothing, unless a piece says otherwise."""
        return None

    def halves(self) -> list[Piece]:
        """Return what it is divided into to find the part that ends its worker: itself alone, where it is one part."""
        return [self]

    def stopped(self, why: DpcalcError) -> Any:
        """Return the answer to a piece of one part whose computation was ended on purpose."""
        raise NotImplementedError


class Row(Piece):
    """A piece that is some items of a list in a row, each with an answer of its own.

    Args:
        schema: of the document.
        items: what is asked.
        first: the place of the first item among all.
        asked: the fields of the document.
    """

    def __init__(self, schema: str, items: Sequence[Any], first: int = 0, /, **asked: Any) -> None:
        self.items, self.first, self.document = items, first, sent(schema, **asked)

    def part(self, start: int, end: int) -> Piece:
        """Return the piece of some of the items."""
        raise NotImplementedError

    def halves(self) -> list[Piece]:
        """Return the items in two, or these where it is one."""
        middle = len(self.items) // 2
        return [self.part(0, middle), self.part(middle, len(self.items))] if middle else [self]


def in_order(answers: Iterable[tuple[Piece, Any]], progress: Callable[[int], None] | None = None) -> list[Any]:
    """Return the answers to all items in their order, from those to rows as they come.

    Args:
        answers: of `spread`.
        progress: called with how many were added.
    """
    found: dict[int, Sequence[Any]] = {}
    for piece, some in answers:
        assert isinstance(piece, Row)
        found[piece.first] = some
        if progress is not None:
            progress(len(some))
    return [one for first in sorted(found) for one in found[first]]


Submit = Callable[[Piece], "Future[str]"]
"""What sends a piece to a worker."""


def through(executor: Executor, function: Callable[[str], str]) -> Submit:
    """Return what sends the document of a piece to an executor, for a function that is known by its name."""
    return lambda piece: executor.submit(function, piece.document)


def spread(
    pieces: Iterator[Piece],
    submit: Submit,
    *,
    ahead: int | Callable[[], int],
    attempts: int = 1,
    patience: float | None = None,
) -> Iterator[tuple[Piece, Any]]:
    """Yield pieces and their answers as they come, in any order; what an answer leaves undone is sent anew.

    Args:
        pieces: the work, taken one by one as workers get free.
        submit: what sends one.
        ahead: how many are on their way at most; or what says so, where workers come and go. That is asked again
            while nothing is answered, and raises WorkerLost where nobody will.
        attempts: how often a piece is sent before it counts as lost.
        patience: seconds without any answer after which workers count as lost; None: forever.

    Raises:
        WorkerLost: a piece has no answer.
    """
    from concurrent.futures import FIRST_COMPLETED, wait  # a check of closed forms waits for nobody

    again: deque[tuple[Piece, int]] = deque()
    flying: dict[Future[str], tuple[Piece, int]] = {}
    idle = 0.0
    try:
        while True:
            most = ahead() if callable(ahead) else ahead
            while len(flying) < most:
                piece, tries = again.popleft() if again else (next(pieces, None), 1)
                if piece is None:
                    break
                flying[_sent(piece, submit)] = piece, tries
            if not flying:
                return
            waited = _LOOK if patience is None else min(_LOOK, patience - idle)
            done, _ = wait(flying, timeout=waited, return_when=FIRST_COMPLETED)
            idle = 0.0 if done else idle + waited
            if patience is not None and idle >= patience:
                raise WorkerLost(f"no worker answered within {patience:g} s", "allow a case more time with timeout")
            for future in done:
                piece, tries = flying.pop(future)
                answer, left = _answer(piece, future, tries, attempts)
                again.extend(left)
                if answer is not None:
                    yield piece, answer
    finally:
        for future in flying:
            future.cancel()


def _answer(piece: Piece, future: Future[str], tries: int, attempts: int) -> tuple[Any | None, list[tuple[Piece, int]]]:
    """Return the answer to a piece, None where there is none yet, and what is to be sent, for the how manieth time.

    Raises:
        WorkerLost: it was sent often enough.
    """
    try:
        failure = future.exception()  # read, not raised: the exit of a worker must not end this process
        answer = piece.read(future.result()) if failure is None else None
    except Exception as error:
        failure = error
    if isinstance(failure, WorkerDied):
        if len(halves := piece.halves()) > 1:
            return None, [(half, 1) for half in halves]
        if tries < attempts:
            return None, [(piece, tries + 1)]
        often = "" if tries == 1 else f", {tries} times"
        ended = f"the worker that computed it ended{often}: {failure.message}"
        return piece.stopped(Stopped(ended, "see what ends it, such as its memory")), []
    if failure is not None:
        if tries >= attempts:
            raise _lost(failure) from failure
        return None, [(piece, tries + 1)]
    rest = piece.after(answer)
    return answer, [(rest, 1)] if rest is not None else []


def _sent(piece: Piece, submit: Submit) -> Future[str]:
    try:
        return submit(piece)
    except Exception as error:
        raise _lost(error) from error


def _lost(error: BaseException) -> DpcalcError:
    said = " ".join(str(error).split()) or "no reason is given"
    return WorkerLost(
        f"a worker was lost: {type(error).__name__}: {said}", "no gate was passed on its word; see to it, and run again"
    )
