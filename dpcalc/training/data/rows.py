"""The rows of a file, some at a time: the columns that a model needs, by their names and in its order.

As in training, a cell that is no finite number is nan, and no row is refused for what it holds; a file is refused for
its shape, its names and the types of its columns. Other columns are not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files import limits
from dpcalc.files.arrays import damaged_as, map_array, open_archive, read_header, read_member
from dpcalc.files.csv_lines import read_header as read_csv_header
from dpcalc.files.csv_lines import record_lines
from dpcalc.files.paths import ending
from dpcalc.files.place import clipped, near
from dpcalc.files.reading import opened
from dpcalc.training.data.cells import Classes, Labels, Levels, Lines, as_array

Array = NDArray[np.float64]
Rule = Labels | Classes | Levels

_CELLS = 1 << 18
"""Cells held at once, about."""


class Wanted(NamedTuple):
    """The columns that are read of a file.

    Attributes:
        path: of the file, for messages.
        names: of the columns, in the order in which they are wanted.
        rules: how the cells of each are read.
    """

    path: str
    names: tuple[str, ...]
    rules: tuple[Rule, ...]

    def order(self, names: Sequence[str]) -> list[int]:
        """Return the places of the wanted columns among the names of a file.

        Raises:
            SpecError: one is not there, or there twice.
        """
        places: dict[str, list[int]] = {name: [] for name in self.names}
        for place, name in enumerate(names):
            if name in places:
                places[name].append(place)
        for name, found in places.items():
            if len(found) > 1:
                raise SpecError(f"{self.path}: column {clipped(name)} is there twice", "rename one of the two")
            if not found:
                raise SpecError(f"{self.path} has no column {clipped(name)}, which the model needs", near(name, names))
        return [places[name][0] for name in self.names]

    def coded(self, columns: Sequence[NDArray[Any]]) -> Array:
        """Return columns, each of shape (m,), as an array of shape (m, wanted columns).

        Raises:
            SpecError: a column is of a type that holds no numbers, and its words are not declared.
        """
        cells = np.empty((len(columns[0]), len(columns)))
        for place, (name, rule, column) in enumerate(zip(self.names, self.rules, columns, strict=True)):
            if column.ndim != 1 or column.dtype.kind not in ("fiubUSO" if rule.takes_words else "fiub"):
                raise SpecError(f"{self.path}: column {clipped(name)} holds no numbers", "encode it as in training")
            cells[:, place] = rule.codes(column)
        return cells

    def step(self) -> int:
        """Return how many rows are read at once."""
        return max(1, _CELLS // max(1, len(self.names)))

    def damaged(self) -> Any:
        """Return the context in which what a library raises of a file is a refusal of it."""
        kind = os.path.splitext(self.path)[1]
        return damaged_as(SpecError(f"{self.path} is not a readable {kind} file of plain numbers", "save it again"))


def blocks(path: str, names: Sequence[str], rules: Sequence[Rule]) -> Iterator[Array]:
    """Yield the rows of a file in order, as arrays of shape (m, wanted columns) with at least one row.

    How many rows a block has depends on the shape of the file alone.

    Args:
        path: .csv with a header; .npy, a matrix (columns are called 1, 2, ...) or named fields; .npz with arrays X and
            perhaps y; .parquet.
        names: of the columns.
        rules: how the cells of each are read.

    Raises:
        SpecError: it cannot be read; a column is not there, or is of a type that holds no numbers.
    """
    readers: dict[str, Callable[[IO[bytes], Wanted], Iterator[Array]]] = {
        ".csv": _of_csv, ".npy": _of_npy, ".npz": _of_npz, ".parquet": _of_parquet,
    }  # fmt: skip
    reader = readers.get(ending(path))
    if reader is None:
        raise SpecError(f"{path}: unknown kind of data file", "use a name that ends in " + ", ".join(readers))
    with opened(path) as stream:
        yield from reader(stream, Wanted(path, tuple(names), tuple(rules)))


def of_matrix(matrix: NDArray[Any], wanted: Wanted, names: Sequence[str]) -> Iterator[Array]:
    """Yield the rows of a matrix whose columns have these names, as `blocks` does."""
    order = wanted.order(names)
    for first in range(0, len(matrix), wanted.step()):
        some = matrix[first : first + wanted.step()]
        yield wanted.coded([some[:, place] for place in order])


def numbered(count: int) -> list[str]:
    """Return the names of columns that have none: their numbers.

    Raises:
        SpecError: they are too many.
    """
    if count > limits.TABLE_COLUMNS:
        raise SpecError(f"{count} columns; at most {limits.TABLE_COLUMNS} are read", "use fewer")
    return [str(place) for place in range(1, count + 1)]


def _of_csv(stream: IO[bytes], wanted: Wanted) -> Iterator[Array]:
    names = read_csv_header(wanted.path, stream)
    order = wanted.order(names)
    words = {place: rule for place, rule in zip(order, wanted.rules[:-1], strict=False) if isinstance(rule, Levels)}
    reader = Lines(len(names), order, wanted.rules[-1], words)
    lines = record_lines(stream, len(names))
    step = max(1, _CELLS // 8 // len(names))  # texts take more room
    while block := list(islice(lines, step)):
        yield reader.rows(block)


def _of_npy(stream: IO[bytes], wanted: Wanted) -> Iterator[Array]:
    with wanted.damaged():
        array = map_array(stream)
    if array.dtype.names is not None and array.ndim == 1:
        fields = [array.dtype.names[place] for place in wanted.order(array.dtype.names)]
        for first in range(0, len(array), wanted.step()):
            some = array[first : first + wanted.step()]
            yield wanted.coded([some[name] for name in fields])
    elif array.ndim == 2:
        yield from of_matrix(array, wanted, numbered(array.shape[1]))
    else:
        raise SpecError(f"{wanted.path} has shape {array.shape}", "it must be a matrix: one row per record")


def _of_npz(stream: IO[bytes], wanted: Wanted) -> Iterator[Array]:
    """Yield rows of X, shape (n, d), beside y, shape (n,), if that is wanted; X is read in blocks."""
    with wanted.damaged():
        archive = open_archive(wanted.path, stream)
    with archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if "X" not in members:
            raise SpecError(f"{wanted.path} holds no array X", "save it with numpy.savez(file, X=features)")
        info = members["X"]
        if any(
            m.file_size > max(limits.UNPACKED_BYTES, limits.UNPACKED_RATIO * m.compress_size) for m in members.values()
        ):
            raise SpecError(f"{wanted.path} would unpack to far more than it holds", "save it with numpy.savez")
        target = None
        if "y" in wanted.names:
            with wanted.damaged():
                target = read_member(archive, members["y"])
        with wanted.damaged(), archive.open(info) as member:
            shape, by_columns, dtype, _ = read_header(member, info.file_size)
            if len(shape) != 2 or by_columns or (target is not None and target.shape != shape[:1]):
                raise SpecError(f"{wanted.path}: X has shape {shape}", "it must be (n, d), stored by rows, and y (n,)")
            names = [*numbered(shape[1]), *(["y"] if target is not None else [])]
            order = wanted.order(names)
            for first in range(0, shape[0], wanted.step()):
                last = min(shape[0], first + wanted.step())
                block = np.frombuffer(member.read((last - first) * shape[1] * dtype.itemsize), dtype)
                columns = [*block.reshape(last - first, shape[1]).T]
                columns += [] if target is None else [target[first:last]]
                yield wanted.coded([columns[place] for place in order])


def _of_parquet(stream: IO[bytes], wanted: Wanted) -> Iterator[Array]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise SpecError("Parquet files need pyarrow", "pip install pyarrow") from None
    with wanted.damaged():
        file = parquet.ParquetFile(stream)
    wanted.order(list(file.schema_arrow.names))
    batches = file.iter_batches(columns=list(wanted.names), batch_size=wanted.step())
    while True:
        with wanted.damaged():
            batch = next(batches, None)
        if batch is None:
            return
        if not len(batch):
            continue
        columns = []
        for name in wanted.names:
            column = batch.column(batch.schema.names.index(name))
            # By the type in the schema: nulls, too, would change that of the values.
            if pyarrow.types.is_primitive(column.type) and not pyarrow.types.is_temporal(column.type):
                column = column.cast(pyarrow.float64(), safe=False)
            columns.append(column.to_numpy(False))
        yield wanted.coded(columns)


def of_arrays(features: Any, wanted: Wanted, target: Any = None) -> Iterator[Array]:
    """Yield the rows of an array of shape (n, d), in the order of the model's columns, and of a target of shape (n,).

    Raises:
        SpecError: shapes are others.
    """
    x, y = as_array(features), None if target is None else as_array(target)
    columns = len(wanted.names) - (y is not None)
    if x.ndim != 2 or x.shape[1] != columns or (y is not None and y.shape != x.shape[:1]):
        raise SpecError(f"the rows have shape {x.shape}", f"the model takes rows of {columns} columns")
    for first in range(0, len(x), wanted.step()):
        some = slice(first, first + wanted.step())
        parts = [*x[some].T, *([] if y is None else [y[some]])]
        yield np.column_stack([rule.codes(part) for rule, part in zip(wanted.rules, parts, strict=True)])
