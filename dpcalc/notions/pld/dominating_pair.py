"""Dominating pairs: pairs of laws (P, Q), each described by upper bounds on its two privacy profiles.

With H(g) = sup_S P(S) - g Q(S), the forward profile is delta(e) = H(e^e) for e >= 0 and the backward profile the same
for (Q, P). Together they determine the law of the privacy loss, since H(g) = 1 - g + g H_backward(1/g) for g < 1. A
pair whose profiles are above another's dominates it in every composition (Zhu, Dong and Wang 2022, Theorem 10).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.notions.gaussian import together
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import UNIT
from dpcalc.numerics.logspace_arrays import log_one_minus_exp
from dpcalc.numerics.normal_arrays import log_hockey_stick_up

LogProfile = Callable[["Array"], "Array"]


class Pair(NamedTuple):
    """Upper bounds on ln delta in either order, as functions of an array of epsilons in [0, 2^60]."""

    forward: LogProfile
    backward: LogProfile
    atom: float | None = None
    """The largest finite loss, if it and its negative have mass: the lattice then contains both."""
    discrete: bool = False
    """Whether -atom, 0 and atom are the only finite losses."""
    mu: float | None = None
    """The parameter of a Gaussian pair, which composes in closed form."""
    whole_mu: float = math.inf
    """A mu with which a Gaussian pair dominates this one, where that is known: of a mixture, that of its farthest laws.
    """
    largest_mu: float = math.inf
    """The same for groups of any size, where a step uses so many records at most and those may all be of the group."""


def from_curve(log_delta: LogProfile, backward: LogProfile | None = None) -> Pair:
    """Return the pair of laws that a privacy profile describes.

    Args:
        log_delta: array of epsilons in [0, 2^60] -> array of upper bounds on ln delta, in [-inf, 0]. They must bound a
            profile of (P, Q) that is non-increasing and convex in e^epsilon; the values themselves need be neither. The
            minimum of several valid curves is valid.
        backward: the same for (Q, P). Without it ``log_delta`` must hold for both orders. With it a composition is
            bounded in the order (P, Q) alone: swap the two for the other order.

    Raises:
        SpecError: a curve that is above 1, nan, or not an array of the shape it is given.
    """
    for curve in (log_delta, backward or log_delta):
        probe = np.array([0.0, 0.5, 1.0, 2.0**60])
        with np.errstate(all="ignore"):
            values = curve(probe)
        if np.shape(values) != probe.shape or not np.all(np.asarray(values) <= 0.0):
            raise SpecError(
                "a privacy profile must map epsilons to values of ln delta, none above 0",
                "return an array of the shape given, -inf where delta is 0",
            )
    return Pair(log_delta, backward or log_delta)


def gaussian(*, mu: float) -> Pair:
    """Return the pair N(mu, 1), N(0, 1) of mu-GDP: sensitivity over standard deviation (Dong, Roth and Su 2022).

    Args:
        mu: from 1e-30 to 1e8.

    Raises:
        SpecError: mu out of range.
    """
    _check("mu", mu, 1e-30, 1e8)
    return gaussian_sum([(mu, 1)])


def gaussian_sum(parts: Sequence[tuple[float, int]]) -> Pair:
    """Return the composition of Gaussian pairs, [(mu, count), ...]: their mu^2 add up. No range is checked."""
    total = together(parts)

    def curve(e: Array) -> Array:
        return log_hockey_stick_up(e, total)

    return Pair(curve, curve, mu=total, whole_mu=total)


def laplace(*, ratio: float) -> Pair:
    """Return the pair of Laplace laws at distance ratio = sensitivity/scale: delta(e) = 1 - exp((e - ratio)/2).

    Args:
        ratio: from 1e-30 to 1e15.

    Raises:
        SpecError: ratio out of range.
    """
    _check("ratio", ratio, 1e-30, 1e15)

    def curve(e: Array) -> Array:
        return _padded(log_one_minus_exp(0.5 * np.minimum(e - ratio, 0.0)))

    return Pair(curve, curve, atom=ratio)


def randomised_response(*, epsilon: float, log_delta: float = -math.inf) -> Pair:
    """Return the worst pair of any (epsilon, delta)-DP mechanism (Kairouz, Oh and Viswanath 2015).

    Its trade-off function has the four segments max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)).

    Args:
        epsilon: from 1e-30 to 1e15.
        log_delta: ln delta < 0; -inf for pure DP.

    Raises:
        SpecError: epsilon or log_delta out of range.
    """
    _check("epsilon", epsilon, 1e-30, 1e15)
    if not log_delta < 0.0:
        raise SpecError(f"ln delta must be below 0, got {log_delta!r}", "give ln delta = -inf for pure DP")
    log_rest = float(log_one_minus_exp(np.array([log_delta]))[0]) - math.log1p(math.exp(-epsilon))

    def curve(e: Array) -> Array:
        log_pure = log_one_minus_exp(np.minimum(e - epsilon, 0.0))
        return _padded(np.logaddexp(log_delta, log_rest + log_pure))

    return Pair(curve, curve, atom=epsilon, discrete=True)


def subsampled_gaussian(*, mu: float, rate: float) -> Pair:
    """Return C_p(G_mu): the Gaussian on a uniform sample without replacement, one record replaced.

    delta(e) = p delta_mu(ln(1 + (e^e - 1)/p)) for p = rate and either order: the trade-off function is
    min(f, f^-1)** with f = p G_mu + (1 - p) Id (Dong, Roth and Su 2022, Theorem 9).

    Args:
        mu: sensitivity to replacement over standard deviation, from 1e-30 to 1e8.
        rate: sample size over number of records, from 1e-15 to 1.

    Raises:
        SpecError: mu or rate out of range.
    """
    _check("mu", mu, 1e-30, 1e8)
    _check("rate", rate, 1e-15, 1.0)
    if rate == 1.0:
        return gaussian(mu=mu)

    def curve(e: Array) -> Array:
        # A smaller threshold gives a larger delta: it is rounded down.
        threshold = _log_threshold(e, rate) * (1.0 - 16.0 * UNIT)
        return _padded(math.log(rate) + log_hockey_stick_up(threshold, mu))

    return Pair(curve, curve, whole_mu=mu)


def _log_threshold(e: Array, rate: float) -> Array:
    """Return ln(1 + (e^e - 1)/rate), good to some units of roundoff."""
    near = np.log1p(np.expm1(np.minimum(e, 1.0)) / rate)
    far = e - math.log(rate) + np.log1p((rate - 1.0) * np.exp(-np.maximum(e, 1.0)))
    return np.where(e <= 1.0, near, far)


def _padded(value: Array) -> Array:
    """Return an upper bound for a logarithm that is good to some units of roundoff of 1 + |value|."""
    finite = np.where(np.isfinite(value), value, 0.0)
    return np.minimum(value + 32.0 * UNIT * (1.0 + np.abs(finite)), 0.0)


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SpecError(f"{name} must be between {low:g} and {high:g}, got {value!r}", f"give a positive {name}")
