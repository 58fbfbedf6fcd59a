"""Rows of equal size in a file, read by their numbers, so that a file may be larger than memory.

Rows are read, and not mapped: a mapped file that is cut short ends the process, and one that is read is refused.

The lines of CSV files and their cells.

There are two readings. `text_blocks` is for files whose every fault may be shown: it is strict, and says where.
`record_lines` is for tables of records, in which no line is ever refused: a refusal would tell one table from another.
"""

from __future__ import annotations

import bisect
import contextlib
import csv
import math
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files import reading
from dpcalc.files.arrays import Header
from dpcalc.files.place import FileError, Place

Chosen = slice | NDArray[np.integer[Any]]

_DENSE = 4  # rows are read together with those between them, if they are at most so many times as many


class Room:
    """Memory that is used again and again: what was put there last is overwritten, and no page is asked for twice."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}
        self._beside: Room | None = None

    @property
    def beside(self) -> Room:
        """Another room, which goes with this one."""
        self._beside = self._beside or Room()
        return self._beside

    def of(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array that holds anything, in the memory of this name."""
        size = math.prod(shape) * dtype.itemsize
        if name not in self._kept or self._kept[name].size < size:
            self._kept[name] = np.empty(size, np.uint8)
        return self._kept[name][:size].view(dtype).reshape(shape)


class RowFile:
    """Rows in a file that stays open; one that changes meanwhile is refused. Threads may share it.

    Attributes:
        count: of rows.
    """

    def __init__(self, shown: str, stream: IO[bytes], header: Header) -> None:
        """Keep a file open.

        Args:
            shown: its path, for messages.
            stream: open for reading; it may be closed afterwards.
            header: rows are along the first axis, and a row's values next to each other.

        Raises:
            OSError: the system refuses.
        """
        self.shown, self.count, self.width = shown, header.shape[0], header.shape[1:]
        self.dtype, self.offset = header.dtype, header.offset
        self.bytes = header.size // max(1, header.shape[0])
        self.descriptor = os.dup(stream.fileno())
        self._closed = weakref.finalize(self, os.close, self.descriptor)
        self._lock = threading.Lock()
        self._state = self._now()

    def rows(self, chosen: Chosen, room: Room | None = None) -> NDArray[Any]:
        """Return some rows, shape (m, ...), as an array of their own.

        Args:
            chosen: a slice without a step, or whole numbers from 0 to count - 1 in any order.
            room: for the rows; by default they have memory of their own.

        Raises:
            SpecError: the file cannot be read, or has changed.
        """
        if isinstance(chosen, slice):
            first, last, _ = chosen.indices(self.count)
            return self._between(first, max(first, last), room or Room())
        if not len(chosen):
            return self._between(0, 0, Room())
        low, high = int(chosen.min()), int(chosen.max()) + 1
        if high - low <= _DENSE * len(chosen):
            among = self._between(low, high, room or Room())
            in_order = len(among) == len(chosen) and bool((chosen[1:] > chosen[:-1]).all())
            return among if in_order else among[chosen - low]
        rows = (room or Room()).of("rows", (len(chosen), *self.width), self.dtype)
        whole, step = memoryview(rows.reshape(-1).view(np.uint8)), self.bytes  # type: ignore[arg-type, unused-ignore]
        size = 0
        with self._checked():
            for k, place in enumerate(chosen.tolist()):
                size += self._read(whole[k * step : (k + 1) * step], self.offset + step * place)
        if size != rows.nbytes:
            raise self._changed()
        return rows

    def _between(self, first: int, last: int, room: Room) -> NDArray[Any]:
        rows = room.of("rows", (last - first, *self.width), self.dtype)
        whole = memoryview(rows.reshape(-1).view(np.uint8))  # type: ignore[arg-type, unused-ignore]
        with self._checked():
            size = self._read(whole, self.offset + first * self.bytes)
        if size != rows.nbytes:
            raise self._changed()
        return rows

    def _read(self, room: memoryview, place: int) -> int:
        """Fill a piece of memory from a place on, and return how many bytes there were."""
        size = 0
        while size < len(room):  # the system may read less at once than it is asked for: 2 GiB at most
            count = self._read_some(room[size:], place + size)
            if not count:
                break
            size += count
        return size

    def _read_some(self, room: memoryview, place: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self.descriptor, [room], place)
        with self._lock:
            os.lseek(self.descriptor, place, os.SEEK_SET)
            raw = os.read(self.descriptor, len(room))
        room[: len(raw)] = raw
        return len(raw)

    @contextlib.contextmanager
    def _checked(self) -> Iterator[None]:
        """Refuse what the system refuses, and a file that is no longer as it was."""
        try:
            yield
            now = self._now()
        except OSError as error:
            why = error.strerror or error
            raise SpecError(f"cannot read {self.shown}: {why}", "check the path and its permissions") from None
        if now != self._state:
            raise self._changed()

    def _now(self) -> tuple[int, int, int]:
        state = os.fstat(self.descriptor)
        return state.st_size, state.st_mtime_ns, state.st_ctime_ns  # the last of which nobody can set

    def _changed(self) -> SpecError:
        return SpecError(f"{self.shown} changed while it was read", "nothing was released; try again")


