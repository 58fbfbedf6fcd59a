"""The map from raw columns to features: public intervals, levels of words, and replacements of missing cells."""

from __future__ import annotations

from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files import reading
from dpcalc.files.lines import read_rows
from dpcalc.files.reading import opened
from dpcalc.model.numbers import parse_number
from dpcalc.training.data.cells import Levels
from dpcalc.training.data.intervals import is_interval, why_not
from dpcalc.training.data.tables import Table, unquoted

Array = NDArray[np.float64]

_HUGE = 1e300  # mapped values are clipped to this, so that none overflows


class Ranges(NamedTuple):
    """The user's map from raw rows to features: the interval [low_j, high_j] of column j is mapped to [-1, 1].

    Attributes:
        low, high: shape (d,); without them numbers stay as they are.
        target: the interval of the target that is mapped to [-Y, Y], if it is mapped.
        levels: for each column the rule of its words, or None if it holds numbers; empty if all columns do.
        missing: for each column the number that replaces a missing one, or None for the middle of its interval; empty
            if it is the middle everywhere.
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
        """Return the number of features of this number of raw columns."""
        return columns + sum(len(rule.levels) - 1 for rule in self.words.values())

    @property
    def features(self) -> tuple[Array, Array] | None:
        """The intervals of the features, if they are mapped."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def read_ranges(path: str, table: Table) -> Ranges:
    """Return the map in a CSV file with the header ``column,low,high`` and a row for every feature.

    A row for the target is optional.

    Raises:
        SpecError: the file cannot be read, a feature is missing, or a name is unknown.
    """
    with opened(path) as stream, unquoted(path):
        return _ranges(path, stream, table)


def _ranges(path: str, stream: IO[bytes], table: Table) -> Ranges:
    lines = read_rows(stream, reading.RANGES_BYTES)
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
        hint = f"give a line for every feature, or --ignore {missing[0]!r}"
        raise SpecError(f"{path} has no range for {missing[0]!r}", hint)
    pairs = np.array([ranges[name] for name in table.names[:-1]])
    return Ranges(pairs[:, 0].copy(), pairs[:, 1].copy(), ranges.get(table.names[-1]))


def encode(rows: Array, ranges: Ranges | None) -> tuple[Array, int]:
    """Return the features of raw rows, and the number of their cells that were not finite or no level.

    Training and prediction both use it. The features of a row depend on that row and the ranges alone. Rows are not
    scaled down here.

    Args:
        rows: shape (m, columns), nan for unreadable cells, places of levels for words; overwritten.
        ranges: the map; None for none.

    Returns:
        Shape (m, features), in the same memory if no column has levels. The levels of a column are adjacent and in
        order, at its place.
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
    """Map an interval to [-bound, bound] and non-finite values to 0, in place; return the number of the latter."""
    missing = ~np.isfinite(values)
    values[missing] = np.nan
    if interval is not None:
        middle, half = middles_and_halves(*interval)
        with np.errstate(over="ignore"):
            values -= middle
            values /= half
            values *= bound
    np.clip(values, -_HUGE, _HUGE, out=values)
    values[missing] = 0.0
    return int(np.count_nonzero(missing))


def middles_and_halves(low: Any, high: Any) -> tuple[Any, Any]:
    """Return the middles of intervals, and half their widths."""
    return 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
