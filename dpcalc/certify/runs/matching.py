"""Theorem HW at a certificate: delta for a record in a secret position, from the matrices that a search found.

For all non-negative R and M with row sums sum_m R_km >= 1 and column sums sum_k w_k M_km <= e^eps w_m,
delta(eps) <= sum_km w_k R_km delta_G(ln(M_km/R_km); mu_km). The certificate states which rows receive, and the level z:
ln gamma = mu z - mu^2/2. The needs of receivers above e^eps are rounded up to integers, and the supply of donors below
it down. So both constraints hold for any certificate. A bad one proves a large delta, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypedDict

from flint import arb, fmpz

from dpcalc.certify.numerics.balls import OutOfReach, upper_tail
from dpcalc.certify.runs.run import OF_ANOTHER_RUN
from dpcalc.certify.runs.uses import Alike
from dpcalc.files import Fields

MOST_ROWS = 20_000
_UNITS = 1 << 80  # the whole supply of the donors in units


class Costs(Protocol):
    """The costs of positions; see `uses.SamePlaces`."""

    def own(self, k: int, size: arb) -> arb:
        """Return the cost of uses of this size at k."""

    def pair(self, b: int, early: arb, a: int, late: arb) -> arb:
        """Return the cost of uses at b and at a < b, of these sizes."""

    def unused(self) -> arb:
        """Return the cost of a record that is left out."""


class Row(NamedTuple):
    """A block of equal positions: its class (-1: left out), the last position, its records, the size of a use, mu."""

    kind: int
    low: int
    records: int
    size: arb
    mu: arb


class Places(NamedTuple):
    """A record's places: classes of positions, the size of a use in each, and the number of records left out."""

    classes: Sequence[Alike]
    sizes: Sequence[arb]
    out: int

    @property
    def records(self) -> int:
        """The number of records."""
        return self.out + sum(alike.steps * alike.size for alike in self.classes)


def hockey_stick(level: arb, mu: arb) -> arb:
    """Return delta_G(level; mu) = Q(x) - e^level Q(x + mu), x = level/mu - mu/2, for a level of either sign."""
    if mu.is_zero():
        return (1 - level.exp()).max(arb(0))
    x = level / mu - mu / 2
    return upper_tail(x) - level.exp() * upper_tail(x + mu)


def starts(alike: Alike, alone: int, growth: float, top: int) -> list[int]:
    """Return the lowest position of every block of equal positions; ``top`` is the first position of the pass.

    Up to ``alone`` every position is a block; beyond, blocks grow by e^``growth``.

    Raises:
        OutOfReach: the blocks are malformed, or too many.
    """
    fits = 1 <= alone < top and 1e-4 < growth < 10.0 if growth else alone == top
    if not (isinstance(alone, int) and fits and alone <= MOST_ROWS):
        raise OutOfReach(OF_ANOTHER_RUN)
    grid = set(range(1, alone + 1))
    if top > alone:
        count = math.ceil((math.log((top + 1.0) / (alone + 1.0)) + growth) / growth)
        if count > MOST_ROWS:
            raise OutOfReach(OF_ANOTHER_RUN)
        grid.update(round(math.exp(i * growth) * (alone + 1.0)) for i in range(count))
    return sorted({alike.first} | {k for k in grid if alike.first < k < alike.first + alike.steps})


class Blocks(TypedDict):
    """The division of positions into blocks, as in a certificate."""

    alone: int
    growth: float


def blocks_of(places: Places, alone: int, growth: float) -> Blocks:
    """Return blocks of positions, all single if there are at most ``alone``."""
    top = max(alike.first + alike.steps - 1 for alike in places.classes)
    return {"alone": top, "growth": 0.0} if top <= alone else {"alone": alone, "growth": growth}


def rows_of(places: Places, blocks: Blocks, mu_of: Callable[[arb], arb], costs: Costs) -> list[Row]:
    """Return the blocks of all positions, and of the records that are left out."""
    top = max(alike.first + alike.steps - 1 for alike in places.classes)
    rows = []
    for kind, (alike, size) in enumerate(zip(places.classes, places.sizes, strict=True)):
        lows = starts(alike, blocks["alone"], blocks["growth"], top)
        for low, end in zip(lows, [*lows[1:], alike.first + alike.steps], strict=True):
            rows.append(Row(kind, low, (end - low) * alike.size, size, mu_of(costs.own(low, size))))
    if places.out:
        rows.append(Row(-1, 0, places.out, arb(0), mu_of(costs.unused())))
    return rows


