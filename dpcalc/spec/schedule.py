"""Per-step schedules from files: CSV with a header, NPY, NPZ or YAML.

Files are untrusted: what is read is bounded, and nothing is evaluated.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.spec.numbers import parse_integer, parse_number

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES = 2 << 30
MAX_LINE = 1 << 20
MAX_ROWS = 20_000_000
MAX_YAML = 5_000_000
_PIECE = 4 << 20
_WIDEST = 16  # bytes of the widest number numpy stores
_LONG = 300  # characters: a shorter cell without an exponent cannot round to 0

ALIASES = {
    "eta": "step_size",
    "sigma": "noise_std",
    "c": "contraction",
    "s": "shift",
    "a": "spend",
    "v": "laplace_scale",
    "b": "batch_size",
}


class _Wanted(NamedTuple):
    """What the caller allows and needs."""

    columns: Sequence[str]
    required: Sequence[str]


def read_schedule(
    path: str,
    *,
    columns: Sequence[str],
    required: Sequence[str] = (),
) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a schedule file, name -> finite values of shape (T,), T >= 1, read-only.

    Args:
        path: a .csv, .npy, .npz, .yaml or .yml file, or ``-`` for CSV on standard input.
        columns: the names allowed (`ALIASES` are understood). CSV rows may carry ``repeat``, a whole number.
        required: the names that must be there; the only one may come as a plain one-dimensional .npy array.

    Raises:
        SpecError: the file cannot be read or does not hold such columns; the message has file, line and cell.
    """
    shown = _shown(path)
    wanted = _Wanted(columns, required)
    try:
        if path == "-":
            return _finished(shown, _read_csv(shown, _standard_input(), wanted), wanted)
        reader = _READERS.get(os.path.splitext(path)[1].lower())
        if reader is None:
            endings = ", ".join(_READERS)
            raise SpecError(f"{shown}: unknown kind of schedule file", f"use a name that ends in {endings}")
        _check_regular(shown, path)
        with open(path, "rb") as stream:
            return _finished(shown, reader(shown, stream, wanted), wanted)
    except OSError as error:
        raise SpecError(
            f"cannot read {shown}: {error.strerror or error}",
            "check the path and its permissions",
        ) from None


def _shown(path: str) -> str:
    """Return the path as messages show it: one line, without control characters."""
    return path if path.isprintable() else ascii(path)


def _standard_input() -> IO[bytes]:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise SpecError("standard input cannot be read", "give the path of a file")
    binary: IO[bytes] = stream
    return binary


def _check_regular(shown: str, path: str) -> None:
    try:
        status = os.stat(path)
    except ValueError:
        raise SpecError(
            f"{shown} is not a path",
            "give the path of a file, or - for standard input",
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise SpecError(f"{shown} is not a regular file", "give the path of a file, or - for standard input")
    if status.st_size == 0:
        raise SpecError(f"{shown} is empty", "a schedule needs a header and at least one step")
    if status.st_size > MAX_BYTES:
        raise SpecError(
            f"{shown} has {status.st_size} bytes; at most {MAX_BYTES} are read",
            "use a shorter schedule",
        )


def _finished(
    shown: str,
    table: dict[str, NDArray[np.float64]],
    wanted: _Wanted,
) -> dict[str, NDArray[np.float64]]:
    """Return the columns checked for presence, length and finiteness, and made read-only."""
    import numpy as np

    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) > 1:
        raise SpecError(
            f"{shown}: columns differ in length: {lengths}",
            "every column needs one value per step",
        )
    if 0 in lengths.values():
        raise SpecError(f"{shown} has no steps", "add at least one row")
    for name, column in table.items():
        array = np.ascontiguousarray(column)
        if not np.isfinite(array).all():
            step = int(np.isfinite(array).argmin())
            raise SpecError(
                f"{shown}: {name} of step {step + 1} is {array[step]}",
                "every value must be finite",
            )
        array.setflags(write=False)
        table[name] = array
    return table


def _canonical(where: str, names: Sequence[str], wanted: _Wanted, extra: tuple[str, ...] = ()) -> list[str]:
    """Return the canonical names of the columns found.

    Raises:
        SpecError: one is unknown or there twice, a required one is not there, or there is none.
    """
    allowed = (*wanted.columns, *extra)
    result: list[str] = []
    for given in names:
        name = given.strip().lower().replace("-", "_")
        name = name if name in allowed else ALIASES.get(name, name)
        if name not in allowed:
            raise _unknown(where, given, name, allowed)
        if name in result:
            raise SpecError(f"{where}: column {name} is there twice", "keep one of the two")
        result.append(name)
    for name in wanted.required:
        if name not in result:
            raise SpecError(
                f"{where}: column {name} is missing",
                "columns found: " + (", ".join(result) or "none"),
            )
    if not set(result).difference(extra):
        raise SpecError(f"{where}: there are no columns", "columns may be " + ", ".join(wanted.columns))
    return result


