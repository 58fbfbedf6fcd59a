"""A delta at which publishing a record outright can count as private: a warning, and a gate that fails."""

from __future__ import annotations

from dpcalc.checked import Assertion
from dpcalc.model.question import Ledger
from dpcalc.report import Case

REASON = (
    "delta is at least 1/records and above 1e-5, or at least 0.01: publishing a record outright can be that private"
)

_USUAL, _LARGEST = 1e-5, 0.01
"""A delta that is acceptable for any number of records, and one that is too large for every number."""


def has_large_delta(case: Case, ledger: Ledger | None) -> bool:
    """Return whether the delta of an answer is too large for its records, or for those of an entry of its ledger."""
    best = [result for result in case.results if result.best]
    deltas = [result.delta for result in best if result.delta is not None]
    if not deltas:
        return False
    known = next((result.value for result in best if result.quantity == "records"), None)
    counts = [case.inputs.get("records", (None, ""))[0] if known is None else known]
    counts += [entry.given.get("records") for entry in ledger.entries] if ledger is not None else []
    least = min([_LARGEST, *(1.0 / count for count in counts if isinstance(count, (int, float)) and count > 1)])
    return any(delta >= least and delta > _USUAL for delta in deltas)


def large_delta_gate(case: Case) -> tuple[Assertion, ...]:
    """Return a gate that fails if delta is too large; else none."""
    ledger = case.query.given.get("ledger") if case.query is not None else None
    return (Assertion("large-delta", False, REASON, None),) if has_large_delta(case, ledger) else ()
