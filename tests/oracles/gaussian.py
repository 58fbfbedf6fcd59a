"""The Gaussian trade-off: formulas of `dpcalc.certify`, and epsilon by bisection."""

from fractions import Fraction
from typing import Any

from flint import arb

from dpcalc.certify.numerics import balls as certified
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
