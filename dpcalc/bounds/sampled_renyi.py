"""Renyi divergence of a Gaussian on a uniform sample without replacement, and a published noise that rests on it.

A step uses m of n records; one record is replaced. With s = sigma m/(2 G), the noise in units of the most that a
replacement can move the mean gradient, and p = m/n:

* `renyi`: Theorem 9 of Wang, Balle and Kasiviswanathan (2019), for whole orders from 2 on;
* `lemma_renyi`: 3.5 p^2 lambda/s^2, simpler and larger, where two conditions hold (Lemma 3 of Wang, Lei, Ying and
  Zhang 2022); its proof goes through the first, so that it is for whole orders, too;
* Theorem 11 of the same paper, which uses the lemma at a real order. Without its conditions (32) and (33) the noise it
  names does not keep the privacy it claims.
"""

from __future__ import annotations

import functools
import math

from dpcalc.errors import NotApplicable
from dpcalc.numerics.floats import MAX, UNIT, down, up
from dpcalc.numerics.logspace import log_exp1p, log_expm1, log_sum_exp
from dpcalc.numerics.roots import greatest, least

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


# --- Theorem 11 ----------------------------------------------------------------------------------------------------


def theorem_order(*, share: float, epsilon: float, log_delta: float) -> float:
    """Return lambda = ln(1/delta)/((1 - beta) eps) + 1.

    >>> round(theorem_order(share=0.5, epsilon=4.0, log_delta=math.log(1e-6)), 12)
    7.907755278982
    """
    return -log_delta / ((1.0 - share) * epsilon) + 1.0


def theorem_square(
    *, share: float, records: int, steps: int, batch_size: int, epsilon: float, log_delta: float
) -> float:
    """Return s^2 = 3.5 T lambda p^2/(beta eps), sigma^2 over (2 G/m)^2, as in Theorem 11: condition (32)'s ratio."""
    order = theorem_order(share=share, epsilon=epsilon, log_delta=log_delta)
    return 3.5 * steps * order * (batch_size / records) ** 2 / (share * epsilon)


def theorem_slack(
    *, share: float, records: int, steps: int, batch_size: int, epsilon: float, log_delta: float
) -> float:
    """Return by how much condition (33) holds for the noise of Theorem 11; negative where it fails.

    >>> round(theorem_slack(share=0.0005, records=10000, steps=10000, batch_size=1, epsilon=1.0,
    ...                     log_delta=math.log(1e-8)), 11)
    13.8717841483
    """
    given = {"share": share, "epsilon": epsilon, "log_delta": log_delta}
    square = theorem_square(**given, records=records, steps=steps, batch_size=batch_size)
    return slack(order=theorem_order(**given), rate=batch_size / records, square=square)


def theorem_noise_std(
    *, gradient: float, share: float, records: int, steps: int, batch_size: int, epsilon: float, log_delta: float,
) -> float:  # fmt: skip
    """Return sigma of Theorem 11, sigma^2 = (14 G^2 T/(beta n^2 eps)) (ln(1/delta)/((1 - beta) eps) + 1).

    Args:
        gradient: G.
        share: beta in (0, 1), the share of epsilon that is for the steps' divergence.
        records, steps, batch_size: n, T and m.
        epsilon, log_delta: the budget.

    Returns:
        sigma, to nearest; no guarantee, even where the conditions hold (the order is real).

    Raises:
        NotApplicable: condition (32) or (33) fails; at this noise the privacy claimed may be far off.
    """
    given = {
        "share": share, "records": records, "steps": steps, "batch_size": batch_size, "epsilon": epsilon,
        "log_delta": log_delta,
    }  # fmt: skip
    square = theorem_square(**given)  # type: ignore[arg-type]
    if square < LEAST_SQUARE:
        raise NotApplicable(
            f"condition (32) of Theorem 11 fails: sigma^2/(4 G^2) = {square:.6g} is below 0.67",
            "take a smaller share beta, or the composed bound",
        )
    margin = theorem_slack(**given)  # type: ignore[arg-type]
    if margin < 0.0:
        raise NotApplicable(
            f"condition (33) of Theorem 11 fails by {-margin:.6g}", "take another share beta, or the composed bound"
        )
    return math.sqrt(square) * 2.0 * gradient / batch_size


def best_share(*, epsilon: float, log_delta: float) -> float:
    """Return beta* = sqrt(1 + c)/(sqrt(1 + c) + sqrt(c)), c = ln(1/delta)/eps: least noise, conditions aside.

    >>> round(best_share(epsilon=1.0, log_delta=math.log(1e-6)), 12)
    0.508734452385
    """
    c = -log_delta / epsilon
    return math.sqrt(1.0 + c) / (math.sqrt(1.0 + c) + math.sqrt(c))