class Spool:
    """A matrix of doubles that is written once, from its first row to its last, and then read by rows.

    It is a temporary file of the user's own without a name, where the system has such files: it is gone when the
    process ends, whatever ends it.
    """

    def __init__(
        self, shown: str, rows: int, columns: int, progress: Callable[[int, int], None] | None = None
    ) -> None:  # fmt: skip
        """Make the file.

        Args:
            shown: what is written, for messages.
            rows, columns: of the matrix.
            progress: called with (rows written, in all).

        Raises:
            SpecError: there is no folder for temporary files.
        """
        self.shown, self.shape, self._done = shown, (rows, columns), 0
        self._progress = progress
        with self._reported():
            self._file = tempfile.TemporaryFile(prefix="dpcalc-", buffering=0)  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def __setitem__(self, rows: slice, block: NDArray[np.float64]) -> None:
        """Write the next rows.

        Raises:
            SpecError: the disk is full.
        """
        if rows.start != self._done or block.shape != (rows.stop - rows.start, self.shape[1]):
            raise ValueError(rows)
        with self._reported():
            left = memoryview(np.ascontiguousarray(block).reshape(-1).view(np.uint8))  # type: ignore[arg-type, unused-ignore]
            while left:
                left = left[self._file.write(left) :]
        self._done = rows.stop
        if self._progress is not None:
            self._progress(rows.stop, self.shape[0])

    def finished(self) -> RowFile:
        """Return the file, to be read; the spool is not used any more."""
        if self._done != self.shape[0]:
            raise ValueError(self._done)
        with self._reported(), self._file:
            return RowFile("a temporary file", self._file, Header(self.shape, False, np.dtype(np.float64), 0))

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            size = 8 * self.shape[0] * self.shape[1]
            raise SpecError(
                f"{self.shown} is kept in a temporary file of {size / 1e9:.3g} GB while it is used, and that failed: "
                f"{error.strerror or error}",
                "make room, or name another folder in the environment variable TMPDIR; a .npy file needs no copy",
            ) from None


