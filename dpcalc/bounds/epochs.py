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

from dpcalc.bounds.shuffle import Layout, layout
from dpcalc.bounds.steps import decay_rate
from dpcalc.bounds.uses import cost, periods, settled, stretch
from dpcalc.notions import gaussian
from dpcalc.numerics.binomial import log_groups
from dpcalc.numerics.blocks import Values, log_sum_falling
from dpcalc.numerics.floats import UNIT, ratio_up, up
from dpcalc.numerics.logspace import log_add_exp, log_sum_exp

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_SLACK = 1e-11  # ln of what rounding may take from the sums and weights here, many times over
_NEAREST, _FARTHEST = 1e-60, 1e60  # a diameter, in uses: a smaller one counts as this, a larger one helps nobody
_LARGEST = 1e90  # an epsilon beyond this one counts as this one
_NEGLIGIBLE = 12.0  # cases less likely than exp(-12) delta count as delta = 1
_PARTS_OF_TWO, _PARTS, _PARTS_OF_FIRST = 16, 8, 4  # pieces of the laws of the last position but one, and the first


class Run(NamedTuple):
    """A run: its layout, l, whether a short batch ends the pass, E, mu_1, a use in the short batch in units of one in a
    full batch, -ln c, and the diameter in units of a use."""

    plan: Layout
    steps: int
    after: int
    epochs: int
    ratio: float
    heavy: float
    rate: float = 0.0
    reach: float = math.inf

    @property
    def plain(self) -> bool:
        """Whether only 1-Lipschitz maps are used."""
        return self.rate == 0.0 and math.isinf(self.reach)


def run_of(
    records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise_std: float,
    step_size: float = 1.0, smoothness: float = 0.0, strong_convexity: float = 0.0, diameter: float = math.inf,
) -> Run:  # fmt: skip
    """Return the run described; ``strong_convexity`` 0 and ``diameter`` inf stand for none."""
    plan = layout(records, batch_size, last_batch)
    after = int(plan.short > 0)
    heavy = up(plan.size / plan.divisor, 1.0) if after and plan.divisor < plan.size else 1.0
    rate = decay_rate(step_size, smoothness, strong_convexity)
    held = records if plan.size > records else plan.short
    if rate > 0.0 and (plan.size > records or (after and plan.divisor == plan.size)):
        # A step divided by more than its records mixes the identity in; all steps are then taken to contract as little.
        rate = max(0.0, -math.log1p(math.expm1(-rate) * held / plan.size * (1.0 - 8.0 * UNIT)) * (1.0 - 8.0 * UNIT))
    reach = up(diameter / step_size / sensitivity * plan.size, 8.0) if diameter < math.inf else math.inf
    reach = max(reach, _NEAREST) if reach < _FARTHEST else math.inf
    ratio = ratio_up(sensitivity, plan.size * noise_std)
    return Run(plan, plan.full + after, after, epochs, ratio, heavy, settled(rate), reach)


# --- one order -----------------------------------------------------------------------------------------------------


def _once_cost(run: Run, k: Any) -> Array:
    """Return S with every use at position k of its pass."""
    import numpy as np

    plain = cost(periods(run.epochs - 1, run.steps, run.rate), stretch(1.0, k, run.rate))
    if math.isinf(run.reach):
        return plain
    entry = run.reach * math.exp(-run.rate)
    found = [plain, cost(stretch(entry, np.asarray(k) - 1.0, run.rate))]
    for left in _restarts(run.reach, run.epochs - 1):
        start = stretch(entry, run.steps - 1, run.rate)
        found.append(cost(start, periods(left - 1, run.steps, run.rate), stretch(1.0, k, run.rate)))
    result: Array = np.minimum.reduce(found)
    return result


def _restarts(reach: float, most: int) -> list[int]:
    """Return some numbers of uses, 1 to ``most``, that may follow the point from which only the diameter is known."""
    near = int(min(reach, 1e15))
    return sorted({j for j in (1, 2, 3, near - 1, near, near + 1, near + 2, most) if 1 <= j <= most})


def once_mean(run: Run, epsilon: float) -> float:
    """Return ln of the mean over the positions in full batches."""

    def terms(k: Array) -> Values:
        return _values([_Part(_once_cost(run, k)[None])], run, epsilon)

    first, last = 1 + run.after, run.plan.full + run.after
    return log_sum_falling(terms, first, last) - math.log(run.plan.full)


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


def _values(parts: Sequence[_Part], run: Run, epsilon: float) -> Values:
    """Return what is known of delta_G, averaged over each part's cases."""
    import numpy as np

    rows = [_row(part, run, epsilon) for part in parts]
    return Values(*(np.stack(column) for column in zip(*rows, strict=True)))


