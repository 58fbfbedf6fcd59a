"""An upper bound on delta of a composition, by the characteristic function of its privacy loss in ball arithmetic.

A part is a pair of laws, given by its privacy profile delta(z) and, if different, that of the exchanged pair. Their
values at knots, joined by chords in e^z, describe a law of finitely many losses that dominates the pair. With phi the
product of the moments E exp(s L) of all parts, for every c > 0 and every M the sum

    delta(eps) <= (1/M) sum_k phi(s_k) K(s_k), s_k = c + 2 pi i k/(M h), K(s) = sum over lattice points z > eps of
    exp(-s z) (1 - exp(eps - z))

bounds delta from above. On a lattice of step h it is the sum of delta(eps - j M h) exp(-c j M h) over all integers j,
and no term is negative. If there are few terms, all are added, from one Fourier transform. Otherwise the terms that are
not near k = 0 are bounded together by the largest modulus of phi.

If the moments themselves are known, no chords are needed: see `_by_moments`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from flint import acb, arb

from dpcalc.certify.numerics.balls import OutOfReach, log, precision, square
from dpcalc.certify.numerics.moments import Kernel, Loss, OutOfHand, spread_of, sums_on_grid
from dpcalc.certify.numerics.products import MOST_TERMS, Product, sum_of_terms, terms_needed

Curve = Callable[[arb], arb]
"""z >= 0 -> delta; it need not be convex."""

_BITS = 128
_GROWTH = 1 / 400  # gap between knots relative to their place: up to 400 steps they are one step apart
_MOST_POINTS, _FEW_POINTS = 1 << 17, 1 << 15
_FAR = 18.0  # standard deviations from the middle beyond which the characteristic function is not evaluated
_RAREST = -500.0  # ln of the probability of losses ignored in a first look at moments; exp(c L) must not revive them
_BEYOND = 22.0  # -ln of the tilted weight that losses beyond a period may have
_GENTLER = (
    1.0,
    0.7,
    0.5,
    0.35,
    0.25,
)  # multiples of c: a smaller c gives large losses less weight and a shorter period
_STEEPER = (1.2, 1.5, 2.0)  # a larger c gives less weight to the least losses, whose moments fall slowly
_MOST_EXCESS = 30.0  # ln of the moments over delta: beyond it too few digits remain
_ENOUGH = 800  # up to this many terms another tilt saves no time
_WIDE = 1.5  # losses count up to this multiple of the distance for a normal law
_WELL_BELOW = 2.0  # if ln delta is this far below the target, a bound by exp(c L) is enough
_MOST_LAWS = 100  # a curve of a mean of more laws takes minutes at all knots
_TOO_LARGE = "a composition that would take too many points"


class Part(NamedTuple):
    """A pair of laws (P, Q), and the number of its copies.

    Attributes:
        curve: the profile of (P, Q).
        copies: how often the pair is composed.
        atom: the largest finite loss, if it has mass.
        other: the profile of (Q, P); None if ``curve`` holds for both.
        loss: the law of the loss, if its moments are known.
        laws: the number of laws whose mean the curve is.
    """

    curve: Curve
    copies: int
    atom: arb | None = None
    other: Curve | None = None
    loss: Loss | None = None
    laws: int = 1

    @property
    def back(self) -> Curve:
        """The profile of (Q, P)."""
        return self.curve if self.other is None else self.other

    def exchanged(self) -> Part:
        """Return the part with P and Q exchanged."""
        if self.other is None:
            return self
        loss = None if self.loss is None else self.loss.exchanged()
        return self._replace(curve=self.other, other=self.curve, loss=loss)


class _Ends(NamedTuple):
    """The largest loss that matters, and minus the smallest."""

    top: float
    bottom: float


class _Law(NamedTuple):
    """A law of losses: (multiple of the step, probability), the probability of an infinite loss, and the copies."""

    atoms: list[tuple[int, arb]]
    infinite: arb
    copies: int


class _Tilt(NamedTuple):
    """c, the standard deviation of the loss under the law tilted by exp(c loss), and the period."""

    at: float
    spread: float
    period: float


def log_delta(parts: Sequence[Part], epsilon: arb, about: float, fineness: int = 0) -> arb:
    """Return an upper bound on ln delta of the composition.

    Args:
        parts: the composed parts.
        epsilon: >= 0.
        about: roughly ln delta; the result is valid for any value.
        fineness: multiplies the number of knots on a lattice; 0 for a bound by moments, if these are known.

    Raises:
        OutOfReach: it would take too many points, or losses are too large.
    """
    with precision(_BITS):
        parts = [part for part in parts if part.copies]
        if len(parts) == 1 and parts[0].copies == 1:
            return log(parts[0].curve(epsilon).upper())
        return _on_lattice(parts, epsilon, about, fineness) if fineness else _near(parts, epsilon, about)


def _near(parts: Sequence[Part], epsilon: arb, about: float) -> arb:
    """Return an upper bound on ln delta by moments; 0 if these are not known or fall too slowly."""
    if not epsilon > 0 or any(part.loss is None for part in parts):
        return arb(0)
    middle = float(epsilon.mid())
    try:
        coarse = [_rough(part, _ends(part, _RAREST)) for part in parts]
        delta = _by_moments(parts, epsilon, _narrow(coarse, _tilt_of(coarse, middle, about), middle, about), about)
    except (OverflowError, ZeroDivisionError, ValueError, OutOfReach, OutOfHand):
        return arb(0)
    return arb(0) if delta is None else log(delta.upper())


def _on_lattice(parts: Sequence[Part], epsilon: arb, about: float, fineness: int) -> arb:
    """Return an upper bound on ln delta by laws on a lattice."""
    if (most := max(part.laws for part in parts)) > _MOST_LAWS:
        raise OutOfReach(f"the law of earlier uses has {most} values, and a lattice for it would take minutes")
    rare = about - 16.0
    ends = [_ends(part, rare) for part in parts]
    try:
        coarse = [_rough(part, end) for part, end in zip(parts, ends, strict=True)]
        tilt = _tilt_of(coarse, float(epsilon.mid()), about)
        widest = _step(coarse, tilt.at, parts)
    except (OverflowError, ZeroDivisionError):
        raise OutOfReach("losses so large that their exponentials are no doubles") from None
    coarsest = 1.001 * tilt.period / _MOST_POINTS  # a finer step takes too many points
    try:
        delta = _by_step(parts, ends, widest / fineness, epsilon, tilt, fineness)
    except OutOfReach:  # with a coarser one all points are added
        if not widest / fineness < coarsest < widest:
            raise
        delta = _by_step(parts, ends, coarsest, epsilon, tilt, fineness, few=False)
    return log(delta.upper().max(arb(0)).min(arb(1)))


def _by_step(
    parts: Sequence[Part],
    ends: Sequence[_Ends],
    step: float,
    epsilon: arb,
    tilt: _Tilt,
    fineness: int,
    *,
    few: bool = True,
) -> arb:
    """Return an upper bound on delta, by laws on multiples of approximately this step.

    Raises:
        OutOfReach: it would take too many points.
    """
    h = _exact_step(step, parts)
    laws = [_law(part, end, h, fineness) for part, end in zip(parts, ends, strict=True)]
    return _finite(laws, h, epsilon, tilt, few=few) + sum((law.copies * law.infinite for law in laws), arb(0))


# --- a first look, in doubles ----------------------------------------------------------------------------------------

_Rough = tuple[list[tuple[float, float]], int]
"""(loss, ln of its probability), and the number of copies."""


def _ln(x: arb) -> float:
    """Return ln of a ball's middle as a double; -inf if it is not positive."""
    middle = x.mid()
    return float(middle.log().mid()) if middle > 0 else -math.inf


