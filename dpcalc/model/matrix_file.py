"""The matrix C of correlated noise from a file, and bounds on what one record adds to C G, for entries of any sign.

Files are untrusted: what is read is bounded (`dpcalc.files.reading`), and nothing is evaluated.
"""

from __future__ import annotations

import functools
import math
import os
from typing import IO

from dpcalc.errors import SpecError
from dpcalc.files import reading
from dpcalc.files.place import Place, discreetly, ending, shown_path
from dpcalc.files.reading import opened
from dpcalc.model.numbers import parse_number
from dpcalc.numerics.floats import UNIT, Array, down, np, up

_RANGE = 1e100
"""The largest entry is between 1/this and this: no square overflows, and what underflows is below the roundoff."""
_MOST_CHOICES = 4e9
"""The most sums (steps x steps x uses) that are compared, in some ten seconds; beyond it a looser bound is used."""
_HELP = "a lower-triangular matrix with a row for every step, of finite numbers, and none of 0 on its diagonal"


class Matrix:
    """A lower-triangular matrix C without zeros on its diagonal.

    Attributes:
        entries: shape (steps, steps).
        path: the file of the matrix.
    """

    def __init__(self, entries: Array, path: str) -> None:
        self.entries, self.path = entries, path

    def __str__(self) -> str:
        return self.path

    def __len__(self) -> int:
        """Return T, the number of rows."""
        return len(self.entries)

    @functools.cached_property
    def bands(self) -> int:
        """The least p such that C_ij = 0 for i - j >= p."""
        first = (self.entries != 0.0).argmax(axis=1)
        return int((np.arange(len(self)) - first).max()) + 1

    @functools.cached_property
    def falls(self) -> bool:
        """Whether C is Toeplitz with a first column that is non-negative and does not increase."""
        first = self.entries[:, 0]
        equal = np.array_equal(self.entries[1:, 1:], self.entries[:-1, :-1])
        return bool(equal and first[-1] >= 0.0 and (first[1:] <= first[:-1]).all())

    @functools.cached_property
    def _squares(self) -> Array:
        """The squared norms of the columns; they err by less than T + 1 units of roundoff."""
        squares: Array = np.einsum("ij,ij->j", self.entries, self.entries)
        return squares

    @functools.cached_property
    def column_norm(self) -> tuple[float, float]:
        """The largest norm of a column, rounded down and up."""
        norm = math.sqrt(float(self._squares.max()))
        return down(norm, len(self) / 2.0 + 4.0), up(norm, len(self) / 2.0 + 4.0)

    @functools.lru_cache(maxsize=8)  # noqa: B019 (a run has one matrix, and the search for its noise asks repeatedly)
    def sensitivity(self, uses: int, separation: int, *, repeats: bool) -> float:
        """Return a bound on the norm of what one record adds to C G, in clipping norms: sums of |C'C|, rounded up.

        Args:
            uses: k >= 1, the most steps that use the record.
            separation: b >= 1, the least distance from a use to the next one.
            repeats: whether the distance is exactly b.
        """
        if uses == 1:
            return self.column_norm[1]
        square = self._in_one_order(uses, separation) if repeats else self._apart(uses, separation)
        # Entries are bounds already; each sum has fewer than 2 k + 8 further roundings, halved by the root.
        return up(math.sqrt(square), uses + 8.0)

    def _in_one_order(self, uses: int, separation: int) -> float:
        """Return the largest sum of |C'C| over the uses s, s + b, ..., s + (k-1) b; attained if C is non-negative."""
        starts = range(max(min(separation, len(self)), len(self) - (uses - 1) * separation))
        columns = (self.entries[:, start::separation][:, :uses] for start in starts)
        return max(float(_gram(used).sum(axis=1).sum()) for used in columns)

    def _apart(self, uses: int, separation: int) -> float:
        """Return a bound on the sum of |C'C| over uses that are b apart or more.

        A use at i counts its diagonal entry and the largest row entries left and right of it that other uses can have.
        These are summed along the best uses. If C has at most b bands there are no other entries, and the sum is
        attained.
        """
        if self.bands <= separation:
            shares = self._squares * (1.0 + (len(self) + 4.0) * UNIT)
        else:
            gram = _gram(self.entries)
            shares = gram.diagonal() + _others(gram, uses, separation)
        best = np.zeros((len(self) + separation, uses + 1))  # [i, r]: of r uses at i or later
        for i in reversed(range(len(self))):
            best[i] = best[i + 1]
            np.maximum(best[i, 1:], shares[i] + best[i + separation, :-1], out=best[i, 1:])
        return float(best[0, -1])

    @functools.cached_property
    def inverse(self) -> Array:
        """C^-1, to nearest, with entries inf if C is numerically singular."""
        from scipy.linalg.lapack import dtrtri

        inverse: Array = dtrtri(self.entries, lower=1)[0]
        return inverse


def _gram(columns: Array) -> Array:
    """Return |C'C| of some columns, each entry rounded up."""
    gram = columns.T @ columns
    # A sum of T products errs by less than T + 2 units of |C|'|C|, and so does |C|'|C| itself.
    size = gram if columns.min() >= 0.0 else np.abs(columns).T @ np.abs(columns)
    bounds: Array = np.abs(gram) + (len(columns) + 8.0) * UNIT * size
    return bounds


