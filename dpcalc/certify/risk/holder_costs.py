"""Definitions of `holder_cost`: excess risk exceeded with probability at most gamma, and the budget of its noise.

The inputs are those of `costs`. A share is a part of gamma. Quantiles are exact, except for chi-square variables of
many degrees of freedom, where the theorem uses the bound of Laurent and Massart.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, fmpq

from dpcalc.certify.numerics.balls import least, less, log_upper_tail, square
from dpcalc.certify.numerics.composition import Part
from dpcalc.certify.released.compositions import sampled_steps
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.sampled.noisy_output import drift, gradient, log_delta_of_output

EXACT_UP_TO = 5000
"""Degrees of freedom up to which the quantile of a chi-square variable is exact."""

Gap = Callable[[RunInputs, arb], arb]


def run_of(v: RunInputs) -> RunInputs:
    """Return the reported run: the step size, the noise and the number of steps of the risk."""
    chosen = {"step_size": v.as_double("eta"), "noise_std": v.as_double("sigma"), "steps": v.count}
    return v.changed(**chosen, batch_size=1, strong_convexity=None)


# --- private ---------------------------------------------------------------------------------------------------------


def on_output(v: RunInputs) -> arb:
    """Return ln delta of noise on the average iterate."""
    return log_delta_of_output(run_of(v))


def on_gradients(v: RunInputs) -> list[Part]:
    """Return the parts for noise in every step."""
    run = run_of(v)
    return sampled_steps(2 * gradient(run, unconstrained=False) / run.noise_std, run, run.steps)


# --- quantiles -------------------------------------------------------------------------------------------------------


def crossing(falls: Callable[[arb], arb], low: arb, high: arb) -> arb:
    """Return the zero of a decreasing function between ``low`` and ``high``, as a ball."""
    while high - low > high * arb(2) ** -90:
        middle = ((low + high) / 2).mid()
        value = falls(middle)
        if value > 0:
            low = middle
        elif value < 0:
            high = middle
        else:
            break
    return low.union(high)


def normal_quantile(share: arb) -> arb:
    """Return z with P(N(0, 1) > z) = share < 1/2."""
    return crossing(lambda z: log_upper_tail(z) - share.log(), arb(0), (-2 * share.log()).sqrt() + 1)


def chi_square_quantile(share: arb, freedom: int) -> arb:
    """Return x with P(chi^2 > x) = share; for many degrees of freedom Laurent and Massart's bound on it."""
    t = -share.log()
    most = freedom + 2 * (freedom * t).sqrt() + 2 * t
    if freedom > EXACT_UP_TO:
        return most
    half = arb(freedom) / 2
    return least(most, crossing(lambda x: (x / 2).gamma_upper(half, regularized=1) - share, arb(0), most + 1))


def hits_quantile(share: arb, steps: int, records: int) -> int:
    """Return the least k with P(Bin(T, 1/n) > k) <= share."""
    if records == 1:
        return steps
    low, high = -1, steps
    while high - low > 1:
        middle = (low + high) // 2
        tail = (1 / arb(records)).beta_lower(arb(middle + 1), arb(steps - middle), regularized=1)
        low, high = (middle, high) if less(share, tail) else (low, middle)
    return high


def chaining(share: arb) -> arb:
    """Return the minimum over p >= 2 of share^(-1/p) sqrt((p - 1)/2) (2 Gamma(p/2 + 1))^(1/p).

    The derivative of its logarithm, times -p^2, decreases: it is ln(2/share) + ln Gamma(p/2 + 1) - p psi(p/2 + 1)/2
    - p^2/(2 (p - 1)).
    """
    log_twice = (2 / share).log()

    def slope(p: arb) -> arb:
        return log_twice + (p / 2 + 1).lgamma() - p / 2 * (p / 2 + 1).digamma() - p * p / (2 * (p - 1))

    p = arb(2) if slope(arb(2)) <= 0 else crossing(slope, arb(2), 4 + 2 * log_twice)
    p = p.mid()  # the function hardly depends on p here
    return ((log_twice + (p / 2 + 1).lgamma()) / p).exp() * ((p - 1) / 2).sqrt()


# --- from the data to the population ---------------------------------------------------------------------------------


def _loss_range(v: RunInputs) -> arb:
    """Return B: the least of M_0 + G R and M_0 + M R + L R^(1 + alpha)/(1 + alpha)."""
    ways = [v.loss_at_zero + gradient(v) * v.radius]
    if v.gradient_at_zero is not None:
        curved = v.holder_constant * (v.radius.log() * (1 + v.holder_exponent)).exp() / (1 + v.holder_exponent)
        ways.append(v.loss_at_zero + v.gradient_at_zero * v.radius + curved)
    return least(*ways)


def _levels(v: RunInputs) -> int:
    """Return ceil(log2 n)."""
    return int(v.records - 1).bit_length()


