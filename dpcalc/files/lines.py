"""The lines of CSV files and their cells.

There are two readings. `text_blocks` is for files whose faults may be shown: it is strict, and gives the place.
`record_texts` is for tables of records and never refuses a line: a refusal would distinguish one table from another.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import IO, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.files import reading
from dpcalc.files.place import FileError, Place

_PIECE = 4 << 20  # bytes read at once
_RECORDS = 1 << 18  # bytes of records read at once
_PER_COLUMN = 32  # bytes that each column adds to the longest line of records


class Block(NamedTuple):
    """Consecutive whole lines of a file, and the number of the first."""

    first: int
    lines: list[str]

    def data(self) -> Iterator[tuple[int, str]]:
        """Yield (line number, line) of the lines that are neither blank nor comments."""
        for number, line in enumerate(self.lines, start=self.first):
            if line and not line.isspace() and not line.lstrip().startswith("#"):
                yield number, line


def text_blocks(shown: str, stream: IO[bytes], size: int) -> Iterator[Block]:
    """Yield the lines of a file of at most ``size`` bytes, some megabytes at a time; lines end with LF, CR LF or CR.

    Raises:
        SpecError: the file or a line is too long, or it is not UTF-8 text.
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


def record_texts(stream: IO[bytes], columns: int, step: int) -> Iterator[bytes]:
    """Yield the remaining lines, ``step`` at a time, separated by line feeds; a line that is far too long is empty.

    Every line is a record: quotation marks do not extend beyond a line, and blank lines count.
    """
    import numpy as np

    parts: list[bytes] = []
    count = 0
    for text in _whole_lines(stream, reading.LINE_BYTES + _PER_COLUMN * columns):
        ends = np.flatnonzero(np.frombuffer(text + b"\n", np.uint8) == 0x0A).tolist()
        first, done = 0, 0
        while count + len(ends) - done >= step:
            done += step - count
            yield b"\n".join([*parts, text[first : ends[done - 1]]])
            parts, count, first = [], 0, ends[done - 1] + 1
        if done < len(ends):
            parts.append(text[first:])
            count += len(ends) - done
    if count:
        yield b"\n".join(parts)


def _whole_lines(stream: IO[bytes], most: int) -> Iterator[bytes]:
    """Yield some lines at a time, separated by line feeds; a line of ``most`` bytes or more is empty."""

    def shortened(text: bytes) -> bytes:
        if len(text) >= most:
            text = b"\n".join(line if len(line) < most else b"" for line in text.split(b"\n"))
        return text.replace(b"\r\n", b"\n").removesuffix(b"\r")

    rest = b""
    while piece := stream.read(_RECORDS):
        text, end, rest = (rest + piece).rpartition(b"\n")
        rest = rest[:most]  # the rest of a line that is too long is not needed
        if end:
            yield shortened(text)
    if rest:
        yield shortened(rest)


def count_lines(stream: IO[bytes]) -> int:
    """Return the number of lines that `record_texts` yields."""
    count, last = 0, b"\n"
    while piece := stream.read(_RECORDS):
        count, last = count + line_feeds(piece), piece[-1:]
    return count + (last != b"\n")


def line_feeds(text: bytes) -> int:
    """Return the number of line feeds: numpy counts five times faster than `bytes.count`."""
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == 0x0A)) if text else 0


def split_cells(line: str) -> list[str]:
    """Return the cells of a line, quoted or not; no cells if one is too long to read."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line.replace("\r", " ").replace("\n", " ")]), [])
    except csv.Error:
        return []


_MARKS = {";": "semicolons", "\t": "tabs"}


def read_header(path: str, stream: IO[bytes]) -> list[str]:
    """Return the names of the columns from the first line.

    Raises:
        SpecError: the line is too long, not UTF-8, or not a list of names separated by commas.
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
    """Return the cells of every line of a small file; an empty list if it has more than ``size`` characters.

    None means that the file cannot be read as CSV.
    """
    csv.field_size_limit(reading.LINE_BYTES)
    try:
        text = stream.read(size + 1).decode("utf-8-sig")
        return list(csv.reader(text.splitlines())) if len(text) <= size else []
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
