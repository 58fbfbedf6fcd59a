"""Several passes of maps that may drive two runs apart: smooth losses that need not be convex, and Lipschitz ones.

The shifted-divergence theorem asks no more of a step than how far it leaves two points z apart: at most F(z), and the
shift may be spent as z_t = F(z_(t-1)) - a_t. With s = eta Delta/b for a use of the record, F(z) is

    smooth, or convex and smooth with a long step      c z, and s more where the record is used, c > 1
    convex and Lipschitz                               sqrt(z^2 + (2 eta L)^2), and s more where the record is used
    Lipschitz only, which covers clipped gradients     z + 2 eta L, whether the record is used or not

On a domain of diameter D two runs are never further apart than that, however long they are, and the last m steps hide
D at a cost that `_carried` has for each of the three. Before that, or without a domain, a use is hidden by the steps up
to the next one.

Every guarantee rounds up.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dpcalc.errors import NotApplicable
from dpcalc.model import loss_class as loss
from dpcalc.model.algorithm import Order, Release, in_one_random_order
from dpcalc.model.choices import LastBatch, LossClass, Noise
from dpcalc.model.run import Run
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Composition, Gdp, Profile
from dpcalc.numerics.decreasing_sums import TermBounds, log_sum_decreasing_up
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.numerics.quotients import quotient_up
from dpcalc.theorems.batch_layout import Layout, layout
from dpcalc.theorems.conditions import (
    BATCH_WITHIN,
    DOMAIN,
    GAUSSIAN,
    GAUSSIAN_NOISE,
    INDEX_IN_RANGE,
    LIPSCHITZ,
    ONE_RELEASE,
)
from dpcalc.theorems.contraction_powers import variance
from dpcalc.theorems.privacy import noisy_sgd
from dpcalc.theorems.privacy.contraction import expands_nothing, later_ratio
from dpcalc.theorems.record import Condition, NotNeeded, Obstacle, Setting, Unmet, lacking, needs, theorem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpcalc.notions.pld import Pair

    Array = NDArray[np.float64]

_RANDOM = ("shuffle-once", "rotation-epochs", "shuffled-epochs")
_ALL = ("cyclic", *_RANDOM, "noisy-sgd", "noisy-gd")
_USED_ONCE = "each record is used once in every pass, and orders are drawn without looking at the data"
_CLASS = "the losses are of the stated class on the domain"
_MAPS = "the losses are smooth, so that every step's map is Lipschitz with a factor above 1"
_LARGEST = 1e90  # a ratio beyond this one hides nothing


# --- conditions -------------------------------------------------------------------------------------------------------


def _expands(run: Run) -> Obstacle | None:
    if run.loss_class == LossClass.CONVEX_SMOOTH:
        if run.smoothness is None or run.step_size is None:
            return lacking(run, "step_size", "smoothness")
        if expands_nothing(LossClass.CONVEX_SMOOTH, run.step_size, run.smoothness):
            return NotNeeded(
                "is for steps that may drive two runs apart, and these do not",
                "see the bounds for convex smooth losses",
            )
    return None


def _mild_regulariser(run: Run) -> Obstacle | None:
    weight, eta = run.regularisation, run.step_size
    if not weight or eta is None or eta * weight <= 1.0 - 1e-12:
        return None
    return Unmet("step_size times regularisation exceeds 1", f"use --step-size <= {0.999 / weight:.6g}")


def _hides_by_place(run: Run) -> Obstacle | None:
    """Return an obstacle where a record is as badly off at every place of a pass."""
    bounded = run.algorithm.order is Order.SHUFFLE and run.diameter is not None and run.displacement is not None
    smooth = run.loss_class in loss.LIPSCHITZ_MAPS and run.smoothness is not None
    if bounded or smooth or run.loss_class is None:
        return None
    if run.records and run.batch_size and run.records % run.batch_size:
        return None
    if run.algorithm.order is not Order.SHUFFLE:
        return NotNeeded("is for smooth losses, or a short last batch", "give --smoothness")
    return NotNeeded("is for smooth losses, a bounded domain, or a short last batch", "give --smoothness or --diameter")


def _length_known(run: Run) -> Obstacle | None:
    return None if run.epochs is not None or run.steps is not None else needs("epochs")


def _laplace_noise(run: Run) -> Obstacle | None:
    if run.noise in (None, Noise.LAPLACE):
        return None
    return NotNeeded("is for Laplace noise, and the noise is Gaussian", "give --laplace-scale, if it is Laplace")


EXPANDS = Condition("loss_class is smooth, convex or lipschitz, or step_size > 2/smoothness", _expands)
_MILD = Condition("step_size regularisation <= 1", _mild_regulariser)
_LAPLACE = Condition("noise = laplace", _laplace_noise)
_PLACED = Condition("the losses are smooth, or the last batch is short", _hides_by_place)
_LENGTH = Condition("epochs or steps is known", _length_known)


# --- settings ---------------------------------------------------------------------------------------------------------


class RandomOrders(Setting):
    """Several passes in random order with Gaussian noise, of losses of which nothing is known but their gradients.

    Attributes:
        records, batch_size: n and b >= 1.
        last_batch: what a short last batch is divided by, or whether it is left out.
        epochs: E >= 1.
        sensitivity: gradient sensitivity Delta >= 0.
        noise_std: sigma > 0.
        loss_class: see `dpcalc.model.loss_class`.
    """

    records: int
    batch_size: int
    last_batch: LastBatch
    epochs: int
    sensitivity: float
    noise_std: float
    loss_class: LossClass

    @functools.cached_property
    def plan(self) -> Layout:
        """How the records of a pass fall into steps."""
        return layout(self.records, self.batch_size, self.last_batch)

    def ratio(self, size: int) -> float:
        """Return r = Delta/(b sigma) of a use in a batch divided by this size, rounded up."""
        return quotient_up((self.sensitivity,), (float(size), self.noise_std))


class BoundedSteps(Setting):
    """Steps on a bounded domain: passes, or a number of steps.

    Attributes:
        records: n >= 1.
        sensitivity, lipschitz: Delta >= 0, and L of every record's gradient.
        noise_std, step_size: sigma > 0 and eta > 0.
        diameter: D > 0.
        loss_class: see `dpcalc.model.loss_class`.
        smoothness, strong_convexity: beta >= m >= 0, where the losses are smooth.
        batch_size: b; all records where unknown.
        last_batch: what a short last batch is divided by, or whether it is left out.
        epochs: E, of passes that use each record once.
        steps: T, of steps that may all use the record; it counts where both are known.
    """

    records: int
    sensitivity: float
    lipschitz: float
    noise_std: float
    step_size: float
    diameter: float
    loss_class: LossClass
    smoothness: float | None = None
    strong_convexity: float = 0.0
    batch_size: int | None = None
    last_batch: LastBatch = LastBatch.OWN
    epochs: int | None = None
    steps: int | None = None

    @functools.cached_property
    def uses(self) -> tuple[int, int, int]:
        """How often the record is used at most, by how much its smallest batch is divided, and steps to the next."""
        size = self.records if self.batch_size is None else self.batch_size
        if self.steps is not None:
            return self.steps, min(size, self.records), 1
        plan = layout(self.records, size, self.last_batch)
        return self.epochs or 1, plan.least_divisor, plan.steps

    @functools.cached_property
    def reach(self) -> float:
        """D/(eta sigma), rounded up."""
        return quotient_up((self.diameter,), (self.step_size, self.noise_std))

    @functools.cached_property
    def growth(self) -> float | None:
        """The growth ln c >= 0 of a step's Lipschitz factor, rounded up; None where the maps have none."""
        return _growth(self.loss_class, self.step_size, self.smoothness, self.strong_convexity)


