"""Moments E exp(s L) of the privacy loss of a step on a sample, enclosed for complex s, and bounds for large |s|.

Lengths are in units of the noise, n is the standard normal density, and P and Q are mixtures sum_j w_j N(a_j) with
densities p n and q n, p(y) = sum_j w_j exp(a_j y - a_j^2/2). With L = ln p/q the moment is

    E_P exp(s L) = int n p^(s+1) q^-s dy,    s = c + i t.

All a_j of a mixture have one sign. So |p(x + iv)| is at most p(x), and at least its term at 0 plus cos(a v) times the
rest, for the largest a. The integral may be taken along a path at height v on the side where Im L > 0, so exp(i t L)
decreases in t. The path is divided into panels, each with a Gauss-Legendre rule; its error is bounded by the largest
value on a disc about the panel. For all t > T the moment is at most the sum over the panels of the integral of
|n p^(c+1) q^-c| times exp(-T Im L) at the least Im L; near a start, integration by parts may give a smaller bound.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

from flint import acb, arb

from dpcalc.certify.numerics.balls import OutOfReach, precision, square, upper_tail

_POINTS = 24  # of a rule, with an error of about 4^-46 = 10^-27 of the largest value on the ellipse
_AXIS = 2.125  # longer semi-axis of that ellipse in half lengths of a panel: (4 + 1/4)/2
_HEIGHT, _HALF = 0.55, 0.25  # height of the path and half length of a panel, over the largest a: discs avoid the axis
_GROWTH = 1.9  # of panels of a path that leaves the real line at 45 degrees: their discs do not touch it
_BOXES = 4  # of a panel next to a start, on which a derivative is bounded
_STEEP = 16.0  # a disc on which n p^(c+1) q^-c varies by e^16 leaves an accuracy of 10^-21
_LEFT_OUT = 90.0  # -ln of dropped tails
_FARTHEST = 1e9  # a bound on the loss in dropped tails: ln p/q grows like a x
_SMALL = 40.0  # -ln of integrands that may vary more: their errors are below 10^-44
_MOST_NODES = 40_000
_BLOCK = 48  # successive products; they cost 24 of 128 bits, then negligible terms are dropped
_NEGLIGIBLE = 60.0  # -ln of the size of negligible terms relative to the sum
LARGEST_T = 2.0**20  # no t is larger


class OutOfHand(ArithmeticError):
    """The path would take too many panels."""


@functools.cache
def _rule() -> list[tuple[arb, arb]]:
    """Return the nodes and weights of a Gauss-Legendre rule on [-1, 1]."""
    with precision(192):
        return [arb.legendre_p_root(_POINTS, k, weight=True) for k in range(_POINTS)]


class Mixture(NamedTuple):
    """sum_j w_j N(a_j): [(w_j, a_j)]; the first a_j is 0 and the others have one sign."""

    parts: tuple[tuple[arb, arb], ...]

    def weighted(self, weight: arb) -> Mixture:
        """Return the mixture with all weights multiplied by ``weight``."""
        return Mixture(tuple((weight * part, shift) for part, shift in self.parts))

    def ratio(self, y: acb) -> acb:
        """Return the density divided by that of N(0)."""
        others = (weight * (shift * y - square(shift) / 2).exp() for weight, shift in self.parts[1:])
        return sum(others, acb(self.at_zero))

    def slopes(self, y: acb) -> tuple[acb, acb]:
        """Return the first and the second derivative of ln of `ratio`."""
        others = [(shift, weight * (shift * y - square(shift) / 2).exp()) for weight, shift in self.parts[1:]]
        whole = sum((term for _, term in others), acb(self.at_zero))
        first = sum((shift * term for shift, term in others), acb(0)) / whole
        return first, sum((square(shift) * term for shift, term in others), acb(0)) / whole - first * first

    def floor(self, c: float, peak: float) -> tuple[float, arb]:
        """Return (m, f) with |ratio(x + iv)| >= f exp(-m |x|) on a way, for which n e^(peak x) ratio^-c ends early.

        No argument of a term exceeds `_HEIGHT`, so its real part is at least cos(`_HEIGHT`) times its size. The term at
        0 is real. Any number of terms gives a bound.
        """
        best, total = (math.inf, 0.0, arb(0)), arb(0)
        for weight, shift in sorted(self.parts, key=lambda part: abs(float(part[1]))):
            total += weight
            m = abs(float(shift)) * (1.0 + 1e-9)
            least = total * (-square(arb(m)) / 2).exp() * arb(_HEIGHT).cos() if m else total
            if least > 0:
                far = peak + c * m + math.sqrt((peak + c * m) ** 2 + 2.0 * (_LEFT_OUT - c * float(least.log())))
                best = min(best, (far, m, least), key=lambda found: found[0])
        return best[1:]

    def where(self, height: arb) -> arb:
        """Return a ball around the x at which the increasing ratio is ``height``: Newton's method, then a proof.

        Raises:
            OutOfReach: no small ball was found.
        """
        x, near = arb(0), arb(2) ** -80
        for _ in range(200):
            x = (x - (self.size(x) / height).log() / self.slopes(acb(x))[0].real).mid()
            if self.size(x - near) < height < self.size(x + near):
                return x + arb(0, near)
        raise OutOfReach("draws whose laws are hardly apart")

    def size(self, x: arb) -> arb:
        """Return `ratio` on the real line."""
        return sum((weight * (shift * x - square(shift) / 2).exp() for weight, shift in self.parts[1:]), self.at_zero)

    @property
    def at_zero(self) -> arb:
        """The weight of N(0)."""
        return self.parts[0][0]

    @property
    def shifts(self) -> list[float]:
        """The a_j."""
        return [float(shift) for _, shift in self.parts]

    @property
    def farthest(self) -> float:
        """The largest |a_j|."""
        return max(map(abs, self.shifts))


class Piece(NamedTuple):
    """int n p^(s+1) q^-s dy over y beyond ``start``, or over all y. ln p/q increases in y if ``rises``, else decreases.

    At a start ln p/q is 0.
    """

    above: Mixture
    below: Mixture
    start: arb | None = None
    rises: bool = True

    @property
    def farthest(self) -> float:
        """The largest |a_j|, or 1."""
        return max(self.above.farthest, self.below.farthest, 1.0)

    def exchanged(self) -> Piece:
        """Return the piece with P and Q exchanged."""
        return Piece(self.below, self.above, self.start, not self.rises)

    def logs(self, y: acb) -> tuple[acb, acb]:
        """Return ln p and ln q."""
        return self.above.ratio(y).log(), self.below.ratio(y).log()

    def value(self, y: acb, c: arb) -> acb:
        """Return n p^(c+1) q^-c."""
        p, q = self.logs(y)
        return ((c + 1) * p - c * q - y * y / 2).exp() / (2 * arb.pi()).sqrt()

    def slope(self, y: acb) -> acb:
        """Return the derivative of ln p/q."""
        return self.above.slopes(y)[0] - self.below.slopes(y)[0]

    def over_slope(self, y: acb, c: arb) -> tuple[acb, acb]:
        """Return n p^(c+1) q^-c divided by the derivative of ln p/q, and the derivative of this quotient."""
        (p, p_slope), (q, q_slope) = self.above.slopes(y), self.below.slopes(y)
        over = self.value(y, c) / (p - q)
        return over, over * ((c + 1) * p - c * q - y - (p_slope - q_slope) / (p - q))

    def largest(self, left: arb, right: arb, height: arb, c: arb) -> arb:
        """Return a bound on |n p^(c+1) q^-c| between two x, up to a height."""
        nearest = left if left > 0 else (-right if right < 0 else arb(0))
        p = self.above.size(left).max(self.above.size(right))
        rest = self.below.size(left).min(self.below.size(right)) - self.below.at_zero
        q = self.below.at_zero + rest.max(arb(0)) * (height * self.below.farthest * _ROUNDED_UP).cos()
        logs = (c + 1) * p.log() - c * q.log() + (square(height) - square(nearest)) / 2
        return logs.exp() / (2 * arb.pi()).sqrt()


_ROUNDED_UP = 1 + 2.0**-40
ALONE = Mixture(((arb(1), arb(0)),))
"""N(0)."""


class Loss(NamedTuple):
    """The law of a loss: pieces and the remaining probability of 0; or the loss of N(mu) against N(0).

    Or one of such Gaussian pairs is chosen publicly: ``told`` is a list of (probability, mu).
    """

    pieces: tuple[Piece, ...] = ()
    at_zero: arb = arb(0)
    mu: arb | None = None
    told: tuple[tuple[arb, arb], ...] = ()

    def exchanged(self) -> Loss:
        """Return the loss with P and Q exchanged."""
        return self._replace(pieces=tuple(piece.exchanged() for piece in self.pieces))

    def weighted(self, weight: arb) -> Loss:
        """Return its contribution to a loss that is this one with probability ``weight``."""
        pieces = tuple(p._replace(above=p.above.weighted(weight), below=p.below.weighted(weight)) for p in self.pieces)
        return Loss(pieces, weight * self.at_zero)

    def moments(self, c: arb) -> Moments:
        """Return the moments at s = c + i t.

        Raises:
            OutOfHand: they take too long.
        """
        if self.told:
            return _OfSeveral(self, c)
        return _OfGaussian(self.mu, c) if self.mu is not None else _OfPieces(self, c)


def with_rate(q: arb, shift: arb) -> Mixture:
    """Return (1-q) N(0) + q N(shift)."""
    return Mixture(((1 - q, arb(0)), (q, shift)))


def either_order(mu: arb, q: arb) -> Loss:
    """Return the loss of the profile of (M_1, N(0)) in both orders: M_1 exceeds N(0) beyond mu/2."""
    m, zero = with_rate(q, mu), (1 - q) * (1 - 2 * upper_tail(mu / 2))
    return Loss((Piece(m, ALONE, mu / 2), Piece(ALONE, m, mu / 2, rises=False)), zero)


class Moments:
    """E exp(s L) over the losses that are not 0, at s = c + i t.

    Attributes:
        at_zero: the probability that the loss is 0.
    """

    at_zero = arb(0)

    def at(self, t: arb) -> acb:
        """Return the moment at t."""
        raise NotImplementedError

    def on_grid(self, step: arb) -> Iterator[acb]:
        """Yield the moment at t = 0, step, 2 step, ..."""
        return (self.at(k * step) for k in itertools.count())

    def beyond(self, t: arb) -> arb:
        """Return a bound on its modulus for all larger t."""
        raise NotImplementedError

    def slope(self, t: arb) -> arb:
        """Return a bound on the modulus of its derivative for all larger t; infinity if there is none."""
        return arb.pos_inf()

    def between(self, t: arb, width: arb) -> arb:
        """Return a bound on its modulus from t to t + width."""
        return abs(self.at(t + width / 2)) + width / 2 * self.slope(t)


class _OfGaussian(Moments):
    """exp(mu^2 s (s + 1)/2)."""

    def __init__(self, mu: arb, c: arb) -> None:
        self.half, self.c = square(mu) / 2, c

    def at(self, t: arb) -> acb:
        s = acb(self.c, t)
        return (self.half * s * (s + 1)).exp()

    def beyond(self, t: arb) -> arb:
        return (self.half * (self.c * (self.c + 1) - t * t)).exp()

    def between(self, t: arb, width: arb) -> arb:
        return self.beyond(t)


class _OfSeveral(Moments):
    """The mean of exp(mu^2 s (s + 1)/2)."""

    def __init__(self, loss: Loss, c: arb) -> None:
        self.c, self.at_zero = c, loss.at_zero
        self.parts = [(weight, square(mu) / 2) for weight, mu in loss.told]

    def at(self, t: arb) -> acb:
        s = acb(self.c, t)
        return sum((weight * (half * s * (s + 1)).exp() for weight, half in self.parts), acb(0))

    def beyond(self, t: arb) -> arb:
        exponent = self.c * (self.c + 1) - t * t
        return sum((weight * (half * exponent).exp() for weight, half in self.parts), arb(0))

    def between(self, t: arb, width: arb) -> arb:
        return self.beyond(t)


class _Panel(NamedTuple):
    """A part of the path: the integral of |n p^(c+1) q^-c| over it, the least Im L, and the largest |L|."""

    mass: arb
    turn: arb
    largest: arb


class _OfPieces(Moments):
    """A sum over the nodes of the panels, with a bound on its error."""

    def __init__(self, loss: Loss, c: arb) -> None:
        self.c, self.at_zero, self.error = c, loss.at_zero, arb(0)
        self.nodes: list[tuple[acb, acb]] = []
        self.panels: list[_Panel] = []
        self.corner, self.near, self.by_parts = acb(0), 0, list[tuple[arb, arb]]()
        for piece in loss.pieces:
            if piece.start is not None:
                self._add_corner(piece, piece.start)
        self.near = len(self.panels)
        for piece in loss.pieces:
            for start, end in self._way(piece):
                self._add(piece, start, end)
        self.ball = acb(arb(0, self.error.upper()), arb(0, self.error.upper()))

    def _add_corner(self, piece: Piece, start: arb) -> None:
        """Add the first panels of a path that begins on the real line.

        Let G be the integrand at t = 0 divided by L'. By parts, i t times the integral over them is G exp(i t L) at
        their end minus G at the start minus the integral of G' exp(i t L). The terms of two pieces at a start partly
        cancel, so they are added before their modulus is taken.
        """
        heights = _graded(arb(_HEIGHT / piece.farthest), 2.0 * float(abs(piece.slope(acb(start)))))
        points = [start + acb(1, 1 if piece.rises else -1) * height for height in heights]
        self.corner += piece.over_slope(points[0], self.c)[0]
        for left, right in itertools.pairwise(points):
            part = (right - left) / _BOXES
            half = abs(part.real).upper() / 2
            for k in range(_BOXES):
                box = left + part * (k + arb(0.5)) + acb(arb(0, half), arb(0, half))
                size = (abs(piece.over_slope(box, self.c)[1]) * abs(part)).upper()
                self.by_parts.append((size, _turn(piece, left + part * k)))
            self._add(piece, left, right)
        self.by_parts.append((abs(piece.over_slope(points[-1], self.c)[0]), _turn(piece, points[-1])))

    def _way(self, piece: Piece) -> Iterator[tuple[acb, acb]]:
        """Yield the panels of a piece's path at its height, and bound the dropped parts beyond its ends."""
        c, side, farthest = float(self.c), 1 if piece.rises else -1, piece.farthest
        height, half = arb(_HEIGHT / farthest), _HALF / farthest
        ahead, behind = (max(0.0, *(s * shift for shift in piece.above.shifts)) * (c + 1.0) for s in (1, -1))
        slope, least = piece.below.floor(c, max(ahead, behind))
        deep = 2.0 * (_LEFT_OUT - c * float(least.log()))
        peaks = [(peak + c * slope) * (1.0 + 1e-9) for peak in (ahead, behind)]
        high, low = (arb(peak + math.sqrt(peak * peak + deep)) for peak in peaks)
        for peak, end in zip(peaks, (high, low), strict=True):
            # n p^(c+1) q^-c is at most least^-c exp(peak^2/2) n(x - peak) there, and at a height exp(height^2/2) more
            size = (square(arb(peak)) / 2 + square(height) / 2 - self.c * least.log()).exp()
            self.error += size * upper_tail(end - arb(peak))
        left = -low if piece.start is None else piece.start + height
        count = max(1, math.ceil(float(((high - left) / (2 * half)).mid())))
        if 24 * count > _MOST_NODES:
            raise OutOfHand
        yield from itertools.pairwise(acb(left + 2 * arb(half) * k, side * height) for k in range(count + 1))

    def _add(self, piece: Piece, start: acb, end: acb) -> None:
        """Add a panel, halved if the integrand varies much on its disc; a negligible panel adds to the error."""
        middle, half = (start + end) / 2, (end - start) / 2
        size, height = abs(half).upper(), abs(middle.imag)
        radius = size * arb(_AXIS)
        largest = piece.largest(middle.real - radius, middle.real + radius, height + radius, self.c)
        if 2 * size * largest < arb(-_LEFT_OUT).exp():
            self.error += 2 * size * largest
            return
        about = abs(piece.value(middle, self.c))
        if largest > arb(-_SMALL).exp() and largest > arb(_STEEP).exp() * about:
            self._add(piece, start, middle)
            self._add(piece, middle, end)
            return
        if not height > radius:  # on a part of the disc of a first panel Im L < 0; this bounds exp(-t Im L)
            disc = middle + acb(arb(0, radius.upper()), arb(0, radius.upper()))
            largest *= (2 * radius * abs(piece.slope(disc)) * LARGEST_T).exp().upper()
        error = (
            largest * size * arb(64) / 14 * arb(4) ** (2 - 2 * _POINTS)
        )  # (64/15) M 4^-2n/(1 - 4^-2) with n + 1 points
        mass = error
        for place, weight in _rule():
            y = middle + half * place
            p, q = piece.logs(y)
            value = weight * half * ((self.c + 1) * p - self.c * q - y * y / 2).exp() / (2 * arb.pi()).sqrt()
            self.nodes.append((value, p - q))
            mass += abs(value)
        if len(self.nodes) > _MOST_NODES:
            raise OutOfHand
        self.error += error
        self.panels.append(_panel(mass, piece, start, end))

    def at(self, t: arb) -> acb:
        return sum((value * (acb(0, 1) * t * loss).exp() for value, loss in self.nodes), self.ball)

    def on_grid(self, step: arb) -> Iterator[acb]:
        return (x + self.ball for x in sums_on_grid([(value, acb(0, 1) * step * loss) for value, loss in self.nodes]))

    def beyond(self, t: arb) -> arb:
        sizes = [panel.mass * (-t * panel.turn).exp() for panel in self.panels]
        near, far = sum(sizes[: self.near], arb(0)), sum(sizes[self.near :], self.error)
        by_parts = sum((size * (-t * turn).exp() for size, turn in self.by_parts), abs(self.corner)) / t
        return ((near.min(by_parts) if by_parts.is_finite() else near) + far).upper()

    def slope(self, t: arb) -> arb:
        # The derivative is the integral of i L n p^(s+1) q^-s.
        rest = self.error * _FARTHEST
        return sum((panel.mass * panel.largest * (-t * panel.turn).exp() for panel in self.panels), rest)


