"""Full-batch noisy gradient descent with hidden iterates: every step uses every record.

Notation of the formulas: r = Delta/(n sigma) for a mean gradient over n records, T steps, x = eta m, c the factor by
which a step contracts. It is a cyclic run (`multi_epoch`) of one step a pass: the optimal allocation is
one block over all steps, or over those after the best restart from the diameter.

Chourasia, Ye and Shokri write the noise of a step as sqrt(2 eta) sigma_C; in the convention here, inside the bracket,
sigma = sigma_C sqrt(2/eta), and their y = m eta T is x T. Every guarantee rounds up.
"""

from __future__ import annotations

import functools
import math

from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Gdp, Rdp
from dpcalc.numerics.floats import quotient_up
from dpcalc.theorems.conditions import (
    BALANCED,
    CONVEX_SMOOTH,
    CONVEXITY_WITHIN,
    DOMAIN,
    GAUSSIAN,
    NO_CLIPPING,
    ONE_RELEASE,
    STEP_WITHIN,
    STRONGLY_CONVEX,
)
from dpcalc.theorems.many_passes.repeated_allocation import Uses, bounded_mu, contracting_mu
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import CURVED_STEP, GAUSSIAN_STEP, Setting, decay_rate

FULL = "every step uses the mean gradient of all records"
STRONG = (FULL, "every loss is strongly convex and smooth", GAUSSIAN, ONE_RELEASE, NO_CLIPPING)
EXPONENT = (
    "The announcement prints 1 - e^(-eta T/2), without the strong convexity in the exponent. For m > 1 that is false: "
    "losses 5 |w - x|^2, eta = 0.05, one step, ten records, Delta = sigma_C = 1 have RDP(2) = 2.5e-4, and it says "
    "4.94e-5."
)


CONTRACTING_DESCENT = ("records", "steps", *GAUSSIAN_STEP, *CURVED_STEP)


class Descent(Setting):
    """Noisy gradient descent on the mean loss of all records."""

    @functools.cached_property
    def uses(self) -> Uses:
        """The record's uses, one a step."""
        return Uses(self.sensitivity, self.records, self.noise_std, period=1, tail=1, times=self.steps)

    @property
    def time(self) -> float:
        """The running time x T = eta m T of the Langevin diffusion, in units of its relaxation."""
        return self.step_size * self.strong_convexity * self.steps


@theorem(
    "noisy_gd.contraction",
    title="Noisy gradient descent with strong convexity",
    needs=CONTRACTING_DESCENT,
    algorithms=("noisy-gd",),
    reference="bok2024",
    locator="NoisyGD, strongly convex",
    formula="mu = r sqrt((1-c^T)(1+c)/((1+c^T)(1-c))), c = max(|1 - eta m|, |1 - eta beta|)",
    conditions=(STEP_WITHIN, STRONGLY_CONVEX),
    assumes=STRONG,
)
def contraction(run: Descent) -> Gdp:
    """Strongly convex losses forget early steps geometrically: mu stays below r sqrt((1+c)/(1-c)) for any number of
    steps.

    It is attained by quadratic losses of curvature m for eta <= 2/(beta + m).

    >>> run = Descent(records=1, steps=100, sensitivity=0.1, noise_std=1.0, step_size=1.0, smoothness=0.01,
    ...                          strong_convexity=0.01)
    >>> round(contraction(run).mu, 12)
    0.961013744646
    """
    return Gdp(contracting_mu(run.uses, run.rate))


