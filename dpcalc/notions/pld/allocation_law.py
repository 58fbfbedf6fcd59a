"""One use of a record in a step chosen uniformly among t: the law of the likelihood ratio, and its dominating pair.

With L_1, ..., L_t independent copies of L = exp(mu y - mu^2/2), y standard normal under Q, the pair

    P = (1/t) sum_j N(mu e_j, I_t),   Q = N(0, I_t)

has the likelihood ratio S = (L_1 + ... + L_t)/t, E_Q S = 1, and both its profiles are E_Q of convex functions of S:
E (S - g)_+ for (P, Q), E (1 - g S)_+ for (Q, P). So a law that is larger than that of S in convex order dominates in
both directions. The sum is built by doubling. After each addition the mass between two nodes of a grid is split between
them with the same mean, which is larger in convex order. Mass beyond the last node moves to that node, and its mean
above the node counts as P(dQ = 0). All terms are positive, so small values of delta keep their relative precision.

A record that is replaced by another has the pair (P, R), where R = (1/t) sum_j N(-mu e_j, I_t) mirrors P. Q lies
between them: for every a > 0

    E_g(P, R) <= E_a(P, Q) + a E_{g/a}(Q, R),

and (Q, R) has the profile of (Q, P). The minimum over some a is tight if likelihood ratios are near 1: then both terms
are as for normal laws, which lie on a line.

Rounding. Let f >= 0 be convex, and let a cell hold mass m with mean v. In doubles the share of the upper node is
(v - a)/(b - a) with an error of some roundoff times b/(b - a), and a value within roundoff of a cell may be counted in
the neighbouring cell. The nodes of a cell and of its two neighbours get ``padding`` times its mass in addition. As f is
at most its chord over the wider cell, this covers both errors in either direction. All sums of m and of m v have
positive terms, at most ``terms`` in a cell, and err by at most that many units of roundoff.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.notions import profiles
from dpcalc.notions.pld.discretisation import Pair, from_curve, gaussian
from dpcalc.numerics.floats import UNIT, Array, Integers, distinct, np
from dpcalc.numerics.normal_arrays import log_hockey_stick_up, mills

if TYPE_CHECKING:
    from dpcalc.notions.pld.discretisation import LogProfile


_NODES, _MORE_NODES = 1000, 1700  # the latter if likelihood ratios span many powers of ten
_WIDE = 2.0  # they do from this mu on
_FINE = 1 << 15  # bins of a fine grid, some of whose points become nodes
_POWER, _EVEN = 0.15, 0.3  # the density of nodes is this power of the mass, plus an evenly spread share
_SMOOTH = 64  # bins
_FARTHEST = 36.5  # standard deviations: the density there is 1e-289
_LARGEST_LOG = 600.0  # of a likelihood ratio
_LIGHT = 1e-290  # a product of masses above it is a normal number
_UNDERFLOW = 5e-324  # a product that is too small for a double is below this
_SPARE = 0.1  # mass that rounding may add
_MOST_BINS = 10**15  # exact as a double
_ROWS = 128  # rows of pairs of nodes added at once


class Law(NamedTuple):
    """A law of a sum of likelihood ratios under Q: ``masses`` on ``nodes``, the first of which is 0.

    ``beyond`` is the mean above the last node, not included in the masses. Together they are larger in convex order
    (see the module's docstring). Sums of this law have ``size`` nodes, which cover all but e^``log_tail`` of the mass.
    """

    nodes: Array
    masses: Array
    beyond: float
    log_tail: float = -math.inf
    size: int = 0


@functools.lru_cache(maxsize=16)
def random_place(
    *, mu: float, bins: int, log_tail: float = -60.0, coarser: int = 1, heavier: tuple[int, float] = (0, 0.0)
) -> Pair:
    """Return the pair of one use in a uniformly random step of ``bins``; exchange it for the other direction.

    Args:
        mu: distance over standard deviation of a use, from 1e-30 to 1e8.
        bins: t, a whole number from 1 to 1e15.
        log_tail: ln of the probability under P that may count as an infinite loss, -690 to -20.
        coarser: divides the number of nodes; the relative error of delta, some 1e-3, grows with its square.
        heavier: (number of steps with another distance, that distance), which is at least mu.

    Raises:
        SpecError: mu or bins out of range.

    >>> import math, numpy
    >>> pair = random_place(mu=1.0, bins=2)
    >>> [round(float(math.exp(log_delta)), 3) for log_delta in pair.forward(numpy.array([0.0, 1.0]))]
    [0.298, 0.059]
    """
    if bins != int(bins) or not 1 <= bins <= _MOST_BINS:
        raise SpecError(f"a record needs a whole number of steps from 1 to 1e15 to choose from, got {bins!r}")
    curves = _hidden_curves(mu, bins, log_tail, coarser, heavier)
    mu = max(mu, heavier[1])
    if curves is None:
        return gaussian(mu=mu)
    chords = _under_normal(mu)

    def least(law: LogProfile) -> LogProfile:
        def curve(e: Array) -> Array:
            values = law(e)
            near = chords(e) < values
            values[near] = np.minimum(values[near], log_hockey_stick_up(e[near], mu))
            return values

        return curve

    forward, backward = map(least, curves)
    return Pair(forward, backward, whole_mu=mu)


def _under_normal(mu: float) -> LogProfile:
    """Return a cheap lower estimate of ln delta of a Gaussian mechanism: it is concave, so its chords are below it.

    It shows without a costly evaluation where ln delta exceeds another value.
    """
    places = np.linspace(0.0, 80.0 * mu + 2.0 * mu * mu, _CHORDS)
    values = log_hockey_stick_up(places, mu)
    return lambda e: np.interp(e, places, values, right=-math.inf)


@functools.lru_cache(maxsize=16)
def _hidden_curves(
    mu: float, bins: int, log_tail: float, coarser: int, heavier: tuple[int, float]
) -> tuple[LogProfile, LogProfile] | None:
    """Return both profiles of the law of the likelihood ratio; None if nothing is hidden."""
    some, other = heavier
    if some:
        of_both = _two_kinds(mu, bins, log_tail, coarser, heavier) if some < bins else None
        return of_both or _hidden_curves(other, bins, log_tail, coarser, (0, 0.0))
    if bins == 1 or not 1e-4 <= mu <= 30.0:
        return None
    count = (_NODES if mu <= _WIDE else _MORE_NODES) // coarser
    single = _single(mu, log_tail, count)
    # A mean of more copies is smaller in convex order. So if the grid is too coarse for all, fewer give a bound.
    while (law := _sum(single, bins)) is None:
        bins //= 10
        if bins < 2:
            return None
    return _curves(law._replace(nodes=law.nodes / bins), law.beyond / bins)


def _two_kinds(
    mu: float, bins: int, log_tail: float, coarser: int, heavier: tuple[int, float]
) -> tuple[LogProfile, LogProfile] | None:
    """Return both profiles if some of the steps have another distance; None if a grid is too coarse for them."""
    some, other = heavier
    if not 1e-4 <= mu <= other <= 30.0:
        return None
    count = (_NODES if other <= _WIDE else _MORE_NODES) // coarser
    first, second = _sum(_single(mu, log_tail, count), bins - some), _sum(_single(other, log_tail, count), some)
    if first is None or second is None:
        return None
    law = _add(first, second)
    if not (math.isfinite(law.beyond) and float(law.masses.sum()) < 1.0 + _SPARE):
        return None
    return _curves(law._replace(nodes=law.nodes / bins), law.beyond / bins)


_SHARES = tuple(i / 32 for i in range(4, 32))  # shares of epsilon that go to the step from P to Q
_CHORDS = 1000  # points of the table of a Gaussian profile


@functools.lru_cache(maxsize=16)
def replaced_place(
    *, mu: float, bins: int, log_tail: float = -60.0, coarser: int = 1, heavier: tuple[int, float] = (0, 0.0)
) -> Pair:
    """Return a pair that dominates a record replaced by another, both in the same uniformly random step of ``bins``.

    It is its own mirror image. Its profile is at most that of a known step.

    Args:
        mu: distance over standard deviation of a use, from 1e-30 to 5e7; the two uses are twice as far apart.
        bins: t, a whole number from 1 to 1e15.
        log_tail, coarser, heavier: as in `random_place`.

    Raises:
        SpecError: mu or bins out of range.
    """
    one = random_place(mu=mu, bins=bins, log_tail=log_tail, coarser=coarser, heavier=heavier)
    curves = _hidden_curves(mu, bins, log_tail, coarser, heavier)
    mu = max(mu, heavier[1])
    known = gaussian(mu=2.0 * mu)
    if curves is None:
        return known
    forward, backward = curves
    top = 80.0 * mu + 2.0 * mu * mu
    alone = _under_normal(mu)  # selects the shares that may be best

    def split(e: Array, share: Array) -> tuple[Array, Array]:
        near = share * e
        return near, np.maximum((e - near) * (1.0 - 4.0 * UNIT), 0.0)

    def through(near: Array, far: Array) -> Array:
        value = np.logaddexp(one.forward(near), near + one.backward(far))
        size = np.where(np.isfinite(value), np.abs(value), 0.0) + near
        return np.asarray(value + UNIT * (16.0 + 8.0 * size))

    def chained(e: Array) -> Array:
        e = np.ravel(e)
        near, far = split(e, np.array(_SHARES)[:, None])
        first = np.minimum(forward(near), alone(near))
        hopes = np.logaddexp(first, near + np.minimum(backward(far), alone(far)))
        likeliest = np.argmin(hopes, axis=0), np.arange(len(e))
        best = np.minimum(known.forward(e), through(near[likeliest], far[likeliest]))
        hopeful = hopes < best
        values = np.full(hopes.shape, np.inf)
        values[hopeful] = through(near[hopeful], far[hopeful])
        return np.asarray(np.minimum(best, values.min(axis=0)))

    def convex_at_zero(e: Array) -> Array:
        return np.where(e == 0.0, min(float(chained(np.zeros(1))[0]), log_start), chained(e))

    log_start = _log_start(chained, top * np.exp(np.linspace(-16.0, 0.0, 400)))
    table = profiles.tabulate(convex_at_zero, top)
    return from_curve(lambda e: np.minimum(table(e), known.forward(e)))._replace(whole_mu=2.0 * mu)


def _log_start(curve: LogProfile, e: Array) -> float:
    """Return a bound on ln delta(0), for a profile that holds in both orders: the best that the epsilons > 0 give.

    The exact E_g is convex in g. Its chord from 1/g to g = e^epsilon has the value (2 delta + g - 1)/(g + 1) at 1.
    """
    with np.errstate(over="ignore"):
        value = (2.0 * np.exp(curve(e)) * np.exp(-e) - np.expm1(-e)) / (1.0 + np.exp(-e))
    return math.log(float(value.min()) * (1.0 + 32.0 * UNIT))


# --- laws -------------------------------------------------------------------------------------------------------------


def _single(mu: float, log_tail: float, count: int) -> Law:
    """Return a law above that of L, which is lognormal."""
    reach = math.sqrt(-2.0 * log_tail)
    # Farther out, probabilities under Q underflow and sums of likelihood ratios overflow.
    low = max(-min(reach + 1.0, _FARTHEST), (0.5 * mu * mu - _LARGEST_LOG) / mu)
    high = min(reach + mu + 1.0, _FARTHEST, (_LARGEST_LOG + 0.5 * mu * mu) / mu)
    y = np.linspace(low, high, count)
    nodes = np.exp(mu * y - 0.5 * mu * mu)
    under_q, under_p = _cells(y), _cells(y - mu)
    # Below the lowest node the mass goes to 0 and that node; above the highest it stays there.
    masses = np.concatenate(([_upper_tail(-low)], under_q, [0.0]))
    means = np.concatenate(([_upper_tail(mu - low)], under_p, [0.0]))
    error = UNIT * (64.0 + 8.0 * max(abs(low), high) ** 2) / ((y[1] - y[0]) ** 2 * min(mu, 1.0))
    law = _split(np.concatenate(([0.0], nodes)), masses[:-1], means[:-1], error)
    last = _upper_tail(high) * 1.001
    law.masses[-1] += last
    beyond = law.beyond + _upper_tail(high - mu) * 1.001 + 1e-300
    return law._replace(beyond=beyond, log_tail=log_tail, size=count)


def _cells(y: Array) -> Array:
    """Return the probabilities of a normal variable between neighbouring points."""
    a, b = y[:-1], y[1:]
    mirrored = b <= 0.0
    a, b = np.where(mirrored, -b, a), np.where(mirrored, -a, b)
    near = np.maximum(a, 0.0)
    ratio = np.exp(0.5 * (near - b) * (near + b))
    tail = np.exp(-0.5 * near * near) * (mills(near) - ratio * mills(b)) / math.sqrt(2.0 * math.pi)
    left = np.minimum(a, 0.0)
    middle = np.where(a < 0.0, 0.5 - np.exp(-0.5 * left * left) * mills(-left) / math.sqrt(2.0 * math.pi), 0.0)
    return tail + middle


def _upper_tail(x: float) -> float:
    """Return P(y > x) of a normal variable, not rounded to a side."""
    return 0.5 * math.erfc(x * math.sqrt(0.5))


def _sum(law: Law, times: int) -> Law | None:
    """Return a law above that of the sum of ``times`` independent copies; None if its numbers are out of range."""
    result = law
    for bit in map(int, bin(times)[3:]):
        result = _add(result, result)
        if bit and float(result.masses.sum()) < 1.0 + _SPARE:
            result = _add(result, law)
        # On a grid that is too fine for doubles, padding would add so much mass that the bound is useless.
        if not (math.isfinite(result.beyond) and float(result.masses.sum()) < 1.0 + _SPARE):
            return None
    return result


def _add(a: Law, b: Law) -> Law:
    """Return a law above that of the sum of two independent variables, on its own grid."""
    # If the total masses are slightly above 1, the sum has slightly more beyond the last node.
    beyond = (a.beyond * float(b.masses.sum()) + b.beyond * float(a.masses.sum())) * (1.0 + 1e-12)
    if float(a.masses.min()) * float(b.masses.min()) > _LIGHT:
        return _on_nodes(_binned(a, b), float(a.masses[0] * b.masses[0]), beyond, a)
    if a is b:
        values, weights = _doubled(a)
    else:
        weights = np.multiply.outer(a.masses, b.masses).ravel()
        values = np.add.outer(a.nodes, b.nodes).ravel()
    # Masses near underflow move to 0, and their means beyond all nodes, which is larger in convex order.
    heavy = weights > _LIGHT
    at_zero, above = 0.0, 0.0
    if not heavy.all():
        light = weights[~heavy] + 2.0 * _UNDERFLOW
        at_zero, above = float(light.sum()), float((light * values[~heavy]).sum()) * (1.0 + 1e-9)
        values, weights = values[heavy], weights[heavy]
    positive = values > 0.0
    at_zero += float(weights[~positive].sum())
    values, weights = values[positive], weights[positive]
    bins = _empty_bins(float(values.min()), float(values.max()))
    bins.fill(values, weights)
    return _on_nodes(bins, at_zero, beyond + above, a)


class _Bins(NamedTuple):
    """Masses, means and their numbers of terms, in even bins of the logarithm."""

    low: float
    step: float
    masses: Array
    means: Array
    terms: Integers

    def fill(self, values: Array, weights: Array) -> None:
        """Add weights at values to the bins."""
        logs = np.log(values)
        logs -= self.low
        logs *= 1.0 / self.step
        index = logs.astype(np.int64)
        np.minimum(index, _FINE - 1, out=index)
        self.masses[:] += np.bincount(index, weights, _FINE)
        self.means[:] += np.bincount(index, weights * values, _FINE)
        self.terms[:] += np.bincount(index, minlength=_FINE)


def _empty_bins(least: float, largest: float) -> _Bins:
    """Return bins for values from ``least`` > 0 to ``largest``."""
    low, high = float(np.log(least)), float(np.log(largest)) + 1e-9
    return _Bins(low, (high - low) / _FINE, np.zeros(_FINE), np.zeros(_FINE), np.zeros(_FINE, dtype=np.int64))


def _binned(a: Law, b: Law) -> _Bins:
    """Return the bins of all sums of two nodes, except both at 0; a few rows at a time, to stay in the cache."""
    bins = _empty_bins(float(min(a.nodes[1], b.nodes[1])), float(a.nodes[-1] + b.nodes[-1]))
    for start in range(0, len(a.nodes), _ROWS):
        rows, skipped = slice(start, start + _ROWS), int(start == 0)
        if a is not b:
            values = np.add.outer(a.nodes[rows], b.nodes).ravel()
            bins.fill(values[skipped:], np.multiply.outer(a.masses[rows], b.masses).ravel()[skipped:])
            continue
        # Each pair once: within the rows, half of a square.
        nodes, masses, later = a.nodes[rows], a.masses[rows], slice(start + _ROWS, None)
        half, twice = np.tri(len(nodes), dtype=bool), 2.0 - np.eye(len(nodes))
        values, weights = np.add.outer(nodes, nodes)[half], (np.multiply.outer(masses, masses) * twice)[half]
        bins.fill(values[skipped:], weights[skipped:])
        if len(a.nodes) > start + _ROWS:
            weights = np.multiply.outer(masses, 2.0 * a.masses[later])
            bins.fill(np.add.outer(nodes, a.nodes[later]).ravel(), weights.ravel())
    return bins


def _doubled(law: Law) -> tuple[Array, Array]:
    """Return all sums of two nodes, each pair once, and their masses; row by row is fastest."""
    count, twice = len(law.nodes), 2.0 * law.masses
    values, weights = np.empty(count * (count + 1) // 2), np.empty(count * (count + 1) // 2)
    start = 0
    for row in range(count):
        end = start + count - row
        np.add(law.nodes[row:], law.nodes[row], out=values[start:end])
        np.multiply(law.masses[row:], twice[row], out=weights[start:end])
        weights[start] *= 0.5  # a node with itself counts once
        start = end
    return values, weights


def _on_nodes(bins: _Bins, at_zero: float, beyond: float, like: Law) -> Law:
    """Return a law above that of the bins and a weight at 0, as fine as the law ``like``."""
    low, step, masses, means, number = bins
    terms = float(number.max())
    chosen = _choose(masses, means, math.exp(like.log_tail), like.size)
    edges = np.exp(low + step * chosen)
    starts = np.concatenate(([0], chosen[:-1]))
    inside = slice(0, int(chosen[-1]))
    cell_masses, cell_means = np.add.reduceat(masses[inside], starts), np.add.reduceat(means[inside], starts)
    if chosen[0] == 0:
        cell_masses[0] = cell_means[0] = 0.0
    above_mass, above_mean = float(masses[chosen[-1] :].sum()), float(means[chosen[-1] :].sum())
    cell_masses[0] += at_zero
    gap = float(np.min(np.diff(np.log(edges))))
    law = _split(np.concatenate(([0.0], edges)), cell_masses, cell_means, UNIT * (terms + _FINE + 64.0) / gap)
    law.masses[-1] += above_mass * (1.0 + 1e-11)
    excess = max(0.0, above_mean * (1.0 + 1e-11) - above_mass * (1.0 - 1e-11) * float(edges[-1]))
    return law._replace(beyond=law.beyond + beyond + excess, log_tail=like.log_tail, size=like.size)


def _choose(masses: Array, means: Array, tail: float, count: int) -> Integers:
    """Return the indices of the points that become nodes: most where the mass is, but some everywhere.

    The excess grows as the mass of a cell times its squared width; small probabilities matter for small deltas.
    """
    total, mean = float(masses.sum()), float(means.sum())
    first = int(np.searchsorted(np.cumsum(masses), total * tail))
    last = int(np.searchsorted(-np.cumsum(means[::-1])[::-1], -mean * tail)) + 1
    last = min(max(last, first + 8), _FINE)
    density = (masses / total + means / mean)[first:last]
    density = np.convolve(density, np.ones(_SMOOTH), "same")[: last - first] ** _POWER
    density = (1.0 - _EVEN) * density / density.sum() + _EVEN / (last - first)
    quantile = np.cumsum(density)
    chosen = first + np.searchsorted(quantile, np.linspace(quantile[0], quantile[-1], count))
    return distinct(np.minimum(chosen, last), np.array([last]))


def _split(nodes: Array, masses: Array, means: Array, padding: float) -> Law:
    """Return the law with the mass of every cell moved to its ends, with the same mean, and ``padding`` added."""
    a, b = nodes[:-1], nodes[1:]
    upper = np.clip((means - a * masses) / (b - a), 0.0, masses)
    # If a mass has nearly underflown, its mean may exceed the cell by more than roundoff: the excess goes to beyond.
    over = means - b * masses
    beyond = float(over[over > padding * b * masses].sum())
    result = np.append(masses - upper, 0.0)
    result[1:] += upper
    extra = padding * masses
    result[:-1] += extra
    result[1:] += extra
    result[:-2] += extra[1:]
    result[2:] += extra[:-1]
    return Law(nodes, result, beyond)


# --- profiles ---------------------------------------------------------------------------------------------------------


def _curves(law: Law, beyond: float) -> tuple[LogProfile, LogProfile]:
    """Return ln of E (S - g)_+ + beyond and of E (1 - g S)_+ at arrays of epsilon, rounded up."""
    x, q = law.nodes, law.masses
    rounding = math.log1p(8.0 * UNIT * len(x) + 1e-13)
    tails = np.cumsum(q[::-1])[::-1]  # mass at and above a node
    above = np.append(np.cumsum((np.diff(x) * tails[1:])[::-1])[::-1], 0.0)  # E (S - x_k)_+
    heads = np.cumsum(q)
    below = np.append(0.0, np.cumsum(np.diff(x) * heads[:-1]))  # E (x_k - S)_+

    def forward(e: Array) -> Array:
        g = np.exp(np.minimum(e, 700.0))
        k = np.searchsorted(x, g)
        inside = np.minimum(k, len(x) - 1)
        value = np.where(k < len(x), above[inside] + np.maximum(x[inside] - g, 0.0) * tails[inside], 0.0) + beyond
        return _log_up(value, rounding)

    def backward(e: Array) -> Array:
        h = np.exp(-np.minimum(e, 700.0))
        k = np.searchsorted(x, h, side="right") - 1
        value = (below[k] + np.maximum(h - x[k], 0.0) * heads[k]) / h
        return _log_up(value, rounding)

    return forward, backward


def _log_up(value: Array, rounding: float) -> Array:
    with np.errstate(divide="ignore"):
        return np.minimum(np.log(value) + rounding, 0.0)