_SHARES = tuple(10.0 ** (-j / 12.0) for j in range(145))  # 1 to 1e-12


def largest_share(*, records: int, steps: int, batch_size: int, epsilon: float, log_delta: float) -> float | None:
    """Return the largest beta <= beta* at which (32) and (33) hold, or None: on a grid of twelve a decade, then a root.

    >>> round(largest_share(records=1000, steps=1000, batch_size=1, epsilon=1.0, log_delta=math.log(1e-6)), 13)
    0.0038129137434
    """

    def lacking(share: float) -> float:
        given = {
            "share": share, "records": records, "steps": steps, "batch_size": batch_size, "epsilon": epsilon,
            "log_delta": log_delta,
        }  # fmt: skip
        margin = min(theorem_square(**given) - LEAST_SQUARE, theorem_slack(**given))  # type: ignore[arg-type]
        return -margin

    best = best_share(epsilon=epsilon, log_delta=log_delta)
    if lacking(best) <= 0.0:
        return best
    above = best
    for share in _SHARES:
        if share >= best:
            continue
        if lacking(share) <= 0.0:
            return greatest(lacking, share, above)
        above = share
    return None


def least_ratio(*, records: int, steps: int, batch_size: int, epsilon: float, log_delta: float) -> float:
    """Return the least s = sigma m/(2 G) that Theorem 11 gives for any beta where its conditions hold; inf if none.

    Shares above beta* are tried where no smaller one will do.

    >>> round(least_ratio(records=10**6, steps=10**6, batch_size=1, epsilon=2.0, log_delta=math.log(1e-12)), 12)
    1.439768991629
    """
    given = {
        "records": records, "steps": steps, "batch_size": batch_size, "epsilon": epsilon, "log_delta": log_delta,
    }  # fmt: skip
    found = math.inf
    share = largest_share(**given)  # type: ignore[arg-type]
    if share is not None:
        found = theorem_square(share=share, **given)  # type: ignore[arg-type]
    best = best_share(epsilon=epsilon, log_delta=log_delta)
    if share != best:
        for part in range(1, 40):
            more = best + (1.0 - best) * part / 40.0
            square = theorem_square(share=more, **given)  # type: ignore[arg-type]
            if LEAST_SQUARE <= square < found and theorem_slack(share=more, **given) >= 0.0:  # type: ignore[arg-type]
                found = square
    return math.sqrt(found)


def theorem_epsilon(*, records: int, steps: int, batch_size: int, ratio: float, log_delta: float) -> float:
    """Return the least epsilon for which Theorem 11 asks for no more than s = ``ratio``; inf above 1e6."""

    def excess(log_epsilon: float) -> float:
        needed = least_ratio(
            records=records, steps=steps, batch_size=batch_size, epsilon=math.exp(log_epsilon - 16.0),
            log_delta=log_delta,
        )  # fmt: skip
        return needed / ratio - 1.0 if math.isfinite(needed) else 1e300

    if excess(30.0) > 0.0:
        return math.inf
    return up(math.exp(least(excess, 0.0, 30.0, ulps=1 << 16) - 16.0), 8.0)


def lemma13_epsilon(*, records: int) -> tuple[float, float]:
    """Return the two numbers of Lemma 13: from the larger on, Theorem 11 has a feasible beta at T = n, delta = 1/n^2.

    Sufficient only; the first alone is not, for 18 <= n <= 43.

    Raises:
        NotApplicable: n < 18, where 2 ln n (n^(1/3) - 1) <= 9.

    >>> [round(x, 10) for x in lemma13_epsilon(records=100)]
    [2.5738204969, 3.4136559028]
    """
    if records < 18:
        raise NotApplicable(f"Lemma 13 is for 18 records or more, and there are {records}", "use more records")
    n, log_n, root = float(records), math.log(records), math.cbrt(records) - 1.0
    first = (7.0 * root + 4.0 * n * log_n + 7.0) / (2.0 * n * root)
    second = log_n * (14.0 * log_n * root + 162.0 * n - 63.0) / (9.0 * n * (2.0 * log_n * root - 9.0))
    return first, second


def lemma13_feasible(*, records: int, epsilon: float) -> bool:
    """Return whether Lemma 13 promises a feasible beta, 7 ln n/(9 n eps), at T = n and delta = 1/n^2."""
    return records >= 18 and down(epsilon, 64.0) >= max(lemma13_epsilon(records=records))