class ExpandingPasses(Setting):
    """Passes whose steps may drive two runs apart.

    Attributes:
        records, batch_size: n and b >= 1.
        epochs: E >= 1.
        sensitivity: gradient sensitivity Delta >= 0.
        noise_std, step_size: sigma > 0 and eta > 0.
        loss_class: see `dpcalc.model.loss_class`.
        smoothness, strong_convexity: beta >= m >= 0, where the losses are smooth.
        diameter: D > 0, if the domain is bounded.
    """

    records: int
    batch_size: int
    epochs: int
    sensitivity: float
    noise_std: float
    step_size: float
    loss_class: LossClass
    smoothness: float | None = None
    strong_convexity: float = 0.0
    diameter: float = math.inf

    @functools.cached_property
    def growth(self) -> float:
        """The growth ln c >= 0 of a step's Lipschitz factor, rounded up; inf where it has none: nothing is hidden."""
        found = _growth(self.loss_class, self.step_size, self.smoothness, self.strong_convexity)
        return math.inf if found is None else found

    @functools.cached_property
    def reach(self) -> float:
        """D/(eta sigma), rounded up; inf where the domain is unbounded."""
        return quotient_up((self.diameter,), (self.step_size, self.noise_std)) if self.diameter < math.inf else math.inf

    def ratio(self, size: int) -> float:
        """Return r = Delta/(b sigma) of a use in a batch divided by this size, rounded up."""
        return quotient_up((self.sensitivity,), (float(size), self.noise_std))

    def earlier(self, ratio: float, period: int) -> float:
        """Return what all uses but the last cost, one a pass: the square of a GDP parameter, rounded up.

        Each is hidden by its own pass; or the diameter, from right after a use on, and j more uses are.
        """
        pass_room = _room(self.growth, period)
        one = ratio / math.sqrt(pass_room)
        least = (self.epochs - 1) * one * one
        if self.reach < math.inf and self.epochs > 1:
            for j in (0, *_grid()):
                steps = (j + 1) * period - 1
                if steps:
                    mu = _carried(self.reach, self.growth, steps) + one * math.sqrt(j)
                    least = min(least, mu * mu)
        return up(least, 32.0)


