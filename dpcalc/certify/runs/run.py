"""A run in one reading: the record's batch, its signal over the noise, and the displacement of a step.

Costs are mu^2/(Delta/(b sigma))^2 of one use of a record in every pass, by the best allocation of its shifts.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flint import arb, fmpq

from dpcalc.certify.numerics.balls import Inputs, OutOfReach, least, less, power, square
from dpcalc.model.quantities import LastBatch, LossClass, Noise

KNOWN, HIDDEN, WORST = "known position", "hidden position", "worst position"
COMPOSED, SPLIT = "composed", "split noise"
"""Names of theorems in certificates."""

NO_CERTIFICATE = "the answer has no certificate"
OF_ANOTHER_RUN = "the certificate is of another run"
CHANGED = "the certificate was changed after it was made"


class RunInputs(Inputs):
    """The parameters of a run, and derived quantities."""

    def sizes(self) -> list[tuple[int, int, int]]:
        """Return (number of batches, records in each, divisor of their sums) of a pass, in order of time."""
        n, b, last = self.records, self.batch_size, self.last_batch
        if b >= n:
            return [(1, n, b if last == LastBatch.NOMINAL else n)]
        full, left = divmod(n, b)
        if left == 0 or last == LastBatch.DROP:
            return [(full, b, b)]
        if last == LastBatch.BALANCED:
            count = full + 1
            small, large = count - n % count, n % count
            whole = n // count
            return [(small, whole, whole)] + [(large, whole + 1, whole + 1)] * (large > 0)
        short = (1, left, b if last == LastBatch.NOMINAL else left)
        return [short, (full, b, b)] if last == LastBatch.FRONT else [(full, b, b), short]

    def period(self) -> int:
        """Return the number of steps of a pass."""
        return sum(count for count, _, _ in self.sizes())

    def batch(self) -> tuple[int, int]:
        """Return (divisor of the record's batch, number of steps from it to the last, itself included).

        Raises:
            OutOfReach: the record is dropped.
        """
        before, steps = 0, 0
        for count, size, divisor in self.sizes():
            place = (self.index - 1 - before) // size
            if place < count:
                return divisor, self.period() - steps - place
            before, steps = before + count * size, steps + count
        raise OutOfReach("a record that every pass drops")

    def batch_behind(self) -> tuple[int, int]:
        """Return (divisor of the record's batch, number of later steps)."""
        divisor, tail = self.batch()
        return divisor, tail - 1

    def ratio(self) -> tuple[arb, int]:
        """Return (Delta/(b sigma), steps to the end)."""
        size, steps = self.batch()
        return self.quotient(["sensitivity"], [size, "noise_std"]), steps

    def contraction_factor(self) -> arb:
        """Return c = max(|1 - eta m|, |1 - eta beta|), above 1 for weakly convex losses.

        Raises:
            OutOfReach: it is above 1 for convex losses, even if only by rounding: 0.2 as a double exceeds the decimal,
                so 10 * 0.2 exceeds 2.
        """
        eta = self.exact("step_size")
        c = max(abs(1 - eta * self.exact("strong_convexity")), abs(1 - eta * self.exact("smoothness")))
        if c > 1 and self.exact("strong_convexity") >= 0:
            raise OutOfReach("the step size is above 2/smoothness, in this reading of the two")
        return arb(c)

    def certified(self) -> Mapping[str, Any]:
        """Return the certificate of the answer.

        Raises:
            OutOfReach: it has none, or its digest belongs to another one.
        """
        certificate: Mapping[str, Any] | None = self.certificate
        if certificate is None:
            raise OutOfReach(NO_CERTIFICATE)
        fields = {**certificate}
        if fields.pop("digest", None) != f"{zlib.crc32(repr(fields).encode()):08x}":
            raise OutOfReach(CHANGED)
        return fields

    def displacement_bound(self) -> arb | None:
        """Return the least bound on the distance of two points of the domain after a step, over the diameter.

        None if no bound applies, or if the domain is unbounded.
        """
        if self.diameter is None:
            return None
        factors: list[arb] = []
        kind = self.loss_class or LossClass.CONVEX_SMOOTH
        lipschitz = self._gradient_bound()
        if lipschitz is not None:
            factors.append(1 + 2 * self.step_size * lipschitz / self.diameter)
            if (bent := self.bent(lipschitz)) is not None:
                factors.append((bent[0] + square(bent[1] / self.diameter)).sqrt())
        if self.smoothness is not None and kind in (LossClass.SMOOTH, LossClass.CONVEX_SMOOTH):
            factors.append(arb(self.lipschitz_factor()))
        return least(*factors) if factors else None

    def lipschitz_factor(self) -> fmpq:
        """Return the Lipschitz factor of a step's map: max(|1 - eta m|, |1 - eta beta|), m the least curvature."""
        eta, beta = self.exact("step_size"), self.exact("smoothness")
        return max(abs(1 - eta * self.lowest_curvature()), abs(1 - eta * beta))

    def lowest_curvature(self) -> fmpq:
        """Return the least curvature of smooth losses: that of convex ones, or -beta or a number above it."""
        convexity = self.exact("strong_convexity")
        if self.loss_class != LossClass.SMOOTH:
            return convexity
        beta = self.exact("smoothness")
        return max(convexity, -beta) if convexity < 0 else -beta

    def bent(self, lipschitz: arb) -> tuple[arb, arb] | None:
        """Return (q, w): a step leaves points z apart at most sqrt(q z^2 + w^2) apart. None if unknown."""
        eta, smooth = self.exact("step_size"), self.smoothness is not None and not self.exact("regularisation")
        if self.loss_class in (None, LossClass.SMOOTH, LossClass.CONVEX_SMOOTH) and smooth:
            weak, beta = max(-self.lowest_curvature(), fmpq(0)), self.exact("smoothness")
            if eta * (beta - weak) <= 2:
                return None
            width = 4 * square(lipschitz) * eta * (eta - 2 / (beta - weak))
            return arb(1 + 2 * eta * weak * beta / (beta - weak)), width.sqrt()
        weak = -self.exact("strong_convexity")
        if self.loss_class in (LossClass.SMOOTH, LossClass.LIPSCHITZ) and weak <= 0:
            return None
        return arb(1 + 2 * eta * max(weak, fmpq(0))), 2 * eta * lipschitz

    def is_nonexpansive(self) -> bool:
        """Return whether the maps are 1-Lipschitz: convex and smooth losses with eta beta <= 2.

        Raises:
            OutOfReach: eta beta is above 2 only by rounding: 0.2 as a double exceeds the decimal.
        """
        if self.smoothness is None or self.loss_class != LossClass.CONVEX_SMOOTH:
            return False
        product = self.exact("step_size") * self.exact("smoothness")
        if 2 < product <= 2 + fmpq(1, 1 << 49):
            raise OutOfReach("the step size is a little above 2/smoothness, in this reading of the two")
        return bool(product <= 2)

    def _gradient_bound(self) -> arb | None:
        """Return the Lipschitz constant L that bounds a step's displacement; None if there is none.

        It is that of the loss alone if eta lambda <= 1. A longer step on the regulariser reverses directions: the
        bound is then L + lambda R on the whole gradient, in a ball of radius R.
        """
        if self.lipschitz is None or self.exact("step_size") * self.exact("regularisation") <= 1:
            return self.lipschitz
        return None if self.radius is None else self.lipschitz + self.regularisation * self.radius


def room(c: arb, steps: int) -> arb:
    """Return 1 + c^2 + ... + c^(2 steps - 2)."""
    if steps <= 64:
        return sum((power(c * c, j) for j in range(steps)), arb(0))
    left = 1 - c * c
    if left.is_zero():
        return arb(steps)
    less(arb(0), left)
    return (1 - power(c * c, steps)) / left


def schedule_reach(noise: Noise, x: arb, c1: arb, c2: arb) -> arb:
    """Return r_B: 2 ln(x/C1 + C2), or 2 sqrt(W(x^2/(2 pi C1^2) + C2))."""
    if noise == Noise.LAPLACE:
        return 2 * (x / c1 + c2).log()
    return 2 * (x * x / (2 * arb.pi() * c1 * c1) + c2).lambertw().sqrt()


class Stretch(NamedTuple):
    """Steps that share a block: the shift carried to their end, the accumulated variance there, and their factor."""

    carried: arb
    room: arb
    factor: arb


def _stretch(shift: arb | int, steps: int, c: arb) -> Stretch:
    """Return the stretch of ``steps`` steps (at least one) with a shift at the first of them."""
    return Stretch(shift * power(c, steps - 1), room(c, steps), power(c, steps))


def _repeated(period: int, count: int, c: arb) -> Stretch:
    """Return the stretch of uses one pass apart, which share a block in every allocation."""
    total = period * count
    if c == 1:
        return Stretch(arb(count), arb(total), arb(1))
    ends = power(c, period - 1) * (1 - power(c, total)) / (1 - power(c, period))
    return Stretch(ends, room(c, total), power(c, total))


def _cost(stretches: Sequence[Stretch]) -> arb:
    """Return the least cost: neighbours are pooled while the slope before is not below the slope after."""
    stack: list[Stretch] = []
    for piece in stretches:
        now = piece
        while stack and not stack[-1].carried * now.room < now.factor * now.carried * stack[-1].room:
            before = stack.pop()
            now = Stretch(
                now.factor * before.carried + now.carried,
                square(now.factor) * before.room + now.room,
                before.factor * now.factor,
            )
        stack.append(now)
    return sum((square(p.carried) / p.room for p in stack), arb(0))


def passes_cost(period: int, tail: int, uses: int, c: arb) -> arb:
    """Return the least cost of one use a pass, ``tail`` steps from its end, in units of (Delta/(b sigma))^2."""
    parts = [_repeated(period, uses - 1, c)] if uses > 1 else []
    return _cost([*parts, _stretch(1, tail, c)])


def _restarted(period: int, tail: int, c: arb, reach: arb, between: int) -> arb:
    """Return the cost from the diameter right after a use, with ``between`` uses before the last one."""
    parts = [_stretch(reach * c, period - 1, c)] if period > 1 else []
    if between:
        parts.append(_repeated(period, between, c))
    last = _stretch(1, tail, c)
    if period > 1:
        return _cost([*parts, last])
    first = parts[0] if between else last  # no step of its own: the diameter adds to what comes next
    pooled = Stretch(first.factor * reach + first.carried, first.room, first.factor)
    return _cost([pooled, last]) if between else _cost([pooled])


def restarts_cost(period: int, tail: int, uses: int, c: arb, reach: arb) -> arb:
    """Return the minimum cost with a restart from the diameter, over the number of uses after the restart.

    It tries the first 40 numbers and those near the minimum that a ternary search finds.
    """
    costs = [passes_cost(period, tail, uses, c)]
    if tail > 1:
        costs.append(_cost([_stretch(reach * c, tail - 1, c)]))
    if uses > 1:
        tried = {*range(min(40, uses - 1)), uses - 2}
        low, high = 0, uses - 2
        while high - low > 8:
            a, b = low + (high - low) // 3, high - (high - low) // 3
            better = _restarted(period, tail, c, reach, b) < _restarted(period, tail, c, reach, a)
            low, high = (a, high) if better else (low, b)
        tried.update(range(low, high + 1))
        costs += [_restarted(period, tail, c, reach, j) for j in tried]
    return least(*costs)


def quadratic_cost(q: arb, period: int, tail: int, uses: int) -> arb:
    """Return (the accumulated shift)^2 over the accumulated variance of w -> q w + N(0, 1), used once a pass."""
    total = period * uses
    if q == 1:
        return arb(uses) / period
    shift = power(q, tail - 1) * (1 - power(q, total)) / (1 - power(q, period))
    return shift * shift * (1 - q * q) / (1 - power(q * q, total))
