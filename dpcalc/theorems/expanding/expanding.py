"""Several passes of maps that may expand distances: smooth losses that need not be convex, and Lipschitz losses.

Bounds for any order: composition, and on a bounded domain the noise of the last steps. `expanding_passes` has how far a
step drives two runs apart. Every guarantee rounds up.

Several passes, each in a fresh random order.

Laplace noise, composed: all that is used about the losses is the bound on their gradients.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dpcalc.errors import NotApplicable
from dpcalc.model.quantities import Noise
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Composition, Gdp
from dpcalc.numerics.floats import UNIT, Array, np, quotient_up, up
from dpcalc.theorems.batch_layout import Positions, layout
from dpcalc.theorems.conditions import DOMAIN, GAUSSIAN, GAUSSIAN_NOISE, ONE_RELEASE
from dpcalc.theorems.contraction.laplace import later_ratio
from dpcalc.theorems.expanding.expanding_passes import (
    ALL,
    CLASS,
    EXPANDS,
    LENGTH,
    MAPS,
    MILD,
    RANDOM,
    Expanding,
    carried_anyhow,
    grid,
    growth_of,
    hides_by_place,
    rooms,
)
from dpcalc.theorems.record import Condition, NotNeeded, requires, theorem
from dpcalc.theorems.setting import BATCHES, GAUSSIAN_STEP, Setting

if TYPE_CHECKING:
    from dpcalc.notions.pld import Pair


_USED_ONCE = "each record is used once in every pass, and orders are drawn without looking at the data"


class RandomOrders(Setting):
    """Several passes in random order with Gaussian noise; only the bound on the gradients is known."""

    def ratio(self, size: int) -> float:
        """Return r = Delta/(b sigma) of a use in a batch divided by this size, rounded up."""
        return quotient_up((self.sensitivity,), (float(size), self.noise_std))


class BoundedSteps(Expanding):
    """Steps on a bounded domain: passes, or a number of steps."""

    @functools.cached_property
    def uses(self) -> tuple[int, int, int]:
        """The most uses of a record, the divisor of its smallest batch, and the number of steps between uses."""
        size = self.records if self.batch_size is None else self.batch_size
        if self.steps is not None:
            return self.steps, min(size, self.records), 1
        plan = layout(self.records, size, self.last_batch)
        return self.epochs or 1, plan.least_divisor, plan.steps


@theorem(
    "expanding.composition",
    title="Random orders, composed",
    needs=(*BATCHES, "epochs", *GAUSSIAN_STEP, "loss_class"),
    algorithms=RANDOM,
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
    public_sums=True,
)
def composition(run: RandomOrders) -> Gdp:
    """For any losses and any order, the noise of its own steps hides a record, and these steps compose.

    >>> run = RandomOrders(records=10, batch_size=5, last_batch="own", epochs=9, sensitivity=2.0, noise_std=4.0,
    ...                    loss_class="lipschitz")
    >>> round(composition(run).mu, 12)
    0.3
    """
    return Gdp(up(run.ratio(run.layout.least_divisor) * math.sqrt(run.epochs), 4.0))


def _steps_to_hide(run: BoundedSteps) -> float:
    """Return an estimate (no bound) of the number of sampled steps from which the diameter beats composition."""
    from dpcalc.theorems.sampled import noisy_sgd

    return noisy_sgd.steps_to_reach(run.part(noisy_sgd.SampledSteps), domain(run.changed(steps=10**15)).mu)


@theorem(
    "expanding.domain",
    title="The diameter hidden by the last steps, maps that may expand",
    needs=(
        "records", "sensitivity", "lipschitz", "noise_std", "step_size", "diameter", "loss_class", "smoothness?",
        "strong_convexity?", "regularisation?", "batch_size?", "last_batch?", "epochs?", "steps?",
    ),
    algorithms=ALL,
    reference="dpcalc",
    locator="restart from the diameter, with the shift recursion of the loss class",
    formula="least of r sqrt(uses), of min_m D/(eta sigma sqrt(m)) + (2 L/sigma) sqrt(m), and of min_m sqrt(A_m) + "
    "r sqrt(uses in m steps); A_m in units of eta^2 sigma^2: min_p (D + 2 eta L p)^2/(p + c^-2 + ... + c^(-2(m-p))) "
    "for smooth losses, D^2/S_m + w^2 (1/(q S_1) + ... + 1/(q S_m)), S_i = q^-1 + ... + q^-i, for weakly convex ones "
    "(convex: q = 1, w = 2 eta L)",
    conditions=(GAUSSIAN_NOISE, EXPANDS, MILD, LENGTH),
    assumes=(CLASS, DOMAIN, GAUSSIAN, "order and batches may be public, and are drawn without looking at the data",
             ONE_RELEASE),
    steps_to_hide=_steps_to_hide,
    weakly_convex=True,
)  # fmt: skip
def domain(run: BoundedSteps) -> Gdp:
    """Two runs are never further apart than the diameter, so only the last steps count, however many there are and even
    if every step drives the runs further apart.

    >>> run = BoundedSteps(records=1, sensitivity=2.0, lipschitz=1.0, noise_std=1.0, step_size=0.5, diameter=1.0,
    ...                    loss_class="lipschitz", steps=10**12)
    >>> round(domain(run).mu, 12)
    4.0
    """
    times, size, period = run.uses
    one = quotient_up((run.sensitivity,), (float(size), run.noise_std))
    least = min(one * math.sqrt(times), carried_anyhow(run.reach, run.push))
    if run.growth == math.inf and run.bent is None:
        return Gdp(up(least, 16.0))
    for base in grid():
        for steps in {base, base * period}:
            own = one * math.sqrt(-(-steps // period))
            if own < least:
                least = min(least, run.carried(steps) + own)
    return Gdp(up(least, 16.0))


_FARTHEST = 25.0  # at a larger distance, in units of its noise, a step hides less than 1e-33
_SINGLE, _WIDER, _SETTLED = 48, 1.1, 40.0  # single positions; growth of blocks; where G_k is constant


class FreshPasses(RandomOrders):
    """Several passes, each in a fresh random order, whose steps are Lipschitz maps or on a bounded domain."""

    @property
    def growth(self) -> float | None:
        """The growth ln c >= 0 of a step's Lipschitz factor, rounded up; None if there is none."""
        return growth_of(self.loss_class, self.step_size, self.smoothness, self.strong_convexity)


