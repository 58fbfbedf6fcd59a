"""The binomial law: masses, tails and quantiles rounded up, and groups and blocks of numbers with bounded weights."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dpcalc.numerics.floats import UNIT, Array, Integers, log_add_exp, np
from dpcalc.numerics.normal import LN_SQRT_2PI

if TYPE_CHECKING:
    from fractions import Fraction

Number = TypeVar("Number", float, "Array")

_LN_2PI = 1.8378770664093453
_SUMMED = 1000.0  # up to this mean the masses are added one by one


def upper_groups(trials: int, chance: float, *, single: bool = False) -> list[tuple[int, float]]:
    """Return (number, ln weight) pairs such that sum weight f(number) >= E f for every non-decreasing f >= 0.

    A group is represented by its largest number. Up to a mean of 1000 groups are half a standard deviation wide (single
    numbers if the mean is small) and their masses are exact to rounding. For larger means, and in the far tail, weights
    are Chernoff's bounds on P(number >= least of the group), which sum to about 7.

    Args:
        trials: 0 to 1e15.
        chance: 0 <= chance < 1.
        single: whether each number up to about ten standard deviations above a mean of at most 1000 is a group.
    """
    if trials == 0 or chance == 0.0:
        return [(0, 0.0)]
    mean = trials * chance
    spread = math.sqrt(mean)
    groups, top = [], -1
    if mean <= _SUMMED:
        top = min(trials, math.ceil(mean + 10.0 * spread + 15.0))
        groups = _log_masses_up(trials, chance, top, 1 if single else max(1, int(spread / 2.0)))
    width = max(1.0, spread)
    while top < trials:
        start = top + 1
        top = min(trials, max(start, int(start + width), int(mean - 8.0 * spread)))
        width *= 1.1 if start < mean + 40.0 * spread else 4.0
        groups.append((top, chernoff_log_tail_up(start, trials, chance)))
    return groups


def _log_masses_up(trials: int, chance: float, top: int, width: int) -> list[tuple[int, float]]:
    """Return the masses of the numbers up to ``top`` in groups of ``width``, rounded up."""
    odds = math.log(chance) - math.log1p(-chance)
    log_mass, weight, groups = trials * math.log1p(-chance), -math.inf, []
    for number in range(top + 1):
        if number:
            log_mass += math.log((trials - number + 1) / number) + odds
        weight = log_add_exp(weight, log_mass)
        if (number + 1) % width == 0 or number == top:
            steps = (number + 2) * (2.0 + abs(odds) + math.log(trials)) + trials * chance
            groups.append((number, min(0.0, weight + 16.0 * UNIT * steps)))
            weight = -math.inf
    return groups


def chernoff_log_tail_up(start: int, trials: int, chance: float) -> float:
    """Return Chernoff's upper bound on ln P(number >= start)."""
    share = start / trials
    if share <= chance:
        return 0.0
    gap = share * math.log(share / chance)
    if share < 1.0:
        gap += (1.0 - share) * math.log((1.0 - share) / (1.0 - chance))
    return -trials * max(0.0, gap - 64.0 * UNIT * (1.0 + abs(math.log(chance))))


def log_any_tail_up(start: int, trials: int, chance: Fraction, times: int) -> float:
    """Return ln of the probability that one of ``times`` independent Bin(trials, chance) is >= start, rounded up.

    1 - (1 - p)^times of the exact tail p, accurate to about 1e-13 of 1 + its size.

    Args:
        start: 0 to trials.
        trials: 1 to 1e15.
        chance: 0 < chance < 1.
        times: >= 0.
    """
    if times == 0 or start > trials:
        return -math.inf
    if start <= trials * chance:
        return 0.0
    number = np.array([start], dtype=np.int64)
    log_mass = float(_log_masses(trials, chance, number, np.array([float(start - trials * chance)]))[0])
    odds, total, term = float(chance / (1 - chance)), 1.0, 1.0
    for j in range(start, trials):
        ratio = (trials - j) / (j + 1) * odds * (1.0 + 8.0 * UNIT)
        term *= ratio
        total += term
        if term < 1e-18 * total or j - start >= _TERMS:  # a geometric series bounds the rest
            total += term * ratio / (1.0 - ratio)
            break
    log_tail = log_mass + math.log(total) + UNIT * (512.0 + 64.0 * abs(log_mass))
    log_all = math.log(times) + log_tail
    tail = math.exp(min(0.0, log_tail))
    # ln(1 - (1 - p)^s); for small s p, 1 - (1 - p)^s is about s p - (s p)^2/2.
    value = log_all if log_all < -40.0 else math.log(-math.expm1(times * math.log1p(-tail))) if tail < 1.0 else 0.0
    return min(0.0, value + UNIT * (16.0 + 4.0 * abs(value)))


