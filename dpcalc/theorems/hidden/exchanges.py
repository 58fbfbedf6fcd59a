"""What a certificate of a secret order proves: rows of large mu receive likelihood from rows of small mu.

All rows have one likelihood level, ln gamma_k = mu_k z - mu_k^2/2. Rows of large mu, up to a cut, need more than e^eps
and receive gamma_k - e^eps from rows of small mu, which need less; the smallest receiving mu draws first, from the
smallest mu of all. Amounts are matched in whole numbers, needs rounded up and supplies down, so that the constraints of
the theorem (`position_certificates`) hold exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.notions.profiles import Matching
from dpcalc.numerics.floats import UNIT, Array, np
from dpcalc.theorems.hidden.positions import Distances, Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Picked = NDArray[np.intp]
    Amounts = tuple[Array, Picked, Picked]

_UNITS = 2.0**60  # so many make up all that the donors have: sums of them are exact in 64 bits
_FARTHEST = 1e90  # an epsilon, or a mu, beyond this one counts as this one: squares of larger ones overflow
_LARGEST_EXPONENT = 600.0  # e^600 is beyond any need, and its sums are finite
_LEVEL_WITHIN = 1e-12  # the common level is found so closely; a little too low is on the safe side
_HAIR_LESS = 1.0 - 1e-12  # the same of a level that meets the need already
_LEVEL_STEPS = 100  # Newton's method takes some five, halving a bracket at most sixty
_STEPS_NEAR = 6  # from a level nearby Newton's method ends in three or leads nowhere


class Comparison(NamedTuple):
    """The rows of two data sets at an epsilon, and how far apart they are.

    Attributes:
        rows: mu falling.
        distances: of their positions.
        swap: what a use counts where the record is, and where its replacement is.
        epsilon: >= 0.
    """

    rows: Rows
    distances: Distances
    swap: tuple[float, float]
    epsilon: float

    @property
    def may_gain(self) -> bool:
        """Whether there are rows to exchange between, and numbers within reach."""
        mu = self.rows.mu
        return len(mu) > 1 and 1.0 / _FARTHEST < mu[0] < _FARTHEST and self.epsilon < _FARTHEST

    def natural_cut(self, near: float | None = None) -> tuple[float | None, int]:
        """Return the common level if all rows above the level e^eps receive, and the last one that does.

        A row at that level has nothing to give or to take, so that moving the cut past it changes nothing in first
        order: certificates of like records are least about here.
        """
        level = self.common_level(None, near)
        if level is None:
            return None, 0
        mu = self.rows.mu
        return level, int(np.flatnonzero(mu * (level - 0.5 * mu) > self.epsilon).max(initial=0))

    def common_level(self, cut: int | None, near: float | None = None) -> float | None:
        """Return z of the highest level mu z - mu^2/2 at which the donors can meet the need; None where there is none.

        Without a cut every row above the level e^eps receives, and every other one donates but for those of larger mu.
        It is found sooner from a z that is ``near``, if one is given.
        """
        rows, epsilon = self.rows, self.epsilon
        half = 0.5 * rows.mu
        with np.errstate(divide="ignore", invalid="ignore"):
            equal = np.where(rows.mu > 0.0, epsilon / rows.mu, math.inf) + half  # the level at which ln gamma = eps
        takers, givers = (equal, equal) if cut is None else (equal[: cut + 1], equal[cut + 1 :])
        low, high = float(takers.min()), float(givers.max())
        if not low < high:
            return None
        first = int(equal.argmin()) if cut is None else cut + 1
        mass = rows.weight * rows.mu

        def sides(z: float) -> tuple[float, float, float]:
            """Return need, supply, and the slope of ln(need/supply)."""
            excess = np.expm1(np.minimum(rows.mu * (z - half) - epsilon, _LARGEST_EXPONENT))
            split = first + int(np.count_nonzero(excess[first:] > 0.0)) if cut is None else first
            more, less = np.maximum(excess[:split], 0.0), np.minimum(excess[split:], 0.0)
            need, supply = float(more @ rows.weight[:split]), -float(less @ rows.weight[split:])
            if not (need > 0.0 and supply > 0.0):
                return need, supply, math.nan
            with np.errstate(over="ignore"):  # an infinite slope is no step of the search, which halves instead
                rising = float((more + (more > 0.0)) @ mass[:split]) / need
                falling = float((less + (less < 0.0)) @ mass[split:]) / supply
            return need, supply, rising + falling

        # Beyond e^710 times the weight of all rows the need of the first alone is more than all supply.
        farthest = low + (epsilon + 710.0 + math.log(float(rows.weight.sum()))) / float(rows.mu[0]) + float(half[0])
        high = min(high, farthest)
        level = _level_near(sides, low, high, near) if near is not None and low < near < high else None
        return _greatest_level(sides, low, high) if level is None else level


def _level_near(
    sides: Callable[[float], tuple[float, float, float]], low: float, high: float, near: float
) -> float | None:
    """Return what `_greatest_level` does by Newton's method from ``near`` alone; None where that leads nowhere."""
    z = near
    for _ in range(_STEPS_NEAR):
        need, supply, slope = sides(z)
        if not (0.0 < need < math.inf and supply > 0.0 and slope > 0.0):
            return None
        step = math.log(need / supply) / slope
        z -= step
        if not low < z < high:
            return None
        if abs(step) <= _LEVEL_WITHIN * z:
            least = z * (1.0 - _LEVEL_WITHIN)
            need, supply, _ = sides(least)
            return least * _HAIR_LESS if need <= supply else None
    return None


