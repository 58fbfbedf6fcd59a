"""Tables of records: read from files, and bounded by rules that do not depend on the records.

A table is one float64 array of shape (n, d + 1) whose last column is the target; it is read into place and changed in
place, some rows at a time, so that the data is in memory about once. Files are untrusted: nothing is evaluated,
unpickled or fetched. What stands in an error message comes from the records: it is for whoever holds them.
"""

from __future__ import annotations

import csv
import math
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import DpcalcError, SpecError
from dpcalc.spec.numbers import parse_number

Array = NDArray[np.float64]

MAX_CELLS = 1 << 33
MAX_LINE = 1 << 20
MAX_RANGES = 1 << 22
_BLOCK = 1 << 18  # cells looked at together
_HUGE = 1e300  # stands for what the map takes beyond the range of a double
_TINY = 1e-290
_ROOM = 1e-12  # by which clipped rows stay below their bound: more than rounding adds

EXAMPLES = {"breast-cancer": ("diagnosis", "malignant", "logistic")}
"""The shipped tables: target, the label that counts as +1, and the loss that suits."""


class Table(NamedTuple):
    """Records as read.

    Attributes:
        cells: shape (n, d + 1), float64, C-contiguous, finite; the target is last.
        names: of the d + 1 columns.
    """

    cells: Array
    names: tuple[str, ...]


class Prepared(NamedTuple):
    """Records within their bounds, ready for training.

    Attributes:
        features: shape (n, d), C-contiguous; |x| <= feature_bound in every row.
        labels: shape (n,).
        clipped: how many rows were shortened: known from the records, and covered by no guarantee.
        labels_clipped: how many labels were.
    """

    features: Array
    labels: Array
    clipped: int
    labels_clipped: int


class Ranges(NamedTuple):
    """An affine map given by the user: column j's interval [low_j, high_j] goes to [-1, 1]; arrays of shape (d,).

    ``target`` is the interval of the target that goes to [-Y, Y], if it is mapped.
    """

    low: Array
    high: Array
    target: tuple[float, float] | None


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


def read(path: str, *, target: str | None = None, positive: str | None = None, ignore: Sequence[str] = ()) -> Table:
    """Return the table in a file.

    Args:
        path: .csv with a header; .npy, a matrix or named fields (memory-mapped); .npz with arrays X and y; .parquet.
        target: name of the target column, or its number from 1 on in a matrix; the last column by default.
        positive: the label that becomes +1 (the one other label becomes -1); None where labels are numbers.
        ignore: columns to leave out.

    Raises:
        SpecError: it cannot be read; a cell is missing, no number or not finite (with its row and column); the columns
            asked for are not there; .parquet without pyarrow.
    """
    readers: dict[str, Callable[[str, _Wanted], Table]] = {
        ".csv": _read_csv, ".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet,
    }  # fmt: skip
    reader = readers.get(os.path.splitext(path)[1].lower())
    if reader is None:
        raise SpecError(f"{path}: unknown kind of data file", "use a name that ends in " + ", ".join(readers))
    try:
        if not _is_regular(path):
            raise SpecError(f"{path} is not a regular file", "give the path of a file")
        table = reader(path, _Wanted(path, target, positive, tuple(ignore)))
    except OSError as error:
        raise SpecError(
            f"cannot read {path}: {error.strerror or error}", "check the path and its permissions"
        ) from None
    _refuse_not_finite(path, table)
    return table


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except ValueError:  # a NUL, or what no file system encodes
        raise SpecError(f"{path!r} is not a path", "give the path of a file") from None


def of_arrays(features: Any, target: Any, *, positive: str | None = None) -> Table:
    """Return the table of features, shape (n, d), and a target, shape (n,): a copy.

    Raises:
        SpecError: shapes or types are others, or a value is not finite.
    """
    x, y = np.asarray(features), np.asarray(target)
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise SpecError(f"features have shape {x.shape} and the target {y.shape}", "they must be (n, d) and (n,)")
    _numeric("features", x.dtype)
    y = _texts("the data", y)
    cells = _empty("the data", len(x), x.shape[1] + 1)
    cells[:, :-1] = x
    cells[:, -1] = _column("the data", y, "target", positive)
    _one_negative("the data", y, positive)
    table = Table(cells, (*(str(place) for place in range(1, x.shape[1] + 1)), "target"))
    _refuse_not_finite("the data", table)
    return table


