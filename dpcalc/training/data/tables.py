"""Tables of records: read from files, and bounded by rules that do not depend on the records.

A table is one float64 array of shape (n, d + 1) whose last column is the target; it is read into place and changed in
place, some rows at a time, so that the data is in memory about once. One of more than `limits.HELD_CELLS` stays in its
file; or it goes to a temporary one, where rows cannot be found by their numbers in its own (`Stored`). Files are
untrusted: nothing is evaluated, unpickled or fetched. What is refused is refused for the shape of a table, the names
and the types of its columns, which count as public, and never for what a record holds (`dpcalc.training.data.cells`).
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files import limits
from dpcalc.files.arrays import Header, damaged_as, map_array, open_archive, read_header
from dpcalc.files.csv_lines import count_lines, read_rows, record_lines
from dpcalc.files.csv_lines import read_header as read_csv_header
from dpcalc.files.paths import ProjectFile, ending
from dpcalc.files.place import FileError, Place
from dpcalc.files.reading import opened
from dpcalc.files.row_file import Chosen, Room, RowFile, Spool
from dpcalc.model.numbers import parse_number
from dpcalc.training.data.cells import NUMBERS, Classes, Labels, Levels, Lines, as_array, numbers
from dpcalc.training.data.intervals import is_interval, why_not
from dpcalc.training.data.progress import Progress

Array = NDArray[np.float64]

_NAMES = 100  # columns among which one that is spelt alike is looked for
_BLOCK = 1 << 18  # cells looked at together
_ACROSS = 1 << 10  # cells of rows that are changed together
_COLUMNS = 1 << 13  # whose squares are added at once
_HUGE = 1e300  # stands for what the map takes beyond the range of a double
_TINY = 1e-140
_LARGE = 1e150  # of the bounds
_USUAL = 1e-200, 1e280  # of a row's square, which is then as exact as a sum can be
_MIDDLE = 1e100  # of usual ranges: numbers of a usual size stay far within the range of a double
_ROOM = 1e-12  # by which clipped rows stay below their bound: more than rounding adds

EXAMPLES = {"breast-cancer": ("diagnosis", Labels("malignant", "benign"), "logistic")}
"""The shipped tables: target, the label that counts as +1, and the loss that suits."""


Coded = Callable[[NDArray[Any], Room], Array]


class Stored:
    """The cells of a table in a file, read some rows at a time.

    Attributes:
        shape: (n, d + 1).
        bytes: of a row of the file, with the columns that are left out.
    """

    def __init__(self, file: RowFile, columns: int, coded: Coded | None = None) -> None:
        """Keep a file.

        Args:
            file: where the rows are.
            columns: d + 1.
            coded: makes cells, as `Table` has them, of rows of the file, perhaps in a room; None: they are cells.
        """
        self.shape, self.bytes = (file.count, columns), file.bytes
        self._file, self._coded = file, coded

    def rows(self, chosen: Chosen, room: Room | None = None) -> Array:
        """Return some rows, shape (m, d + 1), which may be overwritten; nan or inf for what is no finite number.

        Raises:
            SpecError: the file cannot be read, or has changed.
        """
        rows = self._file.rows(chosen, room)
        return rows if self._coded is None else self._coded(rows, room or Room())


class Table(NamedTuple):
    """Records as read.

    Attributes:
        cells: shape (n, d + 1), float64, C-contiguous; nan for what is no finite number; the target is last.
        names: of the d + 1 columns.
    """

    cells: Array | Stored
    names: tuple[str, ...]


class Prepared(NamedTuple):
    """Records within their bounds, ready for training.

    Attributes:
        features: shape (n, d), C-contiguous; |x| <= feature_bound in every row.
        labels: shape (n,).
        counts: rows_clipped, labels_clipped (shortened) and unreadable (cells that are no finite number): known from
            the records, and covered by no guarantee.
    """

    features: Array
    labels: Array
    counts: Mapping[str, int]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of records and of columns."""
        rows, columns = self.features.shape
        return rows, columns


class Ranges(NamedTuple):
    """How raw rows become features, given by the user: column j's interval [low_j, high_j] goes to [-1, 1].

    Attributes:
        low, high: shape (d,); without them numbers stay as they are.
        target: the interval of the target that goes to [-Y, Y], if it is mapped.
        levels: of every column the rule of its words, None where it holds numbers; empty where all do.
        missing: of every column the number that stands for a missing one, None for the middle of its interval; empty
            where it is the middle everywhere.
    """

    low: Array | None
    high: Array | None
    target: tuple[float, float] | None
    levels: tuple[Levels | None, ...] = ()
    missing: tuple[float | None, ...] = ()

    @property
    def words(self) -> dict[int, Levels]:
        """Place -> rule of the columns of words."""
        return {place: rule for place, rule in enumerate(self.levels) if rule is not None}

    def width(self, columns: int) -> int:
        """Return how many features so many raw columns become."""
        return columns + sum(len(rule.levels) - 1 for rule in self.words.values())

    @property
    def features(self) -> tuple[Array, Array] | None:
        """The intervals of the features, where they are mapped."""
        return None if self.low is None or self.high is None else (self.low, self.high)


