"""Ball arithmetic for definitions: inputs in their two readings, and a working precision that grows as needed.

A definition is a formula over balls at the working precision. `settle` and `sums.enclosed` increase the precision until
the ball is small or its place relative to a double is certain. No module of this package uses the arithmetic of
`dpcalc.theorems`, `dpcalc.notions` or `dpcalc.numerics`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from flint import arb, ctx, fmpq, fmpz

from dpcalc.model.quantities import Given, Noise

START, CAP = 128, 8192
"""Bits of the working precision at which evaluations start, and at which they give up."""


class Undecided(ArithmeticError):
    """Balls overlap: a comparison needs more precision."""


class OutOfReach(Exception):
    """The formula does not cover these inputs, or would take too long; the text says why."""


class Inputs:
    """A run's parameters as attributes: integers and words unchanged, others as balls at the working precision.

    Args:
        values: parameter name -> value. A parameter without a value is None.
        typed: whether a double is read as the shortest decimal that denotes it, as its user meant, or exactly.
        exactly: the names that are read exactly in both cases.
        derived: parameter name -> its formula, for parameters that follow from others.
        read: collects the names of the parameters with a value that are read.
    """

    def __init__(
        self,
        values: Given,
        typed: bool,
        derived: Mapping[str, Callable[[Any], Any]] | None = None,
        exactly: Collection[str] = (),
        read: set[str] | None = None,
    ) -> None:
        self._values, self.typed, self._exactly = values, typed, exactly
        self._read = set() if read is None else read
        self._derived = derived or {}
        self._rationals: dict[str, fmpq] = {}

    def __getattr__(self, name: str) -> Any:
        if name in self._derived:
            return self._derived[name](self)
        value = self._value(name)
        if isinstance(value, fmpq):
            return arb(value)
        if not isinstance(value, float):
            return value
        if value in (float("inf"), float("-inf")):
            return None
        if name not in self._rationals:
            self._rationals[name] = rational(value, self.typed and name not in self._exactly)
        return arb(self._rationals[name])

    def changed(self, **values: Any) -> Self:
        """Return the inputs with other values."""
        return type(self)({**self._values, **values}, self.typed, self._derived, self._exactly, self._read)

    def alone(self, **values: Any) -> Self:
        """Return the inputs of another run in the same reading: only these values, without derived parameters."""
        return type(self)(values, self.typed, None, self._exactly, self._read)

    def exact(self, name: str) -> fmpq:
        """Return the parameter as a rational, 0 if it has no value; a formula for it is ignored."""
        value = self._value(name)
        if value is None or isinstance(value, (fmpq, int)):
            return fmpq(0) if value is None else fmpq(value)
        return rational(float(value), self.typed and name not in self._exactly)

    @property
    def read(self) -> frozenset[str]:
        """The names of the parameters with a value that were read so far."""
        return frozenset(self._read)

    def given(self, name: str) -> Any:
        """Return the parameter as given; None if it was not."""
        return self._values.get(name)

    def _value(self, name: str) -> Any:
        """Return a parameter as given, and record that it was read."""
        value = self._values.get(name)
        if value is not None:
            self._read.add(name)
        return value

    def quotient(self, top: Sequence[str | int], bottom: Sequence[str | int]) -> arb:
        """Return a quotient of products of parameters and integers; it is exact unless one is derived."""
        if any(name in self._derived for name in [x for x in (*top, *bottom) if isinstance(x, str)]):
            balls = [getattr(self, x) if isinstance(x, str) else arb(x) for x in (*top, *bottom)]
            return math.prod(balls[: len(top)], start=arb(1)) / math.prod(balls[len(top) :], start=arb(1))
        rationals = [self.exact(x) if isinstance(x, str) else fmpq(x) for x in (*top, *bottom)]
        return arb(math.prod(rationals[: len(top)], start=fmpq(1)) / math.prod(rationals[len(top) :], start=fmpq(1)))

    def as_double(self, name: str) -> float:
        """Return the parameter as a double, in either reading."""
        return float(self._values[name])

    def column(self, values: Any) -> list[arb]:
        """Return the doubles of an array as balls."""
        return [arb(rational(float(x), self.typed)) for x in values]


def rational(value: float, typed: bool) -> fmpq:
    """Return a double as a rational: exactly, or ``typed`` as the shortest decimal that denotes it."""
    value = float(value)  # numpy's double prints differently
    if not typed:
        return fmpq(*value.as_integer_ratio())
    digits, _, exponent = repr(value).partition("e")
    whole, _, fraction = digits.partition(".")
    return fmpq(int(whole + fraction)) * fmpq(10) ** (int(exponent or 0) - len(fraction))


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Evaluate the block at this working precision."""
    before, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = before


def settle(value: Callable[[], arb], bits: int = 60, cap: int = CAP) -> arb:
    """Return the value as a ball that is relatively small, or -inf, or the ball at the cap.

    Raises:
        Undecided: a comparison is open even at the cap.
    """
    ball, prec = None, START
    while prec <= cap:
        with precision(prec):
            try:
                ball = value()
            except Undecided:
                ball = None
        if ball is not None and (infinite(ball) or ball.is_zero() or small(ball, bits)):
            return ball
        prec *= 2
    if ball is None:
        raise Undecided
    return ball