def gdp(ratio: float, squared: Array) -> Array:
    """Return ratio sqrt(squared), rounded up, at most 1e100."""
    import numpy as np

    with np.errstate(over="ignore"):
        mu: Array = np.minimum(ratio * np.sqrt(squared) * (1.0 + 16.0 * UNIT), 1e100)
    return mu


def _row(part: _Part, run: Run, epsilon: float) -> tuple[Array, Array, Array]:
    import numpy as np

    from dpcalc.numerics.arrays import log_hockey_sticks

    epsilon = min(epsilon, _LARGEST)
    mu = gdp(run.ratio, part.costs)
    found = log_hockey_sticks(epsilon, mu) + part.log_weight
    convex = convex_up_to(mu.max(axis=0), epsilon) & run.plain
    if part.flat is None:
        return found[0], found[0], convex
    flat = _log_mean(found, part.flat)
    if not run.plain:
        return flat, flat, convex
    # Where delta_G is concave in mu^2 it is at most its value at the mean.
    low, mean = mu.min(axis=0), gdp(run.ratio, part.bent @ part.costs * (1.0 + 64.0 * UNIT))
    concave = epsilon <= low * np.sqrt(1.0 + 0.25 * np.minimum(low, 1e70) ** 2) * (1.0 - 1e-9)
    at_mean = log_hockey_sticks(epsilon, mean) + part.log_weight
    return np.where(concave, np.minimum(flat, at_mean), flat), _log_mean(found, part.bent), convex


def convex_up_to(mu: Array, epsilon: float) -> Any:
    """Return whether delta_G(eps; mu) is convex in mu^2 up to this mu: its derivative there,
    exp(-(mu/2 - eps/mu)^2/2)/(2 sqrt(2 pi) mu), grows where eps^2 >= mu^2 + mu^4/4.
    """
    import numpy as np

    top = np.minimum(mu, 1e70)
    return epsilon >= top * np.sqrt(1.0 + 0.25 * top * top) * (1.0 + 1e-9)


def _log_mean(found: Array, weights: Array) -> Array:
    import numpy as np

    peak = found.max(axis=0)
    result: Array = peak + np.log(weights @ np.exp(found - peak))
    return result


def _fresh_part(run: Run, k: Array) -> _Part:
    """Return S for the nodes of the other positions that count."""
    import numpy as np

    length, rate, later = float(run.steps), run.rate, law(run.steps, _PARTS_OF_TWO if run.epochs == 2 else _PARTS)
    u = later.at[:, None]
    ends = stretch(1.0, length + u - k, rate), stretch(1.0, k, rate)
    if run.epochs == 2:
        return _Part(cost(*ends), 0.0, later.flat, later.bent)
    if run.epochs > 3 and rate > 0.0:
        # What comes first hardly counts.
        found = cost(periods(run.epochs - 3, length, rate), stretch(1.0, length + 1.0 - u, rate), *ends)
        return _Part(found, 0.0, later.flat, later.bent)
    first = law(run.steps, _PARTS_OF_FIRST)
    v = first.at[:, None, None]
    if run.epochs == 3:
        found = cost(stretch(1.0, length + v - u, rate), *ends)
    else:
        before = 1.0 / (length + v - 1.0) + (run.epochs - 4) / length
        found = before + cost(stretch(1.0, length + 1.0 - u), *ends)
    flat, bent = (np.outer(a, b).ravel() for a, b in ((first.flat, later.flat), (first.bent, later.bent)))
    return _Part(found.reshape(-1, len(k)), 0.0, flat, bent)


def _delayed_cost(run: Run, k: Array, last: float = 1.0, heavy: int = 0) -> Array:
    """Return S with all uses but the last delayed, ``heavy`` of them in the short batch; the last of size ``last``."""
    import numpy as np

    length, rate, more = float(run.steps), run.rate, run.epochs - 2
    final = stretch(last, k, rate)
    if run.epochs == 1:
        found = [cost(final)]
    elif not heavy:
        found = [cost(periods(more, length, rate), stretch(1.0, length + 1.0 - k, rate), final)]
    else:
        # Each is spent in the epoch after its own; the last but one may be heavy or not.
        ways = []
        for size, others in ((run.heavy, heavy - 1), (1.0, heavy)):
            others = min(others, more)
            alone = float(cost(stretch(1.0, length, rate))) * (1.0 + 32.0 * UNIT)
            before = (more - others + others * run.heavy**2) * alone
            ways.append(before + cost(stretch(size, length + 1.0 - k, rate), final))
        found = [np.maximum(*ways)]
    if math.isfinite(run.reach):
        entry = run.reach * math.exp(-rate)
        found.append(cost(stretch(entry, k - 1.0, rate)))
        if run.epochs > 1:
            found.append(cost(stretch(entry, length - k, rate), final))
        for left in [] if heavy else _restarts(run.reach, more):
            start = stretch(entry, length - 1.0, rate)
            found.append(cost(start, periods(left - 1, length, rate), stretch(1.0, length + 1.0 - k, rate), final))
    result: Array = np.minimum.reduce(found)
    return result


