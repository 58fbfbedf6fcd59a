"""The normal distribution to full double precision: Mills ratio, ln Phi and the Gaussian hockey-stick divergence.

It also has quantiles of chi^2. Values are to nearest, with stated errors; `normal_arrays` has the array forms. ``phi``
is the standard normal density, ``Q`` its upper tail, ``M(u) = Q(u)/phi(u)`` the Mills ratio and
``D(u) = 1 - u M(u) = -M'(u)``. The hockey-stick divergence between N(r, 1) and N(0, 1),

    H(e, r) = Phi(r/2 - e/r) - exp(e) Phi(-r/2 - e/r),

is never formed as this difference. With x = e/r - r/2,

    1 - H = phi(x) (M(-x) + M(x + r))                     (used when x < -1),
    H     = phi(x) (M(x) - M(x + r)) = phi(x) int_x^{x+r} D(u) du   (otherwise),

and x and x^2/2 are carried in two doubles, so that ln H has full *relative* precision from H = 1 - 1e-300 to
H = 10^(-10^300).
"""

from __future__ import annotations

import functools
import math

from dpcalc.numerics.floats import MAX, UNIT, log_one_minus_exp, two_product, two_sum, up
from dpcalc.numerics.roots import greatest, least

LN_SQRT_2PI = 0.9189385332046728
_LEAST_LOG = -4e199  # the least ln H returned: at e/r = 1e100 it is -5e199; beyond, e/r and its square may overflow
INV_SQRT_2PI = 0.3989422804014327

MILLS_TABLE = (
    (4.896549163814754, 7.120686454768442),
    (3.4770518117036944, 4.477051811703695),
    (2.5681717549665746, 2.926128816224931),
    (1.9640174953579939, 1.982008747678997),
    (1.548372621547658, 1.3870931553869146),
    (1.2533141373155003, 1.0),
    (1.0378245758537268, 0.7405438560365682),
    (0.8763644564536923, 0.5618177717731538),
    (0.7525711790634081, 0.43557161570244396),
    (0.6556795424187984, 0.34432045758120156),
    (0.5784303460476311, 0.27696206744046115),
    (0.5158156382179634, 0.22627654267305497),
    (0.4643069280394422, 0.1874628759309762),
    (0.4213692292880545, 0.15726154142389107),
    (0.3851482907984346, 0.1334163457035221),
    (0.35426511132979366, 0.11433722167551583),
    (0.32767831469055203, 0.09888463460098185),
    (0.3045902987101033, 0.08622910386969011),
    (0.28438214674849294, 0.075758023067398),
    (0.26656776896822376, 0.06701280861121685),
    (0.250761111443965, 0.05964583208513115),
    (0.23665238291356067, 0.053390468345757315),
)
"""(M(k/4), D(k/4)) for k = -5..16, correctly rounded."""
TABLE_LAST = 4.125
"""Up to here the Mills ratio is a Taylor series about the nearest table entry; beyond, a continued fraction."""
TAYLOR_TERMS = 18
FIRST_DOWNWARDS = 8
"""Below this cell, at 2, the upward recurrence gives accurate high Taylor coefficients."""
_CELL_TERMS = 13  # beyond the table m_{j+1}/m_j is below 1/4, and distances are at most 1/8


CELL_LAST = 32.125
"""Up to here scalars use a Taylor series about the nearest multiple of 1/4; beyond, a continued fraction."""


def mills(u: float) -> float:
    """Return the Mills ratio M(u) = Q(u)/phi(u), for u >= -1.25, within 3 units of roundoff."""
    if u > CELL_LAST:
        return 1.0 / (u + _mills_fraction(u))
    nearest = round(4.0 * u)
    return _polynomial(_cell(nearest), u - 0.25 * nearest)


def _polynomial(coefficients: tuple[float, ...], h: float) -> float:
    """Return the value at h of a polynomial, highest coefficient first."""
    value = 0.0
    for c in coefficients:
        value = value * h + c
    return value


@functools.cache
def _cell(nearest: int) -> tuple[float, ...]:
    """Return the Taylor coefficients of M about nearest/4, highest first, for distances up to 1/8."""
    if 0.25 * nearest < TABLE_LAST:
        return tuple(reversed(_upwards(nearest, TAYLOR_TERMS)))
    return tuple(reversed(_downwards(nearest, _CELL_TERMS)))


@functools.cache
def _long_cell(nearest: int, terms: int) -> tuple[float, ...]:
    """Return ``terms`` Taylor coefficients of M about nearest/4, highest first, accurate for long distances too."""
    return tuple(reversed(_upwards(nearest, terms) if nearest < FIRST_DOWNWARDS else _downwards(nearest, terms)))


