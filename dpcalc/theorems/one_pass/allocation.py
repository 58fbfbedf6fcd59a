"""The allocation of a chain's shifts to its noise: optimal for Gaussian noise, or the user's own.

For equal steps that do not expand, the optimal allocation has a closed form.

With factors c <= 1 the slopes between prefix sums fall from step to step for any start, so all steps are one block of
constant slope (`dpcalc.numerics.isotonic`). For m steps that begin at z,

    S = z c^m + s (1 - c^m)/(1 - c),   V = v (1 - c^(2m))/(1 - c^2),   cost S^2/V,   a_j = v c^(m-j) S/V.

On a domain of diameter D all but the last m steps may be forgotten, with z = D. With A = s/(1-c), the cost is (A + (D -
A) c^m)^2/(1 - c^(2m)) up to a factor: it falls with m up to c^m = 1 - D/A, or m = D/s at c = 1, and grows beyond.

The allocation for Laplace noise, in one dimension.

Every allocation is valid at every order. The Gaussian one is improved by majorise-minimise: the divergence R is concave
in the square of the shift, so the quadratic through the current a_t with curvature R'(a)/a lies above it, and the
Gaussian problem with the weights a_t/R'(a_t) can only lower the sum.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from dpcalc.errors import SpecError
from dpcalc.files import Fields
from dpcalc.model.chain import Chain
from dpcalc.notions.profiles import ALLOCATION, Certificate
from dpcalc.numerics.floats import UNIT, Array, distinct, np, up

if TYPE_CHECKING:
    from dpcalc.numerics.isotonic import Allocation


_LARGE, _SMALL = 1e140, 1e-140  # squares of numbers between them neither overflow nor lose digits


class EqualSteps(NamedTuple):
    """Equal consecutive steps.

    Attributes:
        steps: m, the number of steps that are not forgotten.
        shift: s of each step.
        rate: -ln c >= 0.
        variance: v of each step, rounded down.
        start: z, the distance before the first step.
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
        """Return the distance after ``steps`` steps if nothing is spent."""
        return self.start * self.factor(steps) + self.shift * _geometric(self.rate, steps)

    def room(self, steps: Any) -> Any:
        """Return the variance after ``steps`` steps."""
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
        # The two sums err by at most 8 units; c^m by 4 units for each unit of its exponent, doubled in the square.
        return up(carried / room * carried, 64.0 + 8.0 * min(self.rate * self.steps, 745.0))

    def spent(self, step: Any) -> Any:
        """Return a_j of step j, counted from 1."""
        return self.arriving(self.steps) / self.room(self.steps) * self.variance * self.factor(self.steps - step)

    def left(self, step: Any) -> Any:
        """Return z_j, the distance not yet spent after step j, counted from 1."""
        slope = self.arriving(self.steps) / self.room(self.steps)
        return np.maximum(self.arriving(step) - slope * self.factor(self.steps - step) * self.room(step), 0.0)

    def share(self, first: int, last: int) -> float:
        """Return the share of the cost in the steps after ``first`` up to ``last``."""
        share = self.room(last - first) * self.factor(2.0 * (self.steps - last)) / self.room(self.steps)
        return float(share) if last > first else 0.0


def _geometric(rate: float, terms: Any) -> Any:
    """Return 1 + e^-rate + ... with ``terms`` terms."""
    return terms if rate == 0.0 else np.expm1(-rate * terms) / math.expm1(-rate)


def equal_steps(chain: Chain, start: float, cap: float | None) -> EqualSteps | None:
    """Return the steps of a chain that the optimal allocation does not forget; None if steps differ or expand.

    Args:
        chain: the steps, with their shifts.
        start: the distance z_0 of the two starting points.
        cap: the diameter of the domain, which allows a restart; None if it is unbounded.
    """
    one = chain.one
    if one is None or one.shift is None or not 0.0 < one.contraction[0] <= 1.0:
        return None
    rate = -math.log(float(one.contraction[0]))
    whole = EqualSteps(len(chain), float(one.shift[0]), rate, float(one.variance[0]), start)
    ways = [whole, *(whole._replace(steps=steps, start=cap) for steps in _restarts(whole, cap))] if cap else [whole]
    return min(ways, key=lambda way: way.cost) if all(way.in_range for way in ways) else None


