"""What privacy costs with Hölder losses: excess population risk of DP-SGD with noise on the output or the gradients.

Records are independent draws from one law, the domain lies in a ball of radius R around 0 that holds a minimiser of the
risk R(w) = E l(w; z), losses are >= 0, and the average of the iterates is what is used. The excess is of the average's
risk over that minimiser's. The noise is the least that keeps the budget; the step size the best where none is given.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from dpcalc.bounds import dp_sgd, generalisation, holder, noisy_sgd
from dpcalc.bounds.cost import Cost
from dpcalc.errors import NotApplicable
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Composition
from dpcalc.numerics import chi_square
from dpcalc.numerics.floats import MAX, UNIT, down, up
from dpcalc.numerics.roots import least
from dpcalc.registry import Requirement, bound

_PAPER = "wang2022"
_LN2 = 0.6931471805599453


# --- noise -----------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def gradient_noise_ratio(*, records: int, batch_size: int, steps: int, epsilon: float, log_delta: float) -> float:
    """Return s = sigma m/(2 G) that keeps the budget with noise on every gradient, at most 1e-4 above the least.

    By the law of the privacy loss, as `dp_sgd.gradient`; the point returned was evaluated.

    Raises:
        NotApplicable: no noise below 1e6 times that of one Gaussian mechanism is enough.
    """

    def excess(s: float) -> float:
        parts = noisy_sgd.composition(
            records=records, batch_size=batch_size, steps=steps, lipschitz=0.5 * batch_size, noise_std=s
        )
        return min(50.0, max(-50.0, Composition(parts).log_delta(epsilon).value - log_delta))

    whole = gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta)
    low, high, rate = 1e-3, math.sqrt(steps) / whole, batch_size / records
    for _ in range(60):  # by the central limit theorem, for a start
        middle = math.sqrt(low * high)
        enough = noisy_sgd.clt_mu(mu=1.0 / middle, rate=rate, steps=steps) <= whole
        low, high = (low, middle) if enough else (middle, high)
    good = high
    while excess(good) > 0.0:
        good *= 1.25
        if good > 1e6 * math.sqrt(steps) / whole:
            raise NotApplicable("no noise on the gradients keeps this budget", "allow a larger epsilon or delta")
    bad = good / 1.25
    while bad > 1e-150 and excess(bad) <= 0.0:
        good, bad = bad, bad / 1.25
    return least(excess, bad, good, ulps=1 << 38)


def output_noise_std(
    *, records: int, steps: int, step_size: float, holder_exponent: float, holder_constant: float, gradient: float,
    epsilon: float, log_delta: float, rough: bool = False,
) -> float:  # fmt: skip
    """Return the noise on the output that keeps the budget (`dp_sgd.output`), rounded up.

    Raises:
        NotApplicable: none below 1e150 does.
    """

    def excess(sigma: float) -> float:
        found = dp_sgd.output_log_delta(
            records=records, steps=steps, step_size=step_size, noise_std=sigma, holder_exponent=holder_exponent,
            holder_constant=holder_constant, gradient=gradient, epsilon=epsilon,
        )  # fmt: skip
        return min(100.0, max(-100.0, found - log_delta))

    good = max(2.0 * step_size * gradient, 1e-150) / gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta)
    while excess(good) > 0.0:
        good *= 2.0
        if good > 1e150:
            raise NotApplicable("no noise on the output keeps this budget", "allow a larger epsilon or delta")
    bad = 0.5 * good
    while bad > 1e-150 and excess(bad) <= 0.0:
        good, bad = bad, 0.5 * bad
    return least(excess, bad, good, ulps=1 << 44 if rough else 1 << 24)


# --- the terms -------------------------------------------------------------------------------------------------------


def descent(*, radius: float, gradient: float, steps: int, step_size: float) -> float:
    """Return R^2/(2 eta T) + eta G^2/2, rounded up: the regret of projected SGD, per step, from 0 to a point within R.

    >>> descent(radius=1.0, gradient=1.0, steps=100, step_size=0.1) < 0.1 + 1e-15
    True
    """
    return up(radius * radius / (2.0 * step_size * steps) + 0.5 * step_size * gradient * gradient, 16.0)


def expected_gap(*, gradient: float, records: int, steps: int, step_size: float, drift: float) -> float:
    """Return G (eta G (T - 1)/n + (2/3) a sqrt(T)), rounded up: E of population over empirical risk of the average."""
    a = min(drift, up(2.0 * step_size * gradient, 2.0))
    inner = step_size * gradient * (steps - 1) / records + 2.0 / 3.0 * a * math.sqrt(steps)
    return up(gradient * inner, 16.0)


def gradient_expected_risk(
    *, records: int, steps: int, step_size: float, radius: float, gradient: float, drift: float, dimension: int,
    noise_std: float,
) -> float:  # fmt: skip
    """Return R^2/(2 eta T) + (eta/2)(G^2 + d sigma^2) + G (eta G (T-1)/n + (2/3) a sqrt(T)), rounded up."""
    noise = 0.5 * step_size * dimension * noise_std * noise_std
    regret = descent(radius=radius, gradient=gradient, steps=steps, step_size=step_size)
    gap = expected_gap(gradient=gradient, records=records, steps=steps, step_size=step_size, drift=drift)
    return up(regret + up(noise, 8.0) + gap, 4.0)


def output_noise_expected(*, holder_exponent: float, holder_constant: float, dimension: int, noise_std: float) -> float:
    """Return L (d sigma^2)^((1 + alpha)/2)/(1 + alpha), rounded up: what noise of mean zero on the output costs.

    >>> round(output_noise_expected(holder_exponent=0.5, holder_constant=1.5, dimension=20, noise_std=0.1), 12)
    0.299069756244
    """
    return _curved(holder_exponent, holder_constant, math.sqrt(dimension) * noise_std)


def _curved(exponent: float, constant: float, length: float) -> float:
    """Return L x^(1 + alpha)/(1 + alpha), rounded up."""
    if length <= 0.0:
        return 0.0
    log_value = (1.0 + exponent) * math.log(length) + math.log(constant) - math.log1p(exponent)
    if log_value > 700.0:
        return math.inf
    return up(math.exp(max(log_value, -745.0)), 32.0 + 16.0 * (abs(math.log(length)) + abs(math.log(constant))))


def output_noise_likely(
    *, holder_exponent: float, holder_constant: float, gradient: float, dimension: int, noise_std: float,
    log_chance: float,
) -> float:  # fmt: skip
    """Return G sigma z + L (sigma^2 chi^2_d)^((1 + alpha)/2)/(1 + alpha), each quantile at half the chance; rounded up.

    The linear term of the noise is one normal variable, and not sqrt(d) of them.

    >>> round(output_noise_likely(holder_exponent=1.0, holder_constant=0.25, gradient=1.0, dimension=20, noise_std=0.1,
    ...                           log_chance=math.log(0.05)), 12)
    0.238708407083
    """
    half = down(log_chance - _LN2, 2.0)
    along = gradient * noise_std * chi_square.normal_quantile(half)
    length = noise_std * math.sqrt(chi_square.quantile(half, freedom=dimension))
    return up(along + _curved(holder_exponent, holder_constant, up(length, 4.0)), 8.0)


def output_noise_published(
    *, holder_exponent: float, holder_constant: float, gradient: float, dimension: int, noise_std: float,
    log_chance: float,
) -> float:  # fmt: skip
    """Return G x + L x^(1 + alpha), x = sigma sqrt(d) (1 + (8 ln(1/chance)/d)^(1/4)) (Lemma 22), rounded up.

    Raises:
        NotApplicable: chance <= e^(-d/8).

    >>> round(output_noise_published(holder_exponent=1.0, holder_constant=0.25, gradient=1.0, dimension=20,
    ...                              noise_std=0.1, log_chance=math.log(0.1)), 12)
    1.081274156574
    """
    if -log_chance >= dimension / 8.0:
        raise NotApplicable("Lemma 22 is for chances above e^(-d/8)", "use a larger failure probability")
    x = noise_std * math.sqrt(dimension) * (1.0 + (8.0 * -log_chance / dimension) ** 0.25)
    linear = gradient * x
    return up(linear + (1.0 + holder_exponent) * _curved(holder_exponent, holder_constant, up(x, 8.0)), 16.0)


def sampling(
    *, records: int, steps: int, radius: float, gradient: float, loss_range: float, log_chance: float
) -> float:
    """Return min(2 B, 4 G R) sqrt(l/(2T)) + B sqrt(l/(2n)), l = ln(1/chance): Azuma over steps, Hoeffding at w*."""
    over_steps = min(2.0 * loss_range, 4.0 * gradient * radius) * math.sqrt(-log_chance / (2.0 * steps))
    return up(over_steps + loss_range * math.sqrt(-log_chance / (2.0 * records)), 16.0)


def noise_likely(
    *, steps: int, step_size: float, radius: float, gradient: float, dimension: int, noise_std: float, log_chance: float
) -> float:
    """Return (eta sigma^2/(2T)) chi^2_(Td) + sigma (2R + eta G) sqrt(2 l/T), rounded up: the cost of noise in steps."""
    square = chi_square.quantile(log_chance, freedom=steps * dimension)
    along = noise_std * (2.0 * radius + step_size * gradient) * math.sqrt(2.0 * -log_chance / steps)
    return up(0.5 * step_size * noise_std * noise_std * (square / steps) + along, 24.0)


Gap = Callable[[float, float], float]
"""(step size, ln of one share of the failure probability) -> bound on the generalisation gap; takes three shares."""


def gap_of(
    kind: str, *, records: int, steps: int, gradient: float, holder_exponent: float, holder_constant: float,
    loss_range: float,
) -> Gap:  # fmt: skip
    """Return the generalisation gap as a function of step size and share.

    Args:
        kind: ``published``: Theorem 7's stability, published constants; ``chernoff``: that stability, our constants;
            ``uniform``: the quantile of hits for every record; ``index``: each record's own hits; ``least``: the lesser
            of the last two, for both fail with no more than the chance given and neither looks at the data.
        records, steps, gradient, holder_exponent, holder_constant, loss_range: n, T, G, alpha, L and B.
    """

    if kind == "least":
        both = [
            gap_of(
                each, records=records, steps=steps, gradient=gradient, holder_exponent=holder_exponent,
                holder_constant=holder_constant, loss_range=loss_range,
            )
            for each in ("index", "uniform")
        ]  # fmt: skip
        return lambda step_size, log_share: min(gap(step_size, log_share) for gap in both)

    def at(step_size: float, log_share: float) -> float:
        use = up(2.0 * step_size * gradient, 2.0)
        a = holder.drift(holder_exponent=holder_exponent, holder_constant=holder_constant, step_size=step_size)
        if kind == "index":
            return generalisation.gap_by_index(
                gradient=gradient, use=use, drift=a, loss_range=loss_range, records=records, steps=steps,
                log_chance_draws=log_share, log_chance_mean=log_share, log_chance_rest=log_share,
            )  # fmt: skip
        each = holder.log_each(log_share, records)
        if kind == "uniform":
            hits = holder.hits_quantile(records=records, steps=steps, log_chance=each)
            apart = holder.after_hits(hits=hits, steps=steps, use=use, drift=a)
        else:
            apart = holder.stability_published(
                records=records, steps=steps, step_size=step_size, holder_exponent=holder_exponent,
                holder_constant=holder_constant, gradient=gradient, log_chance=each,
            )  # fmt: skip
        stability = up(gradient * apart, 2.0)
        if kind == "published":
            return generalisation.gap_published(
                stability=stability, loss_range=loss_range, records=records, log_chance=down(log_share + _LN2, 2.0)
            )
        return generalisation.gap_uniform(
            stability=stability, loss_range=loss_range, records=records, log_chance_mean=log_share,
            log_chance_rest=log_share,
        )  # fmt: skip

    return at


def gradient_likely_risk(
    *, gap: Gap, records: int, steps: int, step_size: float, radius: float, gradient: float, loss_range: float,
    dimension: int, noise_std: float, log_chance: float,
) -> float:  # fmt: skip
    """Return the excess risk with noise on every gradient, but with this chance: seven shares of it; rounded up."""
    share = holder.log_each(log_chance, 7)
    return up(
        gap(step_size, share)
        + descent(radius=radius, gradient=gradient, steps=steps, step_size=step_size)
        + noise_likely(
            steps=steps, step_size=step_size, radius=radius, gradient=gradient, dimension=dimension,
            noise_std=noise_std, log_chance=share,
        )
        + sampling(
            records=records, steps=steps, radius=radius, gradient=gradient, loss_range=loss_range, log_chance=share
        ),
        8.0,
    )  # fmt: skip


def output_likely_risk(
    *, gap: Gap, records: int, steps: int, step_size: float, radius: float, gradient: float, loss_range: float,
    dimension: int, noise_std: float, holder_exponent: float, holder_constant: float, log_chance: float,
) -> float:  # fmt: skip
    """Return the excess risk with noise on the output, but with this chance: six shares of it; rounded up."""
    share = holder.log_each(log_chance, 6)
    return up(
        gap(step_size, share)
        + descent(radius=radius, gradient=gradient, steps=steps, step_size=step_size)
        + output_noise_likely(
            holder_exponent=holder_exponent, holder_constant=holder_constant, gradient=gradient, dimension=dimension,
            noise_std=noise_std, log_chance=share,
        )
        + sampling(
            records=records, steps=steps, radius=radius, gradient=gradient, loss_range=loss_range, log_chance=share
        ),
        8.0,
    )  # fmt: skip


# --- the best step size ----------------------------------------------------------------------------------------------


def largest_step(*, holder_exponent: float, holder_constant: float) -> float:
    """Return the largest step size that is allowed: 2/L, rounded down, where alpha = 1; else inf."""
    return down(2.0 / holder_constant, 4.0) if holder_exponent == 1.0 else math.inf


def best_step(
    *, records: int, steps: int, radius: float, gradient: float, dimension: int, noise_std: float,
    holder_exponent: float, holder_constant: float,
) -> float:  # fmt: skip
    """Return eta* = R/sqrt(2 T kappa), kappa = (G^2 + d sigma^2)/2 + G^2 (T-1)/n [+ (2/3) G L sqrt(T) at alpha = 0].

    The best for the expected risk with noise in every step where alpha is 0 or 1, a start elsewhere; at most 2/L where
    alpha = 1.

    Args:
        records, steps, radius, gradient, dimension: n, T, R, G and d.
        noise_std: sigma in every step; 0 for none.
        holder_exponent, holder_constant: alpha and L.
    """
    kappa = 0.5 * (gradient**2 + dimension * noise_std**2) + gradient**2 * (steps - 1) / records
    if holder_exponent == 0.0:
        kappa += 2.0 / 3.0 * gradient * min(holder_constant, 2.0 * gradient) * math.sqrt(steps)
    return min(
        radius / math.sqrt(2.0 * steps * kappa),
        largest_step(holder_exponent=holder_exponent, holder_constant=holder_constant),
    )


def _chosen(risk: Callable[[float], float], start: float, most: float) -> float:
    """Return a step size at most ``most`` near the least of a risk that falls and then rises; any is valid."""

    def at(log_step: float) -> float:
        return risk(min(most, math.exp(log_step)))

    ratio = 0.6180339887498949
    low, high = math.log(start) - 9.0, math.log(start) + 4.0
    for _ in range(26):
        c, d = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, d) if at(c) <= at(d) else (c, high)
    found = min(most, math.exp(0.5 * (low + high)))
    return found if risk(found) <= risk(start) else start


# --- the bounds ------------------------------------------------------------------------------------------------------


def _within_ball(values: Mapping[str, Any]) -> tuple[str, str] | None:
    if values.get("lipschitz") is None and values.get("gradient_at_zero") is None:
        return "knows no bound on the gradient", "give --lipschitz, or --gradient-at-zero"
    return None


def _no_l2(values: Mapping[str, Any]) -> tuple[str, str] | None:
    if values.get("strong_convexity"):
        return "is for losses without an l2 term", "leave out --strong-convexity"
    return None


def _step_if_given(values: Mapping[str, Any]) -> tuple[str, str] | None:
    return dp_sgd.step_fits(values) if values.get("step_size") is not None else None


_GRADIENT = Requirement("a bound on the gradient: lipschitz or gradient_at_zero", _within_ball)
_NO_L2 = Requirement("strong_convexity = 0", _no_l2)
_STEP = Requirement("step_size <= 2/holder_constant where holder_exponent = 1", _step_if_given)
_REQUIRES = (_GRADIENT, _NO_L2, _STEP)
_ASSUMES = (
    "records are independent draws from one law",
    "every loss is >= 0 on the domain, convex, and its gradient Hölder continuous on all of R^d",
    "the domain is convex, holds 0 and the minimiser compared with, and lies in the ball of the radius given",
    "steps from 0 with one step size; the average of the iterates is used",
)
_ONE = "every step draws one record, uniformly and with replacement"
_ON_OUTPUT = (*_ASSUMES, _ONE, "noise on the average, which is not projected")
_ON_GRADIENT = (*_ASSUMES, _ONE, "noise in every step")
_V1 = "gap of Bousquet, Klochkov and Zhivotovskiy 2020, Theorem 4, with Theorem 7 of Wang, Lei, Ying and Zhang 2022"
_V2 = "the same gap with smaller constants, and the exact quantile of hits"
_V3 = "the same gap with each record's own number of hits"
_OUTPUT_TAIL = "R^2/(2 eta T) + eta G^2/2 + G sigma z + L (sigma^2 chi^2_d)^((1+alpha)/2)/(1+alpha) + "
_GRADIENT_TAIL = "R^2/(2 eta T) + eta G^2/2 + (eta sigma^2/(2T)) chi^2_(Td) + sigma (2R + eta G) sqrt(2 l/T) + "
_SAMPLING = "min(2B, 4GR) sqrt(l/(2T)) + B sqrt(l/(2n)), l = ln({}/gamma)"


class _Problem:
    """What the bounds share: G, B, the noise, and the choice of the step size."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.n, self.t, self.d = values["records"], values["steps"], values["dimension"]
        self.alpha, self.constant = values["holder_exponent"], values["holder_constant"]
        self.radius, self.zero = values["radius"], values["gradient_at_zero"]
        self.budget = {"epsilon": values["epsilon"], "log_delta": values["log_delta"]}
        self.step = values["step_size"]
        self.gradient = holder.gradient_bound(
            lipschitz=values["lipschitz"], radius=self.radius, holder_exponent=self.alpha,
            holder_constant=self.constant, gradient_at_zero=self.zero,
        )  # fmt: skip
        self.hoelder = {"holder_exponent": self.alpha, "holder_constant": self.constant}
        self.most = largest_step(**self.hoelder)

    def drift(self, step: float) -> float:
        return holder.drift(**self.hoelder, step_size=step)

    def range(self, loss_at_zero: float) -> float:
        return holder.range_bound(
            radius=self.radius, loss_at_zero=loss_at_zero, gradient=self.gradient, gradient_at_zero=self.zero,
            **self.hoelder,
        )  # fmt: skip

    def step_noise(self) -> float:
        """Return sigma of the noise in every step."""
        ratio = gradient_noise_ratio(records=self.n, batch_size=1, steps=self.t, **self.budget)
        return up(2.0 * self.gradient * ratio, 4.0)

    def output_noise(self) -> Callable[[float, bool], float]:
        """Return sigma on the output as a function of the step size, and of whether a rough one will do."""
        given = {"records": self.n, "steps": self.t, "gradient": self.gradient, **self.hoelder, **self.budget}
        # Where a and b are both in proportion to the step size, so is the noise.
        unit = None
        if self.alpha in (0.0, 1.0):
            scale = min(1.0, self.most)
            unit = output_noise_std(**given, step_size=scale) / scale

        def at(step: float, rough: bool) -> float:
            if unit is not None:
                return up(unit * step, 16.0)
            return output_noise_std(**given, step_size=step, rough=rough)

        return at

    def start(self, noise_std: float) -> float:
        return best_step(
            records=self.n, steps=self.t, radius=self.radius, gradient=self.gradient, dimension=self.d,
            noise_std=noise_std, **self.hoelder,
        )  # fmt: skip

    def on_gradient(self, risk: Callable[[float, float], float], chance: float | None) -> Cost:
        """Return the cost with noise in every step, for risk(step size, sigma)."""
        sigma = self.step_noise()
        step = self.step or _chosen(lambda s: risk(s, sigma), self.start(sigma), self.most)
        return Cost(_finite(risk(step, sigma)), sigma, step, self.t, chance)

    def on_output(self, risk: Callable[[float, float], float], chance: float | None) -> Cost:
        """Return the cost with noise on the output, for risk(step size, sigma)."""
        noise = self.output_noise()
        step = self.step or _chosen(lambda s: risk(s, noise(s, True)), self.start(0.0), self.most)
        sigma = noise(step, False)
        return Cost(_finite(risk(step, sigma)), sigma, step, self.t, chance)


