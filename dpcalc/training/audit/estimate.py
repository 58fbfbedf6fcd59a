"""A lower bound on epsilon from many runs on two neighbouring data sets, and its confidence.

The released numbers of a run are projected to one number, its score. For every event E of the score, and for the two
data sets in either order, (epsilon, delta)-privacy says P(E) <= e^epsilon Q(E) + delta, and mu-GDP says
Phi^-1(P(E)) <= Phi^-1(Q(E)) + mu. Pilot runs, which are not counted, choose the events. The other runs are counted in
each event; exact bounds on the two probabilities of all events hold together with the stated confidence, and so do the
bounds that follow from them (docs/method.md).

The runs are those of `dpcalc.training.run.ensemble`, as in ``train --replicas``. Blocks of runs have their own random
streams, and counts are added, so the result does not depend on the number of workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import refuse
from dpcalc.numerics import clopper_pearson
from dpcalc.numerics.floats import down, up
from dpcalc.numerics.normal import quantile
from dpcalc.training.audit.attacks import Attack, Pair
from dpcalc.training.run import ensemble, single
from dpcalc.training.run.checks import refuse_overflow
from dpcalc.training.run.kernel import Source
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.remote import Rows, There, answered, run_all

Array = NDArray[np.float64]
Progress = Callable[[int, int], None]

LEAST, MOST = 1000, 10**9
"""The limits of the number of runs on each data set."""

_SHARE, _PILOT = 10, 200_000
"""One run in ten is a pilot run, at most 200000."""

_BLOCK = 256
"""Runs executed one by one between two calls of progress."""

_DOUBT = 0.05
"""The failure probability of the bounds on rates in pilot runs, which choose the events."""

_TRIED = 400
"""The number of thresholds tried on pilot runs."""


class Setup(NamedTuple):
    """The setup of an audit.

    Attributes:
        replicas: runs on each data set, including pilot runs.
        seed: of all randomness.
        workers: threads; None: one for each processor.
        confidence: the probability that all reported bounds hold, at least.
    """

    replicas: int = 100_000
    seed: int = 0
    workers: int | None = None
    confidence: float = 0.99

    @property
    def pilot(self) -> int:
        """The number of pilot runs on each data set, for each attack that is tried."""
        return min(_PILOT, max(LEAST // 2, self.replicas // _SHARE))

    @property
    def counted(self) -> int:
        """The number of counted runs on each data set."""
        return self.replicas - self.pilot


def check_setup(setup: Setup) -> None:
    """Raise SpecError for numbers out of range."""
    replicas, confidence, workers, seed = setup.replicas, setup.confidence, setup.workers, setup.seed
    refuse(
        (
            not LEAST <= replicas <= MOST,
            f"replicas is {replicas}; it must be a whole number from {LEAST} to {MOST}", "try 1e5",
        ),
        (
            not 0.5 <= confidence < 1.0, f"confidence is {confidence:g}; it must be a number >= 0.5 and < 1",
            "try 0.99",
        ),
        (
            workers is not None and workers < 1, f"workers is {workers}; it must be a whole number from 1",
            "leave it out for all",
        ),
        (
            not 0 <= seed < 1 << 64, f"seed is {seed}; it must be a whole number from 0 to 2^64 - 1",
            "leave it out",
        ),
    )  # fmt: skip


class Event(NamedTuple):
    """The event that the score is at least the threshold (``upwards``), or below it.

    An attacker who sees it guesses the first data set if ``upwards``, else the second.
    """

    upwards: bool
    threshold: float

    def holds(self, scores: Array) -> NDArray[np.bool_]:
        """Return for each run whether it happens, shape (m,)."""
        return scores >= self.threshold if self.upwards else scores < self.threshold


class Seen(NamedTuple):
    """The counts of an event, and bounds on its probabilities.

    Attributes:
        event: the event.
        true, false: its counts: on the data set that the attacker then guesses, and on the other.
        tpr: a lower bound on its probability on the first of these.
        fpr: an upper bound on its probability on the other.
    """

    event: Event
    true: int
    false: int
    tpr: float
    fpr: float

    def epsilon(self, delta: float) -> float:
        """Return a lower bound on epsilon at this delta, rounded down; 0 where none follows."""
        left = down(self.tpr - delta, 2.0) if self.tpr > delta else 0.0
        return max(0.0, down(math.log(left / self.fpr) - 1e-15, 4.0)) if left > self.fpr else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the report, JSON types only."""
        return {
            "says": "first" if self.event.upwards else "second", "threshold": self.event.threshold,
            "true_positives": self.true, "false_positives": self.false, "tpr_lower": self.tpr, "fpr_upper": self.fpr,
        }  # fmt: skip

    def mu(self) -> float:
        """Return a lower bound on mu of Gaussian privacy, rounded down; 0 where none follows."""
        if not self.tpr > self.fpr or self.fpr >= 1.0:
            return 0.0
        # Q(z) = p: the quantile of an upper tail.
        caught = quantile(min(-5e-324, down(math.log(self.tpr), 4.0)), upwards=True)
        false = quantile(min(-5e-324, up(math.log(self.fpr), 4.0)), upwards=False)
        return max(0.0, down(false - caught, 4.0) - 1e-13)