def _mean(v: RunInputs, share: arb) -> arb:
    """Return B sqrt(ln(1/share)/(2n))."""
    return _loss_range(v) * (-share.log() / (2 * v.records)).sqrt()


def _published(v: RunInputs, share: arb) -> arb:
    """Return 2 g + e (24 sqrt(2) p g ceil(log2 n) + 4 B sqrt(p/n)), g = G Delta by Theorem 7 of Wang et al."""
    n, steps, g = v.records, v.steps, gradient(v)
    x = 3 * arb(n) / steps * (n / share).log()
    kappa = arb(steps) / n * (1 + x.max(x.sqrt()))
    apart = square(drift(v)) * steps + 4 * square(g * v.step_size) * (1 + kappa) * kappa
    stable = g * (arb(1).exp() * apart).sqrt()
    p = (-(2 * share).log()).max(arb(2))
    moved = 24 * arb(2).sqrt() * p * stable * _levels(v)
    return 2 * stable + arb(1).exp() * (moved + 4 * _loss_range(v) * (p / n).sqrt())


def _use(v: RunInputs) -> arb:
    """Return b = 2 eta G."""
    return 2 * v.step_size * gradient(v)


def _uniform(v: RunInputs, share: arb) -> arb:
    """Return 2 g + B sqrt(l/(2n)) + 2 g ceil(log2 n) Q, g = G Delta*(k), with k hits exceeded by no record."""
    hits = hits_quantile(share / v.records, v.steps, v.records)
    a, b = least(drift(v), _use(v)), _use(v)
    apart = (hits - 1) * b + (square(b) + (v.steps - hits) * square(a)).sqrt() if hits else arb(0)
    stable = gradient(v) * apart
    return 2 * stable + _mean(v, share) + 2 * stable * _levels(v) * chaining(share)


def _by_index(v: RunInputs, share: arb) -> arb:
    """Return 2 G_1 + B sqrt(l/(2n)) + ceil(log2 n) Q G_2."""
    n, steps, g = v.records, v.steps, gradient(v)
    a, b = least(drift(v), _use(v)), _use(v)
    pairs, most = arb(fmpq(steps * (steps - 1), 2 * n)), arb(fmpq(steps * (steps - 1), 2))
    same = least(pairs + (pairs * arb(fmpq(n - 1, n)) * (1 / share - 1)).sqrt(), most)
    average = g * (b * steps / n + a * arb(steps).sqrt() * arb(fmpq(min(n, steps), n)))
    spread = 2 * g / arb(n).sqrt() * (b * (steps + 2 * same).sqrt() + a * arb(steps * min(n, steps)).sqrt())
    return 2 * average + _mean(v, share) + _levels(v) * chaining(share) * spread


def _least(v: RunInputs, share: arb) -> arb:
    return least(_by_index(v, share), _uniform(v, share))


# --- risks -----------------------------------------------------------------------------------------------------------


def _risk(v: RunInputs, gap: Gap, noise: Callable[[RunInputs, arb], arb], shares: int) -> arb:
    """Return the sum of the gap, the regret, and the terms of the noise and of the draws, each at a share of gamma."""
    run = run_of(v)
    share = run.failure_probability / shares
    g, steps = gradient(run), run.steps
    regret = square(run.radius) / (2 * run.step_size * steps) + run.step_size * square(g) / 2
    one_draw = least(2 * _loss_range(run), 4 * g * run.radius)
    sampling = one_draw * (-share.log() / (2 * steps)).sqrt() + _mean(run, share)
    return gap(run, share) + regret + noise(run, share) + sampling


def _step_noise(v: RunInputs, share: arb) -> arb:
    """Return (eta sigma^2/(2T)) chi^2_(Td) + sigma (2R + eta G) sqrt(2 l/T)."""
    quantile = chi_square_quantile(share, v.steps * v.dimension)
    along = v.noise_std * (2 * v.radius + v.step_size * gradient(v)) * (-2 * share.log() / v.steps).sqrt()
    return v.step_size * square(v.noise_std) * quantile / (2 * v.steps) + along


def _output_noise(v: RunInputs, share: arb) -> arb:
    """Return G sigma z + L (sigma^2 chi^2_d)^((1 + alpha)/2)/(1 + alpha), each at half the share."""
    half, power = share / 2, 1 + v.holder_exponent
    length = v.noise_std * chi_square_quantile(half, v.dimension).sqrt()
    return gradient(v) * v.noise_std * normal_quantile(half) + v.holder_constant * (length.log() * power).exp() / power


def step_risk(gap: Gap) -> Callable[[RunInputs], arb]:
    """Return the risk with noise in every step."""
    return lambda v: _risk(v, gap, _step_noise, 7)


def output_risk(gap: Gap) -> Callable[[RunInputs], arb]:
    """Return the risk with noise on the output."""
    return lambda v: _risk(v, gap, _output_noise, 6)


GAPS: dict[str, Gap] = {"published": _published, "uniform": _uniform, "likely": _least}
"""The bounds on the gap between the data and the population, by the last word of their theorems."""