def sums_on_grid(terms: list[tuple[acb, acb]]) -> Iterator[acb]:
    """Yield the sum of v exp(k r) over all terms (v, r) for k = 0, 1, ...; no r has a positive real part.

    A product costs a tenth of an exponential. But each rotation enlarges a box by up to sqrt(2), so about 250 products
    would cost all digits: every block starts from new exponentials.
    """
    nodes, rest = [(value, rate, rate.exp()) for value, rate in terms], acb(0)
    least = abs(sum((value for value, _ in terms), acb(0))) * arb(-_NEGLIGIBLE).exp()
    for first in itertools.count(0, _BLOCK):
        values = [value * (first * rate).exp() for value, rate, _ in nodes]
        kept = [abs(value) > least for value in values]  # none grows with k
        lost = sum((abs(v) for v, keep in zip(values, kept, strict=True) if not keep), arb(0)).upper()
        rest += acb(arb(0, lost), arb(0, lost))
        nodes, values = list(itertools.compress(nodes, kept)), list(itertools.compress(values, kept))
        for _ in range(_BLOCK):
            yield sum(values, rest)
            values = [value * turn for value, (_, _, turn) in zip(values, nodes, strict=True)]


def _panel(mass: arb, piece: Piece, start: acb, end: acb) -> _Panel:
    """Return a panel: along it the real and imaginary parts of ln p and of ln q are monotone."""
    (p, q), (p_end, q_end) = piece.logs(start), piece.logs(end)
    low, high = p.real.min(p_end.real) - q.real.max(q_end.real), p.real.max(p_end.real) - q.real.min(q_end.real)
    turn, most = p.imag.min(p_end.imag) - q.imag.max(q_end.imag), p.imag.max(p_end.imag) - q.imag.min(q_end.imag)
    return _Panel(mass, turn.max(arb(0)), abs(low).max(abs(high)) + abs(turn).max(abs(most)))


