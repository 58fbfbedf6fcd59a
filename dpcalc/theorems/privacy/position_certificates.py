"""Upper bounds on delta for a record whose position stays secret, each with a certificate that is easy to check.

Let P_k be the law of the output given that the record sits at position k *counted from the end*, Q_m the law with its
replacement at m, and let P_k and Q_m be no further apart than two Gaussians at mu_km (`Distances`). For every pair of
non-negative matrices a, M with row sums sum_m a_km = 1 and column sums sum_k M_km <= e^eps,

    delta(eps) <= (1/n) sum_km a_km delta_G(ln(M_km/a_km); mu_km).

*Proof.* e^eps Q >= (1/n) sum_km M_km Q_m, so E(P||Q) <= (1/n) sum_k int (P_k - sum_m M_km Q_m)_+, and the positive part
of sum_m (a_km P_k - M_km Q_m) is at most the sum of the positive parts.

Any (a, M) is a certificate. The one used here gives all rows one likelihood level: ln gamma_k = mu_k z - mu_k^2/2. Late
rows (k up to a cut) need more than e^eps and receive gamma_k - e^eps from early rows, which need less; the largest k
draws first, from the farthest donor. Rows are grouped in blocks that count at their lower end, where mu is largest.
Amounts are matched in whole numbers, needs rounded up and supplies down, so that the constraints hold exactly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.numerics.roots import greatest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Blocks = NDArray[np.intp]

_SINGLE = 1000  # rows that are blocks of their own
_BLOCKS = 5000  # at most so many more
_UNITS = 2.0**60  # so many make up all that the donors have
_NEGLIGIBLE = 12.0  # cells below exp(-12) of the others count at their ceiling
_LEVEL_ULPS = 1 << 20  # the common level is found to 2e-10; a little too low is on the safe side


class Distances(Protocol):
    """How far apart the laws of two positions are, as GDP parameters rounded up; hashable.

    Positions are whole numbers from the end; both methods take arrays of them and do not increase in any.
    """

    def __hash__(self) -> int: ...

    def own(self, k: Array) -> Array:
        """Return mu of the two data sets with the record at position k in both."""

    def pair(self, a: Array, b: Array) -> Array:
        """Return mu for the record at one of the positions a < b in the one and at the other in the other."""


class _Rows(NamedTuple):
    """The rows of the certificate in blocks: lowest position from the end, how many, mu there; shape (blocks,)."""

    low: Array
    size: Array
    mu: Array
    distances: Distances


@functools.lru_cache(maxsize=64)
def _rows(steps: int, after: int, distances: Distances, fewer: int) -> _Rows:
    """Return the rows in blocks of their own up to a point, then of equal ratio; ``fewer`` times fewer of both."""
    import numpy as np

    top, alone = after + steps, _SINGLE // fewer
    starts = [np.arange(after + 1, min(top, alone) + 1, dtype=np.int64)]
    if top > alone:
        growth = max(0.002 * fewer, math.log(top / alone) * fewer / _BLOCKS)
        ends = np.exp(np.arange(0, math.log((top + 1.0) / (alone + 1.0)) + growth, growth)) * (alone + 1.0)
        grid = np.unique(np.rint(ends).astype(np.int64))
        starts.append(grid[grid <= top])
    low = np.concatenate(starts)
    count = np.diff(np.append(low, top + 1))
    at = low.astype(float)
    return _Rows(at, count.astype(float), distances.own(at), distances)


class Cell(NamedTuple):
    """A part of a mixture: ln of its weight, the distances in it, and ln delta there without a certificate."""

    log_weight: float
    distances: Distances
    ceiling: float


def least_certificates(steps: int, after: int, cells: Sequence[Cell], epsilon: float) -> float:
    """Return ln of the weighted sum of the least certificates found, for a position uniform on after+1 .. after+steps.

    Cuts of all sizes are tried for the first cell over a coarse grid of rows, then few over the fine one; for every
    other cell few cuts near the best of the first.

    Args:
        steps: number of positions, 1 to 1e15.
        after: steps behind the last of them.
        cells: each at most its ceiling, which is all that is used where mu is out of range.
        epsilon: >= 0.
    """
    total, near = -math.inf, 0
    for number, cell in enumerate(cells):
        value = min(0.0, cell.ceiling)
        likely = cell.log_weight + cell.ceiling >= total - _NEGLIGIBLE
        if likely and steps > 1 and 1e-90 < _farthest(cell, after) < 1e90 and epsilon < 1e90:
            coarse = _Cuts(_rows(steps, after, cell.distances, 10), steps, epsilon)
            if number == 0:
                coarse.scan()
                near = coarse.best
                fine = _Cuts(_rows(steps, after, cell.distances, 1), steps, epsilon)
                fine.refine(coarse)
                value = min(value, fine.least)
            else:
                coarse.descend(near)
            value = min(value, coarse.least)
        total = log_add_exp(total, cell.log_weight + value)
    return total


def _farthest(cell: Cell, after: int) -> float:
    """Return mu at the last position, the largest of the cell."""
    import numpy as np

    return float(cell.distances.own(np.array([after + 1.0]))[0])


class _Cuts:
    """The certificates of some cuts between the rows that receive and those that donate.

    Attributes:
        rows: the grid.
        last: the last cut; the first is 0.
        tried: cut -> ln of its certificate.
    """

    def __init__(self, rows: _Rows, steps: int, epsilon: float) -> None:
        self.rows, self.last = rows, len(rows.low) - 2
        self.tried: dict[int, float] = {}
        self._steps, self._epsilon = steps, epsilon

    @property
    def best(self) -> int:
        """The cut of the least certificate so far."""
        return min(self.tried, key=lambda cut: (self.tried[cut], cut))

    @property
    def least(self) -> float:
        """ln of the least certificate so far, at most 0."""
        return min(self.tried.values(), default=0.0)

    def attempt(self, *cuts: int) -> None:
        """Work out the certificates of those of these cuts that are new."""
        for cut in cuts:
            if 0 <= cut <= self.last and cut not in self.tried:
                self.tried[cut] = _certificate(self.rows, self._epsilon, self._steps, cut)

    def scan(self) -> None:
        """Try cuts over the whole grid, and ever closer ones around the best."""
        step = max(1, self.last // 12)
        self.attempt(*range(0, self.last + 1, step), self.last)
        while step > max(1, self.last // 600):
            step = max(1, step // 3)
            best = self.best
            self.attempt(*(best + k * step for k in (-2, -1, 1, 2)))

    def descend(self, near: int) -> None:
        """Walk from a good cut to one that is better than both its neighbours."""
        step = 4
        self.attempt(near - step, near, near + step)
        while step:
            best, before = self.best, len(self.tried)
            self.attempt(best - step, best + step)
            if len(self.tried) == before:
                step //= 2

    def refine(self, coarse: _Cuts) -> None:
        """Try a few cuts around the best one of a coarser grid."""
        near = int(self.rows.low.searchsorted(coarse.rows.low[coarse.best + 1])) - 1
        step = max(1, len(self.rows.low) // len(coarse.rows.low))
        self.attempt(near - step, near, near + step)
        for _ in range(6):
            best = self.best
            if best - step in self.tried and best + step in self.tried:
                step //= 2
            if step == 0:
                break
            self.attempt(best - step, best + step)


def _certificate(rows: _Rows, epsilon: float, steps: int, cut: int) -> float:
    """Return ln of the certificate whose receivers are among the blocks 0..cut; 0 where there is none."""
    import numpy as np

    level = _level(rows, epsilon, cut)
    if level is None:
        return 0.0
    index = np.arange(len(rows.mu))
    receives = (index <= cut) & (level > epsilon)
    donates = (index > cut) & (level < epsilon)
    passed = _matched(rows, epsilon, level, receives, donates)
    if passed is None:
        return 0.0
    from dpcalc.numerics.normal_arrays import log_hockey_stick_up

    # Rows with their own column: receivers keep e^eps/gamma of themselves, donors spend gamma, the others e^eps.
    spent = np.where(receives | donates, level, epsilon)
    own = np.log(rows.size) + np.where(receives, epsilon - level, 0.0) + log_hockey_stick_up(spent, rows.mu)
    amount, taker, giver = passed
    mu = rows.distances.pair(rows.low[taker], rows.low[giver])
    given = np.log(amount) + (epsilon - level[taker]) + log_hockey_stick_up(level[taker], mu)
    terms = np.concatenate((own, given))
    peak = float(terms.max())
    value = peak + math.log(float(np.exp(terms - peak).sum())) - math.log(steps)
    return min(0.0, value + 1e-12 + 1e-14 * (abs(value) + float(np.abs(level).max())))


def _level(rows: _Rows, epsilon: float, cut: int) -> Array | None:
    """Return ln gamma of every block at the highest common level at which the donors can meet the need."""
    import numpy as np

    half = 0.5 * rows.mu
    equal = epsilon / rows.mu + half  # the level at which ln gamma = eps
    low, high = float(equal[: cut + 1].min()), float(equal[cut + 1 :].max())
    if not low < high:
        return None

    def balance(z: float) -> float:
        excess = np.expm1(np.minimum(rows.mu * (z - half) - epsilon, 600.0)) * rows.size
        return float(np.maximum(excess[: cut + 1], 0.0).sum() + np.minimum(excess[cut + 1 :], 0.0).sum())

    high = min(high, low + (epsilon + 710.0 + math.log(float(rows.size.sum()))) / float(rows.mu[0]) + float(half[0]))
    if balance(low) > 0.0:
        return None
    highest = greatest(balance, low, high, ulps=_LEVEL_ULPS)
    level: Array = rows.mu * (highest * (1.0 - 1e-12) - half)
    return level


def _matched(
    rows: _Rows, epsilon: float, level: Array, receives: Flags, donates: Flags
) -> tuple[Array, Blocks, Blocks] | None:
    """Return (amount in units of e^eps, receiving block, giving block) of every transfer, amounts rounded up."""
    import numpy as np

    takers = np.flatnonzero(receives)[::-1]
    givers = np.flatnonzero(donates)[::-1]
    if not len(takers) or not len(givers):
        return None
    need = rows.size[takers] * np.expm1(level[takers] - epsilon)
    supply = rows.size[givers] * -np.expm1(level[givers] - epsilon)
    scale = _UNITS / float(supply.sum())
    wanted = np.cumsum(np.ceil(need * (scale * (1.0 + 1e-14))).astype(np.int64))
    offered = np.cumsum(np.floor(supply * (scale * (1.0 - 1e-14))).astype(np.int64))
    if not 0 < wanted[-1] <= offered[-1]:
        return None
    ends = np.unique(np.concatenate((wanted, offered[offered < wanted[-1]])))
    starts = np.concatenate(([0], ends[:-1]))
    amount = (ends - starts) * ((1.0 + 8.0 * UNIT) / scale)
    taker = takers[np.searchsorted(wanted, starts, side="right")]
    giver = givers[np.searchsorted(offered, starts, side="right")]
    return amount, taker, giver
