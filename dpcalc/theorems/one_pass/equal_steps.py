"""The optimal allocation of a chain whose steps are all alike and expand nothing, in closed form.

With factors c <= 1 the slopes of the points of prefix sums fall from step to step, whatever the start: all steps are
one block of constant slope (`dpcalc.numerics.isotonic`). Of m steps that begin at z,

    S = z c^m + s (1 - c^m)/(1 - c),   V = v (1 - c^(2m))/(1 - c^2),   cost S^2/V,   a_j = v c^(m-j) S/V.

On a domain of diameter D all but the last m steps may be forgotten, z = D. With A = s/(1-c), the cost is
(A + (D - A) c^m)^2/(1 - c^(2m)) up to a factor: it falls with m up to c^m = 1 - D/A, or m = D/s at c = 1, and grows
from there on.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

from dpcalc.model.chain import Chain
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import up

_LARGE, _SMALL = 1e140, 1e-140  # squares of numbers between them neither overflow nor lose digits


class EqualSteps(NamedTuple):
    """Steps in a row.

    Attributes:
        steps: m, those that are not forgotten.
        shift: s of each.
        rate: -ln c >= 0.
        variance: v of each, rounded down.
        start: z, the distance before the first.
    """

    steps: int
    shift: float
    rate: float
    variance: float
    start: float

    def factor(self, steps: Any) -> Any:
        """Return c^steps."""
        return np.exp(-self.rate * steps)

    def arriving(self, steps: Any) -> Any:
        """Return the distance after so many steps if nothing of it is spent."""
        return self.start * self.factor(steps) + self.shift * _geometric(self.rate, steps)

    def room(self, steps: Any) -> Any:
        """Return the variance that so many steps leave."""
        return self.variance * _geometric(2.0 * self.rate, steps)

    @property
    def in_range(self) -> bool:
        """Whether the formulas lose no digits."""
        return all(
            _SMALL < value < _LARGE for value in (self.arriving(self.steps), self.variance, self.room(self.steps))
        )

    @property
    def cost(self) -> float:
        """The least sum of a_j^2/v, rounded up."""
        carried, room = float(self.arriving(self.steps)), float(self.room(self.steps))
        # The two sums are good to 8 units; c^m to 4 units for each unit of its exponent, twice in the square.
        return up(carried / room * carried, 64.0 + 8.0 * min(self.rate * self.steps, 745.0))

    def spent(self, step: Any) -> Any:
        """Return a_j of steps counted from 1."""
        slope = self.arriving(self.steps) / self.room(self.steps)
        return slope * self.variance * self.factor(self.steps - step)

    def left(self, step: Any) -> Any:
        """Return z_j: what is not yet spent after steps counted from 1."""
        slope = self.arriving(self.steps) / self.room(self.steps)
        return np.maximum(self.arriving(step) - slope * self.factor(self.steps - step) * self.room(step), 0.0)

    def share(self, first: int, last: int) -> float:
        """Return the share of the cost in the steps after ``first`` up to ``last``."""
        share = self.room(last - first) * self.factor(2.0 * (self.steps - last)) / self.room(self.steps)
        return float(share) if last > first else 0.0


def _geometric(rate: float, terms: Any) -> Any:
    """Return 1 + e^-rate + ... of so many terms."""
    return terms if rate == 0.0 else np.expm1(-rate * terms) / math.expm1(-rate)


def equal_steps(chain: Chain, start: float, cap: float | None) -> EqualSteps | None:
    """Return the steps of a chain that the optimal allocation does not forget; None where they differ, or expand.

    Args:
        chain: the steps, with their shifts.
        start: the distance z_0 of the two starting points.
        cap: the diameter of the domain, which allows a restart; None where there is none.
    """
    one = chain.one
    if one is None or one.shift is None or not 0.0 < one.contraction[0] <= 1.0:
        return None
    rate = -math.log(float(one.contraction[0]))
    whole = EqualSteps(len(chain), float(one.shift[0]), rate, float(one.variance[0]), start)
    ways = [whole, *(whole._replace(steps=steps, start=cap) for steps in _restarts(whole, cap))] if cap else [whole]
    return min(ways, key=lambda way: way.cost) if all(way.in_range for way in ways) else None


def _restarts(whole: EqualSteps, cap: float) -> set[int]:
    """Return the numbers of steps, 1 to T-1, after a restart that cost the least: those about the one that is best."""
    most, uses = whole.steps - 1, cap / whole.shift if whole.shift else math.inf
    part = uses * -math.expm1(-whole.rate) if whole.rate else 0.0  # D/A
    best = uses if whole.rate == 0.0 else -math.log1p(-part) / whole.rate if part < 1.0 else math.inf
    near = int(min(best, most))
    return {steps for steps in range(near - 1, near + 3) if 1 <= steps <= most}


def describe(steps: EqualSteps, skipped: int, samples: int) -> dict[str, Any]:
    """Return where the shifts are spent, as JSON types; see `allocation.describe_allocation`.

    Args:
        steps: those that are not forgotten.
        skipped: how many are.
        samples: the number of steps at which a and z are given.
    """
    total = skipped + steps.steps
    ends = [0, *np.cumsum([len(part) for part in np.array_split(np.broadcast_to(0.0, (total,)), 4)]).tolist()]
    inside = [max(end - skipped, 0) for end in ends]
    at: Array = np.linspace(1, total, samples).astype(int)
    at = np.sort(np.append(at, skipped + 1)) if skipped + 1 not in at else at
    step = np.maximum(at - skipped, 0)
    spent, left = np.where(step > 0, steps.spent(step), 0.0), np.where(step > 0, steps.left(step), steps.start)
    return {
        "restart": skipped,
        "quarters": [steps.share(first, last) for first, last in itertools.pairwise(inside)],
        "block_count": 1,
        "blocks": [{"first": skipped + 1, "last": total, "share": 1.0}],
        "sampled": {"steps": at.tolist(), "a": spent.tolist(), "z": left.tolist()},
    }