def _turn(piece: Piece, y: acb) -> arb:
    """Return Im L, at least 0."""
    p, q = piece.logs(y)
    return (p - q).imag.max(arb(0))


def _graded(height: arb, slope: float) -> list[arb]:
    """Return 0 and increasing heights up to ``height``."""
    heights = [height]
    while float(heights[-1]) * slope * LARGEST_T > 1.0:
        heights.append(heights[-1] / _GROWTH)
    return [arb(0), *reversed(heights)]


class Kernel(NamedTuple):
    """K(s) at s = c + i t, for lattice points from ``first`` on."""

    c: arb
    h: arb
    epsilon: arb
    first: int

    def at(self, angle: arb) -> acb:
        """Return K at t h = 2 pi ``angle``."""
        turned = turn(-angle)
        fade = (-self.c * self.h).exp()
        start = (-self.c * self.h * self.first).exp() * turn(-angle * self.first)
        near = (self.epsilon - self.first * self.h).exp()
        return start * (1 / (1 - fade * turned) - near / (1 - fade * (-self.h).exp() * turned))

    def largest(self) -> arb:
        """Return a bound on |K| over all t."""
        fade = (-self.c * self.h).exp()
        near = (self.epsilon - self.first * self.h).exp()
        return (-self.c * self.h * self.first).exp() * (1 / (1 - fade) + near / (1 - fade * (-self.h).exp()))