def _ends(part: Part, rare: float) -> _Ends:
    """Return the ends beyond which the losses of all copies are worth less than exp(``rare``) of delta."""
    goal = rare - math.log(part.copies)
    if part.atom is not None:
        top = float(part.atom.mid())
        return _Ends(top, top)
    top = _end(lambda z: _ln(part.curve(arb(z))) > goal)
    return _Ends(top, top if part.other is None else _end(lambda z: _ln(part.back(arb(z))) - z > goal))


def _end(counts: Callable[[float], bool]) -> float:
    """Return approximately the least z from which on no loss counts."""
    high = 1e-6
    while counts(high):
        high *= 2.0
        if high > 1e7:
            raise OutOfReach("a part with losses beyond all bounds")
    low = high / 2.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if counts(middle) else (low, middle)
    return high


def _rough(part: Part, ends: _Ends, knots: int = 160) -> _Rough:
    """Return a part as a few losses."""
    shares = [1e-4 ** (1.0 - i / (knots - 1)) for i in range(knots)]
    below = [-ends.bottom * share for share in reversed(shares)]
    above = [0.0, *(ends.top * share for share in shares)]
    rises = [*below, *above]
    values = [-math.expm1(z) + math.exp(z) * float(part.back(arb(-z)).mid()) for z in below]
    values += [float(part.curve(arb(z)).mid()) for z in above]
    masses, before = [], (values[0] - 1.0) / math.exp(rises[0])
    for i, z in enumerate(rises):
        after = 0.0
        if i + 1 < len(rises):
            after = (values[i + 1] - values[i]) / (math.exp(rises[i + 1]) - math.exp(z))
        mass = math.exp(z) * (after - before)
        before = after
        if mass > 0.0:
            masses.append((z, math.log(mass)))
    return masses, part.copies


