"""Per-step schedules from files: CSV with a header, NPY, NPZ or YAML. Files are untrusted: bounded, never evaluated."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from dpcalc.errors import SpecError
from dpcalc.spec.numbers import parse_integer, parse_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES = 2 << 30
MAX_LINE = 1 << 20
MAX_ROWS = 20_000_000
MAX_YAML = 1 << 20

ALIASES = {
    "eta": "step_size",
    "sigma": "noise_std",
    "c": "contraction",
    "s": "shift",
    "a": "spend",
    "v": "laplace_scale",
}


def read_schedule(path: str, *, columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a schedule file, name -> finite values of shape (T,), T >= 1, read-only.

    Args:
        path: a .csv, .npy, .npz, .yaml or .yml file, or ``-`` for CSV on standard input.
        columns: the names allowed (`ALIASES` are understood). CSV rows may carry ``repeat``, a whole number.

    Raises:
        SpecError: the file cannot be read or does not hold such columns; the message has file, line and column.
    """
    if path == "-":
        return _finished(path, _read_csv(path, sys.stdin.buffer, columns))
    reader = _READERS.get(os.path.splitext(path)[1].lower())
    if reader is None:
        raise SpecError(f"{path}: unknown kind of schedule file", "use a name that ends in " + ", ".join(_READERS))
    try:
        _check_regular(path)
        return _finished(path, reader(path, columns))
    except OSError as error:
        raise SpecError(
            f"cannot read {path}: {error.strerror or error}", "check the path and its permissions"
        ) from None


def _check_regular(path: str) -> None:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise SpecError(f"{path} is not a regular file", "give the path of a file, or - for standard input")
    if status.st_size == 0:
        raise SpecError(f"{path} is empty", "a schedule needs a header and at least one step")
    if status.st_size > MAX_BYTES:
        raise SpecError(f"{path} has {status.st_size} bytes; at most {MAX_BYTES} are read", "use a shorter schedule")


