"""One step of DP-SGD on a Poisson sample where k records differ: the pairs that dominate it.

Each of the k records is in the batch independently with probability q. So j of them are in it with weight
w_j = C(k, j) q^j (1-q)^(k-j), and move the sum by at most j. In units of the noise, mu = 1/z, the pairs are

* removed (sum_j w_j N(j mu), N(0)), added the two exchanged;
* replaced (sum_j w_j N(j mu), sum_j w_j N(-j mu)).

Given the other records and which of the k are drawn, the two laws are normal; for a given N(0)(A), a half-line is worst
for all of them at once.

For mixtures P at places a_i >= 0 and Q at places b_m <= 0 the likelihood ratio increases, so E_g is P(x > c) - g Q(x >
c) for one c. The common part at 0 is removed first. Weights with sum_m alpha_im >= p_i and sum_i beta_im <= g q_m give

    E_g <= sum_im [alpha_im N(a_i) - beta_im N(b_m)]_+,

each term a Gaussian profile with its rounding bounded. With alpha_im/p_i the share of term m in the density of g Q at
c, and beta_im/(g q_m) that of term i in the density of P, every bracket changes its sign at c, and the sum is exact.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.notions.pld.discretisation import Pair, gaussian
from dpcalc.numerics.floats import UNIT, Array, np, up
from dpcalc.numerics.normal_arrays import log_hockey_stick_up

LARGEST = 32
"""The largest group."""

_BLOCK = 64  # thresholds at a time
_STEPS = 80  # of bisection: more than the bits of a double
_EQUAL = 1e-9  # densities count as equal if the logarithm of their ratio is below this share of the distance


def removed_group(*, mu: float, rate: float, size: int) -> Pair:
    """Return the pair of ``size`` records removed, each drawn independently.

    Args:
        mu: clipping norm over the standard deviation of the noise on the sum, from 1e-6 to 1e6.
        rate: q, from 1e-15 to 1.
        size: k, from 1 to 32.

    Raises:
        SpecError: one is out of range.
    """
    _check(mu, rate, size)
    if rate == 1.0:
        return gaussian(mu=size * mu)
    forward = functools.partial(in_blocks, functools.partial(_removed, mu, rate, size))
    backward = functools.partial(in_blocks, functools.partial(_added, mu, rate, size))
    return Pair(forward, backward, whole_mu=up(size * mu))


def replaced_group(*, mu: float, rate: float, size: int) -> Pair:
    """Return the pair of ``size`` records replaced by others; it is its own mirror image. As `removed_group`."""
    _check(mu, rate, size)
    if rate == 1.0:
        return gaussian(mu=2.0 * size * mu)
    curve = functools.partial(in_blocks, functools.partial(_replaced, mu, rate, size))
    return Pair(curve, curve, whole_mu=up(2.0 * size * mu))


def _check(mu: float, rate: float, size: int) -> None:
    if not (1e-6 <= mu <= 1e6 and 1e-15 <= rate <= 1.0 and 1 <= size <= LARGEST):
        raise SpecError(f"mu {mu!r}, rate {rate!r} or group size {size!r} is out of range", "use other noise")


class Mixture(NamedTuple):
    """Logs of weights, one row a threshold, and the distance of every place from 0."""

    log_weights: Array
    places: Array


def in_blocks(curve: Callable[[Array], Array], e: Array, block: int = _BLOCK) -> Array:
    """Return the values of a curve, evaluated ``block`` thresholds at a time."""
    flat = np.ravel(np.asarray(e, float))
    blocks = (flat[start : start + block] for start in range(0, len(flat), block))
    with np.errstate(all="ignore"):
        values = [curve(block) for block in blocks]
    return np.concatenate(values).reshape(np.shape(e)) if values else np.zeros(np.shape(e))


def _drawn(rate: float, size: int) -> Array:
    """Return ln w_j for j = 1, ..., k, to some units of relative roundoff."""
    log_in, log_out = math.log(rate), math.log1p(-rate)
    return np.array([math.log(math.comb(size, j)) + j * log_in + (size - j) * log_out for j in range(1, size + 1)])


def _removed(mu: float, rate: float, size: int, e: Array) -> Array:
    """Return ln delta of (sum_j w_j N(j), g N(0)) without the common part at 0: g - w_0 = e^eps - 1 + (1 - w_0)."""
    some = -math.expm1(size * math.log1p(-rate))
    rest = np.logaddexp(log_expm1(e), math.log(some))[:, None]
    return log_delta(_weighted(_drawn(rate, size), e, mu, up=True), Mixture(rounded_down(rest), np.zeros(1)))


def _added(mu: float, rate: float, size: int, e: Array) -> Array:
    """Return ln delta of (N(0), g sum_j w_j N(-j)) without the common part at 0: 1 - w_0 - w_0 (e^eps - 1)."""
    drawn = _weighted(_drawn(rate, size), e, mu, up=False)
    first = Mixture(log_left_at_zero(size * math.log1p(-rate), e)[:, None], np.zeros(1))
    return log_delta(first, drawn._replace(log_weights=rounded_down(drawn.log_weights + e[:, None])))


def log_left_at_zero(log_none: float, e: Array) -> Array:
    """Return ln of 1 - g w_0, rounded up, from ln w_0; -inf where 1 - g w_0 is not positive."""
    some, gone = -math.expm1(log_none), np.exp(np.minimum(log_expm1(e) + log_none, 700.0))
    left = some - gone + 16.0 * UNIT * (some + gone * (1.0 + e + abs(log_none)))
    return np.where(left > 0.0, np.log(np.maximum(left, 1e-300)), -np.inf)


def _replaced(mu: float, rate: float, size: int, e: Array) -> Array:
    """Return ln delta of (sum_j w_j N(j), g sum_j w_j N(-j)) without the common part at 0: (g - 1) w_0."""
    log_drawn = _drawn(rate, size)
    first, second = (_weighted(log_drawn, e, mu, up=up) for up in (True, False))
    at_zero = (log_expm1(e) + size * math.log1p(-rate))[:, None]
    logs = np.concatenate((at_zero, second.log_weights + e[:, None]), axis=1)
    return log_delta(first, Mixture(rounded_down(logs), np.concatenate(([0.0], second.places))))


def _weighted(log_drawn: Array, e: Array, mu: float, *, up: bool) -> Mixture:
    logs = np.broadcast_to(log_drawn, (len(e), len(log_drawn)))
    places = mu * np.arange(1.0, len(log_drawn) + 1.0)
    return Mixture(logs + _slack(logs) if up else logs - _slack(logs), places)


def log_delta(first: Mixture, second: Mixture) -> Array:
    """Return ln E_1 of two mixtures, rounded up. P is at its places, Q at minus its places."""
    c = _threshold(first, second)[:, None]
    log_p = first.log_weights + c * first.places - 0.5 * first.places**2
    log_q = second.log_weights - c * second.places - 0.5 * second.places**2
    share_p, share_q = _log_shares(log_p), _log_shares(log_q)
    log_a = first.log_weights[:, :, None] + share_q[:, None, :] + _slack(share_q)[:, None, :]
    log_b = second.log_weights[:, None, :] + share_p[:, :, None] - _slack(share_p)[:, :, None]
    ratio = log_b - log_a
    ratio = np.where(np.isfinite(ratio), ratio - 16.0 * UNIT * (1.0 + np.abs(log_a) + np.abs(log_b)), 0.0)
    apart = (first.places[:, None] + second.places[None, :]) * (1.0 + 4.0 * UNIT)
    term = log_a + log_hockey_stick_up(np.clip(ratio, -1e300, 1e300), apart[None])
    term = np.where(log_b > -np.inf, term, log_a)  # nothing is subtracted
    term = np.where(log_a > -np.inf, term, -np.inf)
    value = log_sum(term.reshape(len(c), -1))
    finite = np.where(np.isfinite(value), np.abs(value), 0.0)
    return np.minimum(value + 64.0 * UNIT * (1.0 + finite), 0.0)


def _threshold(first: Mixture, second: Mixture) -> Array:
    """Return approximately where the densities are equal, by Newton's steps in a bracket; the bound holds anywhere.

    An error of the point costs about the square of the logarithm of the ratio of the densities.
    """
    reach = 1e3 + 4.0 * float(first.places.max() + second.places.max())
    most = np.abs(np.where(np.isfinite(second.log_weights), second.log_weights, 0.0)).max(axis=1)
    most = most + np.abs(np.where(np.isfinite(first.log_weights), first.log_weights, 0.0)).max(axis=1)
    gap = max(float(first.places[-1]), float(second.places[-1]))
    high = reach + most / min(gap, 1.0)
    low = -high
    # Rows are short, so the arrays are stored by columns.
    of_p = np.asfortranarray(first.log_weights - 0.5 * first.places**2)
    of_q = np.asfortranarray(second.log_weights - 0.5 * second.places**2)
    c = np.clip(np.nan_to_num(_largest_equal(of_p, of_q, first.places, second.places)), low, high)
    for step in range(_STEPS):
        log_p, mean_p = _log_sum_and_mean(of_p + c[:, None] * first.places, first.places)
        log_q, mean_q = _log_sum_and_mean(of_q - c[:, None] * second.places, second.places)
        ratio = log_p - log_q
        apart = np.isfinite(ratio) & (np.abs(ratio) > _EQUAL * min(gap, 1.0))
        if not apart.any():
            break
        low, high = np.where(ratio > 0.0, low, c), np.where(ratio > 0.0, c, high)
        newton = c - ratio / (mean_p + mean_q)
        inside = (low < newton) & (newton < high) & (step % 16 < 15)
        c = np.where(apart, np.where(inside, newton, 0.5 * (low + high)), c)
    return c


def _largest_equal(of_p: Array, of_q: Array, places_p: Array, places_q: Array) -> Array:
    """Return where the largest terms of both densities are equal: each term of P is above all terms of Q from some
    point on; this is the least of these points."""
    beyond = [
        functools.reduce(np.maximum, [(of_q[:, m] - of_p[:, i]) / (a + b) for m, b in enumerate(places_q.tolist())])
        for i, a in enumerate(places_p.tolist())
    ]
    return functools.reduce(np.minimum, beyond)


def _log_sum_and_mean(logs: Array, places: Array) -> tuple[Array, Array]:
    """Return ln of the sum of each row, and the mean of the places by these weights; -inf for rows of -inf."""
    peak = logs.max(axis=1)
    weights = np.exp(logs - np.where(np.isfinite(peak), peak, 0.0)[:, None])
    total = weights.sum(axis=1)
    return peak + np.log(total), weights @ places / total


def _log_shares(logs: Array) -> Array:
    """Return ln of the share of every entry in the sum of its row, without overflow or loss of accuracy."""
    peak = logs.max(axis=1, keepdims=True)
    below = logs - np.where(np.isfinite(peak), peak, 0.0)
    return below - np.log(np.exp(below).sum(axis=1, keepdims=True))


def log_sum(logs: Array) -> Array:
    """Return ln of the sum of each row; -inf for rows of -inf."""
    peak = logs.max(axis=1)
    safe = np.where(np.isfinite(peak), peak, 0.0)
    total: Array = safe + np.log(np.exp(logs - safe[:, None]).sum(axis=1))
    return np.where(peak == -np.inf, -np.inf, total)


def log_expm1(e: Array) -> Array:
    """Return ln(e^eps - 1), -inf at 0."""
    return np.where(e < 1.0, np.log(np.expm1(np.minimum(e, 1.0))), e + np.log1p(-np.exp(-np.maximum(e, 1e-9))))


def rounded_down(logs: Array) -> Array:
    """Return a lower bound for logarithms with errors of some units of roundoff of 1 + |log|."""
    return logs - _slack(logs)


def _slack(logs: Array) -> Array:
    """Return a bound on the error of a logarithm accurate to some units of roundoff of 1 + |log|."""
    return 64.0 * UNIT * (1.0 + np.where(np.isfinite(logs), np.abs(logs), 0.0))