def _others(gram: Array, uses: int, separation: int) -> Array:
    """Return a bound on the sum of k - 1 entries of each row, b apart from the diagonal and from each other."""
    steps = len(gram)
    if separation == 1 or float(steps) ** 2 * uses > _MOST_CHOICES:
        place = np.arange(steps)
        apart = np.where(abs(place[:, None] - place) >= separation, gram, 0.0)
        largest: Array = np.partition(apart, steps - uses + 1, axis=1)[:, steps - uses + 1 :].sum(axis=1)
        return largest
    right, left = _to_the_right(gram, uses, separation), _to_the_right(gram[::-1, ::-1], uses, separation)[::-1]
    sums: Array = np.max([left[:, uses - 1 - r] + right[:, r] for r in range(uses)], axis=0)
    return sums


_BLOCK = 256
"""Rows that are processed together: with the gaps behind them they take some ten megabytes for every use."""


def _to_the_right(gram: Array, uses: int, separation: int) -> Array:
    """Return [i, r]: the largest sum of r < k entries of row i at i + b or later, b apart from each other."""
    steps = len(gram)
    sums = np.zeros((steps, uses))
    for first in range(0, steps, _BLOCK):
        rows = gram[first : first + _BLOCK]
        later = np.zeros((separation, len(rows), uses))  # at j mod b: of entries at j or later
        last = np.zeros((len(rows), uses))
        for j in range(steps - 1, first + separation - 1, -1):
            behind = later[j % separation]
            chosen = last.copy()
            np.maximum(chosen[:, 1:], rows[:, j, None] + behind[:, :-1], out=chosen[:, 1:])
            later[j % separation] = last = chosen
            if j - separation - first < len(rows):
                sums[j - separation] = chosen[j - separation - first]
    return sums


# --- files ------------------------------------------------------------------------------------------------------------


def read_matrix(path: str) -> Matrix:
    """Return the matrix in a file: a two-dimensional .npy array, or a .csv of numbers without a header.

    Raises:
        SpecError: the file cannot be read, or has no lower-triangular matrix of at most `reading.MATRIX_STEPS` rows.
    """
    shown = shown_path(path)
    readers = {".npy": _read_npy, ".csv": _read_csv}
    if ending(path) not in readers:
        raise SpecError(f"{shown}: unknown kind of matrix file", "use a name that ends in " + ", ".join(readers))
    with discreetly(path), opened(path) as stream:
        if os.fstat(stream.fileno()).st_size > reading.MATRIX_BYTES:
            raise SpecError(f"{shown} is larger than {reading.MATRIX_BYTES} bytes", _LARGEST)
        return Matrix(_checked(shown, readers[ending(path)](shown, stream)), path)


_LARGEST = f"matrices of up to {reading.MATRIX_STEPS} rows are read"


def _read_npy(shown: str, stream: IO[bytes]) -> Array:
    from dpcalc.files.arrays import damaged_as, map_array

    with damaged_as(SpecError(f"{shown} is not a readable numpy file of plain numbers", "save it with numpy.save")):
        array = map_array(stream)
    if array.ndim != 2 or max(array.shape) > reading.MATRIX_STEPS:
        raise SpecError(f"{shown} has an array of shape {array.shape}", f"{_HELP}; {_LARGEST}")
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > np.dtype(np.float64).itemsize:
        raise SpecError(f"{shown} has values of type {array.dtype.name}", "save it as float64, as noise is drawn by it")
    return np.array(array, dtype=np.float64, order="C")


def _read_csv(shown: str, stream: IO[bytes]) -> Array:
    from dpcalc.files.lines import text_blocks

    rows: list[Array] = []
    for block in text_blocks(shown, stream, reading.MATRIX_BYTES):
        for number, line in block.data():
            rows.append(_row(Place(shown, number), line, len(rows[0]) if rows else None))
            if max(len(rows), len(rows[0])) > reading.MATRIX_STEPS:
                raise SpecError(f"{shown} has more than {reading.MATRIX_STEPS} rows or columns", _LARGEST)
    return np.array(rows) if rows else np.zeros((0, 0))


def _row(place: Place, line: str, columns: int | None) -> Array:
    """Return the numbers of a line.

    Raises:
        FileError: their count is wrong, or one is not a number.
    """
    cells = line.split(",")
    if columns is not None and len(cells) != columns:
        raise place.error(f"{len(cells)} numbers, and the first row has {columns}", _HELP)
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        for number, cell in enumerate(cells, start=1):
            try:
                parse_number(cell.strip())
            except SpecError as error:
                raise place._replace(column=number).error(error.message, _HELP, discreet="not a number") from None
        return np.array([parse_number(cell.strip()) for cell in cells])


def _checked(shown: str, entries: Array) -> Array:
    """Return the entries, read-only.

    Raises:
        SpecError: the matrix is not lower-triangular without zeros on its diagonal.
    """
    largest = float(np.abs(entries).max(initial=0.0))
    refusals = (
        (not entries.size, "has no rows"),
        (entries.shape[0] != entries.shape[1], f"has {entries.shape[0]} rows and {entries.shape[1]} columns"),
        (not math.isfinite(largest), "has an entry that is not finite"),
        (bool(np.triu(entries, 1).any()), "has entries above the diagonal"),
        (not entries.diagonal().all(), "has a 0 on the diagonal"),
        (not 1.0 / _RANGE <= largest <= _RANGE, "has no entry as large as 1e-100, or one above 1e100"),
    )
    for refused, why in refusals:
        if refused:
            raise SpecError(f"{shown} {why}", f"give {_HELP}")
    entries.setflags(write=False)
    return entries
