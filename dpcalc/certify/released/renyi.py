"""Definition of `released.shuffled_epochs_rdp`: the Renyi divergence from the curve of a pass in random order.

The moment of order a of two Gaussians is e^(a (a-1) mu^2/2); for a mixture with known positions it is the mean of
these. If the domain bounds a pass,

    D_a <= ln(1 + a (a-1) int_0^inf (e^((a-1) x) + e^(-a x)) delta(x) dx)/(a-1).

The profile of a pass is convex in e^x. Its bound is the least of the upper bounds at knots, the chord in e^x between
them, whose integral is elementary, and the profile of the record's own noise beyond the last knot.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from flint import arb, fmpq

from dpcalc.certify.guarantee import EnclosedRdp
from dpcalc.certify.many_passes.random_orders import places_of_pass
from dpcalc.certify.numerics.balls import OutOfReach, Undecided, least, log_upper_tail
from dpcalc.certify.numerics.composition import Curve
from dpcalc.certify.released.compositions import MOST_POSITIONS, few_steps, own_ratio, pass_curves
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.runs.uses import classes
from dpcalc.certify.table import defines
from dpcalc.model.quantities import Noise

_KNOTS = 600
_HALVINGS = 40  # the first knots are the end over powers of two
_FAR = 12  # standard deviations of the record's own noise beyond its tilted mean at which a curve may end
_SMALL = 1e-6  # share of the integral that may lie beyond the end
_LONGEST = 60  # doublings of the end


class _Span(NamedTuple):
    """Two neighbouring knots, the curve there, and the integral below the chord."""

    low: arb
    high: arb
    at_low: arb
    at_high: arb
    below: arb


@defines("released.shuffled_epochs_rdp", EnclosedRdp, slack=2e-2, weight=4000.0, limit=f"{MOST_POSITIONS} steps a pass")
def _shuffled_epochs(v: RunInputs) -> arb:
    own, gaussian = own_ratio(v), v.noise == Noise.GAUSSIAN
    if v.order is None:
        return arb.pos_inf() if gaussian else v.epochs * own
    if own.is_zero():
        return arb(0)
    ways = [_mean([(arb(1), own)], v.order) if gaussian else _laplace(own, v.order)]
    if gaussian and v.is_nonexpansive():
        few_steps(v)
        ways.append(_mean(places_of_pass(v) or _places(v), v.order))
    if v.displacement is not None and v.diameter is not None:
        integral = _integral(_least(pass_curves(v)), v.order, own, v.noise)
        ways.append(_divergence(v.order * (v.order - 1) * integral, integral, v.order))
    return v.epochs * least(*ways)


def _places(v: RunInputs) -> list[tuple[arb, arb]]:
    """Return the share of the records at every position, and mu there for 1-Lipschitz steps."""
    return [
        (arb(fmpq(alike.size, v.records)), v.quotient(["sensitivity"], [alike.divisor, "scale"]) / arb(k).sqrt())
        for alike in classes(v)
        for k in range(alike.first, alike.first + alike.steps)
    ]


def _mean(places: Sequence[tuple[arb, arb]], order: arb) -> arb:
    """Return the Renyi divergence of a mixture of Gaussian pairs whose pair is public."""
    excess = sum((share * (order * (order - 1) * mu * mu / 2).expm1() for share, mu in places), arb(0))
    return _divergence(excess, sum((share * mu * mu / 2 for share, mu in places), arb(0)), order)


def _laplace(own: arb, order: arb) -> arb:
    """Return the Renyi divergence of two Laplace laws ``own`` scales apart."""
    slope = own + (-own).expm1()
    rise, fall = ((order - 1) * own).expm1(), (-order * own).expm1()
    return _divergence((order * rise + (order - 1) * fall) / (2 * order - 1), slope, order)


def _divergence(excess: arb, slope: arb, order: arb) -> arb:
    """Return ln(1 + excess)/(a-1); at order 1 the slope."""
    return slope if order == 1 else excess.log1p() / (order - 1)


def _least(curves: Sequence[Curve]) -> Curve:
    """Return the least of the curves, at most 1; a curve that is undecided at a kink is skipped there."""

    def curve(z: arb) -> arb:
        delta = arb(1)
        for one in curves:
            with suppress(Undecided):
                delta = delta.min(one(z))
        return delta

    return curve


def _integral(curve: Curve, order: arb, own: arb, noise: Noise) -> arb:
    """Return an upper bound on the integral; its end moves outwards until the part beyond is small.

    Raises:
        OutOfReach: there is no such end.
    """
    if noise == Noise.LAPLACE:  # no loss exceeds ``own``
        return _up_to(own, lambda z: curve(z) if z < own else arb(0), order)
    end = (order * own + _FAR) * own
    for _ in range(_LONGEST):
        integral, beyond = _up_to(end, curve, order), _beyond(end, order, own)
        if beyond < integral * _SMALL:
            return integral + beyond
        end *= 2
    raise OutOfReach("an integral without an end")


def _up_to(end: arb, curve: Curve, order: arb) -> arb:
    """Return the integral below chords from 0 to the end; the spans with the largest gain are halved."""
    knots = [arb(0), *(end / (1 << j) for j in range(_HALVINGS, -1, -1))]
    values = [curve(x) for x in knots]
    spans = [
        _span(low, high, a, b, order) for low, high, a, b in zip(knots, knots[1:], values, values[1:], strict=False)
    ]
    heap = [(-_size(span.below), number, span) for number, span in enumerate(spans)]
    heapq.heapify(heap)
    for number in range(len(spans), _KNOTS):
        _, _, span = heapq.heappop(heap)
        middle = (span.low + span.high) / 2
        at_middle = curve(middle)
        halves = (
            _span(span.low, middle, span.at_low, at_middle, order),
            _span(middle, span.high, at_middle, span.at_high, order),
        )
        gain = span.below - halves[0].below - halves[1].below
        for side, half in enumerate(halves):
            heapq.heappush(heap, (-_size(gain) + 2.0, 2 * number + side, half))
    return sum((span.below for _, _, span in heap), arb(0))


def _size(x: arb) -> float:
    """Return approximately ln of a ball's middle; -inf if that is not positive."""
    middle = x.mid()
    return float(middle.log().mid()) if middle > 0 else -math.inf


