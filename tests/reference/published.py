"""Formulas that papers print and dpcalc does not use: reference cases ask for them.

None is a guarantee of dpcalc's; they are rounded as the bounds are.
"""

import math

from dpcalc.errors import NotApplicable
from dpcalc.model.quantities import Noise
from dpcalc.notions import gaussian, renyi
from dpcalc.notions.curves import Curve
from dpcalc.notions.renyi import _round_up
from dpcalc.notions.trade_off import _LEAST_EPSILON, SECTIONS
from dpcalc.numerics.floats import UNIT, Array, down, exp_up, log_exp1p, log_expm1, log_sum_exp, np, quotient_up, up
from dpcalc.numerics.roots import greatest, least, near_minimum
from dpcalc.numerics.sums import TermBounds, log_sum_decreasing_up, log_sum_expm1_reciprocals_up
from dpcalc.theorems.contraction.recursion import _HALF_LN_2PI
from dpcalc.theorems.contraction.stream_noise import Stream, _joined
from dpcalc.theorems.hidden.fresh_places import SamePlaces
from dpcalc.theorems.holder.holder import _exp
from dpcalc.theorems.many_passes.repeated_allocation import Pace, Uses, rate_in_range, unrestarted
from dpcalc.theorems.setting import Setting


def tradeoff(*, epsilon: float, delta: float, level: float) -> float:
    """Return the least type II error that (epsilon, delta)-DP leaves a test of this level, to rounding.

    f(a) = max(0, 1 - delta - e^eps a, e^-eps (1 - delta - a)): four segments (Kairouz, Oh and Viswanath 2015).
    """
    rest = 1.0 - delta - level
    return max(0.0, rest - level * math.expm1(epsilon), rest * math.exp(-epsilon))


def zcdp_order(*, rho: float, log_delta: float) -> float:
    """Return the order a > 1 that is best for `canonne` on the line rdp = rho a: rho (a-1)^2 + ln a = ln(1/delta)."""
    target = -log_delta

    def excess(b: float) -> float:
        return rho * b * b + math.log1p(b) - target

    ceiling = max(math.sqrt(target / rho), 1e-300)
    return 1.0 + greatest(excess, 0.0, ceiling)


def zcdp_epsilon(*, rho: float, log_delta: float) -> float:
    """Return the epsilon of the curve rdp = rho a at the best order of `canonne`, rounded up, not clamped.

    At the optimum it equals rho (2a - 1) + ln(1 - 1/a). Any order is valid; this one is the stationary point.
    """
    order = zcdp_order(rho=rho, log_delta=log_delta)
    if order == 1.0:
        return math.inf
    return _round_up(2.0 * rho * (order - 1.0), rho, -math.log1p(1.0 / (order - 1.0)))


def zcdp_epsilon_mironov(*, rho: float, log_delta: float) -> float:
    """Return rho + 2 sqrt(rho ln(1/delta)), rounded up (Mironov's conversion at its best order)."""
    return _round_up(rho, 2.0 * math.sqrt(-rho * log_delta))


def odds_tail(curve: Curve, log_factor: float) -> float:
    """Return the probability, under the true hypothesis, that its odds rise by more than e^log_factor; rounded up.

    The least delta(e)/(1 - e^(e - l)) over e < l: where the likelihood ratio is above e^l, p - e^e q is at least
    p (1 - e^(e - l)).

    Args:
        curve: epsilon >= 0 -> ln delta.
        log_factor: l > 0.

    >>> round(odds_tail(lambda e: gaussian.log_delta(mu=1.0, epsilon=e), 3.0), 8)
    0.01419029
    """

    def value(epsilon: float) -> float:
        kept = -math.expm1(epsilon - log_factor) * (1.0 - UNIT * (8.0 + 8.0 * log_factor / (log_factor - epsilon)))
        return curve(epsilon) - math.log(kept) if kept > 0.0 else 0.0

    low, high = math.log(_LEAST_EPSILON), math.log(log_factor * (1.0 - 1e-9))
    place = near_minimum(lambda s: value(math.exp(s)), low, max(low, high), SECTIONS) if high > low else low
    value_there = min(value(0.0), value(min(math.exp(place), log_factor * (1.0 - 1e-9))))
    return min(1.0, exp_up(min(0.0, value_there + UNIT * (16.0 + 4.0 * abs(value_there)))))


