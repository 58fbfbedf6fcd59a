"""Several passes with the iterate released after each: composition, since nothing is hidden between passes.

Iterates stay hidden within a pass, so each pass has the privacy of one pass from any start. Passes in one repeated
order are composed for each position: with one public order a late position is late in every pass. Passes in fresh
orders are composed as whole curves (`released_fresh_orders`).

Passes known only by one (epsilon, delta) each, composed.

Passes in one secret random order with the iterate released after each: the position is the same in all.
"""

from __future__ import annotations

import functools
import math

from dpcalc.model.algorithm import Release, in_one_random_order
from dpcalc.notions import gaussian, optimal_composition
from dpcalc.notions.guarantee import Composition, Gdp, Profile
from dpcalc.numerics.floats import down, log_add_exp, up
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
from dpcalc.theorems.contraction.laplace import later_ratio, own_ratio
from dpcalc.theorems.hidden.hidden_position import SECRET, SecretPass, least_of, secret_order
from dpcalc.theorems.many_passes.epochs import once_log_delta
from dpcalc.theorems.many_passes.repeated_allocation import Passes
from dpcalc.theorems.record import Unmet, requires, theorem
from dpcalc.theorems.setting import BATCHES, BOUNDED_STEP, NOISY_STEP, PLACE, Setting

EACH = "the iterate after every pass is released, and nothing between"
_SAME = "the same order in every pass"
_LARGEST = 1e90  # no privacy is left at a larger ratio


class ReleasedPasses(shuffle.ShuffledPass):
    """Passes that each end in a release."""

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
    """For any order and any losses, the noise of its own steps hides a record, and these steps compose."""
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
    weakly_convex=True,
)
def cyclic(run: Setting) -> Gdp:
    """A record at the same position in every pass: the mu of one pass, composed E times."""
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
    weakly_convex=True,
)
def cyclic_curve(run: Setting) -> Composition:
    """A record at the same position in every pass: the product bound of one pass, composed E times."""
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
    """A late record is late in every pass, so passes are composed first and positions averaged last."""
    plain = shuffle.mixture(run.part(shuffle.ShuffledPass).changed(sensitivity=composed(run.sensitivity, run.epochs)))
    together = run.together
    if together.bare or together.ratio > _LARGEST:
        return plain
    return Profile(lambda epsilon: min(plain.profile(epsilon), once_log_delta(together, epsilon)))


EACH_PRIVATE = "every pass is (epoch_epsilon, epoch_delta)-private, whatever came before it"

_SMALLEST, _MOST = 1e-290, 1e150
"""A smaller epsilon of a pass counts as the first, and more deviations count as the second."""


@theorem(
    "released.optimal",
    title="Optimal composition of one (epsilon, delta)",
    needs=("epochs", "epoch_epsilon", "epoch_delta"),
    kind="exact",
    algorithms=("repeated",),
    reference="kairouz2015",
    locator="Theorem 3.3, in closed form",
    formula="delta = 1 - (1 - delta_0)^E (1 - P[Bin(E, p) >= k] + e^eps P[Bin(E, 1-p) >= k]), p = 1/(1 + e^-eps_0)",
    assumes=(EACH_PRIVATE,),
)
def optimal(run: Setting) -> Profile:
    """The cost of any number of passes, each known only by one (epsilon, delta); no smaller bound holds for all such
    passes."""
    epsilon0 = up(run.epoch_epsilon)
    log_delta0 = up(math.log(run.epoch_delta), 2.0) if run.epoch_delta > 0.0 else -math.inf
    return Profile(
        lambda epsilon: optimal_composition.log_delta(
            epsilon0=epsilon0, log_delta0=log_delta0, count=run.epochs, epsilon=epsilon
        )
    )


