"""The optimal shift allocation: its cost, rounded up, and the shift spent and remaining at every step."""

from __future__ import annotations

from dataclasses import dataclass

from dpcalc.numerics.floats import UNIT, Array, Integers, np
from dpcalc.numerics.isotonic.pooling import CHUNK, check_level, checked_steps, pieces, pooled_blocks
from dpcalc.numerics.isotonic.restarts import (
    best_restart,
    block_costs,
    block_of,
    block_totals,
    carried_units,
    quotient_of_square,
    split,
    sum_up,
    to_double_up,
)


@dataclass(frozen=True, eq=False)
class Allocation:
    """An optimal allocation, described by its blocks.

    Block i covers the steps ``block_ends[i-1] + 1 .. block_ends[i]`` (1-based, inclusive; the first one
    begins at ``start + 1``) and spends exactly its own inflow, at constant slope.
    """

    cost: float
    """Upper bound on the minimal sum a_t^2 / v_t, within a few 1e-14 relatively; inf if none is finite."""
    start: int
    """Number of leading steps discarded (0 = none)."""
    start_value: float
    """The z the allocation starts from: z_0, or the cap after discarding."""
    block_ends: Integers
    """Last step of each block, 1-based, increasing, shape (B,); the last entry is T."""
    block_costs: Array
    """The cost S^2 / V of each block before the inflation by ``slack``, shape (B,)."""
    slack: float
    """The relative inflation that covers all rounding: cost >= sum(block_costs) (1 + slack)."""


def allocate(inflow: Array, weight: Array, carry: Array, *, start: float = 0.0, cap: float | None = None) -> Allocation:
    """Return the allocation of least cost, with an upper bound on that cost.

    Args:
        inflow: s_t, shape (T,), finite and >= 0; T >= 1.
        weight: v_t, shape (T,), finite and >= 0.
        carry: c_t, shape (T,), finite and >= 0.
        start: z_0, finite and >= 0.
        cap: None, or a bound D >= 0 on z that holds at all times: steps 1..tau may then be discarded for any
            tau in 1..T-1, restarting from z_tau = D; the best tau (or none) is used.

    Returns:
        The allocation; its cost is inf if some inflow can only be spent where the weight is 0.

    Raises:
        ValueError: a shape or a value outside these domains.

    Source: optimal shift allocation: lower convex hull of (V_t, S_t); restarts from the diameter.
    """
    s, v, c = checked_steps(inflow=inflow, weight=weight, carry=carry)
    check_level("start", start)
    tau, entry = 0, float(start)
    if cap is not None:
        check_level("cap", cap)
        tau = best_restart(s, v, c, entry, float(cap))
        entry = float(cap) if tau else entry
    ends = pooled_blocks(s, v, c, tau, entry)
    total, weights, levels = block_totals(s, v, c, ends, tau, entry)
    costs = block_costs(total, weights)
    slack = (11 * levels + 8) * UNIT + (40.0 * len(s) * UNIT) ** 2
    return Allocation(sum_up(costs, slack), tau, entry, ends, costs, slack)


def spend(allocation: Allocation, inflow: Array, weight: Array, carry: Array) -> Array:
    """Return the a_t of an allocation, shape (T,), zero on the discarded steps.

    Each has a relative error of about (length of its block) * 2^-53; inf where it overflows. A block with
    inflow but no weight (infinite cost) spends everything on its last step.

    Args:
        allocation: what `allocate` returned for these arrays.
        inflow: s_t, shape (T,).
        weight: v_t, shape (T,).
        carry: c_t, shape (T,).

    Raises:
        ValueError: arrays outside the domains of `allocate`, or of another length than the allocation.
    """
    s, v, c = checked_steps(inflow=inflow, weight=weight, carry=carry)
    ends, tau = allocation.block_ends, allocation.start
    if ends[-1] != len(s):
        raise ValueError(f"the allocation covers {ends[-1]} steps, the arrays have {len(s)}")
    (total, total_exp), (room, room_exp), _ = block_totals(s, v, c, ends, tau, allocation.start_value)
    slope = np.divide(total, room, out=np.zeros_like(total), where=room > 0)
    slope_exp = total_exp - room_exp
    spent = np.zeros(len(s))
    for lo, hi, carried, carried_exp in carried_units(c, ends, tau):
        block = block_of(ends, lo, hi)
        unit, unit_exp = split(v[lo:hi])
        spent[lo:hi] = to_double_up(slope[block] * carried * unit, slope_exp[block] + carried_exp + unit_exp)
    stuck = (room == 0) & (total > 0)
    spent[ends[stuck] - 1] = to_double_up(total[stuck], total_exp[stuck])
    return spent


def remaining(spent: Array, inflow: Array, carry: Array, *, start: float = 0.0, skip: int = 0) -> Array:
    """Return z_t = c_t z_{t-1} + s_t - a_t, shape (T,), as rounded (not clipped at 0).

    Args:
        spent: a_t, shape (T,), finite and >= 0.
        inflow: s_t, shape (T,), finite and >= 0.
        carry: c_t, shape (T,), finite and >= 0.
        start: the z at step ``skip``, finite and >= 0.
        skip: number of leading steps discarded, 0 <= skip < T; their entries are ``start``.

    Raises:
        ValueError: a shape or a value outside these domains.
    """
    a, s, c = checked_steps(spent=spent, inflow=inflow, carry=carry)
    check_level("start", start)
    if not 0 <= skip < len(s):
        raise ValueError(f"skip must be in 0..{len(s) - 1}, got {skip}")
    z = float(start)
    left = np.full(len(s), z)
    for lo in range(skip, len(s), CHUNK):
        piece = slice(lo, lo + CHUNK)
        for t, (a_t, s_t, c_t) in enumerate(
            zip(a[piece].tolist(), s[piece].tolist(), c[piece].tolist(), strict=True), lo
        ):
            left[t] = z = c_t * z + s_t - a_t
    return left


def cost_of(spent: Array, weight: Array) -> float:
    """Return an upper bound on sum a_t^2 / v_t (0/0 = 0, positive/0 = inf), within 1e-14 relatively.

    Args:
        spent: a_t, shape (T,), finite and >= 0; T >= 1.
        weight: v_t, shape (T,), finite and >= 0.

    Raises:
        ValueError: a shape or a value outside these domains.
    """
    a, v = checked_steps(spent=spent, weight=weight)
    ratios = np.empty(len(a))
    for lo, hi in pieces(0, len(a)):
        ratios[lo:hi] = quotient_of_square(split(a[lo:hi]), split(v[lo:hi]))
    return sum_up(ratios, 8 * UNIT)  # square, quotient and sum: 3 u
