"""Histories of up to millions of steps: the numbers are extracted first, and the rest is read as a document."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from dpcalc.errors import SpecError

FROM = 200_000
"""Files from this size in bytes on are searched for a long history; smaller ones are read as a document."""

SHORT = b"[[1, 1, 1]]"
"""The replacement for the extracted numbers."""

MOST = 10_000
"""The largest number of kinds of steps that are kept apart; each is a Python object."""

_FINEST = 2.0**-12  # 0.025% of the noise, less than the discretisation of composition costs

_DIGITS = rb"[+]?+\d++\.?+\d*+(?:[eE][+-]?+\d++)?+"
_NUMBER = rb"(?:" + _DIGITS + rb"|(?:np\.|numpy\.)?+float64\(" + _DIGITS + rb"\))"
_ENTRY = rb"[\[(]\s*+" + rb"\s*+,\s*+".join([_NUMBER] * 3) + rb"\s*+[\])]"
_HISTORY = re.compile(rb"[\[(]\s*+(?:" + _ENTRY + rb"\s*+,?+\s*+)++[\])]")  # possessive: no backtracking


def take_out(shown: str, raw: bytes) -> tuple[bytes, Any] | None:
    """Return a text with `SHORT` in place of its history, and the history's numbers; None if there is no history.

    The numbers are an array of shape (entries, 3): noise multipliers, rates and steps.

    Raises:
        SpecError: there are several histories, or a comma is missing between two entries.
    """
    from dpcalc.numerics.floats import np

    found = list(_HISTORY.finditer(raw))
    if len(found) > 1:
        raise SpecError(f"{shown} has {len(found)} histories", "give one file for each, and add them up in a ledger")
    if not found:
        return None
    start, end = found[0].span()
    text = raw[start:end]
    for word in (b"numpy.", b"np.", b"float64"):
        text = text.replace(word, b"")
    cells = text.translate(None, b"[]() \t\r\n").rstrip(b",").split(b",")
    if len(cells) % 3:
        raise SpecError(f"{shown}: a comma between two entries of the history is missing", "write it with json.dump")
    return raw[:start] + SHORT + raw[end:], np.array(list(map(float, cells))).reshape(-1, 3)


class Merged(NamedTuple):
    """Kinds of steps: noise multipliers, rates and numbers of steps.

    ``ordered`` if they are in training order, ``exact`` if only equal rows were merged.
    """

    kinds: list[tuple[float, float, float]]
    ordered: bool
    exact: bool


def merged(rows: Any) -> Merged:
    """Return the rows with equal neighbours merged; if these are too many, similar rows are merged too.

    Similar rows lie in one cell of the logarithms of noise and rate; the merged row has the least noise and largest
    rate of its cell.
    """
    from dpcalc.numerics.floats import np

    z, q, steps = rows.T
    place = _runs(z, q)
    exact = bool(place[-1] < MOST)
    width = _FINEST
    while place[-1] >= MOST:
        cells = np.floor(np.log(z) / width), np.floor(np.log(q) / width)
        place = _runs(*cells)
        if place[-1] >= MOST:
            kinds = np.unique(cells[0] + 1j * cells[1], return_inverse=True)[1]
            if kinds.max() < MOST:
                return Merged(_worst(kinds, z, q, steps), ordered=False, exact=False)
        width *= 2.0
    return Merged(_worst(place, z, q, steps), ordered=True, exact=exact)


def _runs(one: Any, other: Any) -> Any:
    """Return for every row the index of its run of consecutive rows that agree in both."""
    from dpcalc.numerics.floats import np

    return np.cumsum(np.concatenate(([0], (one[1:] != one[:-1]) | (other[1:] != other[:-1]))))


def _worst(place: Any, z: Any, q: Any, steps: Any) -> list[tuple[float, float, float]]:
    """Return the least noise, the largest rate and the total steps of the rows of each cell."""
    from dpcalc.numerics.floats import np

    noise, rate = np.full(place.max() + 1, np.inf), np.zeros(place.max() + 1)
    np.minimum.at(noise, place, z)
    np.maximum.at(rate, place, q)
    return list(zip(noise.tolist(), rate.tolist(), np.bincount(place, weights=steps).tolist(), strict=True))


def first_outside(rows: Any, most_steps: int) -> int | None:
    """Return the first invalid row: one that violates z > 0, 0 < q <= 1, or whole steps from 1 up."""
    from dpcalc.numerics.floats import np

    z, q, steps = rows.T
    inside = (z > 0.0) & np.isfinite(z) & (q > 0.0) & (q <= 1.0)
    inside &= (steps >= 1.0) & (steps <= most_steps) & (steps == np.floor(steps))
    return None if inside.all() else int(inside.argmin())
