"""The general shifted-divergence theorem (Feldman et al. 2018, Theorem 22; Bok, Su and Altschuler 2024).

Two chains w <- map_t(w) + noise_t whose maps at step t are c_t-Lipschitz and within s_t of each other, started within
z_0. For any a_t >= 0 with z_t = c_t z_{t-1} + s_t - a_t >= 0 and z_T = 0 the last states differ by no more than the
noises shifted by a_t: mu^2 = sum a_t^2/v_t for Gaussian noise of variance v_t, and sum_t R_order(a_t) in Renyi
divergence for any noise. The allocation that minimises this is a lower convex hull.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpcalc.bounds.steps import ONE_RELEASE
from dpcalc.numerics.floats import UNIT, up
from dpcalc.registry import Requirement, bound
from dpcalc.spec.chain import Chain

_STEPS = (
    "step t adds fresh noise of scale step_size times the given one to a c_t-Lipschitz map",
    "the two runs' maps at step t are within s_t of each other everywhere",
    ONE_RELEASE,
)
_DOMAIN = "iterates are projected onto a set of the given diameter"
_ERRATUM = (
    "The paper allows any real a_t; the divergences are defined for a_t >= 0 only, and no optimum needs a negative "
    "one. Its Theorem 1 lacks the square of the starting distance."
)


def _has_shift(values: Mapping[str, Any]) -> tuple[str, str] | None:
    chain = values["schedule"]
    return ("needs the shift of every step", "give --shift or a column shift") if chain.shift is None else None


def _has_spend(values: Mapping[str, Any]) -> tuple[str, str] | None:
    return None if values["schedule"].spend is not None else ("needs a column spend", "add your own a_t to the file")


def _one_noise(values: Mapping[str, Any]) -> tuple[str, str] | None:
    both = values.get("noise_std") is not None and values.get("laplace_scale") is not None
    return ("both noise_std and laplace_scale are given", "give one of the two") if both else None


_HAS_SHIFT = Requirement("every step's shift is known", _has_shift)
_HAS_SPEND = Requirement("the allocation is given", _has_spend)
_ONE_NOISE = Requirement("one kind of noise", _one_noise)


@bound(
    "shifted.gaussian",
    title="Shifted divergence with the optimal allocation",
    gives="mu",
    algorithms=("chain",),
    reference="feldman2018",
    locator="Theorem 22, in the Gaussian-DP form of shifted interpolation, optimal a_t",
    formula="mu^2 = min sum a_t^2/v_t over a_t >= 0, z_t = c_t z_(t-1) + s_t - a_t >= 0, z_T = 0",
    requires=(_HAS_SHIFT, _ONE_NOISE),
    assumes=_STEPS,
    erratum=_ERRATUM,
)
def gaussian_mu(*, schedule: Chain, start_distance: float, noise_std: float) -> float:
    """The last state of a noisy chain is mu-GDP when what the maps shift apart is spent, as late as is cheapest,
    against the noise of the steps.

    Args:
        schedule: the steps; see `dpcalc.spec.chain.Chain`.
        start_distance: z_0 >= 0.
        noise_std: multiplies the schedule's noise.

    Returns:
        mu, rounded up; inf if a shift can only be spent where there is no noise.
    """
    return _mu(_allocation(schedule, start_distance, None).cost, noise_std)


@bound(
    "shifted.gaussian_domain",
    title="Shifted divergence with the optimal allocation and restart",
    gives="mu",
    algorithms=("chain",),
    reference="bok2024",
    locator="constrained case, with the optimal restart",
    formula="mu^2 = min over tau of the optimum on steps tau+1..T started at z_tau = D",
    requires=(_HAS_SHIFT, _ONE_NOISE),
    assumes=(*_STEPS, _DOMAIN),
)
def gaussian_domain_mu(*, schedule: Chain, start_distance: float, noise_std: float, diameter: float) -> float:
    """On a bounded domain everything up to some step may be forgotten: the runs are then at most a diameter apart.

    Args:
        schedule, start_distance, noise_std: as in `gaussian_mu`.
        diameter: D > 0.

    Returns:
        mu, rounded up.
    """
    return _mu(_allocation(schedule, start_distance, diameter).cost, noise_std)


@bound(
    "shifted.given_spend",
    title="Shifted divergence with the given allocation",
    gives="mu",
    algorithms=("chain",),
    reference="feldman2018",
    locator="Theorem 22 with the user's a_t",
    formula="mu^2 = sum a_t^2/v_t",
    requires=(_HAS_SHIFT, _HAS_SPEND, _ONE_NOISE),
    assumes=_STEPS,
    erratum=_ERRATUM,
)
def given_spend_mu(*, schedule: Chain, start_distance: float, noise_std: float) -> float:
    """Any allocation that spends every shift proves a bound; this is the one in the schedule's column ``spend``.

    Args:
        schedule, start_distance, noise_std: as in `gaussian_mu`.

    Returns:
        mu, rounded up.

    Raises:
        SpecError: the allocation spends more than there is at some step, or leaves something at the end.
    """
    from dpcalc.numerics.isotonic import cost_of

    return _mu(cost_of(checked_spend(schedule, start_distance), schedule.variance), noise_std)


@bound(
    "shifted.laplace",
    title="Shifted divergence with Laplace noise, one dimension",
    gives="rdp",
    algorithms=("chain",),
    reference="feldman2018",
    locator="Theorem 22 with Laplace noise",
    formula="RDP(a) = min sum_t R_a(a_t/b_t), R_a the divergence of Laplace noise at a shift",
    requires=(_HAS_SHIFT, _ONE_NOISE),
    assumes=(*_STEPS, "the parameter is one-dimensional and the noise is Laplace"),
    erratum=_ERRATUM,
)
def laplace_rdp(*, schedule: Chain, start_distance: float, laplace_scale: float, order: float) -> float:
    """With Laplace noise in one dimension every step's share of the shift costs its Laplace divergence.

    Args:
        schedule, start_distance: as in `gaussian_mu`.
        laplace_scale: multiplies the schedule's noise.
        order: a >= 1; inf gives pure differential privacy.

    Returns:
        RDP at the order, rounded up. The allocation is optimal for equal steps and c = 1, and within 1e-4 of optimal
        up to 200 steps (majorise-minimise on the Gaussian problem); up to 1e5 it is refined for a few orders, and
        beyond the Gaussian one is used: all are valid.
    """
    return _laplace(schedule, start_distance, None, laplace_scale, order)


@bound(
    "shifted.laplace_domain",
    title="Shifted divergence with Laplace noise and restart, one dimension",
    gives="rdp",
    algorithms=("chain",),
    reference="feldman2018",
    locator="Theorem 22 with Laplace noise and a bounded domain",
    formula="RDP(a) = min sum_t R_a(a_t/b_t), with the restart of the Gaussian problem",
    requires=(_HAS_SHIFT, _ONE_NOISE),
    assumes=(*_STEPS, _DOMAIN, "the parameter is one-dimensional and the noise is Laplace"),
)
def laplace_domain_rdp(
    *, schedule: Chain, start_distance: float, laplace_scale: float, diameter: float, order: float
) -> float:
    """As with Laplace noise, after forgetting everything up to the step where that is cheapest.

    Args:
        schedule, start_distance, laplace_scale, order: as in `laplace_rdp`.
        diameter: D > 0.

    Returns:
        RDP at the order, rounded up.
    """
    return _laplace(schedule, start_distance, diameter, laplace_scale, order)


def checked_spend(schedule: Chain, start_distance: float) -> Any:
    """Return the user's a_t, shape (T,), after checking z_t >= 0 and z_T = 0 to 1e-9 of the largest z.

    Raises:
        SpecError: the allocation is not one.
    """
    from dpcalc.errors import SpecError
    from dpcalc.numerics.isotonic import remaining

    spent = schedule.spend
    assert spent is not None
    left = remaining(spent, _shift(schedule), schedule.contraction, start=start_distance)
    tolerance = 1e-9 * max(float(_shift(schedule).max()), start_distance, float(abs(left).max()))
    if left.min() < -tolerance:
        step = int((left < -tolerance).argmax()) + 1
        raise SpecError(
            f"{schedule}: step {step} spends {spent[step - 1]:g}, more than is left (z_t would be {left[step - 1]:g})",
            "a_t may be at most c_t z_(t-1) + s_t; leave out the column for the optimal allocation",
        )
    if left[-1] > tolerance:
        raise SpecError(
            f"{schedule}: {left[-1]:g} is left unspent after the last step",
            "the a_t must bring z_T to 0; leave out the column for the optimal allocation",
        )
    return settled(spent, _shift(schedule), schedule.contraction, start_distance)


def settled(spent: Any, shift: Any, carry: Any, start: float) -> Any:
    """Return the allocation with an upper bound on what it leaves unspent added to its last step, shape (T,).

    The recursion runs with every rounding upwards; where it would go below 0 less is spent than allowed, which is free.
    """
    left = start
    for c, s, a in zip(carry.tolist(), shift.tolist(), spent.tolist(), strict=True):
        there = c * left + s
        left = max(0.0, there - a + 4.0 * UNIT * there)
    result = spent.copy()
    result[-1] = up(float(result[-1]) + left, 2.0)
    return result


_SHOWN_BLOCKS = 50
_SHOWN_STEPS = 10_000
_SAMPLES = 1_000


def describe_allocation(schedule: Chain, start: float, cap: float | None, own: bool) -> dict[str, Any]:
    """Return where the shifts are spent, as JSON types: for the Gaussian allocation, or the user's ``own``.

    ``restart`` (steps forgotten), ``blocks`` (first and last step, share of mu^2; at most 50, the costliest),
    ``quarters`` (share of mu^2 in each quarter of the steps), and ``a`` and ``z`` themselves: all of up to 10000
    steps, else ``sampled`` at about 1000 of them, evenly and at the ends of the shown blocks.
    """
    import numpy as np

    from dpcalc.numerics.isotonic import remaining, spend

    allocation = None if own else _allocation(schedule, start, cap)
    tau = allocation.start if allocation is not None else 0
    spent: Any = schedule.spend
    if allocation is not None:
        spent = spend(allocation, _shift(schedule), schedule.variance, schedule.contraction)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        cost = np.where(spent > 0.0, np.square(spent / schedule.scale), 0.0)
        share = cost / cost.sum()
    quarters = [float(part.sum()) for part in np.array_split(share, 4)]
    found: dict[str, Any] = {"restart": tau, "quarters": quarters}
    summary = []
    if tau:
        summary.append(f"steps 1 to {tau} are forgotten: the runs are then at most the diameter apart")
    if allocation is not None:
        blocks = _blocks(allocation)
        found["block_count"], found["blocks"] = len(allocation.block_ends), blocks
        summary.append(f"{len(allocation.block_ends)} block(s) of constant slope; the costliest:")
        summary += [f"  steps {b['first']} to {b['last']}: {b['share']:.1%} of mu^2" for b in blocks[:5]]
    words = ", ".join(f"{q:.1%}" for q in quarters)
    summary.append(f"shares of mu^2 in the four quarters of the run: {words}")
    if np.isfinite(spent).all():
        level = allocation.start_value if allocation is not None else start
        left = np.maximum(remaining(spent, _shift(schedule), schedule.contraction, start=level, skip=tau), 0.0)
        if len(schedule) <= _SHOWN_STEPS:
            found["a"], found["z"] = spent.tolist(), left.tolist()
        else:
            ends = [b[end] for b in found.get("blocks", []) for end in ("first", "last")]
            at = np.unique(np.concatenate((np.linspace(1, len(schedule), _SAMPLES).astype(int), np.array(ends, int))))
            found["sampled"] = {"steps": at.tolist(), "a": spent[at - 1].tolist(), "z": left[at - 1].tolist()}
    found["summary"] = summary
    return found if all(math.isfinite(q) for q in quarters) else {"restart": tau, "summary": summary[:1]}


def _blocks(allocation: Any) -> list[dict[str, Any]]:
    """Return the costliest blocks: first and last step, share of the cost."""
    import numpy as np

    costs = allocation.block_costs
    total = float(costs.sum()) or 1.0
    chosen = np.argsort(-costs, kind="stable")[:_SHOWN_BLOCKS]
    firsts = np.concatenate(([allocation.start + 1], allocation.block_ends[:-1] + 1))
    return [
        {"first": int(firsts[k]), "last": int(allocation.block_ends[k]), "share": float(costs[k]) / total}
        for k in chosen
    ]


def _mu(cost: float, noise_std: float) -> float:
    return up(math.sqrt(cost) / noise_std, 4.0) if cost < math.inf else math.inf


def _allocation(schedule: Chain, start: float, cap: float | None) -> Any:
    """Return the optimal allocation of the Gaussian problem for noise 1, computed once for a schedule."""
    memo: dict[Any, Any] = schedule.__dict__.setdefault("_allocations", {})
    key = (start, cap)
    if key not in memo:
        from dpcalc.numerics.isotonic import allocate

        memo[key] = allocate(_shift(schedule), schedule.variance, schedule.contraction, start=start, cap=cap)
    return memo[key]


def _shift(schedule: Chain) -> Any:
    assert schedule.shift is not None
    return schedule.shift


_REFINED_STEPS = 100_000
_EXACT_STEPS = 200
_ROUNDS, _WORK = 40, 200_000
_REFINED_AT = (0.25, 1.0, 4.0, 16.0, 64.0)


def _laplace(schedule: Chain, start: float, cap: float | None, multiplier: float, order: float) -> float:
    """Return the cheapest sum of Laplace divergences found: every allocation is valid at every order."""
    tau, entry, candidates = _candidates(schedule, start, cap, multiplier)
    scale = _laplace_scale(schedule, multiplier)[tau:]
    value, _, best = min((laplace_sum(spent, scale, order), k, spent) for k, spent in enumerate(candidates))
    if len(candidates) == 1 or len(scale) > _EXACT_STEPS:
        return value
    own = _refined(best, _shift(schedule)[tau:], schedule.contraction[tau:], entry, scale, order)
    return laplace_sum(own, scale, order)


def _laplace_scale(schedule: Chain, multiplier: float) -> Any:
    """Return the parameter-space Laplace scale of each step, rounded down, shape (T,)."""
    return schedule.scale * (multiplier * (1.0 - 2.0**-52))


def _candidates(schedule: Chain, start: float, cap: float | None, multiplier: float) -> tuple[int, float, list[Any]]:
    """Return (steps forgotten, z then, allocations of the rest): the Gaussian and some refined ones.

    What matters is order times shift over scale: below 1 the divergence is quadratic, as for Gaussian noise, far above
    it is linear. Between orders that differ by 4 the optimum moves little, and its cost to second order only.
    """
    memo: dict[Any, Any] = schedule.__dict__.setdefault("_allocations", {})
    key = ("laplace", start, cap, multiplier)
    if key not in memo:
        from dpcalc.numerics.isotonic import spend

        allocation = _allocation(schedule, start, cap)
        tau, entry = allocation.start, allocation.start_value
        shift, carry = _shift(schedule)[tau:], schedule.contraction[tau:]
        scale = _laplace_scale(schedule, multiplier)[tau:]
        first = spend(allocation, _shift(schedule), schedule.variance, schedule.contraction)[tau:]
        found = [settled(first, shift, carry, entry)]
        largest = float((found[0] / scale).max()) if (scale > 0.0).all() else math.inf
        if len(shift) <= _REFINED_STEPS and 0.0 < largest < math.inf and not _uniform(scale, carry):
            orders = [max(1.0 + 1e-6, factor / largest) for factor in _REFINED_AT]
            found += [_refined(found[0], shift, carry, entry, scale, order) for order in (*orders, math.inf)]
        memo[key] = tau, entry, found
    result: tuple[int, float, list[Any]] = memo[key]
    return result


def _refined(spent: Any, shift: Any, carry: Any, entry: float, scale: Any, order: float) -> Any:
    """Return the allocation improved for one order, shape (T,).

    R is concave in the square of the shift, so the quadratic through the present a_t with curvature R'(a)/a lies above
    it: solving the Gaussian problem with weights a_t/R'(a_t) can only lower the sum.
    """
    from dpcalc.numerics.isotonic import allocate, spend

    best, value = spent, laplace_sum(spent, scale, order)
    for _ in range(max(2, min(_ROUNDS, _WORK // len(shift)))):
        weight = _weights(best, scale, order)
        step = allocate(shift, weight, carry, start=entry)
        candidate = settled(spend(step, shift, weight, carry), shift, carry, entry)
        lower = laplace_sum(candidate, scale, order)
        if not lower < value * (1.0 - 1e-5):
            break
        best, value = candidate, lower
    return best


def _uniform(scale: Any, carry: Any) -> bool:
    """Whether all steps are alike with c = 1: the Gaussian allocation is then optimal for every convex cost."""
    return bool((scale == scale[0]).all() and (carry == 1.0).all())


def _weights(spent: Any, scale: Any, order: float) -> Any:
    """Return a_t/R'(a_t), the weights of the quadratic majoriser (b^2/order at a_t = 0)."""
    import numpy as np

    u = spent / scale
    if math.isinf(order):
        return np.maximum(u, 1e-12) * scale * scale
    a1, w = order - 1.0, 2.0 * order - 1.0
    # R'(u) = a (1 - y)/(a + (a-1) y), y = e^(-w u); its ratio to u tends to order as u -> 0.
    y = np.exp(-np.minimum(w * u, 700.0))
    slope = order * -np.expm1(-w * u) / (order + a1 * y)
    ratio = np.where(u > 1e-12, slope / np.where(u > 1e-12, u, 1.0), order)
    return scale * scale / ratio


