"""The cost of a record in passes of fresh random orders, given its positions in all passes but the last.

Positions are counted from the end of a pass of l steps, sizes in units of a use in a full batch, costs in squares of
mu_1 = Delta/(b sigma). Moving a use to a later step never lowers the cost. So the uses of passes 1..E-2 count in the
last step of theirs, and of those among them that fall into the smallest batches ("heavy") none comes before one that
does not: of the last J passes before the last two the heavy ones come last, and what is before these J counts as heavy
altogether. Then only the number H of heavy uses is random, a binomial law, and uses of one size in a row are one
stretch. For c < 1 the window J need not grow with E, nor does the cost.

On a domain everything before a use may be forgotten, which leaves the diameter.

Also the cost of a record that keeps its position in every pass: at one position, or compared with another one.

Positions are counted from the end of a pass of l steps, sizes in units of a use in a full batch, costs in squares of
mu_1 = Delta/(b sigma). With 1-Lipschitz maps and no domain there are closed forms: for uses of size r at k, and of size
s at b and r at a < b,

    own = r^2 ((E-1)/l + 1/k),    pair = (E-1)(r+s)^2/l + s^2/(b-a) + r^2/a,   or ... + (r+s)^2/b if s/(b-a) > r/a.

Otherwise it is the lower hull of at most five points: uses one period apart lie on concave curves, so only the first
and the last use of each kind can be corners. On a domain everything before a use may be forgotten, which leaves the
diameter.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.notions.profiles import Earlier
from dpcalc.numerics.binomial import upper_groups
from dpcalc.numerics.floats import UNIT, Array, distinct, log_add_exp, np
from dpcalc.theorems.batch_layout import Layout
from dpcalc.theorems.many_passes.repeated_allocation import (
    Pace,
    Passes,
    Stretch,
    cost,
    gdp,
    join,
    pooled,
    repeat,
    restarts,
)

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
        """Return mu for a record that the last pass leaves out: the cost of its earlier uses."""
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
    # Groups are rounded up by far more units than sums of logarithms and exp are off.
    return [(number, min(1.0, math.exp(log_weight))) for number, log_weight in numbers]


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


_SAMPLES = 5  # positions at which the restarts worth keeping are chosen


class SamePlaces(NamedTuple):
    """The distances of positions that are the same in every pass.

    Attributes:
        pace: of the passes.
        epochs: E, the passes after which the last iterate is seen.
        ratio: mu_1.
        reach: the diameter in units of a use in a full batch; inf for none.
        heaviest: the size of a use in the smallest batch.
    """

    pace: Pace
    epochs: int
    ratio: float
    reach: float = math.inf
    heaviest: float = 1.0

    @property
    def bare(self) -> bool:
        """Whether only 1-Lipschitz maps are used."""
        return self.pace.still and math.isinf(self.reach)

    def own(self, k: Array, size: Any) -> Array:
        """Return mu of the two data sets with the record at position k in both."""
        return gdp(self.ratio, self.own_cost(k, size))

    def pair(self, b: Array, early: Any, a: Array, late: Any) -> Array:
        """Return mu for uses at b and a < b of these sizes."""
        return gdp(self.ratio, self.pair_cost(b, early, a, late))

    def unused(self) -> float:
        """Return mu for a record that is left out in both: no step differs."""
        return 0.0

    def among(self, several: Sequence[tuple[Any, int]]) -> None:
        """Return None: one order for all passes has one case alone."""

    def own_cost(self, k: Any, size: Any) -> Array:
        """Return the cost of uses of this size at position k."""
        if self.bare:
            squared: Array = size * size * ((self.epochs - 1) / self.pace.steps + 1.0 / k) * (1.0 + 8.0 * UNIT)
            return squared
        costs = [cost(*self._one(k, size))]
        if math.isfinite(self.reach):
            costs.append(cost(self.pace.entry(self.reach, (k - 1.0, 0.0))))
            costs.extend(cost(*self._one(k, size, left)) for left in _kept(self, False))
        least: Array = np.minimum.reduce(costs)
        return least

    def pair_cost(self, b: Any, early: Any, a: Any, late: Any) -> Array:
        """Return the cost of uses at b and at a < b."""
        if self.bare:
            return self._bare_pair(b, early, a, late)
        costs = [cost(*self._two(b, early, a, late))]
        if math.isfinite(self.reach):
            last = self.pace.used(late, a, 0.0)
            costs.append(cost(self.pace.entry(self.reach, (a - 1.0, 0.0))))
            costs.append(cost(self.pace.entry(self.reach, (b - 1.0, a)), last))
            if self.epochs > 1:
                costs.append(cost(*self._two_after_late(b, early, a, late, 0)))
            for left in _kept(self, True):
                costs.append(cost(*self._two_after_early(b, early, a, late, left)))
                if left < self.epochs - 1:
                    costs.append(cost(*self._two_after_late(b, early, a, late, left)))
        least: Array = np.minimum.reduce(costs)
        return least

    def _bare_pair(self, b: Any, early: Any, a: Any, late: Any) -> Array:
        with np.errstate(over="ignore"):
            apart = early * early / (b - a) + late * late / a
            together = (early + late) ** 2 / b
            last = np.where(early * a <= late * (b - a), apart, together)
            squared: Array = ((self.epochs - 1) * (early + late) ** 2 / self.pace.steps + last) * (1.0 + 16.0 * UNIT)
        return squared

    def _one(self, k: Any, size: Any, left: int | None = None) -> list[Stretch]:
        """Return the stretches of all uses, or of the diameter and the last ``left``."""
        pace = self.pace
        turns = (self.epochs if left is None else left) - 1
        uses = [repeat(pace.turn(size, k, k), turns, pace.whole), pace.used(size, k, 0.0)]
        return uses if left is None else [pace.entry(self.reach, (k - 1.0, 0.0), (float(pace.steps), k)), *uses]

    def _two(self, b: Any, early: Any, a: Any, late: Any) -> list[Stretch]:
        """Return the stretches of all uses."""
        first, last = self.pace.used(early, b, a), self.pace.used(late, a, 0.0)
        if self.epochs == 1:
            return [first, last]
        return [first, join(self.pace.turn(late, a, b), self._turns(b, early, a, late, self.epochs - 2)), first, last]

    def _two_after_late(self, b: Any, early: Any, a: Any, late: Any, left: int) -> list[Stretch]:
        """Return the stretches after a use at a, if ``left`` + 1 passes follow its own."""
        first, last = self.pace.used(early, b, a), self.pace.used(late, a, 0.0)
        entry = self.pace.entry(self.reach, (a - 1.0, 0.0), (float(self.pace.steps), b))
        if not left:
            return [entry, first, last]
        between = join(self.pace.turn(late, a, b), self._turns(b, early, a, late, left - 1))
        return [entry, first, between, first, last]

    def _two_after_early(self, b: Any, early: Any, a: Any, late: Any, left: int) -> list[Stretch]:
        """Return the stretches after a use at b, if ``left`` >= 1 passes follow its own."""
        first, last = self.pace.used(early, b, a), self.pace.used(late, a, 0.0)
        entry = self.pace.entry(self.reach, (b - 1.0, a))
        return [entry, self.pace.turn(late, a, b), self._turns(b, early, a, late, left - 1), first, last]

    def _turns(self, b: Any, early: Any, a: Any, late: Any, count: int) -> Stretch:
        """Return ``count`` periods from one use at b to the next."""
        period = join(self.pace.used(early, b, a), self.pace.turn(late, a, b))
        return repeat(period, count, self.pace.whole)


@functools.lru_cache(maxsize=256)
def _kept(places: SamePlaces, two: bool) -> tuple[int, ...]:
    """Return the restarts that are best somewhere: how many passes follow, 1 to E-1."""
    length = places.pace.steps
    kept: set[int] = set()
    at = distinct(np.rint(np.geomspace(1.0, length, _SAMPLES)))
    if two and length == 1:
        return ()
    for size in {1.0, places.heaviest}:
        tried = restarts(places.reach, size + two, places.pace.whole, places.epochs - 1)
        if two:
            costs = [cost(*places._two_after_early(at[1:], 1.0, np.ones(1), size, left)) for left in tried]
        else:
            costs = [cost(*places._one(at, size, left)) for left in tried]
        if tried:
            kept.update(tried[i] for i in np.argmin(costs, axis=0))
    return tuple(sorted(kept))
