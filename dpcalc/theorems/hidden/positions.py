"""A record's possible positions in a pass, in blocks: the rows of the certificates for a secret order.

Positions are counted *from the end* of a pass. Rows are grouped in blocks that count at their lower end, where mu is
largest.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from dpcalc.notions.profiles import Blocks
from dpcalc.numerics.floats import Array, distinct, np
from dpcalc.theorems.batch_layout import Layout

SINGLE = 1000  # single rows: all of a usual pass
_BLOCKS = 5000  # the most further blocks: an array operation still takes well below a millisecond
_LEAST_GROWTH = 0.002  # blocks that grow by less change delta by less than the search for a cut does


class Distances(Protocol):
    """The distances of the laws of two positions, as GDP parameters rounded up; hashable.

    Positions are integers counted from the end, sizes are those of a use there; all are arrays. Distances are
    non-increasing in every position and non-decreasing in every size.
    """

    def __hash__(self) -> int: ...

    def own(self, k: Array, size: Array) -> Array:
        """Return mu of the two data sets with the record at position k in both."""

    def pair(self, b: Array, early: Array, a: Array, late: Array) -> Array:
        """Return mu for uses at b and a < b of these sizes: the record at the one or at the other."""

    def unused(self) -> float:
        """Return mu for a record that is left out in both."""

    def among(self, several: Sequence[tuple[Any, int]]) -> Distances | None:
        """Return the distances of arrays that have so many numbers of each of several like this, one after another.

        None where there is no such: they are asked one by one, which takes longer.
        """


class Rows(NamedTuple):
    """The rows of a certificate in blocks, mu falling; arrays of shape (blocks,).

    Attributes:
        low: the lowest position from the end; 0 for a record that is left out.
        weight: records.
        size: of a use.
        mu: of two data sets with the record in this block in both.
        kind: the class of positions; -1 for a record that is left out.
        blocks: how positions are put together.
    """

    low: Array
    weight: Array
    size: Array
    mu: Array
    kind: Array
    blocks: Blocks

    def log_mean(self, terms: Array, level: float = 0.0) -> float:
        """Return ln of the sum of exp(terms) over the records, rounded up and at most 0."""
        peak = float(terms.max())
        value = peak + math.log(float(np.exp(terms - peak).sum())) - math.log(float(self.weight.sum()))
        # 1e-12 for the sums of some thousand terms; each term is good to 64 units, 1e-14, of itself and its level.
        return min(0.0, value + 1e-12 + 1e-14 * (abs(value) + level))


class Places(NamedTuple):
    """The places of a record: (first position, count, records, size of a use) of equal positions, and the number left
    out.

    Attributes:
        classes: positions from the end; sizes in the unit of the distances.
        out: records that are left out.
        swaps: what a use counts in a pair, as (factor where the record is, factor where its replacement is); the larger
            bound of all of these is taken. (1, 1) where both are real; (2, 1) and (1, 2) where one of them is null.
    """

    classes: tuple[tuple[int, int, int, float], ...]
    out: int = 0
    swaps: tuple[tuple[float, float], ...] = ((1.0, 1.0),)

    @property
    def records(self) -> int:
        """The number of records, including those left out."""
        return self.out + sum(records for _, _, records, _ in self.classes)

    def grouping(self, fewer: int) -> Blocks:
        """Return how positions are put together, ``fewer`` times fewer blocks than at most."""
        top, alone = max(first + count - 1 for first, count, _, _ in self.classes), SINGLE // fewer
        if top <= alone:
            return Blocks(top, 0.0)
        return Blocks(alone, max(_LEAST_GROWTH * fewer, math.log(top / alone) * fewer / _BLOCKS))

    def blocks(self, fewer: int) -> list[tuple[Array, Array, Array]]:
        """Return (lowest position, records, size) of blocks: single positions up to a point, then of equal ratio."""
        top, (alone, growth) = max(first + count - 1 for first, count, _, _ in self.classes), self.grouping(fewer)
        grid = np.arange(1, min(top, alone) + 1, dtype=np.int64)
        if top > alone:
            ends = np.exp(np.arange(0, math.log((top + 1.0) / (alone + 1.0)) + growth, growth)) * (alone + 1.0)
            grid = distinct(grid, np.rint(ends).astype(np.int64))
        blocks = []
        for first, count, records, size in self.classes:
            low = np.append(first, grid[(grid > first) & (grid < first + count)])
            counts = np.diff(np.append(low, first + count)).astype(float)
            blocks.append((low.astype(float), counts * (records // count), np.full(len(low), size)))
        return blocks


def places_of(plan: Layout, swaps: tuple[tuple[float, float], ...] = ((1.0, 1.0),)) -> Places:
    """Return a record's places in a pass; sizes are relative to a use in a full batch."""
    classes = tuple((alike.first, alike.steps, alike.records, plan.weight(alike)) for alike in plan.positions)
    return Places(classes, plan.dropped, swaps)


@functools.lru_cache(maxsize=32)
def _grid(places: Places, fewer: int) -> Rows:
    """Return all blocks in the order of their positions, mu not known, without records that are left out."""
    blocks = places.blocks(fewer)
    low, weight, size = (np.concatenate(part) for part in zip(*blocks, strict=True))
    kind = np.repeat(np.arange(len(blocks)), [len(part[0]) for part in blocks]).astype(float)
    return Rows(low, weight, size, np.zeros(len(low)), kind, places.grouping(fewer))


def _sorted(grid: Rows, out: int, distances: Distances, mu: Array) -> Rows:
    """Return the rows whose blocks have these mu, with the records that are left out."""
    low, weight, size, _, kind, blocks = grid
    if out:
        left_out = ((low, 0.0), (weight, out), (size, 0.0), (kind, -1.0))
        low, weight, size, kind = (np.append(part, last) for part, last in left_out)
        mu = np.append(mu, distances.unused())
    order = np.argsort(-mu, kind="stable")
    return Rows(low[order], weight[order], size[order], mu[order], kind[order], blocks)


@functools.lru_cache(maxsize=128)
def rows_of(places: Places, distances: Distances, fewer: int) -> Rows:
    """Return the rows in blocks, ``fewer`` times fewer of them."""
    grid = _grid(places, fewer)
    return _sorted(grid, places.out, distances, distances.own(grid.low, grid.size))


@functools.lru_cache(maxsize=8)
def rows_of_all(places: Places, several: tuple[Distances, ...], fewer: int) -> list[Rows]:
    """Return the rows of each of several distances."""
    grid, count = _grid(places, fewer), len(several)
    together = several[0].among([(distances, len(grid.low)) for distances in several]) if count > 1 else None
    if together is None:
        return [rows_of(places, distances, fewer) for distances in several]
    parts = np.split(together.own(np.tile(grid.low, count), np.tile(grid.size, count)), count)
    return [_sorted(grid, places.out, distances, mu) for distances, mu in zip(several, parts, strict=True)]
