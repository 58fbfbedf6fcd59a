"""Lower bounds on every guarantee: the exact privacy over quadratic losses, of passes in one order and of full-batch
descent.

On the whole space the last iterate is Gaussian with a known mean and variance. Notation: r = Delta/(b sigma),
x = eta m, and q = 1 - x, by which a step contracts; the rest is as in `multi_epoch` and `noisy_gd`. Every value rounds
down.
"""

from __future__ import annotations

import math

from dpcalc.notions.guarantee import Gdp, Rdp
from dpcalc.numerics.floats import down, quotient_down, up
from dpcalc.theorems.conditions import (
    BALANCED,
    CONVEXITY_WITHIN,
    EQUAL_MAPS,
    GAUSSIAN,
    INDEX_IN_RANGE,
    ONE_RELEASE,
    STEP_OF_SMOOTH,
    STEP_WITHIN,
    STRONGLY_CONVEX,
    UNBOUNDED,
)
from dpcalc.theorems.many_passes.multi_epoch import ORDER, Passes
from dpcalc.theorems.many_passes.noisy_gd import FULL, Descent, saturation
from dpcalc.theorems.many_passes.repeated_allocation import Uses
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import CURVED_STEP, DEEPEST, GAUSSIAN_STEP, PLACE, factors, half_tanh, in_range, lost

QUADRATIC = (
    "a lower bound: quadratic losses of curvature m (linear for m = 0, concave below) whose gradients differ by Delta"
)
NO_GUARANTEE = "A lower bound: the exact privacy of certain losses. No guarantee for the class can be below it."


@theorem(
    "multi_epoch.quadratic",
    title="Cyclic passes over quadratic losses, exactly",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP, *CURVED_STEP),
    kind="lower",
    algorithms=("cyclic",),
    reference="dpcalc",
    locator="Gaussian output: its mean and variance",
    formula="mu^2 = r^2 q^(2k-2) (1-q^2) (1-q^(lE))/((1-q^l)^2 (1+q^(lE))), q = 1 - eta m; r^2 E/l for m = 0",
    conditions=(INDEX_IN_RANGE, STEP_OF_SMOOTH, CONVEXITY_WITHIN, BALANCED, UNBOUNDED, EQUAL_MAPS),
    assumes=(ORDER, QUADRATIC, GAUSSIAN, ONE_RELEASE),
    caution=NO_GUARANTEE,
    not_monotone_in=("strong_convexity",),
    weakly_convex=True,
)
def passes(run: Passes) -> Gdp:
    """With quadratic losses on the whole space the last iterate is Gaussian with this mu: no guarantee can be smaller.

    >>> run = Passes(records=100, index=100, batch_size=1, epochs=25, sensitivity=2.0, noise_std=1.0,
    ...                         step_size=0.5, smoothness=1.0, strong_convexity=0.0)
    >>> round(passes(run).mu, 12)
    1.0
    """
    return Gdp(quadratic_mu(run.uses, run.step_size * max(run.strong_convexity, -run.smoothness)))


@theorem(
    "noisy_gd.quadratic",
    title="Noisy gradient descent on quadratic losses, exactly",
    needs=("records", "steps", *GAUSSIAN_STEP, *CURVED_STEP),
    kind="lower",
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator="Gaussian output: its mean and variance",
    formula="mu = r sqrt((1-q^T)(1+q)/((1+q^T)(1-q))), q = 1 - eta m; r sqrt(T) for m = 0",
    conditions=(STEP_OF_SMOOTH, CONVEXITY_WITHIN, BALANCED, UNBOUNDED),
    assumes=(FULL, QUADRATIC, GAUSSIAN, ONE_RELEASE),
    caution=NO_GUARANTEE,
    weakly_convex=True,
)
def descent(run: Descent) -> Gdp:
    """With quadratic losses on the whole space the last iterate is Gaussian with this mu: no guarantee can be smaller.

    Up to rounding it equals `noisy_gd.contraction`.

    >>> run = Descent(records=1, steps=100, sensitivity=0.1, noise_std=1.0, step_size=1.0, smoothness=0.01,
    ...                          strong_convexity=0.01)
    >>> round(descent(run).mu, 12)
    0.961013744646
    """
    return Gdp(quadratic_mu(run.uses, run.step_size * max(run.strong_convexity, -run.smoothness)))