def _finite(risk: float) -> float:
    return risk if risk < MAX else math.inf


@bound(
    "holder_cost.gradient_expected",
    title="Expected excess risk, noise on every gradient",
    gives="cost",
    algorithms=("dp-sgd-gradient",),
    reference="dpcalc",
    locator="regret of projected SGD and stability in expectation",
    formula="R^2/(2 eta T) + (eta/2)(G^2 + d sigma^2) + G (eta G (T-1)/n + (2/3) a sqrt(T))",
    requires=_REQUIRES,
    assumes=_ON_GRADIENT,
    coarse=True,
)
def gradient_expected(
    *, records: int, steps: int, dimension: int, radius: float, holder_exponent: float, holder_constant: float,
    epsilon: float, log_delta: float, lipschitz: float = math.inf, gradient_at_zero: float | None = None,
    step_size: float | None = None,
) -> Cost:  # fmt: skip
    """What is expected of SGD with as much noise in every step as the budget asks for.

    Args:
        records, steps, dimension: n, T and d.
        radius: R of a ball around 0 that holds the domain.
        holder_exponent, holder_constant: alpha and L.
        epsilon, log_delta: the budget.
        lipschitz: bound on the gradient on the domain; the least of it and M + L R^alpha counts.
        gradient_at_zero: M.
        step_size: eta; the best where it is left out.

    Returns:
        Cost, its excess risk rounded up.
    """
    problem = _Problem(locals())
    return problem.on_gradient(
        lambda step, sigma: gradient_expected_risk(
            records=records, steps=steps, step_size=step, radius=radius, gradient=problem.gradient,
            drift=problem.drift(step), dimension=dimension, noise_std=sigma,
        ),
        None,
    )  # fmt: skip