def _moments(rough: _Rough, c: float) -> tuple[float, float, float, float]:
    """Return ln E exp(c L), and under the tilted law the mean, the variance and the third absolute central moment."""
    logs = [(z, mass + c * z) for z, mass in rough[0]]
    peak = max(mass for _, mass in logs)
    weights = [(z, math.exp(mass - peak)) for z, mass in logs]
    total = sum(w for _, w in weights)
    mean = sum(w * z for z, w in weights) / total
    variance = sum(w * (z - mean) ** 2 for z, w in weights) / total
    return peak + math.log(total), mean, variance, sum(w * abs(z - mean) ** 3 for z, w in weights) / total


def _tilt_of(rough: Sequence[_Rough], epsilon: float, about: float) -> _Tilt:
    """Return approximately the c that minimises exp(-c epsilon) E exp(c L)/(c (c + 1))."""

    def bound(x: float) -> float:
        c = math.exp(x)
        return sum(one[1] * _moments(one, c)[0] for one in rough) - c * epsilon - x - math.log1p(c)

    low, high = -12.0, 16.0
    for _ in range(40):
        a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, b) if bound(a) < bound(b) else (a, high)
    c = math.exp(0.5 * (low + high))
    spread = math.sqrt(sum(one[1] * _moments(one, c)[2] for one in rough))
    return _Tilt(c, spread, max((20.0 - about) / c, 12.0 * spread))


def _narrow(rough: Sequence[_Rough], tilt: _Tilt, epsilon: float, about: float) -> list[_Tilt]:
    """Return tilts with their periods, beyond which the weight of losses is negligible; the first has a short one.

    If delta is far below the target, as in the better order of the data sets, the only tilt is the least at which
    exp(-c epsilon) E exp(c L) is small enough.
    """
    for power in range(1, 40):
        c = 1.5**power
        if c < tilt.at and sum(one[1] * _moments(one, c)[0] for one in rough) - c * epsilon < about - _WELL_BELOW:
            return [_of_period(rough, c, epsilon, about)]
    gentler = min((_of_period(rough, tilt.at * share, epsilon, about) for share in _GENTLER), key=lambda x: x.period)
    return [gentler, *(_of_period(rough, tilt.at * share, epsilon, about) for share in _STEEPER)]


def _of_period(rough: Sequence[_Rough], c: float, epsilon: float, about: float) -> _Tilt:
    """Return a tilt with a period beyond which the weight of losses is negligible relative to exp(c epsilon) delta."""
    laws = [(losses, copies, _moments((losses, copies), c)) for losses, copies in rough]
    excess = max(0.0, sum(copies * law[0] for _, copies, law in laws) - c * epsilon - about)
    middle = sum(copies * law[1] for _, copies, law in laws)
    spread = math.sqrt(sum(copies * law[2] for _, copies, law in laws))
    counts = [
        z
        for losses, copies, law in laws
        for z, mass in losses
        if mass + c * z - law[0] + math.log(copies) > -_BEYOND - excess
    ]
    wide = middle - epsilon + _WIDE * spread * math.sqrt(2.0 * (_BEYOND + excess))
    return _Tilt(c, spread, max((20.0 - about) / c, wide, 1.1 * max(counts)))


def _step(rough: Sequence[_Rough], c: float, parts: Sequence[Part]) -> float:
    """Return the step: a small share of the deviation of a loss, or of the distance of its rare values."""
    steps = []
    for one in rough:
        _, _, variance, cubed = _moments(one, c)
        if variance > 0.0:
            steps.append(max(math.sqrt(variance) / 250.0, cubed / variance / 2500.0))
    return min(steps, default=1.0)


def _exact_step(step: float, parts: Sequence[Part]) -> arb:
    """Return the step as a ball; if the largest loss has mass, it is a multiple of the step."""
    atoms = [part.atom for part in parts if part.atom is not None]
    return atoms[0] / max(1, math.ceil(float(atoms[0].mid()) / step)) if atoms else arb(step)


# --- the law of a part -----------------------------------------------------------------------------------------------


