"""Contraction of the hockey-stick divergence, shift bounds and averages of both, from the formulas, in ball arithmetic.

Everything is a natural logarithm and ln 0 is the ball -inf. Distances are rationals (or balls) in units of the noise;
None stands for an unbounded one. Sums over many steps of a recursion are enclosed by blocks. The formulas
of one step and of one shift are those of `dpcalc.certify`, which is checked against reference values of other origin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb, arb_series, ctx, fmpq

from dpcalc.certify.numerics.balls import Undecided, least, less, log_sum, mixture
from dpcalc.certify.numerics.gaussian import density, mills
from dpcalc.certify.numerics.gaussian import log_step as step
from dpcalc.certify.runs import divergence
from dpcalc.certify.runs.batches import schedule_reach
from dpcalc.certify.runs.divergence import log_geometric, shrunk
from dpcalc.certify.runs.random_positions import log_integral
from dpcalc.model.quantities import Noise
from tests.oracles import ball
from tests.oracles.gaussian import upper_tail

ZERO = arb.neg_inf()
_TINY = 2.0**-1000
_ABYSS = -(arb(10) ** 300)


class TooDeep(ArithmeticError):
    """A value that would need more precision than is worth the time."""


def settle(function: Callable[[], arb], bits: int = 80, limit: int = 1 << 15, least: float = _TINY) -> arb:
    """Evaluate at growing precision until the ball is small, relatively or with ``least`` in size; -inf passes."""
    before = ctx.prec
    try:
        prec = 192
        while prec <= limit:
            ctx.prec = prec
            prec *= 2
            try:
                value = function()
            except Undecided:
                continue
            if value == ZERO or (value.is_finite() and (abs(value) < least or value.rel_accuracy_bits() >= bits)):
                return value
    finally:
        ctx.prec = before
    raise TooDeep("the oracle needs more precision than it may use")


# ---- one step ------------------------------------------------------------------------------------------------------


def log_step(noise: str, epsilon: Any, r: Any) -> arb:
    """`step`, to full relative precision."""
    return settle(lambda: step(noise, ball(epsilon), None if r is None else ball(r)))


def log_complement(noise: str, epsilon: Any, r: Any) -> arb:
    """ln(1 - h)."""

    def value() -> arb:
        e, s = ball(epsilon), ball(r)
        if noise == "laplace":
            return ((e - s) / 2).min(arb(0))
        x = e / s - s / 2
        if x < -1:
            return (mills(-x) + mills(x + s)).log() - x * x / 2 - (2 * arb.pi()).log() / 2
        return (upper_tail(-x) + density(x) * mills(x + s)).log()

    return settle(value)


# ---- products ------------------------------------------------------------------------------------------------------


def _ends(noise: str, epsilon: Any, first: Any, following: Any) -> tuple[arb, arb]:
    e = ball(epsilon)
    return step(noise, e, ball(first)), step(noise, e, None if following is None else ball(following))


def product_sum(noise: str, epsilon: Any, first: Any, following: Any, terms: int, falling: bool = False) -> arb:
    """ln of A times the sum of B^k, k < terms, or of (terms - k) B^k."""

    def value() -> arb:
        a, b = _ends(noise, epsilon, first, following)
        if a == ZERO:
            return a
        return a + (divergence.log_falling if falling else log_geometric)(b, terms)

    return settle(value)


# ---- recursions ----------------------------------------------------------------------------------------------------


class Trace(NamedTuple):
    """What a recursion needs: ln e_0 and r_B, and a bound by other means as a function of k, if there is one."""

    noise: str
    epsilon: arb
    start: arb
    following: arb | None
    shift: Callable[[int], arb] | None = None


def walk(trace: Trace, terms: int) -> Iterator[arb]:
    """ln e_0, ..., ln e_{terms-1}, one by one; -inf once below -1e300, towards which they fall double exponentially."""
    log_e = trace.start
    for k in range(terms):
        if k and log_e != ZERO:
            factor = step(trace.noise, shrunk(trace.epsilon, log_e), trace.following)
            log_e = ZERO if factor == ZERO else log_e + factor
        if trace.shift is not None and log_e != ZERO:
            log_e = log_e.min(trace.shift(k))
        if log_e < _ABYSS:
            log_e = ZERO
        yield log_e


def total_of(trace: Trace, terms: int, *, falling: bool = False, weight: Callable[[arb], arb] | None = None) -> arb:
    """ln of the sum of e_k, k < terms, weighed by terms - k or by exp(weight(ln e_k))."""
    peak, total = ZERO, arb(0)
    for k, log_e in enumerate(walk(trace, terms)):
        if log_e == ZERO:
            break
        term = log_e if weight is None else log_e + weight(log_e)
        if term == ZERO or not term.is_finite():
            break  # weights fall with e
        if falling:
            term += arb(terms - k).log()
        if peak == ZERO:
            peak = term
        part = (term - peak).exp()
        total += part
        # Neither e_k nor its weight rises again.
        if k > 1 and part * (terms - k) < total * arb(2) ** -140:
            total += (part * (terms - k)).union(arb(0))
            break
    return ZERO if peak == ZERO else peak + total.log()


class Bracket(NamedTuple):
    """ln of a lower bound on e_k and on the sum of e_0 .. e_k."""

    log_e: arb
    log_sum: arb


def beneath(
    trace: Trace, terms: int, *, falling: bool = False, tolerance: float = 1e-3, summed: bool = True
) -> Bracket:
    """Lower bounds on ln e_{terms-1} and on ln of the sum, by blocks: the factor where a block ends is below all in it.

    A guess e_g of the end is right if min(e, shift at the end) B(e_g)^length >= e_g, by induction over the block. With
    a shift bound that is less, a block ends where e has changed by twice the tolerance, or by more where little of
    the sum is left (if ``summed``), or else where e is small.
    """
    log_e, start, length = trace.start, 0, 1
    if trace.shift is not None:
        log_e = log_e.min(trace.shift(0))
    peak, total = log_e, arb(0)

    def factor(at: arb) -> arb:
        return step(trace.noise, shrunk(trace.epsilon, at), trace.following)

    def allowance() -> float:
        """How many times the tolerance a part of the sum, or a small e, may be off: a thousandth of it a thousand."""
        weight = (terms - start) ** 2 if falling else terms - start
        found = float(total / weight * (peak - log_e).exp()) if summed else 0.02 * abs(float(log_e))
        return min(1000.0, max(1.0, found))

    now = factor(log_e)
    while log_e != ZERO:
        # The block is e_start .. e_{start+length-1}; the next one starts at e_{start+length}.
        length = min(length, terms - start)
        if falling:
            length = min(length, max(1, int((terms - start) * tolerance * allowance())))
        end = min(start + length, terms - 1)
        at_end = None if trace.shift is None else trace.shift(end)
        capped = log_e if at_end is None else log_e.min(at_end)
        guess = capped + length * now * (1 + tolerance)
        then = factor(guess) if guess.is_finite() else ZERO
        fits = then != ZERO and not capped + length * then < guess
        if fits and at_end is not None and at_end < log_e:
            # What the shift bound takes away is lost twice, in this block and where the recursion takes over.
            fits = not log_e - capped - length * then > 2 * tolerance * allowance()
        if not fits and length > 1:
            length = max(1, length // 2)
            continue
        if not fits and (then == ZERO or capped + length * then < guess):  # one step, as it is
            then = now
        parts = capped + log_geometric(then, length) if length > 1 else log_e
        if falling:
            parts += arb(terms - start - length + 1).log()
        total += (parts - peak).exp()
        start += length
        if start >= terms:
            return Bracket(log_e if length == 1 else capped + (length - 1) * then, peak + total.log())
        log_e = ZERO if then == ZERO else (capped if length > 1 else log_e) + length * then
        if log_e == ZERO:
            break
        if trace.shift is not None:
            log_e = log_e.min(trace.shift(start))
        before, now = now, factor(log_e)
        if now == ZERO:
            continue
        drift = abs(float((now / before).log())) if before < 0 and now < 0 else 0.0
        length = max(1, int(length * min(2.0, max(0.25, 0.5 * tolerance / max(drift, 1e-30)))))
    return Bracket(ZERO, peak + total.log() if not total.is_zero() else ZERO)


# ---- shift bounds --------------------------------------------------------------------------------------------------


def shift_log_mu(first: arb, reach: arb | None, rate: arb | None, later: int) -> arb:
    """ln mu at the working precision, mu^2 = min(first^2/(1 + S), reach^2/S), S = c^-2 + ... + c^(-2 later).

    ``rate`` is -ln c, None where c = 0.
    """
    rate = arb.pos_inf() if rate is None else rate
    return divergence.shift_log_mu(divergence.Pass(Noise.GAUSSIAN, arb(0), first, None, reach, rate), later)


def shift_of(epsilon: arb, first: arb, reach: arb | None, rate: arb | None) -> Callable[[int], arb]:
    """k -> the Gaussian shift bound after k more steps."""
    return lambda k: divergence.log_delta_of(epsilon, shift_log_mu(first, reach, rate, k))


# ---- Laplace noise by mixtures of Gaussians --------------------------------------------------------------------------


def laplace_mixture(ratio: Any, later: int, epsilon: Any) -> arb:
    """ln E theta(epsilon, ratio/sqrt(2 G)), G ~ Gamma(later + 1).

    For few steps from -d theta/dg, an inverse Gaussian density: its integral against P(G > g), a finite sum of
    g^j e^-g/j!, is a sum of Bessel functions of half-integer order. Beyond, the trapezoidal rule in ln g.
    """
    if later <= 2000:
        return settle(lambda: mixture(ball(ratio), later, ball(epsilon)))
    before, ctx.prec = ctx.prec, 160
    try:
        return _by_trapezoid(ball(ratio), later, ball(epsilon))
    finally:
        ctx.prec = before


def _by_trapezoid(r: arb, later: int, e: arb) -> arb:
    a = later + 1
    reduced = r / (2 * arb(a)).sqrt()

    def exponent(t: arb) -> arb:
        return step("gaussian", e, reduced * (-t / 2).exp()) - a * (t.expm1() - t)

    peak, reach = _peak(lambda t: float(exponent(arb(t)).mid()), -(40.0 + math.log1p(float(r) + 1 / float(r))), 40.0)
    top = exponent(arb(peak))
    found, width = None, reach
    while True:
        total = arb(1)
        for sign in (-1, 1):
            for j in range(1, 100_000):
                term = (exponent(arb(peak) + sign * j * arb(width)) - top).exp()
                total += term
                if term < arb(2) ** -110:
                    break
        value = (total * width).log()
        if found is not None and abs(value - found) < 1e-24:
            front = a * arb(a).log() - a - arb(a).lgamma()
            return value.union(found) + top + front
        found, width = value, width / 2


def _peak(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where a function of one peak is largest, roughly, and on what scale it falls from there."""
    for _ in range(120):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if function(a) < function(b):
            low = a
        else:
            high = b
        if high - low < 1e-10:
            break
    peak = (low + high) / 2
    top, width = function(peak), 1e-9
    while width < 1.0 and min(function(peak - width), function(peak + width)) > top - 0.5:
        width *= 1.3
    return peak, width


