"""The product of the moments of all parts of a composition, and the sum of the trapezoidal rule over it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flint import acb, arb

from dpcalc.certify.numerics.moments import LARGEST_T, Moments

_REST, _USUAL = 2.0**-26, 2.0**-22  # of delta: the most that far moments may add, and the room that most answers have
_FIRST_LOOK, MOST_TERMS = 16, 4000  # terms before the first check of the rest, and the most terms
_FARTHER, _MOST_WIDTHS = 8, 24  # intervals cover moments up to this multiple of t; the most intervals


class Product(NamedTuple):
    """The product of moments to the powers of their copies: a polynomial without negative coefficients.

    Its variables are the moments of the losses that are not 0.
    """

    moments: Sequence[tuple[Moments, int]]

    def whole(self, values: Sequence[Any]) -> Any:
        """Return the product."""
        counts = zip(self.moments, values, strict=True)
        return math.prod(((moments.at_zero + value) ** copies for (moments, copies), value in counts), start=arb(1))

    def of_none(self) -> arb:
        """Return the term in which every loss is 0; 0 if a part has no loss of 0."""
        rests = all(moments.at_zero > 0 for moments, _ in self.moments)
        return self.whole([arb(0) for _ in self.moments]) if rests else arb(0)

    def of_one(self, values: Sequence[Any]) -> Any:
        """Return the terms in which exactly one loss is not 0; 0 if a part has no loss of 0."""
        if not (none := self.of_none()) > 0:
            return arb(0)
        counts = zip(self.moments, values, strict=True)
        return none * sum(copies * value / moments.at_zero for (moments, copies), value in counts)

    def beyond(self, t: arb) -> arb:
        """Return a bound on `of_more` for all larger t."""
        return self.of_more([moments.beyond(t) for moments, _ in self.moments])

    def of_more(self, values: Sequence[Any]) -> Any:
        """Return the terms in which more than one loss is not 0; all terms if a part has no loss of 0."""
        return self.whole(values) - self.of_one(values) - self.of_none()


def terms_needed(product: Product, delta: arb, period: arb) -> int:
    """Return an estimate of the number of terms needed, for delta/exp(-c eps) = ``delta``."""
    k, step, rest = _FIRST_LOOK, 2 * arb.pi() / period, delta * _USUAL * arb.pi()
    while k < MOST_TERMS and not product.beyond(k * step) <= rest * k * step:
        k = k * 5 // 4
    return k


def sum_of_terms(product: Product, alone: arb, c: arb, epsilon: arb, period: float, goal: arb) -> arb | None:
    """Return the sum of ``alone``, the terms and a bound on the rest; None if it takes too many terms.

    The rest is small if it is at most half of the distance to the goal, or negligible relative to delta.
    """
    total, next_look, step = alone * arb(period), _FIRST_LOOK, 2 * arb.pi() / arb(period)
    for k, values in enumerate(zip(*(moments.on_grid(step) for moments, _ in product.moments), strict=True)):
        if k > MOST_TERMS or not k * step <= LARGEST_T:  # the errors of moments are bounded up to there
            return None
        phi, s = product.of_more(values), acb(c, k * step)
        total += ((1 if k == 0 else 2) * phi * (-s * epsilon).exp() / (s * (s + 1))).real
        if k < next_look or not total > 0:
            continue
        share = (-c * epsilon).exp() / (arb.pi() * k * step)  # of a largest phi
        delta = total / arb(period)
        rest = (delta * _REST).max((goal - delta) / 2)
        limit = rest / share
        if abs(phi) < limit and _is_small(product, k * step, limit):
            return delta + rest
        next_look = k * 5 // 4
    raise AssertionError("the moments do not end")


def _is_small(product: Product, t: arb, limit: arb) -> bool:
    """Return whether the product of the moments is proved to be at most the limit for all larger t."""
    end = t
    while not product.beyond(end) <= limit:
        end = 2 * end
        if end > _FARTHER * t or end > LARGEST_T:
            return False
    width = end - t
    for _ in range(_MOST_WIDTHS):
        if not t < end:
            return True
        width = width.min(end - t)
        small = product.of_more([moments.between(t, width) for moments, _ in product.moments]) <= limit
        t, width = (t + width, 2 * width) if small else (t, width / 2)
    return False