def turn(angle: arb) -> acb:
    """Return exp(2 pi i angle)."""
    return acb((2 * angle).cos_pi(), (2 * angle).sin_pi())


class Spread(NamedTuple):
    """The total of a tilted law, and its absolute moments of first to fourth order about its mean, in steps."""

    total: arb
    mean: arb
    first: arb
    second: arb
    third: arb
    fourth: arb

    def edge(self) -> float:
        """Return nearly the largest t with t r/6 + t^2 q/24 <= v/4 and t^2 v <= 2, both proved; 0 if there is none."""
        v, r, q = (float(x.mid()) for x in (self.second, self.third, self.fourth))
        t = math.sqrt(1.99 / v) if v > 0.0 else 0.0
        while t > 1e-12 and t * r / 6.0 + t * t * q / 24.0 > 0.249 * v:
            t *= 0.9
        proved = t * self.third / 6 + square(arb(t)) * self.fourth / 24 <= self.second / 4
        return t if proved and square(arb(t)) * self.second <= 2 else 0.0


def spread_of(weights: list[tuple[int, arb]]) -> Spread:
    """Return the moments of a law [(multiple of the step, weight)]."""
    total = sum((weight for _, weight in weights), arb(0))
    middle = (sum((j * weight for j, weight in weights), arb(0)) / total).mid()
    moments = [arb(0) for _ in range(5)]
    for j, weight in weights:
        away, share = j - middle, weight / total
        size = abs(away)
        for i, term in enumerate((away, size, size * size, size**3, square(size * size))):
            moments[i] += term * share
    return Spread(total, *moments)
