"""Definitions of the hidden past: the law of the uses before the last steps, in balls, and the pairs of such shifts.

The law is a polynomial whose exponents are places on a lattice of distances, rounded up. A sum of 2m terms is a sum of
m terms plus f^m times an independent copy. Gaussian mixtures grow with every mean, so a law rounded up is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from flint import arb, arb_poly, fmpq

from dpcalc.certify.numerics.balls import OutOfReach, power, square
from dpcalc.certify.numerics.composition import Part
from dpcalc.certify.numerics.moments import ALONE, Loss, Mixture, Piece
from dpcalc.certify.runs.matching import hockey_stick

_POINTS = 1 << 15
_BLOCK = 0.004  # weights in a block of terms differ by at most this share; all count as the first
_MOST_TERMS = 10**9
_NODES = (120, 400, 80)  # numbers of distinct distances: near 0, up to rare ones, and beyond
_RARE = math.exp(-25.0)
_ABOVE = 1.0 + 1e-12  # far more than the rounding of a few operations


class Uses(NamedTuple):
    """Sums of f^i N_i: N_i is the number of successes in ``trials`` trials, or each period has one success."""

    trials: int
    chance: fmpq
    factor: arb
    period: int = 1

    def law(self, count: int) -> list[tuple[float, arb]]:
        """Return pairs (value, probability) of a law that is larger in stochastic order.

        Raises:
            OutOfReach: there would be too many terms.
        """
        f = float(self.factor.upper())
        if count > _MOST_TERMS:
            raise OutOfReach("more than 1e9 steps whose uses are counted")
        if self.period > 1:
            block, terms = self.period, [(f**i * _ABOVE, arb(fmpq(1, self.period))) for i in range(self.period)]
        else:
            block = count if f >= 1.0 else max(1, min(count, int(-_BLOCK / math.log(f)) if f > 0.0 else 1))
            terms = self._counts(self.trials * block)
        blocks = -(-count // block)
        per_block = sum((float(mass) * value for value, mass in terms), 0.0)
        largest = max(value for value, _ in terms)
        ratio = min(1.0, f**block * _ABOVE) if f < 1.0 else 1.0
        total = min(float(blocks), (1.0 - ratio**blocks) / (1.0 - ratio)) * _ABOVE if ratio < 1.0 else float(blocks)
        mean = per_block * total
        spread = math.sqrt(per_block * min(float(blocks), 1.0 / max(1.0 - ratio * ratio, 1e-300)))
        reach = min(largest * total, (mean + 10.0 * spread + 14.0) * 1.1)
        step = reach / _POINTS
        term = self._on_lattice([(math.ceil(value / step * _ABOVE), mass) for value, mass in terms])
        result, made = term, 1
        for bit in map(int, bin(blocks)[3:]):
            result, made = self._plus(result, self._scaled(result, ratio**made)), 2 * made
            if bit:
                result, made = self._plus(term, self._scaled(result, ratio)), made + 1
        masses = result.coeffs()
        found = [(i * step * _ABOVE, mass) for i, mass in enumerate(masses)]
        return [*found, (largest * total * _ABOVE, 1 - sum(masses, arb(0)))]

    def _counts(self, trials: int) -> list[tuple[float, arb]]:
        """Return (number of successes, probability); the negligible rest counts as the largest number."""
        p, q = arb(self.chance), arb(1 - self.chance)
        mass, left, found = power(q, trials), arb(1), []
        for j in range(trials + 1):
            found.append((float(j), mass))
            left -= mass
            if j > trials * float(p) and mass < arb(2) ** -140:
                return [*found, (float(trials), left.max(arb(0)))] if j < trials else found
            if j > 20000:
                raise OutOfReach("steps that use a record very often")
            mass = mass * p / q * fmpq(trials - j, j + 1)
        return found

    def _on_lattice(self, places: list[tuple[int, arb]]) -> arb_poly:
        """Return the law on the lattice. Mass beyond its end is dropped: it is 1 minus the sum."""
        sums = [arb(0)] * (min(_POINTS, max(place for place, _ in places)) + 1)
        for place, mass in places:
            if place <= _POINTS:
                sums[place] += mass
        return arb_poly(sums)

    def _scaled(self, law: arb_poly, by: float) -> arb_poly:
        return self._on_lattice([(math.ceil(i * by * _ABOVE), mass) for i, mass in enumerate(law.coeffs())])

    def _plus(self, a: arb_poly, b: arb_poly) -> arb_poly:
        return arb_poly((a * b).coeffs()[: _POINTS + 1])


class Shifts:
    """Increasing shifts mu_i with probabilities p_i; the first mu_i is 0.

    Attributes:
        parts: the shifts.
        lost: the probability of a shift that is larger than all of them.
    """

    def __init__(self, parts: list[tuple[arb, arb]], lost: arb) -> None:
        self.parts, self.lost = parts, lost
        doubles = [(float(mu.mid()), float(mass.mid())) for mu, mass in parts]
        self._lines = [(m, math.log(p) - 0.5 * m * m) for m, p in doubles if p > 0.0]

    @classmethod
    def of(cls, law: list[tuple[float, arb]], use: arb, start: arb, wide: arb | None, unit: arb) -> Shifts:
        """Return the shifts of a law of uses: ``start`` plus ``use`` per use, at most ``wide``, all times ``unit``."""
        *law, (_, lost) = law
        tail, rare = 1.0, law[-1][0]
        for value, mass in law:
            tail -= max(0.0, float(mass.mid()))
            if tail < _RARE:
                rare = value
                break
        near, middle, far = _NODES
        ends = [rare * 1e-6 * (1e6 / middle) ** (i / (near - 1)) for i in range(near)]
        ends += [rare * i / middle for i in range(2, middle + 1)]
        ends += [rare + (law[-1][0] - rare) * i / far for i in range(1, far)] + [law[-1][0]]
        parts: list[tuple[arb, arb]] = [(arb(0), arb(0))]
        at = 0
        for value, mass in law:
            while value > ends[at] and at < len(ends) - 1:
                at += 1
            place = value if value == 0.0 else ends[at] if value <= ends[at] else value
            mu = (start + use * arb(place)) * unit
            mu = mu if wide is None else mu.min(wide * unit)
            if parts[-1][0].overlaps(mu) and parts[-1][0].mid() == mu.mid():
                parts[-1] = (parts[-1][0], parts[-1][1] + mass)
            else:
                parts.append((mu, mass))
        return cls(parts, lost.upper().max(arb(0)))

    def told(self) -> Part:
        """Return the part of a public shift."""

        def curve(z: arb) -> arb:
            return sum((mass * hockey_stick(z, mu) for mu, mass in self.parts[1:]), arb(0))

        loss = Loss(at_zero=self.parts[0][1], told=tuple((mass, mu) for mu, mass in self.parts[1:]))
        return Part(curve, 1, loss=loss, laws=len(self.parts))

    def secret(self) -> Part:
        """Return the part of a secret shift against no shift."""
        mixture = self._mixture(1)
        loss = None if mixture is None else Loss((Piece(mixture, ALONE),))
        return Part(self._forward, 1, other=self._backward, loss=loss, laws=len(self.parts))

    def mirrored(self) -> Part:
        """Return the part of a secret shift against its mirror image."""

        def curve(z: arb) -> arb:
            y, _ = _root(lambda y: self._about(y) - self._about(-y), float(z))
            ratios = self._ratios(arb(y))
            whole = sum((mass * ratio for (_, mass), ratio in zip(self.parts, ratios, strict=True)), arb(0))
            return self._first(ratios) + whole * self._second(z.exp() / whole, self._ratios(arb(-y)))

        mixture, mirror = self._mixture(1), self._mixture(-1)
        loss = None if mixture is None or mirror is None else Loss((Piece(mixture, mirror),))
        return Part(curve, 1, loss=loss, laws=len(self.parts))

    def _mixture(self, sign: int) -> Mixture | None:
        """Return the law of one side; None if it has no mass at 0, as its moments then have no bounds."""
        if not self.parts[0][1] > 0:
            return None
        return Mixture(tuple((mass, sign * mu) for mu, mass in self.parts))

    def _about(self, y: float) -> float:
        """Return an approximation of ln(density/density of N(0))."""
        logs = [slope * y + start for slope, start in self._lines]
        peak = max(logs)
        return peak + math.log(sum([math.exp(each - peak) for each in logs]))

    def _ratios(self, y: arb) -> list[arb]:
        return [(mu * y - square(mu) / 2).exp() for mu, _ in self.parts]

    def _first(self, ratios: list[arb]) -> arb:
        """Return the sum of the profiles of N(mu_i) over N(0) at these ratios."""
        terms = zip(self.parts, ratios, strict=True)
        return sum((mass * hockey_stick(ratio.log(), mu) for (mu, mass), ratio in terms), arb(0))

    def _second(self, g: arb, ratios: list[arb]) -> arb:
        """Return a bound on E_g(N(0), mixture): N(0) is split in proportion to the ratios."""
        whole = sum((mass * ratio for (_, mass), ratio in zip(self.parts, ratios, strict=True)), arb(0))
        terms = zip(self.parts, ratios, strict=True)
        return sum(
            (mass * ratio / whole * hockey_stick((g * whole / ratio).log(), mu) for (mu, mass), ratio in terms), arb(0)
        )

    def _forward(self, z: arb) -> arb:
        ratios = self._ratios(arb(_root(self._about, float(z))[0]))
        whole = sum((mass * ratio for (_, mass), ratio in zip(self.parts, ratios, strict=True)), arb(0))
        scale = z.exp() / whole
        return self._first([ratio * scale for ratio in ratios])

    def _backward(self, z: arb) -> arb:
        if not 1 - z.exp() * self.parts[0][1] > 0:
            return arb(0)
        _, y = _root(self._about, -float(z))
        return self._second(z.exp(), self._ratios(arb(y)))


def _root(rising: Callable[[float], float], target: float) -> tuple[float, float]:
    """Return two neighbours between which a rising function is about the target.

    Either serves all curves, but only at one of them the term of no shift is 0 and not as large as their distance.
    """
    low, high = -60.0, 60.0
    for _ in range(45):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rising(middle) < target else (low, middle)
    return low, high
