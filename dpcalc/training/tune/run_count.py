"""The number of runs of a tuned run, drawn exactly from the laws of `dpcalc.notions.tuning` in rational arithmetic.

It must be independent of the data and stay secret. Nothing caps it: a cap would cost privacy.
"""

from __future__ import annotations

import math
import secrets
from fractions import Fraction

from dpcalc.notions.tuning import Law, Tuning
from dpcalc.training.release.discrete_laplace import Below


def draw(tuning: Tuning, mean: float, below: Below = secrets.randbelow) -> int:
    """Return K.

    Args:
        tuning: the accounted law, whose mean is this one or slightly more.
        mean: as requested.
        below: the source of randomness; by default that of the operating system.

    Raises:
        ValueError: the law is not supported here.
    """
    if tuning.law is Law.GEOMETRIC:
        return _geometric(1 / Fraction(mean), below)
    if tuning.law is Law.LOGARITHMIC:
        return _logarithmic(Fraction(tuning.stop), below)
    if tuning.law is Law.POISSON:
        return _poisson(Fraction(mean), below)
    raise ValueError(tuning.law)


def _happens(chance: Fraction, below: Below) -> bool:
    return below(chance.denominator) < chance.numerator


def _geometric(stop: Fraction, below: Below) -> int:
    """Return k >= 1 with P(k) = g (1-g)^(k-1)."""
    k = 1
    while not _happens(stop, below):
        k += 1
    return k


def _logarithmic(stop: Fraction, below: Below) -> int:
    """Return k >= 1 with P(k) proportional to (1-g)^k/k: a geometric number, kept with probability 1/k."""
    while True:
        k = _geometric(stop, below)
        if below(k) == 0:
            return k


def _poisson(mean: Fraction, below: Below) -> int:
    """Return a Poisson number, as a sum of Poisson numbers with means of at most 1."""
    whole = mean.numerator // mean.denominator
    parts = [Fraction(1)] * whole + ([mean - whole] if mean > whole else [])
    return sum(_small_poisson(part, below) for part in parts)


def _small_poisson(mean: Fraction, below: Below) -> int:
    """Return a Poisson number of mean at most 1: n is tails before heads, kept with probability (2 mean)^n/(2 n!)."""
    while True:
        n = 0
        while below(2):
            n += 1
        if _happens((2 * mean) ** n / (2 * math.factorial(n)), below):
            return n