class FixedPasses(ExpandingPasses):
    """The same, in one fixed order.

    Attributes:
        index: 1-based position of the record, 1 <= index <= records.
        last_batch: what becomes of the records left over.
    """

    index: int
    last_batch: LastBatch = LastBatch.OWN

    @functools.cached_property
    def plan(self) -> Layout:
        """How the records of a pass fall into steps."""
        return layout(self.records, self.batch_size, self.last_batch)


class ShuffledPasses(ExpandingPasses):
    """The same, in random order.

    Attributes:
        last_batch: what a short last batch is divided by, or whether it is left out.
    """

    last_batch: LastBatch

    @functools.cached_property
    def plan(self) -> Layout:
        """How the records of a pass fall into steps."""
        return layout(self.records, self.batch_size, self.last_batch)


def _growth(loss_class: LossClass, step_size: float, smoothness: float | None, strong_convexity: float) -> float | None:
    rate = loss.rate(
        loss_class=loss_class, step_size=step_size, smoothness=smoothness, strong_convexity=strong_convexity
    )
    return None if rate is None else max(0.0, -rate)


# --- what the last steps hide -----------------------------------------------------------------------------------------


def _grid() -> Iterator[int]:
    """Yield the whole numbers of at most three binary digits, up to 1e18: every count of steps is near one of them."""
    yield from (1, 2, 3)
    for power in range(58):
        yield from (j << power for j in (4, 5, 6, 7))


def _room(growth: float, steps: int) -> float:
    """Return 1 + c^-2 + ... + c^(-2 (steps-1)), rounded down."""
    return variance(growth if growth > 1e-200 else 0.0, steps) * (1.0 - 64.0 * UNIT)


def _carried(reach: float, growth: float, steps: int) -> float:
    """Return mu of the diameter hidden by so many steps whose maps are c-Lipschitz, c >= 1, rounded up."""
    if growth > 700.0:
        return math.inf
    return up(reach * math.exp(growth) / math.sqrt(_room(growth, steps)), 16.0 + 2.0 * growth)


def _harmonic(terms: int) -> float:
    """Return 1 + 1/2 + ... + 1/terms, rounded up."""
    if terms <= 64:
        return up(math.fsum(1.0 / j for j in range(1, terms + 1)), 2.0)
    return up(math.log(terms) + 0.5772156649015329 + 0.5 / terms, 8.0)


def _carried_convex(reach: float, push: float, steps: int) -> float:
    """Return mu of the diameter hidden by so many steps of convex losses, push = 2 L/sigma: sqrt(D'^2/m + push^2 H_m).

    Rounded up.
    """
    return up(math.hypot(reach / math.sqrt(steps), push * math.sqrt(_harmonic(steps))), 16.0)


def _carried_anyhow(reach: float, push: float) -> float:
    """Return the least over m of D'/sqrt(m) + push sqrt(m): the diameter, and what m steps add; rounded up."""
    best = min(reach / push if push else math.inf, 1e15)
    tried = {max(1, math.floor(best)), max(1, math.ceil(best))}
    return min(up(reach / math.sqrt(m) + push * math.sqrt(m), 16.0) for m in tried)


# --- theorems ---------------------------------------------------------------------------------------------------------


