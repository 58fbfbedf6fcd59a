"""What privacy costs a loss that is not smooth: it is convolved with a Gaussian first (Feldman et al. 2018).

For f convex and L-Lipschitz, extended to the whole space, F(w) = E f(w + lambda Z) with Z ~ N(0, I) is convex and
L-Lipschitz, smooth with constant sqrt(2/pi) L/lambda, and 0 <= F - f <= lambda L E|Z|. Two Gaussians r apart overlap
but for r/(lambda sqrt(2 pi)), on which gradients differ by 2L at most; the rest is Jensen's inequality. A risk of F is
thus one of f, but for lambda L E|Z|. The run is to use exact gradients of F.
"""

from __future__ import annotations

import math

from dpcalc.bounds import iteration
from dpcalc.bounds.cost import Cost
from dpcalc.bounds.multi_epoch import wide_up
from dpcalc.bounds.steps import GAUSSIAN, NO_CLIPPING, ONE_RELEASE
from dpcalc.bounds.utility import (
    BALL,
    CLASSIC,
    CLASSIC_RANGE,
    LOCAL,
    PAPER,
    SAMPLED,
    averaged_step,
    classic_holds,
    gradient_norm,
    skip_count,
)
from dpcalc.notions import gaussian
from dpcalc.numerics.floats import up
from dpcalc.registry import bound

_EXACT = "gradients are those of the smoothed loss, exactly"
_SKIPPED = (
    SAMPLED, BALL, _EXACT, GAUSSIAN, ONE_RELEASE, NO_CLIPPING,
    "a uniform random prefix of 0..floor(n/2) records is skipped", "any start in the domain", LOCAL,
)  # fmt: skip


# --- Theorem 33 -------------------------------------------------------------------------------------------------------


def norm_mean(dimension: int) -> float:
    """Return E|Z| = sqrt(2) Gamma((d+1)/2)/Gamma(d/2) for Z ~ N(0, I) in d dimensions, rounded up.

    >>> round(norm_mean(1), 12), round(norm_mean(2), 12)
    (0.797884560803, 1.253314137316)
    """
    if dimension <= 300:
        value = math.sqrt(2.0 / math.pi) if dimension % 2 else math.sqrt(0.5 * math.pi)
        for d in range(2 - dimension % 2, dimension, 2):
            value *= (d + 1.0) / d
        return up(value, 2.0 * dimension + 8.0)
    x = 1.0 / dimension
    # The next term of the expansion is below 1e-14 of the whole here.
    series = 1.0 + x * (-0.25 + x * (0.03125 + x * (5.0 / 128.0 - x * 21.0 / 2048.0)))
    return up(math.sqrt(dimension) * series, 128.0)


def width_for(*, lipschitz: float, smoothness: float) -> float:
    """Return the lambda = sqrt(2/pi) L/beta that makes a loss beta-smooth, rounded up."""
    return wide_up((math.sqrt(2.0 / math.pi), lipschitz), (smoothness,), 8.0)


def smoothness_of(*, lipschitz: float, width: float) -> float:
    """Return sqrt(2/pi) L/lambda, rounded up: attained by L|w| in one dimension."""
    return wide_up((math.sqrt(2.0 / math.pi), lipschitz), (width,), 8.0)


def published_smoothness(*, lipschitz: float, width: float) -> float:
    """Return the stated L/lambda, rounded up."""
    return wide_up((lipschitz,), (width,))


def error_of(*, lipschitz: float, width: float, dimension: int) -> float:
    """Return lambda L E|Z|, rounded up: how far the smoothed loss may lie above the loss; never below it."""
    return wide_up((lipschitz, width, norm_mean(dimension)), ())


def published_error(*, lipschitz: float, width: float, dimension: int) -> float:
    """Return the stated lambda L sqrt(d), rounded up."""
    return wide_up((lipschitz, width, math.sqrt(dimension)), (), 2.0)


