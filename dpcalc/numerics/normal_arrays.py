"""Array forms of `dpcalc.numerics.normal`: the Gaussian hockey-stick divergence, rounded up, and the Mills ratio.

It also has array forms of the logarithms in `floats`, to nearest, and probabilities of half-lines under mixtures of
normal laws, rounded to either side. For any event A, P(A) - e^eps Q(A) is a lower bound on delta(eps) of (P, Q).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.numerics.floats import UNIT, Array, np
from dpcalc.numerics.normal import (
    CELL_LAST,
    FIRST_DOWNWARDS,
    INV_SQRT_2PI,
    LN_SQRT_2PI,
    MILLS_TABLE,
    REACHES,
    far_terms,
    fraction_terms,
)

if TYPE_CHECKING:
    from collections.abc import Callable


_FIRST_CELL = -5  # quarters: cells start at -1.25, since x >= -1
_LAST_CELL = 162  # the middle of [x, x + r] is at most 1.25 `CELL_LAST` if a series is used
_UPWARD_CELLS = FIRST_DOWNWARDS - _FIRST_CELL
_MILLS_TERMS = 18  # Taylor terms that leave less than a unit of roundoff up to distance 1/8
_FEW = 1500  # up to this many numbers are computed together, with the most terms that any of them needs
_AT_ONCE = 1 << 13  # this many numbers and their intermediate results stay in the cache of a core


def log_hockey_stick_up(e: Any, r: Any) -> Array:
    """Return upper bounds on ln H(e, r), elementwise: the divergence of two unit Gaussians at distance r.

    Args:
        e: thresholds (logs of the factor), finite, of any sign; broadcast with ``r``.
        r: distances, 0 < r; values beyond 1e100 give 0.

    Returns:
        ln H in [-4e199, 0]. The excess over the exact value is below 2^-49 (s (|x| + 2 + 2^-49 s) + |ln H|) with
        s = 1 + e/r + r and x = e/r - r/2 as computed.

    Raises:
        ValueError: one of them is nan.
    """
    e, r = np.broadcast_arrays(np.asarray(e, float), np.asarray(r, float))
    if np.isnan(e).any() or np.isnan(r).any():
        raise ValueError("a threshold or a distance is nan")
    value = np.empty(e.shape)
    flat, e, r = value.reshape(-1), e.ravel(), r.ravel()
    for start in range(0, len(flat), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        flat[part] = _at_any_threshold(e[part], np.clip(r[part], 1e-100, 1e100))
    return value


def _at_any_threshold(e: Array, r: Array) -> Array:
    value = _at_non_negative_threshold(np.abs(e), r)
    below = e < 0.0
    if below.any():
        # H(e) = 1 - exp(e) + exp(e) H(-e).
        mixed = np.logaddexp(np.log(-np.expm1(e[below])), e[below] + value[below])
        value[below] = np.minimum(0.0, mixed + UNIT * (16.0 + 4.0 * np.abs(mixed)))
    return value


def log_hockey_stick_down(e: Array, r: Array) -> Array:
    """Return lower bounds on ln H(e, r), elementwise, for 0 <= e <= 1e98 r and 1e-99 <= r <= 1e99.

    They are below `log_hockey_stick_up` by its largest excess over the exact value; if x < -1, where ln H is near 0,
    this difference is relative.
    """
    value, q = _at_non_negative_threshold(e, r), e / r
    x = q - 0.5 * r
    shift = 2.0**-49 * (1.0 + q + r)  # generous bound on the error of x: beyond r = 1e15 it exceeds x
    error = shift * (np.abs(x) + 2.0 + shift)
    far = value - error + 2.0**-49 * value
    return np.where(
        (x < -1.0) & (error < 0.1), np.maximum(far, value * (1.0 + 4.0 * np.minimum(error, 0.1)) - 1e-300), far
    )


def _at_non_negative_threshold(e: Array, r: Array) -> Array:
    q = np.minimum(e / r, 1e99)
    x = q - 0.5 * r
    error = 4.0 * UNIT * (q + r) * (np.abs(x) + 2.0)
    value = np.empty_like(x)
    near = x < -1.0
    if near.any():
        x1, y1 = x[near], x[near] + r[near]
        gap = INV_SQRT_2PI * np.exp(-(0.5 * x1 * x1)) * (mills(-x1) + mills(y1))
        # Here H > 0.3; the complement's relative error becomes that of the logarithm. The last term is for subnormal
        # numbers, where relative errors mean nothing.
        value[near] = np.log1p(-np.minimum(gap, 0.9)) * (1.0 - np.minimum(error[near] * 2.0 + 64.0 * UNIT, 1.0))
        value[near] += 5e-323
    far = ~near
    if far.any():
        x2 = x[far]
        value[far] = _log_difference(x2, r[far]) - (0.5 * x2 * x2 + LN_SQRT_2PI)
        value[far] += error[far] + UNIT * (8.0 * np.abs(value[far]) + 48.0)
    return np.minimum(value, 0.0)


def mills(u: Array) -> Array:
    """Return the Mills ratio M(u) = Q(u)/phi(u) for u >= -1.25, within 4 units of roundoff."""
    far = u > CELL_LAST
    near = np.where(far, 0.0, u)
    nearest = np.rint(4.0 * near)
    value = _polynomial(_taylor()[:_MILLS_TERMS], nearest, near - 0.25 * nearest)
    if far.any():
        u = u[far]
        k = np.zeros_like(u)
        for j in range(far_terms(float(u.min())), 0, -1):
            k = j / (u + k)
        value[far] = 1.0 / (u + k)
    return value


@functools.cache
def _taylor() -> Array:
    """Return m_0, m_1, ... of the Taylor series of M about k/4, k = -5, -4, ...; shape (terms, cells).

    The recurrences are those of `normal`: upwards for small u, downwards for large u.
    """
    u = 0.25 * np.arange(_FIRST_CELL, _LAST_CELL + 1)
    terms = REACHES[-1][1]
    series = np.empty((terms, len(u)))
    up, down = series[:, :_UPWARD_CELLS], series[:, _UPWARD_CELLS:]
    up[0], up[1] = np.array(MILLS_TABLE[:_UPWARD_CELLS]).T
    up[1] *= -1.0
    for j in range(2, terms):
        up[j] = (u[:_UPWARD_CELLS] * up[j - 1] + up[j - 2]) / j
    u = u[_UPWARD_CELLS:]
    ratio = np.zeros_like(u)
    for j in range(fraction_terms(float(u[0])) + terms - 1, -1, -1):
        ratio = 1.0 / (u + (j + 1) * ratio)
        if j < terms:
            down[j] = -ratio
    down[0] *= -1.0
    np.cumprod(down, axis=0, out=down)
    return series


def _polynomial(series: Array, nearest: Array, h: Array) -> Array:
    """Return the values at h of the polynomials about nearest/4."""
    index = (nearest - _FIRST_CELL).astype(np.intp)
    value, term = np.zeros_like(h), np.empty_like(h)
    for row in series[::-1]:
        value *= h
        value += row.take(index, out=term, mode="clip")
    return value


def _log_difference(x: Array, r: Array) -> Array:
    """Return ln(M(x) - M(x + r)) for x >= -1, without cancellation."""
    result = np.empty_like(x)
    far = x > CELL_LAST
    if far.any():
        result[far] = np.log(r[far]) + np.log(_far_difference(x[far], r[far]))
    reach, below = np.where(far, math.inf, r / np.maximum(x, 1.0)), 0.0
    for reached, terms in REACHES if len(x) > _FEW else _one_reach(reach):
        mask = (reach >= below) & (reach < reached)
        if mask.any():
            result[mask] = np.log(r[mask]) + np.log(_divided_difference(_taylor()[1:terms], x[mask], r[mask]))
        below = reached
    wide = ~far & (reach >= below)
    if wide.any():
        result[wide] = np.log(mills(x[wide]) - mills(x[wide] + r[wide]))
    return result


def _one_reach(reach: Array) -> tuple[tuple[float, int], ...]:
    """Return the last of `REACHES` with enough terms for all numbers within it; for few numbers this is faster."""
    last = REACHES[-1][0]
    within = float(reach.max(initial=0.0, where=reach < last))
    return ((last, next(terms for reached, terms in REACHES if within < reached)),)


def _divided_difference(series: Array, x: Array, r: Array) -> Array:
    """Return (M(x) - M(x + r))/r, by Horner's scheme for the divided difference of a Taylor polynomial."""
    nearest = np.rint(4.0 * x + 2.0 * r)
    index = (nearest - _FIRST_CELL).astype(np.intp)
    first = x - 0.25 * nearest
    second = first + r
    value, difference, term = np.zeros_like(x), np.zeros_like(x), np.empty_like(x)
    for row in series[::-1]:
        value *= first
        value += row.take(index, out=term, mode="clip")
        difference *= second
        difference += value
    return -difference