_TERMS = 4000  # terms of a tail that are added before a geometric series bounds the rest


def log_mass_up(number: int, *, trials: int, one_in: int) -> float:
    """Return an upper bound on ln P(Bin(trials, 1/one_in) = number), accurate to about 1e-14 of 1 + its size.

    Loader's saddle-point form, without cancellation: the two deviances are formed from integers.

    Args:
        number: 0 to trials.
        trials: 1 to 1e15.
        one_in: n >= 1; the chance is 1/n.

    >>> round(log_mass_up(3, trials=1000, one_in=500), 12)
    -1.711317093214
    """
    if one_in == 1:
        return 0.0 if number == trials else -math.inf
    if number == 0:
        return trials * math.log1p(-1.0 / one_in) * (1.0 - 4.0 * UNIT)
    if number == trials:
        return -trials * math.log(one_in) * (1.0 - 4.0 * UNIT)
    rest = trials - number
    away = (_deviance(number * one_in, trials) + _deviance(rest * one_in, trials * (one_in - 1))) / one_in
    root = 0.5 * (math.log(trials / number / rest) - _LN_2PI)
    small = _stirling(trials) - _stirling(number) - _stirling(rest)
    return min(0.0, root + small - away + UNIT * (32.0 + 4.0 * abs(root) + 64.0 * away))


def _deviance(x: int, mean: int) -> float:
    """Return x ln(x/mean) - x + mean for integers, without cancellation."""
    gap = x - mean
    v = gap / (x + mean)
    if abs(v) >= 0.1:
        return x * math.log(x / mean) - gap
    total, square = 0.0, v * v
    for j in range(15, 0, -1):
        total = square * (total + 1.0 / (2 * j + 1))
    return gap * v + 2.0 * x * v * total


def _stirling(n: int) -> float:
    """Return ln n! - ln(sqrt(2 pi n) (n/e)^n) for n >= 1."""
    if n < 16:
        return math.log(math.factorial(n)) - (n + 0.5) * math.log(n) + n - 0.5 * _LN_2PI
    return stirling_series(float(n))


def stirling_series(n: Number) -> Number:
    """Return Stirling's series for ln n! - ln(sqrt(2 pi n) (n/e)^n), n >= 16, of a float or an array."""
    x = 1.0 / (n * n)
    return (1.0 / 12.0 - x * (1.0 / 360.0 - x * (1.0 / 1260.0 - x * (1.0 / 1680.0 - x / 1188.0)))) / n


def log_tail_up(start: int, *, trials: int, one_in: int, terms: int = _TERMS) -> float:
    """Return an upper bound on ln P(Bin(trials, 1/one_in) >= start); 0 up to the mean.

    Args:
        start: any whole number.
        trials, one_in: as in `log_mass_up`.
        terms: number of masses that are added; a geometric series bounds the rest.
    """
    if start > trials:
        return -math.inf
    if start <= 0 or one_in == 1 or start * one_in <= trials:
        return 0.0
    total, term, j = 1.0, 1.0, start
    while j < trials:
        ratio = (trials - j) / ((j + 1) * (one_in - 1))
        term *= ratio
        if j - start >= terms:
            total += term / (1.0 - ratio * (1.0 + 4.0 * UNIT))
            break
        total += term
        j += 1
        if term < 1e-30 * total:
            # A geometric series that starts at the dropped term bounds the rest; it is below the rounding.
            break
    value = log_mass_up(start, trials=trials, one_in=one_in) + math.log(total) + UNIT * (16.0 + 4.0 * (j - start))
    return min(0.0, value)


