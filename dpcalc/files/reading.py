"""Opening regular files of a limited size for reading, with one error message for each obstacle, and hashing them.

Files may be forged, so everything read has a limit, listed here with its reason. Limits on the contents of a recipe
(cases, assertions, lengths of a name) are where recipes are read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator
from typing import IO, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.files import STANDARD_STREAM
from dpcalc.files.place import IrregularFile, Place, ProjectFile, open_regular

# --- recipes, and the configurations that they refer to ---------------------------------------------------------------

DOCUMENT_BYTES = 1_000_000
"""Bytes of one file: ten thousand cases fit, and parsing takes seconds."""

RUN_BYTES = 64_000_000
"""Bytes written by a training job: a history of a million steps, each with its own noise, as Python prints it."""

DOCUMENT_VALUES = 200_000
"""Values and keys of one file: each takes microseconds, before any time limit of a case starts."""

DOCUMENT_DEPTH = 32
"""Levels of nested mappings and lists: a recipe needs four, and recursive readers must not overflow."""

CONFIGURATION_BYTES = 10_000_000
"""Bytes of all the configurations that one recipe refers to."""

CONFIGURATION_LOOKUPS = 2_000_000
"""Mappings searched for all the references of one recipe: merges may chain without end."""

TOML_LINE = 10_000
"""Bytes of a line: the parser's time grows with the square of the length of a key."""

# --- schedules --------------------------------------------------------------------------------------------------------

SCHEDULE_BYTES = 2 << 30
"""Bytes of a file, packed or unpacked: far more than the steps below need."""

SCHEDULE_STEPS = 20_000_000
"""Steps, also after ``repeat``: each takes about a hundred bytes in the computation."""

SCHEDULE_YAML_BYTES = 5_000_000
"""Bytes of a schedule in YAML, whose parser is a hundred times slower than that of CSV."""

MATRIX_STEPS = 4000
"""Rows of a matrix that correlates the noise: it and its products are in memory, 128 MB each."""

MATRIX_BYTES = 1 << 29
"""Bytes of such a file: 32 characters per number."""

# --- lines and tables -------------------------------------------------------------------------------------------------

LINE_BYTES = 1 << 20
"""Bytes of a line of CSV: a file without line breaks must not be read as a whole."""

TABLE_CELLS = 1 << 33
"""Cells of a table of records, 64 GiB: a larger one is a forged header, not data for training here."""

HELD_CELLS = 1 << 23
"""Cells of a table that is held in memory, 64 MiB; of a larger table only some rows at a time."""

TABLE_COLUMNS = 1 << 20
"""Columns of a matrix: each gets a name."""

RANGES_BYTES = 1 << 22
"""Bytes of a table of ranges, with a line per feature."""

# --- numpy's files ----------------------------------------------------------------------------------------------------

ARRAY_HEADER = 10_000
"""Bytes of an array's header, which is parsed as Python."""

ARCHIVE_DIRECTORY = 1 << 20
"""Bytes of an archive's directory: it is read as a whole."""

UNPACKED_BYTES = 1 << 26
"""Bytes above which an array of records may not be packed more tightly than real data."""

UNPACKED_RATIO = 200
"""The most bytes that one packed byte of real data unpacks to."""

# --- our own files ----------------------------------------------------------------------------------------------------

MODEL_BYTES = 1 << 30
"""Bytes of a model, packed or unpacked."""

BASELINE_BYTES = 64 << 20
"""Bytes of an earlier report: more than a check writes. A forged one must not delay the verdict."""


def is_standard_input(path: str) -> bool:
    """Return whether a path stands for standard input; one that a recipe names does not."""
    return path == STANDARD_STREAM and not isinstance(path, ProjectFile)


def standard_input() -> IO[bytes] | None:
    """Return standard input as bytes; None if there is none."""
    stream: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    return stream


@contextlib.contextmanager
def opened(path: str, hint: str = "give the path of a file") -> Iterator[IO[bytes]]:
    """Pass a regular file opened for reading.

    Raises:
        SpecError: it cannot be opened or read, is no regular file, or is no path.
    """
    place = Place(path)
    with reported(place):
        try:
            stream = open_regular(path)
        except IrregularFile:
            raise SpecError(f"{place} is not a regular file", hint) from None
        except ValueError:  # a NUL, or characters that no file system encodes
            raise SpecError(f"{place} is not a path", hint) from None
    with stream, reported(place):
        yield stream


@contextlib.contextmanager
def reported(place: Place) -> Iterator[None]:
    """Turn errors of the system into a refusal of the file."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise SpecError(f"cannot read {place}: {why}", "check the path and its permissions") from None


def read_document(path: str, what: str, most: int = DOCUMENT_BYTES) -> bytes:
    """Return the bytes of a regular file, or of standard input for ``-`` (unless a recipe names it).

    Args:
        path: the file.
        what: its kind, for messages: ``recipe``, ``configuration``.
        most: the most bytes to read.

    Raises:
        FileError: it cannot be read, is no regular file, or has more bytes.
    """
    place = Place(path)
    try:
        if is_standard_input(path):
            raw = _read_standard_input(place, most)
        else:
            with open_regular(path) as stream:
                raw = stream.read(most + 1)
    except IrregularFile as error:
        raise place.error(str(error.strerror), "give the path of a file, for example recipes/*.yaml") from None
    except OSError as error:
        raise place.error(f"cannot be read: {error.strerror or error}", f"give the path of a {what}") from None
    except ValueError:
        raise place.error("is not a path", f"give the path of a {what}") from None
    if len(raw) > most:
        raise place.error(f"more than {most} bytes", f"split the {what}")
    return raw


def _read_standard_input(place: Place, most: int) -> bytes:
    stream = standard_input()
    if stream is None:
        raise place.error("cannot be read", "give the path of a file")
    return stream.read(most + 1)


_BLOCK = 1 << 20


class Digest(NamedTuple):
    """The hash of a file and its size."""

    sha256: str
    size: int


def digest_of(path: str, most: int | None = None) -> Digest:
    """Return the SHA-256 of a file, read a block at a time.

    Raises:
        SpecError: it cannot be read, is no regular file, or has more than ``most`` bytes.
    """
    digest, size = hashlib.sha256(), 0
    with opened(path) as stream:
        if most is not None and os.fstat(stream.fileno()).st_size > most:
            raise SpecError(f"{Place(path)} is larger than {most} bytes", "give a smaller file")
        while block := stream.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return Digest(digest.hexdigest(), size)
