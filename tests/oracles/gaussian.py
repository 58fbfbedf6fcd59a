"""The Gaussian trade-off, Renyi divergences and conversions: formulas of `dpcalc.certify`, inverses and quadrature."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
from flint import arb

from dpcalc.certify.numerics import gaussian as certified
from tests.oracles import adaptive, ball, root


def upper_tail(x: Any) -> arb:
    """Q(x) = P(N(0,1) > x)."""
    return certified.upper_tail(ball(x))


def log_ndtr(x: Any) -> arb:
    """ln Phi(x)."""

    def value() -> arb:
        return (-upper_tail(x)).log1p() if x > 0 else upper_tail(-x).log()

    return adaptive(value)


def mills(u: Any) -> arb:
    """Q(u)/phi(u)."""
    return adaptive(lambda: certified.mills(ball(u)))


def mills_slope(u: Any) -> arb:
    """1 - u M(u)."""
    return adaptive(lambda: 1 - ball(u) * certified.mills(ball(u)))


def _hockey_stick(epsilon: Fraction, mu: Fraction) -> arb:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) at the working precision."""
    return upper_tail(epsilon / mu - mu / 2) - ball(epsilon).exp() * upper_tail(epsilon / mu + mu / 2)


def delta(epsilon: Fraction, mu: Fraction) -> arb:
    """delta of mu-GDP at epsilon (any real)."""
    return adaptive(lambda: _hockey_stick(epsilon, mu))


def log_delta(epsilon: Fraction, mu: Fraction) -> arb:
    """ln delta of mu-GDP at epsilon (any real), to full relative precision of the logarithm."""
    x = epsilon / mu - mu / 2
    if x < -200 and epsilon >= 0:
        return arb(0).union(-(arb(-10000).exp()))  # 1 - delta < e^-10000

    def value() -> arb:
        if epsilon < 0:
            return (-(upper_tail(-x) + ball(epsilon).exp() * upper_tail(x + mu))).log1p()
        return certified.log_delta(ball(epsilon), ball(mu))

    return adaptive(value)


def epsilon(mu: Fraction, log_delta_target: Fraction) -> tuple[Fraction, Fraction]:
    """A bracket of the least epsilon >= 0 of mu-GDP at ln delta."""
    zero = Fraction(0)
    if log_delta(zero, mu) <= ball(log_delta_target):
        return zero, zero
    high = Fraction(1)
    while log_delta(high, mu) > ball(log_delta_target):
        high *= 2
    return root(lambda e: ball(log_delta_target) - log_delta(e, mu), zero, high)


def largest_mu(epsilon_: Fraction, log_delta_target: Fraction) -> tuple[Fraction, Fraction]:
    """A bracket of the greatest mu that implies (epsilon, delta)."""
    low, high = Fraction(1), Fraction(1)
    while log_delta(epsilon_, low) > ball(log_delta_target):
        low /= 16
    while log_delta(epsilon_, high) <= ball(log_delta_target):
        high *= 2
    return root(lambda m: log_delta(epsilon_, m) - ball(log_delta_target), low, high)


def renyi_gaussian(order: Fraction, shift: Fraction, scale: Fraction) -> arb:
    """order shift^2/(2 scale^2)."""
    return adaptive(lambda: ball(order * shift * shift / (2 * scale * scale)))


def renyi_laplace(order: Fraction, shift: Fraction, scale: Fraction) -> arb:
    """The closed form, at a precision that makes its cancellations harmless."""
    u = shift / scale

    def value() -> arb:
        if order == 1:
            return ball(u) + (-ball(u)).exp() - 1
        w = 2 * order - 1
        return (
            ball(order / w) * ball((order - 1) * u).exp() + ball((order - 1) / w) * ball(-order * u).exp()
        ).log() / ball(order - 1)

    return adaptive(value)


