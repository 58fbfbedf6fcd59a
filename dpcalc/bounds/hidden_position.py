"""Hidden position: one pass in a secret random order (Theorem H).

Let P_k be the law of the output given that the record sits at position k *counted from the end*, Q_m the law with its
replacement at m. Swapping the record at k with the one at m changes the maps of two steps and nothing else, so P_k and
Q_m are no further apart than two Gaussians at

    mu_kk^2 = mu_1^2/k,   mu_km^2 = mu_1^2 (1/a + 1/(b-a)) if b >= 2a, else 4 mu_1^2/b,   a = min(k,m), b = max(k,m).

For every pair of non-negative matrices a, M with row sums sum_m a_km = 1 and column sums sum_k M_km <= e^eps,

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
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dpcalc.bounds.steps import GAUSSIAN_NOISE, ONE_RELEASE, STEP_WITHIN
from dpcalc.notions import gaussian
from dpcalc.numerics.floats import UNIT, ratio_up
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.numerics.roots import greatest
from dpcalc.numerics.sums import log_sum_hockey_sticks
from dpcalc.registry import Requirement, bound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_SINGLE = 1000  # rows that are blocks of their own
_BLOCKS = 5000  # at most so many more
_UNITS = 2.0**60
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


class OnePass(NamedTuple):
    """The distances of one pass, with ``cross`` a factor on the square of the distance of a pair."""

    ratio: float
    cross: float

    def own(self, k: Array) -> Array:
        """Return mu_1/sqrt(k)."""
        import numpy as np

        mu: Array = self.ratio / np.sqrt(k) * (1.0 + 4.0 * UNIT)
        return mu

    def pair(self, a: Array, b: Array) -> Array:
        """Return mu_1 times the root of 1/a + 1/(b-a), or of 4/b."""
        import numpy as np

        squared = np.where(b >= 2.0 * a, 1.0 / a + 1.0 / (b - a), 4.0 / b) * self.cross
        mu: Array = self.ratio * np.sqrt(squared) * (1.0 + 16.0 * UNIT)
        return mu


class _Rows(NamedTuple):
    """The rows of the certificate in blocks: lowest position from the end, how many, mu there; shape (blocks,)."""

    low: Array
    size: Array
    mu: Array
    distances: Distances


def one_pass(*, steps: int, after: int, ratio: float, cross: float, epsilon: float) -> float:
    """Return an upper bound on ln delta for a position uniform among ``steps`` steps that ``after`` more steps follow.

    Args:
        steps: number of positions, 1 to 1e15.
        after: steps behind the last of them, 0 or 1.
        ratio: mu_1, the GDP parameter of one use with no later step.
        cross: factor on the squared distance between different positions: 1, or 4 where ``ratio`` speaks of a null
            record, since a swap still puts one real record in the place of another.
        epsilon: >= 0.

    Returns:
        ln delta, a certificate: the least over the cuts tried and the average of public positions.
    """
    ceiling = public_position(steps=steps, after=after, ratio=ratio, epsilon=epsilon)
    if steps == 1 or not 1e-90 < ratio < 1e90 or epsilon > 1e90:
        return ceiling
    return least_certificates(steps, after, [Cell(0.0, OnePass(ratio, cross), ceiling)], epsilon)


def public_position(*, steps: int, after: int, ratio: float, epsilon: float) -> float:
    """Return an upper bound on ln of the average of delta_G(eps; ratio/sqrt(k)) over k = after+1 .. after+steps."""
    if ratio > 1e90:
        return 0.0
    total = log_sum_hockey_sticks(epsilon, max(ratio, 1e-290), steps + after, 1 + after)
    value = total - math.log(steps)
    return min(0.0, value + 4.0 * UNIT * (abs(value) + math.log(steps)) + 1e-323)


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

    All cuts are tried for the first cell over a coarse grid of rows, then few over the fine one; for every other cell
    few cuts near the best of the first.

    Args:
        steps, after: as in `one_pass`.
        cells: each at most its ceiling, which is all that is used where mu is out of range.
        epsilon: >= 0.
    """
    total, near = -math.inf, 0
    found: dict[int, float]
    for number, cell in enumerate(cells):
        value = 0.0
        negligible = cell.log_weight + cell.ceiling < total - _NEGLIGIBLE
        if not negligible and steps > 1 and 1e-90 < _farthest(cell, after) < 1e90 and epsilon < 1e90:
            coarse, found = _rows(steps, after, cell.distances, 10), {}
            if number == 0:
                _all_cuts(found, coarse, epsilon, steps)
                near = _least(found)
                value = _refined(coarse, _rows(steps, after, cell.distances, 1), epsilon, steps, near)
            else:
                _cuts_near(found, coarse, epsilon, steps, near)
            value = min(value, min(found.values(), default=0.0))
        total = log_add_exp(total, cell.log_weight + min(cell.ceiling, value))
    return total


def _farthest(cell: Cell, after: int) -> float:
    import numpy as np

    return float(cell.distances.own(np.array([after + 1.0]))[0])


