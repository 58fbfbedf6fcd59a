"""Records within their bounds: what becomes of a record depends on it and on public rules alone."""

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

_BLOCK = 1 << 18  # cells looked at together
_COLUMNS = 1 << 13  # whose squares are added at once: numpy's buffer
_TINY = 1e-140  # of a bound: the squares of smaller ones lose their digits
_LARGE = 1e150  # of the bounds: squares of larger ones are no doubles
_USUAL = 1e-200, 1e280  # of a row's square, which is then as exact as a sum can be
_ROOM = 1e-12  # by which clipped rows stay below their bound: more than rounding adds


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


def blocks(rows: int, columns: int, cells: int = _BLOCK) -> Iterator[slice]:
    """Yield which rows of a table are looked at together: so many cells at most, or one row."""
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
    # Rows are written over those before them, but for levels, which take more room.
    flat = (cells if kept <= cells.shape[1] else empty("the table with its levels", n, kept)).reshape(-1)
    labels = new_table("the labels", n, 1)[:, 0]
    counts = dict.fromkeys(("rows_clipped", "labels_clipped", "unreadable"), 0)
    for rows in blocks(n, rule.width, _BLOCK // 4):  # which takes some copies
        x, labels[rows], more = rule.kept(cells[rows])
        flat[rows.start * kept : rows.stop * kept] = x.reshape(-1)
        counts = {name: count + more[name] for name, count in counts.items()}
    return Prepared(flat[: n * kept].reshape(n, kept), labels, counts)


class Centre(NamedTuple):
    """What becomes of a row that was mapped and shortened; it depends on released numbers and on that row alone.

    Attributes:
        shift: m, shape (d,).
        scale: s, from 0.02 to 1.
        rest: the length to which a row is then shortened, the constant column apart.
        constant: what that column holds.
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
    """How a raw record is brought within its bounds: see `prepared`. What becomes of it depends on it alone.

    Attributes:
        width: of a row with its levels and the target.
        rest: the length to which rows are shortened, the constant column apart.
        constant: what that holds; 0 where there is none.
        label_bound, signed, ranges, norm: as there.
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
        """How many features there are, the constant one included."""
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


def shorten(x: Array, size: Array, most: float) -> None:
    """Shorten rows that are longer than ``most`` to that, in place.

    Args:
        x: shape (m, d).
        size: their lengths, shape (m,).
        most: > 0.
    """
    outside = size > most
    far = outside & ~((size <= _LARGE) & (most >= 1.0 / _LARGE))
    if far.any():  # first to norm 1: the ratio of the two may be no normal double, and then far off
        x[far] = x[far] / size[far, np.newaxis] * most
        outside &= ~far
    if outside.any():
        x *= (most / np.where(outside, size, most))[:, np.newaxis]


def aside_count(n: int, fraction: float) -> int:
    """Return how many of n records are set aside."""
    return 0 if fraction == 0.0 else max(1, round(fraction * n))


def split(data: Prepared, fraction: float, generator: np.random.Generator) -> tuple[Prepared, Prepared | None]:
    """Return training and test records: a uniformly random set of ``fraction`` of them is set aside.

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
    """Return some rows, in their order, in memory that may be that of the rows."""
    count = 0
    for some in blocks(*rows.shape):
        block = rows[some][chosen[some]]
        out[count : count + len(block)] = block
        count += len(block)
    return out[:count]
