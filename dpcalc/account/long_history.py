"""Histories of up to millions of steps: their numbers are taken out of the text, and the rest is a document as any."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from dpcalc.errors import SpecError

FROM = 200_000
"""Bytes from which on a file is looked at for a long history: documents of this size are read at once."""

SHORT = b"[[1, 1, 1]]"
"""What stands in the place of the numbers that were taken out."""

MOST = 10_000
"""Kinds that are kept apart: each is an object, and what becomes of them is a pass over all of them."""

_FINEST = 2.0**-12  # a fortieth of a percent of the noise: less than the cells of composition cost

_DIGITS = rb"[+]?+\d++\.?+\d*+(?:[eE][+-]?+\d++)?+"
_NUMBER = rb"(?:" + _DIGITS + rb"|(?:np\.|numpy\.)?+float64\(" + _DIGITS + rb"\))"
_ENTRY = rb"[\[(]\s*+" + rb"\s*+,\s*+".join([_NUMBER] * 3) + rb"\s*+[\])]"
_HISTORY = re.compile(rb"[\[(]\s*+(?:" + _ENTRY + rb"\s*+,?+\s*+)++[\])]")  # nothing is tried twice: one pass


def take_out(shown: str, raw: bytes) -> tuple[bytes, Any] | None:
    """Return a text with `SHORT` in the place of its history, and the numbers of that; None where there is none.

    The numbers are an array of shape (entries, 3): noise multipliers, rates and steps, as they were written.

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
    """Kinds of steps: noise multipliers, rates and numbers of steps; ``ordered`` where they are in the order done."""

    kinds: list[tuple[float, float, float]]
    ordered: bool


def merged(rows: Any) -> Merged:
    """Return the rows with neighbours of one kind as one; where these are too many, alike ones with the worst of each.

    Noise and rate are then alike within a cell of their logarithms, and a kind has its least noise and largest rate.
    """
    from dpcalc.numerics.floats import np

    z, q, steps = rows.T
    place = _runs(z, q)
    width = _FINEST
    while place[-1] >= MOST:
        cells = np.floor(np.log(z) / width), np.floor(np.log(q) / width)
        place = _runs(*cells)
        if place[-1] >= MOST:
            kinds = np.unique(cells[0] + 1j * cells[1], return_inverse=True)[1]
            if kinds.max() < MOST:
                return Merged(_worst(kinds, z, q, steps), ordered=False)
        width *= 2.0
    return Merged(_worst(place, z, q, steps), ordered=True)


def _runs(one: Any, other: Any) -> Any:
    """Return for every row the number of its run of neighbours that agree in both."""
    from dpcalc.numerics.floats import np

    return np.cumsum(np.concatenate(([0], (one[1:] != one[:-1]) | (other[1:] != other[:-1]))))


def _worst(place: Any, z: Any, q: Any, steps: Any) -> list[tuple[float, float, float]]:
    """Return the least noise, the largest rate and all steps of the rows with one place."""
    from dpcalc.numerics.floats import np

    noise, rate = np.full(place.max() + 1, np.inf), np.zeros(place.max() + 1)
    np.minimum.at(noise, place, z)
    np.maximum.at(rate, place, q)
    return list(zip(noise.tolist(), rate.tolist(), np.bincount(place, weights=steps).tolist(), strict=True))


def first_outside(rows: Any, most_steps: int) -> int | None:
    """Return the first row that is no step of a run: not z > 0, 0 < q <= 1 and steps a whole number from 1."""
    from dpcalc.numerics.floats import np

    z, q, steps = rows.T
    inside = (z > 0.0) & np.isfinite(z) & (q > 0.0) & (q <= 1.0)
    inside &= (steps >= 1.0) & (steps <= most_steps) & (steps == np.floor(steps))
    return None if inside.all() else int(inside.argmin())
