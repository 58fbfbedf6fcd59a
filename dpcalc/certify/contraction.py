"""Definitions of `contraction` and `shuffle`: products, recursions step by step, shift bounds, averages.

Recursions are walked one step at a time, up to `LONGEST` steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from flint import arb, fmpq, fmpz

from dpcalc.certify import sums
from dpcalc.certify.balls import ABYSS, ZERO, Inputs, OutOfReach, infinite, least, log, log_sum
from dpcalc.certify.gaussian import density, log_delta, log_step, mills, upper_tail
from dpcalc.certify.table import defines

LONGEST = 4000
_SLACK = 2e-3  # stated: 1e-3 in sums, and the last value of one step in a thousand fewer beyond 4096 steps


class Pass(NamedTuple):
    """A run in units of its noise: r_A of a full batch, r_B (None: no bound), D over a step's noise, and -ln c."""

    noise: str
    epsilon: arb
    own: arb
    following: arb | None = None
    reach: arb | None = None
    rate: arb | None = None
    shifts: bool = False
    level: bool = False


# --- what is known of the losses -------------------------------------------------------------------------------------


def displacement(v: Inputs) -> arb | None:
    """Return c of the table: the least of the rows that apply, None where none does or there is no domain."""
    if v.diameter is None:
        return None
    found: list[arb] = []
    kind = v.loss_class or "convex-smooth"
    lipschitz = _sides(v)
    if lipschitz is not None:
        spread = 2 * v.step_size * lipschitz / v.diameter
        found.append(1 + spread)
        if kind in ("convex", "convex-smooth"):
            found.append((1 + spread * spread).sqrt())
    if v.smoothness is not None and kind in ("smooth", "convex-smooth"):
        found.append(arb(factor(v)))
    return least(*found) if found else None


def _sides(v: Inputs) -> arb | None:
    """Return L of the table's rows: of the loss alone where a step leaves the regulariser's part 1 - eta lambda >= 0.

    A longer step turns that part around: what counts is then L + lambda R, if there is a ball.
    """
    if v.lipschitz is None or v.exact("step_size") * v.exact("regularisation") <= 1:
        return v.lipschitz
    return None if v.radius is None else v.lipschitz + v.regularisation * v.radius


def factor(v: Inputs) -> fmpq:
    """Return the Lipschitz factor of a step's map, of the two classes that have one."""
    eta, beta = v.exact("step_size"), v.exact("smoothness")
    if v.loss_class == "smooth":
        return 1 + eta * beta
    return max(abs(1 - eta * v.exact("strong_convexity")), abs(1 - eta * beta))


def run_of(v: Inputs, size: int, *, shifts: bool = True) -> Pass:
    """Return the run with whatever is known of it."""
    own = v.quotient(["sensitivity"], [size, "scale"])
    bounded = v.diameter is not None
    reach = v.quotient(["diameter"], ["step_size", "scale"]) if bounded else None
    c = v.displacement
    following = None
    if bounded and c is not None:
        following = v.quotient(["displacement", "diameter"], ["step_size", "scale"])
    smooth = v.smoothness is not None and v.loss_class in ("convex-smooth", "smooth")
    found = factor(v) if smooth and shifts else None
    rate = None
    if found is not None:
        rate = arb.pos_inf() if found == 0 else -arb(found).log()
    return Pass(v.noise, v.epsilon, own, following, reach, rate, shifts and rate is not None)


def level(v: Inputs) -> bool:
    """Return whether the maps are known to be 1-Lipschitz.

    Raises:
        OutOfReach: they are for the decimals, and for the doubles a hair from it: 0.2 is more than the decimal.
    """
    if v.smoothness is None or v.loss_class != "convex-smooth":
        return False
    product = v.exact("step_size") * v.exact("smoothness")
    if 2 < product <= 2 + fmpq(1, 1 << 49):
        raise OutOfReach("the step size is a little above 2/smoothness, in this reading of the two")
    return bool(product <= 2)


def linear_run(v: Inputs, size: int) -> Pass:
    """Return the run as the bounds without a shift see it."""
    return run_of(v, size, shifts=False)


