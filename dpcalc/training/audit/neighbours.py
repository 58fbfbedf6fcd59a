"""Two data sets of a user's own that differ in one record, for an audit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Order
from dpcalc.model.choices import Adjacency
from dpcalc.model.loss import Loss
from dpcalc.model.run import Run
from dpcalc.training.audit.attacks import Attack, Pair
from dpcalc.training.data.tables import Table, read
from dpcalc.training.run.plan import plan
from dpcalc.training.run.problem import Problem, verify

Array = NDArray[np.float64]


def pair_of_files(run: Run, loss: Loss, first: str, second: str) -> Pair:
    """Return the pair of two files.

    Args:
        run: as accounted.
        loss: that is trained.
        first, second: paths of tables, the target in the last column.

    Raises:
        SpecError: a file cannot be read, the columns of the two differ, or they do not differ in one record as the
            run's neighbours do, or a record is outside the bounds of the loss.
    """
    read_tables = [read(path, held=True) for path in (first, second)]
    if read_tables[0].names != read_tables[1].names:
        raise SpecError(
            "the columns of the data sets have other names, or another order", "let both files have the same header"
        )
    tables = [_cells(table) for table in read_tables]
    shape = tables[0].shape
    if tables[1].shape != shape:
        raise SpecError(f"the data sets have shapes {shape} and {tables[1].shape}", "they must differ in one record")
    row = _differing(tables[0], tables[1])
    planned = plan(run, shape[0], shape[1] - 1)
    if planned.order is Order.FIXED and run.typed("index") and run.index != row + 1:
        raise SpecError(
            f"the data sets differ in record {row + 1}, and the guarantee is of the one at position {run.index}",
            f"give --index {row + 1}, or leave it out",
        )
    one, other = (
        Problem(np.ascontiguousarray(cells[:, :-1]), np.ascontiguousarray(cells[:, -1]), loss) for cells in tables
    )
    for problem in (one, other):
        verify(problem, norm=planned.norm)
    if run.adjacency == Adjacency.NULL_RECORD and all(problem.features[row].any() for problem in (one, other)):
        raise SpecError(
            f"neighbours differ in a null record, and record {row + 1} is none in either data set",
            "let its features be 0 in one of them",
        )
    return Pair(Attack.CUSTOM, f"those of the files, record {row + 1} replaced", planned, one, other, None)


def _cells(table: Table) -> Array:
    assert isinstance(table.cells, np.ndarray)
    return table.cells


def _differing(first: Array, second: Array) -> int:
    """Return the row in which two tables differ.

    Raises:
        SpecError: they are the same, or differ in more rows.
    """
    rows = np.flatnonzero((first != second).any(axis=1))
    if len(rows) != 1:
        raise SpecError(f"the data sets differ in {len(rows)} records", "they must differ in exactly one")
    return int(rows[0])
