"""The search for the cut between rows that receive and rows that donate: downhill from the natural one.

Searches are generators that yield the cuts to be worked out next, and go on when that is done (`search`): those of many
cells run side by side, because arrays of few numbers take as long as those of many.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from dpcalc.notions.profiles import Matching
from dpcalc.numerics.floats import np
from dpcalc.theorems.hidden.exchanges import Comparison, Exchange, log_deltas
from dpcalc.theorems.hidden.positions import SINGLE

FEW = 24  # cuts are all tried: a search would try as many
ROUGHLY, ENOUGH = 1e-4, 1e-7  # shares of delta that another cut has to promise
FLAT = 1e-3  # a parabola is trusted alone, where the three points differ by so much
_STEPS = 40  # of a search at most: steps double, so that some twenty reach every cut and its neighbours
_TRUSTED = 100.0  # a parabola is, where the three points differ by so many times the least gain wanted
_FINEST_STEP = 16  # a first step is this part of the way to the cut, about the width of the valley

Wanted = Iterator[tuple[int, ...]]
Point = tuple[int, float]


class Cuts:
    """The certificates of some cuts of a comparison.

    Attributes:
        comparison: the rows, their distances and epsilon.
        last: the last cut; the first is 0.
        tried: cut -> ln of its certificate.
        levels: cut -> the common level of its rows.
        middle: that of the natural cut, or one nearby, once it is known.
        near: a common level nearby, from which others are searched for.
    """

    def __init__(self, comparison: Comparison, middle: float | None = None, near: float | None = None) -> None:
        self.comparison, self.last, self.middle, self.near = comparison, len(comparison.rows.low) - 2, middle, near
        self.tried: dict[int, float] = {}
        self.levels: dict[int, float] = {}

    @property
    def best(self) -> int:
        """The cut of the least certificate so far."""
        return min(self.tried, key=lambda cut: (self.tried[cut], cut))

    @property
    def least(self) -> float:
        """ln of the least certificate so far, at most 0."""
        return min(self.tried.values(), default=0.0)

    def matching(self, classes: int) -> Matching:
        """Return what the best cut's certificate is made from, for so many classes of positions."""
        return Exchange(self.comparison, self.best, self.levels[self.best]).matching(classes)

    @functools.cached_property
    def natural(self) -> int:
        """The natural cut: the last row above the level e^eps, which may be the last of all."""
        self.middle, cut = self.comparison.natural_cut(self.middle)
        return cut

    def at(self, epsilon: float, follow: bool) -> tuple[Cuts, Wanted]:
        """Return the cuts at another epsilon, and where the best one is to be tried; it may follow the natural cut.

        Where rows are few, which is far from smooth, it is searched for again, from where it was.
        """
        cut = self.best
        there = Cuts(self.comparison._replace(epsilon=epsilon), self.middle, self.levels.get(cut))
        if not follow:
            return there, iter([(cut,)])
        if cut < FEW:
            return there, there.settle(cut, ROUGHLY, 1)
        followed = cut + min(there.natural, self.last) - min(self.natural, self.last)
        return there, iter([(min(max(followed, 0), self.last),)])

    def exchange(self, cut: int) -> Exchange | None:
        """Return the certificate of a cut, to be worked out; None where there is none."""
        level = self.comparison.common_level(cut, self.near)
        if level is None:
            return None
        self.levels[cut] = self.near = level
        return Exchange(self.comparison, cut, level)

    def settle(
        self, near: int, within: float, step: int = 0, also: tuple[int, ...] = (), deep: float = math.inf
    ) -> Wanted:
        """Walk downhill from a cut in ever longer steps, and on to vertices of parabolas through the lowest three.

        Args:
            near: where to start.
            within: what a next step has to promise, as a share of delta.
            step: the first one; 0 for one in proportion to ``near``.
            also: other cuts to try.
            deep: how far the lowest three may be apart at the end, if less than what a parabola is trusted with.
        """
        if self.last < FEW:
            yield (*also, *range(self.last + 1))
            return
        near = min(max(near, 0), self.last)
        step = step or max(1, near // _FINEST_STEP)
        yield (*also, near - step, near, near + step)
        for _ in range(_STEPS):
            best, at = self.best, sorted(self.tried)
            place = at.index(best)
            if place == 0 and best > 0:
                step *= 2
                yield (max(0, best - step),)
            elif place == len(at) - 1 and best < self.last:
                step *= 2
                yield (min(self.last, best + step),)
            elif 0 < place < len(at) - 1:
                points = self._points(at, place)
                vertex, gain = _vertex(*points)
                if vertex in self.tried or gain <= within:
                    if _depth(*points) <= min(deep, _TRUSTED * within):
                        return
                    vertex = _middle(*(cut for cut, _ in points))
                if vertex in self.tried:
                    return
                yield (vertex,)
            elif len(at) > 1 and abs(best - (beside := at[1] if place == 0 else at[-2])) > 1:
                yield ((best + beside) // 2,)  # the first cut or the last: what lies next to it is unknown
            else:
                return

    def refine(self, coarse: Cuts, roughly: bool) -> Wanted:
        """Try a few cuts around the best one of a coarser grid; where ``roughly``, mostly one alone."""
        self.near = coarse.levels.get(coarse.best)
        if self.last < SINGLE:  # where every row is one position, there may be several valleys
            near = self._nearest(coarse, float(coarse.best))
            yield tuple(round(near * 2.0 ** (third / 3.0)) for third in range(-4, 5))
        elif roughly and (lowest := coarse.lowest) is not None:
            yield (self._nearest(coarse, lowest),)
            return
        within = 0.1 * ROUGHLY if roughly else ENOUGH
        step = max(1, len(self.comparison.rows.low) // len(coarse.comparison.rows.low))
        yield from self.settle(self._nearest(coarse, float(coarse.best)), within, step)

    def _nearest(self, coarse: Cuts, cut: float) -> int:
        """Return the cut that is at the mu of one of a coarser grid, which may lie between two of its rows."""
        rows = coarse.comparison.rows
        mu = np.interp(cut + 1.0, np.arange(len(rows.mu)), rows.mu)
        return int((-self.comparison.rows.mu).searchsorted(-mu)) - 1

    def _points(self, at: list[int], place: int) -> list[Point]:
        """Return the cut at a place among those that were tried, and its neighbours, with their certificates."""
        return [(cut, self.tried[cut]) for cut in at[place - 1 : place + 2]]

    @property
    def lowest(self) -> float | None:
        """Where the parabola through the lowest three points is least; None where the best cut is the first or last."""
        at = sorted(self.tried)
        place = at.index(self.best)
        if not 0 < place < len(at) - 1:
            return None
        points = self._points(at, place)
        return _lowest(*points)[0] if _depth(*points) <= FLAT else None


def search(*searches: tuple[Cuts, Wanted]) -> None:
    """Run searches for cuts side by side to their ends."""
    running = list(searches)
    while running:
        wanted = [(cuts, steps, next(steps, None)) for cuts, steps in running]
        running = [(cuts, steps) for cuts, steps, more in wanted if more is not None]
        asked = dict.fromkeys((cuts, cut) for cuts, _, more in wanted for cut in more or ())
        new = [(cuts, cut) for cuts, cut in asked if 0 <= cut <= cuts.last and cut not in cuts.tried]
        exchanges = [cuts.exchange(cut) for cuts, cut in new]
        values = iter(log_deltas([exchange for exchange in exchanges if exchange is not None]))
        for (cuts, cut), exchange in zip(new, exchanges, strict=True):
            cuts.tried[cut] = 0.0 if exchange is None else next(values)


def _vertex(left: Point, middle: Point, right: Point) -> Point:
    """Return the lowest cut of the parabola through three points, the middle one lowest, and what it gains."""
    lowest, slope, bend = _lowest(left, middle, right)
    vertex = round(lowest)
    return vertex, -(slope + bend * (vertex - middle[0])) * (vertex - middle[0])


def _lowest(left: Point, middle: Point, right: Point) -> tuple[float, float, float]:
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


def _depth(left: Point, middle: Point, right: Point) -> float:
    """Return how far the lowest of three points is below the highest."""
    return max(left[1], right[1]) - middle[1]


def _middle(left: int, middle: int, right: int) -> int:
    """Return the middle of the longer part; ``middle`` where there is nothing between."""
    return (left + middle) // 2 if middle - left > right - middle else (middle + right) // 2
