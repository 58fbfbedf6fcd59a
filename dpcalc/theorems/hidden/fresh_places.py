"""What a record costs in passes of fresh random orders, given where it fell in all passes but the last.

Positions are counted from the end of a pass of l steps, sizes in units of a use in a full batch, costs in squares of
mu_1 = Delta/(b sigma). Moving a use to a later step never lowers the cost. So the uses of passes 1..E-2 count in the
last step of theirs, and of those among them that fall into the smallest batches ("heavy") none comes before one that
does not: of the last J passes before the last two the heavy ones come last, and what is before these J counts as heavy
altogether. Then only the number H of heavy uses is random, a binomial law, and uses of one size in a row are one
stretch. For c < 1 the window J need not grow with E, nor does the cost.

On a domain everything before a use may be forgotten, which leaves the diameter.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.notions.certificate import Earlier
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.binomial import upper_groups
from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.theorems.batch_layout import Layout
from dpcalc.theorems.many_passes.passes import Passes
from dpcalc.theorems.many_passes.repeated_allocation import Pace, Stretch, cost, gdp, pooled, repeat, restarts

if TYPE_CHECKING:
    from collections.abc import Sequence

    Head = tuple[Stretch, ...]

_ALIKE = 1.02  # sizes within this factor all count as the largest
_FORGOTTEN = 1e-3  # what comes before the window is worth so little
_UNLIKELY = -60.0  # ln of the probability from which on numbers of heavy uses are put together
_NOTHING = Stretch(0.0, 0.0, 1.0)


class FreshPlaces(NamedTuple):
    """The distances of positions in the last pass, given the earlier uses; arrays of cases or the numbers of one.

    Attributes:
        pace, ratio, reach: as of `Passes`.
        heads: ways to account for all uses but those of the last two passes, the least of which counts.
        at, size: the use of the last pass but one, its position and its size; size 0 where there is one pass alone.
    """

    pace: Pace
    ratio: float
    reach: float
    heads: tuple[Head, ...]
    at: Any
    size: Any

    def own(self, k: Array, size: Any) -> Array:
        """Return mu for the last use at k."""
        last = self.pace.used(size, k, 0.0)
        costs = self._after(k, last)
        if math.isfinite(self.reach):
            costs.append(cost(self.pace.entry(self.reach, (k - 1.0, 0.0))))
        return self._least(costs)

    def pair(self, b: Array, early: Array, a: Array, late: Array) -> Array:
        """Return mu for last uses at b and at a < b."""
        first, last = self.pace.used(early, b, a), self.pace.used(late, a, 0.0)
        costs = self._after(b, first, last)
        if math.isfinite(self.reach):
            costs.append(cost(self.pace.entry(self.reach, (a - 1.0, 0.0))))
            costs.append(cost(self.pace.entry(self.reach, (b - 1.0, a)), last))
        return self._least(costs)

    def unused(self) -> float:
        """Return mu for a record that the last pass leaves out: what its earlier uses cost."""
        return float(self.unused_in_all())

    def unused_in_all(self) -> Array:
        """Return mu for a record that the last pass leaves out, of every case."""
        return self._least(self._after(0.0))

    def among(self, several: Sequence[tuple[FreshPlaces, int]]) -> FreshPlaces:
        """Return the distances of arrays with so many numbers of each of several, which are of one run."""
        counts = [count for _, count in several]
        ways = max(len(one.heads) for one, _ in several)
        longest = max(len(head) for one, _ in several for head in one.heads)

        def spread(values: Sequence[float]) -> Array:
            return np.repeat(np.array(values, float), counts)

        def padded(one: FreshPlaces, way: int) -> Head:
            head = one.heads[min(way, len(one.heads) - 1)]
            return (*(_NOTHING,) * (longest - len(head)), *head)

        heads = []
        for way in range(ways):
            rows = [padded(one, way) for one, _ in several]
            heads.append(
                tuple(
                    Stretch(*(spread(field) for field in zip(*(head[place] for head in rows), strict=True)))
                    for place in range(longest)
                )
            )
        at, size = (spread([getattr(one, name) for one, _ in several]) for name in ("at", "size"))
        return self._replace(heads=tuple(heads), at=at, size=size)

    def _after(self, k: Any, *last: Stretch) -> list[Array]:
        """Return the costs of the ways to account for all uses, the last pass's at k and later."""
        length = float(self.pace.steps)
        use = self.pace.turn(self.size, self.at, k)
        costs = [cost(*head, use, *last) for head in self.heads]
        if math.isfinite(self.reach):
            costs.append(cost(self.pace.entry(self.reach, (self.at - 1.0, 0.0), (length, k)), *last))
        return costs

    def _least(self, costs: list[Array]) -> Array:
        return gdp(self.ratio, functools.reduce(np.minimum, costs))