def _unknown(where: str, given: str, name: str, allowed: Sequence[str]) -> SpecError:
    import difflib

    near = difflib.get_close_matches(name[:40], allowed, n=1)
    hint = f"did you mean {near[0]}?" if near else "columns may be " + ", ".join(allowed)
    return SpecError(f"{where}: unknown column {given[:40]!r}", hint)


# CSV.


class _Block(NamedTuple):
    """Some whole lines of a file, and the number of the first."""

    first: int
    lines: list[str]

    def data(self) -> Iterator[tuple[int, str]]:
        """Yield (line number, line) of the lines that are neither blank nor comments."""
        for number, line in enumerate(self.lines, start=self.first):
            if line and not line.isspace() and not line.lstrip().startswith("#"):
                yield number, line


def _read_csv(shown: str, stream: IO[bytes], wanted: _Wanted) -> dict[str, NDArray[np.float64]]:
    import numpy as np

    names: list[str] = []
    parts: list[list[NDArray[np.float64]]] = []
    total = 0
    for block in _blocks(shown, stream):
        rows = list(block.data())
        if rows and not names:
            number, header = rows.pop(0)
            names = _canonical(f"{shown}:{number}", header.split(","), wanted, ("repeat",))
            parts = [[] for name in names if name != "repeat"]
        if rows:
            columns, total = _expanded(shown, names, _values(shown, names, rows), total)
            for part, column in zip(parts, columns, strict=True):
                part.append(column)
    if not names:
        raise SpecError(f"{shown} is empty", "the first line names the columns")
    if not total:
        raise SpecError(f"{shown} has a header but no steps", "add one line per step")
    names = [name for name in names if name != "repeat"]
    parts.reverse()  # each column's pieces are let go once joined
    return {name: np.concatenate(parts.pop()) for name in names}


def _blocks(shown: str, stream: IO[bytes]) -> Iterator[_Block]:
    """Yield the lines of a file, some megabytes at a time; a line ends with LF, CR LF or CR."""
    first, size, rest = 1, 0, b""
    while piece := stream.read(_PIECE):
        size += len(piece)
        if size > MAX_BYTES:
            raise SpecError(f"{shown}: more than {MAX_BYTES} bytes", "use a shorter schedule")
        rest += piece
        # A CR that ends the piece may be half of a CR LF.
        cut = max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, len(rest) - 1)) + 1
        if cut:
            block = _decoded(shown, first, rest[:cut])
            yield block
            first += len(block.lines)
        rest = rest[cut:]
        if len(rest) > MAX_LINE:
            raise _too_long(shown, first)
    if rest:
        yield _decoded(shown, first, rest)


def _decoded(shown: str, first: int, raw: bytes) -> _Block:
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if first == 1:
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in raw:
        number = first + raw.count(b"\n", 0, raw.index(b"\0"))
        raise SpecError(f"{shown}:{number}: a NUL byte", "save the file as UTF-8 text")
    try:
        lines = raw.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        number = first + raw.count(b"\n", 0, error.start)
        place = error.start - raw.rfind(b"\n", 0, error.start)
        raise SpecError(f"{shown}:{number}: byte {place} is not UTF-8", "save the file as UTF-8") from None
    longest = max(map(len, lines))
    if longest > MAX_LINE:
        raise _too_long(shown, first + list(map(len, lines)).index(longest))
    return _Block(first, lines)


def _too_long(shown: str, number: int) -> SpecError:
    return SpecError(f"{shown}:{number}: the line is longer than {MAX_LINE} bytes", "write one step per line")


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
    return np.array([_row(f"{shown}:{number}", names, line) for number, line in rows])


def _is_plain(names: list[str], values: NDArray[np.float64], lines: list[str]) -> bool:
    """Return whether the cell-by-cell parser would surely accept these values as they are."""
    import re

    import numpy as np

    if not np.isfinite(values).all():
        return False
    if "repeat" in names:
        counts = values[:, names.index("repeat")]
        if not ((counts >= 1.0) & (counts <= MAX_ROWS) & (counts == np.floor(counts))).all():
            return False
    if values.all():
        return True
    text = "\n".join(lines)  # a 0 must have been typed, not reached by underflow
    return max(map(len, lines)) <= _LONG and not re.search(r"[eE]-0*[1-9][0-9][0-9]", text)


def _row(where: str, names: list[str], line: str) -> list[float]:
    cells = line.split(",")
    if len(cells) != len(names):
        raise SpecError(
            f"{where}: {len(cells)} values for {len(names)} columns",
            "every row needs one value per column",
        )
    return [
        _cell(f"{where}:{place}: {name}", cell, name)
        for place, (name, cell) in enumerate(zip(names, cells, strict=True), start=1)
    ]