def _far_difference(x: Array, r: Array) -> Array:
    """Return (M(x) - M(x + r))/r for x > 30; see the scalar form."""
    y = x + r
    first, second, quotient = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for j in range(far_terms(float(x.min())), 0, -1):
        first, second = j / (x + first), j / (y + second)
        quotient = first * second * (1.0 - quotient) / j
    return (1.0 - quotient) / (x + first) / (y + second)


def log_sum_exp(logs: Array) -> float:
    """Return ln of the sum of exp(logs); -inf for none."""
    peak = float(logs.max(initial=-math.inf))
    return peak if peak == -math.inf else peak + math.log(float(np.exp(logs - peak).sum()))


def log_one_minus_exp(x: Array) -> Array:
    """Return ln(1 - e^x), elementwise, for x <= 0, accurate to 4 units of roundoff of 1 + |value|; -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.where(x > -0.6931471805599453, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log_difference(a: Array, b: Array) -> Array:
    """Return ln(e^a - e^b), elementwise, for a >= b; -inf if they are equal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(a > b, a + np.log(-np.expm1(b - a)), -np.inf)


_LOCAL = 1e4  # a line through two points is trusted if they are within this multiple of the wanted distance
_LOG_ZERO = -1e300  # stands for ln 0 among weights


class Mixture(NamedTuple):
    """Normal laws: logarithms of their weights, means and standard deviations."""

    log_weight: Array
    mean: Array
    spread: Array