def least_scale(*, sensitivity: float, epsilon: float, log_delta: float) -> float:
    """Return the least Laplace scale with which one step alone is (epsilon, delta)-DP, rounded up.

    v = Delta/(epsilon - 2 ln(1 - delta)).
    """
    return up(sensitivity / (epsilon - 2.0 * math.log1p(-math.exp(log_delta))), 8.0)


def complement_leading(*, epsilon: float, ratio: float) -> float:
    """Return ln of the leading term of 1 - h for Gaussian noise as r grows: e^(eps/2 - r^2/8) 4/(r sqrt(2 pi)).

    Asymptotic only (Lemma 5 of Sordello et al.); the next factor is 1 - (4 + eps^2/2)/r^2.
    """
    return 0.5 * epsilon - 0.125 * ratio * ratio + math.log(4.0 / ratio) - _HALF_LN_2PI


def loss_atom(*, noise: Noise, own: float, following: float, terms: int) -> float:
    """Return the probability of a privacy loss of exactly 0 for the curve of `product`: 1 - delta(0) + 2 delta'(0+).

    Args:
        noise: ``gaussian`` or ``laplace``.
        own, following: distances r_A and r_B of the own and of every later step, in units of the noise.
        terms: n; evaluated one by one.
    """

    def at_zero(ratio: float) -> tuple[float, float]:
        """Return h(0, r) and its slope in epsilon."""
        if noise == Noise.LAPLACE:
            return -math.expm1(-0.5 * ratio), -0.5 * math.exp(-0.5 * ratio)
        coefficient = math.erf(0.5 * ratio * math.sqrt(0.5))
        return coefficient, -0.5 * (1.0 - coefficient)

    (a, slope_a), (b, slope_b) = at_zero(own), at_zero(following)
    mean = math.fsum(b**k for k in range(terms)) / terms
    slope = math.fsum(k * b ** (k - 1) for k in range(1, terms)) / terms * slope_b
    return 1.0 - a * mean + 2.0 * (slope_a * mean + a * slope)


def least_multiplier(
    stream: Stream, *, sensitivity: float, index: int, records: int, epsilon: float, log_delta: float
) -> float:
    """Return the least factor on all scales with which the product bound meets (epsilon, delta), rounded up."""

    def excess(factor: float) -> float:
        scaled = stream.changed(schedule_factor=factor)
        return max(-1e300, scaled.log_product(epsilon, sensitivity, index, records)) - log_delta

    ceiling = 1.0
    while excess(ceiling) > 0.0:
        ceiling *= 4.0
        if ceiling > 1e100:
            raise NotApplicable("no multiple of the noise meets the budget")
    return least(excess, 1e-100, ceiling, ulps=64)


def overtaken_at(stream: Stream, *, index: int, epsilon: float) -> float:
    """Return the least n at which the product bound has fallen to delta*, up to 1e15; inf if later."""
    target = stream.log_integral(epsilon, index + 1.0)

    def above(n: int) -> float:
        return stream.log_factors(epsilon, index, n)[1] - target

    low, high = index, 10**15
    if above(high) > 0.0:
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if above(middle) > 0.0 else (low, middle)
    return high


def uniform_position(stream: Stream, *, sensitivity: float, records: int, epsilon: float) -> float:
    """Return ln of the average of the product bound over all positions, rounded up; O(records), at most 1e6."""
    if records > 10**6:
        raise NotApplicable(f"an average over {records} positions is not evaluated one by one", "at most 1e6")
    later, terms = 0.0, []
    for i in range(records, 0, -1):
        terms.append(_joined(stream.log_first(epsilon, sensitivity, i), later))
        later += stream.log_factor(epsilon, float(i))
        if later == -math.inf:
            break
    peak = max(terms)
    if peak == -math.inf:
        return peak
    value = peak + math.log(math.fsum(math.exp(t - peak) for t in terms)) - math.log(records)
    return min(0.0, value + UNIT * (4.0 * abs(value) + 4.0 * records))


