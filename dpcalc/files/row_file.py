"""Rows of equal size in a file, read by their numbers, so that a file may be larger than memory.

Rows are read, and not mapped: a mapped file that is cut short ends the process, and one that is read is refused.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files.arrays import Header

Chosen = slice | NDArray[np.integer[Any]]

_DENSE = 4  # rows are read together with those between them, if they are at most so many times as many


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

    def rows(self, chosen: Chosen) -> NDArray[Any]:
        """Return some rows, shape (m, ...), which may not be overwritten.

        Args:
            chosen: a slice without a step, or whole numbers from 0 to count - 1 in any order.

        Raises:
            SpecError: the file cannot be read, or has changed.
        """
        if isinstance(chosen, slice):
            first, last, _ = chosen.indices(self.count)
            return self._between(first, max(first, last))
        if not len(chosen):
            return self._between(0, 0)
        low, high = int(chosen.min()), int(chosen.max()) + 1
        if high - low <= _DENSE * len(chosen):
            return self._between(low, high)[chosen - low]
        with self._checked():
            each = self.bytes
            parts = [self._read(each, self.offset + each * place) for place in chosen.tolist()]
        return self._array(b"".join(parts), len(chosen))

    def _between(self, first: int, last: int) -> NDArray[Any]:
        with self._checked():
            raw = self._read((last - first) * self.bytes, self.offset + first * self.bytes)
        return self._array(raw, last - first)

    def _array(self, raw: bytes, count: int) -> NDArray[Any]:
        if len(raw) != count * self.bytes:
            raise self._changed()
        return np.frombuffer(raw, self.dtype).reshape(count, *self.width)

    def _read(self, size: int, place: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self.descriptor, size, place)
        with self._lock:
            os.lseek(self.descriptor, place, os.SEEK_SET)
            return os.read(self.descriptor, size)

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

    def _now(self) -> tuple[int, int]:
        state = os.fstat(self.descriptor)
        return state.st_size, state.st_mtime_ns

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
            left = memoryview(np.ascontiguousarray(block)).cast("B")
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
