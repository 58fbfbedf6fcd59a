"""The joint privacy cost of a few uses of one record: the optimal allocation, over numpy arrays.

Times are counted in steps, costs in squares of mu_1 = Delta/(b sigma), sizes in units of one use of a full batch. A
`Stretch` is the run of steps from one use to the next, described at its end: the shift that it carries, its variance,
and the product of its contractions. `cost` pools neighbours as in `dpcalc.numerics.isotonic`, from the right.

A `Pace` says how the steps of a pass contract. Its positions are counted from the end: the step at position p is
followed by those at p-1, ..., 1. A stretch "from p to q" has the steps p, p-1, ..., q+1.

For a record that is used once in every l steps the optimal allocation has a closed form.

The shifted-divergence theorem spreads the shift that a use causes over the noise of that step and of all later steps.
Uses one period apart always share one block of the best allocation. Only the last use may have a block of its own.
Every formula is therefore O(1) for any number of uses and any period.

Notation: r = Delta/(b sigma), l steps from one use to the next, k of them from the last use to the end, E uses, c the
factor by which a step contracts, rate = -ln c, G_j = 1 + c^2 + ... + c^(2j-2).

Several passes in random order with Gaussian noise: their steps, contraction and domain.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dpcalc.numerics.floats import UNIT, Array, np, quotient_up, ratio_up, up
from dpcalc.theorems.batch_layout import Layout
from dpcalc.theorems.setting import Setting, decay_rate, factors, half_tanh, in_range, kept, lost, total, variance

_STEEPEST = 100.0  # c = exp(-100) replaces smaller values, including 0: that is the safe side
_FLATTEST = 1e-290
_NEGLIGIBLE = 1e-290  # exceeds what underflow may lose of a cost


class Stretch(NamedTuple):
    """Consecutive steps: the shift they carry to their end, their variance there, and the product of their factors."""

    carried: Any
    room: Any
    factor: Any


def rate_in_range(rate: float) -> float:
    """Return -ln c, reduced to the range of the formulas here."""
    return min(rate, _STEEPEST) if rate > _FLATTEST else 0.0


def stretch(size: Any, steps: Any, rate: float = 0.0) -> Stretch:
    """Return a use of this size followed by ``steps`` >= 0 steps, its own included, each contracting by exp(-rate)."""
    steps = np.asarray(steps, float)
    if rate == 0.0:
        return Stretch(size, steps, 1.0)
    carried = size * np.exp(-np.minimum(rate * (steps - 1.0), 745.0))
    room = np.expm1(-2.0 * rate * steps) / np.expm1(-2.0 * rate)
    return Stretch(carried, room, np.exp(-np.minimum(rate * steps, 745.0)))


def periods(count: Any, steps: float, rate: float = 0.0) -> Stretch:
    """Return ``count`` >= 0 uses of size 1, each followed by ``steps`` >= 1 steps: one block in every allocation."""
    count = np.asarray(count, float)
    if rate == 0.0:
        return Stretch(count, count * steps, 1.0)
    whole = stretch(1.0, count * steps, rate)
    carried = np.exp(-rate * (steps - 1.0)) * np.expm1(-rate * steps * count) / np.expm1(-rate * steps)
    return Stretch(carried, whole.room, whole.factor)


class Pace(NamedTuple):
    """The contraction of the steps of every pass.

    Attributes:
        steps: l, the steps of a pass.
        pieces: (highest position, rate), from the end of a pass: steps up to that position contract by exp(-rate).
    """

    steps: int
    pieces: tuple[tuple[float, float], ...]

    @property
    def still(self) -> bool:
        """Whether no step is known to contract."""
        return all(rate == 0.0 for _, rate in self.pieces)

    @property
    def slowest(self) -> float:
        """The least rate at which a step contracts."""
        return min(rate for _, rate in self.pieces)

    @property
    def whole(self) -> float:
        """-ln of the factor of a whole pass."""
        return float(self.exponent(self.steps, 0))

    def exponent(self, start: Any, stop: Any) -> Any:
        """Return -ln of the product of the factors from position ``start`` to ``stop``."""
        total, low = 0.0, 0.0
        for top, rate in self.pieces:
            total = total + rate * np.maximum(np.minimum(start, top) - np.maximum(stop, low), 0.0)
            low = top
        return total

    def quiet(self, start: Any, stop: Any) -> Stretch:
        """Return the steps from ``start`` to ``stop`` without a shift; none if the two are equal."""
        if len(self.pieces) == 1:
            return stretch(0.0, np.subtract(start, stop), self.pieces[0][1])._replace(carried=0.0)
        joined, low = Stretch(0.0, 0.0, 1.0), 0.0
        for top, rate in self.pieces:  # from the end: each piece comes before those joined already
            steps = np.maximum(np.minimum(start, top) - np.maximum(stop, low), 0.0)
            joined, low = join(stretch(0.0, steps, rate)._replace(carried=0.0), joined), top
        return joined

    def used(self, size: Any, start: Any, stop: Any) -> Stretch:
        """Return a use of this size at ``start``, and the steps from there to ``stop``, at least its own."""
        fading = np.exp(-np.minimum(self.exponent(np.subtract(start, 1.0), stop), 745.0))
        return self.quiet(start, stop)._replace(carried=size * fading)

    def turn(self, size: Any, start: Any, stop: Any) -> Stretch:
        """Return a use at ``start``, and the steps from there to ``stop`` in the next pass."""
        return join(self.used(size, start, 0.0), self.quiet(float(self.steps), stop))

    def entry(self, reach: Any, *ways: tuple[Any, Any]) -> Stretch:
        """Return the distance ``reach`` followed by the steps between these pairs of positions, if any.

        Earlier differences of two runs within this distance may be forgotten.
        """
        return join(Stretch(reach, 0.0, 1.0), *(self.quiet(start, stop) for start, stop in ways))


def join(*stretches: Stretch) -> Stretch:
    """Return consecutive stretches as one."""
    carried, room, factor = stretches[0]
    for after in stretches[1:]:
        carried = after.factor * carried + after.carried
        room = after.factor * after.factor * room + after.room
        factor = factor * after.factor
    return Stretch(carried, room, factor)


def repeat(period: Stretch, count: Any, exponent: float) -> Stretch:
    """Return ``count`` >= 0 equal consecutive periods; ``exponent`` is -ln of a period's factor, a number.

    The points before the periods lie on a concave curve, so the lower hull has no corner between the first and the last
    of them.
    """
    count = np.asarray(count, float)
    if exponent == 0.0:
        return Stretch(period.carried * count, period.room * count, 1.0)
    all_of_them = np.minimum(exponent * count, 745.0)
    carried = period.carried * (np.expm1(-all_of_them) / np.expm1(-exponent))
    room = period.room * (np.expm1(-2.0 * all_of_them) / np.expm1(-2.0 * exponent))
    return Stretch(carried, room, np.exp(-all_of_them))


def pooled(stretches: tuple[Stretch, ...]) -> tuple[Stretch, ...]:
    """Return stretches of numbers, with those joined that are pooled whatever follows."""
    blocks: list[Stretch] = []
    for piece in stretches:
        while blocks and blocks[-1].carried * piece.room >= piece.factor * piece.carried * blocks[-1].room:
            piece = join(blocks.pop(), piece)
        blocks.append(piece)
    return tuple(blocks)


def gdp(ratio: float, squared: Array) -> Array:
    """Return ratio sqrt(squared), rounded up, at most 1e100.

    Of the 16 units of roundoff three are for what is done here: ``squared`` may be off by 24.
    """
    with np.errstate(over="ignore"):
        mu: Array = np.minimum(ratio * np.sqrt(squared) * (1.0 + 16.0 * UNIT), 1e100)
    return mu


def restarts(reach: float, size: float, exponent: float, most: int) -> list[int]:
    """Return candidate numbers of periods, 1 to ``most``, after the restart from ``reach``.

    Every number gives a bound. With a shift of ``size`` in each period the best is near ``reach/size``, or where
    contraction balances the incoming shift.
    """
    removed = reach * -math.expm1(-exponent) / size if exponent else 0.0
    far = reach / size if exponent == 0.0 else (-math.log1p(-removed) / exponent if removed < 1.0 else math.inf)
    near = int(min(far, 1e15))
    return sorted(j for j in {1, 2, 3, near // 2, *range(near - 2, near + 3), most} if 1 <= j <= most)


def cost(*stretches: Stretch) -> Array:
    """Return the least sum of a_t^2/v_t that lets every use be spent by the end, rounded up.

    inf if a shift is carried and no step is left to spend it. If rounding pools two stretches wrongly, the cost changes
    only by the square of the rounding.
    """
    blocks = [tuple(stretch) for stretch in stretches]  # plain numbers stay numbers, which is faster
    alive: list[Any] = [True] * len(blocks)
    for i in range(len(blocks) - 2, -1, -1):
        carried, room, factor = blocks[i]
        going: Any = True
        for j in range(i + 1, len(blocks)):
            if alive[j] is False:
                continue
            right, wide, shrink = blocks[j]
            joined = going & alive[j] & (carried * wide >= shrink * right * room)
            going = going & (joined | (alive[j] ^ True))
            if np.all(joined):
                alive[j] = False
                carried, room, factor = shrink * carried + right, shrink * shrink * room + wide, factor * shrink
            elif np.any(joined):
                alive[j] = alive[j] & (joined ^ True)
                carried = np.where(joined, shrink * carried + right, carried)
                room = np.where(joined, shrink * shrink * room + wide, room)
                factor = np.where(joined, factor * shrink, factor)
            if not np.any(going):
                break
        blocks[i] = (carried, room, factor)
    total: Any = 0.0
    with np.errstate(divide="ignore", over="ignore"):
        for (carried, room, _), kept in zip(blocks, alive, strict=True):
            if kept is not False:
                # The order matters: the square of a small number may be 0.
                spent = np.divide(np.where(carried > 0.0, carried, 1.0), room) * carried
                total = total + np.where(kept & (carried > 0.0), spent, 0.0)
    # 64 units for the sums; exp(-x) is off by x units, x < 745.
    result: Array = total * (1.0 + 8192.0 * UNIT) + _NEGLIGIBLE
    return result


class Uses(NamedTuple):
    """The times of a record's uses, and the size of one use: r = Delta/(b sigma) in units of the noise.

    Attributes:
        sensitivity, size, noise_std: Delta, b (the records of its batch) and sigma.
        period: l >= 1, steps from one use to the next.
        tail: k in 1..l, steps from the last use to the end, its own included.
        times: E >= 1, the number of uses.
    """

    sensitivity: float
    size: int
    noise_std: float
    period: int
    tail: int
    times: int

    def mu(self, *shares: float, slack: float = 0.0) -> float:
        """Return r times the product of the shares, rounded up; shares may be off by one unit of roundoff each."""
        return quotient_up((self.sensitivity, *shares), (self.size, self.noise_std), slack)

    def renyi(self, order: float, *shares: float, over: tuple[float, ...] = (), slack: float = 0.0) -> float:
        """Return a r^2 times the product of the shares, divided by that of ``over``, rounded up.

        Of 4 units of roundoff a factor, two are for its reading and its product: shares together may be off by 18.
        """
        moved, noise = self.sensitivity, self.noise_std
        return quotient_up((order, moved, moved, *shares), (self.size, self.size, noise, noise, *over), slack)


def contracting_mu(uses: Uses, rate: float = 0.0) -> float:
    """Return mu on the whole space, rounded up.

    Args:
        uses: the record's uses.
        rate: -ln c >= 0, not above the true one; inf for c = 0.
    """
    if uses.sensitivity == 0.0:
        return 0.0
    rate = in_range(rate)
    return _mu(uses, rate, unrestarted(uses, rate))


def bounded_mu(uses: Uses, rate: float, step_size: float, diameter: float) -> float:
    """Return mu if iterates are projected onto a set of diameter D, rounded up.

    Two runs are never further apart than D: the allocation may restart from there after any use.
    """
    if uses.sensitivity == 0.0:
        return 0.0
    rate = in_range(rate)
    share = unrestarted(uses, rate)
    reach = quotient_up((diameter, uses.size), (step_size, uses.sensitivity))
    if reach < math.inf and uses.times > 1:
        share = min(share, _restarted(uses, rate, reach))
    mu = _mu(uses, rate, share)
    return min(mu, _last_restart(uses, rate, step_size, diameter)) if uses.tail > 1 else mu


def _mu(uses: Uses, rate: float, share: float) -> float:
    """Return r c^(k-1) times the share."""
    fading, error = factors(rate, uses.tail - 1)
    return uses.mu(share, *fading, slack=40.0 + error)


def _last_restart(uses: Uses, rate: float, step_size: float, diameter: float) -> float:
    """Return mu of the diameter right after the last use, hidden by the k - 1 steps that follow."""
    fading, error = factors(rate, uses.tail - 1)
    noise = math.sqrt(variance(rate, uses.tail - 1))
    return quotient_up((diameter, *fading), (step_size, uses.noise_std, noise), 16.0 + error)


# --- shares: mu in units of r c^(k-1), what the last use alone would cost if it were spent on the very step that ends
# --- the run; each is within 32 units of roundoff, or above


def unrestarted(uses: Uses, rate: float) -> float:
    """Return the share of the optimal allocation of all uses."""
    if rate > 0.0 and _joins(uses, rate):
        steps = uses.period * (uses.times - 1) + uses.tail
        return total(rate, uses.period, uses.times) / math.sqrt(variance(rate, steps))
    return apart(uses, rate)


def _joins(uses: Uses, rate: float) -> bool:
    """Return whether the last use surely shares its block with the others: slope before >= slope after.

    That is c^(l-1) (1-c^(l(E-1)))/(1-c^l) G_k >= c^(2k-1) G_(l(E-1)), rid of common factors. If rounding might decide,
    two blocks are kept, which is always valid and costs the square of the rounding.
    """
    gap = (2 * uses.tail - uses.period) * rate
    if gap <= 0.0:
        return False
    before = kept(rate, uses.period * (uses.times - 1)) * lost(rate, uses.period)
    return gap > 700.0 or math.expm1(gap) * (1.0 - 64.0 * UNIT) >= before


def apart(uses: Uses, rate: float) -> float:
    """Return the share of the last use in a block of its own and all others in one before it."""
    if rate == 0.0:
        return math.sqrt((uses.times - 1) / uses.period + 1.0 / uses.tail)
    rising = half_tanh(rate * (uses.period * (uses.times - 1)))
    whole = lost(rate, uses.period)
    before = kept(rate, uses.period - uses.tail) * math.sqrt(lost(2.0 * rate, 1) / whole * (rising / whole))
    return math.hypot(before * (1.0 + 32.0 * UNIT), 1.0 / math.sqrt(variance(rate, uses.tail)))


def _restarted(uses: Uses, rate: float, reach: float) -> float:
    """Return the least share over all restarts from the diameter right after a use, except the last use.

    ``reach`` is the diameter in units of one use's shift, rounded up. The cost with j uses between the restart and the
    last use is smooth in j, and stationary only at two values, one for each shape of the allocation: near a least
    whole j lies one of them, or an end. Every j is a valid bound.
    """
    period, most = uses.period, uses.times - 2
    removed = reach * lost(rate, period)
    far = reach * period if rate == 0.0 else (-math.log1p(-removed) / rate if removed < 1.0 else math.inf)
    tried = {0, most}
    for turning in ((far - 2 * (period - 1)) / period, (far - 2 * (uses.tail - 1)) / period - 1.0):
        near = math.floor(min(max(turning, 0.0), float(most)))
        tried.update(j for j in range(near - 1, near + 3) if 0 <= j <= most)
    return min(_from_diameter(uses, rate, reach, j) for j in tried)


def _from_diameter(uses: Uses, rate: float, reach: float, between: int) -> float:
    """Return the share of a restart from ``reach`` followed by ``between`` uses and the last; inf if another is surely
    better.
    """
    period, tail = uses.period, uses.tail
    steps = period * (between + 1) - 1
    faded, added = kept(rate, period * between), total(rate, period, between)
    carried, room = reach * faded + added, variance(rate, steps)
    if between and period > 1:
        # The diameter has l - 1 steps to itself. If it is better spent there, a restart after a later use is better.
        own = reach * variance(rate, period * between) * (1.0 - 64.0 * UNIT)
        if own < faded * added * variance(rate, period - 1):
            return math.inf
    gap = (period - 2 * tail) * rate
    last_room = variance(rate, tail)
    if steps == 0 or (gap < 700.0 and carried * last_room * (1.0 - 64.0 * UNIT) >= math.exp(max(gap, -700.0)) * room):
        return (1.0 + kept(rate, period) * carried) / math.sqrt(variance(rate, steps + tail))
    return math.hypot(kept(rate, period - tail) * carried / math.sqrt(room), 1.0 / math.sqrt(last_room))


_NEAREST, _FARTHEST = 1e-60, 1e60  # a diameter, in uses: a smaller one counts as the first, a larger one does not help


class Passes(NamedTuple):
    """Several passes in random order with Gaussian noise.

    Attributes:
        plan: the layout of a pass; l, the number of its steps, is ``plan.steps``.
        epochs: E.
        ratio: mu_1, the GDP parameter of one use in a full batch with no later step.
        pace: how the steps contract.
        reach: the diameter in units of a use in a full batch; inf for none.
    """

    plan: Layout
    epochs: int
    ratio: float
    pace: Pace
    reach: float = math.inf

    @classmethod
    def of(cls, run: Setting, noise_std: float, epochs: int = 1) -> Passes:
        """Return the passes of a run, with strong convexity and the domain."""
        plan = run.layout
        return cls(
            plan,
            epochs,
            ratio_up(run.sensitivity, plan.size * noise_std),
            pace_of(plan, run.step_size, run.smoothness, run.strong_convexity),
            reach_of(plan, run.diameter, run.step_size, run.sensitivity),
        )

    @property
    def plain(self) -> Passes:
        """The same passes with only 1-Lipschitz maps."""
        length = self.plan.steps
        return self._replace(pace=Pace(length, ((float(length), 0.0),)), reach=math.inf)

    @property
    def bare(self) -> bool:
        """Whether only 1-Lipschitz maps are used."""
        return self.pace.still and math.isinf(self.reach)


def pace_of(plan: Layout, step_size: float, smoothness: float, strong_convexity: float) -> Pace:
    """Return the contraction of a pass: a step whose divisor exceeds its records mixes in the identity.

    A ridge may be part of every loss, and is then divided with it, or be added to the mean gradient. The rate is the
    lesser of the two.
    """
    pieces: list[tuple[float, float]] = []
    for alike in plan.positions:
        share = min(1.0, alike.size / alike.divisor)
        steepest = min(smoothness, up(strong_convexity + share * (smoothness - strong_convexity), 4.0))
        rate = decay_rate(step_size, steepest, strong_convexity * share)
        rate = rate_in_range(rate * (1.0 - 8.0 * UNIT))
        if pieces and pieces[-1][1] == rate:
            pieces.pop()
        pieces.append((float(alike.first + alike.steps - 1), rate))
    return Pace(plan.steps, tuple(pieces))


def reach_of(plan: Layout, diameter: float, step_size: float, sensitivity: float) -> float:
    """Return the diameter in units of a use in a full batch, rounded up; inf if it does not help."""
    if math.isinf(diameter) or sensitivity == 0.0:
        return math.inf
    reach = up(diameter / step_size / sensitivity * plan.size, 8.0)
    return max(reach, _NEAREST) if reach < _FARTHEST else math.inf
