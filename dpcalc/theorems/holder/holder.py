"""Hölder continuous gradients: the constants of a loss, and how far one record moves SGD.

A loss l(w; z), convex in w, has |grad l(w) - grad l(v)| <= L |w - v|^alpha for all w and v, with alpha in [0, 1]
(a fixed selection of subgradients). SGD starts at 0, uses one record a step, drawn uniformly with replacement, and
projects onto a convex set that holds 0. Two data sets differ in one record; a step that draws it is a hit. A hit moves
the two runs apart by at most b = 2 eta G. In any other step the squared distance grows by at most a^2, where

    a = sqrt((1 - alpha)/(1 + alpha)) (2^-alpha L eta)^(1/(1 - alpha)),

and a = 0 at alpha = 1 (Wang, Lei, Ying and Zhang 2022, Lemma 21). Everything is rounded up.

Renyi divergence of a Gaussian on a uniform sample without replacement.

A step uses m of n records; one record is replaced. With s = sigma m/(2 G), the noise in units of the most that a
replacement can move the mean gradient, and p = m/n:

* `renyi`: Theorem 9 of Wang, Balle and Kasiviswanathan (2019), for whole orders from 2 on;
* `lemma_renyi`: 3.5 p^2 lambda/s^2, simpler and larger, where two conditions hold (Lemma 3 of Wang, Lei, Ying and
  Zhang 2022); its proof uses the first, so it also needs whole orders.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from dpcalc.errors import NotApplicable
from dpcalc.model.loss_class import exceeds_two
from dpcalc.numerics import binomial
from dpcalc.numerics.floats import MAX, UNIT, down, exp_up, log_exp1p, log_expm1, log_sum_exp, up
from dpcalc.numerics.roots import greatest

_LN2 = 0.6931471805599453


def _to_one(exponent: float) -> tuple[float, float]:
    """Return 1 - alpha from below and from above: for the double and for the decimal that it prints as."""
    from fractions import Fraction

    both = (1.0 - exponent, float(1 - Fraction(repr(exponent))))
    return down(min(both)), up(max(both))


def _exp(log_value: float) -> float:
    """Return exp of a log upper bound of either sign, rounded up; inf where it overflows."""
    if log_value <= 0.0:
        return exp_up(log_value)
    return up(math.exp(log_value), 4.0) if log_value < 709.0 else math.inf


def _power(base: float, exponent: float) -> float:
    """Return base^exponent for base > 0 and an exponent from 0 to 4, rounded up; 1 for the exponent 0."""
    if exponent in (0.0, 1.0):
        return base if exponent else 1.0
    value = math.pow(base, exponent) if exponent * math.log(base) < 709.0 else math.inf
    return up(value, 4.0 + 2.0 * abs(math.log(base))) if value < MAX else math.inf


def log_drift(
    *, holder_exponent: float, holder_constant: float, step_size: float, strong_convexity: float = 0.0
) -> float:
    """Return ln a, what a step that does not hit adds to the distance (in squares), rounded up.

    At alpha = 1 it is -inf for eta L <= 2, and inf beyond. An l2 term (m/2)|w|^2 makes it a (1 - eta m)^(-alpha/(1 -
    alpha)): the map of the loss alone is not contracted as much as that of a smooth loss (docs/method.md).

    Args:
        holder_exponent, holder_constant: alpha in [0, 1] and L > 0, of the loss without an l2 term.
        step_size: eta > 0.
        strong_convexity: m >= 0 of the l2 term, eta m < 1.

    >>> round(log_drift(holder_exponent=0.999, holder_constant=2.0, step_size=0.1), 9)
    -2305.692146981
    """
    if holder_exponent == 1.0:
        return math.inf if exceeds_two(step_size, holder_constant, strong_convexity, strong_convexity) else -math.inf
    low, high = _to_one(holder_exponent)
    logs = math.log(holder_constant), math.log(step_size)
    top = math.fsum((*logs, -holder_exponent * _LN2)) + UNIT * (4.0 + 2.0 * abs(logs[0]) + 2.0 * abs(logs[1]))
    if strong_convexity:
        top -= holder_exponent * math.log1p(-up(step_size * strong_convexity, 4.0)) * (1.0 + 8.0 * UNIT)
    value = 0.5 * (math.log(high) - math.log1p(holder_exponent)) + (top / low if top > 0.0 else top / high)
    return up(value, 8.0) + UNIT * (4.0 + 2.0 * abs(math.log(high)))


def drift(*, holder_exponent: float, holder_constant: float, step_size: float, strong_convexity: float = 0.0) -> float:
    """Return a, as in `log_drift`: c_(alpha,2) at a step size of 1.

    >>> round(drift(holder_exponent=0.5, holder_constant=1.5, step_size=1.0), 12)
    0.649519052838
    """
    log_a = log_drift(
        holder_exponent=holder_exponent, holder_constant=holder_constant, step_size=step_size,
        strong_convexity=strong_convexity,
    )  # fmt: skip
    return 0.0 if log_a == -math.inf else _exp(log_a)


def _remainder(exponent: float, log_scale: float) -> float:
    """Return (1 - alpha)/(1 + alpha) x^(2/(1 - alpha)), ln x given, rounded up; 0 at alpha = 1."""
    if exponent == 1.0:
        return 0.0
    low, high = _to_one(exponent)
    power = 2.0 * log_scale / (low if log_scale > 0.0 else high)
    value = power + math.log(high) - math.log1p(exponent)
    return _exp(value + UNIT * (8.0 + 8.0 * abs(power) + 2.0 * abs(math.log(high))))


def growth(*, holder_exponent: float, holder_constant: float, gradient_at_zero: float, loss_at_zero: float) -> float:
    """Return C_alpha of |w_(t+1)|^2 <= C_alpha t eta (Lemma 20, simplified), rounded up.

    (1 - alpha)/(1 + alpha) L^(2/(1 - alpha)) + 2 M0; at alpha = 0 it is (M + L)^2 + 2 M0 and at 1 it is 2 M0.

    >>> round(growth(holder_exponent=0.5, holder_constant=1.5, gradient_at_zero=1.5, loss_at_zero=1.0), 12)
    3.6875
    """
    if holder_exponent == 0.0:
        return up((gradient_at_zero + holder_constant) ** 2 + 2.0 * loss_at_zero, 4.0)
    log_l = math.log(holder_constant)
    return up(_remainder(holder_exponent, up(log_l, 4.0) if log_l else 0.0) + 2.0 * loss_at_zero, 2.0)


def radius_published(
    *, steps: int, step_size: float, holder_exponent: float, holder_constant: float, gradient_at_zero: float,
    loss_at_zero: float,
) -> float:  # fmt: skip
    """Return sqrt(C_alpha T eta), how far from 0 unconstrained SGD can be for eta <= min(1, 1/L) (Lemma 20)."""
    rate = growth(
        holder_exponent=holder_exponent, holder_constant=holder_constant, gradient_at_zero=gradient_at_zero,
        loss_at_zero=loss_at_zero,
    )  # fmt: skip
    return up(math.sqrt(rate) * math.sqrt(steps * step_size), 8.0)


def reach(
    *, steps: int, step_size: float, holder_exponent: float, holder_constant: float, loss_at_zero: float
) -> float:
    """Return how far from 0 unconstrained SGD can be after T steps, for losses >= 0 and eta L <= 1; rounded up.

    The root of T ((1 - alpha)/(1 + alpha) (eta L)^(2/(1 - alpha)) + 2 eta M0): continuous in alpha, where C_alpha is
    not, and no larger.

    >>> round(reach(steps=1000, step_size=0.05, holder_exponent=0.25, holder_constant=2.0, loss_at_zero=1.0), 12)
    10.064425508394
    """
    logs = math.log(step_size), math.log(holder_constant)
    if math.fsum(logs) > 1e-9 or step_size > 1.0:
        raise NotApplicable(
            "how far unconstrained SGD gets is known for step_size <= min(1, 1/holder_constant) only",
            "give --radius or --lipschitz",
        )
    scale = min(0.0, math.fsum(logs) + UNIT * (2.0 + 2.0 * abs(logs[0]) + 2.0 * abs(logs[1])))
    per_step = _remainder(holder_exponent, scale) + 2.0 * step_size * loss_at_zero
    return up(math.sqrt(steps) * math.sqrt(up(per_step, 4.0)), 4.0)


def gradient_within(*, radius: float, holder_exponent: float, holder_constant: float, gradient_at_zero: float) -> float:
    """Return M + L R^alpha, a bound on the gradient in the ball of radius R; rounded up."""
    return up(gradient_at_zero + up(holder_constant * _power(radius, holder_exponent), 2.0), 2.0)


def gradient_bound(
    *, lipschitz: float = math.inf, radius: float = math.inf, holder_exponent: float | None = None,
    holder_constant: float | None = None, gradient_at_zero: float | None = None, loss_at_zero: float | None = None,
    steps: int | None = None, step_size: float | None = None,
) -> float:  # fmt: skip
    """Return G, the least bound on a record's gradient that follows from what is known; inf where none does.

    ``lipschitz``, where given; M + L R^alpha in a ball; without one M + L r^alpha for the `reach` r of the iterates.
    """
    best = lipschitz
    if holder_exponent is None or holder_constant is None or gradient_at_zero is None:
        return best
    within = radius
    # The reach rests on conditions that are asked of the run only where no other bound is known.
    if math.isinf(min(radius, lipschitz)) and holder_exponent > 0.0 and None not in (loss_at_zero, steps, step_size):
        assert loss_at_zero is not None
        assert steps is not None
        assert step_size is not None
        within = reach(
            steps=steps, step_size=step_size, holder_exponent=holder_exponent, holder_constant=holder_constant,
            loss_at_zero=loss_at_zero,
        )  # fmt: skip
    if math.isinf(within) and holder_exponent > 0.0:
        return best
    in_ball = gradient_within(
        radius=max(within, 5e-324) if math.isfinite(within) else 1.0, holder_exponent=holder_exponent,
        holder_constant=holder_constant, gradient_at_zero=gradient_at_zero,
    )  # fmt: skip
    return min(best, in_ball)


def range_bound(
    *, radius: float, loss_at_zero: float, gradient: float, holder_exponent: float, holder_constant: float,
    gradient_at_zero: float | None = None,
) -> float:  # fmt: skip
    """Return a bound on losses >= 0 in the ball: the least of M0 + G R and M0 + M R + L R^(1 + alpha)/(1 + alpha)."""
    best = up(loss_at_zero + gradient * radius, 4.0)
    if gradient_at_zero is None:
        return best
    curved = up(holder_constant * _power(radius, 1.0 + holder_exponent) / (1.0 + holder_exponent), 8.0)
    return min(best, up(loss_at_zero + gradient_at_zero * radius + curved, 4.0))


# --- how far apart one record takes two runs ---------------------------------------------------------------------


def log_each(log_chance: float, among: int) -> float:
    """Return ln(chance/among), rounded down: what each of so many events may take of a chance."""
    return down(log_chance - math.log(among), 4.0) if among > 1 else log_chance


def excess_hits(*, records: int, steps: int, log_chance: float) -> float:
    """Return c of Lemma 14: at most (T/n)(1 + c) hits but with this chance, rounded up.

    It is max(sqrt(3 n x/T), 3 n x/T), x = ln 1/chance.
    The paper has x = ln(n/gamma), the chance gamma for all n records together; for privacy, which speaks of one pair of
    data sets, x = ln(1/gamma) is enough.

    >>> round(excess_hits(records=1000, steps=1000, log_chance=math.log(0.05)), 12)
    8.987196820662
    """
    x = up(3.0 * (records / steps) * -log_chance, 6.0)
    return max(x, up(math.sqrt(x)))


def stability_published(
    *, records: int, steps: int, step_size: float, holder_exponent: float, holder_constant: float, gradient: float,
    log_chance: float,
) -> float:  # fmt: skip
    """Return Delta of Theorem 7, rounded up: sqrt(e (a^2 T + 4 G^2 eta^2 (1 + kappa) kappa)), kappa = (T/n)(1 + c).

    Args:
        records, steps, step_size: n, T and eta.
        holder_exponent, holder_constant: alpha and L.
        gradient: G, a bound on the gradient at all iterates.
        log_chance: ln gamma for a pair of data sets; ln(gamma/n), `log_each`, for the supremum over them.

    Returns:
        Upper bound on the distance of the two averages, but with the chance given.

    >>> round(stability_published(records=1000, steps=1000, step_size=0.02, holder_exponent=0.0, holder_constant=1.0,
    ...                           gradient=2.0, log_chance=log_each(math.log(0.05), 1000)), 12)
    4.246087922736
    """
    kappa = up(steps / records * (1.0 + excess_hits(records=records, steps=steps, log_chance=log_chance)), 4.0)
    a = drift(holder_exponent=holder_exponent, holder_constant=holder_constant, step_size=step_size)
    hits = 2.0 * gradient * step_size * math.sqrt((1.0 + kappa) * kappa)
    return up(math.sqrt(math.e) * math.hypot(a * math.sqrt(steps), hits), 16.0)


def after_hits(*, hits: int, steps: int, use: float, drift: float) -> float:
    """Return Delta*(k): how far apart two runs are at most after T steps, k of them hits; rounded up.

    0 for k = 0, else (k - 1) b + sqrt(b^2 + (T - k) a^2), a at most b. Until the first hit the runs are the same; the
    worst order is a hit, then all misses, then the other hits.

    Args:
        hits: k, 0 to steps.
        steps: T.
        use: b = 2 eta G, by which a hit moves them.
        drift: a.

    >>> round(after_hits(hits=3, steps=1000, use=0.08, drift=0.02), 12)
    0.796553218514
    """
    if hits == 0:
        return 0.0
    if use >= MAX:
        return math.inf
    return up((hits - 1) * use + math.hypot(use, math.sqrt(steps - hits) * min(drift, use)), 16.0)


def after_hits_curved(*, hits: int, use: float, shrink: float) -> float:
    """Return b (1 - (1 - x)^k)/x, x = eta m: k hits, every step contracting by 1 - x; rounded up.

    For losses that are smooth (alpha = 1) with an l2 term (m/2)|w|^2, eta <= 2/(L + 2 m). G is that of the loss without
    the l2 term, which is the same for both records.

    >>> round(after_hits_curved(hits=7, use=0.2, shrink=0.005), 12)
    1.379174127621
    """
    x = down(shrink, 2.0)
    if hits == 0 or x <= 0.0:
        return up(hits * use)
    return min(up(hits * use), up(use * (-math.expm1(hits * math.log1p(-x)) / x), 16.0 + 8.0 * hits * x))


def stability(
    *, steps: int, step_size: float, holder_exponent: float, holder_constant: float, gradient: float,
    strong_convexity: float = 0.0,
) -> Callable[[int], float]:  # fmt: skip
    """Return Delta* as a function of the number of hits, non-decreasing.

    Args:
        steps, step_size: T and eta.
        holder_exponent, holder_constant, gradient: alpha, L and G, of the loss without an l2 term.
        strong_convexity: m of an l2 term (m/2)|w|^2 that is added to every loss; 0 without.
    """
    use = up(2.0 * step_size * gradient, 2.0)
    a = drift(
        holder_exponent=holder_exponent, holder_constant=holder_constant, step_size=step_size,
        strong_convexity=strong_convexity,
    )  # fmt: skip

    def apart(hits: int) -> float:
        if strong_convexity and holder_exponent == 1.0:
            return after_hits_curved(hits=hits, use=use, shrink=step_size * strong_convexity)
        return after_hits(hits=hits, steps=steps, use=use, drift=a)

    return apart


def hits_quantile(*, records: int, steps: int, log_chance: float) -> int:
    """Return the least k that the number of hits, Bin(T, 1/n), exceeds with at most this chance.

    >>> hits_quantile(records=1000, steps=10000, log_chance=math.log(1e-6))
    28
    """
    return binomial.quantile_up(log_chance, trials=steps, one_in=records)


LEAST_SQUARE = 0.67
"""Condition (32): s^2 >= 0.67. What the proof needs is 0.66131681."""

_MOST_ORDER = 1024


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