def known_mean(rows: Sequence[Row], epsilon: arb) -> arb:
    """Return the sum of delta over the records, for an observer who knows the position."""
    return sum((row.records * hockey_stick(epsilon, row.mu) for row in rows), arb(0))


def matched(
    places: Places, matching: Fields, swap: tuple[int, int], mu_of: Callable[[arb], arb], costs: Costs,
    epsilon: arb,
) -> arb:  # fmt: skip
    """Return the sum of delta over the records that the matching proves.

    Args:
        places: the places of a record.
        matching: a `dpcalc.notions.profiles.Matching` in JSON.
        swap: the weights of a use by the record and by its replacement.
        mu_of: cost -> mu.
        costs: the costs of positions.
        epsilon: >= 0.

    Raises:
        OutOfReach: the matching belongs to another run, or donors have less than receivers need.
    """
    rows = rows_of(places, matching["blocks"], mu_of, costs)
    receivers = matching["receivers"]
    in_class = [sum(row.kind == kind for row in rows) for kind in range(len(places.classes))]
    if matching["rows"] != len(rows) or len(receivers) != len(in_class):
        raise OutOfReach(OF_ANOTHER_RUN)
    if not all(0 <= count <= there for count, there in zip(receivers, in_class, strict=True)):
        raise OutOfReach(OF_ANOTHER_RUN)
    z = arb(float(matching["level"]))
    levels = [row.mu * z - row.mu * row.mu / 2 for row in rows]
    seen = [0] * len(in_class)
    before = []
    for row in rows:
        before.append(row.kind >= 0 and seen[row.kind] < receivers[row.kind])
        if row.kind >= 0:
            seen[row.kind] += 1
    order = sorted(range(len(rows)), key=lambda i: -float(rows[i].mu.mid()))
    takers = [i for i in reversed(order) if before[i] and levels[i] > epsilon]
    givers = [i for i in reversed(order) if not before[i] and levels[i] < epsilon]
    total = arb(0)
    special = {*takers, *givers}
    for i, row in enumerate(rows):
        share = (epsilon - levels[i]).exp() if before[i] and i in special else arb(1)
        total += row.records * share * hockey_stick(levels[i] if i in special else epsilon, row.mu)
    for amount, i, j in _transfers(rows, levels, takers, givers, epsilon):
        mu = mu_of(_swapped(rows[i], rows[j], swap, costs))
        total += amount * (epsilon - levels[i]).exp() * hockey_stick(levels[i], mu)
    return total


def _transfers(
    rows: Sequence[Row], levels: Sequence[arb], takers: Sequence[int], givers: Sequence[int], epsilon: arb
) -> list[tuple[arb, int, int]]:
    """Return (amount in units of e^eps, receiver, donor) that meet all needs without exceeding any donor's supply.

    Raises:
        OutOfReach: donors have less than receivers need.
    """
    need = [rows[i].records * (levels[i] - epsilon).expm1() for i in takers]
    supply = [-(rows[j].records * (levels[j] - epsilon).expm1()) for j in givers]
    if not takers:
        return []
    scale = (_UNITS / sum(supply, arb(0))).mid() if supply else arb(1)
    if not scale > 0:
        raise OutOfReach(OF_ANOTHER_RUN)
    wanted = [_whole((x * scale).upper().ceil()) for x in need]
    offered = [max(0, _whole((x * scale).lower().floor())) for x in supply]
    if sum(wanted) > sum(offered):
        raise OutOfReach("the donors of the certificate have less than its receivers need")
    transfers, j = [], 0
    for i, left in zip(takers, wanted, strict=True):
        while left:
            while not offered[j]:
                j += 1
            moved = min(left, offered[j])
            left, offered[j] = left - moved, offered[j] - moved
            transfers.append((fmpz(moved) / scale, i, givers[j]))
    return transfers


def _whole(x: arb) -> int:
    integer = x.unique_fmpz()
    if integer is None:
        raise OutOfReach(OF_ANOTHER_RUN)
    return int(integer)


def _swapped(here: Row, there: Row, swap: tuple[int, int], costs: Costs) -> arb:
    """Return the cost of the record in one place and its replacement in the other."""
    one, other = here.size * swap[0], there.size * swap[1]
    if not here.low or not there.low:  # the swap with a record that is left out changes one step
        return costs.own(here.low, one) if here.low else costs.own(there.low, other)
    if here.low > there.low:
        return costs.pair(here.low, one, there.low, other)
    return costs.pair(there.low, other, here.low, one)
