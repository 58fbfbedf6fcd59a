"""Lower bounds on epsilon and mu from scores of canaries, which come from elsewhere.

From independent runs, with the canary and without: the threshold is the j-th largest score of one side. That side's
rate beyond it has a beta distribution, and given the rate the hits of the other side are binomial. From one run, with
each canary included by its own fair coin: `dpcalc.training.audit.one_run` bounds the number of right guesses. The
number of bounds depends on the number of scores alone, and all hold together with the confidence (docs/method.md).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files import lines
from dpcalc.files.place import shown_path
from dpcalc.files.reading import opened
from dpcalc.model.quantities import Adjacency
from dpcalc.notions import gaussian
from dpcalc.numerics import clopper_pearson
from dpcalc.numerics.floats import down, up
from dpcalc.training.audit import one_run
from dpcalc.training.audit.estimate import Event, Seen, Setup
from dpcalc.training.audit.one_run import Cuts

Array = NDArray[np.float64]
Curve = Callable[[Array], Array]
"""From the probability of an event on one side to the largest on the other."""

_BYTES = 1 << 28  # of a file: some millions of scores
_MOST_CUT = 700.0  # e^epsilon is a double up to here; no scores contradict a larger guarantee
_MOST = 5_000_000  # scores
_CORNERS = 60  # of the empirical ROC curve
_MOST_MU = 20.0  # the largest mu that is tried
_CUTS = 25  # points of a Gaussian curve; with 60 the p-value falls by about 0.003
_PROGRAMMES = 8  # halvings of the interval of mu by linear programmes, to about a thousandth of mu
_OF_EPSILON = 0.9  # of alpha: for epsilon from one run; the rest is for mu and the curve
_HALVINGS = 25  # of the interval of mu, to about 1e-6
_SURE = 0.5  # of alpha: the walk costs less than m delta of alpha, and is used if that is at most this share
_SHOWN = 0.25  # of alpha: for the bounds on the rates of each event, which are plotted
_CELLS, _DEEPEST = 641, 40.0  # of the law of a rate: its tail falls by 2^(-1/16) from cell to cell, down to 2^-40
_ERROR = 1e-9  # far above the error of an incomplete beta function
_NUMBERS = 24  # the numbers of guesses in the walk
IN, OUT = ("1", "in", "true", "member", "yes"), ("0", "out", "false", "non-member", "no")
"""The accepted words for canaries that were in and out."""


class Scores(NamedTuple):
    """Scores of canaries; a larger score suggests that the canary was in.

    Attributes:
        name: of their file.
        inside, outside: of canaries that were in and out, shape (n,) each.
        one_run: whether all scores come from one run, with each canary included by its own fair coin.
        threshold: fixed before the scores were looked at; None: the scores at ranks 1, 2, 4, ...
        guesses: for one run, the number of guessed coins, fixed beforehand; None: several numbers, or a tenth.
        confidence: the probability that all bounds hold.
        seed: of the order of equal scores.
    """

    name: str
    inside: Array
    outside: Array
    one_run: bool = False
    threshold: float | None = None
    guesses: int | None = None
    confidence: float = 0.99
    seed: int = 0

    def prove(self, delta: float | None, cuts: Cuts) -> Proved:
        """Return the bounds that the scores prove.

        Args:
            delta: at which epsilon is bounded; None for no bound on epsilon.
            cuts: points (epsilon, delta) of the guarantee.
        """
        alpha = down(1.0 - self.confidence, 4.0)
        cuts = [(epsilon, at) for epsilon, at in cuts if epsilon <= _MOST_CUT]
        return self._of_one_run(delta, cuts, alpha) if self.one_run else self._of_many(delta, cuts, alpha)

    def _of_many(self, delta: float | None, cuts: Cuts, alpha: float) -> Proved:
        if self.threshold is None:
            return self._at_ranks(delta, cuts, alpha)
        seen = self._at_threshold(alpha)
        epsilon = None if delta is None else max(one.epsilon(delta) for one in seen)
        beyond = max((_excess(one, cuts) for one in seen), default=0.0) if cuts else 0.0
        return Proved("threshold", epsilon, max(one.mu() for one in seen), beyond > 0.0, tuple(seen), ())

    def _at_ranks(self, delta: float | None, cuts: Cuts, alpha: float) -> Proved:
        """Return the bounds at thresholds that are scores of the side on which the event is rare."""
        inside, outside = self._in_order()
        ways = (True, inside, outside, self.outside), (False, -outside, -inside, self.inside)
        looks = [look for upwards, *sides in ways for look in _looks(upwards, *sides)]
        each, shown = (1.0 - _SHOWN) * alpha / len(looks), _SHOWN * alpha / (2.0 * len(looks))
        epsilon = None if delta is None else _best(looks, lambda e: _below([(e, delta)]), each, one_run.LARGEST)
        mu = _best(looks, _of_gaussian, each, _MOST_MU)
        refuted = bool(cuts) and any(look.p_value(_below(cuts)) <= each for look in looks)
        return Proved("order statistics", epsilon, mu, refuted, tuple(look.seen(shown) for look in looks), ())

    def _in_order(self) -> tuple[Array, Array]:
        """Return the ranks of both sides' scores among all scores, with ties in random order."""
        scores = np.concatenate((self.inside, self.outside))
        coins = np.random.default_rng(self.seed).random(len(scores))
        places = np.empty(len(scores))
        places[np.lexsort((coins, scores))] = np.arange(len(scores))
        return places[: len(self.inside)], places[len(self.inside) :]

    def _at_threshold(self, alpha: float) -> list[Seen]:
        assert self.threshold is not None
        found = []
        for event in (Event(True, self.threshold), Event(False, self.threshold)):
            first, second = (self.inside, self.outside) if event.upwards else (self.outside, self.inside)
            hits, false = (int(event.holds(scores).sum()) for scores in (first, second))
            found.append(_seen(event, hits, len(first), false, false, len(second), alpha / 4.0))
        return found

    def _of_one_run(self, delta: float | None, cuts: Cuts, alpha: float) -> Proved:
        """Return the bounds from guesses of the coins: epsilon with most of alpha, mu and the curve with the rest."""
        right = self._right_guesses()
        canaries, at = len(right), delta or 0.0
        of_epsilon, rest = (0.0, alpha) if delta is None else (_OF_EPSILON * alpha, (1.0 - _OF_EPSILON) * alpha)
        number = min(self.guesses or max(1, canaries // 10), canaries)
        walked = self.guesses is None and canaries * at <= _SURE * of_epsilon
        numbers = _numbers(canaries) if walked else [number]
        correct = [int(right[:count].sum()) for count in numbers]
        alone = int(right[:number].sum())
        epsilon = None
        if delta is not None and walked:
            epsilon = one_run.walk_epsilon_lower(correct, numbers, canaries, at, of_epsilon)
        elif delta is not None:
            epsilon = one_run.epsilon_lower(alone, number, canaries, at, of_epsilon)
        refuted = bool(cuts) and one_run.curve_p_value(alone, number, canaries, cuts) <= rest
        method = f"one run, {'any number of' if walked else number} guesses"
        mu = _mu_of_one_run(alone, number, canaries, rest)
        return Proved(method, epsilon, mu, refuted, (), tuple(zip(numbers, correct, strict=True)))

    def _right_guesses(self) -> NDArray[np.bool_]:
        """Return which guesses are right, the most confident first; the guesses do not depend on the coins."""
        scores = np.concatenate((self.inside, self.outside))
        coins = np.arange(len(scores)) < len(self.inside)
        mixed = np.random.default_rng(self.seed).permutation(len(scores))  # the file may list all of one side first
        scores, coins = scores[mixed], coins[mixed]
        away = scores - np.median(scores)
        order = np.argsort(-np.abs(away), kind="stable")
        right: NDArray[np.bool_] = ((away > 0.0) == coins)[order]
        return right

    def roc(self) -> list[tuple[float, float]]:
        """Return the empirical (false, true) positive rates of thresholds, without confidence bounds."""
        pooled = np.unique(np.concatenate((self.inside, self.outside)))
        places = np.unique(np.geomspace(1, len(pooled), _CORNERS).astype(np.int64))
        rates = [[float(np.mean(side >= pooled[-k])) for side in (self.outside, self.inside)] for k in places]
        return [(false, true) for false, true in rates]


class Proved(NamedTuple):
    """The bounds that scores prove.

    Attributes:
        method: in words.
        epsilon: a lower bound at the given delta; None without a delta.
        mu: a lower bound, if the run is Gaussian private for some mu.
        refuted: whether the scores contradict the guarantee at one of its points.
        seen: the events, for independent runs.
        guessed: (guesses, right ones), for one run.
    """

    method: str
    epsilon: float | None
    mu: float
    refuted: bool
    seen: tuple[Seen, ...]
    guessed: tuple[tuple[int, int], ...]

    def exceeds(self, epsilon: float | None, mu: float | None) -> bool:
        """Return whether the scores contradict a guarantee."""
        above = self.epsilon is not None and epsilon is not None and self.epsilon > epsilon
        return above or self.refuted or (mu is not None and self.mu > mu)

    def to_json(self, scores: Scores, delta: float | None, epsilon: float | None, mu: float | None) -> dict[str, Any]:
        """Return the report, JSON types only; ``epsilon`` and ``mu`` are the guaranteed ones."""
        sides = len(scores.inside), len(scores.outside)
        return {
            "attack": "scores", "others": scores.name, "looks_at": self.method, "as_released": False,
            "exceeded": self.exceeds(epsilon, mu), "confidence": scores.confidence, "delta": delta,
            "epsilon_lower": self.epsilon, "epsilon": epsilon, "mu_lower": self.mu, "mu": mu,
            "replicas": max(sides), "pilot": 0, "seed": scores.seed, "events": [one.to_json() for one in self.seen],
            "tried": [],
            "scores": {
                "in": sides[0], "out": sides[1], "one_run": scores.one_run, "refuted_elsewhere": self.refuted,
                "guesses": [{"guesses": r, "correct": v} for r, v in self.guessed],
                "roc": [{"fpr": false, "tpr": true} for false, true in scores.roc()],
            },
        }  # fmt: skip


class Look(NamedTuple):
    """A test: the scores of one side beyond the j-th score of the other.

    Attributes:
        event: the event.
        hits, of: the numbers of scores of the first side: beyond the threshold, and in all.
        rank, others: j, and the number of scores of the other side, which the threshold belongs to.
        rates: a grid for the rate of the event on the other side, whose law is Beta(j, others - j + 1).
        masses: of the cells between grid points; the last cell is beyond the grid.
    """

    event: Event
    hits: int
    of: int
    rank: int
    others: int
    rates: Array
    masses: Array

    def p_value(self, curve: Curve) -> float:
        """Return a bound on the probability of this many hits or more, for all runs below a curve.

        Given its rate on the other side, the event has at most the probability of the curve on the first, where hits
        are binomial. Every cell counts with its largest rate.
        """
        from scipy.special import betainc

        if self.hits == 0:
            return 1.0
        chances = np.minimum(curve(self.rates) * (1.0 + _ERROR), 1.0)
        tails = betainc(float(self.hits), float(self.of - self.hits + 1), chances)
        return float(self.masses[:-1] @ tails + self.masses[-1]) * (1.0 + _ERROR) + _ERROR

    def seen(self, alpha: float) -> Seen:
        """Return bounds on the two probabilities; each fails with probability at most alpha."""
        return _seen(self.event, self.hits, self.of, self.rank - 1, self.rank - 1, self.others, alpha)


def _looks(upwards: bool, first: Array, second: Array, scores: Array) -> list[Look]:
    """Return the looks at ranks 1, 2, 4, ... of the second side; both sides are given as ranks among all scores."""
    from scipy.special import betainc, betaincinv

    order = np.argsort(-second)
    looks = []
    for rank in [2**k for k in range(len(second).bit_length())]:
        place = order[rank - 1]
        law = float(rank), float(len(second) - rank + 1)
        rates = betaincinv(*law, 1.0 - 2.0 ** -np.linspace(0.0, _DEEPEST, _CELLS)[1:])
        masses = np.diff(betainc(*law, rates), prepend=0.0, append=1.0)
        at = float(scores[place])
        event = Event(upwards, math.nextafter(at, math.inf) if upwards else at)
        looks.append(Look(event, int((first > second[place]).sum()), len(first), rank, len(second), rates, masses))
    return looks


def _best(looks: Sequence[Look], curve_of: Callable[[float], Curve], alpha: float, most: float) -> float:
    """Return the largest epsilon, or mu, that a look refutes at level alpha, rounded down; 0 where none does."""
    best = 0.0
    for look in looks:
        if look.p_value(curve_of(best)) <= alpha:
            best = one_run.largest(functools.partial(_p_at, look, curve_of), alpha, most, _HALVINGS)
    return best


def _p_at(look: Look, curve_of: Callable[[float], Curve], value: float) -> float:
    return look.p_value(curve_of(value))


def _below(cuts: Cuts) -> Curve:
    """Return the curve of some points of a profile: the least of e^epsilon q + delta."""
    return lambda rates: np.min([math.exp(e) * rates + delta for e, delta in cuts], axis=0)


def _of_gaussian(mu: float) -> Curve:
    """Return the curve of Gaussian privacy, Phi(Phi^-1(q) + mu)."""
    from scipy.special import ndtr, ndtri

    return lambda rates: ndtr(ndtri(rates) + mu)


def _seen(event: Event, hits: int, of: int, false: int, most: int, others: int, alpha: float) -> Seen:
    """Return the bounds from counts; each of the two fails with probability at most alpha."""
    tpr = clopper_pearson.sharp_lower(hits, of, alpha)
    return Seen(event, hits, false, tpr, clopper_pearson.sharp_upper(most, others, alpha))


def _excess(seen: Seen, cuts: Cuts) -> float:
    """Return by how much an event's probability exceeds the guarantee's bound, rounded down; 0 where it does not."""
    return max(max(0.0, seen.tpr - up(math.exp(e) * seen.fpr + delta, 8.0)) for e, delta in cuts)


def _mu_of_one_run(correct: int, guesses: int, canaries: int, alpha: float) -> float:
    """Return a lower bound on mu: by single points of the profile, then improved by all of them at once."""

    def p(mu: float, *, joint: bool = False) -> float:
        return one_run.curve_p_value(correct, guesses, canaries, _gaussian(mu), joint=joint)

    alone = one_run.largest(p, alpha, _MOST_MU, _HALVINGS)
    if guesses > one_run.MOST_IN_PROGRAMME:
        return alone
    return one_run.largest(functools.partial(p, joint=True), alpha, 1.25 * alone + 0.25, _PROGRAMMES, alone)


def _gaussian(mu: float) -> Cuts:
    """Return points of the profile of a Gaussian mechanism."""
    if mu == 0.0:
        return [(0.0, 0.0)]
    farthest = min(one_run.LARGEST, mu * (0.5 * mu + 4.0) + 4.0)  # 8.5 at mu = 1
    return [(e, math.exp(gaussian.log_delta(mu=mu, epsilon=e))) for e in np.linspace(0.0, farthest, _CUTS).tolist()]


def _numbers(canaries: int) -> list[int]:
    """Return the numbers of guesses in the walk, up to half the canaries."""
    most = min(max(1, canaries // 2), one_run.MOST_IN_WALK)
    return [int(number) for number in np.unique(np.geomspace(min(10, most), most, _NUMBERS).astype(np.int64))]


def refuse_one_way(adjacency: Adjacency | None) -> None:
    """Raise SpecError for a guarantee in one direction, since scores are used in both."""
    if adjacency in (Adjacency.ADD, Adjacency.REMOVE):
        raise SpecError(
            f"scores are looked at in both directions, and the guarantee is for adjacency {adjacency}",
            "use --adjacency add-remove, or zero-out",
        )


def scores_of(
    path: str | None, setup: Setup, *, one_run: bool, threshold: float | None, guesses: int | None
) -> Scores | None:
    """Return the scores of a file with their options; None without a file.

    Raises:
        SpecError: they cannot be read, or the options contradict each other.
    """
    if path is None:
        if one_run or threshold is not None or guesses is not None:
            raise SpecError("--one-run, --threshold and --guesses are of scores", "give --scores FILE")
        return None
    if guesses is not None and (not one_run or guesses < 1):
        raise SpecError("--guesses is a number of coins of one run, 1 or more", "give --one-run, or leave it out")
    if threshold is not None and one_run:
        raise SpecError("coins of one run are guessed, and a threshold is given", "leave out --threshold")
    inside, outside = read_scores(path)
    return Scores(
        shown_path(path), inside, outside, one_run, threshold, guesses, confidence=setup.confidence, seed=setup.seed
    )


def read_scores(path: str) -> tuple[Array, Array]:
    """Return the scores of canaries that were in and out.

    Args:
        path: of a CSV file with columns ``in`` (1 or 0) and ``score``, or with a column ``in`` and a column ``out`` of
            scores each, the shorter one ending in empty cells.

    Raises:
        SpecError: the file has another form, a score is not finite, or a side has no scores.
    """
    shown = shown_path(path)
    with opened(path) as stream:
        names = [name.lower() for name in lines.read_header(shown, stream)]
        rows = lines.read_rows(stream, _BYTES)
    if not rows or len(rows) > _MOST:
        raise SpecError(f"{shown} holds no scores, or too many", f"give a CSV file of at most {_MOST} rows")
    if "in" not in names or not {"score", "out"} & set(names):
        raise SpecError(
            f"{shown} has the columns {', '.join(names)[:200]}", "name them in,score (in: 1 or 0) or in,out (scores)"
        )
    sides: tuple[list[float], list[float]] = ([], [])
    scored = "score" in names
    for number, row in enumerate(rows, start=2):
        if len(row) > len(names):
            raise SpecError(
                f"{shown}:{number}: {len(row)} cells under {len(names)} columns", "write 3.1 with a point, not a comma"
            )
        cells = {name: cell.strip() for name, cell in zip(names, row, strict=False)}
        if not any(cells.values()):
            continue
        if scored:
            sides[_side(shown, number, cells.get("in", ""))].append(_score(shown, number, cells.get("score", "")))
            continue
        for side, name in zip(sides, ("in", "out"), strict=True):
            if cells.get(name):
                side.append(_score(shown, number, cells[name]))
    if not all(sides):
        raise SpecError(f"{shown}: all canaries are on one side", "scores of canaries in and out are compared")
    return np.array(sides[0]), np.array(sides[1])


def _side(shown: str, number: int, cell: str) -> int:
    word = cell.lower().removesuffix(".0")
    if word not in (*IN, *OUT):
        raise SpecError(f"{shown}:{number}: column in says {cell[:20]!r}", "write 1 for in and 0 for out")
    return 0 if word in IN else 1


def _score(shown: str, number: int, cell: str) -> float:
    try:
        score = float(cell)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise SpecError(f"{shown}:{number}: {cell[:20]!r} is no finite score", "leave such canaries out on both sides")
    return score
