"""Audits in one run: the largest probability of this many right guesses under (epsilon, delta)-privacy.

Each of m canaries is included by its own fair coin, and an attacker who sees the run guesses r of the coins. With
q = e^eps/(1 + e^eps) and f(v) = P(Bin(r, q) >= v), the largest probability of v or more right guesses over all runs
that are (eps, delta)-private for a flip of any one coin is

    min(1, f(v) + m delta f(v) (1 - f(v))/(v w(v))),    w the masses of Bin(r, q),    r fixed beforehand,

and it is attained (docs/method.md, "Scores of canaries"). All p-values here are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpcalc.numerics import binomial
from dpcalc.numerics.floats import UNIT, down, up

Array = NDArray[np.float64]
Cuts = Sequence[tuple[float, float]]
"""Points (epsilon, delta) of a privacy profile, in both orders."""

LARGEST = 30.0  # the largest epsilon that is tried: a guess is then wrong with probability 1e-13
_HALVINGS = 60  # they shrink such an interval below the spacing of doubles
_STEPS = (0.02, 1.02)  # of the grid of the walk: even up to 1, then by this factor
MOST_IN_PROGRAMME = 200  # guesses; a linear programme for more takes over half a second
MOST_IN_WALK = 4000  # guesses; a step of the walk for these takes some hundredths of a second


def _right(epsilon: float) -> float:
    """Return the probability q of a right guess, rounded up."""
    return min(up(1.0 / (1.0 + math.exp(-epsilon)), 4.0), 1.0 - 2.0**-50)


def p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the largest probability of ``correct`` or more right guesses; the number of guesses is fixed beforehand.

    Args:
        correct, guesses, canaries: 0 <= v <= r <= m, r >= 1.
        epsilon: 0 to 30.
        delta: in [0, 1].

    >>> round(p_value(8, 10, 10, 0.0, 0.1), 12)
    0.201736111111
    """
    if correct == 0:
        return 1.0
    logs = binomial.log_masses(guesses, _right(epsilon))[correct:]
    error = UNIT * (128.0 * abs(float(logs[0])) + 1024.0)
    with np.errstate(over="ignore", under="ignore"):
        over = float(np.exp(logs - logs[0]).sum())  # f(v)/w(v)
    tail = min(1.0, math.exp(float(logs[0])) * over) if over < math.inf else 1.0
    rest = canaries * delta * (1.0 - tail * (1.0 - error)) * over / correct if delta else 0.0
    return min(1.0, (tail + rest) * (1.0 + error))


def epsilon_lower(correct: int, guesses: int, canaries: int, delta: float, alpha: float) -> float:
    """Return the largest epsilon with a p-value of at most alpha, rounded down; 0 where there is none."""
    return largest(lambda epsilon: p_value(correct, guesses, canaries, epsilon, delta), alpha, LARGEST)


def largest(
    p: Callable[[float], float], alpha: float, most: float, halvings: int = _HALVINGS, least: float = 0.0
) -> float:
    """Return where an increasing p-value reaches alpha, rounded down; ``least`` if it starts above, or ``most``.

    >>> largest(lambda x: x / 10.0, 0.05, 30.0)
    0.5
    """
    if p(least) > alpha:
        return least
    if p(most) <= alpha:
        return most
    low, high = least, most
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if p(middle) <= alpha else (low, middle)
    return low


# --- several numbers of guesses at once ------------------------------------------------------------------------------


def walk_p_value(correct: Sequence[int], guesses: Sequence[int], canaries: int, epsilon: float, delta: float) -> float:
    """Return a bound on the probability of right guesses as extreme as these at any of several numbers of guesses.

    The numbers are fixed beforehand; the most confident guesses come first. The bound need not increase with epsilon.

    Args:
        correct: the right ones among the first guesses, for each number.
        guesses: the numbers, increasing.
        canaries, epsilon, delta: as in `p_value`.
    """
    chance = _right(epsilon)
    tails = [_tails(number, chance) for number in guesses]
    least = min(float(tail[right]) for tail, right in zip(tails, correct, strict=True))
    law, reached, before = np.ones(1), 0.0, 0
    for number, tail in zip(guesses, tails, strict=True):
        law = np.convolve(law, np.exp(binomial.log_masses(number - before, chance)))
        as_rare = tail <= least * (1.0 + 1e-9)  # rounding may only enlarge the event
        reached, before = reached + float(law[as_rare].sum()), number
        law[as_rare] = 0.0
    # A sum of positive terms errs by one unit of roundoff per term, a mass by about 64 units of its logarithm.
    error = UNIT * (8.0 * guesses[-1] + 4096.0)
    wrong = 1.0 / (1.0 + math.exp(epsilon))  # 1 - chance would be rounded down
    return min(1.0, reached * (1.0 + error) + up(wrong * canaries * delta, 8.0))


