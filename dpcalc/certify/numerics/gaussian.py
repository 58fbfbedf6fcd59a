"""Hockey-stick divergences of Gaussian and Laplace noise, and conversions between notions, in ball arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from dpcalc.certify.numerics.balls import ZERO, Undecided, infinite, least, less
from dpcalc.model.quantities import Noise

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
    """Return ln h(epsilon, r), the divergence of a step's noise from itself moved by r scales; None is r = infinity."""
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
    """Return ln(p delta_G(ln(1 + (e^epsilon - 1)/p); mu)), that of a step that uses the record with probability p."""
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
    """Return whether min_q p^a q^(1-a) + (1-p)^a (1-q)^(1-a) >= e^((a-1) rdp), p = delta + e^epsilon q, for certain.

    With q = (1 - delta) e^-epsilon t the left side is convex in t on (0, 1). The zero of its slope is bisected, and the
    tangent at the end of the bisection bounds the minimum from below.

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
    """Return whether the classic noise for (epsilon, delta) gives (epsilon, delta), for certain."""
    return not less(log_target, log_delta(epsilon, epsilon / classic_factor(log_target)))


def capped(value: arb) -> arb:
    """Return the value, at most 0: no delta exceeds 1."""
    return value if infinite(value) else least(value, arb(0))
