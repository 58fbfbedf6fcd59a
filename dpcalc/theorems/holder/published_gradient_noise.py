"""Theorem 11 of Wang, Lei, Ying and Zhang (2022): the noise on every gradient that it names for a budget.

It uses the lemma of `dp_sgd.gradient_lemma`, which is for whole orders, at a real one. Without its conditions (32) and
(33) the noise does not keep the privacy that is claimed. Nothing here is a guarantee.
"""

from __future__ import annotations

import functools
import math

from dpcalc.errors import NotApplicable
from dpcalc.model.draft import Frozen
from dpcalc.model.numbers import shown_apart
from dpcalc.numerics.floats import up
from dpcalc.numerics.roots import greatest, least
from dpcalc.theorems.holder.holder import LEAST_SQUARE, slack

_SHARES = tuple(10.0 ** (-j / 12.0) for j in range(145))  # 1 to 1e-12


class Theorem11(Frozen):
    """The noise of Theorem 11 as a function of beta in (0, 1), the share of epsilon that is for the steps' divergence.

    Attributes:
        records, steps, batch_size: n, T and m.
        epsilon, log_delta: the budget.

    >>> budget = Theorem11(records=1000, steps=1000, batch_size=1, epsilon=1.0, log_delta=math.log(1e-6))
    >>> round(budget.best_share, 12), round(budget.largest_share() or 0.0, 13)
    (0.508734452385, 0.0038129137434)
    """

    records: int
    steps: int
    batch_size: int
    epsilon: float
    log_delta: float

    def order(self, share: float) -> float:
        """Return lambda = ln(1/delta)/((1 - beta) eps) + 1.

        >>> budget = Theorem11(records=1, steps=1, batch_size=1, epsilon=4.0, log_delta=math.log(1e-6))
        >>> round(budget.order(0.5), 12)
        7.907755278982
        """
        return -self.log_delta / ((1.0 - share) * self.epsilon) + 1.0

    def square(self, share: float) -> float:
        """Return s^2 = 3.5 T lambda p^2/(beta eps), sigma^2 over (2 G/m)^2: condition (32) wants it to be >= 0.67."""
        return 3.5 * self.steps * self.order(share) * (self.batch_size / self.records) ** 2 / (share * self.epsilon)

    def slack(self, share: float) -> float:
        """Return by how much condition (33) holds; negative where it fails.

        >>> budget = Theorem11(records=10000, steps=10000, batch_size=1, epsilon=1.0, log_delta=math.log(1e-8))
        >>> round(budget.slack(0.0005), 11)
        13.8717841483
        """
        return slack(order=self.order(share), rate=self.batch_size / self.records, square=self.square(share))

    def holds(self, share: float) -> bool:
        """Return whether conditions (32) and (33) hold."""
        return self._margin(share) >= 0.0

    def _margin(self, share: float) -> float:
        return min(self.square(share) - LEAST_SQUARE, self.slack(share))

    def noise_std(self, share: float, gradient: float) -> float:
        """Return sigma for gradients of norm at most G, to nearest.

        sigma^2 = (14 G^2 T/(beta n^2 eps)) (ln(1/delta)/((1 - beta) eps) + 1).

        Raises:
            NotApplicable: condition (32) or (33) fails; at this noise the privacy claimed may be far off.
        """
        square, margin = self.square(share), self.slack(share)
        if square < LEAST_SQUARE:
            raise NotApplicable(
                f"condition (32) of Theorem 11 fails: sigma^2/(4 G^2) = {shown_apart(square, 0.67)[0]} is below 0.67",
                "take a smaller share beta, or the composed bound",
            )
        if margin < 0.0:
            raise NotApplicable(
                f"condition (33) of Theorem 11 fails by {-margin:.6g}", "take another share beta, or the composed bound"
            )
        return math.sqrt(square) * 2.0 * gradient / self.batch_size

    @functools.cached_property
    def best_share(self) -> float:
        """beta* = sqrt(1 + c)/(sqrt(1 + c) + sqrt(c)), c = ln(1/delta)/eps: least noise, conditions aside."""
        c = -self.log_delta / self.epsilon
        return math.sqrt(1.0 + c) / (math.sqrt(1.0 + c) + math.sqrt(c))

    def largest_share(self) -> float | None:
        """Return the largest beta <= beta* at which (32) and (33) hold, or None.

        It is looked for on a grid of twelve a decade, then as a root.
        """
        if self.holds(self.best_share):
            return self.best_share
        above = self.best_share
        for share in _SHARES:
            if share >= self.best_share:
                continue
            if self.holds(share):
                return greatest(lambda x: -self._margin(x), share, above)
            above = share
        return None

    def least_ratio(self) -> float:
        """Return the least s = sigma m/(2 G) for any beta where the conditions hold; inf if none.

        Shares above beta* are tried where no smaller one will do.

        >>> budget = Theorem11(records=10**6, steps=10**6, batch_size=1, epsilon=2.0, log_delta=math.log(1e-12))
        >>> round(budget.least_ratio(), 12)
        1.439768991629
        """
        best, share = self.best_share, self.largest_share()
        square = math.inf if share is None else self.square(share)
        if share != best:
            for part in range(1, 40):
                more = best + (1.0 - best) * part / 40.0
                if self.square(more) < square and self.holds(more):
                    square = self.square(more)
        return math.sqrt(square)


def least_epsilon(*, records: int, steps: int, batch_size: int, ratio: float, log_delta: float) -> float:
    """Return the least epsilon for which Theorem 11 asks for no more than s = ``ratio``; inf above 1e6."""

    def excess(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon - 16.0)
        budget = Theorem11(records=records, steps=steps, batch_size=batch_size, epsilon=epsilon, log_delta=log_delta)
        needed = budget.least_ratio()
        return needed / ratio - 1.0 if math.isfinite(needed) else 1e300

    return math.inf if excess(30.0) > 0.0 else up(math.exp(least(excess, 0.0, 30.0, ulps=1 << 16) - 16.0), 8.0)
