"""Optimal composition: the exact guarantee of ``count`` adaptive (epsilon0, delta0)-DP mechanisms, rounded up.

The worst case is ``count`` copies of randomised response that reveals its secret with probability delta0 (Kairouz, Oh
and Viswanath 2015; Murtagh and Vadhan 2016). With E = count, f(x) = C(E, x) p^x (1-p)^(E-x), p = e^eps0/(1 + e^eps0),
g(x) = (2x - E) eps0 - epsilon and k the least x with g(x) > 0,

    1 - delta = (1 - delta0)^E (1 - d),   d = sum_{x >= k} f(x) (1 - exp(-g(x))),
                                      1 - d = sum_{x < k} f(x) + sum_{x >= k} f(x) exp(-g(x)).

Each of the three sums has positive, log-concave terms. They are added outward from an anchor, whose ln f is computed in
50 decimal digits; k and g(k) are computed with integers. The smaller of d and 1 - d is summed, so that ln delta keeps
its relative precision from delta = 1 - 1e-300 to delta = 10^(-10^14).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.numerics.floats import MAX, UNIT, log_add_exp, log_one_minus_exp, up
from dpcalc.numerics.roots import least

if TYPE_CHECKING:
    from decimal import Decimal

_LN_2 = 0.6931471805599453
_DIGITS = 50  # terms of ln f are up to 1e17: 33 digits are left of their difference
_NEGLIGIBLE = 2.0**-60  # relative to a sum: far below a unit of roundoff
_FEW = 10000  # up to this many terms above the anchor are added one by one
_SLACK = 1e-12  # bounds the relative error of sums over blocks
_SATURATED = 45.0  # 1 - exp(-45) is 1 to double precision
_TINY = 1e-280  # a smaller epsilon0 is scaled up, so that its products do not underflow
_HUGE = 1e300  # neighbouring doubles are 1e284 apart: 1 - d is below exp(-1e284) wherever d is not 0
_SCALE = 128  # binary places by which it is scaled


def log_delta(*, epsilon0: float, log_delta0: float, count: int, epsilon: float) -> float:
    """Return an upper bound on ln delta at ``epsilon`` of ``count`` adaptive (epsilon0, delta0)-DP mechanisms.

    Args:
        epsilon0: epsilon of each, epsilon0 >= 0 (inf allowed: delta = 1).
        log_delta0: ln delta of each, <= 0; -inf for pure DP.
        count: number of mechanisms, 1 to 1e15.
        epsilon: epsilon >= 0 of the composition.

    Returns:
        ln delta <= 0, within 1e-12 max(1, -ln delta) of the exact value up to count = 1000, and within twice that
        beyond; -inf only if delta is 0: log_delta0 = -inf and epsilon >= count epsilon0.

    >>> round(log_delta(epsilon0=0.1, log_delta0=math.log(1e-3), count=100, epsilon=0.0), 10)
    -0.8191330026
    """
    if log_delta0 >= 0.0 or epsilon0 == math.inf:
        return 0.0
    log_none_revealed = _log_none_revealed_down(log_delta0, count)
    pure, pure_rest = _Pure(epsilon0, count).log_parts(epsilon)
    rest = log_none_revealed + pure_rest
    if rest < -_LN_2:
        # ln(1 - e^rest): two additions and the errors of exp and log change e^rest by less than this allowance.
        value = log_one_minus_exp(rest - UNIT * (4.0 * min(-rest, 1e3) + 16.0))
        return min(0.0, up(value, 4.0) + 1e-323)
    value = log_add_exp(pure, _log_any_revealed_up(log_delta0, count, log_none_revealed) + pure_rest)
    return min(0.0, value + UNIT * (4.0 * -value + 16.0)) if value > -math.inf else value


def epsilon(*, epsilon0: float, log_delta0: float, count: int, log_delta_target: float) -> float:
    """Return the least epsilon >= 0 at which ``count`` (epsilon0, delta0)-DP mechanisms are within delta, rounded up.

    inf if no epsilon suffices, because the target is below 1 - (1 - delta0)^count.

    Args:
        epsilon0: epsilon of each, epsilon0 >= 0.
        log_delta0: ln delta of each, <= 0; -inf for pure DP.
        count: number of mechanisms, 1 to 1e15.
        log_delta_target: ln delta of the composition, <= 0; -inf asks for pure DP.

    >>> round(epsilon(epsilon0=0.5, log_delta0=-math.inf, count=30, log_delta_target=math.log(1e-9)), 10)
    14.9984968687
    """

    def excess(e: float) -> float:
        reached = log_delta(epsilon0=epsilon0, log_delta0=log_delta0, count=count, epsilon=e)
        if log_delta_target == -math.inf:
            return -1.0 if reached == -math.inf else 1.0
        return reached - log_delta_target

    ceiling = min(MAX, up(epsilon0 * count, 2.0))
    return least(excess, 0.0, ceiling) if excess(ceiling) <= 0.0 else math.inf


def _log_none_revealed_down(log_delta0: float, count: int) -> float:
    """Return count ln(1 - delta0), rounded down."""
    return -1e-280 if log_delta0 < -700.0 else -up(-count * log_one_minus_exp(log_delta0), 8.0)


def _log_any_revealed_up(log_delta0: float, count: int, log_none: float) -> float:
    """Return ln(1 - (1 - delta0)^count), rounded up."""
    if log_delta0 < -700.0:
        value = log_delta0 + math.log(count)
        return value + UNIT * (4.0 * -value + 64.0) if value > -math.inf else value
    value = log_one_minus_exp(log_none)
    return value + UNIT * 8.0 * (1.0 - value)


class _Pure(NamedTuple):
    """``copies`` of randomised response: the law f of the number of larger losses."""

    epsilon0: float
    copies: int

    def log_parts(self, epsilon: float) -> tuple[float, float]:
        """Return an upper bound on ln d and the matching lower bound on ln(1 - d)."""
        if self.epsilon0 == 0.0 or epsilon == math.inf:
            return -math.inf, 0.0
        first, gap = self._threshold(epsilon)
        if first > self.copies:
            return -math.inf, 0.0
        if self.epsilon0 > _HUGE:
            return 0.0, -math.inf
        if self.epsilon0 < _TINY:
            # Here 1 - exp(-g) is g, and d proportional to (epsilon0, epsilon), up to a relative 1e-200.
            value, rest = _Pure(math.ldexp(self.epsilon0, _SCALE), self.copies).log_parts(math.ldexp(epsilon, _SCALE))
            return value - _SCALE * _LN_2 + 4.0 * UNIT * (abs(value) + _SCALE), rest
        small = math.exp(-self.epsilon0)
        mode = self.copies - int(self.copies * small / (1.0 + small))  # about count p
        if first <= mode:
            rest = self._log_rest(first, gap)
            if rest < -_LN_2:
                return up(log_one_minus_exp(rest), 4.0), rest
        value = self._log_gain(first, gap, max(first, mode))
        return value, log_one_minus_exp(value)

    def _threshold(self, epsilon: float) -> tuple[int, float]:
        """Return k, the least x with g(x) > 0, and g(k) correctly rounded (inf if too large)."""
        a, b = self.epsilon0.as_integer_ratio()
        c, d = epsilon.as_integer_ratio()
        k = (self.copies * a * d + b * c) // (2 * a * d) + 1
        numerator, denominator = (2 * k - self.copies) * a * d - b * c, b * d
        try:
            return k, numerator / denominator
        except OverflowError:
            return k, math.inf

    def _log_gain(self, first: int, gap: float, anchor: int) -> float:
        """Return ln d, rounded up: the sum from ``anchor`` >= k upward, and from there down to k."""
        law = self._law(anchor)
        gain = _Gain(self.epsilon0, gap, anchor - first)
        total = math.fsum(law.terms(self.copies, 1, gain)) + math.fsum(law.terms(first, -1, gain))
        value = law.log_anchor + math.log(total)
        return min(0.0, value + law.slack(value))

    def _log_rest(self, first: int, gap: float) -> float:
        """Return ln(1 - d), rounded down: the sum upward from k of f exp(-g), and downward from k - 1 of f."""
        law = self._law(first)
        above = math.fsum(law.mirrored().terms(self.copies, 1)) * max(0.0, math.exp(-gap) - 1e-323)
        total = above + math.fsum(law.terms(0, -1))
        if total == 0.0:
            return -math.inf
        value = law.log_anchor + math.log(total)
        return value - law.slack(value)

    def _law(self, anchor: int) -> _Law:
        """Return the law with ln f(anchor) and slope correctly rounded, from 50 digits."""
        from decimal import Context, Decimal, localcontext

        with localcontext(Context(prec=_DIGITS, traps=[])):
            e = Decimal(self.epsilon0)
            others = self.copies - anchor
            log_f = _log_factorial(self.copies) - _log_factorial(anchor) - _log_factorial(others)
            log_f -= others * e + self.copies * (1 + (-e).exp()).ln()
            slope = float(e + (Decimal(others) / anchor).ln()) if others else 0.0
            return _Law(self.epsilon0, self.copies, anchor, float(log_f), slope)


class _Gain(NamedTuple):
    """1 - exp(-g) as a function of the distance from the anchor, which is ``shift`` above k."""

    epsilon0: float
    gap: float
    shift: int

    def at(self, j: float) -> float:
        return -math.expm1(-self.exponent(j))

    def exponent(self, j: float) -> float:
        return self.gap + 2.0 * self.epsilon0 * (j + self.shift)


class _Law(NamedTuple):
    """f relative to its value at the anchor, for p = e^tilt/(1 + e^tilt), and sums of it to either side."""

    tilt: float
    copies: int
    anchor: int
    log_anchor: float
    slope: float
    """tilt + ln((count - anchor)/anchor): the derivative of ln f at the anchor, up to O(1/anchor)."""

    def mirrored(self) -> _Law:
        """Return the law for 1 - p, still relative to the same f at the same anchor."""
        return self._replace(tilt=-self.tilt, slope=self.slope - 2.0 * self.tilt)

    def slack(self, value: float) -> float:
        """Return a bound on the error of ``value``, the log of a sum of `terms` plus log_anchor."""
        blocks = _SLACK if self.copies - self.anchor > _FEW else 0.0
        return blocks + UNIT * (4.0 * abs(self.log_anchor) + 4.0 * abs(value) + 32.0)

    def terms(self, last: int, step: int, gain: _Gain | None = None) -> Iterator[float]:
        """Yield parts of sum f(x) (1 - exp(-g(x)))/f(anchor), from the anchor (step 1) or below it (step -1).

        Without ``gain`` the factor is 1. Terms are log-concave, so t(x+1)/t(x) falls and the rest after a falling pair
        is below a geometric series; the sum ends where that is negligible.
        """
        if self.copies - self.anchor > _FEW:
            return self._blocks(last, step, gain)
        return self._one_by_one(last, step, gain)

    def _one_by_one(self, last: int, step: int, gain: _Gain | None) -> Iterator[float]:
        """Yield single terms, by ratios; rounded up with a ``gain``, otherwise down.

        A step errs by at most 10 units of roundoff: one in each of six operations, four in the two exponentials, which
        are of half the exponent because e^-eps0 may underflow where the product does not.
        """
        half = math.exp(min(0.5 * step * self.tilt, 350.0)) * (1.0 + (6.0 if gain else -6.0) * UNIT)
        f, x, total, before = 1.0, self.anchor, 0.0, self._anchor_term(step, gain)
        while True:
            if step > 0 or x < self.anchor:
                term = f * gain.at(x - self.anchor) if gain else f
                total += term
                yield term
                ratio = term / before if before > 0.0 else 1.0
                if ratio < 1.0 and term * ratio <= _NEGLIGIBLE * total * (1.0 - ratio):
                    return
                before = term
            if x == last:
                return
            f *= ((self.copies - x) / (x + 1) if step > 0 else x / (self.copies - x + 1)) * half * half
            x += step

    def _blocks(self, last: int, step: int, gain: _Gain | None) -> Iterator[float]:
        """Yield sums over blocks of consecutive terms by Gauss's five-point rule for such sums (`_rule`).

        A block is at most 1/3 standard deviation long, 1/2 of the length on which f falls by e, and 1/6 of that on
        which exp(-g/2) does. By Cauchy's estimate of the tenth derivative the rule is then good to 1e-13.
        """
        j = 0 if step > 0 else 1
        end = abs(last - self.anchor) + 1
        total, before, before_at = 0.0, self._anchor_term(step, gain), 0.0
        while j < end:
            size = min(end - j, self._block_size(step * j, step, gain))
            centre = j + 0.5 * (size - 1)
            part = value = at = 0.0
            for offset, weight in _rule(size):
                at = centre + offset
                value = self._at(step * at) * (gain.at(step * at) if gain else 1.0)
                part += weight * value
            total += part
            yield part
            if value < before:
                rate = math.log(before / value) / (at - before_at) if value > 0.0 else math.inf
                if value <= _NEGLIGIBLE * total * -math.expm1(-rate):
                    return
            before, before_at = value, at
            j += size

    @staticmethod
    def _anchor_term(step: int, gain: _Gain | None) -> float:
        """Return the term before the first one that is yielded; 0 if there is none."""
        return 0.0 if step > 0 else gain.at(0.0) if gain else 1.0

    def _block_size(self, j: int, step: int, gain: _Gain | None) -> int:
        """Return the number of terms in the block that starts at distance j."""
        above, below = self.copies - self.anchor - j, self.anchor + j
        if min(above, below) < 1:
            return 1
        slope = self.slope + math.log1p(-j / (self.copies - self.anchor)) - math.log1p(j / self.anchor)
        size = 2.0 / max(6.0 * math.sqrt(1.0 / above + 1.0 / below), 4.0 * abs(slope))
        if gain:
            clear = gain.exponent(j) - _SATURATED
            if clear < 0.0 or step < 0:
                size = min(size, max(1.0 / 6.0, 0.5 * clear) / gain.epsilon0)
        return max(1, int(size))

    def _at(self, j: float) -> float:
        """Return f(anchor + j)/f(anchor) for real j; by Stirling's series, for 1000 < anchor + j < count - 1000.

        ln f(anchor + j)/f(anchor) = j slope - n B(j/n) - m B(-j/m) - ln((1 + j/n)(1 - j/m))/2 + O(j/n^2 + j/m^2) with
        n = anchor, m = count - anchor and B of `_deviance`.
        """
        n, m = float(self.anchor), float(self.copies - self.anchor)
        u, v = j / n, -j / m
        if v <= -1.0 or u <= -1.0:
            return 0.0
        log_value = j * self.slope - n * _deviance(u) - m * _deviance(v) - 0.5 * (math.log1p(u) + math.log1p(v))
        log_value -= _stirling_tail(n + j) - _stirling_tail(n) + _stirling_tail(m - j) - _stirling_tail(m)
        return math.exp(min(log_value, 700.0))


def _rule(size: int) -> Iterator[tuple[float, float]]:
    """Yield (offset, weight) in rising order: sums over ``size`` consecutive integers about 0, exact to degree 9.

    The offsets are the zeros of the orthogonal (Gram) polynomial x^5 - (b1+b2+b3+b4) x^3 + (b1 b3 + b1 b4 + b2 b4) x,
    b_n = n^2 (size^2 - n^2)/(4 (4 n^2 - 1)); the weights fit the moments 0, 2 and 4. Short blocks have a point
    for every term.
    """
    if size < 8:
        yield from ((i - 0.5 * (size - 1), 1.0) for i in range(size))
        return
    b1, b2, b3, b4 = (n * n * (float(size) ** 2 - n * n) / (4.0 * (4 * n * n - 1)) for n in (1, 2, 3, 4))
    half, product = 0.5 * (b1 + b2 + b3 + b4), b1 * b3 + b1 * b4 + b2 * b4
    outer = half + math.sqrt(half * half - product)
    inner = product / outer
    far = 0.5 * size * b1 * (b1 + b2 - inner) / (outer * (outer - inner))
    near = 0.5 * size * b1 * (b1 + b2 - outer) / (inner * (inner - outer))
    r, s = math.sqrt(outer), math.sqrt(inner)
    yield from ((-r, far), (-s, near), (0.0, size - 2.0 * (far + near)), (s, near), (r, far))


def _deviance(t: float) -> float:
    """Return (1 + t) ln(1 + t) - t, the Bernoulli deviance, for t > -1, within a few units of roundoff."""
    if abs(t) > 0.14:
        return (1.0 + t) * math.log1p(t) - t
    w = t / (2.0 + t)
    z = w * w
    series = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13)))))
    return t * w + 2.0 * (1.0 + t) * w * z * series


def _stirling_tail(n: float) -> float:
    """Return ln n! - (n + 1/2) ln n + n - ln(2 pi)/2 for n > 1000, within 1e-18."""
    return (1.0 / 12.0 - 1.0 / (360.0 * n * n)) / n


@functools.lru_cache(maxsize=1024)
def _log_factorial(n: int) -> Decimal:
    """Return ln n! in the decimal context of `_law`, within 1e-34 or so: Stirling's series from n = 100."""
    from decimal import Decimal

    if n < 100:
        return Decimal(math.factorial(n)).ln()
    x = Decimal(n)
    series = sum(Decimal(a) / (b * x ** (2 * i + 1)) for i, (a, b) in enumerate(_STIRLING))
    return (x + Decimal("0.5")) * x.ln() - x + Decimal(_HALF_LN_2PI) + series


_STIRLING = ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156), (-3617, 122400))
_HALF_LN_2PI = "0.91893853320467274178032973640561763986139747363778"
