"""The hidden past: a share of the noise of the last steps hides all earlier steps of a run on random batches.

The last k steps are composed. Before them the distance of two runs is at most a discounted sum of the record's uses,
and at most the diameter. In the worst case every batch had the record (Theorem N of the note). But the number of uses
is random, and the theorem of the hidden past takes the mean over it: with the number public if both data sets are real,
and secret against a run that never uses the record. docs/method.md has the proofs.

A plan says how many steps are composed, in how many of them which share of the noise hides the past, and over how many
earlier steps uses are counted. The theorem holds for every plan; approximations choose a good one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.notions import gaussian
from dpcalc.notions.profiles import SPLIT, Certificate
from dpcalc.numerics import discounted_sums, roots
from dpcalc.numerics.binomial import log_any_tail_up
from dpcalc.numerics.floats import UNIT, Array, np, up
from dpcalc.numerics.normal_arrays import log_hockey_stick_up
from dpcalc.plain_enum import PlainEnum

if TYPE_CHECKING:
    from fractions import Fraction

    from dpcalc.notions.pld import Pair
    from dpcalc.numerics.discounted_sums import Law

_MOST_MU = 4e7  # no visible privacy is left at a larger mu
_MOST_SHIFT, _UNLIKELY = 290.0, 1e-30  # mixtures of shifts have mu below 300, up to this probability
_NEAR_ONE = (100, 200, 60)  # nodes of a law of distances: near 0, up to rare ones, and beyond
_RARE = math.exp(-25.0)
_LEAST_SHARE = 1e-9  # of the noise, which hides even a past that is all but forgotten
_NOTHING = 1e-12  # the weight of a step whose uses do not show
_NODES_OF_SEARCH = 5  # one in this many nodes is enough to choose a plan
_LOG_DELTA = math.log(1e-6)  # plans are chosen for this delta; the best one hardly depends on it
_NEVER_SEEN = 3.0  # ln delta minus ln of a failure that takes a twentieth of it
_STRIDES = (2.0, 1.4, 1.15, 1.05)  # factors by which the numbers of a plan are multiplied and divided
_NEARER = 1e-4  # of epsilon: what a better plan has to gain
_MOST_TRIALS = 120  # the most plans to try


class Past(PlainEnum):
    """What an observer learns about the number of uses before the last steps."""

    TOLD = "told"
    SECRET = "secret"
    MIRRORED = "secret of both"


class Draws(NamedTuple):
    """The number of uses in a step is the number of successes in independent trials with this chance.

    With a ``period`` above 1 the record is used once in every period of steps, at a random place.
    """

    trials: int
    chance: Fraction
    period: int = 1


class Chain(NamedTuple):
    """Steps that contract, move by a use of the record, and add noise.

    Attributes:
        steps: T.
        factor: c, Lipschitz factor of a step's map, in [0, 1].
        use: how far one use of the record moves a step, eta 2 L/b, rounded up.
        noise: eta sigma, rounded down.
        diameter: D, inf if unbounded.
    """

    steps: int
    factor: float
    use: float
    noise: float
    diameter: float


class Plan(NamedTuple):
    """Compose the last ``composed`` steps; in the last ``split`` of them the share ``fraction`` of the noise's variance
    hides the past, and the rest the step's own use.

    Uses are ``counted`` in this many steps before them, and ``past`` is what becomes known about them. Earlier uses, or
    all if none are counted, have their worst case.
    """

    composed: int
    split: int
    fraction: float
    counted: int = 0
    past: Past | None = None

    def contracting(self, chain: Chain) -> int:
        """Return how many steps have to contract."""
        outright = not self.counted and chain.diameter <= chain.use * _geometric(
            chain.factor, chain.steps - self.composed
        )
        whole = not outright and self.counted in (0, chain.steps - self.composed)
        return chain.steps if whole else self.composed + self.counted


def split_certificate(plan: Plan) -> Certificate:
    """Return a plan as a certificate: the theorem proves a bound for every plan."""
    values = plan._asdict()
    if not plan.counted:
        del values["counted"], values["past"]
    return Certificate(SPLIT, values=values)


def sample_mu(mu: float, fraction: float) -> float:
    """Return mu of a step where only the share 1 - fraction of the noise's variance hides its own use, rounded up."""
    return up(mu / math.sqrt(1.0 - fraction), 4.0)


# --- the hiding of early steps ----------------------------------------------------------------------------------------