@bound(
    "holder_cost.output_expected",
    title="Expected excess risk, noise on the output",
    gives="cost",
    algorithms=("dp-sgd-output",),
    reference="dpcalc",
    locator="regret of projected SGD, stability in expectation, and noise of mean zero",
    formula="R^2/(2 eta T) + eta G^2/2 + G (eta G (T-1)/n + (2/3) a sqrt(T)) + L (d sigma^2)^((1+alpha)/2)/(1+alpha)",
    requires=_REQUIRES,
    assumes=_ON_OUTPUT,
    coarse=True,
)
def output_expected(
    *, records: int, steps: int, dimension: int, radius: float, holder_exponent: float, holder_constant: float,
    epsilon: float, log_delta: float, lipschitz: float = math.inf, gradient_at_zero: float | None = None,
    step_size: float | None = None,
) -> Cost:  # fmt: skip
    """What is expected of the average of SGD with as much noise on it as the budget asks for.

    Args:
        records, steps, dimension, radius, holder_exponent, holder_constant, epsilon, log_delta, lipschitz,
            gradient_at_zero, step_size: as in `gradient_expected`.

    Returns:
        Cost, its excess risk rounded up.
    """
    problem = _Problem(locals())

    def risk(step: float, sigma: float) -> float:
        plain = gradient_expected_risk(
            records=records, steps=steps, step_size=step, radius=radius, gradient=problem.gradient,
            drift=problem.drift(step), dimension=dimension, noise_std=0.0,
        )  # fmt: skip
        return up(plain + output_noise_expected(dimension=dimension, noise_std=sigma, **problem.hoelder), 2.0)

    return problem.on_output(risk, None)


