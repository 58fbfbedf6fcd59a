"""The rows of an answer at first sight: what the number rests on, its source, what must stay unseen, and hiding."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from dpcalc.model.algorithm import ALGORITHMS, Release
from dpcalc.model.glosses import gloss_of
from dpcalc.model.quantities import Model, Quantity, Releases, Sampling
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.words.positions import ALSO_CALLED, INDEX, group_size, record_meant
from dpcalc.report import Case, Result
from dpcalc.theorems.conditions import HIDDEN, PERMITTED, ROUNDED
from dpcalc.theorems.record import all_bounds, lookup

_BATCHES = {
    Sampling.POISSON: "Poisson batches",
    Sampling.FIXED: "random batches of one size",
    Sampling.WITH_REPLACEMENT: "batches drawn with replacement",
    Sampling.BALLS_IN_BINS: "balls-in-bins batches",
    Sampling.SHUFFLE: "shuffled batches",
    Sampling.FULL: "full batches",
}


def facts(case: Case, digits: Digits) -> list[str]:
    """Return what the number rests on: the noise in other words, neighbours, batches or order, and length."""
    best = case.best
    multiplier = (best.details or {}).get("noise_multiplier") if best else None
    parts = [f"noise multiplier {digits.number(multiplier, Side.UP)}"] if multiplier else []
    if adjacency := case.value("adjacency"):
        parts.append(ALSO_CALLED.get(adjacency, adjacency))
    if (size := group_size(case)) > 1:
        parts.append(f"groups of {size}")
    if case.ledger:
        parts.append(f"{len(case.ledger['entries'])} entries")
    if case.algorithm in ALGORITHMS:
        parts.append(_BATCHES.get(case.value("sampling")) or gloss_of(case.algorithm))
    parts += [f"{case.value(name)} {name}" for name in ("epochs", "steps") if case.value(name)][-1:]
    return [*parts, record_meant(case)] if case.guess is None and case.value(INDEX) is not None else parts


_SHORTENED = re.compile(r"^([^,]+?)(?:, [^,]+)* and \S+ (\d{4})(?=,|$)")
_TWO = re.compile(r"^[^,]+ and \S+ \d{4}")


def source(result: Result, room: int) -> str:
    """Return the paper that proves a result, and where in it as far as there is room."""
    reference = result.reference
    if not _TWO.match(reference):
        reference = _SHORTENED.sub(r"\1 et al. \2", reference)
    parts = reference.split(", ")
    while len(parts) > 1 and len(", ".join(parts)) > room:
        del parts[-1]
    return ", ".join(parts)


_SECRET = "stay secret for ever"
_ORDER = f"the order and its seed {_SECRET}"


def unseen(case: Case) -> str:
    """Return what must stay unseen for the best guarantee to hold, which nobody can check; empty if nothing."""
    assumed = case.best.assumes if case.best else ()
    said = [_ORDER if text.endswith(_SECRET) else HIDDEN.get(text, "") for text in assumed]
    return "; ".join(dict.fromkeys(filter(None, said)))


def kept(case: Case) -> tuple[str, ...]:
    """Return what is assumed that somebody has to keep: of a run that dpcalc carried out, what it does not see to."""
    best = case.best
    if best is None:
        return ()
    seen_to: Collection[str] = PERMITTED
    if case.training and not case.ledger and best.bound in all_bounds():
        seen_to = {*PERMITTED, *lookup(best.bound).assumes, ROUNDED}
    return tuple(text for text in best.assumes if text not in seen_to)


_LARGEST = 700.0
"""The largest logarithm of a gain whose exponential is a double."""

_NO_GAIN = 1.0 + 1e-6
"""Values that differ by less are the same: two computations of one composition round differently."""


def hiding(case: Case) -> str:
    """Return what it is worth that only the last iterate is seen; empty where the case does not say."""
    best, algorithm = case.best, ALGORITHMS.get(case.algorithm)
    if best is None or algorithm is None or algorithm.one_pass or "release" not in algorithm.parameters:
        return ""
    if algorithm.release is not Release.LAST and not (algorithm.clipped and case.value("release") == Releases.LAST):
        return ""
    seen = [result for result in case.results if result.guarantee and HIDDEN.keys().isdisjoint(result.assumes)]
    if not seen or best.quantity not in (Quantity.EPSILON, Quantity.DELTA, Quantity.MU):
        return ""
    gain = math.exp(min(seen[0].log_value - best.log_value, _LARGEST))
    if gain > _NO_GAIN:
        times = number(gain, 3, Side.DOWN)
        return f"hiding the iterates makes {best.quantity} {times} times smaller than composition"
    if algorithm.clipped and case.value("loss") is None and case.value("model") in (None, Model.ANY):
        return "hiding the iterates gains nothing: no theorem helps a model that is not convex"
    return "hiding the iterates gains nothing here: composition is as good"