def laplace_mixture_sum(ratio: Any, terms: int, epsilon: Any) -> arb:
    """ln of the sum of min(mixture, own step) over later = 0 .. terms-1, one by one."""
    own = log_step("laplace", epsilon, ratio)
    return log_sum(*(least(own, laplace_mixture(ratio, k, epsilon)) if own != ZERO else ZERO for k in range(terms)))


def integral_hockey_sticks(epsilon: Any, r: Any, upper: Any) -> arb:
    """ln of the integral of theta(epsilon, r/sqrt g) over 0 < g < upper, by parts, in closed form."""

    def value() -> arb:
        e, s, t = ball(epsilon), ball(r), ball(upper)
        log_theta = step("gaussian", e, s / t.sqrt())
        if log_theta > -(2.0**-900):
            return t.log() + log_theta.union(arb(0))
        return log_integral(e, s, t)

    return settle(value)


# ---- what is known of the losses -------------------------------------------------------------------------------------


def contraction(eta: Fraction, beta: Fraction, rho: Fraction) -> Fraction:
    """max(|1 - eta rho|, |1 - eta beta|)."""
    return max(abs(1 - eta * rho), abs(1 - eta * beta))


def factor(loss_class: str, eta: Fraction, beta: Fraction, rho: Fraction) -> Fraction:
    """The Lipschitz factor of a step's map, for the two classes that have one."""
    return contraction(eta, beta, rho) if loss_class == "convex-smooth" else 1 + eta * beta