class _Wanted(NamedTuple):
    path: str
    target: str | None
    positive: str | None
    ignore: tuple[str, ...]

    def order(self, names: Sequence[str]) -> list[int]:
        """Return the places of the columns to read, the target's last.

        Raises:
            SpecError: a name is not there or there twice, or no feature is left.
        """
        for name, count in Counter(names).most_common(1):
            if count > 1:
                raise SpecError(f"{self.path}: column {name!r} is there twice", "rename one of the two")
        last = self._place(self.target, names) if self.target is not None else len(names) - 1
        ignored = {self._place(name, names) for name in self.ignore}
        if last in ignored:
            raise SpecError(f"{self.path}: the target {names[last]!r} is to be ignored", "leave one of the two out")
        kept = [place for place in range(len(names)) if place != last and place not in ignored]
        if not kept:
            raise SpecError(f"{self.path} has no column beside the target", "a model needs a feature")
        return [*kept, last]

    def _place(self, name: str, names: Sequence[str]) -> int:
        if name in names:
            return list(names).index(name)
        import difflib

        near = difflib.get_close_matches(name, names, n=1)
        shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise SpecError(
            f"{self.path} has no column {name!r}", f"did you mean {near[0]!r}?" if near else f"it has {shown}"
        )


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, columns))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))


def _empty(path: str, rows: int, columns: int) -> Array:
    if not rows:
        raise SpecError(f"{path} has no records", "add some")
    if rows * columns > MAX_CELLS:
        raise SpecError(f"{path} has {rows} rows of {columns} columns; at most {MAX_CELLS} cells are read", "use fewer")
    return np.empty((rows, columns))


def _refuse_not_finite(path: str, table: Table) -> None:
    for rows in _blocks(*table.cells.shape):
        finite = np.isfinite(table.cells[rows])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise SpecError(
                f"{path}: record {rows.start + row + 1}, column {table.names[column]!r} is "
                f"{table.cells[rows.start + row, column]}",
                "every value must be finite: fill missing values in by a rule, or leave the record out",
            )


# --- CSV --------------------------------------------------------------------------------------------------------------


class _Labels:
    """The labels of a text column as numbers: +1, -1, and nan for a third."""

    def __init__(self, positive: str) -> None:
        self.positive, self.number = positive, _number(positive)
        self.codes: dict[str, float] = {}

    def __call__(self, cell: str) -> float:
        text = cell.strip().strip('"')
        if text not in self.codes and len(self.codes) < 16:
            same = text == self.positive or (self.number is not None and _number(text) == self.number)
            taken = sum(code == -1.0 for code in self.codes.values())
            self.codes[text] = 1.0 if same else (float("nan") if taken or not text else -1.0)
        return self.codes.get(text, float("nan"))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _read_csv(path: str, wanted: _Wanted) -> Table:
    with open(path, encoding="utf-8-sig", newline="") as stream:
        names = _header(path, stream)
    order = wanted.order(names)
    import warnings

    ignored = sorted(set(range(len(names))) - set(order))
    converters: dict[int | str, Callable[[str], Any]] = dict.fromkeys(ignored, _nothing)
    if wanted.positive is not None:
        converters[order[-1]] = _Labels(wanted.positive)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a file without rows
            cells = np.loadtxt(
                os.path.abspath(path), delimiter=",", skiprows=1, ndmin=2, comments=None, quotechar='"',
                encoding="utf-8", converters=converters or None,
            )  # fmt: skip
    except (ValueError, UnicodeDecodeError):
        raise _first_wrong(path, names, order, wanted.positive) from None
    if not len(cells):
        raise SpecError(f"{path} has a header but no records", "add some")
    if cells.shape[1] != len(names) or not np.isfinite(cells).all():
        raise _first_wrong(path, names, order, wanted.positive)
    return Table(_chosen(cells, order), tuple(names[place] for place in order))


def _nothing(cell: str) -> float:
    """Return 0 for a cell of a column that is ignored."""
    return 0.0


def _header(path: str, stream: IO[str]) -> list[str]:
    try:
        line = stream.readline(MAX_LINE)
    except UnicodeDecodeError:
        raise SpecError(f"{path}:1: not UTF-8", "save the file as UTF-8") from None
    if len(line) >= MAX_LINE:
        raise SpecError(f"{path}:1: the line is longer than {MAX_LINE} characters", "write one record per line")
    names = [name.strip() for name in next(csv.reader([line]), [])]
    if not any(names):
        raise SpecError(f"{path}: the first line is empty", "it must name the columns")
    if all(_number(name) is not None for name in names):
        raise SpecError(f"{path}: the first line holds numbers", "it must name the columns: add a header")
    return names