def _likely(kind: str, on_output: bool, values: Mapping[str, Any]) -> Cost:
    problem = _Problem(values)
    chance = values["failure_probability"]
    spread = problem.range(values["loss_at_zero"])
    gap = gap_of(
        kind, records=problem.n, steps=problem.t, gradient=problem.gradient, loss_range=spread, **problem.hoelder
    )
    shared = {
        "gap": gap, "records": problem.n, "steps": problem.t, "radius": problem.radius, "gradient": problem.gradient,
        "loss_range": spread, "dimension": problem.d, "log_chance": math.log(chance) * (1.0 + 4.0 * UNIT),
    }  # fmt: skip
    if on_output:
        return problem.on_output(
            lambda step, sigma: output_likely_risk(step_size=step, noise_std=sigma, **shared, **problem.hoelder), chance
        )
    return problem.on_gradient(
        lambda step, sigma: gradient_likely_risk(step_size=step, noise_std=sigma, **shared), chance
    )


@bound(
    "holder_cost.gradient_published",
    title="Excess risk with high probability, noise on every gradient, published constants",
    gives="cost",
    algorithms=("dp-sgd-gradient",),
    reference="bousquet2020",
    locator=_V1,
    formula="2 g + e (24 sqrt(2) p g ceil(log2 n) + 4 B sqrt(p/n)), g = G Delta, + "
    + _GRADIENT_TAIL
    + _SAMPLING.format(7),
    requires=_REQUIRES,
    assumes=_ON_GRADIENT,
    coarse=True,
)
def gradient_published(
    *, records: int, steps: int, dimension: int, radius: float, holder_exponent: float, holder_constant: float,
    loss_at_zero: float, failure_probability: float, epsilon: float, log_delta: float, lipschitz: float = math.inf,
    gradient_at_zero: float | None = None, step_size: float | None = None,
) -> Cost:  # fmt: skip
    """The gap with the constants that are published: more than the range of the losses but for very many records.

    Args:
        records, steps, dimension, radius, holder_exponent, holder_constant, epsilon, log_delta, lipschitz,
            gradient_at_zero, step_size: as in `gradient_expected`.
        loss_at_zero: M0, from which the range of the losses follows.
        failure_probability: gamma, with which it may fail.

    Returns:
        Cost, its excess risk rounded up.
    """
    return _likely("published", False, locals())


