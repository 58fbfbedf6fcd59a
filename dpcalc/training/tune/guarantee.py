"""The guarantee of the best of a random number of runs, each with a random candidate, scores included.

Every candidate gets noise for the same smaller budget, that of one run. A run is then a mixture of the candidates, and
its profile, Renyi curve or mu is at most the largest of theirs. `dpcalc.notions.tuning` turns this into the guarantee
of the best of K runs; the budget of one run is the largest with which that keeps the given budget. Records held out for
scoring have their own guarantee, a pure epsilon. The release has the worse of both, since the set of held-out records
does not depend on the records and is the same in all runs.

Released numbers are rounded (`dpcalc.training.run.rounding`). One run as executed differs from the run on real numbers
with probability at most p, so the release does with probability at most p E K. Or the cost is added to the profile of
one run before the transformation. It is enough if one of the two keeps the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.engine.ledgers.entries import Chosen, chosen_of
from dpcalc.engine.ledgers.total import rows_of, totals_of
from dpcalc.engine.solving.search import Direction, extreme
from dpcalc.errors import Infeasible, NotApplicable
from dpcalc.model.numbers import parse_delta
from dpcalc.model.quantities import Adjacency, Kind
from dpcalc.model.question import Entry, Ledger, Question
from dpcalc.notions import gaussian
from dpcalc.notions.curves import Curve
from dpcalc.notions.guarantee import Box, Gdp, Guarantee, Profile, Rdp
from dpcalc.notions.tuning import Tuning, growth, least_epsilon, tuned, tuned_epsilon, tuned_log_delta
from dpcalc.numerics.floats import UNIT, down, log_add_exp, up
from dpcalc.report import Result
from dpcalc.theorems.conditions import ROUNDED
from dpcalc.theorems.record import lookup
from dpcalc.training.rule.candidates import Tune
from dpcalc.training.rule.guarantee import Guaranteed
from dpcalc.training.run.rounding import Rounding, assumption

_SET_ASIDE = (
    (0.0, 2.0**-14), (0.0, 2.0**-8), (1e-8, 2.0**-14), (1e-6, 2.0**-14), (1e-4, 2.0**-12), (1e-3, 2.0**-8),
    (1e-2, 2.0**-4), (1e-2, 0.5),
)  # fmt: skip
"""Shares of epsilon and of delta that are reserved for rounding; the first pair that is enough is used."""

_SMALLEST = -700.0  # delta is not computed below this ln delta
_TRIES = 10
_FINE = 1 << 26  # width of the final bracket, in representable numbers: relatively 1e-8
_TRAINED_ON, _HELD_OUT = "trained on", "held out"

Make = Callable[[Question], Guaranteed]
"""From the budget of one run to the guaranteed run of a candidate."""


class TunedGuarantee(NamedTuple):
    """The guarantee of the release, and the runs.

    Attributes:
        row: the guarantee.
        made: the guaranteed run of every candidate.
        ledger: the ledger with this total; None if the guarantee of one run is not a mu.
        question: of the ledger: delta without the part that is reserved for rounding.
        score_epsilon: of the score of one run, for the records held out; None without such records.
    """

    row: Result
    made: tuple[Guaranteed, ...]
    ledger: Ledger | None
    question: Question
    score_epsilon: float | None


def tuned_guarantee(makes: Sequence[Make], tune: Tune, question: Question) -> TunedGuarantee:
    """Return the guarantee of the best of K runs, within the budget.

    Args:
        makes: one for each candidate.
        tune: the law of K, and whether runs are scored on held-out records, which the guarantee then covers, too.
        question: the budget, epsilon and delta.

    Raises:
        NotApplicable: the guarantee of a candidate has no curve, or there is no room for rounding.
        SpecError, Infeasible: see `dpcalc.training.rule.guarantee.guarantee`.
    """
    for spare, share in _SET_ASIDE:
        made = _with_spare(makes, tune, question, spare, share)
        if made is not None:
            return made
    raise NotApplicable(
        "rounding in floating point costs the best of so many runs more than the budget",
        "give a larger delta, a smaller epsilon, or take fewer steps or runs", parameters=("delta",),
    )  # fmt: skip


def _with_spare(
    makes: Sequence[Make], tune: Tune, question: Question, spare: float, share: float
) -> TunedGuarantee | None:
    """Return the guarantee with these shares of the budget reserved for rounding; None if they are too small."""
    assert question.epsilon is not None
    log_delta = question.safe_log_delta + math.log1p(-share)
    log_delta -= 8.0 * UNIT * (1.0 + abs(log_delta))
    less = _asked_at(log_delta)
    added, tuning = spare * question.epsilon, tune.accounted
    target = down(question.safe_epsilon - added, 4.0)
    score = None if tune.held_out is None else _score_epsilon(tuning, target)
    budget = gaussian.epsilon(mu=_mu_of_one(tuning, target, less), log_delta_target=log_delta)
    for _ in range(_TRIES):
        made = tuple(make(Question(budget, less.delta, less.log_delta)) for make in makes)
        part = envelope([part_of(one) for one in made])
        ledger, known = _accounted(part, tuning, score, _adjacency(made), less)
        row = rows_of(ledger, totals_of(ledger, known, False), less, False)[0][0]
        if row.value <= target:
            break
        budget *= 0.99 * target / row.value
    else:
        raise Infeasible("no noise was found with which the best of so many runs keeps the budget", reached=row.value)
    stated = up(row.value + added, 2.0) if added else row.value
    rounding = costliest([one.rounding for one in made])
    if not _room(part, tuning, rounding, stated, log_delta, question.safe_log_delta):
        return None
    rounded = {
        "of": rounding.what, "probability": min(1.0, up(tuning.mean * rounding.miss, 4.0)), "epsilon": added,
        "delta": max(0.0, math.exp(question.safe_log_delta) - math.exp(log_delta)),
    }  # fmt: skip
    row = row._replace(
        kind=Kind.UPPER, value=stated, epsilon=stated, delta=question.delta, log_delta=question.log_delta, mu=None,
        assumes=_assumed(made, row.assumes),
        details={**(row.details or {}), "floating_point": rounded},
    )  # fmt: skip
    written = ledger._replace(entries=tuple(entry._replace(tuning=tune.tuning) for entry in ledger.entries))
    return TunedGuarantee(row, made, written if part.mu is not None else None, less, score)


def _asked_at(log_delta: float) -> Question:
    """Return the question at this delta, in the decimal form that a card stores and reads back."""
    if log_delta < _SMALLEST:
        return Question(delta=0.0, log_delta=log_delta)
    delta, log_delta = parse_delta(repr(math.exp(log_delta)))
    return Question(delta=delta, log_delta=log_delta)


# --- one run ----------------------------------------------------------------------------------------------------------


def part_of(made: Guaranteed) -> Guarantee:
    """Return the guarantee of one run of a candidate on real numbers, as a curve.

    Raises:
        NotApplicable: the theorem gives epsilon at one delta alone.
    """
    best = made.case.best
    assert best is not None
    part = guarantee_of(lookup(best.bound), made.run)
    if not part.has_curve:
        raise NotApplicable(
            f"{best.bound} gives epsilon at one delta, and what the best of several runs costs follows from a curve",
            "leave out --tune, or describe a run with another bound",
        )
    stated = ((best.details or {}).get("floating_point") or {}).get("mu")
    return part if part.mu is None else Gdp(max(part.mu, stated or 0.0))


def envelope(parts: Sequence[Guarantee]) -> Guarantee:
    """Return the worst guarantee of the candidates, which holds for a run of a random one.

    Raises:
        NotApplicable: one of several is known by (epsilon, delta) alone.
    """
    if len(parts) == 1:
        return parts[0]
    means = [part.mu for part in parts if part.mu is not None]
    if len(means) == len(parts):
        return Gdp(max(means))
    if all(isinstance(part, Rdp) for part in parts):
        return Rdp(lambda order: max(part.rdp(order) for part in parts))
    if any(isinstance(part, Box) for part in parts):
        raise NotApplicable(
            "one (epsilon, delta) is all that is known of a candidate, and the worst of several follows from curves",
            "tune fewer settings, or describe a run with another bound",
        )
    profiles = [part.privacy_profile() for part in parts]
    return Profile(lambda epsilon: max(profile(epsilon) for profile in profiles))


def _assumed(made: Sequence[Guaranteed], known: Sequence[str]) -> tuple[str, ...]:
    """Return all assumptions: the known ones, those of the runs, and those of rounding."""
    rounding = (ROUNDED, assumption(made[0].plan.noise))
    own = (text for one in made if one.case.best is not None for text in one.case.best.assumes)
    return (*dict.fromkeys((*known, *(text for text in own if text not in rounding))), *rounding)


def _adjacency(made: Sequence[Guaranteed]) -> Adjacency:
    adjacencies = {one.case.best.adjacency for one in made if one.case.best is not None}
    if len(adjacencies) > 1 or not adjacencies <= {"replace-one", "null-record"}:
        raise NotApplicable(
            f"what tuning costs needs both directions, and the adjacency is {' and '.join(sorted(adjacencies))}",
            "use an adjacency that has both orders",
        )
    return Adjacency(adjacencies.pop())


# --- the best of K runs -----------------------------------------------------------------------------------------------


def _mu_of_one(tuning: Tuning, target: float, question: Question) -> float:
    """Return the largest mu of one run for which the best of K has epsilon at most ``target``."""

    def excess(mu: float) -> float:
        return tuned_epsilon(Gdp(mu), tuning, question.safe_log_delta) - target

    return extreme(excess, Direction(False), 0.1 * min(target, 10.0), ulps=_FINE)


def _score_epsilon(tuning: Tuning, target: float) -> float:
    """Return the largest epsilon of one score for which the best of K runs is target-DP for the records held out."""

    def excess(epsilon: float) -> float:
        pure = tuned(Box(up(epsilon)), tuning)[0]
        assert isinstance(pure, Box)
        return pure.epsilon0 - target

    return extreme(excess, Direction(False), 0.5 * target, ulps=_FINE)


def _accounted(
    part: Guarantee, tuning: Tuning, score: float | None, adjacency: Adjacency, question: Question
) -> tuple[Ledger, list[Chosen]]:
    """Return the ledger of the release and the guarantees of its entries: runs, and scores on held-out records."""
    parted = score is not None
    mu = {} if part.mu is None else {"mu": part.mu}
    entries = [Entry("runs", "", mu, part=_TRAINED_ON if parted else "", tuning=tuning)]
    if score is not None:
        entries.append(Entry("scores", "", {"epsilon": score}, part=_HELD_OUT, tuning=tuning))
    ledger = Ledger(tuple(entries), adjacency, kept=parted)
    log_delta = question.safe_log_delta
    known = [chosen_of(entry, ledger, log_delta, len(entries)) for entry in entries[0 if mu else 1 :]]
    if not mu:
        ranked = sorted(tuned(part, tuning), key=lambda form: least_epsilon([form], log_delta))
        known.insert(0, Chosen(entries[0], tuple(ranked), least_epsilon(ranked, log_delta)))
    return ledger, known


# --- rounding ---------------------------------------------------------------------------------------------------------


def _room(
    part: Guarantee, tuning: Tuning, rounding: Rounding, epsilon: float, log_delta: float, log_most: float
) -> bool:
    """Return whether the rounded release is (epsilon, e^log_most)-private; on real numbers it has delta = e^log_delta.

    Either all runs agree with those on real numbers, except with E K times the probability of one run; or the cost of
    rounding is part of the profile of one run.
    """
    all_runs = rounding._replace(miss=min(1.0, up(tuning.mean * rounding.miss, 4.0)))
    lost = all_runs.cost(epsilon).delta if not rounding.shift[0] else 1.0
    if lost < 1.0 and _sum_up(log_delta, lost) <= log_most:
        return True
    if isinstance(part, Box):
        return False
    curve = executed(part.privacy_profile(), rounding)
    return tuned_log_delta(curve, tuning, growth(curve, tuning), epsilon) <= log_most


def costliest(roundings: Sequence[Rounding]) -> Rounding:
    """Return a rounding that costs at least as much as each of these; its grid is that of the first."""
    log_factors, tails = zip(*(one.shift for one in roundings), strict=True)
    return roundings[0]._replace(
        miss=max(one.miss for one in roundings), log_factor=max(one.log_factor for one in roundings),
        tail=max(one.tail for one in roundings), shift=(max(log_factors), max(tails)),
    )  # fmt: skip


def executed(curve: Curve, rounding: Rounding) -> Curve:
    """Return the profile of one run with rounded numbers: the smaller of two bounds on the cost of rounding."""
    ways = [(way, way(0.0)) for way in (rounding.cost, rounding.cost_in_epsilon)]

    def log_delta(epsilon: float) -> float:
        value = 0.0
        for way, (added, factor, _) in ways:
            if epsilon >= added:
                inside = epsilon if not added else down(epsilon - added, 2.0) if epsilon > added else 0.0
                raised = up(math.log(factor), 4.0) if factor > 1.0 else 0.0
                value = min(value, _sum_up(curve(inside) + raised, way(inside).delta))
        return value

    return log_delta


def _sum_up(log_one: float, other: float) -> float:
    """Return ln(e^log_one + other), rounded up."""
    if not other > 0.0:
        return log_one
    value = log_add_exp(log_one, math.log(other))
    return value + UNIT * (16.0 + 8.0 * abs(value))
