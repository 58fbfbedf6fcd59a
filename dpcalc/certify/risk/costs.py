"""Definitions of the cost of privacy: the risk at the reported noise, step size and steps, and ln delta at this noise.

The inputs have the reported run as ``sigma``, ``eta`` and ``count``, and the parameters that the user gave.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from flint import arb

from dpcalc.certify.numerics import sums
from dpcalc.certify.numerics.balls import (
    OutOfReach,
    canonne_log_delta,
    least,
    less,
    log,
    log_delta,
    power,
    precision,
    square,
)
from dpcalc.certify.numerics.composition import Part
from dpcalc.certify.risk import holder_costs
from dpcalc.certify.runs.run import RunInputs, passes_cost
from dpcalc.certify.sampled.noisy_output import drift_square, gradient

Formula = Callable[[RunInputs], arb]


class Price(NamedTuple):
    """The definition of a cost.

    Attributes:
        risk: the risk of the reported run.
        private: ln delta of the reported run at the question's epsilon; None for a composition or without a budget.
        slack: how far a risk may exceed its formula, relatively.
        parts: the parts of the reported run; None if it is not a composition.
    """

    risk: Formula
    private: Formula | None
    slack: float = 1e-11
    parts: Callable[[RunInputs], list[Part]] | None = None


def _norm(v: RunInputs) -> arb:
    """Return G = sqrt(L^2 + d sigma^2)."""
    return (square(v.lipschitz) + v.dimension * square(v.sigma)).sqrt()


def _regret(v: RunInputs, far: arb, terms: int, divisor: int) -> arb:
    """Return (far^2/(2 eta) + terms eta G^2/2)/divisor."""
    return (square(far) / (2 * v.eta) + terms * v.eta * square(_norm(v)) / 2) / divisor


def _half(v: RunInputs) -> int:
    return v.records // 2 + 1


# --- private ---------------------------------------------------------------------------------------------------------


def _message(v: RunInputs) -> arb:
    """Return ln delta of one noisy gradient."""
    return log_delta(v.epsilon, 2 * v.lipschitz / v.sigma)


def _skipped(v: RunInputs, index: int) -> arb:
    """Return ln delta of a random skip for the record at an index."""
    h, later = v.records // 2, v.records - index + 1
    share = arb(min(index, h + 1)) / (h + 1)
    if v.sigma.is_zero():  # without noise delta is the probability that the record is used
        return share.log()
    return share.log() + log_delta(v.epsilon, 2 * v.lipschitz / (v.sigma * arb(later).sqrt()))


def _of_index(v: RunInputs) -> arb:
    return _skipped(v, v.index)


def _of_public(v: RunInputs) -> arb:
    return _skipped(v, max(1, v.records - v.public_records))


def _factor(v: RunInputs) -> arb:
    """Return c = max(|1 - eta m|, |1 - eta beta|) at the reported step size."""
    eta = v.exact("eta")
    return arb(max(abs(1 - eta * v.exact("strong_convexity")), abs(1 - eta * v.exact("smoothness"))))


def _descent(v: RunInputs) -> arb:
    """Return ln delta of noisy gradient descent for the reported number of steps."""
    mu = 2 * v.lipschitz / (v.records * v.sigma) * passes_cost(1, 1, v.count, _factor(v)).sqrt()
    return log_delta(v.epsilon, mu)


def _hidden(v: RunInputs) -> arb:
    """Return ln delta of full-batch steps that hide nothing: mu = 2L sqrt(T)/(n sigma)."""
    return log_delta(v.epsilon, 2 * v.lipschitz * arb(v.count).sqrt() / (v.records * v.sigma))


# --- risks -----------------------------------------------------------------------------------------------------------


def _average(v: RunInputs) -> arb:
    return 2 * square(v.radius) / (v.eta * v.count) + v.eta * square(_norm(v)) / 2


def _stop(v: RunInputs) -> arb:
    return _regret(v, 2 * v.radius, v.records, v.records)


def _stop_centre(v: RunInputs) -> arb:
    return _regret(v, v.radius, v.records + 1, v.records)


def _skip(v: RunInputs) -> arb:
    return _regret(v, 2 * v.radius, _half(v), _half(v))


def _skip_centre(v: RunInputs) -> arb:
    return _regret(v, v.radius, v.records + 1, _half(v))


def _printed(v: RunInputs) -> arb:
    """Return 4 R G/sqrt(n)."""
    return 4 * v.radius * _norm(v) / arb(v.records).sqrt()


def _printed_skip(v: RunInputs) -> arb:
    return _printed(v) * arb(2).sqrt()


def _norm_mean(v: RunInputs) -> arb:
    """Return E|Z| = sqrt(2) Gamma((d+1)/2)/Gamma(d/2)."""
    d = arb(v.dimension)
    return arb(2).sqrt() * (((d + 1) / 2).lgamma() - (d / 2).lgamma()).exp()


def _kernel(v: RunInputs) -> arb:
    return (2 / arb.pi()).sqrt() * square(v.lipschitz) / v.smoothness * _norm_mean(v)


def _smoothed(v: RunInputs) -> arb:
    extra = v.eta * square(v.lipschitz) / (2 * arb.pi()).sqrt() * _norm_mean(v)
    return 2 * square(v.radius) / (v.eta * _half(v)) + v.eta * square(_norm(v)) / 2 + extra


def _smoothed_printed(v: RunInputs) -> arb:
    """Return the printed risk of a skip and L lambda sqrt(d) at lambda = R eps/(2 sqrt(n ln(1/delta)))."""
    width = v.radius * v.epsilon / (2 * (-v.records * v.log_delta).sqrt())
    return _printed_skip(v) + v.lipschitz * width * arb(v.dimension).sqrt()


def _harmonic(v: RunInputs) -> arb:
    """Return (4 R L/sqrt(n)) sqrt(1 + 16 d q ln(1/delta)/eps^2) with sigma for its noise."""
    return 4 * v.radius * _norm(v) / arb(v.records).sqrt()


def _many_tasks(v: RunInputs) -> arb:
    """Return ln delta at the order 4 ln(1/delta)/eps, by Mironov's conversion."""
    order = 4 * -v.log_delta / v.epsilon
    ratio = square(2 * v.lipschitz / v.sigma)
    if less(arb(2), order * (order - 1) * ratio):
        raise OutOfReach("a (a-1) Delta^2 > 2 sigma^2 at the paper's order")
    return (order - 1) * (v.tasks * order * ratio * sums.harmonic(v.records) / v.records - v.epsilon)


