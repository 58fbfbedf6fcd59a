"""How likely mixtures of normal laws make an event, from below and from above, and binomial weights for them.

For any event A, P(A) - e^eps Q(A) is a lower bound on what tells P from Q at eps: a good event need not be proved best.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpcalc.numerics.arrays import mills
from dpcalc.numerics.floats import UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_LN_SQRT_2PI = 0.9189385332046728
_NOTHING = -1e300  # ln of a weight of nothing
_SINGLE = 256  # numbers next to the mean that are looked at one by one
_GROWTH = 0.01


class Mixture(NamedTuple):
    """Normal laws with ln of their weights, where they lie, and their standard deviations."""

    log_weight: Array
    at: Array
    spread: Array


class Masses(NamedTuple):
    """Blocks low..high of whole numbers, with bounds on ln of their probabilities."""

    low: Array
    high: Array
    log_below: Array
    log_above: Array


def log_tails(u: Array) -> Array:
    """Return ln of the upper tail of the standard normal law, within 8 units of roundoff of (1 + u^2)."""
    v = np.clip(u, -1e100, 1e100)
    with np.errstate(under="ignore"):
        log_density = -0.5 * v * v - _LN_SQRT_2PI
        far = v > -1.0
        value = np.empty_like(v)
        value[far] = log_density[far] + np.log(mills(v[far]))
        value[~far] = np.log1p(-np.exp(log_density[~far]) * mills(-v[~far]))
    return value


def _log_sum(values: Array) -> float:
    peak = float(values.max())
    return peak + math.log(float(np.exp(values - peak).sum())) if peak > _NOTHING else -math.inf


def _log_probability(mixture: Mixture, above: float, side: int) -> float:
    """Return ln of the probability of all above a threshold, rounded to the side (1 up, -1 down)."""
    u = (above - mixture.at) / mixture.spread
    size = np.minimum(np.abs(u) * ((abs(above) + np.abs(mixture.at)) / mixture.spread), 1e290)
    value = mixture.log_weight + log_tails(u)
    value = value + side * UNIT * (16.0 * size + 16.0 * u * u + 4.0 * np.abs(mixture.log_weight) + 32.0)
    return _log_sum(value) + side * UNIT * (64.0 + len(u))


def log_advantage(p: Mixture, q: Mixture, epsilon: float, above: float) -> float:
    """Return ln of P(A) - e^epsilon Q(A) for A all above a threshold, rounded down; -inf where it may be 0 or less.

    The weights of ``p`` count as lower bounds, those of ``q`` as upper bounds.
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


def log_densities(mixture: Mixture, at: float) -> float:
    """Return ln of the density at a point, to nearest."""
    u = np.minimum(np.abs((at - mixture.at) / mixture.spread), 1e100)
    return _log_sum(mixture.log_weight - 0.5 * u * u - np.log(mixture.spread))


def threshold(p: Mixture, q: Mixture, epsilon: float) -> float:
    """Return about where the density of P is e^epsilon times that of Q, the best threshold where their ratio grows."""

    def ratio(x: float) -> float:
        return log_densities(p, x) - log_densities(q, x) - epsilon

    width = float(p.spread.max())
    low, high = float(min(p.at.min(), q.at.min())), float(max(p.at.max(), q.at.max()))
    step = width + (high - low)
    for _ in range(80):
        if ratio(high) >= 0.0 or high > 1e15 * width:
            break
        low, high, step = high, high + step, 2.0 * step
    for _ in range(60):
        middle = 0.5 * (low + high)
        if high - low <= 1e-6 * width:
            break
        low, high = (low, middle) if ratio(middle) >= 0.0 else (middle, high)
    return 0.5 * (low + high)


# --- binomial weights -------------------------------------------------------------------------------------------------