@bound(
    "holder_cost.gradient_uniform",
    title="Excess risk with high probability, noise on every gradient, one stability for all records",
    gives="cost",
    algorithms=("dp-sgd-gradient",),
    reference="dpcalc",
    locator=_V2,
    formula="2 g + B sqrt(l/(2n)) + 2 g ceil(log2 n) Q, g = G Delta*(k), + " + _GRADIENT_TAIL + _SAMPLING.format(7),
    requires=_REQUIRES,
    assumes=_ON_GRADIENT,
    coarse=True,
)
def gradient_uniform(
    *, records: int, steps: int, dimension: int, radius: float, holder_exponent: float, holder_constant: float,
    loss_at_zero: float, failure_probability: float, epsilon: float, log_delta: float, lipschitz: float = math.inf,
    gradient_at_zero: float | None = None, step_size: float | None = None,
) -> Cost:  # fmt: skip
    """The gap with the constants that the proof allows, and as many hits as no record exceeds but with a small chance.

    Args:
        records, steps, dimension, radius, holder_exponent, holder_constant, epsilon, log_delta, lipschitz,
            gradient_at_zero, step_size: as in `gradient_expected`.
        loss_at_zero: M0, from which the range of the losses follows.
        failure_probability: gamma, with which it may fail.

    Returns:
        Cost, its excess risk rounded up.
    """
    return _likely("uniform", False, locals())


