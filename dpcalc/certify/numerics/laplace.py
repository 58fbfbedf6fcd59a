"""The shift bounds for Laplace noise: mixtures of Gaussians and compositions of messages of pure privacy."""

from __future__ import annotations

import math

from flint import arb, fmpz

from dpcalc.certify.numerics.balls import ZERO, OutOfReach, least


def mixture(ratio: arb, later: int, epsilon: arb) -> arb:
    """Return ln E delta_G(epsilon, ratio/sqrt(2 G)), G ~ Gamma(later + 1), by Bessel functions of half-integer order.

    By parts: -d delta_G/dg is an inverse Gaussian density, and P(G > g) a finite sum of g^j e^-g/j!.

    Raises:
        OutOfReach: more than 2000 steps.
    """
    if later > 2000:
        raise OutOfReach("a mixture over more than 2000 steps")
    z = (epsilon * epsilon + ratio * ratio).sqrt() / 2
    q = ratio * ratio / (8 * z)
    before, now = arb(1), arb(1)  # K_(j-1/2)(z)/K_(1/2)(z)
    factor_, total = arb(1), arb(1)
    for j in range(1, later + 1):
        factor_ *= q / j
        total += factor_ * now
        before, now = now, before + (2 * j - 1) / z * now
    return (-(epsilon / 2 - z).exp() * total).log1p()


def composed(ratio: arb, count: int, epsilon: arb) -> arb:
    """Return ln delta of ``count`` mechanisms of pure privacy ratio/count, by adding all outcomes."""
    share = ratio / count
    odds = (-share).exp()
    total, weight = arb(0), arb(1)
    for x in range(count, -1, -1):
        gap = (2 * x - count) * share - epsilon
        if gap <= 0:
            break
        # Where the ball holds 0 the term is next to nothing, and the following ones are none.
        total -= fmpz(math.comb(count, x)) * weight * (-gap.max(arb(0))).expm1()
        weight *= odds
    return ZERO if total.is_zero() else total.log() - count * odds.log1p()


def laplace_shift(ratio: arb, later: int, epsilon: arb) -> arb:
    """Return the least over compositions of 1..12, of all steps and of all but one: any number is valid.

    Raises:
        OutOfReach: more than 1500 steps.
    """
    if later >= 1500:
        raise OutOfReach("a composition over more than 1500 steps")
    counts = {*range(1, min(12, later + 1) + 1), later + 1, max(1, later)}
    return least(*(composed(ratio, m, epsilon) for m in sorted(counts)))