def _first_wrong(path: str, names: list[str], order: list[int], positive: str | None) -> SpecError:
    """Return the error for the first cell that is not what it must be, found by reading again with care."""
    labels = _Labels(positive) if positive is not None else None
    csv.field_size_limit(MAX_LINE)
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream)
            next(reader)
            for cells in reader:
                wrong = _wrong(cells, names, order, labels) if cells else None
                if wrong:
                    return SpecError(f"{path}:{reader.line_num}: {wrong[0]}", wrong[1])
    except UnicodeDecodeError:
        return SpecError(f"{path} is not UTF-8", "save the file as UTF-8")
    except csv.Error as error:
        return SpecError(f"{path}:{reader.line_num}: {error}", "write one record per line, cells separated by commas")
    return SpecError(f"{path} is not a table of numbers", "write one record per line, cells separated by commas")


def _wrong(  # noqa: PLR0911 (one return a kind of mistake)
    cells: list[str], names: list[str], order: list[int], labels: _Labels | None
) -> tuple[str, str] | None:
    if len(cells) != len(names):
        return f"{len(cells)} values for {len(names)} columns", "every record needs one value per column"
    for place in order:
        name, cell = names[place], cells[place].strip()
        if not cell:
            hint = "fill missing values in by a rule, or leave the record out"
            return f"column {name!r}: the value is missing", hint
        if labels is not None and place == order[-1]:
            if np.isnan(labels(cell)):
                known = ", ".join(repr(label) for label in list(labels.codes)[:-1])
                if 1.0 not in labels.codes.values():
                    return f"column {name!r}: {cell[:40]!r} beside {known}, not {labels.positive!r}", "see --positive"
                return f"column {name!r}: a third label {cell[:40]!r} beside {known}", "there must be two labels"
            continue
        value = _number(cell)
        if value is None or "_" in cell:
            hint = f"encode it as a number, or --ignore {name}"
            if place == order[-1]:
                hint = f"say which label counts as +1, for example --positive {cell[:40]}"
            return f"column {name!r}: {cell[:40]!r} is not a number", hint
        if not np.isfinite(value):
            return f"column {name!r} is {cell}", "every value must be finite"
    return None


# --- numpy and Parquet ------------------------------------------------------------------------------------------------


def _read_npy(path: str, wanted: _Wanted) -> Table:
    found = _loaded(path, lambda: np.lib.format.open_memmap(path, mode="r"))
    if found.dtype.names is None:
        if found.ndim != 2:
            raise SpecError(f"{path} has shape {found.shape}", "it must be a matrix: one row per record")
        names = [str(place) for place in range(1, found.shape[1] + 1)]
        order = wanted.order(names)
        _numeric(path, found.dtype)
        cells = _empty(path, len(found), len(order))
        for rows in _blocks(*found.shape):
            cells[rows] = found[rows][:, order]
        _signed(path, cells[:, -1], wanted.positive)
        return Table(cells, tuple(names[place] for place in order))
    names = list(found.dtype.names)
    order = wanted.order(names)
    if found.ndim != 1:
        raise SpecError(f"{path} has shape {found.shape}", "named fields must be one-dimensional: one row per record")
    cells = _empty(path, len(found), len(order))
    for place, column in enumerate(order[:-1]):
        for rows in _blocks(len(found), 1):
            cells[rows, place] = _column(path, found[names[column]][rows], names[column], None)
    target = _texts(path, found[names[order[-1]]])
    cells[:, -1] = _column(path, target, names[order[-1]], wanted.positive)
    _one_negative(path, target, wanted.positive)
    return Table(cells, tuple(names[place] for place in order))


