"""Readers of record files, one for each format: the names of columns, and the rows in blocks.

Files are untrusted: nothing is evaluated, unpickled or fetched. A file is refused for the shape of its table, its names
or the types of its columns, which count as public, and never for the contents of a record
(`dpcalc.training.data.cells`). Columns without names are called 1, 2, and so on.
"""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files import reading
from dpcalc.files.arrays import damaged_as, map_array, open_archive, read_header
from dpcalc.files.lines import count_lines, record_texts
from dpcalc.files.lines import read_header as read_csv_header
from dpcalc.files.place import Place, ending
from dpcalc.training.data.cells import NUMBERS, NUMERIC, Classes, Labels, Levels, Lines, numbers

Array = NDArray[np.float64]
Rule = Labels | Classes | Levels

_BLOCK = 1 << 18  # cells of a block: 2 MiB
_KINDS = {"U": "texts", "S": "texts", "O": "texts", "c": "complex numbers", "M": "dates", "m": "durations"}
"""Types in words; numpy's own names of text types reveal the longest length."""


class Columns(NamedTuple):
    """The wanted columns of a file, in their order.

    Attributes:
        path: of the file, for messages.
        names, places: of the columns.
        rules: of their cells.
        cure: the hint for a column of undeclared words, with ``{name}`` for its name.
    """

    path: str
    names: tuple[str, ...]
    places: tuple[int, ...]
    rules: tuple[Rule, ...]
    cure: str

    def coded(self, columns: Sequence[NDArray[Any]]) -> Array:
        """Return columns, each of shape (m,), as an array of shape (m, wanted columns).

        Raises:
            SpecError: the type of a column holds no numbers, and its words are not declared.
        """
        cells = np.empty((len(columns[0]), len(columns)))
        for place, (name, rule, values) in enumerate(zip(self.names, self.rules, columns, strict=True)):
            if values.ndim != 1 or values.dtype.kind not in (NUMERIC + "USO" if rule.takes_words else NUMERIC):
                kind = _KINDS.get(values.dtype.kind, "no numbers")
                raise SpecError(f"{self.path}: column {name!r} holds {kind}", self.cure.format(name=name))
            cells[:, place] = rule.codes(values)
        return cells

    def of_matrix(self, rows: NDArray[Any]) -> Array:
        """Return the wanted columns of a matrix of numbers."""
        cells = numbers(rows if self.places == tuple(range(rows.shape[1])) else rows[:, self.places])
        for place, rule in enumerate(self.rules):
            if rule is not NUMBERS:
                cells[:, place] = rule.codes(cells[:, place])
        return cells


