"""Calls of functions on other machines: each takes a text and returns a text, which is checked and never trusted.

An answer repeats a hash of the question and names the versions of all packages that its numbers depend on. Answers from
other versions are refused, also from a worker that joined late.

`spread` sends pieces of work to workers, waits for answers, checks them and sends lost pieces again. A `Piece` has a
document to send, and decides whether a text answers it. A worker is anything that calls a function of a module on a
text: a process, a thread, or any `concurrent.futures.Executor` (`through`).
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
"""In place of an address: a cluster on this machine, which ends with the command."""

_FORM = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>\d{1,5})"
)
_HINT = "for example tls://scheduler.example:8786, or local for processes of this machine"


_ENCRYPTED = {"tls": True, "tcp": False}
"""Scheme of an address -> whether the connection is encrypted and authenticated."""


def checked_address(address: str, *, insecure: bool = False) -> str:
    """Return the address of a scheduler in dask's form.

    Args:
        address: ``tls://HOST:PORT``; or ``tcp://HOST:PORT`` of this machine.
        insecure: whether TCP without TLS may leave this machine.

    Raises:
        SpecError: it is no address, or answers could be forged on the way.
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
    """A worker has other versions than this machine."""


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
    """Return the versions of the packages that the numbers of this process depend on, as JSON."""
    return _versions()


def refuse_other_versions(said: Any, where: str = "a worker") -> None:
    """Refuse versions that are not those of this process.

    Args:
        said: package -> version.
        where: who reported them.

    Raises:
        OtherVersions: they differ, or are not a dict.
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
        SpecError: another process could not find it by this name.
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
    """Return the answer of a function to a document, below a head with the hash of the question and the versions.

    An exception is written into the head, not raised.

    Args:
        name: of the function, from `name_of`.
        document: its argument.
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
    """Return the answer in a text that `call` returned for this name and document.

    Raises:
        WorkerLost: the text is no such answer, comes from other versions, or reports an error.
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


# --- documents, and answers in lines ----------------------------------------------------------------------------------


def sent(schema: str, **asked: Any) -> str:
    """Return the document with these fields, the schema and the version of dpcalc."""
    return json.dumps({"schema": schema, "dpcalc": __version__, **asked})


def received(document: str, schema: str) -> dict[str, Any]:
    """Return the fields of a document.

    Raises:
        SpecError: it comes from another version of dpcalc.
    """
    asked: dict[str, Any] = json.loads(document)
    if (asked.get("schema"), asked.get("dpcalc")) != (schema, __version__):
        raise SpecError(f"the worker has dpcalc {__version__}, and was asked by another version")
    return asked


def in_lines(document: str, lines: Sequence[str]) -> str:
    """Return an answer of some lines, below a head with the hash of the document."""
    head = {"dpcalc": __version__, "asked": _hash(document), "sha256": _hash("\n".join(lines))}
    return "\n".join([json.dumps(head), *lines])


def lines_of(document: str, text: Any) -> list[str]:
    """Return the lines of an answer.

    Raises:
        WorkerLost: the text answers another document, or was damaged on its way.
    """
    if not isinstance(text, str):
        raise WorkerLost("a worker answered with something that is no text")
    lines = text.split("\n")[1:]
    if text != in_lines(document, lines):
        raise WorkerLost("the answer is not to what was asked, or was damaged on its way")
    return lines


_LOOK = 2.0  # seconds without an answer before checking again whether there are workers


class Piece:
    """A piece of work.

    Attributes:
        document: the text that is sent.
    """

    document: str

    def read(self, text: str) -> Any:
        """Return the answer in a text; raise any error if it is none."""
        raise NotImplementedError

    def after(self, answer: Any) -> Piece | None:
        """Return the rest of the work after this answer, by default none."""
        return None

    def halves(self) -> list[Piece]:
        """Return two halves, to find the part that crashes its worker; or the piece itself if it has one part."""
        return [self]

    def stopped(self, why: DpcalcError) -> Any:
        """Return the answer to a piece of one part whose worker died."""
        raise NotImplementedError


class Row(Piece):
    """A piece of consecutive items of a list, each with its own answer.

    Args:
        schema: of the document.
        items: the items.
        first: the place of the first item in the list.
        asked: the fields of the document.
    """

    def __init__(self, schema: str, items: Sequence[Any], first: int = 0, /, **asked: Any) -> None:
        self.items, self.first, self.document = items, first, sent(schema, **asked)

    def part(self, start: int, end: int) -> Piece:
        """Return the piece of some of the items."""
        raise NotImplementedError

    def halves(self) -> list[Piece]:
        """Return two halves of the items, or this piece if it has one item."""
        middle = len(self.items) // 2
        return [self.part(0, middle), self.part(middle, len(self.items))] if middle else [self]


def in_order(answers: Iterable[tuple[Piece, Any]], progress: Callable[[int], None] | None = None) -> list[Any]:
    """Return the answers to all items in the order of the items.

    Args:
        answers: from `spread`, in any order.
        progress: called with the number of new answers.
    """
    found: dict[int, Sequence[Any]] = {}
    for piece, some in answers:
        assert isinstance(piece, Row)
        found[piece.first] = some
        if progress is not None:
            progress(len(some))
    return [one for first in sorted(found) for one in found[first]]


Submit = Callable[[Piece], "Future[str]"]
"""A function that sends a piece to a worker."""


def through(executor: Executor, function: Callable[[str], str]) -> Submit:
    """Return the function that submits a piece's document to an executor, as the argument of ``function``."""
    return lambda piece: executor.submit(function, piece.document)


def spread(
    pieces: Iterator[Piece],
    submit: Submit,
    *,
    ahead: int | Callable[[], int],
    attempts: int = 1,
    patience: float | None = None,
) -> Iterator[tuple[Piece, Any]]:
    """Yield pieces and their answers as they come, in any order; the rest that an answer leaves is sent again.

    Args:
        pieces: the work, taken one by one as workers become free.
        submit: sends a piece.
        ahead: the largest number of pieces under way; or a function that returns it, where workers come and go. The
            function is called again while no answer comes, and raises WorkerLost if none will.
        attempts: how often a piece is sent before it counts as lost.
        patience: seconds without any answer after which workers count as lost; None: forever.

    Raises:
        WorkerLost: a piece got no answer.
    """
    from concurrent.futures import FIRST_COMPLETED, wait  # slow to import, and closed forms need no workers

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
    """Return the answer to a piece, or None, and the pieces to send next, each with the number of the attempt.

    Raises:
        WorkerLost: the piece failed in every attempt.
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
