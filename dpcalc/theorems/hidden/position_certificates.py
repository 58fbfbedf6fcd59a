"""Upper bounds on delta for a record whose position stays secret, each with a certificate that is easy to check.

The steps of a pass fall into positions, counted *from the end*; a record is at position k with probability w_k, its
share of the records, and perhaps left out, which counts as a position too. Let P_k be the law of the output given that
the record is at k, Q_m the law with its replacement at m, and let P_k and Q_m be no further apart than two Gaussians at
mu_km (`Distances`). For every pair of non-negative matrices R, M with row sums sum_m R_km = 1 and column sums
sum_k w_k M_km <= e^eps w_m,

    delta(eps) <= sum_km w_k R_km delta_G(ln(M_km/R_km); mu_km).

*Proof.* e^eps Q >= sum_km w_k M_km Q_m, so E(P||Q) <= sum_k w_k int (P_k - sum_m M_km Q_m)_+, and the positive part
of sum_m (R_km P_k - M_km Q_m) is at most the sum of the positive parts.

Any (R, M) is a certificate. The one used here gives all rows one likelihood level: ln gamma_k = mu_k z - mu_k^2/2. Rows
of large mu (up to a cut) need more than e^eps and receive gamma_k - e^eps from rows of small mu, which need less; the
smallest receiving mu draws first, from the smallest mu of all. Rows are grouped in blocks that count at their lower
end, where mu is largest. Amounts are matched in whole numbers, needs rounded up and supplies down, so that the
constraints hold exactly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dpcalc.notions.certificate import Blocks, Matching
from dpcalc.numerics.arrays import Array, distinct, np
from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.theorems.batch_layout import Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Picked = NDArray[np.intp]
    Chosen = tuple["_Cuts | None", ...]

_SINGLE = 1000  # rows that are blocks of their own
_BLOCKS = 5000  # at most so many more
_FEWER_ON_CURVES = 4  # so many times fewer rows where a whole curve is wanted
_UNITS = 2.0**60  # so many make up all that the donors have
_NEGLIGIBLE = 7.0  # cells below exp(-7) of the others count as if the position were known
_SECANTS, _SAME, _NEAR, _QUADRATIC = 8, 1e-14, 1e-4, 1e-6
_FARTHEST = 200.0  # of ln epsilon
MOST = math.exp(_FARTHEST)
_FEW = 24  # cuts are all tried
_STEPS = 40  # in the search for a cut, at most
_ROUGHLY, _ENOUGH = 1e-4, 1e-7  # shares of delta that another cut has to promise
_TRUSTED = 100.0  # a parabola is, where the three points differ by so many times the least gain wanted
_FLAT = 1e-3  # a parabola is trusted alone, where the three points differ by so much
_LEVEL_WITHIN = 1e-12  # the common level is found so closely; a little too low is on the safe side
_LEVEL_STEPS, _STEPS_NEAR = 100, 6
_HAIR_LESS = 1.0 - 1e-12


class Distances(Protocol):
    """How far apart the laws of two positions are, as GDP parameters rounded up; hashable.

    Positions are whole numbers from the end, sizes those of a use there; all come as arrays. Distances do not increase
    in any position, nor decrease in any size.
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


