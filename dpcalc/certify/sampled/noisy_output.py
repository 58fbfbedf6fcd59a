"""Definitions of `dp_sgd` and `noisy_sgd`: every step draws its records anew.

The curves of a step on b records drawn one by one with replacement from n records, one of which differs.

It is drawn j times with probability w_j = C(b, j) n^-j (1-1/n)^(b-j); rare j are left out and count as a failure. A
curve is a sum of Gaussian profiles. It is a bound for every way to split what both laws have at 0. The split used here
follows the half-line beyond c; c and the shares are doubles and need not be exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from flint import arb, fmpq, fmpz

from dpcalc.certify.guarantee import Point, Profile, Rdp
from dpcalc.certify.numerics.balls import (
    ZERO,
    OutOfReach,
    classic_factor,
    classic_holds,
    infinite,
    least,
    log,
    log_delta,
    power,
    square,
    upper_tail,
)
from dpcalc.certify.numerics.composition import Curve
from dpcalc.certify.numerics.moments import ALONE, Loss, Mixture, Piece
from dpcalc.certify.runs.matching import hockey_stick
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import defines

MOST_HITS = 3000


def gradient_within(v: RunInputs, radius: arb | None) -> arb:
    """Return M + L R^alpha."""
    alpha = v.holder_exponent
    if alpha.is_zero():
        return v.gradient_at_zero + v.holder_constant
    assert radius is not None
    return v.gradient_at_zero + v.holder_constant * (arb(0) if radius.is_zero() else (radius.log() * alpha).exp())


def gradient(v: RunInputs, *, unconstrained: bool = False) -> arb:
    """Return G: lipschitz, or M + L R^alpha in the ball; without a ball R bounds the distance of the iterates."""
    bounds: list[arb] = [v.lipschitz] if v.lipschitz is not None else []
    if None not in (v.holder_exponent, v.holder_constant, v.gradient_at_zero):
        radius = v.radius
        if unconstrained and radius is None and not bounds and not v.holder_exponent.is_zero():
            square = 2 * v.step_size * v.loss_at_zero + drift_square(v, v.step_size * v.holder_constant)
            radius = (v.steps * square).sqrt()
        if radius is not None or v.holder_exponent.is_zero():
            bounds.append(gradient_within(v, radius))
    return least(*bounds)


def drift_square(v: RunInputs, x: arb) -> arb:
    """Return (1-alpha)/(1+alpha) x^(2/(1-alpha)), 0 at alpha = 1."""
    rest = 1 - v.exact("holder_exponent")
    if rest == 0:
        return arb(0)
    return arb(rest) / (1 + v.holder_exponent) * (x.log() * 2 / arb(rest)).exp()


def drift(v: RunInputs) -> arb:
    """Return a: sqrt((1-alpha)/(1+alpha)) (2^-alpha L eta)^(1/(1-alpha)), over (1 - eta m)^(alpha/(1-alpha))."""
    rest = 1 - v.exact("holder_exponent")
    if rest == 0:
        return arb(0)
    alpha = v.holder_exponent
    x = v.holder_constant * v.step_size * (-alpha * arb(2).log()).exp()
    a = drift_square(v, x).sqrt()
    if v.strong_convexity is not None and not v.strong_convexity.is_zero():
        a *= (-alpha / arb(rest) * (-v.step_size * v.strong_convexity).log1p()).exp()
    return a


def stability(v: RunInputs) -> Callable[[int], arb]:
    """Return Delta*(k): (k-1) b + sqrt(b^2 + (T-k) a^2), or b (1 - (1 - eta m)^k)/(eta m) where alpha = 1 and m > 0."""
    use = 2 * v.step_size * gradient(v, unconstrained=True)
    curved = v.strong_convexity is not None and not v.strong_convexity.is_zero() and v.exact("holder_exponent") == 1
    a = least(drift(v), use)

    def apart(hits: int) -> arb:
        if hits == 0:
            return arb(0)
        if curved:
            x = v.step_size * v.strong_convexity
            return use * (1 - power(1 - x, hits)) / x
        return (hits - 1) * use + (use * use + (v.steps - hits) * a * a).sqrt()

    return apart


def hits_law(steps: int, records: int) -> tuple[arb, Callable[[int], arb]]:
    """Return (P(0 hits), k -> P(k)/P(k-1)) of Bin(T, 1/n)."""
    if records == 1:
        raise OutOfReach("a single record, which every step draws")
    return (steps * (arb(-1) / records).log1p()).exp(), lambda k: arb(fmpq(steps - k + 1, k * (records - 1)))


@defines("dp_sgd.output", Profile, slack=2e-2, weight=20.0, limit=f"{MOST_HITS} hits")
def log_delta_of_output(v: RunInputs) -> arb:
    """Return ln delta of the average iterate with noise."""
    apart = stability(v)
    if v.records == 1:
        return log_delta(v.epsilon, apart(v.steps) / v.noise_std)
    mass, grows = hits_law(v.steps, v.records)
    total = arb(0)
    for k in range(1, v.steps + 1):
        if k > MOST_HITS:
            raise OutOfReach(f"more than {MOST_HITS} hits")
        mass *= grows(k)
        total += mass * log_delta(v.epsilon, apart(k) / v.noise_std).exp()
        ahead = grows(k + 1) if k < v.steps else arb(0)
        if ahead < arb(1) / 2 and 2 * mass * ahead < total * arb(2) ** -80:
            return (total + (2 * mass * ahead).union(arb(0))).log()
    return log(total)


@defines("dp_sgd.output_split", Profile, slack=2e-2, weight=20.0, limit=f"{MOST_HITS} hits")
def _output_split(v: RunInputs) -> arb:
    apart = stability(v)
    if v.records == 1:
        return log_delta(v.epsilon, apart(v.steps) / v.noise_std)
    mass, grows = hits_law(v.steps, v.records)
    masses = [mass]
    for k in range(1, v.steps + 1):
        if k > MOST_HITS:
            raise OutOfReach(f"more than {MOST_HITS} hits")
        masses.append(masses[-1] * grows(k))
        if k < v.steps and grows(k + 1) < arb(1) / 2 and masses[-1] < arb(2) ** -1500:
            break
    rest = (2 * masses[-1]).union(arb(0)) if len(masses) <= v.steps else arb(0)
    best = arb(0)
    for k in range(len(masses) - 1, -1, -1):
        of_hits = log_delta(v.epsilon, apart(k) / v.noise_std)
        both = rest + (arb(0) if infinite(of_hits) else of_hits.exp())
        best = best.min(ZERO if both.is_zero() else both.log())
        rest += masses[k]
    return best


@defines("dp_sgd.output_published", Point, limit="the range of the classic calibration", weight=3.0)
def _output_published(v: RunInputs) -> arb:
    if v.strong_convexity is not None and not v.strong_convexity.is_zero():
        raise OutOfReach("not stated with an l2 term")
    half = v.log_delta - arb(2).log()
    n, steps = v.records, v.steps
    x = 3 * arb(n) / steps * (arb(n).log() - half)
    kappa = arb(steps) / n * (1 + x.max(x.sqrt()))
    g = v.lipschitz
    if g is None:
        radius = v.radius
        if radius is None and v.loss_at_zero is not None:
            if v.exact("holder_exponent") == 0:
                rate = (v.gradient_at_zero + v.holder_constant) ** 2 + 2 * v.loss_at_zero
            else:
                rate = drift_square(v, v.holder_constant) + 2 * v.loss_at_zero
            radius = (rate * steps * v.step_size).sqrt()
        g = gradient_within(v, radius)
    apart = (arb(1).exp() * (square(drift(v)) * steps + 4 * square(g * v.step_size) * (1 + kappa) * kappa)).sqrt()
    epsilon = apart / v.noise_std * classic_factor(half)
    if not classic_holds(epsilon, half):
        raise OutOfReach("the classic calibration is false at this epsilon")
    return epsilon


def _whole_order(v: RunInputs) -> int:
    """Return the integer order at which the curve is evaluated: the order asked for, rounded up."""
    return max(2, math.ceil(v.as_double("order")))


@defines("dp_sgd.gradient_renyi", Rdp, weight=3.0, limit="orders up to 1024")
def _gradient_renyi(v: RunInputs) -> arb:
    order = _whole_order(v)
    if order > 1024:
        raise OutOfReach("an order above 1024")
    y = square(2 * gradient(v, unconstrained=False) / (v.batch_size * v.noise_std))
    p = arb(fmpq(v.batch_size, v.records)).min(arb(1))
    total = p * p * fmpz(math.comb(order, 2)) * (4 * y.expm1()).min(2 * y.exp())
    for j in range(3, order + 1):
        total += 2 * power(p, j) * fmpz(math.comb(order, j)) * (fmpz(j * (j - 1)) * y / 2).exp()
    return v.steps * total.log1p() / (order - 1)


@defines("dp_sgd.gradient_lemma", Rdp, limit="its two conditions", slack=math.inf)
def _gradient_lemma(v: RunInputs) -> arb:
    order, p = _whole_order(v), arb(fmpq(v.batch_size, v.records))
    noise = square(v.batch_size * v.noise_std / (2 * gradient(v, unconstrained=False)))
    # If the noise exceeds what the conditions allow, the largest allowed noise gives a divergence that is no smaller.
    return v.steps * arb(7) / 2 * p * p * order / noise


_LOG_REST = -120.0
_HALVINGS = 50


class Draws:
    """The weights of the numbers of draws.

    Args:
        draws, records: b >= 1 and n >= 2.
        log_rare: ln of a probability; numbers that together are less likely are left out.

    Attributes:
        none: w_0.
        some: (j, w_j) for j >= 1.
        lost: the probability of the numbers that are left out.
    """

    def __init__(self, draws: int, records: int, log_rare: float = _LOG_REST) -> None:
        rate = arb(fmpq(1, records))
        self.none = weight = (1 - rate) ** draws
        self.some: list[tuple[int, arb]] = []
        self.lost = 1 - weight
        for j in range(1, draws + 1):
            weight = weight * fmpq(draws - j + 1, j * (records - 1))
            self.some.append((j, weight))
            self.lost = rate.beta_lower(arb(j + 1), arb(draws - j), regularized=1) if j < draws else arb(0)
            if self.lost < arb(log_rare).exp():
                break
        self._logs = [float(w.log()) for _, w in self.some]

    def loss_removed(self, gap: arb) -> Loss:
        """Return the loss of (sum_j w_j N(j gap), N(0))."""
        return Loss((Piece(self._mixture(gap), ALONE),))

    def loss_either(self, gap: arb) -> Loss:
        """Return the loss of its profile in both orders; the mass that is left out is missing from N(0) too."""
        m, whole = self._mixture(gap), 1 - self.lost
        start = m.where(whole)
        above = self.none * upper_tail(start) + sum((w * upper_tail(start - j * gap) for j, w in self.some), arb(0))
        alone = Mixture(((whole, arb(0)),))
        pieces = Piece(m, alone, start), Piece(alone, m, start, rises=False)
        return Loss(pieces, whole - above - whole * upper_tail(start))

    def _mixture(self, gap: arb) -> Mixture:
        return Mixture(((self.none, arb(0)), *((w, j * gap) for j, w in self.some)))

    def removed(self, mu: arb) -> Curve:
        """Return the profile of (sum_j w_j N(2j mu), N(0)): N(0) is split among the terms."""

        def curve(z: arb) -> arb:
            left = z.expm1() + (1 - self.none)
            shares = self._shared(left, _above(2.0 * float(mu)))
            terms = (w * hockey_stick(t.log(), 2 * j * mu) for (j, w), t in zip(self.some, shares, strict=True))
            return sum(terms, arb(0))

        return curve

    def added(self, mu: arb) -> Curve:
        """Return the profile of (N(0), sum_j w_j N(2j mu)): at most 1 - g w_0, and 0 if that is not positive."""

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
        """Return t_j >= 0 with sum_j w_j t_j = whole, approximately in proportion to the excess at one c."""
        return self._at(whole, log_excess)[1]

    def _at(self, whole: arb, log_excess: Callable[[int, float], float]) -> tuple[float, list[arb]]:
        """Return c and the t_j there."""
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
        exponents = logs(high)
        peak = max(exponents)
        parts = [arb(x - peak).exp() if x > -math.inf else arb(0) for x in exponents]
        total = sum((w * t for (_, w), t in zip(self.some, parts, strict=True)), arb(0))
        return high, [whole * t / total for t in parts]


def _above(gap: float) -> Callable[[int, float], float]:
    """Return ln(density of N(j gap)/density of N(0)) at c."""
    return lambda j, c: c * j * gap - 0.5 * (j * gap) ** 2


def _log_excess(log_of: float, log_less: float) -> float:
    """Return ln(e^a - e^b); -inf if a <= b."""
    return log_of + math.log(-math.expm1(log_less - log_of)) if log_less < log_of else -math.inf


def _log_sum(logs: Sequence[float]) -> float:
    peak = max(logs)
    return peak if peak == -math.inf else peak + math.log(sum(math.exp(x - peak) for x in logs))
