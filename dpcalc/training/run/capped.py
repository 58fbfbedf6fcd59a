"""Slopes of the capped softmax, each with a proven error.

With c the cap of a record, q in the simplex and g = q - e_y, the slope g* is the g that maximises <g, z> - sum q ln q
over |g| <= c. Write a_j = z_j - z_y for the other classes. Where the slope of the softmax is longer than c, the solver
looks for l_j = ln q_j and s > 0. For any such numbers let m = sum q_j, k = c/sqrt(m^2 + sum q_j^2) and
r_j = a_j - l_j - ln k + ln(1 - k m) - s k (q_j + m), over the other classes. Then g with g_j = k q_j and g_y = -k m has
norm c exactly and is the slope for the scores z - r. Slopes are 1/2-Lipschitz in z, so |g - g*| <= |r|/2. This bounds
the error of a slope from the solution itself, however it was found (`docs/method.md`).

Newton's method solves nearly all records at once. The others are bisected, and those that doubles cannot settle are
bisected with 40 digits, which always ends, since everything there is monotone: the norm of the slope in s, the sum of
the shares in their level, and each share. All operations are elementwise or in the order of the classes, so a slope is
a function of its record alone, bit for bit: no record gets more iterations because another one has not converged.

Scores and slopes have one row for each class and one column for each record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.numerics.floats import up

Array = NDArray[np.float64]
Index = NDArray[np.int64]

LARGEST_CAP = 63.0 / 64.0
"""Larger caps below sqrt(2) are lowered to this, since near 1 a slope can change as a square root of its cap.

From sqrt(2) on nothing is capped.
"""

WIDEST = 2.0**30
"""Slopes of scores further apart are scaled down instead, without a proven error."""

_UNIT = 2.0**-53
_OMEGAS, _FREE, _ITERATIONS = 1, 8, 16  # the first iteration and the last eight solve ln q + s q = x exactly
_HALVINGS, _STEPS = 60, 60


def slope_error(classes: int, apart: float, log_cap: float) -> float:
    """Return a bound on the distance of a slope from that of the capped softmax, for the scores as doubles.

    Args:
        classes: K.
        apart: A, the largest difference of two scores, at most `WIDEST`.
        log_cap: the largest |ln c| of a cap, before it is lowered.
    """
    return up(3.0 * _tolerance(classes, apart + math.log(classes) + log_cap), 16.0)


def _tolerance(classes: int, range_of: float) -> float:
    """Return the tolerance of |r|/2, above the rounding errors; twice that covers functions that err by 4 ulps."""
    return 6.0 * _UNIT * math.sqrt(classes) * (classes + 16.0) * (range_of + 16.0)


def lowered(caps: Array) -> Array:
    """Return the caps that are used; infinity for none."""
    held: Array = np.where(caps < math.sqrt(2.0), np.minimum(caps, LARGEST_CAP), np.inf)
    return held


def capped_descents(scores: Array, labels: Array, caps: Array) -> Array:
    """Return minus the slopes of the capped softmax.

    Args:
        scores: shape (m, K).
        labels: m integers from 0 to K - 1.
        caps: the largest norm of each slope, shape (m,), positive; lowered first.

    Returns:
        -g, shape (K, m): 0 where scores are not finite, and of a norm of at most the cap up to rounding.
    """
    count, classes = scores.shape
    place, own = np.arange(count), labels.astype(np.intp)
    others = np.arange(classes - 1)[:, np.newaxis]
    others = others + (others >= own)
    with np.errstate(all="ignore"):
        apart = scores[place, others] - scores[place, own]
        shares = _shares(apart)
        total, length = _sizes(shares)
        caps = lowered(caps)
        widest = np.abs(apart).max(axis=0)
        long = length > caps
        solved = np.flatnonzero(long & (widest <= WIDEST))
        if len(solved):
            some = shares[:, solved]
            shares[:, solved] = _capped(apart[:, solved], caps[solved], some, total[solved])
        wide = long & ~(widest <= WIDEST)
        shares *= np.where(wide, caps / np.maximum(length, caps), 1.0)
    np.copyto(shares, 0.0, where=~np.isfinite(widest))
    descents = np.zeros((classes, count))
    descents[others, place] = -shares
    descents[own, place] = total_of(shares)
    return descents


def _shares(apart: Array) -> Array:
    """Return the softmax of the other classes; the class of the label has score 0."""
    top = np.maximum(apart.max(axis=0), 0.0)
    shares: Array = np.exp(apart - top)
    shares /= total_of(shares) + np.exp(-top)
    return shares


def _sizes(shares: Array) -> tuple[Array, Array]:
    """Return m, the sum of the shares of the other classes, and the norm of the slope."""
    total = total_of(shares)
    scale = np.where(total > 0.0, total, 1.0)
    return total, scale * np.sqrt((total / scale) ** 2 + total_of((shares / scale) ** 2))


def total_of(rows: Array) -> Array:
    """Return the sum of the rows, in their order."""
    total: Array = rows[0].copy()
    for row in rows[1:]:
        total += row
    return total


# --- the solver -------------------------------------------------------------------------------------------------------


class _State(NamedTuple):
    """The records being solved, one column each.

    Attributes:
        apart, cap: a and c.
        low, high: bounds on s.
        level, total, spread: l, m and s.
    """

    apart: Array
    cap: Array
    low: Array
    high: Array
    level: Array
    total: Array
    spread: Array

    def of(self, chosen: Index) -> _State:
        """Return some of the records."""
        return _State(*(field[..., chosen] for field in self))


def _capped(apart: Array, cap: Array, shares: Array, total: Array) -> Array:
    """Return k q of the other classes, where the slope of the softmax is longer than the cap.

    Args:
        apart, shares: a, and the softmax of the other classes, shape (K - 1, m).
        cap, total: c, and the sum of the shares, shape (m,).
    """
    slopes = np.empty_like(apart)
    left, state = np.arange(len(cap)), _start(apart, cap, shares, total)
    for iteration in range(_ITERATIONS):
        if iteration < _OMEGAS or iteration >= _FREE:
            state = state._replace(level=_solved_levels(state))
        share = np.exp(state.level)
        left, state, share = _settled(left, state, share, slopes)
        if not len(left):
            return slopes
        state = _newton(state, share)
    left, state, _ = _settled(left, state, np.exp(state.level), slopes)
    if len(left):
        state = _bisected(state)
        for _ in range(4):
            left, state, share = _settled(left, state, np.exp(state.level), slopes)
            if not len(left):
                return slopes
            state = _newton(state, share)
    for place, column in enumerate(left):
        slopes[:, column] = _slowly(state.apart[:, place], float(state.cap[place]))
    return slopes


def _settled(left: Index, state: _State, share: Array, found: Array) -> tuple[Index, _State, Array]:
    """Store the slopes that are accurate enough; return the other records."""
    scaled, near = _slopes_and_errors(state, share)
    found[:, left[near]] = scaled[:, near]
    rest = np.flatnonzero(~near)
    return left[rest], state.of(rest), share[:, rest]


def _slopes_and_errors(state: _State, share: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return k q, and for each record whether |r|/2 and the levels are small enough."""
    classes, widest = len(share) + 1, np.abs(state.apart).max(axis=0)
    total, length = _sizes(share)
    factor = state.cap / length
    scaled, most = factor * share, factor * total
    missing = state.apart - state.level - np.log(factor) + np.log1p(-most) - state.spread * (scaled + most)
    range_of = widest + math.log(classes) + np.abs(np.log(state.cap))
    near = 0.5 * np.sqrt(total_of(missing * missing)) <= _tolerance(classes, range_of)
    near &= np.abs(state.level).max(axis=0) <= 4.0 * (range_of + 4.0)
    return scaled, near