def log_upper_tail(u: Array) -> Array:
    """Return ln P(N(0, 1) > u), elementwise, within 8 units of roundoff of (1 + u^2)."""
    v = np.clip(u, -1e100, 1e100)
    with np.errstate(under="ignore"):
        log_density = -0.5 * v * v - LN_SQRT_2PI
        far = v > -1.0
        value = np.empty_like(v)
        value[far] = log_density[far] + np.log(mills(v[far]))
        value[~far] = np.log1p(-np.exp(log_density[~far]) * mills(-v[~far]))
    return value


def _log_sum(values: Array) -> float:
    return log_sum_exp(values) if float(values.max()) > _LOG_ZERO else -math.inf


def _log_probability(mixture: Mixture, above: float, side: int) -> float:
    """Return ln of the probability of the half-line above a threshold, rounded up (side 1) or down (side -1)."""
    u = (above - mixture.mean) / mixture.spread
    size = np.minimum(np.abs(u) * ((abs(above) + np.abs(mixture.mean)) / mixture.spread), 1e290)
    value = mixture.log_weight + log_upper_tail(u)
    value = value + side * UNIT * (16.0 * size + 16.0 * u * u + 4.0 * np.abs(mixture.log_weight) + 32.0)
    return _log_sum(value) + side * UNIT * (64.0 + len(u))


def log_advantage_down(p: Mixture, q: Mixture, epsilon: float, above: float) -> float:
    """Return ln of P(A) - e^epsilon Q(A) for the half-line A above a threshold, rounded down.

    The weights of ``p`` are taken as lower bounds, those of ``q`` as upper bounds.

    Args:
        p, q: mixtures with positive standard deviations.
        epsilon: finite and >= 0.
        above: the threshold, finite.

    Returns:
        A lower bound; -inf if the difference may be 0 or negative.
    """
    log_p = _log_probability(p, above, -1)
    gap = _log_probability(q, above, 1) + epsilon * (1.0 + UNIT) - log_p
    if not gap < 0.0 or log_p == -math.inf:
        return -math.inf
    value = log_p + math.log1p(-math.exp(gap)) if gap < -0.7 else log_p + math.log(-math.expm1(gap))
    gap_error = UNIT * (8.0 * abs(log_p) + 8.0 * epsilon + 16.0)
    if -gap <= 4.0 * gap_error:
        return -math.inf
    return value - UNIT * (8.0 * abs(value) + 32.0) - 2.0 * gap_error * math.exp(min(0.0, gap)) / -math.expm1(gap)


def log_density(mixture: Mixture, at: float) -> float:
    """Return ln of the density at a point plus ln sqrt(2 pi), to nearest."""
    u = np.minimum(np.abs((at - mixture.mean) / mixture.spread), 1e100)
    return _log_sum(mixture.log_weight - 0.5 * u * u - np.log(mixture.spread))


def likelihood_ratio_threshold(p: Mixture, q: Mixture, epsilon: float) -> float:
    """Return approximately where the density of P is e^epsilon times that of Q.

    This is the best threshold if the likelihood ratio increases; any threshold gives a valid bound.
    """

    def log_excess(x: float) -> float:
        return log_density(p, x) - log_density(q, x) - epsilon

    width = float(p.spread.max())
    low, high = float(min(p.mean.min(), q.mean.min())), float(max(p.mean.max(), q.mean.max()))
    step = width + (high - low)
    for _ in range(80):
        if log_excess(high) >= 0.0 or high > 1e15 * width:
            break
        low, high, step = high, high + step, 2.0 * step
    return _crossing(log_excess, low, high, 1e-6 * width)


def _crossing(rising: Callable[[float], float], low: float, high: float, within: float) -> float:
    """Return approximately where an increasing function crosses 0 between two ends; at worst the middle of the bracket.

    A bisection follows every two secant steps, so that both ends of the bracket move. The search ends when the line
    through the last two points, which are close, has its zero as near as wanted.
    """
    below, above = rising(low), rising(high)
    last, reached = low, below
    for step in range(90):
        if high - low <= within:
            break
        share = below / (below - above) if step % 3 < 2 and -math.inf < below < 0.0 < above < math.inf else 0.5
        at = low + min(max(share, 1e-3), 1.0 - 1e-3) * (high - low)
        value = rising(at)
        low, below, high, above = (low, below, at, value) if value >= 0.0 else (at, value, high, above)
        way = abs(at - last)
        if way <= _LOCAL * within and abs(value) * way <= within * abs(value - reached) < math.inf:
            return at
        last, reached = at, value
    return 0.5 * (low + high)
