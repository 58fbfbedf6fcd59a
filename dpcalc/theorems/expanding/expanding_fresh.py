"""Several passes, each in a fresh random order, of maps that may drive two runs apart."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dpcalc.errors import NotApplicable
from dpcalc.model.choices import Noise
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Composition
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import UNIT
from dpcalc.theorems.batch_layout import Positions
from dpcalc.theorems.conditions import DOMAIN, GAUSSIAN, GAUSSIAN_NOISE
from dpcalc.theorems.contraction.noisy_pass import later_ratio
from dpcalc.theorems.expanding.expanding import RandomOrders
from dpcalc.theorems.expanding.expanding_maps import EXPANDS, MAPS, growth_of, hides_by_place, rooms
from dpcalc.theorems.record import Condition, theorem
from dpcalc.theorems.setting import BATCHES, GAUSSIAN_STEP

if TYPE_CHECKING:
    from dpcalc.notions.pld import Pair

_FARTHEST = 25.0  # a step that leaves points further apart, in units of its noise, hides less than 1e-33
_SINGLE, _WIDER, _SETTLED = 48, 1.1, 40.0  # positions in blocks of their own; growth of blocks; where G_k is constant


class FreshPasses(RandomOrders):
    """Several passes, each in a fresh random order, whose steps are Lipschitz maps or on a bounded domain."""

    @property
    def growth(self) -> float | None:
        """The growth ln c >= 0 of a step's Lipschitz factor, rounded up; None where the maps have none."""
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
)  # fmt: skip
def fresh(run: FreshPasses) -> Composition:
    """A use is hidden by what is left of its own pass. Every pass has its own order: the curve of one is composed."""
    return Composition([(_pass_pair(run.changed(epochs=1)), run.epochs)])


@functools.lru_cache(maxsize=8)
def _pass_pair(run: FreshPasses) -> Pair:
    """Return the pair of laws of one shuffled pass."""
    from dpcalc.notions import pld, profiles
    from dpcalc.theorems.contraction import shuffle_curves

    plan = run.layout
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
    if run.growth is not None or plan.dropped or len(plan.positions) > 1:
        curves.append(_pass_curve(run))
    if len(curves) == 1:
        raise NotApplicable("a later step hides nothing of what an earlier one left", "a smaller --diameter")
    top = gaussian.epsilon(mu=min(own, 1e6), log_delta_target=-1e5)
    return pld.from_curve(profiles.tabulate(shuffle_curves.least(*curves), max(top, 1e-100)))


def _pass_curve(run: FreshPasses) -> Callable[[Array], Array]:
    """Return the curve of one pass: the mean of delta_G over positions, blocks of them at their latest."""
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
    """Return how many records each block of like positions holds, and mu at its latest, rounded up."""
    last = alike.first + alike.steps - 1
    ends = [alike.first]
    while ends[-1] < last and ends[-1] * growth < _SETTLED:
        ends.append(min(last, max(ends[-1] + 1, int(ends[-1] * _WIDER) if len(ends) > _SINGLE else 0)))
    k = np.array(ends, float)
    count: Array = np.diff(np.append(k, last + 1.0)) * alike.size
    return count, ratio / np.sqrt(rooms(growth, k)) * (1.0 + 16.0 * UNIT)
