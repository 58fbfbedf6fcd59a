"""The words and numbers that every human-readable format shares. Guarantees are rounded up, never to nearest."""

from __future__ import annotations

import math
from typing import Any

from dpcalc.report import Case, Result
from dpcalc.spec.run import ALGORITHMS
from dpcalc.spec.symbols import SYMBOLS

MAXIMISED = ("index", "lipschitz", "diameter")
"""Solved parameters of which the largest admissible value is reported: they round down in text."""


def number(value: float | int | str, precision: int = 6, side: str = "nearest") -> str:
    """Return ``value`` with ``precision`` significant digits, rounded ``up``, ``down`` or to ``nearest``."""
    if isinstance(value, (str, int)):
        return str(value)
    if side == "as given":
        return repr(value).removesuffix(".0")
    if math.isinf(value) or value == 0.0:
        return f"{value:g}"
    text = f"{value:.{precision}g}"
    if side == "nearest":
        return text
    from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

    context = Context(prec=precision, rounding=ROUND_CEILING if side == "up" else ROUND_FLOOR)
    rounded = context.plus(Decimal(value))
    digits = f"{rounded:e}" if not -5 <= rounded.adjusted() < max(precision, 6) else f"{rounded:f}"
    return _tidy(digits)


def _tidy(digits: str) -> str:
    """Return a decimal literal without trailing zeros, exponents in two digits at least."""
    mantissa, mark, exponent = digits.lower().partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return mantissa + (f"e{int(exponent):+03d}" if mark else "")


def side_of(result: Result) -> str:
    """Return the side to which a result's number is rounded in text."""
    if not result.guarantee:
        return "nearest"
    return "down" if result.quantity in MAXIMISED else "up"


def delta_text(delta: float | None, log_delta: float | None, precision: int, side: str = "nearest") -> str:
    """Return delta as a decimal, as a power of ten where it is below the range of a double."""
    if log_delta is not None and log_delta < -690.0:
        ten = log_delta / math.log(10.0) * (1.0 - 2.0**-50)
        return "10^" + number(ten, max(precision, 6), "up" if side == "up" else "nearest")
    return number(delta if delta is not None else math.nan, precision, side)


def symbol_of(name: str) -> str:
    """Return ``name symbol``, for labels."""
    symbol = SYMBOLS.get(name)
    return f"{name} {symbol.letter}" if symbol and symbol.letter not in ("", name) else name


def value_text(result: Result, precision: int) -> str:
    """Return a result's value as text, on its safe side."""
    if result.quantity == "delta":
        return delta_text(result.delta, result.log_delta, precision, side_of(result))
    return number(result.value, precision, side_of(result))


def headline(case: Case, precision: int) -> list[str]:
    """Return the answer in one line per best result."""
    return [_headline(result, precision) for result in case.results if result.best]


def _headline(result: Result, precision: int) -> str:
    value = value_text(result, precision)
    delta = delta_text(result.delta, result.log_delta, precision)
    if result.quantity == "epsilon":
        return f"epsilon <= {value} at delta = {delta}"
    if result.quantity == "delta":
        return f"delta <= {value} at epsilon = {number(result.epsilon or 0.0, precision)}"
    if result.quantity == "mu":
        return f"mu <= {value} (Gaussian DP)"
    if result.quantity == "rdp":
        return f"RDP <= {value} at order {number(result.order or 0.0, precision)}"
    relation = "<=" if result.quantity in MAXIMISED else ">="
    target = f"epsilon = {number(result.epsilon or 0.0, precision)} and delta = {delta}"
    return f"{result.quantity} {relation} {value} gives {target}"


def inputs_text(case: Case) -> str:
    """Return the inputs on one line, marking what was not typed."""
    parts = []
    for name, (value, source) in case.inputs.items():
        if source == "derived":
            continue
        mark = f" ({source})" if source in ("default", "worst case") else ""
        parts.append(f"{symbol_of(name)} = {number(value, side='as given')}{mark}")
    return ", ".join(parts)


_CONVERSIONS = {
    "exact": "exact conversion",
    "profile": "exact profile",
    "formula": "closed formula",
    "pure": "pure privacy",
    "mironov": "Mironov's conversion",
    "canonne": "Canonne et al.'s conversion",
    "asoodeh": "Asoodeh et al.'s conversion",
}


def how(result: Result, precision: int) -> str:
    """Return how the number came about: its mu, or the order and conversion."""
    if result.quantity == "mu":
        return "Gaussian DP"
    if result.mu is not None:
        return f"mu = {number(result.mu, precision, 'up')}, exact conversion"
    if result.order is not None and result.quantity != "rdp":
        return f"RDP at order {number(result.order, precision)}, {_CONVERSIONS[str(result.conversion)]}"
    return _CONVERSIONS.get(str(result.conversion), "")


def rows(case: Case, precision: int) -> list[tuple[str, ...]]:
    """Return the comparison table's rows, one cell for each of `COLUMNS`."""
    return [
        (
            "*" if r.best else "",
            r.bound,
            value_text(r, precision) + (f" (order {number(r.order or 0.0)})" if r.quantity == "rdp" else ""),
            r.kind,
            how(r, precision),
        )
        for r in case.results
    ]


COLUMNS = ("", "bound", "value", "kind", "how")


def promise(case: Case) -> str:
    """Return what the best guarantee promises, to whom, in a sentence for somebody new to the field."""
    best = case.best
    if best is None:
        return ""
    if best.adjacency == "by_shift":
        return (
            "Two data sets whose maps are within the given shifts of each other, step by step, give outputs whose "
            f"probabilities differ by a factor of at most {_factor(best)}, up to an additive delta."
        )
    index = case.inputs.get("index", (None, ""))[0]
    who = f"the record at position {index}" if index is not None else "the differing record"
    if best.quantity == "index":
        who = f"any record at positions 1 to {best.value:.0f}"
    what = "another record" if best.adjacency == "replace_one" else "a null record (zero gradient)"
    scope = "no matter what the other records are, and even to somebody who knows them all"
    if best.quantity in ("mu", "rdp"):
        kind = "Gaussian" if best.quantity == "mu" else "Renyi"
        return f"The released output satisfies {kind} differential privacy for {who} against {what}, {scope}."
    return (
        f"Replacing {who} by {what} changes the probability of anything seen in the output by a factor of at most "
        f"{_factor(best)}, up to an additive delta, {scope}."
    )


def _factor(best: Result) -> str:
    """Return e^epsilon, with its value where that can be read."""
    epsilon = best.epsilon or 0.0
    return f"e^epsilon = {number(math.exp(epsilon), 4, 'up')}" if epsilon < 30.0 else "e^epsilon"


def released(case: Case) -> str:
    """Return the algorithm and what it releases."""
    return f"{case.algorithm}: {ALGORITHMS.get(case.algorithm, '')}"


def grounds(case: Case) -> list[str]:
    """Return why the best guarantee holds: its theorem and what that assumes."""
    best = case.best
    if best is None:
        return []
    return [f"by {best.reference} ({best.bound}), assuming:", *(f"  - {text}" for text in best.assumes)]


def detail_lines(case: Case, precision: int) -> list[str]:
    """Return where the best result's allocation spends its budget, if it has one."""
    details: dict[str, Any] = dict(case.best.details or {}) if case.best else {}
    allocation = details.get("allocation")
    if not allocation:
        return []
    return [f"allocation: {line}" for line in allocation["summary"]]
