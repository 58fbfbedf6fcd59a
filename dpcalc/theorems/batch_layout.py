"""How the records of a pass fall into steps: full batches, and perhaps a short one at the end."""

from __future__ import annotations

from typing import NamedTuple

from dpcalc.model.choices import LastBatch
from dpcalc.numerics.floats import up


class Positions(NamedTuple):
    """Steps of a pass in a row whose batches are alike; positions are counted from the end of the pass, 1 the last.

    Attributes:
        first: the position of the last of these steps.
        steps: how many they are; they stand at ``first`` .. ``first + steps - 1``.
        size: records in each of their batches.
        divisor: what the sum of a batch's gradients is divided by.
    """

    first: int
    steps: int
    size: int
    divisor: int

    @property
    def records(self) -> int:
        """How many records all these batches hold."""
        return self.steps * self.size


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
    def positions(self) -> tuple[Positions, ...]:
        """The steps of the pass in classes of like batches, from the end of the pass on."""
        full = Positions(1 + self.after, self.full, self.held, self.size)
        return (Positions(1, 1, self.short, self.divisor), full) if self.short else (full,)

    @property
    def dropped(self) -> int:
        """The number of records that the pass leaves out."""
        return self.records - sum(alike.records for alike in self.positions)

    def weight(self, alike: Positions) -> float:
        """Return what a record moves a step of these batches, relative to one divided by ``size``; rounded up."""
        return 1.0 if alike.divisor == self.size else up(self.size / alike.divisor, 1.0)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of all batches, the largest first."""
        return tuple(sorted({self.weight(alike) for alike in self.positions}, reverse=True))

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