@theorem(
    "noisy_gd.domain",
    title="Noisy gradient descent on a bounded domain",
    needs=(*CONTRACTING_DESCENT, "diameter"),
    algorithms=("noisy-gd",),
    reference="bok2024",
    locator="NoisyGD, bounded domain, with the best restart",
    formula="mu^2 = min(T r^2, min_{k<T} (D/eta + k Delta/n)^2/(k sigma^2)) at c = 1, about 4 D Delta/(n eta sigma^2); "
    "else with c^k D and Delta (1-c^k)/(n (1-c)) for D and k Delta/n, and (1-c^(2k))/(1-c^2) for k",
    conditions=(STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(FULL, CONVEX_SMOOTH, GAUSSIAN, ONE_RELEASE, NO_CLIPPING, DOMAIN),
)
def domain(run: Descent) -> Gdp:
    """Two runs are never further apart than the diameter, so only the last steps count, however many there are.

    It is never above `contraction` or `composition`, up to rounding.

    >>> run = Descent(records=1, steps=10**12, sensitivity=0.25, noise_std=8.0, step_size=0.05,
    ...                          smoothness=1.0, strong_convexity=0.0, diameter=1.0)
    >>> round(domain(run).mu, 12)
    0.559016994375
    """
    return Gdp(bounded_mu(run.uses, run.rate, run.step_size, run.diameter))


@theorem(
    "noisy_gd.composition",
    title="Noisy gradient descent, composed",
    needs=("records", "steps", *GAUSSIAN_STEP),
    algorithms=("noisy-gd", "noisy-gd-released"),
    reference="dong2022",
    locator="composition of Gaussian mechanisms, one a step",
    formula="mu = (Delta/(n sigma)) sqrt(T)",
    assumes=("iterates may all be public", FULL, GAUSSIAN, "no convexity, no smoothness, any step size"),
    public_sums=True,
)
def composition(run: Descent) -> Gdp:
    """Even if every iterate is public, each step is a Gaussian mechanism: nothing is gained by hiding.

    >>> round(composition(Descent(records=10, steps=100, sensitivity=1.0, noise_std=1.0)).mu, 12)
    1.0
    """
    return Gdp(run.uses.mu(math.sqrt(run.steps)))


@theorem(
    "noisy_gd.langevin",
    title="Langevin dynamics, corrected",
    needs=CONTRACTING_DESCENT,
    algorithms=("noisy-gd",),
    reference="chourasia2021",
    locator="Theorem 1, with the strong convexity in the exponent",
    formula="RDP(a) = (2 a r^2/x) (1 - e^(-x T/2)), that is a Delta^2/(m sigma_C^2 n^2) (1 - e^(-m eta T/2))",
    conditions=(STEP_WITHIN, STRONGLY_CONVEX, BALANCED),
    assumes=STRONG,
    erratum=EXPONENT,
)
def langevin(run: Descent) -> Rdp:
    """The Renyi divergence of two Langevin diffusions grows at a constant rate and decays by the log-Sobolev
    inequality; true for any common start, since `contraction` is never larger.

    >>> run = Descent(records=100, steps=10, sensitivity=1.0, noise_std=0.1 * math.sqrt(10.0), step_size=0.2,
    ...                          smoothness=0.5, strong_convexity=0.5)
    >>> round(langevin(run).curve(2.0), 14)
    0.01573877361149
    """
    return _of_composition(run, saturation(0.5 * run.time))


@theorem(
    "noisy_gd.langevin_refined",
    title="Langevin dynamics, refined",
    needs=CONTRACTING_DESCENT,
    algorithms=("noisy-gd",),
    reference="chourasia2021",
    locator="Theorem 1, its differential inequality solved with the best weight at every time",
    formula="RDP(a) = (2 a r^2/x) rho(x T), rho(y) = y/4 for y <= 1, else (1 - e^(-(y-1)/2)/2)^2",
    conditions=(STEP_WITHIN, STRONGLY_CONVEX, BALANCED),
    assumes=STRONG,
)
def langevin_refined(run: Descent) -> Rdp:
    """The best that the argument of `langevin` can give: never above it nor above composition, and true for any common
    start, since `contraction` is never larger.

    >>> run = Descent(records=100, steps=10, sensitivity=1.0, noise_std=0.1 * math.sqrt(10.0), step_size=0.2,
    ...                          smoothness=0.5, strong_convexity=0.5)
    >>> round(langevin_refined(run).curve(2.0), 14)
    0.01
    """
    y = run.time
    return _of_composition(run, 0.5 if y <= 1.0 else 2.0 * (1.0 - 0.5 * math.exp(-0.5 * (y - 1.0))) ** 2 / y)


def _of_composition(run: Descent, share: float) -> Rdp:
    """Return this share of a r^2 T, rounded up; at a share of 1/2 that is composition. Shares are off by 13 units."""
    return Rdp(lambda order: run.uses.renyi(order, run.steps, share))


def saturation(z: float) -> float:
    """Return (1 - e^-z)/z, to nearest."""
    return -math.expm1(-z) / z if z > 1e-290 else 1.0


def contraction_noise_std(
    *, records: int, steps: int, sensitivity: float, step_size: float, smoothness: float, strong_convexity: float,
    epsilon: float, log_delta: float,
) -> float:  # fmt: skip
    """Return the least sigma for which `contraction` gives (epsilon, delta), rounded up."""
    single = gaussian.noise_std(sensitivity=sensitivity, epsilon=epsilon, log_delta_target=log_delta)
    if math.isinf(single):
        return single
    one = Uses(1.0, records, 1.0, period=1, tail=1, times=steps)
    return quotient_up((single, contracting_mu(one, decay_rate(step_size, smoothness, strong_convexity))), (), 64.0)


def langevin_std(*, noise_std: float, step_size: float) -> float:
    """Return sigma_C = sigma sqrt(eta/2), rounded up: the noise of w - eta gradient + sqrt(2 eta) sigma_C N(0, 1).

    >>> round(langevin_std(noise_std=1.0, step_size=0.5), 12)
    0.5
    """
    return quotient_up((noise_std, math.sqrt(step_size), math.sqrt(0.5)), (), 8.0)