def _read_npz(path: str, wanted: _Wanted) -> Table:
    """Return features X, shape (n, d), and target y, shape (n,); X is read in blocks."""
    import zipfile
    from functools import partial

    if wanted.target is not None:
        raise SpecError(f"{path}: an .npz file has its target in y", "leave out --target")
    archive = _loaded(path, lambda: zipfile.ZipFile(path))
    with archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if set(members) != {"X", "y"}:
            raise SpecError(
                f"{path} holds {', '.join(sorted(members)[:8]) or 'nothing'}",
                "save it with numpy.savez(file, X=features, y=target)",
            )
        with _loaded(path, lambda: archive.open(members["y"])) as stream:
            shape, _, dtype = _loaded(path, lambda: _array_header(stream, members["y"].file_size))
            if math.prod(shape) > MAX_CELLS:
                raise SpecError(f"{path}: y has shape {shape}", "use fewer records")
            y = _texts(
                path,
                _loaded(
                    path, lambda: np.frombuffer(stream.read(math.prod(shape) * dtype.itemsize), dtype).reshape(shape)
                ),
            )
        with _loaded(path, lambda: archive.open(members["X"])) as stream:
            shape, fortran, dtype = _loaded(path, lambda: _array_header(stream, members["X"].file_size))
            if len(shape) != 2 or y.shape != shape[:1]:
                raise SpecError(f"{path}: X has shape {shape} and y {y.shape}", "they must be (n, d) and (n,)")
            _numeric(path, dtype)
            if fortran:
                raise SpecError(f"{path}: X is stored by columns", "save numpy.ascontiguousarray(X)")
            names = [str(place) for place in range(1, shape[1] + 1)]
            order = wanted.order([*names, "y"])
            cells = _empty(path, shape[0], len(order))
            for rows in _blocks(*shape):
                size = (rows.stop - rows.start) * shape[1] * dtype.itemsize
                raw = _loaded(path, partial(stream.read, size))
                if len(raw) != size:
                    raise SpecError(f"{path} ends early", "save it again")
                block = np.frombuffer(raw, dtype).reshape(-1, shape[1])
                cells[rows, :-1] = block if len(order) == shape[1] + 1 else block[:, order[:-1]]
    cells[:, -1] = _column(path, y, "y", wanted.positive)
    _one_negative(path, y, wanted.positive)
    return Table(cells, tuple([*names, "y"][place] for place in order))


