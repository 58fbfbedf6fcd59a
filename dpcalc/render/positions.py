"""Of which record an answer is, where which one is the worst off depends on the theorem."""

from __future__ import annotations

from dpcalc.model.source import Source
from dpcalc.report import Case
from dpcalc.theorems.batch_layout import layout


def worst_positions(case: Case) -> tuple[int, ...]:
    """Return the positions of which one is the worst off, if which one depends on the theorem; else none.

    That is so where an earlier batch is smaller than the last: the answer is the worse of the two.
    """
    source = case.inputs.get("index", (None, None))[1]
    records, size, last = (case.inputs.get(name, (None,))[0] for name in ("records", "batch_size", "last_batch"))
    if source != Source.WORST_CASE or not (records and size and last) or "window" in case.inputs:
        return ()
    plan = layout(records, size, last)
    return () if plan.short_is_last else plan.latest()


def record_meant(case: Case) -> str:
    """Return of which record the best answer is, in words; empty where it is of any."""
    best = case.best
    if best is None:
        return ""
    index = case.inputs.get("index", (None, ""))[0]
    window = case.inputs.get("window", (None, ""))[0]
    if best.quantity == "index":
        return f"any record at positions 1 to {best.value:.0f}"
    if best.quantity == "window" or window is not None:
        return f"any record that at least {best.value if best.quantity == 'window' else window:.0f} others follow"
    if several := worst_positions(case):
        return f"any record (the worst off is at position {' or '.join(map(str, several))})"
    return f"the record at position {index}" if index is not None else ""