@bound(
    "holder_cost.gradient_likely",
    title="Excess risk with high probability, noise on every gradient",
    gives="cost",
    algorithms=("dp-sgd-gradient",),
    reference="dpcalc",
    locator=_V3,
    formula="2 G_1 + B sqrt(l/(2n)) + ceil(log2 n) Q G_2 + " + _GRADIENT_TAIL + _SAMPLING.format(7),
    requires=_REQUIRES,
    assumes=_ON_GRADIENT,
    coarse=True,
)
def gradient_likely(
    *, records: int, steps: int, dimension: int, radius: float, holder_exponent: float, holder_constant: float,
    loss_at_zero: float, failure_probability: float, epsilon: float, log_delta: float, lipschitz: float = math.inf,
    gradient_at_zero: float | None = None, step_size: float | None = None,
) -> Cost:  # fmt: skip
    """The gap where each record counts with its own number of hits, or that of `output_uniform` where it is less.

    Args:
        records, steps, dimension, radius, holder_exponent, holder_constant, epsilon, log_delta, lipschitz,
            gradient_at_zero, step_size: as in `gradient_expected`.
        loss_at_zero: M0, from which the range of the losses follows.
        failure_probability: gamma, with which it may fail.

    Returns:
        Cost, its excess risk rounded up.
    """
    return _likely("least", False, locals())