def _half_printed(v: RunInputs) -> arb:
    """Return 2 R G/sqrt(n)."""
    return _printed(v) / 2


def _tasks(v: RunInputs) -> arb:
    """Return ln delta of k random stops, as messages of every record or by the profile (k = 1) or the best order."""
    ratio = 2 * v.lipschitz / v.sigma
    messages = log_delta(v.epsilon, ratio * arb(v.tasks).sqrt())
    if v.tasks == 1:
        return least(messages, log(sums.hockey_sticks(v.epsilon, ratio, v.records)) - arb(v.records).log())
    return least(messages, _stops(v, ratio, _best_order(v, ratio)))


def _stops(v: RunInputs, ratio: arb, order: arb) -> arb:
    """Return ln delta of k random stops by their Renyi divergence at an order and the better of two conversions."""
    x = order * (order - 1) * square(ratio) / 2
    above = v.tasks * (sums.expm1_reciprocals(x, v.records) / v.records).log1p()  # (a - 1) times the divergence
    canonne = canonne_log_delta(order, above / (order - 1), v.epsilon)
    if v.epsilon.is_zero():
        return canonne
    return least(canonne, (above.expm1() / (order * ((order - 1) * v.epsilon).expm1())).log())


_LEAST_ORDER, _MOST_EXPONENT = -10.0, 3000.0
"""ln (order - 1) of the least order to try, and the limit of order (order - 1) ratio^2/2."""


def _best_order(v: RunInputs, ratio: arb) -> arb:
    """Return approximately the best order for k random stops; every order gives a bound."""

    def at(s: float) -> float:
        value = _stops(v, ratio, 1 + arb(s).exp())
        return float(value.mid()) if value.is_finite() else math.inf

    with precision(64):
        most = float((2 * _MOST_EXPONENT / square(ratio)).sqrt().log().mid())
        width = (max(most, _LEAST_ORDER + 1.0) - _LEAST_ORDER) / 32
        s = min((_LEAST_ORDER + width * i for i in range(32)), key=at)
        for _ in range(32):
            s = min((s, s - width, s + width), key=at)
            width *= 0.6
    return 1 + arb(s).exp()


def _distance(v: RunInputs, steps: int) -> arb:
    """Return S_K = c^(2K) (2L/m)^2 + eta^2 sigma^2 d (1 - c^(2K))/(1 - c^2)."""
    c = _factor(v)
    left = power(c * c, steps)
    noise = square(v.eta * v.sigma) * v.dimension
    return left * square(2 * v.lipschitz / v.strong_convexity) + noise * (1 - left) / (1 - c * c)


def _inside(v: RunInputs) -> arb:
    return v.smoothness / 2 * _distance(v, v.count)


