"""Several passes in one fixed order with hidden iterates: each record is used once a pass, at the same position.

Notation of the formulas: r = Delta/(b sigma) for a record in a batch of b, l steps a pass, k of them from the record's
own to the last of its pass, E passes, c the factor by which a step contracts.
`repeated_allocation` has the optimal allocation.

A batch is the mean over its own records. A shorter batch matters only to its own records, as a smaller b: other steps
enter only by their contraction, which is the same for the mean of any number of losses. Divided by the nominal size, a
short batch contracts less, and bounds that use contraction do not cover it.

Every guarantee rounds up.

Also here: printed bounds for passes in one order and full-batch descent, kept for comparison.

Notation as in `multi_epoch` and `noisy_gd`. Where the printed statement is true, its value rounds up.
"""

from __future__ import annotations

import functools
import math

from dpcalc.notions.guarantee import Gdp, Rdp
from dpcalc.numerics.floats import down, quotient_up
from dpcalc.theorems.conditions import (
    CONVEX_SMOOTH,
    CONVEXITY_WITHIN,
    DOMAIN,
    EQUAL_MAPS,
    GAUSSIAN,
    INDEX_IN_RANGE,
    NO_CLIPPING,
    ONE_RELEASE,
    STEP_WITHIN,
    STRONGLY_CONVEX,
)
from dpcalc.theorems.many_passes.noisy_gd import EXPONENT, FULL, STRONG, Descent, saturation
from dpcalc.theorems.many_passes.repeated_allocation import Uses, apart, bounded_mu, contracting_mu
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import CURVED_STEP, GAUSSIAN_STEP, PLACE, Setting, in_range, kept, lost, total, variance

ORDER = "the same fixed order in every pass"
PASSES = (ORDER, CONVEX_SMOOTH, GAUSSIAN, ONE_RELEASE, NO_CLIPPING)
CONTRACTING = (ORDER, "every loss is strongly convex and smooth", GAUSSIAN, ONE_RELEASE, NO_CLIPPING)


class Passes(Setting):
    """Passes in one order with 1-Lipschitz maps."""

    @functools.cached_property
    def uses(self) -> Uses:
        """The record's uses, one a pass."""
        return Uses(self.sensitivity, self.own_batch, self.noise_std, self.period, self.steps_to_end, self.epochs)


@theorem(
    "multi_epoch.cyclic",
    title="Cyclic passes, mu-GDP form",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP),
    algorithms=("cyclic",),
    reference="feldman2018",
    locator="Theorem 35 for any number of passes, with the optimal shifts",
    formula="mu = (Delta/(b sigma)) sqrt((E-1)/l + 1/k)",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=PASSES,
)
def cyclic(run: Passes) -> Gdp:
    """After E passes in one order the last iterate is mu-GDP: the noise of a whole pass hides every use but the last.

    >>> run = Passes(records=100, index=100, batch_size=1, epochs=10, sensitivity=2.0, noise_std=1.0)
    >>> round(cyclic(run).mu, 12)
    2.088061301782
    """
    return Gdp(contracting_mu(run.uses))


@theorem(
    "multi_epoch.cyclic_rdp",
    title="Cyclic passes, Renyi form",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP),
    algorithms=("cyclic",),
    reference="feldman2018",
    locator="Theorem 35 for any number of passes (the exact value of the sum in its proof)",
    formula="RDP(a) = (a Delta^2/(2 b^2 sigma^2)) ((E-1)/l + 1/k)",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=PASSES,
    implied_by="multi_epoch.cyclic",
)
def cyclic_rdp(run: Passes) -> Rdp:
    """After E passes in one order the last iterate satisfies Renyi DP with the optimal shifts.

    >>> run = Passes(records=100, index=1, batch_size=1, epochs=100, sensitivity=2.0, noise_std=1.0)
    >>> round(cyclic_rdp(run).curve(2.0), 12)
    4.0
    """
    uses = run.uses
    share = (uses.times - 1) / uses.period + 1.0 / uses.tail
    return Rdp(lambda order: uses.renyi(order, 0.5, share))


