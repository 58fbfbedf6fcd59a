"""Several passes in random order whose iterates stay hidden: one order for all passes, or a fresh one for each.

The public forms average over where the record falls and hold for published orders; see `epochs`. The
secret forms hide the position among all of a pass (`hidden_position`). In one order for all epochs the
swap of two records changes two steps of every epoch: with their distances g and l - g, each of the E-1 whole periods
between costs 4/l. In fresh orders the orders of the earlier epochs are given away, and only the last one is secret.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.model.algorithm import Release, in_one_random_order
from dpcalc.model.choices import Adjacency, LastBatch
from dpcalc.notions.guarantee import Gdp, Profile
from dpcalc.numerics.decreasing_sums import TermBounds, log_sum_decreasing_up
from dpcalc.numerics.floats import UNIT, ratio_up, up
from dpcalc.numerics.sums import log_sum_expm1_reciprocals_up
from dpcalc.theorems.batch_layout import Layout, layout
from dpcalc.theorems.conditions import CONVEXITY_WITHIN, ONE_RELEASE, STEP_WITHIN
from dpcalc.theorems.privacy.contraction import own_ratio
from dpcalc.theorems.privacy.epochs import (
    Passes,
    contraction_of,
    convex_up_to,
    fresh_mean,
    fresh_overall,
    gdp,
    heavy_groups,
    law,
    once_mean,
    once_overall,
    reach_of,
)
from dpcalc.theorems.privacy.hidden_position import SECRET, hidden_pass, swap_of
from dpcalc.theorems.privacy.periodic_allocation import Uses, bounded_mu, contracting_mu
from dpcalc.theorems.privacy.position_certificates import Cell, Distances, least_certificates
from dpcalc.theorems.privacy.repeated_allocation import cost, periods, stretch
from dpcalc.theorems.privacy.shuffle import shifted_pass
from dpcalc.theorems.record import Setting, theorem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_SECRET_PARTS = 12  # pieces of the law of the last position but one
_LARGEST = 1e90  # a ratio beyond this one hides nothing, an epsilon beyond it counts as this one

_STEPS = "every loss is convex and smooth, step_size <= 2/smoothness"
_ONCE = (
    "one order for all epochs, all orders (or rotations) equally likely and drawn without looking at the data; it may "
    "be published"
)
_FRESH = (
    "a fresh order for every epoch, all orders equally likely, independent, and drawn without looking at the data; "
    "they may be published after the run"
)
_NOISE = "fresh Gaussian noise in every step"
_SECRET_DATA = "the sensitivity holds between all records that may occur, not only between the two compared"


# --- settings ---------------------------------------------------------------------------------------------------------


class RandomOrders(Setting):
    """Several passes in random order with Gaussian noise and steps that are 1-Lipschitz maps.

    Attributes:
        records, batch_size, epochs: n, b and E, each up to 1e15.
        last_batch: what a short last batch is divided by: ``own`` (its own size) or ``nominal`` (b). ``drop``: it is
            left out.
        sensitivity: gradient sensitivity Delta >= 0.
        noise_std: sigma > 0.
        step_size, smoothness: eta > 0 and beta of convex losses, with eta <= 2/beta.
    """

    records: int
    batch_size: int
    last_batch: LastBatch
    epochs: int
    sensitivity: float
    noise_std: float
    step_size: float
    smoothness: float

    @functools.cached_property
    def layout(self) -> Layout:
        """How the records of a pass fall into steps."""
        return layout(self.records, self.batch_size, self.last_batch)

    @functools.cached_property
    def passes(self) -> Passes:
        """The passes, of which no more than 1-Lipschitz maps is used."""
        return Passes(self.layout, self.epochs, ratio_up(self.sensitivity, self.layout.size * self.noise_std))


class PublicOrders(RandomOrders):
    """Passes whose orders may be published.

    Attributes:
        strong_convexity: m <= beta; 0 where there is none.
        diameter: of the domain; inf where there is none.
    """

    strong_convexity: float = 0.0
    diameter: float = math.inf

    @functools.cached_property
    def sharper(self) -> Passes:
        """The passes with what strong convexity and the domain give."""
        return self.passes._replace(
            rate=contraction_of(self.layout, self.step_size, self.smoothness, self.strong_convexity),
            reach=reach_of(self.layout, self.diameter, self.step_size, self.sensitivity),
        )

    def one_pass(self, epsilon: float) -> float:
        """Return ln delta of one pass alone."""
        return shifted_pass(self.layout, own_ratio(self.sensitivity, self.noise_std, self.layout.size), epsilon)


class SecretOrders(RandomOrders):
    """Passes whose orders stay secret.

    Attributes:
        adjacency: ``replace-one`` or ``null-record``.
    """

    adjacency: Adjacency

    @property
    def swap(self) -> float:
        """How far a swap of two records moves a step, in units of Delta."""
        return swap_of(self.adjacency)

    def one_pass(self, epsilon: float) -> float:
        """Return ln delta of one pass alone."""
        return hidden_pass(self.layout, self.sensitivity, self.noise_std, self.swap, epsilon)


# --- public orders ----------------------------------------------------------------------------------------------------


@theorem(
    "shuffled_epochs.once",
    title="One random order for all epochs, position mixture",
    setting=PublicOrders,
    gives=Profile,
    algorithms=in_one_random_order(Release.LAST),
    reference="dpcalc",
    locator="optimal shifts of a cyclic run for each position, averaged",
    formula="delta(eps) = (1/l) sum_{k=1}^{l} delta_G(eps; mu_1 sqrt((E-1)/l + 1/k)), mu_1 = Delta/(b sigma)",
    conditions=(STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(_ONCE, _STEPS, _NOISE, ONE_RELEASE),
    slack="below 0.3 % of delta",
)
def once(run: PublicOrders) -> Profile:
    """The record keeps its place in every epoch: all uses but the last have a whole epoch to fade in, and the last has
    what is left of it.

    >>> run = PublicOrders(
    ...     records=1000, batch_size=1, last_batch="own", epochs=10, sensitivity=2.0, noise_std=2.0, step_size=1.0,
    ...     smoothness=1.0,
    ... )
    >>> round(once(run).profile(1.0), 2)
    -8.51
    """
    return Profile(lambda e: _public(run, e, lambda passes: once_overall(passes, e, once_mean(passes, e))))


@theorem(
    "shuffled_epochs.worst_position",
    title="One random rotation for all epochs, worst position",
    setting=PublicOrders,
    gives=Gdp,
    algorithms=("rotation-epochs",),
    reference="dpcalc",
    locator="a cyclic run at its last position, of which all others are post-processed",
    formula="mu = mu_1 sqrt((E-1)/l + 1), or as multi_epoch.cyclic_contraction and cyclic_domain at k = 1; "
    "mu_1 = Delta/(b sigma) in the smallest batch",
    conditions=(STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(_ONCE, _STEPS, _NOISE, ONE_RELEASE),
)
def worst_position(run: PublicOrders) -> Gdp:
    """Wherever the record falls, the iterate after its last use is that of a cyclic run with the record in the last
    place; what follows hides it further. It needs no random start, and the mean over positions is better.

    >>> run = PublicOrders(
    ...     records=100, batch_size=1, last_batch="own", epochs=10, sensitivity=2.0, noise_std=1.0, step_size=1.0,
    ...     smoothness=1.0,
    ... )
    >>> round(worst_position(run).mu, 12)
    2.088061301782
    """
    plan, rate = run.layout, run.sharper.rate
    uses = Uses(run.sensitivity, plan.divisor or plan.size, run.noise_std, plan.steps, 1, run.epochs)
    if math.isinf(run.diameter):
        return Gdp(contracting_mu(uses, rate))
    return Gdp(bounded_mu(uses, rate, run.step_size, run.diameter))


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
    spread = log_sum_expm1_reciprocals_up(x, steps) - math.log(steps)
    mean = spread + math.log1p(math.exp(-spread)) if spread > 0.0 else math.log1p(math.exp(spread))
    return up((x * (epochs - 1) / steps + mean) / (order - 1.0), 64.0)


@theorem(
    "shuffled_epochs.fresh",
    title="A fresh random order for every epoch, position mixture",
    setting=PublicOrders,
    gives=Profile,
    algorithms=("shuffled-epochs",),
    reference="dpcalc",
    locator="optimal shifts for each sequence of positions, most of them delayed to the end of their epoch, averaged",
    formula="delta(eps) = E delta_G(eps; mu_1 sqrt(S)), S <= (E-2)/l + 1/(l+1-k) + 1/k, or (E-2)/l + 4/(l+1) where "
    "2k > l+1; k uniform on 1..l",
    conditions=(STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(_FRESH, _STEPS, _NOISE, ONE_RELEASE),
    slack="up to 5 % of delta against the mean over all positions; more with few steps in an epoch, and with strong "
    "convexity, a domain or a short batch at deltas far below 1e-9",
    uncertified="a mean over blocks of positions, whose ends are not recorded",
)
def fresh(run: PublicOrders) -> Profile:
    """Wherever the record falls in the earlier epochs, its uses there cost little more than 1/l each; the mean over the
    last epoch's place decides.

    >>> run = PublicOrders(
    ...     records=1000, batch_size=1, last_batch="own", epochs=10, sensitivity=2.0, noise_std=2.0, step_size=1.0,
    ...     smoothness=1.0,
    ... )
    >>> round(fresh(run).profile(1.0), 2)
    -8.51
    """
    return Profile(lambda e: _public(run, e, lambda passes: fresh_overall(passes, e, fresh_mean(passes, e))))


def _public(run: PublicOrders, epsilon: float, log_delta: Callable[[Passes], float]) -> float:
    """Return the least of ln delta without the contraction and the domain, and with them."""
    if run.passes.ratio > _LARGEST:
        return 0.0
    bare = run.one_pass(epsilon) if run.epochs == 1 else log_delta(run.passes)
    return bare if run.sharper.bare else min(bare, log_delta(run.sharper))


# --- secret orders -------------------------------------------------------------------------------------------------


class _Once(NamedTuple):
    """The distances of positions that are the same in every epoch; ``swap`` is as of `hidden_position.swap_of`."""

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
        return self._largest((1.0, k))

    def pair(self, a: Array, b: Array) -> Array:
        """Return mu for two last uses, at b and at a."""
        return self._largest((self.swap, b), (self.swap, a))

    def _largest(self, *last: tuple[float, Array]) -> Array:
        """Return mu of the costlier way, with these uses (size, position) in the last epoch."""
        import numpy as np

        costs = []
        for before, earlier in self.ways:
            uses: list[tuple[float, Any]] = [*earlier, *last]
            ends = [place for _, place in uses[1:]] + [0.0]
            costs.append(before + cost(*(stretch(s, at - end) for (s, at), end in zip(uses, ends, strict=True))))
        return gdp(self.ratio, np.maximum.reduce(costs))


def _mean(passes: Passes, distances: Distances, epsilon: float) -> float:
    """Return ln of the mean of delta_G over the positions in full batches."""
    from dpcalc.numerics.normal_arrays import log_hockey_stick_up

    epsilon = min(epsilon, _LARGEST)

    def terms(k: Array) -> TermBounds:
        mu = distances.own(k)
        log_delta = log_hockey_stick_up(epsilon, mu)[None]
        return TermBounds(log_delta, log_delta, convex_up_to(mu, epsilon)[None])

    return log_sum_decreasing_up(terms, *passes.positions) - math.log(passes.plan.full)


def _certified(passes: Passes, cases: Sequence[tuple[float, Distances]], epsilon: float) -> float:
    """Return ln of the weighted sum over the cases of the least that hiding the position proves."""
    cells = [Cell(log_weight, distances, _mean(passes, distances, epsilon)) for log_weight, distances in cases]
    return least_certificates(passes.plan.full, passes.plan.after, cells, epsilon)


def _fresh_cases(passes: Passes, swap: float) -> list[tuple[float, _Fresh]]:
    """Return (ln weight, distances) of the cases of the earlier epochs, the worst of the likely ones first."""
    length, size = float(passes.plan.steps), passes.plan.heavy
    more, earliest = passes.epochs - 2, max(passes.epochs - 3, 0) / length
    cases = []
    for heavy, log_weight in heavy_groups(passes):
        if heavy:
            ways = []
            for last_but_one, others in ((size, min(heavy - 1, more)), (1.0, min(heavy, more))):
                before = (more - others + others * size**2) / length * (1.0 + 32.0 * UNIT)
                ways.append((before, ((last_but_one, length + 1.0),)))
            cases.append((log_weight, _Fresh(passes.ratio, tuple(ways), swap)))
            continue
        for u, weight in _last_but_one(passes):
            earlier: tuple[tuple[float, float], ...] = ((1.0, length + u),)
            if passes.epochs > 2:
                earlier = ((1.0, 2.0 * length + 1.0), *earlier)
            cases.append((log_weight + math.log(weight), _Fresh(passes.ratio, ((earliest, earlier),), swap)))
    return cases


def _last_but_one(passes: Passes) -> list[tuple[float, float]]:
    """Return (position, weight) for the last use but one, not in a short batch with its own size; positions down."""
    plan = passes.plan
    inside = law(plan.full, _SECRET_PARTS)
    short = plan.short / plan.records if plan.heavy == 1.0 else 0.0
    nodes = [(u + plan.after, weight * (1.0 - short)) for u, weight in zip(inside.at, inside.flat, strict=True)]
    return [(1.0, short), *nodes] if short else nodes


_SECRET_ASSUMES = (
    "the orders, the seed that made them, logs of single steps and every intermediate iterate stay secret for ever",
    _SECRET_DATA,
    _STEPS,
    _NOISE,
    ONE_RELEASE,
)


@theorem(
    "shuffled_epochs.once_secret",
    title="One secret random order for all epochs, hidden position",
    setting=SecretOrders,
    gives=Profile,
    algorithms=("shuffle-once",),
    reference="dpcalc",
    locator="hidden position, with the swap of two records carried through all epochs",
    formula="delta(eps) = (1/l) sum_km a_km delta_G(ln(M_km/a_km); mu_km), mu_kk^2 = mu_1^2 ((E-1)/l + 1/k), "
    "mu_km^2 = mu_1^2 (4(E-1)/l + 1/a + 1/(b-a))",
    conditions=(STEP_WITHIN,),
    promises=(SECRET,),
    assumes=("one order for all epochs, all orders equally likely and drawn without looking at the data (no rotation)",
             *_SECRET_ASSUMES),
    slack="as hidden_position.shuffled; at most shuffled_epochs.once",
    slow=True,
    not_monotone_in=("records",),
    uncertified="a certificate found by a search, which is not recorded",
)  # fmt: skip
def once_secret(run: SecretOrders) -> Profile:
    """Nobody who sees the last iterate knows where in the secret order the record stood; telling two places apart costs
    twice the earlier uses, which is why many epochs take the gain away.
    """
    passes = run.passes
    distances = _Once(passes.ratio, passes.plan.steps, run.epochs, run.swap)

    def log_delta(epsilon: float) -> float:
        return once_overall(passes, epsilon, _certified(passes, [(0.0, distances)], epsilon))

    return _secret(run, log_delta)


@theorem(
    "shuffled_epochs.fresh_secret",
    title="A fresh secret random order for every epoch, hidden last position",
    setting=SecretOrders,
    gives=Profile,
    algorithms=("shuffled-epochs",),
    reference="dpcalc",
    locator="hidden position in the last epoch, given the orders of the others",
    formula="delta(eps) = E_u (1/l) sum_km a_km delta_G(ln(M_km/a_km); mu_km(u)), mu(u) the optimal allocation for the "
    "uses before the last epoch and those at k, or at k and m",
    conditions=(STEP_WITHIN,),
    promises=(SECRET,),
    assumes=("a fresh order for every epoch, all orders equally likely, independent, and drawn without looking at the "
             "data (no rotation)", *_SECRET_ASSUMES),
    slack="as hidden_position.shuffled; at most shuffled_epochs.fresh",
    slow=True,
    not_monotone_in=("records",),
    uncertified="a certificate found by a search, which is not recorded",
)  # fmt: skip
def fresh_secret(run: SecretOrders) -> Profile:
    """The orders of all epochs but the last may be given away; where the record falls in the last one stays hidden."""
    passes = run.passes

    def log_delta(epsilon: float) -> float:
        public = fresh_overall(passes, epsilon, fresh_mean(passes, epsilon))
        secret = fresh_overall(passes, epsilon, _certified(passes, _fresh_cases(passes, run.swap), epsilon))
        return min(public, secret)

    return _secret(run, log_delta)


def _secret(run: SecretOrders, log_delta: Callable[[float], float]) -> Profile:
    """Return the profile of two passes or more, and of one pass alone where there are no more."""
    if run.epochs == 1:
        return Profile(run.one_pass)
    return Profile(log_delta if run.passes.ratio <= _LARGEST else lambda epsilon: 0.0)
