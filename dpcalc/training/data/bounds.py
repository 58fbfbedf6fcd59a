"""Records within their bounds; the result for a record depends on it and on public rules alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files.arrays import new_table
from dpcalc.training.data.ranges import Ranges, encode, settle
from dpcalc.training.data.tables import Table, empty

Array = NDArray[np.float64]

_BLOCK = 1 << 18  # cells of a block
_COLUMNS = 1 << 13  # numpy's buffer: squares of this many columns are summed at once
_TINY = 1e-140  # the least bound: squares of smaller ones lose their digits
_LARGE = 1e150  # the largest bound: squares of larger ones overflow
_USUAL = 1e-200, 1e280  # in this range, sums of squares neither over- nor underflow
_ROOM = 1e-12  # relative room between clipped rows and their bound: more than the rounding error


class Prepared(NamedTuple):
    """Records within their bounds, ready for training.

    Attributes:
        features: shape (n, d), C-contiguous; |x| <= feature_bound in every row.
        labels: shape (n,).
        counts: rows_clipped, labels_clipped and unreadable (cells without a finite number): they depend on the records,
            and no guarantee covers them.
    """

    features: Array
    labels: Array
    counts: Mapping[str, int]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of records and of columns."""
        rows, columns = self.features.shape
        return rows, columns


