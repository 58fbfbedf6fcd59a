"""Schedules from files: CSV with a header, NPY, NPZ or YAML.

Files are untrusted: what is read is bounded (`dpcalc.files.reading`), and nothing is evaluated.

The columns of a schedule: numbers by name, one per step.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.files import reading
from dpcalc.files.documents import Items, Node, Rules, Scalar, Table, number_text, parse_yaml
from dpcalc.files.lines import text_blocks
from dpcalc.files.place import FileError, Place, discreetly, ending, shown_path
from dpcalc.files.reading import is_standard_input, opened, reported, standard_input
from dpcalc.model.numbers import parse_integer, parse_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


ALIASES = {
    "eta": "step_size",
    "sigma": "noise_std",
    "c": "contraction",
    "s": "shift",
    "a": "spend",
    "v": "laplace_scale",
    "b": "batch_size",
}

REPEAT = "repeat"
"""The column of a CSV file with the number of steps that a row stands for."""


class Columns(NamedTuple):
    """The allowed and the required columns of a schedule."""

    allowed: Sequence[str]
    required: Sequence[str] = ()

    def canonical(self, place: Place, names: Sequence[str], extra: tuple[str, ...] = ()) -> list[str]:
        """Return the column names at a place in a file, aliases resolved; ``extra`` ones are allowed as well.

        Raises:
            SpecError: one is unknown or repeated, a required one is missing, or there are none.
        """
        allowed = (*self.allowed, *extra)
        result: list[str] = []
        for number, typed in enumerate(names, start=1):
            name = typed.strip().lower().replace("-", "_")
            name = name if name in allowed else ALIASES.get(name, name)
            if name not in allowed:
                raise _unknown(place, number, typed, name, allowed)
            if name in result:
                raise place.error(f"column {name} is given twice", "keep one of the two")
            result.append(name)
        for name in self.required:
            if name not in result:
                raise place.error(f"column {name} is missing", "columns found: " + (", ".join(result) or "none"))
        if not set(result).difference(extra):
            raise place.error("there are no columns", "columns may be " + ", ".join(self.allowed))
        return result


def _unknown(place: Place, number: int, typed: str, name: str, allowed: Sequence[str]) -> FileError:
    import difflib

    near = difflib.get_close_matches(name[:40], allowed, n=1)
    hint = f"did you mean {near[0]}?" if near else "columns may be " + ", ".join(allowed)
    discreet = f"column {number} has a name that is unknown; columns may be " + ", ".join(allowed)
    return place.error(f"unknown column {typed[:40]!r}", hint, discreet=discreet)


def checked(shown: str, table: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Return the columns of the file ``shown``, contiguous and read-only.

    Raises:
        SpecError: their lengths differ or are 0, or a value is not finite.
    """
    import numpy as np

    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) > 1:
        raise SpecError(f"{shown}: columns differ in length: {lengths}", "every column needs one value per step")
    if 0 in lengths.values():
        raise SpecError(f"{shown} has no steps", "add at least one row")
    for name, column in table.items():
        array = np.ascontiguousarray(column)
        if not np.isfinite(array).all():
            step = int(np.isfinite(array).argmin())
            raise SpecError(f"{shown}: {name} of step {step + 1} is {array[step]}", "every value must be finite")
        array.setflags(write=False)
        table[name] = array
    return table


_WIDEST = 16  # bytes of the widest number numpy stores
_LONG = 300  # characters: a shorter cell without an exponent cannot round to 0


