"""Upper bounds on delta for a record whose position stays secret, each with a certificate that is easy to check.

The steps of a pass fall into positions, counted *from the end*; a record is at position k with probability w_k, its
share of the records, and perhaps left out, which counts as a position too. Let P_k be the law of the output given that
the record is at k, Q_m the law with its replacement at m, and let P_k and Q_m be no further apart than two Gaussians at
mu_km (`Distances`). For every pair of non-negative matrices R, M with row sums sum_m R_km = 1 and column sums
sum_k w_k M_km <= e^eps w_m,

    delta(eps) <= sum_km w_k R_km delta_G(ln(M_km/R_km); mu_km).

*Proof.* e^eps Q >= sum_km w_k M_km Q_m, so E(P||Q) <= sum_k w_k int (P_k - sum_m M_km Q_m)_+, and the positive part
of sum_m (R_km P_k - M_km Q_m) is at most the sum of the positive parts.

Any (R, M) is a certificate. Those used here are `exchanges` of likelihood between rows (`positions`), at one cut each
(`cuts`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpcalc.notions import gaussian
from dpcalc.notions.profiles import Matching
from dpcalc.numerics.floats import log_add_exp, np
from dpcalc.theorems.hidden.cuts import ENOUGH, FEW, FLAT, ROUGHLY, Cuts, search
from dpcalc.theorems.hidden.exchanges import Comparison, Exchange, log_deltas, public_log_deltas
from dpcalc.theorems.hidden.positions import Distances, Places, rows_of, rows_of_all

_COARSE = 10  # so many times fewer rows in the grid where a search begins
_FEWER_ON_CURVES = 4  # so many times fewer rows where a whole curve is wanted
_NEGLIGIBLE = 7.0  # cells below exp(-7) of the others count as if the position were known
_SECANTS, _SAME, _NEAR, _QUADRATIC = 8, 1e-14, 1e-4, 1e-6  # steps of a secant, and how near they end
_USUAL_SLOPE = 1.5  # of ln(-ln delta) in ln epsilon, which is 1 to 2
_FARTHEST = 200.0  # of ln epsilon
MOST = math.exp(_FARTHEST)
_LARGEST_MU = 10.0  # in a mean of exp(mu^2), which e^100 decides alone

Swap = tuple[float, float]
Chosen = tuple[Cuts | None, ...]
Matchings = tuple[tuple[Matching | None, ...], ...]


class Cell(NamedTuple):
    """A part of a mixture: ln of its weight, and the distances in it."""

    log_weight: float
    distances: Distances


class Proof(NamedTuple):
    """ln delta, and what proves it: for each way to put the null record, the matching of every cell.

    None stands for a position that counts as known, and no function for no proof. ``at`` gives what the same cuts prove
    at another epsilon: its ln delta is a tangent, an upper bound on the least that touches it at this one. After a
    rough search they follow the natural cuts, and stay nearer to the least.
    """

    log_delta: float
    matchings: Callable[[], Matchings] | None = None
    at: Callable[[float], Proof] | None = None


class Mixture:
    """A record whose position is secret, and which is in one of several cells.

    Attributes:
        places: where it may be.
        cells: the parts of the mixture; certificates have their order.
    """

    def __init__(self, places: Places, cells: Sequence[Cell]) -> None:
        self._order = sorted(range(len(cells)), key=lambda number: -cells[number].log_weight)
        self.places, self.cells = places, [cells[number] for number in self._order]

    def least(self, epsilon: float, *, rough: bool = False) -> Proof:
        """Return ln of the weighted sum of the least certificates found, and these.

        Few cuts are tried downhill from the natural one of a cell, for the likeliest cell over a coarse grid of rows,
        then over the fine one; for every other cell over the coarse one alone.

        Args:
            epsilon: >= 0.
            rough: whether the natural cuts of the other cells, and fewer of the first, will do: ln delta is mostly
                within 1e-4 of the least.
        """
        return self._proof([self._least(swap, epsilon, rough) for swap in self.places.swaps], rough)

    def _proof(self, sums: Sequence[tuple[float, Chosen]], follow: bool) -> Proof:
        """Return what the cuts chosen prove, for each way to put the null record."""

        def matchings() -> Matchings:
            classes = len(self.places.classes)
            listed = [[None if cuts is None else cuts.matching(classes) for cuts in chosen] for _, chosen in sums]
            number = sorted(range(len(self._order)), key=self._order.__getitem__)
            return tuple(tuple(of_swap[i] for i in number) for of_swap in listed)

        def at(epsilon: float) -> Proof:
            return self._proof([self._by_same_cuts(chosen, epsilon, follow) for _, chosen in sums], follow)

        return Proof(max(value for value, _ in sums), matchings, at)

    def _least(self, swap: Swap, epsilon: float, rough: bool) -> tuple[float, Chosen]:
        """Return ln of the weighted sum of the least certificates for one way to put the null record, and their
        cuts."""
        cells = self.cells
        grids = rows_of_all(self.places, tuple(cell.distances for cell in cells), _COARSE)
        public = public_log_deltas(grids, epsilon)
        coarse = [
            Cuts(Comparison(rows, cell.distances, swap, epsilon)) for cell, rows in zip(cells, grids, strict=True)
        ]
        tried: list[list[Cuts]] = [[] for _ in cells]
        follow = rough and swap == (1.0, 1.0)
        if coarse[0].comparison.may_gain:
            near = coarse[0].natural
            also = (near // 2, 2 * near)
            search((coarse[0], coarse[0].settle(near, ROUGHLY, also=also, deep=FLAT if follow else math.inf)))
            rows = rows_of(self.places, cells[0].distances, 1)
            fine = Cuts(Comparison(rows, cells[0].distances, swap, epsilon))
            search((fine, fine.refine(coarse[0], follow)))
            tried[0] = [coarse[0], fine]
        at_least = min(public[0], *(cuts.least for cuts in tried[0]), 0.0) + cells[0].log_weight - _NEGLIGIBLE
        searches = []
        for number, (cell, cuts) in enumerate(zip(cells, coarse, strict=True)):
            if number == 0 or cell.log_weight + public[number] < at_least or not cuts.comparison.may_gain:
                continue
            tried[number], cuts.middle = [cuts], coarse[0].middle
            # Natural cuts are good where a use counts the same wherever it is, and rows are many.
            natural = follow and FEW <= cuts.natural <= cuts.last
            searches.append((cuts, iter([(cuts.natural,)]) if natural else cuts.settle(cuts.natural, ENOUGH)))
        search(*searches)
        total, chosen = -math.inf, []
        for cell, value, several in zip(cells, public, tried, strict=True):
            best = min(several, key=lambda cuts: cuts.least, default=None)
            best = best if best is not None and best.least < value else None
            total = log_add_exp(total, cell.log_weight + (value if best is None else best.least))
            chosen.append(best)
        return total, tuple(chosen)

    def _by_same_cuts(self, chosen: Chosen, epsilon: float, follow: bool) -> tuple[float, Chosen]:
        """Return ln of the weighted sum of the certificates of cuts that were chosen for another epsilon, and them
        here."""
        there = [None if cuts is None else cuts.at(epsilon, follow) for cuts in chosen]
        search(*(one for one in there if one is not None))
        # A level may be out of reach there: the position then counts as known.
        here = [None if one is None or one[0].best not in one[0].levels else one[0] for one in there]
        grids = rows_of_all(self.places, tuple(cell.distances for cell in self.cells), _COARSE)
        others = [rows for rows, cuts in zip(grids, here, strict=True) if cuts is None]
        public, total = iter(public_log_deltas(others, epsilon)), -math.inf
        for cell, cuts in zip(self.cells, here, strict=True):
            total = log_add_exp(total, cell.log_weight + (next(public) if cuts is None else cuts.least))
        return total, tuple(here)

    @functools.lru_cache(maxsize=8)  # noqa: B019 (a mixture lives as long as the answer that asks of it)
    def likely_epsilon(self, log_delta: float) -> float:
        """Return about the epsilon at ln delta, by the likeliest cell: where the natural cuts of a coarse grid lead.

        No side is promised. The way starts at the epsilon of two Gaussians whose chi-squared divergence is the mean of
        those of all positions.
        """
        distances = self.cells[0].distances
        rows = rows_of(self.places, distances, _COARSE)
        mean = float(np.average(np.expm1(np.minimum(rows.mu, _LARGEST_MU) ** 2), weights=rows.weight))
        first = gaussian.epsilon(mu=math.sqrt(math.log1p(mean)), log_delta_target=log_delta)
        middle: float | None = None

        def natural(epsilon: float) -> float:
            nonlocal middle
            comparison = Comparison(rows, distances, (1.0, 1.0), epsilon)
            if not comparison.may_gain:
                return 0.0
            middle, cut = comparison.natural_cut(middle)
            cut = min(cut, len(rows.mu) - 2)
            level = comparison.common_level(cut, middle)
            if level is None:
                return 0.0
            return max(log_deltas([Exchange(comparison._replace(swap=swap), cut, level) for swap in self.places.swaps]))

        value = natural(first) if 0.0 < first < MOST else 0.0
        return where_met(natural, first, value, log_delta, _NEAR) if -math.inf < value < 0.0 else first


def where_met(
    curve: Callable[[float], float], epsilon: float, value: float, target: float, within: float = _SAME
) -> float:
    """Return about where a curve falls to ``target`` < 0, by few secants from where it is ``value`` < 0.

    The logarithm of -ln delta is nearly linear in that of epsilon, with a slope of 1 to 2. The rest of the way is not
    followed further than Newton's method needs, whose error is of the order of the square of the way.
    """
    before, excess = math.log(epsilon), math.log(value / target)
    start, at = before, before - excess / _USUAL_SLOPE
    for _ in range(_SECANTS):
        value = curve(math.exp(min(at, _FARTHEST)))
        if not -math.inf < value < 0.0:
            break
        rest = math.log(value / target)
        if rest in (0.0, excess) or abs(at - before) < max(within, _QUADRATIC * (at - start) ** 2):
            break
        before, excess, at = at, rest, at - rest * (at - before) / (rest - excess)
    return math.exp(min(max(at, -_FARTHEST), _FARTHEST))


class Curve:
    """ln delta at one epsilon after another, with fewer rows and cuts."""

    def __init__(self, places: Places, distances: Distances) -> None:
        self._places, self._distances = places, distances
        self._best: dict[Swap, dict[float, Cuts]] = {swap: {} for swap in places.swaps}

    def matchings(self, epsilon: float) -> tuple[Matching | None, ...]:
        """Return what proves the value at an epsilon where one was found, for each way to put the null record.

        None stands for a position that counts as known, which gives no more.
        """
        classes = len(self._places.classes)
        return tuple(best[epsilon].matching(classes) if epsilon in best else None for best in self._best.values())

    def at(self, epsilon: float) -> float:
        """Return the least certificate found at ``epsilon``, the larger of the two orders' where they differ."""
        return max(self._least(swap, epsilon) for swap in self._places.swaps)

    def _least(self, swap: Swap, epsilon: float) -> float:
        rows = rows_of(self._places, self._distances, _FEWER_ON_CURVES)
        value = public_log_deltas([rows], epsilon)[0]
        cuts = Cuts(Comparison(rows, self._distances, swap, epsilon))
        if cuts.comparison.may_gain:
            search((cuts, cuts.settle(cuts.natural, ENOUGH)))
            if cuts.least < value:
                self._best[swap][epsilon] = cuts
        return min(value, cuts.least)
