"""The words of tables of bounds, of ledgers, and of short answers."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import TypedDict

from dpcalc.model.algorithm import ALGORITHMS, Release
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.glosses import gloss_of
from dpcalc.model.quantities import RISKS, Kind, Model, Quantity, Releases, Sampling
from dpcalc.notions.guarantee import Composition
from dpcalc.render.layout import counted
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.words.positions import ALSO_CALLED, INDEX, group_size, record_meant
from dpcalc.report import LOG_DELTA_ALONE, Case, Obstacle, Result
from dpcalc.theorems.conditions import HIDDEN, PERMITTED, ROUNDED
from dpcalc.theorems.record import all_bounds, lookup

Given = Mapping[str, float]
"""The known guarantee of an entry without a run."""


class Tuning(TypedDict):
    """The law of the number of runs whose best one is an entry."""

    distribution: str
    mean: float


ENTRY_COLUMNS = ("entry", "what", "times", "epsilon alone")


def entry_rows(case: Case, digits: Digits) -> list[tuple[str, ...]]:
    """Return a head and one row per entry; nothing if the case is not a ledger."""
    if not case.ledger:
        return []
    rows = [
        (
            line["name"],
            _what(line["given"], line.get("algorithm"), line.get("part"))
            + _chosen(line.get("tuning"))
            + (", begun" if line.get("begun") else ""),
            str(line["times"]),
            digits.number(line["epsilon"], Side.UP),
        )
        for line in case.ledger["entries"]
    ]
    # In the head: whether epsilon is for one record, and for which adjacency.
    of = ["of one record"] if case.inputs.get("group_size") else []
    of += ["for add-remove"] if case.ledger.get("chained") else []
    of += [] if case.inputs.get("delta") else [f"at delta = {math.exp(LOG_DELTA_ALONE):.2g}"]
    return [(*ENTRY_COLUMNS[:-1], " ".join((ENTRY_COLUMNS[-1], *of))), *rows]


def _what(given: Given, algorithm: str | None, part: object) -> str:
    """Describe an entry in a few words: its algorithm, or its known guarantee."""
    if algorithm is not None:
        text = algorithm
    elif given.get("log_delta") is not None:
        delta = Digits().delta(given["delta"], given["log_delta"], Side.AS_GIVEN)
        kind = "mu" if given.get("mu") is not None else "epsilon"
        text = f"{kind} = {number(given[kind], side=Side.AS_GIVEN)}, delta = {delta}"
    else:
        text = ", ".join(f"{name} = {number(value, side=Side.AS_GIVEN)}" for name, value in given.items())
    return text if part is None else f"{text}, of part {part}"


def _chosen(tuning: Tuning | None) -> str:
    """Describe the number of runs whose best one is an entry; empty without such a choice."""
    return f", the best of {tuning['distribution']} many, mean {number(tuning['mean'], 6)}" if tuning else ""


def ledger_lines(case: Case, digits: Digits) -> list[str]:
    """Return the lines under the entries: the worst-off part, the chain, and what is left."""
    if not case.ledger:
        return []
    lines = []
    if case.ledger.get("part"):
        lines.append(f"worst off are the records of part {case.ledger['part']}")
    if case.ledger.get("chained"):
        lines.append("replacement is a record removed and one added: every entry is for add-remove")
    if begun := [line["name"] for line in case.ledger["entries"] if line.get("begun")]:
        lines.append(f"charged, and not known to have been released: {', '.join(begun)}; the charge stays")
    if text := remaining_text(case.ledger.get("remaining"), digits):
        lines.append(text)
    return lines


def remaining_text(remaining: Mapping[str, float] | None, digits: Digits) -> str:
    """Return what is left of a budget; empty if unknown."""
    if remaining is None:
        return ""
    if not remaining["epsilon"] > 0.0:
        return "nothing is left of the budget"
    mu = remaining.get("mu")
    gaussian = "" if mu is None else f", or Gaussian with mu <= {digits.number(mu, Side.DOWN)}"
    return f"left of the budget: one more release that is pure with epsilon <= {_pure(remaining, digits)}{gaussian}"


def remaining_briefly(remaining: Mapping[str, float], digits: Digits) -> str:
    """Return what is left of a budget in fewer words."""
    if not remaining["epsilon"] > 0.0:
        return "nothing is left"
    mu = remaining.get("mu")
    gaussian = "" if mu is None else f", or mu <= {digits.number(mu, Side.DOWN)}"
    return f"left for one more: pure epsilon <= {_pure(remaining, digits)}{gaussian}"


def _pure(remaining: Mapping[str, float], digits: Digits) -> str:
    return digits.number(remaining["epsilon"], Side.DOWN)


COLUMNS = ("", "bound", "value", "kind", "how", "assumes")
COST_COLUMNS = ("", "bound", "excess risk", "kind", "algorithm", "noise_std", "step_size", "steps", "how", "assumes")
_OTHER_RUN = frozenset({"schedule", "noise", *NOISE_SCALES})
"""Bounds with one of these obstacles are for another kind of run, and are listed last."""


def columns(case: Case) -> tuple[str, ...]:
    """Return the heads of the comparison table."""
    return COST_COLUMNS if is_cost(case) else COLUMNS


def is_cost(case: Case) -> bool:
    """Return whether a case is about the cost of a budget."""
    return any(result.quantity in RISKS for result in case.results)


def rows(case: Case, digits: Digits) -> list[tuple[str, ...]]:
    """Return the rows of the comparison table, one cell for each of `columns`."""
    numbers = assumption_numbers(case)
    table = []
    for r in case.results:
        value = digits.value(r)
        if r.quantity == Quantity.RDP:
            value += f" (order {digits.order(r)})"
        run = cost_cells(r, digits) if is_cost(case) else ()
        assumes = " ".join(numbers[text] for text in r.assumes)
        table.append(("*" if r.best else "", r.bound, value, r.kind, *run, derivation(r, digits), assumes))
    return table


def cost_cells(result: Result, digits: Digits) -> tuple[str, ...]:
    """Return the run of a cost: algorithm, noise, step size and steps."""
    details = result.details or {}
    names = ("noise_std", "step_size", "steps")
    # The noise keeps the budget: it is never rounded down.
    sides = {names[0]: Side.UP}
    numbers = [digits.number(details[n], sides.get(n, Side.NEAREST)) if n in details else "" for n in names]
    return "/".join(details.get("algorithms", ())), *numbers


def cost_run(result: Result, digits: Digits) -> list[tuple[str, str]]:
    """Return the nonempty cells of the run of a cost, with their names."""
    names = ("algorithm", "noise_std", "step_size", "steps")
    return [(name, cell) for name, cell in zip(names, cost_cells(result, digits), strict=True) if cell]


_PROFILE = "profile"
_CONVERSIONS = {
    "exact": "exact conversion",
    _PROFILE: "exact profile",
    "pld": "privacy-loss distribution",
    "formula": "closed formula",
    "pure": "pure privacy",
    "mironov": "Mironov's conversion",
    "canonne": "Canonne et al.'s conversion",
    "asoodeh": "Asoodeh et al.'s conversion",
}


def derivation(result: Result, digits: Digits) -> str:
    """Return the derivation of the number: its mu, or its order and conversion."""
    if result.quantity in RISKS or result.quantity == Quantity.MU:
        return "Gaussian DP" if result.quantity == Quantity.MU else cost_kind(result)
    if result.mu is not None:
        side = Side.DOWN if result.kind == Kind.LOWER else Side.UP
        return f"mu = {digits.number(result.mu, side)}, exact conversion"
    if result.order is not None and result.quantity != Quantity.RDP:
        return f"RDP at order {digits.number(result.order)}, {_CONVERSIONS[str(result.conversion)]}"
    details = result.details or {}
    if details.get("demands"):
        return "if " + "; ".join(details["demands"])
    if details.get("slack") and result.conversion == _PROFILE:
        return "profile, to its slack"
    return _CONVERSIONS.get(str(result.conversion), "")


def cost_kind(result: Result) -> str:
    """Return the kind of risk of a cost, its probability, and whether it is vacuous."""
    risk = {"excess_risk": "", "empirical_excess_risk": "empirical, ", "smoothing_error": "added by smoothing, "}
    return risk[result.quantity] + cost_probability(result)


def cost_probability(result: Result) -> str:
    """Return the probability with which a cost is not exceeded, and whether it is vacuous."""
    details = result.details or {}
    failure = details.get("failure_probability")
    probability = "in expectation" if failure is None else f"with probability {1.0 - failure:.6g}"
    return probability + (", vacuous" if details.get("vacuous") else "")


def assumption_numbers(case: Case) -> dict[str, str]:
    """Number the assumptions of a case's bounds in order of appearance (letters are symbols)."""
    texts = dict.fromkeys(text for result in case.results for text in result.assumes)
    return {text: str(place) for place, text in enumerate(texts, start=1)}