def log_inverse(c: Fraction) -> arb | None:
    """-ln c, None for c = 0."""
    return None if c == 0 else -ball(c).log()


def displacement(
    loss_class: str,
    eta: Fraction,
    diameter: Fraction,
    lipschitz: Fraction | None,
    beta: Fraction | None,
    rho: Fraction,
) -> arb | None:
    """The least of the rows that apply, None where none does."""
    found: list[arb] = []
    if lipschitz is not None:
        spread = 2 * eta * lipschitz / diameter
        found.append(ball(1 + spread))
        if loss_class in ("convex", "convex-smooth"):
            found.append(ball(1 + spread * spread).sqrt())
    if beta is not None and loss_class in ("smooth", "convex-smooth"):
        found.append(ball(factor(loss_class, eta, beta, rho)))
    return least(*found) if found else None


def published_factor(eta: Fraction, beta: Fraction, rho: Fraction) -> arb:
    """sqrt(1 - 2 eta beta rho/(beta + rho)), 1 where the losses are linear."""
    if rho == 0:
        return arb(1)
    return settle(lambda: ball(1 - 2 * eta * beta * rho / (beta + rho)).sqrt())


# ---- noise schedules -------------------------------------------------------------------------------------------------


def schedule_scale(noise: str, x: arb, c1: Fraction, c2: Fraction, reach: Fraction) -> arb:
    """The scale at which c D/(eta scale) is that, from reach = c D/eta."""
    return ball(reach) / schedule_reach(noise, x, ball(c1), ball(c2))


