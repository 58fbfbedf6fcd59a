"""Where the shifts of a chain are spent: the optimal allocation for Gaussian noise, or the user's own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dpcalc.errors import SpecError
from dpcalc.model.chain import Chain
from dpcalc.numerics.arrays import Array, distinct, np
from dpcalc.numerics.floats import UNIT, up
from dpcalc.theorems.one_pass.equal_steps import describe, equal_steps

if TYPE_CHECKING:
    from dpcalc.numerics.isotonic import Allocation

_SHOWN_BLOCKS = 50  # a page of them
_SHOWN_STEPS = 10_000  # one by one: some 300 kB of JSON; the closed form of equal steps gives samples alone
_SAMPLES = 1_000  # a point for every column of a wide plot

_KNOWN: WeakKeyDictionary[Chain, dict[tuple[float, float | None], Allocation]] = WeakKeyDictionary()


def optimal(chain: Chain, start: float, cap: float | None) -> Allocation:
    """Return the optimal allocation for Gaussian noise of multiplier 1, worked out once as long as the chain lives.

    It is that of every other multiplier, too, so that a search over the noise does not repeat it.

    Args:
        chain: the steps, with their shifts.
        start: the distance z_0 of the two starting points.
        cap: the diameter of the domain, which allows a restart; None where there is none.
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
    """Return the shifts s_t of a chain that has them."""
    assert chain.shift is not None
    return chain.shift


def own_shares(chain: Chain, start: float) -> Array:
    """Return the user's a_t, shape (T,), after checking z_t >= 0 and z_T = 0 to 1e-9 of the largest z.

    Raises:
        SpecError: the allocation is not one.
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
    """Return the allocation with an upper bound on what it leaves unspent added to its last step, shape (T,).

    The recursion runs with every rounding upwards; where it would go below 0 less is spent than allowed, which is free.
    """
    left = start
    for c, s, a in zip(carry.tolist(), shift.tolist(), spent.tolist(), strict=True):
        arriving = c * left + s
        left = max(0.0, arriving - a + 4.0 * UNIT * arriving)
    result = spent.copy()
    result[-1] = up(float(result[-1]) + left, 2.0)
    return result


def describe_allocation(chain: Chain, start: float, cap: float | None, own: bool) -> dict[str, Any]:
    """Return where the shifts are spent, as JSON types: for the Gaussian allocation, or the user's ``own``.

    ``restart`` (steps forgotten), ``quarters`` (share of mu^2 in each quarter of the steps), ``block_count``,
    ``blocks`` (first and last step, share of mu^2; at most 50, the costliest), and ``a`` and ``z`` themselves: all of
    up to 10000 steps, else ``sampled`` at about 1000 of them, evenly and at the ends of the shown blocks. Blocks and
    steps are left out where a share is not finite.
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


def _path(chain: Chain, spent: Array, start: float, tau: int, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the a_t and z_t of every step, or ``sampled`` where there are many; nothing where one overflows."""
    from dpcalc.numerics.isotonic import remaining

    if not np.isfinite(spent).all():
        return {}
    left = np.maximum(remaining(spent, shifts(chain), chain.contraction, start=start, skip=tau), 0.0)
    if len(chain) <= _SHOWN_STEPS:
        return {"a": spent.tolist(), "z": left.tolist()}
    ends = [block[end] for block in blocks for end in ("first", "last")]
    at = distinct(np.linspace(1, len(chain), _SAMPLES).astype(int), np.array(ends, int))
    return {"sampled": {"steps": at.tolist(), "a": spent[at - 1].tolist(), "z": left[at - 1].tolist()}}
