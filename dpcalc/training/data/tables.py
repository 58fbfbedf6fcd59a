"""Tables of records, as read.

A table is one float64 array of shape (n, d + 1) whose last column is the target. It is read and changed in place, in
blocks of rows, so there is only about one copy of the data: in memory, or in a temporary file if it is large
(`dpcalc.files.arrays.new_table`).
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files import reading
from dpcalc.files.arrays import new_table
from dpcalc.files.place import FileError, ProjectFile, clipped, near
from dpcalc.files.reading import opened
from dpcalc.training.data.cells import NUMBERS, Classes, Labels, Levels, as_array
from dpcalc.training.data.progress import Progress
from dpcalc.training.data.readers import Columns, Rule, reader_of, refuse_other_kinds

Array = NDArray[np.float64]

_NAMES = 100  # columns that are searched for a similar spelling
_ROWS = 1 << 18  # cells of a block

EXAMPLES = {"breast-cancer": ("diagnosis", Labels("malignant", "benign"), "logistic")}
"""The shipped tables: the target, its labels, and a suitable loss."""


class Table(NamedTuple):
    """Records as read.

    Attributes:
        cells: shape (n, d + 1), float64, C-contiguous; nan for cells without a finite number; the target is last.
        names: of the d + 1 columns.
    """

    cells: Array
    names: tuple[str, ...]


def example_of(where: str) -> str | None:
    """Return the name of the shipped table in ``example:NAME``; None for a path.

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
    """Return the path of a file, or of the shipped table in ``example:NAME``."""
    name = example_of(where)
    return where if name is None else example_file(name)


def read(
    path: str, *, target: str | None = None, labels: Labels | Classes = NUMBERS, ignore: Sequence[str] = (),
    words: Mapping[str, Levels] = {}, progress: Progress | None = None,
) -> Table:  # fmt: skip
    """Return the table in a file.

    Args:
        path: .csv with a header; .npy, a matrix or named fields (memory-mapped); .npz with arrays X and y; .parquet.
        target: name of the target column, or its number from 1 on in a matrix; the last column by default.
        labels: the rule of the target's cells.
        ignore: columns to leave out.
        words: name -> the rule of a column of words; the table holds the places of levels.
        progress: called with (records read, all records), for large tables.

    Raises:
        SpecError: the file cannot be read; a column does not exist, or its type holds no numbers; .parquet without
            pyarrow. The contents of records never cause it.
    """
    refuse_other_kinds(path)
    with opened(path) as stream, unquoted(path):
        reader = reader_of(path, stream, with_target=True)
        if reader.target_name is not None and target is not None:
            raise SpecError(f"{path}: an .npz file has its target in y", "leave out --target")
        places = _places(path, reader.names, target, ignore)
        names = tuple(reader.names[place] for place in places)
        rules: tuple[Rule, ...] = (*(words.get(name, NUMBERS) for name in names[:-1]), labels)
        cure = "declare its levels in --ranges, or --ignore {name}; for a target of words, say which are its --labels"
        wanted = Columns(path, names, places, rules, cure)
        count, columns = reader.count, len(places)
        cells, first = empty(path, count, columns), 0
        for block in reader.blocks(wanted):
            if first + len(block) <= count:
                cells[first : first + len(block)] = block
            first += len(block)
            if progress is not None and cells.size > reading.HELD_CELLS:
                progress(first, count)
        if first != count:
            raise SpecError(f"{path} changed while it was read", "try again")
        return Table(cells, names)


@contextlib.contextmanager
def unquoted(path: str) -> Iterator[None]:
    """Keep the contents of a file that a recipe names out of errors: whoever sees the error may not see the records."""
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
    """Return a table with copies of features, shape (n, d), and a target, shape (n,).

    Raises:
        SpecError: the arrays have other shapes.
    """
    x, y = as_array(features), as_array(target)
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise SpecError(f"features have shape {x.shape} and the target {y.shape}", "they must be (n, d) and (n,)")
    cells = empty("the data", len(x), x.shape[1] + 1)
    for place in range(x.shape[1]):
        cells[:, place] = words.get(str(place + 1), NUMBERS).codes(x[:, place])
    cells[:, -1] = labels.codes(y)
    return Table(cells, (*(str(place) for place in range(1, x.shape[1] + 1)), "target"))


