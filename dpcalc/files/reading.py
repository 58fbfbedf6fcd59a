"""Opening files to read them: regular ones, within a size, with one sentence for what prevents it.

How much is read of a file that may have been forged: every limit, and why it is there.

What a recipe may say (cases, assertions, lengths of a name) is bounded where recipes are understood.

The hash of a file: SHA-256, in hexadecimal digits.
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
"""Of one file: ten thousand cases fit, and a parser is through in seconds."""

RUN_BYTES = 64_000_000
"""Of what a training job wrote: a history of a million steps, each with a noise of its own, as Python prints it."""

DOCUMENT_VALUES = 200_000
"""Values and keys of one file: each costs microseconds, before any time limit of a case begins to count."""

DOCUMENT_DEPTH = 32
"""Mappings and lists inside each other: a recipe needs four, and a reader that calls itself must not overflow."""

CONFIGURATION_BYTES = 10_000_000
"""Of all the configurations that one recipe refers to."""

CONFIGURATION_LOOKUPS = 2_000_000
"""Mappings looked into for all the references of one recipe: merges may chain without end."""

TOML_LINE = 10_000
"""Bytes of a line: the parser takes the square of the length of a key."""

# --- schedules --------------------------------------------------------------------------------------------------------

SCHEDULE_BYTES = 2 << 30
"""Of a file and of what it unpacks to: far more than the steps below need."""

SCHEDULE_STEPS = 20_000_000
"""Steps, also after ``repeat``: each takes some hundred bytes in the computation."""

SCHEDULE_YAML_BYTES = 5_000_000
"""Of a schedule in YAML, whose parser is a hundred times slower than that of CSV."""

MATRIX_STEPS = 4000
"""Rows of a matrix that correlates the noise: it and its products are held, at 128 MB each."""

MATRIX_BYTES = 1 << 29
"""Of such a file: 32 characters for every number."""

# --- lines and tables -------------------------------------------------------------------------------------------------

LINE_BYTES = 1 << 20
"""Of a line of CSV: a file without line breaks must not be held as a whole."""

TABLE_CELLS = 1 << 33
"""Cells of a table of records, 64 GiB: more is a forged header, not data that could be trained on here."""

HELD_CELLS = 1 << 23
"""Cells of a table that is held in memory, 64 MiB: of a larger one some rows at a time are."""

TABLE_COLUMNS = 1 << 20
"""Columns of a matrix: each is given a name."""

RANGES_BYTES = 1 << 22
"""Of a table of ranges, which has a line for each feature."""

# --- numpy's files ----------------------------------------------------------------------------------------------------

ARRAY_HEADER = 10_000
"""Bytes of an array's header, which is parsed as Python."""

ARCHIVE_DIRECTORY = 1 << 20
"""Bytes of an archive's directory: it is read as a whole."""

UNPACKED_BYTES = 1 << 26
"""Above it, an array of records may not be packed more tightly than real data can be."""

UNPACKED_RATIO = 200
"""Bytes that one byte of real data unpacks to, at most."""

# --- our own files ----------------------------------------------------------------------------------------------------

MODEL_BYTES = 1 << 30
"""Of a model and of what it unpacks to."""

BASELINE_BYTES = 64 << 20
"""Of an earlier report: more than a check writes. A forged one must not hold up the verdict."""


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
    place = Place(path)
    with reported(place):
        try:
            stream = open_regular(path)
        except IrregularFile:
            raise SpecError(f"{place} is not a regular file", hint) from None
        except ValueError:  # a NUL, or what no file system encodes
            raise SpecError(f"{place} is not a path", hint) from None
    with stream, reported(place):
        yield stream


@contextlib.contextmanager
def reported(place: Place) -> Iterator[None]:
    """Report what the system refuses as a refusal of the file."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise SpecError(f"cannot read {place}: {why}", "check the path and its permissions") from None


def read_document(path: str, what: str, most: int = DOCUMENT_BYTES) -> bytes:
    """Return the bytes of a regular file; of standard input for ``-``, unless a recipe says so.

    Args:
        path: the file.
        what: what it should be, for messages: ``recipe``, ``configuration``.
        most: bytes that are read of it.

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
    """Return the hash of a file, which is read a block at a time.

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