def _array_header(stream: Any, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether by columns, and type of an array in a member of ``size`` bytes.

    Raises:
        ValueError: so many bytes cannot hold it, or it is no array.
    """
    version = np.lib.format.read_magic(stream)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = reader(stream)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(shape)
    return shape, fortran, dtype


def _read_parquet(path: str, wanted: _Wanted) -> Table:
    try:
        from pyarrow import parquet
    except ImportError:
        raise SpecError("Parquet files need pyarrow", "pip install 'dpcalc[parquet]'") from None
    file = _loaded(path, lambda: parquet.ParquetFile(path))
    names = list(file.schema_arrow.names)
    order = wanted.order(names)
    cells = _empty(path, file.metadata.num_rows, len(order))
    first, labels = 0, set()
    chosen = [names[place] for place in order]
    for batch in file.iter_batches(columns=chosen, batch_size=max(1, _BLOCK // len(order))):
        for place, name in enumerate(chosen):
            column, last = batch.column(batch.schema.names.index(name)), place == len(order) - 1
            if column.null_count:
                row = first + column.is_null().to_pylist().index(True)
                raise SpecError(
                    f"{path}: record {row + 1}, column {name!r}: the value is missing",
                    "fill missing values in by a rule, or leave the record out",
                )
            values = column.to_numpy(zero_copy_only=False)
            values = values.astype(str) if values.dtype.kind == "O" else values
            cells[first : first + len(values), place] = _column(path, values, name, wanted.positive if last else None)
            if last and wanted.positive is not None:
                labels.update(np.unique(values)[:3].tolist())
        first += len(batch)
    _one_negative(path, np.array(sorted(labels)), wanted.positive)
    return Table(cells, tuple(chosen))


def _column(path: str, values: NDArray[Any], name: str, positive: str | None) -> Array:
    """Return a column as numbers; with ``positive``, +1 where it is that label and -1 elsewhere."""
    if positive is not None and values.dtype.kind == "U" and values.ndim == 1:
        return np.where(values == positive, 1.0, -1.0)
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise SpecError(
            f"{path}: column {name!r} is of type {values.dtype}",
            f"encode it as numbers, or --ignore {name}; for a target of two words, say which one is --positive",
        )
    found = values.astype(np.float64)
    _signed(path, found, positive)
    return found


def _texts(path: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return an array with bytes decoded to texts; others as they are."""
    if values.dtype.kind != "S":
        return values
    try:
        return np.char.decode(values, "utf-8")
    except UnicodeDecodeError:
        raise SpecError(f"{path}: a label is not UTF-8", "save the labels as texts") from None


def _signed(path: str, target: Array, positive: str | None) -> None:
    """Turn numbers into +1 where they are ``positive`` and -1 elsewhere, in place."""
    if positive is None:
        return
    number = _number(positive)
    if number is None:
        raise SpecError(f"{path}: no label is {positive!r}: they are numbers", "give one of the numbers as --positive")
    others = np.unique(target[target != number])
    if len(others) > 1:
        raise SpecError(
            f"{path}: the labels are {positive}, {others[0]:g} and {others[1]:g}", "there must be two labels"
        )
    target[:] = np.where(target == number, 1.0, -1.0)


def _one_negative(path: str, values: NDArray[Any], positive: str | None) -> None:
    """Refuse a third label."""
    if positive is None:
        return
    number = _number(positive)
    others = [
        value for value in np.unique(values).tolist()
        if str(value) != positive and not (number is not None and _number(str(value)) == number)
    ]  # fmt: skip
    if len(others) > 1:
        raise SpecError(f"{path}: the labels are {positive}, {others[0]} and {others[1]}", "there must be two labels")


def _numeric(path: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "fiub":
        raise SpecError(f"{path} is of type {dtype}", "save real numbers")


def _loaded(path: str, load: Callable[[], Any]) -> Any:
    """Return what ``load`` returns, or refuse the file: readers raise many things on damaged ones."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load()
    except (OSError, MemoryError, DpcalcError):
        raise
    except Exception:
        kind = os.path.splitext(path)[1]
        raise SpecError(f"{path} is not a readable {kind} file of plain numbers", "save it again") from None


# --- bounds -----------------------------------------------------------------------------------------------------------


def read_ranges(path: str, table: Table) -> Ranges:
    """Return the map in a CSV file with the header ``column,low,high`` and a row for every feature.

    A row for the target is optional.

    Raises:
        SpecError: it cannot be read, a feature is missing, or a name is unknown.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            text = stream.read(MAX_RANGES + 1)
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot read {path}: {error}", "give a CSV file with the columns column,low,high") from None
    lines = list(csv.reader(text.splitlines())) if len(text) <= MAX_RANGES else []
    if not lines or [name.strip() for name in lines[0]] != ["column", "low", "high"]:
        raise SpecError(f"{path}:1: the header must be column,low,high", "and then a line for every feature")
    found: dict[str, tuple[float, float]] = {}
    known = set(table.names)
    for number, cells in enumerate(lines[1:], start=2):
        if not cells:
            continue
        if len(cells) != 3 or cells[0] not in known or cells[0] in found:
            raise SpecError(f"{path}:{number}: {','.join(cells)[:60]!r}", "each line: a column of the data, low, high")
        low, high = parse_number(cells[1].strip()), parse_number(cells[2].strip())
        if not low < high:
            raise SpecError(f"{path}:{number}: low is {low:g} and high is {high:g}", "low must be below high")
        found[cells[0]] = (low, high)
    missing = [name for name in table.names[:-1] if name not in found]
    if missing:
        raise SpecError(f"{path} has no range for {missing[0]!r}", "give a line for every feature")
    pairs = np.array([found[name] for name in table.names[:-1]])
    return Ranges(pairs[:, 0].copy(), pairs[:, 1].copy(), found.get(table.names[-1]))


def prepared(
    table: Table,
    *,
    feature_bound: float,
    label_bound: float | None,
    signed: bool,
    ranges: Ranges | None = None,
    intercept: bool = False,
    norm: int = 2,
) -> Prepared:
    """Return the records within their bounds; the table's array is overwritten.

    1. With ranges, every feature is mapped affinely, and the target too if it has a range.
    2. Rows longer than B are shortened to it: x min(1, B/|x|). With an intercept, B/sqrt(2) takes the place of B and a
       constant column of B/sqrt(2) is appended (in the 1-norm, B/2), so that whole rows are within B.
    3. Labels of a classification must be 0 and 1, or -1 and 1; others are cut to [-label_bound, label_bound].

    Args:
        table: as read.
        feature_bound: B > 0.
        label_bound: Y >= 0, or None for no cut.
        signed: whether labels are to be +1 and -1.
        ranges: the affine map.
        intercept: whether to append the constant column.
        norm: 1 or 2, of rows.

    Raises:
        SpecError: the labels are others, or rows so short cannot be held in double precision.
    """
    if feature_bound < _TINY:
        raise SpecError(f"feature_bound is {feature_bound:g}: so short a row loses its digits", "use other units")
    cells, (n, width) = table.cells, table.cells.shape
    labels = cells[:, -1].copy()
    constant = intercept_of(feature_bound, norm) if intercept else 0.0
    bound = constant if intercept else feature_bound
    clipped = 0
    for rows in _blocks(n, width):
        x = cells[rows, :-1]
        if ranges is not None:
            with np.errstate(over="ignore"):
                x -= 0.5 * ranges.low + 0.5 * ranges.high
                x /= 0.5 * ranges.high - 0.5 * ranges.low
            np.clip(x, -_HUGE, _HUGE, out=x)
        size = np.abs(x).sum(axis=1) if norm == 1 else _norms(x)
        outside = size > bound * (1.0 - _ROOM)
        clipped += int(np.count_nonzero(size > bound))
        # First to norm 1: the ratio of the two may be no normal double, and then far off.
        x[outside] = x[outside] / size[outside, np.newaxis] * (bound * (1.0 - _ROOM))
    if intercept:
        cells[:, -1] = constant * (1.0 - _ROOM)
        features = cells
    else:
        features = _chosen(cells, range(width - 1))
    labels, cut = _labels(labels, signed, label_bound, ranges)
    return Prepared(features, labels, clipped, cut)


def intercept_of(feature_bound: float, norm: int = 2) -> float:
    """Return the constant that an intercept's column holds."""
    return feature_bound / (2.0 if norm == 1 else 2.0**0.5)


def _norms(x: Array) -> Array:
    """Return the norms of rows, also where squares would leave the range of a double."""
    largest = np.abs(x).max(axis=1)
    scale = np.where(largest > 0.0, largest, 1.0)
    scaled = x / scale[:, np.newaxis]
    found: Array = scale * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    return found


def _chosen(cells: Array, order: Sequence[int]) -> Array:
    """Return these columns as a C-contiguous array in the same memory: rows move towards the front."""
    n, kept = len(cells), len(order)
    flat = cells.reshape(-1)
    for rows in _blocks(*cells.shape):
        flat[rows.start * kept : rows.stop * kept] = cells[rows][:, list(order)].reshape(-1)
    return flat[: n * kept].reshape(n, kept)


def _labels(labels: Array, signed: bool, bound: float | None, ranges: Ranges | None) -> tuple[Array, int]:
    if signed:
        values = np.unique(labels)
        if not (set(values) <= {0.0, 1.0} or set(values) <= {-1.0, 1.0}):
            row = int(np.argmax(~np.isin(labels, (0.0, 1.0))))
            raise SpecError(
                f"the target of record {row + 1} is {labels[row]:g}",
                "labels must be 0 and 1, or -1 and 1; or say which one counts as +1 with --positive",
            )
        return np.where(labels == 1.0, 1.0, -1.0), 0
    if ranges is not None and ranges.target is not None:
        low, high = ranges.target
        with np.errstate(over="ignore"):
            labels = (labels - (0.5 * low + 0.5 * high)) / (0.5 * high - 0.5 * low) * (1.0 if bound is None else bound)
        labels = np.clip(labels, -_HUGE, _HUGE)
    if bound is None:
        return labels, 0
    return np.clip(labels, -bound, bound), int(np.count_nonzero(np.abs(labels) > bound))


def split(data: Prepared, fraction: float, generator: np.random.Generator) -> tuple[Prepared, Prepared | None]:
    """Return training and test records: a uniformly random set of ``fraction`` of them is set aside.

    The training records keep their order, and the memory of ``data``.

    Raises:
        SpecError: fewer than 2 records are left for training.
    """
    n = len(data.labels)
    aside = 0 if fraction == 0.0 else max(1, round(fraction * n))
    if n - aside < 2:
        raise SpecError(f"{n} records, {aside} of them for testing, are too few", "at least 2 are needed for training")
    if not aside:
        return data, None
    chosen = np.zeros(n, dtype=bool)
    chosen[generator.choice(n, aside, replace=False, shuffle=False)] = True
    test = data._replace(features=data.features[chosen], labels=data.labels[chosen])
    kept = 0
    for rows in _blocks(n, data.features.shape[1]):
        block = data.features[rows][~chosen[rows]]
        data.features[kept : kept + len(block)] = block
        kept += len(block)
    return data._replace(features=data.features[:kept], labels=data.labels[~chosen]), test
