"""The curves of a step on b records drawn one by one with replacement from n, of which one differs.

It comes j times with probability w_j = C(b, j) n^-j (1-1/n)^(b-j); from some j on what is left counts as j = b. A curve
is a sum of Gaussian profiles, a bound for every way to share out what both laws have at 0: here it is done as the
half-line beyond c has it, where c and the shares are doubles that need only be about right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from flint import arb, fmpq

from dpcalc.certify.numerics.composition import Curve
from dpcalc.certify.runs.matching import hockey_stick

_LOG_REST = -120.0
_HALVINGS = 50


class Draws:
    """The weights of the numbers of draws.

    Args:
        draws, records: b >= 1 and n >= 2.

    Attributes:
        none: w_0.
        some: (j, w_j) for j >= 1.
    """

    def __init__(self, draws: int, records: int) -> None:
        mean = draws / records
        self.none = weight = arb(fmpq(records - 1, records)) ** draws
        self.some: list[tuple[int, arb]] = []
        for j in range(1, draws + 1):
            weight = weight * fmpq(draws - j + 1, j * (records - 1))
            self.some.append((j, weight))
            if j < draws and j + 1 > mean and (j + 1) * (1.0 + math.log(mean / (j + 1))) < _LOG_REST:
                # P(Bin >= i) <= (e mean/i)^i for i > mean.
                self.some.append((draws, (arb(1).exp() * fmpq(draws, records * (j + 1))) ** (j + 1)))
                break
        self._logs = [float(w.log()) for _, w in self.some]

    def removed(self, mu: arb) -> Curve:
        """Return the profile of (sum_j w_j N(2j mu), N(0)): N(0) is shared out."""

        def curve(z: arb) -> arb:
            left = z.expm1() + (1 - self.none)
            shares = self._shared(left, _above(2.0 * float(mu)))
            terms = (w * hockey_stick(t.log(), 2 * j * mu) for (j, w), t in zip(self.some, shares, strict=True))
            return sum(terms, arb(0))

        return curve

    def added(self, mu: arb) -> Curve:
        """Return the profile of (N(0), sum_j w_j N(2j mu)); it is at most 1 - g w_0, and 0 if that is not positive."""

        def curve(z: arb) -> arb:
            left = 1 - z.exp() * self.none
            if not left > 0:
                return left.max(arb(0))
            shares = self._shared(left * (-z).exp(), _above(2.0 * float(mu)))
            terms = (
                w * z.exp() * t * hockey_stick(-t.log(), 2 * j * mu)
                for (j, w), t in zip(self.some, shares, strict=True)
            )
            return sum(terms, arb(0))

        return curve

    def replaced(self, gap: arb) -> Curve:
        """Return the bound sum_j w_j delta_G(ln(g + t_j); j gap), with sum_j w_j t_j = (g - 1) w_0."""

        def curve(z: arb) -> arb:
            above, e = _above(float(gap)), float(z)
            shares = self._shared(z.expm1() * self.none, lambda j, c: _log_excess(above(j, c), e))
            terms = (
                w * hockey_stick((z.exp() + t).log(), j * gap) for (j, w), t in zip(self.some, shares, strict=True)
            )
            return sum(terms, arb(0))

        return curve

    def nulled(self, mu: arb) -> Curve:
        """Return sum_j w_j (x_j delta_G(ln(g/x_j); j mu) + y_j delta_G(ln(t_j/y_j); 2j mu)), x_j + y_j = 1."""

        def curve(z: arb) -> arb:
            gap, e = float(mu), float(z)

            def log_x(j: int, c: float) -> float:
                return min(0.0, e + 1.5 * (j * gap) ** 2 - c * j * gap)

            def log_excess(j: int, c: float) -> float:
                log_of = 2.0 * j * gap * (c - j * gap)
                return _log_excess(log_of, log_of + log_x(j, c))

            total = arb(0)
            c, shares = self._at(z.expm1() * self.none, log_excess)
            for (j, w), t in zip(self.some, shares, strict=True):
                x = arb(log_x(j, c)).exp() if t > 0 else arb(1)
                total += w * x * hockey_stick((z.exp() / x).log(), j * mu)
                if t > 0:
                    total += w * (1 - x) * hockey_stick((t / (1 - x)).log(), 2 * j * mu)
            return total

        return curve

    def _shared(self, whole: arb, log_excess: Callable[[int, float], float]) -> list[arb]:
        """Return t_j >= 0 with sum_j w_j t_j the whole, about in proportion to the excess at one c."""
        return self._at(whole, log_excess)[1]

    def _at(self, whole: arb, log_excess: Callable[[int, float], float]) -> tuple[float, list[arb]]:
        """Return c, and what is shared out there."""
        if not whole > 0:
            return 0.0, [arb(0) for _ in self.some]
        log_whole = float(whole.log())

        def logs(c: float) -> list[float]:
            return [log_excess(j, c) for j, _ in self.some]

        def enough(c: float) -> bool:
            return _log_sum([a + b for a, b in zip(self._logs, logs(c), strict=True)]) >= log_whole

        low, high = -1.0, 1.0
        while not enough(high):
            low, high = high, 2.0 * high
        while enough(low):
            low *= 2.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        found = logs(high)
        peak = max(found)
        parts = [arb(x - peak).exp() if x > -math.inf else arb(0) for x in found]
        total = sum((w * t for (_, w), t in zip(self.some, parts, strict=True)), arb(0))
        return high, [whole * t / total for t in parts]


def _above(gap: float) -> Callable[[int, float], float]:
    """Return ln of the density at j gap over that at 0, at c."""
    return lambda j, c: c * j * gap - 0.5 * (j * gap) ** 2


def _log_excess(log_of: float, log_less: float) -> float:
    """Return ln(e^a - e^b); -inf for a <= b."""
    return log_of + math.log(-math.expm1(log_less - log_of)) if log_less < log_of else -math.inf


def _log_sum(logs: Sequence[float]) -> float:
    peak = max(logs)
    return peak if peak == -math.inf else peak + math.log(sum(math.exp(x - peak) for x in logs))