def rows_of(path: str, names: Sequence[str], rules: Sequence[Rule]) -> Iterator[Array]:
    """Yield the rows of a file in order, as arrays of shape (m, wanted columns) with at least one row.

    The number of rows in a block depends on the shape of the file alone. Other columns are not looked at.

    Args:
        path: as of `read`; the array y of an .npz file may be missing if it is not wanted.
        names: of the wanted columns, in their order.
        rules: the rules of their cells.

    Raises:
        SpecError: the file cannot be read; a column does not exist, or its type holds no numbers.
    """
    refuse_other_kinds(path)
    with opened(path) as stream:
        reader = reader_of(path, stream, with_target=False)
        columns: dict[str, list[int]] = {name: [] for name in names}
        for place, name in enumerate(reader.names):
            if name in columns:
                columns[name].append(place)
        for name, places in columns.items():
            if len(places) > 1:
                raise SpecError(f"{path}: column {clipped(name)} is given twice", "rename one of the two")
            if not places:
                raise SpecError(
                    f"{path} has no column {clipped(name)}, which the model needs", near(name, reader.names)
                )
        first = tuple(columns[name][0] for name in names)
        yield from reader.blocks(Columns(path, tuple(names), first, tuple(rules), "encode it as in training"))


def rows_of_array(features: Any, rules: Sequence[Rule], target: Any = None) -> Iterator[Array]:
    """Yield blocks of rows of an array of shape (n, d), in the order of the model's columns, and a target, shape (n,).

    Raises:
        SpecError: the arrays have other shapes.
    """
    x, y = as_array(features), None if target is None else as_array(target)
    columns = len(rules) - (y is not None)
    if x.ndim != 2 or x.shape[1] != columns or (y is not None and y.shape != x.shape[:1]):
        raise SpecError(f"the rows have shape {x.shape}", f"the model takes rows of {columns} columns")
    step = max(1, _ROWS // max(1, len(rules)))
    for first in range(0, len(x), step):
        some = slice(first, first + step)
        parts = [*x[some].T, *([] if y is None else [y[some]])]
        yield np.column_stack([rule.codes(part) for rule, part in zip(rules, parts, strict=True)])


def _places(path: str, names: Sequence[str], target: str | None, ignore: Sequence[str]) -> tuple[int, ...]:
    """Return the places of the columns to read, the target's last.

    Raises:
        SpecError: a name does not exist or exists twice, or no feature is left.
    """
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise SpecError(f"{path}: column {name!r} is given twice", "rename one of the two")
    places = {name: place for place, name in enumerate(names)}
    last = _place(path, target, places) if target is not None else len(names) - 1
    ignored = {_place(path, name, places) for name in ignore}
    if last in ignored:
        raise SpecError(f"{path}: the target {names[last]!r} is to be ignored", "leave one of the two out")
    kept = [place for place in range(len(names)) if place != last and place not in ignored]
    if not kept:
        raise SpecError(f"{path} has no column beside the target", "a model needs a feature")
    return (*kept, last)


def _place(path: str, name: str, places: Mapping[str, int]) -> int:
    if name in places:
        return places[name]
    import difflib

    names = [known[:60] for known in islice(places, _NAMES)]
    similar = difflib.get_close_matches(name[:60], names, n=1)
    listed = ", ".join(map(repr, names[:8])) + (", ..." if len(places) > 8 else "")
    hint = f"did you mean {similar[0]!r}?" if similar else f"it has {listed}"
    raise SpecError(f"{path} has no column {name[:60]!r}", hint)


def empty(path: str, rows: int, columns: int) -> Array:
    """Return memory for a table, after a check of its size."""
    if not rows:
        raise SpecError(f"{path} has no records", "add some")
    if rows * columns > reading.TABLE_CELLS:
        raise SpecError(
            f"{path} has {rows} rows of {columns} columns; at most {reading.TABLE_CELLS} cells are read", "use fewer"
        )
    return new_table(path, rows, columns)