@theorem(
    "expanding.composition",
    title="Random orders, composed",
    setting=RandomOrders,
    gives=Gdp,
    algorithms=_RANDOM,
    reference="dong2022",
    locator="composition of Gaussian mechanisms, one a pass",
    formula="mu = (Delta/(b sigma)) sqrt(E), b the smallest batch",
    conditions=(EXPANDS,),
    assumes=(
        "order and iterates may all be public",
        _USED_ONCE,
        GAUSSIAN,
        "no convexity, no smoothness, any step size",
    ),
)
def composition(run: RandomOrders) -> Gdp:
    """Whatever the losses and the order, the noise of its own steps hides a record, and that composes.

    >>> run = RandomOrders(records=10, batch_size=5, last_batch="own", epochs=9, sensitivity=2.0, noise_std=4.0,
    ...                    loss_class=LossClass.LIPSCHITZ)
    >>> round(composition(run).mu, 12)
    0.3
    """
    return Gdp(up(run.ratio(run.plan.least_divisor) * math.sqrt(run.epochs), 4.0))


@theorem(
    "expanding.domain",
    title="The diameter hidden by the last steps, maps that may expand",
    setting=BoundedSteps,
    gives=Gdp,
    algorithms=_ALL,
    reference="dpcalc",
    locator="restart from the diameter, with the shift recursion of the loss class",
    formula="least of r sqrt(uses), of min_m D/(eta sigma sqrt(m)) + (2 L/sigma) sqrt(m), and of min_m sqrt(A_m) + "
    "r sqrt(uses in m steps); A_m = (D/(eta sigma))^2/(c^-2 + ... + c^(-2m)) for smooth losses, "
    "(D/(eta sigma))^2/m + (2 L/sigma)^2 (1 + 1/2 + ... + 1/m) for convex ones",
    conditions=(GAUSSIAN_NOISE, EXPANDS, _MILD, _LENGTH),
    assumes=(_CLASS, DOMAIN, GAUSSIAN, "order and batches may be public, and are drawn without looking at the data",
             ONE_RELEASE),
)  # fmt: skip
def domain(run: BoundedSteps) -> Gdp:
    """Two runs are never further apart than the diameter, so that only the last steps count, however many there are,
    even where every step drives the runs further apart.

    >>> run = BoundedSteps(records=1, sensitivity=2.0, lipschitz=1.0, noise_std=1.0, step_size=0.5, diameter=1.0,
    ...                    loss_class=LossClass.LIPSCHITZ, steps=10**12)
    >>> round(domain(run).mu, 12)
    4.0
    """
    times, size, period = run.uses
    one = quotient_up((run.sensitivity,), (float(size), run.noise_std))
    push = quotient_up((2.0, run.lipschitz), (run.noise_std,))
    least = min(one * math.sqrt(times), _carried_anyhow(run.reach, push))
    convex = run.loss_class in (LossClass.CONVEX, LossClass.CONVEX_SMOOTH)
    for base in _grid():
        for steps in {base, base * period}:
            own = one * math.sqrt(-(-steps // period))
            if run.growth is not None:
                least = min(least, _carried(run.reach, run.growth, steps) + own)
            if convex:
                least = min(least, _carried_convex(run.reach, push, steps) + own)
    return Gdp(up(least, 16.0))


@theorem(
    "expanding.cyclic",
    title="Cyclic passes of maps that expand",
    setting=FixedPasses,
    gives=Gdp,
    algorithms=("cyclic",),
    reference="dpcalc",
    locator="shifted interpolation, each use hidden by the steps up to the next one; restart from the diameter",
    formula="mu^2 = B + r^2/G_k, B = (E-1) r^2/G_l or, on a domain, (sqrt(A_m) + r sqrt(j/G_l))^2, m = (j+1) l - 1; "
    "G_j = 1 + c^-2 + ... + c^(-2(j-1)), A_m = (c D/(eta sigma))^2/G_m, c = 1 + eta beta or eta beta - 1",
    conditions=(INDEX_IN_RANGE, GAUSSIAN_NOISE, LIPSCHITZ, EXPANDS),
    assumes=("the same fixed order in every pass", _MAPS, GAUSSIAN, ONE_RELEASE),
)
def cyclic(run: FixedPasses) -> Gdp:
    """The noise of a pass hides a use even if every step drives two runs apart, as long as it does so slowly.

    It is never above `multi_epoch.composition` but for rounding.

    >>> run = FixedPasses(records=5, index=1, batch_size=1, epochs=9, sensitivity=2.0, noise_std=4.0, step_size=1e-6,
    ...                   loss_class=LossClass.SMOOTH, smoothness=1.0)
    >>> round(cyclic(run).mu, 4)
    0.6708
    """
    place, period = run.plan.place(run.index), run.plan.steps
    one, tail = run.ratio(place.divisor), place.tail
    mu = math.hypot(math.sqrt(run.earlier(one, period)), one / math.sqrt(_room(run.growth, tail)))
    if tail > 1:
        mu = min(mu, _carried(run.reach, run.growth, tail - 1))
    return Gdp(up(mu, 16.0))


@theorem(
    "expanding.once",
    title="One random order for all epochs, maps that expand",
    setting=ShuffledPasses,
    gives=Profile,
    algorithms=in_one_random_order(Release.LAST),
    reference="dpcalc",
    locator="expanding.cyclic for each position, averaged",
    formula="delta(eps) = (1/l) sum_{k=1}^{l} delta_G(eps; mu_k), mu_k^2 = B + r^2/G_k as in expanding.cyclic; G_k = 1 "
    "for losses that are not smooth",
    conditions=(GAUSSIAN_NOISE, EXPANDS, _PLACED),
    assumes=("one order for all epochs, all orders (or rotations) equally likely and drawn without looking at the "
             "data; it may be published", "where used: " + _MAPS, GAUSSIAN, ONE_RELEASE),
    slack="below 0.3 % of delta",
)  # fmt: skip
def once(run: ShuffledPasses) -> Profile:
    """The record keeps its place in every epoch; few places are so late that too little noise follows the last use.

    >>> run = ShuffledPasses(records=100, batch_size=1, last_batch="own", epochs=2, sensitivity=2.0, noise_std=2.0,
    ...                      step_size=0.01, loss_class=LossClass.SMOOTH, smoothness=1.0)
    >>> round(once(run).profile(1.0), 2)
    -6.13
    """
    return Profile(lambda epsilon: _positions(run, epsilon))


def _positions(run: ShuffledPasses, epsilon: float) -> float:
    """Return ln of the mean of delta_G over all places of a record."""
    plan = run.plan
    ratio = run.ratio(plan.size)
    if max(ratio, run.ratio(plan.least_divisor)) > _LARGEST:
        return 0.0
    earlier = run.earlier(ratio, plan.steps)

    def terms(k: Array) -> TermBounds:
        import numpy as np

        from dpcalc.numerics.normal_arrays import log_hockey_stick_up

        mu = np.minimum(np.sqrt(earlier + ratio * ratio / _rooms(run.growth, k)) * (1.0 + 16.0 * UNIT), 1e100)
        logs = log_hockey_stick_up(min(epsilon, _LARGEST), np.maximum(mu, 1e-100))[None]
        return TermBounds(logs, logs, np.zeros((1, len(k)), bool))

    full = log_sum_decreasing_up(terms, 1 + plan.after, plan.steps) - math.log(plan.full)
    if not plan.held < run.records:
        return min(0.0, full)
    total = full + math.log(plan.full * plan.held / run.records)
    if plan.short:
        own = run.ratio(plan.divisor)
        mu = up(math.sqrt(run.earlier(own, plan.steps) + own * own), 16.0)
        total = log_add_exp(total, gaussian.log_delta(mu=mu, epsilon=epsilon) + math.log(plan.short / run.records))
    return min(0.0, total + UNIT * (8.0 * abs(total) + 64.0))


def _rooms(growth: float, steps: Array) -> Array:
    """Return `_room` of an array."""
    import numpy as np

    if growth <= 1e-200:
        return steps * (1.0 - 64.0 * UNIT)
    rooms: Array = np.expm1(-2.0 * growth * steps) / math.expm1(-2.0 * growth) * (1.0 - 64.0 * UNIT)
    return rooms


# --- fresh orders -----------------------------------------------------------------------------------------------------


class FreshPasses(RandomOrders):
    """Several passes, each in a fresh random order, whose steps are Lipschitz maps or on a bounded domain.

    Attributes:
        step_size: eta > 0.
        smoothness, strong_convexity: beta >= m >= 0, where the losses are smooth.
        displacement, diameter: c >= 0 and D > 0 of a bounded domain, if any.
    """

    step_size: float
    smoothness: float | None = None
    strong_convexity: float = 0.0
    displacement: float | None = None
    diameter: float = math.inf

    @property
    def growth(self) -> float | None:
        """The growth ln c >= 0 of a step's Lipschitz factor, rounded up; None where the maps have none."""
        return _growth(self.loss_class, self.step_size, self.smoothness, self.strong_convexity)


@theorem(
    "expanding.fresh",
    title="Fresh random orders, pass by pass, maps that expand",
    setting=FreshPasses,
    gives=Composition,
    algorithms=("shuffled-epochs",),
    reference="dpcalc",
    locator="the curve of one shuffled pass, composed by the law of the privacy loss",
    formula="E-fold composition of the least of (1/l) sum_k delta_G(eps; r/sqrt(G_k)), G_k = 1 + c^-2 + ... + "
    "c^(-2(k-1)), of shuffle.product, and of the record's own noise",
    conditions=(
        GAUSSIAN_NOISE,
        EXPANDS,
        Condition("the losses are smooth, the domain is bounded, or the last batch is short", _hides_by_place),
    ),
    assumes=(
        "every pass in a fresh uniformly random order, drawn without looking at the data; the orders may be published",
        "where used: " + DOMAIN, "where used: " + _MAPS, GAUSSIAN, "the iterate after every pass may be released",
    ),
    slack="blocks of positions, chords of the curve and the lattice of losses: some hundredths in ln delta",
    slow=True,
    uncertified="composed by the law of the privacy loss on a lattice",
)  # fmt: skip
def fresh(run: FreshPasses) -> Composition:
    """A use is hidden by what is left of its own pass. Every pass has its own order: the curve of one is composed."""
    return Composition([(_pass_pair(run.changed(epochs=1)), run.epochs)])


@functools.lru_cache(maxsize=8)
def _pass_pair(run: FreshPasses) -> Pair:
    """Return the pair of laws of one shuffled pass."""
    from dpcalc.notions import pld, profiles
    from dpcalc.theorems.privacy import shuffle_curves

    plan = run.plan
    own = run.ratio(plan.least_divisor)
    curves = [shuffle_curves.own_step(Noise.GAUSSIAN, own)]
    reach = later_ratio(run.displacement, run.diameter, run.step_size, run.noise_std)
    if reach < _FARTHEST:
        assert run.displacement is not None  # else the reach is infinite
        curves.append(
            shuffle_curves.shuffled_product(
                plan, noise=Noise.GAUSSIAN, scale=run.noise_std, sensitivity=run.sensitivity, step_size=run.step_size,
                displacement=run.displacement, diameter=run.diameter,
            )
        )  # fmt: skip
    if run.growth is not None or plan.short:
        curves.append(_pass_curve(plan, run.ratio(plan.size), own, math.inf if run.growth is None else run.growth))
    if len(curves) == 1:
        raise NotApplicable("a later step hides nothing of what an earlier one left", "a smaller --diameter")
    top = gaussian.epsilon(mu=min(own, 1e6), log_delta_target=-1e5)
    return pld.from_curve(profiles.tabulate(shuffle_curves.least(*curves), max(top, 1e-100)))


_FARTHEST = 25.0  # a step that leaves points further apart, in units of its noise, hides less than 1e-33
_SINGLE, _WIDER, _SETTLED = 48, 1.1, 40.0  # positions in blocks of their own; growth of blocks; where G_k is constant


def _pass_curve(plan: Layout, ratio: float, short: float, growth: float) -> Callable[[Array], Array]:
    """Return the curve of one pass: the mean of delta_G over positions, blocks of them at their latest."""
    import numpy as np

    first, last = 1 + plan.after, plan.steps
    ends = [first]
    while ends[-1] < last and ends[-1] * growth < _SETTLED:
        ends.append(min(last, max(ends[-1] + 1, int(ends[-1] * _WIDER) if len(ends) > _SINGLE else 0)))
    k = np.array(ends, float)
    weights = np.diff(np.append(k, last + 1.0)) * (plan.held / plan.records)
    mu = np.maximum(ratio / np.sqrt(_rooms(growth, k)) * (1.0 + 16.0 * UNIT), 1e-100)
    if plan.short:
        weights, mu = np.append(weights, plan.short / plan.records), np.append(mu, max(short, 1e-100))

    def curve(e: Array) -> Array:
        from dpcalc.numerics.normal_arrays import log_hockey_stick_up

        total = np.full(len(e), -np.inf)
        for weight, each in zip(weights, mu, strict=True):
            total = np.logaddexp(total, log_hockey_stick_up(e, np.full(len(e), each)) + math.log(weight))
        padded: Array = np.minimum(0.0, total + UNIT * (16.0 * len(mu) + 16.0 * np.abs(total)))
        return padded

    return curve


# --- batches drawn afresh ---------------------------------------------------------------------------------------------


class SampledSteps(Setting):
    """Steps on fresh uniform batches on a bounded domain, of losses that are smooth or convex.

    Attributes:
        records, batch_size: n and b <= n.
        steps: T, 1 to 1e15.
        lipschitz: L, bound on the norm of a record's gradient.
        noise_std, step_size: sigma > 0 and eta > 0.
        diameter: D > 0.
        loss_class: ``smooth``, ``convex``, or ``convex-smooth`` with step_size > 2/smoothness.
        smoothness, strong_convexity: beta >= m >= 0, where the losses are smooth.
    """

    records: int
    batch_size: int
    steps: int
    lipschitz: float
    noise_std: float
    step_size: float
    diameter: float
    loss_class: LossClass
    smoothness: float | None = None
    strong_convexity: float = 0.0

    def carried(self, steps: int) -> float:
        """Return mu of the diameter hidden by the noise of so many steps, rounded up."""
        reach = quotient_up((self.diameter,), (self.step_size, self.noise_std))
        growth = _growth(self.loss_class, self.step_size, self.smoothness, self.strong_convexity)
        ways = [] if growth is None else [_carried(reach, growth, steps)]
        if self.loss_class in (LossClass.CONVEX, LossClass.CONVEX_SMOOTH):
            ways.append(_carried_convex(reach, quotient_up((2.0, self.lipschitz), (self.noise_std,)), steps))
        return min(ways)


def _hides_sampled(run: Run) -> Obstacle | None:
    if run.loss_class == LossClass.LIPSCHITZ:
        return NotNeeded("is for smooth or convex losses", "of merely Lipschitz ones expanding.domain speaks")
    return lacking(run, "smoothness") if run.loss_class == LossClass.SMOOTH and run.smoothness is None else None


@theorem(
    "expanding.sampled",
    title="Subsampled steps with hidden iterates, maps that may expand",
    setting=SampledSteps,
    gives=Composition,
    algorithms=("noisy-sgd",),
    reference="dpcalc",
    locator="as noisy_sgd.hidden, with the shift recursion of the loss class",
    formula="G(sqrt(A_m/q)) with C_{b/n}(G(2 L/(b sigma sqrt(1-q)))) composed m times, A_m as in expanding.domain",
    conditions=(
        BATCH_WITHIN, GAUSSIAN_NOISE, EXPANDS, _MILD, Condition("loss_class is smooth or convex", _hides_sampled),
    ),
    assumes=("every step uses a fresh uniform batch of batch_size records, drawn without replacement", _CLASS, DOMAIN,
             GAUSSIAN, ONE_RELEASE),
    slow=True,
    slack="the split is optimised for a Gaussian approximation, and evaluated exactly",
    not_monotone_in=("records", "batch_size"),
    uncertified="composed by the law of the privacy loss on a lattice",
)  # fmt: skip
def sampled(run: SampledSteps) -> Composition:
    """What was done before the last m steps is at most the diameter away, and a share of their noise hides that.

    It is the plain composition where hiding does not help.
    """
    from dpcalc.notions import pld

    mu = noisy_sgd.step_ratio(run.lipschitz, run.noise_std, run.batch_size)
    plan = best_split(run)
    if plan is None:
        return Composition([(noisy_sgd.sampled(mu, run.records, run.batch_size), run.steps)])
    hidden = up(run.carried(plan.composed) / math.sqrt(plan.fraction), 8.0)
    step = noisy_sgd.sampled(noisy_sgd.sample_mu(mu, plan.fraction), run.records, run.batch_size)
    return Composition([(pld.gaussian(mu=max(hidden, 1e-30)), 1), (step, plan.composed)])


def steps_to_hide(run: SampledSteps) -> float:
    """Return about the number of steps from which hiding the early ones beats composition; no bound. inf for never."""
    composed = run.part(noisy_sgd.SampledSteps)
    single = noisy_sgd.use_cost(composed.ratio, run.batch_size / run.records)
    return noisy_sgd.steps_to_reach(composed, min(run.carried(m) + math.sqrt(m * single) for m in _grid()))


def best_split(run: SampledSteps) -> noisy_sgd.Plan | None:
    """Return the plan that is best by a central limit approximation of the uses; None for the plain composition."""
    mu, rate = noisy_sgd.step_ratio(run.lipschitz, run.noise_std, run.batch_size), run.batch_size / run.records
    single = noisy_sgd.use_cost(mu, rate)
    least, best = run.steps * single, None
    for steps in _grid():
        if steps >= run.steps:
            break
        whole = run.carried(steps)
        balanced = whole / (whole + math.sqrt(steps * single))
        for fraction in (balanced, 0.6 * balanced, 0.3 * balanced):
            if not 1e-12 < fraction < 1.0 - 1e-12 or whole > 1e7 * math.sqrt(fraction):
                continue
            cost = whole * whole / fraction + steps * noisy_sgd.use_cost(mu / math.sqrt(1.0 - fraction), rate)
            if cost < least:
                least, best = cost, noisy_sgd.Plan(steps, steps, fraction)
    return best


# --- Laplace noise ----------------------------------------------------------------------------------------------------


class LaplaceSteps(Setting):
    """Passes or steps with Laplace noise, of losses of which nothing is known but their gradients.

    Attributes:
        records: n >= 1.
        sensitivity, lipschitz: Delta >= 0, and L of every record's gradient, in the 1-norm in several dimensions.
            Batches with the record and without differ in a real one, by 2 L.
        noise, scale: ``laplace`` and its scale v > 0.
        batch_size: b; all records where unknown.
        last_batch: what a short last batch is divided by, or whether it is left out.
        epochs: E, of passes that use each record once.
        steps: T, of steps on all records or on a fresh uniform batch; it counts where both are known.
    """

    records: int
    sensitivity: float
    lipschitz: float
    noise: Noise
    scale: float
    batch_size: int | None = None
    last_batch: LastBatch = LastBatch.OWN
    epochs: int | None = None
    steps: int | None = None


@theorem(
    "expanding.laplace",
    title="Laplace noise, composed",
    setting=LaplaceSteps,
    gives=Composition,
    algorithms=tuple(name + suffix for suffix in ("", "-released") for name in _ALL),
    reference="dong2022",
    locator="composition and subsampling without replacement, by the law of the privacy loss",
    formula="Lap(Delta/(b v)) composed once for every use, b the smallest batch; for batches drawn afresh "
    "C_{b/n}(Lap(2 L/(b v))) composed T times",
    conditions=(_LAPLACE, _LENGTH),
    assumes=(
        "order and iterates may all be public",
        "fresh Laplace noise in every step, w - step_size (gradient + Z); in several dimensions lipschitz is in the "
        "1-norm",
        "orders and batches are drawn without looking at the data; no convexity, no smoothness, any step size",
    ),
    slack="the lattice of losses, some 1e-4 in ln delta",
    slow=True,
    uncertified="composed by the law of the privacy loss on a lattice",
)  # fmt: skip
def laplace(run: LaplaceSteps) -> Composition:
    """Each use of the record is a Laplace mechanism, whatever the losses and the order; all iterates may be seen."""
    from dpcalc.notions import pld

    size = run.records if run.batch_size is None else run.batch_size
    if run.steps is not None:
        times, divisor, rate = run.steps, min(size, run.records), min(1.0, size / run.records)
    else:
        plan = layout(run.records, size, run.last_batch)
        times, divisor, rate = run.epochs or 1, plan.least_divisor, 1.0
    if rate == 1.0:
        ratio = quotient_up((run.sensitivity,), (float(divisor), run.scale))
        if ratio > 1e15:
            raise NotApplicable("gives no finite epsilon here", "more noise")
        return Composition([(pld.laplace(ratio=max(ratio, 1e-30)), times)])
    ratio = quotient_up((2.0, run.lipschitz), (float(divisor), run.scale))
    return Composition([(pld.from_curve(_sampled_laplace(ratio, up(rate))), times)])


def _sampled_laplace(ratio: float, rate: float) -> Callable[[Array], Array]:
    """Return the curve p h(ln(1 + (e^eps - 1)/p), r) of a step that uses the record with probability p."""
    import numpy as np

    from dpcalc.theorems.privacy.recursion import log_one_steps

    def curve(e: Array) -> Array:
        with np.errstate(over="ignore"):
            inner = np.where(e < 1.0, np.log1p(np.expm1(np.minimum(e, 1.0)) / rate), e - math.log(rate))
            inner = np.where(e < 1.0, inner, inner + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(e, 1.0))))
        shifted = np.maximum(0.0, inner - UNIT * (16.0 * np.abs(inner) + 16.0 * -math.log(rate) + 16.0))
        value: Array = log_one_steps(Noise.LAPLACE, shifted, ratio) + (math.log(rate) + 4.0 * UNIT)
        return np.minimum(0.0, value)

    return curve