def _span(low: arb, high: arb, at_low: arb, at_high: arb, order: arb) -> _Span:
    slope = (at_high - at_low) / (high.exp() - low.exp())
    level = at_low - slope * low.exp()
    below = arb(0)
    for rate in (order - 1, -order):
        below += level * _exponential(rate, low, high) + slope * _exponential(rate + 1, low, high)
    return _Span(low, high, at_low, at_high, below)


def _exponential(rate: arb, low: arb, high: arb) -> arb:
    """Return the integral of e^(rate x)."""
    return high - low if rate.is_zero() else (rate * low).exp() * (rate * (high - low)).expm1() / rate


def _beyond(end: arb, order: arb, own: arb) -> arb:
    """Return a bound on the integral from the end on for two Gaussians at distance ``own``.

    With L the loss, delta(x) = E (1 - e^(x - L))_+, and the integral of e^((a-1) x) delta(x) is a difference of normal
    tails. As delta decreases, the integral of e^(-a x) delta(x) is at most e^(-a end)/a times its value at the end.
    """
    x = end / own - own / 2
    plain, back = log_upper_tail(x).exp(), log_upper_tail(x + own).exp()
    delta = plain - end.exp() * back
    other = (-order * end).exp() / order * delta
    if order == 1:
        return own * ((-(x * x) / 2).exp() / (2 * arb.pi()).sqrt()) + (own * own / 2 - end) * plain - delta + other
    tilted = (order * (order - 1) * own * own / 2 + log_upper_tail(x - (order - 1) * own)).exp()
    whole = tilted / (order * (order - 1)) - ((order - 1) * end).exp() * plain / (order - 1)
    return whole + (order * end).exp() * back / order + other
