"""The entries of a ledger, each with what it costs alone, and what is left of the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypedDict

from dpcalc.render.numbers import Digits, Side, number
from dpcalc.report import LOG_DELTA_ALONE, Case

Given = Mapping[str, float]
"""What is known of an entry that is no run: its guarantee."""


class Tuning(TypedDict):
    """The law of the number of runs of which an entry is the best."""

    distribution: str
    mean: float


COLUMNS = ("entry", "what", "times", "epsilon alone")


def entry_rows(case: Case, digits: Digits) -> list[tuple[str, ...]]:
    """Return a head and one row for each entry; none where the case is no ledger."""
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
    # The head: epsilon is that of one record, and of the adjacency of the entries.
    of = ["of one record"] if case.inputs.get("group_size") else []
    of += ["for add-remove"] if case.ledger.get("chained") else []
    of += [] if case.inputs.get("delta") else [f"at delta = {math.exp(LOG_DELTA_ALONE):.2g}"]
    return [(*COLUMNS[:-1], " ".join((COLUMNS[-1], *of))), *rows]


def _what(given: Given, algorithm: str | None, part: object) -> str:
    """Return what an entry is, in a few words: the algorithm that was run, or the guarantee that is known."""
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
    """Return of how many runs an entry is the best one; empty where it is no such choice."""
    return f", the best of {tuning['distribution']} many, mean {number(tuning['mean'], 6)}" if tuning else ""


def ledger_lines(case: Case, digits: Digits) -> list[str]:
    """Return what is said under the entries: the part that is worst off, the chain, and what is left."""
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
    """Return what is left of a budget; empty where that is not known."""
    if remaining is None:
        return ""
    if not remaining["epsilon"] > 0.0:
        return "nothing is left of the budget"
    mu = remaining.get("mu")
    gaussian = "" if mu is None else f", or Gaussian with mu <= {digits.number(mu, Side.DOWN)}"
    return f"left of the budget: one more release that is pure with epsilon <= {_pure(remaining, digits)}{gaussian}"


def remaining_briefly(remaining: Mapping[str, float], digits: Digits) -> str:
    """Return the same in fewer words."""
    if not remaining["epsilon"] > 0.0:
        return "nothing is left"
    mu = remaining.get("mu")
    gaussian = "" if mu is None else f", or mu <= {digits.number(mu, Side.DOWN)}"
    return f"left for one more: pure epsilon <= {_pure(remaining, digits)}{gaussian}"


def _pure(remaining: Mapping[str, float], digits: Digits) -> str:
    return digits.number(remaining["epsilon"], Side.DOWN)
