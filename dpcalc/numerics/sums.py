"""Particular sums over up to 1e15 terms, rounded up: harmonic numbers, exponentials and Gaussian hockey sticks.

Terms are added directly up to a cut; Euler-Maclaurin at the midpoints gives the rest. For a smooth f and integers
cut < terms, with a = cut + 1/2 and b = terms + 1/2,

    sum_{k=cut+1}^{terms} f(k) = int_a^b f - [f']/24 + 7 [f''']/5760 - 31 [f^(5)]/967680 + R,   [g] = g(b) - g(a).

Every result is the value plus a stated slack that covers R and rounding.

Upper bounds on sums of decreasing terms over up to 1e15 integers, from bounds on the terms at a few of them.

How well the largest of the sums of an epoch tells two normal laws apart, over many epochs; rounded down.

In an epoch of t steps one sum, at a random place, has mean `high` under P and mean `low` under Q; the others have mean
0, and all have the standard deviation `spread`. What an observer makes of an epoch is a score: about the logarithm of
the likelihood ratio of the cell that the largest sum falls into, as a multiple of a step h. The scores of the epochs
are added, and every event "the total is at least a" gives delta >= P(A) - e^eps Q(A).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from dpcalc.numerics.floats import UNIT, Array, Booleans, distinct, log_expm1, np, up
from dpcalc.numerics.normal import log_hockey_stick, log_hockey_stick_error
from dpcalc.numerics.roots import integrate

T = TypeVar("T")

_EULER_GAMMA = 0.5772156649015329
_CUT = 64  # terms that are added one by one before an integral takes over
_NEGLIGIBLE = 1e-17  # of a sum: below a unit of roundoff
_SUM_SLACK = 1e-14  # relative, of sums of up to some hundred positive terms


def harmonic_up(n: int) -> float:
    """Return H_n = 1 + 1/2 + ... + 1/n, rounded up; n >= 1."""
    if n <= 100:
        return up(math.fsum(1.0 / k for k in range(1, n + 1)), 2.0)
    # The asymptotic series is alternating and enveloping: what follows is below 1/(252 n^6) < 4e-15.
    return up(math.log(n) + _EULER_GAMMA + (1.0 / (2.0 * n) - 1.0 / (12.0 * n * n) + 1.0 / (120.0 * n**4)), 16.0)


def log_sum_expm1_reciprocals_up(x: float, terms: int) -> float:
    """Return an upper bound on ln sum_{k=1}^{terms} (exp(x/k) - 1), x > 0.

    k -> exp(x/k) - 1 is completely monotone, so that R is below the first omitted term of the series: with
    cut >= max(64, 2 x), less than 1e-16 of the sum.
    """
    peak = log_expm1(x)
    cut = min(terms, max(_CUT, math.ceil(min(2.0 * x, 1e6))))
    total = 0.0
    for k in range(1, cut + 1):
        term = math.exp(log_expm1(x / k) - peak)
        total += term
        if term * terms <= _NEGLIGIBLE * total:
            total += term * terms
            break
    else:
        if cut < terms:
            total += math.exp(-peak) * _expm1_tail(x, cut, terms)
    value = peak + math.log(total)
    return value + UNIT * (4.0 * abs(value) + 4.0 * min(x, 1e300) + 64.0)


def _expm1_tail(x: float, cut: int, terms: int) -> float:
    """Return sum_{cut < k <= terms} (exp(x/k) - 1) for x/cut <= 1/2."""
    a, b = cut + 0.5, terms + 0.5
    total = x * math.log(b / a)
    coefficient = x
    for j in range(2, 24):
        coefficient *= x / j
        total += coefficient / (j - 1) * (a ** (1 - j) - b ** (1 - j))
    return total + _expm1_ends(x, a) - _expm1_ends(x, b)


def _expm1_ends(x: float, k: float) -> float:
    """Return f'/24 - 7 f'''/5760 + 31 f^(5)/967680 at k for f = exp(x/k) - 1 (Lah polynomials in x/k)."""
    y = x / k
    first = -y / k
    third = -y * (6.0 + y * (6.0 + y)) / k**3
    fifth = -y * (120.0 + y * (240.0 + y * (120.0 + y * (20.0 + y)))) / k**5
    return math.exp(y) * (first / 24.0 - 7.0 * third / 5760.0 + 31.0 * fifth / 967680.0)


def log_sum_hockey_sticks_up(e: float, r: float, terms: int, start: int = 1) -> float:
    """Return an upper bound on ln sum_{k=start}^{terms} H(e, r/sqrt(k)), for e >= 0, r > 0, 1 <= start <= terms.

    H is that of `dpcalc.numerics.normal`. As a function of a real k, f(k) = H(e, r/sqrt(k)) is the tail of an
    inverse Gaussian measure,

        -f'(k) = r/(2 sqrt(2 pi)) exp(e/2) k^(-3/2) exp(-A k - B/k),   A = e^2/(2 r^2), B = r^2/8,

    analytic for Re k > 0. For large e it falls from 1 to 0 around the bend k* = r^2/(2e), within some w = k* sqrt(2/e).
    Euler-Maclaurin starts at a cut below which f' is negligible, or past the bend, or where f' changes on a scale of at
    least 64 terms; Cauchy's estimate then puts R below 1e-15 of the sum. Terms far before the bend are bounded by 1.
    The integral, in ln k, uses panels of ratio 4, and of 3 w/k* near the bend.
    """
    peak = log_hockey_stick(e, r / math.sqrt(start))
    first, cut = _direct_range(e, r, terms)
    if start > 2:  # as many terms are added one by one from there on
        cut = max(cut, min(terms, start + math.ceil(_CUT * math.sqrt(1.0 + min(e, _SHARP)))))
    first = max(first, start)
    total = (first - start) * math.exp(-peak) if first > start else 0.0
    for k in range(first, cut + 1):
        term = math.exp(min(0.0, log_hockey_stick(e, r / math.sqrt(k)) - peak))
        total += term
        if term * terms <= _NEGLIGIBLE * total:
            total += term * terms
            break
    else:
        if cut < terms:
            total += _hockey_stick_tail(e, r, cut, terms, peak)
    value = peak + math.log(total)
    return value + log_hockey_stick_error(min(value, peak)) + _SUM_SLACK


def log_integral_hockey_sticks_up(e: float, r: float, upper: float) -> float:
    """Return an upper bound on ln of the integral of H(e, r/sqrt(g)) over 0 < g < upper, for e >= 0 and r > 0.

    Below a point that adds less than 1e-17 of the whole, H is bounded by 1; the rest is as in
    `log_sum_hockey_sticks_up`.
    """
    log_upper = math.log(upper)
    bend = math.log(r) + math.log(r) - math.log(8.0 * e + 16.0)
    peak = log_hockey_stick(e, r / math.exp(0.5 * min(log_upper, bend)))
    low = min(log_upper, bend) - 42.0

    def in_log(s: float) -> float:
        return math.exp(min(0.0, log_hockey_stick(e, r * math.exp(-0.5 * s))) - peak + s - log_upper)

    total = math.exp(low - log_upper - peak)
    edges = _panel_edges(e, r, low, log_upper)
    for left, right in itertools.pairwise(edges):
        part = integrate(in_log, left, right, 20)
        total += part
        past_bend = e * e * math.exp(right) > 16.0 * r * r
        if past_bend and part <= _NEGLIGIBLE * total and in_log(right) * (edges[-1] - right) <= _NEGLIGIBLE * total:
            total += in_log(right) * (edges[-1] - right)
            break
    value = peak + log_upper + math.log(total)
    return value + log_hockey_stick_error(min(value - log_upper, peak)) + _SUM_SLACK + UNIT * 4.0 * abs(log_upper)


def _direct_range(e: float, r: float, terms: int) -> tuple[int, int]:
    """Return (first, cut): terms before first count as 1, those up to cut are added one by one, at most some 8000."""
    bend = r * (r / (2.0 * e)) if e > 0.0 else math.inf
    if terms <= _CUT or bend >= _CUT * math.sqrt(1.0 + e):
        return 1, min(terms, _CUT)
    if e < _SHARP:
        return 1, min(terms, math.ceil(_CUT * math.sqrt(1.0 + e)))
    reach = 40.0 * bend * math.sqrt(2.0 / e)
    return max(1, min(terms, math.floor(bend - reach))), min(terms, _CUT + math.ceil(bend + reach))


_SHARP = 3200.0  # from here on the bend, 40 w to either side, stays clear of 0


def _hockey_stick_tail(e: float, r: float, cut: int, terms: int, peak: float) -> float:
    """Return exp(-peak) sum_{cut < k <= terms} H(e, r/sqrt(k))."""

    def in_log(s: float) -> float:
        return math.exp(min(0.0, log_hockey_stick(e, r * math.exp(-0.5 * s)) - peak) + s)

    edges = _panel_edges(e, r, math.log(cut + 0.5), math.log(terms + 0.5))
    total = 0.0
    for left, right in itertools.pairwise(edges):
        part = integrate(in_log, left, right, 20)
        total += part
        # f decreases, and past its bend so does k f(k); what is left is then below its value here times ln k.
        past_bend = e * e * math.exp(right) > 16.0 * r * r
        if past_bend and part <= _NEGLIGIBLE * total and in_log(right) * (edges[-1] - right) <= _NEGLIGIBLE * total:
            break
    return total + _hockey_stick_ends(e, r, cut + 0.5, peak) - _hockey_stick_ends(e, r, terms + 0.5, peak)


def _panel_edges(e: float, r: float, a: float, b: float) -> list[float]:
    """Return the panel ends over [a, b] in ln k: at most ln 4 wide, 3 sqrt(2/e) within 12 of these of the bend.

    Where f falls fast from a on, they are as wide as it falls by e^-8.
    """
    count = max(1, math.ceil((b - a) / math.log(4.0)))
    edges = {a + (b - a) * i / count for i in range(count + 1)} | {a, b}
    if e > 8.0:
        bend, width = 2.0 * math.log(r) - math.log(2.0 * e), 3.0 * math.sqrt(2.0 / e)
        edges |= {s for s in (bend + j * width for j in range(-4, 5)) if a < s < b}
    decay = 0.5 * min(e / r, 1e100) ** 2  # past the bend f falls as exp(-decay k)
    if decay * math.exp(a) > 1.0:
        edges |= {s for s in (math.log(math.exp(a) + 8.0 * j / decay) for j in range(1, 9)) if a < s < b}
    return sorted(edges)


def _hockey_stick_ends(e: float, r: float, k: float, peak: float) -> float:
    """Return exp(-peak) (f'/24 - 7 f'''/5760 + 31 f^(5)/967680) at k."""
    q = e / r
    a, b = 0.5 * q * q, 0.125 * r * r
    exponent = 0.5 * e - a * k - b / k - peak
    if exponent < -700.0:
        return 0.0
    g = float(r * 0.19947114020071635 * k**-1.5 * math.exp(exponent))
    # Derivatives of h = ln(-f'), and those of -f' = exp(h) from them.
    h1 = -1.5 / k - a + b / k**2
    h2 = 1.5 / k**2 - 2.0 * b / k**3
    h3 = -3.0 / k**3 + 6.0 * b / k**4
    h4 = 9.0 / k**4 - 24.0 * b / k**5
    third = g * (h1 * h1 + h2)
    fifth = g * (h1**4 + 6.0 * h1 * h1 * h2 + 3.0 * h2 * h2 + 4.0 * h1 * h3 + h4)
    return -g / 24.0 + 7.0 * third / 5760.0 - 31.0 * fifth / 967680.0


_TOLERANCE = 1e-3  # of ln of the sum: what chords may add
_MOST_NODES = 6000  # bounds the time where terms jump
_MOST_ROUNDS = 14  # each halves the gaps that add the most
_SINGLE = 24  # the first so many integers are all nodes


class TermBounds(NamedTuple):
    """Upper bounds on the terms of several sums at some integers: logarithms, shape (sums, integers).

    ``at_and_after`` bounds the terms at the integer and at all later ones. ``convex_form`` does so too, and where
    ``convex`` is true it is convex in the integer from there on, so that chords bound it.
    """

    at_and_after: Array
    convex_form: Array
    convex: Booleans


def log_sum_decreasing_up(
    terms: Callable[[Array], TermBounds], first: int, last: int, tolerance: float = _TOLERANCE
) -> float:
    """Return an upper bound on ln of the sum of all terms at all integers first <= k <= last.

    Between two nodes a < a' a term is bounded by its value at a, or where it is convex by the chord from a to a'. Nodes
    are added until the estimated relative loss is below the tolerance. The result is a bound for any choice of nodes.

    Args:
        terms: array of increasing integers -> bounds on the terms there.
        first, last: 1 <= first <= last <= 1e15.
        tolerance: the relative loss to aim for.
    """
    nodes = _first_nodes(first, last)
    bounds = terms(nodes)
    for _ in range(_MOST_ROUNDS):
        sums, peak = _block_sums(nodes, bounds)
        loss = sums[1] / float(sums[0].sum())
        if float(loss.sum()) <= tolerance or len(nodes) >= _MOST_NODES:
            break
        added = _between(nodes, loss, tolerance)
        if not len(added):
            break
        fresh = terms(added)
        nodes = np.concatenate((nodes, added))
        order = np.argsort(nodes)
        nodes = nodes[order]
        bounds = TermBounds(*(np.concatenate(pair, axis=1)[:, order] for pair in zip(bounds, fresh, strict=True)))
    sums, peak = _block_sums(nodes, bounds)
    value = peak + float(np.log(sums[0].sum()))
    return value + UNIT * (4.0 * abs(value) + 16.0 * len(nodes))


def _first_nodes(first: int, last: int) -> Array:
    alone = np.arange(first, min(last, first + _SINGLE) + 1, dtype=float)
    if last <= first + _SINGLE:
        return alone
    count = 2 + int(3.0 * np.log((last + 1.0 - first) / _SINGLE))
    return distinct(alone, np.rint(np.geomspace(alone[-1], float(last), count)))


def _block_sums(nodes: Array, bounds: TermBounds) -> tuple[Array, float]:
    """Return the sum and the estimated loss of each block, shape (2, blocks), in units of exp(peak).

    A block is a node and the integers up to the next one; the last block is the last node alone.
    """
    peak = max(float(bounds.at_and_after.max()), -1e306)
    flat, convex = np.exp(bounds.at_and_after - peak), np.exp(np.minimum(bounds.convex_form - peak, 700.0))
    count = np.append(np.diff(nodes), 1.0)
    after = np.concatenate((convex[:, 1:], convex[:, -1:]), axis=1)
    added = np.where(bounds.convex, (convex * (count + 1.0) + after * (count - 1.0)) / 2.0, flat * count)
    # An estimate of the sum itself: values that decrease exponentially between nodes, with the curvature of a power.
    logs = bounds.at_and_after
    gap = np.maximum(np.concatenate((logs[:, :-1] - logs[:, 1:], logs[:, -1:] * 0.0), axis=1), 1e-9)
    gap_convex = np.maximum(np.log(np.maximum(convex, 1e-300)) - np.log(np.maximum(after, 1e-300)), 1e-9)
    inner = count - 1.0
    rough = flat * inner * (1.0 + np.expm1(-gap) / gap)
    fine = (convex + after) * inner / 2.0 - convex * inner * -np.expm1(-gap_convex) / gap_convex
    fine *= 1.0 + np.minimum(np.append(np.log(nodes[1:] / nodes[:-1]), 0.0) / gap_convex, 9.0)
    return np.stack((added.sum(axis=0), np.maximum(np.where(bounds.convex, fine, rough), 0.0).sum(axis=0))), peak


def _between(nodes: Array, loss: Array, tolerance: float) -> Array:
    """Return nodes inside the blocks that lose most, more of them where more is lost."""
    share = tolerance / max(64, len(nodes))
    chosen = np.flatnonzero((loss[:-1] > share) & (np.diff(nodes) > 1.0))
    chosen = chosen[np.argsort(-loss[chosen])][:1500]
    parts = np.clip(np.ceil(np.sqrt(loss[chosen] / share)), 2, 24).astype(int)
    made = [np.rint(np.geomspace(nodes[i], nodes[i + 1], p + 1)[1:-1]) for i, p in zip(chosen, parts, strict=True)]
    if not made:
        return np.empty(0)
    points = distinct(*made)
    return points[nodes[np.minimum(np.searchsorted(nodes, points), len(nodes) - 1)] != points]


MOST_EPOCHS = 4096
"""Of more epochs, only so many are looked at."""
NARROWEST = 0.08
"""A smaller standard deviation is not looked at: numbers would be below the smallest double."""

WIDEST = 1e4
"""With a larger standard deviation next to nothing is told, and rounding would hide it."""

MOST_APART = 80.0
"""(high - low)/spread times the root of the epochs, at most: past it scores are too coarse for their sums."""

_CELLS = 4096  # a row of a table: the excess falls with the square of their width
_POINTS = 4000  # about so many total scores are kept
_TRIMMED = 1e-26  # weight cut off at each end
_REACH = 21.0  # standard deviations from one end to the other, beyond which next to nothing is left
_ERROR = 4e-12  # relative error of ln of a distribution function above 1e-300, several times over


class Scores(NamedTuple):
    """The law of a total score: P(first + i) >= below[i], and Q(first + i) <= above[i] e^(-h (first + i)).

    Attributes:
        first: the lowest score kept.
        below, above: weights under P, and under Q but for the factor; relative to exact ones, rounded outwards.
        lost: an upper bound on the sum of weights like ``above`` at scores that are not kept.
    """

    first: int
    below: Array
    above: Array
    lost: float


def power(base: T, exponent: int, times: Callable[[T, T], T]) -> T:
    """Return the product of so many bases, at least one, by repeated squaring."""
    product = None
    while True:
        if exponent % 2:
            product = base if product is None else times(product, base)
        exponent //= 2
        if not exponent:
            assert product is not None
            return product
        base = times(base, base)


@functools.lru_cache(maxsize=16)
def total_scores(bins: int, spread: float, high: float, low: float, epochs: int) -> tuple[Scores, float]:
    """Return the law of the total score of some epochs, and the step h.

    Args:
        bins: t, 1 to 1e15.
        spread: `NARROWEST` to `WIDEST`.
        high, low: high > low >= 0, at most 2.
        epochs: 1 to `MOST_EPOCHS`, such that sqrt(epochs) (high - low)/spread <= `MOST_APART`.
    """
    single, step = _single(bins, spread, high, low, epochs)
    return power(single, epochs, _add), step


def log_delta_down(scores: Scores, step: float, epsilon: float) -> float:
    """Return ln of a lower bound on delta, -inf where none above 1e-250 is found.

    Args:
        scores, step: as `total_scores` returns them.
        epsilon: >= 0, finite.
    """
    excess = epsilon - step * (scores.first + np.arange(len(scores.below)))
    kept = excess < 40.0  # events with lower scores are worse ones
    if not kept.any():
        return -math.inf
    factor = np.exp(excess[kept] + 64.0 * UNIT * (1.0 + epsilon))[::-1]
    rounding = 2.0 * UNIT * (len(factor) + 8.0)
    p = np.cumsum(scores.below[kept][::-1]) * (1.0 - rounding)
    gain = float((p - np.cumsum(factor * scores.above[kept][::-1]) * (1.0 + rounding) - factor * scores.lost).max())
    return math.log(gain) - 1e-12 if gain > 1e-250 else -math.inf


def _single(bins: int, spread: float, high: float, low: float, epochs: int) -> tuple[Scores, float]:
    """Return the law of the score of one epoch, and the step h that suits so many."""
    edges = np.linspace(-10.0 * spread, high + spread * (10.0 + math.sqrt(2.0 * math.log(bins))), _CELLS + 1)[1:-1]
    below, error = _masses(edges, bins, spread, high)
    below = np.maximum(0.0, below - error)
    above, error = _masses(edges, bins, spread, low)
    above = above + error + 1e-300
    positive = below > 0.0
    ratio = np.log(below[positive]) - np.log(above[positive])
    deviation = math.sqrt(float(below[positive] @ (ratio - float(below[positive] @ ratio)) ** 2))
    step = max(_REACH * math.sqrt(epochs) * deviation, 0.5 * float(ratio.max() - ratio.min())) / _POINTS
    score = np.full(len(positive), round(float(ratio.min()) / step))  # any score will do for what is not told
    score[positive] = np.rint(ratio / step)
    first = int(score.min())
    counted = (score - first).astype(np.int64)
    p, q = (np.bincount(counted, masses).astype(float) for masses in (below, above))
    weight: Array = q * np.exp(step * (first + np.arange(len(q))))
    rounding = 2.0 * UNIT * (_CELLS + 64.0 + 8.0 * float(np.abs(ratio).max()))
    return _trim(Scores(first, p * (1.0 - rounding), weight * (1.0 + rounding), 0.0)), step


def _masses(edges: Array, bins: int, spread: float, mean: float) -> tuple[Array, Array]:
    """Return the probabilities of the cells of the largest sum between edges, and bounds on their errors."""
    from dpcalc.numerics.normal_arrays import log_upper_tail

    log_f = (bins - 1.0) * log_upper_tail(-edges / spread) + log_upper_tail((mean - edges) / spread)
    log_f = np.concatenate([[-np.inf], log_f, [0.0]])
    f, g = np.exp(log_f), -np.expm1(log_f)
    with np.errstate(invalid="ignore"):
        error_f = np.where(f > 0.0, f * np.abs(log_f), 0.0) * _ERROR + 8.0 * UNIT * f
    error_g = g * (_ERROR + 8.0 * UNIT)
    lower = f[1:] <= 0.5
    masses = np.where(lower, f[1:] - f[:-1], g[:-1] - g[1:])
    return np.maximum(0.0, masses), np.where(lower, error_f[1:] + error_f[:-1], error_g[:-1] + error_g[1:])


def _add(a: Scores, b: Scores) -> Scores:
    """Return the law of the sum of two scores."""
    rounding = 4.0 * UNIT * (min(len(a.below), len(b.below)) + 8.0)
    most = [float(x.above.sum()) * (1.0 + 1e-10) + x.lost for x in (a, b)]
    lost = (a.lost * most[1] + b.lost * most[0]) * (1.0 + 1e-10) + 1e-280
    below = np.convolve(a.below, b.below) * (1.0 - rounding)
    return _trim(Scores(a.first + b.first, below, np.convolve(a.above, b.above) * (1.0 + rounding), lost))


def _trim(law: Scores) -> Scores:
    """Return a law without scores at either end that have next to no weight."""
    weight = np.cumsum(law.below + law.above)
    start = int(np.searchsorted(weight, _TRIMMED))
    weight = np.cumsum((law.below + law.above)[::-1])
    stop = len(weight) - int(np.searchsorted(weight, _TRIMMED))
    if start >= stop:
        return law
    cut = float(law.above[:start].sum() + law.above[stop:].sum()) * (1.0 + 1e-10)
    return Scores(law.first + start, law.below[start:stop], law.above[start:stop], law.lost + cut)
