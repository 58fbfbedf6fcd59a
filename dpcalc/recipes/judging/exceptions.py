"""What weakens a guarantee so much that a gate on it fails unless the case itself accepts it by name.

Whoever may change a file that a recipe reads, or its defaults, could otherwise turn a failed gate into one that holds.
Constants of the loss (lipschitz, smoothness, displacement, ...) are no exceptions: they describe the run, and every
report shows them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpcalc.engine.advice.missing import ON_MEAN, misread_of
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.description import run_of
from dpcalc.engine.gate import REASON, has_large_delta
from dpcalc.errors import DpcalcError
from dpcalc.files.nodes import Field, items, repeated, text
from dpcalc.files.place import clipped, near
from dpcalc.model.algorithm import Source
from dpcalc.model.draft import Description
from dpcalc.model.quantities import Permutation
from dpcalc.report import Case
from dpcalc.theorems.batch_layout import worst_cases

if TYPE_CHECKING:
    from dpcalc.recipes.reading.recipe import Entry

EXCEPTIONS = {
    "seeded": "train draws its noise from a seed: whoever knows it can draw the noise again",
    "one-index": "the guarantee does not cover every record: an index, a window or public records were chosen",
    "large-delta": REASON,
    "secret-order": "the random order and its seed must stay secret for ever, for which nobody has vouched",
    ON_MEAN: "the noise is so large that a noise multiplier may be meant, by which the run is far less private",
}
"""The names that ``accept:`` takes, and what each means."""


def accepted(field: Field) -> tuple[str, ...]:
    """Return the names under ``accept:``, one or a list.

    Raises:
        SpecError: one is unknown or there twice; the message says where.
    """
    names = []
    for node in items(field.node):
        name = text(node, "accept")
        if name not in EXCEPTIONS:
            raise node.place.error(f"accept: there is no exception {clipped(name)}", near(name, EXCEPTIONS))
        names.append(name)
    if not names:
        raise field.place.error("accept is an empty list", "leave it out, or name " + ", ".join(EXCEPTIONS))
    twice = repeated(names)
    if twice is not None:
        raise field.place.error(f"accept: {twice} is given twice", "write it once")
    return tuple(names)


def exceptions(entry: Entry, case: Case) -> tuple[str, ...]:
    """Return the names of the exceptions that the guarantee of a case is, in the order of `EXCEPTIONS`."""
    applies = (
        bool(case.training) and not (case.training or {})["private"],
        _covers_some(entry, case) or any(_of_entries(entry, name) for name in _CHOOSING),
        has_large_delta(case, entry.parameters.get("ledger")),
        case.value("permutation") == Permutation.SECRET or Permutation.SECRET in _of_entries(entry, "permutation"),
        misread_of(case) is not None,
    )
    return tuple(itertools.compress(EXCEPTIONS, applies))


def objection(name: str) -> str:
    """Return why a case fails that is an exception and does not accept it."""
    return f"{name}: {EXCEPTIONS[name]}; if that is meant, write accept: [{name}] in the case"


_CHOOSING = ("index", "window", "public_records")
"""Parameters by which an entry of a ledger chooses some records; whether they are the worst off is not asked."""


def _of_entries(entry: Entry, name: str) -> list[Any]:
    """Return what the entries of a ledger say of a parameter."""
    ledger = entry.parameters.get("ledger")
    return [one.given[name] for one in ledger.entries if one.given.get(name) is not None] if ledger else []


def _covers_some(entry: Entry, case: Case) -> bool:
    """Return whether the guarantee is of one position, or of some records, and not proved for the record worst off."""
    if case.value("public_records"):
        return True
    solved = {r.quantity: r.value for r in case.results if r.quantity in ("index", "window") and r.best}
    window = solved.get("window", case.value("window"))
    if window is not None:
        return bool(window)
    index, source = case.inputs.get("index", (None, Source.DEFAULT))
    if "index" in solved:
        return bool(solved["index"] != case.value("records"))
    if index is None or not source.typed:
        return False
    return bool(index != worst_index(entry, case))


def worst_index(entry: Entry, case: Case) -> object:
    """Return the position that is worst off, None where that is open: steps, or batches, may differ."""
    if entry.command not in COMMANDS or COMMANDS[entry.command].prices:
        return case.value("records")
    values = {name: value for name, value in entry.parameters.items() if name != "index" and value is not None}
    try:
        return _worst_index_of(entry.command, frozenset(values.items()))  # one for a whole sweep over positions
    except TypeError:  # a value has no hash
        return _worst_index_of.__wrapped__(entry.command, values.items())


@functools.lru_cache(maxsize=64)
def _worst_index_of(command: str, values: Iterable[tuple[str, Any]]) -> object:
    try:
        _, run, _ = run_of(COMMANDS[command], Description(dict(values)))
    except DpcalcError:
        return None
    return run.index if len(worst_cases(run)) == 1 else None