def _restarts(whole: EqualSteps, cap: float) -> set[int]:
    """Return candidate numbers of steps, 1 to T-1, after the best restart: those near the optimum."""
    most, uses = whole.steps - 1, cap / whole.shift if whole.shift else math.inf
    part = uses * -math.expm1(-whole.rate) if whole.rate else 0.0  # D/A
    best = uses if whole.rate == 0.0 else -math.log1p(-part) / whole.rate if part < 1.0 else math.inf
    near = int(min(best, most))
    return {steps for steps in range(near - 1, near + 3) if 1 <= steps <= most}


def describe(steps: EqualSteps, skipped: int, samples: int) -> dict[str, Any]:
    """Return the allocation as JSON types; see `describe_allocation`.

    Args:
        steps: the steps that are not forgotten.
        skipped: the number of forgotten steps.
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


_SHOWN_BLOCKS = 50  # one page
_SHOWN_STEPS = 10_000  # all of them: some 300 kB of JSON; the closed form of equal steps gives only samples
_SAMPLES = 1_000  # one point for every column of a wide plot

_KNOWN: WeakKeyDictionary[Chain, dict[tuple[float, float | None], Allocation]] = WeakKeyDictionary()


def optimal(chain: Chain, start: float, cap: float | None) -> Allocation:
    """Return the optimal allocation for Gaussian noise of multiplier 1, computed once for each chain.

    It is also optimal for every other multiplier, so a search over the noise does not repeat it.

    Args:
        chain: the steps, with their shifts.
        start: the distance z_0 of the two starting points.
        cap: the diameter of the domain, which allows a restart; None if it is unbounded.
    """
    known = _KNOWN.setdefault(chain, {})
    if (start, cap) not in known:
        known[start, cap] = _optimal(chain, start, cap)
    return known[start, cap]


def _optimal(chain: Chain, start: float, cap: float | None) -> Allocation:
    from dpcalc.numerics.isotonic import Allocation, allocate

    steps = equal_steps(chain, start, cap) if len(chain) > _SHOWN_STEPS else None
    if steps is None:
        return allocate(shifts(chain), chain.variance, chain.contraction, start=start, cap=cap)
    cost, end = steps.cost, np.array([len(chain)])
    return Allocation(cost, len(chain) - steps.steps, steps.start, end, np.array([cost]), 0.0)


def shares(chain: Chain, allocation: Allocation) -> Array:
    """Return the a_t of an optimal allocation, shape (T,)."""
    from dpcalc.numerics.isotonic import spend

    return spend(allocation, shifts(chain), chain.variance, chain.contraction)


def shifts(chain: Chain) -> Array:
    """Return the shifts s_t of a chain."""
    assert chain.shift is not None
    return chain.shift


def own_shares(chain: Chain, start: float) -> Array:
    """Return the user's a_t, shape (T,), after checking z_t >= 0 and z_T = 0 to 1e-9 of the largest z.

    Raises:
        SpecError: the allocation is invalid.
    """
    from dpcalc.numerics.isotonic import remaining

    shift, spent = shifts(chain), chain.spend
    assert spent is not None
    left = remaining(spent, shift, chain.contraction, start=start)
    tolerance = 1e-9 * max(float(shift.max()), start, float(abs(left).max()))
    if left.min() < -tolerance:
        step = int((left < -tolerance).argmax()) + 1
        raise SpecError(
            f"{chain}: step {step} spends {spent[step - 1]:g}, more than is left (z_t would be {left[step - 1]:g})",
            "a_t may be at most c_t z_(t-1) + s_t; leave out the column for the optimal allocation",
        )
    if left[-1] > tolerance:
        raise SpecError(
            f"{chain}: {left[-1]:g} is left unspent after the last step",
            "the a_t must bring z_T to 0; leave out the column for the optimal allocation",
        )
    return completed(spent, shift, chain.contraction, start)


def completed(spent: Array, shift: Array, carry: Array, start: float) -> Array:
    """Return the allocation with an upper bound on the unspent rest added to its last step, shape (T,).

    The recursion rounds up throughout; where it would go below 0 it is set to 0, which is valid.
    """
    left = start
    for c, s, a in zip(carry.tolist(), shift.tolist(), spent.tolist(), strict=True):
        arriving = c * left + s
        left = max(0.0, arriving - a + 4.0 * UNIT * arriving)
    result = spent.copy()
    result[-1] = up(float(result[-1]) + left, 2.0)
    return result


def describe_allocation(chain: Chain, start: float, cap: float | None, own: bool) -> dict[str, Any]:
    """Return the allocation as JSON types: the Gaussian one, or the user's ``own``.

    ``restart`` (steps forgotten), ``quarters`` (share of mu^2 in each quarter of the steps), ``block_count``,
    ``blocks`` (first and last step, share of mu^2; at most 50, the costliest), and ``a`` and ``z``: for up to 10000
    steps all of them, otherwise ``sampled`` at about 1000 steps, evenly and at the ends of the shown blocks. Blocks and
    steps are left out if a share is not finite.
    """
    if not own and len(chain) > _SHOWN_STEPS and (steps := equal_steps(chain, start, cap)) is not None:
        return describe(steps, len(chain) - steps.steps, _SAMPLES)
    allocation = None if own else optimal(chain, start, cap)
    spent: Any = chain.spend if allocation is None else shares(chain, allocation)
    tau, level = (0, start) if allocation is None else (allocation.start, allocation.start_value)
    quarters = _quarters(chain, spent)
    described: dict[str, Any] = {"restart": tau, "quarters": quarters}
    if allocation is not None:
        described["block_count"] = len(allocation.block_ends)
    if not all(math.isfinite(q) for q in quarters):
        return described
    if allocation is not None:
        described["blocks"] = _blocks(allocation)
    return {**described, **_path(chain, spent, level, tau, described.get("blocks", []))}


def _quarters(chain: Chain, spent: Array) -> list[float]:
    """Return the share of mu^2 in each quarter of the steps."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        cost = np.where(spent > 0.0, np.square(spent / chain.scale), 0.0)
        share = cost / cost.sum()
    return [float(part.sum()) for part in np.array_split(share, 4)]