def _finished(path: str, table: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Return the columns checked for length and finiteness, and made read-only."""
    import numpy as np

    if not table:
        raise SpecError(f"{path} has no columns", "name them in the first line")
    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) != 1:
        raise SpecError(f"{path}: columns differ in length: {lengths}", "every column needs one value per step")
    if 0 in lengths.values():
        raise SpecError(f"{path} has no steps", "add at least one row")
    if max(lengths.values()) > MAX_ROWS:
        raise SpecError(
            f"{path} has {max(lengths.values())} steps; at most {MAX_ROWS} are read", "use a shorter schedule"
        )
    result = {}
    for name, column in table.items():
        array = np.ascontiguousarray(column, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(array))
        if len(bad):
            raise SpecError(f"{path}: {name} of step {bad[0] + 1} is {array[bad[0]]}", "every value must be finite")
        array.setflags(write=False)
        result[name] = array
    return result


def _canonical(path: str, names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the canonical names of the columns found.

    Raises:
        SpecError: one is unknown or there twice.
    """
    result: list[str] = []
    for given in names:
        name = given.strip().lower().replace("-", "_")
        name = name if name in columns else ALIASES.get(name, name)
        if name not in (*columns, "repeat"):
            import difflib

            near = difflib.get_close_matches(name, columns, n=1)
            hint = f"did you mean {near[0]}?" if near else "columns may be " + ", ".join(columns)
            raise SpecError(f"{path}: unknown column {given[:40]!r}", hint)
        if name in result:
            raise SpecError(f"{path}: column {name} is there twice", "keep one of the two")
        result.append(name)
    return result


def _open_csv(path: str, columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    with open(path, "rb") as stream:
        return _read_csv(path, stream, columns)


def _read_csv(path: str, stream: IO[bytes], columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    import numpy as np

    lines = _Lines(path, stream)
    header = next(lines, None)
    if header is None:
        raise SpecError(f"{path} is empty", "the first line names the columns")
    names = _canonical(path, header.split(","), columns)
    # The parser of numpy does nearly every file; a block it refuses is read cell by cell, which says where it is wrong.
    blocks = [_block(path, names, block, numbers) for numbers, block in lines.blocks()]
    if not blocks:
        raise SpecError(f"{path} has a header but no steps", "add one line per step")
    values = np.concatenate(blocks)
    table = dict(zip(names, values.T, strict=True))
    return _repeated(path, table) if "repeat" in table else table


class _Lines(Iterator[str]):
    """The lines of a file that are neither blank nor comments, of bounded length, with their numbers."""

    def __init__(self, path: str, stream: IO[bytes]) -> None:
        self.path, self.stream, self.number, self.bytes = path, stream, 0, 0

    def __next__(self) -> str:
        while True:
            raw = self.stream.readline(MAX_LINE + 1)
            self.number += 1
            self.bytes += len(raw)
            if not raw:
                raise StopIteration
            text = self._decoded(raw).strip()
            if text and not text.startswith("#"):
                return text

    def _decoded(self, raw: bytes) -> str:
        where = f"{self.path}:{self.number}"
        if len(raw) > MAX_LINE:
            raise SpecError(f"{where}: the line is longer than {MAX_LINE} bytes", "one step per line")
        if self.bytes > MAX_BYTES:
            raise SpecError(f"{where}: more than {MAX_BYTES} bytes", "use a shorter schedule")
        try:
            text = raw.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise SpecError(f"{where}: byte {error.start + 1} is not UTF-8", "save the file as UTF-8") from None
        if "\0" in text:
            raise SpecError(f"{where}: a NUL byte", "save the file as UTF-8 text")
        return text

    def blocks(self, size: int = 100_000) -> Iterator[tuple[list[int], list[str]]]:
        """Yield (line numbers, lines) in blocks."""
        total = 0
        while True:
            numbers, block = [], []
            for line in self:
                numbers.append(self.number)
                block.append(line)
                if len(block) == size:
                    break
            if not block:
                return
            total += len(block)
            if total > MAX_ROWS:
                raise SpecError(f"{self.path} has more than {MAX_ROWS} steps", "use a shorter schedule, or `repeat`")
            yield numbers, block


def _block(path: str, names: list[str], block: list[str], numbers: list[int]) -> NDArray[np.float64]:
    import numpy as np

    try:
        values = np.loadtxt(block, delimiter=",", ndmin=2, comments=None, dtype=np.float64)
        if values.shape[1] == len(names) and np.isfinite(values).all():
            return values
    except ValueError:
        pass
    return np.array([_row(f"{path}:{number}", names, line) for number, line in zip(numbers, block, strict=True)])


def _row(where: str, names: list[str], line: str) -> list[float]:
    cells = line.split(",")
    if len(cells) != len(names):
        raise SpecError(
            f"{where}: {len(cells)} values for {len(names)} columns", "every row needs one value per column"
        )
    row = []
    for place, (name, cell) in enumerate(zip(names, cells, strict=True), start=1):
        try:
            row.append(parse_number(cell))
        except SpecError as error:
            raise SpecError(
                f"{where}:{place}: {name}: {error.message[:120]}", error.hint or "write a finite number"
            ) from None
    return row


def _repeated(path: str, table: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Return the columns with each row written out ``repeat`` times."""
    import numpy as np

    counts = table.pop("repeat")
    if (counts < 1).any() or (counts != np.floor(counts)).any():
        raise SpecError(f"{path}: repeat must be a whole number from 1", "leave the column out for single steps")
    if counts.sum() > MAX_ROWS:
        raise SpecError(f"{path}: repeat makes {counts.sum():.0f} steps; at most {MAX_ROWS}", "use a shorter schedule")
    whole = counts.astype(np.int64)
    return {name: np.repeat(column, whole) for name, column in table.items()}


def _read_npy(path: str, columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    import numpy as np

    array = _loaded(path, lambda: np.load(path, mmap_mode="r", allow_pickle=False))
    if array.dtype.names is None:
        raise SpecError(f"{path} has no named fields", "save a structured array, or name the columns in an .npz file")
    names = _canonical(path, array.dtype.names, columns)
    return {name: _numeric(path, name, array[field]) for name, field in zip(names, array.dtype.names, strict=True)}


def _read_npz(path: str, columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    import zipfile

    import numpy as np

    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(info.file_size for info in archive.infolist())
    except zipfile.BadZipFile:
        raise SpecError(f"{path} is not an NPZ file", "save it with numpy.savez") from None
    if total > MAX_BYTES:
        raise SpecError(f"{path} would unpack to {total} bytes; at most {MAX_BYTES}", "use a shorter schedule")
    with _loaded(path, lambda: np.load(path, allow_pickle=False)) as archive:
        names = _canonical(path, archive.files, columns)
        return {
            name: _numeric(path, name, _loaded(path, lambda f=field: archive[f]))  # type: ignore[misc]
            for name, field in zip(names, archive.files, strict=True)
        }


def _loaded(path: str, load: Callable[[], Any]) -> Any:
    """Return what numpy loads, or refuse the file: its reader raises many things on damaged ones."""
    import zipfile
    import zlib

    try:
        return load()
    except OSError:
        raise
    except (ValueError, EOFError, KeyError, SyntaxError, TypeError, zipfile.BadZipFile, zlib.error, MemoryError):
        raise SpecError(
            f"{path} is not a readable numpy file of plain numbers", "save it with numpy.save or savez"
        ) from None


def _numeric(path: str, name: str, column: Any) -> NDArray[np.float64]:
    import numpy as np

    if column.ndim > 1 or column.dtype.kind not in "fiu":
        raise SpecError(
            f"{path}: {name} must be one-dimensional and real", f"it has shape {column.shape}, {column.dtype}"
        )
    return np.atleast_1d(np.asarray(column, dtype=np.float64))


def _read_yaml(path: str, columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a mapping from names to numbers or lists; ``steps`` is the length of single ones."""
    import numpy as np

    with open(path, "rb") as stream:
        raw = stream.read(MAX_YAML + 1)
    if len(raw) > MAX_YAML:
        raise SpecError(f"{path} is longer than {MAX_YAML} bytes", "use CSV or NPY for long schedules")
    found = dict(_yaml_entries(path, raw))
    steps = found.pop("steps", None)
    names = _canonical(path, list(found), columns)
    if not names or "repeat" in names:
        raise SpecError(f"{path}: needs columns, without repeat", "write, for example, step_size: [0.1, 0.05]")
    length = parse_integer(steps[0]) if steps else max(len(values) for values in found.values())
    if not 1 <= length <= MAX_ROWS:
        raise SpecError(f"{path}: steps is {length}; it must be from 1 to {MAX_ROWS}")
    table = {}
    for name, texts in zip(names, found.values(), strict=True):
        values = _row(f"{path}: {name}", [name] * len(texts), ",".join(texts))
        table[name] = np.full(length, values[0]) if len(values) == 1 else np.array(values)
    return table


def _yaml_entries(path: str, raw: bytes) -> Iterator[tuple[str, list[str]]]:  # noqa: PLR0912 (one branch an event)
    """Yield (key, scalars as written) of a flat mapping.

    Read from the parser's events, so that nothing is resolved or constructed: no tags, aliases, or surprising types.
    """
    import yaml

    def refuse(event: Any, what: str) -> SpecError:
        mark = event.start_mark
        hint = "write a flat mapping: name: number, or name: [numbers]"
        return SpecError(f"{path}:{mark.line + 1}:{mark.column + 1}: {what}", hint)

    seen: set[str] = set()
    key: str | None = None
    depth = 0
    items: list[str] = []
    try:
        for event in yaml.parse(raw.decode("utf-8-sig"), Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
                raise refuse(event, "anchors, aliases and tags are not read")
            if isinstance(event, yaml.MappingStartEvent):
                depth += 1
                if depth > 1 or key is not None:
                    raise refuse(event, "a mapping inside a mapping")
            elif isinstance(event, yaml.SequenceStartEvent):
                if key is None or depth != 1:
                    raise refuse(event, "a list where a name is expected")
                depth, items = 2, []
            elif isinstance(event, yaml.SequenceEndEvent):
                if not items:
                    raise refuse(event, f"{key} has no values")
                yield str(key), items
                depth, key = 1, None
            elif isinstance(event, yaml.ScalarEvent):
                if depth == 2:
                    items.append(event.value)
                elif depth == 1 and key is None:
                    if event.value in seen:
                        raise refuse(event, f"{event.value[:40]} is there twice")
                    seen.add(event.value)
                    key = event.value
                elif depth == 1:
                    yield str(key), [event.value]
                    key = None
                else:
                    raise refuse(event, "not a mapping")
    except UnicodeDecodeError:
        raise SpecError(f"{path} is not UTF-8", "save the file as UTF-8") from None
    except (yaml.YAMLError, RecursionError) as error:
        text = " ".join(str(error).split())[:200]
        raise SpecError(f"{path} is not valid YAML: {text}", "write name: [numbers]") from None


_READERS: dict[str, Callable[[str, Sequence[str]], dict[str, NDArray[np.float64]]]] = {
    ".csv": _open_csv,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
}