@theorem(
    "noisy_gd.langevin_lower",
    title="Langevin dynamics, the lower bound",
    needs=("records", "steps", *GAUSSIAN_STEP, *CURVED_STEP),
    kind="lower",
    algorithms=("noisy-gd",),
    reference="chourasia2021",
    locator="Theorem 2, for any strong convexity",
    formula="RDP(a) = (a r^2/(2 x)) (1 - e^(-x T)), that is a Delta^2/(4 m sigma_C^2 n^2) (1 - e^(-m eta T))",
    conditions=(STEP_WITHIN, STRONGLY_CONVEX, BALANCED, UNBOUNDED),
    assumes=(FULL, QUADRATIC, GAUSSIAN, ONE_RELEASE),
    erratum="The announcement derives it with |w - x|^2 for |w - x|^2/2 and with a variance divided by n^2; the "
    "statement is true.",
)
def langevin(run: Descent) -> Rdp:
    """Quadratic losses have at least this Renyi divergence, a quarter to a half of the bound `noisy_gd.langevin`.

    >>> run = Descent(records=100, steps=1, sensitivity=1.0, noise_std=0.1 * math.sqrt(2.0 / 0.9),
    ...                          step_size=0.9, smoothness=1.0, strong_convexity=1.0)
    >>> round(langevin(run).curve(2.0), 14)
    0.0029671517013
    """
    n, moved, noise, share = run.records, run.sensitivity, run.noise_std, saturation(run.time)
    return Rdp(lambda order: quotient_down((0.5, order, moved, moved, run.steps, share), (n, n, noise, noise), 32.0))


def quadratic_mu(uses: Uses, shrunk: float) -> float:
    """Return the exact mu of quadratic losses, rounded down.

    Args:
        uses: the steps that use the record.
        shrunk: eta m, at most 1: the share of the distance to the minimum that a step removes; negative where a step
            adds to it, and q = 1 - eta m is above 1.
    """
    if uses.sensitivity == 0.0:
        return 0.0
    if shrunk < 0.0:
        # With 1/q for q the formula is the same for the step as far from the start of a pass as this is from its end.
        return quadratic_mu(uses._replace(tail=uses.period - uses.tail + 1), shrunk / (shrunk - 1.0))
    # Two rates enclose -ln q. Each factor below is evaluated at the rate that makes it smaller.
    slow = 0.0 if shrunk < 1e-290 else in_range(_log_inverse(down(shrunk, 4.0)))
    fast = 1e-200 if shrunk < 1e-290 else max(slow, up(_log_inverse(up(shrunk, 4.0)), 4.0))
    if fast <= 1e-200:
        return _ratio_times(uses, math.sqrt(uses.times / uses.period), slack=16.0)
    if fast > 1e4:
        if uses.tail > 1:
            return 0.0
        fast = 1e4
    if fast * (uses.tail - 1) > DEEPEST:
        return 0.0
    rising = half_tanh(slow * (uses.period * uses.times))
    whole = lost(fast, uses.period)
    share = math.sqrt(lost(2.0 * slow, 1) / whole * (rising / whole))
    fading, error = factors(fast, uses.tail - 1)
    return _ratio_times(uses, share, *fading, slack=48.0 + error)


def _log_inverse(shrunk: float) -> float:
    """Return -ln(1 - shrunk)."""
    return -math.log1p(-shrunk) if shrunk < 1.0 else math.inf


def _ratio_times(uses: Uses, *shares: float, slack: float) -> float:
    """Return r times the product of the shares, rounded down."""
    return quotient_down((uses.sensitivity, *shares), (uses.size, uses.noise_std), slack)