def walk_epsilon_lower(
    correct: Sequence[int], guesses: Sequence[int], canaries: int, delta: float, alpha: float
) -> float:
    """Return the last point of a fixed grid before the first whose p-value exceeds alpha; 0 where that is the first."""
    epsilon, step = 0.0, _STEPS[0]
    while epsilon < LARGEST:
        following = epsilon + step if epsilon < 1.0 else epsilon * _STEPS[1]
        if walk_p_value(correct, guesses, canaries, following, delta) > alpha:
            return max(0.0, down(epsilon))
        epsilon = following
    return max(0.0, down(epsilon))


def _tails(guesses: int, chance: float) -> Array:
    """Return P(Bin(r, q) >= k) for k = 0, ..., r, not rounded up."""
    tails: Array = np.exp(binomial.log_masses(guesses, chance))[::-1].cumsum()[::-1]
    return tails


# --- a whole curve ----------------------------------------------------------------------------------------------------


def curve_p_value(correct: int, guesses: int, canaries: int, cuts: Cuts, *, joint: bool = True) -> float:
    """Return a bound on the probability of ``correct`` or more right guesses for all runs with a privacy profile.

    It is the least of the bounds at single points, and of a linear programme for all points if there are few guesses.

    Args:
        correct, guesses, canaries: as in `p_value`.
        cuts: points of the profile.
        joint: whether to use the linear programme.
    """
    alone = min(p_value(correct, guesses, canaries, epsilon, delta) for epsilon, delta in cuts)
    if not joint or guesses > MOST_IN_PROGRAMME or correct == 0:
        return alone
    return min(alone, _programme(correct, guesses, canaries, cuts))


def _programme(correct: int, guesses: int, canaries: int, cuts: Cuts) -> float:
    """Return a bound on P(V >= v) over distributions h of V that satisfy all cuts for a flip of any coin.

    For each cut, with g = e^epsilon, sum_k (k h_k - g (r-k+1) h_(k-1))_+ is at most m delta. The terms of right guesses
    that become wrong are 0 at the maximum, and left out. Whatever the solver returns, its multipliers, projected onto
    their domain, give a bound by weak duality.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    k, ones = np.arange(guesses + 1.0), np.ones((1, guesses))
    wins = (k >= correct).astype(float)
    flips = [
        sparse.diags([k[1:], -math.exp(epsilon) * (guesses - k[:-1])], [1, 0], shape=(guesses, guesses + 1))
        for epsilon, _ in cuts
    ]
    rows, room = sparse.vstack(flips).tocsr(), np.array([canaries * delta for _, delta in cuts])
    count = rows.shape[0]
    above = sparse.bmat([[rows, -sparse.eye(count)], [None, sparse.kron(sparse.eye(len(cuts)), ones)]], format="csr")
    solved = linprog(
        np.concatenate((-wins, np.zeros(count))), A_ub=above, b_ub=np.concatenate((np.zeros(count), room)),
        A_eq=np.concatenate((np.ones(guesses + 1), np.zeros(count)))[None, :], b_eq=[1.0], method="highs-ds",
    )  # fmt: skip
    if solved.status != 0:
        return 1.0
    multipliers = np.nan_to_num(np.maximum(-solved.ineqlin.marginals, 0.0))
    weights = multipliers[count:]
    parts = np.minimum(multipliers[:count], np.repeat(weights, guesses))
    size = float((abs(rows).T @ parts).max() + weights @ room + 1.0)
    bound = float((wins - rows.T @ parts).max() + weights @ room)
    return float(min(1.0, bound + UNIT * (count + 64.0) * size))
