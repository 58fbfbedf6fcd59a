"""Where a record falls in several passes of random order, what its uses cost there, and the mean over all of it.

Positions k are counted from the end of a pass of l steps, costs in squares of mu_1 = Delta/(b sigma). Given where the
record is used, the shifted-divergence theorem gives a Gaussian at mu_1 sqrt(S), S the cost of the cheapest allocation;
the law of the positions does not depend on the data, and joint convexity gives the mean of delta_G over it.

In a fresh order for every pass, use e may be taken to come as late as it can, in the last step of its epoch: what comes
earlier may wait, at no cost. All uses but the first, the last but one and the last are so delayed. They are l steps
apart and cost 1/l each; what is left is a mean over three positions, for two and three epochs over all there are.
S falls with each of them and is convex in it, delta_G is convex in S where mu is small enough: there sums over blocks
of positions are bounded by chords, elsewhere by their largest terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.notions import gaussian
from dpcalc.numerics.binomial import upper_groups
from dpcalc.numerics.decreasing_sums import TermBounds, log_sum_decreasing_up
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.logspace import log_add_exp, log_sum_exp
from dpcalc.theorems.batch_layout import Layout
from dpcalc.theorems.conditions import decay_rate
from dpcalc.theorems.privacy.repeated_allocation import Stretch, cost, periods, rate_in_range, stretch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_SLACK = 1e-11  # ln of what rounding may take from the sums and weights here, many times over
_NEAREST, _FARTHEST = 1e-60, 1e60  # a diameter, in uses: a smaller one counts as this, a larger one helps nobody
_LARGEST = 1e90  # an epsilon beyond this one counts as this one
_NEGLIGIBLE = 12.0  # cases less likely than exp(-12) delta count as delta = 1
_PARTS_OF_TWO, _PARTS, _PARTS_OF_FIRST = 16, 8, 4  # pieces of the laws of the last position but one, and the first


class Passes(NamedTuple):
    """Several passes in random order with Gaussian noise.

    Attributes:
        plan: the layout of a pass; l, the number of its steps, is ``plan.steps``.
        epochs: E.
        ratio: mu_1, the GDP parameter of one use in a full batch with no later step.
        rate: -ln c of the contraction of every step; 0 for none.
        reach: the diameter in units of a use in a full batch; inf for none.
    """

    plan: Layout
    epochs: int
    ratio: float
    rate: float = 0.0
    reach: float = math.inf

    @property
    def bare(self) -> bool:
        """Whether only 1-Lipschitz maps are used."""
        return self.rate == 0.0 and math.isinf(self.reach)

    @property
    def positions(self) -> tuple[int, int]:
        """The first and the last position of full batches, counted from the end of a pass."""
        return 1 + self.plan.after, self.plan.steps


def contraction_of(plan: Layout, step_size: float, smoothness: float, strong_convexity: float) -> float:
    """Return -ln c, by which every step of a pass contracts at least; 0 without strong convexity."""
    rate = decay_rate(step_size, smoothness, strong_convexity)
    held = plan.records if plan.size > plan.records else plan.short
    if rate > 0.0 and (plan.size > plan.records or (plan.short and plan.divisor == plan.size)):
        # A step divided by more than its records mixes the identity in; all steps are then taken to contract as little.
        rate = max(0.0, -math.log1p(math.expm1(-rate) * held / plan.size * (1.0 - 8.0 * UNIT)) * (1.0 - 8.0 * UNIT))
    return rate_in_range(rate)


def reach_of(plan: Layout, diameter: float, step_size: float, sensitivity: float) -> float:
    """Return the diameter in units of a use in a full batch, rounded up; inf where it helps nobody."""
    if math.isinf(diameter):
        return math.inf
    reach = up(diameter / step_size / sensitivity * plan.size, 8.0)
    return max(reach, _NEAREST) if reach < _FARTHEST else math.inf


# --- one order -----------------------------------------------------------------------------------------------------


def _once_cost(passes: Passes, k: Any) -> Array:
    """Return S with every use at position k of its pass."""
    import numpy as np

    length, rate, earlier = passes.plan.steps, passes.rate, passes.epochs - 1
    last = stretch(1.0, k, rate)
    ways = [cost(periods(earlier, length, rate), last)]
    if math.isfinite(passes.reach):
        entry = passes.reach * math.exp(-rate)
        ways.append(cost(stretch(entry, np.asarray(k) - 1.0, rate)))
        start = stretch(entry, length - 1, rate)
        ways.extend(cost(start, periods(left - 1, length, rate), last) for left in _restarts(passes.reach, earlier))
    least: Array = np.minimum.reduce(ways)
    return least


def _restarts(reach: float, most: int) -> list[int]:
    """Return some numbers of uses, 1 to ``most``, that may follow the point from which only the diameter is known."""
    near = int(min(reach, 1e15))
    return sorted({j for j in (1, 2, 3, near - 1, near, near + 1, near + 2, most) if 1 <= j <= most})


def once_mean(passes: Passes, epsilon: float) -> float:
    """Return ln of the mean over the positions in full batches."""

    def terms(k: Array) -> TermBounds:
        return _values([_Part(_once_cost(passes, k)[None])], passes, epsilon)

    return log_sum_decreasing_up(terms, *passes.positions) - math.log(passes.plan.full)


# --- fresh orders --------------------------------------------------------------------------------------------------


class Law(NamedTuple):
    """Nodes of a uniform position on 1..l, and two sets of weights: for functions that fall, and if convex as well."""

    at: Array
    flat: Array
    bent: Array


def law(steps: int, parts: int) -> Law:
    """Return the law in so many parts; single positions where there are no more."""
    import numpy as np

    at = np.unique(np.append(1 + np.floor(np.arange(parts) * (steps / parts)), float(steps)))
    count = np.append(np.diff(at), 1.0)
    bent = (count + 1.0) / 2.0
    bent[1:] += (count[:-1] - 1.0) / 2.0
    return Law(at, count / steps, bent / steps)


class _Part(NamedTuple):
    """Costs of several cases at some positions, shape (cases, positions); ln of the weight of all, and two sets of
    weights of the cases: for functions that fall with the case, and for those that are convex in it as well."""

    costs: Array
    log_weight: float = 0.0
    flat: Any = None
    bent: Any = None


def _values(parts: Sequence[_Part], passes: Passes, epsilon: float) -> TermBounds:
    """Return what is known of delta_G, averaged over each part's cases."""
    import numpy as np

    rows = [_row(part, passes, epsilon) for part in parts]
    return TermBounds(*(np.stack(column) for column in zip(*rows, strict=True)))


