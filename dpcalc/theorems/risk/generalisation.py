"""The gap between the risk in the population and that on the data: high-probability bounds by uniform stability.

Losses lie in [0, B]. gamma_s bounds the change of the loss at the output when a record is replaced. Every value is
rounded up. Proofs are in docs/method.md.

The cost of privacy for a loss that is not smooth: it is convolved with a Gaussian first (Feldman et al. 2018).

Let f be convex and L-Lipschitz, extended to the whole space. Then F(w) = E f(w + lambda Z) with Z ~ N(0, I) is convex,
L-Lipschitz and sqrt(2/pi) L/lambda-smooth, and 0 <= F - f <= lambda L E|Z|. The proof: two Gaussians r apart have a
total variation of at most r/(lambda sqrt(2 pi)), where gradients differ by at most 2L; the rest is Jensen's inequality.
So an excess risk of F, plus lambda L E|Z|, bounds that of f. The run must use exact gradients of F.
"""

from __future__ import annotations

import math

from dpcalc.model.quantities import Quantity
from dpcalc.notions import conversions
from dpcalc.notions.conversions import NO_BOUND, Risk
from dpcalc.numerics.floats import quotient_up, up
from dpcalc.theorems.conditions import GAUSSIAN, NO_CLIPPING, ONE_RELEASE
from dpcalc.theorems.record import theorem
from dpcalc.theorems.risk.averaging import CLASSIC_RANGE, Budget
from dpcalc.theorems.risk.utility import BALL, CLASSIC, LOCAL, PAPER, SAMPLED
from dpcalc.theorems.setting import Setting


def chaining(log_chance: float) -> float:
    """Return the least over p >= 2 of gamma^(-1/p) Q_p, Q_p = sqrt((p - 1)/2) (2 Gamma(p/2 + 1))^(1/p), rounded up.

    Every p gives a bound, so an inexact minimum is only a little looser.

    >>> round(chaining(math.log(0.05)), 12)
    3.660459459916
    """

    def log_at(p: float) -> float:
        moment = (0.6931471805599453 + math.lgamma(0.5 * p + 1.0)) / p
        return -log_chance / p + 0.5 * math.log(0.5 * (p - 1.0)) + moment

    low, high = 2.0, 8.0 + 8.0 * -log_chance
    ratio = 0.6180339887498949
    for _ in range(90):
        c, d = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, d) if log_at(c) <= log_at(d) else (c, high)
    best = min(log_at(0.5 * (low + high)), log_at(2.0))
    return up(math.exp(best), 32.0 + 8.0 * abs(best)) if best < 709.0 else math.inf


def _levels(records: int) -> int:
    """Return the least integer k with 2^k >= n."""
    return (records - 1).bit_length()


def gap_published(*, stability: float, loss_range: float, records: int, log_chance: float) -> float:
    """Return 2 g + e (24 sqrt(2) p g ceil(log2 n) + 4 B sqrt(p/n)), p = max(2, ln(1/chance)), rounded up.

    Bousquet, Klochkov and Zhivotovskiy (2020), Theorem 4 with its constants.

    Args:
        stability: gamma_s.
        loss_range: B.
        records: n.
        log_chance: ln of the probability that the bound fails.

    >>> round(gap_published(stability=1e-4, loss_range=2.0, records=10000, log_chance=math.log(0.05)), 12)
    0.763535414414
    """
    p = max(2.0, -log_chance)
    moved = 24.0 * math.sqrt(2.0) * p * stability * _levels(records)
    return up(2.0 * stability + math.e * (moved + 4.0 * loss_range * math.sqrt(p / records)), 32.0)


def gap_uniform(*, stability: float, loss_range: float, records: int, log_share: float) -> float:
    """Return 2 g + B sqrt(ln(1/gamma)/(2n)) + 2 g ceil(log2 n) min_p gamma^(-1/p) Q_p, rounded up.

    Args:
        stability: gamma_s.
        loss_range: B.
        records: n.
        log_share: ln gamma; the bound fails with probability at most 2 gamma.

    >>> round(gap_uniform(stability=1e-4, loss_range=2.0, records=10000, log_share=math.log(0.025)), 12)
    0.039431101163
    """
    mean = loss_range * math.sqrt(-log_share / (2.0 * records))
    return up(2.0 * stability + mean + 2.0 * stability * _levels(records) * chaining(log_share), 32.0)