def shift_mu(chain: Chain, plan: Plan) -> float:
    """Return the GDP parameter of hiding the past before the steps that a plan composes, rounded up.

    Every earlier step counts as a use.
    """
    done = chain.steps - plan.composed
    apart = min(chain.diameter, up(chain.use * _geometric(chain.factor, done), 8.0)) if done else 0.0
    return _mu_of(apart, chain, plan)


def _mu_of(apart: float, chain: Chain, plan: Plan) -> float:
    """Return the GDP parameter of hiding this distance."""
    if apart == 0.0:
        return 0.0
    if chain.noise <= 0.0:  # rounded down from below the least double
        return math.inf
    factor = chain.factor
    log_shrunk = max(-745.0, plan.composed * math.log(factor)) if factor > 0.0 else -745.0
    kept = math.exp(log_shrunk) * (1.0 + UNIT * (8.0 + 2.0 * abs(log_shrunk)))
    # _geometric is rounded up by at most 64 units; a divisor must not be.
    squared = factor * factor * (1.0 - 2.0 * UNIT) if factor < 1.0 else 1.0
    spread = _geometric(squared, plan.split) * (1.0 - 256.0 * UNIT)
    return up(apart * kept / (chain.noise * math.sqrt(plan.fraction * max(1.0, spread))), 16.0)


def _geometric(factor: float, terms: int) -> float:
    """Return 1 + c + ... + c^(terms-1), within 64 units of roundoff and above."""
    if factor >= 1.0:
        return float(terms) * (1.0 + 2.0 * UNIT)
    if factor == 0.0:
        return 1.0
    rate = -math.log(factor)
    if rate * terms < 1e-8:
        return min(float(terms), terms * (1.0 - 0.5 * rate * (terms - 1) + (rate * terms) ** 2)) * (1.0 + 32.0 * UNIT)
    return min(float(terms), math.expm1(-rate * terms) / math.expm1(-rate) * (1.0 + 48.0 * UNIT))


@functools.lru_cache(maxsize=16)  # compositions of the same pairs share what they answer
def past_pair(chain: Chain, plan: Plan, draws: Draws) -> Pair:
    """Return the dominating pair of the past before the steps that a plan composes."""
    from dpcalc.notions import pld

    if not plan.counted:
        return pld.gaussian(mu=max(shift_mu(_at_worst(chain, draws), plan), 1e-30))
    make = {Past.TOLD: pld.revealed_shift, Past.SECRET: pld.hidden_shift, Past.MIRRORED: pld.mirrored_shift}
    return make[plan.past or Past.TOLD](*_shifts(chain, plan, _uses(draws, chain.factor, plan.counted)))


def _at_worst(chain: Chain, draws: Draws) -> Chain:
    """Return the steps with the largest number of uses: all trials succeed."""
    return chain._replace(use=up(chain.use * draws.trials)) if draws.trials > 1 else chain


def _shifts(chain: Chain, plan: Plan, law: Law) -> tuple[Array, Array]:
    """Return the GDP parameters of hiding the past, increasing, and their probabilities."""
    values, masses = law.whole()
    apart = values * chain.use * (1.0 + 4.0 * UNIT)
    if plan.counted < chain.steps - plan.composed:
        apart = apart + up(chain.diameter * math.exp(plan.counted * math.log(chain.factor or 1e-300)), 1e3)
    return np.minimum(apart, chain.diameter) * up(_mu_of(1.0, chain, plan), 4.0), masses


