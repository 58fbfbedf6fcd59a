"""The record of an answer, if the worst-off one depends on the theorem."""

from __future__ import annotations

import math

from dpcalc.files import Fields
from dpcalc.model.algorithm import Source
from dpcalc.plain_enum import PlainEnum
from dpcalc.render.layout import counted
from dpcalc.report import Case
from dpcalc.theorems.batch_layout import layout

_COSTLIEST = 5
"""The number of blocks listed."""


def allocation_lines(allocation: Fields) -> list[str]:
    """Return the lines about an allocation of `dpcalc.theorems.one_pass.allocation`."""
    lines, restart = [], allocation["restart"]
    if restart:
        lines.append(f"steps 1 to {restart} are forgotten: the runs are then at most the diameter apart")
    if blocks := allocation.get("block_count"):
        lines.append(f"{counted(blocks, 'block')} of constant slope; the costliest:")
    for block in allocation.get("blocks", ())[:_COSTLIEST]:
        lines.append(f"  steps {block['first']} to {block['last']}: {block['share']:.1%} of mu^2")
    quarters = allocation["quarters"]
    lines.append(f"shares of mu^2 in the four quarters of the run: {', '.join(f'{q:.1%}' for q in quarters)}")
    return lines if all(map(math.isfinite, quarters)) else lines[:1]


class Neighbours(PlainEnum):
    """The difference between neighbouring data sets, as named in reports."""

    REPLACE_ONE = "replace-one"
    NULL_RECORD = "null-record"
    ADD_REMOVE = "add-remove"
    ADD = "add"
    REMOVE = "remove"
    AS_GIVEN = "as-given"  # those of the converted guarantee
    BY_SHIFT = "by-shift"


SIZES_DIFFER: tuple[str, ...] = (Neighbours.ADD_REMOVE, Neighbours.ADD, Neighbours.REMOVE)
"""Neighbours of different sizes."""

ALSO_CALLED = {"null-record": "zero-out"}
"""The name of an adjacency in DP-SGD."""

INDEX, WINDOW = "index", "window"
"""The parameters, or solved answers, that choose the record of an answer."""


def group_size(case: Case) -> int:
    """Return the number of records that differ between neighbouring data sets."""
    return int(case.value("group_size") or 1)


def worst_positions(case: Case) -> tuple[int, ...]:
    """Return the candidates for the worst-off position, if that depends on the theorem; else none.

    It does if an earlier batch is smaller than the last: the answer is the worse of the two.
    """
    source = case.inputs.get(INDEX, (None, None))[1]
    records, size, last = case.value("records"), case.value("batch_size"), case.value("last_batch")
    if source != Source.WORST_CASE or not (records and size and last) or WINDOW in case.inputs:
        return ()
    plan = layout(records, size, last)
    return () if plan.short_is_last else plan.latest()


def record_meant(case: Case) -> str:
    """Return the record of the best answer in words; empty if it holds for any."""
    best, index, window = case.best, case.value(INDEX), case.value(WINDOW)
    if best is None:
        return ""
    if best.quantity == INDEX:
        return f"any record at positions 1 to {best.value:.0f}"
    if best.quantity == WINDOW or window is not None:
        return f"any record that at least {best.value if best.quantity == WINDOW else window:.0f} others follow"
    if several := worst_positions(case):
        return f"any record (the worst off is at position {' or '.join(map(str, several))})"
    return f"the record at position {index}" if index is not None else ""
