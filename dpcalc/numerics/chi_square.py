"""Upper tails and quantiles of chi-square and normal variables, rounded up."""

from __future__ import annotations

import math

from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.normal import log_ndtr
from dpcalc.numerics.roots import least

EXACT_UP_TO = 5000
"""Up to so many degrees of freedom the quantile is exact; beyond, it is Laurent and Massart's bound."""

_LN2 = 0.6931471805599453


def log_tail_up(x: float, *, freedom: int) -> float:
    """Return an upper bound on ln P(chi^2 >= x), x above the mean; good to 1e-10 of the probability.

    Q(a + 1, y) = Q(a, y) + y^a e^-y/Gamma(a + 1) from a = 1 or 1/2 up to freedom/2, y = x/2: all terms are positive.

    Args:
        x: >= freedom.
        freedom: 1 to 5000.
    """
    y, half = 0.5 * x, 0.5 * freedom
    # The terms from the last, y^(a-1) e^-y/Gamma(a), down: each is (a - 1)/y of the one before it.
    a, total, term = half, 0.0, 1.0
    while a > 1.0:
        total += term
        term *= (a - 1.0) / y
        a -= 1.0
    lead = (half - 1.0) * math.log(y) - y - math.lgamma(half)
    # The first term is Q(1, y) = e^-y, or Q(1/2, y) = 2 Phi(-sqrt(x)).
    base = -y if a == 1.0 else _LN2 + log_ndtr(-math.sqrt(x))
    terms = [base] if total == 0.0 else [base, lead + math.log(total)]
    peak = max(terms)
    value = peak + math.log(math.fsum(math.exp(t - peak) for t in terms))
    size = half * (abs(math.log(y)) + 2.0) + y + abs(math.lgamma(half))
    return value + UNIT * (32.0 + 4.0 * size + 4.0 * half)


def quantile_up(log_chance: float, *, freedom: int) -> float:
    """Return an x with P(chi^2 > x) <= chance, rounded up: the least up to 5000 degrees of freedom.

    Beyond, nu + 2 sqrt(nu t) + 2 t, t = ln(1/chance) (Laurent and Massart 2000), which holds for every nu.

    Args:
        log_chance: ln of the chance, < 0.
        freedom: nu >= 1.

    >>> round(quantile_up(math.log(0.001), freedom=2000), 8)
    2201.15619659
    """
    ceiling = laurent_massart_quantile_up(log_chance, freedom=freedom)
    if freedom > EXACT_UP_TO or log_tail_up(float(freedom), freedom=freedom) <= log_chance:
        return ceiling
    return up(min(ceiling, least(lambda x: log_tail_up(x, freedom=freedom) - log_chance, float(freedom), ceiling)), 2.0)


def laurent_massart_quantile_up(log_chance: float, *, freedom: int) -> float:
    """Return nu + 2 sqrt(nu t) + 2 t, t = ln(1/chance), rounded up.

    >>> round(laurent_massart_quantile_up(math.log(0.001), freedom=2000), 10)
    2248.8943106056
    """
    t = -log_chance
    return up(freedom + 2.0 * math.sqrt(freedom * t) + 2.0 * t, 8.0)


def published(log_chance: float, *, freedom: int) -> float:
    """Return nu (1 + sqrt(8 t/nu)), t = ln(1/chance), rounded up: a bound for chance > e^(-nu/8).

    >>> round(published(math.log(0.001), freedom=2000), 10)
    2332.4516272538
    """
    return up(freedom * (1.0 + math.sqrt(8.0 * -log_chance / freedom)), 8.0)


def normal_quantile_up(log_chance: float) -> float:
    """Return the least z >= 0 with P(N(0, 1) > z) <= chance, rounded up.

    >>> round(normal_quantile_up(math.log(0.025)), 12)
    1.95996398454
    """

    def excess(z: float) -> float:
        value = log_ndtr(-z)
        return value + 8.0 * UNIT * (1.0 - value) - log_chance

    return least(excess, 0.0, up(math.sqrt(-2.0 * log_chance) + 1.0, 4.0)) if log_chance < -_LN2 else 0.0