def self_bounding(*, holder_exponent: float, holder_constant: float, gradient_at_zero: float) -> float:
    """Return c_(alpha,1) of |grad l| <= c l^(alpha/(1 + alpha)), for losses >= 0 on all of R^d, rounded up.

    (1 + 1/alpha)^(alpha/(1 + alpha)) L^(1/(1 + alpha)); M + L at alpha = 0 (Equation 2, Lemma 19).

    >>> round(self_bounding(holder_exponent=0.5, holder_constant=1.5, gradient_at_zero=1.5), 12)
    1.889881574842
    """
    a = holder_exponent
    if a == 0.0:
        return up(gradient_at_zero + holder_constant)
    log_c = (a * (math.log1p(a) - math.log(a)) + math.log(holder_constant)) / (1.0 + a)
    return _exp(log_c + UNIT * (16.0 + 8.0 * abs(math.log(holder_constant))))


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


def corollary_noise_std(*, lipschitz: float, epsilon: float, log_delta: float) -> float:
    """Return sigma = 5 L sqrt(ln(1/delta))/eps, Feldman et al.'s choice for n passes (needs ln(1/delta) >= 2.5 eps)."""
    return up(5.0 * lipschitz * math.sqrt(-log_delta) / epsilon, 8.0)


def corollary_epsilon(*, lipschitz: float, epsilon: float, log_delta: float) -> float:
    """Return the epsilon that `corollary_noise_std` really certifies: Theorem 35's 4 a L^2/sigma^2 and Mironov's
    conversion at a = 2 ln(1/delta)/eps.
    """
    sigma = corollary_noise_std(lipschitz=lipschitz, epsilon=epsilon, log_delta=log_delta)
    order = -2.0 * log_delta / epsilon
    rdp = up(4.0 * order * (lipschitz / sigma) ** 2, 8.0)
    return renyi.mironov(order=order, rdp=rdp, log_delta=log_delta)


def cyclic_noise_std(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, epsilon: float, log_delta: float
) -> float:
    """Return the least sigma for which `cyclic` gives (epsilon, delta), rounded up."""
    place = Setting(records=records, index=index, batch_size=batch_size)
    size, tail, period = place.own_batch, place.steps_to_end, place.period
    single = gaussian.noise_std(sensitivity=sensitivity, epsilon=epsilon, log_delta_target=log_delta)
    share = unrestarted(Uses(sensitivity, size, 1.0, period, tail, epochs), 0.0)
    return quotient_up((single, share), (size,), 32.0)


def once_rdp(
    *, steps: int, epochs: int, ratio: float, order: float, contraction: float = 1.0, reach: float = math.inf
) -> float:
    """Return the Renyi divergence of one order for all epochs, batches of one size: the log-mean-exp over positions.

    ln((1/l) sum_k exp((a-1) a mu_k^2/2))/(a-1), mu_k^2 = r^2 ((E-1)/l + 1/k) or what the optimal allocation makes of
    it; `once` is sharper in every (epsilon, delta).

    Args:
        steps, epochs: l and E, 1 to 1e15.
        ratio: r = Delta/(b sigma) > 0.
        order: a > 1.
        contraction: c, 0 to 1, by which every step contracts at least.
        reach: the diameter of the domain in units of one use's shift, D b/(eta Delta); inf for none.

    Returns:
        RDP at the order, rounded up.
    """
    x = 0.5 * (order - 1.0) * order * ratio * ratio
    rate = down(-math.log(contraction), 4.0) if contraction > 0.0 else math.inf
    places = SamePlaces(Pace(steps, ((float(steps), rate_in_range(rate)),)), epochs, ratio, reach)
    spread = log_sum_expm1_reciprocals_up(x, steps) - math.log(steps)
    mean = spread + math.log1p(math.exp(-spread)) if spread > 0.0 else math.log1p(math.exp(spread))
    plain = up((x * (epochs - 1) / steps + mean) / (order - 1.0), 64.0)
    return plain if places.bare else min(plain, _once_rdp(places, x, order))


def _once_rdp(places: SamePlaces, x: float, order: float) -> float:
    """Return the Renyi divergence with contraction or a domain; x cost is its exponent at a position."""
    length = places.pace.steps
    least = x * float(places.own_cost(float(length), 1.0))

    def terms(k: Array) -> TermBounds:
        # Relative to the smallest term, so that a small divergence is not lost beside 1.
        gap = np.maximum(x * places.own_cost(k, 1.0) * (1.0 + 4.0 * UNIT) - least, 1e-300)
        logs = gap + np.log(-np.expm1(-gap))
        return TermBounds(logs[None], logs[None], np.zeros(k.shape, bool)[None])

    spread = log_sum_decreasing_up(terms, 1, length) - math.log(length)
    mean = spread + math.log1p(math.exp(-spread)) if spread > 0.0 else math.log1p(math.exp(spread))
    return up((least + mean) / (order - 1.0), 64.0)


