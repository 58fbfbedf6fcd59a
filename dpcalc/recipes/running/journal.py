"""A journal: the verdicts of a check in order of arrival, one line each, in an append-only file.

The first line identifies the check. Every other line has the place of a case, its JSON, and a hash of both. A line
ends with a line break, written last: a line without one was cut off when its writer was killed, and is dropped.
Any other damage is an error. Nothing that was read counts before it is checked.
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
from typing import IO

from dpcalc.errors import SpecError
from dpcalc.files.output import open_to_add
from dpcalc.files.place import shown_path
from dpcalc.files.typed import Garbled
from dpcalc.recipes.running.saved import read_line
from dpcalc.render.machine import case_line
from dpcalc.report import Case

SCHEMA = "dpcalc.checkpoint/1"
_LINE = re.compile(rb'\{"place": ([0-9]{1,12}), "sha256": "([0-9a-f]{64})", "case": (\{.*\})\}\n', re.DOTALL)
_LONGEST = 1 << 26  # bytes of a line: a case with 10^6 entries has about 4 * 10^7
_RECENT = 2000  # cached cases, so that those that arrive in order are never read back
_OPTION = "--checkpoint"
_CURE = "name another --checkpoint, or remove this one to begin anew"

Counts = Callable[[int, str], bool]
"""Whether the line of the case at a place counts, rather than being computed again.

Raises `Garbled` if the line is not the verdict on that case.
"""


class Journal:
    """The verdicts on the cases at some places: in memory, or as lines of a file.

    Args:
        places: of the cases, ascending.
        on_disk: whether they are in an unnamed file, which ends with this process.
        beside: the folder of that file.
    """

    def __init__(self, places: Sequence[int], *, on_disk: bool = False, beside: str | None = None) -> None:
        self._places = places
        self._offsets = array("q", bytes(8 * len(places)))  # of the lines in the file; 0 for none
        self._recent: dict[int, Case] = {}
        self._file: IO[bytes] | None = None
        self._path: str | None = None
        self._end = 1
        if on_disk:
            import tempfile  # a slow import, and most checks need no file

            self._file = tempfile.TemporaryFile(dir=beside or None)  # noqa: SIM115 (closed by `close`)
            self._file.write(b"\n")  # no line begins at 0
            weakref.finalize(self, self._file.close)

    @classmethod
    def kept(cls, places: Sequence[int], path: str, header: Mapping[str, object], counts: Counts) -> Journal:
        """Return a journal in a named file, with the lines of an earlier run.

        Args:
            places: of the cases, ascending.
            path: of the file.
            header: identifies the check.
            counts: the test of a line.

        Raises:
            SpecError: the file belongs to another check, is damaged, in use, or cannot be written.
        """
        journal = cls(places)
        journal._path, journal._file = path, open_to_add(path, _OPTION)
        weakref.finalize(journal, journal._file.close)
        try:
            _lock(journal._file, path)
            journal._end = journal._read(journal._file, path, header, counts)
        except BaseException:
            journal._file.close()
            raise
        return journal

    def close(self) -> None:
        """Close the file; all lines are on the disk."""
        if self._file is None:
            return
        with contextlib.suppress(OSError, ValueError):
            if self._path is not None:
                os.fsync(self._file.fileno())
        with contextlib.suppress(OSError):  # a full disk, already reported
            self._file.close()

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """Name the file in errors of writing."""
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
        """Yield the places of cases without a verdict, perhaps with some that get one meanwhile."""
        return (place for number, place in enumerate(self._places) if not self._offsets[number])

    def add(self, place: int, case: Case) -> None:
        """Add a case, entirely or not at all."""
        number = self._number(place)
        if self._file is None:
            self._offsets[number], self._recent[number] = self._end, case
            return
        if len(self._recent) < _RECENT:
            self._recent[number] = case
        self.write(place, case_line("check", case))

    def write(self, place: int, line: str) -> None:
        """Write the line of a case into the file."""
        assert self._file is not None
        text = line.encode()
        whole = b'{"place": %d, "sha256": "%s", "case": %s}\n' % (place, _hash(place, text), text)
        with self._reported():
            self._file.seek(self._end)
            self._file.write(whole)
            if self._path is not None:
                self._file.flush()
        self._offsets[self._number(place)] = self._end
        self._end += len(whole)

    def case(self, number: int) -> Case | None:
        """Return a case by its number among all, once; None without a verdict yet."""
        if number >= len(self._places) or not self._offsets[number]:
            return None
        return self._recent.pop(number) if number in self._recent else read_line(self.line(number))

    def line(self, number: int) -> str:
        """Return the line of a case by its number among all.

        Raises:
            SpecError: the file was changed meanwhile.
        """
        assert self._file is not None
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

    def _read(self, file: IO[bytes], path: str, header: Mapping[str, object], counts: Counts) -> int:
        """Read the lines of an earlier run, drop a torn last one, and return the position of the next line."""
        wanted = json.dumps(header).encode() + b"\n"
        beginning = json.dumps(dict(itertools.islice(header.items(), 1))).encode()[:-1]  # of every checkpoint
        file.seek(0)
        first = file.readline(_LONGEST)
        if not first.endswith(b"\n"):
            if first and not (wanted.startswith(first) and len(first) > len(beginning)):
                raise SpecError(f"{shown_path(path)} is no checkpoint of dpcalc", "name another file")
            with self._reported():
                file.truncate(0)
                file.seek(0)
                file.write(wanted)
                file.flush()
            return len(wanted)
        if first != wanted:
            raise SpecError(f"{shown_path(path)} is {_difference(first, header)}", _CURE)
        end = len(first)
        for count, line in enumerate(iter(lambda: file.readline(_LONGEST), b""), start=2):
            if not line.endswith(b"\n") and len(line) < _LONGEST:
                file.truncate(end)
                break
            try:
                self._take(line, end, counts)
            except (Garbled, UnicodeDecodeError) as why:
                raise SpecError(f"{shown_path(path)}: line {count} is damaged: {why}", _CURE) from None
            except _Contradiction:
                raise SpecError(f"{shown_path(path)}: line {count} contradicts an earlier one", _CURE) from None
            end += len(line)
            file.seek(end)
        return end

    def _take(self, line: bytes, offset: int, counts: Counts) -> None:
        match = _LINE.fullmatch(line)
        if match is None or _hash(int(match[1]), match[3]) != match[2]:
            raise Garbled("it is not as it was written")
        number, text = self._number(int(match[1])), match[3].decode()
        if counts(int(match[1]), text):
            if self._offsets[number] and self.line(number) != text:
                raise _Contradiction
            self._offsets[number] = offset


class _Contradiction(Exception):
    """Two lines of one case."""


def _hash(place: int, text: bytes) -> bytes:
    return hashlib.sha256(b"%d %s" % (place, text)).hexdigest().encode()


def _difference(first: bytes, header: Mapping[str, object]) -> str:
    """Describe a file that has another header."""
    try:
        written = json.loads(first)
        if written.get("schema") != SCHEMA:
            return "no checkpoint of dpcalc"
        differ = [name for name in header if written.get(name) != header[name]]
    except (ValueError, AttributeError):
        return "no checkpoint of dpcalc"
    names = {"dpcalc": "another version of dpcalc", "digest": "other cases", "options": "other options"}
    return "a checkpoint of " + (names.get(differ[0], "another check") if differ else "another check")


def _lock(file: IO[bytes], path: str) -> None:
    """Lock the file against other processes as long as it is open.

    Raises:
        SpecError: another process has it, or the platform has no such lock.
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