class Reader:
    """An open file of records.

    Attributes:
        path: for messages.
        names: of all columns, in their order in the file.
        target_name: of the target, if the format determines it.
    """

    path: str
    names: Sequence[str]
    target_name: str | None = None

    @property
    def count(self) -> int:
        """The number of records."""
        raise NotImplementedError

    def blocks(self, wanted: Columns) -> Iterator[Array]:
        """Yield the rows in order, as arrays of shape (m, wanted columns); m >= 1 depends on the file's shape alone.

        Raises:
            SpecError: the file is damaged, or the type of a column holds no numbers.
        """
        raise NotImplementedError

    def places(self, rows: int, columns: int, copies: int = 1) -> Iterator[slice]:
        """Yield blocks of rows; they are smaller if several copies are held."""
        step = max(1, _BLOCK // (copies * max(1, columns)))
        return (slice(first, min(first + step, rows)) for first in range(0, rows, step))


def refuse_other_kinds(path: str) -> None:
    """Raise SpecError for a file whose ending has no reader."""
    if ending(path) not in _READERS:
        raise SpecError(f"{path}: unknown kind of data file", "use a name that ends in " + ", ".join(_READERS))


def reader_of(path: str, stream: IO[bytes], *, with_target: bool) -> Reader:
    """Return the reader of a file: .csv with a header; .npy, a matrix or named fields; .npz with X and y; .parquet.

    Args:
        path: of the file, with a known ending.
        stream: open for reading.
        with_target: whether an .npz file must hold y.

    Raises:
        SpecError: the file is damaged, or a package is missing.
    """
    return _READERS[ending(path)](path, stream, with_target)


class _Csv(Reader):
    def __init__(self, path: str, stream: IO[bytes], with_target: bool = False) -> None:
        self.path, self.names, self._stream = path, read_csv_header(path, stream), stream
        self._start = stream.tell()

    @property
    def count(self) -> int:
        """As `Reader.count`."""
        count = count_lines(self._stream)
        if not count:
            raise SpecError(f"{self.path} has a header but no records", "add some")
        return count

    def blocks(self, wanted: Columns) -> Iterator[Array]:
        """As `Reader.blocks`."""
        self._stream.seek(self._start)
        columns = zip(wanted.places[:-1], wanted.rules[:-1], strict=True)
        words = {place: rule for place, rule in columns if isinstance(rule, Levels)}
        reader = Lines(len(self.names), wanted.places, wanted.rules[-1], words)
        step = max(1, _BLOCK // 8 // len(self.names))  # texts need more memory
        return map(reader.rows, record_texts(self._stream, len(self.names), step))


class _Npy(Reader):
    """A matrix, or named fields."""

    def __init__(self, path: str, stream: IO[bytes], with_target: bool = False) -> None:
        self.path, self._stream = path, stream
        with _damaged(path):
            self.header = read_header(stream, os.fstat(stream.fileno()).st_size)
            stream.seek(0)
        shape, fields = self.header.shape, self.header.dtype.names
        if fields is None:
            if len(shape) != 2:
                raise SpecError(f"{path} has shape {shape}", "it must be a matrix: one row per record")
            self.names: Sequence[str] = _numbered(path, shape[1])
            _refuse_other_than_numbers(path, self.header.dtype)
        else:
            if len(shape) != 1:
                raise SpecError(f"{path} has shape {shape}", "named fields must be one-dimensional: one row per record")
            self.names = fields

    @property
    def count(self) -> int:
        """As `Reader.count`."""
        return self.header.shape[0]

    def blocks(self, wanted: Columns) -> Iterator[Array]:
        """As `Reader.blocks`."""
        with _damaged(self.path):
            array = map_array(self._stream)
        for rows in self.places(len(array), len(self.names)):
            some = array[rows]
            if self.header.dtype.names is None:
                yield wanted.of_matrix(some)
            else:
                yield wanted.coded([some[name] for name in wanted.names])


class _Npz(Reader):
    """Features X, shape (n, d), and perhaps the target y, shape (n,)."""

    target_name = "y"

    def __init__(self, path: str, stream: IO[bytes], with_target: bool = False) -> None:
        self.path = path
        with _damaged(path):
            self._archive = open_archive(path, stream)
        self._members = {info.filename.removesuffix(".npy"): info for info in self._archive.infolist()}
        _check_members(path, self._members, with_target)
        with self._opened("X") as features:
            shape, by_columns, self._dtype, _ = read_header(features, self._members["X"].file_size)
        self._target = self._members.get("y") is not None
        of_target: tuple[int, ...] = shape[:1]
        if self._target:
            with self._opened("y") as target:
                of_target, _, self._target_dtype, _ = read_header(target, self._members["y"].file_size)
        if len(shape) != 2 or of_target != shape[:1]:
            beside = f" and y {of_target}" if self._target else ""
            raise SpecError(f"{path}: X has shape {shape}{beside}", "they must be (n, d) and (n,)")
        _refuse_other_than_numbers(path, self._dtype)
        if by_columns:
            raise SpecError(f"{path}: X is stored by columns", "save numpy.ascontiguousarray(X)")
        self._shape = shape
        self.names = [*_numbered(path, shape[1]), *(["y"] if self._target else [])]

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        with _damaged(self.path):
            member = self._archive.open(self._members[name])
        with member, _damaged(self.path):
            yield member

    @property
    def count(self) -> int:
        """As `Reader.count`."""
        return self._shape[0]

    def blocks(self, wanted: Columns) -> Iterator[Array]:
        """As `Reader.blocks`."""
        with contextlib.ExitStack() as stack:
            features = stack.enter_context(self._archive.open(self._members["X"]))
            target = stack.enter_context(self._archive.open(self._members["y"])) if self._target else None
            for name, member in (("X", features), ("y", target)):
                if member is not None:
                    with _damaged(self.path):
                        read_header(member, self._members[name].file_size)
            width = self._shape[1]
            for rows in self.places(*self._shape, copies=4):
                count = rows.stop - rows.start
                block = self._values(features, self._dtype, count * width).reshape(count, width)
                columns = [*block.T, *([] if target is None else [self._values(target, self._target_dtype, count)])]
                yield wanted.coded([columns[place] for place in wanted.places])

    def _values(self, stream: IO[bytes], dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        """Return the next values of a member."""
        with _damaged(self.path):
            raw = stream.read(count * dtype.itemsize)
        if len(raw) != count * dtype.itemsize:
            raise SpecError(f"{self.path} ends early", "save it again")
        return np.frombuffer(raw, dtype)


def _check_members(path: str, members: Mapping[str, zipfile.ZipInfo], with_target: bool) -> None:
    if with_target and set(members) != {"X", "y"}:
        raise SpecError(
            f"{path} holds {', '.join(sorted(members)[:8]) or 'nothing'}",
            "save it with numpy.savez(file, X=features, y=target)",
        )
    if members.get("X") is None:
        raise SpecError(f"{path} holds no array X", "save it with numpy.savez(file, X=features)")
    for info in members.values():
        if info.file_size > max(reading.UNPACKED_BYTES, reading.UNPACKED_RATIO * info.compress_size):
            raise Place(path).error(f"it would unpack to {info.file_size} bytes", "save it with numpy.savez")


class _Parquet(Reader):
    def __init__(self, path: str, stream: IO[bytes], with_target: bool = False) -> None:
        self.path = path
        try:
            from pyarrow import parquet
        except ImportError:
            raise SpecError("Parquet files need pyarrow", "pip install pyarrow") from None
        with _damaged(path):  # without a buffer pyarrow holds a whole row group
            self._file: Any = parquet.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)
        self.names = list(self._file.schema_arrow.names)

    @property
    def count(self) -> int:
        """As `Reader.count`."""
        return int(self._file.metadata.num_rows)

    def blocks(self, wanted: Columns) -> Iterator[Array]:
        """As `Reader.blocks`."""
        left = self.count
        step = max(1, _BLOCK // len(wanted.names))
        batches = self._file.iter_batches(columns=list(wanted.names), batch_size=step)
        while True:
            with _damaged(self.path):
                batch = next(batches, None)
            if batch is None:
                break
            left -= len(batch)
            if left < 0:
                raise Place(self.path).error("more records than the file says", "save it again")
            columns = []
            for name in wanted.names if len(batch) else ():
                columns.append(_of_arrow(batch.column(batch.schema.names.index(name))))
            if columns:
                yield wanted.coded(columns)
        if left:
            raise Place(self.path).error("fewer records than the file says", "save it again")


def _of_arrow(column: Any) -> NDArray[Any]:
    """Return a column, converted by the type in the schema: nulls would change that of the values.

    No value is refused: words become bytes, as some are not UTF-8. Of dates and of nested values only the type is kept.
    """
    import pyarrow
    from pyarrow import types

    column = getattr(column, "storage", column)  # of an extension type
    column = column.dictionary_decode() if types.is_dictionary(column.type) else column
    kind = column.type
    if types.is_temporal(kind) or types.is_nested(kind):
        return np.empty(len(column), "V1" if types.is_nested(kind) else "m8" if types.is_duration(kind) else "M8")
    if types.is_decimal(kind) or types.is_primitive(kind):
        column = column.cast(pyarrow.float64(), safe=False)
    elif not types.is_null(kind):
        column = column.cast(pyarrow.large_binary())
    values: NDArray[Any] = column.to_numpy(False)
    return values


_READERS: dict[str, Callable[[str, IO[bytes], bool], Reader]] = {
    ".csv": _Csv, ".npy": _Npy, ".npz": _Npz, ".parquet": _Parquet,
}  # fmt: skip


def _numbered(path: str, count: int) -> list[str]:
    """Return numbers as the names of columns without names."""
    if count > reading.TABLE_COLUMNS:
        raise Place(path).error(f"{count} columns; at most {reading.TABLE_COLUMNS} are read", "use fewer")
    return [str(place) for place in range(1, count + 1)]


def _refuse_other_than_numbers(path: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in NUMERIC:
        raise SpecError(f"{path} holds {_KINDS.get(dtype.kind, 'no numbers')}", "save real numbers")


def _damaged(path: str) -> contextlib.AbstractContextManager[None]:
    """Refuse a file on which a library's reader fails."""
    kind = os.path.splitext(path)[1]
    return damaged_as(SpecError(f"{path} is not a readable {kind} file of plain numbers", "save it again"))
