"""The cost of a record's uses by the best allocation of their shifts, in several passes of random order.

Positions are counted from the end of a pass of l steps, costs in squares of Delta/(d sigma), d the largest divisor of a
batch. Between uses there are *stretches* of steps; neighbours are pooled if the first carries more shift per unit of
noise than the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flint import arb, fmpq

from dpcalc.certify.numerics.balls import OutOfReach, least, square
from dpcalc.certify.runs.run import RunInputs, Stretch


class Alike(NamedTuple):
    """Positions ``first`` .. ``first + steps - 1`` whose batches hold ``size`` records, over ``divisor``."""

    first: int
    steps: int
    size: int
    divisor: int


def classes(v: RunInputs) -> list[Alike]:
    """Return the positions of a pass, the last ones first."""
    batches, first = [], 1
    for count, size, divisor in reversed(v.sizes()):
        batches.append(Alike(first, count, size, divisor))
        first += count
    return batches


def join(*stretches: Stretch) -> Stretch:
    """Return consecutive stretches joined into one."""
    carried, room, factor = stretches[0]
    for after in stretches[1:]:
        carried = after.factor * carried + after.carried
        room = square(after.factor) * room + after.room
        factor = factor * after.factor
    return Stretch(carried, room, factor)


def cost(*stretches: Stretch) -> arb:
    """Return the least cost; undecided neighbours are not pooled, which is always valid."""
    stack: list[Stretch] = []
    for piece in stretches:
        now = piece
        while stack and (
            stack[-1].room.is_zero() or stack[-1].carried * now.room >= now.factor * now.carried * stack[-1].room
        ):
            now = join(stack.pop(), now)
        stack.append(now)
    total = arb(0)
    for carried, room, _ in stack:
        if not carried.is_zero():
            total += square(carried) / room if not room.is_zero() else arb.pos_inf()
    return total


class Pace:
    """The contraction of the steps of a pass, counted from its end.

    Args:
        v: the run, for its step size, smoothness and strong convexity.
        contracts: whether to use contraction, or only that steps are 1-Lipschitz.
    """

    def __init__(self, v: RunInputs, contracts: bool = True) -> None:
        batches = classes(v)
        self.steps = sum(alike.steps for alike in batches)
        self._pieces: list[tuple[int, arb]] = []
        for alike in batches:
            factor = _factor(v, fmpq(min(alike.size, alike.divisor), alike.divisor)) if contracts else fmpq(1)
            self._pieces.append((alike.first + alike.steps - 1, arb(factor)))
        self._known: dict[tuple[int, int], Stretch] = {}
        if all(factor == self._pieces[0][1] for _, factor in self._pieces):
            self._pieces = [(self.steps, self._pieces[0][1])]

    @property
    def slowest(self) -> arb:
        """The largest factor of a step."""
        largest = arb(0)
        for _, factor in self._pieces:
            largest = largest.max(factor)
        return largest

    @property
    def still(self) -> bool:
        """Whether no step contracts."""
        return all(bool(factor == 1) for _, factor in self._pieces)

    def quiet(self, start: int, stop: int) -> Stretch:
        """Return the steps from ``start`` to ``stop`` without a shift; none if the two are equal."""
        place = (start, stop) if len(self._pieces) > 1 else (start - stop, 0)
        if place not in self._known:
            joined, low = Stretch(arb(0), arb(0), arb(1)), 0
            for top, factor in self._pieces:
                steps = max(min(start, top) - max(stop, low), 0)
                if steps:
                    joined = join(_steady(steps, factor), joined)
                low = top
            self._known[place] = joined
        return self._known[place]

    def used(self, size: arb, start: int, stop: int) -> Stretch:
        """Return a use of this size at ``start``, and the steps from there to ``stop``."""
        return self.quiet(start, stop)._replace(carried=size * self.quiet(start - 1, stop).factor)

    def turn(self, size: arb, start: int, stop: int) -> Stretch:
        """Return a use at ``start``, and the steps from there to ``stop`` in the next pass."""
        return join(self.used(size, start, 0), self.quiet(self.steps, stop))

    def entry(self, reach: arb, *ways: tuple[int, int]) -> Stretch:
        """Return the distance ``reach`` and then the steps between these pairs of positions."""
        return join(Stretch(reach, arb(0), arb(1)), *(self.quiet(start, stop) for start, stop in ways))

    def repeat(self, period: Stretch, count: int) -> Stretch:
        """Return ``count`` >= 0 equal periods of one pass each: one stretch in every allocation."""
        q = self.quiet(self.steps, 0).factor
        if q == 1 or not count:
            return Stretch(period.carried * count, period.room * count, arb(1))
        if q.is_zero():
            return period
        log_all = q.log() * count
        carried = period.carried * (log_all.expm1() / q.log().expm1())
        return Stretch(carried, period.room * ((2 * log_all).expm1() / (2 * q.log()).expm1()), log_all.exp())


def _steady(steps: int, factor: arb) -> Stretch:
    """Return steps of one factor without a shift."""
    if factor == 1:
        return Stretch(arb(0), arb(steps), arb(1))
    if factor.is_zero():
        return Stretch(arb(0), arb(1), arb(0))
    fallen = factor.log() * steps
    return Stretch(arb(0), (2 * fallen).expm1() / (2 * factor.log()).expm1(), fallen.exp())


def _factor(v: RunInputs, share: fmpq) -> fmpq:
    """Return the Lipschitz factor of a step with this share of its losses; a ridge may count in full.

    Raises:
        OutOfReach: it is above 1.
    """
    eta, convexity, smoothness = (v.exact(name) for name in ("step_size", "strong_convexity", "smoothness"))
    c = max(abs(1 - eta * share * convexity), abs(1 - eta * (convexity + share * (smoothness - convexity))))
    if c > 1:
        raise OutOfReach("the step size is above 2/smoothness, in this reading of the two")
    return c


def passes_left(reach: arb, size: arb, q: arb, most: int) -> list[int]:
    """Return candidate numbers of passes, 1 to ``most``, after the restart from a known distance.

    Each gives a bound; the best is where the incoming shift equals the distance.
    """
    if q == 1:
        far = float((reach / size).mid())
    else:
        removed = reach * (1 - q) / size
        far = float((-(1 - removed).log() / -q.log()).mid()) if removed < 1 and q > 0 else 1e15
    near = int(min(max(far, 0.0), 1e15))
    return sorted(j for j in {1, 2, 3, near // 2, *range(near - 2, near + 3), most} if 1 <= j <= most)


_SAMPLES = 5  # positions at which the useful restarts are chosen


class SamePlaces:
    """The costs of positions that are the same in all E passes; see docs/method.md.

    Args:
        pace: the contraction of the passes.
        epochs: E.
        reach: the diameter in units of a use in a full batch; None if there is none.
        heaviest: the size of a use in the smallest batch.
    """

    def __init__(self, pace: Pace, epochs: int, reach: arb | None, heaviest: arb) -> None:
        self.pace, self.epochs, self.reach = pace, epochs, reach
        self.bare = reach is None and pace.still
        self._one_kept = self._kept(heaviest, False)
        self._two_kept = self._kept(heaviest, True)

    def own(self, k: int, size: arb) -> arb:
        """Return the cost of uses at k."""
        if self.bare:
            return square(size) * (arb(self.epochs - 1) / self.pace.steps + arb(1) / k)
        costs = [cost(*self._one(k, size, None))]
        if self.reach is not None:
            costs += [cost(self.pace.entry(self.reach, (k - 1, 0)))] if k > 1 else []
            costs += [cost(*self._one(k, size, left)) for left in self._one_kept]
        return least(*costs)

    def unused(self) -> arb:
        """Return the cost of no use."""
        return arb(0)

    def pair(self, b: int, early: arb, a: int, late: arb) -> arb:
        """Return the cost of uses at b and at a < b."""
        if self.bare:
            first, last = early / (b - a), late / a
            apart, together = early * first + late * last, square(early + late) / b
            return square(early + late) * (self.epochs - 1) / self.pace.steps + (together if first >= last else apart)
        costs = [cost(*self._two(b, early, a, late))]
        if self.reach is not None:
            last_use = self.pace.used(late, a, 0)
            costs += [cost(self.pace.entry(self.reach, (a - 1, 0)))] if a > 1 else []
            costs.append(cost(self.pace.entry(self.reach, (b - 1, a)), last_use))
            costs += [cost(*self._after_late(b, early, a, late, 0))] if self.epochs > 1 else []
            for left in self._two_kept:
                costs.append(cost(*self._after_early(b, early, a, late, left)))
                costs += [cost(*self._after_late(b, early, a, late, left))] if left < self.epochs - 1 else []
        return least(*costs)

    def _one(self, k: int, size: arb, left: int | None) -> list[Stretch]:
        """Return the stretches of all uses, or of the diameter and the last ``left`` uses."""
        pace = self.pace
        turns = (self.epochs if left is None else left) - 1
        uses = [pace.repeat(pace.turn(size, k, k), turns)] if turns else []
        uses.append(pace.used(size, k, 0))
        if left is None:
            return uses
        assert self.reach is not None
        return [pace.entry(self.reach, (k - 1, 0), (pace.steps, k)), *uses]

    def _two(self, b: int, early: arb, a: int, late: arb) -> list[Stretch]:
        first, last = self.pace.used(early, b, a), self.pace.used(late, a, 0)
        return [first, *self._turns(b, early, a, late, self.epochs - 1), last]

    def _turns(self, b: int, early: arb, a: int, late: arb, count: int) -> list[Stretch]:
        """Return the stretches between a first use at b and a last one at a, ``count`` passes later."""
        if not count:
            return []
        first, turned = self.pace.used(early, b, a), self.pace.turn(late, a, b)
        if count == 1:
            return [turned, first]
        return [join(turned, self.pace.repeat(join(first, turned), count - 1)), first]

    def _after_late(self, b: int, early: arb, a: int, late: arb, left: int) -> list[Stretch]:
        """Return the stretches after a use at a, if ``left`` + 1 passes follow its own."""
        assert self.reach is not None
        entry = self.pace.entry(self.reach, (a - 1, 0), (self.pace.steps, b))
        first, last = self.pace.used(early, b, a), self.pace.used(late, a, 0)
        return [entry, first, *self._turns(b, early, a, late, left), last]

    def _after_early(self, b: int, early: arb, a: int, late: arb, left: int) -> list[Stretch]:
        """Return the stretches after a use at b, if ``left`` >= 1 passes follow its own."""
        assert self.reach is not None
        first, turned, last = self.pace.used(early, b, a), self.pace.turn(late, a, b), self.pace.used(late, a, 0)
        turns = [self.pace.repeat(join(first, turned), left - 1)] if left > 1 else []
        return [self.pace.entry(self.reach, (b - 1, a)), turned, *turns, first, last]

    def _kept(self, heaviest: arb, two: bool) -> list[int]:
        """Return the restarts that are best at some position, as numbers of passes that follow."""
        length = self.pace.steps
        if self.reach is None or self.epochs == 1 or (two and length == 1):
            return []
        at = sorted({round(length ** (i / (_SAMPLES - 1))) for i in range(_SAMPLES)})
        kept: set[int] = set()
        q = self.pace.quiet(length, 0).factor
        for size in (arb(1), heaviest):
            tried = passes_left(self.reach, size + two, q, self.epochs - 1)
            for k in at:
                if two and k == 1:
                    continue
                costs = [
                    cost(*(self._after_early(k, arb(1), 1, size, j) if two else self._one(k, size, j))) for j in tried
                ]
                kept.update(tried[i] for i in sorted(range(len(tried)), key=lambda i: _middle(costs[i]))[:1])
        return sorted(kept)


def _middle(x: arb) -> float:
    return float(x.mid()) if x < arb(10) ** 300 else float("inf")


class FreshPlaces:
    """The costs of positions in the last pass, given the uses before it in one of their cases.

    Args:
        pace, reach: as for `SamePlaces`.
        heads: allocations for the uses of all passes but the last two; the least counts.
        at, size: the use of the last pass but one.
    """

    def __init__(self, pace: Pace, reach: arb | None, heads: Sequence[Sequence[Stretch]], at: int, size: arb) -> None:
        self.pace, self.reach, self.heads, self.at, self.size = pace, reach, heads, at, size
        if len(heads) > 1:
            self.heads = [self._best_head(k) for k in (1, pace.steps)]

    def own(self, k: int, size: arb) -> arb:
        """Return the cost of a last use at k."""
        costs = self._after(k, self.pace.used(size, k, 0))
        if self.reach is not None and k > 1:
            costs.append(cost(self.pace.entry(self.reach, (k - 1, 0))))
        return least(*costs)

    def unused(self) -> arb:
        """Return the cost of no use in the last pass."""
        return least(*self._after(0))

    def pair(self, b: int, early: arb, a: int, late: arb) -> arb:
        """Return the cost of last uses at b and at a < b."""
        first, last = self.pace.used(early, b, a), self.pace.used(late, a, 0)
        costs = self._after(b, first, last)
        if self.reach is not None:
            costs += [cost(self.pace.entry(self.reach, (a - 1, 0)))] if a > 1 else []
            costs.append(cost(self.pace.entry(self.reach, (b - 1, a)), last))
        return least(*costs)

    def _after(self, k: int, *last: Stretch) -> list[arb]:
        """Return the costs of all allocations, for uses of the last pass at k and later."""
        use = self.pace.turn(self.size, self.at, k)
        costs = [cost(*head, use, *last) for head in self.heads]
        if self.reach is not None:
            entry = self.pace.entry(self.reach, (self.at - 1, 0), (self.pace.steps, k))
            if last or not entry.room.is_zero():
                costs.append(cost(entry, *last))
        return costs

    def _best_head(self, k: int) -> Sequence[Stretch]:
        use, last = self.pace.turn(self.size, self.at, k), self.pace.used(arb(1), k, 0)
        return min(self.heads, key=lambda head: _middle(cost(*head, use, last)))
