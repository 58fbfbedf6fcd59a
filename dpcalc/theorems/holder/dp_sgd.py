"""DP-SGD for losses with a Hölder continuous gradient: noise on the output, or on every gradient.

``dp-sgd-output`` runs T steps w <- Pi(w - eta grad l(w; z_i)) from 0 on single records, drawn uniformly with
replacement, and releases the average of the iterates plus N(0, sigma^2 I). ``dp-sgd-gradient`` has the noise in
every step, w - eta (gradient + N(0, sigma^2 I)), on batches of m records drawn without replacement, independently in
each step; all iterates may be public, and so may their average (Wang, Lei, Ying and Zhang 2022, Algorithms 1 and 2).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator

from dpcalc.model.loss_class import exceeds_two, two_over
from dpcalc.model.numbers import plain, shown_below
from dpcalc.model.run import Run
from dpcalc.notions import conversions, gaussian
from dpcalc.notions.guarantee import Composition, Point, Profile, Rdp
from dpcalc.numerics import binomial
from dpcalc.numerics.floats import MAX, UNIT, down, log_add_exp, up
from dpcalc.theorems.conditions import BATCH_WITHIN, BATCHES_OF_ONE, GAUSSIAN_NOISE
from dpcalc.theorems.holder import holder, published_gradient_noise
from dpcalc.theorems.record import Condition, Missing, Obstacle, Unmet, lacking, theorem
from dpcalc.theorems.sampled import noisy_sgd
from dpcalc.theorems.setting import Setting

_PAPER = "wang2022"
_LN2 = 0.6931471805599453
_CONVEX = "every loss is convex, and its gradient Hölder continuous on all of R^d (not only on the constraint set)"
_L2 = "strong_convexity is that of an l2 term added to every loss; all else is said of the loss without it"
_DRAWS = "every step draws one record, uniformly and with replacement; which ones stays secret"
_AVERAGE = "the average of the iterates plus noise is released, once"
_NORM = "each record's gradient has norm at most lipschitz, or what follows from the Hölder constants, on the domain"
_BATCHES = "every step uses a fresh uniform batch of batch_size records, drawn without replacement"
_ALL_SEEN = "every iterate may be released, and so may their average"


def step_fits(run: Run) -> Obstacle | None:
    """Return an obstacle unless the step size fits the loss: eta L <= 2 at alpha = 1, eta m < 1 with an l2 term."""
    eta, a, constant = run.step_size, run.holder_exponent, run.holder_constant
    m = run.strong_convexity or 0.0
    if eta is None:
        return lacking(run, "step_size")
    if a == 1.0 and constant is not None and exceeds_two(eta, constant, m, m):
        most = shown_below(two_over(constant, m, m))
        return Unmet(
            f"step size {plain(eta)} exceeds {most}, where a step may drive two runs apart without bound",
            f"use --step-size <= {most}",
        )
    if m and up(eta * m, 4.0) >= 1.0:
        return Unmet(
            f"step size {plain(eta)} times strong convexity {plain(m)} is not below 1",
            f"use --step-size < {shown_below(1.0 / m)}",
        )
    return None


def _gradient_known(run: Run) -> Obstacle | None:
    """Return an obstacle if no bound on the gradient at the iterates follows, for noise on the output."""
    obstacle = _gradient_in_ball(run)
    if obstacle is None or run.loss_at_zero is None or run.gradient_at_zero is None:
        return obstacle
    eta, constant = run.step_size, run.holder_constant
    if eta is None or constant is None:
        return lacking(run, "step_size", "holder_constant")
    if run.strong_convexity:
        return Missing(
            ("radius",),
            "needs a radius, or a bound on the gradient, where there is an l2 term",
            "give --radius or --lipschitz",
        )
    if exceeds_two(2.0 * eta, constant) or eta > 1.0:
        most = shown_below(min(1.0, 0.5 * two_over(constant)))
        return Unmet(
            f"without a radius the step size must be at most min(1, 1/holder_constant) = {most}, and it is "
            f"{plain(eta)}",
            f"use --step-size <= {most}, or give --radius",
        )
    return None


def _gradient_in_ball(run: Run) -> Obstacle | None:
    """Return an obstacle if no bound on the gradient on the domain follows."""
    if run.lipschitz is not None:
        return None
    missing = [n for n in ("holder_exponent", "holder_constant", "gradient_at_zero") if run.value(n) is None]
    if run.radius is None and run.holder_exponent != 0.0:
        missing.append("radius")
    if not missing:
        return None
    flags = ", ".join("--" + name.replace("_", "-") for name in missing)
    return Unmet(
        f"knows no bound on the gradient: lipschitz is not given, nor {', '.join(missing)}",
        f"give --lipschitz, or {flags} (for noise on the output, losses >= 0 and no constraint: --loss-at-zero)",
        ("lipschitz",),
    )


STEP_FITS = Condition("step_size <= 2/holder_constant where holder_exponent = 1", step_fits)
KNOWN_GRADIENT = Condition(
    "a bound on the gradient: lipschitz; or gradient_at_zero and radius; or gradient_at_zero and loss_at_zero with "
    "step_size <= min(1, 1/holder_constant)",
    _gradient_known,
)
GRADIENT_IN_BALL = Condition(
    "a bound on the gradient: lipschitz; or gradient_at_zero, holder_exponent, holder_constant and radius",
    _gradient_in_ball,
)
_OUTPUT_REQUIRES = (BATCHES_OF_ONE, GAUSSIAN_NOISE, STEP_FITS, KNOWN_GRADIENT)
_OUTPUT_ASSUMES = (_CONVEX, _DRAWS, _L2, _NORM, _AVERAGE, "the run starts at 0", "without a radius: losses are >= 0")
_GRADIENT_REQUIRES = (BATCH_WITHIN, GAUSSIAN_NOISE, GRADIENT_IN_BALL)
_GRADIENT_ASSUMES = (_BATCHES, _NORM, "fresh Gaussian noise in every step, w - step_size (gradient + Z)", _ALL_SEEN)


OUTPUT_NOISE = (
    "records", "batch_size", "steps", "step_size", "noise_std", "holder_exponent", "holder_constant",
    "strong_convexity", "lipschitz?", "radius?", "gradient_at_zero?", "loss_at_zero?",
)  # fmt: skip


class OutputNoise(Setting):
    """Steps on single records, and noise on the average of the iterates."""

    @functools.cached_property
    def gradient(self) -> float:
        """G, the least known bound on the gradient."""
        return holder.gradient_bound(
            lipschitz=self.lipschitz, radius=self.radius, holder_exponent=self.holder_exponent,
            holder_constant=self.holder_constant, gradient_at_zero=self.gradient_at_zero,
            loss_at_zero=self.loss_at_zero, steps=self.steps, step_size=self.step_size,
        )  # fmt: skip

    @functools.cached_property
    def gradient_published(self) -> float:
        """G as published: M + L (C_alpha T eta)^(alpha/2) without a radius, M + L R^alpha with one; or lipschitz.

        >>> run = OutputNoise(records=1, batch_size=1, steps=1000, step_size=0.02, noise_std=1.0, holder_exponent=0.5,
        ...                   holder_constant=1.5, strong_convexity=0.0, gradient_at_zero=1.5, loss_at_zero=1.0)
        >>> round(run.gradient_published, 11)
        5.89573765618
        """
        if self.gradient_at_zero is None or not math.isinf(self.lipschitz):
            return self.lipschitz
        radius = self.radius
        if math.isinf(radius) and self.loss_at_zero is not None:
            radius = holder.radius_published(
                steps=self.steps, step_size=self.step_size, holder_exponent=self.holder_exponent,
                holder_constant=self.holder_constant, gradient_at_zero=self.gradient_at_zero,
                loss_at_zero=self.loss_at_zero,
            )  # fmt: skip
        if self.holder_exponent == 0.0:
            radius = 1.0
        return holder.gradient_within(
            radius=max(radius, 5e-324), holder_exponent=self.holder_exponent, holder_constant=self.holder_constant,
            gradient_at_zero=self.gradient_at_zero,
        )  # fmt: skip

    @functools.cached_property
    def apart(self) -> Callable[[int], float]:
        """Delta*, how far apart two averages are after some number of hits."""
        return holder.stability(
            steps=self.steps, step_size=self.step_size, holder_exponent=self.holder_exponent,
            holder_constant=self.holder_constant, gradient=self.gradient, strong_convexity=self.strong_convexity,
        )  # fmt: skip

    def apart_published(self, log_chance: float) -> float:
        """Return how far apart two averages are but with this chance, for any record, as published."""
        return holder.stability_published(
            records=self.records, steps=self.steps, step_size=self.step_size, holder_exponent=self.holder_exponent,
            holder_constant=self.holder_constant, gradient=self.gradient_published,
            log_chance=holder.log_each(log_chance, self.records),
        )  # fmt: skip

    def log_delta_of(self, hits: int, epsilon: float) -> float:
        """Return ln delta of the noise on two averages that so many hits took apart."""
        apart = self.apart(hits)
        mu = up(apart / self.noise_std, 2.0) if apart > 0.0 else 0.0
        return gaussian.log_delta(mu=mu, epsilon=epsilon)


GRADIENT_NOISE = (
    "records", "batch_size", "steps", "noise_std", "lipschitz?", "radius?", "holder_exponent?", "holder_constant?",
    "gradient_at_zero?",
)  # fmt: skip


class GradientNoise(Setting):
    """Steps on batches that are drawn afresh, with noise on every gradient."""

    @functools.cached_property
    def gradient(self) -> float:
        """G, the least known bound on the gradient."""
        return holder.gradient_bound(
            lipschitz=self.lipschitz, radius=self.radius, holder_exponent=self.holder_exponent,
            holder_constant=self.holder_constant, gradient_at_zero=self.gradient_at_zero,
        )  # fmt: skip

    @functools.cached_property
    def mu(self) -> float:
        """1/s = 2 G/(m sigma), rounded up."""
        return noisy_sgd.step_ratio(self.gradient, self.noise_std, self.batch_size)

    @property
    def share(self) -> float:
        """p = m/n, rounded up."""
        return min(1.0, up(self.batch_size / self.records))


# --- noise on the output -------------------------------------------------------------------------------------------


@theorem(
    "dp_sgd.output",
    title="Noise on the output, averaged over the number of hits",
    needs=OUTPUT_NOISE,
    algorithms=("dp-sgd-output",),
    reference="dpcalc",
    locator="stability given the number of hits, mixed over their binomial law",
    formula="delta(eps) = sum_k P(Bin(T, 1/n) = k) delta_G(eps; Delta*(k)/sigma), Delta*(k) = (k-1) b + "
    "sqrt(b^2 + (T-k) a^2), b = 2 eta G",
    conditions=_OUTPUT_REQUIRES,
    assumes=_OUTPUT_ASSUMES,
    slack="numbers of hits in groups, where there are thousands",
    not_monotone_in=("strong_convexity",),
)
def output(run: OutputNoise) -> Profile:
    """Given how often the record was drawn, two runs are Delta* apart at most, and the noise hides that; which draws
    are made does not depend on the data, so that delta is a mean over them.

    >>> run = OutputNoise(records=500, batch_size=1, steps=1000, step_size=0.01, noise_std=2.0, holder_exponent=0.0,
    ...                   holder_constant=1.0, strong_convexity=0.0, lipschitz=1.0)
    >>> round(output(run).profile(0.5), 10)
    -8.9922129695
    """

    def profile(epsilon: float) -> float:
        total, log_rest = -math.inf, 0.0
        for hits, log_weight, log_rest in binomial.upper_groups_with_tails(run.steps, run.records):
            total = log_add_exp(total, log_weight + run.log_delta_of(hits, epsilon))
            if log_rest <= total - 45.0:
                break
        total = log_add_exp(total, log_rest)  # further hits count as a full loss of privacy
        return min(0.0, total + UNIT * (64.0 + 16.0 * abs(total))) if total > -math.inf else total

    return Profile(profile)


@theorem(
    "dp_sgd.output_split",
    title="Noise on the output, delta split at a number of hits",
    needs=OUTPUT_NOISE,
    algorithms=("dp-sgd-output",),
    reference="dpcalc",
    locator="Theorem 8 of Wang, Lei, Ying and Zhang 2022 with the exact Gaussian and binomial laws and the best split",
    formula="delta(eps) = min_k P(Bin(T, 1/n) > k) + delta_G(eps; Delta*(k)/sigma)",
    conditions=_OUTPUT_REQUIRES,
    assumes=_OUTPUT_ASSUMES,
    slack="numbers of hits in groups, where there are thousands",
    not_monotone_in=("strong_convexity",),
)
def output_split(run: OutputNoise) -> Profile:
    """With at most k hits the noise hides the record; delta also pays for more. Never below `output`."""

    def profile(epsilon: float) -> float:
        best = 0.0
        for hits, log_more in _splits(run.steps, run.records):
            log_hidden = run.log_delta_of(hits, epsilon)
            if log_hidden >= best:
                break
            both = log_add_exp(log_more, log_hidden)
            best = min(best, both + UNIT * (8.0 + 4.0 * abs(both)) if both > -math.inf else both)
        return best

    return Profile(profile)


def _splits(steps: int, records: int) -> Iterator[tuple[int, float]]:
    """Yield (k, ln P(more than k hits)), from no hits on."""
    if records > 1:
        yield 0, binomial.log_tail_up(1, trials=steps, one_in=records)
    for hits, _, rest in binomial.upper_groups_with_tails(steps, records):
        yield hits, rest


@theorem(
    "dp_sgd.output_published",
    title="Noise on the output, as published",
    needs=OUTPUT_NOISE,
    algorithms=("dp-sgd-output",),
    reference=_PAPER,
    locator="Theorems 7 and 8, where the classic Gaussian mechanism is private",
    formula="eps = sqrt(2 ln(2.5/delta)) Delta(delta/2)/sigma, Delta^2 = e (a^2 T + 4 G^2 eta^2 (1 + kappa) kappa), "
    "kappa = (T/n)(1 + max(sqrt(3 n x/T), 3 n x/T)), x = ln(2 n/delta)",
    conditions=_OUTPUT_REQUIRES,
    assumes=_OUTPUT_ASSUMES,
    erratum="The classic Gaussian mechanism is used for every epsilon and is proved for epsilon < 1. It is true up to "
    "some 8 to 10, checked against the exact curve; past that the row is withheld.",
    not_monotone_in=("strong_convexity", "records"),  # its chance is over all records
)
def output_published(run: OutputNoise) -> Point:
    """Half of delta for more hits than Chernoff's bound allows, for any record; half for the Gaussian mechanism.

    With an l2 term, and where the classic Gaussian mechanism is not private, it is inf.
    """

    def rule(log_delta: float) -> float:
        if run.strong_convexity:
            return math.inf
        half = log_half(log_delta)
        value = run.apart_published(half) / run.noise_std * conversions.factor(half)
        epsilon = up(value, 16.0) if value < MAX else math.inf
        return epsilon if epsilon <= conversions.epsilon_max(log_delta=half) else math.inf

    return Point(rule)


def log_half(log_delta: float) -> float:
    """Return ln(delta/2), rounded down."""
    return down(log_delta - _LN2, 2.0)


# --- noise on every gradient -----------------------------------------------------------------------------------------


@theorem(
    "dp_sgd.gradient",
    title="Noise on every gradient, composed",
    needs=GRADIENT_NOISE,
    algorithms=("dp-sgd-gradient",),
    reference="dong2022",
    locator="subsampling without replacement and composition, by the law of the privacy loss",
    formula="C_{m/n}(G(2 G/(m sigma))) composed T times, G = M + L R^alpha",
    conditions=_GRADIENT_REQUIRES,
    assumes=_GRADIENT_ASSUMES,
    slack="the lattice of losses, some 1e-4 in ln delta",
    slow=True,
    public_sums=True,
)
def gradient(run: GradientNoise) -> Composition:
    """Each step is a subsampled Gaussian, whatever the losses; all iterates may be seen, and their average.

    >>> run = GradientNoise(records=10, batch_size=1, steps=1, noise_std=2.0, lipschitz=1.0)
    >>> round(math.exp(gradient(run).log_delta(0.0).value), 6)  # (2 Phi(1/2) - 1)/10
    0.038292
    """
    return noisy_sgd.composition(run.part(noisy_sgd.SampledSteps).changed(lipschitz=run.gradient))


def _whole_order(order: float) -> int:
    """Return the least whole order from 2 on that is no lower: the divergence grows with the order."""
    return max(2, math.ceil(order)) if order < 1e9 else 10**9


@theorem(
    "dp_sgd.gradient_renyi",
    title="Noise on every gradient, Renyi form at whole orders",
    needs=GRADIENT_NOISE,
    algorithms=("dp-sgd-gradient",),
    reference="wang2019",
    locator="Theorem 9, composed",
    formula="T ln(1 + p^2 C(a,2) min(4 (e^y - 1), 2 e^y) + 2 sum_(j>2) p^j C(a,j) e^(j(j-1)y/2))/(a - 1), "
    "y = (2 G/(m sigma))^2, p = m/n, a whole",
    conditions=_GRADIENT_REQUIRES,
    assumes=_GRADIENT_ASSUMES,
    slow=True,
    slack="whole orders up to 1024 only",
    public_sums=True,
)
def gradient_renyi(run: GradientNoise) -> Rdp:
    """T times the divergence of a step at the next whole order.

    Above order 1024 it is inf.
    """

    def curve(order: float) -> float:
        if not 0.0 < run.mu < 1e150:
            return math.inf
        y = max(up(run.mu * run.mu, 2.0), 1e-300)
        return up(run.steps * holder.renyi(order=_whole_order(order), rate=run.share, inverse_square=y), 2.0)

    return Rdp(curve)


@theorem(
    "dp_sgd.gradient_lemma",
    title="Noise on every gradient, the simpler Renyi bound",
    needs=GRADIENT_NOISE,
    algorithms=("dp-sgd-gradient",),
    reference=_PAPER,
    locator="Lemma 3 (Wang, Jayaraman, Evans and Gu 2023, Lemma 3.7) at whole orders, composed",
    formula="T 3.5 (m/n)^2 a/s^2 at whole orders a where s^2 = (m sigma/(2 G))^2 >= 0.67 and a - 1 <= (2/3) s^2 "
    "ln(n/(m a (1 + s^2)))",
    conditions=_GRADIENT_REQUIRES,
    assumes=_GRADIENT_ASSUMES,
    slack="whole orders only",
    public_sums=True,
)
def gradient_lemma(run: GradientNoise) -> Rdp:
    """Theorem 11 made a guarantee: its lemma at the orders for which it is proved, conditions checked.

    Where the conditions fail it is inf.
    """

    def curve(order: float) -> float:
        square = down(1.0 / run.mu / run.mu, 4.0) if 1e-140 < run.mu < 1e140 else 0.0
        return up(run.steps * holder.lemma_step(order=_whole_order(order), rate=run.share, square=square), 2.0)

    return Rdp(curve)


@theorem(
    "dp_sgd.gradient_published",
    title="Noise on every gradient, as published",
    needs=GRADIENT_NOISE,
    algorithms=("dp-sgd-gradient",),
    kind="published",
    reference=_PAPER,
    locator="Theorem 11, conditions (32) and (33), best beta",
    formula="sigma^2 = (14 G^2 T/(beta n^2 eps)) (ln(1/delta)/((1 - beta) eps) + 1), if s^2 = (m sigma/(2 G))^2 >= "
    "0.67 and a - 1 <= (2/3) s^2 ln(n/(m a (1 + s^2))), a = ln(1/delta)/((1 - beta) eps) + 1",
    conditions=_GRADIENT_REQUIRES,
    assumes=_GRADIENT_ASSUMES,
    erratum="Its Renyi bound is proved at whole orders and used at a real one. Without both conditions the formula is "
    "false: at n = T = 10^6, epsilon = 1 and delta = 10^-12 it names a 27th of the noise needed.",
    slow=True,
)
def gradient_published(run: GradientNoise) -> Point:
    """The epsilon for which Theorem 11 asks for this noise; no guarantee.

    Where no share beta meets the conditions it is inf.
    """

    def rule(log_delta: float) -> float:
        if not 1e-140 < run.mu < 1e140:
            return math.inf
        return published_gradient_noise.least_epsilon(
            records=run.records, steps=run.steps, batch_size=run.batch_size, ratio=1.0 / run.mu, log_delta=log_delta
        )

    return Point(rule)
