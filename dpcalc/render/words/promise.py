"""What the best guarantee promises, to whom, in a sentence for somebody new to the field."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcalc.model.quantities import RISKS, SUFFICIENT, Quantity
from dpcalc.render.numbers import Side, number
from dpcalc.render.words.positions import SIZES_DIFFER, Neighbours, group_size, record_meant
from dpcalc.render.words.sentences import budget_kept, targets_text
from dpcalc.report import Case, Result

_FORGOTTEN = (
    "The output can hardly be told from that of a model which never saw the records to be forgotten and took the same "
    "steps. For the records kept this is no guarantee, and whoever has seen the old model knows what its training "
    "revealed."
)

_SCOPE = "no matter what the other records are, and even to somebody who knows them all"

_KINDS: dict[str, str] = {Quantity.MU: "Gaussian", Quantity.RDP: "Renyi"}
"""Guarantees that are no pair of epsilon and delta, and what their privacy is called."""

_CHANGES: dict[str, tuple[str, str]] = {
    Neighbours.ADD_REMOVE: ("Adding a record or removing one", "Adding or removing"),
    Neighbours.ADD: ("Adding a record", "Adding"),
    Neighbours.REMOVE: ("Removing a record", "Removing"),
}
"""What makes data sets neighbours whose sizes differ: a record, and the verb of several."""

_ONE_WAY: dict[str, str] = {
    Neighbours.ADD: "without {} as with {}",
    Neighbours.REMOVE: "with {} as without {}",
}


def promise(case: Case) -> str:
    """Return what the best guarantee promises, to whom; empty where there is none."""
    best = case.best
    if best is None:
        return ""
    if best.forgetting:
        return _FORGOTTEN
    if best.quantity in RISKS:
        return (
            "The mean loss of the released model exceeds that of the best model in the domain by at most this much, on "
            f"new records of the law the given ones were drawn from; {budget_kept(best)}."
        )
    if attacks := _attacks(best):
        about = record_meant(case) or "a record" if group_size(case) == 1 else f"{group_size(case)} records together"
        return (
            f"No attack on {about} goes beyond {attacks}, no matter what the other records are, and even if the "
            "attacker knows them all."
        )
    if best.adjacency in _OTHER_NEIGHBOURS:
        return _OTHER_NEIGHBOURS[best.adjacency](best)
    return _of_size(best, group_size(case)) if best.adjacency in SIZES_DIFFER else _of_replacement(case, best)


def promise_of_others(case: Case) -> str:
    """Return what is promised where neighbours differ in no record that the case speaks of; else nothing."""
    return promise(case) if case.best and case.best.adjacency in _OTHER_NEIGHBOURS else ""


def _attacks(best: Result) -> str:
    """Return what no attack on a record of a run goes beyond; empty where the answer is something else."""
    if best.quantity == Quantity.ADVANTAGE and best.adjacency not in _OTHER_NEIGHBOURS:
        return f"advantage {number(best.value, side=Side.UP)}"
    return targets_text(best)


def _of_replacement(case: Case, best: Result) -> str:
    """Return the promise where records are replaced, by others or by null records."""
    size, replaced = group_size(case), best.adjacency == Neighbours.REPLACE_ONE
    if size == 1:
        who = record_meant(case) or "the differing record"
        against, what = who, "another record" if replaced else "a null record (zero gradient)"
    else:
        who, what = f"any {size} records", "others" if replaced else "null records (zero gradient)"
        against = f"{who} at once"
    if best.quantity in _KINDS:
        private = f"{_KINDS[best.quantity]} differential privacy for {against} against {what}"
        return f"The released output satisfies {private}, {_SCOPE}."
    return (
        f"Replacing {who} by {what} changes the probability of anything seen in the output by a factor of at most "
        f"{_factor(best)}, up to an additive delta, {_SCOPE}."
    )


def _of_size(best: Result, size: int) -> str:
    """Return the promise where a record comes or leaves, or several do."""
    one, several = _CHANGES[best.adjacency]
    change = one if size == 1 else f"{several} up to {size} records"
    if best.quantity in _KINDS:
        private = f"{_KINDS[best.quantity]} differential privacy: {change.lower()} is hidden"
        return f"The released output satisfies {private}, {_SCOPE}."
    if best.adjacency in _ONE_WAY:
        names = ("the record", "it") if size == 1 else (f"{size} records", "them")
        return (
            f"Anything seen in the output is at most {_factor(best)} times as likely "
            f"{_ONE_WAY[best.adjacency].format(*names)}, up to an additive delta, {_SCOPE}. The other direction is not "
            "covered; add-remove covers both."
        )
    return (
        f"{change} changes the probability of anything seen in the output by a factor of at most {_factor(best)}, "
        f"up to an additive delta, {_SCOPE}."
    )


def _of_conversion(best: Result) -> str:
    """Return what a conversion promises, or what a risk says."""
    if best.quantity == Quantity.ADVANTAGE:
        right = number(0.5 + 0.5 * best.value, 4, Side.UP)
        return (
            "Somebody who knows all other records, and what stands in this one's place without it, guesses from the "
            f"output whether the record was there: with even odds the guess is right with probability at most {right}."
        )
    if best.quantity in SUFFICIENT:
        return (
            f"A mechanism that is known to have {SUFFICIENT[best.quantity]} of at most this keeps the budget. The "
            "reverse is not implied: a mechanism that keeps the budget need not have it, at this value or at any other."
        )
    if best.quantity in (Quantity.EPSILON, Quantity.DELTA, Quantity.PURE):
        return (
            "Whatever has the given guarantee changes the probability of anything seen in its output by a factor of at "
            f"most {_factor(best)}{'' if best.quantity == Quantity.PURE else ', up to an additive delta'}, for the "
            "neighbouring data sets that the guarantee is about."
        )
    return "Whatever has the given guarantee has this one, for the same neighbouring data sets."


def _of_shift(best: Result) -> str:
    """Return what holds of data sets that differ by shifts."""
    return (
        "Two data sets whose maps are within the given shifts of each other, step by step, give outputs whose "
        f"probabilities differ by a factor of at most {_factor(best)}, up to an additive delta."
    )


_OTHER_NEIGHBOURS: dict[str, Callable[[Result], str]] = {
    Neighbours.AS_GIVEN: _of_conversion,
    Neighbours.BY_SHIFT: _of_shift,
}
"""What is promised where neighbours differ in no record that the case speaks of."""


def _factor(best: Result) -> str:
    """Return e^epsilon, with its value where that can be read."""
    epsilon = best.epsilon or 0.0
    return f"e^epsilon = {number(math.exp(epsilon), 4, Side.UP)}" if epsilon < 30.0 else "e^epsilon"