def gdp(ratio: float, squared: Array) -> Array:
    """Return ratio sqrt(squared), rounded up, at most 1e100."""
    import numpy as np

    with np.errstate(over="ignore"):
        mu: Array = np.minimum(ratio * np.sqrt(squared) * (1.0 + 16.0 * UNIT), 1e100)
    return mu


def _row(part: _Part, passes: Passes, epsilon: float) -> tuple[Array, Array, Array]:
    """Return the columns of `TermBounds` of one part."""
    import numpy as np

    from dpcalc.numerics.normal_arrays import log_hockey_stick_up

    epsilon = min(epsilon, _LARGEST)
    mu = gdp(passes.ratio, part.costs)
    log_delta = log_hockey_stick_up(epsilon, mu) + part.log_weight
    convex = convex_up_to(mu.max(axis=0), epsilon) & passes.bare
    if part.flat is None:
        return log_delta[0], log_delta[0], convex
    flat = _log_mean(log_delta, part.flat)
    if not passes.bare:
        return flat, flat, convex
    # Where delta_G is concave in mu^2 it is at most its value at the mean.
    low, mean = mu.min(axis=0), gdp(passes.ratio, part.bent @ part.costs * (1.0 + 64.0 * UNIT))
    concave = epsilon <= low * np.sqrt(1.0 + 0.25 * np.minimum(low, 1e70) ** 2) * (1.0 - 1e-9)
    at_mean = log_hockey_stick_up(epsilon, mean) + part.log_weight
    return np.where(concave, np.minimum(flat, at_mean), flat), _log_mean(log_delta, part.bent), convex