def _cell(where: str, cell: str, name: str) -> float:
    try:
        if name != "repeat":
            return parse_number(cell.strip())
        count = parse_integer(cell.strip())
    except SpecError as error:
        raise SpecError(f"{where}: {error.message}", error.hint or "write a finite number") from None
    if not 1 <= count <= MAX_ROWS:
        raise SpecError(
            f"{where} must be a whole number from 1 to {MAX_ROWS}",
            "leave it out for single steps",
        )
    return float(count)


def _expanded(
    shown: str,
    names: list[str],
    values: NDArray[np.float64],
    total: int,
) -> tuple[list[NDArray[np.float64]], int]:
    """Return the columns with each row written out ``repeat`` times, and how many rows there are by now."""
    import numpy as np

    counts = values[:, names.index("repeat")].astype(np.int64) if "repeat" in names else None
    total += len(values) if counts is None else int(counts.sum())
    if total > MAX_ROWS:
        what = "steps" if counts is None else "steps, with repeat"
        raise SpecError(
            f"{shown} makes {total} {what}; at most {MAX_ROWS} are read",
            "use a shorter schedule",
        )
    columns = [values[:, place] for place, name in enumerate(names) if name != "repeat"]
    return [column.copy() if counts is None else np.repeat(column, counts) for column in columns], total


# NPY and NPZ.


def _read_npy(shown: str, stream: IO[bytes], wanted: _Wanted) -> dict[str, NDArray[np.float64]]:
    import numpy as np

    array = _loaded(shown, lambda: np.lib.format.open_memmap(stream.name, mode="r"))
    fields = array.dtype.names
    if fields is not None:
        names = _canonical(shown, fields, wanted)
        return {name: _numeric(shown, name, array[field]) for name, field in zip(names, fields, strict=True)}
    if array.ndim == 1 and len(wanted.required) == 1:
        return {wanted.required[0]: _numeric(shown, wanted.required[0], array)}
    raise SpecError(
        f"{shown} has no named fields",
        "save a structured array, or name the columns in an .npz file",
    )


def _read_npz(shown: str, stream: IO[bytes], wanted: _Wanted) -> dict[str, NDArray[np.float64]]:
    import zipfile
    from functools import partial

    _check_directory(shown, stream)
    archive = _loaded(shown, lambda: zipfile.ZipFile(stream))
    members = archive.infolist()
    sizes = [info.file_size for info in members]
    if sum(sizes) > MAX_BYTES:
        raise SpecError(
            f"{shown} would unpack to {sum(sizes)} bytes; at most {MAX_BYTES}",
            "use a shorter schedule",
        )
    names = _canonical(shown, [info.filename.removesuffix(".npy") for info in members], wanted)
    table = {}
    for name, info in zip(names, members, strict=True):
        if info.file_size > MAX_ROWS * _WIDEST + MAX_LINE:
            raise SpecError(
                f"{shown}: {name} would unpack to {info.file_size} bytes",
                f"at most {MAX_ROWS} steps",
            )
        table[name] = _numeric(shown, name, _loaded(shown, partial(_read_member, archive, info)))
    return table


def _read_member(archive: ZipFile, info: ZipInfo) -> NDArray[Any]:
    import numpy as np

    with archive.open(info) as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        return array


def _check_directory(shown: str, stream: IO[bytes]) -> None:
    """Refuse a file that does not end as numpy's archives do, or whose directory would not fit in memory."""
    stream.seek(max(0, os.fstat(stream.fileno()).st_size - 42))
    tail = stream.read(42)
    end = tail[-22:]  # signature, four short numbers, size and place of the directory, length of a comment
    if not end.startswith(b"PK\x05\x06") or end[-2:] != b"\0\0" or tail.startswith(b"PK\x06\x07"):
        raise SpecError(f"{shown} is not an NPZ file", "save it with numpy.savez")
    if int.from_bytes(end[12:16], "little") > MAX_LINE:
        raise SpecError(f"{shown} has too many members for a schedule", "save one array per column")