class Audit(NamedTuple):
    """The result of an audit.

    Attributes:
        pair: the attack.
        setup: of the audit.
        tried: every attack that was tried in pilot runs, and the epsilon (without a delta, the mu) that it promised.
        seen: the events.
        delta: at which epsilon is bounded; None if only mu is.
        epsilon: its lower bound; None without a delta.
        mu: a lower bound on mu, if the run is Gaussian private for some mu.
    """

    pair: Pair
    setup: Setup
    tried: tuple[tuple[Pair, float], ...]
    seen: tuple[Seen, ...]
    delta: float | None
    epsilon: float | None
    mu: float


def audit(
    pairs: Sequence[Pair],
    delta: float | None,
    setup: Setup,
    progress: Progress | None = None,
    there: There | None = None,
) -> Audit:
    """Return lower bounds on epsilon and mu from many runs.

    Args:
        pairs: the attacks; the one that promises most in pilot runs is executed.
        delta: in [0, 1), at which epsilon is bounded; None for mu alone.
        setup: the number of runs, and the confidence.
        progress: called with (steps of runs done, in all).
        there: other machines that compute the runs; the result does not depend on it.

    Raises:
        SpecError: the numbers are out of range, or runs could overflow.
    """
    check_setup(setup)
    for pair in pairs:
        refuse_overflow(pair.plan, pair.first.loss)
    steps = [pair.plan.steps for pair in pairs]
    work = _Work(setup, progress, there, 2 * sum(steps) * setup.pilot + 2 * max(steps) * setup.counted)
    pilots = [_pilot(pair, delta, number, work) for number, pair in enumerate(pairs)]
    best = max(range(len(pairs)), key=lambda number: pilots[number].promise)
    chosen = pilots[best]
    seen = _counted(chosen.pair, chosen.events, best, work)
    tried = tuple((one.pair, one.promise[0]) for one in pilots)
    epsilon = None if delta is None else max(one.epsilon(delta) for one in seen)
    return Audit(chosen.pair, setup, tried, seen, delta, epsilon, max(one.mu() for one in seen))


class _Runs(NamedTuple):
    """Independent runs on a data set, in blocks with their own random streams.

    Attributes:
        pair: the attack.
        first: whether the data set is the first of the pair.
        replicas: the number of runs.
        seed: of all runs.
        events: the events to count; without events, the final weights are kept.
    """

    pair: Pair
    first: bool
    replicas: int
    seed: int
    events: tuple[Event, ...]

    @property
    def problem(self) -> Problem:
        """The data set."""
        return self.pair.first if self.first else self.pair.second

    @property
    def widths(self) -> list[int]:
        """The number of runs in each block."""
        if self.pair.one_by_one:
            return [min(_BLOCK, self.replicas - first) for first in range(0, self.replicas, _BLOCK)]
        return ensemble.widths(self.pair.plan, self.replicas)

    def statistic(self, weights: Array) -> Array:
        """Return the final weights of some runs, or the counts of all events in them."""
        if not self.events:
            return np.array(weights)
        scores = self.pair.scores(weights)
        return np.array([[np.count_nonzero(event.holds(scores)) for event in self.events]], dtype=np.float64)

    def outcomes(self, blocks: range) -> Iterator[Array]:
        """Yield the statistic of some blocks."""
        if self.pair.one_by_one:
            return map(self._one_by_one, blocks)
        some = ensemble.train_some(self.pair.plan, self.problem, self.replicas, self.seed, blocks, self.pair.trace)
        return map(self.statistic, some)

    def _one_by_one(self, block: int) -> Array:
        """Return the statistic of runs that are executed and rounded like a released model."""
        stream = np.random.SeedSequence(self.seed, spawn_key=(block,))
        source, pair = Source(np.random.Generator(np.random.SFC64(stream)), False, "an audit"), self.pair
        with np.errstate(all="ignore"):
            runs = range(self.widths[block])
            ends = [single.train(pair.plan, self.problem, source, rounding=pair.rounding).weights for _ in runs]
        return self.statistic(np.array(ends))