def _blocks(allocation: Allocation) -> list[dict[str, Any]]:
    """Return the costliest blocks: first and last step, share of the cost."""
    costs = allocation.block_costs
    total = float(costs.sum()) or 1.0
    costliest = np.argsort(-costs, kind="stable")[:_SHOWN_BLOCKS]
    firsts = np.concatenate(([allocation.start + 1], allocation.block_ends[:-1] + 1))
    return [
        {"first": int(firsts[k]), "last": int(allocation.block_ends[k]), "share": float(costs[k]) / total}
        for k in costliest
    ]


def _path(chain: Chain, spent: Array, start: float, tau: int, blocks: list[Fields]) -> dict[str, Any]:
    """Return the a_t and z_t of every step, or ``sampled`` if there are many; nothing if one overflows."""
    from dpcalc.numerics.isotonic import remaining

    if not np.isfinite(spent).all():
        return {}
    left = np.maximum(remaining(spent, shifts(chain), chain.contraction, start=start, skip=tau), 0.0)
    if len(chain) <= _SHOWN_STEPS:
        return {"a": spent.tolist(), "z": left.tolist()}
    ends = [block[end] for block in blocks for end in ("first", "last")]
    at = distinct(np.linspace(1, len(chain), _SAMPLES).astype(int), np.array(ends, int))
    return {"sampled": {"steps": at.tolist(), "a": spent[at - 1].tolist(), "z": left[at - 1].tolist()}}


_REFINED_STEPS = 100_000
_OWN_ORDER_STEPS = 200
_MOST_RECORDED = 1000
_ROUNDS, _WORK = 40, 200_000
_REFINED_AT = (0.25, 1.0, 4.0, 16.0, 64.0)


