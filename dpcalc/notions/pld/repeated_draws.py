"""One step of DP-SGD on b of n records, k of which differ: the pairs that dominate it.

w_j is the probability that j of the batch are among the k: that of Bin(b, k/n) for records drawn one by one with
replacement, and C(k, j) C(n-k, b-j)/C(n, b) for a batch of fixed size, if n - k >= b. Let the others be drawn first, as
if there were no group; then j of the group replace j of them. This moves the sum by at most 2j from the sum without the
group, and by at most 2j (replaced) or j (a null record) from the sum with the other data set. In units of the noise,
mu = 1/z, for g = e^epsilon:

* removed: the pair (sum_j w_j N(2j mu), N(0)); added the two exchanged;
* replaced, in either order, for t_j >= 0 with sum_j w_j t_j <= (g - 1) w_0:
  E_g <= sum_(j>0) w_j delta_G(ln(g + t_j); 2j mu);
* a null record put in their place: forward, for weights x_j + y_j >= 1 and sum_j w_j y_j t_j <= (g - 1) w_0,
  E_g <= sum_(j>0) w_j (x_j delta_G(ln(g/x_j); j mu) + y_j delta_G(ln t_j; 2j mu)); backward as replaced, with j mu.

The proofs are in docs/method.md, "Sampled steps". The best t_j are those of one half-line for all j, where they are not
negative. The bound holds for the rounded t_j too, as they are scaled to meet the sum. All bounds grow with j, so the
remaining weight beyond some j counts as that of j = b.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.notions.pld.discretisation import Pair, gaussian
from dpcalc.notions.pld.grouped_gaussian import (
    Mixture,
    in_blocks,
    log_delta,
    log_expm1,
    log_left_at_zero,
    log_sum,
    rounded_down,
)
from dpcalc.numerics.floats import UNIT, Array, np, up
from dpcalc.numerics.normal_arrays import log_hockey_stick_up

if TYPE_CHECKING:
    from dpcalc.notions.pld.discretisation import LogProfile

_AT_ONCE = 16384  # terms
_STEPS = 12  # of a search for a half-line: any point is valid
_EQUAL = 1e-5  # error of ln of the sum of w_j t_j; the bound is second order in it


class Draws(NamedTuple):
    """How often records of the group are among those of a batch.

    Attributes:
        draws: b, 1 to 1e15.
        differ: k, 1 to 32, with replacement; else up to 1000.
        records: n > k; without replacement n >= b + k.
        log_rest: ln of the remaining weight of large j that is merged; larger is faster.
        replacement: whether a record may be drawn again.
    """

    draws: int
    differ: int
    records: int
    log_rest: float = -300.0
    replacement: bool = True

    @property
    def most(self) -> int:
        """The largest number of draws that may be of the group."""
        return self.draws if self.replacement else min(self.draws, self.differ)

    @property
    def log_none(self) -> float:
        """ln w_0, accurate to 8 units of relative roundoff."""
        return self.log_others(0)

    def log_others(self, j: int) -> float:
        """Return ln of the chance that the other b - j draws miss the group; without replacement ln w_0."""
        if self.replacement:
            return (self.draws - j) * _log_other(self.differ, self.records)
        return math.fsum(_log_other(self.draws, self.records - i) for i in range(self.differ))

    def logs(self) -> Iterator[tuple[float, float]]:
        """Yield ln w_1, ln w_2, ..., and a bound on the error of each.

        Without replacement w_j is C(k, j) (b)_j (n-b)_(k-j)/(n)_k, a quotient of integers: the share of orders of the
        group with j of them in the batch.
        """
        b, k, n = self.draws, self.differ, self.records
        if self.replacement:
            log_ways, size = 0.0, 0.0
            for j in range(1, b + 1):
                term, log_others = math.log((b - j + 1) * k / n / j), self.log_others(j)
                log_ways += term
                size += 4.0 + abs(term) + abs(log_ways)
                log = log_ways + log_others
                yield log, UNIT * (2.0 * size + 16.0 * abs(log_others) + 4.0 * abs(log))
            return
        ways, every = math.perm(n - b, k), math.perm(n, k)
        for j in range(self.most):
            ways = ways * (k - j) * (b - j) // ((j + 1) * (n - b - k + j + 1))
            if (weight := ways / every) > 1e-290:
                yield math.log(weight), UNIT * (2.0 + 2.0 * abs(math.log(weight)))
            else:
                yield math.log(ways) - math.log(every), UNIT * 8.0 * math.log(every)


def _log_other(some: int, records: int) -> float:
    """Return ln(1 - some/records)."""
    share = some / records
    return math.log1p(-share) if share < 0.5 else math.log((records - some) / records)


class Weights(NamedTuple):
    """j >= 1, and ln w_j rounded up and rounded down.

    The last j may be the largest one, with the weight of all j that are not listed (rounded down: -inf).
    """

    draws: Array
    high: Array
    low: Array


@functools.lru_cache(maxsize=64)
def weights_of(draws: Draws) -> Weights:
    """Return the weights of the numbers of draws of the group, until the remaining weight is negligible."""
    mean = draws.draws * draws.differ / draws.records
    count: list[float] = []
    logs: list[float] = []
    errors: list[float] = []
    rest = False
    for j, (log, error) in enumerate(draws.logs(), 1):
        count, logs, errors = [*count, float(j)], [*logs, log], [*errors, error]
        # P(J >= i) <= (e mean/i)^i for i > mean, also without replacement (Hoeffding 1963).
        log_rest = (j + 1) * (1.0 + math.log(mean / (j + 1)))
        if j < draws.most and j + 1 > mean and log_rest < draws.log_rest:
            count, logs, errors = [*count, float(draws.most)], [*logs, log_rest], [*errors, -64.0 * UNIT * log_rest]
            rest = True
            break
    high, low = np.array(logs) + np.array(errors), np.array(logs) - np.array(errors)
    if rest:
        low[-1] = -np.inf
    return Weights(np.array(count), high, low)


def removed_draws(*, mu: float, draws: Draws) -> Pair:
    """Return the pair of k records removed.

    Args:
        mu: clipping norm over the standard deviation of the noise on the sum, from 1e-6 to 1e6.
        draws: how often the records are drawn.

    Raises:
        SpecError: one is out of range.
    """
    _check(mu, draws)
    forward = _curve(functools.partial(_removed, mu, draws), draws)
    backward = _curve(functools.partial(_added, mu, draws), draws)
    return _pair(forward, backward, 2.0 * mu, draws)


def replaced_draws(*, mu: float, draws: Draws) -> Pair:
    """Return a pair that dominates k records replaced by others, in either order. As `removed_draws`."""
    _check(mu, draws, least=0)
    if draws.differ == draws.records:
        return gaussian(mu=up(2.0 * draws.draws * mu))
    curve = _curve(functools.partial(_split, _Replaced(2.0 * mu, draws)), draws)
    return _pair(curve, curve, 2.0 * mu, draws)


def nulled_draws(*, mu: float, draws: Draws) -> Pair:
    """Return a pair that dominates k records with null records in their place. As `removed_draws`."""
    _check(mu, draws, least=0)
    if draws.differ == draws.records:
        return gaussian(mu=up(draws.draws * mu))
    forward = _curve(functools.partial(_split, _Nulled(mu, draws)), draws)
    backward = _curve(functools.partial(_split, _Replaced(mu, draws)), draws)
    return _pair(forward, backward, mu, draws)


def _pair(forward: LogProfile, backward: LogProfile, gap: float, draws: Draws) -> Pair:
    """Return the pair; its farthest laws are those of a step that draws only records of the group, each at this gap."""
    mu = up(draws.most * gap)
    return Pair(forward, backward, whole_mu=mu, largest_mu=mu)


def _curve(values: Callable[[Array], Array], draws: Draws) -> Callable[[Array], Array]:
    """Return a curve that is evaluated for a few thresholds at a time."""
    return functools.partial(in_blocks, values, block=max(64, _AT_ONCE // len(weights_of(draws).draws)))


def _check(mu: float, draws: Draws, least: int = 1) -> None:
    most = min(32, draws.records - least) if draws.replacement else min(1000, draws.records - draws.draws)
    fits = 1 <= draws.draws <= 10**15 and 1 <= draws.differ <= most
    if not (1e-6 <= mu <= 1e6 and fits):
        raise SpecError(f"mu {mu!r} or {draws!r} is out of range", "use other noise, or a smaller group")


# --- removed and added ------------------------------------------------------------------------------------------------


def _removed(mu: float, draws: Draws, e: Array) -> Array:
    """Return ln delta of (sum_j w_j N(2j), N(0)); w_0 is subtracted from both, g - w_0 = e^eps - 1 + (1 - w_0)."""
    count, high, _ = weights_of(draws)
    some = -math.expm1(draws.log_none)
    rest = np.logaddexp(log_expm1(e), math.log(some))[:, None]
    first = Mixture(np.broadcast_to(high, (len(e), len(high))), 2.0 * mu * count)
    return log_delta(first, Mixture(rounded_down(rest), np.zeros(1)))


def _added(mu: float, draws: Draws, e: Array) -> Array:
    """Return ln delta of (N(0), sum_j w_j N(-2j)); the remaining weight of large j may be dropped."""
    count, _, low = weights_of(draws)
    kept = np.isfinite(low)
    first = Mixture(log_left_at_zero(draws.log_none, e)[:, None], np.zeros(1))
    return log_delta(first, Mixture(rounded_down(low[kept] + e[:, None]), 2.0 * mu * count[kept]))


# --- replaced, by another record or by a null record ------------------------------------------------------------------


class _Replaced(NamedTuple):
    """The terms w_j delta_G(ln(g + t_j); j gap); t_j is the excess of one density over g times another."""

    gap: float
    draws: Draws

    def reach(self, count: Array, e: Array, log_share: Array) -> Array:
        """Return for each j the point c where t_j equals the share."""
        a = self.gap * count
        return (np.logaddexp(e[:, None], log_share) + 0.5 * a * a) / a

    def log_excess(self, count: Array, e: Array, c: Array) -> Array:
        """Return ln t_j for the half-line beyond c; -inf where t_j is 0."""
        a = self.gap * count
        above = c[:, None] * a - 0.5 * a * a - e[:, None]
        return np.where(above > 0.0, e[:, None] + log_expm1(np.maximum(above, 0.0)), -np.inf)

    def log_terms(self, count: Array, e: Array, c: Array, log_excess: Array) -> Array:
        """Return ln of the terms without their weights, rounded up."""
        threshold = np.logaddexp(e[:, None], log_excess)
        threshold -= 8.0 * UNIT * (1.0 + np.abs(threshold))
        return log_hockey_stick_up(np.maximum(threshold, 0.0), _far(self.gap * count)[None])


class _Nulled(NamedTuple):
    """The terms x_j delta_G(ln(g/x_j); j gap) + y_j delta_G(ln t_j; 2j gap), where log_excess is ln(y_j t_j)."""

    gap: float
    draws: Draws

    def reach(self, count: Array, e: Array, log_share: Array) -> Array:
        """Return for each j the point c where y_j t_j equals the share: A w^2 - B w = share for w = e^(c j gap)."""
        a = self.gap * count
        half_b = 0.5 * (e[:, None] - 0.5 * a * a)
        log_a = -2.0 * a * a
        root = 0.5 * np.logaddexp(4.0 * half_b, math.log(4.0) + log_a + log_share)
        return (np.logaddexp(2.0 * half_b, root) - math.log(2.0) - log_a) / a

    def log_excess(self, count: Array, e: Array, c: Array) -> Array:
        """Return ln(y_j t_j): y_j t_j is the excess of the density at 2j over g times that at j, over that at 0."""
        return self._log_y(count, e, c) + self._log_ratio(count, c)

    def _log_ratio(self, count: Array, c: Array) -> Array:
        a = self.gap * count
        return 2.0 * (c[:, None] * a - a * a)

    def _log_x(self, count: Array, e: Array, c: Array) -> Array:
        a = self.gap * count
        return np.minimum(e[:, None] + 1.5 * a * a - c[:, None] * a, 0.0)

    def _log_y(self, count: Array, e: Array, c: Array) -> Array:
        return np.log(-np.expm1(self._log_x(count, e, c)))

    def log_terms(self, count: Array, e: Array, c: Array, log_excess: Array) -> Array:
        """Return ln of the terms without their weights, rounded up."""
        log_x, log_y = self._log_x(count, e, c), self._log_y(count, e, c)
        log_y = np.minimum(log_y + 16.0 * UNIT * (1.0 + np.where(np.isfinite(log_y), np.abs(log_y), 0.0)), 0.0)
        none = np.isneginf(log_excess)
        log_y = np.where(none, -np.inf, log_y)
        log_x = np.where(none, 0.0, log_x)
        beside = e[:, None] - log_x
        beside = np.maximum(beside - 8.0 * UNIT * (1.0 + np.abs(beside)), 0.0)
        beyond = np.where(none, 0.0, log_excess - log_y)
        beyond -= 8.0 * UNIT * (1.0 + np.abs(beyond) + np.where(none, 0.0, np.abs(log_excess)))
        first = log_x + log_hockey_stick_up(np.clip(beside, 0.0, 1e300), _far(self.gap * count)[None])
        second = log_y + log_hockey_stick_up(np.clip(beyond, -1e300, 1e300), _far(2.0 * self.gap * count)[None])
        return np.logaddexp(first, second)


def _far(distance: Array) -> Array:
    """Return distances, rounded up."""
    return distance * (1.0 + 4.0 * UNIT)


def _split(kind: _Replaced | _Nulled, e: Array) -> Array:
    """Return ln delta, rounded up: thresholds t_j split (g - 1) w_0 approximately as one half-line does."""
    count, high, _ = weights_of(kind.draws)
    log_share = log_expm1(e) + kind.draws.log_none
    c = _half_line(kind, count, high, e, log_share)
    excess = kind.log_excess(count, e, c)
    taken = log_sum(high + excess)
    finite = np.isfinite(taken) & np.isfinite(log_share)
    sizes = np.abs(np.where(finite, taken, 0.0)) + np.abs(np.where(finite, log_share, 0.0))
    slack = 64.0 * UNIT * (1.0 + sizes - kind.draws.log_none)
    scale = np.where(finite, log_share - taken - slack, -np.inf)
    excess = np.where(np.isfinite(excess), excess + scale[:, None], -np.inf)
    value = log_sum(high + kind.log_terms(count, e, c, excess))
    size = np.where(np.isfinite(value), np.abs(value), 0.0)
    return np.minimum(value + 64.0 * UNIT * (1.0 + size), 0.0)


def _half_line(kind: _Replaced | _Nulled, count: Array, high: Array, e: Array, log_share: Array) -> Array:
    """Return approximately the c at which the terms take all of the share, by the Illinois rule in a bracket.

    At its upper end one j takes all of the share; at its lower end none takes more than an equal part.
    """

    c = up_to = kind.reach(count, e, log_share[:, None] - high).min(axis=1)
    low = kind.reach(count, e, log_share[:, None] - high - math.log(len(count))).min(axis=1)

    def missing(at: Array, of: Any) -> Array:
        return log_sum(high + kind.log_excess(count, e[of], at)) - log_share[of]

    left: Any = np.arange(len(c))  # thresholds whose c is not found yet
    c = c.copy()
    above = missing(up_to, left)
    low = np.fmax(low, up_to - above / kind.gap)  # ln of what is taken grows at least at the rate of the gap
    below = missing(low, left)
    value, enough = above, np.isfinite(above)
    for step in range(_STEPS):
        moves = np.abs(value) > _EQUAL  # False if there is nothing to split
        if not moves.any():
            break
        left, low, up_to, below, above, enough = (x[moves] for x in (left, low, up_to, below, above, enough))
        part = below / (below - above)
        inside = (part > 0.0) & (part < 1.0) & (step % 4 < 3)
        at = low + np.where(inside, part, 0.5) * (up_to - low)
        value, before = missing(at, left), enough
        c[left], enough = at, value >= 0.0
        low, up_to = np.where(enough, low, at), np.where(enough, at, up_to)
        halved = np.where(enough == before, 0.5, 1.0)  # for an end that stays a second time
        below, above = np.where(enough, halved * below, value), np.where(enough, value, halved * above)
    return c
