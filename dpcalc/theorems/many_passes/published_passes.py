"""What papers print of passes in one order and of full-batch descent, kept for comparison with what is proved here.

Notation as in `multi_epoch` and `noisy_gd`. Where the printed statement is true, its value rounds up.
"""

from __future__ import annotations

import math

from dpcalc.notions import renyi
from dpcalc.notions.guarantee import Gdp, Rdp
from dpcalc.numerics.floats import down, up
from dpcalc.numerics.quotients import quotient_up
from dpcalc.theorems.conditions import (
    CONVEX_SMOOTH,
    DOMAIN,
    EQUAL_MAPS,
    GAUSSIAN,
    INDEX_IN_RANGE,
    NO_CLIPPING,
    ONE_RELEASE,
    STEP_WITHIN,
    STRONGLY_CONVEX,
)
from dpcalc.theorems.contraction_powers import in_range, kept, lost, total, variance
from dpcalc.theorems.many_passes.multi_epoch import CONTRACTING, PASSES, Passes
from dpcalc.theorems.many_passes.noisy_gd import EXPONENT, FULL, STRONG, Descent, saturation
from dpcalc.theorems.many_passes.periodic_allocation import apart
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import CURVED_STEP, GAUSSIAN_STEP, PLACE, Setting

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
    """What the paper states for all records, that is for the last position in a pass.

    Of the index only the size of its batch matters.

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
    """What the paper states for all records and any number of passes.

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
    """What the code of Ye and Shokri computes when the position of the record is known.

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


def corollary_noise_std(*, lipschitz: float, epsilon: float, log_delta: float) -> float:
    """Return sigma = 5 L sqrt(ln(1/delta))/eps, Feldman et al.'s choice for n passes (needs ln(1/delta) >= 2.5 eps)."""
    return up(5.0 * lipschitz * math.sqrt(-log_delta) / epsilon, 8.0)


def corollary_epsilon(*, lipschitz: float, epsilon: float, log_delta: float) -> float:
    """Return the epsilon that `corollary_noise_std` really certifies: Theorem 35's 4 a L^2/sigma^2 and Mironov's
    conversion at a = 2 ln(1/delta)/eps.
    """
    sigma = corollary_noise_std(lipschitz=lipschitz, epsilon=epsilon, log_delta=log_delta)
    order = -2.0 * log_delta / epsilon
    rdp = up(4.0 * order * (lipschitz / sigma) ** 2, 8.0)
    return renyi.mironov(order=order, rdp=rdp, log_delta=log_delta)


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
    """What the announcement prints, for comparison only: below the truth where m > 1, loose where m < 1.

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
    """The bound that earlier work would give, as Bok, Su and Altschuler plot it beside theirs.

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
    """What the paper states for any number of steps.

    >>> run = Setting(records=1, sensitivity=0.25, noise_std=8.0, step_size=0.1, diameter=1.0)
    >>> round(descent_domain(run).mu, 12)
    0.395284707521
    """
    return Gdp(
        quotient_up((run.sensitivity, math.sqrt(_restart(run, run.records))), (run.records, run.noise_std), 16.0)
    )


# --- both -------------------------------------------------------------------------------------------------------------


def _restart(run: Setting, size: int) -> float:
    """Return 3 x + ceil(x) for x = D b/(eta Delta), where what is whole but for rounding is taken as whole."""
    reach = quotient_up((run.diameter, size), (run.step_size, run.sensitivity)) if run.sensitivity > 0.0 else math.inf
    return 3.0 * reach + math.ceil(down(reach, 64.0)) if reach < 1e300 else math.inf