@theorem(
    "multi_epoch.cyclic_contraction",
    title="Cyclic passes with strong convexity",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP, *CURVED_STEP),
    algorithms=("cyclic",),
    reference="bok2024",
    locator="optimal shift allocation for every position (NoisyCGD states the last)",
    formula="mu^2 = r^2 (A^2/V + c^(2k-2)/G_k), or r^2 (c^k A + c^(k-1))^2/G_(l(E-1)+k) if that is allowed; "
    "A = c^(l-1) (1-c^(l(E-1)))/(1-c^l), V = G_(l(E-1)), G_j = (1-c^(2j))/(1-c^2)",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, STRONGLY_CONVEX, EQUAL_MAPS),
    assumes=CONTRACTING,
)
def cyclic_contraction(run: Passes) -> Gdp:
    """Strongly convex losses forget earlier passes geometrically: mu stays bounded for any number of passes.

    It is never above `cyclic`, up to rounding.

    >>> run = Passes(records=20, index=10, batch_size=1, epochs=50, sensitivity=0.2, noise_std=1.0,
    ...                         step_size=1.0, smoothness=0.01, strong_convexity=0.01)
    >>> round(cyclic_contraction(run).mu, 12)
    0.140118774754
    """
    return Gdp(contracting_mu(run.uses, run.rate))


@theorem(
    "multi_epoch.cyclic_domain",
    title="Cyclic passes on a bounded domain",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP, *CURVED_STEP, "diameter"),
    algorithms=("cyclic",),
    reference="bok2024",
    locator="restart from the diameter after the best use, with the optimal shifts from there",
    formula="least over j of the cost of D + j uses one pass apart, then the last use; and of no restart "
    "(c = 1: (D/eta + j r')^2/(((j+1)l - 1) sigma^2) + r'^2/(k sigma^2), r' = Delta/b, or both pooled)",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN, EQUAL_MAPS),
    assumes=(*PASSES, DOMAIN),
)
def cyclic_domain(run: Passes) -> Gdp:
    """Two runs are never further apart than the diameter, so passes long ago add no cost.

    It is never above `cyclic` or `cyclic_contraction`, up to rounding.

    >>> run = Passes(records=10, index=10, batch_size=1, epochs=10**9, sensitivity=0.25, noise_std=3.0,
    ...                         step_size=0.04, smoothness=1.0, strong_convexity=0.0, diameter=1.0)
    >>> round(cyclic_domain(run).mu, 12)
    0.531246179365
    """
    return Gdp(bounded_mu(run.uses, run.rate, run.step_size, run.diameter))


@theorem(
    "multi_epoch.composition",
    title="Cyclic passes, composed",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP),
    algorithms=("cyclic",),
    reference="dong2022",
    locator="composition of Gaussian mechanisms, one a pass",
    formula="mu = (Delta/(b sigma)) sqrt(E)",
    conditions=(INDEX_IN_RANGE,),
    assumes=("order and iterates may all be public", GAUSSIAN, "no convexity, no smoothness, any step size"),
    public_sums=True,
)
def composition(run: Passes) -> Gdp:
    """Even if every iterate is public, each use of the record is a Gaussian mechanism: nothing is gained by hiding.

    >>> run = Passes(records=5, index=1, batch_size=1, epochs=9, sensitivity=2.0, noise_std=4.0)
    >>> round(composition(run).mu, 12)
    1.5
    """
    return Gdp(run.uses.mu(math.sqrt(run.epochs)))


# --- passes in one order ----------------------------------------------------------------------------------------------


@theorem(
    "multi_epoch.contraction_published",
    title="Cyclic passes with strong convexity as printed",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP, *CURVED_STEP),
    kind="published",
    algorithms=("cyclic",),
    reference="bok2024",
    locator="NoisyCGD, strongly convex",
    formula="mu^2 = r^2 (1 + c^(2l-2) (1-c^2)/(1-c^l)^2 (1-c^(l(E-1)))/(1+c^(l(E-1))))",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, STRONGLY_CONVEX, EQUAL_MAPS),
    assumes=CONTRACTING,
    erratum="True, and the best for the last position in a pass of at least two steps. Earlier positions are better "
    "off, and so is everyone in a pass of one step, where two blocks should be one.",
)
def passes_contraction(run: Passes) -> Gdp:
    """The paper's statement for all records, that is for the last position in a pass.

    Only the size of the record's batch matters, not its index.

    >>> run = Passes(records=20, index=20, batch_size=1, epochs=50, sensitivity=0.2, noise_std=1.0,
    ...                         step_size=1.0, smoothness=0.01, strong_convexity=0.01)
    >>> round(passes_contraction(run).mu, 12)
    0.237452984635
    """
    last = run.uses._replace(tail=1)
    return Gdp(last.mu(apart(last, in_range(run.rate)), slack=32.0))