class _Work:
    """The runs of an audit, with a seed for each phase, and the number of finished steps."""

    def __init__(self, setup: Setup, progress: Progress | None, there: There | None, total: int) -> None:
        self.setup, self.progress, self.there, self.total, self.done = setup, progress, there, total, 0

    def run(self, pair: Pair, world: int, replicas: int, phase: tuple[int, int], events: Sequence[Event] = ()) -> Array:
        """Return the outcomes of independent runs on a data set of a pair, with the random streams of a phase.

        Returns:
            The final weights, shape (replicas, d); with events, the count of each event in each block, shape
            (blocks, events).
        """
        words = np.random.SeedSequence(self.setup.seed, spawn_key=(*phase, world)).generate_state(4)
        seed = sum(int(word) << (32 * place) for place, word in enumerate(words))
        runs = _Runs(pair, world == 0, replicas, seed, tuple(events))
        if self.there is not None:
            outcomes = self._remotely(self.there, runs)
        elif pair.one_by_one:
            outcomes = np.concatenate([self._counted(runs, block) for block in range(len(runs.widths))])
        else:
            outcomes = ensemble.train(
                pair.plan, runs.problem, replicas, seed, workers=self.setup.workers,
                statistic=runs.statistic, progress=self._report if self.progress else None, trace=pair.trace,
            )  # fmt: skip
        self.done += pair.plan.steps * replicas
        return outcomes

    def _report(self, done: int, _: int) -> None:
        """Report the finished steps of these runs."""
        if self.progress is not None:
            self.progress(self.done + done, self.total)

    def _counted(self, runs: _Runs, block: int) -> Array:
        [outcome] = runs.outcomes(range(block, block + 1))
        self._report(min((block + 1) * _BLOCK, runs.replicas) * runs.pair.plan.steps, 0)
        return outcome

    def _remotely(self, there: There, runs: _Runs) -> Array:
        """As `run`, on other machines."""
        plan, widths, events, done = runs.pair.plan, runs.widths, len(runs.events), 0
        columns = plan.columns if runs.pair.steps is None else 1
        rows = [Rows((1, events), width) if events else Rows((width, columns), None) for width in widths]

        def add(blocks: int) -> None:
            nonlocal done
            done += blocks
            self._report(runs.replicas * plan.steps * done // len(widths), 0)

        common = runs.pair, runs.first, runs.replicas, str(runs.seed), runs.events
        return run_all(there, run_blocks, common, rows, plan.steps * widths[0] * plan.columns, add)


def run_blocks(document: str) -> str:
    """Return the outcomes of some blocks of an audit as text, on another machine."""

    def outcomes(common: Any, blocks: range) -> list[Array]:
        pair, first, replicas, seed, events = common
        return list(_Runs(pair, first, replicas, int(seed), events).outcomes(blocks))

    return answered(document, outcomes)


class _Pilot(NamedTuple):
    """The events of a pair, and what its pilot runs promise: (epsilon, mu), or (mu, mu) without a delta."""

    pair: Pair
    events: tuple[Event, ...]
    promise: tuple[float, float]


def _pilot(pair: Pair, delta: float | None, number: int, work: _Work) -> _Pilot:
    """Run the pilots of a pair, and choose its events."""
    runs = [work.run(pair, world, work.setup.pilot, (0, number)) for world in (0, 1)]
    if pair.direction is None and pair.attack == Attack.CUSTOM:
        moved = runs[0].mean(axis=0) - runs[1].mean(axis=0)
        length = float(np.linalg.norm(moved))
        pair = pair._replace(direction=moved / length if length > 0.0 else np.eye(len(moved))[0])
    first, second = (pair.scores(weights) for weights in runs)
    return _chosen(pair, first, second, delta, work.setup)


def _chosen(pair: Pair, first: Array, second: Array, delta: float | None, setup: Setup) -> _Pilot:
    """Return the best event for mu, and the best for epsilon in either direction, according to pilot runs."""
    pooled = np.unique(np.concatenate([first, second]))
    evenly = np.linspace(0, len(pooled) - 1, _TRIED).astype(np.int64)
    tails = np.geomspace(1, len(pooled), _TRIED).astype(np.int64) - 1  # closer where events are rare
    thresholds = pooled[np.unique(np.concatenate([evenly, tails, len(pooled) - 1 - tails]))]
    above = [1.0 - np.searchsorted(np.sort(scores), thresholds) / len(scores) for scores in (first, second)]
    best: list[tuple[float, float, Event]] = []
    for upwards in (True, False):
        true, false = above if upwards else (1.0 - above[1], 1.0 - above[0])
        epsilons, mus = _promised(true, false, delta, setup)
        gap = true - false  # decides if no threshold promises anything
        for place in {int(np.argmax(values if values.any() else gap)) for values in (epsilons, mus)}:
            event = Event(upwards, float(thresholds[place]))
            best.append((float(epsilons[place]), float(mus[place]), event))
    events = [max(best, key=lambda values: values[1])[2]]
    if delta is not None:
        events += [max((e for e in best if e[2].upwards is way), key=lambda e: e[:2])[2] for way in (True, False)]
    mu = max(values[1] for values in best)
    return _Pilot(pair, tuple(dict.fromkeys(events)), (mu if delta is None else max(e[0] for e in best), mu))


def _promised(true: Array, false: Array, delta: float | None, setup: Setup) -> tuple[Array, Array]:
    """Return estimates of the final bounds on epsilon and mu, from these rates in pilot runs.

    The rates are first replaced by confidence bounds, since the best of many may be good by chance.
    """
    from scipy.special import ndtri

    alpha = (1.0 - setup.confidence) / 6.0
    likely = _ends(true, false, setup.pilot, _DOUBT)
    tpr, fpr = _ends(*likely, setup.counted, alpha)
    epsilons = np.zeros(len(true))
    if delta is not None:
        epsilons = np.log(np.maximum((tpr - delta) / fpr, 1.0))
    return epsilons, np.maximum(ndtri(tpr) - ndtri(fpr), 0.0)


def _ends(true: Array, false: Array, runs: int, alpha: float) -> tuple[Array, Array]:
    """Return the bounds of Clopper and Pearson for rates in this number of runs, not rounded, within (0, 1)."""
    from scipy.special import betaincinv

    hits, misses = np.maximum(true * runs, 1e-9), np.minimum(false * runs, runs - 1e-9)
    return betaincinv(hits, runs - hits + 1.0, alpha), betaincinv(misses + 1.0, runs - misses, 1.0 - alpha)


def _bounded(event: Event, true: int, false: int, setup: Setup, alpha: float) -> Seen:
    """Return the bounds from counts; each of the two fails with probability at most alpha."""
    tpr = clopper_pearson.lower(true, setup.counted, alpha)
    return Seen(event, true, false, tpr, clopper_pearson.upper(min(false, setup.counted), setup.counted, alpha))


def _counted(pair: Pair, events: Sequence[Event], number: int, work: _Work) -> tuple[Seen, ...]:
    """Return the counts of the events in fresh runs."""
    setup = work.setup
    first, second = (
        work.run(pair, world, setup.counted, (1, number), events).sum(axis=0).astype(np.int64).tolist()
        for world in (0, 1)
    )
    alpha = down(1.0 - setup.confidence, 4.0) / (2 * len(events))
    return tuple(
        _bounded(event, one if event.upwards else other, other if event.upwards else one, setup, alpha)
        for event, one, other in zip(events, first, second, strict=True)
    )


def to_json(found: Audit, epsilon: float | None, mu: float | None) -> dict[str, Any]:
    """Return the report, JSON types only; ``epsilon`` and ``mu`` are the guaranteed ones."""
    setup, pair = found.setup, found.pair
    return {
        "attack": pair.attack, "others": pair.others, "looks_at": pair.looks_at, "as_released": pair.one_by_one,
        "exceeded": exceeded(found, epsilon, mu),
        "confidence": setup.confidence, "delta": found.delta, "epsilon_lower": found.epsilon, "epsilon": epsilon,
        "mu_lower": found.mu, "mu": mu, "replicas": setup.replicas, "pilot": setup.pilot, "seed": setup.seed,
        "events": [one.to_json() for one in found.seen],
        "tried": [
            {"attack": tried.attack, "others": tried.others, "looks_at": tried.looks_at, "promised": value}
            for tried, value in found.tried
        ],
    }  # fmt: skip


def exceeded(found: Audit, epsilon: float | None, mu: float | None) -> bool:
    """Return whether the runs contradict a guarantee of this epsilon or mu."""
    above = found.epsilon is not None and epsilon is not None and found.epsilon > epsilon
    return above or (mu is not None and found.mu > mu)