def log_limit(noise: str, c1: Fraction, epsilon: Fraction) -> arb:
    """ln((1 - e^-x)/x), x = C1 e^(eps/2), twice that for Gaussian noise."""

    def value() -> arb:
        x = ball(c1) * (ball(epsilon) / 2).exp() * (2 if noise == "gaussian" else 1)
        return (-(-x).expm1()).log() - x.log()

    return settle(value)


def log_nonlinear_limit(noise: str, c1: Fraction, epsilon: Fraction) -> arb | None:
    """ln of (1/C) (sqrt g - (g-1)/2 ln((sqrt g + 1)/(sqrt g - 1))); None where C is below that logarithm."""

    def value() -> arb:
        c = ball(c1) * (2 if noise == "gaussian" else 1)
        g = ball(epsilon).exp()
        log_part = ((g.sqrt() + 1) ** 2 / ball(epsilon).expm1()).log()
        return ZERO if less(c, log_part) else ((g.sqrt() - (g - 1) / 2 * log_part) / c).log()

    if epsilon == 0:
        return None
    found = settle(value)
    return None if found == ZERO else found


# ---- runs ------------------------------------------------------------------------------------------------------------


class Pass(NamedTuple):
    """A run in units of its noise: what each part of it needs.

    ``own`` and ``following`` are r_A (with a full batch) and r_B; ``reach`` is D over the noise of a step and ``c`` the
    Lipschitz factor, None where there is none.
    """

    noise: str
    epsilon: Fraction
    own: Fraction
    following: Fraction | None = None
    reach: Fraction | None = None
    c: Fraction | None = None
    slack: float = 0.0

    def trace(self, hybrid: bool) -> Trace:
        """The recursion, with the Gaussian shift bound if ``hybrid``."""
        e, own = ball(self.epsilon), ball(self.own)
        shift = None
        if hybrid and self.noise == "gaussian" and self.c is not None:
            rate = log_inverse(self.c)
            if rate is not None and self.slack:
                rate -= abs(rate) * ball(self.slack)
            shift = shift_of(e, own, None if self.reach is None else ball(self.reach), rate)
        start = step(self.noise, e, own)
        return Trace(self.noise, e, start, None if self.following is None else ball(self.following), shift)


class Layout(NamedTuple):
    """One pass in random order: ``full`` steps of ``size`` records each, then ``short`` records over ``divisor``."""

    full: int
    size: int
    short: int
    divisor: int


def layout(n: int, b: int, last_batch: str) -> Layout:
    """Batches of b; what is left over forms a short one, divided by its own size or by b, or is dropped."""
    if b >= n:
        return Layout(1, b if last_batch == "nominal" else n, 0, 0)
    full, short = n // b, n % b
    if last_batch == "drop" or not short:
        return Layout(full, b, 0, 0)
    return Layout(full, b, short, short if last_batch == "own" else b)