class Places(NamedTuple):
    """Where a record may be: (first position, count, records, size of a use) of like positions, and how many are out.

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
    def steps(self) -> int:
        """How many positions there are."""
        return sum(count for _, count, _, _ in self.classes)

    @property
    def records(self) -> int:
        """How many records there are, those left out included."""
        return self.out + sum(records for _, _, records, _ in self.classes)


def places_of(plan: Layout, swaps: tuple[tuple[float, float], ...] = ((1.0, 1.0),)) -> Places:
    """Return where a record may be in a pass; sizes are relative to a use in a full batch."""
    classes = tuple((alike.first, alike.steps, alike.records, plan.weight(alike)) for alike in plan.positions)
    return Places(classes, plan.dropped, swaps)


class _Rows(NamedTuple):
    """The rows of the certificate in blocks, mu falling: lowest position from the end (0: left out), records, size of a
    use, mu, class of positions (-1: left out); shape (blocks,).
    """

    low: Array
    weight: Array
    size: Array
    mu: Array
    kind: Array
    blocks: Blocks


@functools.lru_cache(maxsize=128)
def _rows(places: Places, distances: Distances, fewer: int) -> _Rows:
    """Return the rows in blocks, ``fewer`` times fewer of them."""
    low, _, size, _ = _all_blocks(places, fewer)
    return _sorted(places, distances, fewer, distances.own(low, size))


@functools.lru_cache(maxsize=8)
def _rows_of_all(places: Places, several: tuple[Distances, ...], fewer: int) -> list[_Rows]:
    """Return the rows of each of several distances."""
    low, _, size, _ = _all_blocks(places, fewer)
    together = several[0].among([(each, len(low)) for each in several]) if len(several) > 1 else None
    if together is None:
        return [_rows(places, each, fewer) for each in several]
    mu = together.own(np.tile(low, len(several)), np.tile(size, len(several)))
    parts = np.split(mu, len(several))
    return [_sorted(places, each, fewer, part) for each, part in zip(several, parts, strict=True)]


@functools.lru_cache(maxsize=32)
def _all_blocks(places: Places, fewer: int) -> tuple[Array, Array, Array, Array]:
    """Return the lowest position, the records, the size and the class of all blocks."""
    found = blocks(places, fewer)
    low, weight, size = (np.concatenate(part) for part in zip(*found, strict=True))
    return low, weight, size, np.repeat(np.arange(len(found)), [len(part[0]) for part in found]).astype(float)


def _sorted(places: Places, distances: Distances, fewer: int, mu: Array) -> _Rows:
    """Return the rows whose blocks have these mu."""
    low, weight, size, kind = _all_blocks(places, fewer)
    if places.out:
        left_out = ((low, 0.0), (weight, places.out), (size, 0.0), (kind, -1.0))
        low, weight, size, kind = (np.append(part, last) for part, last in left_out)
        mu = np.append(mu, distances.unused())
    order = np.argsort(-mu, kind="stable")
    return _Rows(low[order], weight[order], size[order], mu[order], kind[order], blocks_of(places, fewer))


def _top(places: Places) -> int:
    """Return the first position of a pass, counted from its end."""
    return max(first + count - 1 for first, count, _, _ in places.classes)


def blocks_of(places: Places, fewer: int) -> Blocks:
    """Return how positions are put together, ``fewer`` times fewer blocks than at most."""
    top, alone = _top(places), _SINGLE // fewer
    if top <= alone:
        return Blocks(top, 0.0)
    return Blocks(alone, max(0.002 * fewer, math.log(max(top, alone) / alone) * fewer / _BLOCKS))


def blocks(places: Places, fewer: int) -> list[tuple[Array, Array, Array]]:
    """Return (lowest position, records, size) of blocks: single positions up to a point, then of equal ratio."""
    top, (alone, growth) = _top(places), blocks_of(places, fewer)
    grid = np.arange(1, min(top, alone) + 1, dtype=np.int64)
    if top > alone:
        ends = np.exp(np.arange(0, math.log((top + 1.0) / (alone + 1.0)) + growth, growth)) * (alone + 1.0)
        grid = distinct(grid, np.rint(ends).astype(np.int64))
    found = []
    for first, count, records, size in places.classes:
        low = np.append(first, grid[(grid > first) & (grid < first + count)])
        counts = np.diff(np.append(low, first + count)).astype(float)
        found.append((low.astype(float), counts * (records // count), np.full(len(low), size)))
    return found


class Cell(NamedTuple):
    """A part of a mixture: ln of its weight, and the distances in it."""

    log_weight: float
    distances: Distances


Matchings = tuple[tuple[Matching | None, ...], ...]


class Found(NamedTuple):
    """ln delta, and what proves it: for each way to put the null record, the matching of every cell.

    None stands for a position that counts as known, and no function for nothing found. ``moved`` gives what the same
    cuts prove at another epsilon: its ln delta is a tangent, an upper bound on the least that touches it at this one.
    After a rough search they follow the natural cuts, and stay nearer to the least.
    """

    log_delta: float
    matchings: Callable[[], Matchings] | None = None
    moved: Callable[[float], Found] | None = None


def least_certificates(places: Places, cells: Sequence[Cell], epsilon: float, *, rough: bool = False) -> Found:
    """Return ln of the weighted sum of the least certificates found, and these.

    Few cuts are tried downhill from the natural one of a cell, for the first cell over a coarse grid of rows, then over
    the fine one; for every other cell over the coarse one alone.

    Args:
        places: where a record may be.
        cells: the likeliest first.
        epsilon: >= 0.
        rough: whether the natural cuts of the other cells, and fewer of the first, will do: ln delta is mostly within
            1e-4 of the least.
    """
    found = [_of_swap(places, swap, cells, epsilon, rough) for swap in places.swaps]
    return _found(places, cells, [value for value, _ in found], [chosen for _, chosen in found], rough)


def _found(
    places: Places, cells: Sequence[Cell], values: Sequence[float], chosen: Sequence[Chosen], follow: bool
) -> Found:
    """Return what the cuts chosen prove, for each way to put the null record."""

    def matchings() -> Matchings:
        return tuple(
            tuple(None if best is None else _matching(places, best.rows, best.best, best.level) for best in of_swap)
            for of_swap in chosen
        )

    def moved(epsilon: float) -> Found:
        there = [_by_same_cuts(places, cells, of_swap, epsilon, follow) for of_swap in chosen]
        return _found(places, cells, [value for value, _ in there], [cuts for _, cuts in there], follow)

    return Found(max(values), matchings, moved)


@functools.lru_cache(maxsize=8)
def likely_epsilon(places: Places, distances: Distances, log_delta: float) -> float:
    """Return about the epsilon at ln delta: where the natural cuts of a coarse grid lead. No side is promised.

    The way starts at the epsilon of two Gaussians whose chi-squared divergence is the mean of those of all positions.
    """
    from dpcalc.notions import gaussian

    rows = _rows(places, distances, 10)
    mean = float(np.average(np.expm1(np.minimum(rows.mu, 10.0) ** 2), weights=rows.weight))
    first = gaussian.epsilon(mu=math.sqrt(math.log1p(mean)), log_delta_target=log_delta)

    middle: float | None = None

    def natural(epsilon: float) -> float:
        nonlocal middle
        if not _may_gain(rows, epsilon):
            return 0.0
        middle, cut = _natural_cut(rows, epsilon, middle)
        cut = min(cut, len(rows.mu) - 2)
        level = _common_level(rows, epsilon, cut, middle)
        if level is None:
            return 0.0
        return max(_certificates([_Asked(rows, distances, swap, epsilon, cut, level) for swap in places.swaps]))

    value = natural(first) if 0.0 < first < MOST else 0.0
    return where_met(natural, first, value, log_delta, _NEAR) if -math.inf < value < 0.0 else first


def where_met(
    curve: Callable[[float], float], epsilon: float, value: float, target: float, within: float = _SAME
) -> float:
    """Return about where a curve falls to ``target`` < 0, by few secants from where it is ``value`` < 0.

    The logarithm of -ln delta is nearly linear in that of epsilon, with a slope of 1 to 2. What is left of the way is
    not followed further than Newton's method needs, whose error is of the order of the square of the way.
    """
    before, excess = math.log(epsilon), math.log(value / target)
    start, at, reached = before, before - excess / 1.5, value
    for _ in range(_SECANTS):
        reached = curve(math.exp(min(at, _FARTHEST)))
        if not -math.inf < reached < 0.0:
            break
        left = math.log(reached / target)
        if left in (0.0, excess) or abs(at - before) < max(within, _QUADRATIC * (at - start) ** 2):
            break
        before, excess, at = at, left, at - left * (at - before) / (left - excess)
    return math.exp(min(max(at, -_FARTHEST), _FARTHEST))


class Curve:
    """ln delta at one epsilon after another, with fewer rows and cuts."""

    def __init__(self, places: Places, distances: Distances) -> None:
        self._places, self._distances = places, distances
        self._best: dict[tuple[float, float], dict[float, tuple[int, float]]] = {swap: {} for swap in places.swaps}

    def matchings(self, epsilon: float) -> tuple[Matching | None, ...]:
        """Return what proves the value at an epsilon where one was found, for each way to put the null record.

        None stands for a position that counts as known, which gives no more.
        """
        rows = _rows(self._places, self._distances, _FEWER_ON_CURVES)
        return tuple(
            None if epsilon not in best else _matching(self._places, rows, *best[epsilon])
            for best in self._best.values()
        )

    def at(self, epsilon: float) -> float:
        """Return the least certificate found at ``epsilon``, the larger of the two orders' where they differ."""
        return max(self._of_swap(swap, epsilon) for swap in self._places.swaps)

    def _of_swap(self, swap: tuple[float, float], epsilon: float) -> float:
        rows = _rows(self._places, self._distances, _FEWER_ON_CURVES)
        value = _known([rows], epsilon)[0]
        if _may_gain(rows, epsilon):
            cuts = _Cuts(rows, self._distances, swap, epsilon)
            cuts.settle(cuts.nearby, _ENOUGH)
            if cuts.least < value:
                self._best[swap][epsilon] = cuts.best, cuts.level
            value = min(value, cuts.least)
        return value


