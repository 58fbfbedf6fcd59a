"""DP-SGD for losses with a Hölder continuous gradient: noise on the output, or on every gradient.

``dp-sgd-output`` runs T steps w <- Pi(w - eta grad l(w; z_i)) from 0 on single records, drawn uniformly with
replacement, and releases the average of the iterates plus N(0, sigma^2 I). ``dp-sgd-gradient`` has the noise in
every step, w - eta (gradient + N(0, sigma^2 I)), on batches of m records drawn without replacement, afresh each step;
all iterates may be seen, their average with them (Wang, Lei, Ying and Zhang 2022, Algorithms 1 and 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.bounds import holder, noisy_sgd, sampled_renyi
from dpcalc.bounds.iteration import classic_epsilon_max, classic_factor
from dpcalc.bounds.noisy_sgd import BATCH_WITHIN
from dpcalc.bounds.steps import BATCHES_OF_ONE, GAUSSIAN_NOISE
from dpcalc.notions import gaussian
from dpcalc.numerics import binomial
from dpcalc.numerics.floats import MAX, UNIT, down, up
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.registry import Requirement, bound
from dpcalc.spec.loss import exceeds_two

_PAPER = "wang2022"
_LN2 = 0.6931471805599453
_CONVEX = "every loss is convex, and its gradient Hölder continuous on all of R^d (not only on the constraint set)"
_L2 = "strong_convexity is that of an l2 term added to every loss; all else is said of the loss without it"
_DRAWS = "every step draws one record, uniformly and with replacement; which ones stays secret"
_AVERAGE = "the average of the iterates plus noise is released, once"
_NORM = "each record's gradient has norm at most lipschitz, or what follows from the Hölder constants, on the domain"
_BATCHES = "every step uses a fresh uniform batch of batch_size records, drawn without replacement"
_ALL_SEEN = "every iterate may be released, and so may their average"


def _product_exceeds_one(a: float, b: float) -> bool:
    return exceeds_two(2.0 * a, b)


def step_fits(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what is wrong with the step size for the loss: eta L <= 2 at alpha = 1, eta m < 1 with an l2 term."""
    eta, a, constant = values["step_size"], values["holder_exponent"], values["holder_constant"]
    m = values.get("strong_convexity") or 0.0
    if eta is None:
        return "needs step_size", "give --step-size"
    if a == 1.0 and exceeds_two(eta, constant, m, m):
        most = 2.0 / (constant + 2.0 * m)
        return (
            f"step size {eta:g} exceeds {most:g}, where a step may drive two runs apart without bound",
            f"use --step-size <= {most:g}",
        )
    if m and up(eta * m, 4.0) >= 1.0:
        return f"step size {eta:g} times strong convexity {m:g} is not below 1", f"use --step-size < {1.0 / m:g}"
    return None