def _all_cuts(found: dict[int, float], rows: _Rows, epsilon: float, steps: int) -> None:
    last = len(rows.low) - 2
    step = max(1, last // 12)
    _try(found, rows, epsilon, steps, [*range(0, last + 1, step), last])
    while step > max(1, last // 600):
        step = max(1, step // 3)
        best = _least(found)
        _try(found, rows, epsilon, steps, [best + k * step for k in (-2, -1, 1, 2)])


def _refined(coarse: _Rows, fine: _Rows, epsilon: float, steps: int, least: int) -> float:
    """Return the least certificate of a few cuts over the fine grid around a good one of the coarse grid."""
    near = int(fine.low.searchsorted(coarse.low[least + 1])) - 1
    step = max(1, len(fine.low) // len(coarse.low))
    refined: dict[int, float] = {}
    _try(refined, fine, epsilon, steps, [near - step, near, near + step])
    for _ in range(6):
        best = _least(refined)
        if best - step in refined and best + step in refined:
            step //= 2
        if step == 0:
            break
        _try(refined, fine, epsilon, steps, [best - step, best + step])
    return min(refined.values(), default=0.0)


def _cuts_near(found: dict[int, float], rows: _Rows, epsilon: float, steps: int, near: int) -> None:
    step = 4
    _try(found, rows, epsilon, steps, [near - step, near, near + step])
    while step:
        best, before = _least(found), len(found)
        _try(found, rows, epsilon, steps, [best - step, best + step])
        if len(found) == before:
            step //= 2


def _least(found: Mapping[int, float]) -> int:
    return min(found, key=lambda cut: (found[cut], cut))


def _try(found: dict[int, float], rows: _Rows, epsilon: float, steps: int, cuts: Sequence[int]) -> None:
    for cut in cuts:
        if 0 <= cut <= len(rows.low) - 2 and cut not in found:
            found[cut] = _certificate(rows, epsilon, steps, cut)


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
    from dpcalc.numerics.arrays import log_hockey_sticks

    # Rows with their own column: receivers keep e^eps/gamma of themselves, donors spend gamma, the others e^eps.
    spent = np.where(receives | donates, level, epsilon)
    own = np.log(rows.size) + np.where(receives, epsilon - level, 0.0) + log_hockey_sticks(spent, rows.mu)
    amount, taker, giver = passed
    mu = rows.distances.pair(rows.low[taker], rows.low[giver])
    given = np.log(amount) + (epsilon - level[taker]) + log_hockey_sticks(level[taker], mu)
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
    found = greatest(balance, low, high, ulps=_LEVEL_ULPS)
    level: Array = rows.mu * (found * (1.0 - 1e-12) - half)
    return level


def _matched(rows: _Rows, epsilon: float, level: Array, receives: Any, donates: Any) -> tuple[Array, Any, Any] | None:
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


def _secret(values: Mapping[str, Any]) -> tuple[str, str] | None:
    if values.get("permutation") == "secret":
        return None
    return "the order is not promised to stay secret", "give --permutation secret if it does"


SECRET = Requirement("the order and its seed stay secret for ever (--permutation secret)", _secret)


@bound(
    "hidden_position.shuffled",
    title="Shuffled pass in a secret order, hidden position",
    gives="log_delta",
    algorithms=("shuffled",),
    reference="dpcalc",
    locator="hidden position: swaps of two records, and a common likelihood level for all positions",
    formula="delta(eps) = (1/n) sum_km a_km delta_G(ln(M_km/a_km); mu_km), sum_m a_km = 1, sum_k M_km <= e^eps",
    requires=(GAUSSIAN_NOISE, STEP_WITHIN),
    demands=(SECRET,),
    assumes=(
        "one pass in a random order, all orders equally likely and drawn without looking at the data (no buffer or "
        "sharded shuffle, no rotation)",
        "the order, the seed that made it, logs of single steps and every intermediate iterate stay secret for ever",
        "the sensitivity holds between all records that may occur, not only between the two compared",
        "every loss is convex and smooth, step_size <= 2/smoothness",
        "fresh Gaussian noise in every step",
        ONE_RELEASE,
    ),
    slack="within 10 % of the best of its kind for delta > 1e-9; a certificate at every value",
    coarse=True,
    unsolved=("records",),
)
def shuffled(
    *, records: int, batch_size: int, last_batch: str, sensitivity: float, noise: str, scale: float, step_size: float,
    smoothness: float, adjacency: str, epsilon: float,
) -> float:  # fmt: skip
    """Nobody who sees the last iterate knows where in the secret order the record fell, and a late position may use
    the likelihood budget of all early ones.

    Args:
        records, batch_size: n and b, records per step.
        last_batch: a short last batch: ``own`` (divided by its own size), ``nominal`` or ``drop``.
        sensitivity: gradient sensitivity Delta; between any two records twice that under ``null-record``.
        noise, scale: ``gaussian`` and its standard deviation.
        step_size, smoothness: eta <= 2/beta.
        adjacency: ``replace-one`` or ``null-record``.
        epsilon: >= 0.

    Returns:
        ln delta, rounded up.
    """
    full, short = (1, 0) if batch_size >= records else divmod(records, batch_size)
    short = 0 if last_batch == "drop" else short
    size = batch_size if last_batch == "nominal" else min(batch_size, records)
    ratio = ratio_up(sensitivity, size * scale)
    cross = 4.0 if adjacency == "null-record" else 1.0
    inner = one_pass(steps=full, after=int(short > 0), ratio=ratio, cross=cross, epsilon=epsilon)
    value = inner + math.log(full * min(size, records)) - math.log(records)
    if short:
        # Whether the record is in the short batch is given away: joint convexity.
        own = ratio_up(sensitivity, (short if last_batch == "own" else size) * scale)
        last = gaussian.log_delta(mu=own, epsilon=epsilon) + math.log(short) - math.log(records)
        value = log_add_exp(value, last)
    return min(0.0, value + UNIT * (8.0 * abs(value) + 8.0 * math.log(records + 1) + 8.0))
