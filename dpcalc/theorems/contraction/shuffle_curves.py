"""Array forms of `shuffle.product`, `shuffle.mixture` and `contraction.product`, and of contracting steps.

Each curve maps an array of epsilon to upper bounds on ln delta of one pass. All curves of a pass bound the same run, so
their minimum is a bound as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpcalc.model.quantities import Noise
from dpcalc.numerics.floats import UNIT, Array, decimal_quotient_up, np, up
from dpcalc.theorems.batch_layout import Layout
from dpcalc.theorems.contraction.laplace import later_ratio, own_ratio
from dpcalc.theorems.contraction.recursion import log_one_steps
from dpcalc.theorems.many_passes.epochs import same_places
from dpcalc.theorems.many_passes.repeated_allocation import Passes

if TYPE_CHECKING:
    Curve = Callable[[Array], Array]

_SINGLE = 64  # positions that are summed individually
_GROWTH = 1.03
_LITTLE, _EVERY = 45.0, 6  # e^-45 of a sum is negligible; one in six terms shows where that begins


def least(*curves: Curve) -> Curve:
    """Return the smallest of the curves."""

    def curve(e: Array) -> Array:
        values: Array = np.minimum.reduce([one(e) for one in curves])
        return values

    return curve


def own_step(noise: Noise, ratio: float) -> Curve:
    """Return the curve of a record's own noise alone, at distance ``ratio`` in its units."""
    return lambda e: log_one_steps(noise, e, ratio)


def fixed(noise: Noise, own: float, following: float, later: int) -> Curve:
    """Return the curve of A B^later: a record followed by ``later`` steps (`contraction.product`)."""
    first, factor = own_step(noise, own), own_step(noise, following)

    def curve(e: Array) -> Array:
        if not later:
            return first(e)
        with np.errstate(invalid="ignore", over="ignore"):
            value = first(e) + later * np.maximum(factor(e), -1e290)
        values: Array = np.minimum(0.0, value * (1.0 - 8.0 * UNIT))
        return values

    return curve


def shuffled_product(
    plan: Layout, *, noise: Noise, scale: float, sensitivity: float, step_size: float, displacement: float,
    diameter: float,
) -> Curve:  # fmt: skip
    """Return the curve of `shuffle.product`."""
    following = later_ratio(displacement, diameter, step_size, scale)
    factor = own_step(noise, following)
    firsts = [own_step(noise, own_ratio(sensitivity, scale, alike.divisor)) for alike in plan.positions]
    behind = factor if plan.short_is_last else None
    if plan.short_is_last and plan.short != plan.divisor:  # the step of a short batch is smaller than the others
        reach = decimal_quotient_up((diameter,), (step_size, scale))
        share = plan.short / plan.divisor
        behind = own_step(noise, up((1.0 - share) * reach + share * following, 4.0))

    def curve(e: Array) -> Array:
        step, shares, later = factor(e), [], np.zeros_like(e)
        for first, alike in zip(firsts, plan.positions, strict=True):
            with np.errstate(invalid="ignore", over="ignore"):
                left = first(e) + _log_geometric(step, alike.steps) + later
                later = later + (behind(e) if behind else alike.steps * np.maximum(step, -1e290) * (1.0 - 4.0 * UNIT))
            shares.append((left, alike.size, plan.records))
        return _shares(*shares)

    return curve


def shuffled_mixture(plan: Layout, *, scale: float, sensitivity: float) -> Curve:
    """Return the curve of `shuffle.mixture`: Gaussian noise, 1-Lipschitz maps."""

    def curve(e: Array) -> Array:
        return _shares(
            *(
                (log_positions(e, ratio, alike.steps, alike.first - 1), alike.size, plan.records)
                for ratio, alike in zip(ratios, plan.positions, strict=True)
            )
        )

    ratios = [own_ratio(sensitivity, scale, alike.divisor) for alike in plan.positions]
    return curve


def shuffled_places(one_pass: Passes) -> Curve:
    """Return the curve of a pass with contracting steps or a bounded domain: the mean of delta_G over positions.

    mu falls with the number of steps that follow, so a block of positions counts with its last step.
    """
    from dpcalc.numerics.normal_arrays import log_hockey_stick_up

    distances, plan = same_places(one_pass), one_pass.plan
    weights, mus = [], []
    for alike in plan.positions:
        ends = np.array(_ends(alike.first, alike.first + alike.steps - 1), dtype=float)
        counts = np.diff(np.append(ends, float(alike.first + alike.steps)))
        weights.append(counts * alike.size / plan.records)
        mus.append(distances.own(ends, plan.weight(alike)))
    log_weight, mu = np.log(np.concatenate(weights)), np.concatenate(mus)

    def curve(e: Array) -> Array:
        total: Any = np.full(np.shape(e), -np.inf)
        for weight, place_mu in zip(log_weight, mu, strict=True):
            total = np.logaddexp(total, log_hockey_stick_up(e, np.full(np.shape(e), place_mu)) + weight)
        size = np.where(np.isfinite(total), np.abs(total), 0.0)
        values: Array = np.minimum(
            0.0, total + UNIT * (16.0 * len(mu) + 16.0 * size + 16.0 * math.log(plan.records + 1))
        )
        return values

    return curve