def read_schedule(path: str, *, columns: Sequence[str], required: Sequence[str] = ()) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a schedule file, name -> finite values of shape (T,), T >= 1, read-only.

    Args:
        path: a .csv, .npy, .npz, .yaml or .yml file, or ``-`` for CSV on standard input.
        columns: the names allowed (`ALIASES` are understood). CSV rows may carry ``repeat``, a whole number.
        required: the names that must be there; a single one may come as a plain one-dimensional .npy array.

    Raises:
        SpecError: the file cannot be read or does not hold such columns; the message has file, line and cell.
    """
    shown, wanted = shown_path(path), Columns(columns, required)
    if is_standard_input(path):
        return _read_standard_input(wanted)
    reader = _READERS.get(ending(path))
    if reader is None:
        raise SpecError(f"{shown}: unknown kind of schedule file", "use a name that ends in " + ", ".join(_READERS))
    with discreetly(path), opened(path, "give the path of a file, or - for standard input") as stream:
        _check_size(shown, stream)
        return checked(shown, reader(shown, stream, wanted))


def _read_standard_input(wanted: Columns) -> dict[str, NDArray[np.float64]]:
    stream = standard_input()
    if stream is None:
        raise SpecError("standard input cannot be read", "give the path of a file")
    with reported(Place("-")):
        return checked("-", _read_csv("-", stream, wanted))


def _check_size(shown: str, stream: IO[bytes]) -> None:
    size = os.fstat(stream.fileno()).st_size
    if size == 0:
        raise SpecError(f"{shown} is empty", "a schedule needs a header and at least one step")
    if size > reading.SCHEDULE_BYTES:
        raise SpecError(
            f"{shown} has {size} bytes; at most {reading.SCHEDULE_BYTES} are read", "use a shorter schedule"
        )


def _parse_cell(place: Place, name: str, cell: str) -> float:
    """Return the number in a cell of a column.

    Raises:
        FileError: it is not one.
    """
    try:
        return parse_number(cell.strip())
    except SpecError as error:
        hint = error.hint or "write a finite number"
        raise place.error(f"{name}: {error.message}", hint, discreet=f"{name}: not a number") from None


def _parse_count(place: Place, name: str, cell: str) -> int:
    """Return the number of steps in a cell.

    Raises:
        FileError: it is not one.
    """
    try:
        count = parse_integer(cell.strip())
    except SpecError as error:
        hint = error.hint or "write a finite number"
        raise place.error(f"{name}: {error.message}", hint, discreet=f"{name}: not a whole number") from None
    if not 1 <= count <= reading.SCHEDULE_STEPS:
        raise place.error(
            f"{name} must be a whole number from 1 to {reading.SCHEDULE_STEPS}", "leave it out for single steps"
        )
    return count


# --- CSV --------------------------------------------------------------------------------------------------------------


def _read_csv(shown: str, stream: IO[bytes], wanted: Columns) -> dict[str, NDArray[np.float64]]:
    import numpy as np

    names: list[str] = []
    parts: list[list[NDArray[np.float64]]] = []
    total = 0
    for block in text_blocks(shown, stream, reading.SCHEDULE_BYTES):
        rows = list(block.data())
        if rows and not names:
            number, header = rows.pop(0)
            names = wanted.canonical(Place(shown, number), header.split(","), (REPEAT,))
            parts = [[] for name in names if name != REPEAT]
        if rows:
            columns, total = _expand(shown, names, _values(shown, names, rows), total)
            for part, column in zip(parts, columns, strict=True):
                part.append(column)
    if not names:
        raise SpecError(f"{shown} is empty", "the first line names the columns")
    if not total:
        raise SpecError(f"{shown} has a header but no steps", "add one line per step")
    names = [name for name in names if name != REPEAT]
    parts.reverse()  # each column's pieces are let go once joined
    return {name: np.concatenate(parts.pop()) for name in names}


def _values(shown: str, names: list[str], rows: list[tuple[int, str]]) -> NDArray[np.float64]:
    """Return the numbers of some rows: by numpy's parser, or cell by cell where the two would differ."""
    import numpy as np

    lines = [line for _, line in rows]
    try:
        values = np.loadtxt(lines, delimiter=",", ndmin=2, comments=None, dtype=np.float64)
    except ValueError:
        values = np.empty((0, 0))
    if values.shape == (len(rows), len(names)) and _is_plain(names, values, lines):
        return values
    return np.array([_parse_row(Place(shown, number), names, line) for number, line in rows])