def _start(apart: Array, cap: Array, shares: Array, total: Array) -> _State:
    """Return the start of Newton's method, as if the other classes kept their shares of m.

    With A = ln sum e^(a_j), s is between (A - logit c)/(2 c) and (A - logit m) / m at m = c/sqrt(2).
    """
    top = apart.max(axis=0)
    height = top + np.log(total_of(np.exp(apart - top)))
    part = shares / total
    square = total_of(part * part)
    middle, least = cap / np.sqrt(1.0 + square), cap * math.sqrt(0.5)
    low = np.maximum((height - _logit(cap)) / (2.0 * cap), 0.0)
    high = np.maximum((height - _logit(least)) / least, 0.0) * (1.0 + 1e-9) + 1e-12
    spread = np.clip((height - _logit(middle)) / (middle * (1.0 + square)), np.maximum(low, 1e-12), high)
    return _State(apart, cap, low, high, apart, middle, spread)


def _logit(share: Array) -> Array:
    """Return ln(m/(1 - m))."""
    odds: Array = np.log(share) - np.log1p(-share)
    return odds


def _solved_levels(state: _State) -> Array:
    """Return l with l + s e^l = a + ln(1 - m) - s m, by the Wright omega function."""
    from scipy.special import wrightomega  # slow to import, and most runs have no capped softmax

    x = state.apart + (np.log1p(-state.total) - state.spread * state.total)
    levels: Array = np.minimum(x - wrightomega(x + np.log(state.spread)), 0.0)
    return levels