def convex_up_to(mu: Array, epsilon: float) -> Any:
    """Return whether delta_G(eps; mu) is convex in mu^2 up to this mu: its derivative there,
    exp(-(mu/2 - eps/mu)^2/2)/(2 sqrt(2 pi) mu), grows where eps^2 >= mu^2 + mu^4/4.
    """
    import numpy as np

    top = np.minimum(mu, 1e70)
    return epsilon >= top * np.sqrt(1.0 + 0.25 * top * top) * (1.0 + 1e-9)


def _log_mean(logs: Array, weights: Array) -> Array:
    """Return ln of the weighted sum over the cases."""
    import numpy as np

    peak = logs.max(axis=0)
    mean: Array = peak + np.log(weights @ np.exp(logs - peak))
    return mean


def _fresh_part(passes: Passes, k: Array) -> _Part:
    """Return S for the nodes of the other positions that count: u of the last use but one, v of the first."""
    import numpy as np

    epochs, length, rate = passes.epochs, float(passes.plan.steps), passes.rate
    later = law(passes.plan.steps, _PARTS_OF_TWO if epochs == 2 else _PARTS)
    u = later.at[:, None]
    ends = stretch(1.0, length + u - k, rate), stretch(1.0, k, rate)
    if epochs == 2:
        return _Part(cost(*ends), 0.0, later.flat, later.bent)
    if epochs > 3 and rate > 0.0:
        # What comes first hardly counts.
        delayed = periods(epochs - 3, length, rate), stretch(1.0, length + 1.0 - u, rate)
        return _Part(cost(*delayed, *ends), 0.0, later.flat, later.bent)
    first = law(passes.plan.steps, _PARTS_OF_FIRST)
    v = first.at[:, None, None]
    if epochs == 3:
        costs = cost(stretch(1.0, length + v - u, rate), *ends)
    else:
        before = 1.0 / (length + v - 1.0) + (epochs - 4) / length
        costs = before + cost(stretch(1.0, length + 1.0 - u), *ends)
    flat, bent = (np.outer(a, b).ravel() for a, b in ((first.flat, later.flat), (first.bent, later.bent)))
    return _Part(costs.reshape(-1, len(k)), 0.0, flat, bent)


def _delayed_cost(passes: Passes, k: Array, last: float = 1.0, heavy: int = 0) -> Array:
    """Return S with all uses but the last delayed, ``heavy`` of them in the short batch; the last of size ``last``."""
    import numpy as np

    length, rate, more = float(passes.plan.steps), passes.rate, passes.epochs - 2
    final = stretch(last, k, rate)
    if passes.epochs == 1:
        ways = [cost(final)]
    elif heavy:
        ways = [np.maximum(*_heavy_costs(passes, heavy, k, final))]
    else:
        ways = [cost(periods(more, length, rate), stretch(1.0, length + 1.0 - k, rate), final)]
    if math.isfinite(passes.reach):
        entry = passes.reach * math.exp(-rate)
        ways.append(cost(stretch(entry, k - 1.0, rate)))
        if passes.epochs > 1:
            ways.append(cost(stretch(entry, length - k, rate), final))
        for left in [] if heavy else _restarts(passes.reach, more):
            start = stretch(entry, length - 1.0, rate)
            ways.append(cost(start, periods(left - 1, length, rate), stretch(1.0, length + 1.0 - k, rate), final))
    least: Array = np.minimum.reduce(ways)
    return least


def _heavy_costs(passes: Passes, heavy: int, k: Array, final: Stretch) -> list[Array]:
    """Return S with ``heavy`` delayed uses in the short batch, where the last but one is among them and where not."""
    length, rate, more, size = float(passes.plan.steps), passes.rate, passes.epochs - 2, passes.plan.heavy
    alone = float(cost(stretch(1.0, length, rate))) * (1.0 + 32.0 * UNIT)  # each is spent in the epoch after its own
    ways = []
    for last_but_one, others in ((size, min(heavy - 1, more)), (1.0, min(heavy, more))):
        before = (more - others + others * size**2) * alone
        ways.append(before + cost(stretch(last_but_one, length + 1.0 - k, rate), final))
    return ways


