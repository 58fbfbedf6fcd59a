"""How the records of a pass are divided into steps: batches of one or two sizes, in the order of their steps.

Positions are counted from the end of a pass, since bounds depend on how many steps follow.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from dpcalc.errors import NotApplicable
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import LastBatch
from dpcalc.model.run import Run
from dpcalc.numerics.floats import up


class Positions(NamedTuple):
    """Consecutive steps of a pass with equal batches; positions are counted from the end of the pass, where 1 is the
    last.

    Attributes:
        first: the position of the last of these steps.
        steps: their number; they are at ``first`` .. ``first + steps - 1``.
        size: records in each of their batches.
        divisor: the number that a batch's gradient sum is divided by.
    """

    first: int
    steps: int
    size: int
    divisor: int

    @property
    def records(self) -> int:
        """The number of records in all these batches."""
        return self.steps * self.size


class Place(NamedTuple):
    """A record's step: its divisor, and the number of steps from it to the end of the pass."""

    divisor: int
    tail: int


class Layout(NamedTuple):
    """A pass over ``records``; ``positions`` are one or two classes of steps with equal batches, the last steps first.

    A theorem for every split reads ``positions``, ``steps``, ``dropped``, `weight` and `place`. The properties
    ``full``, ``after``, ``short`` and ``divisor`` describe full batches followed by at most one short one. That is
    every split except ``balanced`` and ``front``, for which they raise `NotApplicable` unless all batches are equal.
    """

    records: int
    positions: tuple[Positions, ...]

    @property
    def steps(self) -> int:
        """The number of steps of the pass."""
        return sum(alike.steps for alike in self.positions)

    @property
    def dropped(self) -> int:
        """The number of records that the pass leaves out."""
        return self.records - sum(alike.records for alike in self.positions)

    @property
    def least_divisor(self) -> int:
        """The smallest number that a batch's gradient sum is divided by."""
        return min(alike.divisor for alike in self.positions)

    @property
    def short_is_last(self) -> bool:
        """Whether all batches are equal, or only the last one is shorter."""
        last, *earlier = self.positions
        return not earlier or (last.steps == 1 and last.size < earlier[0].size)

    def place(self, index: int) -> Place:
        """Return the place of the record at the 1-based ``index`` in a fixed order.

        Raises:
            NotApplicable: the record is dropped.
        """
        behind = sum([alike.records for alike in self.positions]) - index
        if behind < 0:
            raise NotApplicable(
                f"the record at position {index} is dropped in every pass, and tells nothing",
                f"use --index between 1 and {self.records - self.dropped}",
            )
        for alike in self.positions:
            if behind < alike.records:
                return Place(alike.divisor, alike.first + behind // alike.size)
            behind -= alike.records
        raise ValueError(f"index is {index}; it must be at least 1")

    def latest(self) -> tuple[int, ...]:
        """Return the 1-based index of the last record of every class, which has the fewest later steps."""
        ends, end = [], self.records - self.dropped
        for alike in self.positions:
            ends.append(end)
            end -= alike.records
        return tuple(ends)

    @property
    def size(self) -> int:
        """The divisor of a full batch: the largest divisor, to which weights are relative."""
        return max(alike.divisor for alike in self.positions)

    def weight(self, alike: Positions) -> float:
        """Return how far a record of these batches moves its step, relative to a divisor of ``size``; rounded up."""
        return 1.0 if alike.divisor == self.size else up(self.size / alike.divisor, 1.0)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of all batches, the largest first."""
        return tuple(sorted({self.weight(alike) for alike in self.positions}, reverse=True))

    # --- full batches, and perhaps a short one at the end ---

    @property
    def _full(self) -> Positions:
        if not self.short_is_last:
            raise NotApplicable(
                "is proved for full batches with perhaps a short last one: --last-batch own, nominal or drop",
                f"use one of these, or a --batch-size that divides {self.records}",
            )
        return self.positions[-1]

    @property
    def full(self) -> int:
        """The number of full batches."""
        return self._full.steps

    @property
    def held(self) -> int:
        """The number of records in a full batch: the smaller of ``size`` and ``records``."""
        return self._full.size

    @property
    def after(self) -> int:
        """The number of steps after the last full batch: 1 if there is a short batch, otherwise 0."""
        return self.steps - self.full

    @property
    def short(self) -> int:
        """The number of records in the short batch; 0 if there is none."""
        return self.positions[0].size if self.after else 0

    @property
    def divisor(self) -> int:
        """The divisor of the short batch; 0 if there is none."""
        return self.positions[0].divisor if self.after else 0

    @property
    def heavy(self) -> float:
        """The weight of a record in the short batch relative to a full one, rounded up; at least 1."""
        return up(self.size / self.divisor, 1.0) if self.short and self.divisor < self.size else 1.0


@functools.lru_cache(maxsize=64)
def layout(records: int, batch_size: int, last_batch: LastBatch) -> Layout:
    """Return the layout of ``records`` in batches of ``batch_size``."""
    n, b = records, batch_size
    if b >= n:
        return Layout(n, (Positions(1, 1, n, b if last_batch == LastBatch.NOMINAL else n),))
    full, short = divmod(n, b)
    if not short or last_batch == LastBatch.DROP:
        return Layout(n, (Positions(1, full, b, b),))
    if last_batch == LastBatch.FRONT:
        return Layout(n, (Positions(1, full, b, b), Positions(full + 1, 1, short, short)))
    if last_batch == LastBatch.BALANCED:
        size, larger = divmod(n, full + 1)
        smaller = Positions(1 + larger, full + 1 - larger, size, size)
        return Layout(n, (Positions(1, larger, size + 1, size + 1), smaller) if larger else (smaller,))
    return Layout(n, (Positions(1, 1, short, short if last_batch == LastBatch.OWN else b), Positions(2, full, b, b)))


def worst_cases(run: Run) -> tuple[Run, ...]:
    """Return the run for each record that may be the worst one, if the order is fixed and no index is given.

    With batches of one size it is the last record. If an earlier batch is smaller than the last, the worst record
    depends on the theorem: those of the smaller batch move their step further, but more steps follow it.
    """
    n, b, last = run.records, run.batch_size, run.last_batch
    if run.source("index") is not Source.WORST_CASE or n is None or b is None or last is None or run.algorithm.single:
        return (run,)
    plan = layout(n, b, last)
    return (run,) if plan.short_is_last else tuple(run.changed(index=index) for index in plan.latest())