def _gradient_known(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return why no bound on the gradient at the iterates follows, for noise on the output."""
    found = _gradient_in_ball(values)
    if found is None or values.get("loss_at_zero") is None or values.get("gradient_at_zero") is None:
        return found
    eta, constant = values["step_size"], values["holder_constant"]
    if eta is None:
        return "needs step_size", "give --step-size"
    if values.get("strong_convexity"):
        return "needs a radius, or a bound on the gradient, where there is an l2 term", "give --radius or --lipschitz"
    if _product_exceeds_one(eta, constant) or eta > 1.0:
        most = min(1.0, 1.0 / constant)
        return (
            f"without a radius the step size must be at most min(1, 1/holder_constant) = {most:g}, and it is {eta:g}",
            f"use --step-size <= {most:g}, or give --radius",
        )
    return None


def _gradient_in_ball(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return why no bound on the gradient on the domain follows."""
    if values.get("lipschitz") is not None:
        return None
    missing = [n for n in ("holder_exponent", "holder_constant", "gradient_at_zero") if values.get(n) is None]
    if values.get("radius") is None and values.get("holder_exponent") != 0.0:
        missing.append("radius")
    if not missing:
        return None
    flags = ", ".join("--" + name.replace("_", "-") for name in missing)
    return (
        f"knows no bound on the gradient: lipschitz is not given, nor {', '.join(missing)}",
        f"give --lipschitz, or {flags} (for noise on the output, losses >= 0 and no constraint: --loss-at-zero)",
    )


STEP_FITS = Requirement("step_size <= 2/holder_constant where holder_exponent = 1", step_fits)
KNOWN_GRADIENT = Requirement(
    "a bound on the gradient: lipschitz; or gradient_at_zero and radius; or gradient_at_zero and loss_at_zero with "
    "step_size <= min(1, 1/holder_constant)",
    _gradient_known,
)
GRADIENT_IN_BALL = Requirement(
    "a bound on the gradient: lipschitz; or gradient_at_zero, holder_exponent, holder_constant and radius",
    _gradient_in_ball,
)
_OUTPUT_REQUIRES = (BATCHES_OF_ONE, GAUSSIAN_NOISE, STEP_FITS, KNOWN_GRADIENT)
_OUTPUT_ASSUMES = (_CONVEX, _DRAWS, _L2, _NORM, _AVERAGE, "the run starts at 0", "without a radius: losses are >= 0")
_GRADIENT_REQUIRES = (BATCH_WITHIN, GAUSSIAN_NOISE, GRADIENT_IN_BALL)
_GRADIENT_ASSUMES = (_BATCHES, _NORM, "fresh Gaussian noise in every step, w - step_size (gradient + Z)", _ALL_SEEN)


# --- noise on the output -------------------------------------------------------------------------------------------


@bound(
    "dp_sgd.output",
    title="Noise on the output, averaged over the number of hits",
    gives="log_delta",
    algorithms=("dp-sgd-output",),
    reference="dpcalc",
    locator="stability given the number of hits, mixed over their binomial law",
    formula="delta(eps) = sum_k P(Bin(T, 1/n) = k) delta_G(eps; Delta*(k)/sigma), Delta*(k) = (k-1) b + "
    "sqrt(b^2 + (T-k) a^2), b = 2 eta G",
    requires=_OUTPUT_REQUIRES,
    assumes=_OUTPUT_ASSUMES,
    slack="numbers of hits in groups, where there are thousands",
    unsolved=("strong_convexity",),
)
def output(
    *, records: int, batch_size: int, steps: int, step_size: float, noise_std: float, holder_exponent: float,
    holder_constant: float, strong_convexity: float, epsilon: float, lipschitz: float = math.inf,
    radius: float = math.inf, gradient_at_zero: float | None = None, loss_at_zero: float | None = None,
) -> float:  # fmt: skip
    """Given how often the record was drawn, two runs are Delta* apart at most, and the noise hides that; which draws
    are made does not depend on the data, so that delta is a mean over them.

    Args:
        records, steps: n and T.
        batch_size: 1.
        step_size: eta; eta L <= 2 where alpha = 1.
        noise_std: sigma > 0 of the noise on the average.
        holder_exponent, holder_constant: alpha and L.
        strong_convexity: m of an l2 term added to every loss, 0 without.
        epsilon: finite and >= 0.
        lipschitz: bound on the gradient on the domain, of the loss without an l2 term.
        radius: of a ball around 0 that holds the domain.
        gradient_at_zero, loss_at_zero: M and M0, from which a bound on the gradient follows where none is given.

    Returns:
        ln delta, rounded up.

    >>> round(output(records=500, batch_size=1, steps=1000, step_size=0.01, noise_std=2.0, holder_exponent=0.0,
    ...              holder_constant=1.0, strong_convexity=0.0, epsilon=0.5, lipschitz=1.0), 10)
    -8.9922129695
    """
    gradient = holder.gradient_bound(
        lipschitz=lipschitz, radius=radius, holder_exponent=holder_exponent, holder_constant=holder_constant,
        gradient_at_zero=gradient_at_zero, loss_at_zero=loss_at_zero, steps=steps, step_size=step_size,
    )  # fmt: skip
    return output_log_delta(
        records=records, steps=steps, step_size=step_size, noise_std=noise_std, holder_exponent=holder_exponent,
        holder_constant=holder_constant, gradient=gradient, strong_convexity=strong_convexity, epsilon=epsilon,
    )  # fmt: skip


def output_log_delta(
    *, records: int, steps: int, step_size: float, noise_std: float, holder_exponent: float, holder_constant: float,
    gradient: float, epsilon: float, strong_convexity: float = 0.0,
) -> float:  # fmt: skip
    """Return ln delta of `output`, for a bound on the gradient that is known."""
    apart = holder.stability(
        steps=steps, step_size=step_size, holder_exponent=holder_exponent, holder_constant=holder_constant,
        gradient=gradient, strong_convexity=strong_convexity,
    )  # fmt: skip
    total = -math.inf
    for hits, weight, rest in binomial.levels(steps, records):
        total = log_add_exp(total, weight + _log_told(apart(hits), noise_std, epsilon))
        if rest <= total - 45.0:
            total = log_add_exp(total, rest)
            break
    else:
        total = log_add_exp(total, rest)  # the list ends where what is left is past all that can be asked
    return min(0.0, total + UNIT * (64.0 + 16.0 * abs(total))) if total > -math.inf else total


def _log_told(apart: float, noise_std: float, epsilon: float) -> float:
    """Return ln delta of Gaussian noise on two outputs this far apart."""
    mu = up(apart / noise_std, 2.0) if apart > 0.0 else 0.0
    return gaussian.log_delta(mu=mu, epsilon=epsilon)


@bound(
    "dp_sgd.output_split",
    title="Noise on the output, delta split at a number of hits",
    gives="log_delta",
    algorithms=("dp-sgd-output",),
    reference="dpcalc",
    locator="Theorem 8 of Wang, Lei, Ying and Zhang 2022 with the exact Gaussian and binomial laws and the best split",
    formula="delta(eps) = min_k P(Bin(T, 1/n) > k) + delta_G(eps; Delta*(k)/sigma)",
    requires=_OUTPUT_REQUIRES,
    assumes=_OUTPUT_ASSUMES,
    slack="numbers of hits in groups, where there are thousands",
    unsolved=("strong_convexity",),
)
def output_split(
    *, records: int, batch_size: int, steps: int, step_size: float, noise_std: float, holder_exponent: float,
    holder_constant: float, strong_convexity: float, epsilon: float, lipschitz: float = math.inf,
    radius: float = math.inf, gradient_at_zero: float | None = None, loss_at_zero: float | None = None,
) -> float:  # fmt: skip
    """With at most k hits the noise hides the record; delta also pays for more. Never below `output`.

    Args:
        records, batch_size, steps, step_size, noise_std, holder_exponent, holder_constant, strong_convexity, lipschitz,
            radius, gradient_at_zero, loss_at_zero: as in `output`.
        epsilon: finite and >= 0.

    Returns:
        ln delta, rounded up.
    """
    gradient = holder.gradient_bound(
        lipschitz=lipschitz, radius=radius, holder_exponent=holder_exponent, holder_constant=holder_constant,
        gradient_at_zero=gradient_at_zero, loss_at_zero=loss_at_zero, steps=steps, step_size=step_size,
    )  # fmt: skip
    apart = holder.stability(
        steps=steps, step_size=step_size, holder_exponent=holder_exponent, holder_constant=holder_constant,
        gradient=gradient, strong_convexity=strong_convexity,
    )  # fmt: skip
    best = 0.0
    for hits, rest in _splits(steps, records):
        told = _log_told(apart(hits), noise_std, epsilon)
        if told >= best:
            break
        both = log_add_exp(rest, told)
        best = min(best, both + UNIT * (8.0 + 4.0 * abs(both)) if both > -math.inf else both)
    return best


def _splits(steps: int, records: int) -> Iterator[tuple[int, float]]:
    """Yield (k, ln P(more than k hits)), from no hits on."""
    if records > 1:
        yield 0, binomial.log_tail(1, trials=steps, one_in=records)
    for hits, _, rest in binomial.levels(steps, records):
        yield hits, rest


@bound(
    "dp_sgd.output_published",
    title="Noise on the output, as published",
    gives="epsilon",
    algorithms=("dp-sgd-output",),
    reference=_PAPER,
    locator="Theorems 7 and 8, where the classic Gaussian mechanism is private",
    formula="eps = sqrt(2 ln(2.5/delta)) Delta(delta/2)/sigma, Delta^2 = e (a^2 T + 4 G^2 eta^2 (1 + kappa) kappa), "
    "kappa = (T/n)(1 + max(sqrt(3 n x/T), 3 n x/T)), x = ln(2 n/delta)",
    requires=_OUTPUT_REQUIRES,
    assumes=_OUTPUT_ASSUMES,
    erratum="The classic Gaussian mechanism is used for every epsilon and is proved for epsilon < 1. It is true up to "
    "some 8 to 10, checked against the exact curve; past that the row is withheld.",
    unsolved=("strong_convexity",),
)
def output_published(
    *, records: int, batch_size: int, steps: int, step_size: float, noise_std: float, holder_exponent: float,
    holder_constant: float, strong_convexity: float, log_delta: float, lipschitz: float = math.inf,
    radius: float = math.inf, gradient_at_zero: float | None = None, loss_at_zero: float | None = None,
) -> float:  # fmt: skip
    """Half of delta for more hits than Chernoff's bound allows, for any record; half for the Gaussian mechanism.

    Args:
        records, batch_size, steps, step_size, noise_std, holder_exponent, holder_constant, lipschitz, radius,
            gradient_at_zero, loss_at_zero: as in `output`.
        strong_convexity: 0; with an l2 term the bound is inf.
        log_delta: ln delta < 0.

    Returns:
        epsilon, rounded up; inf where the classic Gaussian mechanism is not private.
    """
    if strong_convexity:
        return math.inf
    half = log_half(log_delta)
    apart = holder.stability_published(
        records=records, steps=steps, step_size=step_size, holder_exponent=holder_exponent,
        holder_constant=holder_constant, log_chance=holder.log_each(half, records),
        gradient=norm_published(
            steps=steps, step_size=step_size, holder_exponent=holder_exponent, holder_constant=holder_constant,
            lipschitz=lipschitz, radius=radius, gradient_at_zero=gradient_at_zero, loss_at_zero=loss_at_zero,
        ),
    )  # fmt: skip
    value = apart / noise_std * classic_factor(half)
    epsilon = up(value, 16.0) if value < MAX else math.inf
    return epsilon if epsilon <= classic_epsilon_max(log_delta=half) else math.inf


def log_half(log_delta: float) -> float:
    """Return ln(delta/2), rounded down."""
    return down(log_delta - _LN2, 2.0)


def norm_published(
    *, steps: int, step_size: float, holder_exponent: float, holder_constant: float, lipschitz: float = math.inf,
    radius: float = math.inf, gradient_at_zero: float | None = None, loss_at_zero: float | None = None,
) -> float:  # fmt: skip
    """Return G as published: M + L (C_alpha T eta)^(alpha/2) without a radius, M + L R^alpha with one; or lipschitz.

    >>> round(norm_published(steps=1000, step_size=0.02, holder_exponent=0.5, holder_constant=1.5,
    ...                      gradient_at_zero=1.5, loss_at_zero=1.0), 11)
    5.89573765618
    """
    if gradient_at_zero is None or not math.isinf(lipschitz):
        return lipschitz
    if math.isinf(radius) and loss_at_zero is not None:
        radius = holder.radius_published(
            steps=steps, step_size=step_size, holder_exponent=holder_exponent, holder_constant=holder_constant,
            gradient_at_zero=gradient_at_zero, loss_at_zero=loss_at_zero,
        )  # fmt: skip
    if holder_exponent == 0.0:
        radius = 1.0
    return holder.gradient_within(
        radius=max(radius, 5e-324), holder_exponent=holder_exponent, holder_constant=holder_constant,
        gradient_at_zero=gradient_at_zero,
    )  # fmt: skip


def output_noise_std_published(
    *, records: int, steps: int, step_size: float, holder_exponent: float, holder_constant: float, gradient: float,
    epsilon: float, log_delta: float,
) -> float:  # fmt: skip
    """Return sigma of Theorem 8, sqrt(2 ln(2.5/delta)) Delta(delta/2)/eps: true where `output_published` is finite.

    >>> round(output_noise_std_published(records=1000, steps=1000, step_size=0.02, holder_exponent=0.5,
    ...     holder_constant=1.5, gradient=1.5 + 1.5 * 2**0.5, epsilon=1.0, log_delta=math.log(1e-6)), 10)
    85.2305782568
    """
    half = log_half(log_delta)
    apart = holder.stability_published(
        records=records, steps=steps, step_size=step_size, holder_exponent=holder_exponent,
        holder_constant=holder_constant, gradient=gradient, log_chance=holder.log_each(half, records),
    )  # fmt: skip
    return up(classic_factor(half) * apart / epsilon, 16.0)


def output_noise_std_half(
    *, records: int, steps: int, step_size: float, holder_exponent: float, holder_constant: float, gradient: float,
    epsilon: float, log_delta: float,
) -> float:  # fmt: skip
    """Return the noise for half of delta each, by the exact Gaussian curve and Theorem 7 for one pair of data sets."""
    half = log_half(log_delta)
    apart = holder.stability_published(
        records=records, steps=steps, step_size=step_size, holder_exponent=holder_exponent,
        holder_constant=holder_constant, gradient=gradient, log_chance=half,
    )  # fmt: skip
    return gaussian.noise_std(sensitivity=apart, epsilon=epsilon, log_delta_target=half)


# --- noise on every gradient -----------------------------------------------------------------------------------------


@bound(
    "dp_sgd.gradient",
    title="Noise on every gradient, composed",
    gives="parts",
    algorithms=("dp-sgd-gradient",),
    reference="dong2022",
    locator="subsampling without replacement and composition, by the law of the privacy loss",
    formula="C_{m/n}(G(2 G/(m sigma))) composed T times, G = M + L R^alpha",
    requires=_GRADIENT_REQUIRES,
    assumes=_GRADIENT_ASSUMES,
    slack="the lattice of losses, some 1e-4 in ln delta",
    coarse=True,
)
def gradient(
    *, records: int, batch_size: int, steps: int, noise_std: float, lipschitz: float = math.inf,
    radius: float = math.inf, holder_exponent: float | None = None, holder_constant: float | None = None,
    gradient_at_zero: float | None = None,
) -> Any:  # fmt: skip
    """Each step is a subsampled Gaussian, whatever the losses; all iterates may be seen, and their average.

    Args:
        records, batch_size: n and m <= n.
        steps: T, 1 to 1e15.
        noise_std: sigma > 0, in units of the mean gradient.
        lipschitz: bound on the norm of a record's gradient on the domain.
        radius, holder_exponent, holder_constant, gradient_at_zero: R, alpha, L and M, of which G = M + L R^alpha is
            another such bound; the smaller counts.

    Returns:
        [(pair of laws, T)].
    """
    known = holder.gradient_bound(
        lipschitz=lipschitz, radius=radius, holder_exponent=holder_exponent, holder_constant=holder_constant,
        gradient_at_zero=gradient_at_zero,
    )  # fmt: skip
    return noisy_sgd.composition(
        records=records, batch_size=batch_size, steps=steps, lipschitz=known, noise_std=noise_std
    )


def _ratio_mu(values: Mapping[str, Any]) -> float:
    """Return 2 G/(m sigma), rounded up, of the parameters of `gradient`."""
    names = ("lipschitz", "radius", "holder_exponent", "holder_constant", "gradient_at_zero")
    known = holder.gradient_bound(**{name: values[name] for name in names})
    return noisy_sgd.step_ratio(known, values["noise_std"], values["batch_size"])


def _whole_order(order: float) -> int:
    """Return the least whole order from 2 on that is no lower: the divergence grows with the order."""
    return max(2, math.ceil(order)) if order < 1e9 else 10**9


@bound(
    "dp_sgd.gradient_renyi",
    title="Noise on every gradient, Renyi form at whole orders",
    gives="rdp",
    algorithms=("dp-sgd-gradient",),
    reference="wang2019",
    locator="Theorem 9, composed",
    formula="T ln(1 + p^2 C(a,2) min(4 (e^y - 1), 2 e^y) + 2 sum_(j>2) p^j C(a,j) e^(j(j-1)y/2))/(a - 1), "
    "y = (2 G/(m sigma))^2, p = m/n, a whole",
    requires=_GRADIENT_REQUIRES,
    assumes=_GRADIENT_ASSUMES,
    coarse=True,
    slack="whole orders up to 1024 only",
)
def gradient_renyi(
    *, records: int, batch_size: int, steps: int, noise_std: float, order: float, lipschitz: float = math.inf,
    radius: float = math.inf, holder_exponent: float | None = None, holder_constant: float | None = None,
    gradient_at_zero: float | None = None,
) -> float:  # fmt: skip
    """T times the divergence of a step at the next whole order.

    Args:
        records, batch_size, steps, noise_std, lipschitz, radius, holder_exponent, holder_constant, gradient_at_zero: as
            in `gradient`.
        order: a >= 1.

    Returns:
        RDP, rounded up; inf above order 1024.
    """
    mu = _ratio_mu(locals())
    rate = min(1.0, up(batch_size / records))
    if not 0.0 < mu < 1e150:
        return math.inf
    single = sampled_renyi.renyi(order=_whole_order(order), rate=rate, inverse_square=max(up(mu * mu, 2.0), 1e-300))
    return up(steps * single, 2.0)


@bound(
    "dp_sgd.gradient_lemma",
    title="Noise on every gradient, the simpler Renyi bound",
    gives="rdp",
    algorithms=("dp-sgd-gradient",),
    reference=_PAPER,
    locator="Lemma 3 (Wang, Jayaraman, Evans and Gu 2023, Lemma 3.7) at whole orders, composed",
    formula="T 3.5 (m/n)^2 a/s^2 at whole orders a where s^2 = (m sigma/(2 G))^2 >= 0.67 and a - 1 <= (2/3) s^2 "
    "ln(n/(m a (1 + s^2)))",
    requires=_GRADIENT_REQUIRES,
    assumes=_GRADIENT_ASSUMES,
    slack="whole orders only",
)
def gradient_lemma(
    *, records: int, batch_size: int, steps: int, noise_std: float, order: float, lipschitz: float = math.inf,
    radius: float = math.inf, holder_exponent: float | None = None, holder_constant: float | None = None,
    gradient_at_zero: float | None = None,
) -> float:  # fmt: skip
    """Theorem 11 made a guarantee: its lemma at the orders for which it is proved, conditions checked.

    Args:
        records, batch_size, steps, noise_std, lipschitz, radius, holder_exponent, holder_constant, gradient_at_zero: as
            in `gradient`.
        order: a >= 1.

    Returns:
        RDP, rounded up; inf where the conditions fail.
    """
    mu = _ratio_mu(locals())
    rate = min(1.0, up(batch_size / records))
    square = down(1.0 / mu / mu, 4.0) if 1e-140 < mu < 1e140 else 0.0
    return up(steps * sampled_renyi.lemma_step(order=_whole_order(order), rate=rate, square=square), 2.0)


@bound(
    "dp_sgd.gradient_published",
    title="Noise on every gradient, as published",
    gives="epsilon",
    algorithms=("dp-sgd-gradient",),
    kind="published",
    reference=_PAPER,
    locator="Theorem 11, conditions (32) and (33), best beta",
    formula="sigma^2 = (14 G^2 T/(beta n^2 eps)) (ln(1/delta)/((1 - beta) eps) + 1), if s^2 = (m sigma/(2 G))^2 >= "
    "0.67 and a - 1 <= (2/3) s^2 ln(n/(m a (1 + s^2))), a = ln(1/delta)/((1 - beta) eps) + 1",
    requires=_GRADIENT_REQUIRES,
    assumes=_GRADIENT_ASSUMES,
    erratum="Its Renyi bound is proved at whole orders and used at a real one. Without both conditions the formula is "
    "false: at n = T = 10^6, epsilon = 1 and delta = 10^-12 it names a 27th of the noise needed.",
    coarse=True,
)
def gradient_published(
    *, records: int, batch_size: int, steps: int, noise_std: float, log_delta: float, lipschitz: float = math.inf,
    radius: float = math.inf, holder_exponent: float | None = None, holder_constant: float | None = None,
    gradient_at_zero: float | None = None,
) -> float:  # fmt: skip
    """The epsilon for which Theorem 11 asks for this noise; no guarantee.

    Args:
        records, batch_size, steps, noise_std, lipschitz, radius, holder_exponent, holder_constant, gradient_at_zero: as
            in `gradient`.
        log_delta: ln delta < 0.

    Returns:
        epsilon; inf where no share beta meets the conditions.
    """
    mu = _ratio_mu(locals())
    if not 1e-140 < mu < 1e140:
        return math.inf
    return sampled_renyi.theorem_epsilon(
        records=records, steps=steps, batch_size=batch_size, ratio=1.0 / mu, log_delta=log_delta
    )