# --- where to find it -------------------------------------------------------------------------------------------------


def example_of(where: str) -> str | None:
    """Return the name of the shipped table that ``example:NAME`` asks for; None for a path.

    Raises:
        SpecError: there is no such table.
    """
    if not where.startswith("example:"):
        return None
    name = where.removeprefix("example:")
    if name not in EXAMPLES:
        raise SpecError(
            f"there is no example data set {name!r}", "one of " + ", ".join(f"example:{n}" for n in EXAMPLES)
        )
    return name


def example_file(name: str, ending: str = ".csv") -> str:
    """Return the path of a file of a shipped table: ``.csv``, ``.ranges.csv`` or ``.txt`` (source and licence)."""
    from dpcalc import references

    return os.path.join(os.path.dirname(references.__file__), "data", name + ending)


def path_of(where: str) -> str:
    """Return the path of a file, or that of the shipped table that ``example:NAME`` asks for."""
    name = example_of(where)
    return where if name is None else example_file(name)


def read(
    path: str, *, target: str | None = None, labels: Labels | Classes = NUMBERS, ignore: Sequence[str] = (),
    words: Mapping[str, Levels] = {}, held: bool = False, progress: Progress | None = None,
) -> Table:  # fmt: skip
    """Return the table in a file.

    Args:
        path: .csv with a header; .npy, a matrix or named fields (memory-mapped); .npz with arrays X and y; .parquet.
        target: name of the target column, or its number from 1 on in a matrix; the last column by default.
        labels: what the target's cells mean.
        ignore: columns to leave out.
        words: name -> what the cells of a column of words mean: the places of its levels stand in the table.
        held: whether a large table, too, is held in memory.
        progress: called with (records read, in all), where a large table is copied from a file.

    Raises:
        SpecError: it cannot be read; the columns asked for are not there, or are of a type that holds no numbers;
            .parquet without pyarrow. What a record holds is no reason.
    """
    readers: dict[str, Callable[[IO[bytes], _Wanted], Table]] = {
        ".csv": _read_csv, ".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet,
    }  # fmt: skip
    reader = readers.get(ending(path))
    if reader is None:
        raise SpecError(f"{path}: unknown kind of data file", "use a name that ends in " + ", ".join(readers))
    with opened(path) as stream, unquoted(path):
        return reader(stream, _Wanted(path, target, labels, tuple(ignore), words, held, progress))


@contextlib.contextmanager
def unquoted(path: str) -> Iterator[None]:
    """Let no error say what stands in a file that a recipe names: whoever sees the error may not see the records."""
    try:
        yield
    except SpecError as error:
        if not isinstance(path, ProjectFile):
            raise
        message = error.discreet if isinstance(error, FileError) else f"{path} is not the table that the case describes"
        raise SpecError(
            message, "what is wrong is not shown, as it would quote the file: train on it at the prompt to see"
        ) from None


def of_arrays(
    features: Any, target: Any, *, labels: Labels | Classes = NUMBERS, words: Mapping[str, Levels] = {}
) -> Table:
    """Return the table of features, shape (n, d), and a target, shape (n,): a copy.

    Raises:
        SpecError: shapes are others.
    """
    x, y = as_array(features), as_array(target)
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise SpecError(f"features have shape {x.shape} and the target {y.shape}", "they must be (n, d) and (n,)")
    cells = _empty("the data", len(x), x.shape[1] + 1)
    for place in range(x.shape[1]):
        cells[:, place] = words.get(str(place + 1), NUMBERS).codes(x[:, place])
    cells[:, -1] = labels.codes(y)
    return Table(cells, (*(str(place) for place in range(1, x.shape[1] + 1)), "target"))


class _Wanted(NamedTuple):
    path: str
    target: str | None
    labels: Labels | Classes
    ignore: tuple[str, ...]
    words: Mapping[str, Levels]
    held: bool = False
    progress: Progress | None = None

    def cells(self, rows: int, columns: int) -> Array | Spool:
        """Return where a table is written, from its first row to its last: memory, or for a large one a file.

        Raises:
            SpecError: there are no records, or too many cells.
        """
        _check_size(self.path, rows, columns)
        return (
            np.empty((rows, columns)) if self.holds(rows, columns) else Spool(self.path, rows, columns, self.progress)
        )

    def holds(self, rows: int, columns: int) -> bool:
        """Return whether a table of this shape is held in memory."""
        return self.held or rows * columns <= limits.HELD_CELLS

    def rules(self, names: Sequence[str]) -> list[Labels | Classes | Levels]:
        """Return what the cells of the columns of these names mean, the target's last."""
        return [*(self.words.get(name, NUMBERS) for name in names[:-1]), self.labels]

    def order(self, names: Sequence[str]) -> list[int]:
        """Return the places of the columns to read, the target's last.

        Raises:
            SpecError: a name is not there or there twice, or no feature is left.
        """
        for name, count in Counter(names).most_common(1):
            if count > 1:
                raise SpecError(f"{self.path}: column {name!r} is there twice", "rename one of the two")
        places = {name: place for place, name in enumerate(names)}
        last = self._place(self.target, places) if self.target is not None else len(names) - 1
        ignored = {self._place(name, places) for name in self.ignore}
        if last in ignored:
            raise SpecError(f"{self.path}: the target {names[last]!r} is to be ignored", "leave one of the two out")
        kept = [place for place in range(len(names)) if place != last and place not in ignored]
        if not kept:
            raise SpecError(f"{self.path} has no column beside the target", "a model needs a feature")
        return [*kept, last]

    def _place(self, name: str, places: Mapping[str, int]) -> int:
        if name in places:
            return places[name]
        import difflib

        names = [known[:60] for known in itertools.islice(places, _NAMES)]
        near = difflib.get_close_matches(name[:60], names, n=1)
        shown = ", ".join(map(repr, names[:8])) + (", ..." if len(places) > 8 else "")
        raise SpecError(
            f"{self.path} has no column {name[:60]!r}", f"did you mean {near[0]!r}?" if near else f"it has {shown}"
        )