def _is_plain(names: list[str], values: NDArray[np.float64], lines: list[str]) -> bool:
    """Return whether the cell-by-cell parser would surely accept these values as they are."""
    import re

    import numpy as np

    if not np.isfinite(values).all():
        return False
    if REPEAT in names:
        counts = values[:, names.index(REPEAT)]
        if not ((counts >= 1.0) & (counts <= reading.SCHEDULE_STEPS) & (counts == np.floor(counts))).all():
            return False
    if values.all():
        return True
    text = "\n".join(lines)  # a 0 must have been typed, not reached by underflow
    return max(map(len, lines)) <= _LONG and not re.search(r"[eE]-0*[1-9][0-9][0-9]", text)


def _parse_row(row: Place, names: list[str], line: str) -> list[float]:
    cells = line.split(",")
    if len(cells) != len(names):
        raise row.error(f"{len(cells)} values for {len(names)} columns", "every row needs one value per column")
    places = (row._replace(column=number) for number in range(1, len(cells) + 1))
    return [
        float(_parse_count(place, name, cell)) if name == REPEAT else _parse_cell(place, name, cell)
        for place, name, cell in zip(places, names, cells, strict=True)
    ]


def _expand(
    shown: str, names: list[str], values: NDArray[np.float64], total: int
) -> tuple[list[NDArray[np.float64]], int]:
    """Return the columns with each row written out ``repeat`` times, and how many rows there are by now."""
    import numpy as np

    counts = values[:, names.index(REPEAT)].astype(np.int64) if REPEAT in names else None
    total += len(values) if counts is None else int(counts.sum())
    if total > reading.SCHEDULE_STEPS:
        what = "steps" if counts is None else "steps, with repeat"
        raise SpecError(
            f"{shown} makes {total} {what}; at most {reading.SCHEDULE_STEPS} are read", "use a shorter schedule"
        )
    columns = [values[:, place] for place, name in enumerate(names) if name != REPEAT]
    return [column.copy() if counts is None else np.repeat(column, counts) for column in columns], total


# --- NPY and NPZ ------------------------------------------------------------------------------------------------------


def _damaged(shown: str) -> SpecError:
    return SpecError(f"{shown} is not a readable numpy file of plain numbers", "save it with numpy.save or savez")


def _read_npy(shown: str, stream: IO[bytes], wanted: Columns) -> dict[str, NDArray[np.float64]]:
    from dpcalc.files.arrays import damaged_as, map_array

    with damaged_as(_damaged(shown)):
        array = map_array(stream)
    fields = array.dtype.names
    if fields is not None:
        names = wanted.canonical(Place(shown), fields)
        return {name: _column(shown, name, array[field]) for name, field in zip(names, fields, strict=True)}
    if array.ndim == 1 and len(wanted.required) == 1:
        return {wanted.required[0]: _column(shown, wanted.required[0], array)}
    raise SpecError(f"{shown} has no named fields", "save a structured array, or name the columns in an .npz file")


def _read_npz(shown: str, stream: IO[bytes], wanted: Columns) -> dict[str, NDArray[np.float64]]:
    from dpcalc.files.arrays import damaged_as, open_archive, read_member

    with damaged_as(_damaged(shown)):
        archive = open_archive(shown, stream)
    members = archive.infolist()
    size = sum(info.file_size for info in members)
    if size > reading.SCHEDULE_BYTES:
        raise SpecError(
            f"{shown} would unpack to {size} bytes; at most {reading.SCHEDULE_BYTES}", "use a shorter schedule"
        )
    names = wanted.canonical(Place(shown), [info.filename.removesuffix(".npy") for info in members])
    table = {}
    for name, info in zip(names, members, strict=True):
        if info.file_size > reading.SCHEDULE_STEPS * _WIDEST + reading.LINE_BYTES:
            raise SpecError(
                f"{shown}: {name} would unpack to {info.file_size} bytes", f"at most {reading.SCHEDULE_STEPS} steps"
            )
        with damaged_as(_damaged(shown)):
            column = read_member(archive, info)
        table[name] = _column(shown, name, column)
    return table


