"""Several passes in one fixed order with hidden iterates: each record is used once a pass, at the same place.

Notation of the formulas: r = Delta/(b sigma) for a record in a batch of b, l steps a pass, k of them from the record's
own to the last of its pass, E passes, c the factor by which a step contracts.
`periodic_allocation` has the optimal allocation.

A batch is the mean over its own records. A shorter batch matters only to the records in it, as a smaller b: of the
other steps nothing but their contraction enters, and the mean of any number of losses contracts alike. Divided by the
nominal size a short batch contracts less, and bounds that use how much are not for it.

Every guarantee rounds up.
"""

from __future__ import annotations

import functools
import math

from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Gdp, Rdp
from dpcalc.numerics.quotients import quotient_up
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
from dpcalc.theorems.many_passes.periodic_allocation import Uses, bounded_mu, contracting_mu, unrestarted
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import CURVED_STEP, GAUSSIAN_STEP, PLACE, Setting

ORDER = "the same fixed order in every pass"
PASSES = (ORDER, CONVEX_SMOOTH, GAUSSIAN, ONE_RELEASE, NO_CLIPPING)
CONTRACTING = (ORDER, "every loss is strongly convex and smooth", GAUSSIAN, ONE_RELEASE, NO_CLIPPING)


class Passes(Setting):
    """Passes in one order, of maps that are 1-Lipschitz."""

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
    """After E passes in one order the last iterate is mu-GDP: every use but the last has a whole pass to fade in.

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
    return Rdp(lambda order: uses.renyi(order, 0.5, share, slack=8.0))


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
    """Strongly convex losses forget earlier passes geometrically: mu stays bounded however many there are.

    It is never above `cyclic` but for rounding.

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
    """Two runs are never further apart than the diameter, so what was done many passes ago costs nothing more.

    It is never above `cyclic` or `cyclic_contraction` but for rounding.

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
    return Gdp(run.uses.mu(math.sqrt(run.epochs), slack=4.0))


def cyclic_noise_std(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, epsilon: float, log_delta: float
) -> float:
    """Return the least sigma for which `cyclic` gives (epsilon, delta), rounded up."""
    place = Setting(records=records, index=index, batch_size=batch_size)
    size, tail, period = place.own_batch, place.steps_to_end, place.period
    single = gaussian.noise_std(sensitivity=sensitivity, epsilon=epsilon, log_delta_target=log_delta)
    share = unrestarted(Uses(sensitivity, size, 1.0, period, tail, epochs), 0.0)
    return quotient_up((single, share), (size,), 32.0)