class Copy:
    """What a pass over a file has made of its rows, in a temporary file as `Spool` has, for the passes that follow.

    Rows are written in pieces, by any threads, and read once all of them are there. A copy for which the disk has no
    room, or of which a row is written twice, is given up, which changes no result.
    """

    def __init__(self, rows: int, columns: int, beside: int) -> None:
        """Make the file, if there is room for twice as much.

        Args:
            rows: in all.
            columns: single-precision numbers of a row.
            beside: double-precision numbers of a row.
        """
        self._rows, self._lock, self._written = rows, threading.Lock(), 0
        self._pieces: list[tuple[int, int]] = []  # (first, last + 1) of what is written, in the order of the rows
        self._parts: list[tuple[np.dtype[Any], int]] = [(np.dtype(np.float32), columns), (np.dtype(np.float64), beside)]
        self._file: IO[bytes] | None = None
        self._files: tuple[RowFile, ...] | None = None
        size = rows * (4 * columns + 8 * beside)
        with contextlib.suppress(OSError):
            if shutil.disk_usage(tempfile.gettempdir()).free > 2 * size:
                self._file = tempfile.TemporaryFile(prefix="dpcalc-", buffering=0)  # noqa: SIM115
                weakref.finalize(self, self._file.close)

    @property
    def finished(self) -> bool:
        """Whether all rows can be read."""
        return self._files is not None

    def write(self, first: int, *parts: NDArray[Any]) -> None:
        """Write rows from a place on, each once: float32, shape (m, columns), and float64, shape (m, beside)."""
        with self._lock:
            if self._file is None or self._files is not None:
                return
            if not self._is_new(first, *map(len, parts)):
                self._give_up(self._file)
                return
            try:
                start = 0
                for (dtype, columns), part in zip(self._parts, parts, strict=True):
                    self._file.seek(start + first * columns * dtype.itemsize)
                    left = memoryview(part.reshape(-1).view(np.uint8))  # type: ignore[arg-type, unused-ignore]
                    while left:
                        left = left[self._file.write(left) :]
                    start += self._rows * columns * dtype.itemsize
                self._written += len(parts[0])
                if self._written == self._rows:
                    self._finish(self._file)
            except OSError:
                self._give_up(self._file)

    def _is_new(self, first: int, *sizes: int) -> bool:
        """Take down where a piece stands; return False where it has rows that are written, or that there are not."""
        last = first + sizes[0]
        place = bisect.bisect_left(self._pieces, (first, last))
        free_from = self._pieces[place - 1][1] if place else 0
        free_to = self._pieces[place][0] if place < len(self._pieces) else self._rows
        self._pieces.insert(place, (first, last))
        return free_from <= first < last <= free_to and len(set(sizes)) == 1

    def _give_up(self, file: IO[bytes]) -> None:
        file.close()
        self._file = None

    def _finish(self, file: IO[bytes]) -> None:
        start, files = 0, []
        for dtype, columns in self._parts:
            header = Header((self._rows, columns), False, dtype, start)
            files.append(RowFile("a temporary file", file, header))
            start += header.size
        self._files = tuple(files)
        file.close()

    def rows(self, chosen: Chosen, room: Room) -> tuple[NDArray[Any], ...]:
        """Return the parts of some rows, once all are there: one in a room, and one in the room beside it.

        Raises:
            SpecError: the file cannot be read.
        """
        assert self._files is not None
        return tuple(file.rows(chosen, room) for file, room in zip(self._files, (room, room.beside), strict=True))


_PIECE = 4 << 20  # bytes read at once
_RECORDS = 1 << 18  # bytes of records read at once
_PER_COLUMN = 32  # bytes that each cell may add to the longest line of records


class Block(NamedTuple):
    """Some whole lines of a file, and the number of the first."""

    first: int
    lines: list[str]

    def data(self) -> Iterator[tuple[int, str]]:
        """Yield (line number, line) of the lines that are neither blank nor comments."""
        for number, line in enumerate(self.lines, start=self.first):
            if line and not line.isspace() and not line.lstrip().startswith("#"):
                yield number, line


def text_blocks(shown: str, stream: IO[bytes], size: int) -> Iterator[Block]:
    """Yield the lines of a file of at most ``size`` bytes, some megabytes at a time; they end with LF, CR LF or CR.

    Raises:
        SpecError: it is longer, or a line is, or it is not UTF-8 text.
    """
    first, total, rest = 1, 0, b""
    while piece := stream.read(_PIECE):
        total += len(piece)
        if total > size:
            raise Place(shown).error(f"more than {size} bytes", "use a shorter file")
        rest += piece
        # A CR that ends the piece may be half of a CR LF.
        cut = max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, len(rest) - 1)) + 1
        if cut:
            block = _decode(shown, first, rest[:cut])
            yield block
            first += len(block.lines)
        rest = rest[cut:]
        if len(rest) > reading.LINE_BYTES:
            raise _too_long(shown, first)
    if rest:
        yield _decode(shown, first, rest)