def assumption_lines(case: Case) -> list[str]:
    """Return why the best guarantee holds, and the legend of the column ``assumes``."""
    numbers, best = assumption_numbers(case), case.best
    lines = [f"  {place:2} {text}" for text, place in numbers.items()]
    if best is None:
        return lines
    assumes = " ".join(numbers[text] for text in best.assumes)
    return [f"by {best.reference} ({best.bound}), assuming {assumes}:", *lines]


def obstacle_rows(case: Case) -> list[tuple[str, ...]]:
    """Return the bounds that do not apply, with reasons and remedies; those for another noise or schedule come last."""
    if not case.obstacles:
        return []
    return [("not applicable", "because", "cure"), *((o.bound, o.because, o.hint) for o in _ordered(case))]


def _ordered(case: Case) -> list[Obstacle]:
    return sorted(case.obstacles, key=lambda o: not _OTHER_RUN.isdisjoint(o.parameters))


def obstacles_by_reason(case: Case) -> list[str]:
    """Return why bounds do not apply: each reason once, after its bounds."""
    reasons: dict[str, list[str]] = {}
    for obstacle in _ordered(case):
        reasons.setdefault(obstacle.because, []).append(obstacle.bound)
    return [f"{', '.join(bounds)}: {because}" for because, bounds in reasons.items()]