@theorem(
    "multi_epoch.domain_published",
    title="Cyclic passes on a bounded domain as printed",
    needs=(*PLACE, *GAUSSIAN_STEP, "step_size", "diameter"),
    kind="published",
    algorithms=("cyclic",),
    reference="bok2024",
    locator="NoisyCGD, bounded domain",
    formula="mu^2 = (1/sigma^2) (3 Delta D/(eta b l) + (Delta/b)^2 + (Delta/b)^2 ceil(D b/(eta Delta))/l)",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, EQUAL_MAPS),
    assumes=(*PASSES, DOMAIN),
    erratum="True, and never below multi_epoch.cyclic_domain: it restarts at the start of a pass and rounds up the "
    "number of passes.",
)
def passes_domain(run: Setting) -> Gdp:
    """The paper's statement for all records and any number of passes.

    >>> run = Setting(records=10, index=10, batch_size=1, sensitivity=0.25, noise_std=3.0, step_size=0.04, diameter=1.0)
    >>> round(passes_domain(run).mu, 12)
    0.533593686453
    """
    size = run.own_batch
    share = 1.0 + _restart(run, size) / run.period
    return Gdp(quotient_up((run.sensitivity, math.sqrt(share)), (size, run.noise_std), 16.0))


@theorem(
    "multi_epoch.dynamics_published",
    title="Cyclic passes by privacy dynamics as computed",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP, *CURVED_STEP),
    kind="published",
    algorithms=("cyclic",),
    reference="ye2022",
    locator="the code published with the paper, for a known position",
    formula="RDP(a) = (a r^2/2) (c^(2k-2)/G_k + c^(2j-2)/G_j (1-c^(2(E-1)(l-j)))/(1-c^(2(l-j)))), j = floor(l/2), "
    "G_j = (1-c^(2j))/(1-c^2)",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, STRONGLY_CONVEX, EQUAL_MAPS),
    assumes=CONTRACTING,
    erratum="Each earlier use may fade over half a pass only; multi_epoch.cyclic_contraction gives it the whole pass.",
)
def passes_dynamics(run: Passes) -> Rdp:
    """The value that the code of Ye and Shokri computes for a known position of the record.

    It is inf for a pass of one step, which has no half.

    >>> run = Passes(records=20, index=20, batch_size=1, epochs=50, sensitivity=0.2, noise_std=1.0,
    ...                         step_size=1.0, smoothness=0.01, strong_convexity=0.01)
    >>> round(passes_dynamics(run).curve(2.0), 13)
    0.0600325782122
    """
    uses, rate = run.uses, in_range(run.rate)
    half = uses.period // 2
    if half == 0:
        return Rdp(lambda order: math.inf)
    later = kept(2.0 * rate, uses.tail - 1) / variance(rate, uses.tail)
    earlier = kept(2.0 * rate, half - 1) / variance(rate, half) * total(2.0 * rate, uses.period - half, uses.times - 1)
    return Rdp(lambda order: uses.renyi(order, 0.5, later + earlier, slack=64.0))


# --- full-batch descent -----------------------------------------------------------------------------------------------