def _upwards(nearest: int, terms: int) -> list[float]:
    """Return m_0, m_1, ...: M' = u M - 1 gives j m_j = u0 m_{j-1} + m_{j-2}, from two correctly rounded values."""
    value, slope = MILLS_TABLE[nearest + 5]
    series = [value, -slope]
    for j in range(2, terms):
        series.append((0.25 * nearest * series[-1] + series[-2]) / j)
    return series


def _downwards(nearest: int, terms: int) -> list[float]:
    """Return m_0, m_1, ... by the stable downward recurrence m_j/m_{j-1} = -1/(u0 + (j+1) k_j).

    The ratios -k_j are tails of the continued fraction of M.
    """
    u0 = 0.25 * nearest
    k, ratios = 0.0, [0.0] * (fraction_terms(u0) + terms)
    for j in range(len(ratios) - 1, -1, -1):
        ratios[j] = k = 1.0 / (u0 + (j + 1) * k)
    series = [ratios[0]]
    for ratio in ratios[1:terms]:
        series.append(-ratio * series[-1])
    return series


def _mills_fraction(u: float) -> float:
    """Return K(u) = 1/(u + 2/(u + 3/(u + ...))), so that M = 1/(u + K); u > 4."""
    if u > 1e8:
        return 1.0 / u
    k = 0.0
    for j in range(fraction_terms(u), 0, -1):
        k = j / (u + k)
    return k


def fraction_terms(u: float) -> int:
    """Return a sufficient number of terms of the continued fraction of M, for u >= 2."""
    return int(6 + 150.0 / u + 1000.0 / (u * u * u))


def log_phi(hi: float, lo: float = 0.0) -> float:
    """Return ln of the normal density at x = hi + lo (two doubles, |lo| <= ulp(hi))."""
    head, tail = _half_square(hi, lo)
    return -head - (LN_SQRT_2PI + tail)


def _density(head: float, tail: float) -> float:
    """Return the normal density where x^2/2 = head + tail, to full relative precision."""
    return INV_SQRT_2PI * math.exp(-head) * math.exp(-tail) if head < 1e4 else 0.0


def _half_square(hi: float, lo: float) -> tuple[float, float]:
    """Return x^2/2 in two doubles, x = hi + lo."""
    if abs(hi) < 1e-100:
        return 0.0, 0.0
    if abs(hi) > 1e140:
        return (0.5 * hi * hi if abs(hi) < 1e154 else MAX), 0.0
    p, e = two_product(hi, hi)
    return 0.5 * p, 0.5 * e + hi * lo


def log_ndtr(x: float) -> float:
    """Return ln Phi(x), the log of the standard normal distribution function, within 6 ulps."""
    if x <= 0.0:
        return log_phi(x) + math.log(mills(-x))
    return math.log1p(-_density(*_half_square(x, 0.0)) * mills(x))


_LN2 = 0.6931471805599453
_NEAR_QUANTILE = 2.0**-46  # relative: a bracket of about 128 units of roundoff around a value to nearest
_FARTHEST_QUANTILE = 1e8  # ln of its tail is -5e15


def quantile(log_tail: float, *, upwards: bool) -> float:
    """Return z with Q(z) = e^log_tail, Q the normal upper tail, rounded as asked; log_tail < 0.

    >>> round(quantile(math.log(0.025), upwards=True), 10)
    1.9599639845
    """
    if log_tail <= math.log(0.5):
        # The least z whose tail is provably at most this, or the greatest z whose tail is provably at least this.
        return _half_line(log_tail, -1.0, upwards=upwards)
    return -_half_line(log_tail, 1.0, upwards=not upwards)


def _half_line(log_tail: float, sign: float, *, upwards: bool) -> float:
    """Return w >= 0 with Phi(sign w) = e^log_tail, rounded as asked."""

    def too_low(w: float) -> float:
        value = log_ndtr(sign * w)
        return sign * (log_tail - value) + 8.0 * UNIT * abs(value) if value > -math.inf else -1.0

    def too_high(w: float) -> float:
        value = log_ndtr(sign * w)
        return sign * (value - log_tail) + 8.0 * UNIT * abs(value) if value > -math.inf else 1.0

    about = _about_quantile(log_tail if sign < 0.0 else log_one_minus_exp(log_tail))
    low, high = about * (1.0 - _NEAR_QUANTILE), about * (1.0 + _NEAR_QUANTILE)
    if upwards:
        if too_low(low) <= 0.0 or not too_low(high) <= 0.0:
            low, high = 0.0, _FARTHEST_QUANTILE
        return least(too_low, low, high)
    if too_high(high) <= 0.0 or not too_high(low) <= 0.0:
        low, high = 0.0, _FARTHEST_QUANTILE
    return greatest(too_high, low, high) if too_high(low) <= 0.0 else 0.0