def _loaded(shown: str, load: Callable[[], Any]) -> Any:
    """Return what ``load`` returns, or refuse the file: the readers raise many things on damaged ones."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load()
    except OSError:
        raise
    except Exception:
        raise SpecError(
            f"{shown} is not a readable numpy file of plain numbers",
            "save it with numpy.save or savez",
        ) from None


def _numeric(shown: str, name: str, column: NDArray[Any]) -> NDArray[np.float64]:
    import numpy as np

    if column.ndim > 1 or column.dtype.kind not in "fiu":
        raise SpecError(
            f"{shown}: {name} has shape {column.shape} and type {column.dtype}",
            "a column must be one-dimensional and of real numbers",
        )
    if column.size > MAX_ROWS:
        raise SpecError(
            f"{shown} has {column.size} steps; at most {MAX_ROWS} are read",
            "use a shorter schedule",
        )
    with np.errstate(over="ignore"):  # a wider float may become inf, which is refused later
        return np.array(column, dtype=np.float64, ndmin=1, order="C")


# YAML.


class _Entry(NamedTuple):
    """A name of the mapping and the scalars as written, each with its place in the file."""

    where: str
    name: str
    scalars: list[tuple[str, str]]
    is_list: bool


def _read_yaml(shown: str, stream: IO[bytes], wanted: _Wanted) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a mapping from names to lists, or to one number for all of ``steps`` steps."""
    import numpy as np

    raw = stream.read(MAX_YAML + 1)
    if len(raw) > MAX_YAML:
        raise SpecError(f"{shown} is longer than {MAX_YAML} bytes", "use CSV or NPY for long schedules")
    entries = {}
    for entry in _yaml_entries(shown, raw):
        if entry.name in entries:
            raise SpecError(f"{entry.where}: {entry.name[:40]!r} is there twice", "keep one of the two")
        entries[entry.name] = entry
    steps = _steps(entries.pop("steps", None))
    if not entries:
        raise SpecError(f"{shown}: needs columns", "write, for example, step_size: [0.1, 0.05]")
    names = _canonical(shown, list(entries), wanted)
    length = steps or max(len(entry.scalars) for entry in entries.values())
    table = {}
    for name, entry in zip(names, entries.values(), strict=True):
        values = [_cell(f"{where}: {name}", text, name) for where, text in entry.scalars]
        if entry.is_list and len(values) != length:
            hint = "write as many values as there are steps, or one number without brackets"
            raise SpecError(f"{entry.where}: {name} has {len(values)} values for {length} steps", hint)
        table[name] = np.array(values) if entry.is_list else np.full(length, values[0])
    return table


def _steps(entry: _Entry | None) -> int | None:
    if entry is None:
        return None
    if entry.is_list:
        raise SpecError(f"{entry.where}: steps is a list", "write one whole number")
    return int(_cell(f"{entry.where}: steps", entry.scalars[0][1], "repeat"))


def _yaml_entries(shown: str, raw: bytes) -> Iterator[_Entry]:
    """Yield the entries of a flat mapping.

    Read from the parser's events, so that nothing is resolved or constructed: no tags, no aliases.
    """
    import yaml

    def where(event: Any) -> str:
        return f"{shown}:{event.start_mark.line + 1}:{event.start_mark.column + 1}"

    def take(*kinds: type[yaml.Event], instead: str) -> Any:
        event = next(events)
        marked = getattr(event, "anchor", None) or getattr(event, "tag", None)
        if marked or isinstance(event, yaml.AliasEvent):
            raise SpecError(f"{where(event)}: anchors, aliases and tags are not read", hint)
        if not isinstance(event, kinds):
            raise SpecError(f"{where(event)}: {instead}", hint)
        return event

    hint = "write a flat mapping: name: number, or name: [numbers]"
    try:
        events = yaml.parse(raw.decode("utf-8-sig"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        next(events)
        start = take(yaml.DocumentStartEvent, yaml.StreamEndEvent, instead="not YAML")
        if isinstance(start, yaml.StreamEndEvent):
            return
        take(yaml.MappingStartEvent, instead="a list where a name is expected, or a lone value")
        while isinstance(
            key := take(yaml.ScalarEvent, yaml.MappingEndEvent, instead="a name is not plain text"),
            yaml.ScalarEvent,
        ):
            value = take(yaml.ScalarEvent, yaml.SequenceStartEvent, instead="a mapping inside a mapping")
            scalars = []
            is_list = isinstance(value, yaml.SequenceStartEvent)
            if is_list:
                value = take(yaml.ScalarEvent, instead="a list without numbers")
            while isinstance(value, yaml.ScalarEvent):
                scalars.append((where(value), value.value))
                if not is_list:
                    break
                value = take(yaml.ScalarEvent, yaml.SequenceEndEvent, instead="a list inside a list")
            yield _Entry(where(key), key.value, scalars, is_list)
        take(yaml.DocumentEndEvent, instead="more than one mapping")
        take(yaml.StreamEndEvent, instead="a second document")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SpecError(f"{shown}:{line}: not UTF-8", "save the file as UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        problem = str(getattr(error, "problem", None) or "a character it must not have")
        raise SpecError(f"{shown}{place} is not valid YAML: {problem}", "write name: [numbers]") from None


_READERS: Mapping[str, Callable[[str, IO[bytes], _Wanted], dict[str, NDArray[np.float64]]]] = {
    ".csv": _read_csv,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
}