def _newton(state: _State, share: Array) -> _State:
    """Take a step of Newton's method for r = 0, sum q = m and m^2 + sum q^2 = c^2, within bounds."""
    apart, cap, low, high, level, total, spread = state
    pull, both = spread + 1.0 / (1.0 - total), share + total
    missing = apart + np.log1p(-total) - level - spread * both
    slow = 1.0 + spread * share
    weight = share / slow
    squared = weight * share
    one = total - total_of(share) - total_of(weight * missing)
    two = 0.5 * (cap * cap - total * total - total_of(share * share)) - total_of(squared * missing)
    a, b = -pull * total_of(weight) - 1.0, -total_of(weight * both)
    c, d = -pull * total_of(squared) + total, -total_of(squared * both)
    determinant = a * d - b * c
    next_total = total + (one * d - b * two) / determinant
    next_spread = spread + (a * two - c * one) / determinant
    least = cap * math.sqrt(0.5)
    next_total = np.clip(
        np.where(np.isfinite(next_total), next_total, total), 0.5 * (total + least), 0.5 * (total + cap)
    )
    next_spread = np.clip(np.where(np.isfinite(next_spread), next_spread, spread), 0.25 * spread, 4.0 * spread)
    next_spread = np.clip(next_spread, low, high)
    change = (missing - pull * (next_total - total) - both * (next_spread - spread)) / slow
    level = np.minimum(level + np.clip(change, -4.0, 2.0), 0.0)
    return _State(apart, cap, low, high, level, next_total, next_spread)


def _bisected(state: _State) -> _State:
    """Return the state with s by bisection, and its levels: the norm of the slope falls with s."""
    low, high = state.low.copy(), state.high.copy()
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        levels = _levels_at(state.apart, middle)
        long = _sizes(np.exp(levels))[1] > state.cap
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    level = _levels_at(state.apart, high)
    return state._replace(level=level, total=total_of(np.exp(level)), spread=high)


def _levels_at(apart: Array, spread: Array) -> Array:
    """Return ln q of the other classes for q = softmax(z - s g).

    ln q_j + s q_j = z_j + s [j = y] - N. The sum of q is convex and falls with N: Newton's method starts where it is at
    least 1, and stays on that side. A converged record does not move while others are iterated.
    """
    from scipy.special import wrightomega

    whole = np.vstack((spread, apart))
    normaliser = whole.max(axis=0) - spread
    for _ in range(_STEPS):
        level = whole - normaliser
        omega = wrightomega(level + np.log(spread))
        share = omega / spread
        excess = total_of(share) - 1.0
        moves = excess > 1e-15
        if not moves.any():
            break
        normaliser = np.where(moves, normaliser + excess / total_of(share / (1.0 + omega)), normaliser)
    level = whole - normaliser
    levels: Array = (level - wrightomega(level + np.log(spread)))[1:]
    return levels


def _slowly(apart: Array, cap: float) -> Array:
    """Return k q of the other classes of one record, with 40 digits."""

    return np.array(solved(apart.tolist(), cap))


_DIGITS = 40
_FINE = Decimal(10) ** -30


def solved(apart: Sequence[float], cap: float) -> list[float]:
    """Return the capped slope of the other classes of one record, by bisection with 40 digits.

    Args:
        apart: a, their scores minus that of the label, finite.
        cap: c > 0, below 1 and below the norm of the softmax's slope.
    """
    with localcontext(Context(prec=_DIGITS)):
        scores, longest = [Decimal(0), *(Decimal(score) for score in apart)], Decimal(cap) ** 2
        low = high = Decimal(1)
        while _length(_capped_slowly_shares(scores, low)) <= longest and low > _FINE:
            low /= 2
        while _length(_capped_slowly_shares(scores, high)) > longest:
            high *= 2
        while high - low > _FINE * high:
            middle = (low + high) / 2
            if _length(_capped_slowly_shares(scores, middle)) > longest:
                low = middle
            else:
                high = middle
        return [float(share) for share in _capped_slowly_shares(scores, high)[1:]]


def _length(shares: Sequence[Decimal]) -> Decimal:
    """Return |q - e_y|^2, with y the first class, where 1 - q_y is the sum of the others."""
    return sum(shares[1:], Decimal(0)) ** 2 + sum((share * share for share in shares[1:]), Decimal(0))


def _capped_slowly_shares(scores: Sequence[Decimal], spread: Decimal) -> list[Decimal]:
    """Return q = softmax(z - s (q - e_y)); Newton's method starts where the sum of q is at least 1."""
    whole = [score + spread * (place == 0) for place, score in enumerate(scores)]
    normaliser = max(whole) - spread
    while True:
        levels = [_level(one - normaliser, spread) for one in whole]
        shares = [level.exp() for level in levels]
        excess = sum(shares, Decimal(0)) - 1
        step = excess / sum((share / (1 + spread * share) for share in shares), Decimal(0))
        if step <= _FINE * (1 + abs(normaliser)):
            return shares
        normaliser += step


def _level(x: Decimal, spread: Decimal) -> Decimal:
    """Return l <= 0 with l + s e^l = x <= s: the left side is convex, and Newton's method converges from above."""
    level = min(x, Decimal(0))
    while True:
        share = spread * level.exp()
        step = (level + share - x) / (1 + share)
        if step <= _FINE:
            return level
        level -= step