class LaplaceSpending:
    """The steps of a chain that are not forgotten, and allocations of their shifts to Laplace noise.

    Attributes:
        shift, carry: s_t and c_t of these steps.
        scale: b_t, the Laplace scale of each step in parameter space, rounded down.
        entry: z before the first of them.
        start: the number of forgotten steps.
    """

    def __init__(self, chain: Chain, allocation: Allocation, multiplier: float) -> None:
        kept = slice(allocation.start, None)
        self.shift, self.carry, self.entry = shifts(chain)[kept], chain.contraction[kept], allocation.start_value
        self.scale = (chain.scale * (multiplier * (1.0 - 2.0**-52)))[kept]
        self.start = allocation.start
        self._gaussian = self._completed(shares(chain, allocation)[kept])

    def divergence(self, order: float) -> float:
        """Return the least sum of Laplace divergences found at an order, rounded up."""
        return self._cost(self.spent(order), order)

    def spent(self, order: float) -> Array:
        """Return the allocation at an order, shape (T,)."""
        _, _, best = min((self._cost(spent, order), k, spent) for k, spent in enumerate(self._candidates))
        if len(self._candidates) == 1 or len(self.scale) > _OWN_ORDER_STEPS:
            return best
        return self._improved(best, order)

    def certificate(self, order: float) -> Certificate | None:
        """Return the restart and the allocation from there on; None for a long chain."""
        if len(self.scale) > _MOST_RECORDED:
            return None
        return Certificate(ALLOCATION, values={"start": self.start, "spent": self.spent(order).tolist()})

    @functools.cached_property
    def _candidates(self) -> list[Array]:
        """The Gaussian allocation, and versions improved for some orders.

        Only order times shift over scale matters: below 1 the divergence is quadratic, as for Gaussian noise; far above
        it is linear. Between orders that differ by a factor of 4 the optimum moves little, and its cost changes only to
        second order.
        """
        first, scale = self._gaussian, self.scale
        largest = float((first / scale).max()) if (scale > 0.0).all() else math.inf
        if len(scale) > _REFINED_STEPS or not 0.0 < largest < math.inf or self._uniform:
            return [first]
        orders = [max(1.0 + 1e-6, factor / largest) for factor in _REFINED_AT]
        return [first, *(self._improved(first, order) for order in (*orders, math.inf))]

    @property
    def _uniform(self) -> bool:
        """Whether all steps are equal with c = 1: the Gaussian allocation is then optimal for every convex cost."""
        return bool((self.scale == self.scale[0]).all() and (self.carry == 1.0).all())

    def _improved(self, spent: Array, order: float) -> Array:
        """Return the allocation improved for one order, shape (T,)."""
        from dpcalc.numerics.isotonic import allocate, spend

        best, value = spent, self._cost(spent, order)
        for _ in range(max(2, min(_ROUNDS, _WORK // len(self.shift)))):
            weight = self._weights(best, order)
            allocation = allocate(self.shift, weight, self.carry, start=self.entry)
            candidate = self._completed(spend(allocation, self.shift, weight, self.carry))
            lower = self._cost(candidate, order)
            if not lower < value * (1.0 - 1e-5):
                break
            best, value = candidate, lower
        return best

    def _completed(self, spent: Array) -> Array:
        return completed(spent, self.shift, self.carry, self.entry)

    def _weights(self, spent: Array, order: float) -> Array:
        """Return a_t/R'(a_t), the weights of the quadratic majoriser (b^2/order at a_t = 0)."""
        scale = self.scale
        u = spent / scale
        if math.isinf(order):
            linear: Array = np.maximum(u, 1e-12) * scale * scale
            return linear
        a1, w = order - 1.0, 2.0 * order - 1.0
        # R'(u) = a (1 - y)/(a + (a-1) y), y = e^(-w u); its ratio to u tends to order as u -> 0.
        slope = order * -np.expm1(-w * u) / (order + a1 * np.exp(-np.minimum(w * u, 700.0)))
        ratio = np.where(u > 1e-12, slope / np.where(u > 1e-12, u, 1.0), order)
        quadratic: Array = scale * scale / ratio
        return quadratic

    def _cost(self, spent: Array, order: float) -> float:
        """Return sum_t of the Laplace divergence at shift a_t and scale b_t, rounded up."""
        scale = self.scale
        if (spent[scale == 0.0] > 0.0).any():
            return math.inf
        u = np.divide(spent, scale, out=np.zeros(len(spent)), where=scale > 0.0)
        if math.isinf(order):
            return up(math.fsum(u.tolist()), 8.0)
        return up(math.fsum(_divergences(u, order).tolist()), 64.0)


def _divergences(u: Array, order: float) -> Array:
    """Return the Laplace divergence at each u = shift/scale, shape (T,), with errors up to 32 units of roundoff."""
    a1, w = order - 1.0, 2.0 * order - 1.0
    if order == 1.0:
        return _expm1_minus(-u)
    with np.errstate(over="ignore", invalid="ignore"):
        small = a1 * u < 1.0
        near = np.log1p((order * _expm1_minus(a1 * u) + a1 * _expm1_minus(-order * u)) / w) / a1
        far = u + np.log1p(a1 / w * np.expm1(-w * u)) / a1
    return np.where(small, near, far)


def _expm1_minus(x: Array) -> Array:
    """Return e^x - 1 - x elementwise: a series below 1/2, where the difference would cancel."""
    series, term = np.zeros_like(x), np.ones_like(x)
    clipped = np.clip(x, -0.5, 0.5)
    for k in range(2, 20):
        term = term * clipped / k
        series += term
    return np.where(np.abs(x) <= 0.5, series * clipped, np.expm1(x) - x)