class Cases(NamedTuple):
    """The earlier uses in all cases: probabilities, rounded up, and distances, shape (cases, 1); what they are."""

    weight: Array
    places: FreshPlaces
    earlier: Earlier

    def single(self, number: int) -> FreshPlaces:
        """Return the distances of one case, as numbers."""

        def one(value: Any) -> float:
            array = np.asarray(value, float)
            return float(array) if array.ndim == 0 else float(array[number, 0] if len(array) > 1 else array[0, 0])

        heads = {pooled(tuple(Stretch(*map(one, part)) for part in head)) for head in self.places.heads}
        return self.places._replace(heads=tuple(sorted(heads)), at=one(self.places.at), size=one(self.places.size))


def nodes(plan: Layout, parts: int) -> list[tuple[float, float, float]]:
    """Return (position, size, probability) of a random place in a pass, each block of positions at its lower end.

    A record that is left out counts as one at a random place: another use never lowers the cost.
    """
    used, places = plan.records - plan.dropped, []
    for alike in plan.positions:
        share = max(1, min(alike.steps, round(parts * alike.steps / plan.steps)))
        starts = sorted({alike.first + alike.steps * i // share for i in range(share)})
        ends = [*starts[1:], alike.first + alike.steps]
        for start, end in zip(starts, ends, strict=True):
            chance = (end - start) * (alike.records // alike.steps) / used
            places.append((float(start), plan.weight(alike), chance * (1.0 + 8.0 * UNIT)))
    return places


def _window(passes: Passes, heavy: float, light: float) -> int:
    """Return J, 1 to E-2."""
    wanted = [passes.epochs - 2]
    if passes.pace.whole > 0.0:
        wanted.append(math.ceil(min(math.log(heavy / light / _FORGOTTEN) / passes.pace.whole, 1e15)))
    if math.isfinite(passes.reach):
        wanted.append(math.ceil(min(2.0 * passes.reach / light, 1e15)) + 8)
    return max(1, min(wanted))


def _numbers(trials: int, chance: float) -> list[tuple[int, float]]:
    """Return (number, probability) of heavy uses, rounded up; unlikely numbers are put together at their largest."""
    groups = upper_groups(trials, chance)
    likely = [i for i, (_, log_weight) in enumerate(groups) if log_weight > _UNLIKELY]
    first, last = likely[0], likely[-1]
    numbers = [(number, log_weight) for number, log_weight in groups[first : last + 1]]
    for _, log_weight in groups[:first]:
        numbers[0] = (numbers[0][0], log_add_exp(numbers[0][1], log_weight))
    rest = -math.inf
    for _, log_weight in groups[last + 1 :]:
        rest = log_add_exp(rest, log_weight)
    if rest > -math.inf:
        numbers.append((trials, rest))
    return [(number, min(1.0, math.exp(log_weight) * (1.0 + 1e-12))) for number, log_weight in numbers]


@functools.lru_cache(maxsize=32)
def cases_of(passes: Passes, parts: int, fewer: int) -> Cases:
    """Return the cases of at least two passes.

    Args:
        passes: the run.
        parts: blocks of the position in the last pass but one, for the likeliest number of heavy uses.
        fewer: blocks for the other numbers.
    """
    plan, sizes = passes.plan, passes.plan.weights
    heavy, light, chance = sizes[0], sizes[0], 0.0
    if len(sizes) > 1 and sizes[0] > _ALIKE * sizes[1]:
        light = sizes[1]
        held = sum(alike.records for alike in plan.positions if plan.weight(alike) == heavy)
        chance = held / (plan.records - plan.dropped)
    window = _window(passes, heavy, light) if passes.epochs > 2 else 0
    numbers = _numbers(window, chance) if window else [(0, 1.0)]
    likeliest = max(numbers, key=lambda one: one[1])
    rows = []
    pieces = tuple(parts if number == likeliest[0] else fewer for number, _ in numbers)
    for (number, weight), blocks in zip(numbers, pieces, strict=True):
        for at, size, share in nodes(plan, blocks):
            rows.append((weight * share, float(number), at, size))
    weights, among, places_at, use = (np.array(column)[:, None] for column in zip(*rows, strict=True))
    heads: list[Head] = [()]
    if passes.epochs > 2:
        heads = _heads(passes, heavy, light, window, among, places_at)
    places = FreshPlaces(passes.pace, passes.ratio, passes.reach, tuple(heads), places_at, use)
    earlier = Earlier(window, tuple(number for number, _ in numbers), pieces)
    return Cases(weights, _best_of(places, len(weights)) if len(heads) > 1 else places, earlier)


def _heads(passes: Passes, heavy: float, light: float, window: int, number: Array, at: Array) -> list[Head]:
    """Return the ways to account for the uses of passes 1..E-2, each four stretches."""
    pace = passes.pace
    before = repeat(pace.turn(heavy, 1.0, 1.0), passes.epochs - 2 - window, pace.whole)
    heads = [(before, *_delayed(passes, heavy, light, window, number, at))]
    if math.isinf(passes.reach):
        return heads
    length = float(pace.steps)
    heads.append((pace.entry(passes.reach, (length, at)), _NOTHING, _NOTHING, _NOTHING))
    entry = pace.entry(passes.reach, (length, 1.0))
    tried = {j for size in (heavy, light) for j in restarts(passes.reach, size, pace.whole, passes.epochs - 3)}
    for following in sorted(tried):
        among = np.minimum(number, following) if following <= window else np.full_like(number, following)
        heads.append((entry, *_delayed(passes, heavy, light, following, among, at)))
    return heads


def _delayed(passes: Passes, heavy: float, light: float, count: int, among: Array, at: Array) -> tuple[Stretch, ...]:
    """Return the stretches of ``count`` >= 1 delayed uses, the last ``among`` of them heavy."""
    pace, none = passes.pace, among == 0.0
    return (
        repeat(pace.turn(light, 1.0, 1.0), count - among - none, pace.whole),
        repeat(pace.turn(heavy, 1.0, 1.0), np.maximum(among - 1.0, 0.0), pace.whole),
        pace.turn(np.where(none, light, heavy), 1.0, at),
    )


def _best_of(places: FreshPlaces, cases: int) -> FreshPlaces:
    """Return the distances with the heads alone that are best of each case for the last and the first position."""
    kept = []
    for k in (1.0, float(places.pace.steps)):
        costs = [
            np.broadcast_to(cost(*head, places.pace.turn(places.size, places.at, k), places.pace.used(1.0, k, 0.0)),
                            (cases, 1))
            for head in places.heads
        ]  # fmt: skip
        best = np.argmin(costs, axis=0)
        head = []
        for parts in zip(*places.heads, strict=True):
            columns = [[np.broadcast_to(np.asarray(value, float), (cases, 1)) for value in part] for part in parts]
            head.append(Stretch(*(np.choose(best, choices) for choices in zip(*columns, strict=True))))
        kept.append(tuple(head))
    return places._replace(heads=tuple(kept))
