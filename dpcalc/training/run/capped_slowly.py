"""The slope of one record's capped softmax with 40 digits: a bisection that ends, whatever the scores.

`dpcalc.training.run.capped` asks for it where doubles do not settle a record. All that is solved here is monotone: the
length of the slope in s, the sum of the shares in their level, and each share by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext

_DIGITS = 40
_FINE = Decimal(10) ** -30


def solved(apart: Sequence[float], cap: float) -> list[float]:
    """Return q of the other classes, for scores that are so far above that of the label.

    Args:
        apart: a, finite numbers.
        cap: c > 0, below 1 and shorter than the slope of the softmax.
    """
    with localcontext(Context(prec=_DIGITS)):
        scores, longest = [Decimal(0), *(Decimal(score) for score in apart)], Decimal(cap) ** 2
        low = high = Decimal(1)
        while _length(_shares(scores, low)) <= longest and low > _FINE:
            low /= 2
        while _length(_shares(scores, high)) > longest:
            high *= 2
        while high - low > _FINE * high:
            middle = (low + high) / 2
            if _length(_shares(scores, middle)) > longest:
                low = middle
            else:
                high = middle
        return [float(share) for share in _shares(scores, high)[1:]]


def _length(shares: Sequence[Decimal]) -> Decimal:
    """Return |q - e_y|^2, with y the first class; 1 - q_y is the sum of the others."""
    return sum(shares[1:], Decimal(0)) ** 2 + sum((share * share for share in shares[1:]), Decimal(0))


def _shares(scores: Sequence[Decimal], spread: Decimal) -> list[Decimal]:
    """Return q = softmax(z - s (q - e_y)); Newton's method comes from where the sum of q is at least 1."""
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
    """Return l <= 0 with l + s e^l = x <= s: the left side is convex, and Newton's method comes from above."""
    level = min(x, Decimal(0))
    while True:
        share = spread * level.exp()
        step = (level + share - x) / (1 + share)
        if step <= _FINE:
            return level
        level -= step
