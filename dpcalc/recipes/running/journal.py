"""A journal: the verdicts of a check as they come, a line each, in a file that is only ever added to.

The first line says of which check it is. Every other line has the place of a case, its JSON, and a hash of both. A line
ends with a line break, which is written last: what has none was cut off when its writer was killed, and is dropped.
Anything else that is not as it was written is an error. Nothing that was read counts before it was checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from dpcalc.errors import SpecError
from dpcalc.files.output import open_to_add
from dpcalc.files.reading import shown_path
from dpcalc.recipes.running.saved import Garbled

SCHEMA = "dpcalc.checkpoint/1"
_LINE = re.compile(rb'\{"place": ([0-9]{1,12}), "sha256": "([0-9a-f]{64})", "case": (\{.*\})\}\n', re.DOTALL)
_LONGEST = 1 << 26
_RECENT = 2000
_OPTION = "--checkpoint"
_CURE = "name another --checkpoint, or remove this one to begin anew"

Check = Callable[[int, str], bool]
"""Whether the line of the case at a place counts, or it is to be computed again.

Raises `Garbled` where the line is not the verdict on that case.
"""


class Journal:
    """The lines of the cases at some places, held in a file.

    Args:
        places: of the cases, ascending.
        path: of the file that is kept; None: one without a name, beside ``beside``, that ends with this process.
        header: what says of which check it is.
        check: what a line must stand up to that was read from a file of an earlier run.
        beside: the folder of a file without a name.

    Raises:
        SpecError: the file is of another check, is damaged, is in use, or cannot be written.
    """

    def __init__(
        self,
        places: Sequence[int],
        path: str | None = None,
        header: Mapping[str, Any] | None = None,
        check: Check | None = None,
        beside: str | None = None,
    ) -> None:
        self._places, self._path = places, path
        self._offsets = array("q", bytes(8 * len(places)))
        self._recent: dict[int, tuple[str, Any]] = {}  # which need not be read again, and were checked
        self.count = 0
        if path is None:
            import tempfile  # takes long, and most checks need no journal

            self._file: IO[bytes] = tempfile.TemporaryFile(dir=beside or None)  # noqa: SIM115 (closed by `close`)
            self._file.write(b"\n")  # no line begins at 0, which stands for none
            self._end = 1
            weakref.finalize(self, self._file.close)
            return
        self._file = open_to_add(path, _OPTION)
        try:
            _lock(self._file, path)
            self._end = self._read(path, header or {}, check)
        except BaseException:
            self._file.close()
            raise
        weakref.finalize(self, self._file.close)

    def close(self) -> None:
        """Close the file; what was written is on the disk."""
        with contextlib.suppress(OSError, ValueError):
            if self._path is not None:
                os.fsync(self._file.fileno())
        with contextlib.suppress(OSError):  # of a full disk, which was reported
            self._file.close()

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """Name the file where it cannot be written."""
        try:
            yield
        except OSError as error:
            what, cure = "the temporary file of the verdicts", "make room"
            if self._path is not None:
                what, cure = (
                    f"the checkpoint {shown_path(self._path)}",
                    "make room, and run the check again: it goes on",
                )
            raise SpecError(f"cannot write {what}: {error.strerror or error}", cure) from None

    def missing(self) -> Iterator[int]:
        """Yield the places of the cases that have no line; those that get one later may be among them."""
        return (place for number, place in enumerate(self._places) if not self._offsets[number])

    def add(self, place: int, line: str, said: Any = None) -> None:
        """Add the line of a case, whole or not at all; ``said`` comes with it from `lines`, if that is soon."""
        number = self._number(place)
        if self._offsets[number]:
            return
        if len(self._recent) < _RECENT:
            self._recent[number] = line, said
        text = line.encode()
        whole = b'{"place": %d, "sha256": "%s", "case": %s}\n' % (place, _hash(place, text), text)
        with self._reported():
            self._file.seek(self._end)
            self._file.write(whole)
            if self._path is not None:
                self._file.flush()
        self._offsets[number] = self._end
        self._end += len(whole)
        self.count += 1

    def lines(self, start: int = 0) -> Iterator[tuple[str, Any]]:
        """Yield the lines in the order of the places, from the case number ``start`` on, up to the first that lacks.

        With each comes what was said of it, or None.

        Raises:
            SpecError: the file was changed meanwhile.
        """
        for number in range(start, len(self._places)):
            if not self._offsets[number]:
                return
            yield self._recent.pop(number) if number in self._recent else (self._line(number), None)

    def _line(self, number: int) -> str:
        self._file.seek(self._offsets[number])
        match = _LINE.fullmatch(self._file.readline(_LONGEST))
        if match is None or int(match[1]) != self._places[number] or _hash(int(match[1]), match[3]) != match[2]:
            raise SpecError("the file of the verdicts was changed while it was written", "run the check again")
        return match[3].decode()

    def _number(self, place: int) -> int:
        number = bisect_left(self._places, place)
        if number == len(self._places) or self._places[number] != place:
            raise Garbled("there is no such case")
        return number

    # --- an earlier run -----------------------------------------------------------------------------------------------

    def _read(self, path: str, says: Mapping[str, Any], check: Check | None) -> int:
        """Take over the lines of an earlier run, cut off what is torn, and return where the next line goes."""
        header = json.dumps(says).encode() + b"\n"
        beginning = json.dumps(dict(itertools.islice(says.items(), 1))).encode()[:-1]  # of every checkpoint
        self._file.seek(0)
        first = self._file.readline(_LONGEST)
        if not first.endswith(b"\n"):
            if first and not (header.startswith(first) and len(first) > len(beginning)):
                raise SpecError(f"{shown_path(path)} is no checkpoint of dpcalc", "name another file")
            with self._reported():
                self._cut(0)
                self._file.write(header)
                self._file.flush()
            return len(header)
        if first != header:
            raise SpecError(f"{shown_path(path)} is {_difference(first, header)}", _CURE)
        end = len(first)
        for count, line in enumerate(iter(lambda: self._file.readline(_LONGEST), b""), start=2):
            if not line.endswith(b"\n") and len(line) < _LONGEST:
                self._cut(end)
                break
            self._take(path, count, line, end, check)
            end += len(line)
        return end

    def _take(self, path: str, count: int, line: bytes, offset: int, check: Check | None) -> None:
        match = _LINE.fullmatch(line)
        try:
            if match is None or _hash(int(match[1]), match[3]) != match[2]:
                raise Garbled("it is not as it was written")
            number = self._number(int(match[1]))
            counts = check is None or check(int(match[1]), match[3].decode())
        except (Garbled, UnicodeDecodeError) as why:
            raise SpecError(f"{shown_path(path)}: line {count} is damaged: {why}", _CURE) from None
        if not counts:
            return
        if self._offsets[number] and self._line_at(number) != match[3]:
            raise SpecError(f"{shown_path(path)}: line {count} contradicts an earlier one", _CURE)
        self._file.seek(offset + len(line))
        self.count += not self._offsets[number]
        self._offsets[number] = offset

    def _line_at(self, number: int) -> bytes:
        return self._line(number).encode()

    def _cut(self, end: int) -> None:
        self._file.truncate(end)
        self._file.seek(end)


def _hash(place: int, text: bytes) -> bytes:
    return hashlib.sha256(b"%d %s" % (place, text)).hexdigest().encode()


def _difference(first: bytes, header: bytes) -> str:
    """Return what a file is that has another header."""
    try:
        found, wanted = json.loads(first), json.loads(header)
        if found.get("schema") != SCHEMA:
            return "no checkpoint of dpcalc"
        differ = [name for name in wanted if found.get(name) != wanted[name]]
    except (ValueError, AttributeError):
        return "no checkpoint of dpcalc"
    names = {"dpcalc": "another version of dpcalc", "digest": "other cases", "options": "other options"}
    return "a checkpoint of " + (names.get(differ[0], "another check") if differ else "another check")


def _lock(file: IO[bytes], path: str) -> None:
    """Keep other processes from the file, as long as it is open.

    Raises:
        SpecError: one has it, or the platform has no such lock.
    """
    try:
        import fcntl
    except ImportError:
        raise SpecError("--checkpoint needs locks of files, which this platform lacks", "leave it out") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SpecError(
            f"{shown_path(path)} is in use by another check", "wait for it, or give each check a file of its own"
        ) from None