def quantile_up(log_chance: float, *, trials: int, one_in: int) -> int:
    """Return the least k with P(Bin(trials, 1/one_in) > k) <= chance, rounded up.

    Above the mean it is exact up to rounding. If it is below the mean, the mean is returned.

    Args:
        log_chance: ln of the chance, <= 0.
        trials, one_in: as in `log_mass_up`.

    >>> quantile_up(math.log(0.05), trials=1000, one_in=1000)
    3
    """
    if one_in == 1:
        return trials
    mean = trials // one_in
    low, step = mean - 1, 1 + math.isqrt(mean)  # P(Bin > mean - 1) is not known to be small
    while low + step < trials and log_tail_up(low + step + 1, trials=trials, one_in=one_in) > log_chance:
        low, step = low + step, 2 * step
    high = min(trials, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        if log_tail_up(middle + 1, trials=trials, one_in=one_in) <= log_chance:
            high = middle
        else:
            low = middle
    return high


Group = tuple[int, float, float]


class Groups:
    """Groups of numbers in order, each computed on first use from the one before."""

    def __init__(self, following: Callable[[Group | None], Group | None]) -> None:
        self._known: list[Group] = []
        self._following = following

    def __iter__(self) -> Iterator[Group]:
        """Iterate over the groups from the first; several iterations share the computed groups."""
        for place in itertools.count():
            if place == len(self._known):
                group = self._following(self._known[-1] if self._known else None)
                if group is None:
                    return
                self._known.append(group)
            yield self._known[place]


@functools.lru_cache(maxsize=64)
def upper_groups_with_tails(trials: int, one_in: int) -> Groups:
    """Return (number, ln weight, ln rest) such that sum weight f(number) >= E f for every non-decreasing f >= 0.

    The rest is an upper bound on P(Bin > number). Numbers up to 1000, and within 10 standard deviations of a mean up to
    1000, are groups of one. A group is represented by its largest number; its width is at most the larger of a
    sixteenth of a standard deviation and a 64th of the number. If all groups have one number, the weights are the
    masses.

    Args:
        trials, one_in: as in `log_mass_up`.
    """
    return Groups(lambda before: _group_after(before, trials, one_in))


def _group_after(before: Group | None, trials: int, one_in: int) -> Group | None:
    """Return the group that follows another, or the first; None after the last."""
    if before is not None and (before[0] == trials or before[2] < -1e9):
        return None  # no delta in a question is as small as e^(-1e9)
    if one_in == 1:
        return trials, 0.0, -math.inf
    mean = trials / one_in
    spread = math.sqrt(mean)
    if before is None and mean > 1000.0 and (top := int(mean - 10.0 * spread - 10.0)) >= 0:
        return top, _log_lower_tail_up(top, trials, one_in), 0.0
    start = 0 if before is None else before[0] + 1
    beyond = max(0.0, start - mean - 10.0 * spread) if mean > 1000.0 else max(0.0, start - mean - 1000.0)
    top = min(trials, start + max(1, int(spread / 16.0), int(beyond / 64.0)) - 1)
    peak = min(max((trials + 1) // one_in, start), top)
    weight = log_mass_up(peak, trials=trials, one_in=one_in) + math.log(top - start + 1)
    if start > mean:
        weight = min(weight, log_tail_up(start, trials=trials, one_in=one_in, terms=64))
    rest = log_tail_up(top + 1, trials=trials, one_in=one_in, terms=64)
    return top, min(0.0, weight + 4.0 * UNIT * (1.0 + abs(weight))), rest


def _log_lower_tail_up(top: int, trials: int, one_in: int) -> float:
    """Return an upper bound on ln P(Bin <= top), top below the mean: masses fall geometrically from there."""
    ratio = top * (one_in - 1) / (trials - top + 1) * (1.0 + 8.0 * UNIT)
    mass = log_mass_up(top, trials=trials, one_in=one_in)
    return min(0.0, mass - math.log1p(-ratio) + 16.0 * UNIT) if ratio < 1.0 else 0.0


_LOG_ZERO = -1e300  # a lower bound on ln of any weight
_SINGLE = 256  # numbers within this distance of the mean are blocks of one
_GROWTH = 0.01  # further out, the width of blocks is this share of their distance


class BinomialBlocks(NamedTuple):
    """Blocks low..high of integers, with lower and upper bounds on ln of their probabilities."""

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
        ratio = np.log((trials - starts.astype(float)) / (starts.astype(float) + 1.0) * float(chance / (1 - chance)))
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
    return np.log(np.expm1(down * count) / np.expm1(down)) + np.where(s > 0.0, s * (count - 1.0), 0.0)


def _log_tail_up(trials: int, chance: Fraction, number: int) -> float:
    """Return Chernoff's upper bound on ln of the probability of ``number`` and all numbers farther from the mean."""
    share = number / trials
    p = float(chance)
    gap = share * math.log(share / p) if share > 0.0 else 0.0
    if share < 1.0:
        gap += (1.0 - share) * (math.log1p(-share) - math.log1p(-p))
    return -trials * max(0.0, gap - 64.0 * UNIT * (abs(math.log(p)) + abs(math.log1p(-p)) + 1.0))


def log_masses(trials: int, chance: float) -> Array:
    """Return ln P(Bin(trials, chance) = k) for k = 0, ..., trials, to about 64 units of roundoff of 1 + its size.

    Args:
        trials: 0 or more.
        chance: in (0, 1).
    """
    from fractions import Fraction

    exact, numbers = Fraction(chance), np.arange(trials + 1, dtype=np.int64)
    if trials == 0:
        return np.zeros(1)
    mean = trials * exact
    return _log_masses(trials, exact, numbers, (numbers - int(mean)).astype(float) + float(int(mean) - mean))


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
        _stirlings(np.array([float(trials)]))[0] - _stirlings(k) - _stirlings(rest)
        - mean * _deviances(x / mean) - missed * _deviances(-x / missed)
        - LN_SQRT_2PI + 0.5 * (math.log(trials) - np.log(k) - np.log(rest))
    )  # fmt: skip
    return value


def _deviances(d: Array) -> Array:
    """Return (1 + d) ln(1 + d) - d, elementwise, for d > -1, without cancellation."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        wide = (1.0 + d) * np.log1p(d) - d
    small = np.where(np.abs(d) < 0.1, d, 0.0)
    total, power = np.zeros_like(d), small * small
    for j in range(2, 22):
        total = total + power / (j * (j - 1))
        power = -power * small
    return np.where(np.abs(d) < 0.1, total, wide)


def _stirlings(n: Array) -> Array:
    """Return ln n! - ln(sqrt(2 pi n) (n/e)^n), elementwise, for whole n >= 1."""
    value = stirling_series(np.maximum(n, 16.0))
    small = np.minimum(n, 15.0).astype(int)
    table = np.array([0.0] + [
        math.log(math.factorial(j)) - LN_SQRT_2PI - 0.5 * math.log(j) - j * (math.log(j) - 1.0) for j in range(1, 16)
    ])  # fmt: skip
    return np.where(n < 16.0, table[small], value)


class Truncation(NamedTuple):
    """The effect of a cap on a batch that takes each of n records with probability q; the kept part is uniform.

    Attributes:
        chance: P(Bin(n-1, q) >= cap), rounded up: the other records fill the batch. 0 if they are too few.
        rest: 1 - chance, rounded up.
        rate: the probability that a record is then in the batch, (cap/n) P(Bin(n, q) > cap)/chance, rounded up.
    """

    chance: float
    rest: float
    rate: float


LEAST_CHANCE = 1e-300  # a smaller one counts as this one


@functools.lru_cache(maxsize=64)
def truncation(trials: int, chance: float, cap: int) -> Truncation:
    """Return the effect of a cap on the size of a batch that takes each of ``trials`` records with one probability.

    Args:
        trials: n, 1 to 1e10.
        chance: q, 0 < q <= 1.
        cap: 1 or more.

    >>> cut = truncation(3, 0.5, 1)  # P(Bin(2, 1/2) >= 1) and (1/3) P(Bin(3, 1/2) > 1)/(3/4)
    >>> round(cut.chance, 12), round(cut.rate, 12)
    (0.75, 0.222222222222)
    """
    if cap >= trials:
        return Truncation(0.0, 1.0, chance)
    below, above = tail(trials - 1, chance, cap)
    if above < LEAST_CHANCE:
        return Truncation(LEAST_CHANCE, 1.0, chance)
    _, larger = tail(trials, chance, cap + 1)
    kept = math.inf if below == 0.0 else cap / trials * (larger / below) * (1.0 + 8.0 * UNIT)
    return Truncation(above, 1.0 - below, min(chance, kept))


def tail(trials: int, chance: float, start: int) -> tuple[float, float]:
    """Return a lower and an upper bound on P(Bin(trials, chance) >= start): a sum of masses, accurate to about 1e-12.

    Args:
        trials: 1 to 1e10.
        chance: 0 < q <= 1.
        start: 1 or more.
    """
    if start > trials or chance == 1.0:
        return (0.0, 0.0) if start > trials else (1.0, 1.0)
    from fractions import Fraction

    exact = Fraction(chance)
    mean = trials * exact
    reach = int(40.0 * math.sqrt(float(mean * (1 - exact)))) + 1000  # beyond, masses are below the least double
    first = max(start, int(mean) - reach)
    last = min(trials, max(first, int(mean)) + reach)
    numbers = np.arange(first, last + 1, dtype=np.int64)
    logs = _log_masses(trials, exact, numbers, (numbers - int(mean)).astype(float) + float(int(mean) - mean))
    error = UNIT * (64.0 * np.abs(logs) + 256.0)
    with np.errstate(under="ignore"):
        below = math.fsum(np.exp(logs - error)) * (1.0 - 8.0 * UNIT)
        above = math.fsum(np.exp(logs + error)) * (1.0 + 8.0 * UNIT)
        # A geometric series bounds the rest; its ratio is below 1 beyond the mean.
        ratio = (trials - last) / (last + 1.0) * float(exact / (1 - exact)) * (1.0 + 8.0 * UNIT)
        above += math.exp(float(logs[-1] + error[-1])) * ratio / (1.0 - ratio) + 5e-324
    return min(1.0, below), min(1.0, above * (1.0 + UNIT)) if first == start else 1.0