@theorem(
    "released.pure",
    title="Pure privacy, composed as Gaussian",
    needs=("epochs", "epoch_epsilon", "epoch_delta"),
    algorithms=("repeated",),
    reference="dong2022",
    locator="pure privacy is mu-GDP, composed",
    formula="mu = sqrt(E) 2 Phi^-1(e^eps_0/(1 + e^eps_0))",
    conditions=(
        requires(
            "epoch_delta = 0",
            lambda run: run.epoch_delta == 0.0,
            Unmet("a single (epsilon, delta) with delta > 0 is mu-GDP for no mu", "--epoch-delta 0, if it is"),
        ),
    ),
    assumes=("every pass is epoch_epsilon-private, whatever came before it",),
)
def pure(run: Setting) -> Gdp:
    """Every pure mechanism is Gaussian-private for the least mu whose trade-off curve it cannot beat."""
    return Gdp(composed(gaussian.pure_mu(epsilon=run.epoch_epsilon), run.epochs))


@theorem(
    "released.advanced",
    title="Advanced composition of one (epsilon, delta)",
    needs=("epochs", "epoch_epsilon", "epoch_delta"),
    algorithms=("repeated",),
    reference="dwork2010",
    locator="Theorem III.3",
    formula="delta(eps) = E delta_0 + exp(-x^2/(2 E eps_0^2)), x = eps - E eps_0 (e^eps_0 - 1) >= 0",
    assumes=(EACH_PRIVATE,),
    implied_by="released.optimal",
)
def advanced(run: Setting) -> Profile:
    """The closed form that is usually quoted, eps = sqrt(2 E ln(1/delta')) eps_0 + E eps_0 (e^eps_0 - 1) at
    delta = E delta_0 + delta'; true, and never better than the optimal composition.

    >>> run = Setting(epochs=100, epoch_epsilon=0.1, epoch_delta=0.0)
    >>> round(advanced(run).profile(5.0), 9)
    -7.794500197
    """
    epsilon0 = max(up(run.epoch_epsilon), _SMALLEST)
    drift = up(run.epochs * epsilon0 * math.expm1(min(epsilon0, 700.0)), 8.0)
    spread = up(epsilon0 * math.sqrt(2.0 * run.epochs), 4.0)
    # Each logarithm separately: if they cancel, their errors do not.
    log_share = up(up(math.log(run.epoch_delta), 2.0) + up(math.log(run.epochs), 2.0)) if run.epoch_delta else -math.inf

    def profile(epsilon: float) -> float:
        deviations = min(down(down(down(epsilon) - drift) / spread, 2.0), _MOST)
        if deviations <= 0.0:
            return 0.0
        return min(0.0, up(log_add_exp(log_share, -down(deviations * deviations, 2.0)), 8.0) + 2.0**-50)

    return Profile(profile)


@theorem(
    "released.shuffle_once_secret",
    title="Released passes in one secret random order",
    needs=(*BATCHES, "epochs", *NOISY_STEP, "step_size", "smoothness", "adjacency", "strong_convexity?", "diameter?"),
    algorithms=("shuffle-once-released",),
    reference="dpcalc",
    locator="hidden position for all releases together, with the swap of two records carried through all passes",
    formula="as hidden_position.shuffled, with sqrt(E) mu_km for mu_km",
    conditions=(GAUSSIAN_NOISE, STEP_WITHIN, CONVEXITY_WITHIN),
    promises=(SECRET,),
    assumes=(
        "one order for all passes, all orders equally likely and drawn without looking at the data (no rotation)",
        "the order, the seed that made it and logs of single steps stay secret for ever",
        "the sensitivity holds between all records that may occur, not only between the two compared",
        "the number of passes is fixed, and nothing but the order depends on the order",
        LIPSCHITZ_STEPS, FRESH, WHERE_BOUNDED, EACH,
    ),
    slack="as hidden_position.shuffled; at most released.shuffle_once",
    slow=True,
    not_monotone_in=("records",),
)  # fmt: skip
def shuffle_once_secret(run: ReleasedPasses) -> Profile:
    """The position of a record in the one order stays hidden, although the iterates between passes are public: an
    attacker needs all releases together to tell two positions apart.
    """
    one_pass = run.part(SecretPass).passes
    together = one_pass._replace(ratio=one_pass.ratio * math.sqrt(run.epochs) * (1.0 + 1e-15))
    return least_of(shuffle_once(run.part(ReleasedPasses)).profile, lambda: secret_order(together, run.adjacency))