def heavy_groups(run: Run) -> list[tuple[int, float]]:
    """Return (number, ln weight) for how many of the uses before the last fall into a short batch with its own size."""
    if run.heavy == 1.0 or run.epochs == 1:
        return [(0, 0.0)]
    return log_groups(run.epochs - 1, run.plan.short / run.plan.records)


def fresh_mean(run: Run, epsilon: float) -> float:
    """Return ln of the mean over the last position, in full batches, and all others."""
    groups = heavy_groups(run)
    likeliest = _fresh_sum(run, groups[:1], epsilon)
    if len(groups) == 1:
        return likeliest
    kept = [group for group in groups if group[1] >= likeliest - _NEGLIGIBLE]
    rest = log_sum_exp(log_weight for _, log_weight in groups if log_weight < likeliest - _NEGLIGIBLE)
    return log_add_exp(_fresh_sum(run, kept, epsilon), rest)


def _fresh_sum(run: Run, groups: Sequence[tuple[int, float]], epsilon: float) -> float:
    def terms(k: Array) -> Values:
        parts = []
        for heavy, log_weight in groups:
            if heavy == 0 and math.isinf(run.reach) and run.epochs > 1:
                part = _fresh_part(run, k)
            else:
                part = _Part(_delayed_cost(run, k, 1.0, heavy)[None])
            parts.append(part._replace(log_weight=log_weight))
        return _values(parts, run, epsilon)

    first, last = 1 + run.after, run.plan.full + run.after
    return log_sum_falling(terms, first, last) - math.log(run.plan.full)


def _fresh_short(run: Run, epsilon: float) -> float:
    """Return ln of the mean with the last use in the short batch."""
    import numpy as np

    k, total = np.ones(1), -math.inf
    for heavy, log_weight in heavy_groups(run):
        part = _Part(_delayed_cost(run, k, run.heavy, heavy)[None], log_weight)
        total = log_add_exp(total, float(_row(part, run, epsilon)[0][0]))
    return total


def _fresh_unused(run: Run, epsilon: float) -> float:
    """Return ln delta where the last epoch drops the record, and no other does."""
    if run.epochs == 1:
        return -math.inf
    found = cost(periods(run.epochs - 2, run.steps, run.rate), stretch(1.0, run.steps + 1.0, run.rate))
    return gaussian.log_delta(mu=up(run.ratio * math.sqrt(float(found)), 8.0), epsilon=epsilon)


# --- all positions together ----------------------------------------------------------------------------------------


def _together(run: Run, full: float, short: float, unused: float) -> float:
    """Return ln delta, rounded up, from its values for a record in a full batch, in the short one, and left out."""
    plan, n, total = run.plan, run.plan.records, -math.inf
    in_full = plan.full * min(plan.size, n)
    for value, weight in ((full, in_full), (short, plan.short), (unused, n - in_full - plan.short)):
        if weight and value > -math.inf:
            total = log_add_exp(total, value + math.log(weight) - math.log(n))
    return min(0.0, total + _SLACK + UNIT * (16.0 * abs(total) + 16.0 * math.log(n + 1)))


def once_value(run: Run, epsilon: float, full: float) -> float:
    """Return ln delta from its value ``full`` for a record in a full batch, one order for all epochs."""
    short = -math.inf
    if run.after:
        own = run._replace(reach=run.reach / run.heavy * (1.0 + 4.0 * UNIT))
        mu = run.ratio * run.heavy * math.sqrt(float(_once_cost(own, 1.0)))
        short = gaussian.log_delta(mu=up(mu, 16.0), epsilon=epsilon)
    return _together(run, full, short, -math.inf)


def fresh_value(run: Run, epsilon: float, full: float) -> float:
    """Return ln delta from its value ``full`` for a record in a full batch of the last epoch, fresh orders."""
    short = _fresh_short(run, epsilon) if run.after else -math.inf
    return _together(run, full, short, _fresh_unused(run, epsilon))