@bound(
    "smoothing.kernel",
    title="Making a Lipschitz loss smooth",
    gives="cost",
    algorithms=("skip", "stop", "pnsgd"),
    reference=PAPER,
    locator="Theorem 33, with its best constants",
    formula="lambda L sqrt(2) Gamma((d+1)/2)/Gamma(d/2), lambda = sqrt(2/pi) L/beta",
    assumes=("every loss is convex and Lipschitz", _EXACT),
    erratum="The paper has smoothness L/lambda and a two-sided error lambda L sqrt(d): true, and looser.",
)
def kernel(*, dimension: int, lipschitz: float, smoothness: float) -> Cost:
    """Convolving with a Gaussian just wide enough for a smoothness costs at most this much risk.

    Args:
        dimension: d >= 1.
        lipschitz: L > 0.
        smoothness: beta > 0, the smoothness wanted.

    Returns:
        Cost: an upper bound on the risk that is added to that of the smoothed loss (inf for beta = 0).

    >>> round(kernel(dimension=10, lipschitz=1.0, smoothness=10.0).excess_risk, 12)
    0.24609375
    """
    if smoothness == 0.0:
        return Cost(math.inf, quantity="smoothing_error")
    width = width_for(lipschitz=lipschitz, smoothness=smoothness)
    return Cost(error_of(lipschitz=lipschitz, width=width, dimension=dimension), quantity="smoothing_error")


# --- Corollary 34 -----------------------------------------------------------------------------------------------------


@bound(
    "smoothing.skip",
    title="Random skip on smoothed losses, at the exact noise",
    gives="cost",
    algorithms=("skip", "local"),
    reference=PAPER,
    locator="Corollary 34, with the exact noise, the best kernel and the step size that balances both",
    formula="2 R sqrt((G^2 + sqrt(2/pi) L^2 E|Z|)/(floor(n/2) + 1)), G^2 = L^2 + d sigma^2, sigma = 2L/mu(eps, delta), "
    "lambda = eta L/sqrt(2 pi)",
    assumes=_SKIPPED,
)
def skip(*, records: int, dimension: int, lipschitz: float, radius: float, epsilon: float, log_delta: float) -> Cost:
    """A random skip needs no smooth loss: a kernel that makes it 2/eta-smooth costs about as much as one more gradient.

    Args:
        records, dimension: n and d, >= 1.
        lipschitz, radius: L and R, > 0.
        epsilon, log_delta: the budget of each record, ln delta < 0.

    Returns:
        Cost: an upper bound on the excess risk of the loss itself, and the run; `kernel_width` has lambda.

    >>> cost = skip(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0, log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    0.669359946578
    """
    sigma = gaussian.noise_std(sensitivity=2.0 * lipschitz, epsilon=epsilon, log_delta_target=log_delta)
    if math.isinf(sigma):
        return Cost(math.inf)
    norm = gradient_norm(lipschitz=lipschitz, dimension=dimension, noise_std=sigma)
    # 2 R^2/(eta c) + eta G^2/2 + L lambda E|Z| at lambda = eta L/sqrt(2 pi)
    extra = up(math.sqrt(math.sqrt(2.0 / math.pi) * norm_mean(dimension)), 8.0)
    both = up(math.hypot(norm, wide_up((lipschitz, extra), ())), 4.0)
    count = math.sqrt(skip_count(records))
    return Cost(wide_up((2.0, radius, both), (count,), 8.0), sigma, wide_up((2.0, radius), (both, count), 4.0))


def kernel_width(*, lipschitz: float, step_size: float) -> float:
    """Return lambda = eta L/sqrt(2 pi), rounded up: the least that makes the loss 2/eta-smooth."""
    return wide_up((step_size, lipschitz), (math.sqrt(2.0 * math.pi),), 8.0)


def published_width(*, radius: float, records: int, epsilon: float, log_delta: float) -> float:
    """Return the stated lambda = R eps/(2 sqrt(n ln(1/delta))), rounded up."""
    return wide_up((radius, epsilon), (2.0, math.sqrt(records), math.sqrt(-log_delta)), 4.0)


def classic_extra(
    *, records: int, dimension: int, lipschitz: float, radius: float, epsilon: float, log_delta: float
) -> float:
    """Return what the stated kernel adds to the risk, L lambda sqrt(d), rounded up."""
    width = published_width(radius=radius, records=records, epsilon=epsilon, log_delta=log_delta)
    return up(published_error(lipschitz=lipschitz, width=width, dimension=dimension), 4.0)