def _law(part: Part, ends: _Ends, h: arb, fineness: int) -> _Law:
    """Return a law that dominates the part, on multiples of the step."""
    above, below = (_knots(end, h, fineness) for end in ends)
    deltas = {j: part.curve(j * h).min(arb(1)) for j in above}
    back = deltas if part.other is None else {j: part.back(j * h).min(arb(1)) for j in below[1:]}
    points = [(arb(0), arb(1), 0)]
    for j in reversed(below[1:]):
        factor = (-j * h).exp()
        points.append((factor, 1 - factor + factor * back[j], -j))
    points += [((j * h).exp(), deltas[j], j) for j in above]
    hull = _hull(points)
    atoms = []
    for i in range(1, len(hull)):
        at, value, j = hull[i]
        before = (value - hull[i - 1][1]) / (at - hull[i - 1][0])
        after = (hull[i + 1][1] - value) / (hull[i + 1][0] - at) if i + 1 < len(hull) else arb(0)
        atoms.append((j, (at * (after - before)).max(arb(0))))
    return _Law(atoms, hull[-1][1], part.copies)


def _knots(end: float, h: arb, fineness: int) -> list[int]:
    """Return multiples of the step from 0 to the end, with gaps that grow with the multiple."""
    knots, j, last = [0], 0, max(1, math.ceil(end / float(h.mid()) - 1e-9))
    while j < last:
        j = min(last, j + max(1, int(j * _GROWTH / fineness)))
        knots.append(j)
    return knots


def _hull(points: Sequence[tuple[arb, arb, int]]) -> list[tuple[arb, arb, int]]:
    """Return the corners of the lower convex hull, as far as balls can decide; the convex profile is below it."""
    corners: list[tuple[arb, arb, int]] = []
    for point in points:
        while len(corners) > 1:
            (x0, y0, _), (x1, y1, _), (x2, y2, _) = corners[-2], corners[-1], point
            if (y1 - y0) * (x2 - x1) <= (y2 - y1) * (x1 - x0):
                break
            corners.pop()
        corners.append(point)
    return corners


# --- the integral, if moments are known ------------------------------------------------------------------------------


def _by_moments(parts: Sequence[Part], epsilon: arb, tilts: Sequence[_Tilt], about: float) -> arb | None:
    """Return a tight upper bound on delta; None if moments do not fall fast enough at any of the tilts.

    delta(eps) is the integral of phi(s) exp(-s eps)/(s (s + 1)) over t, divided by 2 pi. The trapezoidal rule with
    steps of 2 pi/M adds delta(eps - j M) exp(-c j M) for all integers j != 0, none of which is negative. The part
    beyond t is at most the largest |phi| there times exp(-c eps)/(pi t). Every phi is enclosed in a ball.

    If every loss has an atom at 0 of probability a_i, let psi_i be the moment of its other values: phi is a product of
    (a_i + psi_i)^(k_i). The term without psi adds nothing to delta. Terms with one psi add the delta of a single step,
    from its curve. The sum is over the others, a polynomial in psi without negative coefficients, of order t^-2.
    """
    best = None
    for tilt in tilts:
        c = arb(tilt.at)
        product = Product([(part.loss.moments(c), part.copies) for part in parts if part.loss is not None])
        size = product.whole([moments.at(arb(0)).real for moments, _ in product.moments])
        if (bound := size * (-c * epsilon).exp() * c**c / (1 + c) ** (1 + c)) < arb(about - 1.0).exp():
            return bound  # (1 - e^(eps - L))_+ is at most exp(c (L - eps)) times the largest (1 - e^-x) e^(-c x)
        if best is not None and bound > arb(about + _MOST_EXCESS).exp():
            break
        terms = terms_needed(product, arb(about).exp() * (c * epsilon).exp(), arb(tilt.period))
        if best is None or terms < best[0]:
            best = terms, product, tilt
        if terms <= _ENOUGH:
            break
    if best is None or best[0] > MOST_TERMS:
        return None
    _, product, tilt = best
    alone = product.of_one([part.curve(epsilon) for part in parts])
    return sum_of_terms(product, alone, arb(tilt.at), epsilon, tilt.period, arb(about).exp())


# --- the sum ---------------------------------------------------------------------------------------------------------


def _finite(laws: Sequence[_Law], h: arb, epsilon: arb, tilt: _Tilt, *, few: bool) -> arb:
    """Return an upper bound on the part of delta from finite losses."""
    c, width = arb(tilt.at), float(h.mid())
    first = math.floor(float((epsilon / h).mid()) + 1e-9) + 1
    while not first * h > epsilon:
        first += 1
    whole = 1 << max(10, math.ceil(math.log2(tilt.period / width)))
    kernel = Kernel(c, h, epsilon, first)
    tilted = [_tilted(law, h, c) for law in laws]
    if few and whole > _FEW_POINTS:
        some = _by_few(laws, tilted, kernel, tilt)
        if some is not None:
            return some
    if whole > _MOST_POINTS:
        raise OutOfReach(_TOO_LARGE)
    return _by_all(laws, tilted, kernel, whole)