def _uses(draws: Draws, factor: float, count: int) -> Law:
    """Return the law of the discounted number of uses in ``count`` steps, on some hundred nodes.

    Where the earliest steps weigh next to nothing, more of them are counted: all plans of a run then share a law.
    """
    times = -(-count // draws.period)
    return _law_of_uses(draws, factor, 1 << (times - 1).bit_length() if factor**count < _NOTHING else times)


@functools.lru_cache(maxsize=16)
def _law_of_uses(draws: Draws, factor: float, times: int) -> Law:
    if draws.period > 1:
        law = discounted_sums.uses_of_periods(draws.period, factor, times)
    else:
        law = discounted_sums.uses(draws.trials, draws.chance, factor, times)
    values, masses = law.whole()
    tails = np.cumsum(masses[::-1])[::-1]
    rare = float(values[max(0, int(np.searchsorted(-tails, -_RARE)) - 1)])
    if len(values) <= sum(_NEAR_ONE) or not 0.0 < rare < math.inf:
        return law
    near, middle, far = _NEAR_ONE
    nodes = np.concatenate((
        [0.0], rare * np.geomspace(1e-6, 1.0 / middle, near), rare * np.linspace(1.0 / middle, 1.0, middle)[1:],
        np.linspace(rare, max(rare, float(values[-2])), far)[1:],
    ))  # fmt: skip
    ends = [up(nodes[-1]), up(float(values[-1]))]  # the largest value is far from the others
    return law._replace(values=values, masses=masses, rest=0.0).on(np.append(nodes, ends))


# --- the choice of a plan ---------------------------------------------------------------------------------------------


class TooLarge(NamedTuple):
    """Batches that are too large: a step on one need not contract.

    Attributes:
        least: a batch with this many of the others is too large; inf if none is.
        others, chance: the number of other records, and the chance of each to be in a batch.
        independent: whether batches are independent; otherwise their chances add up.
    """

    least: float = math.inf
    others: int = 0
    chance: Fraction | None = None
    independent: bool = True

    def log_chance(self, steps: int) -> float:
        """Return ln of the chance that one of ``steps`` batches is too large, rounded up; -inf for none."""
        return _log_chance(self, steps)


@functools.lru_cache(maxsize=16)  # nearly all plans of a run ask for one number of steps
def _log_chance(large: TooLarge, steps: int) -> float:
    if large.chance is None or large.least > large.others:
        return -math.inf
    one = log_any_tail_up(int(large.least), large.others, large.chance, steps if large.independent else 1)
    return one if large.independent or one == -math.inf else min(0.0, up(math.log(steps), 4.0) + one)


class Search(NamedTuple):
    """The plans of one theorem for one run.

    Attributes:
        chain: the steps.
        draws: the law of a record's uses in a step.
        past: what becomes known about the past.
        cost: the variance of the loss of a step, by the share of the noise that hides the past.
        mu, rate: of a step, for the first plan.
        too_large: batches on which a step need not contract.
    """

    chain: Chain
    draws: Draws
    past: Past
    mu: float
    rate: float
    too_large: TooLarge = TooLarge()

    def best(self) -> tuple[float, Plan | None]:
        """Return about the least epsilon, and its plan; None for plain composition."""
        return _best(self)

    def sought(self) -> tuple[float, Plan | None]:
        """Return the result of `best`, by a search."""
        steps = self.chain.steps
        if self.mu > _MOST_MU:
            return math.inf, None
        none = gaussian.epsilon(mu=math.sqrt(steps * use_cost(self.mu, self.rate)), log_delta_target=_LOG_DELTA)
        starts = [(_solved(curve), plan) for plan in self._starts() if (curve := self._curve(plan, {})) is not None]
        least, plan = min(starts, key=lambda start: start[0], default=(math.inf, None))
        if plan is None:
            return none, None
        least, plan = self._descended(least, plan)
        return (least, plan) if least < none else (none, None)

    def _starts(self) -> Iterator[Plan]:
        """Yield the best plans for the worst past and, with uses counted, for some that are likely enough."""
        if (worst := best_plan(_at_worst(self.chain, self.draws), self.mu, self.rate)) is not None:
            worst = self._whole(worst)
            if worst.composed < self.chain.steps:
                yield worst
        if self.chain.use == 0.0 or self.chain.steps < 2:
            return
        window = self._window()
        values, masses = _uses(self.draws, self.chain.factor, window or self.chain.steps).whole()
        tails = np.cumsum(masses[::-1])[::-1]
        for rare in (1e-1, 1e-4):
            apart = up(self.chain.use * float(values[max(0, int(np.searchsorted(-tails, -rare)) - 1)]))
            plan = best_plan(self.chain._replace(diameter=min(self.chain.diameter, apart)), self.mu, self.rate)
            if plan is not None and (plan := self._whole(plan)).composed < self.chain.steps:
                yield self._counted(plan, window)

    def _window(self) -> int:
        """Return the number of steps before the last ones in which uses are counted; 0 for all.

        These steps have to contract, and on a bounded domain a few may be enough.
        """
        chain = self.chain
        if math.isinf(chain.diameter) or chain.factor >= 1.0 or chain.factor <= 0.0:
            return 0
        if self.too_large.log_chance(chain.steps) < _LOG_DELTA - _NEVER_SEEN:
            return 0
        steps = math.ceil(math.log(max(1.0, 1e4 * chain.diameter / chain.use)) / -math.log(chain.factor))
        return min(chain.steps, -(-steps // self.draws.period) * self.draws.period)

    def _whole(self, plan: Plan) -> Plan:
        """Return the plan with a whole number of periods composed."""
        return plan._replace(composed=-(-plan.composed // self.draws.period) * self.draws.period)

    def _counted(self, plan: Plan, window: int) -> Plan:
        done = self.chain.steps - plan.composed
        return plan._replace(counted=min(window or done, done), past=self.past)

    def _descended(self, least: float, plan: Plan) -> tuple[float, Plan]:
        """Return about the least epsilon that improving strides lead to, and its plan."""
        window = plan.counted if plan.counted < self.chain.steps - plan.composed else 0
        laws: dict[int, Law] = {}
        tried = {plan}
        for stride in _STRIDES:
            improved = True
            while improved and len(tried) < _MOST_TRIALS:
                improved = False
                for other in self._near(plan, stride, window):
                    if other in tried:
                        continue
                    tried.add(other)
                    curve = self._curve(other, laws)
                    if curve is not None and curve(least * (1.0 - _NEARER)) < _LOG_DELTA:
                        least, plan, improved = _solved(curve), other, True
        return least, plan

    def _near(self, plan: Plan, stride: float, window: int) -> Iterator[Plan]:
        """Yield plans one of whose numbers is a stride away."""
        period = self.draws.period
        for times in (stride, 1.0 / stride):
            k, j = (max(1, round(number * times)) for number in (plan.composed, plan.split))
            if period > 1:
                k = max(1, round(k / period) + (round(k / period) * period == plan.composed) * (1 if times > 1 else -1))
                k *= period
            if k < self.chain.steps:
                yield self._like(plan._replace(composed=k, split=min(plan.split, k)), plan, window)
            yield plan._replace(split=min(j, plan.composed))
            yield plan._replace(fraction=min(plan.fraction * times, 0.5 * (1.0 + plan.fraction)))

    def _like(self, changed: Plan, plan: Plan, window: int) -> Plan:
        return self._counted(changed, window) if plan.counted else changed

    def _curve(self, plan: Plan, laws: dict[int, Law]) -> Callable[[float], float] | None:
        """Return epsilon -> about ln delta of a plan, with its last steps as one Gaussian mechanism; None if delta is
        1."""
        variance = (plan.composed - plan.split) * use_cost(self.mu, self.rate)
        variance += plan.split * use_cost(sample_mu(self.mu, plan.fraction), self.rate)
        failure = math.exp(self.too_large.log_chance(plan.contracting(self.chain)))
        worst = shift_mu(_at_worst(self.chain, self.draws), plan)
        if not math.isfinite(variance) or failure >= 0.95 * math.exp(_LOG_DELTA):
            return None
        if not plan.counted:
            whole = math.hypot(worst, math.sqrt(variance))
            if worst > _MOST_MU:
                return None
            return lambda epsilon: math.log(math.exp(gaussian.log_delta(mu=whole, epsilon=epsilon)) + failure + 1e-300)
        whole_run = plan.counted == self.chain.steps - plan.composed
        count = self.chain.steps if whole_run and plan.composed < 0.1 * self.chain.steps else plan.counted
        if count not in laws:
            values, masses = _uses(self.draws, self.chain.factor, count).whole()
            places = np.arange(len(values)) // _NODES_OF_SEARCH
            ends = np.append(np.flatnonzero(places[1:] != places[:-1]), len(values) - 1)
            laws[count] = discounted_sums.Law(values[ends], np.add.reduceat(masses, np.append(0, ends[:-1] + 1)))
        mus, masses = _shifts(self.chain, plan, laws[count])
        if float(masses[mus > _MOST_SHIFT].sum()) > _UNLIKELY:
            return None
        return _likely(plan.past or Past.TOLD, np.minimum(mus, _MOST_SHIFT), masses, math.sqrt(variance), failure)


@functools.lru_cache(maxsize=16)  # the adjacencies of a run share their searches
def _best(search: Search) -> tuple[float, Plan | None]:
    return search.sought()


def _likely(past: Past, mus: Array, masses: Array, spread: float, failure: float) -> Callable[[float], float]:
    """Return about ln delta by epsilon, of shifts and one Gaussian mechanism."""
    if past == Past.TOLD:
        logs, apart, distances = np.log(masses), np.zeros(len(mus)), np.sqrt(mus * mus + spread * spread)
    else:
        y = np.linspace(-8.0, 8.0 + float(mus.max()), 160)
        ratio, other = (
            np.exp(np.clip(sign * y[:, None] * mus - 0.5 * mus * mus, -700.0, 600.0)) @ masses for sign in (1.0, -1.0)
        )
        logs = np.log(ratio) - 0.5 * y * y + math.log((y[1] - y[0]) / math.sqrt(2.0 * math.pi))
        apart = np.log(ratio) - (np.log(other) if past == Past.MIRRORED else 0.0)
        distances = np.full(len(y), max(spread, 1e-9))

    def curve(epsilon: float) -> float:
        terms = np.minimum(logs + log_hockey_stick_up(epsilon - apart, distances), 600.0)
        return math.log(float(np.exp(terms).sum()) + failure + 1e-300)

    return curve


def _solved(curve: Callable[[float], float]) -> float:
    """Return about the epsilon of the delta that plans are chosen for."""
    high = 0.125
    while curve(high) > _LOG_DELTA and high < 1e6:
        high *= 4.0
    if high >= 1e6:
        return high
    low = 1e-9 if high == 0.125 else high / 4.0
    return roots.least(lambda epsilon: curve(epsilon) - _LOG_DELTA, low, high, ulps=1 << 38)


def best_plan(chain: Chain, mu: float, rate: float) -> Plan | None:
    """Return the best plan by a central-limit approximation of the uses; None for plain composition.

    The past has its worst case.
    """
    if chain.steps < 2 or (chain.factor >= 1.0 and math.isinf(chain.diameter) and mu == 0.0):
        return None
    single = use_cost(mu, rate)
    least, best = chain.steps * single, None
    for composed in log_grid(chain.steps - 1):
        # The least cost of a plan: splitting all of the steps leaves the least shift, and no share is above 1.
        if _cost_floor(shift_mu(chain, Plan(composed, composed, 1.0)), composed, 0, single) > least:
            continue
        for split in log_grid(composed):
            whole = shift_mu(chain, Plan(composed, split, 1.0))
            if _cost_floor(whole, composed, split, single) > least:
                continue
            # The least of whole^2/q + j v/(1 - q) for v the variance of a step, which grows faster where mu is large.
            balanced = max(_LEAST_SHARE, whole / (whole + math.sqrt(split * single))) if whole else 0.5
            for fraction in (balanced, 0.6 * balanced, 0.3 * balanced):
                if not fraction < 1.0 - 1e-12:
                    continue
                cost = whole * whole / fraction + (composed - split) * single
                cost += split * use_cost(mu / math.sqrt(1.0 - fraction), rate)
                if cost < least:
                    least, best = cost, Plan(composed, split, fraction)
    return best


def _cost_floor(whole: float, composed: int, split: int, single: float) -> float:
    """Return slightly less than the least cost of a plan over all shares: a use with a larger mu^2 costs more.

    That is (whole + sqrt(j v))^2 for the j steps that are split, and v for each other one.
    """
    reach = whole + math.sqrt(split * single)
    return ((composed - split) * single + reach * reach) * (1.0 - 1e-6)  # inf, not an error, where it overflows


def log_grid(most: int) -> list[int]:
    """Return integers from 1 to ``most``, some ten a decade, including the last."""
    count = max(1, round(12 * math.log10(most))) if most > 1 else 0
    return sorted({*(round(most ** (j / count)) for j in range(count)), most}) if count else [1]


def use_cost(mu: float, rate: float) -> float:
    """Return the cost of a use when plans are chosen: the variance of its loss, if that is meaningful."""
    return min(loss_variance(mu, rate), mu * mu)


def loss_variance(mu: float, rate: float) -> float:
    """Return about the variance of one step's privacy loss, from the central limit theorem of Dong, Roth and Su."""
    square = mu * mu
    if square > 600.0:
        return math.inf
    if square < 1e-4:
        return rate * rate * square

    def normal(x: float) -> float:
        return 0.5 * math.erfc(-x * math.sqrt(0.5))

    return 2.0 * rate * rate * (math.exp(square) * normal(1.5 * mu) + 3.0 * normal(-0.5 * mu) - 2.0)
