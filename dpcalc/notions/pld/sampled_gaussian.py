"""One step of DP-SGD on a random batch: the pairs that dominate it for every sampling and adjacency.

A step releases the sum of clipped gradients of a batch plus N(0, z^2 I), in units of the clipping norm. A record is in
the batch with probability q. Write N(m) for N(m, 1), mu = 1/z, M_a = (1 - q) N(0) + q N(a mu) and g = e^epsilon. For
every g >= 0 the step's E_g = sup_A P(A) - g Q(A) is at most that of

* Poisson sampling, the record removed: (M_1, N(0)); added: the two exchanged; replaced: (M_1, M_-1);
* batches of fixed size, drawn without replacement: another record takes the place of one that leaves, so two sums are
  at distance 2: removed (M_2, N(0)), added the two exchanged, replaced (M_2, N(0)) for g >= 1 in either order; replaced
  by a null record (M_2, M_1) for g >= 1, and (M_1, N(0)) in the other order.

The proofs are in docs/method.md, "Sampled steps". E_g of two mixtures is bounded by that of two normal laws each: for
weights with a + b >= 1,

    q N(1) - g q N(-1) - K N(0) <= [a q N(1) - g q N(-1)] + [b q N(1) - K N(0)],    K = (g - 1)(1 - q),

and the sum of the largest values of both brackets is exact if both are positive on the same half-line, which fixes a
and b. Each bracket is a Gaussian privacy profile with bounded rounding, and the bound holds for rounded a and b too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from dpcalc.errors import SpecError
from dpcalc.notions.pld.discretisation import LogProfile, Pair, gaussian, gaussian_sum, subsampled_gaussian
from dpcalc.numerics.binomial import upper_groups
from dpcalc.numerics.floats import UNIT, Array, np, up
from dpcalc.numerics.normal_arrays import log_hockey_stick_up

_BLOCK = 64  # thresholds at a time
_LEAST_RATE, _MOST_MU, _LEAST_MU = 1e-15, 1e8, 1e-30  # beyond these, squares and quotients over- or underflow


def removed(*, mu: float, rate: float) -> Pair:
    """Return the pair (M_1, N(0)) of a removed record; for fixed batches give twice the ``mu``.

    delta(eps) = q delta_G(ln(1 + (g - 1)/q)); exchanged: a delta_G(ln(g q/a)), a = 1 - g (1 - q), 0 for a <= 0.

    Args:
        mu: clipping norm over the standard deviation of the noise on the sum, from 1e-30 to 1e8.
        rate: q, from 1e-15 to 1.

    Raises:
        SpecError: mu or rate out of range.
    """
    _check(mu, rate)
    if rate == 1.0:
        return gaussian(mu=mu)
    forward = subsampled_gaussian(mu=mu, rate=rate).forward
    return Pair(forward, functools.partial(_log_added, mu=mu, rate=rate), whole_mu=mu)


def replaced_poisson(*, mu: float, rate: float) -> Pair:
    """Return the pair (M_1, M_-1) of a record replaced by another under Poisson sampling; it is its own mirror image.

    Args:
        mu: clipping norm over the standard deviation of the noise on the sum, from 1e-30 to 5e7.
        rate: q, from 1e-15 to 1.

    Raises:
        SpecError: mu or rate out of range.
    """
    _check(2.0 * mu, rate)
    if rate == 1.0:
        return gaussian(mu=2.0 * mu)
    curve = functools.partial(_log_replaced, mu=mu, rate=rate)
    return Pair(curve, curve, whole_mu=2.0 * mu)


def nulled_fixed(*, mu: float, rate: float) -> Pair:
    """Return the pair of a record that a null record replaces, for batches of fixed size.

    It is (M_2, M_1) at thresholds above 1 and (N(0), M_1) below. Each threshold is attained separately.

    Args:
        mu: clipping norm over the standard deviation of the noise on the sum, from 1e-30 to 5e7.
        rate: q, from 1e-15 to 1.

    Raises:
        SpecError: mu or rate out of range.
    """
    _check(2.0 * mu, rate)
    if rate == 1.0:
        return gaussian(mu=mu)
    backward = subsampled_gaussian(mu=mu, rate=rate).forward
    return Pair(functools.partial(_log_nulled, mu=mu, rate=rate), backward, whole_mu=mu)


def mixed(parts: Sequence[tuple[float, Pair]]) -> Pair:
    """Return a pair whose curves are the means of the curves of several pairs, with weights rounded up.

    It dominates a step that behaves as one of the pairs, chosen independently of the record.

    Args:
        parts: (weight, pair) each; the weights sum to at least 1. A pair with weight 0 is ignored.

    >>> pair = mixed([(0.5, gaussian(mu=1.0)), (0.5, gaussian(mu=2.0))])
    >>> round(float(np.exp(pair.forward(np.array([0.0])))[0]), 6)  # (delta_G(0; 1) + delta_G(0; 2))/2
    0.532807
    """

    parts = [(weight, pair) for weight, pair in parts if weight > 0.0]

    def mean(order: Callable[[Pair], LogProfile]) -> LogProfile:
        terms = [(math.log(weight), order(pair)) for weight, pair in parts]
        return lambda e: _up(functools.reduce(np.logaddexp, (log_weight + curve(e) for log_weight, curve in terms)))

    forward = mean(lambda pair: pair.forward)
    same = all(exchanged(pair) is pair for _, pair in parts)
    backward = forward if same else mean(lambda pair: pair.backward)
    return Pair(forward, backward, whole_mu=max(pair.whole_mu for _, pair in parts))


def larger(one: Pair, other: Pair) -> Pair:
    """Return a pair whose curves are the maxima of the curves of two pairs."""

    def most(first: LogProfile, second: LogProfile) -> LogProfile:
        return lambda e: np.maximum(first(e), second(e))

    forward = most(one.forward, other.forward)
    same = exchanged(one) is one and exchanged(other) is other
    backward = forward if same else most(one.backward, other.backward)
    return Pair(forward, backward, whole_mu=max(one.whole_mu, other.whole_mu))


def exchanged(pair: Pair) -> Pair:
    """Return the pair with P and Q exchanged."""
    return pair if pair.forward is pair.backward else pair._replace(forward=pair.backward, backward=pair.forward)


def known_uses(*, mu: float, rate: float, steps: int, at_once: int = 1) -> Pair:
    """Return a pair that dominates all steps together, even if it is known which of them used the record.

    These N ~ Bin(T, q) steps do not depend on the data. Given them, the steps are Gaussian mechanisms. So
    delta(eps) <= sum_k P(N = k) delta_G(eps; mu sqrt k). This needs no lattice, which is coarse for large losses.

    Args:
        mu: distance over standard deviation of a use, from 1e-30 to 1e90.
        rate: q, from 1e-15 to 1; it is rounded up.
        steps: T, 1 to 1e15.
        at_once: how many uses may share their noise: k uses are at most mu sqrt(k min(k, at_once)) apart.

    >>> pair = known_uses(mu=1.0, rate=0.5, steps=2)
    >>> round(float(np.exp(pair.forward(np.array([0.0])))[0]), 6)  # (2 delta_G(0; 1) + delta_G(0; sqrt 2))/4
    0.321587
    """

    def far(uses: int) -> float:
        return up(mu * math.sqrt(float(uses) * min(uses, at_once)), 4.0)

    whole = far(steps)
    if (chance := up(rate)) >= 1.0:
        return gaussian_sum([(whole, 1)])
    groups = [(far(k), log_w) for k, log_w in upper_groups(steps, chance, single=True) if k]

    mus, logs = np.array(groups).T

    def block(e: Array) -> Array:
        terms = logs + log_hockey_stick_up(e[:, None], mus)
        peak = terms.max(axis=1)
        safe = np.where(np.isfinite(peak), peak, 0.0)
        total = np.log(np.exp(terms - safe[:, None]).sum(axis=1))
        slack = UNIT * (4.0 * len(groups) + 64.0 + 8.0 * np.abs(safe))
        return np.where(np.isfinite(peak), np.minimum(safe + total + slack, 0.0), peak)

    def curve(e: Array) -> Array:
        flat = np.ravel(np.asarray(e, float))
        with np.errstate(all="ignore"):
            blocks = [block(flat[start : start + _BLOCK]) for start in range(0, len(flat), _BLOCK)]
        return np.concatenate(blocks).reshape(np.shape(e)) if blocks else np.zeros(np.shape(e))

    return Pair(curve, curve, whole_mu=whole)


def seldom_used(pair: Pair, *, rate: float, steps: int) -> Pair:
    """Return a pair (P, Q) of all steps whose order (Q, P), an added record, also uses the chance of no use.

    The record is in none of the steps with probability (1-q)^T, so P >= (1-q)^T Q and E_g(Q, P) <= 1 - g (1-q)^T.

    Args:
        pair: a pair that dominates the steps; P is with the record and Q without it.
        rate: q, from 1e-15 to 1; it is rounded up.
        steps: T, 1 to 1e15.

    >>> pair = seldom_used(known_uses(mu=100.0, rate=0.5, steps=2), rate=0.5, steps=2)
    >>> round(float(np.exp(pair.backward(np.array([math.log(3.0)])))[0]), 12)  # 1 - 3/4
    0.25
    """
    if up(rate) >= 1.0:
        return pair
    log_none = _log_none(rate, steps)

    def backward(e: Array) -> Array:
        left = e + log_none
        left = left - 8.0 * UNIT * (np.abs(e) + abs(log_none))
        with np.errstate(divide="ignore"):
            value = np.log(-np.expm1(np.minimum(left, 0.0)))
        return np.asarray(np.minimum(_up(value), pair.backward(e)))

    return Pair(pair.forward, backward, whole_mu=pair.whole_mu)


def replaced_known_uses(*, mu: float, rate: float, steps: int) -> Pair:
    """Return a pair that dominates all steps on Poisson samples for a replaced record: the minimum of two bounds.

    First, if it is known which steps use the two records, the same ones, these steps are 2 mu apart. Second, the law Q
    of the other record is at least (1-q)^T times the law without use, so E_g(P, Q) is at most that of a removed record
    at g (1-q)^T. The pair is its own mirror image. Arguments as in `known_uses`.
    """
    apart, one = (known_uses(mu=distance, rate=rate, steps=steps) for distance in (up(2.0 * mu), mu))
    log_none = _log_none(rate, steps)

    def curve(e: Array) -> Array:
        left = e + log_none
        left = left - 8.0 * UNIT * (np.abs(e) + abs(log_none)) if log_none > -math.inf else left
        through_none = np.where(left >= 0.0, one.forward(np.maximum(left, 0.0)), 0.0)
        return np.asarray(np.minimum(through_none, apart.forward(e)))

    return Pair(curve, curve, whole_mu=apart.whole_mu)


def _log_none(rate: float, steps: int) -> float:
    """Return ln of (1-q)^T, rounded down."""
    chance = up(rate)
    return steps * math.log1p(-chance) * (1.0 + 8.0 * UNIT) if chance < 1.0 else -math.inf


def _check(mu: float, rate: float) -> None:
    if not _LEAST_MU <= mu <= _MOST_MU:
        raise SpecError(f"mu must be between {_LEAST_MU:g} and {_MOST_MU:g}, got {mu!r}", "use other noise")
    if not _LEAST_RATE <= rate <= 1.0:
        raise SpecError(f"the rate must be between {_LEAST_RATE:g} and 1, got {rate!r}", "use a larger batch")


def _log_added(e: Array, mu: float, rate: float) -> Array:
    """Return ln delta of (N(0), M_1), rounded up: a delta_G(ln(g q/a)) increases in a, which is rounded up."""
    with np.errstate(all="ignore"):
        a = rate - np.expm1(np.minimum(e, 1e3)) * (1.0 - rate)
        a = np.minimum(a + 8.0 * UNIT * rate * (1.0 + e), rate)
        log_a = np.log(np.where(a > 0.0, a, rate))
        threshold = e + (math.log(rate) - log_a)
        threshold -= 8.0 * UNIT * (1.0 + np.abs(e) + np.abs(log_a) - math.log(rate))
        value = log_a + log_hockey_stick_up(np.clip(threshold, 0.0, 1e300), mu)
    return np.where(a > 0.0, _up(value), -np.inf)


def _log_replaced(e: Array, mu: float, rate: float) -> Array:
    """Return ln delta of (M_1, M_-1), rounded up: N(1) split between N(-1) and N(0)."""
    log_q = math.log(rate)
    log_k = _log_k(e, rate)
    # The half-line starts at ln(y)/mu, with q a y^2 - K y - g q a = 0 for a = e^{-mu^2/2}.
    log_qa = log_q - 0.5 * mu * mu
    log_y = _log_root(log_qa, log_k, e + log_qa)
    far = e - 2.0 * log_y, 2.0 * mu
    near = log_k - log_q + 0.5 * mu * mu - log_y, mu
    return _split(e, log_k, log_q, far, near)


def _log_nulled(e: Array, mu: float, rate: float) -> Array:
    """Return ln delta of (M_2, M_1), rounded up: N(2) split between N(1) and N(0)."""
    log_q, square = math.log(rate), mu * mu
    log_k = _log_k(e, rate)
    log_w = _log_root(log_q - 2.0 * square, e + log_q - 0.5 * square, log_k)
    beside = e + 1.5 * square - log_w, mu
    beyond = log_k - log_q + 2.0 * square - 2.0 * log_w, 2.0 * mu
    return _split(e, log_k, log_q, beside, beyond)


def _log_k(e: Array, rate: float) -> Array:
    """Return ln of K = (g - 1)(1 - q), accurate to some units of roundoff of 1 + |ln K|; -inf at e = 0."""
    with np.errstate(divide="ignore"):
        return np.where(e < 1.0, np.log(np.expm1(np.minimum(e, 1.0))), e + np.log1p(-np.exp(-e))) + math.log1p(-rate)


def _log_root(log_a: float, log_b: Array, log_c: Array) -> Array:
    """Return ln of the positive root of A x^2 - B x - C for logarithms of A, B >= 0 and C >= 0."""
    root = 0.5 * np.logaddexp(2.0 * log_b, math.log(4.0) + log_a + log_c)
    return np.logaddexp(log_b, root) - math.log(2.0) - log_a


def _split(e: Array, log_k: Array, log_q: float, first: tuple[Array, float], second: tuple[Array, float]) -> Array:
    """Return ln of q times the sum of the two profiles: weight a against g, and b against K/q.

    Args:
        e, log_k, log_q: ln g, ln K and ln q.
        first, second: (ln of the weight as computed, distance) each; the weights are scaled to sum to 1 or more.
    """
    (log_a, far), (log_b, near) = first, second
    total = np.logaddexp(log_a, log_b)
    finite = np.where(np.isfinite(log_k), np.abs(log_k), 0.0)
    with np.errstate(invalid="ignore"):
        log_a, log_b = (np.minimum(w - total + 16.0 * UNIT * (1.0 + np.abs(w) + np.abs(total)), 0.0)
                        for w in (log_a, log_b))  # fmt: skip
        size = 8.0 * UNIT * (2.0 - log_q + np.abs(e) + finite)
        of_a = log_a + log_hockey_stick_up(np.clip(e - log_a - size, -1e300, 1e300), far)
        # Without weight the bracket is at most 0; a threshold of -inf also counts as 0.
        threshold = np.where(log_b > -np.inf, log_k - log_q - log_b - size, 0.0)
        of_b = log_b + np.where(threshold > -np.inf, _stick(threshold, near), 0.0)
    value = np.logaddexp(of_a, np.where(log_b > -np.inf, of_b, -np.inf))
    return _up(log_q + value)


def _stick(threshold: Array, distance: float) -> Array:
    return log_hockey_stick_up(np.clip(np.nan_to_num(threshold, nan=0.0), -1e300, 1e300), distance)


def _up(value: Array) -> Array:
    """Return an upper bound for a logarithm with an error of some units of roundoff of 1 + |value|."""
    finite = np.where(np.isfinite(value), np.abs(value), 0.0)
    return np.minimum(value + 64.0 * UNIT * (1.0 + finite), 0.0)
