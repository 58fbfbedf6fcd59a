"""Lower bounds on epsilon and mu from scores of canaries that somebody else computed.

Independent runs, with the canary and without: the threshold is the j-th largest score of one side, whose probability
on that side is below a quantile of a beta law, and given it the other side is binomial (Clopper and Pearson). One run,
each canary in by its own fair coin: right guesses are bounded by `dpcalc.training.audit.one_run`. How many bounds are
looked at is fixed by the number of scores alone, and they hold together with the confidence (docs/method.md).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files import lines
from dpcalc.files.reading import opened, shown_path
from dpcalc.model.quantities import Adjacency
from dpcalc.notions import gaussian
from dpcalc.numerics import clopper_pearson
from dpcalc.numerics.floats import down, up
from dpcalc.training.audit import one_run
from dpcalc.training.audit.estimate import Event, Seen, Setup
from dpcalc.training.audit.one_run import Cuts

Array = NDArray[np.float64]

_BYTES = 1 << 28  # of a file: some millions of scores
_MOST = 5_000_000  # scores
_CORNERS = 60  # of the curve of the scores themselves
_MOST_MU = 20.0  # no mu is looked at beyond
_EPSILONS = tuple(0.1 * 1.4**k for k in range(14))  # at which a Gaussian curve is cut; up to 8
_HALVINGS = 25  # of the interval of mu: to some 1e-6
_SURE = 0.1  # of alpha: the walk takes m delta off alpha, and is used where that is less
_NUMBERS = 24  # of guesses that the walk looks at
IN, OUT = ("1", "in", "true", "member", "yes"), ("0", "out", "false", "non-member", "no")
"""What a cell may say of a canary."""


class Scores(NamedTuple):
    """Scores of canaries, larger where a canary seems to be in.

    Attributes:
        name: of their file.
        inside, outside: of canaries that were in and out, shape (n,) each.
        one_run: whether all are of one run, each canary in by its own fair coin.
        threshold: one that was fixed before the scores were looked at; None: those at ranks 1, 2, 4, ...
        guesses: of one run, how many coins are guessed, fixed beforehand; None: all numbers, or a tenth.
        confidence: with which all bounds hold together.
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
        """Return what the scores prove.

        Args:
            delta: at which epsilon is bounded; None where it is not.
            cuts: points (epsilon, delta) of the guarantee.
        """
        alpha = down(1.0 - self.confidence, 4.0)
        return self._of_one_run(delta, cuts, alpha) if self.one_run else self._of_many(delta, cuts, alpha)

    def _of_many(self, delta: float | None, cuts: Cuts, alpha: float) -> Proved:
        seen = self._at_threshold(alpha) if self.threshold is not None else self._at_ranks(alpha)
        epsilon = None if delta is None else max(one.epsilon(delta) for one in seen)
        beyond = max((_excess(one, cuts) for one in seen), default=0.0) if cuts else 0.0
        method = "threshold" if self.threshold is not None else "order statistics"
        return Proved(method, epsilon, max(one.mu() for one in seen), beyond > 0.0, tuple(seen), ())

    def _at_ranks(self, alpha: float) -> list[Seen]:
        """Return what is seen at thresholds that are scores of the side for which the event is rare."""
        above = [
            seen._replace(event=Event(True, math.nextafter(at, math.inf)))
            for at, seen in _ranked(self.inside, self.outside, alpha / 2.0)
        ]
        below = [
            seen._replace(event=Event(False, -at)) for at, seen in _ranked(-self.outside, -self.inside, alpha / 2.0)
        ]
        return [*above, *below]

    def _at_threshold(self, alpha: float) -> list[Seen]:
        assert self.threshold is not None
        found = []
        for event in (Event(True, self.threshold), Event(False, self.threshold)):
            first, second = (self.inside, self.outside) if event.upwards else (self.outside, self.inside)
            hits, false = (int(event.holds(scores).sum()) for scores in (first, second))
            found.append(_seen(event, hits, len(first), false, false, len(second), alpha / 4.0))
        return found

    def _of_one_run(self, delta: float | None, cuts: Cuts, alpha: float) -> Proved:
        """Return what guesses of the coins prove: epsilon with one half of alpha, mu and the curve with the other."""
        right = self._right_guesses()
        canaries, at, half = len(right), delta or 0.0, alpha / 2.0
        number = min(self.guesses or max(1, canaries // 10), canaries)
        walked = self.guesses is None and canaries * at <= _SURE * half
        numbers = _numbers(canaries) if walked else [number]
        correct = [int(right[:count].sum()) for count in numbers]
        alone = int(right[:number].sum())
        epsilon = None
        if delta is not None and walked:
            epsilon = one_run.walk_epsilon_lower(correct, numbers, canaries, at, half)
        elif delta is not None:
            epsilon = one_run.epsilon_lower(alone, number, canaries, at, half)
        mu = one_run.largest(
            lambda mu: one_run.curve_p_value(alone, number, canaries, _gaussian(mu), joint=False), half, _MOST_MU,
            _HALVINGS,
        )  # fmt: skip
        refuted = bool(cuts) and one_run.curve_p_value(alone, number, canaries, cuts) <= half
        method = f"one run, {'any number of' if walked else number} guesses"
        return Proved(method, epsilon, mu, refuted, (), tuple(zip(numbers, correct, strict=True)))

    def _right_guesses(self) -> NDArray[np.bool_]:
        """Return which guesses are right, the most confident first; no choice looks at who is in."""
        scores = np.concatenate((self.inside, self.outside))
        coins = np.arange(len(scores)) < len(self.inside)
        mixed = np.random.default_rng(self.seed).permutation(len(scores))  # the file may list all of one side first
        scores, coins = scores[mixed], coins[mixed]
        away = scores - np.median(scores)
        order = np.argsort(-np.abs(away), kind="stable")
        right: NDArray[np.bool_] = ((away > 0.0) == coins)[order]
        return right

    def roc(self) -> list[tuple[float, float]]:
        """Return (false, true) positives of thresholds on the scores themselves, without confidence."""
        pooled = np.unique(np.concatenate((self.inside, self.outside)))
        places = np.unique(np.geomspace(1, len(pooled), _CORNERS).astype(np.int64))
        rates = [[float(np.mean(side >= pooled[-k])) for side in (self.outside, self.inside)] for k in places]
        return [(false, true) for false, true in rates]


class Proved(NamedTuple):
    """What scores prove.

    Attributes:
        method: how.
        epsilon: at least, at the delta asked; None without one.
        mu: at least, if the run is Gaussian private for some mu.
        refuted: whether the guarantee is contradicted at one of its other points.
        seen: events, of independent runs.
        guessed: (guesses, right ones), of one run.
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
        """Return what is reported, JSON types only; beside it the epsilon and the mu that are guaranteed."""
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


def _ranked(first: Array, second: Array, alpha: float) -> list[tuple[float, Seen]]:
    """Return the thresholds at ranks 1, 2, 4, ... of the second side, and what is seen strictly above them."""
    falling = np.sort(second)[::-1]
    ranks = [2**k for k in range(len(falling).bit_length())]
    each = alpha / (2.0 * len(ranks))
    found = []
    for rank in ranks:
        at = float(falling[rank - 1])
        hits, false = int((first > at).sum()), int((second > at).sum())
        found.append((at, _seen(Event(True, at), hits, len(first), false, rank - 1, len(second), each)))
    return found


def _seen(event: Event, hits: int, of: int, false: int, most: int, others: int, alpha: float) -> Seen:
    """Return what counts say, where each of the two bounds fails with probability at most alpha."""
    tpr = clopper_pearson.sharp_lower(hits, of, alpha)
    return Seen(event, hits, false, tpr, clopper_pearson.sharp_upper(most, others, alpha))


def _excess(seen: Seen, cuts: Cuts) -> float:
    """Return by how much an event is more probable than the guarantee allows, rounded down; 0 where it is not."""
    return max(max(0.0, seen.tpr - up(math.exp(e) * seen.fpr + delta, 8.0)) for e, delta in cuts)


def _gaussian(mu: float) -> Cuts:
    """Return points of the profile of a Gaussian mechanism."""
    if mu == 0.0:
        return [(0.0, 0.0)]
    return [(e, math.exp(gaussian.log_delta(mu=mu, epsilon=e))) for e in _EPSILONS]


def _numbers(canaries: int) -> list[int]:
    """Return the numbers of guesses that are looked at, up to half the canaries."""
    most = min(max(1, canaries // 2), one_run.MOST_IN_WALK)
    return [int(number) for number in np.unique(np.geomspace(min(10, most), most, _NUMBERS).astype(np.int64))]


def refuse_one_way(adjacency: Adjacency | None) -> None:
    """Refuse a guarantee in one direction: the scores are looked at in both.

    Raises:
        SpecError: it is one.
    """
    if adjacency in (Adjacency.ADD, Adjacency.REMOVE):
        raise SpecError(
            f"scores are looked at in both directions, and the guarantee is for adjacency {adjacency}",
            "use --adjacency add-remove, or zero-out",
        )


def scores_of(
    path: str | None, setup: Setup, *, one_run: bool, threshold: float | None, guesses: int | None
) -> Scores | None:
    """Return the scores of a file with what is said of them; None where there is none.

    Raises:
        SpecError: they cannot be read, or what is said of them contradicts itself.
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
        SpecError: it is no such file, a score is no finite number, or a side has none.
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
    for number, row in enumerate(rows, start=2):
        if len(row) > len(names):
            raise SpecError(
                f"{shown}:{number}: {len(row)} cells under {len(names)} columns", "write 3.1 with a point, not a comma"
            )
        cells = {name: cell.strip() for name, cell in zip(names, row, strict=False)}
        if not any(cells.values()):
            continue
        if "score" in names:
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
