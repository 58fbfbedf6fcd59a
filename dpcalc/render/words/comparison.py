"""The table of every bound that answers a case, the numbers of its assumptions, and the bounds that do not apply."""

from __future__ import annotations

from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.quantities import RISKS, Kind, Quantity
from dpcalc.render.numbers import Digits, Side
from dpcalc.report import Case, Obstacle, Result

COLUMNS = ("", "bound", "value", "kind", "how", "assumes")
COST_COLUMNS = ("", "bound", "excess risk", "kind", "algorithm", "noise_std", "step_size", "steps", "how", "assumes")
_OTHER_RUN = frozenset({"schedule", "noise", *NOISE_SCALES})
"""Bounds whose obstacle is one of these are for another kind of run, and are listed last."""


def columns(case: Case) -> tuple[str, ...]:
    """Return the heads of the comparison table."""
    return COST_COLUMNS if is_cost(case) else COLUMNS


def is_cost(case: Case) -> bool:
    """Return whether a case is about what a budget costs."""
    return any(result.quantity in RISKS for result in case.results)


def rows(case: Case, digits: Digits) -> list[tuple[str, ...]]:
    """Return the comparison table's rows, one cell for each of `columns`."""
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
    """Return the run that has a cost: algorithm, noise, step size and steps."""
    details = result.details or {}
    names = ("noise_std", "step_size", "steps")
    # The noise is what keeps the budget: it is never shown smaller than it is.
    sides = {names[0]: Side.UP}
    numbers = [digits.number(details[n], sides.get(n, Side.NEAREST)) if n in details else "" for n in names]
    return "/".join(details.get("algorithms", ())), *numbers


def cost_run(result: Result, digits: Digits) -> list[tuple[str, str]]:
    """Return the cells of the run that has a cost, those that it has, each with its name."""
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
    """Return how the number came about: its mu, or the order and conversion."""
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
    """Return of which risk a cost speaks, how surely, and whether it says anything."""
    risk = {"excess_risk": "", "empirical_excess_risk": "empirical, ", "smoothing_error": "added by smoothing, "}
    return risk[result.quantity] + cost_probability(result)


def cost_probability(result: Result) -> str:
    """Return with what probability a cost is not exceeded, and whether it says anything."""
    details = result.details or {}
    failure = details.get("failure_probability")
    probability = "in expectation" if failure is None else f"with probability {1.0 - failure:.6g}"
    return probability + (", vacuous" if details.get("vacuous") else "")


def assumption_numbers(case: Case) -> dict[str, str]:
    """Return a number for every assumption of a case's bounds, in order of appearance: letters are symbols."""
    texts = dict.fromkeys(text for result in case.results for text in result.assumes)
    return {text: str(place) for place, text in enumerate(texts, start=1)}


def assumption_lines(case: Case) -> list[str]:
    """Return why the best guarantee holds, and what the numbers of the column ``assumes`` stand for."""
    numbers, best = assumption_numbers(case), case.best
    lines = [f"  {place:2} {text}" for text, place in numbers.items()]
    if best is None:
        return lines
    assumes = " ".join(numbers[text] for text in best.assumes)
    return [f"by {best.reference} ({best.bound}), assuming {assumes}:", *lines]


def obstacle_rows(case: Case) -> list[tuple[str, ...]]:
    """Return the bounds that do not apply, why, and what to do; those for another noise or schedule come last."""
    if not case.obstacles:
        return []
    return [("not applicable", "because", "cure"), *((o.bound, o.because, o.hint) for o in _ordered(case))]


def _ordered(case: Case) -> list[Obstacle]:
    return sorted(case.obstacles, key=lambda o: not _OTHER_RUN.isdisjoint(o.parameters))


def obstacles_by_reason(case: Case) -> list[str]:
    """Return why bounds do not apply: each reason once, after the bounds that it is of."""
    reasons: dict[str, list[str]] = {}
    for obstacle in _ordered(case):
        reasons.setdefault(obstacle.because, []).append(obstacle.bound)
    return [f"{', '.join(bounds)}: {because}" for because, bounds in reasons.items()]