def _greatest_level(sides: Callable[[float], tuple[float, float, float]], low: float, high: float) -> float | None:
    """Return about the greatest z in [low, high] at which the need is at most the supply; None where it is more at low.

    Newton's method on the logarithm of their quotient, which is nearly linear, inside a bracket.
    """
    need, supply, _ = sides(low)
    if need > supply:
        return None
    need, supply, slope = sides(high)
    if need <= supply:
        return high * _HAIR_LESS
    z = high
    for _ in range(_LEVEL_STEPS):
        step = math.log(need / supply) / slope if slope > 0.0 and need < math.inf else math.inf
        after = z - step
        if abs(step) <= _LEVEL_WITHIN * z:
            least = after * (1.0 - _LEVEL_WITHIN)
            need, supply, _ = sides(least)
            if need <= supply:
                return least * _HAIR_LESS
            after = low
        z = after if low < after < high else 0.5 * (low + high)
        need, supply, slope = sides(z)
        low, high = (low, z) if need > supply else (z, high)
        if high - low <= _LEVEL_WITHIN * low:
            break
    return low * _HAIR_LESS


class _Transfers(NamedTuple):
    """What rows receive and donate: the level of every row, which receive and donate, and the transfers: amounts in
    units of e^eps, who takes and who gives.
    """

    level: Array
    receives: Flags
    donates: Flags
    amount: Array
    taker: Picked
    giver: Picked


class Exchange(NamedTuple):
    """A certificate to work out: receivers among the blocks 0..cut, at a common level."""

    comparison: Comparison
    cut: int
    common: float

    def matching(self, classes: int) -> Matching:
        """Return what the certificate is made from, for so many classes of positions."""
        rows, receiving = self.comparison.rows, self.comparison.rows.kind[: self.cut + 1]
        receivers = tuple(int((receiving == number).sum()) for number in range(classes))
        return Matching(self.common, receivers, rows.blocks, len(rows.mu))

    def transfers(self) -> _Transfers | None:
        """Return what is exchanged; None where the need is not met."""
        rows, epsilon = self.comparison.rows, self.comparison.epsilon
        level = rows.mu * (self.common - 0.5 * rows.mu)  # ln gamma of every block
        index = np.arange(len(rows.mu))
        receives = (index <= self.cut) & (level > epsilon)
        donates = (index > self.cut) & (level < epsilon)
        amounts = _matched(rows, level - epsilon, receives, donates)
        return None if amounts is None else _Transfers(level, receives, donates, *amounts)

    def uses(self, transfers: _Transfers) -> tuple[Array, Array, Array, Array]:
        """Return the position and the size of a use in the blocks that take, and in those that give."""
        rows, swap = self.comparison.rows, self.comparison.swap
        taker, giver = transfers.taker, transfers.giver
        return rows.low[taker], rows.size[taker] * swap[0], rows.low[giver], rows.size[giver] * swap[1]

    def terms(self, transfers: _Transfers, between: Array) -> tuple[Array, Array, Array]:
        """Return the thresholds, mu and the logarithms of the shares of all terms; ``between`` is mu of the transfers.

        Rows with their own column: receivers keep e^eps/gamma of themselves, donors spend gamma, the others e^eps.
        """
        rows, epsilon = self.comparison.rows, self.comparison.epsilon
        level, receives, donates, amount, taker, _ = transfers
        spent = np.where(receives | donates, level, epsilon)
        kept = np.where(receives, epsilon - level, 0.0)
        return (
            np.concatenate((spent, level[taker])),
            np.concatenate((rows.mu, between)),
            np.log(np.concatenate((rows.weight, amount))) + np.concatenate((kept, kept[taker])),
        )