def shuffled(
    n: int,
    plan: Layout,
    run: Pass,
    left: Callable[[Pass, int, Fraction | str | None], arb],
) -> arb:
    """ln of the average over where a record falls.

    ``left(run, terms, extra)`` is ln of e_0 + ... + e_{terms-1}, each followed by one more step of reach ``extra``
    ("none": by no more step).
    """
    held = min(plan.size, n)
    if not plan.short:
        value = left(run, plan.full, "none")
        return value if value == ZERO else value + ball(Fraction(held, n)).log()
    s = Fraction(plan.short, plan.divisor)
    extra = None if run.following is None else (1 - s) * (run.reach or 0) + s * run.following
    first = log_step(run.noise, run.epsilon, run.own * plan.size / plan.divisor)
    rest = left(run, plan.full, extra)
    return settle(
        lambda: log_sum(
            first if first == ZERO else first + ball(Fraction(plan.short, n)).log(),
            rest if rest == ZERO else rest + ball(Fraction(held, n)).log(),
        ),
        60,
        least=2.0**-60,
    )


def product_left(run: Pass, terms: int, extra: Any) -> arb:
    """`left` for products."""
    found = product_sum(run.noise, run.epsilon, run.own, run.following, terms)
    if extra == "none" or found == ZERO:
        return found
    more = log_step(run.noise, run.epsilon, extra)
    return more if more == ZERO else found + more


# ---- streams ---------------------------------------------------------------------------------------------------------


class Stream(NamedTuple):
    """A decaying schedule: record t has the scale multiplier unit/reach(t^alpha), unit = c D/eta."""

    noise: str
    c1: Fraction
    c2: Fraction
    alpha: Fraction
    unit: Fraction
    multiplier: Fraction = Fraction(1)

    def reach(self, t: Any) -> arb:
        """r_B at step t."""
        x = (ball(t).log() * ball(self.alpha)).exp()
        return schedule_reach(self.noise, x, ball(self.c1), ball(self.c2)) / ball(self.multiplier)

    def scale(self, t: Any) -> arb:
        """The noise scale of record t."""
        return ball(self.unit) / self.reach(t)

    def log_factor(self, epsilon: Fraction, t: Any) -> arb:
        """ln B_t."""
        return step(self.noise, ball(epsilon), self.reach(t))

    def log_first(self, epsilon: Fraction, sensitivity: Fraction, index: int) -> arb:
        """ln A_i."""
        return settle(lambda: step(self.noise, ball(epsilon), ball(sensitivity) / self.scale(index)))


def stream_log_product(plan: Stream, epsilon: Fraction, index: int, last: int | None, cut: int = 400) -> arb:
    """The sum of ln B_t over index < t <= last (None: to infinity), by Euler-Maclaurin at 200 bits.

    For streams whose factors vary on the scale of t itself from ``cut`` on.
    """
    before, ctx.prec = ctx.prec, 200
    try:
        cut = max(cut, index + 200)
        if last is not None and last <= cut:
            return sum((plan.log_factor(epsilon, t) for t in range(index + 1, last + 1)), arb(0))
        head = sum((plan.log_factor(epsilon, t) for t in range(index + 1, cut + 1)), arb(0))
        tail = stream_integral(plan, epsilon, Fraction(cut), None if last is None else Fraction(last))
        ends = -_stream_ends(plan, epsilon, cut)
        if last is not None:
            ends += _stream_ends(plan, epsilon, last)
        return head + tail + ends
    finally:
        ctx.prec = before


def _stream_ends(plan: Stream, epsilon: Fraction, t: int, terms: int = 9) -> arb:
    """f/2 + sum_j B_2j/(2j)! f^(2j-1) at t, f = ln B."""
    before, ctx.cap = ctx.cap, 2 * terms
    try:
        x = (arb_series([arb(t), 1]).log() * arb_series([ball(plan.alpha)])).exp()
        c1, c2, s, e = ball(plan.c1), ball(plan.c2), ball(plan.multiplier), ball(epsilon)
        if plan.noise == "laplace":
            hidden = (e / 2 - (x / c1 + c2).log() / s).exp()
        else:
            r = 2 / s * (x * x / (2 * arb.pi() * c1 * c1) + c2).lambertw().sqrt()
            a = e / r - r / 2
            root = arb(2).sqrt()
            hidden = 1 - ((a / root).erfc() - e.exp() * ((a + r) / root).erfc()) / 2
        f = (1 - hidden).log()
        total, term = f[0] / 2, arb(0)
        for j in range(1, terms):
            term = f[2 * j - 1] * arb(fmpq.bernoulli(2 * j)) / (2 * j)  # f^(2j-1)/(2j)! = f_{2j-1}/(2j)
            total += term
        return total + abs(term).union(-abs(term)) * 4
    finally:
        ctx.cap = before