def _may_gain(rows: _Rows, epsilon: float) -> bool:
    """Return whether there are rows to exchange between, and numbers within reach."""
    return len(rows.mu) > 1 and 1e-90 < rows.mu[0] < 1e90 and epsilon < 1e90


def _of_swap(
    places: Places, swap: tuple[float, float], cells: Sequence[Cell], epsilon: float, rough: bool
) -> tuple[float, Chosen]:
    """Return ln of the weighted sum of the least certificates for one way to put the null record, and their cuts."""
    each = _rows_of_all(places, tuple(cell.distances for cell in cells), 10)
    known = _known(each, epsilon)
    coarse = [_Cuts(rows, cell.distances, swap, epsilon) for cell, rows in zip(cells, each, strict=True)]
    tried: list[list[_Cuts]] = [[] for _ in cells]
    alike = rough and swap == (1.0, 1.0)
    if _may_gain(each[0], epsilon):
        near = coarse[0].nearby
        coarse[0].settle(near, _ROUGHLY, also=(near // 2, 2 * near), deep=_FLAT if alike else math.inf)
        fine = _Cuts(_rows(places, cells[0].distances, 1), cells[0].distances, swap, epsilon)
        fine.refine(coarse[0], alike)
        tried[0] = [coarse[0], fine]
    at_least = min(known[0], *(cuts.least for cuts in tried[0]), 0.0) + cells[0].log_weight - _NEGLIGIBLE
    alone = []
    for number, (cell, cuts) in enumerate(zip(cells, coarse, strict=True)):
        if number == 0 or cell.log_weight + known[number] < at_least or not _may_gain(cuts.rows, epsilon):
            continue
        tried[number], cuts.middle = [cuts], coarse[0].middle
        # Natural cuts are good where a use counts the same wherever it is, and rows are many.
        if alike and _FEW <= cuts.nearby <= cuts.last:
            alone.append((cuts, cuts.nearby))
        else:
            cuts.settle(cuts.nearby, _ENOUGH)
    _attempt(alone)
    total = -math.inf
    chosen: list[_Cuts | None] = []
    for cell, value, several in zip(cells, known, tried, strict=True):
        best = min(several, key=lambda cuts: cuts.least, default=None)
        best = best if best is not None and best.least < value else None
        total = log_add_exp(total, cell.log_weight + (value if best is None else best.least))
        chosen.append(best)
    return total, tuple(chosen)


def _by_same_cuts(
    places: Places, cells: Sequence[Cell], chosen: Chosen, epsilon: float, follow: bool
) -> tuple[float, Chosen]:  # fmt: skip
    """Return ln of the weighted sum of the certificates of cuts that were chosen for another epsilon, and them here."""
    total = -math.inf
    moved = [None if best is None else best.moved(epsilon, follow) for best in chosen]
    _attempt([(cuts, cut) for cuts, cut in filter(None, moved) if cut is not None])
    here = [
        None if one is None or one[0].best not in one[0].levels else one[0] for one in moved
    ]  # a level may be out of reach there
    each = _rows_of_all(places, tuple(cell.distances for cell in cells), 10)
    others = [rows for rows, best in zip(each, here, strict=True) if best is None]
    known = iter(_known(others, epsilon))
    for cell, best in zip(cells, here, strict=True):
        total = log_add_exp(total, cell.log_weight + (next(known) if best is None else best.least))
    return total, tuple(here)


def _matching(places: Places, rows: _Rows, cut: int, level: float) -> Matching:
    """Return what the certificate of a cut is made from."""
    receivers = tuple(int((rows.kind[: cut + 1] == number).sum()) for number in range(len(places.classes)))
    return Matching(level, receivers, rows.blocks, len(rows.mu))


def _known(each: Sequence[_Rows], epsilon: float) -> list[float]:
    """Return ln delta for observers who know the position, at most 0: one for each of the rows."""
    from dpcalc.numerics.normal_arrays import log_hockey_stick_up

    if not each:
        return []
    all_of_them = log_hockey_stick_up(min(epsilon, 1e90), np.concatenate([rows.mu for rows in each]))
    parts = np.split(all_of_them, np.cumsum([len(rows.mu) for rows in each])[:-1])
    return [_log_mean(np.log(rows.weight) + part, rows, 0.0) for rows, part in zip(each, parts, strict=True)]


def _log_mean(terms: Array, rows: _Rows, level: float) -> float:
    """Return ln of the sum of exp(terms) over the records, rounded up and at most 0."""
    peak = float(terms.max())
    value = peak + math.log(float(np.exp(terms - peak).sum())) - math.log(float(rows.weight.sum()))
    return min(0.0, value + 1e-12 + 1e-14 * (abs(value) + level))


class _Cuts:
    """The certificates of some cuts between the rows that receive and those that donate.

    Attributes:
        rows: the grid.
        last: the last cut; the first is 0.
        tried: cut -> ln of its certificate.
        levels: cut -> the common level of its rows.
        middle: that of the natural cut, or one nearby, once it is known.
    """

    def __init__(
        self, rows: _Rows, distances: Distances, swap: tuple[float, float], epsilon: float, middle: float | None = None
    ) -> None:
        self.rows, self.last = rows, len(rows.low) - 2
        self.tried: dict[int, float] = {}
        self.levels: dict[int, float] = {}
        self.middle = middle
        self._near: float | None = None
        self._distances, self._swap, self._epsilon = distances, swap, epsilon

    @property
    def best(self) -> int:
        """The cut of the least certificate so far."""
        return min(self.tried, key=lambda cut: (self.tried[cut], cut))

    @property
    def level(self) -> float:
        """The common level of the best cut."""
        return self.levels[self.best]

    @property
    def least(self) -> float:
        """ln of the least certificate so far, at most 0."""
        return min(self.tried.values(), default=0.0)

    @functools.cached_property
    def natural(self) -> int:
        """The natural cut."""
        return min(self.nearby, self.last)

    @functools.cached_property
    def nearby(self) -> int:
        """The last row above the level e^eps, which may be the last of all."""
        self.middle, cut = _natural_cut(self.rows, self._epsilon, self.middle)
        return cut

    def moved(self, epsilon: float, follow: bool) -> tuple[_Cuts, int | None]:
        """Return the cuts at another epsilon, and where the best one is to be tried; it may follow the natural cut.

        Where rows are few, which is far from smooth, it is searched for again, from where it was.
        """
        cut = self.best
        moved = _Cuts(self.rows, self._distances, self._swap, epsilon, self.middle)
        moved._near = self.levels.get(cut)
        if follow and cut < _FEW:
            moved.settle(cut, _ROUGHLY, 1)
            return moved, None
        return moved, min(max(cut + moved.natural - self.natural, 0), self.last) if follow else cut

    def attempt(self, *cuts: int) -> None:
        """Work out the certificates of those of these cuts that are new."""
        _attempt([(self, cut) for cut in cuts])

    def asked(self, cut: int) -> _Asked | None:
        """Return the certificate of a cut, to be worked out; None where there is none."""
        level = _common_level(self.rows, self._epsilon, cut, self._near)
        if level is None:
            return None
        self.levels[cut] = self._near = level
        return _Asked(self.rows, self._distances, self._swap, self._epsilon, cut, level)

    def settle(
        self, near: int, within: float, step: int = 0, also: tuple[int, ...] = (), deep: float = math.inf
    ) -> None:
        """Walk downhill from a cut in ever longer steps, and on to vertices of parabolas through the lowest three.

        Args:
            near: where to start.
            within: what a next step has to promise, as a share of delta.
            step: the first one; 0 for one in proportion to ``near``.
            also: other cuts to try.
            deep: how far the lowest three may be apart at the end, if less than what a parabola is trusted with.
        """
        if self.last < _FEW:
            self.attempt(*also, *range(self.last + 1))
            return
        near = min(max(near, 0), self.last)
        step = step or max(1, near // 16)
        self.attempt(*also, near - step, near, near + step)
        for _ in range(_STEPS):
            best, at = self.best, sorted(self.tried)
            place = at.index(best)
            if place == 0 and best > 0:
                step *= 2
                self.attempt(max(0, best - step))
            elif place == len(at) - 1 and best < self.last:
                step *= 2
                self.attempt(min(self.last, best + step))
            elif 0 < place < len(at) - 1:
                between = [(cut, self.tried[cut]) for cut in at[place - 1 : place + 2]]
                vertex, gain = _vertex(*between)
                if vertex in self.tried or gain <= within:
                    if _depth(*between) <= min(deep, _TRUSTED * within):
                        break
                    vertex = _middle(*(cut for cut, _ in between))
                if vertex in self.tried:
                    break
                self.attempt(vertex)
            elif len(at) > 1 and abs(best - (beside := at[1] if place == 0 else at[-2])) > 1:
                self.attempt((best + beside) // 2)  # the first cut or the last: what lies next to it is unknown
            else:
                break

    def refine(self, coarse: _Cuts, roughly: bool) -> None:
        """Try a few cuts around the best one of a coarser grid; where ``roughly``, mostly one alone."""
        self._near = coarse.levels.get(coarse.best)
        if self.last < _SINGLE:  # where every row is one position, there may be several valleys
            near = self._nearest(coarse, float(coarse.best))
            self.attempt(*(round(near * 2.0 ** (third / 3.0)) for third in range(-4, 5)))
        elif roughly and (lowest := coarse.lowest) is not None:
            self.attempt(self._nearest(coarse, lowest))
            return
        within = 0.1 * _ROUGHLY if roughly else _ENOUGH
        self.settle(
            self._nearest(coarse, float(coarse.best)), within, max(1, len(self.rows.low) // len(coarse.rows.low))
        )

    def _nearest(self, coarse: _Cuts, cut: float) -> int:
        """Return the cut that is at the mu of one of a coarser grid, which may lie between two of its rows."""
        mu = np.interp(cut + 1.0, np.arange(len(coarse.rows.mu)), coarse.rows.mu)
        return int((-self.rows.mu).searchsorted(-mu)) - 1

    @property
    def lowest(self) -> float | None:
        """Where the parabola through the lowest three points is least; None where the best cut is the first or last."""
        at = sorted(self.tried)
        place = at.index(self.best)
        if not 0 < place < len(at) - 1:
            return None
        between = [(cut, self.tried[cut]) for cut in at[place - 1 : place + 2]]
        return _lowest(*between)[0] if _depth(*between) <= _FLAT else None


def _attempt(several: Sequence[tuple[_Cuts, int]]) -> None:
    """Work out the certificates of these cuts that are new, all together."""
    new = [(cuts, cut) for cuts, cut in dict.fromkeys(several) if 0 <= cut <= cuts.last and cut not in cuts.tried]
    asked = [cuts.asked(cut) for cuts, cut in new]
    found = iter(_certificates([each for each in asked if each is not None]))
    for (cuts, cut), each in zip(new, asked, strict=True):
        cuts.tried[cut] = 0.0 if each is None else next(found)


def _vertex(left: tuple[int, float], middle: tuple[int, float], right: tuple[int, float]) -> tuple[int, float]:
    """Return the lowest cut of the parabola through three points, the middle one lowest, and what it gains."""
    lowest, slope, bend = _lowest(left, middle, right)
    vertex = round(lowest)
    return vertex, -(slope + bend * (vertex - middle[0])) * (vertex - middle[0])


def _lowest(left: tuple[int, float], middle: tuple[int, float], right: tuple[int, float]) -> tuple[float, float, float]:
    """Return where the parabola through three points is least between them, its slope at the middle one, and half of
    its second derivative; the middle one and two zeros where it is no valley.
    """
    (a, high), (b, low), (c, other) = left, middle, right
    falling, rising = (low - high) / (b - a), (other - low) / (c - b)
    bend = (rising - falling) / (c - a)
    if not 0.0 < bend < math.inf:
        return float(b), 0.0, 0.0
    slope = falling + bend * (b - a)  # at the middle
    return min(max(b - 0.5 * slope / bend, a), c), slope, bend


def _depth(left: tuple[int, float], middle: tuple[int, float], right: tuple[int, float]) -> float:
    """Return how far the lowest of three points is below the highest."""
    return max(left[1], right[1]) - middle[1]


def _middle(left: int, middle: int, right: int) -> int:
    """Return the middle of the longer part; ``middle`` where there is nothing between."""
    return (left + middle) // 2 if middle - left > right - middle else (middle + right) // 2


class _Asked(NamedTuple):
    """A certificate to work out: receivers among the blocks 0..cut, at a common level."""

    rows: _Rows
    distances: Distances
    swap: tuple[float, float]
    epsilon: float
    cut: int
    common: float


class _Terms(NamedTuple):
    """The terms of a certificate: thresholds, mu, ln of their shares, and the highest level."""

    thresholds: Array
    mu: Array
    shares: Array
    highest: float


def _certificates(several: Sequence[_Asked]) -> list[float]:
    """Return ln of the certificates; 0 where there is none. Few numbers take as long as many: they go together."""
    moves = [_moves(asked) for asked in several]
    moved = [(asked, move) for asked, move in zip(several, moves, strict=True) if move is not None]
    if not moved:
        return [0.0] * len(several)
    from dpcalc.numerics.normal_arrays import log_hockey_stick_up

    between = iter(_all_between(moved))
    terms = [
        None if move is None else _terms(asked, move, next(between)) for asked, move in zip(several, moves, strict=True)
    ]
    some = [each for each in terms if each is not None]

    parts = np.concatenate([each.thresholds for each in some]), np.concatenate([each.mu for each in some])
    ends = np.cumsum([len(each.mu) for each in some])[:-1]
    values = iter(np.split(log_hockey_stick_up(*parts), ends))
    return [
        0.0 if each is None else _log_mean(each.shares + next(values), asked.rows, each.highest)
        for each, asked in zip(terms, several, strict=True)
    ]


class _Moves(NamedTuple):
    """What rows receive and donate: the level of every row, which receive and donate, and the transfers: amounts in
    units of e^eps, who takes and who gives.
    """

    level: Array
    receives: Flags
    donates: Flags
    amount: Array
    taker: Picked
    giver: Picked


def _moves(asked: _Asked) -> _Moves | None:
    rows, _, _, epsilon, cut, common = asked
    level = rows.mu * (common - 0.5 * rows.mu)  # ln gamma of every block
    index = np.arange(len(rows.mu))
    receives = (index <= cut) & (level > epsilon)
    donates = (index > cut) & (level < epsilon)
    passed = _matched(rows, epsilon, level, receives, donates)
    return None if passed is None else _Moves(level, receives, donates, *passed)


def _terms(asked: _Asked, moves: _Moves, between: Array) -> _Terms:
    rows, epsilon = asked.rows, asked.epsilon
    level, receives, donates, amount, taker, _ = moves
    # Rows with their own column: receivers keep e^eps/gamma of themselves, donors spend gamma, the others e^eps.
    spent = np.where(receives | donates, level, epsilon)
    kept = np.where(receives, epsilon - level, 0.0)
    return _Terms(
        np.concatenate((spent, level[taker])),
        np.concatenate((rows.mu, between)),
        np.log(np.concatenate((rows.weight, amount))) + np.concatenate((kept, kept[taker])),
        float(np.abs(level).max()),
    )


def _all_between(moved: Sequence[tuple[_Asked, _Moves]]) -> list[Array]:
    """Return mu of the transfers of several certificates: for the record in the block that takes, and its replacement
    in the one that gives.
    """
    uses = [_uses(asked, moves) for asked, moves in moved]
    first, counts = moved[0][0].distances, [len(moves.amount) for _, moves in moved]
    k, here, m, there = (np.concatenate(part) for part in zip(*uses, strict=True))
    together: Distances | None = first
    if not all(asked.distances is first for asked, _ in moved):
        several = [(asked.distances, count) for (asked, _), count in zip(moved, counts, strict=True)]
        together = first.among(several) if ((k > 0.0) & (m > 0.0)).all() else None
    if together is None:
        return [_between(asked.distances, *of) for (asked, _), of in zip(moved, uses, strict=True)]
    return np.split(_between(together, k, here, m, there), np.cumsum(counts)[:-1])


def _uses(asked: _Asked, moves: _Moves) -> tuple[Array, Array, Array, Array]:
    """Return the position and the size of a use in the blocks that take, and in those that give."""
    rows, swap = asked.rows, asked.swap
    taker, giver = moves.taker, moves.giver
    return rows.low[taker], rows.size[taker] * swap[0], rows.low[giver], rows.size[giver] * swap[1]


def _between(distances: Distances, k: Array, here: Array, m: Array, there: Array) -> Array:
    """Return mu for the record at k and its replacement at m, with uses of these sizes; 0 stands for left out."""
    both = (k > 0.0) & (m > 0.0)
    first = k > m
    early, late = np.where(first, here, there), np.where(first, there, here)
    if both.all():
        return distances.pair(np.maximum(k, m), early, np.minimum(k, m), late)
    mu = np.empty(len(k))
    mu[both] = distances.pair(np.maximum(k, m)[both], early[both], np.minimum(k, m)[both], late[both])
    # The swap with a record that is left out changes one step.
    mu[~both] = distances.own(np.maximum(k, m)[~both], np.where(k > 0.0, here, there)[~both])
    return mu


def _natural_cut(rows: _Rows, epsilon: float, near: float | None = None) -> tuple[float | None, int]:
    """Return the common level if all rows above the level e^eps receive, and the last one that does.

    A row at that level has nothing to give or to take, so that moving the cut past it changes nothing in first order:
    certificates of like records are least about here.
    """
    common = _common_level(rows, epsilon, None, near)
    if common is None:
        return None, 0
    return common, int(np.flatnonzero(rows.mu * (common - 0.5 * rows.mu) > epsilon).max(initial=0))


def _common_level(rows: _Rows, epsilon: float, cut: int | None, near: float | None = None) -> float | None:
    """Return z of the highest level mu z - mu^2/2 at which the donors can meet the need; None where there is none.

    Without a cut every row above the level e^eps receives, and every other one donates but for those of larger mu. It
    is found sooner from a z that is ``near``, if one is given.
    """
    half = 0.5 * rows.mu
    with np.errstate(divide="ignore", invalid="ignore"):
        equal = np.where(rows.mu > 0.0, epsilon / rows.mu, math.inf) + half  # the level at which ln gamma = eps
    takers, givers = (equal, equal) if cut is None else (equal[: cut + 1], equal[cut + 1 :])
    low, high = float(takers.min()), float(givers.max())
    if not low < high:
        return None
    first = int(equal.argmin()) if cut is None else cut + 1

    def sides(z: float) -> tuple[float, float, float]:
        """Return need, supply, and the slope of ln(need/supply)."""
        excess = np.expm1(np.minimum(rows.mu * (z - half) - epsilon, 600.0))
        split = first + int(np.count_nonzero(excess[first:] > 0.0)) if cut is None else first
        more, less = np.maximum(excess[:split], 0.0), np.minimum(excess[split:], 0.0)
        need, supply = float(more @ rows.weight[:split]), -float(less @ rows.weight[split:])
        if not (need > 0.0 and supply > 0.0):
            return need, supply, math.nan
        mass = rows.weight * rows.mu
        with np.errstate(over="ignore"):  # an infinite slope is no step of the search, which halves instead
            rising = float((more + (more > 0.0)) @ mass[:split]) / need
            falling = float((less + (less < 0.0)) @ mass[split:]) / supply
        return need, supply, rising + falling

    high = min(high, low + (epsilon + 710.0 + math.log(float(rows.weight.sum()))) / float(rows.mu[0]) + float(half[0]))
    if near is not None and low < near < high and (found := _level_near(sides, low, high, near)) is not None:
        return found
    return _greatest_level(sides, low, high)


def _level_near(
    sides: Callable[[float], tuple[float, float, float]], low: float, high: float, near: float
) -> float | None:
    """Return what `_greatest_level` does by Newton's method from ``near`` alone; None where that leads nowhere."""
    z = near
    for _ in range(_STEPS_NEAR):
        need, supply, slope = sides(z)
        if not (0.0 < need < math.inf and supply > 0.0 and slope > 0.0):
            return None
        step = math.log(need / supply) / slope
        z -= step
        if not low < z < high:
            return None
        if abs(step) <= _LEVEL_WITHIN * z:
            least = z * (1.0 - _LEVEL_WITHIN)
            need, supply, _ = sides(least)
            return least * _HAIR_LESS if need <= supply else None
    return None


def _greatest_level(sides: Callable[[float], tuple[float, float, float]], low: float, high: float) -> float | None:
    """Return about the greatest z in [low, high] at which the need is at most the supply; None where it is more at low.

    Newton's method on the logarithm of their quotient, which is nearly linear, inside a bracket.
    """
    need, supply, _ = sides(low)
    if need > supply:
        return None
    need, supply, slope = sides(high)
    if need <= supply:
        return high * _HAIR_LESS
    z = high
    for _ in range(_LEVEL_STEPS):
        step = math.log(need / supply) / slope if slope > 0.0 and need < math.inf else math.inf
        after = z - step
        if abs(step) <= _LEVEL_WITHIN * z:
            least = after * (1.0 - _LEVEL_WITHIN)
            need, supply, _ = sides(least)
            if need <= supply:
                return least * _HAIR_LESS
            after = low
        z = after if low < after < high else 0.5 * (low + high)
        need, supply, slope = sides(z)
        low, high = (low, z) if need > supply else (z, high)
        if high - low <= _LEVEL_WITHIN * low:
            break
    return low * _HAIR_LESS


def _matched(
    rows: _Rows, epsilon: float, level: Array, receives: Flags, donates: Flags
) -> tuple[Array, Picked, Picked] | None:
    """Return (amount in units of e^eps, receiving block, giving block) of every transfer, amounts rounded up."""
    takers = np.flatnonzero(receives)[::-1]
    givers = np.flatnonzero(donates)[::-1]
    if not len(takers) or not len(givers):
        return None
    need = rows.weight[takers] * np.expm1(level[takers] - epsilon)
    supply = rows.weight[givers] * -np.expm1(level[givers] - epsilon)
    scale = _UNITS / float(supply.sum())
    wanted = np.cumsum(np.ceil(need * (scale * (1.0 + 1e-14))).astype(np.int64))
    offered = np.cumsum(np.floor(supply * (scale * (1.0 - 1e-14))).astype(np.int64))
    if not 0 < wanted[-1] <= offered[-1]:
        return None
    ends = np.concatenate((wanted, offered[offered < wanted[-1]]))
    ends.sort(kind="stable")  # of two runs that are sorted
    starts = np.concatenate(([0], ends[:-1]))
    starts, ends = starts[starts < ends], ends[starts < ends]
    amount = (ends - starts) * ((1.0 + 8.0 * UNIT) / scale)
    taker = takers[np.searchsorted(wanted, starts, side="right")]
    giver = givers[np.searchsorted(offered, starts, side="right")]
    return amount, taker, giver