def laplace_sum(spent: Any, scale: Any, order: float) -> float:
    """Return sum_t of the Laplace divergence at shift a_t and scale b_t, rounded up; arrays of shape (T,)."""
    import numpy as np

    if (spent[scale == 0.0] > 0.0).any():
        return math.inf
    u = np.divide(spent, scale, out=np.zeros(len(spent)), where=scale > 0.0)
    if math.isinf(order):
        return up(math.fsum(u.tolist()), 8.0)
    values = laplace_array(u, order)
    return up(math.fsum(values.tolist()), 64.0)


def laplace_array(u: Any, order: float) -> Any:
    """Return the Laplace divergence at each u = shift/scale, shape (T,), good to 32 units of roundoff."""
    import numpy as np

    a1, w = order - 1.0, 2.0 * order - 1.0
    if order == 1.0:
        return _expm1_minus(-u)
    with np.errstate(over="ignore", invalid="ignore"):
        small = a1 * u < 1.0
        inner = (order * _expm1_minus(a1 * u) + a1 * _expm1_minus(-order * u)) / w
        near = np.log1p(inner) / a1
        far = u + np.log1p(a1 / w * np.expm1(-w * u)) / a1
    return np.where(small, near, far)


def _expm1_minus(x: Any) -> Any:
    """Return e^x - 1 - x elementwise: a series below 1/2, where the difference would cancel."""
    import numpy as np

    series, term = np.zeros_like(x), np.ones_like(x)
    clipped = np.clip(x, -0.5, 0.5)
    for k in range(2, 20):
        term = term * clipped / k
        series += term
    return np.where(np.abs(x) <= 0.5, series * clipped, np.expm1(x) - x)