@bound(
    "holder_cost.output_published",
    title="Excess risk with high probability, noise on the output, published constants",
    gives="cost",
    algorithms=("dp-sgd-output",),
    reference="bousquet2020",
    locator=_V1,
    formula="2 g + e (24 sqrt(2) p g ceil(log2 n) + 4 B sqrt(p/n)), g = G Delta, + "
    + _OUTPUT_TAIL
    + _SAMPLING.format(6),
    requires=_REQUIRES,
    assumes=_ON_OUTPUT,
    coarse=True,
)
def output_published(
    *, records: int, steps: int, dimension: int, radius: float, holder_exponent: float, holder_constant: float,
    loss_at_zero: float, failure_probability: float, epsilon: float, log_delta: float, lipschitz: float = math.inf,
    gradient_at_zero: float | None = None, step_size: float | None = None,
) -> Cost:  # fmt: skip
    """The gap with the constants that are published: more than the range of the losses but for very many records.

    Args:
        records, steps, dimension, radius, holder_exponent, holder_constant, epsilon, log_delta, lipschitz,
            gradient_at_zero, step_size: as in `gradient_expected`.
        loss_at_zero: M0, from which the range of the losses follows.
        failure_probability: gamma, with which it may fail.

    Returns:
        Cost, its excess risk rounded up.
    """
    return _likely("published", True, locals())