def _ends(first: int, last: int) -> list[int]:
    """Return the lower ends of blocks of positions from first to last: single ones, then growing blocks."""
    ends = [*range(first, min(last, max(_SINGLE, first)) + 1)]
    while (after := max(ends[-1] + 1, int(ends[-1] * _GROWTH))) <= last:
        ends.append(after)
    return ends


def log_positions(e: Array, ratio: float, terms: int, after: int) -> Array:
    """Return upper bounds on ln of the sum of delta_G(e; ratio/sqrt(k)) over k = after+1 .. after+terms.

    As a function of k each term falls as the tail of an inverse Gaussian law: concave up to the law's mode, convex
    after it. A block's mean is below its middle or the mean of its ends, and below its first term if the mode lies
    within.
    """
    from dpcalc.numerics.normal_arrays import log_hockey_stick_up

    top = after + terms
    ends = [*range(after + 1, min(top, max(_SINGLE, after + 1)) + 1)]
    start = ends[-1] + 1
    while start <= top:
        ends.append(start)
        start = max(start + 1, int(start * _GROWTH))
    low = np.array(ends, dtype=float)
    high = np.append(low[1:] - 1.0, float(top))
    count = high - low + 1.0
    column = e[:, None]

    def at(epsilon: Array, k: Array) -> Array:
        return log_hockey_stick_up(epsilon, ratio / np.sqrt(k) * (1.0 + 4.0 * UNIT))

    value, log_count = _first_of(at, e, low), np.log(count)
    counted = value + log_count[None, :]
    counts = (count > 1.0)[None, :] & (counted > counted.max(axis=1)[:, None] - _LITTLE)
    if counts.any():
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            a, b = 0.5 * (column / ratio) ** 2, 0.125 * ratio * ratio
            mode = np.where(np.isfinite(a), 2.0 * b / (1.5 + np.sqrt(2.25 + 4.0 * a * b)), 0.0)
        behind, before = counts & (low > mode * 1.000001), counts & (high < mode * 0.999999)
        rows, columns = np.nonzero(behind)
        value[behind] = np.logaddexp(value[behind], at(e[rows], high[columns])) - math.log(2.0)
        rows, columns = np.nonzero(before)
        value[before] = at(e[rows], 0.5 * (low + high)[columns])
    value = value + log_count[None, :]
    peak = value.max(axis=1)
    total = peak + np.log(np.exp(value - peak[:, None]).sum(axis=1))
    slack = UNIT * (16.0 * np.abs(total) + 16.0 * math.log(terms + 1.0) + len(low) + 64.0)
    values: Array = np.minimum(total + slack, math.log(terms) * (1.0 + 4.0 * UNIT))
    return values


def _first_of(at: Callable[[Array, Array], Array], e: Array, k: Array) -> Array:
    """Return ``at`` for every e and k, shape (e, k); it falls with k. A lower k is used where terms add almost nothing.

    Every `_EVERY`-th k is evaluated first; terms after a negligible one are not.
    """
    value: Array = np.repeat(at(e[:, None], k[None, ::_EVERY]), _EVERY, axis=1)[:, : len(k)]
    counts = value > value[:, :1] - (_LITTLE + math.log(k[-1]))
    counts[:, ::_EVERY] = False
    rows, columns = np.nonzero(counts)
    value[rows, columns] = at(e[rows], k[columns])
    return value


def _log_geometric(log_factor: Array, terms: int) -> Array:
    """Return ln(1 + B + ... + B^(terms-1)), rounded up."""
    most = math.log(terms) * (1.0 + 4.0 * UNIT) + 8.0 * UNIT
    x = np.minimum(log_factor, -1e-300)
    with np.errstate(divide="ignore", over="ignore"):
        top, bottom = _log_one_minus_exp(np.maximum(terms * x, -1e300)), _log_one_minus_exp(x)
    values: Array = np.minimum(most, top - bottom + UNIT * (8.0 * (np.abs(top) + np.abs(bottom)) + 32.0))
    return values


def _log_one_minus_exp(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        values: Array = np.where(x > -0.6931471805599453, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))
    return values


def _shares(*parts: tuple[Array, int, int]) -> Array:
    """Return ln of the sum of exp(value) numerator/denominator, rounded up and at most 0."""
    total: Any = -np.inf
    for value, numerator, denominator in parts:
        total = np.logaddexp(total, value + math.log(numerator) - math.log(denominator))
    size = np.where(np.isfinite(total), np.abs(total), 0.0)
    values: Array = np.minimum(0.0, total + UNIT * (8.0 * size + 8.0 * math.log(parts[0][2] + 1) + 16.0))
    return values
