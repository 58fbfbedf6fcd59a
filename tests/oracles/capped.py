"""The capped softmax with 50 digits, solved by Newton's method, and known to be solved by the conditions of optimality.

The slope maximises a concave function over a ball: a point that meets the conditions of optimality, which are checked
to 35 digits, is the maximiser.
"""

from collections.abc import Sequence
from typing import Any

import mpmath as mp

_DIGITS = 50


def slope(scores: Sequence[float], label: int, cap: float, near: Sequence[float]) -> list[Any]:
    """Return g, the gradient of the capped softmax in its scores.

    Args:
        scores: z, K numbers.
        label: y.
        cap: c.
        near: a slope to start from.
    """
    with mp.workdps(_DIGITS):
        others = [j for j in range(len(scores)) if j != label]
        apart = [mp.mpf(float(scores[j])) - mp.mpf(float(scores[label])) for j in others]
        top = max(*apart, mp.mpf(0))
        weights = [mp.exp(a - top) for a in apart]
        shares = [w / (mp.fsum(weights) + mp.exp(-top)) for w in weights]
        if _length(shares) > cap:
            shares = _solved(apart, mp.mpf(cap), [mp.mpf(float(near[j])) for j in others])
        found = dict(zip(others, shares, strict=True))
        found[label] = -mp.fsum(shares)
        return [found[j] for j in range(len(scores))]


def distance(one: Sequence[Any], other: Sequence[Any]) -> Any:
    """Return the Euclidean distance."""
    with mp.workdps(_DIGITS):
        return mp.sqrt(mp.fsum((mp.mpf(float(a)) - b) ** 2 for a, b in zip(one, other, strict=True)))


def _length(shares: Sequence[Any]) -> Any:
    return mp.sqrt(mp.fsum(shares) ** 2 + mp.fsum(q * q for q in shares))


def _solved(apart: Sequence[Any], cap: Any, shares: Sequence[Any]) -> list[Any]:
    """Return q of the other classes with a = ln q - ln(1 - m) + s (q + m) and |g| = c, by Newton's method."""
    m, best = mp.fsum(shares), max(range(len(shares)), key=lambda j: shares[j])
    s = (apart[best] - mp.log(shares[best]) + mp.log(1 - m)) / (shares[best] + m)
    logs = [mp.log(q) if q > 0 else a + mp.log(1 - m) - s * m for q, a in zip(shares, apart, strict=True)]
    for _ in range(9):
        q = [mp.exp(level) for level in logs]
        missing = [a + mp.log(1 - m) - level - s * (p + m) for a, level, p in zip(apart, logs, q, strict=True)]
        pull, weights = s + 1 / (1 - m), [p / (1 + s * p) for p in q]
        first = [[w * t for w, t in zip(weights, row, strict=True)] for row in ([mp.mpf(1)] * len(q), q)]
        system = mp.matrix(2, 2)
        for place, row in enumerate(first):
            system[place, 0] = -pull * mp.fsum(row) + (m if place else -1)
            system[place, 1] = -mp.fsum(w * (p + m) for w, p in zip(row, q, strict=True))
        right = [m - mp.fsum(q), (cap * cap - m * m - mp.fsum(p * p for p in q)) / 2]
        right = [
            each - mp.fsum(w * r for w, r in zip(row, missing, strict=True))
            for each, row in zip(right, first, strict=True)
        ]
        dm, ds = mp.lu_solve(system, mp.matrix(right))
        logs = [
            level + (r - pull * dm - (p + m) * ds) / (1 + s * p)
            for level, r, p in zip(logs, missing, q, strict=True)
        ]  # fmt: skip
        m, s = m + dm, s + ds
    q = [mp.exp(level) for level in logs]
    missing = [a + mp.log(1 - m) - level - s * (p + m) for a, level, p in zip(apart, logs, q, strict=True)]
    least = mp.mpf(10) ** -35
    assert max(abs(each) for each in (*missing, m - mp.fsum(q), _length(q) - cap)) < least
    assert s >= 0
    return q