def _iterated(v: RunInputs) -> arb:
    """Return (beta/2)((1-x)^(2K) 4 L^2/m^2 + eta sigma^2 d/(m (2-x))), x = eta m."""
    m, x = v.strong_convexity, v.eta * v.strong_convexity
    start = power(square(1 - x), v.count) * square(2 * v.lipschitz / m)
    return v.smoothness / 2 * (start + v.eta * square(v.sigma) * v.dimension / (m * (2 - x)))


def _anywhere(v: RunInputs) -> arb:
    noise = v.eta * square(v.sigma) * v.dimension
    return noise + (1 - v.eta * v.strong_convexity) / (2 * v.eta) * _distance(v, v.count - 1)


def _last(v: RunInputs) -> arb:
    """Return R^2/(2 eta T) + eta d sigma^2 H_T."""
    return square(v.radius) / (2 * v.eta * v.count) + v.eta * v.dimension * square(v.sigma) * sums.harmonic(v.count)


def _explicit(v: RunInputs) -> arb:
    scale = square(v.strong_convexity * v.epsilon * v.records)
    return 8 * v.smoothness * v.dimension * square(v.lipschitz) * (2 * v.epsilon - 5 * v.log_delta) / scale


def _holder_gap(v: RunInputs, noise: arb) -> arb:
    """Return R^2/(2 eta T) + (eta/2)(G^2 + d sigma^2) + G (eta G (T-1)/n + (2/3) a sqrt(T))."""
    g, steps = gradient(v, unconstrained=False), v.count
    rest = 1 - v.exact("holder_exponent")
    a = arb(0)
    if rest:
        a = drift_square(v, v.holder_constant * v.eta * (-v.holder_exponent * arb(2).log()).exp()).sqrt()
    a = least(a, 2 * v.eta * g)
    regret = square(v.radius) / (2 * v.eta * steps) + v.eta / 2 * (square(g) + noise)
    return regret + g * (v.eta * g * (steps - 1) / v.records + a * arb(steps).sqrt() * 2 / 3)


def _on_gradient(v: RunInputs) -> arb:
    return _holder_gap(v, v.dimension * square(v.sigma))


def _on_output(v: RunInputs) -> arb:
    square_ = v.dimension * square(v.sigma)
    curved = v.holder_constant * (square_.log() * (1 + v.holder_exponent) / 2).exp() / (1 + v.holder_exponent)
    return _holder_gap(v, arb(0)) + curved


def _both(printed: Formula, at_step: Formula) -> Formula:
    """Return the larger of a paper's printed risk at its own step size and the risk at the reported one, if any."""
    return lambda v: printed(v) if v.given("eta") is None else printed(v).max(at_step(v))


PRICES: dict[str, Price] = {
    "utility.average": Price(_average, None),
    "utility.stop": Price(_stop, _message),
    "utility.stop_from_centre": Price(_stop_centre, _message),
    "utility.stop_classic": Price(_both(_printed, _stop), _message),
    "utility.skip": Price(_skip, _message),
    "utility.skip_from_centre": Price(_skip_centre, _message),
    "utility.skip_classic": Price(_both(_printed_skip, _skip), _message),
    "utility.person": Price(_skip, _of_index),
    "utility.public": Price(_skip, _of_public),
    "utility.public_classic": Price(_both(_printed_skip, _skip), _of_public),
    "tasks.stop": Price(_both(_half_printed, _stop), _tasks),
    "tasks.harmonic": Price(_harmonic, _many_tasks),
    "smoothing.kernel": Price(_kernel, None),
    "smoothing.skip": Price(_smoothed, _message),
    "smoothing.skip_classic": Price(_both(_smoothed_printed, _smoothed), _message),
    "langevin.explicit": Price(_explicit, _descent),
    "langevin.iterated": Price(_iterated, _descent),
    "langevin.shifted": Price(_inside, _descent, 1e-8),
    "langevin.boundary": Price(_anywhere, _descent, 1e-8),
    "descent.last": Price(_last, None),
    "descent.least_noise": Price(_last, _hidden),
    "holder_cost.gradient_expected": Price(_on_gradient, None, 1e-10, holder_costs.on_gradients),
    "holder_cost.output_expected": Price(_on_output, holder_costs.on_output, 1e-10),
    **{
        f"holder_cost.gradient_{name}": Price(holder_costs.step_risk(gap), None, 1e-8, holder_costs.on_gradients)
        for name, gap in holder_costs.GAPS.items()
    },
    **{
        f"holder_cost.output_{name}": Price(holder_costs.output_risk(gap), holder_costs.on_output, 1e-8)
        for name, gap in holder_costs.GAPS.items()
    },
}
"""The definition of each cost, by the id of its bound."""


def price_of(bound: str) -> Price | None:
    """Return the definition of a cost; None if there is none."""
    return PRICES.get(bound)
