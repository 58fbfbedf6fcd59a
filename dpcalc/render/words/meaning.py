"""What an answer means to somebody new to the field: how often an attacker who has to guess is right."""

from __future__ import annotations

import math

from dpcalc.render.words.positions import SIZES_DIFFER, Neighbours, group_size, record_meant
from dpcalc.report import Case, Guess, Result


def meaning(case: Case) -> str:
    """Return what the best guarantee says of an attacker, in a sentence; empty where it says nothing so simple."""
    best, guess = case.best, case.guess
    if best is None or guess is None:
        return ""
    asked = _asked(case, best, group_size(case))
    return f"Somebody who sees the output, knows all other records, and has to guess {asked}, {_right(guess)}."


def _asked(case: Case, best: Result, size: int) -> str:
    """Return between what the attacker has to choose."""
    if best.forgetting:
        return "whether the records to be forgotten were ever used (a priori as likely as not)"
    if best.adjacency in SIZES_DIFFER:
        which = "whether one more record was used" if size == 1 else f"whether {size} more records were used"
        return f"{which} (a priori as likely as not)"
    who, has = (record_meant(case) or "a record", "has") if size == 1 else (f"any {size} records", "have")
    if best.adjacency == Neighbours.REPLACE_ONE:
        return f"which of two equally likely values {who} {has}"
    return f"whether {who} {'was' if size == 1 else 'were'} used or left out (a priori as likely as not)"


def _right(guess: Guess) -> str:
    """Return how often a guess is right at most, rounded up."""
    tenths = math.ceil(guess.probability * 1000.0)
    if tenths >= 1000:
        return "may be right almost every time, for all that this number says"
    alone = ", from this point alone" if guess.from_point else ""
    return f"is right at most {tenths / 10:.1f}% of the time{alone} (a coin: 50%)"