def _about_quantile(log_tail: float) -> float:
    """Return an approximate z >= 0 with Q(z) = e^log_tail <= 1/2, by Halley's steps from the right; 0 if there is none.

    With h = 1/M(z) the derivatives of ln Q are -h and -h (h - z).
    """
    if not -1e15 < log_tail < -_LN2:
        return 0.0
    z = math.sqrt(-2.0 * (log_tail + _LN2))
    for _ in range(8):
        ratio = mills(z)
        gap = log_phi(z) + math.log(ratio) - log_tail
        h = 1.0 / ratio
        step = gap / h
        step /= 1.0 + 0.5 * step * (h - z)
        z = max(z + step, 0.0)
        if abs(step) <= 1e-6 * z:
            break
    return z


def log_hockey_stick(e: float, r: float) -> float:
    """Return ln H(e, r) for two unit Gaussians at distance r, to nearest, within `log_hockey_stick_error`.

    Args:
        e: threshold (log of the factor), e >= 0.
        r: distance, r > 0.

    Beyond r = 1e100 or e/r = 1e100 the value is only an upper bound (0 and -4e199), and no value is below the second.
    """
    q = e / r
    if r > 1e100:
        return 0.0
    if q > 1e100:
        return _LEAST_LOG
    x, x_lo = q - 0.5 * r, 0.0  # e/r - r/2, in two doubles if it matters
    if q >= 1e-130 and r >= 1e-130:
        p, p_lo = two_product(q, r)
        s, s_lo = two_sum(q, -0.5 * r)
        x, x_lo = two_sum(s, s_lo + ((e - p) - p_lo) / r)
    y = x + r
    head, tail = _half_square(x, x_lo)
    if x < -1.0:
        return math.log1p(-_density(head, tail) * (mills(-x) + mills(y)))
    return max(_LEAST_LOG, _log_mills_difference(x, r, y) - head - (LN_SQRT_2PI + tail))


def log_hockey_stick_error(value: float) -> float:
    """Return a bound on the absolute error of a finite ``value`` returned by `log_hockey_stick`.

    If x < -1 the complement 1 - H has a relative error of at most 20 units of roundoff (two exponentials, two Mills
    ratios, three products) and log1p keeps it. Otherwise H < 0.85, x^2/2 is exact to twice the precision, and the log
    of the integral and three additions each err by at most one unit of their result; the integral itself has an error
    of at most 16 units. Measured errors stay below 0.6 of this bound.
    """
    # The last term is for subnormal values, where relative errors mean nothing.
    return UNIT * (24.0 * -value if value > -0.15 else 4.0 * -value + 24.0) + 1e-323


def _log_mills_difference(x: float, r: float, y: float) -> float:
    """Return ln of M(x) - M(x + r) = int_x^{x+r} D for x >= -1, without cancellation."""
    if x > CELL_LAST:
        mean = _far_difference(x, r)
    elif r >= REACHES[-1][0] * max(x, 1.0):
        return math.log(mills(x) - mills(y))
    else:
        scale = max(x, 1.0)
        mean = _divided_difference(x, r, next(terms for reach, terms in REACHES if r < reach * scale))
    return math.log(r * mean) if r > 1e-100 else math.log(r) + math.log(mean)


REACHES = ((0.1, 18), (0.3, 22), (0.5, 27))
"""(r/max(x, 1), terms) of Taylor series about the middle of [x, x + r] that leave less than a unit of roundoff."""


def _divided_difference(x: float, r: float, terms: int) -> float:
    """Return (M(x) - M(x + r))/r, by Horner's scheme for the divided difference of a Taylor polynomial."""
    nearest = round(4.0 * x + 2.0 * r)
    first = x - 0.25 * nearest
    second = first + r
    value = difference = 0.0
    for c in _long_cell(nearest, terms)[:-1]:
        value = value * first + c
        difference = difference * second + value
    return -difference