def mixture_factor(*, largest: float) -> float:
    """Return (e^c - 1)/c, rounded up: a mixture's Renyi divergence is at most this times the mean of its parts'.

    The best constant in Lemma 25 (which has 1 + c), when every part is at most c/(order - 1), c > 0.
    """
    return up(math.expm1(largest) / largest, 4.0)


def step_unbounded(*, records: int, steps: int, holder_exponent: float, log_chance: float) -> float:
    """Return eta of Theorem 9: n^(1/(3 + a))/(T ln(1/gamma)^(1/(3 + a))), gamma the chance.

    >>> round(step_unbounded(records=10000, steps=10000, holder_exponent=0.5, log_chance=math.log(0.05)), 12)
    0.001015578338
    """
    return math.pow(records / -log_chance, 1.0 / (3.0 + holder_exponent)) / steps


def step_output(
    *, records: int, steps: int, dimension: int, epsilon: float, log_delta: float, log_chance: float
) -> float:
    """Return eta of Theorem 10, noise on the output: 1 over T max(sqrt(ln n ln(n/delta) ln(1/gamma)/n),
    (d ln(1/delta))^(1/4) sqrt(ln(n/delta)) ln(1/gamma)^(1/8)/sqrt(n eps)).

    >>> round(step_output(records=10000, steps=10000, dimension=10, epsilon=1.0, log_delta=math.log(1e-8),
    ...                   log_chance=math.log(0.05)), 12)
    0.000362169767
    """
    log_n = math.log(records)
    risk = math.sqrt(log_n * (log_n - log_delta) * -log_chance / records)
    privacy = math.pow(dimension * -log_delta, 0.25) * math.sqrt((log_n - log_delta) / (records * epsilon))
    return 1.0 / (steps * max(risk, privacy * math.pow(-log_chance, 0.125)))


def step_gradient(
    *, records: int, steps: int, dimension: int, epsilon: float, log_delta: float, log_chance: float
) -> float:
    """Return eta of Theorem 12, noise on every gradient: 1 over T max(sqrt(ln n ln(n/gamma) ln(1/gamma)/n),
    sqrt(d ln(1/delta)) ln(1/gamma)^(1/4)/(n eps)).

    >>> round(step_gradient(records=10000, steps=10000, dimension=10, epsilon=1.0, log_delta=math.log(1e-8),
    ...                     log_chance=math.log(0.05)), 12)
    0.000544907375
    """
    log_n = math.log(records)
    risk = math.sqrt(log_n * (log_n - log_chance) * -log_chance / records)
    privacy = math.sqrt(dimension * -log_delta) * math.pow(-log_chance, 0.25) / (records * epsilon)
    return 1.0 / (steps * max(risk, privacy))


def poisson_rdp(*, order: int, rate: float, noise_multiplier: float) -> float:
    """Return the Renyi divergence of a Poisson-sampled Gaussian, one order of the pair only; for comparison.

    ln(sum_k C(a, k) (1-q)^(a-k) q^k e^((k^2-k)/(2 s^2)))/(a-1) (Mironov, Talwar and Zhang 2019), to nearest. It is no
    bound for batches without replacement, which exceed it by up to 24 per cent.

    Args:
        order: a, a whole number >= 2; the sum has a - 1 terms.
        rate: q, 0 < q <= 1.
        noise_multiplier: s, standard deviation over the norm of a record's contribution.
    """
    if rate == 1.0:
        return 0.5 * order / noise_multiplier / noise_multiplier
    logs, ways = [], order  # a binomial coefficient as a whole number: lgamma loses eleven digits at large orders
    for k in range(2, order + 1):
        ways = ways * (order - k + 1) // k
        chance = math.log(ways) + (order - k) * math.log1p(-rate) + k * math.log(rate)
        logs.append(chance + log_expm1(0.5 * (k / noise_multiplier) * ((k - 1) / noise_multiplier)))
    # The chances add up to 1, so that what the exponentials exceed 1 by is what the sum does.
    return log_exp1p(log_sum_exp(logs)) / (order - 1)
