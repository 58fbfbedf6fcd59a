"""What is guaranteed of the best of a random number of runs, each of a candidate drawn at random, score included.

Every candidate gets noise for the same smaller budget, that of one run. A run is then the mixture of the candidates,
and its profile, Renyi curve or mu is at most the largest of theirs. `dpcalc.notions.tuning` turns it into that of the
best of K runs, and the budget of one run is the largest for which this is at most the budget asked. Records that are
held out for scoring have a guarantee of their own, pure, and the worse of both is that of the release: which record is
held out does not depend on the records, and is the same in all runs.

Released numbers are rounded (`dpcalc.training.run.rounding`). One run as executed is another than on real numbers with
probability at most p, and so the release with probability at most p E K; or the cost is put into the profile of one run
before that is transformed. Whichever keeps the budget is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.engine.ledgers.entries import Chosen, chosen_of
from dpcalc.engine.ledgers.total import rows_of
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
"""What is set aside for rounding, as shares of epsilon and of delta: the first that is enough."""

_SMALLEST = -700.0  # below this ln delta, no double holds delta
_TRIES = 10
_FINE = 1 << 26  # of a bracket, in representable numbers: 1e-8
_TRAINED_ON, _HELD_OUT = "trained on", "held out"

Make = Callable[[Question], Guaranteed]
"""From the budget of one run to what is guaranteed of a candidate with the noise for it."""


class TunedGuarantee(NamedTuple):
    """What is guaranteed of the release, and what the runs are.

    Attributes:
        row: the guarantee.
        made: of every candidate, what is executed.
        ledger: whose total the guarantee is; None where one run is known by more than a mu.
        question: of which the ledger is asked: delta without what is set aside for rounding.
        score_epsilon: of the score of one run, for the records held out; None where no record is.
    """

    row: Result
    made: tuple[Guaranteed, ...]
    ledger: Ledger | None
    question: Question
    score_epsilon: float | None


def tuned_guarantee(makes: Sequence[Make], tune: Tune, question: Question) -> TunedGuarantee:
    """Return what is guaranteed of the best of K runs, within the budget.

    Args:
        makes: one for each candidate.
        tune: the law of K, and whether runs are scored on records that are held out, whose guarantee counts as well.
        question: the budget, epsilon and delta.

    Raises:
        NotApplicable: what is known of a candidate has no curve, or rounding leaves no room.
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
    """Return the guarantee where so much of the budget is set aside; None where it is too little."""
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
        row = rows_of(ledger, known, less, False)[0][0]
        if row.value <= target:
            break
        budget *= 0.99 * target / row.value
    else:
        raise Infeasible("no noise was found with which the best of so many runs keeps the budget", reached=row.value)
    stated = up(row.value + added, 2.0) if added else row.value
    roundings = [one.rounding for one in made]
    # A rounding that loses at least as much as each of these; its grid is that of the first.
    rounding = roundings[0]._replace(
        miss=max(one.miss for one in roundings), log_factor=max(one.log_factor for one in roundings),
        tail=max(one.tail for one in roundings), shift=max(one.shift for one in roundings),
    )  # fmt: skip
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
    """Return what is asked at a delta, as a card has it: a decimal that is read back the same."""
    if log_delta < _SMALLEST:
        return Question(delta=0.0, log_delta=log_delta)
    delta, log_delta = parse_delta(repr(math.exp(log_delta)))
    return Question(delta=delta, log_delta=log_delta)


# --- one run ----------------------------------------------------------------------------------------------------------


def part_of(made: Guaranteed) -> Guarantee:
    """Return what holds of one run of a candidate on real numbers, as a curve.

    Raises:
        NotApplicable: there is none: the theorem gives epsilon at one delta alone.
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
    """Return what holds of a run of a candidate that is drawn at random, whichever it is.

    Raises:
        NotApplicable: one of several has no curve.
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
    """Return all that is assumed: what is known to be, what is of the runs, and what is of rounding."""
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
    """Return the ledger of the release and what holds of its entries: the runs, and the scores on records held out."""
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
    """Return whether the rounded release has (epsilon, e^log_most), where that on real numbers has e^log_delta.

    Either every run is what it is on real numbers, but for a probability of E K times that of one; or rounding is part
    of the profile of one run.
    """
    all_runs = rounding._replace(miss=min(1.0, up(tuning.mean * rounding.miss, 4.0)))
    lost = all_runs.cost(epsilon).delta if not rounding.shift[0] else 1.0
    if lost < 1.0 and _sum_up(log_delta, lost) <= log_most:
        return True
    if isinstance(part, Box):
        return False
    curve = executed(part.privacy_profile(), rounding)
    return tuned_log_delta(curve, tuning, growth(curve, tuning), epsilon) <= log_most


def executed(curve: Curve, rounding: Rounding) -> Curve:
    """Return the profile of one run with its numbers rounded: the lesser of both ways to count what that costs."""
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
