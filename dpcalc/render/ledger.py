"""The entries of a ledger, each with what it costs alone, and what is left of the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpcalc.render.numbers import Side, delta_text, number
from dpcalc.report import LOG_DELTA_ALONE, Case

COLUMNS = ("entry", "what", "times", "epsilon alone")


def entry_rows(case: Case, precision: int) -> list[tuple[str, ...]]:
    """Return a head and one row for each entry; none where the case is no ledger."""
    if not case.ledger:
        return []
    rows = [
        (line["name"], _what(line), str(line["times"]), number(line["epsilon"], precision, Side.UP))
        for line in case.ledger["entries"]
    ]
    return [_columns(case), *rows]


def _columns(case: Case) -> tuple[str, ...]:
    """Return the head: epsilon is that of one record, and of the adjacency of the entries."""
    assert case.ledger is not None
    of = ["of one record"] if "group_size" in case.inputs else []
    of += ["for add-remove"] if case.ledger.get("chained") else []
    of += [] if "delta" in case.inputs else [f"at delta = {math.exp(LOG_DELTA_ALONE):.2g}"]
    return (*COLUMNS[:-1], " ".join((COLUMNS[-1], *of)))


def _what(line: Mapping[str, Any]) -> str:
    """Return what an entry is, in a few words."""
    given = dict(line["given"])
    if "algorithm" in line:
        text = str(line["algorithm"])
    elif "log_delta" in given:
        delta = delta_text(given["delta"], given["log_delta"], 6, Side.AS_GIVEN)
        text = f"epsilon = {number(given['epsilon'], side=Side.AS_GIVEN)}, delta = {delta}"
    else:
        text = ", ".join(f"{name} = {number(value, side=Side.AS_GIVEN)}" for name, value in given.items())
    if "part" in line:
        text += f", of part {line['part']}"
    if tuning := line.get("tuning"):
        text += f", the best of {tuning['distribution']} many, mean {number(tuning['mean'], 6, Side.NEAREST)}"
    return text


def ledger_lines(case: Case, precision: int) -> list[str]:
    """Return what is said under the entries: the part that is worst off, the chain, and what is left."""
    if not case.ledger:
        return []
    lines = []
    if case.ledger.get("part"):
        lines.append(f"worst off are the records of part {case.ledger['part']}")
    if case.ledger.get("chained"):
        lines.append("replacement is a record removed and one added: every entry is for add-remove")
    if left := case.ledger.get("remaining"):
        if left["epsilon"] > 0.0:
            gaussian = f", or Gaussian with mu <= {number(left['mu'], precision, Side.DOWN)}" if "mu" in left else ""
            most = number(left["epsilon"], precision, Side.DOWN)
            lines.append(f"left of the budget: one more release that is pure with epsilon <= {most}{gaussian}")
        else:
            lines.append("nothing is left of the budget")
    return lines
