"""The binomial law in blocks of whole numbers, each with a lower and an upper bound on its probability."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from dpcalc.numerics.arrays import Array, Integers, np
from dpcalc.numerics.binomial import stirling_series
from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.normal import LN_SQRT_2PI

_LOG_ZERO = -1e300  # a lower bound on ln of any weight
_SINGLE = 256  # numbers so near the mean are blocks of one
_GROWTH = 0.01  # further out, blocks grow by this share of their distance


class BinomialBlocks(NamedTuple):
    """Blocks low..high of whole numbers, with lower and upper bounds on ln of their probabilities."""

    low: Array
    high: Array
    log_below: Array
    log_above: Array


def binomial_blocks(trials: int, chance: Fraction) -> BinomialBlocks:
    """Return the law of the number of successes in blocks: single numbers near the mean, wider blocks further out.

    Numbers more than 40 standard deviations and 1000 from the mean form two blocks.
    """
    if chance in (0, 1) or trials == 0:
        only = np.array([float(trials * chance)])
        return BinomialBlocks(only, only, np.zeros(1), np.zeros(1))
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
            extra_below.append(_LOG_ZERO)
            extra_above.append(_log_tail_up(trials, chance, nearest))
    return BinomialBlocks(
        np.concatenate(low), np.concatenate(high), np.append(below, extra_below), np.append(above, extra_above)
    )


def _distances(most: int) -> list[int]:
    """Return the distances from the mean, 0 to ``most``, at which blocks start."""
    distances = [0]
    while (last := distances[-1]) < most:
        distances.append(min(most, max(last + 1, int(last * (1.0 + _GROWTH)) if last > _SINGLE else 0)))
    return distances


def _log_geometric(slope: Array, count: Array) -> Array:
    """Return ln(1 + e^s + ... + e^(s (count-1))) for the slope s, elementwise."""
    s = np.where(np.abs(slope) < 1e-12, 1e-12, slope)
    down = -np.abs(s)
    value = np.log(np.expm1(down * count) / np.expm1(down))
    return value + np.where(s > 0.0, s * (count - 1.0), 0.0)


def _log_tail_up(trials: int, chance: Fraction, number: int) -> float:
    """Return Chernoff's upper bound on ln of the probability of ``number`` and of all beyond it, away from the mean."""
    share = number / trials
    p = float(chance)
    gap = share * math.log(share / p) if share > 0.0 else 0.0
    if share < 1.0:
        gap += (1.0 - share) * (math.log1p(-share) - math.log1p(-p))
    size = abs(math.log(p)) + abs(math.log1p(-p)) + 1.0
    return -trials * max(0.0, gap - 64.0 * UNIT * size)


def _log_masses(trials: int, chance: Fraction, number: Integers, excess: Array) -> Array:
    """Return ln of binomial probabilities by Loader's saddle-point form, to rounding; ``excess`` is number - mean."""
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
        _stirling(np.array([float(trials)]))[0] - _stirling(k) - _stirling(rest)
        - mean * _deviance(x / mean) - missed * _deviance(-x / missed)
        - LN_SQRT_2PI + 0.5 * (math.log(trials) - np.log(k) - np.log(rest))
    )  # fmt: skip
    return value


def _deviance(d: Array) -> Array:
    """Return (1 + d) ln(1 + d) - d, elementwise, for d > -1, without cancellation."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        wide = (1.0 + d) * np.log1p(d) - d
    small = np.where(np.abs(d) < 0.1, d, 0.0)
    total, power = np.zeros_like(d), small * small
    for j in range(2, 22):
        total = total + power / (j * (j - 1))
        power = -power * small
    return np.where(np.abs(d) < 0.1, total, wide)


def _stirling(n: Array) -> Array:
    """Return ln n! - ln(sqrt(2 pi n) (n/e)^n), elementwise, for whole n >= 1."""
    value = stirling_series(np.maximum(n, 16.0))
    small = np.minimum(n, 15.0).astype(int)
    table = np.array([0.0] + [
        math.log(math.factorial(j)) - LN_SQRT_2PI - 0.5 * math.log(j) - j * (math.log(j) - 1.0) for j in range(1, 16)
    ])  # fmt: skip
    return np.where(n < 16.0, table[small], value)
