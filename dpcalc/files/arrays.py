"""Arrays from NPY and NPZ files, which may be forged: nothing is allocated before the file is known to hold it."""

from __future__ import annotations

import contextlib
import io
import math
import os
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import DpcalcError, SpecError
from dpcalc.files import reading
from dpcalc.files.place import Place
from dpcalc.files.reading import ARCHIVE_DIRECTORY, ARRAY_HEADER

_ZEROS = 1 << 20  # bytes written at once
_DEFLATED = 1032  # the most bytes that one byte of a deflated stream can unpack to


@contextlib.contextmanager
def damaged_as(refusal: SpecError) -> Iterator[None]:
    """Raise ``refusal`` for any exception of a library's reader, which may raise many kinds on a damaged file.

    Errors of the operating system, a lack of memory and our own errors pass unchanged.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (OSError, MemoryError, DpcalcError):
        raise
    except Exception:
        raise refusal from None


class Header(NamedTuple):
    """The declared shape and type of an array, and the place of its first value; the file has enough bytes for it."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def size(self) -> int:
        """The number of bytes of the values."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes], room: int) -> Header:
    """Return the header of an array, in a file or member of ``room`` bytes; the stream is left at the first value.

    Raises:
        ValueError: it is no header, or of objects, or of more values than ``room`` bytes can hold.
    """
    version = np.lib.format.read_magic(stream)
    width, reader = (
        (2, np.lib.format.read_array_header_1_0) if version == (1, 0) else (4, np.lib.format.read_array_header_2_0)
    )
    length = stream.read(width)
    count = int.from_bytes(length, "little")
    if count > ARRAY_HEADER:
        raise ValueError(count)
    try:
        shape, by_columns, dtype = reader(io.BytesIO(length + stream.read(count)))
    except (MemoryError, RecursionError):  # from deeply nested brackets
        raise ValueError(count) from None
    header = Header(shape, by_columns, dtype, np.lib.format.MAGIC_LEN + width + count)
    if dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0 or header.size > room - header.offset:
        raise ValueError(shape)
    return header


def map_array(stream: IO[bytes]) -> NDArray[Any]:
    """Return the array of an NPY file without reading its values.

    Raises:
        ValueError: as `read_header`.
    """
    header = read_header(stream, os.fstat(stream.fileno()).st_size)
    order: Any = "F" if header.by_columns else "C"
    if not header.size:
        return np.empty(header.shape, header.dtype, order)
    return np.memmap(stream, header.dtype, "r", header.offset, header.shape, order)


def new_table(what: str, rows: int, columns: int) -> NDArray[np.float64]:
    """Return uninitialised memory for a table of doubles, shape (rows, columns).

    A table of more than `reading.HELD_CELLS` is in a temporary file of the user without a name, if the system has such
    files: it disappears when the process ends for any reason. The system keeps in memory what fits.

    Raises:
        SpecError: the disk has no room, or there is no folder for temporary files; ``what`` names the table.
    """
    if rows * columns <= reading.HELD_CELLS:
        return np.empty((rows, columns))
    size = 8 * rows * columns
    try:
        with tempfile.TemporaryFile(prefix="dpcalc-", buffering=0) as file:
            _take_room(file, size)
            return np.memmap(file, np.float64, "r+", shape=(rows, columns)).view(np.ndarray)
    except OSError as error:
        raise SpecError(
            f"{what} is kept in a temporary file of {size / 1e9:.3g} GB while it is used, and that failed: "
            f"{error.strerror or error}",
            "make room, or name another folder in the environment variable TMPDIR",
        ) from None


def _take_room(file: IO[bytes], size: int) -> None:
    """Extend a file to its full size: a write to its memory map that found no room would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for done in range(0, size, _ZEROS):
        file.write(bytes(min(_ZEROS, size - done)))


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Return the array of a member of an NPZ file.

    Raises:
        ValueError: as `read_header`, or the member ends early.
    """
    with archive.open(info) as stream:
        header = read_header(stream, info.file_size)
        raw = stream.read(header.size)
    if len(raw) != header.size:
        raise ValueError(header.size)
    return np.frombuffer(raw, header.dtype).reshape(header.shape, order="F" if header.by_columns else "C")


def open_archive(shown: str, stream: IO[bytes]) -> zipfile.ZipFile:
    """Return an NPZ file whose members can be as large as they claim.

    Raises:
        FileError: it does not end like numpy's archives, its directory would not fit in memory, or a member claims more
            than its bytes can unpack to.
    """
    size, no_archive = os.fstat(stream.fileno()).st_size, ("not a readable .npz file", "save it with numpy.savez")
    directory = _directory(stream, size)
    if directory is None:
        raise Place(shown).error(*no_archive)
    if directory > ARCHIVE_DIRECTORY:
        raise Place(shown).error("too many members", "save one array for each name")
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        raise Place(shown).error(*no_archive) from None
    members = archive.infolist()
    if sum(info.compress_size for info in members) > size or not all(map(_is_honest, members)):
        raise Place(shown).error("a member claims more than it can hold", "save the file with numpy.savez")
    return archive


def _is_honest(info: zipfile.ZipInfo) -> bool:
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return False
    return info.file_size <= info.compress_size * (_DEFLATED if info.compress_type == zipfile.ZIP_DEFLATED else 1)


def _directory(stream: IO[bytes], size: int) -> int | None:
    """Return the length of an archive's directory, from the last bytes of the file; None if it is not like numpy's."""
    stream.seek(max(0, size - 98))
    tail = stream.read(98)
    stream.seek(0)
    end = tail[-22:]  # signature, four short numbers, size and place of the directory, length of a comment
    if not end.startswith(b"PK\x05\x06") or end[-2:] != b"\0\0":
        return None
    if tail[-42:-22].startswith(b"PK\x06\x07"):  # of a large archive, whose longer numbers are before it
        return int.from_bytes(tail[-58:-50], "little") if tail.startswith(b"PK\x06\x06") else size
    return int.from_bytes(end[12:16], "little")
