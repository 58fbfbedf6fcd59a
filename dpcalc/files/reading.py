"""Opening files to read them: regular ones, within a size, with one sentence for what prevents it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import IO

from dpcalc.errors import SpecError
from dpcalc.files import STANDARD_STREAM
from dpcalc.files.limits import DOCUMENT_BYTES
from dpcalc.files.paths import IrregularFile, ProjectFile, open_regular
from dpcalc.files.place import Place


def shown_path(path: str) -> str:
    """Return the path as messages show it: one line, without control characters."""
    return path if path.isprintable() else ascii(path)


def is_standard_input(path: str) -> bool:
    """Return whether a path stands for standard input; one that a recipe names does not."""
    return path == STANDARD_STREAM and not isinstance(path, ProjectFile)


def standard_input() -> IO[bytes] | None:
    """Return standard input as bytes; None where there is none."""
    stream: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    return stream


@contextlib.contextmanager
def opened(path: str, hint: str = "give the path of a file") -> Iterator[IO[bytes]]:
    """Pass a regular file opened for reading.

    Raises:
        SpecError: it cannot be opened or read, is no regular file, or is no path.
    """
    with reported(path):
        stream = _open(path, hint)
    with stream, reported(path):
        yield stream


def _open(path: str, hint: str) -> IO[bytes]:
    try:
        return open_regular(path)
    except IrregularFile:
        raise SpecError(f"{shown_path(path)} is not a regular file", hint) from None
    except ValueError:  # a NUL, or what no file system encodes
        raise SpecError(f"{shown_path(path)} is not a path", hint) from None


@contextlib.contextmanager
def reported(path: str) -> Iterator[None]:
    """Report what the system refuses as a refusal of the file."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise SpecError(f"cannot read {shown_path(path)}: {why}", "check the path and its permissions") from None


def read_document(path: str, what: str) -> bytes:
    """Return the bytes of a regular file; of standard input for ``-``, unless a recipe says so.

    Args:
        path: the file.
        what: what it should be, for messages: ``recipe``, ``configuration``.

    Raises:
        FileError: it cannot be read, is no regular file, or has more than `DOCUMENT_BYTES`.
    """
    place = document_place(path)
    try:
        if is_standard_input(path):
            raw = _read_standard_input(place)
        else:
            with open_regular(path) as stream:
                raw = stream.read(DOCUMENT_BYTES + 1)
    except IrregularFile as error:
        raise place.error(str(error.strerror), "give the path of a file, for example recipes/*.yaml") from None
    except OSError as error:
        raise place.error(f"cannot be read: {error.strerror or error}", f"give the path of a {what}") from None
    except ValueError:
        raise place.error("is not a path", f"give the path of a {what}") from None
    if len(raw) > DOCUMENT_BYTES:
        raise place.error(f"more than {DOCUMENT_BYTES} bytes", f"split the {what}")
    return raw


def document_place(path: str) -> Place:
    """Return the place that stands for a whole document; messages call standard input ``<stdin>``."""
    return Place("<stdin>" if path == STANDARD_STREAM else shown_path(path))


def _read_standard_input(place: Place) -> bytes:
    stream = standard_input()
    if stream is None:
        raise place.error("cannot be read", "give the path of a file")
    return stream.read(DOCUMENT_BYTES + 1)
