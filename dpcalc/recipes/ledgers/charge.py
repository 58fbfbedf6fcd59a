"""Charging a release to a ledger file: one more entry, written before the release is made."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Iterator

from dpcalc.engine.ledgers.entries import Ledger, of_one_adjacency
from dpcalc.errors import SpecError
from dpcalc.files.output import write_bytes
from dpcalc.files.reading import read_document, reported
from dpcalc.inert import json_text
from dpcalc.recipes.ledgers.ledger import VERSION, parse_ledger

_OPTION = "--ledger"


def entry_of(epsilon: float) -> dict[str, float | str]:
    """Return the entry of a pure release under replace-one adjacency."""
    return {"epsilon": epsilon, "adjacency": "replace-one"}


def line_of(name: str, epsilon: float) -> str:
    """Return the entry as a line of a ledger in YAML."""
    fields = ", ".join(
        f"{key}: {value!r}" if key == "epsilon" else f"{key}: {value}" for key, value in entry_of(epsilon).items()
    )
    return f"{name}: {{{fields}}}"


def charge(path: str, name: str, epsilon: float) -> str:
    """Add a pure release to the ledger in a file, which is made where there is none, and return the entry's name.

    Processes that charge at the same time wait for each other, where the system has locks.

    Args:
        path: YAML or JSON.
        name: of the entry; a number is added to it where it is taken.
        epsilon: of the release, with delta = 0, under replace-one adjacency.

    Raises:
        SpecError: the file is no ledger, or an entry cannot be added to it; it is as it was.
    """
    with _alone(path):
        return _charge(path, name, epsilon)


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    """Wait until no other process charges a ledger of the same folder."""
    try:
        import fcntl
    except ImportError:  # Windows has none of these
        yield
        return
    with reported(path):
        folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _charge(path: str, name: str, epsilon: float) -> str:
    if not os.path.exists(path):
        if path.endswith(".json"):
            new = json_text({"dpcalc": VERSION, "adjacency": "replace-one", "entries": {name: entry_of(epsilon)}}, 2)
        else:
            new = f"dpcalc: {VERSION}\nadjacency: replace-one\nentries:\n  {line_of(name, epsilon)}"
        write_bytes((new + "\n").encode(), path, _OPTION, link=False)
        return name
    raw = read_document(path, "ledger")
    ledger, column = parse_ledger(path, raw)
    names = [entry.name for entry in ledger.entries]
    free = next(each for each in _spellings(name) if each not in names)
    new_raw = _with_entry(path, raw, column, free, epsilon)
    if not _holds(path, new_raw, [*names, free]):
        raise SpecError(
            f"{path}: no entry can be added to the end of this file",
            f"write it under entries: by hand: {line_of(free, epsilon)}",
        )
    _refuse_mixed(path, parse_ledger(path, new_raw)[0])
    write_bytes(new_raw, path, _OPTION, link=False)
    return free


def _refuse_mixed(path: str, ledger: Ledger) -> None:
    """Refuse a ledger that could not be answered, as its adjacencies do not compose.

    Raises:
        SpecError: they do not.
    """
    try:
        of_one_adjacency(ledger)
    except SpecError:
        kept = {str(entry.adjacency or ledger.adjacency) for entry in ledger.entries[:-1]} | {str(ledger.adjacency)}
        others = " and ".join(sorted(kept - {"replace-one"}))
        raise SpecError(
            f"{path} is for adjacency {others}, and a private evaluation for replace-one: nothing composes both",
            "charge it to a ledger for replace-one, whose entries are all for replace-one",
        ) from None


def _spellings(name: str) -> itertools.chain[str]:
    return itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))


def _with_entry(path: str, raw: bytes, column: int, name: str, epsilon: float) -> bytes:
    if path.endswith(".json"):
        body = json.loads(raw)
        body["entries"][name] = entry_of(epsilon)
        return (json_text(body, 2) + "\n").encode()
    end = b"" if raw.endswith(b"\n") else b"\n"
    return raw + end + (" " * (column - 1) + line_of(name, epsilon) + "\n").encode()


def _holds(path: str, raw: bytes, names: list[str]) -> bool:
    """Return whether a text is a ledger with these entries."""
    try:
        return [entry.name for entry in parse_ledger(path, raw)[0].entries] == names
    except SpecError:
        return False