def stream_integral(plan: Stream, epsilon: Fraction, lower: Fraction, upper: Fraction | None) -> arb:
    """The integral of ln B_x, at the working precision: Gauss's rule on panels in ln x; None for infinity."""
    width = 1 / (2 * max(ball(plan.alpha), arb(1)))
    left = ball(lower).log()
    right = None if upper is None else ball(upper).log()
    total = arb(0)
    while True:
        end = left + width
        last = right is not None and not end < right
        if last:
            end = right
        half, middle = (end - left) / 2, (end + left) / 2
        part = arb(0)
        for node, weight in _rule(24):
            t = (middle + half * node).exp()
            part += weight * t * plan.log_factor(epsilon, t)
        total += part * half
        if last:
            return total
        left = end
        if right is None:
            t = left.exp()
            # ln B falls off as t^-alpha, a little more slowly for Gaussian noise.
            rest = abs(plan.log_factor(epsilon, t)) * t / ((ball(plan.alpha) - 1) / 2)
            if rest < abs(total) * arb(2) ** -70:
                return total - rest.union(arb(0))


_RULES: dict[tuple[int, int], list[tuple[arb, arb]]] = {}


def _rule(points: int) -> list[tuple[arb, arb]]:
    key = points, ctx.prec
    if key not in _RULES:
        _RULES[key] = [arb.legendre_p_root(points, k, weight=True) for k in range(points)]
    return _RULES[key]


def laplace_stream_integral(plan: Stream, epsilon: Fraction, lower: Fraction) -> arb:
    """The integral of ln B_x from ``lower`` to infinity for Laplace noise, by a hypergeometric function."""
    a = ball(plan.alpha)

    def part(k: arb) -> arb:
        x = ball(lower)
        y = k * (-a * x.log()).exp()
        return -x * y.log1p() + a * x * y / (a - 1) * (-y).hypgeom_2f1(1, 1 - 1 / a, 2 - 1 / a)

    c, d = ball(plan.c1) * (ball(epsilon) / 2).exp(), ball(plan.c1 * plan.c2)
    return part(d - c) - part(d)


# ---- hidden positions ------------------------------------------------------------------------------------------------


class Positions(NamedTuple):
    """Where a record may be: ``count`` positions from ``first`` on, its chance to be among them, Delta/(d sigma)."""

    first: int
    count: int
    chance: Fraction
    ratio: Fraction


def hidden_floor(places: Sequence[Positions], epsilon: Fraction) -> arb:
    """ln of a lower bound on every certificate of Theorem HW for one pass: its dual at one level for all positions.

    sum_k w_k Phi(mu_k - z) - e^eps Phi(-z), mu_k = ratio_k/sqrt k; any z will do. Beyond 1000 positions they are
    grouped, each group at its far end, where mu is least. Where nothing is left of the bound this is -inf.
    """
    groups: list[tuple[int, Fraction, Fraction]] = []
    for first, count, chance, ratio in places:
        k, top = first, first + count - 1
        while k <= top:
            size = 1 if k < 1000 else min(top - k + 1, k // 500)
            groups.append((k + size - 1, chance * size / count, ratio))
            k += size
    mu = [float(ratio) / math.sqrt(k) for k, _, ratio in groups]

    def level(z: float) -> float:
        logs = [m * z - m * m / 2 + math.log(weight) for m, (_, weight, _) in zip(mu, groups, strict=True)]
        peak = max(logs)
        return peak + math.log(sum(math.exp(x - peak) for x in logs))

    low, high = -100.0 - 10 * max(mu), 1.0
    while level(high) < float(epsilon):
        high = 2 * high + 1
        if high > 1e12:
            return ZERO
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if level(middle) < float(epsilon) else (low, middle)
    z = Fraction(low)

    def value() -> arb:
        total = arb(0)
        for k, weight, ratio in groups:
            total += ball(weight) * upper_tail(ball(z) - ball(ratio) / arb(k).sqrt())
        total -= ball(epsilon).exp() * upper_tail(ball(z))
        if total <= 0:
            return ZERO
        if not total > 0:
            raise Undecided
        return total.log()

    return settle(value, 60)
