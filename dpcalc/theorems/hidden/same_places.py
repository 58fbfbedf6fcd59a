"""What a record costs that keeps its place in every pass: at one position, or told apart from another one.

Positions are counted from the end of a pass of l steps, sizes in units of a use in a full batch, costs in squares of
mu_1 = Delta/(b sigma). With 1-Lipschitz maps and no domain there are closed forms: for uses of size r at k, and of size
s at b and r at a < b,

    own = r^2 ((E-1)/l + 1/k),    pair = (E-1)(r+s)^2/l + s^2/(b-a) + r^2/a,   or ... + (r+s)^2/b if s/(b-a) > r/a.

Otherwise it is the lower hull of at most five points: uses one period apart lie on concave curves, so that only the
first and the last use of each kind can be corners. On a domain everything before a use may be forgotten, which leaves
the diameter.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.numerics.arrays import Array, distinct, np
from dpcalc.numerics.floats import UNIT
from dpcalc.theorems.many_passes.repeated_allocation import Pace, Stretch, cost, gdp, join, repeat, restarts

if TYPE_CHECKING:
    from collections.abc import Sequence

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