def renyi_laplace_by_quadrature(order: Any, shift: Any, scale: Any, digits: int = 40) -> Any:
    """ln int p^a q^(1-a) / (a-1) for p, q Laplace, straight from the definition (KL at order 1)."""
    with mpmath.workdps(digits):
        a, s, b = mpmath.mpf(order), mpmath.mpf(shift), mpmath.mpf(scale)

        def log_p(x: Any) -> Any:
            return -abs(x - s) / b - mpmath.log(2 * b)

        def log_q(x: Any) -> Any:
            return -abs(x) / b - mpmath.log(2 * b)

        points = [-mpmath.inf, -10 * b, 0, s / 2, s, s + 10 * b, mpmath.inf]
        if a == 1:
            return mpmath.quad(lambda x: mpmath.exp(log_p(x)) * (log_p(x) - log_q(x)), points)
        return mpmath.log(mpmath.quad(lambda x: mpmath.exp(a * log_p(x) + (1 - a) * log_q(x)), points)) / (a - 1)


def mironov(order: Fraction, rdp: Fraction, log_delta: Fraction) -> arb:
    """rdp + ln(1/delta)/(order - 1)."""
    return adaptive(lambda: certified.mironov(ball(order), ball(rdp), ball(log_delta)))


def canonne(order: Fraction, rdp: Fraction, log_delta: Fraction) -> arb:
    """rdp + ln((a-1)/a) - (ln delta + ln a)/(a-1)."""
    return adaptive(lambda: certified.canonne(ball(order), ball(rdp), ball(log_delta)))


def canonne_log_delta(order: Fraction, rdp: Fraction, epsilon_: Fraction) -> arb:
    """ln of e^((a-1)(rdp-eps))/(a-1) (1-1/a)^a."""
    return adaptive(lambda: certified.canonne_log_delta(ball(order), ball(rdp), ball(epsilon_)))


def asoodeh(order: Fraction, rdp: Fraction, log_delta: Fraction) -> arb:
    """ln(1 + (e^((a-1) rdp) - 1)/(a delta))/(a-1)."""
    return adaptive(lambda: certified.asoodeh(ball(order), ball(rdp), ball(log_delta)))


def exact_one_order(order: Any, rdp: Any, log_delta: Any, digits: int = 50) -> Any:
    """The least epsilon with min_q p^a q^(1-a) + (1-p)^a (1-q)^(1-a) >= e^((a-1) rdp), p = delta + e^eps q.

    Minimised over q by golden section in ln q (the function is convex in q), then bisected in epsilon.
    """
    with mpmath.workdps(digits):
        a, r, d = mpmath.mpf(order), mpmath.mpf(rdp), mpmath.exp(mpmath.mpf(log_delta))
        wanted = (a - 1) * r

        def log_power(e: Any, s: Any) -> Any:
            q = (1 - d) * mpmath.exp(-e) * s
            p = d + mpmath.exp(e) * q
            first = a * mpmath.log(p) + (1 - a) * mpmath.log(q)
            second = a * mpmath.log(1 - p) + (1 - a) * mpmath.log(1 - q)
            peak = max(first, second)
            return peak + mpmath.log(mpmath.exp(first - peak) + mpmath.exp(second - peak))

        def least(e: Any) -> Any:
            # s = 1/(1 + exp(-y)) runs over (0, 1); unimodal in y because convex in q.
            low, high = mpmath.mpf(-2000), mpmath.mpf(60)
            ratio = (mpmath.sqrt(5) - 1) / 2
            c, f = high - ratio * (high - low), low + ratio * (high - low)
            at = [log_power(e, 1 / (1 + mpmath.exp(-y))) for y in (c, f)]
            for _ in range(110):
                if at[0] <= at[1]:
                    high, f, at[1] = f, c, at[0]
                    c = high - ratio * (high - low)
                    at[0] = log_power(e, 1 / (1 + mpmath.exp(-c)))
                else:
                    low, c, at[0] = c, f, at[1]
                    f = low + ratio * (high - low)
                    at[1] = log_power(e, 1 / (1 + mpmath.exp(-f)))
            return min(at)

        if least(mpmath.mpf(0)) >= wanted:
            return mpmath.mpf(0)
        low, high = mpmath.mpf(0), r - mpmath.log(d) / (a - 1)
        for _ in range(60):
            middle = (low + high) / 2
            if least(middle) >= wanted:
                high = middle
            else:
                low = middle
        return high