@theorem(
    "noisy_gd.langevin_published",
    title="Langevin dynamics as announced",
    needs=("records", "steps", *GAUSSIAN_STEP, *CURVED_STEP),
    kind="published",
    algorithms=("noisy-gd",),
    reference="chourasia2021",
    locator="Theorem 1 as announced on the authors' page",
    formula="RDP(a) = (2 a r^2/x) (1 - e^(-eta T/2)), that is a Delta^2/(m sigma_C^2 n^2) (1 - e^(-eta T/2))",
    conditions=(STEP_WITHIN, STRONGLY_CONVEX),
    assumes=STRONG,
    erratum=EXPONENT,
)
def descent_langevin(run: Descent) -> Rdp:
    """The bound printed in the announcement, for comparison only: below the truth where m > 1, loose where m < 1.

    >>> run = Descent(records=10, steps=1, sensitivity=1.0, noise_std=math.sqrt(40.0), step_size=0.05,
    ...                          smoothness=10.0, strong_convexity=10.0)
    >>> round(descent_langevin(run).curve(2.0), 14)
    4.938017594e-05
    """
    z, m, eta = 0.5 * run.step_size * run.steps, run.strong_convexity, run.step_size
    if z < 1.0:
        return Rdp(lambda order: run.uses.renyi(order, run.steps, saturation(z), over=(m,), slack=16.0))
    return Rdp(lambda order: run.uses.renyi(order, 2.0, -math.expm1(-z), over=(m, eta), slack=16.0))


@theorem(
    "noisy_gd.dynamics_published",
    title="Noisy gradient descent by privacy dynamics as plotted",
    needs=("records", "steps", *GAUSSIAN_STEP, *CURVED_STEP),
    kind="published",
    algorithms=("noisy-gd",),
    reference="ye2022",
    locator="as plotted by Bok, Su and Altschuler 2024, Figure 1",
    formula="RDP(a) = a r^2 (1+c)/(1-c) (1 - ((1+c)/2)^T)",
    conditions=(STEP_WITHIN, STRONGLY_CONVEX),
    assumes=STRONG,
    erratum="Superseded: about twice noisy_gd.contraction in the limit, as a Renyi divergence.",
)
def descent_dynamics(run: Descent) -> Rdp:
    """The bound of earlier work, as plotted by Bok, Su and Altschuler beside theirs.

    >>> run = Descent(records=1, steps=10, sensitivity=0.1, noise_std=1.0, step_size=1.0, smoothness=0.05,
    ...                          strong_convexity=0.05)
    >>> round(descent_dynamics(run).curve(1.0), 13)
    0.087231447866
    """
    gone = lost(run.rate, 1)  # 1 - c
    if gone < 1e-290:
        return Rdp(lambda order: run.uses.renyi(order, run.steps, slack=8.0))
    share = -math.expm1(run.steps * math.log1p(-0.5 * gone))  # 1 - ((1+c)/2)^T
    return Rdp(lambda order: run.uses.renyi(order, 2.0 - gone, share, over=(gone,), slack=32.0))


@theorem(
    "noisy_gd.domain_published",
    title="Noisy gradient descent on a bounded domain as printed",
    needs=("records", *GAUSSIAN_STEP, "step_size", "diameter"),
    kind="published",
    algorithms=("noisy-gd",),
    reference="bok2024",
    locator="NoisyGD, bounded domain",
    formula="mu^2 = (1/sigma^2) (3 Delta D/(eta n) + (Delta/n)^2 ceil(D n/(eta Delta)))",
    conditions=(STEP_WITHIN,),
    assumes=(FULL, CONVEX_SMOOTH, GAUSSIAN, ONE_RELEASE, NO_CLIPPING, DOMAIN),
    erratum="True, and equal to noisy_gd.domain where D n/(eta Delta) is whole and the run is longer; else above it.",
)
def descent_domain(run: Setting) -> Gdp:
    """The paper's statement for any number of steps.

    >>> run = Setting(records=1, sensitivity=0.25, noise_std=8.0, step_size=0.1, diameter=1.0)
    >>> round(descent_domain(run).mu, 12)
    0.395284707521
    """
    return Gdp(
        quotient_up((run.sensitivity, math.sqrt(_restart(run, run.records))), (run.records, run.noise_std), 16.0)
    )


# --- both -------------------------------------------------------------------------------------------------------------


def _restart(run: Setting, size: int) -> float:
    """Return 3 x + ceil(x) for x = D b/(eta Delta), where a number that is an integer up to rounding counts as that
    integer."""
    reach = quotient_up((run.diameter, size), (run.step_size, run.sensitivity)) if run.sensitivity > 0.0 else math.inf
    return 3.0 * reach + math.ceil(down(reach, 64.0)) if reach < 1e300 else math.inf