def _far_difference(x: float, r: float) -> float:
    """Return (M(x) - M(x + r))/r for x > 30.

    M(u) = 1/(u + K_1), K_j(u) = j/(u + K_{j+1}), so that with y = x + r the quotients D_j = (K_j(x) - K_j(y))/r are
    K_j(x) K_j(y) (1 - D_{j+1})/j, and (M(x) - M(y))/r = M(x) M(y) (1 - D_1): nothing cancels.
    """
    y = x + r
    first = second = quotient = 0.0
    for j in range(far_terms(x), 0, -1):
        first, second = j / (x + first), j / (y + second)
        quotient = first * second * (1.0 - quotient) / j
    return (1.0 - quotient) / (x + first) / (y + second)


def far_terms(least: float) -> int:
    """Return a number of terms of the continued fraction that leave less than a unit of roundoff, for u >= least."""
    square, terms, left = least * least, 0, 1.0
    while left > 0.1 * UNIT:
        terms += 1
        left *= terms / square
    return terms


EXACT_UP_TO = 5000
"""Up to this many degrees of freedom the quantile is exact; beyond, it is Laurent and Massart's bound."""


def log_tail_up(x: float, *, freedom: int) -> float:
    """Return an upper bound on ln P(chi^2 >= x), x above the mean; accurate to 1e-10 of the probability.

    Q(a + 1, y) = Q(a, y) + y^a e^-y/Gamma(a + 1) from a = 1 or 1/2 up to freedom/2, y = x/2: all terms are positive.

    Args:
        x: >= freedom.
        freedom: 1 to 5000.
    """
    y, half = 0.5 * x, 0.5 * freedom
    # The terms from the last, y^(a-1) e^-y/Gamma(a), to the first: each is (a - 1)/y times the one before it.
    a, total, term = half, 0.0, 1.0
    while a > 1.0:
        total += term
        term *= (a - 1.0) / y
        a -= 1.0
    lead = (half - 1.0) * math.log(y) - y - math.lgamma(half)
    # The first term is Q(1, y) = e^-y, or Q(1/2, y) = 2 Phi(-sqrt(x)).
    base = -y if a == 1.0 else _LN2 + log_ndtr(-math.sqrt(x))
    terms = [base] if total == 0.0 else [base, lead + math.log(total)]
    peak = max(terms)
    value = peak + math.log(math.fsum(math.exp(t - peak) for t in terms))
    size = half * (abs(math.log(y)) + 2.0) + y + abs(math.lgamma(half))
    return value + UNIT * (32.0 + 4.0 * size + 4.0 * half)


def quantile_up(log_chance: float, *, freedom: int) -> float:
    """Return an x with P(chi^2 > x) <= chance, rounded up: the least up to 5000 degrees of freedom.

    Beyond, nu + 2 sqrt(nu t) + 2 t, t = ln(1/chance) (Laurent and Massart 2000), which holds for every nu.

    Args:
        log_chance: ln of the chance, < 0.
        freedom: nu >= 1.

    >>> round(quantile_up(math.log(0.001), freedom=2000), 8)
    2201.15619659
    """
    ceiling = laurent_massart_quantile_up(log_chance, freedom=freedom)
    if freedom > EXACT_UP_TO or log_tail_up(float(freedom), freedom=freedom) <= log_chance:
        return ceiling
    return up(min(ceiling, least(lambda x: log_tail_up(x, freedom=freedom) - log_chance, float(freedom), ceiling)), 2.0)


def laurent_massart_quantile_up(log_chance: float, *, freedom: int) -> float:
    """Return nu + 2 sqrt(nu t) + 2 t, t = ln(1/chance), rounded up.

    >>> round(laurent_massart_quantile_up(math.log(0.001), freedom=2000), 10)
    2248.8943106056
    """
    t = -log_chance
    return up(freedom + 2.0 * math.sqrt(freedom * t) + 2.0 * t, 8.0)


def published(log_chance: float, *, freedom: int) -> float:
    """Return nu (1 + sqrt(8 t/nu)), t = ln(1/chance), rounded up: a bound for chance > e^(-nu/8).

    >>> round(published(math.log(0.001), freedom=2000), 10)
    2332.4516272538
    """
    return up(freedom * (1.0 + math.sqrt(8.0 * -log_chance / freedom)), 8.0)


def normal_quantile_up(log_chance: float) -> float:
    """Return the least z >= 0 with P(N(0, 1) > z) <= chance, rounded up.

    >>> round(normal_quantile_up(math.log(0.025)), 12)
    1.95996398454
    """

    def excess(z: float) -> float:
        value = log_ndtr(-z)
        return value + 8.0 * UNIT * (1.0 - value) - log_chance

    return least(excess, 0.0, up(math.sqrt(-2.0 * log_chance) + 1.0, 4.0)) if log_chance < -_LN2 else 0.0