def binomial(trials: int, chance: Fraction) -> Masses:
    """Return the law of the number of successes in blocks: singles near the mean, ever wider ones further out.

    What lies more than 40 standard deviations and 1000 from the mean is put into two blocks.
    """
    if chance in (0, 1) or trials == 0:
        only = np.array([float(trials * chance)])
        return Masses(only, only, np.zeros(1), np.zeros(1))
    mean = trials * chance
    centre = min(trials, max(0, round(mean)))
    reach = int(40.0 * math.sqrt(float(mean * (1 - chance)))) + 1000
    edges = [centre - d for d in reversed(_distances(min(centre, reach)))]
    edges += [centre + d for d in _distances(min(trials - centre, reach))[1:]]
    last = edges[-1]
    starts = np.array(edges, dtype=np.int64)
    ends = np.append(starts[1:] - 1, last)
    offset = float(centre - mean)
    logs = _log_masses(trials, chance, starts, (starts - centre).astype(float) + offset)
    logs_end = _log_masses(trials, chance, ends, (ends - centre).astype(float) + offset)
    count = (ends - starts + 1).astype(float)
    error = UNIT * (64.0 * np.abs(logs) + 256.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = np.where(count > 1.0, (logs_end - logs) / np.maximum(count - 1.0, 1.0), 0.0)
        odds = float(chance / (1 - chance))
        ratio = np.log((trials - starts.astype(float)) / (starts.astype(float) + 1.0) * odds)
    ratio = np.where(np.isfinite(ratio), ratio, 0.0)
    below = logs + _log_geometric(slope, count) - error
    above = np.minimum(0.0, np.where(count > 1.0, logs + _log_geometric(ratio, count), logs) + error)
    low, high = [starts.astype(float)], [ends.astype(float)]
    rest = [(0, edges[0] - 1, edges[0] - 1), (last + 1, trials, last + 1)]
    extra_below, extra_above = [], []
    for first, final, nearest in rest:
        if first <= final:
            low.append(np.array([float(first)]))
            high.append(np.array([float(final)]))
            extra_below.append(_NOTHING)
            extra_above.append(_log_beyond(trials, chance, nearest))
    return Masses(
        np.concatenate(low), np.concatenate(high), np.append(below, extra_below), np.append(above, extra_above)
    )


def _distances(most: int) -> list[int]:
    found = [0]
    while found[-1] < most:
        found.append(min(most, max(found[-1] + 1, int(found[-1] * (1.0 + _GROWTH)) if found[-1] > _SINGLE else 0)))
    return found


def _log_geometric(slope: Array, count: Array) -> Array:
    """Return ln of 1 + e^s + ... + e^(s (count-1))."""
    s = np.where(np.abs(slope) < 1e-12, 1e-12, slope)
    down = -np.abs(s)
    value = np.log(np.expm1(down * count) / np.expm1(down))
    result: Array = value + np.where(s > 0.0, s * (count - 1.0), 0.0)
    return result


def _log_beyond(trials: int, chance: Fraction, number: int) -> float:
    """Return Chernoff's bound on ln of the probability of ``number`` or what is further from the mean."""
    share = number / trials
    p = float(chance)
    gap = share * math.log(share / p) if share > 0.0 else 0.0
    if share < 1.0:
        gap += (1.0 - share) * (math.log1p(-share) - math.log1p(-p))
    size = abs(math.log(p)) + abs(math.log1p(-p)) + 1.0
    return -trials * max(0.0, gap - 64.0 * UNIT * size)


def _log_masses(trials: int, chance: Fraction, number: NDArray[np.int64], excess: Array) -> Array:
    """Return ln of binomial probabilities by Loader's saddle point; ``excess`` is number - mean."""
    p, q = float(chance), float(1 - chance)
    mean, missed = float(trials * chance), float(trials * (1 - chance))
    value = np.empty(len(number))
    none, every = number == 0, number == trials
    value[none] = trials * (math.log1p(-p) if p < 0.5 else math.log(q))
    value[every] = trials * (math.log1p(-q) if q < 0.5 else math.log(p))
    inner = ~none & ~every
    k = number[inner].astype(float)
    rest = (trials - number[inner]).astype(float)
    x = excess[inner]
    value[inner] = (
        _remainder(np.array([float(trials)]))[0] - _remainder(k) - _remainder(rest)
        - mean * _deviance(x / mean) - missed * _deviance(-x / missed)
        - _LN_SQRT_2PI + 0.5 * (math.log(trials) - np.log(k) - np.log(rest))
    )  # fmt: skip
    return value


def _deviance(d: Array) -> Array:
    """Return (1 + d) ln(1 + d) - d for d > -1, without cancellation."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        wide = (1.0 + d) * np.log1p(d) - d
    small = np.where(np.abs(d) < 0.1, d, 0.0)
    total, power = np.zeros_like(d), small * small
    for j in range(2, 22):
        total = total + power / (j * (j - 1))
        power = -power * small
    result: Array = np.where(np.abs(d) < 0.1, total, wide)
    return result


def _remainder(n: Array) -> Array:
    """Return ln n! - ln(sqrt(2 pi n) (n/e)^n) for n >= 1."""
    large = np.maximum(n, 16.0)
    s = 1.0 / (large * large)
    value = (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / large
    small = np.minimum(n, 15.0).astype(int)
    table = np.array([0.0] + [
        math.log(math.factorial(j)) - _LN_SQRT_2PI - 0.5 * math.log(j) - j * (math.log(j) - 1.0) for j in range(1, 16)
    ])  # fmt: skip
    result: Array = np.where(n < 16.0, table[small], value)
    return result