def _tilted(law: _Law, h: arb, c: arb) -> list[tuple[int, arb]]:
    """Return (multiple, probability times exp(c loss))."""
    return [(j, mass * (c * h * j).exp()) for j, mass in law.atoms if not mass.is_zero()]


def _by_all(laws: Sequence[_Law], tilted: Sequence[list[tuple[int, arb]]], kernel: Kernel, whole: int) -> arb:
    """Return the sum over all k, from one Fourier transform per part."""
    product: list[acb] | None = None
    for law, weights in zip(laws, tilted, strict=True):
        powers = [x**law.copies for x in _transformed(weights, whole)[: whole // 2 + 1]]
        product = powers if product is None else [a * b for a, b in zip(product, powers, strict=True)]
    assert product is not None
    total = arb(0)
    for k, value in enumerate(product):
        share = 1 if k in (0, whole // 2) else 2
        total += share * (value * kernel.at(arb(k) / whole)).real
    return total / whole


def _by_few(laws: Sequence[_Law], tilted: Sequence[list[tuple[int, arb]]], kernel: Kernel, tilt: _Tilt) -> arb | None:
    """Return the sum over k near 0 plus a bound on the rest; None if that bound is not small."""
    width = float(kernel.h.mid())
    many = math.ceil(tilt.period / width)
    near = math.ceil(_FAR / tilt.spread * many * width / (2.0 * math.pi))
    if near > 3000 or 2 * near + 2 > many:
        return None
    rest = _largest_beyond(laws, tilted, 2.0 * math.pi * near / many)
    if rest is None:
        return None
    total = arb(0)
    angle = 2 * arb.pi() / many
    moments = [sums_on_grid([(acb(weight), acb(0, j * angle)) for j, weight in weights]) for weights in tilted]
    for k in range(near + 1):
        value = kernel.at(arb(k) / many)
        for law, moment in zip(laws, moments, strict=True):
            value *= next(moment) ** law.copies
        total += (1 if k == 0 else 2) * value.real
    total = total / many
    rest *= kernel.largest()
    return total + rest if rest < total * arb(2) ** -20 else None


def _largest_beyond(laws: Sequence[_Law], tilted: Sequence[list[tuple[int, arb]]], start: float) -> arb | None:
    """Return a bound on |phi| for h times t from ``start`` to pi, or None if there is none.

    Let v, r, q be the absolute central moments of second to fourth order. If t r/6 + t^2 q/24 <= v/4 and t^2 v <= 2,
    |E exp(i t L)| is at most 1 - t^2 v/4: its real part is between 0 and 1 - t^2 v/2 + t^4 q/24, and its imaginary part
    is at most t^3 r/6. For larger t it differs from its value at the nearest point of a Fourier transform by at most
    their distance times E |L - mean|.
    """
    spreads = [spread_of(weights) for weights in tilted]
    edge = min(spread.edge() for spread in spreads)
    bounds = []
    if start < edge:
        near = arb(0)
        for law, spread in zip(laws, spreads, strict=True):
            modulus = 1 - square(arb(start)) * spread.second / 4 + arb(start) * abs(spread.mean)
            near += law.copies * (spread.total * modulus.min(arb(1))).log()
        bounds.append(near)
    from_here = max(edge, start)
    points = next((1 << n for n in (13, 15, 16, 17, 18) if from_here * (1 << n) >= 40.0), 0)
    if not points:
        return None
    skipped, half = int(from_here * points / (2.0 * math.pi)), arb.pi() / points
    far = [arb(0)] * (points // 2 + 1 - skipped)
    for law, weights, spread in zip(laws, tilted, spreads, strict=True):
        moduli = [abs(x) for x in _transformed(weights, points)[skipped : points // 2 + 1]]
        far = [
            known + law.copies * (x + half * spread.first * spread.total).min(spread.total).log()
            for known, x in zip(far, moduli, strict=True)
        ]
    for bound in far:
        bounds.append(bound)
    largest = bounds[0]
    for bound in bounds[1:]:
        largest = largest.max(bound)
    return largest.exp()


def _transformed(weights: list[tuple[int, arb]], points: int) -> list[acb]:
    """Return the sum of weight exp(2 pi i k multiple/points) over the weights, for every k."""
    column = [arb(0)] * points
    for j, weight in weights:
        column[-j % points] += weight
    return list(acb.dft([acb(x) for x in column]))
