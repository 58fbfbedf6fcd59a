"""The success probability of an attacker who guesses between two data sets: one number, used for everything in an
answer.

P(S) - Q(S) is at most delta(0) for every test S, whichever of the two orders the profile is of. If a profile is a loose
bound, another epsilon may be better: `dpcalc.notions.trade_off`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import DpcalcError, isolate_failure
from dpcalc.model.quantities import RISKS, Kind, Quantity
from dpcalc.model.run import Run
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Box, Gdp, Guarantee, Rdp, Worst
from dpcalc.notions.notion import LowerBound
from dpcalc.numerics.floats import exp_up, up
from dpcalc.report import Case, Guess, Result
from dpcalc.theorems.record import lookup

Proved = Sequence[tuple[str, Guarantee]]
"""(id, guarantee), the best one first; all hold."""

_ONE_WAY = ("add", "remove")
_NO_BETTER = 1.0 - 1e-9
"""A curve with a smaller gain is the answer's own, rounded differently: the same run then has the same number
everywhere."""


class Evidence:
    """The guarantees of an answered run, with the best solution of a solved parameter.

    Attributes:
        case, best: the answer, and its best guarantee.
        run, orders: the run and the orders of the question.
    """

    def __init__(self, case: Case, run: Run, orders: tuple[float, ...]) -> None:
        assert case.best is not None
        self.case, self.best, self.orders = case, case.best, orders
        direction = DIRECTIONS.get(self.best.quantity)
        if direction is not None:
            value = int(self.best.value) if direction.integer else self.best.value
            run = run.replacing(**{self.best.quantity: value})
        self.run = run

    @property
    def proved(self) -> list[tuple[str, Guarantee]]:
        """(id, guarantee) of each bound, the best one first; slow ones only if they are the best."""
        proved: dict[str, Guarantee | None] = {}
        for row in self.case.results:  # the best one is the first
            if row.guarantee and row.bound not in proved and (row.best or not lookup(row.bound).slow):
                proved[row.bound] = self._curve_or_point(row)
        return [(name, part) for name, part in proved.items() if part is not None]

    @property
    def floors(self) -> list[tuple[str, LowerBound]]:
        """(id, lower bound) of the rows that hold for this run."""
        rows = [row for row in self.case.results if row.kind == Kind.LOWER and row.quantity not in DIRECTIONS]
        pairs = [(row.bound, self.guarantee(row.bound)) for row in rows]
        return [(bound, part) for bound, part in pairs if isinstance(part, LowerBound)]

    def guarantee(self, bound: str) -> Guarantee | None:
        """Return the guarantee of a bound for the run; None if it is unavailable."""
        try:
            with isolate_failure():
                return guarantee_of(lookup(bound), self.run, self.orders)
        except DpcalcError:
            return None

    def _curve_or_point(self, row: Result) -> Guarantee | None:
        """Return the guarantee of a bound: a curve, or the answered point."""
        guarantee = self.guarantee(row.bound)
        if guarantee is not None and guarantee.has_curve:
            return guarantee
        same = row.bound == self.best.bound or row.quantity not in DIRECTIONS
        if not same or row.epsilon is None or row.log_delta is None:
            return None
        return Box(row.epsilon, row.log_delta)


def guess_of(case: Case, run: Run, orders: tuple[float, ...]) -> Guess | None:
    """Return the largest probability of a right guess: from the curves behind the answer, else from the answer alone.

    A curve is evaluated at one or a few epsilons, which is faster than the search for the answer.
    """
    best = case.best
    if best is None or not _speaks_of_records(best):
        return None
    if None not in [row.mu for row in case.results if row.guarantee]:
        return guess_of_answer(best)
    try:
        with isolate_failure():
            return least_guess(Evidence(case, run, orders).proved, best)
    except DpcalcError:
        return guess_of_answer(best)


def least_guess(proved: Proved, best: Result) -> Guess:
    """Return the least success probability that the guarantees and the answer prove."""
    alone = _alone(best)
    curves = [(name, part) for name, part in proved if not isinstance(part, Box)]
    if best.adjacency in _ONE_WAY:
        least = min([(_one_way(part), name) for name, part in curves], default=(math.inf, ""))
    else:
        least = least_advantage(curves)
    if least[0] > alone.advantage * _NO_BETTER:
        return alone._replace(from_point=alone.from_point and not curves)
    return _guess(*least, from_point=False)


def guess_of_answer(best: Result) -> Guess | None:
    """Return the bound from the answer alone: mu, or one (epsilon, delta).

    P(S) <= e^eps Q(S) + delta in both directions gives (e^eps + delta)/(1 + e^eps) at most (Kairouz, Oh and Viswanath
    2015, Theorem 2.1), in one direction 1 - (1 - delta) e^-eps/2. If rounding changes the release with some
    probability, that is added.
    """
    return _alone(best) if _speaks_of_records(best) else None


def _alone(best: Result) -> Guess:
    rounding = (best.details or {}).get("floating_point", {})
    mu = rounding.get("mu", best.mu)
    if mu is not None:
        if not rounding:  # the number that a search for an advantage meets
            return _guess(Gdp(mu).trade_off().advantage(), best.bound, from_point=False)
        changed = float(rounding.get("probability", 0.0))
        return _guess(up(gaussian.delta(mu=mu, epsilon=0.0) + 2.0 * changed, 2.0), best.bound, from_point=False)
    box = Box(best.epsilon or 0.0, _log_delta(best))
    if best.adjacency in _ONE_WAY:
        return _guess(_one_way(box), best.bound, from_point=True)
    return _guess(box.trade_off().advantage(), best.bound, from_point=True)


def least_advantage(proved: Proved) -> tuple[float, str]:
    """Return the least advantage that a guarantee in both orders proves, and its id; inf where there is none.

    Renyi curves are slow and almost never better, so they are used only if there is nothing else.
    """
    asked = [(name, part) for name, part in proved if not _of_renyi(part)]
    least = (math.inf, "")
    for name, part in asked or proved:
        if -math.expm1(part.log_overlap()) < least[0]:
            least = min(least, (part.trade_off().advantage(), name), key=lambda pair: pair[0])
    return least


def _speaks_of_records(best: Result) -> bool:
    """Return whether an answer is a guarantee for a record: not a cost, a divergence or a conversion."""
    if best.adjacency in ("by-shift", "as-given") or best.quantity in (Quantity.RDP, *RISKS):
        return False
    return best.mu is not None or (best.epsilon is not None and (best.delta is not None or best.log_delta is not None))


def _guess(advantage: float, bound: str, *, from_point: bool) -> Guess:
    advantage = min(1.0, advantage)
    return Guess(min(1.0, up(0.5 + 0.5 * advantage, 2.0)), advantage, bound, from_point)


def _of_renyi(part: Guarantee) -> bool:
    return isinstance(part, Rdp) or (isinstance(part, Worst) and all(map(_of_renyi, part.members)))


def _one_way(part: Guarantee) -> float:
    """Return the largest advantage against a guarantee of one order of the two data sets."""
    if isinstance(part, Box):
        return up(1.0 - (1.0 - exp_up(part.log_delta0)) * math.exp(-up(part.epsilon0)) * (1.0 - 2.0**-50), 2.0)
    return min(1.0, exp_up(min(0.0, part.privacy_profile()(0.0))))


def _log_delta(best: Result) -> float:
    """Return ln delta, not below what it is."""
    if best.log_delta is not None:
        return min(0.0, best.log_delta)
    return min(0.0, up(math.log(best.delta), 2.0)) if best.delta else -math.inf