@theorem(
    "expanding.fresh",
    title="Fresh random orders, pass by pass, maps that expand",
    needs=(
        *BATCHES, "epochs", *GAUSSIAN_STEP, "loss_class", "step_size", "smoothness?", "strong_convexity?",
        "displacement?", "diameter?",
    ),
    algorithms=("shuffled-epochs",),
    reference="dpcalc",
    locator="the curve of one shuffled pass, composed by the law of the privacy loss",
    formula="E-fold composition of the least of sum_k w_k delta_G(eps; r_k/sqrt(G_k)), w_k the share of the records "
    "at k, r_k = Delta/(d_k sigma), G_k = 1 + c^-2 + ... + c^(-2(k-1)), of shuffle.product, and of a use's own noise",
    conditions=(
        GAUSSIAN_NOISE,
        EXPANDS,
        Condition("the losses are smooth, the domain is bounded, or the last batch is short", hides_by_place),
    ),
    assumes=(
        "every pass in a fresh uniformly random order, drawn without looking at the data; the orders may be published",
        "where used: " + DOMAIN, "where used: " + MAPS, GAUSSIAN, "the iterate after every pass may be released",
    ),
    slack="blocks of positions, chords of the curve and the lattice of losses: some hundredths in ln delta",
    slow=True,
    weakly_convex=True,
)  # fmt: skip
def fresh(run: FreshPasses) -> Composition:
    """A use is hidden by the rest of its own pass. Every pass has its own order, so the curve of one pass is
    composed."""
    return Composition([(_pass_pair(run.changed(epochs=1)), run.epochs)])


@functools.lru_cache(maxsize=8)
def _pass_pair(run: FreshPasses) -> Pair:
    """Return the dominating pair of one shuffled pass."""
    from dpcalc.notions import pld, profiles
    from dpcalc.theorems.contraction import shuffle_curves

    plan = run.layout
    own = run.ratio(plan.least_divisor)
    curves = [shuffle_curves.own_step(Noise.GAUSSIAN, own)]
    if later_ratio(run.displacement, run.diameter, run.step_size, run.noise_std) < _FARTHEST:
        assert run.displacement is not None  # else the reach is infinite
        curves.append(
            shuffle_curves.shuffled_product(
                plan, noise=Noise.GAUSSIAN, scale=run.noise_std, sensitivity=run.sensitivity, step_size=run.step_size,
                displacement=run.displacement, diameter=run.diameter,
            )
        )  # fmt: skip
    if run.growth is not None or plan.dropped or len(plan.positions) > 1:
        curves.append(_pass_curve(run))
    if len(curves) == 1:
        raise NotApplicable("a later step hides nothing of what an earlier one left", "a smaller --diameter")
    top = gaussian.epsilon(mu=min(own, 1e6), log_delta_target=-1e5)
    return pld.from_curve(profiles.tabulate(shuffle_curves.least(*curves), max(top, 1e-100)))


