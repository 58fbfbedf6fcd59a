"""Several passes with the iterate released after each: composition, which nothing hidden between the passes undoes.

Within a pass iterates stay hidden, so that a pass has the privacy of one pass from any start. Passes in one order, used
again and again, are composed for each position: with one public order a late position is late in every pass. Passes in
fresh orders are composed as whole curves (`released_fresh_orders`).
"""

from __future__ import annotations

import functools
import math

from dpcalc.model.algorithm import Release, in_one_random_order
from dpcalc.notions.guarantee import Composition, Gdp, Profile
from dpcalc.numerics.floats import up
from dpcalc.theorems.conditions import (
    CONVEXITY_WITHIN,
    DOMAIN,
    EQUAL_MAPS,
    FIXED_ORDER,
    GAUSSIAN_NOISE,
    INDEX_IN_RANGE,
    LIPSCHITZ,
    STEP_WITHIN,
    WHERE_BOUNDED,
)
from dpcalc.theorems.contraction import contraction, shuffle
from dpcalc.theorems.contraction.contraction import FRESH, LIPSCHITZ_STEPS
from dpcalc.theorems.contraction.noisy_pass import later_ratio, own_ratio
from dpcalc.theorems.many_passes.epochs import once_log_delta
from dpcalc.theorems.many_passes.passes import Passes
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import BATCHES, BOUNDED_STEP, NOISY_STEP, PLACE, Setting

EACH = "the iterate after every pass is released, and nothing between"
_SAME = "the same order in every pass"
_LARGEST = 1e90  # a ratio beyond this one hides nothing


class ReleasedPasses(shuffle.ShuffledPass):
    """Passes of which each ends in a release."""

    @functools.cached_property
    def own(self) -> float:
        """r_A, the largest distance of a record's own step in units of its noise, over the batches it may be in."""
        return self.own_ratio(self.layout.least_divisor)

    @property
    def together(self) -> Passes:
        """All passes as one: each is Gaussian from any start, and E of them as one with sqrt(E) times its mu."""
        one_pass = Passes.of(self, self.scale)
        return one_pass._replace(ratio=composed(one_pass.ratio, self.epochs))


@theorem(
    "released.own_noise",
    title="Released passes, a record's own noise alone",
    needs=("records", "batch_size", "last_batch?", "epochs", *NOISY_STEP),
    algorithms=("cyclic-released", *in_one_random_order(Release.PASS), "shuffled-epochs-released"),
    reference="dong2022",
    locator="composition of Gaussian mechanisms",
    formula="mu = sqrt(E) Delta/(b sigma)",
    conditions=(GAUSSIAN_NOISE,),
    assumes=("each record is used once in every pass", FRESH, "every iterate may be released"),
    erratum="Sordello, Bu and Dong call a shuffled pass mu-GDP for the mu of its (epsilon, delta). It is mu-GDP for "
    "this mu and no smaller one: as epsilon grows its curve needs all of Delta/(b sigma).",
    public_sums=True,
)
def own_noise(run: ReleasedPasses) -> Gdp:
    """Whatever the order and the losses, the noise of its own steps hides a record, and that composes."""
    return Gdp(composed(run.own, run.epochs))


def composed(mu: float, epochs: int) -> float:
    """Return mu sqrt(epochs), rounded up."""
    return up(mu * math.sqrt(epochs), 4.0)


@theorem(
    "released.cyclic",
    title="Released passes in one order, shift bound of a pass",
    needs=(*PLACE, "epochs", *NOISY_STEP, "step_size", "loss_class", "smoothness", "strong_convexity", "diameter?"),
    algorithms=("cyclic-released",),
    reference="bok2024",
    locator="shifted interpolation for each pass, composed",
    formula="mu = sqrt(E) mu_i, mu_i of one pass for position i (as contraction.shift)",
    conditions=(INDEX_IN_RANGE, GAUSSIAN_NOISE, LIPSCHITZ, EQUAL_MAPS),
    assumes=(FIXED_ORDER, _SAME, LIPSCHITZ_STEPS, FRESH, WHERE_BOUNDED, EACH),
)
def cyclic(run: Setting) -> Gdp:
    """A record at the same place in every pass: the mu of one pass, E times."""
    return Gdp(composed(contraction.shift(run.part(contraction.Pass)).mu, run.epochs))


@theorem(
    "released.cyclic_curve",
    title="Released passes in one order, contraction curve of a pass",
    needs=(*PLACE, "epochs", *NOISY_STEP, *BOUNDED_STEP),
    algorithms=("cyclic-released",),
    reference="dpcalc",
    locator="the curve of one pass for a position, composed by the law of the privacy loss",
    formula="E-fold composition of delta(eps) = A B^(n-i)",
    conditions=(INDEX_IN_RANGE, EQUAL_MAPS),
    assumes=(FIXED_ORDER, _SAME, FRESH, DOMAIN, contraction.DISPLACED, EACH),
    slack="the lattice of losses, some 1e-4 in ln delta",
    slow=True,
)
def cyclic_curve(run: Setting) -> Composition:
    """A record at the same place in every pass: the product bound of one pass, composed E times."""
    from dpcalc.notions import pld
    from dpcalc.theorems.contraction import shuffle_curves

    own = own_ratio(run.sensitivity, run.scale, run.own_batch)
    following = later_ratio(run.displacement, run.diameter, run.step_size, run.scale)
    return Composition(
        [(pld.from_curve(shuffle_curves.fixed(run.noise, own, following, run.steps_to_end - 1)), run.epochs)]
    )


@theorem(
    "released.shuffle_once",
    title="Released passes in one random order",
    needs=(*BATCHES, "epochs", *NOISY_STEP, "step_size", "smoothness", "strong_convexity?", "diameter?"),
    algorithms=in_one_random_order(Release.PASS),
    reference="dpcalc",
    locator="shift bound of each pass for a position, composed, then averaged over positions",
    formula="delta(eps) = (1/n) sum_k delta_G(eps; sqrt(E) mu_k), mu_k = mu_1/sqrt(k), or less by strong convexity or "
    "a domain",
    conditions=(GAUSSIAN_NOISE, STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(
        "one uniformly random order (or rotation), drawn without looking at the data and used in every pass; it may "
        "be published",
        LIPSCHITZ_STEPS, FRESH, WHERE_BOUNDED, EACH,
    ),
)  # fmt: skip
def shuffle_once(run: ReleasedPasses) -> Profile:
    """A record that falls late is late in every pass: composition first, and the average over positions last."""
    one_pass = run.part(shuffle.ShuffledPass)
    plain = shuffle.mixture(one_pass.changed(sensitivity=composed(run.sensitivity, run.epochs)))
    together = run.together
    if together.bare or together.ratio > _LARGEST:
        return plain
    return Profile(lambda epsilon: min(plain.profile(epsilon), once_log_delta(together, epsilon)))
