"""Full-batch noisy gradient descent with hidden iterates: every step uses every record.

Notation of the formulas: r = Delta/(n sigma) for a mean gradient over n records, T steps, x = eta m, c the factor by
which a step contracts. It is a cyclic run (`dpcalc.bounds.multi_epoch`) of one step a pass: the optimal allocation is
one block over all steps, or over those after the best restart from the diameter.

Chourasia, Ye and Shokri write the noise of a step as sqrt(2 eta) sigma_C; in the convention here, inside the bracket,
sigma = sigma_C sqrt(2/eta), and their y = m eta T is x T. Every guarantee rounds up.
"""

from __future__ import annotations

import math

from dpcalc.bounds.multi_epoch import (
    BALANCED,
    DOMAIN,
    NO_GUARANTEE,
    QUADRATIC,
    UNBOUNDED,
    printed_reach,
    quadratic,
    spent_mu,
    wide_down,
    wide_up,
)
from dpcalc.bounds.steps import (
    CONVEX_SMOOTH,
    CONVEXITY_WITHIN,
    GAUSSIAN,
    NO_CLIPPING,
    ONE_RELEASE,
    STEP_WITHIN,
    STRONGLY_CONVEX,
    decay_rate,
)
from dpcalc.notions import gaussian
from dpcalc.registry import bound

_FULL = "every step uses the mean gradient of all records"
_STRONG = (_FULL, "every loss is strongly convex and smooth", GAUSSIAN, ONE_RELEASE, NO_CLIPPING)
_EXPONENT = (
    "The announcement prints 1 - e^(-eta T/2), without the strong convexity in the exponent. For m > 1 that is false: "
    "losses 5 |w - x|^2, eta = 0.05, one step, ten records, Delta = sigma_C = 1 have RDP(2) = 2.5e-4, and it says "
    "4.94e-5."
)


# --- guarantees -------------------------------------------------------------------------------------------------------


@bound(
    "noisy_gd.contraction",
    title="Noisy gradient descent with strong convexity",
    gives="mu",
    algorithms=("noisy-gd",),
    reference="bok2024",
    locator="NoisyGD, strongly convex",
    formula="mu = r sqrt((1-c^T)(1+c)/((1+c^T)(1-c))), c = max(|1 - eta m|, |1 - eta beta|)",
    requires=(STEP_WITHIN, STRONGLY_CONVEX),
    assumes=_STRONG,
)
def contraction_mu(
    *, records: int, steps: int, sensitivity: float, noise_std: float, step_size: float, smoothness: float,
    strong_convexity: float,
) -> float:  # fmt: skip
    """Strongly convex losses forget early steps geometrically: mu stays below r sqrt((1+c)/(1-c)) for ever.

    Args:
        records: n >= 1; the gradient is their mean.
        steps: T >= 1.
        sensitivity: gradient sensitivity Delta >= 0 of one record.
        noise_std: sigma > 0.
        step_size: eta, 0 < eta <= 2/smoothness.
        smoothness, strong_convexity: beta >= m >= 0.

    Returns:
        mu, rounded up; attained by quadratic losses of curvature m for eta <= 2/(beta + m).

    >>> round(contraction_mu(records=1, steps=100, sensitivity=0.1, noise_std=1.0, step_size=1.0, smoothness=0.01,
    ...                      strong_convexity=0.01), 12)
    0.961013744646
    """
    rate = decay_rate(step_size, smoothness, strong_convexity)
    return spent_mu(sensitivity=sensitivity, size=records, noise_std=noise_std, rate=rate, period=1, tail=1, uses=steps)