def _matched(rows: Rows, excess: Array, receives: Flags, donates: Flags) -> Amounts | None:
    """Return (amount in units of e^eps, receiving block, giving block) of every transfer, amounts rounded up."""
    takers = np.flatnonzero(receives)[::-1]
    givers = np.flatnonzero(donates)[::-1]
    if not len(takers) or not len(givers):
        return None
    need = rows.weight[takers] * np.expm1(excess[takers])
    supply = rows.weight[givers] * -np.expm1(excess[givers])
    scale = _UNITS / float(supply.sum())
    # 1e-14 is 90 units of roundoff, for a difference, expm1 and two products.
    wanted = np.cumsum(np.ceil(need * (scale * (1.0 + 1e-14))).astype(np.int64))
    offered = np.cumsum(np.floor(supply * (scale * (1.0 - 1e-14))).astype(np.int64))
    if not 0 < wanted[-1] <= offered[-1]:
        return None
    ends = np.concatenate((wanted, offered[offered < wanted[-1]]))
    ends.sort(kind="stable")  # of two runs that are sorted
    starts = np.concatenate(([0], ends[:-1]))
    starts, ends = starts[starts < ends], ends[starts < ends]
    amount = (ends - starts) * ((1.0 + 8.0 * UNIT) / scale)
    taker = takers[np.searchsorted(wanted, starts, side="right")]
    giver = givers[np.searchsorted(offered, starts, side="right")]
    return amount, taker, giver


def log_deltas(exchanges: Sequence[Exchange]) -> list[float]:
    """Return ln of the certificates; 0 where there is none. Few numbers take as long as many: they go together."""
    transfers = [exchange.transfers() for exchange in exchanges]
    met = [(exchange, one) for exchange, one in zip(exchanges, transfers, strict=True) if one is not None]
    if not met:
        return [0.0] * len(exchanges)
    from dpcalc.numerics.normal_arrays import log_hockey_stick_up

    terms = [exchange.terms(one, mu) for (exchange, one), mu in zip(met, _all_between(met), strict=True)]
    thresholds, mus, shares = zip(*terms, strict=True)
    values = log_hockey_stick_up(np.concatenate(thresholds), np.concatenate(mus))
    parts = iter(np.split(values, np.cumsum([len(share) for share in shares])[:-1]))
    means = iter(
        exchange.comparison.rows.log_mean(share + part, float(np.abs(one.level).max()))
        for (exchange, one), share, part in zip(met, shares, parts, strict=True)
    )
    return [0.0 if one is None else next(means) for one in transfers]


def _all_between(transfers: Sequence[tuple[Exchange, _Transfers]]) -> list[Array]:
    """Return mu of the transfers of several certificates: for the record in the block that takes, and its replacement
    in the one that gives.
    """
    uses = [exchange.uses(one) for exchange, one in transfers]
    several = [(exchange.comparison.distances, len(one.amount)) for exchange, one in transfers]
    k, here, m, there = (np.concatenate(part) for part in zip(*uses, strict=True))
    together: Distances | None = several[0][0]
    if not all(distances is together for distances, _ in several):
        together = several[0][0].among(several) if ((k > 0.0) & (m > 0.0)).all() else None
    if together is None:
        return [_between(distances, *part) for (distances, _), part in zip(several, uses, strict=True)]
    return np.split(_between(together, k, here, m, there), np.cumsum([count for _, count in several])[:-1])


def _between(distances: Distances, k: Array, here: Array, m: Array, there: Array) -> Array:
    """Return mu for the record at k and its replacement at m, with uses of these sizes; 0 stands for left out."""
    both = (k > 0.0) & (m > 0.0)
    first = k > m
    early, late = np.where(first, here, there), np.where(first, there, here)
    if both.all():
        return distances.pair(np.maximum(k, m), early, np.minimum(k, m), late)
    mu = np.empty(len(k))
    mu[both] = distances.pair(np.maximum(k, m)[both], early[both], np.minimum(k, m)[both], late[both])
    # The swap with a record that is left out changes one step.
    mu[~both] = distances.own(np.maximum(k, m)[~both], np.where(k > 0.0, here, there)[~both])
    return mu


def public_log_deltas(several: Sequence[Rows], epsilon: float) -> list[float]:
    """Return ln delta for observers who know the position, at most 0: one for each of the rows."""
    from dpcalc.numerics.normal_arrays import log_hockey_stick_up

    if not several:
        return []
    values = log_hockey_stick_up(min(epsilon, _FARTHEST), np.concatenate([rows.mu for rows in several]))
    parts = np.split(values, np.cumsum([len(rows.mu) for rows in several])[:-1])
    return [rows.log_mean(np.log(rows.weight) + part) for rows, part in zip(several, parts, strict=True)]