def gap_by_index(
    *, gradient: float, use: float, drift: float, loss_range: float, records: int, steps: int, log_share: float
) -> float:
    """Return 2 G_1 + B sqrt(ln(1/gamma)/(2n)) + ceil(log2 n) min_p gamma^(-1/p) Q_p G_2, rounded up.

    The stability of record j is G Delta*(K_j), K_j the number of times that it was drawn:
    G_1 = G (b T/n + a sqrt(T) min(1, T/n)) and G_2 = (2 G/sqrt(n)) (b sqrt(S) + a sqrt(T min(n, T))), S = T + 2 C,
    C = v + sqrt(v (1 - 1/n) (1/gamma - 1)), v = T (T - 1)/(2 n). C bounds the number of pairs of steps that drew the
    same record, by Cantelli's inequality.

    Args:
        gradient, use, drift: G, b = 2 eta G and a.
        loss_range: B.
        records, steps: n and T.
        log_share: ln gamma; the bound fails with probability at most 3 gamma.

    >>> round(gap_by_index(gradient=2.0, use=0.004, drift=0.0, loss_range=4.0, records=10000, steps=10000,
    ...                    log_share=math.log(0.01)), 6)
    1.763822
    """
    n, t = float(records), float(steps)
    a = min(drift, use)
    pairs = t * (t - 1.0) / (2.0 * n)
    odds = math.exp(-log_share) - 1.0 if -log_share < 700.0 else math.inf
    most = t * (t - 1.0) / 2.0
    same = min(pairs + math.sqrt(pairs * (1.0 - 1.0 / n) * odds), most) if pairs < most else most
    average = gradient * (use * t / n + a * math.sqrt(t) * min(1.0, t / n))
    spread = 2.0 * gradient / math.sqrt(n) * (use * math.sqrt(t + 2.0 * same) + a * math.sqrt(t * min(n, t)))
    mean = loss_range * math.sqrt(-log_share / (2.0 * n))
    return up(2.0 * average + mean + chaining(log_share) * _levels(records) * spread, 64.0)


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


def width_for(lipschitz: float, smoothness: float) -> float:
    """Return lambda = sqrt(2/pi) L/beta, the width that makes a loss beta-smooth, rounded up.

    With beta and lambda swapped it is the smoothness at a width; L|w| in one dimension attains it.
    """
    return quotient_up((math.sqrt(2.0 / math.pi), lipschitz), (smoothness,), 8.0)


def smoothing_error(lipschitz: float, width: float, dimension: int) -> float:
    """Return lambda L E|Z|, rounded up: the most by which the smoothed loss exceeds the loss; it is never below."""
    return quotient_up((lipschitz, width, norm_mean(dimension)), ())


def printed_error(lipschitz: float, width: float, dimension: int) -> float:
    """Return the printed lambda L sqrt(d), rounded up."""
    return quotient_up((lipschitz, width, math.sqrt(dimension)), (), 2.0)


@theorem(
    "smoothing.kernel",
    title="Making a Lipschitz loss smooth",
    needs=("dimension", "lipschitz", "smoothness"),
    algorithms=("skip", "stop", "pnsgd"),
    reference=PAPER,
    locator="Theorem 33, with its best constants",
    formula="lambda L sqrt(2) Gamma((d+1)/2)/Gamma(d/2), lambda = sqrt(2/pi) L/beta",
    assumes=("every loss is convex and Lipschitz", _EXACT),
    erratum="The paper has smoothness L/lambda and a two-sided error lambda L sqrt(d): true, and looser.",
)
def kernel(run: Setting) -> Risk:
    """Convolving with the narrowest Gaussian that gives this smoothness adds at most this much risk.

    It is added to the risk of the smoothed loss.

    >>> round(kernel(Setting(dimension=10, lipschitz=1.0, smoothness=10.0)).excess_risk, 12)
    0.24609375
    """
    added = math.inf
    if run.smoothness > 0.0:
        added = smoothing_error(run.lipschitz, width_for(run.lipschitz, run.smoothness), run.dimension)
    return Risk(added, quantity=Quantity.SMOOTHING_ERROR)


# --- Corollary 34 -----------------------------------------------------------------------------------------------------


NONSMOOTH_SKIP = ("records", "dimension", "lipschitz", "radius", "epsilon", "log_delta")


class NonsmoothSkip(Budget):
    """A random skip over smoothed losses, with a budget for every message."""

    @property
    def printed_width(self) -> float:
        """The printed lambda = R eps/(2 sqrt(n ln(1/delta))), rounded up."""
        return quotient_up((self.radius, self.epsilon), (2.0, math.sqrt(self.records), math.sqrt(-self.log_delta)), 4.0)

    @property
    def kernel_error(self) -> float:
        """L lambda sqrt(d), which the printed kernel adds to the risk, rounded up."""
        return up(printed_error(self.lipschitz, self.printed_width, self.dimension), 4.0)

    @property
    def stated_error(self) -> float:
        """The same term as printed: (4 sqrt(2) R L/sqrt(n)) eps sqrt(d)/(2 ln(1.25/delta)), rounded up."""
        factor = conversions.factor(self.log_delta)  # its square is twice the logarithm
        return quotient_up(
            (4.0 * math.sqrt(2.0), self.radius, self.lipschitz, self.epsilon, math.sqrt(self.dimension)),
            (math.sqrt(self.records), factor, factor),
            8.0,
        )

    def at_classic_noise(self, error: float) -> Risk:
        """Return 4 sqrt(2) R G/sqrt(n) plus this error, at the classic noise and eta = sqrt(8) R/(G sqrt(n))."""
        sigma = self.classic_noise
        norm = self.noisy_norm(sigma)
        risk = quotient_up((4.0 * math.sqrt(2.0), self.radius, norm), (math.sqrt(self.records),), 8.0)
        return Risk(up(risk + error), sigma, self.step(2.0, norm, 0.5 * self.records))