@bound(
    "holder_cost.output_uniform",
    title="Excess risk with high probability, noise on the output, one stability for all records",
    gives="cost",
    algorithms=("dp-sgd-output",),
    reference="dpcalc",
    locator=_V2,
    formula="2 g + B sqrt(l/(2n)) + 2 g ceil(log2 n) Q, g = G Delta*(k), + " + _OUTPUT_TAIL + _SAMPLING.format(6),
    requires=_REQUIRES,
    assumes=_ON_OUTPUT,
    coarse=True,
)
def output_uniform(
    *, records: int, steps: int, dimension: int, radius: float, holder_exponent: float, holder_constant: float,
    loss_at_zero: float, failure_probability: float, epsilon: float, log_delta: float, lipschitz: float = math.inf,
    gradient_at_zero: float | None = None, step_size: float | None = None,
) -> Cost:  # fmt: skip
    """The gap with the constants that the proof allows, and as many hits as no record exceeds but with a small chance.

    Args:
        records, steps, dimension, radius, holder_exponent, holder_constant, epsilon, log_delta, lipschitz,
            gradient_at_zero, step_size: as in `gradient_expected`.
        loss_at_zero: M0, from which the range of the losses follows.
        failure_probability: gamma, with which it may fail.

    Returns:
        Cost, its excess risk rounded up.
    """
    return _likely("uniform", True, locals())


@bound(
    "holder_cost.output_likely",
    title="Excess risk with high probability, noise on the output",
    gives="cost",
    algorithms=("dp-sgd-output",),
    reference="dpcalc",
    locator=_V3,
    formula="2 G_1 + B sqrt(l/(2n)) + ceil(log2 n) Q G_2 + " + _OUTPUT_TAIL + _SAMPLING.format(6),
    requires=_REQUIRES,
    assumes=_ON_OUTPUT,
    coarse=True,
)
def output_likely(
    *, records: int, steps: int, dimension: int, radius: float, holder_exponent: float, holder_constant: float,
    loss_at_zero: float, failure_probability: float, epsilon: float, log_delta: float, lipschitz: float = math.inf,
    gradient_at_zero: float | None = None, step_size: float | None = None,
) -> Cost:  # fmt: skip
    """The gap where each record counts with its own number of hits, or that of `output_uniform` where it is less.

    Args:
        records, steps, dimension, radius, holder_exponent, holder_constant, epsilon, log_delta, lipschitz,
            gradient_at_zero, step_size: as in `gradient_expected`.
        loss_at_zero: M0, from which the range of the losses follows.
        failure_probability: gamma, with which it may fail.

    Returns:
        Cost, its excess risk rounded up.
    """
    return _likely("least", True, locals())
