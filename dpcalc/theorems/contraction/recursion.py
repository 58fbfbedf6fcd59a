"""How a record's trace shrinks step by step: products of contraction coefficients, and their sharper non-linear form.

With e_0 the hockey-stick divergence that the record's own step leaves and h(eps, r) that of the noise at distance r,

    product      e_k = e_{k-1} h(eps, r_B)
    non-linear   e_k = e_{k-1} h(ln(1 + (e^eps - 1)/e_{k-1}), r_B)
    hybrid       e_k = min(non-linear step, shift bound at k)

where r_B is the largest distance of two points of the domain after a step, in units of its noise. The non-linear step
is the data-processing inequality for E_gamma with mu - gamma nu split into its positive part e P and its negative part
(e + gamma - 1) R: E_gamma(mu K || nu K) = e E_g(P K || R K), g = 1 + (gamma - 1)/e. It increases with e, so an upper
bound on e gives one on the next, and the factor at the start of a block of steps bounds all of them. So 1e15 steps take
thousands of blocks, over each of which the factor's logarithm changes by a thousandth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dpcalc.model.quantities import Noise
from dpcalc.notions import gaussian
from dpcalc.numerics.floats import UNIT, Array, down, log_exp1p, log_expm1, log_one_minus_exp, np, up
from dpcalc.theorems.contraction.chords import Chord, chords, drift, next_length

_EXACT_STEPS = 4096
_TOLERANCE = 1e-3
_NEGLIGIBLE = 1e-7
_WIDTH, _COARSEST = 0.03, 300.0  # ln e falls at most this along a chord; the most its square grows as the sum ends
_FLOOR = -1e290
_HALF_LN_2PI = 0.9189385332046728

SLACK = f"beyond {_EXACT_STEPS} steps, that of one step in a thousand fewer; sums by at most 1e-3"


def log_one_step(noise: Noise, epsilon: float, ratio: float) -> float:
    """Return an upper bound on ln of the hockey-stick divergence of the noise at distance ``ratio`` (in its scale).

    Args:
        noise: ``gaussian`` (any dimension, L2 distance, standard deviations) or ``laplace`` (L1 distance, scales).
        epsilon: >= 0.
        ratio: >= 0; inf gives 0.

    Returns:
        ln h; -inf if it is exactly 0. Gaussian: ln(Q(a) - e^eps Q(b)), a = eps/r - r/2, b = a + r. Laplace:
        ln(1 - e^((eps - r)/2)) for eps < r.
    """
    if noise == Noise.GAUSSIAN:
        return gaussian.log_delta(mu=ratio, epsilon=epsilon)
    exponent = 0.5 * (epsilon - ratio)
    if exponent >= 0.0:
        return -math.inf
    value = log_one_minus_exp(exponent)
    relative = 8.0 + min(-exponent, 750.0) if value > -0.7 else 4.0
    return min(0.0, value + UNIT * (relative * -value + (8.0 if value <= -0.7 else 0.0)) + 5e-324)


def log_one_steps(noise: Noise, epsilon: Any, ratios: Any) -> Array:
    """Return `log_one_step` of arrays, elementwise: upper bounds on ln h(eps, r)."""
    if noise == Noise.GAUSSIAN:
        from dpcalc.numerics.normal_arrays import log_hockey_stick_up

        zero: Array = np.where(ratios == 0.0, -1e290, log_hockey_stick_up(epsilon, np.maximum(ratios, 1e-100)))
        return zero
    exponent = np.minimum(0.5 * (epsilon - np.asarray(ratios)), 0.0)
    with np.errstate(divide="ignore"):
        value = np.where(exponent > -0.7, np.log(-np.expm1(exponent)), np.log1p(-np.exp(exponent)))
    relative = np.where(value > -0.7, 8.0 + np.minimum(-exponent, 750.0), 4.0)
    with np.errstate(invalid="ignore"):
        value = value + UNIT * (relative * -value + np.where(value > -0.7, 0.0, 8.0))
    return np.where(np.isnan(value), -np.inf, np.minimum(value, 0.0))


def log_complement(noise: Noise, epsilon: float, ratio: float) -> float:
    """Return ln(1 - h(eps, r)) to a few units of roundoff, accurate even if h is nearly 1.

    It is not a bound; for a Gaussian ratio beyond 1e7 it is asymptotic.
    """
    if noise == Noise.LAPLACE:
        return min(0.0, 0.5 * (epsilon - ratio))
    from dpcalc.numerics.floats import log_add_exp
    from dpcalc.numerics.normal import log_ndtr

    if ratio == 0.0 or math.isinf(ratio):
        return 0.0 if ratio == 0.0 else -math.inf
    a = epsilon / ratio - 0.5 * ratio
    return log_add_exp(log_ndtr(a), epsilon + log_ndtr(-(a + ratio)))


class Trace(NamedTuple):
    """The trace of one record: the data that the three recursions need.

    Attributes:
        noise: ``gaussian`` or ``laplace``.
        epsilon: >= 0.
        first: r_A, distance of the record's own step, in units of its noise.
        following: r_B, reach of every later step; inf if the domain is unbounded.
        shift: k -> an upper bound on ln e_k by other means, non-increasing; None if there is none.
        start: ln e_0, if it is not that of the own step.
        spreads: pairs (mu, o) such that exp(shift(k)) is the least delta_G(eps; mu/sqrt(k+o)) over them; empty if
        unknown.
    """

    noise: Noise
    epsilon: float
    first: float
    following: float
    shift: Callable[[int], float] | None = None
    spreads: tuple[tuple[float, int], ...] = ()
    start: float | None = None

    @property
    def log_first(self) -> float:
        """ln e_0."""
        return self.start if self.start is not None else log_one_step(self.noise, self.epsilon, self.first)

    @property
    def log_factor(self) -> float:
        """ln of the linear contraction coefficient B."""
        return log_one_step(self.noise, self.epsilon, self.following)


# --- products ---------------------------------------------------------------------------------------------------


def product_last(trace: Trace, later: int) -> float:
    """Return ln(A B^later), rounded up; -inf if it is 0."""
    first = trace.log_first
    if later == 0 or first == -math.inf:
        return first
    value = first + later * trace.log_factor
    return min(0.0, up(value, 4.0)) if value > -math.inf else value


def product_sum(trace: Trace, terms: int) -> float:
    """Return ln(A (1 + B + ... + B^(terms-1))), rounded up."""
    first = trace.log_first
    return first if first == -math.inf else _grown(first + _log_geometric(trace.log_factor, terms), 16.0)


def product_falling_sum(trace: Trace, terms: int) -> float:
    """Return ln(A (terms + (terms-1) B + ... + B^(terms-1))), rounded up."""
    first = trace.log_first
    return first if first == -math.inf else _grown(first + _log_falling(trace.log_factor, terms), 16.0)


def _grown(value: float, ulps: float) -> float:
    return value + UNIT * (4.0 * abs(value) + ulps)


def _log_geometric(log_factor: float, terms: int) -> float:
    """Return ln((1 - B^terms)/(1 - B)), rounded up, for ln B <= 0."""
    if log_factor == 0.0 or terms == 1:
        return _grown(math.log(terms), 2.0)
    if log_factor == -math.inf:
        return 0.0
    numerator = log_one_minus_exp(terms * log_factor)
    denominator = log_one_minus_exp(log_factor)
    value = numerator - denominator
    # Each logarithm errs by a unit of itself or of 1; the exact value is at most ln(terms).
    return min(_grown(math.log(terms), 2.0), value + UNIT * (4.0 * (abs(numerator) + abs(denominator)) + 16.0))


def _log_falling(log_factor: float, terms: int) -> float:
    """Return ln(sum_{k < terms} (terms - k) B^k) = ln((n - B (1 - B^n)/(1 - B))/(1 - B)), rounded up."""
    if log_factor == -math.inf:
        return _grown(math.log(terms), 2.0)
    largest = math.log(terms) + math.log(terms + 1) - math.log(2.0)
    if terms * -log_factor < 1e-30:
        return _grown(largest, 16.0)
    from decimal import Context, Decimal

    context = Context(prec=120)
    factor = context.exp(Decimal(log_factor))
    left = context.subtract(Decimal(1), factor)
    power = context.exp(context.multiply(Decimal(log_factor), Decimal(terms)))
    inner = context.divide(context.multiply(factor, context.subtract(Decimal(1), power)), left)
    total = context.divide(context.subtract(Decimal(terms), inner), left)
    return min(_grown(largest, 16.0), _grown(float(context.ln(total)), 8.0))


# --- the non-linear step, and walks of it -------------------------------------------------------------------------


def shrunk_epsilon(log_gap: float, log_e: float) -> float:
    """Return ln(1 + (e^eps - 1)/e), rounded down, from log_gap = ln(e^eps - 1) and ln e."""
    if log_gap == -math.inf:
        return 0.0
    x = log_gap - log_e
    error = UNIT * (8.0 * (1.0 + abs(log_gap)) + 4.0 * abs(log_e) + 2.0 * abs(x))
    value = log_exp1p(x)
    return max(0.0, down(value - error * min(1.0, 1.5 * value), 4.0))


class _Block(NamedTuple):
    """Steps ``start`` .. start+length-1: e_j <= exp(log_e + (j - start) log_factor), and below the shift bound."""

    start: int
    length: int
    log_e: float
    log_factor: float
    shifted: bool


def _walk(
    trace: Trace, terms: int, ease: Callable[[_Block], tuple[float, float]], *, falling: bool = False
) -> Iterator[_Block]:
    """Yield the blocks that cover e_0 .. e_{terms-1}; ``ease`` gives the multiples of the tolerance by which the
    factor's logarithm and ln e may change over the next block.
    """
    bends = {True: 0.02 if trace.spreads else _TOLERANCE, False: 0.02} if trace.shift is not None else {}
    log_gap = log_expm1(trace.epsilon)
    log_e, start, length = trace.log_first, 0, 1
    if trace.shift is not None:
        log_e = min(log_e, trace.shift(0))
    ease_drift, ease_change, before, change, shifted = 1.0, 1.0, 0.0, 0.0, False
    while start < terms and log_e > _FLOOR:
        factor = log_one_step(trace.noise, shrunk_epsilon(log_gap, log_e), trace.following)
        if terms <= _EXACT_STEPS:
            length = 1
        elif start:
            moved = 0.0 if shifted else drift(before, factor) / (_TOLERANCE * ease_drift)
            bend = change / (bends[shifted] * ease_change) if bends else 0.0
            length = next_length(length, max(moved, bend))
        length = min(length, max(1, (terms - start) // 500) if falling else terms - start)
        after = log_e + length * factor if factor else log_e
        shift_after = trace.shift(start + length) if trace.shift is not None else math.inf
        while length > 1 and bends and log_e - min(after, shift_after) > 4.0 * bends[shift_after < after] * ease_change:
            # The shift bound bends within the block: the step is too long and is repeated.
            length //= 2
            after = log_e + length * factor if factor else log_e
            shift_after = trace.shift(start + length) if trace.shift is not None else math.inf
        shifted = shift_after < after
        block = _Block(start, length, log_e, factor, shifted)
        yield block
        ease_drift, ease_change = ease(block)
        after = min(after, shift_after)
        change, before = log_e - after, factor
        log_e = min(log_e, after + 2.0 * UNIT * abs(after)) if math.isfinite(after) else after
        start += length


def last(trace: Trace, later: int) -> float:
    """Return an upper bound on ln e_later by the non-linear recursion and the shift bound, if there is one.

    Exact up to rounding for up to 4096 steps; beyond, at most the value for a thousandth fewer steps.
    """
    if later == 0:
        first = trace.log_first
        return min(first, trace.shift(0)) if trace.shift is not None else first
    final = -math.inf
    if _in_chords(trace, later):
        for chord in _chords(trace, later, lambda: _WIDTH):
            final = chord.after if chord.start + chord.length == later else -math.inf
        return _last(trace, final)
    # An error of a few per cent in where the recursion takes over from the shift bound hardly matters at the end.
    for block in _walk(trace, later, lambda block: (1.0, max(1.0, 0.2 * abs(block.log_e)))):
        final = block.log_e + block.length * block.log_factor if block.log_factor else block.log_e
        if block.start + block.length < later:
            final = -math.inf  # the walk ended early: e is negligible
    if trace.shift is not None:
        final = min(final, trace.shift(later))
    return _last(trace, final)


def _last(trace: Trace, final: float) -> float:
    if final == -math.inf:
        return -math.inf if trace.noise == Noise.LAPLACE else _FLOOR
    return min(0.0, final + 2.0 * UNIT * abs(final))


def walked_on(trace: Trace, steps: int) -> Trace:
    """Return the trace after ``steps`` later steps: its e_0 is e_steps of the given trace."""
    if not steps:
        return trace
    shift = trace.shift
    moved = None if shift is None else lambda later: shift(later + steps)
    spreads = tuple((mu, offset + steps) for mu, offset in trace.spreads)
    return trace._replace(start=last(trace, steps), shift=moved, spreads=spreads)


def total(trace: Trace, terms: int, *, falling: bool = False, weight: Callable[[float], float] | None = None) -> float:
    """Return an upper bound on ln of e_0 + ... + e_{terms-1}.

    Args:
        trace: the recursion.
        terms: 1 to 1e15.
        falling: weigh e_k by terms - k.
        weight: ln e -> ln of a further factor that increases with e.

    Returns:
        The logarithm, within 1e-3 of exact (within rounding for up to 4096 terms).
    """
    peak = trace.log_first if trace.shift is None else min(trace.log_first, trace.shift(0))
    if peak == -math.inf:
        return peak
    heaviest = weight(peak) if weight is not None else 0.0
    if heaviest == -math.inf:
        return heaviest
    if peak <= _FLOOR:
        return peak + heaviest + math.log(terms)
    if weight is None and not falling and _in_chords(trace, terms):
        return _total_of_chords(trace, terms)
    summed, blocks, tail = 0.0, 0, math.inf

    def ease(block: _Block) -> tuple[float, float]:
        coarser = min(300.0, max(1.0, summed / (30.0 * tail))) if tail else 300.0
        return coarser, coarser

    for block in _walk(trace, terms, ease, falling=falling):
        height = math.exp(block.log_e - peak)
        if weight is not None:
            height *= math.exp(weight(block.log_e) - heaviest)
        if falling:
            height *= terms - block.start
        left = -math.expm1(block.log_factor)
        tail = height * (min(terms - block.start, 1.0 / left) if left else terms - block.start)
        if tail <= _NEGLIGIBLE * summed and terms > _EXACT_STEPS:
            summed += tail
            break
        summed += height * _block_sum(trace, block)
        blocks += 1
    return _grown(peak + heaviest + math.log(summed), 4.0 * blocks + 64.0)


def _in_chords(trace: Trace, terms: int) -> bool:
    """Return whether chords apply: many steps, and no shift bound."""
    return trace.shift is None and terms > _EXACT_STEPS


def _chords(trace: Trace, terms: int, width: Callable[[], float]) -> Iterator[Chord]:
    log_gap = log_expm1(trace.epsilon)

    def factor(log_e: float) -> float:
        return log_one_step(trace.noise, shrunk_epsilon(log_gap, log_e), trace.following)

    return chords(factor, trace.log_first, terms, floor=_FLOOR, width=width)


def _total_of_chords(trace: Trace, terms: int) -> float:
    """Return an upper bound on ln of e_0 + ... + e_{terms-1} by chords."""
    peak, summed, blocks, tail = trace.log_first, 0.0, 0, math.inf

    def width() -> float:
        coarser = min(_COARSEST, max(1.0, summed / (30.0 * tail))) if tail else _COARSEST
        return _WIDTH * math.sqrt(coarser)

    for chord in _chords(trace, terms, width):
        height, left = math.exp(chord.log_e - peak), -math.expm1(chord.factor)
        tail = height * (min(terms - chord.start, 1.0 / left) if left else terms - chord.start)
        if tail <= _NEGLIGIBLE * summed:
            summed += tail
            break
        summed += height * chord.total
        blocks += 1
    return _grown(peak + math.log(summed), 4.0 * blocks + 64.0)


def _block_sum(trace: Trace, block: _Block) -> float:
    """Return an upper bound on the sum over a block, in units of its first term."""
    if block.length == 1:
        return 1.0
    by_factor = math.exp(_log_geometric(block.log_factor, block.length))
    if not block.shifted or not trace.spreads:
        return by_factor
    return min(by_factor, block.length * min(_shift_mean(trace.epsilon, block, mu, o) for mu, o in trace.spreads))


def _shift_mean(epsilon: float, block: _Block, mu: float, offset: int) -> float:
    """Return an upper bound on the mean over the block of delta_G(eps; mu/sqrt(k + offset)), in its first term's units.

    Its slope in k is minus an inverse-Gaussian density, with one mode: it is concave before the mode and convex after
    it.
    """
    a, b = 0.5 * min(epsilon / mu, 1e150) ** 2, 0.125 * mu * mu
    first, final = float(block.start + offset), float(block.start + block.length - 1 + offset)
    mode = 2.0 * b / (1.5 + math.sqrt(2.25 + 4.0 * a * b))

    def relative(k: float) -> float:
        value = gaussian.log_delta(mu=up(mu / math.sqrt(k), 4.0), epsilon=epsilon)
        return math.exp(min(700.0, value - block.log_e)) * (1.0 + 16.0 * UNIT)

    if first > mode * 1.000001:
        return 0.5 * (relative(first) + relative(final))
    return relative(0.5 * (first + final)) if final < mode * 0.999999 and first > 0.0 else 1.0


# --- the shift bound ------------------------------------------------------------------------------------------------


def shift_log_mu(first: float, reach: float, rate: float, later: int) -> float:
    """Return ln of the GDP parameter of one shift after ``later`` more c-Lipschitz steps, rounded up.

    mu^2 = min(first^2/(1 + S), reach^2/S), S = c^-2 + c^-4 + ... + c^(-2 later): the shift of the record's own step is
    spent on all noise from then on, or (on a bounded domain) the diameter is spent on the noise that follows.

    Args:
        first: sensitivity of the own step in units of its noise, > 0.
        reach: diameter in units of the noise of a step; inf if unbounded.
        rate: -ln c, rounded down; negative if c > 1; inf if c = 0.
        later: >= 0.
    """
    log_first = math.log(first)
    if later == 0:
        return log_first + UNIT * (1.0 + abs(log_first)) * 2.0
    log_sum = _log_inverse_powers(rate, later)
    if log_sum == math.inf:
        return -math.inf
    best = log_first - 0.5 * log_exp1p(log_sum)
    if reach < math.inf:
        best = min(best, math.log(reach) - 0.5 * log_sum)
    return best + UNIT * (4.0 * (abs(log_first) + abs(log_sum) + abs(best)) + 16.0)


def rate_of(factor: float) -> float:
    """Return -ln of a Lipschitz factor, rounded down; inf for 0."""
    if factor <= 0.0:
        return math.inf
    return -up(math.log(factor), 4.0) if factor != 1.0 else 0.0


def _log_inverse_powers(rate: float, count: int) -> float:
    """Return ln of c^-2 + ... + c^(-2 count), rounded down, c = exp(-rate)."""
    if rate == 0.0:
        return math.log(count) - 2.0 * UNIT * math.log(count)
    x = 2.0 * rate
    if math.isinf(x * count):
        return math.inf
    if rate > 0.0:
        top, bottom = log_expm1(x * count), log_one_minus_exp(-x)
        moved = x * count
    else:
        top, bottom = log_one_minus_exp(x * count) + x, log_one_minus_exp(x)
        moved = -x + 1.0  # the rounding of x count hardly moves ln(1 - e^(x count))
    return top - bottom - UNIT * (4.0 * (abs(top) + abs(bottom) + moved) + 8.0)


def log_delta_of_log_mu(epsilon: float, log_mu: float) -> float:
    """Return an upper bound on ln delta_G(eps; mu) from ln mu, which may be far below the range of a double."""
    if log_mu > -640.0:
        return gaussian.log_delta(mu=up(math.exp(min(log_mu, 600.0)), 4.0 + abs(log_mu)), epsilon=epsilon)
    if log_mu == -math.inf:
        return _FLOOR
    if epsilon == 0.0:
        return log_mu - _HALF_LN_2PI + 4.0 * UNIT * abs(log_mu)  # H(0, r) = 2 Phi(r/2) - 1 <= r phi(0)
    return max(-4e199, -0.49 * math.exp(min(460.0, 2.0 * (math.log(epsilon) - log_mu))))


def shift_trace(
    noise: Noise, epsilon: float, *, first: float, following: float, reach: float, rate: float | None
) -> Trace:
    """Return the trace, with the shift bound if the noise is Gaussian and the maps are Lipschitz.

    Args:
        noise, epsilon, first, following: as in `Trace`.
        reach, rate: as in `shift_log_mu`; a rate of None means that the maps are not known to be Lipschitz.
    """
    if noise != Noise.GAUSSIAN or rate is None:
        return Trace(noise, epsilon, first, following)
    shift = max(first, 1e-290)

    def bound(later: int) -> float:
        return log_delta_of_log_mu(epsilon, shift_log_mu(shift, reach, rate, later))

    spreads: tuple[tuple[float, int], ...] = ()
    if rate == 0.0:
        spreads = ((shift, 1),) if reach == math.inf else ((shift, 1), (reach, 0))
    return Trace(noise, epsilon, shift, following, bound, spreads)
