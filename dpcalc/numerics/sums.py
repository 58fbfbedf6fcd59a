"""Sums over up to 1e15 terms, rounded up: harmonic numbers, exponentials, Gaussian hockey sticks, decreasing terms.

Terms are added directly up to a cut; Euler-Maclaurin at the midpoints gives the rest. For a smooth f and integers
cut < terms, with a = cut + 1/2 and b = terms + 1/2,

    sum_{k=cut+1}^{terms} f(k) = int_a^b f - [f']/24 + 7 [f''']/5760 - 31 [f^(5)]/967680 + R,   [g] = g(b) - g(a).

Every result is the value plus a stated slack that covers R and rounding. `log_sum_decreasing_up` uses only bounds on
the terms at a few integers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

from dpcalc.numerics.floats import UNIT, Array, Booleans, distinct, log_expm1, np, up
from dpcalc.numerics.normal import log_hockey_stick, log_hockey_stick_error
from dpcalc.numerics.roots import integrate

_EULER_GAMMA = 0.5772156649015329
_CUT = 64  # terms added one by one before an integral takes over
_NEGLIGIBLE = 1e-17  # of a sum: below a unit of roundoff
_SUM_SLACK = 1e-14  # relative, of sums of up to some hundred positive terms


def harmonic_up(n: int) -> float:
    """Return H_n = 1 + 1/2 + ... + 1/n, rounded up; n >= 1."""
    if n <= 100:
        return up(math.fsum(1.0 / k for k in range(1, n + 1)), 2.0)
    # The asymptotic series is alternating and enveloping: the remainder is below 1/(252 n^6) < 4e-15.
    return up(math.log(n) + _EULER_GAMMA + (1.0 / (2.0 * n) - 1.0 / (12.0 * n * n) + 1.0 / (120.0 * n**4)), 16.0)


def log_sum_expm1_reciprocals_up(x: float, terms: int) -> float:
    """Return an upper bound on ln sum_{k=1}^{terms} (exp(x/k) - 1), x > 0.

    k -> exp(x/k) - 1 is completely monotone, so R is below the first omitted term of the series: less than 1e-16 of the
    sum for cut >= max(64, 2 x).
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

    analytic for Re k > 0. For large e it falls from 1 to 0 near the bend k* = r^2/(2e), within about w = k* sqrt(2/e).
    Euler-Maclaurin starts at a cut below which f' is negligible, or past the bend, or where f' changes on a scale of at
    least 64 terms; Cauchy's estimate then puts R below 1e-15 of the sum. Terms far before the bend are bounded by 1.
    The integral, in ln k, uses panels of ratio 4, and of 3 w/k* near the bend.
    """
    peak = log_hockey_stick(e, r / math.sqrt(start))
    first, cut = _direct_range(e, r, terms)
    if start > 2:  # the same number of terms is added one by one from there on
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
    """Return (first, cut): terms before first count as 1; those up to cut, at most about 8000, are added one by one."""
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
        # f decreases, and so does k f(k) past the bend; the rest is then below its value here times the range of ln k.
        past_bend = e * e * math.exp(right) > 16.0 * r * r
        if past_bend and part <= _NEGLIGIBLE * total and in_log(right) * (edges[-1] - right) <= _NEGLIGIBLE * total:
            break
    return total + _hockey_stick_ends(e, r, cut + 0.5, peak) - _hockey_stick_ends(e, r, terms + 0.5, peak)


def _panel_edges(e: float, r: float, a: float, b: float) -> list[float]:
    """Return the panel ends over [a, b] in ln k. Panels are at most ln 4 wide, and 3 sqrt(2/e) near the bend.

    If f falls fast from a on, it falls by a factor of e^-8 in each panel.
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
_MOST_NODES = 6000  # bounds the time if terms jump
_MOST_ROUNDS = 14  # each divides the gaps that add the most
_SINGLE = 24  # this many first integers are all nodes


class TermBounds(NamedTuple):
    """Upper bounds on the terms of several sums at some integers: logarithms, shape (sums, integers).

    ``at_and_after`` bounds the terms at the integer and at all later ones. So does ``convex_form``; where ``convex`` is
    true it is convex in the integer from there on, so chords bound it.
    """

    at_and_after: Array
    convex_form: Array
    convex: Booleans


def log_sum_decreasing_up(
    terms: Callable[[Array], TermBounds], first: int, last: int, tolerance: float = _TOLERANCE
) -> float:
    """Return an upper bound on ln of the sum of all terms at all integers first <= k <= last.

    Between two nodes a < a' a term is bounded by its value at a, or by the chord from a to a' where it is convex. Nodes
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
    # An estimate of the sum itself, as if values decreased exponentially between nodes, with the curvature of a power.
    logs = bounds.at_and_after
    gap = np.maximum(np.concatenate((logs[:, :-1] - logs[:, 1:], logs[:, -1:] * 0.0), axis=1), 1e-9)
    gap_convex = np.maximum(np.log(np.maximum(convex, 1e-300)) - np.log(np.maximum(after, 1e-300)), 1e-9)
    inner = count - 1.0
    rough = flat * inner * (1.0 + np.expm1(-gap) / gap)
    fine = (convex + after) * inner / 2.0 - convex * inner * -np.expm1(-gap_convex) / gap_convex
    fine *= 1.0 + np.minimum(np.append(np.log(nodes[1:] / nodes[:-1]), 0.0) / gap_convex, 9.0)
    return np.stack((added.sum(axis=0), np.maximum(np.where(bounds.convex, fine, rough), 0.0).sum(axis=0))), peak


def _between(nodes: Array, loss: Array, tolerance: float) -> Array:
    """Return new nodes inside the blocks with the largest losses, more nodes for larger losses."""
    share = tolerance / max(64, len(nodes))
    chosen = np.flatnonzero((loss[:-1] > share) & (np.diff(nodes) > 1.0))
    chosen = chosen[np.argsort(-loss[chosen])][:1500]
    parts = np.clip(np.ceil(np.sqrt(loss[chosen] / share)), 2, 24).astype(int)
    made = [np.rint(np.geomspace(nodes[i], nodes[i + 1], p + 1)[1:-1]) for i, p in zip(chosen, parts, strict=True)]
    if not made:
        return np.empty(0)
    points = distinct(*made)
    return points[nodes[np.minimum(np.searchsorted(nodes, points), len(nodes) - 1)] != points]