@bound(
    "noisy_gd.domain",
    title="Noisy gradient descent on a bounded domain",
    gives="mu",
    algorithms=("noisy-gd",),
    reference="bok2024",
    locator="NoisyGD, bounded domain, with the best restart",
    formula="mu^2 = min(T r^2, min_{k<T} (D/eta + k Delta/n)^2/(k sigma^2)) at c = 1, about 4 D Delta/(n eta sigma^2); "
    "else with c^k D and Delta (1-c^k)/(n (1-c)) for D and k Delta/n, and (1-c^(2k))/(1-c^2) for k",
    requires=(STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(_FULL, CONVEX_SMOOTH, GAUSSIAN, ONE_RELEASE, NO_CLIPPING, DOMAIN),
)
def domain_mu(
    *, records: int, steps: int, sensitivity: float, noise_std: float, step_size: float, smoothness: float,
    strong_convexity: float, diameter: float,
) -> float:  # fmt: skip
    """Two runs are never further apart than the diameter, so that only the last steps count, however many there are.

    Args:
        records, steps, sensitivity, noise_std, step_size, smoothness, strong_convexity: as in `contraction_mu`.
        diameter: D > 0 of the constraint set.

    Returns:
        mu, rounded up; never above `contraction_mu` or `composition_mu` but for rounding.

    >>> round(domain_mu(records=1, steps=10**12, sensitivity=0.25, noise_std=8.0, step_size=0.05, smoothness=1.0,
    ...                 strong_convexity=0.0, diameter=1.0), 12)
    0.559016994375
    """
    rate = decay_rate(step_size, smoothness, strong_convexity)
    return spent_mu(
        sensitivity=sensitivity, size=records, noise_std=noise_std, rate=rate, period=1, tail=1, uses=steps,
        step_size=step_size, diameter=diameter,
    )  # fmt: skip


@bound(
    "noisy_gd.composition",
    title="Noisy gradient descent, composed",
    gives="mu",
    algorithms=("noisy-gd", "noisy-gd-released"),
    reference="dong2022",
    locator="composition of Gaussian mechanisms, one a step",
    formula="mu = (Delta/(n sigma)) sqrt(T)",
    assumes=("iterates may all be public", _FULL, GAUSSIAN, "no convexity, no smoothness, any step size"),
)
def composition_mu(*, records: int, steps: int, sensitivity: float, noise_std: float) -> float:
    """Even if every iterate is public, each step is a Gaussian mechanism: nothing is gained by hiding.

    Args:
        records, steps, sensitivity, noise_std: as in `contraction_mu`.

    Returns:
        mu, rounded up.

    >>> round(composition_mu(records=10, steps=100, sensitivity=1.0, noise_std=1.0), 12)
    1.0
    """
    return wide_up((sensitivity, math.sqrt(steps)), (records, noise_std), 4.0)


@bound(
    "noisy_gd.langevin",
    title="Langevin dynamics, corrected",
    gives="rdp",
    algorithms=("noisy-gd",),
    reference="chourasia2021",
    locator="Theorem 1, with the strong convexity in the exponent",
    formula="RDP(a) = (2 a r^2/x) (1 - e^(-x T/2)), that is a Delta^2/(m sigma_C^2 n^2) (1 - e^(-m eta T/2))",
    requires=(STEP_WITHIN, STRONGLY_CONVEX, BALANCED),
    assumes=_STRONG,
    erratum=_EXPONENT,
)
def langevin_rdp(
    *, records: int, steps: int, sensitivity: float, noise_std: float, step_size: float, smoothness: float,
    strong_convexity: float, order: float,
) -> float:  # fmt: skip
    """The Renyi divergence of two Langevin diffusions grows at a constant rate and decays by the log-Sobolev
    inequality; true of any common start, since `contraction_mu` is never larger.

    Args:
        records, steps, sensitivity, noise_std: as in `contraction_mu`.
        step_size: eta, 0 < eta <= 2/(smoothness + strong_convexity).
        smoothness, strong_convexity: beta >= m > 0.
        order: a >= 1.

    Returns:
        RDP at the order, rounded up.

    >>> round(langevin_rdp(records=100, steps=10, sensitivity=1.0, noise_std=0.1 * math.sqrt(10.0), step_size=0.2,
    ...                    smoothness=0.5, strong_convexity=0.5, order=2.0), 14)
    0.01573877361149
    """
    shrunk = step_size * strong_convexity
    return _over_time(records, sensitivity, noise_std, order, steps, _saturating(0.5 * shrunk * steps))


@bound(
    "noisy_gd.langevin_refined",
    title="Langevin dynamics, refined",
    gives="rdp",
    algorithms=("noisy-gd",),
    reference="chourasia2021",
    locator="Theorem 1, its differential inequality solved with the best weight at every time",
    formula="RDP(a) = (2 a r^2/x) rho(x T), rho(y) = y/4 for y <= 1, else (1 - e^(-(y-1)/2)/2)^2",
    requires=(STEP_WITHIN, STRONGLY_CONVEX, BALANCED),
    assumes=_STRONG,
)
def langevin_refined_rdp(
    *, records: int, steps: int, sensitivity: float, noise_std: float, step_size: float, smoothness: float,
    strong_convexity: float, order: float,
) -> float:  # fmt: skip
    """The best that the argument of `langevin_rdp` can give: never above it nor above composition, and true of any
    common start, since `contraction_mu` is never larger.

    Args:
        records, steps, sensitivity, noise_std, step_size, smoothness, strong_convexity, order: as in `langevin_rdp`.

    Returns:
        RDP at the order, rounded up.

    >>> round(langevin_refined_rdp(records=100, steps=10, sensitivity=1.0, noise_std=0.1 * math.sqrt(10.0),
    ...                            step_size=0.2, smoothness=0.5, strong_convexity=0.5, order=2.0), 14)
    0.01
    """
    y = step_size * strong_convexity * steps
    share = 0.5 if y <= 1.0 else 2.0 * (1.0 - 0.5 * math.exp(-0.5 * (y - 1.0))) ** 2 / y
    return _over_time(records, sensitivity, noise_std, order, steps, share)


def contraction_noise_std(
    *, records: int, steps: int, sensitivity: float, step_size: float, smoothness: float, strong_convexity: float,
    epsilon: float, log_delta: float,
) -> float:  # fmt: skip
    """Return the least sigma for which `contraction_mu` gives (epsilon, delta), rounded up."""
    single = gaussian.noise_std(sensitivity=sensitivity, epsilon=epsilon, log_delta_target=log_delta)
    if math.isinf(single):
        return single
    share = contraction_mu(
        records=records, steps=steps, sensitivity=1.0, noise_std=1.0, step_size=step_size, smoothness=smoothness,
        strong_convexity=strong_convexity,
    )  # fmt: skip
    return wide_up((single, share), (), 64.0)


def langevin_std(*, noise_std: float, step_size: float) -> float:
    """Return sigma_C = sigma sqrt(eta/2), rounded up: the noise of w - eta gradient + sqrt(2 eta) sigma_C N(0, 1).

    >>> round(langevin_std(noise_std=1.0, step_size=0.5), 12)
    0.5
    """
    return wide_up((noise_std, math.sqrt(step_size), math.sqrt(0.5)), (), 8.0)


# --- for comparison ---------------------------------------------------------------------------------------------------


@bound(
    "noisy_gd.quadratic",
    title="Noisy gradient descent on quadratic losses, exactly",
    gives="mu",
    kind="lower",
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator="Gaussian output: its mean and variance",
    formula="mu = r sqrt((1-q^T)(1+q)/((1+q^T)(1-q))), q = 1 - eta m; r sqrt(T) for m = 0",
    requires=(STEP_WITHIN, CONVEXITY_WITHIN, BALANCED, UNBOUNDED),
    assumes=(_FULL, QUADRATIC, GAUSSIAN, ONE_RELEASE),
    erratum=NO_GUARANTEE,
)
def quadratic_mu(
    *, records: int, steps: int, sensitivity: float, noise_std: float, step_size: float, smoothness: float,
    strong_convexity: float,
) -> float:  # fmt: skip
    """With quadratic losses on the whole space the last iterate is Gaussian, and its mu is known: none can be smaller.

    Args:
        records, steps, sensitivity, noise_std: as in `contraction_mu`.
        step_size: eta, 0 < eta <= 2/(smoothness + strong_convexity).
        smoothness, strong_convexity: beta >= m >= 0.

    Returns:
        The mu of such a run, rounded down; `contraction_mu` but for rounding.

    >>> round(quadratic_mu(records=1, steps=100, sensitivity=0.1, noise_std=1.0, step_size=1.0, smoothness=0.01,
    ...                    strong_convexity=0.01), 12)
    0.961013744646
    """
    return quadratic(
        sensitivity=sensitivity, size=records, noise_std=noise_std, curvature=(step_size, strong_convexity), period=1,
        tail=1, uses=steps,
    )  # fmt: skip


@bound(
    "noisy_gd.langevin_lower",
    title="Langevin dynamics, the lower bound",
    gives="rdp",
    kind="lower",
    algorithms=("noisy-gd",),
    reference="chourasia2021",
    locator="Theorem 2, for any strong convexity",
    formula="RDP(a) = (a r^2/(2 x)) (1 - e^(-x T)), that is a Delta^2/(4 m sigma_C^2 n^2) (1 - e^(-m eta T))",
    requires=(STEP_WITHIN, STRONGLY_CONVEX, BALANCED, UNBOUNDED),
    assumes=(_FULL, QUADRATIC, GAUSSIAN, ONE_RELEASE),
    erratum="The announcement derives it with |w - x|^2 for |w - x|^2/2 and with a variance divided by n^2; the "
    "statement is true.",
)
def langevin_lower_rdp(
    *, records: int, steps: int, sensitivity: float, noise_std: float, step_size: float, smoothness: float,
    strong_convexity: float, order: float,
) -> float:  # fmt: skip
    """Quadratic losses have at least this Renyi divergence, a quarter to a half of what `langevin_rdp` says.

    Args:
        records, steps, sensitivity, noise_std, step_size, smoothness, strong_convexity, order: as in `langevin_rdp`.

    Returns:
        A lower bound on the RDP of such a run at the order, rounded down.

    >>> round(langevin_lower_rdp(records=100, steps=1, sensitivity=1.0, noise_std=0.1 * math.sqrt(2.0 / 0.9),
    ...                          step_size=0.9, smoothness=1.0, strong_convexity=1.0, order=2.0), 14)
    0.0029671517013
    """
    share = _saturating(step_size * strong_convexity * steps)
    return wide_down(
        (0.5, order, sensitivity, sensitivity, steps, share), (records, records, noise_std, noise_std), 32.0
    )


@bound(
    "noisy_gd.langevin_published",
    title="Langevin dynamics as announced",
    gives="rdp",
    kind="published",
    algorithms=("noisy-gd",),
    reference="chourasia2021",
    locator="Theorem 1 as announced on the authors' page",
    formula="RDP(a) = (2 a r^2/x) (1 - e^(-eta T/2)), that is a Delta^2/(m sigma_C^2 n^2) (1 - e^(-eta T/2))",
    requires=(STEP_WITHIN, STRONGLY_CONVEX),
    assumes=_STRONG,
    erratum=_EXPONENT,
)
def langevin_published_rdp(
    *, records: int, steps: int, sensitivity: float, noise_std: float, step_size: float, smoothness: float,
    strong_convexity: float, order: float,
) -> float:  # fmt: skip
    """What the announcement prints, for comparison only: below the truth where m > 1, loose where m < 1.

    Args:
        records, steps, sensitivity, noise_std, step_size, smoothness, strong_convexity, order: as in `langevin_rdp`.

    Returns:
        The printed value.

    >>> round(langevin_published_rdp(records=10, steps=1, sensitivity=1.0, noise_std=math.sqrt(40.0), step_size=0.05,
    ...                              smoothness=10.0, strong_convexity=10.0, order=2.0), 14)
    4.938017594e-05
    """
    z = 0.5 * step_size * steps
    below = (records, records, noise_std, noise_std, strong_convexity)
    if z < 1.0:
        return wide_up((order, sensitivity, sensitivity, steps, _saturating(z)), below, 16.0)
    return wide_up((2.0, order, sensitivity, sensitivity, -math.expm1(-z)), (*below, step_size), 16.0)


@bound(
    "noisy_gd.dynamics_published",
    title="Noisy gradient descent by privacy dynamics as plotted",
    gives="rdp",
    kind="published",
    algorithms=("noisy-gd",),
    reference="ye2022",
    locator="as plotted by Bok, Su and Altschuler 2024, Figure 1",
    formula="RDP(a) = a r^2 (1+c)/(1-c) (1 - ((1+c)/2)^T)",
    requires=(STEP_WITHIN, STRONGLY_CONVEX),
    assumes=_STRONG,
    erratum="Superseded: about twice noisy_gd.contraction in the limit, as a Renyi divergence.",
)
def dynamics_published_rdp(
    *, records: int, steps: int, sensitivity: float, noise_std: float, step_size: float, smoothness: float,
    strong_convexity: float, order: float,
) -> float:  # fmt: skip
    """The bound that earlier work would give, as Bok, Su and Altschuler plot it beside theirs.

    Args:
        records, steps, sensitivity, noise_std, step_size, smoothness, strong_convexity, order: as in `langevin_rdp`.

    Returns:
        RDP at the order, rounded up.

    >>> round(dynamics_published_rdp(records=1, steps=10, sensitivity=0.1, noise_std=1.0, step_size=1.0,
    ...                              smoothness=0.05, strong_convexity=0.05, order=1.0), 13)
    0.087231447866
    """
    rate = decay_rate(step_size, smoothness, strong_convexity)
    lost = -math.expm1(-rate)  # 1 - c
    if lost < 1e-290:
        return wide_up((order, sensitivity, sensitivity, steps), (records, records, noise_std, noise_std), 8.0)
    # ln((1+c)/2) = ln(1 - (1-c)/2)
    share = -math.expm1(steps * math.log1p(-0.5 * lost))
    return wide_up(
        (order, sensitivity, sensitivity, 2.0 - lost, share), (records, records, noise_std, noise_std, lost), 32.0
    )


@bound(
    "noisy_gd.domain_published",
    title="Noisy gradient descent on a bounded domain as printed",
    gives="mu",
    kind="published",
    algorithms=("noisy-gd",),
    reference="bok2024",
    locator="NoisyGD, bounded domain",
    formula="mu^2 = (1/sigma^2) (3 Delta D/(eta n) + (Delta/n)^2 ceil(D n/(eta Delta)))",
    requires=(STEP_WITHIN,),
    assumes=(_FULL, CONVEX_SMOOTH, GAUSSIAN, ONE_RELEASE, NO_CLIPPING, DOMAIN),
    erratum="True, and equal to noisy_gd.domain where D n/(eta Delta) is whole and the run is longer; else above it.",
)
def domain_published_mu(
    *, records: int, sensitivity: float, noise_std: float, step_size: float, diameter: float
) -> float:
    """What the paper states for any number of steps.

    Args:
        records, sensitivity, noise_std: as in `contraction_mu`.
        step_size: eta > 0.
        diameter: D > 0 of the constraint set.

    Returns:
        mu, rounded up.

    >>> round(domain_published_mu(records=1, sensitivity=0.25, noise_std=8.0, step_size=0.1, diameter=1.0), 12)
    0.395284707521
    """
    reach = wide_up((diameter, records), (step_size, sensitivity)) if sensitivity > 0.0 else math.inf
    return wide_up((sensitivity, math.sqrt(printed_reach(reach))), (records, noise_std), 16.0)


# --- shared -----------------------------------------------------------------------------------------------------------


def _saturating(z: float) -> float:
    """Return (1 - e^-z)/z, to nearest."""
    return -math.expm1(-z) / z if z > 1e-290 else 1.0


def _over_time(records: int, sensitivity: float, noise_std: float, order: float, steps: int, share: float) -> float:
    """Return a r^2 T times the share of it that remains, rounded up; at a share of 1/2 that is composition."""
    return wide_up((order, sensitivity, sensitivity, steps, share), (records, records, noise_std, noise_std), 24.0)
