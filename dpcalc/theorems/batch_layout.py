"""How the records of a pass fall into steps: full batches, and perhaps a short one at the end."""

from __future__ import annotations

from typing import NamedTuple

from dpcalc.model.choices import LastBatch
from dpcalc.numerics.floats import up


class Layout(NamedTuple):
    """A pass over ``records``: ``full`` batches of ``size``, then a short one of ``short`` records (0: there is none).

    The gradient sum of a full batch is divided by ``size``, that of the short one by ``divisor``.
    """

    records: int
    size: int
    full: int
    short: int
    divisor: int

    @property
    def held(self) -> int:
        """The number of records in a full batch: the smaller of ``size`` and ``records``."""
        return min(self.size, self.records)

    @property
    def after(self) -> int:
        """The number of steps after the last full batch: 1 if there is a short batch, else 0."""
        return int(self.short > 0)

    @property
    def steps(self) -> int:
        """The number of steps of the pass."""
        return self.full + self.after

    @property
    def heavy(self) -> float:
        """The weight of a record in the short batch relative to a full one, rounded up; at least 1."""
        return up(self.size / self.divisor, 1.0) if self.short and self.divisor < self.size else 1.0


def layout(records: int, batch_size: int, last_batch: LastBatch) -> Layout:
    """Return the layout of a pass; ``last_batch`` is own (divided by its own size), nominal or drop."""
    if batch_size >= records:
        nominal = last_batch == LastBatch.NOMINAL and batch_size > records
        return Layout(records, batch_size if nominal else records, 1, 0, 0)
    full, short = divmod(records, batch_size)
    return Layout(
        records,
        batch_size,
        full,
        0 if last_batch == LastBatch.DROP else short,
        short if last_batch == LastBatch.OWN else batch_size,
    )