@theorem(
    "smoothing.skip",
    title="Random skip on smoothed losses, at the exact noise",
    needs=NONSMOOTH_SKIP,
    algorithms=("skip", "local"),
    reference=PAPER,
    locator="Corollary 34, with the exact noise, the best kernel and the step size that balances both",
    formula="2 R sqrt((G^2 + sqrt(2/pi) L^2 E|Z|)/(floor(n/2) + 1)), G^2 = L^2 + d sigma^2, sigma = 2L/mu(eps, delta), "
    "lambda = eta L/sqrt(2 pi)",
    assumes=_SKIPPED,
)
def skip(run: NonsmoothSkip) -> Risk:
    """A random skip works for losses that are not smooth: a kernel that makes them 2/eta-smooth only adds
    sqrt(2/pi) L^2 E|Z| to G^2.

    The risk is that of the original loss. The narrowest kernel that makes it 2/eta-smooth is lambda = eta L/sqrt(2 pi).

    >>> run = NonsmoothSkip(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0,
    ...                     log_delta=math.log(1e-5))
    >>> round(skip(run).excess_risk, 12)
    0.669359946578
    """
    sigma = run.exact_noise
    if math.isinf(sigma):
        return NO_BOUND
    # 2 R^2/(eta c) + eta G^2/2 + L lambda E|Z| at lambda = eta L/sqrt(2 pi)
    kernel = up(math.sqrt(math.sqrt(2.0 / math.pi) * norm_mean(run.dimension)), 8.0)
    norm = up(math.hypot(run.noisy_norm(sigma), quotient_up((run.lipschitz, kernel), ())), 4.0)
    root = math.sqrt(run.records // 2 + 1)
    return Risk(
        quotient_up((2.0, run.radius, norm), (root,), 8.0), sigma, quotient_up((2.0, run.radius), (norm, root), 4.0)
    )


@theorem(
    "smoothing.skip_classic",
    title="Random skip on smoothed losses, at the classic noise",
    needs=NONSMOOTH_SKIP,
    algorithms=("skip", "local"),
    reference=PAPER,
    locator="Corollary 34, corrected",
    formula="(4 sqrt(2) R L/sqrt(n)) (sqrt(1 + 8 d ln(1.25/delta)/eps^2) + eps sqrt(d)/(8 sqrt(2 ln(1/delta)))) at "
    "lambda = R eps/(2 sqrt(n ln(1/delta)))",
    conditions=(CLASSIC_RANGE,),
    assumes=_SKIPPED,
    erratum=CLASSIC,
)
def skip_classic(run: NonsmoothSkip) -> Risk:
    """The paper's corollary with the correct error of its kernel.

    >>> run = NonsmoothSkip(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0,
    ...                     log_delta=math.log(1e-5))
    >>> round(skip_classic(run).excess_risk, 12)
    1.738912963726
    """
    return run.at_classic_noise(run.kernel_error) if run.in_classic_range else NO_BOUND


@theorem(
    "smoothing.skip_published",
    title="Random skip on smoothed losses, as printed",
    needs=NONSMOOTH_SKIP,
    kind="published",
    algorithms=("skip", "local"),
    reference=PAPER,
    locator="Corollary 34",
    formula="(4 sqrt(2) R L/sqrt(n)) (sqrt(1 + 8 d ln(1.25/delta)/eps^2) + eps sqrt(d)/(2 ln(1.25/delta)))",
    assumes=_SKIPPED,
    erratum="The last term lost a square root: it is eps sqrt(d)/(8 sqrt(2 ln(1/delta))), and the printed one is too "
    "small for delta < 1.98e-14. The classic noise holds in its range only.",
)
def skip_published(run: NonsmoothSkip) -> Risk:
    """The paper's printed bound, for comparison only.

    >>> run = NonsmoothSkip(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0,
    ...                     log_delta=math.log(1e-5))
    >>> round(skip_published(run).excess_risk, 12)
    1.741874239807
    """
    return run.at_classic_noise(run.stated_error) if run.epsilon > 0.0 else NO_BOUND
