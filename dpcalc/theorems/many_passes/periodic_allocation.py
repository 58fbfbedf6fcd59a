"""The optimal allocation for a record that is used once in every l steps, in closed form.

The shifted-divergence theorem spreads the shift that a use causes over the noise of that step and of all later steps.
Uses one period apart always share one block of the best allocation. Only the last use may have a block of its own.
Every formula is therefore O(1) for any number of uses and any period.

Notation: r = Delta/(b sigma), l steps from one use to the next, k of them from the last use to the end, E uses, c the
factor by which a step contracts, rate = -ln c, G_j = 1 + c^2 + ... + c^(2j-2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.quotients import quotient_up
from dpcalc.theorems.contraction_powers import factors, half_tanh, in_range, kept, lost, total, variance


class Uses(NamedTuple):
    """When a record is used, and how far one use moves its step: by r = Delta/(b sigma) of the noise.

    Attributes:
        sensitivity, size, noise_std: Delta, b (the records of its batch) and sigma.
        period: l >= 1, steps from one use to the next.
        tail: k in 1..l, steps from the last use to the end, its own included.
        times: E >= 1, how often it is used.
    """

    sensitivity: float
    size: int
    noise_std: float
    period: int
    tail: int
    times: int

    def mu(self, *shares: float, slack: float) -> float:
        """Return r times the product of the shares, rounded up."""
        return quotient_up((self.sensitivity, *shares), (self.size, self.noise_std), slack)

    def renyi(self, order: float, *shares: float, over: tuple[float, ...] = (), slack: float) -> float:
        """Return a r^2 times the product of the shares, divided by that of ``over``, rounded up."""
        moved, noise = self.sensitivity, self.noise_std
        return quotient_up((order, moved, moved, *shares), (self.size, self.size, noise, noise, *over), slack)


def contracting_mu(uses: Uses, rate: float = 0.0) -> float:
    """Return mu on the whole space, rounded up.

    Args:
        uses: the record's.
        rate: -ln c >= 0, not above the true one; inf for c = 0.
    """
    if uses.sensitivity == 0.0:
        return 0.0
    rate = in_range(rate)
    return _mu(uses, rate, unrestarted(uses, rate))


def bounded_mu(uses: Uses, rate: float, step_size: float, diameter: float) -> float:
    """Return mu where iterates are projected onto a set of diameter D, rounded up.

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

    That is c^(l-1) (1-c^(l(E-1)))/(1-c^l) G_k >= c^(2k-1) G_(l(E-1)), rid of common factors. Where rounding might
    decide, two blocks are kept, which is always allowed and costs the square of the rounding.
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
    """Return the least share over all restarts from the diameter right after a use but the last.

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
    """Return the share of a restart from ``reach`` followed by ``between`` uses and the last; inf where another is
    surely better.
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