def batch(v: Inputs) -> tuple[int, int]:
    """Return (size of the record's batch, steps behind it)."""
    place, steps = (v.index - 1) // v.batch_size, -(-v.records // v.batch_size)
    return min(v.batch_size, v.records - place * v.batch_size), steps - 1 - place


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
    """Yield ln e_0 ... ln e_(terms-1): of the non-linear recursion, met by the Gaussian shift bound where it applies.

    With ``start`` that is ln e_0, else it is what the own step leaves.

    Raises:
        OutOfReach: more than `LONGEST` terms before what is left is negligible.
    """
    log_e = log_step(run.noise, run.epsilon, run.own) if start is None else start
    for k in range(terms):
        if k > LONGEST:
            raise OutOfReach(f"a recursion of more than {LONGEST} steps")
        if k and not infinite(log_e) and not log_e <= ABYSS:
            step = log_step(run.noise, shrunk(run.epsilon, log_e), run.following)
            log_e = ZERO if infinite(step) else log_e + step
        if run.shifts and run.noise == "gaussian" and not infinite(log_e):
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
    run: Pass, terms: int, *, falling: bool = False, weight: Callable[[arb], arb] | None = None, small: int = 120
) -> arb:
    """Return ln of the sum of e_k, k < terms, weighed by terms - k or by exp(weight(ln e_k))."""
    peak, total = ZERO, arb(0)
    for k, log_e in enumerate(walk(run, terms)):
        if infinite(log_e):
            break
        term = log_e if weight is None else log_e + weight(log_e)
        if infinite(term):
            break  # weights fall with e
        if falling:
            term += arb(terms - k).log()
        if infinite(peak):
            peak = term
        part = (term - peak).exp()
        total += part
        if k > 1 and part * (terms - k) < total * arb(2) ** -small:  # neither e_k nor its weight rises again
            total += (part * (terms - k)).union(arb(0))
            break
    return ZERO if infinite(peak) else peak + total.log()


# --- Laplace noise ---------------------------------------------------------------------------------------------------


def mixture(ratio: arb, later: int, epsilon: arb) -> arb:
    """Return ln E delta_G(epsilon, ratio/sqrt(2 G)), G ~ Gamma(later + 1), by Bessel functions of half-integer order.

    By parts: -d delta_G/dg is an inverse Gaussian density, and P(G > g) a finite sum of g^j e^-g/j!.

    Raises:
        OutOfReach: more than 2000 steps.
    """
    if later > 2000:
        raise OutOfReach("a mixture over more than 2000 steps")
    z = (epsilon * epsilon + ratio * ratio).sqrt() / 2
    q = ratio * ratio / (8 * z)
    before, now = arb(1), arb(1)  # K_(j-1/2)(z)/K_(1/2)(z)
    factor_, total = arb(1), arb(1)
    for j in range(1, later + 1):
        factor_ *= q / j
        total += factor_ * now
        before, now = now, before + (2 * j - 1) / z * now
    return (-(epsilon / 2 - z).exp() * total).log1p()


def composed(ratio: arb, count: int, epsilon: arb) -> arb:
    """Return ln delta of ``count`` mechanisms of pure privacy ratio/count, by adding all outcomes."""
    share = ratio / count
    odds = (-share).exp()
    total, weight = arb(0), arb(1)
    for x in range(count, -1, -1):
        gap = (2 * x - count) * share - epsilon
        if gap <= 0:
            break
        # Where the ball holds 0 the term is next to nothing, and the following ones are none.
        total -= fmpz(math.comb(count, x)) * weight * (-gap.max(arb(0))).expm1()
        weight *= odds
    return ZERO if total.is_zero() else total.log() - count * odds.log1p()


def laplace_shift(ratio: arb, later: int, epsilon: arb) -> arb:
    """Return the least over compositions of 1..12, of all steps and of all but one: any number is valid.

    Raises:
        OutOfReach: more than 1500 steps.
    """
    if later >= 1500:
        raise OutOfReach("a composition over more than 1500 steps")
    counts = {*range(1, min(12, later + 1) + 1), later + 1, max(1, later)}
    return least(*(composed(ratio, m, epsilon) for m in sorted(counts)))


def log_integral(epsilon: arb, ratio: arb, upper: arb) -> arb:
    """Return ln of the integral of delta_G(epsilon, ratio/sqrt g) over 0 < g < upper."""
    mu = ratio / upper.sqrt()
    told = log_delta(epsilon, mu)
    if epsilon.is_zero():
        b = ratio * ratio / 8
        part = 2 * upper.sqrt() * (-b / upper).exp() - 2 * (arb.pi() * b).sqrt() * (b / upper).sqrt().erfc()
        return (upper * told.exp() + ratio / (2 * (2 * arb.pi()).sqrt()) * part).log()
    x = epsilon / mu - mu / 2
    rest = ratio * ratio / (2 * epsilon) * (upper_tail(-x) - density(x) * mills(x + mu))
    return (upper * told.exp() + rest).log()


# --- one pass in a fixed order, or stopped at random -----------------------------------------------------------------


