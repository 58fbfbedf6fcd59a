"""Every place a record can take in several passes, the cheapest allocation there by exact hulls, and the exact mean.

Positions, sizes and contractions are rationals; nothing here imports the package under test.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from flint import arb

from tests.oracles import ball
from tests.oracles.gaussian import delta

_DIGITS = 10**30


class Passes(NamedTuple):
    """n records in batches of b, E times; ``last``: what becomes of those left over; ``c``: how a full step shrinks."""

    records: int
    batch_size: int
    last: str
    epochs: int
    c: Fraction = Fraction(1)
    reach: Fraction | None = None  # the diameter, in units of a full batch's use

    @property
    def sizes(self) -> list[int]:
        """The sizes of the batches of one pass."""
        full, short = divmod(self.records, self.batch_size)
        if self.last == "balanced":
            count = full + (short > 0)
            least, larger = divmod(self.records, count)
            return [least] * (count - larger) + [least + 1] * larger
        if full and self.last == "drop":
            short = 0
        left, whole = [short] * (short > 0), [self.batch_size] * full
        return left + whole if self.last == "front" else whole + left

    @property
    def nominal(self) -> int:
        """What the largest batch divides by."""
        return self.batch_size if self.last == "nominal" else max(self.sizes)

    def places(self) -> Iterator[tuple[Fraction, int | None, Fraction]]:
        """(probability, step of the pass, size of the use there) in one epoch; None where it is unused."""
        used = 0
        for step, size in enumerate(self.sizes):
            used += size
            divisor = self.nominal if self.last == "nominal" else size
            yield Fraction(size, self.records), step, Fraction(self.nominal, divisor)
        if used < self.records:
            yield Fraction(self.records - used, self.records), None, Fraction(0)

    def contractions(self) -> list[Fraction]:
        """The contraction of every step of one pass: a step divided by more than it holds mixes the identity in."""
        return [
            1 - (1 - self.c) * (Fraction(size, self.nominal) if self.last == "nominal" else 1) for size in self.sizes
        ]


def least_cost(inflow: Sequence[Fraction], contraction: Sequence[Fraction], reach: Fraction | None = None) -> Fraction:
    """The least sum of a_t^2 that spends the inflow, by the lower hull of prefix sums; from the best restart at
    ``reach`` if that is given."""
    steps = len(inflow)
    last = [Fraction(1)] * steps  # the product of the factors behind t
    for t in range(steps - 2, -1, -1):
        last[t] = last[t + 1] * contraction[t + 1]

    def from_step(start: int, carried: Fraction) -> Fraction:
        points = [(Fraction(0), Fraction(0))]
        for t in range(start, steps):
            width, height = (
                last[t] ** 2,
                last[t] * inflow[t] + (carried * last[t] * contraction[t] if t == start else 0),
            )
            points.append((points[-1][0] + width, points[-1][1] + height))
        hull: list[tuple[Fraction, Fraction]] = []
        for p in points:
            while len(hull) > 1 and _above(hull[-2], hull[-1], p):
                hull.pop()
            hull.append(p)
        return sum(((y - b) ** 2 / (x - a) for (a, b), (x, y) in itertools.pairwise(hull)), Fraction(0))

    found = from_step(0, Fraction(0))
    if reach is not None:
        found = min([found, *(from_step(t, reach) for t in range(1, steps))])
    return found


def _above(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction], c: tuple[Fraction, Fraction]) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def outcomes(passes: Passes, same_order: bool) -> Iterator[tuple[Fraction, Fraction]]:
    """(probability, least cost) of every sequence of places: the same in all epochs, or independent."""
    length, factors = len(passes.sizes), passes.contractions() * passes.epochs
    places = list(passes.places())
    choices = ([p] * passes.epochs for p in places) if same_order else itertools.product(places, repeat=passes.epochs)
    for sequence in choices:
        chance = sequence[0][0] if same_order else math.prod(p for p, _, _ in sequence)
        inflow = [Fraction(0)] * (length * passes.epochs)
        for epoch, (_, step, size) in enumerate(sequence):
            if step is not None:
                inflow[epoch * length + step] += size
        yield Fraction(chance), least_cost(inflow, factors, passes.reach) if any(inflow) else Fraction(0)


def log_delta(passes: Passes, ratio: Fraction, epsilon: Fraction, same_order: bool) -> arb:
    """ln of the mean of delta_G(eps; ratio sqrt(cost)), from below by less than 1e-25 relatively."""
    mass: dict[Fraction, Fraction] = {}
    for chance, cost in outcomes(passes, same_order):
        mass[cost] = mass.get(cost, Fraction(0)) + chance
    total = arb(0)
    for cost, chance in mass.items():
        if cost:
            total += ball(chance) * delta(epsilon, ratio * root_below(cost))
    return total.log()


def root_below(x: Fraction) -> Fraction:
    """A rational just below the square root."""
    return Fraction(math.isqrt(int(x * _DIGITS * _DIGITS)), _DIGITS)
