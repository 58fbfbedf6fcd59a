"""The best of a random number of runs: the privacy cost of choosing hyper-parameters on private data.

K is drawn independently of the data and stays secret; every run draws a new candidate, with replacement, and the base
guarantee covers its score; only the best outcome is released. With F(y) = P(outcome <= y) and phi(w) = E w^K the
density of the release is phi'(F) times that of one run. The bounds are in docs/ledger.md: a profile from R = sup over u
of (g + (1 - g) t(u))/(g + (1 - g) u), t the trade-off of one run, and Renyi curves from R and from the convexity of ln
phi'.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.notions.conversions import compose_all
from dpcalc.notions.curves import Curve
from dpcalc.notions.guarantee import Box, Guarantee, Profile, Rdp
from dpcalc.numerics.floats import UNIT, down, log_add_exp, log_exp1p, log_expm1, up
from dpcalc.numerics.roots import least
from dpcalc.plain_enum import PlainEnum


class Law(PlainEnum):
    """How the number of runs is drawn."""

    POISSON = "poisson"
    GEOMETRIC = "geometric"
    LOGARITHMIC = "logarithmic"
    NEGATIVE_BINOMIAL = "negative-binomial"  # truncated at 1, with shape eta
    THRESHOLD = "threshold"  # until a score reaches a public threshold, or with probability gamma after each failure


_LEAST_STOP = 1e-250  # of gamma: 1/gamma times a mean of 1e9 is still a double


class Tuning(NamedTuple):
    """The law of the number of runs.

    Attributes:
        law: its kind.
        mean: E K, rounded up; for a threshold 1/gamma, the mean without any success.
        stop: gamma of all laws but the Poisson, rounded down.
        shape: eta > -1 of the negative binomial; 1 is the geometric, 0 the logarithmic law.
    """

    law: Law
    mean: float
    stop: float = 1.0
    shape: float = 1.0


def tuning_of(law: Law, mean: float, shape: float | None = None) -> Tuning:
    """Return the law of this kind with this mean.

    Raises:
        SpecError: the mean is below 1, or the shape is at most -1 or does not belong to the law.
    """
    if shape is not None and law is not Law.NEGATIVE_BINOMIAL:
        raise SpecError(f"shape is given, and the number of runs is {law}", "shape is of negative-binomial alone")
    if law is Law.POISSON:
        if not 0.0 < mean <= 1e9:
            raise SpecError(f"mean is {mean!r}; it must be > 0 and <= 1e9")
        return Tuning(law, up(mean))
    if not 1.0 <= mean <= 1e9:
        raise SpecError(f"mean is {mean!r}; it must be from 1 to 1e9", "at least one run is made")
    if law in (Law.GEOMETRIC, Law.THRESHOLD):
        return Tuning(law, up(mean), down(1.0 / mean, 2.0))
    eta = 0.0 if law is Law.LOGARITHMIC else shape
    if eta is None or not -1.0 < eta <= 1000.0:
        raise SpecError(f"shape is {shape!r}; it must be > -1 and <= 1000", "0 is logarithmic, 1 geometric")
    stop = _stop_of(mean, eta)
    return Tuning(law, up(max(mean, mean_of(stop, eta)), 64.0), stop, eta)


def mean_of(stop: float, shape: float) -> float:
    """Return E K of the truncated negative binomial: eta (1-g)/(g (1 - g^eta))."""
    if stop >= 1.0:
        return 1.0
    log_stop = math.log(stop)
    ratio = shape / -math.expm1(shape * log_stop) if shape != 0.0 else -1.0 / log_stop
    return (1.0 - stop) / stop * ratio


def _stop_of(mean: float, shape: float) -> float:
    """Return gamma with this mean, rounded down: a smaller gamma has a larger mean and larger bounds.

    Raises:
        SpecError: gamma would be too small.
    """
    low, high = _LEAST_STOP, 1.0
    if mean_of(low, shape) < mean:
        raise SpecError(f"shape {shape!r} has no law of mean {mean!r} here", "use a larger shape, such as 0 or 1")
    while high > low * (1.0 + 1e-14):
        middle = math.sqrt(low) * math.sqrt(high)
        if middle in (low, high):
            break
        low, high = (low, middle) if mean_of(middle, shape) < mean else (middle, high)
    return low * (1.0 - 1e-12)


def tuned(part: Guarantee, tuning: Tuning) -> list[Guarantee]:
    """Return the guarantees of the best of K runs, in every known form.

    Args:
        part: the guarantee of one run with its score, in both orders of the two data sets.
        tuning: the law of K.

    Raises:
        NotApplicable: only a rule for epsilon is known for the run.
    """
    curve = part.privacy_profile()
    forms: list[Guarantee] = []
    if isinstance(part, Box) and part.has_renyi:
        forms.append(Box(_pure(part.epsilon0, tuning)))
    profile = functools.cache(functools.partial(tuned_log_delta, curve, tuning, growth(curve, tuning)))
    forms.append(Profile(profile, ulps=1 << 16))
    if tuning.law is not Law.THRESHOLD and part.has_renyi:
        forms.append(Rdp(functools.cache(lambda order: tuned_renyi(part, curve, tuning, order))))
    return forms


def least_epsilon(forms: Sequence[Guarantee], log_delta: float) -> float:
    """Return the least epsilon at a delta over several guarantees of one release."""
    totals = [total for form in forms for total in compose_all([(form, 1)])]
    return min(total.guarantee.epsilon(log_delta).value for total in totals)


def tuned_epsilon(part: Guarantee, tuning: Tuning, log_delta: float) -> float:
    """Return the least epsilon of the best of K runs at a delta.

    >>> from dpcalc.notions.guarantee import Gdp
    >>> round(tuned_epsilon(Gdp(0.1), tuning_of(Law.GEOMETRIC, 10.0), math.log(1e-6)), 6)
    0.627296
    """
    return least_epsilon(tuned(part, tuning), log_delta)


def _pure(epsilon: float, tuning: Tuning) -> float:
    """Return the epsilon of the best of K runs that are epsilon-DP.

    eps + (1 + eta) ln((g + e^eps)/(1 + g e^eps)), and eps + m (e^eps - 1)/(e^eps + 1) for the Poisson law.
    """
    if tuning.law is Law.POISSON:
        return up(epsilon + tuning.mean * math.tanh(0.5 * epsilon), 16.0)
    # At least 0. The two logarithms may cancel: each error is bounded by its size.
    log_stop = math.log(tuning.stop)
    ratio = log_add_exp(log_stop, epsilon) - log_exp1p(log_stop + epsilon)
    ratio = max(0.0, ratio) + UNIT * (16.0 * (abs(log_stop) + epsilon) + 32.0)
    return up(epsilon + _power(tuning) * min(ratio, epsilon), 16.0)


def _power(tuning: Tuning) -> float:
    return 1.0 if tuning.law is Law.THRESHOLD else 1.0 + tuning.shape


def growth(curve: Curve, tuning: Tuning) -> float:
    """Return the increase of epsilon, rounded up: (1 + eta) ln R, or m delta(0) for the Poisson law.

    ln R is the root e of (1 - g) delta(e) = g (e^e - 1), and every e with <= is at least as large.
    """
    if tuning.law is Law.POISSON:
        return up(tuning.mean * math.exp(min(0.0, curve(0.0))), 8.0)
    return up(_power(tuning) * log_ratio(curve, tuning.stop), 4.0)


@functools.lru_cache(maxsize=64)
def log_ratio(curve: Curve, stop: float) -> float:
    """Return ln R for a profile and gamma, rounded up."""
    if stop >= 1.0:
        return 0.0
    log_stop, log_rest = math.log(stop), math.log1p(-stop)

    def excess(e: float) -> float:
        if e <= 0.0:
            return 1e300
        left, right = log_rest + curve(e), log_stop + log_expm1(e)
        if left == -math.inf:
            return -1.0
        return left - right + UNIT * 32.0 * (2.0 + abs(left) + abs(log_stop) + abs(right))

    ceiling = -log_stop + 1e-9  # R <= 1/gamma
    return least(excess, 0.0, ceiling, ulps=1 << 16) if excess(ceiling) <= 0.0 else ceiling


def tuned_log_delta(curve: Curve, tuning: Tuning, grown: float, epsilon: float) -> float:
    """Return ln delta of the best of K runs at ``epsilon`` >= 0: ln(E K delta(epsilon - growth)), rounded up.

    Below the growth c it is at most E K delta(0) + e^c - e^epsilon, since delta falls by at most as much as e^epsilon
    grows.
    """
    value = curve(max(0.0, down(epsilon - grown, 2.0))) + math.log(tuning.mean)
    if epsilon < grown:
        if grown > 1.0:
            return 0.0
        value = log_add_exp(value, epsilon + log_expm1(up(grown - epsilon, 4.0)))
    return min(0.0, value + UNIT * (8.0 * abs(value) + 64.0)) if value > -math.inf else value


def tuned_renyi(part: Guarantee, curve: Curve, tuning: Tuning, order: float) -> float:
    """Return the Renyi divergence of the best of K runs at ``order`` >= 1, rounded up; the least of two bounds.

    (i) r + (1 + eta) ln R + ln(E K)/(a - 1), for the Poisson law with m >= 1 r + m delta(e) + ln(m)/(a - 1);
    (ii) ln(1 + phi'(w) (e^((a-1) r) - 1))/(a - 1), w = 1 + (a - 1) delta(e), where phi' is finite there;
    e = ln(a/(a - 1)).

    >>> from dpcalc.notions.guarantee import Gdp
    >>> law = tuning_of(Law.GEOMETRIC, 10.0)
    >>> round(tuned_renyi(Gdp(0.1), Gdp(0.1).privacy_profile(), law, 2.0), 7)
    0.0957661
    """
    a = max(order, 1.0 + 1e-6)  # the divergence grows with the order, and at 1 the bounds say nothing
    if math.isinf(a):
        return math.inf
    r = part.rdp(a)
    if not math.isfinite(r):
        return math.inf
    threshold = max(0.0, down(math.log1p(1.0 / (a - 1.0)), 4.0))
    shared = up((a - 1.0) * math.exp(min(0.0, curve(threshold))), 8.0)  # (a - 1) delta(ln(a/(a - 1)))
    log_mean = math.log(tuning.mean)
    if tuning.law is Law.POISSON:
        first = r + shared / (a - 1.0) * tuning.mean + log_mean / (a - 1.0) if tuning.mean >= 1.0 else math.inf
        log_slope = log_mean + tuning.mean * shared
    else:
        ratio = min(log_ratio(curve, tuning.stop), (1.0 - 1.0 / a) * r + math.log(1.0 / tuning.stop) / a)
        first = r + _power(tuning) * ratio + log_mean / (a - 1.0)
        inside = up((1.0 - tuning.stop) * shared / tuning.stop, 4.0)
        log_slope = log_mean - _power(tuning) * math.log1p(-inside) if inside < 1.0 else math.inf
    second = _convex(log_slope, a, r) if log_slope < 1e300 else math.inf
    return up(max(0.0, min(first, second)), 64.0)


def _convex(log_slope: float, order: float, r: float) -> float:
    """Return ln(1 + e^log_slope (e^((a-1) r) - 1))/(a - 1), rounded up."""
    log_gain = log_slope + log_expm1((order - 1.0) * r)
    if log_gain == -math.inf:
        return 0.0
    log_gain += UNIT * (64.0 + 16.0 * abs(log_slope) + 16.0 * abs(log_gain))
    return log_exp1p(log_gain) / (order - 1.0)