@defines("contraction.product", "log_delta")
def _product(v: Inputs) -> arb:
    size, later = batch(v)
    return product_last(linear_run(v, size), later)


@defines("contraction.paper_product", "log_delta")
def _paper_product(v: Inputs) -> arb:
    size, later = batch(v)
    eta, beta, rho = (v.exact(name) for name in ("step_size", "smoothness", "strong_convexity"))
    square = 1 - 2 * eta * beta * rho / (beta + rho) if rho else fmpq(1)
    if square < 0:
        raise OutOfReach("the step size is above 2/(smoothness + strong_convexity), in this reading of the three")
    c = arb(square).sqrt()
    if v.noise == "laplace":
        c *= arb(v.dimension or 1).sqrt()
    run = linear_run(v, size)
    assert run.reach is not None
    return product_last(run._replace(following=c * run.reach), later)


@defines("contraction.nonlinear", "log_delta", slack=_SLACK, weight=6.0, known_to=f"{LONGEST} steps")
def _nonlinear(v: Inputs) -> arb:
    size, later = batch(v)
    return last_of(linear_run(v, size), later)


@defines("contraction.shift", "mu")
def _shift(v: Inputs) -> arb:
    size, later = batch(v)
    found = shift_log_mu(run_of(v, size), later)
    return arb(0) if infinite(found) else found.exp()


@defines("contraction.laplace_shift", "log_delta", slack=1e-9, weight=6.0, known_to="1500 steps")
def _laplace_shift(v: Inputs) -> arb:
    size, later = batch(v)
    run = linear_run(v, size)
    return laplace_shift(run.own, later, v.epsilon)


@defines("contraction.laplace_mixture", "log_delta", slack=1e-6, weight=4.0, known_to="2000 steps")
def _laplace_mixture(v: Inputs) -> arb:
    size, later = batch(v)
    own = linear_run(v, size).own
    return least(log_step("laplace", v.epsilon, own), mixture(own, later, v.epsilon))


@defines("contraction.hybrid", "log_delta", slack=_SLACK, weight=15.0, known_to=f"{LONGEST} steps")
def _hybrid(v: Inputs) -> arb:
    size, later = batch(v)
    run = run_of(v, size)
    found = last_of(run, later)
    if run.noise == "gaussian" or infinite(found) or not _level(v, run).level:
        return found
    # Laplace noise: started from its shift bounds at 0, 1, 3, 7, ... steps and at the end.
    for start in sorted({later, *(2**j - 1 for j in range(later.bit_length()))}):
        shift = least(mixture(run.own, start, run.epsilon), laplace_shift(run.own, start, run.epsilon))
        found = found.min(last_of(run, later - start, least(shift, log_step("laplace", run.epsilon, run.own))))
    return found


def _share(value: arb, n: int) -> arb:
    return value if infinite(value) else value - arb(n).log()


@defines("contraction.stop_product", "log_delta")
def _stop_product(v: Inputs) -> arb:
    return _share(product_sum(linear_run(v, 1), v.records + 1 - v.index), v.records)


@defines("contraction.stop_nonlinear", "log_delta", slack=_SLACK, weight=10.0, known_to=f"{LONGEST} steps")
def _stop_nonlinear(v: Inputs) -> arb:
    return _share(total_of(linear_run(v, 1), v.records + 1 - v.index), v.records)


@defines("contraction.stop_hybrid", "log_delta", slack=_SLACK, weight=15.0, known_to=f"{LONGEST} steps")
def _stop_hybrid(v: Inputs) -> arb:
    return _share(hybrid_left(_level(v, run_of(v, 1)), v.records + 1 - v.index, "none"), v.records)


def _level(v: Inputs, run: Pass) -> Pass:
    """Return the run with whether its maps are 1-Lipschitz, and its noise one that shift bounds speak of."""
    return run._replace(level=level(v) and (run.noise == "gaussian" or v.dimension in (None, 1)))


# --- a pass in a random order ----------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """``full`` steps of ``size`` records each, then ``short`` records over ``divisor``."""

    full: int
    size: int
    short: int
    divisor: int


def layout(v: Inputs) -> Layout:
    """Return how a pass falls into batches; a short one is divided by its own size or by b, or is dropped."""
    n, b = v.records, v.batch_size
    if b >= n:
        return Layout(1, b if v.last_batch == "nominal" else n, 0, 0)
    full, short = divmod(n, b)
    if v.last_batch == "drop" or not short:
        return Layout(full, b, 0, 0)
    return Layout(full, b, short, short if v.last_batch == "own" else b)


Left = Callable[[Pass, int, "arb | str | None"], arb]