def small(ball: arb, bits: int) -> bool:
    """Return whether a ball is relatively small."""
    return bool(ball.is_finite() and ball.rel_accuracy_bits() >= bits)


def infinite(ball: arb) -> bool:
    """Return whether a value is -inf: the logarithm of 0."""
    return bool(ball == arb.neg_inf())


def less(a: Any, b: Any) -> bool:
    """Return whether a < b, with proof.

    Raises:
        Undecided: the balls overlap.
    """
    if a < b:
        return True
    if a >= b:
        return False
    raise Undecided


def least(*values: arb) -> arb:
    """Return the smallest of the balls."""
    smallest = values[0]
    for value in values[1:]:
        smallest = smallest.min(value)
    return smallest


def square(x: arb) -> arb:
    """Return x^2, also if the ball contains 0 (a power of it would be nan)."""
    return x * x


def power(base: arb, exponent: int) -> arb:
    """Return base^exponent for base >= 0; 0^0 = 1."""
    if exponent == 0:
        return arb(1)
    if base.is_zero():
        return arb(0)
    return base**exponent if exponent < 10**6 or not base > 0 else (base.log() * exponent).exp()


ZERO = arb.neg_inf()
"""ln 0."""

ABYSS = -(arb(2) ** 1000)
"""The floor of a recursion in ln e: it replaces lower values, which each step would about double without end."""


def log(x: arb) -> arb:
    """Return ln x, -inf at 0."""
    return ZERO if x.is_zero() else x.log()


def log_sum(*logs: arb) -> arb:
    """Return ln of a sum from the logarithms of its terms."""
    finite = [x for x in logs if not infinite(x)]
    if not finite:
        return ZERO
    peak = max(finite, key=_middle)
    return peak + sum(((x - peak).exp() for x in finite), arb(0)).log()


def _middle(x: arb) -> float:
    """Return the middle of a ball as a double, to choose the largest of several."""
    mid = x.mid()
    return float(mid) if abs(mid) < arb(10) ** 300 else (float("inf") if mid > 0 else float("-inf"))


def double(value: float) -> arb:
    """Return a double as an exact ball at any working precision."""
    return arb(value)


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
        # If the ball contains 0 the term is negligible, and the following ones are 0.
        total -= fmpz(math.comb(count, x)) * weight * (-gap.max(arb(0))).expm1()
        weight *= odds
    return ZERO if total.is_zero() else total.log() - count * odds.log1p()


def laplace_shift(ratio: arb, later: int, epsilon: arb) -> arb:
    """Return the minimum over compositions of 1..12, of all steps and of all but one: any number is valid.

    Raises:
        OutOfReach: more than 1500 steps.
    """
    if later >= 1500:
        raise OutOfReach("a composition over more than 1500 steps")
    counts = {*range(1, min(12, later + 1) + 1), later + 1, max(1, later)}
    return least(*(composed(ratio, m, epsilon) for m in sorted(counts)))


_FAR = 100  # from here on tails are formed without exponentials
_DEEP = 1000  # beyond it 1 - delta is below e^-499000


def upper_tail(x: arb) -> arb:
    """Return Q(x) = P(N(0, 1) > x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def density(x: arb) -> arb:
    """Return the standard normal density."""
    return (-(x * x) / 2).exp() / (2 * arb.pi()).sqrt()


def mills(x: arb) -> arb:
    """Return Q(x)/phi(x)."""
    if x < _FAR:
        return upper_tail(x) / density(x)
    return (x * x / 2).hypgeom_u(arb(1) / 2, arb(1) / 2) / arb(2).sqrt()


def log_upper_tail(x: arb) -> arb:
    """Return ln Q(x)."""
    return upper_tail(x).log() if x < _FAR else mills(x).log() - x * x / 2 - (2 * arb.pi()).log() / 2


def log_delta(epsilon: arb, mu: arb) -> arb:
    """Return ln(Q(x) - e^epsilon Q(x + mu)), x = epsilon/mu - mu/2, of N(0, 1) and N(mu, 1) at epsilon >= 0."""
    if mu.is_zero():
        return ZERO
    if epsilon.is_zero():
        share = mu / arb(8).sqrt()  # erf and erfc of it: nothing cancels
        return (-share.erfc()).log1p() if share > 1 else share.erf().log()
    x = epsilon / mu - mu / 2
    if x < -_DEEP:
        return -arb(0).union(arb(-499_000).exp())
    if x < -1:
        return (-(upper_tail(-x) + density(x) * mills(x + mu))).log1p()
    if x < _FAR:
        return (upper_tail(x) - density(x) * mills(x + mu)).log()
    return (mills(x) - mills(x + mu)).log() - x * x / 2 - (2 * arb.pi()).log() / 2


def log_step(noise: Noise, epsilon: arb, ratio: arb | None) -> arb:
    """Return ln h(epsilon, r), the divergence of a step's noise from itself shifted by r scales; None: r = infinity."""
    if ratio is None:
        return arb(0)
    if ratio.is_zero():
        return ZERO
    if noise == Noise.GAUSSIAN:
        return log_delta(epsilon, ratio)
    if not less(epsilon, ratio):
        return ZERO
    x = (epsilon - ratio) / 2
    if x < -(10**6):
        return -arb(0).union(arb(-(10**6)).exp())
    return (-x.exp()).log1p() if x < -1 else (-x.expm1()).log()