_BATCHES = {
    Sampling.POISSON: "Poisson batches",
    Sampling.FIXED: "random batches of one size",
    Sampling.WITH_REPLACEMENT: "batches drawn with replacement",
    Sampling.BALLS_IN_BINS: "balls-in-bins batches",
    Sampling.SHUFFLE: "shuffled batches",
    Sampling.FULL: "full batches",
}


def facts(case: Case, digits: Digits) -> list[str]:
    """Return the basis of the number: the noise in other words, neighbours, batches or order, and length."""
    best = case.best
    multiplier = (best.details or {}).get("noise_multiplier") if best else None
    parts = [f"noise multiplier {digits.number(multiplier, Side.UP)}"] if multiplier else []
    if adjacency := case.value("adjacency"):
        parts.append(ALSO_CALLED.get(adjacency, adjacency))
    if (size := group_size(case)) > 1:
        parts.append(f"groups of {size}{_taken(case.best)}")
    if case.ledger:
        parts.append(counted(len(case.ledger["entries"]), "entry", "entries"))
    if case.algorithm in ALGORITHMS:
        parts.append(_BATCHES.get(case.value("sampling")) or gloss_of(case.algorithm))
    parts += [f"{case.value(name)} {name}" for name in ("epochs", "steps") if case.value(name)][-1:]
    return [*parts, record_meant(case)] if case.guess is None and case.value(INDEX) is not None else parts


def _taken(best: Result | None) -> str:
    """Return how the best guarantee treats a group: by one pair of laws, or as a chain of single records."""
    if best is None or best.bound not in all_bounds():
        return ""
    bound = lookup(best.bound)
    if "group_size" not in bound.reads:
        return " (record by record)"
    if bound.gives is not Composition:
        return " (as a whole)"
    return {"pld": " (as a whole)", "profile": " (record by record)"}.get(best.conversion or "", "")


_SHORTENED = re.compile(r"^([^,]+?)(?:, [^,]+)* and \S+ (\d{4})(?=,|$)")
_TWO = re.compile(r"^[^,]+ and \S+ \d{4}")


def source(result: Result, room: int) -> str:
    """Return the paper that proves a result, and the place in it if there is room."""
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
    """Return what must stay hidden for the best guarantee, which nobody can check; empty if nothing."""
    assumed = case.best.assumes if case.best else ()
    said = [_ORDER if text.endswith(_SECRET) else HIDDEN.get(text, "") for text in assumed]
    return "; ".join(dict.fromkeys(filter(None, said)))


def kept(case: Case) -> tuple[str, ...]:
    """Return the assumptions that somebody must keep; for a run executed by dpcalc, those that it does not ensure."""
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
"""Values that differ by less are equal: two computations of one composition round differently."""


_HIDDEN_LESS = (Quantity.EPSILON, Quantity.DELTA, Quantity.MU, "noise_multiplier", *NOISE_SCALES)
"""What may be smaller if the iterates are hidden."""


def hiding(case: Case) -> str:
    """Return the gain of releasing only the last iterate; empty if the case does not have it."""
    best, algorithm = case.best, ALGORITHMS.get(case.algorithm)
    if best is None or algorithm is None or algorithm.one_pass or not algorithm.asks_what_is_released:
        return ""
    if algorithm.release is not Release.LAST and not (algorithm.clipped and case.value("release") == Releases.LAST):
        return ""
    seen = [result for result in case.results if result.guarantee and HIDDEN.keys().isdisjoint(result.assumes)]
    if not seen or best.quantity not in _HIDDEN_LESS:
        return ""
    gain = math.exp(min(seen[0].log_value - best.log_value, _LARGEST))
    if gain > _NO_GAIN:
        times = number(gain, 3, Side.DOWN)
        return f"hiding the iterates makes {best.quantity} {times} times smaller than composition"
    if algorithm.clipped and case.value("loss") is None and case.value("model") in (None, Model.ANY):
        return "hiding the iterates gains nothing: no theorem helps a model that is not convex"
    return "hiding the iterates gains nothing here: composition is as good"