def averaged(v: Inputs, left: Left, *, shifts: bool = False, scaled: arb | None = None) -> arb:
    """Return ln of the average over where a record falls; r_A is ``scaled`` if that is given.

    ``left(run, terms, extra)`` is ln of e_0 + ... + e_(terms-1), each followed by one more step of reach ``extra``
    ("none": by no more step).
    """
    plan, n = layout(v), v.records
    run = run_of(v, plan.size, shifts=shifts)
    if shifts:
        run = _level(v, run)
    if scaled is not None:
        run = run._replace(own=run.own * scaled)
    held = min(plan.size, n)
    if not plan.short:
        value = left(run, plan.full, "none")
        return value if infinite(value) else value + (arb(held) / n).log()
    s = arb(plan.short) / plan.divisor
    extra = None
    if run.following is not None:
        assert run.reach is not None
        extra = run.following if plan.short == plan.divisor else (1 - s) * run.reach + s * run.following
    first = log_step(run.noise, run.epsilon, run.own * plan.size / plan.divisor)
    rest = left(run, plan.full, extra)
    return log_sum(
        first if infinite(first) else first + (arb(plan.short) / n).log(),
        rest if infinite(rest) else rest + (arb(held) / n).log(),
    )


def product_left(run: Pass, terms: int, extra: arb | str | None) -> arb:
    """`averaged` for products."""
    found = product_sum(run, terms)
    if isinstance(extra, str) or infinite(found):
        return found
    more = log_step(run.noise, run.epsilon, extra)
    return more if infinite(more) else found + more


def walked_left(run: Pass, terms: int, extra: arb | str | None) -> arb:
    """`averaged` for the recursions."""
    if isinstance(extra, str):
        return total_of(run, terms)
    return total_of(run, terms, weight=lambda log_e: log_step(run.noise, shrunk(run.epsilon, log_e), extra))


def positions_left(run: Pass, terms: int, extra: arb | str | None) -> arb:
    """`averaged` for the Gaussian shift bound with 1-Lipschitz maps."""
    first = 1 if isinstance(extra, str) else 2
    return log(sums.hockey_sticks(run.epsilon, run.own, terms + first - 1, first))


def hybrid_left(run: Pass, terms: int, extra: arb | str | None) -> arb:
    """`averaged` for the least of all."""
    found = walked_left(run, terms, extra)
    if not run.level or infinite(found):
        return found
    return found.min(positions_left(run, terms, extra) if run.noise == "gaussian" else laplace_left(run, terms, extra))


def laplace_left(run: Pass, terms: int, extra: arb | str | None) -> arb:
    """`averaged` for the Laplace shift bounds; a step behind the last is not made use of."""
    own = log_step("laplace", run.epsilon, run.own)
    if terms > 8:
        found = log_integral(run.epsilon, run.own / arb(2).sqrt(), arb(terms))
        # At such ratios the record's own noise alone is counted, which hides it in every position.
        return found if arb("1.000001e-90") < run.own < arb("1e90") else least(found, own + arb(terms).log())
    return log_sum(*(least(own, mixture(run.own, k, run.epsilon)) for k in range(terms)))


@defines("shuffle.product", "log_delta")
def _shuffle_product(v: Inputs) -> arb:
    return averaged(v, product_left)


@defines("shuffle.nonlinear", "log_delta", slack=_SLACK, weight=12.0, known_to=f"{LONGEST} steps")
def _shuffle_nonlinear(v: Inputs) -> arb:
    return averaged(v, walked_left)


@defines("shuffle.mixture", "log_delta", slack=1e-9, weight=12.0)
def _shuffle_mixture(v: Inputs) -> arb:
    return averaged(v, positions_left)


@defines("shuffle.hybrid", "log_delta", slack=_SLACK, weight=25.0, known_to=f"{LONGEST} steps")
def _shuffle_hybrid(v: Inputs) -> arb:
    return averaged(v, hybrid_left, shifts=True)


@defines("shuffle.laplace_mixture", "log_delta", slack=0.1, weight=6.0, known_to="2000 steps")
def _shuffle_laplace_mixture(v: Inputs) -> arb:
    return averaged(v, laplace_left)


@defines("shuffle.stop_product", "log_delta")
def _shuffle_stop_product(v: Inputs) -> arb:
    n = v.records
    return _share(product_sum(linear_run(v, 1), n, falling=True), n * n)


@defines("shuffle.stop_hybrid", "log_delta", slack=_SLACK, weight=25.0, known_to=f"{LONGEST} steps")
def _shuffle_stop_hybrid(v: Inputs) -> arb:
    n = v.records
    return _share(total_of(run_of(v, 1), n, falling=True), n * n)