def _blocks(rows: int, columns: int, cells: int = _BLOCK) -> Iterator[slice]:
    step = max(1, cells // max(1, columns))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))


def _check_size(path: str, rows: int, columns: int) -> None:
    if not rows:
        raise SpecError(f"{path} has no records", "add some")
    if rows * columns > limits.TABLE_CELLS:
        raise SpecError(
            f"{path} has {rows} rows of {columns} columns; at most {limits.TABLE_CELLS} cells are read", "use fewer"
        )


def _empty(path: str, rows: int, columns: int) -> Array:
    _check_size(path, rows, columns)
    return np.empty((rows, columns))


def _table(cells: Array | Spool, names: Sequence[str]) -> Table:
    return Table(Stored(cells.finished(), len(names)) if isinstance(cells, Spool) else cells, tuple(names))


# --- CSV --------------------------------------------------------------------------------------------------------------


def _read_csv(stream: IO[bytes], wanted: _Wanted) -> Table:
    path = wanted.path
    names = read_csv_header(path, stream)
    order = wanted.order(names)
    start = stream.tell()
    count = count_lines(stream)
    if not count:
        raise SpecError(f"{path} has a header but no records", "add some")
    cells = wanted.cells(count, len(order))
    stream.seek(start)
    words = {place: wanted.words[names[place]] for place in order[:-1] if names[place] in wanted.words}
    reader, lines = Lines(len(names), order, wanted.labels, words), record_lines(stream, len(names))
    for rows in _blocks(count, len(names), _BLOCK // 8):  # texts take more room
        block = list(islice(lines, rows.stop - rows.start))
        if len(block) < rows.stop - rows.start:
            raise SpecError(f"{path} changed while it was read", "try again")
        cells[rows] = reader.rows(block)
    return _table(cells, [names[place] for place in order])


# --- numpy and Parquet ------------------------------------------------------------------------------------------------


def _read_npy(stream: IO[bytes], wanted: _Wanted) -> Table:
    path = wanted.path
    with _damaged(path):
        header = read_header(stream, os.fstat(stream.fileno()).st_size)
        stream.seek(0)
    names, order, coded = _of_header(header, wanted)
    kept = [names[place] for place in order]
    _check_size(path, header.shape[0], len(order))
    if not wanted.holds(header.shape[0], len(order)):
        if header.by_columns:
            raise SpecError(f"{path} is stored by columns, and too large to be held", "save numpy.ascontiguousarray(X)")
        stored = Stored(RowFile(path, stream, header), len(order), coded)
        stored.rows(slice(0, 1))  # the types of its columns are refused at once
        return Table(stored, tuple(kept))
    with _damaged(path):
        array = map_array(stream)
    cells, room = np.empty((len(array), len(order))), Room()
    for rows in _blocks(len(array), len(names)):
        cells[rows] = coded(array[rows], room)
        cells[rows][np.isinf(cells[rows])] = np.nan
    return Table(cells, tuple(kept))


def _of_header(header: Header, wanted: _Wanted) -> tuple[Sequence[str], list[int], Coded]:
    """Return the names of an array's columns, the places of those to read, and what makes cells of some of its rows.

    An infinite cell may stay what it is.
    """
    path, shape, fields = wanted.path, header.shape, header.dtype.names
    if fields is None and len(shape) != 2:
        raise SpecError(f"{path} has shape {shape}", "it must be a matrix: one row per record")
    names = _numbered(path, shape) if fields is None else fields
    order = wanted.order(names)
    if fields is None:
        _numeric(path, header.dtype)
    elif len(shape) != 1:
        raise SpecError(f"{path} has shape {shape}", "named fields must be one-dimensional: one row per record")
    kept = [names[place] for place in order]
    rules = wanted.rules(kept)
    whole = order == list(range(len(names)))
    plain = whole and header.dtype == np.float64 and all(rule is NUMBERS for rule in rules)

    def of_matrix(rows: NDArray[Any], room: Room) -> Array:
        if plain and not isinstance(rows, np.memmap):
            return rows
        cells = room.of("cells", (len(rows), len(order)), np.dtype(np.float64))
        with np.errstate(all="ignore"):
            np.copyto(cells, rows if whole else rows[:, order], casting="unsafe")
        return _coded(cells, rules)

    def of_fields(rows: NDArray[Any], room: Room) -> Array:
        columns = (_column(path, rows[name], name, rule) for name, rule in zip(kept, rules, strict=True))
        return np.column_stack(list(columns))

    return names, order, of_matrix if fields is None else of_fields


def _coded(cells: Array, rules: Sequence[Labels | Classes | Levels]) -> Array:
    """Return numbers as read, those that stand for words or labels replaced by what they mean."""
    for place, rule in enumerate(rules):
        if rule is not NUMBERS:
            cells[:, place] = rule.codes(cells[:, place])
    return cells


def _numbered(path: str, shape: tuple[int, ...]) -> list[str]:
    """Return the names of columns that have none: their numbers."""
    if not shape[0]:
        raise Place(path).error("no records", "add some")
    if shape[1] > limits.TABLE_COLUMNS:
        raise Place(path).error(f"{shape[1]} columns; at most {limits.TABLE_COLUMNS} are read", "use fewer")
    return [str(place) for place in range(1, shape[1] + 1)]


def _read_npz(stream: IO[bytes], wanted: _Wanted) -> Table:
    """Return features X, shape (n, d), and target y, shape (n,); X is read in blocks."""
    path = wanted.path
    if wanted.target is not None:
        raise SpecError(f"{path}: an .npz file has its target in y", "leave out --target")
    with _damaged(path):
        archive = open_archive(path, stream)
    with archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        _check_members(path, members)
        with _damaged(path):
            target, features = archive.open(members["y"]), archive.open(members["X"])
        with target, features:
            return _of_parts(features, members["X"].file_size, target, members["y"].file_size, wanted)


def _check_members(path: str, members: Mapping[str, zipfile.ZipInfo]) -> None:
    if set(members) != {"X", "y"}:
        raise SpecError(
            f"{path} holds {', '.join(sorted(members)[:8]) or 'nothing'}",
            "save it with numpy.savez(file, X=features, y=target)",
        )
    for info in members.values():
        if info.file_size > max(limits.UNPACKED_BYTES, limits.UNPACKED_RATIO * info.compress_size):
            raise Place(path).error(f"it would unpack to {info.file_size} bytes", "save it with numpy.savez")


def _of_parts(features: IO[bytes], room: int, target: IO[bytes], target_room: int, wanted: _Wanted) -> Table:
    path = wanted.path
    with _damaged(path):
        of_target = read_header(target, target_room)
    with _damaged(path):
        shape, by_columns, dtype, _ = read_header(features, room)
    if len(shape) != 2 or of_target.shape != shape[:1]:
        raise SpecError(f"{path}: X has shape {shape} and y {of_target.shape}", "they must be (n, d) and (n,)")
    _numeric(path, dtype)
    if by_columns:
        raise SpecError(f"{path}: X is stored by columns", "save numpy.ascontiguousarray(X)")
    names = [*_numbered(path, shape), "y"]
    order = wanted.order(names)
    kept = [names[place] for place in order]
    *rules, labels = wanted.rules(kept)
    cells = wanted.cells(shape[0], len(order))
    for rows in _blocks(*shape, _BLOCK // 4):
        count = rows.stop - rows.start
        block = _values(path, features, dtype, count * shape[1]).reshape(count, shape[1])
        chosen = _coded(numbers(block if len(order) == len(names) else block[:, order[:-1]]), rules)
        of_rows = _column(path, _values(path, target, of_target.dtype, count), "y", labels)
        cells[rows] = np.column_stack([chosen, of_rows])
    return _table(cells, kept)


def _values(path: str, stream: IO[bytes], dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Return the next values of a member of an archive."""
    with _damaged(path):
        raw = stream.read(count * dtype.itemsize)
    if len(raw) != count * dtype.itemsize:
        raise SpecError(f"{path} ends early", "save it again")
    return np.frombuffer(raw, dtype)


def _read_parquet(stream: IO[bytes], wanted: _Wanted) -> Table:
    path = wanted.path
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise SpecError("Parquet files need pyarrow", "pip install pyarrow") from None
    with _damaged(path):
        file = parquet.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)  # else a whole row group is held
    names = list(file.schema_arrow.names)
    order = wanted.order(names)
    count, first, chosen = int(file.metadata.num_rows), 0, [names[place] for place in order]
    cells, rules = wanted.cells(count, len(order)), wanted.rules(chosen)
    for batch in _batches(path, file, chosen):
        if first + len(batch) > count:
            raise Place(path).error("more records than the file says", "save it again")
        block = np.empty((len(batch), len(chosen)))
        for place, (name, rule) in enumerate(zip(chosen, rules, strict=True)):
            column = batch.column(batch.schema.names.index(name))
            # By the type in the schema: nulls, too, would change that of the values.
            if pyarrow.types.is_primitive(column.type) and not pyarrow.types.is_temporal(column.type):
                column = column.cast(pyarrow.float64(), safe=False)
            block[:, place] = _column(path, column.to_numpy(False), name, rule)
        cells[first : first + len(batch)] = block
        first += len(batch)
    if first < count:
        raise Place(path).error("fewer records than the file says", "save it again")
    return _table(cells, chosen)


def _batches(path: str, file: Any, columns: list[str]) -> Iterator[Any]:
    """Yield the records of a Parquet file, some at a time."""
    batches = file.iter_batches(columns=columns, batch_size=max(1, _BLOCK // len(columns)))
    while True:
        with _damaged(path):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _column(path: str, values: NDArray[Any], name: str, labels: Labels | Classes | Levels) -> Array:
    """Return a column as numbers.

    Raises:
        SpecError: it is of a type that holds none, and no target with a named label.
    """
    kinds = "fiubUSO" if labels.takes_words else "fiub"
    if values.ndim != 1 or values.dtype.kind not in kinds:
        raise SpecError(
            f"{path}: column {name!r} holds {_KINDS.get(values.dtype.kind, 'no numbers')}",
            f"declare its levels in --ranges, or --ignore {name}; for a target of words, say which are its --labels",
        )
    return labels.codes(values)


_KINDS = {"U": "texts", "S": "texts", "O": "texts", "c": "complex numbers", "M": "dates", "m": "durations"}
"""Types in words: that of texts in full would tell how long the longest is."""


def _numeric(path: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "fiub":
        raise SpecError(f"{path} holds {_KINDS.get(dtype.kind, 'no numbers')}", "save real numbers")


def _damaged(path: str) -> contextlib.AbstractContextManager[None]:
    """Refuse a file on which a library's reader fails."""
    kind = os.path.splitext(path)[1]
    return damaged_as(SpecError(f"{path} is not a readable {kind} file of plain numbers", "save it again"))


# --- bounds -----------------------------------------------------------------------------------------------------------


def read_ranges(path: str, table: Table) -> Ranges:
    """Return the map in a CSV file with the header ``column,low,high`` and a row for every feature.

    A row for the target is optional.

    Raises:
        SpecError: it cannot be read, a feature is missing, or a name is unknown.
    """
    with opened(path) as stream, unquoted(path):
        return _ranges(path, stream, table)


def _ranges(path: str, stream: IO[bytes], table: Table) -> Ranges:
    lines = read_rows(stream, limits.RANGES_BYTES)
    if lines is None:
        raise SpecError(f"cannot read {path}", "give a CSV file with the columns column,low,high")
    if not lines or [name.strip() for name in lines[0]] != ["column", "low", "high"]:
        raise SpecError(f"{path}:1: the header must be column,low,high", "and then a line for every feature")
    ranges: dict[str, tuple[float, float]] = {}
    names = set(table.names)
    for number, cells in enumerate(lines[1:], start=2):
        if not cells:
            continue
        if len(cells) != 3 or cells[0] not in names or cells[0] in ranges:
            raise SpecError(f"{path}:{number}: {','.join(cells)[:60]!r}", "each line: a column of the data, low, high")
        low, high = parse_number(cells[1].strip()), parse_number(cells[2].strip())
        if not is_interval(low, high):
            message, hint = why_not(low, high)
            raise SpecError(f"{path}:{number}: {message}", hint)
        ranges[cells[0]] = (low, high)
    missing = [name for name in table.names[:-1] if name not in ranges]
    if missing:
        raise SpecError(f"{path} has no range for {missing[0]!r}", "give a line for every feature")
    pairs = np.array([ranges[name] for name in table.names[:-1]])
    return Ranges(pairs[:, 0].copy(), pairs[:, 1].copy(), ranges.get(table.names[-1]))


def prepared(
    table: Table,
    *,
    feature_bound: float,
    label_bound: float | None,
    signed: bool,
    ranges: Ranges | None = None,
    intercept: bool = False,
    share: float | None = None,
    norm: int = 2,
    uncentred: bool = False,
) -> Prepared:
    """Return the records within their bounds; the table's array is overwritten.

    1. With ranges, every number is mapped affinely, and the target too if it has a range; a column of words becomes a
       column for each of its levels (see `encode`).
    2. What is no finite number is 0 (so that a mapped value is the middle of its range), unless the ranges say what
       stands for it.
    3. Rows longer than B are shortened to it: x min(1, B/|x|). With an intercept, a constant column of b B is appended,
       and rows are shortened to sqrt(1 - b^2) B (in the 1-norm, (1 - b) B), so that whole rows are within B.
    4. Labels of a classification are +1 where the target is above 0, else -1; others are cut to
       [-label_bound, label_bound].

    Args:
        table: as read.
        feature_bound: B > 0.
        label_bound: Y >= 0, or None for no cut.
        signed: whether labels are to be +1 and -1.
        ranges: the affine map.
        intercept: whether to append the constant column.
        share: b, 0 < b < 1; by default as much as the features may have: see `intercept_of`.
        norm: 1 or 2, of rows.
        uncentred: whether rows are shortened to B although a constant column follows: they are centred later.

    Raises:
        SpecError: rows or labels of such a size cannot be computed with in double precision.
    """
    rule = bounds_of(
        table, feature_bound=feature_bound, label_bound=label_bound, signed=signed, ranges=ranges, intercept=intercept,
        share=share, norm=norm, uncentred=uncentred,
    )  # fmt: skip
    cells = table.cells
    if isinstance(cells, Stored):
        raise ValueError("the records are not in memory")
    n, kept = len(cells), rule.columns
    # Rows are written over those before them, but for levels, which take more room.
    flat = (cells if kept <= cells.shape[1] else _empty("the table with its levels", n, kept)).reshape(-1)
    labels, counts = np.empty(n), NO_COUNTS
    for rows in _blocks(n, rule.width, _BLOCK // 4):  # which takes some copies
        x, labels[rows], found = rule.kept(cells[rows])
        flat[rows.start * kept : rows.stop * kept] = x.reshape(-1)
        counts = added(counts, found)
    return Prepared(flat[: n * kept].reshape(n, kept), labels, counts)


NO_COUNTS: Mapping[str, int] = {"rows_clipped": 0, "labels_clipped": 0, "unreadable": 0}


def added(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of counts of the same names."""
    return {name: count + more[name] for name, count in counts.items()}


class Bounds(NamedTuple):
    """How a raw record is brought within its bounds: see `prepared`. What becomes of it depends on it alone.

    Attributes:
        width: of a row with its levels and the target.
        rest: the length to which rows are shortened, the constant column apart.
        constant: what that holds; 0 where there is none.
        label_bound, signed, ranges, norm: as there.
        affine: what rows of features are mapped by, the constant column with them; None where they are not mapped, or
            by numbers of an unusual size.
    """

    width: int
    rest: float
    constant: float
    label_bound: float | None
    signed: bool
    ranges: Ranges | None
    norm: int
    affine: _Affine | None = None

    @property
    def columns(self) -> int:
        """How many features there are, the constant one included."""
        return self.width - (not self.constant)

    def within(self, bound: float, norm: int) -> bool:
        """Return whether all rows that are kept are within a bound in the 1- or 2-norm, up to rounding."""
        whole = self.rest + self.constant if self.norm == 1 else math.hypot(self.rest, self.constant)
        return self.norm <= norm and whole <= bound * (1.0 + _ROOM)

    def kept(self, cells: Array, room: Room | None = None, unit: float | None = None) -> Prepared:
        """Return some records within their bounds.

        Args:
            cells: shape (m, raw columns), as read; they may be overwritten.
            room: for the features; by default they have memory of their own.
            unit: where it is given, features are whole numbers of units: see `shorten`.
        """
        held = 1.0 - max(_ROOM, (self.width + 8) * 2.0**-52)
        labels = cells[:, -1].copy()
        within = self.columns == cells.shape[1] and cells.flags.c_contiguous and cells.flags.writeable
        x = cells if within else (room or Room()).of("features", (len(cells), self.columns), np.dtype(np.float64))
        with np.errstate(all="ignore"):  # of the square of what is not finite
            plain = self._is_plain(cells)
        unreadable = 0 if plain else self._encode(cells, x)
        if plain:
            self._encode_plain(cells, x)
        size = lengths(x, self.norm)
        clipped = int(np.count_nonzero(size > self.rest))
        shorten(x, size, self.rest * held, unit)
        if self.constant:
            x[:, -1] = in_units(self.constant * held, unit)
        if self.signed:
            positive = labels > 0.0
            if not plain:
                unreadable += len(labels) - int(np.count_nonzero(np.isfinite(labels)))
                positive &= labels < math.inf
            labels, cut = np.where(positive, 1.0, -1.0), 0
        else:
            interval = self.ranges.target if self.ranges else None
            unreadable += settle(labels, interval, self.label_bound or 1.0)
            most = math.inf if self.label_bound is None else self.label_bound
            cut = int(np.count_nonzero(np.abs(labels) > most))
            np.clip(labels, -most, most, out=labels)
        return Prepared(x, labels, {"rows_clipped": clipped, "labels_clipped": cut, "unreadable": unreadable})

    def _encode(self, cells: Array, out: Array) -> int:
        """Write what `encode` returns of the features, with a 0 in the place of the constant, and count as it does."""
        out[:, self.width - 1 :] = 0.0
        out[:, : self.width - 1], unreadable = encode(cells[:, :-1], self.ranges)
        return unreadable

    def _is_plain(self, cells: Array) -> bool:
        """Return whether all cells are numbers of a usual size, as are their features."""
        if self.ranges is not None and (self.ranges.words or (self.ranges.features is not None and not self.affine)):
            return False
        flat = cells.reshape(-1)
        return float(np.dot(flat, flat)) <= _USUAL[1]  # and no nan

    def _encode_plain(self, cells: Array, out: Array) -> None:
        """As `_encode` of what is plain, in fewer looks at it; ``out`` may be the memory of the cells."""
        if out is not cells:
            # Whole rows are next to each other: the target gives its place to the constant.
            np.copyto(out, cells if self.constant else cells[:, :-1])
        if self.affine is not None:
            self.affine.apply(out)
        elif self.constant:
            out[:, -1] = 0.0


class _Affine(NamedTuple):
    """What rows are mapped by: (x - middle)/half, in every bit.

    Attributes:
        middle: of several rows that are next to each other; None where all are 0.
        half: of as many; or their reciprocals where all are powers of two: those products are the quotients.
        operation: of the two.
    """

    middle: Array | None
    half: Array
    operation: np.ufunc

    @classmethod
    def of(cls, ranges: Ranges | None, constant: bool) -> _Affine | None:
        """Return the map of the features, and of a column that becomes 0; None for none, or of unusual numbers."""
        if ranges is None or ranges.features is None:
            return None
        middle, half = _affine(*ranges.features)
        if not (float(np.abs(middle).max()) <= _MIDDLE and float(half.min()) >= 1.0 / _MIDDLE):
            return None
        products = float(half.max()) <= _MIDDLE and bool((np.frexp(half)[0] == 0.5).all())
        if constant:
            middle, half = np.append(middle, 0.0), np.append(half, math.inf)
        shift = several(middle) if middle.any() else None
        return cls(shift, several(1.0 / half), np.multiply) if products else cls(shift, several(half), np.divide)

    def apply(self, rows: Array) -> None:
        """Map rows, shape (m, d), C-contiguous, in place."""
        if self.middle is not None:
            on_rows(np.subtract, rows, self.middle)
        on_rows(self.operation, rows, self.half)


def bounds_of(
    table: Table, *, feature_bound: float, label_bound: float | None, signed: bool, ranges: Ranges | None = None,
    intercept: bool = False, share: float | None = None, norm: int = 2, uncentred: bool = False,
) -> Bounds:  # fmt: skip
    """Return how the records of a table are brought within their bounds.

    Args:
        table, feature_bound, label_bound, signed, ranges, intercept, share, norm, uncentred: see `prepared`.

    Raises:
        SpecError: rows or labels of such a size cannot be computed with in double precision.
    """
    bounds = {"feature_bound": feature_bound, **({} if label_bound is None else {"label_bound": label_bound})}
    for name, most in bounds.items():
        if not most >= _TINY:
            raise SpecError(f"{name} is {most:g}: squares of less than {_TINY:g} lose their digits", "use other units")
        if most > _LARGE:
            raise SpecError(f"{name} is {most:g}: squares above {_LARGE:g} are no doubles", "use other units")
    constant = feature_bound * (share or intercept_of(1.0, norm)) if intercept else 0.0
    rest = feature_bound if uncentred else rest_of(feature_bound, constant, norm)
    affine = _Affine.of(ranges, bool(constant))
    return Bounds(width_of(table, ranges), rest, constant, label_bound, signed, ranges, norm, affine)


def width_of(table: Table, ranges: Ranges | None) -> int:
    """Return the length of a row with its levels and the target."""
    raw = table.cells.shape[1] - 1
    return 1 + (raw if ranges is None else ranges.width(raw))


def encode(rows: Array, ranges: Ranges | None) -> tuple[Array, int]:
    """Return the features of raw rows, and how many of their cells were no finite number or no level.

    The same for training and for prediction: what becomes of a row depends on it and on the ranges alone. Rows are not
    shortened here.

    Args:
        rows: shape (m, columns), nan for what cannot be read, places of levels for words; overwritten.
        ranges: the map; None for none.

    Returns:
        Shape (m, features): the same memory where no column has levels. The levels of a column are next to each other,
        in order, at its place.
    """
    if ranges is None:
        return rows, settle(rows, None, 1.0)
    words, unreadable = ranges.words, int(np.count_nonzero(~np.isfinite(rows)))
    codes = {place: rows[:, place].copy() for place in words}
    for place, value in enumerate(ranges.missing):
        if value is not None:
            rows[~np.isfinite(rows[:, place]), place] = value
    settle(rows, ranges.features, 1.0)
    if not words:
        return rows, unreadable
    parts = [
        (codes[place][:, np.newaxis] == np.arange(len(words[place].levels))).astype(np.float64)
        if place in words else rows[:, [place]]
        for place in range(rows.shape[1])
    ]  # fmt: skip
    return np.concatenate(parts, axis=1), unreadable


def settle(values: Array, interval: tuple[Any, Any] | None, bound: float) -> int:
    """Map an interval to [-bound, bound], and what is no finite number to 0, in place; return how many those were."""
    missing = ~np.isfinite(values)
    values[missing] = np.nan
    if interval is not None:
        middle, half = _affine(*interval)
        with np.errstate(over="ignore"):
            values -= middle
            values /= half
            values *= bound
    np.clip(values, -_HUGE, _HUGE, out=values)
    values[missing] = 0.0
    return int(np.count_nonzero(missing))


def _affine(low: Any, high: Any) -> tuple[Any, Any]:
    """Return the middles of intervals, and half their widths."""
    return 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low


def intercept_of(feature_bound: float, norm: int = 2) -> float:
    """Return the constant that an intercept's column holds."""
    return feature_bound / (2.0 if norm == 1 else 2.0**0.5)


def rest_of(feature_bound: float, constant: float, norm: int = 2) -> float:
    """Return the length that a row may have beside a constant column, so that the whole is within the bound."""
    b = constant / feature_bound
    return feature_bound * (1.0 - b if norm == 1 else math.sqrt((1.0 - b) * (1.0 + b)))


def lengths(x: Array, norm: int) -> Array:
    """Return the 1- or 2-norms of rows, also where squares would leave the range of a double."""
    if norm == 1:
        return np.asarray(np.abs(x).sum(axis=1))
    squares = row_squares(x)
    norms: Array = np.sqrt(squares)
    if not (squares.min(initial=1.0) >= _USUAL[0] and squares.max(initial=1.0) <= _USUAL[1]):  # or nan
        unusual = ~((squares >= _USUAL[0]) & (squares <= _USUAL[1]))
        some = x[unusual]
        largest = np.abs(some).max(axis=1)
        scale = np.where(largest > 0.0, largest, 1.0)
        scaled = some / scale[:, np.newaxis]
        norms[unusual] = scale * np.sqrt(row_squares(scaled))
    return norms


def row_squares(x: Array) -> Array:
    """Return the sums of squares of rows, shape (m,), each the same in every bit whatever other rows are there.

    numpy sums what is longer than its buffer in another order where there is one row. The blocks fit it.
    """
    if x.strides[1] != x.itemsize:
        x = np.ascontiguousarray(x)
    squares: Array = np.einsum("ij,ij->i", x[:, :_COLUMNS], x[:, :_COLUMNS])
    for first in range(_COLUMNS, x.shape[1], _COLUMNS):
        some = x[:, first : first + _COLUMNS]
        squares += np.einsum("ij,ij->i", some, some)
    return squares


def several(row: Array) -> Array:
    """Return so many copies of a row, end to end, as `on_rows` changes together."""
    return np.concatenate([row] * max(1, _ACROSS // len(row)))


def on_rows(operation: np.ufunc, x: Array, rows: Array) -> None:
    """Replace every row by ``operation(row of x, row)``, some rows at a time: numpy is slow where rows are short.

    Args:
        operation: of one number each.
        x: shape (m, d), C-contiguous; overwritten.
        rows: what `several` returns of the row.
    """
    columns = x.shape[1]
    many = len(rows) // columns
    whole = len(x) // many * many
    together = x[:whole].reshape(-1, len(rows))
    operation(together, rows, out=together)
    if whole < len(x):
        operation(x[whole:], rows[:columns], out=x[whole:])


def shorten(x: Array, size: Array, most: float, unit: float | None = None) -> None:
    """Shorten rows that are longer than ``most`` to that, in place.

    With a unit u, a power of two from 2^-100 to 2^100, rows become trunc(x/u): what is shortened, cut towards 0 to
    multiples of u, and divided by u. The factors of rows are divided by u, which changes no digit of a product.

    Args:
        x: shape (m, d).
        size: their lengths, shape (m,).
        most: > 0.
        unit: u; None for rows that are not cut.
    """
    outside = size > most
    far = outside & ~((size <= _LARGE) & (most >= 1.0 / _LARGE))
    if far.any():  # first to norm 1: the ratio of the two may be no normal double, and then far off
        x[far] = x[far] / size[far, np.newaxis] * most
        size = np.where(far, most, size)
        outside &= ~far
    if outside.any():
        factors = most / np.maximum(size, most)
        x *= (factors if unit is None else factors / unit)[:, np.newaxis]
    elif unit is not None:
        x *= 1.0 / unit
    if unit is not None:
        np.trunc(x, out=x)


def in_units(value: float, unit: float | None) -> float:
    """Return what becomes of a number as `shorten` makes of those in rows."""
    return value if unit is None else float(math.trunc(value / unit))


def aside_count(n: int, fraction: float) -> int:
    """Return how many of n records are set aside."""
    return 0 if fraction == 0.0 else max(1, round(fraction * n))


def aside_of(n: int, fraction: float, generator: np.random.Generator) -> NDArray[np.int64] | None:
    """Return the rising numbers of a uniformly random set of ``fraction`` of n records; None where it is empty.

    Raises:
        SpecError: fewer than 2 records are left for training.
    """
    aside = aside_count(n, fraction)
    if n - aside < 2:
        raise SpecError(f"{n} records, {aside} of them for testing, are too few", "at least 2 are needed for training")
    return np.sort(generator.choice(n, aside, replace=False, shuffle=False)) if aside else None


def split(data: Prepared, fraction: float, generator: np.random.Generator) -> tuple[Prepared, Prepared | None]:
    """Return training and test records: a uniformly random set of ``fraction`` of them is set aside.

    The training records keep their order, and the memory of ``data``.

    Raises:
        SpecError: fewer than 2 records are left for training.
    """
    n = len(data.labels)
    aside = aside_of(n, fraction, generator)
    if aside is None:
        return data, None
    chosen = np.zeros(n, dtype=bool)
    chosen[aside] = True
    test = data._replace(features=data.features[chosen], labels=data.labels[chosen])
    kept = 0
    for rows in _blocks(n, data.features.shape[1]):
        block = data.features[rows][~chosen[rows]]
        data.features[kept : kept + len(block)] = block
        kept += len(block)
    return data._replace(features=data.features[:kept], labels=data.labels[~chosen]), test