def heavy_groups(passes: Passes) -> list[tuple[int, float]]:
    """Return (number, ln weight) for how many of the uses before the last fall into a short batch with its own size."""
    if passes.plan.heavy == 1.0 or passes.epochs == 1:
        return [(0, 0.0)]
    return upper_groups(passes.epochs - 1, passes.plan.short / passes.plan.records)


def fresh_mean(passes: Passes, epsilon: float) -> float:
    """Return ln of the mean over the last position, in full batches, and all others."""
    groups = heavy_groups(passes)
    likeliest = _fresh_sum(passes, groups[:1], epsilon)
    if len(groups) == 1:
        return likeliest
    kept = [group for group in groups if group[1] >= likeliest - _NEGLIGIBLE]
    rest = log_sum_exp(log_weight for _, log_weight in groups if log_weight < likeliest - _NEGLIGIBLE)
    return log_add_exp(_fresh_sum(passes, kept, epsilon), rest)


def _fresh_sum(passes: Passes, groups: Sequence[tuple[int, float]], epsilon: float) -> float:
    def terms(k: Array) -> TermBounds:
        parts = []
        for heavy, log_weight in groups:
            if heavy == 0 and math.isinf(passes.reach) and passes.epochs > 1:
                part = _fresh_part(passes, k)
            else:
                part = _Part(_delayed_cost(passes, k, 1.0, heavy)[None])
            parts.append(part._replace(log_weight=log_weight))
        return _values(parts, passes, epsilon)

    return log_sum_decreasing_up(terms, *passes.positions) - math.log(passes.plan.full)


def _fresh_short(passes: Passes, epsilon: float) -> float:
    """Return ln of the mean with the last use in the short batch."""
    import numpy as np

    k, total = np.ones(1), -math.inf
    for heavy, log_weight in heavy_groups(passes):
        part = _Part(_delayed_cost(passes, k, passes.plan.heavy, heavy)[None], log_weight)
        total = log_add_exp(total, float(_row(part, passes, epsilon)[0][0]))
    return total


def _fresh_unused(passes: Passes, epsilon: float) -> float:
    """Return ln delta where the last epoch drops the record, and no other does."""
    if passes.epochs == 1:
        return -math.inf
    length, rate = passes.plan.steps, passes.rate
    squared = float(cost(periods(passes.epochs - 2, length, rate), stretch(1.0, length + 1.0, rate)))
    return gaussian.log_delta(mu=up(passes.ratio * math.sqrt(squared), 8.0), epsilon=epsilon)


# --- all places together -------------------------------------------------------------------------------------------


def once_overall(passes: Passes, epsilon: float, full: float) -> float:
    """Return ln delta from its value ``full`` for a record in a full batch, one order for all epochs."""
    plan, short = passes.plan, -math.inf
    if plan.short:
        own = passes._replace(reach=passes.reach / plan.heavy * (1.0 + 4.0 * UNIT))
        mu = passes.ratio * plan.heavy * math.sqrt(float(_once_cost(own, 1.0)))
        short = gaussian.log_delta(mu=up(mu, 16.0), epsilon=epsilon)
    return _together(plan, full, short, -math.inf)


def fresh_overall(passes: Passes, epsilon: float, full: float) -> float:
    """Return ln delta from its value ``full`` for a record in a full batch of the last epoch, fresh orders."""
    short = _fresh_short(passes, epsilon) if passes.plan.short else -math.inf
    return _together(passes.plan, full, short, _fresh_unused(passes, epsilon))


def _together(plan: Layout, full: float, short: float, unused: float) -> float:
    """Return ln delta, rounded up, from its values for a record in a full batch, in the short one, and left out."""
    n, in_full, total = plan.records, plan.full * plan.held, -math.inf
    for value, weight in ((full, in_full), (short, plan.short), (unused, n - in_full - plan.short)):
        if weight and value > -math.inf:
            total = log_add_exp(total, value + math.log(weight) - math.log(n))
    return min(0.0, total + _SLACK + UNIT * (16.0 * abs(total) + 16.0 * math.log(n + 1)))