def published_extra(
    *, records: int, dimension: int, lipschitz: float, radius: float, epsilon: float, log_delta: float
) -> float:
    """Return what the paper prints for it: (4 sqrt(2) R L/sqrt(n)) eps sqrt(d)/(2 ln(1.25/delta)), rounded up."""
    factor = iteration.classic_factor(log_delta)  # its square is twice the logarithm
    return wide_up(
        (4.0 * math.sqrt(2.0), radius, lipschitz, epsilon, math.sqrt(dimension)),
        (math.sqrt(records), factor, factor),
        8.0,
    )


@bound(
    "smoothing.skip_classic",
    title="Random skip on smoothed losses, at the classic noise",
    gives="cost",
    algorithms=("skip", "local"),
    reference=PAPER,
    locator="Corollary 34, corrected",
    formula="(4 sqrt(2) R L/sqrt(n)) (sqrt(1 + 8 d ln(1.25/delta)/eps^2) + eps sqrt(d)/(8 sqrt(2 ln(1/delta)))) at "
    "lambda = R eps/(2 sqrt(n ln(1/delta)))",
    requires=(CLASSIC_RANGE,),
    assumes=_SKIPPED,
    erratum=CLASSIC,
)
def skip_classic(
    *, records: int, dimension: int, lipschitz: float, radius: float, epsilon: float, log_delta: float
) -> Cost:
    """The paper's corollary with the error that its kernel has.

    Args:
        records, dimension, lipschitz, radius, epsilon, log_delta: as in `skip`.

    Returns:
        Cost: an upper bound on the excess risk (inf outside the range), and the run.

    >>> cost = skip_classic(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0,
    ...                     log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    1.738912963726
    """
    if not classic_holds(epsilon, log_delta):
        return Cost(math.inf)
    cost = _printed(records, dimension, lipschitz, radius, epsilon, log_delta)
    extra = classic_extra(
        records=records, dimension=dimension, lipschitz=lipschitz, radius=radius, epsilon=epsilon, log_delta=log_delta
    )
    return cost._replace(excess_risk=up(cost.excess_risk + extra))


@bound(
    "smoothing.skip_published",
    title="Random skip on smoothed losses, as printed",
    gives="cost",
    kind="published",
    algorithms=("skip", "local"),
    reference=PAPER,
    locator="Corollary 34",
    formula="(4 sqrt(2) R L/sqrt(n)) (sqrt(1 + 8 d ln(1.25/delta)/eps^2) + eps sqrt(d)/(2 ln(1.25/delta)))",
    assumes=_SKIPPED,
    erratum="The last term lost a square root: it is eps sqrt(d)/(8 sqrt(2 ln(1/delta))), and the printed one is too "
    "small for delta < 1.98e-14. The classic noise holds in its range only.",
)
def skip_published(
    *, records: int, dimension: int, lipschitz: float, radius: float, epsilon: float, log_delta: float
) -> Cost:
    """What the paper prints, for comparison only.

    Args:
        records, dimension, lipschitz, radius, epsilon, log_delta: as in `skip`.

    Returns:
        Cost: the printed excess risk, and the printed run.

    >>> cost = skip_published(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0,
    ...                       log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    1.741874239807
    """
    if epsilon == 0.0:
        return Cost(math.inf)
    cost = _printed(records, dimension, lipschitz, radius, epsilon, log_delta)
    extra = published_extra(
        records=records, dimension=dimension, lipschitz=lipschitz, radius=radius, epsilon=epsilon, log_delta=log_delta
    )
    return cost._replace(excess_risk=up(cost.excess_risk + extra))


def _printed(records: int, dimension: int, lipschitz: float, radius: float, epsilon: float, log_delta: float) -> Cost:
    """Return 4 sqrt(2) R G/sqrt(n) at the classic noise and eta = sqrt(8) R/(G sqrt(n))."""
    sigma = iteration.classic_noise_std(sensitivity=2.0 * lipschitz, epsilon=epsilon, log_delta=log_delta)
    norm = gradient_norm(lipschitz=lipschitz, dimension=dimension, noise_std=sigma)
    step = averaged_step(radius=radius, gradient_norm=norm, steps=0.5 * records, factor=2.0)
    return Cost(wide_up((4.0 * math.sqrt(2.0), radius, norm), (math.sqrt(records),), 8.0), sigma, step)