def log_mixed(epsilon: arb, mu: arb, share: arb) -> arb:
    """Return ln(p delta_G(ln(1 + (e^epsilon - 1)/p); mu)), of a step that uses the record with probability p."""
    return share.log() + log_delta((epsilon.expm1() / share).log1p(), mu)


# --- from Renyi divergence -------------------------------------------------------------------------------------------


def mironov(order: arb, rdp: arb, log_target: arb) -> arb:
    """Return rdp + ln(1/delta)/(a - 1)."""
    return rdp - log_target / (order - 1)


def canonne(order: arb, rdp: arb, log_target: arb) -> arb:
    """Return rdp + ln((a-1)/a) - (ln delta + ln a)/(a-1)."""
    return rdp + (1 - 1 / order).log() - (log_target + order.log()) / (order - 1)


def canonne_log_delta(order: arb, rdp: arb, epsilon: arb) -> arb:
    """Return (a-1)(rdp - epsilon) - ln(a-1) + a ln(1 - 1/a)."""
    return (order - 1) * (rdp - epsilon) - (order - 1).log() + order * (1 - 1 / order).log()


def asoodeh(order: arb, rdp: arb, log_target: arb) -> arb:
    """Return ln(1 + (e^((a-1) rdp) - 1)/(a delta))/(a-1)."""
    grown = (order - 1) * rdp
    log_excess = grown.expm1().log() if grown < 1000 else grown + (-(-grown).exp()).log1p()
    exponent = log_excess - order.log() - log_target
    return (exponent.exp().log1p() if exponent < 1000 else exponent + (-exponent).exp().log1p()) / (order - 1)


def exact_suffices(order: arb, rdp: arb, log_target: arb, epsilon: arb) -> bool:
    """Return whether min_q p^a q^(1-a) + (1-p)^a (1-q)^(1-a) >= e^((a-1) rdp), p = delta + e^epsilon q, with proof.

    With q = (1 - delta) e^-epsilon t the left side is convex in t on (0, 1). Bisection finds the zero of its slope, and
    the tangent there bounds the minimum from below.

    Raises:
        Undecided: the tangent is not enough at this precision.
    """
    rest = -log_target.expm1()
    scale = rest * (-epsilon).exp()

    def parts(t: arb) -> tuple[arb, arb]:
        p, q = 1 - rest * (1 - t), scale * t
        first = (order * p.log() - (order - 1) * q.log() - (order - 1) * rdp).exp()
        second = (order * (rest * (1 - t)).log() - (order - 1) * (1 - q).log() - (order - 1) * rdp).exp()
        slope = first * (order * rest / p - (order - 1) / t)
        return first + second, slope + second * ((order - 1) * scale / (1 - q) - order / (1 - t))

    def at(logit: arb) -> arb:
        return 1 / (1 + (-logit).exp())

    low, high = arb(-800), arb(40)
    for _ in range(100):
        middle = ((low + high) / 2).mid()
        if parts(at(middle))[1] < 0:
            low = middle
        else:
            high = middle
    value, slope = parts(at(low))
    if value < 1:
        return False
    right = at(high)
    drop = abs(slope) * (right - at(low)).max(arb(0))
    # Left of the bracket the function falls. Right of it the function rises, or its tangent there bounds it.
    beyond = parts(right)[1].min(arb(0)) * (1 - right)
    if value - drop >= 1 and parts(right)[0] + beyond >= 1:
        return True
    raise Undecided


EDGES: dict[str, Callable[[arb, arb, arb], arb]] = {"mironov": mironov, "canonne": canonne, "asoodeh": asoodeh}
"""The conversions with a formula for epsilon at an order, by name."""

EXACT = "exact"
"""The name of the conversion that `exact_suffices` tests."""


# --- the classic calibration -----------------------------------------------------------------------------------------


def classic_factor(log_target: arb) -> arb:
    """Return sqrt(2 ln(1.25/delta))."""
    return (2 * ((arb(5) / 4).log() - log_target)).sqrt()


def classic_holds(epsilon: arb, log_target: arb) -> bool:
    """Return whether the classic noise for (epsilon, delta) gives (epsilon, delta), with proof."""
    return not less(log_target, log_delta(epsilon, epsilon / classic_factor(log_target)))


def capped(value: arb) -> arb:
    """Return the value, at most 0: no delta exceeds 1."""
    return value if infinite(value) else least(value, arb(0))