def _decode(shown: str, first: int, raw: bytes) -> Block:
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if first == 1:
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in raw:
        number = first + raw.count(b"\n", 0, raw.index(b"\0"))
        raise Place(shown, number).error("a NUL byte", "save the file as UTF-8 text")
    try:
        lines = raw.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        number = first + raw.count(b"\n", 0, error.start)
        byte = error.start - raw.rfind(b"\n", 0, error.start)
        raise Place(shown, number).error(f"byte {byte} is not UTF-8", "save the file as UTF-8") from None
    lengths = list(map(len, lines))
    if max(lengths) > reading.LINE_BYTES:
        raise _too_long(shown, first + lengths.index(max(lengths)))
    return Block(first, lines)


def _too_long(shown: str, number: int) -> FileError:
    return Place(shown, number).error(f"the line is longer than {reading.LINE_BYTES} bytes", "write one row per line")


def record_lines(stream: IO[bytes], columns: int) -> Iterator[bytes]:
    """Yield the lines that are left, without their ends; a line that is far too long as an empty one.

    A record is a line, whatever stands in it: quotation marks do not reach beyond it, and blank lines count.
    """
    most = reading.LINE_BYTES + _PER_COLUMN * columns
    rest = b""
    while piece := stream.read(_RECORDS):
        *lines, rest = (rest + piece).split(b"\n")
        rest = rest[:most]  # of a line that is too long, more is not needed
        for line in lines:
            yield line.removesuffix(b"\r") if len(line) < most else b""
    if rest:
        yield rest.removesuffix(b"\r") if len(rest) < most else b""


def count_lines(stream: IO[bytes]) -> int:
    """Return how many lines `record_lines` yields."""
    count, last = 0, b"\n"
    while piece := stream.read(_RECORDS):
        count, last = count + piece.count(b"\n"), piece[-1:]
    return count + (last != b"\n")


def split_cells(line: str) -> list[str]:
    """Return the cells of a line, quoted or not; none where one is longer than is read."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line.replace("\r", " ").replace("\n", " ")]), [])
    except csv.Error:
        return []


_MARKS = {";": "semicolons", "\t": "tabs"}


def read_header(path: str, stream: IO[bytes]) -> list[str]:
    """Return the names of the columns, which the first line holds.

    Raises:
        SpecError: it is too long, not UTF-8, or not a line of names; they are parted by something else than commas.
    """
    line = stream.readline(reading.LINE_BYTES)
    if len(line) >= reading.LINE_BYTES:
        raise SpecError(
            f"{path}:1: the line is longer than {reading.LINE_BYTES} characters", "write one record per line"
        )
    csv.field_size_limit(reading.LINE_BYTES)
    try:
        names = [name.strip() for name in next(csv.reader([line.decode("utf-8-sig").strip()]), [])]
    except UnicodeDecodeError:
        raise SpecError(f"{path}:1: not UTF-8", "save the file as UTF-8") from None
    except csv.Error:  # a quote that is not closed in the line
        raise SpecError(
            f"{path}:1: the header is not a line of names", "name the columns, with commas between"
        ) from None
    if not any(names):
        raise SpecError(f"{path}: the first line is empty", "it must name the columns")
    if all(_is_number(name) for name in names):
        raise SpecError(f"{path}: the first line holds numbers", "it must name the columns: add a header")
    if len(names) == 1 and (other := next((word for mark, word in _MARKS.items() if mark in names[0]), None)):
        raise SpecError(f"{path}: the columns are parted by {other}", "save the file with commas between the cells")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_rows(stream: IO[bytes], size: int) -> list[list[str]] | None:
    """Return the cells of every line of a small file; none where it has more than ``size`` characters.

    None stands for a file that cannot be read as CSV.
    """
    csv.field_size_limit(reading.LINE_BYTES)
    try:
        text = stream.read(size + 1).decode("utf-8-sig")
        return list(csv.reader(text.splitlines())) if len(text) <= size else []
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
