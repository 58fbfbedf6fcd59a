"""Several passes in random order whose iterates stay hidden: one order for all passes, or a fresh one for each.

The public forms average over where the record falls and hold for published orders; see `dpcalc.bounds.epochs`. The
secret forms hide the position among all of a pass (`dpcalc.bounds.hidden_position`). In one order for all epochs the
swap of two records changes two steps of every epoch: with their distances g and l - g, each of the E-1 whole periods
between costs 4/l. In fresh orders the orders of the earlier epochs are given away, and only the last one is secret.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.bounds import hidden_position, shuffle
from dpcalc.bounds.epochs import (
    Run,
    convex_up_to,
    fresh_mean,
    fresh_value,
    gdp,
    heavy_groups,
    law,
    once_mean,
    once_value,
    run_of,
)
from dpcalc.bounds.hidden_position import SECRET, Cell
from dpcalc.bounds.steps import CONVEXITY_WITHIN, ONE_RELEASE, STEP_WITHIN
from dpcalc.bounds.uses import cost, periods, stretch
from dpcalc.numerics.blocks import Values, log_sum_falling
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.sums import log_sum_expm1_reciprocals
from dpcalc.registry import bound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_SECRET_PARTS = 12  # pieces of the law of the last position but one

_STEPS = "every loss is convex and smooth, step_size <= 2/smoothness"
_ONCE = "one order for all epochs, all orders equally likely and drawn without looking at the data; it may be published"
_FRESH = (
    "a fresh order for every epoch, all orders equally likely, independent, and drawn without looking at the data; "
    "they may be published after the run"
)
_NOISE = "fresh Gaussian noise in every step"
_SECRET_DATA = "the sensitivity holds between all records that may occur, not only between the two compared"


@bound(
    "shuffled_epochs.once",
    title="One random order for all epochs, position mixture",
    gives="log_delta",
    algorithms=("shuffle-once",),
    reference="dpcalc",
    locator="optimal shifts of a cyclic run for each position, averaged",
    formula="delta(eps) = (1/l) sum_{k=1}^{l} delta_G(eps; mu_1 sqrt((E-1)/l + 1/k)), mu_1 = Delta/(b sigma)",
    requires=(STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(_ONCE, _STEPS, _NOISE, ONE_RELEASE),
    slack="below 0.3 % of delta",
)
def once(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise_std: float,
    step_size: float, smoothness: float, epsilon: float, strong_convexity: float = 0.0, diameter: float = math.inf,
) -> float:  # fmt: skip
    """The record keeps its place in every epoch: all uses but the last have a whole epoch to fade in, and the last has
    what is left of it.

    Args:
        records, batch_size, epochs: n, b and E, each up to 1e15.
        last_batch: a short last batch: ``own`` (divided by its own size), ``nominal`` or ``drop``.
        sensitivity: gradient sensitivity Delta.
        noise_std: sigma > 0.
        step_size, smoothness: eta <= 2/beta.
        epsilon: >= 0.
        strong_convexity: m, 0 where there is none.
        diameter: of the domain, inf where there is none.

    Returns:
        ln delta, rounded up.

    >>> common = dict(records=1000, batch_size=1, last_batch="own", sensitivity=2.0, noise_std=2.0, step_size=1.0)
    >>> round(once(epochs=10, smoothness=1.0, epsilon=1.0, **common), 2)
    -8.51
    """
    run = run_of(
        records, batch_size, last_batch, epochs, sensitivity, noise_std, step_size, smoothness, strong_convexity,
        diameter,
    )  # fmt: skip
    single = _one_pass(records, batch_size, last_batch, sensitivity, noise_std, step_size, smoothness, epsilon)
    return _least(single, lambda r: once_value(r, epsilon, once_mean(r, epsilon)), run)


def once_rdp(*, steps: int, epochs: int, ratio: float, order: float) -> float:
    """Return the Renyi divergence of one order for all epochs, batches of one size: the log-mean-exp over positions.

    ln((1/l) sum_k exp((a-1) a r^2 ((E-1)/l + 1/k)/2))/(a-1); `once` is sharper in every (epsilon, delta).

    Args:
        steps, epochs: l and E, 1 to 1e15.
        ratio: r = Delta/(b sigma) > 0.
        order: a > 1.

    Returns:
        RDP at the order, rounded up.
    """
    x = 0.5 * (order - 1.0) * order * ratio * ratio
    spread = log_sum_expm1_reciprocals(x, steps) - math.log(steps)
    mean = spread + math.log1p(math.exp(-spread)) if spread > 0.0 else math.log1p(math.exp(spread))
    return up((x * (epochs - 1) / steps + mean) / (order - 1.0), 64.0)


@bound(
    "shuffled_epochs.fresh",
    title="A fresh random order for every epoch, position mixture",
    gives="log_delta",
    algorithms=("shuffled-epochs",),
    reference="dpcalc",
    locator="optimal shifts for each sequence of positions, most of them delayed to the end of their epoch, averaged",
    formula="delta(eps) = E delta_G(eps; mu_1 sqrt(S)), S <= (E-2)/l + 1/(l+1-k) + 1/k, or (E-2)/l + 4/(l+1) where "
    "2k > l+1; k uniform on 1..l",
    requires=(STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(_FRESH, _STEPS, _NOISE, ONE_RELEASE),
    slack="up to 5 % of delta against the mean over all positions; more with few steps in an epoch, and with strong "
    "convexity, a domain or a short batch at deltas far below 1e-9",
)
def fresh(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise_std: float,
    step_size: float, smoothness: float, epsilon: float, strong_convexity: float = 0.0, diameter: float = math.inf,
) -> float:  # fmt: skip
    """Wherever the record falls in the earlier epochs, its uses there cost little more than 1/l each; the mean over the
    last epoch's place decides.

    Args:
        records, batch_size, last_batch, epochs, sensitivity, noise_std, step_size, smoothness, epsilon,
            strong_convexity, diameter: as in `once`.

    Returns:
        ln delta, rounded up.

    >>> common = dict(records=1000, batch_size=1, last_batch="own", sensitivity=2.0, noise_std=2.0, step_size=1.0)
    >>> round(fresh(epochs=10, smoothness=1.0, epsilon=1.0, **common), 2)
    -8.51
    """
    run = run_of(
        records, batch_size, last_batch, epochs, sensitivity, noise_std, step_size, smoothness, strong_convexity,
        diameter,
    )  # fmt: skip
    single = _one_pass(records, batch_size, last_batch, sensitivity, noise_std, step_size, smoothness, epsilon)
    return _least(single, lambda r: fresh_value(r, epsilon, fresh_mean(r, epsilon)), run)


def _one_pass(
    records: int, batch_size: int, last_batch: str, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, epsilon: float,
) -> Callable[[], float]:  # fmt: skip
    return lambda: shuffle.mixture(
        records=records, batch_size=batch_size, last_batch=last_batch, sensitivity=sensitivity, noise="gaussian",
        scale=noise_std, step_size=step_size, smoothness=smoothness, epsilon=epsilon,
    )  # fmt: skip


def _least(one_pass: Callable[[], float], value: Callable[[Run], float], run: Run) -> float:
    """Return the least of ln delta without the contraction and the domain, and with them."""
    if run.ratio > 1e90:
        return 0.0
    bare = one_pass() if run.epochs == 1 else value(run._replace(rate=0.0, reach=math.inf))
    return bare if run.plain else min(bare, value(run))


# --- secret orders -------------------------------------------------------------------------------------------------


class _Once(NamedTuple):
    """The distances of positions that are the same in every epoch; ``swap`` is 2 where a swap moves twice as far."""

    ratio: float
    steps: int
    epochs: int
    swap: float

    def own(self, k: Array) -> Array:
        """Return mu_1 times the root of (E-1)/l + 1/k."""
        return gdp(self.ratio, cost(periods(self.epochs - 1, self.steps), stretch(1.0, k)))

    def pair(self, a: Array, b: Array) -> Array:
        """Return mu_1 times the root of 4(E-1)/l + 1/a + 1/(b-a), or of 4(E-1)/l + 4/b."""
        last = cost(stretch(1.0, b - a), stretch(1.0, a))
        return gdp(self.ratio * self.swap, (last + 4.0 * (self.epochs - 1) / self.steps) * (1.0 + 4.0 * UNIT))


class _Fresh(NamedTuple):
    """The distances of positions in the last epoch, given the earlier ones.

    There are one or two ways: what the earliest uses cost, and (size, position from the end) of those that share a
    stretch with the last epoch's. The larger cost counts.
    """

    ratio: float
    ways: tuple[tuple[float, tuple[tuple[float, float], ...]], ...]
    swap: float

    def own(self, k: Array) -> Array:
        """Return mu for the last use at k."""
        return self._largest(((1.0, k),))

    def pair(self, a: Array, b: Array) -> Array:
        """Return mu for two last uses, at b and at a."""
        return self._largest(((self.swap, b), (self.swap, a)))

    def _largest(self, last: tuple[tuple[float, Array], ...]) -> Array:
        import numpy as np

        found = []
        for before, earlier in self.ways:
            uses: list[tuple[float, Any]] = [*earlier, *last]
            ends = [place for _, place in uses[1:]] + [0.0]
            found.append(before + cost(*(stretch(s, at - end) for (s, at), end in zip(uses, ends, strict=True))))
        return gdp(self.ratio, np.maximum.reduce(found))


def _public(run: Run, distances: hidden_position.Distances, epsilon: float) -> float:
    """Return ln of the mean of delta_G over the positions in full batches."""
    from dpcalc.numerics.arrays import log_hockey_sticks

    epsilon = min(epsilon, 1e90)

    def terms(k: Array) -> Values:
        mu = distances.own(k)
        found = log_hockey_sticks(epsilon, mu)[None]
        return Values(found, found, convex_up_to(mu, epsilon)[None])

    return log_sum_falling(terms, 1 + run.after, run.plan.full + run.after) - math.log(run.plan.full)


def _certified(run: Run, cells: Sequence[tuple[float, hidden_position.Distances]], epsilon: float) -> float:
    """Return ln of the weighted sum over the cells of the least that hiding the position proves."""
    filled = [Cell(weight, distances, _public(run, distances, epsilon)) for weight, distances in cells]
    return hidden_position.least_certificates(run.plan.full, run.after, filled, epsilon)


def _fresh_cells(run: Run, swap: float) -> list[tuple[float, _Fresh]]:
    """Return (ln weight, distances) of the cases of the earlier epochs, the worst of the likely ones first."""
    length, more, cells = float(run.steps), run.epochs - 2, []
    for heavy, log_weight in heavy_groups(run):
        if heavy:
            ways = []
            for size, others in ((run.heavy, min(heavy - 1, more)), (1.0, min(heavy, more))):
                before = (more - others + others * run.heavy**2) / length * (1.0 + 32.0 * UNIT)
                ways.append((before, ((size, length + 1.0),)))
            cells.append((log_weight, _Fresh(run.ratio, tuple(ways), swap)))
            continue
        before = max(run.epochs - 3, 0) / length
        for u, weight in _last_but_one(run):
            earlier: tuple[tuple[float, float], ...] = ((1.0, length + u),)
            if run.epochs > 2:
                earlier = ((1.0, 2.0 * length + 1.0), *earlier)
            cells.append((log_weight + math.log(weight), _Fresh(run.ratio, ((before, earlier),), swap)))
    return cells


def _last_but_one(run: Run) -> list[tuple[float, float]]:
    """Return (position, weight) for the last use but one, not in a short batch with its own size; positions down."""
    inside = law(run.plan.full, _SECRET_PARTS)
    short = run.plan.short / run.plan.records if run.after and run.heavy == 1.0 else 0.0
    nodes = [(u + run.after, weight * (1.0 - short)) for u, weight in zip(inside.at, inside.flat, strict=True)]
    return [(1.0, short), *nodes] if short else nodes


_SECRET_ASSUMES = (
    "the orders, the seed that made them, logs of single steps and every intermediate iterate stay secret for ever",
    _SECRET_DATA,
    _STEPS,
    _NOISE,
    ONE_RELEASE,
)


@bound(
    "shuffled_epochs.once_secret",
    title="One secret random order for all epochs, hidden position",
    gives="log_delta",
    algorithms=("shuffle-once",),
    reference="dpcalc",
    locator="hidden position, with the swap of two records carried through all epochs",
    formula="delta(eps) = (1/l) sum_km a_km delta_G(ln(M_km/a_km); mu_km), mu_kk^2 = mu_1^2 ((E-1)/l + 1/k), "
    "mu_km^2 = mu_1^2 (4(E-1)/l + 1/a + 1/(b-a))",
    requires=(STEP_WITHIN,),
    demands=(SECRET,),
    assumes=("one order for all epochs, all orders equally likely and drawn without looking at the data (no rotation)",
             *_SECRET_ASSUMES),
    slack="as hidden_position.shuffled; at most shuffled_epochs.once",
    coarse=True,
    unsolved=("records",),
)  # fmt: skip
def once_secret(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise_std: float,
    step_size: float, smoothness: float, adjacency: str, epsilon: float,
) -> float:  # fmt: skip
    """Nobody who sees the last iterate knows where in the secret order the record stood; telling two places apart costs
    twice the earlier uses, which is why many epochs take the gain away.

    Args:
        records, batch_size, last_batch, epochs, sensitivity, noise_std, step_size, smoothness, epsilon: as in `once`.
        adjacency: ``replace-one`` or ``null-record``.

    Returns:
        ln delta, rounded up.
    """
    if epochs == 1:
        return _hidden_pass(
            records, batch_size, last_batch, sensitivity, noise_std, step_size, smoothness, adjacency, epsilon
        )
    run = run_of(records, batch_size, last_batch, epochs, sensitivity, noise_std)
    if run.ratio > 1e90:
        return 0.0
    swap = 2.0 if adjacency == "null-record" else 1.0
    full = _certified(run, [(0.0, _Once(run.ratio, run.steps, epochs, swap))], epsilon)
    return once_value(run, epsilon, full)


@bound(
    "shuffled_epochs.fresh_secret",
    title="A fresh secret random order for every epoch, hidden last position",
    gives="log_delta",
    algorithms=("shuffled-epochs",),
    reference="dpcalc",
    locator="hidden position in the last epoch, given the orders of the others",
    formula="delta(eps) = E_u (1/l) sum_km a_km delta_G(ln(M_km/a_km); mu_km(u)), mu(u) the optimal allocation for the "
    "uses before the last epoch and those at k, or at k and m",
    requires=(STEP_WITHIN,),
    demands=(SECRET,),
    assumes=("a fresh order for every epoch, all orders equally likely, independent, and drawn without looking at the "
             "data (no rotation)", *_SECRET_ASSUMES),
    slack="as hidden_position.shuffled; at most shuffled_epochs.fresh",
    coarse=True,
    unsolved=("records",),
)  # fmt: skip
def fresh_secret(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise_std: float,
    step_size: float, smoothness: float, adjacency: str, epsilon: float,
) -> float:  # fmt: skip
    """The orders of all epochs but the last may be given away; where the record falls in the last one stays hidden.

    Args:
        records, batch_size, last_batch, epochs, sensitivity, noise_std, step_size, smoothness, epsilon: as in `once`.
        adjacency: ``replace-one`` or ``null-record``.

    Returns:
        ln delta, rounded up.
    """
    if epochs == 1:
        return _hidden_pass(
            records, batch_size, last_batch, sensitivity, noise_std, step_size, smoothness, adjacency, epsilon
        )
    run = run_of(records, batch_size, last_batch, epochs, sensitivity, noise_std)
    if run.ratio > 1e90:
        return 0.0
    swap = 2.0 if adjacency == "null-record" else 1.0
    ceiling = fresh_value(run, epsilon, fresh_mean(run, epsilon))
    return min(ceiling, fresh_value(run, epsilon, _certified(run, _fresh_cells(run, swap), epsilon)))


def _hidden_pass(
    records: int, batch_size: int, last_batch: str, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, adjacency: str, epsilon: float,
) -> float:  # fmt: skip
    value: float = hidden_position.shuffled(
        records=records, batch_size=batch_size, last_batch=last_batch, sensitivity=sensitivity, noise="gaussian",
        scale=noise_std, step_size=step_size, smoothness=smoothness, adjacency=adjacency, epsilon=epsilon,
    )  # fmt: skip
    return value
