"""The hockey-stick divergence step by step: products of contractions, the non-linear recursion and shift bounds.

Recursions are evaluated one step at a time, up to `LONGEST` steps. The functions that sum over the positions of a
record return ln(e_m + ... + e_(m+l-1)) for l ``terms`` with m steps ``behind``, where one more step of reach ``extra``
follows every term ("none": no further step; None: a step of unbounded reach).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from flint import arb

from dpcalc.certify.numerics import sums
from dpcalc.certify.numerics.balls import (
    ABYSS,
    ZERO,
    OutOfReach,
    density,
    infinite,
    least,
    log,
    log_delta,
    log_step,
    log_sum,
    mills,
    mixture,
    upper_tail,
)
from dpcalc.certify.runs.run import RunInputs
from dpcalc.model.quantities import LossClass, Noise

LONGEST = 4000
SLACK = 2e-3  # as docs/method.md states: 1e-3 in sums; past 4096 steps a last value is that of 1/1000 fewer steps


class Pass(NamedTuple):
    """A pass in units of its noise.

    Attributes:
        noise, epsilon: the kind of noise, and the epsilon asked for.
        own: r_A, of the record's own step.
        following: r_B, of every later step; None if it is unbounded.
        reach: D/(eta sigma), the diameter over a step's noise.
        rate: -ln c of the Lipschitz factor c; None if there is none.
        shifts: whether shift bounds apply.
        level: whether the maps are 1-Lipschitz and shift bounds cover the noise.
    """

    noise: Noise
    epsilon: arb
    own: arb
    following: arb | None = None
    reach: arb | None = None
    rate: arb | None = None
    shifts: bool = False
    level: bool = False


def run_of(v: RunInputs, size: int, *, shifts: bool = True) -> Pass:
    """Return the run of a record in a batch of ``size``; without ``shifts`` the Lipschitz factor is omitted."""
    own = v.quotient(["sensitivity"], [size, "scale"])
    bounded = v.diameter is not None
    reach = v.quotient(["diameter"], ["step_size", "scale"]) if bounded else None
    following = None
    if bounded and v.displacement is not None:
        following = v.quotient(["displacement", "diameter"], ["step_size", "scale"])
    smooth = v.smoothness is not None and v.loss_class in (LossClass.CONVEX_SMOOTH, LossClass.SMOOTH)
    rate = None
    if smooth and shifts:
        c = v.lipschitz_factor()
        rate = arb.pos_inf() if c == 0 else -arb(c).log()
    return Pass(v.noise, v.epsilon, own, following, reach, rate, shifts and rate is not None)


def run_without_shift(v: RunInputs, size: int) -> Pass:
    """Return the run for bounds that use no Lipschitz factor."""
    return run_of(v, size, shifts=False)


def batch(v: RunInputs) -> tuple[int, int]:
    """Return (divisor of the record's batch, number of later steps)."""
    divisor, tail = v.batch()
    return divisor, tail - 1


def with_level(v: RunInputs, run: Pass) -> Pass:
    """Return the run with ``level``: whether its maps are 1-Lipschitz and shift bounds cover its noise."""
    return run._replace(level=v.is_nonexpansive() and (run.noise == Noise.GAUSSIAN or v.dimension in (None, 1)))


# --- products --------------------------------------------------------------------------------------------------------


def log_geometric(log_b: arb, terms: int) -> arb:
    """Return ln(1 + B + ... + B^(terms-1))."""
    if infinite(log_b) or terms == 1:
        return arb(0)
    if log_b.is_zero():
        return arb(terms).log()
    if abs(log_b) * terms < arb(2) ** -200 or not log_b < 0:
        return arb(terms).log() + (log_b * terms).min(arb(0)).union(arb(0))
    return ((log_b * terms).expm1() / log_b.expm1()).log()


def log_falling(log_b: arb, terms: int) -> arb:
    """Return ln(n + (n-1) B + ... + B^(n-1))."""
    n = arb(terms)
    if infinite(log_b):
        return n.log()
    if log_b.is_zero() or abs(log_b) * n < arb(2) ** -200 or not log_b < 0:
        return (n * (n + 1) / 2).log() + (log_b * n).min(arb(0)).union(arb(0))
    left = -log_b.expm1()
    return ((n - log_b.exp() * -(log_b * n).expm1() / left) / left).log()


def ends(run: Pass) -> tuple[arb, arb]:
    """Return (ln A, ln B)."""
    return log_step(run.noise, run.epsilon, run.own), log_step(run.noise, run.epsilon, run.following)


def product_last(run: Pass, later: int) -> arb:
    """Return ln(A B^later)."""
    a, b = ends(run)
    if later == 0 or infinite(a):
        return a
    return ZERO if infinite(b) else a + later * b


def product_sum(run: Pass, terms: int, falling: bool = False) -> arb:
    """Return ln of A times the sum of B^k, k < terms, or of (terms - k) B^k."""
    a, b = ends(run)
    return a if infinite(a) else a + (log_falling if falling else log_geometric)(b, terms)


# --- recursions ------------------------------------------------------------------------------------------------------


def shrunk(epsilon: arb, log_e: arb) -> arb:
    """Return ln(1 + (e^eps - 1)/e)."""
    if epsilon.is_zero():
        return arb(0)
    x = epsilon.expm1().log() - log_e
    return x + arb(0).union(arb(-(10**6)).exp()) if x > 10**6 else x.exp().log1p()


def shift_log_mu(run: Pass, later: int) -> arb:
    """Return ln mu of the shift bound: mu^2 = min(r_A^2/(1 + S), (D/(eta sigma))^2/S), S = c^-2 + ... + c^(-2k)."""
    if later == 0 or run.own.is_zero():
        return log(run.own)
    assert run.rate is not None
    if not run.rate < arb.pos_inf():
        return ZERO
    x = run.rate + run.rate
    if x.is_zero():
        log_s = arb(later).log()
    elif x > 0:
        log_s = later * x + (-(-later * x).expm1()).log() - (-(-x).expm1()).log()
    else:
        log_s = x + (-(later * x).expm1()).log() - (-x.expm1()).log()
    more = log_s + (-log_s).exp().log1p() if log_s > 0 else log_s.exp().log1p()
    best = run.own.log() - more / 2
    return best if run.reach is None else best.min(run.reach.log() - log_s / 2)


def log_delta_of(epsilon: arb, log_mu: arb) -> arb:
    """Return ln delta_G(epsilon; mu) from ln mu."""
    return ZERO if infinite(log_mu) else log_delta(epsilon, log_mu.exp())


def walk(run: Pass, terms: int, start: arb | None = None) -> Iterator[arb]:
    """Yield ln e_0 ... ln e_(terms-1) of the non-linear recursion, or the Gaussian shift bound if it is less.

    ln e_0 is ``start``, by default that of the record's own step.

    Raises:
        OutOfReach: more than `LONGEST` terms matter.
    """
    log_e = log_step(run.noise, run.epsilon, run.own) if start is None else start
    for k in range(terms):
        if k > LONGEST:
            raise OutOfReach(f"a recursion of more than {LONGEST} steps")
        if k and not infinite(log_e) and not log_e <= ABYSS:
            step = log_step(run.noise, shrunk(run.epsilon, log_e), run.following)
            log_e = ZERO if infinite(step) else log_e + step
        if run.shifts and run.noise == Noise.GAUSSIAN and not infinite(log_e):
            log_e = log_e.min(log_delta_of(run.epsilon, shift_log_mu(run, k)))
        log_e = log_e if infinite(log_e) else log_e.max(ABYSS)
        yield log_e


def last_of(run: Pass, later: int, start: arb | None = None) -> arb:
    """Return ln e_later."""
    value = ZERO
    for value in walk(run, later + 1, start):
        if infinite(value):
            break
    return value


def total_of(
    run: Pass,
    terms: int,
    *,
    first: int = 0,
    falling: bool = False,
    weight: Callable[[arb], arb] | None = None,
    small: int = 120,
) -> arb:
    """Return ln of the sum of e_k, first <= k < first + terms, weighted by terms - k or by exp(weight(ln e_k))."""
    peak, total = ZERO, arb(0)
    for k, log_e in enumerate(walk(run, first + terms), -first):
        if infinite(log_e):
            break
        if k < 0:
            continue
        term = log_e if weight is None else log_e + weight(log_e)
        if infinite(term):
            break  # weights decrease with e
        if falling:
            term += arb(terms - k).log()
        if infinite(peak):
            peak = term
        part = (term - peak).exp()
        total += part
        if k > 1 and part * (terms - k) < total * arb(2) ** -small:  # neither e_k nor its weight increases again
            total += (part * (terms - k)).union(arb(0))
            break
    return ZERO if infinite(peak) else peak + total.log()


def product_left(run: Pass, terms: int, behind: int, extra: arb | str | None) -> arb:
    """Return the sum for products."""
    log_sum_ = product_sum(run, terms)
    if infinite(log_sum_):
        return log_sum_
    if behind:
        log_b = log_step(run.noise, run.epsilon, run.following)
        log_sum_ = log_b if infinite(log_b) else log_sum_ + behind * log_b
    if isinstance(extra, str) or infinite(log_sum_):
        return log_sum_
    more = log_step(run.noise, run.epsilon, extra)
    return more if infinite(more) else log_sum_ + more


def walked_left(run: Pass, terms: int, behind: int, extra: arb | str | None) -> arb:
    """Return the sum for the recursions."""
    if isinstance(extra, str):
        return total_of(run, terms, first=behind)
    return total_of(run, terms, weight=lambda log_e: log_step(run.noise, shrunk(run.epsilon, log_e), extra))


def positions_left(run: Pass, terms: int, behind: int, extra: arb | str | None) -> arb:
    """Return the sum for the Gaussian shift bound with 1-Lipschitz maps."""
    first = 1 + behind if isinstance(extra, str) else 2
    return log(sums.hockey_sticks(run.epsilon, run.own, terms + first - 1, first))


def hybrid_left(run: Pass, terms: int, behind: int, extra: arb | str | None) -> arb:
    """Return the least of the sums that apply."""
    walked = walked_left(run, terms, behind, extra)
    if not run.level or infinite(walked):
        return walked
    shifted = positions_left if run.noise == Noise.GAUSSIAN else laplace_left
    return walked.min(shifted(run, terms, behind, extra))


def laplace_left(run: Pass, terms: int, behind: int, extra: arb | str | None) -> arb:
    """Return the sum for the Laplace shift bounds, which do not use a step after the last.

    A record's trace decreases with every step. So with more steps behind, the terms are at most their share of the
    longer sum, and none exceeds the first.
    """
    if behind <= 1:
        return _laplace_sum(run, terms)
    share = _laplace_sum(run, terms + behind) + (arb(terms) / (terms + behind)).log()
    return least(share, mixture(run.own, behind, run.epsilon) + arb(terms).log())


def _laplace_sum(run: Pass, terms: int) -> arb:
    """Return the sum of all terms."""
    own = log_step(Noise.LAPLACE, run.epsilon, run.own)
    if terms > 8:
        integral = log_integral(run.epsilon, run.own / arb(2).sqrt(), arb(terms))
        # At extreme ratios the record's own noise, which hides it in every position, may give the smaller bound.
        return integral if arb("1.000001e-90") < run.own < arb("1e90") else least(integral, own + arb(terms).log())
    return log_sum(*(least(own, mixture(run.own, k, run.epsilon)) for k in range(terms)))


def log_integral(epsilon: arb, ratio: arb, upper: arb) -> arb:
    """Return ln of the integral of delta_G(epsilon, ratio/sqrt g) over 0 < g < upper."""
    mu = ratio / upper.sqrt()
    delta = log_delta(epsilon, mu).exp()
    if epsilon.is_zero():
        b = ratio * ratio / 8
        part = 2 * upper.sqrt() * (-b / upper).exp() - 2 * (arb.pi() * b).sqrt() * (b / upper).sqrt().erfc()
        return (upper * delta + ratio / (2 * (2 * arb.pi()).sqrt()) * part).log()
    x = epsilon / mu - mu / 2
    return (upper * delta + ratio * ratio / (2 * epsilon) * (upper_tail(-x) - density(x) * mills(x + mu))).log()


def share(value: arb, n: int) -> arb:
    """Return ln of a sum of ``n`` equally likely cases from ln of the sum."""
    return value if infinite(value) else value - arb(n).log()