def blocks(rows: int, columns: int, cells: int = _BLOCK) -> Iterator[slice]:
    """Yield the rows of a table in blocks of at most this many cells, or one row."""
    step = max(1, cells // max(1, columns))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))


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
    2. A cell without a finite number becomes 0, which is the middle of a mapped range, unless the ranges define a
       replacement.
    3. Rows longer than B are scaled down to B: x min(1, B/|x|). With an intercept, a constant column of b B is
       appended, and the rest of a row is scaled down to sqrt(1 - b^2) B (in the 1-norm, (1 - b) B).
    4. Labels of two classes are +1 where the target is above 0, else -1; others are clipped to
       [-label_bound, label_bound].

    Args:
        table: as read.
        feature_bound: B > 0.
        label_bound: Y >= 0, or None for no clipping.
        signed: whether labels are to be +1 and -1.
        ranges: the affine map.
        intercept: whether to append the constant column.
        share: b, 0 < b < 1; by default the constant is as large as the bound on the rest: see `intercept_of`.
        norm: 1 or 2, of rows.
        uncentred: whether rows are scaled down to B despite a constant column, since they are centred later.

    Raises:
        SpecError: the bounds are too small or too large for double precision.
    """
    bounds = {"feature_bound": feature_bound, **({} if label_bound is None else {"label_bound": label_bound})}
    for name, most in bounds.items():
        if not most >= _TINY:
            raise SpecError(f"{name} is {most:g}: squares of less than {_TINY:g} lose their digits", "use other units")
        if most > _LARGE:
            raise SpecError(f"{name} is {most:g}: squares above {_LARGE:g} are no doubles", "use other units")
    constant = feature_bound * (share or intercept_of(1.0, norm)) if intercept else 0.0
    rest = feature_bound if uncentred else rest_of(feature_bound, constant, norm)
    rule = _Bounds(width_of(table, ranges), rest, constant, label_bound, signed, ranges, norm)
    cells = table.cells
    n, kept = len(cells), rule.columns
    # Rows overwrite those before them, except with levels, which need more memory.
    flat = (cells if kept <= cells.shape[1] else empty("the table with its levels", n, kept)).reshape(-1)
    labels = new_table("the labels", n, 1)[:, 0]
    counts = dict.fromkeys(("rows_clipped", "labels_clipped", "unreadable"), 0)
    for rows in blocks(n, rule.width, _BLOCK // 4):  # smaller blocks, since each is copied several times
        x, labels[rows], more = rule.kept(cells[rows])
        flat[rows.start * kept : rows.stop * kept] = x.reshape(-1)
        counts = {name: count + more[name] for name, count in counts.items()}
    return Prepared(flat[: n * kept].reshape(n, kept), labels, counts)


class Centre(NamedTuple):
    """The centring of rows that are mapped and bounded; it uses released numbers and the row alone.

    Attributes:
        shift: m, shape (d,).
        scale: s, from 0.02 to 1.
        rest: centred rows, without the constant column, are scaled down to this length.
        constant: the value of that column.
    """

    shift: Array
    scale: float
    rest: float
    constant: float

    def apply(self, rows: Array) -> None:
        """Change rows, shape (m, d + 1), whose last column is the constant one, in place."""
        columns = rows.shape[1]
        held = 1.0 - max(_ROOM, (columns + 9) * 2.0**-52)
        rows[:, :-1] -= self.shift
        rows /= self.scale
        rows[:, -1] = 0.0
        shorten(rows, lengths(rows, 2), self.rest * held)
        rows[:, -1] = self.constant * held


class _Bounds(NamedTuple):
    """The bounds of `prepared`, applied to each raw record by itself.

    Attributes:
        width: of a row with its levels and the target.
        rest: rows, without the constant column, are scaled down to this length.
        constant: the value of that column; 0 where there is none.
        label_bound, signed, ranges, norm: as in `prepared`.
    """

    width: int
    rest: float
    constant: float
    label_bound: float | None
    signed: bool
    ranges: Ranges | None
    norm: int

    @property
    def columns(self) -> int:
        """The number of features, with the constant one."""
        return self.width - (not self.constant)

    def kept(self, cells: Array) -> Prepared:
        """Return some records within their bounds.

        Args:
            cells: shape (m, raw columns), as read; they may be overwritten.
        """
        held = 1.0 - max(_ROOM, (self.width + 8) * 2.0**-52)
        labels = cells[:, -1].copy()
        within = self.columns == cells.shape[1] and cells.flags.c_contiguous and cells.flags.writeable
        x = cells if within else np.empty((len(cells), self.columns))
        x[:, self.width - 1 :] = 0.0  # the constant column comes last
        x[:, : self.width - 1], unreadable = encode(cells[:, :-1], self.ranges)
        size = lengths(x, self.norm)
        clipped = int(np.count_nonzero(size > self.rest))
        shorten(x, size, self.rest * held)
        if self.constant:
            x[:, -1] = self.constant * held
        if self.signed:
            unreadable += int(np.count_nonzero(~np.isfinite(labels)))
            labels, cut = np.where((labels > 0.0) & (labels < math.inf), 1.0, -1.0), 0
        else:
            interval = self.ranges.target if self.ranges else None
            unreadable += settle(labels, interval, self.label_bound or 1.0)
            most = math.inf if self.label_bound is None else self.label_bound
            cut = int(np.count_nonzero(np.abs(labels) > most))
            np.clip(labels, -most, most, out=labels)
        return Prepared(x, labels, {"rows_clipped": clipped, "labels_clipped": cut, "unreadable": unreadable})


def width_of(table: Table, ranges: Ranges | None) -> int:
    """Return the length of a row with its levels and the target."""
    raw = table.cells.shape[1] - 1
    return 1 + (raw if ranges is None else ranges.width(raw))


def intercept_of(feature_bound: float, norm: int = 2) -> float:
    """Return the default value of an intercept's column, which equals the bound on the rest of a row."""
    return feature_bound / (2.0 if norm == 1 else 2.0**0.5)


def rest_of(feature_bound: float, constant: float, norm: int = 2) -> float:
    """Return the largest length of a row beside a constant column, so that the whole is within the bound."""
    b = constant / feature_bound
    return feature_bound * (1.0 - b if norm == 1 else math.sqrt((1.0 - b) * (1.0 + b)))


def lengths(x: Array, norm: int) -> Array:
    """Return the 1- or 2-norms of rows, without over- or underflow of squares."""
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
    """Return the sums of squares of rows, shape (m,), each independent of the other rows, bit for bit.

    numpy's order of summation changes with the number of rows if they are longer than its buffer. Blocks of columns fit
    the buffer.
    """
    if x.strides[1] != x.itemsize:
        x = np.ascontiguousarray(x)
    squares: Array = np.einsum("ij,ij->i", x[:, :_COLUMNS], x[:, :_COLUMNS])
    for first in range(_COLUMNS, x.shape[1], _COLUMNS):
        some = x[:, first : first + _COLUMNS]
        squares += np.einsum("ij,ij->i", some, some)
    return squares


def shorten(x: Array, size: Array, most: float) -> None:
    """Scale rows longer than ``most`` down to it, in place.

    Args:
        x: shape (m, d).
        size: their lengths, shape (m,).
        most: > 0.
    """
    outside = size > most
    far = outside & ~((size <= _LARGE) & (most >= 1.0 / _LARGE))
    if far.any():  # first to norm 1, since the ratio may be subnormal and inaccurate
        x[far] = x[far] / size[far, np.newaxis] * most
        outside &= ~far
    if outside.any():
        x *= (most / np.where(outside, size, most))[:, np.newaxis]


def aside_count(n: int, fraction: float) -> int:
    """Return the number of test records among n."""
    return 0 if fraction == 0.0 else max(1, round(fraction * n))


def split(data: Prepared, fraction: float, generator: np.random.Generator) -> tuple[Prepared, Prepared | None]:
    """Return training and test records; the latter are a uniformly random ``fraction`` of all.

    The training records keep their order, and the memory of ``data``.

    Raises:
        SpecError: fewer than 2 records are left for training.
    """
    n = len(data.labels)
    aside = aside_count(n, fraction)
    if n - aside < 2:
        raise SpecError(f"{n} records, {aside} of them for testing, are too few", "at least 2 are needed for training")
    if not aside:
        return data, None
    chosen = np.zeros(n, dtype=bool)
    chosen[generator.choice(n, aside, replace=False, shuffle=False)] = True
    test = _taken(data.features, chosen, new_table("the test records", aside, data.shape[1]))
    train = _taken(data.features, ~chosen, data.features)
    return (
        data._replace(features=train, labels=data.labels[~chosen]),
        data._replace(features=test, labels=data.labels[chosen]),
    )


def _taken(rows: Array, chosen: NDArray[np.bool_], out: Array) -> Array:
    """Return the chosen rows, in their order, in ``out``, which may be the memory of the rows."""
    count = 0
    for some in blocks(*rows.shape):
        block = rows[some][chosen[some]]
        out[count : count + len(block)] = block
        count += len(block)
    return out[:count]
