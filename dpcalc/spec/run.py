"""The description of a run: an algorithm and its parameters, validated, with where each value came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.spec.symbols import SYMBOLS, check

ALGORITHMS: dict[str, str] = {
    "pnsgd": "one pass of projected noisy SGD in the given order; the last iterate is released",
    "skip": "as pnsgd, after skipping a uniformly random prefix of at most half the records",
    "stop": "as pnsgd, stopped after a uniformly random number of steps",
    "local": "one record's noisy gradient message; order and iterates may be public",
    "cyclic": "several passes in one fixed order; the last iterate is released",
    "chain": "any sequence of noisy Lipschitz steps, described step by step; the last iterate is released",
}
"""What each algorithm name runs and releases."""

_WORST_IS_FIRST = ("stop",)
_DEFAULTS: dict[str, Any] = {"batch_size": 1, "adjacency": "replace-one"}
_OWN_DEFAULTS: dict[str, dict[str, Any]] = {
    "pnsgd": {**_DEFAULTS, "strong_convexity": 0.0},
    "chain": {"start_distance": 0.0},
}


class Run(NamedTuple):
    """A described run. ``values`` holds every parameter (and derived ``sensitivity``), ``sources`` where it came from:
    ``flag``, ``argument``, ``default``, ``worst case``, ``derived``."""

    algorithm: str
    values: Mapping[str, Any]
    sources: Mapping[str, str]

    def replacing(self, **changes: Any) -> Run:
        """Return the run with some given values changed, checked and derived anew."""
        kept = ("flag", "argument", "file")
        given = {k: v for k, v in self.values.items() if self.sources[k] in kept or k == "schedule"}
        sources = {k: v for k, v in self.sources.items() if k in given}
        given.update(changes)
        sources.update(dict.fromkeys(changes, "argument"))
        return describe(self.algorithm, given, sources)


def describe(algorithm: str, given: Mapping[str, Any], sources: Mapping[str, str] | None = None) -> Run:
    """Return the described run: every given value checked, defaults and the worst index filled in.

    Args:
        algorithm: a key of `ALGORITHMS`.
        given: parameter name -> value; None means not given. A ``schedule`` passes unchecked.
        sources: parameter name -> source; "argument" where absent.

    Raises:
        SpecError: a value is outside its domain, or the index is past the last record.
    """
    if algorithm not in ALGORITHMS:
        raise SpecError(f"algorithm is {algorithm!r}; it must be one of {', '.join(ALGORITHMS)}")
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for name, value in given.items():
        if value is None:
            continue
        values[name] = check(name, value) if name in SYMBOLS else value
        origin[name] = (sources or {}).get(name, "argument")
    for name, value in _OWN_DEFAULTS.get(algorithm, _DEFAULTS).items():
        if name not in values:
            values[name], origin[name] = value, "default"
    if values.get("strong_convexity", 0.0) > values.get("smoothness", float("inf")):
        raise SpecError(
            f"strong convexity {values['strong_convexity']:g} exceeds smoothness {values['smoothness']:g}",
            "a loss cannot curve more than its smoothness",
        )
    if algorithm == "local" and "records" not in values:
        values["records"], origin["records"] = 1, "default"  # a message depends on no other record
    _fill_index(algorithm, values, origin)
    if "lipschitz" in values:
        twice = values["adjacency"] == "replace-one"
        values["sensitivity"] = values["lipschitz"] * (2.0 if twice else 1.0)
        origin["sensitivity"] = "derived"
    return Run(algorithm, values, origin)


def _fill_index(algorithm: str, values: dict[str, Any], origin: dict[str, str]) -> None:
    records = values.get("records")
    if records is None:
        return
    if "index" not in values:
        # Noise accumulates after a record's step, so the last record is worst; a random stop may never reach it.
        values["index"] = 1 if algorithm in _WORST_IS_FIRST else records
        origin["index"] = "worst case"
    elif values["index"] > records:
        raise SpecError(
            f"index {values['index']} is past the last record {records}", f"use --index between 1 and {records}"
        )
