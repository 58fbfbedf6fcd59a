"""Sums of terms that fall, from above, over up to 1e15 integers: values at a few nodes bound all terms between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.numerics.floats import UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TOLERANCE = 1e-3
_NODES = 6000
_ROUNDS = 14
_SINGLE = 24  # so many terms are looked at one by one


class Values(NamedTuple):
    """What is known of the terms of several sums at some integers: logarithms, shape (sums, integers).

    ``flat`` is above the terms from the integer on. ``bent`` is above the terms, at it and at all later ones, and
    there it is convex in the integer, where ``convex`` says so.
    """

    flat: Array
    bent: Array
    convex: NDArray[np.bool_]


def log_sum_falling(terms: Callable[[Array], Values], first: int, last: int, tolerance: float = TOLERANCE) -> float:
    """Return an upper bound on ln of the sum over first <= k <= last of all the terms at k.

    Between two nodes a < a' a term counts at its value at a, or where it is convex on the chord from a to a'. Nodes are
    added until what this seems to cost is below the tolerance, relatively; whatever they are, the result is a bound.
    """
    import numpy as np

    nodes = _first_nodes(first, last)
    values = terms(nodes)
    for _ in range(_ROUNDS):
        shares, peak = _shares(nodes, values)
        total = float(shares[0].sum())
        loss = shares[1] / total
        if float(loss.sum()) <= tolerance or len(nodes) >= _NODES:
            break
        added = _between(nodes, loss, tolerance)
        if not len(added):
            break
        found = terms(added)
        nodes = np.concatenate((nodes, added))
        order = np.argsort(nodes)
        nodes = nodes[order]
        values = Values(*(np.concatenate(pair, axis=1)[:, order] for pair in zip(values, found, strict=True)))
    shares, peak = _shares(nodes, values)
    value = peak + float(np.log(shares[0].sum()))
    return value + UNIT * (4.0 * abs(value) + 16.0 * len(nodes))


def _first_nodes(first: int, last: int) -> Array:
    import numpy as np

    alone = np.arange(first, min(last, first + _SINGLE) + 1, dtype=float)
    if last <= first + _SINGLE:
        return alone
    count = 2 + int(3.0 * np.log((last + 1.0 - first) / _SINGLE))
    return np.unique(np.concatenate((alone, np.rint(np.geomspace(alone[-1], float(last), count)))))


def _shares(nodes: Array, values: Values) -> tuple[Array, float]:
    """Return what each block adds and what of it is lost, shape (2, blocks), in units of exp(peak); the last is one."""
    import numpy as np

    peak = max(float(values.flat.max()), -1e306)
    flat, bent = np.exp(values.flat - peak), np.exp(np.minimum(values.bent - peak, 700.0))
    count = np.append(np.diff(nodes), 1.0)
    after = np.concatenate((bent[:, 1:], bent[:, -1:]), axis=1)
    chord = (bent * (count + 1.0) + after * (count - 1.0)) / 2.0
    added = np.where(values.convex, chord, flat * count)
    # A guess at the sum itself: the values fall exponentially between nodes, and bend as much as a power would.
    gap = np.maximum(
        np.concatenate((values.flat[:, :-1] - values.flat[:, 1:], values.flat[:, -1:] * 0.0), axis=1), 1e-9
    )
    gap_bent = np.maximum(np.log(np.maximum(bent, 1e-300)) - np.log(np.maximum(after, 1e-300)), 1e-9)
    inner = count - 1.0
    rough = flat * inner * (1.0 + np.expm1(-gap) / gap)
    fine = (bent + after) * inner / 2.0 - bent * inner * -np.expm1(-gap_bent) / gap_bent
    fine *= 1.0 + np.minimum(np.append(np.log(nodes[1:] / nodes[:-1]), 0.0) / gap_bent, 9.0)
    lost = np.where(values.convex, fine, rough)
    return np.stack((added.sum(axis=0), np.maximum(lost, 0.0).sum(axis=0))), peak


def _between(nodes: Array, loss: Array, tolerance: float) -> Array:
    """Return nodes inside the blocks that lose most, more of them where more is lost."""
    import numpy as np

    share = tolerance / max(64, len(nodes))
    chosen = np.flatnonzero((loss[:-1] > share) & (np.diff(nodes) > 1.0))
    chosen = chosen[np.argsort(-loss[chosen])][:1500]
    parts = np.clip(np.ceil(np.sqrt(loss[chosen] / share)), 2, 24).astype(int)
    made = [np.rint(np.geomspace(nodes[i], nodes[i + 1], p + 1)[1:-1]) for i, p in zip(chosen, parts, strict=True)]
    if not made:
        return np.empty(0)
    return np.setdiff1d(np.concatenate(made), nodes)
