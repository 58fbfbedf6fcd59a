"""The records of each step, and the steps that are executed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.model.algorithm import Order
from dpcalc.model.quantities import Sampling
from dpcalc.training.run.plan import Plan

Index = NDArray[np.int64]

_MANY = 1 << 22  # from this many records on, indices are kept in int32, which halves the memory
_FEW = 64  # the largest batch that is drawn record by record
_ENTRIES = 1 << 16  # indices made at once, where no whole order is needed


class Step(NamedTuple):
    """A step of one run, or of several that take it together.

    Attributes:
        number: of the steps before it, including skipped ones.
        rows: indices of records: None for all; shape (size,) where all runs use the same; else (size, runs).
        size, divisor: of the batch.
        ends_pass: whether it is the last of a pass.
    """

    number: int
    rows: Index | None
    size: int
    divisor: int
    ends_pass: bool = False


class Stretch(NamedTuple):
    """Consecutive steps of equal size.

    Attributes:
        first: number of steps before these, including skipped ones.
        rows: indices of records, shape (steps, size); None where every step uses all.
        steps: the number of steps.
        size, divisor: of the batch.
        ends_pass: whether the last of them ends a pass.
    """

    first: int
    rows: Index | None
    steps: int
    size: int
    divisor: int
    ends_pass: bool

    def part(self, low: int, high: int) -> Stretch:
        """Return the steps from ``low`` to before ``high``, counted from the first of these."""
        rows = None if self.rows is None else self.rows[low:high]
        last = self.ends_pass and high == self.steps
        return self._replace(first=self.first + low, rows=rows, steps=high - low, ends_pass=last)

    def parts(self, most: int) -> Iterator[Stretch]:
        """Yield the steps in parts of at most ``most``."""
        return (self.part(low, min(low + most, self.steps)) for low in range(0, self.steps, most))

    def each(self) -> Iterator[Step]:
        """Yield the steps one by one."""
        for k in range(self.steps):
            rows = None if self.rows is None else self.rows[k]
            yield Step(self.first + k, rows, self.size, self.divisor, self.ends_pass and k + 1 == self.steps)


class Extent(NamedTuple):
    """The steps that are executed: ``begin`` .. ``end`` - 1, counted from 0."""

    begin: int
    end: int


def extent(plan: Plan, generator: np.random.Generator) -> Extent:
    """Draw the steps that are executed, for runs that skip a random prefix or stop at random."""
    skips, stops = extents(plan, generator, 1)
    return Extent(int(skips[0]), int(stops[0]))


def extents(plan: Plan, generator: np.random.Generator, count: int) -> tuple[Index, Index]:
    """Return independent draws of the number of skipped steps, and of the number of the last step, shape (count,)."""
    skips = np.zeros(count, dtype=np.int64)
    stops = np.full(count, plan.steps, dtype=np.int64)
    if plan.longest_skip:
        skips = generator.integers(0, plan.longest_skip, size=count, endpoint=True)
    if plan.stop_law is not None:
        law = np.cumsum(plan.stop_law)
        stops = np.minimum(np.searchsorted(law, generator.random(count) * law[-1], side="right"), plan.steps - 1) + 1
    elif plan.stops:
        stops = generator.integers(1, plan.steps, size=count, endpoint=True)
    return skips, stops


def stretches(plan: Plan, generator: np.random.Generator, within: Extent | None = None) -> Iterator[Stretch]:
    """Yield all steps of one run, in order."""
    begin, end = within or Extent(0, plan.steps)
    for stretch in _all(plan, generator):
        low, high = max(0, begin - stretch.first), min(stretch.steps, end - stretch.first)
        if low < high:
            yield stretch.part(low, high)
        if stretch.first + stretch.steps >= end:
            return


def _all(plan: Plan, generator: np.random.Generator) -> Iterator[Stretch]:
    if plan.order is Order.FULL:
        batch = plan.batches[0]
        yield Stretch(0, None, batch.steps, batch.size, batch.divisor, True)
    elif plan.order in (Order.SAMPLE, Order.DRAW):
        yield from _sampled(plan, generator)
    elif plan.sampling is not None:
        yield from _from_groups(plan, generator)
    else:
        order: Index | None = None
        offset = int(generator.integers(plan.records)) if plan.order is Order.ROTATION else 0
        for number in range(plan.passes):
            if plan.order is Order.SHUFFLE or (plan.order is Order.SHUFFLE_ONCE and order is None):
                order = _permutation(plan.records, generator)
            yield from _one_pass(plan, order, offset, number * plan.steps_per_pass)


def _permutation(records: int, generator: np.random.Generator) -> Index:
    """Return the numbers from 0 to ``records`` - 1 in a uniform order, the same for both types of integers."""
    if not _MANY <= records < 2**31:
        whole: Index = generator.permutation(records)
        return whole
    order: NDArray[Any] = np.arange(records, dtype=np.int32)
    generator.shuffle(order)
    return order


def _one_pass(plan: Plan, order: Index | None, offset: int, first: int) -> Iterator[Stretch]:
    """Yield the steps of a pass in this order of records (None: the order of the data, from record ``offset`` on)."""
    used = 0
    for number, (count, size, divisor) in enumerate(plan.batches, start=1):
        most = max(1, _ENTRIES // size)
        for done in range(0, count, most):
            steps = min(most, count - done)
            after = used + steps * size
            rows = (np.arange(used, after) + offset) % plan.records if order is None else order[used:after]
            ends = number == len(plan.batches) and done + steps == count
            yield Stretch(first, rows.reshape(steps, size), steps, size, divisor, ends)
            used, first = after, first + steps


def _sampled(plan: Plan, generator: np.random.Generator) -> Iterator[Stretch]:
    """Yield steps on fresh samples: single records with replacement, or batches without."""
    (total, size, divisor), records = plan.batches[0], plan.records
    most = max(1, _ENTRIES // size)
    for first in range(0, total, most):
        steps = min(most, total - first)
        if plan.order is Order.DRAW or size == 1:
            rows = generator.integers(0, records, size=(steps, size))
        elif _few(records, size):
            rows = np.ascontiguousarray(subsets(generator, records, size, steps).T)
        else:
            rows = np.empty((steps, size), dtype=np.int64)
            for row in rows:
                row[:] = generator.choice(records, size, replace=False)  # the order within a batch is uniform, too
        yield Stretch(first, rows, steps, size, divisor, first + steps == total)


def _from_groups(plan: Plan, generator: np.random.Generator) -> Iterator[Stretch]:
    """Yield steps on batches from groups of records, one group for each band; record i is in group i mod bands.

    A record of the step's group is drawn with bands times the overall probability, or it falls into one of its group's
    steps in every pass. The number of records in a batch is not public; ``size`` is the constant divisor of the sum.
    """
    steps, _, divisor = plan.batches[0]
    assert plan.strategy is not None
    bands = plan.strategy.bands
    rate = min(1.0, bands * divisor / plan.records)
    few = math.floor(rate * 2.0**53)  # rounded down, so that records are drawn with at most this rate
    group_of = np.arange(plan.records) % bands
    by_step = starts = group_of
    for number in range(plan.steps):
        if plan.sampling is Sampling.POISSON:
            group = np.arange(number % bands, plan.records, bands)
            rows = group[generator.integers(0, 1 << 53, size=len(group)) < few]
        else:
            if number % steps == 0:
                step_of = group_of + bands * generator.integers(0, steps // bands, size=plan.records)
                by_step = np.argsort(step_of, kind="stable")
                starts = np.searchsorted(step_of[by_step], np.arange(steps + 1))
            rows = by_step[starts[number % steps] : starts[number % steps + 1]]
        yield Stretch(number, rows[np.newaxis], 1, divisor, divisor, (number + 1) % steps == 0)


def own_steps(plan: Plan, generator: np.random.Generator, runs: int) -> Iterator[Step]:
    """Yield the steps of several runs, each with its own order."""
    if plan.order in (Order.SAMPLE, Order.DRAW):
        total, size, divisor = plan.batches[0]
        for number in range(total):
            if plan.order is Order.DRAW or size == 1:
                yield Step(number, generator.integers(0, plan.records, size=(size, runs)), size, divisor)
            else:
                yield Step(number, subsets(generator, plan.records, size, runs), size, divisor)
        return
    number, order = 0, np.empty((0, 0), dtype=np.int32)
    whole = np.arange(plan.records, dtype=np.int32 if plan.records < 2**31 else np.int64)
    offset = np.zeros(runs, dtype=np.int64)
    if plan.order is Order.ROTATION:
        offset = generator.integers(plan.records, size=runs)
    for _ in range(plan.passes):
        if plan.order is Order.SHUFFLE or (plan.order is Order.SHUFFLE_ONCE and not order.size):
            order = np.repeat(whole[np.newaxis], runs, axis=0)
            generator.permuted(order, axis=1, out=order)
        used = 0
        for count, size, divisor in plan.batches:
            for _ in range(count):
                if plan.order is Order.ROTATION:
                    rows = (offset + np.arange(used, used + size)[:, np.newaxis]) % plan.records
                else:
                    rows = order[:, used : used + size].T
                yield Step(number, rows, size, divisor)
                used, number = used + size, number + 1


def subsets(generator: np.random.Generator, records: int, size: int, count: int) -> Index:
    """Return independent uniform subsets of ``size`` of the numbers below ``records``, shape (size, count).

    Floyd's algorithm draws small subsets, all at once; larger ones are the head of a uniform order.
    """
    if not _few(records, size):
        whole = np.repeat(np.arange(records)[np.newaxis], count, axis=0)
        return generator.permuted(whole, axis=1, out=whole)[:, :size].T
    chosen = np.empty((size, count), dtype=np.int64)
    for k in range(size):
        newest = records - size + k
        drawn = generator.integers(0, newest, size=count, endpoint=True)
        already = (chosen[:k] == drawn).any(axis=0)
        chosen[k] = np.where(already, newest, drawn)
    return chosen


def _few(records: int, size: int) -> bool:
    """Return whether a batch is drawn record by record."""
    return size <= min(_FEW, records // 2)
