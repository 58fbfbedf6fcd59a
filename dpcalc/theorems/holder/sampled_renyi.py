"""Renyi divergence of a Gaussian on a uniform sample without replacement.

A step uses m of n records; one record is replaced. With s = sigma m/(2 G), the noise in units of the most that a
replacement can move the mean gradient, and p = m/n:

* `renyi`: Theorem 9 of Wang, Balle and Kasiviswanathan (2019), for whole orders from 2 on;
* `lemma_renyi`: 3.5 p^2 lambda/s^2, simpler and larger, where two conditions hold (Lemma 3 of Wang, Lei, Ying and
  Zhang 2022); its proof goes through the first, so that it is for whole orders, too.
"""

from __future__ import annotations

import functools
import math

from dpcalc.numerics.floats import MAX, UNIT, up
from dpcalc.numerics.logspace import log_exp1p, log_expm1, log_sum_exp
from dpcalc.numerics.roots import greatest

LEAST_SQUARE = 0.67
"""Condition (32): s^2 >= 0.67. What the proof needs is 0.66131681."""

_MOST_ORDER = 1024
_LN2 = 0.6931471805599453


@functools.lru_cache(maxsize=1 << 14)
def renyi(*, order: int, rate: float, inverse_square: float) -> float:
    """Return the Renyi divergence of one step at a whole order, rounded up; inf above order 1024.

    ln(1 + p^2 C(a, 2) min(4 (e^y - 1), 2 e^y) + 2 sum_{j=3..a} p^j C(a, j) e^(j (j-1) y/2))/(a - 1), y = 1/s^2.

    Args:
        order: a >= 2.
        rate: p = m/n, 0 < p <= 1.
        inverse_square: 1/s^2 > 0.

    >>> round(renyi(order=3, rate=1e-4, inverse_square=1.0 / 0.67) * 1e7, 12)
    1.33539049864
    """
    if order > _MOST_ORDER:
        return math.inf
    y, log_p = inverse_square, math.log(rate)
    if not y * order * order < MAX:
        return math.inf
    log_choose, logs, reach = 0.0, [], 0.0
    for j in range(1, order + 1):
        log_choose += math.log((order - j + 1) / j)
        if j == 2:
            logs.append(log_choose + 2.0 * log_p + min(2.0 * _LN2 + log_expm1(y), _LN2 + y))
        elif j > 2:
            logs.append(log_choose + j * log_p + _LN2 + 0.5 * j * (j - 1) * y)
        reach = max(reach, abs(log_choose), abs(j * log_p), j * j * y)
    total = log_sum_exp(logs)
    total += UNIT * (16.0 + 4.0 * order + 8.0 * reach)
    return up(log_exp1p(total) / (order - 1), 8.0)


def lemma_renyi(*, order: float, rate: float, square: float) -> float:
    """Return 3.5 p^2 lambda/s^2, rounded up: true at whole orders >= 2 where `lemma_holds`.

    >>> round(lemma_renyi(order=6, rate=0.01, square=4.0), 15)
    0.000525
    """
    return up(3.5 * rate * rate * order / square, 6.0)


def slack(*, order: float, rate: float, square: float) -> float:
    """Return (2/3) s^2 ln(1/(lambda p (1 + s^2))) - (lambda - 1), which condition (33) wants to be >= 0; to nearest."""
    return 2.0 / 3.0 * square * -math.log(order * rate * (1.0 + square)) - (order - 1.0)


def lemma_holds(*, order: float, rate: float, square: float) -> bool:
    """Return whether s^2 >= 0.67 and condition (33) hold, by more than rounding."""
    if not 0.0 < square < MAX or square < LEAST_SQUARE or order * rate * (1.0 + square) >= 1.0:
        return False
    return slack(order=order, rate=rate, square=square) >= 1e-13 * (order + square * 64.0)


def lemma_step(*, order: int, rate: float, square: float) -> float:
    """Return the lemma's divergence at a whole order for s^2 or any less noise, rounded up; inf where it fails.

    Condition (33) fails for much noise, too, and privacy does not: less noise at which it holds will do.
    """
    if lemma_holds(order=order, rate=rate, square=square):
        return lemma_renyi(order=order, rate=rate, square=square)
    if not square > LEAST_SQUARE or order * rate * (1.0 + LEAST_SQUARE) >= 1.0:
        return math.inf

    def rises(x: float) -> float:
        return x / (1.0 + x) + math.log(order * rate * (1.0 + x))  # < 0 where the slack grows with x

    top = 1.0 / (order * rate)
    peak = LEAST_SQUARE if rises(LEAST_SQUARE) >= 0.0 else greatest(rises, LEAST_SQUARE, max(top, 1.0), ulps=1 << 20)
    if peak >= square or not lemma_holds(order=order, rate=rate, square=peak):
        return math.inf
    fits = greatest(
        lambda x: -1.0 if lemma_holds(order=order, rate=rate, square=x) else 1.0, peak, min(square, top), ulps=1 << 12
    )
    return lemma_renyi(order=order, rate=rate, square=fits)