def _pass_curve(run: FreshPasses) -> Callable[[Array], Array]:
    """Return the curve of one pass: the mean of delta_G over positions, with blocks at their last position."""
    growth = math.inf if run.growth is None else run.growth
    blocks = [_blocks(alike, growth, run.ratio(alike.divisor)) for alike in run.layout.positions]
    weights = np.concatenate([count for count, _ in blocks]) / run.records
    mu = np.maximum(np.concatenate([block_mu for _, block_mu in blocks]), 1e-100)

    def curve(e: Array) -> Array:
        from dpcalc.numerics.normal_arrays import log_hockey_stick_up

        total = np.full(len(e), -np.inf)
        for weight, block_mu in zip(weights, mu, strict=True):
            total = np.logaddexp(total, log_hockey_stick_up(e, np.full(len(e), block_mu)) + math.log(weight))
        padded: Array = np.minimum(0.0, total + UNIT * (16.0 * len(mu) + 16.0 * np.abs(total)))
        return padded

    return curve


def _blocks(alike: Positions, growth: float, ratio: float) -> tuple[Array, Array]:
    """Return the number of records in each block of equal positions, and mu at its last position, rounded up."""
    last = alike.first + alike.steps - 1
    ends = [alike.first]
    while ends[-1] < last and ends[-1] * growth < _SETTLED:
        ends.append(min(last, max(ends[-1] + 1, int(ends[-1] * _WIDER) if len(ends) > _SINGLE else 0)))
    k = np.array(ends, float)
    count: Array = np.diff(np.append(k, last + 1.0)) * alike.size
    return count, ratio / np.sqrt(rooms(growth, k)) * (1.0 + 16.0 * UNIT)


_LAPLACE = requires(
    "noise = laplace",
    lambda run: run.noise in (None, Noise.LAPLACE),
    NotNeeded("is for Laplace noise, and the noise is Gaussian", "give --laplace-scale, if it is Laplace"),
)


@theorem(
    "expanding.laplace",
    title="Laplace noise, composed",
    needs=("records", "sensitivity", "lipschitz", "noise", "scale", "batch_size?", "last_batch?", "epochs?", "steps?"),
    algorithms=tuple(name + suffix for suffix in ("", "-released") for name in ALL),
    reference="dong2022",
    locator="composition and subsampling without replacement, by the law of the privacy loss",
    formula="Lap(Delta/(b v)) composed once for every use, b the smallest batch; for batches drawn afresh "
    "C_{b/n}(Lap(2 L/(b v))) composed T times",
    conditions=(_LAPLACE, LENGTH),
    assumes=(
        "order and iterates may all be public",
        "fresh Laplace noise in every step, w - step_size (gradient + Z); in several dimensions lipschitz is in the "
        "1-norm",
        "orders and batches are drawn without looking at the data; no convexity, no smoothness, any step size",
    ),
    slack="the lattice of losses, some 1e-4 in ln delta",
    slow=True,
    public_sums=True,
)  # fmt: skip
def laplace(run: Setting) -> Composition:
    """Each use of the record is a Laplace mechanism, for any losses and any order; all iterates may be public."""
    from dpcalc.notions import pld

    size = run.records if run.batch_size is None else run.batch_size
    if run.steps is not None:
        times, divisor, rate = run.steps, min(size, run.records), min(1.0, size / run.records)
    else:
        times, divisor, rate = run.epochs or 1, layout(run.records, size, run.last_batch).least_divisor, 1.0
    if rate == 1.0:
        ratio = quotient_up((run.sensitivity,), (float(divisor), run.scale))
        if ratio > 1e15:
            raise NotApplicable("gives no finite epsilon here", "more noise")
        return Composition([(pld.laplace(ratio=max(ratio, 1e-30)), times)])
    ratio = quotient_up((2.0, run.lipschitz), (float(divisor), run.scale))
    return Composition([(pld.from_curve(_sampled_laplace(ratio, up(rate))), times)])


def _sampled_laplace(ratio: float, rate: float) -> Callable[[Array], Array]:
    """Return the curve p h(ln(1 + (e^eps - 1)/p), r) of a step that uses the record with probability p."""
    from dpcalc.theorems.contraction.recursion import log_one_steps

    def curve(e: Array) -> Array:
        with np.errstate(over="ignore"):
            inner = np.where(e < 1.0, np.log1p(np.expm1(np.minimum(e, 1.0)) / rate), e - math.log(rate))
            inner = np.where(e < 1.0, inner, inner + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(e, 1.0))))
        shifted = np.maximum(0.0, inner - UNIT * (16.0 * np.abs(inner) + 16.0 * -math.log(rate) + 16.0))
        value: Array = log_one_steps(Noise.LAPLACE, shifted, ratio) + (math.log(rate) + 4.0 * UNIT)
        return np.minimum(0.0, value)

    return curve