def _column(shown: str, name: str, column: NDArray[Any]) -> NDArray[np.float64]:
    import numpy as np

    if column.ndim > 1 or column.dtype.kind not in "fiu":
        raise SpecError(
            f"{shown}: {name} has shape {column.shape} and type {column.dtype.name}",
            "a column must be one-dimensional and of real numbers",
        )
    if column.size > reading.SCHEDULE_STEPS:
        raise SpecError(
            f"{shown} has {column.size} steps; at most {reading.SCHEDULE_STEPS} are read", "use a shorter schedule"
        )
    with np.errstate(over="ignore"):  # a wider float may become inf, which is refused later
        return np.array(column, dtype=np.float64, ndmin=1, order="C")


# --- YAML -------------------------------------------------------------------------------------------------------------

_FLAT = "write a flat mapping: name: number, or name: [numbers]"
_YAML = Rules(values=None, anchor_hint=_FLAT, depth_hint=_FLAT)


def _read_yaml(shown: str, stream: IO[bytes], wanted: Columns) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a mapping from names to lists, or to one number for all of ``steps`` steps."""
    import numpy as np

    size = reading.SCHEDULE_YAML_BYTES
    raw = stream.read(size + 1)
    if len(raw) > size:
        raise SpecError(f"{shown} is longer than {size} bytes", "use CSV or NPY for long schedules")
    fields = _fields(parse_yaml(shown, raw, _YAML))
    steps = _steps(fields.pop("steps", None))
    if not fields:
        raise SpecError(f"{shown}: needs columns", "write, for example, step_size: [0.1, 0.05]")
    names = wanted.canonical(Place(shown), list(fields))
    length = steps or max(len(cells) for _, _, cells in fields.values())
    table = {}
    for name, (place, is_list, cells) in zip(names, fields.values(), strict=True):
        values = [_parse_cell(cell.place, name, number_text(cell, name)) for cell in cells]
        if is_list and len(values) != length:
            hint = "write as many values as there are steps, or one number without brackets"
            raise place.error(f"{name} has {len(values)} values for {length} steps", hint)
        table[name] = np.array(values) if is_list else np.full(length, values[0])
    return table


_Entry = tuple[Place, bool, list[Scalar]]
"""The place of a name, whether its value is a list, and the values."""


def _fields(node: Node | None) -> dict[str, _Entry]:
    """Return the entries of a flat mapping.

    Raises:
        FileError: it is something else.
    """
    if node is None:
        return {}
    if not isinstance(node, Table):
        raise node.place.error("a list where a name is expected, or a lone value", _FLAT)
    return {name: (field.place, *_scalars(field.node)) for name, field in node.fields.items()}


def _scalars(node: Node) -> tuple[bool, list[Scalar]]:
    """Return whether a value is a list, and the numbers as written."""
    if isinstance(node, Scalar):
        return False, [node]
    if isinstance(node, Table):
        raise node.place.error("a mapping inside a mapping", _FLAT)
    cells = [item for item in node.items if isinstance(item, Scalar)]
    if not cells:
        raise node.place.error("a list without numbers", _FLAT)
    if len(cells) < len(node.items):
        inner = next(item for item in node.items if not isinstance(item, Scalar))
        raise inner.place.error(f"a {'list' if isinstance(inner, Items) else 'mapping'} inside a list", _FLAT)
    return True, cells


def _steps(entry: _Entry | None) -> int | None:
    if entry is None:
        return None
    place, is_list, cells = entry
    if is_list:
        raise place.error("steps is a list", "write one whole number")
    return _parse_count(cells[0].place, "steps", number_text(cells[0], "steps"))


_READERS: Mapping[str, Callable[[str, IO[bytes], Columns], dict[str, NDArray[np.float64]]]] = {
    ".csv": _read_csv,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
}
